"""What the sticky assignors know of racks (AbstractStickyAssignor.RackInfo, KIP-881, 3.5.0)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..messages import JoinedMember
from .base import rack_awareness_pays


class Racks:
    """``of_member`` and ``of_partition`` are empty when racks are of no use: then nothing mismatches."""

    def __init__(self, members: Sequence[JoinedMember], partitions: Iterable[str], racks: Mapping[str, tuple[str, ...]]) -> None:
        of_member = {each.member: each.metadata.rack for each in members if each.metadata.rack}
        of_partition = {partition: frozenset(racks.get(partition, ())) for partition in partitions} if of_member else {}
        neighbours = Counter(of_member.values())
        self._consumers = {partition: sum(neighbours[rack] for rack in where) for partition, where in of_partition.items()}
        useful = rack_awareness_pays(set(of_member.values()), of_partition)
        self.of_member: Mapping[str, str] = of_member if useful else {}
        self.of_partition: Mapping[str, frozenset[str]] = of_partition if useful else {}

    def mismatch(self, member: str, partition: str) -> bool:
        return member in self.of_member and not self.near(member, partition)

    def near(self, member: str, partition: str) -> bool:
        """The member has a rack, and a replica is there."""
        return self.of_member.get(member) in self.of_partition.get(partition, ())

    def hardest_first(self, partitions: Iterable[str]) -> list[str]:
        """By the number of members near them, stably. Kafka sorts so even when racks turn out to be of no use."""
        return sorted(partitions, key=lambda partition: self._consumers.get(partition, 0))
