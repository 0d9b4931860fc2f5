"""The shape of a client process: what can happen to it, and what a step of it yields.

A consumer (`consumer.py`) and a Connect worker (`connect/worker.py`) are both a frozen state and one pure function
``step(process, happening, now, choose) -> Turn``. A callback takes time: the step that starts it leaves it pending in the
state, and `CallbackDone` ends it, so that anything may happen in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..spec.events import Event
from .messages import Request, Response

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Poll:
    """The application calls poll (Connect: the herder ticks). ``topics`` is its view of the metadata: partitions per topic."""

    topics: Mapping[str, int]
    racks: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to request ``correlation``; ``topics`` as in `Poll`, for a leader that assigns now."""

    correlation: int
    response: Response
    topics: Mapping[str, int]
    racks: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Disconnected:
    """Request ``correlation`` will never be answered: the connection broke or the request timed out."""

    correlation: int


@dataclass(frozen=True, slots=True)
class HeartbeatDue:
    """The heartbeat thread's turn."""


@dataclass(frozen=True, slots=True)
class PollTimeout:
    """max.poll.interval.ms went by without a poll."""


@dataclass(frozen=True, slots=True)
class CallbackDone:
    """The pending rebalance callback returned, or ``raised``."""

    raised: bool = False


@dataclass(frozen=True, slots=True)
class Subscribe:
    """The application changes its subscription; no topics means unsubscribe."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitDue:
    """The application commits what it owns."""


@dataclass(frozen=True, slots=True)
class Close:
    """The application closes the client in order."""


Happening = Poll | Answer | Disconnected | HeartbeatDue | PollTimeout | CallbackDone | Subscribe | CommitDue | Close


@dataclass(frozen=True, slots=True)
class Turn(Generic[State]):
    """What one step yields: the new state, requests by correlation number, and what an observer of the member sees.

    ``error`` is what the call would have thrown at the application, if anything. Events carry group, member and
    generation; the world adds time and epoch.
    """

    process: State
    requests: tuple[tuple[int, Request], ...] = ()
    events: tuple[Event, ...] = ()
    error: str | None = None


def exception(error: str) -> str:
    """The Java exception of an error code: FENCED_INSTANCE_ID is FencedInstanceIdException."""
    return "".join(word.capitalize() for word in error.removesuffix("_FAILED").split("_")) + "Exception"
