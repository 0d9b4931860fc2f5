"""Runs sieve and settle on Spark: ranges of a data set in, a stream of group results out.

A task sieves one range; Spark brings together what was kept of each group; a task settles a group, or a heavy group's
share of the rules. Groups of which a kept request may not speak for those that it stands for go through again, sieved
more finely. What can't be read is named, and the groups that may lack rows because of it are left out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from ...spec.check import Suspected
from ...spec.results import GroupResult, Settings
from ..readers import columns
from . import canonical, plan
from .extract import Kept, Lost, Sieving, Store, decode, extract, reason
from .manifest import Manifest
from .results import decode as result_of
from .results import encode
from .runtime import watch
from .settle import BUNDLES, HEAVY, NeedsFull, bundle, merge, settle
from .sieve import Level

LEVELS: tuple[Level, ...] = ("coarse", "fine", "full")
"""How finely the passes sieve, one after another."""
BYTES = 16 << 20
"""How much a task hands to Spark at once."""
KEPT_PER_TASK = 50_000
"""Kept rows that a task settles, about: some seconds."""
SETTLING = 2000
"""No more tasks than this settle."""

_EXTRACTED = "group_key long, cluster string, `group` string, n long, payload binary, part int, why string"
_SETTLED = "cluster string, `group` string, again int, result string"
_GROUP = ("group_key", "cluster", "group")
_CONF = {"spark.sql.execution.arrow.maxRecordsPerBatch": "64"}
"""A message may hold many rows: Spark's usual number of them would be gigabytes."""

Name = tuple[str, str]
"""Cluster and group."""


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
    with _configured(spark), watch(spark, sum(part.rows for part in manifest.parts), "events") as done:
        for place, level in enumerate(LEVELS):
            names = turn[level]
            only = tuple(sorted({canonical.key(*name) for name in names})) if place else None
            pieces = ranges if only is None else plan.touching(ranges, only)
            if not pieces:
                continue
            how = Sieving(level, settings.clock_skew_ms, only)
            with _extracted(spark, store, pieces, how, None if place else done) as kept:
                for name, again, results in _settled(_sound(kept, manifest, missing), store, settings, spark, heavy):
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
def _configured(spark: Any) -> Generator[None]:
    before = {name: spark.conf.get(name) for name in _CONF}
    for name, value in _CONF.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@contextmanager
def _extracted(spark: Any, store: Store, pieces: Sequence[plan.Range], how: Sieving, done: Callable[[int], None] | None) -> Generator[Any]:
    """What is kept of each range, on the executors' disks: a row for each message (`Kept`) or unreadable file (`Lost`)."""
    disk = importlib.import_module("pyspark").StorageLevel.DISK_ONLY
    ranges = spark.range(0, len(pieces), 1, len(pieces))
    kept = ranges.mapInArrow(partial(_extract, store, pieces, how, done), _EXTRACTED).persist(disk)
    try:
        yield kept
    finally:
        kept.unpersist()


def _extract(
    store: Store, pieces: Sequence[plan.Range], how: Sieving, done: Callable[[int], None] | None, rows: Iterable[Any]
) -> Iterator[Any]:
    """In a task: what is kept of the ranges whose numbers ``rows`` hold, as record batches of about `BYTES`."""
    arrow = columns.pyarrow()
    number, text = arrow.int64(), arrow.string()
    fields = [("group_key", number), ("cluster", text), ("group", text), ("n", number), ("payload", arrow.binary())]
    schema = arrow.schema([*fields, ("part", arrow.int32()), ("why", text)])
    held: list[dict[str, object]] = []
    size = 0
    chosen: list[int] = [piece for some in rows for piece in some.column(0).to_pylist()]
    for piece in chosen:
        for one in extract(store, pieces[piece], how):
            held.append(_row(one))
            if isinstance(one, Kept):
                size += len(one.payload)
                if done is not None:
                    done(one.events)
            if size >= BYTES:
                yield arrow.RecordBatch.from_pylist(held, schema=schema)
                held, size = [], 0
    yield arrow.RecordBatch.from_pylist(held, schema=schema)


def _row(one: Kept | Lost) -> dict[str, object]:
    if isinstance(one, Lost):
        return {"part": one.part, "why": one.why}
    return {"group_key": one.group_key, "cluster": one.cluster, "group": one.group, "n": one.n, "payload": one.payload}


def _sound(kept: Any, manifest: Manifest, missing: Missing) -> Any:
    """The messages of the groups that lack no rows. A file's groups lie between its first and its last key."""
    missing.files |= {row["part"]: row["why"] for row in kept.where("part is not null").select("part", "why").distinct().collect()}
    kept = kept.where("part is null")
    for part in sorted(missing.files):
        first, last = manifest.parts[part].first[0], manifest.parts[part].last[0]
        here = importlib.import_module("pyspark.sql.functions").col("group_key").between(first, last)
        missing.groups |= {(row["cluster"], row["group"]) for row in kept.where(here).select("cluster", "group").distinct().collect()}
        kept = kept.where(~here)
    return kept


def _settled(kept: Any, store: Store, settings: Settings, spark: Any, heavy: int) -> Iterator[tuple[Name, int, list[GroupResult]]]:
    """Each group with the results of its bundles of rules; or, without, by how many levels more finely it must be sieved."""
    functions = importlib.import_module("pyspark.sql.functions")
    disk = importlib.import_module("pyspark").StorageLevel.DISK_ONLY
    sizes = kept.groupBy(*_GROUP).agg(functions.sum("n").alias("n"))
    giants = frozenset(row["group_key"] for row in sizes.where(f"n > {heavy}").select("group_key").collect())
    total = kept.agg(functions.sum("n").alias("n")).first()["n"] or 0
    bundles = functions.lit(1)
    if giants:
        bundles = functions.when(functions.col("group_key").isin(*giants), BUNDLES).otherwise(1)
    shared = kept.select(*_GROUP, "payload", functions.explode(functions.sequence(functions.lit(1), bundles)).alias("bundle"))
    tasks = min(max(spark.sparkContext.defaultParallelism, -(-total // KEPT_PER_TASK)), SETTLING)
    order = (*_GROUP, "bundle")
    by_group = shared.repartition(tasks, *order).sortWithinPartitions(*order)
    settled = by_group.mapInArrow(partial(_settle, store, settings, giants), _SETTLED).persist(disk)
    try:
        settled.count()
        waiting: dict[Name, list[tuple[int, str]]] = {}
        for row in settled.toLocalIterator(prefetchPartitions=True):
            name = row["cluster"], row["group"]
            shares = waiting.setdefault(name, [])
            shares.append((row["again"], row["result"]))
            if len(shares) == (BUNDLES if canonical.key(*name) in giants else 1):
                del waiting[name]
                again = max(levels for levels, _ in shares)
                yield name, again, [] if again else [result_of(result) for _, result in shares]
    finally:
        settled.unpersist()


def _settle(store: Store, settings: Settings, giants: frozenset[int], rows: Iterable[Any]) -> Iterator[Any]:
    """In a task: the results of groups, or of a heavy group's bundles of rules, whose messages come one after another."""
    arrow = columns.pyarrow()
    schema = arrow.schema([("cluster", arrow.string()), ("group", arrow.string()), ("again", arrow.int32()), ("result", arrow.string())])
    messages = (message for some in rows for message in zip(*(column.to_pylist() for column in some.columns), strict=True))
    for (group_key, cluster, group, number), shared in groupby(messages, key=itemgetter(0, 1, 2, 4)):
        again, result = 0, None
        try:
            events = decode(payload for _, _, _, payload, _ in shared)
            share = bundle(number - 1, BUNDLES if group_key in giants else 1, settings)
            result = encode(settle(events, store, share, measure=number == 1))
        except Suspected:
            again = 1
        except NeedsFull:
            again = len(LEVELS)
        row = {"cluster": cluster, "group": group, "again": again, "result": result}
        yield arrow.RecordBatch.from_pylist([row], schema=schema)
