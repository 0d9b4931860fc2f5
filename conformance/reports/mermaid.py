"""A trace as a Mermaid sequence diagram, which pull requests show as a picture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...spec.events import Assigned, Closed, Commit, Crashed, Event, Heartbeat, Join, Joined, Leave, Lost, Owned, Revoked, Sync, Synced
from ..timeline import lanes_of
from .names import Names
from .prose import line
from .story import tell

MOST = 300
"""Steps that a diagram shows: a picture of more helps nobody."""

_Asks = Join | Sync | Heartbeat | Leave | Commit
_IsTold = Joined | Synced
_Does = Assigned | Revoked | Lost | Owned | Closed | Crashed
_END = re.compile(r"\bend\b", re.IGNORECASE)
_ENTITY = {ord(character): f"#{ord(character)};" for character in "#;<>\"'`:{}[]()%\\|&$*_~"}


def diagram(events: Iterable[Event]) -> str:
    """A ``sequenceDiagram``: a column for the coordinator and one for each member, a row for each event that moves the story on.

    Names and words of the trace are escaped. After `MOST` rows a note says that there is more.
    """
    events = [*events]
    told = [(event, sentence) for event, sentence in tell(events)]
    members = list(dict.fromkeys(_who(event) for event, _ in told if isinstance(event, _Asks | _IsTold | _Does) and _who(event)))
    short = Names(lanes_of(events, frozenset(members)))
    told = [(event, short(sentence)) for event, sentence in told]
    names = {name: f"m{number}" for number, name in enumerate(dict.fromkeys(map(short, members)))}
    column = {member: names[short(member)] for member in members}
    lines = ["sequenceDiagram", "    participant co as coordinator"]
    lines += [f"    participant {place} as {_text(name)}" for name, place in names.items()]
    lines += [f"    {row}" for row in _rows(told[:MOST], column)]
    if len(told) > MOST:
        lines.append(f"    Note over co: and {len(told) - MOST} more steps")
    return "\n".join(lines) + "\n"


def _rows(told: Iterable[tuple[Event, str]], column: dict[str, str]) -> Iterator[str]:
    generation: tuple[int, int | None] | None = None
    for event, sentence in told:
        if event.generation is not None and (event.epoch, event.generation) != generation:
            generation = (event.epoch, event.generation)
            yield f"Note over co: generation {event.generation}"
        member = column.get(_who(event), "co")
        if isinstance(event, _Asks):
            yield f"{member}->>co: {_text(sentence)}"
        elif isinstance(event, _IsTold):
            yield f"co->>{member}: {_text(sentence)}"
        elif isinstance(event, _Does):
            yield f"Note over {member}: {_text(sentence)}"
        else:
            yield f"Note over co: {_text(sentence)}"


def _who(event: Event) -> str:
    return event.member or event.instance or event.client or ""


def _text(text: str) -> str:
    """``text`` on one line, without anything that Mermaid reads as its own, the word that closes a block included."""
    return _END.sub(r"e#110;d", " ".join(line(text).split()).translate(_ENTITY))
