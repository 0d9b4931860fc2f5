"""KIP-345's promises: each condition, each exception, each twin that breaks exactly one promise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .trace_builder import Trace, broken, checked, p, promises, result, why

STATIC = {"i1-aa": p(0, 1), "i2-bb": p(2, 3)}
ADMIN = "member was removed by an admin"


def stable() -> Trace:
    """Two static members, since second 0, and i2's process is gone since second 5."""
    return Trace().round(3, STATIC).at(5).add("closed", None, "i2-bb").at(20)


class TestStaticAssignmentKept:
    rule = "static-assignment-kept"

    def back(self, *resources: str) -> Trace:
        return stable().join("", None, instance="i2").replace(3, "i2-bb", "i2-cc").joined(3, "i2-cc").synced(3, "i2-cc", resources)

    def test_it_gets_what_it_had(self) -> None:
        (finding,) = promises(self.back(*p(2)))
        assert (finding.rule, finding.severity, finding.relaxed) == (self.rule, "error", None)
        assert (finding.members, finding.resources) == (("i2-bb", "i2-cc"), ("orders-3",))
        assert len(finding.evidence) == 3
        assert broken(self.back(*p(3, 2))) == []
        assert checked(self.rule, self.back(*p(3, 2))) == 1

    @pytest.mark.parametrize(
        "trace",
        [
            stable().replace(3, "i2-bb", "i2-cc").rebalance(3, "Adding new member c3").round(4, {"i1-aa": p(0, 1, 2), "i2-cc": p(3)}),
            Trace().round(3, {"c1": p(0), "c2": p(1)}).synced(3, "c3", p(2), instance=None),
            Trace().round(3, STATIC).failover().add("load", 3).synced(3, "i2-cc", p(2)),
            Trace().add("assignment", 3, None, assignment={"i1-aa": p(0), "i1-bb": p(1)}),
        ],
    )
    def test_legal(self, trace: Trace) -> None:
        assert self.rule not in broken(trace)

    def test_the_shares_before_and_after_must_be_known(self) -> None:
        half = Trace().generation(3, ["i1-aa", "i2-bb"]).replace(3, "i2-bb", "i2-cc").joined(3, "i2-bb").synced(3, "i2-cc", p(2))
        assert checked(self.rule, half) == 0
        assert "before or after only" in why(self.rule, half)

    def test_who_never_went_away_did_not_return(self) -> None:
        assert "returned" not in why(self.rule, Trace().round(3, STATIC))

    def test_a_return_before_the_leaders_assignment(self) -> None:
        trace = Trace().joined(3, "i1-aa", "i2-bb").replace(3, "i2-bb", "i2-cc").joined(3, "i2-cc").sync(3, "i1-aa", STATIC)
        (finding,) = promises(trace.synced(3, "i2-cc", []))
        assert (finding.rule, finding.severity) == (self.rule, "warning")
        assert "KAFKA-9801" in (finding.relaxed or "")

    def test_what_is_empty_or_proposed_alone_excuses_nothing(self) -> None:
        answered = Trace().joined(3, "i1-aa", "i2-bb").synced(3, "i2-bb", p(2)).replace(3, "i2-bb", "i2-cc").synced(3, "i2-cc", [])
        assert promises(answered)[0].severity == "error"
        other = Trace().joined(3, "i1-aa", "i2-bb").sync(3, "i1-aa", STATIC).replace(3, "i2-bb", "i2-cc").synced(3, "i2-cc", p(2))
        assert promises(other)[0].severity == "error"

    def test_a_return_to_a_stable_group_for_sure_may_not_get_nothing(self) -> None:
        trace = Trace().joined(3, "i1-aa", "i2-bb").sync(3, "i1-aa", STATIC).synced(3, "i1-aa", p(0, 1))
        came = trace.at(20).replace(3, "i2-bb", "i2-cc").synced(3, "i2-cc", [])
        assert [(f.rule, f.severity) for f in promises(came)] == [(self.rule, "error")]
        seen = Trace().joined(3, "i1-aa", "i2-bb").sync(3, "i1-aa", STATIC).synced(3, "i1-aa", p(0, 1)).at(20).joined(3, "i2-cc")
        assert [(f.rule, f.severity) for f in promises(seen.synced(3, "i2-cc", []))] == [(self.rule, "error")]
        unseen = Trace().joined(3, "i1-aa", "i2-bb").sync(3, "i1-aa", STATIC).synced(3, "i1-aa", p(0, 1)).at(20).synced(3, "i2-cc", [])
        assert [(f.rule, f.severity) for f in promises(unseen)] == [(self.rule, "warning")]

    def test_the_last_of_many_returns(self) -> None:
        trace = self.back(*p(2, 3)).replace(3, "i2-cc", "i2-dd").synced(3, "i2-dd", p(2))
        assert broken(trace) == [self.rule]


class TestStaticReturnNoRebalance:
    rule = "static-return-no-rebalance"
    for_it = "Updating metadata for static member i2-cc with instance id i2"

    def back(self) -> Trace:
        return stable().replace(3, "i2-bb", "i2-cc")

    @pytest.mark.parametrize("reason", [for_it, "static member i2-bb is back", None])
    def test_a_return_causes_none(self, reason: str | None) -> None:
        (finding,) = promises(self.back().rebalance(3, reason))
        assert (finding.rule, finding.members, finding.generation) == (self.rule, ("i2-bb", "i2-cc"), 3)
        assert len(finding.evidence) == 2

    @pytest.mark.parametrize(
        ("then", "times"),
        [
            (lambda t: t, 1),
            (lambda t: t.rebalance(3, "Adding new member c3"), 1),
            (lambda t: t.rebalance(3, "Updating metadata for static member i9-zz with instance id i9"), 1),
            (lambda t: t.rebalance(3, "Updating metadata for member i2-cc during Stable"), 1),
            (
                lambda t: t.rebalance(3, "Group's selectedProtocol will change because static member i2-cc joined with change of protocol"),
                1,
            ),
            (lambda t: t.rebalance(3, "the selected protocol changes: static member i2-cc"), 1),
            (lambda t: t.rebalance(3, "Removing static member i2-bb on pending sync request expiration"), 1),
            (lambda t: t.join("c3").rebalance(3, None), 1),
            (lambda t: t.join("i2-cc").rebalance(3, None), 1),
            (lambda t: t.join("", instance="i9").rebalance(3, None), 1),
            (lambda t: t.leave("c3").rebalance(3, None), 1),
            (lambda t: t.expire("c3").rebalance(3, None), 1),
            (lambda t: t.at(20 + 3 + 1.06).rebalance(3, None), 1),
            (lambda t: t.replace(3, "i2-cc", "i2-dd").rebalance(3, "Adding new member c3"), 2),
            (lambda t: t.replace(3, "i1-aa", "i1-bb").rebalance(3, "Adding new member c3"), 2),
            (lambda t: t.at(21).generation(4, ["i1-aa", "i2-cc"]).rebalance(4, self_for), 1),
            (lambda t: t.failover().add("load", 3).rebalance(3, None), 1),
            (lambda t: t.add("gap").rebalance(3, None), 1),
            (
                lambda t: (
                    t.expire("i2-cc")
                    .rebalance(3, "x")
                    .generation(4, ["i1-aa"])
                    .synced(4, "i1-aa", [])
                    .join("", instance="i2")
                    .rebalance(4, None)
                ),
                1,
            ),
            (lambda t: t.expire("i2-cc").synced(3, "i1-aa", []).join("", instance="i2").expire("c9").rebalance(3, None), 1),
            (lambda t: t.rebalance(3, "Adding new member c3").rebalance(3, None), 1),
            (lambda t: t.rebalance(3, "Adding new member c3").rebalance(3, self_for), 1),
            (lambda t: t.add("replace", 3, "x", old_member="y").rebalance(3, "static member x and y"), 1),
        ],
    )
    def test_legal(self, then: Callable[[Trace], Trace], times: int) -> None:
        trace = then(self.back())
        assert self.rule not in broken(trace)
        assert checked(self.rule, trace) == times
        assert why(self.rule, trace) == ""

    def test_who_it_replaced_may_be_unknown(self) -> None:
        trace = stable().add("replace", 3, "i2-cc").rebalance(3, "static member i9-zz")
        assert broken(trace) == []

    def test_soon_after_without_a_reason(self) -> None:
        assert broken(self.back().at(20 + 3 + 1).rebalance(3, None)) == [self.rule]

    def test_its_own_first_request_is_no_other_cause(self) -> None:
        assert broken(self.back().join("", None, instance="i2").rebalance(3, None)) == [self.rule]

    def test_what_came_before_the_return_is_no_other_cause(self) -> None:
        assert broken(stable().join("c3").replace(3, "i2-bb", "i2-cc").rebalance(3, None)) == [self.rule]

    def test_the_request_alone_shows_the_return(self) -> None:
        asked = stable().join("", None, instance="i2")
        assert broken(asked.rebalance(3, self.for_it)) == [self.rule]
        expired = stable().expire("i2-bb", "sync", pending=True).join("", None, instance="i2").rebalance(3, None)
        assert broken(expired) == []
        assert checked(self.rule, stable().join("", None, instance="i2").replace(3, "i2-bb", "i2-cc")) == 1

    def test_one_of_several_returns_is_blamed(self) -> None:
        trace = self.back().replace(3, "i1-aa", "i1-bb").rebalance(3, self.for_it)
        assert broken(trace) == [self.rule]
        assert checked(self.rule, trace) == 2

    def test_a_group_that_was_rebalancing_goes_on(self) -> None:
        preparing = stable().rebalance(3, "Adding new member c3").replace(3, "i2-bb", "i2-cc").rebalance(3, self.for_it)
        assert broken(preparing) == []
        assert checked(self.rule, preparing) == 0
        assert why(self.rule, preparing).startswith("did not apply")
        completing = Trace().generation(3, ["i1-aa", "i2-bb"]).replace(3, "i2-bb", "i2-cc").rebalance(3, self.for_it)
        assert broken(completing) == []
        assert checked(self.rule, completing) == 0

    def test_an_answer_that_comes_late_does_not_settle_a_rebalance(self) -> None:
        late = stable().rebalance(3, "Adding new member c3").synced(3, "i1-aa", p(0, 1)).stored(3, STATIC)
        assert broken(late.replace(3, "i2-bb", "i2-cc").rebalance(3, self.for_it)) == []

    def test_unknown_where_the_groups_state_is(self) -> None:
        trace = Trace().replace(3, "i2-bb", "i2-cc").rebalance(3, self.for_it)
        assert broken(trace) == []
        assert "was not captured" in why(self.rule, trace)

    def test_without_a_clock_what_follows_at_once_is_put_down_to_it(self) -> None:
        trace = Trace(clock=False).synced(3, "i1-aa", p(0)).replace(3, "i2-bb", "i2-cc").rebalance(3, None)
        assert broken(trace) == [self.rule]


self_for = TestStaticReturnNoRebalance.for_it


class TestStaticSlotHeld:
    rule = "static-slot-held"

    def dropped(self, seconds: float, *, watched: bool = True, joins: bool = True, **join: object) -> Trace:
        """i2-bb was alive at second 4, and the generation that starts at ``seconds`` is without it."""
        trace = Trace()
        for member in STATIC:
            trace.join(member, **join)
        trace.generation(3, list(STATIC)).joined(3, *STATIC).at(4).heartbeat(3, "i2-bb").at(5).add("closed", None, "i2-bb")
        trace.at(20)
        if watched:
            trace.rebalance(3, None)
        if joins:
            trace.join("i1-aa")
        return trace.at(seconds).generation(4, ["i1-aa"])

    def test_it_is_not_dropped_before_its_session_is_over(self) -> None:
        (finding,) = [f for f in promises(self.dropped(25)) if f.rule == self.rule]
        assert (finding.generation, finding.resources, len(finding.evidence)) == (4, (), 3)
        assert "21000 ms" in finding.message
        assert finding.argument[2].says.endswith("is without it")

    def test_a_rebalance_for_another_cause_was_not_the_sync_timers(self) -> None:
        trace = Trace()
        for member in STATIC:
            trace.join(member, rebalance_timeout_ms=20_000)
        trace.generation(3, list(STATIC)).joined(3, *STATIC).at(20).rebalance(3, "Adding new member c3").at(25)
        assert self.rule in broken(trace.generation(4, ["i1-aa"]))
        unwatched = [row for row in trace.rows if row["kind"] != "rebalance"]
        trace.rows = unwatched[:-1]
        assert self.rule not in broken(trace.join("i1-aa", rebalance_timeout_ms=20_000).generation(4, ["i1-aa"]))

    def test_what_others_got_is_named(self) -> None:
        trace = Trace().join("i1-aa").join("i2-bb").joined(3, *STATIC).stored(3, STATIC).at(20).rebalance(3, None).join("i1-aa")
        (finding,) = promises(trace.at(25).stored(4, {"i1-aa": p(0, 1, 2)}))
        assert (finding.rule, finding.resources) == (self.rule, ("orders-2",))
        assert finding.argument[2].says.endswith("without it and gives orders-2 to others")

    @pytest.mark.parametrize(
        "trace",
        [
            lambda s: s.dropped(48),
            lambda s: s.dropped(25, watched=False, joins=False),
            lambda s: s.dropped(25, session_timeout_ms=None),
            lambda s: s.dropped(25, joins=False, rebalance_timeout_ms=None),
            lambda s: s.dropped(25, rebalance_timeout_ms=21_000),
            lambda s: s.dropped(25).leave("i2-bb", reason=ADMIN),
            lambda s: s.dropped(25).leave("", instance="i2", reason=ADMIN),
            lambda s: Trace().join("i1-aa").join("i2-bb").stored(3, STATIC).at(9).rebalance(3).join("c3").stored(5, {"i1-aa": p(0)}),
            lambda s: (
                Trace()
                .join("i1-aa")
                .join("i2-bb")
                .stored(3, STATIC)
                .at(9)
                .failover()
                .add("load", 2)
                .rebalance(2)
                .stored(3, {"i1-aa": p(0)})
            ),
            lambda s: (
                Trace().join("i1-aa").join("i2-bb").stored(3, STATIC).at(9).failover().rebalance(3).join("i1-aa").stored(4, {"i1-aa": p(0)})
            ),
            lambda s: (
                Trace().join("i1-aa").join("i2-bb").stored(3, STATIC).at(9).add("gap").rebalance(3).join("i1-aa").stored(4, {"i1-aa": p(0)})
            ),
            lambda s: (
                Trace()
                .join("i1-aa")
                .join("i2-bb")
                .stored(3, STATIC)
                .at(9)
                .replace(3, "i2-bb", "i2-cc")
                .rebalance(3)
                .stored(4, {"i2-cc": p(2)})
                .leave("", instance="i1")
            ),
            lambda s: (
                Trace(clock=False).join("i1-aa").join("i2-bb").stored(3, STATIC).rebalance(3).join("i1-aa").stored(4, {"i1-aa": p(0)})
            ),
        ],
    )
    def test_legal(self, trace: Callable[[TestStaticSlotHeld], Trace]) -> None:
        assert self.rule not in broken(trace(self))

    def test_nobody_has_to_be_listed_to_leave(self) -> None:
        assert broken(Trace().leave("", instance="i9", reason=ADMIN)) == []

    def test_an_older_rebalance_does_not_show_the_join_phase(self) -> None:
        trace = Trace().rebalance(2, None).join("i1-aa").join("i2-bb").generation(3, list(STATIC)).at(20).generation(4, ["i1-aa"])
        assert broken(trace) == []

    @pytest.mark.parametrize(
        ("reason", "found"),
        [("explicit `LeaveGroup` request for (i2-bb) members.", []), ("explicit leave of i1-aa", ["join-barrier", "static-slot-held"])],
    )
    def test_the_cause_of_the_rebalance_may_be_its_removal(self, reason: str, found: list[str]) -> None:
        trace = Trace().round(3, STATIC).at(9).rebalance(3, reason).join("i1-aa").generation(4, ["i1-aa"])
        assert broken(trace) == found

    def test_only_whole_assignments_tell_what_others_got(self) -> None:
        trace = Trace().round(3, STATIC).stored(3, STATIC).at(20).rebalance(3, None).generation(4, ["i1-aa"])
        assert [f.resources for f in promises(trace) if f.rule == self.rule] == [()]
        other = Trace().join("i1-aa").join("i2-bb").generation(3, list(STATIC)).at(20).rebalance(3, None).stored(4, {"i1-aa": p(2)})
        assert [f.resources for f in promises(other) if f.rule == self.rule] == [()]

    def test_the_sync_timer_counts_from_the_last_sign_of_life(self) -> None:
        exact = self.dropped(24.2, joins=False, rebalance_timeout_ms=21_000)
        assert "sync timer" in why(self.rule, exact)
        assert self.rule in broken(self.dropped(22, joins=False, rebalance_timeout_ms=21_000))

    @pytest.mark.parametrize(("watched", "joins"), [(True, False), (False, True)])
    def test_either_side_of_the_join_phase_shows_that_it_was_captured(self, watched: bool, joins: bool) -> None:
        assert self.rule in broken(self.dropped(25, watched=watched, joins=joins))

    def test_leaving_before_counts(self) -> None:
        trace = Trace().round(3, STATIC).leave("i2-bb", reason=ADMIN).rebalance(3).join("i1-aa").generation(4, ["i1-aa"])
        assert broken(trace) == []
        assert checked(self.rule, trace) == 2

    def test_a_refused_leave_frees_nothing(self) -> None:
        trace = self.dropped(25).leave("i2-bb", error="UNKNOWN_MEMBER_ID")
        assert self.rule in broken(trace)

    @pytest.mark.parametrize(
        ("trace", "reason"),
        [
            (lambda s: s.dropped(25, watched=False, joins=False), "requests in between"),
            (lambda s: s.dropped(25, session_timeout_ms=None), "session timeout or last sign"),
            (lambda s: s.dropped(25, rebalance_timeout_ms=21_000), "sync timer"),
        ],
    )
    def test_why_it_is_unknown(self, trace: Callable[[TestStaticSlotHeld], Trace], reason: str) -> None:
        assert reason in why(self.rule, trace(self))

    def expired(self, seconds: float, reason: str = "session", **fields: object) -> Trace:
        return Trace().round(3, STATIC).at(4).heartbeat(3, "i2-bb").at(seconds).expire("i2-bb", reason, **fields)

    def test_a_session_lasts_its_timeout(self) -> None:
        for reason in ("session", "rebalance"):
            (finding,) = promises(self.expired(47.9, reason))
            assert (finding.rule, finding.severity, finding.generation) == (self.rule, "error", 3)
        assert broken(self.expired(48)) == []
        assert checked(self.rule, self.expired(48)) == 1
        assert promises(self.expired(20, generation=3))[0].generation == 3

    @pytest.mark.parametrize("missing", [Trace().generation(3, ["x"]).expire("i2-bb"), Trace(clock=False).round(3, STATIC).expire("i2-bb")])
    def test_what_a_session_needs(self, missing: Trace) -> None:
        assert "session expired; its session timeout" in why(self.rule, missing)

    def test_the_sync_timer_is_known_to_cut_it_short(self) -> None:
        (finding,) = promises(self.expired(20, "sync"))
        assert finding.severity == "warning"
        assert "KAFKA-12890" in (finding.relaxed or "")
        assert finding.advice

    @pytest.mark.parametrize(
        "trace",
        [
            lambda s: s.expired(20, pending=True),
            lambda s: (
                Trace().round(3, STATIC).replace(3, "i2-bb", "i2-cc").heartbeat(3, "i2-cc").expire("i2-bb", "sync").at(60).expire("i2-cc")
            ),
            lambda s: Trace().join("i1-aa").join("i2-bb").stored(3, STATIC).at(40).stored(3, STATIC).at(46).expire("i2-bb"),
            lambda s: Trace().join("i1-aa").join("i2-bb").stored(3, STATIC).at(40).rebalance(3).stored(4, {"i1-aa": p(0)}),
            lambda s: Trace().round(3, {"c1": p(0)}).expire("c1"),
            lambda s: Trace().generation(3, ["i2-bb"]).at(9).expire("i2-bb"),
            lambda s: Trace(clock=False).round(3, STATIC).expire("i2-bb"),
        ],
    )
    def test_what_is_not_judged(self, trace: Callable[[TestStaticSlotHeld], Trace]) -> None:
        assert broken(trace(self)) == []

    @pytest.mark.parametrize(
        "late",
        [
            lambda t: t.join("i2-bb"),
            lambda t: t.joined(3, "i2-bb"),
            lambda t: t.synced(3, "i2-bb", p(2, 3)),
            lambda t: t.heartbeat(3, "i2-bb", "REBALANCE_IN_PROGRESS"),
            lambda t: t.commit(3, "i2-bb", 2, error="ILLEGAL_GENERATION"),
            lambda t: t.heartbeat(3, "i1-aa"),
            lambda t: t.joined(4, "i1-aa"),
            lambda t: t.generation(4, None),
        ],
    )
    def test_what_restarts_no_session_for_sure(self, late: Callable[[Trace], Trace]) -> None:
        trace = late(Trace().round(3, STATIC).at(4).heartbeat(3, "i2-bb").at(40)).at(49).expire("i2-bb")
        assert broken(trace) == []

    @pytest.mark.parametrize(
        "late",
        [
            lambda t: t.commit(3, "i2-bb", 2),
            lambda t: t.heartbeat(3, "i2-bb"),
            lambda t: t.heartbeat(3, "i2-bb", estimated=True),
            lambda t: t.generation(4, ["i1-aa", "i2-bb"]),
            lambda t: t.joined(4, "i2-bb"),
        ],
    )
    def test_what_restarts_a_session(self, late: Callable[[Trace], Trace]) -> None:
        trace = late(Trace().round(3, STATIC).at(4).heartbeat(3, "i2-bb").at(40).join("i1-aa")).at(60).expire("i2-bb")
        assert broken(trace) == [self.rule]

    def test_a_replacement_restarts_it_with_the_older_timeout(self) -> None:
        trace = Trace().round(3, STATIC).at(30).join("", None, instance="i2", session_timeout_ms=300_000)
        trace.replace(3, "i2-bb", "i2-cc").joined(3, "i2-cc").at(60)
        assert broken(trace.expire("i2-cc")) == [self.rule]
        trace.rows.pop()
        assert broken(trace.at(76).expire("i2-cc")) == []

    def test_findings_end_with_what_shows_the_removal(self) -> None:
        assert checked(self.rule, self.dropped(25)) == 2
        assert checked(self.rule, self.dropped(48)) == 2


class TestOneMemberPerInstance:
    rule = "one-member-per-instance"

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().stored(4, {"i1-aa": p(0), "i2-bb": p(1), "i2-cc": p(2)}),
            Trace().generation(4, ["x", "y"], instances={"x": "i2", "y": "i2"}),
        ],
    )
    def test_an_instance_stands_once_in_a_list(self, trace: Trace) -> None:
        (finding,) = promises(trace)
        assert finding.rule == self.rule
        assert "i2" in finding.message

    @pytest.mark.parametrize(
        ("trace", "times"),
        [
            (Trace().stored(4, STATIC), 2),
            (Trace().stored(3, STATIC).replace(3, "i2-bb", "i2-cc").stored(3, {"i1-aa": p(0, 1), "i2-cc": p(2, 3)}), 4),
            (Trace().generation(4, ["c1", "c2"]), 0),
            (Trace().generation(4, None), 0),
            (Trace().joined(4, "i2-bb").joined(4, "i2-cc"), 0),
        ],
    )
    def test_legal(self, trace: Trace, times: int) -> None:
        assert broken(trace) == []
        assert checked(self.rule, trace) == times

    def test_two_sightings_are_one_finding(self) -> None:
        assert broken(
            Trace().joined(4, "i2-bb").joined(4, "i2-cc").generation(4, ["i2-bb", "i2-cc"]).stored(4, {"i2-bb": [], "i2-cc": []})
        ) == [self.rule]


class TestFencedStaysFenced:
    rule = "fenced-stays-fenced"

    def replaced(self) -> Trace:
        return Trace().round(3, STATIC).at(20).replace(3, "i2-bb", "i2-cc").synced(3, "i2-cc", p(2, 3)).at(22)

    @pytest.mark.parametrize(
        "asks",
        [
            lambda t: t.heartbeat(3, "i2-bb"),
            lambda t: t.commit(3, "i2-bb", 2),
            lambda t: t.synced(3, "i2-bb", p(2, 3)),
            lambda t: t.joined(3, "i2-bb"),
        ],
    )
    def test_a_replaced_id_is_granted_nothing(self, asks: Callable[[Trace], Trace]) -> None:
        (finding,) = promises(asks(self.replaced()))
        assert (finding.rule, finding.members) == (self.rule, ("i2-bb",))
        assert "was replaced" in finding.argument[0].says

    def test_a_commit_names_what_was_overwritten(self) -> None:
        assert promises(self.replaced().commit(3, "i2-bb", 2))[0].resources == ("orders-2",)
        assert promises(self.replaced().synced(3, "i2-bb", p(2, 3)))[0].resources == ()

    @pytest.mark.parametrize("answer", ["heartbeat", "commit", "sync", "leave"])
    def test_a_fenced_id_stays_fenced(self, answer: str) -> None:
        trace = Trace().round(3, STATIC).at(20)
        kind = {"sync": "synced"}.get(answer, answer)
        trace.add(kind, 3, "i2-bb", error="FENCED_INSTANCE_ID").at(22).heartbeat(3, "i2-bb")
        (finding,) = promises(trace)
        assert finding.rule == self.rule
        assert "was fenced" in finding.argument[0].says

    def test_the_new_ids_join_shows_the_replacement_too(self) -> None:
        trace = Trace().round(3, STATIC).at(20).joined(3, "i2-cc").at(22).heartbeat(3, "i2-bb")
        assert broken(trace) == [self.rule]

    @pytest.mark.parametrize(
        ("then", "times"),
        [
            (lambda t: t.heartbeat(3, "i2-bb", "FENCED_INSTANCE_ID"), 1),
            (lambda t: t.commit(3, "i2-bb", 2, error="UNKNOWN_MEMBER_ID"), 1),
            (lambda t: t.heartbeat(3, "i2-cc").heartbeat(3, "i1-aa"), 0),
            (lambda t: t.leave("i2-bb", reason=ADMIN), 0),
            (lambda t: t.at(20.5).heartbeat(3, "i2-bb", estimated=True), 0),
            (lambda t: t.failover().add("load", 3).heartbeat(3, "i2-bb"), 0),
            (lambda t: t.failover().generation(3, None).heartbeat(3, "i2-bb"), 0),
            (lambda t: t.replace(3, "i2-cc", "i2-bb").heartbeat(3, "i2-bb"), 0),
            (lambda t: t.heartbeat(3, "i2-bb", "FENCED_INSTANCE_ID").replace(3, "i2-cc", "i2-bb").heartbeat(3, "i2-bb"), 1),
            (lambda t: t.add("heartbeat", 3, None, error="NONE"), 0),
            (lambda t: t.heartbeat(3, "i1-aa", "REBALANCE_IN_PROGRESS"), 0),
        ],
    )
    def test_legal(self, then: Callable[[Trace], Trace], times: int) -> None:
        assert broken(then(self.replaced())) == []
        assert checked(self.rule, then(self.replaced())) == times

    def test_a_replacement_counts_once_it_is_stored(self) -> None:
        unsure = Trace().round(3, STATIC).at(20).replace(3, "i2-bb", "i2-cc").at(22)
        assert broken(unsure.heartbeat(3, "i2-bb")) == []
        assert "stored or taken back" in why(self.rule, unsure)
        unstable = Trace().round(3, STATIC).at(20).rebalance(3).replace(3, "i2-bb", "i2-cc").at(22)
        assert broken(unstable.heartbeat(3, "i2-bb")) == [self.rule]

    def test_a_replacement_that_could_not_be_stored_is_taken_back(self) -> None:
        refused = Trace().round(3, STATIC).at(20).replace(3, "i2-bb", "i2-cc").heartbeat(3, "i2-bb", "FENCED_INSTANCE_ID")
        refused.add("joined", None, "", instance="i2", error="COORDINATOR_NOT_AVAILABLE").at(22)
        assert broken(refused.heartbeat(3, "i2-bb").commit(3, "i2-bb", 2)) == []

    @pytest.mark.parametrize(
        "joined",
        [
            {"member": "i2-bb", "instance": "i2", "error": "UNKNOWN_MEMBER_ID"},
            {"member": "", "instance": "i1", "error": "COORDINATOR_NOT_AVAILABLE"},
            {"member": "", "instance": "i2", "error": "FENCED_INSTANCE_ID"},
        ],
    )
    def test_another_refusal_takes_nothing_back(self, joined: dict[str, object]) -> None:
        assert broken(self.replaced().add("joined", **joined).heartbeat(3, "i2-bb")) == [self.rule]  # type: ignore[arg-type]

    def test_a_new_id_that_was_heard_of_since_is_not_taken_back(self) -> None:
        trace = self.replaced().heartbeat(3, "i2-cc").add("joined", None, "", instance="i2", error="INCONSISTENT_GROUP_PROTOCOL")
        assert broken(trace.heartbeat(3, "i2-bb")) == [self.rule]

    def test_a_loading_coordinator_answers_blindly(self) -> None:
        trace = Trace().add("load", 3).replace(3, "i2-bb", "i2-cc").heartbeat(3, "i2-bb")
        assert broken(trace) == []

    def test_unknown_where_nobody_was_replaced(self) -> None:
        assert "not captured: replace" in why(self.rule, Trace().round(3, STATIC).heartbeat(3, "i2-bb"))


class TestStaticCloseSendsNoLeave:
    rule = "static-close-sends-no-leave"

    @pytest.mark.parametrize(
        "reason", [None, "the consumer is being closed", "the consumer unsubscribed from all topics", "consumer poll timeout has expired."]
    )
    def test_a_static_member_does_not_leave_itself(self, reason: str | None) -> None:
        (finding,) = promises(Trace().round(3, STATIC).leave("i2-bb", reason=reason))
        assert (finding.rule, finding.severity, finding.members) == (self.rule, "error", ("i2-bb",))
        assert finding.message.endswith(f"sent LeaveGroup{f': {reason}' if reason else ''}.")

    def test_its_own_log_shows_it_too_and_counts_once(self) -> None:
        trace = (
            Trace()
            .own("assigned", 3, "i2-bb", 2)
            .add("leave", 3, "i2-bb", reason="the consumer is being closed", error="NONE", seen_by="member")
        )
        assert broken(trace) == [self.rule]
        assert checked(self.rule, trace.leave("i2-bb", reason="the consumer is being closed")) == 1

    def test_the_instance_may_be_known_from_elsewhere(self) -> None:
        trace = Trace().stored(3, STATIC).leave("i2-bb", instance=None)
        assert broken(trace) == [self.rule]

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().round(3, STATIC).leave("", instance="i2"),
            Trace().round(3, STATIC).leave(None, instance="i2", reason="the consumer is being closed"),
            Trace().round(3, STATIC).leave("i2-bb", reason=ADMIN),
            Trace().round(3, STATIC).leave("i2-bb", reason="not provided"),
            Trace().round(3, STATIC).leave("i2-bb", error="UNKNOWN_MEMBER_ID"),
            Trace().round(3, {"c1": p(0)}).leave("c1", reason="the consumer is being closed"),
        ],
    )
    def test_legal(self, trace: Trace) -> None:
        assert broken(trace) == []
        assert checked(self.rule, trace) == 0

    def test_a_reason_that_may_be_anybodys(self) -> None:
        assert "does not tell" in why(self.rule, Trace().round(3, STATIC).leave("i2-bb", reason="not provided"))

    @pytest.mark.parametrize(
        ("release", "severity"), [("4.1.0", "warning"), ("5.0.0", "warning"), ("4.0.1", "error"), ("3.9.0", "error"), (7, "error")]
    )
    def test_since_4_1_the_application_may_choose(self, release: object, severity: str) -> None:
        trace = Trace().round(3, STATIC).leave("i2-bb", reason="the consumer is being closed", release=release)
        (finding,) = promises(trace)
        assert finding.severity == severity
        assert bool(finding.relaxed) == (severity == "warning")

    def test_closing_in_silence_holds(self) -> None:
        closed = Trace().own("assigned", 3, "i2-bb", 2).own("revoked", 3, "i2-bb", 2).add("closed", 3, "i2-bb")
        assert checked(self.rule, closed) == 1
        assert checked(self.rule, Trace().own("assigned", 3, "i2-bb", 2).add("crashed", 3, "i2-bb")) == 0
        assert checked(self.rule, Trace().own("assigned", 3, "c1", 2).add("closed", 3, "c1")) == 0
        assert checked(self.rule, closed.leave("i2-bb")) == 1

    def test_each_life_counts(self) -> None:
        trace = Trace().round(3, STATIC).leave("i2-bb").leave("i1-aa")
        assert len(result(trace).findings) == 2
