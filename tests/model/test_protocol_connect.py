"""The Connect protocol: proved, not vacuous, refuted when it is mutated, and told as stories to the interpreter."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest

from kipcheck.model.protocol.connect import MUTATIONS, connect_protocol
from kipcheck.model.protocol.ground import Trace
from kipcheck.model.protocol.interpreter import Interpreter, State, Step
from kipcheck.model.protocol.narrate import narrate
from kipcheck.model.protocol.prove import prove
from kipcheck.model.protocol.refute import CONNECT_MUTANTS, CONNECT_POPULAR, judge, refute_popular
from kipcheck.spec import check
from kipcheck.spec.rules import RULES

SIZES = {"Member": 4, "Partition": 3, "Generation": 7}
A, B, C, D = range(4)
U, V, W = range(3)
HERE = frozenset({()})


class Story:
    """A scripted run; units that a round gives or takes away are pairs of worker and unit."""

    told: ClassVar[list[Story]] = []

    def __init__(self, *mutations: str, no_delay: bool = False) -> None:
        self.system = connect_protocol(mutations=frozenset(mutations))
        self.interpreter = Interpreter(self.system, SIZES)
        self.state: State = self.interpreter.initial({"no_delay": HERE if no_delay else frozenset()})
        self.generation = 0
        self.start, self.steps = self.state, list[Step]()
        Story.told.append(self)

    def __getattr__(self, action: str):
        def take(*arguments: int) -> Story:
            return self.take(Step(action, arguments))

        return take

    def take(self, step: Step) -> Story:
        self.state = self.interpreter.take(self.state, step)
        self.steps.append(step)
        return self

    def round(
        self,
        plan: str,
        leader: int,
        *,
        give: Sequence[tuple[int, int]] = (),
        shed: Sequence[tuple[int, int]] = (),
        back_off: bool = False,
    ) -> Story:
        """The join phase ends, and the leader plans."""
        self.generation += 1
        self.take(Step("complete", (self.generation, leader)))
        choices: dict[str, frozenset[tuple[int, ...]]] = {
            "give": frozenset(give),
            "shed": frozenset(shed),
        }
        if plan == "settle":
            choices["back_off"] = HERE if back_off else frozenset()
        return self.take(Step(plan, (leader,), {} if plan == "mismatch" else choices))

    def applied(self, *workers: int) -> Story:
        """The plan is accepted and these workers carry it out."""
        self.take(Step("accept", ()))
        for worker in workers:
            self.take(Step("stop", (worker,))).take(Step("start", (worker,)))
        return self

    def rejoined(self, *workers: int) -> Story:
        for worker in workers:
            self.take(Step("rejoin", (worker,)))
        return self

    def runs(self) -> dict[int, set[int]]:
        """Worker -> what it runs, of those that run something."""
        work: dict[int, set[int]] = {}
        for worker, unit in self.of("running"):
            work.setdefault(worker, set()).add(unit)
        return work

    def of(self, relation: str) -> frozenset[tuple[int, ...]]:
        points = self.state[relation]
        assert isinstance(points, frozenset)
        return points

    def broken(self) -> set[str]:
        """The properties that do not hold now, true and popular ones."""
        properties = {**self.system.safety, **self.system.popular}
        return {name for name, formula in properties.items() if not self.interpreter.holds(formula, self.state)}


@pytest.fixture(autouse=True)
def monitors_agree():
    """Every story of the system as it is has no error as a trace, but that its leader needn't balance."""
    Story.told.clear()
    yield
    for story in Story.told:
        if story.system.name == "connect" and story.steps:
            events = narrate(story.system, SIZES, Trace(story.start, tuple(story.steps)))
            found = {finding.rule for group in check(events) for finding in group.findings if finding.severity == "error"}
            assert not found - {"connect-balanced"}, [str(step) for step in story.steps]


def two_workers(*mutations: str) -> Story:
    """A leads, B runs U."""
    return Story(*mutations).join(A).join(B).create(U).round("settle", A, give=[(B, U)]).applied(A, B)


def one_worker(*mutations: str) -> Story:
    """A leads and runs U."""
    return Story(*mutations).join(A).create(U).round("settle", A, give=[(A, U)]).applied(A)


def zombie_back(*mutations: str) -> Story:
    """B loses its session, A gets U when the delay is over, B comes back as C with U."""
    story = two_workers(*mutations).remove(B).rejoined(A).round("withhold", A).applied(A)
    story.rejoined(A).round("deal", A, give=[(A, U)]).applied(A)
    assert story.runs() == {A: {U}, B: {U}}
    return story.come_back(B, C).rejoined(A)


def test_it_is_proved_for_any_number_of_workers_units_and_generations():
    proof = prove(connect_protocol(), seeds=(0, 1, 2))
    assert not proof.failed, proof.matrix()
    assert proof.cycle == ()
    assert {action.action for action in proof.vacuity if not action.possible} == set()
    assert max(obligation.seconds for obligation in proof.obligations) < 1


def test_the_names_are_those_of_the_catalogue():
    system = connect_protocol()
    known = set(RULES)
    assert {rule for rules in system.rules.values() for rule in rules} <= known
    assert {rule for mutation in MUTATIONS for rule in mutation.breaks} <= known
    assert system.words.keys() == system.safety.keys() | system.popular.keys()
    with pytest.raises(ValueError, match="no-such"):
        connect_protocol(mutations=frozenset({"no-such"}))


# The story of KIP-415: W2 leaves, the delay runs, W2 returns.


def test_a_worker_leaves_and_comes_back_within_the_delay():
    w1, w2, w3, w2b = A, B, C, D
    story = Story().create(U).create(V).create(W)
    story.join(w1).round("settle", w1, give=[(w1, U), (w1, V), (w1, W)]).applied(w1)
    assert story.runs() == {w1: {U, V, W}}

    story.join(w2).join(w3).rejoined(w1).round("settle", w1, shed=[(w1, U), (w1, V)]).applied(w1, w2, w3)
    assert story.runs() == {w1: {W}}

    story.rejoined(w1, w2, w3).round("settle", w1, give=[(w2, U), (w3, V)]).applied(w1, w2, w3)
    assert story.runs() == {w1: {W}, w2: {U}, w3: {V}}

    story.leave(w2).rejoined(w1, w3).round("withhold", w1).applied(w1, w3)
    assert story.runs() == {w1: {W}, w3: {V}}

    story.join(w2b).rejoined(w1, w3)
    with pytest.raises(ValueError, match="not enabled"):
        Story.round(copied(story), "settle", w1, give=[(w2b, U)])
    story.round("withhold", w1).applied(w1, w2b, w3)
    assert story.runs() == {w1: {W}, w3: {V}}
    assert story.of("candidate") == {(w1, w2b)}

    story.rejoined(w1, w2b, w3)
    with pytest.raises(ValueError, match="not enabled"):
        Story.round(copied(story), "deal", w1, give=[(w3, U)])
    story.round("deal", w1, give=[(w2b, U)]).applied(w1, w2b, w3)
    assert story.runs() == {w1: {W}, w3: {V}, w2b: {U}}
    assert not story.broken()


def copied(story: Story) -> Story:
    other = Story()
    other.state, other.generation, other.steps = story.state, story.generation, list(story.steps)
    return other


def test_a_worker_that_returns_with_its_work_keeps_it_and_ends_the_delay():
    story = two_workers().remove(B).rejoined(A).round("withhold", A).applied(A)
    story.come_back(B, C).rejoined(A).round("settle", A).applied(A, C)
    assert story.runs() == {C: {U}}
    assert not story.of("armed")
    assert not story.of("returned")


def test_work_that_two_report_is_taken_from_both_and_given_to_one():
    story = zombie_back()
    assert story.broken() == {"connect-work-runs-once", "connect-work-runs-once-in-the-group"}
    story.round("settle", A).applied(A, C)
    assert story.runs() == {}
    story.rejoined(A, C).round("settle", A, give=[(C, U)]).applied(A, C)
    assert story.runs() == {C: {U}}
    assert not story.broken()


def test_without_a_delay_lost_work_moves_at_once():
    story = Story(no_delay=True).join(A).join(B).create(U).round("settle", A, give=[(B, U)]).applied(A, B)
    story.leave(B).rejoined(A).round("settle", A, give=[(A, U)]).applied(A)
    assert story.runs() == {A: {U}}
    assert not story.broken()


def test_a_worker_that_missed_its_assignment_gets_it_without_a_delay():
    story = Story().join(A).join(B).create(U).round("settle", A, give=[(B, U)]).applied(A)
    story.rejoined(A, B).round("settle", A, give=[(B, U)]).applied(A, B)
    assert story.runs() == {B: {U}}


def test_deleted_work_is_stopped_unless_the_leader_has_no_memory():
    assert two_workers().delete(U).rejoined(A, B).round("settle", A).applied(A, B).runs() == {}
    survives = two_workers().delete(U).remove(A).rejoined(B).round("settle", B).applied(B)
    assert survives.runs() == {B: {U}}


def test_an_idle_worker_that_leaves_after_a_revocation_starts_a_delay():
    story = one_worker().create(V).rejoined(A).round("settle", A, give=[(A, V)]).applied(A)
    story.join(B).join(C).rejoined(A).round("settle", A, shed=[(A, V)]).applied(A, B, C)
    story.leave(C).rejoined(A, B).round("withhold", A, give=[(B, V)]).applied(A, B)
    assert story.of("armed") == {(A,)}
    assert not story.of("withheld")


# Popular and false.


def test_a_new_leader_does_not_wait():
    story = Story().join(A).join(B).create(U).round("settle", A, give=[(A, U)]).applied(A, B)
    story.leave(A).rejoined(B).round("settle", B, give=[(B, U)])
    assert story.broken() == {"connect-delay-survives-the-leader"}


def test_a_missed_revocation_makes_lost_work_new():
    story = Story().create(U).create(V).join(A).join(B).join(C)
    story.round("settle", A, give=[(B, U), (C, V)]).applied(A, B, C)
    story.rejoined(A, B, C).round("settle", A, shed=[(C, V)]).applied(A, B)
    story.leave(B).rejoined(A, C).round("withhold", A, give=[(A, U)])
    assert story.broken() == {"connect-lost-work-always-waits"}


# Mutations: each from the first state to the broken promise.


def twice(mutation: str) -> Story:
    return Story(mutation).join(A).join(B).create(U).round("settle", A, give=[(A, U), (B, U)]).applied(A, B)


def running_as_new(mutation: str) -> Story:
    story = Story(mutation).join(A).join(B).create(U).round("settle", A, give=[(B, U)]).applied(B)
    return story.rejoined(A, B).round("settle", A, give=[(A, U)]).applied(A)


def before_revocation(mutation: str) -> Story:
    return one_worker(mutation).join(B).rejoined(A).round("settle", A, give=[(B, U)], shed=[(A, U)]).applied(B)


def duplicates_kept(mutation: str) -> Story:
    return zombie_back(mutation).round("settle", A).applied(C)


def one_holder(mutation: str) -> Story:
    return zombie_back(mutation).round("settle", A, give=[(C, U)]).applied(C)


def at_once(mutation: str) -> Story:
    return two_workers(mutation).leave(B).rejoined(A).round("settle", A, give=[(A, U)])


def forgotten(mutation: str) -> Story:
    story = two_workers(mutation).leave(B).rejoined(A).round("withhold", A).applied(A)
    return story.rejoined(A).round("settle", A, give=[(A, U)])


def passed_over(mutation: str) -> Story:
    story = two_workers(mutation).create(V).rejoined(A, B).round("settle", A, give=[(A, V)]).applied(A, B)
    story.leave(B).join(C).rejoined(A).round("withhold", A).applied(A, C)
    return story.rejoined(A, C).round("deal", A, give=[(A, U)])


def reports_early(mutation: str) -> Story:
    story = one_worker(mutation).join(B).rejoined(A).round("settle", A, shed=[(A, U)]).applied(A, B)
    return story.rejoined(A, B).round("settle", A, give=[(B, U)]).applied(A, B)


def starts_early(mutation: str) -> Story:
    story = one_worker(mutation).create(V).rejoined(A).round("settle", A, give=[(A, V)], shed=[(A, U)])
    return story.accept().stop(A)


REFUTED: Mapping[str, tuple] = {
    "leader-gives-twice": (twice, {"connect-granted-to-one", "connect-one-target", "connect-exclusive-work"}),
    "leader-counts-running-work-as-new": (running_as_new, {"connect-reported-not-granted", "connect-one-target", "connect-exclusive-work"}),
    "leader-gives-before-revocation": (
        before_revocation,
        {"connect-reported-not-granted", "connect-revoked-not-granted", "connect-exclusive-work"},
    ),
    "duplicates-kept": (duplicates_kept, {"connect-one-target", "connect-exclusive-work"}),
    "duplicate-left-with-one-holder": (one_holder, {"connect-exclusive-work"}),
    "lost-work-given-at-once": (at_once, {"connect-lost-work-withheld"}),
    "lost-work-forgotten": (forgotten, {"connect-lost-work-withheld"}),
    "returning-worker-passed-over": (passed_over, {"connect-waiting-workers-first"}),
    "worker-reports-before-stopping": (reports_early, {"connect-exclusive-work"}),
    "worker-starts-before-stopping": (starts_early, {"connect-stop-before-start"}),
}


def test_every_mutation_has_its_run():
    assert REFUTED.keys() == {mutation.name for mutation in MUTATIONS}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_breaks_its_promise_in_a_run_from_the_first_state(mutation):
    run, expected = REFUTED[mutation.name]
    story = run(mutation.name)
    broken = story.broken()
    true = connect_protocol().safety.keys()
    assert broken & true == expected
    rules = {rule for name in broken & story.system.safety.keys() for rule in story.system.rules.get(name, ())}
    assert rules == set(mutation.breaks)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_without_the_mutation_that_run_is_impossible_or_keeps_the_promise(mutation, monkeypatch):
    run, expected = REFUTED[mutation.name]
    monkeypatch.setattr(Story, "__init__", without_mutations(Story.__init__))
    try:
        story = run(mutation.name)
    except ValueError:
        return
    assert not story.broken() & expected


def without_mutations(init):
    return lambda self, *_: init(self)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutant_is_judged(mutation):
    judgement = judge(mutation.name)
    assert judgement.verdict == ("refuted" if mutation.name in CONNECT_MUTANTS else "harmless")
    if judgement.case is None:
        assert mutation.unseen
    else:
        assert ends_breaking(judgement)
        assert set(judgement.case.system.rules[judgement.case.breaks]) <= set(mutation.breaks)


@pytest.mark.parametrize("promise", CONNECT_POPULAR)
def test_a_popular_promise_is_refuted(promise):
    assert connect_protocol().popular.keys() == CONNECT_POPULAR.keys()
    assert ends_breaking(refute_popular(promise))


def ends_breaking(judgement):
    """Whether the last state of the run is the only one without the property."""
    system = judgement.case.system
    interpreter = Interpreter(system, judgement.case.sizes)
    formula = {**system.safety, **system.popular}[judgement.case.breaks]
    holds = [interpreter.holds(formula, state) for state in judgement.trace.states(interpreter)]
    return holds == [True] * (len(holds) - 1) + [False]


def test_starting_before_stopping_is_proved_harmless_to_others():
    system = connect_protocol(mutations=frozenset({"worker-starts-before-stopping"}))
    assert "connect-stop-before-start" in system.popular
    assert not prove(system, seeds=(0,)).failed


@pytest.mark.parametrize(
    ("mutation", "conjecture"),
    [
        ("duplicates-kept", "connect-one-target"),
        ("lost-work-forgotten", "remembers-what-was-withheld"),
        ("worker-reports-before-stopping", "running-is-reported"),
    ],
)
def test_the_proof_fails_with_a_mutation(mutation, conjecture):
    proof = prove(connect_protocol(mutations=frozenset({mutation})), seeds=(0,))
    assert conjecture in {obligation.conjecture for obligation in proof.failed}
    assert proof.seconds < 5


# What is proved holds in runs.


@pytest.mark.parametrize("seed", range(12))
def test_conjectures_hold_in_random_runs(seed):
    chance = random.Random(seed)
    system = connect_protocol()
    interpreter = Interpreter(system, {"Member": 3, "Partition": 1, "Generation": 6})
    state = interpreter.initial({"no_delay": frozenset()})
    taken: list[str] = []
    conjectures = {**system.safety, **system.invariants}
    for _ in range(40):
        by_action: dict[str, list[Step]] = {}
        for step in interpreter.steps(state):
            by_action.setdefault(step.action, []).append(step)
        if not by_action:
            break
        step = chance.choice(by_action[chance.choice(sorted(by_action))])
        state = interpreter.take(state, step)
        taken.append(str(step))
        broken = [name for name, formula in conjectures.items() if not interpreter.holds(formula, state)]
        assert not broken, f"seed {seed}: {taken}"
