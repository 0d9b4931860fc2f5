"""The broker's request log (logger ``kafka.request.logger`` at DEBUG): answered requests, each with its response.

Since 2.8 one JSON object a line with the embedded bytes in base64 (KIP-673, kafka.network.RequestChannel, RequestConvertToJson).
Before, free text without the embedded bytes: what of it can surely be told apart is brought into the same form.

A line is written when the response was sent. The request is dated back by ``totalTimeMs`` to when it was received.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from ...spec.events import (
    NONE,
    Commit,
    Event,
    GenerationStarted,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Resources,
    Sync,
    Synced,
)
from .base import LogReader, MalformedLine, Message, Session, Taken
from .wire import (
    ConnectAssignment,
    WireError,
    decode_assignment,
    decode_connect_assignment,
    decode_connect_metadata,
    decode_subscription,
)

_APIS = frozenset({"JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT"})

_ERRORS: Mapping[int, str] = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: NONE,
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    10: "MESSAGE_TOO_LARGE",
    12: "OFFSET_METADATA_TOO_LARGE",
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR",
    17: "INVALID_TOPIC_EXCEPTION",
    18: "RECORD_LIST_TOO_LARGE",
    19: "NOT_ENOUGH_REPLICAS",
    20: "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    22: "ILLEGAL_GENERATION",
    23: "INCONSISTENT_GROUP_PROTOCOL",
    24: "INVALID_GROUP_ID",
    25: "UNKNOWN_MEMBER_ID",
    26: "INVALID_SESSION_TIMEOUT",
    27: "REBALANCE_IN_PROGRESS",
    28: "INVALID_COMMIT_OFFSET_SIZE",
    29: "TOPIC_AUTHORIZATION_FAILED",
    30: "GROUP_AUTHORIZATION_FAILED",
    31: "CLUSTER_AUTHORIZATION_FAILED",
    35: "UNSUPPORTED_VERSION",
    42: "INVALID_REQUEST",
    56: "KAFKA_STORAGE_ERROR",
    69: "GROUP_ID_NOT_FOUND",
    79: "MEMBER_ID_REQUIRED",
    81: "GROUP_MAX_SIZE_REACHED",
    82: "FENCED_INSTANCE_ID",
    88: "UNSTABLE_OFFSET_COMMIT",
    100: "UNKNOWN_TOPIC_ID",
    113: "STALE_MEMBER_EPOCH",
}
"""Error codes of org.apache.kafka.common.protocol.Errors that these requests can be answered with."""

_ERROR_OF_ANOTHER_COORDINATOR = frozenset({"COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"})
_INCREMENTAL = frozenset({"compatible", "sessioned"})
_MEMBERS_KEPT = 100_000
_YEAR_MS = 366 * 24 * 3600 * 1000

_START = "Completed request:"
_JSON_API = re.compile(r'"requestApiKeyName" ?: ?"(\w{1,60})"')
_LOCAL_ADDRESS = re.compile(r"(.{1,200}?:[0-9]{1,5})-")

_GROUP = r"\{group_id=(?>(?P<group>.{0,1000}?)"
_INSTANCE = r"(?:,group_instance_id=(?P<instance>[\w.-]{0,249}))?"
_TEXT_HEADER = re.compile(
    r"RequestHeader\(apiKey=(?P<api>\w{1,60}), apiVersion=[0-9]{1,5}, clientId=(?P<client>.{0,1000}?), correlationId=[0-9]{1,10}\)"
)
_TEXT_TAIL = re.compile(r" from connection (?P<connection>\S{1,300});totalTime:(?P<total>[0-9.E-]{1,30}),")
_TEXT_REQUESTS: Mapping[str, re.Pattern[str]] = {
    "JOIN_GROUP": re.compile(
        _GROUP + r",session_timeout_ms=)(?P<session>[0-9]{1,10})(?:,rebalance_timeout_ms=(?P<rebalance>[0-9]{1,10}))?"
        r",member_id=(?>(?P<member>.{0,1000}?)" + _INSTANCE + r",protocol_type=)(?P<type>[\w.-]{0,249}),protocols=\["
    ),
    "SYNC_GROUP": re.compile(
        _GROUP
        + r",generation_id=)(?P<generation>-?[0-9]{1,10}),member_id=(?>(?P<member>.{0,1000}?)"
        + _INSTANCE
        + r"(?:,protocol_type=\w*,protocol_name=[\w.-]*)?,assignments=\[)"
    ),
    "HEARTBEAT": re.compile(
        _GROUP + r",generation_id=)(?P<generation>-?[0-9]{1,10}),member_id=(?>(?P<member>.{0,1000}?)" + _INSTANCE + r"\}$)"
    ),
    "LEAVE_GROUP": re.compile(_GROUP + r",(?:member_id=(?P<member>.{0,1000})\}$|members=\[))"),
    "OFFSET_COMMIT": re.compile(
        _GROUP
        + r",generation_id=)(?P<generation>-?[0-9]{1,10}),member_id=(?>(?P<member>.{0,1000}?)"
        + _INSTANCE
        + r"(?:,retention_time_ms=-?[0-9]{1,20})?,topics=\[)"
    ),
}
_TEXT_ERROR = re.compile(r"\{(?:throttle_time_ms=[0-9]{1,10},)?error_code=(?P<error>-?[0-9]{1,5})\b")
_TEXT_JOINED = re.compile(
    r",generation_id=(?P<generation>-?[0-9]{1,10})(?:,protocol_type=[\w.-]*)?,protocol_name=(?P<protocol>[^,]{0,249})"
    r",leader=(?>(?P<leader>.{0,1000}?),member_id=)(?>(?P<given>.{0,1000}?),members=\[)(?P<members>.*)\]\}$"
)
_TEXT_JOINED_MEMBER = re.compile(r"\{member_id=(?>(?P<member>.{0,1000}?)" + _INSTANCE + r",metadata=)java\.nio\.\w+\[[^\]]{0,100}\]\}")
_TEXT_LEFT_MEMBER = re.compile(r"\{member_id=(?>(?P<member>.{0,1000}?)" + _INSTANCE + r",error_code=)(?P<error>-?[0-9]{1,5})\}")
_TEXT_TOPIC = re.compile(r"\{name=(?P<name>[\w.-]{1,249}),partitions=\[(?P<partitions>[^\]]*)\]\}")
_TEXT_PARTITION = re.compile(r"\{partition_index=(?P<partition>[0-9]{1,10}),error_code=(?P<error>-?[0-9]{1,5})\}")

Row = Mapping[str, object]

RECEIVED: Mapping[str, object] = {"estimated": True}
"""Marks events whose time is when the broker received the request, reckoned back from when it was logged."""


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One request and its response, with the field names of the JSON form. Times are microseconds UTC."""

    api: str
    group: str
    client: str | None
    request: Row
    response: Row
    address: str | None
    received: int | None
    answered: int | None

    @property
    def error(self) -> str:
        return _error(self.response)


@dataclass(slots=True)
class _Group:
    """What the file told of one group. ``fresh``: this epoch's coordinator has not granted anything yet.

    ``present`` are the members of its last completed join phase that have not left, None if they were not listed.
    ``owned`` maps each member to the generation it last joined and what it reported to own then. ``seen`` is the time of
    its last line, ``session_ms`` the longest session timeout.
    """

    epoch: int = 0
    generation: int | None = None
    fresh: bool = True
    address: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    present: set[str] | None = None
    seen: int | None = None
    session_ms: int = 0
    owned: dict[str, tuple[int, Resources]] = field(default_factory=dict[str, tuple[int, Resources]])

    def renew(self) -> None:
        self.epoch += 1
        self.generation = self.present = None
        self.fresh = True
        self.owned.clear()

    def may_be_empty(self, now: int | None) -> bool:
        """Everyone left, or was silent long enough to have expired, which this log doesn't show."""
        return self.present == set() or now is None or self.seen is None or now - self.seen > self.session_ms * 1000

    def reported(self, member: str, generation: int, owned: Resources) -> None:
        if member not in self.owned and len(self.owned) >= _MEMBERS_KEPT:
            del self.owned[next(iter(self.owned))]
        self.owned[member] = generation, owned


class _RequestLogSession:
    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}

    def feed(self, message: Message) -> Taken | None:
        at = message.text.find(_START)
        if at < 0:
            return None
        body = message.text[at + len(_START) :]
        if body.startswith("RequestHeader("):
            header = _TEXT_HEADER.match(body)
            if header is None or header["api"] not in _APIS:
                return None
            exchange = _from_text(header, body, message.ts)
        else:
            api = _JSON_API.search(body)
            if api is None or api[1] not in _APIS or not body.startswith("{"):
                return None
            exchange = _from_json(api[1], body, message.ts)
        if exchange is None:
            return Taken()
        group = self._groups.setdefault(exchange.group, _Group())
        events = _events(exchange, group)
        group.seen = exchange.answered
        group.session_ms = max(group.session_ms, _number(exchange.request, "sessionTimeoutMs") or 0)
        return Taken([replace(event, epoch=group.epoch, client=exchange.client, src=message.src) for event in events])

    def close(self) -> Sequence[Event]:
        return ()


def _events(exchange: _Exchange, group: _Group) -> list[Event]:
    if exchange.error in _ERROR_OF_ANOTHER_COORDINATOR and not group.fresh and exchange.address == group.address:
        group.renew()
    match exchange.api:
        case "JOIN_GROUP":
            return list(_join_group(exchange, group))
        case "SYNC_GROUP":
            return list(_sync_group(exchange, group))
        case "HEARTBEAT":
            return [_heartbeat(exchange)]
        case "LEAVE_GROUP":
            return list(_leave_group(exchange, group))
        case _:
            return list(_offset_commit(exchange))


def _join_group(exchange: _Exchange, group: _Group) -> Iterator[Event]:
    request, response = exchange.request, exchange.response
    instance = _text(request, "groupInstanceId")
    asked, given = _text(request, "memberId") or "", _text(response, "memberId") or ""
    offered = _rows(request, "protocols")
    join = Join(
        group=exchange.group,
        ts=exchange.received,
        member=asked,
        instance=instance,
        session_timeout_ms=_number(request, "sessionTimeoutMs"),
        rebalance_timeout_ms=_number(request, "rebalanceTimeoutMs"),
        protocols=tuple(_text(row, "name") or "" for row in offered) if "protocols" in request else None,
        extra={**RECEIVED, **_given({"reason": _text(request, "reason")})},
    )
    kind = _text(request, "protocolType")
    if offered:
        join = _with_metadata(join, kind, offered[0])
    yield join

    granted = exchange.error == NONE
    generation = _present(_number(response, "generationId"))
    members = _rows(response, "members")
    if granted and generation is not None:
        _granted(exchange, group, generation)
        group.protocol_type = kind
        group.protocol = _text(response, "protocolName") or group.protocol
        if given and join.owned is not None:
            group.reported(given, generation, join.owned)
    skip = response.get("skipAssignment") is True
    yield Joined(
        group=exchange.group,
        ts=exchange.answered,
        generation=generation if granted else None,
        member=given or asked,
        instance=instance,
        leader=(_text(response, "leader") or None) if granted else None,
        protocol=(_text(response, "protocolName") or None) if granted else None,
        error=exchange.error,
        extra={"skip_assignment": True} if skip else {},
    )
    if granted and generation is not None and members and not skip:
        yield _generation_started(exchange, group, generation, members)


def _granted(exchange: _Exchange, group: _Group, generation: int) -> None:
    """Note a granted join of ``generation``: in a new epoch if the group had got further before and was empty since."""
    if group.generation is not None and generation < group.generation and group.may_be_empty(exchange.received):
        group.renew()
    if group.generation is None or generation > group.generation:
        group.present = None
    group.generation, group.fresh, group.address = generation, False, exchange.address


def _generation_started(exchange: _Exchange, group: _Group, generation: int, members: Sequence[Row]) -> Event:
    ids = [_text(row, "memberId") or "" for row in members]
    instances = {member: _text(row, "groupInstanceId") for member, row in zip(ids, members, strict=True)}
    group.present = set(ids)
    for member, row in zip(ids, members, strict=True):
        stored = _with_metadata(Join(group=exchange.group), group.protocol_type, {"name": group.protocol, **row})
        if stored.owned is not None:
            group.reported(member, generation, stored.owned)
    return GenerationStarted(
        group=exchange.group,
        ts=exchange.answered,
        generation=generation,
        members=tuple(ids),
        leader=_text(exchange.response, "leader"),
        protocol=group.protocol,
        extra={"instances": instances},
    )


def _with_metadata(join: Join, protocol_type: str | None, protocol: Row) -> Join:
    """The join with what the member's metadata for this ``protocol`` says, unchanged if it can't be decoded."""
    data = _bytes(protocol, "metadata")
    if not data:
        return join
    try:
        if protocol_type == "consumer":
            says = decode_subscription(data)
            return replace(join, subscribed=says.topics, owned=says.owned, owned_generation=says.generation, rack=says.rack)
        if protocol_type == "connect" and protocol.get("name") in _INCREMENTAL:
            return replace(join, owned=decode_connect_metadata(data).owned)
    except WireError:
        pass
    return join


def _sync_group(exchange: _Exchange, group: _Group) -> Iterator[Event]:
    request = exchange.request
    member = _text(request, "memberId") or ""
    instance = _text(request, "groupInstanceId")
    generation = _number(request, "generationId")
    group.protocol_type = _text(request, "protocolType") or group.protocol_type
    group.protocol = _text(request, "protocolName") or group.protocol
    assigned = {_text(row, "memberId") or "": row for row in _rows(request, "assignments")}
    shares = {assignee: _share(group, row, assignee, generation) for assignee, row in assigned.items()}
    whole = {m: share.resources for m, share in shares.items() if share.resources is not None}
    delays = [share.wire.delay_ms for share in shares.values() if share.wire is not None]
    yield Sync(
        group=exchange.group,
        ts=exchange.received,
        generation=generation,
        member=member,
        instance=instance,
        assignment=whole if whole and len(whole) == len(shares) else None,
        revoked={m: share.wire.revoked for m, share in shares.items() if share.wire is not None} or None,
        delay_ms=max(delays) if delays else None,
    )
    share = _share(group, exchange.response, member, generation) if exchange.error == NONE else _Share()
    yield Synced(
        group=exchange.group,
        ts=exchange.answered,
        generation=generation,
        member=member,
        instance=instance,
        resources=share.resources,
        revoked=None if share.wire is None else share.wire.revoked,
        delay_ms=None if share.wire is None else share.wire.delay_ms,
        error=exchange.error,
    )


@dataclass(frozen=True, slots=True)
class _Share:
    """What a member is to own, None if unknown; ``wire`` is Connect's own form of it."""

    resources: Resources | None = None
    wire: ConnectAssignment | None = None


def _share(group: _Group, row: Row, member: str, generation: int | None) -> _Share:
    data = _bytes(row, "assignment")
    if data is None:
        return _Share()
    try:
        if group.protocol_type == "consumer":
            return _Share(decode_assignment(data))
        if group.protocol_type != "connect" or group.protocol is None:
            return _Share()
        wire = decode_connect_assignment(data)
    except WireError:
        return _Share()
    if group.protocol not in _INCREMENTAL:
        return _Share(wire.assigned)
    at, owned = group.owned.get(member, (None, ()))
    if at is None or at != generation:
        return _Share(None, wire)
    return _Share(tuple(sorted((set(owned) - set(wire.revoked)) | set(wire.assigned))), wire)


def _heartbeat(exchange: _Exchange) -> Event:
    request = exchange.request
    return Heartbeat(
        group=exchange.group,
        ts=exchange.received,
        generation=_number(request, "generationId"),
        member=_text(request, "memberId") or "",
        instance=_text(request, "groupInstanceId"),
        error=exchange.error,
        extra=RECEIVED,
    )


def _leave_group(exchange: _Exchange, group: _Group) -> Iterator[Event]:
    request, answers = exchange.request, _rows(exchange.response, "members")
    leavers = _rows(request, "members") or ([request] if "memberId" in request else [])
    for index, leaver in enumerate(leavers):
        member, instance = _text(leaver, "memberId") or "", _text(leaver, "groupInstanceId")
        error = exchange.error
        if error == NONE and answers:
            error = _error(answers[index]) if index < len(answers) else "UNKNOWN_SERVER_ERROR"
        if error == NONE and group.present is not None:
            group.present.discard(member)
        yield Leave(
            group=exchange.group, ts=exchange.received, member=member, instance=instance, reason=_text(leaver, "reason"), error=error
        )


def _offset_commit(exchange: _Exchange) -> Iterator[Event]:
    request = exchange.request
    generation = _number(request, "generationIdOrMemberEpoch")
    by_error: dict[str, set[str]] = {}
    for topic in _rows(exchange.response, "topics"):
        name = _text(topic, "name")
        for partition in _rows(topic, "partitions"):
            resources = by_error.setdefault(_error(partition), set())
            if name:
                resources.add(f"{name}-{_number(partition, 'partitionIndex')}")
    for error in sorted(by_error, key=lambda error: (error != NONE, error)):
        yield Commit(
            group=exchange.group,
            ts=exchange.received,
            generation=_number(request, "generationId") if generation is None else generation,
            member=_text(request, "memberId"),
            instance=_text(request, "groupInstanceId"),
            resources=tuple(sorted(by_error[error])) or None,
            error=error,
            extra=RECEIVED,
        )


# The JSON form.


def _from_json(api: str, body: str, ts: int | None) -> _Exchange:
    try:
        document, _ = json.JSONDecoder().raw_decode(body)
    except (ValueError, RecursionError) as broken:
        raise MalformedLine(f"expected a whole JSON object of {api}") from broken
    header, request, response = (_row(document, key, api) for key in ("requestHeader", "request", "response"))
    group = _text(request, "groupId")
    if group is None:
        raise MalformedLine(f"expected a groupId in the request of {api}")
    total = cast(Row, document).get("totalTimeMs")
    address = _LOCAL_ADDRESS.match(_text(cast(Row, document), "connection") or "")
    return _Exchange(
        api=api,
        group=group,
        client=_text(header, "clientId"),
        request=request,
        response=response,
        address=None if address is None else address[1],
        received=_before(ts, total if isinstance(total, int | float) else None),
        answered=ts,
    )


def _row(document: object, key: str, api: str) -> Row:
    row = cast(Row, document).get(key) if isinstance(document, dict) else None
    if not isinstance(row, dict):
        raise MalformedLine(f"expected an object {key} in the log of {api}")
    return cast(Row, row)


def _before(ts: int | None, total_ms: float | None) -> int | None:
    """When the request was received; unknown without its duration."""
    if ts is None or total_ms is None or not 0 <= total_ms < _YEAR_MS:
        return None
    return ts - round(total_ms * 1000)


def _text(row: Row, key: str) -> str | None:
    value = row.get(key)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _number(row: Row, key: str) -> int | None:
    value = row.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31 else None


def _present(number: int | None) -> int | None:
    return number if number is not None and number >= 0 else None


def _rows(row: Row, key: str) -> list[Row]:
    value = row.get(key)
    return [cast(Row, item) for item in cast(list[object], value) if isinstance(item, dict)] if isinstance(value, list) else []


def _bytes(row: Row, key: str) -> bytes | None:
    text = _text(row, key)
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _error(row: Row) -> str:
    code = _number(row, "errorCode") or 0
    return _ERRORS.get(code, f"ERROR_{code}")


def _given(fields: Mapping[str, str | None]) -> Mapping[str, object]:
    return {key: value for key, value in fields.items() if value}


# The text form before 2.8.


def _from_text(header: re.Match[str], body: str, ts: int | None) -> _Exchange | None:
    """The exchange that a line in the text form tells of, None if its parts can't surely be told apart."""
    api = header["api"]
    asked, found, answered = body[header.end() :].partition("},response:{")
    asks = _TEXT_REQUESTS[api].search(asked + "}")
    tail = _TEXT_TAIL.search(answered)
    if not found or asks is None or tail is None:
        return None
    answer = "{" + answered[: tail.start()]
    response = _text_response(api, answer)
    if response is None:
        return None
    fields = asks.groupdict()
    request: dict[str, object] = {"memberId": fields.get("member")}
    numbers = {"generationId": "generation", "sessionTimeoutMs": "session", "rebalanceTimeoutMs": "rebalance"}
    request |= {key: int(fields[name]) for key, name in numbers.items() if fields.get(name) is not None}
    request |= {"groupInstanceId": _instance(fields.get("instance")), "protocolType": fields.get("type")}
    if api == "LEAVE_GROUP" and fields.get("member") is None:
        del request["memberId"]
        request["members"] = response.get("members")
    address = _LOCAL_ADDRESS.match(tail["connection"])
    return _Exchange(
        api=api,
        group=asks["group"],
        client=header["client"],
        request=request,
        response=response,
        address=None if address is None else address[1],
        received=_before(ts, _float(tail["total"])),
        answered=ts,
    )


def _text_response(api: str, answer: str) -> Row | None:
    if api == "OFFSET_COMMIT":
        return {"topics": [_text_topic(topic) for topic in _TEXT_TOPIC.finditer(answer)]}
    error = _TEXT_ERROR.match(answer)
    if error is None:
        return None
    response: dict[str, object] = {"errorCode": int(error["error"])}
    if api == "LEAVE_GROUP":
        response["members"] = [_text_member(left) for left in _TEXT_LEFT_MEMBER.finditer(answer)]
    if api != "JOIN_GROUP":
        return response
    joined = _TEXT_JOINED.match(answer, error.end())
    if joined is None:
        return None
    members = list(_TEXT_JOINED_MEMBER.finditer(joined["members"]))
    all_told = ",".join(member[0] for member in members) == joined["members"]
    return response | {
        "generationId": int(joined["generation"]),
        "protocolName": joined["protocol"],
        "leader": joined["leader"],
        "memberId": joined["given"],
        "members": [_text_member(member) for member in members] if all_told else [],
    }


def _text_topic(topic: re.Match[str]) -> Row:
    found = _TEXT_PARTITION.finditer(topic["partitions"])
    partitions = [{"partitionIndex": int(partition["partition"]), "errorCode": int(partition["error"])} for partition in found]
    return {"name": topic["name"], "partitions": partitions}


def _text_member(member: re.Match[str]) -> Row:
    fields = member.groupdict()
    known: Row = {"memberId": fields["member"], "groupInstanceId": _instance(fields["instance"])}
    return known if fields.get("error") is None else {**known, "errorCode": int(fields["error"])}


def _instance(text: str | None) -> str | None:
    return None if text in (None, "", "null") else text


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _RequestLogReader:
    name: str = "request-log"
    anchors: tuple[str, ...] = ("JOIN_GROUP", "SYNC_GROUP", "LEAVE_GROUP", "HEARTBEAT", "OFFSET_COMMIT")

    def open(self, file: str) -> Session:
        return _RequestLogSession()


READER: LogReader = _RequestLogReader()
