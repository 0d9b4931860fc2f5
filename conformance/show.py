"""`kipcheck show`: the picture of captures, or of a report, as one web page."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from ..spec.assignors.case import CaseError
from ..spec.catalogue import CATALOGUE
from ..spec.check import check
from ..spec.events import Event
from ..spec.results import Finding, GroupResult, Verdict
from .failed import Failed
from .gate.retold import retold
from .readers.files import formats
from .reported import Reported, report_in
from .reports.page import page
from .timeline import Timeline, timeline
from .validate import events_of

_WORST = {Verdict.VIOLATES: 0, Verdict.UNDETERMINED: 1, Verdict.CONFORMS: 2}
_SEVEREST = {"error": 0, "warning": 1, "info": 2}


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="TRACE|REPORT...")
@click.option("--group", metavar="NAME", help="Only this group.")
@click.option("--format", "format_", type=click.Choice(formats()), default="auto", show_default=True, help="What the files hold.")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, writable=True), help="The page to write.")
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
    try:
        Path(output).write_text(page(chosen, CATALOGUE, notes), encoding="utf-8")
    except OSError as error:
        raise Failed(f"can't write {output}: {error.strerror}") from error
    found = [cited.finding for each in chosen for cited in each.findings if cited.finding.severity != "info"]
    worst = chosen[0].result
    click.echo(
        f"{output}: {worst.verdict.value}, {len(chosen):,} group{'' if len(chosen) == 1 else 's'}, {sum(len(each.steps) for each in chosen):,} steps"
    )
    for finding in found[:5]:
        click.echo(f"  {output}#{finding.fingerprint}  {finding.rule}")


def pictures(paths: Sequence[str], format: str = "auto") -> tuple[list[Timeline], list[str]]:
    """The picture of each group, the worst first, and remarks. Raises `Failed` for what can't be read."""
    reports = [report for path in paths if (report := report_in(path)) is not None]
    if not reports:
        events = events_of(paths, format)
        return _drawn(check(events), events), []
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
    worst = min((_SEVEREST[cited.finding.severity] for cited in picture.findings), default=3)
    return _WORST[picture.result.verdict], not picture.steps, worst, -len(picture.steps), picture.result.group


def _reported(report: Reported, format: str) -> tuple[list[Timeline], list[str]]:
    """From the captures that the report is about, as far as they are there."""
    there = [path for path in report.inputs if os.path.exists(path)]
    missing = [path for path in report.inputs if not os.path.exists(path)]
    events = events_of(there, format) if there else []
    notes = [
        f"not here: {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}; the findings are explained, the picture lacks their lines"
    ]
    return _drawn(report.groups, events), notes if missing else []


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
