"""The report: what the reporters render and `kipcheck.report/1` serialises."""

from __future__ import annotations

from dataclasses import dataclass

from ..spec.results import Finding, GroupResult, Verdict


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
class Report:
    """Everything one command has to say. ``notes`` are remarks about the run itself (an expired waiver, the engine taken)."""

    command: str
    version: str
    verdict: Verdict
    inputs: tuple[Input, ...]
    groups: tuple[GroupResult, ...]
    waived: tuple[Waived, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings that no waiver covers, errors first, then by group and generation."""
        waived = {(w.finding.cluster, w.finding.group, w.finding.fingerprint) for w in self.waived}
        order = {"error": 0, "warning": 1, "info": 2}
        found = (f for g in self.groups for f in g.findings if (f.cluster, f.group, f.fingerprint) not in waived)
        return tuple(
            sorted(found, key=lambda f: (order[f.severity], f.cluster, f.group, f.epoch, f.generation or 0, f.rule, f.fingerprint))
        )
