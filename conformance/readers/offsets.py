"""Readers of ``__consumer_offsets``: what the console consumer prints, what kafka-dump-log prints, and the segment itself.

A coordinator stores a group when the leader has brought an assignment, when the group becomes empty, and when a static
member takes the place of its predecessor. All three readers turn such a record into a `Stored` or a `Tombstone`, and
`Groups` turns the sequence of them into events. Joins, heartbeats and generations that no leader completed are not
stored, and a compacted topic keeps only the last record of a group, so generations may be missing.
"""

from __future__ import annotations

import base64
import codecs
import gzip
import io
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, cast

import zstandard

from ...spec.events import Assignment, AssignmentMap, Event, GenerationStarted, MemberInfo, Replace, Resources, Source
from .whole import Tally, WholeFileReader
from .wire import (
    GROUP_METADATA_KEY,
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

CONSUMER = "consumer"
CONNECT = "connect"
_CONNECT_EAGER = "default"

_RECORD_LIMIT = 16 << 20
"""Most bytes of one record batch, decompressed batch or printed record; message.max.bytes is 1 MiB by default."""

_TEXT_KEPT = 2000


@dataclass(frozen=True, slots=True)
class Stored:
    """One group metadata record. ``assignment`` is None if it can't be told; ``ts`` is microseconds UTC.

    ``written``: ``ts`` is when the record was written. The formatter shows only when the group last changed its state,
    which does not tell when a static member was replaced.
    """

    group: str
    ts: int | None
    generation: int
    protocol: str | None
    leader: str | None
    members: Mapping[str, MemberInfo]
    assignment: AssignmentMap | None
    extra: Mapping[str, object]
    written: bool = False


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The group was deleted."""

    group: str


@dataclass(slots=True)
class Groups:
    """Turns the records of a partition, in their order, into events."""

    _last: dict[str, Stored] = field(default_factory=dict[str, Stored])
    _epochs: dict[str, int] = field(default_factory=dict[str, int])

    def feed(self, record: Stored | Tombstone, src: Source | None = None) -> Iterator[Event]:
        """The events of the next record. A deleted group and one whose generation falls start a new epoch."""
        last = self._last.pop(record.group, None)
        if last is not None and (isinstance(record, Tombstone) or record.generation < last.generation):
            self._epochs[record.group] = self._epochs.get(record.group, 0) + 1
            last = None
        if isinstance(record, Tombstone):
            return
        self._last[record.group] = record
        if record.generation == 0:
            return
        epoch = self._epochs.get(record.group, 0)
        if not record.members:
            yield GenerationStarted(
                group=record.group, ts=record.ts, epoch=epoch, generation=record.generation, members=(), src=src, extra=record.extra
            )
            return
        if last is not None and last.generation == record.generation and record.written:
            yield from _replacements(last, record, epoch, src)
        yield Assignment(
            group=record.group,
            ts=record.ts,
            epoch=epoch,
            generation=record.generation,
            leader=record.leader,
            protocol=record.protocol,
            assignment=record.assignment,
            members=record.members,
            src=src,
            extra=record.extra if record.written else {**record.extra, "estimated": True},
        )


def _replacements(before: Stored, after: Stored, epoch: int, src: Source | None) -> Iterator[Replace]:
    held = {info.instance: member for member, info in before.members.items() if info.instance is not None}
    for member, info in after.members.items():
        old_member = held.get(info.instance) if info.instance is not None else None
        if old_member is not None and old_member != member:
            yield Replace(
                group=after.group,
                ts=after.ts,
                epoch=epoch,
                generation=after.generation,
                member=member,
                old_member=old_member,
                instance=info.instance,
                src=src,
            )


def stored_record(key: bytes | None, value: bytes | None, ts: int | None = None) -> Stored | Tombstone | None:
    """Decode a record of ``__consumer_offsets`` with its time in microseconds: None if it does not describe a classic group.

    Raises `WireError`.
    """
    group = decode_group_metadata_key(key) if key else None
    if group is None:
        return None
    metadata = decode_group_metadata_value(value)
    if metadata is None:
        return Tombstone(group)
    shares = [_share(metadata, member.subscription, member.assignment) for member in metadata.members]
    return _stored(group, ts, metadata, shares)


# What the bytes of a member say


@dataclass(frozen=True, slots=True)
class _Share:
    resources: Resources | None = None
    subscribed: Resources | None = None
    owned: Resources | None = None
    of_member: Mapping[str, object] = field(default_factory=dict[str, object])
    of_group: Mapping[str, object] = field(default_factory=dict[str, object])
    revoked: Resources | None = None


def _share(metadata: GroupMetadata, subscription: bytes, assignment: bytes) -> _Share:
    try:
        if metadata.protocol_type == CONSUMER:
            return _consumer_share(decode_subscription(subscription), decode_assignment(assignment))
        if metadata.protocol_type == CONNECT:
            return _connect_share(subscription, assignment, eager=metadata.protocol == _CONNECT_EAGER)
    except WireError as e:
        return _Share(of_group={"undecoded": str(e)})
    return _Share()


def _consumer_share(subscription: Subscription, resources: Resources) -> _Share:
    of_member = {"owned_generation": subscription.generation, "rack": subscription.rack}
    return _Share(
        resources=resources,
        subscribed=subscription.topics,
        owned=subscription.owned,
        of_member={name: value for name, value in of_member.items() if value is not None},
    )


def _connect_share(subscription: bytes, assignment: bytes, *, eager: bool) -> _Share:
    """The incremental protocols of KIP-415 assign only what is to be started: the rest is what the worker reported."""
    worker, given = decode_connect_metadata(subscription), decode_connect_assignment(assignment)
    if eager:
        return _Share(resources=given.assigned)
    return _Share(
        resources=tuple(sorted((set(worker.owned) - set(given.revoked)) | set(given.assigned))),
        owned=worker.owned,
        of_member={"config_offset": worker.config_offset},
        of_group={"delay_ms": given.delay_ms},
        revoked=given.revoked,
    )


def _stored(group: str, ts: int | None, metadata: GroupMetadata, shares: Sequence[_Share]) -> Stored:
    assignment: dict[str, Resources] | None = {}
    revoked: dict[str, Resources] = {}
    members: dict[str, MemberInfo] = {}
    extra: dict[str, object] = {"protocol_type": metadata.protocol_type}
    for stored, share in zip(metadata.members, shares, strict=True):
        timeouts = {"client": stored.client, "rebalance_timeout_ms": stored.rebalance_timeout_ms or stored.session_timeout_ms}
        members[stored.member] = MemberInfo(
            instance=stored.instance,
            session_timeout_ms=stored.session_timeout_ms,
            subscribed=share.subscribed,
            owned=share.owned,
            extra={**timeouts, **share.of_member},
        )
        extra |= share.of_group
        if share.revoked is not None:
            revoked[stored.member] = share.revoked
        if share.resources is None:
            assignment = None
        elif assignment is not None:
            assignment[stored.member] = share.resources
    if revoked:
        extra["revoked"] = revoked
    state_us = metadata.state_ms * 1000 if metadata.state_ms is not None else None
    return Stored(
        group=group,
        ts=ts if ts is not None else state_us,
        written=ts is not None,
        generation=metadata.generation,
        protocol=metadata.protocol,
        leader=metadata.leader,
        members=members,
        assignment=assignment,
        extra=extra,
    )


# The same record printed as JSON: the bytes in base64, or decoded by kafka-dump-log

_Json = Mapping[str, object]
_BAD_JSON = (ValueError, RecursionError)


def _printed_record(key: _Json, value: object, ts: int | None = None) -> Stored | Tombstone | None:
    """Read ``{"type": 2, "data": {"group": ..}}`` ("version" before 4.0) and the value beside it. Raises `WireError`."""
    if str(key.get("type", key.get("version"))) != str(GROUP_METADATA_KEY):
        return None
    group = _text(_object(key.get("data"), "key"), "group")
    if value is None:
        return Tombstone(group)
    data = _object(_object(value, "value").get("data"), "value")
    printed = [_object(member, "member") for member in _list(data, "members")]
    metadata = GroupMetadata(
        protocol_type=_text(data, "protocolType"),
        generation=_number(data, "generation"),
        protocol=_text_or_none(data, "protocol"),
        leader=_text_or_none(data, "leader"),
        state_ms=_present(data, "currentStateTimestamp"),
        members=tuple(map(_printed_member, printed)),
    )
    return _stored(group, ts, metadata, [_printed_share(metadata, member) for member in printed])


def _printed_member(member: _Json) -> StoredMember:
    return StoredMember(
        member=_text(member, "memberId"),
        instance=_text_or_none(member, "groupInstanceId"),
        client=_text(member, "clientId"),
        host=_text(member, "clientHost"),
        rebalance_timeout_ms=_present(member, "rebalanceTimeout"),
        session_timeout_ms=_number(member, "sessionTimeout"),
        subscription=b"",
        assignment=b"",
    )


def _printed_share(metadata: GroupMetadata, member: _Json) -> _Share:
    subscription, assignment = member.get("subscription"), member.get("assignment")
    try:
        if isinstance(subscription, str) and isinstance(assignment, str):
            return _share(metadata, base64.b64decode(subscription, validate=True), base64.b64decode(assignment, validate=True))
        claimed, given = _object(subscription, "subscription"), _object(assignment, "assignment")
        topics = tuple(sorted({topic for topic in _list(claimed, "topics") if isinstance(topic, str)}))
        owned = _printed_partitions(claimed, "ownedPartitions") if "ownedPartitions" in claimed else None
        rack = _text_or_none(claimed, "rackId")
        decoded = Subscription(topics, owned, _present(claimed, "generationId"), rack)
        return _consumer_share(decoded, _printed_partitions(given, "assignedPartitions"))
    except ValueError as e:
        return _Share(of_group={"undecoded": str(e)})


def _printed_partitions(data: _Json, name: str) -> Resources:
    topics = [_object(entry, name) for entry in _list(data, name)]
    found = {(_text(entry, "topic"), partition) for entry in topics for partition in _list(entry, "partitions")}
    if not all(isinstance(partition, int) and partition >= 0 for _, partition in found):
        raise WireError(f"{name}: a partition that is no number")
    return tuple(sorted(f"{topic}-{partition}" for topic, partition in found))


def _object(value: object, what: str) -> _Json:
    if not isinstance(value, dict):
        raise WireError(f"{what}: an object expected")
    return cast("dict[str, object]", value)


def _list(data: _Json, name: str) -> list[object]:
    value = data.get(name)
    if not isinstance(value, list):
        raise WireError(f"{name}: a list expected")
    return cast("list[object]", value)


def _text(data: _Json, name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        raise WireError(f"{name}: a string expected")
    return value


def _text_or_none(data: _Json, name: str) -> str | None:
    return None if data.get(name) is None else _text(data, name)


def _number(data: _Json, name: str) -> int:
    value = data.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise WireError(f"{name}: a number expected")
    return value


def _present(data: _Json, name: str) -> int | None:
    number = -1 if data.get(name) is None else _number(data, name)
    return number if number >= 0 else None


# The console consumer's formatters

_DECODER = json.JSONDecoder()
_NEXT_RECORD = re.compile(r'\{\s*"key"|\n')
_CHUNK = 1 << 16

_COLUMNS = re.compile(r"(?:(?:CreateTime|LogAppendTime|NoTimestamp):?(?P<ts>\d*)\t)?(?:Partition:\d+\t)?(?:Offset:\d+\t)?")
_OFFSET_TOMBSTONE = re.compile(r"\[[^\[\]]*,\d+\]::NULL")
_GROUP_STATE = re.compile(r", generation=(?P<generation>\d+), protocolType=(?:Some\((?P<type>[^()]*)\)|None), currentState=\w+, members=")
_MEMBER_STATE = re.compile(
    r"MemberMetadata\(memberId=(?P<member>[^,]*), (?:groupInstanceId=(?P<instance>[^,]*), )?clientId=(?P<client>[^,]*), "
    r"clientHost=[^,]*, sessionTimeoutMs=(?P<session>\d+), rebalanceTimeoutMs=(?P<rebalance>\d+)"
)
_DYNAMIC = frozenset({None, "None", "null", "Some(null)"})


class _FormatterReader:
    """``kafka-console-consumer --topic __consumer_offsets --formatter ...GroupMetadataMessageFormatter``.

    From 3.9 one JSON object per record with nothing between them; up to 3.8 lines ``group::GroupMetadata(...)``, which
    tell the members but not what they were assigned.
    """

    name = "offsets-formatter"

    def read(self, stream: BinaryIO, file: str, tally: Tally) -> Iterator[Event]:
        groups = Groups()
        for number, (text, parsed) in enumerate(_printed_items(stream), 1):
            try:
                record = _text_record(text) if parsed is None else _json_record(parsed)
            except ValueError as e:
                tally.broken(number, str(e))
                continue
            if record is None:
                tally.skipped()
                continue
            tally.took()
            yield from groups.feed(record, Source(file, number, text[:_TEXT_KEPT]))


def _json_record(parsed: object) -> Stored | Tombstone | None:
    item = _object(parsed, "record")
    if not isinstance(item.get("key"), dict):
        return None
    return _printed_record(_object(item["key"], "key"), item.get("value"))


def _text_record(line: str) -> Stored | Tombstone | None:
    if line.startswith("{"):
        raise WireError("a JSON record that is cut off or broken")
    columns = _COLUMNS.match(line)
    rest = line[columns.end() :] if columns else line
    ts = int(columns["ts"]) * 1000 if columns and columns["ts"] else None
    if rest.endswith("::NULL"):
        return None if _OFFSET_TOMBSTONE.fullmatch(rest) else Tombstone(rest.removesuffix("::NULL"))
    group, found, described = rest.partition("::GroupMetadata(groupId=")
    if not found:
        return None
    state = _GROUP_STATE.match(described, len(group)) if described.startswith(group) else None
    if state is None:
        raise WireError("a group that is cut off or of unknown form")
    members = {
        found["member"]: MemberInfo(
            instance=None if found["instance"] in _DYNAMIC else found["instance"].removeprefix("Some(").removesuffix(")"),
            session_timeout_ms=int(found["session"]),
            extra={"client": found["client"], "rebalance_timeout_ms": int(found["rebalance"])},
        )
        for found in _MEMBER_STATE.finditer(described, state.end())
    }
    if len(members) != described.count(" -> ", state.end()) or not described.endswith("))"):
        raise WireError("members that are cut off or of unknown form")
    return Stored(
        group=group,
        ts=ts,
        generation=int(state["generation"]),
        protocol=None,
        leader=None,
        members=members,
        assignment=None,
        extra={"protocol_type": state["type"] or ""},
    )


def _printed_items(stream: BinaryIO) -> Iterator[tuple[str, object]]:
    """JSON objects, each with its text, and the lines between them, each with None. A broken object comes as a line."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    text, at, ended = "", 0, False
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at < len(text):
            end, parsed, whole = _item_end(text, at)
            if whole or ended or len(text) - at >= _RECORD_LIMIT:
                yield text[at:end].rstrip(), parsed
                at = end
                continue
        elif ended:
            return
        chunk = stream.read(max(_CHUNK, len(text) - at))
        text, at, ended = text[at:] + decode(chunk, not chunk), 0, not chunk


def _item_end(text: str, at: int) -> tuple[int, object, bool]:
    """The end of the item at ``at``, its parsed JSON, and whether more text could not change either."""
    whole = False
    if text[at] == "{":
        try:
            parsed, end = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as e:
            whole = e.pos < len(text) - len('"\\uD800\\uDC00') and not e.msg.startswith("Unterminated")
        except _BAD_JSON:
            whole = True
        else:
            return end, parsed, True
    following = _NEXT_RECORD.search(text, at + 1)
    if following is None:
        return len(text), None, False
    return following.start(), None, whole or text[at] != "{"


# kafka-dump-log

_DUMPED_TIME = re.compile(r"(?:^|\s)(?:CreateTime|LogAppendTime): (\d+)")
_OLD_KEY = "group_metadata::group="
_OLDEST_KEY = '{"metadata":'
_DELETED = "<DELETE>"
_OLD_SHARE = re.compile(r"(?P<member>[^\[\]{}]*)=\[(?P<partitions>[^\[\]]*)\](?::[0-9A-Fa-f]+)?(?:,|$)")


class _DumpReader:
    """``kafka-dump-log --print-data-log --offsets-decoder``: JSON from 3.8, ``group_metadata::group=`` from 2.4, and
    ``{"metadata":`` before. The last two tell of a member only its id and, under the consumer protocol, its assignment."""

    name = "offsets-dump"

    def read(self, stream: BinaryIO, file: str, tally: Tally) -> Iterator[Event]:
        groups = Groups()
        for number, line in enumerate(iter(lambda: stream.readline(_RECORD_LIMIT), b""), 1):
            text = line.decode("utf-8", "replace").rstrip()
            try:
                record = _dumped_record(text)
            except _BAD_JSON as e:
                tally.broken(number, str(e))
                continue
            if record is None:
                tally.skipped()
                continue
            tally.took()
            yield from groups.feed(record, Source(file, number, text[:_TEXT_KEPT]))


def _dumped_record(line: str) -> Stored | Tombstone | None:
    head, keyed, rest = line.partition(" key: ")
    if not keyed:
        return None
    time = _DUMPED_TIME.search(head)
    ts = int(time[1]) * 1000 if time else None
    if rest.startswith(_OLD_KEY):
        group, _, payload = rest.removeprefix(_OLD_KEY).partition(" payload: ")
        return _old_dumped_record(group, payload, ts)
    if not rest.startswith("{"):
        return None
    parsed, end = _DECODER.raw_decode(rest)
    key, payload = _object(parsed, "key"), rest[end:].removeprefix(" payload: ")
    if rest.startswith(_OLDEST_KEY):
        return _old_dumped_record(_text(key, "metadata"), payload, ts)
    return _printed_record(key, None if payload == _DELETED else _json_or_text(payload), ts)


def _json_or_text(payload: str) -> object:
    return _DECODER.raw_decode(payload)[0] if payload.startswith("{") else payload


def _old_dumped_record(group: str, payload: str, ts: int | None) -> Stored | Tombstone:
    if payload == _DELETED:
        return Tombstone(group)
    data = _object(json.loads(payload), "payload")
    protocol_type = _text(data, "protocolType")
    shares = _text(data, "assignment")
    if not (shares.startswith("{") and shares.endswith("}")):
        raise WireError("assignment: {member=[partitions],...} expected")
    assignment = _old_assignment(shares[1:-1]) if protocol_type == CONSUMER else None
    return Stored(
        group=group,
        ts=ts,
        generation=_number(data, "generationId"),
        protocol=_text_or_none(data, "protocol"),
        leader=None,
        members=dict.fromkeys(assignment or _old_members(shares[1:-1]), MemberInfo()),
        assignment=assignment,
        extra={"protocol_type": protocol_type},
    )


def _old_assignment(shares: str) -> dict[str, Resources]:
    assignment: dict[str, Resources] = {}
    at = 0
    while at < len(shares):
        share = _OLD_SHARE.match(shares, at)
        if share is None:
            raise WireError("assignment: member=[partitions] expected")
        assignment[share["member"]] = tuple(sorted(filter(None, share["partitions"].split(", "))))
        at = share.end()
    return assignment


def _old_members(shares: str) -> list[str]:
    """Member ids where each member's assignment is printed as hexadecimal digits."""
    return [share.rpartition("=")[0] for share in shares.split(",") if share]


# The segment

_BATCH = struct.Struct(">qiibIhiqqqhii")
_BATCH_START = struct.Struct(">qi")
_MAGIC = 2
_CODECS: Mapping[int, str] = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_CODEC_MASK, _APPEND_TIME, _CONTROL = 0x07, 0x08, 0x20
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16


class _SegmentReader:
    """A ``.log`` segment of a partition of ``__consumer_offsets``, record batches of message format 2 (Kafka 0.11 on).

    Copied from a running broker it ends in the middle of a batch, or in zeros where it was preallocated: that end counts
    as one irrelevant record. Behind a batch without a believable length nothing more is read.
    """

    name = "offsets-segment"

    def read(self, stream: BinaryIO, file: str, tally: Tally) -> Iterator[Event]:
        groups = Groups()
        while start := _read_up_to(stream, _BATCH_START.size):
            body = _batch_body(stream, start, tally)
            if body is None:
                return
            try:
                records = list(_records(start + body))
            except WireError as e:
                tally.broken(tally.lines + 1, str(e))
                continue
            for record in records:
                yield from self._record(record, file, tally, groups)

    def _record(self, record: _Record, file: str, tally: Tally, groups: Groups) -> Iterator[Event]:
        number = tally.lines + 1
        try:
            stored = stored_record(record.key, record.value, record.ts)
        except WireError as e:
            tally.broken(number, f"offset {record.offset}: {e}")
            return
        if stored is None:
            tally.skipped()
            return
        tally.took()
        yield from groups.feed(stored, Source(file, number, f"offset {record.offset}"))


@dataclass(frozen=True, slots=True)
class _Record:
    offset: int
    ts: int | None
    key: bytes | None
    value: bytes | None


def _batch_body(stream: BinaryIO, start: bytes, tally: Tally) -> bytes | None:
    """The batch behind its offset and length, None where the segment ends or can't be followed."""
    if len(start) < _BATCH_START.size or not any(start):
        tally.skipped()
        return None
    length = _BATCH_START.unpack(start)[1]
    if not _BATCH.size - _BATCH_START.size <= length <= _RECORD_LIMIT:
        tally.broken(tally.lines + 1, f"a record batch of {length} bytes; the rest of the segment is not read")
        return None
    body = _read_up_to(stream, length)
    if len(body) < length:
        tally.skipped()
        return None
    return body


def _read_up_to(stream: BinaryIO, size: int) -> bytes:
    """As many of ``size`` bytes as there are: a stream may give fewer at a time."""
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _records(batch: bytes) -> Iterator[_Record]:
    """The records of a batch; those of a control batch without key. Raises `WireError`."""
    base, _, _, magic, _, attributes, _, first_ms, last_ms, _, _, _, count = cast("tuple[int, ...]", _BATCH.unpack_from(batch))
    if magic != _MAGIC:
        raise WireError(f"message format {magic}: {_MAGIC} is known")
    data = batch[_BATCH.size :]
    if codec := attributes & _CODEC_MASK:
        data = _decompress(codec, data)
    at = 0
    for _ in range(count):
        size, at = _varint(data, at)
        end = at + size
        if size < 0 or end > len(data):
            raise WireError(f"a record of {size} bytes, {len(data) - at} left")
        delta_ms, at = _varint(data, at + 1)
        delta, at = _varint(data, at)
        key, at = _varbytes(data, at, end)
        value, at = _varbytes(data, at, end)
        time_ms = last_ms if attributes & _APPEND_TIME else first_ms + delta_ms
        yield _Record(base + delta, time_ms * 1000 if time_ms >= 0 else None, None if attributes & _CONTROL else key, value)
        at = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise WireError("a varint that does not end")


def _varbytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    if size < 0:
        return None, at
    if at + size > end:
        raise WireError(f"a key or value of {size} bytes in a record with {end - at} left")
    return data[at : at + size], at + size


def _decompress(codec: int, data: bytes) -> bytes:
    """The records of a compressed batch. Raises `WireError`, also if they exceed the size that is read."""
    name = _CODECS.get(codec)
    if name is None:
        raise WireError(f"compression codec {codec}")
    try:
        records = _DECOMPRESSORS[name](data)
    except ImportError as e:
        raise WireError(f"a batch compressed with {name}: pyarrow is needed to read it") from e
    except (OSError, EOFError, ValueError, zlib.error, zstandard.ZstdError) as e:
        raise WireError(f"a broken batch compressed with {name}: {e}") from e
    if len(records) > _RECORD_LIMIT:
        raise WireError(f"a batch compressed with {name} of more than {_RECORD_LIMIT} bytes")
    return records


def _gunzip(data: bytes) -> bytes:
    return gzip.GzipFile(fileobj=io.BytesIO(data)).read(_RECORD_LIMIT + 1)


def _unzstd(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().stream_reader(data).read(_RECORD_LIMIT + 1)


def _unlz4(data: bytes) -> bytes:
    import pyarrow as pa

    with pa.input_stream(pa.py_buffer(data), compression="lz4") as plain:  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return cast("bytes", plain.read(_RECORD_LIMIT + 1))  # pyright: ignore[reportUnknownMemberType]


def _unsnappy(data: bytes) -> bytes:
    return b"".join(map(_unsnap, _snappy_blocks(data)))


_DECOMPRESSORS: Mapping[str, Callable[[bytes], bytes]] = {"gzip": _gunzip, "snappy": _unsnappy, "lz4": _unlz4, "zstd": _unzstd}


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    """Java clients and brokers frame snappy blocks (xerial: a header, then blocks each with its length), others don't."""
    if not data.startswith(_XERIAL):
        yield data
        return
    at = _XERIAL_HEADER
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def _unsnap(block: bytes) -> bytes:
    import pyarrow as pa

    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            break
    if size > _RECORD_LIMIT:
        raise WireError(f"a snappy block of {size} bytes")
    return cast("bytes", pa.decompress(block, decompressed_size=size, codec="snappy", asbytes=True))  # pyright: ignore[reportUnknownMemberType]


FORMATTER: WholeFileReader = _FormatterReader()
DUMP: WholeFileReader = _DumpReader()
SEGMENT: WholeFileReader = _SegmentReader()
