"""Explore: every state of the protocol floor, or runs of the reference world, for a run that breaks a promise.

These functions take names as the command line does and give one kind of answer for both floors. The protocol floor needs
numpy, scipy, networkx and Z3: without them its functions raise ImportError with the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..spec.events import Event
from ..spec.rules import RULES
from . import explorer
from .mutation import Floor, Mutation
from .mutations import reference_mutation
from .scenarios import SCENARIOS

if TYPE_CHECKING:
    from .protocol.ground import Trace
    from .protocol.language import System
    from .protocol.search import Progress as Searched

Kind = Literal["always", "sometimes", "eventually"]
Verdict = Literal["holds", "violated", "reached", "unreached", "undecided"]
Progress = Callable[[int, int], None]
"""Told the number of states and the depth, now and then."""

MEMORY = 8_000_000_000
"""Bytes that a search may allocate, unless told otherwise."""

SEARCHED = ("S1", "S2", "S4")
"""The promises of the consumer protocol that need no history, and are searched together."""


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


# The reference floor.


def explore_scenario(
    scenario: str,
    *,
    mutation: str | None = None,
    reorderings: int = 0,
    max_states: int = 200_000,
    progress: Progress | None = None,
) -> Exploration:
    """Runs of the reference world in a scenario of `SCENARIOS`, judged by the rules of `spec`.

    Raises KeyError for an unknown scenario or mutation.
    """
    setting = SCENARIOS[scenario]
    mutant = None if mutation is None else reference_mutation(mutation)
    rules = frozenset(mutant.breaks) if mutant is not None and mutant.breaks else None
    found = explorer.search(
        setting, mutation=mutation, rules=rules, reorderings=reorderings, max_worlds=max_states, progress=progress
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
        title=f"{scenario}: {setting.what}" + (f"; mutant {mutation}" if mutation else ""),
        floor="reference",
        bounds=f"faults of the scenario at any time, {reorderings or 'no'} acts out of turn",
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
    """
    from .protocol.consumer import consumer_protocol
    from .protocol.goals import goals
    from .protocol.search import search

    system = consumer_protocol(static=any(i is not None for i in instances), partial_loss=False, commits=False)
    result = search(
        system,
        members=members,
        partitions=partitions,
        instances=instances,
        properties={name: system.safety[name] for name in SEARCHED},
        goals=goals(),
        symmetry=symmetry,
        max_states=max_states,
        max_memory=max_memory,
        progress=_told(progress),
    )
    statements = tuple(
        Statement(
            kind="always" if name in SEARCHED else "sometimes",
            name=name,
            words=system.words[name] if name in SEARCHED else goals_words()[name],
            rules=system.rules.get(name, ()),
            verdict=verdict,
            steps=len(result.runs[name].steps) if name in result.runs else None,
        )
        for name, verdict in result.verdicts.items()
    )
    return Exploration(
        title="cooperative consumers" + (", static members among them" if instances else ""),
        floor="protocol",
        bounds=f"{members} member ids, {partitions} partitions, any number of generations, every fault at any time",
        statements=statements,
        states=result.states,
        transitions=result.transitions,
        depth=result.depth,
        seconds=result.seconds,
        bytes=result.peak_bytes,
        complete=result.complete,
        why=_WHY.get(result.why, ""),
        counterexample=None,
    )
