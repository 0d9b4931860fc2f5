"""The reference coordinator as it may be after what was captured so far, and the hidden steps that it may take next.

What a capture leaves open is a step that may be taken or not: which waiting request is next, whether a timer that is due has fired,
whether the log has answered, which request was not captured. A step that gives another answer than the captured one, or the
captured one at another time, is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, cast

from ...model import coordinator
from ...model.choice import Choose
from ...model.coordinator import Append, Group, GroupRecord, Release, Step, Timer
from ...model.messages import (
    Address,
    CommitRequest,
    CommitResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    LeaveResponse,
    Response,
    SyncRequest,
    SyncResponse,
)
from ...spec.events import (
    NONE,
    Event,
    Expire,
    GenerationStarted,
    Joined,
    Load,
    Rebalance,
    Replace,
    Synced,
)
from .evidence import UNKNOWN_SHARE, UNKNOWN_TIMEOUT, Answered, Evidence, Exchange, Known, cause

LATE_MS = 2_000
"""How late a timer fires, or an answer is written down, at the most."""
EARLY_MS = 50
"""How early a timer may seem to fire: logs have milliseconds, and requests are dated back."""
_IDS = 1 << 60
"""From here on the model numbers member ids, before they are given their captured names."""
_FACTS_KEPT = 2
"""Generations of which is remembered what happened."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One state that the coordinator may be in.

    ``waiting`` are exchanges that have arrived and were not taken; ``answers`` were given and not seen yet; ``facts`` is what an
    observer inside has seen of late.
    """

    group: Group
    epoch: int = 0
    waiting: frozenset[int] = frozenset()
    answers: tuple[tuple[int, Response], ...] = ()
    appends: tuple[Append, ...] = ()
    record: GroupRecord | None = None
    facts: tuple[Event, ...] = ()
    records: tuple[GroupRecord, ...] = ()
    early: frozenset[int] = frozenset()
    """Exchanges that were taken before they were captured."""
    lost: tuple[GroupRecord | None, ...] = ()
    """What another coordinator may find in the log, while the group is loading."""

    def given(self, exchange: int) -> Response | None:
        return next((response for number, response in self.answers if number == exchange), None)

    def without(self, exchange: int) -> Replica:
        """The exchange is over."""
        return replace(
            self,
            waiting=self.waiting - {exchange},
            answers=tuple(each for each in self.answers if each[0] != exchange),
        )

    @property
    def likeness(self) -> object:
        """States that have it in common go on alike."""
        return self.group, self.epoch, self.waiting, self.answers, self.appends, self.early, len(self.facts)


@dataclass(frozen=True, slots=True)
class Refused:
    """A step that the capture contradicts: the model ``would`` do this at ``now`` (ms), where ``exchange`` (or nothing) was seen."""

    would: str
    now: int
    exchange: int = -1
    event: Event | None = None
    """The captured event that says otherwise, where it is no answer."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A step that nothing shows: ``says`` what, ``cost`` how far it is from the likeliest."""

    says: str
    cost: int
    after: Replica | Refused


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference coordinator of one release, told what was captured."""

    evidence: Evidence
    release: Release

    # Hidden steps.

    def take(self, replica: Replica, exchange: Exchange, now: int, *, changed: bool = False) -> Replica | Refused:
        """The coordinator takes the request; ``changed``: its metadata differ in what no capture shows."""
        request = exchange.request
        if isinstance(request, JoinRequest):
            request = _as_known(replica.group, request, exchange.number if changed else None)
        group = replica.group
        group = replace(group, ids_given=_IDS + exchange.number)
        step = coordinator.receive(group, self.release, Address("", exchange.number), request, now, self._choice(replica))
        if exchange.given and step.group.ids_given > group.ids_given:
            made = f"{request.instance or request.client}-{step.group.ids_given}" if isinstance(request, JoinRequest) else ""
            step = _renamed(step, made, exchange.given)
        step = step._replace(group=replace(step.group, ids_given=0))
        if exchange.number < 0 or exchange.number in replica.waiting:
            return self._after(replace(replica, waiting=replica.waiting - {exchange.number}), step, now)
        return self._after(replace(replica, early=replica.early | {exchange.number}), step, now)

    def at_ease(self, replica: Replica) -> Replica:
        """After what waits and may as well be taken now as later."""
        held: set[str] = set()
        for number in sorted(replica.waiting):
            exchange = self.evidence.exchanges[number]
            if exchange.at_ms is not None and exchange.sender not in held and self._at_ease(replica, exchange):
                after = self.take(replica, exchange, exchange.at_ms)
                replica = replica if isinstance(after, Refused) or not _goes_on(replica, after, exchange) else after
            if number in replica.waiting and isinstance(exchange.request, JoinRequest | SyncRequest):
                held.add(exchange.sender)
        return replica

    def _at_ease(self, replica: Replica, exchange: Exchange) -> bool:
        """Heartbeats and commits restart a session from when they arrived. Who is admitted to the next generation joined for it, and who
        is given its share of this one has sent SyncGroup for it, in whatever order. A group without a leader is led by who comes first.
        """
        group, answer = replica.group, exchange.answer
        match exchange.request:
            case HeartbeatRequest() | CommitRequest():
                return True
            case JoinRequest(member=str(member)) if member and isinstance(answer, Joined) and answer.error == NONE:
                leads = self.evidence.known(replica.epoch, group.generation + 1).leader
                soon = group.initial_delay is None and (group.join_deadline or 0) <= (exchange.at_ms or 0) + EARLY_MS
                waits = group.state == "PreparingRebalance" and answer.generation == group.generation + 1
                return waits and not soon and (group.leader is not None or member == leads)
            case SyncRequest(generation=generation) if isinstance(answer, Synced) and answer.error == NONE:
                return generation == group.generation and group.state in ("CompletingRebalance", "Stable")
            case _:
                return False

    def fire(self, replica: Replica, timer: Timer, now: int) -> Replica | Refused:
        """A timer fires at ``now``, which may be a little before its deadline."""
        group = replica.group
        if timer.kind == "join":
            group = replace(group, join_deadline=min(timer.deadline, now))
        elif timer.kind == "sync":
            group = replace(group, sync_deadline=min(timer.deadline, now))
        elif timer.kind == "pending":
            group = replace(
                group, pending=tuple(replace(p, deadline=min(p.deadline, now)) if p.id == timer.member else p for p in group.pending)
            )
        else:
            group = replace(
                group,
                members=tuple(
                    replace(m, deadline=min(m.deadline, now)) if m.id == timer.member and m.deadline is not None else m
                    for m in group.members
                ),
            )
        armed = timer._replace(deadline=min(timer.deadline, now))
        return self._after(replica, coordinator.fire(group, self.release, armed, now, self._choice(replica)), now)

    def store(self, replica: Replica, now: int, error: str = NONE) -> Replica | Refused:
        """The log answers the oldest append."""
        append, *rest = replica.appends
        kept = replica.records if append.record is None or error != NONE else (*replica.records, append.record)
        moved = replace(replica, appends=tuple(rest), record=append.record if error == NONE else replica.record, records=kept)
        return self._after(moved, coordinator.appended(replica.group, self.release, append, error, now, self._choice(replica)), now)

    def resign(self, replica: Replica, epoch: int, now: int) -> Replica:
        """Another coordinator begins to read the log; of the appends under way the older ones may have made it."""
        step = coordinator.unload(replica.group, self.release, now)
        made = [replica.record, *(append.record for append in replica.appends)]
        return replace(
            replica,
            group=coordinator.loading(replica.group.id, ids_given=replica.group.ids_given),
            epoch=epoch,
            answers=(*replica.answers, *((reply.to.correlation, reply.response) for reply in step.replies)),
            appends=(),
            facts=(),
            lost=tuple(dict.fromkeys((*reversed(made), None))),
        )

    def load(self, replica: Replica, record: GroupRecord | None, now: int) -> Replica | Refused:
        step = coordinator.load(replica.group.id, self.release, record, now, ids_given=replica.group.ids_given)
        return self._after(replace(replica, record=record, lost=()), step, now)

    def _after(self, replica: Replica, step: Step, now: int) -> Replica | Refused:
        """Take over a step, unless it contradicts the capture."""
        for reply in step.replies:
            exchange = self.evidence.exchanges[reply.to.correlation] if reply.to.correlation >= 0 else None
            if exchange is not None and (refused := self._contradicts(exchange, reply.response, now)):
                return refused
        for event in step.events:
            if isinstance(event, GenerationStarted) and (why := self._another(replica.epoch, event, now)):
                return Refused(why, now, event=self.evidence.known(replica.epoch, event.generation or 0).told)
            if isinstance(event, Rebalance) and (why := self._another_cause(replica.epoch, event)):
                return Refused(why, now)
        facts = tuple(e for e in step.events if isinstance(e, Rebalance | GenerationStarted | Expire | Replace | Load))
        kept = replica.facts
        if any(isinstance(fact, GenerationStarted) for fact in facts):
            oldest = step.group.generation - _FACTS_KEPT
            kept = tuple(fact for fact in kept if (fact.generation or 0) >= oldest)
            replica = replace(replica, records=tuple(r for r in replica.records if r.generation >= oldest))
        return replace(
            replica,
            group=step.group,
            answers=(*replica.answers, *((r.to.correlation, r.response) for r in step.replies if r.to.correlation >= 0)),
            appends=(*replica.appends, *step.appends),
            facts=(*kept, *facts),
        )

    # What the capture says of it.

    def _choice(self, replica: Replica) -> Choose:
        known = self.evidence.known(replica.epoch, replica.group.generation + 1)

        def choose(what: str, options: Sequence[Any], /) -> Any:
            wanted = known.leader if what == "leader" else known.protocol
            return wanted if wanted in options else options[0]

        return choose

    def _contradicts(self, exchange: Exchange, response: Response, now: int) -> Refused | None:
        answer = exchange.answer
        if answer is None:
            return None
        known = self.evidence.known(exchange.epoch, answer.generation or 0)
        if not agrees(answer, response, known):
            return Refused(f"answer {_request(exchange)} {told(response)}", now, exchange.number)
        if exchange.answered is not None and exchange.answered // 1000 - now > LATE_MS:
            seconds = (exchange.answered / 1000 - now) / 1000
            return Refused(f"answer {_request(exchange)} {told(response)} {seconds:.1f} s earlier", now, exchange.number)
        return None

    def _another(self, epoch: int, event: GenerationStarted, now: int) -> str | None:
        """Why the generation that the model completes is not the captured one."""
        known = self.evidence.generations.get((epoch, event.generation or 0))
        members = frozenset(event.members or ())
        if known is None:
            return None
        if (known.members is not None and known.members != members) or (known.count is not None and known.count != len(members)):
            return f"complete generation {event.generation} with {_names(members)}"
        if members and known.leader is not None and known.leader != event.leader and event.leader is not None:
            return f"complete generation {event.generation} with {event.leader} as its leader"
        if known.protocol is not None and event.protocol is not None and known.protocol != event.protocol:
            return f"complete generation {event.generation} with {event.protocol}"
        if known.started is not None and known.started // 1000 - now > LATE_MS:
            return f"complete generation {event.generation} {(known.started / 1000 - now) / 1000:.1f} s earlier"
        return None

    def _another_cause(self, epoch: int, event: Rebalance) -> str | None:
        """Why the rebalance that the model begins is not the captured one."""
        captured, modelled = self.evidence.known(epoch, event.generation or 0).cause, cause(event)
        if captured is None or modelled is None or captured == modelled:
            return None
        return f"begin the rebalance after generation {event.generation} because of {modelled}"


def agrees(answer: Answered, response: Response, known: Known) -> bool:
    """Whether the captured answer is the model's, as far as it was captured."""
    if answer.error != response.error:
        return False
    match answer, response:
        case Joined(error="NONE"), JoinResponse():
            pairs = (
                (answer.generation, response.generation),
                (answer.member or None, response.member),
                (answer.leader, response.leader),
                (answer.protocol, response.protocol),
            )
            return all(captured is None or captured == modelled for captured, modelled in pairs)
        case Synced(error="NONE"), SyncResponse(share=share):
            if answer.resources is None or share == UNKNOWN_SHARE:
                return True
            return frozenset(answer.resources) == frozenset(share.resources if share is not None else ())
        case _:
            return True


def timers(replica: Replica) -> Iterator[Timer]:
    """The timers that are armed; deadlines that rest on a timeout that was not captured have come already."""
    group = replica.group
    vague = group.initial_delay is not None or any(m.rebalance_timeout_ms == UNKNOWN_TIMEOUT for m in group.members)
    for timer in coordinator.timers(group):
        yield timer._replace(deadline=0) if timer.kind in ("join", "sync") and vague else timer


def is_vague(replica: Replica, timer: Timer) -> bool:
    """Whether it is not known at all when the timer fires: it rests on a member's timeout that was not captured."""
    if timer.kind in ("join", "sync"):
        return timer.deadline <= 0 and replica.group.initial_delay is None
    member = replica.group.member(timer.member)
    return member is not None and not member.is_new and member.session_timeout_ms == UNKNOWN_TIMEOUT


def overdue(replica: Replica, now: int, *, heartbeats: frozenset[str]) -> Timer | None:
    """A timer that must have fired by ``now``: what would put it off would have been captured."""
    for timer in timers(replica):
        if timer.deadline <= 0 or timer.deadline + LATE_MS >= now:
            continue
        if timer.kind in ("join", "sync"):
            return timer
        member = replica.group.member(timer.member)
        if timer.member in heartbeats and timer.kind == "session" and member is not None and member.session_timeout_ms != UNKNOWN_TIMEOUT:
            return timer
    return None


def _goes_on(before: Replica, after: Replica, exchange: Exchange) -> bool:
    """Whether nothing but ``exchange`` itself comes of taking it."""
    same = (before.group.state, before.group.generation, before.facts, before.appends)
    own = all(number == exchange.number for number, _ in after.answers[len(before.answers) :])
    return own and same == (after.group.state, after.group.generation, after.facts, after.appends)


def _as_known(group: Group, request: JoinRequest, changed: int | None) -> JoinRequest:
    """The request with what no capture shows of its metadata: as the group has it, or else ``changed``."""
    member = group.member(request.member) or group.holder(request.instance)
    before = member.protocols[0][1].user_data if member is not None and member.protocols else None
    data = before if changed is None else changed
    protocols = tuple((name, replace(metadata, user_data=data)) for name, metadata in request.protocols)
    return replace(request, protocols=protocols)


def may_have_changed(group: Group, request: JoinRequest) -> bool:
    """Whether it makes a difference if the metadata differ in what no capture shows."""
    member = group.member(request.member)
    if member is None or group.state not in ("Stable", "CompletingRebalance"):
        return False
    return _as_known(group, request, None).protocols == member.protocols


def _renamed(value: Any, old: str, new: str) -> Any:
    """``value`` with the member id ``old`` called ``new``, wherever it stands."""
    match value:
        case str():
            return value.replace(old, new) if old in value else value
        case tuple():
            items: list[Any] = [_renamed(item, old, new) for item in cast("tuple[Any, ...]", value)]
            return cast("Any", type(cast("object", value)))(*items) if hasattr(cast("object", value), "_fields") else tuple(items)
        case dict():
            return {_renamed(k, old, new): _renamed(v, old, new) for k, v in cast("dict[Any, Any]", value).items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            changes = {f.name: _renamed(getattr(value, f.name), old, new) for f in fields(value) if f.init}
            return replace(value, **changes)
        case _:
            return value


# Words.


def told(response: Response) -> str:
    """An answer in a few words."""
    if response.error != NONE:
        return f"with {response.error}"
    match response:
        case JoinResponse():
            return f"with generation {response.generation}, led by {response.leader}"
        case SyncResponse(share=share):
            return f"with {', '.join(share.resources) or 'nothing' if share is not None else 'nothing'}"
        case HeartbeatResponse() | LeaveResponse() | CommitResponse():
            return "with NONE"


_APIS = {
    "JoinRequest": "JoinGroup",
    "SyncRequest": "SyncGroup",
    "HeartbeatRequest": "heartbeat",
    "LeaveRequest": "LeaveGroup",
    "CommitRequest": "commit",
}


def _request(exchange: Exchange) -> str:
    request = exchange.request
    answer = exchange.answer
    who = request.member or (answer.member if answer is not None else None) or request.instance or "a new member"
    return f"the {_APIS[type(request).__name__]} of {who}"


def _names(members: frozenset[str]) -> str:
    return ", ".join(sorted(members)) or "no members"
