"""Logs of Python consumers: kafka-python 1.3 to 3.x and aiokafka 0.5 to 0.14.

Their lines name the group, but no client; so all consumers of one group in one stream are one `Member` here, which turns silent
about ownership once two member ids speak. Wordings: kafka.coordinator.base and .consumer, aiokafka.consumer.group_coordinator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...spec.events import Event, Resources
from .base import MalformedLine, Message, Taken
from .member import Member
from .text import python_partitions

STREAMS_KEPT = 10_000
GROUPS_KEPT = 1_000
"""How many streams of one file, and groups of one stream, are remembered; beyond that the oldest is forgotten."""

_ERRORS = {
    "UnknownMemberId": "UNKNOWN_MEMBER_ID",
    "IllegalGeneration": "ILLEGAL_GENERATION",
    "RebalanceInProgress": "REBALANCE_IN_PROGRESS",
    "FencedInstanceId": "FENCED_INSTANCE_ID",
}
_ERROR_NAME = re.compile(r"\b(UnknownMemberId|IllegalGeneration|RebalanceInProgress|FencedInstanceId)(?:Error)?\b")
_JAVA = re.compile(r"AbstractCoordinator|ConsumerCoordinator|org\.apache\.kafka|o\.a\.k\.")
_TOPICS = re.compile(r"(?:Updating subscribed topics to: |Subscribed to topic\(s\): )(?:frozenset|set)?[\[({]{1,2}")
_TOPIC = re.compile(r"u?'([A-Za-z0-9._-]{1,249})'(?:, ?)?")
_GROUP_BEHIND = re.compile(r" for group (\S{1,300})")
_COOPERATIVE = re.compile(r"owned=|, assigned=|, revoked=|, added=")


@dataclass(slots=True)
class _Process:
    """What the lines of one stream tell of the process behind it; ``python``: a Python client it surely is."""

    members: dict[str, Member] = field(default_factory=dict[str, Member])
    subscriptions: set[Resources] = field(default_factory=set[Resources])
    python: bool = False


class _Session:
    """The consumers of one file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._processes: dict[str, _Process] = {}

    def feed(self, message: Message) -> Taken | None:
        """Recognise one line. Raises `MalformedLine` for one that is cut off."""
        said = next(((found, tell) for line, tell in _LINES if (found := line.search(message.text)) is not None), None)
        if said is None or _JAVA.search(message.text):
            return None
        found, tell = said
        process = self._process(message)
        if tell is _Session.also_java and not process.python:
            return None
        process.python = True
        return Taken(tuple(tell(self, message, found)))

    def close(self) -> Sequence[Event]:
        """Nothing waits for the end of the file."""
        return ()

    def _process(self, message: Message) -> _Process:
        process = self._processes.get(message.stream)
        if process is None:
            if len(self._processes) >= STREAMS_KEPT:
                del self._processes[next(iter(self._processes))]
            process = self._processes[message.stream] = _Process()
        return process

    def _member(self, message: Message, group: str) -> Member:
        process = self._process(message)
        member = process.members.get(group)
        if member is None:
            if len(process.members) >= GROUPS_KEPT:
                del process.members[next(iter(process.members))]
            member = process.members[group] = Member(group, None, message.stream or self._file)
        member.subscribed = next(iter(process.subscriptions)) if len(process.subscriptions) == 1 else None
        return member

    def _only_member(self, message: Message) -> Member | None:
        """The one that a line without a group must speak of."""
        members = self._process(message).members
        return next(iter(members.values())) if len(members) == 1 else None

    def subscribes(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Updating subscribed topics to: ('a',)``, ``Subscribed to topic(s): {'a'}``"""
        topics: list[str] = []
        topic = _TOPIC.match(message.text, found.end())
        while topic is not None:
            topics.append(topic[1])
            topic = _TOPIC.match(message.text, topic.end())
        subscriptions = self._process(message).subscriptions
        if len(subscriptions) < 2:
            subscriptions.add(tuple(sorted(topics)))
        return []

    def joins(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``(Re-)joining group g``"""
        return self._member(message, found[1]).join(message)

    def given(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Received member id m for group g; will retry join-group`` (kafka-python 2.1+)"""
        return self._member(message, found[2]).given(message, found[1])

    def joined(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Joined group 'g' (generation n) with member_id m`` (aiokafka, kafka-python 1.x)"""
        return self._member(message, found[1]).joined(message, int(found[2]), found[3])

    def joined_protocol(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Successfully joined group g <Generation n (member_id: m, protocol: p)>`` (kafka-python 2.1+)"""
        return self._member(message, found[1]).joined(message, int(found[2]), found[3], found[4])

    def also_java(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Successfully joined group g with generation n``: SyncGroup is answered (kafka-python 1.x, and Java consumers up to 1.0)"""
        member = self._member(message, found[1])
        return member.synced(message, int(found[2])) if member.generation == int(found[2]) else []

    def synced(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Successfully synced group g with generation n`` (aiokafka)"""
        member = self._member(message, found[1])
        return member.synced(message, int(found[2])) if member.generation == int(found[2]) else []

    def takes(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Setting newly assigned partitions {..} for group g``: all of an eager member's"""
        resources, group = _partitions_for_group(message.text, found.end())
        member = self._member(message, group)
        return [*member.assignment(message, resources), *member.assigned(message, resources)]

    def gives_up(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Revoking previously assigned partitions {..} for group g``"""
        resources, group = _partitions_for_group(message.text, found.end())
        return self._member(message, group).revoked(message, resources)

    def changes(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Cooperative rebalance complete for group g: owned=.., assigned=.., revoked=.., added=..`` (kafka-python 3.x)"""
        at = found.end()
        lists: list[Resources] = []
        for _ in range(4):
            name = _COOPERATIVE.match(message.text, at)
            if name is None:
                raise MalformedLine("owned=.., assigned=.., revoked=.., added=..")
            resources, at = python_partitions(message.text, name.end())
            lists.append(resources)
        owned, assigned, revoked, added = lists
        member = self._member(message, found[1])
        member.increment()
        change = member.change(message, assigned, owned)
        return [*change, *(member.revoked(message, revoked) if revoked else ()), *member.assigned(message, added)]

    def gives_up_topics(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Cooperative pre-rebalance for group g: revoking {..}`` (kafka-python 3.x)"""
        return self._member(message, found[1]).revoked(message, python_partitions(message.text, found.end())[0])

    def loses(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Group g lost membership; forcibly revoking {..}`` (kafka-python 3.x)"""
        return self._member(message, found[1]).lost(message, python_partitions(message.text, found.end())[0])

    def is_rebalancing(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Heartbeat failed for group g because it is rebalancing``, ``Group g is rebalancing; rejoining.``"""
        return self._member(message, found[1]).heartbeat_failed(message, "REBALANCE_IN_PROGRESS")

    def is_late(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Heartbeat failed for group g: generation id is not  current.``"""
        return self._member(message, found[1]).heartbeat_failed(message, "ILLEGAL_GENERATION")

    def is_fenced(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Heartbeat failed for group g due to fenced id error: i`` (kafka-python 2.1+)"""
        return self._member(message, found[1]).heartbeat_failed(message, "FENCED_INSTANCE_ID")

    def is_unknown(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Heartbeat[ failed]: local member_id was not recognized``; names no group"""
        member = self._only_member(message)
        if member is None:
            return []
        events = member.heartbeat_failed(message, "UNKNOWN_MEMBER_ID")
        member.forgot_id()
        return events

    def sync_failed(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``SyncGroup for group g failed due to ..``"""
        member = self._member(message, found[1])
        named = _ERROR_NAME.search(message.text, found.end())
        error = "REBALANCE_IN_PROGRESS" if "coordinator rebalance" in message.text else _ERRORS[named[1]] if named else None
        if error is None or not member.attributable:
            return []
        events = member.sync_failed(message, error, member.generation, member.name)
        if error == "UNKNOWN_MEMBER_ID":
            member.forgot_id()
        return events

    def forgot_id(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Attempt to join group g failed due to unknown member id``"""
        self._member(message, found[1]).forgot_id()
        return []

    def commit_failed(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``OffsetCommit for group g failed: ..`` (kafka-python), ``OffsetCommit failed for group g due to group error (..)`` (aiokafka)"""
        member = self._member(message, found[1] or found[2])
        named = _ERROR_NAME.search(message.text, found.end())
        generation, name = member.generation, member.name
        if named is None or generation is None or name is None or not member.attributable:
            return []
        return member.commit_failed(message, _ERRORS[named[1]], generation, name)

    def leaves(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Leaving consumer group g (member m).`` (kafka-python 2.3+), ``Leaving consumer group (g).`` (before)"""
        return self._member(message, found[1] or found[3]).leaves(message, None, found[2] or None)

    def left(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``LeaveGroup request succeeded`` (aiokafka); names no group"""
        member = self._only_member(message)
        return member.leaves(message, None) if member is not None else []

    def polls_too_late(self, message: Message, found: re.Match[str]) -> list[Event]:
        """``Consumer poll timeout has expired.``, ``Heartbeat poll expired, leaving group``; names no group"""
        member = self._only_member(message)
        if member is not None:
            member.poll_timeout = True
        return []

    def noted(self, message: Message, found: re.Match[str]) -> list[Event]:
        """A line of no consequence for what the member owns."""
        return []


def _partitions_for_group(text: str, start: int) -> tuple[Resources, str]:
    resources, end = python_partitions(text, start)
    group = _GROUP_BEHIND.match(text, end)
    if group is None:
        raise MalformedLine("partitions, then ' for group '")
    return resources, group[1]


_LINES: tuple[tuple[re.Pattern[str], Callable[[_Session, Message, re.Match[str]], list[Event]]], ...] = tuple(
    (re.compile(pattern), tell)
    for pattern, tell in (
        (r"\(Re-\)joining group (\S{1,300})", _Session.joins),
        (r"Received member id (\S{1,600}) for group (\S{1,300}); will retry", _Session.given),
        (r"Joined group '([^']{1,300})' \(generation (\d{1,10})\) with member_id (\S{1,600})", _Session.joined),
        (
            r"Successfully joined group (\S{1,300}) <Generation (\d{1,10}) \(member_id: ([^,]{1,600}), protocol: ([^)]{1,250})\)>",
            _Session.joined_protocol,
        ),
        (r"Successfully joined group (\S{1,300}) with generation (\d{1,10})(?!\d)", _Session.also_java),
        (r"Successfully synced group (\S{1,300}) with generation (\d{1,10})(?!\d)", _Session.synced),
        (r"Setting newly assigned partitions (?=set\(|frozenset\(|\{|\[T|\(T)", _Session.takes),
        (r"Revoking previously assigned partitions (?=set\(|frozenset\(|\{|\[T|\(T)", _Session.gives_up),
        (r"Cooperative rebalance complete for group (\S{1,300}): ", _Session.changes),
        (r"Cooperative pre-rebalance for group (\S{1,300}): revoking ", _Session.gives_up_topics),
        (r"Group (\S{1,300}) lost membership; forcibly revoking ", _Session.loses),
        (r"Heartbeat failed for group (\S{1,300}) because it is rebalancing", _Session.is_rebalancing),
        (r"Group (\S{1,300}) is rebalancing; rejoining", _Session.is_rebalancing),
        (r"Heartbeat failed for group (\S{1,300}): generation id is not ", _Session.is_late),
        (r"Heartbeat failed for group (\S{1,300}) due to fenced id error", _Session.is_fenced),
        (r"Heartbeat(?: failed)?: local member_id was not recognized", _Session.is_unknown),
        (r"SyncGroup for group (\S{1,300}) failed due to ", _Session.sync_failed),
        (r"Attempt to join group (\S{1,300}) failed due to unknown member id", _Session.forgot_id),
        (r"OffsetCommit (?:for group (\S{1,300}) failed|failed for group (\S{1,300}))", _Session.commit_failed),
        (r"Leaving consumer group (?:(\S{1,300}) \(member ([^)]{0,600})\)|\((\S{1,300})\)\.)", _Session.leaves),
        (r"LeaveGroup request succeeded", _Session.left),
        (r"Consumer poll timeout has expired|Heartbeat poll expired, leaving group", _Session.polls_too_late),
        (_TOPICS.pattern, _Session.subscribes),
        (
            r"Elected group leader -- performing partition assignments|Updated partition assignment: |Metadata for topic has changed from"
            r"|Triggering follow-up rebalance for group|Cooperative assignment rejected|Assignment rejected: "
            r"|Discovered coordinator \S{1,80} for group|Coordinator for group/|Marking the coordinator dead \(node "
            r"|Group Coordinator Request failed"
            r"|Group Coordinator lookup for group|Failed to join group |Attempt to join group |Heartbeat failed|Heartbeat session expired"
            r"|Heartbeat send request failed|(?:Starting new|Stopping) heartbeat thread|LeaveGroup request (?:for|failed)"
            r"|JoinGroup for group"
            r"|Unexpected error in join group|Unexpected error from SyncGroup|Pre-rebalance offset commit failed|Skipping heartbeat"
            r"|Failing OffsetCommit request since the consumer is not part|Auto offset commit failed",
            _Session.noted,
        ),
    )
)
"""What a line says, and what it tells; the first that fits."""


@dataclass(frozen=True, slots=True)
class _PythonClients:
    name: str = "python-clients"
    anchors: tuple[str, ...] = (
        "(Re-)joining group ",
        "Received member id ",
        "Joined group '",
        "Successfully joined group ",
        "Successfully synced group ",
        "newly assigned partitions ",
        "previously assigned partitions ",
        "Cooperative rebalance complete",
        "Cooperative pre-rebalance",
        "Cooperative assignment rejected",
        "Assignment rejected: ",
        "lost membership; forcibly",
        "is rebalancing; rejoining",
        "Heartbeat ",
        "Heartbeat: local member_id",
        "SyncGroup for group ",
        "Attempt to join group ",
        "OffsetCommit ",
        "Leaving consumer group ",
        "LeaveGroup request ",
        "poll timeout has expired",
        "Updating subscribed topics to: ",
        "Subscribed to topic(s): ",
        "Elected group leader -- ",
        "Updated partition assignment: ",
        "Metadata for topic has changed from",
        "Triggering follow-up rebalance",
        "Discovered coordinator ",
        "Coordinator for group/",
        "Marking the coordinator dead",
        "Group Coordinator ",
        "Failed to join group ",
        " heartbeat thread",
        "JoinGroup for group",
        "Unexpected error ",
        "Pre-rebalance offset commit failed",
        "Skipping heartbeat",
        "Auto offset commit failed",
    )

    def open(self, file: str) -> _Session:
        """A session for ``file``, whose name goes into the member ids that it has to invent."""
        return _Session(file)


READER = _PythonClients()
