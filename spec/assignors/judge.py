"""One answer of an assignor, judged by itself: linear in members, subscriptions and partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .case import Assignment, Case, Member
from .claims import Claims, claims, equal_subscriptions, existing
from .kinds import Kind, cooperative, sticky


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A rule that did not hold. ``argument`` is why, a sentence a step; ``detail`` tells kinds of fault of one rule apart and holds no names."""

    rule: str
    message: str
    members: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    argument: tuple[str, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """An input and the assignment that answered it, with what all rules look at."""

    case: Case
    assignment: Assignment
    claims: Claims
    partitions: frozenset[str]

    @property
    def owners(self) -> Mapping[str, str]:
        return {partition: member for member, partitions in self.assignment.items() for partition in partitions}


def given(case: Case, assignment: Assignment) -> Given:
    """What `only_subscribed` and the others take."""
    return Given(case, assignment, claims(case), existing(case))


def only_subscribed(it: Given) -> Iterator[Fault]:
    """assigns-only-subscribed."""
    members = {member.id: frozenset(member.subscribed) for member in it.case.members}
    for member, partitions in it.assignment.items():
        if member not in members and partitions:
            yield Fault(
                rule="assigns-only-subscribed",
                message=f"{some(partitions)} given to {member}, who is not in the group",
                members=(member,),
                partitions=tuple(partitions),
                detail="stranger",
            )
        elif unknown := [p for p in partitions if p not in it.partitions and _topic(p) in members[member]]:
            yield Fault(
                rule="assigns-only-subscribed",
                message=f"{some(unknown)} given to {member}, but there is no such partition",
                members=(member,),
                partitions=tuple(unknown),
                argument=tuple(
                    f"topic {topic} has {it.case.topics.get(topic, 0)} partitions" for topic in sorted({_topic(p) for p in unknown})
                ),
                detail="no such partition",
            )
        elif wrong := [p for p in partitions if _topic(p) not in members[member]]:
            yield Fault(
                rule="assigns-only-subscribed",
                message=f"{some(wrong)} given to {member}, who does not subscribe the topic",
                members=(member,),
                partitions=tuple(wrong),
                argument=(f"{member} subscribes {some(sorted(members[member]))}",),
                detail="not subscribed",
            )


def exclusively(it: Given) -> Iterator[Fault]:
    """assigns-exclusively."""
    times = Counter(partition for partitions in it.assignment.values() for partition in partitions)
    if sum(times.values()) == len(times):
        return
    twice = sorted(partition for partition, count in times.items() if count > 1)
    shared = {p: [member for member, partitions in it.assignment.items() if p in partitions] for p in twice[:20]}
    several = [p for p in shared if len(shared[p]) > 1]
    if several:
        holders = shared[several[0]]
        yield Fault(
            rule="assigns-exclusively",
            message=f"{several[0]} given to {both(holders)}",
            members=tuple(holders),
            partitions=tuple(several),
            argument=(*_claimed(it, several[0]), f"answered: {', '.join(f'{m} = {some(it.assignment[m])}' for m in holders)}"),
        )
    if alone := [p for p in shared if len(shared[p]) == 1]:
        yield Fault(
            rule="assigns-exclusively",
            message=f"{alone[0]} given to {shared[alone[0]][0]} twice",
            members=(shared[alone[0]][0],),
            partitions=tuple(alone),
            detail="twice to one member",
        )


def completely(it: Given, kind: Kind, *, settled: bool = False) -> Iterator[Fault]:
    """assigns-completely. ``settled``: nothing was taken from anybody, so nothing may be withheld either."""
    missing = it.partitions.difference(*it.assignment.values())
    if cooperative(kind) and not settled:
        missing = missing - it.claims.claimants.keys()
    if not missing:
        return
    partitions = tuple(sorted(missing, key=order))
    why = ["nobody claims it, so there is nothing to wait for"] if cooperative(kind) and not settled else []
    why += ["nobody gives anything up in this round, so no follow-up will bring it"] if settled and cooperative(kind) else []
    yield Fault(
        rule="assigns-completely",
        message=f"{some(partitions)} given to nobody",
        members=tuple(member.id for member in it.case.members if _topic(partitions[0]) in member.subscribed),
        partitions=partitions,
        argument=(f"topic {_topic(partitions[0])} has {it.case.topics[_topic(partitions[0])]} partitions and is subscribed", *why),
        detail="settled" if settled else "",
    )


def withholds(it: Given, kind: Kind) -> Iterator[Fault]:
    """cooperative-withholds."""
    if not cooperative(kind) or not it.claims.claimants:
        return
    taken: list[tuple[str, str]] = []
    for member, partitions in it.assignment.items():
        taken += [(p, member) for p in partitions if p in it.claims.newest and member not in it.claims.newest[p]]
    if not taken:
        return
    taken.sort(key=lambda each: order(each[0]))
    partition, member = taken[0]
    owners = it.claims.newest[partition]
    yield Fault(
        rule="cooperative-withholds",
        message=f"{partition} given to {member} while {both(owners)} still own{'s' if len(owners) == 1 else ''} it",
        members=(member, *owners),
        partitions=tuple(p for p, _ in taken),
        argument=(
            *_claimed(it, partition),
            f"answered: {member} = {some(it.assignment[member])}",
            f"{member} starts with {partition} as soon as it has the assignment; nothing makes it wait until {both(owners)} stopped",
        ),
        detail="" if partition in it.partitions else "no such partition",
    )


def balanced(it: Given, kind: Kind) -> Iterator[Fault]:
    """balanced, of an assignment that nothing is withheld from."""
    match kind:
        case "range":
            yield from _balanced_by_topic(it)
        case "roundrobin":
            if equal_subscriptions(it.case):
                yield from _level(it)
        case _:
            yield from _level(it) if equal_subscriptions(it.case) else _no_improving_move(it)


def _balanced_by_topic(it: Given) -> Iterator[Fault]:
    subscribers: dict[str, list[str]] = {}
    for member in it.case.members:
        for topic in frozenset(member.subscribed):
            subscribers.setdefault(topic, []).append(member.id)
    loads = Counter((member, _topic(p)) for member, partitions in it.assignment.items() for p in partitions)
    for topic, members in subscribers.items():
        counts = {member: loads[member, topic] for member in members}
        most, least = max(counts, key=lambda m: counts[m]), min(counts, key=lambda m: counts[m])
        if counts[most] - counts[least] > 1:
            yield _uneven(most, counts[most], least, counts[least], f"of topic {topic}")
            return


def _level(it: Given) -> Iterator[Fault]:
    loads = {member.id: len(it.assignment.get(member.id, ())) for member in it.case.members}
    if not loads or not it.partitions:
        return
    most, least = max(loads, key=lambda m: loads[m]), min(loads, key=lambda m: loads[m])
    if loads[most] - loads[least] > 1:
        yield _uneven(most, loads[most], least, loads[least], "though all subscribe the same topics")


def _no_improving_move(it: Given) -> Iterator[Fault]:
    """No partition whose owner has two more than somebody else who could take it."""
    loads = {member.id: len(it.assignment.get(member.id, ())) for member in it.case.members}
    fullest: dict[str, str] = {}
    for member, partitions in it.assignment.items():
        for topic in {_topic(p) for p in partitions}:
            if topic not in fullest or loads.get(member, 0) > loads.get(fullest[topic], 0):
                fullest[topic] = member
    for member in it.case.members:
        for topic in member.subscribed:
            owner = fullest.get(topic)
            if owner is not None and loads.get(owner, 0) > loads[member.id] + 1:
                movable = next(p for p in it.assignment[owner] if _topic(p) == topic)
                yield _uneven(owner, loads[owner], member.id, loads[member.id], f"and {member.id} could take {movable}")
                return


def _uneven(most: str, more: int, least: str, fewer: int, why: str) -> Fault:
    return Fault(
        rule="balanced",
        message=f"{most} has {more} partition{'s' if more != 1 else ''} where {least} has {fewer}, {why}",
        members=(most, least),
        argument=(f"{most} has {more}", f"{least} has {fewer}", "loads may differ by one"),
    )


def stickiness(it: Given, kind: Kind) -> tuple[int, int] | None:
    """How many claimed partitions did not stay with their owner, and the fewest that balance allows; None where no closed form tells.

    Equal subscriptions and claims that nobody disputes: with N partitions and C members everyone keeps up to ``N // C``, and ``N % C``
    members one more. Source: AbstractStickyAssignor.ConstrainedAssignmentBuilder.
    """
    if not (sticky(kind) or kind == "cooperative") or it.claims.disputed or it.case.names_racks:
        return None
    owned = {member.id: _valid(member, it.partitions) for member in it.case.members}
    kept = sum(len(own.intersection(it.assignment.get(member, ()))) for member, own in owned.items())
    claimed = sum(len(own) for own in owned.values())
    if equal_subscriptions(it.case):
        quota, extras = divmod(len(it.partitions), len(it.case.members)) if it.case.members else (0, 0)
        more = sum(len(own) > quota for own in owned.values())
        most = sum(min(len(own), quota) for own in owned.values()) + min(extras, more)
        return claimed - kept, claimed - most
    before = Given(it.case, {member: tuple(own) for member, own in owned.items()}, it.claims, it.partitions)
    settled = claimed == len(it.partitions) and not any(_no_improving_move(before))
    return (claimed - kept, 0) if settled else None


def _valid(member: Member, partitions: frozenset[str]) -> frozenset[str]:
    topics = frozenset(member.subscribed)
    return frozenset(p for p in member.owned if p in partitions and _topic(p) in topics)


def near(case: Case, assignment: Assignment) -> int:
    """How many partitions are given to a member whose rack holds a replica."""
    racks = {member.id: member.rack for member in case.members if member.rack}
    return sum(racks[m] in case.racks.get(p, ()) for m, partitions in assignment.items() if m in racks for p in partitions)


def order(partition: str) -> tuple[str, int]:
    """By topic, then number; what is no topic partition by its name."""
    topic, _, number = partition.rpartition("-")
    return (topic, int(number)) if number.isdecimal() and len(number) < 10 else (partition, -1)


def some(names: Iterable[str], most: int = 6) -> str:
    """``a, b and 3 more``; ``nothing`` for none."""
    listed: Sequence[str] = list(names)
    if len(listed) > most:
        return f"{', '.join(listed[: most - 1])} and {len(listed) - most + 1} more"
    return ", ".join(listed) or "nothing"


def both(names: Sequence[str]) -> str:
    """``a and b``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _claimed(it: Given, partition: str) -> tuple[str, ...]:
    return tuple(
        f"{member.id} claims {partition}"
        + (f", given to it in generation {member.generation}" if member.generation >= 0 else ", of no generation")
        for member in it.case.members
        if partition in member.owned
    )


def _topic(partition: str) -> str:
    return partition.rpartition("-")[0]
