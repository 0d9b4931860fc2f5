"""Settles one group: what was kept of its events goes, in the local engine's order, through the monitors of `spec`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...spec.check import check_group, verdict
from ...spec.events import Event
from ...spec.results import GroupResult, RuleResult, Settings
from ...spec.rules import MONITORS
from ..assemble import align, log_name
from ..readers import columns
from . import canonical
from .extract import Store
from .sieve import misplaced, needs_full

HEAVY = 200_000
"""A group of which more rows are kept is settled in several tasks, each with some of the rules: the monitors' share of the work
is about half of it, and the other half, reading the events and putting the rounds together, each task does again."""
BUNDLES = 4
"""In how many."""


class NeedsFull(Exception):
    """What was kept does not show how the group's requests are to be ordered, or that what was dropped were copies."""


def settle(rows: Any, store: Store, settings: Settings, *, measure: bool = True) -> GroupResult:
    """Check one group's kept rows: an Arrow table of the canonical columns, ``times`` and ``copies``, in any order.

    Raises `spec.check.Suspected` if a request that stands for several may not say the same as each of them, `NeedsFull` if
    all of the group's events must be seen.
    """
    if needs_full(rows, store.native):
        raise NeedsFull
    rows = _in_order(rows, store)
    places: list[int] = rows.column("input").to_pylist()
    events = canonical.events(rows)
    own = [event for event, place in zip(events, places, strict=True) if store.native[place]]
    raw: list[tuple[str, Event]] = [
        (log_name(store.names[place]), event) for event, place in zip(events, places, strict=True) if not store.native[place]
    ]
    aligned = align(raw)
    requests, copies = (sum(rows.column(name).to_pylist()) for name in ("times", "copies"))
    if copies and misplaced(aligned):
        raise NeedsFull
    result = check_group([*own, *aligned], settings, measure=measure, sieved=True)
    return replace(result, events=requests + copies)


def bundle(number: int, of: int, settings: Settings) -> Settings:
    """The settings with the share of the rules that bundle ``number`` (from 0) checks; the first one also measures."""
    wanted = [rule for rule in MONITORS if rule not in settings.skip and (settings.only is None or rule in settings.only)]
    return settings if of == 1 else replace(settings, only=frozenset(wanted[number::of]))


def merge(parts: Sequence[GroupResult]) -> GroupResult:
    """One group's result from those of its bundles."""
    measured = max(parts, key=lambda part: len(part.metrics))
    rules: dict[str, RuleResult] = {rule: part.rules[rule] for rule in MONITORS for part in parts if rule in part.rules}
    place = {rule: index for index, rule in enumerate(rules)}
    findings = tuple(sorted((f for part in parts for f in part.findings), key=lambda f: place[f.rule]))
    return replace(measured, rules=rules, findings=findings, verdict=verdict(rules, findings))


def _in_order(rows: Any, store: Store) -> Any:
    """As the local engine takes them: capture by capture (`manifest.ranks`), each in its own order."""
    arrow = columns.pyarrow()
    rank = arrow.array(store.ranks, arrow.int64()).take(rows.column("input").combine_chunks())
    return rows.append_column("rank", rank).sort_by([("rank", "ascending"), ("pos", "ascending")]).drop_columns(["rank"])
