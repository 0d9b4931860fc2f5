"""From a captured trace to the smallest one with the same finding.

First what the finding can't need is cut away by the handful: other groups, times far from its evidence, whole members, generations and
resources; then single events. Every cut is kept only if the finding, by its fingerprint, is still there, so the order of cuts decides how
fast it goes and never what is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from ..spec.check import check, check_group
from ..spec.events import Event, MemberInfo
from ..spec.results import Finding, Settings
from .failed import Failed
from .validate import events_of

_T = TypeVar("_T")
Events = Sequence[Event]
SECOND = 1_000_000
"""In the microseconds of `Event.ts`."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest trace that was found, its ``finding``, and how many ``events`` the finding's group had before."""

    trace: tuple[Event, ...]
    finding: Finding
    events: int


def shrink(
    paths: Sequence[str], rule: str, *, fingerprint: str | None = None, format: str = "auto", settings: Settings | None = None
) -> Shrunk:
    """Shrink what is captured under ``paths`` to the first finding of ``rule``, or to the one with this ``fingerprint``.

    Raises `Failed` if there is none, or a capture can't be read; `ValueError` for an unknown ``format``.
    """
    settings = replace(settings or Settings(), only=frozenset({rule}))
    events = events_of(paths, format)
    found = [f for group in check(events, settings, measure=False) for f in group.findings if fingerprint in (None, f.fingerprint)]
    if not found:
        which = f"no finding {fingerprint} of {rule}" if fingerprint else f"no finding of {rule}"
        raise Failed(f"{', '.join(paths)}: {which}; kipcheck validate shows what there is")
    return shrunk(events, found[0], settings)


def shrunk(events: Iterable[Event], finding: Finding, settings: Settings) -> Shrunk:
    """The smallest part of ``events`` in which ``finding`` is found under ``settings``; ``events`` have their epochs."""
    mine = [event for event in events if (event.cluster, event.group) == (finding.cluster, finding.group)]

    def shows(trace: Events) -> bool:
        return bool(trace) and any(f.fingerprint == finding.fingerprint for f in check_group(trace, settings, measure=False).findings)

    trace: Events = _near(mine, finding, shows)
    while True:
        size = _size(trace)
        trace = _without_kinds(trace, shows, lambda event: event.member)
        trace = _without_kinds(trace, shows, lambda event: (event.epoch, event.generation))
        trace = _without_resources(trace, shows)
        trace = _minimal(trace, shows)
        if _size(trace) == size:
            break
    (same,) = [f for f in check_group(trace, settings, measure=False).findings if f.fingerprint == finding.fingerprint]
    return Shrunk(tuple(trace), same, len(mine))


Shows = Callable[[Events], bool]


def _size(trace: Events) -> tuple[int, int]:
    return len(trace), len(set(_resources(trace)))


def _near(events: Events, finding: Finding, shows: Shows) -> Events:
    """The events near the evidence in time, as far as the finding needs; events without a time stay with their generation."""
    evidence = frozenset(finding.evidence)
    cited = [event for event in events if event.src in evidence]
    times = [event.ts for event in cited if event.ts is not None]
    generations = {(event.epoch, event.generation) for event in cited} | {(finding.epoch, finding.generation)}
    if not times:
        return events
    margin = SECOND
    while margin < 10**7 * SECOND:
        first, last = min(times) - margin, max(times) + margin
        near = [e for e in events if ((e.epoch, e.generation) in generations if e.ts is None else first <= e.ts <= last)]
        if len(near) == len(events):
            break
        if shows(near):
            return near
        margin *= 10
    return events


def _without_kinds(trace: Events, shows: Shows, kind: Callable[[Event], object]) -> Events:
    """``trace`` without each kind of event that can go as a whole."""
    for each in dict.fromkeys(map(kind, trace)):
        rest = [event for event in trace if kind(event) != each]
        if len(rest) < len(trace) and shows(rest):
            trace = rest
    return trace


def _without_resources(trace: Events, shows: Shows) -> Events:
    """``trace`` without each resource that can go; many at once where that holds."""
    names = sorted(set(_resources(trace)))
    kept = _minimal(names, lambda some: shows(_only(trace, frozenset(some))), least=0)
    return _only(trace, frozenset(kept)) if len(kept) < len(names) else trace


def _minimal(items: Sequence[_T], shows: Callable[[Sequence[_T]], bool], least: int = 1) -> Sequence[_T]:
    """The items without any that can be spared: delta debugging, from large parts to single ones."""
    part = max(1, len(items) // 2)
    while len(items) > least:
        at, cut = 0, False
        while at < len(items) and len(items) > least:
            rest = [*items[:at], *items[at + part :]]
            if shows(rest):
                items, cut = rest, True
            else:
                at += part
        if part == 1 and not cut:
            break
        part = max(1, part // 2)
    return items


def _resources(trace: Events) -> Iterator[str]:
    for event in trace:
        for _, value in _named(event):
            yield from value if isinstance(value, tuple) else (each for share in value.values() for each in _of(share))


def _named(event: Event) -> Iterator[tuple[str, Any]]:
    """The fields that name resources, with what they hold: resources, or shares by member."""
    for name in ("resources", "owned", "revoked", "assignment", "members"):
        value = getattr(event, name, None)
        if value is not None and (name != "members" or isinstance(value, Mapping)):
            yield name, value


def _of(share: tuple[str, ...] | MemberInfo) -> tuple[str, ...]:
    return (share.owned or ()) if isinstance(share, MemberInfo) else share


def _only(trace: Events, kept: frozenset[str]) -> Events:
    """``trace`` with these resources alone."""

    def pruned(value: object) -> object:
        match value:
            case tuple():
                return tuple(each for each in cast("tuple[str, ...]", value) if each in kept)
            case MemberInfo():
                return replace(value, owned=None if value.owned is None else cast("tuple[str, ...]", pruned(value.owned)))
            case _:
                return {member: pruned(share) for member, share in cast("Mapping[str, object]", value).items()}

    return [replace(event, **{name: pruned(value) for name, value in _named(event)}) for event in trace]
