"""KIP-415: incremental cooperative rebalancing in Connect. A departed worker's work waits for it; other work moves in two rounds.

All of it is the leader's doing, from state that only its process has. So a promise that spans generations is judged
only while one leader is seen to complete each of them; where that can't be seen the outcome is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ..events import NONE, Event, GenerationStarted, Joined, Sync, Synced
from ..results import Argument, Broken, Held, Outcome, Settings, Severity, Unknown, shown
from ..rounds import Grant, Owner, Owns, Round, Seat
from ..rule import Monitor, Rule
from .group_protocol import label, names

SETTLED_MS = 10_000
"""A generation that lasted this long was no step on the way to the next one."""

Clock = str
_COORDINATOR: Clock = ""


# One generation as Connect's rules see it.


def _previous(now: Round, past: Sequence[Round]) -> Round | None:
    """The generation right before ``now``, if it was seen."""
    last = past[-1] if past else None
    return last if last is not None and last.key == (now.epoch, now.generation - 1) else None


def _workers(now: Round) -> dict[Owner, Seat]:
    """The members of the generation, without those that asked to join and didn't stay."""
    if now.listed is not None:
        listed = now.listed
        return {owner: seat for owner, seat in now.seats.items() if any(member in listed for member in seat.ids)}
    return {owner: seat for owner, seat in now.seats.items() if seat.rejoined or seat.grants}


def _all_known(now: Round) -> bool:
    """Whether nobody else can be a member: it was listed, or the leader's assignment (which names everybody) was seen."""
    return now.listed is not None or bool(now.stored) or bool(now.proposals)


def _seat_of(now: Round, member: str | None) -> Seat | None:
    return next((seat for seat in now.seats.values() if member in seat.ids), None)


def _delays(now: Round) -> list[tuple[str | None, int, Event]]:
    """Every delay that the generation announced: to which member, in milliseconds, and where."""
    told = [(seat.member, s.delay_ms, s) for seat in now.seats.values() for s in seat.synced if s.error == NONE]
    sent = [(p.member, p.delay_ms, p) for p in now.proposals]
    return [(member, delay, event) for member, delay, event in (*told, *sent) if delay is not None]


def _delay(now: Round) -> tuple[int, Event] | None:
    """The generation's one delay; None if none was seen, or several."""
    delays = _delays(now)
    return (delays[0][1], delays[0][2]) if len({delay for _, delay, _ in delays}) == 1 else None


def _incremental(now: Round) -> bool | None:
    """Whether workers keep their work while they join: protocols ``compatible`` and ``sessioned``, versions 1 and 2.

    Without a name or a version a delay tells: version 0 knows none.
    """
    if now.cooperative is not None:
        return now.cooperative
    versions = (s.extra.get("protocol_version") for seat in now.seats.values() for s in seat.synced)
    version = next((v for v in versions if isinstance(v, int)), None)
    if version is not None:
        return version > 0
    return True if _delays(now) else None


def _failed(seat: Seat) -> bool:
    """Whether the worker was refused its share, or told that the leader's configuration lags behind (CONFIG_MISMATCH)."""
    return any(s.error != NONE or bool(s.extra.get("error")) for s in seat.synced)


def _revoked(now: Round) -> dict[Owner, dict[str, Event]]:
    """What each worker was told to stop in this generation."""
    revoked: dict[Owner, dict[str, Event]] = {}
    for seat in now.seats.values():
        for synced in seat.synced:
            if synced.error == NONE and synced.revoked:
                revoked.setdefault(seat.owner, {}).update(dict.fromkeys(synced.revoked, synced))
    for sync in now.proposals:
        for member, resources in (sync.revoked or {}).items():
            seat = _seat_of(now, member)
            if seat is not None and resources:
                told = revoked.setdefault(seat.owner, {})
                told.update({r: sync for r in resources if r not in told})
    return revoked


def _revocations_shown(now: Round) -> bool:
    """Whether the trace would show it if a worker had been told to stop something."""
    if any(p.revoked is not None for p in now.proposals):
        return True
    return all(any(s.revoked is not None for s in seat.synced) for seat in _workers(now).values())


def _reported(seat: Seat, before: Round | None) -> Mapping[str, Event] | None:
    """What the worker said it ran when it joined, with what shows it; None if unknown.

    That it *was given* something in the generation before shows nothing: a worker that can't reach the coordinator, or
    never got its SyncGroup response, joins without it. A stored report is as good as the JoinGroup request: Connect has
    no static members, whose report could be older than the generation.
    """
    if seat.claim is not None:
        return dict.fromkeys(seat.claim.owns, seat.claim.event)
    earlier = None if before is None else before.seats.get(seat.owner)
    if earlier is None or earlier.holds is None or not seat.own_events or seat.gap is not None or earlier.gap is not None:
        return None
    return seat.entered_with


def _given(now: Round | None, owner: Owner) -> Owns | None:
    """What the worker is to run after this generation, None if unknown."""
    seat = None if now is None else now.seats.get(owner)
    return None if seat is None or seat.given is None else seat.given.owns


def _shared_out(now: Round | None) -> Owns:
    """Everything that somebody is to run after this generation, as far as known."""
    seats = () if now is None else now.seats.values()
    return frozenset(unit for seat in seats if seat.given is not None for unit in seat.given.owns)


def _interrupted(now: Round, before: Round | None) -> str | None:
    """Why the leader may not know what happened in the generation before; None if it surely does."""
    if before is None:
        return "the generation before was not captured"
    if before.gaps:
        return "evidence is missing between the two generations"
    if now.leader is None or before.leader is None:
        return "the leader was not captured"
    if now.leader != before.leader:
        return "the leader changed: a new one knows nothing of delays and departed workers"
    if not _completed(_seat_of(before, before.leader), _seat_of(now, now.leader), now):
        return "the leader was not seen completing the generation before"
    if _incremental(now) is not True:
        return "the group was not seen using an incremental protocol"
    return None


def _completed(leader: Seat | None, again: Seat | None, now: Round) -> bool:
    """Whether the leader got its answer to SyncGroup. The coordinator can't tell, if the connection broke.

    Where the leader's own log tells of that generation, it must show it. Else a leader that made the next rebalance itself is
    in doubt.
    """
    if leader is None or _failed(leader):
        return False
    if leader.holds is not None or any(answer.observer == "member" for answer in leader.synced):
        return True
    opened, join = now.opened, again.join if again is not None else None
    first = opened is not None and join is not None and join.ts is not None and opened.ts is not None and join.ts <= opened.ts
    reopened = first or (opened is not None and "re-joining" in (opened.reason or ""))
    return bool(leader.synced) and not leader.own_events and not reopened


def _seen_by(now: Round) -> Iterator[tuple[Clock, int, Event]]:
    """What was seen of the generation's join and sync phases: by whose clock, when (microseconds), and what."""
    for event in now.coordinator_events:
        if event.ts is not None:
            yield _COORDINATOR, event.ts, event
    for seat in now.seats.values():
        for event in seat.own_events:
            if event.ts is not None:
                yield seat.owner, event.ts, event


def _started(now: Round) -> dict[Clock, int]:
    """Per clock, the first sign of the generation: the leader decided then or later.

    A worker that stops work first may log nothing of the generation until that is done, so its clock says nothing.
    """
    first: dict[Clock, int] = {}
    stopping = _revoked(now)
    for clock, ts, event in _seen_by(now):
        if isinstance(event, (GenerationStarted, Joined, Sync, Synced)) and clock not in stopping:
            first[clock] = min(ts, first.get(clock, ts))
    return first


def _decided(now: Round) -> dict[Clock, int]:
    """Per clock, the first sign of the leader's assignment: the leader had decided by then."""
    first: dict[Clock, int] = {}
    for clock, ts, event in _seen_by(now):
        if isinstance(event, Synced) or (isinstance(event, Sync) and event.assignment is not None):
            first[clock] = min(ts, first.get(clock, ts))
    return first


def _offset(now: Round) -> object:
    """The config offset that the generation was assigned at, where a reader keeps it."""
    return next((s.extra["offset"] for seat in now.seats.values() for s in seat.synced if "offset" in s.extra), None)


_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?")
_CONFLUENT = {5: (2, 0), 6: (2, 6), 7: (3, 0), 8: (4, 0)}
"""Confluent Platform's major versions: Kafka's major version, and Kafka's minor version at Confluent's minor version 0."""

Release = tuple[int, int, int]


def release(version: str) -> Release | None:
    """Kafka's release in an AppInfoParser version: ``2.7.1``, or Confluent's ``7.3.1-ccs`` which is a 3.3."""
    match = _VERSION.match(version)
    if match is None:
        return None
    major, minor, patch = int(match[1]), int(match[2]), int(match[3] or 0)
    if major < 5:
        return major, minor, patch
    if major not in _CONFLUENT:
        return None
    kafka, offset = _CONFLUENT[major]
    return kafka, minor + offset, patch


def _oldest_release(now: Round) -> Release | None:
    """The oldest release that any worker of the generation is known to run."""
    seen = (e for seat in now.seats.values() for e in (seat.join, seat.joined, *seat.synced, *seat.own_events) if e is not None)
    versions = {v for event in seen if isinstance(v := event.extra.get("release"), str)}
    return min((r for r in map(release, versions) if r is not None), default=None)


def _excuse(now: Round, behaviour: str, *affected: tuple[Release, Release]) -> tuple[Severity | None, str | None]:
    """Severity and explanation where the release is in an ``affected`` range [from, to)."""
    running = _oldest_release(now)
    known = running is not None and any(first <= running < fixed for first, fixed in affected)
    return ("warning", behaviour) if known else (None, None)


def _spread(units: Mapping[Owner, Owns]) -> dict[str, tuple[Owner, Owner]]:
    """Per kind of work that differs by more than one: who has most, who has least."""
    wide: dict[str, tuple[Owner, Owner]] = {}
    for kind in ("connector", "task"):
        counts = {owner: _count(owns, kind) for owner, owns in units.items()}
        most, least = max(counts, key=lambda o: counts[o]), min(counts, key=lambda o: counts[o])
        if counts[most] - counts[least] > 1:
            wide[kind] = most, least
    return wide


def _count(owns: Owns, kind: str) -> int:
    return sum(unit.startswith(f"{kind}:") for unit in owns)


class ConnectRevokeBeforeReassign(Monitor):
    """The exact form: what any joined worker reports is given to nobody else, and nothing is both given and revoked."""

    rule: ClassVar[Rule] = Rule(
        id="connect-revoke-before-reassign",
        kip="KIP-415",
        promise="Work that a joined worker still reports, or is told to stop, is given to no other worker in that generation.",
        clause="KIP-415 proposed changes: revoke in one rebalance, reassign in the next",
        source="IncrementalCooperativeAssignor.performTaskAssignment",
        needs=("join", "synced"),
        unknown_when="no generation showed two workers and what they reported when they joined",
        exceptions=(
            "protocol default: workers stop everything before they join",
            "a worker that was never told to stop, but lost the coordinator, reports nothing",
            "work given to two workers is exclusive-assignment's to find",
        ),
        slice="resource",
    )

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        incremental = _incremental(now)
        if now.protocol_type != "connect" or incremental is False or not now.effective:
            return
        if incremental is None:
            yield Unknown("whether the group uses an incremental protocol was not captured")
            return
        before = _previous(now, past)
        workers = _workers(now)
        reports = {owner: _reported(seat, before) for owner, seat in workers.items()}
        revoked = _revoked(now)
        checked = bool(revoked)
        unknown = False
        wrong: dict[tuple[str, Owner, Owner], list[str]] = {}
        for unit, taker in sorted(_given_once(workers).items()):
            report = reports[taker.owner]
            if unit in revoked.get(taker.owner, {}):
                wrong.setdefault(("revoked", taker.owner, taker.owner), []).append(unit)
            elif report is None:
                unknown = True
            elif unit not in report:
                others = {owner: told for owner, told in reports.items() if owner != taker.owner}
                holder = next((owner for owner, told in others.items() if told is not None and unit in told), None)
                revoker = next((owner for owner, told in revoked.items() if unit in told), None)
                if holder is not None:
                    wrong.setdefault(("reported", holder, taker.owner), []).append(unit)
                elif revoker is not None:
                    wrong.setdefault(("revoked", revoker, taker.owner), []).append(unit)
                elif None in others.values():
                    unknown = True
                else:
                    checked = True
        for (cause, giver, taker), units in wrong.items():
            owned = (reports.get(giver) or {}).get(units[0])
            yield _overlap(now, cause, now.seats[giver], now.seats[taker], tuple(units), owned, revoked.get(giver, {}).get(units[0]))
        if len(workers) < 2:
            return
        if unknown:
            yield Unknown("what a worker reported when it joined was not captured")
        elif checked and not wrong:
            yield Held()


def _given_once(workers: Mapping[Owner, Seat]) -> dict[str, Seat]:
    """Each unit that is given to one worker, with that worker."""
    takers: dict[str, list[Seat]] = {}
    for seat in workers.values():
        for unit in {unit for grant in seat.grants for unit in grant.owns}:
            takers.setdefault(unit, []).append(seat)
    return {
        unit: seats[0] for unit, seats in takers.items() if len(seats) == 1 and seats[0].given is not None and unit in seats[0].given.owns
    }


def _overlap(now: Round, cause: str, giver: Seat, taker: Seat, units: tuple[str, ...], owned: Event | None, told: Event | None) -> Broken:
    steps: list[Argument] = []
    if cause == "reported":
        steps.append(shown(owned, f"{label(giver)} joined generation {now.generation} still running {names(units)}"))
    if told is not None:
        steps.append(shown(told, f"generation {now.generation} tells {label(giver)} to stop {names(units)}"))
    steps.append(
        shown(taker.given.event if taker.given else None, f"generation {now.generation} also gives {names(units)} to {label(taker)}")
    )
    return Broken(
        epoch=now.epoch,
        generation=now.generation,
        members=tuple(dict.fromkeys((giver.member, taker.member))),
        resources=units,
        message=f"Generation {now.generation} gives {names(units)} to {label(taker)} before {label(giver)} has stopped it.",
        argument=tuple(steps),
        advice="The work may run twice for a while. The assignor of the leader's release is at fault: upgrade the leader first.",
        detail=cause,
    )


@dataclass(frozen=True, slots=True)
class _Orphan:
    """A unit whose worker left before generation ``since``: what shows whose it was, that it left, and the config offset."""

    worker: str
    client: str | None
    owned: Event
    left: Event | None
    since: int
    offset: object


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One generation of a scheduled delay.

    ``delay`` is its own announcement, ``before`` the one in force when it began. ``orphans`` nobody reports, ``given``
    are those of them that a worker now gets, ``back`` those that a worker reports. ``again`` are the given ones that
    may be new work: of a connector that was deleted and created again. ``others`` is what else nobody reports and a
    worker now gets. ``doubt`` says why all that may be wrong. ``early`` says whether the announced time was not over.
    ``waiting`` are the workers that surely are the leader's candidates for the orphans; None if there may be others.
    """

    delay: int | None
    before: tuple[int, Event] | None
    orphans: Mapping[str, _Orphan]
    given: Mapping[str, tuple[Seat, Grant]]
    back: Mapping[str, tuple[Seat, _Orphan]]
    again: Owns
    others: Owns
    doubt: str | None
    early: bool | None
    waiting: tuple[Seat, ...] | None


@dataclass(slots=True)
class _Delayed:
    """Follows scheduled delays generation by generation: which work waits, until when, and who may get it."""

    settings: Settings
    announced: tuple[int, Event] | None = None
    orphans: dict[str, _Orphan] = field(default_factory=dict[str, _Orphan])
    deadlines: dict[Clock, int] = field(default_factory=dict[Clock, int])
    sure: set[Owner] = field(default_factory=set[Owner])
    possible: set[Owner] = field(default_factory=set[Owner])
    from_start: bool = False

    def advance(self, now: Round, past: Sequence[Round]) -> _Step | None:
        """The next generation; None if no delay is in force or announced."""
        before = _previous(now, past)
        told = _delay(now)
        delay = None if told is None else told[0]
        if self.announced is None and not (delay is not None and delay > 0):
            return None
        workers = _workers(now)
        reports = {owner: _reported(seat, before) for owner, seat in workers.items()}
        reported = {unit: workers[owner] for owner, report in reports.items() for unit in report or ()}
        known = {**self.orphans, **_left_behind(now, before, workers)}
        orphans = {unit: orphan for unit, orphan in known.items() if unit not in reported}
        given = {
            unit: (seat, seat.given)
            for seat in workers.values()
            if seat.given is not None
            for unit in sorted(seat.given.owns & orphans.keys())
        }
        cut = _interrupted(now, before) or self._unapplied(reported, before)
        doubt = cut
        if doubt is None and None in reports.values():
            doubt = "what a worker reported when it joined was not captured"
        step = _Step(
            delay=delay,
            before=self.announced,
            orphans=orphans,
            given=given,
            back={unit: (reported[unit], orphan) for unit, orphan in known.items() if unit in reported},
            again=frozenset(unit for unit in given if _perhaps_new(unit, orphans[unit], now, reported)),
            others=_shared_out(now) - orphans.keys() - reported.keys(),
            doubt=doubt,
            early=self._early(now),
            waiting=tuple(workers[o] for o in sorted(self.sure) if o in workers) if self._certain(workers) else None,
        )
        if told is None or told[0] <= 0:
            self._over()
            return step
        if cut is not None:
            self._over()
        elif self.announced is None:
            calm = None if before is None else _delay(before)
            self.from_start = calm is not None and calm[0] == 0
        self.announced = told
        self.orphans = {} if cut is not None else {unit: orphan for unit, orphan in orphans.items() if unit not in given}
        for clock, ts in _started(now).items():
            deadline = ts + told[0] * 1000
            self.deadlines[clock] = min(deadline, self.deadlines.get(clock, deadline))
        for owner, seat in workers.items():
            idle = _idle(seat, reports[owner])
            if idle is not False:
                self.possible.add(owner)
            if idle and orphans and doubt is None:
                self.sure.add(owner)
        return step

    def _over(self) -> None:
        self.announced, self.from_start = None, False
        for kept in (self.orphans, self.deadlines, self.sure, self.possible):
            kept.clear()

    def _certain(self, workers: Mapping[Owner, Seat]) -> bool:
        return self.from_start and not any(owner in workers for owner in self.possible - self.sure)

    def _early(self, now: Round) -> bool | None:
        skew = self.settings.clock_skew_ms * 1000
        early = {ts + skew < self.deadlines[clock] for clock, ts in _decided(now).items() if clock in self.deadlines}
        return all(early) if early else None

    def _unapplied(self, reported: Mapping[str, Seat], before: Round | None) -> str | None:
        """A revocation that was not carried out makes the leader forget who departed."""
        unexpected = reported.keys() - _shared_out(before) - self.orphans.keys()
        return "a worker still reports work that it was to give up" if unexpected else None


def _perhaps_new(unit: str, orphan: _Orphan, now: Round, reported: Mapping[str, Seat]) -> bool:
    """Whether the unit's connector may have been deleted and created again: then nobody waits for a worker to bring it back.

    The config offset tells. Without it: a connector that is created is started anew together with its tasks.
    """
    if orphan.since == now.generation:
        return False
    offset = _offset(now)
    if orphan.offset is not None and offset is not None:
        return orphan.offset != offset
    kind, _, name = unit.partition(":")
    connector = unit if kind == "connector" else f"connector:{name.rpartition('-')[0]}"
    return connector not in reported and connector in _shared_out(now)


def _left_behind(now: Round, before: Round | None, workers: Mapping[Owner, Seat]) -> dict[str, _Orphan]:
    """What workers of the generation before that are surely gone were running."""
    orphans: dict[str, _Orphan] = {}
    for owner, seat in () if before is None else _workers(before).items():
        left = before.removed.get(owner) or seat.gone if before is not None else None
        if owner in workers or seat.given is None or (left is None and not _all_known(now)):
            continue
        for unit in seat.given.owns:
            orphans[unit] = _Orphan(seat.member, seat.client, seat.given.event, left or now.started, now.generation, _offset(now))
    return orphans


def _idle(seat: Seat, report: Mapping[str, Event] | None) -> bool | None:
    """Whether the worker ran nothing before this generation gave it something new."""
    if report is None or (report and seat.given is None):
        return None
    return seat.given is None or not report.keys() & seat.given.owns


class LostWorkWithheld(Monitor):
    """The other half, that the work is given at all once the delay is over, is another rule's."""

    rule: ClassVar[Rule] = Rule(
        id="lost-work-withheld",
        kip="KIP-415",
        promise="The work of a departed worker is given to nobody before the announced delay is over, unless its worker is back with it.",
        clause="KIP-415 scheduled.rebalance.max.delay.ms",
        source="IncrementalCooperativeAssignor.handleLostAssignments",
        needs=("synced",),
        unknown_when="no worker with work was seen leaving under a delay, or the leader, a report or a common clock was not captured",
        exceptions=(
            "the leader changed, or missed a generation: its successor knows of nobody's departure",
            "scheduled.rebalance.max.delay.ms is 0",
            "nobody departed: a lost SyncGroup response is made good at once",
            "a departure within a short back-off delay waits only for the rest of it (3.4.0 on)",
            "a departure first seen when the delay is over",
            "a revocation that was not carried out: the leader starts from what is reported",
            "a connector that was deleted and created again",
        ),
        slice="group",
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.delayed = _Delayed(settings)

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        if now.protocol_type != "connect":
            return
        step = self.delayed.advance(now, past)
        if step is None:
            return
        if not step.given:
            if step.orphans and step.doubt is None and step.delay:
                yield Held()
            elif step.delay and not step.orphans and not _all_known(now):
                yield Unknown("who departed was not captured")
        elif step.doubt is not None:
            yield Unknown(step.doubt)
        elif step.delay is None:
            yield Unknown("the generation's delay was not captured")
        elif step.delay == 0 and step.early is None:
            yield Unknown("no clock shows both the announcement and the assignment")
        elif step.delay == 0 and not step.early:
            yield Held()
        elif _some_withheld(step) and step.given.keys() <= step.again:
            yield Unknown("a connector may have been deleted and created again, which makes its work new")
        else:
            yield self._broken(now, step, tuple(sorted(step.given.keys() - step.again or step.given)))

    def _broken(self, now: Round, step: _Step, units: tuple[str, ...]) -> Broken:
        seat, grant = step.given[units[0]]
        orphan = step.orphans[units[0]]
        announced = step.before or _delay(now)
        steps = [
            shown(orphan.owned, f"{names(units)} was {orphan.worker}'s"),
            shown(orphan.left, f"{orphan.worker} left, and no worker of generation {now.generation} reports it"),
        ]
        if announced is not None:
            steps.append(shown(announced[1], f"a delay of {announced[0]} ms was announced for departed work"))
        when = "with the delay still on" if step.delay else "before that time was over"
        steps.append(shown(grant.event, f"generation {now.generation} gives {units[0]} to {label(seat)} {when}"))
        takers = tuple(sorted({step.given[unit][0].member for unit in units}))
        return Broken(
            epoch=now.epoch,
            generation=now.generation,
            members=takers,
            resources=units,
            message=f"Generation {now.generation} gives {names(units)} of the departed {orphan.worker} to {' and '.join(takers)} before the scheduled delay is over.",
            argument=tuple(steps),
            advice="A worker that is only restarting loses its work and may still run it. Compare the leader's release and its scheduled.rebalance.max.delay.ms.",
            detail="under delay" if step.delay else "before the deadline",
        )


def _some_withheld(step: _Step) -> bool:
    """Whether part of the departed work isn't given. With nothing left to wait for, no delay would have been on before."""
    return bool(step.back) or len(step.given) < len(step.orphans)


class DelayBounded(Monitor):
    """The bound is the trace's own ``max_delay_ms`` where a worker's configuration was captured, else the setting."""

    rule: ClassVar[Rule] = Rule(
        id="delay-bounded",
        kip="KIP-415",
        promise="All workers of a generation are told one delay, between 0 and scheduled.rebalance.max.delay.ms.",
        clause="KIP-415 Assignment schema, scheduled.rebalance.max.delay.ms",
        source="IncrementalCooperativeAssignor.handleLostAssignments, ExtendedAssignment",
        needs=("synced",),
        unknown_when="no delay was captured",
        slice="group",
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.longest: list[tuple[Round, str | None, int, Event]] = []
        self.limit: tuple[int, Event] | None = None

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        if now.protocol_type != "connect":
            return
        for event in (s for seat in now.seats.values() for s in seat.synced):
            limit = event.extra.get("max_delay_ms")
            if type(limit) is int and (self.limit is None or limit > self.limit[0]):
                self.limit = limit, event
        delays = sorted(_delays(now), key=lambda d: d[1])
        if not delays:
            return
        (member, least, event), longest = delays[0], delays[-1]
        wrong = False
        if least != longest[1]:
            wrong = True
            yield Broken(
                epoch=now.epoch,
                generation=now.generation,
                members=tuple(sorted({m for m in (member, longest[0]) if m is not None})),
                resources=(),
                message=f"Generation {now.generation} tells {member} a delay of {least} ms and {longest[0]} one of {longest[1]} ms.",
                argument=(shown(event, f"{member}: delay {least} ms"), shown(longest[2], f"{longest[0]}: delay {longest[1]} ms")),
                detail="differs",
            )
        if least < 0:
            wrong = True
            yield Broken(
                epoch=now.epoch,
                generation=now.generation,
                members=(member,) if member else (),
                resources=(),
                message=f"Generation {now.generation} tells {member} a delay of {least} ms.",
                argument=(shown(event, f"{member}: delay {least} ms, and a delay can't be negative"),),
                detail="negative",
            )
        if not wrong:
            self.longest.append((now, *longest))

    def end(self, past: Sequence[Round]) -> Iterator[Outcome]:
        limit, where = self.limit or (self.settings.max_delay_ms, None)
        for now, member, delay, event in self.longest:
            if delay <= limit:
                yield Held()
                continue
            yield Broken(
                epoch=now.epoch,
                generation=now.generation,
                members=(member,) if member else (),
                resources=(),
                message=f"Generation {now.generation} announces a delay of {delay} ms to {member}; at most {limit} ms are allowed.",
                argument=(
                    shown(event, f"{member} is told a delay of {delay} ms"),
                    shown(where, f"scheduled.rebalance.max.delay.ms is {limit} ms" + ("" if where else ", as assumed for this check")),
                ),
                advice=None if where else "If the workers are configured with a longer delay, check again with that limit.",
                detail="limit",
            )


class DelayCountsDown(Monitor):
    """A remaining delay that grows is wrong by itself; one that shrinks too slowly takes a clock that saw both rounds."""

    rule: ClassVar[Rule] = Rule(
        id="delay-counts-down",
        kip="KIP-415",
        promise="From one generation to the next under one leader, the moment at which a scheduled delay ends never moves later.",
        clause="KIP-415 scheduled.rebalance.max.delay.ms: a later departure does not start the delay anew",
        source="IncrementalCooperativeAssignor.calculateDelay",
        needs=("synced",),
        unknown_when="no two successive generations under one leader announced a delay",
        exceptions=(
            "the delay drops to 0 when the departed work is back, deleted, or the delay is over",
            "the leader changed or missed a generation",
            "a back-off delay (3.4.0 on) that another rebalance ends",
        ),
        slice="group",
    )

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        before = _previous(now, past)
        if now.protocol_type != "connect" or before is None:
            return
        was, told = _delay(before), _delay(now)
        if was is None or told is None or was[0] <= 0 or told[0] <= 0:
            return
        why = _interrupted(now, before)
        if why is not None:
            yield Unknown(why)
            return
        later = self._later(now, told[0], before, was[0])
        if later is None:
            yield Held()
            return
        severity, relaxed = _excuse(now, "KAFKA-9184: releases 2.3.0 and 2.3.1 never end a delay", ((2, 3, 0), (2, 4, 0)))
        yield Broken(
            epoch=now.epoch,
            generation=now.generation,
            members=(now.leader,) if now.leader else (),
            resources=(),
            message=f"Leader {now.leader} moved the end of the scheduled delay later by {later} ms in generation {now.generation}.",
            argument=(
                shown(was[1], f"generation {before.generation} announced a delay of {was[0]} ms"),
                shown(told[1], f"generation {now.generation} announced {told[0]} ms: the end moved later by at least {later} ms"),
            ),
            severity=severity,
            relaxed=relaxed,
            advice="Departed work stays stopped for longer than scheduled.rebalance.max.delay.ms; upgrade the leader's release first.",
        )

    def _later(self, now: Round, delay: int, before: Round, was: int) -> int | None:
        """By how many milliseconds the end surely moved later, None if it didn't."""
        if delay > was:
            return delay - was
        decided = _decided(before)
        moved = [(ts - decided[clock]) // 1000 + delay - was for clock, ts in _started(now).items() if clock in decided]
        return min(moved) if moved and min(moved) > self.settings.clock_skew_ms else None


class ReturningWorkerRestored(Monitor):
    """A restarted worker is a new member: that it is the same one shows by its client.id."""

    rule: ClassVar[Rule] = Rule(
        id="returning-worker-restored",
        kip="KIP-415",
        promise="A worker that is back without work before the delay is over gets the departed work when it is over, sharing it only with workers that had none either.",
        clause="KIP-415 scheduled.rebalance.max.delay.ms: time for a worker to come back",
        source="IncrementalCooperativeAssignor.pickCandidateWorkerForReassignment",
        needs=("synced",),
        unknown_when="no worker was seen leaving and coming back under one delay by its client.id, or the leader or a report was not captured",
        exceptions=(
            "other workers without work share in turn",
            "a worker first seen when the delay is over: least-loaded workers get the work",
            "the leader changed",
            "a worker that kept its work running gets it back at once",
            "from 3.4.0 on some of it is revoked again in the same generation for balance, and given to nobody",
        ),
        slice="group",
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.delayed = _Delayed(settings)

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        if now.protocol_type != "connect":
            return
        step = self.delayed.advance(now, past)
        if step is None or step.before is None:
            return
        if any(_same(seat, orphan) and unit in (_given(now, seat.owner) or ()) for unit, (seat, orphan) in step.back.items()):
            yield Held()
        if step.delay != 0 or not step.given or step.early:
            return
        returned = _returned(now, step)
        if not returned:
            if any(seat.client is None for seat in _workers(now).values()) or any(o.client is None for o in step.orphans.values()):
                yield Unknown("client ids were not captured")
            return
        if step.doubt is not None:
            yield Unknown(step.doubt)
        elif step.waiting is None:
            yield Unknown("not every worker's report was captured since the delay began")
        elif not any(seat in step.waiting for seat in returned):
            yield Unknown("the worker was not seen back, without work, before the delay was over")
        else:
            yield self._judged(now, step, step.waiting, returned[0])

    def _judged(self, now: Round, step: _Step, waiting: tuple[Seat, ...], returned: Seat) -> Outcome:
        elsewhere = {unit: at for unit, at in step.given.items() if at[0] not in waiting}
        if elsewhere and len(elsewhere) < len(step.given) and elsewhere.keys() <= step.again:
            return Unknown("a connector may have been deleted and created again, which makes its work new")
        if not elsewhere and any(seat.given is None for seat in waiting):
            return Unknown("not every waiting worker's share was captured")
        revoked = _revoked(now)
        shares = {
            seat.owner: frozenset(u for u in step.orphans if step.given.get(u, (None,))[0] is seat or u in revoked.get(seat.owner, {}))
            for seat in waiting
        }
        if not elsewhere and not _spread(shares):
            return Held()
        if not elsewhere and step.others:
            return Unknown("other work was dealt out along with it")
        units = tuple(sorted(elsewhere or step.given))
        seat, grant = (elsewhere or step.given)[units[0]]
        orphan = step.orphans[units[0]]
        severity, relaxed = (None, None)
        if len(waiting) > 1:
            severity, relaxed = _excuse(
                now,
                "KAFKA-10413: releases before 2.6.2 and 2.7.1 give everything to the first worker without work",
                ((2, 3, 0), (2, 6, 2)),
                ((2, 7, 0), (2, 7, 1)),
            )
        why = "other workers get it" if elsewhere else "it is not shared evenly"
        return Broken(
            epoch=now.epoch,
            generation=now.generation,
            members=tuple(dict.fromkeys((returned.member, seat.member))),
            resources=units,
            message=f"{label(returned)} was back without work before the delay was over, yet in generation {now.generation} {why}: {names(units)} went to {label(seat)}.",
            argument=(
                shown(orphan.owned, f"{units[0]} was {orphan.worker}'s (client {orphan.client})"),
                shown(returned.join or returned.joined, f"{label(returned)} (client {returned.client}) was back, and ran nothing"),
                shown(grant.event, f"generation {now.generation} ends the delay and gives {units[0]} to {label(seat)}"),
            ),
            severity=severity,
            relaxed=relaxed,
            advice="The restarted worker stays idle and others carry its load; upgrade the leader's release first.",
            detail="elsewhere" if elsewhere else "uneven",
        )


def _same(seat: Seat, orphan: _Orphan) -> bool:
    return seat.client is not None and seat.client == orphan.client


def _returned(now: Round, step: _Step) -> list[Seat]:
    """Workers that run on a client whose earlier worker left the orphans."""
    return [seat for _, seat in sorted(_workers(now).items()) if any(_same(seat, orphan) for orphan in step.orphans.values())]


class ConnectBalanced(Monitor):
    """Connectors and tasks are levelled separately, never their sum, nor the tasks of one connector."""

    rule: ClassVar[Rule] = Rule(
        id="connect-balanced",
        kip="KIP-415",
        promise="When a rebalance has settled, no worker has two connectors more than another, nor two tasks more.",
        clause="KIP-415 proposed changes: balance by counts",
        source="IncrementalCooperativeAssignor.performLoadBalancingRevocations, EagerAssignor",
        needs=("synced",),
        unknown_when="no generation without delay and revocation showed the shares of two workers or more",
        exceptions=(
            "a delay is on, or something was revoked: the next generation assigns it",
            "the next generation follows at once",
            "connectors deleted meanwhile, of which a new leader does not know or which a returning worker still runs",
            "releases 2.3 to 3.3 may keep an imbalance (KAFKA-12495, KAFKA-10413): a warning where the release is known",
        ),
        slice="group",
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.held_back: tuple[Round, Broken] | None = None

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        if self.held_back is not None:
            yield self._settled(*self.held_back, now)
            self.held_back = None
        if now.protocol_type == "connect" and now.effective:
            outcome = self._judged(now, _previous(now, past))
            if isinstance(outcome, Broken):
                self.held_back = now, outcome
            elif outcome is not None:
                yield outcome

    def end(self, past: Sequence[Round]) -> Iterator[Outcome]:
        if self.held_back is not None:
            yield self.held_back[1]

    def _settled(self, then: Round, broken: Broken, now: Round) -> Outcome:
        ended = _decided(then)
        lasted = [ts - ended[clock] for clock, ts in _started(now).items() if clock in ended]
        if lasted and min(lasted) >= SETTLED_MS * 1000:
            return broken
        return Unknown("another generation followed at once")

    def _judged(self, now: Round, before: Round | None) -> Outcome | None:
        workers = _workers(now)
        if len(workers) < 2:
            return None
        if any(_failed(seat) for seat in workers.values()):
            return Unknown("a worker was refused its share")
        incremental = _incremental(now) is not False
        if incremental:
            told = _delay(now)
            if told is None:
                return Unknown("the generation's delay was not captured")
            if told[0] != 0 or _revoked(now):
                return None
            if not _revocations_shown(now):
                return Unknown("whether anything was revoked was not captured")
        shares = {owner: seat.given.owns for owner, seat in workers.items() if seat.given is not None}
        if not _all_known(now) or len(shares) < len(workers):
            return Unknown("not every worker's share was captured")
        wide = _spread(shares)
        if not wide:
            return Held()
        why = (_interrupted(now, before) or self._brought(now, before)) if incremental else None
        return Unknown(why) if why is not None else self._broken(now, workers, shares, wide)

    def _brought(self, now: Round, before: Round | None) -> str | None:
        """Work that a worker brings along from an earlier membership may be of a connector deleted meanwhile."""
        expected = _shared_out(before)
        for owner, seat in _workers(now).items():
            report = _reported(seat, before)
            if report is None and _given(before, owner) is None:
                return "what a new worker reported when it joined was not captured"
            if report is not None and report.keys() - expected:
                return "a worker brought work along that nobody was to run"
        return None

    def _broken(
        self, now: Round, workers: Mapping[Owner, Seat], shares: Mapping[Owner, Owns], wide: Mapping[str, tuple[Owner, Owner]]
    ) -> Broken:
        steps: list[Argument] = []
        says: list[str] = []
        for kind, pair in wide.items():
            for owner in pair:
                seat = workers[owner]
                count = f"{_count(shares[owner], kind)} {kind}s"
                steps.append(shown(seat.given.event if seat.given else None, f"{label(seat)} is to run {count}"))
                says.append(f"{label(seat)} with {count}")
        severity, relaxed = _excuse(
            now,
            "KAFKA-12495, KAFKA-10413: releases 2.3 to 3.3 may keep an imbalance until a worker joins or leaves",
            ((2, 3, 0), (3, 4, 0)),
        )
        return Broken(
            epoch=now.epoch,
            generation=now.generation,
            members=tuple(dict.fromkeys(workers[owner].member for pair in wide.values() for owner in pair)),
            resources=(),
            message=f"Generation {now.generation} settled out of balance: {', '.join(says)}.",
            argument=tuple(steps),
            severity=severity,
            relaxed=relaxed,
            advice="Releases from 3.4.0 on balance after every rebalance; before that, restarting the fullest worker after the delay may help.",
            detail=" ".join(sorted(wide)),
        )


MONITORS: tuple[type[Monitor], ...] = (
    ConnectRevokeBeforeReassign,
    LostWorkWithheld,
    DelayBounded,
    DelayCountsDown,
    ReturningWorkerRestored,
    ConnectBalanced,
)
