"""The defects of the assignors: Kafka's own by release, and invented ones."""

from __future__ import annotations

from ..mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        name="assignor-skips-adjust",
        floor="reference",
        what="CooperativeSticky hands out its target at once, without withholding what another member still owns.",
        breaks=("revoke-before-reassign",),
        scenario="second-joins",
    ),
    Mutation(
        name="trusts-every-claim",
        floor="reference",
        what="The constrained builder believes every claim: a partition claimed twice stays with both members, or assign throws.",
        breaks=("exclusive-assignment",),
        history="KAFKA-12984: 2.5.1 to 2.8.0; fixed in 2.8.1 (as KAFKA-13081) and 3.0.0",
        scenario="static-misses-generation",
    ),
    Mutation(
        name="only-highest-generation-counts",
        floor="reference",
        what="Claims of an older generation are forgotten, so their partitions go to others while their owner still has them.",
        breaks=("revoke-before-reassign",),
        history="KAFKA-14639: 2.8.1 to 3.4.0; fixed in 3.4.1 and 3.5.0",
        scenario="follower-misses-sync-before-3.4",
    ),
    Mutation(
        name="validates-built-in-assignor",
        floor="reference",
        what="The leader's check of cooperative assignments also judges CooperativeSticky, by raw claims, and throws over a stale one.",
        history="KAFKA-13406: 2.8.1, 3.0.0; fixed in 2.8.2, 3.0.1 and 3.1.0",
        unseen="The exception leaves the leader's poll: an observer sees a leader that joins and never syncs, as any slow leader does.",
    ),
    Mutation(
        name="loser-becomes-owner",
        floor="reference",
        what="A claimant of an older generation counts as the owner when the next claim is compared: two members keep a partition.",
        breaks=("exclusive-assignment",),
        history="fixed inside KAFKA-15106: 3.4.1, 3.5.0, 3.5.1; fixed in 3.5.2 and 3.6.0",
    ),
    Mutation(
        name="rack-mismatch-not-withheld",
        floor="reference",
        what="A partition taken from its owner for its rack is given to another member in the same round.",
        breaks=("revoke-before-reassign",),
        history="KAFKA-15170: 3.5.0 to 3.7.0; fixed in 3.7.1 and 3.8.0",
        scenario="racks",
    ),
    Mutation(
        name="rack-filling-ignores-quota",
        floor="reference",
        what="Filling by rack gives one partition more to more members than may have it; the final check throws.",
        history="KAFKA-15170: 3.5.0 to 3.7.0; fixed in 3.7.1 and 3.8.0",
        unseen="The exception leaves the leader's poll: an observer sees a leader that joins and never syncs, as any slow leader does.",
    ),
    Mutation(
        name="keeps-claims-as-sent",
        floor="reference",
        what="A member over its quota keeps its first claims as sent, topic by topic, so that one member ends up with whole topics.",
        history="KAFKA-16277: to 3.7.0; fixed in 3.7.1 and 3.8.0",
        unseen="No promise: loads stay balanced, only the spread of each topic suffers.",
    ),
    Mutation(
        name="comparison-consumes-user-data",
        floor="reference",
        what="Comparing subscriptions uses up the user data that it reads: Sticky forgets those members' prior assignments.",
        history="2.5.1 to 2.8.2; fixed in 3.0.0 (inside KAFKA-12675)",
        unseen="Subscriptions have to differ, and then no rule says how few moves would have done.",
    ),
    Mutation(
        name="trusts-every-prior-assignment",
        floor="reference",
        what="Sticky's user data has no generation: a member that comes back late keeps what others were given meanwhile.",
        breaks=("exclusive-assignment",),
        history="KAFKA-7026: 0.11.0 to 2.2; fixed in 2.3.0 by KIP-341",
        scenario="sticky",
    ),
    Mutation(
        name="remembers-highest-generation",
        floor="reference",
        what="The leader's assignor remembers the highest generation it ever saw: after a group restarts at a lower one no claim counts.",
        breaks=("revoke-before-reassign", "needless-movement"),
        history="3.0.0 to 3.4.0; fixed in 3.4.1 and 3.5.0 (inside KAFKA-14639)",
    ),
    Mutation(
        name="first-of-highest-generation-dropped",
        floor="reference",
        what="The first member seen at the highest generation loses its claims along with the older ones.",
        breaks=("revoke-before-reassign",),
        history="KAFKA-10082: trunk of June 2020 only",
        scenario="second-joins",
    ),
    Mutation(
        name="co-partitions-of-unequal-counts",
        floor="reference",
        what="Range by rack assigns topics of equal subscribers together although their partition counts differ.",
        history="KAFKA-14891: trunk before 3.5.0 only",
        unseen="No promise of the group protocol: which index goes with which is the application's concern.",
    ),
    Mutation(
        name="assignor-forgets-what-it-withheld",
        floor="reference",
        what="CooperativeSticky deals only what somebody claims: what it withheld for a hand-over is given to nobody.",
        breaks=("withheld-partition-reassigned",),
        scenario="second-joins",
    ),
    Mutation(
        name="assignor-keeps-moving",
        floor="reference",
        what="CooperativeSticky takes a partition from the member that owns most in every generation, so that each brings the next.",
        breaks=("converges",),
        scenario="second-joins",
    ),
    Mutation(
        name="assignor-ignores-claims",
        floor="reference",
        what="A sticky assignor divides everything anew in every generation, though it withholds what has to move.",
        breaks=("needless-movement",),
        scenario="first-by-name-joins-last",
    ),
)

LATENT: tuple[Mutation, ...] = (
    Mutation(
        name="orphan-of-an-absent-static-member",
        floor="reference",
        what="What is withheld from an absent static member is given to nobody when that returns: it has nothing to revoke, so nobody rejoins.",
        history="all releases with KIP-345 and KIP-429",
        unseen="An orphan shows in the follow-up generation, and here none follows until something else rebalances the group.",
    ),
    Mutation(
        name="absent-static-member-keeps-old-claims",
        floor="reference",
        what="The claims of a static member that missed JoinGroup are those of its last one: what it was given since looks free.",
        history="all releases with KIP-345 and KIP-429",
        unseen="The rule excepts claims that an absent member left behind; its commits are refused, for its generation is over.",
    ),
)
"""What the assignors really do with members that are away: always on, no switch."""
