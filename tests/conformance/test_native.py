"""Trace files: what is written is read again, and every line or row is accounted for."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.readers import columns
from kipcheck.conformance.readers.native import JSON_LINES, PARQUET, write_json_lines, write_parquet
from kipcheck.conformance.readers.whole import MalformedAt, Tally, WholeFileReader
from kipcheck.spec.events import Assignment, Event, Heartbeat, MemberInfo, Source, Sync, Synced

from ..strategies import events


def read(reader: WholeFileReader, content: bytes) -> tuple[list[Event], Tally]:
    tally = Tally()
    return list(reader.read(io.BytesIO(content), "t", tally)), tally


def test_json_lines() -> None:
    found, tally = read(JSON_LINES, b'\xef\xbb\xbf{"kind":"load","group":"g"}\r\n\n{"kind":"load","group":"h","src":{"file":"x"}}')
    assert [(event.group, event.src) for event in found] == [("g", Source("t", 1, '{"kind":"load","group":"g"}')), ("h", Source("x"))]
    assert (tally.lines, tally.events, tally.irrelevant) == (3, 2, 1)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"x", "not a JSON object: Expecting value at character 1"),
        (b'{"kind":', "not a JSON object: Expecting value at character 9"),
        (b"[]", "expected a JSON object, found an array"),
        (b'{"kind":"load"}', "group: expected a non-empty string, found nothing"),
        (b'{"kind":"load","group":"g","epoch":NaN}', "NaN is no JSON value"),
        (b'{"kind":"load","group":"g","epoch":' + b"9" * 5000 + b"}", "not a JSON object: a number has too many digits"),
        (b'{"kind":"load","group":"\xff"}', "not text in UTF-8"),
        (b'{"kind":"load","group":"\\ud800"}', "not text in UTF-8"),
        (b"[" * 100_000, "not a JSON object: nested too deep"),
    ],
)
def test_malformed_lines(line: bytes, why: str) -> None:
    found, tally = read(JSON_LINES, b'{"kind":"load","group":"g"}\n' + line + b"\n")
    assert len(found) == 1
    assert tally.malformed_at == [MalformedAt(2, why)]
    assert tally.lines == 2


def test_a_pair_of_surrogates_is_one_character() -> None:
    found, _ = read(JSON_LINES, b'{"kind":"load","group":"\\ud83d\\ude00"}\n')
    assert found[0].group == "\U0001f600"


@given(st.lists(events(), max_size=4))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_json_lines_written_are_read(written: list[Event]) -> None:
    stream = io.BytesIO()
    write_json_lines(written, stream)
    found, tally = read(JSON_LINES, stream.getvalue())
    assert [event for event, original in zip(found, written, strict=True) if original.src is not None] == [e for e in written if e.src]
    assert tally.lines == tally.events == len(written)


@given(written=st.lists(events(), max_size=4))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_parquet_written_is_read(tmp_path_factory: pytest.TempPathFactory, written: list[Event]) -> None:
    path = tmp_path_factory.mktemp("parquet") / "t.parquet"
    write_parquet(written, str(path))
    found, tally = read(PARQUET, path.read_bytes())
    assert [event for event, original in zip(found, written, strict=True) if original.src is not None] == [e for e in written if e.src]
    assert tally.lines == tally.events == len(written)


def test_parquet_keeps_both_shapes_and_extra_fields(tmp_path: Path) -> None:
    written: list[Event] = [
        Sync(group="g", revoked={"a": ("t-0",)}, src=Source("f")),
        Synced(group="g", revoked=("t-0",), src=Source("f"), extra={"release": "3.7.1", "n": {"x": [1]}}),
        Assignment(group="g", members={"a": MemberInfo(owned=())}, src=Source("f")),
        Heartbeat(group="g", src=Source("f"), extra={"leader": 5}),
    ]
    write_parquet(written, str(tmp_path / "t.parquet"))
    found, _ = read(PARQUET, (tmp_path / "t.parquet").read_bytes())
    assert found == written
    assert [event.extra for event in found] == [{}, {"release": "3.7.1", "n": {"x": [1]}}, {}, {"leader": 5}]


def test_parquet_of_others(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "kind": ["generation", "load", "join"],
            "group": ["g", None, "g"],
            "ts": pa.array([1, 2, None], pa.timestamp("ms")),
            "members": [["a"], None, None],
            "zone": ["east", "west", None],
            "extra": [None, None, "[]"],
        }
    )
    pq.write_table(rows, tmp_path / "t.parquet")
    found, tally = read(PARQUET, (tmp_path / "t.parquet").read_bytes())
    assert [(event.ts, event.extra, event.src) for event in found] == [(1000, {"zone": "east"}, Source("t", 1))]
    assert [bad.line for bad in tally.malformed_at] == [2, 3]


def test_parquet_damaged() -> None:
    with pytest.raises(OSError, match="damaged Parquet file"):
        read(PARQUET, b"PAR1 and then nothing PAR1")


def test_parquet_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_module(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(columns.importlib, "import_module", no_module)
    with pytest.raises(OSError, match=r"pip install 'kipcheck\[spark\]'"):
        read(PARQUET, b"PAR1")


@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from([json.dumps({"kind": "load", "group": "g"}).encode(), b"\n", b"x", b"{"])).map(b"".join)
)
@settings(max_examples=200, derandomize=True, deadline=None)
def test_every_line_is_accounted_for(content: bytes) -> None:
    _, tally = read(JSON_LINES, content)
    assert tally.lines == content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
