"""The report as JSON, `kipcheck.report/1`: what other tools read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import cast

from ...spec.results import Argument, Finding, GroupResult, RuleResult
from ...spec.rule import Rule
from ..report import Comparison, Input, Report, Sample, Waived

SCHEMA = "kipcheck.report/1"


def render(report: Report, rules: Mapping[str, Rule]) -> str:
    """One JSON object, indented, ASCII only; every field of it is described in ``spec/schemas/report.schema.json``."""
    return json.dumps(_report(report), indent=1, allow_nan=False) + "\n"


def _report(report: Report) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "command": report.command,
        "version": report.version,
        "verdict": report.verdict.value,
        "inputs": [_input(i) for i in report.inputs],
        "groups": [_group(g) for g in report.groups],
        "findings": [_finding(f) for f in report.findings],
        "waived": [_waived(w) for w in report.waived],
        "notes": list(report.notes),
        **({"sample": _sample(report.sample)} if report.sample is not None else {}),
        **({"comparison": comparison(report.comparison)} if report.comparison is not None else {}),
    }


def comparison(told: Comparison) -> dict[str, object]:
    """A comparison with a baseline as JSON."""
    return {
        "subject": told.subject,
        "baseline": told.baseline,
        "rows": [
            {
                "what": row.what,
                "unit": row.unit,
                "subject": plain(row.subject),
                "baseline": plain(row.baseline),
                "regression": row.regression,
            }
            for row in told.rows
        ],
    }


def _sample(sample: Sample) -> dict[str, object]:
    totals = sample.totals
    return {
        "groups": {verdict.value: number for verdict, number in totals.groups.items()},
        "findings": dict(totals.findings),
        "groups_with_findings": totals.broken,
        "waived": totals.waived,
        "rules": {c.rule: {"pass": c.passed, "violated": c.violated, "unknown": c.unknown, "checked": c.checked} for c in totals.rules},
        "files": list(sample.files),
    }


def _input(entry: Input) -> dict[str, object]:
    return {
        "path": entry.path,
        "format": entry.format,
        "lines": entry.lines,
        "events": entry.events,
        "irrelevant": entry.irrelevant,
        "malformed": entry.malformed,
        "malformed_at": [{"line": at.line, "why": at.why} for at in entry.malformed_at],
        "problem": entry.problem,
    }


def _group(group: GroupResult) -> dict[str, object]:
    return {
        "cluster": group.cluster,
        "group": group.group,
        "protocol": group.protocol,
        "verdict": group.verdict.value,
        "rules": {rule: _rule(result) for rule, result in group.rules.items()},
        "metrics": plain(group.metrics),
        "advice": list(group.advice),
        "events": group.events,
    }


def _rule(result: RuleResult) -> dict[str, object]:
    return {"status": result.status.value, "checked": result.checked, "why": result.why}


def _finding(finding: Finding) -> dict[str, object]:
    evidence = finding.evidence

    def step(argument: Argument) -> dict[str, object]:
        return {"says": argument.says, "evidence": evidence.index(argument.evidence) if argument.evidence is not None else None}

    return {
        "fingerprint": finding.fingerprint,
        "rule": finding.rule,
        "severity": finding.severity,
        "cluster": finding.cluster,
        "group": finding.group,
        "epoch": finding.epoch,
        "generation": finding.generation,
        "members": list(finding.members),
        "resources": list(finding.resources),
        "message": finding.message,
        "evidence": [{"file": source.file, "line": source.line, "text": source.text} for source in evidence],
        "argument": [step(argument) for argument in finding.argument],
        "relaxed": finding.relaxed,
        "advice": finding.advice,
        **({"case": plain(finding.case)} if finding.case is not None else {}),
        **({"replay": finding.replay} if finding.replay is not None else {}),
    }


def _waived(waived: Waived) -> dict[str, object]:
    return {**_finding(waived.finding), "waiver": {"reason": waived.reason, "expires": waived.expires}}


def plain(value: object) -> object:
    """``value`` as strict JSON holds it: no NaN, sets sorted, anything else as its text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if isfinite(value) else None
        case Mapping():
            return {str(key): plain(held) for key, held in cast("Mapping[object, object]", value).items()}
        case set() | frozenset():
            return [plain(held) for held in sorted(cast("Iterable[object]", value), key=str)]
        case list() | tuple():
            return [plain(held) for held in cast("Iterable[object]", value)]
        case _:
            return str(value)
