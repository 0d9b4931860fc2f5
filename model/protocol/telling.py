"""What the tellers of both protocols share: how a state is read, and how a step becomes events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, cast

from ...spec.events import Event, GenerationStarted, Rebalance
from .interpreter import Function, Relation, State, Step

STEP_US = 1000
"""Microseconds from one event to the next."""


@dataclass(slots=True)
class Teller:
    """Tells steps by methods that are called as the action: ``_join(before, after, *arguments)``.

    ``numbers`` are the generation numbers that Kafka would have used for the points of the protocol's order; ``clock`` is the time of
    the next event in microseconds.
    """

    group: ClassVar[str]
    rebalance_ms: ClassVar[int]
    session_ms: ClassVar[int]
    silent: ClassVar[frozenset[str]] = frozenset()

    start: State
    events: list[Event] = field(default_factory=list[Event])
    numbers: dict[int, int] = field(default_factory=lambda: {0: 0})
    leader: int = 0
    epoch: int = 0
    clock: int = 0
    opening: int = 0
    """When the last join phase began."""

    def tell(self, step: Step, before: State, after: State) -> None:
        """Add the events of a step. Raises ValueError for an action that it knows nothing of."""
        if step.action in self.silent:
            return
        tell = getattr(self, f"_{step.action}", None)
        if tell is None:
            raise ValueError(f"no way to tell {step.action}")
        for event in cast("Iterator[Event]", tell(before, after, *step.arguments)):
            self.events.append(replace(event, ts=self.clock, epoch=self.epoch))
            self.clock += STEP_US

    def number(self, state: State, function: str, *point: int) -> int:
        """The generation number that the function has as its value."""
        return self.numbers[value(state, function, *point)]

    def now(self, state: State) -> int:
        return self.number(state, "generation")

    def opened(self, before: State, after: State, reason: str) -> Iterator[Event]:
        """That the step opened a join phase, if it did."""
        if holds(after, "preparing") and not holds(before, "preparing"):
            self.opening = self.clock
            yield Rebalance(group=self.group, generation=self.now(before), reason=reason)

    def wait_out(self) -> None:
        """Let the rebalance timeout pass."""
        self.clock = max(self.clock, self.opening + self.rebalance_ms * 1000)

    def fall_silent(self, member: str, instance: str | None = None) -> None:
        """Let the session timeout of a member pass since it began anew: the coordinator heard of the member, or ended a join phase."""

        def restarts(event: Event) -> bool:
            if isinstance(event, GenerationStarted):
                return member in (event.members or ())
            return event.observer == "coordinator" and (event.member == member or (instance is not None and event.instance == instance))

        heard = next((event.ts for event in reversed(self.events) if restarts(event)), None)
        self.clock = max(self.clock, (heard or 0) + self.session_ms * 1000)


def points(state: State, relation: str) -> Relation:
    found = state.get(relation, frozenset[tuple[int, ...]]())
    return frozenset(found) if isinstance(found, Mapping) else found


def holds(state: State, relation: str, *point: int) -> bool:
    return point in points(state, relation)


def value(state: State, function: str, *point: int) -> int:
    return cast("Function", state[function])[point]


def column(state: State, relation: str) -> set[int]:
    """Where a relation of one place holds."""
    return {point[0] for point in points(state, relation)}


def row(state: State, relation: str, *key: int) -> tuple[int, ...]:
    """The last places of a relation whose other places are ``key``, in order."""
    return tuple(point[-1] for point in sorted(points(state, relation)) if point[:-1] == key)
