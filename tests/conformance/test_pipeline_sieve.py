"""The sieve leaves out what changes nothing: the law on all sorts of traces, and each point of its semantics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kipcheck.conformance.assemble import Capture, assemble
from kipcheck.conformance.pipeline import canonical
from kipcheck.conformance.pipeline.extract import Store
from kipcheck.conformance.pipeline.manifest import Captured, ranks
from kipcheck.conformance.pipeline.settle import NeedsFull, settle
from kipcheck.conformance.pipeline.sieve import Level, misplaced, needs_full, select
from kipcheck.conformance.readers.files import read
from kipcheck.conformance.report import Input
from kipcheck.conformance.validate import NATIVE_FORMATS
from kipcheck.spec import GroupResult, check
from kipcheck.spec.check import Suspected
from kipcheck.spec.events import Assigned, Commit, Event, Expire, Gap, Heartbeat, Rebalance, Source
from kipcheck.spec.results import Settings
from tests.spec.healthy import STEPS, Group
from tests.spec.test_rounds import related

TRACES = Path(__file__).parents[2] / "traces"
LAW = settings(derandomize=True, deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
MS, SECOND = 1_000, 1_000_000
LEVELS: tuple[Level, ...] = ("coarse", "fine", "full")


def condense(table: Any, ranks: Sequence[int], native: Sequence[bool], *, level: Level = "coarse", clock_skew_ms: int = 1000) -> Any:
    """The kept rows of a table that has all canonical columns, with ``times`` and ``copies``."""
    kept = select(table, ranks, native, lambda: table.column("resources"), level=level, clock_skew_ms=clock_skew_ms)
    rows = table.take(pa.array(kept.rows))
    return rows.append_column("times", pa.array(kept.times)).append_column("copies", pa.array(kept.copies))


class DataSet:
    """Captures as canonical rows, in one table sorted like an ingested data set."""

    def __init__(self, captures: Sequence[Capture]) -> None:
        batches = [[*canonical.Placer(number).batches(capture.events)] for number, capture in enumerate(captures)]
        tables = [pa.Table.from_batches(some, canonical.schema()) for some in batches]
        self.captures = [replace(c, events=tuple(canonical.events(table))) for c, table in zip(captures, tables, strict=True)]
        """As they read from the rows."""
        self.native = [c.native for c in captures]
        self.ranks = ranks([_captured(c) for c in captures])
        whole = pa.concat_tables(tables)
        whole = whole.append_column("when", whole.column("at").fill_null(-(2**63)))
        order = [(name, "ascending") for name in ("group_key", "cluster", "group", "when", "input", "pos")]
        self.table = whole.sort_by(order).drop_columns(["when"])

    def ranges(self, chance: Random, pieces: int) -> Iterable[Any]:
        """Cut into ranges of (group_key, at), each from two batches that are sorted in themselves."""
        keys = list(zip(self.table.column("group_key").to_pylist(), self.table.column("at").to_pylist(), strict=True))
        places = [i for i, (before, now) in enumerate(pairwise(keys), 1) if before != now]
        cuts = sorted(chance.sample(places, min(pieces, len(places))))
        batch = {number: chance.random() < 0.5 for number in range(len(self.native))}
        for start, stop in pairwise([0, *cuts, len(keys)]):
            piece = self.table.slice(start, stop - start)
            later = pa.array([batch[i] for i in piece.column("input").to_pylist()], pa.bool_())
            yield pa.concat_tables([piece.filter(later), piece.filter(compute.invert(later))])

    def judge(
        self, level: Level = "coarse", chance: Random | None = None, pieces: int = 0
    ) -> dict[tuple[str, str], tuple[Level, GroupResult]]:
        """Each group's result by way of the sieve, and how fine that had to be."""
        found: dict[tuple[str, str], tuple[Level, GroupResult]] = {}
        some = [condense(r, self.ranks, self.native, level=level) for r in self.ranges(chance or Random(0), pieces)]
        kept = pa.concat_tables(some)
        names = list(zip(kept.column("cluster").to_pylist(), kept.column("group").to_pylist(), strict=True))
        for name in sorted(set(names)):
            rows = kept.filter(pa.array([n == name for n in names]))
            try:
                found[name] = level, self.settle(rows)
            except (Suspected, NeedsFull) as told:
                finer = "full" if isinstance(told, NeedsFull) else LEVELS[LEVELS.index(level) + 1]
                whole = self.table.filter(pa.array([n == name for n in self._names()]))
                found[name] = DataSet.judge(self._of(whole), finer, chance, pieces)[name]
        return found

    def settle(self, rows: Any) -> GroupResult:
        names = tuple(capture.path for capture in self.captures)
        return settle(rows, Store("", (), tuple(self.ranks), tuple(self.native), names), Settings())

    def _names(self) -> list[tuple[str, str]]:
        return list(zip(self.table.column("cluster").to_pylist(), self.table.column("group").to_pylist(), strict=True))

    def _of(self, table: Any) -> DataSet:
        other = DataSet.__new__(DataSet)
        other.captures, other.native, other.ranks, other.table = self.captures, self.native, self.ranks, table
        return other


def _captured(capture: Capture) -> Captured:
    first = next((e.ts for e in capture.events if e.ts is not None), None)
    return Captured(entry=Input(path=capture.path, format="x"), native=capture.native, size=0, modified="", batch=0, first_ts=first)


def assert_law(captures: Sequence[Capture], chance: Random | None = None, pieces: int = 0) -> dict[tuple[str, str], Level]:
    """The sieved data set is judged as the local engine judges the captures; at which level, by group."""
    data = DataSet(captures)
    expected = {(g.cluster, g.group): g for g in check(assemble(data.captures))}
    found = data.judge(chance=chance, pieces=pieces)
    assert {name: group for name, (_, group) in found.items()} == expected
    return {name: level for name, (level, _) in found.items()}


# Traces with many requests.


def busy(events: Sequence[Event], chance: Random, most: int = 12) -> list[Event]:
    """More steady requests: of whoever is named as a member by the coordinator, for a while after that, in the order of time."""
    more: list[tuple[int, int, Event]] = []
    last = 0
    for place, event in enumerate(events):
        last = event.ts if event.ts is not None else last
        more.append((last, place, event))
        if event.ts is None or event.observer != "coordinator" or not event.member or chance.random() < 0.6:
            continue
        step = chance.choice((0, 1, 50 * MS, SECOND, 3 * SECOND))
        kind = chance.choice((Heartbeat, Commit))
        request = kind(
            group=event.group,
            cluster=event.cluster,
            epoch=event.epoch,
            generation=event.generation if chance.random() < 0.9 else chance.choice((1, None)),
            member=event.member,
            instance=event.instance,
            client=event.client if chance.random() < 0.9 else "other",
            src=event.src,
            extra=chance.choice(({}, {"estimated": True})),
            seen_by=None if chance.random() < 0.9 else chance.choice(("coordinator", "member", "any")),
        )
        for n in range(1, chance.randrange(most)):
            resources = chance.choice((("orders-0",), ("orders-0",), ("orders-1",), (), None)) if kind is Commit else None
            more.append((event.ts + n * step, place, replace(request, ts=event.ts + n * step, resources=resources)))
    if chance.random() < 0.7:
        more.sort(key=lambda m: m[0])
    return [event for _, _, event in more]


def shipped(events: Sequence[Event], native: bool, chance: Random) -> list[Capture]:
    """The events as captured files: in parts, in copies, some with another clock, some without."""
    cuts = sorted(chance.sample(range(len(events) + 1), min(len(events) + 1, chance.randrange(3))))
    parts = [list(events[start:stop]) for start, stop in pairwise([0, *cuts, len(events)])]
    if chance.random() < 0.3:
        parts = [[e for e in events if e.observer == o] for o in ("coordinator", "member", "harness", "any")]
    if chance.random() < 0.4:
        source = list(chance.choice(parts))
        copied = source if chance.random() < 0.5 else [e for e in source if chance.random() < 0.7]
        parts.insert(chance.randrange(len(parts) + 1), copied)
    captures: list[Capture] = []
    stem = chance.choice(("server.log", "log"))
    for number, part in enumerate(parts):
        shift, untimed = chance.choice((0, 0, 0, 0, 7, -SECOND)), chance.random() < 0.02
        path = f"{stem}.{number}" if chance.random() < 0.7 else f"app-{number}"
        moved = [replace(e, ts=None if untimed or e.ts is None or chance.random() < 0.0005 else e.ts + shift) for e in part]
        sourced = [replace(e, src=Source(path, line, "")) for line, e in enumerate(moved, 1)]
        captures.append(Capture(path, sourced, native if chance.random() < 0.9 else not native))
    return captures


@cache
def bundled(folder: Path) -> tuple[Capture, ...]:
    readings = read([str(folder)])
    return tuple(Capture(r.path, tuple(r.events), native=r.ledger.format in NATIVE_FORMATS) for r in readings)


FOLDERS = [*sorted(p.parent for p in TRACES.glob("kafka-*/*/recording.json")), *sorted((TRACES / "rules").glob("*.jsonl"))]


@pytest.mark.parametrize("path", FOLDERS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_law_on_bundled_traces(path: Path) -> None:
    chance = Random(path.name)
    assert_law([replace(c, events=busy(c.events, chance, 40)) for c in bundled(path)], chance, 3)


@LAW
@given(st.lists(st.sampled_from(STEPS), max_size=8), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_law_on_healthy_groups(steps: list[str], cooperative: bool, named: bool, native: bool, seed: int) -> None:
    events, chance = Group(cooperative=cooperative, named=named).run(["dynamic", "static", *steps]), Random(seed)
    assert_law(shipped(busy(events, chance), native, chance), chance, chance.randrange(5))


@pytest.mark.parametrize("path", FOLDERS[::5], ids=lambda p: f"{p.parent.name}-{p.name}")
def test_law_where_hashes_tell_nothing_apart(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kipcheck.conformance.pipeline.sieve._ODD", np.uint64(0))
    chance = Random(path.name)
    copied = [c for capture in bundled(path) for c in (capture, replace(capture, path=f"{capture.path}.copy"))]
    assert_law([replace(c, events=busy(c.events, Random(place // 2), 20)) for place, c in enumerate(copied)], chance, 3)


@LAW
@given(st.lists(related(), min_size=1, max_size=2), st.booleans(), st.integers(0, 2**32))
def test_law_on_anything(groups: list[list[Event]], native: bool, seed: int) -> None:
    chance = Random(seed)
    events = [replace(e, group=f"g{n}") for n, some in enumerate(groups) for e in some]
    assert_law(shipped(busy(events, chance), native, chance), chance, chance.randrange(5))


# What is kept.

Row = tuple[str, str, int | None, int, int]
"""Kind, member, seconds, times, copies."""


def beat(seconds: float | None, member: str = "a", generation: int | None = 1, **fields: Any) -> Heartbeat:
    return Heartbeat(group="g", ts=_us(seconds), member=member, generation=generation, **fields)


def commit(seconds: float | None, *resources: str, member: str = "a", **fields: Any) -> Commit:
    return Commit(group="g", ts=_us(seconds), member=member, generation=1, resources=resources, **fields)


def _us(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * SECOND)


def data(*files: Sequence[Event], native: bool = True) -> DataSet:
    return DataSet([Capture(f"f{n}", [replace(e, src=Source(f"f{n}", 1)) for e in events], native) for n, events in enumerate(files)])


def kept(data: DataSet, level: Level = "coarse", **also: Any) -> list[Row]:
    """What is kept, in the order of time."""
    table = condense(data.table, data.ranks, data.native, level=level, **also)
    counts = zip(table.column("times").to_pylist(), table.column("copies").to_pylist(), strict=True)
    assert sum(table.column("times").to_pylist()) + sum(table.column("copies").to_pylist()) == data.table.num_rows
    return [
        (e.kind, e.member or "", None if e.ts is None else e.ts // SECOND, t, c)
        for e, (t, c) in zip(canonical.events(table), counts, strict=True)
    ]


def times(data: DataSet, level: Level = "coarse", **also: Any) -> list[tuple[int | None, int]]:
    return [(seconds, n) for _, _, seconds, n, _ in kept(data, level, **also)]


class TestRuns:
    def test_the_first_and_the_last_of_a_run_are_kept(self) -> None:
        assert times(data([beat(n) for n in range(5)])) == [(0, 1), (4, 4)]
        assert times(data([beat(0), beat(3)])) == [(0, 1), (3, 1)]
        assert times(data([beat(0)])) == [(0, 1)]
        assert not kept(data([]))

    def test_members_take_turns(self) -> None:
        rows = kept(data([beat(n, "ab"[n % 2]) for n in range(8)]))
        assert rows == [("heartbeat", m, n, t, 0) for m, n, t in (("a", 0, 1), ("b", 1, 1), ("a", 6, 3), ("b", 7, 3))]

    @pytest.mark.parametrize(
        "other",
        [
            {"member": "b"},
            {"generation": 2},
            {"generation": None},
            {"instance": "i"},
            {"client": "c"},
            {"epoch": 1},
            {"extra": {"estimated": True}},
            {"cluster": "x"},
        ],
        ids=lambda o: next(iter(o)),
    )
    def test_whatever_differs_makes_another_run(self, other: dict[str, Any]) -> None:
        events = [beat(0), beat(1), beat(2), beat(3, **other), beat(4, **other), beat(5, **other)]
        assert sorted(times(data(events))) == [(0, 1), (2, 2), (3, 1), (5, 2)]

    def test_a_request_between_that_differs_from_its_senders_others_cuts(self) -> None:
        assert times(data([beat(0), beat(1), beat(2, generation=2), beat(3), beat(4)])) == [(n, 1) for n in range(5)]

    def test_clients_without_a_member_id_have_runs_of_their_own(self) -> None:
        assert times(data([commit(n, member="", client="xy"[n % 2]) for n in range(8)])) == [(0, 1), (1, 1), (6, 3), (7, 3)]

    def test_files_have_runs_of_their_own(self) -> None:
        assert times(data([beat(0), beat(2), beat(4)], [beat(1), beat(3), beat(5)])) == [(0, 1), (1, 1), (4, 2), (5, 2)]

    def test_coarse_leaves_resources_out_of_account(self) -> None:
        commits = data([commit(0, "t-0"), commit(1, "t-1"), commit(2, "t-0")])
        assert times(commits) == [(0, 1), (2, 2)]
        assert times(commits, "fine") == times(commits, "full") == [(0, 1), (1, 1), (2, 1)]
        commits = data([commit(n, f"t-{n // 3}") for n in range(9)])
        assert times(commits, "fine") == [(0, 1), (1, 1), (2, 1), (3, 1), (5, 2), (6, 1), (8, 2)]

    @pytest.mark.parametrize("level", ["coarse", "fine"])
    def test_every_number_of_requests_adds_up(self, level: Level) -> None:
        events = busy([Rebalance(group="g", ts=n * 9 * SECOND, generation=n, member="ab"[n % 2]) for n in range(20)], Random(3), 30)
        assert len(kept(data(events, events[3:90]), level)) < 150


class TestBoundaries:
    BETWEEN = (Rebalance(group="g", ts=_us(2), generation=1), Gap(group="g", ts=_us(2)), beat(2, "z", error="REBALANCE_IN_PROGRESS"))

    @pytest.mark.parametrize("between", BETWEEN, ids=lambda e: e.kind)
    @pytest.mark.parametrize("apart", [False, True])
    def test_what_may_change_the_meaning_cuts(self, between: Event, apart: bool) -> None:
        beats: list[Event] = [beat(n + 0.5) for n in range(4)]
        files = [beats, [between]] if apart else [[*beats[:2], between, *beats[2:]]]
        assert times(data(*files)) == [(0, 1), (1, 1), (2, 1), (2, 1), (3, 1)]

    @pytest.mark.parametrize("seen", [Assigned(group="g", ts=_us(2), member="a"), beat(2, "a", seen_by="member")], ids=lambda e: e.kind)
    def test_what_a_member_saw_does_not(self, seen: Event) -> None:
        assert times(data([beat(0), beat(1), seen, beat(3), beat(4)])) == [(0, 1), (2, 1), (4, 3)]

    def test_neither_does_another_group(self) -> None:
        other = Rebalance(group="h", ts=_us(2), generation=1)
        assert sorted(times(data([beat(0), beat(1), other, beat(3), beat(4)]))) == [(0, 1), (2, 1), (4, 3)]

    def test_requests_of_the_same_moment_stand_apart(self) -> None:
        commits = [commit(1, f"t-{n}") for n in range(3)]
        files = [[commit(0), *commits, commit(2), commit(3), commit(4)], [Rebalance(group="g", ts=_us(1), generation=1)]]
        assert times(data(*files)) == [(0, 1), (1, 1), (1, 2), (1, 1), (2, 1), (4, 2)]

    def test_the_order_of_the_file_counts_too(self) -> None:
        late = Rebalance(group="g", ts=_us(9), generation=1)
        assert times(data([beat(0), beat(1), beat(2), late, beat(3), beat(4), beat(5)])) == [(0, 1), (2, 2), (3, 1), (5, 2), (9, 1)]

    def test_a_file_that_goes_back_in_time_keeps_what_is_first_and_last_in_it(self) -> None:
        assert times(data([beat(5), beat(6), beat(7), beat(1), beat(2), beat(3)])) == [(1, 1), (3, 2), (5, 1), (7, 2)]
        assert times(data([beat(7), beat(3), beat(9)])) == [(3, 1), (7, 1), (9, 1)]

    def test_made_up_ids_are_left_to_the_rules(self) -> None:
        assert len(kept(data([beat(n, "app@log#1") for n in range(5)]))) == 5


class TestWithoutTime:
    UNTIMED = Expire(group="g", member="b")

    def test_they_are_kept_and_everything_must_be_seen(self) -> None:
        some = data([beat(0), beat(1), beat(2), beat(None), beat(3)])
        assert times(some) == [(0, 1), (None, 1), (3, 3)]
        assert self.needs(some)
        assert self.needs(data([beat(0), beat(1), beat(2)], [self.UNTIMED]))

    def test_unless_nothing_was_left_out(self) -> None:
        assert not self.needs(data([beat(0), beat(1)], [self.UNTIMED]))
        assert not self.needs(data([beat(0), beat(1), beat(2), Assigned(group="g", member="a")]))
        assert not self.needs(data([beat(0), beat(1), beat(2)]))

    def test_a_log_whose_epoch_changes_between_requests_must_be_seen(self) -> None:
        events = [beat(n, epoch=n // 3) for n in range(6)]
        assert self.needs(data(events, native=False))
        assert not self.needs(data(events))
        events.insert(3, Rebalance(group="g", ts=_us(2.5), generation=1))
        assert not self.needs(data(events, native=False))

    @staticmethod
    def needs(data: DataSet) -> bool:
        return needs_full(condense(data.table, data.ranks, data.native), data.native)


class TestCopies:
    LOG = tuple(beat(n) for n in range(5))

    def test_a_log_handed_in_twice_counts_once(self) -> None:
        assert kept(data(self.LOG, self.LOG)) == [("heartbeat", "a", 0, 1, 0), ("heartbeat", "a", 4, 4, 5)]

    def test_full_leaves_them_to_the_rules(self) -> None:
        assert times(data(self.LOG, self.LOG), "full") == [(n // 2, 1) for n in range(10)]

    def test_the_one_that_the_local_engine_meets_first_is_kept(self) -> None:
        some = data(self.LOG, self.LOG)
        for order, file in (([0, 1], "f0"), ([1, 0], "f1")):
            assert {e.src.file for e in canonical.events(condense(some.table, order, some.native)) if e.src} == {file}

    def test_a_log_shipped_twice_keeps_what_shows_its_epochs(self) -> None:
        logs = data([beat(-1), *self.LOG], self.LOG, native=False)
        assert times(logs) == [(-1, 1), (0, 1), (0, 1), (1, 1), (3, 2), (4, 1), (4, 1)]
        assert sum(c for *_, c in kept(logs)) == 3

    def test_of_every_stretch(self) -> None:
        log = [*self.LOG[:3], Rebalance(group="g", ts=_us(2.5), generation=1), *self.LOG[3:]]
        assert [n for n, _ in times(data(log, log, native=False))] == [0, 0, 1, 2, 2, 2, 2, 3, 3, 4, 4]

    def test_copies_of_logs_whose_epochs_turn_out_to_differ_must_be_seen(self) -> None:
        assert misplaced([beat(0), beat(0, epoch=1)])
        assert not misplaced([beat(0), beat(0), beat(1, epoch=1), beat(0, "b", epoch=1)])

    def test_a_log_beside_a_trace_of_the_same_is_left_to_the_rules(self) -> None:
        both = DataSet([Capture(f"f{n}", [replace(e, src=Source("f", 1)) for e in self.LOG], native=n == 0) for n in range(2)])
        assert times(both) == [(n // 2, 1) for n in range(10)]

    def test_repetitions_in_one_file(self) -> None:
        for native in (True, False):
            assert kept(data([self.LOG[0], *self.LOG], native=native)) == [("heartbeat", "a", 0, 1, 0), ("heartbeat", "a", 4, 4, 1)]

    def test_what_extra_says_is_no_content(self) -> None:
        assert kept(data(self.LOG, [beat(2, extra={"estimated": True})])) == [("heartbeat", "a", 0, 1, 0), ("heartbeat", "a", 4, 4, 1)]

    @pytest.mark.parametrize("other", [beat(2, epoch=1), beat(2, seen_by="coordinator"), beat(2, client="c")])
    def test_other_content_is_no_copy(self, other: Event) -> None:
        assert {c for *_, c in kept(data(self.LOG, [other]))} == {0}

    def test_resources_count_and_not_their_hash(self) -> None:
        some = data(
            [commit(0, "t-0"), commit(1, "t-0"), commit(2, "t-0")], [commit(1, "t-1")], [replace(commit(1), resources=None)], [commit(1)]
        )
        place = some.table.schema.get_field_index("resources_key")
        some.table = some.table.set_column(place, "resources_key", pa.array([7] * some.table.num_rows))
        assert {(n, c) for *_, n, c in kept(some)} == {(1, 0)}

    def test_nothing_is_told_apart_by_resources_without_need(self) -> None:
        some = data(self.LOG)
        select(some.table, some.ranks, some.native, lambda: pytest.fail("resources were read"))


class TestFine:
    def test_a_run_is_cut_where_a_boundary_is_over_for_sure(self) -> None:
        some = data([Rebalance(group="g", ts=0, generation=1), *(beat(n / 2) for n in range(1, 9))])
        assert [n for _, n in times(some)] == [1, 1, 7]
        assert [n for _, n in times(some, "fine")] == [1, 1, 1, 1, 5]
        assert [n for _, n in times(some, "fine", clock_skew_ms=1999)] == [1, 1, 1, 1, 1, 4]

    def test_a_run_is_cut_where_another_begins(self) -> None:
        some = data([*(beat(n) for n in range(4)), beat(3.5, "b"), *(beat(n) for n in range(4, 8))])
        assert times(some, "fine", clock_skew_ms=0) == [(0, 1), (1, 1), (3, 2), (3, 1), (4, 1), (7, 3)]


class TestTables:
    def test_batches_need_not_be_sorted_together(self) -> None:
        events = busy([Rebalance(group="gh"[n % 2], ts=n * 9 * SECOND, generation=n, member="ab"[n % 2]) for n in range(20)], Random(3))
        some = data(events[::2], events[1::2], [beat(None)])
        mixed = pa.concat_tables([some.table.slice(60), some.table.slice(0, 60)])
        assert sorted(_of(mixed, some)) == sorted(_of(some.table, some))

    def test_texts_may_be_coded(self) -> None:
        events = busy([Rebalance(group="gh"[n % 2], ts=n * 9 * SECOND, generation=n, member="ab"[n % 2]) for n in range(20)], Random(3))
        some = data(events, events[:50])
        half = some.table.num_rows // 2
        coded = pa.concat_tables([_coded(some.table.slice(0, half)), _coded(some.table.slice(half))])
        assert _of(coded, some) == _of(some.table, some)


def _coded(table: Any) -> Any:
    names = ("kind", "cluster", "group", "member", "instance", "client", "seen_by", "extra")
    for name in names:
        table = table.set_column(table.schema.get_field_index(name), name, table.column(name).combine_chunks().dictionary_encode())
    return table


def _of(table: Any, data: DataSet) -> list[tuple[int, int, int, int]]:
    rows = condense(table, data.ranks, data.native)
    return list(zip(*(rows.column(name).to_pylist() for name in ("input", "pos", "times", "copies")), strict=True))
