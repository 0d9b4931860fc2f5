"""The manifest of an ingested data set: which captures went in, and where their events are. Without it there is no data set.

A data set is a directory of Parquet files in batches, one for each ingest. The rows of a batch are sorted, through all its
files, by (``group_key``, ``cluster``, ``group``, ``at``, ``input``, ``pos``), with an unknown ``at`` first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar, cast

from ..report import Input, MalformedLine

SCHEMA = "kipcheck.dataset/1"
NAME = "manifest.json"

_VERSION = re.compile(r"kipcheck\.dataset/(\d{1,9})")
_PART = re.compile(r"batch-\d{3,9}/[\w.-]+\.parquet")
_T = TypeVar("_T")

Key = tuple[int, int | None]
"""``group_key`` and ``at`` of a row."""


class DataSetError(Exception):
    """A directory can't be used as a data set; the text names it and says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """One captured file that went in; its place in `Manifest.inputs` is the ``input`` of its events.

    ``size`` in bytes and ``modified`` (RFC 3339) tell a file that has changed since. ``native``: its events carry their
    coordinator epochs. ``first_ts`` is the time of its first event that has one, in microseconds. ``location`` is where the
    file was: an absolute path or a URL.
    """

    entry: Input
    native: bool
    size: int
    modified: str
    batch: int
    first_ts: int | None
    location: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One Parquet file, by its path within the data set; ``first`` and ``last`` are the keys of its outer rows."""

    path: str
    rows: int
    batch: int
    first: Key
    last: Key


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a data set holds."""

    inputs: tuple[Captured, ...] = ()
    parts: tuple[Part, ...] = ()


def ranks(inputs: Sequence[Captured]) -> list[int]:
    """For each input its place in the order in which the local engine takes captures: see `assemble`.

    Traces in kipcheck's own format come first, as they were named; logs follow by the time of their first event.
    """
    places = range(len(inputs))
    ordered = sorted(places, key=lambda i: (True, _started(inputs[i]), inputs[i].entry.path) if not inputs[i].native else (False, i, ""))
    ranked = [0] * len(inputs)
    for rank, place in enumerate(ordered):
        ranked[place] = rank
    return ranked


def _started(captured: Captured) -> int:
    return captured.first_ts if captured.first_ts is not None else 1 << 62


def is_manifest(text: str) -> bool:
    """Whether this is the manifest of a data set, of whatever version."""
    return _version(_parsed(text)) is not None


def loads(text: str, where: str) -> Manifest:
    """The manifest in ``text``, of the data set ``where``. Raises `DataSetError`."""
    obj = _parsed(text)
    version = _version(obj)
    if version is None:
        raise DataSetError(f"{where}: {NAME} is not that of a data set")
    if version > 1:
        raise DataSetError(f"{where}: written by a newer kipcheck (data set version {version}, this one reads version 1): upgrade kipcheck")
    try:
        return Manifest(_all(obj, "inputs", captured), _all(obj, "parts", _part))
    except (KeyError, TypeError, ValueError) as error:
        raise DataSetError(f"{where}: {NAME} is damaged ({error}): ingest into a new directory") from None


def dumps(manifest: Manifest) -> str:
    """The inverse of `loads`."""
    row = {"schema": SCHEMA, "inputs": [asdict(i) for i in manifest.inputs], "parts": [asdict(p) for p in manifest.parts]}
    return json.dumps(row, indent=1)


def captured(row: Mapping[str, object]) -> Captured:
    """A `Captured` from its JSON object. Raises `KeyError`, `TypeError` or `ValueError`."""
    entry = cast(Mapping[str, object], row["entry"])
    problem, first_ts = entry["problem"], row["first_ts"]
    ledger = Input(
        path=_is(str, entry["path"]),
        format=_is(str, entry["format"]),
        lines=_is(int, entry["lines"]),
        events=_is(int, entry["events"]),
        irrelevant=_is(int, entry["irrelevant"]),
        malformed=_is(int, entry["malformed"]),
        malformed_at=_all(entry, "malformed_at", lambda at: MalformedLine(_is(int, at["line"]), _is(str, at["why"]))),
        problem=None if problem is None else _is(str, problem),
    )
    return Captured(
        entry=ledger,
        native=_is(bool, row["native"]),
        size=_is(int, row["size"]),
        modified=_is(str, row["modified"]),
        batch=_is(int, row["batch"]),
        first_ts=None if first_ts is None else _is(int, first_ts),
        location=_is(str, row["location"]),
    )


def _part(row: Mapping[str, object]) -> Part:
    path = _is(str, row["path"])
    if not _PART.fullmatch(path):
        raise ValueError(f"{path!r} is no file of a data set")
    return Part(path=path, rows=_is(int, row["rows"]), batch=_is(int, row["batch"]), first=_key(row["first"]), last=_key(row["last"]))


def _key(value: object) -> Key:
    group_key, at = cast(list[object], value)
    return _is(int, group_key), None if at is None else _is(int, at)


def _is(kind: type[_T], value: object) -> _T:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, found {value!r:.40}")
    return value


def _all(row: Mapping[str, object], name: str, of: Callable[[Mapping[str, object]], _T]) -> tuple[_T, ...]:
    return tuple(of(cast(Mapping[str, object], item)) for item in cast(list[object], row[name]))


def _parsed(text: str) -> Mapping[str, object]:
    try:
        obj: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast(dict[str, object], obj) if isinstance(obj, dict) else {}


def _version(obj: Mapping[str, object]) -> int | None:
    schema = obj.get("schema")
    match = _VERSION.fullmatch(schema) if isinstance(schema, str) else None
    return int(match[1]) if match else None
