"""KIP-415: each promise of Connect's incremental rebalancing, its exceptions, and what its leader is known to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import pytest

from kipcheck.spec.events import (
    Assigned,
    Assignment,
    Closed,
    Event,
    Expire,
    Gap,
    GenerationStarted,
    Join,
    Joined,
    Leave,
    Lost,
    MemberInfo,
    Owned,
    Source,
    Sync,
    Synced,
)
from kipcheck.spec.results import Broken, Outcome, Settings, Unknown
from kipcheck.spec.rounds import rounds
from kipcheck.spec.rules.kip415 import MONITORS, release

GROUP = "connect-cluster"
START = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
DELAY = 300_000
BY_ID = {monitor.rule.id: monitor for monitor in MONITORS}

REVOKE, WITHHELD, BOUNDED, COUNTS, RESTORED, BALANCED = BY_ID


def units(text: str) -> tuple[str, ...]:
    """``A A0 A11`` is connector A with tasks A-0 and A-11."""
    return tuple(sorted(f"task:{u[0]}-{u[1:]}" if u[1:] else f"connector:{u}" for u in re.split(r"[ ,]+", text) if u))


@dataclass(frozen=True)
class W:
    """A worker in a generation: what it reports, what it is to own (by default the same; ``?``: unseen), what it is to stop."""

    reports: str | None = ""
    owns: str | None = None
    revoked: str | None = ""
    delay: int | None = None
    error: str = "NONE"


@dataclass(frozen=True)
class Turn:
    """A generation ``at`` milliseconds; its leader is the first worker unless named."""

    at: int
    workers: dict[str, W]
    delay: int | None = 0
    leader: str | None = None
    left: tuple[str, ...] = ()
    protocol: str | None = "sessioned"
    extra: dict[str, object] = field(default_factory=dict)


def trace(*turns: Turn) -> list[Event]:
    """What the coordinator saw of successive generations."""
    events: list[Event] = []
    for generation, turn in enumerate(turns, 1):
        ts = START + turn.at * 1000
        leader = turn.leader or next(iter(turn.workers))
        events += [Leave(group=GROUP, ts=ts - 20_000, generation=generation - 1, member=m) for m in turn.left]
        for member, worker in turn.workers.items():
            owned = None if worker.reports is None else units(worker.reports)
            events.append(Join(group=GROUP, ts=ts - 10_000, member=member, client=member[:2], owned=owned))
        events.append(
            GenerationStarted(group=GROUP, ts=ts, generation=generation, members=tuple(turn.workers), leader=leader, protocol=turn.protocol)
        )
        for member, worker in turn.workers.items():
            resources = worker.reports if worker.owns is None else worker.owns
            events.append(
                Synced(
                    group=GROUP,
                    ts=ts + 10_000,
                    generation=generation,
                    member=member,
                    resources=None if resources in (None, "?") else units(resources),
                    revoked=None if worker.revoked is None else units(worker.revoked),
                    delay_ms=turn.delay if worker.delay is None else worker.delay,
                    error=worker.error,
                    extra=turn.extra,
                )
            )
    return [replace(event, src=Source("t", line, event.kind)) for line, event in enumerate(events, 1)]


def outcomes(rule: str, events: Iterable[Event], settings: Settings | None = None) -> list[Outcome]:
    monitor = BY_ID[rule](settings or Settings())
    history = rounds(list(events))
    found = [o for i, now in enumerate(history) for o in monitor.round(now, history[max(0, i - 8) : i])]
    return [*found, *monitor.end(history[-8:])]


def said(rule: str, events: Iterable[Event], settings: Settings | None = None) -> list[str]:
    """One letter per outcome: held, unknown, broken."""
    return [type(o).__name__[0].lower() for o in outcomes(rule, events, settings)]


def broken(rule: str, events: Iterable[Event], settings: Settings | None = None) -> list[Broken]:
    return [o for o in outcomes(rule, events, settings) if isinstance(o, Broken)]


def only_broken(rule: str, events: Iterable[Event]) -> Broken:
    (finding,) = broken(rule, events)
    return finding


def without(events: Iterable[Event], drop: Callable[[Event], bool]) -> list[Event]:
    return [e for e in events if not drop(e)]


def unstamped(events: Iterable[Event]) -> list[Event]:
    return [replace(e, ts=None) for e in events]


def released(events: Iterable[Event], version: str) -> list[Event]:
    return [replace(e, extra={**e.extra, "release": version}) for e in events]


# What real leaders do: (milliseconds, delay, workers in order, the first leads). ``+`` is given, ``-`` revoked, ``=``
# reported instead of what the worker had, ``!`` the response was lost. Worker W2b is W2 restarted.

SIX = "0 0 W1+A,A0,A1,A2,A3,A4,A5\n1000 0 W1-A0,A1,A2,A3 W2 W3\n2000 0 W1 W2+A0,A2 W3+A1,A3\n"
FOUR = "0 0 W1+A,A0,A1,A2,A3\n1000 0 W1-A0,A1 W2\n2000 0 W1 W2+A0,A1\n"
AB = "0 0 W1+A,B,A0,A1,B0\n1000 0 W1-A,A0,A1 W2 W3\n2000 0 W1 W2+A,A0 W3+A1\n"
TWELVE = "0 0 W1+A,A0,A1,A2,A3,A4,A5,A6,A7,A8,A9,A10,A11\n"
HALVES = TWELVE + "1000 0 W1-A0,A1,A2,A3,A4,A5 W2\n2000 0 W1 W2+A0,A1,A2,A3,A4,A5\n60000 300000 W1\n90000 270000 W1 W2b\n"
HALVES += "100000 260000 W1 W2b+B,B0,B2 W3+B1\n"

CURRENT = {
    "an idle worker leaves after a revocation": "0 0 W1+A,A0,A1,A2,A3\n2000 0 W1-A0,A1 W2 W3\n3000 300000 W1 W2+A0,A1\n303000 0 W1 W2",
    "the leader leaves under a delay": AB
    + "60000 300000 W1 W3\n120000 240000 W1 W3 W2b\n150000 0 W3+B W2b+A,A0,B0\n170000 0 W3 W2b-A0 W1b\n171000 0 W3 W2b W1b+A0",
    "the leader misses a sync": FOUR + "60000 0 W1!+B0,B2 W2+B,B1,B3\n61000 0 W1+B0,B2 W2",
    "a zombie is back under the delay": FOUR + "60000 300000 W1\n100000 0 W1 W2=A0,A1\n1100000 300000 W1\n1400000 0 W1+A0,A1",
    "two workers without work": SIX + "60000 300000 W1 W3\n90000 270000 W1 W3 W2b W4\n360000 0 W1 W3 W2b+A0 W4+A2",
    "a second departure": SIX + "60000 300000 W1 W3\n350000 10000 W1\n360000 0 W1+A0,A1,A2,A3",
    "new work under the delay": HALVES + "360000 0 W1-A6 W2b+A0,A2,A4 W3+A1,A3,A5\n361000 0 W1 W2b W3+A6",
    "back only when the delay is over": SIX + "60000 300000 W1 W3\n360000 0 W1 W3 W2b+A0,A2",
    "a new connector under the delay": AB
    + "60000 300000 W1 W3\n90000 270000 W1+C0 W3+C,C1\n120000 240000 W1 W3 W2b\n360000 0 W1 W3 W2b+A,A0",
    "a share is revoked as it is given": SIX + "60000 300000 W1\n90000 270000 W1 W2b\n360000 0 W1 W2b+A1,A2,A3-A0\n361000 0 W1+A0 W2b",
    "a staged scale-out": TWELVE
    + "2000 0 W1-A0,A1,A2,A3,A4,A5 W2\n2100 40 W1 W2+A0,A2,A4 W3+A1,A3,A5\n2140 0 W1-A6,A7,A8 W2 W3 W4\n"
    + "2200 1600 W1 W2 W3 W4+A6,A8 W5+A7\n2300 1500 W1 W2 W3 W4 W5 W6\n3800 0 W1-A9 W2-A0 W3-A1 W4 W5 W6\n4800 0 W1 W2 W3 W4 W5+A9 W6+A0,A1",
    "a worker bounces twice": FOUR + "60000 300000 W1\n90000 270000 W1 W2b\n100000 260000 W1\n200000 160000 W1 W2c\n360000 0 W1 W2c+A0,A1",
    "back after the delay": AB + "60000 300000 W1 W3\n360000 0 W1+A0 W3+A\n420000 0 W1-B0 W3 W2b\n421000 0 W1 W3 W2b+B0",
    "the candidate leaves when the delay is over": FOUR + "60000 300000 W1\n200000 160000 W1 W2b\n360000 0 W1+A0,A1",
    "duplicate and deleted work of one worker": "0 0 W1=A,A0,A1 W2=B,B0\n60000 0 W1=A,A0,A1-A0 W2=B,B0,A0-B,B0,A0\n61000 0 W1 W2+A0\n70000 0 W1 W2",
    "the leader's configuration lags": FOUR + "60000 300000 W1\n90000 0 W1?\n91000 0 W1+A0,A1",
    "no delay at all": FOUR + "60000 0 W1+A0,A1",
    "a departure within a back-off delay": TWELVE
    + "2000 0 W1-A0,A1,A2,A3,A4,A5 W2\n2100 40 W1 W2+A0,A2,A4 W3+A1,A3,A5\n2110 30 W1 W2\n2140 0 W1 W2+A1,A3,A5",
}
BEFORE_3_4 = {
    "new work under the delay": (HALVES + "360000 0 W1 W2b+A0,A2,A4 W3+A1,A3,A5", {BALANCED}),
    "one worker takes all": (SIX + "60000 300000 W1\n90000 270000 W1 W2b\n360000 0 W1 W2b+A0,A1,A2,A3", {BALANCED}),
    "an idle worker leaves": ("0 0 W1+A,A0,A1,A2,A3\n2000 0 W1-A0,A1 W2 W3\n3000 0 W1 W2+A0,A1", set[str]()),
    "deleted work survives a duplicate": (
        "0 0 W1=A,A0,A1 W2=B,B0\n60000 0 W1=A,A0,A1-A0 W2=B,B0,A0-A0\n61000 0 W1+A0 W2\n70000 0 W1 W2-B,B0\n71000 0 W1-A0 W2\n72000 0 W1 W2+A0",
        set[str](),
    ),
}
WORKER = re.compile(r"(\w+)([!?]?)(?:=([\w,]+))?(?:\+([\w,]+))?(?:-([\w,]+))?")


def played(script: str) -> list[Event]:
    """The trace of a script."""
    turns: list[Turn] = []
    has: dict[str, set[str]] = {}
    for row in script.strip().splitlines():
        at, delay, *cells = row.split()
        workers: dict[str, W] = {}
        for cell in cells:
            match = WORKER.fullmatch(cell)
            assert match, cell
            name, mark, reports, given, revoked = match.groups()
            had = set(reports.split(",")) if reports else has.get(name, set())
            owns = (had - set((revoked or "").split(","))) | set((given or "").split(",")) - {""}
            error = {"!": "REBALANCE_IN_PROGRESS", "?": "CONFIG_MISMATCH"}.get(mark, "NONE")
            has[name] = had if mark else owns
            workers[name] = W(" ".join(had), " ".join(owns), revoked or "", error=error)
        has = {name: owns for name, owns in has.items() if name in workers}
        turns.append(Turn(int(at), workers, int(delay)))
    return trace(*turns)


@pytest.mark.parametrize("script", CURRENT.values(), ids=CURRENT)
def test_a_current_leader_breaks_no_promise(script: str) -> None:
    events = played(script)
    assert {rule for rule in BY_ID if broken(rule, events)} == set()
    assert {rule for rule in BY_ID if broken(rule, unstamped(events))} == set()
    assert "h" in said(REVOKE, events) + said(BALANCED, events)


@pytest.mark.parametrize(("script", "rules"), BEFORE_3_4.values(), ids=BEFORE_3_4)
def test_an_older_leader_breaks_only_the_balance(script: str, rules: set[str]) -> None:
    events = played(script)
    assert {rule for rule in BY_ID if broken(rule, events)} == rules
    for rule in rules:
        assert [(f.severity, "KAFKA-12495" in (f.relaxed or "")) for f in broken(rule, released(events, "2.8.1"))] == [("warning", True)]


def test_the_scripts_are_not_vacuous() -> None:
    held = {rule: sum(said(rule, played(script)).count("h") for script in CURRENT.values()) for rule in BY_ID}
    assert held[WITHHELD] > 20
    assert held[COUNTS] > 10
    assert held[RESTORED] >= 6
    assert min(held.values()) >= 6


# connect-revoke-before-reassign

ALONE = Turn(0, {"w1": W("", "A A0 A1")})


def handed_over(**changes: object) -> list[Event]:
    """w1 reports A1 and is told to stop it, and w2 gets it in the same generation."""
    second = Turn(60_000, {"w1": W("A A0 A1", "A A0", "A1"), "w2": W("", "A1")})
    return trace(ALONE, replace(second, **changes))  # type: ignore[arg-type]


def test_reported_work_is_given_to_another() -> None:
    finding = only_broken(REVOKE, handed_over())
    assert finding.generation == 2
    assert finding.members == ("w1", "w2")
    assert finding.resources == ("task:A-1",)
    assert "task:A-1" in finding.message
    assert [step.evidence.text for step in finding.argument if step.evidence] == ["join", "synced", "synced"]


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        ({"w1": W("A A0 A1", "A A0", "A1"), "w2": W("", "")}, ["h"]),
        ({"w1": W("A A0 A1", "A A0", ""), "w2": W("", "A1")}, ["b"]),
        ({"w1": W(None, "A A0", "A1"), "w2": W("", "A1")}, ["b", "u"]),
        ({"w1": W("A A0 A1", "?", None), "w2": W("", "A1")}, ["b"]),
        ({"w1": W("A A0", "A A0"), "w2": W("", "A1")}, ["h"]),
        ({"w1": W("A A0 A1", "A A0", "A1"), "w2": W("A1", "A1")}, ["h"]),
        ({"w1": W("A A0 A1", "A A0", "A1"), "w2": W(None, "A1")}, ["u"]),
        ({"w1": W(None, "A A0"), "w2": W("", "A1")}, ["u"]),
        ({"w1": W("A A0", "A A0"), "w2": W("", "A1"), "w3": W(None, "")}, ["u"]),
        ({"w1": W("A A0 A1", "A A0 A1"), "w2": W("", "A1")}, []),
        ({"w1": W("A A0 A1", "A A0 A1", "A1"), "w2": W("", "")}, ["b"]),
        ({"w1": W("A A0 A1", "A A0 A1"), "w2": W("", "")}, []),
        ({"w1": W("A A0", "A A0 A1")}, []),
        ({"w1": W("A A0 A1", "A A0 A1", "A1")}, ["b"]),
    ],
    ids=[
        "revoked first",
        "not even revoked",
        "revoked, report unknown",
        "reported, share unknown",
        "not reported any more",
        "the other had it too",
        "what the other had is unknown",
        "what it had is unknown",
        "what a third one had is unknown",
        "given to both: another rule's",
        "given and revoked alike",
        "nothing moves",
        "alone",
        "alone, given and revoked alike",
    ],
)
def test_what_a_worker_reports_decides(workers: dict[str, W], expected: list[str]) -> None:
    assert said(REVOKE, trace(ALONE, Turn(60_000, workers))) == expected


def test_one_finding_names_all_work_that_moved_alike() -> None:
    events = trace(ALONE, Turn(1000, {"w1": W("A A0 A1", "A", "A0 A1"), "w2": W("", "A0 A1")}))
    assert only_broken(REVOKE, events).resources == ("task:A-0", "task:A-1")


def test_eager_workers_stop_before_they_join() -> None:
    assert said(REVOKE, handed_over(protocol="default", delay=None)) == []
    assert said(REVOKE, handed_over(protocol=None, delay=None)) == ["u"]
    assert said(REVOKE, handed_over(protocol=None)) == ["b"]
    assert said(REVOKE, handed_over(protocol=None, extra={"protocol_version": 0})) == []
    assert said(REVOKE, handed_over(protocol=None, delay=None, extra={"protocol_version": 1})) == ["b"]


def test_consumers_have_a_rule_of_their_own() -> None:
    events = [replace(e, resources=("orders-0",)) if isinstance(e, Synced) else e for e in handed_over(protocol="cooperative-sticky")]
    assert said(REVOKE, events) == []


def test_a_refused_assignment_moves_nothing() -> None:
    refused = {"w1": W("A A0 A1", None, error="REBALANCE_IN_PROGRESS"), "w2": W("", None, error="REBALANCE_IN_PROGRESS")}
    sent = Sync(group=GROUP, generation=2, member="w1", assignment={"w1": units("A A0"), "w2": units("A1")}, delay_ms=0)
    events = [*trace(ALONE, Turn(60_000, refused)), replace(sent, ts=START + 60_005_000)]
    assert said(REVOKE, events) == []


def test_a_worker_that_asked_to_join_and_did_not_stay_counts_for_nothing() -> None:
    events = trace(ALONE, Turn(60_000, {"w1": W("A A0", "A A0"), "w2": W("", "A1")}))
    asked = Join(group=GROUP, ts=START + 59_985_000, member="w3", client="w3", owned=units("A1"))
    assert said(REVOKE, [*events, asked]) == ["h"]


def own(kind: type[Event], member: str, generation: int, text: str, at: int) -> Event:
    return kind(group=GROUP, ts=START + at * 1000, member=member, generation=generation, resources=units(text), seen_by="member")


def believed(*more: Event) -> list[Event]:
    """Only their own logs show what the workers run: w1 took A1 in generation 1, w2 gets it in generation 2."""
    events = without(handed_over(), lambda e: isinstance(e, Join))
    events = [replace(e, revoked=()) if isinstance(e, Synced) else e for e in events]
    events += [own(Owned, "w1", 1, "A A0 A1", 100), own(Owned, "w2", 1, "", 100)]
    return [*events, *more, own(Owned, "w1", 2, "A A0", 60_100), own(Owned, "w2", 2, "A1", 60_100)]


def test_a_worker_s_own_log_shows_what_it_brings_along() -> None:
    assert said(REVOKE, believed())[-1:] == ["b"]
    assert said(REVOKE, believed(own(Lost, "w1", 1, "A A0 A1", 200)))[-1:] == ["h"]
    assert said(REVOKE, believed(Gap(group=GROUP, member="w1", generation=1, ts=START + 200_000, seen_by="member")))[-1:] == ["u"]


def test_a_worker_whose_log_ends_may_run_on() -> None:
    assert said(REVOKE, without(believed(), lambda e: e.observer == "member" and e.member == "w1" and e.generation == 2))[-1:] == ["u"]


def test_a_stored_report_counts() -> None:
    stored = {"w1": MemberInfo(owned=units("A A0 A1")), "w2": MemberInfo(owned=())}
    event = Assignment(group=GROUP, ts=START + 60_010_000, generation=2, members=stored)
    assert said(REVOKE, [*without(handed_over(), lambda e: isinstance(e, Join)), event])[-1] == "b"


def test_what_a_worker_was_given_before_does_not_show_that_it_still_runs() -> None:
    events = without(believed(), lambda e: e.observer == "member" and e.member == "w1")
    assert said(REVOKE, events)[-1:] == ["u"]
    assert "b" not in said(REVOKE, without(believed(), lambda e: e.observer == "member"))


# lost-work-withheld

PAIR = Turn(0, {"w1": W("", "A A0"), "w2": W("", "A1 A2")})
LEFT = Turn(60_000, {"w1": W("A A0")}, DELAY)


def given_at(at: int, delay: int = 0, first: Turn = PAIR, second: Turn = LEFT, **changes: object) -> list[Event]:
    """w2 is gone in generation 2; generation 3 gives A1 and A2 to the new w3, ``at`` milliseconds."""
    third = Turn(at, {"w1": W("A A0"), "w3": W("", "A1 A2")}, delay)
    return trace(first, second, replace(third, **changes))  # type: ignore[arg-type]


def test_departed_work_is_given_out_early() -> None:
    finding = only_broken(WITHHELD, given_at(180_000))
    assert finding.generation == 3
    assert finding.members == ("w3",)
    assert finding.resources == ("task:A-1", "task:A-2")
    assert "w2" in finding.message
    assert [step.evidence.text for step in finding.argument if step.evidence] == ["synced", "generation", "synced", "synced"]


@pytest.mark.parametrize(("at", "expected"), [(358_000, ["h", "b"]), (359_500, ["h", "h"]), (361_000, ["h", "h"])])
def test_the_announced_time_ends_the_wait(at: int, expected: list[str]) -> None:
    assert said(WITHHELD, given_at(at)) == expected


def test_a_larger_skew_is_granted() -> None:
    assert said(WITHHELD, given_at(350_000), Settings(clock_skew_ms=15_000)) == ["h", "h"]


def test_without_a_clock_only_the_delay_itself_tells() -> None:
    assert said(WITHHELD, unstamped(given_at(180_000))) == ["h", "u"]
    assert said(WITHHELD, unstamped(given_at(180_000, delay=180_000))) == ["h", "b"]


def test_work_is_given_in_the_generation_that_announces_the_delay() -> None:
    events = trace(PAIR, Turn(60_000, {"w1": W("A A0", "A A0 A1")}, DELAY))
    finding = only_broken(WITHHELD, events)
    assert finding.resources == ("task:A-1",)
    assert finding.detail == "under delay"
    assert [step.evidence.text for step in finding.argument if step.evidence] == ["synced", "generation", "synced", "synced"]


def test_the_earliest_announced_end_counts() -> None:
    shorter = Turn(180_000, {"w1": W("A A0")}, 100_000)
    late = Turn(300_000, {"w1": W("A A0", "A A0 A1 A2")})
    assert said(WITHHELD, trace(PAIR, LEFT, shorter, late)) == ["h", "h", "h"]


def test_a_new_leader_starts_anew() -> None:
    """Its own delay counts, and the work of those that left under it."""
    turns = [
        replace(PAIR, workers={**PAIR.workers, "w3": W("", "A3")}),
        Turn(60_000, {"w1": W("A A0"), "w3": W("A3")}, DELAY),
        Turn(300_000, {"w3": W("A3")}, DELAY),
        Turn(310_000, {"w3": W("A3"), "w4": W("", "B0")}, 290_000),
        Turn(320_000, {"w3": W("A3")}, 280_000),
        Turn(400_000, {"w3": W("A3", "A3 B0 A1")}),
    ]
    events = trace(*turns)
    assert said(WITHHELD, events) == ["h", "h", "b"]
    assert only_broken(WITHHELD, events).resources == ("task:B-0",)


def test_every_clock_must_agree_that_it_is_early() -> None:
    def by_w1(generation: int, at: int, delay: int) -> Event:
        return replace(own(Synced, "w1", generation, "A A0", at), delay_ms=delay)  # type: ignore[call-arg]

    assert said(WITHHELD, [*given_at(358_000), by_w1(2, 60_000, DELAY), by_w1(3, 358_000, 0)]) == ["h", "b"]
    assert said(WITHHELD, [*given_at(358_000), by_w1(2, 60_000, DELAY), by_w1(3, 361_000, 0)]) == ["h", "h"]


def test_a_slow_leader_decides_after_its_followers_ask() -> None:
    slow = [replace(e, ts=START + 361_000_000) if isinstance(e, Synced) and e.generation == 3 else e for e in given_at(355_000)]
    asked = Sync(group=GROUP, ts=START + 355_001_000, generation=3, member="w3")
    assert said(WITHHELD, [*slow, asked]) == ["h", "h"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"leader": "w3"}, ["h", "u"]),
        ({"workers": {"w1": W("A A0"), "w3": W("A1 A2", "A1 A2")}}, ["h"]),
        ({"workers": {"w1": W("A A0"), "w3": W(None, "A1 A2")}}, ["h", "u"]),
        ({"workers": {"w1": W(None, "A A0"), "w3": W("", "A1 A2")}}, ["h", "u"]),
        ({"workers": {"w1": W("A A0"), "w3": W("A1", "A1 A2")}}, ["h", "b"]),
        ({"workers": {"w1": W("A A0 B0", "A A0 B0"), "w3": W("", "A1 A2")}}, ["h", "u"]),
        ({"workers": {"w1": W("A A0", "A A0 B0"), "w3": W("", "")}}, ["h"]),
        ({"protocol": "default"}, ["h", "u"]),
        ({"delay": None}, ["h", "u"]),
        ({"extra": {"offset": 9}}, ["h", "b"]),
    ],
    ids=[
        "another leader",
        "back with its work",
        "perhaps back with its work",
        "perhaps run by another",
        "back with a part",
        "a revocation was not carried out",
        "new work",
        "eager now",
        "delay unknown",
        "an offset seen once",
    ],
)
def test_exceptions_to_withholding(changes: dict[str, object], expected: list[str]) -> None:
    assert said(WITHHELD, given_at(180_000, **changes)) == expected


def test_a_leader_that_missed_a_generation_knows_nothing() -> None:
    two = replace(LEFT, workers={"w1": W("A A0", error="REBALANCE_IN_PROGRESS"), "w4": W("")})
    sync = Sync(group=GROUP, ts=START + 60_001_000, generation=2, member="w1", assignment={"w1": units("A A0"), "w4": ()}, delay_ms=DELAY)
    missed = [*given_at(180_000, second=two), sync]
    assert said(WITHHELD, missed)[-1] == "u"
    unseen = without(missed, lambda e: isinstance(e, Synced) and e.generation == 2 and e.member == "w1")
    assert said(WITHHELD, unseen)[-1] == "u"
    assert said(WITHHELD, [*unseen, own(Owned, "w1", 2, "A A0", 60_100)])[-1] == "b"
    assert said(WITHHELD, given_at(180_000, second=replace(two, workers={"w1": W("A A0"), "w4": W("")})))[-1] == "b"


def test_a_leader_whose_configuration_lags_forgets() -> None:
    lagging = replace(LEFT, extra={"error": 1})
    assert said(WITHHELD, given_at(180_000, second=lagging))[-1] == "u"
    assert said(WITHHELD, given_at(180_000, second=replace(LEFT, extra={"error": 0})))[-1] == "b"


def test_evidence_that_is_missing_ends_the_judgement() -> None:
    events = given_at(180_000)
    gap = Gap(group=GROUP, ts=START + 100_000_000)
    assert said(WITHHELD, [*events, gap]) == ["h", "u"]
    assert said(WITHHELD, without(events, lambda e: e.generation == 2)) == []
    assert "b" not in said(WITHHELD, [replace(e, generation=4) if e.generation == 3 else e for e in events])
    unled = [replace(e, leader=None) if isinstance(e, GenerationStarted) and e.generation == 3 else e for e in events]
    assert outcomes(WITHHELD, unled)[-1] == Unknown("the leader was not captured")
    unled = [replace(e, leader=None) if isinstance(e, GenerationStarted) and e.generation == 1 else e for e in events]
    assert "b" not in said(WITHHELD, unled)


def test_nobody_departed() -> None:
    events = trace(PAIR, Turn(60_000, {"w1": W("A A0", "A A0 A1"), "w2": W("A2")}, DELAY))
    assert said(WITHHELD, events) == []


def test_who_departed_must_be_known() -> None:
    events = without(given_at(180_000), lambda e: isinstance(e, GenerationStarted))
    events += [
        Joined(group=GROUP, ts=e.ts, generation=e.generation, member=e.member, leader="w1", protocol="sessioned")
        for e in events
        if isinstance(e, Synced)
    ]
    assert "b" not in said(WITHHELD, events)
    assert said(WITHHELD, events)[0] == "u"
    leave = Leave(group=GROUP, ts=START + 50_000_000, generation=1, member="w2")
    assert said(WITHHELD, [*events, leave]) == ["h", "b"]
    expire = Expire(group=GROUP, ts=START + 50_000_000, generation=1, member="w2", reason="session")
    assert said(WITHHELD, [*events, expire]) == ["h", "b"]
    closed = Closed(group=GROUP, ts=START + 50_000_000, generation=1, member="w2")
    assert said(WITHHELD, [*events, closed]) == ["h", "b"]


def test_a_departure_seen_when_the_delay_is_over_waits_for_nothing() -> None:
    third = Turn(361_000, {"w1": W("A A0", "A A0 A1 A2 A3")})
    assert said(
        WITHHELD,
        trace(replace(PAIR, workers={**PAIR.workers, "w3": W("", "A3")}), replace(LEFT, workers={"w1": W("A A0"), "w3": W("A3")}), third),
    ) == [
        "h",
        "h",
    ]


def test_a_delay_of_zero_ends_the_wait() -> None:
    back = Turn(70_000, {"w1": W("A A0"), "w2b": W("A1 A2")})
    gone = Turn(80_000, {"w1": W("A A0", "A A0 A1 A2")})
    assert said(WITHHELD, trace(PAIR, LEFT, back, gone)) == ["h"]


WITH_CONNECTOR = replace(PAIR, workers={"w1": W("", "A A0"), "w2": W("", "B B0 A1")})


@pytest.mark.parametrize(
    ("given", "offsets", "delay", "expected"),
    [
        ("B B0", (None, None), 180_000, "u"),
        ("B B0", (7, 7), 180_000, "b"),
        ("B0", (None, 8), 180_000, "b"),
        ("B0", (7, None), 180_000, "b"),
        ("B B0", (7, 8), 180_000, "u"),
        ("B B0 A1", (None, None), 180_000, "b"),
        ("B0", (None, None), 180_000, "b"),
        ("B0", (7, 8), 180_000, "u"),
        ("A1", (None, None), 180_000, "b"),
        ("B B0", (None, None), 0, "u"),
    ],
)
def test_a_connector_created_anew_is_new_work(given: str, offsets: tuple[int | None, int | None], delay: int, expected: str) -> None:
    then, now = ({} if offset is None else {"offset": offset} for offset in offsets)
    second = replace(LEFT, extra=then)
    events = given_at(180_000, delay, WITH_CONNECTOR, second, extra=now, workers={"w1": W("A A0"), "w3": W("", given)})
    assert said(WITHHELD, events) == ["h", expected]


def test_a_departed_worker_s_connector_is_not_new_at_once() -> None:
    assert said(WITHHELD, trace(WITH_CONNECTOR, replace(LEFT, workers={"w1": W("A A0", "A A0 B B0")}))) == ["b"]


def test_with_nothing_left_to_wait_for_no_delay_would_be_on() -> None:
    first = replace(PAIR, workers={"w1": W("", "A A0"), "w2": W("", "B B0")})
    events = given_at(180_000, 180_000, first, workers={"w1": W("A A0"), "w3": W("", "B B0")})
    assert said(WITHHELD, events) == ["h", "b"]


def test_only_work_that_is_surely_old_is_named() -> None:
    first = replace(PAIR, workers={"w1": W("", "A A0"), "w2": W("", "B B0 A1 A2")})
    events = given_at(180_000, 180_000, first, workers={"w1": W("A A0"), "w3": W("", "B B0 A1")})
    assert only_broken(WITHHELD, events).resources == ("task:A-1",)


# delay-bounded


@pytest.mark.parametrize(
    ("delay", "other", "expected"),
    [
        (0, 0, ["h"]),
        (DELAY, DELAY, ["h"]),
        (DELAY + 1, DELAY + 1, ["b"]),
        (-1, -1, ["b"]),
        (DELAY, 0, ["b"]),
        (None, DELAY, ["h"]),
        (None, None, []),
    ],
)
def test_delays_of_a_generation(delay: int | None, other: int | None, expected: list[str]) -> None:
    events = trace(Turn(0, {"w1": W("", "A A0"), "w2": W("", "A1", delay=other)}, delay))
    assert said(BOUNDED, events) == expected


def test_each_way_to_be_out_of_bounds_says_so() -> None:
    def detail(first: int, second: int) -> list[str]:
        return [f.detail for f in broken(BOUNDED, trace(Turn(0, {"w1": W("", "A", delay=first), "w2": W("", "A1", delay=second)})))]

    assert detail(DELAY + 1, DELAY + 1) == ["limit"]
    assert detail(1, 2) == ["differs"]
    assert detail(-2, -2) == ["negative"]
    assert detail(-2, 5) == ["differs", "negative"]


def test_the_traces_own_limit_wins_wherever_it_stands() -> None:
    later = Turn(1000, {"w1": W("A", "A")}, 0, extra={"max_delay_ms": 600_000})
    assert said(BOUNDED, trace(Turn(0, {"w1": W("", "A")}, 600_000), later)) == ["h", "h"]
    lower = replace(later, extra={"max_delay_ms": 1000})
    finding = only_broken(BOUNDED, trace(Turn(0, {"w1": W("", "A")}, 1001), lower))
    assert finding.advice is None
    assert finding.argument[-1].evidence is not None
    higher = Turn(2000, {"w1": W("A", "A")}, 0, extra={"max_delay_ms": 2000})
    assert said(BOUNDED, trace(Turn(0, {"w1": W("", "A")}, 1001), lower, higher)) == ["h", "h", "h"]
    nonsense = replace(later, extra={"max_delay_ms": "600000"})
    assert said(BOUNDED, trace(Turn(0, {"w1": W("", "A")}, 600_000), nonsense)) == ["b", "h"]


def test_the_limit_may_be_set() -> None:
    events = trace(Turn(0, {"w1": W("", "A")}, 600_000))
    assert said(BOUNDED, events, Settings(max_delay_ms=600_000)) == ["h"]
    (finding,) = broken(BOUNDED, events)
    assert finding.advice
    assert "assumed" in finding.argument[-1].says


def test_the_leader_s_proposal_announces_too() -> None:
    events = trace(Turn(0, {"w1": W("", "A A0")}, 5))
    sync = Sync(group=GROUP, ts=START, generation=1, member="w1", assignment={"w1": units("A A0")}, delay_ms=6)
    assert [f.detail for f in broken(BOUNDED, [*events, sync])] == ["differs"]
    refused = replace(sync, assignment=None, delay_ms=None)
    assert said(BOUNDED, [*events, refused]) == ["h"]


def test_a_refused_worker_was_told_nothing() -> None:
    events = trace(Turn(0, {"w1": W("", "A"), "w2": W("", None, delay=7, error="UNKNOWN_MEMBER_ID")}))
    assert said(BOUNDED, events) == ["h"]


# delay-counts-down

THREE = Turn(0, {"w1": W("", "A A0"), "w2": W("", "A1"), "w3": W("", "A2")})
ONE_LEFT = Turn(60_000, {"w1": W("A A0"), "w3": W("A2")}, DELAY)


def second_departure(delay: int | None, at: int = 180_000, second: Turn = ONE_LEFT, **changes: object) -> list[Event]:
    return trace(THREE, second, replace(Turn(at, {"w1": W("A A0")}, delay), **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("delay", "expected"),
    [(180_000, ["h"]), (180_900, ["h"]), (181_500, ["b"]), (DELAY, ["b"]), (DELAY + 1, ["b"]), (10, ["h"]), (0, []), (None, [])],
)
def test_the_end_of_the_delay_stays(delay: int | None, expected: list[str]) -> None:
    assert said(COUNTS, second_departure(delay)) == expected


def test_the_finding_says_by_how_much() -> None:
    finding = only_broken(COUNTS, second_departure(DELAY))
    assert finding.members == ("w1",)
    assert "119990 ms" in finding.message
    assert (finding.severity, finding.relaxed) == (None, None)
    assert len([s for s in finding.argument if s.evidence]) == 2


def test_without_clocks_the_delay_must_not_grow() -> None:
    assert said(COUNTS, unstamped(second_departure(DELAY))) == ["h"]
    assert "later by 1 ms" in only_broken(COUNTS, unstamped(second_departure(DELAY + 1))).message


def test_every_clock_must_agree_that_the_end_moved() -> None:
    def by_w1(generation: int, at: int, delay: int) -> Event:
        return replace(own(Synced, "w1", generation, "A A0", at), delay_ms=delay)  # type: ignore[call-arg]

    assert said(COUNTS, [*second_departure(190_000), by_w1(2, 60_000, DELAY), by_w1(3, 180_000, 190_000)]) == ["b"]
    assert said(COUNTS, [*second_departure(190_000), by_w1(2, 60_000, DELAY), by_w1(3, 170_000, 190_000)]) == ["h"]


@pytest.mark.parametrize(
    "events",
    [
        second_departure(DELAY, workers={"w4": W(""), "w1": W("A A0")}),
        second_departure(DELAY, second=replace(ONE_LEFT, workers={"w1": W("A A0", error="REBALANCE_IN_PROGRESS"), "w3": W("A2")})),
        [*second_departure(DELAY), Gap(group=GROUP, ts=START + 100_000_000)],
        second_departure(DELAY, protocol="default"),
    ],
    ids=["another leader", "the leader missed a sync", "gap", "eager"],
)
def test_what_spoils_the_comparison(events: list[Event]) -> None:
    assert said(COUNTS, events) == ["u"]


def test_generations_must_follow_one_another() -> None:
    assert said(COUNTS, [replace(e, generation=4) if e.generation == 3 else e for e in second_departure(DELAY)]) == []
    assert said(COUNTS, [replace(e, epoch=1) if e.generation == 3 else e for e in second_departure(DELAY)]) == []


def test_a_worker_s_own_clock_counts_alone() -> None:
    """Only w1's log is there; its clock is a day ahead, which changes nothing."""

    def logged(delay: int, late: int, revoked: str = "") -> list[Event]:
        day = 86_400_000_000
        events: list[Event] = []
        for generation, (at, told) in enumerate(((60_000, DELAY), (180_000, delay)), 1):
            common = {"group": GROUP, "generation": generation, "member": "w1", "seen_by": "member"}
            events.append(Joined(ts=START + day + at * 1000, leader="w1", protocol="sessioned", **common))  # type: ignore[arg-type]
            events.append(
                Synced(ts=START + day + (at + late) * 1000, resources=units("A"), revoked=units(revoked), delay_ms=told, **common)
            )  # type: ignore[arg-type]
        return events

    assert said(COUNTS, logged(180_000, 0)) == ["h"]
    assert said(COUNTS, logged(190_000, 0)) == ["b"]
    assert said(COUNTS, logged(190_000, 0, "A1")) == ["h"], "what it stopped first may have taken that long"
    assert said(COUNTS, logged(180_000, 30_000)) == ["h"]


def test_early_releases_never_end_a_delay() -> None:
    assert [(f.severity, f.relaxed is not None) for f in broken(COUNTS, released(second_departure(DELAY), "2.3.1"))] == [("warning", True)]
    assert [(f.severity, f.relaxed) for f in broken(COUNTS, released(second_departure(DELAY), "2.4.0"))] == [(None, None)]


# returning-worker-restored

FIRST = Turn(0, {"w1": W("", "A A0"), "w2": W("", "A1 A2"), "w3": W("", "A3")})
GONE = Turn(60_000, {"w1": W("A A0"), "w3": W("A3")}, DELAY)
BACK = Turn(120_000, {"w1": W("A A0"), "w3": W("A3"), "w2b": W("")}, 240_000)


def ended(
    third: str, returned: str, at: int = 361_000, back: Turn = BACK, gone: Turn = GONE, first: Turn = FIRST, **changes: object
) -> list[Event]:
    """w2 left with A1 and A2 and is back as w2b; generation 4 ends the delay."""
    last = Turn(at, {"w1": W("A A0"), "w3": W("A3", f"A3 {third}"), "w2b": W("", returned)})
    return trace(first, gone, back, replace(last, **changes))  # type: ignore[arg-type]


def with_idle(third: str, returned: str, **changes: object) -> list[Event]:
    """The same, and w3 never ran anything."""
    first = replace(FIRST, workers={**FIRST.workers, "w3": W("")})
    gone, back = (replace(t, workers={**t.workers, "w3": W("")}) for t in (GONE, BACK))
    workers = {"w1": W("A A0"), "w3": W("", third), "w2b": W("", returned)}
    return ended("", "", back=back, gone=gone, first=first, **{"workers": workers, **changes})  # type: ignore[arg-type]


def test_the_returning_worker_goes_without() -> None:
    finding = only_broken(RESTORED, ended("A1", "A2"))
    assert finding.generation == 4
    assert finding.members == ("w2b", "w3")
    assert finding.resources == ("task:A-1",)
    assert finding.detail == "elsewhere"
    assert [s.evidence.text for s in finding.argument if s.evidence] == ["synced", "join", "synced"]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (ended("", "A1 A2"), ["h"]),
        (ended("A1 A2", ""), ["b"]),
        (ended("", "A1"), ["h"]),
        (ended("", ""), []),
        (ended("A1", "A2", leader="w3"), ["u"]),
        (ended("A1", "A2", at=200_000), []),
        (ended("A1", "A2", delay=100), []),
        (ended("A1", "A2", back=replace(BACK, workers={"w1": W("A A0"), "w3": W("A3")})), ["u"]),
        (ended("A1", "A2", back=replace(BACK, workers={"w1": W("A A0"), "w3": W("A3"), "w2b": W("", "B0")})), ["b"]),
        (ended("A1", "A2", back=replace(BACK, workers={"w1": W("A A0"), "w3": W(None, None), "w2b": W("")})), ["u"]),
        (with_idle("", "A1 A2"), ["b"]),
        (with_idle("A1 A2", ""), ["b"]),
        (with_idle("A1", "A2"), ["h"]),
        (with_idle("", "A1 A2", workers={"w1": W("A A0"), "w2b": W("", "A1 A2")}), ["h"]),
        (ended("A1", "A2", workers={"w1": W("A A0", "A A0 A1 A2"), "w3": W("A3")}), []),
        (ended("A1", "A2", workers={"w1": W("A A0"), "w3": W("A3"), "w2b": W("A1 A2")}), ["h"]),
        (ended("", "A2", workers={"w1": W("A A0"), "w3": W("A3"), "w2b": W("", "A2", "A1")}), ["h"]),
        (ended("A1", "A2", workers={"w1": W("A A0"), "w3": W(None, "A3 A1"), "w2b": W("", "A2")}), ["u"]),
    ],
    ids=[
        "it gets everything",
        "others get everything",
        "the rest is deleted",
        "nothing is given",
        "another leader",
        "early: another rule's",
        "not over yet",
        "back too late",
        "it got new work meanwhile",
        "who was without work is unknown",
        "a second candidate gets nothing",
        "the second candidate gets everything",
        "two candidates share",
        "the other candidate is gone",
        "it left again",
        "it kept its work",
        "part is revoked again at once",
        "a report is missing",
    ],
)
def test_who_gets_departed_work(events: list[Event], expected: list[str]) -> None:
    assert said(RESTORED, events) == expected


def test_a_delay_that_began_unseen_may_have_other_candidates() -> None:
    events = ended("A1", "A2", gone=replace(GONE, workers={"w1": W("A A0"), "w3": W("A3")}), first=replace(FIRST, delay=10))
    assert said(RESTORED, events) == ["u"]


def test_a_back_off_delay_may_leave_idle_workers_out() -> None:
    """w4 was idle when the delay began, with nothing lost yet: whether the leader counts it can't be seen."""

    def with_fourth(turn: Turn, worker: W, **changes: object) -> Turn:
        return replace(turn, workers={**turn.workers, "w4": worker}, **changes)  # type: ignore[arg-type]

    steady = {"w1": W("A A0"), "w2": W("A1 A2"), "w3": W("A3")}
    turns = [
        FIRST,
        with_fourth(Turn(1000, steady, 60_000), W("", "B0")),
        with_fourth(replace(GONE, at=2000), W("B0"), delay=59_000),
        with_fourth(replace(BACK, at=3000), W("B0"), delay=58_000),
        Turn(62_000, {"w1": W("A A0"), "w3": W("A3"), "w2b": W("", "A2"), "w4": W("B0", "A1 B0")}),
    ]
    assert said(RESTORED, trace(*turns)) == ["u"]
    busy = replace(turns[1], workers={**steady, "w4": W("B0")})
    assert said(RESTORED, trace(with_fourth(FIRST, W("", "B0")), busy, *turns[2:])) == ["b"]


def test_clients_tell_who_is_back() -> None:
    events = ended("A1", "A2")
    anonymous = [replace(e, client=None) for e in events]
    assert said(RESTORED, anonymous) == ["u"]
    other = [replace(e, client="w9") if e.member == "w2b" else e for e in events]
    assert said(RESTORED, other) == []
    for hidden in ("w2", "w2b"):
        assert said(RESTORED, [replace(e, client=None) if e.member == hidden else e for e in events]) == ["u"]
    kept = ended("", "", workers={"w1": W("A A0"), "w3": W("A3"), "w9": W("A1 A2")})
    assert said(RESTORED, kept) == []


def test_old_releases_give_everything_to_the_first_worker_without_work() -> None:
    assert only_broken(RESTORED, with_idle("", "A1 A2")).detail == "uneven"
    for version, severity in (("2.6.1", "warning"), ("2.6.2", None), ("2.7.0", "warning"), ("2.7.1", None)):
        assert only_broken(RESTORED, released(with_idle("", "A1 A2"), version)).severity == severity
    assert only_broken(RESTORED, released(ended("A1", "A2"), "2.6.1")).severity is None


def test_uneven_shares_need_the_whole_picture() -> None:
    dealt = {"w1": W("A A0"), "w3": W("", "C0"), "w2b": W("", "A1 A2")}
    assert said(RESTORED, with_idle("", "", workers=dealt)) == ["u"]
    unseen = {"w1": W("A A0"), "w3": W("", error="REBALANCE_IN_PROGRESS"), "w2b": W("", "A1 A2")}
    assert said(RESTORED, with_idle("", "", workers=unseen)) == ["u"]


def test_a_connector_created_anew_goes_anywhere() -> None:
    first = replace(FIRST, workers={"w1": W("", "A A0"), "w2": W("", "A1 B"), "w3": W("", "A3")})
    assert said(RESTORED, ended("B", "A1", first=first)) == ["u"]
    assert said(RESTORED, ended("B A1", "", first=first)) == ["b"]
    all_of_it = replace(FIRST, workers={"w1": W("", "A A0"), "w2": W("", "B B0"), "w3": W("", "A3")})
    assert said(RESTORED, ended("B B0", "", first=all_of_it)) == ["b"]


# connect-balanced

FIVE = "A A0 A1 A2 A3 A4"


def scaled_out(keep: str, moved: str, at: int = 61_000, **changes: object) -> list[Event]:
    """w2 joins w1, gets what w1 was told to stop; the third generation has settled."""
    return trace(
        Turn(0, {"w1": W("", FIVE)}),
        Turn(60_000, {"w1": W(FIVE, keep, moved), "w2": W("")}),
        replace(Turn(at, {"w1": W(keep), "w2": W("", moved)}), **changes),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (scaled_out("A A0 A1 A2", "A3 A4"), ["h"]),
        (scaled_out("A A0 A1 A2 A3", "A4"), ["b"]),
        (scaled_out("A A0", "A1 A2 A3 A4"), ["b"]),
        (scaled_out("A A0 A1 A2 A3", "A4", delay=40), []),
        (scaled_out("A A0 A1 A2 A3", "A4", delay=None), ["u"]),
        (scaled_out("A A0 A1 A2 A3", "A4", workers={"w1": W("A A0 A1 A2 A3", "A A0 A1 A2", "A3"), "w2": W("")}), []),
        (scaled_out("A A0 A1 A2 A3", "A4", workers={"w1": W("A A0 A1 A2 A3", None, None), "w2": W("", "A4", None)}), ["u"]),
        (scaled_out("A A0 A1 A2 A3", "A4", workers={"w1": W("A A0 A1 A2 A3"), "w2": W("", None)}), ["b"]),
        (scaled_out("A A0 A1 A2 A3", "A4", workers={"w1": W("A A0 A1 A2 A3"), "w2": W(None, None)}), ["u"]),
        (scaled_out("A A0 A1 A2 A3", "A4", workers={"w1": W("A A0 A1 A2 A3"), "w2": W("", "A4", None)}), ["u"]),
        (scaled_out("A A0 A1 A2 A3", "A4", leader="w2"), ["u"]),
        (scaled_out("A A0 A1 A2", "A3 A4", leader="w2"), ["h"]),
        (scaled_out("A A0 A1 A2 A3", "A4", workers={"w1": W("A A0 A1 A2 A3"), "w2": W("", None, error="CONFIG_MISMATCH")}), ["u"]),
        (scaled_out("A A0 A1 A2 A3", "A4", extra={"error": 1}), ["u"]),
        (scaled_out("A A0 A1 A2 A3", "A4", protocol=None, leader="w2", extra={"protocol_version": 0}), ["b"]),
        (scaled_out("A A0 A1 A2 A3", "A4", workers={"w1": W("A A0 A1 A2 A3")}), []),
        (scaled_out("A A0 A1 A2 A3", "A4", workers={"w1": W("A A0 A1 A2 A3"), "w2": W("B0 B1", "B0 B1")}), ["u"]),
        (scaled_out("A A0 A1 A2 A3", "A4", workers={"w1": W("A A0 A1 A2 A3"), "w2": W(""), "w3": W(None, "")}), ["u"]),
        (scaled_out("A A0 A1 A2 A3", "A4", workers={"w1": W(None, "A A0 A1 A2 A3"), "w2": W("", "A4")}), ["b"]),
        (scaled_out("A A0 A1 A2 A3", "A4", protocol="default", leader="w2", delay=None), ["b"]),
        (scaled_out("A A0 A1 A2", "A3 A4", protocol="default", leader="w2", delay=None), ["h"]),
    ],
    ids=[
        "three and two",
        "four and one",
        "the new one has more",
        "a delay is on",
        "delay unknown",
        "something was revoked",
        "revocations unknown",
        "nothing for the new one",
        "a share is unknown",
        "one worker's revocations unknown",
        "a new leader",
        "a new leader, balanced",
        "a worker was refused",
        "the leader's configuration lags",
        "eager by its version",
        "one worker",
        "work of a deleted connector",
        "a new worker's report unknown",
        "an old worker's report unknown",
        "eager, unbalanced",
        "eager, balanced",
    ],
)
def test_settled_shares(events: list[Event], expected: list[str]) -> None:
    assert said(BALANCED, events) == expected


@pytest.mark.parametrize(
    ("revoked", "error", "expected"),
    [("", "NONE", ["b"]), ("A5", "NONE", []), ("", "CONFIG_MISMATCH", ["u"])],
    ids=["settled", "revoked", "refused"],
)
def test_the_leader_s_proposal_shows_what_is_not_settled(revoked: str, error: str, expected: list[str]) -> None:
    keep = "A A0 A1 A2 A3"
    events = scaled_out(keep, "A4", workers={"w1": W(keep), "w2": W("", "A4", None, error=error)})
    shares = {"w1": units(keep), "w2": units("A4")}
    told = {"w1": (), "w2": units(revoked)}
    sync = Sync(group=GROUP, ts=START + 61_001_000, generation=3, member="w1", assignment=shares, revoked=told, delay_ms=0)
    assert said(BALANCED, [*events, sync]) == expected


def test_the_finding_names_who_has_most_and_least() -> None:
    finding = only_broken(BALANCED, scaled_out("A A0 A1 A2 A3", "A4"))
    assert finding.generation == 3
    assert finding.members == ("w1", "w2")
    assert "w1 with 4 tasks, w2 with 1 tasks" in finding.message
    assert finding.detail == "task"


def test_connectors_and_tasks_are_levelled_separately() -> None:
    def settled(first: str, second: str) -> list[str]:
        begin = Turn(0, {"w1": W("", "A"), "w2": W("", "B")})
        return [f.detail for f in broken(BALANCED, trace(begin, Turn(60_000, {"w1": W("", first), "w2": W("", second)})))]

    assert settled("A B A0", "A1 A2") == ["connector"]
    assert settled("A B", "A0 A1") == ["connector task"]
    assert settled("A A0 A1", "B0") == []


@pytest.mark.parametrize(("pause", "expected"), [(9_000, ["u", "h"]), (11_000, ["b", "h"])])
def test_a_generation_on_the_way_is_not_settled(pause: int, expected: list[str]) -> None:
    before = scaled_out("A A0 A1 A2 A3", "A4")
    after = Turn(61_010 + pause, {"w1": W("A A0 A1"), "w2": W("A3 A4")})
    events = [*before, *(replace(e, generation=4) for e in trace(after) if not isinstance(e, Join))]
    assert said(BALANCED, events) == expected
    assert said(BALANCED, unstamped(events)) == ["u", "h"]


def test_the_first_generation_seen_may_have_a_new_leader() -> None:
    assert said(BALANCED, trace(Turn(0, {"w1": W("A0 A1"), "w2": W("")}))) == ["u"]


@pytest.mark.parametrize(
    ("version", "severity"),
    [
        ("2.2.9", None),
        ("2.3.0", "warning"),
        ("3.3.2", "warning"),
        ("3.4.0", None),
        ("7.3.1-ccs", "warning"),
        ("7.4.0-ccs", None),
        ("dev", None),
    ],
)
def test_releases_before_3_4_may_stay_unbalanced(version: str, severity: str | None) -> None:
    finding = only_broken(BALANCED, released(scaled_out("A A0 A1 A2 A3", "A4"), version))
    assert finding.severity == severity
    assert (finding.relaxed is None) == (severity is None)


def test_the_oldest_release_of_a_mixed_cluster_counts() -> None:
    events = scaled_out("A A0 A1 A2 A3", "A4")
    mixed = [replace(e, extra={"release": "3.9.0" if e.member == "w1" else "2.8.0"}) if isinstance(e, Synced) else e for e in events]
    assert only_broken(BALANCED, mixed).severity == "warning"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.4", (3, 4, 0)),
        ("2.7.1", (2, 7, 1)),
        ("5.4.0-ccs", (2, 4, 0)),
        ("6.0.1-ce", (2, 6, 1)),
        ("7.7.1-ccs", (3, 7, 1)),
        ("8.1.0", (4, 1, 0)),
        ("9.0", None),
        ("unknown", None),
    ],
)
def test_versions_are_read(version: str, expected: tuple[int, int, int] | None) -> None:
    assert release(version) == expected


# All of them


def test_the_leader_s_proposal_shows_what_was_given_and_revoked() -> None:
    """Where no response was captured, the leader's SyncGroup request says the same."""

    def proposed(events: Iterable[Event]) -> list[Event]:
        kept = list(events)
        for started in [e for e in kept if isinstance(e, GenerationStarted)]:
            told = [e for e in kept if isinstance(e, Synced) and e.generation == started.generation]
            sync = Sync(
                group=GROUP,
                ts=told[0].ts,
                generation=started.generation,
                member=started.leader,
                assignment={e.member or "": e.resources or () for e in told},
                revoked={e.member or "": e.revoked or () for e in told},
                delay_ms=told[0].delay_ms,
            )
            kept = [e for e in kept if e not in told or e.member == started.leader]
            kept.append(replace(sync, src=Source("t", 0, "sync")))
        return kept

    assert [f.members for f in broken(REVOKE, proposed(handed_over()))] == [("w1", "w2")]
    assert said(WITHHELD, proposed(given_at(180_000))) == ["h", "b"]
    assert said(BALANCED, proposed(scaled_out("A A0 A1 A2 A3", "A4"))) == ["b"]
    assert said(BALANCED, proposed(scaled_out("A A0 A1 A2", "A3 A4"))) == ["h"]
    assert said(RESTORED, proposed(ended("A1", "A2"))) == ["b"]


@pytest.mark.parametrize("rule", BY_ID)
def test_nothing_is_said_of_consumer_groups(rule: str) -> None:
    def consumed(resources: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if resources is None else tuple(r.replace("task:", "").replace("connector:", "c-") for r in resources)

    for events in (handed_over(), given_at(180_000), second_departure(DELAY), ended("A1", "A2"), scaled_out("A A0 A1 A2 A3", "A4")):
        plain: list[Event] = []
        for e in events:
            e = replace(e, resources=consumed(e.resources))
            if isinstance(e, Join):
                e = replace(e, owned=consumed(e.owned))
            if isinstance(e, GenerationStarted):
                e = replace(e, protocol="cooperative-sticky")
            plain.append(e)
        assert said(rule, plain) == []


def test_belief_of_a_worker_with_own_log_stands_in_for_its_report() -> None:
    """A worker seen applying each generation brings along what it holds: that it was idle shows as well."""
    events = [replace(e, owned=None) if isinstance(e, Join) else e for e in given_at(180_000)]
    assert said(WITHHELD, events)[-1] == "u"
    held = [
        own(Assigned, "w1", 1, "A A0", 50),
        own(Owned, "w1", 2, "A A0", 60_100),
        own(Owned, "w1", 3, "A A0", 180_100),
    ]
    joined = [e for e in given_at(180_000) if isinstance(e, Join) and e.member == "w3"]
    events = without(events, lambda e: isinstance(e, Join) and e.member == "w3")
    assert said(WITHHELD, [*events, *held, *joined]) == ["h", "b"]
