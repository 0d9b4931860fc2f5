"""The closed world: client processes, their connections, the coordinator and its log, and one clock.

Everything that may happen next is an `Act`; `actions` lists them, `step` does one. A world is a frozen value and `step`
is pure, so a run is a list of acts, and prints as a script that `replay` runs again.

*Time* stands still until `Advance` moves it to the next deadline. That is possible only when nothing is due: messages
travel, callbacks return and heartbeats leave in no time, in any order, unless a fault holds them up (`Delay`, `Stall`,
`Pause`). So a session expires because something went wrong, never because the model was slow; and every race at one
moment is still there, as the order of the acts.

*Faults* cost budget, everything else is free; a world without budget runs to rest (`quiet`).

*Network.* A client has one connection to its coordinator, used in order. The broker serves one request of a connection at
a time and reads the next when the answer is out (SocketServer mutes the channel), also while JoinGroup or SyncGroup is
parked. Only a new connection overtakes: what was sent on a broken one may still arrive, late or never (KAFKA-20985).

*Observers.* Events carry microseconds of the one clock, all different. A member's own events carry the epoch of the
coordinator that last admitted it, for the member knows no newer one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, cast

from ..spec.events import NONE, Closed, Crashed, Event, Topics
from . import consumer, coordinator, process
from .acts import (
    Act,
    Advance,
    Arrive,
    Beat,
    Close,
    Commit,
    Crash,
    Cut,
    Delay,
    Fall,
    Finish,
    Fire,
    Giveup,
    Load,
    Overstay,
    Pause,
    Poll,
    Raise,
    Read,
    Refuse,
    Resign,
    Resize,
    Resume,
    Return,
    Stall,
    Start,
    Store,
    Subscribe,
    Wander,
)
from .choice import Choose, first
from .connect import worker
from .likeness import likeness
from .messages import (
    Address,
    JoinRequest,
    JoinResponse,
    Reply,
    Request,
    Response,
)

FATAL = frozenset({"FencedInstanceIdException", "InconsistentGroupProtocolException", "GroupMaxSizeReachedException"})
"""What an application can't go on after: it closes the client. See `_fatal`."""

REQUEST_TIMEOUT_MS = 30_000
"""request.timeout.ms: how long a client waits for an answer; JoinGroup waits for the rebalance timeout and 5 s more."""

Config = consumer.Config | worker.Config
State = consumer.Consumer | worker.Worker
Mode = Literal["absent", "running", "stalled", "paused"]


# What there is.


@dataclass(frozen=True, slots=True)
class Call:
    """A request on a connection: on its way, then with the coordinator (``received``), then answered (by ``epoch``)."""

    correlation: int
    request: Request
    due: int
    received: bool = False
    response: Response | None = None
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Client:
    """A place where one process runs at a time, and its connection.

    ``plans`` are the configurations of its successive incarnations; the last one repeats. ``lives`` counts the
    incarnations started, ``connections`` the connections opened. Stalled: the application thread stands still, the
    heartbeat thread does not; paused: both do. ``polled`` is the time (ms) of the last poll, ``beat`` of the next
    heartbeat. ``slow``: what is on the connection now may take any time. ``failed`` is the error that the application
    can't go on after.
    """

    name: str
    plans: tuple[Config, ...]
    mode: Mode = "absent"
    state: State | None = None
    lives: int = 0
    connections: int = 0
    calls: tuple[Call, ...] = ()
    slow: bool = False
    polled: int = 0
    beat: int = 0
    epoch: int = 0
    failed: str | None = None

    @property
    def config(self) -> Config:
        """The configuration of the present incarnation, or of the next one while absent."""
        number = self.lives if self.mode == "absent" else self.lives - 1
        return self.plans[min(number, len(self.plans) - 1)]

    @property
    def connection(self) -> str:
        return f"{self.name}#{self.connections}"


@dataclass(frozen=True, slots=True)
class Stray:
    """A request that was sent on a connection which is gone by now.

    It may still arrive; one that was sent before an orderly close arrives for ``sure``.
    """

    connection: str
    call: Call
    sure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How often each kind of fault may still happen.

    ``starts`` counts processes started, first ones and restarts; ``refusals`` appends to the log that fail;
    ``resizes`` changes of ``Menu.sizes``.
    """

    starts: int = 0
    crashes: int = 0
    closes: int = 0
    pauses: int = 0
    stalls: int = 0
    raises: int = 0
    delays: int = 0
    cuts: int = 0
    failovers: int = 0
    refusals: int = 0
    resizes: int = 0
    subscribes: int = 0
    commits: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """What the faults may choose from: topic sizes (0: no such topic), subscriptions, errors of the log."""

    sizes: tuple[tuple[str, int], ...] = ()
    subscriptions: tuple[tuple[str, ...], ...] = ()
    append_errors: tuple[str, ...] = ("NOT_ENOUGH_REPLICAS",)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """Everything at one moment. ``record`` is what the log holds of the group.

    ``topics`` are partitions per topic; in a Connect cluster tasks per connector, the config topic up to ``offset``.
    ``racks`` are those of partitions' replicas. ``clock`` is the last event's
    time in microseconds. Worlds that are alike, whenever that is, are equal (see `likeness`).
    """

    group_id: str
    release: coordinator.Release
    group: coordinator.Group
    clients: tuple[Client, ...]
    topics: tuple[tuple[str, int], ...]
    racks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    faults: Faults = Faults()
    menu: Menu = Menu()
    now: int = 0
    epoch: int = 0
    offset: int = 0
    record: coordinator.GroupRecord | None = None
    appends: tuple[coordinator.Append, ...] = ()
    strays: tuple[Stray, ...] = ()
    clock: int = 0
    _likeness: list[Hashable] = field(default_factory=list[Hashable], init=False, repr=False)

    @property
    def likeness(self) -> Hashable:
        """What makes this world what it is; worked out once, as is its hash."""
        if not self._likeness:
            sent = {c.connection: c.state.correlation for c in self.clients if c.state is not None}
            parts = self.clients, self.group, self.record, self.appends, self.strays
            told = likeness(parts, self.now, sent), self.topics, self.epoch, self.offset, self.faults
            self._likeness.append(told)
        return self._likeness[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, World) and hash(self) == hash(other) and self.likeness == other.likeness

    def __hash__(self) -> int:
        if len(self._likeness) < 2:
            self._likeness[:] = (self.likeness, hash(self.likeness))
        return cast("int", self._likeness[1])

    def client(self, name: str) -> Client:
        return next(c for c in self.clients if c.name == name)


@dataclass(frozen=True, slots=True)
class Moved:
    """One step: the world after it, what observers saw, and what calls threw at applications, as (client, error)."""

    world: World
    events: tuple[Event, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()

    def then(self, after: Moved) -> Moved:
        """This and what came ``after``, told as one."""
        return Moved(after.world, self.events + after.events, self.errors + after.errors)


# What may happen.


def actions(world: World) -> tuple[Act, ...]:
    """Everything that may happen now: what is due first, in a fair order; then time, then faults within the budget."""
    return (*ordinary(world), *faults(world))


def ordinary(world: World) -> tuple[Act, ...]:
    """What may happen without a fault. Time passes only when nothing is due."""
    waiting = due(world)
    rest = tuple(_possible(world))
    return (*waiting, *rest) if waiting or next_deadline(world) is None else (*rest, Advance())


def due(world: World) -> tuple[Act, ...]:
    """What happens before time passes, in a fair order."""
    return tuple(_due(world))


def _due(world: World) -> Iterator[Act]:
    if world.group.loading:
        yield Load()
    if world.appends:
        yield Store()
    yield from _wanderers(world, sure=True)
    for client in world.clients:
        if not client.slow:
            yield from _deliveries(client, world)
    for client in world.clients:
        if client.mode in ("running", "stalled"):
            yield from _duties(client, world)
    yield from (Fire(t.kind, t.member) for t in coordinator.timers(world.group) if t.deadline <= world.now)


def _deliveries(client: Client, world: World) -> Iterator[Act]:
    at = next((c for c in client.calls if c.response is None), None)
    if at is not None and not at.received:
        yield Arrive(client.name)
    if client.mode in ("running", "stalled") and client.calls and client.calls[0].response is not None:
        yield Return(client.name)


def _duties(client: Client, world: World) -> Iterator[Act]:
    who, now = client.name, world.now
    overdue = client.polled + client.config.rebalance_timeout_ms <= now
    if any(call.due <= now for call in client.calls):
        yield Giveup(who)
    if client.mode == "running":
        if isinstance(client.state, worker.Worker) and client.state.configs.offset < world.offset:
            yield Read(who)
        if _busy(client):
            yield Finish(who)
        elif client.failed:
            yield Close(who)
        elif not _closing(client) and (overdue or _does(client, _poll(world), now)):
            yield Poll(who)
    if overdue and _joined(client) and _does(client, process.PollTimeout(), now):
        yield Overstay(who)
    if client.beat <= now and _does(client, process.HeartbeatDue(), now):
        yield Beat(who)


def _possible(world: World) -> Iterator[Act]:
    for client in world.clients:
        if client.slow:
            yield from _deliveries(client, world)
        if client.mode in ("stalled", "paused"):
            yield Resume(client.name)
    yield from _wanderers(world, sure=False)


def _wanderers(world: World, *, sure: bool) -> Iterator[Act]:
    yield from (Wander(name) for name in dict.fromkeys(s.connection for s in world.strays if s.sure is sure))


def faults(world: World) -> tuple[Act, ...]:
    """What may go wrong now, and what users may do."""
    return tuple(_faults(world))


def _faults(world: World) -> Iterator[Act]:
    left = world.faults
    for client in world.clients:
        who = client.name
        if client.mode == "absent":
            yield from (Start(who),) if left.starts else ()
            continue
        yield from (Crash(who),) if left.crashes else ()
        if client.mode != "running":
            continue
        yield from (Pause(who),) if left.pauses else ()
        yield from (Stall(who),) if left.stalls else ()
        if client.calls and not client.slow:
            yield from (Delay(who),) if left.delays else ()
            yield from (Cut(who),) if left.cuts else ()
        if client.failed or _closing(client):
            continue
        if _busy(client):
            yield from (Raise(who),) if left.raises and isinstance(client.state, consumer.Consumer) else ()
            continue
        yield from (Close(who),) if left.closes else ()
        if left.commits and _does(client, process.CommitDue(), world.now):
            yield Commit(who)
        if left.subscribes:
            topics = (t for t in world.menu.subscriptions if _does(client, process.Subscribe(t), world.now))
            yield from (Subscribe(who, t) for t in topics)
    if left.resizes:
        yield from (Resize(t, n) for t, n in world.menu.sizes if _can_resize(world, t, n))
    if left.refusals and world.appends:
        yield from (Refuse(error) for error in world.menu.append_errors)
    if left.failovers and not world.group.loading:
        yield from (Resign(), Fall())


def _can_resize(world: World, topic: str, partitions: int) -> bool:
    """A topic grows, appears or goes; a connector may have fewer tasks than before, too."""
    at = dict(world.topics).get(topic, 0)
    shrinks = any(isinstance(c.config, worker.Config) for c in world.clients)
    return partitions != at and (not partitions or partitions > at or shrinks)


def next_deadline(world: World) -> int | None:
    """When (ms) the next thing falls due by itself, None if nothing will."""
    return min((t for t in _deadlines(world) if t > world.now), default=None)


def _wakes(client: Client) -> Iterator[int]:
    """When (ms) a poll will have something to do, by the process's own clock."""
    state = client.state
    if isinstance(state, worker.Worker) and state.deadline is not None:
        yield state.deadline
    if isinstance(state, consumer.Consumer) and state.prepare_commit is not None:
        yield state.prepare_commit.deadline


def _deadlines(world: World) -> Iterator[int]:
    yield from (t.deadline for t in coordinator.timers(world.group))
    for client in world.clients:
        if client.mode in ("running", "stalled"):
            yield from (call.due for call in client.calls)
            yield from _wakes(client)
            if _does(client, process.HeartbeatDue(), max(world.now, client.beat)):
                yield client.beat
            if client.mode == "stalled" and _joined(client):
                yield client.polled + client.config.rebalance_timeout_ms


# What happens.


def step(world: World, act: Act, choose: Choose) -> Moved:
    """The world after ``act``, which must be one of `actions`."""
    match act:
        case Load():
            return _load(world)
        case Store():
            return _appended(world, NONE, choose)
        case Refuse(error):
            return _appended(_spend(world, "refusals"), error, choose)
        case Fire(kind, member):
            timer = next(t for t in coordinator.timers(world.group) if (t.kind, t.member) == (kind, member))
            return _coordinator(world, coordinator.fire(world.group, world.release, timer, world.now, choose))
        case Resign() | Fall():
            return _fail_over(_spend(world, "failovers"), isinstance(act, Fall), choose)
        case Arrive(who):
            client = world.client(who)
            call = next(c for c in client.calls if not c.received)
            world = _with(world, replace(client, calls=_changed(client.calls, replace(call, received=True)), slow=False))
            return _receive(world, Address(client.connection, call.correlation), call.request, choose)
        case Wander(connection):
            stray = next(s for s in world.strays if s.connection == connection)
            world = replace(world, strays=tuple(s for s in world.strays if s is not stray))
            return _receive(world, Address(connection, stray.call.correlation), stray.call.request, choose)
        case Advance():
            return Moved(_advanced(world))
        case Resize(topic, partitions):
            return _resize(_spend(world, "resizes"), topic, partitions)
        case Start(who):
            client = world.client(who)
            client = replace(client, mode="running", lives=client.lives + 1, connections=client.connections + 1, failed=None)
            client = replace(client, state=_start(client.config, world), polled=world.now, beat=world.now)
            return Moved(_with(_spend(world, "starts"), client))
        case Crash(who):
            client = world.client(who)
            return _ended(_spend(world, "crashes"), client, (_crashed(client),))
        case Pause(who):
            return Moved(_with(_spend(world, "pauses"), replace(world.client(who), mode="paused")))
        case Stall(who):
            return Moved(_with(_spend(world, "stalls"), replace(world.client(who), mode="stalled")))
        case Resume(who):
            return Moved(_with(world, replace(world.client(who), mode="running")))
        case Delay(who):
            return Moved(_with(_spend(world, "delays"), replace(world.client(who), slow=True)))
        case Cut(who):
            return _disconnect(_spend(world, "cuts"), world.client(who), choose)
        case Giveup(who):
            return _disconnect(world, world.client(who), choose)
        case Return(who):
            return _return(world, world.client(who), choose)
        case Poll(who):
            client = replace(world.client(who), polled=world.now)
            return _happen(_with(world, client), client, _poll(world), choose)
        case Beat(who):
            client = world.client(who)
            client = replace(client, beat=world.now + client.config.heartbeat_interval_ms)
            return _happen(_with(world, client), client, process.HeartbeatDue(), choose)
        case Read(who):
            return _happen(world, world.client(who), worker.Configured(world.topics, world.offset), choose)
        case Overstay(who):
            return _happen(world, world.client(who), process.PollTimeout(), choose)
        case Finish(who):
            return _happen(world, world.client(who), process.CallbackDone(), choose)
        case Raise(who):
            return _happen(_spend(world, "raises"), world.client(who), process.CallbackDone(raised=True), choose)
        case Commit(who):
            return _happen(_spend(world, "commits"), world.client(who), process.CommitDue(), choose)
        case Subscribe(who, topics):
            return _happen(_spend(world, "subscribes"), world.client(who), process.Subscribe(topics), choose)
        case Close(who):
            client = world.client(who)
            world = world if client.failed else _spend(world, "closes")
            return _happen(world, client, process.Close(), choose)
        case _:
            raise ValueError(f"no such act: {act}")


def _spend(world: World, fault: str) -> World:
    return replace(world, faults=replace(world.faults, **{fault: getattr(world.faults, fault) - 1}))


def _with(world: World, client: Client) -> World:
    return replace(world, clients=tuple(client if c.name == client.name else c for c in world.clients))


def _changed(calls: tuple[Call, ...], call: Call) -> tuple[Call, ...]:
    return tuple(call if c.correlation == call.correlation else c for c in calls)


def _tell(world: World, events: Iterable[Event], epoch: int | None = None) -> Moved:
    """Put the time and the epoch to events."""
    told: list[Event] = []
    clock = max(world.clock, world.now * 1000 - 1)
    for event in events:
        clock += 1
        told.append(replace(event, ts=clock, epoch=world.epoch if epoch is None else epoch))
    return Moved(replace(world, clock=clock), tuple(told))


def _advanced(world: World) -> World:
    """Time at the next deadline. Applications that can poll have done so all along, idle heartbeat threads wait anew."""
    now = next_deadline(world)
    assert now is not None
    clients = tuple(_idled(client, world.now, now) for client in world.clients)
    return replace(world, now=now, clients=clients)


def _idled(client: Client, before: int, now: int) -> Client:
    if client.mode == "running":
        client = replace(client, polled=now)
    if client.mode != "paused" and client.beat <= before:
        client = replace(client, beat=now + client.config.heartbeat_interval_ms)
    return client


# The coordinator and its log.


def _coordinator(world: World, done: coordinator.Step) -> Moved:
    """Take over a step of the coordinator: its state, its answers, what it appends."""
    world = replace(world, group=done.group, appends=(*world.appends, *done.appends))
    return _tell(_answer(world, done.replies), done.events)


def _answer(world: World, replies: Iterable[Reply]) -> World:
    """Put answers on the connections that wait for them; what nobody waits for any more is dropped."""
    for reply in replies:
        client = next((c for c in world.clients if c.connection == reply.to.process), None)
        call = next((c for c in client.calls if c.correlation == reply.to.correlation), None) if client else None
        if client is not None and call is not None:
            answered = replace(call, response=reply.response, epoch=world.epoch)
            world = _with(world, replace(client, calls=_changed(client.calls, answered)))
    return world


def _receive(world: World, address: Address, request: Request, choose: Choose) -> Moved:
    return _coordinator(world, coordinator.receive(world.group, world.release, address, request, world.now, choose))


def _appended(world: World, error: str, choose: Choose) -> Moved:
    append, *rest = world.appends
    world = replace(world, appends=tuple(rest), record=world.record if error != NONE else append.record)
    return _coordinator(world, coordinator.appended(world.group, world.release, append, error, world.now, choose))


def _fail_over(world: World, fall: bool, choose: Choose) -> Moved:
    """Another coordinator takes over. Of the appends in flight the older ones may have made it to the log."""
    made = choose("appends that made it to the log", range(len(world.appends) + 1))
    record = world.appends[made - 1].record if made else world.record
    world = replace(world, record=record)
    moved = Moved(world) if fall else _coordinator(world, coordinator.unload(world.group, world.release, world.now))
    following = coordinator.loading(world.group_id, ids_given=moved.world.group.ids_given)
    moved = replace(moved, world=replace(moved.world, group=following, appends=(), epoch=world.epoch + 1))
    if not fall:
        return moved
    for client in world.clients:
        if client.mode == "paused":
            moved = replace(moved, world=_with(moved.world, _cut_off(client, world.now)))
        elif client.mode != "absent":
            moved = moved.then(_disconnect(moved.world, moved.world.client(client.name), choose))
    return replace(moved, world=replace(moved.world, strays=()))


def _cut_off(client: Client, now: int) -> Client:
    """The connection of a paused client broke: it will find out when it goes on."""
    calls = tuple(replace(call, received=True, response=None, due=now) for call in client.calls)
    return replace(client, calls=calls, connections=client.connections + 1, slow=False)


def _load(world: World) -> Moved:
    return _coordinator(world, coordinator.load(world.group_id, world.release, world.record, world.now, ids_given=world.group.ids_given))


def _resize(world: World, topic: str, partitions: int) -> Moved:
    sizes = {**dict(world.topics), topic: partitions}
    topics = tuple(sorted((t, n) for t, n in sizes.items() if n))
    world = replace(world, topics=topics, offset=world.offset + 1)
    return _tell(world, (Topics(group=world.group_id, topics=MappingProxyType(dict(topics))),))


# The clients.


def _start(config: Config, world: World) -> State:
    """A new process; a worker reads the config topic first."""
    if isinstance(config, worker.Config):
        return worker.start(replace(config, connectors=world.topics, offset=world.offset), world.now)
    return consumer.start(config, world.now)


def _turn(state: State, happening: worker.WorkerHappening, now: int, choose: Choose) -> process.Turn[Any]:
    if isinstance(state, worker.Worker):
        return worker.step(state, happening, now, choose)
    assert not isinstance(happening, worker.Configured)
    return consumer.step(state, happening, now, choose)


def _busy(client: Client) -> str | None:
    """The callback that runs, if any."""
    state = client.state
    assert state is not None
    return worker.busy(state) if isinstance(state, worker.Worker) else consumer.busy(state)


def _joined(client: Client) -> bool:
    """Whether the heartbeat thread watches over the application: not while JoinGroup is in flight."""
    return client.state is not None and client.state.joined


def _closing(client: Client) -> bool:
    return isinstance(client.state, consumer.Consumer) and client.state.closing


def owned(client: Client) -> tuple[str, ...]:
    """What a client believes it owns; nothing while absent."""
    state = client.state
    if state is None:
        return ()
    return worker.owned(state) if isinstance(state, worker.Worker) else consumer.owned(state)


def _outstanding(client: Client) -> frozenset[int]:
    """The requests that the client still wants answers to: a process that has ended wants none."""
    state = client.state
    if state is None:
        return frozenset()
    numbers = worker.outstanding(state) if isinstance(state, worker.Worker) else consumer.outstanding(state)
    return frozenset(numbers)


def _does(client: Client, happening: worker.WorkerHappening, now: int) -> bool:
    """Whether the happening would do anything."""
    assert client.state is not None
    turn = _turn(client.state, happening, now, first)
    return bool(turn.requests or turn.events or turn.error) or turn.process != client.state


def _poll(world: World) -> process.Poll:
    return process.Poll(dict(world.topics), dict(world.racks))


def _happen(world: World, client: Client, happening: worker.WorkerHappening, choose: Choose) -> Moved:
    """One step of a client: its requests go on its connection, its events are told in the epoch that it knows."""
    assert client.state is not None
    turn = _turn(client.state, happening, world.now, choose)
    calls = tuple(Call(number, request, world.now + _patience(request)) for number, request in turn.requests)
    client = replace(client, state=turn.process, calls=client.calls + calls)
    if turn.error and _fatal(client.config, turn.error):
        client = replace(client, failed=turn.error)
    ended = any(isinstance(event, Closed) for event in turn.events)
    moved = _tell(_with(world, client) if ended else _hung_up(world, client), turn.events, client.epoch)
    if turn.error:
        moved = replace(moved, errors=((client.name, turn.error),))
    if ended:
        strays = tuple(Stray(client.connection, call, sure=True) for call in client.calls if not call.received)
        moved = replace(moved, world=replace(moved.world, strays=moved.world.strays + strays))
        return moved.then(_ended(moved.world, replace(client, calls=()), ()))
    return moved


def _fatal(config: Config, error: str) -> bool:
    """Whether the process ends with the error. A worker's does with any: it stops its work, leaves and exits.

    Source: DistributedHerder.run, stopServices.
    """
    return isinstance(config, worker.Config) or error in FATAL


def _hung_up(world: World, client: Client) -> World:
    """A client that no longer waits for what it sent has closed the connection."""
    awaited = _outstanding(client)
    left = tuple(call for call in client.calls if call.correlation in awaited)
    if len(left) == len(client.calls):
        return _with(world, client)
    world = _left_behind(world, replace(client, calls=tuple(call for call in client.calls if call not in left)))
    return _with(world, replace(client, calls=left, connections=client.connections + 1))


def _patience(request: Request) -> int:
    if isinstance(request, JoinRequest):
        return max(REQUEST_TIMEOUT_MS, request.rebalance_timeout_ms + 5_000)
    return REQUEST_TIMEOUT_MS


def _return(world: World, client: Client, choose: Choose) -> Moved:
    call = client.calls[0]
    assert call.response is not None
    client = replace(client, calls=client.calls[1:], slow=False)
    if isinstance(call.response, JoinResponse) and call.response.error == NONE:
        client = replace(client, epoch=call.epoch, beat=world.now + client.config.heartbeat_interval_ms)
    answer = process.Answer(call.correlation, call.response, dict(world.topics), dict(world.racks))
    return _happen(_with(world, client), client, answer, choose)


def _disconnect(world: World, client: Client, choose: Choose) -> Moved:
    """The connection breaks: answers on it are lost, requests on it become strays. The next one is opened at once."""
    world = _left_behind(world, client)
    lost = client.calls
    client = replace(client, calls=(), connections=client.connections + 1, slow=False)
    moved = Moved(_with(world, client))
    for call in lost:
        if call.correlation in _outstanding(moved.world.client(client.name)):
            gone = process.Disconnected(call.correlation)
            moved = moved.then(_happen(moved.world, moved.world.client(client.name), gone, choose))
    return moved


def _left_behind(world: World, client: Client) -> World:
    strays = tuple(Stray(client.connection, call) for call in client.calls if not call.received)
    return replace(world, strays=world.strays + strays)


def _ended(world: World, client: Client, events: tuple[Event, ...]) -> Moved:
    """The process is gone, and its connection with it."""
    world = _left_behind(world, client)
    client = replace(client, mode="absent", state=None, calls=(), slow=False, failed=None)
    return _tell(_with(world, client), events, client.epoch)


def _crashed(client: Client) -> Crashed:
    state = client.state
    assert state is not None
    member = state.member if isinstance(state, worker.Worker) else state.identity.member
    config = client.config
    instance = None if isinstance(config, worker.Config) else config.instance
    return Crashed(group=config.group, member=member or None, instance=instance, client=config.client)
