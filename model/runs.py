"""Runs of the closed world: replayed, walked at somebody's choice, or left alone until they rest.

A run is a list of acts. `walk` makes one, `replay` repeats one; `settling` and `resting` follow the fair order in which
`actions` lists what is due. `unrest` says what keeps a world from the end that every run must come to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from ..spec.events import Event, Heartbeat
from . import consumer
from .acts import Act, Advance, Line, line
from .choice import Choose, first
from .connect import worker
from .connect.units import KINDS, of_kind, units_of
from .world import Client, Faults, Moved, State, World, actions, due, faults, ordinary, owned, step


def replay(world: World, script: str | Iterable[Line]) -> Moved:
    """Run a script; raises ValueError where an act can't happen."""
    moved = Moved(world)
    lines = [line(text) for text in script.splitlines() if text.strip()] if isinstance(script, str) else script
    for said in lines:
        if said.act not in actions(moved.world):
            raise ValueError(f"can't happen here: {said}")
        moved = moved.then(step(moved.world, said.act, picking(said.picks)))
    return moved


def picking(picks: Sequence[int]) -> Choose:
    """Takes the options that ``picks`` number, one after the other, and the first when they run out."""
    left = iter(picks)

    def choose(what: str, options: Sequence[Any], /) -> Any:
        return options[next(left, 0)]

    return choose


FAULT_EVERY = 6
"""A walk takes a fault about once in that many acts, while the budget lasts."""

TIME_WEIGHT = 6
"""How much likelier than each other act it is that time passes, where it may."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One step of a run: the world before it, what was done, what came of it."""

    before: World
    line: Line
    moved: Moved


def walk(world: World, choose: Choose, length: int) -> Iterator[Taken]:
    """A run of up to ``length`` acts of the chooser's liking; its first options lead the way that `quiet` goes."""
    for _ in range(length):
        usual, wrong = _weighed(ordinary(world)), faults(world)
        if not usual and not wrong:
            return
        fault = bool(wrong) and (not usual or choose("fault", (False,) * (FAULT_EVERY - 1) + (True,)))
        act = choose("act", wrong if fault else usual)
        taken = _taken(world, act, choose)
        yield taken
        world = taken.moved.world


def _taken(world: World, act: Act, choose: Choose) -> Taken:
    picks: list[int] = []
    moved = step(world, act, _noting(choose, picks))
    return Taken(world, Line(act, tuple(picks)), moved)


def _weighed(acts: tuple[Act, ...]) -> tuple[Act, ...]:
    """Where time may pass it mostly does: what is held up stays so for a while."""
    return (*(Advance(),) * TIME_WEIGHT, *acts[:-1]) if acts and isinstance(acts[-1], Advance) else acts


def _noting(choose: Choose, picks: list[int]) -> Choose:
    """The same choices, their numbers noted in ``picks``."""

    def noting(what: str, options: Sequence[Any], /) -> Any:
        number = choose(what, range(len(options)))
        picks.append(number)
        return options[number]

    return noting


def settling(world: World, choose: Choose = first, limit: int = 500) -> Iterator[Taken]:
    """Like `resting`, but only until nothing is due and there is no `unrest`, and at most ``limit`` acts."""
    for taken in islice(resting(world, choose), limit):
        if not due(taken.before) and not unrest(taken.before):
            break
        yield taken


def quiet(world: World, choose: Choose = first, limit: int = 20_000) -> Moved:
    """The end of `resting`."""
    events: list[Event] = []
    for taken in resting(world, choose, limit):
        world = taken.moved.world
        events.extend(taken.moved.events)
    return Moved(replace(world, faults=Faults()), tuple(events))


def resting(world: World, choose: Choose = first, limit: int = 20_000) -> Iterator[Taken]:
    """The world comes to rest: no fault happens any more, who stood still goes on, what is due is done in turn.

    It rests when nothing but heartbeats happened for longer than any timeout. Raises TimeoutError after ``limit`` acts.
    """
    world = replace(world, faults=Faults())
    calm_since = world.now
    for _ in range(limit):
        acts = ordinary(world)
        if not acts or world.now - calm_since > _longest(world):
            return
        taken = _taken(world, acts[0], choose)
        yield taken
        world = taken.moved.world
        if not all(isinstance(event, Heartbeat) for event in taken.moved.events):
            calm_since = world.now
    raise TimeoutError(f"no rest after {limit} acts: {unrest(world)}")


def _longest(world: World) -> int:
    """Longer than anything that could still happen takes, in milliseconds."""
    return max(c.config.session_timeout_ms + c.config.rebalance_timeout_ms + _max_delay_ms(c) for c in world.clients)


def _max_delay_ms(client: Client) -> int:
    config = client.config
    return config.max_delay_ms if isinstance(config, worker.Config) else 0


def unrest(world: World) -> tuple[str, ...]:
    """What keeps the world from the end that every run comes to: Stable, everything owned once, balanced. Empty if nothing."""
    return tuple(_unrest(world))


def _unrest(world: World) -> Iterator[str]:
    running = [c for c in world.clients if c.state is not None and _wants_in(c.state)]
    group = world.group
    if not running:
        if group.state != "Empty":
            yield f"nobody wants to be in the group and it is {group.state}"
        return
    if group.state != "Stable":
        yield f"the group is {group.state}"
    wanted, holders = _resources(world, running), Counter(r for c in running for r in owned(c))
    if missing := sorted(wanted - holders.keys()):
        yield f"nobody owns {', '.join(missing)}"
    if twice := sorted(r for r, n in holders.items() if n > 1):
        yield f"owned twice: {', '.join(twice)}"
    if beyond := sorted(holders.keys() - wanted):
        yield f"owned though nobody should: {', '.join(beyond)}"
    for kind, counts in _loads(running):
        if max(counts) - min(counts) > _uneven(world, running, kind):
            yield f"unbalanced {kind}: {counts}"


def _wants_in(state: State) -> bool:
    return isinstance(state, worker.Worker) or bool(state.subscription)


def _resources(world: World, running: Sequence[Client]) -> frozenset[str]:
    """What should be owned: partitions that somebody subscribes to, or all of Connect's work."""
    if any(isinstance(c.state, worker.Worker) for c in running):
        return units_of(world.topics)
    subscribed = {t for c in running if isinstance(c.state, consumer.Consumer) for t in c.state.subscription}
    return frozenset(f"{t}-{n}" for t, count in world.topics if t in subscribed for n in range(count))


def _loads(running: Sequence[Client]) -> Iterator[tuple[str, list[int]]]:
    """How much each member owns, of each kind that is balanced by itself. Unequal subscriptions promise no counts."""
    if any(isinstance(c.state, worker.Worker) for c in running):
        for kind in KINDS:
            yield kind, [len(of_kind(kind, owned(c))) for c in running]
    elif len({frozenset(c.state.subscription) for c in running if isinstance(c.state, consumer.Consumer)}) == 1:
        yield "partition", [len(owned(c)) for c in running]


def _uneven(world: World, running: Sequence[Client], kind: str) -> int:
    """By how much the loads may differ: one, and under range one per topic."""
    return len(world.topics) if world.group.protocol == "range" else 1
