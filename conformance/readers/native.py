"""Trace version 1 in JSON Lines and in Parquet (`columns`): reading and writing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import BinaryIO, NoReturn

from ...spec.events import Event, Source
from ...spec.trace import MalformedEvent, decode, encode
from . import columns, detect
from .scan import TEXT_KEPT, TOO_LONG, blocks, whole_lines
from .whole import Tally, WholeFileReader

ROWS = 1 << 14
"""Parquet rows held at once."""

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


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


def json_line(event: Event) -> str:
    """``event`` as a line of a trace."""
    return _ENCODER.encode(encode(event)) + "\n"


def write_json_lines(events: Iterable[Event], stream: BinaryIO) -> None:
    """Write ``events`` to ``stream``, one JSON object per line."""
    for event in events:
        stream.write(json_line(event).encode())


class _Parquet:
    """A row is a line. Needs pyarrow, and a file that is not compressed as a whole."""

    name = detect.PARQUET

    def read(self, stream: BinaryIO, file: str, tally: Tally) -> Iterator[Event]:
        if not stream.seekable():
            raise OSError("a Parquet file is read in place: decompress it first")
        arrow = columns.pyarrow()
        try:
            source = columns.parquet().ParquetFile(stream)
            for rows in source.iter_batches(batch_size=ROWS):
                for event in columns.events(rows, file, tally.lines + 1):
                    if isinstance(event, MalformedEvent):
                        tally.broken(tally.lines + 1, str(event))
                    else:
                        tally.took()
                        yield event
        except (arrow.lib.ArrowException, UnicodeDecodeError) as error:
            raise OSError(f"damaged Parquet file: {error}") from None


def write_parquet(events: Iterable[Event], path: str) -> None:
    """Write ``events`` to the file ``path`` in row groups of `ROWS`. Needs pyarrow."""
    remaining = iter(events)
    with columns.parquet().ParquetWriter(path, columns.schema(), compression="zstd") as writer:
        while rows := [*islice(remaining, ROWS)]:
            writer.write_batch(columns.batch(rows))


JSON_LINES: WholeFileReader = _JsonLines()
PARQUET: WholeFileReader = _Parquet()
