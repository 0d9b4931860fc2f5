"""Every row of the transition table: from where to where, on what, and what else changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from coordinator_driver import Coordinator, join_request, shares_of, sync_request

from kipcheck.model.choice import every
from kipcheck.model.coordinator import NEW_4_0, OLD_3_8, Timer, fire, load, loading, timers
from kipcheck.model.messages import Metadata, Share, SyncResponse
from kipcheck.spec.events import Assignment, Expire, GenerationStarted, Join, Joined, Load, Rebalance, Synced

BOTH = pytest.mark.parametrize("release", [NEW_4_0, OLD_3_8], ids=["new", "old"])


def states(c: Coordinator) -> list[str]:
    return [c.group.previous, c.group.state]


# Empty.


@BOTH
@pytest.mark.parametrize("client", ["a", "i1"])
def test_the_first_member_starts_the_initial_delay(release, client):
    c = Coordinator(release)
    c.enter(client, instance=client if client == "i1" else None)
    assert states(c) == ["Empty", "PreparingRebalance"]
    assert (c.group.generation, c.group.leader, c.group.protocol_type) == (0, f"{client}-1", "consumer")
    assert [t.kind for t in timers(c.group)] == ["join", "new-member"]
    c.wait(2_999)
    assert c.group.state == "PreparingRebalance"
    c.wait(1)
    assert (c.group.state, c.group.generation, c.group.protocol) == ("CompletingRebalance", 1, "range")


@BOTH
def test_newcomers_extend_the_initial_delay_up_to_the_rebalance_timeout(release):
    c = Coordinator(release)
    c.enter("i0", instance="i0", timeout=10_000)
    for number in range(1, 20):
        c.wait(1_000)
        if c.group.generation == 0:
            c.enter(f"i{number}", instance=f"i{number}", timeout=90_000)
    generation = c.seen(GenerationStarted)[0]
    assert generation.ts is not None
    assert (generation.ts - c.events[0].ts) // 1000 == 10_000


@pytest.mark.parametrize(("release", "ended_after"), [(NEW_4_0, 6_000), (OLD_3_8, 3_000)], ids=["new", "old"])
def test_the_delay_of_a_group_that_was_emptied(release, ended_after):
    c = Coordinator(release)
    (member,) = c.stable("a")
    c.leave(member)
    assert (c.group.state, c.group.generation) == ("Empty", 2)
    c.enter("i1", instance="i1")
    c.wait(1_000)
    c.enter("i2", instance="i2")
    c.wait(ended_after - 1_001)
    assert c.group.state == "PreparingRebalance"
    c.wait(1)
    assert (c.group.state, c.group.generation) == ("CompletingRebalance", 3)


def test_a_pending_id_does_not_change_the_state_and_expires():
    c = Coordinator()
    c.join(join_request("a", session=10_000))
    assert (c.group.state, c.group.pending[0].id) == ("Empty", "a-1")
    c.wait(10_000)
    assert c.group.pending == ()
    assert [(e.member, e.extra) for e in c.seen(Expire)] == [("a-1", {"pending": True})]
    assert c.error(join_request("a", member="a-1")) == "UNKNOWN_MEMBER_ID"


@BOTH
@pytest.mark.parametrize("generation", [0, 2])
def test_an_empty_group_is_deleted(release, generation):
    c = Coordinator(release)
    if generation:
        c.leave(c.stable("a")[0])
    else:
        c.join(join_request("a"))
    c.log_answers = None
    c.in_flight.clear()
    c.delete()
    assert c.group.generation == 0
    assert not c.group.exists
    c.log_answers = "NONE"
    number = c.enter("a")
    c.settle()
    assert c.joined(number).generation == 1
    assert len({e.member for e in c.seen(Joined) if e.error == "MEMBER_ID_REQUIRED"}) == 2, "an id is never given twice"


def test_a_group_with_members_is_not_deleted():
    c = Coordinator()
    c.stable("a")
    c.delete()
    assert c.group.state == "Stable"


# Stable -> PreparingRebalance.


@BOTH
def test_a_new_member_makes_a_stable_group_rebalance(release):
    c = Coordinator(release)
    c.stable("a")
    c.enter("i1", instance="i1")
    assert states(c) == ["Stable", "PreparingRebalance"]
    assert c.group.generation == 1
    assert [t for t in timers(c.group) if t.kind == "join"] == [Timer(c.now + 60_000, "join")]


@BOTH
def test_a_leader_that_rejoins_makes_a_stable_group_rebalance(release):
    c = Coordinator(release)
    leader, _ = c.stable("a", "b")
    c.send(join_request("a", member=leader))
    assert c.group.state == "PreparingRebalance"
    assert c.seen(Rebalance)[-1].reason == f"Leader {leader} re-joining group during Stable; client reason: not provided"


@BOTH
def test_a_follower_makes_a_stable_group_rebalance_only_if_it_changed(release):
    c = Coordinator(release)
    leader, follower = c.stable("a", "b")
    answer = c.join(join_request("b", member=follower))
    assert answer is not None
    assert (answer.error, answer.generation, answer.leader, answer.members) == ("NONE", 1, leader, ())
    assert c.group.state == "Stable"
    c.send(join_request("b", member=follower, topics=("t", "u")))
    assert c.group.state == "PreparingRebalance"


@BOTH
def test_a_follower_with_its_protocols_in_another_order_changed(release):
    c = Coordinator(release)
    _, follower = c.stable("a", "b", protocols=("range", "sticky"))
    c.send(join_request("b", member=follower, protocols=("sticky", "range")))
    assert c.group.state == "PreparingRebalance"


@BOTH
def test_a_session_that_ends_makes_a_stable_group_rebalance(release):
    c = Coordinator(release)
    a, b = c.stable("a", "b", session=10_000)
    c.wait(9_000)
    assert c.heartbeat(a) == "NONE"
    c.wait(1_000)
    assert states(c) == ["Stable", "PreparingRebalance"]
    assert [(e.member, e.reason, e.generation) for e in c.seen(Expire)] == [(b, "session", 1)]


@BOTH
@pytest.mark.parametrize("by_instance", [False, True])
def test_a_member_that_leaves_makes_a_stable_group_rebalance(release, by_instance):
    c = Coordinator(release)
    _, member = c.stable("a", "i1")
    assert c.leave("" if by_instance else member, instance="i1") == "NONE"
    assert c.group.state == "PreparingRebalance"
    assert c.heartbeat(member, instance="i1") == "UNKNOWN_MEMBER_ID"


@BOTH
def test_a_follower_that_never_syncs_makes_a_stable_group_rebalance(release):
    """It heartbeats, but its SyncGroup is missing when the sync timer fires."""
    c = Coordinator(release)
    numbers = [c.enter("i1", instance="i1"), c.enter("i2", instance="i2")]
    c.settle()
    leader, follower = (c.joined(n).member for n in numbers)
    c.send(sync_request(c.group, leader, shares_of(c.group)))
    assert c.group.state == "Stable"
    for _ in range(6):
        c.wait(10_000)
        c.heartbeat(leader, generation=1)
        c.heartbeat(follower, generation=1)
    assert c.group.state == "PreparingRebalance"
    assert [(e.member, e.reason) for e in c.seen(Expire)] == [(follower, "sync")]


@BOTH
def test_a_static_member_that_changes_the_vote_makes_a_stable_group_rebalance(release):
    c = Coordinator(release)
    c.stable("i1", protocols=("range", "sticky"))
    c.enter("i1", instance="i1", protocols=("sticky", "range"))
    assert c.group.protocol == "sticky"
    assert (c.group.state, c.group.generation) == ("CompletingRebalance", 2)
    assert str(c.seen(Rebalance)[-1].reason).startswith(
        "Group's selectedProtocol will change because static member i1-2 with instance id i1"
    )


@BOTH
def test_a_group_over_capacity_rebalances_after_load(release):
    c = Coordinator(release)
    c.stable("a", "b")
    c.release = replace(release, max_size=1)
    c.fail_over()
    assert c.group.state == "PreparingRebalance"
    assert [c.error(join_request(m.client, member=m.id)) for m in c.group.members] == [None, "GROUP_MAX_SIZE_REACHED"]
    assert [m.client for m in c.group.members] == ["a"]
    assert (c.group.state, c.group.generation) == ("CompletingRebalance", 2)


@BOTH
def test_the_last_member_that_goes_empties_the_group_at_once(release):
    c = Coordinator(release)
    (member,) = c.stable("a")
    c.leave(member)
    assert (c.group.state, c.group.generation, c.group.protocol, c.group.leader) == ("Empty", 2, None, None)
    assert c.record is not None
    assert (c.record.generation, c.record.members) == (2, ())
    assert c.seen(GenerationStarted)[-1].members == ()


@BOTH
def test_the_last_member_that_goes_leaves_a_pending_one_waiting_no_time(release):
    """The join timer is the longest rebalance timeout among nobody."""
    c = Coordinator(release)
    (member,) = c.stable("a")
    c.join(join_request("b"))
    c.leave(member)
    assert c.group.state == "PreparingRebalance"
    c.wait(0)
    assert c.group.state == "Empty"


# CompletingRebalance -> PreparingRebalance.


def completing(release) -> tuple[Coordinator, str, str, int]:
    """A group in CompletingRebalance: the leader a, the follower b, b's SyncGroup that waits."""
    c = Coordinator(release)
    c.stable("a", "b")
    c.rejoin_all()
    assert states(c) == ["PreparingRebalance", "CompletingRebalance"]
    leader, follower = (m.id for m in c.group.members)
    return c, leader, follower, c.send(sync_request(c.group, follower))


def aborted(c: Coordinator, number: int, error: str = "REBALANCE_IN_PROGRESS") -> bool:
    answer = c.replies[number]
    return answer == SyncResponse(error=error) and c.group.state == "PreparingRebalance" and all(m.share is None for m in c.group.members)


@BOTH
def test_a_new_member_aborts_the_sync_phase(release):
    c, _, _, waiting = completing(release)
    c.enter("d")
    assert aborted(c, waiting)
    assert c.group.generation == 2
    assert c.group.pending_sync == ()


@BOTH
def test_a_changed_member_aborts_the_sync_phase_an_unchanged_one_does_not(release):
    c, leader, _, waiting = completing(release)
    answer = c.join(join_request("a", member=leader))
    assert answer is not None
    assert (answer.generation, len(answer.members)) == (2, 2)
    assert c.group.state == "CompletingRebalance"
    c.send(join_request("a", member=leader, topics=("u",)))
    assert aborted(c, waiting)


@BOTH
def test_a_static_return_aborts_the_sync_phase(release):
    c = Coordinator(release)
    c.stable("a", "i1", "i2")
    c.rejoin_all()
    _, i1, i2 = (m.id for m in c.group.members)
    old, waiting = c.send(sync_request(c.group, i1)), c.send(sync_request(c.group, i2))
    c.enter("i1", instance="i1")
    assert c.replies[old] == SyncResponse(error="FENCED_INSTANCE_ID")
    assert aborted(c, waiting)
    assert "static member i1-4 with instance id i1" in str(c.seen(Rebalance)[-1].reason)


@BOTH
def test_a_session_that_ends_aborts_the_sync_phase(release):
    c, leader, _, waiting = completing(release)
    c.wait(45_000)
    assert aborted(c, waiting)
    assert [e.member for e in c.seen(Expire)] == [leader]


@BOTH
def test_a_member_that_leaves_aborts_the_sync_phase(release):
    c, leader, _, waiting = completing(release)
    assert c.leave(leader) == "NONE"
    assert aborted(c, waiting)
    assert c.group.leader == "b-2"


@BOTH
def test_the_sync_timer_aborts_the_sync_phase(release):
    c, leader, _, waiting = completing(release)
    for _ in range(6):
        c.wait(10_000)
        c.heartbeat(leader)
    assert aborted(c, waiting)
    assert [(e.member, e.reason) for e in c.seen(Expire)] == [(leader, "sync")]


APPEND_ERRORS = {
    "UNKNOWN_TOPIC_OR_PARTITION": ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_NOT_AVAILABLE"),
    "NOT_ENOUGH_REPLICAS": ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_NOT_AVAILABLE"),
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "COORDINATOR_NOT_AVAILABLE"),
    "NOT_LEADER_OR_FOLLOWER": ("NOT_COORDINATOR", "NOT_COORDINATOR"),
    "KAFKA_STORAGE_ERROR": ("NOT_COORDINATOR", "NOT_COORDINATOR"),
    "REQUEST_TIMED_OUT": ("COORDINATOR_NOT_AVAILABLE", "REBALANCE_IN_PROGRESS"),
    "MESSAGE_TOO_LARGE": ("UNKNOWN_SERVER_ERROR", "UNKNOWN_SERVER_ERROR"),
    "RECORD_LIST_TOO_LARGE": ("UNKNOWN_SERVER_ERROR", "UNKNOWN_SERVER_ERROR"),
    "INVALID_FETCH_SIZE": ("UNKNOWN_SERVER_ERROR", "UNKNOWN_SERVER_ERROR"),
    "CORRUPT_MESSAGE": ("CORRUPT_MESSAGE", "CORRUPT_MESSAGE"),
}


@BOTH
@pytest.mark.parametrize("error", APPEND_ERRORS)
def test_an_append_that_fails_aborts_the_sync_phase(release, error):
    c, leader, _, waiting = completing(release)
    told = APPEND_ERRORS[error][0 if release.new else 1]
    before = c.record
    c.log_answers = error
    number = c.send(sync_request(c.group, leader, shares_of(c.group)))
    assert aborted(c, waiting, told)
    assert c.replies[number].error == told
    assert c.record == before
    assert not c.findings()


@BOTH
@pytest.mark.parametrize("error", ["NONE", "NOT_ENOUGH_REPLICAS"])
def test_an_append_that_is_answered_too_late_changes_nothing(release, error):
    c, leader, _, _ = completing(release)
    c.log_answers = None
    c.send(sync_request(c.group, leader, shares_of(c.group)))
    c.leave(leader)
    before = c.group
    c.log(error)
    assert c.group == before
    assert len(c.seen(Assignment)) == (2 if error == "NONE" else 1)


# PreparingRebalance.


@BOTH
def test_the_join_phase_ends_when_everybody_has_rejoined(release):
    c = Coordinator(release)
    a, b = c.stable("a", "b", "i1")[:2]
    c.send(join_request("a", member=a))
    c.send(join_request("b", member=b))
    assert c.group.state == "PreparingRebalance"
    number = c.enter("i1", instance="i1")
    assert (c.group.state, c.group.generation) == ("CompletingRebalance", 2)
    assert c.group.pending_sync == ("a-1", "b-2", "i1-4")
    assert not any(m.is_new for m in c.group.members)
    assert c.joined(number).members == ()
    leads = c.joined(number - 2)
    assert [(m.member, m.instance, m.metadata) for m in leads.members] == [
        ("a-1", None, Metadata(topics=("t",))),
        ("b-2", None, Metadata(topics=("t",))),
        ("i1-4", "i1", Metadata(topics=("t",))),
    ]
    assert not leads.skip_assignment


@BOTH
def test_a_pending_id_holds_the_join_phase_up_until_it_joins(release):
    c = Coordinator(release)
    (a,) = c.stable("a")
    pending = c.join(join_request("b"))
    assert pending is not None
    c.send(join_request("a", member=a))
    assert c.group.state == "PreparingRebalance"
    c.send(join_request("b", member=pending.member))
    assert c.group.state == "CompletingRebalance"


@BOTH
def test_the_join_timer_drops_dynamic_laggards_and_keeps_static_ones(release):
    c = Coordinator(release)
    a, b, i1 = c.stable("a", "b", "i1", session=120_000)
    c.send(join_request("a", member=a, session=120_000))
    c.wait(60_000)
    assert [m.id for m in c.group.members] == [a, i1]
    assert [(e.member, e.reason) for e in c.seen(Expire)] == [(b, "rebalance")]
    assert c.group.pending_sync == (a, i1)
    assert not c.findings()


@BOTH
def test_a_leader_that_does_not_rejoin_is_replaced_by_anyone_who_did(release):
    def run(choose):
        c = Coordinator(release, choose=choose)
        _, *others = c.stable("i1", "b", "d", session=120_000)
        c.send(join_request("b", member=others[0], topics=("u",)))
        c.send(join_request("d", member=others[1]))
        c.wait(60_000)
        return c.group.leader

    assert set(every(run)) == {"b-2", "d-3"}


@BOTH
def test_the_join_timer_starts_anew_while_nobody_waits(release):
    c = Coordinator(release)
    a, _ = c.stable("a", "i1", session=200_000)
    c.leave(a)
    c.wait(60_000)
    assert (c.group.state, c.group.generation) == ("PreparingRebalance", 1)
    c.wait(139_999)
    assert c.group.state == "PreparingRebalance"
    c.wait(1)
    assert (c.group.state, c.group.generation) == ("Empty", 2)


@BOTH
def test_a_member_that_waits_is_not_expired_unless_it_is_new(release):
    c = Coordinator(release)
    a, _ = c.stable("a", "b", session=10_000, timeout=600_000)
    number = c.send(join_request("a", member=a, session=10_000, timeout=600_000))
    new = c.enter("i1", instance="i1", timeout=600_000)
    for _ in range(34):
        c.wait(9_000)
        c.heartbeat("b-2", generation=1)
    assert number not in c.replies
    assert c.replies[new].error == "UNKNOWN_MEMBER_ID"
    assert c.group.member(a) is not None
    assert c.group.holder("i1") is None


def test_ties_between_protocols_are_arbitrary():
    def run(choose):
        c = Coordinator(choose=choose)
        c.enter("a", protocols=("range", "sticky"))
        c.enter("b", protocols=("sticky", "range"))
        c.settle()
        return c.group.protocol

    assert set(every(run)) == {"range", "sticky"}


def test_the_protocol_with_most_votes_wins():
    c = Coordinator()
    for name, offer in (("a", ("range", "sticky")), ("b", ("sticky", "range")), ("d", ("range", "sticky"))):
        c.enter(name, protocols=offer)
    c.settle()
    assert c.group.protocol == "range"


# CompletingRebalance -> Stable.


@BOTH
def test_the_leaders_assignment_is_handed_out_once_it_is_stored(release):
    c, leader, follower, waiting = completing(release)
    c.log_answers = None
    number = c.send(sync_request(c.group, leader, {follower: Share(("t-0",)), "stranger": Share(("t-1",))}))
    assert number not in c.replies
    assert c.group.state == "CompletingRebalance"
    c.log()
    assert c.group.state == "Stable"
    assert c.replies[waiting] == SyncResponse(protocol="range", share=Share(("t-0",)))
    assert c.replies[number] == SyncResponse(protocol="range", share=None)
    stored = c.seen(Assignment)[-1]
    assert isinstance(stored, Assignment)
    assert stored.assignment == {leader: (), follower: ("t-0",)}
    assert [e.resources for e in c.seen(Synced)[-2:]] == [(), ("t-0",)]


# Failover.


@BOTH
def test_a_failover_restores_what_was_stored(release):
    c = Coordinator(release)
    ids = c.stable("a", "i1", protocols=("range", "sticky"))
    c.rejoin_all()
    assert (c.group.generation, c.group.state) == (2, "CompletingRebalance")
    number = c.send(sync_request(c.group, ids[1]))
    c.wait(1_000)
    c.fail_over()
    assert c.replies[number].error == "NOT_COORDINATOR"
    assert (c.group.generation, c.group.state, c.group.leader, c.group.protocol) == (1, "Stable", ids[0], "range")
    assert [m.share for m in c.group.members] == [Share(("t-0",)), Share(("t-1",))]
    assert [[name for name, _ in m.protocols] for m in c.group.members] == [["range"], ["range"]]
    assert [t.deadline for t in timers(c.group)] == [c.now + 45_000] * 2
    assert c.seen(Load)[0].generation == 1
    assert c.heartbeat(ids[0], generation=2) == "ILLEGAL_GENERATION"


def test_a_follower_with_two_protocols_looks_changed_after_a_failover():
    c = Coordinator()
    _, follower = c.stable("a", "b", protocols=("range", "sticky"))
    c.fail_over(crash=True)
    c.send(join_request("b", member=follower, protocols=("range", "sticky")))
    assert c.group.state == "PreparingRebalance"


@BOTH
def test_a_join_that_waits_is_sent_to_the_new_coordinator(release):
    c = Coordinator(release)
    c.stable("a")
    number = c.enter("i1", instance="i1")
    c.fail_over()
    assert c.replies[number].error == "NOT_COORDINATOR"
    assert c.group.holder("i1") is None
    assert not c.findings()


def test_a_group_that_was_never_stored_is_unknown_after_a_failover():
    step = load("g", OLD_3_8, None, 0, ids_given=7)
    assert not step.group.exists
    assert step.group.ids_given == 7
    assert loading("g", ids_given=7).ids_given == 7


@pytest.mark.parametrize(("release", "stored"), [(NEW_4_0, True), (OLD_3_8, False)], ids=["new", "old"])
def test_only_the_new_coordinator_stores_a_group_of_generation_0(release, stored):
    c = Coordinator(release)
    c.join(join_request("a"))
    assert (c.record is not None) is stored
    c.log_answers = None
    c.delete()
    assert c.record is None


# Timers.


def test_a_timer_can_not_fire_early_and_an_old_one_changes_nothing():
    c = Coordinator()
    (member,) = c.stable("a")
    (timer,) = timers(c.group)
    assert timer == Timer(c.now + 45_000, "session", member)
    with pytest.raises(ValueError, match="can't fire"):
        fire(c.group, c.release, timer, timer.deadline - 1, c.choose)
    c.wait(1_000)
    c.heartbeat(member)
    assert fire(c.group, c.release, timer, timer.deadline, c.choose).group == c.group


def test_connect_workers_are_told_in_their_own_form():
    c = Coordinator()
    request = replace(
        join_request("w"),
        protocol_type="connect",
        protocols=(("sessioned", Metadata(owned=("connector:x",), user_data=1)), ("default", Metadata(user_data=1))),
    )
    answer = c.join(request)
    assert answer is not None
    c.send(replace(request, member=answer.member))
    c.settle()
    share = Share(("connector:x", "task:x-0"), started=("task:x-0",), revoked=(), delay_ms=0)
    assert c.ask(replace(sync_request(c.group, answer.member, {answer.member: share}), protocol_type="connect")) == SyncResponse(
        protocol="sessioned", share=share
    )
    (join, _) = c.seen(Join)
    assert isinstance(join, Join)
    assert (join.owned, join.subscribed, join.owned_generation) == (("connector:x",), None, None)
    synced = c.seen(Synced)[0]
    assert isinstance(synced, Synced)
    assert (synced.resources, synced.revoked, synced.delay_ms) == (("connector:x", "task:x-0"), (), 0)
    assert not c.findings()
