"""Fewer states with the same answers: one representative per class of states.

**Symmetry.** Members that the rigid symbols don't tell apart may be permuted, instances with equally many incarnations too, and all
partitions. The representative is the least of all permuted states, so that equivalent states always have the same one and no
tie is broken by an index; the number of representatives is the number of orbits.

**Confluence.** A step is confluent if whatever else may happen in the same state can happen after it just as well and leads to the
same (it was swallowed, it commutes, or it can be caught up), and no observed formula changes by it. Such a step is taken at
once, and only the states where none is possible are stored. What is reachable stays reachable; the way there may be longer than
the shortest, because a confluent step that isn't needed is taken too. `confluent_actions` finds these actions by checking every state
of a small instance; that larger instances behave alike is an extrapolation (the actions concern one member, and the
small instance has two).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from .bits import Code, Size
from .language import System
from .search import Columns, Generated, Mask, Rows, Word, explore, mask_of, ones

_CHUNK = 1 << 13


class Canonical:
    """The least of all permuted states, row by row. Raises ValueError for a system whose state relates members to members."""

    def __init__(self, code: Code) -> None:
        layout = code.layout
        if not layout.symmetric_members or not layout.symmetric_partitions:
            raise ValueError(f"{code.system.name} relates members to members or partitions to partitions: search without symmetry")
        first = layout.shared
        words = [tuple(range(first + member * layout.own, first + (member + 1) * layout.own)) for member in range(layout.members)]
        classes = member_classes(code.system, code.size)
        self._exchanges = [pair for alike in classes for pair in _sorting([words[member] for member in alike])]
        for alike in _block_classes(code.system, code.size, classes):
            self._exchanges += _sorting([tuple(word for member in block for word in words[member]) for block in alike])
        partitions = code.size.elements.get("Partition", 0)
        self._swaps = [
            [(word, masks[at]) for word, masks in enumerate(layout.partitions) if masks[at]] for at in _adjacent_swaps(partitions)
        ]

    def __call__(self, columns: Columns) -> Columns:
        rows = columns[0].size
        if rows <= _CHUNK:
            return self._least(columns)
        result = tuple(np.empty(rows, Word) for _ in columns)
        for start in range(0, rows, _CHUNK):
            part = self._least(tuple(column[start : start + _CHUNK] for column in columns))
            for whole, piece in zip(result, part, strict=True):
                whole[start : start + _CHUNK] = piece
        return result

    def _least(self, columns: Columns) -> Columns:
        unsorted = [column.copy() for column in columns]
        best = self._sorted(unsorted)
        for swap in self._swaps:
            for word, low in swap:
                column = unsorted[word]
                moved = column >> 1
                moved ^= column
                moved &= low
                column ^= moved
                moved <<= 1
                column ^= moved
            candidate = self._sorted(unsorted)
            less = _less(candidate, best)
            for kept, new in zip(best, candidate, strict=True):
                np.copyto(kept, new, where=less)
        return tuple(best)

    def _sorted(self, columns: Sequence[NDArray[np.uint64]]) -> list[NDArray[np.uint64]]:
        result = list(columns)
        for left, right in self._exchanges:
            if len(left) == 1:
                (a,), (b,) = left, right
                result[a], result[b] = np.minimum(result[a], result[b]), np.maximum(result[a], result[b])
            else:
                swap = _less([result[word] for word in right], [result[word] for word in left])
                for a, b in zip(left, right, strict=True):
                    result[a], result[b] = np.where(swap, result[b], result[a]), np.where(swap, result[a], result[b])
        return [new.copy() if new is old else new for new, old in zip(result, columns, strict=True)]


def _less(left: Sequence[NDArray[np.uint64]], right: Sequence[NDArray[np.uint64]]) -> Mask:
    less = left[-1] < right[-1]
    for a, b in zip(left[-2::-1], right[-2::-1], strict=True):
        less &= a == b
        less |= a < b
    return less


def _sorting(items: Sequence[tuple[int, ...]]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The exchanges that sort these groups of words."""
    return [(items[at], items[at + 1]) for last in range(len(items) - 1, 0, -1) for at in range(last)]


def _adjacent_swaps(count: int) -> list[int]:
    """Positions to swap with their right neighbour, one after another, to run through all permutations but the first."""
    order, swaps = list(range(count)), list[int]()
    directions = [-1] * count
    while True:
        mobile = [at for at, item in enumerate(order) if 0 <= at + directions[item] < count and order[at + directions[item]] < item]
        if not mobile:
            return swaps
        at = max(mobile, key=lambda at: order[at])
        item = order[at]
        other = at + directions[item]
        order[at], order[other] = order[other], item
        swaps.append(min(at, other))
        for larger in range(item + 1, count):
            directions[larger] *= -1


def member_classes(system: System, size: Size) -> list[list[int]]:
    """Members that may be exchanged for one another."""
    classes: list[list[int]] = []
    for member in range(size.elements.get("Member", 0)):
        for alike in classes:
            if _keeps(system, size, {"Member": {member: alike[0], alike[0]: member}}):
                alike.append(member)
                break
        else:
            classes.append([member])
    return classes


def _block_classes(system: System, size: Size, classes: Sequence[Sequence[int]]) -> list[list[Sequence[int]]]:
    """Classes that may be exchanged as a whole, together with two instances."""
    together: list[list[Sequence[int]]] = []
    for block in classes:
        for alike in together:
            first = alike[0]
            exchanged = dict(zip(block, first, strict=True)) | dict(zip(first, block, strict=True)) if len(block) == len(first) else {}
            pairs = itertools.combinations(range(size.elements.get("Instance", 0)), 2)
            if exchanged and any(_keeps(system, size, {"Member": exchanged, "Instance": {a: b, b: a}}) for a, b in pairs):
                alike.append(block)
                break
        else:
            together.append([block])
    return together


def _keeps(system: System, size: Size, permutation: Mapping[str, Mapping[int, int]]) -> bool:
    """Whether the rigid symbols are the same after the permutation."""

    def moved(sort: str, element: int) -> int:
        return permutation.get(sort, {}).get(element, element)

    for name, table in size.rigid.items():
        symbol = system.symbol(name)
        for arguments, value in table.items():
            image = tuple(moved(sort, element) for sort, element in zip(symbol.sorts, arguments, strict=True))
            if table[image] != moved(symbol.result, value):
                return False
    return True


class Confluent:
    """Takes the steps of some actions as long as one is possible."""

    def __init__(self, code: Code, actions: frozenset[str]) -> None:
        self._steps = [at for at, step in enumerate(code.moves) if step.action in actions]
        functions = code.functions(ones, self._steps)
        self._guards: Callable[..., Sequence[Mask | bool]] = functions["guards"]
        self._updates: list[Callable[..., Columns]] = [functions[f"update{at}"] for at in self._steps]

    def once(self, columns: Columns) -> tuple[Columns, Rows]:
        """One step in every row where one is possible: those rows after it, and which they are."""
        free = np.ones(columns[0].size, np.bool_)
        rows: list[Rows] = []
        parts: list[Columns] = []
        for guard, update in zip(self._guards(*columns), self._updates, strict=True):
            chosen = np.flatnonzero(mask_of(guard, columns) & free)
            if chosen.size:
                free[chosen] = False
                rows.append(chosen)
                after = update(*(column[chosen] for column in columns))
                parts.append(tuple(np.broadcast_to(np.asarray(column, Word), chosen.shape) for column in after))
        if not rows:
            return tuple(column[:0] for column in columns), np.empty(0, np.int64)
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True)), np.concatenate(rows)

    def __call__(self, columns: Columns) -> Columns:
        after, rows = self.once(columns)
        if not rows.size:
            return columns
        result = tuple(column.copy() for column in columns)
        while rows.size:
            for whole, part in zip(result, after, strict=True):
                whole[rows] = part
            after, moved = self.once(after)
            rows = rows[moved]
        return result


class Reduced(Generated):
    """The machine of representatives."""

    def __init__(self, code: Code, *, symmetry: bool, confluent: frozenset[str]) -> None:
        super().__init__(code)
        self._confluent = Confluent(code, confluent) if confluent else None
        self._canonical = Canonical(code) if symmetry else None

    def canonical(self, columns: Columns) -> Columns:
        if self._confluent:
            columns = self._confluent(columns)
        return self._canonical(columns) if self._canonical else columns

    def unfold(self, state: Columns) -> Iterator[Columns]:
        while self._confluent:
            state, rows = self._confluent.once(state)
            if not rows.size:
                return
            yield state


def confluent_actions(code: Code) -> frozenset[str]:
    """The actions whose steps are confluent in every reachable state of this instance, and which can't go on forever.

    Meant for an instance with two members and one partition: it needs all states and all pairs of steps.
    """
    machine = Generated(code)
    blocks = explore(machine, keep=True).levels
    columns = tuple(np.concatenate(column) for column in zip(*blocks, strict=True))
    functions = code.functions(ones)
    guards = cast("Callable[..., Sequence[Mask | bool]]", functions["guards"])
    enabled = [mask_of(guard, columns) for guard in guards(*columns)]
    numbered = list(enumerate(code.moves))

    def after(at: int, rows: Columns) -> Columns:
        return machine.after(rows, at)

    def confluent(at: int) -> bool:
        rows = np.flatnonzero(enabled[at])
        here = tuple(column[rows] for column in columns)
        there = after(at, here)
        before, now = machine.observe(here), machine.observe(there)
        if any((a != b).any() for a, b in zip(before, now, strict=True)):
            return False
        possible = [mask_of(guard, there) for guard in guards(*there)]
        for other, _ in numbered:
            both = np.flatnonzero(enabled[other][rows])
            if other == at or not both.size:
                continue
            source, moved = (tuple(column[both] for column in part) for part in (here, there))
            aside = after(other, source)
            joined = _same(aside, moved)
            still = possible[other][both]
            later = after(other, moved)
            joined |= still & _same(later, aside)
            again = mask_of(guards(*aside)[at], aside)
            caught = after(at, aside)
            joined |= again & (_same(caught, moved) | (still & _same(caught, later)))
            if not joined.all():
                return False
        return True

    names = dict.fromkeys(step.action for step in code.moves)
    good = frozenset(name for name in names if all(confluent(at) for at, step in numbered if step.action == name))
    return good if good and _ends(Confluent(code, good), columns) else frozenset()


def _same(left: Columns, right: Columns) -> Mask:
    same = left[0] == right[0]
    for a, b in zip(left[1:], right[1:], strict=True):
        same &= a == b
    return same


def _ends(confluent: Confluent, columns: Columns) -> bool:
    for _ in range(64):
        columns, rows = confluent.once(columns)
        if not rows.size:
            return True
    return False
