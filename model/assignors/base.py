"""What every assignor shares: its interface, what it reads from a member, and the orders in which Kafka sorts.

Partitions are named ``topic-id`` throughout. Where Kafka follows the order of a Java hash map (members by member id,
topics, sets of partitions), the model takes the sorted order, so that an assignment depends on its input alone. Kafka
gives no order there: who keeps one partition more, and which partition moves, may differ from a real run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ...spec.events import Resources
from ..messages import JoinedMember, Metadata

RebalanceProtocol = Literal["COOPERATIVE", "EAGER"]
Shares = dict[str, Resources]
"""Partitions by member id, one entry per member, each sorted by topic and id."""

ABSENT = -1
"""The generation of a claim that names none (AbstractStickyAssignor.DEFAULT_GENERATION)."""


class AssignorFailed(RuntimeError):
    """The IllegalStateException that leaves ``assign`` and surfaces from the leader's poll."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a member says that it was given, and in which generation."""

    partitions: Resources = ()
    generation: int = ABSENT


class Assign(Protocol):
    def __call__(
        self,
        members: Sequence[JoinedMember],
        topics: Mapping[str, int],
        racks: Mapping[str, tuple[str, ...]],
        *,
        seen: int = ABSENT,
        defects: frozenset[str] = frozenset(),
    ) -> Shares:
        """Divide the partitions of the subscribed ``topics`` (partitions per topic) among ``members`` (at least one).

        ``racks`` are the racks that hold a replica, by partition. ``seen`` is the highest generation that this leader's
        assignor object read in earlier calls: Kafka keeps it in a field. Raises `AssignorFailed`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Assignor:
    """A partition assignor under its Kafka ``name``, with the rebalance protocols that it supports.

    ``claim`` is what it reads from a member's subscription, and ``user_data`` what it adds to its own, given the last
    assignment that its member applied (None: none yet). Source: ConsumerPartitionAssignor.
    """

    name: str
    protocols: tuple[RebalanceProtocol, ...]
    assign: Assign
    claim: Callable[[Metadata], Claim] = lambda metadata: Claim()
    user_data: Callable[[Claim | None], Hashable] = lambda applied: None


def split(partition: str) -> tuple[str, int]:
    """The topic and the id of ``topic-id``; also the order by topic, then id."""
    topic, _, number = partition.rpartition("-")
    return topic, int(number)


def by_id(partition: str) -> tuple[int, str]:
    """The order by id, then topic."""
    topic, number = split(partition)
    return number, topic


def partitions_of(topics: Mapping[str, int]) -> list[str]:
    """Every partition, topics in the order given."""
    return [f"{topic}-{number}" for topic, count in topics.items() for number in range(count)]


def subscribed(members: Iterable[JoinedMember], topics: Mapping[str, int]) -> dict[str, int]:
    """The topics that somebody subscribes and that have partitions, sorted; the others are skipped silently."""
    wanted = {topic for member in members for topic in member.metadata.topics}
    return {topic: topics[topic] for topic in sorted(wanted) if topics.get(topic, 0) > 0}


def by_instance(members: Iterable[JoinedMember]) -> list[JoinedMember]:
    """Static members by group.instance.id, then dynamic ones by member id (AbstractPartitionAssignor.MemberInfo)."""
    return sorted(members, key=lambda each: (each.instance is None, each.instance or "", each.member))


def missing(everything: Iterable[str], kept: Iterable[str]) -> Iterator[str]:
    """``everything`` but ``kept``, by one walk along both; they share their order.

    As in Kafka the walk waits at a kept partition that does not exist, and takes all that come after for missing.
    """
    rest = iter(kept)
    expected = next(rest, None)
    for partition in everything:
        if partition == expected:
            expected = next(rest, None)
        else:
            yield partition


def shares_of(assignment: Mapping[str, Iterable[str]]) -> Shares:
    """The assignment as it is handed out."""
    return {member: tuple(sorted(partitions, key=split)) for member, partitions in assignment.items()}


def rack_awareness_pays(consumer_racks: set[str], partition_racks: Mapping[str, frozenset[str]]) -> bool:
    """Whether a rack-aware assignment can gain anything: members share racks with partitions that are not everywhere.

    Source: AbstractPartitionAssignor.useRackAwareAssignment, KIP-881.
    """
    everywhere = frozenset[str]().union(*partition_racks.values())
    return bool(consumer_racks & everywhere) and any(racks != everywhere for racks in partition_racks.values())
