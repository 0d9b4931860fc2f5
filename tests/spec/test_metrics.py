"""The figures of a group, what advice rests on, and that neither minds odd traces."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.spec.events import (
    KINDS,
    Assigned,
    Assignment,
    Closed,
    Commit,
    Event,
    Expire,
    Gap,
    GenerationStarted,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Lost,
    Owned,
    Rebalance,
    Revoked,
    Sync,
    Synced,
)
from kipcheck.spec.measures import normal_reason
from kipcheck.spec.metrics import MOST_ADVICE, MOST_REASONS, advice, metrics
from kipcheck.spec.results import Settings
from kipcheck.spec.rounds import rounds
from kipcheck.spec.rules.cost import MONITORS

G = "orders"
START = 1_772_442_000_000_000


def at(seconds: float) -> int:
    return START + int(seconds * 1_000_000)


def measure(events: Sequence[Event], **more: int) -> dict[str, object]:
    return metrics(events, rounds(events), Settings(**more))


def advise(events: Sequence[Event]) -> tuple[str, ...]:
    history = rounds(events)
    return advice(events, history, metrics(events, history, Settings()))


def entered(generation: int, ts: float, *members: str, protocol: str | None = "range", reason: str | None = None) -> list[Event]:
    return [
        Rebalance(group=G, ts=at(ts), generation=generation - 1, reason=reason),
        GenerationStarted(group=G, ts=at(ts + 1), generation=generation, members=members, protocol=protocol),
    ]


def owning(generation: int, ts: float | None, owns: Mapping[str, Sequence[str]], protocol: str | None = "range") -> Assignment:
    assignment = {m: tuple(r) for m, r in owns.items()}
    return Assignment(group=G, ts=None if ts is None else at(ts), generation=generation, protocol=protocol, assignment=assignment)


def took(member: str, generation: int, ts: float | None, *resources: str) -> Assigned:
    return Assigned(group=G, ts=None if ts is None else at(ts), generation=generation, member=member, resources=resources)


def gave(member: str, generation: int, ts: float | None, *resources: str) -> Revoked:
    return Revoked(group=G, ts=None if ts is None else at(ts), generation=generation, member=member, resources=resources)


# Counts.


def test_a_trace_without_a_group_event_has_figures_all_the_same() -> None:
    assert measure([Gap(group=G)]) == {
        "generations": 0,
        "rebalances": 0,
        "probing_rebalances": 0,
        "reasons": {},
        "members_seen": 0,
        "members_max": None,
        "partition_seconds_unowned": None,
        "partitions_moved": None,
        "partitions_moved_minimum": None,
        "rounds_to_converge_max": None,
        "stop_the_world_share": None,
        "storms": 0,
        "rebalances_per_minute_peak": None,
        "zombie_windows": 0,
        "zombie_seconds_longest": None,
        "delay_ms_max": None,
    }


def test_rebalances_are_those_that_the_trace_shows_beginning() -> None:
    events = [*entered(4, 0, "c1"), *entered(5, 60, "c1", "c2"), Rebalance(group=G, ts=at(90), generation=5)]
    figures = measure(events)
    assert figures["generations"] == 3, "generation 3 is known by name only"
    assert figures["rebalances"] == 3, "the last one led nowhere yet"
    assert figures["members_max"] == 2
    assert figures["members_seen"] == 2


def test_the_last_rebalance_may_end_under_another_coordinator() -> None:
    after = GenerationStarted(group=G, ts=at(70), epoch=1, generation=5, members=("c1",))
    assert measure([*entered(4, 0, "c1"), Rebalance(group=G, ts=at(60), generation=4), after])["rebalances"] == 2


def test_a_static_member_is_one_slot_whatever_its_ids() -> None:
    events = [Joined(group=G, ts=at(n), generation=n + 1, member=f"a-{n}", instance="a") for n in range(3)]
    assert measure(events)["members_seen"] == 1


def test_probing_rebalances_are_counted_apart() -> None:
    probe = "Leader c1 re-joining group during Stable; client reason: Scheduled probing rebalance"
    figures = measure([*entered(1, 0, "c1", protocol="stream"), *entered(2, 600, "c1", protocol="stream", reason=probe)])
    assert figures["rebalances"] == 1
    assert figures["probing_rebalances"] == 1


def test_a_client_may_tell_of_a_probing_rebalance() -> None:
    events = [
        Joined(group=G, ts=at(0), generation=1, member="c1", seen_by="member"),
        Rebalance(group=G, ts=at(60), generation=1, member="c1", reason="Scheduled probing rebalance", seen_by="member"),
        Joined(group=G, ts=at(61), generation=2, member="c1", seen_by="member"),
    ]
    assert measure(events)["probing_rebalances"] == 1


UUID = "c1-6f1c7f66-1f0d-4a6c-9a55-0f9e2d1c0b0a"


@pytest.mark.parametrize(
    ("reason", "normal"),
    [
        (f"Adding new member {UUID} with group instance id None", "adding new member"),
        (f"Adding new member {UUID} with group instanceid Some(a); client reason: not provided", "adding new member"),
        (
            f"Adding new member {UUID} with group instance id null; client reason: need to re-join with the given member-id: {UUID}.",
            "adding new member",
        ),
        (f"removing member {UUID} on heartbeat expiration.", "removing member on heartbeat expiration"),
        (
            f"Removing member {UUID} on LeaveGroup; client reason: the consumer is being closed",
            "removing member on LeaveGroup; client reason: the consumer is being closed",
        ),
        (f"explicit `LeaveGroup` request for ({UUID}) members.", "removing member on LeaveGroup"),
        ("Removing Set(a, b) on pending sync request expiration", "removing members on pending sync request expiration"),
        (f"leader {UUID} re-joining group during Stable", "leader re-joining group"),
        (
            f"Leader {UUID} re-joining group during Stable; client reason: cached metadata has changed",
            "leader re-joining group; client reason: cached metadata has changed",
        ),
        (f"Updating metadata for member {UUID} during CompletingRebalance", "updating metadata for member"),
        (f"Updating metadata for static member {UUID} with instance id a", "updating metadata for static member"),
        (f"Group's selectedProtocol will change because static member {UUID} with instance id a joined", "selected protocol will change"),
        (f"worker w9 asked for it, so did {UUID} (w1)", "worker w9 asked for it, so did … …"),
        ("", "not given"),
    ],
)
def test_reasons_lose_their_member_ids(reason: str, normal: str) -> None:
    assert normal_reason(reason, {"w1"}) == normal


def test_reasons_are_counted_and_bounded() -> None:
    events = [Rebalance(group=G, generation=n, reason=f"reason {n % 30}") for n in range(60)]
    counted = measure(events)["reasons"]
    assert isinstance(counted, dict)
    assert len(counted) == MOST_REASONS + 1
    assert sum(counted.values()) == 60
    assert counted["other"] == 20


def test_the_peak_counts_within_any_minute() -> None:
    events = [e for n, ts in enumerate((0, 30, 59, 61, 200)) for e in entered(n + 1, ts, "c1")]
    assert measure(events)["rebalances_per_minute_peak"] == 3


# Ownership.


def eager() -> list[Event]:
    return [
        took("c1", 1, 0, "orders-0", "orders-1"),
        gave("c1", 1, 60, "orders-0", "orders-1"),
        took("c1", 2, 63, "orders-0"),
        took("c2", 2, 64.5, "orders-1"),
    ]


def test_time_between_owners_by_the_members_own_events() -> None:
    figures = measure(eager())
    assert figures["partition_seconds_unowned"] == 7.5
    assert figures["stop_the_world_share"] == 1.0


def test_the_coordinators_word_does_not_replace_the_members() -> None:
    answers = [
        Synced(group=G, ts=at(-1), generation=1, member="c1", resources=("orders-0", "orders-1")),
        Synced(group=G, ts=at(62), generation=2, member="c1", resources=("orders-0",)),
        Synced(group=G, ts=at(62), generation=2, member="c2", resources=("orders-1",)),
    ]
    assert measure([*entered(1, -2, "c1"), *entered(2, 60, "c1", "c2"), *answers, *eager()])["partition_seconds_unowned"] == 7.5


def cooperative() -> list[Event]:
    return [
        *entered(1, -1, "c1", protocol="cooperative-sticky"),
        took("c1", 1, 0, "orders-0", "orders-1"),
        *entered(2, 59, "c1", "c2", protocol="cooperative-sticky"),
        gave("c1", 2, 60, "orders-1"),
        took("c1", 2, 60.5),
        took("c2", 2, 60.5),
        *entered(3, 61, "c1", "c2", protocol="cooperative-sticky"),
        took("c1", 3, 62),
        took("c2", 3, 62, "orders-1"),
    ]


def test_a_cooperative_handover_leaves_only_what_moves() -> None:
    figures = measure(cooperative())
    assert figures["partition_seconds_unowned"] == 2.0
    assert figures["stop_the_world_share"] == 0.0


def test_the_coordinators_word_where_members_say_nothing() -> None:
    def synced(member: str, generation: int, ts: float, *resources: str) -> Synced:
        return Synced(group=G, ts=at(ts), generation=generation, member=member, resources=resources)

    events = [
        *entered(1, -1, "c1", protocol="cooperative-sticky"),
        synced("c1", 1, 0, "orders-0", "orders-1"),
        *entered(2, 59, "c1", "c2", protocol="cooperative-sticky"),
        synced("c1", 2, 60, "orders-0"),
        synced("c2", 2, 60),
        *entered(3, 61, "c1", "c2", protocol="cooperative-sticky"),
        synced("c1", 3, 62, "orders-0"),
        synced("c2", 3, 63, "orders-1"),
    ]
    assert measure(events)["partition_seconds_unowned"] == 3.0
    expired = [
        *events,
        Expire(group=G, ts=at(70), member="c1", reason="session"),
        *entered(4, 71, "c2"),
        synced("c2", 4, 75, "orders-0", "orders-1"),
    ]
    assert measure(expired)["partition_seconds_unowned"] == 8.0


def test_an_eager_member_ends_by_joining_again() -> None:
    events = [
        *entered(1, -1, "c1"),
        Synced(group=G, ts=at(0), generation=1, member="c1", resources=("orders-0",)),
        Rebalance(group=G, ts=at(59), generation=1),
        Join(group=G, ts=at(60), member="c1"),
        Joined(group=G, ts=at(62), generation=2, member="c1", protocol="range"),
        Synced(group=G, ts=at(64), generation=2, member="c1", resources=("orders-0",)),
    ]
    assert measure(events)["partition_seconds_unowned"] == 4.0
    assert measure([e for e in events if not isinstance(e, Join)])["partition_seconds_unowned"] is None


@pytest.mark.parametrize(
    ("events", "seconds"),
    [
        pytest.param([took("c1", 1, 0, "orders-0")], 0.0, id="one owner all along"),
        pytest.param(
            [took("c1", 1, None, "orders-0"), gave("c1", 1, None, "orders-0"), took("c1", 2, None, "orders-0")], None, id="no clock"
        ),
        pytest.param([took("c1", 1, 0, "orders-0"), gave("c1", 1, 9, "orders-0")], 0.0, id="no next owner"),
        pytest.param(
            [took("c1", 1, 0, "orders-0"), gave("c1", 1, 9, "orders-0"), took("c1", 3, 99, "orders-0")], None, id="a generation between"
        ),
        pytest.param(
            [took("c1", 1, 0, "orders-0"), gave("c1", 1, 9, "orders-0"), *entered(2, 20, "c1", "c9"), took("c1", 3, 99, "orders-0")],
            None,
            id="an owner not watched between",
        ),
        pytest.param(
            [took("c1", 1, 0, "orders-0"), gave("c1", 1, 9, "orders-0"), took("c2", 2, 7, "orders-0")], 0.0, id="clocks that overlap"
        ),
        pytest.param(
            [took("c1", 1, 0, "orders-0"), Closed(group=G, ts=at(9), generation=1, member="c1"), took("c2", 2, 12, "orders-0")],
            3.0,
            id="closed",
        ),
        pytest.param([took("c1", 1, 0, "orders-0"), took("c2", 2, 12, "orders-0")], None, id="the end was not seen"),
        pytest.param(
            [
                took("c1", 1, 0, "orders-0"),
                gave("c1", 1, 9, "orders-0"),
                Closed(group=G, ts=at(11), generation=1, member="c1"),
                took("c2", 2, 12, "orders-0"),
            ],
            3.0,
            id="given up, then closed",
        ),
    ],
)
def test_what_counts_as_unowned(events: list[Event], seconds: float | None) -> None:
    assert measure(events)["partition_seconds_unowned"] == seconds


THREE = {"c1": ["orders-0", "orders-1"], "c2": ["orders-2"]}


def listed(assignment: Assignment) -> list[Event]:
    members = tuple(assignment.assignment or ())
    return [
        GenerationStarted(group=G, ts=assignment.ts, generation=assignment.generation, members=members, protocol=assignment.protocol),
        assignment,
    ]


def test_movement_adds_up_over_episodes() -> None:
    events = [
        *listed(owning(1, 0, THREE)),
        *listed(owning(2, 60, {"c1": ["orders-0"], "c2": ["orders-1"], "c3": ["orders-2"]})),
        *listed(owning(3, 120, {"c1": ["orders-0", "orders-1"], "c2": ["orders-2"]})),
    ]
    figures = measure(events)
    assert figures["partitions_moved"] == 4
    assert figures["partitions_moved_minimum"] == 2
    assert figures["rounds_to_converge_max"] == 1


def test_the_minimum_needs_subscriptions() -> None:
    events = [*listed(owning(1, 0, {"c1": ["a-0"], "c2": ["b-0"]})), *listed(owning(2, 60, {"c1": ["b-0"], "c2": ["a-0"]}))]
    other = [*listed(owning(1, 0, {"c1": ["a-0"], "c2": ["b-0"]})), *listed(owning(2, 60, {"c1": ["a-0"], "c2": ["b-0"]}))]
    assert (measure(events)["partitions_moved"], measure(events)["partitions_moved_minimum"]) == (2, 0)
    assert (measure(other)["partitions_moved"], measure(other)["partitions_moved_minimum"]) == (0, None)


def test_a_withheld_partition_takes_a_second_round() -> None:
    events = [
        *listed(owning(1, 0, {"c1": ["orders-0", "orders-1"]}, "cooperative-sticky")),
        *listed(owning(2, 60, {"c1": ["orders-0"], "c2": []}, "cooperative-sticky")),
        *listed(owning(3, 61, {"c1": ["orders-0"], "c2": ["orders-1"]}, "cooperative-sticky")),
    ]
    assert measure(events)["rounds_to_converge_max"] == 2
    assert measure(events)["partitions_moved"] == 1


def test_connects_longest_delay() -> None:
    events = [
        Sync(group=G, generation=1, member="w1", assignment={"w1": ()}, delay_ms=300_000),
        Synced(group=G, generation=2, member="w1", resources=("task:a-0",), delay_ms=240_000),
    ]
    assert measure(events)["delay_ms_max"] == 300_000


# Zombies.


def zombie(*end: Event) -> list[Event]:
    """c1 misses generation 2, which gives its partition to c2."""
    return [
        took("c1", 1, 0, "orders-0"),
        *entered(2, 59, "c2"),
        Synced(group=G, ts=at(60), generation=2, member="c2", resources=("orders-0",)),
        *end,
    ]


def lost(generation: int | None, ts: float | None) -> Lost:
    return Lost(group=G, ts=None if ts is None else at(ts), generation=generation, member="c1", resources=("orders-0",))


@pytest.mark.parametrize(
    ("events", "count", "seconds"),
    [
        pytest.param(zombie(lost(None, 75)), 1, 15.0, id="found lost after the new owner began"),
        pytest.param(zombie(gave("c1", 1, 75, "orders-0")), 1, 15.0, id="given up after the new owner began"),
        pytest.param(zombie(lost(None, 50)), 0, None, id="found lost before"),
        pytest.param(zombie(lost(None, 60.9)), 0, None, id="within the skew of two clocks"),
        pytest.param(zombie(lost(None, 61.5)), 1, 1.5, id="beyond the skew of two clocks"),
        pytest.param(zombie(lost(None, None)), 0, None, id="no clock, no order"),
        pytest.param(zombie(), 0, None, id="never heard of again"),
        pytest.param(zombie(lost(3, 75)), 1, 15.0, id="still its own on entering generation 3"),
        pytest.param(zombie(lost(3, None)), 1, None, id="the same without a clock"),
        pytest.param(zombie(lost(3, 50)), 1, 0.0, id="the same with a clock that is behind"),
        pytest.param(
            zombie(Joined(group=G, ts=at(80), generation=3, member="c1", seen_by="member")),
            1,
            20.0,
            id="still its own when it joined again",
        ),
        pytest.param(
            zombie(Owned(group=G, ts=at(50), generation=1, member="c1", resources=()), lost(3, 75)), 0, None, id="no longer its own"
        ),
        pytest.param(
            zombie(gave("c1", 1, 75, "orders-0"), Leave(group=G, ts=at(76), generation=1, member="c1", seen_by="member")),
            0,
            None,
            id="it closed in order, so the clock is off",
        ),
        pytest.param(
            [
                *entered(1, -2, "c1"),
                *zombie(
                    gave("c1", 1, 75, "orders-0"),
                    Leave(group=G, ts=at(50), generation=1, member="c1", reason="consumer poll timeout has expired"),
                ),
            ],
            1,
            15.0,
            id="a poll timeout leaves without letting go",
        ),
        pytest.param(
            zombie(Joined(group=G, ts=at(60), generation=2, member="c1", seen_by="member"), lost(2, 75)),
            0,
            None,
            id="a member of generation 2",
        ),
        pytest.param(
            [
                *entered(1, -2, "c1"),
                *zombie(
                    gave("c1", 1, 75, "orders-0"),
                    Leave(group=G, ts=at(50), generation=1, member="c1", reason="the consumer is being closed"),
                ),
            ],
            0,
            None,
            id="the coordinator saw it leave, so the clock is off",
        ),
        pytest.param(
            zombie(gave("c1", 1, 75, "orders-0"), Closed(group=G, ts=at(76), generation=1, member="c1")),
            0,
            None,
            id="its process ended after",
        ),
        pytest.param([*entered(2, 58, "c1", "c2"), *zombie(lost(None, 75))], 1, 15.0, id="a static member listed, but not there"),
        pytest.param(zombie(Gap(group=G, ts=at(10), generation=1, member="c1", seen_by="member"), lost(None, 75)), 0, None, id="a gap"),
    ],
)
def test_a_zombie_window(events: list[Event], count: int, seconds: float | None) -> None:
    figures = measure(events)
    assert (figures["zombie_windows"], figures["zombie_seconds_longest"]) == (count, seconds)


def test_the_tolerated_skew_is_the_settings() -> None:
    assert measure(zombie(lost(None, 75)), clock_skew_ms=20_000)["zombie_windows"] == 0


def test_a_new_owner_seen_by_its_own_log_only() -> None:
    events = [took("c1", 1, 0, "orders-0"), took("c2", 2, 60, "orders-0"), lost(None, 75)]
    assert measure(events)["zombie_seconds_longest"] == 15.0


def test_one_window_for_all_that_one_generation_gave_away() -> None:
    events = [
        took("c1", 1, 0, "orders-0", "orders-1"),
        took("c2", 2, 60, "orders-0", "orders-1"),
        Lost(group=G, ts=at(75), member="c1", resources=("orders-0", "orders-1")),
    ]
    assert measure(events)["zombie_windows"] == 1


# Advice.


def session(member: str, came: float, left: float | None, client: str = "reader", *, generation: int, expired: bool = False) -> list[Event]:
    events: list[Event] = [
        Join(group=G, ts=at(came), member=member, client=client, session_timeout_ms=10_000),
        *entered(generation, came, member, reason=f"Adding new member {member} with group instance id None"),
    ]
    if left is None:
        return events
    gone = Expire(group=G, ts=at(left), member=member, reason="session") if expired else Leave(group=G, ts=at(left), member=member)
    return [*events, gone, *entered(generation + 1, left, reason=f"removing member {member} on LeaveGroup")]


def test_a_consumer_for_each_read() -> None:
    events = [e for n in range(20) for e in session(f"c{n}", n * 10, n * 10 + 2, generation=2 * n + 1)]
    (said,) = advise(events)
    assert said.startswith("Client reader joined and left within a minute 20 times")
    assert "keep one consumer open" in said


def test_numbered_clients_of_one_process_are_one() -> None:
    events = [e for n in range(20) for e in session(f"c{n}", n * 10, n * 10 + 2, f"consumer-orders-{n}", generation=2 * n + 1)]
    assert advise(events)[0].startswith("Client consumer-orders joined and left within a minute 20 times")


def test_restarts_of_long_lived_clients() -> None:
    events = [e for n in range(3) for e in session(f"c{n}", n * 1000, n * 1000 + 970, generation=2 * n + 1)]
    (said,) = advise(events)
    assert "2 times a client left and was back within 31 s" in said
    assert "group.instance.id" in said


def unnamed(client: str) -> list[Event]:
    """Restarts of a client as a broker's log shows them: without the group's protocol."""
    events = (e for n in range(3) for e in session(f"c{n}", n * 1000, n * 1000 + 970, client, generation=2 * n + 1))
    return [replace(e, protocol=None) if isinstance(e, GenerationStarted) else e for e in events]


def test_a_client_of_another_name_is_no_worker() -> None:
    assert "group.instance.id" in advise(unnamed("connector-consumer-1"))[0]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([e for n in range(2) for e in session(f"c{n}", n * 1000, n * 1000 + 970, generation=2 * n + 1)], id="once"),
        pytest.param([e for n in range(3) for e in session(f"c{n}", n * 1000, n * 1000 + 600, generation=2 * n + 1)], id="long after"),
        pytest.param([e for n in range(3) for e in session(f"c{n}", n * 1000, n * 1000 + 970, f"r{n}", generation=2 * n + 1)], id="others"),
        pytest.param(unnamed("connect-1"), id="Connect by its client.id"),
        pytest.param(
            [
                replace(e, instance="a") if e.member else e
                for n in range(3)
                for e in session(f"c{n}", n * 1000, n * 1000 + 970, generation=2 * n + 1)
            ],
            id="static already",
        ),
    ],
)
def test_no_advice_for_static_membership(events: list[Event]) -> None:
    assert advise(events) == ()


def test_sessions_that_expired_too_soon() -> None:
    events = [e for n in range(2) for e in session(f"c{n}", n * 1000, n * 1000 + 970, generation=2 * n + 1, expired=True)]
    (said,) = advise(events)
    assert said.startswith("1 session expired whose client was back within 31 s.")
    assert "session.timeout.ms (now 10000 ms)" in said
    assert "heartbeat.interval.ms" in said


def test_a_process_that_was_alive_all_along() -> None:
    events = session("c1", 0, 100, generation=1, expired=True)
    beat = Heartbeat(group=G, ts=at(101), member="c1", generation=1, error="UNKNOWN_MEMBER_ID")
    (said,) = advise([*events, beat])
    assert "so the process was alive" in said
    assert advise([*events, replace(beat, ts=at(99))]) == ()
    assert advise([*events, replace(beat, error="NOT_COORDINATOR")]) == ()


@pytest.mark.parametrize(("protocol", "setting"), [("range", "max.poll.interval.ms"), ("sessioned", "rebalance.timeout.ms")])
def test_polls_that_came_too_late(protocol: str, setting: str) -> None:
    left = Leave(group=G, ts=at(100), member="c1", reason="consumer poll timeout has expired.")
    (said,) = advise([*entered(1, 0, "c1", protocol=protocol), left])
    assert said.startswith("1 member left because poll() was not called in time (1 time)")
    assert setting in said


def test_an_eager_assignor_that_stops_much() -> None:
    events = [
        e for n in range(1, 4) for e in (took("c1", n, n * 60, "orders-0", "orders-1"), gave("c1", n, n * 60 + 50, "orders-0", "orders-1"))
    ]
    named = [Joined(group=G, ts=at(n * 60), generation=n, member="c1", protocol="range", seen_by="member") for n in range(1, 4)]
    (said,) = advise([*named, *events])
    assert "4 times a member gave up something that it got straight back (2 rebalances, range)" in said
    assert "CooperativeStickyAssignor" in said
    assert advise(events) == (), "the protocol is not known"
    assert advise([*named[:2], *events[:3]]) == (), "too little"
    connect = [
        replace(e, protocol="default") if isinstance(e, Joined) else replace(e, resources=("task:a-0", "task:a-1")) for e in named + events
    ]
    assert advise(connect)[0].endswith("set connect.protocol=sessioned on every worker.")


def delayed(*arrivals: Event, expiry: float = 360, members: Sequence[str] = ("w1",)) -> list[Event]:
    def applied(generation: int, ts: float, workers: Sequence[str], delay: int) -> list[Event]:
        said = Synced(group=G, ts=at(ts + 1), generation=generation, member="w1", resources=("task:a-0",), delay_ms=delay)
        return [*entered(generation, ts, *workers, protocol="sessioned"), said]

    return [*applied(1, 0, ("w1", "w2"), 0), *applied(2, 59, ("w1",), 300_000), *applied(3, expiry, members, 0), *arrivals]


def test_a_delay_that_nobody_used() -> None:
    (said,) = advise(delayed())
    assert said.startswith("Work that had lost its worker stood still for a whole delay of 300 s although no worker came back (1 time)")
    assert "lower scheduled.rebalance.max.delay.ms" in said


def test_whether_a_worker_came_back_is_not_known_without_a_list_of_members() -> None:
    (said,) = advise([replace(e, members=None) if isinstance(e, GenerationStarted) else e for e in delayed()])
    assert said.startswith("Work that had lost its worker stood still for a whole delay of 300 s (1 time)")


def test_a_worker_that_came_back_too_late() -> None:
    (said,) = advise(delayed(Join(group=G, ts=at(380), member="w3")))
    assert said.startswith("A worker came back 21 s after the delay had run out")
    assert "raise scheduled.rebalance.max.delay.ms" in said


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(delayed(members=("w1", "w3")), id="a worker came back in time"),
        pytest.param(delayed(expiry=100), id="the delay was called off"),
        pytest.param(
            [replace(e, delay_ms=e.delay_ms // 100) if isinstance(e, Synced) and e.delay_ms else e for e in delayed()], id="short"
        ),
    ],
)
def test_a_delay_that_did_its_work(events: list[Event]) -> None:
    assert advise(events) == ()


def test_metadata_that_keeps_changing() -> None:
    reason = "Leader c1 re-joining group during Stable; client reason: cached metadata has changed"
    events = [e for n in range(3) for e in entered(n + 1, n * 1000, "c1", reason=reason)]
    (said,) = advise(events)
    assert said.startswith("3 rebalances began because the leader's topic metadata had changed")
    assert "metadata.max.age.ms" in said
    assert advise(events[:4]) == ()


@pytest.mark.parametrize(("protocol", "why"), [("range", "metadata.max.age.ms"), ("sessioned", "connector configurations")])
def test_a_leader_that_keeps_joining(protocol: str, why: str) -> None:
    reason = "Leader c1 re-joining group during Stable"
    (said,) = advise([e for n in range(3) for e in entered(n + 1, n * 1000, "c1", protocol=protocol, reason=reason)])
    assert why in said


# Odd traces.

NAMES = st.sampled_from(["c1", "c2", "c3", ""])
OWNED = st.lists(st.sampled_from(["orders-0", "orders-1", "task:a-0", "connector:a", "-", ""]), max_size=3).map(tuple)
SHARES = st.dictionaries(NAMES, OWNED, max_size=3)
REASONS = st.none() | st.sampled_from(["", "probing", "Adding new member c1", "consumer poll timeout has expired"]) | st.text(max_size=20)
ERRORS = st.sampled_from(["NONE", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"])
FIELDS: Mapping[str, st.SearchStrategy[object]] = {
    "ts": st.none() | st.integers(0, 600).map(at),
    "epoch": st.integers(0, 2),
    "generation": st.none() | st.integers(-1, 6),
    "member": st.none() | NAMES,
    "instance": st.none() | st.just("i1"),
    "client": st.none() | st.sampled_from(["reader", "connect-1"]),
    "resources": st.none() | OWNED,
    "seen_by": st.none() | st.sampled_from(["coordinator", "member", "harness", "any"]),
    "extra": st.just({}) | st.just({"reason": "probing"}) | st.just({"reason": 7}),
    "reason": REASONS,
    "error": ERRORS,
    "protocol": st.none() | st.sampled_from(["range", "cooperative-sticky", "sessioned", "default", "stream", "mine"]),
    "members": st.none() | OWNED,
    "assignment": st.none() | SHARES,
    "revoked": st.none() | SHARES,
    "delay_ms": st.none() | st.integers(-1, 300_000),
    "owned": st.none() | OWNED,
    "subscribed": st.none() | st.just(("orders",)),
}


@st.composite
def odd(draw: st.DrawFn) -> Event:
    record = draw(st.sampled_from(list(KINDS.values())))
    names = set(record.__dataclass_fields__) & FIELDS.keys()
    if issubclass(record, Assignment):
        names.discard("members")
    if issubclass(record, Synced):
        names.discard("revoked")
    return record(group=G, **{name: draw(FIELDS[name]) for name in sorted(names)})


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(odd(), max_size=30))
def test_odd_traces_have_figures_and_advice(events: list[Event]) -> None:
    history = rounds(events)
    figures = metrics(events, history, Settings())
    json.dumps(figures, allow_nan=False)
    said = advice(events, history, figures)
    assert said == advice(events, history, figures)
    assert len(said) <= MOST_ADVICE
    for name, value in figures.items():
        assert not isinstance(value, int | float) or value >= 0, name
    for monitor in MONITORS:
        watching = monitor(Settings())
        for index, now in enumerate(history):
            list(watching.round(now, history[max(0, index - 8) : index]))
        list(watching.end(history[-8:]))


def test_a_large_trace() -> None:
    """200,000 events: the folds are linear in them."""
    members = [f"c{i}" for i in range(50)]
    events: list[Event] = []
    for g in range(1, 1001):
        events += entered(g, g * 20, *members)
        for i, member in enumerate(members):
            share = (f"orders-{(i + g) % 50}",)
            events.append(Synced(group=G, ts=at(g * 20 + 2), generation=g, member=member, resources=share))
            events.append(took(member, g, g * 20 + 3, *share))
            events.append(Commit(group=G, ts=at(g * 20 + 9), generation=g, member=member, resources=share))
            events.append(gave(member, g, g * 20 + 19, *share))
    figures = measure(events)
    assert figures["rebalances"] == 1000
    assert figures["partition_seconds_unowned"] == 999 * 50 * 4.0
    assert figures["partitions_moved"] == 999 * 50
    assert figures["partitions_moved_minimum"] == 0
    assert figures["storms"] == 1
