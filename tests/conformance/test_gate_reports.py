"""How a gate's result is told, on a made-up report and on hostile names. Snapshots: see `test_reports`."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.report import Compared, Comparison, Report, Waived
from kipcheck.conformance.reports import RENDERERS, render_test
from kipcheck.conformance.reports.cases import as_json, laid_out, sheets, text
from kipcheck.conformance.reports.prose import outcome
from kipcheck.spec.assignors.case import Case, Member
from kipcheck.spec.assignors.catalogue import ASSIGNOR_RULES
from kipcheck.spec.assignors.codec import decode, encode
from kipcheck.spec.results import Argument, Finding, GroupResult, RuleResult, Status, Verdict

from .test_reports import EVIL, SUFFIX, Page, compare, faults, printed

SPEC = "python:shop.assignors:Fair"
CASE = Case(
    id="small-2-1",
    topics={"t": 1},
    members=(
        Member(id="c0", subscribed=("t",), owned=("t-0",), generation=5),
        Member(id="c1", subscribed=("t",), owned=("t-0",), generation=4),
    ),
    input_class="stale generation",
)
ANSWER = {"c0": [], "c1": ["t-0"]}


def finding(rule: str, fingerprint: str, **fields: Any) -> Finding:
    told: dict[str, Any] = {
        "severity": ASSIGNOR_RULES[rule].severity if rule in ASSIGNOR_RULES else "error",
        "cluster": SPEC,
        "group": "stale generation",
        "epoch": 0,
        "generation": None,
        "members": ("c1", "c0"),
        "resources": ("t-0",),
        "message": "t-0 given to c1 while c0 still owns it",
        "argument": (
            Argument("c0 claims t-0 of generation 5, c1 of generation 4: c0 owns it"),
            Argument("answered: c1 = t-0"),
            Argument("c1 starts with t-0 as soon as it has the assignment; nothing makes it wait until c0 stopped"),
        ),
        "case": encode(CASE) | {"answer": ANSWER},
        "replay": f"kipcheck gate --assignor {SPEC} --cases kipcheck-gate/cooperative-withholds-0a1b2c3d4e5f.json",
    }
    return Finding(rule=rule, fingerprint=fingerprint, **(told | fields))


WITHHOLDS = finding("cooperative-withholds", "0a1b2c3d4e5f", advice="leave it out of this assignment; the follow-up gives it away")
REUSED = Case(
    id="random-0-12",
    topics={"t": 2, "u": 1},
    members=(
        Member(id="c0", instance="i0", subscribed=("t",), rack="ra"),
        Member(id="c1", subscribed=("t", "u"), version=1, owned=("u-0",)),
        Member(id="c2", metadata=b"\x00\x03\xff"),
    ),
    racks={"t-0": ("ra", "rb"), "t-1": ()},
    before=(replace(CASE, input_class="clean"),),
    input_class="leader reused",
)
CRASHES = finding(
    "assignor-answers",
    "1a1b2c3d4e5f",
    group="leader reused",
    members=(),
    resources=(),
    message="the assignor fails: KeyError: 'u'",
    argument=(),
    case=encode(REUSED),
)
ELSEWHERE = replace(WITHHOLDS, fingerprint="2a1b2c3d4e5f", group="double claim")
LESS = finding(
    "sticky", "3a1b2c3d4e5f", group="clean", message="moved 2, minimum 1", case=encode(replace(CASE, input_class="clean")), argument=()
)


def group(name: str, inputs: int, *findings: Finding, **fields: Any) -> GroupResult:
    rules = {
        rule: RuleResult(Status.PASS, inputs) for rule in ("assignor-answers", "assigns-exclusively", "cooperative-withholds", "sticky")
    }
    rules["rack-aware"] = RuleResult(Status.UNKNOWN, 0, "no input has racks")
    rules |= {each.rule: RuleResult(Status.VIOLATED, inputs) for each in findings}
    broken = any(each.severity == "error" for each in findings)
    told: dict[str, Any] = {
        "cluster": SPEC,
        "group": name,
        "protocol": "cooperative",
        "verdict": Verdict.VIOLATES if broken else Verdict.CONFORMS,
        "rules": rules,
        "metrics": {"inputs": inputs, "moved": 14, "moved_minimum": 9, "rounds_max": 2},
        "findings": findings,
        "events": inputs,
    }
    return GroupResult(**(told | fields))


GATE = Report(
    command="gate",
    version="1.0.0",
    verdict=Verdict.VIOLATES,
    inputs=(),
    groups=(
        group("clean", 1312, LESS),
        group("stale generation", 312, WITHHOLDS),
        group("double claim", 300, ELSEWHERE),
        group("leader reused", 10, CRASHES),
    ),
    notes=("seed 0, 1,500 random inputs, 24 histories",),
    comparison=Comparison(
        SPEC,
        "builtin:cooperative-sticky",
        (
            Compared("violations", "inputs", 14, 0, True),
            Compared("partitions moved", "", 140, 90, True),
            Compared("time per input", "ms", 0.25, 0.5, False),
            Compared("verdict", "", "VIOLATES", "CONFORMS", True),
        ),
    ),
)
CONFORMS = replace(GATE, verdict=Verdict.CONFORMS, groups=(group("clean", 1312), group("double claim", 1)), comparison=None)
HOSTILE = replace(
    GATE,
    groups=(
        group(
            EVIL,
            7,
            finding(
                EVIL,
                "4a1b2c3d4e5f",
                cluster=EVIL,
                group=EVIL,
                members=(EVIL,),
                message=EVIL,
                argument=(Argument(EVIL),),
                advice=EVIL,
                replay=EVIL,
                case=encode(
                    Case(
                        id=EVIL,
                        topics={EVIL: 2},
                        members=(Member(id=EVIL, instance=EVIL, subscribed=(EVIL,), owned=(f"{EVIL}-0",), generation=3, rack=EVIL),),
                        racks={f"{EVIL}-1": (EVIL,)},
                    )
                )
                | {"answer": {EVIL: [EVIL], "::error::x": ["%0A,:"]}},
            ),
            cluster=EVIL,
            protocol=EVIL,
        ),
    ),
    notes=(EVIL,),
    comparison=Comparison(EVIL, EVIL, (Compared(EVIL, EVIL, EVIL, EVIL, True), Compared("x", "s", float("nan"), 1, False))),
)
SHOWN = {"gate": GATE, "gate_hostile": HOSTILE, "gate_conforms": CONFORMS}


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize("name", SHOWN)
def test_snapshot(form: str, name: str) -> None:
    compare(f"{name}.{SUFFIX[form]}", RENDERERS[form](SHOWN[name], ASSIGNOR_RULES))


@pytest.mark.parametrize("name", SHOWN)
def test_terminal_snapshot(name: str) -> None:
    shown = printed(SHOWN[name], ASSIGNOR_RULES)
    assert all(len(each) <= 80 for each in shown.splitlines())
    compare(f"{name}.txt", shown)


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize("name", SHOWN)
def test_a_gate_report_can_be_written_whatever_it_holds(form: str, name: str) -> None:
    shown = RENDERERS[form](SHOWN[name], {})
    assert shown.encode("utf-8")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", shown)
    assert printed(SHOWN[name], {}).encode("utf-8")


# --- in words


def test_the_outcome_counts_input_classes_and_inputs() -> None:
    assert outcome(GATE).startswith(
        "assignor-answers and cooperative-withholds are broken by 3 of 4 input classes (1,934 inputs; 1 warning;"
    )
    assert outcome(CONFORMS).startswith("every promise that the inputs could check was kept (2 input classes; 1,313 inputs;")
    one = replace(GATE, groups=(group("double claim", 1, WITHHOLDS),), comparison=None)
    assert outcome(one) == "cooperative-withholds is broken by 1 of 1 input class (1 input; 4 of 5 rules could be checked)"
    assert outcome(replace(GATE, verdict=Verdict.UNDETERMINED, groups=())) == "nothing was fed, so nothing was checked"


def test_given_cases_are_called_cases() -> None:
    given_cases = replace(GATE, groups=(group("one", 1), group("two", 1, replace(WITHHOLDS, group="two"))), comparison=None)
    assert outcome(given_cases) == "cooperative-withholds is broken by 1 of 2 cases (2 inputs; 4 of 5 rules could be checked)"
    assert re.search(r"where +case two\n", printed(given_cases))


def test_a_waived_finding_is_told_as_waived() -> None:
    waived = replace(GATE, waived=(Waived(WITHHOLDS, "known until the rewrite", "2026-12-31"), Waived(ELSEWHERE, "known", "2026-12-31")))
    assert outcome(waived).startswith("assignor-answers is broken by 1 of 4 input classes (1,934 inputs; 1 warning; 2 waived;")
    assert "waived until 2026-12-31: cooperative-withholds in stale generation (0a1b2c3d4e5f)" in " ".join(
        printed(waived, ASSIGNOR_RULES).split()
    )


def test_the_subject_is_named_once_and_input_classes_go_by_their_own_names() -> None:
    assert "input class leader reused" in printed(GATE)
    assert f"`{SPEC}`: assignor-answers and cooperative-withholds" in RENDERERS["markdown"](GATE, {})
    two = replace(GATE, groups=(*GATE.groups, group("clean", 1, cluster="builtin:range")))
    assert f"input class {SPEC}/leader reused" in " ".join(printed(two).split())


def test_one_case_per_rule_is_shown_on_the_terminal_and_in_the_pull_request() -> None:
    text = printed(GATE)
    assert text.count("ERROR") == 2
    assert "… also with stale generation" in text or "… also with double claim" in text
    markdown = RENDERERS["markdown"](GATE, {})
    assert markdown.count("### Error: `cooperative-withholds`") == 1
    assert "`cooperative-withholds` is also broken with `double claim`." in markdown


def test_the_comparison_marks_regressions_everywhere() -> None:
    assert re.search(r"partitions moved +140 +90 +regression", printed(GATE))
    assert re.search(r"time per input +0\.25 ms +0\.5 ms\n", printed(GATE))
    assert "| violations | 14 inputs | 0 inputs | **regression** |" in RENDERERS["markdown"](GATE, {})
    page = Page(RENDERERS["html"](GATE, {}))
    assert "comparison" in page.ids
    told = json.loads(RENDERERS["json"](GATE, {}))["comparison"]
    assert [row["regression"] for row in told["rows"]] == [True, True, False, True]
    run = json.loads(RENDERERS["sarif"](GATE, {}))["runs"][0]
    assert run["properties"]["comparison"] == told
    suite = ElementTree.fromstring(RENDERERS["junit"](GATE, {})).find("testsuite[@name='baseline']")
    assert suite is not None
    assert {each.get("name"): each.get("value") for each in suite.iter("property")}[
        "violations"
    ] == "14 inputs, baseline 0 inputs (regression)"


# --- the case


def test_the_case_as_a_table() -> None:
    (sheet,) = sheets(WITHHOLDS.case)
    assert sheet.title == "the smallest input found, with t (1 partition)"
    assert sheet.columns == ("member", "subscribes", "claims", "was given")
    assert sheet.rows == (("c0", "t", "t-0 (generation 5)", "nothing"), ("c1", "t", "t-0 (generation 4)", "t-0"))
    assert sheet.remarks == ()


def test_earlier_calls_come_first() -> None:
    before, last = sheets(CRASHES.case)
    assert before.title == "the same leader was asked before, with t (1 partition)"
    assert last.columns == ("member", "subscribes", "claims", "rack", "metadata")
    assert last.rows[0] == ("c0 (static: i0)", "t", "nothing", "ra", "version 3")
    assert last.rows[2][-1] == "3 bytes of its own"
    assert last.remarks == ("racks: t-0 in ra+rb, t-1 in none",)


def test_what_nobody_and_what_a_stranger_was_given_is_said() -> None:
    case = encode(Case(id="a", topics={"t": 11}, members=(Member(id="c0", subscribed=("t",)), Member(id="c1"))))
    (sheet,) = sheets(case | {"answer": {"c0": [f"t-{n}" for n in range(8)], "c9": ["t-8"]}})
    assert sheet.rows[0] == ("c0", "t", "t-0, t-1, t-2, t-3, t-4, t-5 … and 2 more")
    assert sheet.rows[1] == ("c1", "nothing", "no entry")
    assert sheet.remarks == ("c9, which is no member, was given t-8", "given to nobody: t-9, t-10")


def test_a_large_case_stays_small_on_paper() -> None:
    name = "x" * 500
    members = tuple(Member(id=f"{name}{n}", subscribed=(name,), owned=tuple(f"{name}-{p}" for p in range(200))) for n in range(50))
    large = encode(Case(id="large", topics={f"{name}{n}": 1 for n in range(300)}, members=members))
    assert sum(map(len, text(sheets(large)))) < 20_000
    assert as_json(large).startswith("too long to be shown here (")
    crowd = replace(GATE, groups=(group("clean", 1, *(replace(WITHHOLDS, rule=f"r{n}", case=large) for n in range(12))),))
    assert len(RENDERERS["markdown"](crowd, {})) < 60_000
    assert len(RENDERERS["github"](crowd, {})) < 60_000


@pytest.mark.parametrize("case", [None, {}, {"id": "a"}, {"id": "a", "topics": {}, "members": [{"id": 3}]}])
def test_what_is_no_case_is_no_table(case: Mapping[str, object] | None) -> None:
    assert sheets(case) == ()


@pytest.mark.parametrize("answer", [None, 3, [], {}, {"c0": 3}, {"c0": [3, None]}])
def test_any_answer_can_be_shown(answer: object) -> None:
    assert sheets(encode(CASE) | {"answer": answer})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(max_size=9), each, max_size=4),
    max_leaves=20,
)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(JSON)
def test_json_is_laid_out_as_json(value: object) -> None:
    assert json.loads(laid_out(value, json.dumps, last="")) == value


# --- machines


@pytest.mark.parametrize("report", SHOWN.values())
def test_json_meets_its_schema(report: Report) -> None:
    told = json.loads(RENDERERS["json"](report, ASSIGNOR_RULES))
    assert faults("report", told) == []


def test_json_carries_the_case_and_how_to_replay_it() -> None:
    told = next(f for f in json.loads(RENDERERS["json"](GATE, {}))["findings"] if f["fingerprint"] == WITHHOLDS.fingerprint)
    assert faults("case", told["case"]) == []
    assert decode(told["case"])[0] == CASE
    assert told["case"]["answer"] == ANSWER
    assert told["replay"] == WITHHOLDS.replay


def test_sarif_and_junit_carry_the_case_and_how_to_replay_it() -> None:
    run = json.loads(RENDERERS["sarif"](GATE, {}))["runs"][0]
    result = next(each for each in run["results"] if each["partialFingerprints"] == {"kipcheck/v1": WITHHOLDS.fingerprint})
    assert decode(result["properties"]["case"])[0] == CASE
    assert f"Replay: {WITHHOLDS.replay}" in result["message"]["text"]
    file = "kipcheck-gate/cooperative-withholds-0a1b2c3d4e5f.json"
    assert result["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": file}, "region": {"startLine": 1}}
    root = ElementTree.fromstring(RENDERERS["junit"](GATE, {}))
    failure = root.find(f"testsuite[@name='{SPEC}/stale generation']/testcase[@name='cooperative-withholds']/failure")
    assert failure is not None
    assert failure.text is not None
    assert "c1      t           t-0 (generation 4)  t-0" in failure.text
    assert f"replay: {WITHHOLDS.replay}" in failure.text


def test_html_is_well_formed_and_shows_hostile_names_as_text() -> None:
    for report in SHOWN.values():
        page = Page(RENDERERS["html"](report, ASSIGNOR_RULES))
        assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
        assert "script" not in page.tags
    assert "t-0 (generation 4)" in Page(RENDERERS["html"](GATE, {})).text


def test_markdown_rows_have_as_many_cells_as_their_heading() -> None:
    for report in SHOWN.values():
        rows = re.findall(r"(?:^\|.*\n)+", RENDERERS["markdown"](report, ASSIGNOR_RULES), re.MULTILINE)
        assert rows
        for table in rows:
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


# --- GitHub


def test_github_prints_nothing_but_commands() -> None:
    for report in SHOWN.values():
        told = RENDERERS["github"](report, {}).splitlines()
        assert all(re.match(r"::(error|warning|notice) title=[^:,]*::", each) for each in told)
    assert told[0] == "::notice title=kipcheck gate%3A CONFORMS::" + f"{SPEC}: {outcome(CONFORMS)}"


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_github_commands_take_any_text(name: str) -> None:
    told = replace(WITHHOLDS, group=name, message=name, advice=name)
    lines = RENDERERS["github"](replace(GATE, groups=(group(name, 1, told),)), {}).split("\n")
    assert len(lines) == 3
    title, message = re.fullmatch(r"::error title=([^:,\r\n]*)::([^\r\n]*)", lines[1]).groups()  # type: ignore[union-attr]
    assert not re.search(r"%(?!25|0A|0D|3A|2C)", title + message)


def test_github_gets_no_more_than_it_shows() -> None:
    errors = tuple(replace(WITHHOLDS, fingerprint=f"{n:012x}") for n in range(25))
    notes = tuple(replace(WITHHOLDS, fingerprint=f"{n:012x}", severity="info") for n in range(25, 40))
    told = RENDERERS["github"](replace(GATE, groups=(group("stale generation", 1, *errors, *notes),)), {}).splitlines()
    assert sum(each.startswith("::error ") for each in told) == 10
    assert sum(each.startswith("::notice ") for each in told) == 10
    assert "; 21 more findings in the full report" in told[0]


def test_github_gets_every_broken_rule_before_a_second_class_of_one() -> None:
    classes = tuple(
        group(f"class {n}", 1, replace(WITHHOLDS, group=f"class {n}", fingerprint=f"{n:012x}", case=encode(CASE) | {"class": f"class {n}"}))
        for n in range(12)
    )
    told = RENDERERS["github"](replace(GATE, groups=(*classes, group("leader reused", 1, CRASHES))), {}).splitlines()
    assert [each.split("::")[1] for each in told[1:3]] == [
        "error title=cooperative-withholds%3A class 0",
        "error title=assignor-answers%3A leader reused",
    ]


# --- the test that a user keeps


def run(source: str) -> None:
    """Calls the test of a rendered file."""
    names: dict[str, Any] = {}
    exec(compile(source, "test_rendered.py", "exec"), names)  # it is our own, and that names do no harm is tested below
    next(value for name, value in names.items() if name.startswith("test_"))()


def test_the_rendered_test_fails_while_the_defect_is_there_and_passes_when_it_is_gone() -> None:
    case = replace(CASE, topics={"t": 2}, members=(replace(CASE.members[0], owned=("t-0", "t-1")), replace(CASE.members[1], owned=())))
    broken = replace(WITHHOLDS, case=encode(case))
    with pytest.raises(AssertionError):
        run(render_test(broken, "builtin:cooperative-sticky!assignor-skips-adjust"))
    run(render_test(broken, "builtin:cooperative-sticky"))
    run(render_test(broken, "builtin:cooperative-sticky!assignor-skips-adjust", {"kind": "eager"}))


def test_a_finding_without_an_input_has_no_test() -> None:
    with pytest.raises(ValueError, match="no input"):
        render_test(replace(WITHHOLDS, case=None), SPEC)


def test_hostile_names_are_literals_in_the_rendered_test(tmp_path: Path) -> None:
    quotes = "a\"\"\"\nimport os\n'''\\"
    case = Case(
        id=EVIL,
        topics={quotes: 2, "x" * 300: 1, "\U0001f600\u00e9": 0},
        members=(Member(id=EVIL, instance=quotes, subscribed=(quotes,), owned=(f"{quotes}-0",), rack=EVIL, metadata=bytes(range(256))),),
        input_class="hostile metadata",
    )
    for rule in ("sticky", EVIL, "---"):
        source = render_test(replace(WITHHOLDS, rule=rule, message=f"{quotes} {EVIL}", case=encode(case)), quotes, {"classpath": (quotes,)})
        assert source.isascii()
        tree = ast.parse(source)
        told = {
            node.targets[0].id: ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        assert told == {"ASSIGNOR": quotes, "BROKEN": rule, "INPUT": encode(case)}
        assert [type(node).__name__ for node in tree.body] == [
            "Expr",
            "ImportFrom",
            "ImportFrom",
            "Assign",
            "Assign",
            "Assign",
            "FunctionDef",
        ]
        (tmp_path / "test_rendered.py").write_text(source, encoding="utf-8")
        checked = subprocess.run(
            [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", str(tmp_path)], capture_output=True, text=True, check=False
        )
        if "No module named ruff" in checked.stderr:
            pytest.skip("needs ruff")
        assert checked.returncode == 0, checked.stdout
