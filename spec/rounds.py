"""A group's history as rounds: one per (coordinator epoch, generation), put together from every observer.

Clocks order only what one clock saw. The coordinator's requests and responses are ordered by the coordinator's clock;
what a member saw is ordered by that member's own clock, and placed among the others by the generation it belongs to.
So a member whose clock is 30 s ahead changes nothing.

A *seat* is one slot of one generation: a dynamic member, or a group.instance.id whichever member id holds it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from operator import attrgetter
from typing import Literal, cast

from .events import (
    KINDS,
    NONE,
    Assigned,
    Assignment,
    Closed,
    Commit,
    Crashed,
    Event,
    Expire,
    Gap,
    GenerationStarted,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Lost,
    Owned,
    Rebalance,
    Replace,
    Revoked,
    Sync,
    Synced,
    Topics,
)

Owner = str
Owns = frozenset[str]
ProtocolType = Literal["consumer", "connect"]

COOPERATIVE = frozenset({"cooperative-sticky", "stream", "compatible", "sessioned"})
EAGER = frozenset({"range", "roundrobin", "sticky", "default"})
CONNECT = frozenset({"default", "compatible", "sessioned"})


_Content = tuple[object, ...]
_MADE_UP = re.compile(r"@.*#\d+$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a member said it owned when it joined; ``stored`` if only the coordinator's stored copy shows it.

    A stored copy may be older than this generation: an absent static member keeps the metadata of its last JoinGroup.
    """

    owns: Owns
    generation: int | None
    event: Event
    stored: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """One sighting of what the coordinator gave a seat in this generation."""

    owns: Owns
    event: Event
    member: str


@dataclass(slots=True)
class Seat:
    """One slot in one generation.

    ``entered_with`` and ``holds`` map each resource that the member believed it owned, on entering this generation and
    after applying it, to the event that shows the belief; ``holds`` is None until the member was seen applying it.
    ``hole``: its own log may lack what came before, so that ``entered_with`` may be out of date.
    ``named``: the coordinator or the leader named it, so its ids are real; a client's log may not know its member id.
    ``released`` maps what it gave up while in this generation, ``lost`` what it found it had lost. ``taken`` is what it
    took in this generation. ``rejoined`` shows the JoinGroup of this generation, ``active`` later signs of life in it.
    ``join`` led to this generation, ``latest_join`` may have been granted since, without a rebalance. ``given`` is what it is to
    own in this generation: the coordinator's word first, then the leader's, then the member's.
    """

    owner: Owner
    member: str
    ids: list[str] = field(default_factory=list[str])
    instance: str | None = None
    client: str | None = None
    named: bool = False
    hole: bool = False
    join: Join | None = None
    joined: Joined | None = None
    latest_join: Join | None = None
    claim: Claim | None = None
    grants: list[Grant] = field(default_factory=list[Grant])
    synced: list[Synced] = field(default_factory=list[Synced])
    entered_with: dict[str, Event] = field(default_factory=dict[str, Event])
    holds: dict[str, Event] | None = None
    released: dict[str, Event] = field(default_factory=dict[str, Event])
    released_while_applying: set[str] = field(default_factory=set[str])
    lost: dict[str, Event] = field(default_factory=dict[str, Event])
    taken: dict[str, Event] = field(default_factory=dict[str, Event])
    own_events: list[Event] = field(default_factory=list[Event])
    active: list[Event] = field(default_factory=list[Event])
    gone: Event | None = None
    gap: Gap | None = None
    given: Grant | None = None

    @property
    def rejoined(self) -> bool:
        """The member itself took part in this generation's join phase, or acted in this generation."""
        return self.joined is not None or bool(self.own_events) or any(e.error == NONE for e in self.synced)


_GRANT_RANK: Mapping[type[Event], int] = {Synced: 0, Assignment: 1, Sync: 2}


@dataclass(slots=True)
class Round:
    """One generation. ``listed`` are all member ids of it, ``owners`` their slots; None if no observer listed them.

    ``proposals`` are the leader's assignments, ``overruled`` what it proposed otherwise after that. ``shares`` says who is to own
    what once everyone has applied this generation; None unless every member's share was seen.
    """

    epoch: int
    generation: int
    protocol: str | None = None
    protocol_type: ProtocolType | None = None
    leader: str | None = None
    listed: dict[str, Event] | None = None
    seats: dict[Owner, Seat] = field(default_factory=dict[Owner, Seat])
    opened: Rebalance | None = None
    closed_by: Rebalance | None = None
    started: GenerationStarted | None = None
    proposals: list[Sync] = field(default_factory=list[Sync])
    overruled: list[Sync] = field(default_factory=list[Sync])
    stored: list[Assignment] = field(default_factory=list[Assignment])
    removed: dict[Owner, Event] = field(default_factory=dict[Owner, Event])
    replaced: list[Replace] = field(default_factory=list[Replace])
    topics: Mapping[str, int] | None = None
    gaps: list[Gap] = field(default_factory=list[Gap])
    coordinator_events: list[Event] = field(default_factory=list[Event])
    owners: frozenset[Owner] | None = None
    shares: Mapping[Owner, Owns] | None = None

    @property
    def key(self) -> tuple[int, int]:
        return self.epoch, self.generation

    @property
    def cooperative(self) -> bool | None:
        """Whether members keep what they own while they rejoin; None if the protocol's name doesn't tell."""
        if self.protocol in COOPERATIVE:
            return True
        return False if self.protocol in EAGER else None

    @property
    def effective(self) -> bool:
        """The leader's assignment was accepted: some member was given its share, or it was stored."""
        return bool(self.stored) or any(s.error == NONE for seat in self.seats.values() for s in seat.synced) or self._acted()

    def _acted(self) -> bool:
        return any(seat.holds is not None for seat in self.seats.values())

    def apart(self, one: Seat, other: Seat) -> bool:
        """Whether two seats are two members for sure, and not one under its real id and under one that a reader made up."""
        return one is not other and ((one.named and other.named) or bool(one.own_events and other.own_events))

    @property
    def first_ts(self) -> int | None:
        """The coordinator's clock when this generation started, in microseconds; a member's where only that was seen."""
        own = (e for seat in self.seats.values() for e in seat.own_events)
        return next((e.ts for e in (self.started, *self.coordinator_events, *own) if e is not None and e.ts is not None), None)


def removes(event: Event) -> bool:
    """Whether a member leaves the group: it left, a timer removed it, or it rejoined a group that is full by now (group.max.size)."""
    match event:
        case Expire() | Leave(error="NONE"):
            return True
        case Joined(error="GROUP_MAX_SIZE_REACHED"):
            return bool(event.member)
        case _:
            return False


def by_clock(events: Iterable[Event]) -> list[Event]:
    """Events of one clock in its order: by epoch and time, where time is missing after what stood before them."""
    read = [*events]
    when: list[tuple[int, int]] = []
    last = -(2**62)
    for event in read:
        last = event.ts if event.ts is not None else last
        when.append((event.epoch, last))
    return [read[place] for place in sorted(range(len(read)), key=when.__getitem__)]


def distinct(events: Sequence[Event]) -> list[Event]:
    """Each event once, although a log was handed in twice. Without a time, a file's own repetitions count."""
    same = _copied_logs(events)
    if same:
        events = [replace(e, member=same[e.member]) if e.member in same else e for e in events]
    dropped: set[int] = set()
    moments = [(e.ts, type(e), e.member) for e in events]
    met = Counter(moments)
    seen: set[_Content] = set()
    for index in [i for i, moment in enumerate(moments) if met[moment] > 1 and moment[0] is not None]:
        content = _content(events[index])
        (dropped.add(index) if content in seen else seen.add(content))
    kept: Counter[_Content] = Counter()
    count: Counter[tuple[str, _Content]] = Counter()
    unclocked = [i for i, e in enumerate(events) if e.ts is None]
    for index in unclocked if len({_file(events[i]) for i in unclocked}) > 1 else ():
        content, file = _content(events[index]), _file(events[index])
        count[file, content] += 1
        if count[file, content] <= kept[content]:
            dropped.add(index)
        else:
            kept[content] += 1
    return [e for i, e in enumerate(events) if i not in dropped] if dropped else [*events]


def _copied_logs(events: Sequence[Event]) -> dict[str, str]:
    """Member ids that a reader made up for one client (``client@place#life``), by the one whose log says the same at the same times.

    Two processes of one client.id may log alike at one moment; they don't take the same work, at the same time, throughout.
    """
    made_up = {member for member in {e.member for e in events} if member and _MADE_UP.search(member)}
    logs: dict[str, dict[_Content, tuple[int | None, bool]]] = {}
    for event in events if made_up else ():
        if event.member in made_up:
            content = _content(replace(event, member=None))
            logs.setdefault(event.member, {})[content] = (event.ts, bool(event.resources))
    same: dict[str, str] = {}
    first: dict[_Content, str] = {}
    for member in sorted(logs):
        works = (content for content, (_, works) in logs[member].items() if works)
        others = {other: None for content in works if (other := first.setdefault(content, member)) != member}
        copied = next((other for other in others if _agree(logs[other], logs[member])), None)
        if copied is not None:
            same[member] = copied
    return same


def _agree(one: Mapping[_Content, tuple[int | None, bool]], other: Mapping[_Content, tuple[int | None, bool]]) -> bool:
    """Whether two logs say the same as far as both reach."""
    times = [[ts for ts, _ in log.values() if ts is not None] for log in (one, other)]
    if not all(times):
        return all(a == b for a, b in zip(one, other, strict=False))
    begin, end = max(map(min, times)), min(map(max, times))
    first, second = ({c for c, (ts, _) in log.items() if ts is not None and begin <= ts <= end} for log in (one, other))
    return first == second


def _content(event: Event) -> _Content:
    """What an event says, apart from where it was read."""
    return (type(event), *map(_hashable, _SAID[type(event)](event)))


_SAID: Mapping[type[Event], Callable[[Event], tuple[object, ...]]] = {
    record: attrgetter(*(f.name for f in fields(record) if f.compare and f.name != "src")) for record in KINDS.values()
}


def _hashable(value: object) -> object:
    return tuple(sorted(cast(Mapping[str, object], value).items())) if isinstance(value, Mapping) else value


def lives(events: Sequence[Event], who: Identities | None = None) -> Sequence[Event]:
    """Give each life of the group epochs of its own: a group that is deleted while empty starts at generation 1 again.

    It was empty where a list of members says so, or where everybody whom the last one lists was seen to go.
    A member's own event goes with its member id; it is left out where that does not tell the life. Gives ``events`` themselves
    if they are of one life.
    """
    seen = requests(events)
    births = _births(seen, who or identities(events))
    if not births:
        return events
    placed = [(event, bisect_right(births, place)) for place, event in enumerate(seen)]
    homes: dict[tuple[int, str], set[int]] = {}
    for event, home in placed:
        for member in _named(event):
            homes.setdefault((event.epoch, member), set()).add(home)
    own = (e for e in events if e.observer in ("member", "harness"))
    known = ((e, homes.get((e.epoch, e.member or ""), set[int]())) for e in own)
    placed.extend((e, next(iter(home))) for e, home in known if len(home) == 1)
    return [replace(event, epoch=event.epoch + home) if home else event for event, home in placed]


def _births(seen: Sequence[Event], who: Identities) -> list[int]:
    """Where another life of the group begins."""
    births: list[int] = []
    present = _Present(who)
    last: tuple[int, int] | None = None
    listed = frozenset[str]()
    for place, event in enumerate(seen):
        if type(event) not in _SHOW_LIFE:
            continue
        stored_late = isinstance(event, Assignment) and last == (event.epoch, event.generation) and listed.issuperset(event.members or ())
        if present.empty and last is not None and event.epoch == last[0] and _starts_anew(event, last[1]) and not stored_late:
            births.append(place)
            last = None
        if not stored_late:
            present.apply(event)
        if isinstance(event, (GenerationStarted, Assignment)) and event.members is not None and event.generation is not None:
            last, listed = (event.epoch, event.generation), frozenset(event.members)
    return births


_SHOW_LIFE = frozenset({GenerationStarted, Assignment, Rebalance, Joined, Expire, Leave})
"""Events that list or remove members, or can't follow a group's end."""


@dataclass(slots=True)
class _Present:
    """Who of the last list of members is still there; ``empty`` once nobody is."""

    who: Identities
    members: set[str] = field(default_factory=set[str])
    empty: bool = False

    def apply(self, event: Event) -> None:
        match event:
            case GenerationStarted() | Assignment() if event.members is not None:
                self.members, self.empty = set(event.members), not event.members
            case _ if removes(event):
                gone = [event.member] if event.member else [m for m in self.members if self.who.instances.get(m) == event.instance]
                self.empty = self.empty or (bool(self.members) and self.members <= set(gone))
                self.members.difference_update(gone)
            case _:
                pass


def _starts_anew(event: Event, last: int) -> bool:
    """Whether the event can't follow a group that was emptied after generation ``last``."""
    if event.generation is None or event.generation < 0:
        return False
    if isinstance(event, (GenerationStarted, Assignment)):
        return event.generation <= last and bool(event.members)
    return event.generation < last if isinstance(event, Rebalance) else event.generation <= last and isinstance(event, Joined)


def _named(event: Event) -> Iterator[str]:
    """Every member id in the event."""
    if event.member:
        yield event.member
    if isinstance(event, (GenerationStarted, Assignment)):
        yield from event.members or ()
    if isinstance(event, (Assignment, Sync)):
        yield from event.assignment or ()


def requests(events: Sequence[Event]) -> list[Event]:
    """What the coordinator saw, in its order.

    A file without any time stamp beside files that have some can't be ordered among them: it tells about generations
    (`rounds`), not about what came first.
    """
    seen = [e for e in events if e.observer in ("coordinator", "any")]
    if all(e.ts is not None for e in seen):
        return by_clock(seen)
    clocked = {_file(e) for e in seen if e.ts is not None}
    return by_clock(e for e in seen if not clocked or _file(e) in clocked)


def _file(event: Event) -> str:
    return event.src.file if event.src is not None else ""


@dataclass(frozen=True, slots=True)
class Identities:
    """Which group.instance.id and client.id each member id belongs to."""

    instances: Mapping[str, str]
    clients: Mapping[str, str]

    def owner(self, member: str) -> Owner:
        """The slot that this member id holds."""
        instance = self.instances.get(member)
        return member if instance is None else f"instance:{instance}"


def identities(events: Iterable[Event]) -> Identities:
    """Learn identities from every event that names one."""
    instances: dict[str, str] = {}
    clients: dict[str, str] = {}
    for event in events:
        member, instance, client = event.member, event.instance, event.client
        if member and instance and (member not in instances or instance < instances[member]):
            instances[member] = instance
        if member and client and (member not in clients or client < clients[member]):
            clients[member] = client
        if isinstance(event, Replace) and event.instance and event.old_member:
            instances[event.old_member] = event.instance
        if isinstance(event, Assignment) and event.members:
            instances.update({m: info.instance for m, info in event.members.items() if info.instance})
        if isinstance(event, GenerationStarted):
            listed = event.extra.get("instances")
            if isinstance(listed, Mapping):
                instances.update({str(m): str(i) for m, i in listed.items() if i})  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return Identities(instances, clients)


def rounds(events: Sequence[Event], who: Identities | None = None) -> list[Round]:
    """Fold one group's events into its rounds, in the order of (epoch, generation)."""
    seen: list[Event] = []
    own: dict[str, list[Event]] = {}
    for event in events:
        coordinators = event.observer in ("coordinator", "any")
        if coordinators:
            seen.append(event)
        if not coordinators or isinstance(event, Gap):
            stream = event.member or event.client
            if stream:
                own.setdefault(stream, []).append(event)
    ordered = by_clock(seen)
    table = _Table(who or identities(events), _refused(ordered))
    for event in ordered:
        table.coordinator(event)
    for stream in sorted(own):
        table.member(stream, own[stream])
    return table.finish()


def _refused(events: Iterable[Event]) -> dict[int, str]:
    """The errors by which SyncGroup requests were answered, by the identity of the request."""
    open_requests: dict[str, Sync] = {}
    refused: dict[int, str] = {}
    for event in events:
        if isinstance(event, Sync) and event.member:
            open_requests[event.member] = event
        elif isinstance(event, Synced) and event.member:
            request = open_requests.pop(event.member, None)
            if request is not None and event.error != NONE:
                refused[id(request)] = event.error
    return refused


class _Table:
    """Rounds under construction. ``refused`` are the errors of SyncGroup requests: what such a leader decided never held."""

    def __init__(self, who: Identities, refused: Mapping[int, str]) -> None:
        self.who = who
        self.refused = refused
        self.rounds: dict[tuple[int, int], Round] = {}
        self.pending: dict[str, list[Join]] = {}
        """JoinGroup requests without an answer, by member id or slot, the latest last."""
        self.current: tuple[int, int] | None = None
        self.preparing: Rebalance | None = None
        self.topics: Mapping[str, int] | None = None

    def round(self, epoch: int, generation: int) -> Round:
        key = (epoch, generation)
        if key not in self.rounds:
            self.rounds[key] = Round(epoch, generation, topics=self.topics)
        return self.rounds[key]

    def seat(self, now: Round, member: str, event: Event) -> Seat:
        owner = self.who.owner(member)
        seat = now.seats.get(owner)
        if seat is None:
            seat = now.seats[owner] = Seat(owner, member, [member], self.who.instances.get(member), self.who.clients.get(member))
        elif member not in seat.ids:
            seat.ids.append(member)
            if event.observer == "coordinator":
                seat.member = member
        seat.named = seat.named or event.observer in ("coordinator", "any") or isinstance(event, Sync)
        return seat

    # What the coordinator saw.

    def coordinator(self, event: Event) -> None:
        if self.current is not None and event.epoch > self.current[0]:
            self.pending.clear()
            self.current = self.preparing = None
        if removes(event):
            self._removed(event)
        match event:
            case Topics():
                self.topics = event.topics
            case Gap():
                if self.current is not None and not event.member:
                    self.round(*self.current).gaps.append(event)
            case Join() if event.member or event.instance:
                self.pending.setdefault(_asker(event), []).append(event)
            case Rebalance():
                self.preparing = event
                if event.generation is not None:
                    now = self._place(event)
                    if now is not None:
                        now.closed_by = event
            case Joined():
                self._joined(event)
            case GenerationStarted():
                now = self._place(event)
                if now is not None:
                    if now.started is None:
                        now.started = event
                        self._forget_proposals(now, event)
                    now.leader = event.leader or now.leader
                    self._protocol(now, event.protocol)
                    self._list(now, event, event.members)
                    self._admit(now, event.members)
            case Assignment():
                self._assignment(event)
            case Sync():
                refused = self.refused.get(id(event), NONE)
                now = self._place(event) if refused in (NONE, "REBALANCE_IN_PROGRESS") else None
                if now is not None:
                    if refused == NONE and event.assignment is not None and (event.assignment or event.member == now.leader):
                        self._proposal(now, event)
                    self._alive(now, event)
            case Synced():
                self._synced(event)
            case Heartbeat() | Commit():
                now = self._at(event)
                if now is not None and event.member and event.error == NONE:
                    self.seat(now, event.member, event).active.append(event)
            case Replace():
                now = self._at(event)
                if now is not None:
                    now.replaced.append(event)
                    now.coordinator_events.append(event)
            case _:
                pass

    def _at(self, event: Event) -> Round | None:
        """The existing round that the event names, else the coordinator's current one."""
        if event.generation is not None and event.generation >= 0:
            return self.rounds.get((event.epoch, event.generation))
        return None if self.current is None else self.rounds.get(self.current)

    def _place(self, event: Event) -> Round | None:
        """The round of a coordinator event that shows its generation; a newer one becomes the current one."""
        if event.generation is None or event.generation < 0:
            return None
        now = self.round(event.epoch, event.generation)
        now.coordinator_events.append(event)
        if self.current is None or now.key > self.current:
            if self.current is not None and now.key != (self.current[0], self.current[1] + 1):
                self.pending.clear()
            if self.current is not None and self.preparing is not None and self.preparing.generation == self.current[1]:
                now.opened = self.preparing
            self.current, self.preparing = now.key, None
        return now

    def _admit(self, now: Round, members: Iterable[str] | None) -> None:
        """The parked JoinGroup requests of ``members`` (None: of everybody) led to this generation."""
        for member in list(self.pending) if members is None else members:
            parked = self.pending.get(member)
            seat = now.seats.get(self.who.owner(member))
            if parked and parked[-1].member and (seat is None or seat.join is None):
                del self.pending[member]
                self._join(now, member, parked[-1])

    def _join(self, now: Round, member: str, join: Join) -> None:
        seat = self.seat(now, member, join)
        seat.join = seat.latest_join = join
        if join.owned is not None:
            generation = join.owned_generation if join.owned_generation is not None and join.owned_generation >= 0 else None
            seat.claim = Claim(frozenset(join.owned), generation, join, stored=False)

    def _joined(self, event: Joined) -> None:
        if event.error != NONE or not event.member:
            if parked := self.pending.get(_asker(event)):
                parked.pop()
            return
        late = self.current is not None and event.generation is not None and (event.epoch, event.generation) <= self.current
        now = self._place(event)
        parked = self.pending.pop(event.member, None) or (self.pending.pop(f"instance:{event.instance}", None) if event.instance else None)
        if now is None:
            return
        seat = self.seat(now, event.member, event)
        seat.joined = seat.joined or event
        if parked and late and seat.join is not None:
            seat.latest_join = parked[-1]
        elif parked:
            self._join(now, event.member, parked[-1])
        now.leader = event.leader or now.leader
        self._protocol(now, event.protocol)

    def _assignment(self, event: Assignment) -> None:
        now = self._place(event)
        if now is None:
            return
        now.stored.append(event)
        now.leader = event.leader or now.leader
        self._protocol(now, event.protocol)
        if event.members is not None:
            self._list(now, event, tuple(event.members))
            if self.preparing is None or self.preparing.generation != event.generation:
                self._admit(now, event.members)
            for member, info in event.members.items():
                seat = self.seat(now, member, event)
                if seat.claim is None and info.owned is not None:
                    owned_generation = info.extra.get("owned_generation")
                    known = owned_generation if isinstance(owned_generation, int) and owned_generation >= 0 else None
                    seat.claim = Claim(frozenset(info.owned), known, event, stored=True)
        if not (now.overruled and len(now.stored) > 1):  # else it may be the record of a proposal that came too late
            for member, resources in (event.assignment or {}).items():
                self._grant(now, member, resources, event)

    def _proposal(self, now: Round, event: Sync) -> None:
        """The first proposal counts: a leader's SyncGroup that reaches a stable group is ignored."""
        first = next((p for p in now.proposals if p.assignment), None)
        if first is not None and first.assignment != event.assignment:
            now.overruled.append(event)
        if first is not None or now.stored:
            return
        now.proposals.append(event)
        for member, resources in (event.assignment or {}).items():
            self._grant(now, member, resources, event)

    def _forget_proposals(self, now: Round, started: GenerationStarted) -> None:
        """What was assigned before the generation started belongs to one of its number that a failover forgot; it was refused."""
        early = {id(p) for p in now.proposals if p.ts is None or started.ts is None or p.ts < started.ts}
        if early:
            now.proposals = [p for p in now.proposals if id(p) not in early]
            for seat in now.seats.values():
                seat.grants = [grant for grant in seat.grants if id(grant.event) not in early]

    def _synced(self, event: Synced) -> None:
        now = self._place(event) if event.error == NONE else self._at(event)
        if now is None or not event.member:
            return
        self.seat(now, event.member, event).synced.append(event)
        if event.error == NONE:
            self._alive(now, event)
            if event.resources is not None:
                self._grant(now, event.member, event.resources, event)

    def _grant(self, now: Round, member: str, resources: tuple[str, ...], event: Event) -> None:
        self.seat(now, member, event).grants.append(Grant(frozenset(resources), event, member))
        self._type(now, resources)

    def _alive(self, now: Round, event: Event) -> None:
        if event.member:
            self.seat(now, event.member, event)

    def _removed(self, event: Event) -> None:
        now = self._at(event)
        if event.member:
            self.pending.pop(event.member, None)
        if now is not None:
            owner = self.who.owner(event.member) if event.member else f"instance:{event.instance}"
            now.removed.setdefault(owner, event)

    def _list(self, now: Round, event: Event, members: tuple[str, ...] | None) -> None:
        if members is None:
            return
        now.listed = {**(now.listed or {}), **dict.fromkeys(members, event)}
        for member in members:
            self.seat(now, member, event)

    def _protocol(self, now: Round, protocol: str | None) -> None:
        if protocol:
            now.protocol = protocol
            now.protocol_type = now.protocol_type or ("connect" if protocol in CONNECT else "consumer")

    def _type(self, now: Round, resources: Iterable[str]) -> None:
        first = next(iter(resources), None)
        if first is not None:
            now.protocol_type = "connect" if first.startswith(("connector:", "task:")) else "consumer"

    # What a member saw.

    def member(self, stream: str, seen: Sequence[Event]) -> None:
        """Fold one member's own events: its belief, generation by generation.

        Where its log may have a hole (it skips a generation, or enters one without having joined), belief starts anew.
        """
        belief: dict[str, Event] = {}
        tells_joins = any(isinstance(event, Joined) for event in seen)
        last: int | None = None
        for (epoch, generation), group in groupby(_by_generation(seen), key=lambda e: (e[0], e[1])):
            events = [event for _, _, event in group]
            if generation < 0:
                for event in events:
                    _believe(belief, event)
                continue
            jumps = last is not None and generation not in (last, last + 1)
            hole = jumps or (tells_joins and last != generation and not any(isinstance(event, Joined) for event in events))
            last = generation
            now = self.round(epoch, generation)
            seat = self.seat(now, stream, events[0])
            seat.entered_with, seat.hole = dict(belief), hole
            if hole:
                belief.clear()
            pending: Join | None = None
            for event in events:
                if not isinstance(event, (Joined, Synced)) or event.error == NONE:
                    seat.own_events.append(event)
                self._own(now, seat, event, belief)
                pending = event if isinstance(event, Join) else pending
            if seat.join is None and pending is not None:
                seat.active.append(pending)

    def _own(self, now: Round, seat: Seat, event: Event, belief: dict[str, Event]) -> None:
        match event:
            case Joined(error="NONE"):
                seat.joined = seat.joined or event
                now.leader = event.leader or now.leader
                self._protocol(now, event.protocol)
            case Sync() if event.assignment is not None:
                self._proposal(now, event)
            case Synced():
                seat.synced.append(event)
                if event.error == NONE and event.resources is not None:
                    seat.grants.append(Grant(frozenset(event.resources), event, event.member or seat.member))
                    self._type(now, event.resources)
            case Revoked() | Lost():
                resources = [r for r in (event.resources or ()) if r in belief or isinstance(event, Revoked)]
                (seat.released if isinstance(event, Revoked) else seat.lost).update(dict.fromkeys(resources, event))
                if seat.holds is None:
                    seat.released_while_applying.update(resources)
            case Gap():
                seat.gap = event
                seat.entered_with = {}
            case Closed() | Crashed() | Leave():
                seat.gone = seat.gone or event
            case Heartbeat() | Commit():
                seat.active.append(event)
            case _:
                pass
        _believe(belief, event)
        if isinstance(event, (Assigned, Owned)):
            if isinstance(event, Assigned):
                seat.taken.update(dict.fromkeys(event.resources or (), event))
            seat.holds = dict(belief)
            self._type(now, event.resources or ())

    def finish(self) -> list[Round]:
        """All rounds in order, complete; protocol and type are carried to rounds whose observers did not show them."""
        ordered = [self.rounds[key] for key in sorted(self.rounds)]
        protocol_type: ProtocolType | None = next((r.protocol_type for r in ordered if r.protocol_type), None)
        for now in ordered:
            now.protocol_type = now.protocol_type or protocol_type
            for seat in now.seats.values():
                seat.given = min(seat.grants, key=_rank, default=None)
            now.owners, now.shares = _owners(now), _shares(now)
        return ordered


def _rank(grant: Grant) -> int:
    return _GRANT_RANK.get(type(grant.event), 9)


def _owners(now: Round) -> frozenset[Owner] | None:
    if now.listed is None:
        return None
    return frozenset(owner for owner, seat in now.seats.items() if not now.listed.keys().isdisjoint(seat.ids))


def _shares(now: Round) -> dict[Owner, Owns] | None:
    known = {owner: seat.given.owns for owner, seat in now.seats.items() if seat.given is not None}
    if now.stored or any(p.assignment is not None for p in now.proposals):
        return known
    if now.listed is None or len(known) < len(now.seats) or len(now.seats) < len(now.listed):
        return None
    return known


def _asker(event: Join | Joined) -> str:
    """Under what a JoinGroup request waits. Who has neither a member id nor an instance does not wait since KIP-394."""
    return event.member or f"instance:{event.instance}"


def _by_generation(seen: Sequence[Event]) -> Iterator[tuple[int, int, Event]]:
    """A member's events by (epoch, generation), its own clock within; an unstamped event belongs where the last one did."""
    placed: list[tuple[int, int, Event]] = []
    generation: dict[int, int] = {}
    for event in by_clock(seen):
        if event.generation is not None and event.generation >= 0:
            generation[event.epoch] = event.generation
        placed.append((event.epoch, event.generation if event.generation is not None else generation.get(event.epoch, -1), event))
    placed.sort(key=lambda p: p[:2])
    return iter(placed)


def _believe(belief: dict[str, Event], event: Event) -> None:
    """Apply one event to what the member believes it owns."""
    match event:
        case Owned():
            kept = {r: belief.get(r, event) for r in event.resources or ()}
            belief.clear()
            belief.update(kept)
        case Assigned():
            belief.update(dict.fromkeys(event.resources or (), event))
        case Revoked() | Lost():
            for resource in event.resources or ():
                belief.pop(resource, None)
        case Closed() | Crashed() | Gap():
            belief.clear()
        case _:
            pass
