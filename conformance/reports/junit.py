"""The report as JUnit XML, which every CI server shows: a suite per group, a test case per rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as Xml

from ...spec.results import Finding, GroupResult, RuleResult, Status
from ...spec.rule import Rule
from ..report import Input, Report, Waived
from .prose import SEVERITY, clean, line, moment, name, place
from .summary import by_group


def render(report: Report, rules: Mapping[str, Rule]) -> str:
    """An XML document.

    Error findings fail a rule's test case, an unknown status skips it; warnings, notes and waived findings are its
    output. Inputs that could not be read are errors of a suite named ``inputs``.
    """
    findings = by_group(report.findings)
    waived = {(w.finding.cluster, w.finding.group, w.finding.fingerprint): w for w in report.waived}
    suites = [_suite(group, findings.get((group.cluster, group.group), ()), waived) for group in report.groups]
    if any(entry.problem is not None or entry.malformed for entry in report.inputs):
        suites.append(_inputs(report.inputs))
    root = Xml.Element("testsuites", name=f"kipcheck {report.command}")
    for counted in ("tests", "failures", "errors"):
        root.set(counted, str(sum(int(suite.get(counted, "0")) for suite in suites)))
    root.extend(suites)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _suite(group: GroupResult, findings: tuple[Finding, ...], waived: Mapping[tuple[str, str, str], Waived]) -> Xml.Element:
    suite = name(group.cluster, group.group)
    covered = [w for f in group.findings if (w := waived.get((f.cluster, f.group, f.fingerprint)))]
    cases = [
        _case(
            suite,
            rule,
            group.rules.get(rule),
            [finding for finding in findings if finding.rule == rule],
            [w for w in covered if w.finding.rule == rule],
        )
        for rule in dict.fromkeys((*group.rules, *(finding.rule for finding in findings)))
    ]
    return _counted(suite, cases)


def _case(suite: str, rule: str, result: RuleResult | None, findings: list[Finding], waived: list[Waived]) -> Xml.Element:
    case = Xml.Element("testcase", name=line(rule), classname=suite)
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1:,} more)" if len(errors) > 1 else ""
        failure = Xml.SubElement(case, "failure", type=line(rule), message=line(errors[0].message) + more)
        failure.text = _paragraphs(_explained(finding) for finding in errors)
    elif result is not None and result.status is Status.UNKNOWN:
        Xml.SubElement(case, "skipped", message=line(result.why or "not checked"))
    said = [_explained(finding) for finding in findings if finding.severity != "error"]
    said += [f"waived until {w.expires}: {w.reason}\n{_explained(w.finding)}" for w in waived]
    if said:
        Xml.SubElement(case, "system-out").text = _paragraphs(said)
    return case


def _explained(finding: Finding) -> str:
    text = [f"{SEVERITY[finding.severity]}: {finding.message}", f"where: {', '.join(filter(None, (finding.group, moment(finding))))}"]
    for number, step in enumerate(finding.argument, 1):
        text.append(f"{number}. {step.says}")
        if step.evidence is not None:
            text.append(f"   {place(step.evidence)}: {step.evidence.text}".removesuffix(": "))
    if finding.relaxed:
        text.append(f"known: {finding.relaxed}")
    if finding.advice:
        text.append(f"what to do: {finding.advice}")
    text.append(f"fingerprint: {finding.fingerprint}")
    return "\n".join(text)


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
