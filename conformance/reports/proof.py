"""A proof on the terminal: the matrix of actions and statements, what it rests on, and what is only bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...model.protocol.assignor import Result
from ...model.protocol.prove import INITIALLY, Proof
from ...model.protocol.prove import Result as Outcome
from ...model.protocol.refute import Judgement
from ...model.protocol.systems import POPULAR

MARKS: Mapping[str, str] = {"proved": "[green]✓[/green]", "refuted": "[red]✗[/red]", "unknown": "[yellow]?[/yellow]"}
UNTOUCHED = "[dim]·[/dim]"


def show_proof(proof: Proof, title: str, console: Console, *, matrix: bool) -> None:
    """Print one proof: its promises, and the matrix of obligations. ``matrix``: also the lines of the auxiliary invariants."""
    system, results = proof.system, proof.matrix()
    console.print(f"[bold]{escape(title)}[/bold]")
    for name in system.safety:
        worst = [row[name] for row in results.values() if name in row]
        if not worst:
            continue
        mark = next((MARKS[result] for result in ("refuted", "unknown") if result in worst), MARKS["proved"])
        rules = ", ".join(system.rules.get(name, ()))
        console.print(f"  {mark} {name:<8} {escape(system.words.get(name, ''))}" + (f" [dim]{rules}[/dim]" if rules else ""))
    asked_of = {obligation.conjecture for obligation in proof.obligations}
    console.print(_matrix(proof, results, [n for n in (*system.safety, *(system.invariants if matrix else ())) if n in asked_of]))
    console.print(f"  [dim]{_legend(_actions(proof))}[/dim]")
    seeds = len({obligation.seed for obligation in proof.obligations})
    asked = len(proof.obligations) // max(1, seeds)
    failed = sorted({(obligation.action, obligation.conjecture) for obligation in proof.failed})
    outcome = "all proved" if not failed else f"[red]{len(failed)} not proved[/red]"
    vacuous = [vacuity.action for vacuity in proof.vacuity if not vacuity.possible]
    possible = "every action can happen" if not vacuous else f"[red]impossible: {', '.join(vacuous)}[/red]"
    others = len(system.safety) + len(system.invariants) - len(asked_of)
    given = f", given the {others} other statements that `kipcheck prove` proves with them" if others else ""
    decidable = "decidable (EPR)" if not proof.cycle else f"[yellow]outside EPR: {' -> '.join(proof.cycle)}[/yellow]"
    console.print(
        f"  {asked} obligations ({len(system.actions)} actions, {len(system.safety)} promises, {len(system.invariants)} auxiliary "
        f"invariants) x {seeds} seeds: {outcome}{given}; {possible}; {decidable}; {proof.seconds:.1f} s of CPU"
    )
    for counterexample in proof.counterexamples[:1]:
        console.print("  the first obligation that fails (a step from a state that perhaps nothing reaches):")
        console.print(f"    {escape(str(counterexample))}".replace("\n", "\n    "), soft_wrap=True)


def _matrix(proof: Proof, results: Mapping[str, Mapping[str, Outcome]], names: Sequence[str]) -> Table:
    actions = _actions(proof)
    seconds = _seconds(proof)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("statement", no_wrap=True)
    for number in range(len(actions)):
        table.add_column(_letter(number), justify="center")
    table.add_column("ms", justify="right")
    for name in names:
        cells = (MARKS[results[a][name]] if name in results.get(a, {}) else UNTOUCHED for a in actions)
        table.add_row(name, *cells, f"{1000 * sum(seconds.get((a, name), 0.0) for a in actions):.0f}")
    total = [1000 * sum(s for (a, _), s in seconds.items() if a == action) for action in actions]
    table.add_row("ms", *(f"{ms:.0f}" for ms in total), f"{sum(total):.0f}")
    return table


def _actions(proof: Proof) -> list[str]:
    return [INITIALLY, *(action.name for action in proof.system.actions)]


def _seconds(proof: Proof) -> dict[tuple[str, str], float]:
    """The longest over the seeds."""
    longest: dict[tuple[str, str], float] = {}
    for obligation in proof.obligations:
        key = obligation.action, obligation.conjecture
        longest[key] = max(obligation.seconds, longest.get(key, 0.0))
    return longest


def _letter(number: int) -> str:
    return "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[number]


def _legend(actions: Sequence[str]) -> str:
    return "  ".join(f"{_letter(number)} {name}" for number, name in enumerate(actions))


def show_bounded(results: Sequence[Result], console: Console) -> None:
    """What holds of the sticky assignor's algorithm, and within which bound."""
    console.print(
        "\n[bold]assignor: cooperative-sticky, equal subscriptions; the contract that the proofs above assume of the leader[/bold]"
    )
    for result in results:
        mark = {True: MARKS["proved"], False: MARKS["refuted"], None: MARKS["unknown"]}[result.holds]
        known = f" [yellow]known: {escape(result.known)}[/yellow]" if result.known else ""
        console.print(f"  {mark} {escape(result.promise)} [dim]({escape(result.bound)}, {result.seconds:.1f} s)[/dim]{known}")


def show_popular(console: Console) -> None:
    """The promises that are false as people state them."""
    console.print("\n[bold]False as people state it[/bold] (each command shows the shortest run)")
    for name in POPULAR:
        console.print(f"  kipcheck explore --popular {name}")


def show_judgement(judgement: Judgement, mutation: str, console: Console) -> None:
    """What became of a mutant."""
    match judgement.verdict:
        case "refuted":
            steps = len(judgement.trace.steps) if judgement.trace else 0
            console.print(
                f"[red]refuted[/red]: a run of {steps} steps from the start breaks a promise; kipcheck explore --mutate {mutation}"
            )
        case "harmless":
            console.print("[green]harmless[/green]: the promises are proved for the mutant too")
        case "open":
            console.print("[yellow]open[/yellow]: the induction fails, and no short run from the start breaks a promise")
