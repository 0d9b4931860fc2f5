"""Connect workers' logs, release by release; the lines are look-alikes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.readers.base import MalformedLine, Message
from kipcheck.conformance.readers.connect import READER
from kipcheck.spec.events import Event, Source

ME = "w-1-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
LEADER = "w-2-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"


def read(*lines: str) -> list[Event]:
    """The events of ``lines``, which must all be recognised."""
    session = READER.open("w.log")
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        taken = session.feed(Message(line, number, "", Source("w.log", number, line)))
        if "Kafka version" in line:
            assert taken is None  # other readers want it too
            continue
        assert taken is not None, line
        assert any(anchor in line for anchor in READER.anchors)
        events += taken.events
    return [*events, *session.close()]


def told(events: Sequence[Event]) -> list[tuple[object, ...]]:
    """Kind, generation, member and resources of each event."""
    return [(event.kind, event.generation, event.member, event.resources) for event in events]


def w(body: str) -> str:
    return f"[2026-01-02 03:04:05,678] INFO [Worker clientId=w-1, groupId=connect] {body} (org.apache.kafka.connect.runtime.X:12)"


def named(generation: int, member: str = ME) -> str:
    return w(
        f"Successfully joined group with generation Generation{{generationId={generation}, memberId='{member}', protocol='sessioned'}}"
    )


def done(generation: int, connectors: str, tasks: str, gone: str = "", gone_tasks: str = "", delay: int = 0, error: int = 0) -> str:
    return w(
        f"Joined group at generation {generation} with protocol version 2 and got assignment: Assignment{{error={error}, "
        f"leader='{LEADER}', "
        f"leaderUrl='http://h:8083/', offset=7, connectorIds=[{connectors}], taskIds=[{tasks}], revokedConnectorIds=[{gone}], "
        f"revokedTaskIds=[{gone_tasks}], delay={delay}}} with rebalance delay: {delay}"
    )


def test_round_with_revocation() -> None:
    events = read(
        "\tscheduled.rebalance.max.delay.ms = 60000",
        "INFO Kafka version: 3.6.0 (org.apache.kafka.common.utils.AppInfoParser:119)",
        w("Herder starting"),
        w("Rebalance started"),
        w("(Re-)joining group"),
        named(3),
        w(f"Successfully synced group in generation Generation{{generationId=3, memberId='{ME}', protocol='sessioned'}}"),
        w("Finished stopping tasks in preparation for rebalance"),
        done(3, "a", "a-0, b-1", "b", "b-0", delay=1500, error=1),
    )
    assert told(events) == [
        ("join", None, "", None),
        ("joined", 3, ME, None),
        ("synced", 3, ME, None),
        ("revoked", 3, ME, ("connector:b", "task:b-0")),
        ("joined", 3, ME, None),
        ("synced", 3, ME, ("connector:a", "task:a-0", "task:b-1")),
        ("owned", 3, ME, ("connector:a", "task:a-0", "task:b-1")),
    ]
    assert events[4].leader == LEADER  # type: ignore[attr-defined]
    synced = events[5]
    assert (synced.revoked, synced.delay_ms) == (("connector:b", "task:b-0"), 1500)  # type: ignore[attr-defined]
    assert synced.extra == {"release": "3.6.0", "max_delay_ms": 60000, "protocol_version": 2, "error": 1, "offset": 7}
    assert {event.observer for event in events} == {"member"}


def test_nothing_revoked() -> None:
    events = read(w("(Re-)joining group"), named(3), done(3, "", ""))
    assert told(events)[2:] == [("joined", 3, ME, None), ("synced", 3, ME, ()), ("owned", 3, ME, ())]
    assert events[3].revoked == ()  # type: ignore[attr-defined]


def test_worker_of_2_4_goes_by_an_invented_id() -> None:
    events = read(w("(Re-)joining group"), w("Successfully joined group with generation 5"), done(5, "a", "a-0"))
    assert {event.member for event in events[1:]} == {"w-1@w.log#1"}


def test_eager_worker_of_2_2() -> None:
    line = w(
        "Joined group and got assignment: Assignment{error=0, leader='x', leaderUrl='http://h:8083/', offset=7, "
        "connectorIds=[a], taskIds=[a-0]}"
    )
    events = read(
        w("(Re-)joining group"),
        w("Successfully joined group with generation 5"),
        line,
        w("Finished stopping tasks in preparation for rebalance"),
        w("(Re-)joining group"),
    )
    name = "w-1@w.log#1"
    units = ("connector:a", "task:a-0")
    assert told(events)[1:] == [
        ("joined", 5, name, None),
        ("joined", 5, name, None),
        ("synced", 5, name, units),
        ("owned", 5, name, units),
        ("revoked", 5, name, units),
        ("join", 5, name, None),
    ]
    assert (events[3].revoked, events[3].delay_ms) == (None, None)  # type: ignore[attr-defined]


def test_cut_off_from_the_coordinator() -> None:
    line = w("Broker coordinator was unreachable for 3000ms. Revoking previous assignment Assignment{} to avoid")
    events = read(w("(Re-)joining group"), named(3), done(3, "a", "a-0"), line, line)
    assert told(events)[5:] == [("lost", 3, ME, ("connector:a", "task:a-0"))]


def test_graceful_stop() -> None:
    events = read(
        w("(Re-)joining group"),
        named(3),
        done(3, "a", "a-0"),
        w("Herder stopping"),
        w("Stopping connectors and tasks that are still assigned to this worker."),
        w(f"Member {ME} sending LeaveGroup request to coordinator b:9092 (id: 1 rack: null) due to the consumer is being closed"),
        w("Resetting generation and member id due to: consumer pro-actively leaving the group"),
        w("Herder stopped"),
    )
    assert told(events)[5:] == [
        ("revoked", 3, ME, ("connector:a", "task:a-0")),
        ("leave", 3, ME, None),
        ("closed", 3, ME, None),
    ]
    assert events[6].reason == "the consumer is being closed"  # type: ignore[attr-defined]


def test_leave_for_a_poll_timeout_stops_nothing() -> None:
    events = read(
        w("(Re-)joining group"),
        named(3),
        done(3, "a", "a-0"),
        w("worker poll timeout has expired. The last known action being performed by the worker is : x"),
        w(f"Member {ME} sending LeaveGroup request to coordinator b:9092 (id: 1 rack: null) due to consumer poll timeout has expired."),
        named(5, "w-1-new"),
    )
    assert [event.kind for event in events[5:]] == ["leave", "gap", "joined"]
    assert events[5].extra == {"poll_timeout": True}
    assert (events[6].member, events[7].member) == (ME, "w-1-new")


def test_crashed_worker_is_not_inherited() -> None:
    events = read(w("(Re-)joining group"), named(3), done(3, "a", "a-0"), w("Herder starting"), w("(Re-)joining group"))
    assert told(events)[5:] == [("gap", 3, ME, None), ("join", None, "", None)]


def test_round_without_its_join_is_a_gap() -> None:
    events = read(w("(Re-)joining group"), named(3), done(3, "a", "a-0"), done(4, "a", ""), done(5, "a", ""))
    assert told(events)[5:] == [("gap", 3, ME, None)]


def test_two_workers_under_one_client_id() -> None:
    events = read(w("(Re-)joining group"), named(3), named(3, LEADER), done(3, "a", "a-0"), done(3, "b", "b-0"))
    assert [event.kind for event in events] == ["join", "joined", "gap", "gap", "joined"]


def test_names_with_dashes_blanks_and_commas() -> None:
    events = read(
        w("Starting connector my, odd-1 one"),
        w("(Re-)joining group"),
        named(3),
        done(3, "my, odd-1 one, plain", "my, odd-1 one-0, plain-1, other, comma-12"),
    )
    assert events[-1].resources == (
        "connector:my, odd-1 one",
        "connector:plain",
        "task:my, odd-1 one-0",
        "task:other, comma-12",
        "task:plain-1",
    )


@pytest.mark.parametrize(
    "line",
    [
        w("Starting connectors and tasks using config offset 7"),
        w("Handling task config update by stopping tasks [a-0], which will be restarted"),
        "[a|task-0] ERROR Graceful stop of task a-0 failed. (org.apache.kafka.connect.runtime.Worker:1074)",
    ],
)
def test_recognised_without_events(line: str) -> None:
    assert read(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "[Worker clientId=w-1, groupId=connect] Session key updated",
        "[Consumer clientId=connector-consumer-a-0, groupId=connect-a] (Re-)joining group",
    ],
)
def test_irrelevant(line: str) -> None:
    assert READER.open("w.log").feed(Message(line, None, "", Source("w.log", 1, line))) is None


@pytest.mark.parametrize("cut", range(90, 330, 7))
def test_cut_rounds_are_malformed(cut: int) -> None:
    line = done(3, "a, b", "a-0, b-1", "c", "c-0", delay=7)
    line = line[: line.index("Joined group") + cut]
    session = READER.open("w.log")
    if "delay=7}" in line:
        assert session.feed(Message(line, None, "", Source("w.log", 1, line))) is not None
    else:
        with pytest.raises(MalformedLine):
            session.feed(Message(line, None, "", Source("w.log", 1, line)))


SCRIPT = (
    w("(Re-)joining group"),
    named(3),
    done(3, "a, b", "a-0, b-1", "c", "c-0", delay=7),
    w("Stopping connectors and tasks that are still assigned to this worker."),
    w("Finished stopping tasks in preparation for rebalance"),
    w(f"Member {ME} sending LeaveGroup request to coordinator b:9092 due to x"),
    w("Herder stopped"),
    w("Successfully joined group with generation 5"),
    named(4, LEADER),
    done(5, "", ""),
)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(SCRIPT), st.integers(0, 500), st.integers(0, 6), st.sampled_from(["", "]", ", ", "}", "'", "-9"])))
)
def test_mutated_lines_never_raise_anything_else(edits: list[tuple[str, int, int, str]]) -> None:
    session = READER.open("w.log")
    for number, (line, start, length, inserted) in enumerate(edits, 1):
        text = line if start % 3 == 0 else line[:start] + inserted + line[start + length :]
        try:
            taken = session.feed(Message(text, None, "", Source("w.log", number, text)))
        except MalformedLine:
            continue
        for event in taken.events if taken is not None else ():
            assert event.resources is None or tuple(sorted(event.resources)) == event.resources
            assert event.kind not in ("revoked", "lost", "owned") or (event.member and event.generation is not None)
