"""An exploration on the terminal: each statement and its verdict, what was searched, and the shortest run as a story."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...model.exploration import Counterexample, Exploration, Verdict
from .prose import count, line
from .story import owners, tell

_COLOUR: Mapping[Verdict, str] = {
    "holds": "green",
    "reached": "green",
    "violated": "bold red",
    "unreached": "bold red",
    "undecided": "bold yellow",
}


def show_exploration(found: Exploration, console: Console) -> None:
    """Print the exploration, and its counterexample if it has one."""
    console.print(Text(line(found.title), "bold"))
    console.print(Text(line(found.bounds), "dim"))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column()
    for statement in found.statements:
        outcome = Text(statement.verdict, _COLOUR[statement.verdict])
        if statement.steps is not None:
            preposition = "within" if statement.kind == "eventually" and statement.verdict == "holds" else "in"
            outcome.append(f" {preposition} {count(statement.steps, 'step')}", "dim")
        rules = f" [{', '.join(statement.rules)}]" if statement.rules and statement.rules != (statement.name,) else ""
        table.add_row(Text(statement.kind, "dim"), line(statement.name), outcome, Text(line(statement.words + rules)))
    console.print(table)
    console.print(f"{_searched(found)}, {found.seconds:.1f} s of CPU" + (f", {found.bytes / 1e6:,.0f} MB" if found.bytes else ""))
    if found.counterexample:
        _story(found.counterexample, console)


def _searched(found: Exploration) -> str:
    seen = "all of them" if found.complete and not found.violated else found.why or "up to the first that breaks it"
    if not found.states:
        return seen
    unit = "state" if found.floor == "protocol" else "world"
    return f"{count(found.states, unit)} ({seen}), {found.transitions:,} steps between them, {found.depth} deep"


def _story(counterexample: Counterexample, console: Console) -> None:
    console.print(f"\nThe shortest run found that breaks [bold]{counterexample.breaks}[/bold], as an observer of everything sees it:")
    grid = Table.grid(padding=(0, 2, 0, 1))
    grid.add_column(justify="right", style="dim")
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for number, (event, sentence) in enumerate(tell(counterexample.events), 1):
        seconds = "" if event.ts is None else f"{event.ts / 1e6:.3f} s"
        grid.add_row(str(number), seconds, Text(sentence))
    console.print(grid)
    for resource, members in owners(counterexample.events).items():
        if len(members) > 1:
            console.print(Text(f"Now {line(' and '.join(members))} both believe that they own {line(resource)}.", "bold"))
