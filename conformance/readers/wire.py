"""Decoders of the bytes that members and coordinators store: the consumer and Connect protocols, and group metadata records.

An own cursor over five primitive types rather than a library: schema classes (kafka-python) want package data, trust the
counts that they read and reject a payload without Connect's optional tail, so wrapping one costs more code than this.

Every decoder raises `WireError`, and nothing else, on bytes that it can't read. A version newer than the newest known
is read with the newest known layout and trailing bytes are ignored, as Kafka's own clients do. What a decoder builds is
bounded by the size of its input.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ...spec.events import Resources

T = TypeVar("T")

GROUP_METADATA_KEY = 2
"""Version of the key of a group metadata record in ``__consumer_offsets``; other versions key other records."""

_NEWEST_GROUP_METADATA = 4
_CONNECTOR = -1
_TEXT_PER_BYTE = 128
"""Resource names repeat their topic: at most this many characters of them are made from one byte of input."""


class WireError(ValueError):
    """Bytes that don't follow their layout. ``str()`` says what was expected."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a consumer sends in JoinGroup (ConsumerProtocolSubscription versions 0 to 3).

    ``owned`` is None before version 1 and empty if the member claims nothing; ``generation`` is None where absent (-1).
    """

    topics: Resources
    owned: Resources | None
    generation: int | None
    rack: str | None


@dataclass(frozen=True, slots=True)
class ConnectMetadata:
    """What a Connect worker sends in JoinGroup; ``owned`` is empty under the eager protocol, which does not report it."""

    url: str
    config_offset: int
    owned: Resources


@dataclass(frozen=True, slots=True)
class ConnectAssignment:
    """What a Connect leader gives a worker: under the incremental protocols ``assigned`` is only what it has to start.

    ``error`` is 0, or 1 for a config mismatch. ``delay_ms`` is the scheduled rebalance delay.
    """

    error: int
    leader: str
    config_offset: int
    assigned: Resources
    revoked: Resources
    delay_ms: int


@dataclass(frozen=True, slots=True)
class StoredMember:
    """A member as a group metadata record holds it. Times are milliseconds, None where the record version has no field."""

    member: str
    instance: str | None
    client: str
    host: str
    rebalance_timeout_ms: int | None
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A group metadata record (GroupMetadataValue versions 0 to 4). ``state_ms`` is when the group entered its state."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_ms: int | None
    members: tuple[StoredMember, ...]


def decode_subscription(data: bytes) -> Subscription:
    """Decode the metadata of a member of a group of protocol type "consumer". Raises `WireError`."""
    cursor = _Cursor(data)
    version = cursor.version()
    topics = tuple(sorted(set(cursor.array(cursor.string))))
    cursor.nullable_bytes()
    owned = cursor.partitions() if version >= 1 else None
    generation = cursor.int32() if version >= 2 else -1
    rack = cursor.nullable_string() if version >= 3 else None
    return Subscription(topics, owned, generation if generation >= 0 else None, rack)


def decode_assignment(data: bytes) -> Resources:
    """Decode the assignment of a member of a group of protocol type "consumer". No bytes at all mean nothing assigned,
    which is what a coordinator stores for a member that the leader left out. Raises `WireError`."""
    if not data:
        return ()
    cursor = _Cursor(data)
    cursor.version()
    return cursor.partitions()


def decode_connect_metadata(data: bytes) -> ConnectMetadata:
    """Decode the metadata of a worker of a group of protocol type "connect". Raises `WireError`."""
    cursor = _Cursor(data)
    version = cursor.version()
    url, config_offset = cursor.string(), cursor.int64()
    allocation = cursor.nullable_bytes() if version >= 1 and cursor.left else None
    return ConnectMetadata(url, config_offset, decode_connect_assignment(allocation).assigned if allocation else ())


def decode_connect_assignment(data: bytes) -> ConnectAssignment:
    """Decode the assignment of a worker of a group of protocol type "connect". Raises `WireError`."""
    cursor = _Cursor(data)
    version = cursor.version()
    error, leader = cursor.int16(), cursor.string()
    cursor.string()
    config_offset = cursor.int64()
    assigned = cursor.connect_units() if cursor.left or version == 0 else ()
    revoked = cursor.connect_units() if cursor.left and version >= 1 else ()
    delay_ms = cursor.int32() if cursor.left and version >= 1 else 0
    return ConnectAssignment(error, leader, config_offset, assigned, revoked, delay_ms)


def decode_group_metadata_key(data: bytes) -> str | None:
    """Decode the key of a record of ``__consumer_offsets``: the group id, or None if it keys another kind of record.
    Raises `WireError`."""
    cursor = _Cursor(data)
    return cursor.string() if cursor.version() == GROUP_METADATA_KEY else None


def decode_group_metadata_value(data: bytes | None) -> GroupMetadata | None:
    """Decode the value of a group metadata record, None for a tombstone. Raises `WireError`, also for a version above 4."""
    if data is None:
        return None
    cursor = _Cursor(data)
    version = cursor.version()
    if version > _NEWEST_GROUP_METADATA:
        raise WireError(f"group metadata of version {version}: 0 to {_NEWEST_GROUP_METADATA} are known")
    cursor.compact = version >= _NEWEST_GROUP_METADATA
    metadata = GroupMetadata(
        protocol_type=cursor.string(),
        generation=cursor.int32(),
        protocol=cursor.nullable_string(),
        leader=cursor.nullable_string(),
        state_ms=_present(cursor.int64()) if version >= 2 else None,
        members=tuple(cursor.array(lambda: _stored_member(cursor, version))),
    )
    cursor.tagged_fields()
    return metadata


def _stored_member(cursor: _Cursor, version: int) -> StoredMember:
    stored = StoredMember(
        member=cursor.string(),
        instance=cursor.nullable_string() if version >= 3 else None,
        client=cursor.string(),
        host=cursor.string(),
        rebalance_timeout_ms=_present(cursor.int32()) if version >= 1 else None,
        session_timeout_ms=cursor.int32(),
        subscription=cursor.nullable_bytes() or b"",
        assignment=cursor.nullable_bytes() or b"",
    )
    cursor.tagged_fields()
    return stored


def _present(number: int) -> int | None:
    return number if number >= 0 else None


class _Cursor:
    """Reads Kafka's primitive types one after the other; ``compact`` switches to the lengths of flexible versions."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._text_left = _TEXT_PER_BYTE * len(data)
        self.compact = False

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise WireError(f"{size} bytes expected, {self.left} left")
        self._at += size
        return self._data[self._at - size : self._at]

    def version(self) -> int:
        version = self.int16()
        if version < 0:
            raise WireError(f"version {version}")
        return version

    def int16(self) -> int:
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self.take(8), "big", signed=True)

    def varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise WireError("a varint of more than 5 bytes")

    def length(self, fixed: Callable[[], int]) -> int:
        """A length, -1 for null: as a varint one too high in flexible versions, else the ``fixed`` integer."""
        length = self.varint() - 1 if self.compact else fixed()
        if length < -1 or length > self.left:
            raise WireError(f"length {length} with {self.left} bytes left")
        return length

    def nullable_string(self) -> str | None:
        length = self.length(self.int16)
        if length < 0:
            return None
        try:
            return self.take(length).decode()
        except UnicodeDecodeError as e:
            raise WireError("a string that is not UTF-8") from e

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise WireError("null where a string is required")
        return text

    def nullable_bytes(self) -> bytes | None:
        length = self.length(self.int32)
        return None if length < 0 else self.take(length)

    def array(self, item: Callable[[], T]) -> list[T]:
        """The items of an array; a null array has none."""
        return [item() for _ in range(self.length(self.int32))]

    def int32_array(self) -> tuple[int, ...]:
        count = max(self.length(self.int32), 0)
        return struct.unpack(f">{count}i", self.take(4 * count))

    def tagged_fields(self) -> None:
        if self.compact:
            for _ in range(self.varint()):
                self.varint()
                self.take(self.varint())

    def numbered(self) -> tuple[str, tuple[int, ...]]:
        """A name and numbers that are each to be joined to it."""
        name, numbers = self.string(), self.int32_array()
        self._text_left -= len(name) * len(numbers)
        if self._text_left < 0:
            raise WireError("names too long for their number of partitions")
        return name, numbers

    def partitions(self) -> Resources:
        found: set[str] = set()
        for topic, partitions in self.array(self.numbered):
            if partitions and min(partitions) < 0:
                raise WireError(f"partition {min(partitions)} of topic {topic}")
            found.update(f"{topic}-{partition}" for partition in partitions)
        return tuple(sorted(found))

    def connect_units(self) -> Resources:
        found: set[str] = set()
        for connector, tasks in self.array(self.numbered):
            if tasks and min(tasks) < _CONNECTOR:
                raise WireError(f"task {min(tasks)} of connector {connector}")
            found.update(f"connector:{connector}" if task == _CONNECTOR else f"task:{connector}-{task}" for task in tasks)
        return tuple(sorted(found))
