"""One input of a partition assignor, and what an assignor answers: version 1 of the assignor case (`kipcheck schema case`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ABSENT = -1
"""The generation of a claim that names none."""

InputClass = Literal[
    "clean",
    "stale generation",
    "double claim",
    "shrunk topic",
    "recreated topic",
    "deleted topic",
    "unsubscribed owner",
    "duplicate topic",
    "static members",
    "mixed metadata versions",
    "racks",
    "hostile metadata",
    "leader reused",
    "history",
    "trace",
    "given",
]
"""What is special about an input; each finding names it. ``given``: the input of a ``--cases`` file."""


class CaseError(ValueError):
    """What is wrong with a case, and how to mend it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What the leader knows of a member.

    ``owned`` is the claim: topic partitions such as ``orders-0``, and ``generation`` the one in which it was given them,
    `ABSENT` when it names none. ``version`` is that of its JoinGroup metadata (ConsumerProtocolSubscription, 0 to 3):
    0 carries no claim, 1 no generation, 2 no rack. ``metadata`` are those bytes where they are not what the other fields
    encode to: hostile ones.
    """

    id: str
    instance: str | None = None
    subscribed: tuple[str, ...] = ()
    owned: tuple[str, ...] = ()
    generation: int = ABSENT
    rack: str | None = None
    version: int = 3
    metadata: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call of an assignor.

    ``topics`` are partition counts, ``racks`` the racks that hold a replica, by partition. ``before`` are calls that the
    same leader answered earlier, oldest first.
    """

    id: str
    topics: Mapping[str, int]
    members: tuple[Member, ...]
    racks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    input_class: InputClass = "clean"
    before: tuple[Case, ...] = ()

    @property
    def hostile(self) -> bool:
        """Whether a member's metadata are bytes of their own."""
        return any(member.metadata is not None for member in self.members)

    @property
    def names_racks(self) -> bool:
        """Whether a member says where it is."""
        return any(member.rack for member in self.members)

    @property
    def racked(self) -> bool:
        """Whether racks can count: a member and the replicas of a partition have them."""
        return self.names_racks and bool(self.racks)


Assignment = Mapping[str, tuple[str, ...]]
"""Topic partitions by member id, as answered: in any order, perhaps with duplicates."""

How = Literal["error", "crash", "hang", "flood", "nonsense"]


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """What came instead of an assignment.

    ``error``: the assignor said so or threw; ``crash``: its process ended (``says`` names status or signal and its last
    words); ``hang``: nothing came in time; ``flood``: more than it was asked for, or a line beyond any bound;
    ``nonsense``: an answer that can't be read. ``says`` is one line.
    """

    how: How
    says: str


Answer = Assignment | NoAnswer
