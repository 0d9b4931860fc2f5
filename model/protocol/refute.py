"""Short runs of the consumer protocol that break a promise: of a mutant, or a popular promise that is false.

An obligation that fails proves nothing against a mutant (`prove.py`), so `judge` says "refuted" only with a run from the
initial state, and "harmless" only with a proof. The runs are short, not always the shortest: a group is formed first, in
order, and SAT finds the shortest way on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .consumer import MUTATIONS, Reported, consumer_protocol
from .ground import Trace, drive, violation
from .interpreter import Interpreter, State, Step
from .language import Sort, System
from .prove import Proof, prove


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Where to look for a run that breaks ``breaks``.

    ``instances``: per member its static instance, or None for a dynamic one. ``founders`` form a stable group first; after
    that come at most ``steps`` steps.
    """

    breaks: str
    mutation: str = ""
    instances: tuple[int | None, ...] = (None, None)
    partitions: int = 1
    generations: int = 3
    founders: tuple[int, ...] = (0,)
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


_SAME, _TWO = (0, 0), (0, 1)

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
        Case(mutation="generation-falls", breaks="S14"),
        Case(mutation="retained-revoked", breaks="S15"),
        Case(mutation="assigned-to-strangers", breaks="S7", founders=()),
        Case(mutation="partition-assigned-twice", breaks="S1", generations=2, founders=()),
        Case(mutation="restart-loses-assignment", breaks="S10", instances=_SAME, generations=2, founders=()),
        Case(mutation="removed-id-readmitted", breaks="S11", instances=_SAME, generations=2, founders=()),
        Case(mutation="absent-static-dropped", breaks="S12", instances=_TWO, founders=()),
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
"""For each popular promise that is false, where it breaks without any mutation."""

MISLABELLED = Case(breaks="S8", instances=_TWO, generations=5, steps=22, reported="joined")
"""Where exclusive ownership breaks with static members whose claims name the generation of their last JoinGroup answer.

A static member that missed a generation joins the next one, misses its SyncGroup and joins again: now its old claim bears the
newest generation, and beats the claim of the true owner, who has not seen that JoinGroup answer yet. SAT needs some 20 s.
"""

FORMATION = ("start", "join_new", "complete", "receive_join_response", "propose", "accept", "answer_sync", "revoke", "assign")


def formed(case: Case, interpreter: Interpreter) -> Trace:
    """The run in which the founders form a stable group, each with its share of the partitions; empty without founders."""

    def pick(state: State) -> Step | None:
        for name in FORMATION if case.founders else ():
            action = interpreter.system.action(name)
            shares = {(case.founders[partition % len(case.founders)], partition) for partition in range(case.partitions)}
            choices = {"choice": frozenset(shares)} if action.havoc else {}
            for arguments in interpreter.points([parameter.sort for parameter in action.parameters]):
                stranger = name == "start" and arguments[0] not in case.founders
                if not stranger and interpreter.enabled(action, state, arguments, choices):
                    return Step(name, arguments, choices)
        return None

    return drive(interpreter, interpreter.initial(case.rigid), pick)


def refute(case: Case, timeout: float = 60.0) -> Trace | None:
    """A run from the initial state that breaks the property, replayed by the interpreter; None if there is none so short.

    Raises TimeoutError if Z3 needs more than ``timeout`` seconds for one length.
    """
    system = case.system
    interpreter = Interpreter(system, case.sizes)
    prefix = formed(case, interpreter)
    formula = {**system.safety, **system.popular}[case.breaks]
    found = violation(system, case.sizes, prefix.states(interpreter)[-1], formula, case.steps, timeout)
    return None if found is None else Trace(prefix.start, (*prefix.steps, *found.steps))


@dataclass(frozen=True, slots=True)
class Judgement:
    """``refuted``: ``trace`` breaks ``case.breaks``. ``harmless``: ``proof`` holds. ``open``: neither was found."""

    verdict: Literal["refuted", "harmless", "open"]
    case: Case | None = None
    trace: Trace | None = None
    proof: Proof | None = None


def judge(mutation: str, seeds: tuple[int, ...] = (0,)) -> Judgement:
    """What becomes of the promises under a mutation of `consumer.MUTATIONS`. Raises KeyError if there is none of that name.

    A run settles the matter; without one everything is proved, failover included.
    """
    if mutation not in {known.name for known in MUTATIONS}:
        raise KeyError(mutation)
    case = MUTANTS.get(mutation)
    trace = None if case is None else refute(case)
    if trace is not None:
        return Judgement("refuted", case, trace)
    proof = prove(consumer_protocol(failover=True, mutations=frozenset({mutation})), seeds)
    return Judgement("harmless" if proof.inductive else "open", case, proof=proof)
