"""What holds for every Connect cluster, whatever happens to it, with the relaxations that Kafka takes.

A failing example prints the fates that led to it: `play` runs them again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from connect_cluster import Cluster, Generation
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kipcheck.model.connect.leader import Release
from kipcheck.model.connect.units import KINDS, of_kind
from kipcheck.spec import check
from kipcheck.spec.events import Assigned, Closed, Join, Lost, Owned, Revoked

Fate = tuple[str, str, int]
"""What happens, to whom, and with which number."""

MAX_DELAY_MS = 300_000
WORKERS = ("W1", "W2", "W3", "W4")
FATES = ("start", "stop", "crash", "freeze", "thaw", "lose sync", "cut", "mend", "resize", "wait", "together")
DURATIONS = (10, 30, 1_000, 60_000, 250_000, 300_000, 700_000)


def fates(*kinds: str) -> st.SearchStrategy[list[Fate]]:
    return st.lists(st.tuples(st.sampled_from(kinds), st.sampled_from(WORKERS), st.integers(0, 6)), max_size=14)


def play(release: Release, story: Sequence[Fate], max_delay_ms: int = MAX_DELAY_MS) -> Cluster:
    """A cluster after all that. Somebody always runs; what makes no sense at the moment doesn't happen."""
    cluster = Cluster({"A": 3, "B": 2}, release=release, max_delay_ms=max_delay_ms)
    cluster.start("W1")
    cluster.start("W2")
    steps = iter(story)
    for what, who, number in steps:
        if what == "together":
            with cluster.at_once():
                for _ in range(2):
                    befall(cluster, *next(steps, ("wait", who, 0)))
        else:
            befall(cluster, what, who, number)
    return cluster


def befall(cluster: Cluster, what: str, who: str, number: int) -> None:
    process = cluster.running.get(who)
    going = {name: p for name, p in cluster.running.items() if not p.worker.closed and p.worker.stopping is None}
    awake = [name for name, p in going.items() if not p.frozen and p.deaf is None]
    match what:
        case "start" if process is None:
            cluster.start(who)
        case "stop" if process is not None and len(awake) > 1 and who in awake:
            cluster.stop(who)
        case "crash" if process is not None and len(set(awake) - {who}) > 0:
            cluster.crash(who)
        case "freeze" if process is not None and len(awake) > 1 and who in awake:
            cluster.freeze(who)
        case "thaw" if process is not None and process.frozen:
            cluster.thaw(who)
        case "lose sync" if process is not None:
            cluster.lose_next_sync(who)
        case "cut" if process is not None and len(awake) > 1 and who in awake and not cluster.waits:
            cluster.cut(who)
        case "mend" if process is not None and process.deaf is not None:
            cluster.mend(who)
        case "resize":
            cluster.configure(**{"ABC"[number % 3]: (None, 1, 4, 6)[number % 4]})
        case "wait" if not cluster.waits:
            cluster.at(cluster.now + DURATIONS[number])
        case _:
            pass


def calm_down(cluster: Cluster) -> int:
    """Everybody recovers; the number of generations, a second later, until nothing happens any more."""
    for name in list(cluster.running):
        cluster.running[name].lose_sync = None
        if cluster.running[name].deaf is not None:
            cluster.mend(name)
    with cluster.at_once():
        for name, process in cluster.running.items():
            if process.frozen:
                cluster.thaw(name)
    cluster.at(cluster.now + 1_000)
    before = cluster.number
    cluster.rest()
    return cluster.number - before


def everything(groups: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> Counter[str]:
    return Counter(unit for units in groups for unit in units)


def follows(before: Generation, now: Generation, cluster: Cluster) -> bool:
    """Whether one leader led both generations, and applied the first: only then it knows what happened before."""
    applied = any(isinstance(e, Owned) and (e.member, e.generation) == (before.leader, before.number) for e in cluster.events)
    return now.number == before.number + 1 and now.leader == before.leader and applied


def judge_generation(now: Generation, release: Release) -> None:
    reported = everything([list(units) for units in now.reported.values()])
    started = everything([share.started or () for share in now.shares.values()])
    revoked = everything([share.revoked or () for share in now.shares.values()])
    assert max(started.values(), default=1) == 1, "C1: started once"
    assert not started.keys() & reported.keys(), "C2: what a member still reports is given to nobody"
    assert not started.keys() & revoked.keys(), "C3: nothing is given and revoked at once"
    assert started.keys() <= now.configured, "C4: only what is configured"
    assert {share.delay_ms for share in now.shares.values()} == {now.delay}, "C6: one delay"
    assert 0 <= now.delay <= MAX_DELAY_MS, "C6: bounded"
    twice = {unit for unit, holders in reported.items() if holders > 1}
    for member, units in now.reported.items():
        told = set(now.shares[member].revoked or ())
        assert twice & set(units) <= told, "C10: every holder of a duplicate stops it"
        if now.delay:
            assert told <= twice | (set(units) - now.configured), "C9: no levelling under a delay"
        if now.memory.deadline or release == "K4":
            assert told <= set(units), "C5: only what it reported, but for work dealt and levelled at the end of a delay"


def judge_history(cluster: Cluster, release: Release) -> None:
    for now in cluster.history:
        judge_generation(now, release)
    lost: set[str] = set()
    for before, now in pairwise(cluster.history):
        active = everything([list(units) for units in now.reported.values()]).keys()
        given = everything([share.resources for share in before.shares.values()]).keys()
        undone = active & everything([share.revoked or () for share in before.shares.values()]).keys()
        if not follows(before, now, cluster) or undone:
            lost = set()
            continue
        departed = before.reported.keys() - now.reported.keys()
        lost = ((lost if before.delay else set()) | set(given)) - active if departed or lost else set()
        lost &= now.configured
        if before.delay and now.delay:
            assert now.at + now.delay <= before.at + before.delay, "C8: the end of a delay never moves later"
        if now.delay and departed:
            started = everything([share.started or () for share in now.shares.values()]).keys()
            assert not started & lost, "C7: lost work waits"


def judge_workers(cluster: Cluster) -> None:
    """C12 and C13: a worker stops what it is told to, and nothing else; first it stops, then starts, then joins again."""
    told = {(now.number, m): set(share.revoked or ()) for now in cluster.history for m, share in now.shares.items()}
    closed = {event.member for event in cluster.events if isinstance(event, Closed)}
    for member in {event.member for event in cluster.events if event.member} - closed:
        reached = 0
        for event in (e for e in cluster.events if e.member == member):
            if isinstance(event, Revoked):
                assert set(event.resources or ()) <= told[event.generation or -1, member], "C12: kept work runs on"
            order = {Join: 0, Revoked: 1, Assigned: 2, Owned: 3}.get(type(event))
            if order is not None:
                assert order >= reached or isinstance(event, Join), "C13: stop, start, join"
                reached = order


def errors(cluster: Cluster) -> list[str]:
    findings = (finding for group in check(cluster.events) for finding in group.findings)
    return [f"{finding.rule}: {finding.message}" for finding in findings if finding.severity == "error"]


def loads(cluster: Cluster, kind: str) -> list[int]:
    return [len(of_kind(kind, cluster.owned(name))) for name in cluster.running]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("release", ["K6", "mended"])
@settings(derandomize=True, deadline=None, max_examples=80)
@given(story=fates(*FATES))
def test_whatever_happens(release: Release, story: list[Fate]) -> None:
    cluster = play(release, story)
    generations = calm_down(cluster)
    judge_history(cluster, release)
    judge_workers(cluster)
    assert errors(cluster) == []
    configured = cluster.history[-1].configured
    owned = everything([cluster.owned(name) for name in cluster.running])
    assert owned.keys() >= configured, "C14: everything runs"
    assert max(owned.values(), default=1) == 1, "C14: once"
    if release == "mended":
        assert owned.keys() == configured, "C14: nothing else runs"
        for kind in KINDS:
            assert max(loads(cluster, kind)) - min(loads(cluster, kind)) <= 1, "C15: balanced"
    assert generations <= 3, "C16: converges"


@settings(derandomize=True, deadline=None, max_examples=60)
@given(story=fates(*FATES))
def test_k4_whatever_happens(story: list[Fate]) -> None:
    cluster = play("K4", story)
    calm_down(cluster)
    judge_history(cluster, "K4")
    judge_workers(cluster)
    assert [found for found in errors(cluster) if not found.startswith("connect-balanced")] == []


@pytest.mark.parametrize("release", ["K4", "K6", "mended"])
@settings(derandomize=True, deadline=None, max_examples=40)
@given(story=fates("start", "stop", "crash", "lose sync", "resize", "wait", "together"))
def test_without_zombies_nothing_runs_twice(release: Release, story: list[Fate]) -> None:
    """C11, and C17: without one more departure everything runs again a maximum delay later."""
    cluster = play(release, story)
    for event in cluster.events:
        assert not isinstance(event, Lost)
    running: dict[str, set[str]] = {}
    for event in cluster.events:
        mine = running.setdefault(event.client or "", set()) if isinstance(event, Assigned | Revoked) else set[str]()
        if isinstance(event, Assigned):
            mine |= set(event.resources or ())
        elif isinstance(event, Revoked):
            mine -= set(event.resources or ())
        elif event.kind == "crashed":
            running.pop(event.client or "", None)
        assert max(everything([sorted(units) for units in running.values()]).values(), default=1) == 1, "C11"
    if release != "K6":
        for process in cluster.running.values():
            process.lose_sync = None
        cluster.at(cluster.now + MAX_DELAY_MS)
        owned = everything([cluster.owned(name) for name in cluster.running])
        assert owned.keys() >= cluster.history[-1].configured, "C17"


@settings(derandomize=True, deadline=None, max_examples=30)
@given(story=fates("start", "stop", "crash", "resize", "wait", "together"))
@example(story=[("start", "W2", 0), ("stop", "W2", 0)])
def test_without_a_maximum_delay_nothing_waits(story: list[Fate]) -> None:
    cluster = play("K6", story, max_delay_ms=0)
    assert {generation.delay for generation in cluster.history} == {0}
    owned = everything([cluster.owned(name) for name in cluster.running])
    assert owned.keys() >= cluster.history[-1].configured


@pytest.mark.parametrize("release", ["K4", "K6", "mended"])
def test_an_idle_worker_leaves_without_a_delay(release: Release) -> None:
    """C19, in a cluster at rest."""
    cluster = Cluster({"A": 1}, release=release)
    cluster.start("W1")
    cluster.start("W2", "W3")
    cluster.rest()
    idle = next(name for name in cluster.running if not cluster.owned(name))
    cluster.stop(idle)
    assert cluster.history[-1].delay == 0
