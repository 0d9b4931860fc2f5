"""The reference assignors as subjects."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.failed import Failed
from kipcheck.conformance.gate.adapters import subject
from kipcheck.conformance.gate.builtin import Builtin, builtin
from kipcheck.conformance.gate.wire import from_kafka_python, metadata_of
from kipcheck.model.assignors import ASSIGNORS, MUTATIONS
from kipcheck.spec.assignors.case import Answer, Case, Member, NoAnswer

NAMES = tuple(ASSIGNORS)


def case(*members: Member, partitions: int = 2, before: tuple[Case, ...] = ()) -> Case:
    return Case(id="a", topics={"t": partitions}, members=members, before=before)


def member(name: str, *owned: str, generation: int = -1, version: int = 3, metadata: bytes | None = None) -> Member:
    return Member(id=name, subscribed=("t",), owned=owned, generation=generation, version=version, metadata=metadata)


def answer(spec: str, asked: Case) -> Answer:
    return builtin(spec).ask([asked])[0]


@pytest.mark.parametrize("name", NAMES)
def test_each_is_of_its_own_kind_and_answers(name: str) -> None:
    made = subject(f"builtin:{name}")
    assert (made.name, made.kind) == (f"builtin:{name}", name)
    first, nobody = made.ask([case(member("c0"), member("c1")), case()])
    assert isinstance(first, dict)
    assert {len(share) for share in first.values()} == {1}
    assert nobody == {}
    assert made.seconds > 0
    made.close()


def test_it_may_be_held_to_another_kind() -> None:
    assert subject("builtin:range", as_kind="eager").kind == "eager"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("cooperative", "there is no built-in assignor 'cooperative'"),
        ("rnge", "did you mean range?"),
        ("range!trust-every-claim", "did you mean trusts-every-claim?"),
        ("range!x", "there is no defect 'x'"),
    ],
)
def test_an_unknown_name_has_a_hint(spec: str, words: str) -> None:
    with pytest.raises(Failed) as failed:
        builtin(spec)
    assert words in failed.value.message


@pytest.mark.parametrize("mutation", [each.name for each in MUTATIONS])
def test_every_defect_can_be_seeded(mutation: str) -> None:
    made = builtin(f"cooperative-sticky!{mutation}")
    assert made.name == f"builtin:cooperative-sticky!{mutation}"
    assert made.ask([case(member("c0", "t-0", generation=3), member("c1"))])


def test_defects_come_in_any_number() -> None:
    made = builtin("cooperative-sticky!trusts-every-claim, assignor-skips-adjust")
    assert made.defects == {"trusts-every-claim", "assignor-skips-adjust"}
    assert made.name == "builtin:cooperative-sticky!assignor-skips-adjust,trusts-every-claim"


def test_claims_reach_the_assignors_that_read_them() -> None:
    asked = case(member("c0", "t-1", generation=4), member("c1", "t-0", generation=4))
    kept = {"c0": ("t-1",), "c1": ("t-0",)}
    assert answer("cooperative-sticky", asked) == answer("sticky", asked) == kept
    assert answer("range", asked) == answer("roundrobin", asked) == {"c0": ("t-0",), "c1": ("t-1",)}


def test_what_has_to_move_is_withheld() -> None:
    asked = case(member("c0", "t-0", "t-1", generation=4), member("c1"))
    assert answer("cooperative-sticky", asked) == {"c0": ("t-0",), "c1": ()}
    assert answer("sticky", asked) == {"c0": ("t-0",), "c1": ("t-1",)}
    assert answer("cooperative-sticky!assignor-skips-adjust", asked) == {"c0": ("t-0",), "c1": ("t-1",)}


def test_the_newest_claim_stands_whatever_the_version() -> None:
    for version in (1, 2, 3):
        asked = case(member("c0", "t-0", generation=4, version=version), member("c1", "t-0", generation=5, version=version))
        found = answer("cooperative-sticky", asked)
        assert isinstance(found, dict)
        assert "t-0" not in found["c0"]
    unclaimed = case(member("c0", "t-1", generation=4, version=0), member("c1", version=0))
    assert answer("cooperative-sticky", unclaimed) == {"c0": ("t-0",), "c1": ("t-1",)}


def test_a_leader_remembers_what_it_saw() -> None:
    asked = case(member("c0", "t-1", "t-3", generation=1), member("c1", "t-0", "t-2", generation=1), partitions=4)
    earlier = case(member("c0", generation=10))
    used = case(*asked.members, partitions=4, before=(earlier,))
    assert answer("cooperative-sticky", used) == answer("cooperative-sticky", asked)
    assert answer("cooperative-sticky!remembers-highest-generation", asked) == {"c0": ("t-1", "t-3"), "c1": ("t-0", "t-2")}
    assert answer("cooperative-sticky!remembers-highest-generation", used) == {"c0": ("t-0", "t-2"), "c1": ("t-1", "t-3")}


def test_what_throws_is_an_error() -> None:
    asked = case(member("c0", "t-0", generation=4), member("c1", "t-0", generation=4), member("c2"), partitions=1)
    found = answer("cooperative-sticky!trusts-every-claim", asked)
    assert not isinstance(found, NoAnswer) or found.how == "error"
    hostile = case(member("c0", metadata=b"\0\1\xff"), member("c1"))
    found = answer("cooperative-sticky", hostile)
    assert isinstance(found, NoAnswer)
    assert found.how == "error"
    assert "can't be decoded" in found.says


@given(st.binary(max_size=40), st.sampled_from(NAMES))
@settings(derandomize=True, deadline=None, max_examples=100)
def test_hostile_metadata_is_an_answer(metadata: bytes, name: str) -> None:
    found = Builtin(name).ask([case(member("c0", metadata=metadata), member("c1", "t-0", generation=3))])[0]
    assert found is not None


def test_raw_metadata_says_the_same_as_the_fields() -> None:
    first, second = member("c0", "t-0", "t-1", generation=4), member("c1")
    schema = from_kafka_python("kafka.coordinator.assignors.sticky.user_data", "StickyAssignorUserData")
    data = {
        "range": None,
        "roundrobin": None,
        "sticky": schema(previous_assignment=[("t", [0, 1])], generation=4).encode(),
        "cooperative-sticky": struct.pack(">i", 4),
    }
    for name, user_data in data.items():
        raw = member("c0", metadata=metadata_of(first, user_data))
        assert answer(name, case(raw, second)) == answer(name, case(first, second))
