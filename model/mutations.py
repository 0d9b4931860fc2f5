"""Every mutation of both floors, where the explorer finds it, and the table that says so (``model/MUTATIONS.md``).

``python -m kipcheck.model.mutations`` measures anew: it writes `found.py`, and the table from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from ..spec.rules import MONITORS, RULES
from . import mutation_scenarios, scenarios
from .assignors.mutations import LATENT as ABSENCE
from .assignors.mutations import MUTATIONS as ASSIGNORS
from .connect.mutations import MUTATIONS as CONNECT
from .consumer.mutations import MUTATIONS as CONSUMER
from .coordinator.mutations import LATENT
from .coordinator.mutations import MUTATIONS as COORDINATOR
from .explorer import Search, search
from .found import FOUND, Found
from .mutation import Mutation
from .protocol.refute import MUTANTS
from .protocol.systems import THEORIES
from .scenarios import Scenario

REFERENCE: Mapping[str, Mutation] = MappingProxyType({m.name: m for m in (*COORDINATOR, *CONSUMER, *ASSIGNORS, *CONNECT)})
"""The defects of the reference floor that can be switched on."""

PROTOCOL: Mapping[str, Mutation] = MappingProxyType({m.name: m for theory in THEORIES.values() for m in theory.mutations.values()})

PRESENT: Mapping[str, Mutation] = MappingProxyType({m.name: m for m in (*LATENT, *ABSENCE)})
"""What Kafka does at present and the KIPs do not say: always on."""

MUTATIONS: Mapping[str, tuple[Mutation, ...]] = MappingProxyType(
    {name: tuple(floor[name] for floor in (REFERENCE, PROTOCOL) if name in floor) for name in (*REFERENCE, *PROTOCOL)}
)
"""By name; the same defect may be known on both floors."""

SCENARIOS: Mapping[str, Scenario] = MappingProxyType({**scenarios.SCENARIOS, **mutation_scenarios.SCENARIOS})

CASES: Mapping[str, str] = MappingProxyType(
    {
        "loser-becomes-owner": "three members claim one partition, each from another generation",
        "remembers-highest-generation": "the group starts again at generation 1, its leader has seen generation 10",
    }
)
"""Defects of assignors that take more than a scenario's budget to reach: the one assignment that shows them, judged by the rules."""

TIMELESS = "time is no part of the protocol floor"
COST = "a cost, which no run breaks"
UNPROVED: Mapping[str, str] = MappingProxyType(
    {
        "protocol-common-to-members": "the protocol floor knows one assignor",
        "join-barrier": f"{TIMELESS}: a join phase may end without a member at any moment",
        "rebalance-within-timeout": TIMELESS,
        "revoker-rejoins": "bounded: every quiet run of small groups ends stable, fully owned and balanced (`protocol.liveness`)",
        "withheld-partition-reassigned": "bounded: every quiet run of small groups ends fully owned (`protocol.liveness`)",
        "converges": "bounded: no quiet run of small groups goes round in a cycle (`protocol.liveness`)",
        "static-return-no-rebalance": "by construction: the action that replaces an id in a stable group leaves it stable",
        "static-close-sends-no-leave": "the protocol floor does not tell an orderly end from a crash",
        "delay-bounded": TIMELESS,
        "delay-counts-down": TIMELESS,
        "connect-balanced": "the leader of the protocol floor may balance as it likes",
        "rebalance-storm": COST,
        "needless-movement": COST,
        "stop-the-world": COST,
    }
)
"""Why no proof states a rule, or what stands in for it."""


def reference_mutation(name: str) -> Mutation:
    """The defect of the reference floor. Raises KeyError if there is none of that name."""
    return REFERENCE[name]


def protocol_mutation(name: str) -> Mutation:
    """The defect of the protocol floor. Raises KeyError if there is none of that name."""
    return PROTOCOL[name]


def explored() -> tuple[Mutation, ...]:
    """The mutations that the explorer finds, each in its scenario."""
    return tuple(m for m in REFERENCE.values() if m.scenario)


def explore(mutation: Mutation, *, max_worlds: int = 20_000) -> Search:
    """Search the mutation's scenario for the rules that it breaks."""
    return search(
        SCENARIOS[mutation.scenario],
        mutation=mutation.name,
        needs=mutation.needs,
        rules=frozenset(mutation.breaks),
        reorderings=mutation.reorderings,
        max_worlds=max_worlds,
    )


def measured(mutation: Mutation) -> Found:
    """How the explorer finds the mutation. Raises LookupError if it does not."""
    result = explore(mutation)
    if result.counterexample is None:
        raise LookupError(f"{mutation.name} was not found in {mutation.scenario}: {result.worlds} worlds")
    return Found(result.counterexample.finding.rule, len(result.counterexample.script), result.worlds)


# The table.


def markdown() -> str:
    """Both tables as Markdown."""
    return "\n".join((*_rules(), "", *_mutations(), ""))


def _rules() -> Iterator[str]:
    caught = [name for name in RULES if any(name == found.rule for found in FOUND.values())]
    yield "# Mutations"
    yield ""
    yield "Generated by `python -m kipcheck.model.mutations`. A mutation is a deliberate defect of the model. Each is switched on by"
    yield "name, and is found by the rules that it breaks; without it, the same search finds nothing."
    yield ""
    yield f"**{len(caught)} of {len(RULES)} rules have a mutation that the explorer finds.**"
    yield ""
    yield "## Rules"
    yield ""
    yield "A mutation is followed by its scenario, the steps of the run that shows it, and the worlds looked at before it was found."
    yield ""
    yield from _row("rule", "monitor", "mutations that the explorer finds", "properties of the protocol floor", "proof", "violating trace")
    yield from _row(*("---",) * 6)
    for name in RULES:
        found = "<br>".join(_explored(m) for m in explored() if FOUND[m.name].rule == name)
        properties = "<br>".join(_properties(name)) or "-"
        yield from _row(
            f"`{name}`", MONITORS[name].__name__, found, properties, _proof(name), f"[trace](../traces/rules/{name}.violates.jsonl)"
        )


def _explored(mutation: Mutation) -> str:
    found = FOUND[mutation.name]
    needs = f" with {_names(mutation.needs)}" if mutation.needs else ""
    return f"`{mutation.name}`{needs}: {mutation.scenario}, {found.steps}, {found.worlds}"


def _properties(rule: str) -> Iterator[str]:
    for theory in THEORIES.values():
        system = theory.build(frozenset())
        names = [name for name, rules in system.rules.items() if rule in rules]
        if names:
            yield f"{theory.name}: " + ", ".join(f"{name} (false as people state it)" if name in system.popular else name for name in names)


def _proof(rule: str) -> str:
    """Safety properties are proved for any number of members, partitions and generations."""
    return UNPROVED.get(rule, "unbounded")


def _mutations() -> Iterator[str]:
    yield "## Mutations of the reference floor"
    yield ""
    yield from _table(REFERENCE.values())
    yield ""
    yield "## Mutations of the protocol floor"
    yield ""
    yield "Consumer mutations are refuted by a run of `protocol.refute`, those of Connect by a told run; the others are proved harmless."
    yield ""
    yield from _table(PROTOCOL.values())
    yield ""
    yield "## What Kafka does at present"
    yield ""
    yield "Always on, in the reference model as in Kafka."
    yield ""
    yield from _table(PRESENT.values())


def _table(mutations: Iterable[Mutation]) -> Iterator[str]:
    yield from _row("name", "what", "history", "found by")
    yield from _row(*("---",) * 4)
    for mutation in mutations:
        yield from _row(f"`{mutation.name}`", mutation.what, mutation.history or "invented", _found(mutation))


def _found(mutation: Mutation) -> str:
    if mutation.floor == "protocol":
        case = MUTANTS.get(mutation.name)
        return f"{case.breaks}: {_names(mutation.breaks)}" if case else _names(mutation.breaks) or mutation.unseen
    if mutation.scenario and mutation.name in FOUND:
        found = FOUND[mutation.name]
        needs = f", together with {_names(mutation.needs)}" if mutation.needs else ""
        turns = f", {mutation.reorderings} of them out of turn" if mutation.reorderings else ""
        return f"`{found.rule}` in {mutation.scenario} after {found.steps} steps{turns}{needs}"
    if mutation.name in CASES:
        return f"{_names(mutation.breaks)} in one assignment: {CASES[mutation.name]}"
    if mutation.breaks:
        return f"{_names(mutation.breaks)} as a warning in {mutation.scenario}, without any defect"
    return f"nobody: {mutation.unseen}"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _row(*cells: str) -> Iterator[str]:
    yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _write() -> None:
    """Measure every mutation, and write what was found; the table needs another start, for it reads `found.py`."""
    here = Path(__file__).parent
    entries = [f'        "{m.name}": Found("{f.rule}", {f.steps}, {f.worlds}),\n' for m in explored() for f in [measured(m)]]
    before, _, rest = (here / "found.py").read_text(encoding="utf-8").partition("(\n    {\n")
    after = rest.partition("    }\n")[2]
    (here / "found.py").write_text(f"{before}(\n    {{\n{''.join(entries)}    }}\n{after}", encoding="utf-8")


if __name__ == "__main__":
    _write()
