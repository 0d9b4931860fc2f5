"""A session: a run of the reference world that a user steers, as a frozen value.

A command makes a step; the steps so far are the run, and those taken back, or not played yet, lie ahead. A mutation is on
from the beginning: when it changes, the run is played again on the mutated world, and what can't happen there is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ...model import explorer
from ...model.acts import Act, Advance, Fall, Line, Resign, Resize, Start, Subscribe, Wander
from ...model.choice import first
from ...model.connect import worker
from ...model.mutations import REFERENCE, SCENARIOS, explore
from ...model.runs import picking, unrest
from ...model.scenarios import MAX_DELAY_MS, cast, opening
from ...model.world import Client, Config, Faults, Menu, Moved, World, actions, due, next_deadline, step
from ...spec.check import check_group
from ...spec.events import Event, Heartbeat, Source
from ...spec.results import GroupResult, Settings
from ...spec.trace import encode
from .script import MOST_LINES, MOST_MEMBERS, MOST_TOPICS, Add, Command, Due, Script, Settle, Wait

TRACE, SCRIPT = "run.jsonl", "run.txt"
"""What the trace of a session is called, as findings cite it, and its script."""

MOST_EVENTS = 10_000
"""Of a session, so that a step and its judgement take less than half a second."""

MOST_ACTS = 2_000
"""Of one command."""

ONCE = Faults(**dict.fromkeys(Faults.__dataclass_fields__, 1))
"""The budget for any one act: a user may do whatever the world allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a command did: the world after it, what observers saw, and what calls threw, as (client, error).

    ``seen`` counts the events up to its end. ``happened`` is False where the command could not be obeyed, as the run is played
    again on a mutated world.
    """

    command: Command
    world: World
    seen: int
    events: tuple[Event, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()
    happened: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A run so far. ``start`` is the world before it, without a mutation; ``ahead`` is what may be played next."""

    start: World
    scenario: str | None = None
    mutation: str | None = None
    steps: tuple[Step, ...] = ()
    ahead: tuple[Command, ...] = ()

    @property
    def world(self) -> World:
        return self.steps[-1].world if self.steps else _mutated(self.start, self.mutation)

    @property
    def seen(self) -> int:
        """How many events there are."""
        return self.steps[-1].seen if self.steps else 0

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(event for taken in self.steps for event in taken.events)

    @property
    def script(self) -> Script:
        """What happened so far, as a script that plays the same run."""
        commands = tuple(taken.command for taken in self.steps if taken.happened)
        return Script(scenario=self.scenario, mutation=self.mutation, commands=commands)


# How a session begins.


def begin(script: Script) -> Session:
    """A session in which the script has been played. Raises ValueError where a command can't be obeyed."""
    session = _opened(script.scenario, script.mutation)
    for number, command in enumerate(script.commands, 1):
        try:
            session = obey(session, command)
        except ValueError as error:
            raise ValueError(f"step {number} of the script, {command}: {error}") from error
    return session


def scenario(name: str, mutation: str | None = None) -> Session:
    """A session in which a scenario of the model has begun."""
    session = _opened(name, mutation)
    for taken in opening(session.world, SCENARIOS[name].running):
        session = obey(session, taken.line)
    return session


def counterexample(mutation: str) -> Session:
    """The shortest run that the explorer finds against a mutation; what follows its opening lies ahead.

    Raises ValueError if no observer can see the mutation, or the explorer gives up.
    """
    mutant = REFERENCE[mutation]
    if not mutant.scenario:
        raise ValueError(f"no run shows it: {mutant.unseen}")
    found = explore(mutant)
    if found.counterexample is None:
        raise ValueError(f"no run that breaks it was found in {found.worlds:,} worlds")
    return replace(scenario(mutant.scenario, mutation), ahead=found.counterexample.script)


def _opened(scenario: str | None, mutation: str | None) -> Session:
    world = SCENARIOS[scenario].world if scenario else cast({}, topics={})
    return Session(start=replace(world, faults=Faults()), scenario=scenario, mutation=mutation)


def _mutated(world: World, mutation: str | None) -> World:
    return explorer.mutated(world, mutation, *REFERENCE[mutation].needs) if mutation else world


# What a user does.


def obey(session: Session, command: Command) -> Session:
    """The session after one more step. What was ahead is forgotten, unless this was its next command.

    Raises ValueError if the command can't be obeyed now.
    """
    ahead = session.ahead[1:] if session.ahead[:1] == (command,) else ()
    return replace(session, steps=(*session.steps, _taken(session, command)), ahead=ahead)


def go(session: Session, to: int) -> Session:
    """The session after so many steps: the others lie ahead, or those that lay ahead are done, as far as they can be.

    Raises ValueError if there is no such step.
    """
    done = len(session.steps)
    if not 0 <= to <= done + len(session.ahead):
        raise ValueError("there is no such step")
    if to <= done:
        taken_back = tuple(taken.command for taken in session.steps[to:])
        return replace(session, steps=session.steps[:to], ahead=(*taken_back, *session.ahead))
    played = _again(session, session.ahead[: to - done])
    return replace(played, ahead=session.ahead[to - done :])


def mutate(session: Session, mutation: str | None) -> Session:
    """The same commands from the beginning, with a mutation or without; those that can't be obeyed now are left out."""
    played = _again(_opened(session.scenario, mutation), [taken.command for taken in session.steps])
    return replace(played, ahead=session.ahead)


def _again(session: Session, commands: Iterable[Command]) -> Session:
    """Commands that were obeyed in a run like this one."""
    for command in commands:
        try:
            again = _taken(session, command)
        except ValueError:
            again = Step(command=command, world=session.world, seen=session.seen, happened=False)
        session = replace(session, steps=(*session.steps, again))
    return session


def _taken(session: Session, command: Command) -> Step:
    if len(session.steps) >= MOST_LINES or session.seen >= MOST_EVENTS:
        raise ValueError(f"this run has come to its limit of {MOST_EVENTS:,} events or {MOST_LINES:,} steps: save it, and begin a new one")
    moved = _done(session, command)
    told = tuple(_sourced(event, number) for number, event in enumerate(moved.events, session.seen + 1))
    world = replace(moved.world, faults=Faults())
    return Step(command=command, world=world, seen=session.seen + len(told), events=told, errors=moved.errors)


def _sourced(event: Event, number: int) -> Event:
    """The event with the line of the trace that it will be saved as."""
    return replace(event, src=Source(TRACE, number, json.dumps(encode(event), ensure_ascii=False)))


def _done(session: Session, command: Command) -> Moved:
    world = session.world
    match command:
        case Line(act, picks):
            return _acted(world, act, picks)
        case Add(config):
            return _added(world, config, session.mutation)
        case Due():
            return _played(world, _until_due_is_done(world))
        case Settle():
            return _played(world, _until_it_rests(world))
        case Wait(milliseconds):
            return _played(world, _until(world, world.now + milliseconds))


def _acted(world: World, act: Act, picks: Sequence[int]) -> Moved:
    ready = _ready(world, act)
    if act not in actions(ready):
        raise ValueError(_why_not(world, act))
    if isinstance(act, Resize) and len({*dict(world.topics), act.topic}) > MOST_TOPICS:
        raise ValueError(f"there can be at most {MOST_TOPICS} topics")
    try:
        return step(ready, act, picking(picks))
    except IndexError as error:
        raise ValueError("a decision takes an option that there is not") from error


def _ready(world: World, act: Act) -> World:
    """The world with the budget that any one act may need."""
    sizes = ((act.topic, act.partitions),) if isinstance(act, Resize) else ()
    subscriptions = (act.topics,) if isinstance(act, Subscribe) else ()
    return replace(world, faults=ONCE, menu=Menu(sizes=sizes, subscriptions=subscriptions))


def _why_not(world: World, act: Act) -> str:
    """Why an act can't happen now, as far as it is plain."""
    who = getattr(act, "who", None)
    client = next((each for each in world.clients if each.name == who), None)
    if who is not None and client is None:
        return f"there is no {who}"
    match act:
        case Start() if client is not None:
            return f"{client.name} runs already"
        case Advance():
            return "time stands still while something is due"
        case Resize(topic, partitions) if dict(world.topics).get(topic, 0) == partitions:
            return f"{topic} has {partitions} partitions already" if partitions else f"there is no {topic}"
        case Resize():
            return "a topic never loses partitions: delete it first"
        case Resign() | Fall():
            return "the coordinator is just being replaced"
        case Wander(connection):
            return f"nothing is under way on {connection}"
        case _ if client is not None and client.mode == "absent":
            return f"{client.name} does not run"
        case _:
            return "that can't happen now"


def _added(world: World, config: Config, mutation: str | None) -> Moved:
    name = config.client
    present = next((client for client in world.clients if client.name == name), None)
    if present is None and len(world.clients) >= MOST_MEMBERS:
        raise ValueError(f"there can be at most {MOST_MEMBERS} members")
    if present is not None and present.mode != "absent":
        raise ValueError(f"{name} runs already: stop it first, or take another name")
    if any(isinstance(config, worker.Config) is not isinstance(client.config, worker.Config) for client in world.clients):
        raise ValueError("consumers and Connect workers never share a group: begin a new one")
    if present is None:
        clients = (*world.clients, Client(name, (config,)))
    else:
        clients = tuple(replace(each, plans=(config,)) if each is present else each for each in world.clients)
    return _acted(_mutated(replace(world, clients=clients), mutation), Start(name), ())


# Letting the world go on.


def _played(world: World, run: Iterator[Moved]) -> Moved:
    moved = Moved(world)
    for each in islice(run, MOST_ACTS):
        moved = moved.then(each)
    return moved


def _until_due_is_done(world: World) -> Iterator[Moved]:
    while waiting := due(world):
        moved = step(world, waiting[0], first)
        yield moved
        world = moved.world


def _until(world: World, moment: int) -> Iterator[Moved]:
    """Up to ``moment``, in milliseconds."""
    while True:
        waiting, following = due(world), next_deadline(world)
        if not waiting and (following is None or following > moment):
            return
        moved = step(world, waiting[0] if waiting else Advance(), first)
        yield moved
        world = moved.world


def _until_it_rests(world: World) -> Iterator[Moved]:
    """Until nothing is due and the group has settled, or nothing but heartbeats happened for longer than any timeout."""
    if _rests(world):
        return
    patience, calm_since = _longest(world), world.now
    for moved in _until(world, world.now + 100 * patience):
        yield moved
        if not all(isinstance(event, Heartbeat) for event in moved.events):
            calm_since = moved.world.now
        if _rests(moved.world) or (not due(moved.world) and moved.world.now - calm_since > patience):
            return


def _rests(world: World) -> bool:
    """Whether nothing is to be done any more, and nobody stands still or is held up."""
    return not due(world) and not unrest(world) and all(c.mode in ("absent", "running") and not c.slow for c in world.clients)


def _longest(world: World) -> int:
    """Longer than anything takes that may still happen, in milliseconds."""
    return max((c.config.session_timeout_ms + c.config.rebalance_timeout_ms for c in world.clients), default=0) + _max_delay_ms(world)


def _max_delay_ms(world: World) -> int:
    """Connect's scheduled.rebalance.max.delay.ms."""
    plans = (plan for client in world.clients for plan in client.plans)
    return max((plan.max_delay_ms for plan in plans if isinstance(plan, worker.Config)), default=MAX_DELAY_MS)


# What is said of it.


def assumed(session: Session) -> Settings:
    """What a check of the run may assume: the world has one clock, and Connect's delay is known."""
    return replace(explorer.SETTINGS, max_delay_ms=_max_delay_ms(session.world))


def judged(session: Session) -> GroupResult | None:
    """What the rules say of the run so far; None before anything was seen."""
    events = session.events
    return check_group(events, assumed(session), measure=False) if events else None


def trace(session: Session) -> Iterable[str]:
    """The run as trace version 1, a line for each event."""
    return (event.src.text for event in session.events if event.src is not None)
