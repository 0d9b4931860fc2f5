"""Each assignor rule: an assignor that breaks it and exactly it, and one that comes close and keeps it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from kipcheck.spec.assignors import ASSIGNOR_RULES, Answer, Case, Examined, Kind, Member, NoAnswer, examine
from kipcheck.spec.assignors.examine import applied, told
from kipcheck.spec.assignors.judge import both, order, some

Assign = Callable[[Case], Answer]


def talk(assign: Assign, case: Case, kind: Kind, algorithm: Assign | None = None) -> Examined:
    conversation = examine(case, kind, algorithm)  # type: ignore[arg-type]
    asked = next(conversation)
    try:
        while True:
            asked = conversation.send(assign(asked))
    except StopIteration as end:
        return end.value


def broken(assign: Assign, case: Case, kind: Kind, algorithm: Assign | None = None) -> set[str]:
    return {fault.rule for fault in talk(assign, case, kind, algorithm).faults}


def member(id: str, topics: str = "t", owned: str = "", generation: int = 4, **more: object) -> Member:
    return Member(id=id, subscribed=tuple(topics), owned=tuple(owned.split()), generation=generation if owned else -1, **more)  # type: ignore[arg-type]


def case(topics: Mapping[str, int], *members: Member, **more: object) -> Case:
    return Case(id="it", topics=topics, members=members, **more)  # type: ignore[arg-type]


def always(**shares: str) -> Assign:
    return lambda asked: {each.id: tuple(shares.get(each.id, "").split()) for each in asked.members}


def partitions(asked: Case) -> list[str]:
    wanted = {topic for each in asked.members for topic in each.subscribed}
    return [f"{topic}-{number}" for topic in sorted(wanted) for number in range(asked.topics.get(topic, 0))]


def dealt(asked: Case) -> Mapping[str, tuple[str, ...]]:
    """Round robin over the members by id, claims or not."""
    members = sorted(each.id for each in asked.members)
    return {each: tuple(partitions(asked)[place :: len(members)]) for place, each in enumerate(members)}


def kept(asked: Case) -> Mapping[str, tuple[str, ...]]:
    """Who claims keeps; the rest goes to whoever has least."""
    shares: dict[str, list[str]] = {each.id: [p for p in each.owned if p in partitions(asked)] for each in asked.members}
    for partition in partitions(asked):
        if not any(partition in share for share in shares.values()):
            shares[min(sorted(shares), key=lambda each: len(shares[each]))].append(partition)
    return {each: tuple(share) for each, share in shares.items()}


def sticky(asked: Case) -> Mapping[str, tuple[str, ...]]:
    """A small correct one for equal subscriptions and undisputed claims."""
    quota, extras = divmod(len(partitions(asked)), len(asked.members))
    shares: dict[str, list[str]] = {}
    for each in sorted(asked.members, key=lambda each: (-len(each.owned), each.id)):
        room = quota + (extras > 0)
        shares[each.id] = [p for p in sorted(each.owned) if p in partitions(asked)][:room]
        extras -= len(shares[each.id]) > quota
    for partition in partitions(asked):
        if not any(partition in share for share in shares.values()):
            shares[min(sorted(shares), key=lambda each: len(shares[each]))].append(partition)
    return {each: tuple(share) for each, share in shares.items()}


def cooperative(target: Callable[[Case], Mapping[str, tuple[str, ...]]]) -> Assign:
    """``target`` without what another member claims."""

    def assign(asked: Case) -> Answer:
        claimed = {p: each.id for each in asked.members for p in each.owned}
        return {each: tuple(p for p in share if claimed.get(p, each) == each) for each, share in target(asked).items()}

    return assign


NOBODY_CLAIMS = case({"t": 4}, member("a"), member("b"))
ALL_AT_A = case({"t": 4}, member("a", owned="t-0 t-1 t-2 t-3"), member("b"))


def crashes_the_second_time() -> Assign:
    seen: list[Case] = []

    def assign(asked: Case) -> Answer:
        seen.append(asked)
        return dealt(asked) if len(seen) == 1 else NoAnswer("crash", "signal SIGSEGV")

    return assign


def counting() -> Assign:
    calls: list[Case] = []

    def assign(asked: Case) -> Answer:
        calls.append(asked)
        shares = sorted(dealt(asked).values(), reverse=len(calls) > 1)
        return dict(zip(sorted(each.id for each in asked.members), shares, strict=True))

    return assign


def by_position(asked: Case) -> Answer:
    return {each.id: share for each, share in zip(asked.members, sorted(dealt(asked).values()), strict=True)}


def by_past(asked: Case) -> Answer:
    shares = sorted(dealt(asked).values(), reverse=bool(asked.before))
    return dict(zip(sorted(each.id for each in asked.members), shares, strict=True))


def drifting(asked: Case) -> Answer:
    """Takes one partition from whoever has most, every time, and withholds it: the rounds never settle."""
    everybody = sorted(each.id for each in asked.members)
    giver = max(asked.members, key=lambda each: (len(each.owned), each.id))
    if not giver.owned:
        return kept(asked)
    taken = sorted(giver.owned)[0]
    shares = {each.id: tuple(p for p in each.owned if p != taken) for each in asked.members}
    loose = [p for p in partitions(asked) if p != taken and not any(p in share for share in shares.values())]
    taker = everybody[(everybody.index(giver.id) + 1) % len(everybody)]
    return {**shares, taker: (*shares[taker], *loose)}


def restless(asked: Case) -> Answer:
    """Settled claims are swapped."""
    owned = [each.owned for each in asked.members]
    if all(owned):
        return {each.id: share for each, share in zip(asked.members, reversed(owned), strict=True)}
    return dealt(asked)


def near_without_racks(asked: Case) -> Answer:
    """Goes by racks the wrong way round."""
    given = dealt(asked)
    return {"a": given["b"], "b": given["a"]} if any(each.rack for each in asked.members) else given


RACKED = case({"t": 2}, member("a", rack="ra"), member("b", rack="rb"), racks={"t-0": ("ra",), "t-1": ("rb",)}, input_class="racks")
STATIC = case({"t": 3}, member("a", instance="i0"), member("b", instance="i1"))
REUSED = case({"t": 4}, member("a"), member("b"), before=(NOBODY_CLAIMS,))

BREAKS: Sequence[tuple[str, Assign, Case, Kind]] = (
    ("assignor-answers", lambda asked: NoAnswer("error", "IllegalStateException: no"), NOBODY_CLAIMS, "eager"),
    ("assignor-answers", lambda asked: NoAnswer("hang", "nothing within 10 s"), NOBODY_CLAIMS, "cooperative"),
    ("assigns-only-subscribed", always(a="t-0 t-1 t-2 t-3", b="u-0"), case({"t": 4, "u": 1}, member("a"), member("b")), "eager"),
    ("assigns-only-subscribed", always(a="t-0 t-1 t-9"), case({"t": 2}, member("a")), "eager"),
    ("assigns-exclusively", always(a="t-0 t-1", b="t-1 t-2 t-3"), NOBODY_CLAIMS, "eager"),
    ("assigns-exclusively", always(a="t-0 t-0"), case({"t": 1}, member("a")), "eager"),
    ("assigns-completely", always(a="t-0 t-1", b="t-2"), NOBODY_CLAIMS, "eager"),
    ("assigns-completely", always(a="t-0 t-1", b="t-2"), NOBODY_CLAIMS, "cooperative-sticky"),
    ("cooperative-withholds", sticky, ALL_AT_A, "cooperative-sticky"),
    ("balanced", kept, ALL_AT_A, "cooperative"),
    ("balanced", always(a="t-0 t-1 t-2", b="t-3"), NOBODY_CLAIMS, "eager"),
    ("balanced", always(a="t-0 t-1 u-0 u-1"), case({"t": 2, "u": 2}, member("a", "tu"), member("b", "u")), "eager"),
    ("balanced", always(a="t-0 u-0 u-1", b="u-2"), case({"t": 1, "u": 3}, member("a", "tu"), member("b", "u")), "eager"),
    ("balanced", always(a="t-0 t-1 u-0", b="u-1"), case({"t": 2, "u": 2}, member("a", "tu"), member("b", "tu")), "range"),
    ("balanced", always(a="t-0 t-1 t-2", b="t-3"), NOBODY_CLAIMS, "roundrobin"),
    ("assigns-completely", always(a="t-0 t-1", b="t-2"), case({"t": 4}, member("a", owned="t-3"), member("b")), "eager"),
    ("converges-in-rounds", drifting, case({"t": 8}, member("a"), member("b"), member("c", owned="t-0 t-1 t-2")), "cooperative"),
    ("idempotent", restless, NOBODY_CLAIMS, "sticky"),
    ("sticky", dealt, case({"t": 4}, member("a", owned="t-0 t-1"), member("b", owned="t-2 t-3")), "sticky"),
    ("deterministic", counting(), NOBODY_CLAIMS, "eager"),
    ("order-independent", by_position, NOBODY_CLAIMS, "eager"),
    ("history-independent", by_past, REUSED, "eager"),
    ("static-stable", lambda asked: dealt(asked), STATIC, "range"),
    ("rack-aware", near_without_racks, RACKED, "eager"),
)


@pytest.mark.parametrize(("rule", "assign", "input_", "kind"), BREAKS, ids=[f"{rule}-{n}" for n, (rule, *_) in enumerate(BREAKS)])
def test_an_assignor_that_breaks_a_rule_is_told_so(rule: str, assign: Assign, input_: Case, kind: Kind) -> None:
    allowed = {"static-stable": {"balanced"}, "sticky": {"idempotent"}, "balanced": {"sticky"}, "converges-in-rounds": {"sticky"}}.get(
        rule, set()
    )
    found = broken(assign, input_, kind)
    assert rule in found
    assert found - {rule} <= allowed


def test_another_assignment_than_the_documented_one_is_told() -> None:
    assert broken(dealt, NOBODY_CLAIMS, "roundrobin", dealt) == set()
    swapped: Assign = lambda asked: {"a": dealt(asked)["b"], "b": dealt(asked)["a"]}  # noqa: E731
    assert broken(swapped, NOBODY_CLAIMS, "roundrobin", dealt) == {"follows-algorithm"}


def test_every_rule_has_an_assignor_that_breaks_it() -> None:
    assert {rule for rule, *_ in BREAKS} | {"follows-algorithm"} == ASSIGNOR_RULES.keys()


KEEPS: Mapping[str, tuple[Assign, Case, Kind]] = {
    "withheld until the follow-up": (cooperative(sticky), ALL_AT_A, "cooperative-sticky"),
    "both claimants of one generation lose it, then one gets it": (
        lambda asked: {each.id: () for each in asked.members} if sum(map(len, (m.owned for m in asked.members))) == 2 else kept(asked),
        case({"t": 1}, member("a", owned="t-0"), member("b", owned="t-0")),
        "cooperative-sticky",
    ),
    "the newest claimant keeps it": (
        lambda asked: {"a": ("t-0",), "b": ()},
        case({"t": 1}, member("a", owned="t-0", generation=5), member("b", owned="t-0", generation=3)),
        "cooperative-sticky",
    ),
    "a topic without metadata": (dealt, case({"t": 2}, member("a", "tx"), member("b", "tx")), "eager"),
    "a member that does not subscribe has nothing": (
        always(a="t-0 t-1 t-2"),
        case({"t": 3, "u": 0}, member("a"), member("b", "u")),
        "eager",
    ),
    "unequal subscriptions, loads two apart, nothing movable": (
        always(a="t-0 t-1 t-2", b="u-0"),
        case({"t": 3, "u": 1}, member("a", "t"), member("b", "u")),
        "sticky",
    ),
    "one empty member more than partitions": (dealt, case({"t": 1}, member("a"), member("b")), "eager"),
    "range may differ by one per topic, so by more over all": (
        always(a="t-0 u-0 v-0"),
        case({"t": 1, "u": 1, "v": 1}, member("a", "tuv"), member("b", "tuv")),
        "range",
    ),
    "range with a remainder": (always(a="t-0 t-1", b="t-2"), case({"t": 3}, member("a"), member("b")), "range"),
    "unequal subscriptions, loads one apart": (
        always(a="t-0 u-0", b="u-1"),
        case({"t": 1, "u": 2}, member("a", "tu"), member("b", "u")),
        "eager",
    ),
    "round robin promises no balance for unequal subscriptions": (
        always(a="t-0 t-1 t-2 u-0", b="u-1"),
        case({"t": 3, "u": 2}, member("a", "tu"), member("b", "u")),
        "roundrobin",
    ),
    "an eager member has given up what it claims": (always(a="t-0 t-2", b="t-1 t-3"), ALL_AT_A, "eager"),
    "who may have one more keeps it": (
        always(a="t-0 t-1 t-2", b="t-3 t-4"),
        case({"t": 5}, member("a", owned="t-0 t-1 t-2"), member("b", owned="t-3 t-4")),
        "sticky",
    ),
    "balanced unequal claims stay": (
        always(a="t-0 t-1", b="u-0"),
        case({"t": 2, "u": 1}, member("a", "t", "t-0 t-1"), member("b", "tu", "u-0")),
        "sticky",
    ),
    "no members": (lambda asked: {}, case({"t": 1}), "cooperative-sticky"),
    "an entry left out is an empty one": (lambda asked: {"a": ("t-0",)}, case({"t": 1}, member("a"), member("b")), "eager"),
}


@pytest.mark.parametrize("name", KEEPS)
def test_what_comes_close_is_no_violation(name: str) -> None:
    assign, input_, kind = KEEPS[name]
    assert broken(assign, input_, kind) == set()


def test_a_stale_claimant_is_no_owner() -> None:
    stale = case({"t": 1}, member("a", owned="t-0", generation=5), member("b", owned="t-0", generation=3))
    found = talk(always(b="t-0"), stale, "cooperative-sticky")
    assert [fault.message for fault in found.faults if fault.rule == "cooperative-withholds"] == ["t-0 given to b while a still owns it"]


def test_a_needless_move_is_told_with_its_minimum() -> None:
    swapped = case({"t": 5}, member("a", owned="t-0 t-1 t-2 t-3"), member("b", owned="t-4"))
    found = talk(always(a="t-4 t-3", b="t-0 t-1 t-2"), swapped, "sticky")
    assert (found.moved, found.minimum) == (4, 1)
    assert "moved 4, minimum 1" in [fault.message for fault in found.faults]


@pytest.mark.parametrize(
    ("kind", "shares", "input_", "told"),
    [
        ("eager", "t-0 t-1|t-2 t-3", ("t-2 t-3", "t-0 t-1", "t", "t"), (4, None)),
        ("cooperative", "t-0 t-1|t-2 t-3", ("t-2 t-3", "t-0 t-1", "t", "t"), (4, 0)),
        ("sticky", "t-0 t-1|t-2 t-3", ("t-0 t-2 t-3", "t-1", "t", "t"), (3, 1)),
        ("sticky", "t-2 t-3|t-0 t-1", ("t-0 t-1 t-2 t-3", "", "t", "t"), (2, 2)),
        ("sticky", "t-0 t-1|t-2 t-3", ("t-0 t-9", "", "t", "t"), (0, 0)),
        ("sticky", "t-0 t-1|t-2 t-3", ("t-0", "t-0 t-1", "t", "t"), (2, None)),
        ("sticky", "t-0 t-1|t-2 t-3 u-0", ("t-2 t-3", "t-0 t-1 u-0", "t", "tu"), (4, 0)),
        ("sticky", "t-0 t-1 t-2|u-0 t-3", ("t-0", "t-1 t-2 t-3 u-0", "t", "tu"), (2, None)),
    ],
)
def test_movement_is_told_with_the_least_that_would_do(
    kind: Kind, shares: str, input_: tuple[str, str, str, str], told: tuple[int, int | None]
) -> None:
    one, two, mine, yours = input_
    a, b = shares.split("|")
    moved = case({"t": 4, "u": 1} if "u" in yours else {"t": 4}, member("a", mine, one), member("b", yours, two))
    found = talk(always(a=a, b=b), moved, kind)
    assert (found.moved, found.minimum) == told


def test_names_are_listed_and_orders_go_by_number() -> None:
    assert some([]) == "nothing"
    assert some("abcdef") == "a, b, c, d, e, f"
    assert some("abcdefg") == "a, b, c, d, e and 2 more"
    assert both(["a"]) == "a"
    assert both(["a", "b", "c"]) == "a, b and c"
    assert sorted(["t-10", "t-9", "s-1", "odd", "t-99999999999"], key=order) == ["odd", "s-1", "t-9", "t-10", "t-99999999999"]


def test_a_fault_tells_who_claims_and_since_when() -> None:
    taken = talk(sticky, case({"t": 2}, member("a", owned="t-0 t-1"), member("b")), "cooperative-sticky")
    (fault,) = [fault for fault in taken.faults if fault.rule == "cooperative-withholds"]
    assert fault.argument[:2] == ("a claims t-1, given to it in generation 4", "answered: b = t-1")
    assert (fault.members, fault.partitions, fault.detail) == (("b", "a"), ("t-1",), "")
    gone = talk(always(b="t-7"), case({"t": 1}, member("a", owned="t-7"), member("b")), "cooperative-sticky")
    assert {(fault.rule, fault.detail) for fault in gone.faults} >= {
        ("cooperative-withholds", "no such partition"),
        ("assigns-only-subscribed", "no such partition"),
    }


def test_a_withheld_partition_that_no_follow_up_brings_is_told() -> None:
    forgetful: Assign = lambda asked: {each.id: tuple(p for p in each.owned if p != "t-3") for each in asked.members}  # noqa: E731
    found = talk(forgetful, ALL_AT_A, "cooperative-sticky")
    assert [(fault.rule, fault.detail) for fault in found.faults if fault.rule == "assigns-completely"] == [
        ("assigns-completely", "settled")
    ]


def test_an_error_for_hostile_metadata_is_an_answer_and_a_crash_is_not() -> None:
    hostile = case({"t": 1}, member("a", metadata=b"\xff"))
    assert broken(lambda asked: NoAnswer("error", "SchemaException"), hostile, "cooperative") == set()
    assert broken(lambda asked: NoAnswer("crash", "status 1"), hostile, "cooperative") == {"assignor-answers"}


def test_a_crash_in_the_middle_of_a_conversation_is_told() -> None:
    assert broken(crashes_the_second_time(), NOBODY_CLAIMS, "eager") == {"assignor-answers"}


def giving_up(rounds: int) -> Assign:
    """Takes one partition more from a in each of so many rounds, and gives it to b in the next."""

    def assign(asked: Case) -> Answer:
        a, b = asked.members if asked.members[0].id == "a" else asked.members[::-1]
        loose = tuple(p for p in partitions(asked) if p not in a.owned and p not in b.owned)
        done = 8 - len(a.owned)
        kept_by_a = tuple(sorted(a.owned))[1:] if done < rounds else a.owned
        return {"a": kept_by_a, "b": (*b.owned, *loose)}

    return assign


EIGHT = case({"t": 8}, member("a", owned=" ".join(f"t-{n}" for n in range(8))), member("b"))


@pytest.mark.parametrize(("taken", "settles_in"), [(0, 1), (1, 2), (2, 3), (4, 5), (5, None)])
def test_rounds_are_counted_until_one_takes_nothing(taken: int, settles_in: int | None) -> None:
    found = talk(giving_up(taken), EIGHT, "cooperative")
    assert found.rounds == settles_in
    assert ("converges-in-rounds" in {fault.rule for fault in found.faults}) == (settles_in is None)
    assert found.spread == (None if settles_in is None else 8 - 2 * taken)
    if settles_in is None:
        assert found.unknown["balanced"] == "the rounds do not settle"


def test_an_eager_answer_settles_in_one_round() -> None:
    found = talk(dealt, NOBODY_CLAIMS, "eager")
    assert (found.rounds, found.spread) == (1, 0)
    assert found.checked["assignor-answers"] == 1
    assert "cooperative-withholds" not in found.checked


def test_the_next_rebalance_claims_what_was_given_as_far_as_metadata_can() -> None:
    versions = case({"t": 4}, *(member(f"v{version}", version=version, rack="ra") for version in range(4)))
    given_out = {f"v{version}": (f"t-{version}",) for version in range(4)}
    following = applied(applied(versions, given_out), given_out)
    assert [(each.owned, each.generation) for each in following.members] == [((), -1), (("t-1",), -1), (("t-2",), 1), (("t-3",), 1)]
    stale = case({"t": 1}, member("a", owned="t-0", generation=7), member("b"), before=(EIGHT,))
    assert [each.generation for each in applied(stale, {"a": ("t-0",)}).members] == [8, 8]
    assert applied(stale, {}).before == ()


def test_members_whose_metadata_carry_no_claims_leave_idempotence_open() -> None:
    found = talk(dealt, case({"t": 2}, member("a", version=0), member("b")), "sticky")
    assert "idempotent" not in found.checked
    assert found.unknown["idempotent"] == "a member's metadata carries no claims"


def moving_once(times: int) -> Assign:
    """Swaps settled claims so many times, as racks may ask for."""

    def assign(asked: Case) -> Answer:
        a, b = sorted(asked.members, key=lambda each: each.id)
        if a.generation < 0:
            return {"a": ("t-0",), "b": ("t-1",)}
        return {"a": b.owned, "b": a.owned} if a.generation < times else {"a": a.owned, "b": b.owned}

    return assign


@pytest.mark.parametrize(("input_", "times", "stays"), [(RACKED, 1, True), (RACKED, 2, False), (case({"t": 2}, *RACKED.members), 1, False)])
def test_with_racks_one_more_round_may_move_what_was_settled(input_: Case, times: int, stays: bool) -> None:
    bare = input_ if input_.racks else case({"t": 2}, member("a"), member("b"))
    assert ("idempotent" in broken(moving_once(times), bare, "sticky")) != stays


def test_as_many_near_partitions_as_without_racks_are_enough() -> None:
    assert "rack-aware" not in broken(dealt, RACKED, "eager")
    assert talk(dealt, RACKED, "eager").checked["rack-aware"] == 1
    assert "rack-aware" not in talk(dealt, NOBODY_CLAIMS, "eager").checked


def test_static_stability_is_asked_only_where_all_are_static() -> None:
    mixed = case({"t": 3}, member("a", instance="i0"), member("b"))
    assert talk(dealt, mixed, "range").unknown["static-stable"] == "not all members are static"
    twins = case({"t": 3}, member("a", instance="i0"), member("b", instance="i0"))
    assert "static-stable" not in talk(dealt, twins, "range").checked

    def by_instance(asked: Case) -> Answer:
        return {each.id: tuple(partitions(asked)[int(str(each.instance)[1:]) :: 2]) for each in asked.members}

    assert talk(by_instance, STATIC, "range").checked["static-stable"] == 1
    assert "static-stable" not in broken(by_instance, STATIC, "range")


def test_long_assignments_are_told_short() -> None:
    assert told({f"c{n}": (f"t-{n}",) for n in range(8)}).count(";") == 7
    assert told({f"c{n}": () for n in range(10)}).endswith("c7 = nothing; and 2 more members")
