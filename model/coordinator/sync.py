"""SyncGroup, and the assignment that the leader's brings.

GroupCoordinator.doSyncGroup, GroupMetadataManager.classicGroupSyncToClassicGroup.
"""

from __future__ import annotations

from dataclasses import replace

from ...spec.events import NONE
from ..messages import Address, SyncRequest, SyncResponse
from .state import GroupRecord, Parked
from .store import store
from .validate import not_a_member, turned_away
from .work import Work


def sync(work: Work, address: Address, request: SyncRequest) -> None:
    work.saw_sync(request)
    parked = Parked(address, request)
    error = turned_away(work.group, work.release, request) or _refusal(work, request)
    if error is not None:
        work.answer_sync(parked, SyncResponse(error=error))
    elif work.group.state == "CompletingRebalance":
        _await_assignment(work, parked)
    else:
        _answer_at_once(work, parked)


def _refusal(work: Work, request: SyncRequest) -> str | None:
    group = work.group
    stranger = not_a_member(group, work.release, request.member, request.instance)
    if stranger is not None:
        return stranger
    if request.generation != group.generation:
        return "ILLEGAL_GENERATION"
    if request.protocol is not None and (request.protocol_type, request.protocol) != (group.protocol_type, group.protocol):
        return "INCONSISTENT_GROUP_PROTOCOL"
    return "REBALANCE_IN_PROGRESS" if group.state == "PreparingRebalance" else None


def _await_assignment(work: Work, parked: Parked[SyncRequest]) -> None:
    """A SyncGroup that the member waits with already is never answered (KAFKA-20938)."""
    request = parked.request
    _has_synced(work, request.member)
    work.group = replace(work.group, members=tuple(replace(m, sync=parked) if m.id == request.member else m for m in work.group.members))
    if request.member == work.group.leader:
        given = dict(request.shares)
        store(work, "sync", shares={m.id: given.get(m.id) for m in work.group.members}, member=request.member)


def _answer_at_once(work: Work, parked: Parked[SyncRequest]) -> None:
    """The group is stable: whatever a leader brings now is ignored."""
    request = parked.request
    _has_synced(work, request.member)
    member = work.group.member(request.member)
    assert member is not None
    if work.defect("stable-leader-reassigns") and request.member == work.group.leader:
        given = dict(request.shares)
        work.group = replace(work.group, members=tuple(replace(m, share=given.get(m.id, m.share)) for m in work.group.members))
        member = replace(member, share=given.get(member.id, member.share))
    work.answer_sync(parked, SyncResponse(protocol=work.group.protocol, share=member.share))
    if work.release.sync_restarts_session:
        work.restart_session(member)


def _has_synced(work: Work, member: str) -> None:
    work.group = replace(work.group, pending_sync=tuple(m for m in work.group.pending_sync if m != member))


def hand_out(work: Work, record: GroupRecord) -> None:
    """The log has the leader's assignment: answer everybody who waits for it (setAndPropagateAssignment)."""
    shares = {m.id: m.share for m in record.members}
    work.group = replace(
        work.group,
        state="Stable",
        previous="CompletingRebalance",
        members=tuple(replace(m, share=shares.get(m.id)) for m in work.group.members),
    )
    _answer_waiting(work, NONE)


def abort_syncs(work: Work, error: str) -> None:
    """Forget all assignments in memory and answer everybody who waits with SyncGroup (resetAndPropagateAssignmentError)."""
    work.group = replace(work.group, members=tuple(replace(m, share=None) for m in work.group.members))
    _answer_waiting(work, error)


def _answer_waiting(work: Work, error: str) -> None:
    protocol = work.group.protocol
    for member in work.group.members:
        if member.sync is not None:
            granted = SyncResponse(protocol=protocol, share=member.share)
            work.answer_sync(member.sync, granted if error == NONE else SyncResponse(error=error))
            work.restart_session(replace(member, sync=None))
