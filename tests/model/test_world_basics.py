"""The closed world by itself: scripts, time, connections, equality, rest."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kipcheck.model.acts import Act, Advance, Arrive, Crash, Cut, Line, Poll, Resize, Return, Start, Subscribe, line
from kipcheck.model.choice import first
from kipcheck.model.runs import quiet, replay, unrest, walk
from kipcheck.model.scenarios import SCENARIOS, begin, cast, connect, lively
from kipcheck.model.world import Faults, World, actions, due, faults, ordinary, step
from kipcheck.spec.events import Event, Expire, Lost, Synced

SOME_ACTS: tuple[Act, ...] = (Arrive("c1"), Resize("t", 4), Subscribe("c1", ("t", "u")), Subscribe("c1", ()), Advance())


@pytest.mark.parametrize("act", SOME_ACTS, ids=str)
def test_a_line_reads_as_it_was_printed(act: Act) -> None:
    assert line(str(Line(act, (0, 2)))) == Line(act, (0, 2))
    assert line(str(act)).act == act


@pytest.mark.parametrize("text", ["", "fly c1", "arrive", "resize t many", "arrive c1 c2"])
def test_what_is_no_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        line(text)


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_a_scenario_begins_settled_with_its_budget(name: str) -> None:
    scenario = SCENARIOS[name]
    world = scenario.begin().world
    assert world.faults == scenario.world.faults
    assert not unrest(world)
    assert not due(world)
    assert faults(world)


def chance(seed: int) -> Any:
    draw = random.Random(seed)

    def choose(what: str, options: Sequence[Any], /) -> Any:
        return options[draw.randrange(len(options))]

    return choose


@pytest.mark.parametrize("name", sorted(SCENARIOS))
@pytest.mark.parametrize("seed", range(3))
def test_a_run_replays_from_its_script(name: str, seed: int) -> None:
    begun = lively(SCENARIOS[name]).begin()
    steps = list(walk(begun.world, chance(seed), 60))
    again = replay(begun.world, "\n".join(str(taken.line) for taken in steps))
    assert again.world == steps[-1].moved.world
    assert again.events == tuple(event for taken in steps for event in taken.moved.events)


@pytest.mark.parametrize("name", sorted(SCENARIOS))
@pytest.mark.parametrize("seed", range(2))
def test_the_time_of_day_makes_no_difference(name: str, seed: int) -> None:
    scenario = lively(SCENARIOS[name])
    early, late = (begin(replace(scenario.world, now=now), scenario.running) for now in (0, 86_400_123))
    assert early.world == late.world
    steps = list(walk(early.world, chance(seed), 60))
    shifted = replay(late.world, [taken.line for taken in steps])
    assert shifted.world == steps[-1].moved.world
    assert hash(shifted.world) == hash(steps[-1].moved.world)
    assert [untimed(e) for e in shifted.events] == [untimed(e) for taken in steps for e in taken.moved.events]


def untimed(event: Event) -> Event:
    return replace(event, ts=None)


def test_running_numbers_make_no_difference() -> None:
    begun = SCENARIOS["two-cooperative"].begin().world
    later = replay(begun, [Line(Advance())]).world
    for _ in range(6):
        later = step(later, ordinary(later)[0], first).world
    assert later.now > begun.now
    assert later.client("c1").state != begun.client("c1").state
    assert not due(later)
    assert later == begun


def test_every_event_has_its_own_time() -> None:
    moved = lively(SCENARIOS["connect-scale"]).begin()
    times = [event.ts for event in moved.events]
    assert times == sorted({t for t in times if t is not None})


def test_time_stands_still_while_something_is_due() -> None:
    world = step(SCENARIOS["two-cooperative"].begin().world, Start("c3"), first).world
    assert due(world)
    assert Advance() not in actions(world)


def test_nothing_goes_wrong_without_a_budget() -> None:
    world = replace(SCENARIOS["eager"].begin().world, faults=Faults())
    assert not faults(world)
    assert not any(isinstance(event, Expire | Lost) for event in quiet(world).events)


def test_the_coordinator_reads_one_request_of_a_connection_at_a_time() -> None:
    """A JoinGroup that waits holds up what is behind it."""
    world = SCENARIOS["two-cooperative"].begin().world
    world = step(world, Start("c3"), first).world
    while not any(m.join for m in world.group.members):
        world = step(world, ordinary(world)[0], first).world
    waiting = world.client("c3")
    assert waiting.calls[0].received
    assert Arrive("c3") not in actions(world)
    assert Return("c3") not in actions(world)


def test_an_answer_to_a_dead_process_is_dropped() -> None:
    world = SCENARIOS["static-restart"].begin().world
    world = step(world, Crash("s1"), first).world
    world = step(world, Start("s1"), first).world
    rest = quiet(world)
    assert not unrest(rest.world)
    assert all(e.error == "NONE" for e in rest.events if isinstance(e, Synced))


def test_an_act_that_can_not_happen_is_refused() -> None:
    world: World = SCENARIOS["eager"].begin().world
    with pytest.raises(ValueError, match="can't happen here: start c1"):
        replay(world, "start c1")


def test_a_connect_worker_without_its_coordinator_is_alike_whenever_that_is() -> None:
    """The explorer asks that of every world; how long a worker has been cut off counts, and not the time of day."""

    def cut_off(after: int) -> World:
        world = cast({"w1": [connect("w1", "eager")]}, topics={"A": 1})
        world = replace(world, faults=replace(world.faults, starts=1, cuts=1), now=after)
        for act in (Start("w1"), Poll("w1"), Cut("w1")):
            world = step(world, act, first).world
        return world

    assert any(client.state is not None and client.state.unreachable is not None for client in cut_off(0).clients)  # type: ignore[union-attr]
    assert cut_off(0) == cut_off(7_000)
    assert hash(cut_off(0)) == hash(cut_off(7_000))
