"""A claim that says it is newer than it is: a partition taken from its true owner without the two-phase hand-over.

Since 3.4 a consumer labels what it owns with the generation of its last JoinGroup answer, also when the SyncGroup after it
failed (ConsumerCoordinator.metadata, KIP-792). Of two claims the leader believes the newer label (KAFKA-14639). That is
safe while nobody still believes in what another member was given since. A dynamic member never does, for a join phase that
completes without it removes it. A static member stays, and may come back with what it had before.

Seen with Apache Kafka: clients 3.8.1 and 4.3.1 take the partition, those of 3.3.2 do not (but do with unequal subscriptions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kipcheck.model.consumer import Consumer
from kipcheck.model.runs import quiet, replay
from kipcheck.model.scenarios import BEFORE_3_4, begin, cast, static
from kipcheck.model.world import Config, Faults, Menu, Moved, owned
from kipcheck.spec import check
from kipcheck.spec.events import Assignment, Join, Lost, Revoked

OWNER_TAKES_ITS_PARTITION = """
    start owner
    poll owner
    arrive owner
    advance
    beat late
    arrive late
    return late
    poll late
    delay late
    advance
    fire join -
    return owner
    arrive owner
    store
    return owner
    poll owner
    finish owner
    arrive late
"""
"""``late`` owns everything in generation 1. Its JoinGroup for generation 2 is held up on the way for longer than the
rebalance timeout: ``owner`` is given what nobody claims any more. No heartbeat tells ``late``, for its heartbeat thread
rests while JoinGroup is in flight (AbstractCoordinator.initiateJoinGroup). Then the JoinGroup arrives, with the old claim."""

BOTH_JOIN_BUT_ONE_HEARS = """
    advance
    beat owner
    arrive owner
    return owner
    poll owner
    arrive owner
    return late
"""
"""Both join generation 3; ``late`` has its answer, that of ``owner`` is still under way."""

CONNECTIONS_BREAK = """
    cut late
    cut owner
    poll late
    poll late
    arrive late
    poll owner
    poll owner
    arrive owner
    return owner
    return late
    arrive late
    arrive owner
"""
"""Neither gets to its SyncGroup answer; both join again."""

ANOTHER_MEMBER_ARRIVES = """
    start third
    poll third
    arrive third
    arrive late
    return late
    poll late
    arrive late
    cut owner
    poll owner
    poll owner
    arrive owner
    return third
    return owner
    return late
    arrive third
    arrive late
    arrive owner
"""
"""The SyncGroup of ``late`` is refused with REBALANCE_IN_PROGRESS, and ``owner`` loses its JoinGroup answer."""

COORDINATOR_FALLS = """
    fall
    load
    poll late
    poll late
    arrive late
    poll owner
    poll owner
    arrive owner
    return late
    return owner
    arrive late
    arrive owner
"""
"""The same by one fault: generation 3 was in memory alone. It takes a coordinator that is back before the next heartbeat."""

A_HEARTBEAT_COMES_FIRST = """
    fall
    load
    stall late
    poll owner
    poll owner
    arrive owner
    advance
    beat late
    advance
    beat late
    arrive late
    return late
    resume late
    poll late
    finish late
"""

ONLY_LATE_LEARNS_THE_ASSIGNMENT = """
    store
    return late
    poll late
    finish late
"""

OWNER_LEARNS_THE_ASSIGNMENT = """
    return owner
    poll owner
    finish owner
"""

FAULTS = Faults(starts=2, delays=1, cuts=2, failovers=1, resizes=1, stalls=1)


def story(script: str, late: Config, owner: Config, topics: Mapping[str, int], menu: Menu | None = None) -> Moved:
    plans = {"late": (late,), "owner": (owner,), "third": (replace(late, process="third", client="third", instance="c"),)}
    world = cast(plans, topics=topics, faults=FAULTS, menu=menu or Menu())
    begun = begin(world, ("late",))
    return begun.then(replay(begun.world, script))


def two(*, before_3_4: bool = False) -> tuple[Config, Config]:
    """The ids decide who is given what in generation 2: ``owner``, the first, t-0, which ``late`` would keep if it could."""
    pair = static("late", "b"), static("owner", "a")
    if not before_3_4:
        return pair
    late, owner = (replace(each, release=BEFORE_3_4, defects=frozenset({"only-highest-generation-counts"})) for each in pair)
    return late, owner


def generation_of(moved: Moved, who: str) -> int:
    state = moved.world.client(who).state
    assert isinstance(state, Consumer)
    return state.generation.id


def held(moved: Moved, who: str) -> tuple[str, ...]:
    return owned(moved.world.client(who))


def last_claims(moved: Moved) -> dict[str | None, tuple[tuple[str, ...], int]]:
    return {event.client: (event.owned or (), event.owned_generation or -1) for event in moved.events if isinstance(event, Join)}


@pytest.mark.parametrize(("again", "generation"), [(CONNECTIONS_BREAK, 4), (ANOTHER_MEMBER_ARRIVES, 4), (COORDINATOR_FALLS, 3)])
def test_the_old_claim_with_the_newer_label_wins(again: str, generation: int) -> None:
    until = OWNER_TAKES_ITS_PARTITION + BOTH_JOIN_BUT_ONE_HEARS + again + ONLY_LATE_LEARNS_THE_ASSIGNMENT
    moved = story(until, *two(), {"t": 2})

    claims = last_claims(moved)
    assert (claims["late"], claims["owner"]) == ((("t-0", "t-1"), 3), (("t-0",), 2))
    assignment = [event for event in moved.events if isinstance(event, Assignment)][-1]
    assert assignment.generation == generation
    shares = assignment.assignment or {}
    assert (shares["b-1"], shares["a-2"]) == (("t-0",), ())

    # Nobody missed this generation, and both own t-0: late by its assignment, owner until it learns that it was taken away.
    assert generation_of(moved, "late") == generation_of(moved, "owner") == generation
    assert held(moved, "late") == held(moved, "owner") == ("t-0",)

    end = moved.then(replay(moved.world, OWNER_LEARNS_THE_ASSIGNMENT))
    revoked = [(event.client, event.generation, event.resources) for event in end.events if isinstance(event, Revoked)]
    assert revoked == [("late", generation, ("t-1",)), ("owner", generation, ("t-0",))]


@pytest.mark.parametrize("again", [CONNECTIONS_BREAK, ANOTHER_MEMBER_ARRIVES, COORDINATOR_FALLS])
def test_a_label_that_names_the_generation_of_the_assignment_keeps_the_owner(again: str) -> None:
    """Before 3.4: the label is what CooperativeStickyAssignor.onAssignment saw last, so the old claim is known to be old."""
    until = OWNER_TAKES_ITS_PARTITION + BOTH_JOIN_BUT_ONE_HEARS + again + ONLY_LATE_LEARNS_THE_ASSIGNMENT
    moved = story(until, *two(before_3_4=True), {"t": 2})
    assert held(moved, "owner") == ("t-0",)
    assert "t-0" not in held(moved, "late")
    end = moved.then(replay(moved.world, OWNER_LEARNS_THE_ASSIGNMENT))
    assert [event.resources for event in end.events if isinstance(event, Revoked)] == [("t-0",)]


def test_without_the_second_rebalance_the_owner_keeps_it() -> None:
    """In generation 3 the old claim is still labelled 1."""
    learns = "return owner\narrive late\narrive owner\n" + ONLY_LATE_LEARNS_THE_ASSIGNMENT
    moved = story(OWNER_TAKES_ITS_PARTITION + BOTH_JOIN_BUT_ONE_HEARS + learns, *two(), {"t": 2})
    assert last_claims(moved) == {"late": (("t-0", "t-1"), 1), "owner": (("t-0",), 2)}
    assert "t-0" not in held(moved, "late")
    assert held(moved, "owner") == ("t-0",)


def test_a_heartbeat_in_between_tells_the_late_member() -> None:
    """The new coordinator is in generation 2 and refuses a heartbeat of 3: ILLEGAL_GENERATION, so everything is lost in order."""
    moved = story(OWNER_TAKES_ITS_PARTITION + BOTH_JOIN_BUT_ONE_HEARS + A_HEARTBEAT_COMES_FIRST, *two(), {"t": 2})
    assert [event.resources for event in moved.events if isinstance(event, Lost)] == [("t-0", "t-1")]
    assert held(moved, "owner") == ("t-0",)


def test_the_monitors_see_through_the_label() -> None:
    """Generation 2 gave t-0 to ``owner`` and generation 3 was never assigned: a claim of ``late`` from generation 3 can't be true."""
    until = OWNER_TAKES_ITS_PARTITION + BOTH_JOIN_BUT_ONE_HEARS + CONNECTIONS_BREAK + ONLY_LATE_LEARNS_THE_ASSIGNMENT
    moved = story(until + OWNER_LEARNS_THE_ASSIGNMENT, *two(), {"t": 2})
    moved = moved.then(quiet(moved.world))
    found = [finding for group in check(moved.events) for finding in group.findings if finding.severity == "error"]
    assert [(finding.rule, finding.resources) for finding in found] == [("revoke-before-reassign", ("t-0",))]


@pytest.mark.parametrize("before_3_4", [False, True])
def test_with_unequal_subscriptions_no_label_helps(before_3_4: bool) -> None:
    """A second way, shorter, in any release: the general algorithm honours the newer claim, but then moves the partition for
    balance, and what is withheld is worked out from raw claims: ``late`` claims t-1, so it is not new to it.

    Source: CooperativeStickyAssignor.computePartitionsTransferringOwnership.
    """
    late, owner = (replace(each, topics=topics) for each, topics in zip(two(before_3_4=before_3_4), (("t",), ("t", "u")), strict=True))
    script = """
        resize u 3
        poll owner
        arrive owner
        return late
        arrive late
        return owner
        arrive owner
    """
    until = OWNER_TAKES_ITS_PARTITION + script + ONLY_LATE_LEARNS_THE_ASSIGNMENT
    moved = story(until, late, owner, {"t": 2, "u": 1}, Menu(sizes=(("u", 3),)))
    assert generation_of(moved, "late") == generation_of(moved, "owner") == 3
    assert held(moved, "late") == ("t-0", "t-1")
    assert held(moved, "owner") == ("t-1", "u-0")
