"""The input that an assignor failed on, as a person reads it: who subscribes what, claims what, and was given what.

Beside the fields of an assignor case, ``answer`` may tell what the assignor answered: topic partitions by member id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ...spec.assignors.case import ABSENT, Case, CaseError, Member
from ...spec.assignors.claims import existing
from ...spec.assignors.codec import decode
from ...spec.assignors.judge import order
from .prose import count, line

MEMBERS, NAMES, CALLS, NAME, CELL, TEXT = 12, 6, 3, 60, 120, 4000
"""How much is shown: members, names in a list, earlier calls, characters of a name, of a list (its last name may go beyond) and of JSON."""

WIDTH = 100
"""How long a line of JSON gets."""

Given = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Sheet:
    """One call of an assignor: a table of its members under a ``title``, and ``remarks`` on what has no member. All text is safe lines."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...]


def sheets(told: Mapping[str, object] | None) -> tuple[Sheet, ...]:
    """The calls of an assignor case, the one that failed last; nothing if there is none that can be read."""
    if told is None:
        return ()
    try:
        case, _ = decode(told)
    except CaseError:
        return ()
    before = [_sheet(each, "the same leader was asked before", None) for each in case.before[-CALLS:]]
    return (*before, _sheet(case, "then" if before else "the smallest input found", _given(told.get("answer"))))


def text(shown: Iterable[Sheet]) -> Iterator[str]:
    """The sheets as lines of plain text, in columns."""
    for sheet in shown:
        yield f"{sheet.title}:"
        table = [sheet.columns, *sheet.rows]
        widths = [max(len(row[at]) for row in table) for at in range(len(sheet.columns))]
        yield from ("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table)
        yield from (f"  {remark}" for remark in sheet.remarks)


def as_json(case: Mapping[str, object]) -> str:
    """The case as JSON, ASCII only, a line per member where it is long; where it is longer than a report should be, it is left out."""
    length = len(json.dumps(case))
    if length > TEXT:
        return f"too long to be shown here ({count(length, 'character')}): the case file has it"
    return laid_out(case, json.dumps, last="")


def laid_out(value: object, scalar: Callable[[object], str], *, last: str, indent: str = "", step: str = "  ") -> str:
    """``value`` in brackets and braces, broken over lines where it is longer than one; ``last`` follows the last item of those."""
    match value:
        case Mapping():
            held = cast("Mapping[str, object]", value)
            items, ends = [(f"{scalar(key)}: ", each) for key, each in held.items()], "{}"
        case list() | tuple():
            items, ends = [("", each) for each in cast("Sequence[object]", value)], "[]"
        case _:
            return scalar(value)
    deeper = indent + step
    parts = [key + laid_out(each, scalar, last=last, indent=deeper, step=step) for key, each in items]
    flat = f"{ends[0]}{', '.join(parts)}{ends[1]}"
    if not parts or ("\n" not in flat and len(indent) + len(flat) <= WIDTH):
        return flat
    body = f",\n{deeper}".join(parts)
    return f"{ends[0]}\n{deeper}{body}{last}\n{indent}{ends[1]}"


def _sheet(case: Case, title: str, given: Given | None) -> Sheet:
    columns: list[tuple[str, Callable[[Member], str]]] = [
        ("member", _member),
        ("subscribes", lambda member: _names(member.subscribed)),
    ]
    if any(member.owned or member.generation != ABSENT for member in case.members):
        columns.append(("claims", _claim))
    if any(member.rack is not None for member in case.members):
        columns.append(("rack", lambda member: _name(member.rack) if member.rack is not None else "none"))
    if any(member.version != 3 or member.metadata is not None for member in case.members):
        columns.append(("metadata", _metadata))
    if given is not None:
        columns.append(("was given", lambda member: _names(given[member.id]) if member.id in given else "no entry"))
    rows = [tuple(cell(member) for _, cell in columns) for member in case.members[:MEMBERS]]
    return Sheet(f"{title}, with {_topics(case)}", tuple(name for name, _ in columns), tuple(rows), tuple(_remarks(case, given)))


def _member(member: Member) -> str:
    return _name(member.id) + (f" (static: {_name(member.instance)})" if member.instance is not None else "")


def _topics(case: Case) -> str:
    return _few(f"{_name(topic)} ({count(partitions, 'partition')})" for topic, partitions in case.topics.items()) or "no topics"


def _claim(member: Member) -> str:
    generation = "no generation" if member.generation == ABSENT else f"generation {member.generation:,}"
    return f"{_names(member.owned)} ({generation})" if member.owned else "nothing"


def _metadata(member: Member) -> str:
    return f"{count(len(member.metadata), 'byte')} of its own" if member.metadata is not None else f"version {member.version}"


def _remarks(case: Case, given: Given | None) -> Iterator[str]:
    if len(case.members) > MEMBERS:
        yield f"… and {count(len(case.members) - MEMBERS, 'more member')}"
    if case.racks:
        racks = (f"{_name(partition)} in {'+'.join(map(_name, where[:NAMES])) or 'none'}" for partition, where in case.racks.items())
        yield f"racks: {_few(racks)}"
    if given is not None:
        ids = {member.id for member in case.members}
        yield from (
            f"{_name(other)}, which is no member, was given {_names(given[other])}" for other in [*given][:NAMES] if other not in ids
        )
        if nobody := sorted(existing(case).difference(*given.values()), key=order):
            yield f"given to nobody: {_names(nobody)}"


def _names(names: Iterable[str]) -> str:
    return _few(map(_name, names)) or "nothing"


def _few(texts: Iterable[str]) -> str:
    """The first few, and how many more there are."""
    waiting = iter(texts)
    shown: list[str] = []
    while len(shown) < NAMES and sum(map(len, shown)) < CELL and (each := next(waiting, None)) is not None:
        shown.append(each)
    left = sum(1 for _ in waiting)
    return ", ".join(shown) + (f" … and {left:,} more" if left else "")


def _name(name: str) -> str:
    return line(name if len(name) <= NAME else f"{name[: NAME - 1]}…")


def _given(answer: object) -> Given | None:
    if not isinstance(answer, Mapping):
        return None
    shares = cast("Mapping[str, object]", answer).items()
    return {member: [str(each) for each in cast("Sequence[object]", share)] for member, share in shares if isinstance(share, list | tuple)}
