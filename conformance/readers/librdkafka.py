"""Reader of librdkafka's own log, ``debug=cgrp,assignor``, releases 1.0 to 2.x, also as its language bindings print it again.

A line bears the client's name ``{client.id}#consumer-{n}``. Everything is folded per name (and stream); a line without a
name can't be laid to one client's door and gives no ownership. Which partitions a client has is printed from 1.6 on, in
lists of one line per partition: what SyncGroup gave it ("target"), and the whole group assignment after each change. The
client believes in a change when its application has been asked, which the join states show: an assignment when
``wait-assign-call`` ends in ``steady``, a revocation when the unassign is complete.

A client that assigns partitions itself never joins: it shows states and coordinators, but no membership.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from ...spec.events import NONE, Event, Gap, Joined
from .base import LogReader, Message, Session, Taken
from .member import Member
from .text import sorted_names

_THREAD = "[thrd:"
_BODY = re.compile(r"\[thrd:(?P<thread>.{0,300}?)\]: (?P<text>.*)")
_SHORT = re.compile(r"%\d\|[\d.]{1,20}\|(?P<facility>[A-Z0-9_]{2,20})\|: (?P<text>.*)")
_HEADS = (
    re.compile(r"%\d\|[\d.]{1,20}\|(?P<facility>[A-Z0-9_]{2,20})\|(?P<name>[^|]{1,300})\| $"),  # as librdkafka prints it
    re.compile(r"(?P<facility>[A-Z0-9_]{2,20}) \[(?P<name>[^\]]{1,300})\] $"),  # Python's logger
    re.compile(r"(?P<facility>)(?<![^\s|\[])(?P<name>[^\s|\[\]]{1,300}#consumer-\d{1,9})"),  # others that print the name
)
_HEAD_KEPT = 400
_MAIN = "main"
"""The thread that prints the lists; lines of other threads fall between theirs."""

_GROUP = re.compile(r'[Gg]roup "(?P<group>[^"]+)"')
_LIST = re.compile(r"List with (?P<count>\d{1,7}) partition\(s\):")
_CHANGES_AGAIN = re.compile(r": (?:setting|clearing) group assignment")
"""The second line about one change of the group assignment."""

_ITEM = re.compile(r" (?P<topic>[A-Za-z0-9._-]{1,249}) \[(?P<partition>\d{1,10})\] offset ")

_ABOUT_GROUPS = re.compile(
    r'[Gg]roup "|(?:Join|Sync|Leave)Group|Heartbeat |^Consumer group|maximum poll interval|^List with |^ \S+ \[\d+\] offset '
)
_FACILITIES = re.compile(
    r"(?:CLEAR|COOP|REMOVE|UN)?ASSIGN|ASSIGN(?:DONE|MENT|OR)|CGRP(?:JOINSTATE|METADATA|OP|STATE|TERM)?|CLOSE|DUMP(?:_[A-Z]{3})?"
    r"|GRP(?:ASSIGNMENT|LEADER)|HEARTBEAT|(?:NO|RE)?JOIN|JOINGROUP|LEAVE(?:GROUP)?|LOST|MAXPOLL|MEMBERID|REBALANCE|REMOVE"
    r"|SESSTMOUT|STICKY|STOPSERVE|(?:UN)?SUBSCRIBE|SUBSCRIPTION|SYNCGROUP"
)
"""The facilities whose lines are about a rebalance. Bindings that don't print it leave what the line says."""

_GRANTED = frozenset({"Success", "(no error)"})
_ERRORS: Mapping[str, str] = {
    "Broker: Coordinator load in progress": "COORDINATOR_LOAD_IN_PROGRESS",
    "Broker: Coordinator not available": "COORDINATOR_NOT_AVAILABLE",
    "Broker: Not coordinator": "NOT_COORDINATOR",
    "Broker: Specified group generation id is not valid": "ILLEGAL_GENERATION",
    "Broker: Inconsistent group protocol": "INCONSISTENT_GROUP_PROTOCOL",
    "Broker: Invalid group.id": "INVALID_GROUP_ID",
    "Broker: Unknown member": "UNKNOWN_MEMBER_ID",
    "Broker: Invalid session timeout": "INVALID_SESSION_TIMEOUT",
    "Broker: Group rebalance in progress": "REBALANCE_IN_PROGRESS",
    "Broker: Group authorization failed": "GROUP_AUTHORIZATION_FAILED",
    "Broker: Group member needs a valid member ID": "MEMBER_ID_REQUIRED",
    "Broker: Consumer group has reached maximum size": "GROUP_MAX_SIZE_REACHED",
    "Broker: Static consumer fenced by other consumer with same group.instance.id": "FENCED_INSTANCE_ID",
}
_MEMBER_ID_REQUIRED = "MEMBER_ID_REQUIRED"

_SETTLED = frozenset({"steady", "wait-assign-call", "wait-unassign-call", "wait-unassign-to-complete", "wait-incr-unassign-to-complete"})
"""The join states in which a heartbeat's answer is about the generation that the client is in."""

_COMMITS_KEPT = 100
_NOTHING: frozenset[str] = frozenset()


class _Client:
    """What the lines of one client name tell. ``held``: what it believes it owns; None while unknown."""

    def __init__(self, client: str, place: str, group: str) -> None:
        self.group = group
        self.member = Member(group, client, place)
        self._held: frozenset[str] | None = None
        self._given: frozenset[str] | None = None
        self._awaited: Callable[[Message, frozenset[str] | None], list[Event]] | None = None
        self._listed: set[str] = set()
        self._to_list: int | None = None
        self._cooperative = False
        self._commits: deque[int] = deque(maxlen=_COMMITS_KEPT)

    def read(self, text: str, thread: str, message: Message) -> list[Event]:
        """The events of one line, without its prefix."""
        if self._awaited and thread == _MAIN:
            if self._to_list is None and (header := _LIST.match(text)):
                self._to_list = int(header["count"])
                return self._list_is_complete(message)
            if self._to_list is not None and (item := _ITEM.match(text)):
                self._listed.add(f"{item['topic']}-{item['partition']}")
                return self._list_is_complete(message)
            replaced = self._to_list is None and _CHANGES_AGAIN.search(text)
            events = [] if replaced else self._list_ends(message, None)
        else:
            events = []
        for pattern, act in _LINES:
            if found := pattern.search(text):
                return events + act(self, found, message)
        return events

    def starts(self, _: re.Match[str], message: Message) -> list[Event]:
        """A process begins to log under this name."""
        self._held = self._given = _NOTHING
        self._commits.clear()
        return self.member.restarted(message, "another process logs under this client name")

    def renamed(self, found: re.Match[str], message: Message) -> list[Event]:
        """Its member id was reset, or taken from a JoinGroup response."""
        if found["old"] == "(not-set)":
            return self.starts(found, message)
        if not found["new"]:
            self.member.forgot_id()
        return []

    def joins(self, _: re.Match[str], message: Message) -> list[Event]:
        return self.member.join(message)

    def joined(self, found: re.Match[str], message: Message) -> list[Event]:
        generation, member = int(found["generation"]), found["member"]
        if found["error"] in _GRANTED:
            self._cooperative = False
            return self.member.joined(message, generation, member, found["protocol"]) if member and generation >= 0 else []
        error = _ERRORS.get(found["error"])
        if error is None:
            return []
        refused = self.member.join_failed(message, error, None, member or None)
        return refused + (self.member.given(message, member) if error == _MEMBER_ID_REQUIRED and member else [])

    def synced(self, found: re.Match[str], message: Message) -> list[Event]:
        if found["error"] in _GRANTED:
            self._awaited = self._target
            return []
        error = _ERRORS.get(found["error"])
        if error is None or not self.member.attributable:
            return []
        return self.member.sync_failed(message, error, self.member.generation, self.member.name)

    def cooperates(self, _: re.Match[str], __: Message) -> list[Event]:
        self._cooperative = True
        self.member.increment()
        return []

    def group_assignment_changes(self, found: re.Match[str], _: Message) -> list[Event]:
        if found.groupdict().get("former") == "0":
            self._held = _NOTHING
        self._awaited = self._change
        return []

    def group_assignment_cleared(self, _: re.Match[str], __: Message) -> list[Event]:
        self._given, self._awaited = _NOTHING, None
        return []

    def assigned(self, _: re.Match[str], message: Message) -> list[Event]:
        """The application has been asked to take what the group assignment holds."""
        held = self._settle()
        if self._held is None:
            return []
        if held is None and self._cooperative:
            return self.member.assigned(message, ())
        return self.member.assigned(message, sorted_names(self._held - (held or _NOTHING)))

    def unassigned(self, _: re.Match[str], message: Message) -> list[Event]:
        """The application has been asked to give up what left the group assignment, and fetching it has stopped."""
        held = self._settle()
        gone = held - self._held if held and self._held is not None else _NOTHING
        return self.member.revoked(message, sorted_names(gone)) if gone else []

    def lost(self, _: re.Match[str], message: Message) -> list[Event]:
        held, self._held = self._held, _NOTHING
        return self.member.lost(message, sorted_names(held)) if held else []

    def heartbeat_failed(self, found: re.Match[str], message: Message) -> list[Event]:
        error = _ERRORS.get(found["error"])
        if error is None or found["state"] not in _SETTLED:
            return []
        return self.member.heartbeat_failed(message, error)

    def commits(self, found: re.Match[str], _: Message) -> list[Event]:
        self._commits.append(int(found["generation"]))
        return []

    def committed(self, found: re.Match[str], message: Message) -> list[Event]:
        """Answers come in the order of the requests, on one connection."""
        generation = self._commits.popleft() if self._commits else -1
        error, member = _ERRORS.get(found["error"]), self.member.name
        if error is None or member is None or not self.member.attributable or generation != self.member.generation:
            return []
        return self.member.commit_failed(message, error, generation, member)

    def poll_timeout(self, _: re.Match[str], __: Message) -> list[Event]:
        self.member.poll_timeout = True
        return []

    def leaves(self, _: re.Match[str], message: Message) -> list[Event]:
        return self.member.leaves(message, None)

    def closed(self, _: re.Match[str], message: Message) -> list[Event]:
        self._held = self._given = _NOTHING
        return self.member.closed(message)

    def end(self, message: Message) -> list[Event]:
        """The end of the file."""
        return self._list_ends(message, None) if self._awaited else []

    def _settle(self) -> frozenset[str] | None:
        """The client believes in the group assignment from now on; what it believed before. Lines that may be of several
        processes leave unknown what is held."""
        held, self._held = self._held, self._given if self.member.attributable else None
        return held

    def _list_is_complete(self, message: Message) -> list[Event]:
        return self._list_ends(message, frozenset(self._listed)) if len(self._listed) == self._to_list else []

    def _list_ends(self, message: Message, listed: frozenset[str] | None) -> list[Event]:
        """``listed`` None: the list did not come, or not whole."""
        awaited, self._awaited = self._awaited, None
        self._listed, self._to_list = set(), None
        return awaited(message, listed) if awaited else []

    def _target(self, message: Message, listed: frozenset[str] | None) -> list[Event]:
        generation = self.member.generation
        if generation is None:
            return []
        if listed is None:
            return self.member.synced(message, generation)
        return self.member.assignment(message, sorted_names(listed))

    def _change(self, message: Message, listed: frozenset[str] | None) -> list[Event]:
        self._given = listed
        if listed is not None or self._held is None:
            return []
        self._held = None
        gap = Gap(
            group=self.group,
            ts=message.ts,
            generation=self.member.generation,
            member=self.member.name,
            client=self.member.client,
            src=message.src,
            reason="the list of the partitions it owns is not whole",
        )
        return [gap] if self.member.attributable else []


_LINES: tuple[tuple[re.Pattern[str], Callable[[_Client, re.Match[str], Message], list[Event]]], ...] = tuple(
    (re.compile(pattern), act)
    for pattern, act in (
        (r"^librdkafka v\S+ \(0x[0-9a-f]+\) \S+ initialized", _Client.starts),
        (r': updating member id "(?P<old>[^"]*)" -> "(?P<new>[^"]*)"', _Client.renamed),
        (r'Joining group "[^"]*" with \d+ subscribed topic', _Client.joins),
        (
            r"^JoinGroup response: GenerationId (?P<generation>-?\d{1,10}), Protocol (?P<protocol>[^,]*), LeaderId [^,]*, "
            r"my MemberId (?P<member>[^,]*), (?:member metadata count \d+|\d+ members in group): (?P<error>.*)",
            _Client.joined,
        ),
        (r"^SyncGroup response: (?P<error>.*) \(\d+ bytes of MemberState data\)", _Client.synced),
        (r": incremental assignment: \d+ newly added, \d+ revoked partitions based on assignment", _Client.cooperates),
        (r": \d+ partition\(s\) being added to group assignment of (?P<former>\d+) partition", _Client.group_assignment_changes),
        (r": \d+ partition\(s\) being removed from group assignment of \d+ partition", _Client.group_assignment_changes),
        (r": setting group assignment to \d+ partition", _Client.group_assignment_changes),
        (r": clearing group assignment", _Client.group_assignment_cleared),
        (r" changed join state wait-assign-call -> steady ", _Client.assigned),
        (r" changed join state wait-(?:incr-)?unassign-to-complete -> ", _Client.unassigned),
        (r": unassign done in state ", _Client.unassigned),
        (r": current assignment of \d+ partition\(s\) lost: ", _Client.lost),
        (
            r" heartbeat error response in state \S+ \(join[- ]state (?P<state>[\w-]+), \d+ partition\(s\) assigned\): (?P<error>.*)",
            _Client.heartbeat_failed,
        ),
        (r"Committing offsets for \d+ partition\(s\) with generation-id (?P<generation>-?\d{1,10}) in join-state ", _Client.commits),
        (r"OffsetCommit for \d+ partition\(s\) in join-state .{0,400}: returned: (?P<error>.*)", _Client.committed),
        (r"^Application maximum poll interval \(\d+ms\) exceeded by ", _Client.poll_timeout),
        (r": leave \(in state [^()]*\)$", _Client.leaves),
        (r"^Consumer closed$", _Client.closed),
    )
)

_REFUSED = re.compile(r'Group "(?P<group>[^"]+)": Rejoining group .{0,80}: JoinGroup error: (?P<error>.*)')


class _Session:
    def __init__(self, file: str) -> None:
        self._file = file
        self._clients: dict[tuple[str, str], _Client] = {}
        self._last: Message | None = None

    def feed(self, message: Message) -> Taken | None:
        at = message.text.find(_THREAD)
        body = _SHORT.match(message.text) if at < 0 else _BODY.match(message.text, at)
        if body is None:
            return None
        text = body["text"]
        head = _head(message.text[max(0, at - _HEAD_KEPT) : at]) if at >= 0 else None
        facility = head["facility"] if head else body.groupdict().get("facility")
        about_groups = bool(facility and _FACILITIES.fullmatch(facility)) or _ABOUT_GROUPS.search(text) is not None
        if head is None:
            return Taken(_refused(text, message)) if about_groups else None
        group = _GROUP.search(text)
        client = self._client(message.stream, head["name"], group["group"] if group else None)
        self._last = message
        events = client.read(text, body["thread"], message) if client else []
        return Taken(events) if events or about_groups else None

    def close(self) -> Sequence[Event]:
        last = self._last
        return [event for client in self._clients.values() for event in client.end(last)] if last else []

    def _client(self, stream: str, name: str, group: str | None) -> _Client | None:
        known = self._clients.get((stream, name))
        if group is None or (known and known.group == group):
            return known
        known = _Client(name.rpartition("#")[0], stream or self._file, group)
        self._clients[stream, name] = known
        return known


def _head(text: str) -> re.Match[str] | None:
    """The client's name and the facility, from what stands before the thread."""
    return next((found for pattern in _HEADS if (found := pattern.search(text))), None)


def _refused(text: str, message: Message) -> list[Event]:
    """A line that names the group but no client still tells that the group refused somebody."""
    found = _REFUSED.search(text)
    error = _ERRORS.get(found["error"], NONE) if found else NONE
    if found is None or error == NONE:
        return []
    return [Joined(group=found["group"], ts=message.ts, error=error, seen_by="member", src=message.src)]


class _Reader:
    name = "librdkafka"
    anchors = ("[thrd:", "|: ")

    def open(self, file: str) -> Session:
        return _Session(file)


READER: LogReader = _Reader()
