"""The report for a person at a terminal: what broke, where, why and what to do; then the groups, their cost, and what was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...spec.results import Finding, GroupResult, Severity, Status, Verdict
from ...spec.rule import Rule
from ..report import Input, Report
from .prose import SEVERITY, cost, count, line, listed, moment, name, notes, noun, outcome, place, some
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
    _blind_spots(report, console)
    _ledger(report, console)
    _remarks(report, console)
    console.print(Text.assemble((report.verdict.value, _COLOUR[report.verdict]), f": {outcome(report)}"))


def _findings(report: Report, rules: Mapping[str, Rule], console: Console) -> None:
    broken = [f for f in report.findings if f.severity != "info"]
    batches, left_out = digest(broken, each=EACH, total=FINDINGS)
    left_out += sum(found for severity, found in report.totals.findings.items() if severity != "info") - len(broken)
    for batch in batches:
        for finding in batch.shown:
            _finding(finding, rules.get(finding.rule), noun(report), console)
        if batch.more:
            console.print(_indented(_more(batch), below=1))
    if left_out:
        console.print(Text(f"… {count(left_out, 'more finding')} in the report (--report html=FILE)\n"))


def _notes(report: Report, console: Console) -> None:
    """What a rebalance cost is told in a line each: nothing broke, and the report has the argument."""
    notes = [f for f in report.findings if f.severity == "info"]
    for finding in notes[:NOTES]:
        where = f"{name(finding.cluster, finding.group)}: "
        console.print(Text.assemble(("note ", _COLOUR["info"]), (line(finding.rule), "bold"), f" in {where}{line(finding.message)}"))
    if more := report.totals.findings.get("info", 0) - min(NOTES, len(notes)):
        console.print(Text(f"… {count(more, 'more note')} in the report (--report html=FILE)"))
    if notes:
        console.print()


def _finding(finding: Finding, rule: Rule | None, noun: str, console: Console) -> None:
    console.print(Text.assemble((SEVERITY[finding.severity].upper(), _COLOUR[finding.severity]), "  ", (line(finding.rule), "bold")))
    rows: list[tuple[str, RenderableType]] = [("what", Text(line(finding.message)))]
    if rule is not None:
        rows.append(("promise", Text(f"{line(rule.promise)} [{rule.kip}]")))
    rows.append(("where", Text(_where(finding, noun))))
    if finding.argument:
        rows.append(("why", _argument(finding, console.width - INDENT)))
    if finding.relaxed:
        rows.append(("known", Text(line(finding.relaxed))))
    if finding.advice:
        rows.append(("do", Text(line(finding.advice), "bold")))
    rows.append(("id", Text(line(finding.fingerprint), "dim")))
    grid = _grid()
    for label, content in rows:
        grid.add_row(Text(label, "dim"), content)
    console.print(_indented(grid, below=1))


def _where(finding: Finding, noun: str) -> str:
    at = [", ".join(filter(None, (f"{noun} {name(finding.cluster, finding.group)}", moment(finding))))]
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


def _more(batch: Batch) -> Text:
    first = batch.more[0]
    generations = list(dict.fromkeys(f.generation for f in batch.more if f.generation is not None))
    when = f": generation{'' if len(generations) == 1 else 's'} {some(generations)}" if generations else ""
    return Text(f"… {len(batch.more):,} more of {line(first.rule)} in {name(first.cluster, first.group)}{when}")


def _groups(report: Report, console: Console) -> None:
    if not report.groups:
        return
    findings = report.counts
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(noun(report), overflow="fold")
    table.add_column("protocol", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for heading in ("gens", "finds", "rules\nchecked/\nunknown"):
        table.add_column(heading, justify="right", no_wrap=True)
    groups = worst_first(report.groups)
    for group in groups[:GROUPS]:
        table.add_row(*_row(group, sum(findings.get((group.cluster, group.group), {}).values())))
    console.print(table)
    more = Counter(report.totals.groups)
    more.subtract(group.verdict for group in groups[:GROUPS])
    if more.total():
        console.print(Text(f"… {count(more.total(), 'more ' + noun(report))}: {_verdicts(more)}"))
    console.print()


def _row(group: GroupResult, findings: int) -> tuple[Text, ...]:
    status = statuses(group)
    generations = group.metrics.get("generations")
    return (
        Text(name(group.cluster, group.group)),
        Text(line(group.protocol or "?")),
        Text(group.verdict.value, _COLOUR[group.verdict]),
        Text(f"{generations:,}" if isinstance(generations, int) else "?"),
        Text(f"{findings:,}"),
        Text(f"{len(group.rules) - status[Status.UNKNOWN]}/{status[Status.UNKNOWN]}"),
    )


def _verdicts(given: Mapping[Verdict, int]) -> str:
    return listed([f"{given[verdict]:,} {verdict}" for verdict in Verdict if given.get(verdict)])


def _costs(report: Report, console: Console) -> None:
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
        about = f"{line(finding.rule)} in {name(finding.cluster, finding.group)} ({line(finding.fingerprint)})"
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
