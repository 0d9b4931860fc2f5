"""The gate for Connect's leaders: histories of clusters, and of each rule that is broken the shortest script that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version

from ...spec.assignors.connect import CONNECT_RULES
from ...spec.check import verdict
from ...spec.results import GroupResult, RuleResult, Settings, Status, worst
from ..report import Report
from . import stories
from .connect import BLAMED, History, histories, replay, shrink_history
from .leaders import Subject
from .stories import GROUP


def gate_clusters(
    subject: Subject,
    *,
    seed: int = 0,
    count: int,
    settings: Settings | None = None,
    command: str = "",
    watch: Callable[[int], None] = lambda histories: None,
) -> Report:
    """Hold a Connect leader to its promises over ``count`` histories: those that brought out historic defects, then random ones.

    ``command`` is what asks the same leader, for the findings' replay. ``watch`` is told how many histories are done. Raises
    `Failed` if the leader can't be started.
    """
    settings = settings or Settings()
    told: list[History] = []
    for history in histories(subject, seed=seed, count=count):
        told.append(history)
        watch(len(told))
    found = tuple(replace(each, replay=command or None) for each in stories.told(told, _stage(subject), settings))
    broken = {finding.rule for finding in found}
    times = {**dict.fromkeys(BLAMED, len(told)), **dict.fromkeys(CONNECT_RULES, sum(len(each.rounds) for each in told))}
    rules = {
        rule: RuleResult(Status.VIOLATED if rule in broken else Status.PASS, checked)
        for rule, checked in sorted(times.items())
        if settings.wants(rule)
    }
    group = GroupResult(
        cluster=subject.name,
        group=GROUP,
        protocol="connect",
        verdict=verdict(rules, found),
        rules=rules,
        metrics={},
        findings=found,
        events=len(told),
    )
    notes = (f"seed {seed}, {count} histories of clusters",)
    return Report(command="gate", version=version("kipcheck"), verdict=worst((group.verdict,)), inputs=(), groups=(group,), notes=notes)


def _stage(subject: Subject) -> stories.Stage[History]:
    return stories.Stage(subject.name, lambda script: replay(script, subject), lambda script, found: shrink_history(script, subject, found))
