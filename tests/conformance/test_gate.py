"""The gate as a whole: who conforms, which rule catches which defect, what it leaves behind, how it ends."""

from __future__ import annotations

import json
import re
import sys
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kipcheck.conformance.cli import cli
from kipcheck.conformance.failed import Failed
from kipcheck.conformance.gate import Feed, How, gate
from kipcheck.conformance.gate.cases import load
from kipcheck.conformance.gate.inputs.random import sample
from kipcheck.conformance.gate.optimum import minimum
from kipcheck.conformance.gate.shrink import shrink, size
from kipcheck.conformance.gate.wire import line
from kipcheck.conformance.waivers import Waiver
from kipcheck.model.assignors import MUTATIONS
from kipcheck.spec.assignors import Case, Member
from kipcheck.spec.assignors.codec import decode, encode
from kipcheck.spec.assignors.judge import given, stickiness
from kipcheck.spec.results import Settings, Verdict

QUICK = Feed(examples=300, histories=1)
BUILT_IN = ("range", "roundrobin", "sticky", "cooperative-sticky")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["gate", *arguments], catch_exceptions=False)


def rules(spec: str, feed: Feed = QUICK) -> set[str]:
    return {finding.rule for finding in gate(spec, feed=feed).findings}


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_conforms_without_a_word(name: str) -> None:
    report = gate(f"builtin:{name}", feed=QUICK)
    assert (report.verdict, report.findings) == (Verdict.CONFORMS, ())


def test_one_leader_at_a_time_keeps_promises_that_kafkas_do_not() -> None:
    assert {"assigns-only-subscribed", "cooperative-withholds", "assignor-answers"} <= rules("builtin:cooperative-sticky!as-kafka")
    assert {"assigns-only-subscribed", "assignor-answers"} <= rules("builtin:sticky!as-kafka")


CAUGHT = {
    "cooperative-sticky!assignor-skips-adjust": "cooperative-withholds",
    "cooperative-sticky!trusts-every-claim": "assigns-exclusively",
    "cooperative-sticky!only-highest-generation-counts": "cooperative-withholds",
    "cooperative-sticky!loser-becomes-owner": "assigns-exclusively",
    "cooperative-sticky!rack-mismatch-not-withheld": "cooperative-withholds",
    "cooperative-sticky!rack-filling-ignores-quota": "assignor-answers",
    "cooperative-sticky!remembers-highest-generation": "history-independent",
    "cooperative-sticky!first-of-highest-generation-dropped": "cooperative-withholds",
    "cooperative-sticky!assignor-forgets-what-it-withheld": "assigns-completely",
    "cooperative-sticky!assignor-keeps-moving": "converges-in-rounds",
    "cooperative-sticky!assignor-ignores-claims": "sticky",
    "sticky!comparison-consumes-user-data": "idempotent",
    "sticky!trusts-every-prior-assignment": "assigns-exclusively",
}
UNCAUGHT = {
    "validates-built-in-assignor": "the leader throws, not its assignor: tests/kafka drives the real leader's check",
    "keeps-claims-as-sent": "loads stay balanced, only the spread of each topic suffers: no promise",
    "co-partitions-of-unequal-counts": "which index goes with which is the application's concern: no promise",
}


@pytest.mark.parametrize("seeded", CAUGHT)
def test_a_seeded_defect_is_caught_by_its_rule(seeded: str) -> None:
    assert CAUGHT[seeded] in rules(f"builtin:{seeded}", Feed(histories=0))


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_another_algorithm_under_a_documented_name_is_caught(name: str) -> None:
    other = next(each for each in ("roundrobin", "range") if each != name)
    report = gate(f"builtin:{other}", feed=QUICK, how=How(kind=name))  # type: ignore[arg-type]
    assert "follows-algorithm" in {finding.rule for finding in report.findings}


def test_every_defect_of_an_assignor_is_caught_or_says_why_not() -> None:
    assert {each.partition("!")[2] for each in CAUGHT} | UNCAUGHT.keys() == {mutation.name for mutation in MUTATIONS}


def test_the_same_arguments_give_the_same_report() -> None:
    one, two = (gate("builtin:cooperative-sticky!trusts-every-claim", feed=QUICK) for _ in range(2))
    assert one == two


def test_another_seed_finds_the_same_defect_under_the_same_fingerprint() -> None:
    def marks(seed: int) -> set[str]:
        report = gate("builtin:cooperative-sticky!assignor-skips-adjust", feed=Feed(examples=300, histories=0, seed=seed))
        return {finding.fingerprint for finding in report.findings if finding.rule == "cooperative-withholds"}

    assert marks(1) & marks(2)


def test_a_waiver_lets_a_finding_pass_until_its_day() -> None:
    spec, feed = "builtin:range", Feed(examples=100, histories=0)
    how = How(kind="roundrobin")
    marks = {finding.fingerprint for finding in gate(spec, feed=feed, how=how).findings if finding.severity == "error"}
    waivers = [Waiver(fingerprint=mark, reason="known", expires=date(2026, 12, 31)) for mark in marks]
    assert gate(spec, feed=feed, how=how, waivers=waivers, today=date(2026, 12, 31)).verdict is Verdict.CONFORMS
    assert gate(spec, feed=feed, how=how, waivers=waivers, today=date(2027, 1, 1)).verdict is Verdict.VIOLATES


def test_severities_and_skipped_rules_are_the_users() -> None:
    spec, feed = "builtin:cooperative-sticky!assignor-ignores-claims", Feed(examples=50, histories=0)
    strict = gate(spec, feed=feed, settings=Settings(severity={"sticky": "error"}))
    assert strict.verdict is Verdict.VIOLATES
    skipping = gate(spec, feed=feed, settings=Settings(skip=frozenset({"sticky", "idempotent"})))
    assert "sticky" not in {finding.rule for finding in skipping.findings}
    assert all("sticky" not in group.rules for group in skipping.groups)


def test_a_baseline_is_compared_on_the_same_inputs() -> None:
    report = gate(
        "builtin:cooperative-sticky!assignor-ignores-claims", baseline="builtin:cooperative-sticky", feed=Feed(examples=100, histories=2)
    )
    assert report.comparison is not None
    rows = {row.what.partition(",")[0]: row for row in report.comparison.rows}
    assert rows["sticky violated"].regression
    assert rows["sticky violated"].baseline == 0
    assert rows["moved beyond the minimum"].regression
    assert not rows["largest minus smallest load when settled"].regression


def test_a_baseline_stays_what_it_is_whatever_the_subject_is_held_to() -> None:
    report = gate("builtin:range", baseline="builtin:cooperative-sticky", feed=Feed(examples=50, histories=0), how=How(kind="cooperative"))
    assert report.comparison is not None
    violated = [row for row in report.comparison.rows if row.what.startswith("cooperative-withholds violated")]
    assert [(row.baseline, row.regression) for row in violated] == [(0, True)]


def test_a_budget_ends_it_early_and_says_so() -> None:
    report = gate("builtin:cooperative-sticky", feed=Feed(budget=0.0))
    assert any("the budget of 0 s ended" in note for note in report.notes)
    assert report.verdict is Verdict.UNDETERMINED


def test_it_stops_after_a_few_hangs(tmp_path: Path) -> None:
    script = tmp_path / "once.py"
    script.write_text(
        "import json, sys, time\ncase = json.loads(input())\n"
        "print(json.dumps({'id': case['id'], 'assignment': {}}), flush=True)\ntime.sleep(60)\n"
    )
    report = gate(f"exec:{sys.executable} {script}", feed=Feed(examples=0, histories=0), how=How(timeout=0.3))
    assert report.verdict is Verdict.VIOLATES
    assert any("are enough" in note for note in report.notes)
    assert "no answer" in next(finding.message for finding in report.findings if finding.rule == "assignor-answers")


CASE = {"id": "one", "topics": {"t": 2}, "members": [{"id": "a", "subscribed": ["t"]}, {"id": "b", "subscribed": ["t"]}]}


def case_file(folder: Path, *cases: object) -> str:
    path = folder / "cases.json"
    path.write_text(json.dumps(cases))
    return str(path)


def fixed(folder: Path, assignment: object) -> str:
    """An adapter that gives every case the same answer."""
    script = folder / "adapter.py"
    script.write_text(
        "import json, sys\nfor line in sys.stdin:\n"
        f"    print(json.dumps({{'id': json.loads(line)['id'], 'assignment': {assignment!r}}}), flush=True)\n"
    )
    return f"exec:{sys.executable} {script}"


@pytest.mark.parametrize(
    ("assignment", "expect", "status"),
    [
        ({"a": ["t-0"], "b": ["t-1"]}, None, 0),
        ({"a": ["t-0"], "b": ["t-1"]}, {"conforms": True}, 0),
        ({"a": ["t-0"], "b": ["t-1"]}, {"assignment": {"a": ["t-0"], "b": ["t-1"]}}, 0),
        ({"a": ["t-0"], "b": ["t-1"]}, {"assignment": {"a": ["t-1"], "b": ["t-0"]}}, 1),
        ({"a": ["t-0"], "b": ["t-1"]}, {"violates": ["assigns-completely"]}, 1),
        ({"a": ["t-0"]}, None, 1),
        ({"a": ["t-0"]}, {"conforms": True}, 1),
        ({"a": ["t-0"]}, {"violates": ["assigns-completely"]}, 0),
        ({"a": ["t-0", "t-1"], "b": ["t-1"]}, {"violates": ["assigns-exclusively"]}, 0),
        ({"a": ["t-0", "t-1"], "b": ["t-1"]}, {"violates": ["assigns-completely"]}, 1),
        ({"a": ["u-0"]}, {"violates": ["assigns-only-subscribed"]}, 1),
        ({"a": "t-0"}, {"violates": ["assignor-answers"]}, 0),
    ],
)
def test_a_case_says_what_it_expects(assignment: object, expect: object, status: int, tmp_path: Path) -> None:
    cases = case_file(tmp_path, CASE | ({"expect": expect} if expect else {}))
    result = run("--assignor", fixed(tmp_path, assignment), "--cases", cases)
    assert result.exit_code == status, result.output


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[", "line 1"),
        ("[]", "holds no case"),
        ("[3]", "case 1: case: expected a JSON object, found '3'"),
        ('[{"id": "x", "members": []}]', "case 1: topics: expected a JSON object, found nothing"),
        ('[{"id": "x", "topics": {"t": -1}, "members": []}]', "topics.t: expected a partition count"),
        ('[{"id": "x", "topics": {}, "members": [{"id": "a"}]}]', "members[0].subscribed: expected a list"),
        ('[{"id": "x", "topics": {}, "members": [{"id": "a", "subscribed": [], "owned": ["t"]}]}]', "a topic partition such as orders-0"),
        (
            '[{"id": "x", "topics": {}, "members": [{"id": "a", "subscribed": []}, {"id": "a", "subscribed": []}]}]',
            "the id 'a' is there twice",
        ),
        ('[{"id": "x", "topics": {}, "members": [], "expect": {"conforms": false}}]', "expect: write"),
        ('[{"id": "x", "topics": {}, "members": []}, {"id": "x", "topics": {}, "members": []}]', "case 2: the id 'x'"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_bad_case_file_is_told_with_its_place_and_mending(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text(text)
    result = run("--assignor", "builtin:range", "--cases", str(path))
    assert result.exit_code == 2
    assert complaint in result.output
    assert "cases.json" in result.output


def test_a_failing_gate_leaves_case_files_that_fail_again_and_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = "builtin:cooperative-sticky!assignor-skips-adjust"
    failed = run("--assignor", spec, "--examples", "50", "--histories", "0", "--report", "json=report.json")
    assert failed.exit_code == 1
    report = json.loads(Path("report.json").read_text())
    for finding in report["findings"]:
        assert "--cases kipcheck-gate/" in finding["replay"]
        path = re.findall(r"kipcheck-gate/\S+", finding["replay"])[0]
        assert load(path)[0]
        assert run("--assignor", spec, "--cases", path).exit_code == 1
        assert run("--assignor", "builtin:cooperative-sticky", "--cases", path).exit_code == 0
    assert list(Path("kipcheck-gate").glob("test_*.py"))


def test_on_github_findings_are_annotations_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = run("--assignor", "builtin:range", "--as", "roundrobin", "--examples", "0", "--histories", "0")
    assert "::error title=" in result.output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--assignor", "builtin:rnge"), "did you mean range?"),
        (("--assignor", "builtin:sticky!nonsense"), "there is no defect"),
        (("--assignor", "nonsense"), "expected python:MODULE:CLASS"),
        (("--assignor", "builtin:range", "--rules", "nonsense"), "there is no rule 'nonsense'"),
        (("--assignor", "builtin:range", "--cases", "/nowhere.json"), "can't be read"),
        (("--assignor", "builtin:range", "--inputs", "/nowhere"), "/nowhere"),
        (("--assignor", "builtin:range", "--budget", "soon"), "is not a duration"),
        (("--assignor", "builtin:range", "--baseline", "builtin:x"), "there is no built-in"),
    ],
)
def test_usage_errors_name_the_fix(arguments: tuple[str, ...], complaint: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert complaint in result.output


def test_inputs_of_real_traces_are_fed() -> None:
    traces = Path(__file__).parents[2] / "traces" / "kafka-4.3.1"
    report = gate("builtin:cooperative-sticky", feed=Feed(inputs=(str(traces),), examples=0, histories=0))
    (trace,) = [group for group in report.groups if group.group == "trace"]
    assert trace.events > 50
    assert report.verdict is Verdict.CONFORMS
    assert any(entry.events for entry in report.inputs)


def test_cases_survive_their_codec() -> None:
    for case in sample("cooperative-sticky", 300, 3):
        again, expect = decode(json.loads(json.dumps(encode(case))))
        assert (again, expect) == (case, None)


def test_shrinking_ends_at_the_smallest_input_that_fails() -> None:
    large = Case(
        id="large",
        topics={"orders": 7, "users": 3},
        members=tuple(
            Member(id=f"consumer-{n}", subscribed=("orders", "users"), owned=(f"orders-{n}",), generation=40 + n) for n in range(6)
        ),
    )
    smallest = shrink(large, lambda cases: [sum(bool(member.owned) for member in case.members) >= 2 for case in cases], most=4000)
    assert size(smallest)[:4] == (0, 2, 2, 1)
    assert [member.id for member in smallest.members] == ["c0", "c1"]
    assert [member.generation for member in smallest.members] == [-1, -1] or all(m.generation in (1, 2) for m in smallest.members)


def test_the_flow_agrees_with_the_closed_form() -> None:
    agreed = 0
    for case in sample("sticky", 400, 5):
        known = stickiness(given(case, {}), "sticky")
        if known is not None and (least := minimum(case)) is not None and len({frozenset(m.subscribed) for m in case.members}) == 1:
            assert least == known[1]
            agreed += 1
    assert agreed > 50


def test_a_subject_that_can_not_start_is_told() -> None:
    with pytest.raises(Failed, match="nonexistent"):
        gate("exec:nonexistent-command-of-nobody", feed=QUICK)


def test_what_is_written_and_sent_follows_the_schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schemas = Path(__file__).parents[2] / "spec" / "schemas"
    case, report = (json.loads((schemas / f"{name}.schema.json").read_text()) for name in ("case", "report"))
    for each in sample("cooperative-sticky", 200, 1):
        jsonschema.validate(encode(each), case)
        jsonschema.validate(json.loads(line(each, fresh=True, metadata=True)), case)
    monkeypatch.chdir(tmp_path)
    run("--assignor", "builtin:cooperative-sticky!assignor-skips-adjust", "--examples", "50", "--histories", "1", "--report", "json=r.json")
    written = json.loads(Path("r.json").read_text())
    jsonschema.validate(written, report)
    for finding in written["findings"]:
        if "case" in finding:
            jsonschema.validate(finding["case"], case)
