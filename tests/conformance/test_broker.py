"""The broker log reader: every family of wordings, old and new coordinator, and what it remembers between lines."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.readers.base import MalformedLine, Message
from kipcheck.conformance.readers.broker import READER
from kipcheck.spec.events import (
    Commit,
    Event,
    Expire,
    Gap,
    GenerationStarted,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Load,
    Rebalance,
    Replace,
    Source,
    Sync,
    Synced,
)

OLD = "[GroupCoordinator 3]: "
NEW = "[GroupCoordinator id=3 topic=__consumer_offsets partition=7] "
A = "app-1-0a000000-0000-4000-8000-000000000001"
B = "app (v2/x), beta-0b000000-0000-4000-8000-000000000002"
META = (
    f"MemberMetadata(memberId={A}, groupInstanceId=Some(i-1), clientId=app-1, clientHost=/10.1.1.1, "
    "sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range, cooperative-sticky))"
)


class Log:
    """One file under reading; a line is given without its time stamp."""

    def __init__(self) -> None:
        self.session = READER.open("server.log")
        self.count = 0

    def taken(self, text: str, stream: str = "") -> list[Event] | None:
        self.count += 1
        answer = self.session.feed(Message(text, self.count * 1000, stream, Source("server.log", self.count, text)))
        return None if answer is None else list(answer.events)

    def read(self, *lines: str) -> list[Event]:
        """Events of the last line."""
        events: list[Event] = []
        for line in lines:
            found = self.taken(line)
            assert found is not None, line
            assert any(anchor in line for anchor in READER.anchors), line
            events = found
        return events


def read(*lines: str) -> list[Event]:
    return Log().read(*lines)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            OLD + "Preparing to rebalance group my (odd) group in state PreparingRebalance with old generation 4 (__consumer_offsets-7) "
            "(reason: Removing member x on LeaveGroup; client reason: closed (by user)) (kafka.coordinator.group.GroupCoordinator)",
            [Rebalance(group="my (odd) group", generation=4, reason="Removing member x on LeaveGroup; client reason: closed (by user)")],
        ),
        (OLD + "Preparing to rebalance group g with old generation 4 (__consumer_offsets-7)", [Rebalance(group="g", generation=4)]),
        (OLD + "Stabilized group g generation 5 (__consumer_offsets-7)", [GenerationStarted(group="g", generation=5)]),
        (OLD + "Stabilized group g generation 5 (__consumer_offsets-7) with 2 members", [GenerationStarted(group="g", generation=5)]),
        (NEW + "Stabilized group g generation 5 with 2 members.", [GenerationStarted(group="g", generation=5)]),
        (OLD + "Group g with generation 6 is now empty (__consumer_offsets-7)", [GenerationStarted(group="g", generation=6, members=())]),
        (NEW + "Group g with generation 6 is now empty.", [GenerationStarted(group="g", generation=6, members=())]),
        (OLD + "Assignment received from leader for group g for generation 5", [Sync(group="g", generation=5)]),
        (
            OLD + "Assignment received from leader for group g for generation 5. The group has 2 members, 0 of which are static.",
            [Sync(group="g", generation=5)],
        ),
        (
            NEW + f"Assignment received from leader {B} for group g for generation 5. The group has 2 members, 1 of which are static.",
            [Sync(group="g", generation=5, member=B)],
        ),
        (
            OLD + f"Dynamic member with unknown member id joins group g in Empty state. Created a new member id {A} and request the "
            "member to rejoin with this id.",
            [Joined(group="g", member=A, error="MEMBER_ID_REQUIRED")],
        ),
        (
            NEW + f"Dynamic member with unknown member id joins group g in Stable state. Created a new member id {A} and requesting "
            "the member to rejoin with this id.",
            [Joined(group="g", member=A, error="MEMBER_ID_REQUIRED")],
        ),
        (
            NEW + f"Pending dynamic member with id {A} joins group g in Empty state. Adding to the group now.",
            [Join(group="g", member=A)],
        ),
        (
            OLD + f"Dynamic Member with unknown member id joins group g in Empty state. Created a new member id {A} for this member "
            "and add to the group.",
            [Join(group="g", member=A)],
        ),
        (
            NEW + f"Dynamic member with unknown member id joins group g in state Empty. Created a new member id {A} and added the "
            "member to the group.",
            [Join(group="g", member=A)],
        ),
        (
            OLD + f"Static Member with unknown member id joins group g in Stable state. Created a new member id {A} for this member "
            "and add to the group.",
            [Join(group="g", member=A)],
        ),
        (
            OLD + f"Static member with groupInstanceId=i-1 and unknown member id joins group g in Stable state. Created a new member "
            f"id {A} for this member and add to the group.",
            [Join(group="g", member=A, instance="i-1")],
        ),
        (
            NEW + f"Static member with groupInstanceId=i-1 and unknown member id joins group g in Stable state. Replacing previously "
            f"mapped member {A} with this groupInstanceId.",
            [Replace(group="g", instance="i-1", old_member=A)],
        ),
        (
            OLD + f"Static member Some(i-1) of group g with unknown member id rejoins, assigning new member id i-1-2, while old member "
            f"id {A} will be removed.",
            [Replace(group="g", instance="i-1", old_member=A, member="i-1-2")],
        ),
        (
            NEW + f"Failed to persist metadata for group g static member i-1-2 with group instance id i-1 due to no. Reverting to old "
            f"member id {A}.",
            [Replace(group="g", instance="i-1", old_member="i-1-2", member=A)],
        ),
        (OLD + f"Member {B} in group g has failed, removing it from the group", [Expire(group="g", member=B, reason="session")]),
        (NEW + f"Member {B} in group g has failed, removing it from the group.", [Expire(group="g", member=B, reason="session")]),
        (
            OLD + f"Pending member {A} in group g has been removed after session timeout expiration.",
            [Expire(group="g", member=A, reason="session")],
        ),
        (
            OLD + f"Group g removed dynamic members who haven't joined: HashSet({A}, {B})",
            [Expire(group="g", member=A, reason="rebalance"), Expire(group="g", member=B, reason="rebalance")],
        ),
        (
            NEW + f"Group g removed members who haven't sent their sync requests: [{B}]",
            [Expire(group="g", member=B, reason="sync")],
        ),
        (
            OLD + f"Member {META} has left group g through explicit `LeaveGroup`; client reason: the poll took (too) long",
            [Leave(group="g", member=A, instance="i-1", client="app-1", reason="the poll took (too) long")],
        ),
        (
            OLD + f"Member {META} has left group g through explicit `LeaveGroup` request",
            [Leave(group="g", member=A, instance="i-1", client="app-1", reason="not provided")],
        ),
        (
            NEW + f"[Group g] Member {B} has left group through explicit `LeaveGroup` request; client reason: not provided",
            [Leave(group="g", member=B, reason="not provided")],
        ),
        (
            NEW + f"[Group g] Static Member {B} with instance id i-1 has left group through explicit `LeaveGroup` request; "
            "client reason: stop",
            [Leave(group="g", member=B, instance="i-1", reason="stop")],
        ),
        (
            OLD + f"Member[group.instance.id Some(null), member.id {B}] in group g has left, removing it from the group",
            [Leave(group="g", member=B, reason="not provided")],
        ),
        (OLD + f"Member {B} in group g has left, removing it from the group", [Leave(group="g", member=B, reason="not provided")]),
        (OLD + f"Pending member {B} is leaving group g.", [Leave(group="g", member=B, reason="not provided")]),
        (
            OLD + f"Pending member with memberId={B} has left group g through explicit `LeaveGroup` request",
            [Leave(group="g", member=B, reason="not provided")],
        ),
        (
            NEW + f"[Group g] Pending member {B} has left group through explicit `LeaveGroup` request; client reason: stop",
            [Leave(group="g", member=B, reason="stop")],
        ),
        (OLD + "Loading group metadata for g with generation 9", [Load(group="g", generation=9)]),
        (f"Loaded member {META} in group g with generation 9. (kafka.coordinator.group.GroupMetadata$)", []),
        (NEW + "Loaded classic group g with 3 members.", [Load(group="g")]),
        (NEW + "[GroupId g] Bumped group epoch to 4.", [Gap(group="g", reason="KIP-848 consumer protocol: out of scope")]),
        (
            NEW + "[GroupId g] Member m joins the consumer group using the consumer protocol.",
            [Gap(group="g", reason="KIP-848 consumer protocol: out of scope")],
        ),
        (NEW + "[GroupId g] Member m transitioned from a to b.", [Gap(group="g", reason="KIP-848 consumer protocol: out of scope")]),
        (NEW + "[GroupId g] Member m joins the share group using the share protocol.", []),
        (NEW + "[GroupId g] Creating a simple consumer group via manual offset commit.", []),
        (OLD + "Static member which joins during Stable stage and doesn't affect selectProtocol will not trigger rebalance.", []),
        (OLD + "Group g could not complete rebalance because no members rejoined", []),
        (OLD + f"Sending empty assignment to member {A} of g for generation 4 with no errors", []),
        (OLD + f"Setting empty assignments for members Set({A}) of g for generation 4", []),
        (OLD + "Elected as the group coordinator for partition 7 in epoch 2", []),
        ("[GroupMetadataManager brokerId=3] Removed 4 expired offsets in 2 milliseconds.", []),
        (
            f"Group leader [member.id: {A}, group.instance.id: None] failed to join before rebalance timeout, while new leader {META} was "
            "elected.",
            [],
        ),
    ],
)
def test_wordings(line: str, expected: list[Event]) -> None:
    events = read(line)
    assert [replace(event, ts=None, src=None, epoch=0) for event in events] == expected
    assert all(event.epoch == isinstance(event, Load) for event in events)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (f"Adding new member {A} with group instance id Some(i-1)", Join(group="g", generation=4, member=A, instance="i-1")),
        (f"Adding new member {A} with group instance id None; client reason: (re)start", Join(group="g", generation=4, member=A)),
        (f"Adding new member {A} with group instanceid Some(null)", Join(group="g", generation=4, member=A)),
        (f"Adding new member {A} with group instance id null; client reason: not provided", Join(group="g", generation=4, member=A)),
        (f"Updating metadata for member {B}", Join(group="g", generation=4, member=B)),
        (f"Updating metadata for member {B} during Stable; client reason: x", Join(group="g", generation=4, member=B)),
        (f"Updating metadata for static member {A} with instance id i-1", Join(group="g", generation=4, member=A, instance="i-1")),
        (
            f"Group's selectedProtocol will change because static member {A} with instance id i-1 joined with change of protocol",
            Join(group="g", generation=4, member=A, instance="i-1"),
        ),
        (f"Leader {B} re-joining group during Stable; client reason: ", Join(group="g", generation=4, member=B)),
        (f"leader {B} re-joining group during Stable", Join(group="g", generation=4, member=B)),
        (f"removing member {A} on heartbeat expiration", Expire(group="g", member=A, reason="session")),
        (f"Removing Set({A}) on pending sync request expiration", Expire(group="g", member=A, reason="sync")),
        (f"Removing [{B}] on pending sync request expiration", Expire(group="g", member=B, reason="sync")),
    ],
)
@pytest.mark.parametrize("line", [OLD + "%s (__consumer_offsets-7) (reason: %s) (k.GroupCoordinator)", NEW + "%s (reason: %s)."])
def test_reasons_tell_of_members(reason: str, expected: Event, line: str) -> None:
    member, rebalance = read(line % ("Preparing to rebalance group g in state PreparingRebalance with old generation 4", reason))
    assert (type(member), member.generation, member.member, member.instance) == (
        type(expected),
        expected.generation,
        expected.member,
        expected.instance,
    )
    assert isinstance(rebalance, Rebalance)
    assert rebalance.reason == reason


def preparing(generation: int, reason: str = "x", group: str = "g") -> str:
    return OLD + (
        f"Preparing to rebalance group {group} in state PreparingRebalance with old generation {generation} "
        f"(__consumer_offsets-7) (reason: {reason})"
    )


def test_what_a_line_told_its_reason_does_not_tell_again() -> None:
    log = Log()
    log.read(OLD + f"Member {A} in group g has failed, removing it from the group")
    assert [type(e) for e in log.read(preparing(4, f"removing member {A} on heartbeat expiration"))] == [Rebalance]
    log.read(NEW + f"Pending dynamic member with id {B} joins group g in Stable state. Adding to the group now.")
    assert [type(e) for e in log.read(preparing(4, f"Adding new member {B} with group instance id null"))] == [Rebalance]


def test_timeouts_of_a_leaver_and_counts_are_kept() -> None:
    (left,) = read(OLD + f"Member {META} has left group g through explicit `LeaveGroup` request")
    assert left.extra == {"session_timeout_ms": 45000, "rebalance_timeout_ms": 300000}
    (started,) = read(NEW + "Stabilized group g generation 5 with 2 members.")
    assert started.extra == {"members_count": 2}
    (pending,) = read(OLD + f"Pending member {A} in group g has been removed after session timeout expiration.")
    assert pending.extra == {"pending": True}


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("join-group", Joined),
        ("sync-group", Synced),
        ("heartbeat", Heartbeat),
        ("leave-group", Leave),
        ("offset-commit", Commit),
        ("txn-offset-commit", Commit),
    ],
)
@pytest.mark.parametrize(
    "line",
    [
        "Request memberId=i-1-1 for static member with groupInstanceId=i-1 is fenced by current memberId=i-1-2 during operation %s",
        "Request memberId=i-1-1 for static member with groupInstanceId=i-1 is fenced by existing memberId=i-1-2 during operation %s",
        "given member.id i-1-1 is identified as a known static member i-1, but not matching the expected member.id i-1-2 during %s, "
        "will respond with instance fenced error",
    ],
)
def test_fenced(line: str, operation: str, kind: type[Event]) -> None:
    log = Log()
    assert log.read(OLD + line % operation) == []
    log.read(preparing(4, "Adding new member i-1-1 with group instance id Some(i-1)"))
    (event,) = log.read(OLD + line % operation)
    assert type(event) is kind
    assert (event.group, event.member, event.instance, getattr(event, "error", "")) == ("g", "i-1-1", "i-1", "FENCED_INSTANCE_ID")


def test_an_instance_of_two_groups_names_neither() -> None:
    log = Log()
    log.read(
        preparing(4, "Adding new member m-1 with group instance id i-1", "g"),
        preparing(4, "Adding new member m-2 with group instance id i-1", "h"),
    )
    fenced = (
        OLD + "Request memberId=x for static member with groupInstanceId=i-1 is fenced by current memberId=%s during operation heartbeat"
    )
    assert log.read(fenced % "y") == []
    assert [e.group for e in log.read(fenced % "m-2")] == ["h"]


def test_failed_persistence_reverts_the_only_replacement() -> None:
    log = Log()
    log.read(
        OLD
        + "Static member Some(i) of group g with unknown member id rejoins, assigning new member id n, while old member id o will be removed."
    )
    (back,) = log.read(OLD + "Failed to persist metadata for group g: too few replicas")
    assert isinstance(back, Replace)
    assert (back.instance, back.old_member, back.member) == ("i", "n", "o")
    assert [type(e) for e in log.read(OLD + "Failed to persist metadata for group g: too few replicas")] == [Gap]


def test_epochs() -> None:
    log = Log()

    def epochs(*lines: str) -> set[int]:
        return {e.epoch for e in log.read(*lines)}

    stable = OLD + "Stabilized group g generation %d (__consumer_offsets-7) with 2 members"
    assert epochs(stable % 5) == {0}
    assert epochs(stable % 3) == {0}, "a fall while there were members is for a rule to judge"
    assert epochs(OLD + "Group g with generation 4 is now empty (__consumer_offsets-7)", preparing(0)) == {1}
    assert epochs(stable % 1, OLD + "Loading group metadata for g with generation 1") == {2}
    assert log.read(f"Loaded member {META} in group g with generation 1.") == []
    assert epochs(stable % 2) == {2}
    assert epochs(OLD + "Unloading group metadata for g with generation 2", OLD + "Loading group metadata for g with generation 1") == {3}
    assert epochs(OLD + "Group g transitioned to Dead in generation 2", stable % 1) == {4}
    assert epochs(
        OLD + "The following groups were deleted: g, f-0a000000-0000-4000-8000-000000000001. A total of 0 offsets were removed.", stable % 1
    ) == {5}
    assert epochs(OLD + "Starting up.", OLD + "Startup complete.", stable % 1) == {6}
    assert epochs(NEW.replace("=3", "=4") + "Stabilized group g generation 2 with 2 members.") == {7}, "another broker coordinates now"
    assert epochs(OLD.replace("3", "9") + "Starting up.", NEW.replace("=3", "=4") + "Stabilized group g generation 3 with 2 members.") == {
        7
    }
    assert epochs(
        OLD + "Unloading group metadata for g with generation 2", NEW.replace("=3", "=4") + "Group g with generation 4 is now empty."
    ) == {7}


def test_the_out_of_scope_gap_comes_once() -> None:
    log = Log()
    assert len(log.read(NEW + "[GroupId g] Bumped group epoch to 4.")) == 1
    assert log.read(NEW + "[GroupId g] Bumped group epoch to 5.") == []
    assert len(log.read(NEW + "Loaded consumer group h with 2 members.")) == 1


def test_release_of_the_same_stream() -> None:
    log = Log()
    assert log.taken("Kafka version: 3.7.1 (org.apache.kafka.common.utils.AppInfoParser)", "b1") is None
    line = NEW + "Stabilized group g generation 5 with 2 members."
    assert [e.extra.get("release") for e in log.taken(line, "b1") or ()] == ["3.7.1"]
    assert [e.extra.get("release") for e in log.taken(line, "b2") or ()] == [None]


@pytest.mark.parametrize(
    "line",
    [
        OLD + "Preparing to rebalance group g in sta",
        NEW + "Stabilized group g gener",
        OLD + "Assignment received from leader for group g for",
    ],
)
def test_cut_off_lines_are_malformed(line: str) -> None:
    with pytest.raises(MalformedLine):
        Log().taken(line)


@pytest.mark.parametrize(
    "line", ["", "INFO Revoke previously assigned partitions g-0", "We stabilized group g", OLD + "Removed 3 offsets for x"]
)
def test_other_lines_are_irrelevant(line: str) -> None:
    assert Log().taken(line) is None


@pytest.mark.parametrize(
    "piece", ["Member ", " in group ", "Member a in group ", "(", "Set(a, ", "memberId=, ", "Preparing to rebalance group "]
)
def test_long_hostile_lines_take_linear_time(piece: str) -> None:
    head = OLD + f"Member {META[:40]}"
    start = time.perf_counter()
    for line in (head + piece * 100_000, piece * 100_000 + " has failed, removing it from the group", preparing(4, piece * 100_000)):
        try:
            Log().taken(line)
        except MalformedLine:
            continue
    assert time.perf_counter() - start < 5


SAMPLES = [
    preparing(4, f"Adding new member {A} with group instance id Some(i-1); client reason: r"),
    preparing(4, f"Removing Set({A}, {B}) on pending sync request expiration"),
    OLD + "Stabilized group g generation 5 (__consumer_offsets-7) with 2 members",
    NEW + f"Assignment received from leader {B} for group g for generation 5. The group has 2 members, 1 of which are static.",
    OLD + f"Member {META} has left group g through explicit `LeaveGroup`; client reason: r",
    OLD + f"Group g removed dynamic members who haven't joined: HashSet({A}, {B})",
    OLD + "Request memberId=a for static member with groupInstanceId=i is fenced by current memberId=b during operation heartbeat",
    OLD + "Failed to persist metadata for group g: x",
    NEW + "[GroupId g] Bumped group epoch to 4.",
    OLD + "The following groups were deleted: f, g. A total of 0 offsets were removed.",
    OLD + "Starting up.",
    "Kafka version: 3.7.1",
]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    line = draw(st.sampled_from(SAMPLES))
    start, end = sorted((draw(st.integers(0, len(line))), draw(st.integers(0, len(line)))))
    return draw(st.sampled_from([line[:start], line[start:], line[:start] + draw(st.text(max_size=20)) + line[end:], line]))


@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.lists(damaged(), max_size=12))
def test_damaged_lines_raise_nothing_else(lines: list[str]) -> None:
    log = Log()
    for line in lines:
        try:
            events = log.taken(line)
        except MalformedLine:
            continue
        assert all(e.src is not None and e.epoch >= 0 for e in events or ())
