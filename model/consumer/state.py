"""The consumer's state, and one step of it under way.

Names are those of Kafka's AbstractCoordinator, ConsumerCoordinator and SubscriptionState.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal

from ...spec.events import Assigned, Closed, Lost, Owned, Resources, Revoked
from ..assignors.base import Claim
from ..messages import Request, Share
from ..process import Turn
from .config import Asked, Config

CallbackKind = Literal["revoked", "lost", "assigned"]
Occasion = Literal["prepare", "complete", "unsubscribe", "close"]


class MemberState(Enum):
    """Where the member stands: UNJOINED, JoinGroup sent, SyncGroup sent, STABLE."""

    UNJOINED = "unjoined"
    PREPARING_REBALANCE = "preparing"
    COMPLETING_REBALANCE = "completing"
    STABLE = "stable"


@dataclass(frozen=True, slots=True)
class Generation:
    """The membership as the member knows it. It was *reset* if it has neither id nor protocol, whatever the member id."""

    id: int = -1
    member: str = ""
    protocol: str | None = None

    @property
    def was_reset(self) -> bool:
        return self.id == -1 and self.protocol is None


NO_GENERATION = Generation()


@dataclass(frozen=True, slots=True)
class InFlight:
    """A request that waits for its answer, and the generation at the time of sending, to tell a stale answer."""

    correlation: int
    request: Request
    sent: Generation


@dataclass(frozen=True, slots=True)
class Waiting:
    """The join future: JoinGroup, then SyncGroup, is in flight."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The join future: SyncGroup brought ``share``; onJoinComplete has yet to end without an exception."""

    share: Share | None


@dataclass(frozen=True, slots=True)
class Failed:
    """The join future: it ended with ``exception``. ``then``: loop again at once, back off, or throw it from poll."""

    exception: str
    then: Literal["again", "backoff", "throw"]


JoinFuture = Waiting | Succeeded | Failed


@dataclass(frozen=True, slots=True)
class PrepareCommit:
    """The commit that onJoinPrepare waits for until ``deadline``, sent as ``correlation`` (None: to be sent again)."""

    deadline: int
    correlation: int | None = None
    done: bool = False


@dataclass(frozen=True, slots=True)
class Callback:
    """The rebalance callback that runs now. ``raised``: an earlier callback of the same occasion did."""

    kind: CallbackKind
    partitions: Resources
    occasion: Occasion
    raised: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a leader watches: partition count, and with client.rack the replicas' racks, of each topic of the group."""

    watched: tuple[str, ...]
    topics: tuple[tuple[str, int], ...]
    racks: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A consumer between two steps.

    ``assignment`` is what it believes it owns (SubscriptionState), sorted. ``identity`` is the last generation that a
    JoinGroup answer brought: events are told in its name, also after a reset. ``applied`` is what its assignor was last told
    by onAssignment, kept when the partitions are lost; ``seen`` is the highest generation that its assignor read as leader,
    ``led`` what an assignor from elsewhere (`Config.leads_with`) was asked.
    ``heard`` is when the session timer last began anew. ``fenced``: the heartbeat thread failed, the next poll throws.
    ``closing``: close waits for its commit or its callback.
    """

    config: Config
    subscription: tuple[str, ...]
    member_state: MemberState = MemberState.UNJOINED
    generation: Generation = NO_GENERATION
    identity: Generation = NO_GENERATION
    assignment: Resources = ()
    rejoin_needed: bool = True
    rejoin_reason: str = ""
    needs_join_prepare: bool = True
    join: JoinFuture | None = None
    prepare_commit: PrepareCommit | None = None
    joined_subscription: tuple[str, ...] | None = None
    is_leader: bool = False
    assignment_snapshot: Snapshot | None = None
    applied: Claim | None = None
    seen: int = -1
    led: tuple[Asked, ...] = ()
    callback: Callback | None = None
    coordinator_known: bool = False
    heard: int = 0
    fenced: bool = False
    closing: bool = False
    closed: bool = False
    in_flight: tuple[InFlight, ...] = ()
    correlation: int = 0

    @property
    def rebalancing(self) -> bool:
        return self.member_state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)

    @property
    def joined(self) -> bool:
        """Whether the heartbeat thread has something to do."""
        return self.member_state in (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)

    def has(self, defect: str) -> bool:
        return defect in self.config.defects


class Step:
    """One step under way: the state so far, and what was sent, shown and thrown."""

    def __init__(self, consumer: Consumer, now: int) -> None:
        self.consumer = consumer
        self.now = now
        self.requests: list[tuple[int, Request]] = []
        self.events: list[Assigned | Revoked | Lost | Owned | Closed] = []
        self.error: str | None = None

    def change(self, **fields: Any) -> None:
        """Set fields of the consumer."""
        self.consumer = replace(self.consumer, **fields)

    def send(self, request: Request) -> int:
        """Send a request to the coordinator; returns its correlation number."""
        c = self.consumer
        number = c.correlation + 1
        self.change(correlation=number, in_flight=(*c.in_flight, InFlight(number, request, c.generation)))
        self.requests.append((number, request))
        return number

    def tell(self, kind: type[Assigned | Revoked | Lost | Owned | Closed], resources: Resources | None = None) -> None:
        """Show an observer what happened, in the name of the last generation that the member was in."""
        c = self.consumer
        known = c.identity != NO_GENERATION
        self.events.append(
            kind(
                group=c.config.group,
                generation=c.identity.id if known else None,
                member=c.identity.member if known else None,
                instance=c.config.instance,
                client=c.config.client,
                resources=resources,
            )
        )

    def turn(self) -> Turn[Consumer]:
        return Turn(self.consumer, tuple(self.requests), tuple(self.events), self.error)


def snapshot(watched: tuple[str, ...], topics: Mapping[str, int], racks: Mapping[str, tuple[str, ...]], rack: str | None) -> Snapshot:
    """What metadata says of the ``watched`` topics; racks only matter to a member that has one (KAFKA-14867)."""
    known = tuple((topic, topics[topic]) for topic in watched if topic in topics)
    partitions = (f"{topic}-{n}" for topic, count in known for n in range(count)) if rack is not None else ()
    return Snapshot(watched, known, tuple((p, tuple(sorted(set(racks.get(p, ()))))) for p in partitions))
