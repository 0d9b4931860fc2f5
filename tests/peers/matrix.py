"""Gates the assignors of Kafka's clients and writes MATRIX.md, and a case file per defect under traces/gate.

``python -m tests.peers.matrix [IMPLEMENTATION...]``: without names all of them; with names these are gated anew, the rest of the page
is what was found last. Only what two whole runs and then two replays of its smallest input showed is reported.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.failed import Failed
from kipcheck.conformance.gate.adapters import subject
from kipcheck.conformance.gate.converse import examined
from kipcheck.conformance.gate.documented import algorithm
from kipcheck.conformance.gate.run import Feed, How, gate
from kipcheck.conformance.gate.verdicts import PLAIN_FIRST
from kipcheck.conformance.report import Report
from kipcheck.spec.assignors.catalogue import ASSIGNOR_RULES
from kipcheck.spec.assignors.codec import decode
from kipcheck.spec.assignors.kinds import Kind, documented
from kipcheck.spec.results import Finding, Settings, Status
from tests.kafka.jars import jars
from tests.peers.build import AIOKAFKA, ROOT, TARGET, Missing, aiokafka, build, released

KAFKA, KAFKA_CONNECT = "4.4.0", "4.3.1"
"""The newest releases of kafka-clients and of connect-runtime."""
CONNECT = "jvm:org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeAssignor"
KEPT = TARGET / "matrix"
KEPT_OF_CONNECT = TARGET / "matrix-connect.json"
CASES = Path("traces/gate")
PAGE = Path("tests/peers/MATRIX.md")
REPLAYS, TWICE = 30, 2
CRASHES = 1000
"""A client that crashes is fed on, so that its row is whole."""
SMALLER = {"librdkafka-cooperative-sticky": Feed(examples=150, histories=0, stops_after=CRASHES)}
"""Where shrinking over a socket takes too long: fewer inputs than the default."""

RACK_AWARE = {("Apache Kafka", "range"), ("Apache Kafka", "sticky"), ("Apache Kafka", "cooperative-sticky")}
RACK_AWARE |= {("librdkafka", "range"), ("librdkafka", "cooperative-sticky")}
NO_STATIC_MEMBERS = {"kafka-go", "kafkajs"}
"""Clients whose JoinGroup has no group.instance.id."""

FOLLOW = ("order-independent", "history-independent")
"""What an assignor that answers at random can't be asked."""
SEVERITIES = {"error": "FAIL", "warning": "warning", "info": "info"}


@dataclass(frozen=True, slots=True)
class Row:
    """An implementation of one assignor. ``said`` is its SPEC as a person would type it."""

    peer: str
    assignor: str
    version: str
    spec: str
    kind: Kind
    classpath: tuple[str, ...] = ()
    environment: str = ""

    @property
    def name(self) -> str:
        return f"{self.peer}-{self.assignor}"

    @property
    def how(self) -> How:
        """The adapters of conformance/examples keep nothing between cases, or obey ``fresh``."""
        return How(kind=self.kind, classpath=self.classpath, renews=self.spec.startswith("exec:"))

    @property
    def settings(self) -> Settings:
        """Without the rules about what the client has not got."""
        skip = {"static-stable"} if self.peer in NO_STATIC_MEMBERS else set[str]()
        return Settings(skip=frozenset(skip if (self.peer, self.assignor) in RACK_AWARE else skip | {"rack-aware"}))

    @property
    def command(self) -> str:
        words = ["kipcheck", "gate", "--assignor", self.spec.replace(sys.executable, "python"), "--as", self.kind]
        words += ["--renews"] if self.how.renews else []
        for each in self.classpath:
            words += ["--classpath", each]
        return f"{self.environment} {shlex.join(words)}".strip()


Kinds = Sequence[tuple[str, Kind]]
FOUR: Kinds = (("range", "range"), ("roundrobin", "roundrobin"), ("sticky", "sticky"), ("cooperative-sticky", "cooperative-sticky"))
EXECUTED: Mapping[str, Kinds] = {
    "franz-go": FOUR,
    "sarama": FOUR,
    "kafka-go": FOUR[:2],
    "kafkajs": (("RoundRobinAssigner", "eager"),),
    "platformatic-kafka": (FOUR[1], FOUR[3]),
    "librdkafka": (FOUR[0], FOUR[1], FOUR[3]),
}
"""As what each assignor is judged: what Kafka's assignor of the same protocol name promises. kafkajs's name is its own."""

KAFKA_PYTHON = {
    "range": "range:RangePartitionAssignor",
    "roundrobin": "roundrobin:RoundRobinPartitionAssignor",
    "sticky": "sticky.sticky_assignor:StickyPartitionAssignor",
    "cooperative-sticky": "cooperative_sticky:CooperativeStickyAssignor",
}
JAVA = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


def rows(wanted: Sequence[str]) -> Iterator[Row]:
    """Those that can be built here; why others can't goes to standard error."""
    makers = {"Apache Kafka": _java, "kafka-python": _kafka_python, "aiokafka": _aiokafka} | dict.fromkeys(EXECUTED, _executed)
    for peer, make in makers.items():
        if not wanted or any(peer in each for each in wanted):
            try:
                yield from (row for row in make(peer) if not wanted or {peer, row.name} & {*wanted})
            except (Missing, pytest.skip.Exception) as why:
                print(f"{peer} is missing: {why}", file=sys.stderr)


def _executed(peer: str) -> Iterator[Row]:
    command = shlex.join(build(peer))
    for assignor, kind in EXECUTED[peer]:
        choice = "" if len(EXECUTED[peer]) == 1 else f" {assignor}"
        yield Row(peer, assignor, released(peer), f"exec:{command}{choice}", kind)


def _kafka_python(peer: str) -> Iterator[Row]:
    for assignor, kind in FOUR:
        yield Row(peer, assignor, version("kafka-python"), f"python:kafka.coordinator.assignors.{KAFKA_PYTHON[assignor]}", kind)


def _aiokafka(peer: str) -> Iterator[Row]:
    folder = str(aiokafka())
    os.environ["PYTHONPATH"] = folder
    for assignor, kind in FOUR[:3]:
        spec = f"python:aiokafka.coordinator.assignors.{KAFKA_PYTHON[assignor]}"
        yield Row(peer, assignor, AIOKAFKA, spec, kind, environment=f"PYTHONPATH={folder}")


def _java(peer: str) -> Iterator[Row]:
    classpath = tuple(os.path.relpath(each, ROOT) for each in jars("kafka-clients", KAFKA))
    for assignor, kind in FOUR:
        yield Row(peer, assignor, KAFKA, f"jvm:org.apache.kafka.clients.consumer.{JAVA[assignor]}", kind, classpath)


def gated(row: Row) -> dict[str, Any]:
    """What two runs of the gate agree on, as JSON."""
    first, second = (
        gate(row.spec, feed=SMALLER.get(row.name, Feed(stops_after=CRASHES)), how=row.how, settings=row.settings) for _ in range(2)
    )
    known, again = violated(first), violated(second)
    if "deterministic" in known.keys() & again.keys():
        for rule in FOLLOW:
            known.pop(rule, None)
    cells: dict[str, Any] = {}
    for rule in ASSIGNOR_RULES:
        if rule not in known:
            cells[rule] = {"status": "pass" if _checked(first, rule) and rule not in violated(first) else "not applicable"}
        elif rule in again and (shown := _reproduced(row, rule, first)):
            cells[rule] = shown | {"classes": sorted(known[rule] & again[rule]) or sorted(known[rule])}
        else:
            cells[rule] = {"status": "unsteady"}
    notes = [note for note in first.notes if row.name in SMALLER or not note.startswith("seed")]
    return {"row": {"peer": row.peer, "assignor": row.assignor, "version": row.version, "kind": row.kind}, "notes": notes, "cells": cells}


def violated(report: Report) -> dict[str, set[str]]:
    """The groups in which each rule is violated."""
    found: dict[str, set[str]] = {}
    for group in report.groups:
        for rule, result in group.rules.items():
            if result.status is Status.VIOLATED:
                found.setdefault(rule, set()).add(group.group)
    return found


def _checked(report: Report, rule: str) -> bool:
    return any(rule in group.rules and group.rules[rule].status is Status.PASS for group in report.groups)


def _reproduced(row: Row, rule: str, report: Report) -> dict[str, Any] | None:
    """The smallest input of ``rule`` that shows it again, and its case file written."""
    candidates = [finding for finding in report.findings if finding.rule == rule and finding.case is not None]
    for finding in sorted(candidates, key=_plainness):
        if _again(row, finding):
            told = dict(finding.case or {})
            path = CASES / f"{row.name.replace(' ', '-').lower()}-{rule}.json"
            path.write_text(json.dumps([told], indent=1) + "\n", encoding="utf-8")
            return {"status": finding.severity, "message": finding.message, "case": told, "replay": f"{row.command} --cases {path}"}
    return None


def _plainness(finding: Finding) -> tuple[int, int]:
    case = finding.case or {}
    return (PLAIN_FIRST.index(case["class"]) if case.get("class") in PLAIN_FIRST else len(PLAIN_FIRST), len(json.dumps(case)))


def _again(row: Row, finding: Finding) -> bool:
    """Whether replays of its input break the rule of ``finding`` at least twice."""
    case, _ = decode({**(finding.case or {})})
    with closing(subject(row.spec, classpath=row.classpath, as_kind=row.kind, renews=row.how.renews)) as tested:
        rule_book = algorithm(row.kind) if documented(row.kind) else None
        seen = [
            any(fault.rule == finding.rule for each in examined(tested, [case], rule_book) for fault in each.faults) for _ in range(REPLAYS)
        ]
    return sum(seen) >= TWICE


def clusters() -> dict[str, Any]:
    """What two runs of the gate over Connect's assignor agree on, as JSON."""
    classpath = [jar for artifact in ("connect-runtime", "connect-api", "kafka-clients") for jar in jars(artifact, KAFKA_CONNECT)]
    how = How(classpath=tuple(dict.fromkeys(os.path.relpath(each, ROOT) for each in classpath)))
    first, second = (gate(CONNECT, how=how) for _ in range(2))
    rules = {rule: result.status.value for group in first.groups for rule, result in group.rules.items()}
    found = {each.rule: each for each in first.findings if each.rule in violated(second)}
    return {
        "rules": rules,
        "found": {rule: {"message": each.message, "script": each.argument[-1].says, "replay": each.replay} for rule, each in found.items()},
    }


def page(results: Sequence[Mapping[str, Any]], connect: Mapping[str, Any] | None) -> str:
    """MATRIX.md."""
    lines = [
        "# Conformance matrix",
        "",
        "The gate over the assignors of Kafka's clients, with its default inputs. Generated by `make matrix`, not edited.",
        "A cell is a rule (`kipcheck rules ID`): pass, **FAIL** (it is broken), a warning (of quality), an info, or `-`: not applicable, which is",
        "nothing of that kind in the client, never asked, or moot for an assignor that answers at random. Only what two runs and then two replays",
        "of its smallest input showed is reported; `?` was seen, but not so often. A client that crashes is fed on.",
        "An assignor is held to what Kafka's assignor of the same protocol name promises, kafkajs's to what any eager one does.",
        "",
        "| implementation | version | assignor |" + "".join(f" {rule} |" for rule in ASSIGNOR_RULES),
        "| --- | --- | --- |" + " --- |" * len(ASSIGNOR_RULES),
    ]
    for each in results:
        row, cells = each["row"], each["cells"]
        lines.append(
            f"| {row['peer']} | {row['version']} | {row['assignor']} |" + "".join(f" {_cell(row, r, c)} |" for r, c in cells.items())
        )
    lines += [
        "",
        "## The smallest inputs",
        "",
        "Build the adapters with `python -m tests.peers.build`. A replay exits with 1 as long as the defect is there.",
    ]
    for each in results:
        failing = {rule: cell for rule, cell in each["cells"].items() if "case" in cell}
        if failing or each["notes"]:
            row = each["row"]
            lines += [
                "",
                f"### {row['peer']} {row['version']}, {row['assignor']}",
                *(f"\n{note[0].upper()}{note[1:]}." for note in each["notes"]),
            ]
        for rule, cell in failing.items():
            told = cell["case"]
            lines += [
                "",
                f'<a id="{_anchor(each["row"], rule)}"></a>',
                f"**{rule}** ({SEVERITIES[cell['status']]}): {cell['message']}. Input class: {told.get('class', 'given')}."
                f" Seen in: {', '.join(cell['classes'])}.",
                "```",
                json.dumps(told),
                cell["replay"],
                "```",
            ]
    if connect is not None:
        lines += ["", f"## Apache Kafka Connect {KAFKA_CONNECT}, IncrementalCooperativeAssignor", "", "| rule | |", "| --- | --- |"]
        for rule, status in connect["rules"].items():
            lines.append(f"| {rule} | {'**FAIL**' if rule in connect['found'] else '?' if status == 'violated' else status} |")
        for rule, found in connect["found"].items():
            lines += ["", f"**{rule}** (FAIL): {found['message']}.", "```", found["script"], found["replay"], "```"]
    return "\n".join(lines) + "\n"


def _cell(row: Mapping[str, str], rule: str, cell: Mapping[str, Any]) -> str:
    match cell["status"]:
        case "pass":
            return "pass"
        case "not applicable":
            return "-"
        case "unsteady":
            return "?"
        case severity:
            word = SEVERITIES[severity]
            return f"[{f'**{word}**' if word == 'FAIL' else word}](#{_anchor(row, rule)})"


def _anchor(row: Mapping[str, str], rule: str) -> str:
    return f"{row['peer']}-{row['assignor']}-{rule}".replace(" ", "-").lower()


def main(wanted: Sequence[str]) -> None:
    os.chdir(ROOT)
    KEPT.mkdir(parents=True, exist_ok=True)
    CASES.mkdir(parents=True, exist_ok=True)
    for row in rows(wanted):
        for stale in CASES.glob(f"{row.name.replace(' ', '-').lower()}-*.json"):
            if any(stale.stem.endswith(f"{row.assignor.lower()}-{rule}") for rule in ASSIGNOR_RULES):
                stale.unlink()
        try:
            kept = gated(row)
        except Failed as why:
            print(f"{row.name}: {why}", file=sys.stderr)
            continue
        (KEPT / f"{row.name}.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")
        found = {rule: cell["status"] for rule, cell in kept["cells"].items() if cell["status"] not in ("pass", "not applicable")}
        print(f"{row.name} {row.version}: {found or 'conforms'} {' '.join(kept['notes'])}", file=sys.stderr, flush=True)
    order = ["Apache Kafka", "kafka-python", "aiokafka", *EXECUTED]
    results = [json.loads(path.read_text()) for path in KEPT.glob("*.json")]
    names = [assignor for assignor, _ in FOUR]
    results.sort(
        key=lambda each: (order.index(each["row"]["peer"]), each["row"]["assignor"] in names and names.index(each["row"]["assignor"]))
    )
    if not wanted or "Kafka Connect" in wanted:
        try:
            KEPT_OF_CONNECT.write_text(json.dumps(clusters(), indent=1), encoding="utf-8")
        except (Failed, pytest.skip.Exception) as why:
            print(f"Kafka Connect: {why}", file=sys.stderr)
    connect = json.loads(KEPT_OF_CONNECT.read_text()) if KEPT_OF_CONNECT.is_file() else None
    PAGE.write_text(page(results, connect), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
