"""What every report format says, on one made-up report and on hostile input.

Snapshots are the plain files in ``snapshots/`` and are compared exactly. To write them anew after an intended change, run

    KIPCHECK_UPDATE_SNAPSHOTS=1 pytest tests/conformance/test_reports.py

and read the difference before you keep it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from rich.console import Console

from kipcheck.conformance.report import Input, MalformedLine, Report, Waived
from kipcheck.conformance.reports import RENDERERS, show
from kipcheck.conformance.reports.prose import clean, cost, count, listed, some
from kipcheck.conformance.reports.summary import digest, ledger
from kipcheck.spec.events import Source
from kipcheck.spec.results import Argument, Finding, GroupResult, RuleResult, Severity, Status, Verdict
from kipcheck.spec.rule import Rule

HERE = Path(__file__).parent
SCHEMAS = HERE.parents[1] / "spec" / "schemas"
SUFFIX = {"json": "json", "junit": "xml", "sarif": "sarif", "markdown": "md", "html": "html", "github": "github.txt"}


def rule(rule_id: str, promise: str, **fields: Any) -> Rule:
    given: dict[str, Any] = {
        "kip": "KIP-429",
        "clause": "Consumer, rebalance callbacks",
        "source": "ConsumerCoordinator",
        "needs": ("synced",),
        "unknown_when": "a member's log is missing",
    }
    return Rule(id=rule_id, promise=promise, **(given | fields))


RULES: Mapping[str, Rule] = {
    r.id: r
    for r in (
        rule(
            "revoke-before-reassign",
            "A partition goes to its next owner only in a generation after the one in which its last owner gave it up.",
            exceptions=("the last owner was fenced or expired",),
        ),
        rule("exclusive-assignment", "No partition is assigned to two members in one generation.", source="AbstractStickyAssignor"),
        rule("retained-partitions-not-revoked", "A member keeps working on the partitions that it keeps.", severity="warning"),
        rule("static-slot-held", "Nobody else gets a static member's partitions before its session expires.", kip="KIP-345"),
        rule("rebalance-storm", "A group settles after a change.", kip="cost", severity="info"),
    )
}

OLD_OWNER = Source(
    "broker.log", 118, "[2024-03-05 02:14:07,113] INFO Assignment of group orders generation 6: c1=[orders-0, orders-3], c2=[orders-1]"
)
NEW_OWNER = Source(
    "broker.log", 131, "[2024-03-05 02:14:10,902] INFO Assignment of group orders generation 7: c1=[orders-0], c2=[orders-1, orders-3]"
)
STORM = Source("logs/broker.log", 140)


def finding(rule_id: str, fingerprint: str, **fields: Any) -> Finding:
    given: dict[str, Any] = {
        "severity": "error",
        "cluster": "default",
        "group": "orders",
        "epoch": 0,
        "generation": 7,
        "members": ("c1-7c0d2f0e-6f4e-4a55-9a0c-0f7a5b7f2c11", "c2-b1b7cf4c-9a5c-4c59-8f36-15a3d7c9f0aa"),
        "resources": ("orders-3",),
        "message": "orders-3 was given to c2 in generation 7 while c1 had not given it up.",
        "argument": (
            Argument("c1 was assigned orders-3 in generation 6", OLD_OWNER),
            Argument("c1 revoked nothing between the two generations"),
            Argument("c2 was assigned orders-3 in generation 7", NEW_OWNER),
        ),
    }
    return Finding(rule=rule_id, fingerprint=fingerprint, **(given | fields))


BROKEN = finding(
    "revoke-before-reassign",
    "0a1b2c3d4e5f",
    advice="Give every member the same partition.assignment.strategy, cooperative-sticky alone, and restart them one by one.",
    relaxed="KAFKA-0000: clients before 9.9.9 compute this assignment after a failed join",
)
TWICE = finding(
    "exclusive-assignment",
    "1a1b2c3d4e5f",
    epoch=2,
    generation=9,
    message="orders-3 was assigned to c1 and to c2 in generation 9.",
    argument=(Argument("the leader's assignment names orders-3 twice", NEW_OWNER),),
)
KEPT = finding(
    "retained-partitions-not-revoked",
    "2a1b2c3d4e5f",
    severity="warning",
    message="c1 revoked orders-0 in generation 7 and took it again.",
    resources=("orders-0",),
    argument=(),
)
STORMY = finding(
    "rebalance-storm",
    "3a1b2c3d4e5f",
    severity="info",
    generation=None,
    members=(),
    resources=(),
    message="The group rebalanced 12 times within 60 s.",
    argument=(Argument("the first of them", STORM),),
)

ORDERS = GroupResult(
    cluster="default",
    group="orders",
    protocol="cooperative-sticky",
    verdict=Verdict.VIOLATES,
    rules={
        "revoke-before-reassign": RuleResult(Status.VIOLATED, 14),
        "exclusive-assignment": RuleResult(Status.VIOLATED, 14),
        "retained-partitions-not-revoked": RuleResult(Status.VIOLATED, 9, "the log of c3 is missing"),
        "static-slot-held": RuleResult(Status.UNKNOWN, 0, "no member is static"),
        "rebalance-storm": RuleResult(Status.VIOLATED, 1),
    },
    metrics={
        "generations": 14,
        "rebalances": 13,
        "probing_rebalances": 0,
        "reasons": {"member failed": 9, "new member": 3, "metadata changed": 1},
        "partition_seconds_unowned": 81.5,
        "partitions_moved": 34,
        "partitions_moved_minimum": 10,
        "rounds_to_converge_max": 3,
        "stop_the_world_share": 0.25,
        "storms": 1,
        "zombie_windows": 2,
        "zombie_seconds_longest": 310.2,
        "members_seen": 5,
        "members_max": 3,
        "rebalances_per_minute_peak": 6,
        "delay_ms_max": None,
        "colour_of_the_sky": "grey",
    },
    findings=(BROKEN, TWICE, KEPT, STORMY),
    advice=("Raise max.poll.interval.ms: nine of the rebalances came from members that were late to poll.",),
    events=412,
)
PAYMENTS = GroupResult(
    cluster="eu-west",
    group="payments",
    protocol="range",
    verdict=Verdict.CONFORMS,
    rules={"exclusive-assignment": RuleResult(Status.PASS, 5), "static-slot-held": RuleResult(Status.PASS, 2)},
    metrics={"members_max": 2, "generations": 5, "rebalances": 4, "storms": 0},
    findings=(),
    events=77,
)
AUDIT = GroupResult(
    cluster="default",
    group="audit",
    protocol=None,
    verdict=Verdict.UNDETERMINED,
    rules={
        "exclusive-assignment": RuleResult(Status.UNKNOWN, 0, "no assignment was captured"),
        "revoke-before-reassign": RuleResult(Status.UNKNOWN, 0, "no assignment was captured"),
    },
    metrics={},
    findings=(),
    events=3,
)
INPUTS = (
    Input(path="broker.log", format="broker", lines=900, events=489, irrelevant=411),
    Input(
        path="c1.log",
        format="java-client",
        lines=40,
        events=3,
        irrelevant=35,
        malformed=2,
        malformed_at=(MalformedLine(12, "the assignment does not close its bracket"), MalformedLine(31, "no generation")),
    ),
    Input(path="c2.log.gz", format="unknown", problem="the gzip stream ends early: copy the file again"),
)
REPORT = Report(
    command="validate",
    version="1.0.0",
    verdict=Verdict.VIOLATES,
    inputs=INPUTS,
    groups=(PAYMENTS, AUDIT, ORDERS),
    waived=(Waived(KEPT, "known until the upgrade", "2026-12-31"),),
    notes=("engine: local", "waiver ffffffffffff matches no finding"),
)

EVIL = "<script>alert('x')</script> [red]|`](http://e.example) \x1b[31m\x00\u202e\ud800 @team #1 *b* _i_ \"q\" \\ ]]> {{7*7}}\nnew line"
HOSTILE = Report(
    command="validate",
    version="1.0.0",
    verdict=Verdict.VIOLATES,
    inputs=(
        Input(path=EVIL, format=EVIL, lines=1, malformed=1, malformed_at=(MalformedLine(1, EVIL),)),
        Input(path="/var/log/a b.log", format="broker", problem=EVIL),
    ),
    groups=(
        GroupResult(
            cluster=EVIL,
            group=EVIL,
            protocol=EVIL,
            verdict=Verdict.VIOLATES,
            rules={EVIL: RuleResult(Status.VIOLATED, 1, EVIL), "exclusive-assignment": RuleResult(Status.UNKNOWN, 0, EVIL)},
            metrics={"reasons": {EVIL: 2}, "rebalances": 2, EVIL: EVIL, "share": float("nan"), "seen": frozenset({EVIL})},
            findings=(
                finding(
                    EVIL,
                    "4a1b2c3d4e5f",
                    cluster=EVIL,
                    group=EVIL,
                    members=(EVIL,),
                    resources=(EVIL,),
                    message=EVIL,
                    argument=(Argument(EVIL, Source(EVIL, 3, EVIL)), Argument(EVIL, Source("s3a://bucket/x y.log", 0, "```\n" + EVIL))),
                    relaxed=EVIL,
                    advice=EVIL,
                ),
            ),
            advice=(EVIL,),
        ),
    ),
    waived=(Waived(finding("exclusive-assignment", "5a1b2c3d4e5f", cluster=EVIL, group=EVIL, message=EVIL), EVIL, EVIL),),
    notes=(EVIL,),
)
NOTHING = Report(command="validate", version="1.0.0", verdict=Verdict.UNDETERMINED, inputs=(), groups=())


def many(number: int, severity: Severity = "error") -> Report:
    """One group that broke one rule in ``number`` generations."""
    findings = tuple(finding("exclusive-assignment", f"{n:012x}", generation=n, severity=severity) for n in range(number))
    return replace(REPORT, groups=(replace(ORDERS, findings=findings),), waived=(), inputs=(), notes=())


def printed(report: Report, rules: Mapping[str, Rule] = RULES, *, width: int = 80) -> str:
    out = StringIO()
    show(report, rules, Console(file=out, width=width, legacy_windows=False))
    return "\n".join(text.rstrip() for text in out.getvalue().splitlines()) + "\n"


def compare(name: str, text: str) -> None:
    path = HERE / "snapshots" / name
    if os.environ.get("KIPCHECK_UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


class Page(HTMLParser):
    """Collects what a test asks about a page: its tags, ids, links, and whether every tag is closed in order."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        assert not any(key.startswith("on") or key in ("src", "style") for key in values)
        self.ids += [value for key, value in attrs if key == "id" and value is not None]
        self.links += [value for key, value in attrs if key == "href" and value is not None]
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize(("name", "report"), [("incident", REPORT), ("hostile", HOSTILE), ("nothing", NOTHING)])
def test_snapshot(form: str, name: str, report: Report) -> None:
    compare(f"{name}.{SUFFIX[form]}", RENDERERS[form](report, RULES))


@pytest.mark.parametrize(("name", "report"), [("incident", REPORT), ("hostile", HOSTILE), ("nothing", NOTHING), ("many", many(50))])
def test_terminal_snapshot(name: str, report: Report) -> None:
    text = printed(report)
    assert all(len(text) <= 80 for text in text.splitlines())
    compare(f"{name}.txt", text)


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize("report", [REPORT, HOSTILE, NOTHING])
def test_a_report_can_be_written_whatever_it_holds_and_needs_no_catalogue(form: str, report: Report) -> None:
    text = RENDERERS[form](report, {})
    assert text.encode("utf-8")
    assert text.endswith("\n")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    assert printed(report, {}).encode("utf-8")


# --- JSON


def faults(name: str, told: Any) -> list[str]:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    validator: Any = Draft202012Validator(schema)
    return [fault.message for fault in validator.iter_errors(told)]


@pytest.mark.parametrize("report", [REPORT, HOSTILE, NOTHING, many(3)])
def test_json_meets_its_schema(report: Report) -> None:
    assert faults("report", json.loads(RENDERERS["json"](report, RULES))) == []


def test_json_has_the_keys_of_the_contract_in_its_order() -> None:
    told = json.loads(RENDERERS["json"](REPORT, RULES))
    assert list(told)[:7] == ["schema", "command", "version", "verdict", "inputs", "groups", "findings"]
    assert list(told["inputs"][0])[:7] == ["path", "format", "lines", "events", "irrelevant", "malformed", "malformed_at"]
    assert list(told["groups"][0])[:6] == ["cluster", "group", "protocol", "verdict", "rules", "metrics"]
    contract = "fingerprint rule severity cluster group epoch generation members resources message evidence"
    assert list(told["findings"][0])[:11] == contract.split()
    assert [f["fingerprint"] for f in told["findings"]] == [f.fingerprint for f in REPORT.findings]
    assert [f["fingerprint"] for f in told["waived"]] == [KEPT.fingerprint]


def test_json_argument_points_into_the_evidence() -> None:
    told = next(f for f in json.loads(RENDERERS["json"](REPORT, RULES))["findings"] if f["rule"] == BROKEN.rule)
    assert [step["evidence"] for step in told["argument"]] == [0, None, 1]
    assert told["evidence"][1] == {"file": NEW_OWNER.file, "line": NEW_OWNER.line, "text": NEW_OWNER.text}


def test_json_keeps_hostile_strings_as_they_were() -> None:
    told = json.loads(RENDERERS["json"](HOSTILE, RULES))
    assert told["findings"][0]["members"] == [EVIL]
    assert told["groups"][0]["metrics"]["share"] is None


def test_json_metrics_may_be_read_only_mappings() -> None:
    group = replace(PAYMENTS, metrics=MappingProxyType({"reasons": MappingProxyType({"new member": 1}), "path": Path("a")}))
    told = json.loads(RENDERERS["json"](replace(REPORT, groups=(group,)), RULES))
    assert told["groups"][0]["metrics"] == {"reasons": {"new member": 1}, "path": "a"}


CASE: dict[str, Any] = {
    "id": "one",
    "topics": {"t": 3},
    "racks": {"t-0": ["ra", "rb"]},
    "members": [{"id": "c0", "instance": None, "subscribed": ["t"], "owned": ["t-0"], "generation": 4, "rack": None}],
}


GOOD: list[Any] = [
    CASE,
    [CASE, {**CASE, "id": "two"}],
    {"id": "least", "topics": {}, "members": [{"id": "c0", "subscribed": []}]},
    {**CASE, "expect": {"violates": ["assigns-completely"]}},
    {**CASE, "expect": {"conforms": True}},
    {**CASE, "expect": {"assignment": {"c0": ["t-0", "t-1", "t-2"]}}},
]


@pytest.mark.parametrize("case", GOOD)
def test_case_schema_takes(case: object) -> None:
    assert faults("case", case) == []


@pytest.mark.parametrize(
    "case",
    [
        {"id": "no members", "topics": {}},
        [{**CASE, "topics": {"t": -1}}],
        {**CASE, "members": [{"id": "c0"}]},
        {**CASE, "members": [{"id": "c0", "subscribed": ["t"], "owned": ["t"]}]},
        {**CASE, "expect": {"conforms": False}},
        {**CASE, "expect": {"conforms": True, "violates": ["sticky"]}},
        "a string",
    ],
)
def test_case_schema_refuses(case: object) -> None:
    assert faults("case", case)


# --- JUnit


def test_junit_has_a_suite_per_group_and_a_case_per_rule() -> None:
    root = ElementTree.fromstring(RENDERERS["junit"](REPORT, RULES))
    suites = {suite.get("name", ""): suite for suite in root}
    assert list(suites) == ["eu-west/payments", "audit", "orders", "inputs"]
    orders = suites["orders"]
    assert {key: orders.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "2",
        "errors": "0",
        "skipped": "1",
    }
    outcomes = {case.get("name"): [child.tag for child in case] for case in orders}
    assert outcomes == {
        "revoke-before-reassign": ["failure"],
        "exclusive-assignment": ["failure"],
        "retained-partitions-not-revoked": ["system-out"],
        "static-slot-held": ["skipped"],
        "rebalance-storm": ["system-out"],
    }
    assert [case.find("skipped").get("message") for case in suites["audit"]] == ["no assignment was captured"] * 2  # type: ignore[union-attr]
    assert [[child.tag for child in case] for case in suites["inputs"]] == [[], ["system-out"], ["error"]]
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("12", "2", "1")


def test_junit_failure_tells_the_argument() -> None:
    root = ElementTree.fromstring(RENDERERS["junit"](REPORT, RULES))
    failure = root.find(".//testcase[@name='revoke-before-reassign']/failure")
    assert failure is not None
    assert failure.get("message") == BROKEN.message
    assert failure.text is not None
    assert f"3. {BROKEN.argument[2].says}\n   broker.log:131: {NEW_OWNER.text}" in failure.text


# --- SARIF


def test_sarif_results() -> None:
    run = json.loads(RENDERERS["sarif"](REPORT, RULES))["runs"][0]
    rules, results = run["tool"]["driver"]["rules"], run["results"]
    assert [entry["id"] for entry in rules] == list(RULES)
    assert all(entry["help"]["text"] and entry["shortDescription"]["text"] for entry in rules)
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in results)
    assert [result["level"] for result in results] == ["error", "error", "note", "warning"]
    assert [len(result.get("suppressions", [])) for result in results] == [0, 0, 0, 1]
    broken = next(result for result in results if result["ruleId"] == BROKEN.rule)
    assert broken["partialFingerprints"] == {"kipcheck/v1": BROKEN.fingerprint}
    place = broken["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("broker.log", 131)
    assert len(broken["codeFlows"][0]["threadFlows"][0]["locations"]) == 3
    assert run["invocations"][0]["executionSuccessful"] is False


def test_sarif_addresses_are_uris() -> None:
    run = json.loads(RENDERERS["sarif"](HOSTILE, RULES))["runs"][0]
    text = json.dumps(run)
    addresses: list[str] = re.findall(r'"uri": "([^"]*)"', text)
    assert {"file:///var/log/a%20b.log", "s3a://bucket/x%20y.log"} <= set(addresses)
    assert all(re.fullmatch(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+", address) for address in addresses)


# --- Markdown


def test_markdown_is_short_however_much_there_is_to_say() -> None:
    crowd = replace(
        many(5000),
        groups=tuple(replace(ORDERS, group=f"g{n}", findings=(replace(BROKEN, group=f"g{n}"),)) for n in range(1000)),
        inputs=tuple(replace(INPUTS[1], path=f"{n}.log") for n in range(1000)),
    )
    assert len(RENDERERS["markdown"](crowd, RULES)) < 40_000


def test_markdown_table_rows_have_as_many_cells_as_the_heading() -> None:
    for report in (REPORT, HOSTILE):
        rows = [text for text in RENDERERS["markdown"](report, RULES).splitlines() if text.startswith("| ")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {7}


def test_markdown_neither_renders_nor_links_what_came_from_the_input() -> None:
    text = RENDERERS["markdown"](HOSTILE, RULES)
    outside_code = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    outside_code = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", outside_code)
    assert "<script" not in outside_code
    assert "@team" not in outside_code
    assert "http://" not in outside_code
    assert not re.search(r"(?<!\\)\*b\*", outside_code)


def test_markdown_fence_outruns_the_backticks_that_it_holds() -> None:
    shown = replace(BROKEN, argument=(Argument("it shows", Source("a.log", 1, "````` </details>")),))
    text = RENDERERS["markdown"](replace(REPORT, groups=(replace(ORDERS, findings=(shown,)),)), RULES)
    assert "\n``````text\na.log:1: ````` </details>\n``````\n" in text


# --- HTML


def test_html_is_self_contained_and_well_formed() -> None:
    for report in (REPORT, HOSTILE, NOTHING, many(1000)):
        text = RENDERERS["html"](report, RULES)
        page = Page(text)
        assert len(set(page.ids)) == len(page.ids)
        assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
        assert not {"script", "link", "img", "iframe", "base", "object"} & set(page.tags)
        assert not re.search(r"url\(|@import|javascript:", text.replace("javascript:", "", text.count("[red]")))


def test_html_anchors_are_fingerprints() -> None:
    page = Page(RENDERERS["html"](REPORT, RULES))
    assert {f.fingerprint for f in ORDERS.findings} <= set(page.ids)
    twice = replace(REPORT, groups=(replace(ORDERS, findings=(BROKEN, BROKEN)),), waived=())
    assert {BROKEN.fingerprint, f"{BROKEN.fingerprint}-2"} <= set(Page(RENDERERS["html"](twice, RULES)).ids)


def test_html_shows_hostile_names_as_text() -> None:
    assert "<script>alert('x')</script> [red]|`](http://e.example)" in Page(RENDERERS["html"](HOSTILE, RULES)).text
    assert "{{7*7}}" in Page(RENDERERS["html"](HOSTILE, RULES)).text


def test_html_stays_small_enough_to_open() -> None:
    assert len(RENDERERS["html"](many(20_000), RULES)) < 3_000_000


# --- terminal


def test_terminal_tells_what_broke_before_all_else_and_the_verdict_last() -> None:
    text = printed(REPORT)
    order = (
        "ERROR",
        "what",
        "promise",
        "where",
        "why",
        "do",
        "verdict",
        "cost of orders",
        "not checked",
        "read 3 files",
        "waived until",
        "VIOLATES:",
    )
    places = [text.index(word) if word != "VIOLATES:" else text.rindex(word) for word in order]
    assert places == sorted(places)
    assert "broker.log:131" in text
    assert "c1.log:12: the assignment does not close its bracket" in text
    assert "unreadable: c2.log.gz" in text


def test_terminal_colours_only_a_terminal() -> None:
    assert "\x1b" not in printed(REPORT)
    out = StringIO()
    show(REPORT, RULES, Console(file=out, width=80, force_terminal=True, color_system="standard"))
    assert "\x1b[1;31m" in out.getvalue()


def test_terminal_prints_markup_as_text() -> None:
    assert "[red]|`]" in printed(HOSTILE)


def test_terminal_names_the_rest_of_many_findings() -> None:
    text = printed(many(50))
    assert text.count("ERROR") == 2
    assert "… 48 more of exclusive-assignment in orders: generations 2, 3, 4" in text


def test_terminal_shows_no_more_than_twenty() -> None:
    groups = tuple(replace(ORDERS, group=f"g{n}", findings=(replace(BROKEN, group=f"g{n}"),)) for n in range(60))
    text = printed(replace(REPORT, groups=groups, waived=()))
    assert text.count("ERROR") == 20
    assert "… 40 more findings in the report" in text
    assert "… 20 more groups: 20 VIOLATES" in text


def test_terminal_cuts_a_long_path_at_its_left_so_that_the_line_number_stays_whole() -> None:
    far = replace(BROKEN, argument=(Argument("it shows", Source("/var/log/" + "kafka/" * 30 + "server.log", 1781)),))
    text = printed(replace(REPORT, groups=(replace(ORDERS, findings=(far,)),)))
    assert re.search(r"^ +….*kafka/server\.log:1781$", text, re.MULTILINE)


def test_the_verdict_says_how_much_of_the_catalogue_it_rests_on() -> None:
    assert "5 of 5 rules could be checked)" in " ".join(printed(REPORT).split())
    assert "0 of 2 rules could be checked)" in " ".join(printed(replace(NOTHING, groups=(AUDIT,))).split())


@pytest.mark.parametrize("width", [20, 40, 200])
def test_terminal_fits_any_width(width: int) -> None:
    assert all(len(text) <= width for text in printed(many(3), width=width).splitlines())


# --- the facts and words that they share


def test_ledger_sums_the_inputs() -> None:
    total = ledger(REPORT)
    assert (total.inputs, total.unreadable, total.lines, total.events, total.irrelevant, total.malformed) == (3, 1, 940, 492, 446, 2)


def test_rule_counts_and_blind_spots() -> None:
    counts = {entry.rule: (entry.passed, entry.violated, entry.unknown, entry.checked) for entry in REPORT.totals.rules}
    assert counts["exclusive-assignment"] == (1, 1, 1, 19)
    assert counts["static-slot-held"] == (1, 0, 1, 2)
    spots = REPORT.totals.blind_spots
    assert [(spot.why, len(spot.rules), spot.groups) for spot in spots] == [
        ("no assignment was captured", 2, 1),
        ("no member is static", 1, 1),
    ]


@settings(derandomize=True, max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=30), st.integers(1, 4), st.integers(1, 8))
def test_digest_accounts_for_every_finding(rules: list[str], each: int, total: int) -> None:
    batches, left_out = digest([finding(r, f"{n:012x}") for n, r in enumerate(rules)], each=each, total=total)
    assert sum(len(b.shown) + len(b.more) for b in batches) + left_out == len(rules)
    assert sum(len(b.shown) for b in batches) <= total
    assert all(len(b.shown) <= each for b in batches)


def test_cost_in_words() -> None:
    assert cost(ORDERS.metrics)[3] == "13 rebalances (9x member failed, 3x new member, 1x metadata changed)"
    assert "34 partitions moved where 10 would have done" in cost(ORDERS.metrics)
    assert "such a belief lasted up to 5 min 10 s" in cost(ORDERS.metrics)
    assert "colour of the sky: grey" in cost(ORDERS.metrics)
    assert cost({"storms": 0, "rebalances": 0}) == ("0 rebalances",)
    assert cost({"rebalances": 1, "storms": 1, "partitions_moved": 1}) == ("1 rebalance", "1 rebalance storm", "1 partition moved")
    assert cost({"reasons": {"a": 1}}) == ("reasons: 1x a",)
    assert cost({"flags": {"k": True}, "seen": (1, 2), "no": [], "gone": None, "storms": None}) == ("flags: yesx k", "seen: 1, 2")
    assert cost({"delay_ms_max": 300_000, "stop_the_world_share": 1.0}) == (
        "of the partitions that members were to keep, all were given up in between",
        "work withheld for up to 5 min 0 s",
    )


NAMES = [*ORDERS.metrics, "other"]
VALUES = st.none() | st.integers() | st.floats() | st.text(max_size=9) | st.lists(st.integers(), max_size=3)


@settings(derandomize=True, max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8))
def test_cost_takes_any_metric(metrics: Mapping[str, object]) -> None:
    assert all(isinstance(phrase, str) for phrase in cost(metrics))
    RENDERERS["json"](replace(REPORT, groups=(replace(PAYMENTS, metrics=metrics),)), RULES)


@settings(derandomize=True, max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF), max_size=80))
def test_any_string_gives_readable_xml_json_and_html(text: str) -> None:
    told = replace(BROKEN, message=text, members=(text,), group=text, argument=(Argument(text, Source(text, 1, text)),))
    report = replace(REPORT, groups=(replace(ORDERS, group=text, protocol=text, findings=(told,)),), waived=())
    ElementTree.fromstring(RENDERERS["junit"](report, RULES))
    json.loads(RENDERERS["sarif"](report, RULES))
    Page(RENDERERS["html"](report, RULES))
    RENDERERS["markdown"](report, RULES).encode("utf-8")
    assert all(ord(c) >= 32 for c in printed(report).replace("\n", ""))


def test_words() -> None:
    assert (count(1, "file"), count(12_000, "file")) == ("1 file", "12,000 files")
    assert (listed([]), listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])) == ("", "a", "a and b", "a, b and c")
    assert some(["a", "b", "c"], 2) == "a, b … and 1 more"
    assert clean("a\x1bb\tc\nd\u202ee") == "a\ufffdb\tc\nd\ufffde"
