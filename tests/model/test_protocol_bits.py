"""Generated code against the interpreter: guards, updates and properties agree on random and on reachable states."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

from kipcheck.model.protocol.bits import NEW, Atom, Code, compile_system  # noqa: E402
from kipcheck.model.protocol.connect import connect_protocol  # noqa: E402
from kipcheck.model.protocol.consumer import consumer_protocol  # noqa: E402
from kipcheck.model.protocol.interpreter import Interpreter, State  # noqa: E402
from kipcheck.model.protocol.language import BOOL, System  # noqa: E402
from kipcheck.model.protocol.search import Generated, explore, ones, rigid_state, size_of  # noqa: E402

LAGS = 2
SYSTEMS = {
    "dynamic": (consumer_protocol(static=False), ()),
    "static": (consumer_protocol(), (0, 0)),
    "connect": (connect_protocol(), ()),
}


class Instance:
    """A system with two members and one partition, compiled with all bits, and its interpreter."""

    def __init__(self, system: System, instances: tuple[int, ...]) -> None:
        self.system = system
        size = size_of(system, members=2, partitions=1, instances=instances, lags=LAGS)
        self.properties = {**system.safety, **system.popular}
        self.code = compile_system(system, size, self.properties, everything=True)
        self.functions = self.code.functions(lambda truth: -int(truth))
        self.columns = self.code.functions(ones)
        self.rigid = rigid_state(system, size)
        self.interpreter = Interpreter(system, {**size.elements, "Generation": LAGS + 2})
        (order,) = system.ordered
        self.oldest = order.least.name
        action, parameter = system.next_generation or ("", "")
        self.starts = action
        self.current = next(u.symbol for u in system.action(action).updates if str(u.value) == parameter)

    def words(self, state: State) -> tuple[int, ...]:
        """The state, packed."""
        (now,) = state[self.current.name].values()  # pyright: ignore[reportAttributeAccessIssue]
        atoms = {Atom(self.oldest, (), min(now, LAGS))}
        for symbol in self.system.state:
            if symbol is self.current:
                continue
            table = state[symbol.name]
            for point in table:
                lagged = tuple(_lag(now, v) if sort == "Generation" else v for v, sort in zip(point, symbol.sorts, strict=True))
                if symbol.result == BOOL:
                    atoms.add(Atom(symbol.name, lagged))
                else:
                    value = table[point]  # pyright: ignore[reportArgumentType, reportIndexIssue, reportCallIssue]
                    atoms.add(Atom(symbol.name, lagged, _lag(now, value) if symbol.result == "Generation" else value))
        return self.code.words(atoms)

    def check(self, state: State) -> None:
        """Everything the two say about the state."""
        (now,) = state[self.current.name].values()  # pyright: ignore[reportAttributeAccessIssue]
        words = self.words(state)
        enabled = self.functions["guards"](*words)
        row = [np.array([word], np.uint64) for word in words]
        assert [bool(np.all(truth)) for truth in self.columns["guards"](*row)] == [bool(truth) for truth in enabled]
        observed = dict(zip(self.properties, self.functions["observe"](*words), strict=True))
        for name, formula in self.properties.items():
            assert observed[name] == self.interpreter.holds(formula, state), name
        moves = set(self.code.moves)
        for at, move in enumerate(self.code.moves):
            action = self.system.action(move.action)
            point = tuple(
                now - argument if variable.sort == "Generation" else argument
                for variable, argument in zip(action.parameters, move.arguments, strict=True)
            )
            if min(point, default=0) < 0:
                continue
            choices = {s.name: frozenset(a.arguments for a in move.havoc if a.symbol == s.name) for s in action.havoc}
            assert bool(enabled[at]) == self.interpreter.enabled(action, state, point, choices), move
            if enabled[at]:
                after = self.words(self.interpreter.apply(action, state, point, choices))
                assert self.functions[f"update{at}"](*words) == after, move
                assert tuple(int(np.asarray(w).ravel()[0]) for w in self.columns[f"update{at}"](*row)) == after, move
        for step in self.interpreter.steps(state):
            action = self.system.action(step.action)
            lagged = tuple(
                (NEW if v > now else now - v) if variable.sort == "Generation" else v
                for variable, v in zip(action.parameters, step.arguments, strict=True)
            )
            havoc = frozenset(Atom(name, point) for name, points in step.choices.items() for point in points)
            changes = self.words(self.interpreter.take(state, step)) != words
            if changes and not (step.action == self.starts and step.arguments != (now + 1,)):
                assert any((m.action, m.arguments, frozenset(m.havoc)) == (step.action, lagged, havoc) for m in moves), step


def _lag(now: int, generation: int) -> int:
    return min(now - generation, LAGS)


INSTANCES = {name: Instance(system, instances) for name, (system, instances) in SYSTEMS.items()}


@st.composite
def states(draw: st.DrawFn, instance: Instance) -> State:
    """Any state whose generations are not later than the current one and not so old that lags saturate."""
    now = draw(st.integers(0, LAGS))
    bits = draw(st.randoms(use_true_random=False))
    state: dict[str, Any] = dict(instance.rigid)
    for symbol in instance.system.state:
        domains = [range(now + 1) if s == "Generation" else range(instance.interpreter.sizes[s]) for s in symbol.sorts]
        points = list(itertools.product(*domains))
        if symbol is instance.current:
            state[symbol.name] = {(): now}
        elif symbol.result == BOOL:
            state[symbol.name] = frozenset(point for point in points if bits.random() < 0.5)
        else:
            state[symbol.name] = {point: bits.randint(0, now) for point in points}
    return state


@pytest.mark.parametrize("name", SYSTEMS)
def test_random_states(name: str) -> None:
    instance = INSTANCES[name]

    @settings(derandomize=True, deadline=None, max_examples=25)
    @given(states(instance))
    def agrees(state: State) -> None:
        instance.check(state)

    agrees()


@pytest.mark.parametrize("name", SYSTEMS)
def test_states_on_random_walks(name: str) -> None:
    instance = INSTANCES[name]

    @settings(derandomize=True, deadline=None, max_examples=8)
    @given(st.randoms(use_true_random=False))
    def agrees(chance: Any) -> None:
        state = instance.interpreter.initial(instance.rigid)
        assert instance.words(state) == instance.code.initial
        for _ in range(20):
            instance.check(state)
            (now,) = state[instance.current.name].values()  # pyright: ignore[reportAttributeAccessIssue]
            steps = [s for s in instance.interpreter.steps(state) if s.action != instance.starts or s.arguments[-1] == now + 1 <= LAGS]
            if not steps:
                return
            state = instance.interpreter.take(state, chance.choice(steps))

    agrees()


def _reachable(code: Code) -> int:
    return explore(Generated(code)).states


def test_bits_that_nobody_reads_are_dropped_without_changing_the_answer() -> None:
    system = consumer_protocol(static=False, partial_loss=False, commits=False, mutations=frozenset({"laggard-kept"}))
    size = size_of(system, members=2, partitions=1, lags=1)
    asked = {"S2": system.safety["S2"]}
    lean, full = (compile_system(system, size, asked, everything=everything) for everything in (False, True))
    assert len(lean.layout.places) < len(full.layout.places)
    depths = [explore(Generated(code), always=("S2",)).depth for code in (lean, full)]
    assert depths[0] == depths[1]


def test_generated_code_is_the_same_in_every_process() -> None:
    system = consumer_protocol(static=False)
    size = size_of(system, members=2, partitions=1)
    first, again = (compile_system(system, size, {"S2": system.safety["S2"]}).source for _ in range(2))
    assert first == again
