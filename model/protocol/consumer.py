"""The group protocol of KIP-429 (cooperative rebalancing) and KIP-345 (static membership) as a first-order system.

Sorts: a ``Member`` is one member id, that is one incarnation of a client, never used again; a ``Generation`` is a point of a
total order, never used again either; an ``Instance`` is a group.instance.id. What the model leaves to chance covers the
details: a join phase may complete at any time somebody has joined, a member may be removed at any time (session, poll or
sync timer, LeaveGroup), a client may lose or give up what it owns at any time (so eager clients and changed subscriptions
are covered), a request may be lost, and the leader may decide whatever the assignor contract allows.

The assignor contract (`contract`): a leader gives a partition that a member of the generation claims to nobody else
(``strict``), except to somebody who claims it from a later generation (``generation-aware``, Kafka since KAFKA-14639). That
the assignors keep it is proved apart (`assignor.py`).

Coordinator failover (``failover=True``): what the last accepted SyncGroup of a leader wrote survives (members, their
metadata, generation, assignment), and so does a static replacement in a stable group (KAFKA-10284); a join phase writes
nothing. Kafka then uses the number of an unwritten generation again. Here every completed join phase is a point of its
own; the unwritten ones become ``lost``. Wherever Kafka compares numbers, a lost point may stand for the current generation,
because it may carry the same number: that over-approximates (it need not), and keeps numbers out of the model. Numbers
that were written only go up, as their points do. The deletion of an empty group is not covered.

History is kept by generation (``assigned``), never as "the value before": a static restart copies the rows of the old id to
the new one. With the functions going from Member and from nothing to Generation and Instance only, every proof
obligation is in the decidable fragment EPR, for any number of members, partitions and generations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ..mutation import Mutation
from .language import (
    BOOL,
    FALSE,
    TRUE,
    Action,
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
    iff,
    implies,
    ite,
    land,
    lnot,
    lor,
    put,
    total_order,
)
from .sorts import ORDER, G, M, P, at_most, before, no_generation

Contract = Literal["strict", "generation-aware"]
Reported = Literal["completed", "joined"]

# Rigid, with what `sorts` has.
is_static = Symbol("static", (M,), BOOL)
instance = Symbol("instance", (M,), "Instance")

# The coordinator. An empty group is a stable one without members.
preparing = Symbol("preparing", (), BOOL)
completing = Symbol("completing", (), BOOL)
stable = Symbol("stable", (), BOOL)
generation = Symbol("generation", (), G)
member = Symbol("member", (M,), BOOL)
known = Symbol("known", (M,), BOOL)
"""Is or was a member: an id is given out once."""
joining = Symbol("joining", (M,), BOOL)
"""Its JoinGroup is parked until the join phase completes."""
owned = Symbol("owned", (M, P), BOOL)
"""The claims in the metadata that the coordinator holds of the member, made in `owned_generation`."""
owned_generation = Symbol("owned_generation", (M,), G)
proposed = Symbol("proposed", (), BOOL)
"""The leader has sent its SyncGroup, with `proposal`."""
proposal = Symbol("proposal", (M, P), BOOL)
assigned = Symbol("assigned", (G, M, P), BOOL)
"""The accepted assignments of all generations; empty for a generation that has none."""

# What the coordinator has written, for failover.
saved = Symbol("saved", (M,), BOOL)
saved_generation = Symbol("saved_generation", (), G)
saved_owned = Symbol("saved_owned", (M, P), BOOL)
saved_owned_generation = Symbol("saved_owned_generation", (M,), G)
lost = Symbol("lost", (G,), BOOL)

# The clients: each in exactly one of these states.
fresh = Symbol("fresh", (M,), BOOL)
unjoined = Symbol("unjoined", (M,), BOOL)
joins = Symbol("joins", (M,), BOOL)
syncs = Symbol("syncs", (M,), BOOL)
revoked = Symbol("revoked", (M,), BOOL)
"""Has given up what it must and not yet taken what is new."""
settled = Symbol("settled", (M,), BOOL)
dead = Symbol("dead", (M,), BOOL)
CLIENT_STATES = (fresh, unjoined, joins, syncs, revoked, settled, dead)
believes = Symbol("believes", (M, P), BOOL)
completed = Symbol("completed", (M,), G)
"""The generation whose assignment the client has taken over last."""
joined = Symbol("joined", (M,), G)
"""The generation of the last JoinGroup answer."""

# The network: at most one request of a client is under way.
join_request = Symbol("join_request", (M,), BOOL)
request_owned = Symbol("request_owned", (M, P), BOOL)
request_generation = Symbol("request_generation", (M,), G)
join_response = Symbol("join_response", (M, G), BOOL)
sync_request = Symbol("sync_request", (M, G), BOOL)
sync_response = Symbol("sync_response", (M, G), BOOL)
response_assignment = Symbol("response_assignment", (M, P), BOOL)

# Ghosts: no action depends on them, only what is stated.
missed = Symbol("missed", (M,), BOOL)
"""A static member that was kept in a generation that it did not join, and has not completed the current one since."""
saved_missed = Symbol("saved_missed", (M,), BOOL)
released = Symbol("released", (M,), BOOL)
"""Removed by a timer, by leaving, by replacement or with the coordinator that knew it."""
rejoined = Symbol("rejoined", (M,), BOOL)
"""Took part in the current join phase."""
restarted = Symbol("restarted", (M,), BOOL)
"""Replaced another id, and no rebalance has given it anything yet."""
last = Symbol("last", (M, P), BOOL)
last_generation = Symbol("last_generation", (M,), G)
of_generation = Symbol("of_generation", (G, M), BOOL)
replaced = Symbol("replaced", (G, M, M), BOOL)
"""In a stable group of that generation the first id was replaced by the second."""
request_completed = Symbol("request_completed", (M,), G)
"""The generation that the claims of a request really come from, if the request names another (``reported="joined"``)."""
owned_completed = Symbol("owned_completed", (M,), G)
saved_owned_completed = Symbol("saved_owned_completed", (M,), G)
given_up = Symbol("given_up", (M, P), BOOL)
"""What the client had to revoke when it learned its last assignment."""
committed = Symbol("committed", (G, M, P), BOOL)
"""In that generation the coordinator accepted the member's commit for the partition."""

# Arbitrary in one step: what the leader decides.
choice = Symbol("choice", (M, P), BOOL)

# The last request of a client, for the mutation that delivers it twice.
old_request_owned = Symbol("old_request_owned", (M, P), BOOL)
old_request_generation = Symbol("old_request_generation", (M,), G)

x, old = Variable("x", M), Variable("old", M)
g, p = Variable("g", G), Variable("p", P)


@dataclass(frozen=True, slots=True)
class _Variant:
    static: bool
    failover: bool
    contract: Contract
    mutations: frozenset[str]
    all_rejoin: bool
    absent_claims_last: bool
    partial_loss: bool
    commits: bool
    reported: Reported
    unprompted: bool

    @property
    def mislabelled(self) -> bool:
        """Claims may name a later generation than they come from."""
        return self.reported == "joined"

    @property
    def request_from(self) -> Symbol:
        return request_completed if self.mislabelled else request_generation

    @property
    def owned_from(self) -> Symbol:
        return owned_completed if self.mislabelled else owned_generation

    @property
    def saved_owned_from(self) -> Symbol:
        return saved_owned_completed if self.mislabelled else saved_owned_generation

    @property
    def ownership_is_exclusive(self) -> bool:
        """S2 and S8 hold. Static members that name later generations than they own from can take what another still owns."""
        return not (self.mislabelled and self.static and self.contract == "generation-aware")

    def has(self, mutation: str) -> bool:
        return mutation in self.mutations


def consumer_protocol(
    *,
    static: bool = True,
    failover: bool = False,
    contract: Contract = "generation-aware",
    mutations: frozenset[str] = frozenset(),
    assume_all_rejoin: bool = False,
    absent_claims_last: bool = False,
    partial_loss: bool = True,
    commits: bool = True,
    reported: Reported = "completed",
    unprompted: bool = False,
) -> System:
    """The protocol; for the sorts and what is covered see the module.

    ``static`` allows static members. ``assume_all_rejoin``: no join phase completes without a member.
    ``absent_claims_last``: what if the coordinator claimed for an absent static member what it was assigned last (Kafka
    keeps its old metadata). ``partial_loss``: clients may give up single partitions at any time; without it only all at once.
    ``commits``: clients commit offsets. ``reported``: the generation that a client names for its claims: that of the last
    assignment it took over (user data of the cooperative assignor, 2.8.1 to 3.3), or that of its last JoinGroup answer
    (the field of KIP-792, since 3.4.0), which may be later than its assignment: with static members exclusive ownership then
    is among the popular promises that are false (`refute.MISLABELLED`). ``unprompted``: a rebalance may also begin though
    nobody joined or was removed, as when the log refuses an assignment. ``mutations``: names of `MUTATIONS`.

    Raises ValueError for an unknown mutation.
    """
    unknown = mutations - {mutation.name for mutation in MUTATIONS}
    if unknown:
        raise ValueError(f"unknown mutations: {', '.join(sorted(unknown))}")
    switches = (assume_all_rejoin, absent_claims_last, partial_loss, commits, reported, unprompted)
    variant = _Variant(static, failover, contract, mutations, *switches)
    actions = (*_client(variant), *_coordinator(variant))
    safety, popular = _properties(variant)
    state = _state(variant)
    words = {name: _WORDS[name] for name in (*safety, *popular)}
    options = (
        ("static", static),
        ("failover", failover),
        ("strict", contract == "strict"),
        ("all-rejoin", assume_all_rejoin),
        ("absent-claims-last", absent_claims_last),
        ("reports-joined", reported == "joined"),
        ("unprompted", unprompted),
    )
    suffixes = [word for word, on in options if on]
    return System(
        name="-".join(("consumer", *suffixes, *sorted(mutations))),
        sorts=(M, P, G, "Instance"),
        ordered=(ORDER,),
        rigid=(before, no_generation, is_static, instance),
        state=state,
        axioms=(*total_order(ORDER), *(() if static else (forall(M, lambda m: lnot(is_static(m))),))),
        initial=tuple(_initial(symbol) for symbol in state),
        actions=actions,
        safety=safety,
        invariants=_invariants(variant),
        popular=popular,
        rules={name: rules for name, rules in _RULES.items() if name in words},
        next_generation=("complete", "g"),
        words=words,
    )


def _state(variant: _Variant) -> tuple[Symbol, ...]:
    parts = (
        ((preparing, completing, stable, generation, member, known, joining, owned, owned_generation), True),
        ((proposed, proposal, assigned), True),
        ((*CLIENT_STATES, believes, completed, joined), True),
        ((join_request, request_owned, request_generation, join_response, sync_request, sync_response, response_assignment), True),
        ((of_generation, rejoined, last, last_generation, given_up), True),
        ((missed, released, restarted, replaced), variant.static),
        ((saved, saved_generation, saved_owned, saved_owned_generation, lost), variant.failover),
        ((saved_missed,), variant.static and variant.failover),
        ((request_completed, owned_completed), variant.mislabelled),
        ((saved_owned_completed,), variant.mislabelled and variant.failover),
        ((committed,), variant.commits),
        ((old_request_owned, old_request_generation), variant.has("stale-join-delivered")),
    )
    return tuple(symbol for symbols, needed in parts if needed for symbol in symbols)


def _initial(symbol: Symbol) -> Update:
    if symbol.result == G:
        return define(symbol, no_generation())
    return define(symbol, TRUE if symbol in (stable, fresh) else FALSE)


def _becomes(state: Symbol) -> tuple[Update, ...]:
    """The client's state."""
    return tuple(put(other, x, value=TRUE if other is state else FALSE) for other in CLIENT_STATES)


def _enters(phase: Symbol) -> tuple[Update, ...]:
    """The group's state."""
    return tuple(define(other, TRUE if other is phase else FALSE) for other in (preparing, completing, stable))


def _only(symbol: Symbol, key: Node, value: Node) -> Update:
    """Of all ``symbol(key, _)`` just ``symbol(key, value)`` holds."""
    return put(symbol, key, value=lambda other: equal(other, value))


def _none(symbol: Symbol, key: Node = x) -> Update:
    return put(symbol, key, value=FALSE)


def _alive(m: Node) -> Node:
    return lor(unjoined(m), joins(m), syncs(m), revoked(m), settled(m))


def _client(variant: _Variant) -> tuple[Action, ...]:
    forget_answers = (_none(join_response), _none(sync_request), _none(sync_response))
    remember = (
        (
            put(old_request_owned, x, value=lambda p: request_owned(x, p)),
            put(old_request_generation, x, value=request_generation(x)),
        )
        if variant.has("stale-join-delivered")
        else ()
    )
    acknowledges = define(missed, lambda m: land(missed(m), lnot(land(equal(m, x), equal(joined(x), generation())))))
    acknowledges_saved = define(
        saved_missed, lambda m: land(saved_missed(m), lnot(land(equal(m, x), equal(joined(x), saved_generation()))))
    )
    catches_up = (*((acknowledges,) if variant.static else ()), *((acknowledges_saved,) if variant.static and variant.failover else ()))

    def kept(p: Node) -> Node:
        if variant.has("take-before-revoke"):
            return lor(believes(x, p), response_assignment(x, p))
        if variant.has("rejoin-before-revoked"):
            return believes(x, p)
        if variant.has("retained-revoked"):
            return FALSE
        return land(believes(x, p), response_assignment(x, p))

    actions = [
        Action(
            name="start",
            parameters=(x,),
            guard=fresh(x),
            updates=(
                *_becomes(joins),
                put(join_request, x, value=TRUE),
                _none(request_owned),
                put(request_generation, x, value=no_generation()),
                put(completed, x, value=no_generation()),
            ),
            role="environment",
            doc="A client starts and sends its first JoinGroup.",
        ),
        Action(
            name="rejoin",
            parameters=(x,),
            guard=land(lor(unjoined(x), settled(x), joins(x), syncs(x)), lnot(join_request(x))),
            updates=(
                *_becomes(joins),
                put(join_request, x, value=TRUE),
                put(request_owned, x, value=lambda p: believes(x, p)),
                put(request_generation, x, value=joined(x) if variant.mislabelled else completed(x)),
                *((put(request_completed, x, value=completed(x)),) if variant.mislabelled else ()),
                *forget_answers,
                *remember,
            ),
            doc="A client sends JoinGroup (again) with what it owns and the generation it owns it from.",
        ),
        Action(
            name="lose_join_request",
            parameters=(x,),
            guard=join_request(x),
            updates=(put(join_request, x, value=FALSE),),
            role="environment",
            doc="A JoinGroup never arrives.",
        ),
        Action(
            name="receive_join_response",
            parameters=(x, g),
            guard=land(joins(x), join_response(x, g)),
            updates=(*_becomes(syncs), put(joined, x, value=g), _none(join_response), _only(sync_request, x, g)),
            doc="A client learns its generation and sends SyncGroup.",
        ),
        Action(
            name="revoke",
            parameters=(x, g),
            guard=land(syncs(x), sync_response(x, g)),
            updates=(
                *_becomes(revoked),
                put(joined, x, value=g),
                put(believes, x, value=kept),
                put(given_up, x, value=lambda p: land(believes(x, p), lnot(kept(p)))),
                _none(sync_response),
            ),
            doc="A client learns its assignment and gives up what is not in it.",
        ),
        Action(
            name="assign",
            parameters=(x,),
            guard=revoked(x),
            updates=(
                *_becomes(settled),
                put(believes, x, value=lambda p: response_assignment(x, p)),
                put(completed, x, value=joined(x)),
                *catches_up,
            ),
            doc="A client takes over what is new in its assignment.",
        ),
        Action(
            name="reset",
            parameters=(x,),
            guard=_alive(x),
            updates=(
                *_becomes(unjoined),
                _none(believes),
                put(completed, x, value=no_generation()),
                *((put(joined, x, value=no_generation()),) if variant.mislabelled else ()),
            ),
            role="environment",
            doc="A client loses all that it owns (fenced, unknown member, poll timeout; onPartitionsLost).",
        ),
        Action(
            name="crash",
            parameters=(x,),
            guard=_alive(x),
            updates=(*_becomes(dead), _none(believes)),
            role="environment",
            doc="A client ends: crash, close, or a new incarnation under a new id.",
        ),
    ]
    if variant.partial_loss:
        actions.append(
            Action(
                name="give_up",
                parameters=(x, p),
                guard=land(_alive(x), believes(x, p)),
                updates=(put(believes, x, p, value=FALSE),),
                role="environment",
                doc="A client revokes a partition of its own accord (eager rebalance, changed subscription, unsubscribe).",
            )
        )
    if variant.has("rejoin-before-revoked"):
        actions += [
            Action(
                name="rejoin_early",
                parameters=(x,),
                guard=land(revoked(x), lnot(join_request(x))),
                updates=(
                    *_becomes(joins),
                    put(join_request, x, value=TRUE),
                    put(request_owned, x, value=lambda p: response_assignment(x, p)),
                    put(request_generation, x, value=joined(x)),
                    *forget_answers,
                    put(believes, x, value=lambda p: lor(believes(x, p), response_assignment(x, p))),
                    put(completed, x, value=joined(x)),
                    *catches_up,
                ),
                doc="A client rejoins with its new assignment while the revocation still runs.",
            ),
            Action(
                name="revoke_late",
                parameters=(x,),
                guard=lor(joins(x), syncs(x)),
                updates=(put(believes, x, value=lambda p: land(believes(x, p), request_owned(x, p))),),
                doc="The revocation that a rejoin did not wait for ends.",
            ),
        ]
    if variant.has("stale-join-delivered"):
        actions.append(
            Action(
                name="deliver_old_join",
                parameters=(x,),
                guard=land(lnot(join_request(x)), lnot(fresh(x))),
                updates=(
                    put(join_request, x, value=TRUE),
                    put(request_owned, x, value=lambda p: old_request_owned(x, p)),
                    put(request_generation, x, value=old_request_generation(x)),
                ),
                role="environment",
                doc="A JoinGroup that was superseded arrives late.",
            )
        )
    return tuple(actions)


def _takes_metadata(variant: _Variant) -> tuple[Update, ...]:
    return (
        *((put(owned_completed, x, value=request_completed(x)),) if variant.mislabelled else ()),
        put(owned, x, value=lambda p: request_owned(x, p)),
        put(owned_generation, x, value=request_generation(x)),
        put(join_request, x, value=FALSE),
    )


def _same_instance(a: Node, b: Node) -> Node:
    return land(is_static(a), is_static(b), equal(instance(a), instance(b)))


def _coordinator(variant: _Variant) -> tuple[Action, ...]:
    now = generation()
    first_time = TRUE if variant.has("removed-id-readmitted") else lnot(known(x))
    unmapped = lor(lnot(is_static(x)), forall(M, lambda m: lnot(land(member(m), _same_instance(m, x)))))
    same_generation = equal(request_generation(x), owned_generation(x))
    if variant.mislabelled and variant.failover:
        same_generation = lor(same_generation, lost(owned_generation(x)))
    same_metadata = land(same_generation, forall(P, lambda p: iff(request_owned(x, p), owned(x, p))))

    def current(g: Node) -> Node:
        return lor(equal(g, now), lost(g) if variant.failover else FALSE)

    commit_fence = land(member(x), TRUE if variant.has("stale-generation-commits") else equal(completed(x), now))
    new_member = (define(released, lambda m: land(distinct(m, x), released(m))),) if variant.static else ()
    actions = [
        Action(
            name="join_new",
            parameters=(x,),
            guard=land(join_request(x), lnot(member(x)), first_time, unmapped),
            updates=(
                put(member, x, value=TRUE),
                put(known, x, value=TRUE),
                put(joining, x, value=TRUE),
                *_takes_metadata(variant),
                *_enters(preparing),
                put(rejoined, x, value=TRUE),
                _none(last),
                put(last_generation, x, value=no_generation()),
                *new_member,
                *((put(missed, x, value=FALSE),) if variant.static else ()),
            ),
            doc="A new member joins: a rebalance begins.",
        ),
        Action(
            name="join_known",
            parameters=(x,),
            guard=land(join_request(x), member(x)),
            updates=(put(joining, x, value=TRUE), *_takes_metadata(variant), *_enters(preparing), put(rejoined, x, value=TRUE)),
            doc="A member rejoins: a rebalance begins, or goes on.",
        ),
        Action(
            name="join_unchanged",
            parameters=(x,),
            guard=land(join_request(x), member(x), lor(completing(), stable()), same_metadata),
            updates=(put(join_request, x, value=FALSE), _only(join_response, x, now)),
            doc="A member rejoins with the same metadata outside a join phase: answered with the current generation.",
        ),
        _complete(variant),
        Action(
            name="empty",
            parameters=(),
            guard=land(preparing(), forall(M, lambda m: lnot(member(m)))),
            updates=(
                *_enters(stable),
                *((define(saved, FALSE), define(saved_generation, now)) if variant.failover else ()),
            ),
            doc="The last member has gone. Kafka counts the generation up, but nobody learns it: the point stays.",
        ),
        _propose(variant),
        _accept(variant),
        Action(
            name="answer_sync",
            parameters=(x, g),
            guard=land(sync_request(x, g), member(x), stable(), TRUE if variant.has("stale-sync-granted") else current(g)),
            updates=(
                _none(sync_request),
                _only(sync_response, x, g if variant.has("stale-sync-granted") else now),
                put(response_assignment, x, value=lambda p: assigned(now, x, p)),
            ),
            doc="SyncGroup of a member of the current generation is answered with its assignment.",
        ),
        Action(
            name="remove",
            parameters=(x,),
            guard=member(x),
            updates=(
                put(member, x, value=FALSE),
                put(joining, x, value=FALSE),
                *_enters(preparing),
                *((put(released, x, value=TRUE),) if variant.static else ()),
            ),
            role="timer",
            doc="A member's session, poll interval or sync time has run out, or it leaves: a rebalance begins.",
        ),
    ]
    if variant.unprompted:
        actions.append(
            Action(
                name="rebalance",
                parameters=(),
                guard=land(lor(completing(), stable()), exists(M, lambda m: member(m))),
                updates=_enters(preparing),
                role="environment",
                doc="A rebalance begins for another reason: the log refused an assignment, a static return changed the assignor.",
            )
        )
    if variant.commits:
        actions.append(
            Action(
                name="commit",
                parameters=(x, p),
                guard=land(settled(x), believes(x, p), commit_fence, lnot(completing())),
                updates=(put(committed, now, x, p, value=TRUE),),
                doc="A settled client's commit is accepted: it is a member, its generation the current one.",
            )
        )
    if variant.static:
        actions += [_replace_stable(variant), _replace_rebalancing(variant)]
    if variant.failover:
        actions.append(_failover(variant))
    return tuple(actions)


def _complete(variant: _Variant) -> Action:
    def stays(m: Node) -> Node:
        if variant.has("laggard-kept"):
            return member(m)
        kept = is_static(m) if variant.static and not variant.has("absent-static-dropped") else FALSE
        return land(member(m), lor(joining(m), kept))

    later = distinct(generation(), g) if variant.has("generation-falls") else before(generation(), g)
    guards = [preparing(), later, exists(M, lambda m: land(member(m), joining(m)))]
    if variant.failover:
        guards.append(lnot(lost(g)))
    if variant.all_rejoin:
        guards.append(forall(M, lambda m: implies(member(m), joining(m))))
    updates = [
        define(member, stays),
        define(generation, g),
        define(joining, FALSE),
        *_enters(completing),
        define(join_response, lambda m, h: ite(joining(m), land(lnot(join_request(m)), equal(h, g)), join_response(m, h))),
        define(rejoined, lambda m: land(member(m), joining(m))),
        put(of_generation, g, value=stays),
    ]
    if not variant.has("stale-proposal-accepted"):
        updates += [define(proposed, FALSE), define(proposal, FALSE)]
    if variant.static:
        updates.append(define(missed, lambda m: lor(missed(m), land(member(m), is_static(m), lnot(joining(m))))))
    if variant.absent_claims_last:

        def absent(m: Node) -> Node:
            return land(is_static(m), member(m), lnot(joining(m)))

        updates += [
            define(owned, lambda m, p: ite(absent(m), last(m, p), owned(m, p))),
            define(owned_generation, lambda m: ite(absent(m), last_generation(m), owned_generation(m))),
            *((define(owned_completed, lambda m: ite(absent(m), last_generation(m), owned_completed(m))),) if variant.mislabelled else ()),
        ]
    return Action(
        name="complete",
        parameters=(g,),
        guard=land(*guards),
        updates=tuple(updates),
        doc="The join phase completes: dynamic members that did not rejoin are removed, static ones stay with old metadata.",
    )


def _claims(m: Node, p: Node) -> Node:
    return land(member(m), owned(m, p))


def _claims_later(variant: _Variant, a: Node, b: Node, p: Node) -> Node:
    """``b`` claims from a later generation than ``a``, as far as the numbers tell: that of a lost one may be any."""
    unclear = lost(owned_generation(b)) if variant.mislabelled and variant.failover else FALSE
    return land(_claims(b, p), lor(before(owned_generation(a), owned_generation(b)), unclear))


def _contract(variant: _Variant) -> Node:
    """What the leader's choice keeps to."""

    def may_take(b: Node, a: Node, p: Node) -> Node:
        """``b`` may be given what ``a`` claims."""
        if variant.has("assignor-skips-adjust"):
            return TRUE
        if variant.has("stale-claims-win"):
            return _claims(b, p)
        if variant.has("older-claims-ignored"):
            return exists(M, lambda c: land(member(c), before(owned_generation(a), owned_generation(c))))
        if variant.contract == "strict":
            return FALSE
        return _claims_later(variant, a, b, p)

    members_only = forall(f"{M} {P}", lambda m, p: implies(choice(m, p), member(m)))
    exclusive = forall(f"{M} {M} {P}", lambda a, b, p: implies(land(choice(a, p), choice(b, p)), equal(a, b)))
    respects_claims = forall(
        f"{M} {M} {P}", lambda b, a, p: implies(land(choice(b, p), _claims(a, p)), lor(equal(a, b), may_take(b, a, p)))
    )
    return land(
        TRUE if variant.has("assigned-to-strangers") else members_only,
        TRUE if variant.has("partition-assigned-twice") else exclusive,
        respects_claims,
    )


def _propose(variant: _Variant) -> Action:
    return Action(
        name="propose",
        parameters=(),
        guard=land(completing(), lnot(proposed()), _contract(variant)),
        updates=(define(proposed, TRUE), define(proposal, choice)),
        havoc=(choice,),
        doc="The leader decides, as the assignor contract allows, and sends its SyncGroup.",
    )


def _accept(variant: _Variant) -> Action:
    now = generation()

    def given(m: Node, p: Node) -> Node:
        return proposal(m, p) if variant.has("assigned-to-strangers") else land(proposal(m, p), member(m))

    updates = [
        *_enters(stable),
        put(assigned, now, value=given),
        define(proposed, FALSE),
        define(proposal, FALSE),
        define(last, lambda m, p: ite(member(m), proposal(m, p), last(m, p))),
        define(last_generation, lambda m: ite(member(m), now, last_generation(m))),
    ]
    if variant.static:
        updates.append(define(restarted, lambda m: land(restarted(m), lnot(member(m)))))
    if variant.failover and not variant.has("sync-answered-before-write"):
        updates += [
            define(saved, member),
            define(saved_generation, now),
            define(saved_owned, owned),
            define(saved_owned_generation, owned_generation),
            *((define(saved_owned_completed, owned_completed),) if variant.mislabelled else ()),
            *((define(saved_missed, missed),) if variant.static else ()),
        ]
    return Action(
        name="accept",
        parameters=(),
        guard=land(completing(), proposed()),
        updates=tuple(updates),
        doc="The leader's SyncGroup is accepted and written: the group is stable.",
    )


def _replaces() -> Node:
    """``x`` asks to join under the instance id of the member ``old``."""
    return land(join_request(x), lnot(member(x)), lnot(known(x)), member(old), _same_instance(x, old), distinct(x, old))


def _inherits(variant: _Variant, *, keeps: bool) -> tuple[Update, ...]:
    """What both kinds of replacement do; ``keeps``: the current assignment passes to the new id."""

    def inherited(h: Node, p: Node) -> Node:
        return assigned(h, old, p) if keeps else land(distinct(h, generation()), assigned(h, old, p))

    def members(m: Node) -> Node:
        return lor(equal(m, x), member(m) if variant.has("both-ids-stay") else land(distinct(m, old), member(m)))

    if variant.absent_claims_last:
        metadata = (
            put(owned, x, value=lambda p: lor(request_owned(x, p), last(old, p))),
            put(owned_generation, x, value=last_generation(old)),
            *((put(owned_completed, x, value=last_generation(old)),) if variant.mislabelled else ()),
            put(join_request, x, value=FALSE),
        )
    else:
        metadata = _takes_metadata(variant)
    return (
        define(member, members),
        put(known, x, value=TRUE),
        *metadata,
        put(last, x, value=lambda p: last(old, p)),
        put(last_generation, x, value=last_generation(old)),
        define(assigned, lambda h, m, p: ite(equal(m, x), inherited(h, p), assigned(h, m, p))),
        define(of_generation, lambda h, m: ite(equal(m, x), of_generation(h, old), of_generation(h, m))),
        put(restarted, x, value=TRUE),
        put(missed, x, value=FALSE),
        define(released, lambda m: land(distinct(m, x), lor(equal(m, old), released(m)))),
    )


def _replace_stable(variant: _Variant) -> Action:
    now = generation()
    persists = (
        (
            define(saved, lambda m: lor(equal(m, x), land(distinct(m, old), saved(m)))),
            put(saved_owned, x, value=lambda p: request_owned(x, p)),
            put(saved_owned_generation, x, value=request_generation(x)),
            *((put(saved_owned_completed, x, value=request_completed(x)),) if variant.mislabelled else ()),
            put(saved_missed, x, value=FALSE),
        )
        if variant.failover and not variant.has("replacement-not-written")
        else ()
    )
    return Action(
        name="replace_stable",
        parameters=(x, old),
        guard=land(_replaces(), stable()),
        updates=(
            *_inherits(variant, keeps=not variant.has("restart-loses-assignment")),
            define(joining, lambda m: land(distinct(m, old), distinct(m, x), joining(m))),
            _only(join_response, x, now),
            put(rejoined, x, value=rejoined(old)),
            put(replaced, now, old, x, value=TRUE),
            *persists,
        ),
        doc="A static member returns to a stable group: its new id takes the place of the old one, without a rebalance.",
    )


def _replace_rebalancing(variant: _Variant) -> Action:
    return Action(
        name="replace_rebalancing",
        parameters=(x, old),
        guard=land(_replaces(), lor(preparing(), completing())),
        updates=(
            *_inherits(variant, keeps=True),
            define(joining, lambda m: lor(equal(m, x), land(distinct(m, old), joining(m)))),
            *_enters(preparing),
            put(rejoined, x, value=TRUE),
        ),
        doc="A static member returns during a rebalance: its new id joins, with no claims.",
    )


def _failover(variant: _Variant) -> Action:
    gone = define(released, lambda m: lor(released(m), land(member(m), lnot(saved(m)))))
    return Action(
        name="failover",
        parameters=(),
        guard=TRUE,
        updates=(
            *_enters(stable),
            define(member, saved),
            define(generation, saved_generation()),
            define(owned, saved_owned),
            define(owned_generation, saved_owned_generation),
            *((define(owned_completed, saved_owned_completed),) if variant.mislabelled else ()),
            define(joining, FALSE),
            define(proposed, FALSE),
            define(proposal, FALSE),
            define(
                lost,
                lambda h: lor(lost(h), land(before(saved_generation(), h), lor(equal(h, generation()), before(h, generation())))),
            ),
            *((gone, define(missed, saved_missed)) if variant.static else ()),
        ),
        role="environment",
        doc="Another broker becomes coordinator and knows what was written.",
    )


def _from_before(variant: _Variant, m: Node, p: Node) -> Node:
    """What ``m`` believes since the assignment that it took over last."""
    if variant.has("take-before-revoke"):
        return land(believes(m, p), lnot(land(revoked(m), response_assignment(m, p))))
    return believes(m, p)


def _properties(variant: _Variant) -> tuple[dict[str, Node], dict[str, Node]]:
    """What is promised and true, and what is popular and false."""
    now = generation()

    def acknowledged(m: Node) -> Node:
        return land(member(m), lnot(missed(m))) if variant.static else member(m)

    def alone(standing: Symbol | None, held: Symbol) -> Node:
        counts = acknowledged if standing is None else standing
        return forall(f"{M} {M} {P}", lambda a, b, p: implies(land(counts(a), counts(b), held(a, p), held(b, p)), equal(a, b)))

    def given_to_another(a: Node, b: Node, p: Node) -> Node:
        return land(completing(), proposed(), member(a), is_static(a), member(b), proposal(b, p), distinct(a, b))

    safety = {
        "S1": forall(
            f"{M} {M} {P}",
            lambda a, b, p: implies(land(member(a), member(b), assigned(now, a, p), assigned(now, b, p)), equal(a, b)),
        ),
        "S2": alone(None, believes),
        "S6": forall(f"{M} {G} {P}", lambda m, g, p: implies(land(sync_response(m, g), response_assignment(m, p)), assigned(g, m, p))),
        "S7": forall(f"{G} {M} {P}", lambda g, m, p: implies(assigned(g, m, p), of_generation(g, m))),
        "S8": forall(
            f"{M} {M} {P} {G}",
            lambda a, b, p, h: implies(
                land(acknowledged(b), _from_before(variant, b, p), before(completed(b), h), assigned(h, a, p)),
                lor(equal(a, b), _same_instance(a, b) if variant.static else FALSE),
            ),
        ),
    }
    safety |= {
        "S14": forall(
            f"{M} {G}",
            lambda m, g: implies(of_generation(g, m), lor(equal(g, now), before(g, now), lost(g) if variant.failover else FALSE)),
        ),
        "S15": forall(f"{M} {P}", lambda m, p: implies(land(revoked(m), given_up(m, p)), lnot(response_assignment(m, p)))),
    }
    if variant.commits:
        safety["S5"] = forall(f"{G} {M} {P}", lambda g, m, p: implies(committed(g, m, p), assigned(g, m, p)))
    if variant.failover:
        safety["S13"] = forall(M, lambda m: lnot(lost(completed(m))))
    popular: dict[str, Node] = {}
    in_order = forall(f"{M} {P}", lambda m, p: implies(land(revoked(m), believes(m, p)), response_assignment(m, p)))
    (popular if variant.has("take-before-revoke") else safety)["S4"] = in_order
    if not variant.ownership_is_exclusive:
        popular |= {"S2": safety.pop("S2"), "S8": safety.pop("S8")}
    if variant.static:
        safety |= {
            "S3meta": forall(
                f"{M} {M} {P}",
                lambda a, b, p: implies(
                    land(given_to_another(a, b, p), owned(a, p)),
                    _claims_later(variant, a, b, p),
                ),
            ),
            "S9": forall(f"{M} {M}", lambda a, b: implies(land(member(a), member(b), _same_instance(a, b)), equal(a, b))),
            "S10": forall(
                f"{G} {M} {M} {P}",
                lambda g, old, new, p: implies(replaced(g, old, new), iff(assigned(g, old, p), assigned(g, new, p))),
            ),
            "S11": forall(f"{G} {M} {M}", lambda g, old, new: implies(replaced(g, old, new), lnot(member(old)))),
            "S12": forall(M, lambda m: implies(land(is_static(m), known(m), lnot(member(m))), released(m))),
        }
        popular |= {
            "S2mem": alone(member, believes),
            "S3lit": forall(f"{M} {M} {P}", lambda a, b, p: lnot(land(given_to_another(a, b, p), lnot(rejoined(a)), last(a, p)))),
            "S3all": forall(
                f"{M} {M} {P}",
                lambda a, b, p: lnot(land(given_to_another(a, b, p), rejoined(a), restarted(a), last(a, p))),
            ),
        }
        if variant.all_rejoin:
            safety["S2mem"] = popular.pop("S2mem")
        if variant.all_rejoin or variant.absent_claims_last:
            safety["S3lit"] = popular.pop("S3lit")
    return safety, popular


def _invariants(variant: _Variant) -> dict[str, Node]:
    """What makes the safety properties inductive. Four carry the argument, the rest says how requests and phases interlock.

    ``beliefs-are-assigned`` (what a client believes comes from the last assignment it took over), ``beliefs-are-claimed``
    (what it still believes from earlier, the coordinator knows), ``claims-are-true`` (claims were assigned in the generation
    that they name) and S8 (an acknowledged belief is never overtaken by a later generation).
    """
    now = generation()

    def late(m: Node) -> Node:
        return missed(m) if variant.static else FALSE

    def stays(m: Node) -> Node:
        """Is a member again after a failover."""
        return saved(m) if variant.failover else FALSE

    def saved_late(m: Node) -> Node:
        return saved_missed(m) if variant.static and variant.failover else FALSE

    def is_lost(g: Node) -> Node:
        return lost(g) if variant.failover else FALSE

    written = saved_generation() if variant.failover else now

    found = {
        "one-phase": land(
            lor(preparing(), completing(), stable()),
            *(lnot(land(a(), b())) for a, b in ((preparing, completing), (preparing, stable), (completing, stable))),
        ),
        "members-are-known": forall(
            M, lambda m: land(implies(member(m), known(m)), implies(joining(m), member(m)), lnot(land(fresh(m), known(m))))
        ),
        "one-client-state": forall(
            M,
            lambda m: land(*(lnot(land(a(m), b(m))) for at, a in enumerate(CLIENT_STATES) for b in CLIENT_STATES[at + 1 :])),
        ),
        "joining-while-preparing": forall(M, lambda m: implies(joining(m), preparing())),
        "assigned-once": forall(
            f"{G} {M} {M} {P}",
            lambda g, a, b, p: implies(
                land(assigned(g, a, p), assigned(g, b, p)), lor(equal(a, b), _same_instance(a, b) if variant.static else FALSE)
            ),
        ),
        "assigned-is-written": forall(f"{G} {M} {P}", lambda g, m, p: implies(assigned(g, m, p), at_most(g, written))),
        "assigned-to-known": forall(f"{G} {M} {P}", lambda g, m, p: implies(assigned(g, m, p), known(m))),
        "unassigned-while-completing": forall(f"{M} {P}", lambda m, p: lnot(land(completing(), assigned(now, m, p)))),
        "proposal-is-exclusive": forall(
            f"{M} {M} {P}", lambda a, b, p: implies(land(proposed(), proposal(a, p), proposal(b, p)), equal(a, b))
        ),
        "proposal-respects-claims": forall(
            f"{M} {M} {P}",
            lambda b, a, p: implies(
                land(completing(), proposed(), proposal(b, p), _claims(a, p)),
                lor(
                    equal(a, b),
                    FALSE if variant.contract == "strict" else _claims_later(variant, a, b, p),
                ),
            ),
        ),
        "members-of-generation": forall(M, lambda m: implies(land(completing(), member(m)), of_generation(now, m))),
        "beliefs-are-assigned": forall(f"{M} {P}", lambda m, p: implies(_from_before(variant, m, p), assigned(completed(m), m, p))),
        "received-is-assigned": forall(
            f"{M} {P}", lambda m, p: implies(land(revoked(m), response_assignment(m, p)), assigned(joined(m), m, p))
        ),
        "fresh-is-silent": forall(
            f"{M} {G}",
            lambda m, g: implies(fresh(m), lnot(lor(join_request(m), join_response(m, g), sync_request(m, g), sync_response(m, g)))),
        ),
        "past-the-join": forall(M, lambda m: implies(lor(syncs(m), revoked(m), settled(m)), land(lnot(joining(m)), lnot(join_request(m))))),
        "one-answer": forall(
            f"{M} {G}", lambda m, g: implies(land(joins(m), join_response(m, g)), land(lnot(joining(m)), lnot(join_request(m))))
        ),
        "syncs-now-or-late": forall(
            M, lambda m: implies(land(member(m), syncs(m)), lor(equal(joined(m), now), late(m), is_lost(joined(m))))
        ),
        "revokes-now-or-late": forall(M, lambda m: implies(land(member(m), revoked(m)), lor(equal(joined(m), now), late(m)))),
        "answered-now-or-late": forall(
            f"{M} {G}",
            lambda m, g: implies(land(member(m), joins(m), join_response(m, g)), lor(equal(g, now), late(m), is_lost(g))),
        ),
        "granted-now-or-late": forall(
            f"{M} {G}", lambda m, g: implies(land(member(m), syncs(m), sync_response(m, g)), lor(equal(g, now), late(m)))
        ),
        "sync-request-or-answer": forall(f"{M} {G} {G}", lambda m, g, h: lnot(land(sync_response(m, g), sync_request(m, h)))),
        "no-sync-elsewhere": forall(
            f"{M} {G}",
            lambda m, g: implies(lor(joins(m), revoked(m), settled(m)), lnot(lor(sync_request(m, g), sync_response(m, g)))),
        ),
        "request-claims-beliefs": forall(
            f"{M} {P}",
            lambda m, p: implies(
                land(join_request(m), believes(m, p)), land(request_owned(m, p), equal(variant.request_from(m), completed(m)))
            ),
        ),
        "joining-claims-beliefs": forall(
            f"{M} {P}",
            lambda m, p: implies(land(joining(m), believes(m, p)), land(owned(m, p), equal(variant.owned_from(m), completed(m)))),
        ),
        "beliefs-are-claimed": forall(
            f"{M} {P}",
            lambda m, p: implies(
                land(member(m), lnot(late(m)), _from_before(variant, m, p)),
                lor(equal(completed(m), now), land(owned(m, p), equal(variant.owned_from(m), completed(m)))),
            ),
        ),
        "request-claims-are-true": forall(
            f"{M} {P}", lambda m, p: implies(land(join_request(m), request_owned(m, p)), assigned(variant.request_from(m), m, p))
        ),
        "claims-are-true": forall(f"{M} {P}", lambda m, p: implies(_claims(m, p), assigned(variant.owned_from(m), m, p))),
    }
    if variant.static:
        found |= {
            "replaced-is-known": forall(
                f"{G} {M} {M}",
                lambda g, old, new: implies(replaced(g, old, new), land(known(old), known(new), at_most(g, written))),
            ),
            "replaced-while-stable": forall(f"{M} {M}", lambda old, new: lnot(land(completing(), replaced(now, old, new)))),
        }
    if variant.mislabelled and variant.ownership_is_exclusive and variant.contract == "generation-aware":
        found |= _label_invariants(variant, late, saved_late)
    if variant.failover:
        found |= _failover_invariants(variant, saved_late)
    if variant.all_rejoin and variant.static:
        found |= {
            "nobody-is-late": forall(M, lambda m: lnot(lor(land(member(m), missed(m)), land(stays(m), saved_late(m))))),
            "all-rejoined": forall(M, lambda m: implies(land(completing(), member(m)), rejoined(m))),
        }
    if variant.absent_claims_last:
        found |= {
            "last-is-assigned": forall(
                f"{M} {P}", lambda m, p: implies(land(lor(member(m), stays(m)), last(m, p)), assigned(last_generation(m), m, p))
            ),
            "last-is-latest": forall(
                f"{M} {M} {P} {P} {G}",
                lambda a, b, p, q, h: implies(
                    land(lor(member(a), stays(a)), last(a, p), assigned(h, b, q)), at_most(h, last_generation(a))
                ),
            ),
            "absent-claims-last": forall(
                f"{M} {P}",
                lambda m, p: implies(
                    land(completing(), member(m), is_static(m), lnot(rejoined(m)), last(m, p)),
                    land(owned(m, p), equal(variant.owned_from(m), last_generation(m))),
                ),
            ),
        }
    return found


def _label_invariants(variant: _Variant, late: Callable[[Node], Node], saved_late: Callable[[Node], Node]) -> dict[str, Node]:
    """Without true labels, it is the claims themselves that are never overtaken, while they are requested, held and written."""
    now = generation()

    def not_overtaken(stands: Callable[[Node], Node], claims: Symbol, since: Symbol) -> Node:
        return forall(
            f"{M} {M} {P} {G}",
            lambda a, b, p, h: implies(land(stands(a), claims(a, p), before(since(a), h), assigned(h, b, p)), equal(a, b)),
        )

    def timely(m: Node) -> Node:
        return land(member(m), lnot(late(m)))

    def repeated(stands: Callable[[Node], Node], claims: Symbol, since: Symbol, but: Node) -> Node:
        """What a request under way claims, was claimed before."""
        return forall(
            f"{M} {P}",
            lambda m, p: implies(
                land(stands(m), join_request(m), request_owned(m, p)),
                lor(equal(request_completed(m), but), land(claims(m, p), equal(since(m), request_completed(m)))),
            ),
        )

    found = {
        "claims-not-overtaken": not_overtaken(timely, owned, owned_completed),
        "requests-not-overtaken": not_overtaken(lambda m: land(timely(m), join_request(m)), request_owned, request_completed),
        "requests-repeat-claims": repeated(timely, owned, owned_completed, now),
        "joining-requests-repeat-claims": forall(
            f"{M} {P}",
            lambda m, p: implies(
                land(joining(m), join_request(m), request_owned(m, p)),
                land(owned(m, p), equal(owned_completed(m), request_completed(m))),
            ),
        ),
    }
    if variant.failover:
        written = saved_generation()

        def comes_back(m: Node) -> Node:
            return land(saved(m), lnot(saved_late(m)))

        found |= {
            "saved-claims-not-overtaken": not_overtaken(comes_back, saved_owned, saved_owned_completed),
            "saved-requests-not-overtaken": not_overtaken(lambda m: land(comes_back(m), join_request(m)), request_owned, request_completed),
            "saved-requests-repeat-claims": repeated(comes_back, saved_owned, saved_owned_completed, written),
        }
    return found


def _failover_invariants(variant: _Variant, late: Callable[[Node], Node]) -> dict[str, Node]:
    """What was written supports the same argument as what is in memory. ``late``: was so when the group was written."""
    now, written = generation(), saved_generation()
    found = {
        "written-is-past": land(at_most(written, now), implies(completing(), before(written, now)), implies(stable(), equal(written, now))),
        "lost-is-not-now": land(lnot(lost(now)), lnot(lost(written)), lnot(lost(no_generation()))),
        "granted-is-written": forall(f"{M} {G}", lambda m, g: implies(sync_response(m, g), land(at_most(g, written), lnot(lost(g))))),
        "revoked-is-written": forall(M, lambda m: implies(revoked(m), land(at_most(joined(m), written), lnot(lost(joined(m)))))),
        "completed-is-written": forall(M, lambda m: at_most(completed(m), written)),
        "stable-is-saved": forall(M, lambda m: implies(stable(), iff(member(m), saved(m)))),
        "saved-are-known": forall(M, lambda m: implies(saved(m), known(m))),
        "saved-past-the-join": forall(M, lambda m: implies(land(saved(m), revoked(m)), lor(equal(joined(m), written), late(m)))),
        "saved-granted": forall(
            f"{M} {G}", lambda m, g: implies(land(saved(m), syncs(m), sync_response(m, g)), lor(equal(g, written), late(m)))
        ),
        "saved-syncs": forall(
            M,
            lambda m: implies(
                land(saved(m), syncs(m)),
                lor(equal(joined(m), written), late(m), lost(joined(m)), land(before(written, joined(m)), at_most(joined(m), now))),
            ),
        ),
        "saved-answered": forall(
            f"{M} {G}",
            lambda m, g: implies(
                land(saved(m), joins(m), join_response(m, g)),
                lor(equal(g, written), late(m), lost(g), land(before(written, g), at_most(g, now))),
            ),
        ),
        "saved-claims-beliefs": forall(
            f"{M} {P}",
            lambda m, p: implies(
                land(saved(m), lnot(late(m)), _from_before(variant, m, p)),
                lor(equal(completed(m), written), land(saved_owned(m, p), equal(variant.saved_owned_from(m), completed(m)))),
            ),
        ),
        "saved-claims-are-true": forall(
            f"{M} {P}", lambda m, p: implies(land(saved(m), saved_owned(m, p)), assigned(variant.saved_owned_from(m), m, p))
        ),
    }
    if variant.ownership_is_exclusive:
        found["saved-not-overtaken"] = forall(
            f"{M} {M} {P} {G}",
            lambda a, b, p, h: implies(
                land(saved(b), lnot(late(b)), _from_before(variant, b, p), before(completed(b), h), assigned(h, a, p)),
                lor(equal(a, b), _same_instance(a, b) if variant.static else FALSE),
            ),
        )
    if variant.static:
        found |= {
            "saved-has-one-member-per-instance": forall(
                f"{M} {M}", lambda a, b: implies(land(saved(a), saved(b), _same_instance(a, b)), equal(a, b))
            ),
            "replaced-is-not-saved": forall(f"{G} {M} {M}", lambda g, old, new: implies(replaced(g, old, new), lnot(saved(old)))),
        }
    return found


_WORDS: Mapping[str, str] = {
    "S1": "In the current generation no partition is assigned to two members (KIP-429).",
    "S2": "No two members believe that they own the same partition, if neither has missed a generation (KIP-429).",
    "S2mem": (
        "No two members believe that they own the same partition. False: a static member that misses a join phase stays in the "
        "group, with old metadata; what it was given last is claimed by nobody and goes to another, while it still believes."
    ),
    "S3meta": (
        "What a static member's metadata claims is given to nobody else, unless that one claims it from a later generation "
        "(KIP-345 with KIP-429). The metadata may be older than what the member was assigned last."
    ),
    "S3lit": (
        "What an absent static member was assigned last is given to nobody else while it is a member (KIP-345 as usually told). "
        "False: the coordinator claims for it what its old metadata says, not what it was assigned since."
    ),
    "S3all": (
        "What a static member was assigned last is given to nobody else when it restarts within its session timeout (KIP-345 as "
        "usually told). False: a restart during a rebalance joins with no claims."
    ),
    "S4": "A client takes nothing new before it has given up what it must revoke (KIP-429; ConsumerCoordinator.onJoinComplete).",
    "S5": (
        "A settled client's commit is accepted only for a partition that the current generation assigns to it. (Between its SyncGroup "
        "answer and the end of its callbacks a client may commit what it no longer owns: the broker asks for member and generation only.)"
    ),
    "S6": "A SyncGroup that is answered carries the member's assignment of the generation that it asked for.",
    "S7": "Only members of a generation are assigned anything in it.",
    "S8": (
        "What a member still believes to own from an earlier generation is assigned to nobody else later, if the member has missed "
        "no generation (KIP-429: revoke before reassign; a restart of the same instance is nobody else)."
    ),
    "S9": "An instance id has one member at a time (KIP-345).",
    "S10": "A static member that returns to a stable group has exactly the assignment of the id that it replaces (KIP-345).",
    "S11": "An id that was replaced in a stable group is never a member again (KIP-345).",
    "S12": "A static member is removed only by a timer, by leaving or by replacement, never by missing a join phase (KIP-345).",
    "S13": "What a client took over was written before: no failover takes back the generation that it is in.",
    "S14": "Every generation that has been is the current one, before it, or was lost with its coordinator.",
    "S15": "A client revokes nothing that it is assigned again (KIP-429).",
}

_RULES: Mapping[str, tuple[str, ...]] = {
    "S1": ("exclusive-assignment",),
    "S2": ("exclusive-ownership",),
    "S2mem": ("exclusive-ownership",),
    "S3meta": ("revoke-before-reassign",),
    "S3lit": ("static-slot-held",),
    "S3all": ("static-assignment-kept",),
    "S4": (),
    "S5": ("zombie-commit-rejected",),
    "S6": ("stale-generation-rejected", "one-assignment-per-generation"),
    "S7": ("assigned-only-to-joined-members",),
    "S8": ("revoke-before-reassign",),
    "S9": ("one-member-per-instance",),
    "S10": ("static-assignment-kept",),
    "S11": ("fenced-stays-fenced",),
    "S12": ("static-slot-held",),
    "S13": ("one-assignment-per-generation",),
    "S14": ("generation-increases",),
    "S15": ("retained-partitions-not-revoked",),
}


def _mutation(name: str, what: str, *breaks: str, history: str = "", unseen: str = "") -> Mutation:
    return Mutation(name=name, floor="protocol", what=what, breaks=breaks, history=history, unseen=unseen)


MUTATIONS: tuple[Mutation, ...] = (
    _mutation(
        "assignor-skips-adjust",
        "The leader gives away partitions that another member still claims.",
        "exclusive-ownership",
        "revoke-before-reassign",
    ),
    _mutation(
        "stale-claims-win",
        "Of two claims to a partition the leader may honour the older one.",
        "exclusive-ownership",
        "revoke-before-reassign",
        history="KAFKA-12984, 2.4.0 to 2.7.1 and 2.8.0",
    ),
    _mutation(
        "older-claims-ignored",
        "The leader ignores a claim if anybody in the group claims from a later generation.",
        "exclusive-ownership",
        "revoke-before-reassign",
        history="KAFKA-14639, before 3.5.0",
    ),
    _mutation(
        "both-ids-stay",
        "A static replacement leaves the old id in the group.",
        "one-member-per-instance",
        "fenced-stays-fenced",
        "exclusive-assignment",
    ),
    _mutation(
        "take-before-revoke",
        "A client takes what is new before it has given up what it must revoke.",
        unseen="the coordinator withholds what is still claimed, so ownership stays exclusive (proved)",
    ),
    _mutation(
        "rejoin-before-revoked",
        "A client rejoins with its new assignment while it still owns what it is to revoke.",
        "exclusive-ownership",
        "revoke-before-reassign",
    ),
    _mutation(
        "stale-join-delivered",
        "A superseded JoinGroup arrives late and its metadata counts.",
        "exclusive-ownership",
        "revoke-before-reassign",
    ),
    _mutation(
        "laggard-kept",
        "A dynamic member that did not rejoin in time stays in the group.",
        "exclusive-ownership",
        "revoke-before-reassign",
    ),
    _mutation(
        "stale-sync-granted",
        "A SyncGroup of an old generation is answered, with the current assignment.",
        "stale-generation-rejected",
        "one-assignment-per-generation",
    ),
    _mutation(
        "stale-generation-commits",
        "A commit of an old generation is accepted.",
        "zombie-commit-rejected",
    ),
    _mutation(
        "stale-proposal-accepted",
        "A leader's SyncGroup of an old generation is accepted.",
        "stale-generation-rejected",
        "revoke-before-reassign",
    ),
    _mutation("generation-falls", "A join phase may complete with an earlier generation.", "generation-increases"),
    _mutation("retained-revoked", "A client revokes all that it owns when it learns its assignment.", "retained-partitions-not-revoked"),
    _mutation("assigned-to-strangers", "A leader assigns to ids that are not members, and it counts.", "assigned-only-to-joined-members"),
    _mutation("partition-assigned-twice", "A leader gives one partition to two members.", "exclusive-assignment"),
    _mutation("restart-loses-assignment", "A static member that returns to a stable group gets nothing.", "static-assignment-kept"),
    _mutation("removed-id-readmitted", "An id that is no member any more may join again under its old id.", "fenced-stays-fenced"),
    _mutation("absent-static-dropped", "A join phase removes static members that did not rejoin.", "static-slot-held"),
    _mutation(
        "replacement-not-written",
        "A static replacement in a stable group is not written: failover brings the old id back.",
        "fenced-stays-fenced",
        history="KAFKA-10284, 2.3.0 to 2.6.0",
    ),
    _mutation(
        "sync-answered-before-write",
        "SyncGroup is answered before the assignment is written: failover forgets what members own.",
        "one-assignment-per-generation",
    ),
)
"""The deliberate defects of this system; those about failover need ``failover=True``."""
