"""From an input that fails to the smallest one that fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ...spec.assignors.case import ABSENT, Case, Member

_T = TypeVar("_T")

FEW = 12
"""Of a topic, so many of its last partitions are left out one by one."""

Fails = Callable[[Sequence[Case]], Sequence[bool]]
"""Which of some inputs fail in the same way; asked in batches."""


def shrink(case: Case, fails: Fails, *, most: int) -> Case:
    """The smallest input reachable from ``case`` by leaving out and simplifying; asks about ``most`` inputs at most.

    Every candidate is simpler than the case that it comes from, so this ends. The result fails, if ``case`` does.
    """
    asked = 0
    seen: set[str] = set()
    idle = _idle(case)
    while True:
        fresh: list[Case] = []
        for candidate in _simpler(case):
            if (shape := repr(candidate)) not in seen and _idle(candidate) <= idle:
                seen.add(shape)
                fresh.append(candidate)
        found = None
        for batch in _batches(fresh):
            asked += len(batch)
            found = next((candidate for candidate, failed in zip(batch, fails(batch), strict=True) if failed), None)
            if found is not None or asked >= most:
                break
        if found is None:
            return case
        case = found
        if asked >= most:
            return case


def _idle(case: Case) -> int:
    """Members without a subscription: a real one would not be in the group."""
    return sum(not member.subscribed for each in (*case.before, case) for member in each.members)


def _batches(cases: Sequence[Case]) -> Iterator[Sequence[Case]]:
    start, size = 0, 8
    while start < len(cases):
        yield cases[start : start + size]
        start, size = start + size, min(64, size * 2)


def size(case: Case) -> tuple[int, ...]:
    """Orders inputs by what a reader has to take in."""
    return (
        sum(size(each)[1] + size(each)[2] for each in case.before),
        len(case.members),
        sum(case.topics.values()),
        len(case.topics),
        sum(len(member.owned) for member in case.members),
        len(case.racks),
        sum(_details(member) for member in case.members),
    )


def _details(member: Member) -> int:
    return sum(
        (member.instance is not None, member.rack is not None, member.version != 3, member.generation != ABSENT, len(member.subscribed))
    )


def _simpler(case: Case) -> Iterator[Case]:
    """Candidates, the boldest first."""
    for place, earlier in enumerate(case.before):
        yield replace(case, before=_without(case.before, place))
        for simpler in _simpler(earlier):
            yield replace(case, before=(*case.before[:place], simpler, *case.before[place + 1 :]))
    if len(case.members) > 3:
        half = len(case.members) // 2
        yield replace(case, members=case.members[:half])
        yield replace(case, members=case.members[half:])
    for place in range(len(case.members) if len(case.members) > 1 else 0):
        yield replace(case, members=_without(case.members, place))
    for topic in case.topics:
        yield without_topic(case, topic)
    for topic, count in case.topics.items():
        if count > 2:
            yield _narrowed(case, topic, count // 2)
        if count > 1:
            yield from (_without_partition(case, topic, number) for number in range(count - 1, max(-1, count - 1 - FEW), -1))
    if case.racks or case.names_racks:
        yield replace(case, racks={}, members=tuple(replace(member, rack=None) for member in case.members))
    for partition, where in case.racks.items():
        if len(where) > 1:
            yield from (replace(case, racks={**case.racks, partition: _without(where, place)}) for place in range(len(where)))
    for place, member in enumerate(case.members):
        for simpler in _plainer(member):
            yield replace(case, members=(*case.members[:place], simpler, *case.members[place + 1 :]))
    yield from _ranked(case)
    yield from _renamed(case)


def _plainer(member: Member) -> Iterator[Member]:
    if member.owned:
        yield replace(member, owned=(), generation=ABSENT)
        if len(member.owned) > 1:
            yield from (replace(member, owned=_without(member.owned, place)) for place in range(len(member.owned)))
    elif member.generation != ABSENT:
        yield replace(member, generation=ABSENT)
    if member.instance is not None:
        yield replace(member, instance=None)
    if member.rack is not None:
        yield replace(member, rack=None)
    if member.version != 3 and member.metadata is None:
        yield replace(member, version=3)
    if len(member.subscribed) > 1:
        yield from (replace(member, subscribed=_without(member.subscribed, place)) for place in range(len(member.subscribed)))


def without_topic(case: Case, topic: str) -> Case:
    """``case`` without a topic, and without whatever names it."""

    def member(each: Member) -> Member:
        return replace(
            each, subscribed=tuple(t for t in each.subscribed if t != topic), owned=tuple(p for p in each.owned if _topic(p) != topic)
        )

    return replace(
        case,
        topics={t: count for t, count in case.topics.items() if t != topic},
        racks={p: where for p, where in case.racks.items() if _topic(p) != topic},
        members=tuple(map(member, case.members)),
    )


def _narrowed(case: Case, topic: str, count: int) -> Case:
    """``topic`` with fewer partitions. Claims to those that are gone go too, but for claims that were beyond the end before."""
    gone = {f"{topic}-{number}" for number in range(count, case.topics[topic])}
    return replace(
        case,
        topics={**case.topics, topic: count},
        racks={p: where for p, where in case.racks.items() if p not in gone},
        members=tuple(replace(m, owned=tuple(p for p in m.owned if p not in gone)) for m in case.members),
    )


def _without_partition(case: Case, topic: str, number: int) -> Case:
    """``topic`` without one partition; those after it move up by one."""

    def moved(partition: str) -> str | None:
        name, _, each = partition.rpartition("-")
        if name != topic or int(each) < number:
            return partition
        return None if int(each) == number else f"{topic}-{int(each) - 1}"

    return replace(
        case,
        topics={**case.topics, topic: case.topics[topic] - 1},
        racks={new: where for p, where in case.racks.items() if (new := moved(p)) is not None},
        members=tuple(replace(m, owned=tuple(new for p in m.owned if (new := moved(p)) is not None)) for m in case.members),
    )


def _ranked(case: Case) -> Iterator[Case]:
    """Generations as small as their order allows."""
    calls = (*case.before, case)
    known = sorted({member.generation for call in calls for member in call.members if member.generation != ABSENT})
    rank = {ABSENT: ABSENT} | {generation: place + 1 for place, generation in enumerate(known)}
    if any(rank[generation] != generation for generation in known):
        yield _in_all(case, lambda call: _each_member(call, lambda m: replace(m, generation=rank[m.generation])))


def _renamed(case: Case) -> Iterator[Case]:
    """Members c0, c1, ..., instances i0, ..., racks ra, ... and topics t, u, ... in their order."""
    calls = (*case.before, case)
    ids = list(dict.fromkeys(member.id for call in calls for member in call.members))
    member = {old: f"c{place}" for place, old in enumerate(ids)}
    sorted_ids = {old: f"c{place}" for place, old in enumerate(sorted(ids))}
    for renaming in (member, sorted_ids):
        if any(old != new for old, new in renaming.items()):
            yield _in_all(case, lambda call, to=renaming: _each_member(call, lambda m: replace(m, id=to[m.id])))
    instances = sorted({m.instance for call in calls for m in call.members if m.instance is not None})
    instance = {old: f"i{place}" for place, old in enumerate(instances)}
    if any(old != new for old, new in instance.items()):
        yield _in_all(
            case, lambda call: _each_member(call, lambda m: replace(m, instance=instance.get(m.instance) if m.instance else None))
        )
    topics = sorted({t for call in calls for t in (*call.topics, *(t for m in call.members for t in m.subscribed))})
    topic = {old: "tuvwxyz"[place] for place, old in enumerate(topics[:7])}
    if len(topics) <= 7 and any(old != new for old, new in topic.items()):
        yield _in_all(case, lambda call: _with_topics(call, topic))


def _in_all(case: Case, change: Callable[[Case], Case]) -> Case:
    return replace(change(case), before=tuple(map(change, case.before)))


def _each_member(case: Case, change: Callable[[Member], Member]) -> Case:
    return replace(case, members=tuple(map(change, case.members)))


def _with_topics(case: Case, topic: dict[str, str]) -> Case:
    def partition(old: str) -> str:
        return f"{topic.get(_topic(old), _topic(old))}-{old.rpartition('-')[2]}"

    return replace(
        case,
        topics={topic[t]: count for t, count in case.topics.items()},
        racks={partition(p): where for p, where in case.racks.items()},
        members=tuple(
            replace(m, subscribed=tuple(topic[t] for t in m.subscribed), owned=tuple(map(partition, m.owned))) for m in case.members
        ),
    )


def _without(items: Sequence[_T], place: int) -> tuple[_T, ...]:
    return (*items[:place], *items[place + 1 :])


def _topic(partition: str) -> str:
    return partition.rpartition("-")[0]
