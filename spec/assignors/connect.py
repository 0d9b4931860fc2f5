"""What each decision of a Connect leader promises, besides what its trace shows: a trace does not tell what is configured (KIP-415)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..rule import Rule


def _rule(id: str, promise: str, source: str, exceptions: tuple[str, ...] = ()) -> Rule:
    return Rule(
        id=id,
        kip="KIP-415",
        promise=promise,
        clause="KIP-415, Proposed Changes",
        source=source,
        needs=("the leader's input and decision",),
        unknown_when="Never.",
        exceptions=exceptions,
    )


CONNECT_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        rule.id: rule
        for rule in (
            _rule(
                "connect-answers",
                "Every legal input is answered.",
                "WorkerCoordinator.onLeaderElected: an exception ends the worker",
            ),
            _rule(
                "work-placed",
                "Without a delay, whatever is configured and runs nowhere is given to somebody.",
                "IncrementalCooperativeAssignor.handleLostAssignments; KAFKA-15693",
            ),
            _rule(
                "delay-has-reason",
                "A delay is announced only while work waits, or while balance waits for a back-off.",
                "IncrementalCooperativeAssignor.handleLostAssignments; KAFKA-9184, apache/kafka pull request 14000",
            ),
            _rule(
                "departure-before-delay",
                "Work begins to wait only after a worker has departed.",
                "IncrementalCooperativeAssignor.handleLostAssignments; KAFKA-9848",
            ),
            _rule(
                "waits-once",
                "Lost work waits no longer than the maximal delay, counted from the generation that first missed it.",
                "IncrementalCooperativeAssignor.performTaskAssignment, which adds what was lost to its previous assignment",
                ("The time that rebalances take.",),
            ),
            _rule(
                "deleted-work-stopped",
                "What is configured no longer is taken from every worker that reports it.",
                "IncrementalCooperativeAssignor.performTaskAssignment",
            ),
            _rule(
                "duplicates-resolved",
                "What two workers report is taken from all of them but one.",
                "IncrementalCooperativeAssignor.performTaskAssignment; KAFKA-9841",
            ),
        )
    }
)
"""By id."""
