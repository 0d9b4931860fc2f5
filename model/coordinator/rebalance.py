"""The join phase: entered, waited for, completed. Leader election and the choice of the protocol are part of it.

GroupCoordinator.prepareRebalance, onCompleteJoin, DelayedJoin; GroupMetadataManager.prepareRebalance, completeClassicGroupJoin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..messages import JoinedMember, JoinRequest, JoinResponse, ProtocolType
from .release import NEW_MEMBER_JOIN_TIMEOUT_MS
from .state import Group, InitialDelay, Member, Parked, Protocols
from .store import store
from .sync import abort_syncs
from .work import Work


def add_member(work: Work, parked: Parked[JoinRequest], member_id: str) -> None:
    """A new member begins to wait for the next generation, and the group to rebalance unless it does already."""
    group, request, release = work.group, parked.request, work.release
    was_empty = group.previous == "Empty" if release.extends_delay_of_emptied_group else group.generation == 0
    member = Member(
        id=member_id,
        instance=request.instance,
        client=request.client,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocols=request.protocols,
        is_new=True,
        join=parked,
        deadline=work.now + NEW_MEMBER_JOIN_TIMEOUT_MS,
    )
    work.group = replace(
        group,
        protocol_type=group.protocol_type if group.members else request.protocol_type,
        leader=group.leader or member_id,
        members=(*group.members, member),
        pending=tuple(p for p in group.pending if p.id != member_id),
        new_member_added=group.new_member_added or (group.state == "PreparingRebalance" and was_empty),
    )
    rebalance(work, f"Adding new member {member_id} with group instance id {_instance(work, request.instance)}{client_reason(request)}")


def park_join(work: Work, member: Member, parked: Parked[JoinRequest]) -> None:
    """The member waits for the next generation with what it says of itself now; a JoinGroup that it waited with before is forgotten."""
    request = parked.request
    told = member if work.defect("rejoin-keeps-old-timeouts") else _with_timeouts(member, request)
    work.put(replace(told, protocols=request.protocols, join=parked))


def _with_timeouts(member: Member, request: JoinRequest) -> Member:
    return replace(member, session_timeout_ms=request.session_timeout_ms, rebalance_timeout_ms=request.rebalance_timeout_ms)


def rebalance(work: Work, reason: str) -> None:
    """Enter PreparingRebalance, unless the group is in it."""
    group = work.group
    if group.state == "PreparingRebalance":
        return
    if group.state == "CompletingRebalance":
        abort_syncs(work, "REBALANCE_IN_PROGRESS")
    timeout, delay = group.rebalance_timeout_ms, work.release.initial_rebalance_delay_ms
    initial = InitialDelay(delay, max(timeout - delay, 0)) if group.state == "Empty" else None
    work.group = replace(
        work.group,
        state="PreparingRebalance",
        previous=group.state,
        pending_sync=(),
        sync_deadline=None,
        initial_delay=initial,
        join_deadline=work.now + (timeout if initial is None else initial.window_ms),
    )
    if initial is None and work.defect("join-timer-not-armed"):
        work.group = replace(work.group, join_deadline=None)
    work.saw_rebalance(reason)
    end_join_phase_if_all_joined(work)


def end_join_phase_if_all_joined(work: Work, *, despite_initial_delay: bool = False) -> None:
    group = work.group
    if group.state != "PreparingRebalance":
        return
    delayed = group.previous == "Empty" if work.release.new else group.initial_delay is not None
    if delayed and not despite_initial_delay:
        return
    joined = (m.join is not None for m in group.members)
    if (all(joined) and not group.pending) or (work.defect("join-phase-does-not-wait") and any(m.join is not None for m in group.members)):
        end_join_phase(work)


def join_timer_fired(work: Work) -> None:
    """The initial delay goes on while newcomers arrive (KIP-134, InitialDelayedJoin); any other join phase ends now."""
    group, delay = work.group, work.group.initial_delay
    if delay is None or not group.new_member_added or delay.remaining_ms == 0:
        end_join_phase(work)
        return
    window = min(work.release.initial_rebalance_delay_ms, delay.remaining_ms)
    work.group = replace(
        group,
        new_member_added=False,
        initial_delay=InitialDelay(window, max(delay.remaining_ms - delay.window_ms, 0)),
        join_deadline=work.now + window,
    )


def end_join_phase(work: Work) -> None:
    """Drop the dynamic members that did not rejoin, make sure that the leader did, start the next generation."""
    before = work.group.members
    laggards = [m for m in before if m.join is None and _is_dropped(work, m)]
    for laggard in laggards:
        if laggard.instance is None:
            work.saw_expiry(laggard.id, "rebalance")
    for laggard in laggards:
        drop(work, laggard.id)
    group = work.group
    joined = [m.id for m in group.members if m.join is not None]
    if group.members and not joined:
        work.group = replace(group, initial_delay=None, join_deadline=work.now + group.rebalance_timeout_ms)
    elif not group.members:
        _start_empty_generation(work)
    else:
        leader = group.leader if group.leader in joined else work.choose("leader", joined)
        work.group = replace(group, leader=leader)
        _start_generation(work, before if work.defect("leader-told-of-removed-members") else group.members)


def _is_dropped(work: Work, member: Member) -> bool:
    if work.defect("join-phase-does-not-wait"):
        return False
    return member.instance is None or work.defect("join-timer-drops-static-members")


def _start_empty_generation(work: Work) -> None:
    work.group = replace(
        work.group,
        state="Empty",
        previous="PreparingRebalance",
        generation=work.group.generation + 1,
        protocol=None,
        leader=None,
        initial_delay=None,
        join_deadline=None,
    )
    work.saw_generation()
    store(work, "empty")


def _start_generation(work: Work, told: Iterable[Member]) -> None:
    """Every member that waits is answered; the leader is told of all, absent static ones too."""
    group = work.group
    protocol = select_protocol(work)
    work.group = replace(
        group,
        state="CompletingRebalance",
        previous="PreparingRebalance",
        generation=_next_generation(work),
        protocol=protocol,
        members=tuple(replace(m, is_new=False, join=None, deadline=work.now + m.session_timeout_ms) for m in group.members),
        pending_sync=tuple(m.id for m in group.members),
        initial_delay=None,
        join_deadline=None,
        sync_deadline=None if work.defect("sync-phase-unbounded") else work.now + group.rebalance_timeout_ms,
    )
    work.saw_generation()
    listed = joined_members(told, protocol)
    for member in group.members:
        if member.join is not None:
            work.answer_join(member.join, granted(work.group, member.id, listed))


def _next_generation(work: Work) -> int:
    generation = work.group.generation
    return generation - 1 if work.defect("generation-counts-down") and generation > 1 else generation + 1


def granted(group: Group, member: str, members: tuple[JoinedMember, ...]) -> JoinResponse:
    """The answer NONE of the current generation; only the leader is told the ``members``."""
    return JoinResponse(
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader or "",
        member=member,
        members=members if member == group.leader else (),
    )


def joined_members(members: Iterable[Member], protocol: str | None) -> tuple[JoinedMember, ...]:
    """What the leader is told of ``members``: their metadata for ``protocol``."""
    return tuple(JoinedMember(member=m.id, instance=m.instance, metadata=m.metadata(protocol)) for m in members)


def drop(work: Work, member: str) -> None:
    """Take the id out of the group; if it led, any other member does from now on."""
    group = work.group
    rest = tuple(m for m in group.members if m.id != member)
    leader = group.leader
    if leader == member:
        leader = work.choose("leader", [m.id for m in rest]) if rest else None
    work.group = replace(
        group,
        members=rest,
        leader=leader,
        pending=tuple(p for p in group.pending if p.id != member),
        pending_sync=tuple(m for m in group.pending_sync if m != member),
    )


def remove_member(work: Work, member: Member, reason: str, *, despite_initial_delay: bool = False) -> None:
    """A member left or expired: answer the JoinGroup that it waits with, and let the others rebalance.

    A SyncGroup that it waits with is never answered (latent L14).
    """
    if member.join is not None:
        work.answer_join(member.join, JoinResponse(error="UNKNOWN_MEMBER_ID"))
    drop(work, member.id)
    if work.group.state in ("Stable", "CompletingRebalance"):
        rebalance(work, reason)
    else:
        end_join_phase_if_all_joined(work, despite_initial_delay=despite_initial_delay)


def remove_pending(work: Work, member: str, *, despite_initial_delay: bool = False) -> None:
    drop(work, member)
    if not work.defect("pending-members-not-rechecked"):
        end_join_phase_if_all_joined(work, despite_initial_delay=despite_initial_delay)


# Protocols.


def supports(group: Group, protocol_type: ProtocolType, protocols: Protocols) -> bool:
    """Whether a JoinGroup that offers ``protocols`` may enter: all members have one of them, an old incarnation of the joiner too (L5)."""
    if group.state == "Empty":
        return bool(protocol_type) and bool(protocols)
    common = _common(group.members)
    return protocol_type == group.protocol_type and any(not group.members or name in common for name, _ in protocols)


def select_protocol(work: Work) -> str:
    """Every member votes for the first of its own protocols that all have; a tie is arbitrary."""
    members = work.group.members
    common = _common(members)
    if work.defect("protocol-by-majority"):
        common = frozenset(name for m in members for name, _ in m.protocols)
    votes = Counter(next(name for name, _ in m.protocols if name in common) for m in members)
    most = max(votes.values())
    tied = [name for name, count in votes.items() if count == most]
    return tied[0] if len(tied) == 1 else work.choose("protocol", tied)


def _common(members: Sequence[Member]) -> frozenset[str]:
    offers = [frozenset(name for name, _ in m.protocols) for m in members]
    return frozenset[str].intersection(*offers) if offers else frozenset()


# Words of the log.


def client_reason(request: JoinRequest) -> str:
    return f"; client reason: {request.reason or 'not provided'}"


def _instance(work: Work, instance: str | None) -> str:
    if work.release.new:
        return instance or "null"
    return f"Some({instance})" if instance is not None else "None"
