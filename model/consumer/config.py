"""What a consumer is configured with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...spec.events import Resources
from ..messages import JoinedMember


@dataclass(frozen=True, slots=True)
class Release:
    """What client releases do differently on the wire; their defects are switches of their own.

    ``claims_owned``: the subscription carries the owned partitions (version 1, since 2.4). ``claims_generation``: it also
    carries the generation and the rack (versions 2 and 3, KIP-792 and KIP-881, since 3.4).
    """

    claims_owned: bool = True
    claims_generation: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of a leader's assignor: the members with their metadata, partitions per topic, and racks by partition."""

    members: tuple[JoinedMember, ...]
    topics: tuple[tuple[str, int], ...]
    racks: tuple[tuple[str, tuple[str, ...]], ...] = ()


Lead = Callable[[Asked, tuple[Asked, ...]], Mapping[str, Resources]]
"""An assignor from elsewhere: what it is asked now, and what this process has asked it before, oldest first.

Answers partitions by member; raises `AssignorFailed`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One consumer. ``process`` names the process uniquely; durations are milliseconds.

    ``topics`` is the first subscription, ``assignors`` names assignors of `kipcheck.model.assignors` in order of preference.
    ``instance`` is group.instance.id, ``leave_on_close`` internal.leave.group.on.close (Kafka Streams: False).
    ``max_poll_interval_ms`` travels as the rebalance timeout. ``defects`` names mutations. ``leads_with`` stands in for the
    assignor when this consumer leads; what it reads from members and tells them stays that of the named one.
    """

    process: str
    group: str
    client: str = ""
    instance: str | None = None
    topics: tuple[str, ...] = ()
    assignors: tuple[str, ...] = ("range", "cooperative-sticky")
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    auto_commit: bool = False
    rack: str | None = None
    join_version: int = 9
    leave_on_close: bool = True
    release: Release = field(default=Release())
    defects: frozenset[str] = frozenset()
    leads_with: Lead | None = field(default=None, compare=False, repr=False)

    @property
    def rebalance_timeout_ms(self) -> int:
        """What the coordinator gives the member to rejoin: a consumer sends its max.poll.interval.ms (KIP-62)."""
        return self.max_poll_interval_ms
