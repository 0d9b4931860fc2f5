"""A replay against the reference model on the terminal: how far the model comes along, what it would have done instead, and why."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from ..against.told import Divergence, Replayed, Subject
from ..timeline import Timeline
from .names import Names
from .prose import line

_LIKELIEST = 4
"""What the model would have done, at most."""


def show_against(replayed: Replayed, picture: Timeline, console: Console) -> None:
    """Print what came of a replay; the numbers of steps are those of the ``picture``, as `show_replay` prints it."""
    short = Names(picture.lanes)
    console.print(Text(_headline(replayed), _STYLE[replayed.status]), soft_wrap=True)
    for subject in replayed.subjects:
        _show(subject, replayed, picture, short, console)


_STYLE = {0: "bold green", 1: "bold red", 3: "bold yellow"}


def _headline(replayed: Replayed) -> str:
    group = line(replayed.group)
    first = replayed.divergence
    if first is not None:
        known = f", in generation {first.generation}" if first.generation is not None else ""
        return f"{group}: the model would have done otherwise: {replayed.matched} of {replayed.total} steps match{known}"
    if replayed.status == 3:
        return f"{group}: nothing could be compared with the model"
    return f"{group}: all that could be compared of {replayed.total} steps is what the model does"


def _show(subject: Subject, replayed: Replayed, picture: Timeline, short: Callable[[str], str], console: Console) -> None:
    release = f", as {replayed.release}" if subject is replayed.subjects[0] and replayed.release else ""
    counted = (
        f"{subject.matched} of {subject.total} observations match{release}" if subject.matched or subject.divergence else "not compared"
    )
    console.print(Text.assemble("  ", (short(line(subject.name)), "bold"), f": {counted}"), soft_wrap=True)
    if subject.divergence is not None:
        _diverges(subject.divergence, picture, short, console)
    if subject.unknown is not None:
        console.print(Text(f"    unknown: {short(line(subject.unknown))}", "yellow"), soft_wrap=True)


def _diverges(divergence: Divergence, picture: Timeline, short: Callable[[str], str], console: Console) -> None:
    event, number = divergence.event, divergence.number
    if number:
        says = short(picture.steps[number - 1].step.says)
        console.print(Text(f"    {'step' if divergence.is_step else 'after step'} {number}: {says}", "red"), soft_wrap=True)
    if not divergence.is_step:
        who = event.member or event.instance or event.client
        console.print(
            Text(f"    {event.kind}{f' of {short(line(who))}' if who else ''}, which is no step of its own", "red"), soft_wrap=True
        )
    if event.src is not None:
        console.print(Text(f"    captured: {line(event.src.file)}:{event.src.line}", "dim"), soft_wrap=True)
    console.print(Text(f"    blocked: {short(line(divergence.blocked))}"), soft_wrap=True)
    for number, enabled in enumerate(divergence.enabled[:_LIKELIEST]):
        lead = "    the model would: " if not number else "                 or: "
        console.print(Text(f"{lead}{short(line(enabled))}"), soft_wrap=True)
