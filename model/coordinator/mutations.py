"""The coordinator's deliberate defects, and what it really does that surprises.

A coordinator has the defects that its `Release` names. Several of them were a release's behaviour before it was called a bug.
"""

from __future__ import annotations

from ..mutation import Mutation

_LEGAL_REFUSAL = "every refusal of the request is legal for some history that the client can't tell apart from this one"


def _mutation(
    name: str, what: str, *breaks: str, history: str = "", scenario: str = "", reorderings: int = 0, unseen: str = ""
) -> Mutation:
    return Mutation(
        name=name,
        floor="reference",
        what=what,
        breaks=breaks,
        history=history,
        scenario=scenario,
        reorderings=reorderings,
        unseen=unseen,
    )


MUTATIONS: tuple[Mutation, ...] = (
    _mutation(
        "generation-counts-down",
        "A completed join phase takes one from the generation, if it can, instead of adding one.",
        "generation-increases",
        scenario="first-joins",
    ),
    _mutation(
        "stable-leader-reassigns",
        "A leader's SyncGroup that reaches a stable group replaces the assignment.",
        "one-assignment-per-generation",
        scenario="stray-sync",
    ),
    _mutation(
        "leader-told-of-removed-members",
        "The leader is told of the members that the join timer has just removed, and assigns to them.",
        "assigned-only-to-joined-members",
        scenario="laggard",
    ),
    _mutation(
        "protocol-by-majority",
        "Members vote for the protocol that they like best, whether all have it or not.",
        "protocol-common-to-members",
        scenario="two-assignors",
    ),
    _mutation(
        "heartbeat-of-any-generation",
        "A heartbeat is granted whatever its generation.",
        "stale-generation-rejected",
        scenario="static-laggard",
    ),
    _mutation(
        "commit-of-any-generation",
        "A member's offset commit is accepted whatever its generation.",
        "zombie-commit-rejected",
        scenario="static-laggard",
    ),
    _mutation(
        "join-phase-does-not-wait",
        "The join phase ends as soon as one member has rejoined, with everybody else still in the group.",
        "join-barrier",
        scenario="second-joins",
    ),
    _mutation(
        "join-timer-not-armed",
        "A rebalance waits for every member, however long it takes.",
        "rebalance-within-timeout",
        scenario="laggard",
    ),
    _mutation(
        "static-replaced-only-when-stable",
        "A static member that returns while the group prepares to rebalance is added beside its old id.",
        "one-member-per-instance",
        "fenced-stays-fenced",
        history="KAFKA-8500: trunk before 2.3.0",
        scenario="static-departure",
    ),
    _mutation(
        "replaced-id-keeps-its-session",
        "A heartbeat of a replaced member id is granted as long as its group.instance.id is in the group.",
        "fenced-stays-fenced",
        scenario="twins",
    ),
    _mutation(
        "static-return-rebalances",
        "A static member that returns to a stable group makes it rebalance.",
        "static-return-no-rebalance",
        scenario="static-return",
    ),
    _mutation(
        "static-return-loses-a-partition",
        "A static member that returns to a stable group is given its assignment without the first partition.",
        "static-assignment-kept",
        scenario="static-return",
    ),
    _mutation(
        "static-return-answered-while-completing",
        "A static member that returns before the leader's SyncGroup is answered at once; the leader's assignment names its old id.",
        "static-assignment-kept",
        history="KAFKA-9801: 2.3.0 to 2.4.1",
        scenario="twin-overtakes",
        reorderings=2,
    ),
    _mutation(
        "join-timer-drops-static-members",
        "The join timer removes static members that did not rejoin, as it removes dynamic ones.",
        "static-slot-held",
        history="KAFKA-8220: trunk before 2.3.0",
        scenario="static-departure",
    ),
    _mutation(
        "replaced-id-is-unknown",
        "A replaced member id is answered UNKNOWN_MEMBER_ID, so that its process joins anew and takes the slot back.",
        history="KAFKA-8225: trunk before 2.3.0",
        unseen="two processes that replace one another in turn look the same under a coordinator that fences, if both restart",
    ),
    _mutation(
        "dead-group-denies-members",
        "A group that its coordinator has let go answers UNKNOWN_MEMBER_ID, so that members forget their ids.",
        history="KAFKA-8386: trunk before 2.3.0",
        unseen=_LEGAL_REFUSAL,
    ),
    _mutation(
        "static-replacement-not-stored",
        "The new id of a returning static member is not stored: after a failover the old one has the slot again.",
        history="KAFKA-10284: 2.3.0 to 2.6.0",
        unseen="a failover between JoinGroup and the leader's SyncGroup brings an old id back under every release",
    ),
    _mutation(
        "sync-phase-unbounded",
        "A group whose leader never sends SyncGroup stays in CompletingRebalance as long as the leader heartbeats.",
        history="KAFKA-12890: 2.6.1 to 2.8.0",
        unseen="a SyncGroup that is never answered leaves no line, and no rule bounds the sync phase",
    ),
    _mutation(
        "pending-members-not-rechecked",
        "When a member with a pending id joins, leaves or expires, nobody looks whether the join phase can end.",
        history="KAFKA-7909: 2.2.0 candidates",
        unseen="the join timer ends the join phase within the rebalance timeout, as promised",
    ),
    _mutation(
        "completing-heartbeat-refused",
        "A heartbeat in CompletingRebalance is answered REBALANCE_IN_PROGRESS and does not restart the session.",
        history="KAFKA-10134: up to 2.6.0",
        unseen=_LEGAL_REFUSAL,
    ),
    _mutation(
        "rejoin-keeps-old-timeouts",
        "A member that rejoins with other timeouts keeps those of its first JoinGroup.",
        history="KAFKA-14009: 2.3.0 to 3.3.1",
        unseen="rules allow for both: they take the shortest session timeout and the longest rebalance timeout ever asked for",
    ),
    _mutation(
        "assignment-not-skipped",
        "A static leader that returns to a stable group is not told that it leads (as before JoinGroup 9, KIP-814).",
        history="KAFKA-13435: 2.3.0 to 3.1.x",
        unseen="that nobody watches the topics any more shows only in a rebalance that does not come",
    ),
)
"""Defects to switch on. The first ones break one promise each (two ids in one slot break two); those behind them no observer of requests and answers can tell."""

LATENT: tuple[Mutation, ...] = (
    _mutation(
        "failover-restores-replaced-id",
        "A failover between a static replacement while rebalancing and the leader's SyncGroup fences the live process.",
        history="all releases",
        unseen="another epoch owes nothing to what was not stored; FENCED_INSTANCE_ID there does not prove a duplicate",
    ),
    _mutation(
        "sync-timer-removes-absent-static-member",
        "An absent static member is removed after the rebalance timeout, although its session timeout is longer.",
        "static-slot-held",
        history="since 2.8.1 and 3.0 (KAFKA-12890); reported as a warning",
        scenario="static-misses-generation",
    ),
    _mutation(
        "full-group-refuses-static-return",
        "A static member that restarts is refused by a full group, its own old id being counted.",
        history="since 2.3.0 (KAFKA-20601)",
        unseen="group.max.size is a broker's setting that no trace shows",
    ),
    _mutation(
        "replaced-id-awaited-in-sync-phase",
        "A static member that is replaced before it synced makes the group rebalance when the sync timer fires for its old id.",
        history="since 2.8.1 and 3.0",
        unseen="the rule static-return-no-rebalance excepts the sync timer by the reason that the log gives",
    ),
    _mutation(
        "old-incarnation-vetoes-protocols",
        "A lone static member that restarts with other assignors is refused: its own old id does not have them.",
        history="since 2.3.0",
        unseen="INCONSISTENT_GROUP_PROTOCOL is a legal answer; no rule promises that a return is granted",
    ),
    _mutation(
        "expiry-cuts-initial-delay",
        "An expiry during the initial rebalance delay ends the join phase early.",
        history="new coordinator",
        unseen="the initial delay is a broker's setting, and no promise to members",
    ),
    _mutation(
        "pending-leave-rebalances",
        "LeaveGroup of an id that never joined makes a stable group rebalance.",
        history="new coordinator",
        unseen="no rule names the legal causes of a rebalance; rebalance-storm counts it",
    ),
    _mutation(
        "failed-replacement-keeps-protocols",
        "When a static replacement can't be stored, the old id is left with the new incarnation's assignors.",
        history="old coordinator",
        unseen="the JoinGroup that named those protocols is in the trace, for the same slot",
    ),
    _mutation(
        "commit-operations-swapped-in-log",
        "The log names offset-commit and txn-offset-commit the wrong way round.",
        history="new coordinator",
        unseen="only the text of a log line differs, and the model has no transactional commits",
    ),
    _mutation(
        "replacement-stays-new",
        "A static member that is replaced during its first join phase may be expired while it waits for the answer.",
        history="old coordinator",
        unseen="no rule bounds a wait for JoinGroup from below; the expiry comes after a full session timeout",
    ),
    _mutation(
        "sync-does-not-restart-session",
        "SyncGroup in a stable group is no sign of life.",
        history="new coordinator",
        unseen="rules count only what restarts a session for sure, and SyncGroup is not among it",
    ),
    _mutation(
        "subscribed-topics-of-old-incarnation",
        "OffsetDelete and the expiry of offsets see the subscription that a static member had before it returned.",
        history="all releases since 2.4",
        unseen="neither offset deletion nor expiry is part of the model or of a trace",
    ),
    _mutation(
        "replacement-answered-late",
        "A static leader's return that is stored when a rebalance has begun is answered when that ends.",
        history="old coordinator",
        unseen="a late answer is a legal answer",
    ),
    _mutation(
        "sync-of-removed-member-unanswered",
        "A member that is removed while it waits with SyncGroup is never answered.",
        history="all releases (KAFKA-20938 has the same effect on a request sent twice)",
        unseen="a request without an answer leaves no line",
    ),
)
"""What the present coordinators really do and a reader of the KIPs would not expect: always on, no switch."""
