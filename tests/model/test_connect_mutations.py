"""Every defect of the Connect model: what it does to one story, and which rule sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

import pytest
from connect_cluster import Cluster, Generation, named

from kipcheck.model.connect.leader import KNOWN_DEFECTS, Release
from kipcheck.model.connect.mutations import MUTATIONS
from kipcheck.model.mutation import Mutation
from kipcheck.spec import RULES, check


class How(TypedDict):
    release: Release
    defects: frozenset[str]


Story = Callable[[How], Cluster]


def settled(how: How, connectors: dict[str, int], *others: str) -> Cluster:
    """W1 is there first, the ``others`` join together; then a minute of calm."""
    cluster = Cluster(connectors, **how)
    cluster.start("W1")
    cluster.start(*others)
    cluster.at(60_000)
    return cluster


def three(how: How) -> Cluster:
    return settled(how, {"A": 3, "B": 3}, "W2", "W3")


def twelve_tasks_two_joins(how: How) -> Cluster:
    """W3 joins before the work that W2's arrival took from W1 is placed: a back-off of 40 ms begins."""
    cluster = Cluster({"A": 12}, **how)
    cluster.start("W1")
    cluster.after_generation(2, lambda: cluster.start("W3"))
    cluster.start("W2")
    return cluster


def joins_during_follow_up(how: How) -> Cluster:
    return rest(twelve_tasks_two_joins(how))


def rest(cluster: Cluster) -> Cluster:
    cluster.rest()
    return cluster


def two_join(how: How) -> Cluster:
    return rest(three(how))


def one_leaves(how: How) -> Cluster:
    cluster = three(how)
    cluster.stop("W2")
    return rest(cluster)


def second_departure(how: How) -> Cluster:
    cluster = three(how)
    cluster.stop("W2")
    cluster.at(350_000)
    cluster.stop("W3")
    return rest(cluster)


def returns_with_its_work(how: How) -> Cluster:
    cluster = settled(how, {"A": 4}, "W2")
    cluster.freeze("W2")
    cluster.at(100_000)
    cluster.thaw("W2")
    return rest(cluster)


def returns_after_reassignment(how: How) -> Cluster:
    cluster = settled(how, {"A": 6}, "W2", "W3")
    cluster.freeze("W3")
    cluster.at(500_000)
    cluster.thaw("W3")
    return rest(cluster)


def returns_while_its_connector_is_deleted(how: How) -> Cluster:
    cluster = settled(how, {"A": 3, "B": 3}, "W2", "W3")
    cluster.freeze("W3")
    cluster.at(500_000)
    with cluster.at_once():
        cluster.configure(B=None)
        cluster.thaw("W3")
    return rest(cluster)


def returns_empty(how: How) -> Cluster:
    cluster = settled(how, {"A": 6}, "W2", "W3")
    cluster.stop("W2")
    cluster.at(90_000)
    cluster.start("W2")
    return rest(cluster)


def two_come_empty(how: How) -> Cluster:
    cluster = settled(how, {"A": 6}, "W2", "W3")
    cluster.stop("W2")
    cluster.at(90_000)
    cluster.start("W2", "W4")
    return rest(cluster)


def candidate_dies_after_expiry(how: How) -> Cluster:
    cluster = settled(how, {"A": 6}, "W2", "W3")
    cluster.stop("W2", "W3")
    cluster.at(90_000)
    cluster.start("W2")
    cluster.after_generation(cluster.number + 1, lambda: cluster.crash("W2"))
    return rest(cluster)


def leader_misses_sync(how: How) -> Cluster:
    cluster = settled(how, {"A": 4}, "W2")
    cluster.lose_next_sync("W1")
    cluster.configure(B=4)
    return rest(cluster)


def leader_leaves_with_a_connector(how: How) -> Cluster:
    cluster = settled(how, {"A": 2, "B": 4}, "W2", "W3")
    with cluster.at_once():
        cluster.configure(B=None)
        cluster.stop("W1")
    return rest(cluster)


def idle_worker_leaves(how: How) -> Cluster:
    cluster = Cluster({"A": 4}, **how)
    cluster.start("W1")
    cluster.after_generation(2, lambda: cluster.stop("W3"))
    cluster.start("W2", "W3")
    return rest(cluster)


def leaves_during_backoff(how: How) -> Cluster:
    cluster = twelve_tasks_two_joins(how)
    cluster.at(10)
    cluster.stop("W2")
    return rest(cluster)


def joins_during_backoff(how: How) -> Cluster:
    cluster = twelve_tasks_two_joins(how)
    for moment, name in ((10, "W4"), (20, "W5")):
        cluster.at(moment)
        cluster.start(name)
    return rest(cluster)


def without_delay(how: How) -> Cluster:
    cluster = Cluster({"A": 4}, max_delay_ms=0, **how)
    cluster.start("W1")
    cluster.start("W2")
    cluster.stop("W2")
    return rest(cluster)


def eager_worker_joins(how: How) -> Cluster:
    cluster = settled(how, {"A": 5}, "W2")
    cluster.start("W3", protocol="eager")
    return rest(cluster)


def connector_created_during_delay(how: How) -> Cluster:
    cluster = settled(how, {"A": 6}, "W2")
    cluster.stop("W2")
    cluster.at(90_000)
    cluster.start("W3")
    cluster.at(100_000)
    cluster.configure(B=3)
    return rest(cluster)


STORIES: dict[str, Story] = {
    "idle-departure-starts-delay": idle_worker_leaves,
    "departure-restarts-backoff": leaves_during_backoff,
    "dealt-and-revoked-counts-as-lost": candidate_dies_after_expiry,
    "new-leader-keeps-deleted-work": leader_leaves_with_a_connector,
    "duplicates-hide-deletions": returns_while_its_connector_is_deleted,
    "rebalance-cancels-backoff": joins_during_backoff,
    "delay-never-reset": returns_with_its_work,
    "sync-failure-is-a-departure": leader_misses_sync,
    "duplicates-kept": returns_after_reassignment,
    "one-holder-keeps": returns_after_reassignment,
    "levels-down-to-floor": two_join,
    "first-candidate-takes-all": two_come_empty,
    "never-levels-twice": joins_during_follow_up,
    "maximum-delay-0-withholds": without_delay,
    "departure-restarts-delay": second_departure,
    "revoked-work-reassigned-at-once": two_join,
    "lost-work-dealt-under-delay": one_leaves,
    "delay-doubled": one_leaves,
    "delay-differs": one_leaves,
    "lost-work-dealt-to-others": returns_empty,
    "downgrade-leaks-work": eager_worker_joins,
    "unresolved-round-skips-revocation": connector_created_during_delay,
    "worker-stops-everything-to-join": two_join,
}
K4_ONLY = {"duplicates-kept": "K6 levels the workers and so takes most duplicates away again"}


def healthy(mutation: Mutation) -> How:
    return {"release": "K4" if mutation.name in K4_ONLY else "mended", "defects": frozenset()}


def broken(cluster: Cluster) -> set[str]:
    return {finding.rule for group in check(cluster.events) for finding in group.findings if finding.severity == "error"}


def told(generation: Generation) -> object:
    return generation.at, generation.shares


def test_every_mutation_has_a_story() -> None:
    assert STORIES.keys() == {mutation.name for mutation in MUTATIONS}
    assert {defect for defects in KNOWN_DEFECTS.values() for defect in defects} <= STORIES.keys()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_breaks_its_promise_and_no_other(mutation: Mutation) -> None:
    how = healthy(mutation)
    sound = STORIES[mutation.name](how)
    mutant = STORIES[mutation.name]({**how, "defects": frozenset({mutation.name})})
    assert set(mutation.breaks) <= RULES.keys()
    assert bool(mutation.breaks) != bool(mutation.unseen)
    assert broken(sound) == set()
    assert broken(mutant) == {rule for rule in mutation.breaks if RULES[rule].severity == "error"}
    assert [told(g) for g in sound.history] != [told(g) for g in mutant.history] or sound.events != mutant.events


@pytest.mark.parametrize("release", ["K6", "mended"])
@pytest.mark.parametrize("story", sorted({story.__name__: story for story in STORIES.values()}.items()), ids=lambda s: s[0])
def test_kafka_as_it_is_breaks_nothing(story: tuple[str, Story], release: Release) -> None:
    assert broken(story[1]({"release": release, "defects": frozenset()})) == set()


def test_k4_never_levels_without_an_idle_worker() -> None:
    """KAFKA-12495: W3 joins in the follow-up of W2's join, and 6, 3 and 3 tasks it stays."""
    cluster = joins_during_follow_up({"release": "K4", "defects": frozenset()})
    assert [sum(unit.startswith("task:") for unit in cluster.owned(w)) for w in ("W1", "W2", "W3")] == [6, 3, 3]
    assert broken(cluster) == {"connect-balanced"}


def test_a_departure_during_a_backoff_gets_no_delay_of_its_own() -> None:
    """D2: K4, which knows no back-off, gives the departed worker its 300 s."""
    announced = {r: [g.delay for g in leaves_during_backoff({"release": r, "defects": frozenset()}).history] for r in ("K4", "K6")}
    assert announced == {"K4": [0, 0, 0, 300_000, 0], "K6": [0, 0, 40, 30, 0]}


def test_kafka_10413_as_it_was() -> None:
    """2.3.0 to 2.6.1: of six tasks two are moved, and four stay with the first worker for ever."""
    cluster = Cluster({"A": 3, "B": 3}, release="K4", defects=frozenset({"levels-down-to-floor"}))
    cluster.start("W1")
    cluster.start("W2", "W3")
    assert [named(cluster.owned(name)) for name in ("W1", "W2", "W3")] == ["A B A-2 B-0 B-1 B-2", "A-0", "A-1"]
