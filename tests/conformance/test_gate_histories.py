"""Whole histories: nothing is held against the built-in assignors, and their seeded defects show in some history."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kipcheck.conformance.gate.builtin import Builtin, builtin
from kipcheck.conformance.gate.histories import OPENINGS, History, histories, replay, shrink_history
from kipcheck.model.assignors import MUTATIONS
from kipcheck.spec.assignors.case import Answer, Case, NoAnswer
from kipcheck.spec.assignors.kinds import Kind

SHOWS = {
    "assignor-skips-adjust": "cooperative-sticky",
    "trusts-every-claim": "cooperative-sticky",
    "only-highest-generation-counts": "cooperative-sticky",
    "rack-mismatch-not-withheld": "cooperative-sticky",
    "trusts-every-prior-assignment": "sticky",
    "remembers-highest-generation": "cooperative-sticky",
    "first-of-highest-generation-dropped": "cooperative-sticky",
    "assignor-forgets-what-it-withheld": "cooperative-sticky",
    "assignor-keeps-moving": "cooperative-sticky",
    "assignor-ignores-claims": "sticky",
}
"""Where each defect shows that breaks a rule of traces. ``loser-becomes-owner`` takes three claims of three generations: cases have it."""

COUNT = 24


def rules(history: History) -> set[str]:
    return {finding.rule for finding in history.findings}


def errors(history: History) -> set[str]:
    return {finding.rule for finding in history.findings if finding.severity == "error"}


def first(defect: str, *broken: str) -> History:
    found = (h for h in histories(builtin(f"{SHOWS[defect]}!{defect}"), seed=0, count=COUNT) if rules(h) & {*broken})
    return next(found)


@pytest.mark.parametrize("kind", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_nothing_is_held_against_a_reference_assignor(kind: Kind) -> None:
    told = list(histories(builtin(kind), seed=0, count=2 * COUNT))
    assert not [errors(history) for history in told if errors(history)]
    assert all(history.cases and len(history.cases) == len(history.answers) for history in told)
    assert {case.input_class for history in told for case in history.cases} == {"history"}


def test_histories_bring_what_groups_go_through() -> None:
    told = list(histories(builtin("cooperative-sticky"), seed=0, count=2 * COUNT))
    verbs = {text.split()[0] for history in told for text in history.script.splitlines()[1:]}
    assert {"start", "crash", "close", "pause", "stall", "delay", "cut", "resize", "subscribe"} <= verbs
    cases = [case for history in told for case in history.cases]
    assert any(member.instance for case in cases for member in case.members)
    assert any(member.version == 1 for case in cases for member in case.members)
    assert any(case.racks for case in cases)
    assert any(case.before for case in cases)
    claims = [(case, claim.rpartition("-")) for case in cases for member in case.members for claim in member.owned]
    assert any(int(number) >= case.topics.get(topic, 0) for case, (topic, _, number) in claims), "no topic ever shrank"


@pytest.mark.parametrize("defect", sorted(SHOWS))
def test_a_seeded_defect_shows(defect: str) -> None:
    broken = next(mutation.breaks for mutation in MUTATIONS if mutation.name == defect)
    assert first(defect, *broken)


def test_every_defect_that_breaks_a_rule_of_traces_is_sought() -> None:
    assert {m.name for m in MUTATIONS if m.breaks} == {*SHOWS, "loser-becomes-owner"}


def test_a_history_is_told_alike_each_time_and_by_its_script() -> None:
    one, other = (list(histories(builtin("sticky"), seed=3, count=6)) for _ in range(2))
    assert one == other
    for history in one:
        again = replay(history.script, builtin("sticky"))
        assert again.events == history.events
        assert again.script == history.script


@pytest.mark.parametrize("script", ["", "{}", "[]", '{"topics":{},"cast":[]}\nfly c1', '{"topics":{"t":"x"},"cast":[]}'])
def test_what_is_no_script_is_refused(script: str) -> None:
    with pytest.raises(ValueError, match="not "):
        replay(script, builtin("range"))


def test_a_shorter_script_shows_the_same() -> None:
    subject = builtin("cooperative-sticky!assignor-skips-adjust")
    history = first("assignor-skips-adjust", "revoke-before-reassign")
    script = shrink_history(history.script, subject, lambda shorter: "revoke-before-reassign" in rules(shorter))
    assert len(script.splitlines()) < len(history.script.splitlines()) / 2
    assert "revoke-before-reassign" in rules(replay(script, subject))


class Silent(Builtin):
    """Answers nothing from the third call on."""

    def ask(self, cases: Sequence[Case]) -> Sequence[Answer]:
        self.seconds += 1
        return super().ask(cases) if self.seconds < 3 else [NoAnswer("error", "no") for _ in cases]


def test_an_assignor_that_fails_ends_the_history_and_is_blamed_for_that_alone() -> None:
    told = list(histories(Silent("cooperative-sticky"), seed=0, count=4))
    assert all(sum(isinstance(answer, NoAnswer) for answer in history.answers) <= 3 for history in told)
    assert any(isinstance(history.answers[-1], NoAnswer) for history in told)
    assert not [errors(history) for history in told if errors(history)]


class Unfair(Builtin):
    """Gives everything to the first member."""

    def ask(self, cases: Sequence[Case]) -> Sequence[Answer]:
        return [self._unfair(case, shares) for case, shares in zip(cases, super().ask(cases), strict=True)]

    def _unfair(self, case: Case, shares: Answer) -> Answer:
        assert not isinstance(shares, NoAnswer)
        everything = tuple(partition for share in shares.values() for partition in share)
        return {member.id: everything if member == case.members[0] else () for member in case.members}


class Forgetful(Builtin):
    """Leaves the first partition out."""

    def ask(self, cases: Sequence[Case]) -> Sequence[Answer]:
        told = [answer for answer in super().ask(cases) if not isinstance(answer, NoAnswer)]
        return [{member: tuple(p for p in share if p != "t-0") for member, share in answer.items()} for answer in told]


def test_what_is_wrong_at_rest_is_found() -> None:
    assert "balanced" in set().union(*(rules(h) for h in histories(Unfair("roundrobin"), seed=0, count=6)))
    forgotten = [f for h in histories(Forgetful("range"), seed=0, count=4) for f in h.findings]
    assert any("nobody owns t-0" in finding.message for finding in forgotten)


def test_an_opening_is_a_script() -> None:
    for name, script in OPENINGS.items():
        told = replay(script.replace(";", "\n"), builtin("cooperative-sticky"))
        assert told.script.splitlines()[1:] == script.split(";")[1:], name
