"""Liveness of the consumer protocol: once the environment is quiet, every run ends stable, fully owned and balanced.

Quiet means: nobody starts, crashes, is reset, or rejoins without need, no request is lost, only dead members expire, and no join
phase ends without a member that lives. `quiet_system` says so by the roles of the actions: what the protocol must do apart from
what may happen. It also asks more of the leader than the safety proofs do: the target is balanced, complete, and moves as
little as it can; what another member still claims is withheld from it.

`converges` builds the graph of the quiet steps over *all* reachable states. If it has no cycle, every run ends after finitely many
steps, without any fairness beyond "some possible step is taken"; the longest path bounds their number. Where a run ends, or a
cycle, is then compared with what was promised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .bits import Code, Move, compile_system
from .language import (
    BOOL,
    FALSE,
    Action,
    Node,
    Symbol,
    System,
    Variable,
    define,
    distinct,
    equal,
    exists,
    forall,
    iff,
    implies,
    land,
    lnot,
    lor,
    put,
    quantified,
)
from .search import Columns, Mask, Progress, Run, explore, fingerprint, run_of, size_of
from .sorts import G, M, P
from .symmetry import Reduced

_OWES = Symbol("owes", (M,), BOOL)
"""Has revoked something and not rejoined since."""
_TARGET = Symbol("target", (M, P), BOOL)
_COMPANY = Symbol("company", (M,), BOOL)
_CLAIMED = Symbol("claimed", (M, P), BOOL)

SMALL_GRAPH = 100_000
"""Up to so many states networkx is used, above scipy."""


def quiet_system(system: System, *, forgetful: bool = False) -> System:
    """The consumer protocol with needed steps (roles protocol and timer) apart from all others (environment).

    A repeated JoinGroup is not lost while the first one is parked (the answer to the first would be lost with it, which the
    protocol leaves open). A join phase that ends without a living member is one before which that member was removed.

    ``forgetful``: clients don't rejoin after they have revoked something (a defect, for which `converges` must find a state
    that nothing leads out of). Raises KeyError for another system.
    """
    names = ("member", "known", "owned", "preparing", "completing", "proposed", "joining", "dead", "settled", "syncs", "joins", "unjoined")
    member, known, owned, preparing, completing, proposed, joining, dead, settled, syncs, joins, unjoined = map(system.symbol, names)
    names = ("believes", "completed", "generation", "response_assignment", "join_response", "sync_request", "sync_response")
    believes, completed, generation, granted, join_response, sync_request, sync_response = map(system.symbol, names)
    owned_generation, before = system.symbol("owned_generation"), system.symbol("before")

    def claims(m: Node, p: Node) -> Node:
        return land(member(m), owned(m, p))

    def newest(m: Node, p: Node) -> Node:
        later = forall(M, lambda a: lor(equal(a, m), lnot(claims(a, p)), before(owned_generation(a), owned_generation(m))))
        return land(claims(m, p), later)

    def given(m: Node, p: Node) -> Node:
        free = forall(M, lambda a: lor(equal(a, m), lnot(claims(a, p)), newest(m, p)))
        return land(_TARGET(m, p), free)

    def revokes(x: Node) -> Node:
        return exists(P, lambda p: land(believes(x, p), lnot(granted(x, p))))

    def needed(x: Node) -> Node:
        silent = forall(G, lambda g: lnot(join_response(x, g)))
        ungranted = forall(G, lambda g: lnot(sync_response(x, g)))
        return land(
            lor(member(x), lnot(known(x))),
            lor(
                unjoined(x),
                land(joins(x), lnot(joining(x)), silent),
                land(syncs(x), ungranted, lor(preparing(), lnot(sync_request(x, generation())))),
                land(settled(x), member(x), lor(preparing(), FALSE if forgetful else _OWES(x), lnot(equal(completed(x), generation())))),
            ),
        )

    actions: list[Action] = []
    for action in system.actions:
        owes = ()
        if action.name == "revoke":
            x = action.parameters[0]
            owes = (put(_OWES, x, value=revokes(x)),)
        elif action.name in ("rejoin", "reset", "crash"):
            owes = (put(_OWES, action.parameters[0], value=FALSE),)
        action = replace(action, updates=(*action.updates, *owes))
        if action.name == "propose":
            company = forall(M, lambda m: iff(_COMPANY(m), member(m)))
            claimed = forall(f"{M} {P}", lambda m, p: iff(_CLAIMED(m, p), newest(m, p)))
            actions.append(
                replace(
                    action,
                    guard=land(completing(), lnot(proposed()), company, claimed),
                    updates=tuple(
                        define(update.symbol, given) if update.symbol.name == "proposal" else update for update in action.updates
                    ),
                    havoc=(_COMPANY, _CLAIMED, _TARGET),
                )
            )
            continue
        if action.name == "lose_join_request":
            actions.append(replace(action, guard=land(action.guard, lnot(joining(action.parameters[0])))))
            continue
        due: Node | None = None
        if action.name == "rejoin":
            due = needed(action.parameters[0])
        elif action.name == "remove":
            due = dead(action.parameters[0])
        elif action.name == "complete":
            due = forall(M, lambda m: implies(member(m), joining(m)))
        if due is None:
            actions.append(action)
            continue
        actions.append(replace(action, guard=land(action.guard, due)))
        if action.name != "complete":
            actions.append(replace(action, name=f"{action.name}_anyway", role="environment"))
    return replace(
        system,
        name=f"{system.name}-quiet{'-forgetful' if forgetful else ''}",
        actions=tuple(actions),
        state=(*system.state, _OWES),
        initial=(*system.initial, define(_OWES, FALSE)),
    )


def sticky(move: Move) -> bool:
    """Whether the leader's target is complete, balanced, and of all those takes the fewest claims away."""
    holds: dict[str, set[tuple[int, ...]]] = {name: set() for name in ("company", "claimed", "target")}
    for atom in move.havoc:
        holds[atom.symbol].add(atom.arguments)
    company = sorted(m for (m,) in holds["company"])
    claimed, target = holds["claimed"], holds["target"]
    if not company:
        return not claimed and not target
    owner = {p: m for m, p in target}
    partitions = sorted(owner)
    if len(owner) != len(target) or not {m for m, _ in target | claimed} <= set(company) or not {p for _, p in claimed} <= set(owner):
        return False
    if len({p for _, p in claimed}) != len(claimed):
        return False
    return len(target & claimed) == _most_kept(tuple(company), frozenset(claimed), len(partitions)) and _balanced(owner.values(), company)


def _most_kept(company: tuple[int, ...], claimed: frozenset[tuple[int, ...]], partitions: int) -> int:
    counts = sorted((sum(1 for m, _ in claimed if m == member) for member in company), reverse=True)
    low, extra = divmod(partitions, len(company))
    return sum(min(count, low + (at < extra)) for at, count in enumerate(counts))


def _balanced(owners: Iterable[int], company: Sequence[int]) -> bool:
    counts = [0] * len(company)
    for owner in owners:
        counts[company.index(owner)] += 1
    return max(counts) - min(counts) <= 1


def settled_and_balanced(system: System, partitions: int) -> Node:
    """Stable; every member has taken over the current assignment; if there is a member, every partition is owned, evenly."""
    member, settled, believes = (system.symbol(name) for name in ("member", "settled", "believes"))
    completed, generation, stable = (system.symbol(name) for name in ("completed", "generation", "stable"))

    def owns(m: Node, count: int) -> Node:
        chosen = [Variable(f"p{at}", P) for at in range(count)]
        body = land(distinct(*chosen), *(believes(m, p) for p in chosen))
        return _exists(chosen, body)

    def no_gap(count: int) -> Node:
        return forall(f"{M} {M}", lambda a, b: lnot(land(member(a), member(b), owns(a, count), lnot(owns(b, count - 1)))))

    even = land(*map(no_gap, range(2, partitions + 1)))
    at_rest = forall(M, lambda m: implies(member(m), land(settled(m), equal(completed(m), generation()))))
    owned = forall(P, lambda p: exists(M, lambda m: land(member(m), believes(m, p))))
    nobody = forall(M, lambda m: lnot(member(m)))
    return lor(nobody, land(stable(), at_rest, owned, even))


def _exists(variables: Sequence[Variable], body: Node) -> Node:
    return quantified("exists", tuple(variables), body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence:
    """What the graph of quiet steps says.

    ``stuck`` counts states from which no quiet step leads on and where the promise doesn't hold; ``cycling`` those on a cycle of quiet
    steps. ``longest`` is the length of the longest quiet run (None if there is a cycle). ``lasso`` is a shortest way to a stuck
    state, or to a cycle and once around it from ``loop`` on. ``why`` is that of the search; only an exhausted one is a verdict.
    """

    states: int
    edges: int
    ends: int
    stuck: int
    cycling: int
    longest: int | None
    lasso: tuple[tuple[int, ...], ...] = ()
    loop: int | None = None
    run: Run | None = None
    why: str

    @property
    def converges(self) -> bool:
        return self.why == "exhausted" and not self.stuck and not self.cycling


@dataclass(frozen=True, slots=True)
class QuietGraph:
    """States by number, in the order of the search, and the quiet steps between different ones."""

    columns: Columns
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    moves: NDArray[np.uint16]
    code: Code
    why: str

    def networkx(self) -> Any:
        """A `networkx.DiGraph` with the actions as edge labels, for drawings and small analyses."""
        import networkx

        graph: Any = cast("Any", networkx).DiGraph()
        graph.add_nodes_from(range(self.columns[0].size))
        names = [move.action for move in self.code.moves]
        for source, target, move in zip(self.sources.tolist(), self.targets.tolist(), self.moves.tolist(), strict=True):
            graph.add_edge(source, target, action=names[cast("int", move)])
        return graph


def quiet_graph(
    system: System,
    *,
    members: int,
    partitions: int,
    lags: int = 3,
    symmetry: bool = True,
    budgets: Mapping[str, int] | None = None,
    max_states: int | None = None,
    max_memory: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> QuietGraph:
    """The graph of a `quiet_system` over all its reachable states."""
    size = size_of(system, members=members, partitions=partitions, lags=lags, budgets=budgets)
    code = compile_system(system, size, {"rest": settled_and_balanced(system, partitions)}, allowed=lambda move: _whole(move, partitions))
    machine = Reduced(code, symmetry=symmetry, confluent=frozenset())
    found = explore(machine, keep=True, max_states=max_states, max_memory=max_memory, progress=progress)
    columns = tuple(np.concatenate(column) for column in zip(*found.levels, strict=True))
    keys = fingerprint(columns)
    order = np.argsort(keys)
    keys = keys[order]
    calm = np.array([move.role != "environment" for move in code.moves])
    sources: list[NDArray[np.int64]] = []
    targets: list[NDArray[np.int64]] = []
    moves: list[NDArray[np.uint16]] = []
    for start in range(0, columns[0].size, 1 << 15):
        after, rows, steps = machine.successors(tuple(column[start : start + (1 << 15)] for column in columns))
        quiet = np.flatnonzero(calm[steps])
        reached = fingerprint(machine.canonical(tuple(column[quiet] for column in after)))
        at = np.minimum(np.searchsorted(keys, reached), keys.size - 1)
        known = keys[at] == reached
        source, target = rows[quiet] + start, order[at]
        moving = known & (source != target)
        sources.append(source[moving])
        targets.append(target[moving])
        moves.append(steps[quiet][moving])
    return QuietGraph(columns, np.concatenate(sources), np.concatenate(targets), np.concatenate(moves), code, found.why)


def _whole(move: Move, partitions: int) -> bool:
    targets = [atom for atom in move.havoc if atom.symbol == "target"]
    company = any(atom.symbol == "company" for atom in move.havoc)
    return sticky(move) and len(targets) == (partitions if company else 0)


def converges(graph: QuietGraph) -> Convergence:
    """Judge the graph. Above `SMALL_GRAPH` states scipy looks for cycles, below networkx."""
    count = graph.columns[0].size
    resting = np.asarray(Reduced(graph.code, symmetry=False, confluent=frozenset()).observe(graph.columns)[0])
    cyclic = _on_cycles(graph)
    leads_on = np.zeros(count, np.bool_)
    leads_on[graph.sources] = True
    stuck = ~leads_on & ~resting
    wrong = np.flatnonzero(stuck | cyclic)
    lasso: tuple[tuple[int, ...], ...] = ()
    loop: int | None = None
    run: Run | None = None
    if wrong.size:
        number = int(wrong[0])
        lasso = _way_to(graph, number)
        run = run_of(graph.code, lasso)
        loop = len(lasso) - 1 if cyclic[number] else None
    return Convergence(
        states=count,
        edges=graph.sources.size,
        ends=int((~leads_on).sum()),
        stuck=int(stuck.sum()),
        cycling=int(cyclic.sum()),
        longest=None if cyclic.any() else _longest(graph),
        lasso=lasso,
        loop=loop,
        run=run,
        why=graph.why,
    )


def _on_cycles(graph: QuietGraph) -> Mask:
    count = graph.columns[0].size
    if count <= SMALL_GRAPH:
        import networkx

        cyclic = np.zeros(count, np.bool_)
        for component in cast("Iterable[set[int]]", cast("Any", networkx).strongly_connected_components(graph.networkx())):
            if len(component) > 1:
                cyclic[list(component)] = True
        return cyclic
    from scipy import sparse
    from scipy.sparse import csgraph

    matrix = cast("Any", sparse).csr_matrix((np.ones(graph.sources.size, np.int8), (graph.sources, graph.targets)), shape=(count, count))
    _, labels = cast("tuple[int, NDArray[np.int32]]", cast("Any", csgraph).connected_components(matrix, directed=True, connection="strong"))
    return np.bincount(labels)[labels] > 1


def _longest(graph: QuietGraph) -> int:
    """Peel off the ends, layer by layer."""
    count = graph.columns[0].size
    left = np.bincount(graph.sources, minlength=count)
    order = np.argsort(graph.targets, kind="stable")
    sources = graph.sources[order]
    first = np.searchsorted(graph.targets[order], np.arange(count + 1))
    ends = np.flatnonzero(left == 0)
    length = -1
    while ends.size:
        length += 1
        sizes = first[ends + 1] - first[ends]
        offsets = np.repeat(first[ends] - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes) + np.arange(int(sizes.sum()))
        before = sources[offsets]
        left -= np.bincount(before, minlength=count)
        touched = np.sort(before)
        touched = touched[np.concatenate(([True], touched[1:] != touched[:-1]))] if touched.size else touched
        ends = touched[left[touched] == 0]
    return length


def _way_to(graph: QuietGraph, number: int) -> tuple[tuple[int, ...], ...]:
    """The shortest way to a state that was found by `explore`, by looking for exactly it."""
    wanted = tuple(int(column[number]) for column in graph.columns)

    class Target(Reduced):
        def observe(self, columns: Columns) -> Sequence[Mask]:
            same = np.ones(columns[0].size, np.bool_)
            for column, word in zip(columns, wanted, strict=True):
                same &= column == word
            return [same]

    machine = Target(graph.code, symmetry=_is_canonical(graph), confluent=frozenset())
    found = explore(machine, sometimes=(graph.code.observed[0],))
    return found.paths[graph.code.observed[0]]


def _is_canonical(graph: QuietGraph) -> bool:
    """Whether the graph is one of representatives."""
    representatives = Reduced(graph.code, symmetry=True, confluent=frozenset()).canonical(graph.columns)
    return all(bool((a == b).all()) for a, b in zip(representatives, graph.columns, strict=True))
