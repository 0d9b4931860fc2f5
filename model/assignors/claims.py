"""Step 0 of the sticky assignors: who keeps what several members claim (AbstractStickyAssignor.allSubscriptionsEqual).

Members come in order of member id where Kafka follows a hash map; the order decides nothing here as long as every
member reports its generation in the protocol field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..messages import JoinedMember, Metadata
from .base import ABSENT, Claim, split


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims that stand, by member; the ``disputed`` partitions, claimed twice in one generation; the highest generation."""

    kept: dict[str, list[str]]
    disputed: frozenset[str]
    highest: int


def resolve(
    members: Sequence[JoinedMember], topics: Mapping[str, int], read: Callable[[Metadata], Claim], seen: int, defects: frozenset[str]
) -> Claims:
    """The claims of ``members`` to partitions of ``topics``, as ``read`` from their subscriptions.

    Of two claims the newer one stands, of two equally old ones neither. A known weakness of Kafka is kept: the other
    claimant's generation is taken from the protocol field alone, so one that reports it in user data counts as absent.
    """
    claims = {each.member: read(each.metadata) for each in members}
    wanted = {
        member: (claim.generation, [partition for partition in claim.partitions if split(partition)[0] in topics])
        for member, claim in claims.items()
    }
    highest = max([seen, *(claim.generation for claim in claims.values())])
    if defects & {"trusts-every-claim", "trusts-every-prior-assignment"}:
        return Claims({member: partitions for member, (_, partitions) in wanted.items()}, frozenset(), highest)
    if defects & {"only-highest-generation-counts", "remembers-highest-generation", "first-of-highest-generation-dropped"}:
        return _of_highest_generation(wanted, seen if "remembers-highest-generation" in defects else ABSENT, highest, defects)
    field = {each.member: each.metadata.generation for each in members}
    kept: dict[str, list[str]] = {}
    owner: dict[str, str] = {}
    disputed: set[str] = set()
    for member, (generation, partitions) in wanted.items():
        kept[member] = []
        for partition in partitions:
            other = owner.get(partition)
            if other is None or generation > field[other]:
                kept[member].append(partition)
            elif generation == field[other]:
                disputed.add(partition)
            elif "loser-becomes-owner" not in defects:
                continue
            if other is not None and generation >= field[other] and partition in kept[other]:
                kept[other].remove(partition)
            owner[partition] = member
    return Claims(kept, frozenset(disputed), highest)


def _of_highest_generation(wanted: Mapping[str, tuple[int, list[str]]], floor: int, highest: int, defects: frozenset[str]) -> Claims:
    """The rule of 2.8.1 to 3.4.0: older claims are forgotten, as if nobody still owned those partitions."""
    maximum = max([floor, *(generation for generation, _ in wanted.values())])
    current = {member: list(partitions) if generation == maximum else [] for member, (generation, partitions) in wanted.items()}
    if "first-of-highest-generation-dropped" in defects and maximum > ABSENT:
        current[next(member for member, (generation, _) in wanted.items() if generation == maximum)] = []
    claimed = [partition for partitions in current.values() for partition in partitions]
    disputed = frozenset(partition for partition in claimed if claimed.count(partition) > 1)
    return Claims(
        {member: [each for each in partitions if each not in disputed] for member, partitions in current.items()}, disputed, highest
    )
