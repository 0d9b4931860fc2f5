"""Waiver files: what they may hold, and what they do to a report."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from kipcheck.conformance.report import Report
from kipcheck.conformance.waivers import Waiver, WaiverError, apply, load
from kipcheck.spec.results import Finding, GroupResult, RuleResult, Severity, Status, Verdict

TODAY = date(2026, 6, 1)


def finding(fingerprint: str, rule_id: str = "exclusive-assignment", severity: Severity = "error", group: str = "orders") -> Finding:
    return Finding(
        fingerprint=fingerprint,
        rule=rule_id,
        severity=severity,
        cluster="default",
        group=group,
        epoch=0,
        generation=3,
        members=(),
        resources=(),
        message="",
        argument=(),
    )


def group(*findings: Finding, verdict: Verdict = Verdict.VIOLATES, name: str = "orders", **rules: RuleResult) -> GroupResult:
    results = {rule_id.replace("_", "-"): result for rule_id, result in rules.items()}
    results |= {f.rule: RuleResult(Status.VIOLATED, 1) for f in findings}
    return GroupResult(cluster="default", group=name, protocol=None, verdict=verdict, rules=results, metrics={}, findings=findings)


def report(*groups: GroupResult, verdict: Verdict = Verdict.VIOLATES) -> Report:
    return Report(command="validate", version="1", verdict=verdict, inputs=(), groups=groups)


def waiver(fingerprint: str, expires: date = date(2026, 12, 31), by: str | None = None) -> Waiver:
    return Waiver(fingerprint=fingerprint, reason="known", expires=expires, by=by)


A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"


def written(folder: Path, text: str) -> Path:
    path = folder / "waivers.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_load(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        f'[[waiver]]\nfingerprint = "{A}"\nreason = "known"\nexpires = 2026-12-31\n\n'
        f'[[waiver]]\nfingerprint = "{B}"\nreason = "known"\nexpires = 2027-01-01\nby = "Ann"\n',
    )
    assert load(path) == (waiver(A), waiver(B, date(2027, 1, 1), "Ann"))


def test_an_empty_file_waives_nothing(tmp_path: Path) -> None:
    assert load(written(tmp_path, "")) == ()


GOOD = {"fingerprint": f'"{A}"', "reason": '"known"', "expires": "2026-12-31"}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"fingerprint": None}, "fingerprint is missing: copy the 12 hex digits"),
        ({"fingerprint": '"XYZ"'}, "fingerprint is 'XYZ': copy"),
        ({"fingerprint": f'"{A}\\n"'}, "fingerprint is"),
        ({"fingerprint": "12"}, "fingerprint is '12': copy"),
        ({"reason": None}, "reason is missing: say in quotes why"),
        ({"reason": '"  "'}, "reason is '  ': say"),
        ({"expires": None}, "expires is missing: give the last day as a date"),
        ({"expires": '"2026-12-31"'}, "expires is '2026-12-31': give the last day as a date without quotes"),
        ({"expires": "2026-12-31T00:00:00Z"}, "expires is '2026-12-31 00:00:00+00:00': give"),
        ({"by": "7"}, "by is '7': name who answers for it"),
        ({"expiry": "2026-12-31"}, "unknown field 'expiry': the fields are"),
    ],
)
def test_a_bad_field_is_named_with_its_fix(tmp_path: Path, change: dict[str, str | None], fault: str) -> None:
    fields = "\n".join(f"{key} = {value}" for key, value in (GOOD | change).items() if value is not None)
    path = written(tmp_path, f"[[waiver]]\n{fields}\n")
    with pytest.raises(WaiverError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: waiver 1: {fault}")
    assert len(str(error.value).splitlines()) == 1


def test_every_fault_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    entry = f'[[waiver]]\nfingerprint = "{A}"\nreason = "known"\nexpires = 2026-12-31\n'
    with pytest.raises(WaiverError) as error:
        load(written(tmp_path, f"other = 1\n{entry}{entry}[[waiver]]\nexpires = 2026-12-31\n"))
    told = [text.partition(": ")[2] for text in str(error.value).splitlines()]
    assert told == [
        "unknown key 'other': every waiver stands under its own [[waiver]]",
        f"waiver 2: fingerprint '{A}' is waiver 1's already: keep one of them",
        "waiver 3: fingerprint is missing: copy the 12 hex digits (0-9, a-f) from the report, in quotes",
        "waiver 3: reason is missing: say in quotes why this finding may stand",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[[waiver", "is no TOML file"),
        ("a = " + "[" * 100_000, "is no TOML file"),
        ("[waiver]\nreason = 'x'\n", "'waiver' is no list of tables: write [[waiver]] with two brackets"),
        ("waiver = [1]\n", "waiver 1: is no table"),
    ],
)
def test_a_file_that_holds_no_waivers_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(WaiverError, match=r"waivers\.toml: ") as error:
        load(written(tmp_path, text))
    assert fault in str(error.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WaiverError, match="can't be read"):
        load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(WaiverError, match="is no TOML file"):
        load(tmp_path / "latin.toml")


def test_a_group_whose_errors_are_all_waived_conforms() -> None:
    before = report(group(finding(A), finding(B, severity="warning")))
    after = apply(before, [waiver(A, by="Ann")], TODAY)
    assert [f.fingerprint for f in after.findings] == [B]
    assert [(w.finding.fingerprint, w.reason, w.expires) for w in after.waived] == [(A, "known (by Ann)", "2026-12-31")]
    assert (after.groups[0].verdict, after.verdict, after.notes) == (Verdict.CONFORMS, Verdict.CONFORMS, ())
    assert after.groups[0].findings == before.groups[0].findings


def test_one_open_error_is_enough_to_violate() -> None:
    after = apply(report(group(finding(A), finding(B))), [waiver(A)], TODAY)
    assert (after.groups[0].verdict, after.verdict) == (Verdict.VIOLATES, Verdict.VIOLATES)


def test_a_group_in_which_only_cost_was_checked_is_undetermined() -> None:
    unknown = RuleResult(Status.UNKNOWN, 0, "not captured")
    after = apply(report(group(finding(A, "rebalance-storm"), exclusive_assignment=unknown)), [waiver(A)], TODAY)
    assert (after.groups[0].verdict, after.verdict) == (Verdict.UNDETERMINED, Verdict.UNDETERMINED)


def test_the_verdict_is_that_of_the_worst_group_left() -> None:
    held = group(verdict=Verdict.CONFORMS, name="payments")
    other = group(finding(B, group="audit"), name="audit")
    assert apply(report(group(finding(A)), held), [waiver(A)], TODAY).verdict is Verdict.CONFORMS
    assert apply(report(group(finding(A)), held, other), [waiver(A)], TODAY).verdict is Verdict.VIOLATES
    blind = group(verdict=Verdict.UNDETERMINED, name="audit")
    assert apply(report(group(finding(A)), blind), [waiver(A)], TODAY).verdict is Verdict.UNDETERMINED


def test_waiving_a_warning_leaves_the_verdict_alone() -> None:
    warned = group(finding(A, severity="warning"), verdict=Verdict.CONFORMS)
    after = apply(report(warned, verdict=Verdict.UNDETERMINED), [waiver(A)], TODAY)
    assert (len(after.waived), after.groups[0].verdict, after.verdict) == (1, Verdict.CONFORMS, Verdict.UNDETERMINED)


def test_a_waiver_holds_through_its_last_day() -> None:
    assert apply(report(group(finding(A))), [waiver(A, TODAY)], TODAY).verdict is Verdict.CONFORMS
    late = apply(report(group(finding(A))), [waiver(A, date(2026, 5, 31))], TODAY)
    assert (late.verdict, late.waived) == (Verdict.VIOLATES, ())
    assert late.notes == (f"waiver {A} expired on 2026-05-31 and no longer covers its finding: mend the cause or renew it",)


def test_an_unused_waiver_is_told() -> None:
    before = replace(report(group(finding(A))), notes=("engine: local",))
    after = apply(before, [waiver(B), waiver("cccccccccccc", date(2020, 1, 1))], TODAY)
    assert after.notes == (
        "engine: local",
        f"waiver {B} matches no finding: remove it once the cause is gone",
        "waiver cccccccccccc matches no finding: remove it once the cause is gone",
    )
    assert after.groups == before.groups
