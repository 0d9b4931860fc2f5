"""The order in which Java iterates over its hash sets and maps: Connect's leader breaks ties by it."""

from __future__ import annotations

import math
from collections.abc import Sequence

_SMALLEST_TABLE = 16
_LARGEST_LOAD = 0.75


def string_hash(text: str) -> int:
    """``String.hashCode`` of ``text``, as an unsigned 32-bit number."""
    data = text.encode("utf-16-be")
    value = 0
    for at in range(0, len(data), 2):
        value = (31 * value + (data[at] << 8) + data[at + 1]) & 0xFFFFFFFF
    return value


def hash_order(keys: Sequence[str], *, copied: bool = False) -> tuple[str, ...]:
    """The distinct ``keys`` as a ``HashMap`` or ``HashSet`` that they were put into, one after the other, iterates over them.

    A set that is ``copied`` from a collection has the table that ``HashSet(Collection)`` of Java 8 to 18 allots.
    """
    distinct = tuple(dict.fromkeys(keys))
    wanted = int(len(keys) / _LARGEST_LOAD) + 1 if copied else math.ceil(len(distinct) / _LARGEST_LOAD)
    table = _SMALLEST_TABLE
    while table < wanted:
        table *= 2
    return tuple(sorted(distinct, key=lambda key: _spread(string_hash(key)) & (table - 1)))


def _spread(value: int) -> int:
    """``HashMap.hash``: the upper half takes part in choosing the bucket."""
    return value ^ (value >> 16)
