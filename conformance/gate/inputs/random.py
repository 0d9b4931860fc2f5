"""Random inputs beyond the small ones, of every class.

One generator, driven by two sources of chance: a seeded one, fast, for the gate, and Hypothesis, which shrinks, for a user's tests.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from ....spec.assignors.case import ABSENT, Case, InputClass, Member
from ....spec.assignors.kinds import Kind, cooperative, documented
from .classify import split
from .hostile import hostile

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")

TOPICS = ("t", "orders", "a-1", "a-10", "a", "audit.v2", "audit.v2-1", "payments_eu", "1")
RACKS = ("ra", "rb", "rc")
MOST_MEMBERS, MOST_TOPICS, MOST_PARTITIONS = 12, 6, 20
"""Partitions: of a topic."""

_CYCLE: tuple[InputClass, ...] = (
    "clean",
    "racks",
    "stale generation",
    "double claim",
    "racks",
    "shrunk topic",
    "recreated topic",
    "clean",
    "deleted topic",
    "unsubscribed owner",
    "racks",
    "duplicate topic",
    "static members",
    "clean",
    "mixed metadata versions",
    "stale generation",
    "leader reused",
    "racks",
    "double claim",
    "hostile metadata",
)
"""How often each class comes."""
_CLAIMLESS = frozenset[InputClass](
    {"clean", "racks", "deleted topic", "duplicate topic", "static members", "mixed metadata versions", "leader reused", "hostile metadata"}
)


@dataclass(frozen=True, slots=True)
class Draw:
    """A source of chance: ``integer(low, high)`` is any number from low to high. Small results are the simple ones."""

    integer: Callable[[int, int], int]

    def choice(self, items: Sequence[T]) -> T:
        return items[self.integer(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """``count`` different ones, in any order."""
        left = list(items)
        return [left.pop(self.integer(0, len(left) - 1)) for _ in range(count)]

    def size(self, most: int) -> int:
        """From 1 to ``most``, mostly small."""
        return self.integer(1, min(most, self.choice((2, 3, 3, 4, 6, most))))


def classes(kind: Kind) -> tuple[InputClass, ...]:
    """The classes that mean something to an assignor of ``kind``, as often as they are to come; Range and RoundRobin read no claims."""
    return tuple(each for each in _CYCLE if each in _CLAIMLESS) if documented(kind) else _CYCLE


def sample(kind: Kind, examples: int, seed: int) -> Iterator[Case]:
    """``examples`` inputs, spread over `classes`: the same for the same ``seed``."""
    cycle = classes(kind)
    draw = Draw(Random(seed).randint)
    for number in range(examples):
        yield replace(case(draw, kind, cycle[number % len(cycle)]), id=f"random-{seed}-{number}")


def cases(kind: Kind, input_class: InputClass | None = None) -> SearchStrategy[Case]:
    """The same as a Hypothesis strategy, of one class or of all. Raises `ModuleNotFoundError` without Hypothesis."""
    strategies = _hypothesis().strategies
    chosen = strategies.sampled_from(tuple(dict.fromkeys(classes(kind)))) if input_class is None else strategies.just(input_class)

    def drawn(draw: Callable[[Any], Any]) -> Case:
        return case(Draw(lambda low, high: draw(strategies.integers(low, high))), kind, draw(chosen))

    return strategies.composite(drawn)()


def _hypothesis() -> Any:
    try:
        return importlib.import_module("hypothesis")
    except ModuleNotFoundError:
        raise ModuleNotFoundError("random inputs for your own tests need Hypothesis: pip install hypothesis") from None


def case(draw: Draw, kind: Kind, input_class: InputClass) -> Case:
    """An input of the class. Raises `KeyError` for a class that is not among `classes`."""
    group = _small_group(draw) if input_class == "racks" and draw.chance(75) else _group(draw, _AT_LEAST.get(input_class, (1, 1)))
    if not documented(kind):
        _claim(draw, group)
    drawn = _MAKE[input_class](draw, kind, group)
    return replace(drawn, input_class=input_class)


@dataclass(slots=True)
class _Group:
    """A group on the way to becoming a case: who subscribes and who claims what, by member number; ``generation`` is the newest."""

    topics: dict[str, int]
    subscribed: list[list[str]]
    generation: int
    names: list[str]
    owned: list[list[str]] = field(default_factory=list[list[str]])
    claimed_in: list[int] = field(default_factory=list[int])
    instances: dict[int, str] = field(default_factory=dict[int, str])
    racks_of: dict[int, str] = field(default_factory=dict[int, str])
    versions: dict[int, int] = field(default_factory=dict[int, int])
    racks: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def __post_init__(self) -> None:
        self.owned = [[] for _ in self.names]
        self.claimed_in = [ABSENT for _ in self.names]

    @property
    def members(self) -> range:
        return range(len(self.names))

    def case(self) -> Case:
        members = tuple(
            Member(
                id=self.names[number],
                instance=self.instances.get(number),
                subscribed=tuple(self.subscribed[number]),
                owned=tuple(self.owned[number]),
                generation=self.claimed_in[number],
                rack=self.racks_of.get(number),
                version=self.versions.get(number, 3),
            )
            for number in self.members
        )
        return Case(id="random", topics=dict(self.topics), members=members, racks=dict(self.racks))


_AT_LEAST: Mapping[InputClass, tuple[int, int]] = {
    "stale generation": (2, 1),
    "double claim": (2, 1),
    "unsubscribed owner": (1, 2),
    "mixed metadata versions": (2, 1),
}
"""Members and topics that a class needs."""


def _group(draw: Draw, least: tuple[int, int]) -> _Group:
    least_members, least_topics = least
    count = max(least_members, draw.size(MOST_MEMBERS))
    topics = {topic: draw.size(MOST_PARTITIONS) for topic in draw.some(TOPICS, max(least_topics, draw.size(MOST_TOPICS)))}
    return _Group(topics, _subscriptions(draw, list(topics), count), draw.integer(1, 40), _names(draw, count))


def _small_group(draw: Draw) -> _Group:
    """Few members and partitions, where defects of rack awareness show most often (KAFKA-15170)."""
    count = draw.integer(2, 3)
    return _Group({"t": draw.integer(2, 4)}, [["t"] for _ in range(count)], draw.integer(1, 40), _names(draw, count))


def _names(draw: Draw, count: int) -> list[str]:
    style = draw.integer(0, 5)
    if style < 3:
        return [f"c{number}" for number in range(count)]
    if style == 3:
        return [f"c{number}" for number in draw.some(range(2 * count), count)]
    return [f"consumer-{number + 1 if style == 4 else 1}-{_uuid(draw, number)}" for number in range(count)]


def _uuid(draw: Draw, number: int) -> str:
    """Looks like a UUID, and is another one for another ``number``."""
    digits = f"{draw.integer(0, 2**56 - 1):014x}"
    return f"{digits[:8]}-{digits[8:12]}-4{number:03x}-8{digits[11:]}-{digits[2:]}"


def _subscriptions(draw: Draw, topics: Sequence[str], count: int) -> list[list[str]]:
    if draw.chance(60):
        return [list(topics) for _ in range(count)]
    return [draw.some(topics, draw.integer(1, len(topics))) for _ in range(count)]


def _claim(draw: Draw, group: _Group) -> None:
    """What some of the members were given, by an assignor or by chance, before others left, others joined, and topics grew."""
    old = [number for number in group.members if draw.chance(70)]
    gone = draw.integer(0, 2)
    balanced = draw.chance(60)
    for topic, count in group.topics.items():
        takers = [number for number in old if topic in group.subscribed[number]]
        knew = draw.integer(0, count) if draw.chance(20) else count
        seats = len(takers) + gone
        for partition in range(knew if takers else 0):
            seat = partition % seats if balanced else draw.integer(0, seats - 1)
            if seat < len(takers):
                group.owned[takers[seat]].append(f"{topic}-{partition}")
    for number in old:
        group.claimed_in[number] = group.generation


def _clean(draw: Draw, kind: Kind, group: _Group) -> Case:
    return group.case()


def _some_claimant(draw: Draw, group: _Group) -> int:
    """A member with a claim of the newest generation, made if there is none."""
    owners = [number for number in group.members if group.owned[number]]
    if owners:
        return draw.choice(owners)
    number = draw.choice(group.members)
    topic = draw.choice(group.subscribed[number])
    group.owned[number].append(f"{topic}-{draw.integer(0, group.topics[topic] - 1)}")
    group.claimed_in[number] = group.generation
    return number


def _other(draw: Draw, group: _Group, member: int) -> int:
    return draw.choice([number for number in group.members if number != member])


def _also_claim(draw: Draw, group: _Group, member: int, other: int) -> None:
    """``member`` claims some of what ``other`` claims, and comes to subscribe it."""
    for partition in draw.some(group.owned[other], draw.integer(1, len(group.owned[other]))):
        topic, _ = split(partition)
        if topic not in group.subscribed[member]:
            group.subscribed[member].append(topic)
        if partition not in group.owned[member]:
            group.owned[member].append(partition)


def _stale(draw: Draw, kind: Kind, group: _Group) -> Case:
    """One or more members missed generations; what they still claim may have others by now."""
    late = _some_claimant(draw, group)
    current = _other(draw, group, late)
    group.claimed_in[current] = group.generation
    if draw.chance(60):
        _also_claim(draw, group, current, late)
    for number in group.members:
        if number == late or (number != current and group.owned[number] and draw.chance(40)):
            group.claimed_in[number] = ABSENT if draw.chance(25) else draw.integer(0, group.generation - 1)
            if number != late and draw.chance(50):
                _also_claim(draw, group, number, late)
    return group.case()


def _double(draw: Draw, kind: Kind, group: _Group) -> Case:
    """Two or more members claim the same in one generation."""
    first = _some_claimant(draw, group)
    for _ in range(draw.integer(1, 2)):
        other = _other(draw, group, first)
        _also_claim(draw, group, other, first)
        group.claimed_in[other] = group.claimed_in[first]
    if draw.chance(20):
        group.claimed_in = [ABSENT for _ in group.members]
    return group.case()


def _shrunk(draw: Draw, kind: Kind, group: _Group) -> Case:
    """A topic has lost partitions that members still claim."""
    _lose(draw, group, draw.integer(1, 3))
    return group.case()


def _lose(draw: Draw, group: _Group, count: int) -> str:
    """Claims to ``count`` partitions beyond the last one of a topic, by its subscribers."""
    topic = draw.choice([each for each in group.topics if any(each in subscribed for subscribed in group.subscribed)])
    subscribers = [number for number in group.members if topic in group.subscribed[number]]
    for partition in range(group.topics[topic], group.topics[topic] + count):
        member = draw.choice(subscribers)
        group.owned[member].append(f"{topic}-{partition}")
        group.claimed_in[member] = group.generation
    return topic


def _recreated(draw: Draw, kind: Kind, group: _Group) -> Case:
    """A topic is a new one with the same name and more or fewer partitions; claims are to the old one."""
    claimed = group.owned[_some_claimant(draw, group)]
    topic, number = split(draw.choice(claimed))
    if draw.chance(50) and number:
        group.topics[topic] = draw.integer(1, number)
    else:
        group.topics[topic] = min(MOST_PARTITIONS, group.topics[topic] + draw.integer(1, 6))
    return group.case()


def _deleted(draw: Draw, kind: Kind, group: _Group) -> Case:
    """A topic is gone that members still subscribe, or claim, or both."""
    topic = draw.choice([each for each in group.topics if any(each in subscribed for subscribed in group.subscribed)])
    del group.topics[topic]
    if draw.chance(30):
        claimed = any(split(partition)[0] == topic for owned in group.owned for partition in owned)
        for number in group.members:
            if claimed and len(group.subscribed[number]) > 1 and topic in group.subscribed[number]:
                group.subscribed[number].remove(topic)
    return group.case()


def _unsubscribed(draw: Draw, kind: Kind, group: _Group) -> Case:
    """A member claims partitions of a topic that it subscribes no longer."""
    member = _some_claimant(draw, group)
    topic, _ = split(draw.choice(group.owned[member]))
    group.subscribed[member] = [each for each in group.topics if each != topic and draw.chance(60)]
    if not group.subscribed[member]:
        group.subscribed[member].append(draw.choice([each for each in group.topics if each != topic]))
    return group.case()


def _duplicate(draw: Draw, kind: Kind, group: _Group) -> Case:
    """A subscription names a topic more than once."""
    for number in draw.some(group.members, draw.integer(1, len(group.members))):
        subscribed = group.subscribed[number]
        subscribed.insert(draw.integer(0, len(subscribed)), draw.choice(subscribed))
    return group.case()


def _static(draw: Draw, kind: Kind, group: _Group) -> Case:
    """All members or some have a group.instance.id, in another order than their ids. Some came back under a new id, claiming nothing."""
    count = len(group.names) if draw.chance(40) else draw.integer(1, len(group.names))
    instances = draw.some([f"i{number}" for number in range(len(group.names))], count)
    for number, instance in zip(draw.some(group.members, count), instances, strict=True):
        group.instances[number] = instance
        if draw.chance(50):
            group.names[number] = f"{instance}-{_uuid(draw, number)}"
            if draw.chance(50):
                group.owned[number], group.claimed_in[number] = [], ABSENT
    return group.case()


def _mixed_versions(draw: Draw, kind: Kind, group: _Group) -> Case:
    """Members of different releases. An eager one's claim travels as user data, in any version."""
    versions = [draw.integer(0, 3) for _ in group.members]
    if len(set(versions)) == 1:
        versions[0] = (versions[0] + 1) % 4
    group.versions = dict(enumerate(versions))
    if cooperative(kind):
        for number, version in group.versions.items():
            if version < 2:
                group.claimed_in[number] = ABSENT
            if version < 1:
                group.owned[number] = []
    if draw.chance(30):
        _place(draw, group)
        group.racks_of = {number: rack for number, rack in group.racks_of.items() if group.versions[number] == 3}
    return group.case()


def _racks(draw: Draw, kind: Kind, group: _Group) -> Case:
    """Members in racks, replicas in some of them."""
    _place(draw, group)
    if not group.racks_of:
        group.racks_of[0] = RACKS[0]
    return group.case()


def _place(draw: Draw, group: _Group) -> None:
    racks = RACKS[: draw.integer(2, 3)]
    replicas = draw.integer(1, 2 if len(group.names) < 4 else 3)
    for topic, count in group.topics.items():
        for partition in range(count):
            group.racks[f"{topic}-{partition}"] = tuple(draw.some(racks, min(replicas, len(racks))))
    everybody = draw.chance(70)
    group.racks_of = {number: draw.choice(racks) for number in group.members if everybody or draw.chance(60)}


def _reused(draw: Draw, kind: Kind, group: _Group) -> Case:
    """The leader answered for this group before it started anew at a lower generation, or for other members and topics."""
    if documented(kind):
        return replace(group.case(), before=(replace(_group(draw, (1, 1)).case(), id="before"),))
    _some_claimant(draw, group)
    now = group.case()
    former = group
    if draw.chance(50):
        former = _group(draw, (1, 1))
        _claim(draw, former)
        _some_claimant(draw, former)
    higher = group.generation + draw.integer(1, 20)
    former.claimed_in = [higher if each != ABSENT else ABSENT for each in former.claimed_in]
    return replace(now, before=(replace(former.case(), id="before"),))


def _hostile(draw: Draw, kind: Kind, group: _Group) -> Case:
    """One member's metadata are hostile, the others' are sound."""
    sound = group.case()
    number = draw.choice(group.members)
    victim = sound.members[number]
    if not cooperative(kind):
        victim = replace(victim, owned=(), generation=ABSENT)
    _, spoiled = draw.choice(tuple(hostile(victim)))
    return replace(sound, members=(*sound.members[:number], spoiled, *sound.members[number + 1 :]))


_MAKE: Mapping[InputClass, Callable[[Draw, Kind, _Group], Case]] = {
    "clean": _clean,
    "stale generation": _stale,
    "double claim": _double,
    "shrunk topic": _shrunk,
    "recreated topic": _recreated,
    "deleted topic": _deleted,
    "unsubscribed owner": _unsubscribed,
    "duplicate topic": _duplicate,
    "static members": _static,
    "mixed metadata versions": _mixed_versions,
    "racks": _racks,
    "leader reused": _reused,
    "hostile metadata": _hostile,
}
