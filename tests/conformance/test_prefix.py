"""What comes off a line, and which time it has."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.readers.prefix import Bare, strip

MODIFIED = datetime(2024, 6, 1, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("line", "ts"),
    [
        ("[2024-05-01 10:00:00,123] INFO m", "2024-05-01T10:00:00.123Z"),
        ("2024-05-01 10:00:00.123  INFO 77 --- [main] m", "2024-05-01T10:00:00.123Z"),
        ("2024-05-01T10:00:00.123456789Z INFO m", "2024-05-01T10:00:00.123456Z"),
        ("2024-05-01T10:00:00.5+05:30 INFO m", "2024-05-01T04:30:00.5Z"),
        ("2024-05-01T10:00:00,5-0800 INFO m", "2024-05-01T18:00:00.5Z"),
        ("2024-05-01 10:00:00 UTC INFO m", "2024-05-01T10:00:00Z"),
        ("2024-05-01 10:00:00,123 - INFO  [main] - m", "2024-05-01T10:00:00.123Z"),
        ("INFO  24-05-01 10:00:00[main] m", "2024-05-01T10:00:00Z"),
        ("[INFO][Main] 2024/05/01 10:00:00.123456 m", "2024-05-01T10:00:00.123456Z"),
        ("%7|1714557600.250|CGRPJOIN|c#consumer-1| [thrd:main]: m", "2024-05-01T10:00:00.250Z"),
        ("10:00:00,123 INFO m", None),
        ("24/05/01 10:00:00 INFO m", None),
        ("01-05-2024 10:00:00 INFO m", None),
        ("[2024-13-01 10:00:00,123] m", None),
        ("[2024-05-01 10:00:61,123] m", None),
        ("m", None),
        ("x" * 300 + " 2024-05-01 10:00:00", None),
        ("", None),
    ],
)
def test_time(line: str, ts: str | None) -> None:
    assert strip(line, MODIFIED) == Bare(line, at(ts) if ts else None, "")


CLIENT = "[2024-05-01 10:00:00,123] INFO m"


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("\x1b[32m[2024-05-01 10:00:00,123]\x1b[0;39m INFO m\x1b[K", Bare(CLIENT, at("2024-05-01T10:00:00.123Z"), "")),
        (f"broker-1  | {CLIENT}", Bare(CLIENT, at("2024-05-01T10:00:00.123Z"), "broker-1")),
        (f"INFO | {CLIENT}", Bare(f"INFO | {CLIENT}", at("2024-05-01T10:00:00.123Z"), "")),
        (f"[pod/app-0/main] {CLIENT}", Bare(CLIENT, at("2024-05-01T10:00:00.123Z"), "pod/app-0/main")),
        (f"app-7d9c5b6f44-x2x9z main {CLIENT}", Bare(CLIENT, at("2024-05-01T10:00:00.123Z"), "app-7d9c5b6f44-x2x9z main")),
        (f"# {CLIENT}", Bare(CLIENT, at("2024-05-01T10:00:00.123Z"), "")),
        (f"  // {CLIENT}", Bare(CLIENT, at("2024-05-01T10:00:00.123Z"), "")),
        (f"> > {CLIENT}", Bare(CLIENT, at("2024-05-01T10:00:00.123Z"), "")),
        ("#\tAssigned: []", Bare("Assigned: []", None, "")),
        ("\tAssigned: []", Bare("\tAssigned: []", None, "")),
        ("    [4711]: [INFO] m", Bare("[INFO] m", None, "4711")),
        ("2024-05-01T10:00:07.5Z stdout F [main] INFO m", Bare("[main] INFO m", at("2024-05-01T10:00:07.5Z"), "")),
        ("<34>1 2024-05-01T10:00:07.5Z host app 17 - - m", Bare("m", at("2024-05-01T10:00:07.5Z"), "host app 17")),
        ("May  1 10:00:07 host app[17]: m", Bare("m", at("2024-05-01T10:00:07Z"), "host app[17]")),
        ("Dec 31 10:00:07 host app: m", Bare("m", at("2023-12-31T10:00:07Z"), "host app")),
    ],
)
def test_wrappings(line: str, bare: Bare) -> None:
    assert strip(line, MODIFIED) == bare


@pytest.mark.parametrize(
    ("line", "ts"),
    [
        (f"2024-05-01T08:00:07Z stdout F {CLIENT}", "2024-05-01T08:00:07Z"),
        (f"2024-05-01T08:00:07.123456789Z {CLIENT}", "2024-05-01T08:00:07.123456Z"),
        ("2024-05-01T08:00:07Z stdout F 2024-05-01T10:00:00+02:00 m", "2024-05-01T08:00:00Z"),
        (f"May  1 08:00:07 host app: {CLIENT}", "2024-05-01T10:00:00.123Z"),
        ("[2024-05-01 10:00:00,123] INFO snapshot of 2020-01-01T00:00:00Z", "2024-05-01T10:00:00.123Z"),
    ],
)
def test_a_time_with_a_zone_wins_then_the_nearest(line: str, ts: str) -> None:
    assert strip(line, MODIFIED).ts == at(ts)


@pytest.mark.parametrize(
    ("row", "bare"),
    [
        ({"@timestamp": "2024-05-01T10:00:00+02:00", "message": "m", "thread_name": "t"}, Bare("m", at("2024-05-01T08:00:00Z"), "")),
        ({"instant": {"epochSecond": 1714557600, "nanoOfSecond": 5000}, "message": "m"}, Bare("m", at("2024-05-01T10:00:00.000005Z"), "")),
        ({"log": "m\n", "stream": "stdout", "time": "2024-05-01T10:00:00.5Z"}, Bare("m", at("2024-05-01T10:00:00.5Z"), "")),
        ({"ts": 1714557600.25, "msg": "m"}, Bare("m", at("2024-05-01T10:00:00.25Z"), "")),
        ({"timestamp": 1714557600123, "message": "m"}, Bare("m", at("2024-05-01T10:00:00.123Z"), "")),
        ({"ts": 1e300, "timestamp": True, "msg": "m"}, Bare("m", None, "")),
        ({"message": {"message": "m"}, "kubernetes": {"pod_name": "p-0"}}, Bare("m", None, "p-0")),
        ({"log": json.dumps({"msg": f"{CLIENT}\n"}), "host": {"name": "h"}}, Bare(CLIENT, at("2024-05-01T10:00:00.123Z"), "h")),
        ({"message": "a\n\tb\n"}, Bare("a\n\tb", None, "")),
    ],
)
def test_json(row: object, bare: Bare) -> None:
    assert strip(json.dumps(row) + "\r\n", MODIFIED) == bare


@pytest.mark.parametrize("line", ['{"level":"INFO"}', '{"message":"m"', '{"message":1}', "{" * 5000, '{"a":' * 5000, "{}"])
def test_other_json_stays(line: str) -> None:
    assert strip(line, MODIFIED) == Bare(line, None, "")


PARTS = st.sampled_from(
    [
        "2024-05-01",
        "T",
        " ",
        "10:00:00",
        ",123",
        "Z",
        "+02:00",
        "[",
        "]",
        "|",
        "# ",
        "{",
        "}",
        '"log":',
        '"m"',
        "May  1 ",
        "\x1b[",
        "%7|",
        "1714557600.250",
        "app-0 ",
        "<34>1 ",
    ]
)


@given(st.lists(PARTS | st.text(max_size=3), max_size=15).map("".join))
@settings(max_examples=500, derandomize=True, deadline=None)
def test_any_line_has_some_text(line: str) -> None:
    bare = strip(line, MODIFIED)
    assert strip(line, MODIFIED) == bare
    assert len(bare.text) <= max(len(line), 1)


@pytest.mark.parametrize("piece", ["[1] ", "> ", "a ", "# ", "\x1b", "x | ", "-a-0 b ", "2024-05-01T10:00:00Z ", "{"])
def test_long_lines_cost_little(piece: str) -> None:
    strip(piece * 300_000, MODIFIED)
