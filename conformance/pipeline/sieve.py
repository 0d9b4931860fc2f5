"""The sieve: of a run of equal steady requests, with nothing else of the group in between, only the first and the last are kept.

What it leaves out changes no verdict and no count. A row that is kept says for how many requests it stands (``times``)
and how many copies of them were dropped (``copies``: a log handed in twice). What can't be told here is kept as it is; what only
shows when a group's rows are together, `needs_full` finds. Hashes sort and never decide: rows are compared by their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...spec.events import KINDS, Event
from ..readers import columns
from . import canonical

Level = Literal["coarse", "fine", "full"]
"""``coarse`` takes what a commit names for all the same; ``fine`` tells that apart too, and whatever may be judged differently;
``full`` leaves nothing out."""

Numbers = NDArray[np.int64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

_NO_TIME, _LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_WORD = 1 << 62
_ODD = np.uint64(0x9E3779B97F4A7C15)
_BETWEEN_REQUESTS = frozenset({"coordinator", "any"})
"""Observers of what may change the meaning of the coordinator's next request."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a table: the rows' numbers, group by group in the order of time, and for each how many requests and copies it stands for."""

    rows: Numbers
    times: Numbers
    copies: Numbers


def select(
    table: Any,
    ranks: Sequence[int],
    native: Sequence[bool],
    resources: Callable[[], Any],
    *,
    level: Level = "coarse",
    clock_skew_ms: int = 1000,
) -> Kept:
    """Choose among the rows of an Arrow table of canonical columns (`canonical.schema`; the wide ones may be missing).

    All rows of one group and one ``at`` must be in it. ``ranks`` and ``native`` tell of each input its place in the local engine's
    order and whether its epochs are final; ``resources`` reads that column, and is asked only where equal rows must be told apart.
    """
    rows = _Rows.of(table)
    if level == "full" or not rows.n:
        return _everything(rows)
    copied = _copied(rows, np.asarray(ranks, np.int64), np.asarray(native, np.bool_), resources)
    runs = _runs(rows, copied, _blocks(rows, _boundaries(rows)))
    if level == "fine":
        cuts = [_boundaries(rows), _firsts(rows, runs)]
        later = _after(rows, np.flatnonzero(rows.boundary & (rows.at != _NO_TIME)), clock_skew_ms * 1000)
        runs = _runs(rows, copied, _blocks(rows, np.concatenate(cuts), later), resources)
    return _kept(rows, copied, runs)


def needs_full(rows: Any, native: Sequence[bool]) -> bool:
    """Whether the rows kept of one whole group don't show how its requests are to be ordered, so that all of them must be seen.

    That is so where the coordinator's events lack times: each stands where the one before it in its file stood, which may have been left out.
    And where a log changes its epoch between two requests: then `assemble` may place those before and after apart.
    """
    if not rows.num_rows:
        return False
    times, copies = (_integers(rows.column(name)) for name in ("times", "copies"))
    if times.max() <= 1 and not copies.any():
        return False
    untimed = ~_valid(rows.column("ts"))
    if bool((untimed & _between_requests(rows)).any()):
        return True
    ours = _flags(rows.column("steady")) & ~np.asarray(native, np.bool_)[_integers(rows.column("input"))]
    stretches = np.stack([_integers(rows.column(name))[ours] for name in ("input", "stretch", "epoch")], axis=1)
    with_epochs = np.unique(stretches, axis=0)
    return len(np.unique(with_epochs[:, :2], axis=0)) < len(with_epochs)


def misplaced(events: Iterable[Event]) -> bool:
    """Whether requests of one group's logs that say the same at the same time are in different epochs once `assemble` has aligned them.

    Then they were no copies, and the requests that were dropped as copies must be seen.
    """
    epochs: dict[object, int] = {}
    for e in events:
        if e.ts is not None and canonical.is_steady(e):
            said = (e.kind, e.ts, e.member, e.instance, e.client, e.generation, e.seen_by, e.resources)
            if epochs.setdefault(said, e.epoch) != e.epoch:
                return True
    return False


# Columns as numbers.


@dataclass(frozen=True, slots=True)
class _Rows:
    """The columns by number, sorted by group and time. ``at`` is `_NO_TIME` where it is unknown, and the codes of texts are -1 for None.

    ``order`` are the numbers of the rows in the table; ``starts`` says where a group begins, ``moment`` where another time of it does.
    ``may_run`` are the steady rows that may be left out.
    """

    n: int
    table: Any
    order: Numbers | None
    at: Numbers
    starts: Mask
    moment: Mask
    boundary: Mask
    may_run: Mask
    member: Codes
    nameless: Mask
    """By member code, from -1 on: without a member id."""

    @classmethod
    def of(cls, table: Any) -> _Rows:
        """Sort the rows if they are not sorted yet."""
        at, starts = _times(table), _group_starts(table)
        order = None
        if not _sorted(at, starts, table):
            order = _sorting(at, table)
            table = table.select([name for name in table.schema.names if name != "resources"]).take(columns.pyarrow().array(order))
            at, starts = at.take(order), _group_starts(table)
        moment = starts.copy()
        moment[1:] |= at[1:] != at[:-1]
        steady = _flags(table.column("steady"))
        member, ids = _codes(table.column("member"))
        made_up = np.array([False, *("@" in m and "#" in m for m in ids)], np.bool_)
        may_run = steady & _valid(table.column("ts"))
        if made_up.any():
            may_run &= ~made_up.take(member + 1)
        boundary = ~steady & _between_requests(table)
        return cls(table.num_rows, table, order, at, starts, moment, boundary, may_run, member, np.array([True, *(not m for m in ids)]))

    def numbers(self, name: str) -> Numbers:
        return _integers(self.table.column(name))

    def texts(self, name: str) -> Codes:
        return self.member if name == "member" else _codes(self.table.column(name))[0]

    def generation(self) -> Iterator[Numbers | Mask]:
        yield self.numbers("generation")
        yield _valid(self.table.column("generation"))

    def numbered(self, rows: Numbers) -> Numbers:
        """The rows by their numbers in the table that was handed in."""
        return rows if self.order is None else self.order.take(rows)


def _integers(column: Any) -> Numbers:
    filled = column.fill_null(0) if column.null_count else column
    return np.asarray(_whole(filled).to_numpy(zero_copy_only=False), np.int64)


def _flags(column: Any) -> Mask:
    filled = column.fill_null(False) if column.null_count else column
    return np.asarray(_whole(filled).to_numpy(zero_copy_only=False), np.bool_)


def _valid(column: Any) -> Mask:
    if not column.null_count:
        return np.ones(len(column), np.bool_)
    return np.asarray(_whole(column.is_valid()).to_numpy(zero_copy_only=False), np.bool_)


def _whole(column: Any) -> Any:
    """The column as one array."""
    if not hasattr(column, "chunk"):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _codes(column: Any) -> tuple[Codes, list[str]]:
    """A column of texts as places in a list of different texts, -1 for None."""
    arrow = columns.pyarrow()
    if arrow.types.is_dictionary(column.type):
        coded = _whole(column.unify_dictionaries() if hasattr(column, "unify_dictionaries") else column)
        if coded.dictionary.null_count or len(coded.dictionary.unique()) < len(coded.dictionary):
            coded = coded.dictionary_decode().dictionary_encode()
    else:
        coded = _whole(column.dictionary_encode())
    indices = coded.indices.fill_null(-1) if coded.indices.null_count else coded.indices
    return np.asarray(indices.to_numpy(zero_copy_only=False), np.int32), coded.dictionary.to_pylist()


def _times(table: Any) -> Numbers:
    column = table.column("at")
    return np.asarray(_whole(column.fill_null(_NO_TIME) if column.null_count else column).to_numpy(zero_copy_only=False), np.int64)


def _between_requests(table: Any) -> Mask:
    """Rows that the coordinator saw, or any observer."""
    kind, kinds = _codes(table.column("kind"))
    seen_by, observers = _codes(table.column("seen_by"))
    usual = np.array([KINDS[k].default_observer in _BETWEEN_REQUESTS if k in KINDS else True for k in kinds], np.bool_)
    told = np.array([False, *(o in _BETWEEN_REQUESTS for o in observers)], np.bool_)
    return np.where(seen_by < 0, usual.take(kind), told.take(seen_by + 1))


# The order of groups and times.


def _group_starts(table: Any) -> Mask:
    starts = np.zeros(table.num_rows, np.bool_)
    starts[:1] = True
    for name in ("cluster", "group"):
        codes = _codes(table.column(name))[0]
        starts[1:] |= codes[1:] != codes[:-1]
    return starts


def _sorted(at: Numbers, starts: Mask, table: Any) -> bool:
    """Whether each group is in one place, and in the order of time there."""
    if bool(((at[1:] < at[:-1]) & ~starts[1:]).any()):
        return False
    first = np.flatnonzero(starts)
    groups = np.sort(_group_numbers(table).take(first))
    return not bool((groups[1:] == groups[:-1]).any())


def _group_numbers(table: Any) -> Numbers:
    cluster, _ = _codes(table.column("cluster"))
    group, names = _codes(table.column("group"))
    return (cluster.astype(np.int64) + 1) * (len(names) + 1) + group


def _sorting(at: Numbers, table: Any) -> Numbers:
    """Batches are sorted in themselves, which a stable sort by one number uses."""
    group = _group_numbers(table)
    known = at[at != _NO_TIME]
    least, most = (int(known.min()), int(known.max())) if len(known) else (0, 0)
    span = most - least + 2
    if (int(group.max()) + 1) * span >= _WORD:
        return np.lexsort((at, group))
    return np.argsort(group * span + np.where(at == _NO_TIME, 0, at - (least - 1)), kind="stable")


# Where a run is cut.


def _boundaries(rows: _Rows) -> Numbers:
    return np.flatnonzero(rows.boundary)


def _blocks(rows: _Rows, events: Numbers, also: Numbers | None = None) -> Numbers:
    """Number the rows so that two of one number are of one group, with no time of ``events`` between or at one of them only.

    ``also`` are rows before which to cut too.
    """
    cut = rows.starts.copy()
    moments = np.flatnonzero(rows.moment)
    there = np.searchsorted(moments, events, "right")
    cut[moments.take(there - 1)] = True
    cut[moments.take(there[there < len(moments)])] = True
    if also is not None:
        cut[also] = True
    return np.cumsum(cut, dtype=np.int64)


def _after(rows: _Rows, events: Numbers, microseconds: int) -> Numbers:
    """For each event the first row of its group that is later by more than that, where there is one."""
    ends = np.append(np.flatnonzero(rows.starts)[1:], rows.n)
    low, until = events.copy(), rows.at.take(events) + microseconds
    high = end = ends.take(np.searchsorted(ends, events, "right"))
    while bool((low < high).any()):
        middle = (low + high) // 2
        beyond = rows.at.take(np.minimum(middle, rows.n - 1)) > until
        low, high = np.where((low < high) & ~beyond, middle + 1, low), np.where((low < high) & beyond, middle, high)
    return low[low < end]


def _firsts(rows: _Rows, runs: _Runs) -> Numbers:
    """The first row of each run: from there on the coordinator knows its sender to be alive."""
    return runs.rows.take(runs.first)


# Equal rows.


def _packed(columns: Iterable[Numbers | Codes | Mask]) -> list[Numbers]:
    """As few words per row as possible, equal where all columns are."""
    words: list[Numbers] = []
    room = rows = 0
    for column in columns:
        rows = len(column)
        least, most = (int(column.min()), int(column.max())) if rows else (0, 0)
        span = most - least + 1
        if span == 1:
            continue
        if room < span:
            words.append(np.subtract(column, least if span <= _WORD else 0, dtype=np.int64))
            room = _WORD // span
        else:
            words[-1] *= span
            words[-1] += column
            words[-1] -= least
            room //= span
    return words or [np.zeros(rows, np.int64)]


def _grouped(block: Numbers, words: Sequence[Numbers]) -> tuple[Numbers, Mask]:
    """Bring equal rows of one block together, in their order: the places of the rows, and whether the hash is that of the one before."""
    n = len(block)
    mixed = np.zeros(n, np.uint64)
    for word in words:
        mixed ^= word.view(np.uint64)
        mixed *= _ODD
        mixed ^= mixed >> np.uint64(32)
        mixed *= _ODD
    place, least = max(n - 1, 1).bit_length(), int(block.min()) if n else 0
    spread = max(0, 64 - place - max(int(block.max()) - least if n else 0, 1).bit_length())
    mixed = mixed >> np.uint64(64 - spread) if spread else np.zeros(n, np.uint64)
    mixed |= (block - least).view(np.uint64) << np.uint64(spread)
    mixed <<= np.uint64(place)
    mixed |= np.arange(n, dtype=np.uint64)
    mixed.sort()
    places = (mixed & np.uint64((1 << place) - 1)).view(np.int64)
    mixed >>= np.uint64(place)
    alike = np.zeros(n, np.bool_)
    alike[1:] = mixed[1:] == mixed[:-1]
    return places, alike


def _like_the_one_before(words: Sequence[Numbers]) -> Mask:
    """Whether a row has the words of the one before it."""
    like = np.ones(len(words[0]), np.bool_)
    like[:1] = False
    for word in words:
        like[1:] &= word[1:] == word[:-1]
    return like


def _same_resources(resources: Any, one: Numbers, other: Numbers) -> Mask:
    """Whether the lists of the two rows are equal, row by row."""
    arrow = columns.pyarrow()
    column = _whole(resources)
    a, b = column.take(arrow.array(one)), column.take(arrow.array(other))
    known, other_known = _valid(a), _valid(b)
    lengths, other_lengths = _integers(a.value_lengths()), _integers(b.value_lengths())
    same = (known == other_known) & (lengths == other_lengths)
    where = np.flatnonzero(same & (lengths > 0))
    if len(where):
        a, b = a.take(arrow.array(where)), b.take(arrow.array(where))
        texts, _ = _codes(arrow.chunked_array([_plain(a.flatten()), _plain(b.flatten())]))
        half = len(texts) // 2
        starts = np.cumsum(lengths[where]) - lengths[where]
        same[where] = ~np.logical_or.reduceat(texts[:half] != texts[half:], starts)
    return same


def _plain(texts: Any) -> Any:
    return texts.dictionary_decode() if hasattr(texts, "dictionary_decode") else texts


# Copies: what `spec.rounds.distinct` drops.


@dataclass(frozen=True, slots=True)
class _Copied:
    """``dropped`` are copies of the ``kept`` rows, ``count`` of each. ``open`` ones are no part of a run: the rules find out about them."""

    dropped: Numbers
    kept: Numbers
    count: Numbers
    open: Numbers


def _copied(rows: _Rows, ranks: Numbers, native: Mask, resources: Callable[[], Any]) -> _Copied:
    """Find rows that say the same at the same time; the one that the local engine meets first is kept."""
    together = ~rows.moment
    together[:-1] |= together[1:]
    moment = np.cumsum(rows.moment, dtype=np.int64)
    found = np.flatnonzero(rows.may_run & together)
    texts = [rows.member, rows.texts("kind")]
    places, _ = _doubles(moment.take(found), [word.take(found) for word in _packed(texts)])
    found = np.sort(found.take(places))
    if not len(found):
        return _Copied(found, found, found, found)
    texts += [rows.texts(name) for name in ("instance", "client", "seen_by")]
    says = _packed(column.take(found) for column in (*texts, *rows.generation(), rows.numbers("resources_key")))
    places, alike = _doubles(moment.take(found), says)
    found = found.take(places)
    if not len(found):
        return _Copied(found, found, found, found)
    same = alike & _like_the_one_before([word.take(places) for word in says])
    second = np.flatnonzero(same)
    same[second] = _same_resources(resources(), rows.numbered(found.take(second - 1)), rows.numbered(found.take(second)))
    heads, sets = np.flatnonzero(~alike), np.cumsum(~alike) - 1
    inputs = rows.numbers("input").take(found)
    rank = ranks.take(inputs)
    foremost = rank == np.minimum.reduceat(rank, heads).take(sets)
    pos = np.where(foremost, rows.numbers("pos").take(found), _LATEST)
    foremost &= pos == np.minimum.reduceat(pos, heads).take(sets)
    origin = found[foremost].take(sets)

    final = native.take(inputs)
    one_place = alike & _like_the_one_before(_packed(rows.numbers(name).take(found) for name in ("input", "stretch")))
    one_place[1:] |= final[1:] & final[:-1]
    one_epoch = _like_the_one_before([rows.numbers("epoch").take(found)])
    sure = np.logical_and.reduceat((same & one_place & one_epoch) | ~alike, heads).take(sets)
    logs = np.logical_and.reduceat((same | ~alike) & ~final, heads).take(sets) & ~sure
    copy = logs & ~foremost
    spare = _spare(rows, found[copy], origin[copy])
    left_out = sure & ~foremost
    left_out[np.flatnonzero(copy)] = spare
    shown = copy & ~left_out
    count = np.add.reduceat(left_out, heads, dtype=np.int64)
    unsettled = np.concatenate([found[~sure & ~logs], found[shown], origin[shown]])
    return _Copied(dropped=found[left_out], kept=found[foremost][count > 0], count=count[count > 0], open=unsettled)


def _spare(rows: _Rows, copies: Numbers, origins: Numbers) -> Mask:
    """Copies of one stretch of a log in another that need not be kept: the epochs of logs are aligned later, and if the first
    and the last of a run of such copies are in the epochs of what they copy then so are those between.
    """
    columns = [rows.numbers(name).take(those) for those in (copies, origins) for name in ("input", "stretch", "epoch")]
    senders = [column.take(copies) for column in (rows.member, rows.texts("kind"), *rows.generation())]
    order = np.argsort(copies)
    words = [word.take(order) for word in _packed([*columns, *senders])]
    places, goes_on = _grouped(np.zeros(len(copies), np.int64), words)
    goes_on &= _like_the_one_before([word.take(places) for word in words])
    places = order.take(places)
    pos = rows.numbers("pos").take(copies.take(places))
    goes_on[1:] &= pos[1:] > pos[:-1]
    between = goes_on.copy()
    between[:-1] &= goes_on[1:]
    between[-1:] = False
    spare = np.zeros(len(copies), np.bool_)
    spare[places] = between
    return spare


def _doubles(block: Numbers, words: Sequence[Numbers]) -> tuple[Numbers, Mask]:
    """What `_grouped` gives, without whatever has no like."""
    places, alike = _grouped(block, words)
    several = alike.copy()
    several[:-1] |= alike[1:]
    return places[several], alike[several]


# Runs.


@dataclass(frozen=True, slots=True)
class _Runs:
    """``rows`` run by run; ``first`` and ``last`` are the places in it where each run begins and ends."""

    rows: Numbers
    first: Numbers
    last: Numbers


def _runs(rows: _Rows, copied: _Copied, block: Numbers, resources: Callable[[], Any] | None = None) -> _Runs:
    """Requests of one sender, one after the other, that differ only in time (and in their resources unless these are handed in).

    A run ends where its file goes back in time: only what is first and last in both orders may stand for what is between.
    """
    requests = rows.may_run.copy()
    requests[copied.dropped] = False
    there = np.flatnonzero(requests)
    sender = np.where(rows.nameless.take(rows.member + 1), -2 - rows.texts("client"), rows.member)
    place = _packed([rows.numbers("input"), rows.numbers("stretch"), rows.texts("kind"), sender])
    texts = [rows.texts(name) for name in ("member", "instance", "client", "extra")]
    rest = _packed([*texts, rows.numbers("epoch"), *rows.generation()])
    places, goes_on = _grouped(block.take(there), [word.take(there) for word in place])
    there = there.take(places)
    pos = rows.numbers("pos").take(there)
    goes_on[1:] &= pos[1:] > pos[:-1]
    for word in (*place, *rest):
        goes_on &= _like_the_one_before([word.take(there)])
    if len(copied.open):
        alone = np.zeros(rows.n, np.bool_)
        alone[copied.open] = True
        apart = alone.take(there)
        goes_on[1:] &= ~(apart[1:] | apart[:-1])
    if resources is not None and goes_on.any():
        second = np.flatnonzero(goes_on)
        goes_on[second] = _same_resources(resources(), rows.numbered(there.take(second - 1)), rows.numbered(there.take(second)))
    first = np.flatnonzero(~goes_on)
    return _Runs(there, first, np.append(first[1:], len(there)) - 1)


def _kept(rows: _Rows, copied: _Copied, runs: _Runs) -> Kept:
    others = np.flatnonzero(~rows.may_run)
    several = runs.last > runs.first
    first, last = runs.rows.take(runs.first), runs.rows.take(runs.last[several])
    kept = np.concatenate([others, first, last])
    times = np.ones(len(kept), np.int64)
    times[len(others) + len(first) :] = (runs.last - runs.first)[several]
    copies = np.zeros(len(kept), np.int64)
    if len(copied.kept):
        count = np.zeros(rows.n, np.int64)
        count[copied.kept] = copied.count
        total = np.append(0, np.cumsum(count.take(runs.rows)))
        of_run = total.take(runs.last + 1) - total.take(runs.first)
        copies[len(others) : len(others) + len(first)] = np.where(several, 0, of_run)
        copies[len(others) + len(first) :] = of_run[several]
    order = np.argsort(kept)
    return Kept(rows.numbered(kept.take(order)), times.take(order), copies.take(order))


def _everything(rows: _Rows) -> Kept:
    return Kept(rows.numbered(np.arange(rows.n)), np.ones(rows.n, np.int64), np.zeros(rows.n, np.int64))
