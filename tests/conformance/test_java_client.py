"""Java consumers' logs, release by release; the lines are look-alikes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.readers.base import MalformedLine, Message
from kipcheck.conformance.readers.java_client import READER
from kipcheck.spec.events import Event, Source

UUID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
OTHER = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"


def read(*lines: str, stream: str = "", file: str = "app.log") -> list[Event]:
    """The events of ``lines``, which must all be recognised; a line is offered again when a block ended before it."""
    session = READER.open(file)
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        taken = session.feed(Message(line, number, stream, Source(file, number, line)))
        if "Kafka version" in line:
            assert taken is None  # other readers want it too
            continue
        assert taken is not None, line
        events += taken.events
    return [*events, *session.close()]


def told(events: Sequence[Event]) -> list[tuple[object, ...]]:
    """Kind, generation, member and resources of each event."""
    return [(event.kind, event.generation, event.member, event.resources) for event in events]


def c(body: str, client: str = "app-1", group: str = "orders") -> str:
    return f"[2026-01-02 03:04:05,678] INFO [Consumer clientId={client}, groupId={group}] {body} (o.a.k.c.c.i.ConsumerCoordinator)"


def gen(generation: int, member: str = f"app-1-{UUID}", protocol: str = "range") -> str:
    return f"Generation{{generationId={generation}, memberId='{member}', protocol='{protocol}'}}"


def block(assigned: str, owned: str, added: str, revoked: str) -> list[str]:
    return [
        c("Updating assignment with").removesuffix(" (o.a.k.c.c.i.ConsumerCoordinator)"),
        f"\tAssigned partitions:                       [{assigned}]",
        f"\tCurrent owned partitions:                  [{owned}]",
        f"\tAdded partitions (assigned - owned):       [{added}]",
        f"\tRevoked partitions (owned - assigned):     [{revoked}]",
    ]


ME = f"app-1-{UUID}"
START = (
    "INFO Kafka version: 3.7.1 (org.apache.kafka.common.utils.AppInfoParser)",
    c("Subscribed to topic(s): t, s"),
    c("(Re-)joining group"),
    c(f"Request joining group due to: need to re-join with the given member-id: {ME}"),
    c("(Re-)joining group"),
)


def eager_round(generation: int, partitions: str, member: str = ME, protocol: str = "range") -> list[str]:
    return [
        c(f"Successfully joined group with generation {gen(generation, member, protocol)}"),
        c(f"Successfully synced group in generation {gen(generation, member, protocol)}"),
        c(f"Notifying assignor about the new Assignment(partitions=[{partitions}])"),
        c(f"Adding newly assigned partitions: {partitions}"),
    ]


def test_eager_member_of_3x() -> None:
    events = read(
        *START,
        c(f"Successfully joined group with generation {gen(4)}"),
        c(
            f"Finished assignment for group at generation 4: {{{ME}=Assignment(partitions=[t-0, s-1]), "
            "x=Assignment(partitions=[], userDataSize=8)}"
        ),
        c(f"Successfully synced group in generation {gen(4)}"),
        c("Notifying assignor about the new Assignment(partitions=[t-0, s-1])"),
        c("Adding newly assigned partitions: t-0, s-1"),
        c("Request joining group due to: group is already rebalancing"),
        c("Revoke previously assigned partitions t-0, s-1"),
        c("(Re-)joining group"),
        *eager_round(5, "t-0"),
    )
    assert told(events) == [
        ("join", None, "", None),
        ("join", None, ME, None),
        ("joined", 4, ME, None),
        ("sync", 4, ME, None),
        ("synced", 4, ME, None),
        ("synced", 4, ME, ("s-1", "t-0")),
        ("assigned", 4, ME, ("s-1", "t-0")),
        ("heartbeat", 4, ME, None),
        ("revoked", 4, ME, ("s-1", "t-0")),
        ("join", 4, ME, None),
        ("joined", 5, ME, None),
        ("synced", 5, ME, None),
        ("synced", 5, ME, ("t-0",)),
        ("assigned", 5, ME, ("t-0",)),
    ]
    assert events[0].subscribed == ("s", "t")  # type: ignore[attr-defined]
    assert events[3].assignment == {ME: ("s-1", "t-0"), "x": ()}  # type: ignore[attr-defined]
    assert events[7].error == "REBALANCE_IN_PROGRESS"  # type: ignore[attr-defined]
    assert all(event.extra == {"release": "3.7.1"} and event.client == "app-1" for event in events)
    assert {event.observer for event in events} == {"member"}


def test_cooperative_revocation_belongs_to_the_new_generation() -> None:
    coop = "cooperative-sticky"
    events = read(
        *START,
        c(f"Successfully joined group with generation {gen(4, protocol=coop)}"),
        *block("t-0, t-1", "", "t-0, t-1", ""),
        c("Notifying assignor about the new Assignment(partitions=[t-0, t-1])"),
        c("Adding newly assigned partitions: t-0, t-1"),
        c("(Re-)joining group"),
        c(f"Successfully joined group with generation {gen(5, protocol=coop)}"),
        *block("t-0", "t-0, t-1", "", "t-1"),
        c("Revoke previously assigned partitions t-1"),
        c("Request joining group due to: need to revoke partitions [t-1] as indicated by the current assignment and re-join"),
        c("Notifying assignor about the new Assignment(partitions=[t-0])"),
        c("Adding newly assigned partitions: "),
    )
    assert told(events)[2:] == [
        ("joined", 4, ME, None),
        ("synced", 4, ME, ("t-0", "t-1")),
        ("assigned", 4, ME, ("t-0", "t-1")),
        ("join", 4, ME, None),
        ("joined", 5, ME, None),
        ("synced", 5, ME, ("t-0",)),
        ("revoked", 5, ME, ("t-1",)),
        ("assigned", 5, ME, ()),
    ]


def test_block_of_2_4_lists_without_brackets() -> None:
    events = read(
        c("(Re-)joining group"),
        c("Successfully joined group with generation 7"),
        c("Updating assignment with").removesuffix(" (o.a.k.c.c.i.ConsumerCoordinator)"),
        "now assigned partitions: t-0, t-1",
        "compare with previously owned partitions: ",
        "newly added partitions: t-0, t-1",
        "revoked partitions: ",
        c("Adding newly assigned partitions: t-0, t-1"),
    )
    name = "app-1@app.log#1"
    assert told(events) == [
        ("join", None, None, None),
        ("joined", 7, name, None),
        ("synced", 7, name, ("t-0", "t-1")),
        ("assigned", 7, name, ("t-0", "t-1")),
    ]


def test_block_tells_what_was_owned_when_lines_are_missing() -> None:
    coop = "cooperative-sticky"
    events = read(
        *START,
        c(f"Successfully joined group with generation {gen(4, protocol=coop)}"),
        c("(Re-)joining group"),
        c(f"Successfully joined group with generation {gen(5, protocol=coop)}"),
        *block("t-0, t-1", "t-0", "t-1", ""),
        c("Adding newly assigned partitions: t-1"),
    )
    assert told(events)[-3:] == [("owned", 4, ME, ("t-0",)), ("synced", 5, ME, ("t-0", "t-1")), ("assigned", 5, ME, ("t-1",))]


def test_interrupted_block_gives_no_event() -> None:
    lines = block("t-0", "", "t-0", "")
    events = read(*START, c(f"Successfully joined group with generation {gen(4)}"), *lines[:3], c("Adding newly assigned partitions: t-0"))
    assert told(events)[-1] == ("assigned", 4, ME, ("t-0",))
    assert [event.kind for event in events].count("synced") == 0


def test_static_member_and_its_instance() -> None:
    line = c(f"Successfully joined group with generation {gen(4)}").replace("[Consumer ", "[Consumer instanceId=i-1, ")
    assert [event.instance for event in read(line)] == ["i-1"]


def test_member_of_0_10_without_client_id() -> None:
    old = "[INFO ] [ConsumerCoordinator:onJoinPrepare:280] "
    events = read(
        old + "Revoking previously assigned partitions [] for group g",
        old + "(Re-)joining group g",
        old + "Successfully joined group g with generation 1",
        old + "Setting newly assigned partitions [t-0, t-1] for group g",
        old + "Attempt to heart beat failed for group g since it is rebalancing.",
        old + "Revoking previously assigned partitions [t-0, t-1] for group g",
        old + "(Re-)joining group g",
        old + "Successfully joined group g with generation 2",
    )
    name = "g@app.log#1"
    assert told(events) == [
        ("join", None, None, None),
        ("joined", 1, name, None),
        ("assigned", 1, name, ("t-0", "t-1")),
        ("heartbeat", 1, name, None),
        ("revoked", 1, name, ("t-0", "t-1")),
        ("join", 1, name, None),
        ("joined", 2, name, None),
    ]
    assert {event.client for event in events} == {None}


def test_new_process_of_0_10_does_not_inherit() -> None:
    old = "AbstractCoordinator "
    events = read(
        old + "(Re-)joining group g",
        old + "Successfully joined group g with generation 1",
        old + "Setting newly assigned partitions [t-0] for group g",
        old + "Revoking previously assigned partitions [] for group g",
        old + "(Re-)joining group g",
        old + "Successfully joined group g with generation 1",
    )
    assert told(events)[3:] == [
        ("gap", 1, "g@app.log#1", None),
        ("join", None, None, None),
        ("joined", 1, "g@app.log#2", None),
    ]


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("Adding newly assigned partitions: t-0, my.topic_x-12", ("my.topic_x-12", "t-0")),
        ("Adding newly assigned partitions: [t-0]", ("t-0",)),
        ("Adding newly assigned partitions: []", ()),
        ("Adding newly assigned partitions:", ()),
        ("Adding newly assigned partitions:  (org.apache.kafka.X:1)", ()),
        ("Adding newly assigned partitions:    [org.apache.kafka.X]", ()),
        ("Adding newly assigned partitions: t-0   [org.apache.kafka.X]", ("t-0",)),
        ("Setting newly assigned partitions: t-0 (org.apache.kafka.X)", ("t-0",)),
        ("Setting newly assigned partitions [t-0] (org.apache.kafka.X)", ("t-0",)),
    ],
)
def test_lists_in_every_layout(line: str, taken: tuple[str, ...]) -> None:
    prefix = "[Consumer clientId=app-1, groupId=orders] "
    assert read(c("Successfully joined group with generation 3"), prefix + line)[-1].resources == taken


def test_the_leaders_map_names_members_that_do_not_log_their_id() -> None:
    events = read(
        c("(Re-)joining group"),
        c("(Re-)joining group", client="app-2"),
        c(
            f"Finished assignment for group at generation 3: {{app-1-{UUID}=Assignment(partitions=[t-0]), "
            f"app-2-{OTHER}=Assignment(partitions=[])}}"
        ),
        c("Successfully joined group with generation 3", client="app-2"),
        c("Successfully joined group with generation 3"),
    )
    assert told(events)[2:] == [("sync", 3, ME, None), ("joined", 3, f"app-2-{OTHER}", None), ("joined", 3, ME, None)]


def test_leader_of_2_4_prints_objects() -> None:
    events = read(
        c("(Re-)joining group"),
        c(
            f"Finished assignment for group at generation 3: {{{ME}=org.apache.kafka.clients.consumer.ConsumerPartitionAssignor"
            "$Assignment@1f}"
        ),
        c("Successfully joined group with generation 3"),
    )
    assert told(events)[1:] == [("sync", 3, ME, None), ("joined", 3, ME, None)]
    assert events[1].assignment is None  # type: ignore[attr-defined]


def test_an_invented_id_stays_when_the_leave_names_the_member() -> None:
    events = read(
        c("(Re-)joining group"),
        c("Successfully joined group with generation 3"),
        c(f"Member {ME} sending LeaveGroup request to coordinator b:9092 (id: 1 rack: null)"),
        c("(Re-)joining group"),
        c("Successfully joined group with generation 5"),
    )
    assert told(events)[1:] == [
        ("joined", 3, "app-1@app.log#1", None),
        ("leave", 3, "app-1@app.log#1", None),
        ("join", None, "", None),
        ("joined", 5, "app-1@app.log#2", None),
    ]


def test_missing_revocation_of_an_eager_member_is_a_gap() -> None:
    events = read(*START, *eager_round(4, "t-0"), c("(Re-)joining group"), *eager_round(5, "t-1"))
    assert told(events)[-2:] == [("gap", 4, ME, None), ("assigned", 5, ME, ("t-1",))]


def test_missing_join_response_gives_no_wrong_generation() -> None:
    lines = eager_round(5, "t-1")
    events = read(*START, *eager_round(4, "t-0"), c("Revoke previously assigned partitions t-0"), c("(Re-)joining group"), *lines[2:])
    assert told(events)[-1] == ("gap", 4, ME, None)
    assert not [event for event in events if event.resources == ("t-1",)]


def test_part_of_an_eager_assignment_revoked_is_a_gap() -> None:
    events = read(*START, *eager_round(4, "t-0, t-1"), c("Revoke previously assigned partitions t-0"))
    assert told(events)[-1] == ("gap", 4, ME, None)


def test_revoked_what_was_never_taken_is_a_gap() -> None:
    events = read(*START, *eager_round(4, "t-0"), c("Revoke previously assigned partitions t-7"))
    assert told(events)[-1] == ("gap", 4, ME, None)


def test_poll_timeout_marks_leave_and_lost() -> None:
    events = read(
        *START,
        *eager_round(4, "t-0"),
        c("consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer"),
        c(f"Member {ME} sending LeaveGroup request to coordinator b:9092 (id: 1 rack: null) due to consumer poll timeout has expired."),
        c("Resetting generation and member id due to: consumer pro-actively leaving the group"),
        c("Giving away all assigned partitions as lost since generation/memberID has been reset,indicating"),
        c("Lost previously assigned partitions t-0"),
        c("(Re-)joining group"),
    )
    assert told(events)[-3:] == [("leave", 4, ME, None), ("lost", 4, ME, ("t-0",)), ("join", None, "", None)]
    assert [event.extra.get("poll_timeout") for event in events[-3:]] == [True, True, None]
    assert events[-3].reason == "consumer poll timeout has expired."  # type: ignore[attr-defined]


def test_closed_in_order() -> None:
    events = read(
        *START,
        *eager_round(4, "t-0"),
        c("Revoke previously assigned partitions t-0"),
        c(f"Member {ME} sending LeaveGroup request to coordinator b:9092 (id: 1 rack: null) due to the consumer is being closed"),
        "INFO App info kafka.consumer for app-1 unregistered (org.apache.kafka.common.utils.AppInfoParser)",
        c("(Re-)joining group"),
    )
    assert told(events)[-4:] == [
        ("revoked", 4, ME, ("t-0",)),
        ("leave", 4, ME, None),
        ("closed", 4, ME, None),
        ("join", None, "", None),
    ]
    assert events[-3].reason == "the consumer is being closed"  # type: ignore[attr-defined]


def test_restart_with_the_same_client_id_does_not_inherit() -> None:
    again = f"app-1-{OTHER}"
    events = read(*START, *eager_round(4, "t-0"), *START[:3], *eager_round(6, "t-0", again))
    assert ("gap", 4, ME, None) in told(events)
    assert told(events)[-1] == ("assigned", 6, again, ("t-0",))


def test_subscribing_anew_is_no_restart() -> None:
    events = read(*START, *eager_round(4, "t-0"), START[1], c("Revoke previously assigned partitions t-0"))
    assert told(events)[-1] == ("revoked", 4, ME, ("t-0",))


def test_two_processes_under_one_client_id() -> None:
    other = f"app-1-{OTHER}"
    events = read(
        *START,
        *eager_round(4, "t-0"),
        c("Revoke previously assigned partitions t-0"),
        c("(Re-)joining group"),
        c(f"Successfully joined group with generation {gen(5)}"),
        c(f"Successfully joined group with generation {gen(5, other)}"),
        c("Adding newly assigned partitions: t-0"),
        c("Adding newly assigned partitions: t-1"),
        c(f"Member {other} sending LeaveGroup request to coordinator b:1 (id: 1 rack: null) due to the consumer is being closed"),
        c("(Re-)joining group"),
        *eager_round(6, "t-0"),
    )
    assert told(events)[9:] == [
        ("gap", 5, ME, None),
        ("gap", 5, other, None),
        ("joined", 5, other, None),
        ("leave", 5, other, None),
        ("join", 5, ME, None),
        ("joined", 6, ME, None),
        ("synced", 6, ME, None),
        ("synced", 6, ME, ("t-0",)),
        ("assigned", 6, ME, ("t-0",)),
    ]


def test_two_members_without_ids() -> None:
    old = "AbstractCoordinator "
    events = read(
        old + "(Re-)joining group g",
        old + "(Re-)joining group g",
        old + "Successfully joined group g with generation 1",
        old + "Successfully joined group g with generation 1",
        old + "Setting newly assigned partitions [t-0] for group g",
        old + "Setting newly assigned partitions [t-1] for group g",
    )
    assert [event.kind for event in events] == ["join", "join", "joined", "gap"]


@pytest.mark.parametrize(
    ("line", "error", "generation", "member"),
    [
        ("Attempt to heartbeat failed since group is rebalancing", "REBALANCE_IN_PROGRESS", 4, ME),
        ("Attempt to heartbeat failed since generation 3 is not current", "ILLEGAL_GENERATION", 3, ME),
        ("Attempt to heartbeat failed for since member id x is not valid.", "UNKNOWN_MEMBER_ID", 4, ME),
        (
            f"Attempt to heartbeat with {gen(4, 'old')} and group instance id Optional[i] failed due to FENCED_INSTANCE_ID, resetting",
            "FENCED_INSTANCE_ID",
            4,
            "old",
        ),
        (
            f"JoinGroup failed: The coordinator is not aware of this member. Need to re-join the group. Sent generation was {gen(3)}",
            "UNKNOWN_MEMBER_ID",
            3,
            ME,
        ),
        (
            f"SyncGroup failed: The group began another rebalance. Need to re-join the group. Sent generation was {gen(4)}",
            "REBALANCE_IN_PROGRESS",
            4,
            ME,
        ),
        (f"OffsetCommit failed with {gen(3)}: Specified group generation id is not valid.", "ILLEGAL_GENERATION", 3, ME),
        (
            "Join group failed with org.apache.kafka.common.errors.MemberIdRequiredException: The group member needs",
            "MEMBER_ID_REQUIRED",
            None,
            "",
        ),
    ],
)
def test_refusals(line: str, error: str, generation: int | None, member: str) -> None:
    event = read(*START, *eager_round(4, ""), c(line))[-1]
    assert (event.error, event.generation, event.member) == (error, generation, member)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "line",
    [
        f"Attempt to heartbeat with stale {gen(3)} and group instance id Optional.empty failed due to UNKNOWN_MEMBER_ID, ignoring",
        "Attempt to heartbeat failed since coordinator b:9092 (id: 1 rack: null) is either not started or not valid",
        "Resetting generation due to: encountered ILLEGAL_GENERATION from HEARTBEAT response",
        "Discovered group coordinator b:9092 (id: 1 rack: null)",
        "Need to revoke partitions [t-0] and re-join the group",
        f"JoinGroup failed: something new. Sent generation was {gen(3)}",
    ],
)
def test_recognised_without_events(line: str) -> None:
    assert told(read(*START, *eager_round(4, ""), c(line))) == told(read(*START, *eager_round(4, "")))


def test_streams_and_probing() -> None:
    client = "app-StreamThread-1-consumer"
    thread = "INFO stream-thread [app-StreamThread-1-consumer] "
    events = read(
        c("(Re-)joining group", client),
        thread + "Requested to schedule next probing rebalance at 2026 to try for a more balanced assignment.",
        "INFO stream-thread [app-StreamThread-1] Triggering the followup rebalance scheduled for 2026.",
        c("(Re-)joining group", client),
        thread + "Requested to schedule immediate rebalance for new tasks to be safely revoked from current owner.",
        "INFO stream-thread [app-StreamThread-1] Triggering the followup rebalance scheduled for 0.",
        c("(Re-)joining group", client),
        "INFO stream-thread [app-StreamThread-1] Handle new assignment with:",
        "\tNew active tasks: [0_0]",
        "\tNew standby tasks: []",
    )
    assert [event.extra for event in events] == [{"streams": True}, {"streams": True, "probing": True}, {"streams": True}]


def test_kip_848_is_out_of_scope_once() -> None:
    events = read(
        "[consumer_background_thread] INFO " + c("Member abc with epoch 1 transitioned from STABLE to RECONCILING."),
        c("Reconciling assignment with local epoch 1"),
        "\tMember:                                    abc",
        "\tAssigned partitions:                       [xyz:t-0]",
        "\tCurrent owned partitions:                  []",
        "\tAdded partitions (assigned - owned):       [t-0]",
        "\tRevoked partitions (owned - assigned):     []",
        c("Adding newly assigned partitions: [t-0]"),
    )
    assert [(event.kind, event.group, event.member) for event in events] == [("gap", "orders", None)]


def test_schema_registry_is_recognised_without_events() -> None:
    prefix = "INFO [Schema registry clientId=sr-1, groupId=schema-registry] "
    assert read(prefix + "(Re-)joining group", prefix + f"Successfully joined group with generation {gen(1, 'sr-1-x', 'sr')}") == []


@pytest.mark.parametrize(
    "line",
    [
        "[Consumer clientId=a, groupId=null] (Re-)joining group",
        "[Consumer clientId=a, groupId=g] Setting offset for partition t-0 to the committed offset FetchPosition{offset=1}",
        "[Producer clientId=a] Closing the Kafka producer",
        "(Re-)joining group g",
        "someone is joining group g",
        "stream-thread [a] Processed 3 total records",
    ],
)
def test_irrelevant(line: str) -> None:
    assert READER.open("app.log").feed(Message(line, None, "", Source("app.log", 1, line))) is None


@pytest.mark.parametrize(
    "body",
    [
        "Adding newly assigned partitions: t-0, t-",
        "Adding newly assigned partitions: [t-0, t-1",
        "Revoke previously assigned partitions t-0, ",
        "Successfully joined group with generation Generation{generationId=4, mem",
        "Successfully synced group in generation Generation{generationId=4",
        "Finished assignment for group at generation 3: {a=Assignment(partitions=[t-0]), b=Assig",
        "Notifying assignor about the new Assignment(partitions=[t-0",
    ],
)
def test_cut_lines_are_malformed(body: str) -> None:
    line = f"[Consumer clientId=a, groupId=g] {body}"
    with pytest.raises(MalformedLine):
        READER.open("app.log").feed(Message(line, None, "", Source("app.log", 1, line)))


SCRIPT = (
    *START,
    *eager_round(4, "t-0, t-1"),
    *block("t-0", "t-0, t-1", "", "t-1"),
    c("Revoke previously assigned partitions t-0, t-1"),
    c("Lost previously assigned partitions t-0"),
    c(f"Finished assignment for group at generation 4: {{{ME}=Assignment(partitions=[t-0])}}"),
    c(f"Member {ME} sending LeaveGroup request to coordinator b:1 (id: 1 rack: null) due to the consumer is being closed"),
    c(f"Successfully joined group with generation {gen(5, f'app-1-{OTHER}')}"),
    c("Successfully joined group with generation 6"),
    "AbstractCoordinator (Re-)joining group g",
    "AbstractCoordinator Successfully joined group g with generation 1",
    "AbstractCoordinator Setting newly assigned partitions [t-0] for group g",
    "INFO App info kafka.consumer for app-1 unregistered",
    "stream-thread [app-1] Requested to schedule probing rebalance for 1 ms.",
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(SCRIPT), st.integers(0, 400), st.integers(0, 400), st.sampled_from(["", "}", "[", "-1", ", ", "\n", "é"]))
    )
)
def test_mutated_lines_never_raise_anything_else(edits: list[tuple[str, int, int, str]]) -> None:
    session = READER.open("app.log")
    for number, (line, start, length, inserted) in enumerate(edits, 1):
        text = line if start % 3 == 0 else line[:start] + inserted + line[start + length % 7 :]
        try:
            taken = session.feed(Message(text, None, "", Source("app.log", number, text)))
        except MalformedLine:
            continue
        for event in taken.events if taken is not None else ():
            assert event.group
            assert event.resources is None or tuple(sorted(event.resources)) == event.resources
            assert event.kind not in ("assigned", "revoked", "lost", "owned") or (event.member and event.generation is not None)


def test_every_recognised_line_holds_an_anchor() -> None:
    session = READER.open("app.log")
    for number, line in enumerate(SCRIPT, 1):
        taken = session.feed(Message(line, None, "", Source("app.log", number, line)))
        assert taken is None or line.startswith("\t") or any(anchor in line for anchor in READER.anchors)
