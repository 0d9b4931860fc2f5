"""What a leader has to read from its members' claims, and Kafka's sticky assignors do not (seen on 4.3.1).

Kafka counts claims to partitions that no longer exist, looks at the claims as sent where it decides what has to be withheld, and
lets its past and older generations hint at former owners. Without those claims the same algorithm keeps all promises.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from ...spec.assignors.case import ABSENT, Case, Member
from ...spec.assignors.claims import claims, existing

AS_KAFKA = "as-kafka"
"""In place of a defect: nothing is mended."""
OF_GENERATIONS = frozenset(
    {
        "only-highest-generation-counts",
        "loser-becomes-owner",
        "remembers-highest-generation",
        "trusts-every-claim",
        "trusts-every-prior-assignment",
    }
)
"""Defects that show only while generations differ."""


def mended(case: Case, defects: Set[str] = frozenset()) -> Case:
    """``case`` with the claims that stand, all of the newest generation: those to existing partitions, of their newest claimants.

    With defects `OF_GENERATIONS` only claims to partitions that do not exist go.
    """
    if AS_KAFKA in defects:
        return case
    standing, partitions = claims(case).newest, existing(case)
    newest = max((member.generation for member in case.members), default=ABSENT)
    as_sent = bool(OF_GENERATIONS & defects)

    def member(each: Member) -> Member:
        owned = tuple(p for p in each.owned if p in partitions and (as_sent or each.id in standing[p]))
        return replace(each, owned=owned, generation=newest if owned and not as_sent else each.generation)

    return replace(case, members=tuple(map(member, case.members)))


def remembers(defects: Set[str]) -> bool:
    """Whether the leader's past counts."""
    return AS_KAFKA in defects or "remembers-highest-generation" in defects
