"""The inputs of real leaders: taken from recorded traces they must lead to what those leaders decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from kipcheck.conformance.assemble import Capture, assemble
from kipcheck.conformance.gate.inputs.classify import classify
from kipcheck.conformance.gate.inputs.traces import MOST_PARTITIONS, Inputs, inputs_in, inputs_of
from kipcheck.conformance.readers.files import read
from kipcheck.model.assignors import ASSIGNORS, Claim
from kipcheck.model.messages import JoinedMember, Metadata
from kipcheck.spec.assignors.case import ABSENT, Case, Member
from kipcheck.spec.events import Assigned, Assignment, Event, GenerationStarted, Join, Joined, MemberInfo, Sync, Synced, Topics

TRACES = Path(__file__).parents[2] / "traces"
RELEASES = ("kafka-3.8.1", "kafka-4.3.1")
JAVA = (
    "cooperative-scale",
    "kill-minus-nine",
    "partitions-added",
    "range-scale",
    "rolling-upgrade",
    "static-duplicate",
    "static-late-claim",
)


@cache
def recorded(release: str, scenario: str) -> tuple[Event, ...]:
    return tuple(assemble([Capture(each.path, tuple(each.events), native=False) for each in read([str(TRACES / release / scenario)])]))


def assigned(assignor: str, case: Case) -> Mapping[str, frozenset[str]]:
    members = [
        JoinedMember(
            member=each.id,
            instance=each.instance,
            metadata=Metadata(
                topics=each.subscribed,
                owned=each.owned,
                generation=each.generation,
                rack=each.rack,
                user_data=Claim(each.owned, each.generation),
            ),
        )
        for each in case.members
    ]
    return {member: frozenset(share) for member, share in ASSIGNORS[assignor].assign(members, case.topics, case.racks).items()}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("scenario", JAVA)
def test_the_reference_decides_as_the_real_leader_did(release: str, scenario: str) -> None:
    events = recorded(release, scenario)
    found = inputs_in(events)
    decided = {
        f"{event.group}/{event.epoch}.{event.generation}": {member: frozenset(share) for member, share in event.assignment.items()}
        for event in events
        if isinstance(event, Sync) and event.assignment
    }
    protocols = {
        f"{event.group}/{event.epoch}.{event.generation}": event.protocol
        for event in events
        if isinstance(event, GenerationStarted | Assignment) and event.protocol
    }
    compared = [case for case in found.cases if case.id in decided and protocols[case.id] in ASSIGNORS]
    assert len(compared) >= 4
    for case in compared:
        assert assigned(protocols[case.id] or "", case) == decided[case.id]


@pytest.mark.parametrize("release", RELEASES)
def test_every_generation_of_the_recorded_consumers_is_found(release: str) -> None:
    for scenario in JAVA:
        found = inputs_in(recorded(release, scenario))
        assert found.left_out == {}
        assert len(found.cases) == found.generations >= 5
        assert all(case.input_class == "trace" for case in found.cases)
        assert len({case.id for case in found.cases}) == len(found.cases)
    assert "stale generation" in {classify(case) for case in inputs_in(recorded(release, "static-late-claim")).cases}


def test_a_single_client_log_gives_what_it_shows() -> None:
    one = inputs_of([str(TRACES / "kafka-4.3.1" / "cooperative-scale" / "client-c1.log.gz")])
    whole = inputs_in(recorded("kafka-4.3.1", "cooperative-scale"))
    assert one.cases
    assert one.left_out
    assert len(one.cases) + sum(one.left_out.values()) == one.generations
    known = {(case.id.rpartition(".")[2], case.members) for case in whole.cases}
    assert {(case.id.rpartition(".")[2], case.members) for case in one.cases} <= known


def test_connect_workers_are_left_out_and_their_consumers_are_not() -> None:
    found = inputs_in(recorded("kafka-4.3.1", "connect-return"))
    assert found.left_out.keys() == {"Connect workers"}
    (note,) = found.notes
    assert note == f"{len(found.cases)} of {found.generations} generations in the captures are fed (13 left out: Connect workers)"
    assert all(topic for case in found.cases for topic in case.topics)
    assert found.cases


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    found = inputs_of([str(tmp_path / "nowhere")])
    assert found.cases == ()
    assert [(Path(each.path).name, each.problem) for each in found.inputs] == [("nowhere", "no such file or directory")]


# --- made-up events ---

SUBSCRIBED = MemberInfo(subscribed=("t",), owned=())


def generation(number: int, shares: Mapping[str, tuple[str, ...]], members: Mapping[str, MemberInfo] | None = None) -> Assignment:
    return Assignment(group="g", generation=number, assignment=shares, members=members or dict.fromkeys(shares, SUBSCRIBED))


def only(found: Inputs) -> Case:
    assert found.left_out == {}
    (case,) = found.cases
    return case


def test_claims_are_those_reported_with_their_generation_and_rack() -> None:
    info = MemberInfo(instance="i0", subscribed=("t",), owned=("t-0",), extra={"owned_generation": 3, "rack": "ra"})
    case = only(inputs_in([generation(5, {"a": ("t-0", "t-2")}, {"a": info})]))
    assert case.members == (Member(id="a", instance="i0", subscribed=("t",), owned=("t-0",), generation=3, rack="ra"),)
    assert case.topics == {"t": 3}
    assert case.id == "g/0.5"


def test_a_claim_may_lack_its_generation() -> None:
    info = MemberInfo(subscribed=("t",), owned=("t-0",))
    assert only(inputs_in([generation(5, {"a": ("t-0",)}, {"a": info})])).members[0].generation == ABSENT


def test_eager_members_remember_what_they_were_given_last() -> None:
    found = inputs_in(
        [generation(1, {"a": ("t-0", "t-1")}), generation(2, {"a": ("t-0",), "b": ("t-1",)}), generation(3, {"b": ("t-0", "t-1")})]
    )
    first, second, third = found.cases
    assert first.members == (Member(id="a", subscribed=("t",)),)
    assert second.members == (Member(id="a", subscribed=("t",), owned=("t-0", "t-1"), generation=1), Member(id="b", subscribed=("t",)))
    assert third.members == (Member(id="b", subscribed=("t",), owned=("t-1",), generation=2),)


def test_what_eager_members_had_before_the_capture_began_is_not_known() -> None:
    found = inputs_in([generation(7, {"a": ("t-0",)}), generation(8, {"a": ("t-0",)})])
    assert found.left_out == {"claims not captured": 1}
    assert [case.id for case in found.cases] == ["g/0.8"]


def test_a_new_member_claims_nothing_wherever_the_capture_began() -> None:
    events = [
        Join(group="g", member="", client="x", subscribed=("t",), seen_by="member"),
        Join(group="g", member="x-1", client="x", subscribed=("t",), seen_by="member"),
        Joined(group="g", member="x-1", client="x", generation=9, seen_by="member"),
        Sync(group="g", member="x-1", generation=9, assignment={"x-1": ("t-0",)}),
        Synced(group="g", member="x-1", generation=9, resources=("t-0",)),
    ]
    assert only(inputs_in(events)).members == (Member(id="x-1", subscribed=("t",)),)


def test_an_answer_to_another_client_tells_nothing() -> None:
    events = [
        Join(group="g", member="y-1", client="y", subscribed=("t",), owned=()),
        Joined(group="g", member="x-1", client="x", generation=1),
        Sync(group="g", member="x-1", generation=1, assignment={"x-1": ("t-0",)}),
    ]
    assert inputs_in(events).left_out == {"subscriptions not captured": 1}


def test_a_replaced_static_member_is_no_second_member() -> None:
    shares = {"i-1": ("t-0",)}
    events = [
        Sync(group="g", member="i-1", generation=1, assignment=shares),
        generation(1, shares, {"i-1": MemberInfo("i", None, ("t",), ())}),
        generation(1, {"i-2": ("t-0",)}, {"i-2": MemberInfo("i", None, ("t",), ())}),
    ]
    assert only(inputs_in(events)).members == (Member(id="i-1", instance="i", subscribed=("t",)),)


def test_partition_counts_are_those_told() -> None:
    events = [Topics(group="g", topics={"t": 8, "other": 3}), generation(1, {"a": ("t-0",)})]
    assert only(inputs_in(events)).topics == {"t": 8}


def test_a_topic_of_which_nothing_is_known_is_left_out() -> None:
    assert only(inputs_in([generation(1, {"a": ()})])).topics == {}


@pytest.mark.parametrize(
    ("partition", "why"),
    [
        ("task:c-0", "Connect workers"),
        ("nonsense", "resources that are no topic partitions"),
        ("t-12345678901234567890", "resources that are no topic partitions"),
        (f"t-{MOST_PARTITIONS}", "more partitions than can be believed"),
    ],
)
def test_resources_that_make_no_case(partition: str, why: str) -> None:
    found = inputs_in([generation(1, {"a": (partition,)})])
    assert (found.generations, found.left_out, found.cases) == (1, {why: 1}, ())


def test_other_events_and_empty_groups_count_for_nothing() -> None:
    found = inputs_in(
        [
            Assigned(group="g", generation=1, member="a", resources=("t-0",)),
            generation(2, {}),
            GenerationStarted(group="h", generation=1, members=()),
        ]
    )
    assert (found.generations, found.cases) == (0, ())


def test_groups_and_clusters_are_told_apart() -> None:
    events = [
        generation(1, {"a": ("t-0",)}),
        Assignment(group="g", cluster="east", generation=1, assignment={"a": ("t-0",)}, members={"a": SUBSCRIBED}),
    ]
    assert Counter(case.id for case in inputs_in(events).cases) == {"g/0.1": 1, "east/g/0.1": 1}


@pytest.mark.parametrize(("protocol", "owned"), [("cooperative-sticky", ()), ("range", ("t-0",)), (None, ("t-0",))])
def test_eager_members_of_a_cooperative_generation_own_nothing(protocol: str | None, owned: tuple[str, ...]) -> None:
    """The end of a rolling upgrade: both assignors are still offered, so members gave everything up before they joined."""
    info = MemberInfo(None, None, ("t",), ())
    events = [
        Assignment(group="g", generation=1, assignment={"a": ("t-0",)}, members={"a": info}, protocol="range"),
        Assignment(group="g", generation=2, assignment={"a": ("t-0",)}, members={"a": info}, protocol=protocol),
    ]
    assert inputs_in(events).cases[-1].members[0].owned == owned
