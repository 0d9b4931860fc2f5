"""Runs of the reference world as scripts: walked at random, followed again, shrunk.

A line of a script is an act (see model.acts), ``settle``: whatever is due is done, until the group has settled and who stood still goes
on, or ``wait 5000``: whatever is due is done for so many milliseconds, and who stands still does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Protocol, TypeVar

from ...model.acts import Act, Advance, Close, Crash, Cut, Delay, Line, Pause, Resize, Resume, Stall, Start, Subscribe, line
from ...model.choice import Choose, first
from ...model.runs import Taken, picking, resting, unrest, walk
from ...model.world import Faults, Menu, World, actions, due, next_deadline, step
from ...spec.events import Event
from ...spec.results import Broken, Finding, fingerprint

SETTLE, WAIT = "settle", "wait"
ENDLESS = Faults(starts=999, crashes=999, closes=999, pauses=999, stalls=999, delays=999, cuts=999, resizes=999, subscribes=999)
LENGTHS = (40, 80, 160)
LIKELY, UNLIKELY = 0.5, 0.1
"""How likely it is that something happens to a group at rest, and to one amid a rebalance."""

DISTURBING = (Crash, Pause, Stall, Delay, Cut)
EVENTFUL = (*DISTURBING, Start, Close, Resume, Resize, Subscribe, Advance)
"""What a history is about; the other acts follow of themselves, unless their order is what matters."""

RESTS_WITHIN = 1_500
"""Acts after which a group that has not come to rest is one that never will."""

EFFORT = 60_000
"""Acts and events of the runs that `shrunk` makes at most."""

Beat = tuple[str, Taken]
"""A step of a run, and the line of the script that began with it; empty within one."""

Play = Callable[[World], Iterator[Beat]]


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a play and the rest after it: the last world, all events, the script's lines, whether it came to rest."""

    world: World
    events: tuple[Event, ...]
    lines: tuple[str, ...]
    rests: bool


def played(world: World, play: Play, over: Callable[[], bool] = lambda: False) -> Run:
    """Play, then let the group come to rest; ends early when it is ``over``."""
    events: list[Event] = []
    lines: list[str] = []
    for text, taken in play(world):
        if text:
            lines.append(text)
        events.extend(taken.moved.events)
        world = taken.moved.world
        if over():
            return Run(world, tuple(events), tuple(lines), rests=True)
    acts = 0
    for taken in _settled(world):
        acts += 1
        events.extend(taken.moved.events)
        world = taken.moved.world
        if over():
            break
    return Run(world, tuple(events), tuple(lines), rests=acts < RESTS_WITHIN)


def walking(chance: random.Random, running: Sequence[str]) -> Play:
    """The first members form a group, then anything may happen."""

    def play(world: World) -> Iterator[Beat]:
        budget = world.faults
        for text, taken in following([text for who in running for text in (str(Start(who)), SETTLE)])(replace(world, faults=ENDLESS)):
            yield text, taken
            world = taken.moved.world
        world = replace(world, faults=budget)
        for _ in range(chance.choice(LENGTHS)):
            for taken in walk(world, _eventful(chance, world), 1):
                yield str(taken.line), taken
                world = taken.moved.world

    return play


def _eventful(chance: random.Random, world: World) -> Choose:
    """Rebalances follow one another, and what disturbs members happens in the midst of them."""
    calm = world.group.state == "Stable" and not due(world)
    fault = chance.random() < (LIKELY if calm else UNLIKELY)

    def choose(what: str, options: Sequence[Any], /) -> Any:
        if what == "fault":
            return fault
        if what == "act" and fault:
            likely = [act for act in options if isinstance(act, DISTURBING) is not calm]
            return chance.choice(likely or options)
        return options[0] if what == "act" and chance.random() < 0.5 else chance.choice(options)

    return choose


def following(lines: Iterable[str]) -> Play:
    """Those of the acts that can happen, in their order. Raises ValueError for a line that is none."""
    parsed = [(text, _read(text)) for text in lines]

    def play(world: World) -> Iterator[Beat]:
        for text, steps in parsed:
            for number, taken in enumerate(steps(world)):
                yield "" if number else text, taken
                world = replace(taken.moved.world, faults=ENDLESS)

    return play


def _read(text: str) -> Callable[[World], Iterator[Taken]]:
    verb, _, rest = text.partition(" ")
    if text == SETTLE:
        return _settled
    if verb == WAIT:
        milliseconds = int(rest)
        return lambda world: _waited(world, world.now + milliseconds)
    each = line(text)
    return lambda world: _done(world, each)


def _done(world: World, each: Line) -> Iterator[Taken]:
    if each.act in actions(world):
        yield Taken(world, each, step(world, each.act, picking(each.picks)))


def _settled(world: World) -> Iterator[Taken]:
    for taken in islice(resting(world), RESTS_WITHIN):
        held = any(client.slow or client.mode in ("stalled", "paused") for client in taken.before.clients)
        if not held and not due(taken.before) and not unrest(taken.before):
            return
        yield taken


def _waited(world: World, until: int) -> Iterator[Taken]:
    while True:
        waiting, then = due(world), next_deadline(world)
        if not waiting and (then is None or then > until):
            return
        taken = Taken(world, Line(act := waiting[0] if waiting else Advance()), step(world, act, first))
        yield taken
        world = taken.moved.world


def _acts(lines: Iterable[str]) -> list[Act]:
    return [line(text).act for text in lines if text.partition(" ")[0] not in (SETTLE, WAIT)]


def needed(lines: Iterable[str]) -> Menu:
    """A menu from which the acts of a script can be ordered. Raises ValueError for a line that is none."""
    acts = _acts(lines)
    return Menu(
        sizes=tuple((act.topic, act.partitions) for act in acts if isinstance(act, Resize)),
        subscriptions=tuple(act.topics for act in acts if isinstance(act, Subscribe)),
    )


def shrunk(lines: Sequence[str], fails: Callable[[Sequence[str]], bool]) -> Sequence[str]:
    """The fewest lines that still fail, found by delta debugging (Zeller's ddmin) while ``fails`` has the patience; perhaps all."""
    eventful = [text for text in lines if all(isinstance(act, EVENTFUL) for act in _acts([text]))]
    calm = [text for each in eventful for text in ((each, SETTLE) if _acts([each]) else (each,))]
    return next((_minimal(candidate, fails) for candidate in (calm, lines) if fails(candidate)), lines)


def blamed(rule: str, group: str, epoch: int, generation: int | None, message: str, resources: Iterable[str] = ()) -> Finding:
    """A finding that rests on no line: what a whole run shows, or one decision."""
    named = tuple(resources)
    broken = Broken(epoch=epoch, generation=generation, members=(), resources=named, message=message, argument=(), detail=message)
    return Finding(
        fingerprint=fingerprint(rule, "", group, broken),
        rule=rule,
        severity="error",
        cluster="",
        group=group,
        epoch=epoch,
        generation=generation,
        members=(),
        resources=named,
        message=message,
        argument=(),
    )


class Played(Protocol):
    """A history, whatever it is of."""

    @property
    def events(self) -> Sequence[Event]: ...

    @property
    def script(self) -> str: ...


_Played = TypeVar("_Played", bound=Played)


def shortened(script: str, lines: Sequence[str], play: Callable[[Sequence[str]], _Played], shows: Callable[[_Played], bool]) -> str:
    """The script of the shortest history, of ``script`` with these ``lines`` after its stage, that still ``shows`` it; the same if none does.

    At best no line of it can be spared. Within `EFFORT`.
    """
    spent, shortest = 0, script

    def fails(lines: Sequence[str]) -> bool:
        nonlocal spent, shortest
        if spent > EFFORT:
            return False
        history = play(lines)
        spent += len(history.events) + len(lines)
        found = shows(history)
        if found and history.script.count("\n") < shortest.count("\n"):
            shortest = history.script
        return found

    shrunk(lines, fails)
    return shortest


def _minimal(lines: Sequence[str], fails: Callable[[Sequence[str]], bool]) -> Sequence[str]:
    parts = 2
    while len(lines) >= 2:
        size = -(-len(lines) // parts)
        without = ([*lines[:at], *lines[at + size :]] for at in range(0, len(lines), size))
        shorter = next((rest for rest in without if fails(rest)), None)
        if shorter is not None:
            lines, parts = shorter, max(parts - 1, 2)
        elif size > 1:
            parts = min(parts * 2, len(lines))
        else:
            break
    return lines
