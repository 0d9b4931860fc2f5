"""Check events against the rules: the one reference meaning that every engine must agree with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from .catalogue import CATALOGUE
from .coordinator import Coordinator
from .events import KINDS, Commit, Event, Heartbeat
from .metrics import advice, metrics
from .results import Broken, Finding, GroupResult, Held, Outcome, RuleResult, Settings, Severity, Status, Unknown, Verdict, fingerprint
from .rounds import distinct, identities, lives, requests, rounds
from .rule import Monitor
from .rules import MONITORS

WINDOW = 8
"""How many earlier rounds a monitor is handed; one that needs more keeps its own state."""
_HEARD: Mapping[type[Event], tuple[str, ...]] = {
    kind: tuple(rule for rule, monitor in MONITORS.items() if kind in monitor.hears) for kind in KINDS.values()
}
"""The rules that each kind of event is told to."""


def check(events: Iterable[Event], settings: Settings | None = None, *, measure: bool = True) -> tuple[GroupResult, ...]:
    """Check a trace: one result per (cluster, group), ordered by name. Without ``measure`` nothing is said of the cost.

    Events may come in any order of observers; each observer's own events must be in its order, or carry its clock.
    """
    groups: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        groups.setdefault((event.cluster, event.group), []).append(event)
    return tuple(check_group(groups[key], settings, measure=measure) for key in sorted(groups))


class Suspected(Exception):
    """A request that stands for several (`Event.times`) may not say the same as each of them: they must be seen one by one."""


def check_group(events: Sequence[Event], settings: Settings | None = None, *, measure: bool = True, sieved: bool = False) -> GroupResult:
    """Check the events of one group; see `check`.

    With ``sieved``, raises `Suspected` if requests that stand for several break a rule, or are not judged like the first of them.
    """
    settings = settings or Settings()
    seen, all_lives = sum(event.times for event in events), distinct(events)
    who = identities(all_lives)
    events = lives(all_lives, who)
    who = who if events is all_lives else identities(events)
    cluster, group = events[0].cluster, events[0].group
    tallies = {rule: _Tally(monitor(settings), settings) for rule, monitor in MONITORS.items() if settings.wants(rule)}
    listening = {kind: [tallies[rule] for rule in rules if rule in tallies] for kind, rules in _HEARD.items()}
    coordinator = Coordinator(who)
    begun: dict[object, object] = {}
    for event in requests(events):
        coordinator.enter(event.epoch)
        said = [(tally, told) for tally in listening[type(event)] if (told := [*tally.monitor.request(event, coordinator)])]
        if sieved and isinstance(event, (Heartbeat, Commit)):
            _look_alike(event, said, begun)
        for tally, outcomes in said:
            tally.add(outcomes, event.times)
        coordinator.apply(event)
    history = rounds(events, who)
    judging = [tally for tally in tallies.values() if type(tally.monitor).round is not Monitor.round]
    for index, now in enumerate(history):
        past = history[max(0, index - WINDOW) : index]
        for tally in judging:
            tally.add(tally.monitor.round(now, past))
    for tally in tallies.values():
        tally.add(tally.monitor.end(history[-WINDOW:]))
    kinds = {e.kind for e in events}
    results = {rule: tally.result(kinds) for rule, tally in tallies.items()}
    findings = [f for tally in tallies.values() for f in tally.findings(cluster, group)]
    measured = metrics(events, history, settings, who) if measure else {}
    return GroupResult(
        cluster=cluster,
        group=group,
        protocol=next((r.protocol for r in reversed(history) if r.protocol), None),
        verdict=verdict(results, findings),
        rules=results,
        metrics=measured,
        findings=tuple(findings),
        advice=advice(events, history, measured, who) if measure else (),
        events=seen,
    )


def _look_alike(event: Event, said: Sequence[tuple[_Tally, Sequence[Outcome]]], begun: dict[object, object]) -> None:
    """Compare what is said of the last of several requests with what was said of the first, which came before it."""
    sender = (event.kind, event.member, event.src.file if event.src is not None else "")
    outcomes = [(tally.monitor.rule.id, type(o), o.why if isinstance(o, Unknown) else "") for tally, told in said for o in told]
    if event.times > 1 and (outcomes != begun.get(sender) or any(kind is Broken for _, kind, _ in outcomes)):
        raise Suspected(f"{event.times} {event.kind}s of {event.member}")
    begun[sender] = outcomes


def verdict(results: Mapping[str, RuleResult], findings: Iterable[Finding]) -> Verdict:
    """A group's verdict: an error finding violates; conforming takes at least one promise that was checked."""
    if any(f.severity == "error" for f in findings):
        return Verdict.VIOLATES
    promises = (r for rule, r in results.items() if CATALOGUE[rule].kip != "cost")
    return Verdict.CONFORMS if any(r.checked for r in promises) else Verdict.UNDETERMINED


@dataclass(slots=True)
class _Tally:
    """What one monitor said so far."""

    monitor: Monitor
    settings: Settings
    checked: int = 0
    unknown: dict[str, int] = field(default_factory=dict[str, int])
    broken: list[Broken] = field(default_factory=list[Broken])

    def add(self, outcomes: Iterable[Outcome], each: int = 1) -> None:
        for outcome in outcomes:
            match outcome:
                case Held(times):
                    self.checked += times * each
                case Unknown(why):
                    self.unknown[why] = self.unknown.get(why, 0) + each
                case Broken():
                    self.checked += each
                    self.broken.append(outcome)

    def result(self, kinds: Set[str]) -> RuleResult:
        why = "; ".join(f"{reason} ({count}x)" if count > 1 else reason for reason, count in sorted(self.unknown.items())[:3]) or None
        if self.broken:
            return RuleResult(Status.VIOLATED, self.checked, why)
        if self.checked:
            return RuleResult(Status.PASS, self.checked, why)
        return RuleResult(Status.UNKNOWN, 0, why or self._missing(kinds))

    def _missing(self, kinds: Set[str]) -> str:
        rule = self.monitor.rule
        missing = [kind for kind in rule.needs if kind not in kinds]
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
