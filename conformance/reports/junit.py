"""The report as JUnit XML, which every CI server shows: a suite per group, a test case per rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from xml.etree import ElementTree as Xml

from ...spec.results import Finding, GroupResult, RuleResult, Severity, Status
from ...spec.rule import Rule
from ..report import Comparison, Input, Report, Waived
from .cases import as_json, sheets, text
from .prose import SEVERITY, clean, line, measured, moment, name, place, rest
from .summary import Key, by_group


def render(report: Report, rules: Mapping[str, Rule]) -> str:
    """An XML document.

    Error findings fail a rule's test case, an unknown status skips it; warnings, notes and waived findings are its
    output. Inputs that could not be read are errors of a suite named ``inputs``. Of a sample, the totals are
    the properties of a suite named ``totals``; a comparison with a baseline is those of a suite named ``baseline``.
    """
    findings, counts = by_group(report.findings), report.counts
    waived = _waived(report)
    suites = [_suite(key, group, findings.get(key, ()), waived.get(key, ()), counts.get(key, {})) for key, group in _groups(report)]
    if any(entry.problem is not None or entry.malformed for entry in report.inputs):
        suites.append(_inputs(report.inputs))
    root = Xml.Element("testsuites", name=f"kipcheck {report.command}")
    for counted in ("tests", "failures", "errors"):
        root.set(counted, str(sum(int(suite.get(counted, "0")) for suite in suites)))
    if report.sample is not None:
        root.append(_properties("totals", _totals(report)))
    if report.comparison is not None:
        root.append(_properties("baseline", _compared(report.comparison)))
    root.extend(suites)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _properties(suite: str, told: Mapping[str, str]) -> Xml.Element:
    """What JUnit has for it: properties, which belong to a suite."""
    element = Xml.Element("testsuite", name=suite, tests="0", failures="0", errors="0", skipped="0")
    properties = Xml.SubElement(element, "properties")
    for key, value in told.items():
        Xml.SubElement(properties, "property", name=key, value=value)
    return element


def _totals(report: Report) -> Mapping[str, str]:
    told = {f"groups {verdict.value}": str(number) for verdict, number in report.totals.groups.items()}
    told |= {f"findings {severity}": str(number) for severity, number in report.totals.findings.items()}
    return told | {"sample": rest(report)}


def _compared(comparison: Comparison) -> Mapping[str, str]:
    told = {"subject": line(comparison.subject), "baseline": line(comparison.baseline)}
    for row in comparison.rows:
        mine, theirs = measured(row)
        told[line(row.what)] = f"{mine}, baseline {theirs}{' (regression)' if row.regression else ''}"
    return told


def _groups(report: Report) -> Iterator[tuple[Key, GroupResult | None]]:
    """The report's groups, and those of which it has findings alone (`Report.sample`)."""
    shown = {(group.cluster, group.group) for group in report.groups}
    yield from (((group.cluster, group.group), group) for group in report.groups)
    if report.sample is not None:
        yield from ((key, None) for key in by_group(report.findings) if key not in shown)


def _waived(report: Report) -> Mapping[Key, Sequence[Waived]]:
    known = {(f.cluster, f.group, f.fingerprint) for group in report.groups for f in group.findings}
    found: dict[Key, list[Waived]] = {}
    for entry in report.waived:
        finding = entry.finding
        if report.sample is not None or (finding.cluster, finding.group, finding.fingerprint) in known:
            found.setdefault((finding.cluster, finding.group), []).append(entry)
    return found


def _suite(
    key: Key,
    group: GroupResult | None,
    findings: Sequence[Finding],
    waived: Sequence[Waived],
    counts: Mapping[tuple[str, Severity], int],
) -> Xml.Element:
    suite = name(*key)
    rules: Mapping[str, RuleResult] = group.rules if group is not None else {}
    cases = [
        _case(
            suite,
            rule,
            rules.get(rule),
            [finding for finding in findings if finding.rule == rule],
            [w for w in waived if w.finding.rule == rule],
            counts.get((rule, "error"), 0),
        )
        for rule in dict.fromkeys((*rules, *(finding.rule for finding in findings)))
    ]
    return _counted(suite, cases)


def _case(
    suite: str, rule: str, result: RuleResult | None, findings: Sequence[Finding], waived: Sequence[Waived], errors: int
) -> Xml.Element:
    case = Xml.Element("testcase", name=line(rule), classname=suite)
    shown = [finding for finding in findings if finding.severity == "error"]
    if shown or errors:
        first = line(shown[0].message) if shown else "not among the findings that this report tells"
        others = max(errors, len(shown)) - 1
        more = f" (and {others:,} more)" if others else ""
        failure = Xml.SubElement(case, "failure", type=line(rule), message=first + more)
        failure.text = _paragraphs(_explained(finding) for finding in shown)
    elif result is not None and result.status is Status.UNKNOWN:
        Xml.SubElement(case, "skipped", message=line(result.why or "not checked"))
    said = [_explained(finding) for finding in findings if finding.severity != "error"]
    said += [f"waived until {w.expires}: {w.reason}\n{_explained(w.finding)}" for w in waived]
    if said:
        Xml.SubElement(case, "system-out").text = _paragraphs(said)
    return case


def _explained(finding: Finding) -> str:
    told = [f"{SEVERITY[finding.severity]}: {finding.message}", f"where: {', '.join(filter(None, (finding.group, moment(finding))))}"]
    told += text(sheets(finding.case))
    for number, step in enumerate(finding.argument, 1):
        told.append(f"{number}. {step.says}")
        if step.evidence is not None:
            told.append(f"   {place(step.evidence)}: {step.evidence.text}".removesuffix(": "))
    if finding.relaxed:
        told.append(f"known: {finding.relaxed}")
    if finding.advice:
        told.append(f"what to do: {finding.advice}")
    if finding.case is not None:
        told.append(f"as JSON: {as_json(finding.case)}")
    if finding.replay is not None:
        told.append(f"replay: {finding.replay}")
    told.append(f"fingerprint: {finding.fingerprint}")
    return "\n".join(told)


def _inputs(inputs: tuple[Input, ...]) -> Xml.Element:
    cases: list[Xml.Element] = []
    for entry in inputs:
        case = Xml.Element("testcase", name=line(entry.path), classname="inputs")
        if entry.problem is not None:
            Xml.SubElement(case, "error", type="unreadable", message=line(entry.problem))
        if entry.malformed:
            named = [f"line {at.line}: {at.why}" for at in entry.malformed_at]
            Xml.SubElement(case, "system-out").text = clean("\n".join((f"malformed lines: {entry.malformed}", *named)))
        cases.append(case)
    return _counted("inputs", cases)


def _counted(suite: str, cases: list[Xml.Element]) -> Xml.Element:
    def having(tag: str) -> str:
        return str(sum(case.find(tag) is not None for case in cases))

    element = Xml.Element(
        "testsuite", name=suite, tests=str(len(cases)), failures=having("failure"), errors=having("error"), skipped=having("skipped")
    )
    element.extend(cases)
    return element


def _paragraphs(texts: Iterable[str]) -> str:
    return clean("\n\n".join(texts))
