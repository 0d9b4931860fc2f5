"""The picture of a group: who owned what when, and where the findings rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.reports.names import Names
from kipcheck.conformance.show import pictures
from kipcheck.conformance.shrink import shrink
from kipcheck.conformance.timeline import Timeline, timeline
from kipcheck.spec.check import check, check_group
from kipcheck.spec.events import (
    Assigned,
    Commit,
    Crashed,
    Event,
    Expire,
    GenerationStarted,
    Join,
    Joined,
    Owned,
    Rebalance,
    Replace,
    Revoked,
    Sync,
    Synced,
)
from tests.spec.healthy import STEPS, Group

TRACES = Path(__file__).parents[2] / "traces"
RECORDED = sorted(path.parent for path in TRACES.glob("kafka-*/*/recording.json"))
EXAMPLES = sorted((TRACES / "rules").glob("*.violates.jsonl"))
SHARED_FOR_REAL = {"static-late-claim": "orders-0", "unequal-subscriptions-claim": "orders-1"}
"""The recordings of Kafka's defects, and what two members owned in them."""


def drawn(events: list[Event]) -> Timeline:
    return timeline(check_group(events), events)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: "/".join(path.parts[-2:]))
def test_two_owners_are_drawn_where_there_were_two(path: Path) -> None:
    found, _ = pictures([str(path)])
    shared = {span.resource for picture in found for span in picture.twice}
    violated = any(cited.finding.severity == "error" for picture in found for cited in picture.findings)
    assert shared == ({SHARED_FOR_REAL[path.name]} if violated else set())


@pytest.mark.parametrize("path", [*RECORDED, *EXAMPLES], ids=lambda path: "/".join(path.parts[-2:]))
def test_every_line_that_a_finding_cites_is_a_step(path: Path) -> None:
    for picture in pictures([str(path)])[0]:
        for cited in picture.findings:
            for place, argument in zip(cited.places, cited.finding.argument, strict=True):
                assert (place is None) == (argument.evidence is None)
                if place is not None:
                    assert any(event.src == argument.evidence for event in picture.steps[place].step.sightings)


@given(
    st.lists(st.sampled_from(STEPS), max_size=12),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 40.0, -40.0]),
    st.frozensets(st.integers(0, 7)),
)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_a_healthy_group_never_shows_two_owners(
    done: list[str], cooperative: bool, named: bool, shift: float, lost: frozenset[int]
) -> None:
    group = Group(cooperative=cooperative, named=named, clock_shift=shift)
    events = group.run(["dynamic", "dynamic", *done])
    files = sorted({event.src.file for event in events if event.src is not None})
    gone = {file for number, file in enumerate(files) if number in lost}
    events = [event for event in events if event.src is not None and event.src.file not in gone]
    for result in check(events):
        assert timeline(result, [event for event in events if event.group == result.group]).twice == ()


def test_who_took_what_from_whom() -> None:
    ((picture,), _) = pictures([str(TRACES / "kafka-4.3.1" / "static-late-claim")])
    names = [lane.name for lane in picture.lanes]
    (shared,) = picture.twice
    assert sorted(names[lane] for lane in shared.lanes) == ["instance-c1", "instance-c2"]
    (cited, *_) = [cited for cited in picture.findings if cited.finding.severity == "error"]
    entered, given_away, gave_up = (picture.steps[place] for place in cited.places if place is not None)
    assert entered.lane == gave_up.lane == names.index("instance-c1")
    assert gave_up.mark == "revoked"
    assert shared.last == cited.places[2]
    assert given_away.step.event.kind == "assignment"
    zombie = [bar for bar in picture.bars if bar.state == "stale"]
    assert [names[bar.lane] for bar in zombie] == ["instance-c2"]
    assert zombie[0].last == shared.first


def test_a_shrunk_trace_keeps_its_steps_names(tmp_path: Path) -> None:
    """So a link to a step, or to the finding, leads to the same thing in the page of the shrunk trace."""
    path = str(TRACES / "kafka-4.3.1" / "static-late-claim")
    small = shrink([path], "revoke-before-reassign")
    ((whole,), _) = pictures([path])
    part = timeline(check_group(small.trace), small.trace)
    assert {cited.finding.fingerprint for cited in part.findings} <= {cited.finding.fingerprint for cited in whole.findings}
    same = [step for step in part.steps if step.step.event.kind in ("revoked", "join")]
    assert {step.id for step in same} <= {step.id for step in whole.steps}
    assert same


G = "g"


def two_members(*more: Event) -> list[Event]:
    return [
        GenerationStarted(group=G, generation=1, members=("a", "b"), leader="a", protocol="cooperative-sticky", ts=1),
        Joined(group=G, member="a", generation=1, ts=2),
        Joined(group=G, member="b", generation=1, ts=3),
        Sync(group=G, member="a", generation=1, assignment={"a": ("x",), "b": ("y",)}, ts=4),
        Synced(group=G, member="a", generation=1, resources=("x",), ts=5),
        Synced(group=G, member="b", generation=1, resources=("y",), ts=6),
        *more,
    ]


def spans(picture: Timeline, member: str) -> list[tuple[str, str]]:
    return [(bar.resource, bar.state) for bar in picture.bars if picture.lanes[bar.lane].member == member]


def test_what_a_member_does_not_tell_is_what_it_was_given() -> None:
    picture = drawn(two_members(Assigned(group=G, member="a", generation=1, resources=("x",), ts=7)))
    assert spans(picture, "a") == [("x", "believed")]
    assert spans(picture, "b") == [("y", "given")]


def test_a_removed_members_belief_is_stale_and_what_it_held_has_no_owner() -> None:
    picture = drawn(
        two_members(
            Assigned(group=G, member="a", generation=1, resources=("x",), ts=7),
            Expire(group=G, member="a", generation=1, reason="session", ts=8),
            Expire(group=G, member="b", generation=1, reason="session", ts=9),
        )
    )
    assert spans(picture, "a") == [("x", "believed"), ("x", "stale")]
    assert spans(picture, "b") == [("y", "given")]
    assert picture.unowned is not None
    assert [(span.resource, span.last) for span in picture.unowned if span.last == len(picture.steps)] == [("x", 7), ("y", 7)]


def test_a_belief_that_overlaps_with_anothers_is_shared() -> None:
    picture = drawn(
        two_members(
            Assigned(group=G, member="a", generation=1, resources=("x",), ts=7),
            Assigned(group=G, member="b", generation=1, resources=("x", "y"), ts=8),
            Revoked(group=G, member="a", generation=1, resources=("x",), ts=9),
        )
    )
    assert [(span.resource, span.first, span.last) for span in picture.twice] == [("x", 5, 6)]


def test_a_member_that_was_not_heard_of_since_does_not_share() -> None:
    """Client logs alone: the first one ends without a word, so nobody knows what that member still owns."""
    own = [
        Owned(group=G, member="a", generation=1, resources=("x",), ts=1),
        Owned(group=G, member="b", generation=5, resources=("x",), ts=2),
    ]
    assert drawn([*own]).twice == ()
    assert len(drawn([own[0], replace(own[1], generation=1)]).twice) == 1


def test_unowned_time_is_not_told_where_shares_are_missing() -> None:
    own = Assigned(group=G, member="a", generation=1, resources=("x",), ts=1)
    assert drawn([own, replace(own, member="b", resources=("y",), ts=2)]).unowned is None
    decided = Sync(group=G, member="a", generation=1, assignment={"a": ("x",)}, ts=0, seen_by="member")
    assert drawn([decided, own]).unowned is None, "the leader's log alone does not tell how it went on"
    seen = [replace(decided, seen_by=None), own, Revoked(group=G, member="a", generation=1, resources=("x",), ts=2)]
    unowned = drawn([*seen, GenerationStarted(group=G, generation=2, ts=3), Rebalance(group=G, generation=2, ts=4)]).unowned
    assert unowned is not None
    assert [(span.first, span.last) for span in unowned] == [(0, 1), (2, 3)], "who owned what in generation 2 was not captured"


def test_members_of_one_client_are_told_apart() -> None:
    events: list[Event] = [
        Assigned(group=G, member=f"c-{uuid}", client="c", generation=1, resources=(uuid[:1],), ts=ts)
        for ts, uuid in enumerate(("11111111-2222-3333-4444-555555555555", "66666666-2222-3333-4444-555555555555"))
    ]
    assert [lane.name for lane in drawn(events).lanes] == ["c #1", "c #2"]
    assert [lane.name for lane in drawn(events[:1]).lanes] == ["c"]


def test_sentences_use_the_lanes_names_and_nothing_else_changes() -> None:
    long = "consumer-1-11111111-2222-3333-4444-555555555555"
    picture = drawn(
        [
            Assigned(group=G, member=long, client="consumer-1", generation=1, resources=("x",), ts=1),
            Assigned(group=G, member="a", client="application", generation=1, resources=("y",), ts=2),
        ]
    )
    names = Names(picture.lanes)
    assert [lane.name for lane in picture.lanes] == ["consumer-1", "a"]
    assert names(f"a rebalance of {long}") == "a rebalance of consumer-1"
    assert names(f"{long}0 and x{long}") == f"{long}0 and x{long}"


def test_a_log_that_begins_late_is_not_taken_for_one_that_owns_nothing() -> None:
    """``b`` took y before its log begins: nobody may say that y had no owner."""
    picture = drawn(two_members(Revoked(group=G, member="b", generation=2, resources=("y",), ts=9)))
    assert spans(picture, "b") == [("y", "given")]
    assert picture.unowned is not None
    assert not [span for span in picture.unowned if span.resource == "y" and span.first < 5 and span.last > 3]


def test_what_was_given_last_may_have_been_taken() -> None:
    events = two_members(Owned(group=G, member="a", generation=1, resources=(), ts=7))
    picture = drawn(events)
    assert picture.unowned is not None
    assert not [span for span in picture.unowned if span.resource == "x" and span.last == len(picture.steps)]
    gone = drawn([*events, Expire(group=G, member="a", generation=1, reason="session", ts=8)])
    assert gone.unowned is not None
    assert [span.resource for span in gone.unowned if span.last == len(gone.steps)] == ["x"]


def cut_off(events: list[Event], member: str, kinds: tuple[type[Event], ...]) -> list[Event]:
    """Without what ``member``'s own log says from the first of these kinds on."""
    ended = False
    kept: list[Event] = []
    for event in events:
        mine = event.member == member and event.observer == "member"
        ended = ended or (mine and isinstance(event, kinds))
        if not (mine and ended):
            kept.append(event)
    return kept


def test_a_log_that_ends_does_not_keep_what_its_member_claims_no_longer() -> None:
    cooperative = "cooperative-sticky"
    events: list[Event] = [
        *two_members(
            Assigned(group=G, member="a", generation=1, resources=("x",), ts=7),
            Assigned(group=G, member="b", generation=1, resources=("y",), ts=8),
            Revoked(group=G, member="a", generation=1, resources=("x",), ts=9),
        ),
        Join(group=G, member="a", owned=(), owned_generation=1, ts=10),
        Join(group=G, member="b", owned=("y",), owned_generation=1, ts=11),
        GenerationStarted(group=G, generation=2, members=("a", "b"), leader="a", protocol=cooperative, ts=12),
        Joined(group=G, member="a", generation=2, protocol=cooperative, ts=13),
        Joined(group=G, member="b", generation=2, protocol=cooperative, ts=14),
        Sync(group=G, member="a", generation=2, assignment={"a": (), "b": ("x", "y")}, ts=15),
        Synced(group=G, member="a", generation=2, resources=(), ts=16),
        Synced(group=G, member="b", generation=2, resources=("x", "y"), ts=17),
        Assigned(group=G, member="b", generation=2, resources=("x",), ts=18),
        Commit(group=G, member="a", generation=2, resources=(), ts=19),
    ]
    assert drawn(events).twice == ()
    assert drawn(cut_off(events, "a", (Revoked,))).twice == ()


def test_one_slot_never_has_two_owners() -> None:
    """A static member that came back under a new id; whether it was replaced was not captured."""
    old, new = (Joined(group=G, member=name, instance="i", generation=1, ts=ts) for name, ts in (("i-1", 1), ("i-2", 5)))
    events: list[Event] = [
        old,
        Synced(group=G, member="i-1", instance="i", generation=1, resources=("x",), ts=2),
        new,
        Synced(group=G, member="i-2", instance="i", generation=1, resources=("x",), ts=6),
    ]
    assert drawn(events).twice == ()


def test_a_replaced_member_stays_out_whatever_answers_it_still_gets() -> None:
    picture = drawn(
        two_members(
            Assigned(group=G, member="a", generation=1, resources=("x",), ts=7),
            Replace(group=G, member="a2", old_member="a", instance="i", generation=1, ts=8),
            Synced(group=G, member="a", generation=1, resources=("x",), ts=9),
            Owned(group=G, member="a", generation=1, resources=("x",), ts=10),
        )
    )
    assert spans(picture, "a") == [("x", "believed"), ("x", "stale")]


def test_a_dead_process_is_given_nothing() -> None:
    picture = drawn(
        two_members(
            Crashed(group=G, member="b", ts=7),
            GenerationStarted(group=G, generation=2, members=("a", "b"), leader="a", protocol="cooperative-sticky", ts=8),
            Sync(group=G, member="a", generation=2, assignment={"a": ("x",), "b": ("y",)}, ts=9),
        )
    )
    assert spans(picture, "b") == [("y", "given")]
    assert picture.unowned is not None
    assert [(span.resource, span.last) for span in picture.unowned][-1] == ("y", len(picture.steps))


def test_a_client_without_member_ids_in_its_log_is_not_a_second_owner() -> None:
    events = two_members(Assigned(group=G, member="a-client@a.log#1", client="a", generation=1, resources=("x",), ts=7))
    assert drawn(events).twice == ()


@pytest.mark.parametrize(
    "path",
    [path for path in EXAMPLES if path.name.startswith(("exclusive-", "revoke-before", "connect-revoke"))],
    ids=lambda path: path.name,
)
def test_what_a_finding_proves_to_have_two_owners_is_drawn_so(path: Path) -> None:
    ((picture,), _) = pictures([str(path)])
    found = {resource for cited in picture.findings if cited.finding.severity == "error" for resource in cited.finding.resources}
    assert {span.resource for span in picture.twice} == found


@pytest.mark.parametrize("name", sorted(SHARED_FOR_REAL))
@pytest.mark.parametrize("left", ["request.log.gz", "client", "broker.log.gz", "offsets"])
def test_the_defects_show_without_one_observer_too(name: str, left: str) -> None:
    files = [str(file) for file in sorted((TRACES / "kafka-4.3.1" / name).iterdir()) if left not in file.name and file.suffix != ".json"]
    for picture in pictures(files)[0]:
        found = {resource for cited in picture.findings if cited.finding.severity == "error" for resource in cited.finding.resources}
        assert found <= {span.resource for span in picture.twice} <= {SHARED_FOR_REAL[name]}
