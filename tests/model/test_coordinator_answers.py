"""Every row of the request tables: which error is answered, in which state, and which check comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from coordinator_driver import Coordinator, join_request, shares_of, sync_request

from kipcheck.model.coordinator import NEW_4_0, OLD_3_8, Release, loading, receive, unload
from kipcheck.model.messages import Address, CommitRequest, HeartbeatRequest, JoinRequest, JoinResponse, LeaveRequest, Request, SyncRequest
from kipcheck.spec.events import Commit, Heartbeat, Join, Joined, Leave, Replace, Sync, Synced

BOTH = pytest.mark.parametrize("release", [NEW_4_0, OLD_3_8], ids=["new", "old"])
STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable")

JOIN = join_request("a", member="a-1")
SYNC = SyncRequest(member="a-1", generation=1)
HEARTBEAT = HeartbeatRequest(member="a-1", generation=1)
LEAVE = LeaveRequest(member="a-1")
COMMIT = CommitRequest(member="a-1", generation=1, partitions=("t-0",))


def in_state(state: str, release: Release = NEW_4_0) -> Coordinator:
    """A group with the leader a-1 and the static i1-2, brought into ``state`` after its first generation."""
    c = Coordinator(release)
    c.stable("a", "i1")
    if state == "Empty":
        c.leave("a-1")
        c.leave("i1-2")
    if state in ("PreparingRebalance", "CompletingRebalance"):
        c.send(join_request("a", member="a-1"))
    if state == "CompletingRebalance":
        c.send(join_request("i1", member="i1-2", instance="i1"))
    assert c.group.state == state
    return c


# Before the group.


@BOTH
@pytest.mark.parametrize("request_", [JOIN, SYNC, HEARTBEAT, LEAVE, COMMIT], ids=lambda r: type(r).__name__)
def test_a_group_that_its_coordinator_let_go(release, request_):
    c = in_state("Stable", release)
    c.group = unload(c.group, release, c.now).group
    assert c.error(request_) == "COORDINATOR_NOT_AVAILABLE"


@BOTH
@pytest.mark.parametrize(
    ("request_", "new", "old"),
    [
        (join_request("a"), "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS"),
        (join_request("a", session=1), "INVALID_SESSION_TIMEOUT", "COORDINATOR_LOAD_IN_PROGRESS"),
        (SYNC, "COORDINATOR_LOAD_IN_PROGRESS", "REBALANCE_IN_PROGRESS"),
        (HEARTBEAT, "NONE", "NONE"),
        (LEAVE, "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS"),
        (COMMIT, "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_coordinator_that_is_loading(release, request_, new, old):
    step = receive(loading("g"), release, Address("p", 1), request_, 0, lambda _, options: options[0])
    assert [r.response.error for r in step.replies] == [new if release.new else old]


@BOTH
@pytest.mark.parametrize("request_", [JOIN, SYNC, HEARTBEAT, LEAVE], ids=lambda r: type(r).__name__)
def test_a_group_without_a_name(release, request_):
    assert Coordinator(release, group="").error(request_) == "INVALID_GROUP_ID"


@BOTH
@pytest.mark.parametrize(
    ("session", "error"), [(5_999, "INVALID_SESSION_TIMEOUT"), (6_000, None), (1_800_000, None), (1_800_001, "INVALID_SESSION_TIMEOUT")]
)
def test_limits_of_the_session_timeout(release, session, error):
    assert Coordinator(release).error(join_request("i1", instance="i1", session=session)) == error


@BOTH
@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (JOIN, "UNKNOWN_MEMBER_ID"),
        (SYNC, "UNKNOWN_MEMBER_ID"),
        (HEARTBEAT, "UNKNOWN_MEMBER_ID"),
        (LEAVE, "UNKNOWN_MEMBER_ID"),
        (COMMIT, "ILLEGAL_GENERATION"),
        (replace(COMMIT, generation=-1, member=""), "NONE"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_group_that_nobody_joined(release, request_, error):
    c = Coordinator(release)
    assert c.error(request_) == error
    assert not c.group.exists


# Who asks.


@BOTH
@pytest.mark.parametrize("state", STATES[1:])
@pytest.mark.parametrize("kind", ["join", "sync", "heartbeat", "leave", "commit"])
@pytest.mark.parametrize(
    ("member", "instance", "error"),
    [
        ("a-9", None, "UNKNOWN_MEMBER_ID"),
        ("a-1", "i7", "UNKNOWN_MEMBER_ID"),
        ("a-1", "i1", "FENCED_INSTANCE_ID"),
        ("i1-0", "i1", "FENCED_INSTANCE_ID"),
        ("i1-0", None, "UNKNOWN_MEMBER_ID"),
    ],
)
def test_strangers_are_told_so_before_anything_else(release, state, kind, member, instance, error):
    requests: dict[str, Request] = {
        "join": join_request("a", member=member, instance=instance),
        "sync": SyncRequest(member=member, instance=instance, generation=77, protocol="none"),
        "heartbeat": HeartbeatRequest(member=member, instance=instance, generation=77),
        "leave": LeaveRequest(member=member, instance=instance),
        "commit": CommitRequest(member=member, instance=instance, generation=77, partitions=("t-0",)),
    }
    c = in_state(state, release)
    before = c.group
    answer = c.ask(requests[kind])
    assert answer is not None
    assert answer.error == error
    assert not isinstance(answer, JoinResponse) or (answer.member, answer.generation) == (member, -1)
    assert c.group == before


@BOTH
def test_a_static_member_may_leave_its_instance_id_out(release):
    c = in_state("Stable", release)
    assert c.heartbeat("i1-2") == "NONE"


@BOTH
def test_a_pending_id_is_no_member_yet(release):
    c = in_state("Stable", release)
    c.join(join_request("b"))
    assert c.heartbeat("b-3") == "UNKNOWN_MEMBER_ID"
    assert c.commit("b-3") == "UNKNOWN_MEMBER_ID"
    assert c.error(replace(SYNC, member="b-3")) == "UNKNOWN_MEMBER_ID"
    assert c.error(join_request("b", member="b-3", instance="i9")) == "UNKNOWN_SERVER_ERROR"


# JoinGroup.


@BOTH
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    ("version", "instance", "after"),
    [
        (4, None, None),
        (9, None, None),
        (3, None, "PreparingRebalance"),
        (5, "i2", "PreparingRebalance"),
    ],
)
def test_a_first_join(release, state, version, instance, after):
    c = in_state(state, release)
    answer = c.join(join_request("b", instance=instance, version=version))
    if after is None:
        assert answer is not None
        assert (answer.error, answer.member, answer.generation) == ("MEMBER_ID_REQUIRED", "b-3", -1)
        assert c.group.state == state
        assert c.group.is_pending("b-3")
        assert [(e.member, e.error) for e in c.seen(Joined)[-1:]] == [("b-3", "MEMBER_ID_REQUIRED")]
    else:
        assert answer is None
        assert c.group.state == after
        assert c.group.member(f"{instance or 'b'}-3") is not None


@BOTH
@pytest.mark.parametrize("state", STATES)
def test_a_join_with_an_id_that_was_given(release, state):
    c = in_state(state, release)
    c.join(join_request("b"))
    assert c.join(join_request("b", member="b-3")) is None
    assert c.group.state == "PreparingRebalance"
    assert not c.group.pending


@BOTH
def test_static_returns_in_each_state(release):
    c = in_state("PreparingRebalance", release)
    first = c.send(join_request("i1", instance="i1", topics=("u",)))
    assert c.group.state == "CompletingRebalance"
    assert c.joined(first).member == "i1-3"
    second = c.send(join_request("i1", instance="i1"))
    assert c.group.state == "PreparingRebalance"
    third = c.send(join_request("i1", instance="i1"))
    answer = c.replies[second]
    assert isinstance(answer, JoinResponse)
    assert (answer.error, answer.member) == ("FENCED_INSTANCE_ID", "i1-4")
    c.send(join_request("a", member="a-1"))
    assert c.joined(third).member == "i1-5"
    assert [(e.old_member, e.member) for e in c.seen(Replace) if isinstance(e, Replace)] == [
        ("i1-2", "i1-3"),
        ("i1-3", "i1-4"),
        ("i1-4", "i1-5"),
    ]
    assert not c.findings()


@BOTH
@pytest.mark.parametrize(("version", "skips"), [(5, False), (8, False), (9, True)])
def test_a_static_leader_returns_to_a_stable_group(release, version, skips):
    c = Coordinator(release)
    c.stable("i1", "a")
    c.wait(5_000)
    number = c.send(join_request("i1", instance="i1", version=version, session=20_000, topics=("u",)))
    answer = c.joined(number)
    assert (answer.member, answer.generation, answer.skip_assignment, len(answer.members)) == ("i1-3", 1, skips, 2 if skips else 0)
    assert answer.leader == ("i1-3" if skips else "i1-1")
    assert (c.group.state, c.group.leader) == ("Stable", "i1-3")
    assert c.record is not None
    assert [m.id for m in c.record.members] == ["i1-3", "a-2"]
    assert c.record.members[0].metadata.topics == ("u",)
    member = c.group.member("i1-3")
    assert member is not None
    assert (member.deadline, member.session_timeout_ms) == (c.now + 45_000, 20_000), "the timer runs with the old timeout"
    answered = c.ask(sync_request(c.group, "i1-3", shares_of(c.group)))
    assert answered is not None
    assert answered.share.resources == ("t-0",)
    assert not c.findings()


@BOTH
def test_a_static_follower_returns_to_a_stable_group(release):
    c = in_state("Stable", release)
    answer = c.joined(c.send(join_request("i1", instance="i1")))
    assert (answer.members, answer.skip_assignment, answer.leader) == ((), False, "a-1")


@BOTH
@pytest.mark.parametrize("state", STATES[1:])
@pytest.mark.parametrize(
    "request_",
    [
        join_request("b", protocols=("sticky",)),
        join_request("b", protocols=()),
        replace(join_request("b"), protocol_type="connect"),
        join_request("a", member="a-1", protocols=("sticky",)),
    ],
    ids=["no common protocol", "no protocol", "another type", "a member"],
)
def test_protocols_that_do_not_fit(release, state, request_):
    c = in_state(state, release)
    answer = c.join(request_)
    assert answer is not None
    assert (answer.error, answer.member) == ("INCONSISTENT_GROUP_PROTOCOL", request_.member)
    assert c.group.state == state


@BOTH
def test_an_empty_group_takes_any_protocol_but_none(release):
    c = in_state("Empty", release)
    assert c.error(join_request("i2", instance="i2", protocols=())) == "INCONSISTENT_GROUP_PROTOCOL"
    assert c.error(replace(join_request("i2", instance="i2", protocols=("sessioned",)), protocol_type="connect")) is None


@BOTH
@pytest.mark.parametrize(
    ("state", "full"), [("Empty", False), ("PreparingRebalance", False), ("CompletingRebalance", True), ("Stable", True)]
)
def test_a_full_group(release, state, full):
    c = in_state(state, release)
    c.release = replace(release, max_size=2)
    answer = c.join(join_request("b", version=3))
    assert (None if answer is None else (answer.error, answer.member)) == (("GROUP_MAX_SIZE_REACHED", "") if full else None)
    assert state == "Empty" or c.error(join_request("a", member="a-1", topics=("u",))) is None


@BOTH
def test_a_full_join_phase_takes_no_more_and_drops_a_known_latecomer(release):
    c = in_state("PreparingRebalance", release)
    c.release = replace(release, max_size=1)
    assert c.error(join_request("i1", member="i1-2", instance="i1")) == "GROUP_MAX_SIZE_REACHED"
    assert [m.id for m in c.group.members] == ["a-1"]
    assert c.group.state == "CompletingRebalance"


# SyncGroup.


@BOTH
@pytest.mark.parametrize(
    ("state", "error"),
    [("Empty", "UNKNOWN_MEMBER_ID"), ("PreparingRebalance", "REBALANCE_IN_PROGRESS"), ("CompletingRebalance", None), ("Stable", "NONE")],
)
def test_a_sync_of_a_follower(release, state, error):
    c = in_state(state, release)
    assert c.error(SyncRequest(member="i1-2", instance="i1", generation=c.group.generation)) == error


@BOTH
@pytest.mark.parametrize("state", STATES[1:])
@pytest.mark.parametrize("ahead", [-1, 1])
def test_a_sync_of_another_generation(release, state, ahead):
    c = in_state(state, release)
    assert c.error(SyncRequest(member="a-1", generation=c.group.generation + ahead, protocol="none")) == "ILLEGAL_GENERATION"


@BOTH
@pytest.mark.parametrize("state", STATES[1:])
@pytest.mark.parametrize("wrong", [{"protocol": "sticky"}, {"protocol_type": "connect"}])
def test_a_sync_of_another_protocol(release, state, wrong):
    c = in_state(state, release)
    request = SyncRequest(**{"member": "a-1", "generation": c.group.generation, "protocol": "range", **wrong})
    assert c.error(request) == "INCONSISTENT_GROUP_PROTOCOL"


@BOTH
def test_a_leaders_sync_in_a_stable_group_is_ignored(release):
    c = in_state("Stable", release)
    before = [m.share for m in c.group.members]
    answer = c.ask(sync_request(c.group, "a-1", {"a-1": before[1], "i1-2": before[0]}))
    assert answer is not None
    assert answer.share == before[0]
    assert [m.share for m in c.group.members] == before


# Heartbeat.


@BOTH
@pytest.mark.parametrize(
    ("state", "error"),
    [("Empty", "UNKNOWN_MEMBER_ID"), ("PreparingRebalance", "REBALANCE_IN_PROGRESS"), ("CompletingRebalance", "NONE"), ("Stable", "NONE")],
)
def test_a_heartbeat(release, state, error):
    c = in_state(state, release)
    c.wait(1_000)
    assert c.heartbeat("a-1") == error
    assert state == "Empty" or c.group.members[0].deadline == c.now + 45_000


@BOTH
@pytest.mark.parametrize("state", STATES[1:])
@pytest.mark.parametrize("ahead", [-1, 1])
def test_a_heartbeat_of_another_generation(release, state, ahead):
    c = in_state(state, release)
    assert c.heartbeat("a-1", generation=c.group.generation + ahead) == "ILLEGAL_GENERATION"


# LeaveGroup.


@BOTH
@pytest.mark.parametrize("state", STATES)
def test_leaving(release, state):
    c = in_state(state, release)
    there = state != "Empty"
    assert c.leave("a-1") == ("NONE" if there else "UNKNOWN_MEMBER_ID")
    assert c.leave("a-1") == "UNKNOWN_MEMBER_ID"
    assert c.leave(instance="i1") == ("NONE" if there else "UNKNOWN_MEMBER_ID")
    assert c.leave(instance="i1") == "UNKNOWN_MEMBER_ID"
    assert c.leave() == "UNKNOWN_MEMBER_ID"
    assert c.group.state == "Empty"


@BOTH
def test_a_member_that_leaves_while_it_waits_is_answered(release):
    c = in_state("PreparingRebalance", release)
    number = c.sent
    assert c.leave("a-1") == "NONE"
    answer = c.replies[number]
    assert isinstance(answer, JoinResponse)
    assert (answer.error, answer.member) == ("UNKNOWN_MEMBER_ID", "")


@BOTH
def test_a_pending_id_leaves(release):
    c = in_state("Empty", release)
    c.join(join_request("b"))
    assert c.leave("b-3") == "NONE"
    assert c.leave("b-3") == "UNKNOWN_MEMBER_ID"


# OffsetCommit.


@BOTH
@pytest.mark.parametrize(
    ("state", "error"),
    [("Empty", "UNKNOWN_MEMBER_ID"), ("PreparingRebalance", "NONE"), ("CompletingRebalance", "REBALANCE_IN_PROGRESS"), ("Stable", "NONE")],
)
def test_a_commit(release, state, error):
    c = in_state(state, release)
    c.wait(1_000)
    assert c.commit("a-1") == error
    if error == "NONE":
        assert c.group.members[0].deadline == c.now + 45_000


@BOTH
@pytest.mark.parametrize("state", STATES[1:])
def test_a_commit_of_another_generation(release, state):
    c = in_state(state, release)
    assert c.commit("a-1", generation=c.group.generation - 1) == "ILLEGAL_GENERATION"
    assert c.commit("a-1", generation=-1) == "ILLEGAL_GENERATION"


@BOTH
@pytest.mark.parametrize("state", STATES)
def test_a_commit_from_outside_the_group(release, state):
    c = in_state(state, release)
    assert c.commit("", generation=-1) == ("NONE" if state == "Empty" else "UNKNOWN_MEMBER_ID")
    assert c.commit("", generation=-1, instance="i1") == ("NONE" if state == "Empty" else "FENCED_INSTANCE_ID")


# What an observer sees.


def test_events_say_who_asked():
    c = in_state("Stable")
    c.heartbeat("i1-2", instance="i1")
    c.commit("a-1")
    c.leave(instance="i1")
    c.send(JoinRequest(member="a-1", client="a", protocols=join_request("a").protocols, reason="because"))
    (beat,) = c.seen(Heartbeat)
    (commit,) = c.seen(Commit)
    (leave,) = c.seen(Leave)
    assert (beat.member, beat.instance, beat.client, beat.generation) == ("i1-2", "i1", "i1", 1)
    assert (commit.member, commit.instance, commit.client, commit.resources) == ("a-1", None, "a", ("t-0",))
    assert (leave.member, leave.instance, leave.client, leave.generation) == ("", "i1", "i1", 1)
    join = c.seen(Join)[-1]
    assert isinstance(join, Join)
    assert (join.member, join.client, join.protocols, join.subscribed, join.owned, join.owned_generation) == (
        "a-1",
        "a",
        ("range",),
        ("t",),
        (),
        -1,
    )
    assert join.extra == {"reason": "because"}
    assert {e.client for e in (*c.seen(Sync), *c.seen(Synced))} == {"a", "i1"}
