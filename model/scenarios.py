"""Named start worlds with small budgets, for the explorer and for tests.

Timeouts are short and far apart, so that their order is plain: heartbeats every 3 s, sessions 10 s, rebalances 20 s, a
static member's session 40 s, Connect's scheduled delay 60 s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from . import consumer
from .acts import Line, Start
from .choice import Choose, first
from .connect import worker
from .connect.state import Protocol
from .coordinator import NEW_4_0, Release, empty
from .runs import Taken, settling
from .world import Client, Config, Faults, Menu, Moved, World, step

GROUP = "orders"
SESSION_MS = 10_000
STATIC_SESSION_MS = 40_000
REBALANCE_MS = 20_000
HEARTBEAT_MS = 3_000
MAX_DELAY_MS = 60_000
NO_FAULTS = Faults()
ANY = Menu()
BEFORE_3_4 = consumer.Release(claims_generation=False)
PROMPT = replace(NEW_4_0, initial_rebalance_delay_ms=0)
"""A coordinator that does not wait for the first members' companions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A group that has settled with ``running`` members, and what may happen to it then.

    ``world`` is the cast before anything happened; its faults are the budget that `begin` hands on.
    """

    name: str
    what: str
    world: World
    running: tuple[str, ...] = ()

    def begin(self, choose: Choose = first) -> Moved:
        """Start the running members one after the other and let them settle; the budget is untouched."""
        return begin(self.world, self.running, choose)


def begin(world: World, running: Sequence[str], choose: Choose = first) -> Moved:
    """The end of `opening`, with all its events; the budget of ``world`` is untouched."""
    return opened(world, opening(world, running, choose))


def opened(world: World, steps: Iterable[Taken]) -> Moved:
    """The end of an `opening` of ``world``, as `begin` gives it."""
    moved = Moved(world)
    for taken in steps:
        moved = moved.then(taken.moved)
    return replace(moved, world=replace(moved.world, faults=world.faults))


def opening(world: World, running: Sequence[str], choose: Choose = first) -> tuple[Taken, ...]:
    """Each of ``running`` starts and settles before the next one."""
    steps: list[Taken] = []
    for who in running:
        before = replace(steps[-1].moved.world if steps else world, faults=Faults(starts=1))
        steps.append(Taken(before, Line(Start(who)), step(before, Start(who), choose)))
        steps.extend(settling(steps[-1].moved.world, choose))
    return tuple(steps)


EVERYTHING = Faults(
    starts=6,
    crashes=2,
    closes=2,
    pauses=2,
    stalls=2,
    raises=1,
    delays=2,
    cuts=2,
    failovers=1,
    refusals=1,
    resizes=2,
    subscribes=1,
    commits=6,
)
_CONSUMERS = Menu(sizes=(("t", 4), ("u", 1), ("u", 0)), subscriptions=(("t",), ("t", "u"), ()))
_CONNECT = Menu(sizes=(("A", 1), ("A", 3), ("B", 0), ("C", 2)))


def lively(scenario: Scenario) -> Scenario:
    """The scenario with a bit of everything in its budget, for random walks."""
    menu = _CONNECT if any(isinstance(plan, worker.Config) for client in scenario.world.clients for plan in client.plans) else _CONSUMERS
    return replace(scenario, world=replace(scenario.world, faults=EVERYTHING, menu=menu))


def cast(
    plans: Mapping[str, Sequence[Config]],
    *,
    topics: Mapping[str, int],
    faults: Faults = NO_FAULTS,
    menu: Menu = ANY,
    release: Release = PROMPT,
    racks: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> World:
    """A world in which nothing has happened: a client for each of ``plans``, all absent."""
    return World(
        group_id=GROUP,
        release=release,
        group=empty(GROUP),
        clients=tuple(Client(name, tuple(configs)) for name, configs in plans.items()),
        topics=tuple(sorted(topics.items())),
        racks=tuple(sorted(racks.items())),
        faults=faults,
        menu=menu,
    )


def dynamic(name: str, *assignors: str, topics: Sequence[str] = ("t",), defects: frozenset[str] = frozenset()) -> consumer.Config:
    """A consumer without group.instance.id; cooperative unless assignors are named."""
    return consumer.Config(
        process=name,
        group=GROUP,
        client=name,
        topics=tuple(topics),
        assignors=assignors or ("cooperative-sticky",),
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        max_poll_interval_ms=REBALANCE_MS,
        defects=defects,
    )


def static(
    name: str, instance: str, *assignors: str, topics: Sequence[str] = ("t",), defects: frozenset[str] = frozenset()
) -> consumer.Config:
    """A consumer with a group.instance.id, whose session outlasts a rebalance."""
    config = dynamic(name, *assignors, topics=topics, defects=defects)
    return replace(config, instance=instance, session_timeout_ms=STATIC_SESSION_MS)


def connect(name: str, protocol: Protocol = "sessioned", *, defects: frozenset[str] = frozenset()) -> worker.Config:
    """A Connect worker."""
    return worker.Config(
        process=name,
        group=GROUP,
        client=name,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        max_delay_ms=MAX_DELAY_MS,
        protocol=protocol,
        defects=defects,
    )


def _plans(*configs: Config) -> dict[str, tuple[Config, ...]]:
    return {config.client: (config,) for config in configs}


SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        scenario.name: scenario
        for scenario in (
            Scenario(
                name="two-cooperative",
                what="a second cooperative consumer joins, or one of them is lost",
                world=cast(
                    _plans(dynamic("c1"), dynamic("c2"), dynamic("c3")),
                    topics={"t": 3},
                    faults=Faults(starts=1, crashes=1),
                ),
                running=("c1", "c2"),
            ),
            Scenario(
                name="eager",
                what="a third consumer joins two that use range",
                world=cast(
                    _plans(dynamic("c1", "range"), dynamic("c2", "range"), dynamic("c3", "range")),
                    topics={"t": 3},
                    faults=Faults(starts=1, crashes=1),
                ),
                running=("c1", "c2"),
            ),
            Scenario(
                name="static-restart",
                what="static members crash and come back within their session timeout",
                world=cast(
                    _plans(static("s1", "i1"), static("s2", "i2")),
                    topics={"t": 2},
                    faults=Faults(starts=1, crashes=1),
                ),
                running=("s1", "s2"),
            ),
            Scenario(
                name="static-absent",
                what="a static member is away while a dynamic one joins",
                world=cast(
                    _plans(static("s1", "i1"), dynamic("c1")),
                    topics={"t": 2},
                    faults=Faults(starts=2, crashes=1),
                ),
                running=("s1",),
            ),
            Scenario(
                name="static-twins",
                what="two processes share one group.instance.id",
                world=cast(
                    _plans(static("s1", "i1"), static("twin", "i1"), static("s2", "i2")),
                    topics={"t": 2},
                    faults=Faults(starts=1, pauses=1, commits=1),
                ),
                running=("s1", "s2"),
            ),
            Scenario(
                name="rolling-upgrade",
                what="members move from range to cooperative-sticky, one bounce after the other",
                world=cast(
                    {
                        name: (
                            dynamic(name, "range"),
                            dynamic(name, "range", "cooperative-sticky"),
                            dynamic(name, "cooperative-sticky"),
                        )
                        for name in ("c1", "c2")
                    },
                    topics={"t": 2},
                    faults=Faults(starts=4, closes=4),
                ),
                running=("c1", "c2"),
            ),
            Scenario(
                name="failover",
                what="the coordinator moves while a static member joins",
                world=cast(
                    _plans(static("s1", "i1"), static("s2", "i2")),
                    topics={"t": 2},
                    faults=Faults(starts=1, failovers=1),
                ),
                running=("s1",),
            ),
            Scenario(
                name="mixed",
                what="a cooperative group with a member that still runs eagerly, and a static one",
                world=cast(
                    _plans(dynamic("c1", "range", "cooperative-sticky"), dynamic("c2"), static("s1", "i1")),
                    topics={"t": 3},
                    faults=Faults(starts=1, crashes=1),
                ),
                running=("c1", "s1"),
            ),
            Scenario(
                name="patient-session",
                what="a member stands still for longer than the rebalance timeout, but not for its session timeout",
                world=cast(
                    _plans(replace(dynamic("c1"), session_timeout_ms=STATIC_SESSION_MS), dynamic("c2")),
                    topics={"t": 2},
                    faults=Faults(starts=1, pauses=1, commits=1),
                ),
                running=("c1",),
            ),
            Scenario(
                name="slow-callback",
                what="a callback takes longer than max.poll.interval.ms, or its process stands still, while another member joins",
                world=cast(
                    _plans(dynamic("c1"), dynamic("c2")),
                    topics={"t": 2},
                    faults=Faults(starts=1, stalls=1, pauses=1, commits=1),
                ),
                running=("c1",),
            ),
            Scenario(
                name="failed-callback",
                what="a callback throws",
                world=cast(
                    _plans(dynamic("c1"), dynamic("c2")),
                    topics={"t": 2},
                    faults=Faults(starts=1, raises=1),
                ),
                running=("c1",),
            ),
            Scenario(
                name="lost-connection",
                what="connections break while a member joins; what was sent may still arrive",
                world=cast(
                    _plans(dynamic("c1"), static("s1", "i1")),
                    topics={"t": 2},
                    faults=Faults(starts=1, cuts=1),
                ),
                running=("c1",),
            ),
            Scenario(
                name="repeated-sync",
                what="a leader from before 3.4 whose connection broke assigns a second time in one generation, after the topic grew",
                world=cast(
                    _plans(*(replace(dynamic(name, "range"), release=BEFORE_3_4) for name in ("c1", "c2"))),
                    topics={"t": 1},
                    faults=Faults(starts=1, cuts=1, resizes=1),
                    menu=Menu(sizes=(("t", 2),)),
                ),
                running=("c1",),
            ),
            Scenario(
                name="refused-append",
                what="the log refuses the assignment",
                world=cast(
                    _plans(dynamic("c1"), static("s1", "i1")),
                    topics={"t": 2},
                    faults=Faults(starts=2, crashes=1, refusals=1),
                ),
                running=("c1",),
            ),
            Scenario(
                name="growth",
                what="a topic grows, another appears, subscriptions change",
                world=cast(
                    _plans(dynamic("c1", topics=("t", "u")), dynamic("c2", topics=("t", "u"))),
                    topics={"t": 1},
                    faults=Faults(resizes=1, subscribes=1),
                    menu=Menu(sizes=(("t", 2), ("u", 1)), subscriptions=(("t",), ("u",), ())),
                ),
                running=("c1", "c2"),
            ),
            Scenario(
                name="sticky",
                what="consumers that use the eager sticky assignor miss generations and come back with old claims",
                world=cast(
                    _plans(dynamic("c1", "sticky"), dynamic("c2", "sticky")),
                    topics={"t": 2},
                    faults=Faults(pauses=1),
                ),
                running=("c1", "c2"),
            ),
            Scenario(
                name="racks",
                what="consumers in two racks, each served by a replica in its own",
                world=cast(
                    _plans(replace(dynamic("c1"), rack="a"), replace(dynamic("c2"), rack="a"), replace(dynamic("c3"), rack="b")),
                    topics={"t": 3},
                    racks={"t-0": ("b",), "t-1": ("a",), "t-2": ("a", "b")},
                    faults=Faults(starts=2, crashes=1),
                ),
                running=("c1",),
            ),
            Scenario(
                name="before-3.4",
                what="cooperative consumers whose claims carry no generation of their own, as before 3.4, miss generations",
                world=cast(
                    _plans(*(replace(dynamic(name), release=BEFORE_3_4) for name in ("c1", "c2", "c3"))),
                    topics={"t": 3},
                    faults=Faults(starts=1, pauses=1, delays=1),
                ),
                running=("c1", "c2"),
            ),
            Scenario(
                name="connect-departures",
                what="two of three Connect workers depart, one after the other",
                world=cast(
                    _plans(connect("w1"), connect("w2"), connect("w3")),
                    topics={"A": 3},
                    faults=Faults(starts=1, closes=2),
                ),
                running=("w1", "w2", "w3"),
            ),
            Scenario(
                name="connect-backoff",
                what="workers arrive in a row, so that revocations follow one another, and one departs",
                world=cast(
                    _plans(*(connect(f"w{n}") for n in range(1, 5))),
                    topics={"A": 8},
                    faults=Faults(starts=2, closes=1),
                ),
                running=("w1", "w2"),
            ),
            Scenario(
                name="connect-downgrade",
                what="a worker that knows no incremental protocol joins",
                world=cast(
                    _plans(connect("w1"), connect("w2", "eager")),
                    topics={"A": 2},
                    faults=Faults(starts=1, crashes=1),
                ),
                running=("w1",),
            ),
            Scenario(
                name="connect-bounce",
                what="a Connect worker bounces",
                world=cast(
                    _plans(connect("w1"), connect("w2")),
                    topics={"A": 2},
                    faults=Faults(starts=1, crashes=1),
                ),
                running=("w1", "w2"),
            ),
            Scenario(
                name="connect-scale",
                what="a third Connect worker arrives, connectors come and go",
                world=cast(
                    _plans(connect("w1"), connect("w2"), connect("w3")),
                    topics={"A": 2, "B": 1},
                    faults=Faults(starts=1, resizes=1),
                    menu=Menu(sizes=(("A", 1), ("B", 0), ("C", 2))),
                ),
                running=("w1", "w2"),
            ),
        )
    }
)
