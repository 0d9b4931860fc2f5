"""`kipcheck ingest`: any captures become one data set that `kipcheck validate` reads fast, on Spark."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import click
from rich.console import Console
from rich.markup import escape

from .failed import Failed
from .pipeline.manifest import DataSetError
from .pipeline.runtime import SparkFailed
from .readers.files import formats
from .report import Input

MALFORMED_SHOWN = 10


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--out", required=True, metavar="DIR", help="The data set: a new directory or URL, or one to which files are added.")
@click.option(
    "--format", "format_", type=click.Choice(formats()), default="auto", show_default=True, help="What the files hold; auto looks at each."
)
@click.option("--master", metavar="URL", help="Spark's master; this machine unless said.")
@click.option("--allow-malformed", is_flag=True, help="Malformed lines do not change the exit status.")
def ingest(paths: tuple[str, ...], out: str, format_: str, master: str | None, allow_malformed: bool) -> None:
    """Read captures (files, directories, globs, URLs) once, into a sorted data set of Parquet files.

    Files that are in already are passed over, so the command can be run again with more. What interrupts it leaves the data set as it was.

    Exit status: 0 all is in, 2 usage or unreadable input, 3 malformed lines, 70 a defect of kipcheck.
    """
    from .pipeline.ingest import ingest as run

    console = Console(highlight=False)
    begun = time.perf_counter()
    try:
        ingested = run(paths, out, format=format_, master=master)
    except (DataSetError, SparkFailed, OSError) as error:
        raise Failed(str(error)) from error
    seconds = time.perf_counter() - begun
    rate = f", {ingested.events / seconds:,.0f} events/s" if ingested.events else ""
    console.print(f"{_counted(ingested.new, 'file')} ingested: {_counted(ingested.events, 'event')} in {seconds:.1f} s{rate}")
    if ingested.skipped:
        console.print(f"{_counted(ingested.skipped, 'file')} in already, not read again")
    _show_ledger(ingested.inputs, console)
    console.print(f"data set: {escape(out)}  (try: kipcheck validate {escape(out)})", soft_wrap=True)
    malformed = any(i.malformed for i in ingested.inputs) and not allow_malformed
    sys.exit(2 if any(i.problem for i in ingested.inputs) else 3 if malformed else 0)


def _show_ledger(inputs: Sequence[Input], console: Console) -> None:
    lines, irrelevant, malformed = (sum(getattr(i, name) for i in inputs) for name in ("lines", "irrelevant", "malformed"))
    console.print(
        f"{_counted(lines, 'line')}: {lines - irrelevant - malformed:,} evidence, {irrelevant:,} irrelevant, {malformed:,} malformed"
    )
    named = [(i.path, at) for i in inputs for at in i.malformed_at]
    for path, at in named[:MALFORMED_SHOWN]:
        console.print(f"  malformed: {escape(path)}:{at.line}: {escape(at.why)}", soft_wrap=True)
    if malformed > MALFORMED_SHOWN:
        console.print(f"  and {malformed - min(len(named), MALFORMED_SHOWN):,} more malformed lines")
    for i in inputs:
        if i.problem is not None:
            console.print(f"  unreadable: {escape(i.path)}: {escape(i.problem)}", soft_wrap=True)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
