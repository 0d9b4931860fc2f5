"""What one rebalance costs: what it stopped, what it moved, how often rebalances come.

Each measure is a fold over rounds in the order of (epoch, generation). They say only what the rounds show: a measure
that lacks evidence is None, never a guess.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from .events import NONE, Closed, Crashed, Event, Join, Leave, Rebalance, Revoked
from .rounds import Owner, Owns, Round, Seat

SECOND = 1_000_000
"""Microseconds."""

STORM_WINDOW = 300 * SECOND
STORM_ROUNDS = 5
STORM_EXCESS = 3
STORM_RATE = 30
LIVELOCK_ROUNDS = 3
LIVELOCK_PAUSE = 600 * SECOND


def contiguous(before: Round, now: Round) -> bool:
    """No generation lies between the two, as far as the coordinator's numbering tells."""
    step = now.generation - before.generation
    return step == 1 or (step == 0 and now.epoch != before.epoch)


def entered(now: Round) -> bool:
    """This trace shows the group entering the generation, not only leaving it or living in it."""
    if now.opened or now.started or now.stored or now.proposals:
        return True
    return any(s.joined or s.taken or s.grants or any(a.error == NONE for a in s.synced) for s in now.seats.values())


def streams(now: Round) -> bool:
    """The group runs Kafka Streams, which rebalances by its own plan (KIP-441: probing rebalances, warm-up tasks)."""
    return now.protocol == "stream" or any("-StreamThread-" in s.member or "-StreamThread-" in (s.client or "") for s in now.seats.values())


def delay_ms(now: Round) -> int:
    """Connect's scheduled rebalance delay in this generation, 0 if none was seen."""
    answers = (a.delay_ms for s in now.seats.values() for a in s.synced)
    return max((d for d in (*answers, *(p.delay_ms for p in now.proposals)) if d is not None), default=0)


# Why a rebalance began.

LEADER = "leader re-joining group"
_HEADS: Sequence[tuple[re.Pattern[str], str, bool]] = tuple(
    (re.compile(pattern, re.IGNORECASE), name, external)
    for pattern, name, external in (
        (r"^adding new member\b", "adding new member", True),
        (r"^removing\b.*\bheartbeat expiration", "removing member on heartbeat expiration", True),
        (r"^removing\b.*\bpending sync", "removing members on pending sync request expiration", True),
        (r"^removing\b.*\bleavegroup|^explicit\b.*\bleavegroup", "removing member on LeaveGroup", True),
        (r"^leader\b.*\bre-?joining group", LEADER, False),
        (r"^updating metadata for static member\b", "updating metadata for static member", False),
        (r"^updating metadata for member\b", "updating metadata for member", False),
        (r"^member\b.*\bjoining group", "member joining group", False),
        (r"^group's selectedprotocol will change", "selected protocol will change", True),
        (r"^error\b.*\bstoring group assignment", "error storing group assignment", True),
        (r"^freshly-loaded group\b", "freshly loaded group over capacity", True),
    )
)
"""Kafka's reasons (GroupCoordinator, GroupMetadataManager): pattern, name without ids, whether an outside event is behind it."""

_CLIENT = re.compile(r"; client reason: ?", re.IGNORECASE)
_ROUTINE = re.compile(r"^(?:not provided|need to re-join with the given member-id|rebalance failed due to\b.*MemberIdRequired)", re.I)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_CHANGED = ("cached metadata has changed", "subscription has changed")
"""What a client says when its topics, their partitions or its subscription changed."""


def normal_reason(reason: str, members: Collection[str] = ()) -> str:
    """A rebalance reason without member ids, so that like causes count together. Longer than 300 characters is cut."""
    head, client = _split(reason)
    named = next((name for pattern, name, _ in _HEADS if pattern.search(head)), None)
    said = "" if not client or _ROUTINE.search(client) else f"; client reason: {_without_ids(client, members)}"
    return (named or _without_ids(head, members) or "not given") + said


def _split(reason: str) -> tuple[str, str]:
    head, *client = _CLIENT.split(reason[:300].strip().rstrip("."), maxsplit=1)
    return head, client[0] if client else ""


def _without_ids(text: str, members: Collection[str]) -> str:
    return " ".join("…" if word.strip("(),;:'[]") in members or _UUID.search(word) else word for word in text.split())


def _external(reason: str) -> bool | None:
    """Whether an event outside the protocol may be behind this reason; None if the words are not Kafka's.

    A leader that joins again without saying why may have seen topics, its subscription or its connectors change.
    """
    head, client = _split(reason)
    if any(changed in said.lower() for changed in _CHANGED for said in (head, client)):
        return True
    named = next(((name, external) for pattern, name, external in _HEADS if pattern.search(head)), None)
    if named is None:
        return None
    return named[1] or (named[0] == LEADER and (not client or _ROUTINE.search(client) is not None))


def reasons(now: Round, before: Round | None) -> list[str]:
    """Why this generation came about: the coordinator's words, else what members said when they asked for it."""
    if now.opened is not None and now.opened.reason:
        return [now.opened.reason]
    asked = [e for s in (before.seats.values() if before else ()) for e in s.own_events if isinstance(e, (Rebalance, Join))]
    asked += [s.join for s in now.seats.values() if s.join is not None]
    found = (e.reason if isinstance(e, Rebalance) else e.extra.get("reason") for e in asked)
    return [text for text in found if isinstance(text, str) and text]


# How often.


@dataclass(frozen=True, slots=True)
class Pulse:
    """One rebalance in time.

    ``ts`` and ``busy`` are microseconds: when the group entered it, and how long until its assignment was out (0 if not
    seen). ``causes`` counts outside events behind it, at least one where it can't be ruled out; ``allowance`` is how
    many generations one such event may take under this protocol. ``state`` is who owned what, None if not known or if
    the cause is not.
    """

    key: tuple[int, int]
    ts: int | None
    busy: int
    causes: int
    allowance: int
    reason: str | None
    state: frozenset[tuple[Owner, Owns]] | None
    exempt: bool
    probing: bool
    event: Event | None


def pulse(now: Round, before: Round | None) -> Pulse | None:
    """The rebalance that led into this generation; None if the trace does not show one."""
    if not entered(now):
        return None
    why = reasons(now, before)
    probing = any("probing" in text.lower() for text in why)
    causes, explained = _causes(now, before, why)
    shares = now.shares if explained and causes == 0 else None
    event = now.opened or now.started or next((e for e in now.coordinator_events), None) or _first_own(now)
    return Pulse(
        key=now.key,
        ts=now.opened.ts if now.opened is not None and now.opened.ts is not None else now.first_ts,
        busy=_busy(now),
        causes=causes,
        allowance=_allowance(now),
        reason=normal_reason(why[0], {m for s in now.seats.values() for m in s.ids}) if why else None,
        state=None if shares is None else frozenset(shares.items()),
        exempt=probing or streams(now),
        probing=probing,
        event=event,
    )


def _first_own(now: Round) -> Event | None:
    return next((e for s in now.seats.values() for e in s.own_events), None)


def _busy(now: Round) -> int:
    """From PreparingRebalance until the coordinator had the assignment, by its own clock."""
    if now.opened is None or now.opened.ts is None:
        return 0
    answered = (a for s in now.seats.values() for a in s.synced if a.observer == "coordinator")
    times = [e.ts for e in (*now.stored, *answered) if e.ts is not None]
    done = min(times) if times else now.started.ts if now.started is not None else None
    return max(0, done - now.opened.ts) if done is not None else 0


def _allowance(now: Round) -> int:
    """Generations per outside event: eager 1, cooperative consumers 2, Connect 3 (delay or back-off, revocation, follow-up)."""
    if now.protocol_type == "connect" and now.cooperative is not False:
        return 3
    return 1 if now.cooperative is False else 2


def _causes(now: Round, before: Round | None, why: Sequence[str]) -> tuple[int, bool]:
    """How many outside events may be behind this rebalance, and whether its cause is known.

    A changed connector configuration leaves no trace of its own: under Connect it may be behind any rebalance but a follow-up.
    """
    if before is None or not contiguous(before, now) or now.epoch != before.epoch:
        return 1, False
    told = [e for e in map(_external, why) if e is not None]
    known = int(delay_ms(before) > 0) + int(now.topics is not None and before.topics is not None and now.topics != before.topics)
    theirs, ours = before.owners, now.owners
    possible = any(told) or (now.protocol_type == "connect" and not _follows_up(before))
    if theirs is None or ours is None:
        possible = possible or not told
    else:
        known += len(theirs ^ ours)
    return max(known, int(possible)), bool(told)


def _follows_up(before: Round) -> bool:
    return any(s.released_while_applying or any(a.revoked for a in s.synced) for s in before.seats.values())


@dataclass(frozen=True, slots=True)
class Storm:
    """More rebalances than the outside events call for. ``kind`` is ``rate``, ``repeats``, ``busy`` or ``livelock``."""

    first: Pulse
    last: Pulse
    rebalances: int
    causes: int
    peak: int
    """Most rebalances within one minute."""
    kind: str
    reasons: Mapping[str, int]


def storms(pulses: Sequence[Pulse]) -> tuple[Storm, ...]:
    """Storms among the pulses that count: Streams and probing rebalances do not.

    Within 5 minutes: 30 rebalances or more; or 5 or more, and either more than the protocol's allowance per outside
    event (three spared for races) or more than half of the time rebalancing. Or the same members with the same
    partitions for the third time running, at most 10 minutes apart, with nothing outside behind it.
    """
    counted = [p for p in pulses if not p.exempt]
    timed = _timed(counted)
    spans = [*_windows(timed)]
    found = [_storm([p for _, p in timed[a : b + 1]], kind) for a, b, kind in spans]
    inside = {p.key for a, b, _ in spans for _, p in timed[a : b + 1]}
    found += [_storm(run, "livelock") for run in _livelocks(counted) if not any(p.key in inside for p in run)]
    return tuple(sorted(found, key=lambda s: s.first.key))


def peak_per_minute(pulses: Iterable[Pulse]) -> int | None:
    """Most rebalances that began within one minute; None without a clock."""
    times = [ts for ts, _ in _timed(pulses)]
    left = best = 0
    for right, ts in enumerate(times):
        while ts - times[left] >= 60 * SECOND:
            left += 1
        best = max(best, right - left + 1)
    return best if times else None


def _timed(pulses: Iterable[Pulse]) -> list[tuple[int, Pulse]]:
    """Pulses that carry a time, which never runs back: generations are in order whatever the clocks say."""
    stamped = [(p.ts, p) for p in pulses if p.ts is not None]
    return list(zip(accumulate((ts for ts, _ in stamped), max), (p for _, p in stamped), strict=True))


def _windows(timed: Sequence[tuple[int, Pulse]]) -> Iterator[tuple[int, int, str]]:
    """Index ranges of storms, overlapping windows merged."""
    causes = [0, *accumulate(p.causes for _, p in timed)]
    busy = [0, *accumulate(p.busy for _, p in timed)]
    left = 0
    open_: tuple[int, int, str] | None = None
    for right, (ts, now) in enumerate(timed):
        while ts - timed[left][0] > STORM_WINDOW:
            left += 1
        kind = _kind(right - left + 1, causes[right + 1] - causes[left], busy[right + 1] - busy[left], now.allowance)
        if kind is None:
            continue
        if open_ is not None and left <= open_[1]:
            open_ = open_[0], right, open_[2]
        else:
            if open_ is not None:
                yield open_
            open_ = left, right, kind
    if open_ is not None:
        yield open_


def _kind(rebalances: int, causes: int, busy: int, allowance: int) -> str | None:
    if rebalances >= STORM_RATE:
        return "rate"
    if rebalances < STORM_ROUNDS:
        return None
    if rebalances - allowance * max(causes, 1) >= STORM_EXCESS:
        return "repeats"
    return "busy" if 2 * busy > STORM_WINDOW else None


def _livelocks(pulses: Sequence[Pulse]) -> Iterator[list[Pulse]]:
    """Runs of rebalances with nothing outside behind them in which one state of the group came back twice."""
    run: list[Pulse] = []
    for now in pulses:
        pause = now.ts - run[-1].ts if run and now.ts is not None and run[-1].ts is not None else 0
        if now.state is None or pause > LIVELOCK_PAUSE:
            yield from _recurring(run)
            run = []
        if now.state is not None:
            run.append(now)
    yield from _recurring(run)


def _recurring(run: list[Pulse]) -> Iterator[list[Pulse]]:
    if len(run) >= LIVELOCK_ROUNDS and max(Counter(p.state for p in run).values()) >= LIVELOCK_ROUNDS:
        yield run


def _storm(run: Sequence[Pulse], kind: str) -> Storm:
    counted = Counter(p.reason for p in run if p.reason is not None)
    return Storm(run[0], run[-1], len(run), sum(p.causes for p in run), peak_per_minute(run) or 0, kind, dict(counted.most_common(5)))


# What was stopped.


@dataclass(frozen=True, slots=True)
class Stop:
    """What members kept over a rebalance, and what of it they gave up in between, with the event that shows it.

    ``everyone`` says that every member of both generations was watched.
    """

    kept: Mapping[str, Owner]
    stopped: Mapping[str, Event]
    everyone: bool


def stop(now: Round, before: Round | None) -> Stop | None:
    """What the rebalance from ``before`` to ``now`` stopped, by members' own events; None if no kept set is known.

    The stop-the-world index is ``len(stopped) / len(kept)``: 1 under the eager protocol, 0 under the cooperative.
    """
    if before is None or not contiguous(before, now):
        return None
    kept: dict[str, Owner] = {}
    stopped: dict[str, Event] = {}
    watched: set[Owner] = set()
    for owner, seat in now.seats.items():
        was = before.seats.get(owner)
        if was is None or was.holds is None or seat.holds is None or was.ids != seat.ids or was.gap or seat.gap or was.gone:
            continue
        watched.add(owner)
        for resource in sorted(was.holds.keys() & seat.holds.keys()):
            kept[resource] = owner
            gave_up = _gave_up(resource, was, seat)
            if gave_up is not None:
                stopped[resource] = gave_up
    theirs, ours = before.owners, now.owners
    everyone = theirs is not None and ours is not None and theirs & ours <= watched
    return Stop(kept, stopped, everyone) if kept else None


def _gave_up(resource: str, was: Seat, now: Seat) -> Event | None:
    if resource in now.released_while_applying:
        return now.released.get(resource)
    return None if resource in now.entered_with else was.released.get(resource)


# What was moved.


@dataclass(frozen=True, slots=True)
class Episode:
    """From one settled generation to the next: what moved, and how few moves would have balanced it.

    ``changes`` counts the rounds whose members differ from those before. ``subscribed`` says whether all members
    subscribe to the same topics, None if not known; Connect's workers always do.
    """

    before: Round
    after: Round
    rounds: int
    changes: int
    moved: tuple[str, ...]
    minimum: int
    subscribed: bool | None


@dataclass(slots=True)
class Episodes:
    """Folds rounds into episodes. A generation whose shares were not seen ends the episode without a result."""

    base: tuple[Round, Mapping[Owner, Owns]] | None = None
    last: tuple[Round, Mapping[Owner, Owns]] | None = None
    length: int = 0
    changes: int = 0

    def step(self, now: Round) -> Episode | None:
        """The episode that this generation settled, if it did."""
        shares = now.shares if entered(now) else None
        if shares is None:
            return None
        if self.last is not None and not contiguous(self.last[0], now):
            self.base = self.last = None
        self.length += 1
        self.changes += int(self.last is not None and shares.keys() != self.last[1].keys())
        settled = self._settled(now, shares)
        self.last = now, shares
        if not settled:
            return None
        base, length, changes = self.base, self.length, self.changes
        self.base, self.length, self.changes = (now, shares), 0, 0
        if base is None:
            return None
        moved, minimum = _movement(base[1], shares, _nodes(base[0], now))
        return Episode(base[0], now, length, changes, moved, minimum, _subscribed(base, (now, shares)))

    def _settled(self, now: Round, shares: Mapping[Owner, Owns]) -> bool:
        """Nothing is withheld: no delay runs, and all that anyone had is given to somebody."""
        if now.cooperative is False:
            return True
        if delay_ms(now) > 0:
            return False
        had = set[str]().union(*(s.claim.owns for s in now.seats.values() if s.claim is not None and not s.claim.stored))
        if self.last is not None:
            had.update(*self.last[1].values())
        return had <= set[str]().union(*shares.values())


def _nodes(before: Round, now: Round) -> Mapping[Owner, str]:
    """Connect: a worker that restarts is a new member; one client.id on each side makes it the same worker."""
    if now.protocol_type != "connect":
        return {}
    named: dict[str, tuple[set[Owner], set[Owner]]] = {}
    for side, round_ in enumerate((before, now)):
        for owner, seat in round_.seats.items():
            if seat.client:
                named.setdefault(seat.client, (set(), set()))[side].add(owner)
    return {owner: client for client, (old, new) in named.items() if len(old) <= 1 and len(new) <= 1 for owner in old | new}


def _movement(before: Mapping[Owner, Owns], after: Mapping[Owner, Owns], nodes: Mapping[Owner, str]) -> tuple[tuple[str, ...], int]:
    """What changed owner, and the least number of changes that ends balanced within one per kind of resource."""
    old = {resource: nodes.get(owner, owner) for owner in sorted(before) for resource in before[owner]}
    new = {resource: nodes.get(owner, owner) for owner in sorted(after) for resource in after[owner]}
    moved = tuple(sorted(r for r in old.keys() & new.keys() if old[r] != new[r]))
    present = sorted({nodes.get(owner, owner) for owner in after})
    minimum = 0
    kinds: dict[str, list[str]] = {}
    for resource in new:
        kinds.setdefault(_kind_of(resource), []).append(resource)
    for resources in kinds.values():
        held = Counter(old[r] for r in resources if r in old)
        floor, extra = divmod(len(resources), len(present))
        loads = sorted((held.pop(node, 0) for node in present), reverse=True)
        minimum += sum(max(0, load - floor - int(place < extra)) for place, load in enumerate(loads)) + sum(held.values())
    return moved, minimum


def _kind_of(resource: str) -> str:
    return resource.split(":", 1)[0] if resource.startswith(("connector:", "task:")) else ""


def _subscribed(before: tuple[Round, Mapping[Owner, Owns]], after: tuple[Round, Mapping[Owner, Owns]]) -> bool | None:
    """Whether every member may own a partition of every topic there is; owning one shows it."""
    if after[0].protocol_type == "connect":
        return True
    topics = {_topic(r) for r in frozenset[str]().union(*before[1].values(), *after[1].values())}
    answer: bool | None = True
    for owner in after[1]:
        seat = after[0].seats[owner]
        named = _named_topics(after[0], seat)
        if named is not None and not topics <= named:
            return False
        if named is None:
            shown = {_topic(r) for _, shares in (before, after) for r in shares.get(owner, frozenset[str]())}
            answer = answer if topics <= shown else None
    return answer


def _named_topics(now: Round, seat: Seat) -> frozenset[str] | None:
    if seat.join is not None and seat.join.subscribed is not None:
        return frozenset(seat.join.subscribed)
    infos = (stored.members.get(m) for stored in now.stored if stored.members is not None for m in seat.ids)
    return next((frozenset(i.subscribed) for i in infos if i is not None and i.subscribed is not None), None)


def _topic(resource: str) -> str:
    return resource.rpartition("-")[0]


# Who owned nothing, and who believed too long.


@dataclass(slots=True)
class Unowned:
    """Sums the time between one owner's end and the next owner's start, resource by resource.

    A member's own events count first, the coordinator's where there are none; two clocks are taken as one, and what they
    make negative as zero. ``seconds`` is None until one such time was known.
    """

    total: int = 0
    timed: bool = False
    untimed: bool = False
    _held: dict[str, Owner] = field(default_factory=dict[str, Owner])
    _ended: dict[str, tuple[int, int | None]] = field(default_factory=dict[str, tuple[int, int | None]])
    _blind: int = 0
    """Generations so far whose owners were not all seen: what ended before one may have had an unseen owner in it."""
    _last: Round | None = None

    def step(self, now: Round) -> None:
        shares = now.shares
        if self._last is not None and not contiguous(self._last, now):
            self._blind += 1
        after_now = self._blind + int(shares is None)
        for owner, seat in now.seats.items():
            self._ends_on_entry(now, owner, seat, after_now)
        for owner, seat in now.seats.items():
            self._starts(owner, seat)
        for owner, seat in now.seats.items():
            if seat.holds is not None:
                after = {r: e for r, e in (*seat.released.items(), *seat.lost.items()) if r not in seat.released_while_applying}
                for resource, event in after.items():
                    self._end(resource, owner, event.ts, after_now)
            if seat.gone is not None:
                self._end_all(seat, owner, seat.gone.ts, after_now)
        for owner, event in now.removed.items():
            if owner in now.seats:
                self._end_all(now.seats[owner], owner, event.ts, after_now)
        self._blind = after_now
        self._last = now

    def _ends_on_entry(self, now: Round, owner: Owner, seat: Seat, after_now: int) -> None:
        for resource in seat.released_while_applying:
            event = seat.released.get(resource) or seat.lost.get(resource)
            self._end(resource, owner, event.ts if event is not None else None, after_now)
        given = seat.given
        if seat.holds is not None or given is None:
            return
        was = self._last.seats.get(owner) if self._last is not None else None
        before = was.given.owns if was is not None and was.given is not None else frozenset[str]()
        if now.cooperative is False:
            join = seat.join
            for resource in before:
                self._end(resource, owner, join.ts if join is not None and join.observer == "coordinator" else None, self._blind)
        else:
            for resource in before - given.owns:
                self._end(resource, owner, given.event.ts, after_now)

    def _starts(self, owner: Owner, seat: Seat) -> None:
        if seat.holds is not None:
            started = {r: e.ts for r, e in seat.taken.items()} | {r: None for r in seat.holds if r not in seat.taken}
        else:
            started = dict.fromkeys(seat.given.owns, seat.given.event.ts) if seat.given is not None else {}
        for resource, ts in started.items():
            self._start(resource, owner, ts)

    def _start(self, resource: str, owner: Owner, ts: int | None) -> None:
        holder = self._held.get(resource)
        ended = self._ended.pop(resource, None)
        self._held[resource] = owner
        if holder is None or (ended is None and holder == owner):
            return
        if ended is not None and ended[0] == self._blind and ended[1] is not None and ts is not None:
            self.timed = True
            self.total += max(0, ts - ended[1])
        else:
            self.untimed = True

    def _end(self, resource: str, owner: Owner, ts: int | None, blind: int) -> None:
        if self._held.get(resource) == owner and resource not in self._ended:
            self._ended[resource] = blind, ts

    def _end_all(self, seat: Seat, owner: Owner, ts: int | None, blind: int) -> None:
        for resource in seat.holds if seat.holds is not None else (seat.given.owns if seat.given is not None else ()):
            self._end(resource, owner, ts, blind)

    @property
    def seconds(self) -> float | None:
        """Resource-seconds without an owner: a lower bound where some handovers could not be timed."""
        if self.timed:
            return self.total / SECOND
        return None if self.untimed or not self._held else 0.0


@dataclass(frozen=True, slots=True)
class Zombie:
    """A member that still believed in what a later generation had given away: legal, as commits are fenced.

    ``seconds`` is how long, None where a clock is missing.
    """

    owner: Owner
    generation: int
    resources: tuple[str, ...]
    seconds: float | None


@dataclass(slots=True)
class Zombies:
    """Finds zombie windows, which an expired session, a poll timeout or a missed rebalance or sync opens.

    A member that takes part in the generation which gives its resource away is no zombie. One that entered a still
    later generation with the resource surely was; one that ended its belief on its own was if its clock is later than
    the new owner's start by more than the tolerated skew.
    """

    skew_ms: int
    found: list[Zombie] = field(default_factory=list[Zombie])
    _believers: dict[str, tuple[Owner, Event | None, bool]] = field(default_factory=dict[str, tuple[Owner, Event | None, bool]])
    _waiting: dict[Owner, dict[str, tuple[int, int | None]]] = field(default_factory=dict[Owner, dict[str, tuple[int, int | None]]])

    def step(self, now: Round) -> None:
        for owner, seat in now.seats.items():
            if seat.own_events:
                self._settle(owner, seat)
        by_clock: dict[Owner, tuple[list[str], float]] = {}
        for owner, seat in now.seats.items():
            for resource, ts in _given_from(seat).items():
                self._given(now, owner, resource, ts, by_clock)
        self.found += [Zombie(o, now.generation, tuple(sorted(rs)), seconds) for o, (rs, seconds) in sorted(by_clock.items())]
        for owner, seat in now.seats.items():
            self._believe(now, owner, seat)

    def _settle(self, owner: Owner, seat: Seat) -> None:
        """The member shows up again: what it still believed in, of that which was given away meanwhile."""
        windows: dict[int, tuple[list[str], list[float]]] = {}
        for resource, (generation, given_at) in self._waiting.pop(owner, {}).items():
            if resource not in seat.entered_with:
                continue
            end = seat.released.get(resource) or seat.lost.get(resource) or seat.joined or seat.own_events[0]
            resources, lengths = windows.setdefault(generation, ([], []))
            resources.append(resource)
            if given_at is not None and end.ts is not None and end.observer in ("member", "harness"):
                lengths.append(max(0.0, (end.ts - given_at) / SECOND))
        self.found += [Zombie(owner, g, tuple(sorted(rs)), max(ls, default=None)) for g, (rs, ls) in sorted(windows.items())]

    def _given(self, now: Round, owner: Owner, resource: str, ts: int | None, by_clock: dict[Owner, tuple[list[str], float]]) -> None:
        holder, end, orderly = self._believers.get(resource, (owner, None, False))
        absent = holder not in now.seats or not now.seats[holder].rejoined
        if holder == owner or not absent:
            return
        del self._believers[resource]
        if end is None:
            self._waiting.setdefault(holder, {})[resource] = now.generation, ts
        elif not orderly and end.ts is not None and ts is not None and end.ts - ts > self.skew_ms * 1000:
            resources, longest = by_clock.setdefault(holder, ([], 0.0))
            resources.append(resource)
            by_clock[holder] = resources, max(longest, (end.ts - ts) / SECOND)

    def _believe(self, now: Round, owner: Owner, seat: Seat) -> None:
        if seat.holds is None:
            return
        closed = seat.gone if isinstance(seat.gone, (Closed, Crashed)) else None
        orderly = _left_in_order(now.removed.get(owner)) or (bool(seat.own_events) and _left_in_order(seat.own_events[-1]))
        for resource in seat.holds:
            end = seat.lost.get(resource)
            if end is None and resource not in seat.released_while_applying:
                end = seat.released.get(resource)
            self._believers[resource] = owner, end or closed, isinstance(end, Revoked) and orderly


def _left_in_order(event: Event | None) -> bool:
    """The member closed: it let go before it said so. A poll timeout leaves without letting go."""
    return isinstance(event, Closed) or (isinstance(event, Leave) and "poll timeout" not in (event.reason or ""))


def _given_from(seat: Seat) -> dict[str, int | None]:
    """From when each resource is this seat's: by the coordinator's clock where it was seen, else by the member's own."""
    given = seat.given
    if given is not None and given.event.observer == "coordinator":
        return dict.fromkeys(sorted(given.owns), given.event.ts)
    return {r: e.ts for r, e in sorted(seat.taken.items())}
