"""Trace version 1 in JSON Lines and in Parquet: reading and writing.

Parquet has the columns of the JSON fields. Two fields have another shape by kind, so each has two columns: ``members``
(``generation``: list) and ``members_of`` (``assignment``: map), ``revoked`` (``synced``: list) and ``revoked_of``
(``sync``: map). Fields that trace version 1 does not name are together in ``extra``, as JSON.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, BinaryIO, NoReturn, cast

from ...spec.events import Event, Source
from ...spec.trace import MalformedEvent, decode, encode
from . import detect
from .scan import TEXT_KEPT, TOO_LONG, blocks, whole_lines
from .whole import Tally, WholeFileReader

ROWS = 1 << 14
"""Parquet rows held at once."""

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_TWO_SHAPES = ("members", "revoked")


class _JsonLines:
    """One JSON object per line; blank lines are irrelevant."""

    name = detect.NATIVE

    def read(self, stream: BinaryIO, file: str, tally: Tally) -> Iterator[Event]:
        for block in whole_lines(blocks(stream)):
            if block is None:
                tally.broken(tally.lines + 1, TOO_LONG)
                continue
            for line in block.removesuffix(b"\n").split(b"\n"):
                if not line.strip():
                    tally.skipped()
                    continue
                number = tally.lines + 1
                try:
                    event = _event(line, file, number)
                except MalformedEvent as malformed:
                    tally.broken(number, str(malformed))
                else:
                    tally.took()
                    yield event


def _no_constant(name: str) -> NoReturn:
    raise MalformedEvent(f"{name} is no JSON value")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def _event(line: bytes, file: str, number: int) -> Event:
    try:
        text = line.decode().removeprefix("\ufeff").strip()
        row: object = _DECODER.decode(text)
        if _SURROGATE.search(line):
            json.dumps(row, ensure_ascii=False).encode()
    except MalformedEvent:
        raise
    except UnicodeError:
        raise MalformedEvent("not text in UTF-8") from None
    except json.JSONDecodeError as error:
        raise MalformedEvent(f"not a JSON object: {error.msg} at character {error.pos + 1}") from None
    except ValueError:
        raise MalformedEvent("not a JSON object: a number has too many digits") from None
    except RecursionError:
        raise MalformedEvent("not a JSON object: nested too deep") from None
    return decode(row, Source(file, number, text[:TEXT_KEPT]))


def write_json_lines(events: Iterable[Event], stream: BinaryIO) -> None:
    """Write ``events`` to ``stream``, one JSON object per line."""
    for event in events:
        stream.write(_ENCODER.encode(encode(event)).encode() + b"\n")


class _Parquet:
    """A row is a line. Needs pyarrow, and a file that is not compressed as a whole."""

    name = detect.PARQUET

    def read(self, stream: BinaryIO, file: str, tally: Tally) -> Iterator[Event]:
        if not stream.seekable():
            raise OSError("a Parquet file is read in place: decompress it first")
        arrow = _pyarrow()
        try:
            source = _parquet(arrow).ParquetFile(stream)
            for batch in source.iter_batches(batch_size=ROWS):
                yield from _batch_events(arrow, batch, file, tally)
        except (arrow.lib.ArrowException, UnicodeDecodeError) as error:
            raise OSError(f"damaged Parquet file: {error}") from None


def _batch_events(arrow: Any, batch: Any, file: str, tally: Tally) -> Iterator[Event]:
    columns = {name: _plain_column(arrow, name, column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
    for index in range(batch.num_rows):
        number = tally.lines + 1
        try:
            event = decode(_row(columns, index), Source(file, number))
        except MalformedEvent as malformed:
            tally.broken(number, str(malformed))
        else:
            tally.took()
            yield event


def _plain_column(arrow: Any, name: str, column: Any) -> list[object]:
    kind = column.type
    if arrow.types.is_timestamp(kind):
        return column.cast(arrow.timestamp("us", "UTC"), safe=False).cast(arrow.string()).to_pylist()
    values: list[object] = column.to_pylist(maps_as_pydicts="lossy")
    return values


def _row(columns: Mapping[str, list[object]], index: int) -> dict[str, object]:
    row = {name: column[index] for name, column in columns.items() if column[index] is not None}
    for name in _TWO_SHAPES:
        if (value := row.pop(f"{name}_of", None)) is not None:
            row[name] = value
    extra = row.pop("extra", None)
    return row if extra is None else _extra(extra) | row


def _extra(text: object) -> dict[str, object]:
    try:
        extra: object = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        extra = None
    if not isinstance(extra, dict):
        raise MalformedEvent("extra: expected a JSON object in a string")
    return cast(dict[str, object], extra)


def write_parquet(events: Iterable[Event], path: str) -> None:
    """Write ``events`` to the file ``path`` in row groups of `ROWS`. Needs pyarrow."""
    arrow = _pyarrow()
    schema = _schema(arrow)
    remaining = iter(events)
    with _parquet(arrow).ParquetWriter(path, schema, compression="zstd") as writer:
        while rows := [_parquet_row(event) for event in islice(remaining, ROWS)]:
            columns = [[row.get(name) for row in rows] for name in schema.names]
            arrays = [arrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def _parquet_row(event: Event) -> dict[str, object]:
    row = encode(replace(event, extra={})) | {"ts": event.ts}
    extra = {name: value for name, value in encode(event).items() if name not in row} if event.extra else None
    for name in _TWO_SHAPES:
        if isinstance(row.get(name), dict):
            row[f"{name}_of"] = row.pop(name)
    return row | {"extra": _ENCODER.encode(extra) if extra else None}


def _schema(arrow: Any) -> Any:
    text, number = arrow.string(), arrow.int64()
    texts = arrow.list_(text)
    shares = arrow.map_(text, texts)
    member = arrow.struct([("instance", text), ("session_timeout_ms", number), ("subscribed", texts), ("owned", texts)])
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
            ("members_of", arrow.map_(text, member)),
            ("old_member", text),
            ("topics", arrow.map_(text, number)),
            ("extra", text),
        ]
    )


def _pyarrow() -> Any:
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        raise OSError("Parquet needs pyarrow: pip install 'kipcheck[spark]'") from None


def _parquet(arrow: Any) -> Any:
    return importlib.import_module(f"{arrow.__name__}.parquet")


JSON_LINES: WholeFileReader = _JsonLines()
PARQUET: WholeFileReader = _Parquet()
