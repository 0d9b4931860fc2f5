"""Hypothesis strategies that the tests share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime

from hypothesis import strategies as st

from kipcheck.spec.events import KINDS, Assignment, Event, GenerationStarted, MemberInfo, Source, Sync, Synced

Strategy = st.SearchStrategy

TEXT: Strategy[str] = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES: Strategy[str] = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
INTEGERS: Strategy[int] = st.integers(-(2**63), 2**63 - 1)
MICROS: Strategy[int] = st.integers(
    int(datetime(1, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000,
    int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()) * 1_000_000 + 999_999,
)
RESOURCES: Strategy[tuple[str, ...]] = st.lists(TEXT, max_size=4).map(tuple)
SHARES: Strategy[dict[str, tuple[str, ...]]] = st.dictionaries(TEXT, RESOURCES, max_size=3)
JSON: Strategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
"""Any JSON value."""


def _optional(values: Strategy[object]) -> Strategy[object]:
    return st.none() | values


_MEMBERS = st.builds(
    MemberInfo,
    instance=_optional(TEXT),
    session_timeout_ms=_optional(INTEGERS),
    subscribed=_optional(RESOURCES),
    owned=_optional(RESOURCES),
)
_BY_NAME: Mapping[str, Strategy[object]] = {
    "group": NAMES,
    "ts": _optional(MICROS),
    "cluster": TEXT,
    "epoch": INTEGERS,
    "src": _optional(st.builds(Source, file=TEXT, line=st.integers(0, 2**63 - 1), text=TEXT)),
    "seen_by": st.sampled_from([None, "coordinator", "member", "harness", "any"]),
    "error": TEXT,
    "assignment": _optional(SHARES),
    "topics": _optional(st.dictionaries(TEXT, INTEGERS, max_size=3)),
} | {name: _optional(RESOURCES) for name in ("resources", "protocols", "subscribed", "owned")}
_BY_KIND: Mapping[tuple[type[Event], str], Strategy[object]] = {
    (Sync, "revoked"): _optional(SHARES),
    (Synced, "revoked"): _optional(RESOURCES),
    (GenerationStarted, "members"): _optional(RESOURCES),
    (Assignment, "members"): _optional(st.dictionaries(TEXT, _MEMBERS, max_size=3)),
}
_INTEGER_NAMES = ("generation", "session_timeout_ms", "rebalance_timeout_ms", "owned_generation", "delay_ms")


def _field(kind: type[Event], name: str) -> Strategy[object]:
    ordinary = _optional(INTEGERS) if name in _INTEGER_NAMES else _optional(TEXT)
    return _BY_KIND.get((kind, name), _BY_NAME.get(name, ordinary))


def events(kinds: tuple[type[Event], ...] = tuple(KINDS.values())) -> Strategy[Event]:
    """Any event of ``kinds`` that trace version 1 can hold, sensible or not."""
    return st.one_of([_events_of(kind) for kind in kinds])


def _events_of(kind: type[Event]) -> Strategy[Event]:
    make: Callable[..., Event] = kind
    return st.builds(make, **{field.name: _field(kind, field.name) for field in fields(kind) if field.name not in ("extra", "times")})
