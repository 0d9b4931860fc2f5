"""Logs of Kafka Connect workers in distributed mode, 2.3 to 4.x, and their older eager wording.

Wordings: DistributedHerder, WorkerCoordinator, ExtendedAssignment and ConnectProtocol of those releases, and the lines of
AbstractCoordinator. "Joined group at generation .." lists everything that the worker owns after the round (kept and new) and
what it had to give up in it. The consumers of its connectors are `java_client`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ...spec.events import NONE, Event, Joined, Lost, Owned, Resources, Revoked, Synced
from . import group_lines
from .base import MalformedLine, Message, Taken
from .member import Member
from .text import sorted_names, without_layout_tail

WORKERS_KEPT = 10_000
"""How many workers and streams of one file are remembered; beyond that the oldest is forgotten."""
NAMES_KEPT = 10_000
"""How many connector names of one file are remembered, to split lists of names that hold commas."""
WORDS_JOINED = 8
"""A connector's name is looked for in at most so many pieces of a list split at commas."""

_PREFIX = re.compile(r"\[Worker clientId=([^\]]{0,300}?), groupId=([^\]]{0,300})\] ")
_VERSION = re.compile(r"Kafka version ?: ([\w.+-]{1,60})")
_MAX_DELAY = re.compile(r"scheduled\.rebalance\.max\.delay\.ms = (\d{1,10})(?!\d)")
_ROUND = re.compile(
    r"Joined group (?:at generation (?P<generation>\d{1,10}) )?(?:with protocol version (?P<version>-?\d{1,5}) )?and got assignment: "
    r"Assignment\{error=(?P<error>-?\d{1,5}), leader='(?P<leader>[^']{0,600})', leaderUrl='[^']{0,2000}', offset=(?P<offset>-?\d{1,19}), "
)
_DELAY = re.compile(r"(\d{1,10})\}")
_TASK = re.compile(r"(?s).+-\d{1,9}\Z")
_STARTS_CONNECTOR = re.compile(r"(?:Starting connector |Connector )(.{1,300}?)(?: config (?:updated|removed)| *[(\[]org\.|$)")


@dataclass(frozen=True, slots=True)
class _Round:
    """What one "Joined group" line says; ``generation`` and ``delay_ms`` None where its release doesn't print them."""

    generation: int | None
    leader: str | None
    resources: Resources
    revoked: Resources | None
    delay_ms: int | None
    extra: dict[str, object]


class _Worker(Member):
    """A worker; ``owned`` is what the last round left it with."""

    def __init__(self, group: str, client: str, place: str) -> None:
        super().__init__(group, client, place)
        self.owned: Resources = ()
        self.stopping = False

    def completes(self, message: Message, done: _Round) -> list[Event]:
        """The round is over, and what had to be given up is stopped."""
        if self._confused:
            return []
        generation = self.generation if done.generation is None else done.generation
        if generation is None:
            return []
        if self.name is None:
            self._enter(message, generation, self._unnamed(generation))
        elif generation != self.generation:
            self.owned = ()
            return self._lose_track(message, "a round ended whose JoinGroup was not logged") if self.attributable else []
        self.owned = done.resources
        self.stopping = False
        self.settle(done.resources)
        name, leader = self.name, done.leader
        events: list[Event] = []
        if done.revoked:
            events.append(Revoked(group=self.group, generation=generation, member=name, resources=done.revoked))
        events.append(Joined(group=self.group, generation=generation, member=name, leader=leader, error=NONE))
        events.append(
            Synced(
                group=self.group,
                generation=generation,
                member=name,
                resources=done.resources,
                revoked=done.revoked,
                delay_ms=done.delay_ms,
                extra=done.extra,
            )
        )
        events.append(Owned(group=self.group, generation=generation, member=name, resources=done.resources))
        return [told for event in events for told in self._tell(message, event)]

    def stops(self, message: Message) -> list[Event]:
        """It stopped in order all that it owned."""
        owned, self.owned = self.owned, ()
        self.stopping = False
        if not owned or not self.attributable:
            return []
        self.settle(())
        return self._tell(message, Revoked(group=self.group, generation=self.generation, member=self.name, resources=owned))

    def gives_up(self, message: Message) -> list[Event]:
        """Cut off from the group, it stopped by itself all that it owned."""
        owned, self.owned = self.owned, ()
        if not owned or not self.attributable:
            return []
        self.settle(())
        return self._tell(message, Lost(group=self.group, generation=self.generation, member=self.name, resources=owned))


@dataclass(slots=True)
class _Process:
    """What the lines of one stream tell of the process behind it."""

    release: str | None = None
    max_delay_ms: int | None = None


@dataclass(slots=True)
class _Session:
    """The workers of one file."""

    file: str
    processes: dict[str, _Process] = field(default_factory=dict[str, _Process])
    workers: dict[tuple[str, str, str], _Worker] = field(default_factory=dict[tuple[str, str, str], _Worker])
    connectors: dict[str, None] = field(default_factory=dict[str, None])

    def feed(self, message: Message) -> Taken | None:
        """Recognise one line. Raises `MalformedLine` for one that is cut off."""
        prefix = _PREFIX.search(message.text)
        if prefix is None:
            return self._process_line(message)
        body = message.text[prefix.end() :]
        if not body.startswith(_STARTS):
            return None
        worker = self._worker(message, prefix[1], prefix[2])
        tell = next((tell for start, tell in _LINES if body.startswith(start)), None)
        if tell is not None:
            return Taken(tuple(tell(self, worker, message, body)))
        return Taken(tuple(group_lines.read(worker, message, body) or ()))

    def close(self) -> Sequence[Event]:
        """Nothing waits for the end of the file."""
        return ()

    def _worker(self, message: Message, client: str, group: str) -> _Worker:
        key = (message.stream, client, group)
        worker = self.workers.get(key)
        if worker is None:
            if len(self.workers) >= WORKERS_KEPT:
                del self.workers[next(iter(self.workers))]
            worker = self.workers[key] = _Worker(group, client, message.stream or self.file)
        worker.release = self._process(message).release
        return worker

    def _process(self, message: Message) -> _Process:
        process = self.processes.get(message.stream)
        if process is None:
            if len(self.processes) >= WORKERS_KEPT:
                del self.processes[next(iter(self.processes))]
            process = self.processes[message.stream] = _Process()
        return process

    def _process_line(self, message: Message) -> Taken | None:
        text = message.text
        max_delay = _MAX_DELAY.search(text)
        if max_delay is not None:
            self._process(message).max_delay_ms = int(max_delay[1])
            return Taken()
        version = _VERSION.search(text)
        if version is not None:
            self._process(message).release = version[1]
            return None
        return Taken() if any(said in text for said in _WITHOUT_PREFIX) else None

    def round(self, worker: _Worker, message: Message, body: str) -> list[Event]:
        """``Joined group [at generation g] [with protocol version v] and got assignment: Assignment{..} [with rebalance delay: n]``"""
        found = _ROUND.match(body)
        if found is None:
            raise MalformedLine("Joined group ... and got assignment: Assignment{error=.., leader=.., offset=..,")
        lists, end = _lists(body, found.end())
        delay = _DELAY.match(body, end)
        if len(lists) == 4 and delay is None:
            raise MalformedLine("delay=n}")
        extra: dict[str, object] = {"offset": int(found["offset"])}
        if found["version"]:
            extra["protocol_version"] = int(found["version"])
        if found["error"] != "0":
            extra["error"] = int(found["error"])
        max_delay_ms = self._process(message).max_delay_ms
        if max_delay_ms is not None:
            extra["max_delay_ms"] = max_delay_ms
        units = [self._units(lists[at], lists[at + 1]) for at in range(0, len(lists), 2)]
        return worker.completes(
            message,
            _Round(
                generation=int(found["generation"]) if found["generation"] else None,
                leader=found["leader"] if found["leader"] not in ("", "null") else None,
                resources=units[0],
                revoked=units[1] if len(units) > 1 else None,
                delay_ms=int(delay[1]) if delay else None,
                extra=extra,
            ),
        )

    def _units(self, connectors: str, tasks: str) -> Resources:
        odd = {name for name in self.connectors if ", " in name}
        names = _split(connectors, lambda text: True, odd.__contains__ if odd else None)
        of_tasks = _split(tasks, _is_task, (lambda text: _is_task(text) and text.rpartition("-")[0] in odd) if odd else None)
        return sorted_names((*(f"connector:{name}" for name in names), *(f"task:{name}" for name in of_tasks)))

    def starts_connector(self, worker: _Worker, message: Message, body: str) -> list[Event]:
        """``Starting connector {name}``, ``Connector {name} config updated``"""
        named = _STARTS_CONNECTOR.match(without_layout_tail(body))
        if named is not None:
            self.connectors[named[1]] = None
            if len(self.connectors) > NAMES_KEPT:
                del self.connectors[next(iter(self.connectors))]
        return []

    def cut_off(self, worker: _Worker, message: Message, body: str) -> list[Event]:
        """``Broker coordinator was unreachable for {n}ms. Revoking ..`` (2.4+), ``Revoking current running assignment ..`` (2.5.1+)"""
        return worker.gives_up(message)

    def stops_all(self, worker: _Worker, message: Message, body: str) -> list[Event]:
        """``Stopping connectors and tasks that are still assigned to this worker.``"""
        worker.stopping = True
        return []

    def stopped(self, worker: _Worker, message: Message, body: str) -> list[Event]:
        """``Finished stopping tasks in preparation for rebalance``; before JoinGroup only an eager worker does so, and stops all"""
        return [] if worker.in_round else worker.stops(message)

    def leaves(self, worker: _Worker, message: Message, body: str) -> list[Event]:
        """``Member {id} sending LeaveGroup request ..``: a worker that shuts down has stopped all by then"""
        stopped = worker.stops(message) if worker.stopping else []
        return [*stopped, *group_lines.leaves(worker, message, body)]

    def herder_stopped(self, worker: _Worker, message: Message, body: str) -> list[Event]:
        """``Herder stopped``"""
        stopped = worker.stops(message) if worker.stopping else []
        worker.owned = ()
        return [*stopped, *worker.closed(message)]

    def herder_starts(self, worker: _Worker, message: Message, body: str) -> list[Event]:
        """``Herder starting``"""
        worker.owned = ()
        return worker.restarted(message, "a new worker took over the client.id")


def _lists(body: str, start: int) -> tuple[list[str], int]:
    """The contents of ``connectorIds=[..], taskIds=[..]`` and since 2.3 of the revoked ones, and where what follows them begins."""
    first = "connectorIds=["
    closes = ("], taskIds=[", "], revokedConnectorIds=[", "], revokedTaskIds=[", "], delay=")
    if closes[1] not in body:
        closes = (closes[0], "]}")
    if not body.startswith(first, start):
        raise MalformedLine(first + "...]")
    found: list[str] = []
    at = start + len(first)
    for close in closes:
        end = body.find(close, at)
        if end < 0:
            raise MalformedLine(f"a list, closed by {close}")
        found.append(body[at:end])
        at = end + len(close)
    return found, at


def _is_task(text: str) -> bool:
    return _TASK.match(text) is not None


def _split(listed: str, complete: Callable[[str], bool], known: Callable[[str], bool] | None) -> list[str]:
    """Names out of a Java list. One that is ``known`` may hold commas; else a name ends with the first piece that completes it."""
    pieces = listed.split(", ") if listed else []
    names: list[str] = []
    at = 0
    while at < len(pieces):
        ends = range(at + 1, min(len(pieces), at + WORDS_JOINED) + 1)
        longest = (", ".join(pieces[at:end]) for end in reversed(ends))
        shortest = (", ".join(pieces[at:end]) for end in ends)
        name = (next(filter(known, longest), None) if known else None) or next(filter(complete, shortest), None)
        if name is None:
            raise MalformedLine("a list of tasks, name-number")
        names.append(name)
        at += name.count(", ") + 1
    return names


_LINES: tuple[tuple[str, Callable[[_Session, _Worker, Message, str], Iterable[Event]]], ...] = (
    ("Joined group ", _Session.round),
    ("Broker coordinator was unreachable", _Session.cut_off),
    ("Revoking current running assignment", _Session.cut_off),
    ("Finished stopping tasks in preparation for rebalance", _Session.stopped),
    ("Stopping connectors and tasks that are still assigned", _Session.stops_all),
    ("Member ", _Session.leaves),
    ("Herder stopped", _Session.herder_stopped),
    ("Herder starting", _Session.herder_starts),
    ("Starting connector ", _Session.starts_connector),
    ("Connector ", _Session.starts_connector),
)
"""Connect's own lines, and what they tell; the first that fits."""

_NOTED = (
    "Rebalance started",
    "Starting connectors and tasks",
    "Finished starting connectors and tasks",
    "Starting task ",
    "Finished flushing status backing store",
    "Wasn't able to resume work",
    "Wasn't unable to resume work",
    "Current config state offset",
    "Catching up to assignment's config offset",
    "Join group completed, but assignment failed",
    "Was selected to perform assignments",
    "Handling task config update",
    "Handling connector-only config update",
    "Tasks [",
    "Herder stopping",
    "Herder started",
    "Ignoring stop request for unowned",
    "Forcing rebalance",
    "Internal request validation has been re-enabled",
    "The worker has been downgraded",
    "Scheduled rebalance",
)
_STARTS = tuple(start for start, _ in (*_LINES, *group_lines.LINES)) + _NOTED

_WITHOUT_PREFIX = ("Graceful stop of task ", "Graceful stop of connector ", "Ignoring stop request for unowned ")


@dataclass(frozen=True, slots=True)
class _Connect:
    name: str = "connect"
    anchors: tuple[str, ...] = ("[Worker clientId=", "Kafka version", "scheduled.rebalance.max.delay.ms = ", *_WITHOUT_PREFIX)

    def open(self, file: str) -> _Session:
        """A session for ``file``, whose name goes into the member ids that it has to invent."""
        return _Session(file)


READER = _Connect()
