"""What each leader decided, against the reference assignor: the same members, claims and partitions must give the same assignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...model.assignors import ASSIGNORS
from ...spec.assignors.case import ABSENT, Case
from ...spec.events import NONE, Event, Join, Joined, Resources, Sync
from ..gate.builtin import Builtin
from ..gate.inputs.traces import inputs_in
from ..gate.mended import AS_KAFKA
from .clients import is_reference, release_of
from .evidence import Evidence, Key, generations_in, protocol_type

SINCE = (3, 8)
"""The reference assignors are those of 3.8 and 4.x; older ones may decide otherwise."""


@dataclass(frozen=True, slots=True)
class Decided:
    """``matched`` of ``total`` captured assignments are the reference's; ``event`` is the first that is not; ``unknown`` tells of the others."""

    matched: int
    total: int
    event: Sync | None = None
    enabled: tuple[str, ...] = ()
    blocked: str = ""
    unknown: str | None = None


def follow_leaders(ordered: Sequence[Event], evidence: Evidence) -> Decided | None:
    """All decisions of one group's leaders, in the order of their generations; None if none was captured."""
    claims, generations = _claims(ordered), generations_in(ordered)
    refused = {
        (e.asked.src, e.asked.ts) for e in evidence.exchanges if e.asked is not None and e.answer is not None and e.answer.error != NONE
    }
    decisions = {
        (event.epoch, event.generation): event
        for event in reversed(ordered)
        if isinstance(event, Sync) and event.assignment and event.generation is not None and (event.src, event.ts) not in refused
        if generations[event.epoch, event.generation].leader == event.member
        if event.member in claims.get((event.epoch, event.generation), {})
    }
    if not decisions:
        return None
    cases = {_place(case): _claiming(case, claims.get(_place(case), {})) for case in inputs_in(ordered).cases}
    led: dict[str, list[Case]] = {}
    matched, unknown = 0, dict[str, int]()
    for key in sorted(decisions):
        event, known = decisions[key], generations[key]
        shares = event.assignment or {}
        strangers = sorted(set(shares) - known.members) if known.members is not None else []
        if strangers:
            return Decided(
                matched, len(decisions), event, blocked=f"{', '.join(strangers)} got a share and is no member of generation {key[1]}"
            )
        case, protocol = cases.get(key), known.protocol or ""
        why = _not_comparable(event, protocol, case, ordered, evidence)
        if case is None or why is not None:
            unknown[why or ""] = unknown.get(why or "", 0) + 1
            continue
        before = led.setdefault(event.member or "", [])
        expected = [answer for each in _seen(case, shares) for answer in _expected(each, protocol, before)]
        before.append(case)
        if any(_same(shares, each) for each in expected):
            matched += 1
        elif not expected or not _is_present(event, ordered):
            why = "the reference gives no answer" if not expected else "the leader's client is older than the reference assignors"
            unknown[why] = unknown.get(why, 0) + 1
        else:
            return Decided(
                matched,
                len(decisions),
                event,
                tuple(dict.fromkeys(f"give {_told(each)}" for each in expected)),
                f"{protocol} does not decide this for what the members claimed",
                _counted(unknown),
            )
    return Decided(matched, len(decisions), unknown=_counted(unknown))


def _place(case: Case) -> Key:
    epoch, _, generation = case.id.rpartition("/")[2].partition(".")
    return int(epoch), int(generation)


def _claims(ordered: Sequence[Event]) -> Mapping[Key, Mapping[str, Join]]:
    """The JoinGroup with which each member came into a generation. One that was absent stays with its last, in the first epoch:
    what another coordinator knows of it may be older.
    """
    asked: dict[str, Join] = {}
    newcomers: dict[str | None, Join] = {}
    found: dict[Key, dict[str, Join]] = {}
    for event in ordered:
        match event:
            case Join(owned=tuple()) if event.member:
                asked[event.member] = event
            case Join(owned=tuple()):
                newcomers[event.client] = event
            case Joined(error="NONE", generation=int(generation), member=str(member)):
                if member not in asked and event.client in newcomers:
                    asked[member] = newcomers.pop(event.client)
                here = found.setdefault((event.epoch, generation), {} if event.epoch else dict(asked))
                here.update({member: asked[member]} if member in asked else {})
            case _:
                pass
    return found


def _claiming(case: Case, claims: Mapping[str, Join]) -> Case | None:
    """The case with what members said that they own, None if one's JoinGroup was not captured."""
    if not all(member.id in claims for member in case.members):
        return None
    said = [(member, claims[member.id]) for member in case.members]
    members = (
        replace(
            member,
            owned=tuple(dict.fromkeys(join.owned or ())),
            generation=ABSENT if join.owned_generation is None else join.owned_generation,
        )
        for member, join in said
    )
    return replace(case, members=tuple(members))


def _not_comparable(event: Sync, protocol: str, case: Case | None, events: Sequence[Event], evidence: Evidence) -> str | None:
    if protocol_type([protocol]) == "connect":
        return "what a Connect leader decides is not compared"
    if protocol not in ASSIGNORS:
        return f"there is no reference of the assignor {protocol}" if protocol else "which assignor decided was not captured"
    if case is None or protocol == "sticky":
        return "what the members claimed was not captured"
    if not is_reference(event.member or "", events, whole=evidence.whole and evidence.ids_given):
        return "whether the leader's client is Kafka's own was not captured"
    if any(member.rack is not None for member in case.members) and not case.racks:
        return "the racks of the replicas were not captured"
    return None


def _seen(case: Case, shares: Mapping[str, Resources]) -> tuple[Case, Case]:
    """The case as the partitions were told, and as a leader with other metadata may have seen them: as many as it gave or found claimed."""
    counts: dict[str, int] = {}
    for partition in (*(p for share in shares.values() for p in share), *(p for member in case.members for p in member.owned)):
        topic, _, number = partition.rpartition("-")
        counts[topic] = max(counts.get(topic, 0), int(number) + 1)
    wanted = {topic for member in case.members for topic in member.subscribed}
    return case, replace(case, topics={topic: count for topic, count in sorted(counts.items()) if topic in wanted})


def _expected(case: Case, protocol: str, before: Sequence[Case]) -> list[Mapping[str, Resources]]:
    """What the reference decides, whether or not the leader's assignor remembers what it decided before."""
    asked = Builtin(protocol, frozenset({AS_KAFKA}))
    answers = asked.ask([case, replace(case, before=tuple(replace(each, before=()) for each in before))])
    return [answer for answer in answers if isinstance(answer, Mapping)]


def _same(one: Mapping[str, Resources], other: Mapping[str, Resources]) -> bool:
    return all(frozenset(one.get(member, ())) == frozenset(other.get(member, ())) for member in one.keys() | other.keys())


def _is_present(event: Sync, events: Sequence[Event]) -> bool:
    release = release_of(event.member or "", events)
    return release is None or release >= SINCE


def _told(shares: Mapping[str, Resources]) -> str:
    return "; ".join(f"{member} {', '.join(resources) or 'nothing'}" for member, resources in shares.items())


def _counted(unknown: Mapping[str, int]) -> str | None:
    return "; ".join(f"{number} not compared: {why}" for why, number in unknown.items()) or None
