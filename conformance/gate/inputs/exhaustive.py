"""Every small input: all claims of few members to few partitions, each once up to the names of partitions and topics.

Members are not exchangeable: assignors break ties by member id and by the order in which members come. So each input comes in every
order of its members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, combinations, combinations_with_replacement, permutations, product

from ....spec.assignors.case import ABSENT, Case, Member
from ....spec.assignors.kinds import Kind, documented
from .classify import classify, split
from .hostile import hostile

OLD, NOW = 3, 5
"""Two generations with room between them; claims may also name none."""
_RACKS = ("ra", "rb")

Where = Mapping[str, tuple[str, ...]]
"""The racks that hold a replica, by partition."""
Renaming = Mapping[str, str]
"""New names of topics and partitions, one to one."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """All inputs with these ``topics`` and ``racks`` whose ``count`` members are each one of ``choices``, without a name.

    Only those renamings count that make choices of choices.
    """

    topics: Mapping[str, int]
    count: int
    choices: Sequence[Member]
    racks: Where = field(default_factory=dict[str, tuple[str, ...]])
    admits: Callable[[Sequence[Member]], bool] = lambda members: True

    def inputs(self) -> Iterator[tuple[Member, ...]]:
        """The members of each input that is the first of those that renaming makes of it, in every order."""
        place = {choice: number for number, choice in enumerate(self.choices)}
        renamed = [[place.get(_renamed(choice, names)) for choice in self.choices] for names in self._renamings()]
        exchangeable = [[new for new in names if new is not None] for names in renamed if None not in names]
        for picked in combinations_with_replacement(range(len(self.choices)), self.count):
            members = [self.choices[number] for number in picked]
            if all(picked <= tuple(sorted(names[each] for each in picked)) for names in exchangeable) and self.admits(members):
                for order in sorted(set(permutations(picked))):
                    yield tuple(self.choices[number] for number in order)

    def _renamings(self) -> Iterator[Renaming]:
        """Every renaming of topics of one size and of partitions of a topic that leaves the partitions' racks as they are."""
        for topics in permutations(self.topics):
            to = dict(zip(self.topics, topics, strict=True))
            if any(self.topics[one] != self.topics[other] for one, other in to.items()):
                continue
            for orders in product(*(list(permutations(range(count))) for count in self.topics.values())):
                numbers = dict(zip(self.topics, orders, strict=True))
                names = to | {f"{topic}-{n}": f"{to[topic]}-{m}" for topic in self.topics for n, m in enumerate(numbers[topic])}
                if all(self.racks.get(new) == self.racks.get(old) for old, new in names.items()):
                    yield names


def small(kind: Kind) -> Iterator[Case]:
    """The small inputs for an assignor of ``kind``, the simplest first; for those that read no claims only what they do read."""
    yield from _small(documented(kind))


@cache
def _small(claimless: bool) -> tuple[Case, ...]:
    scopes = chain(_subscriptions(), _racks([()])) if claimless else chain(_claims(), _unequal(), _odd(), _racks([(), (0,), (1,), (0, 1)]))
    cases = [*(_case(scope, members) for scope in scopes for members in scope.inputs()), *_hostile(claimless)]
    distinct = {(tuple(each.topics.items()), tuple(each.racks.items()), each.members): each for each in cases}
    return tuple(replace(each, id=f"small-{number}") for number, each in enumerate(sorted(distinct.values(), key=_size)))


def _case(scope: _Scope, members: Sequence[Member]) -> Case:
    named = tuple(replace(member, id=f"c{number}") for number, member in enumerate(members))
    case = Case(id="", topics=scope.topics, members=named, racks=scope.racks)
    return replace(case, input_class=classify(case))


def _size(case: Case) -> tuple[int, ...]:
    claimed = sum(len(member.owned) for member in case.members)
    generations = len({member.generation for member in case.members})
    return len(case.members), sum(case.topics.values()), len(case.topics), len(case.racks), claimed, generations


def _claims() -> Iterator[_Scope]:
    """One topic: any claims of up to three members. At the largest size of two generations, and of three to one partition."""
    for count, partitions in product((1, 2, 3), repeat=2):
        topics = {"t": partitions}
        if (count, partitions) == (3, 3):
            choices = [_nothing(("t",), NOW), *_owners(("t",), _all(topics), (OLD, NOW))]
            yield _Scope(topics, count, choices, admits=_somebody_is_up_to_date)
            one = [Member(id="", subscribed=("t",), owned=("t-0",), generation=generation) for generation in (ABSENT, OLD, NOW)]
            yield _Scope(topics, count, one, admits=lambda members: len({member.generation for member in members}) == 3)
        else:
            choices = [_nothing(("t",), ABSENT), _nothing(("t",), NOW), *_owners(("t",), _all(topics), (ABSENT, OLD, NOW))]
            yield _Scope(topics, count, choices, admits=_somebody_is_up_to_date)


def _unequal() -> Iterator[_Scope]:
    """Two topics, subscribed by all or not, with claims to what a member subscribes."""
    either = (("a", "b"), ("a",), ("b",))
    for topics, count, generations in (
        ({"a": 1, "b": 1}, 2, (OLD, NOW)),
        ({"a": 1, "b": 1}, 3, (NOW,)),
        ({"a": 2, "b": 1}, 2, (NOW,)),
        ({"a": 2, "b": 2}, 2, (NOW,)),
    ):
        choices = [
            choice
            for subscribed in (either if sum(topics.values()) < 4 else either[:1])
            for choice in (_nothing(subscribed, NOW), *_owners(subscribed, _all(topics, subscribed), generations))
        ]
        exclusively = sum(topics.values()) > 2
        yield _Scope(topics, count, choices, admits=_exclusive if exclusively else _somebody_is_up_to_date)


def _odd() -> Iterator[_Scope]:
    """One or two partitions, and claims or subscriptions that have lost their object; topics named twice; static members."""
    for partitions in (1, 2):
        gone = ("t-0", "t-1", "t-2")[: partitions + 1]
        yield _Scope({"t": partitions}, 2, [_nothing(("t",), NOW), *_owners(("t",), gone, (OLD, NOW))])
        choices = [each for topics in (("t",), ("t", "t")) for each in (_nothing(topics, NOW), *_owners(topics, gone[:-1], (NOW,)))]
        yield _Scope({"t": partitions}, 2, choices)
    for subscribed in (("gone", "t"), ("t",)):
        yield _Scope({"t": 1}, 2, [_nothing(subscribed, NOW), *_owners(subscribed, ("t-0", "gone-0"), (NOW,))])
    two = {"a": 1, "b": 1}
    yield _Scope(two, 2, [choice for topics in (("a",), ("b",), ("a", "b")) for choice in _owners(topics, _all(two), (NOW,))])
    static = [replace(choice, instance=instance) for choice in _owners(("t",), ("t-0", "t-1"), (OLD, NOW)) for instance in ("i0", "i1")]
    joining = [_nothing(("t",), ABSENT), replace(_nothing(("t",), ABSENT), instance="i2")]
    yield _Scope({"t": 2}, 2, [*static, *joining], admits=_one_member_per_instance)


def _racks(claims: Iterable[tuple[int, ...]]) -> Iterator[_Scope]:
    """Two partitions and members in two racks or in none; who claims what is claimed alone."""
    owned = [tuple(f"t-{number}" for number in numbers) for numbers in claims]
    for where in combinations_with_replacement((_RACKS[:1], _RACKS[1:], _RACKS), 2):
        racks = {f"t-{number}": replicas for number, replicas in enumerate(where)}
        choices = [
            Member(id="", subscribed=("t",), owned=each, generation=NOW if len(owned) > 1 else ABSENT, rack=rack)
            for each in owned
            for rack in (None, *_RACKS)
        ]
        yield _Scope({"t": 2}, 2, choices, racks, admits=_exclusive)


def _subscriptions() -> Iterator[_Scope]:
    """For assignors that read no claims: who subscribes what, static or not, also topics that do not exist, or named twice."""
    one = [_nothing(("t",), ABSENT), _nothing(("t", "t"), ABSENT), _nothing(("gone", "t"), ABSENT)]
    static = [replace(one[0], instance=instance) for instance in ("i0", "i1", "i2")]
    for partitions, count in product(range(5), (1, 2, 3)):
        yield _Scope({"t": partitions} if partitions else {}, count, [*one, *static], admits=_one_member_per_instance)
    several = [_nothing(subscribed, ABSENT) for size in (1, 2, 3) for subscribed in combinations("abc", size)]
    for counts, count in product(((1, 1, 1), (1, 2, 3), (2, 2, 3)), (1, 2, 3)):
        yield _Scope(dict(zip("abc", counts, strict=True)), count, several)


def _hostile(claimless: bool) -> Iterator[Case]:
    """Each kind of hostile metadata, beside a sound member."""
    sound = Member(id="c1", subscribed=("t",)) if claimless else Member(id="c1", subscribed=("t",), owned=("t-0",), generation=NOW)
    for _, spoiled in hostile(Member(id="c0", subscribed=("t",))):
        yield Case(id="", topics={"t": 2}, members=(spoiled, sound), input_class="hostile metadata")


def _nothing(subscribed: tuple[str, ...], generation: int) -> Member:
    return Member(id="", subscribed=subscribed, generation=generation)


def _owners(subscribed: tuple[str, ...], partitions: Sequence[str], generations: Sequence[int]) -> Iterator[Member]:
    for size in range(1, len(partitions) + 1):
        for owned in combinations(partitions, size):
            for generation in generations:
                yield Member(id="", subscribed=subscribed, owned=owned, generation=generation)


def _all(topics: Mapping[str, int], of: Iterable[str] | None = None) -> tuple[str, ...]:
    return tuple(f"{topic}-{number}" for topic in (topics if of is None else of) for number in range(topics[topic]))


def _renamed(member: Member, names: Renaming) -> Member:
    """Names without a new one stay: what they name does not exist."""
    subscribed = tuple(sorted(names.get(topic, topic) for topic in member.subscribed))
    owned = tuple(sorted((names.get(partition, partition) for partition in member.owned), key=split))
    return replace(member, subscribed=subscribed, owned=owned)


def _somebody_is_up_to_date(members: Sequence[Member]) -> bool:
    """Only the order of generations matters, so the newest that is named can be taken for `NOW`."""
    generations = {member.generation for member in members}
    return NOW in generations or OLD not in generations


def _exclusive(members: Sequence[Member]) -> bool:
    owned = [partition for member in members for partition in member.owned]
    return len(set(owned)) == len(owned)


def _one_member_per_instance(members: Sequence[Member]) -> bool:
    instances = [member.instance for member in members if member.instance]
    return len(set(instances)) == len(instances)
