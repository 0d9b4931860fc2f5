"""What the readers take from client logs, against what the rebalance listeners inside those clients were told."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kipcheck.conformance.readers.files import read
from kipcheck.spec.events import Assigned, Lost, Revoked

TRACES = Path(__file__).parents[2] / "traces"
CALLBACKS = {path.parent: json.loads(path.read_text())["callbacks"] for path in sorted(TRACES.glob("kafka-*/*/recording.json"))}
CLIENTS = [(trace, client) for trace, callbacks in CALLBACKS.items() for client in callbacks]


class Change(NamedTuple):
    """A callback that moved something: its kind, what it moved, and everything that the application owned after it."""

    kind: str
    moved: frozenset[str]
    owned: frozenset[str]


def told(trace: Path, client: str) -> Iterator[Change]:
    for callback in CALLBACKS[trace][client]:
        if callback["partitions"]:
            yield Change(callback["event"], frozenset(callback["partitions"]), frozenset(callback["owned"]))


def extracted(trace: Path, client: str) -> Iterator[Change]:
    owned: defaultdict[str | None, frozenset[str]] = defaultdict(frozenset)
    for reading in read([str(trace / f"client-{client}.log.gz")]):
        for event in reading.events:
            if isinstance(event, Assigned | Revoked | Lost) and event.resources:
                assert event.client == client
                moved = frozenset(event.resources)
                before = owned[event.member]
                owned[event.member] = before | moved if isinstance(event, Assigned) else before - moved
                yield Change(event.kind, moved, owned[event.member])


@pytest.mark.parametrize(
    ("trace", "client"), CLIENTS, ids=lambda each: each if isinstance(each, str) else f"{each.parent.name}/{each.name}"
)
def test_the_log_of_a_client_tells_what_its_application_was_told(trace: Path, client: str) -> None:
    assert list(extracted(trace, client)) == list(told(trace, client))


def test_the_recorded_callbacks_move_partitions_in_every_way() -> None:
    changes = [change for trace, client in CLIENTS for change in told(trace, client)]
    assert {change.kind for change in changes} == {"assigned", "revoked", "lost"}
    assert {trace for trace, _ in CLIENTS} == {trace for trace in CALLBACKS if not trace.name.startswith("connect-")}
