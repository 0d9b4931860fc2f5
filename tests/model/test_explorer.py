"""The explorer of the reference world: what it searches, when it stops, and that what it tells is a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kipcheck.model.explorer import SETTINGS, mutated, search
from kipcheck.model.mutations import SCENARIOS
from kipcheck.model.runs import replay
from kipcheck.model.world import Faults
from kipcheck.spec import check
from kipcheck.spec.results import Finding

RETURN = SCENARIOS["static-return"]


def test_a_small_budget_is_searched_to_its_end() -> None:
    result = search(RETURN)
    assert result.complete
    assert result.counterexample is None
    assert result.worlds <= result.steps + 1
    assert 0 < result.judged <= result.steps + 1


def test_the_same_search_is_the_same_twice() -> None:
    def told(mutation: str) -> object:
        result = search(RETURN, mutation=mutation)
        return result.worlds, result.steps, result.judged, result.counterexample

    assert told("static-return-rebalances") == told("static-return-rebalances")


def test_nothing_happens_without_faults_but_heartbeats() -> None:
    quiet = replace(RETURN, world=replace(RETURN.world, faults=Faults()))
    result = search(quiet)
    assert result.complete
    assert result.worlds < 10


def test_more_disorder_means_more_worlds() -> None:
    orderly, disorderly = (search(SCENARIOS["second-joins"], reorderings=turns, max_worlds=2_000) for turns in (0, 1))
    assert orderly.complete
    assert orderly.worlds < disorderly.worlds


def test_the_limit_on_worlds_leaves_the_search_undecided() -> None:
    result = search(RETURN, max_worlds=20)
    assert not result.complete
    assert result.counterexample is None
    assert 20 < result.worlds < 30


def test_progress_is_told() -> None:
    heard: list[tuple[int, int]] = []
    search(SCENARIOS["static-departure"], max_worlds=1_100, progress=lambda worlds, depth: heard.append((worlds, depth)))
    assert [worlds for worlds, _ in heard] == [512, 1024]
    assert [depth for _, depth in heard] == sorted(depth for _, depth in heard)


def test_a_counterexample_ends_with_the_step_that_shows_it() -> None:
    mutation, rules = "static-return-loses-a-partition", frozenset({"static-assignment-kept"})
    found = search(RETURN, mutation=mutation, rules=rules).counterexample
    assert found is not None
    begun = replace(RETURN, world=mutated(RETURN.world, mutation)).begin()
    settings = replace(SETTINGS, only=rules)
    for length, shown in ((len(found.script), 1), (len(found.script) - 1, 0)):
        events = begun.then(replay(begun.world, found.script[:length])).events
        assert sum(len(group.findings) for group in check(events, settings)) == shown


def test_what_a_run_shows_only_by_going_on_is_found() -> None:
    """A revoker that stays looks like one that is slow, until its rebalance timeout is over; until then nothing changes."""
    found = search(SCENARIOS["second-joins"], mutation="revoker-stays", rules=frozenset({"revoker-rejoins"})).counterexample
    assert found is not None


def test_a_run_that_goes_round_without_time_passing_is_judged() -> None:
    """A member that was given not even an empty share throws, polls and throws again."""
    result = search(SCENARIOS["twin-overtakes"], mutation="static-return-answered-while-completing", reorderings=2)
    assert result.counterexample is not None
    assert result.counterexample.finding.rule == "static-assignment-kept"


def test_a_grant_that_leaves_the_world_as_it_was_is_judged() -> None:
    """A heartbeat changes nothing that lasts, so that the world after it was seen before."""
    result = search(SCENARIOS["twins"], mutation="replaced-id-keeps-its-session", rules=frozenset({"fenced-stays-fenced"}))
    assert result.counterexample is not None


@pytest.mark.parametrize(("named", "found"), [(True, True), (False, False)])
def test_what_only_informs_is_found_if_its_rule_is_named(named: bool, found: bool) -> None:
    rules = frozenset({"needless-movement"}) if named else None
    result = search(SCENARIOS["first-by-name-joins-last"], mutation="assignor-ignores-claims", rules=rules)
    assert (result.counterexample is not None) is found


def test_the_caller_may_say_what_it_looks_for() -> None:
    def never(finding: Finding) -> bool:
        return False

    result = search(RETURN, mutation="static-return-rebalances", wanted=never)
    assert result.complete
    assert result.counterexample is None


def test_mutations_are_switched_on_everywhere() -> None:
    world = mutated(RETURN.world, "one-thing", "another")
    assert world.release.defects == {"one-thing", "another"}
    assert all(plan.defects == {"one-thing", "another"} for client in world.clients for plan in client.plans)
