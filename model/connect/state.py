"""A Connect worker between two steps, and one step of it under way.

Names are those of Kafka's AbstractCoordinator, WorkerCoordinator and DistributedHerder. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal, NamedTuple, cast

from ...spec.events import Assigned, Closed, Lost, Owned, Resources, Revoked
from ..messages import JoinRequest, Metadata, Request, Share, SyncRequest
from ..process import Happening, Turn
from .leader import Asked, Header, Lead, Leader, Policy, Release
from .units import Connectors, on_the_wire

Protocol = Literal["eager", "compatible", "sessioned"]
EAGER = "default"
"""The name on the wire of protocol version 0, which knows no incremental assignment."""

OFFERS: dict[Protocol, tuple[str, ...]] = {
    "eager": (EAGER,),
    "compatible": ("compatible", EAGER),
    "sessioned": ("sessioned", "compatible", EAGER),
}
RETRY_BACKOFF_MS = 100
"""retry.backoff.ms"""

RETRIES = 5
"""How often a worker that can't read the config topic backs off before it gives up its work."""


class ConfigState(NamedTuple):
    """What was read of the config topic: the connectors with their numbers of tasks, up to ``offset``."""

    connectors: Connectors = ()
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Configured:
    """The worker has read the config topic up to ``offset``: these are the connectors, with their numbers of tasks."""

    connectors: Connectors
    offset: int


WorkerHappening = Happening | Configured


class WorkerState(NamedTuple):
    """What a worker adds to its claim in JoinGroup: its config offset, and its whole assignment (None before the first)."""

    offset: int
    assignment: Share | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One worker. ``process`` names the process uniquely, ``connectors`` were configured before it started.

    ``protocol`` is connect.protocol, ``max_delay_ms`` scheduled.rebalance.max.delay.ms, ``sync_timeout_ms``
    worker.sync.timeout.ms. ``defects`` names mutations, besides the known defects of the ``release`` class. ``leads_with``
    stands in for the leader's assignor of the incremental protocols.
    """

    process: str
    group: str
    client: str = ""
    connectors: Connectors = ()
    offset: int = 0
    protocol: Protocol = "sessioned"
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 60_000
    max_delay_ms: int = 300_000
    sync_timeout_ms: int = 3_000
    release: Release = "K6"
    join_version: int = 9
    defects: frozenset[str] = frozenset()
    leads_with: Lead | None = field(default=None, compare=False, repr=False)

    @property
    def policy(self) -> Policy:
        return Policy(release=self.release, max_delay_ms=self.max_delay_ms, defects=self.defects)


class MemberState(Enum):
    """Where the member stands: UNJOINED, JoinGroup sent, SyncGroup sent, STABLE."""

    UNJOINED = "unjoined"
    PREPARING_REBALANCE = "preparing"
    COMPLETING_REBALANCE = "completing"
    STABLE = "stable"


class Membership(NamedTuple):
    """The generation as the member knows it: its number, the member's id, and the protocol."""

    generation: int = -1
    member: str = ""
    protocol: str | None = None


OUTSIDE = Membership()


@dataclass(frozen=True, slots=True)
class InFlight:
    """A request that waits for its answer, and the membership at the time of sending, to tell a stale answer."""

    correlation: int
    request: Request
    sent: Membership


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The coordinator has been unknown ``since`` then, and is looked for at ``retry``."""

    since: int
    retry: int


Occasion = Literal["complete", "prepare", "started", "cut off", "unsynced", "close"]


@dataclass(frozen=True, slots=True)
class Stopping:
    """Connectors and tasks are being stopped, and why."""

    units: Resources
    occasion: Occasion

    @property
    def orderly(self) -> bool:
        """Whether the work was taken away in order, and is not given up as lost."""
        return self.occasion not in ("cut off", "unsynced")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker between two steps.

    ``configs`` is what it has read of the config topic, ``sent_configs`` what it had read when it last joined: a leader
    assigns that. ``membership`` is forgotten with the session, ``identity`` is the last one: events are told in its name.
    ``snapshot`` is its assignment, with the delay and the header that came with it; ``running`` what runs. ``synced`` is
    a share that SyncGroup brought and that has yet to be applied. ``completed`` is the last generation applied,
    ``leader`` its memory of those that it led, ``led`` what an assignor from elsewhere (`Config.leads_with`) was asked.
    ``timer`` is when the scheduled delay ends.

    ``resolved``: the work of the last generation was started. ``current``: the protocol of the last generation.
    ``unreachable``: the coordinator is unknown. ``reading``: since when it waits for the config topic,
    ``backoff``: until when it stays out of the group for that, after which it has ``retries`` left.
    """

    config: Config
    configs: ConfigState
    sent_configs: ConfigState
    current: str
    state: MemberState = MemberState.UNJOINED
    membership: Membership = OUTSIDE
    identity: Membership = OUTSIDE
    rejoin: bool = True
    prepared: bool = False
    synced: Share | None = None
    snapshot: Share | None = None
    running: Resources = ()
    completed: int = -1
    leader: Leader = field(default_factory=Leader)
    led: tuple[Asked, ...] = ()
    resolved: bool = True
    timer: int | None = None
    stopping: Stopping | None = None
    unreachable: Unreachable | None = None
    reading: int | None = None
    backoff: int | None = None
    retries: int = RETRIES
    closed: bool = False
    in_flight: tuple[InFlight, ...] = ()
    correlation: int = 0

    @property
    def member(self) -> str:
        """The member id, the last one if the session is lost; empty before the first."""
        return self.identity.member

    @property
    def joined(self) -> bool:
        """Whether the heartbeat thread has something to do."""
        return self.state in (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)

    @property
    def joining(self) -> bool:
        """Whether JoinGroup or SyncGroup waits for its answer."""
        return any(isinstance(each.request, JoinRequest | SyncRequest) for each in self.in_flight)

    @property
    def deadline(self) -> int | None:
        """When a tick will have something to do by the worker's own clock; None if never."""
        c = self.config
        lost = self.unreachable
        pending = (
            self.timer,
            None if lost is None or self.snapshot is None else lost.since + c.heartbeat_interval_ms,
            None if lost is None or self.in_flight else lost.retry,
            None if self.reading is None else self.reading + c.sync_timeout_ms,
            self.backoff,
        )
        return min((at for at in pending if at is not None), default=None)

    def has(self, defect: str) -> bool:
        return self.config.policy.has(defect)


class Step:
    """One step under way: the state so far, and what was sent, shown and thrown."""

    def __init__(self, worker: Worker, now: int) -> None:
        self.worker = worker
        self.now = now
        self.requests: list[tuple[int, Request]] = []
        self.events: list[Assigned | Revoked | Lost | Owned | Closed] = []
        self.error: str | None = None

    def change(self, **fields: Any) -> None:
        """Set fields of the worker."""
        self.worker = replace(self.worker, **fields)

    def send(self, request: Request) -> None:
        """Send a request to the coordinator."""
        w = self.worker
        number = w.correlation + 1
        self.change(correlation=number, in_flight=(*w.in_flight, InFlight(number, request, w.membership)))
        self.requests.append((number, request))

    def tell(self, kind: type[Assigned | Revoked | Lost | Owned | Closed], resources: Resources | None = None) -> None:
        """Show an observer what happened, in the name of the last generation that the worker was in."""
        w = self.worker
        known = w.identity.generation >= 0
        self.events.append(
            kind(
                group=w.config.group,
                generation=w.identity.generation if known else None,
                member=w.identity.member if known else None,
                client=w.config.client,
                resources=resources,
            )
        )

    def turn(self) -> Turn[Worker]:
        return Turn(self.worker, tuple(self.requests), tuple(self.events), self.error)


def header(share: Share) -> Header:
    """What travelled with an assignment."""
    return cast(Header, share.user_data)


def reported(user_data: Hashable) -> WorkerState:
    """What a member added to its claim."""
    return cast(WorkerState, user_data)


def metadata(worker: Worker) -> tuple[tuple[str, Metadata], ...]:
    """What the worker says of itself, per protocol. Version 0 names no assignment. Source: WorkerCoordinator.metadata."""
    offset, snapshot = worker.configs.offset, worker.snapshot
    incremental = Metadata(owned=on_the_wire(snapshot.resources) if snapshot else (), user_data=WorkerState(offset, snapshot))
    plain = Metadata(user_data=WorkerState(offset))
    return tuple((name, plain if name == EAGER else incremental) for name in OFFERS[worker.config.protocol])
