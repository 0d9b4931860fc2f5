"""KIP-345: static membership. A known instance comes back to its own slot, and nobody else gets in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from ..coordinator import Coordinator
from ..events import (
    NONE,
    Assignment,
    Commit,
    Event,
    Expire,
    Gap,
    GenerationStarted,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Load,
    Rebalance,
    Replace,
    Sync,
    Synced,
)
from ..results import Broken, Held, Outcome, Settings, Unknown, shown
from ..rounds import Grant, Round, removes
from ..rule import Monitor, Rule
from .group_protocol import elapsed_ms, names, precedes_for_sure


class StaticAssignmentKept(Monitor):
    """Compares the shares of a slot's successive member ids within one generation: that is a return into a stable group.

    Two ids in one assignment do not follow one another; that is `OneMemberPerInstance`'s to say.
    """

    rule: ClassVar[Rule] = Rule(
        id="static-assignment-kept",
        kip="KIP-345",
        promise="A static member that returns within its session timeout, to a stable group, gets the assignment that it had.",
        clause="KIP-345 rejoin with a known group.instance.id",
        source="GroupCoordinator.updateStaticMemberAndRebalance, GroupMetadata.replaceStaticMember",
        needs=("replace", "synced"),
        unknown_when="no static member was seen to return within one generation, or its share was seen on one side only",
        exceptions=(
            "a return while the group is rebalancing: the leader decides anew",
            "KAFKA-9801 (2.3 to 2.4): a return during CompletingRebalance got an empty assignment: reported as a warning",
        ),
        slice="member",
    )

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        for seat in now.seats.values():
            if len(seat.ids) < 2:
                continue
            per_id: dict[str, Grant] = {}
            for grant in seat.grants:
                per_id.setdefault(grant.member, grant)
            if len({id(grant.event) for grant in per_id.values()}) < len(per_id):
                continue
            if len(per_id) < 2:
                yield Unknown("a static member returned, but its share was captured before or after only")
                continue
            first, *later = per_id.values()
            changed = next((g for g in later if g.owns != first.owns), None)
            if changed is None:
                yield Held()
                continue
            came_while_completing = isinstance(first.event, Sync) and not changed.owns and not self._settled_before(changed.member, now)
            yield Broken(
                epoch=now.epoch,
                generation=now.generation,
                members=(first.member, changed.member),
                resources=tuple(first.owns ^ changed.owns),
                message=f"Instance {seat.instance} came back within generation {now.generation} "
                f"and was given {names(changed.owns)} instead of {names(first.owns)}.",
                argument=(
                    shown(
                        first.event, f"as {first.member}, instance {seat.instance} owns {names(first.owns)} in generation {now.generation}"
                    ),
                    shown(
                        next((r for r in now.replaced if r.instance == seat.instance), None),
                        f"it came back as {changed.member} in the same generation",
                    ),
                    shown(changed.event, f"{changed.member} is given {names(changed.owns)}"),
                ),
                severity="warning" if came_while_completing else None,
                relaxed="KAFKA-9801: in 2.3 and 2.4 a return before the leader's SyncGroup got an empty assignment"
                if came_while_completing
                else None,
                detail=seat.instance or "",
            )

    def _settled_before(self, member: str, now: Round) -> bool:
        """Whether the leader's assignment was in force for sure when the slot's ``member`` came."""
        shows = (r for r in now.coordinator_events if isinstance(r, (Replace, Joined)) and r.member == member)
        returned = next(shows, None)
        settled = next((e for e in now.coordinator_events if isinstance(e, (Assignment, Synced))), None)
        return returned is not None and precedes_for_sure(settled, returned, self.settings)


class StaticReturnNoRebalance(Monitor):
    """A return is a replacement while the group was stable; the rebalance must name it, or have no other cause."""

    rule: ClassVar[Rule] = Rule(
        id="static-return-no-rebalance",
        kip="KIP-345",
        promise="A static member that returns to a stable group within its session timeout causes no rebalance.",
        clause="KIP-345 rejoin with a known group.instance.id",
        source="GroupCoordinator.updateStaticMemberAndRebalance, GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin",
        needs=("replace", "rebalance"),
        unknown_when="no static member was seen to return to a stable group",
        exceptions=(
            "its protocols would change the group's choice",
            "the group was rebalancing already",
            "KAFKA-12890's sync timer: an id that never synced is removed later (behaviour since 2.8.1 and 3.0)",
            "the member itself rejoins because its subscription changed",
        ),
        slice="member",
    )
    hears: ClassVar[tuple[type[Event], ...]] = (Replace, Join, GenerationStarted, Gap, Load, Leave, Expire, Rebalance)
    soon_ms: ClassVar[int] = 3_000
    """How soon after a return an unexplained rebalance is put down to it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.back: dict[str, tuple[Replace | Join, bool]] = {}
        """Per instance: its last return, and whether the group was known to be stable then."""
        self.other_cause: Event | None = None

    def request(self, event: Event, group: Coordinator) -> Iterator[Outcome]:
        match event:
            case Replace() if event.instance and group.phase in ("stable", "unknown"):
                if event.instance in self.back and isinstance(self.back[event.instance][0], Replace):
                    yield Held()
                self.back[event.instance] = (event, group.phase == "stable")
                self.other_cause = None
            case Join(member="" | None) if event.instance in group.static and group.phase == "stable":
                self.back.setdefault(event.instance or "", (event, True))
                self.other_cause = None
            case GenerationStarted() | Gap() | Load():
                yield from self._all_held()
            case Join() if event.member or event.instance not in self.back:
                self.other_cause = event
            case Leave() | Expire():
                self.other_cause = event
            case Rebalance():
                yield from self._judge(event)
            case _:
                pass

    def end(self, past: Sequence[Round]) -> Iterator[Outcome]:
        yield from self._all_held()

    def _all_held(self) -> Iterator[Outcome]:
        if self.back:
            yield Held(len(self.back))
        self.back = {}

    def _judge(self, event: Rebalance) -> Iterator[Outcome]:
        blamed = next((i for i, (back, _) in self.back.items() if self._caused(event, back)), None)
        back, stable = self.back.pop(blamed) if blamed is not None else (None, False)
        yield from self._all_held()
        if back is None:
            return
        if not stable:
            yield Unknown("a static member returned, but whether the group was stable was not captured")
            return
        yield Broken(
            epoch=event.epoch,
            generation=event.generation,
            members=tuple(m for m in _ids(back) if m != back.instance),
            resources=(),
            message=f"Instance {back.instance} came back to a stable group in generation {event.generation}, and the group rebalanced for it.",
            argument=(
                shown(back, f"instance {back.instance} came back within its session timeout and took its slot again"),
                shown(
                    event,
                    "the group began to rebalance because of it"
                    if event.reason
                    else "right after, the group began to rebalance without another cause",
                ),
            ),
            advice="Check that the restarted process offers the same assignors, and that the broker is 2.4 or later.",
            detail=back.instance or "",
        )

    def _caused(self, event: Rebalance, back: Replace | Join) -> bool:
        reason = event.reason or ""
        if "selectedProtocol" in reason or "selected protocol" in reason or "pending sync" in reason:
            return False
        if reason:
            return "static member" in reason.lower() and any(i in reason for i in _ids(back))
        if self.other_cause is not None:
            return False
        return (elapsed_ms(back, event) or 0) <= self.soon_ms + self.settings.clock_skew_ms


def _ids(back: Replace | Join) -> list[str]:
    """Whatever names the member that came back."""
    old_member = back.old_member if isinstance(back, Replace) else None
    return [i for i in (back.instance, old_member, back.member) if i]


class StaticSlotHeld(Monitor):
    """The coordinator must keep an absent static member. What a later rebalance assigns to it is the assignor's business."""

    rule: ClassVar[Rule] = Rule(
        id="static-slot-held",
        kip="KIP-345",
        promise="Nobody else gets an absent static member's partitions by its removal before its session timeout has passed.",
        clause="KIP-345 session timeout",
        source="GroupCoordinator.onCompleteJoin (KAFKA-8220), GroupMetadataManager.removeMemberAndUpdateClassicGroup",
        needs=("assignment", "expire"),
        unknown_when="session timeouts, time stamps or the lists of members were not captured",
        exceptions=(
            "LeaveGroup for the instance, also by an administrator",
            "a rebalance for another cause moves its partitions while it stays a member: KIP-345 does not forbid that",
            "the sync timer fires for an id that was replaced before it synced: the slot stays",
            "the sync timer removes an absent static member after the rebalance timeout (KAFKA-12890, since 2.8.1 and 3.0): reported as a warning",
        ),
        slice="member",
    )
    hears: ClassVar[tuple[type[Event], ...]] = (GenerationStarted, Assignment, Expire, Leave, Joined, Load, Gap)

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.epoch = 0
        self.slots: dict[str, tuple[Event, Event | None]] = {}
        """Per instance: the event that lists it, and the event that removed it."""
        self.suspects: dict[str, Broken] = {}
        """Instances dropped early, unless their removal shows up: brokers log it after what it caused."""

    def request(self, event: Event, group: Coordinator) -> Iterator[Outcome]:
        match event:
            case GenerationStarted() | Assignment() if event.members is not None:
                if event.epoch != self.epoch:
                    self.epoch, self.slots = event.epoch, {}
                yield from self._missing(event, set(event.members), group)
                listed = {i: event for m in event.members if (i := group.who.instances.get(m))}
                self.slots = {i: (e, None) for i, e in listed.items()}
            case Expire() if event.member in group.replaced:
                pass
            case Expire() if event.reason in ("session", "sync", "rebalance") and not event.extra.get("pending"):
                instance = event.instance or group.who.instances.get(event.member or "")
                if instance:
                    yield from self._expired(event, instance, group)
                    self._gone(instance, event)
            case _ if removes(event):
                instance = event.instance or group.who.instances.get(event.member or "")
                if instance and event.member not in group.replaced:
                    self._gone(instance, event)
            case Load() | Gap():
                self.slots = {}
            case _:
                pass

    def end(self, past: Sequence[Round]) -> Iterator[Outcome]:
        yield from self.suspects.values()

    def _gone(self, instance: str, event: Event) -> None:
        self.suspects.pop(instance, None)
        if instance in self.slots:
            self.slots[instance] = (self.slots[instance][0], event)

    def _missing(self, event: Event, members: set[str], group: Coordinator) -> Iterator[Outcome]:
        here = {group.who.instances.get(m) for m in members}
        for instance, (listed, removed) in self.slots.items():
            if instance in here or removed is not None:
                yield Held()
                continue
            outcome = self._too_early(event, instance, listed, group)
            if isinstance(outcome, Broken):
                self.suspects[instance] = outcome
            else:
                yield outcome

    def _too_early(self, event: Event, instance: str, listed: Event, group: Coordinator) -> Outcome:
        owner = f"instance:{instance}"
        timeout = group.session_timeout_ms.get(owner)
        alive = group.last_seen.get(owner)
        rebalance = group.rebalance
        watched = rebalance is not None and event.generation is not None and rebalance.generation == event.generation - 1
        if (
            (not watched and not group.joins)
            or listed.generation is None
            or event.generation not in (listed.generation, listed.generation + 1)
        ):
            return Unknown("a static member was removed; the requests in between were not captured")
        absent = elapsed_ms(alive, event)
        if timeout is None or absent is None:
            return Unknown("a static member was removed; its session timeout or last sign of life was not captured")
        if absent + self.settings.clock_skew_ms >= timeout or (watched and _blames(rebalance, instance, group)):
            return Held()
        sync_timer = min(group.rebalance_timeout_ms.values(), default=0)
        told = watched and rebalance is not None and bool(rebalance.reason)
        if not told and absent + self.settings.clock_skew_ms >= sync_timer:
            return Unknown("a static member was removed; the sync timer may have done so (KAFKA-12890), which was not captured")
        given = _given_instead(event, listed, instance, group)
        return Broken(
            epoch=event.epoch,
            generation=event.generation,
            members=(),
            resources=given,
            message=f"Instance {instance} was dropped {absent} ms after its session timeout of {timeout} ms was last started anew.",
            argument=(
                shown(listed, f"instance {instance} is a member; its session timeout is {timeout} ms"),
                shown(alive, f"here, {absent} ms before it was dropped, that time began anew"),
                shown(event, f"generation {event.generation} is without it" + (f" and gives {names(given)} to others" if given else "")),
            ),
            detail=instance,
        )

    def _expired(self, event: Expire, instance: str, group: Coordinator) -> Iterator[Outcome]:
        owner = f"instance:{instance}"
        timeout, alive = group.session_timeout_ms.get(owner), group.last_seen.get(owner)
        absent = elapsed_ms(alive, event)
        if timeout is None or absent is None:
            yield Unknown("a static member's session expired; its session timeout or last sign of life was not captured")
            return
        if absent + self.settings.clock_skew_ms >= timeout:
            yield Held()
            return
        by_sync_timer = event.reason == "sync"
        yield Broken(
            epoch=event.epoch,
            generation=event.generation if event.generation is not None else group.generation,
            members=(event.member,) if event.member else (),
            resources=(),
            message=f"Instance {instance} was removed {absent} ms after its session timeout of {timeout} ms was last started anew.",
            argument=(
                shown(alive, f"here the session timeout of instance {instance}, {timeout} ms, began anew"),
                shown(event, f"{absent} ms later the coordinator removed it"),
            ),
            severity="warning" if by_sync_timer else None,
            relaxed="KAFKA-12890: since 2.8.1 and 3.0 the sync timer removes an absent static member after the rebalance timeout"
            if by_sync_timer
            else None,
            advice="Raise max.poll.interval.ms (the rebalance timeout) to at least the time a restart takes." if by_sync_timer else None,
            detail=instance,
        )


def _blames(rebalance: Rebalance | None, instance: str, group: Coordinator) -> bool:
    """The rebalance names a member id of the instance as its cause."""
    reason = (rebalance.reason or "") if rebalance is not None else ""
    return any(group.who.instances[m] == instance and m in reason for m in group.members if m in group.who.instances)


def _given_instead(event: Event, listed: Event, instance: str, group: Coordinator) -> tuple[str, ...]:
    """What the listing event gave the instance and ``event`` gives to others, where both are whole assignments."""
    if not isinstance(event, Assignment) or not isinstance(listed, Assignment):
        return ()
    before = {r for m, rs in (listed.assignment or {}).items() if group.who.instances.get(m) == instance for r in rs}
    return tuple(sorted(before & {r for rs in (event.assignment or {}).values() for r in rs}))


class OneMemberPerInstance(Monitor):
    """Looks at lists of members: there an instance stands once."""

    rule: ClassVar[Rule] = Rule(
        id="one-member-per-instance",
        kip="KIP-345",
        promise="A group.instance.id has one member at a time.",
        clause="KIP-345 group.instance.id",
        source="GroupMetadata.staticMembers, ClassicGroup.staticMembers (KAFKA-8500)",
        needs=("generation", "assignment"),
        unknown_when="no list of members with static ones among them was captured",
        exceptions=("the old id and the new id of a replacement follow one another",),
        slice="member",
    )
    hears: ClassVar[tuple[type[Event], ...]] = (GenerationStarted, Assignment)

    def request(self, event: Event, group: Coordinator) -> Iterator[Outcome]:
        if not isinstance(event, (GenerationStarted, Assignment)) or event.members is None:
            return
        ids: dict[str, list[str]] = {}
        for member in event.members:
            if instance := group.who.instances.get(member):
                ids.setdefault(instance, []).append(member)
        for instance, members in sorted(ids.items()):
            if len(members) == 1:
                yield Held()
                continue
            yield Broken(
                epoch=event.epoch,
                generation=event.generation,
                members=tuple(sorted(members)),
                resources=(),
                message=f"Generation {event.generation} has {len(members)} members of one group.instance.id, {instance}.",
                argument=(shown(event, f"{' and '.join(sorted(members))} are both members, both as instance {instance}"),),
                advice="Two processes must not share a group.instance.id; if they don't, the coordinator kept a replaced member (KAFKA-8500).",
                detail=instance,
            )


class FencedStaysFenced(Monitor):
    """Once an id was replaced or answered FENCED_INSTANCE_ID, nothing that it asks is granted in this epoch."""

    rule: ClassVar[Rule] = Rule(
        id="fenced-stays-fenced",
        kip="KIP-345",
        promise="A member id that was replaced under its group.instance.id is granted nothing any more.",
        clause="KIP-345 fencing, FENCED_INSTANCE_ID",
        source="ClassicGroup.validateMember, GroupCoordinator.validateCurrentMember (KAFKA-8225)",
        needs=("replace", "heartbeat"),
        unknown_when="no member was seen to be replaced or fenced",
        exceptions=(
            "the replacement could not be persisted and was taken back",
            "a failover before the replacement was persisted brings the old id back (another epoch)",
            "a loading coordinator grants heartbeats blindly",
        ),
        slice="member",
    )
    hears: ClassVar[tuple[type[Event], ...]] = (Heartbeat, Joined, Synced, Commit)

    def request(self, event: Event, group: Coordinator) -> Iterator[Outcome]:
        if not isinstance(event, (Heartbeat, Joined, Synced, Commit)) or not event.member or group.loading:
            return
        cause = group.replaced.get(event.member) or group.fenced.get(event.member)
        if cause is None:
            return
        if event.error != NONE:
            yield Held()
        elif event.member in group.doubtful:
            yield Unknown("whether a replacement was stored or taken back was not captured")
        elif precedes_for_sure(cause, event, self.settings):
            yield Broken(
                epoch=event.epoch,
                generation=event.generation,
                members=(event.member,),
                resources=event.resources or () if isinstance(event, Commit) else (),
                message=f"{event.member} was granted a {event.kind} after another process had taken its group.instance.id.",
                argument=(
                    shown(cause, f"{event.member} was replaced" if isinstance(cause, Replace) else f"{event.member} was fenced"),
                    shown(event, f"later its {event.kind} was granted"),
                ),
                detail=f"{cause.instance or ''} {event.kind}",
            )


class StaticCloseSendsNoLeave(Monitor):
    """An administrator's removal names the instance and no member id, or gives its own reason."""

    rule: ClassVar[Rule] = Rule(
        id="static-close-sends-no-leave",
        kip="KIP-345",
        promise="A static member that closes sends no LeaveGroup: it may come back within its session timeout.",
        clause="KIP-345 LeaveGroup is not sent by static members",
        source="AbstractCoordinator.maybeLeaveGroup",
        needs=("leave",),
        unknown_when="no static member was seen to close, or the LeaveGroup gives no reason and may be an administrator's",
        exceptions=(
            "an administrator removes the instance (Admin.removeMembersFromConsumerGroup)",
            "since 4.1 a consumer may be told to leave on close (KIP-1092): reported as a warning where the release is known",
        ),
        slice="member",
    )
    hears: ClassVar[tuple[type[Event], ...]] = (Leave,)
    own_reasons: ClassVar[tuple[str, ...]] = ("consumer is being closed", "unsubscribed", "poll timeout")

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.judged: set[tuple[int, str]] = set()
        self.left: set[str] = set()

    def request(self, event: Event, group: Coordinator) -> Iterator[Outcome]:
        if isinstance(event, Leave) and event.error == NONE:
            yield from self._leave(event, event.instance or group.who.instances.get(event.member or ""))

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        for seat in now.seats.values():
            if seat.instance is None or seat.gone is None:
                continue
            if isinstance(seat.gone, Leave):
                yield from self._leave(seat.gone, seat.instance)
            elif seat.gone.kind == "closed" and seat.member not in self.left:
                yield Held()

    def _leave(self, event: Leave, instance: str | None) -> Iterator[Outcome]:
        if instance is None or not event.member or (event.epoch, event.member) in self.judged:
            return
        self.left.add(event.member)
        reason = event.reason
        if reason is not None and not any(own in reason for own in self.own_reasons):
            yield Unknown("a static member left; the reason does not tell whether it did so itself")
            return
        by_choice = _may_choose(event.extra.get("release"))
        self.judged.add((event.epoch, event.member))
        yield Broken(
            epoch=event.epoch,
            generation=event.generation,
            members=(event.member,),
            resources=(),
            message=f"Static member {event.member} (instance {instance}) sent LeaveGroup{f': {reason}' if reason else ''}.",
            argument=(shown(event, f"{event.member} left the group itself, as instance {instance}: its slot is given up at once"),),
            severity="warning" if by_choice else None,
            relaxed="KIP-1092: since 4.1 an application may close a consumer with the option to leave" if by_choice else None,
            advice="Its restart now costs two rebalances. Check the client library and its close options.",
            detail=instance,
        )


def _may_choose(release: object) -> bool:
    """Whether the client is known to be of a release that lets the application choose."""
    found = re.match(r"(\d+)\.(\d+)", release) if isinstance(release, str) else None
    return found is not None and (int(found[1]), int(found[2])) >= (4, 1)


MONITORS: tuple[type[Monitor], ...] = (
    StaticAssignmentKept,
    StaticReturnNoRebalance,
    StaticSlotHeld,
    OneMemberPerInstance,
    FencedStaysFenced,
    StaticCloseSendsNoLeave,
)
