"""The defects of the consumer client: Kafka's own by release, and invented ones, each of which breaks one promise."""

from __future__ import annotations

from ..mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        name="reset-skips-join-prepare",
        floor="reference",
        what="A member that loses its id during a rebalance rejoins as a new one without giving up what it owned, and claims it.",
        history="KAFKA-12983: 2.4.0 to 2.7.1, 2.8.0; fixed in 2.7.2, 2.8.1 and 3.0.0",
        breaks=("exclusive-assignment",),
        needs=("trusts-every-claim",),
        scenario="late-join",
    ),
    Mutation(
        name="known-member-keeps-what-it-lost",
        floor="reference",
        what="A member that lost its generation but not its id goes on owning, and claims, what others may have been given meanwhile.",
        history="KAFKA-13419: 2.4.0 to 3.1; fixed in 3.2.0",
        unseen="Only a stale claim of its own: the assignors settle it.",
    ),
    Mutation(
        name="missed-sync-loses-everything",
        floor="reference",
        what="REBALANCE_IN_PROGRESS from SyncGroup resets the generation, so that a cooperative member loses all that it owns.",
        history="KAFKA-13891, reverted by KAFKA-14016: 3.3.0 and 3.3.1; fixed in 3.3.2 and 3.4.0",
        breaks=("needless-movement",),
        scenario="follower-misses-sync",
    ),
    Mutation(
        name="prepare-commit-never-ends",
        floor="reference",
        what="The commit before a rebalance is never seen to end: the member does not rejoin until it is thrown out.",
        history="KAFKA-14024: 3.2.0; fixed in 3.2.1 and 3.3.0",
        unseen="The group waits for it as for any slow application, up to the rebalance timeout.",
    ),
    Mutation(
        name="disconnect-resets-membership",
        floor="reference",
        what="A broken connection during a rebalance makes the member forget its id; its former self delays the next rebalance.",
        history="KAFKA-13214: 2.3.0 to 2.7.1, 2.8.0; fixed in 2.7.2, 2.8.1 and 3.0.0",
        unseen="Its former self looks like any member that crashed: the group waits for it up to its session timeout.",
    ),
    Mutation(
        name="stale-answer-resets-membership",
        floor="reference",
        what="An error in answer to a request of an older generation resets the newer one.",
        history="KAFKA-9823: to 2.5; fixed in 2.6.0",
        unseen="It rejoins once more than it had to, as a member does that was really thrown out.",
    ),
    Mutation(
        name="completes-after-reset",
        floor="reference",
        what="An assignment is applied although the heartbeat thread has reset the generation meanwhile.",
        history="KAFKA-8104: to 2.3; fixed in 2.4.0",
        unseen="It finds out at its next poll, as any zombie does.",
    ),
    Mutation(
        name="leaving-member-revokes-what-it-lost",
        floor="reference",
        what="A member that leaves during a rebalance is told that it revokes its partitions, not that it lost them.",
        history="KAFKA-9113: to 2.4; fixed in 2.5.0",
        unseen="Either way it owns nothing any more: no promise tells the two apart.",
    ),
    Mutation(
        name="static-member-forgets-its-id",
        floor="reference",
        what="A static member that is out for too long forgets its member id although it sends no LeaveGroup, and may fence itself.",
        history="KAFKA-20985: all releases with KIP-345, 2.3.0 to 4.3 at least",
        unseen="The coordinator can't tell a member that fences itself from two processes of one instance.",
    ),
    Mutation(
        name="wakeup-in-callback-keeps-partitions",
        floor="reference",
        what="A callback that throws WakeupException leaves the assignment as it was: an eager member then drops it without a callback.",
        history="all releases since 2.4.0; no issue known",
        unseen="What it dropped shows only as a difference between two lists of what it owns, and the generation fences it meanwhile.",
    ),
    Mutation(
        name="member-keeps-what-it-must-give-up",
        floor="reference",
        what="A cooperative member stops reporting what it is no longer assigned, and goes on processing it.",
        breaks=("exclusive-ownership",),
        scenario="second-joins",
    ),
    Mutation(
        name="member-rejoins-before-revoking",
        floor="reference",
        what="A cooperative member rejoins without reporting what it is to give up, and revokes it only in the next generation.",
        breaks=("revoke-before-reassign",),
        scenario="second-joins",
    ),
    Mutation(
        name="cooperative-member-revokes-everything",
        floor="reference",
        what="A cooperative member revokes all that it owns before every rebalance, as an eager one does.",
        breaks=("retained-partitions-not-revoked",),
        scenario="second-joins",
    ),
    Mutation(
        name="revoker-stays",
        floor="reference",
        what="A cooperative member that revoked partitions does not rejoin, so that nobody can be given them.",
        breaks=("revoker-rejoins",),
        scenario="second-joins",
    ),
    Mutation(
        name="static-member-leaves-on-close",
        floor="reference",
        what="A static member that closes sends LeaveGroup, and gives its slot up.",
        breaks=("static-close-sends-no-leave",),
        scenario="static-close",
    ),
    Mutation(
        name="fenced-member-goes-on",
        floor="reference",
        what="A member takes FENCED_INSTANCE_ID in answer to a heartbeat for a good answer, and goes on.",
        unseen="The coordinator refuses whatever it sends, and belief without the right to commit is a zombie window, which is legal.",
    ),
    Mutation(
        name="member-rejoins-with-every-heartbeat",
        floor="reference",
        what="A member takes every good answer to a heartbeat for a reason to join again.",
        breaks=("rebalance-storm",),
        scenario="calm",
    ),
)
