"""Whole histories of a Connect cluster whose leaders use the assignor under test (KIP-415), told and judged as any trace is.

Each decision of a leader is also judged by itself: see spec/assignors/connect.py.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ...model.connect.leader import Asked, Decision, LeadFailed
from ...model.connect.units import KINDS, of_kind, units_of
from ...model.runs import unrest
from ...model.scenarios import cast as staged
from ...model.scenarios import connect
from ...model.world import Config, Faults, Menu, World
from ...spec import Finding, Settings, check
from ...spec.events import Event
from .leaders import Subject
from .walks import ENDLESS, RESTS_WITHIN, Play, Run, blamed, following, needed, played, shortened, walking

BLAMED = frozenset(
    {
        "assigned-only-to-joined-members",
        "connect-balanced",
        "connect-revoke-before-reassign",
        "converges",
        "delay-bounded",
        "delay-counts-down",
        "exclusive-assignment",
        "exclusive-ownership",
        "lost-work-withheld",
        "returning-worker-restored",
    }
)
"""The trace rules that a leader's assignor can break by itself."""


BUDGETS = (
    Faults(starts=5, crashes=2, closes=2, pauses=2, delays=2, cuts=1, resizes=3),
    Faults(starts=4),
    Faults(starts=3, crashes=2),
    Faults(starts=3, closes=2),
    Faults(starts=2, pauses=2),
    Faults(starts=2, delays=2, cuts=1),
    Faults(starts=2, resizes=4),
)
"""How often what may happen in a history: a bit of everything, or more of the same."""

REBALANCES_MS = 35_000
"""How late a generation may come: a session that runs out, then a rebalance that does, and a heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """How a history begins: the workers, all still absent, and the connectors with their numbers of tasks."""

    workers: tuple[str, ...]
    connectors: Mapping[str, int]
    max_delay_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class Round:
    """What a leader was asked after ``before``, and what it decided; a text if it failed."""

    asked: Asked
    before: tuple[Asked, ...]
    decision: Decision | str


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What happened, what leaders decided, what of it breaks a promise, and how to play it again: see histories.py."""

    events: tuple[Event, ...]
    rounds: tuple[Round, ...]
    findings: tuple[Finding, ...]
    script: str


def _opening(workers: int, connectors: Mapping[str, int], lines: str, max_delay_ms: int = 60_000) -> str:
    names = [f"w{number}" for number in range(1, workers + 1)]
    return json.dumps({"workers": names, "connectors": connectors, "max_delay_ms": max_delay_ms}) + ";" + lines


OPENINGS: Mapping[str, str] = MappingProxyType(
    {
        "two workers arrive at once": _opening(3, {"A": 3, "B": 3}, "start w1;settle;start w2;start w3;settle"),
        "a worker arrives amid the follow-up of another's arrival": _opening(
            4, {"A": 3}, "start w1;settle;start w2;poll w2;arrive w2;return w2;poll w2;arrive w2;advance;start w4"
        ),
        "a connector gets fewer tasks": _opening(3, {"A": 3, "B": 3, "C": 1}, "start w1;start w2;start w3;settle;resize A 1;settle"),
        "a worker comes back, and an idle one is there, too": _opening(
            3, {"A": 6, "B": 1}, "start w1;start w3;settle;crash w3;start w2;start w3"
        ),
        "a worker departs where nothing waits": _opening(2, {"A": 6}, "start w1;start w2;settle;crash w2", 0),
        "work comes back while it waits": _opening(2, {"A": 4}, "start w1;start w2;settle;pause w2;wait 20000;settle"),
        "a SyncGroup fails": _opening(
            2,
            {"A": 3, "B": 3, "C": 2},
            "start w1;poll w1;arrive w1;return w1;start w2;poll w2;poll w1;arrive w2;return w2;arrive w1;fire join -;poll w2;arrive w2",
        ),
        "a worker comes back with work that others have by now": _opening(
            2, {"A": 1, "B": 1}, "start w1;start w2;settle;pause w2;wait 90000;settle"
        ),
        "a worker comes back with such work as some of it is deleted": _opening(
            2,
            {"A": 2, "B": 2},
            "start w1;start w2;settle;pause w2;wait 90000;resume w2;beat w2;arrive w2;return w2;poll w2;arrive w2;return w2;"
            "resize B 0;poll w2;settle",
        ),
        "a worker that got too much of what was lost departs at once": _opening(
            4, {"A": 6}, "start w1;start w2;start w3;settle;crash w2;crash w3;wait 15000;start w4;wait 58000;close w4"
        ),
        "an idle worker departs after a revocation": _opening(
            2, {"A": 2, "B": 3}, "start w1;settle;start w2;poll w2;arrive w2;return w2;poll w2;arrive w2;crash w2"
        ),
        "a connector is deleted while the leader changes": _opening(
            2, {"A": 2, "B": 2}, "start w1;start w2;settle;resize B 0;close w1;settle"
        ),
    }
)
"""Scripts of what brought out historic defects, with a semicolon after each line."""


def histories(subject: Subject, *, seed: int, count: int) -> Iterator[History]:
    """``count`` histories, the same for the same seed and decisions: the `OPENINGS`, then random walks."""
    for script in [*OPENINGS.values()][:count]:
        yield replay(script.replace(";", "\n"), subject)
    for number in range(count - len(OPENINGS)):
        chance = random.Random(f"connect {seed} {number}")
        stage = _stage(chance)
        running = stage.workers[: chance.randint(1, len(stage.workers))]
        yield _play(subject, stage, walking(chance, running), _menu(stage), chance.choice(BUDGETS))


def replay(script: str, subject: Subject) -> History:
    """Play a script again; acts that can't happen, as the subject now decides otherwise, are left out.

    Raises ValueError if it is no script.
    """
    return _follow(subject, *_read(script))


def shrink_history(script: str, subject: Subject, same_finding: Callable[[History], bool]) -> str:
    """A shorter script whose history still has the finding: see `shortened`."""
    stage, lines = _read(script)
    return shortened(script, lines, lambda lines: _follow(subject, stage, lines), same_finding)


def _follow(subject: Subject, stage: Stage, lines: Sequence[str]) -> History:
    return _play(subject, stage, following(lines), needed(lines), ENDLESS)


# The stage.


def _stage(chance: random.Random) -> Stage:
    """Two to five workers, one to three connectors; in one history out of five lost work does not wait."""
    connectors = {name: chance.choice((1, 2, 3, 4, 6)) for name in ("A", "B", "C")[: chance.choice((1, 2, 2, 3))]}
    workers = tuple(f"w{number}" for number in range(1, chance.choice((2, 3, 3, 4, 5)) + 1))
    return Stage(workers=workers, connectors=connectors, max_delay_ms=chance.choice((60_000, 60_000, 60_000, 60_000, 0)))


def _menu(stage: Stage) -> Menu:
    sizes = [(name, count) for name, at in sorted(stage.connectors.items()) for count in (0, 1, at + 1, at + 3)]
    return Menu(sizes=tuple(dict.fromkeys((*sizes, ("D", 2)))))


def _world(stage: Stage, lead: Callable[[Asked, tuple[Asked, ...]], Decision], menu: Menu, budget: Faults) -> World:
    plans: dict[str, tuple[Config, ...]] = {
        name: (replace(connect(name), max_delay_ms=stage.max_delay_ms, leads_with=lead),) for name in stage.workers
    }
    return staged(plans, topics=stage.connectors, faults=budget, menu=menu)


# Playing.


def _play(subject: Subject, stage: Stage, play: Play, menu: Menu, budget: Faults) -> History:
    rounds: list[Round] = []

    def lead(asked: Asked, before: tuple[Asked, ...]) -> Decision:
        try:
            decision = subject.decide(asked, before)
        except LeadFailed as failure:
            rounds.append(Round(asked, before, str(failure)))
            raise
        rounds.append(Round(asked, before, decision))
        return decision

    run = played(_world(stage, lead, menu, budget), play, lambda: any(isinstance(each.decision, str) for each in rounds))
    return History(
        events=run.events,
        rounds=tuple(rounds),
        findings=tuple(_findings(run, rounds, stage)),
        script="\n".join((_written(stage), *run.lines)) + "\n",
    )


# Judging.


def _findings(run: Run, rounds: Sequence[Round], stage: Stage) -> Iterator[Finding]:
    failed = [each for each in rounds if isinstance(each.decision, str)]
    for each in failed:
        yield _finding("connect-answers", each.asked.generation, f"the leader failed: {each.decision}")
    settings = Settings(clock_skew_ms=1, max_delay_ms=stage.max_delay_ms, only=BLAMED)
    for group in check(run.events, settings, measure=False):
        yield from (finding for finding in group.findings if not finding.relaxed)
    led: dict[tuple[Asked, ...], tuple[Decision, ...]] = {(): ()}
    for each in rounds:
        if isinstance(each.decision, Decision):
            yield from _judged(each.asked, each.decision, each.before, led[each.before])
            led[(*each.before, each.asked)] = (*led[each.before], each.decision)
    if not failed:
        yield from _at_rest(run)


_UNREST = {
    "nobody owns": "work-placed",
    "owned twice": "exclusive-ownership",
    "owned though nobody should": "deleted-work-stopped",
    "unbalanced": "connect-balanced",
}
"""The rule behind what keeps a cluster from rest, by how that is said."""


def _at_rest(run: Run) -> Iterator[Finding]:
    generation = run.world.group.generation
    if not run.rests:
        yield _finding(
            "converges", generation, f"the cluster has not come to rest after {RESTS_WITHIN} steps, though nothing happens to it"
        )
        return
    for said in unrest(run.world):
        rule = next((rule for words, rule in _UNREST.items() if said.startswith(words)), None)
        if rule is not None:
            yield _finding(rule, generation, f"at rest: {said}")


def _judged(asked: Asked, decision: Decision, before: tuple[Asked, ...], led: tuple[Decision, ...]) -> Iterator[Finding]:
    """What a single decision breaks; ``led`` are those of the same leader when it was asked ``before``."""
    configured = units_of(asked.connectors)
    reported = {member: told.owned for member, told in asked.members}
    waits = _waits(asked, decision)
    now = asked.generation
    if decision.delay_ms == 0 and waits:
        yield _finding("work-placed", now, f"{_named(waits)} runs nowhere, nobody is given it, and no delay is announced", waits)
    if decision.delay_ms > 0 and not waits and not _overloaded(configured, reported) and not _backs_off(asked, decision, before, led):
        message = f"a delay of {decision.delay_ms} ms is announced, but no work waits for it and no worker runs more than its part"
        yield _finding("delay-has-reason", now, message)
    if led and led[-1].delay_ms == 0 and decision.delay_ms > 0 and waits:
        departed = {member for member, _ in before[-1].members} - reported.keys()
        if not departed:
            message = f"{_named(waits)} is to wait {decision.delay_ms} ms for a worker that departed, and none has"
            yield _finding("departure-before-delay", now, message, waits)
    for unit, since in _waiting(waits, before, led).items():
        total = asked.now + decision.delay_ms - since
        if total > asked.max_delay_ms + REBALANCES_MS:
            yield _finding(
                "waits-once", now, f"{unit} is to wait for {total} ms in all, the maximal delay is {asked.max_delay_ms} ms", (unit,)
            )
    kept = {member: [unit for unit in units if unit not in decision.revoked.get(member, ())] for member, units in reported.items()}
    deleted = {unit for units in kept.values() for unit in units if unit not in configured}
    if deleted:
        yield _finding("deleted-work-stopped", now, f"{_named(deleted)} is deleted, and who runs it is not told to stop it", deleted)
    left = [unit for units in kept.values() for unit in units]
    twice = {unit for unit in left if left.count(unit) > 1}
    if twice:
        yield _finding("duplicates-resolved", now, f"{_named(twice)} runs on several workers, and is left to several", twice)


def _waiting(waits: Iterable[str], before: Sequence[Asked], led: Sequence[Decision]) -> Mapping[str, int]:
    """Since when (ms) each of the units has run nowhere, as far as its leader knows."""
    since: dict[str, int] = {}
    for unit in waits:
        for asked, decision in zip(reversed(before), reversed(led), strict=True):
            runs = any(unit in told.owned for _, told in asked.members) or any(unit in units for units in decision.assigned.values())
            if runs or unit not in units_of(asked.connectors):
                break
            since[unit] = asked.now
    return since


def _waits(asked: Asked, decision: Decision) -> frozenset[str]:
    """What is configured, runs nowhere, and is given to nobody; what is dealt and revoked at once comes in the follow-up."""
    running = {unit for _, told in asked.members for unit in told.owned}
    dealt = {unit for units in (*decision.assigned.values(), *decision.revoked.values()) for unit in units}
    return units_of(asked.connectors) - running - dealt


def _backs_off(asked: Asked, decision: Decision, before: Sequence[Asked], led: Sequence[Decision]) -> bool:
    """Whether the delay is the rest of one that was announced before, and for balance alone."""
    return bool(
        led
        and led[-1].delay_ms > 0
        and not _waits(before[-1], led[-1])
        and asked.now + decision.delay_ms <= before[-1].now + led[-1].delay_ms
    )


def _overloaded(configured: frozenset[str], reported: Mapping[str, Sequence[str]]) -> bool:
    """Whether some worker runs more of a kind than its part of a balanced assignment."""
    for kind in KINDS:
        part, extras = divmod(len(of_kind(kind, configured)), len(reported))
        beyond = [over for units in reported.values() if (over := len(configured & {*of_kind(kind, units)}) - part) > 0]
        if len(beyond) > extras or max(beyond, default=0) > 1:
            return True
    return False


def _named(units: Iterable[str]) -> str:
    return ", ".join(sorted(units))


def _finding(rule: str, generation: int, message: str, resources: Iterable[str] = ()) -> Finding:
    return blamed(rule, "connect", 0, generation, message, sorted(resources))


# Scripts.


def _written(stage: Stage) -> str:
    told = {"workers": stage.workers, "connectors": dict(stage.connectors), "max_delay_ms": stage.max_delay_ms}
    return json.dumps(told, separators=(",", ":"))


def _read(script: str) -> tuple[Stage, tuple[str, ...]]:
    head, _, rest = script.partition("\n")
    try:
        told: Any = json.loads(head)
        stage = Stage(
            workers=tuple(map(str, told["workers"])),
            connectors={str(name): int(tasks) for name, tasks in told["connectors"].items()},
            max_delay_ms=int(told["max_delay_ms"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not the stage of a history: {head[:80]!r}") from error
    return stage, tuple(text.strip() for text in rest.splitlines() if text.strip())
