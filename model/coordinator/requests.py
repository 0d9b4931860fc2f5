"""Heartbeat, LeaveGroup and OffsetCommit: requests that are answered at once."""

from __future__ import annotations

from ...spec.events import NONE
from ..messages import Address, CommitRequest, HeartbeatRequest, LeaveRequest
from .rebalance import rebalance, remove_member, remove_pending
from .validate import not_a_member, turned_away
from .work import Work


def heartbeat(work: Work, address: Address, request: HeartbeatRequest) -> None:
    """GroupCoordinator.doHeartbeat: in PreparingRebalance the generation before is still the current one."""
    group = work.group
    error = turned_away(group, work.release, request)
    if error is None:
        error = not_a_member(group, work.release, request.member, request.instance)
        if error == "FENCED_INSTANCE_ID" and work.defect("replaced-id-keeps-its-session"):
            error = NONE
    if error is None and request.generation != group.generation and not work.defect("heartbeat-of-any-generation"):
        error = "ILLEGAL_GENERATION"
    if error is None and group.state == "CompletingRebalance" and work.defect("completing-heartbeat-refused"):
        error = "REBALANCE_IN_PROGRESS"
    if error is None:
        _sign_of_life(work, request.member)
        error = "REBALANCE_IN_PROGRESS" if group.state == "PreparingRebalance" else NONE
    work.answer_heartbeat(address, request, error)


def leave(work: Work, address: Address, request: LeaveRequest) -> None:
    """GroupCoordinator.handleLeaveGroup for one member; without a member id it is an administrator's removal of the instance."""
    group = work.group
    error = turned_away(group, work.release, request)
    if error is not None:
        work.answer_leave(address, request, error)
    elif group.is_pending(request.member):
        work.answer_leave(address, request, NONE, pending=True)
        remove_pending(work, request.member)
        if work.release.pending_leave_rebalances and group.state in ("Stable", "CompletingRebalance"):
            rebalance(work, _reason(work, request.member, request))
    else:
        member = group.member(request.member) if request.member else group.holder(request.instance)
        error = not_a_member(group, work.release, request.member, request.instance) if request.member else None
        if member is None or error is not None:
            work.answer_leave(address, request, error or "UNKNOWN_MEMBER_ID")
            return
        work.answer_leave(address, request, NONE)
        remove_member(work, member, _reason(work, member.id, request))


def commit(work: Work, address: Address, request: CommitRequest) -> None:
    """GroupCoordinator.validateOffsetCommit, ClassicGroup.validateOffsetCommit: not transactional."""
    error = turned_away(work.group, work.release, request) or _commit_refusal(work, request)
    if error is None and work.group.state != "Empty":
        _sign_of_life(work, request.member)
    work.answer_commit(address, request, error or NONE)


def _commit_refusal(work: Work, request: CommitRequest) -> str | None:
    group = work.group
    if request.generation < 0 and group.state == "Empty":
        return None
    if not group.exists:
        return "ILLEGAL_GENERATION"
    if request.generation < 0 and not request.member and request.instance is None:
        return "UNKNOWN_MEMBER_ID"
    stranger = not_a_member(group, work.release, request.member, request.instance)
    if stranger is not None:
        return stranger
    if request.generation != group.generation and not work.defect("commit-of-any-generation"):
        return "ILLEGAL_GENERATION"
    return "REBALANCE_IN_PROGRESS" if group.state == "CompletingRebalance" else None


def _sign_of_life(work: Work, member_id: str) -> None:
    member = work.group.member(member_id)
    if member is not None:
        work.restart_session(member)


def _reason(work: Work, member: str, request: LeaveRequest) -> str:
    said = request.reason or "not provided"
    if work.release.new:
        return f"explicit `LeaveGroup` request for ({member}) members."
    return f"Removing member {member} on LeaveGroup; client reason: {said}"
