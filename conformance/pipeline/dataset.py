"""Reads an ingested data set: what it is made of, and, without Spark, its captures for the local engine."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ...spec.events import Event
from ...spec.trace import MalformedEvent
from ..assemble import Capture
from ..readers import columns
from ..report import Input
from . import canonical
from .inputs import arrow_files, is_local, local
from .manifest import NAME, DataSetError, Manifest, is_manifest, loads
from .storage import Hadoop, Local

ROWS = 1 << 14
"""Rows decoded at once."""


def is_dataset(path: str, spark: Any = None) -> bool:
    """Whether ``path`` is a directory with the manifest of a data set, of whatever version.

    A URL is looked up by the session ``spark``, or without one by pyarrow where it knows the file system.
    """
    with suppress(OSError):
        text = _text(path, spark)
        return text is not None and is_manifest(text)
    return False


def load(path: str, spark: Any = None) -> Manifest:
    """The manifest of the data set ``path``; ``spark`` as in `is_dataset`. Raises `DataSetError`."""
    try:
        text = _text(path, spark)
    except OSError as error:
        raise DataSetError(f"{path}: {error.strerror or error}") from error
    if text is None:
        raise DataSetError(f"{path}: not a data set, as it has no {NAME}: make one with kipcheck ingest")
    return loads(text, path)


def captures(path: str) -> tuple[list[Capture], list[Input]]:
    """The captures in the data set ``path`` and their ledger, as reading the original files gives them. Needs pyarrow.

    All events are held in memory. Raises `DataSetError`.
    """
    manifest = load(path)
    found: list[list[tuple[int, Event]]] = [[] for _ in manifest.inputs]
    try:
        files, directory = arrow_files(path)
        for part in manifest.parts:
            source = columns.parquet().ParquetFile(f"{directory}/{part.path}", filesystem=files)
            for rows in source.iter_batches(batch_size=ROWS):
                numbers: list[int] = rows.column("input").to_pylist()
                places: list[int] = rows.column("pos").to_pylist()
                for number, pos, event in zip(numbers, places, canonical.events(rows), strict=True):
                    found[number].append((pos, event))
    except (OSError, IndexError, MalformedEvent, columns.pyarrow().ArrowException) as error:
        raise DataSetError(f"{path}: damaged ({error}): ingest its captures into a new directory") from error
    ordered = ([event for _, event in sorted(some, key=_pos)] for some in found)
    pairs = zip(manifest.inputs, ordered, strict=True)
    return [Capture(i.entry.path, events, native=i.native) for i, events in pairs], [i.entry for i in manifest.inputs]


def _pos(placed: tuple[int, Event]) -> int:
    return placed[0]


def _text(path: str, spark: Any) -> str | None:
    """The text of the manifest; None if there is none. Raises `OSError`."""
    if is_local(path):
        return Local(local(path)).read(NAME)
    if spark is not None:
        return Hadoop(path.rstrip("/"), spark).read(NAME)
    files, directory = arrow_files(path)
    try:
        with files.open_input_stream(f"{directory}/{NAME}") as stream:
            return stream.read().decode(errors="replace")
    except FileNotFoundError:
        return None
