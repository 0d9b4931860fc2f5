"""The inputs that real leaders were given: a case for each generation of a captured trace that shows them whole."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....spec.assignors.case import ABSENT, Case, Member
from ....spec.events import NONE, Assignment, Event, GenerationStarted, Join, Joined, MemberInfo, Resources, Sync, Synced, Topics
from ....spec.rounds import COOPERATIVE
from ...assemble import assemble
from ...report import Input
from ...validate import captured
from .classify import split

MOST_PARTITIONS = 1_000_000
"""Of all topics of a case; a trace that claims more is not believed."""

_PARTITION = re.compile(r"[\w.-]+-\d{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was found: ``generations`` with members, of which ``left_out`` says how many gave no case, by the reason.

    ``inputs`` are the files, also those that could not be read.
    """

    cases: tuple[Case, ...]
    generations: int
    left_out: Mapping[str, int]
    inputs: tuple[Input, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the report should know."""
        found = f"{len(self.cases):,} of {self.generations:,} generations in the captures are fed"
        reasons = "; ".join(f"{count:,} left out: {why}" for why, count in sorted(self.left_out.items()))
        return (f"{found} ({reasons})" if reasons else found,)


def inputs_of(paths: Sequence[str], format: str = "auto") -> Inputs:
    """The inputs in the captures under ``paths``: files, directories, globs, or data sets that `ingest` made.

    Raises `ValueError` for an unknown ``format``, `DataSetError` for a data set that can't be used.
    """
    found, inputs = captured(paths, format)
    return replace(inputs_in(assemble(found)), inputs=inputs)


def inputs_in(events: Iterable[Event]) -> Inputs:
    """The inputs in ``events``, which `assemble` gave their epochs."""
    groups: defaultdict[tuple[str, str], _Group] = defaultdict(_Group)
    for event in events:
        groups[event.cluster, event.group].learn(event)
    cases: list[Case] = []
    left_out: Counter[str] = Counter()
    generations = 0
    for (cluster, name), group in sorted(groups.items()):
        for (epoch, number), members in group.inputs():
            generations += 1
            if isinstance(members, str):
                left_out[members] += 1
                continue
            case = Case(
                id="/".join((*((cluster,) if cluster != "default" else ()), name, f"{epoch}.{number}")),
                topics=group.topics_of((epoch, number), members),
                members=members,
                input_class="trace",
            )
            if sum(case.topics.values()) > MOST_PARTITIONS:
                left_out["more partitions than can be believed"] += 1
            else:
                cases.append(case)
    return Inputs(tuple(cases), generations, dict(left_out))


_Key = tuple[int, int]
"""Epoch and generation."""
_Claims = Mapping[str, tuple[Resources, int]]
"""What members were last given, and in which generation."""


@dataclass(slots=True)
class _Generation:
    """What was seen of one generation: its members, what each said of itself in JoinGroup, its assignment, who joined as a new member.

    ``rosters`` are its members by the kind of event that first named them: a static member that is replaced within a generation
    has another id in what comes later.
    """

    rosters: dict[type[Event], frozenset[str]] = field(default_factory=dict[type[Event], frozenset[str]])
    said: defaultdict[str, list[MemberInfo]] = field(default_factory=lambda: defaultdict[str, list[MemberInfo]](list))
    shares: dict[str, Resources] = field(default_factory=dict[str, Resources])
    new: set[str] = field(default_factory=set[str])
    protocol: str | None = None

    @property
    def members(self) -> frozenset[str]:
        """As the leader named them, else the coordinator."""
        return next((self.rosters[kind] for kind in (Sync, GenerationStarted, Assignment) if kind in self.rosters), frozenset[str]())

    @property
    def whole(self) -> bool:
        """The assignment of every member was seen."""
        return self.members <= self.shares.keys()


@dataclass(slots=True)
class _Group:
    """What was seen of one group."""

    generations: defaultdict[_Key, _Generation] = field(default_factory=lambda: defaultdict[_Key, _Generation](_Generation))
    topics: dict[str, int] = field(default_factory=dict[str, int])
    _asked: dict[tuple[str, str], Join] = field(default_factory=dict[tuple[str, str], Join])
    _new: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def learn(self, event: Event) -> None:
        if isinstance(event, Topics):
            self.topics.update(event.topics or {})
        if isinstance(event, Join):
            self._asked.update(dict.fromkeys(_places(event), event))
            if event.member == "" and event.observer == "member":
                self._new.update(_places(event))
        if event.generation is None or event.generation < 0:
            return
        generation = self.generations[event.epoch, event.generation]
        if isinstance(event, (Joined, GenerationStarted, Assignment)):
            generation.protocol = event.protocol or generation.protocol
        match event:
            case Joined(error=error, member=str(member)) if error == NONE:
                joins = [join for place in _places(event) if (join := self._asked.pop(place, None)) is not None]
                generation.said[member].extend(map(_said, joins))
                if not self._new.isdisjoint(_places(event)):
                    generation.new.add(member)
                self._new.difference_update(_places(event))
            case Synced(error=error, member=str(member), resources=tuple(resources)) if error == NONE:
                generation.shares.setdefault(member, resources)
            case GenerationStarted(members=tuple(members)):
                generation.rosters.setdefault(GenerationStarted, frozenset(members))
            case Sync(assignment=shares) if shares:
                generation.rosters.setdefault(Sync, frozenset(shares))
                generation.shares.update(shares)
            case Assignment(members=infos, assignment=shares):
                if infos or shares:
                    generation.rosters.setdefault(Assignment, frozenset(infos or shares or ()))
                generation.shares.update(shares or {})
                for member, info in (infos or {}).items():
                    generation.said[member].insert(0, info)
            case _:
                pass

    def inputs(self) -> Iterator[tuple[_Key, tuple[Member, ...] | str]]:
        """Each generation that has members, in order: the leader's input, or why it is not known."""
        told = [info for generation in self.generations.values() for infos in generation.said.values() for info in infos]
        reports_claims = any(info.owned for info in told)
        connect = any(":" in resource for each in self.generations.values() for share in each.shares.values() for resource in share)
        former: dict[str, tuple[Resources, int]] = {}
        for epoch, number in sorted(self.generations):
            generation = self.generations[epoch, number]
            before = self.generations.get((epoch, number - 1))
            if number == 1:
                former.clear()
            if generation.members:
                known = number == 1 or (before is not None and before.whole)
                members = _members(generation, reports_claims or generation.protocol in COOPERATIVE, former if known else None)
                yield (epoch, number), "Connect workers" if connect else members
            former.update({member: (share, number) for member, share in generation.shares.items()})

    def topics_of(self, key: _Key, members: Sequence[Member]) -> dict[str, int]:
        """Partitions of each subscribed topic: as told, else up to the last one that this generation gave or found claimed.

        Where it was not seen what it gave, up to the last one that any generation gave.
        """
        generation = self.generations[key]
        given = [generation] if generation.whole else self.generations.values()
        partitions = [partition for each in given for share in each.shares.values() for partition in share]
        partitions += [partition for member in members for partition in member.owned]
        counts: dict[str, int] = {}
        for topic, number in map(split, filter(_PARTITION.fullmatch, partitions)):
            counts[topic] = max(counts.get(topic, 0), number + 1)
        wanted = {topic for member in members for topic in member.subscribed}
        return {topic: count for topic in sorted(wanted) if (count := self.topics.get(topic, counts.get(topic, 0))) > 0}


def _members(generation: _Generation, reports_claims: bool, former: _Claims | None) -> tuple[Member, ...] | str:
    """The members as the leader saw them, or why that is not known; ``former`` is None where it was not seen.

    In a group where nobody ever reports what it owns, members are eager and remember what they were last given; unless its protocol is
    cooperative, as at the end of a rolling upgrade: then eager members report that they own nothing.
    """
    members: list[Member] = []
    for id_ in sorted(generation.members):
        said = generation.said.get(id_, ())
        subscribed = next((info.subscribed for info in said if info.subscribed is not None), None)
        if subscribed is None:
            return "subscriptions not captured"
        reported = next((info for info in said if info.owned is not None), None) if reports_claims else None
        if reported is not None:
            told = reported.extra.get("owned_generation")
            owned, dated = reported.owned or (), told if isinstance(told, int) else ABSENT
        elif id_ in generation.new:
            owned, dated = (), ABSENT
        elif former is not None:
            owned, dated = former.get(id_, ((), ABSENT))
        else:
            return "claims not captured"
        if not all(map(_PARTITION.fullmatch, (*owned, *generation.shares.get(id_, ())))):
            return "resources that are no topic partitions"
        members.append(
            Member(
                id=id_,
                instance=next((info.instance for info in said if info.instance is not None), None),
                subscribed=subscribed,
                owned=tuple(dict.fromkeys(owned)),
                generation=max(dated, ABSENT),
                rack=next((rack for info in said if isinstance(rack := info.extra.get("rack"), str)), None),
            )
        )
    return tuple(members)


def _said(join: Join) -> MemberInfo:
    extra = {"owned_generation": join.owned_generation, "rack": join.rack}
    return MemberInfo(instance=join.instance, subscribed=join.subscribed, owned=join.owned, extra=extra)


def _places(event: Event) -> list[tuple[str, str]]:
    """Where a request and its answer meet: the log that shows both, and the member, or the client where it has no member id yet."""
    log = event.src.file if event.src else ""
    return [(log, who) for who in (event.member, event.client) if who]
