"""Generated code: a transition system of a given size as straight-line code over 64-bit words.

`compile_system` grounds a `System` and prints one source text. It runs on Python integers, on columns of numpy words (one row
per state), and, with `rust`, as Rust: the expressions are the same. All bits about one member lie in its own words, so
that swapping two members is swapping words.

**Generations** are lags behind the current one. A lag saturates at ``lags``: of two generations that are both at least that
old, none is less than the other and both are equal. Everything else is exact, and the state space is finite although
generations, crashes and losses are unlimited. A relation indexed by generation keeps one row per lag; the saturated row is the
union of the rows of all older generations. What the code reaches is therefore the state space of a system in which all
generations that are at least ``lags`` behind count as one; a counterexample is confirmed by replaying it with real generations.

**Cone of influence.** A bit is stored only where a property, a guard, or a stored bit of a later state may read it: `_Liveness`
computes for each bit the conditions under which it is read, a bit without any is dropped, and a bit whose conditions are false
in a state is stored as 0 there. States that differ only in such bits have the same future.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    Update,
    Variable,
    free_variables,
)

NEW = -1
"""The lag of the generation that a step starts."""
WORD = 64
FALSE, TRUE = 0, 1

Literal = int
"""A node of a `Circuit`, doubled, plus 1 if negated."""


@dataclass(frozen=True, slots=True)
class Atom:
    """One bit of a state: a relation at these arguments, or a function at these arguments having this value."""

    symbol: str
    arguments: tuple[int, ...]
    value: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large the instance is: the number of elements of each sort, and what the rigid symbols are.

    Without a number of generations they are lags, and unlimited. With one they are points 0, 1, ... and a new generation is
    the first that the guard allows; that is exact, but the search ends with the last point. A system whose current
    generation may go back (failover) needs it. ``budgets`` bounds how often an action is taken, by its name; an action that
    isn't named is unlimited.
    """

    elements: Mapping[Sort, int]
    rigid: Mapping[str, Mapping[tuple[int, ...], int]]
    lags: int = 3
    budgets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Move:
    """A ground action: the name and the arguments; an argument that is a generation is its lag (`NEW`: the next one)."""

    action: str
    arguments: tuple[int, ...]
    role: str
    havoc: tuple[Atom, ...] = ()
    """What the leader's relation holds for, if the action has one."""


class Circuit:
    """Hash-consed conjunctions and negations over atoms; equal formulas mostly become one literal."""

    def __init__(self) -> None:
        self._children: list[tuple[Literal, ...] | Atom] = [()]
        self._numbers: dict[tuple[Literal, ...] | Atom, int] = {}
        self._support: dict[int, frozenset[Atom]] = {0: frozenset()}

    def _intern(self, content: tuple[Literal, ...] | Atom) -> Literal:
        number = self._numbers.get(content)
        if number is None:
            number = self._numbers[content] = len(self._children)
            self._children.append(content)
        return 2 * number

    def atom(self, atom: Atom) -> Literal:
        return self._intern(atom)

    def atom_of(self, literal: Literal) -> Atom | None:
        content = self._children[literal >> 1]
        return content if isinstance(content, Atom) else None

    def parts(self, literal: Literal) -> tuple[Literal, ...]:
        """What is joined by "and" (an even literal), or by "and" below the negation (an odd one); nothing for an atom."""
        content = self._children[literal >> 1]
        return () if isinstance(content, Atom) else content

    def all(self, literals: Iterable[Literal]) -> Literal:
        """The conjunction, with what it implies of its parts put into its other parts."""
        units: set[Literal] = set()
        if not self._gather(literals, units):
            return FALSE
        changed = True
        while changed:
            changed = False
            for unit in [unit for unit in units if unit & 1]:
                alternatives = self.parts(unit)
                if not alternatives:
                    continue
                if any(part ^ 1 in units for part in alternatives):
                    units.discard(unit)
                elif any(part in units for part in alternatives):
                    units.discard(unit)
                    if not self._gather([self.all(part for part in alternatives if part not in units) ^ 1], units):
                        return FALSE
                    changed = True
        if not units:
            return TRUE
        return units.pop() if len(units) == 1 else self._intern(tuple(sorted(units)))

    def _gather(self, literals: Iterable[Literal], units: set[Literal]) -> bool:
        stack = list(literals)
        while stack:
            literal = stack.pop()
            if literal == FALSE or literal ^ 1 in units:
                return False
            if literal == TRUE:
                continue
            parts = self.parts(literal)
            if parts and not literal & 1:
                stack.extend(parts)
            else:
                units.add(literal)
        return True

    def any(self, literals: Iterable[Literal]) -> Literal:
        return self.all(literal ^ 1 for literal in literals) ^ 1

    def support(self, literal: Literal) -> frozenset[Atom]:
        """The atoms that the formula reads."""
        number = literal >> 1
        found = self._support.get(number)
        if found is None:
            content = self._children[number]
            found = frozenset({content}) if isinstance(content, Atom) else frozenset[Atom]().union(*map(self.support, content))
            self._support[number] = found
        return found

    def replace(self, literal: Literal, new: Mapping[Atom, Literal], memo: dict[int, Literal]) -> Literal:
        """The formula with atoms replaced. ``memo`` may be shared between calls with the same ``new``."""
        number = literal >> 1
        found = memo.get(number)
        if found is None:
            content = self._children[number]
            if isinstance(content, Atom):
                found = new.get(content, 2 * number)
            elif self.support(literal).isdisjoint(new):
                found = 2 * number
            else:
                found = self.all(self.replace(part, new, memo) for part in content)
            memo[number] = found
        return found ^ (literal & 1)


@dataclass(slots=True)
class GroundMove:
    """A step with its guard and the bits that it may change."""

    move: Move
    guard: Literal
    changes: dict[Atom, Literal]


class Ground:
    """The system at one size, as circuits. Raises ValueError for a history function, which lags can't hold."""

    def __init__(self, system: System, size: Size) -> None:
        self.system, self.size = system, size
        self.circuit = Circuit()
        self._memo: dict[tuple[Node, tuple[int, ...]], Any] = {}
        self._free: dict[Node, tuple[Variable, ...]] = {}
        self.points: Sort | None = None
        self.lagged: Sort | None = None
        self._starting: tuple[Action, Variable] | None = None
        self._current: Symbol | None = None
        if system.next_generation:
            action, name = system.next_generation
            starts = system.action(action)
            (parameter,) = (variable for variable in starts.parameters if variable.name == name)
            self._starting = starts, parameter
            self.points = parameter.sort
            if self.points not in size.elements:
                self.lagged = self.points
                self._current = next(update.symbol for update in starts.updates if update.value is parameter)
        self._least = {order.least: order for order in system.ordered}
        self._less = {order.less for order in system.ordered}
        oldest = [order.least for order in system.ordered if order.sort == self.lagged]
        self._stored = tuple(symbol for symbol in system.state if symbol is not self._current) + tuple(oldest)
        self._oldest = oldest[0] if oldest else None
        for symbol in self._stored:
            if symbol.result != BOOL and self.lagged in symbol.sorts:
                raise ValueError(f"{symbol.name} is a function of generations; a relation is needed")

    def domain(self, sort: Sort) -> range:
        return range(self.size.lags + 1) if sort == self.lagged else range(self.size.elements[sort])

    def atoms(self) -> Iterator[Atom]:
        """Every bit that a state has before any is dropped."""
        for symbol in self._stored:
            for arguments in self._tuples(symbol.sorts):
                yield from self._atoms_at(symbol, arguments)
        for name, bound in self.size.budgets.items():
            for used in range(bound):
                yield Atom(f"budget {name}", (used,))

    def sorts(self, atom: Atom) -> tuple[Sort, ...]:
        """The sorts of the arguments and, of a function, of the value."""
        if atom.symbol.startswith("budget "):
            return ("",)
        symbol = self.system.symbol(atom.symbol)
        return symbol.sorts if symbol.result == BOOL else (*symbol.sorts, symbol.result)

    def _atoms_at(self, symbol: Symbol, arguments: tuple[int, ...]) -> tuple[Atom, ...]:
        if symbol.result == BOOL:
            return (Atom(symbol.name, arguments),)
        return tuple(Atom(symbol.name, arguments, value) for value in self.domain(symbol.result))

    def _tuples(self, sorts: Iterable[Sort]) -> Iterator[tuple[int, ...]]:
        return itertools.product(*map(self.domain, sorts))

    # Formulas and terms.

    def formula(self, node: Node, environment: Mapping[Variable, int]) -> Literal:
        free = self._free.get(node)
        if free is None:
            free = self._free[node] = tuple(free_variables(node))
        key = (node, tuple([environment[variable] for variable in free]))
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._formula(node, environment)
        return cast("Literal", found)

    def _formula(self, node: Node, environment: Mapping[Variable, int]) -> Literal:
        circuit = self.circuit
        match node:
            case Truth(value):
                return TRUE if value else FALSE
            case Not(body):
                return self.formula(body, environment) ^ 1
            case And(parts):
                return circuit.all(self.formula(part, environment) for part in parts)
            case Or(parts):
                return circuit.any(self.formula(part, environment) for part in parts)
            case Equal(left, right):
                return circuit.any(
                    circuit.all((one, other))
                    for a, one in self.term(left, environment)
                    for b, other in self.term(right, environment)
                    if a == b
                )
            case Apply(symbol, arguments):
                cases = self._cases(arguments, environment)
                return circuit.any(circuit.all((condition, self._relation(symbol, values))) for values, condition in cases)
            case Quantified(kind, variables, body):
                instances = (
                    self.formula(body, {**environment, **dict(zip(variables, values, strict=True))})
                    for values in self._tuples(variable.sort for variable in variables)
                )
                return circuit.all(instances) if kind == "forall" else circuit.any(instances)
            case _:
                raise TypeError(node)

    def term(self, node: Node, environment: Mapping[Variable, int]) -> list[tuple[int, Literal]]:
        """The values that the term may have, each with its condition; the conditions exclude each other."""
        match node:
            case Variable():
                return [(environment[node], TRUE)]
            case If(condition, then, otherwise):
                holds = self.formula(condition, environment)
                branches = ((holds, then), (holds ^ 1, otherwise))
                return [
                    (value, self.circuit.all((branch, own)))
                    for branch, term in branches
                    if branch != FALSE
                    for value, own in self.term(term, environment)
                ]
            case Apply(symbol, arguments):
                return [
                    (value, self.circuit.all((condition, own)))
                    for values, condition in self._cases(arguments, environment)
                    for value, own in self._function(symbol, values)
                ]
            case _:
                raise TypeError(node)

    def _cases(self, terms: Sequence[Node], environment: Mapping[Variable, int]) -> list[tuple[tuple[int, ...], Literal]]:
        cases: list[tuple[tuple[int, ...], Literal]] = [((), TRUE)]
        for term in terms:
            values = self.term(term, environment)
            cases = [
                ((*before, value), self.circuit.all((condition, own)))
                for before, condition in cases
                for value, own in values
                if own != FALSE
            ]
        return cases

    def _relation(self, symbol: Symbol, arguments: tuple[int, ...]) -> Literal:
        if symbol in self._less:
            left, right = arguments
            return TRUE if (left > right if symbol.sorts[0] == self.lagged else left < right) else FALSE
        if symbol in self.system.rigid:
            return TRUE if self.size.rigid[symbol.name][arguments] else FALSE
        if any(value == NEW and sort == self.lagged for value, sort in zip(arguments, symbol.sorts, strict=True)):
            return FALSE
        return self.circuit.atom(Atom(symbol.name, arguments))

    def _function(self, symbol: Symbol, arguments: tuple[int, ...]) -> list[tuple[int, Literal]]:
        if symbol is self._current:
            return [(0, TRUE)]
        if symbol in self._least and symbol is not self._oldest:
            return [(0, TRUE)]
        if symbol in self.system.rigid and symbol is not self._oldest:
            return [(self.size.rigid[symbol.name][arguments], TRUE)]
        return [(value, self.circuit.atom(Atom(symbol.name, arguments, value))) for value in self.domain(symbol.result)]

    # Steps.

    def initial(self) -> frozenset[Atom]:
        """The bits that are set at the start: the current generation is the least."""
        youngest: dict[Atom, Literal] = {}
        if self._oldest:
            youngest = {atom: TRUE if atom.value == 0 else FALSE for atom in self._atoms_at(self._oldest, ())}
        first = {update.symbol: update for update in self.system.initial}
        memo: dict[int, Literal] = {}
        true = {atom for atom, literal in youngest.items() if literal == TRUE}
        for symbol in self._stored:
            if symbol is self._oldest:
                continue
            for arguments in self._tuples(symbol.sorts):
                for atom, literal in self._assigned(symbol, arguments, first[symbol], {}, shift=0):
                    constant = self.circuit.replace(literal, youngest, memo)
                    if constant not in (TRUE, FALSE):
                        raise ValueError(f"the first value of {symbol.name} depends on the state")
                    if constant == TRUE:
                        true.add(atom)
        return frozenset(true)

    def _assigned(
        self, symbol: Symbol, arguments: tuple[int, ...], update: Update | None, environment: Mapping[Variable, int], shift: int
    ) -> Iterator[tuple[Atom, Literal]]:
        """The new bits of the symbol at these arguments, all generations ageing by ``shift`` (0 or 1)."""
        earlier = list(itertools.product(*(self._before(value, sort, shift) for value, sort in zip(arguments, symbol.sorts, strict=True))))
        if symbol.result == BOOL:
            rows = (
                self.formula(update.value, {**environment, **dict(zip(update.variables, before, strict=True))})
                if update
                else self._relation(symbol, before)
                for before in earlier
            )
            yield Atom(symbol.name, arguments), self.circuit.any(rows)
            return
        (before,) = earlier
        here = {**environment, **dict(zip(update.variables, before, strict=True))} if update else {}
        values = self.term(update.value, here) if update else self._function(symbol, before)
        conditions: defaultdict[int, list[Literal]] = defaultdict(list)
        for value, condition in values:
            later = min(value + shift, self.size.lags) if symbol.result == self.lagged else value
            conditions[later].append(condition)
        for value in self.domain(symbol.result):
            yield Atom(symbol.name, arguments, value), self.circuit.any(conditions[value])

    def _before(self, value: int, sort: Sort, shift: int) -> tuple[int, ...]:
        if sort != self.lagged or not shift:
            return (value,)
        return (value - 1, value) if value == self.size.lags else (value - 1,)

    def steps(self) -> Iterator[GroundMove]:
        """Every ground action whose guard isn't false outright, with havoc relations left open (see `choices`)."""
        for action in self.system.actions:
            for arguments in itertools.product(*(self._arguments(action, variable) for variable in action.parameters)):
                yield from self._ground(action, arguments)

    def _arguments(self, action: Action, variable: Variable) -> Iterable[int]:
        return (NEW,) if self.lagged and self._starting == (action, variable) else self.domain(variable.sort)

    def _ground(self, action: Action, arguments: tuple[int, ...]) -> Iterator[GroundMove]:
        environment = dict(zip(action.parameters, arguments, strict=True))
        guard = self.formula(action.guard, environment)
        if self._starting and self._starting[0] is action and not self.lagged:
            point = self._starting[1]
            earlier = (self.formula(action.guard, {**environment, point: other}) for other in range(environment[point]))
            guard = self.circuit.all((guard, self.circuit.any(earlier) ^ 1))
        if guard == FALSE:
            return
        budget = self.size.budgets.get(action.name)
        changes: dict[Atom, Literal] = {}
        if budget is not None:
            used = [Atom(f"budget {action.name}", (count,)) for count in range(budget)]
            if not used:
                return
            guard = self.circuit.all((guard, self.circuit.atom(used[-1]) ^ 1))
            changes |= zip(used, [TRUE, *map(self.circuit.atom, used[:-1])], strict=True)
        ages = bool(self.lagged and self._starting and self._starting[0] is action)
        updates = {update.symbol: update for update in action.updates}
        for symbol in self._stored:
            update = updates.get(symbol)
            if update or (ages and self.lagged in (*symbol.sorts, symbol.result)):
                for place in self._tuples(symbol.sorts):
                    for atom, literal in self._assigned(symbol, place, update, environment, int(ages)):
                        if literal != self.circuit.atom(atom):
                            changes[atom] = literal
        yield GroundMove(Move(action.name, arguments, action.role), guard, changes)

    def choices(self, ground: GroundMove) -> Iterator[GroundMove]:
        """One step for every value of the havoc relations that the guard doesn't rule out in all states."""
        action = self.system.action(ground.move.action)
        havoc = [Atom(symbol.name, arguments) for symbol in action.havoc for arguments in self._tuples(symbol.sorts)]
        branches: list[tuple[int, frozenset[Atom], Literal]] = [(0, frozenset(), ground.guard)]
        while branches:
            decided, chosen, condition = branches.pop()
            if decided < len(havoc):
                for value in (TRUE, FALSE):
                    left = self.circuit.replace(condition, {havoc[decided]: value}, {})
                    if left != FALSE:
                        branches.append((decided + 1, chosen | {havoc[decided]} if value else chosen, left))
                continue
            step = Move(ground.move.action, ground.move.arguments, ground.move.role, tuple(atom for atom in havoc if atom in chosen))
            new = {atom: TRUE if atom in chosen else FALSE for atom in havoc}
            memo: dict[int, Literal] = {}
            yield GroundMove(step, condition, {atom: self.circuit.replace(literal, new, memo) for atom, literal in ground.changes.items()})


_BY_GENERATION, _NO_CONTROL = 1 << 20, 1 << 21
_MOST_CUBES = 32
Cube = frozenset[tuple[Literal, bool]]
"""Controls that hold or don't hold together."""


class _Liveness:
    """For each atom, when a later step or a property may read it: a disjunction of cubes of controls.

    Backwards from the properties to the fixed point: an atom is read where a property depends on it, or where a step changes
    a bit that is read later, and its guard or the new value depends on the atom. A control belongs to the cube if the reading
    vanishes, by simplification, once the control is given the other value.

    Controls are the propositions and the one-place relations of the member that the atom is about, and whether such a
    relation holds of any generation. So that no condition depends, however indirectly, on the atom that it is about, atoms have
    a rank and only controls of lower rank: the fewer actions write a relation, the lower it is.

    An atom with more than `_MOST_CUBES` cubes gets one instead, of what they have in common: it is then stored in more states
    than it need be. (What a Connect leader remembers of each member is read under hundreds of conditions.)
    """

    def __init__(self, ground: Ground, steps: Sequence[GroundMove], observed: Iterable[Literal]) -> None:
        self._ground, self._circuit = ground, ground.circuit
        self._cubes: defaultdict[Atom, set[Cube]] = defaultdict(set)
        self._controls_of: dict[tuple[int, tuple[int, ...]], list[tuple[Literal, bool, dict[Atom, Literal]]]] = {}
        self._memos: dict[tuple[Literal, bool], dict[int, Literal]] = {}
        self._about: dict[Atom, tuple[int, tuple[int, ...]]] = {}
        self._left: dict[tuple[tuple[int, tuple[int, ...]], Literal], list[tuple[tuple[Literal, bool], Literal]]] = {}
        self._atoms = dict.fromkeys(ground.atoms())
        self._writers = Counter(update.symbol.name for action in ground.system.actions for update in action.updates)
        changed = dict[Atom, None]()
        for literal in observed:
            for atom in self._read_by(literal):
                changed |= self._read(atom, (), literal)
        while changed:
            work, changed = changed, dict[Atom, None]()
            for atom in work:
                for step in steps:
                    changed |= self._step(step, atom)

    def _read_by(self, literal: Literal) -> list[Atom]:
        return sorted((atom for atom in self._circuit.support(literal) if atom in self._atoms), key=self._circuit.atom)

    def condition(self, atom: Atom) -> Literal:
        """When the atom may be read; `FALSE` if never."""
        return self._circuit.any(map(self._condition, self._cubes[atom]))

    def _condition(self, cube: Cube) -> Literal:
        return self._circuit.all(control if positive else control ^ 1 for control, positive in cube)

    def _step(self, step: GroundMove, atom: Atom) -> dict[Atom, None]:
        circuit, own = self._circuit, self._circuit.atom(atom)
        new = step.changes.get(atom, own)
        differs = circuit.any((circuit.all((own, new ^ 1)), circuit.all((own ^ 1, new))))
        changed = dict[Atom, None]()
        for cube in sorted(self._cubes[atom], key=sorted):
            condition = self._condition(cube)
            if differs == FALSE and circuit.support(condition).isdisjoint(step.changes):
                continue
            after = circuit.all((circuit.replace(condition, step.changes, {}), step.guard))
            if after == FALSE:
                continue
            for source in self._read_by(new):
                changed |= self._read(source, (after,), new)
            if differs != FALSE:
                for source in self._read_by(step.guard):
                    changed |= self._read(source, (after, differs), step.guard)
        return changed

    def _read(self, atom: Atom, context: tuple[Literal, ...], literal: Literal) -> dict[Atom, None]:
        about = self._about.get(atom)
        if about is None:
            about = self._about[atom] = self.rank(atom), mentions(atom, self._ground.sorts(atom), "Member")
        cube = {control for control, left in self._without(about, literal) if atom not in self._circuit.support(left)}
        for part in context:
            cube.update(control for control, left in self._without(about, part) if left == FALSE)
        cubes = self._cubes[atom]
        if any(known <= cube for known in cubes):
            return {}
        cubes.difference_update([known for known in cubes if cube < known])
        cubes.add(frozenset(cube))
        if len(cubes) > _MOST_CUBES:
            self._cubes[atom] = {frozenset[tuple[Literal, bool]].intersection(*cubes)}
        return {atom: None}

    def _without(self, about: tuple[int, tuple[int, ...]], literal: Literal) -> list[tuple[tuple[Literal, bool], Literal]]:
        """What is left of the literal where each control of such atoms has the other value, as far as that changes it."""
        found = self._left.get((about, literal))
        if found is None:
            controls = self._controls_of.get(about)
            if controls is None:
                controls = self._controls_of[about] = list(self._controls_for(*about))
            support = self._circuit.support(literal)
            found = self._left[about, literal] = [
                ((control, positive), self._circuit.replace(literal, opposite, self._memos.setdefault((control, positive), {})))
                for control, positive, opposite in controls
                if not support.isdisjoint(opposite)
            ]
        return found

    def rank(self, atom: Atom) -> int:
        others = [sort for sort in self._ground.sorts(atom) if sort != "Member"]
        members = len(self._ground.sorts(atom)) - len(others)
        if atom.value is None and members < 2 and not others and not atom.symbol.startswith("budget "):
            return self._writers[atom.symbol]
        by_generation = atom.value is None and members < 2 and others == [self._ground.points]
        return _BY_GENERATION if by_generation else _NO_CONTROL

    def _controls_for(self, rank: int, members: tuple[int, ...]) -> Iterator[tuple[Literal, bool, dict[Atom, Literal]]]:
        by_generation: defaultdict[tuple[str, tuple[int, ...]], list[Atom]] = defaultdict(list)
        for atom in self._atoms:
            about = mentions(atom, self._ground.sorts(atom), "Member")
            own = self.rank(atom)
            if own >= rank or not set(about) <= set(members):
                continue
            if own < _BY_GENERATION:
                yield self._circuit.atom(atom), True, {atom: FALSE}
                yield self._circuit.atom(atom), False, {atom: TRUE}
            else:
                by_generation[atom.symbol, about].append(atom)
        for atoms in by_generation.values():
            yield self._circuit.any(map(self._circuit.atom, atoms)), True, dict.fromkeys(atoms, FALSE)


def mentions(atom: Atom, sorts: Sequence[Sort], sort: Sort) -> tuple[int, ...]:
    """The elements of ``sort`` that the atom is about."""
    elements = atom.arguments if atom.value is None else (*atom.arguments, atom.value)
    return tuple(element for element, own in zip(elements, sorts, strict=True) if own == sort)


# Layout and text.


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the bits lie: ``places`` gives word and bit; words 0 to ``shared - 1`` are nobody's, then come ``own`` per member.

    ``partitions`` lists, by word, the masks of the bits about each partition, in the order of the partitions; the n-th bit
    of one corresponds to the n-th bit of every other.
    """

    places: Mapping[Atom, tuple[int, int]]
    shared: int
    own: int
    members: int
    partitions: tuple[tuple[int, ...], ...]
    symmetric_members: bool
    symmetric_partitions: bool

    @property
    def words(self) -> int:
        return self.shared + self.own * self.members


def _layout(ground: Ground, kept: Iterable[Atom]) -> Layout:
    members, partitions = (ground.size.elements.get(sort, 0) for sort in ("Member", "Partition"))
    sorts = {atom: ground.sorts(atom) for atom in kept}
    about = {atom: (mentions(atom, sorts[atom], "Member"), mentions(atom, sorts[atom], "Partition")) for atom in sorts}
    shapes: defaultdict[tuple[Any, ...], dict[tuple[int, int], Atom]] = defaultdict(dict)
    for atom, (whose, which) in about.items():
        elements = atom.arguments if atom.value is None else (*atom.arguments, atom.value)
        blank = tuple(
            -1 if (sort == "Member" and len(whose) == 1) or (sort == "Partition" and len(which) == 1) else element
            for element, sort in zip(elements, sorts[atom], strict=True)
        )
        shapes[len(whose) == 1, atom.symbol, atom.value is None, blank][
            whose[0] if len(whose) == 1 else 0, which[0] if len(which) == 1 else -1
        ] = atom
    places: dict[Atom, tuple[int, int]] = {}
    fields: list[tuple[int, int]] = []

    def fill(own: bool, first: int) -> int:
        word, bit = 0, 0
        chosen = [shape for shape in shapes if shape[0] == own]
        for shape in sorted(chosen, key=lambda shape: (max(which for _, which in shapes[shape]) < 0, shape)):
            atoms = shapes[shape]
            width = partitions if max(which for _, which in atoms) >= 0 else 1
            if bit + width > WORD:
                word, bit = word + 1, 0
            for (_, which), atom in atoms.items():
                places[atom] = (word, bit + max(which, 0))
            if width > 1 or max(which for _, which in atoms) >= 0:
                fields.append((first + word, bit))
            bit += width
        return word + 1 if chosen else 0

    shared = fill(own=False, first=0)
    owned = fill(own=True, first=shared)
    for atom, (word, bit) in places.items():
        whose = about[atom][0]
        if len(whose) == 1:
            places[atom] = (shared + whose[0] * owned + word, bit)
    fields = [(word + member * owned, bit) for word, bit in fields for member in (range(members) if word >= shared else (0,))]
    masks = tuple(
        tuple(sum(1 << bit + partition for own, bit in fields if own == word) for partition in range(partitions))
        for word in range(shared + owned * members)
    )
    return Layout(
        places=places,
        shared=shared,
        own=owned,
        members=members,
        partitions=masks,
        symmetric_members=all(len(whose) < 2 for whose, _ in about.values()),
        symmetric_partitions=all(len(which) < 2 for _, which in about.values()),
    )


class _Text:
    """Straight-line code of one function: common subexpressions get a name once."""

    def __init__(self, circuit: Circuit, places: Mapping[Atom, tuple[int, int]]) -> None:
        self._circuit, self._places = circuit, places
        self._names: dict[str, str] = {}
        self._truths: dict[Literal, str] = {}
        self.lines: list[str] = []

    def _name(self, expression: str) -> str:
        name = self._names.get(expression)
        if name is None:
            name = self._names[expression] = f"t{len(self._names)}"
            self.lines.append(f"{name} = {expression}")
        return name

    def truth(self, literal: Literal) -> str:
        """A truth value (numpy: a column of them)."""
        found = self._truths.get(literal)
        if found is None:
            found = self._truths[literal] = self._truth(literal)
        return found

    def _truth(self, literal: Literal) -> str:
        if literal in (FALSE, TRUE):
            return "True" if literal == TRUE else "False"
        negated = literal & 1
        masks: defaultdict[int, int] = defaultdict(int)
        values: defaultdict[int, int] = defaultdict(int)
        operands: list[str] = []
        atom = self._circuit.atom_of(literal)
        for part in (literal ^ negated,) if atom else self._circuit.parts(literal):
            leaf = self._circuit.atom_of(part)
            if leaf:
                word, bit = self._places[leaf]
                masks[word] |= 1 << bit
                values[word] |= 0 if part & 1 else 1 << bit
            else:
                operands.append(self.truth(part ^ negated))
        relation = "!=" if negated else "=="
        operands += [self._name(f"(w{word} & {mask:#x}) {relation} {values[word]:#x}") for word, mask in sorted(masks.items())]
        return operands[0] if len(operands) == 1 else self._name((" | " if negated else " & ").join(operands))

    def word(self, word: int, new: Mapping[int, tuple[Atom, Literal]]) -> str:
        """The word with the bits in ``new`` replaced. Bits with the same expression, up to their position, share it."""
        touched = sum(1 << bit for bit in new)
        untouched = (1 << WORD) - 1 ^ touched
        terms = [f"(w{word} & {untouched:#x})"] if untouched else []
        groups: defaultdict[tuple[str, Literal], int] = defaultdict(int)
        for bit, (atom, literal) in new.items():
            groups[self._split(atom, literal, bit)] |= 1 << bit
        groups.pop(("", FALSE), None)
        for (moved, condition), mask in groups.items():
            factors = [moved] if moved else []
            factors += [f"ones({self.truth(condition)})"] if condition != TRUE else []
            terms.append(f"({' & '.join([*factors, f'{mask:#x}'])})")
        return " | ".join(terms) if terms else "0"

    def _split(self, target: Atom, literal: Literal, bit: int) -> tuple[str, Literal]:
        """The new bit as a bit of the state, moved to its place, and a condition; either may be trivial.

        The bit is chosen so that neighbours have the same condition: the target itself, its symbol, or whatever it is that a
        partition has.
        """
        circuit = self._circuit
        alone = circuit.atom_of(literal) is not None
        parts = (literal,) if alone else () if literal & 1 else circuit.parts(literal)
        atoms = {part: atom for part in parts if (atom := circuit.atom_of(part))}
        choices = (
            [part for part, atom in atoms.items() if atom == target],
            [part for part, atom in atoms.items() if atom.symbol == target.symbol],
            [part for part, atom in atoms.items() if alone or len(atom.arguments) > 1],
        )
        for part in itertools.chain(*choices):
            return self._moved(part, atoms[part], bit), circuit.all(other for other in parts if other != part)
        return "", literal

    def _moved(self, literal: Literal, atom: Atom, bit: int) -> str:
        word, place = self._places[atom]
        shift = f"w{word} >> {place - bit}" if place > bit else f"w{word} << {bit - place}"
        moved = f"w{word}" if place == bit else self._name(f"({shift})")
        return f"~{moved}" if literal & 1 else moved


@dataclass(frozen=True, slots=True)
class Code:
    """A system at one size, compiled.

    A state is a tuple of ``layout.words`` words, Python integers or numpy columns. ``guards`` gives a truth value per step,
    ``updates`` one function per step from words to words, ``observe`` a truth value per observed formula (the order of
    ``observed``). ``source`` is the text that all of them come from.
    """

    system: System
    size: Size
    layout: Layout
    moves: tuple[Move, ...]
    observed: tuple[str, ...]
    initial: tuple[int, ...]
    source: str
    update_bodies: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    guard_body: tuple[tuple[str, ...], tuple[str, ...]]
    observe_body: tuple[tuple[str, ...], tuple[str, ...]]

    def functions(self, ones: Callable[[Any], Any], steps: Sequence[int] | None = None) -> dict[str, Any]:
        """``guards``, ``observe`` and ``update0``, ``update1``, ...; ``ones`` turns a truth value
        into a word of ones or zeros.

        With ``steps``, ``guards`` tells of these steps only.
        """
        namespace: dict[str, Any] = {"ones": ones}
        exec(compile(self.source, f"<generated from {self.system.name}>", "exec"), namespace)
        if steps is not None:
            lines, results = self.guard_body
            chosen = tuple(results[at] for at in steps)
            exec(_function("guards", self.layout.words, _needed(lines, chosen), chosen), namespace)
        return namespace

    def words(self, atoms: Iterable[Atom]) -> tuple[int, ...]:
        """The state with these bits set, as far as they are stored."""
        words = [0] * self.layout.words
        for atom in atoms:
            if atom in self.layout.places:
                word, bit = self.layout.places[atom]
                words[word] |= 1 << bit
        return tuple(words)

    def atoms(self, words: Sequence[int]) -> frozenset[Atom]:
        """The bits that are set."""
        return frozenset(atom for atom, (word, bit) in self.layout.places.items() if int(words[word]) >> bit & 1)


def _function(name: str, words: int, lines: Iterable[str], results: Iterable[str]) -> str:
    parameters = ", ".join(f"w{word}" for word in range(words))
    return (
        f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in lines) + f"    return ({''.join(f'{r}, ' for r in results)})\n"
    )


def _needed(lines: Sequence[str], results: Sequence[str]) -> list[str]:
    """The lines that the results depend on."""
    wanted = set(results)
    kept: list[str] = []
    for line in reversed(lines):
        name, expression = line.split(" = ", 1)
        if name in wanted:
            kept.append(line)
            wanted.update(re.findall(r"\bt\d+\b", expression))
    return kept[::-1]


def compile_system(
    system: System,
    size: Size,
    observed: Mapping[str, Node],
    allowed: Callable[[Move], bool] | None = None,
    *,
    everything: bool = False,
) -> Code:
    """Generate the code. ``observed`` are closed formulas that a search asks for.

    ``allowed`` may forbid choices of the havoc relations. ``everything`` stores all bits, also those that nobody reads.
    Raises ValueError for a system that can't be ground at this size.
    """
    ground = Ground(system, size)
    circuit = ground.circuit
    formulas = {name: ground.formula(formula, {}) for name, formula in observed.items()}
    steps = list(ground.steps())
    condition = dict.fromkeys(ground.atoms(), TRUE)
    if not everything:
        liveness = _Liveness(ground, steps, formulas.values())
        condition = {atom: liveness.condition(atom) for atom in sorted(condition, key=liveness.rank)}
    dropped = dict.fromkeys((atom for atom, literal in condition.items() if literal == FALSE), FALSE)
    kept = [atom for atom in condition if atom not in dropped]
    condition = {atom: circuit.replace(condition[atom], dropped, {}) for atom in kept}
    layout = _layout(ground, kept)

    def stored(changes: Mapping[Atom, Literal]) -> dict[Atom, Literal]:
        """The changes of the bits that are stored, those that nobody will read set to 0 (the conditions look at lower ranks)."""
        new: dict[Atom, Literal] = {}
        for atom in kept:
            if atom in changes or not circuit.support(condition[atom]).isdisjoint(new):
                own = circuit.atom(atom)
                after = circuit.all((changes.get(atom, own), circuit.replace(condition[atom], new, {})))
                if after != own:
                    new[atom] = after
        return new

    expanded = [
        GroundMove(step.move, step.guard, stored(step.changes))
        for abstract in steps
        for step in (ground.choices(abstract) if system.action(abstract.move.action).havoc else (abstract,))
        if allowed is None or not step.move.havoc or allowed(step.move)
    ]
    expanded = [step for step in expanded if step.changes]
    guards = _Text(circuit, layout.places)
    guard_body = tuple(guards.truth(step.guard) for step in expanded)
    observe = _Text(circuit, layout.places)
    observe_body = tuple(observe.truth(literal) for literal in formulas.values())
    bodies: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    for step in expanded:
        text = _Text(circuit, layout.places)
        by_word: defaultdict[int, dict[int, tuple[Atom, Literal]]] = defaultdict(dict)
        for atom, literal in step.changes.items():
            word, bit = layout.places[atom]
            by_word[word][bit] = atom, literal
        results = tuple(text.word(word, by_word[word]) if word in by_word else f"w{word}" for word in range(layout.words))
        bodies.append((tuple(text.lines), results))
    functions = [("guards", (tuple(guards.lines), guard_body)), ("observe", (tuple(observe.lines), observe_body))]
    functions += [(f"update{at}", body) for at, body in enumerate(bodies)]
    source = "\n".join(_function(name, layout.words, lines, results) for name, (lines, results) in functions)
    start = ground.initial()
    first = stored({atom: TRUE if atom in start else FALSE for atom in kept})
    code = Code(
        system, size, layout, tuple(step.move for step in expanded), tuple(formulas), (), source, tuple(bodies), (tuple(guards.lines), guard_body),
        (tuple(observe.lines), observe_body),
    )  # fmt: skip
    return replace(code, initial=code.words(atom for atom, literal in first.items() if literal == TRUE))
