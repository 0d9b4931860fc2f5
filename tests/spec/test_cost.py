"""What the cost rules call a storm, needless movement and stop-the-world, and what they leave alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest

from kipcheck.spec.events import (
    Assigned,
    Assignment,
    Crashed,
    Event,
    Gap,
    GenerationStarted,
    Join,
    Joined,
    Load,
    Lost,
    MemberInfo,
    Owned,
    Rebalance,
    Revoked,
    Sync,
    Synced,
    Topics,
)
from kipcheck.spec.results import Broken, Held, Outcome, Settings, Unknown
from kipcheck.spec.rounds import rounds
from kipcheck.spec.rule import Monitor
from kipcheck.spec.rules.cost import NeedlessMovement, RebalanceStorm, StopTheWorld

G = "orders"
START = 1_772_442_000_000_000
FOLLOW_UP = "Updating metadata for member c1 during Stable; client reason: not provided"


def at(seconds: float) -> int:
    return START + int(seconds * 1_000_000)


def judge(monitor: type[Monitor], events: Sequence[Event]) -> list[Outcome]:
    watching, history = monitor(Settings()), rounds(events)
    outcomes = [o for i, now in enumerate(history) for o in watching.round(now, history[max(0, i - 8) : i])]
    return outcomes + list(watching.end(history[-8:]))


def broken(outcomes: Iterable[Outcome]) -> list[Broken]:
    return [o for o in outcomes if isinstance(o, Broken)]


def held(outcomes: Iterable[Outcome]) -> int:
    return sum(o.times for o in outcomes if isinstance(o, Held))


def unknown(outcomes: Iterable[Outcome]) -> list[str]:
    return [o.why for o in outcomes if isinstance(o, Unknown)]


# Storms.


def rebalanced(
    count: int,
    every: float = 30,
    *,
    reason: str | None = FOLLOW_UP,
    protocol: str | None = "range",
    members: Sequence[str] = ("c1", "c2"),
    took: float = 1,
) -> list[Event]:
    """A group that is at generation 1 and rebalances ``count`` times with the same members."""
    events: list[Event] = [GenerationStarted(group=G, ts=at(0), generation=1, members=tuple(members), protocol=protocol)]
    for n in range(count):
        begin = 600 + n * every
        events.append(Rebalance(group=G, ts=at(begin), generation=n + 1, reason=reason))
        events.append(GenerationStarted(group=G, ts=at(begin + took), generation=n + 2, members=tuple(members), protocol=protocol))
    return events


@pytest.mark.parametrize(
    ("protocol", "count", "storm"),
    [
        ("range", 4, False),
        ("range", 5, True),
        ("cooperative-sticky", 4, False),
        ("cooperative-sticky", 5, True),
        ("default", 5, True),
        (None, 4, False),
        (None, 5, True),
    ],
)
def test_five_rebalances_without_a_cause_are_a_storm(protocol: str | None, count: int, storm: bool) -> None:
    assert bool(broken(judge(RebalanceStorm, rebalanced(count, protocol=protocol)))) is (storm and protocol != "default")


def test_a_storm_names_its_span_peak_and_reasons() -> None:
    (finding,) = broken(judge(RebalanceStorm, rebalanced(6, 15)))
    assert "6 times in a row (generations 2 to 7), 4 within one minute" in finding.message
    assert finding.generation == 2
    assert finding.detail == "repeats"
    assert finding.argument[-1].says == "reasons given: updating metadata for member (6x)"


def test_rebalances_outside_the_storm_held() -> None:
    outcomes = judge(RebalanceStorm, rebalanced(6))
    assert held(outcomes) == 1
    assert len(broken(outcomes)) == 1


@pytest.mark.parametrize(("every", "storm"), [(75, True), (76, False)])
def test_five_minutes_are_the_window(every: float, storm: bool) -> None:
    assert bool(broken(judge(RebalanceStorm, rebalanced(20, every)))) is storm


def test_storms_apart_are_two_findings_with_their_own_generations() -> None:
    first = rebalanced(6)
    later = [
        event
        for n in range(6)
        for event in (
            Rebalance(group=G, ts=at(9000 + n * 20), generation=7 + n, reason=FOLLOW_UP),
            GenerationStarted(group=G, ts=at(9001 + n * 20), generation=8 + n, members=("c1", "c2"), protocol="range"),
        )
    ]
    assert [f.generation for f in broken(judge(RebalanceStorm, [*first, *later]))] == [2, 8]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(rebalanced(8, protocol="stream"), id="Streams"),
        pytest.param(rebalanced(8, members=("app-StreamThread-1-consumer-x",)), id="Streams known by its client only"),
        pytest.param(rebalanced(8, reason=f"{FOLLOW_UP[:43]}; client reason: Scheduled probing rebalance"), id="probing"),
        pytest.param(
            rebalanced(8, reason="Leader c1 re-joining group during Stable; client reason: cached metadata has changed"), id="metadata"
        ),
        pytest.param(
            rebalanced(8, reason="Leader c1 re-joining group during Stable; client reason: "), id="a leader that does not say why"
        ),
        pytest.param(rebalanced(8, reason="Adding new member c2 with group instance id None"), id="a member that bounces"),
        pytest.param(rebalanced(8, protocol="sessioned"), id="Connect, where configurations change unseen"),
    ],
)
def test_no_storm(events: list[Event]) -> None:
    assert broken(judge(RebalanceStorm, events)) == []


def test_a_leader_that_says_why_is_no_outside_event() -> None:
    reason = "Leader c1 re-joining group during Stable; client reason: need to revoke partitions and re-join"
    assert broken(judge(RebalanceStorm, rebalanced(8, reason=reason)))


def test_only_streams_rebalances_leave_it_unknown() -> None:
    assert unknown(judge(RebalanceStorm, rebalanced(8, protocol="stream"))) == ["all rebalances were Kafka Streams' own"]
    assert unknown(judge(RebalanceStorm, [Load(group=G, ts=at(0), generation=3)])) == ["no rebalance was seen to begin"]


def test_connect_configurations_may_change_behind_any_words() -> None:
    events = [
        event
        for n in range(8)
        for event in (
            Rebalance(group=G, ts=at(n * 20), generation=n, reason=FOLLOW_UP),
            GenerationStarted(group=G, ts=at(n * 20 + 1), generation=n + 1, protocol="sessioned"),
        )
    ]
    assert broken(judge(RebalanceStorm, events)) == []


def joins(count: int, every: float) -> list[Event]:
    """Every rebalance has its new member."""
    events: list[Event] = []
    for n in range(count):
        members = tuple(f"c{i}" for i in range(n + 1))
        reason = f"Adding new member c{n} with group instance id None"
        events.append(Rebalance(group=G, ts=at(n * every), generation=n, reason=reason))
        events.append(GenerationStarted(group=G, ts=at(n * every + 1), generation=n + 1, members=members, protocol="range"))
    return events


def test_members_that_join_one_by_one_are_no_storm() -> None:
    assert broken(judge(RebalanceStorm, joins(20, 15))) == []


@pytest.mark.parametrize(("count", "storm"), [(29, False), (30, True)])
def test_thirty_in_five_minutes_are_a_storm_whatever_the_cause(count: int, storm: bool) -> None:
    assert [f.detail for f in broken(judge(RebalanceStorm, joins(count, 10)))] == (["rate"] if storm else [])


def test_changed_topics_are_a_cause() -> None:
    events: list[Event] = []
    for n in range(8):
        events.append(Topics(group=G, ts=at(n * 20), topics={"orders": n + 1}))
        events.append(Rebalance(group=G, ts=at(n * 20 + 1), generation=n, reason=FOLLOW_UP))
        events.append(GenerationStarted(group=G, ts=at(n * 20 + 2), generation=n + 1, members=("c1",), protocol="range"))
    assert broken(judge(RebalanceStorm, events)) == []
    assert broken(judge(RebalanceStorm, [e for e in events if not isinstance(e, Topics)]))


def test_unlisted_members_without_a_reason_may_be_other_members() -> None:
    events = [
        event
        for n in range(8)
        for event in (Rebalance(group=G, ts=at(n * 20), generation=n), GenerationStarted(group=G, ts=at(n * 20 + 1), generation=n + 1))
    ]
    assert broken(judge(RebalanceStorm, events)) == []


def test_unlisted_members_with_a_reason_that_names_no_cause() -> None:
    events = [
        event
        for n in range(8)
        for event in (
            Rebalance(group=G, ts=at(n * 20), generation=n, reason=FOLLOW_UP),
            GenerationStarted(group=G, ts=at(n * 20 + 1), generation=n + 1),
        )
    ]
    assert broken(judge(RebalanceStorm, events))


def test_a_missing_generation_or_another_epoch_may_hide_a_cause() -> None:
    skipped = [GenerationStarted(group=G, ts=at(n * 20), generation=2 * n, members=("c1",), protocol="range") for n in range(8)]
    reloaded = [GenerationStarted(group=G, ts=at(n * 20), epoch=n, generation=n + 1, members=("c1",), protocol="range") for n in range(8)]
    assert broken(judge(RebalanceStorm, skipped)) == []
    assert broken(judge(RebalanceStorm, reloaded)) == []


@pytest.mark.parametrize(("took", "storm"), [(20, False), (40, True)])
def test_most_of_the_time_spent_rebalancing(took: float, storm: bool) -> None:
    events: list[Event] = []
    for n in range(5):
        reason = f"Adding new member c{n} with group instance id None"
        events.append(Rebalance(group=G, ts=at(n * 60), generation=n, reason=reason))
        members = tuple(f"c{i}" for i in range(n + 1))
        events.append(GenerationStarted(group=G, ts=at(n * 60 + took), generation=n + 1, members=members, protocol="range"))
    assert [f.detail for f in broken(judge(RebalanceStorm, events))] == (["busy"] if storm else [])


def test_connect_may_take_three_generations_for_each_change() -> None:
    """Two workers come: a revocation and a follow-up each, which the broker calls new metadata."""
    assert broken(judge(RebalanceStorm, connect_follow_ups(2))) == []
    assert broken(judge(RebalanceStorm, connect_follow_ups(6)))


def connect_follow_ups(each: int) -> list[Event]:
    events: list[Event] = []
    generation = 0
    for worker in (1, 2):
        members = tuple(f"w{i}" for i in range(1, worker + 1))
        for n in range(each + 1):
            generation += 1
            reason = f"Adding new member w{worker} with group instance id None" if n == 0 else FOLLOW_UP.replace("c1", "w1")
            ts = worker * 100 + n * 10
            events.append(Rebalance(group=G, ts=at(ts), generation=generation - 1, reason=reason))
            events.append(GenerationStarted(group=G, ts=at(ts + 1), generation=generation, members=members, protocol="sessioned"))
            events.append(Synced(group=G, ts=at(ts + 2), generation=generation, member="w1", revoked=("task:a-0",), resources=()))
    return events


def owning(
    generation: int,
    ts: float | None,
    owns: Mapping[str, Sequence[str]],
    protocol: str = "range",
    subscribed: Sequence[str] | None = ("orders",),
) -> Assignment:
    return Assignment(
        group=G,
        ts=None if ts is None else at(ts),
        generation=generation,
        protocol=protocol,
        assignment={m: tuple(r) for m, r in owns.items()},
        members={m: MemberInfo(subscribed=None if subscribed is None else tuple(subscribed)) for m in owns},
    )


ONE = {"c1": ["orders-0"], "c2": ["orders-1"]}
OTHER = {"c1": ["orders-1"], "c2": ["orders-0"]}


def alternating(count: int, pause: float | None = 400, reason: str | None = FOLLOW_UP) -> list[Event]:
    events: list[Event] = []
    for n in range(count):
        ts = None if pause is None else n * pause
        begin = None if ts is None else at(ts)
        events.append(Rebalance(group=G, ts=begin, generation=n, reason=reason))
        events.append(owning(n + 1, None if ts is None else ts + 1, ONE if n % 2 else OTHER))
    return events


@pytest.mark.parametrize(
    ("events", "storm"),
    [
        pytest.param(alternating(5), False, id="the first may have had a cause"),
        pytest.param(alternating(6), True, id="the third time"),
        pytest.param(alternating(6, None), True, id="no clock is needed"),
        pytest.param(alternating(6, 601), False, id="too far apart"),
        pytest.param(alternating(6, reason=None), False, id="the cause is not known"),
        pytest.param(alternating(6, reason="Leader c1 re-joining group during Stable"), False, id="a cause outside"),
        pytest.param(
            [
                replace(e, reason="Leader c1 re-joining group") if isinstance(e, Rebalance) and e.generation == 4 else e
                for e in alternating(8)
            ],
            False,
            id="a cause outside half way",
        ),
    ],
)
def test_the_same_state_three_times_without_a_cause_is_a_livelock(events: list[Event], storm: bool) -> None:
    assert [f.detail for f in broken(judge(RebalanceStorm, events))] == (["livelock"] if storm else [])


def test_states_that_differ_are_no_livelock() -> None:
    events: list[Event] = []
    for n in range(8):
        events.append(Rebalance(group=G, ts=at(n * 400), generation=n, reason=FOLLOW_UP))
        events.append(owning(n + 1, n * 400 + 1, {"c1": [f"orders-{n}"], "c2": []}))
    assert broken(judge(RebalanceStorm, events)) == []


def test_a_member_with_another_clock_does_not_order_generations() -> None:
    events = [Joined(group=G, ts=at(600 - n * 60), generation=n + 1, member="c1", protocol="range", seen_by="member") for n in range(8)]
    assert held(judge(RebalanceStorm, events)) == 8


# Movement.


def two(
    before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]], protocol: str = "range", **more: Sequence[str] | None
) -> list[Event]:
    return [owning(1, 0, before, protocol, **more), owning(2, 60, after, protocol, **more)]


THREE = {"c1": ["orders-0", "orders-1"], "c2": ["orders-2"]}


@pytest.mark.parametrize(
    ("before", "after", "moved", "minimum"),
    [
        pytest.param(THREE, {"c1": ["orders-0"], "c2": ["orders-1"], "c3": ["orders-2"]}, 2, 1, id="range deals anew"),
        pytest.param(THREE, {"c1": ["orders-0"], "c2": ["orders-2"], "c3": ["orders-1"]}, 1, 1, id="sticky"),
        pytest.param(ONE, OTHER, 2, 0, id="a swap"),
        pytest.param(ONE, {"c1": ["orders-0", "orders-1"]}, 1, 1, id="a departure"),
        pytest.param(
            {"c1": ["orders-0", "orders-1"], "c2": ["orders-2", "orders-3"], "c3": ["orders-4", "orders-5"]},
            {"c1": ["orders-0", "orders-1", "orders-4"], "c3": ["orders-2", "orders-3", "orders-5"]},
            3,
            2,
            id="a departure that moves another's too",
        ),
        pytest.param({"c1": ["orders-0"]}, {"c1": ["orders-1"], "c2": ["orders-0"]}, 1, 0, id="a partition that is new"),
        pytest.param({"c1": ["orders-0", "orders-1"]}, {"c1": ["orders-0"]}, 0, 0, id="a partition that is gone"),
    ],
)
def test_moves_against_the_least_that_balances(
    before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]], moved: int, minimum: int
) -> None:
    outcomes = judge(NeedlessMovement, two(before, after))
    if moved <= minimum:
        assert held(outcomes) == 1
        assert broken(outcomes) == []
    else:
        (finding,) = broken(outcomes)
        assert len(finding.resources) == moved
        assert f"where {minimum} had to" in finding.message
        assert finding.generation == 2


@pytest.mark.parametrize(
    ("protocol", "advice"), [("range", "CooperativeStickyAssignor"), ("roundrobin", "CooperativeStickyAssignor"), ("sticky", None)]
)
def test_advice_names_what_to_change(protocol: str, advice: str | None) -> None:
    (finding,) = broken(judge(NeedlessMovement, two(ONE, OTHER, protocol)))
    assert (finding.advice is None) if advice is None else (finding.advice is not None and advice in finding.advice)


def with_rack(events: list[Event]) -> list[Event]:
    joined = Join(group=G, ts=at(30), member="c1", rack="a", subscribed=("orders",))
    return [*events, joined, Joined(group=G, ts=at(59), member="c1", generation=2)]


@pytest.mark.parametrize(
    ("events", "verdict"),
    [
        pytest.param(two(ONE, OTHER, subscribed=None), "broken", id="owning a partition shows the subscription"),
        pytest.param(two({"c1": ["a-0"], "c2": ["b-0"]}, {"c1": ["b-0"], "c2": ["a-0"]}, subscribed=("a", "b")), "broken", id="two topics"),
        pytest.param(
            two({"c1": ["a-0"], "c2": ["a-1"], "c3": ["b-0"]}, {"c1": ["a-1"], "c2": ["a-0"], "c3": ["b-0"]}, subscribed=None),
            "the members' subscriptions were not captured",
            id="two topics, subscriptions not known",
        ),
        pytest.param(two(ONE, OTHER, subscribed=("invoices",)), "members subscribe to different topics", id="another topic"),
        pytest.param(two(ONE, OTHER, "stream"), "Kafka Streams places tasks by the state that a member has", id="Streams"),
        pytest.param(with_rack(two(ONE, OTHER)), "members name racks: a partition may move to be near its replica", id="racks"),
    ],
)
def test_when_the_minimum_is_known(events: list[Event], verdict: str) -> None:
    outcomes = judge(NeedlessMovement, events)
    assert (["broken"] if broken(outcomes) else unknown(outcomes)) == [verdict]


def test_an_idle_member_whose_subscription_is_not_known() -> None:
    before = {"c1": ["orders-0", "orders-1"], "c2": ["orders-2"], "c3": []}
    after = {"c1": ["orders-0", "orders-2"], "c2": ["orders-1"], "c3": []}
    assert unknown(judge(NeedlessMovement, two(before, after, subscribed=None))) == ["the members' subscriptions were not captured"]


def test_one_finding_for_an_epoch_sums_up_what_followed() -> None:
    events = [owning(n + 1, n * 60, ONE if n % 2 else OTHER) for n in range(4)]
    (finding,) = broken(judge(NeedlessMovement, events))
    assert finding.generation == 2
    assert "3 times: 6 moves in all where 0 had to be" in finding.message


def test_a_cooperative_handover_is_one_episode() -> None:
    events = [
        owning(1, 0, {"c1": ["orders-0", "orders-1"]}, "cooperative-sticky"),
        owning(2, 60, {"c1": ["orders-0"], "c2": []}, "cooperative-sticky"),
        owning(3, 61, {"c1": ["orders-0"], "c2": ["orders-1"]}, "cooperative-sticky"),
    ]
    assert held(judge(NeedlessMovement, events)) == 1


def test_members_that_change_before_the_group_settles() -> None:
    events = [
        owning(1, 0, {"c1": ["orders-0", "orders-1"], "c2": ["orders-2", "orders-3"]}, "cooperative-sticky"),
        owning(2, 60, {"c1": ["orders-0"], "c2": ["orders-2", "orders-3"], "c3": []}, "cooperative-sticky"),
        owning(3, 61, {"c1": ["orders-0", "orders-2"], "c2": ["orders-1", "orders-3"]}, "cooperative-sticky"),
    ]
    assert unknown(judge(NeedlessMovement, events)) == ["the members changed several times before the group settled"]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([owning(1, 0, ONE)], id="one generation"),
        pytest.param([owning(1, 0, ONE), owning(3, 60, OTHER)], id="a generation is missing"),
        pytest.param([owning(1, 0, ONE), GenerationStarted(group=G, ts=at(30), generation=2), owning(3, 60, OTHER)], id="its shares are"),
    ],
)
def test_shares_that_were_not_seen(events: list[Event]) -> None:
    assert unknown(judge(NeedlessMovement, events)) == ["no two settled generations in a row had all shares captured"]


def worker(generation: int, ts: float, owns: Mapping[str, Sequence[str]], delay: int = 0) -> list[Event]:
    listed = GenerationStarted(group=G, ts=at(ts), generation=generation, members=tuple(owns), protocol="sessioned")
    named = {m: m.split("/")[0] for m in owns}
    return [
        listed,
        *(
            Synced(group=G, ts=at(ts + 1), generation=generation, member=m, client=named[m], resources=tuple(r), delay_ms=delay)
            for m, r in owns.items()
        ),
    ]


def test_connect_balances_connectors_and_tasks_apart() -> None:
    before = {"w1": ["connector:a", "task:a-0", "task:a-1"], "w2": ["connector:b", "task:b-0", "task:b-1"]}
    after = {"w1": ["connector:a", "connector:b"], "w2": ["task:a-0", "task:a-1", "task:b-0", "task:b-1"]}
    (finding,) = broken(judge(NeedlessMovement, [*worker(1, 0, before), *worker(2, 60, after)]))
    assert "3 resources changed owner from generation 1 to 2 where 0 had to" in finding.message


def test_a_worker_that_comes_back_is_the_same_worker() -> None:
    before = {"w1": ["task:a-0"], "w2/1": ["task:a-1"]}
    away = worker(2, 60, {"w1": ["task:a-0"]}, delay=300_000)
    back = worker(3, 120, {"w1": ["task:a-0"], "w2/2": []}, delay=240_000)
    restored = worker(4, 360, {"w1": ["task:a-0"], "w2/2": ["task:a-1"]})
    assert held(judge(NeedlessMovement, [*worker(1, 0, before), *away, *back, *restored])) == 1
    swapped = worker(4, 360, {"w1": ["task:a-1"], "w2/2": ["task:a-0"]})
    assert unknown(judge(NeedlessMovement, [*worker(1, 0, before), *away, *back, *swapped]))


def test_a_delay_does_not_settle() -> None:
    before = {"w1": ["task:a-0"], "w2": ["task:a-1"]}
    events = [*worker(1, 0, before), *worker(2, 60, {"w1": ["task:a-1"], "w2": ["task:a-0"]}, delay=1000)]
    assert unknown(judge(NeedlessMovement, events)) == ["no two settled generations in a row had all shares captured"]


# Stops.


def took(member: str, generation: int, *resources: str, seen: float = 0) -> Assigned:
    return Assigned(group=G, ts=at(generation * 60 + seen), generation=generation, member=member, resources=resources)


def gave(member: str, generation: int, *resources: str) -> Revoked:
    return Revoked(group=G, ts=at(generation * 60 + 50), generation=generation, member=member, resources=resources)


def generation(number: int, protocol: str | None, *members: str) -> GenerationStarted:
    return GenerationStarted(group=G, ts=at(number * 60 - 1), generation=number, members=members, protocol=protocol)


def eager(protocol: str | None = "range") -> list[Event]:
    return [
        generation(1, protocol, "c1"),
        took("c1", 1, "orders-0", "orders-1"),
        gave("c1", 1, "orders-0", "orders-1"),
        generation(2, protocol, "c1", "c2"),
        took("c1", 2, "orders-0"),
        took("c2", 2, "orders-1"),
    ]


def test_everything_kept_was_given_up() -> None:
    (finding,) = broken(judge(StopTheWorld, eager()))
    assert finding.resources == ("orders-0",)
    assert finding.members == ("c1",)
    assert finding.generation == 2
    assert finding.advice is not None
    assert "CooperativeStickyAssignor" in finding.advice
    assert [step.says for step in finding.argument[:2]] == [
        "c1 gave orders-0 up for the rebalance",
        "c1 owned it again in generation 2",
    ]


def test_connect_is_told_of_its_own_setting() -> None:
    (finding,) = broken(judge(StopTheWorld, eager("default")))
    assert finding.advice == "Set connect.protocol=sessioned on every worker."


def test_one_partition_that_went_on_is_enough() -> None:
    events = [
        generation(1, "range", "c1", "c2"),
        took("c1", 1, "orders-0"),
        gave("c1", 1, "orders-0"),
        took("c2", 1, "orders-1"),
        generation(2, "range", "c1", "c2"),
        took("c1", 2, "orders-0"),
        took("c2", 2),
    ]
    assert held(judge(StopTheWorld, events)) == 1


def test_what_was_not_kept_does_not_count() -> None:
    events = [
        generation(1, "range", "c1"),
        took("c1", 1, "orders-0"),
        gave("c1", 1, "orders-0"),
        generation(2, "range", "c1", "c2"),
        took("c1", 2, "orders-1"),
        took("c2", 2, "orders-0"),
    ]
    assert unknown(judge(StopTheWorld, events)) == ["no member's own events show something kept over two generations in a row"]


def test_revoked_while_applying_and_taken_again_is_a_stop() -> None:
    events = [
        generation(1, "cooperative-sticky", "c1"),
        took("c1", 1, "orders-0"),
        generation(2, "cooperative-sticky", "c1"),
        Revoked(group=G, ts=at(119.5), generation=2, member="c1", resources=("orders-0",)),
        took("c1", 2, "orders-0"),
    ]
    assert len(broken(judge(StopTheWorld, events))) == 1


@pytest.mark.parametrize(
    ("protocol", "listed", "verdict"),
    [
        ("range", ("c1", "c9"), "broken"),
        (None, ("c1", "c9"), "not every member's own events were captured"),
        (None, ("c1",), "broken"),
        ("cooperative-sticky", ("c1", "c9"), "not every member's own events were captured"),
    ],
)
def test_members_that_were_not_watched(protocol: str | None, listed: Sequence[str], verdict: str) -> None:
    events: list[Event] = [
        generation(1, protocol, *listed),
        took("c1", 1, "orders-0"),
        gave("c1", 1, "orders-0"),
        generation(2, protocol, *listed),
        took("c1", 2, "orders-0"),
    ]
    outcomes = judge(StopTheWorld, events)
    assert (["broken"] if broken(outcomes) else unknown(outcomes)) == [verdict]


def replaced_at(index: int, *events: Event) -> list[Event]:
    story = eager()
    return [*story[:index], *events, *story[index + 1 :]]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(
            replaced_at(2, Lost(group=G, ts=at(110), generation=1, member="c1", resources=("orders-0", "orders-1"))), id="found lost"
        ),
        pytest.param(replaced_at(2, eager()[2], Crashed(group=G, ts=at(111), generation=1, member="c1")), id="restarted"),
        pytest.param(replaced_at(3, Gap(group=G, ts=at(119), generation=2, member="c1", seen_by="member")), id="a gap on entering"),
        pytest.param(replaced_at(2, eager()[2], Gap(group=G, ts=at(111), generation=1, member="c1", seen_by="member")), id="a gap"),
        pytest.param(replaced_at(2, Owned(group=G, ts=at(110), generation=1, member="c1", resources=())), id="no revocation was seen"),
        pytest.param([e for e in eager() if e.kind != "revoked"], id="nothing given up"),
    ],
)
def test_no_stop_without_a_revocation(events: list[Event]) -> None:
    assert broken(judge(StopTheWorld, events)) == []


def test_a_missing_generation_hides_what_happened() -> None:
    events = [generation(1, "range", "c1"), took("c1", 1, "orders-0"), gave("c1", 1, "orders-0"), took("c1", 3, "orders-0")]
    assert broken(judge(StopTheWorld, events)) == []


def test_a_restarted_static_member_did_not_stop_for_the_rebalance() -> None:
    events = [
        generation(1, "range", "a-1"),
        Assigned(group=G, ts=at(60), generation=1, member="a-1", instance="a", resources=("orders-0",)),
        Revoked(group=G, ts=at(110), generation=1, member="a-1", instance="a", resources=("orders-0",)),
        generation(2, "range", "a-2"),
        Assigned(group=G, ts=at(120), generation=2, member="a-2", instance="a", resources=("orders-0",)),
    ]
    assert broken(judge(StopTheWorld, events)) == []


def test_later_stops_add_to_the_first_finding() -> None:
    events: list[Event] = []
    for n in range(1, 5):
        events += [generation(n, "range", "c1"), took("c1", n, "orders-0", "orders-1"), gave("c1", n, "orders-0", "orders-1")]
    (finding,) = broken(judge(StopTheWorld, events))
    assert finding.generation == 2
    assert "3 rebalances, 6 needless stops in all" in finding.message


def test_a_new_epoch_has_its_own_finding() -> None:
    later = [
        e
        for n in (3, 4)
        for e in (
            GenerationStarted(group=G, ts=at(n * 60), epoch=1, generation=n, members=("c1",), protocol="range"),
            Assigned(group=G, ts=at(n * 60), epoch=1, generation=n, member="c1", resources=("orders-0",)),
            Revoked(group=G, ts=at(n * 60 + 9), epoch=1, generation=n, member="c1", resources=("orders-0",)),
        )
    ]
    assert [(f.epoch, f.generation) for f in broken(judge(StopTheWorld, [*eager(), *later]))] == [(0, 2), (1, 4)]


def test_a_leaders_assignment_alone_shows_shares() -> None:
    def sync(number: int, owns: Mapping[str, Sequence[str]]) -> list[Event]:
        return [
            GenerationStarted(group=G, ts=at(number * 60), generation=number, members=tuple(owns), leader="c1", protocol="range"),
            Sync(group=G, ts=at(number * 60), generation=number, member="c1", assignment={m: tuple(r) for m, r in owns.items()}),
        ]

    assert len(broken(judge(NeedlessMovement, [*sync(1, ONE), *sync(2, OTHER)]))) == 1
