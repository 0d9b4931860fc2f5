"""The mutation table: every rule is broken by some mutation, and the explorer finds each where the table says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from test_assignors_golden import CASES as INPUTS
from test_assignors_golden import Case

from kipcheck.model import mutation_table, mutations
from kipcheck.model.assignors import ASSIGNORS
from kipcheck.model.explorer import SETTINGS, Search, mutated, search
from kipcheck.model.found import FOUND
from kipcheck.model.mutation import Found, Mutation
from kipcheck.model.mutation_table import CASES, UNPROVED
from kipcheck.model.mutations import MUTATIONS, PRESENT, PROTOCOL, REFERENCE, SCENARIOS, explored
from kipcheck.model.protocol.systems import THEORIES
from kipcheck.model.runs import replay
from kipcheck.spec import RULES, check
from kipcheck.spec.events import Event, GenerationStarted, Join, Joined, Rebalance, Sync, Synced
from kipcheck.spec.results import Finding

ANEW = "measure anew: python -m kipcheck.model.mutation_table"
WORLDS = 12_000
"""What the explorer may look at for a mutation: about 10 seconds of CPU."""

LIMIT = 1.25
"""How much longer the same search may be, in worlds, than it was when the table was written."""

HISTORIC = {
    "Z1": "trusts-every-claim",
    "Z2": "validates-built-in-assignor",
    "Z3": "only-highest-generation-counts",
    "Z4": "loser-becomes-owner",
    "Z5": "rack-mismatch-not-withheld",
    "Z6": "keeps-claims-as-sent",
    "Z7": "comparison-consumes-user-data",
    "Z8": "trusts-every-prior-assignment",
    "Z9": "reset-skips-join-prepare",
    "Z10": "known-member-keeps-what-it-lost",
    "Z11": "missed-sync-loses-everything",
    "Z12": "prepare-commit-never-ends",
    "Z13": "remembers-highest-generation",
    "L1": "failover-restores-replaced-id",
    "L2": "sync-timer-removes-absent-static-member",
    "L3": "full-group-refuses-static-return",
    "L4": "replaced-id-awaited-in-sync-phase",
    "L5": "old-incarnation-vetoes-protocols",
    "L6": "expiry-cuts-initial-delay",
    "L7": "pending-leave-rebalances",
    "L8": "failed-replacement-keeps-protocols",
    "L9": "commit-operations-swapped-in-log",
    "L10": "replacement-stays-new",
    "L11": "sync-does-not-restart-session",
    "L12": "subscribed-topics-of-old-incarnation",
    "L13": "replacement-answered-late",
    "L14": "sync-of-removed-member-unanswered",
    "client D1": "orphan-of-an-absent-static-member",
    "client D2": "absent-static-member-keeps-old-claims",
    "client D3": "wakeup-in-callback-keeps-partitions",
    "Connect D1": "idle-departure-starts-delay",
    "Connect D2": "departure-restarts-backoff",
    "Connect D3": "dealt-and-revoked-counts-as-lost",
    "Connect D4": "new-leader-keeps-deleted-work",
    "Connect D5": "duplicates-hide-deletions",
    "Connect D6": "downgrade-leaks-work",
    "Connect D7": "rebalance-cancels-backoff",
}
"""Every entry of the collections of known defects, and where it is in the table."""

named = pytest.mark.parametrize("name", [m.name for m in explored()])


@cache
def mutant(name: str) -> Search:
    return mutations.explore(REFERENCE[name], max_worlds=round(FOUND[name].worlds * LIMIT))


def findings(events: Iterable[Event]) -> list[Finding]:
    return [finding for group in check(events, SETTINGS) for finding in group.findings]


def test_every_rule_is_broken_by_a_mutation_that_the_explorer_finds() -> None:
    assert {found.rule for found in FOUND.values()} == RULES.keys()


def test_what_was_found_is_what_there_is_to_find() -> None:
    assert FOUND.keys() == {m.name for m in explored()}, ANEW


@named
def test_the_explorer_finds_the_mutation(name: str) -> None:
    result = mutant(name)
    assert result.counterexample is not None, f"{name} was not found in {result.scenario}: {result.worlds} worlds"
    found = Found(result.counterexample.finding.rule, len(result.counterexample.script), result.worlds)
    assert found == FOUND[name], ANEW
    assert result.worlds < WORLDS


@named
def test_it_breaks_exactly_its_promise(name: str) -> None:
    counterexample = mutant(name).counterexample
    assert counterexample is not None
    assert {f.rule for f in findings(counterexample.events) if f.severity == "error"} <= set(REFERENCE[name].breaks)


@named
def test_the_script_repeats_the_run(name: str) -> None:
    mutation, counterexample = REFERENCE[name], mutant(name).counterexample
    assert counterexample is not None
    world = mutated(SCENARIOS[mutation.scenario].world, name, *mutation.needs)
    begun = replace(SCENARIOS[mutation.scenario], world=world).begin()
    assert counterexample.events == begun.then(replay(begun.world, "\n".join(map(str, counterexample.script)))).events


def _grounds() -> dict[tuple[str, int], tuple[int, frozenset[str]]]:
    """By scenario and acts out of turn: how far mutants are searched there, and for which rules."""
    grounds: dict[tuple[str, int], tuple[int, frozenset[str]]] = {}
    for m in explored():
        worlds, rules = grounds.get((m.scenario, m.reorderings), (0, frozenset[str]()))
        grounds[m.scenario, m.reorderings] = max(worlds, FOUND[m.name].worlds), rules | frozenset(m.breaks)
    return grounds


@pytest.mark.parametrize(("scenario", "reorderings"), _grounds())
def test_without_a_mutation_the_same_search_finds_nothing(scenario: str, reorderings: int) -> None:
    worlds, rules = _grounds()[scenario, reorderings]

    def wanted(finding: Finding) -> bool:
        return finding.severity == "error" or finding.rule in rules

    result = search(SCENARIOS[scenario], wanted=wanted, reorderings=reorderings, max_worlds=worlds)
    assert result.counterexample is None, result.counterexample.finding.message


@pytest.mark.parametrize("name", [m.name for m in explored() if m.needs])
def test_of_a_pair_neither_does_harm_alone(name: str) -> None:
    mutation = REFERENCE[name]
    for alone in (name, *mutation.needs):
        result = search(
            SCENARIOS[mutation.scenario],
            mutation=alone,
            rules=frozenset(mutation.breaks),
            reorderings=mutation.reorderings,
            max_worlds=FOUND[name].worlds,
        )
        assert result.counterexample is None, alone


@pytest.mark.parametrize("name", CASES)
def test_one_assignment_shows_it(name: str) -> None:
    given = next(case for case in INPUTS if case.defect == name)
    said: dict[frozenset[str], set[str]] = {}
    for defects in (frozenset[str](), frozenset({name})):
        shares = ASSIGNORS[given.assignor].assign(given.members, given.topics, given.racks, seen=given.seen, defects=defects)
        said[defects] = {f.rule for f in findings(_one_generation(given, shares)) if f.severity in ("error", "warning")}
    assert said == {frozenset[str](): set(), frozenset({name}): said[frozenset({name})]}
    assert said[frozenset({name})]
    assert said[frozenset({name})] <= set(REFERENCE[name].breaks)


def _one_generation(given: Case, shares: dict[str, tuple[str, ...]]) -> Iterable[Event]:
    """Members join with their claims; the first one leads, and hands out ``shares``."""
    members = [each.member for each in given.members]
    at = max((each.metadata.generation for each in given.members), default=0) + 1
    common = {"group": "g"}
    clock = iter(range(0, 10_000_000, 1_000))
    yield Rebalance(**common, ts=next(clock), generation=at - 1, reason="")
    for each in given.members:
        yield Join(
            **common,
            ts=next(clock),
            member=each.member,
            protocols=(given.assignor,),
            subscribed=each.metadata.topics,
            owned=each.metadata.owned,
            owned_generation=each.metadata.generation,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
        )
    yield GenerationStarted(**common, ts=next(clock), generation=at, members=tuple(members), leader=members[0], protocol=given.assignor)
    for member in members:
        yield Joined(**common, ts=next(clock), member=member, generation=at, leader=members[0], protocol=given.assignor)
    yield Sync(**common, ts=next(clock), member=members[0], generation=at, assignment=shares)
    for member in members:
        yield Synced(**common, ts=next(clock), member=member, generation=at, resources=shares[member])


@pytest.mark.parametrize("mutation", [*REFERENCE.values(), *PROTOCOL.values(), *PRESENT.values()], ids=lambda m: f"{m.floor}-{m.name}")
def test_every_mutation_is_found_or_says_why_not(mutation: Mutation) -> None:
    assert bool(mutation.breaks) != bool(mutation.unseen)
    assert set(mutation.breaks) <= RULES.keys()
    if mutation.floor == "reference" and mutation.breaks:
        assert mutation.scenario in SCENARIOS or mutation.name in CASES


def test_every_known_defect_is_in_the_table() -> None:
    table = mutation_table.markdown()
    missing = [f"{code} {name}" for code, name in HISTORIC.items() if f"| `{name}` |" not in table]
    assert not missing


def test_absent_static_members_are_removed_by_the_sync_timer_in_every_present_release() -> None:
    """KIP-345 promises the session timeout. The rule knows better, and warns."""
    present = PRESENT["sync-timer-removes-absent-static-member"]
    result = search(SCENARIOS[present.scenario], rules=frozenset(present.breaks), max_worlds=8_000)
    assert result.counterexample is not None
    assert result.counterexample.finding.severity == "warning"


def test_one_name_may_be_known_on_both_floors() -> None:
    assert [m.floor for m in MUTATIONS["assignor-skips-adjust"]] == ["reference", "protocol"]
    assert all(m.name == name for name, records in MUTATIONS.items() for m in records)


def test_a_rule_is_proved_or_says_why_not() -> None:
    systems = [theory.build(frozenset()) for theory in THEORIES.values()]
    stated = {rule for system in systems for name in system.safety for rule in system.rules.get(name, ())}
    assert stated.isdisjoint(UNPROVED)
    assert stated | UNPROVED.keys() == RULES.keys()


def test_every_rule_has_its_violating_trace() -> None:
    traces = Path(mutations.__file__).parents[1] / "traces" / "rules"
    assert all((traces / f"{rule}.violates.jsonl").is_file() for rule in RULES)


def test_the_table_is_current() -> None:
    file = Path(mutations.__file__).parent / "MUTATIONS.md"
    assert file.read_text(encoding="utf-8") == mutation_table.markdown(), ANEW
