"""One order for what several clocks saw: first what the protocol forces, and only where it forces nothing the clocks.

The coordinator's events are in the order of its clock, each member's own in the order of that member's. Between them the protocol forces two
things: a member applies a generation after that generation began and, if that was captured, after its SyncGroup was answered; and what it
did in an older generation, it did before the JoinGroup that led to a newer one.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from .events import NONE, Assigned, Event, GenerationStarted, Join, Joined, Lost, Owned, Revoked, Sync, Synced
from .rounds import by_clock, requests

Place = int
"""Of an event in the sequence as it was given."""


def in_order(events: Sequence[Event]) -> list[Event]:
    """One group's ``events``, each once, in one order; a constraint that contradicts the others gives way to the clocks."""
    after: dict[Place, list[Place]] = defaultdict(list)
    awaited = [0] * len(events)
    for first, then in _forced(events):
        after[first].append(then)
        awaited[then] += 1
    ready = [(_time(event), place) for place, event in enumerate(events) if not awaited[place]]
    heapq.heapify(ready)
    by_time = iter(sorted((_time(event), place) for place, event in enumerate(events)))
    order: list[Event] = []
    done = [False] * len(events)
    while len(order) < len(events):
        now, place = heapq.heappop(ready) if ready else next(each for each in by_time if not done[each[1]])
        if done[place]:
            continue
        done[place] = True
        order.append(events[place])
        for then in after[place]:
            awaited[then] -= 1
            if not awaited[then] and not done[then]:
                ts = events[then].ts
                heapq.heappush(ready, (now if ts is None else ts, then))
    return order


def _time(event: Event) -> int:
    return -1 if event.ts is None else event.ts


def _forced(events: Sequence[Event]) -> Iterator[tuple[Place, Place]]:
    place = {id(event): number for number, event in enumerate(events)}
    streams: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.observer in ("member", "harness"):
            streams[event.member or event.client or ""].append(event)
    chains = [requests(events), *map(by_clock, streams.values())]
    for chain in chains:
        for first, then in pairwise(chain):
            yield place[id(first)], place[id(then)]
    for first, then in _between(chains[0], streams):
        yield place[id(first)], place[id(then)]
    ordered = {id(event) for event in chains[0]}
    unclocked = [event for event in events if event.observer in ("coordinator", "any") and id(event) not in ordered]
    for first, then in (*pairwise(unclocked), *_generations(chains[0], unclocked)):
        yield place[id(first)], place[id(then)]


def _generations(seen: Sequence[Event], unclocked: Sequence[Event]) -> Iterator[tuple[Event, Event]]:
    """A list of a generation that has no clock comes after what else is known of how the generation came about."""
    latest: dict[tuple[int, int | None], Event] = {}
    for event in seen:
        if isinstance(event, (GenerationStarted, Joined, Sync)) and event.generation is not None:
            latest[event.epoch, event.generation] = event
    for event in unclocked:
        if (event.epoch, event.generation) in latest:
            yield latest[event.epoch, event.generation], event


def _between(seen: Sequence[Event], streams: dict[str, list[Event]]) -> Iterator[tuple[Event, Event]]:
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
    for member, own in streams.items():
        for event in own:
            if not isinstance(event, (Assigned, Revoked, Lost, Owned)) or event.generation is None or event.generation < 0:
                continue
            for first in (began.get((event.epoch, event.generation)), answered.get((member, event.epoch, event.generation))):
                if first is not None:
                    yield first, event
            joins = led[member]
            later = bisect_right(joins, (event.epoch, event.generation), key=lambda each: each[0])
            if later < len(joins):
                yield event, joins[later][1]
