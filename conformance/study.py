"""The designer's commands: `explore` for a counterexample, `prove` that there is none, `shrink` a captured one. Thin shells.

The model is imported when it is used: `kipcheck validate` starts without it.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..spec.check import check
from ..spec.rules import RULES
from .convert import FORMS, encoded, one_group
from .failed import hint
from .options import save
from .readers.files import formats
from .reports.pytest_trace import trace_test
from .reports.replay import show_replay
from .shrink import shrink as shrunk
from .timeline import timeline
from .validate import events_of

_SIZES = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def size(text: str) -> int:
    """A number such as ``500000``, ``2M`` or ``8G``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMG]?)B?", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a number; write it like 500k, 2M or 8G")
    return int(float(match[1]) * _SIZES[match[2]])


@click.command()
@click.option("--scenario", metavar="NAME", help="Runs of the reference world in this scenario, instead of all states of the protocol.")
@click.option("--mutate", metavar="NAME", help="Switch a defect of the model on.")
@click.option("--popular", metavar="NAME", help="Look for the run that breaks a promise as people state it.")
@click.option("--list", "listing", is_flag=True, help="List scenarios, mutations and popular promises.")
@click.option("--members", type=click.IntRange(1, 6), default=2, show_default=True, help="Member ids: each joins once, crashes once.")
@click.option("--partitions", type=click.IntRange(1, 8), default=2, show_default=True)
@click.option("--static", "static", is_flag=True, help="All member ids are incarnations of static members, two of each.")
@click.option(
    "--reorderings",
    type=click.IntRange(0),
    show_default="as many as the mutation needs",
    help="In a scenario: acts taken out of turn in a run.",
)
@click.option("--no-symmetry", is_flag=True, help="Count members and partitions that play the same part apart.")
@click.option("--max-states", type=size, help="Stop, undecided, after so many states: 500k, 20M.")
@click.option("--max-memory", type=size, default="8G", show_default=True, help="Stop, undecided, before a search needs more.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, writable=True), help="Write the counterexample to this file.")
@click.option("--as", "form", type=click.Choice(tuple(FORMS)), default="trace", show_default=True, help="What to write there.")
def explore(
    scenario: str | None,
    mutate: str | None,
    popular: str | None,
    listing: bool,
    members: int,
    partitions: int,
    static: bool,
    reorderings: int | None,
    no_symmetry: bool,
    max_states: int | None,
    max_memory: int,
    output: str | None,
    form: str,
) -> None:
    """Search the model for a run that breaks a promise; the shortest one is told and can be written as a trace.

    Without a name: every reachable state of the consumer protocol, with every fault at any time and any number of generations.

    Exit status: 0 no promise is broken, 1 one is, 2 usage, 3 the search stopped at a bound.
    """
    from .. import model
    from ..model.mutations import MUTATIONS, SCENARIOS
    from ..model.protocol.systems import POPULAR
    from .reports.exploration import show_exploration

    console = Console(highlight=False)
    if listing:
        _list(console)
        return
    if sum(name is not None for name in (mutate, popular)) > 1 or (scenario and popular):
        raise click.UsageError("--popular stands alone: it has its own scenario")
    try:
        with _progress() as told:
            found = model.explore(
                _known(scenario, SCENARIOS, "--scenario"),
                mutate=_known(mutate, MUTATIONS, "--mutate"),
                popular=_known(popular, POPULAR, "--popular"),
                members=members,
                partitions=partitions,
                instances=tuple(member // 2 for member in range(members)) if static else (),
                reorderings=reorderings,
                symmetry=not no_symmetry,
                max_states=max_states,
                max_memory=max_memory,
                progress=told,
            )
    except (ImportError, ValueError) as error:
        raise click.UsageError(str(error)) from error
    show_exploration(found, console)
    if output and found.counterexample:
        save(output, encoded(FORMS[form](found.counterexample.events)))
        console.print(f"trace: {output}" + ("" if form == "mermaid" else f"  (try: kipcheck show {output} -o counterexample.html)"))
    sys.exit(1 if found.violated else 3 if found.undecided else 0)


def _known(name: str | None, names: Iterable[str], option: str) -> str | None:
    if name is not None and name not in names:
        raise click.UsageError(f"{option}: there is no {name!r}; " + hint(name, names, "`kipcheck explore --list` lists them all"))
    return name


def _list(console: Console) -> None:
    from ..model.mutations import PROTOCOL, REFERENCE, SCENARIOS
    from ..model.protocol.systems import POPULAR

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("name", no_wrap=True)
    table.add_column("what happens")
    table.add_section()
    for scenario in SCENARIOS.values():
        table.add_row(f"--scenario {scenario.name}", scenario.what)
    table.add_section()
    for mutation in (*REFERENCE.values(), *(m for m in PROTOCOL.values() if m.name not in REFERENCE)):
        found = ", ".join(mutation.breaks) or f"seen by no rule: {mutation.unseen}"
        table.add_row(f"--mutate {mutation.name}", f"{mutation.what} [{found}]" + (f" {mutation.history}" if mutation.history else ""))
    table.add_section()
    for name in POPULAR:
        table.add_row(f"--popular {name}", "")
    console.print(table)


@contextmanager
def _progress() -> Generator[Callable[[int, int], None]]:
    """A line on standard error, on a terminal only."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} states, {task.fields[depth]} deep"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None, depth=0)
        yield lambda states, depth: bar.update(task, completed=states, depth=depth)


@click.command()
@click.option("--rule", metavar="ID", help="Only the promises that state this rule.")
@click.option("--mutate", metavar="NAME", help="Prove a mutant: refuted by a run, or proved harmless.")
@click.option("--seeds", type=click.IntRange(1, 20), default=3, show_default=True, help="Ask Z3 again with so many random seeds.")
@click.option("--matrix", is_flag=True, help="Show the auxiliary invariants in the matrix of obligations too.")
def prove(rule: str | None, mutate: str | None, seeds: int, matrix: bool) -> None:
    """Prove the promises for any number of members, partitions and generations; what is only bounded says so.

    Exit status: 0 proved (a mutant: harmless), 1 refuted, 2 usage, 3 open.
    """
    if rule is not None and rule not in RULES:
        raise click.UsageError(f"--rule: there is no rule {rule!r}; `kipcheck rules` lists them")
    try:
        sys.exit(_proved(rule, mutate, range(seeds), matrix, Console(highlight=False)))
    except ImportError as error:
        raise click.UsageError(str(error)) from error


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="TRACE...")
@click.option("--rule", required=True, metavar="ID", help="The rule whose finding is to stay.")
@click.option("--fingerprint", metavar="ID", help="Which finding of it; the first one, if left out.")
@click.option("--format", "format_", type=click.Choice(formats()), default="auto", show_default=True, help="What the files hold.")
@click.option("--as", "form", type=click.Choice((*FORMS, "pytest")), default="trace", show_default=True, help="What to write.")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, writable=True), help="The file to write.")
def shrink(paths: tuple[str, ...], rule: str, fingerprint: str | None, format_: str, form: str, output: str) -> None:
    """Shrink captures to the smallest trace with the same finding: events, members, generations and resources that it can do without go.

    Exit status: 0 written, 2 usage, no such finding, or unreadable input.
    """
    if rule not in RULES:
        raise click.UsageError(f"--rule: there is no rule {rule!r}; `kipcheck rules` lists them")
    found = shrunk(paths, rule, fingerprint=fingerprint, format=format_)
    text = trace_test(found.finding, found.trace) if form == "pytest" else FORMS[form](found.trace)
    save(output, encoded(text))
    click.echo(f"{found.events:,} events of group {found.finding.group} shrunk to {len(found.trace):,}: {output}")
    click.echo(f"{rule} ({found.finding.fingerprint}): {found.finding.message}")


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="TRACE...")
@click.option("--group", metavar="NAME", help="Which group, where there are several.")
@click.option("--format", "format_", type=click.Choice(formats()), default="auto", show_default=True, help="What the files hold.")
@click.option("--against", "reference", type=click.Choice(("model",)), help="Tell where the reference model would have done otherwise.")
def replay(paths: tuple[str, ...], group: str | None, format_: str, reference: str | None) -> None:
    """Tell a captured trace step by step, with who believes to own what after each, and the findings where they rest on a step.

    Steps are in logical time: first what the protocol forces, and only where it forces nothing the clocks of the hosts.

    Against the model: the longest part that the reference coordinator, consumers and assignors do as well, then what was enabled there
    instead, and what blocked what was captured.

    Exit status: 0 told, or the model does the same; 1 the model would have done otherwise; 2 usage, no such group, or unreadable
    input; 3 the capture does not tell.
    """
    events = one_group(events_of(paths, format_), group, paths)
    (result,) = check(events)
    picture, console = timeline(result, events), Console(highlight=False)
    if reference is None:
        show_replay(picture, console)
        return
    from .against import against
    from .reports.against import show_against

    replayed = against(events, picture)
    show_against(replayed, picture, console)
    sys.exit(replayed.status)


_STATUS = {"harmless": 0, "refuted": 1, "open": 3}


def _proved(rule: str | None, mutate: str | None, seeds: Sequence[int], matrix: bool, console: Console) -> int:
    from ..model import proofs
    from ..model.mutations import PROTOCOL
    from .reports.proof import show_bounded, show_judgement, show_popular, show_proof

    _known(mutate, PROTOCOL, "--mutate")
    if mutate is not None:
        proved, judgement = proofs.prove_mutant(mutate, seeds)
        show_proof(proved.proof, f"{proved.theory.name}: mutant {mutate}", console, matrix=matrix)
        show_judgement(judgement, mutate, console)
        return _STATUS[judgement.verdict]
    begun = time.process_time()
    statuses: list[int] = []
    for proved in proofs.prove(rule, seeds):
        show_proof(proved.proof, f"{proved.theory.name}: {proved.theory.covers}", console, matrix=matrix)
        statuses.append(0 if proved.proof.inductive else 3)
    if rule is None:
        bounded = proofs.verify_assignor()
        show_bounded(bounded, console)
        statuses += [0 if result.known else {True: 0, False: 1, None: 3}[result.holds] for result in bounded]
        show_popular(console)
    elif not statuses:
        console.print(f"{rule} has no proof form: the protocol floor has no clock and no logs. See `kipcheck explore --list`.")
        return 3
    console.print(f"{time.process_time() - begun:.1f} s of CPU altogether")
    return 1 if 1 in statuses else max(statuses)
