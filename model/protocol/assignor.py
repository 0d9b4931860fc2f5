"""The sticky assignors' constrained path and adjust step, verified for all inputs up to a size by symbolic execution.

The algorithm is written once, over a small logic: on Python's bools it is the reference of `model.assignors` again (tests
compare the two), on Z3's terms it is every claim and every generation at once. Wherever Kafka follows an order of
members, topics or partitions, the proof lets any candidate be taken, so it holds for every order. Without racks.

Verified is one rebalance of M members over P partitions: generation resolution, target, adjust. Generations are ranked:
0 is absent, and M members have at most M more. The adjust step alone is first-order, so it is proved for any size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, Protocol

from ..messages import JoinedMember, Metadata
from . import quantified

Term = Any
"""A truth value or a small natural number of the logic in use."""
Row = list[Term]
Matrix = list[Row]
"""By member, then by partition."""

Generations = Literal["field", "user-data"]
"""Where members report the generation of their claims: since 3.4 in the protocol field (KIP-792), before that in user data."""


@dataclass(frozen=True, slots=True)
class Result:
    """Whether a promise ``holds`` for all inputs within ``bound`` (None: the solver gave up).

    If not, ``counterexample`` are members that break it, and ``known`` says that Kafka itself does so. ``seconds`` are CPU
    seconds, without the building of the round's terms that all promises share.
    """

    name: str
    promise: str
    bound: str
    holds: bool | None
    seconds: float
    counterexample: tuple[JoinedMember, ...] = ()
    known: str = ""


class Logic(Protocol):
    """Truth values and small naturals; ``one_of`` and ``some_of`` decide where Kafka follows an order."""

    def all(self, terms: Iterable[Term]) -> Term: ...
    def any(self, terms: Iterable[Term]) -> Term: ...
    def no(self, term: Term) -> Term: ...
    def number(self, value: int) -> Term: ...
    def count(self, terms: Iterable[Term]) -> Term: ...
    def plus(self, number: Term, term: Term) -> Term:
        """One more where ``term`` holds."""
        ...

    def less(self, one: Term, other: Term) -> Term: ...
    def same(self, one: Term, other: Term) -> Term: ...
    def choice(self, condition: Term, one: Term, other: Term) -> Term:
        """``one`` where the condition holds, else ``other``; two numbers or two truth values."""
        ...

    def one_of(self, candidates: Sequence[Term], ranks: Sequence[Term]) -> Row:
        """Exactly one of the true candidates, if there are any: the one of least rank. Candidates differ in rank."""
        ...

    def some_of(self, candidates: Sequence[Term], quota: Term) -> Row:
        """As many of the true candidates as ``quota`` allows: the first ones."""
        ...

    def anything_like(self, matrix: Matrix, fact: Callable[[Matrix], Term]) -> Matrix:
        """``matrix``, or in its place anything of which ``fact`` holds; that it holds of ``matrix`` is the caller's to prove."""
        ...


def _least(logic: Logic, candidates: Sequence[Term], ranks: Sequence[Term]) -> Row:
    choices = list(zip(candidates, ranks, strict=True))
    return [
        logic.all([each, *(logic.no(logic.all([other, logic.less(lower, rank)])) for other, lower in choices)]) for each, rank in choices
    ]


def _first_of(logic: Logic, candidates: Sequence[Term], quota: Term) -> Row:
    return [logic.all([each, logic.less(logic.count(candidates[:index]), quota)]) for index, each in enumerate(candidates)]


class Bools:
    """The logic of one concrete input."""

    def all(self, terms: Iterable[Term]) -> Term:
        return all(terms)

    def any(self, terms: Iterable[Term]) -> Term:
        return any(terms)

    def no(self, term: Term) -> Term:
        return not term

    def number(self, value: int) -> Term:
        return value

    def count(self, terms: Iterable[Term]) -> Term:
        return sum(1 for term in terms if term)

    def plus(self, number: Term, term: Term) -> Term:
        return number + bool(term)

    def less(self, one: Term, other: Term) -> Term:
        return one < other

    def same(self, one: Term, other: Term) -> Term:
        return one == other

    def choice(self, condition: Term, one: Term, other: Term) -> Term:
        return one if condition else other

    def one_of(self, candidates: Sequence[Term], ranks: Sequence[Term]) -> Row:
        return _least(self, candidates, ranks)

    def some_of(self, candidates: Sequence[Term], quota: Term) -> Row:
        return _first_of(self, candidates, quota)

    def anything_like(self, matrix: Matrix, fact: Callable[[Matrix], Term]) -> Matrix:
        return matrix


class Symbols:
    """The logic of all inputs at once; ``side`` collects what is assumed of the free choices.

    With ``any_order`` a choice may fall on any candidate, else on the reference's.
    """

    def __init__(self, bits: int, any_order: bool) -> None:
        self._z3 = quantified.z3()
        self._bits = bits
        self._any_order = any_order
        self._names = 0
        self.side: list[Term] = []

    def fresh(self) -> Term:
        self._names += 1
        return self._z3.Bool(f"b{self._names}")

    def fresh_number(self) -> Term:
        self._names += 1
        return self._z3.BitVec(f"n{self._names}", self._bits)

    def all(self, terms: Iterable[Term]) -> Term:
        return self._z3.And(*terms)

    def any(self, terms: Iterable[Term]) -> Term:
        return self._z3.Or(*terms)

    def no(self, term: Term) -> Term:
        return self._z3.Not(term)

    def number(self, value: int) -> Term:
        return self._z3.BitVecVal(value, self._bits)

    def count(self, terms: Iterable[Term]) -> Term:
        return sum((self._z3.If(term, self.number(1), self.number(0)) for term in terms), self.number(0))

    def plus(self, number: Term, term: Term) -> Term:
        return number + self.count([term])

    def less(self, one: Term, other: Term) -> Term:
        return self._z3.ULT(one, other)

    def same(self, one: Term, other: Term) -> Term:
        return one == other

    def choice(self, condition: Term, one: Term, other: Term) -> Term:
        return self._z3.If(condition, one, other)

    def one_of(self, candidates: Sequence[Term], ranks: Sequence[Term]) -> Row:
        if not self._any_order:
            return _least(self, candidates, ranks)
        chosen = [self.fresh() for _ in candidates]
        self.side += [self._z3.Implies(one, candidate) for one, candidate in zip(chosen, candidates, strict=True)]
        self.side += [self.no(self.all(pair)) for pair in combinations(chosen, 2)]
        self.side.append(self._z3.Implies(self.any(candidates), self.any(chosen)))
        return chosen

    def some_of(self, candidates: Sequence[Term], quota: Term) -> Row:
        if not self._any_order:
            return _first_of(self, candidates, quota)
        chosen = [self.fresh() for _ in candidates]
        available = self.count(candidates)
        self.side += [self._z3.Implies(one, candidate) for one, candidate in zip(chosen, candidates, strict=True)]
        self.side.append(self.count(chosen) == self.choice(self.less(available, quota), available, quota))
        return chosen

    def anything_like(self, matrix: Matrix, fact: Callable[[Matrix], Term]) -> Matrix:
        if not self._any_order:
            return matrix
        anything = [[self.fresh() for _ in row] for row in matrix]
        self.side.append(fact(anything))
        return anything


@dataclass(frozen=True, slots=True)
class Input:
    """Claims and their generations, by member; what the group reports."""

    owned: Matrix
    generation: Row


@dataclass(frozen=True, slots=True)
class Round:
    """One run: the claims that ``stand``, the ``target``, the ``share`` left of it after adjust, and whether assign ``failed``."""

    stand: Matrix
    target: Matrix
    share: Matrix
    failed: Term


def _resolve(logic: Logic, given: Input, reads: Generations, defects: frozenset[str]) -> tuple[Matrix, Row]:
    """`claims.resolve`: the claims that stand, and the disputed partitions."""
    members, partitions = range(len(given.owned)), range(len(given.owned[0]))
    no = logic.any([])
    if "only-highest-generation-counts" in defects:
        highest = [logic.no(logic.any(logic.less(one, other) for other in given.generation)) for one in given.generation]
        counted = [[logic.all([claimed, highest[m]]) for claimed in given.owned[m]] for m in members]
        disputed = [logic.less(logic.number(1), logic.count(counted[m][p] for m in members)) for p in partitions]
        return [[logic.all([counted[m][p], logic.no(disputed[p])]) for p in partitions] for m in members], disputed
    stand: Matrix = [[no for _ in partitions] for _ in members]
    disputed: Row = [no for _ in partitions]
    for p in partitions:
        owner: Row = [no for _ in members]
        others = logic.number(0)
        for m in members:
            claims, claimed = given.owned[m][p], logic.any(owner)
            first = logic.all([claims, logic.no(claimed)])
            equal = logic.all([claims, claimed, logic.same(given.generation[m], others)])
            newer = logic.all([claims, claimed, logic.less(others, given.generation[m])])
            disputed[p] = logic.any([disputed[p], equal])
            for other in range(m):
                stand[other][p] = logic.all([stand[other][p], logic.no(logic.all([owner[other], logic.any([equal, newer])]))])
            stand[m][p] = logic.any([first, newer])
            takes = claims if "loser-becomes-owner" in defects else logic.any([first, equal, newer])
            owner = [logic.all([owner[other], logic.no(takes)]) if other != m else takes for other in members]
            others = logic.choice(takes, given.generation[m] if reads == "field" else logic.number(0), others)
    return stand, disputed


def run(
    logic: Logic,
    given: Input,
    keep_order: Sequence[int] | None = None,
    reads: Generations = "field",
    defects: frozenset[str] = frozenset(),
) -> Round:
    """CooperativeSticky's constrained path: members in order of id, partitions in order of topic and id.

    ``keep_order`` lists the partitions by id, then topic: the order in which a member over its quota keeps its claims.
    """
    resolved, disputed = _resolve(logic, given, reads, defects)
    return _build(logic, resolved, disputed, keep_order, defects)


def _build(
    logic: Logic, resolved: Matrix, disputed: Row, keep_order: Sequence[int] | None = None, defects: frozenset[str] = frozenset()
) -> Round:
    """`constrained.build` and `sticky.adjust`."""
    members, partitions = range(len(resolved)), range(len(resolved[0]))
    stand = [[logic.all([resolved[m][p], logic.no(disputed[p])]) for p in partitions] for m in members]
    kept = _keep(logic, stand, keep_order or partitions)
    added, failed = _deal(logic, kept)
    target = [[logic.any([kept.partitions[m][p], added[m][p]]) for p in partitions] for m in members]
    if "assignor-skips-adjust" in defects:
        return Round(stand, target, target, failed)
    revoked = [[logic.all([stand[m][p], logic.no(kept.partitions[m][p])]) for p in partitions] for m in members]

    def moves(m: int, p: int) -> Term:
        return logic.all([added[m][p], logic.any([disputed[p], *(revoked[other][p] for other in members if other != m)])])

    share = [[logic.all([target[m][p], logic.no(moves(m, p))]) for p in partitions] for m in members]
    return Round(stand, target, share, failed)


@dataclass(frozen=True, slots=True)
class _Kept:
    """After phase 1: what stays, who is below the smaller quota or just at it, and how many are ``over`` it."""

    partitions: Matrix
    under: Row
    exact: Row
    over: Term


def _quotas(matrix: Matrix) -> tuple[int, int]:
    """The smaller quota, and how many members get one more."""
    return divmod(len(matrix[0]), len(matrix))


def _keep(logic: Logic, stand: Matrix, order: Sequence[int]) -> _Kept:
    low, extras = _quotas(stand)
    over = logic.number(0)
    kept: Matrix = []
    under: Row = []
    exact: Row = []
    for claims in stand:
        available = logic.count(claims)
        short = logic.less(available, logic.number(low))
        room = logic.less(over, logic.number(extras))
        more = logic.all([room, logic.less(logic.number(low), available)])
        quota = logic.choice(more, logic.number(low + 1), logic.number(low))
        chosen = dict(zip(order, logic.some_of([claims[p] for p in order], quota), strict=True))
        kept.append([chosen[p] for p in range(len(claims))])
        over = logic.plus(over, more)
        last_extra = logic.all([more, logic.same(over, logic.number(extras))])
        exact = [*(logic.all([each, logic.no(last_extra)]) for each in exact), logic.all([room, logic.no(short), logic.no(more)])]
        under.append(short)
    return _Kept(kept, under, exact, over)


def _deal(logic: Logic, kept: _Kept) -> tuple[Matrix, Term]:
    """Phases 3 and 4: what is added, and whether the quotas can't be met.

    Members below the smaller quota take turns, from the one after ``latest``; those at it wait in a queue.
    """
    low, extras = _quotas(kept.partitions)
    members = range(len(kept.partitions))
    under, exact, over = list(kept.under), list(kept.exact), kept.over
    loads = [logic.count(row) for row in kept.partitions]
    latest = logic.number(len(members))
    place = [logic.count(exact[:m]) for m in members]
    end = logic.count(exact)
    added: Matrix = [[] for _ in members]
    stuck: Row = []
    for left in _missing(logic, kept.partitions):
        turns = [logic.choice(logic.less(latest, logic.number(m)), logic.number(m), logic.number(m + len(members))) for m in members]
        turn = logic.one_of(under, turns)
        polled = logic.one_of([logic.all([each, logic.no(logic.any(under))]) for each in exact], place)
        stuck.append(logic.all([left, logic.no(logic.any([*under, *exact]))]))
        for m in members:
            in_turn = logic.all([left, turn[m]])
            from_queue = logic.all([left, polled[m]])
            added[m].append(logic.any([in_turn, from_queue]))
            loads[m] = logic.plus(loads[m], added[m][-1])
            latest = logic.choice(in_turn, logic.number(m), latest)
            filled = logic.all([in_turn, logic.same(loads[m], logic.number(low))])
            under[m] = logic.all([under[m], logic.no(filled)])
            exact[m] = logic.any([filled, logic.all([exact[m], logic.no(from_queue)])])
            place[m] = logic.choice(filled, end, place[m])
            end = logic.plus(end, filled)
            if extras:
                over = logic.plus(over, logic.all([added[m][-1], logic.same(loads[m], logic.number(low + 1))]))
    short = (logic.all([under[m], logic.no(logic.same(loads[m], logic.number(low)))]) for m in members)
    extras_left = logic.all([logic.any(under), logic.no(logic.same(over, logic.number(extras)))])
    return added, logic.any([*stuck, *short, extras_left])


def _missing(logic: Logic, kept: Matrix) -> Row:
    """`base.missing`: the walk along all partitions takes everything for missing that comes after one kept twice."""
    left: Row = []
    stuck = logic.any([])
    for p in range(len(kept[0])):
        holders = [row[p] for row in kept]
        left.append(logic.any([stuck, logic.no(logic.any(holders))]))
        stuck = logic.any([stuck, *(logic.all(pair) for pair in combinations(holders, 2))])
    return left


def _answers(logic: Logic, given: Input, done: Round) -> Term:
    return logic.no(done.failed)


def _complete_and_exclusive(logic: Logic, given: Input, done: Round) -> Term:
    return logic.all(logic.same(logic.count(row[p] for row in done.target), logic.number(1)) for p in range(len(done.target[0])))


def _balanced(logic: Logic, given: Input, done: Round) -> Term:
    low, extras = _quotas(given.owned)
    loads = [logic.count(row) for row in done.target]
    at_low = [logic.same(load, logic.number(low)) for load in loads]
    at_high = [logic.same(load, logic.number(low + 1)) for load in loads]
    return logic.all(
        [logic.any(pair) for pair in zip(at_low, at_high, strict=True)] + [logic.same(logic.count(at_high), logic.number(extras))]
    )


def _withholds(logic: Logic, given: Input, done: Round) -> Term:
    """A partition that another member claims is given only to a claimant of a newer generation."""
    members = range(len(given.owned))
    return logic.all(
        logic.any(
            [
                logic.no(logic.all([done.share[m][p], given.owned[other][p]])),
                logic.all([given.owned[m][p], logic.less(given.generation[other], given.generation[m])]),
            ]
        )
        for p in range(len(given.owned[0]))
        for m in members
        for other in members
        if m != other
    )


def _withholds_only_claimed(logic: Logic, given: Input, done: Round) -> Term:
    return logic.all(logic.any([*(row[p] for row in given.owned), *(row[p] for row in done.share)]) for p in range(len(given.owned[0])))


def _sticky(logic: Logic, given: Input, done: Round) -> Term:
    """Members keep of the claims that stand what the quotas allow: each up to the smaller one, the extras as long as there are any."""
    low, extras = _quotas(given.owned)
    most = logic.number(0)
    rich = logic.number(0)
    for row in done.stand:
        for unit in range(low):
            most = logic.plus(most, logic.less(logic.number(unit), logic.count(row)))
        more = logic.less(logic.number(low), logic.count(row))
        most = logic.plus(most, logic.all([more, logic.less(rich, logic.number(extras))]))
        rich = logic.plus(rich, more)
    kept = logic.count(
        logic.all(pair) for stand, target in zip(done.stand, done.target, strict=True) for pair in zip(stand, target, strict=True)
    )
    return logic.same(kept, most)


def _two_rounds(logic: Logic, given: Input, done: Round) -> Term:
    """After a round that everyone applied, the next one hands out the rest and takes nothing away.

    The next round's claims are the shares. They are all that it needs to know: no two members claim a partition, so every
    claim stands, and nobody has too many.
    """
    low, extras = _quotas(given.owned)

    def apart_and_within_quota(owned: Matrix) -> Term:
        loads = [logic.count(row) for row in owned]
        rich = logic.count(logic.less(logic.number(low), load) for load in loads)
        return logic.all(
            [
                *(logic.less(logic.count(row[p] for row in owned), logic.number(2)) for p in range(len(owned[0]))),
                *(logic.less(load, logic.number(low + 2)) for load in loads),
                logic.less(rich, logic.number(extras + 1)),
            ]
        )

    first = logic.anything_like(done.share, apart_and_within_quota)
    then = _build(logic, first, [logic.any([]) for _ in first[0]])
    kept = (
        logic.any([logic.no(before), after])
        for row, row_then in zip(first, then.share, strict=True)
        for before, after in zip(row, row_then, strict=True)
    )
    everything = (logic.any(row[p] for row in then.share) for p in range(len(first[0])))
    return logic.all([apart_and_within_quota(done.share), logic.no(then.failed), *kept, *everything])


KNOWN = "Kafka reads the other claimant's generation from the protocol field only"

Promise = Callable[[Logic, Input, Round], Term]

PROMISES: tuple[tuple[str, str, Promise], ...] = (
    ("assignor-answers", "The quotas can always be met: assign does not throw.", _answers),
    ("assigns-completely-and-exclusively", "The target gives every partition to exactly one member.", _complete_and_exclusive),
    ("balanced", "In the target, loads differ by at most one, and exactly P mod M members have one more.", _balanced),
    ("cooperative-withholds", "What another member claims is given only to a claimant of a newer generation.", _withholds),
    ("withholds-only-claimed", "What nobody claims is handed out at once.", _withholds_only_claimed),
    ("sticky", "Members keep as many of their standing claims as the quotas allow.", _sticky),
    ("converges-in-rounds", "Two rounds suffice: the second one hands out the rest and takes nothing away.", _two_rounds),
)


def verify(
    members: int = 4,
    partitions: int = 6,
    seed: int = 0,
    *,
    reads: Generations = "field",
    defects: frozenset[str] = frozenset(),
    promises: Sequence[str] = tuple(name for name, _, _ in PROMISES),
) -> tuple[Result, ...]:
    """The promises of CooperativeSticky's constrained path, for all claims and generations of that many members and partitions.

    Every member subscribes every topic. Counterexamples can be fed to `model.assignors`, where they do the same; of a
    promise that only some other order of members or topics breaks, they show the claims. Raises ImportError without Z3.
    """
    wanted = [each for each in PROMISES if each[0] in promises]
    results = {each.name: each for each in _check(wanted, members, partitions, seed, reads, defects, any_order=True)}
    refuted = [each for each in wanted if results[each[0]].holds is False]
    for replay in _check(refuted, members, partitions, seed, reads, defects, any_order=False):
        if replay.holds is False:
            results[replay.name] = replace(replay, seconds=results[replay.name].seconds + replay.seconds)
    return tuple(results.values())


def _check(
    promises: Sequence[tuple[str, str, Promise]],
    members: int,
    partitions: int,
    seed: int,
    reads: Generations,
    defects: frozenset[str],
    any_order: bool,
) -> Iterator[Result]:
    z3 = quantified.z3()
    logic = Symbols(max(partitions + 2, 2 * members).bit_length(), any_order)
    given = Input([[logic.fresh() for _ in range(partitions)] for _ in range(members)], [logic.fresh_number() for _ in range(members)])
    done = run(logic, given, reads=reads, defects=defects)
    assumed = tuple(logic.side)
    for name, sentence, promise in promises:
        began = time.process_time()
        logic.side.clear()
        broken = logic.no(promise(logic, given, done))
        solver = z3.SolverFor("QF_BV")
        solver.set("random_seed", seed)
        solver.add(*assumed, *logic.side, *(z3.ULE(each, members) for each in given.generation), broken)
        holds = {"unsat": True, "sat": False}.get(str(solver.check()))
        yield Result(
            name=name,
            promise=sentence,
            bound=f"{members} members, {partitions} partitions",
            holds=holds,
            seconds=time.process_time() - began,
            counterexample=_members(solver.model(), given, reads) if holds is False else (),
            known=KNOWN if holds is False and reads == "user-data" else "",
        )


def _members(model: Any, given: Input, reads: Generations) -> tuple[JoinedMember, ...]:
    """The solver's ``model`` as members of a group with one topic ``t``."""

    def member(index: int) -> JoinedMember:
        owned = tuple(f"t-{p}" for p, claim in enumerate(given.owned[index]) if str(model.eval(claim, model_completion=True)) == "True")
        generation = int(str(model.eval(given.generation[index], model_completion=True))) - 1
        field, user_data = (generation, None) if reads == "field" else (-1, generation)
        return JoinedMember(member=f"c{index}", instance=None, metadata=Metadata(("t",), owned, field, None, user_data))

    return tuple(member(index) for index in range(len(given.owned)))


def verify_adjust(seed: int = 0, *, defects: frozenset[str] = frozenset()) -> tuple[Result, ...]:
    """The promises of the adjust step alone, for any number of members and partitions and any exclusive target.

    As CooperativeSticky takes it on the general path: from what members claim, true or not. Raises ImportError without Z3.
    """
    z3 = quantified.z3()
    member, partition = z3.DeclareSort("Member"), z3.DeclareSort("Partition")
    owned, target = (z3.Function(name, member, partition, z3.BoolSort()) for name in ("owned", "target"))
    generation = z3.Function("generation", member, z3.IntSort())
    m, k = z3.Consts("m k", member)
    a, b = z3.Consts("a b", member)
    p = z3.Const("p", partition)
    q = z3.Const("q", partition)

    def share(before: Callable[..., Term], who: Term, what: Term) -> Term:
        if "assignor-skips-adjust" in defects:
            return target(who, what)
        loses = z3.Exists([k], z3.And(before(k, what), z3.Not(target(k, what))))
        return z3.And(target(who, what), z3.Not(z3.And(z3.Not(before(who, what)), loses)))

    def after(who: Term, what: Term) -> Term:
        return share(owned, who, what)

    exclusive_target = z3.ForAll([m, k, q], z3.Implies(z3.And(target(m, q), target(k, q)), m == k))
    exclusive_claims = z3.ForAll([m, k, q], z3.Implies(z3.And(owned(m, q), owned(k, q)), m == k))
    taken = z3.And(after(a, p), owned(b, p), a != b)
    promises: tuple[tuple[str, str, list[Term], Term, str], ...] = (
        (
            "withholds-true-claims",
            "If nobody claims what another member claims, a claimed partition is given to nobody but its claimant.",
            [exclusive_claims],
            z3.Not(taken),
            "",
        ),
        ("withholds-disputed-claims", "A claimed partition is given to none but a claimant.", [], z3.Implies(taken, owned(a, p)), ""),
        (
            "withholds-only-claimed",
            "Of the target, what nobody claims is handed out at once.",
            [],
            z3.Implies(z3.And(target(a, p), z3.Not(z3.Exists([k], owned(k, p)))), after(a, p)),
            "",
        ),
        (
            "two-rounds",
            "With the target unchanged, the second round hands out all of it.",
            [],
            z3.Implies(target(a, p), share(after, a, p)),
            "",
        ),
        (
            "withholds-from-stale-claimants",
            "A claimed partition is not given to a claimant of an older generation.",
            [],
            z3.Implies(taken, generation(a) >= generation(b)),
            "Kafka: a stale claimant that is given the partition counts as its owner, and the newer owner still has it",
        ),
    )
    results: list[Result] = []
    for name, sentence, given, promise, known in promises:
        began = time.process_time()
        solver = z3.Solver()
        solver.set("random_seed", seed)
        solver.add(exclusive_target, *given, z3.Not(promise))
        answer = str(solver.check())
        counterexample: tuple[JoinedMember, ...] = ()
        if answer == "sat":
            model = solver.model()
            counterexample = tuple(
                JoinedMember(
                    member=name,
                    instance=None,
                    metadata=Metadata(
                        ("t",),
                        ("t-0",) if str(model.eval(owned(who, p), model_completion=True)) == "True" else (),
                        int(str(model.eval(generation(who), model_completion=True))),
                    ),
                )
                for name, who in (("c0", a), ("c1", b))
            )
        holds = {"unsat": True, "sat": False}.get(answer)
        results.append(
            Result(name, sentence, "any size", holds, time.process_time() - began, counterexample, known if holds is False else "")
        )
    return tuple(results)
