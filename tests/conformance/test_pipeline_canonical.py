"""Canonical columns hold events without loss, whatever is in them, and nonsense in them is refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.pipeline import canonical
from kipcheck.conformance.readers import columns
from kipcheck.conformance.readers.files import read
from kipcheck.spec.events import Assignment, Commit, Event, Gap, Heartbeat, Join, MemberInfo, Source, Sync, Synced
from kipcheck.spec.trace import MalformedEvent

from ..strategies import JSON, TEXT
from ..strategies import events as any_event

TRACES = Path(__file__).parents[2] / "traces"
EXTRA = st.dictionaries(TEXT.filter(lambda name: name != "kind"), JSON, max_size=3)


def table(events: Iterable[Event]) -> Any:
    return pa.Table.from_batches(canonical.Placer(0).batches(events), canonical.schema())


def row(**values: object) -> Any:
    """One canonical row with nothing in it but ``values``."""
    schema = canonical.schema()
    return pa.table({name: pa.array([value], schema.field(name).type) for name, value in values.items()})


def everything(event: Event) -> dict[str, object]:
    """All fields, those too that don't count when events are compared; lists for tuples within ``extra``."""
    shown = {f.name: getattr(event, f.name) for f in fields(event)} | {"kind": event.kind, "extra": listed(event.extra)}
    infos = event.members if isinstance(event, Assignment) else None
    return shown | {"infos": infos and {member: listed(info.extra) for member, info in infos.items()}}


def listed(value: object) -> object:
    if isinstance(value, tuple | list):
        return [listed(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return {name: listed(item) for name, item in value.items()} if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType]


def assert_kept(events: Sequence[Event]) -> None:
    assert list(map(everything, canonical.events(table(events)))) == list(map(everything, events))


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.lists(st.tuples(any_event(), EXTRA), max_size=8))
def test_any_event_comes_back(several: list[tuple[Event, dict[str, object]]]) -> None:
    assert_kept([replace(event, extra=extra) for event, extra in several])


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.dictionaries(TEXT, st.builds(MemberInfo, instance=st.none() | TEXT, extra=EXTRA), max_size=3))
def test_what_else_a_member_says_comes_back(members: dict[str, MemberInfo]) -> None:
    assert_kept([Assignment(group="g", members=members)])


def test_every_recorded_event_comes_back() -> None:
    events = [event for reading in read([str(TRACES)]) for event in reading.events]
    assert len(events) > 10_000
    assert_kept(events)


def test_slices_and_dictionaries_come_back() -> None:
    events = [Sync(group="g", assignment={f"m{n}": (f"t-{n}", "t-0"), "m": ()}, src=Source("f", n)) for n in range(9)]
    events += [Synced(group="g", member="m", resources=None if n % 2 else (f"t-{n}",), revoked=("t-1",)) for n in range(9)]
    rows = table(events)
    coded = rows.set_column(rows.schema.get_field_index("member"), "member", rows.column("member").dictionary_encode())
    assert canonical.events(coded.slice(3, 10)) == events[3:13]
    assert canonical.events(pa.concat_tables([coded.slice(12), coded.slice(0, 2)])) == [*events[12:], *events[:2]]
    assert canonical.events(rows.to_batches()[0].slice(8, 3)) == events[8:11]
    assert canonical.events(rows.slice(0, 0)) == []


def test_columns_may_be_missing() -> None:
    assert canonical.events(row(kind="heartbeat", group="g")) == [Heartbeat(group="g")]


def test_times_say_for_how_many_requests_an_event_stands() -> None:
    events = [Commit(group="g", ts=n, resources=("t-0",)) for n in (1, 2)]
    (first, last) = canonical.events(table(events).append_column("times", pa.array([1, 7], pa.int32())))
    assert [first, last] == events
    assert [first.times, last.times] == [1, 7]


def test_equal_values_are_one_object() -> None:
    one, other = canonical.events(table(Join(group="g", subscribed=("t", "u"), extra={"release": "4.0"}) for _ in range(2)))
    assert one.group is other.group
    assert isinstance(one, Join)
    assert isinstance(other, Join)
    assert one.subscribed is other.subscribed
    assert one.extra is other.extra


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (row(group="g"), "kind"),
        (row(kind="heartbeet", group="g"), "kind: expected one of join"),
        (row(kind="heartbeat"), "group"),
        (row(kind="heartbeat", group=""), "group"),
        (row(kind="heartbeat", group="g", seen_by="nobody"), "seen_by"),
        (row(kind="heartbeat", group="g", extra="[]"), "extra"),
        (row(kind="heartbeat", group="g", extra="{"), "extra"),
        (row(kind="heartbeat", group="g", extra="[" * 100_000), "extra"),
        (row(kind="heartbeat", group="g", src={"file": None, "line": 1, "text": ""}), "src"),
        (row(kind="heartbeat", group="g", src={"file": "f", "line": -1, "text": ""}), "src"),
        (row(kind="commit", group="g", resources=["t-0", None]), "resources"),
        (row(kind="sync", group="g", assignment={"m": None}), "assignment"),
        (pa.table({"kind": ["heartbeat"], "group": ["g"], "ts": pa.array([1 << 62], pa.timestamp("us", "UTC"))}), "ts"),
        (pa.table({"kind": ["heartbeat"], "group": [["g"]]}), "group: expected string"),
        (pa.table({"kind": ["heartbeat"], "group": ["g"], "epoch": ["one"]}), "epoch: expected int64"),
        (pa.table({"kind": ["heartbeat"], "group": pa.array([b"\xff"]).view(pa.string())}), "group: not text"),
    ],
)
def test_a_row_that_no_reader_wrote_is_refused(rows: Any, why: str) -> None:
    with pytest.raises(MalformedEvent, match=why):
        canonical.events(rows)


def test_an_unknown_default_is_the_default() -> None:
    (event,) = canonical.events(row(kind="synced", group="g", cluster=None, epoch=None, error=None, members=["m"]))
    assert event == Synced(group="g")


def test_places() -> None:
    events = [Heartbeat(group="g", ts=5), Gap(group="h"), Join(group="g"), Heartbeat(group="g"), Commit(group="g", ts=9, error="X")]
    placed = table(events).select(["input", "pos", "at", "stretch", "steady"]).to_pylist()
    assert [tuple(place.values()) for place in placed] == [
        (0, 0, 5, 0, True),
        (0, 1, None, 0, False),
        (0, 2, 5, 0, False),
        (0, 3, 5, 1, True),
        (0, 4, 9, 1, False),
    ]


def test_a_batch_may_lack_columns_that_its_schema_has() -> None:
    wider = columns.schema().append(pa.field("account", pa.string()))
    assert columns.batch([Heartbeat(group="g")], to=wider).column("account").null_count == 1
