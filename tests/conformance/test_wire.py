"""The bytes are built here by hand (``struct``), field by field as Kafka's message schemas list them."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.readers.wire import (
    ConnectAssignment,
    ConnectMetadata,
    GroupMetadata,
    StoredMember,
    Subscription,
    WireError,
    decode_assignment,
    decode_connect_assignment,
    decode_connect_metadata,
    decode_group_metadata_key,
    decode_group_metadata_value,
    decode_subscription,
)

NULL_BYTES = b"\xff\xff\xff\xff"


def text(value: str | None) -> bytes:
    return b"\xff\xff" if value is None else struct.pack(">h", len(value.encode())) + value.encode()


def blob(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def int16(value: int) -> bytes:
    return struct.pack(">h", value)


def int32(value: int) -> bytes:
    return struct.pack(">i", value)


def int64(value: int) -> bytes:
    return struct.pack(">q", value)


def array(*items: bytes) -> bytes:
    return int32(len(items)) + b"".join(items)


def numbered(name: str, *numbers: int) -> bytes:
    return text(name) + array(*map(int32, numbers))


def varint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


def compact(value: str | bytes | None) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return b"\0" if raw is None else varint(len(raw) + 1) + raw


OWNED = array(numbered("orders", 2, 0), numbered("audit", 11))
SUBSCRIBED = array(text("orders"), text("audit")) + blob(b"user data")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (int16(0) + SUBSCRIBED, Subscription(("audit", "orders"), None, None, None)),
        (int16(0) + array() + NULL_BYTES, Subscription((), None, None, None)),
        (int16(1) + SUBSCRIBED + array(), Subscription(("audit", "orders"), (), None, None)),
        (int16(1) + SUBSCRIBED + OWNED, Subscription(("audit", "orders"), ("audit-11", "orders-0", "orders-2"), None, None)),
        (int16(2) + SUBSCRIBED + array() + int32(7), Subscription(("audit", "orders"), (), 7, None)),
        (int16(3) + SUBSCRIBED + array() + int32(-1) + text("east"), Subscription(("audit", "orders"), (), None, "east")),
        (int16(3) + SUBSCRIBED + array() + int32(0) + text(None), Subscription(("audit", "orders"), (), 0, None)),
        (int16(9) + SUBSCRIBED + array() + int32(4) + text(None) + b"newer", Subscription(("audit", "orders"), (), 4, None)),
    ],
)
def test_subscription(data: bytes, expected: Subscription) -> None:
    assert decode_subscription(data) == expected


@pytest.mark.parametrize("version", [0, 1, 3, 12])
def test_assignment_of_every_version_has_one_layout(version: int) -> None:
    assert decode_assignment(int16(version) + OWNED + NULL_BYTES) == ("audit-11", "orders-0", "orders-2")


def test_no_assignment_bytes_assign_nothing() -> None:
    assert decode_assignment(b"") == ()


def connect_assignment(version: int, *tail: bytes) -> bytes:
    return int16(version) + int16(0) + text("w1") + text("http://w1:8083/") + int64(41) + b"".join(tail)


def test_connect_eager() -> None:
    assert decode_connect_metadata(int16(0) + text("http://w1:8083/") + int64(41)) == ConnectMetadata("http://w1:8083/", 41, ())
    assigned = connect_assignment(0, array(numbered("sink", -1, 0)))
    assert decode_connect_assignment(assigned) == ConnectAssignment(0, "w1", 41, ("connector:sink", "task:sink-0"), (), 0)


@pytest.mark.parametrize("version", [1, 2, 5])
def test_connect_incremental(version: int) -> None:
    allocation = connect_assignment(version, array(numbered("sink", -1, 0)), int32(-1), int32(0))
    metadata = int16(version) + text("u") + int64(3) + blob(allocation)
    assert decode_connect_metadata(metadata).owned == ("connector:sink", "task:sink-0")
    given_ = connect_assignment(version, array(numbered("jdbc", 1)), array(numbered("sink", 0)), int32(300000))
    assert decode_connect_assignment(given_) == ConnectAssignment(0, "w1", 41, ("task:jdbc-1",), ("task:sink-0",), 300000)


def test_connect_fields_at_the_end_may_be_missing() -> None:
    assert decode_connect_metadata(int16(2) + text("u") + int64(3)).owned == ()
    assert decode_connect_metadata(int16(2) + text("u") + int64(3) + NULL_BYTES).owned == ()
    assert decode_connect_assignment(connect_assignment(1)).assigned == ()
    assert decode_connect_assignment(connect_assignment(1, array(), array())).delay_ms == 0


def test_group_metadata_key() -> None:
    assert decode_group_metadata_key(int16(2) + text("billing")) == "billing"
    assert decode_group_metadata_key(int16(1) + text("billing") + text("orders") + int32(0)) is None
    assert decode_group_metadata_key(int16(12) + b"anything") is None


def stored_value(version: int) -> bytes:
    member = text("c1-id")
    member += text("c1") if version >= 3 else b""
    member += text("client") + text("/10.0.0.9")
    member += int32(60000) if version >= 1 else b""
    member += int32(45000) + blob(b"sub") + blob(b"asg")
    state = int64(1700000000000) if version >= 2 else b""
    return int16(version) + text("consumer") + int32(5) + text("range") + text("c1-id") + state + array(member)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_group_metadata_value(version: int) -> None:
    assert decode_group_metadata_value(stored_value(version)) == GroupMetadata(
        protocol_type="consumer",
        generation=5,
        protocol="range",
        leader="c1-id",
        state_ms=1700000000000 if version >= 2 else None,
        members=(
            StoredMember(
                member="c1-id",
                instance="c1" if version >= 3 else None,
                client="client",
                host="/10.0.0.9",
                rebalance_timeout_ms=60000 if version >= 1 else None,
                session_timeout_ms=45000,
                subscription=b"sub",
                assignment=b"asg",
            ),
        ),
    )


def test_group_metadata_value_of_the_flexible_version_skips_unknown_tags() -> None:
    unknown = varint(1) + varint(200) + varint(3) + b"tag"
    member = compact("c1-id") + compact(None) + compact("client") + compact("/h") + int32(-1) + int32(45000)
    member += compact(b"x" * 300) + compact(b"") + unknown
    value = int16(4) + compact("consumer") + int32(5) + compact("range") + compact(None) + int64(-1) + varint(2) + member + unknown
    decoded = decode_group_metadata_value(value)
    assert decoded is not None
    assert (decoded.generation, decoded.leader, decoded.state_ms) == (5, None, None)
    assert decoded.members == (StoredMember("c1-id", None, "client", "/h", None, 45000, b"x" * 300, b""),)


def test_tombstone() -> None:
    assert decode_group_metadata_value(None) is None


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        (decode_subscription, b""),
        (decode_subscription, int16(-1) + array()),
        (decode_subscription, int16(0) + int32(2**31 - 1)),
        (decode_subscription, int16(0) + int32(-2)),
        (decode_subscription, int16(0) + array(int16(1) + b"\xff") + NULL_BYTES),
        (decode_subscription, int16(0) + array(text(None)) + NULL_BYTES),
        (decode_assignment, b"\0"),
        (decode_assignment, int16(0) + array(numbered("t", -1)) + NULL_BYTES),
        (decode_assignment, int16(0) + array(numbered("t" * 10000, *range(10000)))),
        (decode_connect_assignment, connect_assignment(1, array(numbered("c", -2)))),
        (decode_connect_assignment, b""),
        (decode_connect_metadata, int16(1) + text("u") + int64(3) + blob(b"\0\1")),
        (decode_group_metadata_key, int16(2) + int16(9) + b"short"),
        (decode_group_metadata_value, int16(5)),
        (decode_group_metadata_value, int16(4) + b"\xff\xff\xff\xff\xff\xff"),
    ],
)
def test_bad_bytes(decode: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(WireError):
        decode(data)


DECODERS: tuple[Callable[[bytes], object], ...] = (
    decode_subscription,
    decode_assignment,
    decode_connect_metadata,
    decode_connect_assignment,
    decode_group_metadata_key,
    decode_group_metadata_value,
)
GOOD = (
    int16(3) + SUBSCRIBED + OWNED + int32(7) + text("east"),
    connect_assignment(2, array(numbered("jdbc", 1)), array(numbered("sink", 0)), int32(300000)),
    stored_value(3),
)


@settings(derandomize=True, max_examples=500)
@given(st.sampled_from(DECODERS), st.binary(max_size=60) | st.sampled_from(GOOD), st.integers(0, 200), st.binary(max_size=6))
def test_nothing_but_wire_error_is_raised(decode: Callable[[bytes], object], data: bytes, at: int, patch: bytes) -> None:
    for damaged in (data[:at] + patch + data[at + len(patch) :], data[:at]):
        try:
            decode(damaged)
        except WireError:
            continue
