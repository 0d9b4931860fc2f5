"""Why the model can't do what was captured, and what it would do instead, told of the likeliest state that it may be in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...model.coordinator import Group, Timer
from ...spec.events import (
    Assignment,
    Commit,
    Event,
    Expire,
    GenerationStarted,
    Heartbeat,
    Joined,
    Leave,
    Load,
    Rebalance,
    Replace,
    Synced,
)
from .evidence import UNKNOWN_TIMEOUT, Evidence
from .follow import Followed
from .replica import Replica, overdue, timers

_MOST = 4


def enabled(followed: Followed, evidence: Evidence) -> tuple[str, ...]:
    """What the model would do: of what was captured first, then what it waits for."""
    point = followed.stopped
    if point is None or not followed.states:
        return tuple(dict.fromkeys(refused.would for refused in followed.refused))[:_MOST]
    mine = [refused.would for refused in followed.refused if refused.exchange == point.exchange >= 0]
    others = [refused.would for refused in followed.refused if refused.exchange < 0]
    state, now = followed.states[0], point.at // 1000
    return tuple(dict.fromkeys((*mine, *others, *_awaited(state), *_timers(state, now))))[:_MOST]


def blocked(event: Event, followed: Followed, evidence: Evidence) -> str:
    """Why it can't do the captured ``event``, where it stopped or next to it."""
    point = followed.stopped
    assert point is not None
    if not followed.states:
        return "no state that the model may be in is left"
    state, now = followed.states[0], point.at // 1000
    late = overdue(state, now, heartbeats=evidence.heartbeats)
    if late is not None:
        return f"{_timer(late)} ended {(now - late.deadline) / 1000:.1f} s before, and nothing captured comes of it"
    return _why(event, state, now)


def _why(event: Event, state: Replica, now: int) -> str:
    group = state.group
    match event:
        case GenerationStarted():
            return _not_completed(event.generation, state, now, event)
        case Joined(error="NONE") if group.state == "PreparingRebalance":
            return _not_completed(event.generation, state, now, event)
        case Synced(error="NONE") if group.state == "CompletingRebalance":
            return f"generation {group.generation} has no assignment yet: {_leader_awaited(group)}"
        case Joined() | Synced() | Heartbeat() | Leave() | Commit():
            return f"{event.error} is not the answer: {_standing(event, group)}"
        case Rebalance():
            return f"nothing makes it rebalance after generation {event.generation}{_because(event)}: {_is(group)}"
        case Expire():
            return f"{event.member} is not removed by its {event.reason or 'session'} timer: {_clock(event.member or '', state, now)}"
        case Replace():
            holder = group.holder(event.instance)
            held = f"its member id is {holder.id}" if holder is not None else "it is no member"
            return f"{event.member} does not replace {event.old_member} as {event.instance}: {held}"
        case Assignment():
            return f"this is not the record of generation {event.generation}: {_is(group)}"
        case Load():
            return f"generation {event.generation} is not what its log holds"
        case _:
            return _is(group)


def _not_completed(generation: int | None, state: Replica, now: int, event: Event) -> str:
    group = state.group
    fact = next((f for f in state.facts if isinstance(f, GenerationStarted) and f.generation == generation), None)
    if fact is not None:
        return f"generation {generation} has {_names(fact.members or ())} and is led by {fact.leader}"
    begins = f"generation {generation} can't be completed"
    if group.state != "PreparingRebalance":
        return f"{begins}: {_is(group)}, and no rebalance has begun"
    if generation is not None and generation != group.generation + 1:
        return f"{begins}: the next one is {group.generation + 1}"
    missing = [m.id for m in group.members if m.join is None] + [p.id for p in group.pending]
    if missing:
        left = next(
            (f"the rebalance timer runs {_left(t, now)} more" for t in timers(state) if t.kind == "join" and t.deadline > now), None
        )
        return f"{begins}: {_names(missing)} {'have' if len(missing) > 1 else 'has'} not joined" + (f"; {left}" if left else "")
    members = getattr(event, "members", None)
    extra = sorted(set(members or ()) - {m.id for m in group.members}) if members is not None else []
    if extra:
        return f"{begins} with {_names(extra)}, who did not join"
    return f"{begins} as captured: it would have {_names(m.id for m in group.members)}"


def _standing(event: Event, group: Group) -> str:
    member = group.member(event.member or "")
    if member is None and event.instance is not None and (holder := group.holder(event.instance)) is not None:
        return f"{event.instance} is {holder.id} now"
    if member is None:
        pending = " but has been given its id" if group.is_pending(event.member or "") else ""
        return f"{event.member or 'the sender'} is no member{pending}, and {_is(group)}"
    named = event.generation
    if named is not None and named != group.generation and not isinstance(event, Joined):
        return f"it names generation {named}, and {_is(group)}"
    return _is(group)


def _is(group: Group) -> str:
    """The state in words."""
    match group.state:
        case "Empty":
            return f"the group is empty since generation {group.generation}" if group.generation else "nobody has joined the group"
        case "PreparingRebalance":
            return f"the group prepares to rebalance after generation {group.generation}"
        case "CompletingRebalance":
            return f"the group waits for the assignment of generation {group.generation}"
        case "Stable":
            return f"the group is stable in generation {group.generation}"
        case "Dead":
            return "the coordinator has let the group go"


def _because(event: Rebalance) -> str:
    said = (event.reason or "").partition("; client reason: ")[0]
    return f" ({said})" if said else ""


def _leader_awaited(group: Group) -> str:
    return f"its leader {group.leader} has not sent SyncGroup"


def _awaited(state: Replica) -> Iterator[str]:
    group = state.group
    if group.state == "PreparingRebalance":
        missing = [m.id for m in group.members if m.join is None] + [p.id for p in group.pending]
        yield f"wait for JoinGroup of {_names(missing)}" if missing else "end the join phase"
    elif group.state == "CompletingRebalance" and not state.appends:
        yield f"wait for SyncGroup of the leader {group.leader}"
    elif state.appends:
        yield "wait for its log"


def _timers(state: Replica, now: int) -> Iterator[str]:
    for timer in timers(state):
        if timer.deadline > now:
            yield f"{_timer(timer)} ends in {_left(timer, now)}"


def _timer(timer: Timer) -> str:
    match timer.kind:
        case "join":
            return "the join phase"
        case "sync":
            return "the wait for SyncGroup"
        case "session":
            return f"the session of {timer.member}"
        case _:
            return f"the wait for {timer.member} to join"


def _clock(member: str, state: Replica, now: int) -> str:
    known = state.group.member(member)
    if known is None and not state.group.is_pending(member):
        return "it is no member"
    if known is not None and UNKNOWN_TIMEOUT in (known.session_timeout_ms,):
        return _is(state.group)
    mine = [timer for timer in timers(state) if timer.member in (member, "") and timer.deadline > now]
    return "; ".join(f"{_timer(timer)} runs {_left(timer, now)} more" for timer in mine) or _is(state.group)


def _left(timer: Timer, now: int) -> str:
    return f"{(timer.deadline - now) / 1000:.1f} s"


def _names(members: Iterable[str]) -> str:
    names = list(members)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "") if names else "no members"
