"""The sticky assignors when subscriptions differ (AbstractStickyAssignor.GeneralAssignmentBuilder).

Keeps what can stay, gives the rest to the least loaded, then moves single partitions until nothing improves the balance.
Source: Kafka 3.8 to 4.x; KAFKA-12675, KAFKA-15106 (what counts as balanced), KIP-341 (prior generations), KIP-881 (racks).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from ..messages import JoinedMember, Metadata
from .base import AssignorFailed, Claim, missing, partitions_of, split
from .claims import Claims
from .racks import Racks


def build(
    topics: Mapping[str, int], members: Sequence[JoinedMember], claims: Claims, racks: Racks, read: Callable[[Metadata], Claim]
) -> dict[str, list[str]]:
    """The target for ``topics`` (sorted, partitions per topic); ``members`` are sorted by member id."""
    builder = _Builder(topics, members, claims, racks, _previous_owners(members, read, claims.highest))
    builder.keep()
    builder.balance()
    return builder.assignment


def _previous_owners(members: Sequence[JoinedMember], read: Callable[[Metadata], Claim], highest: int) -> dict[str, str]:
    """Who claims each partition from the newest generation before the ``highest``.

    As in Kafka it does not matter whether that member still subscribes the topic.
    """
    newest: dict[str, tuple[int, str]] = {}
    for member in members:
        claim = read(member.metadata)
        if claim.generation < highest:
            for partition in claim.partitions:
                if partition not in newest or claim.generation > newest[partition][0]:
                    newest[partition] = (claim.generation, member.member)
    return {partition: member for partition, (_, member) in newest.items()}


class _Moves:
    """What this run moved, to move no partition of a topic from A to B while another one goes from B to A (PartitionMovements)."""

    def __init__(self) -> None:
        self._moved: dict[str, tuple[str, str]] = {}

    def instead(self, partition: str, giver: str, taker: str) -> str:
        """The partition to move so that ``taker`` gains one of the topic from ``giver``."""
        giver = self._moved[partition][0] if partition in self._moved else giver
        topic = split(partition)[0]
        back = [each for each, way in self._moved.items() if way == (taker, giver) and split(each)[0] == topic]
        return min(back, key=split) if back else partition

    def record(self, partition: str, giver: str, taker: str) -> None:
        origin = self._moved.pop(partition, (giver, ""))[0]
        if origin != taker:
            self._moved[partition] = (origin, taker)


class _Builder:
    """The work in progress; ``scope`` are the members that reassignment may still touch."""

    def __init__(
        self, topics: Mapping[str, int], members: Sequence[JoinedMember], claims: Claims, racks: Racks, previous: Mapping[str, str]
    ) -> None:
        self._topics = topics
        self._racks = racks
        self._previous = previous
        self._moves = _Moves()
        self._wants = {each.member: [topic for topic in topics if topic in each.metadata.topics] for each in members}
        self._takers = {topic: [member for member, wants in self._wants.items() if topic in wants] for topic in topics}
        scarce_first = sorted(topics, key=lambda topic: (len(self._takers[topic]), topic))
        self._all = partitions_of({topic: topics[topic] for topic in scarce_first})
        self._new: list[str] = []
        self._revoking = False
        self._scope = set(claims.kept)
        self.assignment = {member: list(partitions) for member, partitions in claims.kept.items()}
        self._owner = {partition: member for member, partitions in claims.kept.items() for partition in partitions}

    def keep(self) -> None:
        """Drop claims that became invalid; list what nobody holds."""
        for member, partitions in self.assignment.items():
            valid = [each for each in partitions if split(each)[0] in self._wants[member] and not self._racks.mismatch(member, each)]
            self._revoking |= len(valid) < len(partitions)
            self.assignment[member] = valid
        held = [partition for partitions in self.assignment.values() for partition in partitions]
        held.sort(key=lambda partition: (len(self._takers[split(partition)[0]]), split(partition)))
        self._new = list(missing(self._all, held))

    def balance(self) -> None:
        initial = not any(self.assignment.values())
        left = self._new
        if self._racks.of_member:
            left = [partition for partition in left if not self._give_to_least_loaded(partition, near=True)]
        for partition in left:
            self._give_to_least_loaded(partition)

        contested = [partition for partition in self._all if len(self._takers[split(partition)[0]]) >= 2]
        contested_set = set(contested)
        self._scope = {member for member in self.assignment if self._can_take_part(member)}
        before = {member: list(partitions) for member, partitions in self.assignment.items()}
        if not self._revoking:
            self._reassign([partition for partition in self._new if partition in contested_set])
        if self._reassign(contested) and not initial and self._imbalance(self.assignment) >= self._imbalance(before):
            self.assignment = before

    def _load(self, member: str) -> int:
        return len(self.assignment[member])

    def _least_loaded_first(self) -> list[str]:
        return sorted(self._scope, key=lambda member: (self._load(member), member))

    def _give_to_least_loaded(self, partition: str, near: bool = False) -> bool:
        for member in self._least_loaded_first():
            if split(partition)[0] in self._wants[member] and not (near and self._racks.mismatch(member, partition)):
                self.assignment[member].append(partition)
                self._owner[partition] = member
                return True
        return False

    def _reach(self, member: str) -> int:
        """How many partitions the member could hold at most."""
        return sum(self._topics[topic] for topic in self._wants[member])

    def _can_take_part(self, member: str) -> bool:
        contested = any(len(self._takers[split(partition)[0]]) >= 2 for partition in self.assignment[member])
        return self._load(member) < self._reach(member) or contested

    def _is_balanced(self) -> bool:
        loads = [self._load(member) for member in self._scope]
        if min(loads) >= max(loads) - 1:
            return True
        owner = {partition: member for member in sorted(self._scope) for partition in self.assignment[member]}
        return all(
            self._load(owner[partition]) <= self._load(member) + 1
            for member in self._scope
            if self._load(member) != self._reach(member)
            for partition in partitions_of({topic: self._topics[topic] for topic in self._wants[member]})
        )

    def _reassign(self, partitions: Sequence[str]) -> bool:
        """Pass over ``partitions`` until a pass moves none; whether any moved."""
        moved = False
        modified = True
        while modified:
            modified = False
            for partition in partitions:
                if self._is_balanced():
                    break
                taker = self._better_owner(partition)
                if taker is not None:
                    self._move(self._moves.instead(partition, self._owner[partition], taker), taker)
                    modified = moved = True
        return moved

    def _better_owner(self, partition: str) -> str | None:
        """The previous owner if it has two partitions less, else the least loaded taker if any taker has (racks change neither)."""
        load = self._load(self._owner[partition])
        previous = self._previous.get(partition)
        if previous is not None:
            if previous not in self._scope:
                raise AssignorFailed(f"NullPointerException: {previous} takes no part, though it owned {partition}")
            if load > self._load(previous) + 1:
                return previous
        takers = self._takers[split(partition)[0]]
        if all(load <= self._load(taker) + 1 for taker in takers):
            return None
        return next(member for member in self._least_loaded_first() if member in takers)

    def _move(self, partition: str, taker: str) -> None:
        giver = self._owner[partition]
        self._moves.record(partition, giver, taker)
        self.assignment[giver].remove(partition)
        self.assignment[taker].append(partition)
        self._owner[partition] = taker

    def _imbalance(self, assignment: Mapping[str, Sequence[str]]) -> int:
        return sum(abs(len(assignment[one]) - len(assignment[other])) for one, other in combinations(sorted(self._scope), 2))
