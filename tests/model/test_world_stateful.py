"""The closed world under random schedules and faults: every trace conforms, every run comes to rest, every goal is reached.

A failure prints the scenario and a script: ``replay(lively(SCENARIOS[name]).begin().world, script)`` runs it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.model.goals import GOALS, reached
from kipcheck.model.runs import Taken, quiet, unrest, walk
from kipcheck.model.scenarios import MAX_DELAY_MS, SCENARIOS, lively
from kipcheck.model.world import Moved
from kipcheck.spec import RULES, Finding, Settings, check
from kipcheck.spec.events import Event, GenerationStarted, Replace

ASSUMED = Settings(clock_skew_ms=1, max_delay_ms=MAX_DELAY_MS)
"""The world has one clock; a broker's timer may fire 1 ms early (kafka.utils.timer.SystemTimer), by event numbers too."""


@cache
def beginning(name: str) -> Moved:
    return lively(SCENARIOS[name]).begin()


def run(name: str, choose: Any, length: int) -> tuple[Moved, list[Taken]]:
    """A walk and the rest after it, with the trace of both."""
    begun = beginning(name)
    steps = list(walk(begun.world, choose, length))
    world = steps[-1].moved.world if steps else begun.world
    events = [*begun.events, *(event for taken in steps for event in taken.moved.events)]
    rest = quiet(world)
    return Moved(rest.world, (*events, *rest.events)), steps


def broken(events: Iterable[Event]) -> list[Finding]:
    """Broken promises, documented behaviour excepted: that is a warning which names it."""
    findings = [f for group in check(events, ASSUMED) for f in group.findings if RULES[f.rule].kip != "cost"]
    assert all(f.relaxed for f in findings if f.severity == "warning")
    return [f for f in findings if f.severity == "error"]


def known_to_last(complaint: str, events: Sequence[Event]) -> bool:
    """Unrest that Kafka itself never ends without another rebalance.

    A static member that comes back to a stable group cuts a hand-over short, for it claims nothing any more; a static leader
    that comes back takes the metadata of that moment for what it assigned (KIP-814), and so misses what grew while it was away.
    A new Connect leader does not know what was deleted before its time.
    """
    started = max((at for at, event in enumerate(events) if isinstance(event, GenerationStarted)), default=0)
    returned = any(isinstance(event, Replace) for event in events[started:])
    return (returned and complaint.startswith(("nobody owns", "unbalanced"))) or complaint.startswith("owned though nobody should: task")


def script(name: str, steps: Sequence[Taken]) -> str:
    return "\n".join((f"scenario {name}, script:", *(str(taken.line) for taken in steps)))


def test_every_run_conforms_and_rests_and_every_goal_is_reached() -> None:
    goals: Counter[str] = Counter()

    @settings(max_examples=400, derandomize=True, deadline=None, database=None)
    @given(name=st.sampled_from(sorted(SCENARIOS)), data=st.data())
    def runs(name: str, data: st.DataObject) -> None:
        def choose(what: str, options: Sequence[Any], /) -> Any:
            return options[data.draw(st.integers(0, len(options) - 1))] if len(options) > 1 else options[0]

        moved, steps = run(name, choose, data.draw(st.sampled_from((40, 80, 120)), "length"))
        goals.update(goal for taken in steps for goal in reached(taken))
        assert not broken(moved.events), script(name, steps)
        lasting = [complaint for complaint in unrest(moved.world) if not known_to_last(complaint, moved.events)]
        assert not lasting, f"{lasting} after {script(name, steps)}"

    runs()
    missing = sorted(set(GOALS) - set(goals))
    assert not missing, f"never reached: {missing}; reached: {dict(goals)}"
