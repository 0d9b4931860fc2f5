"""A run of the Connect protocol, told as trace version 1: see `narrate.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...spec.events import (
    Assigned,
    Closed,
    Crashed,
    Event,
    Expire,
    GenerationStarted,
    Join,
    Joined,
    Leave,
    Lost,
    Owned,
    Revoked,
    Sync,
    Synced,
)
from .interpreter import State, Step
from .telling import Teller, column, holds, row, value

CONNECTOR = "A"
PROTOCOL = "sessioned"
DELAY_US = 300_000_000
"""scheduled.rebalance.max.delay.ms is five minutes."""
BACK_OFF_US = 200_000
"""How long a leader waits before it takes units away once more."""


@dataclass(slots=True)
class ConnectTeller(Teller):
    """Tells a run of `connect_protocol`. Units are the tasks of one connector.

    A worker that comes back is the same process; one that joins runs where another one has ended, and has its client id. A delay
    passes before the join phase of the round in which the leader finds it over.

    ``processes``: of members that came back, the member as which the process began. ``deadlines``: by process, when the delay that
    it has scheduled as a leader is over, in microseconds. ``delay_ms`` and ``failed`` are of the last plan.
    """

    group: ClassVar[str] = "connect-cluster"
    silent: ClassVar[frozenset[str]] = frozenset({"create", "delete"})
    rebalance_ms: ClassVar[int] = 2_000
    session_ms: ClassVar[int] = 1_000

    processes: Mapping[int, int] = field(default_factory=dict[int, int])
    passing: Mapping[int, int] = field(default_factory=dict[int, int])
    """By the number of a step that opens a join phase: the process whose delay is over by then."""
    clients: dict[int, int] = field(default_factory=dict[int, int])
    vacant: list[int] = field(default_factory=list[int])
    deadlines: dict[int, int] = field(default_factory=dict[int, int])
    delay_ms: int = 0
    failed: bool = False
    taken: int = 0

    @classmethod
    def of(cls, steps: Sequence[Step], states: Sequence[State]) -> ConnectTeller:
        """The teller of this run, which looks ahead for who comes back and when delays are over."""
        processes: dict[int, int] = {}
        passing: dict[int, int] = {}
        opening = 0
        for at, (step, before, after) in enumerate(zip(steps, states, states[1:], strict=False)):
            if holds(after, "preparing") and not holds(before, "preparing"):
                opening = at
            if step.action == "come_back":
                old, new = step.arguments
                processes[new] = processes.get(old, old)
            if step.action == "deal":
                (leader,) = step.arguments
                passing[opening] = processes.get(leader, leader)
        return cls(states[0], processes=processes, passing=passing)

    def tell(self, step: Step, before: State, after: State) -> None:
        if self.taken in self.passing:
            self.clock = max(self.clock, self.deadlines[self.passing[self.taken]])
        self.taken += 1
        Teller.tell(self, step, before, after)

    def _process(self, x: int) -> int:
        return self.processes.get(x, x)

    def _name(self, x: int) -> str:
        return f"w{x + 1}"

    def _who(self, x: int) -> dict[str, Any]:
        process = self._process(x)
        return {"group": self.group, "member": self._name(x), "client": f"worker-{self.clients.get(process, process) + 1}"}

    # The coordinator.

    def _joins(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield Join(
            **self._who(x),
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            protocols=(PROTOCOL,),
            owned=_units(after, "claims", x),
        )
        yield from self.opened(before, after, f"{self._name(x)} joins")

    def _join(self, before: State, after: State, x: int) -> Iterator[Event]:
        if self.vacant:
            self.clients[x] = self.vacant.pop(0)
        yield from self._joins(before, after, x)

    def _rejoin(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield from self._joins(before, after, x)

    def _come_back(self, before: State, after: State, x: int, y: int) -> Iterator[Event]:
        yield from self._joins(before, after, y)

    def _complete(self, before: State, after: State, g: int, leader: int) -> Iterator[Event]:
        self.numbers[g] = self.now(before) + 1
        self.leader = leader
        late = sorted(column(before, "member") - column(after, "member"))
        if late:
            self.wait_out()
        for x in late:
            yield Expire(**self._who(x), generation=self.now(before), reason="rebalance")
        here = sorted(column(after, "member"))
        members = tuple(map(self._name, here))
        now, name = self.now(after), self._name(leader)
        yield GenerationStarted(group=self.group, generation=now, members=members, leader=name, protocol=PROTOCOL)
        for x in here:
            yield Joined(**self._who(x), generation=now, leader=name, protocol=PROTOCOL)

    def _accept(self, before: State, after: State) -> Iterator[Event]:
        g, now = value(before, "generation"), self.now(before)
        members = sorted(column(before, "member"))
        assignment = {self._name(x): _units(before, "target", g, x) for x in members}
        revoked = {self._name(x): units for x in members if (units := _units(before, "revoked", g, x))}
        error: dict[str, object] = {"error": 1} if self.failed else {}
        for x in sorted(column(before, "syncing") & set(members), key=lambda x: x != self.leader):
            if x == self.leader:
                yield Sync(**self._who(x), generation=now, assignment=assignment, revoked=revoked, delay_ms=self.delay_ms, extra=error)
            else:
                yield Sync(**self._who(x), generation=now)
            yield Synced(
                **self._who(x),
                generation=now,
                resources=assignment[self._name(x)],
                revoked=revoked.get(self._name(x), ()),
                delay_ms=self.delay_ms,
                extra=error,
            )

    def _remove(self, before: State, after: State, x: int) -> Iterator[Event]:
        self.fall_silent(self._name(x))
        yield Expire(**self._who(x), generation=self.now(before), reason="session")
        yield from self.opened(before, after, f"removing {self._name(x)} on heartbeat expiration")

    # The leader. What it plans shows when it is accepted.

    def _planned(self, after: State, leader: int, wait_us: int) -> Iterator[Event]:
        self.failed = False
        process = self._process(leader)
        if holds(after, "armed", leader):
            deadline = self.deadlines.setdefault(process, self.clock + wait_us)
            self.delay_ms = max(1, (deadline - self.clock) // 1000)
        else:
            self.deadlines.pop(process, None)
            self.delay_ms = 0
        return iter(())

    def _settle(self, before: State, after: State, leader: int) -> Iterator[Event]:
        self.deadlines.pop(self._process(leader), None)
        return self._planned(after, leader, BACK_OFF_US)

    def _withhold(self, before: State, after: State, leader: int) -> Iterator[Event]:
        return self._planned(after, leader, DELAY_US)

    def _deal(self, before: State, after: State, leader: int) -> Iterator[Event]:
        return self._planned(after, leader, DELAY_US)

    def _mismatch(self, before: State, after: State, leader: int) -> Iterator[Event]:
        self.failed, self.delay_ms = True, 0
        return iter(())

    # The workers.

    def _changed(self, before: State, after: State, x: int) -> Iterator[Event]:
        had, has = _units(before, "running", x), _units(after, "running", x)
        where: dict[str, Any] = {**self._who(x), "generation": self.number(before, "joined", x)}
        given, taken = tuple(unit for unit in had if unit not in has), tuple(unit for unit in has if unit not in had)
        if given:
            yield Revoked(**where, resources=given)
        if taken:
            yield Assigned(**where, resources=taken)

    def _stop(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield from self._changed(before, after, x)

    def _start(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield from self._changed(before, after, x)
        yield Owned(**self._who(x), generation=self.number(after, "last", x), resources=_units(after, "running", x))

    def _cut_off(self, before: State, after: State, x: int) -> Iterator[Event]:
        if had := _units(before, "running", x):
            yield Lost(**self._who(x), generation=self.number(before, "joined", x), resources=had)

    def _leave(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield from self._changed(before, after, x)
        yield Leave(**self._who(x), generation=self.now(before), reason="the worker is shutting down")
        yield from self.opened(before, after, f"{self._name(x)} leaves")
        yield Closed(**self._who(x))
        self._ended(x)

    def _crash(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield Crashed(**self._who(x))
        self._ended(x)

    def _ended(self, x: int) -> None:
        process = self._process(x)
        self.vacant.append(self.clients.get(process, process))


def _units(state: State, relation: str, *key: int) -> tuple[str, ...]:
    return tuple(f"task:{CONNECTOR}-{unit}" for unit in row(state, relation, *key))
