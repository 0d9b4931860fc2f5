"""Runs sieve and settle on Spark: ranges of a data set in, a stream of group results out.

A task sieves one range; Spark brings together what was kept of each group; a task settles a group, or a heavy group's
share of the rules. Groups of which a kept request may not speak for those that it stands for go through again, sieved
more finely. What can't be read is named, and the groups that may lack rows because of it are left out.

What goes between tasks is bytes for Python alone, so they are plain RDDs: Spark's SQL would compile code for each step of it,
which takes longer than the rules of a small data set.
"""

from __future__ import annotations

import importlib
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...spec.check import Suspected
from ...spec.results import GroupResult, Settings
from ..readers import columns
from . import canonical, plan
from .extract import Kept, Lost, Sieving, Store, decode, extract, reason
from .manifest import Manifest
from .runtime import watch
from .settle import BUNDLES, HEAVY, NeedsFull, bundle, merge, settle
from .sieve import Level

LEVELS: tuple[Level, ...] = ("coarse", "fine", "full")
"""How finely the passes sieve, one after another."""
KEPT_PER_TASK = 10_000
"""Kept rows that a task settles, about: less than a second."""
SETTLING = 2000
"""No more tasks than this settle."""

Name = tuple[str, str]
"""Cluster and group."""
Share = tuple[int, Name, int]
"""A group's key and name, and which bundle of rules."""


@dataclass(slots=True)
class Missing:
    """What could not be read, by the place of its file in `Manifest.parts`, and the groups left out because of it."""

    files: dict[int, str] = field(default_factory=dict[int, str])
    groups: set[Name] = field(default_factory=set[Name])


def run(
    root: str, manifest: Manifest, settings: Settings, spark: Any, missing: Missing, *, rows: int = plan.ROWS, heavy: int = HEAVY
) -> Iterator[GroupResult]:
    """The result of each group of the data set ``root``, in no order; ``missing`` is filled in as they come.

    A range has about ``rows`` rows; more than ``heavy`` kept rows make a group be settled in several tasks.
    """
    store = Store.of(root, manifest)
    ranges = plan.ranges(_blocks(store, manifest, missing), rows)
    turn: dict[Level, set[Name]] = {level: set() for level in LEVELS}
    with watch(spark, sum(part.rows for part in manifest.parts), "events") as done:
        for place, level in enumerate(LEVELS):
            names = turn[level]
            only = tuple(sorted({canonical.key(*name) for name in names})) if place else None
            pieces = ranges if only is None else plan.touching(ranges, only)
            if not pieces:
                continue
            how = Sieving(level, settings.clock_skew_ms, only)
            numbers = spark.sparkContext.parallelize(range(len(pieces)), len(pieces))
            with _on_disk(numbers.mapPartitions(partial(_extract, store, pieces, how, None if place else done))) as kept:
                total, giants = _sizes(kept, pieces, heavy, missing)
                sound = _sound(kept, manifest, missing)
                tasks = min(max(spark.sparkContext.defaultParallelism, -(-total // KEPT_PER_TASK)), SETTLING)
                shared = sound.flatMap(partial(_shares, giants)).partitionBy(tasks, _spread)
                with _on_disk(shared.mapPartitions(partial(_settle, store, settings, giants))) as settled:
                    for name, again, results in _whole(settled, giants):
                        if place and name not in names:
                            continue
                        if again:
                            turn[LEVELS[min(place + again, len(LEVELS) - 1)]].add(name)
                        else:
                            yield merge(results)


def _blocks(store: Store, manifest: Manifest, missing: Missing) -> list[plan.Block]:
    found: list[plan.Block] = []
    for number, entry in enumerate(manifest.parts):
        try:
            metadata = store.file(number).metadata
            if metadata.num_rows != entry.rows:
                raise OSError(f"it holds {metadata.num_rows:,} rows, not {entry.rows:,} as the manifest says")
            found += plan.blocks(number, entry, metadata)
        except (OSError, columns.pyarrow().ArrowException) as error:
            missing.files[number] = reason(error)
    return found


@contextmanager
def _on_disk(rdd: Any) -> Generator[Any]:
    """The RDD, kept on the executors' disks meanwhile."""
    rdd.persist(importlib.import_module("pyspark").StorageLevel.DISK_ONLY)
    try:
        yield rdd
    finally:
        rdd.unpersist()


def _extract(
    store: Store, pieces: Sequence[plan.Range], how: Sieving, done: Callable[[int], None] | None, numbers: Iterable[int]
) -> Iterator[Kept | Lost]:
    """In a task: what is kept of the ranges of these numbers."""
    for number in numbers:
        for one in extract(store, pieces[number], how):
            if done is not None and isinstance(one, Kept):
                done(one.events)
            yield one


def _sizes(kept: Any, pieces: Sequence[plan.Range], heavy: int, missing: Missing) -> tuple[int, frozenset[int]]:
    """How many rows are kept, and which groups (by their keys) are heavy. Adds the files that can't be read to ``missing``."""
    total, sizes = 0, Counter[int]()
    for files, rows, large in kept.mapPartitionsWithIndex(partial(_size, pieces, heavy)).collect():
        missing.files |= files
        total += rows
        sizes.update(large)
    return total, frozenset(key for key, rows in sizes.items() if rows > heavy)


def _size(
    pieces: Sequence[plan.Range], heavy: int, number: int, ones: Iterable[Kept | Lost]
) -> Iterator[tuple[dict[int, str], int, dict[int, int]]]:
    """In a task: the files that can't be read; rows in all; and those of groups that are heavy or that other ranges share."""
    files: dict[int, str] = {}
    sizes = Counter[int]()
    for one in ones:
        if isinstance(one, Lost):
            files[one.part] = one.why
        else:
            sizes[one.group_key] += one.n
    shared = pieces[number].start[0], pieces[number].stop[0]
    yield files, sizes.total(), {key: rows for key, rows in sizes.items() if rows > heavy or key in shared}


def _sound(kept: Any, manifest: Manifest, missing: Missing) -> Any:
    """What is kept of the groups that lack no rows. A file's groups lie between its first and its last key."""
    bounds = [(manifest.parts[part].first[0], manifest.parts[part].last[0]) for part in sorted(missing.files)]
    if bounds:
        hurt = kept.filter(partial(_lies, bounds, True)).map(_name)
        missing.groups |= set(hurt.distinct().collect())
    return kept.filter(partial(_lies, bounds, False))


def _lies(bounds: Sequence[tuple[int, int]], within: bool, one: Kept | Lost) -> bool:
    """In a task: whether this is of a group, and its key is within one of the bounds, or not."""
    return isinstance(one, Kept) and any(first <= one.group_key <= last for first, last in bounds) == within


def _name(one: Kept) -> Name:
    return one.cluster, one.group


def _shares(giants: frozenset[int], one: Kept) -> Iterator[tuple[Share, bytes]]:
    """In a task: the rows for each bundle of rules."""
    for number in range(BUNDLES if one.group_key in giants else 1):
        yield (one.group_key, _name(one), number), one.payload


def _spread(share: Share) -> int:
    """Which task settles it: a heavy group's bundles go to as many."""
    group_key, _, number = share
    return group_key + number


def _settle(
    store: Store, settings: Settings, giants: frozenset[int], shared: Iterable[tuple[Share, bytes]]
) -> Iterator[tuple[Name, int, GroupResult | None]]:
    """In a task: the result of each group, or of a heavy group's bundle of rules; or by how many levels more finely it must be sieved."""
    payloads: dict[Share, list[bytes]] = defaultdict(list)
    for share, payload in shared:
        payloads[share].append(payload)
    while payloads:
        (group_key, name, number), theirs = payloads.popitem()
        try:
            share = bundle(number, BUNDLES if group_key in giants else 1, settings)
            yield name, 0, settle(decode(theirs), store, share, measure=number == 0)
        except Suspected:
            yield name, 1, None
        except NeedsFull:
            yield name, len(LEVELS), None


def _whole(settled: Any, giants: frozenset[int]) -> Iterator[tuple[Name, int, list[GroupResult]]]:
    """Each group with the results of its bundles of rules; or, without, by how many levels more finely it must be sieved."""
    settled.count()
    waiting: dict[Name, list[tuple[int, GroupResult]]] = defaultdict(list)
    for name, again, result in settled.toLocalIterator(prefetchPartitions=True):
        waiting[name].append((again, result))
        if len(waiting[name]) == (BUNDLES if canonical.key(*name) in giants else 1):
            shares = waiting.pop(name)
            again = max(levels for levels, _ in shares)
            yield name, again, [] if again else [result for _, result in shares]
