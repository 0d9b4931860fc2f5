"""The assignor rules: what an answer, or a conversation of answers, has to be. `judge` and `examine` are their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..results import Severity
from ..rule import Rule


def _rule(
    id: str,
    promise: str,
    source: str,
    *,
    unknown_when: str,
    clause: str = "",
    severity: Severity = "error",
    exceptions: tuple[str, ...] = (),
) -> Rule:
    return Rule(
        id=id,
        kip="assignors",
        promise=promise,
        clause=clause or "ConsumerPartitionAssignor's contract",
        source=source,
        needs=("an assignor case",),
        unknown_when=unknown_when,
        exceptions=exceptions,
        severity=severity,
    )


_NO_ANSWER = "The assignor gave no answer: see assignor-answers."

ASSIGNOR_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        rule.id: rule
        for rule in (
            _rule(
                "assignor-answers",
                "Every legal input is answered: no exception, no crash, no hang, no answer that can't be read.",
                "ConsumerCoordinator.onLeaderElected: an exception leaves the leader's poll and the group rebalances for ever",
                unknown_when="Never.",
                exceptions=("An error for JoinGroup metadata that can't be decoded.",),
            ),
            _rule(
                "assigns-only-subscribed",
                "A member is given existing partitions of topics that it subscribes, and nothing else; nobody outside the group is given any.",
                "ConsumerPartitionAssignor.assign; ConsumerCoordinator.onJoinComplete",
                unknown_when=_NO_ANSWER,
            ),
            _rule(
                "assigns-exclusively",
                "No partition is given to two members, nor to one member twice.",
                "ConsumerPartitionAssignor.assign; KAFKA-12984",
                unknown_when=_NO_ANSWER,
            ),
            _rule(
                "assigns-completely",
                "Every partition of a subscribed topic is given to somebody.",
                "ConsumerPartitionAssignor.assign",
                unknown_when=_NO_ANSWER,
                exceptions=(
                    "A cooperative assignor may withhold a partition that somebody claims, until the follow-up rebalance.",
                    "A topic without metadata has no partitions.",
                ),
            ),
            _rule(
                "cooperative-withholds",
                "A partition is given to nobody new while another member still owns it; of several claims those of the newest generation count.",
                "CooperativeStickyAssignor.adjustAssignment; KAFKA-14639, KAFKA-15170",
                clause="KIP-429, Rebalance Protocol: revoke, then rejoin, then assign",
                unknown_when=_NO_ANSWER,
                exceptions=("Eager assignors: members have given everything up before they join.",),
            ),
            _rule(
                "balanced",
                "Equal subscriptions: loads differ by at most one. Unequal: nobody could take a partition from somebody who has two more.",
                "AbstractStickyAssignor.isBalanced; range: per topic; roundrobin: equal subscriptions only",
                unknown_when="The rounds do not settle: see converges-in-rounds.",
                exceptions=("A cooperative assignor balances what it aims at: it is judged when the follow-up rebalances are done.",),
            ),
            _rule(
                "follows-algorithm",
                "Range and round robin give exactly what their documentation says.",
                "RangeAssignor, RoundRobinAssignor",
                unknown_when="With racks, where the documentation leaves the order open.",
            ),
            _rule(
                "converges-in-rounds",
                "With nothing else changing, at most four follow-up rebalances bring an assignment that takes nothing from anybody.",
                "KIP-429; CooperativeStickyAssignorTest.verifyValidityAndBalance",
                unknown_when=_NO_ANSWER,
            ),
            _rule(
                "idempotent",
                "What is settled stays: fed back as claims of the next generation, an assignment is given again.",
                "AbstractStickyAssignor: a balanced assignment is kept",
                unknown_when="The rounds do not settle, or a member's metadata carries no claims.",
                severity="warning",
                exceptions=("With racks one more round may bring partitions closer.",),
            ),
            _rule(
                "sticky",
                "No more partitions move than balance asks for.",
                "AbstractStickyAssignor; KIP-54",
                unknown_when="With racks or conflicting claims, and for unequal subscriptions unless the claims are balanced already.",
                severity="warning",
            ),
            _rule(
                "deterministic",
                "The same input brings the same answer.",
                "The leader may change between two rebalances",
                unknown_when=_NO_ANSWER,
                severity="warning",
            ),
            _rule(
                "order-independent",
                "The order in which members are listed changes nothing.",
                "JoinGroupResponse lists members in no order",
                unknown_when="The answer differs even for the same order: see deterministic.",
                severity="warning",
            ),
            _rule(
                "history-independent",
                "A leader that has answered before answers as a new one does.",
                "AbstractStickyAssignor.maxGeneration in 3.0.0 to 3.4.0",
                unknown_when="No input had a past.",
                severity="warning",
            ),
            _rule(
                "static-stable",
                "Static members that come back under new member ids are given the same partitions.",
                "AbstractPartitionAssignor.MemberInfo; KAFKA-8356",
                clause="KIP-345, stable assignment across member ids",
                unknown_when="Not all members are static.",
                exceptions=("Sticky assignors go by claims; the group coordinator keeps their static members' assignment.",),
            ),
            _rule(
                "rack-aware",
                "Members that name their racks are given no fewer partitions of their rack than if they named none.",
                "KIP-881",
                unknown_when="No input has racks.",
                severity="info",
            ),
        )
    }
)
"""By id."""
