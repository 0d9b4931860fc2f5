"""The constrained sticky algorithm for all inputs: the symbolic twin equals the reference, the promises hold, mutants are refuted."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.model.assignors import ASSIGNORS, AssignorFailed
from kipcheck.model.messages import JoinedMember, Metadata
from kipcheck.model.protocol.assignor import PROMISES, Bools, Generations, Input, Round, Symbols, run, verify, verify_adjust
from kipcheck.model.protocol.quantified import z3

seeded = settings(derandomize=True, deadline=None, max_examples=150, print_blob=True)
SOURCES: tuple[Generations, ...] = ("field", "user-data")


@st.composite
def inputs(draw: st.DrawFn) -> tuple[Mapping[str, int], Input]:
    topics = draw(st.sampled_from([{"t": 1}, {"t": 4}, {"t": 6}, {"t": 3, "u": 3}, {"t": 2, "u": 1, "v": 2}]))
    members = draw(st.integers(1, 4))
    row = st.lists(st.booleans(), min_size=sum(topics.values()), max_size=sum(topics.values()))
    owned = draw(st.lists(row, min_size=members, max_size=members))
    return topics, Input(owned, draw(st.lists(st.integers(0, members), min_size=members, max_size=members)))


def names(topics: Mapping[str, int]) -> list[str]:
    return [f"{topic}-{number}" for topic in topics for number in range(topics[topic])]


def group(topics: Mapping[str, int], given: Input, reads: Generations) -> list[JoinedMember]:
    def metadata(row: list[bool], rank: int) -> Metadata:
        owned = tuple(name for name, claimed in zip(names(topics), row, strict=True) if claimed)
        generation = rank - 1
        return Metadata(tuple(topics), owned, generation if reads == "field" else -1, None, None if reads == "field" else generation)

    return [
        JoinedMember(member=f"c{index}", instance=None, metadata=metadata(row, rank))
        for index, (row, rank) in enumerate(zip(given.owned, given.generation, strict=True))
    ]


def twin(topics: Mapping[str, int], given: Input, reads: Generations, *defects: str) -> Round:
    partitions = names(topics)
    by_id = sorted(range(len(partitions)), key=lambda p: (int(partitions[p].split("-")[1]), partitions[p]))
    return run(Bools(), given, by_id, reads, frozenset(defects))


@pytest.mark.parametrize("reads", SOURCES)
@pytest.mark.parametrize("defect", [None, "assignor-skips-adjust", "only-highest-generation-counts", "loser-becomes-owner"])
@given(case=inputs())
@seeded
def test_the_algorithm_over_bools_is_the_reference(reads: Generations, defect: str | None, case: tuple[Mapping[str, int], Input]) -> None:
    topics, claims = case
    defects = (defect,) if defect else ()
    done = twin(topics, claims, reads, *defects)
    try:
        shares = ASSIGNORS["cooperative-sticky"].assign(group(topics, claims, reads), topics, {}, defects=frozenset(defects))
    except AssignorFailed:
        assert done.failed
    else:
        assert not done.failed
        for index, row in enumerate(done.share):
            given_out = {name for name, here in zip(names(topics), row, strict=True) if here}
            assert set(shares[f"c{index}"]) == given_out


@given(case=inputs())
@seeded
def test_the_promises_hold_of_concrete_inputs(case: tuple[Mapping[str, int], Input]) -> None:
    topics, claims = case
    done = twin(topics, claims, "field")
    for name, _, promise in PROMISES:
        assert promise(Bools(), claims, done), name


def test_the_promises_hold_of_every_group_of_four_members_and_six_partitions() -> None:
    results = verify(4, 6)
    assert [result.name for result in results] == [name for name, _, _ in PROMISES]
    assert {result.name: result.holds for result in results} == dict.fromkeys((name for name, _, _ in PROMISES), True)
    assert {result.bound for result in results} == {"4 members, 6 partitions"}


@pytest.mark.parametrize(("members", "partitions"), [(1, 3), (2, 2), (3, 2), (3, 4)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_small_groups_and_other_seeds_agree(members: int, partitions: int, seed: int) -> None:
    assert all(result.holds for result in verify(members, partitions, seed))


def test_the_free_choices_can_be_made() -> None:
    """The proofs are not about nothing: what they assume of the choices is satisfiable, together with any claims."""
    z3: Any = import_module("z3")
    logic = Symbols(4, any_order=True)
    owned = [[logic.fresh() for _ in range(3)] for _ in range(3)]
    run(logic, Input(owned, [logic.number(1)] * 3))
    solver = z3.Solver()
    solver.add(*logic.side)
    for claims in ([0, 0, 0], [7, 7, 7], [1, 2, 4], [7, 0, 0], [3, 6, 0]):
        assumed = [owned[m][p] if bits >> p & 1 else z3.Not(owned[m][p]) for m, bits in enumerate(claims) for p in range(3)]
        assert str(solver.check(*assumed)) == "sat", claims


@pytest.mark.parametrize(
    ("defect", "promise"),
    [
        ("assignor-skips-adjust", "cooperative-withholds"),
        ("only-highest-generation-counts", "cooperative-withholds"),
        ("loser-becomes-owner", "assigns-completely-and-exclusively"),
        ("loser-becomes-owner", "assignor-answers"),
    ],
)
def test_a_mutant_is_refuted_by_an_input_that_the_reference_also_fails(defect: str, promise: str) -> None:
    (result,) = verify(3, 4, defects=frozenset({defect}), promises=(promise,))
    assert result.holds is False
    assert breaks(result.counterexample, 4, defect)
    assert not breaks(result.counterexample, 4)


def breaks(members: tuple[JoinedMember, ...], partitions: int, *defects: str) -> bool:
    """Whether the reference fails, makes two owners, or gives away what a member claims that is no older."""
    try:
        shares = ASSIGNORS["cooperative-sticky"].assign(members, {"t": partitions}, {}, defects=frozenset(defects))
    except AssignorFailed:
        return True
    given_out = [name for share in shares.values() for name in share]
    return len(given_out) > len(set(given_out)) or any(
        name in other.metadata.owned and (name not in member.metadata.owned or generation(member) <= generation(other))
        for member in members
        for name in shares[member.member]
        for other in members
        if other != member
    )


def generation(member: JoinedMember) -> int:
    return ASSIGNORS["cooperative-sticky"].claim(member.metadata).generation


def test_generations_in_user_data_are_compared_wrongly_as_kafka_does() -> None:
    """Subscriptions before 3.4: the other claimant counts as absent, and whoever comes later wins."""
    results = {result.name: result for result in verify(2, 3, reads="user-data")}
    refuted = results.pop("cooperative-withholds")
    assert all(result.holds for result in results.values())
    assert refuted.holds is False
    assert refuted.known
    assert breaks(refuted.counterexample, 3)


def test_adjust_keeps_its_contract_at_any_size_except_towards_a_stale_claimant() -> None:
    results = {result.name: result for result in verify_adjust()}
    stale = results.pop("withholds-from-stale-claimants")
    assert all(result.holds and result.bound == "any size" and not result.known for result in results.values())
    assert stale.holds is False
    assert stale.known
    taker, other = stale.counterexample
    assert taker.metadata.owned == other.metadata.owned == ("t-0",)
    assert taker.metadata.generation < other.metadata.generation


def test_without_adjust_true_claims_are_given_away() -> None:
    results = {result.name: result.holds for result in verify_adjust(defects=frozenset({"assignor-skips-adjust"}))}
    assert not results["withholds-true-claims"]
    assert not results["withholds-disputed-claims"]
    assert results["withholds-only-claimed"]


def test_without_z3_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    z3.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'kipcheck\[prove\]'"):
        verify(1, 1)
    with pytest.raises(ImportError, match=r"pip install 'kipcheck\[prove\]'"):
        verify_adjust()
