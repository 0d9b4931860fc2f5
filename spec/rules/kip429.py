"""KIP-429: cooperative rebalancing. Nothing is given away before its owner has let go of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from ..events import NONE, Commit, Event, Heartbeat
from ..results import Argument, Broken, Held, Outcome, Settings, Unknown, shown
from ..rounds import EAGER, Claim, Owner, Owns, Round, Seat
from ..rule import Monitor, Rule
from .group_protocol import label, names


class ExclusiveAssignment(Monitor):
    """Holds for eager, cooperative and Connect groups alike."""

    rule: ClassVar[Rule] = Rule(
        id="exclusive-assignment",
        kip="KIP-429",
        promise="In one generation no partition (connector, task) is assigned to two members.",
        clause="Kafka group protocol, SyncGroup; KIP-429 public interfaces",
        source="ConsumerPartitionAssignor.assign, IncrementalCooperativeAssignor",
        needs=("assignment", "synced"),
        unknown_when="fewer than two members' shares of the generation were captured",
        exceptions=("a static member's old and new id share one slot",),
        slice="resource",
    )

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        holders: dict[str, list[tuple[Seat, Event]]] = {}
        given = 0
        shared = _shared(now)
        for seat in now.seats.values():
            given += bool(seat.grants)
            for resource, event in _given(seat, shared).items():
                holders.setdefault(resource, []).append((seat, event))
        if given < 2:
            return
        twice = {r: apart for r, held in holders.items() if (apart := _apart(held, now))}
        if not twice:
            yield Held()
            return
        for owners, resources in _by_owners({r: tuple(seat.owner for seat, _ in held) for r, held in twice.items()}).items():
            seats = [now.seats[owner] for owner in owners]
            held = {seat.owner: event for seat, event in twice[resources[0]]}
            yield Broken(
                epoch=now.epoch,
                generation=now.generation,
                members=tuple(seat.member for seat in seats),
                resources=resources,
                message=f"{names(resources)} assigned to {' and '.join(label(s) for s in seats)} in the same generation {now.generation}.",
                argument=tuple(
                    shown(held[seat.owner], f"in generation {now.generation} {label(seat)} is to own {names(resources)}") for seat in seats
                ),
                advice="The assignor of the group's leader is at fault: take its class and version from the leader's log and gate it.",
            )


def _apart(held: Sequence[tuple[Seat, Event]], now: Round) -> list[tuple[Seat, Event]]:
    """The sightings of seats that are another member than some other seat among them."""
    return [(seat, event) for seat, event in held if len(held) > 1 and any(now.apart(seat, other) for other, _ in held)]


def _shared(now: Round) -> Mapping[int, frozenset[str]]:
    """What each whole assignment gives twice in itself, by the identity of its event."""
    whole = [(id(e), Counter(r for owns in (e.assignment or {}).values() for r in owns)) for e in (*now.stored, *now.proposals)]
    return {event: frozenset(r for r, times in given.items() if times > 1) for event, given in whole}


def _given(seat: Seat, shared: Mapping[int, frozenset[str]]) -> dict[str, Event]:
    """What the seat is to own by its best sighting, and by each whole assignment that gives a resource twice in itself."""
    best = seat.given
    given = dict.fromkeys(best.owns, best.event) if best is not None else {}
    for grant in seat.grants:
        given.update(dict.fromkeys(grant.owns & shared.get(id(grant.event), frozenset()), grant.event))
    return given


def _granted(seat: Seat) -> dict[str, Event]:
    """Everything that any sighting gives the slot's latest member, with the sighting."""
    granted: dict[str, Event] = {}
    for grant in seat.grants:
        for resource in grant.owns:
            granted.setdefault(resource, grant.event)
    return granted


def _by_owners(holders: Mapping[str, tuple[Owner, ...]]) -> dict[tuple[Owner, ...], tuple[str, ...]]:
    """Resources grouped by who shares them."""
    grouped: dict[tuple[Owner, ...], list[str]] = {}
    for resource, owners in sorted(holders.items()):
        grouped.setdefault(tuple(sorted(owners)), []).append(resource)
    return {owners: tuple(resources) for owners, resources in grouped.items()}


class ExclusiveOwnership(Monitor):
    """Only members seen in the same generation are compared: whoever missed it is fenced, a zombie at worst."""

    rule: ClassVar[Rule] = Rule(
        id="exclusive-ownership",
        kip="KIP-429",
        promise="No two members of one generation believe that they own the same partition.",
        clause="KIP-429 proposed changes; exact form: both members have applied the same generation",
        source="ConsumerCoordinator.onJoinComplete, SubscriptionState",
        needs=("assigned", "owned"),
        unknown_when="fewer than two members of a generation were seen applying it",
        exceptions=(
            "a member that missed the generation may still believe: fencing bounds what it can do (zombie window)",
            "a process that was killed logs nothing",
        ),
        slice="resource",
    )

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        believers = [seat for seat in now.seats.values() if seat.holds is not None]
        if len(believers) < 2:
            return
        holders: dict[str, list[Seat]] = {}
        for seat in believers:
            for resource in seat.holds or ():
                holders.setdefault(resource, []).append(seat)
        twice = {r: tuple(s.owner for s in seats) for r, seats in holders.items() if len(seats) > 1}
        if not twice:
            yield Held()
            return
        for owners, resources in _by_owners(twice).items():
            seats = [now.seats[owner] for owner in owners]
            yield Broken(
                epoch=now.epoch,
                generation=now.generation,
                members=tuple(seat.member for seat in seats),
                resources=resources,
                message=f"{' and '.join(label(s) for s in seats)} both believe in generation {now.generation} that they own {names(resources)}.",
                argument=tuple(_belief(seat, resources[0], now) for seat in seats),
                advice="Both may process the same records and both may commit: stop one of them, then find which one kept what it was not given.",
            )


def _belief(seat: Seat, resource: str, now: Round) -> Argument:
    event = (seat.holds or {}).get(resource)
    entered = resource in seat.entered_with and resource not in seat.taken
    says = f"{label(seat)} took {resource}" + (
        f" earlier and never gave it up before applying generation {now.generation}" if entered else f" in generation {now.generation}"
    )
    return shown(event, says)


TWO_GENERATIONS = "A cooperative hand-over takes two generations. Check the leader's assignor (KAFKA-14639, KAFKA-15170) and its version."
OLD_CLAIM = (
    "The new owner claimed it too, but no longer owned it. Consumers since 3.4 label a claim with the generation of their last JoinGroup "
    "answer, also when they missed the SyncGroup; and with unequal subscriptions the leader ignores generations. Until Kafka mends that: subscribe "
    "all members to the same topics, and give static members a max.poll.interval.ms (the rebalance timeout) that outlasts their longest pause."
)


class RevokeBeforeReassign(Monitor):
    """Judged by what members claimed in JoinGroup and by what their own logs show they held, whichever was captured."""

    rule: ClassVar[Rule] = Rule(
        id="revoke-before-reassign",
        kip="KIP-429",
        promise="A partition that a member still owns when it joins a generation is not given to another member in that generation.",
        clause="KIP-429 rebalance protocol: revoke, rejoin, then reassign",
        source="CooperativeStickyAssignor.adjustAssignment, ConsumerCoordinator.validateCooperativeAssignment",
        needs=("join", "revoked", "assigned", "assignment"),
        unknown_when="neither the claims of joining members nor their own logs were captured, or claims contradict one another",
        exceptions=(
            "a claim that an absent static member left behind, or that another member's claim contests",
            "a claim under an eager protocol: it tells the assignor what was owned before",
            "the new owner claims it too, from the same or a newer generation, and nothing shows that its claim is wrong",
            "KIP-415 has a rule of its own",
        ),
        slice="resource",
    )

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        if now.protocol_type == "connect":
            return
        taken: dict[str, list[tuple[Seat, Event]]] = {}
        for seat in now.seats.values():
            for resource, event in {**seat.taken, **_granted(seat)}.items():
                taken.setdefault(resource, []).append((seat, event))
        settled = _settled(now, past)
        for seat in now.seats.values():
            claim = seat.claim if now.cooperative is not False and seat.claim is not None and _fresh(seat.claim, seat, now) else None
            if claim is None and (seat.hole or not seat.entered_with):
                continue
            held = {} if seat.hole else self._believed(seat)
            if claim is not None:
                held |= {r: claim.event for r in claim.owns if settled.get(r) == seat.owner}
            wrong: dict[Owner, list[tuple[str, Event]]] = {}
            for resource in sorted(held):
                sure = settled.get(resource) == seat.owner
                takers = [t for t in taken.get(resource, ()) if now.apart(t[0], seat) and not _may_claim(t[0], resource, sure)]
                if takers and not _own_share(seat, resource):
                    taker, event = takers[0]
                    wrong.setdefault(taker.owner, []).append((resource, event))
            for owner, moved in wrong.items():
                resources = [r for r, _ in moved]
                yield self._broken(now, seat, now.seats[owner], resources, held[resources[0]], moved[0][1])
            if not wrong:
                yield Held()

    def _believed(self, seat: Seat) -> dict[str, Event]:
        """What the member held on entering and gave up only while in this generation."""
        held_on = seat.holds or {}
        return {r: e for r, e in seat.entered_with.items() if r in seat.released and r not in held_on}

    def _broken(self, now: Round, giver: Seat, taker: Seat, resources: list[str], owned: Event, taken: Event) -> Broken:
        first, one = resources[0], len(resources) == 1
        released = giver.released.get(first)
        steps = [
            shown(owned, f"{label(giver)} entered generation {now.generation} owning {names(resources)}"),
            shown(taken, f"generation {now.generation} gives {names(resources)} to {label(taker)} already"),
        ]
        if released is not None:
            steps.append(
                shown(
                    released,
                    f"{label(giver)} gave it up only when it applied generation {now.generation}; the new owner did not have to wait for that",
                )
            )
        return Broken(
            epoch=now.epoch,
            generation=now.generation,
            members=(giver.member, taker.member),
            resources=tuple(resources),
            message=f"{names(resources)} {'was' if one else 'were'} given to {label(taker)} in generation {now.generation} "
            f"while {label(giver)} still owned {'it' if one else 'them'}.",
            argument=tuple(steps),
            advice=OLD_CLAIM if taker.claim is not None and taker.claim.owns.intersection(resources) else TWO_GENERATIONS,
        )


def _fresh(claim: Claim, seat: Seat, now: Round) -> bool:
    """Whether the claim was made for this generation's join phase."""
    if not claim.stored:
        return True
    return claim.generation == now.generation - 1 and (seat.instance is None or seat.rejoined)


def _settled(now: Round, past: Sequence[Round]) -> dict[str, Owner]:
    """Who owns each claimed resource for sure: its only claimant, or the one whose true claim is the newest.

    A claim names the generation that it dates from. It is false if that generation gave the resource to somebody else: Kafka's
    consumers since 3.4 label an old claim so, when they missed their SyncGroup.
    """
    claims: dict[str, list[tuple[Owner, Claim]]] = {}
    for seat in now.seats.values():
        if (claim := seat.claim) is not None:
            for resource in claim.owns:
                claims.setdefault(resource, []).append((seat.owner, claim))
    settled: dict[str, Owner] = {}
    for resource, made in claims.items():
        if len(made) == 1:
            settled[resource] = made[0][0]
            continue
        made = [(owner, claim) for owner, claim in made if not _false(resource, owner, claim, now, past)]
        if any(claim.generation is None for _, claim in made) and len(made) > 1:
            continue
        newest = max((claim.generation or 0 for _, claim in made), default=0)
        owners = [owner for owner, claim in made if (claim.generation or 0) == newest]
        if len(owners) == 1:
            settled[resource] = owners[0]
    return settled


def _false(resource: str, owner: Owner, claim: Claim, now: Round, past: Sequence[Round]) -> bool:
    """Whether the claim's generation, or the last one before it that had an assignment, gave the resource to others only."""
    generation = claim.generation
    for earlier in reversed(past):
        if generation is None or earlier.epoch != now.epoch:
            return False
        if earlier.generation > generation:
            continue
        given = [seat.owner for seat in earlier.seats.values() if seat.given is not None and resource in seat.given.owns]
        if given:
            return owner not in given
        without_assignment = bool(now.stored) and earlier.closed_by is not None and not earlier.effective
        if earlier.generation != generation or not without_assignment:
            return False
        generation -= 1
    return False


def _may_claim(taker: Seat, resource: str, settled: bool) -> bool:
    """Whether the taker's own claim counts, if it is not settled that another one does, or that it owned the resource before."""
    if taker.claim is not None and resource in taker.claim.owns:
        return not settled
    return resource in taker.entered_with


def _own_share(seat: Seat, resource: str) -> bool:
    """The resource stays with the seat: then it is doubly assigned, which is another promise."""
    return any(resource in grant.owns for grant in seat.grants)


class RetainedPartitionsNotRevoked(Monitor):
    """A member that gives up in order what it is assigned again in the same hand-over has stopped it for nothing."""

    rule: ClassVar[Rule] = Rule(
        id="retained-partitions-not-revoked",
        kip="KIP-429",
        promise="A cooperative member keeps what it is assigned again: it revokes only what moves away.",
        clause="KIP-429 rebalance callbacks; KIP-415 for Connect",
        source="ConsumerCoordinator.onJoinPrepare, onJoinComplete",
        needs=("revoked", "synced"),
        unknown_when="the protocol is not known to be cooperative, or the member's own log was not captured",
        exceptions=(
            "eager protocols, and members that offer an eager assignor too (rolling upgrade), revoke everything",
            "partitions reported lost after the member was fenced",
            "a member that unsubscribed or closed in between",
            "a Connect task that is stopped for a new configuration",
        ),
        slice="member",
    )

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        if now.cooperative is not True or now.protocol_type == "connect":
            return
        before = _previous(now, past)
        for seat in now.seats.values():
            if seat.holds is None or seat.gap is not None or seat.gone is not None:
                continue
            kept = seat.given.owns if seat.given is not None else frozenset(seat.holds)
            given_up = {r: e for r, e in seat.released.items() if r in seat.released_while_applying}
            earlier = before.seats.get(seat.owner) if before is not None and before.cooperative is not False else None
            if earlier is not None and earlier.gone is None and earlier.holds is not None:
                if _eager_client(seat):
                    yield Unknown("the member runs eagerly although the group's protocol is cooperative: it offers an eager assignor too")
                    continue
                acting = {e.member for e in seat.own_events}
                late = ((r, e) for r, e in earlier.released.items() if r not in earlier.released_while_applying)
                given_up.update({r: e for r, e in late if e.member in acting})
            back = sorted(r for r in given_up if r in kept)
            if not back:
                yield Held()
                continue
            grant = seat.given
            yield Broken(
                epoch=now.epoch,
                generation=now.generation,
                members=(seat.member,),
                resources=tuple(back),
                message=f"{label(seat)} revoked {names(back)} although generation {now.generation} leaves it to {label(seat)}.",
                argument=(
                    shown(given_up[back[0]], f"{label(seat)} revoked {names(back)}"),
                    shown(
                        grant.event if grant is not None else (seat.holds or {}).get(back[0]),
                        f"generation {now.generation} assigns {names(back)} to it",
                    ),
                ),
                detail=seat.instance or "",
            )


def _eager_client(seat: Seat) -> bool:
    """Offering any eager-only assignor makes a client eager; one that entered with nothing may be such a client."""
    if seat.join is not None and seat.join.protocols is not None:
        return any(p in EAGER for p in seat.join.protocols)
    return not seat.entered_with


class RevokerRejoins(Monitor):
    """Needs a sign of life of the member, in the same generation, after it had all the time that it may take."""

    rule: ClassVar[Rule] = Rule(
        id="revoker-rejoins",
        kip="KIP-429",
        promise="A cooperative member that revoked partitions rejoins, so that they can be given to their new owner.",
        clause="KIP-429 consumer rebalance, second rebalance",
        source="ConsumerCoordinator.onJoinComplete (requestRejoin)",
        needs=("revoked", "join"),
        unknown_when="the trace ends, or the member left or crashed, before it could rejoin; its rebalance timeout was not captured",
        exceptions=("heartbeats while its callback takes its time, up to the rebalance timeout",),
        slice="member",
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.waiting: dict[Owner, tuple[Round, Seat]] = {}

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        for owner in list(self.waiting):
            if owner in now.seats and now.seats[owner].rejoined:
                del self.waiting[owner]
                yield Held()
        if now.cooperative is not True or now.protocol_type == "connect":
            return
        for seat in now.seats.values():
            if self._asked_to_revoke(seat) and seat.gone is None:
                stayed = self._stayed(seat)
                if stayed is not None:
                    yield self._broken(now, seat, stayed)
                else:
                    self.waiting[seat.owner] = (now, seat)

    def end(self, past: Sequence[Round]) -> Iterator[Outcome]:
        if self.waiting:
            yield Unknown("the trace ends before the member that revoked could rejoin")

    @staticmethod
    def _asked_to_revoke(seat: Seat) -> tuple[str, ...]:
        """What it revoked while it applied the generation, which gives that to others; what it is to keep it revokes when it ends."""
        kept = seat.given.owns if seat.given is not None else seat.released_while_applying
        return tuple(sorted((seat.released_while_applying & seat.released.keys()) - kept))

    def _stayed(self, seat: Seat) -> Event | None:
        """The sign of life that shows the member stayed in this generation instead of rejoining.

        Measured on one clock: a member may take its whole rebalance timeout for the callback, and no longer.
        """
        given = next((e for e in seat.synced if e.observer == "coordinator" and e.error == NONE), None)
        timeout = seat.join.rebalance_timeout_ms if seat.join is not None else None
        if given is None or given.ts is None or timeout is None:
            return None
        deadline = given.ts + (timeout + self.settings.clock_skew_ms) * 1000
        alive = (e for e in reversed(seat.active) if isinstance(e, (Heartbeat, Commit)) and e.observer == "coordinator")
        return next((e for e in alive if e.error == NONE and e.ts is not None and e.ts >= deadline), None)

    def _broken(self, now: Round, seat: Seat, stayed: Event) -> Broken:
        resources = self._asked_to_revoke(seat)
        return Broken(
            epoch=now.epoch,
            generation=now.generation,
            members=(seat.member,),
            resources=resources,
            message=f"{label(seat)} revoked {names(resources)} in generation {now.generation} and did not rejoin: nobody can be given them.",
            argument=(
                shown(seat.released[resources[0]], f"{label(seat)} revoked {names(resources)} as generation {now.generation} asked"),
                shown(stayed, f"long after, it was still in generation {now.generation} and had not rejoined"),
            ),
            detail=seat.instance or "",
        )


class WithheldPartitionReassigned(Monitor):
    """A partition that one generation withholds (its old owner must revoke it first) is looked for in the next ones."""

    rule: ClassVar[Rule] = Rule(
        id="withheld-partition-reassigned",
        kip="KIP-429",
        promise="A partition that is taken from its owner is given to somebody in the follow-up generation: none is orphaned.",
        clause="KIP-429 rebalance protocol, follow-up rebalance",
        source="CooperativeStickyAssignor.adjustAssignment",
        needs=("assignment",),
        unknown_when="the whole assignment of consecutive generations was not captured, or the trace ends too early",
        exceptions=(
            "another member joined, left or expired in between: the hand-over starts anew",
            "nobody subscribes to the topic any more, or it was deleted (none of its partitions is assigned)",
            "KIP-415 withholds lost work on purpose",
        ),
        slice="resource",
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.orphans: dict[str, Event | None] = {}

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        shares = now.shares
        before = _previous(now, past)
        if now.protocol_type == "connect" or now.cooperative is not True or shares is None or before is None or before.shares is None:
            self.orphans = {}
            return
        same_members = shares.keys() == before.shares.keys() and not before.removed and not before.replaced
        given = {r for owns in shares.values() for r in owns}
        alive = {_topic(r) for r in given}
        wanted = _subscribed(now)
        still = {r: e for r, e in self.orphans.items() if r not in given and _topic(r) in alive and (wanted is None or _topic(r) in wanted)}
        still = {r: e for r, e in still.items() if not any(s.claim is not None and r in s.claim.owns for s in now.seats.values())}
        if self.orphans and same_members:
            if still and any(s.claim is None for s in now.seats.values()):
                yield Unknown("a partition is still withheld, and whether a member claims it was not captured")
            elif still:
                yield self._broken(now, still)
            else:
                yield Held(len(self.orphans))
        earlier = {r: owner for owner, owns in before.shares.items() for r in owns}
        taken = {r: owner for r, owner in earlier.items() if r not in given and owner in shares}
        self.orphans = {r: _evidence(before, owner) for r, owner in taken.items() if wanted is None or _topic(r) in wanted}

    def end(self, past: Sequence[Round]) -> Iterator[Outcome]:
        if self.orphans:
            yield Unknown("the trace ends before the follow-up generation")

    def _broken(self, now: Round, still: Mapping[str, Event | None]) -> Broken:
        resources = tuple(sorted(still))
        return Broken(
            epoch=now.epoch,
            generation=now.generation,
            members=(),
            resources=resources,
            message=f"{names(resources)} was taken from its owner in generation {now.generation - 1} and generation {now.generation} gives it to nobody.",
            argument=(
                shown(
                    still[resources[0]],
                    f"generation {now.generation - 2} assigned {names(resources)}; generation {now.generation - 1} withheld it for a hand-over",
                ),
                shown(_whole(now), f"generation {now.generation}, with the same members, none of whom claims it, assigns it to nobody"),
            ),
            advice="Nobody reads this partition until another rebalance: restart one member, and gate the assignor.",
        )


def _whole(now: Round) -> Event | None:
    return next(iter((*now.stored, *now.proposals)), next((s.given.event for s in now.seats.values() if s.given), None))


def _evidence(now: Round, owner: Owner) -> Event | None:
    given = now.seats[owner].given
    return given.event if given is not None else None


def _topic(resource: str) -> str:
    return resource.rpartition("-")[0]


def _previous(now: Round, past: Sequence[Round]) -> Round | None:
    """The generation right before, unless evidence is missing in between."""
    before = past[-1] if past else None
    return before if before is not None and before.key == (now.epoch, now.generation - 1) and not before.gaps else None


def _subscribed(now: Round) -> frozenset[str] | None:
    """The topics that somebody still subscribes to; None unless every member's are known."""
    known = [s.join.subscribed for s in now.seats.values() if s.join is not None and s.join.subscribed is not None]
    return frozenset[str]().union(*known) if len(known) == len(now.seats) else None


class Converges(Monitor):
    """Counts consecutive generations, with the same members and subscriptions, that each take something from somebody."""

    rule: ClassVar[Rule] = Rule(
        id="converges",
        kip="KIP-429",
        promise="With members, subscriptions and topics unchanged, a cooperative group stops moving partitions after a few generations.",
        clause="KIP-429: normally two rebalances; the sticky assignor's own bound is four more",
        source="AbstractStickyAssignor; CooperativeStickyAssignorTest bounds its rounds by four",
        needs=("assignment",),
        unknown_when="the whole assignment of consecutive generations was not captured",
        exceptions=("Kafka Streams moves tasks as they catch up", "a rebalance with an outside cause (metadata, subscription, members)"),
    )
    rounds_allowed: ClassVar[int] = 5

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.chain: list[tuple[Round, tuple[str, ...]]] = []

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        before = _previous(now, past)
        moved = self._taken(before, now)
        if moved is None:
            self.chain = []
            return
        if not moved:
            self.chain = []
            yield Held()
            return
        self.chain.append((now, moved))
        if len(self.chain) == self.rounds_allowed + 1:
            first = self.chain[0][0]
            yield Broken(
                epoch=now.epoch,
                generation=now.generation,
                members=(),
                resources=moved,
                message=f"{len(self.chain)} generations in a row ({first.generation} to {now.generation}) took partitions away although nothing else changed.",
                argument=(
                    shown(_whole(first), f"generation {first.generation} takes {names(self.chain[0][1])} from its owner"),
                    shown(
                        _whole(now),
                        f"generation {now.generation} still takes {names(moved)}; members and subscriptions were the same throughout",
                    ),
                ),
                advice="The assignor does not settle: every round costs a rebalance. Gate it with this membership.",
            )

    def _taken(self, before: Round | None, now: Round) -> tuple[str, ...] | None:
        """What ``now`` takes from members that had it in ``before``; None if the step can't be judged or had an outside cause."""
        if before is None or now.protocol == "stream" or now.protocol_type == "connect" or now.cooperative is not True:
            return None
        old, new = before.shares, now.shares
        if old is None or new is None or old.keys() != new.keys() or before.removed or before.replaced or _outside(now):
            return None
        if _subscriptions(before) != _subscriptions(now) or before.topics != now.topics:
            return None
        return tuple(sorted(r for owner, owns in old.items() for r in owns - new[owner]))


def _subscriptions(now: Round) -> Mapping[Owner, Owns]:
    return {o: frozenset(s.join.subscribed) for o, s in now.seats.items() if s.join is not None and s.join.subscribed is not None}


def _outside(now: Round) -> bool:
    """The rebalance that led here names a cause other than a cooperative hand-over."""
    reason = (now.opened.reason or "") if now.opened is not None else ""
    return bool(reason) and "revoke" not in reason


MONITORS: tuple[type[Monitor], ...] = (
    ExclusiveAssignment,
    ExclusiveOwnership,
    RevokeBeforeReassign,
    RetainedPartitionsNotRevoked,
    RevokerRejoins,
    WithheldPartitionReassigned,
    Converges,
)
