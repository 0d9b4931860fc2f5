"""Runs of the protocols told as traces: the monitors find what a mutant breaks, and nothing where nothing is broken."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from itertools import chain, combinations, product

import pytest

pytest.importorskip("z3")

from kipcheck.model.protocol import connect, consumer
from kipcheck.model.protocol import refute as cases
from kipcheck.model.protocol.connect import connect_protocol
from kipcheck.model.protocol.consumer import consumer_protocol
from kipcheck.model.protocol.ground import Trace
from kipcheck.model.protocol.interpreter import Interpreter, State, Step
from kipcheck.model.protocol.language import System
from kipcheck.model.protocol.narrate import narrate
from kipcheck.model.protocol.refute import AnyCase, carried_on, refute
from kipcheck.spec import check
from kipcheck.spec.events import Event, Expire, Sync

MUTANTS: Mapping[str, AnyCase] = {**cases.MUTANTS, **cases.CONNECT_MUTANTS}
POPULAR: Mapping[str, AnyCase] = {**cases.POPULAR, **cases.CONNECT_POPULAR}

BREAKS = {mutation.name: set(mutation.breaks) for mutation in (*connect.MUTATIONS, *consumer.MUTATIONS)}

UNSEEN: Mapping[str, str] = {
    "stale-join-delivered": "its claim is the member's own, and its log says nothing of a generation that it doesn't know",
    "laggard-kept": "the member that is kept is not seen in the generation that it missed: a zombie, as far as logs tell",
    "replacement-not-written": "a failover, which may bring an old id back: what is fenced is judged within one epoch",
    "sync-answered-before-write": "a failover: assignments are compared within one epoch",
    "duplicate-left-with-one-holder": "one worker stops while another runs on: nothing orders the two logs within a generation",
}
"""Mutants whose run shows no error of their rules, and why."""

FREE = {"withheld-partition-reassigned", "connect-balanced"}
"""What the protocols leave to the leader, so that a random leader may do otherwise."""


@cache
def refuted(name: str) -> Trace:
    trace = refute(MUTANTS.get(name) or POPULAR[name])
    assert trace is not None
    return trace


def errors(events: tuple[Event, ...]) -> set[str]:
    return {finding.rule for group in check(events) for finding in group.findings if finding.severity == "error"}


@pytest.mark.parametrize("mutation", MUTANTS)
def test_a_mutant_is_found_in_its_trace(mutation: str) -> None:
    case = MUTANTS[mutation]
    trace = refuted(mutation)
    found = set[str]()
    for rounds in range(2):
        longer, sizes = carried_on(case, trace, rounds)
        found |= errors(narrate(case.system, sizes, longer)) & BREAKS[mutation]
    assert bool(found) is (mutation not in UNSEEN)


def test_which_run_is_found_does_not_depend_on_what_was_asked_before() -> None:
    found = refute(MUTANTS["leader-gives-twice"])
    refute(MUTANTS["both-ids-stay"])
    assert refute(MUTANTS["leader-gives-twice"]) == found


@pytest.mark.parametrize("promise", POPULAR)
def test_what_is_popular_and_false_is_no_error(promise: str) -> None:
    case = POPULAR[promise]
    trace = refuted(promise)
    longer, sizes = carried_on(case, trace, 1)
    assert not errors(narrate(case.system, sizes, longer)) - FREE


WALKS: Mapping[str, tuple[System, dict[str, int], State]] = {
    "connect": (connect_protocol(), {"Member": 3, "Partition": 1}, {"no_delay": frozenset()}),
    "connect without delay": (connect_protocol(), {"Member": 2, "Partition": 1}, {"no_delay": frozenset({()})}),
    "dynamic": (
        consumer_protocol(static=False, partial_loss=False),
        {"Member": 3, "Partition": 2, "Instance": 1},
        {"static": frozenset(), "instance": {(0,): 0, (1,): 0, (2,): 0}},
    ),
    "static": (
        consumer_protocol(partial_loss=False),
        {"Member": 3, "Partition": 2, "Instance": 2},
        {"static": frozenset({(0,), (1,), (2,)}), "instance": {(0,): 0, (1,): 0, (2,): 1}},
    ),
    "mixed": (
        consumer_protocol(partial_loss=False),
        {"Member": 3, "Partition": 1, "Instance": 1},
        {"static": frozenset({(0,), (1,)}), "instance": {(0,): 0, (1,): 0, (2,): 0}},
    ),
}
"""Without failover: there a request of a lost generation may be granted, because its number may be that of the current one."""

SELDOM = {"rejoin": 0.12, "complete": 0.3}
"""Weights of actions that are always possible; those of the environment and of timers get 0.04, others 1."""


def walk(name: str, seed: int, steps: int) -> tuple[dict[str, int], Trace]:
    system, elements, rigid = WALKS[name]
    sizes = {**elements, "Generation": 16}
    chance, interpreter = random.Random(seed), Interpreter(system, sizes)
    state = start = interpreter.initial(rigid)
    taken: list[Step] = []
    while len(taken) < steps:
        left = list(system.actions)
        possible: list[Step] = []
        while left and not possible:
            weights = [SELDOM.get(action.name, 1 if action.role == "protocol" else 0.04) for action in left]
            action = chance.choices(left, weights)[0]
            left.remove(action)
            spaces = [subsets(tuple(interpreter.points(symbol.sorts))) for symbol in action.havoc]
            for arguments, chosen in product(interpreter.points([p.sort for p in action.parameters]), list(product(*spaces))):
                choices = {symbol.name: points for symbol, points in zip(action.havoc, chosen, strict=True)}
                if interpreter.enabled(action, state, arguments, choices):
                    possible.append(Step(action.name, arguments, choices))
        if not possible:
            break
        if possible[0].action == "complete":
            possible = [step for step in possible if step.arguments[0] == possible[0].arguments[0]]
        taken.append(chance.choice(possible))
        state = interpreter.take(state, taken[-1])
    return sizes, Trace(start, tuple(taken))


def subsets(points: tuple[tuple[int, ...], ...]) -> list[frozenset[tuple[int, ...]]]:
    return [frozenset(chosen) for chosen in chain.from_iterable(combinations(points, size) for size in range(len(points) + 1))]


@pytest.mark.parametrize("name", WALKS)
def test_random_runs_have_no_error(name: str) -> None:
    for seed in range(12):
        sizes, trace = walk(name, seed, 100)
        found = errors(narrate(WALKS[name][0], sizes, trace)) - FREE
        assert not found, f"walk({name!r}, {seed}, 100): {found}"


def test_delays_pass_on_the_clock() -> None:
    case = MUTANTS["returning-worker-passed-over"]
    trace = refuted("returning-worker-passed-over")
    longer, sizes = carried_on(case, trace, 0)
    events = narrate(case.system, sizes, longer)
    plans = [event for event in events if isinstance(event, Sync) and event.assignment is not None]
    assert [plan.delay_ms for plan in plans] == [0, 300_000, 0]
    assert plans[1].assignment == {"w1": ("task:A-0",), "w3": ()}
    assert plans[2].ts - plans[1].ts >= 299_990_000
    assert next(event.client for event in events if event.member == "w3") == "worker-2"


def test_a_session_takes_its_time() -> None:
    case = MUTANTS["duplicates-kept"]
    trace = refuted("duplicates-kept")
    events = narrate(case.system, case.sizes, trace)
    gone = next(event for event in events if isinstance(event, Expire))
    heard = [event.ts for event in events[: events.index(gone)] if event.member == gone.member and event.observer == "coordinator"]
    assert gone.ts - heard[-1] >= 1_000_000


def test_a_run_that_cannot_be_told() -> None:
    case = MUTANTS["leader-gives-twice"]
    trace = refuted("leader-gives-twice")
    with pytest.raises(ValueError, match="not enabled"):
        narrate(connect_protocol(), case.sizes, trace)
