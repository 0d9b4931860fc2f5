"""The constrained builder of 2.5.1 to 2.8.1, kept for the defects that need it (KAFKA-12984)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from .base import AssignorFailed, partitions_of
from .claims import Claims
from .constrained import Target


def build(topics: Mapping[str, int], claims: Claims) -> Target:
    """As `constrained.build`: keeps every claim up to the larger quota, then swaps where a member came out short."""
    low, rest = divmod(sum(topics.values()), len(claims.kept))
    high = low + (rest > 0)
    assignment = {member: partitions[:high] for member, partitions in claims.kept.items()}
    revoked = {partition for partitions in claims.kept.values() for partition in partitions[high:]}
    held = {partition for partitions in assignment.values() for partition in partitions}
    left = deque(partition for partition in partitions_of(topics) if partition not in held)
    full = deque(member for member, partitions in assignment.items() if len(partitions) == high and len(partitions) >= low)
    room = deque(member for member, partitions in assignment.items() if len(partitions) == low)
    short = sorted(member for member, partitions in assignment.items() if len(partitions) < low)
    transferring: dict[str, str] = {}

    def give(member: str) -> None:
        partition = left.popleft()
        assignment[member].append(partition)
        if partition in revoked:
            transferring[partition] = member

    while short and left:
        for member in tuple(short):
            if left:
                give(member)
                if len(assignment[member]) == low:
                    room.append(member)
                    short.remove(member)
    for member in short:
        while len(assignment[member]) < low:
            if not full:
                raise AssignorFailed("Some consumers are under capacity but all partitions have been assigned")
            swapped = assignment[full.popleft()].pop(0)
            assignment[member].append(swapped)
            transferring[swapped] = member
        room.append(member)
    while left:
        if not room:
            raise AssignorFailed("Some partitions are unassigned but all consumers are at maximum capacity")
        give(room.popleft())
    return assignment, transferring
