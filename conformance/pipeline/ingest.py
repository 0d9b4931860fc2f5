"""Ingest: captures of any kind become one data set, each batch sorted through all its files.

Spark reads the captures (a task takes whole files: a log's session remembers earlier lines), stages their events, and sorts
them. All this is written aside. A batch counts from the moment at which the manifest that names it replaces the one before.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from os.path import isdir
from shutil import disk_usage
from tempfile import gettempdir
from typing import Any
from uuid import uuid4

from ..readers.files import formats
from ..readers.paths import NoSuchFile
from ..report import Input
from . import runtime
from .dataset import is_dataset
from .inputs import File, found, is_local, local
from .manifest import NAME, Captured, DataSetError, Manifest, Part, dumps, loads
from .staging import Reading, Staged, stage
from .storage import Folder, Hadoop, Local, literal

ROWS = 2_000_000
"""Rows of a Parquet file, about."""
FEWER_ROWS = 250_000
"""Rows of a file where there are too few for all cores to have `ROWS`."""
ROW_GROUP = 1 << 19
ORDER = ("group_key", "cluster", "group", "at", "input", "pos")
_ASIDE = ".writing-"
_BATCH = re.compile(r"batch-\d{3,9}")
_SETTINGS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS", "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED"}
_DISK_FULL = ("No space left on device", "Disk quota exceeded", "ENOSPC")
_PARQUET = {
    "compression": "zstd",
    "parquet.block.size": str(64 << 20),
    "parquet.block.row.count.limit": str(ROW_GROUP),
    "parquet.dictionary.page.size": str(2 << 20),
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What one run did to the data set ``path``.

    ``inputs`` has the ledger of each file that was named, in that order, the ``skipped`` ones that were in already among
    them. ``events`` counts the event records that are ``new``; ``batches`` those in the data set now.
    """

    path: str
    inputs: tuple[Input, ...]
    new: int
    skipped: int
    events: int
    batches: int


def ingest(paths: Sequence[str], out: str, *, format: str = "auto", master: str | None = None, spark: Any = None) -> Ingested:
    """Add the captures under ``paths`` to the data set ``out``, a directory or URL that is made if it does not exist.

    ``format`` is one of `readers.files.formats`. Work is done on ``spark``, else on a session on ``master``. Files that are
    in already are passed over. What can't be read is named in `Ingested.inputs`, and the rest goes in.

    Raises `ValueError` for a ``format`` that is none, `DataSetError` if ``out`` can't be written or a file has changed since
    it went in, `SparkFailed` if Spark can't do its work. Whatever happens, ``out`` holds what it held before, or all.
    """
    if format not in formats():
        raise ValueError(f"unknown format {format!r}: expected one of {', '.join(formats())}")
    if data_set := next((path for path in paths if is_local(path) and is_dataset(path)), None):
        raise DataSetError(f"{data_set}: a data set already: validate it as it is, or ingest the captures that it was made from")
    with ExitStack() as stack:
        session = _once(lambda: stack.enter_context(runtime.session(master)) if spark is None else spark)
        folder = Local(local(out)) if is_local(out) else Hadoop(out.rstrip("/"), session())
        with _told(out), folder.held():
            return _ingest(folder, out, [*_within(found(paths, session), folder)], format, session)


def _ingest(folder: Folder, out: str, named: Sequence[File | NoSuchFile], format: str, session: Callable[[], Any]) -> Ingested:
    manifest = _opened(folder, out)
    numbers = {_location(known): number for number, known in enumerate(manifest.inputs)}
    places, new = _places(out, [file for file in named if isinstance(file, File)], manifest, numbers)
    events = 0
    if new:
        manifest, events = _written(folder, out, manifest, new, format, session())
    elif NAME not in folder.names():
        folder.replace(NAME, f"{_ASIDE}{NAME}", dumps(manifest))
    inputs = [
        Input(path=file.path, format="none", problem=file.problem)
        if isinstance(file, NoSuchFile)
        else manifest.inputs[places[file.location]].entry
        for file in named
    ]
    skipped = len(places) - len(new)
    batches = len({part.batch for part in manifest.parts})
    return Ingested(path=out, inputs=tuple(inputs), new=len(new), skipped=skipped, events=events, batches=batches)


def _once(start: Callable[[], Any]) -> Callable[[], Any]:
    started: list[Any] = []

    def get() -> Any:
        if not started:
            started.append(start())
        return started[0]

    return get


@contextmanager
def _told(out: str) -> Generator[None]:
    """What goes wrong with ``out`` in words for the user; a lost connection is one to Spark's JVM."""
    try:
        yield
    except ConnectionError:
        raise
    except OSError as error:
        raise DataSetError(f"{out}: {error.strerror or error}") from error


def _within(named: Iterable[File | NoSuchFile], folder: Folder) -> Iterator[File | NoSuchFile]:
    """``named`` without the data set's own files, which lie there if a directory above it was named."""
    own = f"{folder.url.removeprefix('file://')}/"
    return (file for file in named if isinstance(file, NoSuchFile) or not file.location.startswith(own))


def _opened(folder: Folder, out: str) -> Manifest:
    """The manifest of ``out``, freed of what interrupted runs left. Raises `DataSetError`."""
    names = folder.names()
    text = folder.read(NAME)
    left = [name for name in names if name.startswith(_ASIDE)]
    if text is None and any(name not in left and not (left and _BATCH.fullmatch(name)) for name in names):
        raise DataSetError(f"{out}: not empty, and no data set: take a new directory")
    manifest = Manifest() if text is None else loads(text, out)
    kept = {part.path.partition("/")[0] for part in manifest.parts}
    for name in (*(name for name in names if left and _BATCH.fullmatch(name) and name not in kept), *left):
        folder.remove(name)
    return manifest


def _location(known: Captured) -> str:
    return known.location or known.entry.path


def _places(out: str, files: Sequence[File], manifest: Manifest, numbers: dict[str, int]) -> tuple[dict[str, int], dict[int, File]]:
    """The number of each file, by location; and those that are to be read, by number. Raises `DataSetError`.

    One that gave nothing before because it could not be read is tried again, under its number.
    """
    places: dict[str, int] = {}
    new: dict[int, File] = {}
    for file in files:
        number = numbers.get(file.location)
        if number is None:
            number = len(numbers)
            numbers[file.location] = number
            new[number] = file
        else:
            known = manifest.inputs[number]
            if known.entry.problem is not None and not known.entry.events:
                new[number] = file
            elif (known.size, known.modified) != (file.size, file.modified_text):
                raise DataSetError(f"{file.path}: it has changed since it went into {out}: ingest all files into a new directory")
        places[file.location] = number
    return places, new


def _written(folder: Folder, out: str, manifest: Manifest, new: dict[int, File], format: str, spark: Any) -> tuple[Manifest, int]:
    """The manifest with the ``new`` files, once it counts; and how many event records they gave."""
    number = 1 + max((*(known.batch for known in manifest.inputs), *(part.batch for part in manifest.parts)), default=-1)
    batch, aside = f"batch-{number:03}", f"{_ASIDE}{uuid4().hex}"
    try:
        folder.make(aside)
        with _settings(spark), _disk_full(out, spark):
            with runtime.watch(spark, None, "events read") as count:
                staged = stage(spark, f"{folder.url}/{aside}/staged", new, Reading(number, format, count))
            with runtime.watch(spark, None, "sorting") as _:
                parts = _sort(spark, staged, f"{folder.url}/{aside}/{batch}", number)
        if len(staged.inputs) != len(new) or sum(part.rows for part in parts) != staged.rows:
            raise DataSetError(f"{out}: what Spark's executors wrote does not arrive here: take a directory that all of them share")
        known = {**dict(enumerate(manifest.inputs)), **staged.inputs}
        manifest = Manifest(tuple(known[i] for i in range(len(known))), (*manifest.parts, *parts))
        if parts:
            folder.move(f"{aside}/{batch}", batch)
        folder.replace(NAME, f"{aside}/{NAME}", dumps(manifest))
    finally:
        with suppress(OSError, DataSetError):
            _opened(folder, out)
    return manifest, staged.rows


@contextmanager
def _settings(spark: Any) -> Generator[None]:
    before = {name: spark.conf.get(name) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@contextmanager
def _disk_full(out: str, spark: Any) -> Generator[None]:
    try:
        yield
    except Exception as error:
        if any(words in str(error) for words in _DISK_FULL):
            raise DataSetError(f"no space left on the disk of {_fullest(out, spark)}: make room, or take another directory") from error
        raise


def _fullest(out: str, spark: Any) -> str:
    """``out``, or the folder in which Spark sorts, whichever has less space."""
    scratch = spark.sparkContext.getConf().get("spark.local.dir", gettempdir()).split(",")
    free = {folder: disk_usage(folder).free for folder in (local(out), *scratch) if is_local(folder) and isdir(folder)}
    return min(free, key=lambda folder: free[folder], default=out)


def _sort(spark: Any, staged: Staged, url: str, batch: int) -> tuple[Part, ...]:
    """Write the staged events at ``url`` in the order of `ORDER`; a group of any size is spread over the files."""
    if not staged.rows:
        return ()
    cores = spark.sparkContext.defaultParallelism
    files = max(-(-staged.rows // ROWS), min(cores, -(-staged.rows // FEWER_ROWS)))
    order = list(ORDER)
    staged.events.repartitionByRange(files, *order).sortWithinPartitions(*order).write.options(**_PARQUET).parquet(url)
    ends = spark.read.parquet(literal(url)).selectExpr("_metadata.file_name as name", "struct(group_key, at) as key")
    sql = importlib.import_module("pyspark.sql.functions")
    found = ends.groupBy("name").agg(sql.count("*").alias("rows"), sql.min("key").alias("first"), sql.max("key").alias("last")).collect()
    name = f"batch-{batch:03}"
    parts = [Part(path=f"{name}/{f.name}", rows=f.rows, batch=batch, first=tuple(f.first), last=tuple(f.last)) for f in found]
    return tuple(sorted(parts, key=lambda part: part.path))
