"""How events become rounds and a coordinator's state, and what must not depend on how they were captured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kipcheck.spec import RULES, check
from kipcheck.spec.coordinator import Coordinator
from kipcheck.spec.events import Assignment, Event, GenerationStarted, Leave, MemberInfo, Rebalance, Source
from kipcheck.spec.rounds import Round, distinct, identities, lives, requests, rounds

from ..strategies import events as any_event
from .healthy import STEPS, Group
from .trace_builder import Trace, broken, p, promises

TWO = {"c1": p(0, 1), "c2": p(2, 3)}
MINE = ("group protocol", "KIP-429", "KIP-345")


def history(trace: Trace) -> Mapping[tuple[int, int], Round]:
    return {now.key: now for now in rounds(trace.events())}


def state(trace: Trace) -> Coordinator:
    events = trace.events()
    group = Coordinator(identities(events))
    for event in requests(events):
        group.apply(event)
    return group


def kinds(events: Iterable[Event]) -> list[str]:
    return [e.kind for e in events]


class TestRequests:
    def test_their_clock_orders_what_coordinators_saw(self) -> None:
        trace = Trace().at(9).heartbeat(1, "c1").at(2).rebalance(0).at(1).own("assigned", 1, "c1")
        assert kinds(requests(trace.events())) == ["rebalance", "heartbeat"]

    def test_what_has_no_time_follows_what_stood_before_it(self) -> None:
        trace = Trace().at(9).heartbeat(1, "c1").add("commit", 1, "c1", ts=None).at(2).rebalance(0)
        assert kinds(requests(trace.events())) == ["rebalance", "heartbeat", "commit"]

    def test_epochs_come_first(self) -> None:
        trace = Trace().failover().at(1).heartbeat(1, "c1").add("rebalance", 0, None, epoch=0, ts=None)
        assert kinds(requests(trace.events())) == ["rebalance", "heartbeat"]

    def test_a_file_without_times_beside_others_with_times_has_no_order(self) -> None:
        clocked, bare = Trace().heartbeat(1, "c1"), Trace(clock=False, file="dump.txt").stored(1, {"c1": p(0)})
        assert kinds(requests(clocked.events() + bare.events())) == ["heartbeat"]
        assert kinds(requests(bare.events())) == ["assignment"]
        assert (0, 1) in {now.key for now in rounds(clocked.events() + bare.events())}


class TestDistinct:
    def twice(self, trace: Trace, file: str = "copy.jsonl") -> list[Event]:
        events = trace.events()
        return events + [replace(e, src=Source(file, 1)) for e in events]

    def test_a_copy_adds_nothing(self) -> None:
        for trace in (Trace().round(3, TWO).stored(3, TWO), Trace(clock=False).round(3, TWO).stored(3, TWO)):
            assert distinct(self.twice(trace)) == trace.events()

    def test_a_files_own_repetitions_count_where_it_has_no_clock(self) -> None:
        trace = Trace(clock=False).heartbeat(1, "c1").heartbeat(1, "c1")
        assert len(distinct(trace.events())) == 2
        assert len(distinct(self.twice(trace))) == 2
        shorter = [replace(e, src=Source("copy", 1)) for e in trace.events()[:1]]
        assert len(distinct(shorter + trace.events())) == 2

    def test_one_moment_is_one_event(self) -> None:
        assert len(distinct(self.twice(Trace().heartbeat(1, "c1"), "trace.jsonl"))) == 1

    @pytest.mark.parametrize(
        "change", [{"member": "c2"}, {"generation": 2}, {"error": "ILLEGAL_GENERATION"}, {"epoch": 1}, {"ts": 1}, {"seen_by": "member"}]
    )
    def test_whatever_differs_stays(self, change: dict[str, object]) -> None:
        (event,) = Trace().heartbeat(1, "c1").events()
        assert len(distinct([event, replace(event, **change)])) == 2  # type: ignore[arg-type]

    def test_without_it_a_copied_log_without_times_would_fall_back(self) -> None:
        trace = Trace(clock=False).generation(1, ["c1"]).generation(2, ["c1"])
        assert broken(self.twice(trace)) == []
        assert broken(trace.events() * 2) == ["generation-increases"]


class TestCopiedLogs:
    """Of a client whose log shows no member id, so that the reader made one up."""

    def log(self, file: str, *, clock: bool = True, work: int = 0) -> Trace:
        trace, member = Trace(clock=clock, file=file), f"app@{file}#1"
        trace.add("joined", 1, member, seen_by="member").own("assigned", 1, member, work)
        trace.own("revoked", 1, member, work).add("joined", 2, member, seen_by="member")
        return trace.own("assigned", 2, member, work)

    @pytest.mark.parametrize("clock", [True, False])
    @pytest.mark.parametrize("part", [slice(None), slice(0, 3), slice(0, 2)])
    def test_a_copy_or_an_earlier_copy_is_the_same_member(self, clock: bool, part: slice) -> None:
        events = self.log("a.log", clock=clock).events() + self.log("b.log", clock=clock).events()[part]
        assert {e.member for e in distinct(events)} == {"app@a.log#1"}
        assert broken(events) == []

    def test_a_later_copy_too(self) -> None:
        events = self.log("a.log").events() + self.log("b.log").events()[2:]
        assert len(distinct(events)) == 5

    def test_two_processes_of_one_client(self) -> None:
        apart = self.log("a.log").events() + self.log("b.log", work=1).events()
        assert len({e.member for e in distinct(apart)}) == 2
        other_times = self.log("b.log").at(0.07).rows
        late = Trace(file="b.log")
        late.rows = [row | {"ts": str(row["ts"]).replace("0000Z", "7000Z")} for row in other_times]
        assert len({e.member for e in distinct(self.log("a.log").events() + late.events())}) == 2
        assert broken(self.log("a.log").events() + late.events()) == ["exclusive-ownership", "exclusive-ownership"]

    def test_one_moment_alike_does_not_tell(self) -> None:
        events = self.log("a.log").events()
        other = Trace(file="b.log").add("joined", 1, "app@b.log#1", seen_by="member").own("assigned", 1, "app@b.log#1", 0)
        other.own("assigned", 1, "app@b.log#1", 5)
        assert len({e.member for e in distinct(events + other.events())}) == 2

    def test_idle_ones_are_left_alone(self) -> None:
        idle = [e for f in ("a.log", "b.log") for e in Trace(file=f).own("assigned", 1, f"app@{f}#1").events()]
        assert len(distinct(idle)) == 2

    def test_real_ids_are_never_the_same(self) -> None:
        events = Trace().at(1).own("assigned", 1, "m1", 0).at(1).own("assigned", 1, "m2", 0)
        assert broken(events) == ["exclusive-ownership"]


class TestLives:
    def reborn(self) -> Trace:
        return Trace().round(1, TWO).generation(2, []).at(60).rebalance(0).round(1, {"d1": p(0, 1)})

    def test_each_life_has_its_epochs(self) -> None:
        found = {now.key: set(now.seats) for now in rounds(lives(self.reborn().events()))}
        assert found == {(0, 1): {"c1", "c2"}, (0, 2): set(), (1, 0): set(), (1, 1): {"d1"}}
        assert broken(self.reborn()) == []

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().round(1, {"c1": p(0)}).leave("c1").at(900).round(1, {"d1": p(0)}),
            Trace().round(1, {"c1": p(0), "c2": p(1)}).expire("c1").leave("c2").at(900).rebalance(0).round(1, {"d1": p(0)}),
            Trace().round(1, {"i1-aa": p(0)}).leave("", instance="i1", reason="by an admin").at(900).round(1, {"i1-bb": p(1)}),
            Trace().round(2, {"c1": p(0)}).generation(3, []).stored(3, {}).at(900).stored(1, {"d1": p(0)}),
        ],
    )
    def test_everybody_whom_a_list_names_may_be_seen_to_go(self, trace: Trace) -> None:
        assert broken(trace) == []
        assert {now.epoch for now in rounds(lives(trace.events()))} == {0, 1}

    def test_later_epochs_move_on(self) -> None:
        trace = self.reborn().failover().add("load", 1).generation(2, ["d1"])
        assert [e.epoch for e in lives(trace.events()) if e.kind == "load"] == [2]

    def test_members_events_go_with_their_ids(self) -> None:
        trace = self.reborn().own("assigned", 1, "c1", 0).own("assigned", 1, "d1", 0).own("assigned", 1, "who", 0)
        assert [(e.member, e.epoch) for e in lives(trace.events()) if e.kind == "assigned"] == [("c1", 0), ("d1", 1)]
        assert broken(trace) == []

    def test_a_record_stored_after_its_members_left_begins_no_life(self) -> None:
        events: list[Event] = [
            GenerationStarted(group="g", generation=5, members=("w1",), ts=1),
            Leave(group="g", member="w1", ts=2),
            Rebalance(group="g", generation=5, ts=3),
            Assignment(group="g", generation=5, members={"w1": MemberInfo()}, assignment={"w1": ("x",)}, ts=4),
            GenerationStarted(group="g", generation=6, members=(), ts=5),
            GenerationStarted(group="g", generation=1, members=("w2",), ts=6),
        ]
        assert [event.epoch for event in lives(events)] == [0, 0, 0, 0, 0, 1]

    def test_an_id_of_two_lives_tells_neither(self) -> None:
        trace = Trace().stored(1, {"c1": p(0)}).stored(2, {}).stored(1, {"c1": p(1)}).own("owned", 1, "c1", 0)
        assert [e for e in lives(trace.events()) if e.kind == "owned"] == []

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().round(1, TWO).generation(2, []).round(3, {"d1": p(0)}),
            Trace().generation(2, []).rebalance(2).generation(3, ["d1"]),
            Trace().generation(2, []).generation(3, ["d1"]).generation(1, ["d1"]),
            Trace().generation(2, []).failover().generation(1, ["d1"]),
            Trace().generation(2, []).joined(-1, "d1", error="MEMBER_ID_REQUIRED").generation(3, ["d1"]),
            Trace().generation(2, []).heartbeat(1, "c1", "UNKNOWN_MEMBER_ID"),
            Trace().generation(2, None).generation(1, None),
            Trace().generation(1, ["c1"]).leave("c1").rebalance(1).generation(2, []).generation(3, ["d1"]),
            Trace().generation(1, ["c1", "c2"]).leave("c1").joined(1, "c2").stored(1, {"c2": p(0)}),
            Trace().generation(1, ["c1"]).leave("c1", error="UNKNOWN_MEMBER_ID").joined(1, "c1"),
            Trace().generation(1, ["c1"]).leave("c9").joined(1, "c1"),
            Trace().generation(1, ["c1"]).leave("c1").stored(1, {}).add("assignment", 1, None, assignment={}),
        ],
    )
    def test_everything_else_is_one_life(self, trace: Trace) -> None:
        assert [e.epoch for e in lives(trace.events())] == [e.epoch for e in trace.events()]


class TestIdentities:
    def test_every_event_that_names_one_tells(self) -> None:
        trace = Trace().heartbeat(1, "i1-aa").add("replace", 1, "x", old_member="y", instance="i2").stored(1, {"i3-cc": []})
        trace.generation(1, ["z", "d"], instances={"z": "i4", "d": None})
        who = identities(trace.events())
        assert who.instances == {"i1-aa": "i1", "x": "i2", "y": "i2", "i3-cc": "i3", "z": "i4"}
        assert [who.owner(m) for m in ("z", "d")] == ["instance:i4", "d"]

    def test_contradictions_are_settled_the_same_way_in_any_order(self) -> None:
        trace = Trace().heartbeat(1, "m", instance="i2", client="b").heartbeat(1, "m", instance="i1", client="a")
        assert identities(trace.events()) == identities(trace.events()[::-1])


class TestMembersSide:
    def test_belief_goes_from_generation_to_generation(self) -> None:
        found = history(
            Trace().own("assigned", 1, "c1", 0, 1).own("revoked", 1, "c1", 0).own("assigned", 2, "c1", 2).own("owned", 3, "c1", 2)
        )
        assert [sorted(now.seats["c1"].holds or ()) for now in found.values()] == [p(0, 1), p(1, 2), p(2)]
        assert [sorted(now.seats["c1"].entered_with) for now in found.values()] == [[], p(1), p(1, 2)]

    def test_what_it_had_before_any_generation_counts(self) -> None:
        assert sorted(history(Trace().own("owned", -1, "c1", 0).own("assigned", 1, "c1", 1))[0, 1].seats["c1"].holds or ()) == p(0, 1)

    @pytest.mark.parametrize("way", ["skips", "enters without having joined"])
    def test_a_hole_in_its_log(self, way: str) -> None:
        skipping = Trace().own("assigned", 1, "c1", 0).own("assigned", 3, "c1", 1)
        unjoined = Trace().add("joined", 1, "c1", seen_by="member").own("assigned", 1, "c1", 0).own("assigned", 2, "c1", 1)
        now = rounds((skipping if way == "skips" else unjoined).events())[-1]
        assert (sorted(now.seats["c1"].holds or ()), now.seats["c1"].hole) == (p(1), True)

    def test_no_hole(self) -> None:
        told = Trace().add("joined", 1, "c1", seen_by="member").own("assigned", 1, "c1", 0).add("joined", 2, "c1", seen_by="member")
        assert not rounds(told.own("assigned", 2, "c1", 1).events())[-1].seats["c1"].hole
        assert not any(now.seats["c1"].hole for now in rounds(Trace().own("assigned", 1, "c1", 0).own("assigned", 2, "c1", 1).events()))
        failover = Trace().own("assigned", 1, "c1", 0).failover().own("assigned", 1, "c1", 1)
        assert not any(now.seats["c1"].hole for now in rounds(failover.events()))

    def test_a_hole_raises_no_alarm(self) -> None:
        assert broken(Trace().own("assigned", 1, "c1", 0).own("assigned", 3, "c1").own("assigned", 3, "c2", 0)) == []
        assert broken(Trace().own("assigned", 1, "c1", 0).own("revoked", 3, "c1", 0).own("assigned", 3, "c2", 0)) == []

    def test_its_clock_orders_its_events(self) -> None:
        trace = Trace().at(9).own("revoked", 1, "c1", 0).at(1).own("assigned", 1, "c1", 0, 1)
        assert sorted(history(trace)[0, 1].seats["c1"].released) == p(0)

    def test_a_gap_with_a_member_is_that_members(self) -> None:
        found = history(Trace().own("assigned", 1, "c1", 0).add("gap", 1, "c1").generation(1, ["c1"]))
        assert found[0, 1].seats["c1"].gap is not None
        assert found[0, 1].gaps == []

    def test_what_it_loses_without_having_it_is_nothing(self) -> None:
        seat = history(Trace().own("lost", 1, "c1", 0).own("revoked", 1, "c1", 1))[0, 1].seats["c1"]
        assert (sorted(seat.lost), sorted(seat.released)) == ([], p(1))


class TestCoordinatorsSide:
    def test_a_parked_join_leads_to_the_generation_that_answers_it(self) -> None:
        found = history(Trace().join("c1", p(0), 4).join("c2").generation(5, ["c1"]).joined(6, "c2"))
        assert found[0, 5].seats["c1"].join is not None
        assert "c2" not in found[0, 5].seats
        assert found[0, 6].seats["c2"].claim is not None

    def test_where_nobody_is_listed_it_answers_everybody(self) -> None:
        assert set(history(Trace().join("c1").join("c2").generation(5, None))[0, 5].seats) == {"c1", "c2"}

    def test_a_refused_join_leads_nowhere(self) -> None:
        assert history(Trace().join("c1").joined(-1, "c1", error="UNKNOWN_MEMBER_ID").generation(5, None))[0, 5].seats == {}

    def test_a_removed_members_join_leads_nowhere(self) -> None:
        assert history(Trace().join("c1").expire("c1").generation(5, None))[0, 5].seats == {}

    def test_a_join_for_the_next_generation_is_not_the_last_ones(self) -> None:
        trace = Trace().join("c1").generation(5, ["c1"]).joined(5, "c1").at(9).rebalance(5).join("c1", p(0), 5).stored(5, {"c1": p(0)})
        found = history(trace.joined(6, "c1"))
        assert [now.seats["c1"].claim is not None and now.seats["c1"].claim.generation for now in found.values()] == [None, 5]

    def test_a_join_from_before_a_hole_leads_nowhere(self) -> None:
        trace = Trace().join("c1").generation(1, ["c1"]).joined(1, "c1").join("c1", p(0), 1).generation(8, ["c1"]).joined(8, "c1")
        assert history(trace)[0, 8].seats["c1"].claim is None

    def test_a_static_members_first_join_names_no_member(self) -> None:
        seat = history(Trace().join("", p(0), 4, instance="i1").joined(5, "i1-aa"))[0, 5].seats["instance:i1"]
        assert (seat.member, seat.join is not None, seat.named) == ("i1-aa", True, True)

    def test_the_first_proposal_counts(self) -> None:
        trace = Trace().sync(3, "c1", {"c1": []}).sync(3, "c1", {"c1": p(0)})
        assert [len(s.grants) for s in history(trace)[0, 3].seats.values()] == [1]
        leader_without_duty = Trace().joined(3, "c1").sync(3, "c1", {}).sync(3, "c1", {"c1": p(0)})
        assert history(leader_without_duty)[0, 3].seats["c1"].given is not None

    def test_what_opened_a_generation(self) -> None:
        found = history(Trace().generation(1, ["c1"]).rebalance(1).generation(2, ["c1"]).generation(4, ["c1"]))
        assert [now.opened is not None for now in found.values()] == [False, True, False]
        assert found[0, 1].closed_by is not None

    def test_shares(self) -> None:
        assert history(Trace().stored(1, TWO))[0, 1].shares == {m: frozenset(r) for m, r in TWO.items()}
        half = Trace().generation(1, ["c1", "c2"]).synced(1, "c1", p(0))
        assert history(half)[0, 1].shares is None
        assert history(half.synced(1, "c2", []))[0, 1].shares == {"c1": frozenset(p(0)), "c2": frozenset()}
        assert history(Trace().synced(1, "c1", p(0)))[0, 1].shares is None


class TestCoordinator:
    def test_a_gap_ends_what_is_known(self) -> None:
        trace = Trace().join("c1").generation(1, ["c1"]).rebalance(1).replace(1, "i1-aa", "i1-bb").expire("c1")
        assert state(trace).phase == "preparing"
        gone = state(trace.add("gap"))
        assert (gone.phase, gone.generation, gone.members, gone.removed, gone.replaced) == ("unknown", None, {}, {}, {})
        assert gone.session_timeout_ms == {"c1": 45_000}

    def test_a_members_gap_ends_nothing(self) -> None:
        assert state(Trace().generation(1, ["c1"]).add("gap", 1, "c1")).generation == 1

    @pytest.mark.parametrize(
        ("trace", "phase"),
        [
            (Trace().rebalance(1), "preparing"),
            (Trace().generation(1, ["c1"]), "completing"),
            (Trace().joined(1, "c1"), "completing"),
            (Trace().generation(1, ["c1"]).synced(1, "c1", None), "stable"),
            (Trace().generation(1, ["c1"]).synced(1, "c1", None, "REBALANCE_IN_PROGRESS"), "completing"),
            (Trace().generation(2, ["c1"]).synced(1, "c1", None), "completing"),
            (Trace().stored(1, TWO), "stable"),
            (Trace().stored(1, {}), "empty"),
            (Trace().generation(1, []), "empty"),
            (Trace().generation(1, ["c1"]).rebalance(1).synced(1, "c1", None), "preparing"),
            (Trace().generation(1, ["c1"]).rebalance(1).stored(1, TWO), "preparing"),
            (Trace().generation(2, ["c1"]).rebalance(1), "completing"),
            (Trace().stored(2, TWO).generation(1, ["c1"]), "stable"),
            (Trace().generation(2, ["c1"]).stored(1, TWO), "completing"),
            (Trace().stored(1, TWO).failover().heartbeat(1, "c1"), "unknown"),
        ],
    )
    def test_its_state(self, trace: Trace, phase: str) -> None:
        assert state(trace).phase == phase

    def test_timeouts_survive_a_failover(self) -> None:
        trace = Trace().join("c1").stored(1, {"i1-aa": p(0)}).failover().add("load", 1)
        assert state(trace).session_timeout_ms == {"c1": 45_000, "instance:i1": 45_000}

    def test_the_shortest_session_and_the_longest_rebalance_timeout_count(self) -> None:
        for first, second in ((10_000, 45_000), (45_000, 10_000)):
            trace = Trace().join("c1", session_timeout_ms=first, rebalance_timeout_ms=first)
            group = state(trace.join("c1", session_timeout_ms=second, rebalance_timeout_ms=second))
            assert (group.session_timeout_ms, group.rebalance_timeout_ms) == ({"c1": 10_000}, {"c1": 45_000})

    def test_a_load_begins_anew_whatever_the_epoch(self) -> None:
        group = state(Trace().generation(3, ["c1"]).add("load", 2))
        assert (group.generation, group.members, group.loading) == (2, {}, True)

    def test_requests_count_for_one_join_phase(self) -> None:
        assert set(state(Trace().join("c1").rebalance(1).join("c2")).joins) == {"c2"}
        assert state(Trace().join("c1").generation(2, ["c1"])).joins == {}

    def test_a_slot_stays_with_the_id_that_took_it(self) -> None:
        trace = Trace().joined(1, "i1-aa").replace(1, "i1-aa", "i1-bb")
        assert state(trace.joined(1, "i1-aa")).static == {"i1": "i1-bb"}
        late = state(trace.heartbeat(1, "i1-bb").expire("i1-aa", "sync"))
        assert (late.static, set(late.last_seen), set(late.members)) == ({"i1": "i1-bb"}, {"instance:i1"}, {"i1-bb"})
        gone = state(trace.expire("i1-bb"))
        assert (gone.static, gone.last_seen) == ({}, {})

    def test_only_present_members_are_remembered_to_live(self) -> None:
        group = state(Trace().joined(1, "c1", "c2", "c3").expire("c3").generation(2, ["c1"]).heartbeat(2, "c1"))
        assert set(group.last_seen) == {"c1"}


# What must not depend on how the events were captured.


def said(events: Sequence[Event]) -> dict[str, object]:
    """Everything that this catalogue's promises say."""
    return {
        group.group: (
            sorted((f.fingerprint, f.rule, f.severity, f.message) for f in group.findings if RULES[f.rule].kip in MINE),
            {rule: (r.status, r.checked) for rule, r in group.rules.items() if RULES[rule].kip in MINE},
        )
        for group in check(events)
    }


def stream(event: Event) -> str:
    return "" if event.observer in ("coordinator", "any") else event.member or event.client or ""


def interleaved(events: Sequence[Event], order: Sequence[int]) -> list[Event]:
    """The same events, each observer's own order kept."""
    queues: dict[str, list[Event]] = {}
    for event in events:
        queues.setdefault(stream(event), []).append(event)
    mixed: list[Event] = []
    for pick in order:
        left = [queue for queue in queues.values() if queue]
        if left:
            mixed.append(left[pick % len(left)].pop(0))
    return mixed + [event for queue in queues.values() for event in queue]


SMALL = st.sampled_from(["", "a", "b", "i1-a", "i1-b"])
FEW = st.lists(st.sampled_from(["t-0", "t-1"]), max_size=2).map(tuple)
PROPERTY = settings(derandomize=True, print_blob=True, deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))


def narrowed(event: Event, draw: st.DrawFn) -> Event:
    """An arbitrary event of one group, among few members and generations, so that events have to do with one another."""
    changes: dict[str, object] = {
        "group": "g",
        "cluster": "c",
        "epoch": draw(st.integers(0, 1)),
        "generation": draw(st.integers(-1, 4) | st.none()),
    }
    changes |= {"member": draw(SMALL), "instance": draw(st.sampled_from([None, "i1"])), "src": Source("f", draw(st.integers(1, 9)))}
    changes["ts"] = draw(st.none() | st.integers(0, 120).map(lambda s: s * 1_000_000))
    for name, values in {
        "resources": FEW,
        "owned": FEW,
        "error": st.sampled_from(["NONE", "FENCED_INSTANCE_ID", "REBALANCE_IN_PROGRESS"]),
    }.items():
        if hasattr(event, name):
            changes[name] = draw(values)
    if hasattr(event, "protocol"):
        changes["protocol"] = draw(st.sampled_from([None, "range", "cooperative-sticky"]))
    if hasattr(event, "assignment"):
        changes["assignment"] = draw(st.none() | st.dictionaries(SMALL, FEW, max_size=2))
    if hasattr(event, "members") and event.kind == "generation":
        changes["members"] = draw(st.none() | st.lists(SMALL, max_size=3).map(tuple))
    return replace(event, **changes)  # type: ignore[arg-type]


@st.composite
def related(draw: st.DrawFn) -> list[Event]:
    return [narrowed(event, draw) for event in draw(st.lists(any_event(), max_size=25))]


@PROPERTY
@given(st.lists(any_event(), max_size=20))
def test_check_takes_anything(events: list[Event]) -> None:
    check(events)


@PROPERTY
@given(related())
def test_check_takes_anything_related(events: list[Event]) -> None:
    check(events)


@PROPERTY
@given(related(), st.lists(st.integers(0, 9), max_size=30))
def test_how_observers_are_interleaved_changes_nothing(events: list[Event], order: list[int]) -> None:
    assert said(interleaved(events, order)) == said(events)


@PROPERTY
@given(related())
def test_a_log_handed_in_twice_changes_nothing(events: list[Event]) -> None:
    assert said(events + [replace(e, src=Source("copy", 1)) for e in events]) == said(events)


@settings(PROPERTY, max_examples=40)
@given(st.lists(st.sampled_from(STEPS), max_size=10), st.booleans(), st.booleans(), st.lists(st.integers(0, 9), max_size=200))
def test_neither_does_it_for_a_healthy_group(steps: list[str], cooperative: bool, named: bool, order: list[int]) -> None:
    events = Group(cooperative=cooperative, named=named).run(["dynamic", "static", *steps])
    expected = said(events)
    assert said(interleaved(events, order)) == expected
    assert said(events + [replace(e, src=Source("copy", 1)) for e in events]) == expected


def test_a_finding_of_a_violation_survives_the_copy() -> None:
    trace = Trace().round(1, {"c1": p(0, 1), "c2": p(1)})
    copied = trace.events() + [replace(e, src=Source("copy", 1)) for e in trace.events()]
    assert [f.fingerprint for f in promises(copied)] == [f.fingerprint for f in promises(trace)]
