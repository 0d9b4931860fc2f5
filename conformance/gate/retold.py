"""An assignor's failing input as a rebalance: the events of a group whose leader answered so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from ...spec.assignors.case import Case
from ...spec.assignors.codec import decode
from ...spec.events import Assigned, AssignmentMap, Event, GenerationStarted, Join, Joined, Owned, Resources, Revoked, Sync, Synced, Topics
from ...spec.results import Finding

_WITHHOLDING = frozenset({"cooperative-withholds", "revoke-before-reassign", "exclusive-ownership"})
"""Rules about what a new owner takes before the old one gives it up; for others the old owners are told to give up first."""


def retold(finding: Finding) -> list[Event]:
    """The rebalance of ``finding.case``: what members claim, what they were given, what they make of it. Empty without a case.

    Raises `CaseError` for a case that can't be read.
    """
    if finding.case is None:
        return []
    case, answer = decode(finding.case)[0], finding.case.get("answer")
    return list(_rebalance(finding, case, _shares(answer)))


def _shares(answer: object) -> AssignmentMap | None:
    if not isinstance(answer, dict):
        return None
    shares = cast("Mapping[str, object]", answer)
    return {member: tuple(map(str, cast("list[object]", share))) for member, share in shares.items() if isinstance(share, list)}


def _rebalance(finding: Finding, case: Case, answer: AssignmentMap | None) -> Iterator[Event]:
    group = finding.group
    now = max((member.generation for member in case.members), default=-1) + 1
    if case.topics:
        yield Topics(group=group, topics=case.topics)
    for member in case.members:
        if member.owned:
            yield Owned(group=group, member=member.id, instance=member.instance, generation=member.generation, resources=member.owned)
    for member in case.members:
        yield Join(
            group=group,
            member=member.id,
            instance=member.instance,
            subscribed=member.subscribed,
            owned=member.owned,
            owned_generation=member.generation,
            rack=member.rack,
        )
    ids = tuple(member.id for member in case.members)
    protocol = "cooperative-sticky" if finding.rule in _WITHHOLDING else None
    yield GenerationStarted(group=group, generation=now, members=ids, leader=ids[0] if ids else None, protocol=protocol)
    yield from (Joined(group=group, member=member, generation=now, leader=ids[0]) for member in ids)
    if answer is None:
        return
    yield Sync(group=group, member=ids[0] if ids else None, generation=now, assignment=answer)
    for member in ids:
        yield Synced(group=group, member=member, generation=now, resources=answer.get(member, ()))
    owned: dict[str, Resources] = {member.id: member.owned for member in case.members}
    revoked = [
        Revoked(group=group, member=member, generation=now, resources=gone)
        for member in ids
        if (gone := tuple(each for each in owned[member] if each not in answer.get(member, ())))
    ]
    assigned = [
        Assigned(group=group, member=member, generation=now, resources=new)
        for member in ids
        if (new := tuple(each for each in answer.get(member, ()) if each not in owned[member]))
    ]
    yield from (*assigned, *revoked) if finding.rule in _WITHHOLDING else (*revoked, *assigned)
