"""The group coordinator against the model: the release that gets furthest, and the event that stands in its way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...model.coordinator import NEW_4_0, OLD_3_8, Release
from ...spec.events import NONE, Commit, Event, Heartbeat, Leave
from .clients import kafka_version
from .evidence import Evidence, gather
from .explain import blocked, enabled
from .follow import Followed, follow

_NEW = replace(NEW_4_0, initial_rebalance_delay_ms=0, min_session_timeout_ms=0)
_OLD = replace(OLD_3_8, initial_rebalance_delay_ms=0, min_session_timeout_ms=0)
"""The delay and the bounds are a broker's settings, which no capture shows: they are left open."""
_SUSPECTS = 4
"""Events that may have been in the way, at most."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Releases whose coordinators do the same: those from ``since`` on, up to ``until``."""

    since: str
    until: str
    release: Release


def _old(*defects: str) -> Release:
    return replace(_OLD, defects=frozenset(defects))


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("4.0", "", _NEW),
    Candidate("3.3.2", "3.9", _OLD),
    Candidate("3.2.0", "3.3.1", _old("rejoin-keeps-old-timeouts")),
    Candidate("2.8.1", "3.1", _old("rejoin-keeps-old-timeouts", "assignment-not-skipped")),
    Candidate("2.7.0", "2.8.0", _old("rejoin-keeps-old-timeouts", "assignment-not-skipped", "sync-phase-unbounded")),
    Candidate(
        "0",
        "2.6",
        _old("rejoin-keeps-old-timeouts", "assignment-not-skipped", "sync-phase-unbounded", "completing-heartbeat-refused"),
    ),
)
"""The newest first. What tells them apart: KAFKA-14009, KAFKA-13435, KAFKA-12890, KAFKA-10134."""
_NEW_SINCE = (3, 7)
"""From here on either coordinator may run in a 3.x broker."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The releases that get furthest, how far, and the ``event`` that is in the way with what is told of it."""

    candidates: tuple[Candidate, ...]
    followed: Followed
    event: Event | None = None
    enabled: tuple[str, ...] = ()
    blocked: str = ""


def compare(events: Sequence[Event], evidence: Evidence) -> Compared:
    """Follow the capture with each release that it allows: those that get to the end, else the newest of those that get furthest."""
    tried = [(candidate, follow(evidence, candidate.release)) for candidate in candidates(evidence.release)]
    through = [(candidate, followed) for candidate, followed in tried if followed.stopped is None]
    if through:
        return Compared(tuple(candidate for candidate, _ in through), through[0][1])
    candidate, followed = max(tried, key=lambda each: each[1].judged)
    return _explained(Compared((candidate,), followed), events, evidence)


def named(compared: Compared) -> str:
    """The releases in words."""
    old = [candidate for candidate in compared.candidates if not candidate.release.new]
    names = ["the new coordinator"] if len(old) < len(compared.candidates) else []
    if old:
        first, last = old[-1].since, old[0].until
        names.append(
            "the old coordinator" + (f" of {first} to {last}" if first != "0" else f" up to {last}" if old[0] is not CANDIDATES[1] else "")
        )
    return " or ".join(names)


def candidates(release: str | None) -> Sequence[Candidate]:
    """Those that a broker of this version may be; all if it is not known."""
    version = kafka_version(release or "")
    if not version:
        return CANDIDATES
    mine = next(candidate for candidate in CANDIDATES if version >= kafka_version(candidate.since))
    return (mine, CANDIDATES[0]) if _NEW_SINCE <= version < kafka_version(CANDIDATES[0].since) else (mine,)


def _explained(stopped: Compared, events: Sequence[Event], evidence: Evidence) -> Compared:
    """Where it stopped, unless another event is more likely wrong: one without which the model gets further than without this one."""
    followed = stopped.followed
    point = followed.stopped
    assert point is not None
    told = replace(stopped, event=point.event, enabled=enabled(followed, evidence), blocked=blocked(point.event, followed, evidence))
    furthest = -1
    for event, would in _suspects(followed, evidence):
        beyond = follow(gather(_without(events, event)), stopped.candidates[0].release)
        reached = beyond.stopped.at if beyond.stopped is not None else 1 << 62
        if reached > furthest:
            furthest = reached
            if event is not point.event:
                others = (each for each in told.enabled if each not in would)
                told = replace(told, event=event, enabled=(*would, *others), blocked=blocked(event, followed, evidence))
    return told


def _without(events: Sequence[Event], suspect: Event) -> Sequence[Event]:
    """The events as they would be had ``suspect`` not been captured; of a request that was refused at once, had it been granted."""
    same = [replace(event, ts=suspect.ts) == suspect for event in events]
    if isinstance(suspect, Heartbeat | Leave | Commit) and suspect.error != NONE:
        return [replace(event, error=NONE) if it else event for event, it in zip(events, same, strict=True)]  # pyright: ignore[reportCallIssue]
    return [event for event, it in zip(events, same, strict=True) if not it]


def _suspects(followed: Followed, evidence: Evidence) -> Sequence[tuple[Event, tuple[str, ...]]]:
    """The event at which it stopped, then those that contradict what the model would have done to get beyond it."""
    point = followed.stopped
    assert point is not None
    found: list[tuple[Event, tuple[str, ...]]] = [(point.event, ())]
    for refused in followed.refused:
        event = refused.event
        if event is None and refused.exchange >= 0:
            exchange = evidence.exchanges[refused.exchange]
            event = exchange.answer
        if event is not None and all(event is not known for known, _ in found):
            found.append((event, (refused.would,)))
    return found[: _SUSPECTS + 1]
