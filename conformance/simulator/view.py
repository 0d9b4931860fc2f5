"""What the page shows of a session, as plain data for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...model import consumer
from ...model.acts import Act, Advance, Close, Commit, Crash, Cut, Delay, Pause, Raise, Resume, Stall, Start, Subscribe
from ...model.connect import worker
from ...model.mutations import REFERENCE
from ...model.runs import unrest
from ...model.world import Client, Menu, World, actions, due, ordinary, owned
from ...spec.events import Heartbeat
from ...spec.results import Finding, GroupResult, RuleResult, Status
from ...spec.rule import Rule
from ...spec.rules import RULES
from ..reports.page import Names, document, texts
from ..timeline import Timeline, timeline
from .session import ONCE, TRACE, Session, Step, assumed, judged
from .words import busy, seconds, words

Json = Mapping[str, object]

TOLD = 12
"""How many sentences of the last step are told."""

_BUTTONS: Mapping[type[Act], str] = {
    Start: "Start",
    Close: "Close",
    Crash: "Crash",
    Pause: "Pause",
    Stall: "Stall",
    Resume: "Go on",
    Commit: "Commit",
    Raise: "Callback throws",
    Delay: "Hold up",
    Cut: "Cut off",
}


def view(session: Session) -> Json:
    """Everything that the page shows."""
    world, group = session.world, judged(session)
    picture = timeline(group, session.events) if group is not None else None
    possible = actions(replace(world, faults=ONCE, menu=Menu(subscriptions=(("?",),))))
    last = session.steps[-1] if session.steps else None
    return {
        "mutation": _mutation(session.mutation),
        "now": seconds(world.now),
        "group": {
            "state": world.group.state if not world.group.loading else "Loading",
            "generation": world.group.generation,
            "epoch": world.epoch,
            "protocol": world.group.protocol,
        },
        "connect": any(isinstance(client.config, worker.Config) for client in world.clients),
        "topics": [{"name": name, "partitions": count} for name, count in world.topics],
        "members": [_member(world, client, possible, picture) for client in world.clients],
        "next": [{"line": str(act), "words": words(world, act)} for act in _next(world)],
        "unrest": list(unrest(world)) if world.clients else [],
        "said": list(_said(last, picture)) if last is not None else [],
        "steps": [{"line": str(taken.command), "happened": taken.happened} for taken in session.steps],
        "ahead": [str(command) for command in session.ahead],
        "events": session.seen,
        "validate": _validate(session),
        "promises": [_promise(rule, group, picture) for rule in RULES.values()],
        "timeline": {**document(picture), "text": texts(picture)} if picture is not None else None,
    }


def _next(world: World) -> Sequence[Act]:
    """What may happen by itself: what is due, in a fair order; else time first, for who was held up stays so until somebody says otherwise."""
    acts = ordinary(world)
    return acts if due(world) else sorted(acts, key=lambda act: not isinstance(act, Advance))


def _validate(session: Session) -> str:
    """The command that judges the saved trace as it was judged here."""
    settings = assumed(session)
    return f"kipcheck validate {TRACE} --clock-skew {settings.clock_skew_ms}ms --connect-max-delay {settings.max_delay_ms}ms"


def _mutation(name: str | None) -> Json | None:
    mutant = REFERENCE[name] if name else None
    return mutant and {"name": mutant.name, "what": mutant.what, "breaks": list(mutant.breaks), "history": mutant.history}


def _member(world: World, client: Client, possible: Sequence[Act], picture: Timeline | None) -> Json:
    state, config = client.state, client.config
    mine = [act for act in possible if getattr(act, "who", None) == client.name]
    member = _member_id(state) if state is not None else ""
    return {
        "name": client.name,
        "instance": config.instance if isinstance(config, consumer.Config) else None,
        "mode": client.mode,
        "member": member,
        "leads": bool(member) and member == world.group.leader,
        "state": _state(client),
        "owned": list(owned(client)),
        "fenced": sorted(_fenced(member, picture)),
        "subscribed": list(state.subscription) if isinstance(state, consumer.Consumer) else None,
        "config": list(_configured(config)),
        "buttons": [{"line": str(act), "label": _label(client, act), "words": words(world, act)} for act in mine if type(act) in _BUTTONS],
        "subscribes": any(isinstance(act, Subscribe) for act in mine),
    }


def _fenced(member: str, picture: Timeline | None) -> set[str]:
    """What a member still believes to own, though the group went on without it."""
    if picture is None:
        return set()
    end = len(picture.steps) - 1
    bars = (bar for bar in picture.bars if bar.state == "stale" and bar.last >= end and picture.lanes[bar.lane].member == member)
    return {bar.resource for bar in bars}


def _label(client: Client, act: Act) -> str:
    return "Restart" if isinstance(act, Start) and client.lives else _BUTTONS[type(act)]


def _member_id(state: consumer.Consumer | worker.Worker) -> str:
    return state.member if isinstance(state, worker.Worker) else state.identity.member


def _state(client: Client) -> str:
    """Where a process stands, in words."""
    state = client.state
    if state is None:
        return "does not run" if client.lives else "not started yet"
    membership = state.state if isinstance(state, worker.Worker) else state.member_state
    doing = {"unjoined": "outside the group", "preparing": "joining", "completing": "waits for its assignment", "stable": "stable"}
    told = [doing[membership.value]]
    told += [f"in on{running}"] if (running := busy(client)) else []
    told += [{"stalled": "stalled", "paused": "paused"}[client.mode]] if client.mode in ("stalled", "paused") else []
    told += ["held up"] if client.slow else []
    told += [client.failed] if client.failed else []
    return ", ".join(told)


def _configured(config: consumer.Config | worker.Config) -> Iterator[str]:
    if isinstance(config, worker.Config):
        yield config.protocol
        yield f"delay {seconds(config.max_delay_ms)}"
    else:
        yield ", ".join(config.assignors)
    yield f"session {seconds(config.session_timeout_ms)}"
    yield f"rebalance {seconds(config.rebalance_timeout_ms)}"
    yield f"heartbeat {seconds(config.heartbeat_interval_ms)}"


def _said(step: Step, picture: Timeline | None) -> Iterator[str]:
    """What the last step did, its latest sentences."""
    if not step.happened:
        yield "This can't happen now: it was left out."
        return
    before = step.seen - len(step.events)
    told = [shown.step for shown in picture.steps] if picture is not None else []
    new = [each.says for each in told if any(event.src is not None and event.src.line > before for event in each.sightings)]
    yield from (f"… {len(new) - TOLD} before",) if len(new) > TOLD else ()
    yield from map(Names(picture.lanes), new[-TOLD:]) if picture is not None else ()
    yield from (f"{client}: its application was told {error}" for client, error in step.errors)
    if not new and step.events and all(isinstance(event, Heartbeat) for event in step.events):
        yield "nothing but heartbeats"


# Promises.


def _promise(rule: Rule, group: GroupResult | None, picture: Timeline | None) -> Json:
    result = group.rules[rule.id] if group is not None else RuleResult(Status.UNKNOWN)
    short = Names(picture.lanes) if picture is not None else str
    found = [(at, each) for at, each in enumerate(picture.findings) if each.finding.rule == rule.id] if picture is not None else []
    return {
        "id": rule.id,
        "kip": rule.kip,
        "promise": rule.promise,
        "status": _status(result, [cited.finding for _, cited in found]),
        "checked": result.checked,
        "why": result.why,
        "findings": [
            {
                "number": number,
                "fingerprint": cited.finding.fingerprint,
                "message": short(cited.finding.message),
                "relaxed": cited.finding.relaxed,
                "argument": [
                    {"says": short(step.says), "place": place} for step, place in zip(cited.finding.argument, cited.places, strict=True)
                ],
            }
            for number, cited in found
        ],
    }


def _status(result: RuleResult, findings: Sequence[Finding]) -> str:
    """``open``, ``held``, ``broken``, or ``noted``: broken, but legal, known of a release, or a matter of cost."""
    if any(finding.severity == "error" for finding in findings):
        return "broken"
    if findings:
        return "noted"
    return "held" if result.status is Status.PASS else "open"
