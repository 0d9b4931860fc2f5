"""The vectorised search against plain Python searches: exact counts, orbits, shortest counterexamples, bounds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

from kipcheck.model.protocol.bits import compile_system  # noqa: E402
from kipcheck.model.protocol.connect import connect_protocol  # noqa: E402
from kipcheck.model.protocol.consumer import consumer_protocol  # noqa: E402
from kipcheck.model.protocol.interpreter import Interpreter, State  # noqa: E402
from kipcheck.model.protocol.search import (  # noqa: E402
    Columns,
    Exploration,
    Generated,
    Visited,
    explore,
    fingerprint,
    rigid_state,
    search,
    size_of,
)
from kipcheck.model.protocol.symmetry import Canonical, Reduced, confluent_actions, member_classes  # noqa: E402


class Grid:
    """Two counters below 64 that go up one by one."""

    observed = ("small", "corner")

    def initial(self) -> Columns:
        return (np.zeros(1, np.uint64), np.zeros(1, np.uint64))

    def after(self, columns: Columns, step: int) -> Columns:
        return tuple(column + np.uint64(at == step) for at, column in enumerate(columns))

    def successors(self, columns: Columns) -> Any:
        rows = [np.flatnonzero(column < 63) for column in columns]
        parts = [self.after(tuple(column[chosen] for column in columns), step) for step, chosen in enumerate(rows)]
        steps = np.concatenate([np.full(chosen.size, step, np.uint16) for step, chosen in enumerate(rows)])
        return tuple(np.concatenate(words) for words in zip(*parts, strict=True)), np.concatenate(rows), steps

    def observe(self, columns: Columns) -> Any:
        x, y = columns
        return [x + y < 40, (x == 63) & (y == 63)]

    def canonical(self, columns: Columns) -> Columns:
        return columns

    def unfold(self, state: Columns) -> Iterable[Columns]:
        return ()


def test_every_state_once() -> None:
    found = explore(Grid())
    assert (found.states, found.transitions, found.depth, found.why) == (64 * 64, 2 * 64 * 63, 126, "exhausted")


def test_shortest_way_to_a_violation_and_to_a_goal() -> None:
    found = explore(Grid(), always=("small",), sometimes=("corner",))
    assert found.why == "violated"
    assert {name: len(path) - 1 for name, path in found.paths.items()} == {"small": 40, "corner": 126}
    path = found.paths["corner"]
    assert path[0] == (0, 0)
    assert path[-1] == (63, 63)
    assert all(sum(b) - sum(a) == 1 for a, b in itertools.pairwise(path))


def test_bounds_stop_the_search() -> None:
    assert explore(Grid(), max_states=100).why == "states"
    assert explore(Grid(), max_memory=1_000).why == "memory"
    assert explore(Grid(), max_memory=1 << 30).complete


def test_progress_is_told() -> None:
    told: list[int] = []
    explore(Grid(), progress=lambda progress: told.append(progress.states))
    assert told == sorted(told)
    assert told[-1] == 64 * 64


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(1, 2**64 - 1) | st.integers(1, 50), max_size=60), max_size=6))
def test_visited_is_a_set(batches: list[list[int]]) -> None:
    visited, known = Visited(log2=2), set[int]()
    for batch in batches:
        new = [at for at, key in enumerate(batch) if key not in known and key not in batch[:at]]
        assert visited.add(np.array(batch, np.uint64)).tolist() == new
        known |= set(batch)
    assert visited.count == len(known)


def test_colliding_homes_and_growth() -> None:
    keys = np.arange(1, 5001, dtype=np.uint64)
    visited = Visited(log2=4)
    assert visited.add(keys).size == 5000
    assert visited.add(keys).size == 0
    assert visited.count == 5000


def test_fingerprints_tell_near_states_apart() -> None:
    grid = np.arange(1 << 16, dtype=np.uint64)
    columns = (grid & np.uint64(255), grid >> np.uint64(8) << np.uint64(40), grid & np.uint64(0))
    for order in ((0, 1, 2), (1, 0, 2), (2, 1, 0)):
        assert np.sort(fingerprint(tuple(columns[at] for at in order))).size == np.unique(fingerprint(columns)).size


SMALL = consumer_protocol(static=False, partial_loss=False, commits=False)
FAULTS = {"crash", "reset", "empty", "lose_join_request"}
CALM = replace(SMALL, actions=tuple(action for action in SMALL.actions if action.name not in FAULTS))
ASKED = {"S2": SMALL.safety["S2"]}


def _plain_search(generations: int) -> tuple[int, int]:
    """States and depth, by the interpreter and a set of tuples."""
    size = size_of(CALM, members=2, partitions=1)
    interpreter = Interpreter(CALM, {**size.elements, "Generation": generations})

    def key(state: State) -> tuple[Any, ...]:
        return tuple(tuple(sorted(t.items())) if isinstance(t, Mapping) else t for t in (state[s.name] for s in CALM.state))

    first = interpreter.initial(rigid_state(CALM, size))
    seen, level, depth = {key(first)}, [first], 0
    while level:
        following: list[State] = []
        for state in level:
            now = state["generation"][()]  # pyright: ignore[reportArgumentType, reportIndexIssue, reportCallIssue]
            for step in interpreter.steps(state):
                if step.action == "complete" and step.arguments != (now + 1,):
                    continue
                after = interpreter.take(state, step)
                if key(after) not in seen:
                    seen.add(key(after))
                    following.append(after)
        level = following
        depth += bool(level)
    return len(seen), depth


def test_exact_count_of_a_plain_search() -> None:
    generations = 2
    size = size_of(CALM, members=2, partitions=1, generations=generations)
    found = explore(Generated(compile_system(CALM, size, {}, everything=True)))
    assert (found.states, found.depth) == _plain_search(generations)


def _explore(symmetry: bool, confluent: bool, members: int = 2, partitions: int = 1, keep: bool = False) -> tuple[Exploration, Any]:
    code = compile_system(SMALL, size_of(SMALL, members=members, partitions=partitions, lags=1), ASKED)
    actions = frozenset[str]()
    if confluent:
        actions = confluent_actions(compile_system(SMALL, size_of(SMALL, members=2, partitions=1, lags=1), ASKED))
        assert actions
    machine = Reduced(code, symmetry=symmetry, confluent=actions)
    return explore(machine, always=("S2",), keep=keep), code


@pytest.mark.parametrize(("members", "partitions"), [(2, 2)])
def test_the_quotient_has_one_state_per_orbit(members: int, partitions: int) -> None:
    full, code = _explore(symmetry=False, confluent=False, members=members, partitions=partitions, keep=True)
    columns = tuple(np.concatenate(column) for column in zip(*full.levels, strict=True))
    orbits = len(set(zip(*(column.tolist() for column in Canonical(code)(columns)), strict=True)))
    quotient, _ = _explore(symmetry=True, confluent=False, members=members, partitions=partitions)
    assert quotient.states == orbits < full.states
    assert quotient.depth == full.depth


def test_representatives_are_the_least_of_all_permuted_states() -> None:
    code = compile_system(SMALL, size_of(SMALL, members=3, partitions=3, lags=1), ASKED)
    chance = np.random.default_rng(0)
    width = max(bit for word, bit in code.layout.places.values() if word) + 1
    columns = tuple(chance.integers(0, 1 << (width if at else 4), 200, dtype=np.uint64) for at in range(code.layout.words))
    canonical = Canonical(code)
    least = canonical(columns)
    swapped = (columns[0], columns[2], columns[3], columns[1])
    for same in (least, canonical(swapped), canonical(least)):
        assert all((a == b).all() for a, b in zip(least, canonical(same), strict=True))


def test_members_are_exchanged_within_their_instance_only() -> None:
    system = consumer_protocol()
    size = size_of(system, members=5, partitions=1, instances=(0, 0, 1, None, None))
    assert member_classes(system, size) == [[0, 1], [2], [3, 4]]


def test_reductions_keep_the_verdict_and_what_is_reachable() -> None:
    results = [_explore(symmetry, confluent)[0] for symmetry in (False, True) for confluent in (False, True)]
    assert [result.why for result in results] == ["exhausted"] * 4
    assert not any(result.paths for result in results)
    assert results[3].states < results[1].states < results[0].states


COUNTEREXAMPLES = [
    ("assignor-skips-adjust", "S2", (), 20),
    ("older-claims-ignored", "S2", (), 31),
    ("both-ids-stay", "S1", (0, 0), 7),
    ("", "S2mem", (0, 1), 18),
    ("", "S3lit", (0, 1), 9),
]


@pytest.mark.parametrize(("mutation", "broken", "instances", "steps"), COUNTEREXAMPLES)
def test_shortest_counterexamples(mutation: str, broken: str, instances: tuple[int, ...], steps: int) -> None:
    mutations = frozenset({mutation} - {""})
    system = consumer_protocol(static=bool(instances), partial_loss=False, commits=False, mutations=mutations)
    formula = {**system.safety, **system.popular}[broken]
    result = search(system, members=2, partitions=1, instances=instances, properties={broken: formula})
    assert result.verdicts == {broken: "violated"}
    run = result.runs[broken]
    assert run.confirmed
    assert len(run.steps) == steps
    interpreter = Interpreter(system, {"Member": 2, "Partition": 1, "Instance": 2, "Generation": steps})
    assert [interpreter.holds(formula, state) for state in run.states] == [True] * steps + [False]


@pytest.mark.parametrize(
    ("mutation", "broken", "generations", "steps"),
    [("leader-gives-twice", "connect-exclusive-work", 3, 10), ("lost-work-given-at-once", "connect-lost-work-withheld", 4, 11)],
)
def test_connect_mutants_are_found(mutation: str, broken: str, generations: int, steps: int) -> None:
    system = connect_protocol(mutations=frozenset({mutation}))
    asked = {broken: system.safety[broken]}
    result = search(system, members=2, partitions=1, generations=generations, properties=asked)
    assert result.verdicts == {broken: "violated"}
    assert result.runs[broken].confirmed
    assert len(result.runs[broken].steps) == steps


def test_connect_holds_in_every_state_of_three_generations() -> None:
    result = search(connect_protocol(), members=2, partitions=1, generations=3)
    assert result.complete
    assert set(result.verdicts.values()) == {"holds"}
    assert result.states == 145_126


def test_plans_of_merged_generations_decide_nothing() -> None:
    """Of old generations only the union of their plans is known: what it breaks is not confirmed."""
    system = connect_protocol()
    result = search(system, members=2, partitions=1, lags=1, properties={"once": system.safety["connect-granted-to-one"]})
    assert result.verdicts == {"once": "undecided"}
    assert not result.runs["once"].confirmed


def test_goals_and_what_is_undecided() -> None:
    stable = SMALL.symbol("stable")
    settled = SMALL.symbol("settled")
    from kipcheck.model.protocol.language import exists, forall, land, lnot

    everybody = land(stable(), forall("Member", lambda m: settled(m)))
    both = exists("Member", lambda m: land(SMALL.symbol("fresh")(m), settled(m)))
    result = search(SMALL, members=2, partitions=1, properties={}, goals={"everybody": everybody, "never": both})
    assert result.verdicts == {"everybody": "reached", "never": "unreached"}
    assert result.complete
    assert result.runs["everybody"].confirmed
    short = search(SMALL, members=2, partitions=1, goals={"never": both}, properties={"not-all": lnot(both)}, max_states=1000)
    assert short.verdicts == {"not-all": "undecided", "never": "undecided"}
    assert short.why == "states"
