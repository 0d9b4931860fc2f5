"""A trace in the Informal Trace Format (ITF, ADR-015 of Apalache), for the viewers and readers of Quint's and Apalache's traces.

One state per event, with these variables:

``event``: the event, a record of trace version 1. What maps names to something is a ``#map``, a list is a sequence.
``owned``: what each member that was heard of believes to own after the event: a ``#map`` from member to ``#set``.
``epoch``, ``generation``: of the group, the newest so far; -1 before a generation was seen.

`readers.itf` reads the same events from it. JSON null and numbers that are no integers, which only fields unknown to trace version 1
can hold, have no form in ITF: they stand there as ``#unserializable``. The text grows with the events times what is owned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import cast

from ...spec.events import NONE, Event
from ...spec.trace import encode
from .story import Owners

DESCRIBED = "https://apalache-mc.org/docs/adr/015adr-trace.html"
VARIABLES = ("event", "owned", "epoch", "generation")

_MAPS = frozenset({"assignment", "revoked", "members", "topics"})
"""Fields of an event that map names to something; ``revoked`` and ``members`` are lists in some kinds."""
_RECORD_FIELD = re.compile(r"(?!tag$)[A-Za-z_]\w*", re.ASCII)
_SAFE_INTEGER = 1 << 53


def itf(events: Iterable[Event]) -> dict[str, object]:
    """The trace of ``events``, which are one group's and in the order in which they are to be told, as an ITF document (JSON values)."""
    states = [*_states(events)]
    return {
        "#meta": {"format": "ITF", "format-description": DESCRIBED, "description": f"Written by kipcheck {version('kipcheck')}"},
        "vars": [*VARIABLES],
        "states": states,
    }


def text(document: Mapping[str, object]) -> Iterator[str]:
    """An ITF document piece by piece, each state on a line of its own."""
    head = {name: value for name, value in document.items() if name != "states"}
    yield json.dumps(head, ensure_ascii=False)[:-1] + ',"states":[\n'
    states = cast(Sequence[object], document["states"])
    for number, state in enumerate(states, 1):
        yield json.dumps(state, ensure_ascii=False, separators=(",", ":")) + (",\n" if number < len(states) else "\n")
    yield "]}\n"


def _states(events: Iterable[Event]) -> Iterator[dict[str, object]]:
    owners = Owners()
    shown = _shares({})
    newest = (0, -1)
    for index, event in enumerate(events):
        if owners.apply(event):
            shown = _shares(owners.by_member())
        if event.generation is not None and getattr(event, "error", NONE) == NONE:
            newest = max(newest, (event.epoch, event.generation))
        epoch, generation = map(_value, newest)
        yield {"#meta": {"index": index}, "event": _event(event), "owned": shown, "epoch": epoch, "generation": generation}


def _shares(owned: Mapping[str, tuple[str, ...]]) -> object:
    return {"#map": [[member, {"#set": sorted(resources)}] for member, resources in owned.items()]}


def _event(event: Event) -> object:
    row = encode(event)
    maps = {name: _map(cast(Mapping[str, object], row[name])) for name in _MAPS & row.keys() if isinstance(row[name], Mapping)}
    return _object({name: maps.get(name, _value(value)) for name, value in row.items()})


def _value(value: object) -> object:
    """A JSON value as an ITF expression."""
    match value:
        case None | float():
            return {"#unserializable": json.dumps(value)}
        case bool() | str():
            return value
        case int():
            return value if -_SAFE_INTEGER < value < _SAFE_INTEGER else {"#bigint": str(value)}
        case list():
            return [_value(item) for item in cast(list[object], value)]
        case Mapping():
            return _object({name: _value(item) for name, item in cast(Mapping[str, object], value).items()})
        case _:
            return str(value)


def _object(fields: Mapping[str, object]) -> object:
    """A record of ITF expressions, or a map where a field's name could be taken for something else."""
    if all(map(_RECORD_FIELD.fullmatch, fields)):
        return dict(fields)
    return {"#map": [[name, value] for name, value in fields.items()]}


def _map(shares: Mapping[str, object]) -> object:
    return {"#map": [[name, _value(value)] for name, value in shares.items()]}
