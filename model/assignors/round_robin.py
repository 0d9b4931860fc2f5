"""RoundRobin: all partitions in order, dealt out to the members in turn, past who does not subscribe (RoundRobinAssignor).

Balanced when the subscriptions are equal; stateless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..messages import JoinedMember
from .base import ABSENT, Assignor, Shares, by_instance, partitions_of, shares_of, split, subscribed


def assign(
    members: Sequence[JoinedMember],
    topics: Mapping[str, int],
    racks: Mapping[str, tuple[str, ...]],
    *,
    seen: int = ABSENT,
    defects: frozenset[str] = frozenset(),
) -> Shares:
    """See `Assign`. The turn is not reset between topics."""
    order = by_instance(members)
    assignment: dict[str, list[str]] = {member.member: [] for member in order}
    turn = 0
    for partition in partitions_of(subscribed(members, topics)):
        while split(partition)[0] not in order[turn % len(order)].metadata.topics:
            turn += 1
        assignment[order[turn % len(order)].member].append(partition)
        turn += 1
    return shares_of(assignment)


ROUND_ROBIN = Assignor(name="roundrobin", protocols=("EAGER",), assign=assign)
