"""A monitor is only told the kinds of events that it says it hears. What it would say of the others is nothing."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.spec import MONITORS, Monitor, Settings
from kipcheck.spec.coordinator import Coordinator
from kipcheck.spec.events import Event
from kipcheck.spec.rounds import identities, requests

from ..strategies import events as any_event
from .healthy import STEPS, Group
from .test_examples import EXAMPLES, load

NAMES = sorted(path.name for path in EXAMPLES.iterdir())


@pytest.mark.parametrize("monitor", MONITORS.values(), ids=MONITORS)
def test_who_listens_says_to_what(monitor: type[Monitor]) -> None:
    assert bool(monitor.hears) == (monitor.request is not Monitor.request)


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_need_no_more(name: str) -> None:
    assert_enough(load(name))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=6), st.booleans())
def test_groups_at_random_need_no_more(steps: list[str], cooperative: bool) -> None:
    assert_enough(Group(cooperative=cooperative, named=True).run(steps))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(any_event(), max_size=30))
def test_nonsense_needs_no_more(events: list[Event]) -> None:
    few = [replace(e, member=e.member and e.member[:1], generation=e.generation and e.generation % 3, epoch=0) for e in events]
    assert_enough(few)


def assert_enough(events: Sequence[Event]) -> None:
    """Told of everything, a monitor says nothing of what it does not hear, and stays as it was."""
    group = Coordinator(identities(events))
    judges = [monitor(Settings()) for monitor in MONITORS.values()]
    for event in requests(events):
        group.enter(event.epoch)
        for judge in judges:
            deaf = type(event) not in judge.hears
            before = pickle.dumps(vars(judge)) if deaf else b""
            said = [*judge.request(event, group)]
            assert not deaf or (said == [] and pickle.dumps(vars(judge)) == before), (judge.rule.id, event.kind)
        group.apply(event)
