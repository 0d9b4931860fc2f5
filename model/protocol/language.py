"""Many-sorted first-order transition systems as plain data: written once, read by every backend.

A `System` holds relations and functions over a few sorts, actions with a guard and functional updates, and formulas. All of
it is a deep syntax tree without Python callables inside, so that Z3, the SAT unrolling, the generated bit code and the
interpreter read the same rules. Trees are interned: equal trees are one object, hence comparing and hashing cost nothing.

An action's post-state is never named. What a formula says about it is a formula over the pre-state, by substitution
(`weakest_precondition`), so that no frame axioms are needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Literal, Self, cast

Sort = str
"""The name of a sort, such as ``"Member"``; ``"Bool"`` is the result of a relation."""

BOOL: Sort = "Bool"
Role = Literal["protocol", "environment", "timer"]
Kind = Literal["forall", "exists"]


class _Interned:
    """Equal construction arguments give the same object; equality and hash are those of identity."""

    __slots__ = ("__weakref__",)
    _instances: ClassVar[dict[tuple[object, ...], Any]] = {}

    def __new__(cls, *parts: object, **named: object) -> Self:
        fields: tuple[str, ...] = getattr(cls, "__match_args__", ())
        key = (cls, *parts, *(named[name] for name in fields[len(parts) :]))
        found: Self | None = cls._instances.get(key)
        if found is None:
            found = cls._instances[key] = super().__new__(cls)
        return found

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        fields: tuple[str, ...] = getattr(type(self), "__match_args__", ())
        return type(self), tuple(getattr(self, name) for name in fields)


class Node(_Interned):
    """A term or a formula."""

    __slots__ = ()

    def __str__(self) -> str:
        return pretty(self)


@dataclass(frozen=True, eq=False, slots=True)
class Symbol(_Interned):
    """A relation (result `BOOL`) or a function; one without argument sorts is a proposition or a constant."""

    name: str
    sorts: tuple[Sort, ...]
    result: Sort

    def __call__(self, *terms: Node) -> Node:
        """The application. Raises TypeError if the number or the sorts of the terms are wrong."""
        if tuple(sort_of(term) for term in terms) != self.sorts:
            raise TypeError(f"{self.name}{self.sorts} applied to ({', '.join(map(pretty, terms))})")
        return Apply(self, terms)


@dataclass(frozen=True, eq=False, slots=True)
class Variable(Node):
    name: str
    sort: Sort


@dataclass(frozen=True, eq=False, slots=True)
class Truth(Node):
    value: bool


@dataclass(frozen=True, eq=False, slots=True)
class Apply(Node):
    symbol: Symbol
    arguments: tuple[Node, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Equal(Node):
    """Two terms of one sort are the same."""

    left: Node
    right: Node


@dataclass(frozen=True, eq=False, slots=True)
class Not(Node):
    body: Node


@dataclass(frozen=True, eq=False, slots=True)
class And(Node):
    parts: tuple[Node, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Or(Node):
    parts: tuple[Node, ...]


@dataclass(frozen=True, eq=False, slots=True)
class If(Node):
    """A term chosen by a formula. (`ite` writes a choice between formulas with `And` and `Or`.)"""

    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, eq=False, slots=True)
class Quantified(Node):
    kind: Kind
    variables: tuple[Variable, ...]
    body: Node


TRUE, FALSE = Truth(True), Truth(False)

Body = (
    Callable[[], Node]
    | Callable[[Node], Node]
    | Callable[[Node, Node], Node]
    | Callable[[Node, Node, Node], Node]
    | Callable[[Node, Node, Node, Node], Node]
    | Callable[[Node, Node, Node, Node, Node], Node]
    | Callable[[Node, Node, Node, Node, Node, Node], Node]
)
"""What a builder calls once, with variables or terms, to write a tree."""


def _call(body: Body, arguments: Sequence[Node]) -> Node:
    return cast("Callable[..., Node]", body)(*arguments)


def sort_of(node: Node) -> Sort:
    """The sort of a term; `BOOL` for a formula."""
    match node:
        case Variable(_, sort):
            return sort
        case Apply(symbol, _):
            return symbol.result
        case If(_, then, _):
            return sort_of(then)
        case _:
            return BOOL


# Builders: they simplify, so that substitution leaves small formulas.


def lnot(body: Node) -> Node:
    match body:
        case Truth(value):
            return FALSE if value else TRUE
        case Not(inner):
            return inner
        case _:
            return Not(body)


def _joined(parts: Iterable[Node], kind: type[And] | type[Or], neutral: Truth, absorbing: Truth) -> Node:
    kept: dict[Node, None] = {}
    for part in parts:
        for leaf in part.parts if isinstance(part, And | Or) and type(part) is kind else (part,):
            if leaf is absorbing or lnot(leaf) in kept:
                return absorbing
            if leaf is not neutral:
                kept[leaf] = None
    if len(kept) > 1:
        return kind(tuple(kept))
    return next(iter(kept), neutral)


def land(*parts: Node) -> Node:
    """All of them."""
    return _joined(parts, And, TRUE, FALSE)


def lor(*parts: Node) -> Node:
    """At least one of them."""
    return _joined(parts, Or, FALSE, TRUE)


def implies(premise: Node, conclusion: Node) -> Node:
    return lor(lnot(premise), conclusion)


def iff(left: Node, right: Node) -> Node:
    return land(implies(left, right), implies(right, left))


def equal(left: Node, right: Node) -> Node:
    """Raises TypeError if the sorts differ. Formulas are compared with `iff`."""
    if sort_of(left) != sort_of(right) or sort_of(left) == BOOL:
        raise TypeError(f"{pretty(left)} = {pretty(right)}")
    return TRUE if left is right else Equal(left, right)


def distinct(*terms: Node) -> Node:
    """Pairwise different."""
    return land(*(lnot(equal(left, right)) for at, left in enumerate(terms) for right in terms[at + 1 :]))


def ite(condition: Node, then: Node, otherwise: Node) -> Node:
    """``then`` if the condition holds, else ``otherwise``: two terms of one sort, or two formulas."""
    if isinstance(condition, Truth):
        return then if condition.value else otherwise
    if then is otherwise:
        return then
    if sort_of(then) == BOOL:
        return land(implies(condition, then), lor(condition, otherwise))
    return If(condition, then, otherwise)


_enclosing: ContextVar[frozenset[str]] = ContextVar("names bound by the enclosing builders", default=frozenset())


def _bound(kind: Kind, sorts: str, body: Body) -> Node:
    outer = _enclosing.get()
    names = list(inspect.signature(body).parameters)
    variables: list[Variable] = []
    for name, sort in zip(names, sorts.split(), strict=True):
        taken = outer | {variable.name for variable in variables}
        variables.append(Variable(_unused(name, taken), sort))
    token = _enclosing.set(outer | {variable.name for variable in variables})
    try:
        return quantified(kind, tuple(variables), _call(body, variables))
    finally:
        _enclosing.reset(token)


def _unused(name: str, taken: frozenset[str] | set[str]) -> str:
    number, candidate = 1, name
    while candidate in taken:
        number, candidate = number + 1, f"{name}{number + 1}"
    return candidate


def quantified(kind: Kind, variables: tuple[Variable, ...], body: Node) -> Node:
    """The quantified formula; the body itself if it mentions none of the variables (no sort is empty)."""
    used = free_variables(body)
    variables = tuple(variable for variable in variables if variable in used)
    return Quantified(kind, variables, body) if variables else body


def forall(sorts: str, body: Body) -> Node:
    """``forall("Member Partition", lambda m, p: ...)``: the variables are called as the parameters are."""
    return _bound("forall", sorts, body)


def exists(sorts: str, body: Body) -> Node:
    """See `forall`."""
    return _bound("exists", sorts, body)


# Transition systems.


@dataclass(frozen=True, slots=True)
class Update:
    """``symbol(variables)`` becomes ``value``, a formula or term over the pre-state."""

    symbol: Symbol
    variables: tuple[Variable, ...]
    value: Node

    def at(self, arguments: tuple[Node, ...]) -> Node:
        """The new value at these arguments."""
        return substitute(self.value, dict(zip(self.variables, arguments, strict=True)))


def define(symbol: Symbol, value: Body | Node) -> Update:
    """``symbol`` becomes ``value(*arguments)`` everywhere (a node: the same everywhere)."""
    variables = tuple(Variable(f"{sort[0].lower()}_{at}", sort) for at, sort in enumerate(symbol.sorts))
    return Update(symbol, variables, value if isinstance(value, Node) else _call(value, variables))


def put(symbol: Symbol, *key: Node, value: Body | Node) -> Update:
    """``symbol`` becomes ``value`` where its leading arguments are ``key``, and stays as it is elsewhere.

    A callable value is given the remaining arguments.
    """

    def new(*arguments: Node) -> Node:
        here = land(*(equal(argument, term) for argument, term in zip(arguments, key, strict=False)))
        there = value if isinstance(value, Node) else _call(value, arguments[len(key) :])
        return ite(here, there, symbol(*arguments))

    return define(symbol, new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One kind of step. ``havoc`` symbols have an arbitrary value during the step, which the guard may constrain.

    ``role`` says who takes it: the protocol (somebody must, if it can be done), a timer that ends a wait, or the
    environment (crashes, losses, whatever nobody owes).
    """

    name: str
    parameters: tuple[Variable, ...]
    guard: Node
    updates: tuple[Update, ...]
    havoc: tuple[Symbol, ...] = ()
    role: Role = "protocol"
    doc: str

    def __post_init__(self) -> None:
        written = [update.symbol for update in self.updates]
        if len(set(written)) != len(written):
            raise ValueError(f"{self.name} updates a symbol twice: {sorted(symbol.name for symbol in written)}")


@dataclass(frozen=True, slots=True)
class Order:
    """``sort`` is totally ordered by ``less``, from ``least`` on. Finite backends number its elements from 0."""

    sort: Sort
    less: Symbol
    least: Symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A transition system with what is promised of it.

    ``rigid`` symbols (among them those of ``ordered``) never change, constrained by ``axioms``. ``initial`` gives each
    state symbol its first value. ``safety`` holds in every reachable state; ``invariants`` are the further conjectures
    that make the conjunction inductive. ``popular`` are promises as people state them which are false. ``rules`` names for
    each property the rules of the catalogue that it states.
    """

    name: str
    sorts: tuple[Sort, ...]
    ordered: tuple[Order, ...]
    rigid: tuple[Symbol, ...]
    state: tuple[Symbol, ...]
    axioms: tuple[Node, ...]
    initial: tuple[Update, ...]
    actions: tuple[Action, ...]
    safety: Mapping[str, Node]
    invariants: Mapping[str, Node]
    popular: Mapping[str, Node] = field(default_factory=dict[str, Node])
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    next_generation: tuple[str, str] | None = None
    """(action, parameter): the step that starts a generation, and its parameter that names it.

    Finite backends take the least value that the guard allows, so that small domains go far.
    """
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    """Every property (true or popular) in plain words, with its source."""

    def __post_init__(self) -> None:
        missing = set(self.state) - {update.symbol for update in self.initial}
        if missing:
            raise ValueError(f"no initial value: {sorted(symbol.name for symbol in missing)}")
        for action in self.actions:
            foreign = {update.symbol for update in action.updates} - set(self.state)
            if foreign:
                raise ValueError(f"{action.name} updates what is not state: {sorted(symbol.name for symbol in foreign)}")

    def symbol(self, name: str) -> Symbol:
        """The rigid, state or havoc symbol of that name. Raises KeyError."""
        havoc = (symbol for action in self.actions for symbol in action.havoc)
        for symbol in (*self.rigid, *self.state, *havoc):
            if symbol.name == name:
                return symbol
        raise KeyError(name)

    def action(self, name: str) -> Action:
        """Raises KeyError."""
        for action in self.actions:
            if action.name == name:
                return action
        raise KeyError(name)


def total_order(order: Order) -> tuple[Node, ...]:
    """The axioms of a total order with a least element."""
    sort, less = order.sort, order.less
    return (
        forall(sort, lambda a: lnot(less(a, a))),
        forall(f"{sort} {sort} {sort}", lambda a, b, c: implies(land(less(a, b), less(b, c)), less(a, c))),
        forall(f"{sort} {sort}", lambda a, b: lor(less(a, b), less(b, a), equal(a, b))),
        forall(sort, lambda a: lor(equal(order.least(), a), less(order.least(), a))),
    )


# Walks over the tree.


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Apply(_, arguments):
            return arguments
        case Equal(left, right):
            return (left, right)
        case Not(body) | Quantified(_, _, body):
            return (body,)
        case And(parts) | Or(parts):
            return parts
        case If(condition, then, otherwise):
            return (condition, then, otherwise)
        case _:
            return ()


@cache
def free_variables(node: Node) -> frozenset[Variable]:
    if isinstance(node, Variable):
        return frozenset({node})
    free = frozenset[Variable]().union(*(free_variables(child) for child in children(node)))
    return free.difference(node.variables) if isinstance(node, Quantified) else free


@cache
def symbols_of(node: Node) -> frozenset[Symbol]:
    own = frozenset({node.symbol}) if isinstance(node, Apply) else frozenset[Symbol]()
    return own.union(*(symbols_of(child) for child in children(node)))


def substitute(node: Node, environment: Mapping[Variable, Node], updates: Iterable[Update] = ()) -> Node:
    """``node`` with free variables replaced, and every updated symbol by its new value. No variable is captured."""
    by_symbol = {update.symbol: update for update in updates}
    brought = frozenset[Variable]().union(
        *(free_variables(term) for term in environment.values()),
        *(free_variables(update.value).difference(update.variables) for update in by_symbol.values()),
    )
    memo: dict[Node, Node] = {}

    def go(node: Node) -> Node:
        found = memo.get(node)
        if found is None:
            found = memo[node] = rebuilt(node)
        return found

    def rebuilt(node: Node) -> Node:
        match node:
            case Variable():
                return environment.get(node, node)
            case Apply(symbol, arguments):
                new = tuple(go(argument) for argument in arguments)
                update = by_symbol.get(symbol)
                return update.at(new) if update else Apply(symbol, new)
            case Equal(left, right):
                return equal(go(left), go(right))
            case Not(body):
                return lnot(go(body))
            case And(parts):
                return land(*map(go, parts))
            case Or(parts):
                return lor(*map(go, parts))
            case If(condition, then, otherwise):
                return ite(go(condition), go(then), go(otherwise))
            case Quantified(kind, variables, body):
                if not brought.isdisjoint(variables) or not environment.keys().isdisjoint(variables):
                    return under_binder(kind, variables, body)
                return quantified(kind, variables, go(body))
            case _:
                return node

    def under_binder(kind: Kind, variables: tuple[Variable, ...], body: Node) -> Node:
        inner = {variable: term for variable, term in environment.items() if variable not in variables}
        taken = {variable.name for variable in brought | free_variables(body)}
        renamed: list[Variable] = []
        for variable in variables:
            new = Variable(_unused(variable.name, taken), variable.sort) if variable in brought else variable
            taken.add(new.name)
            renamed.append(new)
            if new is not variable:
                inner[variable] = new
        return quantified(kind, tuple(renamed), substitute(body, inner, by_symbol.values()))

    return go(node)


def weakest_precondition(action: Action, formula: Node) -> Node:
    """What must hold before the action (its parameters are free) so that ``formula`` holds after it.

    The very same node if the action doesn't touch it.
    """
    return substitute(formula, {}, action.updates)


def pretty(node: Node) -> str:
    """One readable line, such as ``for all a, b in Member: member(a) and a != b implies not leads(b)``."""
    return _pretty(node, 0)


def _pretty(node: Node, strength: int) -> str:
    """``strength``: 0 where anything may stand, 1 beside "implies", 2 beside "or", 3 beside "and", 4 after "not"."""

    def wrap(text: str, own: int) -> str:
        return f"({text})" if own < strength else text

    def joined(word: str, parts: Iterable[Node], own: int) -> str:
        return f" {word} ".join(_pretty(part, own) for part in parts)

    match node:
        case Variable(name, _):
            return name
        case Truth(value):
            return "true" if value else "false"
        case Apply(symbol, arguments):
            return f"{symbol.name}({', '.join(map(pretty, arguments))})" if arguments else symbol.name
        case Equal(left, right):
            return f"{pretty(left)} = {pretty(right)}"
        case Not(Equal(left, right)):
            return f"{pretty(left)} != {pretty(right)}"
        case Not(body):
            return f"not {_pretty(body, 4)}"
        case And(parts):
            return wrap(joined("and", parts, 3), 2)
        case Or(parts):
            premises = [part.body for part in parts if isinstance(part, Not)]
            conclusions = [part for part in parts if not isinstance(part, Not)]
            if not premises:
                return wrap(joined("or", conclusions, 2), 1)
            if not conclusions:
                return f"not ({joined('and', premises, 3)})"
            return wrap(f"{_pretty(land(*premises), 2)} implies {joined('or', conclusions, 2)}", 0)
        case If(condition, then, otherwise):
            return f"(if {pretty(condition)} then {pretty(then)} else {pretty(otherwise)})"
        case Quantified(kind, variables, body):
            by_sort: dict[Sort, list[str]] = {}
            for variable in variables:
                by_sort.setdefault(variable.sort, []).append(variable.name)
            bound = "; ".join(f"{', '.join(names)} in {sort}" for sort, names in by_sort.items())
            return wrap(f"{'for all' if kind == 'forall' else 'for some'} {bound}: {_pretty(body, 0)}", 0)
        case _:
            raise TypeError(node)
