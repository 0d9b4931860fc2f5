"""The world's traces conform whatever part of them was captured: nobody's log, one log less, a window, some kinds of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from test_world_stateful import beginning, broken

from kipcheck.model.runs import settling, walk
from kipcheck.model.scenarios import SCENARIOS
from kipcheck.spec.events import Event

ESSENTIAL = {("coordinator", "leave"), ("coordinator", "expire"), ("member", "revoked"), ("member", "lost")}
"""Whoever shows the rest and hides these tells a lie."""


def by_coordinator(event: Event) -> bool:
    return event.observer in ("coordinator", "any")


@st.composite
def parts(draw: st.DrawFn, events: Sequence[Event]) -> tuple[str, list[Event]]:
    """Part of a trace, in words and events."""
    first, last = sorted(draw(st.tuples(st.integers(0, len(events)), st.integers(0, len(events))), label="from, to"))
    how = draw(st.sampled_from(("members only", "coordinator only", "window", "hole", "kinds", "without", "only")), label="how")
    logs = sorted({e.member for e in events if e.member and not by_coordinator(e)})
    log = draw(st.sampled_from(logs), label="whose") if logs else ""
    kinds = sorted({(e.observer, e.kind) for e in events} - ESSENTIAL)
    missing = draw(st.sets(st.sampled_from(kinds), max_size=6), label="kinds") if kinds and how == "kinds" else set[tuple[str, str]]()
    match how:
        case "members only":
            return how, [e for e in events if not by_coordinator(e)]
        case "coordinator only":
            return how, [e for e in events if by_coordinator(e)]
        case "window":
            return f"{first} to {last}", list(events[first:last])
        case "hole":
            return f"coordinator without {first} to {last}", [
                e for n, e in enumerate(events) if not (first <= n < last and by_coordinator(e))
            ]
        case "kinds":
            return f"without {sorted(missing)}", [e for e in events if (e.observer, e.kind) not in missing]
        case "without":
            return f"without the log of {log}", [e for e in events if e.member != log or by_coordinator(e)]
        case _:
            return f"only the log of {log} beside the coordinator", [e for e in events if e.member == log or by_coordinator(e)]


@pytest.mark.parametrize("old", [False, True])
def test_any_part_of_a_run_conforms(old: bool) -> None:
    @settings(max_examples=250, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(sorted(SCENARIOS)), st.booleans(), st.booleans(), st.data())
    def runs(name: str, eventful: bool, mended: bool, data: st.DataObject) -> None:
        def choose(what: str, options: Sequence[Any], /) -> Any:
            return options[data.draw(st.integers(0, len(options) - 1))] if len(options) > 1 else options[0]

        _, begun = beginning(name, eventful, old, mended)
        steps = list(walk(begun.world, choose, data.draw(st.sampled_from((40, 80)), "length")))
        rest = list(settling(steps[-1].moved.world if steps else begun.world))
        events = [*begun.events, *(event for taken in (*steps, *rest) for event in taken.moved.events)]
        note("\n".join((f"beginning({name!r}, {eventful}, {old}, {mended})[1].world, then replay:", *(str(taken.line) for taken in steps))))
        for _ in range(3):
            what, part = data.draw(parts(events))
            note(what)
            assert not broken(part)

    runs()
