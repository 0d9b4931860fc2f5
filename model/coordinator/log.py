"""The group and its log: answers of an append, failover to another coordinator, deletion.

GroupMetadataManager.storeGroup, loadGroup (Scala); GroupMetadataManager.replay, onLoaded, onUnloaded (Java).
"""

from __future__ import annotations

from ...spec.events import NONE
from ..messages import JoinResponse, SyncResponse
from .join import grant_return, undo_return
from .rebalance import rebalance
from .state import Append, Group, GroupRecord
from .store import restored, store
from .sync import abort_syncs, hand_out
from .work import Work


def answered(work: Work, append: Append, error: str) -> None:
    """The log took ``append`` (`NONE`), or ``error`` came instead."""
    if error == NONE and append.record is not None:
        work.saw_stored(append.record)
    told = NONE if error == NONE else work.release.error_of_append(error)
    if append.why == "sync" and append.record is not None:
        _assignment(work, append.record, append.member, told)
    elif append.replaced is not None and told == NONE:
        grant_return(work, append.replaced)
    elif append.replaced is not None:
        undo_return(work, append.replaced, told)


def _assignment(work: Work, record: GroupRecord, leader: str, error: str) -> None:
    """Whatever the log says comes too late for a group that has moved on."""
    group = work.group
    if group.state != "CompletingRebalance" or group.generation != record.generation:
        return
    if error == NONE:
        hand_out(work, record)
    else:
        abort_syncs(work, error)
        rebalance(work, f"Error {error} when storing group assignment during SyncGroup (member: {leader})")


def loaded(work: Work, record: GroupRecord | None) -> None:
    """What another coordinator makes of the last record: pending ids, waiting requests and an unfinished generation are gone."""
    work.saw_load(record)
    if record is None:
        return
    work.group = restored(work.group, record, work.now)
    size, limit = len(record.members), work.release.max_size
    if size > limit:
        which = f"{work.group.id} (size {size}) is over capacity {limit}" if work.release.new else f"is over capacity ({limit})"
        rebalance(work, f"Freshly-loaded group {which}. Rebalancing in order to give a chance for consumers to commit offsets")


def unloaded(work: Work) -> None:
    """The partition went to another coordinator: whoever waits is sent there."""
    for member in work.group.members:
        if member.join is not None:
            work.answer_join(member.join, JoinResponse(error="NOT_COORDINATOR", member=member.id))
        if member.sync is not None:
            work.answer_sync(member.sync, SyncResponse(error="NOT_COORDINATOR"))
    work.group = _dead(work.group)


def deleted(work: Work) -> None:
    """DeleteGroups, or the periodic cleanup of an empty group without offsets; the Scala coordinator stores no tombstone for generation 0."""
    if work.group.state != "Empty":
        return
    if work.release.new or work.group.generation > 0:
        store(work, "tombstone")
    work.group = _dead(work.group)


def _dead(group: Group) -> Group:
    return Group(
        id=group.id,
        state="Dead",
        previous=group.state,
        generation=group.generation,
        ids_given=group.ids_given,
        appends_given=group.appends_given,
    )
