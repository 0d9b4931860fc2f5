"""A run of a protocol, told as trace version 1: what an observer of everything would have written.

So the monitors of `spec` judge the same run as the explorer and the proof, and a counterexample can be read, shrunk and shown
like any capture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ...spec.events import (
    Assigned,
    Assignment,
    Commit,
    Crashed,
    Event,
    Expire,
    GenerationStarted,
    Join,
    Joined,
    Load,
    Lost,
    MemberInfo,
    Owned,
    Replace,
    Revoked,
    Sync,
    Synced,
)
from .ground import Trace
from .interpreter import Interpreter, State
from .language import System
from .narrate_connect import ConnectTeller
from .telling import Teller, column, holds, points, row, value

TOPIC = "t"
PROTOCOL = "cooperative-sticky"


def narrate(system: System, sizes: Mapping[str, int], trace: Trace) -> tuple[Event, ...]:
    """The events of a run of `consumer_protocol` or `connect_protocol`; one millisecond apart, but for delays that pass.

    Consumers are called ``c1``, ``c2``, those of instance 1 ``i1-1``, ``i1-2``; Connect workers ``w1``, ``w2``. Raises ValueError if
    a step can't be taken.
    """
    states = trace.states(Interpreter(system, sizes))
    connect = system.name.partition("-")[0] == "connect"
    teller = ConnectTeller.of(trace.steps, states) if connect else ConsumerTeller(trace.start)
    for step, before, after in zip(trace.steps, states, states[1:], strict=False):
        teller.tell(step, before, after)
    return tuple(teller.events)


class ConsumerTeller(Teller):
    """Tells a run of `consumer_protocol`."""

    group: ClassVar[str] = "orders"
    rebalance_ms: ClassVar[int] = 300_000
    session_ms: ClassVar[int] = 45_000
    silent: ClassVar[frozenset[str]] = frozenset(
        {"start", "rejoin", "lose_join_request", "receive_join_response", "propose", "empty", "deliver_old_join"}
    )

    # Names.

    def _instance(self, x: int) -> str | None:
        return f"i{value(self.start, 'instance', x) + 1}" if holds(self.start, "static", x) else None

    def _name(self, x: int) -> str:
        instance = self._instance(x)
        return f"c{x + 1}" if instance is None else f"{instance}-{x + 1}"

    def _who(self, x: int) -> dict[str, Any]:
        return {"group": self.group, "member": self._name(x), "instance": self._instance(x)}

    # The coordinator.

    def _joins(self, before: State, x: int, *, known: bool) -> Event:
        generation = self.number(before, "request_generation", x)
        who = self._who(x)
        if not known and self._instance(x):
            who["member"] = ""
        return Join(
            **who,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            protocols=(PROTOCOL,),
            subscribed=(TOPIC,),
            owned=_partitions(before, "request_owned", x),
            owned_generation=generation or -1,
        )

    def _join_new(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield self._joins(before, x, known=False)
        yield from self.opened(before, after, f"Adding new member {self._name(x)}")

    def _join_known(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield self._joins(before, x, known=True)
        yield from self.opened(before, after, f"Updating metadata for member {self._name(x)}")

    def _join_unchanged(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield self._joins(before, x, known=True)
        yield self._joined(before, x)

    def _joined(self, state: State, x: int) -> Event:
        return Joined(**self._who(x), generation=self.now(state), leader=self._name(self.leader), protocol=PROTOCOL)

    def _replaces(self, before: State, x: int, old: int) -> Iterator[Event]:
        yield self._joins(before, x, known=False)
        yield Replace(**self._who(x), generation=self.now(before), old_member=self._name(old))

    def _replace_stable(self, before: State, after: State, x: int, old: int) -> Iterator[Event]:
        yield from self._replaces(before, x, old)
        yield self._joined(before, x)

    def _replace_rebalancing(self, before: State, after: State, x: int, old: int) -> Iterator[Event]:
        yield from self._replaces(before, x, old)
        yield from self.opened(before, after, f"Updating metadata for static member {self._name(x)}")

    def _complete(self, before: State, after: State, g: int) -> Iterator[Event]:
        if g > value(before, "generation"):
            self.numbers[g] = self.now(before) + 1
        late = sorted(column(before, "member") - column(after, "member"))
        if any(self._instance(x) is None for x in late) or column(after, "member") - column(before, "joining"):
            self.wait_out()
        for x in late:
            yield Expire(**self._who(x), generation=self.now(before), reason="rebalance")
        joining = column(before, "joining")
        self.leader = self.leader if self.leader in joining else min(joining)
        members = tuple(self._name(x) for x in sorted(column(after, "member")))
        yield GenerationStarted(
            group=self.group, generation=self.numbers[g], members=members, leader=self._name(self.leader), protocol=PROTOCOL
        )
        for x in sorted(joining):
            yield self._joined(after, x)

    def _accept(self, before: State, after: State) -> Iterator[Event]:
        now = self.now(before)
        named = sorted(column(before, "member") | {m for m, _ in points(before, "proposal")})
        yield Sync(**self._who(self.leader), generation=now, assignment={self._name(x): _partitions(before, "proposal", x) for x in named})
        members = {self._name(x): self._info(after, x) for x in sorted(column(after, "member"))}
        stored = {name: _partitions(after, "assigned", value(after, "generation"), x) for x in named if (name := self._name(x)) in members}
        yield Assignment(
            group=self.group, generation=now, assignment=stored, members=members, leader=self._name(self.leader), protocol=PROTOCOL
        )

    def _info(self, state: State, x: int) -> MemberInfo:
        claimed = {"owned_generation": self.number(state, "owned_generation", x) or -1}
        return MemberInfo(self._instance(x), self.session_ms, (TOPIC,), _partitions(state, "owned", x), claimed)

    def _answer_sync(self, before: State, after: State, x: int, g: int) -> Iterator[Event]:
        number = self.numbers[g]
        yield Sync(**self._who(x), generation=number)
        yield Synced(**self._who(x), generation=number, resources=_partitions(after, "response_assignment", x))

    def _commit(self, before: State, after: State, x: int, p: int) -> Iterator[Event]:
        yield Commit(**self._who(x), generation=self.number(before, "completed", x), resources=(f"{TOPIC}-{p}",))

    def _remove(self, before: State, after: State, x: int) -> Iterator[Event]:
        self.fall_silent(self._name(x), self._instance(x))
        yield Expire(**self._who(x), generation=self.now(before), reason="session")
        yield from self.opened(before, after, f"removing member {self._name(x)} on heartbeat expiration")

    def _failover(self, before: State, after: State) -> Iterator[Event]:
        self.epoch += 1
        yield Load(group=self.group, generation=self.now(after))

    # The clients.

    def _changed(self, before: State, after: State, x: int, generation: str) -> Iterator[Event]:
        """What a client gave up and took, in its own order."""
        had, has = _partitions(before, "believes", x), _partitions(after, "believes", x)
        where: dict[str, Any] = {**self._who(x), "generation": self.number(after, generation, x)}
        given, taken = tuple(r for r in had if r not in has), tuple(r for r in has if r not in had)
        if given:
            yield Revoked(**where, resources=given)
        if taken:
            yield Assigned(**where, resources=taken)

    def _revoke(self, before: State, after: State, x: int, g: int) -> Iterator[Event]:
        yield from self._changed(before, after, x, "joined")

    def _assign(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield from self._changed(before, after, x, "completed")
        yield Owned(**self._who(x), generation=self.number(after, "completed", x), resources=_partitions(after, "believes", x))

    def _rejoin_early(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield from self._changed(before, after, x, "completed")
        yield Owned(**self._who(x), generation=self.number(after, "completed", x), resources=_partitions(after, "believes", x))

    def _revoke_late(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield from self._changed(before, after, x, "completed")

    def _give_up(self, before: State, after: State, x: int, p: int) -> Iterator[Event]:
        yield from self._changed(before, after, x, "completed")

    def _reset(self, before: State, after: State, x: int) -> Iterator[Event]:
        if had := _partitions(before, "believes", x):
            yield Lost(**self._who(x), generation=self.number(before, "completed", x), resources=had)

    def _crash(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield Crashed(**self._who(x))


def _partitions(state: State, relation: str, *key: int) -> tuple[str, ...]:
    return tuple(f"{TOPIC}-{partition}" for partition in row(state, relation, *key))
