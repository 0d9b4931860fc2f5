"""Validate captures: read, assemble, check, and say so in one report."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from typing import Literal

from ..spec.check import check
from ..spec.events import Event
from ..spec.results import Settings, Verdict, worst
from .assemble import Capture, assemble
from .failed import Failed
from .pipeline.dataset import captures, is_dataset, load
from .pipeline.inputs import is_local, local
from .pipeline.runtime import missing, require
from .readers.files import Ledger, read
from .readers.paths import expand
from .readers.streams import SUFFIXES, bytes_to_read
from .report import Input, MalformedLine, Report
from .waivers import Waiver, apply

NATIVE_FORMATS = frozenset({"native", "parquet", "itf"})
"""Formats whose events carry their coordinator epochs."""

Engine = Literal["auto", "local", "spark"]

SMALL = 64 << 20
"""Bytes of events up to which ``auto`` takes the local engine. It needs 15 to 50 microseconds an event of some 250 bytes, so up to
15 s for this; Spark takes 10 s to start, and reads captures twice over, once to sort them."""
EVENT = 250
"""Bytes that an event of a data set counts for."""
NATIVE = (".jsonl", ".json", ".parquet")
OTHER_LINES = 8
"""How much larger a log is than the lines in it that are events, at least: the local engine skips the others at some 300 MB a second."""


def validate(
    paths: Sequence[str],
    *,
    engine: Engine = "auto",
    format: str = "auto",
    settings: Settings | None = None,
    waivers: Sequence[Waiver] = (),
    strict: bool = False,
    allow_malformed: bool = False,
    today: date | None = None,
    master: str | None = None,
    scratch: str | None = None,
    tables: str | None = None,
) -> Report:
    """Validate captured traces.

    ``paths`` are files, directories, globs, URLs, or data sets that `ingest` made; ``format`` is "auto" or a reader's name.
    ``engine`` says where to run: "auto" takes the local engine while the input is small, and notes which it took. ``strict`` takes
    any rule that could not be checked as undetermined, ``allow_malformed`` lets malformed lines pass. Unreadable files are named in
    the report's inputs (``problem``), the others still count.

    For Spark only: ``master`` is its address; ``scratch`` a directory or URL that all its executors share, where captures are
    ingested and removed again (not needed if Spark runs on this machine); all groups and findings are written to ``tables`` and
    the endings ``.groups.parquet`` and ``.findings.parquet``, if it is given, and the report has a sample of them if they are many.

    Raises `DataSetError` for a data set that can't be used, `ValueError` for an unknown format, `SparkFailed` if Spark can't work.
    """
    today = today or date.today()
    taken, note = _engine(paths, master) if engine == "auto" else (engine, None)
    if taken == "local":
        report = _local(paths, format, settings)
        report = apply(report, waivers, today) if waivers else report
    else:
        require()
        report = importlib.import_module(".pipeline.job", __package__).validate(
            paths, format, settings or Settings(), waivers, today, master=master, scratch=scratch, tables=tables
        )
    report = _judge(report, strict=strict, allow_malformed=allow_malformed)
    return replace(report, notes=(*report.notes, note)) if note else report


def _local(paths: Sequence[str], format: str, settings: Settings | None) -> Report:
    found, inputs = captured(paths, format)
    groups = check(assemble(found), settings)
    return Report(command="validate", version=version("kipcheck"), verdict=worst(g.verdict for g in groups), inputs=inputs, groups=groups)


def captured(paths: Sequence[str], format: str = "auto") -> tuple[Sequence[Capture], tuple[Input, ...]]:
    """What is in the captures under ``paths``: files, directories, globs, or data sets that `ingest` made; and the ledger of each.

    Raises `ValueError` for an unknown ``format``, `DataSetError` for a data set that can't be used.
    """
    found: list[Capture] = []
    inputs: list[Input] = []
    datasets = [path for path in paths if is_dataset(path)]
    for path in datasets:
        ingested, entries = captures(path)
        found += ingested
        inputs += entries
    for reading in read([path for path in paths if path not in datasets], format):
        events = tuple(reading.events)
        found.append(Capture(reading.path, events, native=reading.ledger.format in NATIVE_FORMATS))
        inputs.append(account(reading.ledger))
    return found, tuple(inputs)


def events_of(paths: Sequence[str], format: str = "auto") -> list[Event]:
    """The events of captures, epochs aligned. Raises `Failed` if one of them can't be read, else as `captured`."""
    events, inputs = events_and_inputs(paths, format)
    if unread := [f"{each.path}: {each.problem}" for each in inputs if each.problem is not None]:
        raise Failed("\n".join(unread))
    return events


def events_and_inputs(paths: Sequence[str], format: str = "auto") -> tuple[list[Event], tuple[Input, ...]]:
    """The events of those captures that can be read, epochs aligned, and the ledger of each."""
    found, inputs = captured(paths, format)
    return list(assemble(found)), inputs


def _engine(paths: Sequence[str], master: str | None) -> tuple[Engine, str]:
    """Where to run, and why."""
    if master is not None:
        return "spark", "engine: Spark, as --master names one"
    if remote := next((path for path in paths if not is_local(path)), None):
        return "spark", f"engine: Spark, as {remote} is not on this machine"
    size = sum(map(_size, paths))
    told = f"some {size / (1 << 20):,.1f} MB of events"
    if size <= SMALL:
        return "local", f"engine: local, for {told} (Spark pays from {SMALL >> 20} MB on)"
    if missing():
        return "local", f"engine: local, for {told}; Spark would be faster and is not installed: pip install 'kipcheck[spark]'"
    return "spark", f"engine: Spark, for {told} (local up to {SMALL >> 20} MB)"


def _size(path: str) -> int:
    """Bytes of events, about."""
    if is_dataset(path):
        return EVENT * sum(part.rows for part in load(path).parts)
    return sum(_events(file) for file in expand([local(path)]) if isinstance(file, str) and os.path.isfile(file))


def _events(file: str) -> int:
    read = bytes_to_read(file, os.path.getsize(file))
    native = file.endswith((*NATIVE, *(name + packed for name in NATIVE for packed in SUFFIXES)))
    return read if native else read // OTHER_LINES


def exit_status(report: Report) -> int:
    """0 conforms, 1 violated, 2 an input could not be read, 3 undetermined."""
    if report.verdict is Verdict.VIOLATES:
        return 1
    if any(i.problem for i in report.inputs):
        return 2
    return 0 if report.verdict is Verdict.CONFORMS else 3


def account(ledger: Ledger) -> Input:
    """What a report tells of a file that was read."""
    return Input(
        path=ledger.path,
        format=ledger.format,
        lines=ledger.lines,
        events=ledger.events,
        irrelevant=ledger.irrelevant,
        malformed=ledger.malformed,
        malformed_at=tuple(MalformedLine(at.line, at.why) for at in ledger.malformed_at),
        problem=ledger.problem.removeprefix(f"{ledger.path}: ") if ledger.problem is not None else None,
    )


def _judge(report: Report, *, strict: bool, allow_malformed: bool) -> Report:
    """Conforming takes evidence that is whole: malformed lines, or under ``strict`` any unknown rule, leave it open."""
    notes = list(report.notes)
    verdict = report.verdict
    malformed = sum(i.malformed for i in report.inputs)
    if malformed and not allow_malformed and verdict is Verdict.CONFORMS:
        verdict = Verdict.UNDETERMINED
        notes.append(f"{malformed} malformed line(s) leave the verdict open; --allow-malformed accepts them")
    if strict and verdict is Verdict.CONFORMS and any(rule.unknown for rule in report.totals.rules):
        verdict = Verdict.UNDETERMINED
        notes.append("--strict: some rules could not be checked")
    return replace(report, verdict=verdict, notes=tuple(notes))
