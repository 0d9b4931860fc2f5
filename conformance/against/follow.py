"""Follow a capture with the reference coordinator: the states that it may be in after each captured point, until there is none."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import count, islice

from ...model import coordinator
from ...model.coordinator import Group, Member, Release
from ...model.messages import CommitRequest, HeartbeatRequest, JoinRequest, LeaveRequest, Metadata, SyncRequest
from ...spec.events import NONE, Assignment, Event, Expire, GenerationStarted, Joined, Rebalance, Replace
from .evidence import UNKNOWN_TIMEOUT, Evidence, Exchange, Known, Point, protocol_type, shares
from .replica import EARLY_MS, Reference, Refused, Replica, is_vague, may_have_changed, overdue, timers
from .sightings import answered, seen

BEAM = 8
"""States kept between two points."""
TRIED = 2_000
"""Hidden steps tried to reach one point."""
AHEAD_US = 1_000_000
"""A line of the coordinator's log may come so much before the request that it names was captured."""

Steps = Callable[[Replica, Point, "Exchange | None"], Iterator["tuple[int, Replica | Refused]"]]


@dataclass(frozen=True, slots=True)
class Followed:
    """How far one release got: ``stopped`` is the point that none of the ``states`` could reach, ``refused`` why each try failed.

    ``judged`` points were reached; before ``begun``, and where evidence was ``missing``, the capture shows no state to begin with.
    """

    release: Release
    judged: int
    stopped: Point | None = None
    states: tuple[Replica, ...] = ()
    refused: tuple[Refused, ...] = ()
    begun: bool = False
    missing: tuple[str, ...] = ()


class Follower:
    """One pass over the points."""

    def __init__(self, evidence: Evidence, release: Release) -> None:
        self.evidence = evidence
        self.reference = Reference(evidence, release)
        self.states: list[Replica] = [Replica(coordinator.empty(evidence.group))] if evidence.first == 0 else []
        self.under_way: set[int] = set()
        self.arrivals = sorted((e.arrived, e.number) for e in evidence.exchanges if e.arrived is not None)
        self.over: set[int] = set()
        """Exchanges that are not judged: they were answered for reasons that no capture shows, or before the first known state."""
        self.given: set[str] = set()
        """Member ids that were given before the first known state, which may not have been used by then."""
        self.epoch = 0
        self.settled = evidence.first == 0
        """Whether a whole generation was followed in this epoch."""
        self.missing: list[str] = []
        self.refused: list[Refused] = []
        self.exhausted = False
        self.judged = 0

    def run(self) -> Followed:
        begun = bool(self.states)
        for point in self.evidence.points:
            if not self._pass(point):
                return self._done(point, begun=True)
            begun = begun or bool(self.states)
        return self._done(None, begun=begun)

    def _done(self, stopped: Point | None, *, begun: bool) -> Followed:
        if stopped is not None and stopped.exchange >= 0:
            exchange = self.evidence.exchanges[stopped.exchange]
            tries = [self._try(state, exchange, stopped.at // 1000) for state in self.states]
            self.refused = [*filter(None, tries), *self.refused]
        return Followed(
            self.reference.release,
            self.judged,
            stopped,
            tuple(self.states),
            tuple(dict.fromkeys(self.refused)),
            begun,
            tuple(dict.fromkeys(self.missing)),
        )

    def _try(self, state: Replica, exchange: Exchange, now: int) -> Refused | None:
        """What the model would do with a request that is taken now."""
        if _waits(state.group, exchange.number) or state.given(exchange.number) is not None:
            return None
        at = min(now, exchange.at_ms) if exchange.at_ms is not None else now
        step = self.reference.take(state, exchange, at)
        return step if isinstance(step, Refused) else None

    def _pass(self, point: Point) -> bool:
        """Move all states beyond ``point``; False, with the states before it, if none gets there."""
        exchange = self.evidence.exchanges[point.exchange] if point.exchange >= 0 else None
        if point.what == "lost":
            self._lose("the capture has a gap")
            return True
        if exchange is not None and not self._concerns(point, exchange):
            return True
        later = point.event.epoch > self.epoch
        if later and isinstance(point.event, Assignment):
            return True
        if isinstance(point.event, Expire) and point.event.extra.get("pending") and point.event.member in self.given:
            return True
        if later and (exchange is None or point.what == "answered"):
            self._another_coordinator(point)
        if point.event.epoch < self.epoch:
            return True
        if not self.states:
            self._begin(point)
            return True
        if point.what == "arrived" and exchange is not None:
            self.states = [self.reference.at_ease(_arrived(state, exchange.number)) for state in self.states]
            return True
        reached = self._reach(point, exchange)
        if not reached and not self.settled:
            self._lose(f"what the coordinator of epoch {self.epoch} found in its log was not captured")
            self._begin(point)
            return True
        if not reached and self.exhausted:
            self._lose("more orders of what was captured together are possible than were tried")
            self._begin(point)
            return True
        if not reached:
            return False
        self.judged += 1
        self.states = reached
        if isinstance(point.event, GenerationStarted):
            self.settled = True
        return True

    def _concerns(self, point: Point, exchange: Exchange) -> bool:
        """Whether the point of an exchange says anything of the group's state."""
        number = exchange.number
        if not exchange.may_be_taken:
            return False
        if point.what == "arrived":
            self.under_way.add(number)
        elif point.what == "answered":
            self.under_way.discard(number)
        if number in self.over:
            return False
        if exchange.outside and point.what == "answered" and self.states:
            refused = self._search(self.states, point, exchange, self._steps)
            beside = [s.without(number) for s in self.states if not _waits(s.group, number)]
            self.states = [*refused, *beside][:BEAM] or [s.without(number) for s in self.states]
        return not exchange.outside or point.what == "arrived"

    # Where to begin.

    def _lose(self, why: str) -> None:
        self.states, self.settled = [], False
        self.missing.append(why)

    def _begin(self, point: Point) -> None:
        """Begin with a generation of which all members are known; what was answered by it is not judged."""
        event = point.event
        if not isinstance(event, GenerationStarted) or event.generation is None:
            return
        known = self.evidence.known(event.epoch, event.generation)
        if known.members is None:
            return
        self.over |= {n for n in self.under_way if _is_settled(self.evidence.exchanges[n], event.generation, known.members)}
        self.epoch = max(self.epoch, event.epoch)
        self.given = {e.given for e in self.evidence.exchanges if e.given and (e.answered or e.arrived or 0) <= point.at}
        group = self._group(event.generation, known, point.at)
        facts = (replace(event, members=tuple(known.members), leader=known.leader, protocol=known.protocol),)
        self.states = [Replica(group, self.epoch, frozenset(self.under_way - self.over), facts=facts)]
        self.settled = True

    def _group(self, generation: int, known: Known, at: int) -> Group:
        """The group as it is when ``generation`` starts, by what its members said last."""
        said: dict[str, JoinRequest] = {}
        for exchange in self.evidence.exchanges:
            member = exchange.given or getattr(exchange.request, "member", "")
            if isinstance(exchange.request, JoinRequest) and exchange.arrived is not None and exchange.arrived <= at and member:
                said[member] = exchange.request
        members = tuple(self._member(id_, said.get(id_), known, at) for id_ in sorted(known.members or ()))
        longest = max((m.rebalance_timeout_ms for m in members), default=0)
        return Group(
            id=self.evidence.group,
            state="CompletingRebalance" if members else "Empty",
            previous="PreparingRebalance",
            exists=True,
            generation=generation,
            protocol_type=protocol_type([known.protocol or ""]) if members else None,
            protocol=known.protocol if members else None,
            leader=known.leader if known.leader is not None else next((m.id for m in members), None),
            members=members,
            pending_sync=tuple(m.id for m in members),
            sync_deadline=at // 1000 + longest if members else None,
        )

    def _member(self, id_: str, said: JoinRequest | None, known: Known, at: int) -> Member:
        info = known.infos.get(id_)
        session = said.session_timeout_ms if said is not None else (info.session_timeout_ms if info is not None else None)
        protocols = said.protocols if said is not None else ((known.protocol or "range", Metadata()),)
        return Member(
            id=id_,
            instance=said.instance if said is not None else (info.instance if info is not None else None),
            client=said.client if said is not None else "",
            session_timeout_ms=session or UNKNOWN_TIMEOUT,
            rebalance_timeout_ms=said.rebalance_timeout_ms if said is not None else UNKNOWN_TIMEOUT,
            protocols=protocols,
            deadline=at // 1000 + (session or UNKNOWN_TIMEOUT),
        )

    def _another_coordinator(self, point: Point) -> None:
        self.epoch, self.settled = point.event.epoch, False
        now = point.at // 1000
        self.states = [self.reference.resign(state, self.epoch, now) for state in self.states]
        self.over |= {number for number in self.under_way if self.evidence.exchanges[number].event.epoch < self.epoch}

    # Where to get to.

    def _reach(self, point: Point, exchange: Exchange | None) -> list[Replica]:
        """The states beyond the point, the likeliest first; only if there are none, with requests that were not captured by then."""
        self.refused = []
        self.exhausted = False
        now = point.at // 1000
        states = [state for before in self.states for state in self._after_overdue(before, now)]
        found = self._search(states, point, exchange, self._steps)
        likely = list(self.refused)
        found = found or self._search(states, point, exchange, self._all_steps)
        self.refused = likely
        return found

    def _search(self, states: Sequence[Replica], point: Point, exchange: Exchange | None, steps: Steps) -> list[Replica]:
        wanted = answered(exchange, point) if exchange is not None else seen(point.event)
        numbers = count()
        queue = [(0, next(numbers), state) for state in states]
        found: dict[object, Replica] = {}
        known: set[object] = set()
        best: int | None = None
        tried = 0
        while queue and len(found) < BEAM:
            cost, _, state = heapq.heappop(queue)
            if best is not None and cost > best + 1:
                break
            arrived = wanted(state)
            if arrived is not None:
                best = cost if best is None else best
                found.setdefault(arrived.likeness, arrived)
                continue
            if tried:
                if state.likeness in known:
                    continue
                known.add(state.likeness)
            if tried >= TRIED:
                self.exhausted = True
                break
            for extra, step in steps(state, point, exchange):
                tried += 1
                if isinstance(step, Refused):
                    self.refused.append(step)
                else:
                    heapq.heappush(queue, (cost + extra, next(numbers), self.reference.at_ease(step)))
        return list(found.values())

    def _after_overdue(self, state: Replica, now: int) -> Iterator[Replica]:
        """``state`` once all timers that must have fired by now have."""
        while (timer := overdue(state, now, heartbeats=self.evidence.heartbeats)) is not None:
            after = self.reference.fire(state, timer, timer.deadline)
            if isinstance(after, Refused):
                self.refused.append(after)
                return
            state = after
        yield state

    def _steps(self, state: Replica, point: Point, wanted: Exchange | None) -> Iterator[tuple[int, Replica | Refused]]:
        """The hidden steps that may come next, each with its cost: requests taken out of turn cost as many as they overtake."""
        now = point.at // 1000
        if state.group.loading:
            for cost, record in enumerate(state.lost, 1):
                yield cost, self.reference.load(state, record, now)
        waiting = [exchange for n in sorted(state.waiting) if not _at_ease(exchange := self.evidence.exchanges[n])]
        for place, exchange in enumerate(waiting):
            yield from self._taken(state, exchange, now, 1 + place)
        if state.appends:
            yield 1, self.reference.store(state, now)
            for error in self._errors_of(state, point.event):
                yield 2, self.reference.store(state, now, error)
        for timer in timers(state):
            if timer.deadline <= now + EARLY_MS and not is_vague(state, timer):
                at = now if timer.deadline <= 0 else min(now, timer.deadline)
                yield 2, self.reference.fire(state, timer, at)

    def _all_steps(self, state: Replica, point: Point, wanted: Exchange | None) -> Iterator[tuple[int, Replica | Refused]]:
        """Those, and requests that were captured later, or not at all."""
        yield from self._steps(state, point, wanted)
        now = point.at // 1000
        for timer in timers(state):
            if is_vague(state, timer):
                yield 4, self.reference.fire(state, timer, now)
        for exchange in self._soon(state, point.at):
            yield from self._taken(state, exchange, now, 4)
        for missing in self._not_captured(state, point):
            yield from self._taken(state, missing, now, 6)

    def _taken(self, state: Replica, exchange: Exchange, now: int, cost: int) -> Iterator[tuple[int, Replica | Refused]]:
        at = min(now, exchange.at_ms) if exchange.at_ms is not None else now
        yield cost, self.reference.take(state, exchange, at)
        if self._is_new(state, exchange):
            request = replace(exchange.request, member="", version=3)
            yield cost + 3, self.reference.take(state, replace(exchange, request=request, given=exchange.request.member), at)
        if isinstance(exchange.request, JoinRequest) and may_have_changed(state.group, exchange.request):
            yield cost + 1, self.reference.take(state, exchange, at, changed=True)

    def _errors_of(self, state: Replica, event: Event) -> tuple[str, ...]:
        """Errors of the log that the answers to what waits for it show, or the reason of a rebalance."""
        append = state.appends[0]
        waits = {m.sync.address.correlation for m in state.group.members if m.sync is not None}
        waits |= {m.join.address.correlation for m in state.group.members if m.join is not None and append.why == "static"}
        told = {answer.error for n in waits if n >= 0 and (answer := self.evidence.exchanges[n].answer) is not None}
        words = (event.reason or "").split() if isinstance(event, Rebalance) else ()
        errors = self.reference.release.error_of_append
        return tuple(raw for raw in _LOG_ERRORS if errors(raw) in told or errors(raw) in words)[:1]

    def _soon(self, state: Replica, at: int) -> Iterator[Exchange]:
        """The next request of each member, where requests were dated back, and maybe not far enough."""
        if self.evidence.whole:
            return
        busy = {self.evidence.exchanges[number].sender for number in state.waiting}
        start = bisect_right(self.arrivals, (at, len(self.evidence.exchanges)))
        for arrived, number in islice(self.arrivals, start, None):
            if arrived > at + AHEAD_US:
                return
            exchange = self.evidence.exchanges[number]
            if number in self.over or number in state.early or number in state.waiting or exchange.sender in busy:
                continue
            busy.add(exchange.sender)
            if exchange.may_be_taken:
                yield exchange

    def _is_new(self, state: Replica, exchange: Exchange) -> bool:
        """Whether it was not captured how a member came by the id that it joins with."""
        request = exchange.request
        if not isinstance(request, JoinRequest) or not request.member or (self.evidence.ids_given and request.member not in self.given):
            return False
        granted = exchange.answer is None or exchange.answer.error == NONE
        return granted and state.group.member(request.member) is None and not state.group.is_pending(request.member)

    def _not_captured(self, state: Replica, point: Point) -> Iterator[Exchange]:
        """Requests that were captured too late or not at all, but must have been there for what was seen."""
        joiner = _joiner(state, point.event, self.evidence)
        if joiner is not None:
            exchange = self._ahead(state, joiner, point) or (None if self.evidence.whole else self._inferred_join(state, joiner, point))
            if exchange is not None:
                yield exchange
        group, leader = state.group, state.group.member(state.group.leader or "")
        known = self.evidence.known(state.epoch, group.generation)
        if self.evidence.whole or group.state != "CompletingRebalance" or state.appends or leader is None or leader.sync is not None:
            return
        if known.shares and not self._synced(leader.id, group.generation):
            request = SyncRequest(member=leader.id, generation=group.generation, instance=leader.instance, shares=shares(None, known))
            yield Exchange(-1, request, state.epoch, None, None)

    def _synced(self, member: str, generation: int) -> bool:
        """Whether the SyncGroup of a member was captured."""
        requests = (exchange.request for exchange in self.evidence.exchanges)
        return any(isinstance(r, SyncRequest) and (r.member, r.generation) == (member, generation) for r in requests)

    def _ahead(self, state: Replica, member: str, point: Point) -> Exchange | None:
        """The next JoinGroup of ``member`` that was captured soon, or of which only the answer was."""
        for exchange in self.evidence.exchanges:
            request, answer = exchange.request, exchange.answer
            if not isinstance(request, JoinRequest) or member not in (request.member, exchange.given) or exchange.number in self.over:
                continue
            if exchange.number in state.early or (answer is not None and answer.error != NONE):
                continue
            if exchange.arrived is not None and point.at < exchange.arrived <= point.at + AHEAD_US:
                return exchange
            if exchange.arrived is None and (exchange.answered or 0) >= point.at:
                return exchange
        return None

    def _inferred_join(self, state: Replica, member: str, point: Point) -> Exchange | None:
        """A JoinGroup that was never answered leaves no line in the request log; one that was answered does."""
        generation = state.group.generation + 1
        for exchange in self.evidence.exchanges:
            answer = exchange.answer
            mine = isinstance(answer, Joined) and (answer.member, answer.generation) == (member, generation) and exchange.asked is not None
            if mine and not isinstance(point.event, Replace):
                return None
        known = state.group.member(member)
        event = point.event
        protocol = state.group.protocol or self.evidence.known(state.epoch, generation).protocol or "range"
        instance = known.instance if known else event.instance if isinstance(event, Replace) else None
        request = JoinRequest(
            member=member if known or state.group.is_pending(member) else "",
            instance=instance,
            client=known.client if known else "",
            protocol_type=protocol_type([protocol]),
            protocols=known.protocols if known else ((protocol, Metadata()),),
            session_timeout_ms=known.session_timeout_ms if known else UNKNOWN_TIMEOUT,
            rebalance_timeout_ms=known.rebalance_timeout_ms if known else UNKNOWN_TIMEOUT,
            version=9 if known or instance else 3,
        )
        return Exchange(-1, request, state.epoch, None, None, given=None if known else member)


def _at_ease(exchange: Exchange) -> bool:
    return isinstance(exchange.request, HeartbeatRequest | CommitRequest)


_LOG_ERRORS = (
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "NOT_LEADER_OR_FOLLOWER",
    "REQUEST_TIMED_OUT",
    "MESSAGE_TOO_LARGE",
)


def _arrived(state: Replica, number: int) -> Replica:
    if number in state.early:
        return replace(state, early=state.early - {number})
    return replace(state, waiting=state.waiting | {number})


def _is_settled(exchange: Exchange, generation: int, members: Set[str]) -> bool:
    """Whether a request that is under way when ``generation`` starts may have been taken before."""
    match exchange.request:
        case HeartbeatRequest() | CommitRequest():
            return True
        case JoinRequest():
            answer = exchange.answer
            return isinstance(answer, Joined) and answer.error == NONE and answer.generation == generation
        case SyncRequest(generation=named):
            return named != generation
        case LeaveRequest(member=member):
            return member not in members


def _waits(group: Group, number: int) -> bool:
    parked = (each for m in group.members for each in (m.join, m.sync) if each is not None)
    return any(each.address.correlation == number for each in parked)


def _joiner(state: Replica, event: Event, evidence: Evidence) -> str | None:
    """Who must have sent JoinGroup for what was seen, and has not as far as the state knows."""
    group = state.group
    match event:
        case GenerationStarted(generation=int(generation)) if generation == group.generation + 1:
            wanted = evidence.known(event.epoch, generation).members or frozenset()
            return next((id_ for id_ in sorted(wanted) if (m := group.member(id_)) is None or m.join is None), None)
        case Rebalance(reason=str(reason)) if group.state != "PreparingRebalance":
            return _named(reason, [*(m.id for m in group.members), *(p.id for p in group.pending), *evidence.ids])
        case Replace(member=str(member)):
            return member
        case _:
            return None


def _named(reason: str, ids: Iterable[str]) -> str | None:
    """The longest of ``ids`` in the coordinator's part of a reason, unless it tells of a removal."""
    said = reason.partition("; client reason: ")[0]
    return None if "emov" in said else max((id_ for id_ in ids if id_ and id_ in said), key=len, default=None)


def follow(evidence: Evidence, release: Release) -> Followed:
    """Follow the capture from its beginning, or from the first generation of which all members are known."""
    return Follower(evidence, release).run()
