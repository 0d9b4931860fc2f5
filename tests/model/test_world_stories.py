"""Short runs that end where Kafka itself leaves a group: a partition that nobody owns and no rebalance in sight, or a process gone."""

from __future__ import annotations

from kipcheck.model.runs import quiet, replay, unrest
from kipcheck.model.scenarios import SCENARIOS, lively
from kipcheck.spec import RULES, Settings, check
from kipcheck.spec.events import Closed, Join, Joined


def rest_after(name: str, script: str) -> tuple[str, ...]:
    """The unrest that lasts after the script; no rule is broken on the way."""
    begun = lively(SCENARIOS[name]).begin()
    told = begun.then(replay(begun.world, script))
    rest = told.then(quiet(told.world))
    findings = [f for group in check(rest.events, Settings(clock_skew_ms=1)) for f in group.findings]
    assert not [f for f in findings if RULES[f.rule].kip != "cost"]
    return unrest(rest.world)


def test_a_returning_static_leader_misses_the_growth_that_happened_while_it_was_away() -> None:
    """It skips the assignment (KIP-814), and takes the metadata of now for what it assigned then."""
    assert rest_after("static-restart", "crash s1 \n resize t 4 \n start s1") == ("nobody owns t-2, t-3",)


def test_a_static_member_that_bounces_in_a_hand_over_orphans_what_it_was_to_give_up() -> None:
    """Its stored claim withheld t-1; when it is back it owns no t-1, so it has nothing to revoke and does not rejoin."""
    script = """
        start s2
        poll s2
        arrive s2
        advance
        beat s1
        arrive s1
        return s1
        poll s1
        arrive s1
        return s1
        close s1
        finish s1
        start s1
    """
    assert rest_after("failover", script) == ("nobody owns t-1",)


def test_a_worker_that_the_group_refuses_ends_its_process() -> None:
    """A group that was loaded knows of each member only the protocol it had chosen; a herder goes on after no error."""
    begun = lively(SCENARIOS["connect-downgrade"]).begin()
    told = replay(begun.world, "fall \n start w2")
    rest = told.then(quiet(told.world))
    assert [type(event) for event in rest.events if event.client == "w2"] == [Join, Joined, Closed]
    assert [event.error for event in rest.events if isinstance(event, Joined)] == ["INCONSISTENT_GROUP_PROTOCOL"]
    assert rest.world.client("w2").mode == "absent"
    assert not unrest(rest.world)
