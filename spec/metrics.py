"""Figures of one group over a whole trace, and what its operator might change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .events import NONE, Assigned, Event, Expire, Heartbeat, Join, Joined, Leave, Rebalance, Sync, Synced
from .measures import SECOND, Episodes, Pulse, Unowned, Zombies, delay_ms, normal_reason, peak_per_minute, pulse, stop, storms
from .results import Metrics, Settings
from .rounds import Identities, Round, identities

MOST_REASONS = 20
MOST_ADVICE = 6
BACK_SOON = 60 * SECOND
RESTART = 300 * SECOND
LONG_DELAY_MS = 10_000
FEW = 3
"""How often something must have happened before it is worth advice."""


def metrics(events: Sequence[Event], history: Sequence[Round], settings: Settings, who: Identities | None = None) -> dict[str, object]:
    """Figures of one group, ready for JSON. None stands for what the trace can't show.

    Counts: ``generations`` seen, ``rebalances`` entered, of them ``probing_rebalances`` (Streams), ``reasons``,
    ``members_seen`` (slots), ``members_max`` in one generation, ``storms``, ``zombie_windows``. Movement, from one settled
    generation to the next: ``partitions_moved``, ``partitions_moved_minimum`` (None unless it is known for all of them),
    ``rounds_to_converge_max``. ``partition_seconds_unowned`` adds up the time between owners, resource by resource;
    ``stop_the_world_share`` is the share of kept resources that members gave up in between, averaged over rebalances;
    ``zombie_seconds_longest`` compares two clocks, so ``clock_skew_ms`` is its error; ``delay_ms_max`` is Connect's.
    """
    who = who or identities(events)
    pulses = _pulses(history)
    counted = [p for p in pulses if not p.probing]
    unfinished = _unfinished(events, history)
    episodes, unowned, zombies = Episodes(), Unowned(), Zombies(settings.clock_skew_ms)
    settled = [e for e in map(episodes.step, history) if e is not None]
    for now in history:
        unowned.step(now)
        zombies.step(now)
    stops = [s for now, before in _pairs(history) if (s := stop(now, before)) is not None]
    delays = [e.delay_ms for e in events if isinstance(e, (Sync, Synced)) and e.delay_ms is not None]
    bounded = all(e.subscribed for e in settled)
    return {
        "generations": sum(now.generation > 0 for now in history),
        "rebalances": len(counted) + unfinished,
        "probing_rebalances": len(pulses) - len(counted),
        "reasons": _reasons(events, who),
        "members_seen": len({who.owner(e.member) for e in events if e.member} | {o for r in history for o in r.seats}),
        "members_max": max((len(listed) for now in history if (listed := now.owners)), default=None),
        "partition_seconds_unowned": unowned.seconds,
        "partitions_moved": sum(len(e.moved) for e in settled) if settled else None,
        "partitions_moved_minimum": sum(e.minimum for e in settled) if settled and bounded else None,
        "rounds_to_converge_max": max((e.rounds for e in settled), default=None),
        "stop_the_world_share": sum(len(s.stopped) / len(s.kept) for s in stops) / len(stops) if stops else None,
        "storms": len(storms(pulses)),
        "rebalances_per_minute_peak": peak_per_minute(counted),
        "zombie_windows": len(zombies.found),
        "zombie_seconds_longest": max((z.seconds for z in zombies.found if z.seconds is not None), default=None),
        "delay_ms_max": max(delays, default=None),
    }


def _pairs(history: Sequence[Round]) -> Iterator[tuple[Round, Round | None]]:
    yield from zip(history, (None, *history), strict=False)


def _pulses(history: Sequence[Round]) -> list[Pulse]:
    return [p for now, before in _pairs(history) if (p := pulse(now, before)) is not None]


def _unfinished(events: Iterable[Event], history: Sequence[Round]) -> int:
    """Rebalances that were entered and led to no generation in this trace."""
    known = {r.key for r in history}
    seen = (e for e in events if isinstance(e, Rebalance) and e.observer == "coordinator")
    began = {(e.epoch, e.generation) for e in seen if e.generation is not None and e.generation >= 0}
    return sum(1 for epoch, generation in began if not {(epoch, generation + 1), (epoch + 1, generation + 1)} & known)


def _reasons(events: Sequence[Event], who: Identities) -> dict[str, int]:
    """The most frequent reasons, the rest summed up as ``other``."""
    known = who.clients.keys() | who.instances.keys() | {e.member for e in events if e.member}
    told = (e.reason for e in events if isinstance(e, Rebalance) and e.observer == "coordinator")
    counted = Counter(normal_reason(reason, known) for reason in told if reason)
    most = sorted(counted.items(), key=lambda c: (-c[1], c[0]))
    rest = sum(count for _, count in most[MOST_REASONS:])
    return dict(most[:MOST_REASONS]) | ({"other": rest} if rest else {})


# Advice.


def advice(events: Sequence[Event], history: Sequence[Round], measured: Metrics, who: Identities | None = None) -> tuple[str, ...]:
    """What an operator might change, most pressing first: only where the trace shows why, and naming the setting."""
    seen = _Comings.of(events, who or identities(events))
    types = {r.protocol_type for r in history} - {None}
    connect = "connect" in types if types else bool(seen.came) and all(map(_WORKER.match, seen.came))
    said = (
        _consumer_per_read(seen, measured, connect),
        _poll_timeout(events, connect),
        _session_timeout(events, seen),
        _rolling_restarts(seen, connect),
        _eager(history, connect),
        _connect_delay(history, seen),
        _metadata(events, connect),
    )
    return tuple(text for text in said if text is not None)[:MOST_ADVICE]


_WORKER = re.compile(r"connect-(?:[0-9]+|.*:[0-9]+)$")
"""What a Connect worker is called unless its client.id is set: a broker's log does not show the protocol."""
_COUNTER = re.compile(r"-[0-9]+$")
"""A Java process numbers its consumers."""
_UUID_TAIL = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")


@dataclass(slots=True)
class _Comings:
    """Who came and went under each client.id: times in microseconds, in the order of the clock."""

    who: Identities
    came: dict[str, list[tuple[int, str]]] = field(default_factory=dict[str, list[tuple[int, str]]])
    left: dict[str, list[tuple[int, str]]] = field(default_factory=dict[str, list[tuple[int, str]]])
    expired: dict[str, list[tuple[int, str]]] = field(default_factory=dict[str, list[tuple[int, str]]])
    rejected: dict[str, int] = field(default_factory=dict[str, int])
    """Member ids that still spoke after the coordinator had dropped them, and when."""

    @classmethod
    def of(cls, events: Sequence[Event], who: Identities) -> _Comings:
        seen = cls(who)
        first: dict[str, int] = {}
        for event in events:
            if not event.member or event.ts is None:
                continue
            if isinstance(event, (Expire, Leave)):
                if isinstance(event, Expire) and event.reason != "session":
                    continue
                gone = seen.expired if isinstance(event, Expire) else seen.left
                if not isinstance(event, Leave) or event.error == NONE:
                    gone.setdefault(seen.client(event.member), []).append((event.ts, event.member))
            elif isinstance(event, (Heartbeat, Joined, Synced)) and event.error == "UNKNOWN_MEMBER_ID":
                seen.rejected[event.member] = max(event.ts, seen.rejected.get(event.member, event.ts))
            elif _arrives(event):
                first[event.member] = min(event.ts, first.get(event.member, event.ts))
        for member, ts in first.items():
            seen.came.setdefault(seen.client(member), []).append((ts, member))
        for table in (seen.came, seen.left, seen.expired):
            for times in table.values():
                times.sort()
        return seen

    def client(self, member: str) -> str:
        """The slot's stable name: group.instance.id, else client.id, else the member id without its random tail."""
        owner = self.who.owner(member)
        return owner if owner != member else self.who.clients.get(member) or _UUID_TAIL.sub("", member)

    def dynamic(self, client: str) -> bool:
        return not client.startswith("instance:")

    def back(self, gone: Mapping[str, list[tuple[int, str]]], within: int) -> dict[str, list[int]]:
        """Per client, how long it took (microseconds) until a new member of it came, where that was soon enough."""
        found: dict[str, list[int]] = {}
        for client, times in sorted(gone.items()):
            arrivals, at = self.came.get(client, []), 0
            for ts, member in times:
                while at < len(arrivals) and (arrivals[at][0] <= ts or arrivals[at][1] == member):
                    at += 1
                if at < len(arrivals) and arrivals[at][0] - ts <= within:
                    found.setdefault(client, []).append(arrivals[at][0] - ts)
                    at += 1
        return found

    def stays(self, client: str) -> list[int]:
        """How long (microseconds) each member of the client stayed that was seen to come and to leave."""
        arrived = {member: ts for ts, member in self.came.get(client, [])}
        return [ts - arrived[member] for ts, member in self.left.get(client, []) if ts > arrived.get(member, ts)]


def _arrives(event: Event) -> bool:
    if isinstance(event, Rebalance):
        return (event.reason or "").lower().startswith("adding new member")
    return isinstance(event, (Join, Joined, Assigned))


def _consumer_per_read(seen: _Comings, measured: Metrics, connect: bool) -> str | None:
    if connect or not measured.get("storms"):
        return None
    short: Counter[str] = Counter()
    for client in sorted(seen.left):
        short[_COUNTER.sub("", client)] += sum(1 for stay in seen.stays(client) if stay <= BACK_SOON)
    client, times = max(short.items(), key=lambda c: c[1], default=("", 0))
    if times < 5:
        return None
    return (
        f"Client {client} joined and left within a minute {times} times, and every time the group rebalanced: "
        "keep one consumer open instead of opening one for each read (or use assign() instead of subscribe())."
    )


def _poll_timeout(events: Sequence[Event], connect: bool) -> str | None:
    told = {e.member or e.client or e.instance: e for e in events if isinstance(e, Leave) and "poll timeout" in (e.reason or "")}
    if not told:
        return None
    times = sum(1 for e in events if isinstance(e, Leave) and "poll timeout" in (e.reason or ""))
    who = f"{len(told)} member{_s(len(told))} left because poll() was not called in time ({times} time{_s(times)})"
    if connect:
        return f"{who}: raise rebalance.timeout.ms, or find what blocks the workers."
    return f"{who}: raise max.poll.interval.ms, or lower max.poll.records so that a batch is done in time."


def _session_timeout(events: Sequence[Event], seen: _Comings) -> str | None:
    gone = {m: ts for times in seen.expired.values() for ts, m in times}
    alive = sorted(m for m, ts in gone.items() if seen.rejected.get(m, ts) > ts)
    back = [t for times in seen.back(seen.expired, BACK_SOON).values() for t in times]
    timeouts = [e.session_timeout_ms for e in events if isinstance(e, Join) and e.session_timeout_ms is not None]
    now = f" (now {min(timeouts)} ms)" if timeouts else ""
    if alive:
        return (
            f"{len(alive)} member{_s(len(alive))} whose session had expired still sent requests, so the process was alive: raise session.timeout.ms{now} "
            "above its longest pause, with heartbeat.interval.ms at a third of it or less."
        )
    if back:
        return (
            f"{len(back)} session{_s(len(back))} expired whose client was back within {max(back) // SECOND + 1} s. If its process had paused, "
            f"raise session.timeout.ms{now} above the pause, with heartbeat.interval.ms at a third of it or less; "
            "if it was killed, close consumers on shutdown or set group.instance.id."
        )
    return None


def _rolling_restarts(seen: _Comings, connect: bool) -> str | None:
    if connect:
        return None
    back = {c: times for c, times in seen.back(seen.left, RESTART).items() if seen.dynamic(c)}
    slow = {c: times for c, times in back.items() if all(stay > BACK_SOON for stay in seen.stays(c))}
    if sum(map(len, slow.values())) < 2:
        return None
    longest = max(t for times in slow.values() for t in times) // SECOND + 1
    return (
        f"{sum(map(len, slow.values()))} times a client left and was back within {longest} s, which takes up to two rebalances each: set "
        f"group.instance.id on every member and session.timeout.ms above {longest} s, so that a restart keeps its partitions."
    )


def _eager(history: Sequence[Round], connect: bool) -> str | None:
    stops = [s for now, before in _pairs(history) if now.cooperative is False and (s := stop(now, before)) is not None and s.stopped]
    given_up = sum(len(s.stopped) for s in stops)
    if not stops or given_up < FEW:
        return None
    protocol = next(r.protocol for r in history if r.cooperative is False)
    what = f"{given_up} times a member gave up something that it got straight back ({len(stops)} rebalance{_s(len(stops))}, {protocol})"
    if connect:
        return f"{what}: set connect.protocol=sessioned on every worker."
    return f"{what}: set partition.assignment.strategy to CooperativeStickyAssignor, first beside the old assignor and then alone."


def _connect_delay(history: Sequence[Round], seen: _Comings) -> str | None:
    """A delay that ran out just before a worker came, or although nobody did (as far as members were listed)."""
    arrivals = sorted(ts for times in seen.came.values() for ts, _ in times)
    late: list[int] = []
    waited: list[tuple[int, bool]] = []
    started: tuple[int, int, frozenset[str] | None] | None = None
    for now in history:
        delay = delay_ms(now)
        if delay >= LONG_DELAY_MS and now.first_ts is not None and started is None:
            started = now.first_ts, delay, now.owners
        elif delay == 0 and started is not None:
            begun, length, before = started
            started, after = None, now.owners
            deadline = begun + length * 1000
            came = after - before if before is not None and after is not None else None
            if now.first_ts is None or now.first_ts < deadline - SECOND or came:
                continue
            soon = [ts - deadline for ts in arrivals if 0 < ts - deadline <= BACK_SOON]
            if soon:
                late.append(min(soon))
            else:
                waited.append((length, came is not None))
    if late:
        return (
            f"A worker came back {min(late) // SECOND + 1} s after the delay had run out and its work was dealt out: raise "
            "scheduled.rebalance.max.delay.ms above the time that a worker takes to restart."
        )
    if waited:
        alone = " although no worker came back" if all(known for _, known in waited) else ""
        return (
            f"Work that had lost its worker stood still for a whole delay of {max(waited)[0] // 1000} s{alone} ({len(waited)} time{_s(len(waited))}): "
            "lower scheduled.rebalance.max.delay.ms to the time that a worker takes to restart."
        )
    return None


def _metadata(events: Sequence[Event], connect: bool) -> str | None:
    told = [e.reason.lower() for e in events if isinstance(e, Rebalance) and e.reason]
    changed = sum(1 for r in told if "cached metadata has changed" in r)
    leader = sum(1 for r in told if r.startswith("leader") and "joining group" in r)
    if changed >= FEW and not connect:
        return (
            f"{changed} rebalances began because the leader's topic metadata had changed: create topics and partitions ahead, subscribe by name "
            "rather than by pattern, or raise metadata.max.age.ms so that several changes make one rebalance."
        )
    if leader >= FEW:
        why = "connector configurations changed" if connect else "the topics it subscribes to changed, or it was asked to"
        ask = "change connectors in one go where you can" if connect else "look at metadata.max.age.ms and at what creates topics"
        return f"{leader} rebalances began because the leader joined again, which it does when {why}: {ask}."
    return None


def _s(count: int) -> str:
    return "" if count == 1 else "s"
