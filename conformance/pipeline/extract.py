"""Takes out of one range of a data set what the rules must see: a sieve over narrow columns, then the kept rows in full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..readers import columns
from . import canonical, sieve
from .inputs import arrow_files, is_local, local
from .manifest import Manifest, ranks
from .plan import FIRST, LAST, Range
from .sieve import Numbers

CHUNK = 50_000
"""How many rows are cut into messages at once."""
MESSAGE = 2000
"""How many rows one message holds at most: Spark's Python holds up to a thousand messages before it looks at memory."""
NUMBERS = ("group_key", "at", "input", "pos", "stretch", "steady", "resources_key", "ts", "epoch", "generation")
TEXTS = ("cluster", "group", "kind", "member", "instance", "client", "seen_by", "extra")
"""What the sieve looks at of every row."""
CODED = (*TEXTS, "resources.list.element", "src.file", "src.text")
"""What is read as codes into dictionaries: several times as fast as strings."""
STEP = 1 << 16
"""How many rows of all columns are held at once."""


@dataclass(frozen=True, slots=True)
class Store:
    """Where the files of a data set are (a directory or URL), and the captures behind them, by their number."""

    root: str
    parts: tuple[str, ...]
    ranks: tuple[int, ...]
    native: tuple[bool, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, root: str, manifest: Manifest) -> Store:
        inputs = manifest.inputs
        return cls(
            root=root,
            parts=tuple(part.path for part in manifest.parts),
            ranks=tuple(ranks(inputs)),
            native=tuple(captured.native for captured in inputs),
            names=tuple(captured.entry.path for captured in inputs),
        )

    def file(self, part: int) -> Any:
        """The Parquet file of one part. Raises `OSError` or `pyarrow.ArrowException`."""
        parquet = columns.parquet()
        if is_local(self.root):
            return parquet.ParquetFile(f"{local(self.root)}/{self.parts[part]}", read_dictionary=[*CODED], memory_map=True)
        files, directory = arrow_files(self.root)
        return parquet.ParquetFile(f"{directory}/{self.parts[part]}", read_dictionary=[*CODED], pre_buffer=True, filesystem=files)


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows of one group that were kept, as an Arrow IPC stream: ``n`` of them, which stand for ``events``."""

    group_key: int
    cluster: str
    group: str
    n: int
    events: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Lost:
    """A file that can't be read, and why."""

    part: int
    why: str


@dataclass(frozen=True, slots=True)
class Sieving:
    """How finely to sieve; ``only`` are the ``group_key`` to look at, sorted (None: all)."""

    level: sieve.Level
    clock_skew_ms: int
    only: tuple[int, ...] | None = None


def extract(store: Store, piece: Range, how: Sieving) -> Iterator[Kept | Lost]:
    """What is kept of a range, by group, and the files that could not be read; what the others hold is still kept."""
    sources: list[_Source] = []
    for part, blocks in piece.blocks:
        try:
            sources += _sources(store, part, blocks, piece, how.only)
        except (columns.pyarrow().ArrowException, OSError) as error:
            yield Lost(part, reason(error))
    while sources:
        try:
            kept = _select(store, sources, how)
        except _Unreadable as unreadable:
            yield Lost(unreadable.part, unreadable.why)
            sources = [source for source in sources if source.part != unreadable.part]
        else:
            yield from _full(sources, kept)
            return


def reason(error: Exception) -> str:
    """What is wrong with a file, in a line."""
    text = str(error).strip().partition("\n")[0]
    return text if isinstance(error, OSError) and text else f"damaged Parquet file: {text}"


class _Unreadable(Exception):
    """The rest of a file, ``part``, can't be read."""

    def __init__(self, part: int, error: Exception) -> None:
        super().__init__(part)
        self.part, self.why = part, reason(error)


@dataclass(frozen=True, slots=True)
class _Source:
    """The rows of one row group that lie in the range: their places in it, and their narrow columns."""

    part: int
    file: Any
    block: int
    places: Numbers
    narrow: Any

    def full(self, chosen: Numbers) -> Any:
        """The rows that ``chosen`` (rising) counts in ``places``, with all columns of which not all is null. Raises `_Unreadable`."""
        arrow = columns.pyarrow()
        known = _plain(self.narrow.take(arrow.array(chosen)))
        more = self.read(self.places[chosen], _told(self.file.schema_arrow, self.file.metadata.row_group(self.block)))
        for name in more.schema.names:
            known = known.append_column(more.schema.field(name), more.column(name))
        return known

    def read(self, places: Numbers, names: Sequence[str]) -> Any:
        """The columns ``names`` of these rows of the row group (``places`` rise), read a few at a time. Raises `_Unreadable`."""
        arrow = columns.pyarrow()
        found: list[Any] = []
        begin = 0
        try:
            for rows in self.file.iter_batches(STEP, row_groups=[self.block], columns=names, use_threads=False):
                here = places[np.searchsorted(places, begin) : np.searchsorted(places, begin + len(rows))]
                if len(here):
                    found.append(_plain(arrow.Table.from_batches([rows.take(arrow.array(here - begin))])))
                begin += len(rows)
            return arrow.concat_tables(found)
        except (arrow.ArrowException, OSError) as error:
            raise _Unreadable(self.part, error) from error


def _told(schema: Any, block: Any) -> list[str]:
    """The columns that `NUMBERS` and `TEXTS` leave out and that a row group has values of, as far as its footer says.

    Of lists it doesn't: it counts an empty one as it counts none.
    """
    leaves = (block.column(number) for number in range(block.num_columns))
    empty = {leaf.path_in_schema for leaf in leaves if leaf.statistics is not None and leaf.statistics.null_count == block.num_rows}
    return [name for name in schema.names if name not in empty and name not in (*NUMBERS, *TEXTS)]


def _sources(store: Store, part: int, blocks: Sequence[int], piece: Range, only: Sequence[int] | None) -> list[_Source]:
    file = store.file(part)
    found: list[_Source] = []
    for block in blocks:
        narrow = file.read_row_group(block, columns=[*NUMBERS, *TEXTS], use_threads=False)
        places = np.flatnonzero(_within(narrow, piece, only))
        if len(places):
            found.append(_Source(part, file, block, places, narrow if len(places) == len(narrow) else narrow.take(places)))
    return found


def _select(store: Store, sources: Sequence[_Source], how: Sieving) -> sieve.Kept:
    arrow = columns.pyarrow()
    table = arrow.concat_tables([source.narrow for source in sources]).unify_dictionaries()

    def resources() -> Any:
        return arrow.concat_tables([source.read(source.places, ["resources"]) for source in sources]).column("resources")

    return sieve.select(table, store.ranks, store.native, resources, level=how.level, clock_skew_ms=how.clock_skew_ms)


def _plain(rows: Any) -> Any:
    """The rows without dictionaries."""
    whole = canonical.schema()
    return rows.cast(columns.pyarrow().schema([whole.field(name) for name in rows.schema.names]))


def _within(rows: Any, piece: Range, only: Sequence[int] | None) -> Any:
    """Which rows' keys lie in the range (a mask)."""
    key = rows.column("group_key").to_numpy()
    at = rows.column("at").fill_null(FIRST).to_numpy()
    (from_key, from_at), (to_key, to_at) = piece.start, piece.stop
    mask = (key > from_key) | ((key == from_key) & (at >= from_at))
    if to_key <= LAST:
        mask &= (key < to_key) | ((key == to_key) & (at < to_at))
    return mask if only is None else mask & np.isin(key, np.array(only, np.int64))


def _full(sources: Sequence[_Source], kept: sieve.Kept) -> Iterator[Kept | Lost]:
    """The kept rows with all their columns, by group."""
    arrow = columns.pyarrow()
    order = np.argsort(kept.rows)
    numbers, times, copies = kept.rows[order], kept.times[order], kept.copies[order]
    ends = np.cumsum([len(source.places) for source in sources])
    together: list[Any] = []
    for source, begin, end in zip(sources, [0, *ends[:-1]], ends, strict=True):
        here = slice(*np.searchsorted(numbers, [begin, end]))
        if here.start == here.stop:
            continue
        try:
            rows = source.full(numbers[here] - begin)
        except _Unreadable as unreadable:
            yield Lost(unreadable.part, unreadable.why)
            continue
        rows = rows.append_column("times", arrow.array(times[here])).append_column("copies", arrow.array(copies[here]))
        together.append(rows)
        if sum(map(len, together)) >= CHUNK:
            yield from _by_group(arrow.concat_tables(together, promote_options="default"))
            together = []
    if together:
        yield from _by_group(arrow.concat_tables(together, promote_options="default"))


def _by_group(rows: Any) -> Iterator[Kept]:
    """Each group's rows, at most `MESSAGE` in one message."""
    arrow = columns.pyarrow()
    names = list(zip(*(rows.column(name).to_pylist() for name in ("group_key", "cluster", "group")), strict=True))
    order = sorted(range(len(names)), key=names.__getitem__)
    if order != list(range(len(names))):
        rows, names = rows.take(arrow.array(order)), [names[place] for place in order]
    rows = rows.combine_chunks()
    starts = [place for place, name in enumerate(names) if not place or name != names[place - 1]]
    for start, stop in pairwise([*starts, len(names)]):
        group_key, cluster, group = names[start]
        for first in range(start, stop, MESSAGE):
            some = rows.slice(first, min(MESSAGE, stop - first))
            events = sum(sum(some.column(name).to_pylist()) for name in ("times", "copies"))
            yield Kept(group_key, cluster, group, len(some), events, encode(some))


def encode(rows: Any) -> bytes:
    """A table as a compressed Arrow IPC stream, without the columns that are null throughout."""
    arrow = columns.pyarrow()
    rows = rows.select([name for name in rows.schema.names if rows.column(name).null_count < len(rows)]).combine_chunks()
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, rows.schema, options=arrow.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(rows)
    return sink.getvalue().to_pybytes()


def decode(payloads: Iterable[bytes]) -> Any:
    """One table of canonical rows with ``times`` and ``copies`` from all of a group's messages."""
    arrow, whole = columns.pyarrow(), canonical.schema()
    narrow = arrow.schema([whole.field(name) for name in (*NUMBERS, *TEXTS)]).empty_table()
    return arrow.concat_tables([narrow, *(arrow.ipc.open_stream(payload).read_all() for payload in payloads)], promote_options="default")
