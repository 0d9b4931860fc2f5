"""The report for a person at a terminal: what broke, where, why and what to do; then the groups, their cost, and what was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...spec.results import Finding, GroupResult, Severity, Status, Verdict
from ...spec.rule import Rule
from ..report import Input, Report
from .cases import Sheet, sheets
from .prose import SEVERITY, called, cost, count, line, listed, measured, moment, name, notes, noun, outcome, place, some, subject
from .summary import Batch, digest, ledger, statuses, troubled_first, worst_first

EACH, FINDINGS, NOTES, GROUPS, COSTS, INPUTS, LINES, BLIND = 2, 20, 5, 40, 3, 10, 5, 4
"""How much is shown: findings of a rule in a group, findings, notes, groups, costs, inputs in trouble, lines of each, blind spots."""

INDENT = 13
"""How far right the steps of an argument stand: a path is cut at its left rather than broken."""

_COLOUR: Mapping[Severity | Verdict, str] = {
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
    Verdict.VIOLATES: "bold red",
    Verdict.UNDETERMINED: "bold yellow",
    Verdict.CONFORMS: "bold green",
}


def show(report: Report, rules: Mapping[str, Rule], console: Console) -> None:
    """Print the report on ``console``; everything that came from the input is printed as plain text, never as markup."""
    _findings(report, rules, console)
    _groups(report, console)
    _notes(report, console)
    _costs(report, console)
    _comparison(report, console)
    _blind_spots(report, console)
    _ledger(report, console)
    _remarks(report, console)
    about = f"{who}: " if (who := subject(report)) else ""
    console.print(Text.assemble((report.verdict.value, _COLOUR[report.verdict]), f": {about}{outcome(report)}"))


def _findings(report: Report, rules: Mapping[str, Rule], console: Console) -> None:
    broken = [f for f in report.findings if f.severity != "info"]
    batches, left_out = digest(broken, each=1 if report.command == "gate" else EACH, total=FINDINGS)
    left_out += sum(found for severity, found in report.totals.findings.items() if severity != "info") - len(broken)
    for batch in batches:
        for finding in batch.shown:
            _finding(finding, rules.get(finding.rule), report, console)
        if batch.more:
            console.print(_indented(_more(batch, report), below=1))
    if left_out:
        console.print(Text(f"… {count(left_out, 'more finding')} in the report (--report html=FILE)\n"))


def _notes(report: Report, console: Console) -> None:
    """What a rebalance cost is told in a line each: nothing broke, and the report has the argument."""
    notes = [f for f in report.findings if f.severity == "info"]
    for finding in notes[:NOTES]:
        where = f"{called(report, finding)}: "
        console.print(Text.assemble(("note ", _COLOUR["info"]), (line(finding.rule), "bold"), f" in {where}{line(finding.message)}"))
    if more := report.totals.findings.get("info", 0) - min(NOTES, len(notes)):
        console.print(Text(f"… {count(more, 'more note')} in the report (--report html=FILE)"))
    if notes:
        console.print()


def _finding(finding: Finding, rule: Rule | None, report: Report, console: Console) -> None:
    console.print(Text.assemble((SEVERITY[finding.severity].upper(), _COLOUR[finding.severity]), "  ", (line(finding.rule), "bold")))
    rows: list[tuple[str, RenderableType]] = [("what", Text(line(finding.message)))]
    if rule is not None:
        rows.append(("promise", Text(f"{line(rule.promise)} [{rule.kip}]")))
    rows.append(("where", Text(_where(finding, report))))
    rows += [("input", _sheet(sheet)) for sheet in sheets(finding.case)]
    if finding.argument:
        rows.append(("why", _argument(finding, console.width - INDENT)))
    if finding.relaxed:
        rows.append(("known", Text(line(finding.relaxed))))
    if finding.advice:
        rows.append(("do", Text(line(finding.advice), "bold")))
    if finding.replay:
        rows.append(("replay", Text(line(finding.replay), "cyan")))
    rows.append(("id", Text(line(finding.fingerprint), "dim")))
    grid = _grid()
    for label, content in rows:
        grid.add_row(Text(label, "dim"), content)
    console.print(_indented(grid, below=1))


def _sheet(sheet: Sheet) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in sheet.columns:
        table.add_column(heading, overflow="fold")
    for row in sheet.rows:
        table.add_row(*(Text(cell) for cell in row))
    return Group(Text(sheet.title), table, *(Text(remark) for remark in sheet.remarks))


def _where(finding: Finding, report: Report) -> str:
    at = [", ".join(filter(None, (f"{noun(report)} {called(report, finding)}", moment(finding))))]
    at += [some(finding.resources)] if finding.resources else []
    at += [f"{'member' if len(finding.members) == 1 else 'members'} {some(finding.members, 4)}"] if finding.members else []
    return "\n".join(at)


def _argument(finding: Finding, width: int) -> Table:
    steps = _grid()
    for number, step in enumerate(finding.argument, 1):
        said = Text(line(step.says))
        if step.evidence is not None:
            said.append(f"\n{_tail(place(step.evidence), width)}", "cyan")
            if text := line(step.evidence.text):
                said.append(f"\n{_head(text, width)}", "dim")
        steps.add_row(Text(f"{number}."), said)
    return steps


def _head(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 1, 1)]}…"


def _tail(path: str, width: int) -> str:
    return path if len(path) <= width else f"…{path[-max(width - 1, 1) :]}"


def _more(batch: Batch, report: Report) -> Text:
    first = batch.more[0]
    if batch.elsewhere:
        return Text(f"… also with {some([called(report, finding) for finding in batch.elsewhere], 6)}")
    generations = list(dict.fromkeys(f.generation for f in batch.more if f.generation is not None))
    when = f": generation{'' if len(generations) == 1 else 's'} {some(generations)}" if generations else ""
    return Text(f"… {len(batch.more):,} more of {line(first.rule)} in {called(report, first)}{when}")


@dataclass(frozen=True, slots=True)
class _Column:
    """Of the table of groups; ``cell`` is handed the group and how many findings it has."""

    heading: str
    cell: Callable[[GroupResult, int], Text]
    number: bool = True
    wraps: bool = False


def _metric(key: str) -> Callable[[GroupResult, int], Text]:
    def cell(group: GroupResult, _: int) -> Text:
        value = group.metrics.get(key)
        return Text(f"{value:,}" if isinstance(value, int) else "?")

    return cell


def _checked(group: GroupResult, _: int) -> Text:
    unknown = statuses(group)[Status.UNKNOWN]
    return Text(f"{len(group.rules) - unknown}/{unknown}")


_VERDICT = _Column("verdict", lambda group, _: Text(group.verdict.value, _COLOUR[group.verdict]), number=False)
_FINDS = _Column("finds", lambda _, findings: Text(f"{findings:,}"))
_CHECKED = _Column("rules\nchecked/\nunknown", _checked)
_OF_GROUP = (
    _Column("protocol", lambda group, _: Text(line(group.protocol or "?")), number=False, wraps=True),
    _VERDICT,
    _Column("gens", _metric("generations")),
    _FINDS,
    _CHECKED,
)
_OF_INPUT_CLASS = (
    _VERDICT,
    _Column("inputs", lambda group, _: Text(f"{group.events:,}")),
    _FINDS,
    _Column("moved", _metric("moved")),
    _Column("minimum", _metric("moved_minimum")),
    _Column("rounds", _metric("rounds_max")),
    _CHECKED,
)


def _groups(report: Report, console: Console) -> None:
    if not report.groups:
        return
    columns = _OF_INPUT_CLASS if report.command == "gate" else _OF_GROUP
    findings = report.counts
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(noun(report), overflow="fold")
    for column in columns:
        justify = "right" if column.number else "left"
        table.add_column(column.heading, justify=justify, overflow="fold" if column.wraps else "ellipsis", no_wrap=not column.wraps)
    groups = worst_first(report.groups)
    for group in groups[:GROUPS]:
        found = sum(findings.get((group.cluster, group.group), {}).values())
        table.add_row(Text(called(report, group)), *(column.cell(group, found) for column in columns))
    console.print(table)
    more = Counter(report.totals.groups)
    more.subtract(group.verdict for group in groups[:GROUPS])
    if more.total():
        console.print(Text(f"… {count(more.total(), 'more ' + noun(report))}: {_verdicts(more)}"))
    console.print()


def _verdicts(given: Mapping[Verdict, int]) -> str:
    return listed([f"{given[verdict]:,} {verdict}" for verdict in Verdict if given.get(verdict)])


def _costs(report: Report, console: Console) -> None:
    if report.command == "gate":
        return
    told = [(group, cost(group.metrics)) for group in worst_first(report.groups) if group.metrics or group.advice]
    for group, phrases in told[:COSTS]:
        text = Text.assemble(("cost of ", "dim"), (name(group.cluster, group.group), "bold"))
        console.print(text.append(f": {'; '.join(phrases) or 'not known'}"))
        for advice in group.advice:
            console.print(_indented(Text(f"do: {line(advice)}")))
    if len(told) > COSTS:
        console.print(Text(f"… the cost of {count(len(told) - COSTS, 'more ' + noun(report))} is in the report"))
    if told:
        console.print()


def _comparison(report: Report, console: Console) -> None:
    comparison = report.comparison
    if comparison is None or not comparison.rows:
        return
    console.print(Text.assemble(("baseline on the same inputs: ", "dim"), line(comparison.baseline)))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("", "assignor", "baseline", ""):
        table.add_column(heading, overflow="fold")
    for row in comparison.rows:
        mine, theirs = measured(row)
        table.add_row(Text(line(row.what)), Text(mine), Text(theirs), Text("regression", "bold red") if row.regression else Text())
    console.print(_indented(table, below=1))


def _blind_spots(report: Report, console: Console) -> None:
    spots, groups = report.totals.blind_spots, sum(report.totals.groups.values())
    if not spots:
        return
    console.print(Text("not checked", "bold"))
    grid = _grid()
    for spot in spots[:BLIND]:
        where = f" ({count(spot.groups, noun(report))})" if groups > 1 else ""
        grid.add_row(Text("-"), Text(f"{some(spot.rules, 6)}: {line(spot.why)}{where}"))
    if len(spots) > BLIND:
        grid.add_row(Text("…"), Text(count(len(spots) - BLIND, "more reason")))
    console.print(_indented(grid, below=1))


def _ledger(report: Report, console: Console) -> None:
    if not report.inputs:
        return
    total = ledger(report)
    counted = [count(total.events, "event"), f"{total.irrelevant:,} irrelevant", f"{total.malformed:,} malformed"]
    unreadable = f"; {total.unreadable:,} unreadable" if total.unreadable else ""
    console.print(
        Text.assemble(("read ", "dim"), f"{count(total.inputs, 'file')}, {count(total.lines, 'line')}: {listed(counted)}{unreadable}")
    )
    troubled = [entry for entry in troubled_first(report.inputs) if entry.problem is not None or entry.malformed]
    for entry in troubled[:INPUTS]:
        for text in _trouble(entry):
            console.print(_indented(Text(text)))
    if len(troubled) > INPUTS:
        console.print(Text(f"  … {count(len(troubled) - INPUTS, 'more file')} with such lines in the report"))
    if troubled:
        console.print(_indented(Text("do: capture these again, or name the right --format; what they held was not checked", "bold")))
    console.print()


def _trouble(entry: Input) -> list[str]:
    told = [f"unreadable: {line(entry.path)}: {line(entry.problem)}"] if entry.problem is not None else []
    told += [f"malformed: {line(entry.path)}:{at.line}: {line(at.why)}" for at in entry.malformed_at[:LINES]]
    if more := entry.malformed - min(LINES, len(entry.malformed_at)):
        told.append(f"malformed: {line(entry.path)}: {count(more, 'more line')}")
    return told


def _remarks(report: Report, console: Console) -> None:
    for waived in report.waived:
        finding = waived.finding
        about = f"{line(finding.rule)} in {called(report, finding)} ({line(finding.fingerprint)})"
        console.print(Text(f"waived until {line(waived.expires)}: {about}: {line(waived.reason)}"))
    if more := report.totals.waived - len(report.waived):
        console.print(Text(f"… {more:,} more waived"))
    remarks = notes(report)
    for note in remarks:
        console.print(Text(f"note: {line(note)}"))
    if report.waived or remarks:
        console.print()


def _indented(shown: RenderableType, below: int = 0) -> Padding:
    return Padding(shown, (0, 0, below, 2), expand=False)


def _grid() -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    return grid
