"""Which generation 5 is the same generation 5: captures are joined by evidence, and kept apart without it."""

from __future__ import annotations

from kipcheck.conformance.assemble import Capture, assemble, log_name
from kipcheck.spec import Verdict, check
from kipcheck.spec.events import Assigned, Assignment, Event, GenerationStarted, Joined, Load, Synced

SECOND = 1_000_000


def client(member: str, generation: int, at: int, owns: tuple[str, ...], *, named: str | None = None) -> list[Event]:
    """What a member's log shows of one generation; ``at`` is in seconds."""
    id_ = named or member
    seen = {"group": "orders", "generation": generation, "member": id_, "client": member, "seen_by": "member"}
    return [
        Joined(**seen, ts=at * SECOND, protocol="range"),  # pyright: ignore[reportArgumentType]
        Synced(**seen, ts=at * SECOND + 10, resources=owns),  # pyright: ignore[reportArgumentType]
        Assigned(group="orders", generation=generation, member=id_, client=member, ts=at * SECOND + 20, resources=owns),
    ]


def capture(path: str, *events: list[Event]) -> Capture:
    return Capture(path, [e for several in events for e in several], native=False)


def epochs(events: list[Event], member: str) -> set[int]:
    return {e.epoch for e in events if e.member == member}


def test_members_that_joined_at_one_moment_share_the_generation() -> None:
    events = assemble([capture("a.log", client("c1", 5, 100, ("t-0",))), capture("b.log", client("c2", 5, 102, ("t-0",)))])
    assert epochs(events, "c1") == epochs(events, "c2")
    (group,) = check(events)
    assert "exclusive-assignment" in {f.rule for f in group.findings}


def test_the_same_number_days_apart_is_another_generation() -> None:
    events = assemble([capture("a.log", client("c1", 5, 100, ("t-0",))), capture("b.log", client("c2", 5, 90_000, ("t-0",)))])
    assert epochs(events, "c1") != epochs(events, "c2")
    (group,) = check(events)
    assert group.verdict is not Verdict.VIOLATES


def test_a_restarted_process_is_not_its_own_rival() -> None:
    events = assemble([capture("a.log", client("c1", 1, 100, ("t-0",), named="c1-x"), client("c1", 1, 130, ("t-0",), named="c1-y"))])
    assert epochs(events, "c1-x") != epochs(events, "c1-y")
    (group,) = check(events)
    assert group.verdict is not Verdict.VIOLATES


def test_a_shared_member_id_connects_files_whose_clocks_are_hours_apart() -> None:
    listed = Assignment(group="orders", generation=5, ts=50_000 * SECOND, assignment={"c1": ("t-0",), "c2": ("t-1",)}, members={})
    events = assemble(
        [
            capture("a.log", client("c1", 5, 100, ("t-0",))),
            capture("b.log", client("c2", 5, 70_000, ("t-1",))),
            capture("offsets.json", [listed]),
        ]
    )
    assert {e.epoch for e in events} == {0}


def test_a_reload_begins_an_epoch_and_a_rotation_does_not() -> None:
    def started(generation: int, at: int, epoch: int = 0) -> Event:
        return GenerationStarted(group="orders", generation=generation, ts=at * SECOND, epoch=epoch)

    rotated = [capture("server.log.2026-01-01-10", [started(1, 10)]), capture("server.log", [started(2, 20)])]
    assert {e.epoch for e in assemble(rotated)} == {0}
    reloaded = [
        capture("server.log", [started(1, 10), Load(group="orders", generation=1, ts=15 * SECOND, epoch=1), started(2, 20, epoch=1)])
    ]
    assert [e.epoch for e in assemble(reloaded)] == [0, 1, 1]


def test_a_falling_generation_of_one_coordinator_stays_for_the_rule_to_judge() -> None:
    fall = [GenerationStarted(group="orders", generation=g, ts=t * SECOND, members=("c1",)) for t, g in enumerate((7, 8, 3))]
    (group,) = check(assemble([capture("server.log", list(fall))]))
    assert {f.rule for f in group.findings} == {"generation-increases"}


def test_native_traces_keep_their_epochs() -> None:
    event = GenerationStarted(group="orders", generation=1, epoch=7)
    assert assemble([Capture("t.jsonl", [event], native=True)]) == [event]


def test_rotations_belong_to_one_log() -> None:
    names = (
        "server.log",
        "server.log.1",
        "server.log.2.gz",
        "server.log.2026-05-06-15",
        "server.log.2026-05-06.zst",
        "server.log-20260506",
    )
    assert {log_name(name) for name in names} == {"server.log"}
    assert log_name("worker-2.log") == "worker-2.log"
