"""What the classic group protocol itself promises, whatever the assignor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..coordinator import NOT_THE_LOGS, Coordinator
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
from ..rounds import Grant, Owner, Round, Seat, removes
from ..rule import Monitor, Rule

TIMER_SLACK_MS = 5_000
"""How late a coordinator's timer may fire without being called late: pauses and queues delay it, nothing hastens it."""


def precedes_for_sure(earlier: Event | None, later: Event, settings: Settings) -> bool:
    """Whether ``later`` came after ``earlier`` even if its time is an estimate (a request log's time of receipt).

    Only where neither has a time their order in the trace counts.
    """
    if earlier is None or earlier.ts is None or later.ts is None:
        return earlier is not None and earlier.ts is None and later.ts is None
    margin = settings.clock_skew_ms * 1000 if later.extra.get("estimated") or earlier.extra.get("estimated") else 0
    return later.ts - earlier.ts > margin


def elapsed_ms(earlier: Event | None, later: Event) -> int | None:
    """Milliseconds from one event to the other, None unless both have a time."""
    return None if earlier is None or earlier.ts is None or later.ts is None else (later.ts - earlier.ts) // 1000


class GenerationIncreases(Monitor):
    """Each observer kind is compared with itself: a join phase's end, a stored assignment, a member's JoinGroup answers."""

    rule: ClassVar[Rule] = Rule(
        id="generation-increases",
        kip="group protocol",
        promise="Under one coordinator epoch the generation never falls: every completed join phase adds one.",
        clause="Kafka group protocol, JoinGroup response generation_id",
        source="ClassicGroup.initNextGeneration, GroupMetadata.initNextGeneration",
        needs=("generation",),
        unknown_when="the generation was seen once only",
        exceptions=(
            "a new coordinator epoch may fall back to the last persisted generation",
            "a group that was deleted while empty starts at generation 1 again",
            "a stretch without evidence may hide either",
        ),
    )
    hears: ClassVar[tuple[type[Event], ...]] = (GenerationStarted, Assignment, Joined, Gap)

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.last: dict[tuple[int, str, str], Event] = {}

    def request(self, event: Event, group: Coordinator) -> Iterator[Outcome]:
        match event:
            case GenerationStarted() | Assignment():
                stream = ""
            case Joined(error="NONE") if event.member:
                stream = event.member
            case Gap() if not event.member:
                self.last.clear()
                return
            case _:
                return
        if event.generation is None:
            return
        key = (event.epoch, event.kind, stream)
        before = self.last.get(key)
        self.last[key] = event
        if before is None or before.generation is None:
            return
        if event.generation > before.generation or (event.generation == before.generation and not _other_members(before, event, group)):
            yield from (Held(),) if event.generation > before.generation or stream else ()
        else:
            yield Broken(
                epoch=event.epoch,
                generation=event.generation,
                members=(stream,) if stream else (),
                resources=(),
                message=_fell(before.generation, event.generation),
                argument=(
                    shown(before, f"the coordinator was at generation {before.generation}"),
                    shown(event, f"later, with no failover or reload in between, it was at generation {event.generation}"),
                ),
                detail=event.kind,
            )


def _other_members(before: Event, event: Event, group: Coordinator) -> bool:
    """Both list the members of their generation, and the slots are not the same: a join phase completed in between."""
    if not isinstance(before, GenerationStarted) or not isinstance(event, GenerationStarted):
        return False
    if before.members is None or event.members is None:
        return False
    return {group.who.owner(m) for m in before.members} != {group.who.owner(m) for m in event.members}


def _fell(before: int, now: int) -> str:
    if now == before:
        return f"Two join phases completed with the same generation {now}, with other members, under one coordinator epoch."
    return f"The generation fell from {before} to {now} under one coordinator epoch."


class OneAssignmentPerGeneration(Monitor):
    """Compares every sighting of one member's share in one generation. Another member id of a static slot is KIP-345's."""

    rule: ClassVar[Rule] = Rule(
        id="one-assignment-per-generation",
        kip="group protocol",
        promise="In one generation a member is given one assignment, however often and by whom it is asked for.",
        clause="Kafka group protocol, SyncGroup response",
        source="GroupCoordinator.setAndPropagateAssignment, GroupMetadataManager.classicGroupSync",
        needs=("synced", "assignment"),
        unknown_when="each member's share was seen once only",
        exceptions=("a leader's SyncGroup that reaches a Stable group is ignored", "the same generation under another coordinator epoch"),
        slice="member",
    )

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        for seat in now.seats.values():
            first: dict[str, Grant] = {}
            for grant in seat.grants:
                if isinstance(grant.event, Sync) and now.protocol_type == "connect":
                    continue
                before = first.setdefault(grant.member, grant)
                if before is grant:
                    continue
                if before.owns == grant.owns:
                    yield Held()
                    continue
                yield Broken(
                    epoch=now.epoch,
                    generation=now.generation,
                    members=(grant.member,),
                    resources=tuple(before.owns ^ grant.owns),
                    message=f"{grant.member} was given two different assignments in generation {now.generation}.",
                    argument=(
                        shown(before.event, f"in generation {now.generation} {grant.member} is to own {names(before.owns)}"),
                        shown(grant.event, f"in the same generation it is to own {names(grant.owns)}"),
                    ),
                )
                break


class AssignedOnlyToJoinedMembers(Monitor):
    """Only what the coordinator or the leader says counts: a client's log may not know its member id."""

    rule: ClassVar[Rule] = Rule(
        id="assigned-only-to-joined-members",
        kip="group protocol",
        promise="Only members of a generation are given partitions in it.",
        clause="Kafka group protocol, SyncGroup",
        source="GroupCoordinator.doSyncGroup, GroupMetadataManager.classicGroupSync",
        needs=("generation", "assignment"),
        unknown_when="nobody listed all members of the generation",
        exceptions=("a static member's new id takes its old id's place within the generation",),
        slice="member",
    )

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        if now.listed is None:
            if any(seat.grants for seat in now.seats.values()):
                yield Unknown("no observer listed the members of the generation")
            return
        lister = next(iter(now.listed.values()), now.started)
        for seat in now.seats.values():
            grant = next((g for g in seat.grants if g.owns and (g.event.observer == "coordinator" or isinstance(g.event, Sync))), None)
            if grant is None:
                continue
            if any(member in now.listed for member in seat.ids) or (seat.instance and _slot_listed(seat.instance, now.listed)):
                yield Held()
                continue
            yield Broken(
                epoch=now.epoch,
                generation=now.generation,
                members=(seat.member,),
                resources=tuple(grant.owns),
                message=f"{seat.member} was given {names(grant.owns)} in generation {now.generation} without being a member of it.",
                argument=(
                    shown(lister, f"the members of generation {now.generation} are {', '.join(sorted(now.listed)) or 'none'}"),
                    shown(grant.event, f"{seat.member} is to own {names(grant.owns)} in it"),
                ),
            )


def _slot_listed(instance: str, listed: Mapping[str, Event]) -> bool:
    """An older id of the slot is listed: brokers name them ``instance-UUID``."""
    return any(member.startswith(f"{instance}-") for member in listed)


class ProtocolCommonToMembers(Monitor):
    """An absent static member counts with the protocols of its last JoinGroup, if no generation since then went unseen.

    If its replacement could not be stored, brokers before 4.0 leave it with the protocols that the new process offered.
    """

    rule: ClassVar[Rule] = Rule(
        id="protocol-common-to-members",
        kip="group protocol",
        promise="The protocol (assignor) of a generation is one that every member of it offered.",
        clause="Kafka group protocol, JoinGroup; KIP-429 upgrade path",
        source="ClassicGroup.selectProtocol, GroupMetadata.candidateProtocols",
        needs=("join", "joined"),
        unknown_when="the protocols that members offered, or the one chosen, were not captured",
        slice="member",
    )
    hears: ClassVar[tuple[type[Event], ...]] = (Joined,)

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.last: tuple[int, int] | None = None
        self.offered: dict[Owner, Join] = {}
        self.undone: dict[tuple[int, int], set[Owner]] = {}
        """Per epoch and generation: whose replacement may have been undone while the group was there."""

    def request(self, event: Event, group: Coordinator) -> Iterator[Outcome]:
        if isinstance(event, Joined) and event.instance and event.error not in (NONE, *NOT_THE_LOGS) and group.generation is not None:
            self.undone.setdefault((event.epoch, group.generation), set()).add(f"instance:{event.instance}")
        yield from ()

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        before: Mapping[Owner, Join] = self.offered if self.last == (now.epoch, now.generation - 1) else {}
        undone = self.undone.get((now.epoch, now.generation - 1), set[Owner]())
        before = {owner: offer for owner, offer in before.items() if owner not in undone}
        self.last, self.offered = now.key, {}
        for owner, seat in now.seats.items():
            offer = seat.join or (before.get(owner) if seat.joined is None else None)
            if offer is None or not offer.protocols:
                continue
            self.offered[owner] = seat.latest_join or offer
            if not now.protocol:
                continue
            if now.protocol in offer.protocols:
                yield Held()
                continue
            chosen = now.started if now.started is not None and now.started.protocol else seat.joined
            yield Broken(
                epoch=now.epoch,
                generation=now.generation,
                members=(seat.member,),
                resources=(),
                message=f"Generation {now.generation} runs protocol {now.protocol}, which {seat.member} did not offer.",
                argument=(
                    shown(offer, f"{seat.member} offered {', '.join(offer.protocols)}"),
                    shown(chosen, f"generation {now.generation} runs {now.protocol}"),
                ),
                detail=seat.instance or "",
            )


class StaleGenerationRejected(Monitor):
    """Commits have their own rule, as do ids that were replaced."""

    rule: ClassVar[Rule] = Rule(
        id="stale-generation-rejected",
        kip="group protocol",
        promise="A heartbeat or SyncGroup of an old generation is never granted.",
        clause="Kafka group protocol, ILLEGAL_GENERATION",
        source="GroupCoordinator.doCurrentMemberHeartbeat, doSyncGroup; GroupMetadataManager.classicGroupHeartbeat",
        needs=("heartbeat", "generation"),
        unknown_when="the coordinator's current generation was not captured, or it was loading the group",
        exceptions=(
            "a coordinator that is loading the group grants heartbeats blindly",
            "a new epoch may fall back to an older generation",
        ),
        slice="member",
    )
    hears: ClassVar[tuple[type[Event], ...]] = (Heartbeat, Synced)

    def request(self, event: Event, group: Coordinator) -> Iterator[Outcome]:
        if not isinstance(event, (Heartbeat, Synced)) or event.error != NONE or event.generation is None or event.generation < 0:
            return
        if group.loading or group.generation is None:
            yield Unknown("the coordinator's current generation is not known here")
        elif event.generation >= group.generation:
            yield from (Held(),) if event.generation == group.generation else ()
        elif precedes_for_sure(group.since, event, self.settings) and not _ended(event, group):
            yield Broken(
                epoch=event.epoch,
                generation=event.generation,
                members=(event.member,) if event.member else (),
                resources=(),
                message=f"A {event.kind} of generation {event.generation} was granted while the group was at {group.generation}.",
                argument=(
                    shown(group.since, f"the coordinator reached generation {group.generation}"),
                    shown(event, f"later it granted {event.member}'s request of generation {event.generation}"),
                ),
                detail=event.kind,
            )


def _ended(event: Event, group: Coordinator) -> bool:
    """A replaced or fenced id is judged by KIP-345's own rule."""
    return event.member in group.replaced or event.member in group.fenced


class ZombieCommitRejected(Monitor):
    """Judges commits that carry a generation; a group-less commit (generation -1) is no member's."""

    rule: ClassVar[Rule] = Rule(
        id="zombie-commit-rejected",
        kip="group protocol",
        promise="An offset commit of a removed member, or of an old generation, is never accepted.",
        clause="Kafka group protocol, OffsetCommit fencing; KIP-447 for transactions",
        source="GroupCoordinator.validateOffsetCommit, ClassicGroup.validateOffsetCommit",
        needs=("commit", "generation"),
        unknown_when="the coordinator's current generation was not captured",
        exceptions=("commits without a generation", "transactional commits", "a zombie's attempts that are refused are legal"),
        slice="member",
    )
    hears: ClassVar[tuple[type[Event], ...]] = (Commit,)

    def request(self, event: Event, group: Coordinator) -> Iterator[Outcome]:
        if not isinstance(event, Commit) or event.error != NONE or not event.member or event.extra.get("transactional"):
            return
        if (event.generation is not None and event.generation < 0) or _ended(event, group):
            return
        removed = group.removed.get(event.member)
        if removed is not None and precedes_for_sure(removed, event, self.settings):
            yield self._broken(event, removed, f"the coordinator removed {event.member} from the group")
        elif group.generation is None or event.generation is None:
            yield Unknown("the coordinator's current generation is not known here")
        elif event.generation == group.generation and group.complete and removed is None and not _present(event.member, group):
            listed = next(iter(group.members.values()), None)
            if precedes_for_sure(listed, event, self.settings):
                yield self._broken(event, listed, f"generation {group.generation} has the members {', '.join(sorted(group.members))}")
        elif event.generation >= group.generation:
            yield from (Held(),) if event.generation == group.generation else ()
        elif precedes_for_sure(group.since, event, self.settings):
            yield self._broken(event, group.since, f"the coordinator reached generation {group.generation}")

    def _broken(self, event: Commit, cause: Event | None, says: str) -> Broken:
        return Broken(
            epoch=event.epoch,
            generation=event.generation,
            members=(event.member or "",),
            resources=event.resources or (),
            message=f"{event.member} committed offsets in generation {event.generation} although it was fenced off by then.",
            argument=(
                shown(cause, says),
                shown(
                    event, f"later it accepted {event.member}'s commit of generation {event.generation} for {names(event.resources or ())}"
                ),
            ),
            advice="Offsets of another owner may have been overwritten: compare the committed offsets with the new owner's progress.",
        )


def _present(member: str, group: Coordinator) -> bool:
    """The member, or another id of its slot, is in the current generation."""
    if member in group.members:
        return True
    instance = group.who.instances.get(member)
    return instance is not None and (instance in group.static or _slot_listed(instance, group.members))


def follows(event: GenerationStarted, group: Coordinator) -> bool:
    """Whether the generation that starts is the one that the group was preparing."""
    return group.phase == "preparing" and group.generation is not None and event.generation == group.generation + 1


@dataclass(frozen=True, slots=True)
class _JoinPhase:
    """A join phase that is over: what the coordinator knew then. Its members may be listed a little later, by another log."""

    start: Rebalance
    ended: GenerationStarted
    members: dict[str, Event]
    alive: dict[str, Event]


class JoinBarrier(Monitor):
    """Two ways to break it: a live member is dropped before its time, or listed without having rejoined."""

    rule: ClassVar[Rule] = Rule(
        id="join-barrier",
        kip="group protocol",
        promise="A join phase ends only when every member has rejoined, has left, or has used up the rebalance timeout.",
        clause="Kafka group protocol, JoinGroup; KIP-62 rebalance timeout",
        source="ClassicGroup.hasAllMembersJoined, GroupMetadata.hasAllMembersJoined, DelayedJoin",
        needs=("rebalance", "generation", "join"),
        unknown_when="member lists, timeouts or the start of the join phase were not captured, or the member's session may have run out unseen",
        exceptions=(
            "an absent static member stays in the group with the metadata of its last JoinGroup",
            "a JoinGroup whose connection dropped leaves no line in a request log, yet its member counts as joined",
        ),
    )
    hears: ClassVar[tuple[type[Event], ...]] = (Join, Joined, GenerationStarted, Expire, Leave, Load, Gap)

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.asked: dict[str, Join] = {}
        self.answered: dict[str, Joined] = {}
        self.phase: _JoinPhase | None = None
        self.suspects: dict[str, Broken] = {}
        """Members dropped early, unless their removal shows up: brokers log it after what it caused."""
        self.unasked: dict[str, tuple[GenerationStarted, Broken]] = {}
        """Members listed without a JoinGroup, unless they are answered as if there was one: it was not captured."""

    def request(self, event: Event, group: Coordinator) -> Iterator[Outcome]:
        if isinstance(event, GenerationStarted) and follows(event, group):
            start = group.rebalance if group.complete else None
            self.phase = _JoinPhase(start, event, dict(group.members), dict(group.last_seen)) if start is not None else None
        match event:
            case Join() if event.member:
                self.asked[event.member] = event
            case Joined() if event.member:
                asked, suspicion = self.asked.pop(event.member, None), self.unasked.get(event.member)
                self.answered[event.member] = event
                if asked is None and suspicion is not None and self._answered_for(event.member, suspicion[0]):
                    del self.unasked[event.member]
            case GenerationStarted() if event.members is not None:
                if self.phase is not None and (self.phase.ended.epoch, self.phase.ended.generation) == (event.epoch, event.generation):
                    yield from self._barrier(event, event.members, self.phase, group)
                self.phase = None
                self.asked.clear()
            case Expire(reason="rebalance"):
                outcome = self._waited_for(event, group)
                if outcome is not None:
                    yield outcome
                yield from self._gone(event, group)
            case _ if removes(event):
                yield from self._gone(event, group)
            case Load() | Gap():
                self.phase = None
            case _:
                pass

    def end(self, past: Sequence[Round]) -> Iterator[Outcome]:
        yield from self.suspects.values()
        yield from (broken for _, broken in self.unasked.values())

    def _gone(self, event: Event, group: Coordinator) -> Iterator[Outcome]:
        owner = group.who.owner(event.member) if event.member else f"instance:{event.instance}"
        if event.member in group.replaced:
            return
        if self.suspects.pop(owner, None) is not None:
            yield Held()
        if self.phase is not None:
            for member in [m for m in self.phase.members if group.who.owner(m) == owner]:
                del self.phase.members[member]

    def _waited_for(self, event: Expire, group: Coordinator) -> Outcome | None:
        """Whether the rebalance timer gave the member the time that it had asked for."""
        start, member = group.rebalance, event.member
        if start is None or member is None or group.generation is None or start.generation not in (group.generation - 1, group.generation):
            return None
        timeout, waited = group.least_rebalance_timeout_ms.get(group.who.owner(member)), elapsed_ms(start, event)
        if timeout is None or waited is None or waited + self.settings.clock_skew_ms >= timeout:
            return None
        return Broken(
            epoch=event.epoch,
            generation=start.generation,
            members=(member,),
            resources=(),
            message=f"{member} was removed for not rejoining after {waited} ms although it had {timeout} ms to rejoin.",
            argument=(
                shown(start, f"the group began to rebalance; {member}'s rebalance timeout is {timeout} ms"),
                shown(event, f"{waited} ms later the coordinator removed {member} because it had not rejoined"),
            ),
            detail="removed",
        )

    def _barrier(self, event: GenerationStarted, listed: tuple[str, ...], phase: _JoinPhase, group: Coordinator) -> Iterator[Outcome]:
        listed_owners = {group.who.owner(m) for m in listed}
        dropped = [m for m in phase.members if group.who.owner(m) not in listed_owners]
        for member in dropped:
            outcome = self._dropped(member, event, phase, group)
            if isinstance(outcome, Broken):
                self.suspects[group.who.owner(member)] = outcome
            else:
                yield outcome
        if phase.members and not dropped:
            yield Held()
        rejoined = {m for m in listed if m in self.asked or self._answered_for(m, event)}
        dynamic = [m for m in listed if m in self.answered and m not in group.who.instances]
        if rejoined & phase.members.keys() and all(_at_one_place(event, join) for join in self.asked.values()):
            for member in dynamic:
                if member in phase.members and member not in rejoined:
                    broken = Broken(
                        epoch=event.epoch,
                        generation=event.generation,
                        members=(member,),
                        resources=(),
                        message=f"Generation {event.generation} started with {member} in it although {member} had not rejoined.",
                        argument=(
                            shown(phase.start, "the group began to rebalance: every member must rejoin"),
                            shown(event, f"generation {event.generation} lists {member}; no JoinGroup of it came in between"),
                        ),
                        detail="listed",
                    )
                    if self.unasked.setdefault(member, (event, broken))[0] is not event:
                        yield broken

    def _answered_for(self, member: str, event: GenerationStarted) -> bool:
        answer = self.answered.get(member)
        return answer is not None and answer.error == NONE and answer.generation == event.generation and answer.epoch == event.epoch

    def _dropped(self, member: str, event: GenerationStarted, phase: _JoinPhase, group: Coordinator) -> Outcome:
        owner = group.who.owner(member)
        timeout, session = group.least_rebalance_timeout_ms.get(owner), group.session_timeout_ms.get(owner)
        start, skew = phase.start, self.settings.clock_skew_ms
        waited, silent = elapsed_ms(start, phase.ended), elapsed_ms(phase.alive.get(owner), phase.ended)
        if timeout is None or waited is None:
            return Unknown("a member was dropped, and its rebalance timeout or the join phase's length is not known")
        if member in (start.reason or "") or waited + skew >= timeout:
            return Held()
        if session is None or silent is None or silent + skew >= session:
            return Unknown("a member was dropped; its session may have run out, which was not captured")
        return Broken(
            epoch=event.epoch,
            generation=event.generation,
            members=(member,),
            resources=(),
            message=f"{member} was dropped after {waited} ms although it had {timeout} ms to rejoin, and had neither left nor expired.",
            argument=(
                shown(phase.members[member], f"{member} was a member of generation {start.generation}"),
                shown(start, f"the group began to rebalance; {member}'s rebalance timeout is {timeout} ms"),
                shown(event, f"{waited} ms later generation {event.generation} started without it"),
            ),
            detail="dropped",
        )


def _at_one_place(listed: GenerationStarted, asked: Join) -> bool:
    """Whether one log shows both, at exact times: another log may have lost the request of somebody else."""
    files = {e.src.file if e.src is not None else "" for e in (listed, asked)}
    return len(files) == 1 and not asked.extra.get("estimated")


class RebalanceWithinTimeout(Monitor):
    """Measured on the coordinator's clock, from the first waiting JoinGroup where that came after the start."""

    rule: ClassVar[Rule] = Rule(
        id="rebalance-within-timeout",
        kip="group protocol",
        promise="A join phase ends no later than the longest rebalance timeout among the members.",
        clause="KIP-62, rebalance timeout",
        source="DelayedJoin, GroupMetadataManager.prepareRebalance",
        needs=("rebalance", "generation", "join"),
        unknown_when="the members, their rebalance timeouts or time stamps were not captured",
        exceptions=(
            "the timer starts anew while no member waits (only absent static members are left)",
            f"a timer may be up to {TIMER_SLACK_MS} ms late",
        ),
    )
    hears: ClassVar[tuple[type[Event], ...]] = (Rebalance, Join, Joined, Replace, Leave, Expire, GenerationStarted)

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.waiting: dict[str, Event] = {}
        """Since when each member id waits whose JoinGroup came in this join phase, and was not refused."""
        self.concerned: set[Owner] = set()
        """Whoever was a member at some time of this join phase: the timer is set for the longest timeout among them."""
        self.complete = False
        """Whether all members are known that this join phase began with."""

    def request(self, event: Event, group: Coordinator) -> Iterator[Outcome]:
        match event:
            case Rebalance():
                self.waiting = dict.fromkeys(_opener(event, group), event)
                self.concerned = {group.who.owner(m) for m in (*group.members, *self.waiting)}
                self.complete = group.complete or event.generation == 0
            case Join() if event.member:
                self.waiting.setdefault(event.member, event)
                self.concerned.add(group.who.owner(event.member))
            case Replace() if event.member:
                self.concerned.add(group.who.owner(event.member))
            case Joined() | Leave() | Expire() if event.member and (not isinstance(event, Joined) or event.error != NONE):
                self.waiting.pop(event.member, None)
            case GenerationStarted() if group.rebalance is not None and follows(event, group):
                yield from self._length(event, group.rebalance, group)
            case _:
                pass

    def _length(self, event: GenerationStarted, start: Rebalance, group: Coordinator) -> Iterator[Outcome]:
        known = group.rebalance_timeout_ms
        concerned = self.concerned | {group.who.owner(m) for m in (*group.members, *(event.members or ()))}
        first = next((since for member, since in self.waiting.items() if member in (event.members or ())), None)
        took, waited = elapsed_ms(start, event), elapsed_ms(first, event)
        if not self.complete or not concerned or took is None or any(owner not in known for owner in concerned):
            yield Unknown("the members, their rebalance timeouts or time stamps were not captured")
            return
        bound = max(known[owner] for owner in concerned)
        took = min(took, waited) if waited is not None else took
        if took <= bound + TIMER_SLACK_MS + self.settings.clock_skew_ms:
            yield Held()
        elif first is None and any(owner.startswith("instance:") for owner in concerned):
            yield Unknown("only absent static members were waited for, as far as was captured")
        else:
            yield Broken(
                epoch=event.epoch,
                generation=event.generation,
                members=(),
                resources=(),
                message=f"The join phase of generation {event.generation} took {took} ms; the members' rebalance timeout is {bound} ms.",
                argument=(
                    shown(start, "the group began to rebalance"),
                    shown(event, f"{took} ms later generation {event.generation} started, beyond the timeout of {bound} ms"),
                ),
                advice="Look for a stopped or overloaded coordinator: its timer must have fired long before.",
            )


def _opener(event: Rebalance, group: Coordinator) -> Iterator[str]:
    """The JoinGroup that opens a join phase comes right before it, and waits from then on."""
    before = group.latest
    if isinstance(before, Join) and before.member and before.member in (event.reason or ""):
        yield before.member


def names(resources: Sequence[str] | frozenset[str], most: int = 6) -> str:
    """Resources in words: sorted, the first few by name."""
    ordered = sorted(resources)
    shown_names = ", ".join(ordered[:most]) or "nothing"
    return shown_names if len(ordered) <= most else f"{shown_names} and {len(ordered) - most} more"


def label(seat: Seat) -> str:
    """A seat in words: its member id, with its group.instance.id where it has one."""
    return seat.member if seat.instance is None else f"{seat.member} (instance {seat.instance})"


MONITORS: tuple[type[Monitor], ...] = (
    GenerationIncreases,
    OneAssignmentPerGeneration,
    AssignedOnlyToJoinedMembers,
    ProtocolCommonToMembers,
    StaleGenerationRejected,
    ZombieCommitRejected,
    JoinBarrier,
    RebalanceWithinTimeout,
)
