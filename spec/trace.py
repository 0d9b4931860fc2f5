"""Trace version 1: one JSON object per event, to and from the records of `events`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import cast

from .events import KINDS, Assignment, Event, GenerationStarted, MemberInfo, Resources, Source, Sync, Synced

MAX_DEPTH = 32
"""How deep lists and objects may nest in a field that trace version 1 does not name."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
FIRST_TS = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
LAST_TS = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_INT64 = 1 << 63
_RFC_3339 = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})")


class MalformedEvent(ValueError):
    """Not an event of trace version 1. ``str()`` names the field, what was expected and what was found."""


def decode(obj: object, src: Source | None = None) -> Event:
    """The event in ``obj``, as `json.loads` gives it. ``src`` is used if the object names no source of its own.

    JSON null means absent; fields that the kind does not name are kept in ``extra``. Raises `MalformedEvent`.
    """
    if not isinstance(obj, dict):
        raise MalformedEvent(f"expected a JSON object, found {_found(obj)}")
    row = cast(dict[str, object], obj)
    record, readers = _kind(row)
    values: dict[str, object] = {} if src is None else {"src": src}
    extra: dict[str, object] | None = None
    name = ""
    try:
        for name, value in row.items():
            read = readers.get(name)
            if read is not None:
                if value is not None:
                    values[name] = read(value)
            elif name != "kind":
                _check_depth(value)
                extra = extra or {}
                extra[name] = value
    except _Wrong as wrong:
        raise MalformedEvent(f"{name}{wrong}") from None
    if not values.get("group"):
        raise MalformedEvent("group: expected a non-empty string, found nothing")
    if extra is not None:
        values["extra"] = extra
    return record(**values)  # pyright: ignore[reportArgumentType]


def encode(event: Event) -> dict[str, object]:
    """The JSON object of ``event``, the inverse of `decode`; fields that are None are left out."""
    named = _READERS[event.kind]
    row: dict[str, object] = {"kind": event.kind}
    for name in named:
        value = getattr(event, name)
        if value is not None:
            row[name] = _plain(value) if name != "ts" else format_ts(value)
    row.update((name, value) for name, value in event.extra.items() if name not in named and name != "kind")
    return row


def parse_ts(text: str) -> int:
    """Microseconds since 1970-01-01 UTC of an RFC 3339 time; finer fractions are cut. Raises `ValueError`."""
    if not _RFC_3339.fullmatch(text):
        raise ValueError("not a time by RFC 3339")
    since = datetime.fromisoformat(text.upper()) - _EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if not FIRST_TS <= micros <= LAST_TS:
        raise ValueError("outside the years 1 to 9999 UTC")
    return micros


def format_ts(micros: int) -> str:
    """RFC 3339 in UTC with six fraction digits."""
    return f"{(_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


class _Wrong(Exception):
    """A value of the wrong type; the text starts behind the field's name: a path into it, or a colon."""

    def __init__(self, expected: str, value: object) -> None:
        super().__init__(f": expected {expected}, found {_found(value)}")

    def inside(self, path: str) -> _Wrong:
        self.args = (f"{path}{self}",)
        return self


def _found(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f"{value[:40]!r}" + ("..." if len(value) > 40 else "")
        case int() | float():
            text = repr(value) if abs(value) < 1e25 else "a number beyond 64 bits"
            return text if text != "nan" else "NaN"
        case list():
            return "an array"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


def _kind(row: Mapping[str, object]) -> tuple[type[Event], Mapping[str, Callable[[object], object]]]:
    kind = row.get("kind")
    if not isinstance(kind, str) or not kind:
        found = "nothing" if kind is None else _found(kind)
        raise MalformedEvent(f"kind: expected a non-empty string, found {found}")
    record = KINDS.get(kind)
    if record is None:
        raise MalformedEvent(f"kind: expected one of {', '.join(KINDS)}, found {_found(kind)}")
    return record, _READERS[kind]


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise _Wrong(f"at most {MAX_DEPTH} levels of nesting", value)


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(cast(dict[str, object], value).values())
    return cast(list[object], value) if isinstance(value, list) else []


def _string(value: object) -> str:
    if type(value) is str:
        return value
    raise _Wrong("a string", value)


def _non_empty(value: object) -> str:
    if type(value) is str and value:
        return value
    raise _Wrong("a non-empty string", value)


def _integer(value: object) -> int:
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is int and -_INT64 <= value < _INT64:
        return value
    raise _Wrong("an integer of 64 bits", value)


def _natural(value: object) -> int:
    number = _integer(value)
    if number < 0:
        raise _Wrong("an integer from 0", value)
    return number


def _time(value: object) -> int:
    if type(value) is str:
        try:
            return parse_ts(value)
        except ValueError:
            pass
    raise _Wrong("a time by RFC 3339, such as 2024-05-01T10:00:00.123Z", value)


def _strings(value: object) -> Resources:
    if type(value) is list:
        row = cast(list[object], value)
        for item in row:
            if type(item) is not str:
                raise _Wrong("an array of strings", item).inside("[]")
        return tuple(cast(list[str], row))
    raise _Wrong("an array of strings", value)


def _object_of(read: Callable[[object], object], expected: str) -> Callable[[object], dict[str, object]]:
    def mapping(value: object) -> dict[str, object]:
        if type(value) is not dict:
            raise _Wrong(expected, value)
        key = ""
        try:
            row = cast(dict[str, object], value)
            result: dict[str, object] = {}
            for key, item in row.items():
                result[key] = read(item)
            return result
        except _Wrong as wrong:
            raise wrong.inside(f".{key[:40]}") from None

    return mapping


def _observer(value: object) -> str:
    if value in ("coordinator", "member", "harness", "any"):
        return _string(value)
    raise _Wrong("coordinator, member, harness or any", value)


def _source(value: object) -> Source:
    if type(value) is not dict:
        raise _Wrong("an object", value)
    row = cast(dict[str, object], value)
    file, line, text = row.get("file"), row.get("line"), row.get("text")
    if type(file) is not str:
        raise _Wrong("a string", file).inside(".file")
    try:
        number = 0 if line is None else _natural(line)
    except _Wrong as wrong:
        raise wrong.inside(".line") from None
    if text is not None and type(text) is not str:
        raise _Wrong("a string", text).inside(".text")
    return Source(file, number, text or "")


def _member(value: object) -> MemberInfo:
    if type(value) is not dict:
        raise _Wrong("an object", value)
    values: dict[str, object] = {}
    extra: dict[str, object] = {}
    for name, item in cast(dict[str, object], value).items():
        read = _MEMBER.get(name)
        try:
            if read is None:
                _check_depth(item)
                extra[name] = item
            elif item is not None:
                values[name] = read(item)
        except _Wrong as wrong:
            raise wrong.inside(f".{name[:40]}") from None
    return MemberInfo(**values, extra=extra)  # pyright: ignore[reportArgumentType]


_MEMBER: Mapping[str, Callable[[object], object]] = {
    "instance": _string,
    "session_timeout_ms": _integer,
    "subscribed": _strings,
    "owned": _strings,
}
_assignment = _object_of(_strings, "an object of arrays of strings")

_BY_NAME: Mapping[str, Callable[[object], object]] = {
    "group": _non_empty,
    "ts": _time,
    "cluster": _string,
    "epoch": _integer,
    "generation": _integer,
    "member": _string,
    "instance": _string,
    "client": _string,
    "resources": _strings,
    "src": _source,
    "seen_by": _observer,
    "session_timeout_ms": _integer,
    "rebalance_timeout_ms": _integer,
    "protocols": _strings,
    "subscribed": _strings,
    "owned": _strings,
    "owned_generation": _integer,
    "rack": _string,
    "leader": _string,
    "protocol": _string,
    "error": _string,
    "assignment": _assignment,
    "delay_ms": _integer,
    "reason": _string,
    "old_member": _string,
    "topics": _object_of(_integer, "an object of integers"),
}
_BY_KIND: Mapping[tuple[type[Event], str], Callable[[object], object]] = {
    (Sync, "revoked"): _assignment,
    (Synced, "revoked"): _strings,
    (GenerationStarted, "members"): _strings,
    (Assignment, "members"): _object_of(_member, "an object of members"),
}
"""Fields whose type depends on the kind."""


def _readers(record: type[Event]) -> dict[str, Callable[[object], object]]:
    names = (field.name for field in fields(record) if field.name not in ("extra", "times"))
    return {name: _BY_KIND.get((record, name)) or _BY_NAME[name] for name in names}


_READERS = {kind: _readers(record) for kind, record in KINDS.items()}


def _plain(value: object) -> object:
    match value:
        case tuple():
            return list(cast(Resources, value))
        case Source():
            return {"file": value.file, "line": value.line, "text": value.text}
        case MemberInfo():
            named = {name: getattr(value, name) for name in _MEMBER}
            return {name: _plain(item) for name, item in named.items() if item is not None} | dict(value.extra)
        case Mapping():
            return {key: _plain(item) for key, item in cast(Mapping[str, object], value).items()}
        case _:
            return value
