"""JoinGroup: new members, known ones that rejoin, static ones that return (KIP-345, KIP-394, KIP-814).

GroupCoordinator.handleJoinGroup, GroupMetadataManager.classicGroupJoinToClassicGroup.
"""

from __future__ import annotations

from dataclasses import replace

from ..messages import Address, JoinRequest, JoinResponse, SyncResponse
from .rebalance import (
    add_member,
    client_reason,
    drop,
    end_join_phase_if_all_joined,
    granted,
    joined_members,
    park_join,
    rebalance,
    select_protocol,
    supports,
)
from .state import Group, Member, Parked, Pending, Replaced
from .store import store
from .validate import not_a_member, turned_away
from .work import Work

_KNOWN_ID_REQUIRED = 4
_SKIP_ASSIGNMENT = 9


def join(work: Work, address: Address, request: JoinRequest) -> None:
    work.saw_join(request)
    parked = Parked(address, request)
    error = turned_away(work.group, work.release, request)
    if error is not None:
        _refuse(work, parked, error)
    elif not work.group.exists and request.member:
        _refuse(work, parked, "UNKNOWN_MEMBER_ID")
    else:
        is_new = not work.group.exists
        work.group = replace(work.group, exists=True)
        _enter(work, parked)
        if is_new and work.release.stores_new_group:
            store(work, "new group")


def _enter(work: Work, parked: Parked[JoinRequest]) -> None:
    request = parked.request
    pending_before = bool(work.group.pending)
    if not _has_room(work.group, work.release.max_size, request.member):
        drop(work, request.member)
        work.answer_join(parked, JoinResponse(error="GROUP_MAX_SIZE_REACHED"))
    elif not supports(work.group, request.protocol_type, request.protocols):
        _refuse(work, parked, "INCONSISTENT_GROUP_PROTOCOL")
    elif not request.member:
        _first_join(work, parked)
    else:
        _join_by_id(work, parked)
    if not (pending_before and work.defect("pending-members-not-rechecked")):
        end_join_phase_if_all_joined(work)


def _refuse(work: Work, parked: Parked[JoinRequest], error: str) -> None:
    work.answer_join(parked, JoinResponse(error=error, member=parked.request.member))


def _has_room(group: Group, limit: int, member_id: str) -> bool:
    """GroupCoordinator.acceptJoiningMember. A static member that returns without its id counts as one more (latent L3)."""
    member = group.member(member_id)
    match group.state:
        case "PreparingRebalance":
            waiting = sum(m.join is not None for m in group.members)
            return waiting < limit or (member is not None and member.join is not None)
        case "CompletingRebalance" | "Stable":
            return member is not None or len(group.members) < limit
        case _:
            return True


def _first_join(work: Work, parked: Parked[JoinRequest]) -> None:
    request = parked.request
    holder = work.group.holder(request.instance)
    member_id = work.new_id(request.instance or request.client)
    if request.instance is None and request.version >= _KNOWN_ID_REQUIRED:
        pending = Pending(member_id, request.client, work.now + request.session_timeout_ms)
        work.group = replace(work.group, pending=(*work.group.pending, pending))
        work.answer_join(parked, JoinResponse(error="MEMBER_ID_REQUIRED", member=member_id))
    elif holder is None or (work.group.state == "PreparingRebalance" and work.defect("static-replaced-only-when-stable")):
        add_member(work, parked, member_id)
    else:
        _return_static(work, parked, holder, member_id)


def _join_by_id(work: Work, parked: Parked[JoinRequest]) -> None:
    group, request = work.group, parked.request
    if group.is_pending(request.member):
        if request.instance is not None:
            _refuse(work, parked, "UNKNOWN_SERVER_ERROR")
        else:
            add_member(work, parked, request.member)
        return
    error = not_a_member(group, work.release, request.member, request.instance)
    member = group.member(request.member)
    if error is not None or member is None:
        _refuse(work, parked, error or "UNKNOWN_MEMBER_ID")
        return
    changed = request.protocols != member.protocols
    leads = member.id == group.leader
    match group.state:
        case "CompletingRebalance" if not changed:
            work.answer_join(parked, granted(group, member.id, joined_members(group.members, group.protocol)))
        case "Stable" if not changed and not leads:
            work.answer_join(parked, granted(group, member.id, ()))
        case "Stable" if leads:
            park_join(work, member, parked)
            rebalance(work, f"Leader {member.id} re-joining group during Stable{client_reason(request)}")
        case _:
            park_join(work, member, parked)
            rebalance(work, f"Updating metadata for member {member.id} during {group.state}{client_reason(request)}")


# A static member returns without its member id.


def _return_static(work: Work, parked: Parked[JoinRequest], old: Member, member_id: str) -> None:
    """The slot passes to the new id at once, and the old id is fenced off (updateStaticMemberAndRebalance)."""
    request, leader_before = parked.request, work.group.leader or ""
    work.restart_session(_replace(work, old, member_id))
    member = work.group.member(member_id)
    assert member is not None
    park_join(work, member, parked)
    replaced = Replaced(member=member_id, before=old, leader_before=leader_before)
    rejoins = f"static member {member_id} with instance id {request.instance}"
    match work.group.state:
        case "Stable" if work.defect("static-return-rebalances"):
            rebalance(work, f"Updating metadata for {rejoins}{client_reason(request)}")
        case "CompletingRebalance" if work.defect("static-return-answered-while-completing"):
            grant_return(work, replaced)
        case "Stable" if select_protocol(work) == work.group.protocol and work.defect("static-replacement-not-stored"):
            grant_return(work, replaced)
        case "Stable" if select_protocol(work) == work.group.protocol:
            store(work, "static", replaced=replaced)
        case "Stable":
            what = f"Group's selectedProtocol will change because {rejoins} joined with change of protocol"
            rebalance(work, f"{what}{client_reason(request)}")
        case _:
            rebalance(work, f"Updating metadata for {rejoins}{client_reason(request)}")


def _replace(work: Work, old: Member, member_id: str) -> Member:
    """Give the slot to ``member_id`` (replaceStaticMember). What the old id waits with is answered FENCED_INSTANCE_ID.

    The old id stays among those that have yet to sync (latent L4), and the client id among the slot's (KAFKA-15704).
    """
    if old.join is not None:
        work.answer_join(old.join, JoinResponse(error="FENCED_INSTANCE_ID", member=old.id))
    if old.sync is not None:
        work.answer_sync(old.sync, SyncResponse(error="FENCED_INSTANCE_ID"))
    stays_new = old.is_new and work.release.replacement_stays_new
    share = old.share
    if share is not None and work.defect("static-return-loses-a-partition"):
        share = replace(share, resources=share.resources[1:])
    member = replace(old, id=member_id, share=share, join=None, sync=None, is_new=stays_new)
    work.put(member, in_place_of=old.id)
    if work.group.leader == old.id:
        work.group = replace(work.group, leader=member_id)
    work.saw_replacement(member, old.id)
    return member


def grant_return(work: Work, replaced: Replaced) -> None:
    """Answer a return without a rebalance. Before JoinGroup 9 nobody is told of the new leader's id (KAFKA-13435)."""
    group, member = work.group, work.group.member(replaced.member)
    if member is None or member.join is None:
        return
    leads = member.id == group.leader
    skips = member.join.request.version >= _SKIP_ASSIGNMENT and not work.defect("assignment-not-skipped")
    if skips and leads and group.state == "PreparingRebalance" and not work.release.new:
        return
    work.put(replace(member, join=None))
    if skips:
        response = replace(granted(group, member.id, joined_members(group.members, group.protocol)), skip_assignment=leads)
    else:
        response = replace(granted(group, member.id, ()), leader=replaced.leader_before)
    work.answer_join(member.join, response)


def undo_return(work: Work, replaced: Replaced, error: str) -> None:
    """A return that could not be stored is refused, and the old id has the slot again (replaceStaticMember, the other way round).

    If a rebalance has let the new id join meanwhile, what it waits with is answered FENCED_INSTANCE_ID.
    """
    member, before = work.group.member(replaced.member), replaced.before
    if member is None:
        return
    if member.sync is not None:
        work.answer_sync(member.sync, SyncResponse(error="FENCED_INSTANCE_ID"))
    keeps = work.release.failed_replacement_keeps_protocols
    work.put(
        replace(
            member,
            id=before.id,
            join=None,
            sync=None,
            protocols=member.protocols if keeps else before.protocols,
            session_timeout_ms=before.session_timeout_ms,
            rebalance_timeout_ms=before.rebalance_timeout_ms,
            deadline=work.now + before.session_timeout_ms,
        ),
        in_place_of=member.id,
    )
    group = work.group
    if group.leader == member.id:
        work.group = group = replace(group, leader=before.id)
    if member.join is not None:
        response = JoinResponse(error=error, generation=group.generation, protocol=group.protocol, leader=replaced.leader_before)
        work.answer_join(member.join, response)
