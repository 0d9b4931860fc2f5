"""A healthy group gives no finding, whatever part of it was captured."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kipcheck.spec import RULES, Finding, check
from kipcheck.spec.events import Event, Gap

from .healthy import BROKER, OFFSETS, REQUESTS, STEPS, Group
from .trace_builder import Trace, broken, p

STEPS_DRAWN = st.lists(st.sampled_from(STEPS), max_size=14).map(lambda steps: ["dynamic", *steps])
SCALE = (
    "dynamic",
    "static",
    "dynamic",
    "static",
    "quiet",
    "bounce",
    "leave",
    "dynamic",
    "crash",
    "away",
    "leader",
    "failover",
    "static",
    "empty",
    "dynamic",
)


ADMIN = "member was removed by an admin"
ESSENTIAL = {("coordinator", "leave"), ("coordinator", "expire"), ("member", "revoked"), ("member", "lost")}
"""Whoever shows the rest and hides these tells a lie."""


def alarms(events: Iterable[Event]) -> list[Finding]:
    return [f for g in check(events) for f in g.findings if RULES[f.rule].kip in ("group protocol", "KIP-429", "KIP-345")]


def files(events: Iterable[Event]) -> list[str]:
    return sorted({e.src.file for e in events if e.src is not None})


def of(file: str, events: Iterable[Event]) -> list[Event]:
    return [e for e in events if e.src is not None and e.src.file == file]


def _gap(before: list[Event]) -> list[Event]:
    """A member's log says where lines of it are missing; a coordinator's doesn't have to."""
    if not before or before[-1].observer == "coordinator":
        return []
    last = before[-1]
    return [
        Gap(group=last.group, epoch=last.epoch, generation=last.generation, member=last.member, ts=last.ts, src=last.src, seen_by="member")
    ]


@pytest.mark.parametrize("cooperative", [True, False])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("shift", [0.0, 30.0, -30.0])
def test_the_whole_capture(cooperative: bool, named: bool, shift: float) -> None:
    events = Group(cooperative=cooperative, named=named, clock_shift=shift).run(SCALE)
    assert alarms(events) == []
    (group,) = check(events)
    passed = {rule for rule, r in group.rules.items() if r.checked}
    assert {"generation-increases", "stale-generation-rejected", "zombie-commit-rejected", "join-barrier", "static-slot-held"} <= passed
    assert {"exclusive-assignment", "exclusive-ownership", "static-assignment-kept", "static-return-no-rebalance"} <= passed


@pytest.mark.parametrize("cooperative", [True, False])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("kept", [{BROKER}, {REQUESTS}, {OFFSETS}, {BROKER, OFFSETS}, {REQUESTS, OFFSETS}, {BROKER, REQUESTS}, set[str]()])
@pytest.mark.parametrize("members", ["all", "odd", "none"])
def test_some_of_the_files(cooperative: bool, named: bool, kept: set[str], members: str) -> None:
    events = Group(cooperative=cooperative, named=named).run(SCALE)
    logs = {f for n, f in enumerate(f for f in files(events) if f.startswith("app-")) if members == "all" or (members == "odd" and n % 2)}
    assert alarms(e for e in events if e.src is not None and e.src.file in kept | logs) == []


@settings(derandomize=True, print_blob=True, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS_DRAWN, st.booleans(), st.booleans(), st.data())
def test_any_healthy_group_with_any_stretch_missing(steps: list[str], cooperative: bool, named: bool, data: st.DataObject) -> None:
    events = Group(cooperative=cooperative, named=named).run(steps)
    assert alarms(events) == []
    partial: list[Event] = []
    for file in files(events):
        mine = of(file, events)
        first, last = sorted(data.draw(st.tuples(st.integers(0, len(mine)), st.integers(0, len(mine)))))
        how = data.draw(st.sampled_from(["whole", "none", "early end", "late start", "hole"]))
        hole = [*mine[:first], *_gap(mine[:first]), *mine[last:]]
        partial += {"whole": mine, "none": [], "early end": mine[:first], "late start": mine[first:], "hole": hole}[how]
    assert alarms(partial) == []


@settings(derandomize=True, print_blob=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS_DRAWN, st.booleans(), st.data())
def test_any_healthy_group_with_any_kinds_missing(steps: list[str], cooperative: bool, data: st.DataObject) -> None:
    events = Group(cooperative=cooperative, named=True).run(steps)
    kinds = sorted({(e.observer, e.kind) for e in events} - ESSENTIAL)
    missing = data.draw(st.sets(st.sampled_from(kinds)))
    assert alarms(e for e in events if (e.observer, e.kind) not in missing) == []


# What looks like a violation and is documented to be legal (reference names in the comments of each case).

LEGAL: dict[str, Trace] = {
    "a member that the coordinator removed goes on believing until it learns it": (
        Trace()
        .round(1, {"c1": p(0), "c2": p(1)})
        .own("assigned", 1, "c1", 0)
        .own("assigned", 1, "c2", 1)
        .at(50)
        .expire("c1")
        .rebalance(1)
        .round(2, {"c2": p(0, 1)}, {"c2": p(1)})
        .own("assigned", 2, "c2", 0)
        .commit(1, "c1", 0, error="UNKNOWN_MEMBER_ID")
        .own("lost", 1, "c1", 0)
    ),
    "a member that polls too rarely leaves without a callback": (
        Trace()
        .round(1, {"c1": p(0), "c2": p(1)})
        .own("assigned", 1, "c1", 0)
        .leave("c1", reason="consumer poll timeout has expired.")
        .rebalance(1)
        .round(2, {"c2": p(0, 1)}, {"c2": p(1)})
        .own("assigned", 2, "c2", 0, 1)
        .at(500)
        .own("lost", 1, "c1", 0)
    ),
    "a static member that misses the rebalance timeout stays, with its old claim": (
        Trace()
        .round(1, {"i1-aa": p(0, 1), "c2": []})
        .at(10)
        .rebalance(1)
        .join("c2")
        .at(71)
        .generation(2, ["i1-aa", "c2"])
        .joined(2, "c2")
        .stored(2, {"i1-aa": p(0), "c2": p(1)}, members={"i1-aa": {"instance": "i1", "owned": [], "owned_generation": -1}, "c2": {}})
        .heartbeat(1, "i1-aa", "ILLEGAL_GENERATION")
    ),
    "a replaced process believes until it closes": (
        Trace()
        .round(1, {"i1-aa": p(0)})
        .own("assigned", 1, "i1-aa", 0)
        .replace(1, "i1-aa", "i1-bb")
        .joined(1, "i1-bb")
        .synced(1, "i1-bb", p(0))
        .own("assigned", 1, "i1-bb", 0)
        .heartbeat(1, "i1-aa", "FENCED_INSTANCE_ID")
        .own("lost", 1, "i1-aa", 0)
    ),
    "a member that is removed between JoinGroup and SyncGroup": (
        Trace()
        .join("c1", p(0), 1)
        .join("c2")
        .generation(2, ["c1", "c2"])
        .joined(2, "c1", "c2")
        .at(50)
        .expire("c1")
        .synced(2, "c1", None, "UNKNOWN_MEMBER_ID")
        .rebalance(2)
        .round(3, {"c2": p(0)})
    ),
    "a failover brings back the id that a replacement had ended": (
        Trace()
        .round(1, {"i1-aa": p(0)})
        .replace(1, "i1-aa", "i1-bb")
        .joined(2, "i1-bb")
        .failover()
        .add("load", 1)
        .heartbeat(2, "i1-bb", "FENCED_INSTANCE_ID")
        .heartbeat(1, "i1-aa")
        .commit(1, "i1-aa", 0)
    ),
    "the sync timer rebalances for an id that is long replaced": (
        Trace()
        .round(1, {"i1-aa": p(0), "c2": p(1)})
        .at(5)
        .replace(1, "i1-aa", "i1-bb")
        .synced(1, "i1-bb", p(0))
        .at(60)
        .rebalance(1, "Removing Set(i1-aa) on pending sync request expiration")
        .round(2, {"i1-bb": p(0), "c2": p(1)}, {"c2": p(1)})
    ),
    "a pending member leaves and the group rebalances": (
        Trace()
        .round(1, {"c1": p(0)})
        .joined(-1, "c9", error="MEMBER_ID_REQUIRED")
        .leave("c9", pending=True)
        .rebalance(1, "explicit leave")
        .round(2, {"c1": p(0)}, {"c1": p(0)})
    ),
    "a second JoinGroup of one member overwrites the parked one": (
        Trace()
        .round(1, {"c1": p(0)})
        .rebalance(1)
        .join("c1", p(0), 1)
        .join("c1", p(0), 1)
        .generation(2, ["c1"])
        .joined(2, "c1")
        .synced(2, "c1", p(0))
    ),
    "a leader's JoinGroup is answered at the next completion only": (
        Trace().round(1, {"i1-aa": p(0)}).replace(1, "i1-aa", "i1-bb").join("c2").rebalance(1).round(2, {"i1-bb": p(0), "c2": []})
    ),
    "an unanswered SyncGroup of a member that an administrator removed": (
        Trace()
        .join("c1")
        .join("c2")
        .generation(1, ["c1", "c2"])
        .joined(1, "c1", "c2")
        .sync(1, "c2", {})
        .leave("c2", reason=ADMIN)
        .rebalance(1)
        .round(2, {"c1": p(0)})
    ),
    "an orphan of a cooperative group whose static member is away": (
        Trace()
        .round(1, {"i1-aa": p(0, 1)})
        .at(10)
        .rebalance(1)
        .join("c2")
        .at(71)
        .generation(2, ["i1-aa", "c2"])
        .joined(2, "c2")
        .sync(2, "c2", {"i1-aa": p(0), "c2": []})
        .synced(2, "c2", [])
        .at(80)
        .rebalance(2, "Leader c2 re-joining")
        .join("c2")
        .at(141)
        .generation(3, ["i1-aa", "c2"])
        .joined(3, "c2")
        .sync(3, "c2", {"i1-aa": p(0), "c2": []})
        .synced(3, "c2", [])
    ),
    "a wakeup within the revoke callback leaves the member with its partitions": (
        Trace(protocol="range")
        .joined(1, "c1")
        .own("assigned", 1, "c1", 0)
        .joined(2, "c1")
        .own("assigned", 2, "c1")
        .own("assigned", 2, "c2", 1)
    ),
    "generation 0 of a group that was just created": (
        Trace()
        .rebalance(0, "Adding new member c1")
        .join("c1")
        .generation(1, ["c1"])
        .joined(1, "c1")
        .add("load", 0, None, epoch=1)
        .heartbeat(0, "c1", epoch=1)
    ),
    "members without generations": (
        Trace()
        .own("assigned", None, "c1", 0)
        .own("revoked", None, "c1", 0)
        .own("assigned", None, "c2", 0)
        .heartbeat(None, "c1")
        .commit(None, "c2", 0)
    ),
    "two clients of one client.id": (
        Trace()
        .own("assigned", 1, "app@a.log#1", 0, client="app")
        .own("assigned", 1, "app@b.log#1", 1, client="app")
        .stored(1, {"app-x": p(0), "app-y": p(1)}, members={"app-x": {}, "app-y": {}})
    ),
    "a consumer of the next protocol commits with its own epoch": (
        Trace()
        .round(1, {"c1": p(0)})
        .add("gap", reason="KIP-848 consumer protocol: out of scope")
        .commit(7, "u1", 0)
        .commit(6, "u2", 1)
        .commit(7, "u1", 0)
    ),
    "a group that commits only": Trace().commit(-1, "", 0).commit(-1, None, 1).commit(5, "c1", 2),
    "a heartbeat in flight": Trace().generation(1, ["c1"]).at(9).generation(2, ["c1"]).at(9.4).heartbeat(1, "c1", estimated=True),
}


@pytest.mark.parametrize("what", LEGAL)
def test_documented_behaviour_is_legal(what: str) -> None:
    trace = LEGAL[what]
    assert [f for f in alarms(trace.events()) if f.severity == "error"] == []
    for kind in {str(row["kind"]) for row in trace.rows} - {"expire", "leave", "lost", "revoked", "load", "gap", "replace"}:
        assert [f for f in alarms(e for e in trace.events() if e.kind != kind) if f.severity == "error"] == [], f"without {kind}"


def upgraded(*last: dict[str, list[str]]) -> Trace:
    """Bounce by bounce: everybody offers both, then only the cooperative assignor; eager clients revoke everything all the while."""
    both, new = ["cooperative-sticky", "range"], ["cooperative-sticky"]
    trace = Trace(protocol="range")
    owned: dict[str, list[str]] = {}

    def generation(number: int, offers: dict[str, list[str]], shares: dict[str, list[str]]) -> None:
        trace.rebalance(number - 1, None)
        for member, offered in offers.items():
            mine = owned.setdefault(member, [])
            if "range" in offered:
                trace.add("revoked", number - 1, member, resources=mine)
                owned[member] = mine = []
            trace.join(member, mine, number - 1 if mine else -1, protocols=offered)
        trace.generation(number, list(offers)).joined(number, *offers).sync(number, next(iter(offers)), shares)
        for member, share in shares.items():
            trace.synced(number, member, share)
            if revoked := sorted(set(owned[member]) - set(share)):
                trace.add("revoked", number, member, resources=revoked)
            trace.add("assigned", number, member, resources=sorted(set(share) - set(owned[member])))
            owned[member] = list(share)

    halves = {"c1": p(0, 1), "c2": p(2, 3)}
    generation(1, {"c1": ["range"], "c2": ["range"]}, halves)
    generation(2, {"c1": both, "c2": ["range"]}, halves)
    generation(3, {"c1": both, "c2": both}, {"c1": p(2, 3), "c2": p(0, 1)})
    trace.protocol = "cooperative-sticky"
    generation(4, {"c1": both, "c2": both}, halves)
    trace.own("revoked", 4, "c1", 0, 1).leave("c1").add("closed", 4, "c1")
    generation(5, {"c2": both, "c3": new}, {"c2": p(2, 3), "c3": p(0, 1)})
    for number, shares in enumerate(last, 6):
        generation(number, {"c2": both, "c3": new}, shares)
    return trace


def test_a_rolling_upgrade_from_eager_to_cooperative() -> None:
    assert broken(upgraded({"c2": p(2, 3), "c3": p(0)}, {"c2": p(1, 2, 3), "c3": p(0)})) == []
    assert broken(upgraded({"c2": p(1, 2, 3), "c3": p(0)})) == ["revoke-before-reassign"]


def test_a_refused_assignment_never_held() -> None:
    """Found by the model: a generation that a failover forgot, its leader refused, its number used again."""
    trace = Trace().round(1, {"c1": p(0, 1)}).join("c1", p(0, 1), 1).join("c2").generation(2, ["c1", "c2"]).joined(2, "c1", "c2")
    trace.failover().add("load", 1)
    trace.sync(2, "c1", {"c1": p(0), "c2": p(1)}).synced(2, "c1", None, error="ILLEGAL_GENERATION")
    trace.join("c1").generation(2, ["c1"]).joined(2, "c1").sync(2, "c1", {"c1": p(0, 1)}).synced(2, "c1", p(0, 1))
    assert broken(trace) == []


def test_only_the_first_assignment_of_a_generation_counts() -> None:
    """Found by the model: a leader that joins again in CompletingRebalance computes twice, with another delay."""
    tasks = ["connector:A", "task:A-0"]
    trace = Trace(protocol="sessioned").round(1, {"w1": tasks, "w2": []}).expire("w1").join("w2", [], 1).generation(2, ["w2"])
    trace.joined(2, "w2").sync(2, "w2", {"w2": ["connector:A"]}, revoked={"w2": []}, delay_ms=60_000)
    trace.sync(2, "w2", {"w2": tasks}, revoked={"w2": []}, delay_ms=0)
    assert broken(trace) == []


def test_a_record_stored_late_brings_nobody_back() -> None:
    """Found by the model: the record of a generation is acknowledged after its last dynamic member has left."""
    shares = {"i1-aa": p(0), "c2": p(1)}
    timeouts = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 20_000}
    trace = Trace().join("i1-aa", **timeouts).join("c2", **timeouts).generation(1, list(shares)).joined(1, *shares).sync(1, "c2", shares)
    trace.leave("c2").rebalance(1, "explicit LeaveGroup").stored(1, shares).at(46).expire("i1-aa").generation(2, [])
    assert broken(trace) == []


def test_a_member_that_is_sent_away_does_not_wait() -> None:
    """Found by the model: a join phase that only an absent static member holds up, and a newcomer that never came back."""
    timeouts = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 20_000}
    trace = Trace().join("i1-aa", **timeouts).join("c2", **timeouts).generation(1, ["i1-aa", "c2"]).joined(1, "i1-aa", "c2")
    trace.sync(1, "c2", {"i1-aa": p(0), "c2": p(1)}).leave("c2").rebalance(1, "explicit LeaveGroup")
    trace.join("", client="c3", **timeouts).add("joined", None, "c3-cc", client="c3", error="MEMBER_ID_REQUIRED")
    trace.at(46).expire("i1-aa").generation(2, [])
    assert broken(trace) == []


def test_only_its_own_refusal_undoes_a_replacement() -> None:
    """Found by the model: a third process of the instance is refused."""
    trace = Trace().round(1, {"i1-aa": p(0), "c2": p(1)}).at(5).join("", None, instance="i1").replace(1, "i1-aa", "i1-bb")
    trace.joined(1, "i1-bb", leader="c2").join("", None, instance="i1", protocols=["range"])
    trace.add("joined", None, "", instance="i1", error="INCONSISTENT_GROUP_PROTOCOL").at(8).heartbeat(1, "i1-bb")
    assert broken(trace) == []
    assert broken(trace.heartbeat(1, "i1-aa")) == ["fenced-stays-fenced"]


def test_a_replacement_is_undone_once() -> None:
    """Found by the model: a broker tells of the undoing as of a replacement, before the JoinGroup is refused."""
    trace = Trace().round(1, {"i1-aa": p(0), "c2": p(1)}).at(5).join("", None, instance="i1").replace(1, "i1-aa", "i1-bb")
    trace.heartbeat(1, "i1-aa", "FENCED_INSTANCE_ID").replace(1, "i1-bb", "i1-aa")
    trace.add("joined", None, "", instance="i1", error="NOT_COORDINATOR").at(8).heartbeat(1, "i1-aa").commit(1, "i1-aa", 0)
    assert broken(trace) == []
    assert broken(trace.at(10).heartbeat(1, "i1-bb")) == ["fenced-stays-fenced"]


def test_a_replacement_may_be_undone_when_the_group_has_moved_on() -> None:
    """Found by the model: the append fails after the next generation has started; nobody is told."""
    trace = Trace().round(1, {"i1-aa": p(0), "c2": p(1)}).at(5).join("", None, instance="i1").replace(1, "i1-aa", "i1-bb")
    trace.leave("c2").rebalance(1, "explicit LeaveGroup").generation(2, ["i1-bb"]).joined(2, "i1-bb")
    trace.commit(1, "i1-aa", 0, error="FENCED_INSTANCE_ID").at(8).join("i1-aa").joined(2, "i1-aa").heartbeat(2, "i1-aa")
    assert broken(trace) == []


def test_a_full_group_sends_a_known_member_away() -> None:
    """Found by the model: group.max.size members have rejoined when the last one comes; it may be a static member."""
    trace = Trace().round(1, {"i1-aa": p(0), "c2": p(1)}).at(5).rebalance(1).join("c3").join("c4")
    trace.join("i1-aa").joined(None, "i1-aa", error="GROUP_MAX_SIZE_REACHED").join("c2").joined(None, "c2", error="GROUP_MAX_SIZE_REACHED")
    assert broken(trace.round(2, {"c3": p(0), "c4": p(1)})) == []


def test_a_second_process_that_is_refused_offers_nothing() -> None:
    """Found by the model: an instance waits with one offer when another process of it is refused with another."""
    trace = Trace(protocol="range").round(1, {"i1-aa": p(0), "c2": p(1)}).at(5).rebalance(1).join("c2", protocols=["new"])
    trace.join("", None, instance="i1", protocols=["new", "range"]).replace(1, "i1-aa", "i1-bb")
    trace.join("", None, instance="i1", protocols=["range"]).add("joined", None, "", instance="i1", error="INCONSISTENT_GROUP_PROTOCOL")
    trace.protocol = "new"
    assert broken(trace.generation(2, ["c2", "i1-bb"]).joined(2, "c2", "i1-bb")) == []


def test_an_absent_member_offers_what_its_last_process_offered() -> None:
    """Found by the model: a static member returned with more protocols and is away when one of them is chosen."""
    trace = Trace(protocol="range").round(1, {"i1-aa": p(0), "c2": p(1)}).at(5).join("", None, instance="i1", protocols=["range", "new"])
    trace.replace(1, "i1-aa", "i1-bb").joined(1, "i1-bb", leader="c2").at(9).rebalance(1).join("c2", protocols=["new"]).at(70)
    trace.protocol = "new"
    assert broken(trace.generation(2, ["c2", "i1-bb"]).joined(2, "c2")) == []


def test_a_replacement_that_is_undone_may_leave_its_protocols_behind() -> None:
    """Found by the model: so do brokers before 4.0."""
    trace = Trace(protocol="range").round(1, {"i1-aa": p(0), "c2": p(1)}).at(5).join("", None, instance="i1", protocols=["range", "new"])
    trace.replace(1, "i1-aa", "i1-bb").add("joined", None, "", instance="i1", error="UNKNOWN_SERVER_ERROR")
    trace.at(9).rebalance(1).join("c2", protocols=["new"]).at(70)
    trace.protocol = "new"
    assert broken(trace.generation(2, ["c2", "i1-aa"]).joined(2, "c2")) == []


def test_a_group_may_empty_as_late_as_its_static_members_expire() -> None:
    """Found by the model: two static members away, one expires after the other while nobody waits."""
    timeouts = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 5_000}
    trace = Trace().join("i1-aa", **timeouts).join("c2", **timeouts).generation(1, ["i1-aa", "c2"]).joined(1, "i1-aa", "c2")
    trace.leave("c2").rebalance(1, "explicit LeaveGroup")
    trace.join("", None, instance="i3", **timeouts).add("joined", None, "", instance="i3", error="INCONSISTENT_GROUP_PROTOCOL")
    assert broken(trace.at(46).expire("i1-aa").generation(2, [])) == []


def test_a_new_coordinator_knows_static_members_that_nobody_listed() -> None:
    """Found by the model: after a failover only absent static members are left, and a dynamic one that is dropped."""
    timeouts = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 5_000}
    trace = Trace().join("i1-aa", **timeouts).join("c2", **timeouts).generation(1, ["i1-aa", "c2"]).joined(1, "i1-aa", "c2")
    trace.sync(1, "c2", {"i1-aa": p(0), "c2": p(1)}).failover().add("load", 1).at(5).rebalance(1).at(10.1).expire("c2", "rebalance")
    trace.join("c2", **timeouts).joined(None, "c2", error="UNKNOWN_MEMBER_ID")
    assert broken(trace.at(50).expire("i1-aa").generation(2, [])) == []


def test_the_record_of_a_second_assignment_counts_no_more_than_it() -> None:
    """Found by the model: a leader assigns twice before the first assignment is stored; both records are stored."""
    trace = Trace().join("c1").join("c2").generation(1, ["c1", "c2"]).joined(1, "c1", "c2").sync(1, "c1", {"c1": p(0), "c2": p(1)})
    trace.join("c1").joined(1, "c1").sync(1, "c1", {"c1": p(1), "c2": p(0)}).stored(1, {"c1": p(0), "c2": p(1)}).synced(1, "c1", p(0))
    assert broken(trace.stored(1, {"c1": p(1), "c2": p(0)})) == []


def test_a_generation_that_starts_later_was_not_assigned_before() -> None:
    """Found by the model: the answer to a SyncGroup of the generation that a failover forgot was not captured."""
    trace = Trace().round(1, {"c1": p(0, 1)}).join("c1", p(0, 1), 1).join("c2").generation(2, ["c1", "c2"]).joined(2, "c1", "c2")
    trace.failover().add("load", 1).sync(2, "c1", {"c1": p(0), "c2": p(1)}).rebalance(1).join("c3")
    assert broken(trace.generation(2, ["c3"]).joined(2, "c3").sync(2, "c3", {"c3": p(0, 1)})) == []


def test_an_answer_shows_the_request() -> None:
    """Found by the model: a JoinGroup was not captured, its answer was."""
    trace = Trace().round(1, {"c1": p(0), "c2": p(1)}).at(5).rebalance(1).join("c1").generation(2, ["c1", "c2"])
    assert broken(trace) == ["join-barrier"]
    assert broken(trace.joined(2, "c1").join("c2").joined(2, "c2")) == ["join-barrier"]
    trace = Trace().round(1, {"c1": p(0), "c2": p(1)}).at(5).rebalance(1).join("c1").generation(2, ["c1", "c2"])
    assert broken(trace.joined(2, "c1", "c2")) == []


def test_a_join_phase_may_take_as_long_as_somebody_wants_who_was_not_seen() -> None:
    """Found by the model: the capture starts when the group is there, with a static member."""
    trace = Trace().heartbeat(1, "i1-aa").at(5).join("c2", rebalance_timeout_ms=5_000).rebalance(1).leave("c2").at(50).expire("i1-aa")
    assert broken(trace.generation(2, [])) == []
