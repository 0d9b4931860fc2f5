"""What is fed to an assignor: that it is legal, what it says it is, always the same, and finds the known defects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kipcheck.conformance.gate.inputs.classify import MARKS, classify, shows, split
from kipcheck.conformance.gate.inputs.exhaustive import small
from kipcheck.conformance.gate.inputs.hostile import hostile
from kipcheck.conformance.gate.inputs.random import MOST_MEMBERS, MOST_PARTITIONS, MOST_TOPICS, cases, classes, sample
from kipcheck.conformance.gate.wire import metadata_of
from kipcheck.conformance.readers.wire import WireError, decode_subscription
from kipcheck.model.assignors import ASSIGNORS, AssignorFailed, Claim
from kipcheck.model.messages import JoinedMember, Metadata
from kipcheck.spec.assignors.case import ABSENT, Case, InputClass, Member
from kipcheck.spec.assignors.codec import decode, encode
from kipcheck.spec.assignors.kinds import KINDS, Kind

EXAMPLES = 900
Shares = Mapping[str, tuple[str, ...]]


def assign(name: str, case: Case, defects: Iterable[str] = (), seen: int = ABSENT) -> Shares:
    eager = name == "sticky"
    members = [
        JoinedMember(
            member=each.id,
            instance=each.instance,
            metadata=Metadata(
                topics=each.subscribed,
                owned=() if eager else each.owned,
                generation=each.generation,
                rack=each.rack,
                user_data=Claim(each.owned, each.generation) if eager else None,
            ),
        )
        for each in case.members
    ]
    return ASSIGNORS[name].assign(members, case.topics, case.racks, seen=seen, defects=frozenset(defects))


def given_twice(case: Case, shares: Shares) -> bool:
    handed = [partition for partitions in shares.values() for partition in partitions]
    return len(set(handed)) < len(handed)


def taken_at_once(case: Case, shares: Shares) -> bool:
    """Somebody gets what another member claims."""
    return any(
        partition in other.owned and partition not in each.owned
        for each in case.members
        for partition in shares[each.id]
        for other in case.members
        if other is not each
    )


def moved(case: Case, shares: Shares) -> int:
    return sum(partition not in shares[each.id] for each in case.members for partition in each.owned)


def broken(case: Case, name: str, defect: str, seen: int = ABSENT) -> str:
    try:
        shares = assign(name, case, [defect], seen)
    except AssignorFailed:
        return "fails"
    if given_twice(case, shares):
        return "given twice"
    if name == "cooperative-sticky" and taken_at_once(case, shares):
        return "taken at once"
    return "ok"


ZOO = (
    ("Z1", "cooperative-sticky", "trusts-every-claim", "given twice"),
    ("Z1b", "cooperative-sticky", "trusts-every-claim", "fails"),
    ("Z3", "cooperative-sticky", "only-highest-generation-counts", "taken at once"),
    ("Z4", "cooperative-sticky", "loser-becomes-owner", "given twice"),
    ("Z4", "cooperative-sticky", "loser-becomes-owner", "fails"),
    ("Z5a", "cooperative-sticky", "rack-mismatch-not-withheld", "taken at once"),
    ("Z8", "sticky", "trusts-every-prior-assignment", "given twice"),
    ("no withholding", "cooperative-sticky", "assignor-skips-adjust", "taken at once"),
)


@pytest.mark.parametrize(("key", "name", "defect", "how"), ZOO)
def test_small_inputs_find(key: str, name: Kind, defect: str, how: str) -> None:
    assert how in {broken(case, name, defect) for case in small(name)}


@pytest.mark.parametrize(("key", "name", "defect", "how"), [*ZOO, ("Z5b", "cooperative-sticky", "rack-filling-ignores-quota", "fails")])
@pytest.mark.parametrize("seed", [0, 1])
def test_random_inputs_find(key: str, name: Kind, defect: str, how: str, seed: int) -> None:
    assert how in {broken(case, name, defect) for case in sample(name, EXAMPLES, seed) if case.input_class != "hostile metadata"}


def test_a_leader_that_remembers_a_generation_is_found() -> None:
    """Z13: what it takes from one member it gives to another at once."""
    found = 0
    for case in sample("cooperative-sticky", EXAMPLES, 0):
        if case.input_class == "leader reused":
            seen = max(member.generation for each in case.before for member in each.members)
            found += broken(case, "cooperative-sticky", "remembers-highest-generation", seen) == "taken at once"
    assert found


@pytest.mark.parametrize("inputs", [small("sticky"), sample("sticky", EXAMPLES, 0)], ids=["small", "random"])
def test_a_comparison_that_consumes_user_data_moves_more(inputs: Iterable[Case]) -> None:
    """Z7."""
    sound = [case for case in inputs if case.input_class in ("clean", "unsubscribed owner")]
    assert any(
        moved(case, assign("sticky", case, ["comparison-consumes-user-data"])) > moved(case, assign("sticky", case)) for case in sound
    )


def has(cases: Iterable[Case], topics: Mapping[str, int], *members: tuple[tuple[str, ...], tuple[str, ...], int]) -> bool:
    wanted = [Member(id=f"c{number}", subscribed=s, owned=o, generation=g) for number, (s, o, g) in enumerate(members)]
    return any(case.topics == topics and list(case.members) == wanted for case in cases)


def test_small_inputs_hold_the_zoo_as_written() -> None:
    t = ("t",)
    inputs = list(small("cooperative-sticky"))
    assert has(inputs, {"t": 1}, (t, ("t-0",), 5), (t, ("t-0",), 5))
    assert has(inputs, {"t": 3}, (t, ("t-0", "t-1"), 5), (t, ("t-0", "t-1"), 5))
    assert has(inputs, {"t": 1}, (t, (), 5), (t, ("t-0",), 3))
    assert has(inputs, {"t": 3}, (t, ("t-0",), 5), (t, ("t-0",), ABSENT), (t, ("t-0",), 3))
    assert has(inputs, {"t": 2}, (t, ("t-0",), ABSENT), (t, ("t-0",), 5), (t, ("t-0",), 3))
    both = ("a", "b")
    assert has(inputs, {"a": 1, "b": 1}, (both, ("a-0",), 5), (both, ("b-0",), 5), (("a",), (), 5))
    assert has(inputs, {"a": 2, "b": 2}, (both, (), 5), (both, ("a-0", "a-1", "b-0", "b-1"), 5))


@pytest.mark.parametrize("kind", KINDS)
def test_small_inputs_are_few_and_different_and_come_simplest_first(kind: Kind) -> None:
    begun = process_time()
    inputs = list(small(kind))
    assert process_time() - begun < 2
    assert 1000 < len(inputs) < 3100
    assert len({repr((case.topics, case.racks, case.members)) for case in inputs}) == len(inputs)
    assert len({case.id for case in inputs}) == len(inputs)
    assert all(case.input_class == classify(case) for case in inputs)
    sizes = [len(case.members) for case in inputs]
    assert sizes == sorted(sizes)
    assert inputs == list(small(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_is_the_same_for_the_same_seed_and_holds_every_class(kind: Kind) -> None:
    one = list(sample(kind, EXAMPLES, 7))
    assert one == list(sample(kind, EXAMPLES, 7))
    assert one != list(sample(kind, EXAMPLES, 8))
    assert one[:50] == list(sample(kind, 50, 7))
    counts = Counter(case.input_class for case in one)
    assert set(counts) == set(classes(kind))
    assert min(counts.values()) >= EXAMPLES // 30
    assert len({case.id for case in one}) == len(one)


def test_a_sample_is_fast() -> None:
    begun = process_time()
    assert sum(1 for _ in sample("cooperative-sticky", 2000, 0)) == 2000
    assert process_time() - begun < 1


def legal(case: Case) -> None:
    assert 1 <= len(case.members) <= MOST_MEMBERS
    assert len(case.topics) <= MOST_TOPICS
    assert all(1 <= count <= MOST_PARTITIONS for count in case.topics.values())
    assert len({member.id for member in case.members}) == len(case.members)
    instances = [member.instance for member in case.members if member.instance]
    assert len(set(instances)) == len(instances)
    for member in case.members:
        assert member.generation >= ABSENT
        assert len(set(member.owned)) == len(member.owned)
        assert all(split(partition)[1] >= 0 for partition in member.owned)
        if case.input_class != "hostile metadata":
            assert member.subscribed
            assert member.metadata is None
        if member.version < 3:
            assert member.rack is None
    assert all(case.racks[partition] for partition in case.racks)
    assert decode(encode(case))[0] == case


@pytest.mark.parametrize("kind", KINDS)
def test_random_inputs_are_legal_and_what_they_say(kind: Kind) -> None:
    for case in sample(kind, EXAMPLES, 3):
        legal(case)
        assert shows(case, case.input_class), case
        if case.input_class == "clean":
            assert classify(case) == "clean", case


@pytest.mark.parametrize("kind", ["range", "cooperative-sticky"])
@settings(derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_hypothesis_draws_the_same_kind_of_inputs(kind: Kind, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    legal(case)
    assert shows(case, case.input_class)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(case=cases("cooperative-sticky", "double claim"))
def test_hypothesis_draws_the_class_asked_for(case: Case) -> None:
    assert case.input_class == "double claim"
    assert shows(case, "double claim")


@pytest.mark.parametrize("kind", ["range", "roundrobin"])
def test_assignors_that_read_no_claims_get_none(kind: Kind) -> None:
    assert not any(member.owned for case in (*small(kind), *sample(kind, EXAMPLES, 0)) for member in case.members if not member.metadata)


def test_versions_carry_what_they_can() -> None:
    for case in sample("cooperative-sticky", EXAMPLES, 0):
        for member in case.members if case.input_class == "mixed metadata versions" else ():
            assert member.version >= 1 or not member.owned
            assert member.version >= 2 or member.generation == ABSENT


def test_hostile_metadata_are_always_the_same_and_told_apart_by_name() -> None:
    member = Member(id="c0", subscribed=("t", "u"), owned=("t-0", "u-1"), generation=4, rack="ra")
    kinds = dict(hostile(member))
    assert list(hostile(member)) == list(kinds.items())
    assert len(kinds) > 30
    assert all(spoiled.metadata is not None and spoiled.id == "c0" for spoiled in kinds.values())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_hostile_metadata_is_among_the_small_inputs(kind: Kind) -> None:
    fed = {member.metadata for case in small(kind) if case.input_class == "hostile metadata" for member in case.members}
    victim = next(case for case in small(kind) if case.input_class == "hostile metadata").members[0]
    assert {spoiled.metadata for _, spoiled in hostile(Member(id=victim.id, subscribed=("t",)))} <= fed


def test_the_fields_of_a_hostile_member_are_what_a_reader_finds() -> None:
    member = Member(id="c0", subscribed=("t", "u"), owned=("t-0", "u-1"), generation=4, rack="ra")
    for name, spoiled in hostile(member):
        assert spoiled.metadata is not None
        try:
            read = decode_subscription(spoiled.metadata)
        except WireError:
            assert not spoiled.subscribed or "-1" in name, name
            continue
        assert read.topics == tuple(sorted(set(spoiled.subscribed))), name
        assert read.owned == tuple(sorted(spoiled.owned)), name
        assert (read.generation if read.generation is not None else ABSENT) == spoiled.generation, name
        assert (read.rack or None) == spoiled.rack, name


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
def test_a_tail_is_all_that_is_wrong_with_trailing_bytes() -> None:
    member = Member(id="c0", subscribed=("a-1", "t"), owned=("a-1-0", "t-2"), generation=4, rack="ra")
    spoiled = dict(hostile(member))["trailing bytes"]
    assert (spoiled.metadata or b"").startswith(metadata_of(member))


@pytest.mark.parametrize("input_class", MARKS)
def test_a_plain_case_shows_no_class(input_class: InputClass) -> None:
    plain = Case(
        id="",
        topics={"a-1": 2},
        members=(Member(id="c0", subscribed=("a-1",), owned=("a-1-0",), generation=3), Member(id="c1", subscribed=("a-1",))),
    )
    assert classify(plain) == "clean"
    assert not shows(plain, input_class)
