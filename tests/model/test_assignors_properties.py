"""What every assignment has to be, on random groups: the promises as oracles that know nothing of the algorithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.model.assignors import ASSIGNORS, Claim, cooperative_violation
from kipcheck.model.messages import JoinedMember, Metadata

Shares = Mapping[str, Sequence[str]]
seeded = settings(derandomize=True, deadline=None, max_examples=80, print_blob=True)


@dataclass(frozen=True, slots=True)
class Group:
    """The input of one assignment; ``equal`` when all subscribe the same topics."""

    members: tuple[JoinedMember, ...]
    topics: Mapping[str, int]
    racks: Mapping[str, tuple[str, ...]]
    equal: bool

    @property
    def partitions(self) -> tuple[str, ...]:
        wanted = {topic for member in self.members for topic in member.metadata.topics}
        return tuple(f"{topic}-{number}" for topic in self.topics if topic in wanted for number in range(self.topics[topic]))

    def assign(self, assignor: str, seen: int = -1) -> Shares:
        return ASSIGNORS[assignor].assign(self.members, self.topics, self.racks, seen=seen)


@st.composite
def groups(draw: st.DrawFn, *, conflicts: bool = False, racks: bool = False, equal: bool | None = None) -> Group:
    """Members that claim, all in one generation and each partition once; with ``conflicts`` as it comes, in any generation."""
    topics = {topic: draw(st.integers(1, 5)) for topic in draw(st.sampled_from(["t", "tu", "tuv"]))}
    names = draw(st.lists(st.sampled_from([f"c{number}" for number in range(9)]), min_size=1, max_size=5, unique=True))
    same = draw(st.booleans()) if equal is None else equal
    some_topics = st.lists(st.sampled_from(sorted(topics)), min_size=1, unique=True).map(lambda each: tuple(sorted(each)))
    partitions = [f"{topic}-{number}" for topic, count in topics.items() for number in range(count)]
    owners = {partition: draw(st.none() | st.sampled_from(names)) for partition in partitions}
    places = st.sampled_from(["ra", "rb", "rc"])
    members: list[JoinedMember] = []
    for name in names:
        subscribed = tuple(topics) if same else draw(some_topics)
        owned = [partition for partition, owner in owners.items() if owner == name]
        if conflicts:
            owned = draw(st.lists(st.sampled_from(partitions), unique=True).map(sorted))
        members.append(
            JoinedMember(
                member=name,
                instance=draw(st.sampled_from([None, f"i{name}"])),
                metadata=Metadata(
                    topics=subscribed,
                    owned=tuple(each for each in owned if each.split("-")[0] in subscribed),
                    generation=draw(st.integers(-1, 4)) if conflicts else 4,
                    rack=draw(st.none() | places) if racks else None,
                ),
            )
        )
    where = {partition: tuple(draw(st.lists(places, min_size=1, max_size=3, unique=True))) for partition in partitions if racks}
    return Group(tuple(members), topics, where, len({frozenset(member.metadata.topics) for member in members}) == 1)


def eager(group: Group) -> Group:
    """The group with Sticky's user data in place of owned partitions."""

    def member(each: JoinedMember) -> JoinedMember:
        claim = Claim(each.metadata.owned, each.metadata.generation)
        return replace(each, metadata=replace(each.metadata, owned=(), user_data=claim))

    return replace(group, members=tuple(member(each) for each in group.members))


def applied(group: Group, shares: Shares) -> Group:
    """The group when everyone has applied ``shares``, in the next generation."""

    def member(each: JoinedMember) -> JoinedMember:
        generation = max(other.metadata.generation for other in group.members) + 1
        return replace(each, metadata=replace(each.metadata, owned=tuple(shares[each.member]), generation=generation))

    return replace(group, members=tuple(member(each) for each in group.members))


def valid_and_exclusive(group: Group, shares: Shares) -> None:
    assert set(shares) == {member.member for member in group.members}
    given_out = [partition for partitions in shares.values() for partition in partitions]
    assert len(given_out) == len(set(given_out))
    assert set(given_out) <= set(group.partitions)
    for member in group.members:
        assert {partition.split("-")[0] for partition in shares[member.member]} <= set(member.metadata.topics)


def complete(group: Group, shares: Shares) -> None:
    assert {partition for partitions in shares.values() for partition in partitions} == set(group.partitions)


def balanced(group: Group, shares: Shares) -> None:
    """Equal subscriptions: loads differ by at most one. Unequal: nobody could take a partition from someone with two more."""
    loads = {member: len(partitions) for member, partitions in shares.items()}
    if group.equal:
        assert max(loads.values()) - min(loads.values()) <= 1
    owner = {partition: member for member, partitions in shares.items() for partition in partitions}
    for member in group.members:
        for partition in group.partitions:
            if partition.split("-")[0] in member.metadata.topics:
                assert loads[owner[partition]] <= loads[member.member] + 1


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky"])
@given(group=groups(conflicts=True, racks=True))
@seeded
def test_eager_assignors_give_out_everything_once(assignor: str, group: Group) -> None:
    group = eager(group)
    shares = group.assign(assignor)
    valid_and_exclusive(group, shares)
    complete(group, shares)


@given(group=groups(conflicts=True, racks=True))
@seeded
def test_cooperative_sticky_withholds_only_what_somebody_claims_and_does_not_get(group: Group) -> None:
    shares = group.assign("cooperative-sticky")
    valid_and_exclusive(group, shares)
    for partition in set(group.partitions) - {each for partitions in shares.values() for each in partitions}:
        claimants = [member.member for member in group.members if partition in member.metadata.owned]
        assert claimants
        assert not any(partition in shares[claimant] for claimant in claimants)


@given(group=groups(conflicts=True, racks=True))
@seeded
def test_cooperative_sticky_adds_nothing_that_another_member_claims(group: Group) -> None:
    shares = group.assign("cooperative-sticky")
    for member in group.members:
        added = set(shares[member.member]) - set(member.metadata.owned)
        assert not any(added & set(other.metadata.owned) for other in group.members if other != member)
    if group.equal:
        assert cooperative_violation("cooperative-sticky", group.members, shares) == ()


@given(group=groups(conflicts=True, equal=True))
@seeded
def test_of_two_claims_the_newer_one_stands_and_of_equal_ones_neither(group: Group) -> None:
    shares = group.assign("cooperative-sticky")
    for partition in group.partitions:
        claims = {each.member: each.metadata.generation for each in group.members if partition in each.metadata.owned}
        newest = [member for member, generation in claims.items() if generation == max(claims.values())]
        for member in claims:
            assert partition not in shares[member] or [member] == newest


@given(group=groups(racks=True))
@seeded
def test_sticky_balances(group: Group) -> None:
    balanced(group, eager(group).assign("sticky"))


@given(group=groups(equal=True))
@seeded
def test_members_keep_what_the_quotas_allow(group: Group) -> None:
    low, extras = divmod(len(group.partitions), len(group.members))
    owned = {member.member: set(member.metadata.owned) for member in group.members}
    allowed = sum(min(len(each), low) for each in owned.values()) + min(extras, sum(len(each) > low for each in owned.values()))
    for shares in (eager(group).assign("sticky"), group.assign("cooperative-sticky")):
        assert sum(len(owned[member].intersection(partitions)) for member, partitions in shares.items()) == allowed


@given(group=groups())
@seeded
def test_sticky_leaves_its_own_assignment_alone(group: Group) -> None:
    first = eager(group).assign("sticky")
    assert eager(applied(group, first)).assign("sticky") == first


@pytest.mark.parametrize("racks", [False, True])
@given(data=st.data())
@seeded
def test_a_cooperative_group_settles_in_a_few_rounds(racks: bool, data: st.DataObject) -> None:
    """Counted are assignments until one takes nothing away: two, three with unequal subscriptions, four with racks."""
    group = data.draw(groups(racks=racks))
    rounds = 0
    revokes = True
    while revokes:
        shares = group.assign("cooperative-sticky")
        revokes = any(set(member.metadata.owned) - set(shares[member.member]) for member in group.members)
        group = applied(group, shares)
        rounds += 1
        assert rounds <= (4 if racks else 2 if group.equal else 3)
    complete(group, shares)
    balanced(group, shares)


@pytest.mark.parametrize("assignor", list(ASSIGNORS))
@given(data=st.data())
@seeded
def test_the_order_of_members_and_topics_does_not_matter(assignor: str, data: st.DataObject) -> None:
    group = data.draw(groups(conflicts=True, racks=True))
    shuffled = replace(
        group,
        members=tuple(data.draw(st.permutations(group.members))),
        topics={topic: group.topics[topic] for topic in data.draw(st.permutations(sorted(group.topics)))},
    )
    assert shuffled.assign(assignor) == group.assign(assignor)


@given(group=groups(conflicts=True, racks=True, equal=True), seen=st.integers(-1, 9))
@seeded
def test_what_the_leader_saw_before_does_not_matter_when_subscriptions_are_equal(group: Group, seen: int) -> None:
    assert group.assign("cooperative-sticky", seen) == group.assign("cooperative-sticky")


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
@given(group=groups(racks=True))
@seeded
def test_static_members_get_the_same_under_new_member_ids(assignor: str, group: Group) -> None:
    static = tuple(replace(each, instance=f"i{each.member}") for each in group.members)
    renamed = tuple(replace(each, member=f"m{-index}") for index, each in enumerate(static))
    before = replace(group, members=static).assign(assignor)
    after = replace(group, members=renamed).assign(assignor)
    assert [before[each.member] for each in static] == [after[each.member] for each in renamed]


@given(group=groups(racks=True))
@seeded
def test_range_is_balanced_topic_by_topic_and_contiguous_without_racks(group: Group) -> None:
    for where in (group.racks, {}):
        shares = replace(group, racks=where).assign("range")
        for topic in {partition.split("-")[0] for partition in group.partitions}:
            subscribers = [member for member in group.members if topic in member.metadata.topics]
            subscribers.sort(key=lambda each: (each.instance is None, each.instance or "", each.member))
            blocks = [[int(each.split("-")[1]) for each in shares[member.member] if each.split("-")[0] == topic] for member in subscribers]
            sizes = [len(block) for block in blocks]
            assert max(sizes) - min(sizes) <= 1
            if not where:
                assert [number for block in blocks for number in block] == list(range(group.topics[topic]))
                assert sizes == sorted(sizes, reverse=True)


@given(group=groups(racks=True, equal=True), count=st.integers(1, 6))
@seeded
def test_range_keeps_topics_of_equal_counts_and_subscribers_together(group: Group, count: int) -> None:
    shares = replace(group, topics=dict.fromkeys(group.topics, count)).assign("range")
    for partitions in shares.values():
        indexes = [{each.split("-")[1] for each in partitions if each.split("-")[0] == topic} for topic in group.topics]
        assert all(index == indexes[0] for index in indexes)


@given(group=groups(equal=True))
@seeded
def test_roundrobin_balances_equal_subscriptions(group: Group) -> None:
    balanced(group, group.assign("roundrobin"))


def test_roundrobin_does_not_balance_unequal_subscriptions() -> None:
    members = tuple(JoinedMember(member=f"c{n}", instance=None, metadata=Metadata(tuple("tuv"[: n + 1]))) for n in range(3))
    shares = ASSIGNORS["roundrobin"].assign(members, {"t": 1, "u": 2, "v": 3}, {})
    assert shares == {"c0": ("t-0",), "c1": ("u-0",), "c2": ("u-1", "v-0", "v-1", "v-2")}


def test_racks_may_cost_one_more_move_after_a_first_assignment() -> None:
    """By design an assignment by rack is no fixpoint; the next one is."""
    members = tuple(
        JoinedMember(member=name, instance=None, metadata=Metadata(("t0", "t1", "t2"), owned, 4, rack))
        for name, owned, rack in (("c0", ("t0-0",), None), ("c1", ("t1-0", "t2-0"), "rc"))
    )
    group = Group(members, {"t0": 1, "t1": 1, "t2": 1}, {"t0-0": ("rb",), "t1-0": ("rc",), "t2-0": ("rb",)}, equal=True)
    moved = eager(group).assign("sticky")
    assert moved == {"c0": ("t0-0", "t2-0"), "c1": ("t1-0",)}
    assert eager(applied(group, moved)).assign("sticky") == moved


def test_what_a_client_adds_to_its_subscription() -> None:
    claim = Claim(("t-0",), 7)
    assert [ASSIGNORS[name].user_data(claim) for name in ASSIGNORS] == [None, None, claim, 7]
    assert [ASSIGNORS[name].user_data(None) for name in ASSIGNORS] == [None, None, None, -1]
    assert [ASSIGNORS[name].protocols[0] for name in ASSIGNORS] == ["EAGER", "EAGER", "EAGER", "COOPERATIVE"]


def test_topics_without_partitions_or_subscribers_are_skipped() -> None:
    member = JoinedMember(member="c0", instance=None, metadata=Metadata(("t", "unknown", "empty")))
    for assignor in ASSIGNORS.values():
        assert assignor.assign([member], {"t": 1, "empty": 0, "other": 2}, {}) == {"c0": ("t-0",)}
