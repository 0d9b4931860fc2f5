"""Records are built with kafka-python's codecs, an independent implementation, and by hand where it has none."""

from __future__ import annotations

import base64
import io
import json
import struct
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.readers.offsets import DUMP, FORMATTER, SEGMENT, stored_record
from kipcheck.conformance.readers.whole import Tally, WholeFileReader
from kipcheck.spec.events import Assignment, Event, GenerationStarted, Replace

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas by importlib.resources.read_text
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
    from kafka.record.memory_records import MemoryRecordsBuilder

TIME_MS = 1_700_000_000_000
CODEC_AT = 22
RECORDS_AT = 61


def text(value: str | None) -> bytes:
    return b"\xff\xff" if value is None else struct.pack(">h", len(value)) + value.encode()


def blob(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def subscription(owned: Sequence[tuple[str, list[int]]] = (), generation: int = -1) -> bytes:
    return ConsumerProtocolSubscription(
        version=3, topics=["orders"], owned_partitions=list(owned), generation_id=generation, user_data=None, rack_id=None
    ).encode()


def assignment(*partitions: int) -> bytes:
    topics = [("orders", list(partitions))] if partitions else []
    return ConsumerProtocolAssignment(version=3, assigned_partitions=topics, user_data=None).encode()


def member(name: str, given_: bytes, claims: bytes | None = None, instance: str | None = None) -> bytes:
    claims = subscription() if claims is None else claims
    timeouts = struct.pack(">ii", 300_000, 45_000)
    return text(name) + text(instance) + text("app") + text("/10.1.2.3") + timeouts + blob(claims) + blob(given_)


def value(generation: int, *members: bytes, kind: str = "consumer", protocol: str | None = "range", leader: str | None = "m1") -> bytes:
    if not members:
        protocol = leader = None
    head = struct.pack(">h", 3) + text(kind) + struct.pack(">i", generation) + text(protocol) + text(leader)
    return head + struct.pack(">qi", TIME_MS - 7, len(members)) + b"".join(members)


def key(group: str = "billing") -> bytes:
    return struct.pack(">h", 2) + text(group)


OFFSET_KEY = struct.pack(">h", 1) + text("billing") + text("orders") + struct.pack(">i", 0)


def batch(*records: tuple[bytes, bytes | None], codec: int = 0, time_ms: int = TIME_MS) -> bytes:
    builder = MemoryRecordsBuilder(magic=2, compression_type=codec, batch_size=1 << 20)
    for record_key, record_value in records:
        builder.append(timestamp=time_ms, key=record_key, value=record_value)
    builder.close()
    return bytes(builder.buffer())


def read(reader: WholeFileReader, data: bytes) -> tuple[list[Event], Tally]:
    tally = Tally()
    return list(reader.read(io.BytesIO(data), "part-7", tally)), tally


def counts(tally: Tally) -> tuple[int, int, int]:
    return tally.events, tally.irrelevant, tally.malformed


def only_assignment(events: Sequence[Event]) -> Assignment:
    (event,) = events
    assert isinstance(event, Assignment)
    return event


def test_segment_tells_the_whole_assignment() -> None:
    claims = subscription([("orders", [3, 1])], generation=4)
    data = batch((OFFSET_KEY, b"ignored"), (key(), value(5, member("m1", assignment(0, 10), claims, "pod-1"), member("m2", assignment()))))
    events, tally = read(SEGMENT, data)
    event = only_assignment(events)
    assert (event.group, event.ts, event.epoch, event.generation) == ("billing", TIME_MS * 1000, 0, 5)
    assert (event.leader, event.protocol, event.extra) == ("m1", "range", {"protocol_type": "consumer"})
    assert event.assignment == {"m1": ("orders-0", "orders-10"), "m2": ()}
    assert event.members is not None
    first = event.members["m1"]
    assert (first.instance, first.session_timeout_ms, first.subscribed) == ("pod-1", 45_000, ("orders",))
    assert first.owned == ("orders-1", "orders-3")
    assert first.extra == {"client": "app", "rebalance_timeout_ms": 300_000, "owned_generation": 4}
    assert event.src is not None
    assert (event.src.file, event.src.line) == ("part-7", 2)
    assert counts(tally) == (1, 1, 0)


def test_life_of_a_group() -> None:
    joined = member("m1", assignment(0))
    values = [value(0, kind=""), value(1, joined), value(2), None, value(1, joined), value(3, joined), value(1, joined), None, None]
    events, tally = read(SEGMENT, b"".join(batch((key(), stored)) for stored in values))
    assert [(type(event), event.epoch, event.generation) for event in events] == [
        (Assignment, 0, 1),
        (GenerationStarted, 0, 2),
        (Assignment, 1, 1),
        (Assignment, 1, 3),
        (Assignment, 2, 1),
    ]
    assert isinstance(events[1], GenerationStarted)
    assert events[1].members == ()
    assert counts(tally) == (9, 0, 0)


def test_static_replacement_in_one_generation() -> None:
    before = value(5, member("m1", assignment(0)), member("p-old", assignment(1), instance="p"))
    after = value(5, member("m1", assignment(0)), member("p-new", assignment(1), instance="p"))
    records = [batch((key(), stored), time_ms=TIME_MS + number) for number, stored in enumerate((before, after, after))]
    events, _ = read(SEGMENT, b"".join(records))
    assert [type(event) for event in events] == [Assignment, Replace, Assignment, Assignment]
    replaced = events[1]
    assert isinstance(replaced, Replace)
    assert (replaced.old_member, replaced.member, replaced.instance, replaced.generation) == ("p-old", "p-new", "p", 5)


def test_static_replacement_at_an_unknown_time_is_seen_in_the_members_only() -> None:
    ids = ("p-old", "p-new")
    printed_ids = [printed(5, {**printed_member(base64_of(subscription()), base64_of(assignment(1)), "p"), "memberId": one}) for one in ids]
    events, _ = read(FORMATTER, "".join(json_record({"type": 2}, stored) for stored in printed_ids).encode())
    assert [list(event.members or ()) for event in events if isinstance(event, Assignment)] == [["p-old"], ["p-new"]]


def test_new_member_id_in_another_generation_is_no_replacement() -> None:
    values = [value(generation, member(f"p-{generation}", assignment(1), instance="p")) for generation in (5, 6)]
    events, _ = read(SEGMENT, batch(*((key(), stored) for stored in values)))
    assert [type(event) for event in events] == [Assignment, Assignment]


def units(*connectors: tuple[str, tuple[int, ...]]) -> bytes:
    entries = [text(name) + struct.pack(f">i{len(tasks)}i", len(tasks), *tasks) for name, tasks in connectors]
    return struct.pack(">i", len(entries)) + b"".join(entries)


def connect_given(version: int, assigned: bytes, revoked: bytes = b"", delay: bytes = b"") -> bytes:
    return struct.pack(">hh", version, 0) + text("w1") + text("http://w1") + struct.pack(">q", 9) + assigned + revoked + delay


def worker(owned: bytes | None) -> bytes:
    allocation = b"\xff\xff\xff\xff" if owned is None else blob(connect_given(2, owned, units(), struct.pack(">i", 0)))
    return struct.pack(">h", 2) + text("http://w") + struct.pack(">q", 9) + allocation


def test_connect_assignment_is_completed_by_what_the_worker_owned() -> None:
    delay = struct.pack(">i", 60_000)
    w1 = member("w1", connect_given(2, units(("jdbc", (1,))), units(("sink", (0,))), delay), worker(units(("sink", (-1, 0, 1)))))
    w2 = member("w2", connect_given(2, units(), units(), delay), worker(None))
    events, _ = read(SEGMENT, batch((key("cluster"), value(8, w1, w2, kind="connect", protocol="sessioned"))))
    event = only_assignment(events)
    assert event.assignment == {"w1": ("connector:sink", "task:jdbc-1", "task:sink-1"), "w2": ()}
    assert event.extra == {"protocol_type": "connect", "delay_ms": 60_000, "revoked": {"w1": ("task:sink-0",), "w2": ()}}
    assert event.members is not None
    assert event.members["w1"].owned == ("connector:sink", "task:sink-0", "task:sink-1")


def test_eager_connect_assignment_is_complete() -> None:
    metadata = struct.pack(">h", 0) + text("http://w") + struct.pack(">q", 9)
    w1 = member("w1", connect_given(0, units(("sink", (-1, 0)))), metadata)
    event = only_assignment(read(SEGMENT, batch((key("cluster"), value(8, w1, kind="connect", protocol="default"))))[0])
    assert event.assignment == {"w1": ("connector:sink", "task:sink-0")}
    assert event.members is not None
    assert event.members["w1"].owned is None


@pytest.mark.parametrize(
    "stored",
    [
        value(8, member("m1", b"\x00\x01{"), kind="sr", protocol="v0"),
        value(8, member("m1", assignment(0)), member("m2", b"\x07"), kind="consumer", protocol="own"),
        value(8, member("w1", b"", worker(None)), kind="connect", protocol="sessioned"),
    ],
)
def test_unreadable_assignment_is_unknown(stored: bytes) -> None:
    event = only_assignment(read(SEGMENT, batch((key(), stored)))[0])
    assert event.assignment is None
    assert event.members


def test_members_without_stored_assignment_own_nothing() -> None:
    event = only_assignment(read(SEGMENT, batch((key(), value(8, member("m1", b"")))))[0])
    assert event.assignment == {"m1": ()}


def test_record_time_is_used_before_the_state_time() -> None:
    stored = stored_record(key(), value(2))
    assert getattr(stored, "ts", None) == (TIME_MS - 7) * 1000


def compressed(codec: int, compress: Callable[[bytes], bytes]) -> bytes:
    plain = bytearray(batch((key(), value(5, member("m1", assignment(0)))), (OFFSET_KEY, None)))
    plain[RECORDS_AT:] = compress(bytes(plain[RECORDS_AT:]))
    plain[CODEC_AT] = codec
    plain[8:12] = struct.pack(">i", len(plain) - 12)
    return bytes(plain)


def lz4(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def snappy(data: bytes) -> bytes:
    return pa.compress(data, codec="snappy", asbytes=True)


def xerial(data: bytes) -> bytes:
    blocks = [snappy(data[:40]), snappy(data[40:])]
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(map(blob, blocks))


@pytest.mark.parametrize(
    "data",
    [
        batch((key(), value(5, member("m1", assignment(0)))), (OFFSET_KEY, None), codec=1),
        batch((key(), value(5, member("m1", assignment(0)))), (OFFSET_KEY, None), codec=4),
        compressed(3, lz4),
        compressed(2, snappy),
        compressed(2, xerial),
    ],
    ids=["gzip", "zstd", "lz4", "snappy", "xerial"],
)
def test_compressed_batches(data: bytes) -> None:
    events, tally = read(SEGMENT, data)
    assert only_assignment(events).assignment == {"m1": ("orders-0",)}
    assert counts(tally) == (1, 1, 0)


GOOD_BATCH = batch((key(), value(5, member("m1", assignment(0)))))


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (GOOD_BATCH[:-3], (1, 1, 0)),
        (GOOD_BATCH[:7], (1, 1, 0)),
        (bytes(5000), (1, 1, 0)),
        (struct.pack(">qi", 1, -5) + bytes(100), (1, 0, 1)),
        (struct.pack(">qi", 1, 1 << 30) + bytes(100), (1, 0, 1)),
        (GOOD_BATCH[:16] + b"\x01" + GOOD_BATCH[17:] + GOOD_BATCH, (2, 0, 1)),
        (batch((struct.pack(">h", 2), b"x")) + GOOD_BATCH, (2, 0, 1)),
        (batch((key("other"), struct.pack(">h", 9))) + GOOD_BATCH, (2, 0, 1)),
        (compressed(6, bytes) + GOOD_BATCH, (2, 0, 1)),
        (compressed(4, lambda _: b"no zstd") + GOOD_BATCH, (2, 0, 1)),
    ],
)
def test_end_and_damage_of_a_segment(tail: bytes, expected: tuple[int, int, int]) -> None:
    assert counts(read(SEGMENT, GOOD_BATCH + tail)[1]) == expected


def test_control_records_are_irrelevant() -> None:
    data = bytearray(batch((key(), value(5, member("m1", assignment(0))))))
    data[CODEC_AT] |= 0x20
    assert counts(read(SEGMENT, bytes(data))[1]) == (0, 1, 0)


def printed(generation: int, *members: Mapping[str, Any], kind: str = "consumer") -> dict[str, Any]:
    data = {"protocolType": kind, "generation": generation, "protocol": "range", "leader": "m1", "currentStateTimestamp": TIME_MS}
    return {"version": 3, "data": {**data, "members": members}}


def printed_member(claims: object, given_: object, instance: str | None = None) -> dict[str, Any]:
    timeouts = {"rebalanceTimeout": 300_000, "sessionTimeout": 45_000}
    ids = {"memberId": "m1", "groupInstanceId": instance, "clientId": "app", "clientHost": "/10.1.2.3"}
    return {**ids, **timeouts, "subscription": claims, "assignment": given_}


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


MEMBER_IN_BASE64 = printed_member(base64_of(subscription([("orders", [2])], 3)), base64_of(assignment(0, 1)), "pod-1")
MEMBER_DECODED = printed_member(
    {
        "topics": ["orders"],
        "userData": None,
        "ownedPartitions": [{"topic": "orders", "partitions": [2]}],
        "generationId": 3,
        "rackId": None,
    },
    {"assignedPartitions": [{"topic": "orders", "partitions": [1, 0]}], "userData": None},
    "pod-1",
)


def json_record(version: Mapping[str, Any], stored: object, group: str = "billing") -> str:
    return json.dumps({"key": {**version, "data": {"group": group}}, "value": stored})


def check_printed(event: Assignment) -> None:
    assert event.assignment == {"m1": ("orders-0", "orders-1")}
    assert event.members is not None
    (info,) = event.members.values()
    assert (info.instance, info.session_timeout_ms, info.subscribed, info.owned) == ("pod-1", 45_000, ("orders",), ("orders-2",))
    assert info.extra == {"client": "app", "rebalance_timeout_ms": 300_000, "owned_generation": 3}


@pytest.mark.parametrize("version", [{"version": 2}, {"type": 2}])
def test_formatter_prints_records_without_anything_between(version: Mapping[str, Any]) -> None:
    others = [json_record({"version": 1}, {"version": 3}), json_record(version, printed(6))]
    data = json_record(version, printed(5, MEMBER_IN_BASE64)) + "".join(others) + json_record(version, None) + "\nProcessed 4 messages\n"
    events, tally = read(FORMATTER, data.encode())
    first = events[0]
    assert isinstance(first, Assignment)
    check_printed(first)
    assert (first.ts, first.generation, first.leader) == (TIME_MS * 1000, 5, "m1")
    assert [type(event) for event in events] == [Assignment, GenerationStarted]
    assert counts(tally) == (3, 2, 0)


def test_formatter_goes_on_behind_a_broken_record() -> None:
    good = json_record({"type": 2}, printed(5, MEMBER_IN_BASE64))
    bad = [good[:-40], '{"key": nothing}', json_record({"type": 2}, "text"), json_record({"type": 2}, {"data": "unknown"}), "[" * 9000]
    for broken in bad[:4]:
        events, tally = read(FORMATTER, (good + broken + good + good).encode())
        assert tally.malformed >= 1
        assert len(events) >= 2
    events, tally = read(FORMATTER, ('{"key":' + bad[4] + "\n" + good + good[:50]).encode())
    assert (len(events), tally.malformed) == (1, 2)


def test_formatter_bears_records_across_its_buffer() -> None:
    group = "grüße" * 5000
    data = "".join(json_record({"type": 2}, printed(number, MEMBER_IN_BASE64), group) for number in range(1, 8))
    data = data.replace("gr\\u00fc\\u00dfe", "grüße")
    events, tally = read(FORMATTER, data.encode())
    assert [(event.group, event.generation) for event in events] == [(group, number) for number in range(1, 8)]
    assert counts(tally) == (7, 0, 0)


TEXT_MEMBER = (
    "m1 -> MemberMetadata(memberId=m1, groupInstanceId={instance}, clientId=app, clientHost=/10.1.2.3, "
    "sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range))"
)


@pytest.mark.parametrize(("instance", "expected"), [("Some(pod-1)", "pod-1"), ("None", None), ("Some(null)", None), ("pod-1", "pod-1")])
@pytest.mark.parametrize("columns", ["", "CreateTime:1700000000000\t", "CreateTime:1700000000000\tPartition:3\t"])
def test_formatter_text_of_older_releases(instance: str, expected: str | None, columns: str) -> None:
    described = "(groupId=billing, generation=4, protocolType=Some(consumer), currentState=Stable, members=HashMap({}))\n"
    empty = "(groupId=billing, generation=5, protocolType=Some(consumer), currentState=Empty, members=Map())\n"
    lines = [
        columns + "billing::GroupMetadata" + described.format(TEXT_MEMBER.format(instance=instance)),
        columns + "billing::GroupMetadata" + empty,
        columns + "[billing,orders,0]::OffsetAndMetadata(offset=3)\n",
        columns + "[billing,orders,0]::NULL\n",
        columns + "billing::NULL\n",
        columns + "billing::GroupMetadata(groupId=billing, generation=4, protoc\n",
    ]
    events, tally = read(FORMATTER, "".join(lines).encode())
    first = events[0]
    assert isinstance(first, Assignment)
    assert first.assignment is None
    assert first.ts == (TIME_MS * 1000 if columns else None)
    assert first.members is not None
    assert (first.members["m1"].instance, first.members["m1"].session_timeout_ms) == (expected, 45_000)
    assert isinstance(events[1], GenerationStarted)
    assert counts(tally) == (3, 2, 1)


DUMP_HEAD = "| offset: 3 CreateTime: 1700000000001 keySize: 12 valueSize: 257 sequence: -1 headerKeys: [] key: "


def dump(*records: str) -> bytes:
    noise = ["$ kafka-dump-log.sh --offsets-decoder", "Dumping 00000000000000000000.log", "baseOffset: 0 lastOffset: 0 count: 1"]
    return "\n".join([*noise, *(DUMP_HEAD + record for record in records), ""]).encode()


@pytest.mark.parametrize("stored", [MEMBER_DECODED, MEMBER_IN_BASE64])
def test_dump_from_3_8(stored: Mapping[str, Any]) -> None:
    head = '{"type":"2","data":{"group":"billing"}} payload: '
    body = json.dumps({**printed(5, stored), "version": "3"})
    events, tally = read(DUMP, dump(head + body, head + "<DELETE>", head + body, '{"type":"1","data":{}} payload: <DELETE>', head + "oops"))
    assert [(type(event), event.epoch, event.ts) for event in events] == [
        (Assignment, 0, 1_700_000_000_001_000),
        (Assignment, 1, 1_700_000_000_001_000),
    ]
    first = events[0]
    assert isinstance(first, Assignment)
    check_printed(first)
    assert counts(tally) == (3, 4, 1)
    assert tally.malformed_at[0].line == 8


@pytest.mark.parametrize("head", ["group_metadata::group=bill payload", '{"metadata":"bill payload"}'])
def test_dump_up_to_3_7(head: str) -> None:
    def record(generation: int, shares: str, kind: str = "consumer") -> str:
        body = {"protocolType": kind, "protocol": "range", "generationId": generation, "assignment": shares}
        return f"{head} payload: {json.dumps(body)}"

    events, tally = read(
        DUMP,
        dump(
            record(1, "{a-1=[orders-1, orders-0],b-2=[]:00FF}"),
            record(2, "{}"),
            "offset_commit::group=bill payload,partition=orders-0 payload: offset=1",
            record(3, "{w-1=0001ABCD,w-2=00}", "connect"),
            f"{head} payload: <DELETE>",
            record(4, "{a-1=orders}"),
        ),
    )
    first, empty, other = events
    assert isinstance(first, Assignment)
    assert (first.group, first.assignment) == ("bill payload", {"a-1": ("orders-0", "orders-1"), "b-2": ()})
    assert isinstance(empty, GenerationStarted)
    assert isinstance(other, Assignment)
    assert other.assignment is None
    assert list(other.members or ()) == ["w-1", "w-2"]
    assert counts(tally) == (4, 4, 1)


SAMPLES: tuple[tuple[WholeFileReader, bytes], ...] = (
    (SEGMENT, GOOD_BATCH * 2 + compressed(2, xerial) + compressed(3, lz4)),
    (SEGMENT, batch((key(), value(5, member("m1", assignment(0)))), codec=4)),
    (FORMATTER, (json_record({"type": 2}, printed(5, MEMBER_IN_BASE64)) * 2).encode()),
    (FORMATTER, b"g::GroupMetadata(groupId=g, generation=4, protocolType=None, currentState=Empty, members=Map())\ng::NULL\n"),
    (DUMP, dump('{"type":"2","data":{"group":"g"}} payload: ' + json.dumps(printed(5, MEMBER_DECODED)))),
    (DUMP, dump('group_metadata::group=g payload: {"protocolType":"consumer","generationId":1,"assignment":"{a=[t-0]}"}')),
)


@settings(derandomize=True, max_examples=400, deadline=None)
@given(st.sampled_from(SAMPLES), st.integers(0, 2000), st.binary(max_size=5), st.booleans())
def test_damage_is_counted_and_never_raised(sample: tuple[WholeFileReader, bytes], at: int, patch: bytes, cut: bool) -> None:
    reader, data = sample
    at %= len(data)
    read(reader, data[:at] if cut else data[:at] + patch + data[at + len(patch) :])
