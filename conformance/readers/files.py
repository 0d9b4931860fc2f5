"""Reads captured files of any kind: the events that they hold, and a ledger of what became of every line."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import BinaryIO, cast

from ...spec.events import Event
from . import detect, registry
from .base import LogReader
from .detect import Content, Unreadable
from .paths import NoSuchFile, expand
from .scan import Scan, blocks, whole_lines
from .streams import PEEK, Utf8, open_file, unpacked
from .whole import MalformedAt, Tally

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Ledger:
    """What became of the lines of the file ``path``: ``lines`` = ``events`` + ``irrelevant`` + ``malformed``.

    ``format`` joins the names of the log readers that took lines by "+". ``records`` counts the event records, of which
    a line can give none or several. ``malformed_at`` names the first malformed lines. ``problem`` says why the file, or
    the rest of it, could not be read, and what to do about it.
    """

    path: str
    format: str
    lines: int
    events: int
    irrelevant: int
    malformed: int
    malformed_at: tuple[MalformedAt, ...]
    records: int
    problem: str | None


@dataclass(slots=True)
class FileReading:
    """One file being read. Take all of ``events`` (once), then ``ledger`` is complete."""

    path: str
    events: Iterator[Event]
    _progress: _Progress

    @property
    def ledger(self) -> Ledger:
        """The account of what ``events`` has passed so far."""
        progress = self._progress
        tally = progress.tally
        return Ledger(
            path=self.path,
            format=progress.format,
            lines=tally.lines,
            events=tally.events,
            irrelevant=tally.irrelevant,
            malformed=tally.malformed,
            malformed_at=tuple(tally.malformed_at),
            records=progress.records,
            problem=progress.problem and f"{self.path}: {progress.problem}",
        )


@dataclass(slots=True)
class _Progress:
    format: str
    tally: Tally = field(default_factory=Tally)
    records: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A file that is not at its path on this machine: how to open its bytes (may raise `OSError`), and when it was modified."""

    open: Callable[[], io.RawIOBase]
    modified: datetime


def formats() -> tuple[str, ...]:
    """Every name that `read` takes as ``format``."""
    readers = (*registry.WHOLE_FILE_READERS, *registry.LOG_READERS)
    return (AUTO, detect.LOG, *(reader.name for reader in readers))


def read(paths: Sequence[str], format: str = AUTO) -> Iterator[FileReading]:
    """Read the files under ``paths`` (files, directories, globs) one after another.

    ``format`` is one of `formats`; ``auto`` looks into each file. Nothing raises but a ``format`` that is none
    (`ValueError`): what can't be read is the ledger's ``problem``, and the next file follows.
    """
    if format not in formats():
        raise ValueError(f"unknown format {format!r}: expected one of {', '.join(formats())}")
    for path in expand(paths):
        if isinstance(path, NoSuchFile):
            yield FileReading(path.path, iter(()), _Progress("none", problem=path.problem))
        else:
            yield read_file(path, format)


def read_file(path: str, format: str = AUTO, stored: Stored | None = None) -> FileReading:
    """Read one file, which is ``stored`` where no local ``path`` leads; else as `read`."""
    progress = _Progress("unknown" if format == AUTO else format)
    return FileReading(path, _events(path, format, stored, progress), progress)


def _events(path: str, format: str, stored: Stored | None, progress: _Progress) -> Iterator[Event]:
    try:
        modified = stored.modified if stored else datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
        with unpacked(stored.open()) if stored else open_file(path) as (stream, guard):
            yield from _content(stream, path, format, modified, progress)
            progress.problem = guard.problem
    except Unreadable as unreadable:
        progress.problem = str(unreadable)
    except PermissionError:
        progress.problem = "permission denied: make it readable for the user who runs kipcheck"
    except OSError as error:
        progress.problem = error.strerror or str(error)


def _content(stream: io.BufferedReader, path: str, format: str, modified: datetime, progress: _Progress) -> Iterator[Event]:
    content = _detected(stream.peek(PEEK), path, format)
    progress.format = content.format
    for whole in registry.WHOLE_FILE_READERS:
        if whole.name == progress.format:
            for event in whole.read(_decoded(stream, content), path, progress.tally):
                progress.records += 1
                yield event
            return
    if progress.format != detect.EMPTY:
        yield from _log(_decoded(stream, content), path, _log_readers(format), modified, progress)


def _detected(head: bytes, path: str, format: str) -> Content:
    try:
        content = detect.detect(head, path)
    except Unreadable:
        if format == AUTO:
            raise
        return Content(format)
    return content if format == AUTO else replace(content, format=format)


def _log(stream: BinaryIO, path: str, readers: Sequence[LogReader], modified: datetime, progress: _Progress) -> Iterator[Event]:
    scan = Scan(path, readers, modified, progress.tally)
    for event in scan.events(whole_lines(blocks(stream))):
        progress.records += 1
        yield event
    if scan.taken_by:
        progress.format = "+".join(name for name, _ in scan.taken_by.most_common())


def _log_readers(format: str) -> Sequence[LogReader]:
    return [reader for reader in registry.LOG_READERS if reader.name == format] or registry.LOG_READERS


def _decoded(stream: io.BufferedReader, content: Content) -> BinaryIO:
    if content.encoding == "utf-8" and not content.cr:
        return cast(BinaryIO, stream)
    return cast(BinaryIO, io.BufferedReader(Utf8(cast(BinaryIO, stream), content.encoding, cr=content.cr), PEEK))
