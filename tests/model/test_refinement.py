"""Every run of the closed world is a run of the protocol, which is proved; with a defect switched on it is not.

A failure prints a script: ``replay(settled(name, old=...), script)`` runs it again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.model import consumer
from kipcheck.model.acts import Crash, Line, line
from kipcheck.model.choice import Choose
from kipcheck.model.explorer import mutated
from kipcheck.model.protocol.prove import prove
from kipcheck.model.refinement import Refinement, protocol, refine
from kipcheck.model.runs import Taken, picking, resting, walk
from kipcheck.model.scenarios import SCENARIOS, lively, opening
from kipcheck.model.world import World, actions, owned, step

CONSUMERS = sorted(
    name
    for name, scenario in SCENARIOS.items()
    if all(isinstance(plan, consumer.Config) for client in scenario.world.clients for plan in client.plans)
)

OUTSIDE = {
    "a commit is accepted, but the client has moved on since",
    "a commit is accepted, but the assignment of the generation is not taken over yet",
    "a JoinGroup that its member has superseded is accepted",
    "a client from before 3.4 without claims names no generation, so that nothing has changed",
    "a second, different proposal of one generation is stored",
    "a record holds a replacement that could not be stored by itself",
    "a replacement is undone after a rebalance has begun with it",
    "a replacement is undone, but for what it claims (latent L8 of the old coordinator)",
}
"""What the world does and the protocol does not."""

NEVER = {
    ("reset", "revoked(x)"),
    ("crash", "revoked(x)"),
    ("give_up", "revoked(x)"),
    ("give_up", "unjoined(x)"),
    ("give_up", "syncs(x)"),
    ("give_up", "joins(x)"),
}
"""What the protocol allows and no client of the world does, or hardly ever: between what it revokes and what is new to it a
client does nothing else, and it gives things up of its own accord before it sends JoinGroup."""

total = Refinement()


def taken(world: World, said: Line) -> Taken:
    return Taken(world, said, step(world, said.act, picking(said.picks)))


@cache
def beginning(name: str, *, old: bool = False, defect: str = "") -> tuple[Taken, ...]:
    """The members of a scenario start and settle one after the other, in a world in which nothing has happened."""
    scenario = lively(SCENARIOS[name])
    world = mutated(scenario.world, defect) if defect else scenario.world
    world = replace(world, release=replace(world.release, new=not old))
    return opening(world, scenario.running)


def settled(name: str, *, old: bool = False, defect: str = "") -> World:
    """The world after `beginning`, with a bit of every fault."""
    return replace(beginning(name, old=old, defect=defect)[-1].moved.world, faults=lively(SCENARIOS[name]).world.faults)


def followed(name: str, steps: Sequence[Taken], *, old: bool = False) -> Refinement:
    """A walk that must have a counterpart, counted in the total."""
    refinement = refine((*beginning(name, old=old), *steps))
    script = "\n".join(str(each.line) for each in steps)
    assert refinement.failure is None, f"{refinement.failure}\nscenario {name}, old={old}, script:\n{script}"
    assert {each.reason for each in refinement.outside} <= OUTSIDE
    total.add(refinement)
    return refinement


def lucky(seed: str) -> Choose:
    chance = random.Random(seed)

    def choose(what: str, options: Sequence[Any], /) -> Any:
        return options[chance.randrange(len(options))]

    return choose


def told(name: str, script: str, *, defect: str = "") -> Iterator[Taken]:
    """A run by its script."""
    world = settled(name, defect=defect)
    for text in script.split(";"):
        said = line(text.strip())
        assert said.act in actions(world), f"{said} can't happen"
        yield (each := taken(world, said))
        world = each.moved.world


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(name=st.sampled_from(CONSUMERS), old=st.booleans(), data=st.data())
def every_run(name: str, old: bool, data: st.DataObject) -> None:
    def choose(what: str, options: Sequence[Any], /) -> Any:
        return options[data.draw(st.integers(0, len(options) - 1))] if len(options) > 1 else options[0]

    followed(name, list(walk(settled(name, old=old), choose, data.draw(st.sampled_from((40, 80, 120)), "length"))), old=old)


def every_scenario(name: str) -> None:
    """The fair schedule, to the rest, and random ones."""
    followed(name, list(resting(settled(name))))
    for number in range(12):
        followed(name, list(walk(settled(name), lucky(f"{name} {number}"), 120)))


def test_a_number_that_is_used_again_stands_for_its_lost_generation() -> None:
    """A SyncGroup of generation 4 is under way when a failover takes that generation back; another 4 answers it."""
    wait = "; ".join(["advance; beat s2"] * 6)
    steps = told(
        "static-restart",
        "resize t 4; poll s1; arrive s1; advance; beat s2; arrive s2; return s2; poll s2; arrive s2; return s2; delay s2;"
        "return s1; arrive s1; resign; load; return s1; poll s1; poll s1; arrive s1;"
        f"{wait}; advance; fire join -; return s1; arrive s1; store; arrive s2; return s2; poll s2; finish s2",
    )
    assert followed("static-restart", list(steps)).alternatives["answer_sync", "lost(g)"] == 1


def test_claims_of_a_lost_generation_are_those_of_its_namesake() -> None:
    """The claims at the coordinator name a lost generation 2; in the next 2 the member sends what reads the same."""
    steps = told(
        "lost-connection",
        "resize t 4; poll c1; arrive c1; return c1; arrive c1; resign; load; return c1; poll c1; poll c1; arrive c1; return c1;"
        "cut c1; poll c1; poll c1; arrive c1",
    )
    refinement = followed("lost-connection", list(steps))
    assert refinement.actions["join_unchanged"] == 1
    assert refinement.alternatives["join_unchanged", "lost(owned_generation(x))"] == 1


def test_a_superseded_join_is_outside_and_ends_the_matter() -> None:
    """The first JoinGroup of c1 arrives after the second one, and counts (KAFKA-20985)."""
    steps = told("lost-connection", "resize t 4; poll c1; cut c1; poll c1; poll c1; arrive c1; wander c1#1")
    (outside,) = followed("lost-connection", list(steps)).outside
    assert outside.ends
    assert str(outside.act) == "wander c1#1"


def test_a_commit_before_the_new_assignment_is_taken_over_is_outside() -> None:
    """A static member that missed a generation has joined the next, and may commit in it what another owns since.

    In the protocol only a settled client commits, so S5 does not speak of this.
    """
    steps = told(
        "static-absent",
        "start c1; poll c1; arrive c1; return c1; poll c1; arrive c1; advance; beat s1; arrive s1; return s1; pause s1; advance;"
        "fire join -; return c1; arrive c1; store; return c1; poll c1; finish c1; resume s1; poll s1; arrive s1; advance; beat c1;"
        "arrive c1; return c1; poll c1; arrive c1; return c1; return s1; arrive s1; arrive c1; store; return s1; commit s1; arrive s1",
    )
    run = list(steps)
    outside = followed("static-absent", run).outside
    assert {each.reason for each in outside} == {"a commit is accepted, but the assignment of the generation is not taken over yet"}
    assert not any(each.ends for each in outside)
    assert set(owned(run[-1].moved.world.client("s1"))) & set(owned(run[-1].moved.world.client("c1"))) == {"t-0"}


def test_every_run_has_its_counterpart_and_all_actions_and_guards_are_exercised() -> None:
    every_run()
    for name in CONSUMERS:
        every_scenario(name)
    test_a_number_that_is_used_again_stands_for_its_lost_generation()
    test_claims_of_a_lost_generation_are_those_of_its_namesake()
    report = total.report()
    assert set(total.uncovered()) <= NEVER, report
    assert len(total.outside) < 0.005 * total.steps, report


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("old", [False, True])
def test_what_runs_are_held_to_is_proved(static: bool, old: bool) -> None:
    pytest.importorskip("z3")
    system = protocol(static=static, old=old)
    assert prove(system, seeds=(0,)).inductive
    assert ("S2" in system.safety) is (old or not static)


GUILTY = {
    "member-keeps-what-it-must-give-up": ("two-cooperative", ("revoke", "assign"), "what c1-1 owns: the world has {t-0, t-1, t-2}"),
    "member-rejoins-before-revoking": ("two-cooperative", ("revoke", "assign"), "what c1-1 owns: the world has {t-0, t-1, t-2}"),
    "assignor-skips-adjust": ("two-cooperative", ("propose",), "owned(a, p)"),
    "first-of-highest-generation-dropped": ("two-cooperative", ("propose",), "owned(a, p)"),
    "join-phase-does-not-wait": ("two-cooperative", ("complete",), "members: the world has {c1-1, c2-2}, the protocol {c2-2}"),
    "generation-counts-down": ("two-cooperative", ("complete",), "the guard of complete fails: before(generation, g)"),
    "leader-told-of-removed-members": ("patient-session", ("propose",), "choice(m, p) implies member(m)"),
    "join-timer-drops-static-members": ("static-restart", ("complete",), "members: the world has"),
    "static-return-rebalances": (
        "static-restart",
        ("replace_rebalancing",),
        "the guard of replace_rebalancing fails: preparing or completing",
    ),
    "static-return-loses-a-partition": ("static-restart", ("replace_stable",), "assignment of i"),
    "static-replacement-not-stored": ("static-restart", ("replace_stable",), "stored members: the world has"),
    "static-replaced-only-when-stable": ("static-restart", ("replace_rebalancing",), "members: the world has"),
    "commit-of-any-generation": ("mixed", ("commit",), "the guard of commit fails: completed(x) = generation"),
}
"""Defects of clients, assignors and coordinator: a scenario, the actions at fault, what is said."""


SCRIPTS = {
    "leader-told-of-removed-members": "pause c1; start c2; poll c2; arrive c2; return c2; poll c2; arrive c2;"
    "advance; fire join -; return c2; arrive c2",
    "commit-of-any-generation": "pause s1; resize t 4; poll c1; finish c1; arrive c1; advance; fire session c1-1; advance;"
    "fire join -; return c1; arrive c1; store; return c1; poll c1; finish c1; resume s1; commit s1; arrive s1",
}
"""What shows a defect that a random walk rarely meets."""


def walks(name: str, defect: str) -> Iterator[Sequence[Taken]]:
    if defect in SCRIPTS:
        yield list(told(name, SCRIPTS[defect], defect=defect))
        return
    for number in range(50):
        yield list(walk(settled(name, defect=defect), lucky(f"{defect} {number}"), 100))


@pytest.mark.parametrize("defect", GUILTY)
def test_a_defect_has_no_counterpart(defect: str) -> None:
    name, guilty, why = GUILTY[defect]
    failures = (refine((*beginning(name, defect=defect), *steps)).failure for steps in walks(name, defect))
    failure = next(filter(None, failures), None)
    assert failure is not None
    assert tuple(action.partition("(")[0] for action in failure.actions)[-len(guilty) :] == guilty, failure
    assert why in str(failure)


def test_worlds_that_do_not_follow_one_another_have_no_counterpart() -> None:
    other = taken(settled("static-restart"), Line(Crash("s1")))
    failure = refine((*beginning("two-cooperative"), other)).failure
    assert failure is not None
    assert "the world has {i1-1, i2-2}, the protocol {c1-1, c2-2}" in str(failure)
