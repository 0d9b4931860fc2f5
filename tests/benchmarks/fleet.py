"""A production fleet as an ingested data set of any size, with violations of known rules in it.

    python tests/benchmarks/fleet.py --events 20e6 --out DIR

Histories are the reference world's own (`kipcheck.model`): a *life* is what one group of a given shape does, from its first
member to its last, cut where it rests. Each life is checked by the monitors of `kipcheck.spec` before it is used. A group of the
fleet lives such a life under names of its own, again and again, and between its stretches are hours of steady traffic: a heartbeat
of each member every 3 s, a commit of what it owns every 5 s, never quite on time.

How often groups rebalance decides how much of a trace is steady. A member makes 1200 heartbeats and 720 commits an hour; a deployment
a day with a rolling restart of ten members is 20 rebalances or more, scaling and crashes add a few: about one an hour and group
(`REBALANCES_PER_HOUR`), at some eight events of each member. A group that rebalances every half minute, `CHURNING`, is one in trouble.

Violations are the traces of ``traces/rules``, each in a group of its own, half of them with steady traffic before and after.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from kipcheck.conformance.pipeline import canonical
from kipcheck.conformance.pipeline.manifest import NAME, Captured, Key, Manifest, Part, dumps
from kipcheck.conformance.readers import columns
from kipcheck.conformance.report import Input
from kipcheck.model import consumer
from kipcheck.model.acts import Act, Close, Crash, Start
from kipcheck.model.choice import first
from kipcheck.model.connect import worker
from kipcheck.model.runs import settling
from kipcheck.model.scenarios import cast as cast_world
from kipcheck.model.world import Client, Faults, World, owned, step
from kipcheck.spec import RULES, check
from kipcheck.spec.events import NONE, Commit, Event, Expire, GenerationStarted, Heartbeat, Leave, Rebalance, Synced
from kipcheck.spec.results import Finding, Severity
from kipcheck.spec.trace import decode, encode

REBALANCES_PER_HOUR = 1.0
CHURNING = 110.0
SECOND = 1_000_000
HOUR = 3600 * SECOND
HEARTBEAT_EVERY, COMMIT_EVERY = 3 * SECOND, 5 * SECOND
BEFORE_A_CHANGE = 4 * SECOND
"""Steady traffic stops this long before anything happens, so that a member that crashes was last heard no later than the world says."""
STARTED = 1_772_409_600 * SECOND
"""2026-03-02 00:00 UTC."""
EXAMPLES = Path(__file__).parents[2] / "traces" / "rules"
ROW_GROUP, FILE = 1 << 19, 1 << 21
"""Rows, as `ingest` has them."""
CHUNK = 1_000_000


# Lives.


@dataclass(frozen=True, slots=True)
class Beat:
    """A member that is in the group while it rests: what it repeats."""

    heartbeat: Event
    commit: Event | None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Something happens (``events``, times from 0), then the group rests for a while, if it does: for long or only shortly."""

    events: tuple[Event, ...]
    beats: tuple[Beat, ...]
    long: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Life:
    """What a group does from its first member to its last. ``#``, ``@`` and ``~`` in its names stand for what each group fills in."""

    name: str
    stretches: tuple[Stretch, ...]

    @property
    def rebalances(self) -> int:
        return sum(isinstance(e, Rebalance) for s in self.stretches for e in s.events)

    @property
    def generations(self) -> int:
        return max(e.generation or 0 for s in self.stretches for e in s.events)


@dataclass(frozen=True, slots=True)
class Shape:
    """``kind``: cooperative, eager, static or connect. ``seed`` decides what happens."""

    kind: str
    members: int
    partitions: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.members}x{self.partitions}-{self.seed}"


_SIZES = ((3, 12), (4, 48), (5, 20), (6, 36), (7, 35), (8, 64), (10, 60), (12, 96), (16, 120), (20, 200), (32, 320), (50, 500))
_WORKERS = ((3, 12), (4, 20), (5, 40), (6, 48), (8, 60))
SHAPES = (
    *(
        Shape(kind, members, partitions, seed)
        for seed, (members, partitions) in enumerate(_SIZES)
        for kind in ("cooperative", "eager", "static")
    ),
    *(Shape("connect", members, tasks, seed) for seed, (members, tasks) in enumerate(_WORKERS)),
)
SMALL = tuple(shape for shape in SHAPES if shape.members <= 6)


@cache
def life(shape: Shape) -> Life:
    """The life of a group of this shape. Raises AssertionError if a monitor finds fault with it."""
    lived = Life(shape.name, tuple(_told(_lived(shape))))
    twice = [*_events(lived, 0), *_events(lived, 1)]
    faults = [f for g in check(twice) for f in g.findings if f.severity != "info"]
    assert not faults, (shape, faults)
    return lived


def _events(lived: Life, turn: int) -> Iterator[Event]:
    """The life as it is lived for the ``turn``-th time, with short rests."""
    now = STARTED + turn * 10 * HOUR
    for stretch in lived.stretches:
        for event in stretch.events:
            tagged = _renamed(event, lambda name: name.replace("#", f"-{turn}-"))
            yield replace(_later(tagged, turn * lived.generations), ts=now + (event.ts or 0))
        now += 60 * SECOND + max((e.ts or 0 for e in stretch.events), default=0)


def _later(event: Event, generations: int) -> Event:
    changes: dict[str, Any] = {
        name: value + generations
        for name in ("generation", "owned_generation")
        if (value := getattr(event, name, None)) is not None and value >= 0
    }
    return replace(event, **changes)


def _lived(shape: Shape) -> Iterator[tuple[list[Event], World, bool]]:
    """Each stretch of the life: what was seen, the world after it, whether a long rest follows."""
    rng = random.Random(f"{shape}")
    configs = [*_configs(shape)]
    world = cast_world({c.client: (c,) for c in configs}, topics=_topics(shape))
    for acts, long in _script(shape.kind, [c.client for c in configs], rng):
        seen: list[Event] = []
        waited = 0
        for number, act in enumerate(acts):
            if number and isinstance(act, Start) and isinstance(acts[number - 1], Close):
                waited += rng.randint(4, 20) * SECOND
            world, events = _happens(world, act, last=number == len(acts) - 1)
            seen.extend(replace(e, ts=(e.ts or 0) + waited) for e in events)
        yield seen, world, long


def _happens(world: World, act: Act, *, last: bool) -> tuple[World, list[Event]]:
    """``act``, and what follows from it until the group rests; or if it isn't the ``last``, until a closed client is gone."""
    moved = step(replace(world, faults=Faults(starts=1, crashes=1, closes=1)), act, first)
    seen, now = [*moved.events], replace(moved.world, faults=Faults())
    if last or isinstance(act, Close):
        for taken in settling(now, first, 100_000):
            if not last and isinstance(act, Close) and now.client(act.who).mode == "absent":
                break
            now = taken.moved.world
            seen.extend(taken.moved.events)
    return now, seen


def _configs(shape: Shape) -> Iterator[consumer.Config | worker.Config]:
    for number in range(shape.members):
        name = f"@{number}"
        if shape.kind == "connect":
            yield worker.Config(process=name, group="orders", client=name, session_timeout_ms=10_000, rebalance_timeout_ms=60_000)
            continue
        instance = f"@i{number}" if shape.kind == "static" else None
        assignors = ("range",) if shape.kind == "eager" or (shape.kind == "static" and shape.seed % 2) else ("cooperative-sticky",)
        yield consumer.Config(
            process=name,
            group="orders",
            client=name,
            instance=instance,
            topics=tuple(_topics(shape)),
            assignors=assignors,
            session_timeout_ms=45_000 if shape.members < 8 else 10_000,
        )


def _topics(shape: Shape) -> dict[str, int]:
    if shape.kind == "connect":
        half = shape.partitions // 2
        return {"~jdbc-source": half, "~search-sink": shape.partitions - half}
    return {"~events": shape.partitions} if shape.seed % 3 else {"~created": shape.partitions // 3, "~updated": shape.partitions * 2 // 3}


DEEDS = ("up", "restart", "crash", "down", "roll", "crash", "up", "restart", "down", "up")


def _script(kind: str, names: Sequence[str], rng: random.Random) -> Iterator[tuple[list[Act], bool]]:
    """What is done to the group, and whether a long rest follows: starts, scaling, restarts, crashes, the end."""
    few = max(2, len(names) - rng.randint(1, max(1, len(names) // 3)))
    yield [Start(who) for who in names[:few]], True
    running, spare = [*names[:few]], [*names[few:]]
    for deed in rng.sample(DEEDS, 10 if len(names) < 10 else 5 if len(names) < 20 else 2):
        who = rng.choice(running)
        if deed == "up" and spare:
            news = spare[: rng.randint(1, len(spare))]
            running, spare = [*running, *news], spare[len(news) :]
            yield [Start(new) for new in news], True
        elif deed == "down" and len(running) > 2 and kind != "static":
            running.remove(who)
            spare.append(who)
            yield [Close(who)], True
        elif deed == "crash":
            yield [Crash(who)], False
            yield [Start(who)], True
        elif deed == "restart" or deed == "roll":
            rolled = running[:4] if deed == "roll" else [who]
            for at, one in enumerate(rolled):
                if kind == "static":
                    yield [Close(one), Start(one)], at == len(rolled) - 1
                else:
                    yield [Close(one)], False
                    yield [Start(one)], at == len(rolled) - 1
    yield [Close(who) for who in running], False


def _told(lived: Iterator[tuple[list[Event], World, bool]]) -> Iterator[Stretch]:
    """Names with their marks, and times from 0, a millisecond or so apart."""
    rng = random.Random(1)
    for seen, world, long in lived:
        began, spent, events = seen[0].ts or 0, 0, list[Event]()
        for event in seen:
            spent += rng.randint(50, 1500)
            events.append(replace(_renamed(event, _marked), ts=(event.ts or 0) - began + spent))
        yield Stretch(tuple(events), tuple(_beats(world)), long)


def _beats(world: World) -> Iterator[Beat]:
    for client in world.clients:
        if client.mode == "running" and client.state is not None:
            member, instance = _member(client)
            told: dict[str, Any] = {"group": "orders", "generation": world.group.generation, "member": member, "client": client.name}
            told["instance"] = instance
            partitions = owned(client) if isinstance(client.state, consumer.Consumer) else ()
            beat = Heartbeat(**told)
            commit = Commit(**told, resources=partitions) if partitions else None
            yield Beat(_renamed(beat, _marked), _renamed(commit, _marked) if commit is not None else None)


def _member(client: Client) -> tuple[str, str | None]:
    state: Any = client.state
    return state.identity.member, getattr(client.config, "instance", None)


_MEMBER_ID = re.compile(r"(@i?[0-9]+)-([0-9]+)")


def _marked(text: str) -> str:
    """``@7-12``, the twelfth member id that the coordinator gave, to client ``@7``, becomes ``@7#000000000012``."""
    return _MEMBER_ID.sub(lambda found: f"{found[1]}#{int(found[2]):012d}", text)


def _renamed(event: Event, new: Callable[[str], str]) -> Event:
    return decode(json.loads(new(json.dumps(encode(event)))))


# Violations.


@dataclass(frozen=True, slots=True)
class Known:
    """A finding that is expected in ``group``."""

    rule: str
    group: str
    fingerprint: str
    severity: Severity


def violating(rule: str) -> Life:
    """The bundled trace that violates ``rule``, without any rest."""
    lines = (EXAMPLES / f"{rule}.violates.jsonl").read_text().splitlines()
    events = [decode(json.loads(line)) for line in lines]
    began = min((e.ts for e in events if e.ts is not None), default=0)
    placed = tuple(replace(e, ts=None if e.ts is None else e.ts - began, src=None) for e in events)
    return Life(rule, (Stretch(placed, ()),))


def rested(lived: Life) -> Life:
    """The same with steady traffic after it, and before it, as far as that makes no difference to what the rules find."""
    (only,) = lived.stretches
    for before, after in ((True, True), (False, True), (True, False)):
        stretches = (
            Stretch((), _present(only.events, at_first=True) if before else ()),
            replace(only, beats=_present(only.events) if after else ()),
        )
        longer = Life(lived.name, stretches)
        if any(s.beats for s in stretches) and _promises(longer) == _promises(lived):
            return longer
    return lived


def _promises(lived: Life) -> set[tuple[str, str]]:
    return {(f.rule, f.fingerprint) for f in _findings(lived, "orders") if f.severity != "info"}


def _findings(lived: Life, group: str, cluster: str = "default") -> tuple[Finding, ...]:
    """What the local engine finds in the life of one group, with little steady traffic."""
    now, events = STARTED, list[Event]()
    for stretch in lived.stretches:
        events.extend(replace(e, ts=None if e.ts is None else now + e.ts, group=group, cluster=cluster) for e in stretch.events)
        now += max((e.ts or 0 for e in stretch.events), default=0) + SECOND
        for beat in stretch.beats:
            steady = [e for e in (beat.heartbeat, beat.commit) if e is not None]
            events.extend(replace(e, ts=now + turn * HOUR // 2, group=group, cluster=cluster) for e in steady for turn in range(3))
        now += HOUR + BEFORE_A_CHANGE if stretch.beats else 0
    return tuple(f for g in check(events) for f in g.findings)


def _present(events: Sequence[Event], *, at_first: bool = False) -> tuple[Beat, ...]:
    """Who is in the last generation of the trace (or in the first one) and what it has there, as far as can be told."""
    numbered = [e for e in events if e.generation is not None and isinstance(e, GenerationStarted | Synced) and e.observer == "coordinator"]
    if not numbered or any(e.ts is None for e in events):
        return ()
    generation = min(e.generation or 0 for e in numbered) if at_first else max(e.generation or 0 for e in numbered)
    gone = set[str | None]() if at_first else {e.member for e in events if isinstance(e, Expire | Leave)}
    shares = {e.member: e for e in numbered if isinstance(e, Synced) and e.generation == generation and e.error == NONE}
    connect = any(r.startswith(("connector:", "task:")) for e in events for r in e.resources or ())
    beats: list[Beat] = []
    for member, synced in shares.items():
        if member is not None and member not in gone:
            told: dict[str, Any] = {n: getattr(synced, n) for n in ("group", "generation", "member", "instance", "client", "epoch")}
            commit = Commit(**told, resources=synced.resources) if synced.resources and not connect else None
            beats.append(Beat(Heartbeat(**told), commit))
    return tuple(beats)


# A life as columns.


@dataclass(frozen=True, slots=True)
class Columns:
    """A life's rows: all that happens, then what is repeated in each rest.

    ``stretches`` and ``beats`` say which rows are whose; ``every`` how often (µs) a beat is repeated. ``times`` are µs from the
    stretch's begin, ``boundary`` and ``own`` as `canonical.is_boundary` and whether a member saw it. ``generation`` and
    ``owned_generation`` are -1 where there is none.
    """

    table: Any
    resources: tuple[tuple[str, ...], ...]
    resources_of: Any
    stretches: tuple[slice, ...]
    beats: tuple[slice, ...]
    every: Any
    times: Any
    boundary: Any
    own: Any
    marked: frozenset[str]


@cache
def _columns(lived: Life) -> Columns:
    events, stretches, beats, every = list[Event](), list[slice](), list[slice](), list[int]()
    for stretch in lived.stretches:
        stretches.append(slice(len(events), len(events) + len(stretch.events)))
        events.extend(stretch.events)
    every.extend(0 for _ in events)
    for stretch in lived.stretches:
        begin = len(events)
        for beat in stretch.beats:
            steady = [(e, often) for e, often in ((beat.heartbeat, HEARTBEAT_EVERY), (beat.commit, COMMIT_EVERY)) if e is not None]
            events.extend(e for e, _ in steady)
            every.extend(often for _, often in steady)
        beats.append(slice(begin, len(events)))
    named: dict[tuple[str, ...], int] = {}
    of = [named.setdefault(tuple(e.resources or ()), len(named)) for e in events]
    place = {name: [None] * len(events) for name in canonical.schema().names[:7]}
    place["steady"] = [canonical.is_steady(e) for e in events]
    table = _arrow().Table.from_batches([columns.batch([replace(e, ts=None) for e in events], place, canonical.schema())])
    marked = (name for name in table.schema.names if any(mark in str(table.column(name).to_pylist()) for mark in "#@~"))
    return Columns(
        table=table,
        resources=tuple(named),
        resources_of=np.array(of),
        stretches=tuple(stretches),
        beats=tuple(beats),
        every=np.array(every, dtype=np.int64),
        times=np.array([e.ts or 0 for e in events], dtype=np.int64),
        boundary=np.array([canonical.is_boundary(e) for e in events]),
        own=np.array([e.observer in ("member", "harness") for e in events]),
        marked=frozenset(marked),
    )


def _named(lived: Life, group: str, cluster: str, names: Mapping[str, str], generations: int) -> Any:
    """The life's rows under a group's names, ``generations`` later than told; strings are dictionary-coded."""
    arrow, compute = _arrow(), _compute()
    cols = _columns(lived)
    rows = cols.table.num_rows

    def filled(text: str) -> str:
        for mark, name in names.items():
            text = text.replace(mark, name)
        return text

    keys = np.array([canonical.key(*map(filled, resources)) for resources in cols.resources], dtype=np.int64)
    constant = {"group": arrow.array([group]), "cluster": arrow.array([cluster])}
    arrays: list[Any] = []
    for field_ in cols.table.schema:
        array = cols.table.column(field_.name).combine_chunks()
        if field_.name in constant:
            array = arrow.DictionaryArray.from_arrays(arrow.array(np.zeros(rows, dtype=np.int32)), constant[field_.name])
        elif field_.name == "resources_key":
            array = arrow.array(keys[cols.resources_of])
        elif field_.name in ("generation", "owned_generation") and generations:
            array = compute.if_else(compute.greater_equal(array, 0), compute.add(array, generations), array)
        elif field_.name in cols.marked:
            array = _fill(array, names)
        if arrow.types.is_string(array.type):
            array = array.dictionary_encode()
        arrays.append(array)
    return arrow.Table.from_arrays(arrays, names=cols.table.schema.names)


def _fill(array: Any, names: Mapping[str, str]) -> Any:
    """The array with names in the place of marks, however deep its strings lie."""
    arrow, compute = _arrow(), _compute()
    kind = array.type
    if arrow.types.is_string(kind):
        for mark, name in names.items():
            array = compute.replace_substring(array, mark, name)
        return array
    if arrow.types.is_map(kind):
        return arrow.MapArray.from_arrays(array.offsets, _fill(array.keys, names), _fill(array.items, names), kind, mask=array.is_null())
    if arrow.types.is_list(kind):
        return arrow.ListArray.from_arrays(array.offsets, _fill(array.values, names), kind, mask=array.is_null())
    if arrow.types.is_struct(kind):
        fields = [kind.field(n) for n in range(kind.num_fields)]
        return arrow.StructArray.from_arrays(
            [_fill(array.field(n), names) for n in range(len(fields))], fields=fields, mask=array.is_null()
        )
    return array


# One group of the fleet.


@dataclass(frozen=True, slots=True)
class Group:
    """A life, and how it is lived: from ``began`` to ``ends`` (µs), with rests of ``rest`` µs on average; ``again`` and again."""

    name: str
    cluster: str
    broker: int
    lived: Life
    began: int
    ends: int
    rest: float
    seed: int
    again: bool = True

    @property
    def order(self) -> tuple[int, str, str]:
        return canonical.key(self.cluster, self.name), self.cluster, self.name


def _turns(group: Group, captures: Captures) -> Iterator[Any]:
    """The group's rows in canonical form and order, a million or so at a time."""
    rng = np.random.default_rng(group.seed)
    cols = _columns(group.lived)
    now, turn, seen = group.began, 0, _Seen()
    while now < group.ends and (group.again or not turn):
        names = {"#": f"-{_uuid(rng)}-", "@": f"{group.name}-", "~": f"{group.name.rpartition('-')[0]}."}
        table = _named(group.lived, group.name, group.cluster, names, turn * group.lived.generations)
        rows, times, rests, now = _placed(group, cols, now, rng)
        for idx, at in _chunks(cols, rows, times, rests, rng):
            yield _filled(group, cols, table, idx, at, captures, seen)
        turn += 1


def _uuid(rng: Any) -> str:
    """The first three quarters of a UUID."""
    digits = f"{int(rng.integers(1 << 62)):016x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:]}00"


_Rest = tuple[int, int, slice]


def _placed(group: Group, cols: Columns, now: int, rng: Any) -> tuple[Any, Any, list[_Rest], int]:
    """When everything happens, and the rests in between; and when the life is over."""
    rows, times, rests = list[Any](), list[Any](), list[_Rest]()
    for stretch, happens, beats in zip(group.lived.stretches, cols.stretches, cols.beats, strict=True):
        here = now + cols.times[happens]
        rows.append(np.arange(happens.start, happens.stop))
        times.append(here)
        now = int(here[-1]) + SECOND // 2 if len(here) else now
        if beats.stop > beats.start:
            rest = int(rng.uniform(0.3, 1.7) * group.rest) if stretch.long else int(rng.uniform(8, 40) * SECOND)
            rests.append((now, now + rest, beats))
            now += rest + BEFORE_A_CHANGE
            if now > group.ends:
                break
        elif group.again:
            now += int(rng.uniform(20, 90) * SECOND)
    return np.concatenate(rows), np.concatenate(times), rests, now


def _chunks(cols: Columns, rows: Any, times: Any, rests: Sequence[_Rest], rng: Any) -> Iterator[tuple[Any, Any]]:
    """All rows with their times, in order, about `CHUNK` at a time."""
    phases = [rng.integers(0, cols.every[beats]) for _, _, beats in rests]
    begin = int(times[0]) if len(times) else rests[0][0]
    end = max(int(times[-1]) if len(times) else begin, rests[-1][1] if rests else begin) + 1
    steady = sum((stop - start) * float((1 / cols.every[beats]).sum()) for start, stop, beats in rests)
    pieces = 1 + int((steady + len(rows)) / CHUNK)
    cuts = np.linspace(begin, end, pieces + 1).astype(np.int64)
    for first_, last in pairwise(cuts):
        low, high = np.searchsorted(times, (first_, last))
        which, when = [rows[low:high]], [times[low:high]]
        for (start, stop, beats), phase in zip(rests, phases, strict=True):
            if start < last and stop > first_:
                idx, at = _beaten(cols.every[beats], phase, start, max(start, int(first_)), min(stop, int(last)), rng)
                which.append(idx + beats.start)
                when.append(at)
        at = np.concatenate(when)
        order = np.argsort(at, kind="stable")
        if len(order):
            yield np.concatenate(which)[order], at[order]


def _beaten(every: Any, phase: Any, start: int, begin: int, end: int, rng: Any) -> tuple[Any, Any]:
    """Which beats come when between ``begin`` and ``end``; the k-th of each is due at ``start + phase + k * every``."""
    since = np.maximum(0, -(-(begin - start - phase) // every))
    most = int((end - begin) // every.min()) + 1
    due = start + phase[:, None] + every[:, None] * (since[:, None] + np.arange(most))
    kept = due < end
    which = np.broadcast_to(np.arange(len(every))[:, None], due.shape)[kept]
    at = due[kept]
    return which, np.minimum(at + rng.integers(0, SECOND // 3, len(at)), end - 1)


@dataclass(slots=True)
class _Seen:
    """How many boundaries a group's log has shown, in all and up to the begin of the hour that it is at."""

    boundaries: int = 0
    hour: int = -1
    before: int = 0


@dataclass(slots=True)
class _Capture:
    name: str
    number: int
    rows: int = 0
    first_ts: int | None = None


@dataclass(slots=True)
class Captures:
    """The captured files: of each broker one an hour, and one of its groups' members."""

    files: dict[tuple[int, bool, int], _Capture] = field(default_factory=dict[tuple[int, bool, int], _Capture])

    def of(self, broker: int, own: bool, hour: int) -> _Capture:
        at = broker, own, hour
        if at not in self.files:
            day, of_day = divmod(hour - STARTED // HOUR, 24)
            name = f"{'clients-' if own else ''}broker-{broker}/day-{day:03d}-{of_day:02d}.parquet"
            self.files[at] = _Capture(name, len(self.files))
        return self.files[at]


def _filled(group: Group, cols: Columns, table: Any, idx: Any, at: Any, captures: Captures, seen: _Seen) -> Any:
    """The rows ``idx`` of ``table``, happening ``at`` these times, with their places."""
    arrow, compute = _arrow(), _compute()
    hours, own = at // HOUR, cols.own[idx]
    number, pos = np.empty(len(idx), dtype=np.int32), np.empty(len(idx), dtype=np.int64)
    boundary = cols.boundary[idx]
    stretch = seen.boundaries + np.cumsum(boundary) - boundary
    borders = [*np.flatnonzero(np.diff(hours, prepend=hours[0] - 1)), len(idx)]
    for low, high in pairwise(borders):
        hour = int(hours[low])
        if hour != seen.hour:
            seen.hour, seen.before = hour, int(stretch[low])
        stretch[low:high] -= seen.before
        for theirs in (False, True):
            here = low + np.flatnonzero(own[low:high] == theirs)
            if len(here):
                capture = captures.of(group.broker, theirs, hour)
                number[here] = capture.number
                pos[here] = capture.rows + np.arange(len(here))
                capture.rows += len(here)
                if capture.first_ts is None:
                    capture.first_ts = int(at[here[0]])
    seen.boundaries += int(boundary.sum())
    stretch[own] = 0
    files = arrow.array([capture.name for capture in captures.files.values()])
    source = arrow.StructArray.from_arrays(
        [files.take(arrow.array(number)), arrow.array(pos + 1), arrow.array([""]).take(arrow.array(np.zeros(len(idx), dtype=np.int32)))],
        fields=[canonical.schema().field("src").type.field(n) for n in range(3)],
    )
    times = arrow.array(at)
    new = {
        "group_key": arrow.array(np.full(len(idx), group.order[0], dtype=np.int64)),
        "input": arrow.array(number),
        "pos": arrow.array(pos),
        "at": times,
        "ts": times.cast(arrow.timestamp("us", "UTC")),
        "stretch": arrow.array(stretch.astype(np.int32)),
        "src": source,
    }
    take, changes = arrow.array(idx), any(idx < cols.stretches[-1].stop)
    arrays: list[Any] = []
    for name in table.schema.names:
        if name in new:
            arrays.append(new[name])
        elif not changes and table.column(name).null_count and name in _NEVER_STEADY:
            arrays.append(arrow.nulls(len(idx), table.schema.field(name).type))
        else:
            arrays.append(compute.take(table.column(name).chunk(0), take))
    return arrow.Table.from_arrays(arrays, names=table.schema.names)


_NEVER_STEADY = frozenset(
    {"assignment", "revoked", "revoked_of", "members", "members_of", "topics", "owned", "protocols", "subscribed", "extra"}
)


# The data set.


class Writer:
    """Files of a batch, in row groups."""

    def __init__(self, out: Path, *, row_group: int = ROW_GROUP, file: int = FILE, **options: Any) -> None:
        self.out, self.row_group, self.file, self.options = out, row_group, file, _like_ingest() | options
        self.parts: list[Part] = []
        self.steady = 0
        self._held: list[Any] = []
        self._rows = 0
        self._open: Any = None
        (out / "batch-000").mkdir(parents=True)

    def add(self, table: Any) -> None:
        """Rows that come after all that were added before."""
        self._held.append(table)
        self._rows += table.num_rows
        self.steady += _compute().sum(table.column("steady")).as_py()
        while self._rows >= self.row_group:
            self._write()

    def close(self) -> None:
        """Write the rest."""
        while self._rows:
            self._write()
        if self._open is not None:
            self._open.close()

    def _write(self) -> None:
        arrow = _arrow()
        wanted, group = min(self.row_group, self._rows), list[Any]()
        self._rows -= wanted
        while wanted:
            head = self._held[0]
            group.append(head.slice(0, wanted))
            wanted -= group[-1].num_rows
            rest = head.slice(group[-1].num_rows)
            self._held[:1] = [rest] if rest.num_rows else []
        table = arrow.concat_tables(group).unify_dictionaries()
        path = f"batch-000/part-{len(self.parts):05d}.parquet"
        first_, last = _key(table, 0), _key(table, table.num_rows - 1)
        if self._open is None or self.parts[-1].rows + table.num_rows > self.file:
            if self._open is not None:
                self._open.close()
            self._open = _parquet().ParquetWriter(self.out / path, table.schema, **self.options)
            self.parts.append(Part(path=path, rows=0, batch=0, first=first_, last=last))
        self._open.write_table(table, row_group_size=self.row_group)
        self.parts[-1] = replace(self.parts[-1], rows=self.parts[-1].rows + table.num_rows, last=last)


_MANY = frozenset({"at", "ts", "pos", "src.line"})


def _like_ingest() -> dict[str, Any]:
    """As Spark writes: dictionaries, but for columns of too many different values."""
    empty = _arrow().BufferOutputStream()
    _parquet().write_table(canonical.schema().empty_table(), empty)
    names = [column.path for column in _parquet().ParquetFile(_arrow().BufferReader(empty.getvalue())).schema]
    return {"compression": "zstd", "store_schema": False, "use_dictionary": [name for name in names if name not in _MANY]}


def _key(table: Any, row: int) -> Key:
    return table.column("group_key")[row].as_py(), table.column("at")[row].as_py()


@dataclass(frozen=True, slots=True)
class Fleet:
    """What was written where, and the findings that are in it (those that inform: only the injected rules' own)."""

    path: Path
    events: int
    groups: int
    steady: int
    known: frozenset[Known]


def write(
    out: Path,
    *,
    events: float,
    seed: int = 1,
    rebalances_per_hour: float = REBALANCES_PER_HOUR,
    shapes: Sequence[Shape] = SHAPES,
    giant: bool = False,
    copies: int = 3,
    **options: Any,
) -> Fleet:
    """Write a data set of about ``events`` events to the new directory ``out``; with a ``giant``, one group has half of them.

    Each rule's violation comes in ``copies``, of which every second one has steady traffic around it. ``options`` are the writer's.
    """
    rng = random.Random(seed)
    groups = sorted(_fleet(rng, events, rebalances_per_hour, shapes, giant, copies), key=lambda planned: planned[0].order)
    writer, captures = Writer(out, **options), Captures()
    for group, _ in groups:
        for table in _turns(group, captures):
            writer.add(table)
    writer.close()
    _save(out, captures, writer.parts)
    known = frozenset(k for group, rule in groups if rule for k in _known(group, rule))
    return Fleet(out, sum(p.rows for p in writer.parts), len(groups), writer.steady, known)


def _known(group: Group, rule: str) -> Iterator[Known]:
    for found in _findings(group.lived, group.name, group.cluster):
        if found.severity != "info" or found.rule == rule:
            yield Known(found.rule, group.name, found.fingerprint, found.severity)


_SERVICES = ("orders", "payments", "shipping", "billing", "search", "fraud", "mail", "audit", "pricing", "stock", "clicks", "sessions")
_CLUSTERS = ("eu-west", "us-east")
_BROKERS = 3


def _fleet(
    rng: random.Random, events: float, rate: float, shapes: Sequence[Shape], giant: bool, copies: int
) -> Iterator[tuple[Group, str | None]]:
    """The groups, and for those with a violation the rule."""
    hours = min(24.0, max(0.5, events / (len(shapes) * 10_000)))
    names = (f"{rng.choice(_SERVICES)}-{n:05d}" for n in range(1 << 30))

    def group(lived: Life, hours: float, rest: float, *, again: bool = True) -> Group:
        broker = rng.randrange(len(_CLUSTERS) * _BROKERS)
        began = STARTED + int(rng.uniform(0, 600) * SECOND)
        ends = began + int(hours * HOUR)
        return Group(next(names), _CLUSTERS[broker // _BROKERS], broker, lived, began, ends, rest, rng.randrange(1 << 62), again)

    left = events
    around = min(hours, events * 0.1 / (len(RULES) * copies * 3000))
    for rule in RULES:
        for copy in range(copies):
            lived = rested(violating(rule)) if copy % 2 else violating(rule)
            left -= sum(len(s.beats) for s in lived.stretches) * around * 1900
            yield group(lived, 1e6, around * HOUR, again=False), rule
    if giant:
        lived = life(max((s for s in shapes if s.kind == "cooperative"), key=lambda s: s.members))
        rest, per_hour = _pace(lived, rate)
        yield group(lived, events / 2 / per_hour, rest), None
        left -= events / 2
    order = [*shapes]
    while left > 0:
        rng.shuffle(order)
        for shape in order:
            lived = life(shape)
            rest, per_hour = _pace(lived, rate)
            alive = min(hours, max(0.2, left / per_hour))
            yield group(lived, alive, rest), None
            left -= alive * per_hour
            if left <= 0:
                break


def _pace(lived: Life, rate: float) -> tuple[float, float]:
    """How long (µs) each long rest is on average for ``rate`` rebalances an hour, and how many events an hour that makes."""
    happens = sum(max((e.ts or 0 for e in s.events), default=0) for s in lived.stretches)
    rests = [
        (s.long, sum(1 / HEARTBEAT_EVERY + (1 / COMMIT_EVERY if b.commit else 0) for b in s.beats)) for s in lived.stretches if s.beats
    ]
    short, long = 24 * SECOND, sum(is_long for is_long, _ in rests)
    rest = max(5.0 * SECOND, (lived.rebalances / rate * HOUR - happens - short * (len(rests) - long)) / long)
    length = happens + sum((rest if is_long else short) + BEFORE_A_CHANGE for is_long, _ in rests)
    events = sum((rest if is_long else short) * often for is_long, often in rests) + sum(len(s.events) for s in lived.stretches)
    return rest, events / length * HOUR


def _save(out: Path, captures: Captures, parts: Sequence[Part]) -> None:
    inputs = tuple(
        Captured(
            entry=Input(path=c.name, format="parquet", lines=c.rows, events=c.rows),
            native=True,
            size=c.rows * 8,
            modified="2026-03-03T00:00:00Z",
            batch=0,
            first_ts=c.first_ts,
        )
        for c in captures.files.values()
    )
    (out / NAME).write_text(dumps(Manifest(inputs, tuple(parts))))


def _arrow() -> Any:
    return columns.pyarrow()


def _compute() -> Any:
    return importlib.import_module("pyarrow.compute")


def _parquet() -> Any:
    return importlib.import_module("pyarrow.parquet")


def main() -> None:
    """Write a fleet and say what is in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=float, default=1e6, help="about how many")
    parser.add_argument("--out", type=Path, required=True, help="directory to write")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rebalances-per-hour", type=float, default=REBALANCES_PER_HOUR, help=f"of each group; {CHURNING:.0f}: churning")
    parser.add_argument("--giant", action="store_true", help="one group has half of the events")
    asked = parser.parse_args()
    fleet = write(asked.out, events=asked.events, seed=asked.seed, rebalances_per_hour=asked.rebalances_per_hour, giant=asked.giant)
    print(
        f"{fleet.events:,} events of {fleet.groups} groups, {fleet.steady / fleet.events:.1%} of them steady, {len(fleet.known)} known findings"
    )


if __name__ == "__main__":
    main()
