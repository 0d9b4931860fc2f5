"""The recorded traces of real clusters: what kipcheck finds in each, and whether its sources tell one story."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from kipcheck.conformance.assemble import Capture, assemble
from kipcheck.conformance.readers.files import read
from kipcheck.conformance.validate import validate
from kipcheck.spec import RULES, Verdict, check
from kipcheck.spec.events import Event
from kipcheck.spec.rounds import Round, rounds

TRACES = Path(__file__).parents[2] / "traces"
RECORDED = sorted(path.parent for path in TRACES.glob("kafka-*/*/recording.json"))
SOURCES = {
    "clients": ("client-*", "worker-*"),
    "requests": ("request.log*",),
    "formatter": ("offsets.json*",),
    "dump": ("offsets-dump*",),
    "segment": ("__consumer_offsets-*",),
}
"""Before 3.9 the formatter prints no assignments (offsets.txt), so there it is no source of ownership."""

KNOWN = {
    "static-absent-in-rebalance": {("static-slot-held", "warning")},
    "static-late-claim": {("revoke-before-reassign", "error")},
    "unequal-subscriptions-claim": {("revoke-before-reassign", "error")},
}
"""Promises that these releases are known not to keep: traces/README.md says why."""

Shares = dict[tuple[int, str], frozenset[str]]


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def known_errors(path: Path) -> set[str]:
    return {rule for rule, severity in KNOWN.get(path.name, set()) if severity == "error"}


def known_verdict(path: Path) -> Verdict:
    return Verdict.VIOLATES if known_errors(path) else Verdict.CONFORMS


def recording(path: Path) -> dict[str, object]:
    return json.loads((path / "recording.json").read_text())


@cache
def captures(path: Path, *patterns: str) -> tuple[Capture, ...]:
    files = sorted(str(f) for pattern in patterns for f in path.glob(pattern))
    return tuple(Capture(reading.path, tuple(reading.events), native=False) for reading in read(files)) if files else ()


def history(path: Path, *patterns: str) -> list[Round]:
    group = recording(path)["group"]
    events: list[Event] = [e for e in assemble(captures(path, *patterns)) if e.group == group]
    return rounds(events)


def shares(history: list[Round]) -> Shares:
    """What each slot was to own in each generation, as one source tells it."""
    return {
        (now.generation, member): seat.given.owns
        for now in history
        for seat in now.seats.values()
        if seat.given is not None
        for member in ([seat.owner] if seat.instance else seat.ids)
    }


@pytest.mark.parametrize("path", RECORDED, ids=name)
def test_a_cluster_raises_no_alarm_but_for_what_is_known(path: Path) -> None:
    report = validate([str(path)])
    group = next(g for g in report.groups if g.group == recording(path)["group"])
    assert {(f.rule, f.severity) for g in report.groups for f in g.findings if f.severity != "info"} == KNOWN.get(path.name, set())
    assert group.verdict is known_verdict(path)
    assert {g.verdict for g in report.groups if g is not group} <= {Verdict.CONFORMS}
    assert [i for i in report.inputs if i.problem or i.malformed] == []


@pytest.mark.parametrize(
    ("path", "source"),
    [(path, s) for path in RECORDED for s in SOURCES if s != "clients" and any(list(path.glob(pattern)) for pattern in SOURCES[s])],
    ids=lambda value: value if isinstance(value, str) else name(value),
)
def test_each_source_tells_the_same_ownership_as_the_clients(path: Path, source: str) -> None:
    told = shares(history(path, *SOURCES[source]))
    clients = shares(history(path, *SOURCES["clients"]))
    both = told.keys() & clients.keys()
    assert both, "the sources overlap"
    assert {key: told[key] for key in both} == {key: clients[key] for key in both}


@pytest.mark.parametrize("path", RECORDED, ids=name)
def test_the_broker_log_counts_the_generations_that_the_clients_saw(path: Path) -> None:
    broker = {now.generation for now in history(path, "broker.log*")}
    clients = {now.generation for now in history(path, *SOURCES["clients"])}
    assert clients <= broker


@pytest.mark.parametrize("path", RECORDED, ids=name)
def test_dropping_any_file_makes_no_error_but_what_is_known(path: Path) -> None:
    everything = captures(path, *(pattern for patterns in SOURCES.values() for pattern in patterns), "broker.log*")
    for dropped in everything:
        groups = check(assemble([c for c in everything if c is not dropped]))
        errors = [f.message for g in groups for f in g.findings if f.severity == "error" and f.rule not in known_errors(path)]
        assert errors == [], f"without {dropped.path}"


def test_the_recordings_check_most_promises() -> None:
    """Together the recordings put every promise to the test that a healthy cluster can."""
    checked = {rule for path in RECORDED for g in validate([str(path)]).groups for rule, r in g.rules.items() if r.checked}
    assert {rule for rule in RULES if RULES[rule].kip != "cost"} - checked == NEVER_SEEN_HEALTHY


NEVER_SEEN_HEALTHY: set[str] = set()
"""Promises that no healthy recording can put to the test."""


def test_the_recordings_are_small() -> None:
    assert sum(path.stat().st_size for path in TRACES.rglob("*") if path.is_file()) < 10_000_000


def test_the_whole_folder_gives_each_its_verdict() -> None:
    report = validate([str(TRACES)])
    assert [i.path for i in report.inputs if i.problem or i.malformed] == []
    verdicts = {group.group: group.verdict for group in report.groups}
    for rule, entry in RULES.items():
        breaks = Verdict.VIOLATES if entry.severity == "error" else Verdict.CONFORMS
        assert (rule, verdicts[f"{rule}-violates"]) == (rule, breaks)
        assert (rule, verdicts[f"{rule}-conforms"]) == (rule, Verdict.CONFORMS)
    for path in RECORDED:
        assert (path.name, verdicts[str(recording(path)["group"])]) == (path.name, known_verdict(path))


def findings_table() -> str:
    """What kipcheck finds in each recording, as traces/README.md shows it."""
    rows = ["| trace | verdict | rules checked | what it finds |", "| --- | --- | --- | --- |"]
    for path in RECORDED:
        report = validate([str(path)])
        group = next(g for g in report.groups if g.group == recording(path)["group"])
        found = sorted({f"{f.severity}: `{f.rule}`" for f in group.findings})
        checked = sum(bool(result.checked) for result in group.rules.values())
        rows.append(f"| `{name(path)}` | {group.verdict} | {checked} of {len(RULES)} | {', '.join(found) or 'nothing'} |")
    return "\n".join(rows)


def test_the_readme_of_the_traces_says_what_is_found() -> None:
    table = findings_table()
    assert table in (TRACES / "README.md").read_text(), f"put this into traces/README.md:\n{table}"
