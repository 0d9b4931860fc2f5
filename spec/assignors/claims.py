"""Who owns what before an assignment: the members' claims, resolved.

A claim of an older generation is not ownership: of several claimants of a partition those of the newest generation own it, as far
as anybody can know. If they are several, each of them may. Source: KIP-792, AbstractStickyAssignor.allSubscriptionsEqual.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from .case import Assignment, Case


@dataclass(frozen=True)
class Claims:
    """``claimants``: the members that say they own a partition, by partition, and ``newest`` those of the newest generation among them."""

    claimants: Mapping[str, tuple[str, ...]]
    newest: Mapping[str, tuple[str, ...]]

    @cached_property
    def disputed(self) -> frozenset[str]:
        """Partitions that several members claim, in whatever generations."""
        return frozenset(partition for partition, members in self.claimants.items() if len(members) > 1)


def claims(case: Case) -> Claims:
    """What the members of ``case`` claim."""
    by_partition: dict[str, list[tuple[int, str]]] = {}
    for member in case.members:
        for partition in member.owned:
            by_partition.setdefault(partition, []).append((member.generation, member.id))
    newest = {partition: max(who)[0] for partition, who in by_partition.items()}
    return Claims(
        claimants={partition: tuple(member for _, member in who) for partition, who in by_partition.items()},
        newest={p: tuple(member for generation, member in who if generation == newest[p]) for p, who in by_partition.items()},
    )


def existing(case: Case) -> frozenset[str]:
    """Every partition of a topic that somebody subscribes."""
    wanted = {topic for member in case.members for topic in member.subscribed}
    return frozenset(f"{topic}-{number}" for topic in wanted for number in range(case.topics.get(topic, 0)))


def equal_subscriptions(case: Case) -> bool:
    """Whether all members subscribe the same topics that exist."""
    known = {frozenset(topic for topic in member.subscribed if case.topics.get(topic)) for member in case.members}
    return len(known) <= 1


def same(one: Assignment, other: Assignment) -> bool:
    """Whether two assignments give everybody the same partitions."""
    return all(set(one.get(member, ())) == set(other.get(member, ())) for member in one.keys() | other.keys())
