"""The leader of a Connect cluster: recorded decisions of Kafka's own assignor, and the promises that any decision keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kipcheck.model.connect.java_order import hash_order, string_hash
from kipcheck.model.connect.leader import Header, Leader, Policy, Release, assign, assign_eagerly, backoff_ms, refuse
from kipcheck.model.connect.units import in_order, on_the_wire
from kipcheck.model.messages import Metadata

GOLDEN = Path(__file__).parent / "data" / "connect-golden"


@dataclass(frozen=True)
class Golden:
    release: Release
    recorded: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.release}-{self.recorded['scenario']}"


def golden() -> list[Golden]:
    releases: tuple[Release, ...] = ("K4", "K6")
    return [Golden(r, json.loads(line)) for r in releases for line in (GOLDEN / f"{r}.jsonl").read_text().splitlines()]


def resources(names: list[str]) -> tuple[str, ...]:
    """``A-0`` is a task, ``A`` a connector."""
    return tuple(f"{'task' if '-' in name else 'connector'}:{name}" for name in names)


@pytest.mark.parametrize("case", golden(), ids=str)
def test_decides_as_kafka_did(case: Golden) -> None:
    policy = Policy(release=case.release, max_delay_ms=case.recorded["max_delay_ms"])
    memory: dict[str, Leader] = {}
    for now in case.recorded["rounds"]:
        if "mismatch" in now:
            continue
        leader = now["leader"]
        memory[leader], shares = assign(
            memory.get(leader, Leader()),
            [(member, Metadata(owned=on_the_wire(resources(owned)))) for member, owned in now["reported"].items()],
            tuple(now["config"].items()),
            generation=now["generation"],
            completed=now["completed"],
            now=now["at"],
            header=Header(leader, 1),
            policy=policy,
        )
        given = dict(shares)
        assert {m: s.started for m, s in given.items() if s.started} == {m: resources(u) for m, u in now["started"].items()}, now["why"]
        assert {m: s.revoked for m, s in given.items() if s.revoked} == {m: resources(u) for m, u in now["revoked"].items()}, now["why"]
        assert {s.delay_ms for s in given.values()} == {now["delay_ms"]}, now["why"]
        for member in now["running"]:
            if member not in now.get("unsynced", ()):
                assert set(given[member].resources) == set(resources(now["running"][member])), now["why"]
        then = memory[leader]
        expected = now["memory"]
        assert then.previous == set(resources(expected["previous"])), now["why"]
        assert (then.deadline, list(then.candidates), then.leveled) == (expected["deadline"], expected["candidates"], expected["leveled"])
        assert then.in_a_row == expected.get("in_a_row", 0)


@pytest.mark.parametrize(
    ("max_delay_ms", "waits"),
    [
        (300_000, [40, 1_600, 64_000, 300_000, 300_000]),
        (60_000, [40, 1_600, 60_000]),
        (1_000, [40, 999, 999]),
        (40, [40, 40]),
        (1, [1, 1]),
        (0, [0, 0]),
    ],
)
def test_backs_off_as_kafka_did(max_delay_ms: int, waits: list[int]) -> None:
    assert [backoff_ms(times, max_delay_ms) for times in range(1, len(waits) + 1)] == waits


def test_eager_deals_connectors_and_then_tasks_in_turn() -> None:
    shares = dict(assign_eagerly([("b", Metadata()), ("a", Metadata())], (("A", 2), ("B", 1)), Header("b", 1)))
    assert shares["a"].resources == resources(["A", "A-0", "B-0"])
    assert shares["b"].resources == resources(["B", "A-1"])
    assert shares["a"].delay_ms is None


def test_a_leader_behind_the_others_changes_nothing() -> None:
    ((_, share),) = refuse([("a", Metadata(owned=resources(["A", "A-0"])))], Header("a", 7))
    assert (share.resources, share.started, share.revoked, share.delay_ms) == (resources(["A", "A-0"]), (), (), 0)
    assert share.user_data == Header("a", 7, failed=True)


def test_tasks_travel_by_connector() -> None:
    assert on_the_wire(resources(["B", "A-0", "A-2", "B-0", "B-2"])) == resources(["B", "B-0", "B-2", "A-0", "A-2"])
    assert in_order(resources(["B-0", "A-10", "A-2", "B", "A"])) == list(resources(["A", "B", "A-2", "A-10", "B-0"]))


def test_java_hash_order() -> None:
    assert [string_hash(text) for text in ("", "A", "hello", "polygenelubricants")] == [0, 65, 99162322, 0x80000000]
    assert hash_order(["W1", "W2", "W3", "W2b"]) == ("W2b", "W1", "W2", "W3")
