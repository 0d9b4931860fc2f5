"""Range: topic by topic, contiguous blocks of partitions to the subscribers in order (RangeAssignor; racks: KIP-881, 3.5.0).

No global balance: with many small topics the first members get more. Stateless: claims and generations are ignored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from ..messages import JoinedMember
from .base import ABSENT, Assignor, Shares, by_instance, rack_awareness_pays, shares_of, subscribed

Consumers = tuple[tuple[str, str | None], ...]
"""The subscribers of a topic in order, with their racks."""


class _Topic:
    """One topic on its way to being assigned: what is left, and who may take how much."""

    def __init__(self, name: str, count: int, members: Sequence[JoinedMember], racks: Mapping[str, tuple[str, ...]]) -> None:
        self.name = name
        subscribers = [member for member in by_instance(members) if name in member.metadata.topics]
        self.consumers: Consumers = tuple((each.member, each.metadata.rack or None) for each in subscribers)
        self.left = [f"{name}-{number}" for number in range(count)]
        self._given = dict.fromkeys((member for member, _ in self.consumers), 0)
        self._quota, self._extras = divmod(count, len(subscribers))
        known = {rack for _, rack in self.consumers if rack}
        self.racks = {partition: frozenset(racks.get(partition, ())) for partition in self.left} if known else {}
        self.needs_racks = rack_awareness_pays(known, self.racks)
        self._rack = dict(self.consumers)

    def match(self, member: str, partition: str) -> bool:
        """A member without a rack matches everything."""
        rack = self._rack[member]
        return rack is None or rack in self.racks.get(partition, ())

    def room(self, member: str) -> int:
        return max(0, self._quota + (self._extras > 0) - self._given[member])

    def give(self, member: str, partitions: Sequence[str]) -> None:
        self._given[member] += len(partitions)
        self._extras -= self._given[member] > self._quota
        self.left = [partition for partition in self.left if partition not in partitions]


def assign(
    members: Sequence[JoinedMember],
    topics: Mapping[str, int],
    racks: Mapping[str, tuple[str, ...]],
    *,
    seen: int = ABSENT,
    defects: frozenset[str] = frozenset(),
) -> Shares:
    """See `Assign`. With racks: first what matches, topics with equal subscribers and counts together; then the rest."""
    states = [_Topic(name, count, members, racks) for name, count in subscribed(members, topics).items()]
    assignment: dict[str, list[str]] = {member.member: [] for member in members}

    def give(state: _Topic, member: str, partitions: Sequence[str]) -> None:
        state.give(member, partitions)
        assignment[member].extend(partitions)

    def ranges(state: _Topic, may: Callable[[str, str], bool]) -> None:
        for member, _ in state.consumers:
            block = [partition for partition in state.left if may(member, partition)][: state.room(member)]
            if block:
                give(state, member, block)

    def together(consumers: Consumers, count: int, group: Sequence[_Topic]) -> None:
        """Partition ``number`` of all topics in the group to the first member that matches and has room everywhere."""
        for number in range(count):
            for member, _ in consumers:
                if all(state.match(member, f"{state.name}-{number}") and state.room(member) for state in group):
                    for state in group:
                        give(state, member, [f"{state.name}-{number}"])
                    break

    if any(state.needs_racks for state in states):
        same_subscribers = defaultdict[Consumers, list[_Topic]](list)
        co_partitioned = defaultdict[tuple[Consumers, int], list[_Topic]](list)
        for state in states:
            same_subscribers[state.consumers].append(state)
            co_partitioned[state.consumers, len(state.racks)].append(state)
        for (consumers, count), group in co_partitioned.items():
            if len(group) > 1:
                together(consumers, count, same_subscribers[consumers] if "co-partitions-of-unequal-counts" in defects else group)
            elif group[0].needs_racks:
                ranges(group[0], group[0].match)
    for state in states:
        ranges(state, lambda member, partition: True)
    return shares_of(assignment)


RANGE = Assignor(name="range", protocols=("EAGER",), assign=assign)
