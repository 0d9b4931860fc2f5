"""The report as one self-contained web page: no script, no request to anywhere, every name in it escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

from jinja2 import Environment, PackageLoader, StrictUndefined

from ...spec.results import Finding, GroupResult, RuleResult, Severity, Status
from ...spec.rule import Rule
from ..report import Report, Waived
from .cases import as_json, sheets
from .prose import SEVERITY, called, clean, cost, count, measured, moment, notes, noun, outcome, place, plural, some, subject, tally
from .summary import by_group, ledger, statuses, troubled_first, worst_first

FINDINGS, GROUPS, INPUTS, WAIVED = 300, 300, 300, 100
"""How many of each are shown; a page that says how many more there are is better than one that no browser opens."""


@dataclass(frozen=True, slots=True)
class Card:
    """A finding under its anchor, with what the report calls its group, the catalogue entry of its rule and the waiver that covers it."""

    anchor: str
    group: str
    finding: Finding
    rule: Rule | None
    waiver: Waived | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    """A group as the report calls it, with its open findings' tally and its rules, violated ones first."""

    name: str
    group: GroupResult
    tally: str
    waived: int
    status: Counter[Status]
    rules: Sequence[tuple[str, RuleResult]]


def render(report: Report, rules: Mapping[str, Rule]) -> str:
    """An HTML document. A finding's anchor is its fingerprint, so a link to it outlives the page."""
    names = anchors([*report.findings, *(waived.finding for waived in report.waived)])
    cards = [Card(next(names), called(report, finding), finding, rules.get(finding.rule)) for finding in report.findings]
    totals = report.totals
    waived = [
        Card(next(names), called(report, entry.finding), entry.finding, rules.get(entry.finding.rule), entry) for entry in report.waived
    ]
    return _TEMPLATE.render(
        report=report,
        rules=rules,
        noun=noun(report),
        subject=subject(report),
        outcome=outcome(report),
        cards=cards[:FINDINGS],
        all_cards=sum(totals.findings.values()),
        more_cards=sum(totals.findings.values()) - min(FINDINGS, len(cards)),
        waived=waived[:WAIVED],
        more_waived=totals.waived - min(WAIVED, len(waived)),
        rows=list(_rows(report))[:GROUPS],
        more_rows=sum(totals.groups.values()) - min(GROUPS, len(report.groups)),
        counts=totals.rules,
        blind_spots=totals.blind_spots,
        ledger=ledger(report),
        inputs=troubled_first(report.inputs)[:INPUTS],
        more_inputs=len(report.inputs) - INPUTS,
        notes=notes(report),
    )


def anchors(findings: Iterable[Finding]) -> Iterator[str]:
    """A name for each finding: its fingerprint, numbered where it comes again."""
    seen: Counter[str] = Counter()
    for finding in findings:
        seen[finding.fingerprint] += 1
        again = seen[finding.fingerprint]
        yield finding.fingerprint if again == 1 else f"{finding.fingerprint}-{again}"


def _rows(report: Report) -> Iterator[_Row]:
    counts, waived = report.counts, by_group(entry.finding for entry in report.waived)
    order = {Status.VIOLATED: 0, Status.UNKNOWN: 1, Status.PASS: 2}
    for group in worst_first(report.groups):
        key = (group.cluster, group.group)
        rules = sorted(group.rules.items(), key=lambda entry: (order[entry[1].status], entry[0]))
        found = Counter[Severity]()
        for (_, severity), times in counts.get(key, {}).items():
            found[severity] += times
        yield _Row(called(report, group), group, tally(found), len(waived.get(key, ())), statuses(group), rules)


def _shown(value: object) -> object:
    return clean(value) if type(value) is str else value


@cache
def environment() -> Environment:
    """The templates, with the words that they share."""
    made = Environment(
        loader=PackageLoader(__name__.rpartition(".")[0]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters, functions = cast("dict[str, object]", made.filters), cast("dict[str, object]", made.globals)
    filters.update(cost=cost, place=place, some=some, moment=moment, plural=plural, measured=measured, sheets=sheets, as_json=as_json)
    filters["number"] = "{:,}".format
    functions.update(count=count, severity=SEVERITY)
    return made


_TEMPLATE = environment().get_template("report.html.j2")
