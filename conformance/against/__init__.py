"""A capture against the reference model: the longest prefix that the model can do, and where it would have done otherwise.

`evidence` reads the capture as requests, answers and sightings; `replica` is the reference coordinator with what a capture leaves
open as steps that may be taken or not; `follow` keeps the states that agree with all that was captured so far; `explain` tells where
there are none left. `members` compares what each consumer did with what it was given, `leaders` what each leader decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...spec.check import check
from ...spec.events import Event
from ...spec.order import in_order
from ...spec.rounds import distinct, lives
from ..timeline import Timeline, timeline
from .coordinators import compare, named
from .evidence import Evidence, gather
from .leaders import follow_leaders
from .members import follow_members
from .told import Divergence, Replayed, Subject

__all__ = ["Divergence", "Replayed", "Subject", "against"]


def against(events: Sequence[Event], picture: Timeline | None = None) -> Replayed:
    """Follow the ``events`` of one group with the reference model; steps are numbered as in its ``picture``.

    `Replayed.status` is the exit status: 0 matched, 1 the model would have done otherwise, 3 nothing could be told.
    """
    picture = picture if picture is not None else timeline(check(events)[0], events)
    events = lives(distinct(events))
    ordered, evidence = in_order(events), gather(events)
    steps = _Steps(ordered, picture)
    coordinator, release = _coordinator(events, evidence, steps)
    subjects = (coordinator, *_members(ordered, evidence, steps), *_leaders(ordered, evidence, steps))
    first = min((d.number - d.is_step for subject in subjects if (d := subject.divergence) is not None), default=steps.total)
    return Replayed(
        group=events[0].group,
        matched=first,
        total=steps.total,
        release=release,
        subjects=subjects,
    )


def _members(ordered: Sequence[Event], evidence: Evidence, steps: _Steps) -> Iterator[Subject]:
    for went in follow_members(ordered, evidence):
        divergence = None if went.event is None else steps.divergence(went.event, went.enabled, went.blocked)
        yield Subject(name=went.member, matched=went.matched, total=went.total, divergence=divergence, unknown=went.unknown)


def _leaders(ordered: Sequence[Event], evidence: Evidence, steps: _Steps) -> Iterator[Subject]:
    decided = follow_leaders(ordered, evidence)
    if decided is not None:
        divergence = None if decided.event is None else steps.divergence(decided.event, decided.enabled, decided.blocked)
        yield Subject(
            name="leaders' decisions", matched=decided.matched, total=decided.total, divergence=divergence, unknown=decided.unknown
        )


class _Steps:
    """The numbers of the steps, as `kipcheck replay` counts them."""

    def __init__(self, ordered: Sequence[Event], picture: Timeline) -> None:
        self._ordered = ordered
        self._number = {_key(event): place for place, shown in enumerate(picture.steps, 1) for event in shown.step.sightings}
        self.total = len(picture.steps)

    def number(self, event: Event) -> int:
        """Of ``event``, or of the last step before it."""
        number = 0
        for each in self._ordered:
            number = self._number.get(_key(each), number)
            if _key(each) == _key(event):
                break
        return number

    def divergence(self, event: Event, enabled: tuple[str, ...], blocked: str) -> Divergence:
        return Divergence(
            event=event,
            number=self.number(event),
            is_step=_key(event) in self._number,
            generation=event.generation,
            enabled=enabled,
            blocked=blocked,
        )


def _key(event: Event) -> object:
    """What tells an event from others, as it was captured."""
    where = event.src if event.src is not None else event.ts
    return where, event.kind, event.generation, event.member, event.resources


def _coordinator(events: Sequence[Event], evidence: Evidence, steps: _Steps) -> tuple[Subject, str | None]:
    name = "group coordinator"
    total = sum(point.what != "arrived" for point in evidence.points)
    if not evidence.exchanges:
        return Subject(name=name, matched=0, total=total, unknown="none of its requests and answers were captured"), None
    compared = compare(events, evidence)
    followed = compared.followed
    why = () if followed.begun else ("no generation was captured with all its members",)
    unknown = "; ".join((*why, *followed.missing)) or None
    subject = Subject(name=name, matched=followed.judged, total=total, unknown=unknown)
    if compared.event is not None:
        divergence = steps.divergence(compared.event, compared.enabled, compared.blocked)
        subject = replace(subject, divergence=divergence)
    return subject, named(compared) if followed.begun else None
