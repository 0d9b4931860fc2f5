"""Every documented defect, switched on in the closed world, is found by a rule that it breaks.

Walks are seeded by scenario and number, so a hit is the same every time: ``walked(name, number, mutation)`` runs it again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from kipcheck.model import assignors, consumer, coordinator
from kipcheck.model.connect.mutations import MUTATIONS as CONNECT
from kipcheck.model.explorer import mutated
from kipcheck.model.mutation import Mutation
from kipcheck.model.runs import resting, walk
from kipcheck.model.scenarios import MAX_DELAY_MS, SCENARIOS, lively
from kipcheck.model.world import Moved
from kipcheck.spec import Settings, check
from kipcheck.spec.events import Event

ASSUMED = Settings(clock_skew_ms=1, max_delay_ms=MAX_DELAY_MS)
MUTATIONS = {m.name: m for m in (*coordinator.MUTATIONS, *coordinator.LATENT, *consumer.MUTATIONS, *assignors.MUTATIONS, *CONNECT)}
WALKS = 25
"""Per scenario, where the walk that is known to find the defect no longer does."""

KNOWN = {
    "generation-counts-down": ("two-cooperative", 0),
    "leader-told-of-removed-members": ("patient-session", 1),
    "protocol-by-majority": ("mixed", 0),
    "heartbeat-of-any-generation": ("static-absent", 6),
    "commit-of-any-generation": ("static-restart", 15),
    "join-phase-does-not-wait": ("two-cooperative", 0),
    "join-timer-not-armed": ("mixed", 0),
    "static-replaced-only-when-stable": ("static-absent", 0),
    "replaced-id-keeps-its-session": ("static-twins", 1),
    "static-return-rebalances": ("static-twins", 0),
    "static-return-loses-a-partition": ("static-twins", 0),
    "static-return-answered-while-completing": ("static-twins", 9),
    "join-timer-drops-static-members": ("static-restart", 0),
    "sync-timer-removes-absent-static-member": ("static-restart", 0),
    "missed-sync-loses-everything": ("eager", 1),
    "member-keeps-what-it-must-give-up": ("two-cooperative", 0),
    "member-rejoins-before-revoking": ("two-cooperative", 0),
    "cooperative-member-revokes-everything": ("two-cooperative", 0),
    "revoker-stays": ("two-cooperative", 0),
    "static-member-leaves-on-close": ("static-restart", 0),
    "assignor-skips-adjust": ("two-cooperative", 0),
    "trusts-every-claim": ("static-restart", 8),
    "only-highest-generation-counts": ("before-3.4", 6),
    "rack-mismatch-not-withheld": ("racks", 0),
    "comparison-consumes-user-data": ("eager", 1),
    "trusts-every-prior-assignment": ("static-restart", 8),
    "remembers-highest-generation": ("eager", 1),
    "first-of-highest-generation-dropped": ("two-cooperative", 0),
    "delay-never-reset": ("connect-backoff", 0),
    "duplicates-kept": ("connect-bounce", 6),
    "levels-down-to-floor": ("connect-backoff", 1),
    "first-candidate-takes-all": ("connect-backoff", 9),
    "never-levels-twice": ("connect-departures", 0),
    "departure-restarts-delay": ("connect-backoff", 5),
    "revoked-work-reassigned-at-once": ("connect-departures", 0),
    "lost-work-dealt-under-delay": ("connect-scale", 2),
    "delay-doubled": ("connect-scale", 1),
    "delay-differs": ("connect-departures", 0),
    "lost-work-dealt-to-others": ("connect-backoff", 5),
    "downgrade-leaks-work": ("connect-downgrade", 5),
    "unresolved-round-skips-revocation": ("connect-departures", 0),
}
"""The walk that found each defect last time: scenario and number."""

ELSEWHERE = {
    "stable-leader-reassigns": "takes a leader that decides twice in one generation: the explorer has it, and the coordinator's own tests",
    "reset-skips-join-prepare": "does harm only together with trusts-every-claim: the explorer has the pair",
    "loser-becomes-owner": "takes three claims of three generations on one partition: the assignors' own tests have it",
    "departure-restarts-backoff": "takes a departure within the 40 ms of a back-off: the Connect leader's own tests have it",
}


def lucky(seed: str) -> Any:
    chance = random.Random(seed)

    def choose(what: str, options: Sequence[Any], /) -> Any:
        return options[0] if what == "act" and chance.random() < 0.3 else options[chance.randrange(len(options))]

    return choose


@cache
def starting(name: str, mutation: str, *, eventful: bool = True) -> Moved:
    scenario = lively(SCENARIOS[name]) if eventful else SCENARIOS[name]
    return replace(scenario, world=mutated(scenario.world, mutation)).begin()


def walked(name: str, number: int, mutation: str) -> list[Event]:
    """The trace of one walk of the mutant, and of the rest after it as far as it comes."""
    begun = starting(name, mutation)
    events, world = list(begun.events), begun.world
    try:
        for taken in walk(world, lucky(f"{name} {number}"), 150):
            events += taken.moved.events
            world = taken.moved.world
        for taken in resting(world, limit=1_000):
            events += taken.moved.events
    except TimeoutError:
        pass
    return events


def traces(mutation: Mutation) -> Iterator[tuple[str, list[Event]]]:
    names = [n for n in SCENARIOS if n.startswith("connect") is (mutation in CONNECT)]
    for name, number in (*(known for known in [KNOWN.get(mutation.name)] if known), *((n, k) for k in range(WALKS) for n in names)):
        yield f"{name} {number}", walked(name, number, mutation.name)


def finds(mutation: Mutation, events: Sequence[Event]) -> bool:
    settings = replace(ASSUMED, only=frozenset(mutation.breaks))
    return any(group.findings for group in check(events, settings))


@pytest.mark.parametrize("name", [n for n, m in MUTATIONS.items() if m.breaks and n not in ELSEWHERE])
def test_some_run_finds_the_defect_by_a_rule_that_it_breaks(name: str) -> None:
    mutation = MUTATIONS[name]
    assert any(finds(mutation, events) for _, events in traces(mutation)), f"{name} was never found by {mutation.breaks}"


def test_every_exception_is_a_defect_there_is() -> None:
    assert {*KNOWN, *ELSEWHERE} <= MUTATIONS.keys()
