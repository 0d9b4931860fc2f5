"""What a report comes to: its ledger summed up, its rules counted over groups, its findings gathered by promise."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...spec.results import Finding, GroupResult, Status, Verdict
from ..report import Input, Report

WORST: Mapping[Verdict, int] = {Verdict.VIOLATES: 0, Verdict.UNDETERMINED: 1, Verdict.CONFORMS: 2}
"""The rank of a verdict among those that deserve a look."""
Key = tuple[str, str]
"""Cluster and group."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """The sums over all inputs; ``unreadable`` counts those with a problem."""

    inputs: int
    unreadable: int
    lines: int
    events: int
    irrelevant: int
    malformed: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Findings of one rule in one group (of a gate: in all classes of input): those to show in full, and those to name only."""

    shown: tuple[Finding, ...]
    more: tuple[Finding, ...]

    @property
    def elsewhere(self) -> tuple[Finding, ...]:
        """One of each other group among ``more``: of other classes of input."""
        here = {(finding.cluster, finding.group) for finding in self.shown}
        others = {(finding.cluster, finding.group): finding for finding in self.more}
        return tuple(finding for key, finding in others.items() if key not in here)


def ledger(report: Report) -> Ledger:
    """Every line of every input, accounted for."""
    inputs = report.inputs
    return Ledger(
        inputs=len(inputs),
        unreadable=sum(i.problem is not None for i in inputs),
        lines=sum(i.lines for i in inputs),
        events=sum(i.events for i in inputs),
        irrelevant=sum(i.irrelevant for i in inputs),
        malformed=sum(i.malformed for i in inputs),
    )


def troubled_first(inputs: Iterable[Input]) -> list[Input]:
    """Unreadable inputs, then those with malformed lines, then the rest; else in order."""
    return sorted(inputs, key=lambda i: (i.problem is None, not i.malformed))


def worst_first(groups: Iterable[GroupResult]) -> list[GroupResult]:
    """Groups in the order in which they deserve a look."""
    return sorted(groups, key=lambda g: (WORST[g.verdict], g.cluster, g.group))


def by_group(findings: Iterable[Finding]) -> Mapping[Key, tuple[Finding, ...]]:
    """Findings by their group, in order."""
    found: dict[Key, list[Finding]] = defaultdict(list)
    for finding in findings:
        found[finding.cluster, finding.group].append(finding)
    return {key: tuple(few) for key, few in found.items()}


def statuses(group: GroupResult) -> Counter[Status]:
    """How many rules of a group have each status."""
    return Counter(result.status for result in group.rules.values())


def digest(findings: Iterable[Finding], *, each: int, total: int) -> tuple[list[Batch], int]:
    """Findings gathered by severity, rule and group: ``each`` of a batch and ``total`` in all to show; how many are left out.

    Findings of an assignor, which have a ``case``, are gathered over its input classes, the shortest case first: it shows what is broken.
    """
    gathered: dict[tuple[str, ...], list[Finding]] = defaultdict(list)
    for finding in findings:
        within = () if finding.case is not None else (finding.group,)
        gathered[finding.severity, finding.rule, finding.cluster, *within].append(finding)
    batches: list[Batch] = []
    room, left_out = total, 0
    for found in gathered.values():
        batch = sorted(found, key=lambda finding: len(str(finding.case)))
        full = min(each, room)
        if full:
            batches.append(Batch(tuple(batch[:full]), tuple(batch[full:])))
            room -= min(full, len(batch))
        else:
            left_out += len(batch)
    return batches, left_out
