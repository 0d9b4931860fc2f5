"""Sticky and CooperativeSticky: one target, two protocols (AbstractStickyAssignor and its two subclasses).

Sticky is eager: members have given everything up and report what they last held in user data. CooperativeSticky reads
what members still own, and withholds from the target what has to leave another member first (KIP-429).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..messages import JoinedMember, Metadata
from . import constrained, general, legacy
from .base import ABSENT, Assignor, Claim, Shares, partitions_of, shares_of, split, subscribed
from .claims import resolve
from .racks import Racks
from .spoiled import spoil


def transferring(owned: Mapping[str, Sequence[str]], target: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What ``target`` takes from one member and adds to another, with the new owner; both by member.

    ``owned`` is what members say, true or not (CooperativeStickyAssignor.computePartitionsTransferringOwnership).
    """
    added = {partition: member for member, partitions in target.items() for partition in partitions if partition not in owned[member]}
    revoked = {partition for member, partitions in owned.items() for partition in partitions if partition not in target[member]}
    return {partition: member for partition, member in added.items() if partition in revoked}


def adjust(target: Mapping[str, Sequence[str]], moving: Mapping[str, str]) -> dict[str, list[str]]:
    """``target`` without the partitions that have to leave another member first (CooperativeStickyAssignor.adjustAssignment)."""
    return {member: [each for each in partitions if moving.get(each) != member] for member, partitions in target.items()}


def _same_topics(members: Sequence[JoinedMember]) -> bool:
    """Whether all subscribe the same topics. As in Kafka, members without any that come before all others don't count."""
    first = next((set(each.metadata.topics) for each in members if each.metadata.topics), set[str]())
    started = False
    for member in members:
        if started and set(member.metadata.topics) != first:
            return False
        started |= bool(member.metadata.topics)
    return True


def _read_up_to_first_difference(members: Sequence[JoinedMember]) -> list[JoinedMember]:
    """The members without the user data that the comparison of subscriptions had already read."""
    differing = next(index for index in range(len(members)) if not _same_topics(members[: index + 1]))
    return [*(replace(each, metadata=replace(each.metadata, user_data=None)) for each in members[:differing]), *members[differing:]]


def _target(
    read: Callable[[Metadata], Claim],
    members: Sequence[JoinedMember],
    topics: Mapping[str, int],
    racks: Mapping[str, tuple[str, ...]],
    seen: int,
    defects: frozenset[str],
) -> tuple[dict[str, list[str]], dict[str, str] | None]:
    """What everyone is to hold in the end, and what has to move first (None: not known yet)."""
    members = sorted(members, key=lambda each: each.member)
    topics = subscribed(members, topics)
    if "assignor-ignores-claims" in defects:
        read = _nothing
    equal = _same_topics(members)
    if not equal and "comparison-consumes-user-data" in defects:
        members = _read_up_to_first_difference(members)
    claims = resolve(members, topics, read, seen, defects)
    if equal and "trusts-every-claim" in defects:
        return legacy.build(topics, claims)
    places = Racks(members, partitions_of(topics), racks)
    if equal and "trusts-every-prior-assignment" not in defects:
        return constrained.build(topics, claims, places, defects)
    return general.build(topics, members, claims, places, read), None


def _nothing(metadata: Metadata) -> Claim:
    return Claim()


def _applied(metadata: Metadata) -> Claim:
    """Sticky's claim: what the member's last onAssignment brought, never cleared when it is lost (KIP-341)."""
    return metadata.user_data if isinstance(metadata.user_data, Claim) else Claim()


def _assign_sticky(
    members: Sequence[JoinedMember],
    topics: Mapping[str, int],
    racks: Mapping[str, tuple[str, ...]],
    *,
    seen: int = ABSENT,
    defects: frozenset[str] = frozenset(),
) -> Shares:
    """See `Assign`."""
    target, _ = _target(_applied, members, topics, racks, seen, defects)
    return shares_of(target)


def _owned(metadata: Metadata) -> Claim:
    """CooperativeSticky's claim: what is still owned; the generation from the protocol field (KIP-792), else from user data."""
    generation = metadata.generation
    if generation == ABSENT and isinstance(metadata.user_data, int):
        generation = metadata.user_data
    return Claim(metadata.owned, generation)


def _assign_cooperative(
    members: Sequence[JoinedMember],
    topics: Mapping[str, int],
    racks: Mapping[str, tuple[str, ...]],
    *,
    seen: int = ABSENT,
    defects: frozenset[str] = frozenset(),
) -> Shares:
    """See `Assign`."""
    target, moving = _target(_owned, members, topics, racks, seen, defects)
    if "assignor-skips-adjust" in defects:
        return shares_of(target)
    owned = {each.member: each.metadata.owned for each in members}
    spoiled = spoil(target, owned, defects)
    if moving is None or spoiled is not target or "assignor-ignores-claims" in defects:
        moving = transferring(owned, spoiled)
    return shares_of(adjust(spoiled, moving))


STICKY = Assignor(name="sticky", protocols=("EAGER",), assign=_assign_sticky, claim=_applied, user_data=lambda applied: applied)
COOPERATIVE_STICKY = Assignor(
    name="cooperative-sticky",
    protocols=("COOPERATIVE", "EAGER"),
    assign=_assign_cooperative,
    claim=_owned,
    user_data=lambda applied: applied.generation if applied else ABSENT,
)


def cooperative_violation(
    assignor: str, members: Sequence[JoinedMember], shares: Mapping[str, Sequence[str]], defects: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """The partitions that ``shares`` gives one member while taking them from another, by raw claims; () is valid.

    A leader in COOPERATIVE mode throws IllegalStateException when there are any. CooperativeSticky is exempt since 2.8.2,
    3.0.1 and 3.1.0 (KAFKA-13406). Source: ConsumerCoordinator.validateCooperativeAssignment.
    """
    if assignor == COOPERATIVE_STICKY.name and "validates-built-in-assignor" not in defects:
        return ()
    return tuple(sorted(transferring({each.member: each.metadata.owned for each in members}, shares), key=split))
