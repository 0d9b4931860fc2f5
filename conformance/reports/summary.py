"""What a report comes to: its ledger summed up, its rules counted over groups, its findings gathered by promise."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...spec.results import Finding, GroupResult, Status, Verdict
from ..report import Input, Report

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
class RuleCount:
    """In how many groups a rule passed, was violated or stayed unknown, and how often it was checked in all."""

    rule: str
    passed: int
    violated: int
    unknown: int
    checked: int


@dataclass(frozen=True, slots=True)
class BlindSpot:
    """Why these rules could not be checked, in how many groups."""

    why: str
    rules: tuple[str, ...]
    groups: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Findings of one rule in one group: those to show in full, and those to name only."""

    shown: tuple[Finding, ...]
    more: tuple[Finding, ...]


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
    order = {Verdict.VIOLATES: 0, Verdict.UNDETERMINED: 1, Verdict.CONFORMS: 2}
    return sorted(groups, key=lambda g: (order[g.verdict], g.cluster, g.group))


def by_group(findings: Iterable[Finding]) -> Mapping[Key, tuple[Finding, ...]]:
    """Findings by their group, in order."""
    found: dict[Key, list[Finding]] = defaultdict(list)
    for finding in findings:
        found[finding.cluster, finding.group].append(finding)
    return {key: tuple(few) for key, few in found.items()}


def statuses(group: GroupResult) -> Counter[Status]:
    """How many rules of a group have each status."""
    return Counter(result.status for result in group.rules.values())


def rule_counts(groups: Iterable[GroupResult]) -> list[RuleCount]:
    """Every rule over all groups: violated ones first, then those often unknown."""
    status: dict[str, Counter[Status]] = defaultdict(Counter)
    checked: Counter[str] = Counter()
    for group in groups:
        for rule, result in group.rules.items():
            status[rule][result.status] += 1
            checked[rule] += result.checked
    counts = (RuleCount(rule, s[Status.PASS], s[Status.VIOLATED], s[Status.UNKNOWN], checked[rule]) for rule, s in status.items())
    return sorted(counts, key=lambda c: (-c.violated, -c.unknown, c.rule))


def blind_spots(groups: Iterable[GroupResult]) -> list[BlindSpot]:
    """Why rules stayed unknown, the reason that hides most rules first."""
    rules: dict[str, set[str]] = defaultdict(set)
    where: dict[str, set[Key]] = defaultdict(set)
    for group in groups:
        for rule, result in group.rules.items():
            if result.status is Status.UNKNOWN:
                why = result.why or "no reason given"
                rules[why].add(rule)
                where[why].add((group.cluster, group.group))
    spots = (BlindSpot(why, tuple(sorted(hidden)), len(where[why])) for why, hidden in rules.items())
    return sorted(spots, key=lambda s: (-len(s.rules), -s.groups, s.why))


def digest(findings: Iterable[Finding], *, each: int, total: int) -> tuple[list[Batch], int]:
    """Findings gathered by severity, rule and group: ``each`` of a batch and ``total`` in all to show; how many are left out."""
    gathered: dict[tuple[str, str, str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        gathered[finding.severity, finding.rule, finding.cluster, finding.group].append(finding)
    batches: list[Batch] = []
    room, left_out = total, 0
    for batch in gathered.values():
        full = min(each, room)
        if full:
            batches.append(Batch(tuple(batch[:full]), tuple(batch[full:])))
            room -= min(full, len(batch))
        else:
            left_out += len(batch)
    return batches, left_out
