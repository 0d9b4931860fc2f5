"""The interpreter, the SAT grounding and Z3 with quantifiers say the same of guards, updates and properties, in any state.

States are random, not reachable ones. Hypothesis runs derandomized: a failure names its state and fails again.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.model.protocol.consumer import consumer_protocol
from kipcheck.model.protocol.ground import Grounding
from kipcheck.model.protocol.interpreter import Interpreter, State
from kipcheck.model.protocol.language import BOOL, Action, Node, Symbol, Variable, lnot, weakest_precondition
from kipcheck.model.protocol.quantified import Translation, z3

pytest.importorskip("z3")

SYSTEM = consumer_protocol(failover=True)
SIZES = {"Member": 2, "Partition": 2, "Generation": 3, "Instance": 2}
INTERPRETER = Interpreter(SYSTEM, SIZES)
ORDERS = {symbol for order in SYSTEM.ordered for symbol in (order.less, order.least)}
HAVOC = tuple(symbol for action in SYSTEM.actions for symbol in action.havoc)
SYMBOLS = tuple(symbol for symbol in (*SYSTEM.rigid, *SYSTEM.state, *HAVOC) if symbol not in ORDERS)
PROPERTIES = {**SYSTEM.safety, **SYSTEM.popular, **SYSTEM.invariants}


@st.composite
def states(draw: st.DrawFn) -> State:
    """Any structure over `SIZES`."""
    state: dict[str, Any] = {}
    for symbol in SYMBOLS:
        points = list(INTERPRETER.points(symbol.sorts))
        values = draw(st.integers(0, (2 if symbol.result == BOOL else SIZES[symbol.result]) ** len(points) - 1))
        base = 2 if symbol.result == BOOL else SIZES[symbol.result]
        digits = [values // base**at % base for at in range(len(points))]
        if symbol.result == BOOL:
            state[symbol.name] = frozenset(point for point, digit in zip(points, digits, strict=True) if digit)
        else:
            state[symbol.name] = dict(zip(points, digits, strict=True))
    return state


def atoms_of(state: State) -> Mapping[tuple[Symbol, tuple[int, ...]], Any]:
    known: dict[tuple[Symbol, tuple[int, ...]], Any] = {}
    for symbol in SYMBOLS:
        values = state[symbol.name]
        for point in INTERPRETER.points(symbol.sorts):
            if isinstance(values, Mapping):
                known[symbol, point] = {value: values[point] == value for value in range(SIZES[symbol.result])}
            else:
                known[symbol, point] = point in values
    return known


def environments(action: Action) -> Iterable[dict[Variable, int]]:
    for point in product(*(range(SIZES[parameter.sort]) for parameter in action.parameters)):
        yield dict(zip(action.parameters, point, strict=True))


@settings(derandomize=True, deadline=None, max_examples=12)
@given(states())
def test_grounding_and_interpreter_agree_on_guards_and_properties(state: State) -> None:
    ground = Grounding(SYSTEM, SIZES, atoms_of(state))
    for name, formula in PROPERTIES.items():
        assert ground.formula(formula, {}) == INTERPRETER.holds(formula, state), name
    for action in SYSTEM.actions:
        for environment in environments(action):
            assert ground.formula(action.guard, environment) == INTERPRETER.enabled(action, state, tuple(environment.values())), action.name


@settings(derandomize=True, deadline=None, max_examples=8)
@given(states(), st.data())
def test_grounding_and_interpreter_agree_on_updates(state: State, data: st.DataObject) -> None:
    ground = Grounding(SYSTEM, SIZES, atoms_of(state))
    for action in SYSTEM.actions:
        environment = data.draw(st.sampled_from(list(environments(action))), action.name)
        after = INTERPRETER.apply(action, state, tuple(environment.values()))
        for update in action.updates:
            values = after[update.symbol.name]
            for point, new in ground.updated(update, environment).items():
                expected = {value: value == values[point] for value in new} if isinstance(values, Mapping) else point in values
                assert new == expected, (action.name, update.symbol.name, point)


@settings(derandomize=True, deadline=None, max_examples=6)
@given(states(), st.data())
def test_weakest_preconditions_speak_of_the_state_after(state: State, data: st.DataObject) -> None:
    for action in SYSTEM.actions:
        environment = data.draw(st.sampled_from(list(environments(action))), action.name)
        after = INTERPRETER.apply(action, state, tuple(environment.values()))
        for name, formula in PROPERTIES.items():
            before = weakest_precondition(action, formula)
            assert INTERPRETER.holds(before, state, environment) == INTERPRETER.holds(formula, after), (action.name, name)


@settings(derandomize=True, deadline=None, max_examples=5)
@given(states(), st.data())
def test_quantified_and_interpreter_agree(state: State, data: st.DataObject) -> None:
    """Z3 is told the whole structure and the truth of every formula in it, and must not object."""
    translation = Translation(SYSTEM)
    elements = {sort: [z3().Const(f"{sort}{at}", translation.sorts[sort]) for at in range(size)] for sort, size in SIZES.items()}
    solver = translation.solver((), 0, 60)
    for sort, named in elements.items():
        some = z3().Const("some", translation.sorts[sort])
        solver.add(z3().Distinct(*named), z3().ForAll([some], z3().Or(*(some == element for element in named))))
    for symbol in (*SYMBOLS, *ORDERS):
        for point in INTERPRETER.points(symbol.sorts):
            term = translation.function(symbol)(*(elements[sort][at] for sort, at in zip(symbol.sorts, point, strict=True)))
            value = _interpreted(state, symbol, point)
            solver.add(term == (value if symbol.result == BOOL else elements[symbol.result][value]))

    def told(formula: Node, environment: Mapping[Variable, int]) -> None:
        truth = INTERPRETER.holds(formula, state, environment)
        expression = translation.term(formula if truth else lnot(formula))
        solver.add(z3().substitute(expression, *((translation.term(v), elements[v.sort][at]) for v, at in environment.items())))

    for formula in (*SYSTEM.axioms, *PROPERTIES.values()):
        told(formula, {})
    for action in SYSTEM.actions:
        environment = data.draw(st.sampled_from(list(environments(action))), action.name)
        told(action.guard, environment)
        told(weakest_precondition(action, PROPERTIES["S8"]), environment)
    assert str(solver.check()) == "sat"


def _interpreted(state: State, symbol: Symbol, point: tuple[int, ...]) -> Any:
    for order in SYSTEM.ordered:
        if symbol is order.less:
            return point[0] < point[1]
        if symbol is order.least:
            return 0
    values = state[symbol.name]
    return values[point] if isinstance(values, Mapping) else point in values


def test_steps_of_the_interpreter_are_those_that_are_enabled() -> None:
    start = INTERPRETER.initial({"static": frozenset({(0,)}), "instance": {(0,): 0, (1,): 1}})
    assert sorted(map(str, INTERPRETER.steps(start))) == ["failover()", "start(0)", "start(1)"]
    after = INTERPRETER.take(start, next(step for step in INTERPRETER.steps(start) if step.action == "start"))
    assert {step.action for step in INTERPRETER.steps(after)} == {"failover", "start", "join_new", "lose_join_request", "reset", "crash"}
    with pytest.raises(ValueError, match="not enabled"):
        INTERPRETER.take(after, next(step for step in INTERPRETER.steps(start) if step.action == "start"))
