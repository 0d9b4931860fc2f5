"""Validate captures: read, assemble, check, and say so in one report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from importlib.metadata import version

from ..spec.check import check
from ..spec.results import GroupResult, Settings, Verdict, worst
from .assemble import Capture, assemble
from .readers.files import Ledger, read
from .report import Input, MalformedLine, Report
from .waivers import Waiver, apply

NATIVE_FORMATS = frozenset({"native", "parquet"})
"""Formats whose events carry their coordinator epochs."""


def validate(
    paths: Sequence[str],
    *,
    format: str = "auto",
    settings: Settings | None = None,
    waivers: Sequence[Waiver] = (),
    strict: bool = False,
    allow_malformed: bool = False,
    today: date | None = None,
) -> Report:
    """Validate captured traces with the local engine.

    ``paths`` are files, directories or globs; ``format`` is "auto" or a reader's name. ``strict`` takes any rule that
    could not be checked as undetermined, ``allow_malformed`` lets malformed lines pass. Unreadable files are named in
    the report's inputs (``problem``), the others still count.
    """
    captures: list[Capture] = []
    inputs: list[Input] = []
    for reading in read(paths, format):
        events = tuple(reading.events)
        ledger = reading.ledger
        captures.append(Capture(ledger.path, events, native=ledger.format in NATIVE_FORMATS))
        inputs.append(_input(ledger))
    groups = check(assemble(captures), settings)
    report = Report(
        command="validate", version=version("kipcheck"), verdict=worst(g.verdict for g in groups), inputs=tuple(inputs), groups=groups
    )
    report = apply(report, waivers, today or date.today()) if waivers else report
    return _judge(report, strict=strict, allow_malformed=allow_malformed)


def exit_status(report: Report) -> int:
    """0 conforms, 1 violated, 2 an input could not be read, 3 undetermined."""
    if report.verdict is Verdict.VIOLATES:
        return 1
    if any(i.problem for i in report.inputs):
        return 2
    return 0 if report.verdict is Verdict.CONFORMS else 3


def _input(ledger: Ledger) -> Input:
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
    if strict and verdict is Verdict.CONFORMS and any(_unknown(g) for g in report.groups):
        verdict = Verdict.UNDETERMINED
        notes.append("--strict: some rules could not be checked")
    return replace(report, verdict=verdict, notes=tuple(notes))


def _unknown(group: GroupResult) -> bool:
    return any(result.status == "unknown" for result in group.rules.values())
