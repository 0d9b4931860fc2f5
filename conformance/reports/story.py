"""A trace told step by step, for a person who wants to follow a counterexample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from ...spec.events import (
    NONE,
    Assigned,
    Assignment,
    Closed,
    Commit,
    Crashed,
    Event,
    Expire,
    Gap,
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
    Source,
    Sync,
    Synced,
    Topics,
)
from ...spec.rounds import Identities, identities
from .prose import line

ONE_MOMENT = 2_000_000
"""Microseconds between two logs' lines about one thing, at most."""
ROUTINE = frozenset({"MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS"})
"""Errors by which the coordinator tells a member what to do next."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened: what it ``says`` in a sentence, and every log's ``sightings`` of it, the first of which says most."""

    says: str
    sightings: tuple[Event, ...]

    @property
    def event(self) -> Event:
        """The sighting that says most."""
        return self.sightings[0]


def steps(events: Sequence[Event], cited: Set[Source] = frozenset()) -> list[Step]:
    """What moves the story on, in the order of ``events``, which are one group's; and whatever was read from a ``cited`` line.

    What only repeats or confirms is left out. What several logs show is one step; what the coordinator's side shows of a conversation
    is not told again from the member's.
    """
    who = identities(events)
    told: list[Step] = []
    open_steps: dict[object, int] = {}
    committed: dict[str | None, object] = {}
    owned = Owners()
    answered = {(event.kind, event.member) for event in events if event.observer == "coordinator"}
    for event in events:
        sentence = _sentence(event)
        if isinstance(event, Commit):
            said = (event.epoch, event.generation, event.resources, event.error)
            sentence = None if committed.get(event.member) == said else sentence
            committed[event.member] = said
        if isinstance(event, Owned) and frozenset(event.resources or ()) != owned.of(event.member or ""):
            sentence = _by_the_way(event)
        owned.apply(event)
        if event.observer == "member" and isinstance(event, _Conversation) and (event.kind, event.member) in answered:
            sentence = None
        if sentence is None and (event.src is None or event.src not in cited):
            continue
        key = _occasion(event, who)
        place = open_steps.get(key)
        if place is not None and _again(told[place], event):
            told[place] = _with(told[place], event, sentence)
        else:
            open_steps[key] = len(told)
            told.append(Step(line(sentence or _by_the_way(event)), (event,)))
    return told


_Conversation = Join | Joined | Sync | Synced | Heartbeat | Commit | Leave
_Common = Rebalance | GenerationStarted | Assignment | Load | Topics


def _occasion(event: Event, who: Identities) -> object:
    """What two logs' lines about one thing have in common."""
    named = event.instance and f"instance:{event.instance}" if not event.member else who.owner(event.member)
    asker = None if isinstance(event, _Common) else named or event.client
    generation = None if isinstance(event, (Join, Leave)) else event.generation
    belief = event.resources if event.observer == "member" else None
    return event.kind, event.observer, asker, event.epoch, generation, getattr(event, "error", None), belief


def _again(step: Step, event: Event) -> bool:
    """Whether another log shows ``step``: a log does not show one thing twice."""
    if event.src is None or any(seen.src is None or seen.src.file == event.src.file for seen in step.sightings):
        return False
    last = step.sightings[-1].ts
    return event.ts is None or last is None or abs(event.ts - last) <= ONE_MOMENT


def _with(step: Step, event: Event, sentence: str | None) -> Step:
    """The longer sentence is the one that says most."""
    if sentence is not None and len(line(sentence)) > len(step.says):
        return Step(line(sentence), (event, *step.sightings))
    return replace(step, sightings=(*step.sightings, event))


def tell(events: Iterable[Event]) -> Iterator[tuple[Event, str]]:
    """Each step's event, with its sentence."""
    for step in steps([*events]):
        yield step.event, step.says


class Owners:
    """Who believes to own what: what members took, less what they gave up, lost or died with."""

    def __init__(self) -> None:
        self._owned: dict[str, dict[str, None]] = {}

    def apply(self, event: Event) -> bool:
        """The next event; whether it changes who owns what."""
        if not event.member:
            return False
        before, named = self._owned.get(event.member), dict.fromkeys(event.resources or ())
        match event:
            case Assigned():
                after = {**(before or {}), **named}
            case Owned():
                after = named
            case Revoked() | Lost():
                after = {resource: None for resource in before or {} if resource not in named}
            case Closed() | Crashed():
                self._owned.pop(event.member, None)
                return before is not None
            case _:
                self._owned.setdefault(event.member, {})
                return before is None
        self._owned[event.member] = after
        return after != before

    def of(self, member: str) -> Set[str]:
        """What one member owns."""
        return self._owned.get(member, {}).keys()

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


def _who(event: Event) -> str:
    return event.member or event.instance or event.client or "a new member"


def _sentence(event: Event) -> str | None:
    who = _who(event)
    match event:
        case Join():
            claim = f", claiming {_names(event.owned)} since generation {event.owned_generation}" if event.owned else ""
            return f"{who} asks to join{claim}"
        case Joined(error="MEMBER_ID_REQUIRED"):
            return f"{who} is its member id: it is to join with it"
        case Joined() if event.error != NONE:
            return f"{who} is sent away: {event.error}"
        case Rebalance():
            return f"a rebalance begins ({event.reason})" if event.reason else "a rebalance begins"
        case GenerationStarted():
            members = "" if event.members is None else f": {_names(event.members) or 'no members'}"
            return f"generation {event.generation} starts{members}" + (f"; {event.leader} leads" if event.leader else "")
        case Sync() if event.assignment:
            return f"{who} decides: " + "; ".join(f"{m} {_names(r) or 'nothing'}" for m, r in event.assignment.items())
        case Synced() if event.error != NONE:
            return f"{who} gets no assignment of generation {event.generation}: {event.error}"
        case Synced() if event.resources is None:
            return None
        case Synced():
            learns = "learns that it is" if event.observer == "member" else "is"
            wait = f", and to wait {event.delay_ms / 1000:g} s" if event.delay_ms else ""
            return f"{who} {learns} given {_names(event.resources) or 'nothing'} in generation {event.generation}{wait}"
        case Heartbeat(error="REBALANCE_IN_PROGRESS"):
            return f"{who} learns that a rebalance has begun"
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
        case Gap():
            return _by_the_way(event)
        case Topics():
            return "partitions: " + ", ".join(f"{topic} {count}" for topic, count in (event.topics or {}).items())
        case _:
            return None


def _by_the_way(event: Event) -> str:
    """What an event says that does not move the story on."""
    who = _who(event)
    match event:
        case Joined():
            return f"{who} is in generation {event.generation}"
        case Sync():
            return f"{who} asks for its share of generation {event.generation}"
        case Synced():
            return f"{who} has its share of generation {event.generation}"
        case Assignment():
            shares = "; ".join(f"{member} {_names(share) or 'nothing'}" for member, share in (event.assignment or {}).items())
            return f"generation {event.generation} is stored" + (f": {shares}" if shares else "")
        case Heartbeat():
            return f"{who}'s heartbeat is granted"
        case Owned():
            return f"{who} owns {_names(event.resources) or 'nothing'}"
        case Assigned() | Revoked() | Lost():
            verb = {"assigned": "takes", "revoked": "gives up", "lost": "has lost"}[event.kind]
            return f"{who} {verb} nothing"
        case Gap():
            return f"evidence is missing here: {event.reason or 'not captured'}"
        case _:
            return f"{who}: {event.kind}"


def _names(resources: Resources | None) -> str:
    return ", ".join(resources or ())
