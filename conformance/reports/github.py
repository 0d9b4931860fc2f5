"""The report as GitHub Actions workflow commands, printed by a step: annotations on the run and on the pull request.

Source: docs.github.com, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from ...spec.results import Finding, Severity
from ...spec.rule import Rule
from ..report import Report
from .cases import sheets, text
from .prose import called, clean, count, line, moment, outcome, subject
from .summary import digest

EACH, LENGTH = 10, 4000
"""Annotations of a level (GitHub shows no more of a step), and characters of one."""

_COMMAND: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}
_DATA = {ord("%"): "%25", ord("\r"): "%0D", ord("\n"): "%0A"}
_PROPERTY = _DATA | {ord(":"): "%3A", ord(","): "%2C"}


def render(report: Report, rules: Mapping[str, Rule]) -> str:
    """A command per finding and one for the verdict, a line each; no other line, so that nothing from the input can be a command."""
    return "".join(f"{each}\n" for each in _commands(report))


def _commands(report: Report) -> Iterator[str]:
    about = f"{who}: " if (who := subject(report)) else ""
    yield _command("notice", f"kipcheck {report.command}: {report.verdict.value}", f"{about}{outcome(report)}{_left_out(report)}")
    for severity, most in _room().items():
        for finding in islice(_telling([finding for finding in report.findings if finding.severity == severity]), most):
            where = ", ".join(filter(None, (called(report, finding), moment(finding))))
            yield _command(_COMMAND[severity], f"{finding.rule}: {where}", _told(finding))


def _telling(findings: Sequence[Finding]) -> Iterator[Finding]:
    """One of each sort, then the others: not all are shown."""
    batches, _ = digest(findings, each=1, total=len(findings))
    yield from (finding for batch in batches for finding in batch.shown)
    yield from (finding for batch in batches for finding in batch.more)


def _room() -> Mapping[Severity, int]:
    """One of the notices is the verdict."""
    return {"error": EACH, "warning": EACH, "info": EACH - 1}


def _left_out(report: Report) -> str:
    room = _room()
    more = sum(max(0, found - room[severity]) for severity, found in report.totals.findings.items())
    return f"; {count(more, 'more finding')} in the full report" if more else ""


def _told(finding: Finding) -> str:
    told = [line(finding.message)]
    told += text(sheets(finding.case))
    told += [f"Known: {line(finding.relaxed)}"] if finding.relaxed else []
    told += [f"What to do: {line(finding.advice)}"] if finding.advice else []
    told += [f"Run it again: {line(finding.replay)}"] if finding.replay else []
    return "\n".join(told)


def _command(name: str, title: str, message: str) -> str:
    short = message if len(message) <= LENGTH else f"{message[: LENGTH - 1]}…"
    return f"::{name} title={line(title).translate(_PROPERTY)}::{clean(short).translate(_DATA)}"
