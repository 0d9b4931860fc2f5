"""A conversation with an assignor about one input, and what it shows.

`examine` is a generator: it yields the inputs that it wants answered, is sent the answers, and returns what it found. So the same
judgement drives one assignor in a test and thousands of conversations in batches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from .case import ABSENT, Answer, Assignment, Case, Member, NoAnswer
from .claims import same
from .judge import (
    Fault,
    Given,
    balanced,
    both,
    completely,
    exclusively,
    given,
    near,
    only_subscribed,
    order,
    some,
    stickiness,
    withholds,
)
from .kinds import Kind, cooperative, documented, sticky

ROUNDS = 5
"""An assignment and at most four follow-ups (CooperativeStickyAssignorTest allows as many)."""

Conversation = Generator[Case, Answer, "Examined"]
Documented = Callable[[Case], Assignment]
"""The assignment that an algorithm's documentation tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What a conversation showed.

    ``checked`` counts how often each rule was checked, ``unknown`` says why a rule that applies could not be. ``moved`` and
    ``minimum`` are the partitions taken from their owners by the first answer and the fewest that would have done, None where that
    is not known; ``rounds`` the assignments until one took nothing away; ``spread`` the final difference between the largest
    and the smallest load; ``answer`` is the first.
    """

    case: Case
    answer: Answer
    faults: tuple[Fault, ...] = ()
    checked: Mapping[str, int] = field(default_factory=dict[str, int])
    unknown: Mapping[str, str] = field(default_factory=dict[str, str])
    moved: int = 0
    minimum: int | None = None
    rounds: int | None = None
    spread: int | None = None


class _Notes:
    """What has been seen so far; a rule's first fault stands for all of its kind."""

    def __init__(self) -> None:
        self.faults: dict[tuple[str, str], Fault] = {}
        self.checked: dict[str, int] = {}
        self.unknown: dict[str, str] = {}

    def check(self, rule: str, faults: Iterable[Fault] = ()) -> bool:
        """Whether the rule held."""
        self.checked[rule] = self.checked.get(rule, 0) + 1
        found = list(faults)
        for fault in found:
            self.faults.setdefault((fault.rule, fault.detail), fault)
        return not found

    def sound(self, it: Given, kind: Kind, *, settled: bool = False) -> bool:
        """Whether an answer is one that the group could live by."""
        held = self.check("assigns-only-subscribed", only_subscribed(it))
        held &= self.check("assigns-exclusively", exclusively(it))
        held &= self.check("assigns-completely", completely(it, kind, settled=settled))
        if cooperative(kind):
            held &= self.check("cooperative-withholds", withholds(it, kind))
        return held


def examine(case: Case, kind: Kind, algorithm: Documented | None = None) -> Conversation:
    """All rules that apply to an assignor of ``kind``, on ``case``. ``algorithm`` is what range or round robin are documented to give."""
    notes = _Notes()
    answer = yield case
    if not _answered(case, answer, notes) or isinstance(answer, NoAnswer):
        return Examined(case=case, answer=answer, faults=tuple(notes.faults.values()), checked=notes.checked)
    it = given(case, answer)
    if case.hostile:
        notes.check("assigns-exclusively", exclusively(it))
        return Examined(case=case, answer=answer, faults=tuple(notes.faults.values()), checked=notes.checked)
    sound = notes.sound(it, kind)
    moved, minimum = _movement(it, kind, notes)
    if case.before:
        yield from _like_a_new_leader(case, answer, notes)
    if documented(kind) and sound:
        yield from _by_the_book(case, answer, kind, algorithm, notes)
    if not case.before:
        yield from _again(case, answer, notes)
    end = None
    if sound:
        end = yield from (_rounds(it, kind, notes) if cooperative(kind) else _fed_back(it, kind, notes))
    if case.racked and sound:
        yield from _nearer_with_racks(case, notes)
    loads = [len(end.assignment.get(member.id, ())) for member in case.members] if end is not None else []
    return Examined(
        case=case,
        answer=answer,
        faults=tuple(notes.faults.values()),
        checked=notes.checked,
        unknown=notes.unknown,
        moved=moved,
        minimum=minimum,
        rounds=end.rounds if end is not None else None,
        spread=max(loads) - min(loads) if loads else None,
    )


def _answered(case: Case, answer: Answer, notes: _Notes) -> bool:
    wrong = isinstance(answer, NoAnswer) and not (case.hostile and answer.how == "error")
    return notes.check("assignor-answers", [_no_answer(answer)] if wrong and isinstance(answer, NoAnswer) else ())


_HOW = {
    "error": "the assignor fails: {}",
    "crash": "the assignor's process ends: {}",
    "hang": "no answer: {}",
    "flood": "more than was asked for: {}",
    "nonsense": "an answer that can't be read: {}",
}


def _no_answer(answer: NoAnswer, of: str = "") -> Fault:
    """A fault whose detail is the message without names and numbers."""
    return Fault(
        rule="assignor-answers",
        message=_HOW[answer.how].format(answer.says) + of,
        argument=("the exception leaves the leader's poll, and the group goes on rebalancing",) if answer.how == "error" else (),
        detail=f"{answer.how}: {_template(answer.says)}",
    )


def _template(says: str) -> str:
    """The kind of an error message: its exception and first words."""
    return " ".join(re.sub(r"[\[{(<'\"].*", "", says).split()[:6]).rstrip(":")


def _movement(it: Given, kind: Kind, notes: _Notes) -> tuple[int, int | None]:
    known = stickiness(it, kind)
    if known is None:
        owned = sum(p in it.partitions for member in it.case.members for p in member.owned)
        kept = sum(len(set(member.owned).intersection(it.assignment.get(member.id, ()))) for member in it.case.members)
        return owned - kept, None
    moved, minimum = known
    needless = Fault(
        rule="sticky",
        message=f"moved {moved}, minimum {minimum}",
        members=tuple(member.id for member in it.case.members if set(member.owned) - set(it.assignment.get(member.id, ()))),
        partitions=tuple(
            sorted({p for member in it.case.members for p in member.owned if p not in it.assignment.get(member.id, ())}, key=order)
        ),
        argument=(f"{moved} claimed partitions do not stay with their owner", f"with {minimum} moved the loads would be as level"),
    )
    if any(member.owned for member in it.case.members):
        notes.check("sticky", [needless] if moved > minimum else ())
    return moved, minimum


def _like_a_new_leader(case: Case, answer: Assignment, notes: _Notes) -> Generator[Case, Answer, None]:
    alone = yield replace(case, before=())
    if isinstance(alone, NoAnswer):
        return
    differs = Fault(
        rule="history-independent",
        message=f"a leader that has answered {len(case.before)} other input{'s' if len(case.before) > 1 else ''} before answers otherwise",
        members=_who_differs(answer, alone),
        argument=(f"answered after others: {told(answer)}", f"answered by a new leader: {told(alone)}"),
    )
    notes.check("history-independent", [] if same(answer, alone) else [differs])


def _by_the_book(case: Case, answer: Assignment, kind: Kind, algorithm: Documented | None, notes: _Notes) -> Generator[Case, Answer, None]:
    if case.racked:
        notes.unknown["follows-algorithm"] = "with racks the documentation leaves the order open"
    elif algorithm is not None:
        right = algorithm(case)
        differs = Fault(
            rule="follows-algorithm",
            message=f"not what {kind} is documented to give",
            members=_who_differs(answer, right),
            argument=(f"answered: {told(answer)}", f"documented: {told(right)}"),
        )
        notes.check("follows-algorithm", [] if same(answer, right) else [differs])
    if all(member.instance for member in case.members) and len({member.instance for member in case.members}) == len(case.members):
        renamed = {member.id: f"r{len(case.members) - place}-{member.id}" for place, member in enumerate(case.members)}
        back = yield replace(case, members=tuple(replace(member, id=renamed[member.id]) for member in case.members), before=())
        if not isinstance(back, NoAnswer):
            moved = [member for member in case.members if set(answer.get(member.id, ())) != set(back.get(renamed[member.id], ()))]
            differs = Fault(
                rule="static-stable",
                message=f"static members {both([str(m.instance) for m in moved])} are given other partitions once their member ids are new",
                members=tuple(m.id for m in moved),
                argument=(f"answered: {told(answer)}", f"under new member ids: {told(back)}"),
            )
            notes.check("static-stable", [differs] if moved else [])
    else:
        notes.unknown.setdefault("static-stable", "not all members are static")


def _again(case: Case, answer: Assignment, notes: _Notes) -> Generator[Case, Answer, None]:
    """The same input with its members listed backwards; if that changes the answer, the same once more."""
    backwards = yield replace(case, members=case.members[::-1])
    if isinstance(backwards, NoAnswer):
        notes.check("assignor-answers", [_no_answer(backwards, " (with the members listed in another order)")])
        return
    if same(answer, backwards):
        notes.check("deterministic")
        notes.check("order-independent")
        return
    again = yield case
    if isinstance(again, NoAnswer) or not same(answer, again):
        second = again.says if isinstance(again, NoAnswer) else told(again)
        fault = Fault(
            rule="deterministic",
            message="the same input is answered in two ways",
            argument=(f"answered: {told(answer)}", f"asked again: {second}"),
        )
        notes.check("deterministic", [fault])
        notes.unknown["order-independent"] = "the answer differs even for the same order"
        return
    notes.check("deterministic")
    fault = Fault(
        rule="order-independent",
        message="another order of the members brings another assignment",
        members=_who_differs(answer, backwards),
        argument=(f"answered: {told(answer)}", f"listed backwards: {told(backwards)}"),
    )
    notes.check("order-independent", [fault])


@dataclass(frozen=True, slots=True)
class _End:
    assignment: Assignment
    rounds: int


def _rounds(it: Given, kind: Kind, notes: _Notes) -> Generator[Case, Answer, _End | None]:
    """Follow-up rebalances until an assignment takes nothing from anybody, and one more, which must change nothing."""
    rounds = 1
    while any(_taken(it)):
        if rounds == ROUNDS:
            still = tuple(sorted({p for _, p in _taken(it)}, key=order))
            fault = Fault(
                rule="converges-in-rounds",
                message=f"after {ROUNDS - 1} follow-up rebalances {some(still)} is still being taken from its owner",
                members=tuple(sorted({member for member, _ in _taken(it)})),
                partitions=still,
                argument=(f"round {rounds}: {told(it.assignment)}",),
            )
            notes.check("converges-in-rounds", [fault])
            notes.unknown["balanced"] = "the rounds do not settle"
            return None
        rounds += 1
        answer = yield applied(it.case, it.assignment)
        follow_up = f" (in follow-up rebalance {rounds - 1})"
        if isinstance(answer, NoAnswer):
            notes.check("assignor-answers", [_no_answer(answer, follow_up)])
            return None
        it = given(applied(it.case, it.assignment), answer)
        if not notes.sound(it, kind, settled=not any(_taken(it))):
            return None
    notes.check("converges-in-rounds")
    if rounds == 1 and not notes.check("assigns-completely", completely(it, kind, settled=True)):
        return None
    notes.check("balanced", balanced(it, kind))
    yield from _stays(it, kind, notes)
    return _End(it.assignment, rounds)


def _taken(it: Given) -> Iterator[tuple[str, str]]:
    """Whose partitions are given up for others, by the assignment: (member, partition)."""
    for member in it.case.members:
        kept = it.assignment.get(member.id, ())
        if len(member.owned) <= len(kept) and set(member.owned) <= set(kept):
            continue
        yield from ((member.id, p) for p in member.owned if p not in kept and p in it.partitions)


def _fed_back(it: Given, kind: Kind, notes: _Notes) -> Generator[Case, Answer, _End]:
    notes.check("balanced", balanced(it, kind))
    if sticky(kind):
        yield from _stays(it, kind, notes)
    return _End(it.assignment, 1)


def _stays(it: Given, kind: Kind, notes: _Notes) -> Generator[Case, Answer, None]:
    if any(member.version == 0 for member in it.case.members):
        notes.unknown["idempotent"] = "a member's metadata carries no claims"
        return
    for last in (False, True) if it.case.racked else (True,):
        case = applied(it.case, it.assignment)
        answer = yield case
        if isinstance(answer, NoAnswer):
            notes.check("assignor-answers", [_no_answer(answer, " (when its own assignment is fed back)")])
            return
        if same(it.assignment, answer):
            notes.check("idempotent")
            return
        fault = Fault(
            rule="idempotent",
            message="fed back, a settled assignment is not given again",
            members=_who_differs(it.assignment, answer),
            argument=(f"settled: {told(it.assignment)}", f"fed back: {told(answer)}"),
        )
        if last:
            notes.check("idempotent", [fault])
            return
        it = given(case, answer)
        if not notes.sound(it, kind):
            return
        for _ in range(ROUNDS):
            if not cooperative(kind) or not any(_taken(it)):
                break
            case = applied(it.case, it.assignment)
            answer = yield case
            if isinstance(answer, NoAnswer):
                return
            it = given(case, answer)


def _nearer_with_racks(case: Case, notes: _Notes) -> Generator[Case, Answer, None]:
    """Compared without claims, so that nothing is withheld."""
    fresh = replace(case, members=tuple(replace(m, owned=(), generation=ABSENT) for m in case.members), before=())
    aware = yield fresh
    unaware = yield replace(fresh, members=tuple(replace(m, rack=None) for m in fresh.members))
    if isinstance(aware, NoAnswer) or isinstance(unaware, NoAnswer):
        return
    fault = Fault(
        rule="rack-aware",
        message=f"{near(fresh, aware)} partitions are in their members' racks; without naming racks {near(fresh, unaware)} would be",
        argument=(f"answered: {told(aware)}", f"without racks: {told(unaware)}"),
    )
    notes.check("rack-aware", [fault] if near(fresh, aware) < near(fresh, unaware) else [])


def applied(case: Case, assignment: Assignment) -> Case:
    """The next rebalance of the same group: everyone has taken over ``assignment`` and claims it, as far as its metadata can."""
    generation = max((member.generation for member in case.members), default=ABSENT) + 1

    def member(each: Member) -> Member:
        owned = tuple(assignment.get(each.id, ())) if each.version > 0 else ()
        return replace(each, owned=owned, generation=generation if each.version > 1 else ABSENT, metadata=None)

    return replace(case, members=tuple(map(member, case.members)), before=())


def told(assignment: Assignment) -> str:
    """``c0 = t-0; c1 = nothing``."""
    shown = [f"{member} = {some(sorted(partitions, key=order))}" for member, partitions in sorted(assignment.items())[:8]]
    return "; ".join(shown) + (f"; and {len(assignment) - 8} more members" if len(assignment) > 8 else "")


def _who_differs(one: Assignment, other: Assignment) -> tuple[str, ...]:
    return tuple(sorted(m for m in one.keys() | other.keys() if set(one.get(m, ())) != set(other.get(m, ()))))
