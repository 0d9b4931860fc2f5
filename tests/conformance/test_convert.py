"""`kipcheck convert`: the same events in another form, and words for what can't be converted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kipcheck.conformance import convert as converting
from kipcheck.conformance.cli import cli
from kipcheck.conformance.convert import convert
from kipcheck.conformance.readers.files import read
from kipcheck.conformance.validate import events_of
from kipcheck.spec import check
from kipcheck.spec.events import Assigned, Event
from kipcheck.spec.trace import decode

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "traces" / "rules"
RECORDED = ROOT / "traces" / "kafka-4.3.1" / "static-absent-in-rebalance"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(convert, [*map(str, arguments)], catch_exceptions=False)


def events(path: Path) -> list[Event]:
    return [event for reading in read([str(path)]) for event in reading.events]


@pytest.mark.parametrize("rule", ["exclusive-ownership", "zombie-commit-rejected", "lost-work-withheld", "delay-counts-down"])
def test_a_trace_is_the_same_as_itf_and_back(rule: str, tmp_path: Path) -> None:
    told = events_of([str(EXAMPLES / f"{rule}.violates.jsonl")])
    file = tmp_path / "trace.itf.json"
    result = run(EXAMPLES / f"{rule}.violates.jsonl", "--to", "itf", "-o", file)
    assert (result.exit_code, result.output) == (0, "")
    found = events(file)
    assert sorted(map(repr, found)) == sorted(map(repr, told))
    assert [group.findings for group in check(found)] == [group.findings for group in check(told)]


def test_a_recorded_cluster_keeps_its_findings_in_every_form(tmp_path: Path) -> None:
    told = events_of([str(RECORDED)])
    (group,) = check(told)
    assert group.findings
    for form in ("trace", "itf"):
        file = tmp_path / form
        assert run(RECORDED, "--to", form, "-o", file).exit_code == 0
        (same,) = check(events(file))
        assert (same.findings, same.events) == (group.findings, group.events)


def test_a_trace_on_standard_output_is_what_was_read() -> None:
    path = EXAMPLES / "exclusive-ownership.violates.jsonl"
    result = run(path, "--to", "trace")
    assert result.exit_code == 0
    assert [decode(json.loads(line)) for line in result.stdout.splitlines()] == events(path)


def test_states_are_in_one_order_whatever_the_order_of_the_logs(tmp_path: Path) -> None:
    lines = (EXAMPLES / "revoke-before-reassign.conforms.jsonl").read_text().splitlines()
    file = tmp_path / "trace.jsonl"
    file.write_text("\n".join(lines[::-1]) + "\n")
    states = json.loads(run(file, "--to", "itf").stdout)["states"]
    times = [state["event"]["ts"] for state in states]
    assert times == sorted(times)
    assert [state["generation"] for state in states] == sorted(state["generation"] for state in states)


def test_a_picture() -> None:
    result = run(EXAMPLES / "exclusive-ownership.violates.jsonl", "--to", "mermaid")
    assert result.exit_code == 0
    assert result.stdout.startswith("sequenceDiagram\n    participant co as coordinator\n    participant m0 as c1\n")
    assert "    Note over m1: c2 takes orders-1\n" in result.stdout


class TestGroups:
    @pytest.fixture
    def both(self, tmp_path: Path) -> Path:
        file = tmp_path / "two.jsonl"
        rules = ("exclusive-assignment", "exclusive-ownership")
        file.write_text("".join((EXAMPLES / f"{rule}.violates.jsonl").read_text() for rule in rules))
        return file

    def test_a_trace_takes_all_or_one(self, both: Path) -> None:
        def groups(*arguments: str) -> set[str]:
            return {json.loads(line)["group"] for line in run(both, "--to", "trace", *arguments).stdout.splitlines()}

        assert groups() == {"exclusive-assignment-violates", "exclusive-ownership-violates"}
        assert groups("--group", "exclusive-ownership-violates") == {"exclusive-ownership-violates"}

    @pytest.mark.parametrize("form", ["itf", "mermaid"])
    def test_a_story_is_one_groups(self, both: Path, form: str) -> None:
        unnamed = run(both, "--to", form)
        names = "exclusive-assignment-violates, exclusive-ownership-violates"
        assert (unnamed.exit_code, unnamed.stdout) == (2, "")
        assert unnamed.stderr == f"Error: {both}: several groups; name one of them with --group: {names}\n"
        assert run(both, "--to", form, "--group", "exclusive-ownership-violates").exit_code == 0
        unknown = run(both, "--to", form, "--group", "nobody")
        assert (unknown.exit_code, "no group 'nobody'; name one of them" in unknown.stderr) == (2, True)

    def test_clusters_tell_apart_groups_of_one_name(self, tmp_path: Path) -> None:
        file = tmp_path / "two.jsonl"
        line = {"kind": "assigned", "group": "g", "member": "a", "generation": 1, "resources": ["t-0"]}
        file.write_text("".join(json.dumps(line | {"cluster": cluster}) + "\n" for cluster in ("east", "west")))
        assert "name one of them with --group: east/g, west/g" in run(file, "--to", "itf", "--group", "g").stderr
        (state,) = json.loads(run(file, "--to", "itf", "--group", "west/g").stdout)["states"]
        assert state["event"]["cluster"] == "west"

    @pytest.mark.parametrize("form", ["trace", "itf", "mermaid"])
    def test_no_group_at_all(self, form: str, tmp_path: Path) -> None:
        file = tmp_path / "empty.log"
        file.write_text("nothing of interest\n")
        result = run(file, "--to", form, "--group", "g")
        assert (result.exit_code, result.stderr) == (2, f"Error: {file}: no group\n")


def test_lines_that_are_left_out_are_told(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text('{"kind":"load","group":"g"}\n{"kind":"lo\\u001bad","group":"g"}\n{}\n')
    result = run(file, "--to", "trace")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 1)
    assert result.stderr.startswith(f"{file}:2: kind: expected one of join, ")
    assert result.stderr.endswith("; left out: 2 lines of this file that can't be read\n")
    assert "\x1b" not in result.stderr


def test_what_is_no_text_in_a_log_is_replaced(tmp_path: Path) -> None:
    message = "[Consumer clientId=c, groupId=g\\ud800] Successfully joined group with generation Generation{generationId=1, memberId='c-1', protocol='range'}"
    file = tmp_path / "client.log"
    file.write_text(f'{{"level":"INFO","message":"{message}"}}\n')
    assert json.loads(run(file, "--to", "trace").stdout)["group"] == "g?"
    assert [state["event"]["group"] for state in json.loads(run(file, "--to", "itf").stdout)["states"]] == ["g?"]


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    missing = run(tmp_path / "nowhere", "--to", "trace")
    assert (missing.exit_code, missing.stderr) == (2, f"Error: {tmp_path}/nowhere: no such file or directory\n")
    nowhere = run(EXAMPLES / "exclusive-ownership.violates.jsonl", "--to", "itf", "-o", tmp_path / "no" / "file")
    assert (nowhere.exit_code, nowhere.stderr) == (2, f"Error: can't write {tmp_path}/no/file: No such file or directory\n")
    assert run(EXAMPLES / "exclusive-ownership.violates.jsonl").exit_code == 2
    assert run(EXAMPLES / "exclusive-ownership.violates.jsonl", "--to", "csv").exit_code == 2


def test_what_would_be_too_large_to_read_again_is_not_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = [Assigned(group="g", member="a", resources=("t-0",))] * 3
    size = len(converting.itf_text(told))
    monkeypatch.setattr(converting, "MAX_FILE", size)
    assert len(converting.itf_text(told)) == size
    file = tmp_path / "t.itf.json"
    monkeypatch.setattr(converting, "MAX_FILE", size - 1)
    path = EXAMPLES / "exclusive-ownership.violates.jsonl"
    result = run(path, "--to", "itf", "-o", file)
    assert (result.exit_code, file.exists()) == (2, False)
    assert "as ITF the trace has more than" in result.stderr


@pytest.mark.parametrize(("variant", "status"), [("good", 0), ("bad", 1)])
def test_a_run_of_quint_is_judged(variant: str, status: int) -> None:
    file = Path(__file__).parent / "data" / f"handover.{variant}.itf.json"
    assert CliRunner().invoke(cli, ["validate", str(file)], catch_exceptions=False).exit_code == status
