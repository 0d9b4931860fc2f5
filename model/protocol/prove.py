"""Inductive proofs, for any number of members, partitions and generations.

An obligation is an action and a conjecture: if all conjectures hold before the action, this one holds after it. If every
obligation is proved, and every conjecture holds initially, the safety properties hold in every reachable state.

An obligation that fails is no defect: it may only say that the invariants are too weak. Its counterexample starts in a state
that perhaps nothing reaches. A defect is a run from the initial state (`ground.py`, `search.py`).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from .interpreter import Interpreter, State
from .language import Action, Node, Quantified, Sort, Symbol, System, lnot, lor, substitute, symbols_of, weakest_precondition
from .quantified import Translation, sort_cycle, sort_edges

Result = Literal["proved", "refuted", "unknown"]
INITIALLY = "initially"
TIMEOUT = 60.0
TOGETHER = 0.5
"""Seconds for all conjectures of an action in one question: a proof takes a tenth of that, a refutation may take a hundred times as long."""


@dataclass(frozen=True, slots=True)
class Obligation:
    """``action`` (or `INITIALLY`) keeps ``conjecture``. ``seconds`` of wall time; obligations proved together share theirs."""

    action: str
    conjecture: str
    seed: int
    result: Result
    seconds: float


@dataclass(frozen=True, slots=True)
class Vacuity:
    """Whether an action can happen at all while the conjectures hold, and in how large a universe that was seen."""

    action: str
    possible: bool
    universe: Mapping[Sort, int]


@dataclass(frozen=True, slots=True)
class Induction:
    """A counterexample to induction: a state with all conjectures, and a step into one without ``conjecture``."""

    action: str
    conjecture: str
    arguments: Mapping[str, int]
    sizes: Mapping[Sort, int]
    before: State
    after: State
    where: Mapping[str, int]
    """The values of the conjecture's variables at which it fails."""

    def __str__(self) -> str:
        def told(values: Mapping[str, int]) -> str:
            return ", ".join(f"{name} = {value}" for name, value in values.items()) or "nothing to choose"

        size = ", ".join(f"{count} {sort}" for sort, count in self.sizes.items())
        changed = {name: points for name, points in self.after.items() if self.before.get(name) != points}
        lines = [f"{self.action} ({told(self.arguments)}) breaks {self.conjecture} at {told(self.where)}, with {size}"]
        lines += [f"  before: {line}" for line in _rendered(self.before)]
        lines += [f"  after:  {line}" for line in _rendered(changed)]
        return "\n".join(lines)


def _rendered(state: State) -> Iterator[str]:
    for name, points in state.items():
        if isinstance(points, Mapping):
            values = (
                f"{name}({', '.join(map(str, point))}) = {value}" if point else f"{name} = {value}" for point, value in points.items()
            )
            yield ", ".join(values)
        elif points:
            yield ", ".join(f"{name}({', '.join(map(str, point))})" if point else name for point in sorted(points))


@dataclass(frozen=True, slots=True)
class Proof:
    """What was asked and answered. ``cycle``: sorts that keep the obligations out of EPR, normally none.

    ``seconds`` is CPU time of it all, ``counterexamples`` has one of each refuted obligation.
    """

    system: System
    obligations: tuple[Obligation, ...]
    vacuity: tuple[Vacuity, ...]
    cycle: tuple[Sort, ...]
    counterexamples: tuple[Induction, ...]
    seconds: float

    @property
    def failed(self) -> tuple[Obligation, ...]:
        return tuple(obligation for obligation in self.obligations if obligation.result != "proved")

    @property
    def inductive(self) -> bool:
        """Everything asked was proved with every seed, and no action is impossible."""
        return not self.failed and all(action.possible for action in self.vacuity)

    def matrix(self) -> dict[str, dict[str, Result]]:
        """Action -> conjecture -> the worst result over the seeds; an action that can't touch a conjecture lacks it."""
        worst: dict[str, dict[str, Result]] = {}
        for obligation in self.obligations:
            row = worst.setdefault(obligation.action, {})
            if row.get(obligation.conjecture, "proved") == "proved":
                row[obligation.conjecture] = obligation.result
        return worst


def prove(system: System, seeds: Sequence[int] = (0, 1, 2), only: Collection[str] | None = None, timeout: float = TIMEOUT) -> Proof:
    """All obligations of the system with each seed; ``only``: of these conjectures (all are assumed).

    ``timeout``: seconds for one question to Z3. Raises ImportError without Z3, and KeyError for an unknown conjecture.
    """
    started = time.process_time()
    assumed = {**system.safety, **system.invariants}
    goals = {name: assumed[name] for name in (assumed if only is None else only)}
    context = (*system.axioms, *assumed.values())
    translation = Translation(system)
    obligations: list[Obligation] = []
    counterexamples: dict[tuple[str, str], Induction] = {}
    edges: set[tuple[Sort, Sort]] = set()
    first = {name: substitute(goal, {}, system.initial) for name, goal in goals.items()}
    for seed in seeds:
        obligations += _settled(translation, INITIALLY, system.axioms, first, seed, timeout)
    for action in system.actions:
        wanted = {name: weakest_precondition(action, goal) for name, goal in goals.items()}
        wanted = {name: before for name, before in wanted.items() if before is not goals[name]}
        premises = (*context, action.guard)
        for formula in (*premises, *map(lnot, wanted.values())):
            edges |= sort_edges(formula)
        for seed in seeds:
            for answer in _settled(translation, action.name, premises, wanted, seed, timeout):
                obligations.append(answer)
                key = action.name, answer.conjecture
                if answer.result == "refuted" and key not in counterexamples:
                    counterexamples[key] = _counterexample(
                        translation, action, premises, answer.conjecture, goals[answer.conjecture], seed, timeout
                    )
    vacuity = tuple(_vacuity(translation, action, context, timeout) for action in system.actions)
    return Proof(
        system,
        tuple(obligations),
        vacuity,
        sort_cycle(edges),
        tuple(counterexamples.values()),
        time.process_time() - started,
    )


def _settled(
    translation: Translation, action: str, premises: tuple[Node, ...], wanted: Mapping[str, Node], seed: int, timeout: float
) -> list[Obligation]:
    """First all of them in one question; only if that isn't answered by a proof, each."""
    if not wanted:
        return []
    result, seconds = _asked(translation, (*premises, lor(*map(lnot, wanted.values()))), seed, min(timeout, TOGETHER))
    if result == "proved":
        return [Obligation(action, name, seed, result, seconds / len(wanted)) for name in wanted]
    answers = ((name, *_asked(translation, (*premises, lnot(goal)), seed, timeout)) for name, goal in wanted.items())
    return [Obligation(action, name, seed, result, seconds) for name, result, seconds in answers]


_RESULTS: Mapping[str, Result] = {"unsat": "proved", "sat": "refuted", "unknown": "unknown"}


def _asked(translation: Translation, formulas: tuple[Node, ...], seed: int, timeout: float) -> tuple[Result, float]:
    started = time.perf_counter()
    result = _RESULTS[str(translation.solver(formulas, seed, timeout).check())]
    return result, time.perf_counter() - started


def _vacuity(translation: Translation, action: Action, context: tuple[Node, ...], timeout: float) -> Vacuity:
    solver = translation.solver((*context, action.guard), 0, timeout)
    if str(solver.check()) != "sat":
        return Vacuity(action.name, False, {})
    sizes, _, _ = translation.structure(solver.model(), (), ())
    return Vacuity(action.name, True, sizes)


def _counterexample(
    translation: Translation, action: Action, premises: tuple[Node, ...], conjecture: str, goal: Node, seed: int, timeout: float
) -> Induction:
    system = translation.system
    solver = translation.solver((*premises, lnot(weakest_precondition(action, goal))), seed, timeout)
    solver.check()
    shown = (*(symbol for symbol in system.rigid if not _is_order(system, symbol)), *system.state, *action.havoc)
    sizes, state, values = translation.structure(solver.model(), shown, action.parameters)
    interpreter = Interpreter(system, sizes)
    after = interpreter.apply(action, state, tuple(values[parameter] for parameter in action.parameters))
    told = symbols_of(goal) | symbols_of(action.guard) | symbols_of(weakest_precondition(action, goal))
    visible = {symbol.name for symbol in told}
    return Induction(
        action.name,
        conjecture,
        {parameter.name: value for parameter, value in values.items()},
        sizes,
        {name: points for name, points in state.items() if name in visible},
        {name: points for name, points in after.items() if name in visible},
        failure(interpreter, goal, after),
    )


def _is_order(system: System, symbol: Symbol) -> bool:
    return any(symbol in (order.less, order.least) for order in system.ordered)


def failure(interpreter: Interpreter, formula: Node, state: State) -> dict[str, int]:
    """The values of the outermost universal variables for which ``formula`` is false; empty if it has none or is true."""
    if not isinstance(formula, Quantified) or formula.kind != "forall":
        return {}
    for point in product(*(range(interpreter.sizes[variable.sort]) for variable in formula.variables)):
        values = dict(zip(formula.variables, point, strict=True))
        if not interpreter.holds(formula.body, state, values):
            return {variable.name: value for variable, value in values.items()}
    return {}
