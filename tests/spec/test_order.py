"""One order for what several clocks saw."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.spec.events import Assigned, Event, GenerationStarted, Join, Joined, Revoked, Synced
from kipcheck.spec.order import in_order

SECOND = 1_000_000


def handed_over(late: int = 0, early: int = 0) -> list[Event]:
    """``a`` gives x up and rejoins, ``b`` takes it in generation 3. The clock of ``a`` is ``late`` ahead, that of ``b`` ``early`` behind."""
    g = "g"
    return [
        GenerationStarted(group=g, generation=2, members=("a", "b"), ts=0),
        Synced(group=g, member="a", generation=2, resources=(), ts=1 * SECOND),
        Revoked(group=g, member="a", generation=2, resources=("x",), ts=2 * SECOND + late),
        Join(group=g, member="a", ts=3 * SECOND),
        Join(group=g, member="b", ts=4 * SECOND),
        GenerationStarted(group=g, generation=3, members=("a", "b"), ts=5 * SECOND),
        Joined(group=g, member="a", generation=3, ts=5 * SECOND + 1),
        Joined(group=g, member="b", generation=3, ts=5 * SECOND + 2),
        Synced(group=g, member="b", generation=3, resources=("x",), ts=6 * SECOND),
        Assigned(group=g, member="b", generation=3, resources=("x",), ts=7 * SECOND - early),
    ]


@pytest.mark.parametrize("late", [0, 30 * SECOND, 3600 * SECOND])
@pytest.mark.parametrize("early", [0, 30 * SECOND, 3600 * SECOND])
def test_what_the_protocol_forces_stands_however_wrong_the_clocks_are(late: int, early: int) -> None:
    kinds = [(event.kind, event.member) for event in in_order(handed_over(late, early))]
    assert kinds == [(event.kind, event.member) for event in handed_over()]


@given(st.permutations(range(10)))
@settings(derandomize=True, deadline=None, max_examples=50)
def test_the_order_of_lines_does_not_matter(order: list[int]) -> None:
    events = handed_over(late=30 * SECOND)
    assert in_order([events[place] for place in order]) == in_order(events)


def test_without_times_a_members_own_order_stands() -> None:
    events = [replace(event, ts=None) for event in handed_over()]
    assert in_order(events) == events


def test_a_contradiction_gives_way_to_the_clocks() -> None:
    """A member that gives up in generation 3 what it then takes in generation 2: whatever is true, nothing is lost."""
    own: list[Event] = [
        Assigned(group="g", member="a", generation=3, resources=("x",), ts=1),
        Assigned(group="g", member="a", generation=2, resources=("x",), ts=2),
    ]
    seen = [
        Join(group="g", member="a", ts=3),
        Joined(group="g", member="a", generation=3, ts=4),
        GenerationStarted(group="g", generation=3, ts=5),
    ]
    told = in_order([*own, *seen])
    assert sorted(map(id, told)) == sorted(map(id, [*own, *seen]))
    assert [event for event in told if event in own] == own
