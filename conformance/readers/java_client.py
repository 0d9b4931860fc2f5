"""Logs of Java consumers under the classic protocol: KafkaConsumer 0.10 to 4.x, and so Streams, ksqlDB, Spring, Connect's sinks.

A line is found by ``[Consumer clientId=.., groupId=..] `` (since 1.1) or by ``group X`` behind a Java logger (0.10 to 1.0).
Wordings: AbstractCoordinator, ConsumerCoordinator, ConsumerRebalanceListenerInvoker, KafkaConsumer, StreamsPartitionAssignor
and StreamThread of those releases. Recognised without events: consumers of KIP-848, Schema Registry's leader election.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...spec.events import Event, Resources
from . import group_lines
from .base import MalformedLine, Message, Taken
from .member import Member
from .text import assignment_map, partitions, topic_names

CLIENTS_KEPT = 50_000
"""How many clients and streams of one file are remembered; beyond that the oldest is forgotten."""

_PREFIX = re.compile(r"\[Consumer (?:instanceId=([^,\]]{1,300}), )?clientId=([^\]]{0,300}?), groupId=([^\]]{0,300})\] ")
_REGISTRY = re.compile(r"\[Schema registry clientId=[^\]]{0,300}\] ")
_JAVA = re.compile(
    r"AbstractCoordinator|ConsumerCoordinator|org\.apache\.kafka\.clients|o\.a\.k\w{0,4}\.c|\(id: -?\d{1,10} rack: "
    r"|partitions \[(?!TopicPartition)"
)
_KIP_848 = re.compile(
    r"consumer_background_thread|AsyncKafkaConsumer|MembershipManager|CoordinatorRequestManager|HeartbeatRequestManager"
    r"|with local epoch -?\d|with epoch -?\d{1,9} transitioned"
)
_WORKER = "[Worker clientId="
_VERSION = re.compile(r"Kafka version ?: ([\w.+-]{1,60})")
_UNREGISTERED = re.compile(r"App info kafka\.consumer for (\S{1,300}) unregistered")
_FINISHED = re.compile(r"Finished assignment for group at generation (-?\d{1,10}): ")

_BLOCK_LINE = re.compile(
    r"(?P<assigned>Assigned partitions:|now assigned partitions:)"
    r"|(?P<owned>Current owned partitions:|compare with previously owned partitions:)"
    r"|(?P<added>Added partitions \(assigned - owned\):|newly added partitions:)"
    r"|(?P<revoked>Revoked partitions \(owned - assigned\):|revoked partitions:)"
    r"|^\s{0,8}Member:\s"
)
_MAP_LINE = re.compile(r"^\s{0,8}\{")
_TASKS_LINE = re.compile(r"^\s{0,8}(?:New|Existing) (?:active|standby) tasks:")

_WITHOUT_PREFIX = re.compile(
    r"\(Re-\)joining group (?P<joining>\S{1,300})"
    r"|Successfully joined group (?P<joined>\S{1,300}) with generation (?P<generation>\d{1,10})"
    r"|(?P<revoking>Revoking previously assigned partitions )(?=\[(?!TopicPartition))"
    r"|(?P<setting>Setting newly assigned partitions )(?=\[(?!TopicPartition))"
    r"|Attempt to heart ?beat failed for group (?P<beating>\S{1,300}) (?P<why>[^\n]{0,300})"
    r"|(?:Attempt to join group|Discovered coordinator|Marking the coordinator|Finished assignment for group"
    r"|Performing assignment for group|Sending (?:JoinGroup|leader SyncGroup|follower SyncGroup|LeaveGroup|coordinator request)"
    r"|Received successful (?:join group|heartbeat) response|SyncGroup for group"
    r"|(?:OffsetCommit|Offset commit|Auto offset commit failed) for group)\b"
)
_FOR_GROUP = re.compile(r" for group (\S{1,300})")

_STREAM_THREAD = re.compile(r"stream-thread \[([^\]]{1,300})\] ")
_STREAMS = re.compile(
    r"followup rebalance|probing rebalance|immediate rebalance|Finished (?:un)?stable assignment|Assigned tasks|Handle new assignment"
    r"|until it is safely revoked|Cooperative rebalancing|Eager rebalancing|rebalance protocol|Decided on assignment"
    r"|partition (?:assignment|revocation) took|PARTITIONS_(?:ASSIGNED|REVOKED)|Requested to schedule|Constructed client metadata"
    r"|end of consumer rebalanc|Rebalance (?:occurred|in progress)|version probing|[Rr]ejoin|lost partitions|partitions lost"
)


@dataclass(slots=True)
class _Block:
    """An assignment listed over several lines; without ``member`` it is only to be recognised."""

    member: Member | None
    found: dict[str, Resources] = field(default_factory=dict[str, Resources])


@dataclass(slots=True)
class _Process:
    """What the lines of one stream tell of the process behind it; ``started`` counts the clients it was seen to create."""

    java: bool = False
    release: str | None = None
    started: int = 0


class _Session:
    """The consumers of one file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._processes: dict[str, _Process] = {}
        self._members: dict[tuple[str, str, str], Member] = {}
        self._groups: dict[tuple[str, str], set[str]] = {}
        self._started: dict[tuple[str, str, str], int] = {}
        self._kip_848: set[tuple[str, str, str]] = set()
        self._led: dict[str, tuple[int, Sequence[str]]] = {}
        self._probing: dict[tuple[str, str], bool] = {}
        self._block: _Block | None = None
        self._follows: re.Pattern[str] | None = None

    def feed(self, message: Message) -> Taken | None:
        """Recognise one line. Raises `MalformedLine` for one that is cut off."""
        follows, self._follows = self._follows, None
        if follows is not None and follows.search(message.text):
            self._follows = follows
            return Taken(more=True)
        prefix = _PREFIX.search(message.text)
        block, self._block = self._block, None
        if prefix is not None:
            return self._consumer_line(message, prefix)
        if block is not None:
            taken = self._block_line(block, message, message.text)
            if taken is not None:
                return taken
        return self._other_line(message)

    def close(self) -> Sequence[Event]:
        """Nothing waits for the end of the file."""
        return ()

    def _member(self, message: Message, client: str | None, group: str) -> Member:
        key = (message.stream, client or "", group)
        member = self._members.get(key)
        if member is None:
            if len(self._members) >= CLIENTS_KEPT:
                oldest = next(iter(self._members))
                del self._members[oldest]
                self._groups.pop(oldest[:2], None)
            member = self._members[key] = Member(group, client, message.stream or self._file)
            member.streams = client is not None and "-StreamThread-" in client
            self._groups.setdefault(key[:2], set()).add(group)
        member.release = self._process(message).release
        return member

    def _members_of(self, message: Message, client: str) -> list[Member]:
        groups = self._groups.get((message.stream, client), set())
        return [self._members[key] for group in sorted(groups) if (key := (message.stream, client, group)) in self._members]

    def _process(self, message: Message) -> _Process:
        process = self._processes.get(message.stream)
        if process is None:
            if len(self._processes) >= CLIENTS_KEPT:
                del self._processes[next(iter(self._processes))]
            process = self._processes[message.stream] = _Process()
        return process

    def _consumer_line(self, message: Message, prefix: re.Match[str]) -> Taken | None:
        instance, client, group = prefix.groups()
        body = message.text[prefix.end() :]
        if group in ("", "null") or not body.startswith(_STARTS):
            return None
        key = (message.stream, client, group)
        member = self._member(message, client, group)
        member.instance = instance
        process = self._process(message)
        process.java = True
        if key in self._kip_848 or _KIP_848.search(message.text):
            return self._kip_848_line(message, key, member, body)
        if body.startswith("Subscribed to") and process.started > self._started.get(key, 0):
            events = member.restarted(message, "a new process took over the client.id")
        else:
            events = []
        self._started[key] = process.started
        handle = next((handle for start, handle in _LINES if body.startswith(start)), None)
        events += handle(self, member, message, body) if handle is not None else group_lines.read(member, message, body) or []
        return Taken(tuple(events), more=self._block is not None)

    def _kip_848_line(self, message: Message, key: tuple[str, str, str], member: Member, body: str) -> Taken:
        events: list[Event] = []
        if key not in self._kip_848:
            self._kip_848.add(key)
            events = member.out_of_scope(message, "KIP-848 consumer protocol: out of scope")
        if body.startswith(("Reconciling assignment", "Updating assignment")):
            self._block = _Block(None)
        return Taken(tuple(events), more=self._block is not None)

    def _block_line(self, block: _Block, message: Message, text: str) -> Taken | None:
        line = _BLOCK_LINE.search(text)
        if line is None:
            return None
        if block.member is not None and line.lastgroup is not None:
            start = line.end()
            while text.startswith("  ", start):
                start += 1
            block.found[line.lastgroup], _ = partitions(text, start + text.startswith(" ", start))
        if line.lastgroup != "revoked":
            self._block = block
            return Taken(more=True)
        if block.member is None or not {"assigned", "owned"} <= block.found.keys():
            return Taken()
        return Taken(tuple(block.member.change(message, block.found["assigned"], block.found["owned"])))

    def _other_line(self, message: Message) -> Taken | None:
        text = message.text
        process = self._process(message)
        version = _VERSION.search(text)
        if version is not None:
            process.release = version[1]
            process.started += 1
            process.java = process.java or "Kafka version :" in text
            return None
        unregistered = _UNREGISTERED.search(text)
        if unregistered is not None:
            members = self._members_of(message, unregistered[1])
            return Taken(tuple(members[0].closed(message)) if len(members) == 1 else ())
        thread = _STREAM_THREAD.search(text)
        if thread is not None:
            return self._streams_line(message, thread)
        registry = _REGISTRY.search(text)
        if registry is not None:
            return Taken() if text.startswith(_STARTS, registry.end()) else None
        if "Final assignment of partitions to consumers" in text:
            self._follows = _MAP_LINE
            return Taken(more=True)
        if "claiming the same TopicPartition" in text or "Finished rebalance with" in text or "Decided on assignment: " in text:
            return Taken()
        return self._line_without_prefix(message)

    def _line_without_prefix(self, message: Message) -> Taken | None:
        text = message.text
        line = _WITHOUT_PREFIX.search(text)
        if line is None or _WORKER in text:
            return None
        process = self._process(message)
        process.java = process.java or _JAVA.search(text) is not None
        if not process.java:
            return None
        events: list[Event] = []
        if line["joining"]:
            events = self._member(message, None, line["joining"]).join(message)
        elif line["joined"]:
            events = self._member(message, None, line["joined"]).joined(message, int(line["generation"]))
        elif line["revoking"] or line["setting"]:
            resources, end = partitions(text, line.end())
            group = _FOR_GROUP.match(text, end)
            if group is None:
                raise MalformedLine("partitions, then ' for group '")
            member = self._member(message, None, group[1])
            events = member.revoked(message, resources) if line["revoking"] else member.assigned(message, resources)
        elif line["beating"]:
            member = self._member(message, None, line["beating"])
            events = group_lines.heartbeat_without_generation(member, message, line["why"])
        return Taken(tuple(events))

    def _streams_line(self, message: Message, thread: re.Match[str]) -> Taken | None:
        if _STREAMS.search(message.text, thread.end()) is None:
            return None
        client = thread[1] if thread[1].endswith("-consumer") else f"{thread[1]}-consumer"
        key = (message.stream, client)
        members = self._members_of(message, client)
        for member in members:
            member.streams = True
        rest = message.text[thread.end() :]
        if "Requested to schedule" in rest:
            self._probing[key] = "probing rebalance" in rest
        elif "Triggering the followup rebalance" in rest and self._probing.pop(key, False):
            for member in members:
                member.probing = True
        if "Handle new assignment" in rest:
            self._follows = _TASKS_LINE
        return Taken(more=self._follows is not None)

    def joined(self, member: Member, message: Message, body: str) -> list[Event]:
        """``Successfully joined group with generation ..``; up to 2.6.0 the leader's lines may tell this member's id."""
        plain = group_lines.JOINED_PLAIN.match(body)
        generation, members = self._led.get(member.group, (-1, ()))
        own = member.own_among(members) if plain is not None and generation == int(plain[1]) else None
        return group_lines.joined(member, message, body, own)

    def leads(self, member: Member, message: Message, body: str) -> list[Event]:
        """``Finished assignment for group at generation {n}: {member=Assignment(partitions=[..]), ..}`` (2.4+)"""
        finished = _FINISHED.match(body)
        if finished is None:
            return []
        generation = int(finished[1])
        assignment = None if "$Assignment@" in body else assignment_map(body, finished.end())
        members = list(assignment) if assignment is not None else _members_of_objects(body[finished.end() :])
        self._led[member.group] = (generation, members)
        return member.led(message, generation, members, assignment)

    def notified(self, member: Member, message: Message, body: str) -> list[Event]:
        """``Notifying assignor about the new Assignment(partitions=[..])`` (2.6+)"""
        return member.assignment(message, _partitions_behind(body, "Notifying assignor about the new Assignment(partitions="))

    def changes(self, member: Member, message: Message, body: str) -> list[Event]:
        """``Updating assignment with`` and its four lists, cooperative members only (2.4+)"""
        member.increment()
        self._block = _Block(member)
        return []

    def takes(self, member: Member, message: Message, body: str) -> list[Event]:
        """``Adding newly assigned partitions: ..`` (2.4+), ``Setting newly assigned partitions: ..`` (before)"""
        start = "Adding newly assigned partitions" if body.startswith("A") else "Setting newly assigned partitions"
        return member.assigned(message, _partitions_behind(body, start + ":" if body.startswith(start + ":") else start + " "))

    def gives_up(self, member: Member, message: Message, body: str) -> list[Event]:
        """``Revoke previously assigned partitions ..`` (2.4+), ``Revoking previously assigned partitions [..]`` (before)"""
        start = "Revoke previously assigned partitions" if body.startswith("Revoke ") else "Revoking previously assigned partitions"
        return member.revoked(message, _partitions_behind(body, start))

    def loses(self, member: Member, message: Message, body: str) -> list[Event]:
        """``Lost previously assigned partitions ..`` (2.4+)"""
        return member.lost(message, _partitions_behind(body, "Lost previously assigned partitions"))

    def noted(self, member: Member, message: Message, body: str) -> list[Event]:
        """A line of no consequence for what the member owns."""
        return []

    def subscribes(self, member: Member, message: Message, body: str) -> list[Event]:
        """``Subscribed to topic(s): a, b``"""
        start = "Subscribed to topic(s): "
        member.subscribed = topic_names(body, len(start)) if body.startswith(start) else None
        return []


def _members_of_objects(listed: str) -> list[str]:
    """The ids in ``{member=org.apache.kafka..$Assignment@1f, ..}``, as 2.4 prints the leader's assignment."""
    pairs = (pair.partition("=org.apache.kafka.") for pair in listed.removeprefix("{").split(", "))
    return [member for member, equals, _ in pairs if equals]


def _partitions_behind(body: str, start: str) -> Resources:
    at = len(start)
    return partitions(body, at + body.startswith(" ", at))[0]


_LINES: tuple[tuple[str, Callable[[_Session, Member, Message, str], list[Event]]], ...] = (
    ("Successfully joined group", _Session.joined),
    ("Finished assignment for group", _Session.leads),
    ("Notifying assignor about the new Assignment(", _Session.notified),
    ("Updating assignment with", _Session.changes),
    ("Adding newly assigned partitions", _Session.takes),
    ("Setting newly assigned partitions", _Session.takes),
    ("Revoke previously assigned partitions", _Session.gives_up),
    ("Revoking previously assigned partitions", _Session.gives_up),
    ("Lost previously assigned partitions", _Session.loses),
    ("Subscribed to ", _Session.subscribes),
    ("Unsubscribed all topics", _Session.subscribes),
    *(
        (start, _Session.noted)
        for start in (
            "Reconciling assignment with",
            "Skipped assignment",
            "The following subscribed topics are not assigned",
            "The following not-subscribed topics are assigned",
            "We received an assignment",
            "Received assignment",
            "User provided listener",
            "With the COOPERATIVE protocol",
            "Need to revoke partitions",
            "Giving away all assigned partitions",
            "Asynchronous auto-commit of offsets",
            "Synchronous auto-commit of offsets",
        )
    ),
)
"""How a line begins behind the prefix, and what it tells; the first that fits."""

_STARTS = tuple(start for start, _ in (*_LINES, *group_lines.LINES))


@dataclass(frozen=True, slots=True)
class _JavaClient:
    name: str = "java-client"
    anchors: tuple[str, ...] = (
        "[Consumer ",
        "Kafka version",
        "App info kafka.consumer for ",
        "stream-thread [",
        "[Schema registry ",
        "Finished rebalance with",
        "Final assignment of partitions to consumers",
        "claiming the same TopicPartition",
        "Decided on assignment: ",
        "for group ",
        "ing group ",
        "joined group ",
        "to join group ",
        "Sending JoinGroup",
    )

    def open(self, file: str) -> _Session:
        """A session for ``file``, whose name goes into the member ids that it has to invent."""
        return _Session(file)


READER = _JavaClient()
