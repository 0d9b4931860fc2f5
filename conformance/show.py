"""`kipcheck show`: the picture of captures, or of a report, as one web page."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import click

from ..spec.assignors.case import CaseError
from ..spec.catalogue import CATALOGUE
from ..spec.check import check
from ..spec.events import Event
from ..spec.results import Finding, GroupResult, Verdict
from .failed import Failed
from .gate.retold import retold
from .options import save
from .readers.files import formats
from .report import SEVEREST
from .reported import Reported, report_in
from .reports.page import page
from .reports.prose import count, line, malformed, some, unread
from .reports.summary import WORST
from .timeline import Timeline, timeline
from .validate import events_and_inputs


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="TRACE|REPORT...")
@click.option("--group", metavar="NAME", help="Only this group.")
@click.option("--format", "format_", type=click.Choice(formats()), default="auto", show_default=True, help="What the files hold.")
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, writable=True), help="The page to write; - is standard output."
)
def show(paths: tuple[str, ...], group: str | None, format_: str, output: str) -> None:
    """Draw captures, or a JSON report of `validate` or `gate`, as one web page that needs nothing else.

    Lanes for the coordinator and each member, bars for what they own, and each finding where it rests. A link to a finding is the page's
    name, # and its fingerprint.

    Exit status: 0 written, 2 usage, no such group, or unreadable input.
    """
    drawn, notes = pictures(paths, format_)
    chosen = [each for each in drawn if group in (None, each.result.group)]
    if not chosen:
        raise Failed(
            f"{', '.join(paths)}: "
            + (f"no group {group!r}" if drawn else "nothing in them tells of a group; kipcheck validate says what was read")
        )
    text = page(chosen, CATALOGUE, notes)
    if output == "-":
        click.echo(text)
        return
    save(output, text.encode())
    steps = sum(len(each.steps) for each in chosen)
    click.echo(f"{output}: {chosen[0].result.verdict.value}, {count(len(chosen), 'group')}, {count(steps, 'step')}")
    found = [cited.finding for each in chosen for cited in each.findings if cited.finding.severity != "info"]
    for finding in found[:5]:
        click.echo(f"  {output}#{line(finding.fingerprint)}  {line(finding.rule)}")
    for note in notes:
        click.echo(f"note: {line(note)}", err=True)


def pictures(paths: Sequence[str], format: str = "auto") -> tuple[list[Timeline], list[str]]:
    """The picture of each group, the worst first, and remarks. Raises `Failed` for what can't be read."""
    reports = [report for path in paths if (report := report_in(path)) is not None]
    if not reports:
        events, notes = _captured(paths, format)
        return _drawn(check(events), events), notes
    if len(paths) > 1:
        raise Failed("a report stands alone: show it, or the captures")
    (report,) = reports
    if report.command == "gate" and not any(group.findings for group in report.groups):
        raise Failed(f"{paths[0]}: a gate's report without findings: there is nothing to draw")
    return (_gated(report), []) if report.command == "gate" else _reported(report, format)


def _drawn(groups: Sequence[GroupResult], events: Sequence[Event]) -> list[Timeline]:
    by_group: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        by_group[event.cluster, event.group].append(event)
    return sorted((timeline(each, by_group[each.cluster, each.group]) for each in groups), key=_rank)


def _rank(picture: Timeline) -> tuple[int, bool, int, int, str]:
    """The worst first; of equal ones that with the most to see."""
    worst = min((SEVEREST[cited.finding.severity] for cited in picture.findings), default=3)
    return WORST[picture.result.verdict], not picture.steps, worst, -len(picture.steps), picture.result.group


def _captured(paths: Sequence[str], format: str) -> tuple[list[Event], list[str]]:
    """The events, and what of the captures could not be read. Raises `Failed` if that is everything."""
    events, inputs = events_and_inputs(paths, format)
    problems = unread(inputs)
    if problems and not events:
        raise Failed("\n".join(problems))
    return events, [f"not read: {problem}" for problem in problems] + malformed(inputs)


def _reported(report: Reported, format: str) -> tuple[list[Timeline], list[str]]:
    """From the captures that the report is about, as far as they are there: files and directories of this machine, nothing else."""
    there = [path for path in report.inputs if os.path.isfile(path) or os.path.isdir(path)]
    missing = [path for path in report.inputs if path not in there]
    events, notes = _captured(there, format) if there else ([], [])
    if there:
        notes.append(f"drawn from {some(there, 5)}")
    if missing:
        notes.append(f"not here: {some(missing, 5)}; the findings are explained, the picture lacks their lines")
    return _drawn(report.groups, events), notes


def _gated(report: Reported) -> list[Timeline]:
    """A picture for each input that fails; several classes of inputs may share one."""
    failed = {finding.fingerprint: (group, finding) for group in reversed(report.groups) for finding in reversed(group.findings)}
    return sorted((_failed(group, finding) for group, finding in failed.values()), key=_rank)


def _failed(group: GroupResult, finding: Finding) -> Timeline:
    called = f"{finding.group}: {finding.rule}"
    try:
        events = [replace(event, group=called) for event in retold(finding)]
    except CaseError as error:
        raise Failed(f"the case of finding {finding.fingerprint}: {error}") from error
    result = replace(group, group=called, verdict=Verdict.VIOLATES if finding.severity == "error" else group.verdict, findings=(finding,))
    return timeline(result, events)
