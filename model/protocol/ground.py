"""Bounded runs by SAT: a system over small sorts, unrolled step by step.

Every atom of every step is a Boolean or a constant; a step takes exactly one action. A run that is found is replayed by the
interpreter before anybody hears of it, so that the two backends vouch for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from .interpreter import Interpreter, Point, State, Step
from .language import (
    BOOL,
    And,
    Apply,
    Equal,
    If,
    Node,
    Not,
    Or,
    Quantified,
    Sort,
    Symbol,
    System,
    Truth,
    Update,
    Variable,
    lnot,
)
from .quantified import z3

Literal = Any
"""A Z3 Boolean, or a Python bool for what is known."""
Atoms = Mapping[tuple[Symbol, Point], Any]
"""Relation: a `Literal`. Function: value -> `Literal`."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A run from ``start``; its last state is the one that was asked for."""

    start: State
    steps: tuple[Step, ...]

    def states(self, interpreter: Interpreter) -> tuple[State, ...]:
        """All states, the first included. Raises ValueError if a step can't be taken."""
        states = [self.start]
        for step in self.steps:
            states.append(interpreter.take(states[-1], step))
        return tuple(states)


def conjunction(parts: Iterable[Literal]) -> Literal:
    kept: list[Literal] = []
    for part in parts:
        if part is False:
            return False
        if part is not True:
            kept.append(part)
    return z3().And(*kept) if len(kept) > 1 else kept[0] if kept else True


def disjunction(parts: Iterable[Literal]) -> Literal:
    kept: list[Literal] = []
    for part in parts:
        if part is True:
            return True
        if part is not False:
            kept.append(part)
    return z3().Or(*kept) if len(kept) > 1 else kept[0] if kept else False


def negation(part: Literal) -> Literal:
    return not part if isinstance(part, bool) else z3().Not(part)


class Grounding:
    """Formulas over sorts of given sizes as Booleans over the atoms of one state."""

    def __init__(self, system: System, sizes: Mapping[Sort, int], atoms: Atoms) -> None:
        self._system, self._sizes, self._atoms = system, sizes, atoms
        self._orders = {symbol: order for order in system.ordered for symbol in (order.less, order.least)}

    def formula(self, node: Node, environment: Mapping[Variable, int]) -> Literal:
        match node:
            case Truth(value):
                return value
            case Apply(symbol, arguments):
                return disjunction(
                    conjunction((when, self._relation(symbol, point))) for when, point in self._points(arguments, environment)
                )
            case Equal(left, right):
                rights = dict[int, list[Literal]]()
                for when, value in self.term(right, environment):
                    rights.setdefault(value, []).append(when)
                lefts = self.term(left, environment)
                return disjunction(conjunction((one, other)) for one, value in lefts for other in rights.get(value, ()))
            case Not(body):
                return negation(self.formula(body, environment))
            case And(parts):
                return conjunction(self.formula(part, environment) for part in parts)
            case Or(parts):
                return disjunction(self.formula(part, environment) for part in parts)
            case Quantified(kind, variables, body):
                points = product(*(range(self._sizes[variable.sort]) for variable in variables))
                each = (self.formula(body, {**environment, **dict(zip(variables, point, strict=True))}) for point in points)
                return conjunction(each) if kind == "forall" else disjunction(each)
            case _:
                raise TypeError(node)

    def term(self, node: Node, environment: Mapping[Variable, int]) -> list[tuple[Literal, int]]:
        """The values that the term may have, each with its condition."""
        match node:
            case Variable():
                return [(True, environment[node])]
            case Apply(symbol, arguments):
                if symbol in self._orders:
                    return [(True, 0)]
                found = (
                    (conjunction((when, holds)), value)
                    for when, point in self._points(arguments, environment)
                    for value, holds in self._atoms[symbol, point].items()
                )
                return [(when, value) for when, value in found if when is not False]
            case If(condition, then, otherwise):
                chosen = self.formula(condition, environment)
                branches = ((chosen, then), (negation(chosen), otherwise))
                found = (
                    (conjunction((when, holds)), value)
                    for when, branch in branches
                    if when is not False
                    for holds, value in self.term(branch, environment)
                )
                return [(when, value) for when, value in found if when is not False]
            case _:
                raise TypeError(node)

    def _points(self, arguments: tuple[Node, ...], environment: Mapping[Variable, int]) -> list[tuple[Literal, Point]]:
        points: list[tuple[Literal, Point]] = [(True, ())]
        for argument in arguments:
            values = self.term(argument, environment)
            points = [(conjunction((when, holds)), (*point, value)) for when, point in points for holds, value in values]
        return [(when, point) for when, point in points if when is not False]

    def _relation(self, symbol: Symbol, point: Point) -> Literal:
        if symbol in self._orders:
            return point[0] < point[1]
        return self._atoms[symbol, point]

    def updated(self, update: Update, environment: Mapping[Variable, int]) -> dict[Point, Any]:
        """The new atoms of the symbol, by point."""
        new: dict[Point, Any] = {}
        for point in product(*(range(self._sizes[variable.sort]) for variable in update.variables)):
            here = {**environment, **dict(zip(update.variables, point, strict=True))}
            if update.symbol.result == BOOL:
                new[point] = self.formula(update.value, here)
            else:
                found: dict[int, list[Literal]] = {}
                for when, value in self.term(update.value, here):
                    found.setdefault(value, []).append(when)
                new[point] = {value: disjunction(found.get(value, ())) for value in range(self._sizes[update.symbol.result])}
        return new


class Unrolling:
    """All runs of a system from one state. ``steps`` counts those unrolled so far.

    It has a Z3 context of its own: which of several runs is found does not depend on what Z3 was asked before.
    """

    def __init__(self, system: System, sizes: Mapping[Sort, int], start: State) -> None:
        self.system, self.sizes, self.start = system, dict(sizes), start
        self._interpreter = Interpreter(system, sizes)
        self._context = z3().Context()
        self._solver = z3().SolverFor("QF_FD", ctx=self._context)
        rigid = {symbol.name for symbol in system.rigid}
        symbols = [symbol for symbol in (*system.rigid, *system.state) if symbol.name in start]
        self._rigid = {key: value for key, value in self._known(symbols).items() if key[0].name in rigid}
        self._state: dict[tuple[Symbol, Point], Any] = {
            key: value for key, value in self._known(symbols).items() if key[0].name not in rigid
        }
        self._taken: list[list[tuple[Literal, str, Point, dict[str, dict[Point, Literal]]]]] = []

    @property
    def steps(self) -> int:
        return len(self._taken)

    def _atom(self, name: str) -> Literal:
        return z3().Bool(name, self._context)

    def _known(self, symbols: Iterable[Symbol]) -> dict[tuple[Symbol, Point], Any]:
        atoms: dict[tuple[Symbol, Point], Any] = {}
        for symbol in symbols:
            given = self.start[symbol.name]
            for point in self._interpreter.points(symbol.sorts):
                if isinstance(given, Mapping):
                    atoms[symbol, point] = {value: given[point] == value for value in range(self.sizes[symbol.result])}
                else:
                    atoms[symbol, point] = point in given
        return atoms

    def extend(self) -> None:
        """Unroll one more step."""
        at = self.steps
        instances: list[tuple[Literal, str, Point, dict[str, dict[Point, Literal]]]] = []
        changes: dict[tuple[Symbol, Point], list[tuple[Literal, Any]]] = {}
        for action in self.system.actions:
            havoc = {
                symbol: {point: self._atom(f"{at}:{symbol.name}{point}") for point in self._interpreter.points(symbol.sorts)}
                for symbol in action.havoc
            }
            chosen = {(symbol, point): atom for symbol, atoms in havoc.items() for point, atom in atoms.items()}
            ground = Grounding(self.system, self.sizes, {**self._rigid, **self._state, **chosen})
            earlier: list[Literal] = []
            starts_generation = self.system.next_generation is not None and action.name == self.system.next_generation[0]
            for arguments in self._interpreter.points([parameter.sort for parameter in action.parameters]):
                environment = dict(zip(action.parameters, arguments, strict=True))
                guard = ground.formula(action.guard, environment)
                if guard is False:
                    continue
                taken = self._atom(f"{at}:{action.name}{arguments}")
                self._solver.add(z3().Implies(taken, conjunction((guard, *(map(negation, earlier) if starts_generation else ())))))
                earlier.append(guard)
                instances.append((taken, action.name, arguments, {symbol.name: atoms for symbol, atoms in havoc.items()}))
                for update in action.updates:
                    for point, new in ground.updated(update, environment).items():
                        changes.setdefault((update.symbol, point), []).append((taken, new))
        self._solver.add(z3().PbEq([(taken, 1) for taken, *_ in instances], 1))
        self._state = {key: self._next(key, now, changes.get(key, []), at + 1) for key, now in self._state.items()}
        self._taken.append(instances)

    def _next(self, key: tuple[Symbol, Point], now: Any, changes: list[tuple[Literal, Any]], at: int) -> Any:
        name = f"{at}:{key[0].name}{key[1]}"
        if key[0].result == BOOL:
            return self._defined(name, now, changes)
        return {
            value: self._defined(f"{name}={value}", holds, [(taken, new[value]) for taken, new in changes]) for value, holds in now.items()
        }

    def _defined(self, name: str, now: Literal, changes: list[tuple[Literal, Literal]]) -> Literal:
        """The atom's next value: as the action that is taken says, else as it was."""
        changes = [(taken, new) for taken, new in changes if new is not now]
        if not changes:
            return now
        atom = self._atom(name)
        for taken, new in changes:
            self._solver.add(z3().Implies(taken, atom == new))
        self._solver.add(z3().Or(*(taken for taken, _ in changes), atom == now))
        return atom

    def reach(self, formula: Node, timeout: float) -> Trace | None:
        """A run of exactly `steps` steps into ``formula``, if there is one. Raises TimeoutError after ``timeout`` seconds."""
        goal = Grounding(self.system, self.sizes, {**self._rigid, **self._state}).formula(formula, {})
        if goal is False:
            return None
        self._solver.push()
        self._solver.add(goal)
        self._solver.set("timeout", max(1, int(timeout * 1000)))
        answer = str(self._solver.check())
        trace = self._trace(self._solver.model()) if answer == "sat" else None
        self._solver.pop()
        if answer == "unknown":
            raise TimeoutError(f"no answer about {self.steps} steps in {timeout:.0f} s")
        if trace is not None and not self._interpreter.holds(formula, trace.states(self._interpreter)[-1]):
            raise AssertionError(f"the interpreter disagrees about {[str(step) for step in trace.steps]}")
        return trace

    def _trace(self, model: Any) -> Trace:
        def true(literal: Literal) -> bool:
            return z3().is_true(model.eval(literal, model_completion=True))

        steps: list[Step] = []
        for instances in self._taken:
            _, action, arguments, havoc = next(instance for instance in instances if true(instance[0]))
            choices = {name: frozenset(point for point, atom in atoms.items() if true(atom)) for name, atoms in havoc.items()}
            steps.append(Step(action, arguments, choices))
        return Trace(self.start, tuple(steps))


def shortest(system: System, sizes: Mapping[Sort, int], start: State, bad: Node, steps: int, timeout: float = 60.0) -> Trace | None:
    """A shortest run of at most ``steps`` steps from ``start`` into ``bad``. Raises TimeoutError (``timeout`` s a length)."""
    unrolling = Unrolling(system, sizes, start)
    for _ in range(steps + 1):
        found = unrolling.reach(bad, timeout)
        if found is not None:
            return found
        unrolling.extend()
    return None


def violation(system: System, sizes: Mapping[Sort, int], start: State, formula: Node, steps: int, timeout: float = 60.0) -> Trace | None:
    """A shortest run that breaks ``formula``; see `shortest`."""
    return shortest(system, sizes, start, lnot(formula), steps, timeout)


def drive(interpreter: Interpreter, state: State, pick: Callable[[State], Step | None], most: int = 1000) -> Trace:
    """The run that ``pick`` steers until it gives no step. Raises ValueError if a step can't be taken, or after ``most``."""
    steps: list[Step] = []
    start = state
    while (step := pick(state)) is not None:
        if len(steps) == most:
            raise ValueError(f"still going after {most} steps")
        state = interpreter.take(state, step)
        steps.append(step)
    return Trace(start, tuple(steps))
