"""Breadth-first search of the reference world for a run that breaks a promise, as the monitors of `spec` judge it.

A run follows the fair schedule (`world.due`, first act first), with every fault of the scenario's budget at every moment,
every decision that Kafka leaves to chance, and at most ``reorderings`` acts taken out of turn. Where nothing is due, time
passes or what a fault holds up goes on, in any order. Worlds that are equal are searched once, by their shortest run. A trace
is judged whenever nothing is due, and where the search ends because the worlds that follow were seen before, unless that was
after the same events: what a trace shows broken stays broken when it goes on. So a finding is a real run of the model; that none was found
says something about the runs searched, and about histories that end in the same world only as far as the first of them goes.
For statements about every run see `protocol.search` and `protocol.prove`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..spec import Settings, check
from ..spec.events import Event
from ..spec.results import Finding
from .acts import Act, Line
from .choice import every
from .scenarios import MAX_DELAY_MS, REBALANCE_MS, SESSION_MS, Scenario
from .world import Config, Moved, World, due, faults, ordinary, step

Progress = Callable[[int, int], None]
"""Told the number of worlds (or states) and the depth, now and then."""

PROGRESS_EVERY = 512

Wanted = Callable[[Finding], bool]

LINGER_MS = REBALANCE_MS + SESSION_MS
"""How long a run lingers where nothing changes any more: as long as a member may take for anything."""

LINGER_STEPS = 500
"""At most, should the run go round without time passing."""

SETTINGS = Settings(clock_skew_ms=1, max_delay_ms=MAX_DELAY_MS)
"""What is known of a world: it has one clock, and Connect's delay is that of the scenarios."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A run that breaks a promise: the scenario's beginning, then ``script`` (see `world.replay`); the whole trace."""

    finding: Finding
    script: tuple[Line, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What was searched: distinct worlds, steps, the longest script, CPU seconds, and why it ended.

    ``complete`` says that every run within the budget and the reorderings was seen. ``judged`` counts the traces judged.
    """

    scenario: str
    reorderings: int
    worlds: int
    steps: int
    depth: int
    judged: int
    seconds: float
    complete: bool
    counterexample: Counterexample | None = None


@dataclass(frozen=True, slots=True)
class _Node:
    """A world, how it was reached from its parent, and how many acts out of turn are left.

    ``told`` sums up what was seen since it was judged, ``mark`` is the world's hash.
    """

    world: World
    parent: _Node | None
    line: Line | None
    events: tuple[Event, ...]
    left: int
    told: int
    mark: int


def mutated(world: World, *mutations: str) -> World:
    """The same world with defects switched on wherever they are known."""

    def plan(config: Config) -> Config:
        return replace(config, defects=config.defects.union(mutations))

    release = replace(world.release, defects=world.release.defects.union(mutations))
    return replace(world, release=release, clients=tuple(replace(client, plans=tuple(map(plan, client.plans))) for client in world.clients))


def search(
    scenario: Scenario,
    *,
    mutation: str | None = None,
    needs: Collection[str] = (),
    rules: frozenset[str] | None = None,
    wanted: Wanted | None = None,
    settings: Settings | None = None,
    reorderings: int = 0,
    max_worlds: int = 1_000_000,
    progress: Progress | None = None,
) -> Search:
    """Search a scenario for the first run in which one of ``rules`` finds anything; if None, any rule an error or a warning.

    ``wanted`` says instead what kind of finding of these rules is looked for. ``mutation`` is switched on, and with it what it
    ``needs``. Stops undecided after ``max_worlds`` distinct worlds: that bounds the memory, about 10 KB a world.
    """
    settings = replace(settings or SETTINGS, only=rules)
    wanted = wanted or (_any if rules is not None else _not_info)
    started = time.process_time()
    world = mutated(scenario.world, mutation, *needs) if mutation else scenario.world
    begun = replace(scenario, world=world).begin()
    root = _Node(begun.world, None, None, begun.events, reorderings, _sum(0, begun.events), hash(begun.world))
    seen: dict[World, int] = {root.world: reorderings}
    ends: set[tuple[int, int]] = set()
    level, steps, judged, depth = [root], 0, 0, 0
    found: Counterexample | None = None
    full = False

    def judge(node: _Node) -> Counterexample | None:
        nonlocal judged
        judged += 1
        return _judge(node, settings, wanted)

    while level and found is None and not full:
        following: list[_Node] = []
        for node in level:
            if found is not None or full:
                break
            waiting = due(node.world)
            told = node.told
            if told and not waiting:
                told = 0
                found = judge(node)
            before = len(following)
            for act, left in _turns(node, waiting) if found is None else ():
                for line, moved in _outcomes(node.world, act):
                    steps += 1
                    after = _after(node, line, moved, left, told)
                    end = after.mark, after.told
                    if seen.get(moved.world, -1) < left:
                        seen[moved.world] = left
                        following.append(after)
                        if progress and len(seen) % PROGRESS_EVERY == 0:
                            progress(len(seen), depth)
                    elif after.told and end not in ends:
                        found = found or judge(_lingering(after))
                    ends.add(end)
            if told and found is None and len(following) == before:
                found = judge(node)
            full = len(seen) > max_worlds
        depth += 1
        level = following
    return Search(
        scenario=scenario.name,
        reorderings=reorderings,
        worlds=len(seen),
        steps=steps,
        depth=depth,
        judged=judged,
        seconds=time.process_time() - started,
        complete=found is None and not full,
        counterexample=found,
    )


def _after(node: _Node, line: Line, moved: Moved, left: int, told: int) -> _Node:
    return _Node(moved.world, node, line, moved.events, left, _sum(told, moved.events), hash(moved.world))


def _lingering(node: _Node) -> _Node:
    """Where the run has come round to a world that it has been in, it goes on like that for a while."""
    ancestor = node.parent
    while ancestor is not None and ancestor.mark != node.mark:
        ancestor = ancestor.parent
    until = node.world.now + LINGER_MS
    for _ in range(LINGER_STEPS if ancestor is not None else 0):
        acts = ordinary(node.world)
        if node.world.now >= until or not acts:
            break
        line, moved = next(_outcomes(node.world, acts[0]))
        node = _after(node, line, moved, node.left, node.told)
    return node


def _sum(told: int, events: Sequence[Event]) -> int:
    """A number for what observers were told, when aside; 0 for nothing."""
    for event in events:
        said = (event.kind, event.member, event.instance, event.generation, event.resources, getattr(event, "error", None))
        told = hash((told, said)) or 1
    return told


def _turns(node: _Node, waiting: Sequence[Act]) -> Iterator[tuple[Act, int]]:
    """What may come next, with the acts out of turn left after it. ``waiting`` is what is due."""
    usual = ordinary(node.world) if node.left or not waiting else waiting
    for turn, act in enumerate(usual):
        if not (waiting and turn):
            yield act, node.left
        elif node.left:
            yield act, node.left - 1
    yield from ((act, node.left) for act in faults(node.world))


def _outcomes(world: World, act: Act) -> Iterator[tuple[Line, Moved]]:
    """A step under every sequence of decisions."""

    def run(choose: Any) -> tuple[Line, Moved]:
        picks: list[int] = []

        def noted(what: str, options: Sequence[Any], /) -> Any:
            number: int = choose(what, range(len(options)))
            picks.append(number)
            return options[number]

        moved = step(world, act, noted)
        return Line(act, tuple(picks)), moved

    yield from every(run)


def _path(node: _Node) -> list[_Node]:
    nodes = [node]
    while nodes[-1].parent is not None:
        nodes.append(nodes[-1].parent)
    return nodes[::-1]


def _any(finding: Finding) -> bool:
    return True


def _not_info(finding: Finding) -> bool:
    return finding.severity != "info"


def _judge(node: _Node, settings: Settings, wanted: Wanted) -> Counterexample | None:
    path = _path(node)
    events = [event for each in path for event in each.events]
    if _finding(events, settings, wanted) is None:
        return None
    return _trimmed(path, settings, wanted)


def _finding(events: Sequence[Event], settings: Settings, wanted: Wanted) -> Finding | None:
    if not events:
        return None
    return next((f for result in check(events, settings, measure=False) for f in result.findings if wanted(f)), None)


def _trimmed(path: Sequence[_Node], settings: Settings, wanted: Wanted) -> Counterexample:
    """The shortest beginning of the run that shows it."""
    events: list[Event] = []
    for length, node in enumerate(path):
        events.extend(node.events)
        finding = _finding(events, settings, wanted) if node.events else None
        if finding:
            script = tuple(each.line for each in path[1 : length + 1] if each.line is not None)
            return Counterexample(finding=finding, script=script, events=tuple(events))
    raise AssertionError("the whole run showed a finding")
