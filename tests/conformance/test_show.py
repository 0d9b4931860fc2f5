"""`kipcheck show`: one page that needs nothing else, of captures or of a report."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kipcheck.conformance.cli import cli
from kipcheck.conformance.show import pictures

TRACES = Path(__file__).parents[2] / "traces"
LATE = TRACES / "kafka-4.3.1" / "static-late-claim"
EXAMPLE = TRACES / "rules" / "exclusive-ownership.violates.jsonl"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["show", *map(str, arguments)], catch_exceptions=False)


def shown(tmp_path: Path, *arguments: str | Path) -> str:
    told = run(*arguments, "-o", tmp_path / "page.html")
    assert told.exit_code == 0, told.output
    return (tmp_path / "page.html").read_text()


def unpacked(page: str, id: str) -> object:
    (packed,) = re.findall(rf'<script type="application/octet-stream" id="{id}">([^<]*)</script>', page)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    page = shown(tmp_path, LATE)
    assert len(page) < 200_000
    assert not re.findall(r"(?:src|href)=\"(?!#)", page)
    assert not re.findall(r"url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)", page)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page


def test_it_holds_every_step_with_its_words(tmp_path: Path) -> None:
    page = shown(tmp_path, LATE)
    doc, words = unpacked(page, "group-0"), unpacked(page, "group-0-0")
    assert isinstance(doc, dict)
    assert isinstance(words, list)
    assert len(doc["steps"]["id"]) == len(words) == len(set(doc["steps"]["id"]))
    assert ["instance-c1 gives up orders-0", [[words[32][1][0][0], words[32][1][0][1]]]] == words[32]
    assert words[32][1][0][0].endswith("client-c1.log.gz:52")
    assert doc["findings"][0]["anchor"] == "39ff3ff5caa2"


def test_the_same_captures_give_the_same_page(tmp_path: Path) -> None:
    assert shown(tmp_path, LATE) == shown(tmp_path, LATE)


def test_what_is_worst_comes_first_and_is_told(tmp_path: Path) -> None:
    told = run(TRACES / "kafka-4.3.1", "-o", tmp_path / "page.html")
    assert told.output.splitlines()[0].startswith(f"{tmp_path}/page.html: VIOLATES, 21 groups, ")
    assert told.output.splitlines()[1] == f"  {tmp_path}/page.html#39ff3ff5caa2  revoke-before-reassign"
    one = run(TRACES / "kafka-4.3.1", "--group", "orders-range-scale-4.3.1", "-o", tmp_path / "page.html")
    assert one.output.startswith(f"{tmp_path}/page.html: CONFORMS, 1 group, ")
    none = run(TRACES / "kafka-4.3.1", "--group", "others", "-o", tmp_path / "page.html")
    assert none.exit_code == 2
    assert "no group 'others'" in none.output


def test_a_report_is_shown_from_its_captures(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    CliRunner().invoke(cli, ["validate", str(LATE), "--report", f"json={report}"])
    ((from_report,), notes) = pictures([str(report)])
    ((from_captures,), _) = pictures([str(LATE)])
    assert [note.split(" ")[0] for note in notes] == ["drawn"]
    assert from_report.steps == from_captures.steps
    assert [cited.places for cited in from_report.findings] == [cited.places for cited in from_captures.findings]
    assert [cited.finding for cited in from_report.findings] == [cited.finding for cited in from_captures.findings]


def test_a_report_without_its_captures_still_explains(tmp_path: Path) -> None:
    trace, report = tmp_path / "trace.jsonl", tmp_path / "report.json"
    trace.write_text(EXAMPLE.read_text())
    CliRunner().invoke(cli, ["validate", str(trace), "--report", f"json={report}"])
    trace.unlink()
    page = shown(tmp_path, report)
    assert f"not here: {trace}; the findings are explained, the picture lacks their lines" in page
    assert "No two unfenced members" in page or "exclusive-ownership" in page


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda report: report["findings"][0].update(severity="bad"), "findings[0].severity can't be 'bad'"),
        (lambda report: report["findings"][0]["argument"][0].update(evidence=99), "findings[0].argument[0].evidence can't be 99"),
        (lambda report: report["groups"][0].update(verdict=7), "groups[0].verdict can't be 7"),
        (lambda report: report.update(groups={}), "groups can't be {}"),
        (lambda report: report["findings"][0].update(members=[1]), "findings[0].members can't be 1"),
    ],
)
def test_a_broken_report_is_named_with_the_field(change: object, problem: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    CliRunner().invoke(cli, ["validate", str(EXAMPLE), "--report", f"json={report}"])
    value = json.loads(report.read_text())
    assert callable(change)
    change(value)
    report.write_text(json.dumps(value))
    told = run(report, "-o", tmp_path / "page.html")
    assert told.exit_code == 2
    assert f"{report}: {problem} in a report; let kipcheck write it again" in told.output


def test_half_a_report_is_none(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    CliRunner().invoke(cli, ["validate", str(EXAMPLE), "--report", f"json={report}"])
    report.write_text(report.read_text()[:-100])
    told = run(report, "-o", tmp_path / "page.html")
    assert told.exit_code == 2
    assert f"{report}: not a whole report: " in told.output


def test_a_report_stands_alone(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    CliRunner().invoke(cli, ["validate", str(EXAMPLE), "--report", f"json={report}"])
    assert run(report, EXAMPLE, "-o", tmp_path / "page.html").exit_code == 2


def test_what_can_not_be_read_or_written_is_named(tmp_path: Path) -> None:
    missing = run(tmp_path / "nothing.jsonl", "-o", tmp_path / "page.html")
    assert (missing.exit_code, "nothing.jsonl: no such file" in missing.output) == (2, True)
    blocked = run(EXAMPLE, "-o", tmp_path / "nowhere" / "page.html")
    assert blocked.exit_code == 2
    assert "nowhere" in blocked.output
    empty = tmp_path / "empty.log"
    empty.write_text("nothing of interest\n")
    assert "nothing in them tells of a group" in run(empty, "-o", tmp_path / "page.html").output


def test_the_page_of_a_shrunk_trace_has_the_same_fingerprint(tmp_path: Path) -> None:
    small = tmp_path / "small.jsonl"
    shrunk = CliRunner().invoke(cli, ["shrink", str(LATE), "--rule", "revoke-before-reassign", "-o", str(small)], catch_exceptions=False)
    assert "(39ff3ff5caa2)" in shrunk.output
    doc = unpacked(shown(tmp_path, small), "group-0")
    assert isinstance(doc, dict)
    assert doc["findings"][0]["anchor"] == "39ff3ff5caa2"


def a_report(tmp_path: Path, **changes: object) -> Path:
    report = tmp_path / "report.json"
    CliRunner().invoke(cli, ["validate", str(EXAMPLE), "--report", f"json={report}"])
    value = json.loads(report.read_text())
    value["findings"][0].update({key: change for key, change in changes.items() if key != "inputs"})
    if "inputs" in changes:
        value["inputs"] = changes["inputs"]
    report.write_text(json.dumps(value))
    return report


def test_what_a_report_says_can_not_harm_the_terminal_or_the_page(tmp_path: Path) -> None:
    told = run(a_report(tmp_path, message="x\ud800", rule="\x1b]0;pwned\x07"), "-o", tmp_path / "page.html")
    assert told.exit_code == 0
    assert "\x1b" not in told.output
    assert "\x1b" not in (tmp_path / "page.html").read_text()
    assert run(a_report(tmp_path, fingerprint="../../x"), "-o", tmp_path / "page.html").exit_code == 2


def test_a_report_leads_to_files_only(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero", "http://127.0.0.1:9/x.jsonl"):
        told = run(a_report(tmp_path, inputs=[{"path": path}]), "-o", tmp_path / "page.html")
        assert told.exit_code == 0
        assert f"not here: {path}" in told.output


def test_lines_and_files_that_can_not_be_read_are_told(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text(EXAMPLE.read_text() + "{}\n" * 5)
    (tmp_path / "gone.log").symlink_to(tmp_path / "nowhere.log")
    told = run(trace, tmp_path / "gone.log", "-o", tmp_path / "page.html")
    assert told.exit_code == 0
    assert "left out: 5 lines of this file that can't be read" in told.output
    assert "not read: " in told.output
    assert "left out: 5 lines" in (tmp_path / "page.html").read_text()


def test_endless_names_are_cut(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    long = "x" * 1_000_000
    rows = [{"kind": "assigned", "group": long, "member": f"{long}{n}", "generation": 1, "resources": [f"{long}-{n}"]} for n in range(3)]
    trace.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert len(shown(tmp_path, trace)) < 200_000


def test_a_page_may_go_to_standard_output() -> None:
    assert "<!doctype html>" in run(EXAMPLE, "-o", "-").output
