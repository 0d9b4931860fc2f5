"""A trace told line by line, for a person who wants to follow a counterexample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...spec.events import (
    NONE,
    Assigned,
    Closed,
    Commit,
    Crashed,
    Event,
    Expire,
    GenerationStarted,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Load,
    Lost,
    Owned,
    Rebalance,
    Replace,
    Resources,
    Revoked,
    Sync,
    Synced,
    Topics,
)
from .prose import line


def tell(events: Iterable[Event]) -> Iterator[tuple[Event, str]]:
    """Each event that moves the story on, with its sentence; what only repeats or confirms is left out."""
    for event in events:
        sentence = _sentence(event)
        if sentence:
            yield event, line(sentence)


class Owners:
    """Who believes to own what: what members took, less what they gave up, lost or died with."""

    def __init__(self) -> None:
        self._owned: dict[str, dict[str, None]] = {}

    def apply(self, event: Event) -> None:
        """The next event."""
        mine = self._owned.setdefault(event.member, {}) if event.member else {}
        match event:
            case Assigned():
                mine.update(dict.fromkeys(event.resources or ()))
            case Owned():
                mine.clear()
                mine.update(dict.fromkeys(event.resources or ()))
            case Revoked() | Lost():
                for resource in event.resources or ():
                    mine.pop(resource, None)
            case Closed() | Crashed():
                self._owned.pop(event.member or "", None)
            case _:
                pass

    def by_member(self) -> dict[str, tuple[str, ...]]:
        """What each member that was heard of owns."""
        return {member: tuple(resources) for member, resources in self._owned.items()}

    def by_resource(self) -> dict[str, list[str]]:
        """Who owns each resource that anybody does."""
        owners: dict[str, list[str]] = {}
        for member, resources in self._owned.items():
            for resource in resources:
                owners.setdefault(resource, []).append(member)
        return owners

    def twice(self) -> frozenset[str]:
        """What several members own."""
        return frozenset(resource for resource, members in self.by_resource().items() if len(members) > 1)


def owners(events: Iterable[Event]) -> dict[str, list[str]]:
    """Who believes to own each resource at the end."""
    owned = Owners()
    for event in events:
        owned.apply(event)
    return owned.by_resource()


def _sentence(event: Event) -> str | None:
    who = event.member or event.instance or event.client or "a new member"
    match event:
        case Join():
            claim = f", claiming {_names(event.owned)} since generation {event.owned_generation}" if event.owned else ""
            return f"{who} asks to join{claim}"
        case Joined() if event.error != NONE:
            return f"{who} is sent away: {event.error}"
        case Rebalance():
            return f"a rebalance begins ({event.reason})" if event.reason else "a rebalance begins"
        case GenerationStarted():
            return f"generation {event.generation} starts: {_names(event.members) or 'no members'}" + (
                f"; {event.leader} leads" if event.leader else ""
            )
        case Sync() if event.assignment:
            return f"{who} decides: " + "; ".join(f"{m} {_names(r) or 'nothing'}" for m, r in event.assignment.items())
        case Synced() if event.error != NONE:
            return f"{who} gets no assignment of generation {event.generation}: {event.error}"
        case Synced():
            return f"{who} is given {_names(event.resources) or 'nothing'} in generation {event.generation}"
        case Heartbeat() | Commit() if event.error != NONE:
            return f"{who}'s {event.kind} is refused: {event.error}"
        case Commit():
            return f"{who} commits {_names(event.resources)}"
        case _:
            return _of_a_member(event, who)


def _of_a_member(event: Event, who: str) -> str | None:
    match event:
        case Leave():
            return f"{who} leaves"
        case Expire():
            return f"{who} is removed: its {event.reason} timer ended"
        case Replace():
            return f"{who} takes the place of {event.old_member}"
        case Load():
            return f"another coordinator loads the group, at generation {event.generation}"
        case Assigned() if event.resources:
            return f"{who} takes {_names(event.resources)}"
        case Revoked() if event.resources:
            return f"{who} gives up {_names(event.resources)}"
        case Lost() if event.resources:
            return f"{who} finds that it has lost {_names(event.resources)}"
        case Closed() | Crashed():
            return f"{who} {event.kind}"
        case Topics():
            return "partitions: " + ", ".join(f"{topic} {count}" for topic, count in (event.topics or {}).items())
        case _:
            return None


def _names(resources: Resources | None) -> str:
    return ", ".join(resources or ())
