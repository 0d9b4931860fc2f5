"""The syntax tree: builders, substitution without capture, weakest preconditions, and what a system refuses."""

import pickle
from dataclasses import replace

import pytest

from kipcheck.model.protocol.consumer import consumer_protocol
from kipcheck.model.protocol.interpreter import Interpreter
from kipcheck.model.protocol.language import (
    BOOL,
    FALSE,
    TRUE,
    Action,
    And,
    If,
    Node,
    Not,
    Symbol,
    System,
    Variable,
    define,
    distinct,
    equal,
    exists,
    forall,
    free_variables,
    iff,
    implies,
    ite,
    land,
    lnot,
    lor,
    pretty,
    put,
    substitute,
    symbols_of,
    weakest_precondition,
)

leads = Symbol("leads", ("Member",), BOOL)
follows = Symbol("follows", ("Member", "Member"), BOOL)
boss = Symbol("boss", ("Member",), "Member")
a, b = Variable("a", "Member"), Variable("b", "Member")


def test_equal_trees_are_one_object() -> None:
    def build() -> Node:
        return forall("Member Member", lambda a, b: implies(land(leads(a), leads(b)), equal(a, b)))

    assert build() is build()
    assert pickle.loads(pickle.dumps(build())) is build()
    assert Variable(name="a", sort="Member") is a


def test_builders_simplify() -> None:
    assert land() is TRUE
    assert lor() is FALSE
    assert land(leads(a), TRUE, leads(a)) is leads(a)
    assert land(leads(a), lnot(leads(a))) is FALSE
    assert lor(leads(a), lnot(leads(a))) is TRUE
    assert land(leads(a), land(leads(b), FALSE)) is FALSE
    assert land(leads(a), land(leads(b), follows(a, b))) is And((leads(a), leads(b), follows(a, b)))
    assert lnot(lnot(leads(a))) is leads(a)
    assert equal(a, a) is TRUE
    assert distinct(a, b) is Not(equal(a, b))
    assert ite(TRUE, a, b) is a
    assert ite(leads(a), a, b) is If(leads(a), a, b)
    assert ite(leads(a), TRUE, FALSE) is leads(a)
    assert iff(leads(a), TRUE) is leads(a)
    assert forall("Member", lambda m: leads(a)) is leads(a)


def test_sorts_are_checked() -> None:
    with pytest.raises(TypeError, match="follows"):
        follows(a)
    with pytest.raises(TypeError, match="leads"):
        leads(Variable("p", "Partition"))
    with pytest.raises(TypeError, match="= p"):
        equal(a, Variable("p", "Partition"))
    with pytest.raises(TypeError):
        equal(leads(a), leads(b))


def test_bound_variables_keep_apart() -> None:
    nested = forall("Member", lambda m: land(leads(m), exists("Member", lambda m: lnot(leads(m)))))
    assert pretty(nested) == "for all m in Member: leads(m) and (for some m2 in Member: not leads(m2))"
    assert free_variables(nested) == set()
    assert symbols_of(nested) == {leads}


def test_substitution_captures_nothing() -> None:
    followed = exists("Member", lambda a: follows(a, b))
    assert free_variables(substitute(followed, {b: a})) == {a}
    assert substitute(followed, {b: a}) is not exists("Member", lambda a: follows(a, a))
    assert substitute(followed, {Variable("a", "Member"): b}) is followed


def test_updates_read_the_state_before() -> None:
    swap = Action(
        name="swap",
        parameters=(a,),
        guard=TRUE,
        updates=(define(leads, lambda m: follows(m, a)), define(follows, lambda m, n: land(leads(m), leads(n)))),
        doc="",
    )
    after = weakest_precondition(swap, forall("Member", lambda a: implies(leads(a), exists("Member", lambda b: follows(a, b)))))
    assert free_variables(after) == {a}
    interpreter = Interpreter(_system(), {"Member": 2})
    for points in ({(0, 1)}, {(0, 0), (1, 1)}, set[tuple[int, int]]()):
        state = {"leads": frozenset({(1,)}), "follows": frozenset(points)}
        formula = forall("Member", lambda m: implies(leads(m), exists("Member", lambda n: follows(m, n))))
        for at in (0, 1):
            later = interpreter.apply(swap, state, (at,))
            assert interpreter.holds(weakest_precondition(swap, formula), state, {a: at}) == interpreter.holds(formula, later)


def test_untouched_formulas_stay_the_same_object() -> None:
    promote = Action(name="promote", parameters=(a,), guard=TRUE, updates=(put(leads, a, value=TRUE),), doc="")
    formula = forall("Member Member", lambda m, n: lnot(land(follows(m, n), follows(n, m))))
    assert weakest_precondition(promote, formula) is formula


def test_functions_nest_in_updates() -> None:
    promote = Action(name="promote", parameters=(a, b), guard=TRUE, updates=(put(boss, a, value=b),), doc="")
    assert pretty(weakest_precondition(promote, leads(boss(boss(b))))).count("if") == 3


def test_pretty_reads_like_a_sentence() -> None:
    formula = forall("Member Member", lambda m, n: implies(land(leads(m), leads(n)), lor(equal(m, n), follows(m, n))))
    assert str(formula) == "for all m, n in Member: leads(m) and leads(n) implies m = n or follows(m, n)"
    assert str(lnot(land(leads(a), lnot(equal(a, b))))) == "not (leads(a) and a != b)"


def _system() -> System:
    return System(
        name="toy",
        sorts=("Member",),
        ordered=(),
        rigid=(),
        state=(leads, follows),
        axioms=(),
        initial=(define(leads, FALSE), define(follows, FALSE)),
        actions=(),
        safety={},
        invariants={},
    )


def test_a_system_refuses_gaps() -> None:
    with pytest.raises(ValueError, match="no initial value"):
        replace(_system(), state=(leads, follows, boss))
    stray = Action(name="stray", parameters=(a,), guard=TRUE, updates=(put(boss, a, value=a),), doc="")
    with pytest.raises(ValueError, match="not state"):
        replace(_system(), actions=(stray,))
    with pytest.raises(ValueError, match="twice"):
        Action(name="twice", parameters=(a,), guard=TRUE, updates=(put(leads, a, value=TRUE), put(leads, a, value=FALSE)), doc="")


def test_lookup_by_name() -> None:
    system = consumer_protocol()
    assert system.action("propose").havoc == (system.symbol("choice"),)
    with pytest.raises(KeyError):
        system.action("nap")
    with pytest.raises(KeyError):
        system.symbol("nap")
