"""kafka-python's and aiokafka's logs; the lines are look-alikes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.readers.base import MalformedLine, Message
from kipcheck.conformance.readers.python_clients import READER
from kipcheck.spec.events import Event, Source

A0 = "TopicPartition(topic='a', partition=0)"
A1 = "TopicPartition(topic='a', partition=1)"


def read(*lines: str, stream: str = "17") -> list[Event]:
    """The events of ``lines``, which must all be recognised."""
    session = READER.open("p.log")
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        taken = session.feed(Message(line, None, stream, Source("p.log", number, line)))
        assert taken is not None, line
        assert any(anchor in line for anchor in READER.anchors), line
        events += taken.events
    return [*events, *session.close()]


def told(events: Sequence[Event]) -> list[tuple[object, ...]]:
    """Kind, generation, member and resources of each event."""
    return [(event.kind, event.generation, event.member, event.resources) for event in events]


def aio(body: str) -> str:
    return f"[INFO] aiokafka.consumer.group_coordinator: {body}"


def test_aiokafka_round() -> None:
    events = read(
        "[INFO] aiokafka.consumer.subscription_state: Updating subscribed topics to: frozenset({'a', 'b'})",
        aio("Discovered coordinator 0 for group g"),
        aio("Revoking previously assigned partitions set() for group g"),
        aio("(Re-)joining group g"),
        aio("Joined group 'g' (generation 1) with member_id aiokafka-0.8.0-m"),
        aio("Elected group leader -- performing partition assignments using roundrobin"),
        aio("Successfully synced group g with generation 1"),
        aio(f"Setting newly assigned partitions {{{A1}, {A0}}} for group g"),
        aio("Heartbeat failed for group g because it is rebalancing"),
        aio(f"Revoking previously assigned partitions frozenset({{{A0}, {A1}}}) for group g"),
        aio("(Re-)joining group g"),
        aio("LeaveGroup request succeeded"),
    )
    name = "aiokafka-0.8.0-m"
    assert told(events) == [
        ("join", None, None, None),
        ("joined", 1, name, None),
        ("synced", 1, name, None),
        ("synced", 1, name, ("a-0", "a-1")),
        ("assigned", 1, name, ("a-0", "a-1")),
        ("heartbeat", 1, name, None),
        ("revoked", 1, name, ("a-0", "a-1")),
        ("join", 1, name, None),
        ("leave", 1, name, None),
    ]
    assert events[0].subscribed == ("a", "b")  # type: ignore[attr-defined]
    assert {event.observer for event in events} == {"member"}


def test_several_members_in_one_process_are_not_told_apart() -> None:
    events = read(
        aio("(Re-)joining group g"),
        aio("(Re-)joining group g"),
        aio("Joined group 'g' (generation 1) with member_id m"),
        aio("Joined group 'g' (generation 1) with member_id n"),
        aio("Successfully synced group g with generation 1"),
        aio(f"Setting newly assigned partitions {{{A0}}} for group g"),
        aio("LeaveGroup request succeeded"),
    )
    assert [(event.kind, event.member) for event in events[2:]] == [("joined", "m"), ("gap", "m"), ("gap", "n"), ("joined", "n")]


def test_kafka_python_2() -> None:
    events = read(
        "Revoking previously assigned partitions set() for group g",
        "(Re-)joining group g",
        "Received member id kafka-python-m for group g; will retry join-group",
        "Failed to join group g: [Error 79] MemberIdRequiredError",
        "(Re-)joining group g",
        "Successfully joined group g <Generation 6 (member_id: kafka-python-m, protocol: range)>",
        f"Updated partition assignment: [{A0}]",
        f"Setting newly assigned partitions {{{A0}}} for group g",
        "SyncGroup for group g failed due to coordinator rebalance",
        "OffsetCommit for group g failed: [Error 22] IllegalGenerationError",
        "Heartbeat: local member_id was not recognized; this consumer needs to re-join",
        "Group g lost membership; forcibly revoking {" + A0 + "}",
        "(Re-)joining group g",
    )
    name = "kafka-python-m"
    assert told(events) == [
        ("join", None, None, None),
        ("join", None, name, None),
        ("joined", 6, name, None),
        ("synced", 6, name, ("a-0",)),
        ("assigned", 6, name, ("a-0",)),
        ("synced", 6, name, None),
        ("commit", 6, name, None),
        ("heartbeat", 6, name, None),
        ("lost", 6, name, ("a-0",)),
        ("join", None, "", None),
    ]
    assert [event.error for event in events[5:8]] == ["REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"]  # type: ignore[attr-defined]
    assert events[2].protocol == "range"  # type: ignore[attr-defined]


def test_kafka_python_1_on_python_2() -> None:
    events = read(
        "Joined group 'g' (generation 3) with member_id kafka-python-m",
        "Successfully joined group g with generation 3",
        "Setting newly assigned partitions set([TopicPartition(topic=u'a', partition=0)]) for group g",
        "Leaving consumer group (g).",
    )
    assert [event.kind for event in events] == ["joined", "synced", "synced", "assigned", "leave"]


def test_kafka_python_3_cooperative() -> None:
    events = read(
        "Successfully joined group g <Generation 1 (member_id: m, protocol: cooperative-sticky)>",
        f"Cooperative rebalance complete for group g: owned=set(), assigned={{{A0}, {A1}}}, revoked=set(), added={{{A0}, {A1}}}",
        "(Re-)joining group g",
        "Successfully joined group g <Generation 2 (member_id: m, protocol: cooperative-sticky)>",
        f"Cooperative rebalance complete for group g: owned={{{A0}, {A1}}}, assigned={{{A0}}}, revoked={{{A1}}}, added=set()",
        "Triggering follow-up rebalance for group g to complete cooperative move of 1 partition(s)",
        "Consumer poll timeout has expired. This means",
        "Leaving consumer group g (member m).",
    )
    assert told(events) == [
        ("joined", 1, "m", None),
        ("synced", 1, "m", ("a-0", "a-1")),
        ("assigned", 1, "m", ("a-0", "a-1")),
        ("join", 1, "m", None),
        ("joined", 2, "m", None),
        ("synced", 2, "m", ("a-0",)),
        ("revoked", 2, "m", ("a-1",)),
        ("assigned", 2, "m", ()),
        ("leave", 2, "m", None),
    ]
    assert events[-1].extra == {"poll_timeout": True}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("Heartbeat failed for group g: generation id is not  current.", "ILLEGAL_GENERATION"),
        ("Heartbeat failed for group g due to fenced id error: i", "FENCED_INSTANCE_ID"),
        ("Group g is rebalancing; rejoining.", "REBALANCE_IN_PROGRESS"),
        ("OffsetCommit failed for group g due to group error (UnknownMemberIdError()), will rejoin", "UNKNOWN_MEMBER_ID"),
        ("SyncGroup for group g failed due to [Error 25] UnknownMemberIdError; reseting generation.", "UNKNOWN_MEMBER_ID"),
    ],
)
def test_refusals(line: str, error: str) -> None:
    event = read("Joined group 'g' (generation 3) with member_id m", line)[-1]
    assert (event.generation, event.member, event.error) == (3, "m", error)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "line",
    [
        "[AbstractCoordinator] (Re-)joining group g",
        "Successfully joined group g with generation 3",
        "Setting newly assigned partitions [a-0] for group g",
        "an orderly line",
    ],
)
def test_not_surely_python(line: str) -> None:
    assert READER.open("p.log").feed(Message(line, None, "", Source("p.log", 1, line))) is None


@pytest.mark.parametrize(
    "line",
    [
        "Setting newly assigned partitions {TopicPartition(topic='a', parti",
        f"Revoking previously assigned partitions frozenset({{{A0}, Topic",
        f"Revoking previously assigned partitions {{{A0}}} for",
        f"Cooperative rebalance complete for group g: owned=set(), assigned={{{A0}}}, rev",
    ],
)
def test_cut_lines_are_malformed(line: str) -> None:
    with pytest.raises(MalformedLine):
        READER.open("p.log").feed(Message(line, None, "", Source("p.log", 1, line)))


SCRIPT = (
    "(Re-)joining group g",
    "Joined group 'g' (generation 3) with member_id m",
    "Joined group 'g' (generation 3) with member_id n",
    "Successfully joined group g <Generation 6 (member_id: m, protocol: range)>",
    "Successfully joined group g with generation 3",
    f"Setting newly assigned partitions {{{A0}, {A1}}} for group g",
    f"Revoking previously assigned partitions frozenset({{{A0}}}) for group g",
    f"Cooperative rebalance complete for group g: owned={{{A0}}}, assigned={{{A0}}}, revoked={{{A1}}}, added=set()",
    "Updating subscribed topics to: ('a',)",
    "Leaving consumer group g (member m).",
    "LeaveGroup request succeeded",
    "Heartbeat failed for group g: generation id is not  current.",
)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(SCRIPT), st.integers(0, 150), st.integers(0, 6), st.sampled_from(["", "}", ", ", "(", "'"]))))
def test_mutated_lines_never_raise_anything_else(edits: list[tuple[str, int, int, str]]) -> None:
    session = READER.open("p.log")
    for number, (line, start, length, inserted) in enumerate(edits, 1):
        text = line if start % 3 == 0 else line[:start] + inserted + line[start + length :]
        try:
            taken = session.feed(Message(text, None, "", Source("p.log", number, text)))
        except MalformedLine:
            continue
        for event in taken.events if taken is not None else ():
            assert event.resources is None or tuple(sorted(event.resources)) == event.resources
            assert event.kind not in ("assigned", "revoked", "lost", "owned") or (event.member and event.generation is not None)
