"""A trace step by step on the terminal: what happened, and who believes to own what after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...spec.events import Event
from ...spec.results import Finding
from ..timeline import Cited, Place, Timeline
from .names import Names
from .prose import SEVERITY, line
from .story import Owners

_STYLE = {"error": "bold red", "warning": "bold yellow", "info": "cyan"}


def show_replay(picture: Timeline, console: Console) -> None:
    """Print the steps of one group. Where a finding rests on a step, that part of its argument stands below it."""
    group, short = picture.result, Names(picture.lanes)
    console.print(Text(f"{line(group.group)}: {group.verdict.value}", "bold"))
    for lane in picture.lanes:
        if lane.name != lane.member:
            console.print(Text(f"  {lane.name} is {line(lane.member)}", "dim"), soft_wrap=True)
    cited = _cited(picture.findings)
    grid = Table.grid(padding=(0, 2, 0, 0))
    for justify in ("right", "left", "left"):
        grid.add_column(justify=justify, overflow="fold")
    owned = Owners()
    start = next((shown.step.event.ts for shown in picture.steps if shown.step.event.ts is not None), None)
    for place, shown in enumerate(picture.steps):
        event = shown.step.event
        changed = owned.apply(event)
        grid.add_row(Text(str(place + 1), "dim"), Text(_time(event, start), "dim"), Text(short(shown.step.says)))
        if changed:
            grid.add_row("", "", _state(owned, short))
        for finding, says in cited.get(place, ()):
            grid.add_row("", "", Text(f"^ {SEVERITY[finding.severity]} {finding.rule}: {line(short(says))}", _STYLE[finding.severity]))
    console.print(grid)
    for finding in group.findings:
        told = f"{SEVERITY[finding.severity]} {finding.rule}: {line(short(finding.message))} ({finding.fingerprint})"
        console.print(Text(told, _STYLE[finding.severity]))


def _cited(findings: Iterable[Cited]) -> Mapping[Place, Sequence[tuple[Finding, str]]]:
    """The findings that rest on a step, each with what its argument says there. Notes are left out."""
    cited: dict[Place, list[tuple[Finding, str]]] = {}
    for found in findings:
        for place, argument in zip(found.places, found.finding.argument, strict=True):
            if place is not None and found.finding.severity != "info":
                cited.setdefault(place, []).append((found.finding, argument.says))
    return cited


def _time(event: Event, start: int | None) -> str:
    return "" if event.ts is None or start is None else f"{(event.ts - start) / 1e6:.3f} s"


def _state(owned: Owners, short: Names) -> Text:
    text = Text("  ", "dim")
    twice = owned.twice()
    for member, resources in owned.by_member().items():
        text.append(f"{line(short(member))}: ")
        for resource in resources:
            text.append(f"{line(resource)} ", "bold red" if resource in twice else "")
        text.append("" if resources else "nothing ")
    return text
