"""How Connect's leader shares out work: revoke first, reassign in the next generation, wait for departed workers.

Source: KIP-415 and IncrementalCooperativeAssignor. Two behaviour classes of Kafka are reproduced, ``K6`` (3.5.2, 3.6.1 and
later) and ``K4`` (2.6.2 to 3.3), hash order included. ``mended`` is K6 without its known defects. Times are milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, NamedTuple

from ...spec.events import Resources
from ..messages import Metadata, Share
from .java_order import hash_order
from .units import KINDS, Connectors, Kind, in_order, of_kind, units_of

Release = Literal["K4", "K6", "mended"]

KNOWN_DEFECTS: Mapping[Release, frozenset[str]] = MappingProxyType(
    {
        "K4": frozenset({"new-leader-keeps-deleted-work", "duplicates-hide-deletions", "maximum-delay-0-withholds"}),
        "K6": frozenset(
            {
                "new-leader-keeps-deleted-work",
                "idle-departure-starts-delay",
                "dealt-and-revoked-counts-as-lost",
                "rebalance-cancels-backoff",
            }
        ),
        "mended": frozenset(),
    }
)
"""What each class does wrong by itself; the names are those of `mutations.MUTATIONS`."""

BACKOFF_FACTOR = 40


class Header(NamedTuple):
    """What travels with every share (``Share.user_data``): who led, at which config offset, and whether that failed."""

    leader: str
    offset: int
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """What a worker remembers of the generations that it led; it dies with the worker, and nobody else has it.

    ``previous`` is the work that was placed or lost, ``revoked`` what the last generation told workers to stop.
    ``deadline`` ends the delay, 0 without one. ``leveled`` says that the previous generation revoked for balance
    (K4: that this one must not), ``in_a_row`` counts such generations.
    """

    generation: int = -1
    members: frozenset[str] = frozenset()
    previous: frozenset[str] = frozenset()
    revoked: frozenset[str] = frozenset()
    delay: int = 0
    deadline: int = 0
    candidates: tuple[str, ...] = ()
    leveled: bool = False
    in_a_row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How to lead: the behaviour class, scheduled.rebalance.max.delay.ms, and defects besides those of the class."""

    release: Release = "K6"
    max_delay_ms: int = 300_000
    defects: frozenset[str] = frozenset()

    def has(self, defect: str) -> bool:
        return defect in self.defects or defect in KNOWN_DEFECTS[self.release]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One generation as its leader sees it: what `assign` is given, but for the leader's own memory."""

    members: tuple[tuple[str, Metadata], ...]
    connectors: Connectors
    generation: int
    completed: int
    now: int
    header: Header
    max_delay_ms: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What travels to the workers: what each is to start and to stop, and the delay that all are told."""

    assigned: Mapping[str, Resources]
    revoked: Mapping[str, Resources]
    delay_ms: int


Lead = Callable[[Asked, tuple[Asked, ...]], Decision]
"""A leader's assignor from elsewhere: what it is asked now, and what this process has asked it before, oldest first.

Raises `LeadFailed`.
"""


class LeadFailed(RuntimeError):
    """The exception that leaves ``performAssignment``: the worker's herder stops."""


def follow(asked: Asked, decision: Decision) -> tuple[tuple[str, Share], ...]:
    """Every member's share after a decision from elsewhere."""
    shares: list[tuple[str, Share]] = []
    for member, told in asked.members:
        started, stops = decision.assigned.get(member, ()), decision.revoked.get(member, ())
        kept = tuple(unit for unit in told.owned if unit not in stops and unit not in started)
        share = Share((*started, *kept), started, stops, decision.delay_ms, asked.header)
        shares.append((member, share))
    return tuple(shares)


Work = dict[str, list[str]]
"""Units per member, members in Java's hash order; changed in place while one generation is computed."""


def assign(
    leader: Leader,
    members: Sequence[tuple[str, Metadata]],
    connectors: Connectors,
    *,
    generation: int,
    completed: int,
    now: int,
    header: Header,
    policy: Policy,
) -> tuple[Leader, tuple[tuple[str, Share], ...]]:
    """The leader's memory and every member's share after one generation.

    ``completed`` is the last generation that the leader itself finished, -1 if none. Members report their work as
    ``Metadata.owned``, in wire order.
    """
    names = hash_order([member for member, _ in members])
    metadata = dict(members)
    reported: Work = {member: list(metadata[member].owned) for member in names}
    active = frozenset(unit for units in reported.values() for unit in units)
    configured = units_of(connectors)
    trusted = leader.generation == completed or policy.has("sync-failure-is-a-departure")
    previous = leader.previous if trusted else frozenset[str]()
    leveled = leader.leveled
    if leader.revoked & active:
        previous = active
        leveled = leveled and policy.release != "K4"
    deleted = previous - configured if policy.has("new-leader-keeps-deleted-work") else (previous | active) - configured
    lost = previous - active - deleted
    created = configured - previous - active

    revoke = _must_stop(reported, deleted, policy)
    keeps = _without(reported, deleted) if policy.release == "K4" else _without(reported, deleted | _all(revoke))
    if policy.has("one-holder-keeps"):
        keeps = {member: [unit for unit in units if unit not in revoke[member]] for member, units in reported.items()}
    dealt = {member: list(units) for member, units in keeps.items()}
    memory, reassigned = _lost_work(replace(leader, leveled=leveled), lost, dealt, now, policy)
    if policy.release == "K4":
        memory, leveling = _level_for_idle(memory, active, keeps, policy)
    else:
        memory, leveling = _level_always(memory, configured, dealt, now, policy)
        dealt = {member: [unit for unit in units if unit not in leveling.get(member, ())] for member, units in dealt.items()}
    for member, units in leveling.items():
        revoke[member] += [unit for unit in units if unit not in revoke[member]]
    fresh = [*in_order(created), *in_order(reassigned)]
    if policy.has("revoked-work-reassigned-at-once"):
        fresh += in_order(_all(leveling))
    for kind in KINDS:
        _place(kind, of_kind(kind, fresh), dealt)

    stopped = _all(revoke)
    held = lost if policy.has("dealt-and-revoked-counts-as-lost") else lost - _all(leveling)
    memory = replace(
        memory,
        generation=generation,
        members=frozenset(names),
        previous=(_all(dealt) - stopped) | held,
        revoked=stopped,
    )
    delays = _announced(memory.delay, [member for member, _ in members], policy)
    shares: list[tuple[str, Share]] = []
    for member, told in metadata.items():
        had, stops = frozenset(told.owned) - deleted, tuple(revoke[member])
        started = tuple(unit for unit in dealt[member] if unit not in had)
        kept = tuple(unit for unit in told.owned if unit not in stops)
        share = Share(resources=(*started, *kept), started=started, revoked=stops, delay_ms=delays[member], user_data=header)
        shares.append((member, share))
    return memory, tuple(shares)


def assign_eagerly(members: Sequence[tuple[str, Metadata]], connectors: Connectors, header: Header) -> tuple[tuple[str, Share], ...]:
    """Protocol version 0: everything anew, connectors and then tasks in turn to the members by id. Source: EagerAssignor."""
    ranked = sorted(member for member, _ in members)
    share: Work = {member: [] for member in ranked}
    for turn, unit in enumerate(in_order(units_of(connectors))):
        share[ranked[turn % len(ranked)]].append(unit)
    return tuple((member, Share(resources=tuple(share[member]), user_data=header)) for member, _ in members)


def refuse(members: Sequence[tuple[str, Metadata]], header: Header) -> tuple[tuple[str, Share], ...]:
    """CONFIG_MISMATCH: the leader's configuration lags behind, so everybody keeps what it has and rejoins."""
    failed = header._replace(failed=True)
    return tuple((member, Share(resources=told.owned, started=(), revoked=(), delay_ms=0, user_data=failed)) for member, told in members)


def _must_stop(reported: Work, deleted: frozenset[str], policy: Policy) -> Work:
    """Per member, what it runs that is deleted, or that another member runs as well: all of them lose it."""
    holders: dict[str, list[str]] = {}
    for member, units in reported.items():
        for unit in units:
            holders.setdefault(unit, []).append(member)
    twice = {unit for unit, running in holders.items() if len(running) > 1}
    if policy.has("duplicates-kept"):
        twice.clear()
    revoke: Work = {}
    for member, units in reported.items():
        double = [unit for unit in units if unit in twice]
        if policy.has("one-holder-keeps"):
            double = [unit for unit in double if holders[unit][0] != member]
        hidden = policy.has("duplicates-hide-deletions") and double
        revoke[member] = double if hidden else [unit for unit in units if unit in deleted or unit in double]
    return revoke


def _lost_work(leader: Leader, lost: frozenset[str], dealt: Work, now: int, policy: Policy) -> tuple[Leader, frozenset[str]]:
    """Whether departed work goes on waiting. Deals it to workers that wait for it, or returns it, if its time is over.

    Source: IncrementalCooperativeAssignor.handleLostAssignments.
    """
    nothing: frozenset[str] = frozenset()
    calm = replace(leader, delay=0, deadline=0, candidates=())
    departed = not leader.members <= dealt.keys()
    if not lost and (policy.release == "K4" or not leader.leveled):
        return (leader if policy.has("delay-never-reset") else calm), nothing
    if leader.deadline <= 0 and not lost and not policy.has("idle-departure-starts-delay"):
        return leader, nothing
    if leader.deadline <= 0 and not departed and not policy.has("sync-failure-is-a-departure"):
        return leader, lost
    if policy.max_delay_ms == 0 and not policy.has("maximum-delay-0-withholds"):
        return leader, lost
    if 0 < leader.deadline <= now:
        if policy.release != "K4":
            calm = replace(calm, leveled=False)
        return calm, _deal(lost, [member for member in leader.candidates if member in dealt], dealt, policy)
    idle = hash_order([member for member, units in dealt.items() if not units])
    backoff = leader.leveled and policy.release != "K4"
    if now < leader.deadline and not _restarts(lost, backoff, departed, policy):
        delay = min(leader.deadline - now, policy.max_delay_ms)
    else:
        delay = policy.max_delay_ms * (2 if policy.has("delay-doubled") else 1)
    if policy.release != "K4":
        leader = replace(leader, leveled=leader.leveled and not lost and not policy.has("rebalance-cancels-backoff"))
    waiting = replace(leader, delay=delay, deadline=now + delay, candidates=tuple(dict.fromkeys((*leader.candidates, *idle))))
    return waiting, lost if policy.has("lost-work-dealt-under-delay") else nothing


def _restarts(lost: frozenset[str], backoff: bool, departed: bool, policy: Policy) -> bool:
    """Whether a pending delay starts anew, which it never should.

    Work lost during a back-off therefore waits only for the rest of the back-off: one promise is kept, the other is void.
    """
    if policy.has("departure-restarts-backoff") and backoff and lost:
        return True
    return policy.has("departure-restarts-delay") and departed


def _deal(lost: frozenset[str], candidates: list[str], dealt: Work, policy: Policy) -> frozenset[str]:
    """Deals departed work in turn to the workers that came without any while it waited; returns what nobody waits for."""
    if policy.has("lost-work-dealt-to-others"):
        candidates = [member for member in dealt if member not in candidates]
    if policy.has("first-candidate-takes-all"):
        candidates = candidates[:1]
    if not candidates:
        return lost
    for kind in KINDS:
        for turn, unit in enumerate(of_kind(kind, in_order(lost))):
            dealt[candidates[turn % len(candidates)]].append(unit)
    return frozenset()


def _level_always(leader: Leader, configured: frozenset[str], dealt: Work, now: int, policy: Policy) -> tuple[Leader, Work]:
    """What to revoke for balance, K6: always at once, but the second time in a row only after a back-off."""
    if leader.delay > 0:
        return leader, {}
    surplus = _surplus(configured, dealt) if any(dealt.values()) and configured else {}
    if policy.has("levels-down-to-floor"):
        surplus = _floor_surplus(configured, dealt)
    if not surplus:
        return replace(leader, leveled=False, in_a_row=0) if leader.leveled else leader, {}
    if not leader.leveled:
        return replace(leader, leveled=True), surplus
    if policy.has("never-levels-twice"):
        return replace(leader, leveled=False), {}
    leader = replace(leader, in_a_row=leader.in_a_row + 1)
    delay = backoff_ms(leader.in_a_row, policy.max_delay_ms)
    return (replace(leader, delay=delay, deadline=now + delay), {}) if delay else (leader, surplus)


def backoff_ms(times: int, max_delay_ms: int) -> int:
    """How long to wait before the ``times``-th revocation in a row. Source: ExponentialBackoff."""
    if max_delay_ms <= 1:
        return max_delay_ms
    return min(int(math.pow(BACKOFF_FACTOR, min(times, math.log(max_delay_ms) / math.log(BACKOFF_FACTOR)))), max_delay_ms)


def _surplus(configured: frozenset[str], dealt: Work) -> Work:
    """Per member the units beyond its part of a balanced assignment, from the front of its list; each kind by itself."""
    revoke: Work = {}
    for kind in KINDS:
        counts = {member: len(of_kind(kind, units)) for member, units in dealt.items()}
        least, extras = divmod(len(of_kind(kind, configured)), len(dealt))
        if sorted(counts.values()) == [least] * (len(dealt) - extras) + [least + 1] * extras:
            continue
        for member, count in counts.items():
            if count <= least:
                continue
            allowed, extras = (least + 1, extras - 1) if extras else (least, 0)
            if count > allowed:
                revoke.setdefault(member, []).extend(of_kind(kind, dealt[member])[: count - allowed])
    return revoke


def _level_for_idle(leader: Leader, active: frozenset[str], keeps: Work, policy: Policy) -> tuple[Leader, Work]:
    """What to revoke for balance, K4: only for workers without any work, never twice in a row, down to the ceiling of the mean.

    Source: IncrementalCooperativeAssignor.performTaskRevocation of 3.3.
    """
    if leader.delay > 0 or leader.leveled:
        return replace(leader, leveled=leader.delay > 0), {}
    if policy.has("levels-down-to-floor"):
        revoke = _floor_surplus(active, keeps)
        return replace(leader, leveled=bool(revoke)), revoke
    revoke: Work = {}
    busy = [member for member, units in keeps.items() if units]
    if busy and len(busy) < len(keeps):
        for kind in KINDS:
            ceiling = -(-len(of_kind(kind, active)) // len(keeps))
            for member in busy:
                units = of_kind(kind, keeps[member])
                if len(units) > ceiling:
                    revoke.setdefault(member, []).extend(units[: len(units) - ceiling])
    return replace(leader, leveled=bool(revoke)), revoke


def _floor_surplus(units: frozenset[str], keeps: Work) -> Work:
    """What 2.3.0 to 2.6.1 revoke for workers without any work: as many units in total as the floor of the mean."""
    revoke: Work = {}
    busy = [member for member, kept in keeps.items() if kept]
    if busy and len(busy) < len(keeps):
        for kind in KINDS:
            floor = left = len(of_kind(kind, units)) // len(keeps)
            for member in busy:
                running = of_kind(kind, keeps[member])
                taken = running[: max(0, min(len(running) - floor, left))]
                left -= len(taken)
                if taken:
                    revoke.setdefault(member, []).extend(taken)
    return revoke


def _place(kind: Kind, units: Sequence[str], dealt: Work) -> None:
    """Gives units to the least loaded members, level by level, ties by member id. Source: assignConnectors, assignTasks."""
    counts = {member: len(of_kind(kind, running)) for member, running in dealt.items()}
    ranked = sorted(counts, key=lambda member: (counts[member], member))
    rest = list(units)
    while rest:
        level = counts[ranked[0]]
        above = next((at for at, member in enumerate(ranked) if counts[member] > level), len(ranked))
        for member in ranked[:above]:
            if rest:
                dealt[member].append(rest.pop(0))
                counts[member] += 1


def _announced(delay: int, members: Sequence[str], policy: Policy) -> Mapping[str, int]:
    """What each member is told of the delay: the same."""
    told = dict.fromkeys(members, delay)
    if policy.has("delay-differs") and delay:
        told[members[-1]] = delay - 1
    return told


def _without(work: Work, units: frozenset[str]) -> Work:
    return {member: [unit for unit in running if unit not in units] for member, running in work.items()}


def _all(work: Work) -> frozenset[str]:
    return frozenset(unit for units in work.values() for unit in units)
