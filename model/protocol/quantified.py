"""The Z3 backend with quantifiers: formulas over sorts of any size, and what makes the questions decidable.

Importing this module doesn't import Z3; `z3` does.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from typing import Any

from .interpreter import State
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
    Variable,
    children,
    symbols_of,
)


@cache
def z3() -> Any:
    """The z3 module. Raises ImportError, saying what to install, if there is none."""
    try:
        return importlib.import_module("z3")
    except ImportError as missing:
        raise ImportError("proofs need Z3: pip install 'kipcheck[prove]'") from missing


class Translation:
    """A system's vocabulary in Z3; sorts are uninterpreted."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.sorts: dict[Sort, Any] = {sort: z3().DeclareSort(sort) for sort in system.sorts} | {BOOL: z3().BoolSort()}
        self._functions: dict[Symbol, Any] = {}
        self._terms: dict[Node, Any] = {}

    def function(self, symbol: Symbol) -> Any:
        """The Z3 function declaration."""
        found = self._functions.get(symbol)
        if found is None:
            sorts = [self.sorts[sort] for sort in (*symbol.sorts, symbol.result)]
            found = self._functions[symbol] = z3().Function(symbol.name, *sorts)
        return found

    def term(self, node: Node) -> Any:
        """The Z3 expression; free variables become constants of their name."""
        found = self._terms.get(node)
        if found is None:
            found = self._terms[node] = self._translated(node)
        return found

    def _translated(self, node: Node) -> Any:
        match node:
            case Variable(name, sort):
                return z3().Const(f"{name}:{sort}", self.sorts[sort])
            case Truth(value):
                return z3().BoolVal(value)
            case Apply(symbol, arguments):
                return self.function(symbol)(*map(self.term, arguments))
            case Equal(left, right):
                return self.term(left) == self.term(right)
            case Not(body):
                return z3().Not(self.term(body))
            case And(parts):
                return z3().And(*map(self.term, parts))
            case Or(parts):
                return z3().Or(*map(self.term, parts))
            case If(condition, then, otherwise):
                return z3().If(self.term(condition), self.term(then), self.term(otherwise))
            case Quantified(kind, variables, body):
                quantifier = z3().ForAll if kind == "forall" else z3().Exists
                return quantifier([self.term(variable) for variable in variables], self.term(body))
            case _:
                raise TypeError(node)

    def solver(self, formulas: Iterable[Node], seed: int, timeout: float) -> Any:
        """A solver that has been told the formulas; ``timeout`` in seconds."""
        solver = z3().Solver()
        solver.set("random_seed", seed)
        solver.set("timeout", max(1, int(timeout * 1000)))
        for formula in formulas:
            solver.add(self.term(formula))
        return solver

    def structure(
        self, model: Any, symbols: Iterable[Symbol], variables: Iterable[Variable]
    ) -> tuple[dict[Sort, int], State, dict[Variable, int]]:
        """A model as a finite structure: sizes, state and the values of the variables, elements numbered from 0.

        Elements of an ordered sort are numbered in its order.
        """
        universes: dict[Sort, list[Any]] = {}
        for sort in self.system.sorts:
            found = list(model.get_universe(self.sorts[sort]) or [])
            universes[sort] = found or [model.eval(z3().Const(f"some {sort}", self.sorts[sort]), model_completion=True)]
        for order in self.system.ordered:
            less, elements = self.function(order.less), universes[order.sort]
            below = {element: sum(self._true(model, less(other, element)) for other in elements) for element in elements}
            elements.sort(key=below.__getitem__)
        number = {sort: {element.decl().name(): at for at, element in enumerate(found)} for sort, found in universes.items()}

        def value(expression: Any, sort: Sort) -> int:
            return number[sort].get(model.eval(expression, model_completion=True).decl().name(), 0)

        state: dict[str, Any] = {}
        for symbol in symbols:
            points = product(*(enumerate(universes[sort]) for sort in symbol.sorts))
            applied = [(tuple(at for at, _ in point), self.function(symbol)(*(element for _, element in point))) for point in points]
            if symbol.result == BOOL:
                state[symbol.name] = frozenset(at for at, expression in applied if self._true(model, expression))
            else:
                state[symbol.name] = {at: value(expression, symbol.result) for at, expression in applied}
        values = {variable: value(self.term(variable), variable.sort) for variable in variables}
        return {sort: len(found) for sort, found in universes.items()}, state, values

    @staticmethod
    def _true(model: Any, expression: Any) -> bool:
        return z3().is_true(model.eval(expression, model_completion=True))


def sort_edges(formula: Node) -> frozenset[tuple[Sort, Sort]]:
    """Which sort's elements make which sort's elements, if ``formula`` is asserted: functions, and exists under forall."""
    functions = {(sort, symbol.result) for symbol in symbols_of(formula) if symbol.result != BOOL for sort in symbol.sorts}
    return frozenset(functions.union(_alternations(formula, True, ())))


def _alternations(node: Node, positive: bool, outer: tuple[Sort, ...]) -> Iterator[tuple[Sort, Sort]]:
    match node:
        case Not(body):
            yield from _alternations(body, not positive, outer)
        case If(condition, _, _):
            yield from _alternations(condition, positive, outer)
            yield from _alternations(condition, not positive, outer)
        case Quantified(kind, variables, body):
            sorts = tuple(variable.sort for variable in variables)
            if (kind == "forall") == positive:
                yield from _alternations(body, positive, (*outer, *sorts))
            else:
                yield from product(outer, sorts)
                yield from _alternations(body, positive, outer)
        case _:
            for child in children(node):
                yield from _alternations(child, positive, outer)


def sort_cycle(edges: Iterable[tuple[Sort, Sort]]) -> tuple[Sort, ...]:
    """The sorts that make one another without end; none: the formulas are in EPR, and Z3 decides them."""
    left: dict[Sort, set[Sort]] = {}
    for source, target in edges:
        left.setdefault(source, set()).add(target)
        left.setdefault(target, set())
    while leaves := [sort for sort, targets in left.items() if not targets]:
        for leaf in leaves:
            del left[leaf]
        for targets in left.values():
            targets.difference_update(leaves)
    return tuple(sorted(left))
