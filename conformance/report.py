"""The report: what the reporters render and `kipcheck.report/1` serialises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ..spec.results import Finding, GroupResult, Severity, Verdict
from .totals import Count, Totals

SEVEREST: Mapping[Severity, int] = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class MalformedLine:
    """A line that its reader owns but could not read. ``line`` counts from 1."""

    line: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """The ledger of one input: ``lines`` = ``events`` + ``irrelevant`` + ``malformed``.

    ``malformed_at`` names the first hundred. ``problem`` says why a file could not be read, or not to its end.
    """

    path: str
    format: str
    lines: int = 0
    events: int = 0
    irrelevant: int = 0
    malformed: int = 0
    malformed_at: tuple[MalformedLine, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Waived:
    """A finding that a waiver covers, with the waiver's reason and its last day (ISO date)."""

    finding: Finding
    reason: str
    expires: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a report tells of a trace too large for it: ``totals`` over everything, and the most telling ``findings``.

    ``counts`` are the findings of each group that the report shows, by (cluster, group), then by rule and severity.
    ``files`` hold all groups and findings.
    """

    totals: Totals
    findings: tuple[Finding, ...]
    counts: Mapping[tuple[str, str], Mapping[tuple[str, Severity], int]]
    files: tuple[str, ...] = ()


Measured = int | float | str


@dataclass(frozen=True, slots=True)
class Compared:
    """One row of a comparison: ``what`` was measured in which ``unit`` (empty: none), of the subject and of the baseline."""

    what: str
    unit: str
    subject: Measured
    baseline: Measured
    regression: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """The assignor under test beside another one on the same inputs; ``subject`` and ``baseline`` are their SPECs."""

    subject: str
    baseline: str
    rows: tuple[Compared, ...]


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything one command has to say. ``notes`` are remarks about the run itself (an expired waiver, the engine taken).

    With a ``sample``, ``groups`` are the most telling ones only, without their findings, and ``waived`` may be cut short too.
    Of an assignor gate, ``groups`` are the classes of its inputs, each with the assignor's SPEC as its cluster and its number
    of inputs as ``events``; ``comparison`` is there if it had a baseline.
    """

    command: str
    version: str
    verdict: Verdict
    inputs: tuple[Input, ...]
    groups: tuple[GroupResult, ...]
    waived: tuple[Waived, ...] = ()
    notes: tuple[str, ...] = ()
    sample: Sample | None = None
    comparison: Comparison | None = None

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings that no waiver covers, errors first, then by group and generation: all, or those of the ``sample``."""
        if self.sample is not None:
            return in_order(self.sample.findings)
        waived = {(w.finding.cluster, w.finding.group, w.finding.fingerprint) for w in self.waived}
        return in_order(tuple(f for g in self.groups for f in g.findings if (f.cluster, f.group, f.fingerprint) not in waived))

    @cached_property
    def totals(self) -> Totals:
        """Counts over all groups, also those that the report does not show."""
        if self.sample is not None:
            return self.sample.totals
        count, findings = Count(), self.findings
        by_group: dict[tuple[str, str], list[Finding]] = {}
        for finding in findings:
            by_group.setdefault((finding.cluster, finding.group), []).append(finding)
        for group in self.groups:
            count.add(group, by_group.get((group.cluster, group.group), ()))
        return replace(count.totals, waived=len(self.waived))

    @cached_property
    def counts(self) -> Mapping[tuple[str, str], Mapping[tuple[str, Severity], int]]:
        """How many findings that no waiver covers each group of the report has, by (cluster, group), then by rule and severity."""
        if self.sample is not None:
            return self.sample.counts
        found: dict[tuple[str, str], Counter[tuple[str, Severity]]] = {}
        for finding in self.findings:
            found.setdefault((finding.cluster, finding.group), Counter())[finding.rule, finding.severity] += 1
        return found


def in_order(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Errors first, then by group and generation; of an assignor, first what has an input of that very class."""
    return tuple(
        sorted(
            findings,
            key=lambda f: (SEVEREST[f.severity], _secondary(f), f.cluster, f.group, f.epoch, f.generation or 0, f.rule, f.fingerprint),
        )
    )


def _secondary(finding: Finding) -> bool:
    return finding.case is None or finding.case.get("class", finding.group) != finding.group
