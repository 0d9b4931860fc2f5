"""Short runs of a protocol that break a promise: of a mutant, or a popular promise that is false.

An obligation that fails proves nothing against a mutant (`prove.py`), so `judge` says "refuted" only with a run from the
initial state, and "harmless" only with a proof. The runs are short, not always the shortest: a group is formed first, in
order, and SAT finds the shortest way on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product, starmap
from typing import Literal

from . import connect, consumer
from .connect import connect_protocol
from .consumer import Reported, consumer_protocol
from .ground import Trace, drive, violation
from .interpreter import Interpreter, Relation, State, Step
from .language import Sort, System
from .prove import Proof, prove


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Where to look in the consumer protocol for a run that breaks ``breaks``.

    ``instances``: per member its static instance, or None for a dynamic one. ``founders`` form a stable group first, in which
    partition p is that of founder p modulo their number; then comes ``onward``, and after that at most ``steps`` steps.
    """

    breaks: str
    mutation: str = ""
    instances: tuple[int | None, ...] = (None, None)
    partitions: int = 1
    generations: int = 3
    founders: tuple[int, ...] = (0,)
    onward: tuple[Step, ...] = ()
    steps: int = 12
    failover: bool = False
    reported: Reported = "completed"

    @property
    def system(self) -> System:
        """Without partial loss, which no such run needs."""
        return consumer_protocol(
            static=any(instance is not None for instance in self.instances),
            failover=self.failover,
            mutations=frozenset({self.mutation} - {""}),
            partial_loss=False,
            reported=self.reported,
        )

    @property
    def sizes(self) -> dict[Sort, int]:
        used = {instance for instance in self.instances if instance is not None}
        return {
            "Member": len(self.instances),
            "Partition": self.partitions,
            "Generation": self.generations,
            "Instance": max(1, len(used)),
        }

    @property
    def rigid(self) -> State:
        """Which members are static, and whose instance they are."""
        return {
            "static": frozenset((member,) for member, instance in enumerate(self.instances) if instance is not None),
            "instance": {(member,): instance or 0 for member, instance in enumerate(self.instances)},
        }

    def formation(self) -> Iterator[Step]:
        """Who forms the group, in an order that is tried again and again: see `formed`."""
        actions = "start", "join_new", "complete", "receive_join_response", "propose", "accept", "answer_sync", "revoke", "assign"
        shares = frozenset((self.founders[p % len(self.founders)], p) for p in range(self.partitions))
        return _steps(self.system, self.sizes, actions, {"choice": shares}, "start", self.founders)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectCase:
    """Where to look in the Connect protocol: see `Case`. ``shares``: which founder has each unit after the first round."""

    breaks: str
    mutation: str = ""
    workers: int = 2
    generations: int = 4
    founders: tuple[int, ...] = (0, 1)
    shares: tuple[int, ...] = (1,)
    onward: tuple[Step, ...] = ()
    steps: int = 14

    @property
    def system(self) -> System:
        return connect_protocol(mutations=frozenset({self.mutation} - {""}))

    @property
    def sizes(self) -> dict[Sort, int]:
        return {"Member": self.workers, "Partition": len(self.shares), "Generation": self.generations}

    @property
    def rigid(self) -> State:
        """There is a delay."""
        return {"no_delay": frozenset()}

    def formation(self) -> Iterator[Step]:
        """See `Case.formation`."""
        give = frozenset((founder, unit) for unit, founder in enumerate(self.shares))
        actions = "join", "create", "complete", "settle", "accept", "stop", "start"
        return _steps(self.system, self.sizes, actions, {"give": give}, "join", self.founders)


AnyCase = Case | ConnectCase

_QUIET: Mapping[type[AnyCase], tuple[str, ...]] = {
    Case: ("receive_join_response", "revoke", "assign", "answer_sync", "propose", "accept", "rejoin", "join_known", "complete"),
    ConnectCase: ("stop", "start", "accept", "settle", "withhold", "deal", "rejoin", "complete"),
}
"""What goes on when nothing happens to a group, the first that is possible first; the last three are the next round."""

_GIVES = frozenset({"choice", "give"})
"""Relations that a leader makes as large as it may; the others as small."""


def _steps(
    system: System,
    sizes: Mapping[Sort, int],
    actions: tuple[str, ...],
    choices: Mapping[str, Relation],
    enters: str,
    founders: tuple[int, ...],
) -> Iterator[Step]:
    """These actions with all arguments, but only founders enter; havoc relations that aren't given are empty."""
    interpreter = Interpreter(system, sizes)
    for name in actions:
        action = system.action(name)
        chosen = {symbol.name: choices.get(symbol.name, frozenset[tuple[int, ...]]()) for symbol in action.havoc}
        for arguments in interpreter.points([parameter.sort for parameter in action.parameters]):
            if name != enters or arguments[0] in founders:
                yield Step(name, arguments, chosen)


_SAME, _TWO = (0, 0), (0, 1)

JOINED_BY_ANOTHER = (Step("start", (1,)), Step("join_new", (1,)), Step("rejoin", (0,)), Step("join_known", (0,)))
"""Client 1 joins, and 0 joins again."""

MUTANTS: Mapping[str, Case] = {
    case.mutation: case
    for case in (
        Case(mutation="assignor-skips-adjust", breaks="S2"),
        Case(mutation="stale-claims-win", breaks="S8", instances=_TWO, generations=4, steps=16),
        Case(mutation="older-claims-ignored", breaks="S8", generations=4, steps=18),
        Case(mutation="both-ids-stay", breaks="S1", instances=_SAME, generations=2, founders=()),
        Case(mutation="rejoin-before-revoked", breaks="S8", generations=4, steps=15),
        Case(mutation="stale-join-delivered", breaks="S2", generations=4),
        Case(mutation="laggard-kept", breaks="S2", generations=4),
        Case(mutation="stale-sync-granted", breaks="S6", instances=_TWO, founders=()),
        Case(mutation="stale-generation-commits", breaks="S5", instances=_TWO),
        Case(mutation="stale-proposal-accepted", breaks="S3meta", instances=_TWO, generations=4),
        Case(mutation="generation-falls", breaks="S14", onward=JOINED_BY_ANOTHER),
        Case(mutation="retained-revoked", breaks="S15"),
        Case(mutation="assigned-to-strangers", breaks="S7", founders=()),
        Case(mutation="partition-assigned-twice", breaks="S1", generations=2, founders=()),
        Case(mutation="restart-loses-assignment", breaks="S10", instances=_SAME, generations=2, founders=()),
        Case(mutation="removed-id-readmitted", breaks="S11", instances=_SAME, generations=2, founders=()),
        Case(mutation="absent-static-dropped", breaks="S12", instances=_TWO),
        Case(mutation="replacement-not-written", breaks="S11", instances=_SAME, generations=2, founders=(), failover=True),
        Case(mutation="sync-answered-before-write", breaks="S13", failover=True),
    )
}
"""For each mutation of the consumer protocol that is not harmless, a property and where it breaks."""

POPULAR: Mapping[str, Case] = {
    case.breaks: case
    for case in (
        Case(breaks="S2mem", instances=_TWO, generations=4),
        Case(breaks="S3lit", instances=_TWO, founders=()),
        Case(breaks="S3all", instances=(0, 0, 1), founders=()),
    )
}
"""For each popular promise of it that is false, where it breaks without any mutation."""

_NOTHING: Mapping[str, Relation] = {"give": frozenset(), "shed": frozenset()}

WITHHELD = (
    Step("remove", (1,)),
    Step("rejoin", (0,)),
    Step("complete", (2, 0)),
    Step("withhold", (0,), _NOTHING),
    Step("accept", ()),
    Step("stop", (0,)),
    Step("start", (0,)),
)
"""Worker 1 loses its session, and worker 0 announces a delay."""

ZOMBIE_BACK = (
    *WITHHELD,
    Step("rejoin", (0,)),
    Step("complete", (3, 0)),
    Step("deal", (0,), {**_NOTHING, "give": frozenset({(0, 0)})}),
    Step("accept", ()),
    Step("stop", (0,)),
    Step("start", (0,)),
    Step("come_back", (1, 2)),
    Step("rejoin", (0,)),
)
"""Then worker 0 gets its unit when the delay is over, and 1 comes back as member 2, with the unit."""

RESTARTED = (
    Step("leave", (1,)),
    Step("join", (2,)),
    Step("rejoin", (0,)),
    Step("complete", (2, 0)),
    Step("withhold", (0,), _NOTHING),
    Step("accept", ()),
    *(Step(action, (worker,)) for worker in (0, 2) for action in ("stop", "start")),
)
"""Worker 1 stops in order, and starts again as member 2, while worker 0 announces a delay."""

REVOCATION_MISSED = (
    *(Step("rejoin", (worker,)) for worker in range(3)),
    Step("complete", (2, 0)),
    Step("settle", (0,), {**_NOTHING, "shed": frozenset({(2, 1)}), "back_off": frozenset()}),
    Step("accept", ()),
    *(Step(action, (worker,)) for worker in (0, 1) for action in ("stop", "start")),
)
"""Worker 2 is told to stop its unit, and does not hear of it."""

CONNECT_MUTANTS: Mapping[str, ConnectCase] = {
    case.mutation: case
    for case in (
        ConnectCase(mutation="leader-counts-running-work-as-new", breaks="connect-exclusive-work"),
        ConnectCase(mutation="leader-gives-before-revocation", breaks="connect-exclusive-work", founders=(0,), shares=(0,)),
        ConnectCase(mutation="leader-gives-twice", breaks="connect-exclusive-work", founders=(), shares=(0,)),
        ConnectCase(mutation="duplicates-kept", breaks="connect-exclusive-work", workers=3, generations=5, onward=ZOMBIE_BACK),
        ConnectCase(
            mutation="duplicate-left-with-one-holder", breaks="connect-exclusive-work", workers=3, generations=5, onward=ZOMBIE_BACK
        ),
        ConnectCase(mutation="lost-work-given-at-once", breaks="connect-lost-work-withheld", onward=WITHHELD),
        ConnectCase(mutation="lost-work-forgotten", breaks="connect-lost-work-withheld"),
        ConnectCase(
            mutation="returning-worker-passed-over", breaks="connect-waiting-workers-first", workers=3, shares=(0, 1), onward=RESTARTED
        ),
        ConnectCase(mutation="worker-reports-before-stopping", breaks="connect-exclusive-work", founders=(0,), shares=(0,)),
    )
}
"""The same for the Connect protocol."""

CONNECT_POPULAR: Mapping[str, ConnectCase] = {
    case.breaks: case
    for case in (
        ConnectCase(breaks="connect-work-runs-once", onward=WITHHELD),
        ConnectCase(breaks="connect-work-runs-once-in-the-group", workers=3, onward=WITHHELD),
        ConnectCase(breaks="connect-delay-survives-the-leader"),
        ConnectCase(breaks="connect-lost-work-always-waits", workers=3, founders=(0, 1, 2), shares=(1, 2), onward=REVOCATION_MISSED),
    )
}
"""The same for the Connect protocol."""

MISLABELLED = Case(breaks="S8", instances=_TWO, generations=5, steps=22, reported="joined")
"""Where exclusive ownership breaks with static members whose claims name the generation of their last JoinGroup answer.

A static member that missed a generation joins the next one, misses its SyncGroup and joins again: now its old claim bears the
newest generation, and beats the claim of the true owner, who has not seen that JoinGroup answer yet. SAT needs some 20 s.
"""


def formed(case: AnyCase, interpreter: Interpreter) -> Trace:
    """The run in which the founders form a stable group, if there are any, and do what comes ``onward``."""
    formation = tuple(case.formation()) if case.founders else ()

    def pick(state: State) -> Step | None:
        return next((step for step in formation if _can(interpreter, state, step)), None)

    first = drive(interpreter, interpreter.initial(case.rigid), pick)
    return Trace(first.start, (*first.steps, *case.onward))


def _can(interpreter: Interpreter, state: State, step: Step) -> bool:
    return interpreter.enabled(interpreter.system.action(step.action), state, step.arguments, step.choices)


def refute(case: AnyCase, timeout: float = 60.0) -> Trace | None:
    """A run from the initial state that breaks the property, replayed by the interpreter; None if there is none so short.

    Raises TimeoutError if Z3 needs more than ``timeout`` seconds for one length, and ValueError if what comes ``onward`` is impossible.
    """
    system = case.system
    interpreter = Interpreter(system, case.sizes)
    prefix = formed(case, interpreter)
    formula = {**system.safety, **system.popular}[case.breaks]
    found = violation(system, case.sizes, prefix.states(interpreter)[-1], formula, case.steps, timeout)
    return None if found is None else Trace(prefix.start, (*prefix.steps, *found.steps))


def carried_on(case: AnyCase, trace: Trace, rounds: int) -> tuple[Trace, dict[Sort, int]]:
    """The run with what follows if nothing happens to the group but so many more rounds, and the sizes for it.

    What breaks a promise may show in a trace only once it is carried out.
    """
    sizes = {**case.sizes, "Generation": case.generations + rounds}
    interpreter = Interpreter(case.system, sizes)
    state = trace.states(interpreter)[-1]
    taken: set[tuple[str, tuple[int, ...]]] = set()
    left = rounds

    def pick(state: State) -> Step | None:
        nonlocal left
        for step in _quiet(interpreter, _QUIET[type(case)][: None if left else -3], state):
            if (step.action, step.arguments) not in taken:
                taken.add((step.action, step.arguments))
                if step.action == "complete":
                    left -= 1
                    taken.clear()
                return step
        return None

    rest = drive(interpreter, state, pick)
    return Trace(trace.start, (*trace.steps, *rest.steps)), sizes


def _quiet(interpreter: Interpreter, names: tuple[str, ...], state: State) -> Iterator[Step]:
    actions = [interpreter.system.action(name) for name in names]
    for action in actions:
        spaces = [(tuple(interpreter.points(symbol.sorts)), symbol.name in _GIVES) for symbol in action.havoc]
        for arguments in interpreter.points([parameter.sort for parameter in action.parameters]):
            for chosen in product(*starmap(_subsets, spaces)):
                step = Step(action.name, arguments, {symbol.name: points for symbol, points in zip(action.havoc, chosen, strict=True)})
                if _can(interpreter, state, step):
                    yield step


def _subsets(points: tuple[tuple[int, ...], ...], largest_first: bool) -> list[Relation]:
    sizes = range(len(points), -1, -1) if largest_first else range(len(points) + 1)
    return [frozenset(chosen) for size in sizes for chosen in combinations(points, size)]


@dataclass(frozen=True, slots=True)
class Judgement:
    """``refuted``: ``trace`` breaks ``case.breaks`` (told by `narrate.py` with ``case.system`` and ``case.sizes``).

    ``harmless``: ``proof`` holds. ``open``: neither was found.
    """

    verdict: Literal["refuted", "harmless", "open"]
    case: AnyCase | None = None
    trace: Trace | None = None
    proof: Proof | None = None

    def given(self, proof: Proof) -> Judgement:
        """With a proof of the mutant, as far as that goes: it settles what no run did."""
        if self.verdict == "refuted":
            return self
        return replace(self, verdict="harmless" if proof.inductive else "open", proof=proof)


def judge(mutation: str, seeds: tuple[int, ...] = (0,)) -> Judgement:
    """What becomes of the promises under a mutation of `consumer.MUTATIONS` or `connect.MUTATIONS`. Raises KeyError for another name.

    A run settles the matter; without one everything is proved, of consumers with failover.
    """
    consumers, workers = ({known.name for known in system.MUTATIONS} for system in (consumer, connect))
    if mutation not in consumers | workers:
        raise KeyError(mutation)
    judgement = refute_mutant(mutation)
    if judgement.verdict == "refuted":
        return judgement
    mutations = frozenset({mutation})
    system = connect_protocol(mutations=mutations) if mutation in workers else consumer_protocol(failover=True, mutations=mutations)
    return judgement.given(prove(system, seeds))


def refute_mutant(mutation: str) -> Judgement:
    """What a run says of a mutation of either system: nothing, if there is no case of it."""
    return _searched(MUTANTS.get(mutation) or CONNECT_MUTANTS.get(mutation))


def refute_popular(promise: str) -> Judgement:
    """What becomes of a popular promise of either system, without any mutation. Raises KeyError for another name."""
    return _searched(POPULAR.get(promise) or CONNECT_POPULAR[promise])


def _searched(case: AnyCase | None) -> Judgement:
    trace = None if case is None else refute(case)
    return Judgement("open" if trace is None else "refuted", case, trace)
