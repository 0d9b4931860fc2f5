"""Everything that can happen in the closed world, one frozen record each, and the script that a run prints as.

A line of a script is an act, ``arrive c1``, and after a colon which option each decision of the step took.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import cast


@dataclass(frozen=True, slots=True)
class Act:
    """Something that happens; as text the verb and its objects, as in ``arrive c1``."""

    def __str__(self) -> str:
        return " ".join((type(self).__name__.lower(), *(_word(getattr(self, f.name)) for f in fields(self))))


def _word(value: object) -> str:
    return ",".join(cast("tuple[str, ...]", value)) or "-" if isinstance(value, tuple) else str(value) or "-"


@dataclass(frozen=True, slots=True)
class Arrive(Act):
    """The coordinator receives the next request on a client's connection."""

    who: str


@dataclass(frozen=True, slots=True)
class Return(Act):
    """A client receives the next answer on its connection."""

    who: str


@dataclass(frozen=True, slots=True)
class Poll(Act):
    """The application polls (Connect: the herder ticks)."""

    who: str


@dataclass(frozen=True, slots=True)
class Read(Act):
    """A Connect worker reads the config topic up to its end."""

    who: str


@dataclass(frozen=True, slots=True)
class Finish(Act):
    """The rebalance callback returns."""

    who: str


@dataclass(frozen=True, slots=True)
class Beat(Act):
    """The heartbeat thread sends."""

    who: str


@dataclass(frozen=True, slots=True)
class Overstay(Act):
    """max.poll.interval.ms is over without a poll."""

    who: str


@dataclass(frozen=True, slots=True)
class Giveup(Act):
    """A request timed out: the client closes the connection."""

    who: str


@dataclass(frozen=True, slots=True)
class Close(Act):
    """The application closes the client in order."""

    who: str


@dataclass(frozen=True, slots=True)
class Resume(Act):
    """A stalled or paused process goes on."""

    who: str


@dataclass(frozen=True, slots=True)
class Fire(Act):
    """A timer of the coordinator ends; ``member`` is empty for the group's own timers."""

    kind: str
    member: str


@dataclass(frozen=True, slots=True)
class Store(Act):
    """The oldest append in flight is in the log."""


@dataclass(frozen=True, slots=True)
class Load(Act):
    """A coordinator loads the group from the log."""


@dataclass(frozen=True, slots=True)
class Advance(Act):
    """Time passes, up to the next deadline."""


@dataclass(frozen=True, slots=True)
class Wander(Act):
    """The oldest request that was sent on a broken connection arrives after all."""

    connection: str


@dataclass(frozen=True, slots=True)
class Start(Act):
    """A process starts, for the first time or again."""

    who: str


@dataclass(frozen=True, slots=True)
class Crash(Act):
    """A process ends without a word; what it sent last may still arrive."""

    who: str


@dataclass(frozen=True, slots=True)
class Pause(Act):
    """A process stands still, as in a long garbage collection."""

    who: str


@dataclass(frozen=True, slots=True)
class Stall(Act):
    """The application does not poll, or its callback takes long; the heartbeat thread goes on."""

    who: str


@dataclass(frozen=True, slots=True)
class Raise(Act):
    """The rebalance callback throws."""

    who: str


@dataclass(frozen=True, slots=True)
class Delay(Act):
    """What is on a client's connection now may take any time."""

    who: str


@dataclass(frozen=True, slots=True)
class Cut(Act):
    """A client's connection breaks."""

    who: str


@dataclass(frozen=True, slots=True)
class Commit(Act):
    """The application commits what it owns."""

    who: str


@dataclass(frozen=True, slots=True)
class Subscribe(Act):
    """The application changes its subscription; no topics means unsubscribe."""

    who: str
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resize(Act):
    """A topic gets that many partitions (Connect: a connector that many tasks); 0 deletes it."""

    topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Refuse(Act):
    """The oldest append in flight fails."""

    error: str


@dataclass(frozen=True, slots=True)
class Resign(Act):
    """The coordinator hands its group over in order, answering what is parked."""


@dataclass(frozen=True, slots=True)
class Fall(Act):
    """The coordinator's broker dies: all connections break."""


# Scripts.


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a script: an act, and which option each decision of the step took (the first, where it says nothing)."""

    act: Act
    picks: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.act} : {' '.join(map(str, self.picks))}" if any(self.picks) else str(self.act)


_VERBS: Mapping[str, type[Act]] = MappingProxyType({kind.__name__.lower(): kind for kind in Act.__subclasses__()})


def line(text: str) -> Line:
    """Read a line of a script; raises ValueError if it is none."""
    said, _, picks = text.partition(" : ")
    verb, *words = said.split() or [""]
    kind = _VERBS.get(verb)
    if kind is None or len(words) != len(fields(kind)):
        raise ValueError(f"not a line of a script: {text!r}")
    try:
        values = [_value(str(f.type), word) for f, word in zip(fields(kind), words, strict=True)]
        return Line(kind(*values), tuple(int(pick) for pick in picks.split()))
    except ValueError:
        raise ValueError(f"not a line of a script: {text!r} needs a whole number where it has none") from None


def _value(kind: str, word: str) -> object:
    text = "" if word == "-" else word
    if kind == "int":
        return int(text)
    return tuple(text.split(",")) if kind.startswith("tuple") and text else () if kind.startswith("tuple") else text
