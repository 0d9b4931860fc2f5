"""What a capture tells of the group coordinator: requests with their answers, and what lines of its log and records show.

A request is *taken* by the coordinator at some moment between its arrival and its answer; a `Sighting` is of something that has
happened by then. Both become `Point`s in time. Captures differ in what their times mean: the request log dates requests back from
the answer, and says of a heartbeat, a commit or a departure only when it arrived.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from ...model.messages import (
    CommitRequest,
    HeartbeatRequest,
    JoinRequest,
    LeaveRequest,
    Metadata,
    ProtocolType,
    Request,
    Share,
    SyncRequest,
)
from ...spec.events import (
    NONE,
    Assignment,
    AssignmentMap,
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
    MemberInfo,
    Rebalance,
    Replace,
    Sync,
    Synced,
)
from ..assemble import log_name

UNKNOWN_TIMEOUT = 0
"""A session or rebalance timeout that was not captured: the timer may fire at any time."""
UNKNOWN_SHARE = Share(user_data="not captured")

ARRIVES_EARLIER_US = 100_000
"""A request that was dated back may have arrived so much earlier: it is dated from when its line was written."""
ANSWERED_LATER_US = 200_000
"""A request of which only the arrival was captured is answered by then."""
TAKEN_US = 1_000_000
"""A request that waits for its answer was taken by then."""

COORDINATOR_GONE = frozenset(
    {"COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "REQUEST_TIMED_OUT", "UNKNOWN_SERVER_ERROR", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"}
)
OUTSIDE = COORDINATOR_GONE | frozenset(
    {
        "COORDINATOR_LOAD_IN_PROGRESS",
        "GROUP_AUTHORIZATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "UNSUPPORTED_VERSION",
        "INVALID_REQUEST",
        "GROUP_MAX_SIZE_REACHED",
        "INVALID_SESSION_TIMEOUT",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "NOT_ENOUGH_REPLICAS",
        "OFFSET_METADATA_TOO_LARGE",
        "INVALID_COMMIT_OFFSET_SIZE",
        "MESSAGE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "NOT_LEADER_OR_FOLLOWER",
        "KAFKA_STORAGE_ERROR",
        "INVALID_TOPIC_EXCEPTION",
        "GROUP_ID_NOT_FOUND",
    }
)
"""Errors that settings, rights, the log or another coordinator are the reason of, none of which a capture shows."""

_CONNECT = frozenset({"default", "compatible", "sessioned"})

Key = tuple[int, int]
"""Epoch and generation."""
Asked = Join | Sync | Heartbeat | Leave | Commit
Answered = Joined | Synced | Heartbeat | Leave | Commit


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer, either of which may not have been captured. Times are microseconds, ``arrived`` None if unknown."""

    number: int
    request: Request
    epoch: int
    arrived: int | None
    asked: Event | None
    answer: Answered | None = None
    answered: int | None = None
    given: str | None = None
    """The member id that a first JoinGroup was given."""

    @property
    def event(self) -> Event:
        """What stands for the exchange in the capture."""
        event = self.answer or self.asked
        assert event is not None
        return event

    @property
    def outside(self) -> bool:
        """Whether the answer does not come from the group's state."""
        return self.answer is not None and self.answer.error in OUTSIDE

    @property
    def may_be_taken(self) -> bool:
        """Whether it may have reached the group."""
        if self.answer is None or not self.outside:
            return True
        return isinstance(self.answer, Joined | Synced) and self.answer.error in COORDINATOR_GONE

    @property
    def sender(self) -> str:
        """Whoever sent it."""
        return self.request.member or self.given or self.event.client or self.request.instance or ""

    @property
    def at_ms(self) -> int | None:
        """When it arrived, as the coordinator's timers count."""
        return None if self.arrived is None else self.arrived // 1000


@dataclass(frozen=True, slots=True)
class Point:
    """At ``at`` (microseconds) an exchange has ``arrived``, was ``taken`` or ``answered``, or something was ``seen``; ``lost``: a gap."""

    at: int
    what: Literal["arrived", "taken", "answered", "seen", "lost"]
    event: Event
    exchange: int = -1


@dataclass(slots=True)
class Known:
    """What was captured of one generation at any time; None where it was not."""

    members: frozenset[str] | None = None
    count: int | None = None
    leader: str | None = None
    protocol: str | None = None
    cause: str | None = None
    """Why the rebalance began that ended it."""
    told: Event | None = None
    """The event that lists the members."""
    started: int | None = None
    """When it was seen to start."""
    shares: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    infos: dict[str, MemberInfo] = field(default_factory=dict[str, MemberInfo])


@dataclass(frozen=True, slots=True)
class Evidence:
    """A group's capture as the coordinator's: ``heartbeats`` are the members of which these were captured,
    ``whole`` says that all requests were, answered or not; ``release`` is the broker's, if told."""

    group: str
    exchanges: Sequence[Exchange]
    points: Sequence[Point]
    generations: Mapping[Key, Known]
    heartbeats: frozenset[str]
    whole: bool
    release: str | None
    ids_given: bool
    """Whether it was captured how members came by their ids."""
    ids: frozenset[str]
    """All member ids that occur."""
    first: int | None
    """The generation at which the capture begins, 0 for a group that nobody had joined yet."""

    def known(self, epoch: int, generation: int) -> Known:
        return self.generations.get((epoch, generation), _NOTHING)


_NOTHING = Known()


def gather(events: Sequence[Event]) -> Evidence:
    """Read the ``events`` of one group. Where none has a time their order counts, and timers may fire at any time."""
    coordinators = [e for e in events if e.observer == "coordinator" or (isinstance(e, Gap) and not e.member)]
    dateless = {_stream(event) for event in coordinators} - {_stream(event) for event in coordinators if event.ts is not None}
    by_order = all(event.ts is None for event in coordinators)
    undated = [] if by_order else [event for event in coordinators if _stream(event) in dateless]
    mine = _timed(coordinators if by_order else [event for event in coordinators if _stream(event) not in dateless])
    streams = {_stream(event) for event in mine if _of_requests(event)}
    dated = {_stream(event) for event in mine if event.extra.get("estimated") and isinstance(event, Join | Heartbeat | Commit)}
    generations = generations_in([*mine, *undated])
    logs = {_stream(event) for event in mine if _REQUEST_LOG in _text(event)}
    asked = [e for e in mine if _stream(e) in streams and (_stream(e) not in logs or _REQUEST_LOG in _text(e))]
    paired = _Pairing(_protocol(mine), generations, clocked=not by_order).pair(asked)
    exchanges = _named(paired, mine)
    points = [point for exchange in exchanges for point in _points(exchange, _stream(exchange.event) in dated)]
    points += _sightings(mine, undated)
    points.sort(key=lambda point: (point.at, _ORDER[point.what]))
    return Evidence(
        group=mine[0].group if mine else "",
        exchanges=exchanges,
        points=points,
        generations=generations,
        heartbeats=frozenset(
            event.member
            for event in mine
            if isinstance(event, Heartbeat) and event.error == NONE and event.member and _stream(event) in streams
        ),
        whole=not dated and _is_whole(exchanges, generations, mine),
        ids_given=any(isinstance(e.request, JoinRequest) and not e.request.member and e.asked is not None for e in exchanges),
        ids=frozenset(event.member for event in mine if event.member),
        release=next((str(r) for event in mine if (r := event.extra.get("release")) is not None), None),
        first=next((first for event in mine if (first := _begins_at(event)) is not None), None),
    )


_ORDER = {"lost": 0, "arrived": 1, "seen": 2, "answered": 3, "taken": 4}


def _timed(events: Sequence[Event]) -> list[Event]:
    """By time; an event without one is as late as the one before it."""
    timed: list[Event] = []
    last = 0
    for event in events:
        last = event.ts if event.ts is not None else last
        timed.append(event if event.ts is not None else replace(event, ts=last))
    return sorted(timed, key=_at)


def _is_whole(exchanges: Sequence[Exchange], generations: Mapping[Key, Known], events: Iterable[Event]) -> bool:
    """Whether every request was captured that must have been there: the leaders' SyncGroup, and JoinGroup of whoever was a member."""
    decided = {key for key, known in generations.items() if known.shares}
    syncs = {(e.epoch, e.request.generation) for e in exchanges if isinstance(e.request, SyncRequest) and e.request.shares and e.asked}
    joined = {id_ for e in exchanges if isinstance(e.request, JoinRequest) and e.asked for id_ in (e.request.member, e.given) if id_}
    members = {id_ for known in generations.values() for id_ in known.members or ()}
    replaced = {event.member for event in events if isinstance(event, Replace) and event.member}
    return bool(exchanges) and all(e.asked for e in exchanges) and decided <= syncs and members | replaced <= joined


def _at(event: Event) -> int:
    return event.ts or 0


def _stream(event: Event) -> str:
    return log_name(event.src.file) if event.src is not None else ""


_REQUEST_LOG = "Completed request:"
"""In each line of a request log, which may stand in one file with the coordinator's own log."""


def _text(event: Event) -> str:
    return event.src.text if event.src is not None else ""


def _of_requests(event: Event) -> bool:
    """Whether only a log of whole requests and answers says this; the coordinator's own log tells of some of them in passing."""
    match event:
        case Join():
            return event.protocols is not None or event.session_timeout_ms is not None or event.subscribed is not None
        case Joined() | Synced() | Heartbeat() | Commit():
            return event.error == NONE
        case _:
            return False


def _begins_at(event: Event) -> int | None:
    match event:
        case GenerationStarted(generation=int(generation)) | Assignment(generation=int(generation)):
            return generation - 1
        case Joined(generation=int(generation), error="NONE"):
            return generation - 1
        case Rebalance(generation=int(generation)) | Sync(generation=int(generation)):
            return generation
        case _:
            return None


def _protocol(events: Iterable[Event]) -> str:
    """What a JoinGroup of which no more was captured is taken to offer."""
    named = Counter(e.protocol for e in events if isinstance(e, GenerationStarted | Joined | Assignment) and e.protocol)
    return named.most_common(1)[0][0] if named else "range"


def generations_in(events: Iterable[Event]) -> Mapping[Key, Known]:
    """What ``events`` tell of each generation, whoever saw it."""
    known: dict[Key, Known] = {}
    for event in events:
        if event.generation is None:
            continue
        here = known.setdefault((event.epoch, event.generation), Known())
        match event:
            case GenerationStarted():
                here.started = _at(event) if here.started is None else here.started
                if event.members is not None:
                    here.members, here.told = frozenset(event.members), event
                count = event.extra.get("members_count")
                here.count = count if isinstance(count, int) else here.count
                here.leader, here.protocol = event.leader or here.leader, event.protocol or here.protocol
            case Rebalance():
                here.cause = here.cause or cause(event)
            case Joined(error="NONE") if not event.extra.get("skip_assignment"):
                here.leader, here.protocol = here.leader or event.leader, here.protocol or event.protocol
            case Sync(assignment=shares) if shares:
                here.leader = here.leader or event.member
                _share(here, shares)
            case Assignment():
                here.leader, here.protocol = here.leader or event.leader, here.protocol or event.protocol
                here.infos.update(event.members or {})
                _share(here, event.assignment or {})
            case Synced(error="NONE", member=str(member), resources=tuple(resources)):
                here.shares.setdefault(member, frozenset(resources))
            case _:
                pass
    return known


def _share(known: Known, shares: AssignmentMap) -> None:
    for member, resources in shares.items():
        known.shares.setdefault(member, frozenset(resources))


# Causes.

_CAUSES = {
    "adding new member": "a new member",
    "selectedprotocol": "other protocols",
    "updating metadata": "other metadata",
    "re-joining": "the leader",
    "heartbeat expiration": "a session",
    "leavegroup": "a departure",
    "pending sync": "the sync timer",
    "freshly-loaded": "the size",
    "storing group assignment": "the log",
}


def cause(event: Rebalance) -> str | None:
    """What a rebalance's reason says, whatever the release's words; None if that is not known."""
    said = (event.reason or "").partition("; client reason: ")[0].lower()
    return next((told for words, told in _CAUSES.items() if words in said), None)


# Requests and answers.


class _Pairing:
    """Puts requests and their answers together."""

    def __init__(self, protocol: str, generations: Mapping[Key, Known], *, clocked: bool) -> None:
        self._protocol = protocol
        self._clocked = clocked
        self._generations = generations
        self._found: list[Exchange] = []
        self._open: list[int] = []

    def pair(self, events: Iterable[Event]) -> Sequence[Exchange]:
        for event in events:
            match event:
                case Join() | Sync():
                    self._open.append(len(self._found))
                    self._add(self._request(event), event, None)
                case Joined() | Synced():
                    self._answer(event)
                case Heartbeat() | Leave():
                    self._add(self._request(event), event, event)
                case Commit():
                    self._commit(event)
                case _:
                    pass
        return self._found

    def _add(self, request: Request, event: Asked, answer: Answered | None) -> None:
        self._found.append(Exchange(len(self._found), request, event.epoch, _at(event), event, answer, None))

    def _commit(self, event: Commit) -> None:
        """One request may be told in several events: a grant of any partition counts."""
        last = next((e for e in reversed(self._found[-8:]) if isinstance(e.asked, Commit)), None)
        same = last is not None and event.src is not None and last.event.src == event.src and last.asked is not None
        if not same or last is None:
            self._add(self._request(event), event, event)
        elif event.error == NONE:
            self._found[last.number] = replace(last, asked=event, answer=event)

    def _answer(self, answer: Joined | Synced) -> None:
        asked = Join if isinstance(answer, Joined) else Sync
        candidates = [self._found[n] for n in self._open if isinstance(self._found[n].asked, asked)]
        same = [e for e in candidates if answer.src is not None and e.event.src == answer.src and answer.src.line]
        fitting = same or [e for e in candidates if _fits(e, answer)]
        if not fitting:
            request = self._inferred(answer)
            self._found.append(Exchange(len(self._found), request, answer.epoch, None, None, answer, _at(answer), _given(answer)))
            return
        first_join = isinstance(fitting[0].request, JoinRequest) and not fitting[0].request.member
        mine = fitting[0] if same or first_join else fitting[-1]
        self._open.remove(mine.number)
        self._found[mine.number] = replace(
            mine, answer=answer, answered=_at(answer), request=_completed(mine.request, answer), given=_given(answer)
        )

    def _inferred(self, answer: Joined | Synced) -> Request:
        """The request that was answered, where only the answer was captured."""
        match answer:
            case Joined():
                member = "" if answer.error == "MEMBER_ID_REQUIRED" else answer.member or ""
                return _completed(
                    JoinRequest(
                        member=member,
                        instance=answer.instance,
                        client=answer.client or "",
                        protocols=((answer.protocol or self._protocol, Metadata()),),
                        session_timeout_ms=UNKNOWN_TIMEOUT,
                        rebalance_timeout_ms=UNKNOWN_TIMEOUT,
                    ),
                    answer,
                )
            case Synced():
                return self._sync(answer, None)

    def _request(self, event: Asked) -> Request:
        generation, member = event.generation if event.generation is not None else -1, event.member or ""
        match event:
            case Join():
                metadata = Metadata(
                    topics=event.subscribed or (),
                    owned=event.owned or (),
                    generation=-1 if event.owned_generation is None else event.owned_generation,
                    rack=event.rack,
                )
                offered = event.protocols or (self._protocol,)
                return JoinRequest(
                    member=member,
                    instance=event.instance,
                    client=event.client or "",
                    protocol_type=protocol_type(offered),
                    protocols=tuple((name, metadata) for name in offered),
                    session_timeout_ms=(self._clocked and event.session_timeout_ms) or UNKNOWN_TIMEOUT,
                    rebalance_timeout_ms=(self._clocked and event.rebalance_timeout_ms) or UNKNOWN_TIMEOUT,
                    reason=str(event.extra.get("reason", "")),
                )
            case Sync():
                return self._sync(event, event.assignment)
            case Heartbeat():
                return HeartbeatRequest(member=member, generation=generation, instance=event.instance)
            case Leave():
                return LeaveRequest(member=member, instance=event.instance, reason=event.reason or "")
            case Commit():
                return CommitRequest(member=member, generation=generation, partitions=event.resources or (), instance=event.instance)

    def _sync(self, event: Sync | Synced, assignment: AssignmentMap | None) -> Request:
        generation = event.generation if event.generation is not None else -1
        return SyncRequest(
            member=event.member or "",
            generation=generation,
            instance=event.instance,
            shares=shares(assignment, self._generations.get((event.epoch, generation), _NOTHING)),
        )


def shares(assignment: AssignmentMap | None, known: Known) -> tuple[tuple[str, Share], ...]:
    """What a leader gives: as it was captured, else what members are known to have got."""
    if assignment is not None:
        return tuple((member, Share(tuple(sorted(resources)))) for member, resources in assignment.items())
    members = (known.members or frozenset()) | known.shares.keys()
    return tuple((m, Share(tuple(sorted(known.shares[m]))) if m in known.shares else UNKNOWN_SHARE) for m in sorted(members))


def protocol_type(protocols: Iterable[str]) -> ProtocolType:
    return "connect" if _CONNECT.intersection(protocols) else "consumer"


def _fits(exchange: Exchange, answer: Joined | Synced) -> bool:
    request = exchange.request
    if isinstance(answer, Synced):
        return isinstance(request, SyncRequest) and (request.member, request.generation) == (answer.member or "", answer.generation)
    if not isinstance(request, JoinRequest):
        return False
    if request.member:
        return request.member == answer.member
    if answer.client is not None and request.client:
        return answer.client == request.client
    return answer.instance == request.instance


def _given(answer: Joined | Synced) -> str | None:
    return (answer.member or None) if isinstance(answer, Joined) else None


def _completed(request: Request, answer: Joined | Synced) -> Request:
    """The request in the version that its answer shows: ids must be known from JoinGroup 4 on, 9 can skip the assignment (KIP-394, KIP-814)."""
    if not isinstance(request, JoinRequest) or not isinstance(answer, Joined) or request.member or answer.error != NONE:
        return request
    if request.instance is None:
        return replace(request, version=3)
    told_of_itself = answer.extra.get("skip_assignment") is True or answer.leader in (None, answer.member)
    return replace(request, version=9 if told_of_itself else 8)


def _named(exchanges: Sequence[Exchange], events: Iterable[Event]) -> Sequence[Exchange]:
    """A static member whose first JoinGroup was never answered has the id under which it takes its slot next."""
    taken: dict[str, list[tuple[int, str]]] = {}
    for event in events:
        for instance, member in _slots(event):
            taken.setdefault(instance, []).append((_at(event), member))
    known = {exchange.given for exchange in exchanges}

    def named(exchange: Exchange) -> Exchange:
        request, arrived = exchange.request, exchange.arrived
        if not isinstance(request, JoinRequest) or request.member or exchange.given or request.instance is None or arrived is None:
            return exchange
        later = (member for at, member in taken.get(request.instance, ()) if at >= arrived and member not in known)
        return replace(exchange, given=next(later, None))

    return [named(exchange) for exchange in exchanges]


def _slots(event: Event) -> Iterable[tuple[str, str]]:
    match event:
        case Replace(instance=str(instance), member=str(member)):
            yield instance, member
        case GenerationStarted():
            instances = event.extra.get("instances")
            for member, instance in cast("Mapping[str, object]", instances).items() if isinstance(instances, Mapping) else ():
                if isinstance(instance, str):
                    yield instance, member
        case Assignment(members=members) if members:
            yield from ((info.instance, member) for member, info in members.items() if info.instance is not None)
        case _:
            pass


# Points.


def _points(exchange: Exchange, dated_back: bool) -> Iterable[Point]:
    event, number = exchange.event, exchange.number
    answered = exchange.answered
    if exchange.arrived is not None:
        earlier = ARRIVES_EARLIER_US if dated_back else 0
        yield Point(exchange.arrived - earlier, "arrived", exchange.asked or event, number)
        if not isinstance(exchange.asked, Join | Sync):
            answered = exchange.arrived + (ANSWERED_LATER_US if dated_back else 0)
        elif answered is None or answered > exchange.arrived + TAKEN_US:
            yield Point(exchange.arrived + TAKEN_US, "taken", exchange.asked, number)
    if exchange.answer is not None and answered is not None:
        if exchange.arrived is None:
            yield Point(answered, "arrived", event, number)
        yield Point(answered, "answered", event, number)


def _sightings(events: Sequence[Event], undated: Iterable[Event]) -> Iterable[Point]:
    """Some captures date a record by when its generation began, and some not at all: then it is looked for when the generation is over."""
    last: dict[Key, int] = {}
    for event in events:
        if event.generation is not None and not isinstance(event, Heartbeat | Commit | Leave | Sync):
            last[event.epoch, event.generation] = _at(event)
    for event in events:
        match event:
            case Assignment(generation=int(generation)) if event.extra.get("estimated"):
                yield Point(max(_at(event), last[event.epoch, generation]), "seen", event)
            case Assignment() | Rebalance() | GenerationStarted() | Expire() | Replace() | Load():
                yield Point(_at(event), "seen", event)
            case Gap():
                yield Point(_at(event), "lost", event)
            case _:
                pass
    for event in undated:
        at = last.get((event.epoch, -1 if event.generation is None else event.generation))
        if at is not None and isinstance(event, GenerationStarted | Assignment):
            yield Point(at, "seen", event)
