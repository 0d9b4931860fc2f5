"""The report as GitHub-flavoured Markdown, short enough for a pull request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ...spec.results import Finding, Status
from ...spec.rule import Rule
from ..report import Report
from .cases import as_json, sheets
from .prose import SEVERITY, called, clean, cost, count, line, measured, moment, notes, noun, outcome, place, subject
from .summary import Batch, digest, ledger, statuses, troubled_first, worst_first

EACH, FINDINGS, GROUPS, COSTS, INPUTS, LINES, BLIND, NAMES = 1, 10, 20, 10, 10, 3, 10, 6
"""How many are shown: findings of a rule in a group, findings, groups, costs, inputs in trouble, lines of each, blind spots, names."""

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_OPENS_BLOCK = re.compile(r"^(?:(\d+)(?=[.)](?: |$))|(?=[-+=]))")
_ENTITY = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
_LINKED = ("@", "://", "www.", "#")
_TICKS = re.compile(r"`+")


def render(report: Report, rules: Mapping[str, Rule]) -> str:
    """A Markdown document; whatever came from the input is escaped or stands in code."""
    return "\n".join(_document(report, rules)).strip() + "\n"


def _document(report: Report, rules: Mapping[str, Rule]) -> Iterator[str]:
    yield f"## kipcheck {_text(report.command)}: {report.verdict.value}"
    yield ""
    told, about = outcome(report), subject(report)
    yield f"{_code(about)}: {_text(told)}." if about is not None else f"{_text(told[:1].upper() + told[1:])}."
    yield ""
    yield from _findings(report, rules)
    yield from _comparison(report)
    if report.command == "gate":
        yield from _input_classes(report)
    else:
        yield from _groups(report)
        yield from _costs(report)
    yield from _ledger(report)
    yield from _blind_spots(report)
    yield from _remarks(report)
    yield f"<sub>kipcheck {_text(report.version)}</sub>"


def _findings(report: Report, rules: Mapping[str, Rule]) -> Iterator[str]:
    batches, left_out = digest(report.findings, each=EACH, total=FINDINGS)
    left_out += sum(report.totals.findings.values()) - len(report.findings)
    for batch in batches:
        for finding in batch.shown:
            yield from _finding(finding, rules.get(finding.rule), report)
        if batch.more:
            yield _more(batch, report)
            yield ""
    if left_out:
        yield f"… {count(left_out, 'more finding')} in the full report."
        yield ""


def _finding(finding: Finding, rule: Rule | None, report: Report) -> Iterator[str]:
    where = f" {'with' if finding.case is not None else 'in'} {_code(called(report, finding))}"
    when = f", {moment(finding)}" if moment(finding) else ""
    yield f"### {SEVERITY[finding.severity].capitalize()}: {_code(finding.rule)}{where}{when}"
    yield ""
    yield _text(finding.message)
    yield ""
    if rule is not None:
        yield f"> {_text(rule.promise)} ({_text(rule.kip)})"
        yield ""
    yield from _sheets(finding)
    yield from _argument(finding)
    if finding.relaxed:
        yield f"**Known:** {_text(finding.relaxed)}"
        yield ""
    if finding.advice:
        yield f"**What to do:** {_text(finding.advice)}"
        yield ""
    yield from _replay(finding)
    yield f"<sub>fingerprint {_code(finding.fingerprint)}</sub>"
    yield ""


def _sheets(finding: Finding) -> Iterator[str]:
    for sheet in sheets(finding.case):
        yield f"{_text(sheet.title[:1].upper() + sheet.title[1:])}:"
        yield ""
        yield _row(_text(column) for column in sheet.columns)
        yield _row("---" for _ in sheet.columns)
        yield from (_row(_cell(cell) for cell in row) for row in sheet.rows)
        yield ""
        yield from (f"- {_text(remark)}" for remark in sheet.remarks)
        if sheet.remarks:
            yield ""


def _replay(finding: Finding) -> Iterator[str]:
    if finding.case is not None:
        yield from _folded("The input as JSON", "json", as_json(finding.case).splitlines())
    if finding.replay is not None:
        yield from _folded("Run it again", "sh", [line(finding.replay)])


def _folded(summary: str, language: str, lines: Sequence[str]) -> Iterator[str]:
    """Lines as they are, behind a summary to click on, within a fence that none of them can close."""
    fence = "`" * max(3, 1 + max(_ticks(text) for text in lines))
    yield f"<details><summary>{summary}</summary>"
    yield ""
    yield fence + language
    yield from lines
    yield fence
    yield "</details>"
    yield ""


def _argument(finding: Finding) -> Iterator[str]:
    for number, step in enumerate(finding.argument, 1):
        rests_on = f" ({_code(place(step.evidence))})" if step.evidence is not None else ""
        yield f"{number}. {_text(step.says)}{rests_on}"
    if finding.argument:
        yield ""
    if lines := [f"{place(source)}: {clean(source.text)}" for source in finding.evidence if source.text]:
        yield from _folded("The lines that show it", "text", lines)


def _more(batch: Batch, report: Report) -> str:
    first = batch.more[0]
    if batch.elsewhere:
        return f"{_code(first.rule)} is also broken with {_some([called(report, finding) for finding in batch.elsewhere], _code)}."
    generations = list(dict.fromkeys(f.generation for f in batch.more if f.generation is not None))
    when = f": generation{'' if len(generations) == 1 else 's'} {_some([str(g) for g in generations], str)}" if generations else ""
    return f"… {len(batch.more):,} more of {_code(first.rule)} in {_code(called(report, first))}{when}"


def _groups(report: Report) -> Iterator[str]:
    if not report.groups:
        return
    findings = report.counts
    yield f"| {noun(report)} | protocol | verdict | findings | rules checked | rules unknown |"
    yield "| --- | --- | --- | ---: | ---: | ---: |"
    groups = worst_first(report.groups)
    for group in groups[:GROUPS]:
        unknown = statuses(group)[Status.UNKNOWN]
        cells = (
            _cell(called(report, group)),
            _cell(group.protocol) if group.protocol else "?",
            group.verdict.value,
            f"{sum(findings.get((group.cluster, group.group), {}).values()):,}",
            str(len(group.rules) - unknown),
            str(unknown),
        )
        yield _row(cells)
    yield ""
    if more := sum(report.totals.groups.values()) - min(GROUPS, len(groups)):
        yield f"… {count(more, 'more ' + noun(report))} in the full report."
        yield ""


def _input_classes(report: Report) -> Iterator[str]:
    if not report.groups:
        return
    findings = report.counts
    yield f"<details><summary>{count(len(report.groups), noun(report))}</summary>"
    yield ""
    yield _row((noun(report), "verdict", "inputs", "findings", "moved", "minimum", "rounds", "rules checked", "rules unknown"))
    yield _row(("---", "---", *["---:"] * 7))
    for group in worst_first(report.groups)[:GROUPS]:
        unknown = statuses(group)[Status.UNKNOWN]
        numbers = (group.events, sum(findings.get((group.cluster, group.group), {}).values()))
        metrics = (group.metrics.get(key) for key in ("moved", "moved_minimum", "rounds_max"))
        yield _row(
            (
                _cell(called(report, group)),
                group.verdict.value,
                *(f"{number:,}" for number in numbers),
                *(f"{value:,}" if isinstance(value, int) else "" for value in metrics),
                str(len(group.rules) - unknown),
                str(unknown),
            )
        )
    yield ""
    if len(report.groups) > GROUPS:
        yield f"… {count(len(report.groups) - GROUPS, 'more ' + noun(report))} in the full report."
        yield ""
    yield "</details>"
    yield ""


def _comparison(report: Report) -> Iterator[str]:
    comparison = report.comparison
    if comparison is None or not comparison.rows:
        return
    yield f"**Baseline** {_code(comparison.baseline)} on the same inputs:"
    yield ""
    yield _row(("", "assignor", "baseline", ""))
    yield _row(("---", "---:", "---:", "---"))
    for row in comparison.rows:
        mine, theirs = measured(row)
        yield _row((*map(_plain_cell, (row.what, mine, theirs)), "**regression**" if row.regression else ""))
    yield ""


def _costs(report: Report) -> Iterator[str]:
    told = [(group, cost(group.metrics)) for group in worst_first(report.groups) if cost(group.metrics) or group.advice]
    if not told:
        return
    yield "**Cost**"
    yield ""
    for group, phrases in told[:COSTS]:
        advice = "".join(f" **What to do:** {_text(text)}" for text in group.advice)
        yield f"- {_code(called(report, group))}: {_text('; '.join(phrases))}.{advice}"
    if len(told) > COSTS:
        yield f"- … {count(len(told) - COSTS, 'more ' + noun(report))} in the full report."
    yield ""


def _ledger(report: Report) -> Iterator[str]:
    if not report.inputs:
        return
    total = ledger(report)
    yield (
        f"**Read** {count(total.inputs, 'file')} with {count(total.lines, 'line')}: {count(total.events, 'event')}, "
        f"{total.irrelevant:,} irrelevant, {total.malformed:,} malformed; {total.unreadable:,} unreadable."
    )
    yield ""
    troubled = [entry for entry in troubled_first(report.inputs) if entry.problem is not None or entry.malformed]
    for entry in troubled[:INPUTS]:
        if entry.problem is not None:
            yield f"- unreadable: {_code(entry.path)}: {_text(entry.problem)}"
        for at in entry.malformed_at[:LINES]:
            yield f"- malformed: {_code(f'{entry.path}:{at.line}')}: {_text(at.why)}"
        if more := entry.malformed - min(LINES, len(entry.malformed_at)):
            yield f"- malformed: {_code(entry.path)}: {count(more, 'more line')}"
    if len(troubled) > INPUTS:
        yield f"- … {count(len(troubled) - INPUTS, 'more file')} in the full report."
    if troubled:
        yield ""


def _blind_spots(report: Report) -> Iterator[str]:
    spots = report.totals.blind_spots
    if not spots:
        return
    yield "<details><summary>Rules that could not be checked</summary>"
    yield ""
    for spot in spots[:BLIND]:
        yield f"- {_some(spot.rules, _code)}: {_text(spot.why)} ({count(spot.groups, noun(report))})"
    if len(spots) > BLIND:
        yield f"- … {count(len(spots) - BLIND, 'more reason')} in the full report."
    yield ""
    yield "</details>"
    yield ""


def _remarks(report: Report) -> Iterator[str]:
    for waived in report.waived[:FINDINGS]:
        finding = waived.finding
        about = f"{_code(finding.rule)} in {_code(called(report, finding))} ({_code(finding.fingerprint)})"
        yield f"- waived until {_text(waived.expires)}: {about}: {_text(waived.reason)}"
    if more := report.totals.waived - min(FINDINGS, len(report.waived)):
        yield f"- … {more:,} more waived in the full report."
    remarks = notes(report)
    yield from (f"- note: {_text(note)}" for note in remarks)
    if report.waived or remarks:
        yield ""


def _some(items: Sequence[str], form: Callable[[str], str]) -> str:
    shown = ", ".join(form(item) for item in items[:NAMES])
    return shown if len(items) <= NAMES else f"{shown} … and {len(items) - NAMES:,} more"


def _text(text: str) -> str:
    return _OPENS_BLOCK.sub(r"\1\\", " ".join(_word(word) for word in line(text).split()))


def _word(word: str) -> str:
    if any(mark in word for mark in _LINKED):
        return _code(word)
    return _SPECIAL.sub(r"\\\1", word).translate(_ENTITY)


def _code(text: str) -> str:
    text = line(text)
    ticks = "`" * (1 + _ticks(text))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}" if text.strip() else "(empty)"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return _code(text).replace("|", r"\|")


def _plain_cell(text: str) -> str:
    return _cell(text) if "|" in text else _text(text)


def _ticks(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)
