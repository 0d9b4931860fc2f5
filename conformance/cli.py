"""The command line: a thin shell over functions that return records."""

from __future__ import annotations

import io
import json
import sys
import traceback
from importlib import import_module, resources
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn, get_args

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..spec.catalogue import CATALOGUE
from ..spec.results import Settings
from ..spec.rule import Rule
from ..spec.rules import RULES
from .convert import convert
from .doctor import tools
from .failed import Failed
from .gate.command import gate
from .ingest import ingest
from .options import accepted, duration, judging, rule_ids, severities_of, targets, write
from .pipeline.manifest import DataSetError
from .pipeline.runtime import SparkFailed
from .readers.files import formats
from .reports.terminal import show as show_report
from .show import show
from .simulator.command import simulate
from .study import explore, prove, replay, shrink
from .validate import Engine, exit_status
from .validate import validate as run_validate

DEFECT = 70
_SCHEMAS = ("trace", "report", "case")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(version("kipcheck"), prog_name="kipcheck")
def cli() -> None:
    """Did the Kafka consumer group or Connect cluster keep its promises when it rebalanced?"""


@cli.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format",
    "format_",
    type=click.Choice(formats()),
    default="auto",
    show_default=True,
    help="What the files hold; auto looks at each file.",
)
@click.option(
    "--engine",
    type=click.Choice(get_args(Engine)),
    default="auto",
    show_default=True,
    help="Where to run; auto takes Spark for large input.",
)
@click.option("--master", metavar="URL", help="Spark's master, such as spark://HOST:PORT; without one Spark runs on this machine.")
@click.option(
    "--scratch", metavar="URL", help="Directory that all of Spark's executors share; raw captures are sorted there, then removed."
)
@click.option("--clock-skew", type=duration, default="1s", show_default=True, help="How far two clocks may differ; used for timeouts only.")
@click.option(
    "--connect-max-delay",
    type=duration,
    default="5m",
    show_default=True,
    help="scheduled.rebalance.max.delay.ms, where the trace does not show it.",
)
@click.option("--strict", is_flag=True, help="Exit 3 if any rule could not be checked.")
@click.option("--allow-malformed", is_flag=True, help="Malformed lines do not leave the verdict open.")
@judging
def validate(
    paths: tuple[str, ...],
    format_: str,
    engine: Engine,
    master: str | None,
    scratch: str | None,
    reports: tuple[str, ...],
    only: str | None,
    skip: str | None,
    severities: tuple[str, ...],
    waivers: str | None,
    clock_skew: int,
    connect_max_delay: int,
    strict: bool,
    allow_malformed: bool,
) -> None:
    """Validate captured traces: log files, directories, globs, in any mix of formats; or a data set of kipcheck ingest.

    With Spark, all groups and findings are written as Parquet beside the first report.

    Exit status: 0 conforms, 1 violated, 2 usage or unreadable input, 3 undetermined, 70 a defect of kipcheck.
    """
    if engine == "local" and (master or scratch):
        raise click.UsageError("--master and --scratch are Spark's: leave them out, or take --engine spark")
    to = targets(reports)
    settings = Settings(
        clock_skew_ms=clock_skew,
        max_delay_ms=connect_max_delay,
        only=rule_ids(only, "--rules", RULES),
        skip=rule_ids(skip, "--skip", RULES) or frozenset(),
        severity=severities_of(severities, RULES),
    )
    try:
        report = run_validate(
            paths,
            engine=engine,
            format=format_,
            settings=settings,
            waivers=accepted(waivers),
            strict=strict,
            allow_malformed=allow_malformed,
            master=master,
            scratch=scratch,
            tables=next((str(Path(file).with_suffix("")) for _, file in to if file != "-"), None),
        )
    except (DataSetError, SparkFailed) as error:
        raise Failed(str(error)) from error
    show_report(report, RULES, Console(highlight=False))
    write(report, to, RULES)
    sys.exit(exit_status(report))


cli.add_command(ingest)
cli.add_command(convert)
cli.add_command(explore)
cli.add_command(prove)
cli.add_command(replay)
cli.add_command(shrink)
cli.add_command(show)
cli.add_command(simulate)
cli.add_command(gate)


@cli.command()
@click.argument("rule_id", required=False, metavar="[ID]")
@click.option("--markdown", is_flag=True, help="The catalogue as a Markdown table, as the README shows it.")
def rules(rule_id: str | None, markdown: bool) -> None:
    """List the rule catalogue, or explain one rule with a violating and a conforming example."""
    console = Console(highlight=False)
    if markdown:
        click.echo("| rule | of | severity | promise |\n| --- | --- | --- | --- |")
        for rule in CATALOGUE.values():
            click.echo(f"| `{rule.id}` | {rule.kip} | {rule.severity} | {rule.promise} |")
        return
    if rule_id is None:
        table = Table(box=None, pad_edge=False)
        for column in ("rule", "KIP", "severity", "promise"):
            table.add_column(column, no_wrap=column == "rule")
        for rule in CATALOGUE.values():
            table.add_row(rule.id, rule.kip, rule.severity, escape(rule.promise))
        console.print(table)
        return
    if rule_id not in CATALOGUE:
        raise click.UsageError(f"there is no rule {rule_id!r}; `kipcheck rules` lists them")
    _explain(CATALOGUE[rule_id], console)


def _explain(rule: Rule, console: Console) -> None:
    console.print(f"[bold]{rule.id}[/bold]  ({rule.kip}, {rule.severity})\n\n{escape(rule.promise)}\n")
    for title, text in (
        ("clause", rule.clause),
        ("source", rule.source),
        ("needs", ", ".join(rule.needs)),
        ("unknown when", rule.unknown_when),
        *(("legal", exception) for exception in rule.exceptions),
    ):
        console.print(f"  {title + ':':14}{escape(text)}")
    if rule.id not in RULES:
        return
    for title, name in (("Violates", "violates"), ("Conforms, though close", "conforms")):
        example = (_examples() / f"{rule.id}.{name}.jsonl").read_text(encoding="utf-8")
        console.print(f"\n{title}:")
        console.print(escape(example.rstrip()), soft_wrap=True)


def _examples() -> Path:
    """The folder of example traces: data without a module, so its import path may hold more than folders."""
    return next(folder for folder in map(Path, import_module("kipcheck.traces.rules").__path__) if folder.is_dir())


@cli.command()
@click.argument("name", type=click.Choice(_SCHEMAS))
def schema(name: str) -> None:
    """Print a JSON Schema: trace (one line of a trace), report, or case (assignor input)."""
    text = resources.files("kipcheck.spec.schemas").joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    click.echo(json.dumps(json.loads(text), indent=2))


@cli.command()
def doctor() -> None:
    """Show what is installed, and what each part is needed for."""
    table = Table(box=None, pad_edge=False)
    for column in ("part", "found", "needed for"):
        table.add_column(column)
    for tool in tools():
        table.add_row(tool.name, Text(tool.found, overflow="fold") if tool.found else Text("not found", "dim"), Text(tool.needed_for))
    Console(highlight=False).print(table)


def main() -> NoReturn:
    """Entry point: anything unexpected is a defect of kipcheck, told as such with exit status 70."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        cli(prog_name="kipcheck")
    except Exception:
        click.echo(traceback.format_exc(), err=True)
        click.echo("kipcheck: this is a defect of kipcheck, not of your trace. Please report it with the lines above.", err=True)
        sys.exit(DEFECT)
    sys.exit(0)
