"""What a report comes to over all its groups: verdicts, rules, findings and blind spots, counted group by group."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..spec.results import Finding, GroupResult, Severity, Status, Verdict

REASONS = 1000
"""How many different reasons are told apart; those that come later are counted together."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts over all groups. ``findings`` are those that no waiver covers, ``broken`` the groups that have any."""

    groups: Mapping[Verdict, int]
    rules: tuple[RuleCount, ...]
    blind_spots: tuple[BlindSpot, ...]
    findings: Mapping[Severity, int]
    broken: int
    waived: int


@dataclass(slots=True)
class Count:
    """Counts groups one after another."""

    _groups: Counter[Verdict] = field(default_factory=Counter[Verdict])
    _rules: dict[str, Counter[Status]] = field(default_factory=lambda: defaultdict[str, Counter[Status]](Counter))
    _checked: Counter[str] = field(default_factory=Counter[str])
    _hidden: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    _reasons: Counter[str] = field(default_factory=Counter[str])
    _findings: Counter[Severity] = field(default_factory=Counter[Severity])
    _broken: int = 0
    _waived: int = 0

    def add(self, group: GroupResult, open_findings: Iterable[Finding], waived: int = 0) -> None:
        """Count a group with its findings that no waiver covers, and the number of those that one does."""
        self._groups[group.verdict] += 1
        hidden: set[str] = set()
        for rule, result in group.rules.items():
            self._rules[rule][result.status] += 1
            self._checked[rule] += result.checked
            if result.status is Status.UNKNOWN:
                why = result.why or "no reason given"
                why = why if why in self._hidden or len(self._hidden) < REASONS else "other reasons"
                self._hidden.setdefault(why, set()).add(rule)
                hidden.add(why)
        self._reasons.update(hidden)
        severities = Counter[Severity](finding.severity for finding in open_findings)
        self._findings += severities
        self._broken += bool(severities)
        self._waived += waived

    @property
    def totals(self) -> Totals:
        """What was counted: violated rules first, then those often unknown; the reason that hides most rules first."""
        checked = self._checked
        rules = (RuleCount(r, s[Status.PASS], s[Status.VIOLATED], s[Status.UNKNOWN], checked[r]) for r, s in self._rules.items())
        spots = (BlindSpot(why, tuple(sorted(hidden)), self._reasons[why]) for why, hidden in self._hidden.items())
        return Totals(
            groups=dict(self._groups),
            rules=tuple(sorted(rules, key=lambda c: (-c.violated, -c.unknown, c.rule))),
            blind_spots=tuple(sorted(spots, key=lambda s: (-len(s.rules), -s.groups, s.why))),
            findings=dict(self._findings),
            broken=self._broken,
            waived=self._waived,
        )
