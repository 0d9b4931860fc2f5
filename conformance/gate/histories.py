"""Whole histories of a consumer group whose leaders use the assignor under test, told and judged as any trace is.

A history is a random walk of the reference world: members join, leave, crash, come back as static members, stand still, miss
a SyncGroup; topics grow, go and come back smaller; subscriptions change. It ends in rest. The members are the reference
consumer of the assignor's kind, so whatever goes wrong is the assignor's doing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Any, cast

from ...model import consumer
from ...model.assignors import ASSIGNORS, AssignorFailed
from ...model.assignors.base import split
from ...model.consumer.config import Asked
from ...model.messages import JoinedMember
from ...model.scenarios import BEFORE_3_4, dynamic, static
from ...model.scenarios import cast as staged
from ...model.world import Config, Faults, Menu, World, owned
from ...spec import Finding, Settings, check
from ...spec.assignors.case import Answer, Case, Member, NoAnswer
from ...spec.assignors.kinds import Kind, cooperative, sticky
from ...spec.events import Event, Resources
from .subject import Subject
from .walks import ENDLESS, RESTS_WITHIN, Play, Run, blamed, following, needed, played, shortened, walking

BLAMED = frozenset(
    {
        "assigned-only-to-joined-members",
        "converges",
        "exclusive-assignment",
        "exclusive-ownership",
        "needless-movement",
        "revoke-before-reassign",
        "withheld-partition-reassigned",
    }
)
"""The trace rules that an assignor can break by itself, between members and a coordinator that keep all others."""

REMEMBERED = 8
"""How many earlier calls of the same leader a case names at most, the latest ones."""

BUDGETS = (
    Faults(starts=6, crashes=2, closes=2, pauses=2, stalls=1, delays=3, cuts=2, resizes=3, subscribes=2),
    Faults(starts=3, crashes=1, closes=1),
    Faults(starts=3, crashes=2, resizes=1),
    Faults(starts=2, pauses=2),
    Faults(starts=2, delays=2),
    Faults(starts=2, cuts=2, delays=1),
    Faults(starts=2, resizes=3, subscribes=2),
)
"""How often what may happen in a history: a bit of everything, or more of the same."""

ASSUMED = Settings(clock_skew_ms=1, only=BLAMED)
FOLLOWS_FAILURE = frozenset({"converges", "needless-movement", "withheld-partition-reassigned"})
"""What breaks, too, where a leader gets no answer."""

WITHHELD = "withheld-partition-reassigned"
PROMISES_BALANCE: frozenset[Kind] = frozenset({"roundrobin", "sticky", "cooperative-sticky"})
FAILURES = 3
"""How often a leader may get no answer before its history ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One member of the cast; static if it has an ``instance``."""

    name: str
    topics: tuple[str, ...]
    instance: str | None = None
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """How a history begins: the cast, all still absent, and what there is to consume.

    ``before_3_4``: the members' metadata carry no generation (KIP-792), only their user data do.
    """

    topics: Mapping[str, int]
    cast: tuple[Part, ...]
    racks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    before_3_4: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What happened (``events``), what the leaders were asked and answered, what of it breaks a promise, and how to play it again.

    ``script`` is the stage as one line of JSON, then the lines of a script (see walks.py); `replay` runs it.
    """

    events: tuple[Event, ...]
    cases: tuple[Case, ...]
    answers: tuple[Answer, ...]
    findings: tuple[Finding, ...]
    script: str


OPENINGS: Mapping[str, str] = MappingProxyType(
    {
        "a static member misses a generation and comes back with its claims": (
            '{"topics":{"t":2},"cast":[{"name":"s1","topics":["t"],"instance":"i1"},{"name":"c1","topics":["t"]}]};'
            "start s1;settle;start c1;poll c1;arrive c1;return c1;poll c1;arrive c1;advance;beat s1;arrive s1;pause s1;advance"
        ),
        "a member from before 3.4 misses a SyncGroup, and its claims are of the generation before": (
            '{"topics":{"t":3},"cast":[{"name":"c1","topics":["t"]},{"name":"c2","topics":["t"]},{"name":"c3","topics":["t"]}],'
            '"before_3_4":true};'
            "start c1;settle;start c2;settle;start c3;poll c3;arrive c3;return c3;poll c3;arrive c3;"
            "advance;beat c1;beat c2;arrive c2;return c2;poll c2;arrive c2;delay c2"
        ),
    }
)
"""Scripts of what random walks rarely come to, with a semicolon after each line."""


def histories(subject: Subject, *, seed: int, count: int) -> Iterator[History]:
    """``count`` histories, the same for the same seed and answers: the `OPENINGS`, then random walks."""
    for script in [*OPENINGS.values()][:count]:
        yield replay(script.replace(";", "\n"), subject)
    for number in range(count - len(OPENINGS)):
        chance = random.Random(f"{seed} {number}")
        stage = _stage(chance, subject.kind)
        running = [part.name for part in stage.cast[: chance.randint(1, len(stage.cast))]]
        yield _play(subject, f"{seed}.{number}", stage, walking(chance, running), _menu(stage), chance.choice(BUDGETS))


def replay(script: str, subject: Subject) -> History:
    """Play a script again; acts that can't happen, as the subject now answers otherwise, are left out.

    Raises ValueError if it is no script.
    """
    return _follow(subject, *_read(script))


def _follow(subject: Subject, stage: Stage, lines: Sequence[str]) -> History:
    return _play(subject, "replay", stage, following(lines), needed(lines), ENDLESS)


def shrink_history(script: str, subject: Subject, same_finding: Callable[[History], bool]) -> str:
    """A shorter script whose history still has the finding: see `shortened`."""
    stage, lines = _read(script)
    return shortened(script, lines, lambda lines: _follow(subject, stage, lines), same_finding)


# The stage.


def _stage(chance: random.Random, kind: Kind) -> Stage:
    """Two to five members, some of them static, one to three topics; in one history out of four each is in a rack."""
    topics = {name: chance.choice((1, 2, 3, 4, 6)) for name in ("t", "u", "v")[: chance.choice((1, 1, 2, 3))]}
    alike = chance.random() < 0.7
    racks = chance.random() < 0.25
    shape = chance.choice(("dynamic", "static", "mixed"))
    parts: list[Part] = []
    for number in range(1, chance.choice((2, 3, 3, 4, 5)) + 1):
        fixed = shape == "static" or (shape == "mixed" and chance.random() < 0.5)
        mine = tuple(topics) if alike else tuple(sorted(chance.sample(sorted(topics), chance.randint(1, len(topics)))))
        rack = chance.choice(("r1", "r2")) if racks else None
        parts.append(Part(name=f"{'s' if fixed else 'c'}{number}", topics=mine, instance=f"i{number}" if fixed else None, rack=rack))
    return Stage(
        topics=topics,
        cast=tuple(parts),
        racks={f"{t}-{n}": (chance.choice(("r1", "r2")),) for t, count in topics.items() for n in range(count)} if racks else {},
        before_3_4=cooperative(kind) and chance.random() < 0.25,
    )


def _world(stage: Stage, lead: consumer.config.Lead, kind: Kind, menu: Menu, budget: Faults) -> World:
    plans: dict[str, tuple[Config, ...]] = {}
    for part in stage.cast:
        assignor = carrier(kind)
        config = (
            static(part.name, part.instance, assignor, topics=part.topics)
            if part.instance
            else dynamic(part.name, assignor, topics=part.topics)
        )
        release = BEFORE_3_4 if stage.before_3_4 else consumer.Release()
        plans[part.name] = (replace(config, rack=part.rack, release=release, leads_with=lead),)
    return staged(plans, topics=stage.topics, faults=budget, menu=menu, racks=stage.racks)


def carrier(kind: Kind) -> str:
    """The built-in assignor whose protocol and claims the members use: any eager one gets what a Sticky of it would."""
    return {"eager": "sticky", "cooperative": "cooperative-sticky"}.get(kind, kind)


def _menu(stage: Stage) -> Menu:
    """Topics grow, go, and come back smaller; members subscribe to all of them, to some, to a new one, to nothing."""
    names = sorted(stage.topics)
    sizes = chain.from_iterable(((t, 0), (t, 1), (t, n + 1), (t, n + 3)) for t, n in sorted(stage.topics.items()))
    some = [tuple(names), (names[0],), (names[-1],), (*names, "w"), ()]
    return Menu(sizes=(*dict.fromkeys((*sizes, ("w", 2))),), subscriptions=tuple(dict.fromkeys(some)))


# Playing.


def _play(subject: Subject, name: str, stage: Stage, play: Play, menu: Menu, budget: Faults) -> History:
    leader = _Leader(subject, name, stage)
    run = played(_world(stage, leader, subject.kind, menu, budget), play, lambda: leader.gave_up)
    return History(
        events=run.events,
        cases=tuple(leader.cases),
        answers=tuple(leader.answers),
        findings=tuple(_findings(run, leader, subject.kind)),
        script="\n".join((_written(stage), *run.lines)) + "\n",
    )


class _Leader:
    """Asks the subject what a leader of the world asks its assignor, and notes it."""

    def __init__(self, subject: Subject, name: str, stage: Stage) -> None:
        self._subject = subject
        self._name = name
        self._stage = stage
        self.cases: list[Case] = []
        self.answers: list[Answer] = []

    @property
    def gave_up(self) -> bool:
        """An assignor that fails again and again has nothing more to show."""
        return sum(isinstance(answer, NoAnswer) for answer in self.answers) >= FAILURES

    def __call__(self, asked: Asked, before: tuple[Asked, ...]) -> Mapping[str, Resources]:
        name = f"history-{self._name}-{len(self.cases)}"
        earlier = tuple(self._case(f"{name}-before-{n}", each) for n, each in enumerate(before[-REMEMBERED:]))
        case = replace(self._case(name, asked), before=earlier)
        answer = self._subject.ask((case,))[0]
        self.cases.append(case)
        self.answers.append(answer)
        if isinstance(answer, NoAnswer):
            raise AssignorFailed(answer.says)
        return {member: _sorted(partitions) for member, partitions in answer.items()}

    def _case(self, name: str, asked: Asked) -> Case:
        members = tuple(self._member(each) for each in asked.members)
        return Case(id=name, topics=dict(asked.topics), members=members, racks=dict(asked.racks), input_class="history")

    def _member(self, joined: JoinedMember) -> Member:
        told = joined.metadata
        claim = ASSIGNORS[carrier(self._subject.kind)].claim(told)
        return Member(
            id=joined.member,
            instance=joined.instance,
            subscribed=told.topics,
            owned=claim.partitions,
            generation=claim.generation,
            rack=told.rack,
            version=1 if self._stage.before_3_4 else 3,
        )


def _sorted(partitions: Iterable[str]) -> Resources:
    try:
        return tuple(sorted(set(partitions), key=split))
    except ValueError as error:
        raise AssignorFailed("no such partition") from error


# Judging.


def _findings(run: Run, leader: _Leader, kind: Kind) -> Iterator[Finding]:
    world = run.world
    failed = any(isinstance(answer, NoAnswer) for answer in leader.answers)
    vanished = _vanished(leader.cases)
    for group in check(run.events, ASSUMED, measure=False):
        for finding in group.findings:
            excused = (
                finding.relaxed
                or (failed and finding.rule in FOLLOWS_FAILURE)
                or (finding.rule == WITHHELD and vanished & {*finding.resources})
            )
            if not excused and (finding.rule != "needless-movement" or sticky(kind)):
                yield finding
    if failed or not leader.cases:
        return
    if not run.rests:
        yield _finding("converges", world, (), f"the group has not come to rest after {RESTS_WITHIN} steps, though nothing happens to it")
        return
    case, answer = leader.cases[-1], cast("Mapping[str, tuple[str, ...]]", leader.answers[-1])
    if left := _left_out(world, case, answer):
        message = f"at rest nobody owns {', '.join(left)}: the last answer gave it to nobody, and nobody claimed it"
        yield _finding(WITHHELD, world, left, message)
    elif (loads := _uneven(case, answer, kind)) is not None:
        said = ", ".join(f"{member} {count}" for member, count in loads.items())
        yield _finding(
            "balanced", world, (), f"at rest the members, alike in what they subscribe to, own unequal numbers of partitions: {said}"
        )


def _vanished(cases: Sequence[Case]) -> frozenset[str]:
    """Partitions that a leader was told of and a later one was not, as their topic was deleted."""
    sizes = [case.topics for case in cases]
    pairs = (
        (topic, count, later.get(topic, 0)) for at, now in enumerate(sizes) for topic, count in now.items() for later in sizes[at + 1 :]
    )
    return frozenset(f"{topic}-{n}" for topic, count, later in pairs for n in range(later, count))


def _left_out(world: World, case: Case, answer: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Partitions that the last call of a leader could have given away, and that nobody owns at rest.

    A claim excuses the leader: a static member that is away may cut a hand-over short when it comes back, for that starts no rebalance.
    """
    claimed = {partition for member in case.members for partition in member.owned}
    given = {partition for partitions in answer.values() for partition in partitions}
    held = {partition for client in world.clients for partition in owned(client)}
    wanted = {topic for member in case.members for topic in member.subscribed}
    open_to_all = (f"{topic}-{n}" for topic, count in case.topics.items() if topic in wanted for n in range(count))
    present = dict(world.topics)
    return tuple(
        partition
        for partition in open_to_all
        if partition not in claimed | given | held and split(partition)[1] < present.get(split(partition)[0], 0)
    )


def _uneven(case: Case, answer: Mapping[str, tuple[str, ...]], kind: Kind) -> Mapping[str, int] | None:
    """The loads of members that subscribe alike, if they differ by more than one though nothing is withheld."""
    subscribed = {frozenset(member.subscribed) for member in case.members}
    if kind not in PROMISES_BALANCE or len(subscribed) != 1 or case.names_racks:
        return None
    loads = {member.id: len(answer.get(member.id, ())) for member in case.members}
    whole = sum(case.topics.get(topic, 0) for topic in next(iter(subscribed)))
    return loads if sum(loads.values()) == whole and max(loads.values()) - min(loads.values()) > 1 else None


def _finding(rule: str, world: World, resources: tuple[str, ...], message: str) -> Finding:
    return blamed(rule, world.group_id, world.epoch, world.group.generation, message, resources)


# Scripts.


def _written(stage: Stage) -> str:
    cast = [{name: value for name, value in asdict(part).items() if value is not None} for part in stage.cast]
    told: dict[str, object] = {"topics": dict(stage.topics), "cast": cast}
    if stage.racks:
        told["racks"] = dict(stage.racks)
    if stage.before_3_4:
        told["before_3_4"] = True
    return json.dumps(told, separators=(",", ":"))


def _read(script: str) -> tuple[Stage, tuple[str, ...]]:
    head, _, rest = script.partition("\n")
    try:
        told: Any = json.loads(head)
        cast = tuple(
            Part(name=str(each["name"]), topics=_texts(each["topics"]), instance=each.get("instance"), rack=each.get("rack"))
            for each in told["cast"]
        )
        stage = Stage(
            topics={str(topic): int(count) for topic, count in told["topics"].items()},
            cast=cast,
            racks={str(partition): _texts(racks) for partition, racks in told.get("racks", {}).items()},
            before_3_4=told.get("before_3_4") is True,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not the stage of a history: {head[:80]!r}") from error
    return stage, tuple(text.strip() for text in rest.splitlines() if text.strip())


def _texts(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(map(str, values))
