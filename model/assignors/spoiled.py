"""Targets spoiled on purpose: what the invented defects of CooperativeSticky do to a good one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Target = Mapping[str, Sequence[str]]


def spoil(target: Target, owned: Target, defects: frozenset[str]) -> Target:
    """``target`` as the defects leave it; ``owned`` is what members claim, both by member."""
    if "assignor-forgets-what-it-withheld" in defects:
        return _claimed_only(target, owned)
    return _one_more_moved(target, owned) if "assignor-keeps-moving" in defects else target


def _claimed_only(target: Target, owned: Target) -> Target:
    claimed = {partition for partitions in owned.values() for partition in partitions}
    return {member: [each for each in partitions if each in claimed or not claimed] for member, partitions in target.items()}


def _one_more_moved(target: Target, owned: Target) -> Target:
    """Something that the member with the most keeps goes to the next member."""
    giver = max(target, key=lambda member: len(owned[member]))
    kept = [partition for partition in target[giver] if partition in owned[giver]]
    if len(target) == 1 or not kept:
        return target
    members = sorted(target)
    taker = members[(members.index(giver) + 1) % len(members)]
    changed = {giver: [each for each in target[giver] if each != kept[0]], taker: [*target[taker], kept[0]]}
    return {**target, **changed}
