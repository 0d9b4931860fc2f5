"""Each member against the reference consumer: given the answers that it got, which rebalance callbacks ran, and on what.

Why a member joined again, lost its membership or was closed is seldom captured; so that may happen at any time. What it gives up,
takes or loses then follows from what it owns, what it was given, and whether it is eager or cooperative (KIP-429).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from ...model import consumer, process
from ...model.assignors import ASSIGNORS
from ...model.choice import first
from ...model.consumer import Config, Consumer
from ...model.consumer.state import Succeeded
from ...model.messages import HeartbeatRequest, HeartbeatResponse, JoinRequest, JoinResponse, Response, Share, SyncRequest, SyncResponse
from ...spec.events import (
    NONE,
    Assigned,
    Event,
    Gap,
    Join,
    Joined,
    Lost,
    Owned,
    Resources,
    Revoked,
    Synced,
)
from .clients import is_reference, release_of
from .evidence import Evidence, Key, Known, generations_in

_BEAM = 8
_DEEP = 5
"""Hidden happenings between two callbacks, at most."""
_TRIED = 400

Callback = Assigned | Revoked | Lost
_CALLBACKS = (Assigned, Revoked, Lost)
_NAMES = {"assigned": "onPartitionsAssigned", "revoked": "onPartitionsRevoked", "lost": "onPartitionsLost"}


@dataclass(frozen=True, slots=True)
class Went:
    """How far a member was followed: ``event`` is what the model can't do, ``unknown`` why it was not followed."""

    member: str
    matched: int
    total: int
    event: Event | None = None
    enabled: tuple[str, ...] = ()
    blocked: str = ""
    unknown: str | None = None


def follow_members(ordered: Sequence[Event], evidence: Evidence) -> Iterator[Went]:
    """Each member whose callbacks were captured, in the order in which they appear; ``ordered`` is in logical time."""
    generations = generations_in(ordered)
    own: dict[str, list[Event]] = {}
    believing: set[str] = set()
    newcomers: dict[object, Join] = {}
    for event in ordered:
        log = event.observer, event.client, event.src.file if event.src is not None else ""
        if isinstance(event, Join) and not event.member:
            newcomers[log] = event
        if event.member:
            if isinstance(event, Joined) and log in newcomers and not any(isinstance(e, Joined) for e in own.get(event.member, ())):
                own.setdefault(event.member, []).append(newcomers.pop(log))
            own.setdefault(event.member, []).append(event)
            if isinstance(event, (*_CALLBACKS, Owned)) and event.resources is not None:
                believing.add(event.member)
    for member, events in own.items():
        if member in believing:
            yield _Member(member, events, generations, whole=evidence.whole and evidence.ids_given).follow()


class _Member:
    def __init__(self, member: str, events: Sequence[Event], generations: Mapping[Key, Known], *, whole: bool) -> None:
        self.member = member
        self.events = events
        self.whole = whole
        self.shares = {key: known.shares[member] for key, known in generations.items() if member in known.shares}
        named = (
            *(share for known in generations.values() for share in known.shares.values()),
            *(e.resources or () for e in events),
        )
        self.topics = {resource.rpartition("-")[0] for share in named for resource in share} or {_ANY_TOPIC}
        heard = any(isinstance(e, Joined) and e.observer == "member" and e.generation is not None and e.error == NONE for e in events)
        self.hears = "member" if heard else "coordinator"
        self.last = max(
            (n for n, e in enumerate(events) if isinstance(e, Assigned | Joined) and getattr(e, "error", NONE) == NONE), default=0
        )

    def follow(self) -> Went:
        why = self._not_comparable()
        if why is not None:
            return self._went(0, unknown=why)
        states: list[Consumer] = []
        matched, began, skipped = 0, False, 0
        for number, event in enumerate(self.events):
            match event:
                case Gap():
                    return self._went(matched, unknown="its log has a gap")
                case Joined(error="NONE", generation=int()) if event.observer == self.hears:
                    before = states or list(self._starts(number))
                    states = self._joined(before, event, number)
                    if before and not states:
                        return self._stuck(event, before, number, matched)
                    began = began or bool(states)
                case Synced(error="NONE", generation=int(generation)) if event.observer == self.hears:
                    share = self.shares.get((event.epoch, generation))
                    states = [] if share is None else self._synced(states, event, tuple(sorted(share)))
                case Assigned() | Revoked() | Lost() if event.resources:
                    if not states or not self._given(states, event):
                        states, skipped = [], skipped + 1
                        continue
                    states = self._with_share(states, event)
                    reached, _ = _until(states, self._happenings(number), callback=event)
                    if not reached:
                        return self._stuck(event, states, number, matched)
                    states, matched = reached, matched + 1
                case Assigned(resources=()) if states:
                    states = _until(states, self._happenings(number), callback=event)[0] or states
                case Owned(resources=tuple(resources)) if states:
                    states = [s for s in states if consumer.busy(s) is None and frozenset(s.assignment) == frozenset(resources)] or states
                case _:
                    pass
        if not began:
            return self._went(0, unknown="no JoinGroup answer to it was captured, or not what it owned then")
        return self._went(matched, unknown=f"what {skipped} of its callbacks follow from was not captured" if skipped else None)

    def _went(self, matched: int, *, unknown: str | None = None) -> Went:
        total = sum(isinstance(event, _CALLBACKS) and bool(event.resources) for event in self.events)
        return Went(self.member, matched, total, unknown=unknown)

    def _not_comparable(self) -> str | None:
        named = [*(r for share in self.shares.values() for r in share), *(r for e in self.events for r in e.resources or ())]
        if any(":" in resource for resource in named):
            return "what a Connect worker does is not compared"
        if not all(map(_PARTITION.fullmatch, named)):
            return "it owns what is no partition of a topic"
        if not is_reference(self.member, self.events, whole=self.whole):
            return "its client is not Kafka's own, and may call back in other ways"
        if (release_of(self.member, self.events) or _LOST_SINCE) < _LOST_SINCE:
            return "its client is older than 2.4, which had no onPartitionsLost"
        return None

    def _starts(self, number: int) -> Iterator[Consumer]:
        """What it may be before the answer at ``number``, the first that is known."""
        joins = [event for event in self.events[:number] if isinstance(event, Join)]
        offered = next((join.protocols for join in reversed(joins) if join.protocols), None)
        known = offered is not None and all(name in ASSIGNORS for name in offered)
        claims = next((join.owned for join in reversed(joins) if join.owned is not None), None)
        anew = any(join.observer == "member" and join.generation is None for join in joins)
        instance = next((event.instance for event in self.events if event.instance), None)
        for assignors in (offered,) if known and offered else (("range",), ("cooperative-sticky",)):
            owned = claims if claims is not None else () if anew else None
            if owned is None:
                continue
            config = Config(process="", group="", assignors=assignors, instance=instance, topics=self._subscribed(number))
            yield replace(consumer.start(config, 0), assignment=tuple(sorted(owned)), needs_join_prepare=False, coordinator_known=True)

    def _subscribed(self, number: int) -> Resources:
        """What it subscribes to by the next JoinGroup after ``number``."""
        told = (e.subscribed for e in (*self.events[number:], *reversed(self.events[:number])) if isinstance(e, Join))
        return next((tuple(sorted(set(topics))) for topics in told if topics is not None), tuple(sorted(self.topics)))

    def _happenings(self, number: int) -> Happenings:
        subscribed, ends = self._subscribed(number), number > self.last
        return lambda state: _happenings(state, subscribed, ends=ends)

    def _joined(self, states: Sequence[Consumer], event: Joined, number: int) -> list[Consumer]:
        asking, _ = _until(states, self._happenings(number), wanted=lambda state: _asked(state, JoinRequest) is not None)
        response = JoinResponse(generation=event.generation or 0, protocol=event.protocol, leader="", member=self.member)
        answered = [_answered(state, JoinRequest, response) for state in asking]
        return (answered + list(states) if self.hears == "coordinator" else answered)[: 2 * _BEAM]

    def _synced(self, states: Sequence[Consumer], event: Synced, share: Resources) -> list[Consumer]:
        """An answer that the coordinator gave may never have arrived."""
        mine = [s for s in states if _asked(s, SyncRequest) is not None and s.generation.id == event.generation]
        answered = [_answered(state, SyncRequest, SyncResponse(share=Share(share))) for state in mine]
        return (answered + list(states) if self.hears == "coordinator" or not answered else answered)[: 2 * _BEAM]

    def _given(self, states: Sequence[Consumer], event: Event) -> bool:
        """Whether it is known what SyncGroup brought, if that is what the callback follows from."""
        waits = all(_asked(state, SyncRequest) is not None for state in states)
        return not waits or event.generation is None or (event.epoch, event.generation) in self.shares

    def _with_share(self, states: list[Consumer], event: Event) -> list[Consumer]:
        """With what SyncGroup brought, where its answer was not captured."""
        share = self.shares.get((event.epoch, -1 if event.generation is None else event.generation))
        mine = [s for s in states if _asked(s, SyncRequest) is not None and s.generation.id == event.generation]
        if share is None or len(mine) < len(states):
            return states
        return [*(_answered(state, SyncRequest, SyncResponse(share=Share(tuple(sorted(share))))) for state in mine), *states]

    def _stuck(self, event: Event, states: Sequence[Consumer], number: int, matched: int) -> Went:
        """What would come next in the likeliest state."""
        state = states[0]
        _, others = _until([state], self._happenings(number), callback=event if isinstance(event, _CALLBACKS) else None, wanted=_never)
        enabled = tuple(dict.fromkeys(f"call {_call(other)}" for other in others))
        owns = f"it owns {_listed(state.assignment)}"
        given = f", and was given {_listed(state.join.share.resources)}" if isinstance(state.join, Succeeded) and state.join.share else ""
        called = isinstance(event, _CALLBACKS)
        what = f"{_call(event)} does not follow" if called else f"it can't be in generation {event.generation} yet"
        return replace(self._went(matched), event=event, enabled=enabled[:4], blocked=f"{what}: {owns}{given}")


def _never(_: Consumer) -> bool:
    return False


_ANY_TOPIC = "a topic"
_PARTITION = re.compile(r"[\w.-]+-\d{1,9}", re.ASCII)
_LOST_SINCE = (2, 4)

# Hidden happenings.

Happenings = Callable[[Consumer], "Iterator[tuple[int, process.Turn[Consumer]]]"]


def _until(
    states: Sequence[Consumer],
    happenings: Happenings,
    *,
    callback: Callback | None = None,
    wanted: Callable[[Consumer], bool] | None = None,
) -> tuple[list[Consumer], list[Event]]:
    """The states once ``callback`` has run, or that are ``wanted``; and what else would have run, the likeliest first.

    What a member is configured with does not make one state likelier than another.
    """
    found: list[Consumer] = []
    others: list[Event] = []
    for config in dict.fromkeys(state.config for state in states):
        reached, instead = _nearest([state for state in states if state.config == config], happenings, callback, wanted)
        found, others = found + reached, others + instead
    return found, others


def _nearest(
    states: Sequence[Consumer],
    happenings: Happenings,
    callback: Callback | None,
    wanted: Callable[[Consumer], bool] | None,
) -> tuple[list[Consumer], list[Event]]:
    numbers = count()
    queue = [(place, next(numbers), 0, state) for place, state in enumerate(states)]
    known: set[Consumer] = set()
    found: dict[Consumer, None] = {}
    others: list[Event] = []
    best, tried = None, 0
    while queue and tried < _TRIED and len(found) < _BEAM:
        cost, _, depth, state = heapq.heappop(queue)
        if best is not None and cost > best + 1:
            break
        if callback is None and wanted is not None and wanted(state):
            found[state], best = None, cost if best is None else best
            continue
        if state in known or depth >= _DEEP:
            continue
        known.add(state)
        for extra, turn in happenings(state):
            tried += 1
            ran = [event for event in turn.events if isinstance(event, _CALLBACKS) and (event.resources or _is(callback, event))]
            if not ran:
                heapq.heappush(queue, (cost + extra, next(numbers), depth + 1, turn.process))
            elif callback is not None and len(ran) == 1 and _is(callback, ran[0]):
                found[turn.process], best = None, cost if best is None else best
            else:
                others += ran
    return list(found), others


def _is(captured: Event | None, modelled: Event) -> bool:
    return (
        captured is not None
        and captured.kind == modelled.kind
        and frozenset(captured.resources or ()) == frozenset(modelled.resources or ())
    )


def _happenings(state: Consumer, subscribed: Resources, *, ends: bool) -> Iterator[tuple[int, process.Turn[Consumer]]]:
    """What may happen to it next, each with its cost."""
    if consumer.busy(state) is not None:
        yield 0, _step(state, process.CallbackDone())
        return
    if state.subscription != subscribed:
        yield 1, _step(state, process.Subscribe(subscribed))
    yield 0, _step(state, process.Poll({}, {}))
    if state.joined:
        for cost, error in ((1, "REBALANCE_IN_PROGRESS"), (2, "UNKNOWN_MEMBER_ID"), (2, "ILLEGAL_GENERATION"), (2, "FENCED_INSTANCE_ID")):
            beating = _step(state, process.HeartbeatDue()).process
            yield cost, _reply(beating, HeartbeatRequest, HeartbeatResponse(error=error))
        yield 3, _step(state, process.PollTimeout())
    for error in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"):
        yield 2, _reply(state, JoinRequest, JoinResponse(error=error))
    for error in ("REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID"):
        yield 2, _reply(state, SyncRequest, SyncResponse(error=error))
    if ends:
        yield 2, _step(state, process.Close())
        yield 3, _step(state, process.Subscribe(()))


def _step(state: Consumer, happening: process.Happening) -> process.Turn[Consumer]:
    return consumer.step(state, happening, 0, first)


def _asked(state: Consumer, kind: type[JoinRequest | SyncRequest | HeartbeatRequest]) -> int | None:
    """The newest request of a kind that waits for its answer."""
    return next((each.correlation for each in reversed(state.in_flight) if isinstance(each.request, kind)), None)


def _reply(state: Consumer, kind: type[JoinRequest | SyncRequest | HeartbeatRequest], response: Response) -> process.Turn[Consumer]:
    number = _asked(state, kind)
    return process.Turn(state) if number is None else _step(state, process.Answer(number, response, {}, {}))


def _answered(state: Consumer, kind: type[JoinRequest | SyncRequest], response: Response) -> Consumer:
    return _reply(state, kind, response).process


# Words.


def _call(event: Event) -> str:
    return f"{_NAMES[event.kind]}({_listed(event.resources or ())})"


def _listed(resources: Sequence[str]) -> str:
    shown = ", ".join(resources[:8])
    return (f"{shown} and {len(resources) - 8} more" if len(resources) > 8 else shown) or "nothing"
