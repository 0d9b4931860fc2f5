"""The consumer protocol: proved for any size, its guards possible, its mutants refuted or proved harmless."""

import re
from dataclasses import replace

import pytest

from kipcheck.model import prove_mutant
from kipcheck.model.protocol.consumer import MUTATIONS, consumer_protocol, fresh
from kipcheck.model.protocol.ground import Trace
from kipcheck.model.protocol.interpreter import Interpreter, Step
from kipcheck.model.protocol.language import forall
from kipcheck.model.protocol.prove import INITIALLY, prove
from kipcheck.model.protocol.refute import MISLABELLED, MUTANTS, POPULAR, Case, judge, refute
from kipcheck.spec.rules import RULES

pytest.importorskip("z3")


@pytest.mark.parametrize("failover", [False, True])
def test_everything_is_proved_with_three_seeds(failover: bool) -> None:
    proof = prove(consumer_protocol(failover=failover), seeds=(0, 1, 2))
    assert not proof.failed
    assert not proof.cycle, "outside EPR"
    assert proof.inductive
    assert {obligation.seed for obligation in proof.obligations} == {0, 1, 2}
    matrix = proof.matrix()
    assert matrix.keys() == {INITIALLY, *(action.name for action in proof.system.actions)}
    assert matrix["accept"]["S8"] == "proved"
    assert "S4" not in matrix["accept"]


VARIANTS = {
    "dynamic members only": consumer_protocol(static=False),
    "dynamic members only, failover": consumer_protocol(static=False, failover=True),
    "dynamic members only, claims labelled by the last join, failover": consumer_protocol(static=False, failover=True, reported="joined"),
    "strict contract, claims labelled by the last join": consumer_protocol(contract="strict", reported="joined"),
    "strict contract": consumer_protocol(contract="strict"),
    "every member rejoins": consumer_protocol(assume_all_rejoin=True, failover=True),
    "absent static members claim what they had": consumer_protocol(absent_claims_last=True, failover=True),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_are_proved(variant: str) -> None:
    proof = prove(VARIANTS[variant], seeds=(0,))
    assert proof.inductive
    assert not proof.cycle
    assert proof.seconds < 5


def test_what_the_variants_add() -> None:
    assert {"S2mem", "S3lit"} <= VARIANTS["every member rejoins"].safety.keys()
    assert "S3lit" in VARIANTS["absent static members claim what they had"].safety
    assert not VARIANTS["dynamic members only"].popular


@pytest.mark.parametrize(("name", "steps"), [("S2mem", 18), ("S3lit", 9), ("S3all", 11)])
def test_popular_promises_are_false(name: str, steps: int) -> None:
    trace = _broken(POPULAR[name])
    assert len(trace.steps) == steps


MISLABELLED_RUN = """
start(0) join_new(0) complete(1) receive_join_response(0,1) propose(0) accept() answer_sync(0,1) revoke(0,1) assign(0)
start(1) join_new(1) complete(2) propose(1) accept() receive_join_response(1,2) answer_sync(1,2) revoke(1,2) assign(1)
rejoin(0) rejoin(1) join_known(0) join_known(1) complete(3) receive_join_response(0,3) rejoin(0) join_known(0)
rejoin(1) join_known(1) complete(4) propose(0) accept()
"""


def test_claims_labelled_by_the_last_join_break_ownership_of_static_members() -> None:
    """0 missed generation 2, in which 1 was given its partition; in 4 its old claim is labelled 3, and that of 1 is labelled 2."""
    system = MISLABELLED.system
    assert "S8" in system.popular
    interpreter = Interpreter(system, MISLABELLED.sizes)
    state = interpreter.initial(MISLABELLED.rigid)
    for name, arguments in re.findall(r"(\w+)\(([\d,]*)\)", MISLABELLED_RUN):
        values = tuple(int(value) for value in arguments.split(",") if value)
        step = Step(name, (), {"choice": frozenset({(values[0], 0)})}) if name == "propose" else Step(name, values)
        assert interpreter.holds(system.popular["S8"], state)
        state = interpreter.take(state, step)
    assert not interpreter.holds(system.popular["S8"], state)


@pytest.mark.parametrize("mutation", [mutation.name for mutation in MUTATIONS])
def test_mutants_are_refuted_or_harmless(mutation: str) -> None:
    if mutation in MUTANTS:
        _broken(MUTANTS[mutation])
    else:
        assert judge(mutation).verdict == "harmless"


def test_a_mutant_is_judged_by_the_proof_that_is_shown() -> None:
    proved, judgement = prove_mutant("take-before-revoke", seeds=(0,))
    assert (judgement.verdict, judgement.proof) == ("harmless", proved.proof)


def _broken(case: Case) -> Trace:
    """The run ends in the first state without the property."""
    trace = refute(case)
    assert trace is not None
    system = case.system
    interpreter = Interpreter(system, case.sizes)
    *before, after = trace.states(interpreter)
    formula = {**system.safety, **system.popular}[case.breaks]
    assert not interpreter.holds(formula, after)
    assert all(interpreter.holds(formula, state) for state in before)
    return trace


def test_mutations_break_the_rules_that_their_property_states() -> None:
    for mutation in MUTATIONS:
        assert mutation.floor == "protocol"
        assert set(mutation.breaks) <= RULES.keys()
        if mutation.name in MUTANTS:
            case = MUTANTS[mutation.name]
            assert set(case.system.rules[case.breaks]) & set(mutation.breaks), mutation.name
        else:
            assert mutation.unseen


def test_every_property_has_words_and_rules_of_the_catalogue() -> None:
    system = consumer_protocol(failover=True)
    properties = {**system.safety, **system.popular}
    assert system.words.keys() == system.rules.keys() == properties.keys()
    assert {rule for rules in system.rules.values() for rule in rules} <= RULES.keys()


def test_unknown_mutation() -> None:
    with pytest.raises(ValueError, match="no-such-thing"):
        consumer_protocol(mutations=frozenset({"no-such-thing"}))
    with pytest.raises(KeyError):
        judge("no-such-thing")


def test_a_failing_obligation_shows_a_step_that_the_interpreter_confirms() -> None:
    system = consumer_protocol(static=False)
    weak = replace(system, invariants={name: node for name, node in system.invariants.items() if name != "claims-are-true"})
    proof = prove(weak, seeds=(0,), only=["S8"])
    assert [(obligation.action, obligation.conjecture) for obligation in proof.failed] == [("accept", "S8")]
    (induction,) = proof.counterexamples
    assert induction.where.keys() == {"a", "b", "p", "h"}
    text = str(induction)
    assert re.match(r"accept \(nothing to choose\) breaks S8 at a = \d", text)
    assert "before: " in text
    assert "assigned(" in text


def test_an_impossible_guard_is_told() -> None:
    system = consumer_protocol(static=False)
    idle = forall("Member", lambda m: fresh(m))
    proof = prove(replace(system, invariants={**system.invariants, "idle": idle}), seeds=(), only=[])
    assert not proof.inductive
    possible = {vacuity.action for vacuity in proof.vacuity if vacuity.possible}
    assert "start" in possible
    assert "rejoin" not in possible
