"""Start worlds with just the budget that a mutation needs to show itself, so that the explorer finds it in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from .scenarios import BEFORE_3_4, STATIC_SESSION_MS, Scenario, cast, connect, dynamic, static
from .world import Config, Faults, Menu


def _plans(*configs: Config) -> dict[str, tuple[Config, ...]]:
    return {config.client: (config,) for config in configs}


def _unhurried(config: Config) -> Config:
    """With heartbeats so rare that few moments are to be told apart."""
    return replace(config, heartbeat_interval_ms=9_000)


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
                world=cast(_plans(static("s1", "i1"), dynamic("c1")), topics={"t": 2}, faults=Faults(starts=1, pauses=1, commits=1)),
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
            Scenario(
                name="second-joins",
                what="a second cooperative consumer joins",
                world=cast(_plans(dynamic("c1"), dynamic("c2")), topics={"t": 3}, faults=Faults(starts=1)),
                running=("c1",),
            ),
            Scenario(
                name="first-by-name-joins-last",
                what="a third cooperative consumer joins two, and comes first in every order by name",
                world=cast(_plans(dynamic("c1"), dynamic("c2"), dynamic("c3")), topics={"t": 3}, faults=Faults(starts=1)),
                running=("c2", "c3"),
            ),
            Scenario(
                name="follower-misses-sync",
                what="the SyncGroup of a follower comes late, when the next rebalance has begun",
                world=cast(
                    _plans(*(_unhurried(dynamic(name)) for name in ("c1", "c2", "c3"))), topics={"t": 3}, faults=Faults(starts=1, delays=1)
                ),
                running=("c1", "c2"),
            ),
            Scenario(
                name="follower-misses-sync-before-3.4",
                what="the same, with claims that carry no generation of their own",
                world=cast(
                    _plans(*(_unhurried(replace(dynamic(name), release=BEFORE_3_4)) for name in ("c1", "c2", "c3"))),
                    topics={"t": 3},
                    faults=Faults(starts=1, delays=1),
                ),
                running=("c1", "c2"),
            ),
            Scenario(
                name="late-join",
                what="a JoinGroup comes so late that its member is out",
                world=cast(
                    _plans(_unhurried(dynamic("c1")), _unhurried(dynamic("c2"))), topics={"t": 2}, faults=Faults(starts=1, delays=1)
                ),
                running=("c1",),
            ),
            Scenario(
                name="static-misses-generation",
                what="a static member stands still while another member joins, then goes on",
                world=cast(_plans(static("s1", "i1"), dynamic("c1")), topics={"t": 2}, faults=Faults(starts=1, pauses=1)),
                running=("s1",),
            ),
            Scenario(
                name="twin-overtakes",
                what="a second process of one group.instance.id joins while the first one is in a rebalance of its own making",
                world=cast(
                    _plans(static("s1", "i1"), static("twin", "i1")),
                    topics={"t": 2},
                    faults=Faults(starts=1, subscribes=1),
                    menu=Menu(subscriptions=(("t", "u"),)),
                ),
                running=("s1",),
            ),
            Scenario(
                name="stray-sync",
                what="a leader from before 3.4 whose connection broke assigns a second time in one generation, after the topic grew",
                world=cast(
                    _plans(*(replace(dynamic(name, "range"), release=BEFORE_3_4) for name in ("c1", "c2"))),
                    topics={"t": 1},
                    faults=Faults(starts=1, cuts=1, resizes=1),
                    menu=Menu(sizes=(("t", 3),)),
                ),
                running=("c1",),
            ),
            Scenario(
                name="calm",
                what="nothing happens to two cooperative consumers",
                world=cast(_plans(dynamic("c1"), dynamic("c2")), topics={"t": 2}),
                running=("c1", "c2"),
            ),
            Scenario(
                name="connect-arrivals",
                what="two Connect workers arrive at one that has all the work",
                world=cast(_plans(connect("w1"), connect("w2"), connect("w3")), topics={"A": 3, "B": 3}, faults=Faults(starts=2)),
                running=("w1",),
            ),
            Scenario(
                name="connect-bounce-with-idle-worker",
                what="one of two Connect workers leaves; it comes back, and another one arrives",
                world=cast(
                    _plans(*(_unhurried(replace(connect(name), max_delay_ms=10_000)) for name in ("w1", "w2", "w3"))),
                    topics={"A": 4},
                    faults=Faults(starts=2, closes=1),
                ),
                running=("w1", "w2"),
            ),
            Scenario(
                name="connect-zombie",
                what="a Connect worker stands still, and comes back with its work; lost work does not wait",
                world=cast(
                    _plans(*(_unhurried(replace(connect(name), max_delay_ms=0)) for name in ("w1", "w2"))),
                    topics={"A": 1, "B": 1},
                    faults=Faults(pauses=1),
                ),
                running=("w1", "w2"),
            ),
            Scenario(
                name="connect-pause",
                what="a Connect worker stands still, and comes back with its work",
                world=cast(_plans(connect("w1"), connect("w2")), topics={"A": 2}, faults=Faults(pauses=1)),
                running=("w1", "w2"),
            ),
            Scenario(
                name="connect-arrivals-and-departure",
                what="two Connect workers arrive at one that has all the work, and one departs",
                world=cast(
                    _plans(*(replace(connect(name), heartbeat_interval_ms=20) for name in ("w1", "w2", "w3"))),
                    topics={"A": 6},
                    faults=Faults(starts=2, closes=1),
                ),
                running=("w1",),
            ),
            Scenario(
                name="connect-two-departures",
                what="two of three Connect workers leave, one after the other",
                world=cast(_plans(*(_unhurried(connect(name)) for name in ("w1", "w2", "w3"))), topics={"A": 3}, faults=Faults(closes=2)),
                running=("w1", "w2", "w3"),
            ),
        )
    }
)
