"""KIP-429's promises: each condition, each exception, each twin that breaks exactly one promise."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from .trace_builder import Shares, Trace, broken, checked, p, promises, why

ORDERS = {"c1": p(0, 1), "c2": p(2, 3)}
LIMIT_S = 60 + 1
"""The usual rebalance timeout and the clocks' tolerance."""


class TestExclusiveAssignment:
    rule = "exclusive-assignment"

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().stored(3, {"c1": p(0, 1), "c2": p(1)}),
            Trace().sync(3, "c1", {"c1": p(0, 1), "c2": p(1)}),
            Trace().joined(3, "c1", "c2").synced(3, "c1", p(0, 1)).synced(3, "c2", p(1)),
            Trace().synced(3, "c1", p(0, 1), seen_by="member").synced(3, "c2", p(1), seen_by="member"),
            Trace(protocol="range").stored(3, {"c1": p(0, 1), "c2": p(1)}),
        ],
    )
    def test_nothing_is_given_twice(self, trace: Trace) -> None:
        (finding,) = promises(trace)
        assert (finding.rule, finding.resources, finding.members) == (self.rule, ("orders-1",), ("c1", "c2"))
        assert finding.evidence

    def test_a_whole_assignment_tells_by_itself(self) -> None:
        trace = Trace().stored(3, {"c1": p(0, 1), "c2": p(1)}).synced(3, "c1", p(0)).synced(3, "c2", p(1))
        assert self.rule in broken(trace)
        assert self.rule not in broken(Trace().stored(3, {"c1": p(0, 1), "c2": p(2)}).synced(3, "c1", p(0)).synced(3, "c2", p(1, 2)))

    def test_connect_too(self) -> None:
        trace = Trace(protocol="sessioned").stored(3, {"w1": ["task:A-0"], "w2": ["task:A-0"]})
        assert broken(trace) == [self.rule]

    def test_one_finding_for_the_same_members(self) -> None:
        both = Trace().stored(3, {"c1": p(0, 1), "c2": p(0, 1), "c3": p(2), "c4": p(2)})
        assert [f.resources for f in promises(both)] == [("orders-0", "orders-1"), ("orders-2",)]

    @pytest.mark.parametrize(
        "trace",
        [
            Trace().stored(3, ORDERS).stored(4, {"c1": p(2, 3), "c2": p(0, 1)}),
            Trace().stored(3, {"c1": p(0)}).failover().stored(3, {"c2": p(0)}),
            Trace().stored(3, {"i1-aa": p(0), "c2": p(1)}).replace(3, "i1-aa", "i1-bb").synced(3, "i1-bb", p(0)),
            Trace().stored(3, ORDERS).synced(3, "c1@app.log#1", p(0, 1), seen_by="member"),
            Trace().stored(3, ORDERS).sync(3, "c1", {"c1": p(2), "c2": p(0)}),
            Trace().synced(3, "c1", p(0)),
        ],
    )
    def test_legal(self, trace: Trace) -> None:
        assert broken(trace) == []

    def test_two_logs_without_member_ids_are_two_members(self) -> None:
        trace = Trace().stored(3, {"u1": p(0), "u2": p(1)})
        trace.synced(3, "c1@a.log#1", p(0), seen_by="member").synced(3, "c2@b.log#1", p(0), seen_by="member")
        assert broken(trace) == [self.rule]

    def test_it_takes_two_shares(self) -> None:
        assert checked(self.rule, Trace().synced(3, "c1", p(0)).joined(3, "c2")) == 0
        assert checked(self.rule, Trace().synced(3, "c1", p(0)).synced(3, "c2", [])) == 1


class TestExclusiveOwnership:
    rule = "exclusive-ownership"

    def kept(self) -> Trace:
        """c1 goes on believing what the next generation gives to c2."""
        return Trace(protocol="range").own("assigned", 1, "c1", 0, 1).own("assigned", 2, "c2", 1)

    def test_two_of_one_generation_believe(self) -> None:
        (finding,) = promises(self.kept().own("assigned", 2, "c1"))
        assert (finding.rule, finding.generation, finding.resources) == (self.rule, 2, ("orders-1",))
        assert "never gave it up" in finding.argument[0].says
        assert [e.line for e in finding.evidence] == [1, 2]

    def test_the_whole_that_one_believes_counts_too(self) -> None:
        (finding,) = promises(Trace().own("owned", 2, "c1", 0, 1).own("owned", 2, "c2", 1))
        assert finding.argument[0].says == "c1 took orders-1 in generation 2"

    def test_what_is_taken_again_was_taken_in_this_generation(self) -> None:
        (finding,) = promises(self.kept().own("assigned", 2, "c1", 1))
        assert finding.argument[0].says == "c1 took orders-1 in generation 2"

    @pytest.mark.parametrize(
        "then",
        [
            lambda t: t,
            lambda t: t.own("revoked", 1, "c1", 1).own("assigned", 2, "c1"),
            lambda t: t.own("lost", 1, "c1", 0, 1).own("assigned", 2, "c1"),
            lambda t: t.own("owned", 2, "c1", 0),
            lambda t: t.own("assigned", 3, "c1"),
            lambda t: t.add("gap", 1, "c1").own("assigned", 2, "c1"),
            lambda t: t.add("crashed", 1, "c1").own("assigned", 2, "c1"),
            lambda t: t.add("closed", 1, "c1").own("assigned", 2, "c1"),
            lambda t: t.failover().own("owned", 2, "c1", 1),
        ],
    )
    def test_legal(self, then: Callable[[Trace], Trace]) -> None:
        assert broken(then(self.kept())) == []

    def test_what_is_given_up_late_is_another_promise(self) -> None:
        assert broken(self.kept().own("revoked", 2, "c1", 1).own("assigned", 2, "c1")) == ["revoke-before-reassign"]

    def test_one_slot_is_one_owner(self) -> None:
        assert broken(Trace().own("assigned", 1, "i1-aa", 0).own("assigned", 1, "i1-bb", 0)) == []

    def test_a_zombie_that_missed_the_generation_is_legal(self) -> None:
        trace = Trace().round(1, {"c1": p(0)}).own("assigned", 1, "c1", 0).expire("c1").rebalance(1).round(2, {"c2": p(0)})
        trace.own("assigned", 2, "c2", 0).heartbeat(1, "c1", "UNKNOWN_MEMBER_ID").own("lost", None, "c1", 0)
        assert broken(trace) == []

    def test_it_takes_two_believers(self) -> None:
        assert checked(self.rule, Trace().own("assigned", 1, "c1", 0)) == 0
        assert checked(self.rule, Trace().own("assigned", 1, "c1", 0).own("owned", 1, "c2")) == 1

    def test_what_has_no_generation_is_placed_after_the_last_one(self) -> None:
        trace = Trace().own("assigned", 1, "c1", 0).own("assigned", None, "c1", 1).own("assigned", 1, "c2", 1)
        assert broken(trace) == [self.rule]
        assert broken(Trace().own("assigned", None, "c1", 0).own("assigned", None, "c2", 0)) == []


class TestRevokeBeforeReassign:
    rule = "revoke-before-reassign"

    def claimed(self, claim: list[str], generation: int = 1, shares: Shares | None = None, **join: object) -> Trace:
        """c1 joins generation 2 claiming, c2 joins with nothing, and the leader gives orders-1 to c2 at once."""
        trace = Trace().join("c1", claim, generation, **join).join("c2").generation(2, ["c1", "c2"]).joined(2, "c1", "c2")
        return trace.stored(2, shares or {"c1": p(0), "c2": p(1)})

    def test_a_claim_is_respected(self) -> None:
        (finding,) = promises(self.claimed(p(0, 1)))
        assert (finding.rule, finding.resources, finding.members) == (self.rule, ("orders-1",), ("c1", "c2"))
        assert [e.line for e in finding.evidence] == [1, 6]

    def test_whatever_way_the_new_owner_is_seen(self) -> None:
        shares = {"c1": p(0)}
        assert broken(self.claimed(p(0, 1), shares=shares).synced(2, "c2", p(1))) == [self.rule]
        assert broken(self.claimed(p(0, 1), shares=shares).own("assigned", 2, "c2", 1)) == [self.rule]

    def test_one_finding_for_each_new_owner(self) -> None:
        shares = {"c1": [], "c2": p(1, 2), "c3": p(3)}
        trace = Trace().join("c1", p(1, 2, 3), 1).join("c2").join("c3").generation(2, list(shares)).stored(2, shares)
        assert sorted(f.resources for f in promises(trace)) == [("orders-1", "orders-2"), ("orders-3",)]

    @pytest.mark.parametrize(
        "trace",
        [
            lambda s: s.claimed(p(0, 1), shares={"c1": p(0), "c2": []}),
            lambda s: s.claimed(p(0)),
            lambda s: s.claimed(p(0, 1), shares={"c1": p(0, 1), "c2": []}),
            lambda s: Trace(protocol="range").join("c1", p(0, 1), 1).join("c2").generation(2, ["c1", "c2"]).stored(2, {"c2": p(1)}),
            lambda s: Trace().join("c1", p(1), 1).join("c2", p(1), 1).join("c3").generation(2, ["c1", "c2", "c3"]).stored(2, {"c3": p(1)}),
            lambda s: Trace().join("c1", p(1), 1).join("c2", p(1), 2).joined(2, "c1", "c2").synced(2, "c2", p(1)),
            lambda s: s.claimed(p(0, 1), shares={"c1": p(0)}).own("assigned", 2, "c1@app.log#1", 1),
            lambda s: s.claimed(p(0, 1), shares={"c1": p(0)}).own("assigned", 1, "c2", 1).own("assigned", 2, "c2").synced(2, "c2", p(1)),
            lambda s: s.handed_over(2).join("c2", p(1), 1).joined(2, "c2").synced(2, "c2", p(1)),
        ],
    )
    def test_legal(self, trace: Callable[[TestRevokeBeforeReassign], Trace]) -> None:
        assert broken(trace(self)) == []

    def test_what_stays_and_is_given_twice_is_another_promise(self) -> None:
        assert broken(self.claimed(p(0, 1), shares={"c1": p(0, 1), "c2": p(1)})) == ["exclusive-assignment"]

    def test_connect_has_its_own_rule(self) -> None:
        trace = Trace(protocol="sessioned").join("w1", ["task:A-0"], 1).join("w2").generation(2, ["w1", "w2"])
        assert self.rule not in broken(trace.stored(2, {"w1": [], "w2": ["task:A-0"]}))

    def stored_claim(self, generation: int | None, *, member: str = "c1", joined: bool = False) -> Trace:
        members = {member: {"owned": p(0, 1), "owned_generation": generation}, "c2": {}}
        trace = Trace()
        if joined:
            trace.joined(5, member)
        instance = {"instance": member.partition("-")[0]} if "-" in member else {}
        members[member] |= instance
        return trace.stored(5, {member: p(0), "c2": p(1)}, members=members)

    def test_a_stored_claim_counts_if_it_is_fresh(self) -> None:
        assert broken(self.stored_claim(4)) == [self.rule]
        assert broken(self.stored_claim(3)) == []
        assert broken(self.stored_claim(-1)) == []
        assert broken(self.stored_claim(None)) == []

    def test_an_absent_static_members_stored_claim_does_not_count(self) -> None:
        assert broken(self.stored_claim(4, member="i1-aa")) == []
        assert broken(self.stored_claim(4, member="i1-aa", joined=True)) == [self.rule]

    def test_a_member_that_joined_counts_with_what_it_claimed_then(self) -> None:
        trace = Trace().join("c1", p(0), 4).joined(5, "c1")
        members = {"c1": {"owned": p(0, 1), "owned_generation": 4}, "c2": {}}
        assert broken(trace.stored(5, {"c1": p(0), "c2": p(1)}, members=members)) == []

    def handed_over(self, revoked_in: int, protocol: str = "cooperative-sticky") -> Trace:
        trace = Trace(protocol=protocol).own("assigned", 1, "c1", 0, 1).own("revoked", revoked_in, "c1", 1)
        return trace.own("assigned", 2, "c1").own("assigned", 2, "c2", 1)

    def test_without_claims_their_own_logs_tell(self) -> None:
        (finding,) = promises(self.handed_over(2))
        assert (finding.rule, finding.resources) == (self.rule, ("orders-1",))
        assert "gave it up only when it applied generation 2" in finding.argument[2].says
        assert broken(self.handed_over(1)) == []
        assert broken(self.handed_over(2, protocol="range")) == [self.rule]

    def test_a_log_that_begins_or_has_a_gap_there_tells_nothing(self) -> None:
        assert broken(Trace().own("revoked", 2, "c1", 1).own("assigned", 2, "c1").own("assigned", 2, "c2", 1)) == []
        gap = Trace().own("assigned", 1, "c1", 0, 1).add("gap", 2, "c1").own("revoked", 2, "c1", 1).own("assigned", 2, "c2", 1)
        assert broken(gap) == []

    def test_what_it_lost_was_not_handed_over(self) -> None:
        assert (
            broken(Trace().own("assigned", 1, "c1", 1).own("lost", 2, "c1", 1).own("assigned", 2, "c1").own("assigned", 2, "c2", 1)) == []
        )

    def test_what_it_took_again_is_not_handed_over(self) -> None:
        trace = Trace().own("assigned", 1, "c1", 1).own("revoked", 2, "c1", 1).own("assigned", 2, "c1", 1).own("assigned", 2, "c2")
        assert self.rule not in broken(trace)

    def test_everybody_who_entered_with_something_counts(self) -> None:
        assert checked(self.rule, self.claimed(p(0, 1), shares={"c1": p(0, 1), "c2": []})) == 2
        assert checked(self.rule, self.claimed(p(0, 1))) == 2
        assert checked(self.rule, Trace().own("assigned", 1, "c1", 0).own("assigned", 2, "c1").own("assigned", 2, "c2", 1)) == 1
        assert checked(self.rule, Trace().stored(2, ORDERS)) == 0


class TestRetainedPartitionsNotRevoked:
    rule = "retained-partitions-not-revoked"

    def revoked(self, when: str, *partitions: int, protocol: str = "cooperative-sticky", offers: list[str] | None = None) -> Trace:
        """c1 owns 0 and 1; generation 2 leaves it 0. It revokes before it joins (``early``) or while it applies (``late``)."""
        trace = Trace(protocol=protocol).round(1, {"c1": p(0, 1)}).own("assigned", 1, "c1", 0, 1).at(10).rebalance(1)
        if when == "early":
            trace.own("revoked", 1, "c1", *partitions)
        trace.join("c1", [], protocols=offers or [protocol]).joined(2, "c1").synced(2, "c1", p(0))
        if when == "late":
            trace.own("revoked", 2, "c1", *partitions)
        return trace

    @pytest.mark.parametrize("when", ["early", "late"])
    def test_what_it_keeps_is_not_revoked(self, when: str) -> None:
        (finding,) = promises(self.revoked(when, 0).own("assigned", 2, "c1"))
        assert (finding.rule, finding.resources, finding.generation) == (self.rule, ("orders-0",), 2)
        assert len(finding.evidence) == 2

    @pytest.mark.parametrize(
        "trace",
        [
            lambda s: s.revoked("late", 1).own("assigned", 2, "c1"),
            lambda s: s.revoked("early", 1).own("assigned", 2, "c1"),
            lambda s: s.revoked("late", 0, protocol="range").own("assigned", 2, "c1", 0),
            lambda s: s.revoked("late", 0, protocol="of-their-own").own("assigned", 2, "c1", 0),
            lambda s: s.revoked("early", 0, 1, offers=["cooperative-sticky", "range"]).own("assigned", 2, "c1", 0),
            lambda s: s.revoked("late", 0),
            lambda s: s.revoked("", 0).own("lost", 2, "c1", 0).own("assigned", 2, "c1", 0),
            lambda s: s.revoked("late", 0).own("assigned", 2, "c1").add("closed", 2, "c1"),
            lambda s: s.revoked("late", 0).add("gap", 2, "c1").own("assigned", 2, "c1"),
        ],
    )
    def test_legal(self, trace: Callable[[TestRetainedPartitionsNotRevoked], Trace]) -> None:
        assert self.rule not in broken(trace(self))

    def test_one_that_offers_an_eager_assignor_may_revoke_everything(self) -> None:
        trace = self.revoked("early", 0, 1, offers=["cooperative-sticky", "range"]).own("assigned", 2, "c1", 0)
        assert "eager" in why(self.rule, trace)

    def test_one_that_offers_the_cooperative_assignor_only_may_not(self) -> None:
        early = Trace().joined(1, "c1").own("assigned", 1, "c1", 0).own("revoked", 1, "c1", 0).join("c1")
        assert broken(early.joined(2, "c1").own("assigned", 2, "c1", 0)) == [self.rule]
        silent = Trace().joined(1, "c1").own("assigned", 1, "c1", 0).own("revoked", 1, "c1", 0).join("c1", protocols=None)
        assert broken(silent.joined(2, "c1").own("assigned", 2, "c1", 0)) == []

    def test_its_own_claim_to_nothing_tells_of_an_eager_client(self) -> None:
        early = Trace().own("assigned", 1, "c1", 0).own("revoked", 1, "c1", 0).joined(2, "c1").own("assigned", 2, "c1", 0)
        assert broken(early) == []
        some = Trace().joined(1, "c1").own("assigned", 1, "c1", 0, 1).own("revoked", 1, "c1", 0).joined(2, "c1").own("assigned", 2, "c1", 0)
        assert broken(some) == [self.rule]

    @pytest.mark.parametrize(
        "between",
        [
            lambda t: t.add("leave", 1, "c1", seen_by="member", error="NONE"),
            lambda t: t.failover(),
            lambda t: t.own("assigned", 2, "c1"),
        ],
    )
    def test_what_came_in_between_excuses_it(self, between: Callable[[Trace], Trace]) -> None:
        trace = Trace().joined(1, "c1").own("assigned", 1, "c1", 0, 1).own("revoked", 1, "c1", 0)
        assert broken(between(trace).joined(3, "c1").own("assigned", 3, "c1", 0)) == []

    def test_an_eager_generation_before_excuses_it(self) -> None:
        trace = Trace(protocol="range").joined(1, "c1").own("assigned", 1, "c1", 0, 1).own("revoked", 1, "c1", 0)
        trace.protocol = "cooperative-sticky"
        assert broken(trace.joined(2, "c1").own("assigned", 2, "c1", 0)) == []

    def test_another_member_id_of_the_slot_begins_anew(self) -> None:
        trace = Trace().joined(1, "i1-aa").own("assigned", 1, "i1-aa", 0, 1).own("revoked", 1, "i1-aa", 0)
        assert broken(trace.joined(2, "i1-bb").own("assigned", 2, "i1-bb", 0)) == []

    def test_connect_is_not_judged(self) -> None:
        trace = Trace(protocol="sessioned").joined(2, "w1").synced(2, "w1", ["task:A-0"])
        trace.add("revoked", 2, "w1", resources=["task:A-0"]).add("assigned", 2, "w1", resources=["task:A-0"])
        assert self.rule not in broken(trace)

    def test_the_sight_of_its_share_is_not_needed(self) -> None:
        trace = Trace().joined(2, "c1").own("revoked", 2, "c1", 0).own("assigned", 2, "c1", 0)
        assert broken(trace) == [self.rule]

    def test_how_often_it_holds(self) -> None:
        assert checked(self.rule, self.revoked("late", 1).own("assigned", 2, "c1")) == 2


class TestRevokerRejoins:
    rule = "revoker-rejoins"

    def revoked(self, **join: object) -> Trace:
        """In generation 2, given at second 11, c1 revokes what moves to c2."""
        trace = Trace().round(1, {"c1": p(0, 1)}).own("assigned", 1, "c1", 0, 1).at(10).rebalance(1)
        trace.join("c2").join("c1", p(0, 1), 1, **join).generation(2, ["c1", "c2"]).joined(2, "c1", "c2").at(11)
        trace.synced(2, "c1", p(0)).synced(2, "c2", []).own("revoked", 2, "c1", 1)
        return trace.own("assigned", 2, "c1").own("assigned", 2, "c2")

    @pytest.mark.parametrize("sign", ["heartbeat", "commit"])
    def test_a_sign_of_life_long_after_tells_that_it_stayed(self, sign: str) -> None:
        trace = self.revoked().at(11 + LIMIT_S).add(sign, 2, "c1", error="NONE")
        (finding,) = promises(trace)
        assert (finding.rule, finding.resources, finding.members) == (self.rule, ("orders-1",), ("c1",))
        assert len(finding.evidence) == 2

    @pytest.mark.parametrize(
        "then",
        [
            lambda t: t.at(11 + LIMIT_S - 0.1).heartbeat(2, "c1"),
            lambda t: t.at(90).heartbeat(2, "c2"),
            lambda t: t.at(90).heartbeat(2, "c1", "REBALANCE_IN_PROGRESS"),
            lambda t: t.at(90).heartbeat(2, "c1", seen_by="member"),
            lambda t: t.add("closed", 2, "c1").at(90).heartbeat(2, "c1"),
            lambda t: t.at(90).add("join", 2, "c1", seen_by="member"),
        ],
    )
    def test_legal(self, then: Callable[[Trace], Trace]) -> None:
        trace = then(self.revoked())
        assert broken(trace) == []
        assert checked(self.rule, trace) == 0

    def test_the_timeout_is_the_members_own(self) -> None:
        assert broken(self.revoked(rebalance_timeout_ms=120_000).at(90).heartbeat(2, "c1")) == []
        assert broken(self.revoked(rebalance_timeout_ms=20_000).at(40).heartbeat(2, "c1")) == [self.rule]
        assert broken(self.revoked(rebalance_timeout_ms=None).at(900).heartbeat(2, "c1")) == []

    def test_heartbeats_without_a_clock_tell_nothing(self) -> None:
        rows = self.revoked().heartbeat(2, "c1").heartbeat(2, "c1").heartbeat(2, "c1").heartbeat(2, "c1").rows
        trace = Trace(clock=False)
        trace.rows = [{k: v for k, v in row.items() if k != "ts"} for row in rows]
        assert broken(trace) == []

    def test_rejoining_holds(self) -> None:
        trace = self.revoked().join("c1", p(0), 2).joined(3, "c1")
        assert broken(trace) == []
        assert checked(self.rule, trace) == 1
        assert "trace ends" in why(self.rule, self.revoked())

    def test_being_listed_alone_is_no_rejoin(self) -> None:
        assert checked(self.rule, self.revoked().generation(3, ["c1", "c2"])) == 0

    def test_what_it_revoked_before_it_joined_asks_for_nothing(self) -> None:
        trace = Trace().round(1, {"c1": p(0, 1)}).own("assigned", 1, "c1", 0, 1).own("revoked", 1, "c1", 0, 1).at(900).heartbeat(1, "c1")
        assert broken(trace) == []
        assert why(self.rule, trace).startswith(("not captured", "did not apply"))

    def test_eager_groups_and_connect_are_not_judged(self) -> None:
        for protocol, work in (("range", p(0, 1)), ("sessioned", ["task:A-0", "task:A-1"])):
            trace = Trace(protocol=protocol).round(1, {"c1": work[:1]}).add("revoked", 1, "c1", resources=work[1:])
            assert self.rule not in broken(trace.add("assigned", 1, "c1", resources=[]).at(900).heartbeat(1, "c1"))
        same = Trace().round(1, {"c1": p(0)}).own("revoked", 1, "c1", 1).own("assigned", 1, "c1").at(900).heartbeat(1, "c1")
        assert broken(same) == [self.rule]

    def test_what_it_is_to_keep_it_revokes_when_it_ends(self) -> None:
        trace = Trace().round(1, {"c1": p(0)}).at(900).heartbeat(1, "c1").own("revoked", 1, "c1", 0)
        assert broken(trace) == []


class TestWithheldPartitionReassigned:
    rule = "withheld-partition-reassigned"

    def withheld(self, **kwargs: str) -> Trace:
        """Generation 2 takes orders-1 from c1 and gives it to nobody yet."""
        trace = Trace(**kwargs).round(1, {"c1": p(0, 1), "c2": []}).at(10).rebalance(1)  # type: ignore[arg-type]
        return trace.round(2, {"c1": p(0), "c2": []}, {"c1": p(0, 1)}).at(12).rebalance(2)

    def test_it_is_given_to_somebody_in_the_follow_up(self) -> None:
        (finding,) = promises(self.withheld().round(3, {"c1": p(0), "c2": []}, {"c1": p(0)}))
        assert (finding.rule, finding.resources, finding.generation) == (self.rule, ("orders-1",), 3)
        assert len(finding.evidence) == 2

    @pytest.mark.parametrize(
        "trace",
        [
            lambda s: s.withheld().round(3, {"c1": p(0), "c2": p(1)}, {"c1": p(0)}),
            lambda s: s.withheld().round(3, {"c1": p(0, 1), "c2": []}, {"c1": p(0)}),
            lambda s: s.withheld().round(3, {"c1": p(0), "c2": []}, {"c1": p(0, 1)}),
            lambda s: s.withheld().round(3, {"c1": p(0), "c2": [], "c3": []}, {"c1": p(0)}),
            lambda s: s.withheld().at(80).round(3, {"c1": p(0)}, {"c1": p(0)}),
            lambda s: s.withheld().expire("c2").round(3, {"c1": p(0), "c2": []}, {"c1": p(0)}),
            lambda s: s.withheld().round(4, {"c1": p(0), "c2": []}, {"c1": p(0)}),
            lambda s: s.withheld().add("gap").round(3, {"c1": p(0), "c2": []}, {"c1": p(0)}),
            lambda s: s.withheld().failover().round(3, {"c1": p(0), "c2": []}, {"c1": p(0)}),
            lambda s: s.withheld(protocol="range").round(3, {"c1": p(0), "c2": []}),
            lambda s: s.withheld(protocol="of-their-own").round(3, {"c1": p(0), "c2": []}),
            lambda s: s.withheld().round(3, {"c1": [], "c2": []}),
            lambda s: s.withheld().stored(3, {"c1": p(0), "c2": []}),
            lambda s: s.withheld().generation(3, ["c1", "c2"]).synced(3, "c1", p(0)),
        ],
    )
    def test_legal(self, trace: Callable[[TestWithheldPartitionReassigned], Trace]) -> None:
        assert broken(trace(self)) == []

    def test_connect_withholds_on_purpose(self) -> None:
        trace = Trace(protocol="sessioned")
        for generation, tasks in ((1, ["task:A-0", "task:A-1"]), (2, ["task:A-0"]), (3, ["task:A-0"])):
            for member in ("w1", "w2"):
                trace.join(member, subscribed=None)
            trace.generation(generation, ["w1", "w2"]).joined(generation, "w1", "w2").stored(generation, {"w1": tasks, "w2": []})
        assert self.rule not in broken(trace)

    def test_a_replaced_member_is_another_claimant(self) -> None:
        trace = Trace().round(1, {"i1-aa": p(0, 1), "c2": []}).round(2, {"i1-aa": p(0), "c2": []}).replace(2, "i1-aa", "i1-bb")
        assert broken(trace.round(3, {"i1-bb": p(0), "c2": []})) == []

    def test_nobody_has_to_take_what_nobody_subscribes(self) -> None:
        trace = self.withheld()
        for member, mine in (("c1", ["orders-0"]), ("c2", [])):
            trace.join(member, mine, 2, subscribed=["orders"])
        trace.generation(3, ["c1", "c2"]).joined(3, "c1", "c2").stored(3, {"c1": p(0), "c2": []})
        assert broken(trace) == [self.rule]
        for row in trace.rows[-7:]:
            if row["kind"] == "join":
                row["subscribed"] = ["invoices"]
        assert broken(trace) == []

    def test_one_subscription_that_is_not_known_is_enough(self) -> None:
        trace = self.withheld().join("c1", p(0), 2, subscribed=["invoices"]).join("c2", [], 2, subscribed=None)
        assert broken(trace.generation(3, ["c1", "c2"]).stored(3, {"c1": p(0), "c2": []})) == [self.rule]

    def test_a_topic_without_any_owner_may_be_deleted(self) -> None:
        trace = Trace().round(1, {"c1": p(0), "c2": ["invoices-0"]}).round(2, {"c1": p(0), "c2": []}).round(3, {"c1": p(0), "c2": []})
        assert broken(trace) == []

    def test_what_joining_members_claim_must_be_known(self) -> None:
        trace = self.withheld().join("c1", p(0), 2).join("c2", None).generation(3, ["c1", "c2"]).stored(3, {"c1": p(0), "c2": []})
        assert broken(trace) == []
        assert "claims it was not captured" in why(self.rule, trace)

    def test_the_leaver_takes_what_it_had_along(self) -> None:
        trace = Trace().round(1, {"c1": p(0), "c2": p(1)}).leave("c2").round(2, {"c1": p(0)}, {"c1": p(0)})
        assert broken(trace.round(3, {"c1": p(0)}, {"c1": p(0)})) == []

    def test_how_often_it_holds(self) -> None:
        assert checked(self.rule, self.withheld().round(3, {"c1": p(0), "c2": p(1)}, {"c1": p(0)})) == 1
        assert "trace ends" in why(self.rule, self.withheld())


class TestConverges:
    rule = "converges"

    def moving(self, rounds: int, protocol: str = "cooperative-sticky", reason: str | None = None, quiet: tuple[int, ...] = ()) -> Trace:
        """Each generation after the first takes a partition from c1 or c2 and hands over what the one before withheld."""
        trace = Trace(protocol=protocol)
        own: dict[str, list[str]] = {"c1": p(0, 1, 2), "c2": p(3, 4, 5)}
        withheld: tuple[str, str] | None = None
        for generation in range(1, rounds + 1):
            claimed = {member: list(mine) for member, mine in own.items()} if generation > 1 else {}
            if generation > 1:
                trace.at(generation * 3.0).rebalance(generation - 1, reason)
                giver = "c1" if len(own["c1"]) >= len(own["c2"]) else "c2"
                taken = own[giver].pop(0) if generation not in quiet else None
                if withheld is not None:
                    own["c2" if withheld[0] == "c1" else "c1"].append(withheld[1])
                withheld = (giver, taken) if taken is not None else None
            trace.round(generation, own, claimed)
        return trace

    def test_five_in_a_row_are_allowed(self) -> None:
        assert broken(self.moving(6)) == []
        (finding,) = promises(self.moving(7))
        assert (finding.rule, finding.generation) == (self.rule, 7)
        assert "6 generations in a row (2 to 7)" in finding.message

    def test_connect_is_not_judged(self) -> None:
        trace = self.moving(9, protocol="sessioned")
        trace.rows = json.loads(json.dumps(trace.rows).replace("orders-", "task:A-"))
        assert self.rule not in broken(trace)

    def test_a_follow_up_rebalance_is_no_outside_cause(self) -> None:
        assert broken(self.moving(7, reason="Leader c1 re-joining group; client reason: need to revoke partitions and re-join")) == [
            self.rule
        ]

    @pytest.mark.parametrize("reason", ["Adding new member c3", "cached metadata has changed"])
    def test_an_outside_cause_excuses(self, reason: str) -> None:
        assert broken(self.moving(9, reason=reason)) == []

    @pytest.mark.parametrize("protocol", ["range", "stream", "of-their-own"])
    def test_only_cooperative_consumers_are_judged(self, protocol: str) -> None:
        assert self.rule not in broken(self.moving(9, protocol=protocol))

    @pytest.mark.parametrize(
        "row",
        [
            {"kind": "gap"},
            {"kind": "topics", "topics": {"orders": 7}},
            {"kind": "expire", "member": "c2"},
            {"kind": "replace", "member": "c3", "old_member": "c2"},
        ],
    )
    def test_what_comes_in_between_starts_the_count_anew(self, row: dict[str, object]) -> None:
        trace = self.moving(7)
        middle = next(i for i, r in enumerate(trace.rows) if r["kind"] == "rebalance" and r["generation"] == 4)
        trace.rows.insert(middle, {"group": "orders", "ts": trace.rows[middle - 1]["ts"], "epoch": 0} | row)
        assert self.rule not in broken(trace)

    def test_another_subscription_starts_the_count_anew(self) -> None:
        trace = self.moving(7)
        for row in trace.rows[len(trace.rows) // 2 :]:
            if row["kind"] == "join":
                row["subscribed"] = ["orders", "invoices"]
        assert broken(trace) == []

    def test_a_quiet_generation_starts_the_count_anew(self) -> None:
        trace = self.moving(11, quiet=(6,))
        assert broken(trace) == []
        assert checked(self.rule, trace) == 1

    def test_other_members_start_the_count_anew(self) -> None:
        trace = self.moving(7)
        half = len(trace.rows) // 2
        for row in trace.rows[half:]:
            for name, value in row.items():
                if value == "c2":
                    row[name] = "c9"
                elif isinstance(value, list):
                    row[name] = ["c9" if m == "c2" else m for m in value]
                elif isinstance(value, dict):
                    row[name] = {"c9" if m == "c2" else m: r for m, r in value.items()}
        assert self.rule not in broken(trace)

    def test_settled_generations_hold(self) -> None:
        trace = Trace().round(1, ORDERS).at(9).rebalance(1, None).round(2, ORDERS, ORDERS)
        assert checked(self.rule, trace) == 1
