"""Which groups and findings a report tells of a trace too large for it: the most telling ones, whatever the order they come in."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import Generic, TypeVar

from ...spec.results import Finding, GroupResult, Severity, Verdict
from ..report import Sample, Waived
from ..totals import Count

GROUPS = 1000
FINDINGS = 1000
"""How many groups, findings and waived findings a report tells."""

_VERDICTS = {Verdict.VIOLATES: 0, Verdict.UNDETERMINED: 1, Verdict.CONFORMS: 2}
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
_T = TypeVar("_T")


@dataclass(slots=True)
class _Least(Generic[_T]):
    """The ``limit`` least of all that were added."""

    limit: int
    key: Callable[[_T], tuple[object, ...]]
    kept: list[_T] = field(default_factory=list[_T])

    def add(self, item: _T) -> None:
        self.kept.append(item)
        if len(self.kept) >= 2 * self.limit:
            self.kept = self.least()

    def least(self) -> list[_T]:
        return sorted(self.kept, key=self.key)[: self.limit]  # pyright: ignore[reportCallIssue, reportArgumentType]


@dataclass(frozen=True, slots=True)
class _Nth:
    """A finding that is the ``place``-th of its rule in its group."""

    place: int
    finding: Finding


def _telling(group: GroupResult) -> tuple[object, ...]:
    return _VERDICTS[group.verdict], group.cluster, group.group


def _first(nth: _Nth) -> tuple[object, ...]:
    f = nth.finding
    return nth.place, f.cluster, f.group, f.epoch, f.generation or 0, f.fingerprint


def _covered(waived: Waived) -> tuple[object, ...]:
    f = waived.finding
    return _SEVERITIES.index(f.severity), f.cluster, f.group, f.epoch, f.generation or 0, f.rule, f.fingerprint


class Sampler:
    """Takes groups one after another, in any order; memory is bounded by ``groups`` and ``findings`` (for each rule)."""

    def __init__(self, groups: int = GROUPS, findings: int = FINDINGS) -> None:
        self.verdicts: set[Verdict] = set()
        self._limits = groups, findings
        self._count = Count()
        self._groups = _Least(groups, _telling)
        self._findings: dict[tuple[Severity, str], _Least[_Nth]] = defaultdict(lambda: _Least(findings, _first))
        self._waived = _Least(findings, _covered)
        self._counts: dict[tuple[str, str], Counter[tuple[str, Severity]]] = {}
        self._cut = False
        self._total = self._told = self._covered = 0

    def add(self, group: GroupResult, waived: Sequence[Waived] = ()) -> None:
        """A group, judged as the waivers leave it, and which of its findings they cover."""
        covered = {w.finding.fingerprint for w in waived}
        told = [finding for finding in group.findings if finding.fingerprint not in covered]
        self._count.add(group, told, len(waived))
        self.verdicts.add(group.verdict)
        self._total, self._told, self._covered = self._total + 1, self._told + len(told), self._covered + len(waived)
        places: Counter[str] = Counter()
        for finding in told:
            places[finding.rule] += 1
            self._findings[finding.severity, finding.rule].add(_Nth(places[finding.rule], finding))
        for entry in waived:
            self._waived.add(entry)
        if not self.whole and not self._cut:
            self._cut = True
            self._groups.kept = [replace(kept, findings=()) for kept in self._groups.kept]
        self._groups.add(group if self.whole else replace(group, findings=()))
        if told:
            self._counts[group.cluster, group.group] = Counter((finding.rule, finding.severity) for finding in told)
        if len(self._counts) > 4 * self._limits[0]:
            kept = {(g.cluster, g.group) for g in self._groups.kept}
            self._counts = {key: counts for key, counts in self._counts.items() if key in kept}

    @property
    def whole(self) -> bool:
        """Whether a report can tell everything."""
        groups, findings = self._limits
        return self._total <= groups and self._told <= findings and self._covered <= findings

    @property
    def groups(self) -> tuple[GroupResult, ...]:
        """The groups to tell, by name."""
        return tuple(sorted(self._groups.least(), key=lambda g: (g.cluster, g.group)))

    @property
    def waived(self) -> tuple[Waived, ...]:
        """The waived findings to tell: errors first, then by group and generation."""
        return tuple(self._waived.least())

    def sample(self, files: Sequence[str]) -> Sample | None:
        """The totals and the findings to tell, where that is not everything; ``files`` hold everything."""
        if self.whole:
            return None
        shown = {(group.cluster, group.group) for group in self._groups.least()}
        return Sample(
            totals=self._count.totals,
            findings=tuple(self._chosen()),
            counts={key: counts for key, counts in self._counts.items() if key in shown},
            files=tuple(files),
        )

    def _chosen(self) -> list[Finding]:
        """Errors first; of one severity a finding of each rule in turn, and of one rule another group each time."""
        chosen: list[Finding] = []
        for severity in _SEVERITIES:
            rules = [least.least() for (kind, _), least in sorted(self._findings.items()) if kind == severity]
            chosen += [nth.finding for nth in chain.from_iterable(zip_longest(*rules)) if nth is not None]
        return chosen[: self._limits[1]]
