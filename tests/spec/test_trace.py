"""Trace version 1: what decodes, what is malformed and why, and that nothing is lost on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import cast

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck import spec
from kipcheck.spec.events import KINDS, Assignment, Event, Heartbeat, Join, MemberInfo, Source, Sync, Synced
from kipcheck.spec.trace import MAX_DEPTH, MalformedEvent, decode, encode, format_ts, parse_ts

from ..strategies import JSON, events

SCHEMA = json.loads(Path(spec.__path__[0], "schemas", "trace.schema.json").read_text())
FORMATS = jsonschema.FormatChecker(formats=())


@FORMATS.checks("date-time", raises=(ValueError, OverflowError))
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or abs(datetime.fromisoformat(value.upper()).timestamp()) < 1e12


VALIDATOR = jsonschema.Draft202012Validator(SCHEMA, format_checker=FORMATS)


def test_every_field_is_read() -> None:
    event = decode(
        {
            "kind": "synced",
            "group": "g",
            "ts": "2024-05-01T10:00:00.5+02:00",
            "cluster": "east",
            "epoch": 2,
            "generation": 7,
            "member": "c-1",
            "instance": "i-1",
            "client": "c",
            "resources": ["t-1", "t-0"],
            "src": {"file": "broker.log", "line": 3, "text": "..."},
            "revoked": ["t-2"],
            "delay_ms": 300000,
            "error": "NONE",
            "seen_by": "member",
        }
    )
    assert event == Synced(
        group="g",
        ts=1714550400_500000,
        cluster="east",
        epoch=2,
        generation=7,
        member="c-1",
        instance="i-1",
        client="c",
        resources=("t-1", "t-0"),
        src=Source("broker.log", 3, "..."),
        revoked=("t-2",),
        delay_ms=300000,
        seen_by="member",
    )


def test_nested_shapes() -> None:
    sync = decode({"kind": "sync", "group": "g", "assignment": {"a": ["t-0"], "b": []}, "revoked": {"b": ["t-0"]}})
    assert sync == Sync(group="g", assignment={"a": ("t-0",), "b": ()}, revoked={"b": ("t-0",)})
    stored = decode({"kind": "assignment", "group": "g", "members": {"a": {"instance": "i", "owned": ["t-0"], "rack": "r"}}})
    assert isinstance(stored, Assignment)
    assert stored.members == {"a": MemberInfo(instance="i", owned=("t-0",))}
    assert stored.members["a"].extra == {"rack": "r"}


def test_null_means_absent_and_unknown_fields_are_kept() -> None:
    row = {"kind": "heartbeat", "group": "g", "error": None, "epoch": None, "member": None, "leader": "x", "zone": {"a": [1]}}
    event = decode(row)
    assert event == Heartbeat(group="g")
    assert event.extra == {"leader": "x", "zone": {"a": [1]}}
    assert decode(encode(event)).extra == event.extra


def test_the_source_passed_in_is_used_unless_the_object_names_one() -> None:
    here = Source("trace.jsonl", 4)
    assert decode({"kind": "load", "group": "g"}, here).src == here
    assert decode({"kind": "load", "group": "g", "src": None}, here).src == here
    assert decode({"kind": "load", "group": "g", "src": {"file": "x"}}, here).src == Source("x")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ([], "expected a JSON object, found an array"),
        ({"group": "g"}, "kind: expected a non-empty string, found nothing"),
        ({"kind": "joins", "group": "g"}, "found 'joins'"),
        ({"kind": ["join"], "group": "g"}, "kind: expected a non-empty string, found an array"),
        ({"kind": "join"}, "group: expected a non-empty string, found nothing"),
        ({"kind": "join", "group": None}, "group: expected a non-empty string, found nothing"),
        ({"kind": "join", "group": ""}, "group: expected a non-empty string, found ''"),
        ({"kind": "join", "group": "g", "generation": True}, "generation: expected an integer of 64 bits, found true"),
        ({"kind": "join", "group": "g", "generation": 1.5}, "generation: expected an integer of 64 bits, found 1.5"),
        ({"kind": "join", "group": "g", "epoch": 2**63}, "epoch: expected an integer of 64 bits, found 9223372036854775808"),
        ({"kind": "join", "group": "g", "epoch": 10**5000}, "epoch: expected an integer of 64 bits, found a number beyond 64 bits"),
        ({"kind": "join", "group": "g", "ts": 17}, "ts: expected a time by RFC 3339, such as 2024-05-01T10:00:00.123Z, found 17"),
        ({"kind": "join", "group": "g", "resources": "t-0"}, "resources: expected an array of strings, found 't-0'"),
        ({"kind": "join", "group": "g", "resources": ["t-0", None]}, "resources[]: expected an array of strings, found null"),
        ({"kind": "sync", "group": "g", "revoked": ["t-0"]}, "revoked: expected an object of arrays of strings, found an array"),
        ({"kind": "sync", "group": "g", "assignment": {"a": "t"}}, "assignment.a: expected an array of strings, found 't'"),
        ({"kind": "assignment", "group": "g", "members": {"a": {"owned": 1}}}, "members.a.owned: expected an array of strings, found 1"),
        ({"kind": "join", "group": "g", "src": {"line": 1}}, "src.file: expected a string, found null"),
        ({"kind": "join", "group": "g", "src": {"file": "f", "line": -1}}, "src.line: expected an integer from 0, found -1"),
        ({"kind": "join", "group": "g", "seen_by": "me"}, "seen_by: expected coordinator, member, harness or any, found 'me'"),
    ],
)
def test_malformed(row: object, why: str) -> None:
    with pytest.raises(MalformedEvent) as malformed:
        decode(row)
    assert str(malformed.value).endswith(why)


def test_deep_nesting_is_malformed() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(MalformedEvent, match=f"x: expected at most {MAX_DEPTH} levels of nesting, found an array"):
        decode({"kind": "join", "group": "g", "x": deep})


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:01z", 1_000_000),
        ("1970-01-01 00:00:00.1Z", 100_000),
        ("1970-01-01T00:00:00.123456789Z", 123_456),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59.999999-00:00", -1),
    ],
)
def test_times(text: str, micros: int) -> None:
    assert parse_ts(text) == micros
    assert parse_ts(format_ts(micros)) == micros


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-05-01",
        "2024-05-01T10:00:00",
        "20240501T100000Z",
        "2024-05-01T10:00Z",
        "2024-02-30T10:00:00Z",
        "2024-05-01T25:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "2024-05-01T10:00:00+0200",
        "\u0662024-05-01T10:00:00Z",
        "2024-05-01T10:00:00Z\n",
    ],
)
def test_no_times(text: str) -> None:
    with pytest.raises(MalformedEvent, match="ts: expected a time"):
        decode({"kind": "join", "group": "g", "ts": text})


@given(events())
@settings(max_examples=500, derandomize=True, deadline=None)
def test_decoding_undoes_encoding(event: Event) -> None:
    row = json.loads(json.dumps(encode(event)))
    assert decode(row) == event
    VALIDATOR.validate(row)


@given(events(), st.data())
@settings(max_examples=500, derandomize=True, deadline=None)
def test_schema_and_decoder_agree_on_broken_events(event: Event, data: st.DataObject) -> None:
    row = encode(event)
    for name in data.draw(st.lists(st.sampled_from([*row, "leader", "members", "revoked", "delay_ms"]), min_size=1, max_size=2)):
        row[name] = data.draw(JSON)
    assert _decodes(row) == VALIDATOR.is_valid(row), row


@given(st.dictionaries(st.sampled_from(["kind", "group", "ts", "epoch", "src"]), JSON | st.sampled_from(list(KINDS)), max_size=4))
@settings(max_examples=300, derandomize=True, deadline=None)
def test_schema_and_decoder_agree_on_any_object(row: Mapping[str, object]) -> None:
    assert _decodes(dict(row)) == VALIDATOR.is_valid(row), row


def _decodes(row: dict[str, object]) -> bool:
    try:
        decode(row)
    except MalformedEvent:
        return False
    return True


def test_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert cast(dict[str, dict[str, list[str]]], SCHEMA["properties"])["kind"]["enum"] == list(KINDS)
    assert Join.kind == "join"
