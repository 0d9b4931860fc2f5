"""Deliberate defects of Connect's leader and workers: historic ones, and invented ones that break one promise each.

Those without an issue were found by running Kafka's own assignor; `leader.KNOWN_DEFECTS` says which belong to K4 and K6.
"""

from __future__ import annotations

from ..mutation import Mutation

_LEADER = (
    Mutation(
        name="idle-departure-starts-delay",
        floor="reference",
        what="The leader starts a full delay when a worker without work leaves right after a revocation.",
        history="apache/kafka pull request 14000: 3.4.0 and later",
        unseen="a delay for nobody delays only balance, which no promise dates",
    ),
    Mutation(
        name="departure-restarts-backoff",
        floor="reference",
        what="A departure during a short back-off starts a full delay, and does not wait just for the rest of the back-off.",
        breaks=("delay-counts-down",),
        history="the other way round in 3.4.0 and later: the departure gets the rest of the back-off, which no rule forbids",
        scenario="connect-arrivals-and-departure",
    ),
    Mutation(
        name="dealt-and-revoked-counts-as-lost",
        floor="reference",
        what="Work that is dealt at the end of a delay and revoked for balance in the same generation counts as lost once more.",
        history="found by running: 3.4.0 and later",
        unseen="a second delay for work whose worker left long ago looks like that of another departure",
    ),
    Mutation(
        name="new-leader-keeps-deleted-work",
        floor="reference",
        what="A new leader, or one that missed a generation, leaves deleted connectors running until the next rebalance.",
        history="found by running: all releases",
        unseen="a group's events don't tell which connectors are configured",
    ),
    Mutation(
        name="duplicates-hide-deletions",
        floor="reference",
        what="A worker that runs something twice keeps its deleted work for one more generation.",
        history="found by running: 2.5.1 to 3.3",
        unseen="a group's events don't tell which connectors are configured",
    ),
    Mutation(
        name="rebalance-cancels-backoff",
        floor="reference",
        what="Two rebalances during a back-off end it.",
        history="found by running: 3.4.0 and later",
        unseen="delay-counts-down allows a delay to end early",
    ),
    Mutation(
        name="delay-never-reset",
        floor="reference",
        what="The leader goes on announcing its delay after the lost work has come back.",
        breaks=("delay-counts-down",),
        history="KAFKA-9184; 2.3.0 and 2.3.1",
        scenario="connect-pause",
    ),
    Mutation(
        name="sync-failure-is-a-departure",
        floor="reference",
        what="The leader takes work that a worker never got, as its SyncGroup failed, for that of a departed worker.",
        history="KAFKA-9848; 2.3.0 to 2.5.0",
        unseen="a leader may take any work for lost that nobody reports; the delay is announced and kept",
    ),
    Mutation(
        name="duplicates-kept",
        floor="reference",
        what="Work that two workers report stays with both.",
        breaks=("exclusive-assignment", "exclusive-ownership"),
        history="KAFKA-9841; 2.3.0 to 2.5.0",
        scenario="connect-zombie",
    ),
    Mutation(
        name="one-holder-keeps",
        floor="reference",
        what="Of several workers that report the same work one is not told to stop it.",
        unseen="the one that keeps it had it all along, so nothing starts before something is stopped",
    ),
    Mutation(
        name="levels-down-to-floor",
        floor="reference",
        what="For balance the leader revokes no more units in total than the floor of the mean.",
        breaks=("connect-balanced",),
        history="KAFKA-10413; 2.3.0 to 2.6.1 and 2.7.0",
        scenario="connect-arrivals",
    ),
    Mutation(
        name="first-candidate-takes-all",
        floor="reference",
        what="At the end of a delay the first worker without work gets all that was lost.",
        breaks=("returning-worker-restored",),
        history="KAFKA-10413; 2.3.0 to 2.6.1 and 2.7.0",
        scenario="connect-bounce-with-idle-worker",
    ),
    Mutation(
        name="never-levels-twice",
        floor="reference",
        what="After a revocation the next generation never revokes, and nothing makes up for it.",
        breaks=("connect-balanced",),
        history="KAFKA-12495; 2.3.0 to 3.3",
        scenario="connect-arrivals",
    ),
    Mutation(
        name="maximum-delay-0-withholds",
        floor="reference",
        what="With scheduled.rebalance.max.delay.ms 0 lost work is withheld until an unrelated rebalance.",
        history="KAFKA-15693; up to 3.5.1, and 3.6.0",
        unseen="no rule follows work that is given to nobody: its connector may have been deleted",
    ),
    Mutation(
        name="departure-restarts-delay",
        floor="reference",
        what="A second departure starts the delay anew.",
        breaks=("delay-counts-down",),
        scenario="connect-two-departures",
    ),
    Mutation(
        name="revoked-work-reassigned-at-once",
        floor="reference",
        what="Work that is revoked for balance is given to its next worker in the same generation.",
        breaks=("connect-revoke-before-reassign",),
        scenario="connect-arrival",
    ),
    Mutation(
        name="lost-work-dealt-under-delay",
        floor="reference",
        what="The leader announces a delay, and gives the lost work away at once.",
        breaks=("lost-work-withheld",),
        scenario="connect-departure",
    ),
    Mutation(
        name="delay-doubled",
        floor="reference",
        what="The leader announces twice the maximum delay.",
        breaks=("delay-bounded",),
        scenario="connect-departure",
    ),
    Mutation(
        name="delay-differs",
        floor="reference",
        what="One worker is told another delay than the others.",
        breaks=("delay-bounded",),
        scenario="connect-departure",
    ),
    Mutation(
        name="lost-work-dealt-to-others",
        floor="reference",
        what="At the end of a delay the lost work goes to the workers that have some, and not to those that came back for it.",
        breaks=("returning-worker-restored",),
        scenario="connect-departure",
    ),
)

_WORKER = (
    Mutation(
        name="downgrade-leaks-work",
        floor="reference",
        what="When the group falls back to protocol version 0, a worker goes on running what was placed elsewhere.",
        breaks=("exclusive-ownership",),
        history="found by reading: all releases",
        scenario="connect-downgrade",
    ),
    Mutation(
        name="unresolved-round-skips-revocation",
        floor="reference",
        what="A worker that has not resolved the last generation, as under a delay, does not stop what the next one revokes.",
        breaks=("exclusive-ownership",),
        history="KAFKA-10763; 2.3.0 to 2.6.1 and 2.7.0",
        scenario="connect-arrivals",
    ),
    Mutation(
        name="worker-stops-everything-to-join",
        floor="reference",
        what="A worker stops all its work before it joins, whatever the protocol, and starts again what it keeps.",
        breaks=("stop-the-world",),
        scenario="connect-arrival",
    ),
)

MUTATIONS: tuple[Mutation, ...] = _LEADER + _WORKER
