"""Whether a state has done what was captured: given an answer, or done what a line of the coordinator's log or a record shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...model.messages import Share
from ...spec.events import Assignment, Event, Expire, GenerationStarted, Load, Rebalance, Replace
from .evidence import UNKNOWN_SHARE, Exchange, Point, cause
from .replica import Replica

Reached = Callable[[Replica], "Replica | None"]
"""The state once it has done it, None if it has not."""


def answered(exchange: Exchange, point: Point) -> Reached:
    number = exchange.number

    def reached(state: Replica) -> Replica | None:
        if point.what == "taken":
            return state if number not in state.waiting else None
        return state.without(number) if state.given(number) is not None else None

    return reached


def seen(event: Event) -> Reached:
    def reached(state: Replica) -> Replica | None:
        if isinstance(event, Assignment):
            return state if _recorded(state, event) else None
        return state if any(_is_it(event, fact) for fact in state.facts) else None

    return reached


def _is_it(event: Event, fact: Event) -> bool:
    """Whether a captured line tells of ``fact``, as far as it says."""
    match event, fact:
        case Rebalance(), Rebalance():
            return _same(event.generation, fact.generation) and _same(cause(event), cause(fact))
        case GenerationStarted(), GenerationStarted():
            members = None if event.members is None else frozenset(event.members)
            size = event.extra.get("members_count")
            return (
                event.generation == fact.generation
                and _same(members, frozenset(fact.members or ()))
                and _same(size, len(fact.members or ()))
                and _same(event.leader or None, fact.leader)
                and _same(event.protocol or None, fact.protocol)
            )
        case Expire(), Expire():
            return _same(event.member, fact.member) and _same(event.reason, fact.reason)
        case Replace(), Replace():
            return _same(event.member, fact.member) and _same(event.old_member, fact.old_member) and _same(event.instance, fact.instance)
        case Load(), Load():
            return _same(event.generation, fact.generation)
        case _:
            return False


def _same(captured: object, modelled: object) -> bool:
    return captured is None or modelled is None or captured == modelled


def _recorded(state: Replica, event: Assignment) -> bool:
    ids = None if event.members is None else frozenset(event.members)
    if state.records and (event.generation or 0) < state.records[0].generation:
        return True
    for record in state.records:
        if record.generation != event.generation or not _same(ids, frozenset(m.id for m in record.members)):
            continue
        shares = {m.id: m.share for m in record.members}
        given = event.assignment or {}
        if all(m in shares and _gets(shares[m], resources) for m, resources in given.items()):
            return True
    return False


def _gets(share: Share | None, resources: Sequence[str]) -> bool:
    return share == UNKNOWN_SHARE or frozenset(resources) == frozenset(share.resources if share is not None else ())
