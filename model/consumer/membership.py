"""The few ways in which the member's standing changes outside the happy path.

Source: AbstractCoordinator.resetStateAndRejoin, requestRejoin, markCoordinatorUnknown, maybeLeaveGroup.
"""

from __future__ import annotations

from dataclasses import replace

from ..messages import CommitRequest, JoinRequest, LeaveRequest, SyncRequest
from .state import Failed, Generation, MemberState, Step

DISCONNECTED = "DisconnectException"


def request_rejoin(step: Step, reason: str) -> None:
    """Join again at the next poll; ``reason`` travels with it (KIP-800)."""
    step.change(rejoin_needed=True, rejoin_reason=reason)


def reset(step: Step, reason: str, *, keep_member: bool) -> None:
    """Forget the generation, and the member id too unless it may still be valid. What it owns is lost at the next prepare."""
    c = step.consumer
    step.change(
        member_state=MemberState.UNJOINED,
        generation=Generation(member=c.generation.member if keep_member else ""),
        needs_join_prepare=c.needs_join_prepare or not c.has("reset-skips-join-prepare"),
    )
    request_rejoin(step, reason)


def find_coordinator(step: Step) -> None:
    """Look the coordinator up, which takes no time here; the session is timed anew."""
    if not step.consumer.coordinator_known:
        step.change(coordinator_known=True, heard=step.now)


def mark_coordinator_unknown(step: Step) -> None:
    """Drop the one connection to the coordinator: whatever is in flight on it fails. Membership stays (KAFKA-13214)."""
    dropped = step.consumer.in_flight
    step.change(coordinator_known=False, in_flight=())
    for each in dropped:
        match each.request:
            case JoinRequest() | SyncRequest():
                if step.consumer.has("disconnect-resets-membership"):
                    reset(step, f"rebalance failed due to {DISCONNECTED}", keep_member=False)
                step.change(join=Failed(DISCONNECTED, "backoff"))
            case CommitRequest():
                prepare_commit_ended(step, each.correlation, retriable=True)
            case _:
                pass


def prepare_commit_ended(step: Step, correlation: int, *, retriable: bool) -> bool:
    """Whether that was the commit that onJoinPrepare waits for; a retriable failure makes it send another."""
    waited = step.consumer.prepare_commit
    if waited is None or waited.correlation != correlation:
        return False
    step.change(prepare_commit=replace(waited, correlation=None, done=not retriable))
    return True


def maybe_leave_group(step: Step, reason: str) -> None:
    """Send LeaveGroup if the member is dynamic and in the group, and forget the membership.

    A static member sends nothing, and keeps its id, as it may still be registered under it (KAFKA-20985).
    """
    c = step.consumer
    static = c.config.instance is not None
    leaves = not static or (c.closing and c.has("static-member-leaves-on-close"))
    if leaves and c.coordinator_known and c.member_state is not MemberState.UNJOINED and c.generation.member:
        step.send(LeaveRequest(member=c.generation.member, instance=c.config.instance, reason=reason))
    keep = static and not c.has("static-member-forgets-its-id")
    reset(step, "consumer pro-actively leaving the group", keep_member=keep)
