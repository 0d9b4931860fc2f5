"""Breadth-first search over all reachable states, vectorised: a state is a row, a step is done for thousands of rows at once.

`explore` searches any `Machine`; `search` compiles a system (`bits.py`), reduces it (`symmetry.py`) and explores that.

A visited state is remembered by a fingerprint of 64 bits. Two states with the same fingerprint count as one, so that with n states
something is overlooked with a probability of about n * n / 2**65 (`Result.overlooked`; 0.0005 for 140 million). For every
state its parent's number and the step are kept, 6 bytes, from which the shortest counterexample is done again.
"""

from __future__ import annotations

import itertools
import resource
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from .bits import NEW, Code, Move, Size, compile_system
from .interpreter import Function, Interpreter, Relation, State, Step
from .language import BOOL, TRUE, Node, Sort, System, lnot

try:
    import numpy as np
    from numpy.typing import NDArray
except ImportError as missing:  # pragma: no cover
    raise ImportError("the search needs numpy: pip install 'kipcheck[prove]'") from missing

Word = np.uint64
Columns = tuple[NDArray[np.uint64], ...]
"""One array per word of a state, all of the same length; a row is a state."""

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Machine(Protocol):
    """A transition system over rows of words."""

    @property
    def observed(self) -> Sequence[str]:
        """The names of what `observe` tells."""
        ...

    def initial(self) -> Columns:
        """The first state, one row."""
        ...

    def successors(self, columns: Columns) -> tuple[Columns, Rows, NDArray[np.uint16]]:
        """Every step of every row: the state after it, the row it starts from, the number of the step."""
        ...

    def after(self, columns: Columns, step: int) -> Columns:
        """The rows after one step, by its number; all of them can do it."""
        ...

    def observe(self, columns: Columns) -> Sequence[Mask]:
        """For each name in `observed`, in which rows it is true."""
        ...

    def canonical(self, columns: Columns) -> Columns:
        """The representatives of the rows' classes."""
        ...

    def unfold(self, state: Columns) -> Iterable[Columns]:
        """The states, one row each, that `canonical` passes through from this one before it looks for the representative."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is. ``seconds`` are CPU time."""

    depth: int
    states: int
    transitions: int
    frontier: int
    seconds: float
    bytes: int


Stop = Literal["exhausted", "violated", "states", "memory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What `explore` found.

    ``paths`` maps the name of a broken property or of a reached goal to the shortest way there, as states beginning with the
    first. ``why`` says why the search ended: every state was seen, every property is already broken, or a bound was met.
    """

    states: int
    transitions: int
    depth: int
    seconds: float
    peak_bytes: int
    why: Stop
    paths: Mapping[str, tuple[tuple[int, ...], ...]]
    levels: tuple[Columns, ...] = ()

    @property
    def complete(self) -> bool:
        return self.why == "exhausted"


class Visited:
    """A set of 64-bit fingerprints: open addressing with linear probing, a whole batch at a time.

    A key's home is its top bits, so that a sorted batch walks the table once from front to back; most keys are known, and found at
    home before anything is sorted. Several different keys may be written to one free slot; reading it back tells which of them is
    there, the others go on to the next slot.
    """

    _FULL = 0.7

    def __init__(self, log2: int = 16) -> None:
        self._allocate(log2)
        self.count = 0

    def _allocate(self, log2: int) -> None:
        self._log2 = log2
        self._slots = np.zeros(1 << log2, Word)

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes

    def growth(self, incoming: int) -> int:
        """The bytes that are needed on top to take so many more."""
        log2 = self._log2
        while self.count + incoming > self._FULL * (1 << log2):
            log2 += 1
        return 0 if log2 == self._log2 else 8 << log2

    def add(self, keys: NDArray[np.uint64]) -> Rows:
        """Add the keys (none is 0). Gives the first row of every key that is new, in the order of the rows."""
        if not keys.size:
            return np.empty(0, np.int64)
        fresh = np.flatnonzero(self._slots[keys >> (64 - self._log2)] != keys)
        if not fresh.size:
            return fresh
        keys = keys[fresh]
        order = np.argsort(keys)
        ordered = keys[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        distinct = ordered[starts]
        first = np.minimum.reduceat(order, starts)
        if self.growth(distinct.size):
            self._grow(distinct.size)
        new = first[self._place(distinct)]
        self.count += new.size
        new.sort()
        return fresh[new]

    def _place(self, keys: NDArray[np.uint64]) -> Mask:
        """Put distinct keys into the table; which of them were not there."""
        placed = np.zeros(keys.size, np.bool_)
        last = (1 << self._log2) - 1
        slots = (keys >> (64 - self._log2)).astype(np.int64)
        pending = np.arange(keys.size)
        while pending.size:
            found = self._slots[slots]
            free = np.flatnonzero(found == 0)
            if free.size:
                self._slots[slots[free]] = keys[free]
                won = free[self._slots[slots[free]] == keys[free]]
                placed[pending[won]] = True
                found[won] = keys[won]
            left = np.flatnonzero(found != keys)
            pending, keys, slots = pending[left], keys[left], (slots[left] + 1) & last
        return placed

    def _grow(self, incoming: int) -> None:
        log2 = self._log2
        while self.count + incoming > self._FULL * (1 << log2):
            log2 += 1
        old = self._slots
        self._allocate(log2)
        for start in range(0, old.size, _BATCH):
            chunk = old[start : start + _BATCH]
            self._place(chunk[chunk != 0])


def fingerprint(columns: Columns) -> NDArray[np.uint64]:
    """64 bits of each row, never 0: every word is spread over all bits before the next one is added."""
    result = np.full(columns[0].shape, 0x9E3779B97F4A7C15, Word)
    other = np.empty_like(result)
    for column in columns:
        result ^= column
        for shift, factor in ((32, 0xD6E8FEB86659FD93), (29, 0xA0761D6478BD642F)):
            np.right_shift(result, shift, out=other)
            result ^= other
            result *= factor
        np.right_shift(result, 32, out=other)
        result ^= other
    result[result == 0] = 1
    return result


class _Ancestry:
    """Parent and step of every state, by its number; the first state has number 0."""

    def __init__(self) -> None:
        self._starts = [0]
        self._blocks: list[tuple[NDArray[np.uint32], NDArray[np.uint16]]] = [(np.zeros(1, np.uint32), np.zeros(1, np.uint16))]
        self.nbytes = 0

    def add(self, first: int, parents: NDArray[np.uint32], steps: NDArray[np.uint16]) -> None:
        self._starts.append(first)
        self._blocks.append((parents, steps))
        self.nbytes += parents.nbytes + steps.nbytes

    def steps_to(self, number: int) -> list[int]:
        """The numbers of the steps from the first state to this one."""
        steps: list[int] = []
        while number:
            block = bisect_right(self._starts, number) - 1
            parents, taken = self._blocks[block]
            at = number - self._starts[block]
            steps.append(int(taken[at]))
            number = int(parents[at])
        return steps[::-1]


_CHUNK = 1 << 15
_BATCH = 1 << 20
_PER_ROW = 160
"""Bytes that a row of a batch costs while it is worked on, generously."""


def explore(
    machine: Machine,
    *,
    always: Sequence[str] = (),
    sometimes: Sequence[str] = (),
    max_states: int | None = None,
    max_memory: int | None = None,
    stop_early: bool = True,
    keep: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Exploration:
    """Search breadth-first from the first state.

    ``always``: names that must be true in every state; ``sometimes``: names that should be true in some state. ``stop_early``
    ends the search as soon as every property in ``always`` is broken and every goal reached. ``max_memory`` is in bytes, for what the
    search allocates. ``keep`` returns the states of every level.
    """
    return _Search(machine, always, sometimes, max_states, max_memory, stop_early, keep, progress).run()


class _Search:
    def __init__(
        self,
        machine: Machine,
        always: Sequence[str],
        sometimes: Sequence[str],
        max_states: int | None,
        max_memory: int | None,
        stop_early: bool,
        keep: bool,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._machine, self._keep, self._progress = machine, keep, progress
        self._max_states = sys.maxsize if max_states is None else max_states
        self._max_memory = sys.maxsize if max_memory is None else max_memory
        names = list(machine.observed)
        self._wanted = {name: (names.index(name), name in always) for name in (*always, *sometimes)}
        self._stop_early = stop_early and bool(self._wanted)
        self._visited, self._ancestry = Visited(), _Ancestry()
        self._found: dict[str, int] = {}
        self._transitions = self._depth = self._next = 0
        self._held = 0
        self._began = time.process_time()

    def run(self) -> Exploration:
        first = self._machine.canonical(self._machine.initial())
        self._visited.add(fingerprint(first))
        self._next = 1
        self._look(first, 0)
        level, number = [first], 0
        levels = [first]
        why: Stop = "violated" if self._done() else "exhausted"
        while level and not self._done():
            following: list[Columns] = []
            stopped: Stop | None = None
            for batch, parents, steps in self._batches(level, number):
                stopped = self._bound(level, following, batch[0].size)
                if stopped:
                    break
                new = self._visited.add(fingerprint(batch))
                if new.size:
                    kept = tuple(column[new] for column in batch)
                    self._ancestry.add(self._next, parents[new], steps[new])
                    self._look(kept, self._next)
                    self._next += new.size
                    following.append(kept)
                self._report(level, following)
                if self._done():
                    break
            number += sum(block[0].size for block in level)
            self._depth += bool(following)
            level = following
            if self._keep:
                levels += following
            if stopped or self._done():
                why = stopped or "violated"
                break
        return Exploration(
            states=self._next,
            transitions=self._transitions,
            depth=self._depth,
            seconds=time.process_time() - self._began,
            peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
            why=why,
            paths={name: self._path(number) for name, number in self._found.items()},
            levels=tuple(levels) if self._keep else (),
        )

    def _batches(self, level: Sequence[Columns], number: int) -> Iterator[tuple[Columns, NDArray[np.uint32], NDArray[np.uint16]]]:
        """The canonical successors of a level in portions of about `_BATCH` rows, with the parents' numbers and the steps."""
        waiting: list[tuple[Columns, NDArray[np.uint32], NDArray[np.uint16]]] = []
        rows = 0
        for block in level:
            for start in range(0, block[0].size, _CHUNK):
                chunk = tuple(column[start : start + _CHUNK] for column in block)
                columns, sources, steps = self._machine.successors(chunk)
                self._transitions += sources.size
                if sources.size:
                    waiting.append((self._machine.canonical(columns), (sources + (number + start)).astype(np.uint32), steps))
                    rows += sources.size
                if rows >= _BATCH:
                    yield _joined(waiting)
                    waiting, rows = [], 0
            number += block[0].size
        if waiting:
            yield _joined(waiting)

    def _bound(self, level: Sequence[Columns], following: Sequence[Columns], incoming: int) -> Stop | None:
        self._held = sum(column.nbytes for block in (*level, *following) for column in block)
        needed = self._bytes() + self._visited.growth(incoming) + incoming * _PER_ROW
        if needed > self._max_memory:
            return "memory"
        return "states" if self._next >= self._max_states else None

    def _bytes(self) -> int:
        return self._visited.nbytes + self._ancestry.nbytes + self._held

    def _look(self, columns: Columns, first: int) -> None:
        missing = [(name, at, always) for name, (at, always) in self._wanted.items() if name not in self._found]
        if not missing:
            return
        truths = self._machine.observe(columns)
        for name, at, always in missing:
            rows = np.flatnonzero(truths[at] != always)
            if rows.size:
                self._found[name] = first + int(rows[0])

    def _done(self) -> bool:
        return self._stop_early and len(self._found) == len(self._wanted)

    def _report(self, level: Sequence[Columns], following: Sequence[Columns]) -> None:
        if self._progress:
            frontier = sum(block[0].size for block in following)
            seconds = time.process_time() - self._began
            self._progress(Progress(self._depth + 1, self._next, self._transitions, frontier, seconds, self._bytes()))

    def _path(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Real states: a step of the representatives is some step of the state that they stand for."""
        machine = self._machine
        state = machine.initial()
        representative = machine.canonical(state)
        path = [_row(state, 0)]
        for later in machine.unfold(state):
            state = later
            path.append(_row(state, 0))
        for step in self._ancestry.steps_to(number):
            representative = machine.canonical(machine.after(representative, step))
            columns, _, _ = machine.successors(state)
            same = np.ones(columns[0].size, np.bool_)
            for column, wanted in zip(machine.canonical(columns), representative, strict=True):
                same &= column == wanted[0]
            at = int(np.flatnonzero(same)[0])
            state = tuple(column[at : at + 1] for column in columns)
            path.append(_row(state, 0))
            for later in machine.unfold(state):
                state = later
                path.append(_row(state, 0))
        return tuple(path)


def _row(columns: Columns, at: int) -> tuple[int, ...]:
    return tuple(int(column[at]) for column in columns)


def _joined(
    parts: Sequence[tuple[Columns, NDArray[np.uint32], NDArray[np.uint16]]],
) -> tuple[Columns, NDArray[np.uint32], NDArray[np.uint16]]:
    columns = tuple(np.concatenate(column) for column in zip(*(part[0] for part in parts), strict=True))
    return columns, np.concatenate([part[1] for part in parts]), np.concatenate([part[2] for part in parts])


class Generated:
    """The machine of generated code."""

    def __init__(self, code: Code) -> None:
        functions = code.functions(ones)
        self.code = code
        self.observed = code.observed
        self._guards: Callable[..., Sequence[Mask | bool]] = functions["guards"]
        self._observe: Callable[..., Sequence[Mask | bool]] = functions["observe"]
        self._updates: list[Callable[..., Columns]] = [functions[f"update{at}"] for at in range(len(code.moves))]

    def initial(self) -> Columns:
        return tuple(np.array([word], Word) for word in self.code.initial)

    def successors(self, columns: Columns) -> tuple[Columns, Rows, NDArray[np.uint16]]:
        enabled = [(at, np.flatnonzero(mask_of(guard, columns))) for at, guard in enumerate(self._guards(*columns))]
        enabled = [(at, rows) for at, rows in enabled if rows.size]
        total = sum(rows.size for _, rows in enabled)
        after = tuple(np.empty(total, Word) for _ in columns)
        sources, steps = np.empty(total, np.int64), np.empty(total, np.uint16)
        start = 0
        for at, rows in enabled:
            end = start + rows.size
            for column, new in zip(after, self._updates[at](*(column[rows] for column in columns)), strict=True):
                column[start:end] = new
            sources[start:end] = rows
            steps[start:end] = at
            start = end
        return after, sources, steps

    def after(self, columns: Columns, step: int) -> Columns:
        return tuple(np.broadcast_to(np.asarray(new, Word), columns[0].shape) for new in self._updates[step](*columns))

    def observe(self, columns: Columns) -> Sequence[Mask]:
        return [mask_of(truth, columns) for truth in self._observe(*columns)]

    def canonical(self, columns: Columns) -> Columns:
        return columns

    def unfold(self, state: Columns) -> Iterable[Columns]:
        del state
        return ()


def mask_of(truth: Mask | bool, columns: Columns) -> Mask:
    """A truth value as generated code gives it, for every row."""
    return np.full(columns[0].shape, truth) if isinstance(truth, bool) else truth


def ones(truth: Mask) -> NDArray[np.uint64]:
    """What generated code uses to turn truth values into words of ones or zeros."""
    return np.negative(truth.astype(Word))


# Searching a system.

Verdict = Literal["holds", "violated", "reached", "unreached", "undecided"]


@dataclass(frozen=True, slots=True)
class Run:
    """A way from the first state, with real generations. ``states`` has one more than ``steps``.

    ``confirmed``: the interpreter did it, guard by guard, and says of its end what the search says. It may fail to only where
    generations saturated; then the run ends where it got stuck, and what it belongs to is undecided.
    """

    states: tuple[State, ...]
    steps: tuple[Step, ...]
    confirmed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a search found.

    ``verdicts``: a property holds, is violated, or is undecided because the search stopped (``why``) or its run isn't confirmed;
    a goal is reached, unreached or undecided. ``runs`` has the shortest counterexample or witness. ``depth`` counts steps from
    the first state. ``overlooked`` bounds the probability that two different states had the same fingerprint.
    """

    system: str
    states: int
    transitions: int
    depth: int
    seconds: float
    peak_bytes: int
    why: Stop
    verdicts: Mapping[str, Verdict]
    runs: Mapping[str, Run]

    @property
    def complete(self) -> bool:
        return self.why == "exhausted"

    @property
    def overlooked(self) -> float:
        return self.states * self.states / 2**65


def size_of(
    system: System,
    *,
    members: int,
    partitions: int,
    instances: Sequence[int | None] = (),
    rigid: Mapping[str, Mapping[tuple[int, ...], int]] | None = None,
    lags: int = 3,
    generations: int | None = None,
    budgets: Mapping[str, int] | None = None,
) -> Size:
    """The size of an instance of the group protocols.

    ``instances`` gives for each member id the number of the static instance that it is an incarnation of, None for a dynamic
    one. Rigid symbols that neither that nor ``rigid`` tells are false or 0. For the rest see `Size`.

    Raises ValueError if ``instances`` doesn't name one for each member.
    """
    if instances and len(instances) != members:
        raise ValueError(f"{len(instances)} instances for {members} members")
    whose = list(instances) or [None] * members
    elements: dict[Sort, int] = {
        "Member": members,
        "Partition": partitions,
        "Instance": 1 + max((i for i in whose if i is not None), default=0),
    }
    if generations is not None:
        elements["Generation"] = generations
    tables = dict(rigid or {})
    ordered = {symbol for order in system.ordered for symbol in (order.less, order.least)}
    for symbol in system.rigid:
        if symbol in ordered or symbol.name in tables:
            continue
        points = list(itertools.product(*(range(elements[sort]) for sort in symbol.sorts)))
        if symbol.sorts == ("Member",):
            static = symbol.result == BOOL
            tables[symbol.name] = {(m,): int(instance is not None) if static else instance or 0 for m, instance in enumerate(whose)}
        else:
            tables[symbol.name] = dict.fromkeys(points, 0)
    return Size(elements=elements, rigid=tables, lags=lags, budgets=budgets or {})


def search(
    system: System,
    *,
    members: int,
    partitions: int,
    instances: Sequence[int | None] = (),
    rigid: Mapping[str, Mapping[tuple[int, ...], int]] | None = None,
    properties: Mapping[str, Node] | None = None,
    goals: Mapping[str, Node] | None = None,
    symmetry: bool = True,
    reduction: bool = True,
    lags: int = 3,
    generations: int | None = None,
    budgets: Mapping[str, int] | None = None,
    allowed: Callable[[Move], bool] | None = None,
    max_states: int | None = None,
    max_memory: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Search all reachable states of an instance; for its size see `size_of`.

    ``properties`` must hold in every state (by default the system's safety), ``goals`` should hold in some state. The fewer are
    asked at once, the more bits can be dropped: the history that a property looks back on is what makes the state space large.

    ``symmetry`` and ``reduction`` store fewer states (`symmetry.py`), except of a system that relates members to members (Connect):
    that one is searched as it is. Because a way found with ``reduction`` may be longer than the shortest, what was found is then
    searched again without it, within the same bounds.

    The search ends when every state was seen, when nothing is left to find out, after about ``max_states`` states, or before it
    would need more than ``max_memory`` bytes.

    What Connect's plans say is kept by generation, and is about plans in turn: search it with a number of ``generations``.

    Raises ValueError for a system or size that can't be compiled.
    """
    from .symmetry import Reduced, confluent_actions

    asked = dict(system.safety if properties is None else properties)
    aimed = dict(goals or {})
    size = size_of(
        system,
        members=members,
        partitions=partitions,
        instances=instances,
        rigid=rigid,
        lags=lags,
        generations=generations,
        budgets=budgets,
    )
    code = compile_system(system, size, asked | aimed, allowed)
    if not (code.layout.symmetric_members and code.layout.symmetric_partitions):
        symmetry = reduction = False
    confluent: frozenset[str] = frozenset()
    if reduction:
        twin = (0, 0) if any(instance is not None for instance in instances) else ()
        least = size_of(system, members=2, partitions=1, instances=twin, lags=2, generations=generations, budgets=budgets)
        confluent = confluent_actions(compile_system(system, least, asked | aimed))
    found = explore(
        Reduced(code, symmetry=symmetry, confluent=confluent),
        always=tuple(asked),
        sometimes=tuple(aimed),
        max_states=max_states,
        max_memory=max_memory,
        progress=progress,
    )
    paths = dict(found.paths)
    if confluent and paths:
        shortest = explore(
            Reduced(code, symmetry=symmetry, confluent=frozenset()),
            always=tuple(name for name in asked if name in paths),
            sometimes=tuple(name for name in aimed if name in paths),
            max_states=max_states,
            max_memory=max_memory,
            progress=progress,
        )
        paths |= shortest.paths

    runs = {name: run_of(code, path, lnot(asked[name]) if name in asked else aimed[name]) for name, path in paths.items()}

    def verdict(name: str) -> Verdict:
        if name in runs and not runs[name].confirmed:
            return "undecided"
        if name in found.paths:
            return "violated" if name in asked else "reached"
        if not found.complete:
            return "undecided"
        return "holds" if name in asked else "unreached"

    return Result(
        system=system.name,
        states=found.states,
        transitions=found.transitions,
        depth=found.depth,
        seconds=found.seconds,
        peak_bytes=found.peak_bytes,
        why=found.why,
        verdicts={name: verdict(name) for name in (*asked, *aimed)},
        runs=runs,
    )


def run_of(code: Code, path: Sequence[tuple[int, ...]], goal: Node = TRUE) -> Run:
    """The path with real generations, done again by the interpreter; confirmed if it ends where ``goal`` is true."""
    functions = code.functions(lambda truth: -int(truth))
    moves: list[list[Move]] = []
    for before, after in itertools.pairwise(path):
        enabled = functions["guards"](*before)
        moves.append([move for at, move in enumerate(code.moves) if enabled[at] and functions[f"update{at}"](*before) == after])
    started = sum(any(move.arguments[:1] == (NEW,) for move in possible) for possible in moves)
    sizes = {**code.size.elements}
    points = code.system.next_generation and code.system.action(code.system.next_generation[0]).parameters[0].sort
    if points and points not in sizes:
        sizes[points] = started + 2
    interpreter = Interpreter(code.system, sizes)
    states: list[State] = [interpreter.initial(rigid_state(code.system, code.size))]
    steps: list[Step] = []
    current = 0
    for possible in moves:
        step = next((step for move in possible for step in _really(code, move, current) if _can(interpreter, states[-1], step)), None)
        if step is None:
            return Run(tuple(states), tuple(steps), confirmed=False)
        states.append(interpreter.take(states[-1], step))
        steps.append(step)
        current += code.system.next_generation is not None and step.action == code.system.next_generation[0]
    return Run(tuple(states), tuple(steps), confirmed=interpreter.holds(goal, states[-1]))


def _really(code: Code, move: Move, current: int) -> Iterator[Step]:
    """The steps with real generations that the move may stand for."""
    action = code.system.action(move.action)
    choices: dict[str, Relation] = {symbol.name: frozenset() for symbol in action.havoc}
    for atom in move.havoc:
        choices[atom.symbol] |= {atom.arguments}

    def real(sort: Sort, argument: int) -> Sequence[int]:
        if sort in code.size.elements:
            return (argument,)
        return range(current - argument, -1, -1) if argument == code.size.lags else (current - argument,)

    for arguments in itertools.product(
        *(real(variable.sort, argument) for variable, argument in zip(action.parameters, move.arguments, strict=True))
    ):
        yield Step(move.action, arguments, choices)


def _can(interpreter: Interpreter, state: State, step: Step) -> bool:
    return interpreter.enabled(interpreter.system.action(step.action), state, step.arguments, step.choices)


def rigid_state(system: System, size: Size) -> dict[str, Relation | Function]:
    """The rigid symbols as the interpreter wants them."""
    return {
        name: frozenset(point for point, value in table.items() if value) if system.symbol(name).result == BOOL else dict(table)
        for name, table in size.rigid.items()
    }
