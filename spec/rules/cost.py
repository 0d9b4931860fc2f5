"""What rebalances cost. None of this is forbidden: the rules inform, with figures that an operator can act on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import ClassVar

from ..events import Event
from ..measures import Episode, Episodes, Pulse, Stop, Storm, pulse, stop, storms, streams
from ..results import Argument, Broken, Held, Outcome, Settings, Unknown, shown
from ..rounds import Round
from ..rule import Monitor, Rule
from .group_protocol import names


class RebalanceStorm(Monitor):
    """Held once per rebalance outside any storm."""

    rule: ClassVar[Rule] = Rule(
        id="rebalance-storm",
        kip="cost",
        promise="A group rebalances about as often as its members, topics or connectors change.",
        clause="KIP-429 motivation; KIP-345 motivation",
        source="GroupCoordinator.prepareRebalance, GroupMetadataManager.prepareRebalance",
        needs=("rebalance", "generation", "assignment"),
        unknown_when="no rebalance was seen to begin, or all of them were Kafka Streams'",
        exceptions=(
            "Kafka Streams, and probing rebalances (KIP-441)",
            "a cooperative group may take two generations for each change, Connect three",
            "fewer than five rebalances within five minutes",
        ),
        severity="info",
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.pulses: list[Pulse] = []
        self.exempt = False

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        beat = pulse(now, past[-1] if past else None)
        if beat is not None and not beat.exempt:
            self.pulses.append(beat)
        self.exempt |= beat is not None and beat.exempt
        yield from ()

    def end(self, past: Sequence[Round]) -> Iterator[Outcome]:
        if not self.pulses:
            yield Unknown("all rebalances were Kafka Streams' own" if self.exempt else "no rebalance was seen to begin")
        found = storms(self.pulses)
        calm = len(self.pulses) - sum(storm.rebalances for storm in found)
        if calm > 0:
            yield Held(calm)
        for storm in found:
            yield _broken_by(storm)


_WHY_STORM = {
    "rate": "that is one every ten seconds or faster",
    "repeats": "outside events account for far fewer",
    "busy": "the group spent more than half of five minutes rebalancing",
    "livelock": "the same members came back to the same partitions again and again with nothing outside behind it",
}


def _broken_by(storm: Storm) -> Broken:
    first, last = storm.first, storm.last
    span = f"generations {first.key[1]} to {last.key[1]}"
    peak = f", {storm.peak} within one minute at the peak" if storm.peak > 1 else ""
    reasons = "; ".join(f"{reason} ({count}x)" for reason, count in storm.reasons.items())
    return Broken(
        epoch=first.key[0],
        generation=first.key[1],
        members=(),
        resources=(),
        message=f"The group rebalanced {storm.rebalances} times in a row ({span}){peak}: {_WHY_STORM[storm.kind]}.",
        argument=(
            shown(first.event, f"the storm begins with the rebalance into generation {first.key[1]}"),
            shown(last.event, f"its last rebalance leads into generation {last.key[1]}"),
            Argument(f"{storm.rebalances} rebalances, {_count(storm.causes, 'outside event')} that may account for them{peak}"),
            Argument(f"reasons given: {reasons}" if reasons else "no reason was captured"),
        ),
        detail=storm.kind,
    )


class NeedlessMovement(Monitor):
    """One finding per coordinator epoch, at the first episode of it that moved too much; later ones add to its sums."""

    rule: ClassVar[Rule] = Rule(
        id="needless-movement",
        kip="cost",
        promise="From one settled generation to the next no more partitions change owner than a balanced assignment asks for.",
        clause="KIP-54 goals; KIP-415, incremental cooperative rebalancing",
        source="AbstractStickyAssignor, IncrementalCooperativeAssignor",
        needs=("assignment", "synced"),
        unknown_when="no two settled generations in a row had all shares captured, or subscriptions were not",
        exceptions=(
            "Kafka Streams places tasks by the state that a member has",
            "members that subscribe to different topics",
            "members that name a rack: a partition may move to be near its replica",
            "several changes of the members before the group settled",
            "a Connect worker that comes back under the same client.id is the same worker",
        ),
        severity="info",
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.episodes = Episodes()
        self.wasteful: list[Episode] = []
        self.settled = 0

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        episode = self.episodes.step(now)
        if episode is None:
            return
        self.settled += 1
        if len(episode.moved) <= episode.minimum:
            yield Held()
            return
        why = _undecided(episode)
        if why is not None:
            yield Unknown(why)
        else:
            self.wasteful.append(episode)

    def end(self, past: Sequence[Round]) -> Iterator[Outcome]:
        if self.settled == 0:
            yield Unknown("no two settled generations in a row had all shares captured")
        for _, group in groupby(self.wasteful, key=lambda e: e.after.epoch):
            yield _moved_too_much([*group])


def _undecided(episode: Episode) -> str | None:
    after = episode.after
    if streams(after):
        return "Kafka Streams places tasks by the state that a member has"
    if episode.subscribed is None:
        return "the members' subscriptions were not captured"
    if not episode.subscribed:
        return "members subscribe to different topics"
    if any(seat.join is not None and seat.join.rack for seat in after.seats.values()):
        return "members name racks: a partition may move to be near its replica"
    return "the members changed several times before the group settled" if episode.changes > 1 else None


def _moved_too_much(episodes: Sequence[Episode]) -> Broken:
    first = episodes[0]
    before, after, moved, minimum = first.before, first.after, first.moved, first.minimum
    members = tuple(sorted({after.seats[o].member for o, owns in (after.shares or {}).items() if owns & set(moved)}))
    message = f"{_count(len(moved))} changed owner from generation {before.generation} to {after.generation} where {minimum} had to: {names(moved)}."
    if len(episodes) > 1:
        total, needed = sum(len(e.moved) for e in episodes), sum(e.minimum for e in episodes)
        message += f" The same happened {len(episodes)} times: {total} moves in all where {needed} had to be."
    return Broken(
        epoch=after.epoch,
        generation=after.generation,
        members=members,
        resources=moved,
        message=message,
        argument=(
            shown(_shows(before), f"in generation {before.generation}: {_listing(before)}"),
            shown(_shows(after), f"in generation {after.generation}: {_listing(after)}"),
            Argument(f"{minimum} moves end balanced within one: what a departed member had, and what is above a fair share"),
            Argument(f"{len(moved)} moved: {names(moved)}"),
        ),
        advice=_stickier(after),
    )


def _stickier(now: Round) -> str | None:
    if now.protocol in ("range", "roundrobin"):
        return f"The {now.protocol} assignor does not look at who owned what: take CooperativeStickyAssignor, or StickyAssignor."
    if now.protocol == "default":
        return "Connect's eager protocol deals everything anew: set connect.protocol=sessioned on every worker."
    return None


def _shows(now: Round) -> Event | None:
    events: list[Event] = [*now.stored, *(p for p in now.proposals if p.assignment is not None)]
    return events[0] if events else next((s.given.event for s in now.seats.values() if s.given is not None), None)


def _listing(now: Round) -> str:
    shares = sorted((now.shares or {}).items())
    told = "; ".join(f"{now.seats[owner].member} has {names(owns)}" for owner, owns in shares[:6])
    return told if len(shares) <= 6 else f"{told}; and {len(shares) - 6} more members"


def _count(number: int, what: str = "resource") -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


class StopTheWorld(Monitor):
    """One finding per coordinator epoch, at its first such rebalance; later ones add to its sums."""

    rule: ClassVar[Rule] = Rule(
        id="stop-the-world",
        kip="cost",
        promise="A member that keeps a partition over a rebalance goes on owning it meanwhile.",
        clause="KIP-429 motivation; KIP-415 motivation",
        source="ConsumerCoordinator.onJoinPrepare, WorkerCoordinator.onJoinPrepare",
        needs=("assigned", "revoked"),
        unknown_when="no member's own events show two generations in a row, or only some members of a group whose protocol is not eager were watched",
        exceptions=("a partition found lost after an expired session", "a restart of the member between the two generations"),
        severity="info",
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.stops: list[tuple[Round, Stop]] = []
        self.watched = 0

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        seen = stop(now, past[-1] if past else None)
        if seen is None:
            return
        self.watched += 1
        if len(seen.stopped) < len(seen.kept):
            yield Held()
        elif seen.everyone or now.cooperative is False:
            self.stops.append((now, seen))
        else:
            yield Unknown("not every member's own events were captured")

    def end(self, past: Sequence[Round]) -> Iterator[Outcome]:
        if self.watched == 0:
            yield Unknown("no member's own events show something kept over two generations in a row")
        for _, group in groupby(self.stops, key=lambda s: s[0].epoch):
            yield _stopped([*group])


def _stopped(stops: Sequence[tuple[Round, Stop]]) -> Broken:
    now, first = stops[0]
    members = tuple(sorted({now.seats[owner].member for owner in first.kept.values()}))
    resources = tuple(sorted(first.kept))
    message = f"In the rebalance into generation {now.generation} members gave up everything that they kept: {names(resources)}."
    if len(stops) > 1:
        message += f" So it went in {len(stops)} rebalances, {sum(len(s.stopped) for _, s in stops)} needless stops in all."
    resource = resources[0]
    owner = now.seats[first.kept[resource]]
    taken = owner.taken.get(resource)
    return Broken(
        epoch=now.epoch,
        generation=now.generation,
        members=members,
        resources=resources,
        message=message,
        argument=(
            shown(first.stopped[resource], f"{owner.member} gave {resource} up for the rebalance"),
            shown(taken, f"{owner.member} owned it again in generation {now.generation}"),
            Argument(f"so it went with all that {_count(len(members), 'member')} kept: {_count(len(resources))}"),
        ),
        advice=_cooperative(now),
    )


def _cooperative(now: Round) -> str | None:
    if now.protocol == "default":
        return "Set connect.protocol=sessioned on every worker."
    if now.cooperative is False:
        return "Move to CooperativeStickyAssignor: first beside the old assignor on every member, then alone."
    return None


MONITORS: tuple[type[Monitor], ...] = (RebalanceStorm, NeedlessMovement, StopTheWorld)
