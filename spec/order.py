"""One order for what several clocks saw: first what the protocol forces, and only where it forces nothing the clocks.

The coordinator's events are in the order of its clock, each member's own in the order of that member's. Between them the protocol forces two
things: a member applies a generation after that generation began and, if that was captured, after its SyncGroup was answered; and what it
did in an older generation, it did before the JoinGroup that led to a newer one.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from .events import NONE, Assigned, Event, GenerationStarted, Join, Joined, Lost, Owned, Revoked, Sync, Synced
from .rounds import by_clock, requests

_BELIEFS = (Assigned, Revoked, Lost, Owned)
Place = int
"""Of an event in the sequence as it was given."""


def in_order(events: Sequence[Event]) -> list[Event]:
    """One group's ``events``, each once, in one order; a constraint that contradicts the others gives way to the clocks."""
    met = set[int]()
    events = [replace(event) if id(event) in met or met.add(id(event)) else event for event in events]
    place = {id(event): number for number, event in enumerate(events)}
    chains = [[place[id(event)] for event in chain] for chain in _chains(events)]
    when = _times(events, chains)
    following = dict(pair for chain in chains for pair in pairwise(chain))
    after: dict[Place, list[Place]] = defaultdict(list)
    awaited = [0] * len(events)
    for first, then in _forced(events):
        after[place[id(first)]].append(place[id(then)])
        awaited[place[id(then)]] += 1
    heads = [chain[0] for chain in chains if chain]
    ready = [(when[head], head) for head in heads if not awaited[head]]
    blocked = [(when[head], head) for head in heads if awaited[head]]
    heapq.heapify(ready)
    heapq.heapify(blocked)
    head_of, done = set(heads), [False] * len(events)
    order: list[Event] = []
    while len(order) < len(events):
        _, at = heapq.heappop(ready if ready else blocked)
        if done[at]:
            continue
        done[at] = True
        order.append(events[at])
        then = following.get(at)
        if then is not None:
            head_of.add(then)
            heapq.heappush(blocked if awaited[then] else ready, (when[then], then))
        for then in after[at]:
            awaited[then] -= 1
            if not awaited[then] and then in head_of and not done[then]:
                heapq.heappush(ready, (when[then], then))
    return order


def _chains(events: Sequence[Event]) -> list[list[Event]]:
    """What one clock saw, in its order: the coordinator's, what coordinators' files without any clock tell, and each member's own. All events."""
    streams: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.observer in ("member", "harness"):
            streams[event.member or event.client or ""].append(event)
    seen = requests(events)
    clocked = {id(event) for event in seen}
    rest = [event for event in events if event.observer in ("coordinator", "any") and id(event) not in clocked]
    return [seen, rest, *map(by_clock, streams.values())]


def _times(events: Sequence[Event], chains: Sequence[Sequence[Place]]) -> list[tuple[int, int]]:
    """Epoch and time by which each event's turn comes: without a time, that of the one before it."""
    when = [(0, 0)] * len(events)
    for chain in chains:
        last = -1
        for at in chain:
            ts = events[at].ts
            last = last if ts is None else ts
            when[at] = (events[at].epoch, last)
    return when


def _forced(events: Sequence[Event]) -> Iterator[tuple[Event, Event]]:
    """What comes before what, between chains."""
    seen, unclocked, *own = _chains(events)
    yield from _generations(seen, unclocked)
    yield from _between(seen, own)


def _barriers(own: Sequence[Event], began: Mapping[tuple[int, int | None], Event]) -> Iterator[tuple[Event, Event]]:
    """A generation begins when all who are in it have joined: what a member did before, in older ones, it did before that."""
    before: Event | None = None
    for event in own:
        if event.generation is None or event.generation < 0:
            continue
        if before is not None and (before.epoch, before.generation or 0) < (event.epoch, event.generation):
            start = began.get((event.epoch, event.generation))
            if start is not None:
                yield before, start
        if isinstance(event, _BELIEFS):
            before = event


def _generations(seen: Sequence[Event], unclocked: Sequence[Event]) -> Iterator[tuple[Event, Event]]:
    """A list of a generation that has no clock comes after what else is known of how the generation came about."""
    latest: dict[tuple[int, int | None], Event] = {}
    for event in seen:
        if isinstance(event, (GenerationStarted, Joined, Sync)) and event.generation is not None:
            latest[event.epoch, event.generation] = event
    for event in unclocked:
        if (event.epoch, event.generation) in latest:
            yield latest[event.epoch, event.generation], event


def _between(seen: Sequence[Event], streams: Sequence[Sequence[Event]]) -> Iterator[tuple[Event, Event]]:
    began: dict[tuple[int, int | None], Event] = {}
    answered: dict[tuple[str | None, int, int | None], Event] = {}
    asked: dict[str, Join] = {}
    led: dict[str, list[tuple[tuple[int, int], Join]]] = defaultdict(list)
    for event in seen:
        match event:
            case GenerationStarted():
                began.setdefault((event.epoch, event.generation), event)
            case Synced(error="NONE"):
                answered.setdefault((event.member, event.epoch, event.generation), event)
            case Join() if event.member:
                asked[event.member] = event
            case Joined(error=error) if event.member in asked:
                join = asked.pop(event.member)
                if error == NONE and event.generation is not None:
                    led[event.member].append(((event.epoch, event.generation), join))
            case _:
                pass
    for own in streams:
        yield from _barriers(own, began)
        for event in own:
            if not isinstance(event, (Joined, Synced, *_BELIEFS)) or event.generation is None or event.generation < 0:
                continue
            start = began.get((event.epoch, event.generation))
            if start is not None:
                yield start, event
            if not isinstance(event, _BELIEFS):
                continue
            answer = answered.get((event.member, event.epoch, event.generation))
            if answer is not None:
                yield answer, event
            joins = led[event.member or ""]
            later = bisect_right(joins, (event.epoch, event.generation), key=lambda each: each[0])
            if later < len(joins):
                yield event, joins[later][1]
