"""What a picture of one group shows: lanes, steps along them, bars of ownership, and where the findings rest.

Everything is placed by step, so in logical time (`spec.order`); clocks only label the steps. A bar says what its member *believes* to own
where its own log was captured, else what it was *given* by the coordinator. A belief is *stale* once the member was removed, or the
group went on to a generation that it was not admitted to: it is fenced then, and legal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal

from ..spec.events import (
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
    Load,
    Lost,
    Owned,
    Rebalance,
    Replace,
    Resources,
    Revoked,
    Sync,
    Synced,
)
from ..spec.order import in_order
from ..spec.results import Finding, GroupResult, digest
from ..spec.rounds import COOPERATIVE, EAGER, distinct, identities, lives
from .reports.prose import line
from .reports.story import ROUTINE, Step, steps

State = Literal["believed", "given", "stale"]
Mark = Literal[
    "join", "decide", "given", "assigned", "revoked", "lost", "commit", "refused", "leave", "expired", "replaced", "ended", "delay",
    "rebalance", "told", "admitted", "generation", "stored", "load", "gap", "other",
]  # fmt: skip
Phase = Literal["preparing", "completing", "stable", "empty"]
Place = int
"""Of a step, from 0."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A member's, under the short ``name`` that tells it from the others."""

    member: str
    name: str
    instance: str | None
    client: str | None


@dataclass(frozen=True, slots=True)
class Shown:
    """A step in its lane (None: the coordinator's). ``id``: 8 hex digits of what happened, the same in each picture of it."""

    id: str
    step: Step
    lane: int | None
    mark: Mark


@dataclass(frozen=True, slots=True)
class Bar:
    """A member's ownership of a resource, after the step ``first`` up to the step ``last`` (the number of steps: to the end)."""

    lane: int
    resource: str
    first: Place
    last: Place
    state: State


@dataclass(frozen=True, slots=True)
class Span:
    """A resource after the step ``first`` up to the step ``last``: without an owner, or with several (``lanes``)."""

    resource: str
    first: Place
    last: Place
    lanes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Cited:
    """A finding, and the step that each part of its argument rests on (None: not among the steps)."""

    finding: Finding
    places: tuple[Place | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A group's picture. ``generations`` and ``phases`` begin at their step. ``unowned`` is None where not all members' shares were captured."""

    result: GroupResult
    lanes: tuple[Lane, ...]
    steps: tuple[Shown, ...]
    bars: tuple[Bar, ...]
    twice: tuple[Span, ...]
    unowned: tuple[Span, ...] | None
    generations: tuple[tuple[Place, int, int], ...]
    phases: tuple[tuple[Place, Phase], ...]
    findings: tuple[Cited, ...]


def timeline(result: GroupResult, events: Sequence[Event]) -> Timeline:
    """The picture of one group, of which ``events`` are all that was captured and ``result`` what the check said."""
    ordered = in_order(lives(distinct(events)))
    evidence = frozenset(source for finding in result.findings for source in finding.evidence)
    told = steps(ordered, evidence)
    lanes = lanes_of(ordered, {event.member for step in told for event in step.sightings})
    number = {lane.member: place for place, lane in enumerate(lanes)}
    fold = _Fold(ordered, number)
    place = {id(event): at for at, step in enumerate(told) for event in step.sightings}
    now = 0
    for event in ordered:
        now = max(now, place.get(id(event), now))
        fold.apply(event, now)
    fold.end(len(told))
    rests = {event.src: at for at, step in reversed([*enumerate(told)]) for event in step.sightings if event.src is not None}
    cited = tuple(
        Cited(finding, tuple(rests.get(step.evidence) if step.evidence else None for step in finding.argument))
        for finding in result.findings
    )
    twice = _joined([*fold.twice, *_found_shared(cited, fold.twice, number)])
    return Timeline(
        result=result,
        lanes=lanes,
        steps=tuple(_shown(told, lanes)),
        bars=tuple(sorted(fold.bars, key=lambda bar: (bar.first, bar.lane, bar.resource))),
        twice=tuple(twice),
        unowned=tuple(_without(fold.unowned, twice)) if fold.complete else None,
        generations=tuple(fold.generations),
        phases=tuple(fold.phases),
        findings=cited,
    )


_TWO_OWNERS = frozenset({"exclusive-assignment", "exclusive-ownership", "revoke-before-reassign", "connect-revoke-before-reassign"})


def _found_shared(findings: Iterable[Cited], known: Sequence[Span], number: Mapping[str, int]) -> Iterator[Span]:
    """What a finding proves to have had two owners, where what members own step by step does not show it.

    Its argument says who owned it and who got it too; of `revoke-before-reassign` then, if that was captured, who gave it up.
    """
    for cited in findings:
        finding = cited.finding
        got = 2 if finding.rule == "revoke-before-reassign" else len(cited.places)
        places = [place for place in cited.places[:got] if place is not None]
        lanes = tuple(sorted(number[member] for member in finding.members if member in number))
        if finding.rule not in _TWO_OWNERS or finding.severity != "error" or not places or len(lanes) < 2:
            continue
        first = max(places)
        last = max((first + 1, *(place for place in cited.places[got:] if place is not None)))
        for resource in finding.resources:
            near = [span for span in known if span.resource == resource and span.first <= last and first <= span.last]
            until = min((span.first for span in near), default=last)
            if first < until:
                yield Span(resource, first, until, lanes)


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Spans of one resource and the same lanes that meet are one."""
    joined: list[Span] = []
    for span in sorted(spans, key=lambda each: (each.resource, each.lanes, each.first)):
        if joined and (joined[-1].resource, joined[-1].lanes, joined[-1].last) == (span.resource, span.lanes, span.first):
            joined[-1] = Span(span.resource, joined[-1].first, span.last, span.lanes)
        else:
            joined.append(span)
    return joined


def _without(unowned: Iterable[Span], twice: Sequence[Span]) -> Iterator[Span]:
    """``unowned`` but for the times when several own it."""
    shared: dict[str, list[Span]] = defaultdict(list)
    for span in twice:
        shared[span.resource].append(span)
    for span in unowned:
        first = span.first
        for other in sorted(shared[span.resource], key=lambda each: each.first):
            if first < other.first < span.last:
                yield Span(span.resource, first, min(other.first, span.last))
            if other.first < span.last and first < other.last:
                first = other.last
        if first < span.last:
            yield Span(span.resource, first, span.last)


# Lanes.


def lanes_of(events: Sequence[Event], told: Set[str | None]) -> tuple[Lane, ...]:
    """A lane for each member id that is ``told`` of or given anything; those of one static member stand together."""
    who = identities(events)
    members: dict[str, None] = {}
    for event in events:
        if event.member and event.member in told:
            members.setdefault(event.member)
        if isinstance(event, (Assignment, Sync)):
            members.update(dict.fromkeys(member for member, share in (event.assignment or {}).items() if share))
    seats: dict[str, int] = {}
    for member in members:
        seats.setdefault(who.owner(member), len(seats))
    called = Counter(_called(member, who.instances, who.clients) for member in members)
    count: Counter[str] = Counter()
    lanes: list[Lane] = []
    for member in sorted(members, key=lambda each: seats[who.owner(each)]):
        name = _called(member, who.instances, who.clients)
        count[name] += 1
        several = f" #{count[name]}" if called[name] > 1 else ""
        lanes.append(Lane(member, line(name + several), who.instances.get(member), who.clients.get(member)))
    return tuple(lanes)


def _called(member: str, instances: Mapping[str, str], clients: Mapping[str, str]) -> str:
    """What people call a member: its instance, else its client.id, else its id without the part that the coordinator made up; or a short id."""
    called = instances.get(member) or clients.get(member) or _without_uuid(member)
    return called if len(called) < len(member) else member


def _without_uuid(member: str) -> str:
    name, tail = member[:-37], member[-37:]
    return name if name and tail[:1] == "-" and tail.count("-") == 5 else member


def _shown(told: Sequence[Step], lanes: Sequence[Lane]) -> Iterator[Shown]:
    taken: Counter[str] = Counter()
    place = _placing(told, lanes)
    for at, step in enumerate(told):
        event = step.event
        parts = (event.cluster, event.group, event.kind, event.ts, event.epoch, event.generation, event.member or "", step.says)
        name = digest(*map(str, parts))[:8]
        taken[name] += 1
        if taken[name] > 1:
            name = f"{name}-{taken[name]}"
        mine = event.observer in ("member", "harness") or isinstance(event, _OF_A_MEMBER)
        yield Shown(name, step, place(event, at) if mine else None, _mark(event))


def _placing(told: Sequence[Step], lanes: Sequence[Lane]) -> Callable[[Event, Place], int | None]:
    """Who finds the lane of a member's event: one without a member id is of the instance's, or client's, next member."""
    number = {lane.member: at for at, lane in enumerate(lanes)}
    first: dict[str, Place] = {}
    for at, step in enumerate(told):
        first.setdefault(step.event.member or "", at)
    namesakes: dict[tuple[str, str], list[tuple[Place, int]]] = defaultdict(list)
    for at, lane in enumerate(lanes):
        for kind, name in (("instance", lane.instance), ("client", lane.client)):
            if name is not None:
                namesakes[kind, name].append((first.get(lane.member, len(told)), at))

    def place(event: Event, at: Place) -> int | None:
        if event.member:
            return number.get(event.member)
        named = ("instance", event.instance) if event.instance else ("client", event.client or "")
        candidates = sorted(namesakes.get(named, ()))
        return next((lane for begins, lane in candidates if begins >= at), candidates[-1][1] if candidates else None)

    return place


_OF_A_MEMBER = (Join, Joined, Sync, Synced, Heartbeat, Commit, Leave, Expire, Replace)


def _mark(event: Event) -> Mark:
    match event:
        case Joined() | Synced() | Heartbeat() | Commit() if event.error in ROUTINE:
            return "told"
        case Joined() | Synced() | Heartbeat() | Commit() | Leave() if event.error != NONE:
            return "refused"
        case Sync(delay_ms=int(delay)) | Synced(delay_ms=int(delay)) if delay > 0:
            return "delay"
        case Closed() | Crashed():
            return "ended"
        case _:
            return _MARKS.get(type(event), "other")


_MARKS: Mapping[type[Event], Mark] = {
    Join: "join",
    Sync: "decide",
    Synced: "given",
    Assigned: "assigned",
    Owned: "assigned",
    Revoked: "revoked",
    Lost: "lost",
    Commit: "commit",
    Leave: "leave",
    Expire: "expired",
    Replace: "replaced",
    Rebalance: "rebalance",
    Joined: "admitted",
    GenerationStarted: "generation",
    Assignment: "stored",
    Load: "load",
    Gap: "gap",
}


# Ownership.


@dataclass(slots=True)
class _Member:
    """What is known of one member id.

    ``owner``: its slot. ``named`` by the coordinator or the leader; ``believes``: its own log tells what it owns; ``answered``: the coordinator's
    answers tell what it was given. ``owns`` maps what it owns to the step after which it does in the present state. ``admitted``: the newest
    generation that the coordinator let it into; ``seen``: the newest one for which it said itself what it owns; ``claimed`` in the JoinGroup that
    is not answered yet. ``gone``: the generation in which it was removed or ended, until it is let in again.
    """

    owner: str
    named: bool = False
    believes: bool = False
    answered: bool = False
    owns: dict[str, Place] = field(default_factory=dict[str, Place])
    stale: bool = False
    admitted: tuple[int, int] | None = None
    seen: tuple[int, int] = (0, -1)
    claimed: bool = False
    gone: tuple[int, int] | None = None
    ended: bool = False


def _key(event: Event) -> tuple[int, int]:
    return event.epoch, -1 if event.generation is None else event.generation


def _members(events: Sequence[Event], number: Mapping[str, int]) -> dict[str, _Member]:
    who = identities(events)
    members = {member: _Member(who.owner(member)) for member in number}
    believing = _believing(events)
    for event in events:
        if isinstance(event, (Sync, Assignment)):
            for name in event.assignment or ():
                if name in members:
                    members[name].named = True
        member = members.get(event.member or "")
        if member is not None:
            member.named = member.named or event.observer in ("coordinator", "any")
            member.believes = event.member in believing
            member.answered = member.answered or (isinstance(event, Synced) and event.resources is not None)
    return members


def _believing(events: Sequence[Event]) -> set[str | None]:
    """Members whose own log tells what they own, from the first generation on that gave them anything."""
    first: dict[str | None, tuple[int, int]] = {}
    given: dict[str | None, tuple[int, int]] = {}
    for event in events:
        if isinstance(event, (Assigned, Revoked, Lost, Owned)):
            first[event.member] = min(first.get(event.member, _key(event)), _key(event))
        elif isinstance(event, Synced) and event.observer == "coordinator" and event.error == NONE and event.resources:
            given[event.member] = min(given.get(event.member, _key(event)), _key(event))
    return {member for member, key in first.items() if key <= given.get(member, key)}


class _Fold:
    def __init__(self, events: Sequence[Event], number: Mapping[str, int]) -> None:
        self.number = number
        self.members = _members(events, number)
        decided = {_key(event) for event in events if isinstance(event, (Sync, Assignment)) and event.assignment is not None}
        self._starting = {_key(event) for event in events if isinstance(event, GenerationStarted)}
        seen = any(event.observer == "coordinator" for event in events)
        self._decided_in = decided if seen else set[tuple[int, int]]()
        self.bars: list[Bar] = []
        self.twice: list[Span] = []
        self.unowned: list[Span] = []
        self.generations: list[tuple[Place, int, int]] = []
        self.phases: list[tuple[Place, Phase]] = []
        protocols = (event.protocol for event in events if isinstance(event, (GenerationStarted, Joined, Assignment)))
        self.protocol = next((protocol for protocol in protocols if protocol), None)
        self._asking: set[str] = set()
        self._admitted: tuple[int, int] | None = None
        self._meant: dict[str, str] = {}
        """To whom each resource was given last."""
        self._holders: dict[str, set[str]] = defaultdict(set)
        self._alone_since: dict[str, Place] = {}
        self._shared_since: dict[str, tuple[Place, tuple[int, ...]]] = {}

    @property
    def complete(self) -> bool:
        """Whether it is known of any generation what everybody was given."""
        return bool(self._decided_in)

    def apply(self, event: Event, now: Place) -> None:
        self._enter(event, now)
        name = event.member or ""
        member = self.members.get(name)
        if member is not None and event.observer == "member":
            self._seen(member, event, now)
        match event:
            case Assigned() | Revoked() | Lost() | Owned() if member is not None:
                self._believes(event, name, member, now)
            case Closed() | Crashed() if member is not None:
                member.ended, member.gone = True, self._current()
                self._owns(name, (), now)
            case Join() if member is not None and event.observer == "coordinator":
                self._asks(event, name, member, now)
            case Joined(error="NONE") if member is not None:
                self.protocol = event.protocol or self.protocol
                if event.observer == "coordinator":
                    self._let_in(name, event, now)
                else:
                    self._caught_up(name, event, now)
            case Joined() if member is not None:
                self._asking.discard(name)
                member.claimed = False
            case Synced(error="NONE") if member is not None:
                member.claimed = False
                self._caught_up(name, event, now)
                if event.resources is not None and not member.believes and not member.ended:
                    self._owns(name, event.resources, now)
                self._left_behind(event, now)
                self._phase("stable", now)
            case Sync() | Assignment() if event.assignment is not None:
                self._decided(event, event.assignment, now)
                if isinstance(event, Sync):
                    self._left_behind(event, now)
            case GenerationStarted():
                self._started(event, now)
            case Rebalance():
                self._phase("preparing", now)
            case Expire() | Leave(error="NONE"):
                self._gone(name, now)
            case Replace():
                self._gone(event.old_member or "", now)
            case _:
                pass

    def end(self, last: Place) -> None:
        for name, member in self.members.items():
            for resource in [*member.owns]:
                self._close(name, member, resource, last)
        for resource in [*self._alone_since]:
            if not self._may_own(self._meant.get(resource)):
                self._found(resource, last)
        for resource in [*self._shared_since]:
            self._apart(resource, last)

    def _may_own(self, name: str | None) -> bool:
        """Whether a member that was given something may have taken it without a word: its log may end before that."""
        return name is not None and name in self.members and self.members[name].gone is None and not self.members[name].stale

    # The group.

    def _current(self) -> tuple[int, int]:
        return self.generations[-1][1:] if self.generations else (0, -1)

    def _now(self, event: Event) -> bool:
        return bool(self.generations) and _key(event) == self._current()

    def _enter(self, event: Event, now: Place) -> None:
        if not isinstance(event, (GenerationStarted, Joined, Synced, Assignment, Sync)) or event.generation is None or event.generation < 0:
            return
        key = _key(event)
        if key in self._starting and not isinstance(event, GenerationStarted):
            return
        if not self.generations or key > self._current():
            self.generations.append((now, *key))
            if key not in self._decided_in:
                for resource in [*self._alone_since]:
                    self._found(resource, now)

    def _started(self, event: GenerationStarted, now: Place) -> None:
        self.protocol = event.protocol or self.protocol
        self._phase("empty" if event.members == () else "completing", now)
        if self._now(event):
            for name in self._asking:
                self._let_in(name, event, now)
        self._asking.clear()
        for name, member in self.members.items():
            if event.members is not None and name not in event.members:
                self._gone(name, now)
            elif not member.believes and self.protocol in EAGER:
                self._owns(name, (), now)

    def _decided(self, event: Sync | Assignment, assignment: Mapping[str, Resources], now: Place) -> None:
        """The shares of those of whom nothing else tells what they own. Under a cooperative protocol nobody loses anything by it."""
        if self._now(event):
            for name, member in self.members.items():
                share = assignment.get(name, ())
                if member.believes or member.ended:
                    continue
                if not member.answered:
                    self._owns(name, share, now)
                elif self.protocol not in COOPERATIVE:
                    self._owns(name, (resource for resource in member.owns if resource in share), now)
        for name, share in assignment.items():
            for resource in share:
                self._meant[resource] = name
                self._held(resource, now)

    def _left_behind(self, event: Sync | Synced, now: Place) -> None:
        """The join phase is over: whoever is known to have been admitted to an older generation only, missed this one."""
        if self._now(event) and self._admitted == self._current():
            for name, member in self.members.items():
                if member.admitted is not None and member.admitted < self._current():
                    self._stale(name, True, now)

    def _phase(self, phase: Phase, now: Place) -> None:
        if not self.phases or self.phases[-1][1] != phase:
            self.phases.append((now, phase))

    # Members.

    def _asks(self, event: Join, name: str, member: _Member, now: Place) -> None:
        """A claim tells what a cooperative member believes to own, also where its own log says nothing."""
        self._asking.add(name)
        if event.owned is not None and self.protocol in COOPERATIVE:
            member.claimed = True
            self._owns(name, event.owned, now)

    def _believes(self, event: Assigned | Revoked | Lost | Owned, name: str, member: _Member, now: Place) -> None:
        named = event.resources or ()
        match event:
            case Assigned():
                owned: Resources = (*member.owns, *named)
            case Owned():
                owned = named
            case _:
                owned = tuple(resource for resource in member.owns if resource not in frozenset(named))
        if event.generation is not None and isinstance(event, (Assigned, Owned)):
            self._caught_up(name, event, now)
        self._owns(name, owned, now)

    def _let_in(self, name: str, event: Joined | GenerationStarted, now: Place) -> None:
        """The coordinator lets it into the generation that ``event`` tells of; whoever else had its slot is out."""
        member = self.members[name]
        member.admitted = self._admitted = _key(event)
        member.gone, member.ended = None, False
        if member.claimed or not member.believes:
            self._seen(member, event, now)
        for other, each in self.members.items():
            if other != name and each.owner == member.owner and each.gone is None and each.admitted is not None:
                self._gone(other, now)
        self._caught_up(name, event, now)

    def _seen(self, member: _Member, event: Event, now: Place) -> None:
        if _key(event) > member.seen:
            member.seen = _key(event)
            for resource in member.owns:
                self._shared(resource, now)

    def _caught_up(self, name: str, event: Event, now: Place) -> None:
        member = self.members[name]
        if member.gone is not None and _key(event) > member.gone:
            member.gone, member.ended = None, False
        if member.gone is None and (not self.generations or _key(event) >= self._current()):
            self._stale(name, False, now)

    def _gone(self, name: str, now: Place) -> None:
        member = self.members.get(name)
        if member is not None:
            member.gone = self._current()
            self._stale(name, True, now) if member.believes else self._owns(name, (), now)

    # Bars.

    def _owns(self, name: str, owned: Iterable[str], now: Place) -> None:
        member, wanted = self.members[name], dict.fromkeys(owned)
        for resource in [resource for resource in member.owns if resource not in wanted]:
            self._close(name, member, resource, now)
            self._held(resource, now)
        for resource in wanted:
            if resource not in member.owns:
                member.owns[resource] = now
                self._held(resource, now, name if not member.stale else None)

    def _stale(self, name: str, stale: bool, now: Place) -> None:
        member = self.members[name]
        if member.stale == stale:
            return
        owned = [*member.owns]
        for resource in owned:
            self._close(name, member, resource, now)
        member.stale = stale
        for resource in owned:
            member.owns[resource] = now
            self._held(resource, now, None if stale else name)

    def _close(self, name: str, member: _Member, resource: str, now: Place) -> None:
        first = member.owns.pop(resource)
        state: State = "stale" if member.stale else "believed" if member.believes else "given"
        if now > first:
            self.bars.append(Bar(self.number[name], resource, first, now, state))
        self._holders[resource].discard(name)

    def _held(self, resource: str, now: Place, name: str | None = None) -> None:
        """Who owns ``resource`` has changed: ``name`` owns it too."""
        holders = self._holders[resource]
        if name is not None:
            holders.add(name)
        if holders:
            self._found(resource, now)
        elif self._current() in self._decided_in:
            self._alone_since.setdefault(resource, now)
        self._shared(resource, now)

    def _shared(self, resource: str, now: Place) -> None:
        """Several own it once they do so in one generation, and until one of them is a generation behind: what it does then is not known."""
        holders = self._holders[resource]
        if len(holders) < 2 and resource not in self._shared_since:
            return
        epoch, newest = max((self.members[each].seen for each in holders), default=(0, -1))
        sharing = self._shared_since[resource][1] if resource in self._shared_since else ()
        current = [each for each in holders if self.members[each].seen >= (epoch, newest - (self.number[each] in sharing))]
        lanes = tuple(sorted(self.number[each] for each in current if any(self._two(each, other) for other in current)))
        if resource in self._shared_since and self._shared_since[resource][1] != lanes:
            self._apart(resource, now)
        if len(lanes) > 1:
            self._shared_since.setdefault(resource, (now, lanes))

    def _two(self, one: str, other: str) -> bool:
        """Whether these are two members for sure, and each is told of by the same side: its own log, or the coordinator."""
        a, b = self.members[one], self.members[other]
        return a.owner != b.owner and a.believes == b.believes and (a.believes or (a.named and b.named))

    def _found(self, resource: str, now: Place) -> None:
        first = self._alone_since.pop(resource, None)
        if first is not None and now > first:
            self.unowned.append(Span(resource, first, now))

    def _apart(self, resource: str, now: Place) -> None:
        first, lanes = self._shared_since.pop(resource)
        if now > first:
            self.twice.append(Span(resource, first, now, lanes))
