"""The request log reader: JSON since 2.8, text before, embedded bytes, and the epochs that it can tell."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.readers.base import MalformedLine, Message
from kipcheck.conformance.readers.request_log import READER
from kipcheck.spec.events import (
    Commit,
    Event,
    GenerationStarted,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Source,
    Sync,
    Synced,
)

SECOND = 1_000_000
ME = "app-0a000000-0000-4000-8000-000000000001"
OTHER = "i-1-0b000000-0000-4000-8000-000000000002"


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def array(items: Sequence[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def partitions(of: Mapping[str, Sequence[int]]) -> bytes:
    return array([string(topic) + array([struct.pack(">i", p) for p in numbers]) for topic, numbers in of.items()])


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def subscription(topics: Sequence[str], owned: Mapping[str, Sequence[int]], generation: int) -> str:
    body = struct.pack(">h", 3) + array([string(t) for t in topics]) + struct.pack(">i", -1)
    return base64_of(body + partitions(owned) + struct.pack(">i", generation) + string("rack-a"))


def assignment(of: Mapping[str, Sequence[int]]) -> str:
    return base64_of(struct.pack(">h", 1) + partitions(of) + struct.pack(">i", -1))


def connect_assignment(assigned: Mapping[str, Sequence[int]], revoked: Mapping[str, Sequence[int]], delay_ms: int = 0) -> bytes:
    head = struct.pack(">hh", 2, 0) + string("lead") + string("http://lead") + struct.pack(">q", 5)
    return head + partitions(assigned) + partitions(revoked) + struct.pack(">i", delay_ms)


def connect_metadata(owned: Mapping[str, Sequence[int]]) -> str:
    allocation = connect_assignment(owned, {})
    body = struct.pack(">h", 2) + string("http://me") + struct.pack(">q", 5)
    return base64_of(body + struct.pack(">i", len(allocation)) + allocation)


def line(api: str, request: object, response: object, total_ms: object = 2.5, address: str = "10.0.0.1:9092") -> str:
    body = {
        "isForwarded": False,
        "requestHeader": {"clientId": "app", "requestApiKeyName": api},
        "request": request,
        "response": response,
        "connection": f"{address}-10.0.0.9:41000-3",
        "totalTimeMs": total_ms,
    }
    return f"Completed request:{json.dumps(body, separators=(',', ':'))} (kafka.request.logger)"


class Log:
    """One file under reading; each line is written one second after the one before."""

    def __init__(self) -> None:
        self.session = READER.open("kafka-request.log")
        self.count = 0

    def taken(self, text: str, after: int = SECOND) -> list[Event] | None:
        self.count += after
        answer = self.session.feed(Message(text, self.count, "", Source("kafka-request.log", 1, text)))
        return None if answer is None else list(answer.events)

    def read(self, *lines: str, after: int = SECOND) -> list[Event]:
        """Events of the last line."""
        events: list[Event] = []
        for text in lines:
            assert any(anchor in text for anchor in READER.anchors)
            found = self.taken(text, after)
            assert found is not None
            events = found
        return events


def join(
    generation: int, member: str = ME, *, leads: bool = False, metadata: str | None = None, error: int = 0, address: str = "10.0.0.1:9092"
) -> str:
    metadata = metadata or subscription(["t"], {"t": [0]}, generation - 1)
    members = [
        {"memberId": ME, "groupInstanceId": None, "metadata": metadata},
        {"memberId": OTHER, "groupInstanceId": "i-1", "metadata": ""},
    ]
    return line(
        "JOIN_GROUP",
        {
            "groupId": "g",
            "sessionTimeoutMs": 45000,
            "rebalanceTimeoutMs": 300000,
            "memberId": member,
            "groupInstanceId": None,
            "protocolType": "consumer",
            "protocols": [{"name": "cooperative-sticky", "metadata": metadata}, {"name": "range", "metadata": metadata}],
            "reason": "started",
        },
        {
            "errorCode": error,
            "generationId": generation,
            "protocolType": "consumer",
            "protocolName": "cooperative-sticky",
            "leader": ME if leads else OTHER,
            "skipAssignment": False,
            "memberId": member or ME,
            "members": members if leads else [],
        },
        address=address,
    )


def test_join_of_the_leader() -> None:
    asked, answered, started = Log().read(join(4, leads=True))
    assert isinstance(asked, Join)
    assert (asked.ts, asked.member, asked.client, asked.session_timeout_ms, asked.rebalance_timeout_ms) == (
        SECOND - 2500,
        ME,
        "app",
        45000,
        300000,
    )
    assert (asked.protocols, asked.subscribed, asked.owned, asked.owned_generation, asked.rack) == (
        ("cooperative-sticky", "range"),
        ("t",),
        ("t-0",),
        3,
        "rack-a",
    )
    assert asked.extra == {"estimated": True, "reason": "started"}
    assert isinstance(answered, Joined)
    assert (answered.ts, answered.generation, answered.leader, answered.protocol, answered.error) == (
        SECOND,
        4,
        ME,
        "cooperative-sticky",
        "NONE",
    )
    assert isinstance(started, GenerationStarted)
    assert (started.generation, started.members, started.leader, started.protocol) == (4, (ME, OTHER), ME, "cooperative-sticky")
    assert started.extra == {"instances": {ME: None, OTHER: "i-1"}}


def test_refused_first_join() -> None:
    asked, answered = Log().read(join(-1, "", error=79))
    assert (asked.member, answered.member, answered.generation) == ("", ME, None)
    assert isinstance(answered, Joined)
    assert (answered.error, answered.leader, answered.protocol) == ("MEMBER_ID_REQUIRED", None, None)


def sync(member: str, generation: int, shares: Mapping[str, str], answer: str, error: int = 0) -> str:
    return line(
        "SYNC_GROUP",
        {
            "groupId": "g",
            "generationId": generation,
            "memberId": member,
            "groupInstanceId": None,
            "assignments": [{"memberId": m, "assignment": share} for m, share in shares.items()],
        },
        {"errorCode": error, "assignment": answer},
    )


def test_sync_of_consumers() -> None:
    log = Log()
    mine = assignment({"t": [1, 0]})
    log.read(join(4, leads=True))
    asked, answered = log.read(sync(ME, 4, {ME: mine, OTHER: assignment({})}, mine))
    assert isinstance(asked, Sync)
    assert asked.assignment == {ME: ("t-0", "t-1"), OTHER: ()}
    assert isinstance(answered, Synced)
    assert (answered.resources, answered.error, answered.revoked, answered.delay_ms) == (("t-0", "t-1"), "NONE", None, None)
    asked, answered = log.read(sync(OTHER, 4, {}, ""))
    assert isinstance(asked, Sync)
    assert asked.assignment is None
    assert answered.resources == (), "no bytes: the leader left this member out"
    _, refused = log.read(sync(ME, 3, {}, "", 22))
    assert isinstance(refused, Synced)
    assert (refused.resources, refused.error) == (None, "ILLEGAL_GENERATION")


def test_bytes_of_unknown_type_or_that_cannot_be_decoded_say_nothing() -> None:
    _, answered = Log().read(sync(ME, 4, {}, assignment({"t": [0]})))
    assert answered.resources is None, "no line told the protocol type"
    log = Log()
    log.read(join(4))
    for broken in ("%%%", "AAE="):
        asked, answered = log.read(sync(ME, 4, {ME: broken}, broken))
        assert isinstance(asked, Sync)
        assert (asked.assignment, answered.resources) == (None, None)


def connect_join(member: str, generation: int, owned: Mapping[str, Sequence[int]]) -> str:
    protocols = [{"name": "sessioned", "metadata": connect_metadata(owned)}, {"name": "default", "metadata": ""}]
    return line(
        "JOIN_GROUP",
        {"groupId": "g", "memberId": member, "protocolType": "connect", "protocols": protocols},
        {"errorCode": 0, "generationId": generation, "protocolName": "sessioned", "leader": ME, "memberId": member, "members": []},
    )


def test_connect_assignments_are_completed() -> None:
    log = Log()
    (asked, _) = log.read(connect_join(ME, 4, {"c": [-1, 0, 1]}))
    assert isinstance(asked, Join)
    assert asked.owned == ("connector:c", "task:c-0", "task:c-1")
    mine = base64_of(connect_assignment({"d": [0]}, {"c": [1]}, 60000))
    other = base64_of(connect_assignment({"d": [1]}, {}, 60000))
    asked, answered = log.read(sync(ME, 4, {ME: mine, OTHER: other}, mine))
    assert isinstance(asked, Sync)
    assert asked.assignment is None, "what the other one reported is not known"
    assert (asked.revoked, asked.delay_ms) == ({ME: ("task:c-1",), OTHER: ()}, 60000)
    assert isinstance(answered, Synced)
    assert answered.resources == ("connector:c", "task:c-0", "task:d-0")
    assert (answered.revoked, answered.delay_ms) == (("task:c-1",), 60000)
    log.read(connect_join(OTHER, 4, {}))
    asked, _ = log.read(sync(ME, 4, {ME: mine, OTHER: other}, mine))
    assert isinstance(asked, Sync)
    assert asked.assignment == {ME: ("connector:c", "task:c-0", "task:d-0"), OTHER: ("task:d-1",)}
    _, late = log.read(sync(ME, 5, {}, mine))
    assert late.resources is None, "reported for another generation"


def test_heartbeat() -> None:
    request = {"groupId": "g", "generationId": 4, "memberId": ME, "groupInstanceId": "i-1"}
    (event,) = Log().read(line("HEARTBEAT", request, {"errorCode": 27}))
    assert isinstance(event, Heartbeat)
    assert (event.ts, event.generation, event.member, event.instance, event.error) == (SECOND - 2500, 4, ME, "i-1", "REBALANCE_IN_PROGRESS")


def test_leave() -> None:
    members = [{"memberId": ME, "groupInstanceId": None, "reason": "closed"}, {"memberId": "", "groupInstanceId": "i-1", "reason": None}]
    answers = [{"memberId": ME, "groupInstanceId": None, "errorCode": 0}, {"memberId": "", "groupInstanceId": "i-1", "errorCode": 25}]
    events = Log().read(line("LEAVE_GROUP", {"groupId": "g", "members": members}, {"errorCode": 0, "members": answers}))
    assert [(e.member, e.instance, e.reason, e.error) for e in events if isinstance(e, Leave)] == [
        (ME, None, "closed", "NONE"),
        ("", "i-1", None, "UNKNOWN_MEMBER_ID"),
    ]
    (single,) = Log().read(line("LEAVE_GROUP", {"groupId": "g", "memberId": ME}, {"errorCode": 16}))
    assert isinstance(single, Leave)
    assert (single.member, single.error) == (ME, "NOT_COORDINATOR")


@pytest.mark.parametrize("key", ["generationIdOrMemberEpoch", "generationId"])
def test_commit_is_split_by_error(key: str) -> None:
    answers = [{"partitionIndex": 1, "errorCode": 0}, {"partitionIndex": 0, "errorCode": 0}, {"partitionIndex": 2, "errorCode": 12}]
    request = {"groupId": "g", key: -1, "memberId": "", "groupInstanceId": None}
    events = Log().read(line("OFFSET_COMMIT", request, {"topics": [{"name": "t", "partitions": answers}]}))
    assert [(e.generation, e.member, e.resources, e.error) for e in events if isinstance(e, Commit)] == [
        (-1, "", ("t-0", "t-1"), "NONE"),
        (-1, "", ("t-2",), "OFFSET_METADATA_TOO_LARGE"),
    ]


def test_topic_ids_name_no_resource() -> None:
    answer = {"topics": [{"topicId": "x", "partitions": [{"partitionIndex": 1, "errorCode": 0}]}]}
    (event,) = Log().read(line("OFFSET_COMMIT", {"groupId": "g", "generationIdOrMemberEpoch": 3, "memberId": ME}, answer))
    assert event.resources is None


def test_epochs() -> None:
    def epochs(log: Log, *lines: str, after: int = SECOND) -> set[int]:
        return {event.epoch for event in log.read(*lines, after=after)}

    leave = line("LEAVE_GROUP", {"groupId": "g", "memberId": ME}, {"errorCode": 0})
    log = Log()
    assert epochs(log, join(5), join(4)) == {0}, "a fall while members showed life is for a rule to judge"
    assert epochs(log, join(1), after=60 * SECOND) == {1}, "everyone may have expired"
    assert epochs(log, join(2, leads=True), leave) == {1}
    assert epochs(log, join(1)) == {1}, "the other one has not left"
    assert epochs(log, join(-1, error=16, address="10.0.0.2:9092")) == {1}, "a broker that never coordinated the group"
    assert epochs(log, join(-1, error=16)) == {2}
    assert epochs(log, join(-1, error=14)) == {2}
    assert epochs(log, join(1)) == {2}


TEXT_TAIL = " from connection 10.0.0.1:9092-10.0.0.9:41000-3;totalTime:2.5,requestQueueTime:0.1,sendTime:0.0 (kafka.request.logger)"


def text(api: str, request: str, response: str) -> str:
    header = f"RequestHeader(apiKey={api}, apiVersion=3, clientId=my app, correlationId=9)"
    return f"Completed request:{header} -- {{{request}}},response:{{{response}}}{TEXT_TAIL}"


BUFFER = "java.nio.HeapByteBuffer[pos=0 lim=3 cap=3]"
TEXT_JOIN = text(
    "JOIN_GROUP",
    f"group_id=g, 1,session_timeout_ms=10000,rebalance_timeout_ms=60000,member_id={ME},group_instance_id=i-1,protocol_type=consumer,"
    f"protocols=[{{name=range,metadata={BUFFER}}}]",
    f"throttle_time_ms=0,error_code=0,generation_id=4,protocol_name=range,leader={ME},member_id={ME},"
    f"members=[{{member_id={ME},group_instance_id=i-1,metadata={BUFFER}}},{{member_id={OTHER},group_instance_id=null,metadata={BUFFER}}}]",
)


def test_text_join() -> None:
    asked, answered, started = Log().read(TEXT_JOIN)
    assert isinstance(asked, Join)
    assert (asked.group, asked.client, asked.member, asked.instance, asked.ts) == ("g, 1", "my app", ME, "i-1", SECOND - 2500)
    assert (asked.session_timeout_ms, asked.rebalance_timeout_ms, asked.owned, asked.protocols) == (10000, 60000, None, None)
    assert isinstance(answered, Joined)
    assert (answered.generation, answered.leader, answered.protocol, answered.error) == (4, ME, "range", "NONE")
    assert isinstance(started, GenerationStarted)
    assert (started.members, started.extra) == ((ME, OTHER), {"instances": {ME: "i-1", OTHER: None}})


def test_text_of_the_other_requests() -> None:
    log = Log()
    asked, answered = log.read(
        text(
            "SYNC_GROUP",
            f"group_id=g,generation_id=4,member_id={ME},group_instance_id=null,assignments=[{{member_id={ME},assignment={BUFFER}}}]",
            f"throttle_time_ms=0,error_code=0,assignment={BUFFER}",
        )
    )
    assert isinstance(asked, Sync)
    assert isinstance(answered, Synced)
    assert (asked.generation, asked.assignment, answered.member, answered.resources, answered.error) == (4, None, ME, None, "NONE")
    (beat,) = log.read(text("HEARTBEAT", f"group_id=g,generation_id=4,member_id={ME}", "error_code=22"))
    assert isinstance(beat, Heartbeat)
    assert (beat.generation, beat.member, beat.error) == (4, ME, "ILLEGAL_GENERATION")
    (left,) = log.read(text("LEAVE_GROUP", f"group_id=g,member_id={ME}", "throttle_time_ms=0,error_code=0"))
    assert isinstance(left, Leave)
    assert (left.member, left.error) == (ME, "NONE")
    events = log.read(
        text(
            "LEAVE_GROUP",
            f"group_id=g,members=[{{member_id={ME},group_instance_id=i-1}}]",
            f"throttle_time_ms=0,error_code=0,members=[{{member_id={ME},group_instance_id=i-1,error_code=82}}]",
        )
    )
    assert [(e.member, e.instance, e.error) for e in events if isinstance(e, Leave)] == [(ME, "i-1", "FENCED_INSTANCE_ID")]
    (commit,) = log.read(
        text(
            "OFFSET_COMMIT",
            f"group_id=g,generation_id=4,member_id={ME},group_instance_id=null,topics=[{{name=t,partitions=[{{partition_index=0,"
            "committed_offset=5,committed_leader_epoch=-1,committed_metadata=}]}]",
            "throttle_time_ms=0,topics=[{name=t,partitions=[{partition_index=0,error_code=0}]}]}",
        )
    )
    assert isinstance(commit, Commit)
    assert (commit.generation, commit.member, commit.resources, commit.error) == (4, ME, ("t-0",), "NONE")


def test_text_that_cannot_surely_be_told_apart_is_taken_without_events() -> None:
    assert Log().taken(TEXT_JOIN.replace(",session_timeout_ms=", ",time_ms=")) == []


@pytest.mark.parametrize(
    "irrelevant",
    [
        line("FETCH", {}, {})[:60] + '"requestApiKeyName":"FETCH"}, HEARTBEAT',
        line("TXN_OFFSET_COMMIT", {"groupId": "g"}, {}),
        text("TXN_OFFSET_COMMIT", "group_id=g", ""),
        "HEARTBEAT of the cluster",
        "Completed request: HEARTBEAT",
    ],
)
def test_other_requests_are_irrelevant(irrelevant: str) -> None:
    assert Log().taken(irrelevant) is None


@pytest.mark.parametrize(
    "broken",
    [
        join(4)[:-40],
        line("HEARTBEAT", {}, {}),
        line("HEARTBEAT", [], {}),
        line("HEARTBEAT", {"groupId": "g"}, None),
        "Completed request:" + '{"requestApiKeyName":"HEARTBEAT","x":' + "[" * 100_000,
    ],
)
def test_broken_lines_are_malformed(broken: str) -> None:
    with pytest.raises(MalformedLine):
        Log().taken(broken)


@pytest.mark.parametrize("total", [None, "x", float("nan"), float("inf"), 10**400, -1])
def test_a_request_without_duration_has_no_time(total: object) -> None:
    text_of = line("HEARTBEAT", {"groupId": "g"}, {"errorCode": 0}, total)
    try:
        (event,) = Log().read(text_of)
    except MalformedLine:
        return
    assert event.ts is None


FIELDS = st.sampled_from(
    [
        "groupId",
        "memberId",
        "generationId",
        "members",
        "protocols",
        "assignments",
        "assignment",
        "metadata",
        "topics",
        "partitions",
        "errorCode",
    ]
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=6),
    max_leaves=12,
)
APIS = ["JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT"]
SAMPLES = [
    join(4, leads=True),
    TEXT_JOIN,
    sync(ME, 4, {ME: assignment({"t": [0]})}, assignment({"t": [0]})),
    connect_join(ME, 4, {"c": [0]}),
]


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.sampled_from(APIS), st.dictionaries(FIELDS, JSON_VALUES, max_size=6), JSON_VALUES, JSON_VALUES)
def test_any_json_is_read_or_malformed(api: str, request: dict[str, object], response: object, total: object) -> None:
    log = Log()
    log.read(join(4))
    try:
        log.taken(line(api, {"groupId": "g", **request}, response, total))
    except MalformedLine:
        return


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.sampled_from(SAMPLES), st.integers(0, 2000), st.integers(0, 2000), st.text(max_size=10))
def test_damaged_lines_raise_nothing_else(sample: str, start: int, end: int, noise: str) -> None:
    try:
        Log().taken(sample[:start] + noise + sample[end:])
    except MalformedLine:
        return
