"""What Connect runs: units of two kinds, named as in trace version 1, ``connector:NAME`` and ``task:NAME-0``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from .java_order import hash_order

Kind = Literal["connector", "task"]
KINDS: tuple[Kind, Kind] = ("connector", "task")
Connectors = tuple[tuple[str, int], ...]
"""The connectors of a cluster, each with its number of tasks."""


def units_of(connectors: Connectors) -> frozenset[str]:
    """Every connector and task that is to run."""
    return frozenset(unit for name, tasks in connectors for unit in (f"connector:{name}", *(f"task:{name}-{n}" for n in range(tasks))))


def of_kind(kind: Kind, units: Iterable[str]) -> list[str]:
    """Those of one kind, in their order."""
    return [unit for unit in units if unit.startswith(f"{kind}:")]


def in_order(units: Iterable[str]) -> list[str]:
    """Connectors by name, then tasks by connector and number."""
    return sorted(units, key=_rank)


def on_the_wire(units: Sequence[str]) -> tuple[str, ...]:
    """The order in which a list of units arrives: encoding groups tasks by connector, the connectors in hash order first.

    Source: ConnectProtocol.Assignment.asMap.
    """
    connectors = hash_order([_connector(unit) for unit in of_kind("connector", units)], copied=True)
    groups: dict[str, list[str]] = {name: [] for name in connectors}
    for unit in of_kind("task", units):
        groups.setdefault(_connector(unit), []).append(unit)
    return (*(f"connector:{name}" for name in connectors), *(unit for group in groups.values() for unit in group))


def _connector(unit: str) -> str:
    kind, _, name = unit.partition(":")
    return name if kind == "connector" else name.rpartition("-")[0]


def _rank(unit: str) -> tuple[bool, str, int]:
    task = unit.startswith("task:")
    return task, _connector(unit), int(unit.rpartition("-")[2]) if task else -1
