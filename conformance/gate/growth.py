"""How an assignor's time grows with the group: one member per fifty partitions, in which a few members have just joined."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...spec.assignors.case import Case, Member, NoAnswer
from .subject import Subject

SIZES = (100, 1_000, 10_000)
"""Partitions."""
PER_MEMBER = 50
TOPICS = 10
ENOUGH = 30.0
"""Seconds for one answer after which nothing larger is asked."""


@dataclass(frozen=True, slots=True)
class Point:
    """One answer, warmed up: seconds for a group of ``members`` and ``partitions``."""

    partitions: int
    members: int
    seconds: float


def growth(subject: Subject, sizes: Sequence[int] = SIZES) -> tuple[Point, ...]:
    """The subject's time at each size, the best of three; ends early where it gives no answer or takes too long."""
    return tuple(_points(subject, sizes))


def _points(subject: Subject, sizes: Sequence[int]) -> Iterator[Point]:
    for partitions in sizes:
        case = group(partitions)
        times: list[float] = []
        for _ in range(3):
            before = subject.seconds
            if isinstance(subject.ask((case,))[0], NoAnswer):
                return
            times.append(subject.seconds - before)
        yield Point(partitions, len(case.members), min(times))
        if min(times) > ENOUGH:
            return


def group(partitions: int) -> Case:
    """Members own everything in equal shares, and one member in ten has just come."""
    count = max(2, partitions // PER_MEMBER)
    topics = {f"t{number}": partitions // TOPICS for number in range(TOPICS)}
    owners = max(1, count - max(1, count // 10))
    everything = [f"{topic}-{number}" for topic, size in topics.items() for number in range(size)]
    members = tuple(
        Member(
            id=f"c{n:05}",
            subscribed=tuple(topics),
            owned=tuple(everything[n::owners]) if n < owners else (),
            generation=1 if n < owners else -1,
        )
        for n in range(count)
    )
    return Case(id=f"growth-{partitions}", topics=topics, members=members)


def exponent(points: Sequence[Point]) -> float | None:
    """Of the power law between the last two sizes: 1 is linear, 2 quadratic; None where there is no telling."""
    if len(points) < 2 or points[-2].seconds <= 0:
        return None
    one, two = points[-2:]
    return math.log(two.seconds / one.seconds) / math.log(two.partitions / one.partitions)


def told(points: Sequence[Point]) -> str:
    """A sentence for the report."""
    shown = ", ".join(f"{p.partitions:,} partitions x {p.members:,} members {p.seconds * 1000:,.1f} ms" for p in points)
    power = exponent(points)
    return f"time of one answer: {shown or 'no answer'}" + (f" (grows with the power {power:.1f})" if power is not None else "")
