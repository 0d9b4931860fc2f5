"""Trace version 1 as columns (Arrow, Parquet): one column for each field of the JSON form.

Two fields have another shape by kind, so each has two columns: ``members`` (``generation``: list) and ``members_of``
(``assignment``: map), ``revoked`` (``synced``: list) and ``revoked_of`` (``sync``: map). Fields that trace version 1
does not name are together in ``extra``, as JSON: an event's, and a member's in ``members_of``.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any, cast

from ...spec.events import KINDS, NONE, Event, MemberInfo, Resources, Source
from ...spec.trace import FIRST_TS, LAST_TS, MalformedEvent, decode

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
_TWO_SHAPES = ("members", "revoked")
_OBSERVERS = frozenset({None, "coordinator", "member", "harness", "any"})
_USUAL: Mapping[str, object] = {"cluster": "default", "epoch": 0, "error": NONE, "times": 1}
"""What null stands for in the column of a field that is never None."""

_EVERY = tuple(f.name for f in fields(Event) if f.name != "times")
_SHAPED: Mapping[tuple[str, str], str] = {("assignment", "members"): "members_of", ("sync", "revoked"): "revoked_of"}
_COLUMNS: Mapping[str, Mapping[str, str]] = {
    kind: {f.name: _SHAPED.get((kind, f.name), f.name) for f in fields(record)} for kind, record in KINDS.items()
}
"""The column of each field of each kind."""


def pyarrow() -> Any:
    """The package, which is optional. Raises `OSError` that says how to install it."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        raise OSError("Parquet needs pyarrow: pip install 'kipcheck[spark]'") from None


def parquet() -> Any:
    """Its module for Parquet files. Raises `OSError` like `pyarrow`."""
    return importlib.import_module(f"{pyarrow().__name__}.parquet")


@cache
def schema() -> Any:
    """The Arrow schema of trace version 1. Times are microseconds UTC."""
    arrow = pyarrow()
    text, number = arrow.string(), arrow.int64()
    texts = arrow.list_(text)
    shares = arrow.map_(text, texts)
    member = [("instance", text), ("session_timeout_ms", number), ("subscribed", texts), ("owned", texts), ("extra", text)]
    source = arrow.struct([("file", text), ("line", number), ("text", text)])
    return arrow.schema(
        [
            ("kind", text),
            ("group", text),
            ("ts", arrow.timestamp("us", "UTC")),
            ("cluster", text),
            ("epoch", number),
            ("generation", number),
            ("member", text),
            ("instance", text),
            ("client", text),
            ("resources", texts),
            ("src", source),
            ("seen_by", text),
            ("session_timeout_ms", number),
            ("rebalance_timeout_ms", number),
            ("protocols", texts),
            ("subscribed", texts),
            ("owned", texts),
            ("owned_generation", number),
            ("rack", text),
            ("leader", text),
            ("protocol", text),
            ("error", text),
            ("assignment", shares),
            ("revoked", texts),
            ("revoked_of", shares),
            ("delay_ms", number),
            ("reason", text),
            ("members", texts),
            ("members_of", arrow.map_(text, arrow.struct(member))),
            ("old_member", text),
            ("topics", arrow.map_(text, number)),
            ("extra", text),
        ]
    )


def batch(events: Sequence[Event], also: Mapping[str, Sequence[object]] | None = None, to: Any = None) -> Any:
    """``events`` as one Arrow record batch of the schema ``to`` (`schema` unless said), whose further columns ``also`` holds."""
    arrow, to = pyarrow(), to or schema()
    values: dict[str, Sequence[Any]] = {**_by_column(events), **(also or {})}
    arrays = [_array(arrow, values[f.name], f.type) if f.name in values else arrow.nulls(len(events), f.type) for f in to]
    return arrow.RecordBatch.from_arrays(arrays, schema=to)


def _by_column(events: Sequence[Event]) -> dict[str, list[Any]]:
    """The columns that these events fill."""
    values: dict[str, list[Any]] = {name: [*map(attrgetter(name), events)] for name in ("kind", *_EVERY)}
    values["extra"] = [*map(_packed, values["extra"])]
    for kind, places in _places(values["kind"]).items():
        for name, column in _COLUMNS[kind].items():
            if name not in _EVERY and name != "times":
                filled = values.setdefault(column, [None] * len(events))
                for place in places:
                    filled[place] = getattr(events[place], name)
    return values


def _places(kinds: Sequence[str]) -> dict[str, list[int]]:
    """Where the events of each kind are."""
    places: dict[str, list[int]] = {}
    for place, kind in enumerate(kinds):
        places.setdefault(kind, []).append(place)
    return places


def _packed(extra: Mapping[str, object]) -> str | None:
    return _ENCODER.encode(dict(extra)) if extra else None


def _array(arrow: Any, values: Sequence[Any], kind: Any) -> Any:
    """Python values as an Arrow array: nested ones as flat arrays with offsets, which is many times faster than one by one."""
    if arrow.types.is_list(kind):
        items = _array(arrow, [*chain.from_iterable(filter(None, values))], kind.value_type)
        return arrow.ListArray.from_arrays(_offsets(arrow, values), items)
    if arrow.types.is_map(kind):
        keys = _array(arrow, [key for value in values if value for key in value], kind.key_type)
        items = _array(arrow, [item for value in values if value for item in value.values()], kind.item_type)
        return arrow.MapArray.from_arrays(_offsets(arrow, values), keys, items)
    if arrow.types.is_struct(kind):
        gets = [_packed_of if f.name == "extra" else attrgetter(f.name) for f in kind]
        parts = [[None if value is None else get(value) for value in values] for get in gets]
        missing = arrow.array([value is None for value in values], arrow.bool_())
        arrays = [_array(arrow, part, f.type) for part, f in zip(parts, kind, strict=True)]
        return arrow.StructArray.from_arrays(arrays, fields=[*kind], mask=missing)
    return arrow.array(values, kind)


def _packed_of(info: MemberInfo) -> str | None:
    return _packed(info.extra)


def _offsets(arrow: Any, values: Iterable[Sequence[object] | None]) -> Any:
    """Where each value begins among all their items, null for one that is None, and where the last one ends."""
    offsets: list[int | None] = []
    end = 0
    for value in values:
        if value is None:
            offsets.append(None)
        else:
            offsets.append(end)
            end += len(value)
    return arrow.array([*offsets, end], arrow.int32())


def records(rows: Any) -> list[Event]:
    """The events of an Arrow record batch of columns that `batch` made, with ``times`` if there is such a column.

    Unlike `events` this trusts that a reader wrote them: the columns' types are enough, no name is looked for in ``extra``,
    and an event without a source stays so. Equal values are one object. Raises `MalformedEvent` for what `batch` never makes.
    """
    arrow, types = pyarrow(), _types()
    columns = {
        name: _values(arrow, _typed(arrow, column, types[name], name), name)
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
        if name in types and column.null_count < len(column)
    }
    made: list[Any] = [None] * rows.num_rows
    if not all(columns.get("group", made)):
        raise MalformedEvent("group: expected a non-empty string, found nothing")
    if not _OBSERVERS.issuperset(columns.get("seen_by", ())):
        raise MalformedEvent("seen_by: expected coordinator, member, harness or any")
    times = [ts for ts in columns.get("ts", ()) if ts is not None]
    if times and not FIRST_TS <= min(times) <= max(times) <= LAST_TS:
        raise MalformedEvent("ts: outside the years 1 to 9999 UTC")
    columns["extra"] = _extras(columns.get("extra", made))
    for kind, places in _places(columns.get("kind", made)).items():
        if kind not in KINDS:
            raise MalformedEvent(f"kind: expected one of {', '.join(KINDS)}, found {str(kind)[:40]!r}")
        make: Callable[..., Event] = KINDS[kind]
        there = {name: columns[column] for name, column in _COLUMNS[kind].items() if column in columns}
        told = [_told(name, [column[place] for place in places]) for name, column in there.items()]
        for place, values in zip(places, zip(*told, strict=True), strict=True):
            made[place] = make(**dict(zip(there, values, strict=True)))
    return made


@cache
def _types() -> Mapping[str, Any]:
    return {column.name: column.type for column in schema()} | {"times": pyarrow().int64()}


def _typed(arrow: Any, column: Any, wanted: Any, name: str) -> Any:
    if wanted == (column.type.value_type if arrow.types.is_dictionary(column.type) else column.type):
        return column
    try:
        return column.cast(wanted)
    except arrow.lib.ArrowException:
        raise MalformedEvent(f"{name}: expected {wanted}, found {column.type}") from None


def _values(arrow: Any, column: Any, name: str) -> list[Any]:
    """The Python values of an Arrow array in the column ``name``: lists as tuples, maps as dictionaries, and records."""
    types = arrow.types
    if types.is_dictionary(column.type):
        known = _values(arrow, column.dictionary, name)
        return [None if at is None else known[at] for at in column.indices.to_pylist()]
    if types.is_list(column.type):
        items = _whole(arrow, column.values, name)
        return _shared(None if span is None else tuple(items[span]) for span in _spans(column))
    if types.is_map(column.type):
        keys, items = _whole(arrow, column.keys, name), _whole(arrow, column.items, name)
        return [None if span is None else dict(zip(keys[span], items[span], strict=True)) for span in _spans(column)]
    if types.is_struct(column.type):
        parts = zip(*(_values(arrow, part, name) for part in column.flatten()), strict=True)
        make = _source if name == "src" else _member
        return [make(*part) if there else None for part, there in zip(parts, column.is_valid().to_pylist(), strict=True)]
    try:
        return _shared((column.cast("int64") if types.is_timestamp(column.type) else column).to_pylist())
    except UnicodeDecodeError:
        raise MalformedEvent(f"{name}: not text in UTF-8") from None


def _whole(arrow: Any, items: Any, name: str) -> list[Any]:
    if items.null_count:
        raise MalformedEvent(f"{name}: expected no null within")
    return _values(arrow, items, name)


def _spans(column: Any) -> list[slice | None]:
    """Where the items of each value of a list or map array are, None for null."""
    ends = pairwise(column.offsets.to_pylist())
    return [slice(*span) if there else None for span, there in zip(ends, column.is_valid().to_pylist(), strict=True)]


def _shared(values: Iterable[Any]) -> list[Any]:
    """The values, equal ones as one object: the same names stand in event after event."""
    known: dict[Any, Any] = {}
    return [known.setdefault(value, value) for value in values]


def _source(file: str | None, line: int | None, text: str | None) -> Source:
    if file is None or (line is not None and line < 0):
        raise MalformedEvent("src: expected a file and a line from 0")
    return Source(file, line or 0, text or "")


def _member(
    instance: str | None, timeout: int | None, subscribed: Resources | None, owned: Resources | None, extra: str | None
) -> MemberInfo:
    return MemberInfo(instance, timeout, subscribed, owned, {} if extra is None else _extra(extra))


def _extras(texts: Iterable[str | None]) -> list[Mapping[str, object]]:
    known: dict[str | None, Mapping[str, object]] = {None: {}}
    return [known[text] if text in known else known.setdefault(text, _extra(text)) for text in texts]


def _extra(text: object) -> dict[str, object]:
    """What a column ``extra`` holds. Raises `MalformedEvent`."""
    try:
        extra: object = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        extra = None
    if not isinstance(extra, dict):
        raise MalformedEvent("extra: expected a JSON object in a string")
    return cast(dict[str, object], extra)


def _told(name: str, values: list[Any]) -> list[Any]:
    usual = _USUAL.get(name)
    return values if usual is None else [usual if value is None else value for value in values]


def events(rows: Any, file: str = "", first: int = 1) -> Iterator[Event | MalformedEvent]:
    """The event in each row of an Arrow record batch, or why it holds none; columns may be missing, unknown ones go to ``extra``.

    A row without a source of its own is line ``first`` (and so on) of ``file``.
    """
    columns = {name: _plain(column) for name, column in zip(rows.schema.names, rows.columns, strict=True)}
    for index in range(rows.num_rows):
        row = {name: column[index] for name, column in columns.items() if column[index] is not None}
        try:
            yield decode(_fields(row), Source(file, first + index))
        except MalformedEvent as malformed:
            yield malformed


def _plain(column: Any) -> list[object]:
    arrow = pyarrow()
    if arrow.types.is_timestamp(column.type):
        column = column.cast(arrow.timestamp("us", "UTC"), safe=False).cast(arrow.string())
    values: list[object] = column.to_pylist(maps_as_pydicts="lossy")
    return values


def _members(value: object) -> object:
    if not isinstance(value, dict):
        return value
    infos = cast(dict[str, object], value).items()
    return {m: _unpacked(cast(dict[str, object], info)) if isinstance(info, dict) else info for m, info in infos}


def _unpacked(row: dict[str, object]) -> dict[str, object]:
    """The row with what its ``extra`` holds as fields of its own. Raises `MalformedEvent`."""
    packed = row.pop("extra", None)
    if packed is None:
        return row
    return _extra(packed) | row


def _fields(row: dict[str, object]) -> dict[str, object]:
    for name in _TWO_SHAPES:
        if (value := row.pop(f"{name}_of", None)) is not None:
            row[name] = _members(value) if name == "members" else value
    return _unpacked(row)
