"""Small pieces of text that several client logs share: partition lists, Java and Python ``toString`` forms, error messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ...spec.events import Resources
from .base import MalformedLine

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_GENERATION = re.compile(r"Generation\{generationId=(-?\d{1,10}), memberId='([^']{0,600})', protocol='([^']{0,250})'\}")
_PY_PARTITION = re.compile(r"TopicPartition\(topic=u?['\"]([A-Za-z0-9._-]{1,249})['\"], partition=(\d{1,10})\)")
_PY_SET_OPENS = re.compile(r"(?:frozenset|set)?\(?[\[{(]?")
_LAYOUT_TAIL = re.compile(r"\s{1,8}[\[(][A-Za-z_][\w.$]{0,200}(?::\d{1,6})?[\])]\s{0,8}$")
_ASSIGNMENT_OPENS = "=Assignment(partitions="
_USER_DATA = re.compile(r", userDataSize=\d{1,10}")

ERRORS_BY_MESSAGE: Mapping[str, str] = MappingProxyType(
    {
        "The coordinator is not aware of this member": "UNKNOWN_MEMBER_ID",
        "Specified group generation id is not valid": "ILLEGAL_GENERATION",
        "The group is rebalancing, so a rejoin is needed": "REBALANCE_IN_PROGRESS",
        "The group began another rebalance": "REBALANCE_IN_PROGRESS",
        "The broker rejected this static consumer since another consumer": "FENCED_INSTANCE_ID",
        "This is not the correct coordinator": "NOT_COORDINATOR",
        "The coordinator is not available": "COORDINATOR_NOT_AVAILABLE",
        "The coordinator is loading": "COORDINATOR_LOAD_IN_PROGRESS",
        "The group member needs to have a valid member id": "MEMBER_ID_REQUIRED",
        "The group member's supported protocols are incompatible": "INCONSISTENT_GROUP_PROTOCOL",
    }
)
"""How the messages of Kafka's error codes begin (org.apache.kafka.common.protocol.Errors, releases 0.10 to 4.x)."""


class Generation(NamedTuple):
    """``Generation{...}`` as Java clients print it since 2.6; ``protocol`` is None where it prints null."""

    id: int
    member: str
    protocol: str | None


def error_named_by(message: str) -> str | None:
    """The Kafka error code whose message begins ``message``, None if it is none of those a group member meets."""
    return next((code for start, code in ERRORS_BY_MESSAGE.items() if message.startswith(start)), None)


def find_generation(text: str) -> Generation | None:
    """The first complete ``Generation{...}`` in ``text``."""
    found = _GENERATION.search(text)
    if found is None:
        return None
    protocol = found[3]
    return Generation(int(found[1]), found[2], None if protocol in ("null", "") else protocol)


def without_layout_tail(text: str) -> str:
    """``text`` without the logger name that log4j layouts put behind a message: ``(a.b.C:12)`` or ``[a.b.C]``."""
    text = text.rstrip()
    tail = _LAYOUT_TAIL.search(text, max(0, len(text) - 240))
    return text[: tail.start()] if tail else text


def partitions(text: str, start: int = 0) -> tuple[Resources, int]:
    """The list of partitions that begins exactly at ``start``, sorted, and where it ends.

    ``[a-0, b-1]`` or the same without brackets, there an empty list is nothing at all (the message ends, or the layout goes on
    behind a blank). Raises `MalformedLine` for a list that is cut off or holds something else.
    """
    bracketed = text.startswith("[", start)
    at = start + bracketed
    found: list[str] = []
    if bracketed and text.startswith("]", at):
        return (), at + 1
    while True:
        name = _NAME.match(text, at)
        if name is None:
            if bracketed or found:
                raise MalformedLine("a list of topic-partition, cut off")
            return (), at
        topic, dash, number = name[0].rpartition("-")
        if not (topic and dash and number.isdigit()):
            raise MalformedLine("a list of topic-partition")
        found.append(name[0])
        at = name.end()
        if not text.startswith(", ", at):
            break
        at += 2
    if bracketed:
        if not text.startswith("]", at):
            raise MalformedLine("a list of topic-partition, closed by ]")
        at += 1
    elif text.startswith(",", at):
        raise MalformedLine("a list of topic-partition, cut off")
    return tuple(sorted(set(found))), at


def assignment_map(text: str, start: int = 0) -> dict[str, Resources]:
    """``{member=Assignment(partitions=[..]), ...}`` as a consumer group's leader prints it, beginning at ``start``.

    Raises `MalformedLine` if it is cut off.
    """
    if not text.startswith("{", start):
        raise MalformedLine("an assignment in braces")
    found: dict[str, Resources] = {}
    at = start + 1
    while not text.startswith("}", at):
        opens = text.find(_ASSIGNMENT_OPENS, at)
        if opens < 0:
            raise MalformedLine("member=Assignment(partitions=[...])")
        member = text[at:opens]
        found[member], at = partitions(text, opens + len(_ASSIGNMENT_OPENS))
        extra = _USER_DATA.match(text, at)
        at = extra.end() if extra else at
        if not text.startswith(")", at):
            raise MalformedLine("Assignment(...), closed by )")
        at += 1
        if text.startswith(", ", at):
            at += 2
        elif not text.startswith("}", at):
            raise MalformedLine("an assignment closed by }")
    return found


def topic_names(text: str, start: int = 0) -> Resources:
    """Topic names joined by ``, `` that begin at ``start``, sorted."""
    found: set[str] = set()
    name = _NAME.match(text, start)
    while name is not None:
        found.add(name[0])
        name = _NAME.match(text, name.end() + 2) if text.startswith(", ", name.end()) else None
    return tuple(sorted(found))


def python_partitions(text: str, start: int = 0) -> tuple[Resources, int]:
    """A Python list, tuple, set or frozenset of ``TopicPartition(topic='a', partition=0)`` at ``start``, sorted, and where it ends.

    Raises `MalformedLine` if it is cut off or holds something else.
    """
    opens = _PY_SET_OPENS.match(text, start)
    if opens is None or opens.end() == start:
        raise MalformedLine("a Python collection of TopicPartition")
    at = opens.end()
    found: list[str] = []
    item = _PY_PARTITION.match(text, at)
    while item is not None:
        found.append(f"{item[1]}-{int(item[2])}")
        at = item.end()
        item = _PY_PARTITION.match(text, at + 2) if text.startswith(", ", at) else None
    closing = "".join({"(": ")", "[": "]", "{": "}"}[mark] for mark in reversed(opens[0]) if mark in "([{")
    if found and text.startswith(",)", at):
        at += 1
    if not text.startswith(closing, at):
        raise MalformedLine("a Python collection of TopicPartition, cut off")
    return tuple(sorted(set(found))), at + len(closing)


def sorted_names(names: Iterable[str]) -> Resources:
    """Resources in the order in which events carry them."""
    return tuple(sorted(set(names)))
