"""Shrinking a captured trace: the same finding, by its fingerprint, in fewer events."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kipcheck.conformance.cli import cli
from kipcheck.conformance.failed import Failed
from kipcheck.conformance.reports.mermaid import MOST, diagram
from kipcheck.conformance.shrink import Shrunk, shrink
from kipcheck.spec import RULES, check
from kipcheck.spec.events import Assigned, Join
from kipcheck.spec.trace import decode, encode

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "traces" / "rules"
RECORDED = ROOT / "traces" / "kafka-4.3.1" / "static-absent-in-rebalance"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["shrink", *arguments], catch_exceptions=False)


def fingerprints(shrunk: Shrunk) -> set[str]:
    written = [decode(json.loads(json.dumps(encode(event)))) for event in shrunk.trace]
    return {finding.fingerprint for group in check(written) for finding in group.findings}


@pytest.mark.parametrize("rule", RULES)
def test_every_rules_example_shrinks_to_the_same_finding(rule: str) -> None:
    path = EXAMPLES / f"{rule}.violates.jsonl"
    found = shrink([str(path)], rule)
    assert len(found.trace) <= found.events
    assert found.finding.fingerprint in fingerprints(found)
    assert found.finding.rule == rule


def test_nothing_more_can_be_left_out(tmp_path: Path) -> None:
    found = shrink([str(EXAMPLES / "revoke-before-reassign.violates.jsonl")], "revoke-before-reassign")
    for number in range(len(found.trace)):
        rest = [event for place, event in enumerate(found.trace) if place != number]
        assert found.finding.fingerprint not in {finding.fingerprint for group in check(rest) for finding in group.findings}
    path = tmp_path / "again.jsonl"
    path.write_text("".join(json.dumps(encode(event)) + "\n" for event in found.trace))
    assert shrink([str(path)], "revoke-before-reassign").trace == found.trace


def test_a_recorded_trace_of_a_real_cluster_shrinks_to_a_few_events() -> None:
    found = shrink([str(RECORDED)], "static-slot-held")
    assert found.events > 300
    assert len(found.trace) < 10
    assert found.finding.fingerprint == "77d68a0d95b1"


def test_the_finding_is_found_among_others(tmp_path: Path) -> None:
    healthy = [line for path in sorted(EXAMPLES.glob("*.conforms.jsonl")) for line in path.read_text().splitlines()]
    wrong = (EXAMPLES / "exclusive-assignment.violates.jsonl").read_text().splitlines()
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join([*healthy, *wrong]) + "\n")
    alone = shrink([str(EXAMPLES / "exclusive-assignment.violates.jsonl")], "exclusive-assignment")
    found = shrink([str(path)], "exclusive-assignment", fingerprint=alone.finding.fingerprint)
    assert found.finding.fingerprint == alone.finding.fingerprint
    assert len(found.trace) == len(alone.trace)


def test_as_pytest_it_is_a_test_that_fails_while_the_finding_is_there(tmp_path: Path) -> None:
    path = tmp_path / "test_shrunk.py"
    result = run(str(EXAMPLES / "exclusive-assignment.violates.jsonl"), "--rule", "exclusive-assignment", "--as", "pytest", "-o", str(path))
    assert result.exit_code == 0
    failed = subprocess.run([sys.executable, "-m", "pytest", "-q", str(path)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert failed.returncode == 1
    assert "1 failed" in failed.stdout


def test_hostile_names_stay_literals(tmp_path: Path) -> None:
    line = (EXAMPLES / "exclusive-assignment.violates.jsonl").read_text()
    group = json.loads(line.splitlines()[0])["group"]
    hostile = '"""\\"; import os; \'\\u2028\\n'
    path = tmp_path / "hostile.jsonl"
    path.write_text("".join(json.dumps(json.loads(each) | {"group": hostile}) + "\n" for each in line.splitlines()))
    assert group != hostile
    test = tmp_path / "test_hostile.py"
    assert run(str(path), "--rule", "exclusive-assignment", "--as", "pytest", "-o", str(test)).exit_code == 0
    names: dict[str, object] = {}
    exec(compile(test.read_text(), str(test), "exec"), names)
    events = [decode(json.loads(each)) for each in str(names["TRACE"]).splitlines()]
    assert {event.group for event in events} == {hostile}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--rule", "nonsense"), "there is no rule 'nonsense'"),
        (("--rule", "exclusive-ownership"), "no finding of exclusive-ownership"),
        (("--rule", "exclusive-assignment", "--fingerprint", "0" * 12), "no finding 000000000000"),
    ],
)
def test_what_is_not_there_is_told(arguments: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    result = run(str(EXAMPLES / "exclusive-assignment.violates.jsonl"), *arguments, "-o", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert complaint in result.output
    assert not (tmp_path / "out").exists()


def test_an_unreadable_capture_is_told() -> None:
    with pytest.raises(Failed, match="nowhere"):
        shrink(["/nowhere"], "exclusive-assignment")


def test_as_mermaid_it_is_a_sequence_diagram(tmp_path: Path) -> None:
    path = tmp_path / "trace.mmd"
    result = run(str(EXAMPLES / "exclusive-ownership.violates.jsonl"), "--rule", "exclusive-ownership", "--as", "mermaid", "-o", str(path))
    assert result.exit_code == 0
    assert path.read_text().splitlines() == [
        "sequenceDiagram",
        "    participant co as coordinator",
        "    participant m0 as c1",
        "    participant m1 as c2",
        "    Note over co: generation 1",
        "    Note over m0: c1 takes orders-1",
        "    Note over co: generation 2",
        "    Note over m1: c2 takes orders-1",
    ]


def test_a_diagram_says_nothing_but_what_it_is_told() -> None:
    hostile = "x\nend\nparticipant y; #60;<script>"
    drawn = diagram([Join(group="g", member=hostile), *(Assigned(group="g", member="c1", resources=("t-0",)) for _ in range(MOST + 5))])
    assert len(drawn.splitlines()) == 4 + MOST + 1
    assert drawn.endswith("    Note over co: and 6 more steps\n")
    assert "<" not in drawn
    assert ";" not in re.sub(r"#\d+;", "", drawn)
    assert not re.search(r"\bend\b", drawn)
