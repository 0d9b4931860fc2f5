"""A run of the consumer protocol, told as trace version 1: what an observer of everything would have written.

So the monitors of `spec` judge the same run as the explorer and the proof, and a counterexample can be read, shrunk and shown
like any capture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

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
    Rebalance,
    Replace,
    Revoked,
    Sync,
    Synced,
)
from .ground import Trace
from .interpreter import Interpreter, State, Step
from .language import System

GROUP = "orders"
TOPIC = "t"
PROTOCOL = "cooperative-sticky"
STEP_US = 1000
SESSION_MS, REBALANCE_MS = 45_000, 60_000


def narrate(system: System, sizes: Mapping[str, int], trace: Trace) -> tuple[Event, ...]:
    """The events of a run of `consumer_protocol`, one millisecond apart.

    Members are called ``c1``, ``c2``; those of instance 1 ``i1-1``, ``i1-2``. Raises ValueError if a step can't be taken.
    """
    interpreter = Interpreter(system, sizes)
    teller = _Teller(trace.start)
    before = trace.start
    for step in trace.steps:
        after = interpreter.take(before, step)
        for event in teller.tell(step, before, after):
            teller.events.append(replace(event, ts=len(teller.events) * STEP_US, epoch=teller.epoch))
        before = after
    return tuple(teller.events)


@dataclass(slots=True)
class _Teller:
    """``numbers`` are the generation numbers that Kafka would have used for the points of the protocol's order."""

    start: State
    events: list[Event] = field(default_factory=list[Event])
    numbers: dict[int, int] = field(default_factory=lambda: {0: 0})
    leader: int = 0
    epoch: int = 0

    def tell(self, step: Step, before: State, after: State) -> Iterator[Event]:
        tell = getattr(self, f"_{step.action}", None)
        if tell is not None:
            yield from tell(before, after, *step.arguments)
        elif step.action not in _SILENT:
            raise ValueError(f"no way to tell {step.action}")

    # Names.

    def _instance(self, x: int) -> str | None:
        return f"i{_value(self.start, 'instance', x) + 1}" if _holds(self.start, "static", x) else None

    def _name(self, x: int) -> str:
        instance = self._instance(x)
        return f"c{x + 1}" if instance is None else f"{instance}-{x + 1}"

    def _who(self, x: int) -> dict[str, Any]:
        return {"group": GROUP, "member": self._name(x), "instance": self._instance(x)}

    def _number(self, state: State, function: str, x: int) -> int:
        return self.numbers[_value(state, function, x)]

    def _now(self, state: State) -> int:
        return self.numbers[_value(state, "generation")]

    def _opened(self, before: State, after: State, reason: str) -> Iterator[Event]:
        if _holds(after, "preparing") and not _holds(before, "preparing"):
            yield Rebalance(group=GROUP, generation=self._now(before), reason=reason)

    # The coordinator.

    def _joins(self, before: State, x: int, *, known: bool) -> Event:
        generation = self._number(before, "request_generation", x)
        who = self._who(x)
        if not known and self._instance(x):
            who["member"] = ""
        return Join(
            **who,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocols=(PROTOCOL,),
            subscribed=(TOPIC,),
            owned=_row(before, "request_owned", x),
            owned_generation=generation or -1,
        )

    def _join_new(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield self._joins(before, x, known=False)
        yield from self._opened(before, after, f"Adding new member {self._name(x)}")

    def _join_known(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield self._joins(before, x, known=True)
        yield from self._opened(before, after, f"Updating metadata for member {self._name(x)}")

    def _join_unchanged(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield self._joins(before, x, known=True)
        yield self._joined(before, x)

    def _joined(self, state: State, x: int) -> Event:
        return Joined(**self._who(x), generation=self._now(state), leader=self._name(self.leader), protocol=PROTOCOL)

    def _replaces(self, before: State, x: int, old: int) -> Iterator[Event]:
        yield self._joins(before, x, known=False)
        yield Replace(**self._who(x), generation=self._now(before), old_member=self._name(old))

    def _replace_stable(self, before: State, after: State, x: int, old: int) -> Iterator[Event]:
        yield from self._replaces(before, x, old)
        yield self._joined(before, x)

    def _replace_rebalancing(self, before: State, after: State, x: int, old: int) -> Iterator[Event]:
        yield from self._replaces(before, x, old)
        yield from self._opened(before, after, f"Updating metadata for static member {self._name(x)}")

    def _complete(self, before: State, after: State, g: int) -> Iterator[Event]:
        self.numbers[g] = self._now(before) + 1
        for x in sorted(_set(before, "member") - _set(after, "member")):
            yield Expire(**self._who(x), generation=self._now(before), reason="rebalance")
        joining = _set(before, "joining")
        self.leader = self.leader if self.leader in joining else min(joining)
        members = tuple(self._name(x) for x in sorted(_set(after, "member")))
        yield GenerationStarted(group=GROUP, generation=self.numbers[g], members=members, leader=self._name(self.leader), protocol=PROTOCOL)
        for x in sorted(joining):
            yield self._joined(after, x)

    def _accept(self, before: State, after: State) -> Iterator[Event]:
        now = self._now(before)
        named = sorted(_set(before, "member") | {m for m, _ in _points(before, "proposal")})
        yield Sync(**self._who(self.leader), generation=now, assignment={self._name(x): _row(before, "proposal", x) for x in named})
        members = {self._name(x): self._info(after, x) for x in sorted(_set(after, "member"))}
        stored = {name: _row(after, "assigned", _value(after, "generation"), x) for x in named if (name := self._name(x)) in members}
        yield Assignment(group=GROUP, generation=now, assignment=stored, members=members, leader=self._name(self.leader), protocol=PROTOCOL)

    def _info(self, state: State, x: int) -> MemberInfo:
        claimed = {"owned_generation": self._number(state, "owned_generation", x) or -1}
        return MemberInfo(self._instance(x), SESSION_MS, (TOPIC,), _row(state, "owned", x), claimed)

    def _answer_sync(self, before: State, after: State, x: int, g: int) -> Iterator[Event]:
        number = self.numbers[g]
        yield Sync(**self._who(x), generation=number)
        yield Synced(**self._who(x), generation=number, resources=_row(after, "response_assignment", x))

    def _commit(self, before: State, after: State, x: int, p: int) -> Iterator[Event]:
        yield Commit(**self._who(x), generation=self._number(before, "completed", x), resources=(f"{TOPIC}-{p}",))

    def _remove(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield Expire(**self._who(x), generation=self._now(before), reason="session")
        yield from self._opened(before, after, f"removing member {self._name(x)} on heartbeat expiration")

    def _failover(self, before: State, after: State) -> Iterator[Event]:
        self.epoch += 1
        yield Load(group=GROUP, generation=self._now(after))

    # The clients.

    def _changed(self, before: State, after: State, x: int, generation: str) -> Iterator[Event]:
        """What a client gave up and took, in its own order."""
        had, has = _row(before, "believes", x), _row(after, "believes", x)
        where: dict[str, Any] = {**self._who(x), "generation": self._number(after, generation, x)}
        given, taken = tuple(r for r in had if r not in has), tuple(r for r in has if r not in had)
        if given:
            yield Revoked(**where, resources=given)
        if taken:
            yield Assigned(**where, resources=taken)

    def _revoke(self, before: State, after: State, x: int, g: int) -> Iterator[Event]:
        yield from self._changed(before, after, x, "joined")

    def _assign(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield from self._changed(before, after, x, "completed")
        yield Owned(**self._who(x), generation=self._number(after, "completed", x), resources=_row(after, "believes", x))

    def _rejoin_early(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield from self._changed(before, after, x, "completed")

    def _revoke_late(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield from self._changed(before, after, x, "completed")

    def _give_up(self, before: State, after: State, x: int, p: int) -> Iterator[Event]:
        yield from self._changed(before, after, x, "completed")

    def _reset(self, before: State, after: State, x: int) -> Iterator[Event]:
        if had := _row(before, "believes", x):
            yield Lost(**self._who(x), generation=self._number(before, "completed", x), resources=had)

    def _crash(self, before: State, after: State, x: int) -> Iterator[Event]:
        yield Crashed(**self._who(x))


_SILENT = frozenset({"start", "rejoin", "lose_join_request", "receive_join_response", "propose", "empty", "deliver_old_join"})


def _points(state: State, name: str) -> Any:
    return state.get(name, ())


def _holds(state: State, name: str, *point: int) -> bool:
    return point in _points(state, name)


def _value(state: State, name: str, *point: int) -> int:
    return _points(state, name)[point]


def _set(state: State, name: str) -> set[int]:
    return {point[0] for point in _points(state, name)}


def _row(state: State, name: str, *key: int) -> tuple[str, ...]:
    return tuple(f"{TOPIC}-{point[-1]}" for point in sorted(_points(state, name)) if point[:-1] == key)
