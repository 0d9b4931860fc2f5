"""Words that the formats share: safe text, names, places, long lists, and what a rebalance cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from math import inf
from typing import cast

from ...spec.results import Finding, Metrics, Severity, Source, Verdict
from ..report import Report

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
SEVERITY: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


def clean(text: str) -> str:
    """``text`` with control characters, direction overrides and lone surrogates replaced by U+FFFD; line breaks stay."""
    return text.translate(_SAFE)


def line(text: str) -> str:
    """``text`` made safe to show on one line."""
    return text.translate(_SAFE_LINE)


def count(number: int, noun: str) -> str:
    """``1 file``, ``12,000 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def some(items: Sequence[object], limit: int = 8) -> str:
    """The first ``limit`` items, and how many more there are."""
    shown = ", ".join(line(str(item)) for item in islice(items, limit))
    return shown if len(items) <= limit else f"{shown} … and {len(items) - limit:,} more"


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def noun(report: Report) -> str:
    """What one entry of the report's ``groups`` is called."""
    return "case" if report.command == "gate" else "group"


def name(cluster: str, group: str) -> str:
    """A group by its name, with its cluster's unless that is the default one."""
    return line(group if cluster == "default" else f"{cluster}/{group}")


def place(source: Source) -> str:
    """Where a line stands: ``broker.log:120``, or the file alone where there are no lines."""
    return line(f"{source.file}:{source.line}" if source.line else source.file)


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
        return f"nothing in the input tells of a {noun(report)}, so nothing was checked"
    totals = report.totals
    groups = count(sum(totals.groups.values()), noun(report))
    numbers = [f"{tally(totals.findings)} in {totals.broken:,} of {groups}" if totals.findings else groups]
    if totals.waived:
        numbers.append(f"{totals.waived:,} waived")
    checked = sum(bool(c.passed or c.violated) for c in totals.rules)
    numbers.append(f"{checked:,} of {count(len(totals.rules), 'rule')} could be checked")
    warned = report.verdict is Verdict.CONFORMS and totals.findings.get("warning")
    return f"{VERDICT[report.verdict]}{', but for what the warnings name' if warned else ''} ({'; '.join(numbers)})"


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
}
