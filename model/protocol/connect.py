"""Connect workers and their leader (KIP-415), for any number of workers, units of work and generations.

A unit (sort ``Partition``, as everywhere) is a connector or a task. A ``Member`` is a member id: a worker that the
coordinator has removed comes back as another member, with its memory and with what it still runs (Connect does not stop
work when a session is lost: WorkerCoordinator.onJoinPrepare).

The leader's rounds are those of IncrementalCooperativeAssignor 3.5.2, 3.6.1 and later: what was lost, created, deleted or
is reported twice follows from the leader's memory and from what the members report; free are the placement, the units
taken away to balance the load, and time. A delay that is armed may be over in any round, and so may one that was armed by
the back-off of successive revocations.

Requests are answered atomically: a lost request or response is a worker that joins again. Left out: the eager protocol,
tasks that do not stop in time and run on, and the worker's own timers.

What is true of exclusive work: no two *acknowledged* workers run the same unit. A member is acknowledged if it is in the
group and was not brought back with work of an earlier id, or has since carried out an assignment, which takes every unit that
two members report from all of them (KAFKA-9841).

What is true of withheld work: an orphan (its worker has gone, nobody reports it) is given to nobody in that round or any
later one, until the delay is over or a worker reports it, *unless* the leader's memory is not that of the last assignment
(another leader, or it missed an answer: IncrementalCooperativeAssignor drops its memory), a unit revoked in the last
round is still reported (it then takes what is reported for its memory), or the maximal delay is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..mutation import Mutation
from .language import (
    BOOL,
    FALSE,
    TRUE,
    Action,
    Body,
    Node,
    Symbol,
    System,
    Update,
    Variable,
    define,
    distinct,
    equal,
    exists,
    forall,
    implies,
    ite,
    land,
    lnot,
    lor,
    put,
    total_order,
)
from .sorts import ORDER, G, M, P, at_most, before, no_generation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        name="leader-counts-running-work-as-new",
        floor="protocol",
        what="A leader without memory takes units that are reported for new ones, and gives them out.",
        breaks=("exclusive-assignment", "connect-revoke-before-reassign", "revoke-before-reassign", "exclusive-ownership"),
        history="KAFKA-8463, before the release of 2.3.0",
    ),
    Mutation(
        name="leader-gives-before-revocation",
        floor="protocol",
        what="What is taken from a worker to balance the load is given to another one in the same round.",
        breaks=("connect-revoke-before-reassign", "revoke-before-reassign", "exclusive-ownership"),
    ),
    Mutation(
        name="leader-gives-twice",
        floor="protocol",
        what="A new unit is given to two workers.",
        breaks=("exclusive-assignment", "exclusive-ownership"),
    ),
    Mutation(
        name="duplicates-kept",
        floor="protocol",
        what="Units that two workers report are left with both.",
        breaks=("exclusive-assignment", "exclusive-ownership"),
        history="KAFKA-9841, 2.3.0 to 2.5.0",
    ),
    Mutation(
        name="duplicate-left-with-one-holder",
        floor="protocol",
        what="Of several workers that report a unit, one keeps it: it runs on while the others have not yet stopped.",
        breaks=("exclusive-ownership",),
    ),
    Mutation(
        name="lost-work-given-at-once",
        floor="protocol",
        what="The work of a departed worker is given out in the next round, without a delay.",
        breaks=("lost-work-withheld",),
    ),
    Mutation(
        name="lost-work-forgotten",
        floor="protocol",
        what="The leader withholds lost work once and does not remember it: in the next round it is new work.",
        breaks=("lost-work-withheld",),
    ),
    Mutation(
        name="returning-worker-passed-over",
        floor="protocol",
        what="When the delay is over, lost work goes to any worker, not to those that came without work.",
        breaks=("returning-worker-restored",),
    ),
    Mutation(
        name="worker-reports-before-stopping",
        floor="protocol",
        what="A worker skips the revocation but drops the units from what it reports.",
        breaks=("exclusive-ownership",),
        history="KAFKA-10763, 2.3.0 to 2.6.1 and 2.7.0",
    ),
    Mutation(
        name="worker-starts-before-stopping",
        floor="protocol",
        what="A worker starts its new units before it stops the revoked ones.",
        unseen="Harmless to others, and proved so: nobody is given the revoked units before the worker has joined without them.",
    ),
)
"""The defects of this system; `connect_protocol` takes their names."""


def _relation(name: str, *sorts: str) -> Symbol:
    return Symbol(name, sorts, BOOL)


def _generation_of(name: str, *sorts: str) -> Symbol:
    return Symbol(name, sorts, G)


no_delay = _relation("no_delay")
"""scheduled.rebalance.max.delay.ms is 0."""

# The coordinator.
preparing, completing = _relation("preparing"), _relation("completing")
generation = _generation_of("generation")
member, awaiting, leads = _relation("member", M), _relation("awaiting", M), _relation("leads", M)
claims = _relation("claims", M, P)
"""The units that the member reported in its last JoinGroup."""
proposed = _relation("proposed")
"""The leader of this generation has made its plan, and its SyncGroup may still be accepted."""
accepted = _relation("accepted", G)
configured = _relation("configured", P)
reported, doubled, stuck = _relation("reported", P), _relation("doubled", P), _relation("stuck")
"""Of this generation: reported by a member; by two; a unit that the leader revoked in its last round is still reported."""

# What the plan of each generation says.
granted = _relation("granted", G, M, P)
"""To start, as on the wire."""
revoked = _relation("revoked", G, M, P)
"""To stop, as on the wire."""
target = _relation("target", G, M, P)
"""To run once the member has carried it out: reported, not revoked, or granted."""
failed = _relation("failed", G)
"""The leader's configuration was behind (CONFIG_MISMATCH): nothing granted, nothing revoked."""

# The worker.
fresh, dead = _relation("fresh", M), _relation("dead", M)
syncing, starting = _relation("syncing", M), _relation("starting", M)
"""Waits for its assignment; has stopped what was revoked, and not yet started what was granted."""
running = _relation("running", M, P)
joined, last = _generation_of("joined", M), _generation_of("last", M)
"""The generation of the last JoinGroup response, and of the last assignment carried out."""

# The memory of a worker that has led (the fields of IncrementalCooperativeAssignor), by the worker.
author, recalls = _relation("author", M), _relation("recalls", M)
"""previousGenerationId is the generation that the worker joined last; is the one whose assignment it carried out last."""
previous, pending = _relation("previous", M, P), _relation("pending", M, P)
"""previousAssignment and previousRevocation."""
company, candidate = _relation("company", M, M), _relation("candidate", M, M)
"""previousMembers and candidateWorkersForReassignment."""
armed, shedding = _relation("armed", M), _relation("shedding", M)
"""scheduledRebalance lies ahead; revokedInPrevious: it took units away in its last round, and waits until it does so again."""

# Ghosts: what an observer of all would note.
returned = _relation("returned", M)
"""Came back with work of an earlier id, and has carried out no assignment since."""
knows = _relation("knows", M)
"""Made the last plan that was accepted, and none since."""
placed, party = _relation("placed", P), _relation("party", M)
"""The units that had a worker after that plan, and the members of that generation."""
held, withheld = _relation("held", P), _relation("withheld", P)
"""Lost work that nobody was given: by the last accepted plan, and by the last plan."""
waiting, noted = _relation("waiting", M), _relation("noted", M)
"""Members that came without work while it was withheld: at the last accepted plan, and at the last plan."""
idled = _relation("idled", M)
"""Members that were without work in any round that withheld some."""
orphan = _relation("orphan", P)
"""At the last plan reported by nobody, and either `held` or its worker had gone since."""
expired, forgetful = _relation("expired"), _relation("forgetful")
"""Of the last plan: the delay was over; the leader's memory was not of the last accepted plan."""

# What varies from plan to plan.
give, shed = _relation("give", M, P), _relation("shed", M, P)
"""The leader's choice: who gets a unit that is to be placed, and which units are taken away to balance the load."""
back_off = _relation("back_off")
"""Also its choice: to wait before it takes units away once more."""

_STATE = (
    *(preparing, completing, generation, member, awaiting, leads, claims, proposed, accepted, configured, reported, doubled, stuck),
    *(granted, revoked, target, failed),
    *(fresh, dead, syncing, starting, running, joined, last),
    *(author, recalls, previous, pending, company, candidate, armed, shedding),
    *(returned, knows, placed, party, held, withheld, waiting, noted, idled, orphan, expired, forgetful),
)

x, y, leader = Variable("x", M), Variable("y", M), Variable("leader", M)
u, g = Variable("u", P), Variable("g", G)

_PREPARE = (define(preparing, TRUE), define(completing, FALSE), define(proposed, FALSE))


def connect_protocol(*, mutations: frozenset[str] = frozenset()) -> System:
    """The system, with the named `MUTATIONS` switched on. Raises ValueError on a name that is none of them."""
    unknown = mutations - {mutation.name for mutation in MUTATIONS}
    if unknown:
        raise ValueError(f"no such mutation: {', '.join(sorted(unknown))}")
    safety, popular = _properties(mutations)
    return System(
        name="-".join(("connect", *sorted(mutations))),
        sorts=(M, P, G),
        ordered=(ORDER,),
        rigid=(before, no_generation, no_delay),
        state=_STATE,
        axioms=total_order(ORDER),
        initial=tuple(define(symbol, _initially(symbol)) for symbol in _STATE),
        actions=(*_membership(mutations), *_Leader(mutations).rounds(), *_work(mutations)),
        safety=safety,
        invariants=_invariants(mutations),
        popular=popular,
        rules={name: _RULES[name] for name in (*safety, *popular) if name in _RULES},
        words={name: _WORDS[name] for name in (*safety, *popular)},
        next_generation=("complete", "g"),
    )


def _initially(symbol: Symbol) -> Node:
    if symbol.result != BOOL:
        return no_generation()
    return TRUE if symbol is fresh else FALSE


# Membership: the coordinator, and how workers come and go.


def _membership(mutations: frozenset[str]) -> tuple[Action, ...]:
    hides = "worker-reports-before-stopping" in mutations

    def report(u: Node) -> Node:
        return land(running(x, u), lnot(revoked(last(x), x, u))) if hides else running(x, u)

    def enters(m: Node, units: Body | Node) -> tuple[Update, ...]:
        return (put(member, m, value=TRUE), put(awaiting, m, value=TRUE), put(claims, m, value=units), *_PREPARE)

    alive = land(lnot(fresh(x)), lnot(dead(x)))
    gone = (put(member, x, value=FALSE), put(awaiting, x, value=FALSE), *_PREPARE)
    stays = lor(leads(leader), forall(M, lambda m: lnot(land(leads(m), awaiting(m)))))
    return (
        Action(
            name="join",
            parameters=(x,),
            guard=fresh(x),
            updates=(put(fresh, x, value=FALSE), *enters(x, FALSE)),
            role="environment",
            doc="A new worker joins, without work.",
        ),
        Action(
            name="rejoin",
            parameters=(x,),
            guard=land(alive, member(x), lnot(starting(x))),
            updates=(put(syncing, x, value=FALSE), *enters(x, report)),
            doc="A member joins again and reports what it runs: because others rebalance, because it had to stop work, or at will.",
        ),
        Action(
            name="come_back",
            parameters=(x, y),
            guard=land(alive, lnot(member(x)), lnot(starting(x)), fresh(y)),
            updates=(
                *enters(y, lambda u: running(x, u)),
                put(fresh, y, value=FALSE),
                put(dead, x, value=TRUE),
                put(syncing, x, value=FALSE),
                define(running, lambda m, u: ite(equal(m, y), running(x, u), land(distinct(m, x), running(m, u)))),
                put(returned, y, value=TRUE),
                *(put(symbol, y, value=symbol(x)) for symbol in (joined, last, author, recalls, knows, armed, shedding)),
                *(put(relation, y, value=_of(relation, x)) for relation in (previous, pending, company, candidate)),
            ),
            doc="A removed worker learns of it and joins as another member, with the work that it never stopped.",
        ),
        Action(
            name="complete",
            parameters=(g, leader),
            guard=land(preparing(), before(generation(), g), awaiting(leader), stays),
            updates=(
                define(preparing, FALSE),
                define(completing, TRUE),
                define(generation, g),
                define(member, lambda m: awaiting(m)),
                define(awaiting, FALSE),
                define(leads, lambda m: equal(m, leader)),
                define(syncing, lambda m: lor(land(awaiting(m), lnot(dead(m))), syncing(m))),
                define(joined, lambda m: ite(awaiting(m), g, joined(m))),
                define(author, lambda m: land(author(m), lnot(awaiting(m)))),
                define(reported, _reported),
                define(doubled, _reported_twice),
                define(stuck, exists(P, lambda u: land(_reported(u), pending(leader, u)))),
            ),
            doc="The join phase ends: who has not joined is removed, the leader stays the leader if it is there.",
        ),
        Action(
            name="accept",
            parameters=(),
            guard=land(completing(), proposed()),
            updates=(
                define(completing, FALSE),
                define(proposed, FALSE),
                put(accepted, generation(), value=TRUE),
                define(knows, lambda m: land(author(m), member(m))),
                define(placed, lambda u: exists(M, lambda m: target(generation(), m, u))),
                define(party, lambda m: member(m)),
                define(held, lambda u: withheld(u)),
                define(waiting, lambda m: noted(m)),
            ),
            doc="The coordinator takes the leader's SyncGroup.",
        ),
        Action(
            name="remove",
            parameters=(x,),
            guard=member(x),
            updates=gone,
            role="timer",
            doc="The session of a member ends; it may be alive and work on.",
        ),
        Action(
            name="leave",
            parameters=(x,),
            guard=land(alive, member(x), lnot(starting(x))),
            updates=(*gone, *_ended()),
            role="environment",
            doc="A worker stops all its work, then leaves the group.",
        ),
        Action(
            name="crash",
            parameters=(x,),
            guard=alive,
            updates=_ended(),
            role="environment",
            doc="A worker ends without a word.",
        ),
    )


def _reported(u: Node) -> Node:
    return exists(M, lambda m: land(awaiting(m), claims(m, u)))


def _reported_twice(u: Node) -> Node:
    return exists(f"{M} {M}", lambda a, b: land(distinct(a, b), awaiting(a), claims(a, u), awaiting(b), claims(b, u)))


def _of(relation: Symbol, key: Node) -> Callable[[Node], Node]:
    return lambda other: relation(key, other)


def _ended() -> tuple[Update, ...]:
    return (
        put(dead, x, value=TRUE),
        put(syncing, x, value=FALSE),
        put(starting, x, value=FALSE),
        put(running, x, value=FALSE),
    )


# The leader's rounds.


def _remembered(u: Node) -> Node:
    """In the leader's previous assignment, of units that are not reported."""
    return land(lnot(stuck()), recalls(leader), previous(leader, u))


def _lost(u: Node) -> Node:
    return land(configured(u), _remembered(u), lnot(reported(u)))


@dataclass(frozen=True, slots=True)
class _Leader:
    """A round of the leader, as formulas over the memory that it has and the reports that it gets."""

    mutations: frozenset[str]

    def created(self, u: Node) -> Node:
        unknown = land(configured(u), lnot(_remembered(u)))
        return unknown if "leader-counts-running-work-as-new" in self.mutations else land(unknown, lnot(reported(u)))

    def stops(self, u: Node) -> Node:
        """To be revoked from all that report it, whatever the load: deleted, or reported twice."""
        deleted = land(lnot(configured(u)), lor(stuck(), _remembered(u)))
        return deleted if "duplicates-kept" in self.mutations else lor(deleted, doubled(u))

    def taken(self, m: Node, u: Node) -> Node:
        spared = give(m, u) if "duplicate-left-with-one-holder" in self.mutations else FALSE
        return land(member(m), claims(m, u), self.stops(u), lnot(spared))

    def kept(self, m: Node, u: Node) -> Node:
        return land(member(m), claims(m, u), lnot(self.stops(u)))

    def idle(self, m: Node) -> Node:
        return land(member(m), forall(P, lambda u: lnot(self.kept(m, u))))

    def granted(self, m: Node, u: Node) -> Node:
        return land(give(m, u), lnot(shed(m, u)), lnot(claims(m, u)))

    def revoked(self, m: Node, u: Node) -> Node:
        return lor(self.taken(m, u), shed(m, u))

    def target(self, m: Node, u: Node) -> Node:
        return land(lor(self.kept(m, u), give(m, u)), lnot(shed(m, u)))

    def rounds(self) -> tuple[Action, ...]:
        return (self.settle(), self.withhold(), self.deal(), self.mismatch())

    def quiet(self) -> Node:
        return land(forall(P, lambda u: lnot(_lost(u))), lnot(shedding(leader)))

    def settle(self) -> Action:
        everybody_here = forall(M, lambda m: implies(company(leader, m), member(m)))
        at_once = lor(self.quiet(), land(lnot(armed(leader)), everybody_here), no_delay())
        if "lost-work-given-at-once" in self.mutations:
            at_once = TRUE
        sheds = exists(f"{M} {P}", lambda m, u: shed(m, u))
        return self._plan(
            "settle",
            guard=land(
                at_once,
                self._placement(_lost, may_shed=self.kept),
                implies(back_off(), land(shedding(leader), lnot(no_delay()), lnot(sheds))),
                implies(land(sheds, shedding(leader)), no_delay()),
            ),
            memory=(
                put(candidate, leader, value=lambda m: land(candidate(leader, m), lnot(self.quiet()))),
                put(armed, leader, value=back_off()),
                put(shedding, leader, value=lor(back_off(), sheds)),
            ),
            ghosts=(define(withheld, FALSE), define(noted, FALSE), define(expired, FALSE)),
            havoc=(back_off,),
            doc="A round in which nothing is lost, or nobody has gone, or nothing is to wait: all that nobody runs is placed.",
        )

    def withhold(self) -> Action:
        somebody_gone = exists(M, lambda m: land(company(leader, m), lnot(member(m))))
        return self._plan(
            "withhold",
            guard=land(
                lnot(no_delay()),
                lnot(self.quiet()),
                lor(armed(leader), somebody_gone),
                self._placement(lambda u: FALSE, may_shed=lambda m, u: FALSE),
            ),
            memory=(
                put(candidate, leader, value=lambda m: lor(candidate(leader, m), self.idle(m))),
                put(armed, leader, value=TRUE),
                put(shedding, leader, value=FALSE),
            ),
            ghosts=(
                define(withheld, _lost),
                define(noted, lambda m: lor(land(waiting(m), lnot(_forgetful())), self.idle(m))),
                define(idled, lambda m: lor(idled(m), self.idle(m))),
                define(expired, FALSE),
            ),
            havoc=(),
            doc="A round that counts lost work and gives it to nobody; who comes without work is noted.",
        )

    def deal(self) -> Action:
        def noted_first(n: Node, m: Node, u: Node) -> Node:
            return implies(land(member(n), candidate(leader, n), give(m, u), _remembered(u)), candidate(leader, m))

        def may_shed(m: Node, u: Node) -> Node:
            return lor(self.kept(m, u), land(give(m, u), _remembered(u)))

        passed_over = "returning-worker-passed-over" in self.mutations
        return self._plan(
            "deal",
            guard=land(
                lnot(no_delay()),
                lnot(self.quiet()),
                armed(leader),
                self._placement(_lost, may_shed=may_shed),
                TRUE if passed_over else forall(f"{M} {M} {P}", noted_first),
            ),
            memory=(
                put(candidate, leader, value=FALSE),
                put(armed, leader, value=FALSE),
                put(shedding, leader, value=exists(f"{M} {P}", lambda m, u: shed(m, u))),
            ),
            ghosts=(define(withheld, FALSE), define(noted, FALSE), define(expired, TRUE)),
            havoc=(),
            doc="The delay is over: lost work is dealt to the members that were noted, if any of them is still there, else to any.",
        )

    def mismatch(self) -> Action:
        """The members run on what they have, so that counts as their target; those that came back stay unacknowledged."""
        return Action(
            name="mismatch",
            parameters=(leader,),
            guard=_may_plan(),
            updates=(
                define(proposed, TRUE),
                put(failed, generation(), value=TRUE),
                put(target, generation(), value=lambda m, u: land(member(m), lnot(returned(m)), running(m, u))),
                define(withheld, FALSE),
                define(noted, FALSE),
            ),
            role="environment",
            doc="The leader's configuration is behind that of a member: everybody is told to join again.",
        )

    def _placement(self, lost: Callable[[Node], Node], *, may_shed: Callable[[Node, Node], Node]) -> Node:
        """What the leader's choice obeys: created and ``lost`` units go to one member each, and only what ``may_shed`` is taken away."""

        def placeable(m: Node, u: Node) -> Node:
            if "leader-gives-before-revocation" in self.mutations:
                return lor(to_place(u), exists(M, lambda a: land(distinct(a, m), shed(a, u))))
            if "duplicate-left-with-one-holder" in self.mutations:
                return lor(to_place(u), land(claims(m, u), doubled(u)))
            return to_place(u)

        def to_place(u: Node) -> Node:
            return lor(self.created(u), lost(u))

        once = forall(f"{M} {M} {P}", lambda a, b, u: implies(land(give(a, u), give(b, u)), equal(a, b)))
        return land(
            forall(f"{M} {P}", lambda m, u: implies(give(m, u), land(member(m), placeable(m, u)))),
            forall(P, lambda u: implies(to_place(u), exists(M, lambda m: give(m, u)))),
            TRUE if "leader-gives-twice" in self.mutations else once,
            forall(f"{M} {P}", lambda m, u: implies(shed(m, u), may_shed(m, u))),
        )

    def _plan(
        self,
        name: str,
        *,
        guard: Node,
        memory: tuple[Update, ...],
        ghosts: tuple[Update, ...],
        havoc: tuple[Symbol, ...],
        doc: str,
    ) -> Action:
        remembers_lost = FALSE if "lost-work-forgotten" in self.mutations else TRUE
        bereft = exists(M, lambda m: land(party(m), lnot(member(m))))
        return Action(
            name=name,
            parameters=(leader,),
            guard=land(_may_plan(), guard),
            updates=(
                define(proposed, TRUE),
                put(granted, generation(), value=self.granted),
                put(revoked, generation(), value=self.revoked),
                put(target, generation(), value=self.target),
                put(author, leader, value=TRUE),
                put(recalls, leader, value=FALSE),
                put(knows, leader, value=FALSE),
                put(
                    previous,
                    leader,
                    value=lambda u: lor(exists(M, lambda m: self.target(m, u)), land(_lost(u), remembers_lost)),
                ),
                put(pending, leader, value=lambda u: exists(M, lambda m: self.revoked(m, u))),
                put(company, leader, value=lambda m: member(m)),
                *memory,
                define(orphan, lambda u: land(lnot(reported(u)), lor(held(u), land(placed(u), bereft)))),
                define(forgetful, _forgetful()),
                *ghosts,
            ),
            havoc=(give, shed, *havoc),
            doc=doc,
        )


def _may_plan() -> Node:
    return land(completing(), lnot(proposed()), leads(leader), syncing(leader), equal(joined(leader), generation()))


def _forgetful() -> Node:
    return lnot(land(recalls(leader), knows(leader)))


# What workers do with their assignment, and what becomes of the work.


def _work(mutations: frozenset[str]) -> tuple[Action, ...]:
    hides = "worker-reports-before-stopping" in mutations

    def stopped(u: Node) -> Node:
        return running(x, u) if hides else land(running(x, u), lnot(revoked(joined(x), x, u)))

    def started(u: Node) -> Node:
        return lor(running(x, u), granted(joined(x), x, u))

    first, second = (started, stopped) if "worker-starts-before-stopping" in mutations else (stopped, started)
    alive = land(lnot(fresh(x)), lnot(dead(x)))
    return (
        Action(
            name="stop",
            parameters=(x,),
            guard=land(syncing(x), accepted(joined(x))),
            updates=(put(syncing, x, value=FALSE), put(starting, x, value=TRUE), put(running, x, value=first)),
            doc="A worker gets its assignment and stops what is revoked, before anything else.",
        ),
        Action(
            name="start",
            parameters=(x,),
            guard=starting(x),
            updates=(
                put(starting, x, value=FALSE),
                put(running, x, value=second),
                put(last, x, value=joined(x)),
                put(recalls, x, value=author(x)),
                put(returned, x, value=land(returned(x), failed(joined(x)))),
            ),
            doc="It then starts what is granted.",
        ),
        Action(
            name="cut_off",
            parameters=(x,),
            guard=land(alive, lnot(starting(x))),
            updates=(put(running, x, value=FALSE),),
            role="environment",
            doc="A worker that cannot reach the coordinator stops all its work by itself.",
        ),
        Action(
            name="create",
            parameters=(u,),
            guard=lnot(configured(u)),
            updates=(put(configured, u, value=TRUE),),
            role="environment",
            doc="A connector or task is added to the configuration.",
        ),
        Action(
            name="delete",
            parameters=(u,),
            guard=configured(u),
            updates=(put(configured, u, value=FALSE),),
            role="environment",
            doc="A connector or task is removed from it.",
        ),
    )


# What is promised.


def _acknowledged(m: Node) -> Node:
    return land(member(m), lnot(returned(m)))


def _properties(mutations: frozenset[str]) -> tuple[dict[str, Node], dict[str, Node]]:
    """What is promised and true, and what is popular and false."""
    now = generation()

    def alone(counts: Callable[[Node], Node]) -> Node:
        return forall(f"{M} {M} {P}", lambda a, b, u: implies(land(counts(a), counts(b), running(a, u), running(b, u)), equal(a, b)))

    def withheld_but(*excuses: Node) -> Node:
        return forall(f"{M} {P}", lambda m, u: implies(land(proposed(), granted(now, m, u), orphan(u)), lor(*excuses)))

    def at_most_one(relation: Symbol) -> Node:
        return forall(f"{G} {M} {M} {P}", lambda g, a, b, u: implies(land(relation(g, a, u), relation(g, b, u)), equal(a, b)))

    safety = {
        "connect-granted-to-one": at_most_one(granted),
        "connect-one-target": at_most_one(target),
        "connect-reported-not-granted": forall(
            f"{M} {M} {P}", lambda a, b, u: implies(land(lnot(preparing()), member(a), claims(a, u)), lnot(granted(now, b, u)))
        ),
        "connect-revoked-not-granted": forall(f"{G} {M} {M} {P}", lambda g, a, b, u: lnot(land(granted(g, a, u), revoked(g, b, u)))),
        "connect-exclusive-work": alone(_acknowledged),
        "connect-lost-work-withheld": withheld_but(expired(), forgetful(), stuck(), no_delay()),
        "connect-waiting-workers-first": forall(
            f"{M} {M} {P}",
            lambda m, n, u: implies(
                land(proposed(), expired(), lnot(forgetful()), lnot(stuck()), granted(now, m, u), orphan(u), waiting(n), member(n)),
                idled(m),
            ),
        ),
    }
    popular = {
        "connect-work-runs-once": alone(lambda m: TRUE),
        "connect-work-runs-once-in-the-group": alone(member),
        "connect-delay-survives-the-leader": withheld_but(expired(), stuck(), no_delay()),
        "connect-lost-work-always-waits": withheld_but(expired(), forgetful(), no_delay()),
    }
    in_order = forall(
        f"{M} {P} {P}",
        lambda m, u, v: lnot(land(running(m, u), granted(joined(m), m, u), running(m, v), revoked(joined(m), m, v))),
    )
    (popular if "worker-starts-before-stopping" in mutations else safety)["connect-stop-before-start"] = in_order
    return safety, popular


_WORDS: Mapping[str, str] = {
    "connect-granted-to-one": "In one generation a unit is given to one worker only (IncrementalCooperativeAssignor.assignConnectors, assignTasks).",
    "connect-one-target": (
        "Once all workers have carried out a generation, a unit runs on one of them: what two report is taken from both (KAFKA-9841)."
    ),
    "connect-reported-not-granted": "What a joined worker still reports is given to nobody in that generation (KIP-415: revoke before reassign).",
    "connect-revoked-not-granted": "What one worker is told to stop in a generation is given to nobody in it (KIP-415).",
    "connect-exclusive-work": (
        "No two acknowledged workers run the same unit. Acknowledged: in the group, and either without work of an earlier member id or "
        "through its first round since it came back."
    ),
    "connect-stop-before-start": "A worker stops all that is revoked before it starts what is new (WorkerCoordinator.onJoinComplete).",
    "connect-lost-work-withheld": (
        "The work of a departed worker is given to nobody before the delay is over or somebody reports it (KIP-415), unless the leader's "
        "memory is not that of the last assignment, a unit revoked in the last round is still reported, or the delay is 0 "
        "(IncrementalCooperativeAssignor.performTaskAssignment)."
    ),
    "connect-waiting-workers-first": (
        "When the delay is over, and a worker that came without work is still there, lost work goes only to workers that were without work "
        "in a round of a delay (IncrementalCooperativeAssignor.handleLostAssignments)."
    ),
    "connect-work-runs-once": (
        "A unit runs on one worker at a time. False: a worker whose session is over runs on until it learns of it, while its units are given away."
    ),
    "connect-work-runs-once-in-the-group": (
        "A unit runs on one member at a time. False: a worker that comes back joins with the work that it never stopped, and another may have it."
    ),
    "connect-delay-survives-the-leader": (
        'Lost work waits out its delay whoever leads (KIP-415, example "leader bounces"). False: a new leader knows of no loss and gives it out at once.'
    ),
    "connect-lost-work-always-waits": (
        "Under one leader lost work waits out its delay. False: if a worker has missed a revocation, the leader takes what is reported for "
        "the previous assignment, and what was lost at the same time is new to it."
    ),
}

_RULES: Mapping[str, tuple[str, ...]] = {
    "connect-granted-to-one": ("exclusive-assignment",),
    "connect-one-target": ("exclusive-assignment",),
    "connect-reported-not-granted": ("connect-revoke-before-reassign", "revoke-before-reassign"),
    "connect-revoked-not-granted": ("connect-revoke-before-reassign",),
    "connect-exclusive-work": ("exclusive-ownership",),
    "connect-work-runs-once": ("exclusive-ownership",),
    "connect-work-runs-once-in-the-group": ("exclusive-ownership",),
    "connect-lost-work-withheld": ("lost-work-withheld",),
    "connect-delay-survives-the-leader": ("lost-work-withheld",),
    "connect-lost-work-always-waits": ("lost-work-withheld",),
    "connect-waiting-workers-first": ("returning-worker-restored",),
}


# Why it holds.


def _invariants(mutations: frozenset[str]) -> dict[str, Node]:
    invariants = {**_of_phases(), **_of_plans(), **_of_work(), **_of_memory()}
    if "worker-starts-before-stopping" in mutations:
        del invariants["revoked-does-not-run"]
    return invariants


def _of_phases() -> dict[str, Node]:
    now = generation()
    return {
        "one-phase": lnot(land(preparing(), completing())),
        "planned-while-completing": implies(proposed(), completing()),
        "awaiting": forall(M, lambda m: implies(awaiting(m), land(member(m), preparing(), lnot(syncing(m)), lnot(starting(m))))),
        "fresh": forall(M, lambda m: implies(fresh(m), lnot(lor(member(m), dead(m), syncing(m), starting(m))))),
        "dead": forall(M, lambda m: implies(dead(m), lnot(lor(syncing(m), starting(m))))),
        "one-state": forall(M, lambda m: lnot(land(syncing(m), starting(m)))),
        "members-have-joined": forall(M, lambda m: implies(land(member(m), lnot(awaiting(m))), equal(joined(m), now))),
        "whoever-joined-is-a-member": forall(
            M, lambda m: implies(land(completing(), equal(joined(m), now)), land(member(m), lor(syncing(m), dead(m))))
        ),
        "behind-what-was-joined": forall(M, lambda m: implies(lor(syncing(m), starting(m)), before(last(m), joined(m)))),
        "carried-out-what-was-joined": forall(M, lambda m: at_most(last(m), joined(m))),
        "joined-generations-exist": forall(M, lambda m: at_most(joined(m), now)),
        "accepted-generations-exist": forall(
            G, lambda h: implies(accepted(h), land(at_most(h, now), implies(completing(), before(h, now))))
        ),
    }


def _of_plans() -> dict[str, Node]:
    """The plan of a generation is made once, while it completes."""
    now, unplanned = generation(), land(completing(), lnot(proposed()))

    def made(h: Node) -> Node:
        return land(at_most(h, now), implies(unplanned, before(h, now)))

    return {
        "planned-by-its-author": forall(M, lambda m: implies(land(unplanned, member(m)), lnot(author(m)))),
        "reports-are-counted": forall(f"{M} {P}", lambda m, u: implies(land(completing(), member(m), claims(m, u)), reported(u))),
        "double-reports-are-counted": forall(
            f"{M} {M} {P}",
            lambda a, b, u: implies(land(completing(), member(a), claims(a, u), member(b), claims(b, u)), lor(doubled(u), equal(a, b))),
        ),
        "failed-generations-exist": forall(G, lambda h: implies(failed(h), made(h))),
        "plans-are-of-generations": forall(
            f"{G} {M} {P}",
            lambda h, m, u: implies(lor(granted(h, m, u), revoked(h, m, u), target(h, m, u)), land(made(h), lnot(fresh(m)))),
        ),
        "granted-is-to-run": forall(f"{G} {M} {P}", lambda h, m, u: implies(granted(h, m, u), target(h, m, u))),
        "failed-changes-nothing": forall(f"{G} {M} {P}", lambda h, m, u: implies(failed(h), lnot(lor(granted(h, m, u), revoked(h, m, u))))),
    }


def _of_work() -> dict[str, Node]:
    """What runs is what was to run, or is reported."""
    now, made = generation(), lor(proposed(), accepted(generation()))

    def taken_early(m: Node, u: Node) -> Node:
        return land(starting(m), granted(joined(m), m, u))

    def runs(m: Node, u: Node) -> Node:
        return land(_acknowledged(m), running(m, u))

    return {
        "nothing-runs-outside-life": forall(f"{M} {P}", lambda m, u: implies(lor(fresh(m), dead(m)), lnot(running(m, u)))),
        "running-is-reported": forall(
            f"{M} {P}", lambda m, u: implies(land(member(m), running(m, u), lor(awaiting(m), syncing(m))), claims(m, u))
        ),
        "reported-is-settled": forall(
            f"{M} {P}",
            lambda m, u: implies(
                land(member(m), syncing(m), claims(m, u), made, lnot(failed(now))), lor(revoked(now, m, u), target(now, m, u))
            ),
        ),
        "running-through-a-failed-round": forall(
            f"{M} {P}", lambda m, u: implies(land(runs(m, u), syncing(m), failed(now)), target(now, m, u))
        ),
        "running-was-to-run": forall(f"{M} {P}", lambda m, u: implies(runs(m, u), lor(target(last(m), m, u), taken_early(m, u)))),
        "left-was-to-run": forall(
            f"{M} {P}",
            lambda m, u: implies(
                land(member(m), starting(m), running(m, u), lnot(land(returned(m), failed(joined(m))))),
                lor(target(joined(m), m, u), revoked(joined(m), m, u)),
            ),
        ),
        "never-overtaken": forall(
            f"{G} {M} {M} {P}",
            lambda h, a, b, u: implies(land(runs(b, u), lnot(taken_early(b, u)), before(last(b), h), target(h, a, u)), equal(a, b)),
        ),
        "granted-does-not-run": forall(f"{M} {P}", lambda m, u: implies(land(syncing(m), running(m, u)), lnot(granted(joined(m), m, u)))),
        "revoked-does-not-run": forall(f"{M} {P}", lambda m, u: implies(starting(m), lnot(land(running(m, u), revoked(joined(m), m, u))))),
    }


def _of_memory() -> dict[str, Node]:
    """What the maker of the last plan, and of the last accepted one, remembers."""
    now = generation()

    def of_plan(sort: str, formula: Callable[[Node, Node], Node]) -> Node:
        return forall(f"{M} {sort}", lambda m, other: implies(land(completing(), member(m), author(m)), formula(m, other)))

    def of_accepted(sort: str, formula: Callable[[Node, Node], Node]) -> Node:
        return forall(f"{M} {sort}", lambda m, other: implies(knows(m), formula(m, other)))

    def runs_somewhere(u: Node) -> Node:
        return exists(M, lambda m: target(now, m, u))

    return {
        "remembers-what-was-to-run": of_plan(P, lambda m, u: implies(runs_somewhere(u), previous(m, u))),
        "remembers-what-was-withheld": of_plan(P, lambda m, u: implies(withheld(u), land(previous(m, u), armed(m)))),
        "remembers-the-members": of_plan(M, lambda m, n: implies(member(n), company(m, n))),
        "remembers-who-was-idle": of_plan(M, lambda m, n: implies(noted(n), candidate(m, n))),
        "knows-what-was-placed": of_accepted(P, lambda m, u: implies(placed(u), previous(m, u))),
        "knows-what-is-held": of_accepted(P, lambda m, u: implies(held(u), land(previous(m, u), armed(m)))),
        "knows-the-party": of_accepted(M, lambda m, n: implies(party(n), company(m, n))),
        "knows-who-waits": of_accepted(M, lambda m, n: implies(waiting(n), candidate(m, n))),
        "candidates-were-idle": forall(f"{M} {M}", lambda m, n: implies(candidate(m, n), idled(n))),
    }
