"""Explore: every state of the protocol floor, or runs of the reference world, for a run that breaks a promise.

These functions take names as the command line does and give one kind of answer for both floors. The protocol floor needs
numpy, scipy, networkx and Z3: without them its functions raise ImportError with the remedy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from ..spec.events import Event
from ..spec.rules import RULES
from . import explorer
from .explorer import Progress
from .mutation import Floor
from .mutations import MUTATIONS, PROTOCOL, REFERENCE, SCENARIOS

if TYPE_CHECKING:
    from .protocol.ground import Trace
    from .protocol.language import Sort, System
    from .protocol.refute import AnyCase, Case, ConnectCase
    from .protocol.search import Progress as Searched
    from .protocol.search import Result, Run

Kind = Literal["always", "sometimes", "eventually"]
Verdict = Literal["holds", "violated", "reached", "unreached", "undecided"]

MEMORY = 8_000_000_000
"""Bytes that a search may allocate, unless told otherwise."""

MAX_WORLDS = 200_000
"""Worlds after which the search of a scenario stops, about 10 KB each."""

SEARCHED = ("S1", "S2")
"""The promises of the consumer protocol that are searched; the others are proved (`proofs`). Each one more that is asked multiplies the states."""

CONVERGENCE_STATES = 1_000_000
"""Up to so many states it is also asked how every quiet run ends: that takes the whole graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A property that was asked: ``steps`` of the shortest run that violates or reaches it."""

    kind: Kind
    name: str
    words: str
    rules: tuple[str, ...] = ()
    verdict: Verdict
    steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """The shortest run found: ``script`` has a line for each step, ``events`` is the same run as trace version 1."""

    breaks: str
    script: tuple[str, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What was explored and found.

    ``complete``: every state (protocol) or run (reference) within the ``bounds`` was seen, else ``why`` not. ``seconds`` are CPU
    time, ``bytes`` what the search allocated at most (0: not measured).
    """

    title: str
    floor: Floor
    bounds: str
    statements: tuple[Statement, ...]
    states: int
    transitions: int
    depth: int
    seconds: float
    bytes: int = 0
    complete: bool
    why: str = ""
    counterexample: Counterexample | None = None

    @property
    def violated(self) -> bool:
        return any(statement.verdict == "violated" for statement in self.statements)

    @property
    def undecided(self) -> bool:
        return not self.complete and not self.violated


def explore(
    scenario: str | None = None,
    *,
    mutate: str | None = None,
    popular: str | None = None,
    members: int = 2,
    partitions: int = 2,
    instances: Sequence[int | None] = (),
    reorderings: int | None = None,
    symmetry: bool = True,
    max_states: int | None = None,
    max_memory: int = MEMORY,
    progress: Progress | None = None,
) -> Exploration:
    """Look for a run that breaks a promise.

    Without a name: all states of the consumer protocol (`explore_protocol`). ``scenario``: runs of the reference world. ``mutate``: with
    that defect, in its own scenario if none is named. ``popular``: the run that breaks a promise as people state it.

    Raises KeyError for an unknown name, ValueError for a mutation that no scenario shows, ImportError without the ``prove`` extra.
    """
    if popular:
        return explore_popular(popular, max_memory=max_memory, progress=progress)
    if mutate and mutate not in MUTATIONS:
        raise KeyError(mutate)
    if mutate and not scenario and not (mutate in REFERENCE and REFERENCE[mutate].scenario) and mutate in PROTOCOL:
        return explore_mutant(mutate, max_memory=max_memory, progress=progress)
    if scenario or mutate:
        worlds = max_states or MAX_WORLDS
        return explore_scenario(scenario, mutation=mutate, reorderings=reorderings, max_states=worlds, progress=progress)
    return explore_protocol(
        members=members,
        partitions=partitions,
        instances=instances,
        symmetry=symmetry,
        max_states=max_states,
        max_memory=max_memory,
        progress=progress,
    )


# The reference floor.


def explore_scenario(
    scenario: str | None,
    *,
    mutation: str | None = None,
    reorderings: int | None = None,
    max_states: int = MAX_WORLDS,
    progress: Progress | None = None,
) -> Exploration:
    """Runs of the reference world in a scenario of `SCENARIOS`, judged by the rules of `spec`.

    Without a scenario or reorderings, those in which the mutation is known to show itself. Raises KeyError for an unknown
    scenario or mutation, and ValueError for a mutation that no observer can see, if no scenario is named.
    """
    mutant = None if mutation is None else REFERENCE[mutation]
    where = scenario or (mutant.scenario if mutant else "")
    if not where:
        raise ValueError(f"no scenario shows it: {mutant.unseen if mutant else 'name one'}")
    setting = SCENARIOS[where]
    turns = reorderings if reorderings is not None else mutant.reorderings if mutant else 0
    needs = mutant.needs if mutant else ()
    rules = frozenset(mutant.breaks) if mutant is not None and mutant.breaks else None
    found = explorer.search(
        setting, mutation=mutation, needs=needs, rules=rules, reorderings=turns, max_worlds=max_states, progress=progress
    )
    asked = sorted(rules) if rules else ["every rule of the catalogue"]
    broken = found.counterexample.finding.rule if found.counterexample else None
    quiet: Verdict = "holds" if found.complete else "undecided"
    statements = [
        Statement(
            kind="always",
            name=name,
            words=RULES[name].promise if name in RULES else "no finding that is an error or a warning",
            rules=(name,) if name in RULES else (),
            verdict="violated" if broken is not None and name in (broken, asked[0] if not rules else "") else quiet,
            steps=len(found.counterexample.script) if found.counterexample else None,
        )
        for name in asked
    ]
    return Exploration(
        title=f"{where}: {setting.what}" + (f"; mutant {mutation}" if mutation else "") + "".join(f" with {n}" for n in needs),
        floor="reference",
        bounds=f"faults of the scenario at any time, {turns or 'no'} acts out of turn",
        statements=tuple(statements),
        states=found.worlds,
        transitions=found.steps,
        depth=found.depth,
        seconds=found.seconds,
        complete=found.complete or found.counterexample is not None,
        why="" if found.complete or found.counterexample else f"stopped after {found.worlds:,} worlds",
        counterexample=None
        if found.counterexample is None
        else Counterexample(
            breaks=found.counterexample.finding.rule,
            script=tuple(map(str, found.counterexample.script)),
            events=found.counterexample.events,
        ),
    )


# The protocol floor.


def explore_protocol(
    *,
    members: int = 2,
    partitions: int = 2,
    instances: Sequence[int | None] = (),
    symmetry: bool = True,
    max_states: int | None = None,
    max_memory: int = MEMORY,
    progress: Progress | None = None,
) -> Exploration:
    """Every reachable state of the consumer protocol for so many member ids and partitions, with any number of generations.

    ``instances``: for each member id its static instance, None for a dynamic one. Every fault may happen, any number of times.
    That every quiet run ends stable, fully owned and balanced is asked of dynamic members only.
    """
    from .protocol.consumer import consumer_protocol
    from .protocol.search import search
    from .protocol.systems import GOALS

    static = any(instance is not None for instance in instances)
    system = consumer_protocol(static=static, partial_loss=False, commits=False)
    ask = partial(
        search,
        system,
        members=members,
        partitions=partitions,
        instances=instances,
        symmetry=symmetry,
        max_states=max_states,
        max_memory=max_memory,
        progress=_progress(progress),
    )
    result = ask(properties={name: system.safety[name] for name in SEARCHED})
    reached = ask(properties={}, goals={name: goal.formula for name, goal in GOALS.items()})
    also = [
        Statement(kind="sometimes", name=name, words=goal.words, verdict=reached.verdicts[name], steps=_steps(reached.runs.get(name)))
        for name, goal in GOALS.items()
    ]
    if not static and result.complete and result.states <= CONVERGENCE_STATES:
        also.append(_convergence(members, partitions, symmetry, max_states, max_memory, progress))
    return _explored(f"cooperative consumers, {'static' if static else 'dynamic'}", _bounds(members, partitions), system, result, also)


_STOPPED = {
    "states": "stopped after the states that --max-states allows",
    "memory": "stopped before it needed more memory than --max-memory",
}


def _explored(title: str, bounds: str, system: System, result: Result, also: Sequence[Statement] = ()) -> Exploration:
    """What a search for promises found, and what was asked ``also``."""
    broken = next((name for name, verdict in result.verdicts.items() if verdict == "violated"), None)
    return Exploration(
        title=title,
        floor="protocol",
        bounds=bounds,
        statements=(*(_promise(system, name, verdict, result.runs.get(name)) for name, verdict in result.verdicts.items()), *also),
        states=result.states,
        transitions=result.transitions,
        depth=result.depth,
        seconds=result.seconds,
        bytes=result.peak_bytes,
        complete=result.complete or broken is not None,
        why=_STOPPED.get(result.why, ""),
        counterexample=None if broken is None else _told(system, broken, result.runs[broken]),
    )


def _promise(system: System, name: str, verdict: Verdict, run: Run | Trace | None) -> Statement:
    words, rules = system.words[name], system.rules.get(name, ())
    return Statement(kind="always", name=name, words=words, rules=rules, verdict=verdict, steps=_steps(run))


def _steps(run: Run | Trace | None) -> int | None:
    return None if run is None else len(run.steps)


def _bounds(members: int, partitions: int) -> str:
    return f"{members} member ids, {partitions} partition{'s' * (partitions > 1)}, any number of generations, every fault at any time"


def _progress(progress: Progress | None) -> Callable[[Searched], None] | None:
    return None if progress is None else lambda now: progress(now.states, now.depth)


def _convergence(
    members: int, partitions: int, symmetry: bool, max_states: int | None, max_memory: int, progress: Progress | None
) -> Statement:
    from .protocol.consumer import consumer_protocol
    from .protocol.liveness import converges, quiet_graph, quiet_system

    system = quiet_system(consumer_protocol(static=False, partial_loss=False, commits=False))
    graph = quiet_graph(
        system,
        members=members,
        partitions=partitions,
        symmetry=symmetry,
        max_states=max_states,
        max_memory=max_memory,
        progress=_progress(progress),
    )
    found = converges(graph)
    wrong = bool(found.stuck or found.cycling)
    return Statement(
        kind="eventually",
        name="converges",
        words="Once nothing fails any more, every run ends stable, fully owned and balanced.",
        rules=("converges", "withheld-partition-reassigned"),
        verdict="violated" if wrong else "holds" if found.converges else "undecided",
        steps=len(found.lasso) if wrong else found.longest,
    )


def explore_popular(name: str, *, max_memory: int = MEMORY, progress: Progress | None = None) -> Exploration:
    """The shortest run that breaks a promise as people state it; ``name`` is one of `systems.POPULAR`. Raises KeyError."""
    from .protocol.systems import POPULAR

    return _case(POPULAR[name], f"the promise as people state it, {name}", max_memory, progress)


def explore_mutant(mutation: str, *, max_memory: int = MEMORY, progress: Progress | None = None) -> Exploration:
    """The shortest run of a mutant of the protocol floor that breaks a promise.

    Raises KeyError for an unknown mutation, and ValueError for one that is proved harmless.
    """
    from .protocol import refute
    from .protocol.systems import theory_of

    theory = theory_of(mutation)
    if theory is None:
        raise KeyError(mutation)
    case = refute.MUTANTS.get(mutation) or refute.CONNECT_MUTANTS.get(mutation)
    if case is None:
        raise ValueError(f"{theory.mutations[mutation].unseen} See kipcheck prove --mutate {mutation}")
    return _case(case, f"mutant {mutation}", max_memory, progress)


def _case(case: AnyCase, title: str, max_memory: int, progress: Progress | None) -> Exploration:
    from .protocol.refute import Case

    return _searched(case, title, max_memory, progress) if isinstance(case, Case) else _unrolled(case, title)


def _unrolled(case: ConnectCase, title: str) -> Exploration:
    """A short run that SAT finds on from a group that has formed; of Connect's states there are too many to search."""
    from .protocol.refute import refute

    began = time.process_time()
    trace, system = refute(case), case.system
    return Exploration(
        title=title,
        floor="protocol",
        bounds=f"{case.workers} workers, {len(case.shares)} unit{'s' * (len(case.shares) > 1)} of work, at most {case.steps} steps after they have formed a group",
        statements=(_promise(system, case.breaks, "undecided" if trace is None else "violated", trace),),
        states=0,
        transitions=0,
        depth=_steps(trace) or case.steps,
        seconds=time.process_time() - began,
        complete=trace is not None,
        why="" if trace else "no run so short breaks it",
        counterexample=None if trace is None else _narrated(system, case.breaks, case.sizes, trace),
    )


_NUMBERED = frozenset({"S14"})
"""Promises about the order of generations itself, which lags behind the current one can't show."""


def _searched(case: Case, title: str, max_memory: int, progress: Progress | None) -> Exploration:
    from .protocol.search import search

    system = case.system
    promise = {**system.safety, **system.popular}[case.breaks]
    result = search(
        system,
        members=len(case.instances),
        partitions=case.partitions,
        instances=case.instances,
        generations=case.generations if case.failover or case.breaks in _NUMBERED else None,
        properties={case.breaks: promise},
        symmetry=False,
        reduction=False,
        max_memory=max_memory,
        progress=_progress(progress),
    )
    return _explored(title, _bounds(len(case.instances), case.partitions), system, result)


def _told(system: System, breaks: str, run: Run) -> Counterexample:
    from .protocol.ground import Trace

    sizes = dict.fromkeys(system.sorts, 1)
    used = [(symbol.sorts, point) for symbol in (*system.rigid, *system.state) for point in run.states[0].get(symbol.name, ())]
    used += [(tuple(v.sort for v in system.action(step.action).parameters), step.arguments) for step in run.steps]
    for sorts, point in used:
        sizes |= {sort: max(sizes[sort], at + 1) for sort, at in zip(sorts, point, strict=True)}
    return _narrated(system, breaks, sizes, Trace(run.states[0], run.steps))


def _narrated(system: System, breaks: str, sizes: Mapping[Sort, int], trace: Trace) -> Counterexample:
    from .protocol.narrate import narrate

    return Counterexample(breaks=breaks, script=tuple(map(str, trace.steps)), events=narrate(system, sizes, trace))
