"""What every reader of log lines offers, and what the scanner owes it.

A *reader* knows the messages of one program (a Java client, a broker, ...). For each file a fresh *session* of it is
opened, which is handed one message at a time and remembers what earlier lines told (a client's current member id).
Readers do not know about files, encodings, time stamps or line prefixes: `scan` and `prefix` have taken those off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ...spec.events import Event, Source


@dataclass(frozen=True, slots=True)
class Message:
    """One line of a log, without its prefix.

    ``text`` is the whole line decoded, without ANSI colours, JSON wrapping, CR and LF: messages are found in it by
    searching, as prefixes vary. ``ts`` is microseconds UTC or None. ``stream`` names the process that wrote the line
    where the line tells (docker compose service, Kubernetes pod, pid), else "".
    """

    text: str
    ts: int | None
    stream: str
    src: Source


@dataclass(frozen=True, slots=True)
class Taken:
    """The reader recognised the line. Without ``events`` the line still told it something that later events carry.

    ``more`` asks for the next line of the file whatever it holds (a block of several lines); the session then answers
    None for a line that is not part of the block, and the line is offered around as usual.
    """

    events: Sequence[Event] = field(default_factory=tuple)
    more: bool = False


class MalformedLine(ValueError):
    """A line that this reader surely owns but can't read (cut off, broken JSON). ``str()`` says what was expected."""


class Session(Protocol):
    """One reader at work on one file."""

    def feed(self, message: Message) -> Taken | None:
        """Recognise one line: None if it says nothing about a rebalance. Raises `MalformedLine`."""
        ...

    def close(self) -> Sequence[Event]:
        """The end of the file: events that waited for a further line."""
        ...


class LogReader(Protocol):
    """One program's messages. ``anchors``: every line that a session can take holds one of these literals."""

    @property
    def name(self) -> str: ...

    @property
    def anchors(self) -> tuple[str, ...]: ...

    def open(self, file: str) -> Session: ...
