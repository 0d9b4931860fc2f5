"""Histories of Connect clusters: the mended reference leader keeps all promises, and each seeded defect that shows is found."""

from __future__ import annotations

import pytest

from kipcheck.conformance.gate.clusters import gate_clusters
from kipcheck.conformance.gate.connect import BLAMED, OPENINGS, History, histories, replay, shrink_history
from kipcheck.conformance.gate.leaders import Reference
from kipcheck.model.connect.leader import Asked, Decision, LeadFailed, Policy, Release
from kipcheck.model.connect.mutations import MUTATIONS
from kipcheck.spec import Settings
from kipcheck.spec.assignors.connect import CONNECT_RULES
from kipcheck.spec.results import Status, Verdict

SHOWS = {
    "dealt-and-revoked-counts-as-lost": "waits-once",
    "delay-never-reset": "delay-counts-down",
    "departure-restarts-delay": "delay-counts-down",
    "duplicates-kept": "exclusive-ownership",
    "duplicates-hide-deletions": "deleted-work-stopped",
    "first-candidate-takes-all": "returning-worker-restored",
    "idle-departure-starts-delay": "delay-has-reason",
    "levels-down-to-floor": "connect-balanced",
    "lost-work-dealt-to-others": "returning-worker-restored",
    "lost-work-dealt-under-delay": "lost-work-withheld",
    "maximum-delay-0-withholds": "work-placed",
    "never-levels-twice": "connect-balanced",
    "new-leader-keeps-deleted-work": "deleted-work-stopped",
    "revoked-work-reassigned-at-once": "connect-revoke-before-reassign",
    "sync-failure-is-a-departure": "departure-before-delay",
    "delay-doubled": "delay-bounded",
}
"""A rule by which each defect of the leader is found; for some, only a decision by itself tells."""

HIDES = {
    "departure-restarts-backoff": "takes a departure within the 40 ms of a back-off",
    "rebalance-cancels-backoff": "balance comes sooner, which is no harm",
    "one-holder-keeps": "no promise is broken: one worker has to keep it or get it anew",
    "delay-differs": "a `Decision` has one delay; the worker reports several as an error",
}
COUNT = 30


def leader(release: Release = "mended", *defects: str) -> Reference:
    return Reference(Policy(release=release, defects=frozenset(defects)))


def rules(history: History) -> set[str]:
    return {finding.rule for finding in history.findings}


def test_nothing_is_held_against_a_leader_without_defects() -> None:
    told = list(histories(leader(), seed=0, count=COUNT + 10))
    assert not [rules(history) for history in told if rules(history)]
    decisions = [each.decision for history in told for each in history.rounds]
    assert any(isinstance(decision, Decision) and decision.delay_ms for decision in decisions)


@pytest.mark.parametrize("defect", sorted(SHOWS))
def test_a_seeded_defect_shows(defect: str) -> None:
    assert any(SHOWS[defect] in rules(history) for history in histories(leader("mended", defect), seed=0, count=COUNT))


def test_every_defect_of_the_leader_is_sought_or_known_to_hide() -> None:
    of_workers = {"downgrade-leaks-work", "unresolved-round-skips-revocation", "worker-stops-everything-to-join"}
    assert {m.name for m in MUTATIONS} - of_workers == {*SHOWS, *HIDES}


@pytest.mark.parametrize(
    ("release", "opening", "rule"),
    [
        ("K4", "a worker arrives amid the follow-up of another's arrival", "connect-balanced"),
        ("K4", "a connector gets fewer tasks", "connect-balanced"),
        ("K4", "a worker departs where nothing waits", "work-placed"),
        ("K6", "an idle worker departs after a revocation", "delay-has-reason"),
        ("K6", "a connector is deleted while the leader changes", "deleted-work-stopped"),
    ],
)
def test_an_opening_tells_the_behaviour_classes_of_kafka_apart(release: Release, opening: str, rule: str) -> None:
    script = OPENINGS[opening].replace(";", "\n")
    assert rules(replay(script, leader(release))) == {rule}
    assert not rules(replay(script, leader()))


def test_a_finding_names_a_rule_there_is() -> None:
    found = {finding.rule for release in ("K4", "K6") for h in histories(leader(release), seed=0, count=18) for finding in h.findings}
    assert found <= {*BLAMED, *CONNECT_RULES}


def test_a_history_is_told_alike_each_time_and_by_its_script() -> None:
    one, other = (list(histories(leader("K6"), seed=1, count=14)) for _ in range(2))
    assert one == other
    for history in one:
        assert replay(history.script, leader("K6")) == history


@pytest.mark.parametrize("script", ["", "{}", '{"workers":[],"connectors":{},"max_delay_ms":1}\nfly w1', '{"workers":1}'])
def test_what_is_no_script_is_refused(script: str) -> None:
    with pytest.raises(ValueError, match="not "):
        replay(script, leader())


def test_a_shorter_script_shows_the_same() -> None:
    subject = leader("mended", "lost-work-dealt-under-delay")
    told = (h for h in histories(subject, seed=0, count=COUNT) if h.script.count("\n") > 30)
    history = next(h for h in told if "lost-work-withheld" in rules(h))
    script = shrink_history(history.script, subject, lambda shorter: "lost-work-withheld" in rules(shorter))
    assert script.count("\n") < history.script.count("\n") / 2
    assert "lost-work-withheld" in rules(replay(script, subject))


def test_the_gate_shows_each_broken_rule_by_its_shortest_script() -> None:
    report = gate_clusters(leader("K6"), count=len(OPENINGS), command="kipcheck gate")
    (group,) = report.groups
    assert {finding.rule for finding in group.findings} == {"delay-has-reason", "deleted-work-stopped", "waits-once"}
    assert (report.verdict, group.verdict) == (Verdict.VIOLATES, Verdict.VIOLATES)
    deleted = next(finding for finding in group.findings if finding.rule == "deleted-work-stopped")
    assert [step.says for step in deleted.argument][-1] == "its history: start w1; start w2; settle; resize B 0; close w1"
    assert group.rules["deleted-work-stopped"].status is Status.VIOLATED
    assert group.rules["delay-bounded"].status is Status.PASS


def test_the_gate_passes_a_leader_without_defects() -> None:
    watched: list[int] = []
    report = gate_clusters(leader(), count=len(OPENINGS) + 2, settings=Settings(skip=frozenset({"converges"})), watch=watched.append)
    assert report.verdict is Verdict.CONFORMS
    assert "converges" not in report.groups[0].rules
    assert watched[-1] == len(OPENINGS) + 2


class Failing(Reference):
    def decide(self, asked: Asked, before: tuple[Asked, ...]) -> Decision:
        if before:
            raise LeadFailed("java.lang.IllegalStateException: no")
        return super().decide(asked, before)


def test_a_leader_that_fails_ends_the_history() -> None:
    history = replay(OPENINGS["two workers arrive at once"].replace(";", "\n"), Failing(Policy(release="mended")))
    assert [finding.rule for finding in history.findings] == ["connect-answers"]
    assert "IllegalStateException" in history.findings[0].message
    assert isinstance(history.rounds[-1].decision, str)
