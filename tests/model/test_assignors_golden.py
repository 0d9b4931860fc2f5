"""The assignors' history: each defect on the smallest input that shows it, as observed in the releases that had it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from kipcheck.model.assignors import ASSIGNORS, MUTATIONS, AssignorFailed, Claim, cooperative_violation
from kipcheck.model.messages import JoinedMember, Metadata
from kipcheck.spec.rules import RULES

Shares = dict[str, tuple[str, ...]]


def owner(member: str, topics: str, owned: str = "", generation: int = -1, rack: str | None = None) -> JoinedMember:
    """A member that subscribes ``topics`` and says that it still owns ``owned``; names are separated by spaces."""
    return JoinedMember(member=member, instance=None, metadata=Metadata(tuple(topics.split()), tuple(owned.split()), generation, rack))


def former(member: str, topics: str, applied: str = "", generation: int = -1, field: int = -1) -> JoinedMember:
    """An eager member that reports ``applied`` in Sticky's user data; ``field`` is the generation in the protocol field."""
    claim = Claim(tuple(applied.split()), generation) if applied else None
    return JoinedMember(member=member, instance=None, metadata=Metadata(topics=tuple(topics.split()), generation=field, user_data=claim))


def shares(*lines: str) -> Shares:
    """``"c0 t-0 t-1"``: a member and what it gets."""
    return {line.split()[0]: tuple(line.split()[1:]) for line in lines}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    defect: str
    topics: Mapping[str, int]
    members: tuple[JoinedMember, ...]
    broken: Shares | str
    """What the mutant gives, or how the message starts with which it fails."""
    healthy: Shares
    assignor: str = "cooperative-sticky"
    racks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    seen: int = -1


CASES = (
    Case(
        defect="assignor-forgets-what-it-withheld",
        topics={"t": 2},
        members=(owner("c0", "t", "t-0", 5), owner("c1", "t", "", 5)),
        broken=shares("c0 t-0", "c1"),
        healthy=shares("c0 t-0", "c1 t-1"),
    ),
    Case(
        defect="assignor-keeps-moving",
        topics={"t": 2},
        members=(owner("c0", "t", "t-0", 5), owner("c1", "t", "t-1", 5)),
        broken=shares("c0", "c1 t-1"),
        healthy=shares("c0 t-0", "c1 t-1"),
    ),
    Case(
        defect="assignor-ignores-claims",
        topics={"t": 2},
        members=(owner("c0", "t", "t-1", 5), owner("c1", "t", "t-0", 5)),
        broken=shares("c0", "c1"),
        healthy=shares("c0 t-1", "c1 t-0"),
    ),
    Case(
        defect="assignor-skips-adjust",
        topics={"t": 2},
        members=(owner("c0", "t", "t-0 t-1", 5), owner("c1", "t", "", 5)),
        broken=shares("c0 t-0", "c1 t-1"),
        healthy=shares("c0 t-0", "c1"),
    ),
    Case(
        defect="trusts-every-claim",
        topics={"t": 1},
        members=(owner("c0", "t", "t-0", 5), owner("c1", "t", "t-0", 5)),
        broken=shares("c0 t-0", "c1 t-0"),
        healthy=shares("c0", "c1"),
    ),
    Case(
        defect="trusts-every-claim",
        topics={"t": 1},
        members=(owner("c0", "t", "t-0", 5), owner("c1", "t", "t-0", 3)),
        broken=shares("c0 t-0", "c1 t-0"),
        healthy=shares("c0 t-0", "c1"),
    ),
    Case(
        defect="trusts-every-claim",
        topics={"t": 3},
        members=(owner("c0", "t", "t-0 t-2", 5), owner("c1", "t", "t-0 t-2", 5)),
        broken="Some partitions are unassigned but all consumers are at maximum capacity",
        healthy=shares("c0", "c1 t-1"),
    ),
    Case(
        defect="only-highest-generation-counts",
        topics={"t": 1},
        members=(owner("c0", "t", "", 4), owner("c1", "t", "t-0", 3)),
        broken=shares("c0 t-0", "c1"),
        healthy=shares("c0", "c1 t-0"),
    ),
    Case(
        defect="loser-becomes-owner",
        topics={"t": 3},
        members=(owner("c0", "t", "t-0", 5), owner("c1", "t", "t-0"), owner("c2", "t", "t-0", 3)),
        broken=shares("c0 t-0", "c1 t-1 t-2", "c2 t-0"),
        healthy=shares("c0 t-0", "c1 t-1", "c2 t-2"),
    ),
    Case(
        defect="loser-becomes-owner",
        topics={"t": 2},
        members=(owner("c0", "t", "t-0", 5), owner("c1", "t", "t-0"), owner("c2", "t", "t-0", 3)),
        broken="No more unfilled consumers to be assigned",
        healthy=shares("c0 t-0", "c1 t-1", "c2"),
    ),
    Case(
        defect="rack-mismatch-not-withheld",
        topics={"t": 2},
        racks={"t-0": ("rb",), "t-1": ("ra",)},
        members=(owner("c0", "t", "t-0", 5, "ra"), owner("c1", "t", "", 5, "ra")),
        broken=shares("c0 t-1", "c1 t-0"),
        healthy=shares("c0 t-1", "c1"),
    ),
    Case(
        defect="rack-filling-ignores-quota",
        topics={"t": 4},
        racks={"t-0": ("rc", "rb"), "t-1": ("rc", "rb"), "t-2": ("ra", "rb"), "t-3": ("rb", "ra")},
        members=(owner("c0", "t", rack="rc"), owner("c1", "t"), owner("c2", "t", rack="ra")),
        broken="We haven't reached the expected number of members",
        healthy=shares("c0 t-0 t-1", "c1 t-3", "c2 t-2"),
    ),
    Case(
        defect="keeps-claims-as-sent",
        topics={"t1": 2, "t2": 2},
        members=(owner("c1", "t1 t2", "t1-0 t1-1 t2-0 t2-1", 5), owner("c2", "t1 t2", "", 5)),
        broken=shares("c1 t1-0 t1-1", "c2"),
        healthy=shares("c1 t1-0 t2-0", "c2"),
    ),
    Case(
        defect="comparison-consumes-user-data",
        assignor="sticky",
        topics={"t0": 1, "t1": 1},
        members=(former("c0", "t0 t1", "t0-0", 5), former("c1", "t0 t1", "t1-0", 5), former("c2", "t0")),
        broken=shares("c0 t1-0", "c1 t0-0", "c2"),
        healthy=shares("c0 t0-0", "c1 t1-0", "c2"),
    ),
    Case(
        defect="trusts-every-prior-assignment",
        assignor="sticky",
        topics={"t": 1},
        members=(former("c0", "t", "t-0"), former("c1", "t", "t-0")),
        broken=shares("c0 t-0", "c1 t-0"),
        healthy=shares("c0 t-0", "c1"),
    ),
    Case(
        defect="remembers-highest-generation",
        seen=10,
        topics={"t": 4},
        members=(owner("c0", "t", "t-1 t-3", 1), owner("c1", "t", "t-0 t-2", 1)),
        broken=shares("c0 t-0 t-2", "c1 t-1 t-3"),
        healthy=shares("c0 t-1 t-3", "c1 t-0 t-2"),
    ),
    Case(
        defect="first-of-highest-generation-dropped",
        topics={"t": 2},
        members=(owner("c0", "t", "t-1", 5), owner("c1", "t", "", 5)),
        broken=shares("c0 t-0", "c1 t-1"),
        healthy=shares("c0 t-1", "c1 t-0"),
    ),
    Case(
        defect="co-partitions-of-unequal-counts",
        assignor="range",
        topics={"t": 2, "u": 2, "v": 4},
        racks={
            **dict.fromkeys(("t-0", "u-0", "v-1", "v-3"), ("rb",)),
            **dict.fromkeys(("t-1", "u-1", "v-0", "v-2"), ("ra",)),
        },
        members=(owner("c0", "t u v", rack="ra"), owner("c1", "t u v", rack="rb")),
        broken=shares("c0 t-0 u-0 v-0 v-2", "c1 t-1 u-1 v-1 v-3"),
        healthy=shares("c0 t-1 u-1 v-0 v-2", "c1 t-0 u-0 v-1 v-3"),
    ),
)


def run(case: Case, *defects: str) -> Shares | str:
    assignor = ASSIGNORS[case.assignor]
    try:
        return assignor.assign(case.members, case.topics, case.racks, seen=case.seen, defects=frozenset(defects))
    except AssignorFailed as failure:
        return str(failure)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.defect}-{sum(case.topics.values())}")
def test_a_defect_shows_on_its_smallest_input(case: Case) -> None:
    broken = run(case, case.defect)
    if isinstance(case.broken, str):
        assert isinstance(broken, str)
        assert broken.startswith(case.broken)
    else:
        assert broken == case.broken
    assert run(case) == case.healthy


def test_the_leaders_check_used_to_throw_over_a_stale_claim() -> None:
    """KAFKA-13406: the assignor forgets a stale claim, as 2.8.1 did; the check reads it raw."""
    members = (owner("c0", "t", "", 4), owner("c1", "t", "t-0", 3))
    assigned = {"c0": ("t-0",), "c1": ()}
    assert cooperative_violation("cooperative-sticky", members, assigned, frozenset({"validates-built-in-assignor"})) == ("t-0",)
    assert cooperative_violation("cooperative-sticky", members, assigned) == ()
    assert cooperative_violation("one-of-mine", members, assigned) == ("t-0",)
    assert cooperative_violation("one-of-mine", members, {"c0": (), "c1": ()}) == ()
    assert cooperative_violation("one-of-mine", members, {"c0": (), "c1": ("t-0",)}) == ()


def test_every_mutation_has_its_input_and_names_rules_that_exist() -> None:
    named = {mutation.name for mutation in MUTATIONS}
    assert len(named) == len(MUTATIONS)
    assert named == {case.defect for case in CASES} | {"validates-built-in-assignor"}
    for mutation in MUTATIONS:
        assert set(mutation.breaks) <= set(RULES), mutation.name
        assert bool(mutation.breaks) != bool(mutation.unseen), mutation.name


class TestWhatKafkaStillDoes:
    """Weaknesses of the current releases that the model shares; each seen in kafka-clients 3.8.1, 4.3.1 and 4.4.0."""

    def test_a_stale_claim_in_user_data_beats_a_newer_one(self) -> None:
        """The other claimant's generation is read from the protocol field, absent before 3.4: whoever is read last wins."""
        members = (former("a", "t", "t-0", 5), former("b", "t", "t-0", 3))
        assert ASSIGNORS["sticky"].assign(members, {"t": 2}, {}) == shares("a t-1", "b t-0")
        cooperative = tuple(
            JoinedMember(member=name, instance=None, metadata=Metadata(("t",), ("t-0",), user_data=generation))
            for name, generation in (("a", 5), ("b", 3))
        )
        assert ASSIGNORS["cooperative-sticky"].assign(cooperative, {"t": 1}, {}) == shares("a", "b t-0")

    def test_a_stale_claimant_is_given_what_its_newer_owner_still_has(self) -> None:
        """With unequal subscriptions what moves is computed from raw claims, in which ``a`` already owns t-0."""
        members = (owner("a", "t u", "t-0", 3), owner("b", "t", "t-0 t-1 t-2", 5))
        assert ASSIGNORS["cooperative-sticky"].assign(members, {"t": 3, "u": 1}, {}) == shares("a t-0 u-0", "b t-1 t-2")

    def test_a_member_without_topics_that_comes_first_is_given_partitions(self) -> None:
        """A pattern subscription that matches nothing yet; the comparison of subscriptions starts after it."""
        members = (owner("a", ""), owner("b", "t", "t-0 t-1", 5))
        assert ASSIGNORS["sticky"].assign(members, {"t": 2}, {}) == shares("a t-0", "b t-1")
        assert ASSIGNORS["cooperative-sticky"].assign(members, {"t": 2}, {}) == shares("a", "b t-0")
        last = (owner("a", "t", "t-0 t-1", 5), owner("b", ""))
        assert ASSIGNORS["cooperative-sticky"].assign(last, {"t": 2}, {}) == shares("a t-0 t-1", "b")

    def test_a_topic_created_anew_with_fewer_partitions_makes_two_owners_or_an_exception(self) -> None:
        """A claim to a partition that is gone is kept, and stops the walk that looks for what is unassigned."""
        members = (owner("a", "t u", "u-2", 5), owner("b", "t u", "t-1", 5))
        assigned = ASSIGNORS["cooperative-sticky"].assign(members, {"t": 1, "u": 3}, {})
        assert assigned == shares("a t-0 u-1 u-2", "b t-1 u-0 u-2")
        with pytest.raises(AssignorFailed, match="No more unfilled consumers"):
            ASSIGNORS["cooperative-sticky"].assign((owner("a", "t", "t-1", 5), owner("b", "t", "", 5)), {"t": 1}, {})

    def test_a_former_owner_is_given_a_topic_that_it_no_longer_subscribes(self) -> None:
        """The owner of a generation ago counts as a candidate without a look at its subscription, and may not even take part."""
        members = (former("a", "t", "t-0 t-1 t-2 t-3", 5, 5), former("b", "u", "t-0", 4, 5), former("c", "t u"))
        assigned = ASSIGNORS["sticky"].assign(members, {"t": 4, "u": 1}, {})
        assert assigned == shares("a t-2 t-3", "b t-0 u-0", "c t-1")
        alone = (former("a", "t u", "t-0 t-1 t-2", 5, 5), former("b", "v", "t-0", 4, 5), former("c", "t u"))
        with pytest.raises(AssignorFailed, match="NullPointerException"):
            ASSIGNORS["sticky"].assign(alone, {"t": 3, "u": 1, "v": 1}, {})
