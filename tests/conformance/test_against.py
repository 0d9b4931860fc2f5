"""Captures against the reference model: real clusters do what it does, and what they did not do is found where it stands."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from rich.console import Console

from kipcheck.conformance.against import Divergence, Replayed, against
from kipcheck.conformance.against.coordinators import CANDIDATES, candidates
from kipcheck.conformance.against.evidence import gather
from kipcheck.conformance.reports.against import show_against
from kipcheck.conformance.timeline import timeline
from kipcheck.conformance.validate import events_of
from kipcheck.model.coordinator import MUTATIONS
from kipcheck.model.explorer import mutated
from kipcheck.model.mutations import REFERENCE, SCENARIOS, explore
from kipcheck.model.runs import walk
from kipcheck.model.scenarios import lively
from kipcheck.spec.check import check
from kipcheck.spec.events import (
    Assigned,
    Commit,
    Event,
    Gap,
    GenerationStarted,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Lost,
    Owned,
    Rebalance,
    Revoked,
    Source,
    Sync,
    Synced,
)

TRACES = Path(__file__).parents[2] / "traces"
RECORDED = sorted(path.parent for path in TRACES.glob("kafka-*/*/recording.json"))
RULES = TRACES / "rules"


@cache
def captured(path: Path, *files: str) -> tuple[Event, ...]:
    return tuple(events_of([str(path / file) for file in files] if files else [str(path)]))


def groups(events: Sequence[Event]) -> list[list[Event]]:
    return [[e for e in events if e.group == name] for name in sorted({event.group for event in events})]


def main_group(path: Path) -> list[Event]:
    return max(groups(captured(path)), key=len)


def first_of(replayed: Replayed) -> Divergence:
    assert replayed.divergence is not None
    assert replayed.status == 1
    return replayed.divergence


# Real clusters.


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: "/".join(path.parts[-2:]))
def test_real_clusters_do_what_the_model_does(path: Path) -> None:
    for events in groups(captured(path)):
        replayed = against(events)
        coordinator = replayed.subjects[0]
        assert (replayed.status, replayed.divergence, replayed.matched) == (0, None, replayed.total)
        assert coordinator.matched > 40
        assert coordinator.total - coordinator.matched <= 60
        assert replayed.release is not None
        assert ("the old coordinator of 3.3.2 to 3.9" in replayed.release) == ("3.8.1" in str(path))


@pytest.mark.parametrize("release", ["kafka-3.8.1", "kafka-4.3.1"])
def test_members_and_leaders_are_compared_too(release: str) -> None:
    replayed = against(main_group(TRACES / release / "cooperative-scale"))
    assert [(s.name[:2], s.matched == s.total > 0, s.unknown) for s in replayed.subjects] == [
        ("gr", True, None),
        ("c1", True, None),
        ("c2", True, None),
        ("c3", True, None),
        ("le", True, None),
    ]


SOURCES = ("client-", "broker", "request", ("offsets", "__consumer"))


@pytest.mark.parametrize("scenario", ["static-duplicate", "poll-timeout", "coordinator-restart", "connect-return"])
def test_an_observer_less_never_makes_a_divergence(scenario: str) -> None:
    path = TRACES / "kafka-4.3.1" / scenario
    files = [file.name for file in sorted(path.glob("*.gz"))]
    for kept in (*combinations(SOURCES, 1), *(kept for kept in combinations(SOURCES, 2) if "request" in kept)):
        if chosen := [name for name in files if any(name.startswith(source) for source in kept)]:
            for events in groups(captured(path, *chosen)):
                replayed = against(events)
                assert replayed.divergence is None
                assert (replayed.subjects[0].matched > 0) == ("request" in kept)


def test_without_requests_the_coordinator_is_unknown() -> None:
    replayed = against(list(captured(TRACES / "kafka-4.3.1" / "range-scale", "broker.log.gz")))
    assert (replayed.status, replayed.release, replayed.divergence) == (3, None, None)
    assert replayed.unknown == "group coordinator: none of its requests and answers were captured"


def test_a_gap_is_passed_over() -> None:
    events = main_group(TRACES / "kafka-4.3.1" / "cooperative-scale")
    started = next(e for e in events if isinstance(e, GenerationStarted) and e.generation == 3 and e.members)
    gap = Gap(group=started.group, ts=(started.ts or 0) - 1_000_000, src=Source("gap", 1), reason="rotated away")
    replayed = against([*events, gap])
    assert replayed.divergence is None
    assert replayed.subjects[0].unknown == "the capture has a gap"
    assert 0 < replayed.subjects[0].matched < against(events).subjects[0].matched


# Captures that were tampered with.


def requests(events: Sequence[Event], kind: type[Event], wanted: Callable[[Event], bool] = lambda _: True) -> list[Event]:
    return [
        e
        for e in events
        if isinstance(e, kind) and e.observer == "coordinator" and e.src is not None and "request.log" in e.src.file and wanted(e)
    ]


def granted(event: Event) -> bool:
    return getattr(event, "error", "NONE") == "NONE"


TAMPERED: dict[str, tuple[type[Event], Callable[[Event], bool], dict[str, object]]] = {
    "another generation": (Joined, granted, {"generation": 9}),
    "another leader": (Joined, granted, {"leader": "nobody"}),
    "a refused join": (Joined, granted, {"error": "UNKNOWN_MEMBER_ID", "generation": None, "leader": None}),
    "a refused heartbeat": (Heartbeat, granted, {"error": "ILLEGAL_GENERATION"}),
    "an owner less": (Synced, lambda e: granted(e) and len(e.resources or ()) > 1, {"resources": ()}),
    "a refused share": (Synced, granted, {"error": "ILLEGAL_GENERATION", "resources": None}),
    "a refused departure": (Leave, granted, {"error": "UNKNOWN_MEMBER_ID"}),
    "a commit of long ago": (Commit, lambda e: granted(e) and (e.generation or 0) > 4, {"generation": 1}),
}


@pytest.mark.parametrize("release", ["kafka-3.8.1", "kafka-4.3.1"])
@pytest.mark.parametrize("name", TAMPERED)
def test_what_was_tampered_with_is_found_there(release: str, name: str) -> None:
    events = main_group(TRACES / release / "cooperative-scale")
    kind, wanted, changes = TAMPERED[name]
    victim = requests(events, kind, wanted)[-1]
    changed = replace(victim, **changes)
    found = first_of(against([changed if e is victim else e for e in events]))
    assert (found.event.src, type(found.event)) == (victim.src, kind)
    assert found.enabled
    assert found.blocked


def test_the_step_is_that_of_the_picture() -> None:
    events = main_group(TRACES / "kafka-4.3.1" / "range-scale")
    victim = requests(events, Heartbeat, lambda e: getattr(e, "error", "") == "REBALANCE_IN_PROGRESS")[2]
    tampered = [replace(e, error="FENCED_INSTANCE_ID") if e is victim else e for e in events]
    picture = timeline(check(tampered)[0], tampered)
    replayed = against(tampered, picture)
    found = first_of(replayed)
    assert any(sighting.src == victim.src for sighting in picture.steps[found.number - 1].step.sightings)
    assert (replayed.matched, replayed.total) == (found.number - 1, len(picture.steps))


@pytest.mark.parametrize("release", ["kafka-3.8.1", "kafka-4.3.1"])
def test_a_callback_that_does_not_follow_is_found(release: str) -> None:
    events = main_group(TRACES / release / "cooperative-scale")
    victim = next(e for e in events if isinstance(e, Revoked) and len(e.resources or ()) == 1)
    tampered = [replace(e, resources=("orders-0",)) if e is victim else e for e in events]
    found = first_of(against(tampered))
    assert found.event.src == victim.src
    assert found.enabled[0] == f"call onPartitionsRevoked({(victim.resources or ())[0]})"
    assert found.blocked.startswith("onPartitionsRevoked(orders-0) does not follow: it owns orders-")


def test_a_share_that_the_assignor_would_not_give_is_found() -> None:
    events = main_group(TRACES / "kafka-4.3.1" / "cooperative-scale")

    def moved(event: Event) -> Event:
        if isinstance(event, Sync) and event.assignment and event.generation == 3:
            one, other = event.assignment
            return replace(event, assignment={one: event.assignment[other], other: event.assignment[one]})
        return event

    replayed = against([moved(event) for event in events])
    decided = next(subject for subject in replayed.subjects if subject.name == "leaders' decisions")
    assert decided.divergence is not None
    assert (decided.divergence.generation, decided.divergence.event.kind, decided.matched) == (3, "sync", 2)
    assert decided.divergence.blocked == "cooperative-sticky does not decide this for what the members claimed"


# Small made-up traces: what each rule is about, and near misses.

DIVERGING = {
    "fenced-stays-fenced": (Heartbeat, "i2 is i2-cc now"),
    "join-barrier": (GenerationStarted, "generation 2 can't be completed: c2 has not joined; the rebalance timer runs 58.0 s more"),
    "one-assignment-per-generation": (Synced, "the group is stable in generation 3"),
    "rebalance-within-timeout": (Event, "the join phase ended 40.0 s before"),
    "stale-generation-rejected": (Heartbeat, "it names generation 5, and the group is stable in generation 6"),
    "static-assignment-kept": (Synced, "the group is stable in generation 3"),
    "static-return-no-rebalance": (Rebalance, "nothing makes it rebalance after generation 3"),
    "static-slot-held": (Rebalance, "nothing makes it rebalance after generation 3"),
    "zombie-commit-rejected": (Commit, "c2 is no member"),
}


@pytest.mark.parametrize("name", DIVERGING)
def test_made_up_violations_diverge_where_they_stand(name: str) -> None:
    kind, why = DIVERGING[name]
    found = first_of(against(list(captured(RULES / f"{name}.violates.jsonl"))))
    assert isinstance(found.event, kind)
    assert why in found.blocked


def test_near_misses_do_not_diverge() -> None:
    paths = sorted(RULES.glob("*.conforms.jsonl"))
    assert len(paths) >= 30
    for path in paths:
        for events in groups(captured(path)):
            assert against(events).divergence is None, path.name


# The model's own runs.


def run_of(name: str, seed: int, *mutations: str, length: int = 150) -> list[Event]:
    chance = random.Random(f"{name}{seed}")
    world = mutated(lively(SCENARIOS[name]).world, *mutations)
    world = replace(world, release=replace(world.release, new=seed % 2 == 0))
    events = [event for taken in walk(world, lambda what, options: chance.choice(list(options)), length) for event in taken.moved.events]
    return [replace(event, src=Source("run.jsonl", line)) for line, event in enumerate(events, 1)]


def test_runs_of_the_model_match() -> None:
    for seed, name in enumerate(SCENARIOS):
        replayed = against(run_of(name, seed))
        assert (name, replayed.divergence) == (name, None)
        assert replayed.status == 0


SEEN_BY_THE_COORDINATOR = [
    mutation.name for mutation in MUTATIONS if mutation.scenario and mutation.name != "leader-told-of-removed-members"
]
SEEN_BY_OTHERS = {
    "cooperative-member-revokes-everything": "c1-1",
    "assignor-skips-adjust": "leaders' decisions",
    "trusts-every-claim": "leaders' decisions",
    "assignor-keeps-moving": "leaders' decisions",
    "assignor-ignores-claims": "leaders' decisions",
    "leader-told-of-removed-members": "leaders' decisions",
}
SHOWN_LATER = frozenset(
    {
        "cooperative-member-revokes-everything",
        "join-timer-not-armed",
        "static-replaced-only-when-stable",
        "static-return-answered-while-completing",
    }
)
"""What comes next shows that the event before was none of the model's: a member that gives all up may be closing, for one."""


@pytest.mark.parametrize("name", [*SEEN_BY_THE_COORDINATOR, *SEEN_BY_OTHERS])
def test_seeded_defects_diverge(name: str) -> None:
    counterexample = explore(REFERENCE[name]).counterexample
    assert counterexample is not None
    replayed = against(counterexample.events)
    found = first_of(replayed)
    subject = next(subject for subject in replayed.subjects if subject.divergence is not None)
    assert subject.name == SEEN_BY_OTHERS.get(name, "group coordinator")
    at = next(place for place, event in enumerate(counterexample.events) if event == found.event)
    if name not in SHOWN_LATER:
        assert against(counterexample.events[:at]).divergence is None
        assert against(counterexample.events[: at + 1]).divergence is not None


# Parts.


def test_the_releases_that_a_broker_may_be() -> None:
    assert candidates(None) == CANDIDATES
    assert [c.since for c in candidates("4.3.1")] == ["4.0"]
    assert [c.since for c in candidates("3.8.1")] == ["3.3.2", "4.0"]
    assert [c.since for c in candidates("7.4.0-ccs")] == ["3.3.2"]
    assert [c.since for c in candidates("6.2.1-ce")] == ["2.7.0"]
    assert [c.since for c in candidates("8.0.0-ccs")] == ["4.0"]
    assert [c.since for c in candidates("3.3.1")] == ["3.2.0"]
    assert [c.since for c in candidates("2.8.0")] == ["2.7.0"]
    assert [c.since for c in candidates("2.3.1")] == ["0"]


def test_requests_meet_their_answers() -> None:
    evidence = gather(captured(TRACES / "kafka-4.3.1" / "range-scale", "request.log.gz"))
    assert all(exchange.asked is not None and exchange.answer is not None for exchange in evidence.exchanges)
    assert not evidence.whole
    made_up = gather(captured(RULES / "join-barrier.violates.jsonl"))
    assert [type(exchange.asked) for exchange in made_up.exchanges].count(Join) == 4
    assert not made_up.whole
    assert gather(run_of("second-joins", 0)).whole


def test_what_takes_too_many_tries_is_unknown_and_no_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kipcheck.conformance.against.follow.TRIED", 1)
    replayed = against(main_group(TRACES / "kafka-4.3.1" / "cooperative-scale"))
    assert replayed.divergence is None
    assert "more orders" in (replayed.subjects[0].unknown or "")


def test_callbacks_of_other_clients_are_not_judged() -> None:
    replayed = against(main_group(TRACES / "kafka-4.3.1" / "librdkafka-cooperative"))
    members = [subject for subject in replayed.subjects if subject.name.startswith("c")]
    assert len(members) == 3
    assert all(subject.matched == 0 and "not Kafka's own" in (subject.unknown or "") for subject in members)


def test_the_report_says_where_and_why() -> None:
    events = list(captured(RULES / "join-barrier.violates.jsonl"))
    picture = timeline(check(events)[0], events)
    text = io.StringIO()
    show_against(against(events, picture), picture, Console(file=text, width=200, highlight=False))
    lines = text.getvalue().splitlines()
    assert lines[0] == "join-barrier-violates: the model would have done otherwise: 9 of 13 steps match, in generation 2"
    assert "    step 10: generation 2 starts: c1, c3; c1 leads" in lines
    assert any(line.startswith("    captured: ") and line.endswith("join-barrier.violates.jsonl:12") for line in lines)
    assert "    blocked: generation 2 can't be completed: c2 has not joined; the rebalance timer runs 58.0 s more" in lines
    assert "    the model would: wait for JoinGroup of c2" in lines


def test_hostile_names_stay_text() -> None:
    events = [replace(e, group="\x1b[31mg[bold]") for e in captured(RULES / "join-barrier.violates.jsonl")]
    picture = timeline(check(events)[0], events)
    text = io.StringIO()
    show_against(against(events, picture), picture, Console(file=text, width=200, force_terminal=False))
    assert "\x1b" not in text.getvalue()
    assert "[bold]" in text.getvalue()


def test_events_that_say_nothing_are_unknown() -> None:
    replayed = against([Owned(group="g", ts=1, member="m", resources=("t-0",)), Assigned(group="g", ts=2), Lost(group="g", ts=3)])
    assert (replayed.status, replayed.divergence) == (3, None)
