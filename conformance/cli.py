"""The command line: a thin shell over functions that return records."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import traceback
from importlib import import_module, resources
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn, cast, get_args

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..spec.results import Settings, Severity
from ..spec.rule import Rule
from ..spec.rules import RULES
from .doctor import tools
from .failed import Failed
from .ingest import ingest
from .pipeline.manifest import DataSetError
from .pipeline.runtime import SparkFailed
from .readers.files import formats
from .reports import RENDERERS
from .reports.terminal import show
from .study import explore, prove
from .validate import Engine, exit_status
from .validate import validate as run_validate
from .waivers import WaiverError, load

DEFECT = 70
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_SCHEMAS = ("trace", "report", "case")


def duration(text: str) -> int:
    """A duration such as ``500ms``, ``2s`` or ``5m``, in milliseconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a duration; write it like 500ms, 2s or 5m")
    return int(float(match[1]) * _UNITS[match[2]])


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
@click.option(
    "--report", "reports", multiple=True, metavar="FORMAT=FILE", help=f"Also write a report: {', '.join(RENDERERS)}. May be given again."
)
@click.option("--rules", "only", metavar="ID,..", help="Check only these rules.")
@click.option("--skip", metavar="ID,..", help="Leave these rules out.")
@click.option("--severity", "severities", multiple=True, metavar="ID=error|warning|info", help="Judge a rule more or less severely.")
@click.option("--waivers", type=click.Path(dir_okay=False), help="TOML file of findings that are accepted until a day.")
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
    targets = [_target(report) for report in reports]
    settings = Settings(
        clock_skew_ms=clock_skew,
        max_delay_ms=connect_max_delay,
        only=_rule_ids(only, "--rules"),
        skip=_rule_ids(skip, "--skip") or frozenset(),
        severity=dict(_severity(s) for s in severities),
    )
    try:
        accepted = load(waivers) if waivers else ()
    except WaiverError as error:
        raise click.UsageError(str(error)) from error
    try:
        report = run_validate(
            paths,
            engine=engine,
            format=format_,
            settings=settings,
            waivers=accepted,
            strict=strict,
            allow_malformed=allow_malformed,
            master=master,
            scratch=scratch,
            tables=str(Path(targets[0][1]).with_suffix("")) if targets else None,
        )
    except (DataSetError, SparkFailed) as error:
        raise Failed(str(error)) from error
    show(report, RULES, Console(highlight=False))
    for name, file in targets:
        try:
            Path(file).write_text(RENDERERS[name](report, RULES), encoding="utf-8")
        except OSError as error:
            raise Failed(f"can't write the {name} report to {file}: {error.strerror}") from error
        click.echo(f"{name} report: {file}")
    sys.exit(exit_status(report))


def _target(text: str) -> tuple[str, str]:
    name, _, file = text.partition("=")
    if name not in RENDERERS or not file:
        raise click.UsageError(f"--report {text}: write FORMAT=FILE with FORMAT one of {', '.join(RENDERERS)}")
    if not os.access(Path(file).parent, os.W_OK):
        raise Failed(f"can't write the {name} report to {file}: {Path(file).parent} is no directory that can be written")
    return name, file


def _rule_ids(text: str | None, option: str) -> frozenset[str] | None:
    if text is None:
        return None
    ids = frozenset(part.strip() for part in text.split(",") if part.strip())
    for unknown in sorted(ids - RULES.keys()):
        raise click.UsageError(f"{option}: there is no rule {unknown!r}; `kipcheck rules` lists them")
    return ids


def _severity(text: str) -> tuple[str, Severity]:
    rule, _, severity = text.partition("=")
    if rule not in RULES or severity not in get_args(Severity):
        raise click.UsageError(f"--severity {text}: write ID=error, ID=warning or ID=info, with an ID that `kipcheck rules` lists")
    return rule, cast("Severity", severity)


cli.add_command(ingest)
cli.add_command(explore)
cli.add_command(prove)


@cli.command()
@click.argument("rule_id", required=False, metavar="[ID]")
@click.option("--markdown", is_flag=True, help="The catalogue as a Markdown table, as the README shows it.")
def rules(rule_id: str | None, markdown: bool) -> None:
    """List the rule catalogue, or explain one rule with a violating and a conforming example."""
    console = Console(highlight=False)
    if markdown:
        click.echo("| rule | of | severity | promise |\n| --- | --- | --- | --- |")
        for rule in RULES.values():
            click.echo(f"| `{rule.id}` | {rule.kip} | {rule.severity} | {rule.promise} |")
        return
    if rule_id is None:
        table = Table(box=None, pad_edge=False)
        for column in ("rule", "KIP", "severity", "promise"):
            table.add_column(column, no_wrap=column == "rule")
        for rule in RULES.values():
            table.add_row(rule.id, rule.kip, rule.severity, escape(rule.promise))
        console.print(table)
        return
    if rule_id not in RULES:
        raise click.UsageError(f"there is no rule {rule_id!r}; `kipcheck rules` lists them")
    _explain(RULES[rule_id], console)


def _explain(rule: Rule, console: Console) -> None:
    console.print(f"[bold]{rule.id}[/bold]  ({rule.kip}, {rule.severity})\n\n{escape(rule.promise)}\n")
    for title, text in (
        ("clause", rule.clause),
        ("source", rule.source),
        ("needs events", ", ".join(rule.needs)),
        ("unknown when", rule.unknown_when),
        *(("legal", exception) for exception in rule.exceptions),
    ):
        console.print(f"  {title + ':':14}{escape(text)}")
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
