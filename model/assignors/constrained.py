"""The sticky assignors when all members subscribe the same topics (AbstractStickyAssignor.ConstrainedAssignmentBuilder).

With N partitions and C members everyone gets ``N // C``, and ``N % C`` members one more. Source: Kafka 3.8 to 4.x;
KAFKA-9987, KIP-881 (racks), KAFKA-15170 (what racks revoke counts as revoked), KAFKA-16277 (claims sorted by id).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from .base import AssignorFailed, by_id, missing, partitions_of, split
from .claims import Claims
from .racks import Racks

Target = tuple[dict[str, list[str]], dict[str, str]]
"""Partitions by member, and the new owner of each partition that has to leave another member first."""


def build(topics: Mapping[str, int], claims: Claims, racks: Racks, defects: frozenset[str] = frozenset()) -> Target:
    """The target for ``topics`` (sorted, partitions per topic). Raises `AssignorFailed` if the quotas can't be met."""
    builder = _Builder(topics, claims, racks, defects)
    builder.keep()
    left = racks.hardest_first(missing(partitions_of(topics), sorted(builder.assigned(), key=split)))
    builder.under.sort()
    builder.exact = deque(sorted(builder.exact))
    builder.deal(builder.deal_nearby(left) if racks.of_member else left)
    builder.check()
    return builder.assignment, builder.transferring


class _Builder:
    """The work in progress. ``over`` counts the members that hold more than ``low``; ``extras`` is how many may."""

    def __init__(self, topics: Mapping[str, int], claims: Claims, racks: Racks, defects: frozenset[str]) -> None:
        self._claims = claims
        self._racks = racks
        self._defects = defects
        self.low, self.extras = divmod(sum(topics.values()), len(claims.kept))
        self.high = self.low + (self.extras > 0)
        self.over = 0
        self.assignment: dict[str, list[str]] = {member: [] for member in claims.kept}
        self.transferring: dict[str, str] = {}
        self.under: list[str] = []
        self.exact: deque[str] = deque()
        self._revoked: dict[str, str] = {}

    def assigned(self) -> Iterable[str]:
        return (partition for partitions in self.assignment.values() for partition in partitions)

    def keep(self) -> None:
        """Phase 1: what each member claims stays with it, up to its quota."""
        for member, owned in self._claims.kept.items():
            far = {partition for partition in owned if self._racks.mismatch(member, partition)}
            if "rack-mismatch-not-withheld" not in self._defects:
                self._revoked.update(dict.fromkeys(far, member))
            claimed = [partition for partition in owned if partition not in far and partition not in self._claims.disputed]
            if "keeps-claims-as-sent" not in self._defects:
                claimed.sort(key=by_id)
            quota = self.low
            if len(claimed) < self.low:
                self.under.append(member)
            elif len(claimed) >= self.high and self.over < self.extras:
                quota = self.high
                self._one_more_over()
            elif self.over < self.extras:
                self.exact.append(member)
            self.assignment[member] = claimed[:quota]
            self._revoked.update(dict.fromkeys(claimed[quota:], member))

    def deal_nearby(self, partitions: Iterable[str]) -> list[str]:
        """Phase 2: in turn to members with a replica in their rack; returns what found no such member."""
        careless = "rack-filling-ignores-quota" in self._defects
        left: list[str] = []
        turn = 0
        for partition in partitions:
            nearby = (index % len(self.under) for index in range(turn, turn + len(self.under)))
            index = next((each for each in nearby if self._racks.near(self.under[each], partition)), None)
            if index is not None:
                member = self.under[index]
                count = len(self.assignment[member]) + 1
                if count >= self.low:
                    self.under.remove(member)
                    if count < self.high and (careless or self.over < self.extras):
                        self.exact.append(member)
                else:
                    index += 1
                turn = index % len(self.under) if self.under else 0
            else:
                member = next((each for each in self.exact if self._racks.near(each, partition)), None)
                if member is None:
                    left.append(partition)
                    continue
                self.exact.remove(member)
                if not careless:
                    self._one_more_over()
            self._give(partition, member)
        return left

    def deal(self, partitions: Iterable[str]) -> None:
        """Phase 3: in turn to the members below ``low``, then one each to members at it."""
        turn = 0
        for partition in partitions:
            if self.under:
                turn = turn if turn < len(self.under) else 0
                member = self.under[turn]
            elif self.exact:
                member = self.exact.popleft()
            else:
                raise AssignorFailed("No more unfilled consumers to be assigned.")
            count = self._give(partition, member)
            if count == self.low:
                del self.under[turn]
                self.exact.append(member)
            else:
                turn += 1
                self.over += count == self.high

    def check(self) -> None:
        """Phase 4: whoever is still below its quota."""
        if self.under and self.over != self.extras:
            raise AssignorFailed("We haven't reached the expected number of members with more than the minQuota partitions")
        for member in self.under:
            if len(self.assignment[member]) != self.low:
                raise AssignorFailed(f"Consumer: [{member}] doesn't reach minQuota partitions")

    def _one_more_over(self) -> None:
        self.over += 1
        if self.over == self.extras:
            self.exact.clear()

    def _give(self, partition: str, member: str) -> int:
        self.assignment[member].append(partition)
        if self._revoked.get(partition, member) != member or partition in self._claims.disputed:
            self.transferring[partition] = member
        return len(self.assignment[member])
