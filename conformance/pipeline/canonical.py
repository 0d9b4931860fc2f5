"""The canonical columns: trace version 1 and, beside them, where each event stands and how to sort it.

``group_key`` is a hash of cluster and group, ``resources_key`` one of the resources: they place and tell apart, and decide
nothing alone. ``input`` and ``pos`` are the number
of the captured file and the event's place in it, ``file`` and ``line`` of `Source` apart. ``at`` is the time to sort by, in
microseconds: the event's own, else that of the event of its group before it in the file; None if there is none.

An event is *steady* if it is a granted heartbeat or commit that the coordinator saw: the bulk of a trace. ``stretch`` counts
the group's other events of the coordinator before it in the file, so that steady events of one stretch have nothing in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any

from ...spec.events import NONE, Commit, Event, Heartbeat
from ..readers import columns

VERSION = 1
ROWS = 1 << 14
_STEADY = (Heartbeat, Commit)


def schema() -> Any:
    """The Arrow schema of canonical data. Raises `OSError` where pyarrow is missing."""
    arrow = columns.pyarrow()
    number = arrow.int64()
    place = [
        ("group_key", number),
        ("input", arrow.int32()),
        ("pos", number),
        ("at", number),
        ("stretch", arrow.int32()),
        ("steady", arrow.bool_()),
        ("resources_key", number),
    ]
    return arrow.schema([*(arrow.field(name, kind) for name, kind in place), *columns.schema()])


@lru_cache(maxsize=1 << 16)
def key(*names: str) -> int:
    """64 bits of a hash: equal for equal names; nothing more is asked of it."""
    return int.from_bytes(blake2b("\0".join(names).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)


def is_boundary(event: Event) -> bool:
    """Whether the event may change what the coordinator's next steady event means."""
    return event.observer in ("coordinator", "any") and not is_steady(event)


def is_steady(event: Event) -> bool:
    """Whether the event is a granted heartbeat or commit that the coordinator saw."""
    return isinstance(event, _STEADY) and event.error == NONE and event.observer == "coordinator"


@dataclass(slots=True)
class _Place:
    """How far one file's events of one group are read."""

    at: int | None = None
    stretch: int = 0


@dataclass(slots=True)
class Placer:
    """Gives the events of one captured file their places; ``first_ts`` is the first time among them."""

    input: int
    pos: int = 0
    first_ts: int | None = None
    _groups: dict[tuple[str, str], _Place] = field(default_factory=dict[tuple[str, str], _Place])

    def batches(self, events: Iterable[Event]) -> Iterator[Any]:
        """The events as Arrow record batches of `schema`, in their order, `ROWS` at a time."""
        remaining, to = iter(events), schema()
        while some := [*islice(remaining, ROWS)]:
            places = [self._place(event) for event in some]
            also = dict(zip(to.names[:7], map(list, zip(*places, strict=True)), strict=True))
            yield columns.batch(some, also, to)

    def _place(self, event: Event) -> tuple[object, ...]:
        place = self._groups.setdefault((event.cluster, event.group), _Place())
        if event.ts is not None:
            place.at = event.ts
            self.first_ts = event.ts if self.first_ts is None else self.first_ts
        pos, stretch = self.pos, place.stretch
        self.pos += 1
        steady = is_steady(event)
        place.stretch += not steady and is_boundary(event)
        return key(event.cluster, event.group), self.input, pos, place.at, stretch, steady, key(*event.resources or ())


def events(table: Any) -> list[Event]:
    """The events of canonical rows (an Arrow table or record batch), in the order of the rows.

    A column ``times`` becomes `Event.times`. Raises `MalformedEvent` for a row that no reader has written.
    """
    batches = table.combine_chunks().to_batches() if hasattr(table, "to_batches") else [table]
    return [event for rows in batches for event in columns.records(rows)]
