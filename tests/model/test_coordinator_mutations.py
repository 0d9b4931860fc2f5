"""Every defect of the coordinator: the rule that finds it, in a story that is healthy without it, or what it does unseen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from coordinator_driver import Coordinator, join_request, shares_of, sync_request

from kipcheck.model.coordinator import LATENT, MUTATIONS, NEW_4_0, OLD_3_8
from kipcheck.model.messages import HeartbeatRequest, JoinResponse, Share, SyncResponse
from kipcheck.spec import RULES
from kipcheck.spec.events import Expire, Rebalance, Replace

Story = Callable[[Coordinator], None]


def twice_rebalanced(c: Coordinator) -> None:
    c.stable("a", "b")
    c.rejoin_all()
    c.sync_all()
    c.rejoin_all()


def leader_syncs_twice(c: Coordinator) -> None:
    a, b = c.stable("a", "b")
    c.ask(sync_request(c.group, a, {a: Share(("t-1",)), b: Share(("t-0",))}))
    c.ask(sync_request(c.group, b))


def laggard(c: Coordinator) -> None:
    """b misses the generation; the leader assigns to whoever it is told of."""
    a, b = c.stable("a", "b", session=60_000, timeout=10_000)
    number = c.send(join_request("a", member=a, session=60_000, timeout=10_000))
    c.heartbeat(b)
    c.wait(10_000)
    told = c.joined(number).members
    c.sync_all({m.member: Share((f"t-{index}",)) for index, m in enumerate(told)})


def assignors_differ(c: Coordinator) -> None:
    for name, offer in (("a", ("range", "sticky")), ("b", ("range", "sticky")), ("c", ("sticky",))):
        c.enter(name, protocols=offer)
    c.settle()
    c.sync_all()


def old_generation_heartbeats(c: Coordinator) -> None:
    a, _ = c.stable("a", "b")
    c.rejoin_all()
    c.sync_all()
    c.heartbeat(a, generation=1)


def old_generation_commits(c: Coordinator) -> None:
    a, _ = c.stable("a", "b")
    c.rejoin_all()
    c.sync_all()
    c.commit(a, generation=1)


def leader_rejoins_first(c: Coordinator) -> None:
    a, b = c.stable("a", "b")
    c.send(join_request("a", member=a))
    c.wait(1_000)
    c.heartbeat(b, generation=1)
    c.rejoin_all(but=(a,))
    c.sync_all()


def slow_rejoin(c: Coordinator) -> None:
    a, b, d = c.stable("a", "b", "d", session=60_000, timeout=10_000)
    c.send(join_request("a", member=a, session=60_000, timeout=10_000))
    c.send(join_request("d", member=d, session=60_000, timeout=10_000))
    c.wait(30_000)
    c.send(join_request("b", member=b, session=60_000, timeout=10_000))


def two_of_one_instance(c: Coordinator) -> None:
    c.enter("i1", instance="i1")
    c.enter("i1", instance="i1")
    c.settle()


def replaced_id_heartbeats(c: Coordinator) -> None:
    _, old = c.stable("a", "i1")
    c.enter("i1", instance="i1")
    c.heartbeat(old, instance="i1")


def static_return(c: Coordinator) -> None:
    a, old = c.stable("a", "i1")
    c.rejoin_all()
    c.sync_all({a: Share(("t-0",)), old: Share(("t-1", "t-2"))})
    new = c.joined(c.enter("i1", instance="i1")) if c.group.state == "Stable" else None
    if new is not None and c.group.state == "Stable":
        c.ask(sync_request(c.group, new.member))


def static_return_rebalances(c: Coordinator) -> None:
    c.stable("a", "i1")
    c.enter("i1", instance="i1")
    c.rejoin_all()


def static_return_while_completing(c: Coordinator) -> None:
    """The leader assigns to the members that it was told of."""
    numbers = [c.enter("a"), c.enter("i1", instance="i1")]
    c.settle()
    leader, told = c.joined(numbers[0]), c.joined(numbers[0]).members
    number = c.send(join_request("i1", instance="i1", version=5))
    if c.group.state == "PreparingRebalance":
        numbers[0] = c.rejoin_all()[0]
        leader, told = c.joined(numbers[0]), c.joined(numbers[0]).members
    c.send(sync_request(c.group, leader.member, {m.member: Share((f"t-{index}",)) for index, m in enumerate(told)}))
    c.send(sync_request(c.group, c.joined(number).member))


def absent_static_member(c: Coordinator) -> None:
    """i1 is silent for 10 s of its 60 s; its rebalance timeout is the longest."""
    a, _ = c.stable("a", "i1", session=60_000, timeout=10_000)
    c.send(join_request("a", member=a, session=60_000, timeout=10_000))
    c.wait(10_000)
    c.sync_all()


SEEN: dict[str, Story] = {
    "generation-counts-down": twice_rebalanced,
    "stable-leader-reassigns": leader_syncs_twice,
    "leader-told-of-removed-members": laggard,
    "protocol-by-majority": assignors_differ,
    "heartbeat-of-any-generation": old_generation_heartbeats,
    "commit-of-any-generation": old_generation_commits,
    "join-phase-does-not-wait": leader_rejoins_first,
    "join-timer-not-armed": slow_rejoin,
    "static-replaced-only-when-stable": two_of_one_instance,
    "replaced-id-keeps-its-session": replaced_id_heartbeats,
    "static-return-rebalances": static_return_rebalances,
    "static-return-loses-a-partition": static_return,
    "static-return-answered-while-completing": static_return_while_completing,
    "join-timer-drops-static-members": absent_static_member,
}


@pytest.mark.parametrize("release", [NEW_4_0, OLD_3_8], ids=["new", "old"])
@pytest.mark.parametrize("mutation", [m for m in MUTATIONS if m.breaks], ids=lambda m: m.name)
def test_the_rule_finds_it_and_nothing_else(mutation, release):
    story = SEEN[mutation.name]
    healthy, defective = Coordinator(release), Coordinator(replace(release, defects=frozenset({mutation.name})))
    story(healthy)
    story(defective)
    assert healthy.broken() == set()
    assert defective.broken() == set(mutation.breaks)


def test_every_mutation_breaks_a_known_rule_or_says_why_it_is_unseen():
    names = [m.name for m in (*MUTATIONS, *LATENT)]
    assert len(set(names)) == len(names)
    for mutation in (*MUTATIONS, *LATENT):
        assert bool(mutation.breaks) != bool(mutation.unseen), mutation.name
        assert set(mutation.breaks) <= set(RULES), mutation.name
    assert {m.name for m in MUTATIONS if m.breaks} == set(SEEN)


# Defects that no observer of requests and answers can tell: what they do, and that no rule objects.


def defective(name: str, **driver: object) -> Coordinator:
    return Coordinator(replace(NEW_4_0, defects=frozenset({name})), **driver)


def test_a_replaced_id_is_unknown_instead_of_fenced():
    c = defective("replaced-id-is-unknown")
    _, old = c.stable("a", "i1")
    c.enter("i1", instance="i1")
    assert c.heartbeat(old, instance="i1") == "UNKNOWN_MEMBER_ID"
    assert not c.findings()


def test_a_dead_group_denies_its_members():
    c = defective("dead-group-denies-members")
    (member,) = c.stable("i1")
    request = HeartbeatRequest(member=member, instance="i1", generation=1)
    gone = Coordinator(c.release)
    gone.group = replace(c.group, state="Dead", members=())
    assert gone.error(request) == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize(
    ("defects", "answer"), [(frozenset(), "NONE"), (frozenset({"static-replacement-not-stored"}), "FENCED_INSTANCE_ID")]
)
def test_a_replacement_that_is_not_stored_is_lost_in_a_failover(defects, answer):
    c = Coordinator(replace(NEW_4_0, defects=defects))
    c.stable("a", "i1")
    new = c.joined(c.enter("i1", instance="i1")).member
    c.fail_over()
    assert c.heartbeat(new, instance="i1") == answer
    assert not c.findings()


@pytest.mark.parametrize(
    ("defects", "state"), [(frozenset(), "PreparingRebalance"), (frozenset({"sync-phase-unbounded"}), "CompletingRebalance")]
)
def test_a_leader_that_only_heartbeats_holds_the_sync_phase_up(defects, state):
    c = Coordinator(replace(NEW_4_0, defects=defects))
    numbers = [c.enter("a"), c.enter("b")]
    c.settle()
    follower = c.joined(numbers[1]).member
    c.send(sync_request(c.group, follower))
    for _ in range(61):
        c.heartbeat(c.joined(numbers[0]).member, generation=1)
        c.wait(1_000)
    assert c.group.state == state
    assert not c.findings()


@pytest.mark.parametrize(
    ("defects", "state"), [(frozenset(), "CompletingRebalance"), (frozenset({"pending-members-not-rechecked"}), "PreparingRebalance")]
)
def test_a_pending_member_that_goes_does_not_end_the_join_phase(defects, state):
    c = Coordinator(replace(NEW_4_0, defects=defects))
    c.stable("a")
    pending = c.join(join_request("b"))
    assert pending is not None
    c.rejoin_all()
    assert c.group.state == "PreparingRebalance"
    c.leave(pending.member)
    assert c.group.state == state
    c.wait(60_000)
    assert c.group.generation == 2 or c.group.generation == 3
    assert not c.findings()


def test_a_heartbeat_in_the_sync_phase_was_refused():
    c = defective("completing-heartbeat-refused")
    number = c.enter("a")
    c.settle()
    assert c.heartbeat(c.joined(number).member) == "REBALANCE_IN_PROGRESS"
    assert not c.findings()


@pytest.mark.parametrize(("defects", "kept"), [(frozenset(), 20_000), (frozenset({"rejoin-keeps-old-timeouts"}), 45_000)])
def test_timeouts_of_a_member_that_rejoins(defects, kept):
    c = Coordinator(replace(NEW_4_0, defects=defects))
    (member,) = c.stable("a")
    c.send(join_request("a", member=member, session=20_000))
    assert c.group.members[0].session_timeout_ms == kept


@pytest.mark.parametrize(("defects", "skips"), [(frozenset(), True), (frozenset({"assignment-not-skipped"}), False)])
def test_a_static_leader_that_returns(defects, skips):
    c = Coordinator(replace(NEW_4_0, defects=defects))
    (old,) = c.stable("i1")
    answer = c.joined(c.enter("i1", instance="i1"))
    assert answer.skip_assignment is skips
    assert bool(answer.members) is skips
    assert answer.leader == (answer.member if skips else old)


# What the present coordinators do (LATENT): each shown once.


def test_l1_a_failover_fences_the_live_process():
    c = Coordinator()
    _, old = c.stable("a", "i1")
    c.rejoin_all()
    number = c.enter("i1", instance="i1")
    c.rejoin_all()
    live = c.joined(number).member
    assert c.group.state == "CompletingRebalance"
    c.fail_over()
    assert c.heartbeat(live, instance="i1", generation=3) == "FENCED_INSTANCE_ID"
    assert c.heartbeat(old, instance="i1", generation=c.group.generation) == "NONE"
    assert not c.findings()


def test_l2_the_sync_timer_removes_an_absent_static_member():
    c = Coordinator()
    a, b = c.stable("a", "i1", session=60_000, timeout=10_000)
    c.send(join_request("a", member=a, session=60_000, timeout=10_000))
    c.wait(10_000)
    c.send(sync_request(c.group, a, shares_of(c.group)))
    for _ in range(10):
        c.wait(1_000)
        c.heartbeat(a)
    assert [(e.member, e.reason) for e in c.seen(Expire)] == [(b, "sync")]
    assert [(f.rule, f.severity) for f in c.findings()] == [("static-slot-held", "warning")]


def test_l3_a_full_group_refuses_a_static_member_that_returns():
    c = Coordinator(replace(NEW_4_0, max_size=1))
    c.stable("i1")
    answer = c.join(join_request("i1", instance="i1"))
    assert answer is not None
    assert answer.error == "GROUP_MAX_SIZE_REACHED"


def test_l4_the_sync_timer_waits_for_a_replaced_id():
    c = Coordinator()
    c.enter("a")
    number = c.enter("i1", instance="i1")
    c.settle()
    a, old = c.group.members[0].id, c.joined(number).member
    c.send(sync_request(c.group, a, shares_of(c.group)))
    new = c.joined(c.enter("i1", instance="i1")).member
    assert c.error(sync_request(c.group, new)) == "NONE"
    for _ in range(60):
        c.wait(1_000)
        c.heartbeat(a, generation=1)
        c.heartbeat(new, instance="i1", generation=1)
    assert c.group.state == "PreparingRebalance"
    assert [e.reason for e in c.seen(Rebalance)][1:] == [f"Removing [{old}] on pending sync request expiration"]
    assert c.group.member(new) is not None
    assert not c.findings()


def test_l5_its_old_incarnation_vetoes_new_assignors():
    c = Coordinator()
    c.stable("i1", protocols=("range",))
    assert c.error(join_request("i1", instance="i1", protocols=("sticky",))) == "INCONSISTENT_GROUP_PROTOCOL"


@pytest.mark.parametrize(("release", "generation"), [(NEW_4_0, 1), (OLD_3_8, 0)], ids=["new", "old"])
def test_l6_an_expiry_cuts_the_initial_delay(release, generation):
    c = Coordinator(replace(release, initial_rebalance_delay_ms=20_000))
    c.enter("i1", instance="i1")
    c.send(join_request("a", session=6_000))
    c.wait(6_000)
    assert c.group.generation == generation


@pytest.mark.parametrize(("release", "state"), [(NEW_4_0, "PreparingRebalance"), (OLD_3_8, "Stable")], ids=["new", "old"])
def test_l7_a_pending_member_that_leaves_makes_the_group_rebalance(release, state):
    c = Coordinator(release)
    c.stable("a")
    pending = c.join(join_request("b"))
    assert pending is not None
    assert c.leave(pending.member) == "NONE"
    assert c.group.state == state


@pytest.mark.parametrize(("release", "kept"), [(NEW_4_0, ("range",)), (OLD_3_8, ("range", "sticky"))], ids=["new", "old"])
def test_l8_protocols_after_a_replacement_that_was_not_stored(release, kept):
    c = Coordinator(release)
    (old,) = c.stable("i1")
    c.log_answers = "NOT_LEADER_OR_FOLLOWER"
    assert c.error(join_request("i1", instance="i1", protocols=("range", "sticky"))) == "NOT_COORDINATOR"
    member = c.group.member(old)
    assert member is not None
    assert tuple(name for name, _ in member.protocols) == kept
    assert c.heartbeat(old, instance="i1") == "NONE"
    assert not c.findings()


@pytest.mark.parametrize(("release", "present"), [(NEW_4_0, True), (OLD_3_8, False)], ids=["new", "old"])
def test_l10_a_replaced_newcomer_may_be_expired_while_it_waits(release, present):
    c = Coordinator(replace(release, initial_rebalance_delay_ms=30_000))
    c.enter("i1", instance="i1", session=10_000)
    c.enter("i1", instance="i1", session=10_000)
    c.wait(10_000)
    assert bool(c.group.members) is present


@pytest.mark.parametrize(("release", "restarted"), [(NEW_4_0, False), (OLD_3_8, True)], ids=["new", "old"])
def test_l11_a_sync_in_a_stable_group_as_a_sign_of_life(release, restarted):
    c = Coordinator(release)
    (member,) = c.stable("a")
    before = c.group.members[0].deadline
    c.wait(1_000)
    assert c.error(sync_request(c.group, member)) == "NONE"
    assert (c.group.members[0].deadline != before) is restarted


@pytest.mark.parametrize(("release", "answered"), [(NEW_4_0, True), (OLD_3_8, False)], ids=["new", "old"])
def test_l13_a_replacement_that_is_stored_late_is_answered_late(release, answered):
    c = Coordinator(release)
    c.stable("i1", "i2")
    c.log_answers = None
    number = c.enter("i1", instance="i1")
    c.send(join_request("i3", instance="i3"))
    c.log()
    assert c.group.state == "PreparingRebalance"
    assert (number in c.replies) is answered


def test_l14_a_member_that_is_removed_while_it_waits_with_sync_is_never_answered():
    c = Coordinator()
    c.enter("a")
    c.enter("b")
    c.settle()
    follower = c.group.members[1].id
    number = c.send(sync_request(c.group, follower))
    assert c.leave(follower) == "NONE"
    c.wait(200_000)
    assert number not in c.replies


def test_a_request_sent_twice_is_answered_once():
    """KAFKA-20938: the second JoinGroup or SyncGroup of a member takes the place of the first."""
    c = Coordinator()
    a, b = c.stable("a", "b")
    joins = [c.send(join_request("a", member=a)) for _ in range(2)]
    c.rejoin_all()
    syncs = [c.send(sync_request(c.group, b)) for _ in range(2)]
    c.send(sync_request(c.group, a, shares_of(c.group)))
    assert [number in c.replies for number in (*joins, *syncs)] == [False, True, False, True]


def test_a_replacement_that_cannot_be_stored_is_taken_back():
    c = Coordinator()
    (old,) = c.stable("i1")
    c.log_answers = None
    number = c.enter("i1", instance="i1")
    new = c.seen(Replace)[-1].member
    assert c.heartbeat(old, instance="i1") == "FENCED_INSTANCE_ID"
    c.log("NOT_ENOUGH_REPLICAS")
    answer = c.replies[number]
    assert isinstance(answer, JoinResponse)
    assert (answer.error, answer.generation, answer.member, answer.leader) == ("COORDINATOR_NOT_AVAILABLE", 1, "", old)
    assert c.heartbeat(old, instance="i1") == "NONE"
    assert c.heartbeat(str(new), instance="i1") == "FENCED_INSTANCE_ID"
    assert isinstance(c.ask(sync_request(c.group, old)), SyncResponse)
    assert not c.findings()


@pytest.mark.parametrize("release", [NEW_4_0, OLD_3_8], ids=["new", "old"])
def test_what_a_replacement_waits_with_when_it_is_taken_back_is_fenced(release):
    """A rebalance has answered its JoinGroup, and it waits for its assignment, when the log refuses the replacement."""
    c = Coordinator(release)
    old, other = c.stable("i1", "i2")
    c.log_answers = None
    joined = c.enter("i1", instance="i1")
    new = str(c.seen(Replace)[-1].member)
    c.send(join_request("i2", member=other, instance="i2", topics=("t", "u")))
    c.settle()
    assert c.joined(joined).member == new
    synced = c.send(sync_request(c.group, new))
    assert synced not in c.replies
    c.log("NOT_ENOUGH_REPLICAS")
    assert c.replies[synced].error == "FENCED_INSTANCE_ID"
    member = c.group.member(old)
    assert member is not None
    assert (c.group.member(new), member.sync) == (None, None)
    assert not c.findings()
