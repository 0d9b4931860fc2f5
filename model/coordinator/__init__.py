"""The group coordinator of the classic protocol: one group's state, and pure steps over it.

`receive` a request, `fire` a timer, let the log answer (`appended`), and fail over (`unload`, `load`): each gives the
next state, the answers, what an observer inside the broker sees, and the appends that it begins. Events carry group,
generation and member; the world adds time and epoch. The caller keeps the log: a record counts once `appended` was told
`NONE` of it, and an append that is in flight when the coordinator changes is answered to nobody.
"""

from __future__ import annotations

from dataclasses import replace

from ..choice import Choose, first
from ..messages import Address, CommitRequest, HeartbeatRequest, JoinRequest, LeaveRequest, Request
from .expiry import expire
from .join import join
from .log import answered, deleted, loaded, unloaded
from .mutations import LATENT, MUTATIONS
from .release import NEW_4_0, NEW_MEMBER_JOIN_TIMEOUT_MS, OLD_3_8, Release
from .requests import commit, heartbeat, leave
from .state import Append, Group, GroupRecord, InitialDelay, Member, Parked, Pending, Replaced, State, Step, StoredMember, Timer
from .state import empty as empty
from .state import timers as timers
from .sync import sync
from .work import Work

__all__ = [
    "LATENT",
    "MUTATIONS",
    "NEW_4_0",
    "NEW_MEMBER_JOIN_TIMEOUT_MS",
    "OLD_3_8",
    "Append",
    "Group",
    "GroupRecord",
    "InitialDelay",
    "Member",
    "Parked",
    "Pending",
    "Release",
    "Replaced",
    "State",
    "Step",
    "StoredMember",
    "Timer",
    "appended",
    "delete",
    "empty",
    "fire",
    "load",
    "loading",
    "receive",
    "timers",
    "unload",
]


def receive(group: Group, release: Release, address: Address, request: Request, now: int, choose: Choose) -> Step:
    """A request arrives at ``now`` (ms). Its answer is among the replies, now or in a later step."""
    work = Work(group, release, now, choose)
    match request:
        case JoinRequest():
            join(work, address, request)
        case HeartbeatRequest():
            heartbeat(work, address, request)
        case LeaveRequest():
            leave(work, address, request)
        case CommitRequest():
            commit(work, address, request)
        case _:
            sync(work, address, request)
    return work.done()


def fire(group: Group, release: Release, timer: Timer, now: int, choose: Choose) -> Step:
    """A timer fires at or after its deadline. One that is not armed any more, or was armed anew, changes nothing.

    Raises ValueError before the deadline.
    """
    if now < timer.deadline:
        raise ValueError(f"{timer} can't fire at {now}")
    work = Work(group, release, now, choose)
    if timer in timers(group):
        expire(work, timer)
    return work.done()


def appended(group: Group, release: Release, append: Append, error: str, now: int, choose: Choose) -> Step:
    """The log answered ``append``: `NONE`, or an error of the produce path such as NOT_ENOUGH_REPLICAS."""
    work = Work(group, release, now, choose)
    answered(work, append, error)
    return work.done()


def loading(group_id: str, *, ids_given: int = 0) -> Group:
    """The group at a coordinator that is still reading the log: it turns requests away, but grants heartbeats."""
    return replace(empty(group_id, ids_given=ids_given), loading=True)


def load(group_id: str, release: Release, record: GroupRecord | None, now: int, *, ids_given: int = 0) -> Step:
    """A coordinator has loaded the group's last record, None if there is none (or a tombstone).

    Pass the old group's ``ids_given``, so that no member id is given twice. A group over the size limit rebalances.
    """
    work = Work(empty(group_id, ids_given=ids_given), release, now, first)
    loaded(work, record)
    return work.done()


def unload(group: Group, release: Release, now: int) -> Step:
    """The coordinator lets the group go: requests that wait are answered NOT_COORDINATOR, later ones COORDINATOR_NOT_AVAILABLE."""
    work = Work(group, release, now, first)
    unloaded(work)
    return work.done()


def delete(group: Group, release: Release, now: int) -> Step:
    """Delete an empty group (DeleteGroups, or cleanup once its offsets have expired); any other stays as it is.

    A later life of its name begins with ``empty(group_id, ids_given=...)``.
    """
    work = Work(group, release, now, first)
    deleted(work)
    return work.done()
