"""Evaluation on finite structures: guards, updates and properties, compiled once to Python functions.

Elements of a sort are the numbers from 0; an ordered sort has their order, and its least element is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, cast

from .language import (
    BOOL,
    Action,
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
    free_variables,
)

Point = tuple[int, ...]
Relation = frozenset[Point]
Function = Mapping[Point, int]
State = Mapping[str, Relation | Function]
"""Symbol name -> where the relation holds, or the function's values. Orders are not in it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run: the action, its arguments, and the havoc'ed relations."""

    action: str
    arguments: Point
    choices: Mapping[str, Relation] = field(default_factory=dict[str, Relation])

    def __str__(self) -> str:
        chosen = "".join(f" {name}={sorted(points)}" for name, points in self.choices.items())
        return f"{self.action}({', '.join(map(str, self.arguments))}){chosen}"


class Interpreter:
    """A system over sorts of the given sizes."""

    def __init__(self, system: System, sizes: Mapping[Sort, int]) -> None:
        self.system = system
        self.sizes = dict(sizes)
        self._compiled: dict[tuple[Node, tuple[Variable, ...]], Callable[..., Any]] = {}
        self._updates: dict[str, Callable[..., dict[str, Relation | Function]]] = {}

    def points(self, sorts: Sequence[Sort]) -> Iterator[Point]:
        """All tuples of elements of these sorts."""
        return product(*(range(self.sizes[sort]) for sort in sorts))

    def initial(self, rigid: State) -> State:
        """The first state; ``rigid`` gives the rigid symbols that are no order's."""
        return {
            **rigid,
            **{update.symbol.name: self._table(update.symbol, update.variables, update.value, rigid) for update in self.system.initial},
        }

    def _table(self, symbol: Symbol, variables: tuple[Variable, ...], value: Node, state: State) -> Relation | Function:
        at = self._function(value, variables)
        points = self.points(symbol.sorts)
        return frozenset(point for point in points if at(state, *point)) if symbol.result == BOOL else {p: at(state, *p) for p in points}

    def holds(self, formula: Node, state: State, environment: Mapping[Variable, int] | None = None) -> bool:
        """Whether the formula is true; ``environment`` gives its free variables."""
        return bool(self.value(formula, state, environment))

    def value(self, node: Node, state: State, environment: Mapping[Variable, int] | None = None) -> int:
        """The element that a term denotes; for a formula its truth."""
        given = environment or {}
        variables = tuple(given)
        return self._function(node, variables)(state, *(given[variable] for variable in variables))

    def enabled(self, action: Action, state: State, arguments: Point, choices: State | None = None) -> bool:
        """Whether the guard holds, with these values of the havoc'ed symbols."""
        guard = self._function(action.guard, action.parameters)
        return bool(guard({**state, **choices} if choices else state, *arguments))

    def apply(self, action: Action, state: State, arguments: Point, choices: State | None = None) -> State:
        """The state after the action, whose guard is not asked. Havoc'ed symbols don't become part of it."""
        updates = self._updates.get(action.name)
        if updates is None:
            updates = self._updates[action.name] = self._compile_updates(action)
        return {**state, **updates({**state, **choices} if choices else state, *arguments)}

    def take(self, state: State, step: Step) -> State:
        """The state after the step. Raises ValueError if its guard doesn't hold."""
        action = self.system.action(step.action)
        if not self.enabled(action, state, step.arguments, step.choices):
            raise ValueError(f"not enabled: {step}")
        return self.apply(action, state, step.arguments, step.choices)

    def steps(self, state: State) -> Iterator[Step]:
        """Every step that can be taken; each value of the havoc'ed symbols is tried, so keep the sorts small."""
        for action in self.system.actions:
            for arguments in self.points([parameter.sort for parameter in action.parameters]):
                for choices in self._choices(action.havoc):
                    if self.enabled(action, state, arguments, choices):
                        yield Step(action.name, arguments, choices)

    def _choices(self, symbols: Sequence[Symbol]) -> Iterator[dict[str, Relation]]:
        if not symbols:
            yield {}
            return
        head, *rest = symbols
        points = tuple(self.points(head.sorts))
        for included in product((False, True), repeat=len(points)):
            relation = frozenset(point for point, kept in zip(points, included, strict=True) if kept)
            for others in self._choices(rest):
                yield {head.name: relation, **others}

    def _compile_updates(self, action: Action) -> Callable[..., dict[str, Relation | Function]]:
        entries: list[str] = []
        for update in action.updates:
            point = ", ".join(map(_name, update.variables))
            point = f"({point},)" if update.variables else "()"
            loops = "".join(f" for {_name(variable)} in range({self.sizes[variable.sort]})" for variable in update.variables)
            value = self._source(update.value)
            if update.symbol.result == BOOL:
                table = f"frozenset({point}{loops} if {value})" if loops else f"(HERE if {value} else NOWHERE)"
            else:
                table = f"{{{point}: {value}{loops}}}" if loops else f"{{(): {value}}}"
            entries.append(f"{update.symbol.name!r}: {table}")
        return self._evaluated(f"{{{', '.join(entries)}}}", action.parameters)

    def _function(self, node: Node, parameters: tuple[Variable, ...]) -> Callable[..., Any]:
        found = self._compiled.get((node, parameters))
        if found is None:
            unbound = free_variables(node).difference(parameters)
            if unbound:
                raise ValueError(f"no value for {sorted(variable.name for variable in unbound)}")
            found = self._compiled[node, parameters] = self._evaluated(self._source(node), parameters)
        return found

    @staticmethod
    def _evaluated(source: str, parameters: tuple[Variable, ...]) -> Callable[..., Any]:
        names = {"HERE": frozenset({()}), "NOWHERE": frozenset[Point]()}
        return cast("Callable[..., Any]", eval(f"lambda s{''.join(f', {_name(parameter)}' for parameter in parameters)}: {source}", names))

    def _source(self, node: Node) -> str:
        """A Python expression over the state ``s`` and the variables."""
        match node:
            case Variable():
                return _name(node)
            case Truth(value):
                return str(value)
            case Apply(symbol, arguments):
                for order in self.system.ordered:
                    if symbol is order.less:
                        return f"({self._source(arguments[0])} < {self._source(arguments[1])})"
                    if symbol is order.least:
                        return "0"
                point = f"({''.join(f'{self._source(argument)}, ' for argument in arguments)})"
                return f"({point} in s[{symbol.name!r}])" if symbol.result == BOOL else f"s[{symbol.name!r}][{point}]"
            case Equal(left, right):
                return f"({self._source(left)} == {self._source(right)})"
            case Not(body):
                return f"(not {self._source(body)})"
            case And(parts):
                return f"({' and '.join(map(self._source, parts))})"
            case Or(parts):
                return f"({' or '.join(map(self._source, parts))})"
            case If(condition, then, otherwise):
                return f"({self._source(then)} if {self._source(condition)} else {self._source(otherwise)})"
            case Quantified(kind, variables, body):
                loops = "".join(f" for {_name(variable)} in range({self.sizes[variable.sort]})" for variable in variables)
                return f"{'all' if kind == 'forall' else 'any'}({self._source(body)}{loops})"
            case _:
                raise TypeError(node)


def _name(variable: Variable) -> str:
    return f"{variable.name}_{variable.sort}"
