"""From what was seen to what is reported: failing inputs as small as they get, a finding for each, a verdict per kind of input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ...spec.assignors.case import Case, InputClass
from ...spec.assignors.catalogue import ASSIGNOR_RULES
from ...spec.assignors.codec import encode
from ...spec.assignors.examine import Examined
from ...spec.assignors.judge import Fault
from ...spec.catalogue import CATALOGUE
from ...spec.check import verdict
from ...spec.results import Argument, Finding, GroupResult, RuleResult, Settings, Severity, Status, digest
from .inputs.classify import classify
from .shrink import shrink
from .subject import Subject
from .tally import Failure, GroupTally, Tally

Examine = Callable[[Iterable[Case]], Iterable[Examined]]

PLAIN_FIRST: Sequence[InputClass] = (
    "clean",
    "static members",
    "duplicate topic",
    "racks",
    "mixed metadata versions",
    "stale generation",
    "double claim",
    "leader reused",
    "unsubscribed owner",
    "deleted topic",
    "recreated topic",
    "shrunk topic",
    "hostile metadata",
)
"""Classes in the order of how unusual they are: an input is not shrunk into a more unusual one."""

MOST = 4000
TRIES = {"hang": 8, "crash": 200, "flood": 200}
"""Inputs that shrinking may ask about; each hang costs a timeout, each crash a start."""

ADVICE = {
    "cooperative-withholds": "leave it out of this assignment; its owner revokes it and rejoins, and the follow-up gives it away"
    " (if members give everything up before they join, the assignor is eager: --as eager)",
    "balanced": "if balance is not what this assignor promises, say so: --severity balanced=info",
}


def findings(tally: Tally, subject: Subject, examine: Examine, settings: Settings, *, shrinking: bool) -> tuple[Finding, ...]:
    """One finding per rule, kind of fault and class of the smallest input that fails, and where other inputs fail so, a copy of it."""
    found: dict[str, Finding] = {}
    seen: dict[tuple[str, str], Finding] = {}
    for failure in tally.failures:
        if settings.wants(failure.fault.rule):
            smallest = _smallest(failure, examine) if shrinking else failure
            finding = _finding(smallest, subject, settings)
            known = found.setdefault(finding.fingerprint, finding)
            seen.setdefault((failure.fault.rule, failure.group), known)
    shown = {(finding.rule, finding.group) for finding in found.values()}
    copies = (replace(finding, group=group) for (rule, group), finding in seen.items() if (rule, group) not in shown)
    return (*found.values(), *copies)


_UNSEEN = RuleResult(Status.UNKNOWN)


def severity(rule: str, settings: Settings) -> Severity:
    return settings.severity.get(rule) or CATALOGUE[rule].severity


def _smallest(failure: Failure, examine: Examine) -> Failure:
    """The same fault with the smallest input that shows it; whatever class that is of."""
    mark = (failure.fault.rule, failure.fault.detail)
    shown: dict[str, Failure] = {}

    def fails(cases: Sequence[Case]) -> list[bool]:
        plain = [case for case in cases if _rank(classify(case)) <= _rank(failure.case.input_class)]
        for found in examine(plain):
            if (fault := _marked(found, mark)) is not None:
                shown[repr(found.case)] = Failure(failure.group, fault, found.case, found.answer)
        return [repr(case) in shown for case in cases]

    most = next((most for how, most in TRIES.items() if failure.fault.detail.startswith(how)), MOST)
    smallest = shown.get(repr(shrink(failure.case, fails, most=most)), failure)
    return replace(smallest, group=_class(smallest)) if failure.group == failure.case.input_class else smallest


def _rank(input_class: InputClass) -> int:
    return PLAIN_FIRST.index(input_class) if input_class in PLAIN_FIRST else len(PLAIN_FIRST)


def _class(smallest: Failure) -> InputClass:
    """Its class as it shows now; a history, a trace and a recreated topic may have left no mark in it."""
    shows = classify(smallest.case)
    return smallest.case.input_class if shows == "clean" and smallest.case.input_class in ("history", "trace") else shows


def _marked(found: Examined, mark: tuple[str, str]) -> Fault | None:
    return next((fault for fault in found.faults if (fault.rule, fault.detail) == mark), None)


def _finding(failure: Failure, subject: Subject, settings: Settings) -> Finding:
    fault = failure.fault
    return Finding(
        fingerprint=mark(fault.rule, _class(failure), fault.detail),
        rule=fault.rule,
        severity=severity(fault.rule, settings),
        cluster=subject.name,
        group=failure.group,
        epoch=0,
        generation=None,
        members=fault.members,
        resources=fault.partitions,
        message=fault.message,
        argument=tuple(map(Argument, fault.argument)),
        advice=ADVICE.get(fault.rule),
        case=encode(replace(failure.case, input_class=_class(failure)), failure.answer),
    )


def mark(*parts: str) -> str:
    """A fingerprint: names a defect by rule, kind of input and kind of fault, whatever the seed."""
    return digest("gate", *parts)


def group(name: str, tally: GroupTally, own: Sequence[Finding], subject: Subject, settings: Settings) -> GroupResult:
    """What is said of one kind of input; ``own`` are its findings."""
    rules: dict[str, RuleResult] = {}
    for rule in filter(settings.wants, ASSIGNOR_RULES):
        if tally.checked[rule]:
            status = Status.VIOLATED if tally.failing[rule] else Status.PASS
            rules[rule] = RuleResult(status, tally.checked[rule], tally.unknown.get(rule))
        elif rule in tally.unknown:
            rules[rule] = RuleResult(Status.UNKNOWN, 0, tally.unknown[rule])
    rules |= {finding.rule: RuleResult(Status.VIOLATED, 1) for finding in own if rules.get(finding.rule, _UNSEEN).status != Status.VIOLATED}
    return GroupResult(
        cluster=subject.name,
        group=name,
        protocol=subject.kind,
        verdict=verdict(rules, own),
        rules=rules,
        metrics=tally.metrics,
        findings=tuple(own),
        events=tally.inputs,
    )
