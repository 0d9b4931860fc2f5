"""Reads captured files in Spark's tasks: the events of all of them, in no order, and an account of each file.

A task takes whole files, as a log's session remembers earlier lines.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial, reduce
from io import BytesIO
from typing import Any, cast

from ..readers import columns
from ..readers.files import Ledger, Stored, read_file
from ..readers.streams import bytes_to_read
from ..validate import NATIVE_FORMATS, account
from . import canonical
from .inputs import WHOLE, File, is_reached, opened
from .manifest import Captured, captured
from .storage import literal

PACK = 256 << 20
"""Bytes of the captures that one task reads, about."""
SMALL_PACK = 8 << 20
FILE_COST = 1 << 16
"""Opening a file costs as much as reading so many bytes."""

_TOO_LARGE = "larger than 2 GB, which Spark can't read whole from this file system: copy it to a local disk, or cut it into smaller files"

_Pack = list[tuple[int, File]]
"""Files that one task reads, by number."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How the files of a batch are read; ``count`` is told of events done."""

    batch: int
    format: str
    count: Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Staged:
    """The account of each file, by number; the events as a data frame of the canonical columns, and how many they are."""

    inputs: Mapping[int, Captured]
    events: Any = None
    rows: int = 0


def stage(spark: Any, url: str, files: dict[int, File], how: Reading) -> Staged:
    """Read ``files`` into Parquet at ``url``, in no order: a row for each event, and one for each file's account."""
    reach = {_head(file): is_reached(file.location) for file in {_head(f): f for f in files.values() if not f.is_local}.values()}
    apart = {i: file for i, file in files.items() if not (file.is_local or reach[_head(file)])}
    large = {i: file for i, file in apart.items() if file.size > WHOLE}
    schema = _spark_schema()
    frames: list[Any] = []
    if packed := _packs({i: file for i, file in files.items() if i not in apart}, spark.sparkContext.defaultParallelism):
        frames.append(spark.range(0, len(packed), 1, len(packed)).mapInArrow(partial(_read_packs, packed, how), schema))
    if small := {file.location: (i, file) for i, file in apart.items() if i not in large}:
        whole = spark.read.format("binaryFile").load([*map(literal, small)]).select("path", "content")
        frames.append(whole.mapInArrow(partial(_read_whole, small, how), schema))
    inputs = {
        i: _account(file, Ledger(file.path, "unknown", 0, 0, 0, 0, (), 0, f"{file.path}: {_TOO_LARGE}"), None, how.batch)
        for i, file in large.items()
    }
    if not frames:
        return Staged(inputs)
    reduce(_union, frames).write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(url)
    staged = spark.read.schema(schema).parquet(literal(url))
    for row in staged.where("account is not null").select("input", "account").collect():
        inputs[row.input] = captured(json.loads(row.account))
    events = staged.where("account is null").drop("account")
    return Staged(inputs, events, events.count())


def _union(one: Any, other: Any) -> Any:
    return one.unionByName(other)


def _head(file: File) -> str:
    """Scheme and host: files of one are reached alike."""
    return "/".join(file.location.split("/")[:3])


def _staged_schema() -> Any:
    """The canonical columns, and a file's account: its `Captured` as JSON."""
    return canonical.schema().append(columns.pyarrow().field("account", columns.pyarrow().string()))


def _spark_schema() -> Any:
    return importlib.import_module("pyspark.sql.pandas.types").from_arrow_schema(_staged_schema())


def _packs(files: dict[int, File], cores: int) -> list[_Pack]:
    """The files in packs of about equal weight, the heaviest first; neighbours stay together."""
    weights = {i: FILE_COST + bytes_to_read(file.path, file.size) for i, file in files.items()}
    limit = min(max(sum(weights.values()) // (4 * cores), SMALL_PACK), PACK)
    packs: list[tuple[int, _Pack]] = []
    for i, file in files.items():
        if packs and packs[-1][0] + weights[i] <= limit:
            weight, pack = packs.pop()
            packs.append((weight + weights[i], [*pack, (i, file)]))
        else:
            packs.append((weights[i], [(i, file)]))
    return [pack for _, pack in sorted(packs, key=lambda pack: -pack[0])]


def _read_packs(packs: Sequence[_Pack], how: Reading, rows: Iterable[Any]) -> Iterator[Any]:
    """In a task: the rows of the packs whose numbers ``rows`` hold."""
    return _joined(part for pack in _chosen(packs, rows) for i, file in pack for part in _read_at(i, file, how))


def _chosen(packs: Sequence[_Pack], rows: Iterable[Any]) -> Iterator[_Pack]:
    for some in rows:
        for number in some.column(0).to_pylist():
            yield packs[number]


def _read_at(number: int, file: File, how: Reading) -> Iterator[Any]:
    return _read(number, file, Stored(partial(opened, file.location), file.modified_at), how)


def _read_whole(numbers: dict[str, tuple[int, File]], how: Reading, rows: Iterable[Any]) -> Iterator[Any]:
    """In a task: the rows of the files whose contents ``rows`` hold."""
    contents = ((path.as_py(), content) for some in rows for path, content in zip(*some.columns, strict=True))
    for path, content in contents:
        i, file = numbers[path]
        stored = Stored(lambda content=content: cast(Any, BytesIO(content.as_buffer())), file.modified_at)
        yield from _joined(_read(i, file, stored, how))


def _joined(parts: Iterable[Any]) -> Iterator[Any]:
    """Record batches of the staged columns, of `canonical.ROWS` or more rows but for the last."""
    waiting: list[Any] = []
    for part in parts:
        waiting.append(part)
        if sum(some.num_rows for some in waiting) >= canonical.ROWS:
            yield from _one(waiting)
            waiting = []
    yield from _one(waiting)


def _one(parts: Sequence[Any]) -> list[Any]:
    arrow = columns.pyarrow()
    return arrow.concat_tables(map(arrow.Table.from_batches, ([part] for part in parts))).combine_chunks().to_batches() if parts else []


def _read(number: int, file: File, stored: Stored, how: Reading) -> Iterator[Any]:
    """The rows of one file, and last its account."""
    arrow = columns.pyarrow()
    reading = read_file(file.path, how.format, stored)
    placer = canonical.Placer(number)
    ledger = None
    try:
        for some in placer.batches(reading.events):
            how.count(some.num_rows)
            yield some.append_column("account", arrow.nulls(some.num_rows, arrow.string()))
    except (arrow.ArrowException, OverflowError, UnicodeError) as error:
        why = f"an event near line {reading.ledger.lines:,} can't be stored ({error}); what was read before counts"
        ledger = replace(reading.ledger, problem=f"{file.path}: {why}")
    account = json.dumps(asdict(_account(file, ledger or reading.ledger, placer.first_ts, how.batch)))
    yield arrow.RecordBatch.from_pylist([{"input": number, "account": account}], schema=_staged_schema())


def _account(file: File, ledger: Ledger, first_ts: int | None, batch: int) -> Captured:
    return Captured(
        entry=account(ledger),
        native=ledger.format in NATIVE_FORMATS,
        size=file.size,
        modified=file.modified_text,
        batch=batch,
        first_ts=first_ts,
        location=file.location,
    )
