"""Words that the formats share: safe text, names, places, long lists, and what a rebalance cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from math import inf
from typing import cast, get_args

from ...spec.assignors.case import InputClass
from ...spec.results import Finding, GroupResult, Metrics, Severity, Source, Status, Verdict
from ..report import Compared, Input, Measured, Report

_NOT_FOR_SHOW = (
    *range(0x09),
    *range(0x0B, 0x0D),
    *range(0x0E, 0x20),
    *range(0x7F, 0xA0),
    *(0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    *range(0xD800, 0xE000),
    *(0xFFFE, 0xFFFF),
)
_SAFE = dict.fromkeys(_NOT_FOR_SHOW, "\ufffd")
_SAFE_LINE = _SAFE | dict.fromkeys((0x09, 0x0A, 0x0D, 0x2028, 0x2029), " ")

VERDICT: Mapping[Verdict, str] = {
    Verdict.VIOLATES: "a promise was broken",
    Verdict.CONFORMS: "every promise that the evidence could check was kept",
    Verdict.UNDETERMINED: "the evidence does not decide whether the promises were kept",
}
_GATED: Mapping[Verdict, str] = {
    **VERDICT,
    Verdict.CONFORMS: "every promise that the inputs could check was kept",
    Verdict.UNDETERMINED: "no input decides whether the promises were kept",
}
_INPUT_CLASSES: frozenset[str] = frozenset(get_args(InputClass))
SEVERITY: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


def clean(text: str) -> str:
    """``text`` with control characters, direction overrides and lone surrogates replaced by U+FFFD; line breaks stay."""
    return text.translate(_SAFE)


def line(text: str) -> str:
    """``text`` made safe to show on one line."""
    return text.translate(_SAFE_LINE)


def count(number: int, noun: str) -> str:
    """``1 file``, ``12,000 files``."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """``files``, ``input classes``."""
    return f"{noun}{'es' if noun.endswith('s') else 's'}"


def some(items: Sequence[object], limit: int = 8) -> str:
    """The first ``limit`` items, and how many more there are."""
    shown = ", ".join(line(str(item)) for item in islice(items, limit))
    return shown if len(items) <= limit else f"{shown} … and {len(items) - limit:,} more"


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def noun(report: Report) -> str:
    """What one entry of the report's ``groups`` is called: of a gate that was given its cases, one of these."""
    if report.command != "gate":
        return "group"
    return "input class" if any(group.group in _INPUT_CLASSES for group in report.groups) else "case"


def subject(report: Report) -> str | None:
    """The assignor that a gate's report is about, by its SPEC; None where that is not one."""
    subjects = {group.cluster for group in report.groups} if report.command == "gate" else set[str]()
    return line(subjects.pop()) if len(subjects) == 1 else None


def called(report: Report, entry: Finding | GroupResult) -> str:
    """An entry of ``groups`` as the report calls it: where there is one subject, an input class goes by its own name."""
    return name(entry.cluster, entry.group) if subject(report) is None else line(entry.group)


def name(cluster: str, group: str) -> str:
    """A group by its name, with its cluster's unless that is the default one."""
    return line(group if cluster == "default" else f"{cluster}/{group}")


def place(source: Source) -> str:
    """Where a line stands: ``broker.log:120``, or the file alone where there are no lines."""
    return line(f"{source.file}:{source.line}" if source.line else source.file)


def unread(inputs: Iterable[Input]) -> list[str]:
    """Each input that could not be read, and why."""
    return [f"{line(each.path)}: {line(each.problem)}" for each in inputs if each.problem is not None]


def malformed(inputs: Iterable[Input]) -> list[str]:
    """Each input with malformed lines: the first of them, and how many are left out."""
    return [
        f"{line(each.path)}:{each.malformed_at[0].line}: {line(each.malformed_at[0].why)}; "
        f"left out: {count(each.malformed, 'line')} of this file that can't be read"
        for each in inputs
        if each.malformed
    ]


def moment(finding: Finding) -> str:
    """When in the life of the group a finding happened: generation, and epoch after a failover."""
    when = [f"epoch {finding.epoch}"] if finding.epoch else []
    if finding.generation is not None:
        when.append(f"generation {finding.generation}")
    return ", ".join(when)


def tally(found: Mapping[Severity, int]) -> str:
    """``2 errors and 1 note``, or nothing if there is none."""
    return listed([count(found[severity], word) for severity, word in SEVERITY.items() if found.get(severity)])


def outcome(report: Report) -> str:
    """The verdict in a sentence with its numbers."""
    if not report.groups:
        return (
            "nothing was fed, so nothing was checked"
            if report.command == "gate"
            else "nothing in the input tells of a group, so nothing was checked"
        )
    if report.command == "gate":
        return _gated(report)
    totals = report.totals
    groups = count(sum(totals.groups.values()), noun(report))
    numbers = [f"{tally(totals.findings)} in {totals.broken:,} of {groups}" if totals.findings else groups]
    if totals.waived:
        numbers.append(f"{totals.waived:,} waived")
    checked = sum(bool(c.passed or c.violated) for c in totals.rules)
    numbers.append(f"{checked:,} of {count(len(totals.rules), 'rule')} could be checked")
    warned = report.verdict is Verdict.CONFORMS and totals.findings.get("warning")
    return f"{VERDICT[report.verdict]}{', but for what the warnings name' if warned else ''} ({'; '.join(numbers)})"


def _gated(report: Report) -> str:
    totals, classes = report.totals, count(len(report.groups), noun(report))
    broken = list(dict.fromkeys(finding.rule for finding in report.findings if finding.severity == "error"))
    by = sum(any(_violated(group, rule) for rule in broken) for group in report.groups)
    numbers = [count(sum(group.events for group in report.groups), "input")]
    if by:
        told = f"{_rules(broken)} broken by {by:,} of {classes}"
    else:
        told = _GATED[report.verdict]
        numbers.insert(0, classes)
    if warnings := totals.findings.get("warning"):
        numbers.append(count(warnings, "warning"))
    if totals.waived:
        numbers.append(f"{totals.waived:,} waived")
    checked = sum(bool(c.passed or c.violated) for c in totals.rules)
    numbers.append(f"{checked:,} of {count(len(totals.rules), 'rule')} could be checked")
    if report.comparison is not None and (worse := sum(row.regression for row in report.comparison.rows)):
        numbers.append(f"{count(worse, 'regression')} against the baseline")
    return f"{told} ({'; '.join(numbers)})"


def _violated(group: GroupResult, rule: str) -> bool:
    return rule in group.rules and group.rules[rule].status is Status.VIOLATED


def _rules(rules: Sequence[str]) -> str:
    shown = [line(rule) for rule in rules[:4]]
    more = [f"{count(len(rules) - 4, 'more rule')}"] if len(rules) > 4 else []
    return f"{listed([*shown, *more])} {'is' if len(rules) == 1 else 'are'}"


def measured(row: Compared) -> tuple[str, str]:
    """What was measured of the subject and of the baseline, with the unit."""

    def told(value: Measured) -> str:
        number = f"{value:.3g}" if isinstance(value, float) and abs(value) < 100 else _number(value)
        return line(f"{number} {row.unit}".rstrip())

    return told(row.subject), told(row.baseline)


def rest(report: Report) -> str:
    """Where everything is that a sample leaves out; nothing if the report has it all."""
    if report.sample is None:
        return ""
    shown = f"the most telling {count(len(report.groups), noun(report))} and {count(len(report.sample.findings), 'finding')} are told here"
    return (
        f"{shown}; all are in {listed(report.sample.files)}"
        if report.sample.files
        else f"{shown}; --report FORMAT=FILE writes all beside FILE"
    )


def notes(report: Report) -> list[str]:
    """The report's notes, and where the rest is."""
    return [*report.notes, *filter(None, (rest(report),))]


def cost(metrics: Metrics) -> tuple[str, ...]:
    """What the rebalances of a group cost, a phrase per metric; what is not known, and zeros that say nothing, are left out."""
    seen = {key: value for key, value in metrics.items() if value is not None}
    phrases = [say(seen[key], seen) for key, say in _METRICS.items() if key in seen]
    phrases += [_anything(key, value) for key, value in seen.items() if key not in _METRICS]
    return tuple(line(phrase) for phrase in phrases if phrase)


def _number(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}".removesuffix(".0")
        case _:
            return str(value)


def _seconds(value: object) -> str:
    if not isinstance(value, int | float) or not 120 <= value < inf:
        return f"{_number(value)} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def _milliseconds(value: object) -> str:
    return _seconds(value / 1000) if isinstance(value, int | float) else f"{value} ms"


def _percent(value: object) -> str:
    return f"{_number(value * 100.0)} %" if isinstance(value, int | float) else str(value)


def _tallied(value: object) -> str:
    pairs = cast("Mapping[object, object]", value).items()
    often = sorted(pairs, key=lambda pair: (-pair[1] if isinstance(pair[1], int) else 0, str(pair[0])))
    return some([f"{_number(times)}x {what}" for what, times in often], 5)


def _anything(key: str, value: object) -> str:
    match value:
        case Mapping():
            shown = _tallied(cast("object", value)) if value else ""
        case list() | tuple() | set() | frozenset():
            shown = some([str(each) for each in cast("Iterable[object]", value)], 5)
        case _:
            shown = _number(value)
    return f"{key.replace('_', ' ')}: {shown}" if shown else ""


Phrase = Callable[[object, Metrics], str]


def _unless_zero(one: str, several: str, form: Callable[[object], str] = _number) -> Phrase:
    def say(value: object, _: Metrics) -> str:
        return (one if value == 1 else several).format(form(value)) if value else ""

    return say


def _rebalances(value: object, metrics: Metrics) -> str:
    reasons = metrics.get("reasons")
    why = f" ({_tallied(cast('object', reasons))})" if isinstance(reasons, Mapping) and reasons else ""
    return f"{_number(value)} rebalance{'' if value == 1 else 's'}{why}"


def _reasons(value: object, metrics: Metrics) -> str:
    return "" if "rebalances" in metrics else _anything("reasons", value)


def _moved(value: object, metrics: Metrics) -> str:
    least = metrics.get("partitions_moved_minimum")
    enough = "" if least is None else f" where {_number(least)} would have done"
    return f"{_number(value)} partition{'' if value == 1 else 's'} moved{enough}" if value else ""


def _least(value: object, metrics: Metrics) -> str:
    return "" if "partitions_moved" in metrics else _anything("partitions_moved_minimum", value)


def _moved_by_answers(value: object, metrics: Metrics) -> str:
    return _moved(value, {"partitions_moved_minimum": metrics.get("moved_minimum")})


def _least_by_answers(value: object, metrics: Metrics) -> str:
    return "" if "moved" in metrics else _anything("moved_minimum", value)


_METRICS: Mapping[str, Phrase] = {
    "members": _unless_zero("{} member", "{} members"),
    "members_seen": _unless_zero("{} member seen", "{} members seen"),
    "members_max": _unless_zero("never more than {} member at once", "up to {} members at once"),
    "generations": _unless_zero("{} generation", "{} generations"),
    "rebalances": _rebalances,
    "reasons": _reasons,
    "probing_rebalances": _unless_zero("{} probing rebalance of Streams besides", "{} probing rebalances of Streams besides"),
    "rebalances_per_minute_peak": _unless_zero("never more than {} rebalance in a minute", "up to {} rebalances in a minute"),
    "storms": _unless_zero("{} rebalance storm", "{} rebalance storms"),
    "partition_seconds_unowned": _unless_zero("{} partition-second without an owner", "{} partition-seconds without an owner"),
    "partitions_moved": _moved,
    "partitions_moved_minimum": _least,
    "stop_the_world_share": _unless_zero(
        "of the partitions that members were to keep, all were given up in between",
        "of the partitions that members were to keep, {} were given up in between",
        _percent,
    ),
    "rounds_to_converge_max": _unless_zero("{} round to settle", "up to {} rounds to settle"),
    "zombie_windows": _unless_zero(
        "once a member still believed in partitions already given away (legal: it is fenced)",
        "{} times a member still believed in partitions already given away (legal: it is fenced)",
    ),
    "zombie_seconds_longest": _unless_zero("such a belief lasted up to {}", "such a belief lasted up to {}", _seconds),
    "delay_ms_max": _unless_zero("work withheld for up to {}", "work withheld for up to {}", _milliseconds),
    "inputs": _unless_zero("{} input", "{} inputs"),
    "moved": _moved_by_answers,
    "moved_minimum": _least_by_answers,
    "rounds_max": _unless_zero("{} round to settle", "up to {} rounds to settle"),
}
