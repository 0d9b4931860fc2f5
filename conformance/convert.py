"""`kipcheck convert`: what is captured, in another form: a trace of kipcheck's own, ITF for the tools of Quint and Apalache, or a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import click

from ..spec.events import Event
from ..spec.order import in_order
from .failed import Failed
from .options import save
from .readers.files import formats
from .readers.itf import MAX_FILE
from .readers.native import json_line
from .reports import itf
from .reports.mermaid import diagram
from .reports.prose import malformed, name, some, unread
from .validate import events_and_inputs


def trace_text(events: Iterable[Event]) -> str:
    """Trace version 1, a JSON object per line."""
    return "".join(map(json_line, events))


def itf_text(events: Sequence[Event]) -> str:
    """One group's trace in ITF. Raises `Failed` if it gets too large to be read again."""
    pieces: list[str] = []
    size = 0
    for piece in itf.text(itf.itf(in_order(events))):
        size += len(encoded(piece))
        if size > MAX_FILE:
            raise Failed(f"as ITF the trace has more than {MAX_FILE >> 20} MiB: shrink it first, or take --to trace")
        pieces.append(piece)
    return "".join(pieces)


def mermaid_text(events: Sequence[Event]) -> str:
    """One group's trace as a Mermaid sequence diagram."""
    return diagram(in_order(events))


FORMS: Mapping[str, Callable[[Sequence[Event]], str]] = MappingProxyType({"trace": trace_text, "itf": itf_text, "mermaid": mermaid_text})
"""What a trace can be written as; all but ``trace`` tell one group."""


def encoded(text: str) -> bytes:
    """``text`` in UTF-8; what a log held that is no text (a lone surrogate in JSON) is a question mark."""
    return text.encode("utf-8", "replace")


def one_group(events: Sequence[Event], group: str | None, paths: Sequence[str]) -> list[Event]:
    """The events of the only group, or of the one of this name (``CLUSTER/GROUP`` where clusters share it). Raises `Failed`."""
    found = dict.fromkeys((event.cluster, event.group) for event in events)
    chosen = [each for each in found if group is None or group in (each[1], name(*each))]
    if len(chosen) != 1:
        problem = "no group" if not found else f"no group {group!r}" if not chosen else "several groups"
        names = some([name(*each) for each in sorted(found)], 10)
        raise Failed(f"{', '.join(paths)}: {problem}" + (f"; name one of them with --group: {names}" if found else ""))
    return [event for event in events if (event.cluster, event.group) == chosen[0]]


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="TRACE...")
@click.option("--to", "form", type=click.Choice(tuple(FORMS)), required=True, help="What to write.")
@click.option("--group", metavar="NAME", help="Only this group; itf and mermaid tell one.")
@click.option("--format", "format_", type=click.Choice(formats()), default="auto", show_default=True, help="What the files hold.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, writable=True), help="The file to write, instead of standard output.")
def convert(paths: tuple[str, ...], form: str, group: str | None, format_: str, output: str | None) -> None:
    """Write captures of any format as a trace of kipcheck's own (JSON Lines), as ITF (JSON) for the tools of Quint and Apalache,
    or as a Mermaid sequence diagram.

    ITF holds every event, in one order, with who believes to own what after it; kipcheck reads it again.

    Exit status: 0 written, 2 usage, no such group, or unreadable input.
    """
    events = _events(paths, format_)
    if group is not None or form != "trace":
        events = one_group(events, group, paths)
    content = encoded(FORMS[form](events))
    if output is None:
        click.echo(content, nl=False)
        return
    save(output, content)


def _events(paths: Sequence[str], format: str) -> list[Event]:
    """What the captures hold; lines that could not be read are told on standard error. Raises `Failed` for a file that can't be read."""
    events, inputs = events_and_inputs(paths, format)
    if problems := unread(inputs):
        raise Failed("\n".join(problems))
    for remark in malformed(inputs):
        click.echo(remark, err=True)
    return events
