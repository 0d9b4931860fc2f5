"""A healthy group gives no finding, whatever part of it was captured."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kipcheck.spec import RULES, Finding, check
from kipcheck.spec.events import Event, Gap

from .healthy import BROKER, OFFSETS, REQUESTS, STEPS, Group

STEPS_DRAWN = st.lists(st.sampled_from(STEPS), max_size=14).map(lambda steps: ["dynamic", *steps])
SCALE = (
    "dynamic",
    "static",
    "dynamic",
    "static",
    "quiet",
    "bounce",
    "leave",
    "dynamic",
    "crash",
    "away",
    "leader",
    "failover",
    "static",
    "empty",
    "dynamic",
)


ESSENTIAL = {("coordinator", "leave"), ("coordinator", "expire"), ("member", "revoked"), ("member", "lost")}
"""Whoever shows the rest and hides these tells a lie."""


def alarms(events: Iterable[Event]) -> list[Finding]:
    return [f for g in check(events) for f in g.findings if RULES[f.rule].kip in ("group protocol", "KIP-429", "KIP-345")]


def files(events: Iterable[Event]) -> list[str]:
    return sorted({e.src.file for e in events if e.src is not None})


def of(file: str, events: Iterable[Event]) -> list[Event]:
    return [e for e in events if e.src is not None and e.src.file == file]


def _gap(before: list[Event]) -> list[Event]:
    """A member's log says where lines of it are missing; a coordinator's doesn't have to."""
    if not before or before[-1].observer == "coordinator":
        return []
    last = before[-1]
    return [
        Gap(group=last.group, epoch=last.epoch, generation=last.generation, member=last.member, ts=last.ts, src=last.src, seen_by="member")
    ]


@pytest.mark.parametrize("cooperative", [True, False])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("shift", [0.0, 30.0, -30.0])
def test_the_whole_capture(cooperative: bool, named: bool, shift: float) -> None:
    events = Group(cooperative=cooperative, named=named, clock_shift=shift).run(SCALE)
    assert alarms(events) == []
    (group,) = check(events)
    passed = {rule for rule, r in group.rules.items() if r.checked}
    assert {"generation-increases", "stale-generation-rejected", "zombie-commit-rejected", "join-barrier", "static-slot-held"} <= passed
    assert {"exclusive-assignment", "exclusive-ownership", "static-assignment-kept", "static-return-no-rebalance"} <= passed


@pytest.mark.parametrize("cooperative", [True, False])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("kept", [{BROKER}, {REQUESTS}, {OFFSETS}, {BROKER, OFFSETS}, {REQUESTS, OFFSETS}, {BROKER, REQUESTS}, set[str]()])
@pytest.mark.parametrize("members", ["all", "odd", "none"])
def test_some_of_the_files(cooperative: bool, named: bool, kept: set[str], members: str) -> None:
    events = Group(cooperative=cooperative, named=named).run(SCALE)
    logs = {f for n, f in enumerate(f for f in files(events) if f.startswith("app-")) if members == "all" or (members == "odd" and n % 2)}
    assert alarms(e for e in events if e.src is not None and e.src.file in kept | logs) == []


@settings(derandomize=True, print_blob=True, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS_DRAWN, st.booleans(), st.booleans(), st.data())
def test_any_healthy_group_with_any_stretch_missing(steps: list[str], cooperative: bool, named: bool, data: st.DataObject) -> None:
    events = Group(cooperative=cooperative, named=named).run(steps)
    assert alarms(events) == []
    partial: list[Event] = []
    for file in files(events):
        mine = of(file, events)
        first, last = sorted(data.draw(st.tuples(st.integers(0, len(mine)), st.integers(0, len(mine)))))
        how = data.draw(st.sampled_from(["whole", "none", "early end", "late start", "hole"]))
        hole = [*mine[:first], *_gap(mine[:first]), *mine[last:]]
        partial += {"whole": mine, "none": [], "early end": mine[:first], "late start": mine[first:], "hole": hole}[how]
    assert alarms(partial) == []


@settings(derandomize=True, print_blob=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS_DRAWN, st.booleans(), st.data())
def test_any_healthy_group_with_any_kinds_missing(steps: list[str], cooperative: bool, data: st.DataObject) -> None:
    events = Group(cooperative=cooperative, named=True).run(steps)
    kinds = sorted({(e.observer, e.kind) for e in events} - ESSENTIAL)
    missing = data.draw(st.sets(st.sampled_from(kinds)))
    assert alarms(e for e in events if (e.observer, e.kind) not in missing) == []
