"""What a group leaves in the log, and what is made of that.

GroupMetadataManager.storeGroup, loadGroup (Scala); GroupCoordinatorRecordHelpers.newGroupMetadataRecord, GroupMetadataManager.replay (Java).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from ..messages import Share
from .state import Append, Group, GroupRecord, Member, Replaced, StoredMember
from .work import Work


def store(
    work: Work,
    why: Literal["sync", "static", "empty", "new group", "tombstone"],
    *,
    shares: Mapping[str, Share | None] | None = None,
    member: str = "",
    replaced: Replaced | None = None,
) -> None:
    """Begin to append the group as it is now, with ``shares`` as the members' assignments where they are given."""
    work.group = group = replace(work.group, appends_given=work.group.appends_given + 1)
    match why:
        case "tombstone":
            record = None
        case "new group":
            record = GroupRecord(generation=0, protocol_type=None, protocol=None, leader=None, members=())
        case _:
            record = _record_of(group, shares)
    work.appends.append(Append(number=group.appends_given, record=record, why=why, member=member, replaced=replaced))


def _record_of(group: Group, shares: Mapping[str, Share | None] | None) -> GroupRecord:
    return GroupRecord(
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader,
        members=tuple(
            StoredMember(
                id=m.id,
                instance=m.instance,
                client=m.client,
                session_timeout_ms=m.session_timeout_ms,
                rebalance_timeout_ms=m.rebalance_timeout_ms,
                metadata=m.metadata(group.protocol),
                share=m.share if shares is None else shares.get(m.id),
            )
            for m in group.members
        ),
    )


def restored(group: Group, record: GroupRecord, now: int) -> Group:
    """The group as ``record`` has it; every session begins anew."""
    return replace(
        group,
        exists=True,
        state="Stable" if record.members else "Empty",
        generation=record.generation,
        protocol_type=record.protocol_type,
        protocol=record.protocol,
        leader=record.leader,
        members=tuple(
            Member(
                id=m.id,
                instance=m.instance,
                client=m.client,
                session_timeout_ms=m.session_timeout_ms,
                rebalance_timeout_ms=m.rebalance_timeout_ms,
                protocols=((record.protocol or "", m.metadata),),
                share=m.share,
                deadline=now + m.session_timeout_ms,
            )
            for m in record.members
        ),
    )
