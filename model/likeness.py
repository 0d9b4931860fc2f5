"""When two moments of the world are alike: the same but for the time of day and for running numbers.

`likeness` turns a state into nested tuples in which times are relative to now, numbers of requests relative to the last one
that their client sent, connections that are gone have no name, and what only labels events is left out. Equal likenesses
have equal futures, shifted in time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, Literal, cast

_AHEAD = frozenset({"deadline", "join_deadline", "sync_deadline", "due", "beat", "timer", "backoff", "retry"})
"""Times (ms) at which something falls due; how long ago that was does not matter."""

_AGO = frozenset({"polled", "heard", "since", "reading"})
"""Times (ms) since which something has been so."""

_LABELS = frozenset({"now", "clock", "config", "plans", "connections", "appends_given", "number"})

_PLAIN = frozenset({"Metadata", "Share", "GroupRecord", "StoredMember", "Faults", "Menu", "Release", "Snapshot", "Claim", "Generation"})
"""Records without times or numbers, compared as they are."""


_PLAIN_TYPES = frozenset({str, int, bool, type(None), frozenset})

How = Literal["as it is", "ahead", "ago", "ago or never", "number", "place"]


@cache
def _plan(kind: type) -> tuple[tuple[str, How], ...] | None:
    """The fields of a record that count, and how; None for what is compared as it is."""
    if not is_dataclass(kind) or kind.__name__ in _PLAIN:
        return None
    return tuple((f.name, _how(kind, f.name)) for f in fields(kind) if f.name not in _LABELS)


@cache
def _plain(kind: type) -> bool:
    """Whether values of this type are compared as they are."""
    return kind is not tuple and (kind in _PLAIN_TYPES or _plan(kind) is None)


def _how(kind: type, name: str) -> How:
    if name == "correlation":
        return "number"
    if name == "connection":
        return "place"
    if name == "deadline" and kind.__name__ == "Leader":
        return "ago or never"
    if name in _AGO:
        return "ago"
    return "ahead" if name in _AHEAD else "as it is"


def likeness(value: Any, now: int, sent: Mapping[str, int], own: int = 0) -> Hashable:
    """What makes ``value`` what it is. ``sent`` counts the requests per open connection, ``own`` those of the client in hand."""
    kind = cast("type[object]", type(value))
    if _plain(kind):
        return value
    if kind is tuple:
        if all(map(_plain, map(type, value))):
            return value
        return tuple([likeness(each, now, sent, own) for each in value])
    plan = _plan(kind) or ()
    match kind.__name__:
        case "Address":
            return (value.process.partition("#")[0], sent[value.process] - value.correlation) if value.process in sent else None
        case "Client" if value.mode == "absent":
            return value.name, value.lives
        case "Client":
            own = sent[value.connection]
        case "Stray":
            own = value.call.correlation
        case "Group" if not value.pending_sync and value.sync_deadline is not None:
            return likeness(replace(value, sync_deadline=None), now, sent, own)
        case _:
            pass
    parts: list[Hashable] = [kind.__name__]
    for name, how in plan:
        at = getattr(value, name)
        if how == "as it is":
            parts.append(at if _plain(cast("type[object]", type(at))) else likeness(at, now, sent, own))
        elif at is None:
            parts.append(None)
        elif how == "ahead":
            parts.append(max(at - now, 0))
        elif how == "ago":
            parts.append(at - now)
        elif how == "ago or never":
            parts.append(at - now if at else None)
        else:
            parts.append(own - at if how == "number" else at.partition("#")[0])
    return tuple(parts)
