"""Conversations are written in librdkafka 2.16's formats, checked against its mock cluster when the reader was written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.readers.base import MalformedLine, Message
from kipcheck.conformance.readers.librdkafka import READER
from kipcheck.spec.events import Commit, Event, Gap, Heartbeat, Joined, Leave, Lost, Source, Synced

GROUP = 'Group "shop"'
REBALANCING = "Broker: Group rebalance in progress"


def say(facility: str, text: str, name: str = "app#consumer-1", thread: str = "main") -> str:
    return f"%7|1700000000.123|{facility}|{name}| [thrd:{thread}]: {text}"


def listed(facility: str, *partitions: str, name: str = "app#consumer-1") -> list[str]:
    items = [say(facility, f" {topic} [{number}] offset INVALID", name) for topic, _, number in (p.rpartition("-") for p in partitions)]
    return [say(facility, f"List with {len(partitions)} partition(s):", name), *items]


def state(before: str, after: str) -> str:
    return say("CGRPJOINSTATE", f"{GROUP} changed join state {before} -> {after} (state up)")


def response(generation: int, member: str = "m-1", error: str = "(no error)", name: str = "app#consumer-1") -> str:
    text = f"JoinGroup response: GenerationId {generation}, Protocol range, LeaderId m-9, my MemberId {member}, member metadata count 0: "
    return say("JOINGROUP", text + error, name)


def joins(member: str = "m-1") -> str:
    return say("JOIN", f'127.0.0.1:9092/1: Joining group "shop" with 1 subscribed topic(s) and member id "{member}"')


def synced(*target: str) -> list[str]:
    return [say("SYNCGROUP", "SyncGroup response: Success (61 bytes of MemberState data)"), *listed("ASSIGNMENT", *target)]


def takes(*everything: str, former: int = 0, added: int = 0) -> list[str]:
    """A cooperative member's incremental assign; ``everything`` is its group assignment afterwards."""
    return [
        say(
            "COOPASSIGN", f"{GROUP}: incremental assignment: {added} newly added, 0 revoked partitions based on assignment of 2 partitions"
        ),
        say("ASSIGNMENT", f"{GROUP}: {added} partition(s) being added to group assignment of {former} partition(s)"),
        say("ASSIGNMENT", f"{GROUP}: setting group assignment to {len(everything)} partition(s)"),
        *listed("GRPASSIGNMENT", *everything),
        state("wait-assign-call", "steady"),
    ]


def gives(*rest: str, revoked: int) -> list[str]:
    """A cooperative member's incremental unassign; ``rest`` is its group assignment afterwards."""
    return [
        say(
            "COOPASSIGN",
            f"{GROUP}: incremental assignment: 0 newly added, {revoked} revoked partitions based on assignment of 1 partitions",
        ),
        say("ASSIGNMENT", f"{GROUP}: {revoked} partition(s) being removed from group assignment of {revoked + len(rest)} partition(s)"),
        *listed("GRPASSIGNMENT", *rest),
        state("wait-unassign-call", "wait-incr-unassign-to-complete"),
        state("wait-incr-unassign-to-complete", "wait-assign-call"),
    ]


def eager_takes(*everything: str) -> list[str]:
    return [
        say("ASSIGN", f"{GROUP}: delegating assign of {len(everything)} partition(s) to application on queue q: new assignment"),
        say("ASSIGNMENT", f"{GROUP}: setting group assignment to {len(everything)} partition(s)"),
        *listed("GRPASSIGNMENT", *everything),
        state("wait-assign-call", "steady"),
    ]


GIVES_ALL = [
    say("ASSIGNMENT", f"{GROUP}: clearing group assignment"),
    state("wait-unassign-call", "wait-unassign-to-complete"),
    say("UNASSIGN", f"{GROUP}: unassign done in state up (join-state wait-unassign-to-complete)"),
    state("wait-unassign-to-complete", "init"),
]
LEAVES = [
    say("MEMBERID", f'{GROUP}: updating member id "m-1" -> ""'),
    say("LEAVE", f"{GROUP}: leave (in state up)"),
    say("LEAVEGROUP", "LeaveGroup response received in state up"),
]
STARTS = [
    say("MEMBERID", f'{GROUP}: updating member id "(not-set)" -> ""', thread="app"),
    say("INIT", "librdkafka v2.16.0 (0x21000ff) app#consumer-1 initialized (debug 0x800)", thread="app"),
]


def read(lines: Iterable[str], stream: str = "") -> list[Event]:
    session = READER.open("app.log")
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        taken = session.feed(Message(line, 5, stream, Source("app.log", number, line)))
        events += taken.events if taken else ()
    return [*events, *session.close()]


def story(events: Sequence[Event]) -> list[tuple[str, int | None, tuple[str, ...] | None]]:
    return [(event.kind, event.generation, event.resources) for event in events]


def test_cooperative_hand_over() -> None:
    events = read(
        [
            *STARTS,
            joins(""),
            response(2),
            *synced("orders-0", "orders-1"),
            *takes("orders-0", "orders-1", added=2),
            joins(),
            response(3),
            *synced("orders-1"),
            *gives("orders-1", revoked=1),
            *takes("orders-1", former=1),
            joins(),
            response(4),
            *synced("orders-1", "pay.ments-7"),
            *takes("orders-1", "pay.ments-7", former=1, added=1),
        ]
    )
    assert story(events) == [
        ("join", None, None),
        ("joined", 2, None),
        ("synced", 2, ("orders-0", "orders-1")),
        ("assigned", 2, ("orders-0", "orders-1")),
        ("join", 2, None),
        ("joined", 3, None),
        ("synced", 3, ("orders-1",)),
        ("revoked", 3, ("orders-0",)),
        ("assigned", 3, ()),
        ("join", 3, None),
        ("joined", 4, None),
        ("synced", 4, ("orders-1", "pay.ments-7")),
        ("assigned", 4, ("pay.ments-7",)),
    ]
    assert {event.member for event in events[1:]} == {"m-1"}
    assert {(event.group, event.client, event.observer, event.ts) for event in events} == {("shop", "app", "member", 5)}


def test_eager_rebalance_and_close() -> None:
    events = read(
        [
            *STARTS,
            joins(""),
            response(2),
            *synced("orders-0", "orders-1"),
            *eager_takes("orders-0", "orders-1"),
            *GIVES_ALL,
            joins(),
            response(3),
            *synced("orders-1"),
            *eager_takes("orders-1"),
            *GIVES_ALL[:3],
            *LEAVES,
            GIVES_ALL[3],
            say("CLOSE", "Consumer closed", thread="app"),
        ]
    )
    assert story(events)[3:] == [
        ("assigned", 2, ("orders-0", "orders-1")),
        ("revoked", 2, ("orders-0", "orders-1")),
        ("join", 2, None),
        ("joined", 3, None),
        ("synced", 3, ("orders-1",)),
        ("assigned", 3, ("orders-1",)),
        ("revoked", 3, ("orders-1",)),
        ("leave", 3, None),
        ("closed", 3, None),
    ]


MEMBER_OF_2 = [*STARTS, joins(""), response(2), *synced("orders-0"), *takes("orders-0", added=1)]


def test_revoking_everything_prints_no_list() -> None:
    removed = f"{GROUP}: 1 partition(s) being removed from group assignment of 1 partition(s)"
    events = read([*MEMBER_OF_2, say("ASSIGNMENT", removed), *GIVES_ALL])
    assert story(events)[4:] == [("revoked", 2, ("orders-0",))]


def test_poll_timeout_loses_the_partitions() -> None:
    late = "Application maximum poll interval (6000ms) exceeded by 90ms (adjust max.poll.interval.ms): leaving group"
    lost = f"{GROUP}: current assignment of 1 partition(s) lost: max.poll.interval.ms exceeded: revoking assignment and rejoining"
    events = read([*MEMBER_OF_2, say("MAXPOLL", late), *LEAVES, say("LOST", lost), *GIVES_ALL])
    leave, gone = events[4:]
    assert isinstance(leave, Leave)
    assert isinstance(gone, Lost)
    assert (gone.member, gone.generation, gone.resources) == ("m-1", 2, ("orders-0",))
    assert leave.extra["poll_timeout"] is True


def test_application_not_asked_yet_does_not_own() -> None:
    asked = takes("orders-0", added=1)[:-1]
    events = read(
        [*STARTS, joins(""), response(2), *synced("orders-0"), *asked, state("wait-assign-call", "wait-unassign-call"), *GIVES_ALL]
    )
    assert {event.kind for event in events} == {"join", "joined", "synced"}


def test_refusals() -> None:
    heartbeat = f"{GROUP} heartbeat error response in state up (join-state steady, 1 partition(s) assigned): {REBALANCING}"
    events = read(
        [
            *MEMBER_OF_2,
            say("HEARTBEAT", heartbeat),
            say("HEARTBEAT", heartbeat.replace("steady", "wait-join")),
            say("HEARTBEAT", heartbeat.replace(REBALANCING, "Local: Timed out")),
            say("COMMIT", "GroupCoordinator/1: Committing offsets for 1 partition(s) with generation-id 2 in join-state steady: timer"),
            say("COMMIT", f"GroupCoordinator/1: OffsetCommit for 1 partition(s) in join-state steady: timer: returned: {REBALANCING}"),
            response(-1, "", "Broker: Coordinator load in progress"),
            response(-1, "", "Local: Broker transport failure"),
            joins(),
            response(3),
            say("SYNCGROUP", f"SyncGroup response: {REBALANCING} (0 bytes of MemberState data)"),
        ]
    )[4:]
    assert [(type(event), event.generation, getattr(event, "error", "")) for event in events if event.kind != "join"] == [
        (Heartbeat, 2, "REBALANCE_IN_PROGRESS"),
        (Commit, 2, "REBALANCE_IN_PROGRESS"),
        (Joined, None, "COORDINATOR_LOAD_IN_PROGRESS"),
        (Joined, 3, "NONE"),
        (Synced, 3, "REBALANCE_IN_PROGRESS"),
    ]


def test_member_id_is_handed_out_before_the_first_join() -> None:
    wanted = response(-1, "m-1", "Broker: Group member needs a valid member ID")
    events = read([*STARTS, joins(""), wanted, joins("m-1"), response(2)])
    assert [(event.kind, event.member, getattr(event, "error", None)) for event in events] == [
        ("join", "", None),
        ("joined", "m-1", "MEMBER_ID_REQUIRED"),
        ("join", "m-1", None),
        ("joined", "m-1", "NONE"),
    ]


def test_lists_of_two_clients_and_other_threads_interleave() -> None:
    other = "web#consumer-2"
    mine = say("BROKER", "127.0.0.1:9092/1: something else", thread="127.0.0.1:9092/1")
    their_list = listed("GRPASSIGNMENT", "orders-5", "orders-6", name=other)
    lines = [*STARTS, joins(""), response(2), *synced("orders-0", "orders-1")]
    added = takes("orders-0", "orders-1", added=2)
    at = next(number for number, line in enumerate(added) if "List with" in line)
    events = read([*lines, *added[: at + 2], mine, *their_list, *added[at + 2 :]])
    assert story(events)[-1] == ("assigned", 2, ("orders-0", "orders-1"))
    assert len(events) == 4


def test_list_that_is_not_whole_is_a_gap_and_no_ownership() -> None:
    added = takes("orders-0", "orders-1", added=2)
    events = read([*STARTS, joins(""), response(2), *synced("orders-0", "orders-1"), *added[:-2], added[-1], *GIVES_ALL])
    assert [event.kind for event in events] == ["join", "joined", "synced", "gap"]


def test_log_that_begins_late_tells_what_is_owned_when_it_can() -> None:
    late = [state("steady", "init"), *LEAVES[1:2], joins(), response(7), *synced("orders-1"), *gives("orders-1", revoked=2)]
    events = [event for event in read([*late, *takes("orders-1", former=1)]) if not isinstance(event, Gap)]
    assert story(events)[1:] == [("joined", 7, None), ("synced", 7, ("orders-1",)), ("assigned", 7, ()), ("owned", 7, ("orders-1",))]


def test_process_that_starts_again_leaves_a_gap() -> None:
    events = read([*MEMBER_OF_2, *STARTS, joins(""), response(3, "m-2")])
    gap = events[4]
    assert isinstance(gap, Gap)
    assert (gap.member, gap.generation) == ("m-1", 2)
    assert [(event.kind, event.member) for event in events[5:]] == [("join", ""), ("joined", "m-2")]


def test_two_processes_under_one_name_give_no_ownership() -> None:
    mixed = [joins(), response(3), response(3, "m-2"), *synced("orders-0"), *takes("orders-0", added=1), *GIVES_ALL]
    failed = say("SYNCGROUP", f"SyncGroup response: {REBALANCING} (0 bytes of MemberState data)")
    events = read([*MEMBER_OF_2, *mixed, failed])[4:]
    assert {event.member for event in events if isinstance(event, Gap)} == {"m-1", "m-2"}
    assert {event.kind for event in events} == {"join", "joined", "gap"}


def test_streams_tell_processes_apart() -> None:
    session = READER.open("both.log")
    for stream, member, generation in (("one", "m-1", 2), ("two", "m-2", 3)):
        for line in [*STARTS, joins(""), response(generation, member)]:
            session.feed(Message(line, None, stream, Source("both.log")))
    session_events = [
        event
        for stream in ("one", "two")
        for line in [*synced("orders-0"), *takes("orders-0", added=1)]
        for event in getattr(session.feed(Message(line, None, stream, Source("both.log"))), "events", ())
    ]
    assert [(event.kind, event.member, event.generation) for event in session_events] == [
        ("synced", "m-1", 2),
        ("assigned", "m-1", 2),
        ("synced", "m-2", 3),
        ("assigned", "m-2", 3),
    ]


def test_manual_assignment_is_no_membership() -> None:
    lines = [
        *STARTS,
        say("CGRPSTATE", f"{GROUP} changed state wait-broker-transport -> up (join-state init)"),
        say("ASSIGN", f"{GROUP}: new assignment of 1 partition(s) in join state init"),
        say("ASSIGNMENT", f"{GROUP}: setting group assignment to 1 partition(s)"),
        *listed("GRPASSIGNMENT", "orders-0"),
        state("wait-assign-call", "steady"),
        *GIVES_ALL,
    ]
    assert read(lines) == []


def test_release_without_lists_tells_joins_only() -> None:
    older = "JoinGroup response: GenerationId 4, Protocol range, LeaderId m-1 (me), my MemberId m-1, 2 members in group: (no error)"
    lines = [
        say("MEMBERID", f'{GROUP}: updating member id "(not-set)" -> ""'),
        joins(""),
        say("JOINGROUP", older),
        say("SYNCGROUP", "SyncGroup response: Success (61 bytes of MemberState data)"),
        say("ASSIGN", f"{GROUP}: delegating assign of 2 partition(s) to application rebalance callback on queue q: new assignment"),
        say("CGRPJOINSTATE", f"{GROUP} changed join state wait-assign-rebalance_cb -> assigned (v4, state up)"),
    ]
    assert story(read(lines))[1:] == [("joined", 4, None), ("synced", 4, None)]


@pytest.mark.parametrize(
    "rewrite",
    ["2023-11-14 DEBUG {facility} [{name}] [thrd:main]: {text}", "[2023-11-14] rdkafka DBG {name} {facility}: [thrd:main]: {text}"],
)
def test_bindings_print_again(rewrite: str) -> None:
    lines: list[str] = []
    for line in MEMBER_OF_2:
        _, _, facility, name, rest = line.split("|", 4)
        lines.append(rewrite.format(facility=facility, name=name, text=rest.partition("]: ")[2]))
    assert story(read(lines)) == story(read(MEMBER_OF_2))


def test_lines_without_client_name() -> None:
    refused = f"rdkafka: [thrd:main]: {GROUP}: Rejoining group without an assignment: JoinGroup error: Broker: Not coordinator"
    short = "%7|1700000000.123|JOINGROUP|: JoinGroup response: GenerationId 51, Protocol range"
    nameless = [line.replace("app#consumer-1| ", "rdkafka: ").partition("rdkafka: ")[2] for line in MEMBER_OF_2]
    (event,) = read([refused, short, *("rdkafka: " + line for line in nameless)])
    assert isinstance(event, Joined)
    assert (event.group, event.member, event.error, event.observer) == ("shop", None, "NOT_COORDINATOR", "member")


def test_irrelevant_lines() -> None:
    session = READER.open("app.log")
    for line in ("INFO app started", say("FETCH", "Fetch topic orders [0] at offset 3"), say("SEND", "Sent", "app#producer-1"), "a |: b"):
        assert session.feed(Message(line, None, "", Source("app.log"))) is None


def test_anchors_cover_what_is_taken() -> None:
    assert all(any(anchor in line for anchor in READER.anchors) for line in MEMBER_OF_2)


CONVERSATION = [*MEMBER_OF_2, joins(), response(3), *synced(), *gives(revoked=1), *takes(former=0), *GIVES_ALL, *LEAVES]


@settings(derandomize=True, max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(CONVERSATION) - 1), st.integers(0, 160), st.text(max_size=4)), max_size=12),
    st.permutations(range(len(CONVERSATION))),
    st.booleans(),
)
def test_nothing_but_malformed_line_is_raised(damage: list[tuple[int, int, str]], order: list[int], shuffled: bool) -> None:
    lines = [CONVERSATION[at] for at in order] if shuffled else list(CONVERSATION)
    for number, at, patch in damage:
        lines[number] = lines[number][:at] + patch + lines[number][at + 2 :] if patch else lines[number][:at]
    try:
        read(lines)
    except MalformedLine:
        return
