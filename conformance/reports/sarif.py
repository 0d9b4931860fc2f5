"""The report as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from itertools import pairwise
from urllib.parse import quote

from ...spec.results import Argument, Finding, Severity, Source
from ...spec.rule import Rule
from ..report import Input, Report, Waived
from .cases import sheets
from .cases import text as shown
from .json import comparison, plain
from .prose import clean, line, moment, name, notes, place

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "kipcheck/v1"

_LEVEL: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

Json = dict[str, object]


def render(report: Report, rules: Mapping[str, Rule]) -> str:
    """One SARIF log with one run.

    A result's location is the last line of its argument, where the promise broke, or an assignor's case file; the whole argument is
    its code flow.
    Waived findings carry a suppression. Unreadable inputs, malformed lines and notes are notifications of the run.
    """
    findings = [*report.findings, *(waived.finding for waived in report.waived)]
    ids = list(dict.fromkeys((*rules, *(finding.rule for finding in findings))))
    index = {rule: at for at, rule in enumerate(ids)}
    run: Json = {
        "tool": {
            "driver": {"name": "kipcheck", "version": report.version, "rules": [_rule(rule, rules.get(rule)) for rule in ids]},
        },
        "invocations": [
            {
                "executionSuccessful": all(entry.problem is None for entry in report.inputs),
                "toolExecutionNotifications": [
                    *_of_inputs(report.inputs),
                    *(_notification("note", note) for note in notes(report)),
                ],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [
            *(_result(finding, index) for finding in report.findings),
            *(_result(waived.finding, index) | _suppression(waived) for waived in report.waived),
        ],
        "properties": {"command": report.command, "verdict": report.verdict.value, **_totals(report)},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _totals(report: Report) -> Json:
    compared: Json = {"comparison": comparison(report.comparison)} if report.comparison is not None else {}
    if report.sample is None:
        return compared
    totals = report.totals
    return compared | {
        "groups": {verdict.value: n for verdict, n in totals.groups.items()},
        "findings": dict(totals.findings),
        "waived": totals.waived,
    }


def _rule(rule_id: str, rule: Rule | None) -> Json:
    if rule is None:
        return {"id": rule_id}
    paragraphs = [rule.promise, f"{rule.kip}: {rule.clause} (source: {rule.source})", f"Unknown when: {rule.unknown_when}"]
    paragraphs += [f"Legal although it looks like a violation: {exception}" for exception in rule.exceptions]
    return {
        "id": rule_id,
        "shortDescription": {"text": rule.promise},
        "fullDescription": {"text": paragraphs[1]},
        "help": {"text": "\n\n".join(paragraphs)},
        "defaultConfiguration": {"level": _LEVEL[rule.severity]},
        "properties": {"tags": [rule.kip]},
    }


def _result(finding: Finding, index: Mapping[str, int]) -> Json:
    where = {"name": name(finding.cluster, finding.group), "fullyQualifiedName": f"{line(finding.cluster)}/{line(finding.group)}"}
    evidence = finding.evidence
    location: Json = {**(_location(evidence[-1]) if evidence else _case_file(finding)), "logicalLocations": [where]}
    text = [f"{finding.message} ({', '.join(filter(None, (where['name'], moment(finding))))})"]
    text += [f"Known: {finding.relaxed}"] if finding.relaxed else []
    text += [f"What to do: {finding.advice}"] if finding.advice else []
    text += shown(sheets(finding.case))
    text += [f"Replay: {finding.replay}"] if finding.replay is not None else []
    flow = {"codeFlows": [{"threadFlows": [{"locations": [_step(step) for step in finding.argument]}]}]} if finding.argument else {}
    return {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": _LEVEL[finding.severity],
        "message": {"text": clean("\n".join(text))},
        "locations": [location],
        **flow,
        "partialFingerprints": {FINGERPRINT: finding.fingerprint},
        "properties": {
            "cluster": finding.cluster,
            "group": finding.group,
            "epoch": finding.epoch,
            "generation": finding.generation,
            "members": list(finding.members),
            "resources": list(finding.resources),
            **({"case": plain(finding.case)} if finding.case is not None else {}),
            **({"replay": finding.replay} if finding.replay is not None else {}),
        },
    }


def _step(step: Argument) -> Json:
    shown = _location(step.evidence) if step.evidence is not None else {}
    return {"location": {**shown, "message": {"text": clean(step.says)}}}


def _location(source: Source) -> Json:
    region: Json = {"region": {"startLine": source.line, "snippet": {"text": clean(source.text)}}} if source.line else {}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(source.file)}, **region}}


def _case_file(finding: Finding) -> Json:
    """The case file that the replay command names: code scanning refuses a result without a file."""
    try:
        words = shlex.split(finding.replay or "")
    except ValueError:
        return {}
    files = [word for option, word in pairwise(words) if option == "--cases"]
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(files[0])}, "region": {"startLine": 1}}} if files else {}


def _suppression(waived: Waived) -> Json:
    return {"suppressions": [{"kind": "external", "status": "accepted", "justification": f"{waived.reason} (until {waived.expires})"}]}


def _of_inputs(inputs: Iterable[Input]) -> list[Json]:
    told: list[Json] = []
    for entry in inputs:
        if entry.problem is not None:
            told.append(_notification("error", f"{entry.path}: {entry.problem}", Source(entry.path)))
        told.extend(
            _notification("warning", f"{place(at_line)}: malformed: {at.why}", at_line)
            for at in entry.malformed_at
            for at_line in (Source(entry.path, at.line),)
        )
    return told


def _notification(level: str, text: str, source: Source | None = None) -> Json:
    located = {"locations": [_location(source)]} if source is not None else {}
    return {"level": level, "message": {"text": clean(text)}, **located}


def _uri(path: str) -> str:
    path = path.encode("utf-8", "replace").decode("utf-8")
    if _URL.match(path):
        return quote(path, safe="/:?#[]@!$&'()*+,;=%~")
    return ("file://" if path.startswith("/") else "") + quote(path, safe="/~!")
