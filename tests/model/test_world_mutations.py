"""Every documented defect, switched on in the closed world, is found by a rule that it breaks.

Walks are seeded by scenario and number, so a hit is the same every time: ``walked(name, number, mutation)`` runs it again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pytest

from kipcheck.model import assignors, consumer, coordinator
from kipcheck.model.connect.mutations import MUTATIONS as CONNECT
from kipcheck.model.explorer import mutated
from kipcheck.model.mutation import Mutation
from kipcheck.model.runs import replay, resting, walk
from kipcheck.model.scenarios import MAX_DELAY_MS, SCENARIOS, lively
from kipcheck.model.world import Moved
from kipcheck.spec import Settings, check
from kipcheck.spec.events import Event

ASSUMED = Settings(clock_skew_ms=1, max_delay_ms=MAX_DELAY_MS)
MUTATIONS = {m.name: m for m in (*coordinator.MUTATIONS, *coordinator.LATENT, *consumer.MUTATIONS, *assignors.MUTATIONS, *CONNECT)}
WALKS = 40
"""Per scenario."""

WHERE = {
    "protocol-by-majority": ("rolling-upgrade",),
    "revoker-stays": ("patient-session",),
    "trusts-every-claim": ("sticky",),
    "trusts-every-prior-assignment": ("sticky",),
    "only-highest-generation-counts": ("racks", "before-3.4", "static-absent"),
    "rack-mismatch-not-withheld": ("racks",),
    "delay-never-reset": ("connect-scale",),
    "departure-restarts-delay": ("connect-departures",),
    "downgrade-leaks-work": ("connect-downgrade",),
    "duplicates-kept": ("connect-scale",),
    "levels-down-to-floor": ("connect-scale",),
    "never-levels-twice": ("connect-scale",),
}
"""Scenarios in which a defect shows, where few do."""

TOLD = {
    "stable-leader-reassigns": (
        "repeated-sync",
        """
        start c2
        poll c2
        arrive c2
        return c2
        poll c2
        arrive c2
        advance
        beat c1
        arrive c1
        return c1
        poll c1
        finish c1
        arrive c1
        return c1
        return c2
        cut c1
        arrive c2
        poll c1
        poll c1
        arrive c1
        resize t 2
        return c1
        arrive c1
        wander c1#1
        store
        store
        """,
    ),
}
"""Defects that take more luck than a walk has: the scenario, and the run that shows it."""

ELSEWHERE = {
    "loser-becomes-owner": "takes three claims of three generations on one partition: the assignors' own tests have it",
    "departure-restarts-backoff": "takes a departure within the 40 ms of a back-off: the Connect leader's own tests have it",
}


def lucky(seed: str) -> Any:
    chance = random.Random(seed)

    def choose(what: str, options: Sequence[Any], /) -> Any:
        return options[0] if what == "act" and chance.random() < 0.3 else options[chance.randrange(len(options))]

    return choose


@cache
def starting(name: str, mutation: str, *, eventful: bool) -> Moved:
    scenario = lively(SCENARIOS[name]) if eventful else SCENARIOS[name]
    return replace(scenario, world=mutated(scenario.world, mutation)).begin()


def walked(name: str, number: int, mutation: str) -> list[Event]:
    """The trace of one walk of the mutant, and of the rest after it as far as it comes."""
    begun = starting(name, mutation, eventful=number % 2 == 0)
    events, world = list(begun.events), begun.world
    try:
        for taken in walk(world, lucky(f"{name} {number}"), 100):
            events += taken.moved.events
            world = taken.moved.world
        for taken in resting(world, limit=1_000):
            events += taken.moved.events
    except TimeoutError:
        pass
    return events


def traces(mutation: Mutation) -> Iterator[tuple[str, list[Event]]]:
    if mutation.name in TOLD:
        name, script = TOLD[mutation.name]
        begun = starting(name, mutation.name, eventful=False)
        yield name, [*begun.events, *replay(begun.world, script).events]
        return
    connect = mutation in CONNECT
    names = WHERE.get(mutation.name) or tuple(n for n in SCENARIOS if n.startswith("connect") is connect)
    for number, name in product(range(WALKS), names):
        yield f"{name} {number}", walked(name, number, mutation.name)


def finds(mutation: Mutation, events: Sequence[Event]) -> bool:
    settings = replace(ASSUMED, only=frozenset(mutation.breaks))
    return any(group.findings for group in check(events, settings))


@pytest.mark.parametrize("name", [n for n, m in MUTATIONS.items() if m.breaks and n not in ELSEWHERE])
def test_some_run_finds_the_defect_by_a_rule_that_it_breaks(name: str) -> None:
    mutation = MUTATIONS[name]
    assert any(finds(mutation, events) for _, events in traces(mutation)), f"{name} was never found by {mutation.breaks}"


def test_every_exception_is_a_defect_there_is() -> None:
    assert {*WHERE, *TOLD, *ELSEWHERE} <= MUTATIONS.keys()
