"""A trace step by step on the terminal: what happened, and who believes to own what after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...spec.events import Event, Source
from ...spec.results import Finding, GroupResult
from .prose import SEVERITY, line, some
from .story import Owners, tell

_STYLE = {"error": "bold red", "warning": "bold yellow", "info": "cyan"}


def show_replay(group: GroupResult, events: Sequence[Event], console: Console) -> None:
    """Print the steps of one group. Where a finding rests on a step, that step of its argument stands below it."""
    console.print(Text(f"{line(group.group)}: {group.verdict.value}", "bold"))
    cited = _cited(group.findings)
    grid = Table.grid(padding=(0, 2, 0, 0))
    for justify in ("right", "left", "left"):
        grid.add_column(justify=justify, overflow="fold")
    owned = Owners()
    for number, (event, sentence) in enumerate(tell(events), 1):
        before = owned.by_member()
        owned.apply(event)
        grid.add_row(Text(str(number), "dim"), Text(_time(event, events), "dim"), sentence)
        if owned.by_member() != before:
            grid.add_row("", "", _state(owned))
        for finding, says in cited.get(event.src, ()) if event.src is not None else ():
            grid.add_row("", "", Text(f"^ {SEVERITY[finding.severity]} {finding.rule}: {line(says)}", _STYLE[finding.severity]))
    console.print(grid)
    for finding in group.findings:
        console.print(
            Text(f"{SEVERITY[finding.severity]} {finding.rule}: {line(finding.message)} ({finding.fingerprint})", _STYLE[finding.severity])
        )


def _cited(findings: Iterable[Finding]) -> Mapping[Source, Sequence[tuple[Finding, str]]]:
    """The findings that rest on a line, each with what its argument says there. Notes are left out."""
    cited: dict[Source, list[tuple[Finding, str]]] = {}
    for finding in findings:
        for step in finding.argument if finding.severity != "info" else ():
            if step.evidence is not None:
                cited.setdefault(step.evidence, []).append((finding, step.says))
    return cited


def _time(event: Event, events: Sequence[Event]) -> str:
    start = next((each.ts for each in events if each.ts is not None), None)
    return "" if event.ts is None or start is None else f"{(event.ts - start) / 1e6:.3f} s"


def _state(owned: Owners) -> Text:
    text = Text("  ", "dim")
    twice = owned.twice()
    for member, resources in owned.by_member().items():
        text.append(f"{line(member)}: ")
        for resource in resources:
            text.append(f"{line(resource)} ", "bold red" if resource in twice else "")
        text.append("" if resources else "nothing ")
    return text


def summary(groups: Iterable[GroupResult]) -> str:
    """Which groups there are."""
    return some([line(group.group) for group in groups], 10)
