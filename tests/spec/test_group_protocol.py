"""The classic group protocol's promises: each condition, each exception, each twin that breaks exactly one promise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kipcheck.spec import Settings
from kipcheck.spec.rounds import Seat
from kipcheck.spec.rules.group_protocol import label, names

from .trace_builder import Trace, broken, checked, p, promises, result, why

TWO = {"c1": p(0, 1), "c2": p(2, 3)}
SKEW_S = 1.0
SLACK_S = 5.0


class TestGenerationIncreases:
    rule = "generation-increases"

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().generation(7, ["c1"]).at(9).generation(5, ["c1"]),
            Trace().generation(7, None).at(9).generation(5, None),
            Trace().stored(7, {"c1": p(0)}).at(9).stored(5, {"c1": p(0)}),
            Trace().joined(7, "c1").at(9).joined(5, "c1"),
            Trace(clock=False).generation(7, ["c1"]).generation(5, ["c1"]),
        ],
    )
    def test_it_never_falls(self, trace: Trace) -> None:
        (finding,) = promises(trace)
        assert (finding.rule, finding.generation, len(finding.evidence)) == (self.rule, 5, 2)
        assert "from 7 to 5" in finding.message

    @pytest.mark.parametrize(
        ("trace", "times"),
        [
            (Trace().generation(7, ["c1"]).generation(9, ["c1"]), 1),
            (Trace().generation(7, ["c1"]).at(3).generation(7, ["c1"]), 0),
            (Trace().stored(7, {"c1": p(0)}).at(3).stored(7, {"c1": p(0)}), 0),
            (Trace().joined(7, "c1").at(3).joined(7, "c1"), 1),
            (Trace().joined(7, "c1").at(3).joined(5, "c2"), 0),
            (Trace().joined(7, "c1").at(3).joined(-1, "c1", error="UNKNOWN_MEMBER_ID"), 0),
            (Trace().joined(7, "").at(3).joined(5, ""), 0),
            (Trace().generation(7, ["c1"]).at(3).joined(5, "c1"), 0),
            (Trace().generation(7, ["c1"]).add("generation", None, None), 0),
            (Trace().generation(7, ["c1"]).at(3).heartbeat(5, "c1", "ILLEGAL_GENERATION").commit(-1, "c1", 0), 0),
        ],
    )
    def test_what_is_compared(self, trace: Trace, times: int) -> None:
        assert broken(trace) == []
        assert checked(self.rule, trace) == times

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().generation(7, ["c1"]).failover().add("load", 4).generation(5, ["c1"]),
            Trace().generation(7, []).at(9).generation(1, ["c9"]).stored(1, {"c9": p(0)}),
            Trace().stored(6, {"c1": p(0)}).generation(7, []).at(9).stored(1, {"c9": p(0)}),
            Trace().stored(7, {"c1": p(0)}).stored(8, {}).at(9).stored(1, {"c9": p(0)}).heartbeat(1, "c9"),
            Trace().generation(7, []).at(9).rebalance(0).joined(1, "c9").generation(1, ["c9"]).heartbeat(1, "c9"),
            Trace().generation(7, ["c1"]).add("gap", reason="a rotated file is missing").at(9).generation(1, ["c9"]),
        ],
    )
    def test_another_epoch_or_life_may_fall_back(self, trace: Trace) -> None:
        assert broken(trace) == []

    def test_a_gap_in_one_members_log_hides_nothing_of_the_coordinators(self) -> None:
        assert broken(Trace().generation(7, ["c1"]).add("gap", 7, "c2").generation(5, ["c1"])) == [self.rule]

    def test_only_an_empty_group_is_created_anew(self) -> None:
        trace = Trace().generation(6, []).generation(7, ["c1"]).at(9).generation(1, ["c9"])
        assert broken(trace) == [self.rule]


class TestOneAssignmentPerGeneration:
    rule = "one-assignment-per-generation"

    def again(self, *resources: str, seen_by: str | None = None, member: str = "c2") -> Trace:
        return Trace().round(3, TWO).at(20).synced(3, member, resources, seen_by=seen_by)

    def test_another_answer_to_the_same_member_breaks_it(self) -> None:
        (finding,) = promises(self.again(*p(2)))
        assert (finding.rule, finding.members, finding.resources) == (self.rule, ("c2",), tuple(p(3)))

    def test_the_members_own_word_counts_too(self) -> None:
        assert broken(self.again(*p(2), seen_by="member")) == [self.rule]

    def test_a_record_and_a_proposal_are_sightings(self) -> None:
        assert broken(Trace().sync(3, "c1", TWO).stored(3, TWO | {"c2": p(2)})) == [self.rule]

    def test_one_finding_for_one_member(self) -> None:
        assert broken(self.again(*p(2)).synced(3, "c2", p(3))) == [self.rule]

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().round(3, TWO).at(20).sync(3, "c1", {"c1": p(0), "c2": p(1)}),
            Trace().round(3, TWO).at(20).synced(3, "c2", p(2), error="REBALANCE_IN_PROGRESS"),
            Trace().round(3, TWO).at(20).synced(3, "c2", None),
            Trace().round(3, TWO).failover().add("load", 3).at(20).synced(3, "c2", p(2)),
            Trace().round(3, TWO).at(20).synced(4, "c2", p(2)),
        ],
    )
    def test_legal(self, trace: Trace) -> None:
        assert broken(trace) == []

    def test_the_same_answer_again_holds(self) -> None:
        assert broken(self.again(*p(3, 2))) == []
        assert checked(self.rule, self.again(*p(3, 2))) == checked(self.rule, Trace().round(3, TWO)) + 1

    def test_a_connect_leader_proposes_in_another_form(self) -> None:
        work = {"w1": ["connector:A", "task:A-0"], "w2": ["task:A-1"]}
        trace = Trace(protocol="sessioned").joined(3, "w1", "w2").sync(3, "w1", work).synced(3, "w2", ["task:A-1", "task:A-2"])
        assert self.rule not in broken(trace)


class TestAssignedOnlyToJoinedMembers:
    rule = "assigned-only-to-joined-members"

    @pytest.mark.parametrize(
        "stranger",
        [
            Trace().generation(4, ["c1", "c2"]).sync(4, "c1", TWO | {"c3": p(4)}),
            Trace().generation(4, ["c1", "c2"]).synced(4, "c3", p(4)),
            Trace().generation(4, ["c1", "c2"]).add("assignment", 4, None, assignment={"c3": p(4)}),
            Trace().generation(4, ["c1", "c2"]).sync(4, "c1", TWO | {"c3": p(4)}, seen_by="member"),
            Trace().generation(4, ["i1-aa", "c2"]).synced(4, "i3-cc", p(4)),
        ],
    )
    def test_a_stranger_with_work_breaks_it(self, stranger: Trace) -> None:
        (finding,) = promises(stranger)
        assert (finding.rule, finding.resources) == (self.rule, tuple(p(4)))

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().generation(4, ["c1", "c2"]).sync(4, "c1", TWO | {"c3": []}),
            Trace().generation(4, ["c1", "c2"]).synced(4, "c3@app.log#1", p(2), seen_by="member"),
            Trace().generation(4, ["i1-aa"]).replace(4, "i1-aa", "i1-bb").synced(4, "i1-bb", p(0)),
            Trace().generation(4, ["i1-aa"]).synced(4, "i1-bb", p(0)),
        ],
    )
    def test_legal(self, trace: Trace) -> None:
        assert broken(trace) == []

    def test_nothing_is_known_where_nobody_listed_the_members(self) -> None:
        trace = Trace().generation(4, None).synced(4, "c3", p(4))
        assert checked(self.rule, trace) == 0
        assert "no observer listed" in why(self.rule, trace)
        assert "not captured" in why(self.rule, Trace().joined(4, "c1"))

    def test_each_member_with_work_counts(self) -> None:
        assert checked(self.rule, Trace().generation(4, ["c1", "c2"]).stored(4, {"c1": p(0), "c2": []})) == 1


class TestProtocolCommonToMembers:
    rule = "protocol-common-to-members"

    def chosen(self, protocol: str, offered: list[str]) -> Trace:
        return (
            Trace(protocol=protocol)
            .join("c1", protocols=["range", "cooperative-sticky"])
            .join("c2", protocols=offered)
            .joined(2, "c1", "c2")
        )

    def test_everybody_must_have_offered_it(self) -> None:
        (finding,) = promises(self.chosen("cooperative-sticky", ["range"]))
        assert (finding.rule, finding.members) == (self.rule, ("c2",))
        assert len(finding.evidence) == 2

    def test_the_start_of_the_generation_shows_it_too(self) -> None:
        trace = Trace(protocol="range").join("c1", protocols=["sticky"]).generation(2, ["c1"])
        (finding,) = promises(trace)
        assert finding.argument[1].evidence is not None
        assert finding.argument[1].evidence.line == 2

    @pytest.mark.parametrize(("protocol", "offered", "times"), [("range", ["range"], 2), ("cooperative-sticky", ["cooperative-sticky"], 2)])
    def test_a_common_one_holds(self, protocol: str, offered: list[str], times: int) -> None:
        assert broken(self.chosen(protocol, offered)) == []
        assert checked(self.rule, self.chosen(protocol, offered)) == times

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().joined(2, "c1"),
            Trace().join("c1", protocols=[]).joined(2, "c1"),
            Trace().join("c1", protocols=None).joined(2, "c1"),
            Trace().join("c1", protocols=["range"]).generation(2, None),
        ],
    )
    def test_unknown_without_offer_or_choice(self, trace: Trace) -> None:
        assert broken(trace) == []
        assert checked(self.rule, trace) == 0

    def test_an_absent_static_member_counts_with_its_last_offer(self) -> None:
        trace = (
            Trace(protocol="range").join("i1-aa", protocols=["range"]).join("c2", protocols=["range", "sticky"]).joined(1, "i1-aa", "c2")
        )
        trace.at(9).rebalance(1)
        trace.protocol = "sticky"
        trace.join("c2", protocols=["range", "sticky"]).generation(2, ["i1-aa", "c2"])
        (finding,) = promises(trace)
        assert (finding.rule, finding.members, finding.generation) == (self.rule, ("i1-aa",), 2)

    def test_a_new_offer_counts_from_its_own_generation_on(self) -> None:
        trace = Trace(protocol="range").join("c1", protocols=["range"]).joined(1, "c1")
        trace.at(9).rebalance(1).join("c1", protocols=["sticky"]).stored(1, {"c1": p(0)})
        trace.protocol = "sticky"
        trace.joined(2, "c1")
        assert broken(trace) == []

    def test_offers_end_with_the_epoch(self) -> None:
        trace = Trace(protocol="range").join("i1-aa", protocols=["sticky", "range"]).joined(1, "i1-aa").failover()
        trace.protocol = "roundrobin"
        assert broken(trace.generation(2, ["i1-aa"])) == []


class TestStaleGenerationRejected:
    rule = "stale-generation-rejected"

    def moved_on(self) -> Trace:
        return Trace().generation(5, ["c1", "c2"]).heartbeat(5, "c1").at(30).generation(6, ["c1"]).at(40)

    @pytest.mark.parametrize("seconds", [30.05, 40])
    def test_a_granted_heartbeat_of_an_old_generation_breaks_it(self, seconds: float) -> None:
        (finding,) = promises(self.moved_on().at(seconds).heartbeat(5, "c1"))
        assert (finding.rule, finding.generation, finding.members) == (self.rule, 5, ("c1",))

    def test_so_does_a_granted_sync(self) -> None:
        assert broken(self.moved_on().synced(5, "c1", None)) == [self.rule]

    def test_and_without_a_clock(self) -> None:
        assert broken(Trace(clock=False).generation(5, ["c1"]).generation(6, ["c1"]).heartbeat(5, "c1")) == [self.rule]

    @pytest.mark.parametrize(
        "trace",
        [
            lambda t: t.heartbeat(5, "c1", "ILLEGAL_GENERATION"),
            lambda t: t.heartbeat(None, "c1"),
            lambda t: t.heartbeat(-1, "c1"),
            lambda t: t.heartbeat(7, "c1"),
            lambda t: t.at(30.5).heartbeat(5, "c1", estimated=True),
            lambda t: t.at(30).heartbeat(5, "c1"),
            lambda t: t.heartbeat(5, "c1", ts=None),
            lambda t: t.commit(-1, "c1", 0),
            lambda t: t.add("joined", 5, "c2", error="NONE"),
            lambda t: t.failover().add("load", 6).heartbeat(5, "c1"),
            lambda t: t.failover().heartbeat(5, "c1"),
            lambda t: t.add("gap").heartbeat(5, "c1"),
        ],
    )
    def test_legal(self, trace) -> None:  # type: ignore[no-untyped-def]
        assert self.rule not in broken(trace(self.moved_on()))

    def test_order_alone_tells_nothing_beside_a_clock(self) -> None:
        trace = Trace().generation(5, ["c1"]).add("generation", 6, None, members=["c1"], ts=None).at(40).heartbeat(5, "c1")
        assert broken(trace) == []

    def test_an_estimated_start_counts_beyond_the_skew(self) -> None:
        trace = Trace().generation(5, ["c1"]).at(30).joined(6, "c2", estimated=True)
        assert broken(trace.at(30.9).heartbeat(5, "c1")) == []
        assert broken(trace.at(31.1).heartbeat(5, "c1")) == [self.rule]

    def test_an_estimated_time_counts_beyond_the_skew(self) -> None:
        assert broken(self.moved_on().at(30 + SKEW_S + 0.1).heartbeat(5, "c1", estimated=True)) == [self.rule]

    def test_the_current_one_holds(self) -> None:
        assert checked(self.rule, self.moved_on()) == 1
        assert checked(self.rule, self.moved_on().heartbeat(6, "c1").heartbeat(7, "c1")) == 2

    def test_a_loading_coordinator_answers_blindly(self) -> None:
        trace = Trace().add("load", 6).heartbeat(5, "c1")
        assert broken(trace) == []
        assert "not known" in why(self.rule, trace)
        assert broken(trace.generation(7, ["c1"]).heartbeat(6, "c1")) == [self.rule]

    def test_ended_ids_are_judged_elsewhere(self) -> None:
        trace = Trace().generation(5, ["i1-aa"]).replace(5, "i1-aa", "i1-bb").generation(6, ["i1-bb"]).heartbeat(5, "i1-aa")
        assert broken(trace) == ["fenced-stays-fenced"]
        fenced = Trace().generation(5, ["i1-aa"]).heartbeat(5, "i1-aa", "FENCED_INSTANCE_ID").generation(6, ["i1-bb"]).heartbeat(5, "i1-aa")
        assert broken(fenced) == ["fenced-stays-fenced"]

    def test_the_sight_of_a_rebalance_shows_the_generation(self) -> None:
        assert broken(Trace().rebalance(6).at(9).heartbeat(5, "c1")) == [self.rule]


class TestZombieCommitRejected:
    rule = "zombie-commit-rejected"

    def removed(self, how: str = "expire") -> Trace:
        trace = Trace().round(5, {"c1": p(0), "c2": p(1)}).commit(5, "c2", 1).at(50)
        return trace.leave("c2") if how == "leave" else trace.expire("c2")

    @pytest.mark.parametrize("how", ["expire", "leave"])
    def test_a_removed_members_commit_is_refused(self, how: str) -> None:
        (finding,) = promises(self.removed(how).commit(5, "c2", 1))
        assert (finding.rule, finding.members, finding.resources) == (self.rule, ("c2",), ("orders-1",))

    def test_so_is_one_of_an_old_generation(self) -> None:
        (finding,) = promises(Trace().generation(5, ["c1"]).generation(6, ["c1"]).commit(5, "c1", 0))
        assert finding.rule == self.rule

    def test_and_a_removed_members_without_a_generation(self) -> None:
        assert broken(self.removed().commit(None, "c2", 1)) == [self.rule]

    @pytest.mark.parametrize(
        "then",
        [
            lambda t: t.commit(5, "c2", 1, error="UNKNOWN_MEMBER_ID"),
            lambda t: t.commit(-1, "c2", 1),
            lambda t: t.commit(5, "c2", 1, transactional=True),
            lambda t: t.commit(5, None, 1),
            lambda t: t.commit(5, "", 1),
            lambda t: t.commit(None, "c1", 1),
            lambda t: t.generation(6, ["c1"]).commit(5, None, 1).commit(5, "", 1),
            lambda t: t.at(50.2).commit(5, "c2", 1, estimated=True),
            lambda t: t.joined(6, "c2").commit(6, "c2", 1),
            lambda t: t.generation(6, ["c1", "c2"]).commit(6, "c2", 1),
            lambda t: t.stored(6, {"c2": p(1)}).commit(6, "c2", 1),
            lambda t: t.failover().add("load", 5).commit(5, "c2", 1),
        ],
    )
    def test_legal(self, then) -> None:  # type: ignore[no-untyped-def]
        assert broken(then(self.removed())) == []

    def test_a_refused_leave_removes_nobody(self) -> None:
        trace = Trace().generation(5, ["c1", "c2"]).leave("c2", error="UNKNOWN_MEMBER_ID").commit(5, "c2", 1)
        assert broken(trace) == []
        assert checked(self.rule, trace) == 1

    def test_an_instance_that_is_removed_by_name(self) -> None:
        trace = Trace().generation(5, ["i1-aa", "i2-bb"]).leave("", instance="i2", reason="member was removed by an admin")
        assert broken(trace.commit(5, "i1-aa", 0).commit(5, "i2-bb", 1)) == [self.rule]

    def test_a_commit_in_flight(self) -> None:
        trace = Trace().generation(5, ["c1"]).at(30).generation(6, ["c1"])
        assert broken(trace.at(30.5).commit(5, "c1", 0, estimated=True)) == []
        assert broken(trace.at(32).commit(5, "c1", 0, estimated=True)) == [self.rule]

    def test_a_stranger_commits_nothing(self) -> None:
        assert broken(Trace().generation(5, ["c1"]).commit(5, "c7", 0)) == [self.rule]

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().generation(5, ["i1-aa"]).commit(5, "i1-bb", 0),
            Trace().joined(5, "i1-aa").generation(5, ["i1-aa"]).commit(5, "i1-bb", 0),
            Trace().generation(5, ["c1"]).joined(5, "c7").commit(5, "c7", 0),
            Trace().generation(5, None).commit(5, "c7", 0),
            Trace().generation(5, ["c1"]).at(9).add("gap").joined(5, "c1").commit(5, "c7", 0),
            Trace().at(9).generation(5, ["c1"]).at(9).commit(5, "c7", 0),
        ],
    )
    def test_who_may_be_no_stranger(self, trace: Trace) -> None:
        assert broken(trace) == []

    def test_what_is_ahead_or_without_a_known_generation_is_not_judged(self) -> None:
        assert checked(self.rule, Trace().generation(5, ["c1"]).commit(6, "c1", 0)) == 0
        assert "not known" in why(self.rule, Trace().commit(6, "c1", 0))
        assert "not known" in why(self.rule, Trace().generation(5, ["c1"]).commit(None, "c1", 0))

    def test_replaced_ids_are_judged_elsewhere(self) -> None:
        trace = Trace().generation(5, ["i1-aa"]).replace(5, "i1-aa", "i1-bb")
        assert broken(trace.generation(6, ["i1-bb"]).expire("i1-aa").commit(5, "i1-aa", 0)) == ["fenced-stays-fenced"]


class TestJoinBarrier:
    rule = "join-barrier"

    def preparing(self, *joining: str, reason: str | None = None, **join: object) -> Trace:
        """c1 and c2 are members, and the group waits for them since second 10."""
        trace = Trace(protocol="range").join("c1", **join).join("c2", **join).generation(1, ["c1", "c2"]).joined(1, "c1", "c2")
        trace.at(10).rebalance(1, reason).at(10)
        for member in joining:
            trace.join(member)
        return trace

    def test_a_live_member_is_waited_for(self) -> None:
        (finding,) = promises(self.preparing("c1", "c3").at(12).generation(2, ["c1", "c3"]))
        assert (finding.rule, finding.members, len(finding.evidence)) == (self.rule, ("c2",), 3)

    @pytest.mark.parametrize(
        "then",
        [
            lambda t: t.at(10 + 60 - SKEW_S).generation(2, ["c1", "c3"]),
            lambda t: t.at(12).expire("c2", "session").generation(2, ["c1", "c3"]),
            lambda t: t.at(12).leave("c2").generation(2, ["c1", "c3"]),
            lambda t: t.at(12).generation(2, ["c1", "c3"]).expire("c2", "session"),
            lambda t: t.at(12).joined(None, "c2", error="GROUP_MAX_SIZE_REACHED").generation(2, ["c1", "c3"]),
            lambda t: t.at(12).generation(2, ["c1", "c3"]).leave("c2"),
            lambda t: t.at(46).generation(2, ["c1", "c3"]),
            lambda t: t.join("c2").at(12).generation(2, ["c1", "c2", "c3"]),
            lambda t: t.at(12).generation(3, ["c1", "c3"]),
            lambda t: t.at(12).generation(2, None),
            lambda t: t.add("gap").at(12).generation(2, ["c1", "c3"]),
        ],
    )
    def test_legal(self, then) -> None:  # type: ignore[no-untyped-def]
        assert broken(then(self.preparing("c1", "c3"))) == []

    def test_the_rebalance_timer_must_not_fire_early(self) -> None:
        (finding,) = promises(self.preparing("c1", "c3").at(12).expire("c2", "rebalance").generation(2, ["c1", "c3"]))
        assert (finding.rule, finding.members, finding.generation) == (self.rule, ("c2",), 1)
        assert "after 2000 ms although it had 60000 ms" in finding.message
        assert broken(self.preparing("c1", "c3").at(12).generation(2, ["c1", "c3"]).expire("c2", "rebalance")) == [self.rule]
        assert broken(self.preparing("c1", "c3").at(70 - SKEW_S).expire("c2", "rebalance").generation(2, ["c1", "c3"])) == []
        assert broken(self.preparing("c1", "c3").at(70 - SKEW_S).generation(2, ["c1", "c3"]).expire("c2", "rebalance")) == []

    @pytest.mark.parametrize(
        "trace",
        [
            lambda s: s.preparing("c1", rebalance_timeout_ms=None),
            lambda s: s.preparing("c1").join("c2", rebalance_timeout_ms=1_000),
            lambda s: s.preparing("c1").add("gap"),
            lambda s: s.preparing("c1").failover(),
        ],
    )
    def test_what_the_rebalance_timer_is_judged_by(self, trace: Callable[[TestJoinBarrier], Trace]) -> None:
        assert broken(trace(self).at(12).expire("c2", "rebalance")) == []

    def test_another_log_may_list_the_members_a_little_later(self) -> None:
        trace = self.preparing("c1", "c3").at(12).generation(2, None).at(12.1).generation(2, ["c1", "c3"])
        (finding,) = promises(trace)
        assert (finding.rule, finding.members) == (self.rule, ("c2",))
        assert "after 2000 ms" in finding.message
        left = self.preparing("c1", "c3").at(12).generation(2, None).leave("c2").generation(2, ["c1", "c3"])
        assert broken(left) == []
        slow = self.preparing("c1", "c3").at(69.5).generation(2, None).at(80).generation(2, ["c1", "c3"])
        assert broken(slow) == []

    def test_the_session_counts_up_to_the_end_of_the_phase(self) -> None:
        expired = self.preparing("c1", "c3").at(46).generation(2, None).at(46.1).generation(2, ["c1", "c3"])
        assert broken(expired) == []

    def test_the_rebalance_timeout_ends_it(self) -> None:
        patient = {"session_timeout_ms": 300_000}
        assert broken(self.preparing("c1", "c3", **patient).at(10 + 60 - SKEW_S).generation(2, ["c1", "c3"])) == []
        assert broken(self.preparing("c1", "c3", **patient).at(10 + 59 - SKEW_S).generation(2, ["c1", "c3"])) == [self.rule]

    def test_the_cause_of_the_rebalance_may_be_its_removal(self) -> None:
        assert broken(self.preparing("c1", reason="explicit `LeaveGroup` request for (c2) members.").generation(2, ["c1"])) == []

    def test_what_was_prepared_before_a_reload_is_not_judged(self) -> None:
        assert broken(self.preparing("c1").at(12).generation(2, None).add("load", 2).generation(2, ["c1"])) == []
        assert broken(self.preparing("c1").at(12).generation(2, None).add("gap").generation(2, ["c1"])) == []

    def test_a_rebalance_that_was_not_seen_has_no_start(self) -> None:
        trace = self.preparing("c1", "c2").at(12).generation(2, ["c1", "c2"]).joined(2, "c1", "c2").join("c1").at(13)
        assert broken(trace.generation(3, ["c1", "c2"])) == []
        assert checked("rebalance-within-timeout", trace) == 1

    def test_an_answer_of_another_epoch_is_no_rejoin(self) -> None:
        trace = self.preparing("c1").joined(2, "c2").failover().add("load", 1).generation(1, ["c1", "c2"]).rebalance(1).join("c1")
        assert broken(trace.generation(2, ["c1", "c2"])) == [self.rule]

    def test_nobody_was_there_to_wait_for(self) -> None:
        assert checked(self.rule, Trace().generation(1, []).rebalance(1).join("c1").generation(2, ["c1"])) == 0

    def test_a_refused_leave_is_no_excuse(self) -> None:
        trace = self.preparing("c1", "c3").at(12).generation(2, ["c1", "c3"]).leave("c2", error="UNKNOWN_MEMBER_ID")
        assert broken(trace) == [self.rule]

    def test_the_session_may_have_run_out_unseen(self) -> None:
        trace = self.preparing("c1", "c3").at(46).generation(2, ["c1", "c3"])
        assert "session may have run out" in why(self.rule, trace)
        alive = self.preparing("c1", "c3").at(30).heartbeat(1, "c2").at(46).generation(2, ["c1", "c3"])
        assert broken(alive) == [self.rule]

    @pytest.mark.parametrize("missing", ["session_timeout_ms", "rebalance_timeout_ms"])
    def test_timeouts_must_be_known(self, missing: str) -> None:
        trace = self.preparing("c1", "c3")
        for row in trace.rows:
            row.pop(missing, None)
        assert broken(trace.at(12).generation(2, ["c1", "c3"])) == []

    def test_unknown_without_clock(self) -> None:
        trace = Trace(clock=False).join("c1").join("c2").generation(1, ["c1", "c2"]).rebalance(1).join("c1").generation(2, ["c1"])
        assert broken(trace) == []

    def test_nobody_is_listed_without_having_rejoined(self) -> None:
        (finding,) = promises(self.preparing("c1").at(12).generation(2, ["c1", "c2"]))
        assert (finding.rule, finding.members) == (self.rule, ("c2",))
        assert "had not rejoined" in finding.message

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().generation(1, ["c1", "c2"]).rebalance(1).generation(2, ["c1", "c2"]),
            Trace().joined(1, "c1", "c2").generation(1, ["c1", "c2"]).rebalance(1).join("c1", estimated=True).generation(2, ["c1", "c2"]),
            Trace().generation(1, ["c1", "c2"]).rebalance(1).join("c1").joined(2, "c1", "c2").generation(2, ["c1", "c2"]),
            Trace().joined(1, "c1", "i2-bb").generation(1, ["c1", "i2-bb"]).rebalance(1).join("c1").generation(2, ["c1", "i2-bb"]),
            Trace().generation(1, ["c1", "i2-bb"]).rebalance(1).join("c1").generation(2, ["c1", "i2-bb"]),
            Trace().generation(1, ["c1"]).rebalance(1).join("c1").generation(2, ["c1", "c3"]),
            Trace().generation(1, None).rebalance(1).join("c1").generation(2, ["c1", "c2"]),
            Trace().joined(1, "c1", "c2").generation(1, ["c1", "c2"]).join("c1").generation(2, ["c1", "c2"]),
            Trace().joined(1, "c1", "c2").generation(1, ["c1", "c2"]).rebalance(1).join("c1").add("gap").generation(2, ["c1", "c2"]),
            Trace().joined(1, "c1", "c2").generation(1, ["c1", "c2"]).rebalance(1).failover().join("c1").generation(2, ["c1", "c2"]),
            Trace().joined(1, "c1", "c2").generation(1, ["c1", "c2"]).rebalance(1).generation(2, None).add("load", 2).generation(2, ["c1"]),
            Trace()
            .joined(1, "c1", "c2")
            .generation(1, ["c1", "c2"])
            .rebalance(1)
            .generation(2, None)
            .join("c1")
            .generation(3, ["c1", "c2"]),
            Trace()
            .joined(1, "c1", "c2")
            .generation(1, ["c1", "c2"])
            .rebalance(1)
            .join("c1", src={"file": "b"})
            .generation(2, ["c1", "c2"]),
        ],
    )
    def test_a_silent_member_may_have_joined_unseen(self, trace: Trace) -> None:
        assert self.rule not in broken(trace)

    @pytest.mark.parametrize(
        "answer",
        [
            lambda t: t.joined(1, "c2"),
            lambda t: t.joined(2, "c2", error="UNKNOWN_MEMBER_ID"),
        ],
    )
    def test_an_answer_of_another_generation_or_a_refusal_is_no_rejoin(self, answer) -> None:  # type: ignore[no-untyped-def]
        assert broken(answer(self.preparing("c1")).at(12).generation(2, ["c1", "c2"])) == [self.rule]

    def test_a_request_counts_for_one_barrier(self) -> None:
        trace = self.preparing("c1", "c2").at(12).generation(2, ["c1", "c2"])
        trace.at(20).rebalance(2).join("c1").generation(3, ["c1", "c2"])
        assert broken(trace) == [self.rule]

    def test_a_refused_request_does_not_count(self) -> None:
        trace = self.preparing("c1", "c2").joined(-1, "c2", error="UNKNOWN_MEMBER_ID").at(12).generation(2, ["c1", "c2"])
        assert broken(trace) == [self.rule]

    def test_a_static_members_new_id_takes_its_place(self) -> None:
        trace = Trace().join("c1").join("i2-bb").generation(1, ["c1", "i2-bb"]).joined(1, "c1", "i2-bb").at(10).rebalance(1).join("c1")
        assert broken(trace.replace(1, "i2-bb", "i2-cc").generation(2, ["c1", "i2-cc"])) == []

    def test_an_instance_that_an_administrator_removes(self) -> None:
        trace = Trace().join("c1").join("i2-bb").generation(1, ["c1", "i2-bb"]).joined(1, "c1", "i2-bb").at(10).rebalance(1).join("c1")
        trace.generation(2, ["c1"]).leave("", instance="i2", reason="member was removed by an admin")
        assert broken(trace) == []

    def test_how_often_it_holds(self) -> None:
        assert checked(self.rule, self.preparing("c1", "c2").generation(2, ["c1", "c2"])) == 1
        assert checked(self.rule, self.preparing("c1").leave("c2").generation(2, ["c1"])) == 1
        assert checked(self.rule, self.preparing("c1", "c3").at(12).generation(2, ["c1", "c3"]).leave("c2")) == 1


class TestRebalanceWithinTimeout:
    rule = "rebalance-within-timeout"

    def preparing(self, *joining: str, first: str = "c2") -> Trace:
        trace = Trace(protocol="range").join("c1").join(first).generation(1, ["c1", first]).joined(1, "c1", first)
        trace.at(10).rebalance(1).at(10)
        for member in joining:
            trace.join(member)
        return trace

    def ends(self, seconds: float, *joining: str, settings: Settings | None = None) -> list[str]:
        trace = self.preparing(*joining).at(10 + seconds).expire("c2", "rebalance").at(10 + seconds).generation(2, ["c1"])
        return broken(trace, settings)

    def test_its_bound(self) -> None:
        assert self.ends(60 + SLACK_S + SKEW_S, "c1") == []
        assert self.ends(60 + SLACK_S + SKEW_S + 0.01, "c1") == [self.rule]
        assert self.ends(90, "c1", settings=Settings(clock_skew_ms=30_000)) == []

    def test_it_is_measured_from_the_first_that_waits(self) -> None:
        trace = self.preparing().at(50).join("c1").at(60).join("c3").at(110).expire("c2").generation(2, ["c1", "c3"])
        assert broken(trace) == []
        assert broken(self.preparing().at(50).join("c1").at(120).expire("c2").generation(2, ["c1"])) == [self.rule]

    def test_the_longest_timeout_counts(self) -> None:
        slow = self.preparing("c1").join("c3", rebalance_timeout_ms=120_000).at(130).expire("c2").generation(2, ["c1", "c3"])
        assert broken(slow) == []
        gone = self.preparing("c1").join("c3", rebalance_timeout_ms=120_000).at(130).expire("c2").generation(2, ["c1"])
        assert broken(gone) == []

    def test_a_timeout_that_a_broker_may_have_ignored_counts(self) -> None:
        trace = self.preparing().join("c1", rebalance_timeout_ms=10_000).join("c2", rebalance_timeout_ms=10_000)
        assert broken(trace.at(60).generation(2, ["c1", "c2"])) == []

    def test_whoever_was_waited_for_counts_although_it_expired(self) -> None:
        trace = Trace(protocol="range").join("c1").join("c2", session_timeout_ms=10_000, rebalance_timeout_ms=120_000)
        trace.generation(1, ["c1", "c2"]).joined(1, "c1", "c2").at(10).rebalance(1).join("c1").at(11).expire("c2").at(130)
        assert broken(trace.generation(2, ["c1"])) == []

    def test_whoever_opens_the_join_phase_waits(self) -> None:
        trace = Trace(protocol="range").join("c1").join("i2-bb").generation(1, ["c1", "i2-bb"]).joined(1, "c1", "i2-bb").at(10).join("c1")
        trace.rebalance(1, "Leader c1 re-joining group during Stable").at(100)
        assert broken(trace.generation(2, ["c1", "i2-bb"])) == [self.rule]

    def test_all_timeouts_must_be_known(self) -> None:
        trace = self.preparing("c1").join("c3", rebalance_timeout_ms=None).at(110).expire("c2").generation(2, ["c1", "c3"])
        assert broken(trace) == []
        assert "rebalance timeouts or" in why(self.rule, trace)
        assert "rebalance timeouts or" in why(self.rule, Trace().rebalance(1).generation(2, None))
        assert "rebalance timeouts or" in why(self.rule, Trace(clock=False).rebalance(1).join("c1").generation(2, ["c1"]))

    def test_only_absent_static_members_are_waited_for_again_and_again(self) -> None:
        again = self.preparing(first="i2-bb").at(200).expire("c1").generation(2, ["i2-bb"])
        assert broken(again) == []
        assert "only absent static members" in why(self.rule, again)
        dynamic = self.preparing(first="c2").at(200).expire("c1").generation(2, ["c2"])
        assert broken(dynamic) == [self.rule]

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().join("c1").joined(1, "c1").rebalance(1).join("c1").at(600).generation(5, ["c1"]),
            Trace().join("c1").joined(1, "c1").at(600).generation(2, ["c1"]),
            Trace().join("c1").joined(1, "c1").rebalance(1).add("gap").at(600).generation(2, ["c1"]),
            Trace().join("c1").joined(1, "c1").rebalance(1).failover().at(600).generation(2, ["c1"]),
        ],
    )
    def test_it_is_the_generation_that_was_prepared(self, trace: Trace) -> None:
        assert self.rule not in broken(trace)

    def test_another_rebalance_starts_the_clock_anew(self) -> None:
        trace = self.preparing("c1", "c2").at(15).generation(2, ["c1", "c2"]).at(100).rebalance(2).at(110).join("c1").join("c2")
        assert broken(trace.at(170).generation(3, ["c1", "c2"])) == []

    def test_how_often_it_holds(self) -> None:
        assert checked(self.rule, self.preparing("c1", "c2").generation(2, ["c1", "c2"])) == 1


def test_names_and_labels() -> None:
    assert (names([]), names(p(1, 0)), names(p(*range(6)))) == ("nothing", "orders-0, orders-1", ", ".join(p(*range(6))))
    assert names(p(*range(7))) == ", ".join(p(*range(6))) + " and 1 more"
    assert [label(Seat("o", "m")), label(Seat("o", "m", instance="i1"))] == ["m", "m (instance i1)"]


def test_findings_name_who_and_what() -> None:
    trace = Trace().round(5, {"c1": p(*range(8)), "c2": p(8)}).expire("c2").commit(5, "c2", *range(8))
    (finding,) = result(trace).findings
    assert "c2" in finding.message
    assert "and 2 more" in finding.argument[1].says
