"""Missing evidence, other clocks and other names never make a new error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from kipcheck.spec import RULES, Finding, check
from kipcheck.spec.events import Event

from .test_examples import EXAMPLES, load

NAMES = sorted(path.name for path in EXAMPLES.iterdir())
HALF_A_MINUTE = 30_000_000


def found(events: Iterable[Event]) -> set[tuple[str, str]]:
    return {(f.rule, f.fingerprint) for g in check(events) for f in g.findings if RULES[f.rule].kip != "cost"}


def findings(events: Iterable[Event]) -> list[Finding]:
    return [f for g in check(events) for f in g.findings]


def observers(events: list[Event]) -> set[tuple[str, str | None]]:
    return {_observer(e) for e in events}


def _observer(event: Event) -> tuple[str, str | None]:
    coordinator = event.observer in ("coordinator", "any")
    return ("coordinator", None) if coordinator else (event.observer, event.member)


@pytest.mark.parametrize("name", NAMES)
def test_dropping_an_observer_makes_no_new_error(name: str) -> None:
    events = load(name)
    rules = {rule for rule, _ in found(events)}
    for dropped in observers(events):
        rest = [e for e in events if _observer(e) != dropped]
        assert {rule for rule, _ in found(rest)} <= rules, f"without {dropped}"


@pytest.mark.parametrize("name", [name for name in NAMES if "conforms" in name])
@pytest.mark.parametrize("kind", ["heartbeat", "commit", "closed", "crashed", "assigned", "owned", "synced"])
def test_dropping_a_kind_of_evidence_makes_no_new_error_in_a_conforming_trace(name: str, kind: str) -> None:
    assert found(e for e in load(name) if e.kind != kind) == set()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shift", [HALF_A_MINUTE, -HALF_A_MINUTE])
def test_a_member_with_another_clock_changes_nothing(name: str, shift: int) -> None:
    events = load(name)
    expected = found(events)
    for member in {e.member for e in events if e.observer in ("member", "harness")}:
        skewed = [
            replace(e, ts=e.ts + shift) if e.ts is not None and e.member == member and e.observer in ("member", "harness") else e
            for e in events
        ]
        assert found(skewed) == expected, f"{member}'s clock is {shift} us off"


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_lines_does_not_matter_where_there_are_clocks(name: str) -> None:
    events = load(name)
    assert found(reversed(events)) == found(events)


@pytest.mark.parametrize("name", NAMES)
def test_a_fingerprint_survives_other_lines_and_other_dynamic_member_ids(name: str) -> None:
    events = load(name)
    moved = [replace(e, src=replace(e.src, file="other.jsonl", line=e.src.line + 100) if e.src else None) for e in events]
    assert found(_renamed(moved, lambda m: m if not m or m[:1] == "i" else f"x-{m}")) == found(events)


def _renamed(events: Iterable[Event], new: Callable[[str], str]) -> list[Event]:
    renamed: list[Event] = []
    for event in events:
        changes: dict[str, object] = {}
        for name in ("member", "leader", "old_member"):
            value = getattr(event, name, None)
            if isinstance(value, str):
                changes[name] = new(value)
        members = getattr(event, "members", None)
        if isinstance(members, tuple):
            changes["members"] = tuple(map(new, members))
        elif members is not None:
            changes["members"] = {new(m): info for m, info in members.items()}
        for name in ("assignment", "revoked"):
            mapping = getattr(event, name, None)
            if isinstance(mapping, dict):
                changes[name] = {new(m): owned for m, owned in mapping.items()}
        renamed.append(replace(event, **changes))
    return renamed
