"""Check events against the rules: the one reference meaning that every engine must agree with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .coordinator import Coordinator
from .events import Event
from .metrics import advice, metrics
from .results import Broken, Finding, GroupResult, Held, Outcome, RuleResult, Settings, Severity, Status, Unknown, Verdict, fingerprint
from .rounds import distinct, identities, lives, requests, rounds
from .rule import Monitor
from .rules import MONITORS, RULES

WINDOW = 8
"""How many earlier rounds a monitor is handed; one that needs more keeps its own state."""


def check(events: Iterable[Event], settings: Settings | None = None, *, measure: bool = True) -> tuple[GroupResult, ...]:
    """Check a trace: one result per (cluster, group), ordered by name. Without ``measure`` nothing is said of the cost.

    Events may come in any order of observers; each observer's own events must be in its order, or carry its clock.
    """
    groups: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        groups.setdefault((event.cluster, event.group), []).append(event)
    return tuple(check_group(groups[key], settings, measure=measure) for key in sorted(groups))


def check_group(events: Sequence[Event], settings: Settings | None = None, *, measure: bool = True) -> GroupResult:
    """Check the events of one group; see `check`."""
    settings = settings or Settings()
    seen, events = len(events), lives(distinct(events))
    cluster, group = events[0].cluster, events[0].group
    monitors = [monitor(settings) for rule, monitor in MONITORS.items() if _wanted(rule, settings)]
    tallies = {monitor.rule.id: _Tally(monitor, settings) for monitor in monitors}
    listening = [monitor for monitor in monitors if type(monitor).request is not Monitor.request]
    coordinator = Coordinator(identities(events))
    for event in requests(events):
        coordinator.enter(event.epoch)
        for monitor in listening:
            tallies[monitor.rule.id].add(monitor.request(event, coordinator))
        coordinator.apply(event)
    history = rounds(events)
    for index, now in enumerate(history):
        for monitor in monitors:
            tallies[monitor.rule.id].add(monitor.round(now, history[max(0, index - WINDOW) : index]))
    for monitor in monitors:
        tallies[monitor.rule.id].add(monitor.end(history[-WINDOW:]))
    results = {rule: tally.result(events) for rule, tally in tallies.items()}
    findings = [f for tally in tallies.values() for f in tally.findings(cluster, group)]
    measured = metrics(events, history, settings) if measure else {}
    return GroupResult(
        cluster=cluster,
        group=group,
        protocol=next((r.protocol for r in reversed(history) if r.protocol), None),
        verdict=verdict(results, findings),
        rules=results,
        metrics=measured,
        findings=tuple(findings),
        advice=advice(events, history, measured) if measure else (),
        events=seen,
    )


def verdict(results: Mapping[str, RuleResult], findings: Iterable[Finding]) -> Verdict:
    """A group's verdict: an error finding violates; conforming takes at least one promise that was checked."""
    if any(f.severity == "error" for f in findings):
        return Verdict.VIOLATES
    promises = (r for rule, r in results.items() if RULES[rule].kip != "cost")
    return Verdict.CONFORMS if any(r.checked for r in promises) else Verdict.UNDETERMINED


def _wanted(rule: str, settings: Settings) -> bool:
    return rule not in settings.skip and (settings.only is None or rule in settings.only)


@dataclass(slots=True)
class _Tally:
    """What one monitor said so far."""

    monitor: Monitor
    settings: Settings
    checked: int = 0
    unknown: dict[str, int] = field(default_factory=dict[str, int])
    broken: list[Broken] = field(default_factory=list[Broken])

    def add(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            match outcome:
                case Held(times):
                    self.checked += times
                case Unknown(why):
                    self.unknown[why] = self.unknown.get(why, 0) + 1
                case Broken():
                    self.checked += 1
                    self.broken.append(outcome)

    def result(self, events: Sequence[Event]) -> RuleResult:
        why = "; ".join(f"{reason} ({count}x)" if count > 1 else reason for reason, count in sorted(self.unknown.items())[:3]) or None
        if self.broken:
            return RuleResult(Status.VIOLATED, self.checked, why)
        if self.checked:
            return RuleResult(Status.PASS, self.checked, why)
        return RuleResult(Status.UNKNOWN, 0, why or self._missing(events))

    def _missing(self, events: Sequence[Event]) -> str:
        rule = self.monitor.rule
        seen = {e.kind for e in events}
        missing = [kind for kind in rule.needs if kind not in seen]
        return f"not captured: {', '.join(missing)}" if missing else f"did not apply: {rule.unknown_when}"

    def findings(self, cluster: str, group: str) -> Iterable[Finding]:
        rule = self.monitor.rule
        seen: dict[str, int] = {}
        for broken in self.broken:
            mark = fingerprint(rule.id, cluster, group, broken)
            seen[mark] = seen.get(mark, 0) + 1
            if seen[mark] > 1:
                continue
            severity: Severity = self.settings.severity.get(rule.id) or broken.severity or rule.severity
            yield Finding(
                fingerprint=mark,
                rule=rule.id,
                severity=severity,
                cluster=cluster,
                group=group,
                epoch=broken.epoch,
                generation=broken.generation,
                members=broken.members,
                resources=tuple(sorted(broken.resources)),
                message=broken.message,
                argument=broken.argument,
                relaxed=broken.relaxed,
                advice=broken.advice,
            )
