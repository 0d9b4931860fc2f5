"""Takes off a line what the application did not write (colours, containers, syslog, JSON) and finds its time.

Where a line bears more than one time, one with a zone beats one without, as its instant is certain; among equals the
one nearest to the message wins. A local time without zone is taken as UTC: logical time does not depend on it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import cast

MAX_WRAPPINGS = 6
"""How many wrappings of one line are taken off, one inside the other."""
MAX_JSON = 1 << 20
"""Longer lines are not tried as JSON."""
HEAD = 160
"""A time is looked for in this many first characters only: further on it belongs to the message."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MONTHS: tuple[str, ...] = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\^_])")
_CONTROL = re.compile(r"[\x00\x1b]")

_ZONED = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"
_SYSLOG_TIME = rf"(?:{'|'.join(_MONTHS)}) [ \d]\d \d\d:\d\d:\d\d"
_WRAPPINGS = tuple(
    re.compile(pattern, re.ASCII)
    for pattern in (
        rf"(?P<time>{_ZONED}) (?:stdout|stderr) [FP] ",  # CRI
        rf"(?P<time>{_ZONED})\s+(?=\[?\d{{2,4}}[-/]\d\d[-/]\d\d[T ]|\{{)",  # docker logs --timestamps
        rf"(?:<\d{{1,3}}>)?(?P<time>{_SYSLOG_TIME}) (?P<stream>[\w.:-]+ [^\s:\[]{{1,64}}(?:\[\d+\])?): ",  # RFC 3164, journalctl
        rf"<\d{{1,3}}>1 (?P<time>{_ZONED}) (?P<stream>\S+ \S+ \S+) \S+ (?:-|\[[^\]]*\])(?: \ufeff?|$)",  # RFC 5424
        r"(?!(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b)(?P<stream>[A-Za-z][\w.-]{0,127}) *\| ",  # docker compose
        r"\[(?P<stream>pod/[^\]\s]+)\] ",  # kubectl --prefix
        r"(?P<stream>[a-z0-9][a-z0-9.-]{0,252}-(?:\d{1,4}|[a-z0-9]{5}) [a-z0-9][a-z0-9-]{0,62}) (?=\[|\{|\d{4}-\d\d-)",  # stern
        r"\s*\[(?P<stream>\d{1,10})\]:? +",
        r"[ \t]*(?:#+|//+|>+)[ \t]",
    )
)
_TIME = re.compile(
    r"(?<![\d.:-])"
    r"(?:(?P<year>\d{4})(?P<sep>[-/])(?P<month>\d\d)(?P=sep)(?P<day>\d\d)|(?P<yy>\d\d)-(?P<mm>\d\d)-(?P<dd>\d\d))[T ]"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?(?!\d)"
    r" ?(?P<zone>Z\b|UTC\b|[+-]\d\d:?\d\d\b)?",
    re.ASCII,
)
_RDKAFKA_TIME = re.compile(r"%\d\|(\d{9,10})\.(\d{3})\|", re.ASCII)
_SYSLOG = re.compile(r"(\w{3}) ([ \d]\d) (\d\d):(\d\d):(\d\d)", re.ASCII)

_MESSAGE_KEYS = ("message", "msg", "log", "@message", "MESSAGE", "textPayload", "line", "body", "jsonPayload")
_TIME_KEYS = ("@timestamp", "timestamp", "time", "ts", "timeMillis", "asctime", "datetime", "date")
_STREAM_KEYS = ("pod", "pod_name", "container_name", "hostname", "host", "service")


@dataclass(frozen=True, slots=True)
class Time:
    """``micros`` since 1970-01-01 UTC; ``zoned`` if the line told the zone."""

    micros: int
    zoned: bool


@dataclass(frozen=True, slots=True)
class Bare:
    """A line without its wrappings; ``text`` holds line ends only where JSON wrapped several lines in one."""

    text: str
    ts: int | None
    stream: str


def strip(line: str, modified: datetime) -> Bare:
    """Take the wrappings off ``line``. ``modified`` (when the file was) completes times that bear no year."""
    text = _CONTROL.sub("", _ANSI.sub("", line)) if _CONTROL.search(line) else line
    text = text.rstrip("\r\n")
    best: Time | None = None
    streams: list[str] = []
    for _ in range(MAX_WRAPPINGS):
        inner = _unwrap(text, modified) or _unwrap_json(text)
        if inner is None:
            break
        text, time, stream = inner
        best = _better(best, time)
        if stream:
            streams.append(stream)
    best = _better(best, _find_time(text[:HEAD]))
    return Bare(text, best.micros if best else None, "/".join(streams))


def _better(outer: Time | None, inner: Time | None) -> Time | None:
    if inner is None or (outer is not None and outer.zoned and not inner.zoned):
        return outer
    return inner


_Unwrapped = tuple[str, Time | None, str]


def _unwrap(text: str, modified: datetime) -> _Unwrapped | None:
    for wrapping in _WRAPPINGS:
        if match := wrapping.match(text):
            found = match.groupdict()
            time = found.get("time")
            return text[match.end() :], _outer_time(time, modified) if time else None, found.get("stream") or ""
    return None


def _outer_time(text: str, modified: datetime) -> Time | None:
    return _syslog_time(text, modified) if text[0].isalpha() else _find_time(text)


def _find_time(head: str) -> Time | None:
    if match := _RDKAFKA_TIME.match(head):
        return Time(int(match[1]) * 1_000_000 + int(match[2]) * 1000, zoned=True)
    match = _TIME.search(head)
    if match is None:
        return None
    if match["year"]:
        year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    else:
        year, month, day = 2000 + int(match["yy"]), int(match["mm"]), int(match["dd"])
    micros = _micros(year, month, day, int(match["hour"]), int(match["minute"]), int(match["second"]), _zone(match["zone"]))
    if micros is None:
        return None
    fraction = int((match["fraction"] or "0").ljust(6, "0")[:6])
    return Time(micros + fraction, zoned=match["zone"] is not None)


def _zone(zone: str | None) -> timedelta:
    if zone is None or zone in ("Z", "UTC"):
        return timedelta(0)
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return -offset if zone[0] == "-" else offset


def _micros(year: int, month: int, day: int, hour: int, minute: int, second: int, zone: timedelta) -> int | None:
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone(zone))
    except ValueError:
        return None
    return (moment - _EPOCH) // _MICROSECOND


def _syslog_time(text: str, modified: datetime) -> Time | None:
    match = _SYSLOG.match(text)
    if match is None:
        return None
    month, day = _MONTHS.index(match[1]) + 1, int(match[2])
    hour, minute, second = int(match[3]), int(match[4]), int(match[5])
    latest = (modified - _EPOCH) // _MICROSECOND + 86_400_000_000
    for year in (modified.year, modified.year - 1):
        micros = _micros(year, month, day, hour, minute, second, timedelta(0))
        if micros is not None and micros <= latest:
            return Time(micros, zoned=False)
    return None


def _unwrap_json(text: str) -> _Unwrapped | None:
    if len(text) > MAX_JSON or not text.lstrip(" \t").startswith("{"):
        return None
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    row = _object(parsed)
    if row is None:
        return None
    message = logged_message(row)
    return None if message is None else (message.rstrip("\r\n"), _json_time(row), _json_stream(row))


def _object(value: object) -> Mapping[str, object] | None:
    return cast(dict[str, object], value) if isinstance(value, dict) else None


def logged_message(row: Mapping[str, object]) -> str | None:
    """The message in a JSON log record, whatever layout wrote it."""
    for key in _MESSAGE_KEYS:
        value = row.get(key)
        if isinstance(value, str):
            return value
        nested = _object(value) or {}
        for inner in _MESSAGE_KEYS:
            found = nested.get(inner)
            if isinstance(found, str):
                return found
    return None


def _json_time(row: Mapping[str, object]) -> Time | None:
    instant = _object(row.get("instant")) or {}
    seconds, nanos = instant.get("epochSecond"), instant.get("nanoOfSecond")
    if isinstance(seconds, int) and isinstance(nanos, int):
        return _unix_time(seconds * 1_000_000 + nanos // 1000)
    for key in _TIME_KEYS:
        value = row.get(key)
        if isinstance(value, str) and (time := _find_time(value[:HEAD])):
            return time
        if isinstance(value, int | float) and not isinstance(value, bool) and (time := _number_time(value)):
            return time
    return None


def _number_time(number: float) -> Time | None:
    """Seconds, milliseconds, microseconds or nanoseconds since 1970, told by their size (1973 to 5138)."""
    for digits, micros_of in ((1e11, 1e6), (1e14, 1e3), (1e17, 1), (1e20, 1e-3)):
        if digits / 1e3 <= number < digits:
            return _unix_time(int(number * micros_of) if isinstance(number, float) or micros_of < 1 else number * int(micros_of))
    return None


def _unix_time(micros: int) -> Time | None:
    return Time(micros, zoned=True) if 0 <= micros < 253_402_300_800_000_000 else None


def _json_stream(row: Mapping[str, object]) -> str:
    kubernetes = _object(row.get("kubernetes")) or {}
    for value in (kubernetes.get("pod_name"), *(row.get(key) for key in _STREAM_KEYS)):
        if isinstance(value, str) and value:
            return value[:253]
        name = (_object(value) or {}).get("name")
        if isinstance(name, str) and name:
            return name[:253]
    return ""
