"""Healthy groups at random, seen by all the observers that a capture may have: a broker's log, its request log, the offsets topic, members' logs.

A small coordinator with well-behaved members. Nothing in it breaks a promise, whatever part of its capture is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kipcheck.spec.events import Event, Source
from kipcheck.spec.trace import decode

BROKER, REQUESTS, OFFSETS = "server.log", "request.log", "offsets.txt"
SESSION_S, REBALANCE_S = 45.0, 60.0
PARTITIONS = [f"orders-{n}" for n in range(6)]
STEPS = ("dynamic", "static", "leave", "crash", "bounce", "away", "leader", "failover", "quiet", "empty")
Row = dict[str, object]


@dataclass
class Process:
    """A member that runs. ``seen`` is the last time that the coordinator heard of it."""

    member: str
    instance: str | None
    number: int
    owned: list[str] = field(default_factory=list[str])
    claim_generation: int = -1
    assigned: list[str] = field(default_factory=list[str])


class Group:
    """Run steps, then read ``events``. ``named`` false: members' logs don't show member ids, as before Java's 2.6.1."""

    def __init__(self, *, cooperative: bool, named: bool, clock_shift: float = 0.0) -> None:
        self.cooperative = cooperative
        self.protocol = "cooperative-sticky" if cooperative else "range"
        self.named = named
        self.shift = clock_shift
        self.now = 0.0
        self.epoch = self.generation = self.born = 0
        self.running: list[Process] = []
        self.leader: str | None = None
        self.rows: list[tuple[str, Row]] = []

    def run(self, steps: Sequence[str]) -> list[Event]:
        for step in steps:
            action: Callable[[], None] = getattr(self, f"_{step}")
            action()
            self.now += 20
            self._live()
        return [self._event(file, row) for file, row in self.rows]

    # What happens.

    def _dynamic(self) -> None:
        if len(self.running) < 5:
            self.born += 1
            self._arrive(Process(f"m{self.born}", None, self.born))

    def _static(self) -> None:
        instance = next((i for i in ("i1", "i2", "i3") if all(p.instance != i for p in self.running)), None)
        if instance is not None:
            self.born += 1
            self._arrive(Process(f"{instance}-{self.born}", instance, self.born))

    def _arrive(self, process: Process) -> None:
        self.running.append(process)
        self._rebalance(f"Adding new member {process.member} with group instance id {process.instance}", new=process)

    def _leave(self) -> None:
        process = next((p for p in self.running if p.instance is None), None)
        if process is not None:
            self._own(process, "revoked", process.owned)
            self._own(process, "leave", None, reason="the consumer is being closed", error="NONE")
            self.running.remove(process)
            for file in (REQUESTS, BROKER):
                self._tell(file, "leave", None, process, reason="the consumer is being closed", error="NONE")
            self._rebalance(f"Removing member {process.member} on LeaveGroup")

    def _crash(self) -> None:
        if self.running:
            self._away_for(self.running[0], SESSION_S + 0.01)

    def _away(self) -> None:
        process = next((p for p in self.running if p.instance is not None), None)
        if process is not None:
            self._away_for(process, SESSION_S + 0.01)

    def _away_for(self, process: Process, seconds: float) -> None:
        self.running.remove(process)
        for _ in range(3):
            self.now += seconds / 3
            self._live()
        self._tell(BROKER, "expire", None, process, reason="session")
        self._rebalance(f"removing member {process.member} on heartbeat expiration")
        self._own(process, "lost", process.owned)

    def _bounce(self) -> None:
        """A static member restarts within its session timeout, into a stable group."""
        process = next((p for p in self.running if p.instance is not None), None)
        if process is None:
            return
        self._own(process, "revoked", process.owned)
        self._own(process, "closed", None)
        self.now += 10
        self.born += 1
        back = Process(f"{process.instance}-{self.born}", process.instance, self.born, [], -1, process.assigned)
        self.running[self.running.index(process)] = back
        self._tell(REQUESTS, "join", None, back, member="", protocols=[self.protocol], subscribed=["orders"], **self._timeouts())
        self._tell(BROKER, "replace", self.generation, back, old_member=process.member)
        self._store()
        if self.leader == process.member:
            self.leader = back.member
        self._granted(back)
        self._synced(back)
        self._apply(back)

    def _leader(self) -> None:
        if self.running:
            self._rebalance(f"Leader {self.leader} re-joining group during Stable; client reason: cached metadata has changed")

    def _failover(self) -> None:
        self.epoch += 1
        self._tell(BROKER, "load", self.generation, None)
        if self.running:
            self._leader()

    def _quiet(self) -> None:
        self.now += 30

    def _empty(self) -> None:
        """Everybody leaves, the group is deleted, and its name is used again."""
        while dynamic := [p for p in self.running if p.instance is None]:
            assert dynamic
            self._leave()
            self.now += 1
        for process in list(self.running):
            self._away_for(process, SESSION_S + 0.01)
        self.epoch += 1
        self.generation = 0
        self.leader = None

    def _live(self) -> None:
        for process in self.running:
            self._tell(REQUESTS, "heartbeat", self.generation, process, error="NONE", estimated=True)
            if process.assigned:
                self._tell(REQUESTS, "commit", self.generation, process, resources=process.assigned, error="NONE", estimated=True)
            self.now += 0.01

    # A join phase.

    def _rebalance(self, reason: str, new: Process | None = None) -> None:
        moved = self._join_phase(reason, new)
        while moved:
            moved = self._join_phase("Leader re-joining group during Stable; client reason: need to revoke partitions and re-join", None)

    def _join_phase(self, reason: str, new: Process | None) -> bool:
        """Whether somebody revoked, so that the group has to go through another one."""
        self._tell(BROKER, "rebalance", self.generation, None, reason=reason)
        if new is not None:
            self._tell(BROKER, "join", None, new)
        elif reason.startswith("Leader"):
            self._tell(BROKER, "join", None, next((p for p in self.running if p.member == self.leader), self.running[0]))
        self.generation += 1
        if not self.running:
            self._tell(BROKER, "generation", self.generation, None, members=[])
            self._tell(OFFSETS, "generation", self.generation, None, members=[])
            return False
        for process in self.running:
            if not self.cooperative:
                self._own(process, "revoked", process.owned, generation=self.generation - 1)
                process.owned = []
            first = {"member": ""} if process is new and process.instance is not None else {}
            claims: Row = {"owned": list(process.owned), "owned_generation": process.claim_generation if process.owned else -1}
            offer: Row = {"protocols": [self.protocol], "subscribed": ["orders"]}
            self._tell(REQUESTS, "join", None, process, **(self._timeouts() | offer | claims | first), estimated=True)
        if self.leader not in {p.member for p in self.running}:
            self.leader = self.running[0].member
        withheld = self._assign()
        self._tell(BROKER, "generation", self.generation, None, members_count=len(self.running))
        instances = {p.member: p.instance for p in self.running}
        listed = [p.member for p in self.running]
        self._tell(
            REQUESTS, "generation", self.generation, None, members=listed, protocol=self.protocol, instances=instances, leader=self.leader
        )
        for process in self.running:
            self._granted(process)
        leader = next(p for p in self.running if p.member == self.leader)
        self._tell(REQUESTS, "sync", self.generation, leader, assignment={p.member: p.assigned for p in self.running})
        self._tell(BROKER, "sync", self.generation, leader)
        self._store()
        for process in self.running:
            self._synced(process)
        return [self._apply(p) for p in self.running].count(True) > 0 and withheld

    def _assign(self) -> bool:
        """Share out evenly, keeping what is owned; a cooperative group withholds what changes hands."""
        want = {p.member: PARTITIONS[i :: len(self.running)] for i, p in enumerate(self.running)}
        owned = {r: p.member for p in self.running for r in p.owned}
        withheld = False
        for process in self.running:
            process.assigned = [r for r in want[process.member] if not self.cooperative or owned.get(r, process.member) == process.member]
            withheld = withheld or len(process.assigned) < len(want[process.member])
        return withheld

    def _granted(self, process: Process) -> None:
        self._tell(REQUESTS, "joined", self.generation, process, leader=self.leader, protocol=self.protocol, error="NONE")
        self._own(process, "joined", None, protocol=self.protocol, error="NONE", seen_by="member")

    def _synced(self, process: Process) -> None:
        self._tell(REQUESTS, "synced", self.generation, process, resources=process.assigned, error="NONE")

    def _apply(self, process: Process) -> bool:
        self._own(process, "synced", process.assigned, error="NONE", seen_by="member")
        gone = [r for r in process.owned if r not in process.assigned]
        if gone:
            self._own(process, "revoked", gone)
        self._own(process, "assigned", [r for r in process.assigned if r not in process.owned])
        process.owned, process.claim_generation = list(process.assigned), self.generation
        return bool(gone)

    def _store(self) -> None:
        members = {
            p.member: {"session_timeout_ms": 45_000, "owned": p.owned, "owned_generation": p.claim_generation}
            | ({"instance": p.instance} if p.instance else {})
            for p in self.running
        }
        shares = {p.member: p.assigned for p in self.running}
        self._tell(
            OFFSETS, "assignment", self.generation, None, assignment=shares, members=members, protocol=self.protocol, leader=self.leader
        )

    # Who sees it.

    def _timeouts(self) -> Row:
        return {"session_timeout_ms": int(SESSION_S * 1000), "rebalance_timeout_ms": int(REBALANCE_S * 1000)}

    def _tell(self, file: str, kind: str, generation: int | None, process: Process | None, **fields: object) -> None:
        row: Row = {"kind": kind, "group": "orders", "epoch": self.epoch, "generation": generation, "ts": self.now}
        if process is not None:
            row |= {"member": process.member, "instance": process.instance, "client": "app"}
        self.rows.append((file, row | fields))
        self.now += 0.002

    def _own(self, process: Process, kind: str, resources: Sequence[str] | None, generation: int | None = None, **fields: object) -> None:
        file = f"app-{process.number}.log"
        member = process.member if self.named else f"app@{file}#1"
        row: Row = {"kind": kind, "group": "orders", "epoch": self.epoch, "member": member, "instance": process.instance, "client": "app"}
        row |= {
            "generation": self.generation if generation is None else generation,
            "resources": resources,
            "ts": self.now + self.shift * process.number,
        }
        if kind == "leave":
            row["seen_by"] = "member"
        self.rows.append((file, row | fields))
        self.now += 0.002

    def _event(self, file: str, row: Row) -> Event:
        clock = {"ts": None} | {k: v for k, v in row.items() if v is not None and k != "ts"}
        seconds = row["ts"]
        assert isinstance(seconds, float | int)
        event = decode({k: v for k, v in clock.items() if v is not None}, Source(file, 1, ""))
        return replace(event, ts=1_772_442_000_000_000 + int(seconds * 1_000) * 1_000)
