"""Every rule has a violating trace, found by exactly its rule, and a conforming near-miss under traces/rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kipcheck.spec import RULES, GroupResult, Status, Verdict, check
from kipcheck.spec.events import Event, Source
from kipcheck.spec.trace import decode

EXAMPLES = Path(__file__).parents[2] / "traces" / "rules"


def load(name: str) -> list[Event]:
    path = EXAMPLES / name
    return [decode(json.loads(line), Source(name, number, line)) for number, line in enumerate(path.read_text().splitlines(), 1)]


def only(events: list[Event]) -> GroupResult:
    (group,) = check(events)
    return group


def test_no_example_is_left_over() -> None:
    expected = {f"{rule}.{which}.jsonl" for rule in RULES for which in ("violates", "conforms")}
    assert {path.name for path in EXAMPLES.iterdir()} == expected


@pytest.mark.parametrize("rule", RULES)
def test_the_violating_trace_is_found_by_exactly_its_rule(rule: str) -> None:
    group = only(load(f"{rule}.violates.jsonl"))
    promises = {finding.rule for finding in group.findings if RULES[finding.rule].kip != "cost"}
    if RULES[rule].kip == "cost":
        assert promises == set()
        assert rule in {finding.rule for finding in group.findings}
        assert group.verdict is Verdict.CONFORMS
    else:
        assert promises == {rule}
        assert group.verdict is (Verdict.VIOLATES if RULES[rule].severity == "error" else Verdict.CONFORMS)
    assert group.rules[rule].status is Status.VIOLATED


@pytest.mark.parametrize("rule", RULES)
def test_the_near_miss_passes(rule: str) -> None:
    group = only(load(f"{rule}.conforms.jsonl"))
    assert [f for f in group.findings if f.severity != "info"] == []
    assert rule not in {finding.rule for finding in group.findings}
    assert group.rules[rule].status is Status.PASS
    assert group.rules[rule].checked >= 1


@pytest.mark.parametrize("rule", RULES)
def test_a_finding_argues_with_evidence(rule: str) -> None:
    finding = next(f for f in only(load(f"{rule}.violates.jsonl")).findings if f.rule == rule)
    assert len(finding.fingerprint) == 12
    assert int(finding.fingerprint, 16) >= 0
    assert finding.message
    assert finding.argument
    assert finding.evidence, "an argument rests on lines of the trace"
    assert all(source.line >= 1 and source.text for source in finding.evidence)


@pytest.mark.parametrize("rule", RULES)
def test_a_catalogue_entry_is_complete(rule: str) -> None:
    entry = RULES[rule]
    assert entry.id == rule
    assert entry.promise.endswith(".")
    assert entry.clause
    assert entry.source
    assert entry.needs
    assert entry.unknown_when
