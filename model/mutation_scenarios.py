"""Start worlds with just the budget that a mutation needs to show itself, so that the explorer finds it in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from .scenarios import STATIC_SESSION_MS, Scenario, cast, connect, dynamic, static
from .world import Config, Faults


def _plans(*configs: Config) -> dict[str, tuple[Config, ...]]:
    return {config.client: (config,) for config in configs}


SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        scenario.name: scenario
        for scenario in (
            Scenario(
                name="third-joins",
                what="a third cooperative consumer joins two",
                world=cast(_plans(dynamic("c1"), dynamic("c2"), dynamic("c3")), topics={"t": 3}, faults=Faults(starts=1)),
                running=("c1", "c2"),
            ),
            Scenario(
                name="first-joins",
                what="two cooperative consumers form a group",
                world=cast(_plans(dynamic("c1"), dynamic("c2")), topics={"t": 2}, faults=Faults(starts=2)),
            ),
            Scenario(
                name="laggard",
                what="a member stands still for longer than the rebalance timeout, but not for its session timeout",
                world=cast(
                    _plans(replace(dynamic("c1"), session_timeout_ms=STATIC_SESSION_MS), dynamic("c2")),
                    topics={"t": 2},
                    faults=Faults(starts=1, pauses=1),
                ),
                running=("c1",),
            ),
            Scenario(
                name="two-assignors",
                what="a cooperative consumer joins two that offer another assignor, too",
                world=cast(
                    _plans(dynamic("c1", "range", "cooperative-sticky"), dynamic("c2", "range", "cooperative-sticky"), dynamic("c3")),
                    topics={"t": 3},
                    faults=Faults(starts=1),
                ),
                running=("c1", "c2"),
            ),
            Scenario(
                name="static-laggard",
                what="a static member stands still while another member joins, then commits",
                world=cast(
                    _plans(static("s1", "i1"), dynamic("c1")), topics={"t": 2}, faults=Faults(starts=1, pauses=1, commits=1)
                ),
                running=("s1",),
            ),
            Scenario(
                name="static-return",
                what="a static member crashes and comes back",
                world=cast(_plans(static("s1", "i1")), topics={"t": 2}, faults=Faults(starts=1, crashes=1)),
                running=("s1",),
            ),
            Scenario(
                name="static-departure",
                what="a static member crashes, another member joins, the static one comes back",
                world=cast(_plans(static("s1", "i1"), dynamic("c1")), topics={"t": 2}, faults=Faults(starts=2, crashes=1)),
                running=("s1",),
            ),
            Scenario(
                name="static-close",
                what="a static member closes",
                world=cast(_plans(static("s1", "i1")), topics={"t": 2}, faults=Faults(closes=1)),
                running=("s1",),
            ),
            Scenario(
                name="twins",
                what="a second process starts under a static member's group.instance.id",
                world=cast(_plans(static("s1", "i1"), static("twin", "i1")), topics={"t": 2}, faults=Faults(starts=1)),
                running=("s1",),
            ),
            Scenario(
                name="connect-arrival",
                what="a second Connect worker arrives",
                world=cast(_plans(connect("w1"), connect("w2")), topics={"A": 3}, faults=Faults(starts=1)),
                running=("w1",),
            ),
            Scenario(
                name="connect-departure",
                what="one of two Connect workers departs, and may come back",
                world=cast(_plans(connect("w1"), connect("w2")), topics={"A": 3}, faults=Faults(starts=1, crashes=1)),
                running=("w1", "w2"),
            ),
        )
    }
)
