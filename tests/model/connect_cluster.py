"""A small Connect cluster: workers of the model around a coordinator that does no more than they need, in one clock.

Messages take no time, callbacks end at once. `Cluster.events` is what a perfect observer of every party has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from kipcheck.model.choice import first
from kipcheck.model.connect import worker as connect
from kipcheck.model.connect.leader import Leader
from kipcheck.model.connect.units import units_of
from kipcheck.model.connect.worker import Config, Configured, Worker, WorkerHappening
from kipcheck.model.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinedMember,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    Metadata,
    Request,
    Response,
    Share,
    SyncRequest,
    SyncResponse,
)
from kipcheck.model.process import Answer, CallbackDone, Close, Disconnected, HeartbeatDue, Poll
from kipcheck.spec.events import (
    Assignment,
    Crashed,
    Event,
    Expire,
    GenerationStarted,
    Heartbeat,
    Join,
    Joined,
    Leave,
    MemberInfo,
    Rebalance,
    Sync,
    Synced,
)

GROUP = "connect"
HORIZON_MS = 10_000_000
SESSION_MS = 10_000


@dataclass
class Process:
    """One incarnation of a worker. ``deaf``: since when its requests hang; ``frozen``: it does nothing at all."""

    worker: Worker
    deaf: int | None = None
    frozen: bool = False
    lose_sync: Literal["answered", "unanswered"] | None = None
    waiting: dict[int, Request] = field(default_factory=dict[int, Request])


@dataclass
class Member:
    """A member as the coordinator knows it; ``call`` is its parked JoinGroup or SyncGroup."""

    process: Process
    join: JoinRequest
    call: int | None = None


@dataclass(frozen=True)
class Generation:
    """What one generation came to: who reported what, and who was given what."""

    at: int
    number: int
    leader: str
    configured: frozenset[str]
    reported: Mapping[str, tuple[str, ...]]
    shares: Mapping[str, Share]
    memory: Leader

    @property
    def delay(self) -> int:
        (delay,) = {share.delay_ms or 0 for share in self.shares.values()}
        return delay


class Cluster:
    """Say what happens; after each call everything has settled, and time has not moved but by `at` and `rest`."""

    def __init__(self, connectors: Mapping[str, int], **config: object) -> None:
        self.now = 0
        self.connectors = dict(connectors)
        self.offset = 1
        self.config = config
        self.running: dict[str, Process] = {}
        self.lives: dict[str, int] = {}
        self.members: dict[str, Member] = {}
        self.pending: set[str] = set()
        self.number = 0
        self.leader = ""
        self.protocol = ""
        self.phase = "Empty"
        self.shares: dict[str, Share] = {}
        self.history: list[Generation] = []
        self.events: list[Event] = []
        self.later: list[Callable[[], None]] = []
        self.tick = 0
        self.meanwhile: dict[int, Callable[[], None]] = {}
        self.waits = False

    # What a user or fate does.

    def start(self, *names: str, **config: object) -> None:
        for name in names:
            settings = {"connectors": tuple(sorted(self.connectors.items())), "offset": self.offset, **self.config, **config}
            self.running[name] = Process(
                connect.start(Config(process=f"{name}/{self.lives.get(name, 0)}", group=GROUP, client=name, **settings), self.now)  # pyright: ignore[reportArgumentType]
            )
        self.settle()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """What happens in this block happens before anybody reacts to it."""
        with self._silently():
            yield
        self.settle()

    def after_generation(self, number: int, action: Callable[[], None]) -> None:
        """The action happens as soon as that generation is assigned: whoever was to revoke has not rejoined yet."""
        self.meanwhile[number] = action

    def stop(self, *names: str) -> None:
        for name in names:
            self.happens(self.running[name], Close())
        self.settle()

    def crash(self, *names: str) -> None:
        """The process dies, and its session runs out at once."""
        for name in names:
            process = self.running.pop(name)
            self.tell(Crashed(group=GROUP, member=process.worker.member or None, client=name))
            self._expire(process)
        self.settle()

    def freeze(self, *names: str) -> None:
        """The process stands still with its work, and its session runs out."""
        for name in names:
            process = self.running[name]
            process.frozen = True
            self._expire(process)
        self.settle()

    def thaw(self, *names: str) -> None:
        for name in names:
            self.running[name].frozen = False
            self._drop_calls(self.running[name])
        self.settle()

    def cut(self, name: str) -> None:
        """The worker's connection breaks, and what it sends on the next one hangs."""
        process = self.running[name]
        process.deaf = self.now
        self._beat(process)
        self._drop_calls(process)
        self.settle()

    def mend(self, name: str) -> None:
        self.running[name].deaf = None
        self._drop_calls(self.running[name])
        self.settle()

    def _drop_calls(self, process: Process) -> None:
        for correlation in list(process.waiting):
            self.happens(process, Disconnected(correlation))

    def lose_next_sync(self, name: str, *, answered: bool = False) -> None:
        """The worker won't see the answer to its next SyncGroup; an observer does if the coordinator ``answered``."""
        self.running[name].lose_sync = "answered" if answered else "unanswered"

    def configure(self, **connectors: int | None) -> None:
        """Create, resize or (None) delete connectors; every worker reads it at once."""
        self.offset += 1
        for name, tasks in connectors.items():
            if tasks is None:
                self.connectors.pop(name, None)
            else:
                self.connectors[name] = tasks
        for process in self.running.values():
            self.happens(process, Configured(tuple(sorted(self.connectors.items())), self.offset))
        self.settle()

    def at(self, now: int) -> None:
        """Let time pass until ``now``, timers included; a worker that is cut off loses its session."""
        while due := [moment for moment in self._deadlines() if self.now < moment <= now]:
            self.now = min(due)
            for process in list(self.running.values()):
                if process.deaf is not None and self.now >= process.deaf + SESSION_MS:
                    self._expire(process)
            self.settle()
        self.now = now
        self.settle()

    def _deadlines(self) -> Iterator[int]:
        for process in self.running.values():
            if process.worker.deadline is not None and not process.frozen:
                yield process.worker.deadline
            if process.deaf is not None:
                yield process.deaf + SESSION_MS

    def rest(self) -> None:
        """Let time pass until no timer is left, and then a little."""
        self.at(self.now + HORIZON_MS)

    def owned(self, name: str) -> tuple[str, ...]:
        return connect.owned(self.running[name].worker)

    # The machinery.

    def settle(self) -> None:
        if self.waits:
            return
        before: object = None
        for _ in range(2000):
            if self.phase == "Stable" and self.number in self.meanwhile:
                with self._silently():
                    self.meanwhile.pop(self.number)()
            for process in list(self.running.values()):
                if process.worker.closed:
                    continue
                if not process.frozen:
                    while connect.busy(process.worker):
                        self.happens(process, CallbackDone())
                    self.happens(process, Poll({}, {}))
                    unaware = self.phase == "Preparing" or process.worker.member not in self.members
                    if unaware and not process.worker.rejoin:
                        self._beat(process)
            for process in [p for p in self.running.values() if p.worker.closed]:
                del self.running[process.worker.config.client]
                self._expire(process)
            while self.later:
                self.later.pop(0)()
            now = (tuple((p.worker, p.frozen) for p in self.running.values()), self.phase, self.number)
            if now == before:
                return
            before = now
        raise AssertionError("the cluster does not come to rest")

    @contextmanager
    def _silently(self) -> Iterator[None]:
        self.waits = True
        yield
        self.waits = False

    def _beat(self, process: Process) -> None:
        if not any(isinstance(request, HeartbeatRequest) for request in process.waiting.values()):
            self.happens(process, HeartbeatDue())

    def happens(self, process: Process, happening: WorkerHappening) -> None:
        if isinstance(happening, Answer | Disconnected):
            process.waiting.pop(happening.correlation, None)
        turn = connect.step(process.worker, happening, self.now, first)
        assert turn.error is None, turn.error
        process.worker = turn.process
        for event in turn.events:
            self.tell(event)
        for correlation, request in turn.requests:
            process.waiting[correlation] = request
            if process.deaf is None:
                self._receive(process, correlation, request)

    def tell(self, event: Event) -> None:
        self.tick += 1
        self.events.append(replace(event, ts=self.now * 1000 + self.tick))

    def _answer(self, process: Process, correlation: int, response: Response) -> None:
        if correlation in process.waiting and not process.frozen:
            self.later.append(lambda: self.happens(process, Answer(correlation, response, {}, {})))

    # The coordinator.

    def _receive(self, process: Process, correlation: int, request: Request) -> None:
        match request:
            case JoinRequest():
                self._join(process, correlation, request)
            case SyncRequest():
                self._sync(process, correlation, request)
            case HeartbeatRequest(member=member, generation=generation):
                error = self._error(member, generation, "Stable", "Syncing")
                self.tell(Heartbeat(group=GROUP, member=member, generation=generation, error=error))
                self._answer(process, correlation, HeartbeatResponse(error=error))
            case LeaveRequest(member=member):
                if member in self.members:
                    self.tell(Leave(group=GROUP, member=member, generation=self.number, client=process.worker.config.client))
                    self._remove(member)
                self._answer(process, correlation, LeaveResponse())
            case _:
                raise AssertionError(request)

    def _error(self, member: str, generation: int, *phases: str) -> str:
        if member not in self.members:
            return "UNKNOWN_MEMBER_ID"
        if generation != self.number:
            return "ILLEGAL_GENERATION"
        return "NONE" if self.phase in phases else "REBALANCE_IN_PROGRESS"

    def _join(self, process: Process, correlation: int, request: JoinRequest) -> None:
        member, client = request.member, request.client
        if not member:
            life = self.lives[client] = self.lives.get(client, 0) + 1
            member = client + ("" if life == 1 else chr(ord("a") + life - 1))
            self.pending.add(member)
            self._answer(process, correlation, JoinResponse(error="MEMBER_ID_REQUIRED", member=member))
            return
        if member not in self.members and member not in self.pending:
            self._answer(process, correlation, JoinResponse(error="UNKNOWN_MEMBER_ID"))
            return
        self.pending.discard(member)
        known = self.members.get(member)
        self.tell(
            Join(
                group=GROUP,
                member=member,
                client=client,
                protocols=tuple(name for name, _ in request.protocols),
                owned=request.protocols[0][1].owned,
                owned_generation=-1,
                session_timeout_ms=request.session_timeout_ms,
                rebalance_timeout_ms=request.rebalance_timeout_ms,
            )
        )
        if self.phase == "Stable" and known and member != self.leader and known.join.protocols == request.protocols:
            self._answer(process, correlation, self._joined(member))
            return
        self.members[member] = Member(process, request, correlation)
        self._prepare("join")
        self._complete()

    def _prepare(self, reason: str) -> None:
        if self.phase == "Preparing":
            return
        if self.phase != "Empty":
            self.tell(Rebalance(group=GROUP, generation=self.number, reason=reason))
        if self.phase == "Syncing":
            for member in self.members.values():
                if member.call is not None and isinstance(member.process.waiting.get(member.call), SyncRequest):
                    self._answer(member.process, member.call, SyncResponse(error="REBALANCE_IN_PROGRESS"))
                    member.call = None
        self.phase = "Preparing"

    def _complete(self) -> None:
        if self.phase != "Preparing" or any(member.call is None for member in self.members.values()):
            return
        if not self.members:
            self.phase = "Empty"
            return
        self.number += 1
        self.leader = self.leader if self.leader in self.members else next(iter(self.members))
        offers = [[name for name, _ in member.join.protocols] for member in self.members.values()]
        self.protocol = next(name for name in max(offers, key=len) if all(name in offer for offer in offers))
        self.phase, self.shares = "Syncing", {}
        self.tell(
            GenerationStarted(group=GROUP, generation=self.number, members=tuple(self.members), leader=self.leader, protocol=self.protocol)
        )
        for name, member in self.members.items():
            call, member.call = member.call, None
            assert call is not None
            self.tell(Joined(group=GROUP, generation=self.number, member=name, leader=self.leader, protocol=self.protocol))
            self._answer(member.process, call, self._joined(name))

    def _joined(self, member: str) -> JoinResponse:
        listed = tuple(JoinedMember(member=m, instance=None, metadata=self._metadata(m)) for m in self.members)
        return JoinResponse(
            generation=self.number,
            protocol=self.protocol,
            leader=self.leader,
            member=member,
            members=listed if member == self.leader else (),
        )

    def _metadata(self, member: str) -> Metadata:
        return dict(self.members[member].join.protocols)[self.protocol]

    def _sync(self, process: Process, correlation: int, request: SyncRequest) -> None:
        error = self._error(request.member, request.generation, "Stable", "Syncing")
        if error != "NONE":
            self._answer(process, correlation, SyncResponse(error=error))
            return
        if request.shares and self.phase == "Syncing":
            self.shares = dict(request.shares)
            self.phase = "Stable"
            self._show(request)
        self.members[request.member].call = correlation
        for name, member in self.members.items() if self.phase == "Stable" else ():
            if member.call is not None:
                call, member.call = member.call, None
                self._synced(name, member.process, call)

    def _show(self, request: SyncRequest) -> None:
        shares = self.shares
        self.tell(
            Sync(
                group=GROUP,
                generation=self.number,
                member=request.member,
                assignment={m: s.resources for m, s in shares.items()},
                revoked={m: s.revoked or () for m, s in shares.items()},
                delay_ms=max(s.delay_ms or 0 for s in shares.values()),
            )
        )
        reported = {m: self._metadata(m).owned for m in self.members}
        self.tell(
            Assignment(
                group=GROUP,
                generation=self.number,
                assignment={m: s.resources for m, s in shares.items()},
                members={
                    m: MemberInfo(session_timeout_ms=member.join.session_timeout_ms, owned=reported[m])
                    for m, member in self.members.items()
                },
                leader=self.leader,
                protocol=self.protocol,
            )
        )
        leader = self.members[self.leader].process.worker
        configured = units_of(leader.sent_configs.connectors)
        self.history.append(Generation(self.now, self.number, self.leader, configured, reported, dict(shares), leader.leader))

    def _synced(self, name: str, process: Process, call: int) -> None:
        share = self.shares[name]
        lost, process.lose_sync = process.lose_sync, None
        if lost is not None:
            self.later.append(lambda: self.happens(process, Disconnected(call)))
        if lost == "unanswered":
            return
        self.tell(
            Synced(
                group=GROUP,
                generation=self.number,
                member=name,
                resources=share.resources,
                revoked=share.revoked,
                delay_ms=share.delay_ms,
                extra={"error": int(share.user_data.failed), "offset": share.user_data.offset},  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
            )
        )
        if lost is None:
            self._answer(process, call, SyncResponse(protocol=self.protocol, share=share))

    def _expire(self, process: Process) -> None:
        for member in [m for m, known in self.members.items() if known.process is process]:
            self.tell(Expire(group=GROUP, member=member, generation=self.number, reason="session"))
            self._remove(member)

    def _remove(self, member: str) -> None:
        del self.members[member]
        self._prepare("a member is gone")
        self._complete()


def named(units: Iterable[str]) -> str:
    """``connector:A`` as A, ``task:A-0`` as A-0."""
    return " ".join(unit.partition(":")[2] for unit in units)
