"""Cuts a data set into key ranges of about equal work, from the footers of its files alone.

A range is what lies from ``start`` to before ``stop`` in the order of (``group_key``, ``at``), through all batches: one
group spans many ranges if it is large, and rows of equal keys are never parted. Which rows a range holds is decided by their
keys; the statistics only say where to look.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .manifest import Key, Part

ROWS = 2_000_000
"""How many rows a range should hold: some hundred MB of narrow columns."""
SEGMENTS = 8
"""Into how many pieces of equal size a row group is thought to be cut when rows are counted, and so many per `ROWS`."""

FIRST, LAST = -(2**63), 2**63 - 1
END = (LAST + 1, FIRST)
"""Behind every key: where the last range stops."""

Point = tuple[int, int]
"""A `Key` whose unknown ``at`` is `FIRST`, so that it can be compared."""


@dataclass(frozen=True, slots=True)
class Block:
    """One row group of the file ``part`` (its place in `Manifest.parts`): all its keys lie within ``first`` and ``last``."""

    part: int
    number: int
    rows: int
    first: Point
    last: Point


@dataclass(frozen=True, slots=True)
class Range:
    """``start`` to before ``stop``, and the row groups, by file, that may hold rows of it."""

    start: Point
    stop: Point
    blocks: tuple[tuple[int, tuple[int, ...]], ...]


def point(key: Key) -> Point:
    """The key in a form that compares as rows are sorted."""
    return key[0], FIRST if key[1] is None else key[1]


def blocks(part: int, entry: Part, metadata: Any) -> list[Block]:
    """The row groups of one file, from its footer (`pyarrow.parquet.FileMetaData`)."""
    found: list[Block] = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        named = {group.column(c).path_in_schema: group.column(c).statistics for c in range(group.num_columns)}
        first, last = _bounds(entry, named.get("group_key"), named.get("at"))
        found.append(Block(part, number, group.num_rows, first, last))
    return found


def ranges(found: Sequence[Block], rows: int = ROWS) -> list[Range]:
    """Ranges of about ``rows`` rows each; every key lies in exactly one of them."""
    if not found:
        return []
    cuts = [(FIRST, FIRST), *_cuts(found, rows), END]
    within: list[dict[int, list[int]]] = [{} for _ in cuts[1:]]
    for block in found:
        for index in range(bisect_right(cuts, block.first) - 1, bisect_right(cuts, block.last)):
            within[index].setdefault(block.part, []).append(block.number)
    held = [tuple((part, tuple(sorted(numbers))) for part, numbers in sorted(by_part.items())) for by_part in within]
    return [Range(start, stop, blocks) for (start, stop), blocks in zip(pairwise(cuts), held, strict=True) if blocks]


def touching(found: Iterable[Range], group_keys: Sequence[int]) -> list[Range]:
    """The ranges that may hold rows of any of the ``group_keys`` (sorted)."""
    return [r for r in found if bisect_left(group_keys, r.start[0]) < bisect_right(group_keys, r.stop[0])]


def _bounds(entry: Part, group_key: Any, at: Any) -> tuple[Point, Point]:
    if group_key is None or not group_key.has_min_max:
        return (entry.first[0], FIRST), (entry.last[0], LAST)
    first, last = FIRST, LAST
    if group_key.min == group_key.max and at is not None and at.has_null_count:
        first = at.min if at.null_count == 0 and at.has_min_max else FIRST
        last = at.max if at.has_min_max else LAST
    return (group_key.min, first), (group_key.max, last)


def _cuts(found: Iterable[Block], rows: int) -> Iterator[Point]:
    """Where enough rows have come together, taking the keys of a row group to be spread evenly: group keys are hashes."""
    segments = sorted(segment for block in found for segment in _segments(block, rows))
    together, since = 0.0, segments[0][0]
    for at, weight in segments:
        if together >= rows and at > since:
            yield at
            together, since = 0.0, at
        together += weight


def _segments(block: Block, rows: int) -> Iterator[tuple[Point, float]]:
    pieces = SEGMENTS * (1 + block.rows // rows)
    (key, at), (last_key, last_at) = block.first, block.last
    for piece in range(pieces):
        if key == last_key:
            place = (key, at + (last_at - at) * piece // pieces if at != FIRST or not piece else max(at, last_at))
        else:
            place = (key + (last_key - key) * piece // pieces, at if not piece else FIRST)
        yield place, block.rows / pieces
