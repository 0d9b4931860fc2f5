"""``kipcheck gate``: a thin shell over `gate`, which is imported when it is used: `kipcheck validate` starts without it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ...spec.assignors.codec import Expect
from ...spec.assignors.kinds import KINDS, Kind
from ...spec.catalogue import CATALOGUE
from ...spec.results import Settings
from ..failed import Failed
from ..options import accepted, duration, judging, rule_ids, severities_of, targets, write
from ..report import Report
from ..reports import RENDERERS, render_test, show
from ..validate import exit_status
from .cases import load, save
from .feed import EXAMPLES, HISTORIES, Feed, How, case_file

NOTHING: Mapping[str, Expect] = MappingProxyType({})


@click.command()
@click.option("--assignor", "spec", required=True, metavar="SPEC", help="python:MODULE:CLASS, jvm:CLASS, exec:COMMAND or builtin:NAME.")
@click.option("--baseline", metavar="SPEC", help="Compare with this assignor on the same inputs.")
@click.option("--as", "kind", type=click.Choice((*KINDS, "connect")), help="What to hold it to, where it does not say so itself.")
@click.option("--classpath", multiple=True, metavar="GLOB", help="Jars for jvm:, such as 'lib/*.jar'. May be given again.")
@click.option("--cases", type=click.Path(dir_okay=False), help="Only these inputs: a JSON file (kipcheck schema case).")
@click.option("--inputs", multiple=True, metavar="TRACE", help="Also the inputs of the assignments in these captures.")
@click.option(
    "--examples",
    type=click.IntRange(0),
    show_default=f"{EXAMPLES}, or what the budget allows",
    help="Random inputs besides the small ones.",
)
@click.option("--histories", type=click.IntRange(0), default=HISTORIES, show_default=True, help="Lives of a group that it leads.")
@click.option("--budget", type=duration, metavar="DURATION", help="Feed nothing more after so long, such as 60s.")
@click.option("--seed", type=int, default=0, show_default=True, help="For the random inputs and histories.")
@click.option("--timeout", type=duration, default="10s", show_default=True, help="How long an answer may take.")
@click.option("--growth", is_flag=True, help="Also tell how the time of one answer grows, up to 10,000 partitions.")
@click.option("--metadata", is_flag=True, help="Also send each member's raw JoinGroup metadata, versions 0 to 3.")
@click.option("--renews", is_flag=True, help='The exec: command obeys "fresh", or keeps nothing between cases.')
@judging
def gate(
    spec: str,
    baseline: str | None,
    kind: Kind | Literal["connect"] | None,
    classpath: tuple[str, ...],
    cases: str | None,
    inputs: tuple[str, ...],
    examples: int | None,
    histories: int,
    budget: int | None,
    seed: int,
    timeout: int,
    growth: bool,
    metadata: bool,
    renews: bool,
    reports: tuple[str, ...],
    only: str | None,
    skip: str | None,
    severities: tuple[str, ...],
    waivers: str | None,
) -> None:
    """Hold a partition assignor to its contract: yes or no, why, and how to see it again.

    It is fed every small input, random ones, and whole lives of a group that it leads. What fails is shrunk to the smallest
    input and written to kipcheck-gate/, as a case file and as a pytest.

    Exit status: 0 conforms, 1 violated, 2 usage or a capture that could not be read, 3 undetermined, 70 a defect of kipcheck.
    """
    from .run import gate as run_gate

    to = targets(reports)
    held_to = None if kind == "connect" else kind
    given, expected = load(cases) if cases else ((), NOTHING)
    settings = Settings(
        only=rule_ids(only, "--rules", CATALOGUE),
        skip=rule_ids(skip, "--skip", CATALOGUE) or frozenset(),
        severity=severities_of(severities, CATALOGUE),
    )
    with _progress() as told:
        report = run_gate(
            spec,
            baseline=baseline,
            feed=Feed(
                cases=given,
                expected=expected,
                inputs=inputs,
                examples=examples,
                histories=histories,
                seed=seed,
                budget=budget / 1000 if budget is not None else None,
                growth=growth,
            ),
            how=How(classpath=classpath, kind=held_to, connect=kind == "connect", timeout=timeout / 1000, metadata=metadata, renews=renews),
            settings=settings,
            waivers=accepted(waivers),
            watch=told,
        )
    show(report, CATALOGUE, Console(highlight=False))
    if not cases:
        _leave(report, spec, {"kind": held_to, "classpath": classpath})
    if os.environ.get("GITHUB_ACTIONS") == "true" and not any(name == "github" for name, _ in to):
        click.echo(RENDERERS["github"](report, CATALOGUE), nl=False)
    write(report, to, CATALOGUE)
    sys.exit(exit_status(report))


def _leave(report: Report, spec: str, how: Mapping[str, object]) -> None:
    """A case file and a test for each finding that has an input."""
    written: dict[str, None] = {}
    for finding in report.findings:
        if finding.case is None or finding.severity == "info":
            continue
        path = Path(case_file(finding))
        try:
            save(finding, path)
            test = path.with_name(f"test_{path.stem.replace('-', '_')}.py")
            test.write_text(render_test(finding, spec, {key: value for key, value in how.items() if value}), encoding="utf-8")
        except OSError as error:
            raise Failed(f"can't write {path}: {error.strerror}") from error
        written[str(path)] = None
    if written:
        click.echo(_where(list(written)))


def _where(written: Sequence[str]) -> str:
    folder = Path(written[0]).parent
    return f"{len(written)} smallest input{'s' if len(written) > 1 else ''}, each as a case file and as a pytest: {folder}/"


@contextmanager
def _progress() -> Generator[Callable[[int], None]]:
    """A line on standard error, on a terminal only."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.completed:,} inputs"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda inputs: bar.update(task, completed=inputs)
