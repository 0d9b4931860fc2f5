"""What a reader of a whole file offers (trace version 1, Parquet, ITF, the offsets topic), and the count that it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from ...spec.events import Event

MALFORMED_KEPT = 100
"""How many malformed lines of a file are named; all of them are counted."""


@dataclass(frozen=True, slots=True)
class MalformedAt:
    """A line (counted from 1) that could not be read, and why."""

    line: int
    why: str


@dataclass(slots=True)
class Tally:
    """What became of every line of one file: it gave evidence, was irrelevant, or was malformed.

    Where a format has no lines, a line is one record or object of it. ``lines`` is the sum of the three by construction,
    so a reader accounts for each line exactly once, by `took`, `skipped` or `broken`.
    """

    events: int = 0
    irrelevant: int = 0
    malformed: int = 0
    malformed_at: list[MalformedAt] = field(default_factory=list[MalformedAt])

    @property
    def lines(self) -> int:
        """All lines accounted for so far."""
        return self.events + self.irrelevant + self.malformed

    def took(self, lines: int = 1) -> None:
        """Count lines that were recognised, whether or not they gave an event."""
        self.events += lines

    def skipped(self, lines: int = 1) -> None:
        """Count lines that say nothing about a rebalance."""
        self.irrelevant += lines

    def broken(self, line: int, why: str) -> None:
        """Count a line that can't be read, and name it while fewer than `MALFORMED_KEPT` are named."""
        self.malformed += 1
        if len(self.malformed_at) < MALFORMED_KEPT:
            self.malformed_at.append(MalformedAt(line, why))


class WholeFileReader(Protocol):
    """Reads one format that is not lines of a log.

    ``stream`` is decompressed and at its beginning; it may not be seekable. Nothing but an unreadable stream
    (`OSError`, `EOFError`) raises: what can't be read is counted by ``tally``.
    """

    @property
    def name(self) -> str: ...

    def read(self, stream: BinaryIO, file: str, tally: Tally) -> Iterator[Event]: ...
