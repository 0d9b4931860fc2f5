"""Who may ask what: the checks before a request reaches the group's state machine, in Kafka's order."""

from __future__ import annotations

from ...spec.events import NONE
from ..messages import CommitRequest, HeartbeatRequest, JoinRequest, Request, SyncRequest
from .release import Release
from .state import Group


def turned_away(group: Group, release: Release, request: Request) -> str | None:
    """The answer to a request that doesn't reach the group, None for one that does.

    GroupCoordinator.validateGroupStatus, GroupCoordinatorService: a loading coordinator grants heartbeats blindly; the
    new one looks at the session timeout first.
    """
    if not group.id and not isinstance(request, CommitRequest):
        return "INVALID_GROUP_ID"
    allowed = range(release.min_session_timeout_ms, release.max_session_timeout_ms + 1)
    bad_session = isinstance(request, JoinRequest) and request.session_timeout_ms not in allowed
    if bad_session and release.new:
        return "INVALID_SESSION_TIMEOUT"
    if group.loading:
        match request:
            case HeartbeatRequest():
                return NONE
            case SyncRequest():
                return release.error_of_sync_while_loading
            case _:
                return "COORDINATOR_LOAD_IN_PROGRESS"
    if bad_session:
        return "INVALID_SESSION_TIMEOUT"
    if group.state == "Dead":
        return "UNKNOWN_MEMBER_ID" if "dead-group-denies-members" in release.defects else "COORDINATOR_NOT_AVAILABLE"
    return None


def not_a_member(group: Group, release: Release, member: str, instance: str | None) -> str | None:
    """The error for an id that is not, or no longer, a member; None for a member.

    GroupCoordinator.validateCurrentMember, ClassicGroup.validateMember: the instance id is looked at first, and only if
    one is given; an id that is only pending is no member.
    """
    if instance is not None:
        holder = group.holder(instance)
        if holder is None:
            return "UNKNOWN_MEMBER_ID"
        if holder.id != member:
            return "UNKNOWN_MEMBER_ID" if "replaced-id-is-unknown" in release.defects else "FENCED_INSTANCE_ID"
    return None if group.member(member) is not None else "UNKNOWN_MEMBER_ID"
