"""Refinement: what the closed world does, the consumer protocol can do.

A finished run of the world is followed by a run of `protocol.consumer` (see `protocol` for the variant). Each step of the world is labelled with the protocol's
actions that it stands for, none for a heartbeat. The guard of each must hold, and after them the protocol's state must be
that of the world (`_Agreement`). So what is proved of the protocol holds for the run.

*Members* of the protocol are member ids. A client has an id when it sends JoinGroup with it, or when the coordinator
makes one for its JoinGroup without; an id that MEMBER_ID_REQUIRED brought is none before that. A client that is told to
forget its id, or its generation, goes on as the old member until it has lost what it owns.

*Points* of the protocol's order are the completed join phases of the run; the world's number of each is noted, and after a
failover two points may have the same. A generation without members has no point.

*Looking ahead.* What counts in the world when it is in the log, counts in the protocol at once. The run is finished, so it
is known which appends will be in the log. A leader's proposal is the first that will be, or else the first; it is accepted
when it is stored, or just before the group goes on without it. A static replacement in a stable group happens at once if
it will be stored, else as one during a rebalance when that begins, or not at all; if a join phase ends before it was
answered, its client asks the protocol's coordinator again. A group is empty if that will be stored.

*Not in the protocol*, and so free here: time, sessions, the coordinator's choice of leader and assignor, ids that are
only pending, heartbeats and LeaveGroup (an effect is a removal), refused requests (a JoinGroup that is refused was lost),
answers that nobody waits for, callbacks (what they revoke or lose goes when they end), topics and subscriptions. A request
that overtakes another on a new connection is in it as long as the client has not sent a newer JoinGroup. An answer that is
lost stays in the protocol until its client asks anew.

What the protocol does not cover is counted as *outside*, with the reason; after some of it (`Outside.ends`) the run is
followed no further.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import cast

from ..spec.events import NONE, Joined
from ..spec.events import Commit as CommitAnswered
from . import consumer, coordinator
from .acts import Act, Arrive, Fall, Fire, Refuse, Resign, Store, Wander
from .consumer.state import Consumer, MemberState
from .coordinator import Append, Group, Member, Replaced
from .messages import CommitRequest, JoinRequest, JoinResponse, LeaveRequest, Metadata, Request, Share, SyncRequest, SyncResponse
from .protocol.consumer import CLIENT_STATES, consumer_protocol
from .protocol.interpreter import Function, Interpreter, Relation, State
from .protocol.language import And, Node, Or, Quantified, System, Variable, pretty
from .runs import Taken
from .world import Call, Client, Config, World, owned

Place = tuple[str, int]
"""Where a request was sent: connection and correlation number."""


@dataclass(frozen=True, slots=True)
class Outside:
    """A step of the world that the protocol does not have; if it ``ends`` the matter, the rest of the run was not followed."""

    step: int
    act: Act
    reason: str
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """The first step of the world without a counterpart: the actions that were to be it, and what is wrong with them."""

    step: int
    act: Act
    actions: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"step {self.step}, {self.act}: {' ; '.join(self.actions) or 'no action'}: {self.why}"


@dataclass(slots=True)
class Refinement:
    """What following a run gave: how often each action of the protocol was taken, and each alternative of its guard.

    ``steps`` of the world were followed, ``idle`` of them without any action.
    """

    steps: int = 0
    idle: int = 0
    actions: Counter[str] = field(default_factory=Counter[str])
    alternatives: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    outside: list[Outside] = field(default_factory=list[Outside])
    failure: Failure | None = None

    def add(self, other: Refinement) -> None:
        """Count another run's, too; the first failure stays."""
        self.steps += other.steps
        self.idle += other.idle
        self.actions += other.actions
        self.alternatives += other.alternatives
        self.outside += other.outside
        self.failure = self.failure or other.failure

    def uncovered(self) -> tuple[tuple[str, str], ...]:
        """The actions never taken, as (action, ""), and the alternatives of guards that never held, as (action, alternative)."""
        sides = ((action, name) for action, found in ALTERNATIVES.items() for name in ("", *(name for name, _ in found)))
        return tuple((action, name) for action, name in sides if not (self.alternatives[action, name] if name else self.actions[action]))

    def report(self) -> str:
        """Which actions and guards were exercised how often, which never, and what was outside."""
        lines = [f"{self.steps} steps of the world, {self.idle} of them idle in the protocol"]
        for action, found in ALTERNATIVES.items():
            lines.append(f"{self.actions[action]:7d}  {action}")
            lines.extend(f"{self.alternatives[action, name]:14d}  {name}" for name, _ in found)
        outside = Counter(each.reason for each in self.outside)
        lines.extend(f"{count:7d}  outside: {reason}" for reason, count in sorted(outside.items()))
        return "\n".join(lines)


@cache
def protocol(*, static: bool = True, old: bool = False) -> System:
    """What runs are held to: with failover, and by whether there are static members and whether the clients are ``old``.

    Since 3.4 clients name for their claims the generation of their last JoinGroup answer, before that of the assignment that
    they took over last.
    """
    return consumer_protocol(static=static, failover=True, reported="completed" if old else "joined", unprompted=True)


PROTOCOL: System = protocol()
"""The one with all actions."""


def _alternatives(guard: Node) -> tuple[tuple[str, Node], ...]:
    """The sides of each disjunction in a guard, with their words."""
    parts = guard.parts if isinstance(guard, And) else (guard,)
    return tuple((pretty(side), side) for part in parts if isinstance(part, Or) for side in part.parts)


ALTERNATIVES: Mapping[str, tuple[tuple[str, Node], ...]] = {action.name: _alternatives(action.guard) for action in PROTOCOL.actions}
"""By action, the alternatives that its guard names."""


def refine(run: Sequence[Taken]) -> Refinement:
    """Follow a run of the world, from its beginning before anybody joined, through the protocol.

    Raises ValueError for a cluster of Connect workers.
    """
    clients = run[0].before.clients if run else ()
    releases = {_tells_generation(plan) for client in clients for plan in client.plans}
    if len(releases) > 1:
        return Refinement(outside=[Outside(0, run[0].line.act, "clients from before and since 3.4 in one group", ends=True)])
    return _Simulation(run, old=releases == {False}).result


class _Strayed(Exception):
    """The step is outside; the rest can't be followed."""


class _Failed(Exception):
    """The step has no counterpart."""


@cache
def _interpreter(static: bool, old: bool, members: int, partitions: int, generations: int, instances: int) -> Interpreter:
    sizes = {"Member": members, "Partition": partitions, "Generation": generations, "Instance": instances}
    return Interpreter(protocol(static=static, old=old), sizes)


def _rounded(number: int, to: int = 4) -> int:
    """At least that many; few different sizes, so that few interpreters are compiled."""
    return -(-max(number, 1) // to) * to


def _tells_generation(plan: Config) -> bool:
    if not isinstance(plan, consumer.Config):
        raise ValueError("a Connect worker is not in the consumer protocol")
    return plan.release.claims_generation


def _metadata(of: Member | JoinRequest) -> Metadata:
    """What is claimed; it is the same for each of the protocols."""
    return of.protocols[0][1]


def _given(share: Share | None) -> tuple[str, ...]:
    return share.resources if share is not None else ()


def _as_loaded(world: World) -> Group:
    """The group, or while it is being loaded what it is going to be."""
    if not world.group.loading:
        return world.group
    return coordinator.load(world.group_id, world.release, world.record, world.now).group


def _made(taken: Taken) -> tuple[tuple[int, int], ...]:
    """The appends, as (epoch, number), that this step puts into the log."""
    before, after = taken.before, taken.moved.world
    match taken.line.act:
        case Store():
            return ((before.epoch, before.appends[0].number),)
        case Resign() | Fall():
            last = max((at for at, a in enumerate(before.appends, 1) if a.record is after.record), default=0)
            return tuple((before.epoch, a.number) for a in before.appends[:last])
        case _:
            return ()


class _Universe:
    """The finitely many ids, partitions and instances of a run, numbered as they are met.

    ``made`` are the appends that will be stored, ``proposals`` the leaders' among them, by epoch and generation.
    """

    def __init__(self, run: Sequence[Taken]) -> None:
        self.made = {append for taken in run for append in _made(taken)}
        if run:
            last = run[-1].moved.world
            self.made |= {(last.epoch, a.number) for a in last.appends}
        self.members: dict[str, int] = {}
        self.partitions: dict[str, int] = {}
        self.instance: dict[int, str] = {}
        self.generations = 1
        for taken in run:
            self._meet(taken.moved.world)
            if _completes(taken.before.group, taken.moved.world.group):
                self.generations += 1
        self.instances = sorted(set(self.instance.values()))
        self.proposals: dict[tuple[int, int], set[int]] = {}
        for taken in run:
            world = taken.moved.world
            for a in world.appends:
                if a.why == "sync" and a.record is not None and (world.epoch, a.number) in self.made:
                    self.proposals.setdefault((world.epoch, a.record.generation), set()).add(a.number)

    def _meet(self, world: World) -> None:
        for m in world.group.members:
            self._member(m.id, m.instance)
            self._owns(m.share)
        for client in world.clients:
            for call in client.calls:
                if isinstance(call.request, JoinRequest) and call.request.member:
                    self._member(call.request.member, call.request.instance)
                if isinstance(call.request, SyncRequest):
                    for _, share in call.request.shares:
                        self._owns(share)

    def _member(self, member: str, instance: str | None) -> None:
        number = self.members.setdefault(member, len(self.members))
        if instance is not None:
            self.instance[number] = instance

    def _owns(self, share: Share | None) -> None:
        for p in _given(share):
            self.partitions.setdefault(p, len(self.partitions))

    def interpreter(self, old: bool) -> Interpreter:
        sizes = (len(self.members), len(self.partitions), self.generations)
        return _interpreter(bool(self.instances), old, *map(_rounded, sizes), max(1, len(self.instances)))

    def rigid(self, members: int) -> State:
        return {
            "static": frozenset((m,) for m in self.instance),
            "instance": {(m,): self.instances.index(self.instance[m]) if m in self.instance else 0 for m in range(members)},
        }


def _completes(before: Group, after: Group) -> bool:
    """Whether a step from one to the other ends a join phase with members."""
    return after.state == "CompletingRebalance" and (before.state != "CompletingRebalance" or before.generation != after.generation)


class _Simulation:
    """The protocol beside the world.

    ``who`` is the member that a client is. ``number`` is the world's number of each point. ``latest`` is where a member sent
    its last JoinGroup. ``awaiting``: the JoinGroup without an id that made a client the member that it is. ``stand_in``: a
    replacement that will not be stored, and the id that it is for the protocol meanwhile. ``early``: replaced in a stable
    group, and not answered yet. ``proposing``: the append that carries the leader's proposal.
    """

    def __init__(self, run: Sequence[Taken], *, old: bool) -> None:
        self.old = old
        self.result = Refinement()
        self.universe = _Universe(run)
        self.interpreter = self.universe.interpreter(old)
        self.state: State = self.interpreter.initial(self.universe.rigid(self.interpreter.sizes["Member"]))
        self.who: dict[str, str] = {}
        self.number: dict[int, int] = {0: -1}
        self.latest: dict[str, Place] = {}
        self.awaiting: dict[str, Place] = {}
        self.stand_in: dict[str, Member] = {}
        self.early: set[str] = set()
        self.proposing: Append | None = None
        self.commits: dict[Place, frozenset[str]] = {}
        for at, taken in enumerate(run):
            if not self._follow(at, taken):
                break

    def _follow(self, at: int, taken: Taken) -> bool:
        self.at, self.taken, self.done = at, taken, list[str]()
        try:
            self._step(taken)
            _Agreement(self, taken.moved.world).check()
        except _Strayed as strayed:
            self.result.outside.append(Outside(at, taken.line.act, str(strayed), ends=True))
            return False
        except _Failed as failed:
            self.result.failure = Failure(at, taken.line.act, tuple(self.done), str(failed))
            return False
        self.result.steps += 1
        self.result.idle += not self.done
        return True

    def _step(self, taken: Taken) -> None:
        before, after, act = taken.before, taken.moved.world, taken.line.act
        if before.group is not after.group or isinstance(act, Arrive | Wander):
            self._coordinate(before, after, act)
        self._answer(before, after)
        for was, now in zip(before.clients, after.clients, strict=True):
            if was.state is not now.state:
                self._client(was, now)
        self._commit(taken)

    # The protocol's state.

    def holds(self, symbol: str, *members: str) -> bool:
        """Whether a relation holds of these members."""
        return tuple(self.universe.members[m] for m in members) in self.state[symbol]

    def row(self, symbol: str, member: str) -> list[int]:
        """The second arguments with which a relation holds of the member."""
        m = self.universe.members[member]
        values = cast("Relation", self.state[symbol])
        return sorted(point[1] for point in values if point[0] == m)

    def of(self, symbol: str, *members: str) -> int:
        """The value of a function to generations."""
        values = cast("Function", self.state[symbol])
        return values[tuple(self.universe.members[m] for m in members)]

    def partitions(self, symbol: str, member: str) -> frozenset[str]:
        names = list(self.universe.partitions)
        return frozenset(names[p] for p in self.row(symbol, member))

    def assigned(self, point: int, member: str) -> frozenset[str]:
        names, m = list(self.universe.partitions), self.universe.members[member]
        values = cast("Relation", self.state["assigned"])
        return frozenset(names[p] for g, at, p in values if (g, at) == (point, m))

    def client_state(self, member: str) -> str:
        return next(symbol.name for symbol in CLIENT_STATES if self.holds(symbol.name, member))

    @property
    def phase(self) -> str:
        return next(name for name in ("preparing", "completing", "stable") if self.state[name])

    def take(self, action: str, *arguments: int | str, choice: Iterable[tuple[str, str]] = ()) -> None:
        """Take an action if its guard holds; arguments are member ids, or points and partitions by number."""
        told = ", ".join(str(self.number[a]) if isinstance(a, int) else a for a in arguments)
        self.done.append(f"{action}({told})")
        members, partitions = self.universe.members, self.universe.partitions
        point = tuple(a if isinstance(a, int) else members[a] if a in members else partitions[a] for a in arguments)
        choices: dict[str, Relation] = {}
        if action == "propose":
            choices["choice"] = frozenset((members[m], partitions[p]) for m, p in choice if m in members and p in partitions)
        definition = self.interpreter.system.action(action)
        state = {**self.state, **choices}
        if not self.interpreter.enabled(definition, state, point):
            raise _Failed(self._refusal(action, state, point))
        environment = dict(zip(definition.parameters, point, strict=True))
        self.result.actions[action] += 1
        for name, side in ALTERNATIVES[action]:
            self.result.alternatives[action, name] += self.interpreter.holds(side, state, environment)
        self.state = self.interpreter.apply(definition, self.state, point, choices)

    def _refusal(self, action: str, state: State, point: tuple[int, ...]) -> str:
        """Which conjuncts of the guard fail, and for which elements."""
        definition = self.interpreter.system.action(action)
        environment = dict(zip(definition.parameters, point, strict=True))
        guard = definition.guard
        parts = guard.parts if isinstance(guard, And) else (guard,)
        failing = (part for part in parts if not self.interpreter.holds(part, state, environment))
        return f"the guard of {action} fails: " + " and ".join(self._told(part, state, environment) for part in failing)

    def _told(self, part: Node, state: State, environment: Mapping[Variable, int]) -> str:
        if not isinstance(part, Quantified) or part.kind != "forall":
            return pretty(part)
        for point in product(*(range(self.interpreter.sizes[v.sort]) for v in part.variables)):
            here = {**environment, **dict(zip(part.variables, point, strict=True))}
            if not self.interpreter.holds(part.body, state, here):
                named = ", ".join(f"{v.name} = {self._name(v.sort, at)}" for v, at in zip(part.variables, point, strict=True))
                return f"{pretty(part)} (not with {named})"
        return pretty(part)

    def _name(self, sort: str, at: int) -> str:
        match sort:
            case "Member":
                return dict(enumerate(self.universe.members)).get(at, str(at))
            case "Partition":
                return dict(enumerate(self.universe.partitions)).get(at, str(at))
            case _:
                return str(self.number.get(at, at))

    # The coordinator.

    def _coordinate(self, world: World, moved: World, act: Act) -> None:
        before, after = world.group, moved.group
        if isinstance(act, Resign | Fall):
            if self.proposing is not None and self._will_be_stored(world, self.proposing):
                self._accept(world)
            self.take("failover")
            self.proposing = None
            self.stand_in.clear()
            self.early.clear()
            return
        if after.loading:
            self._refused(world, act)
            return
        if before.loading:
            if after.state == "PreparingRebalance":
                self.take("rebalance")
            return
        same = after.state == "CompletingRebalance" and before.generation == after.generation
        accepted = before.state == "CompletingRebalance" and after.state == "Stable"
        if before.state == "CompletingRebalance" and not same and not accepted:
            if self.proposing is not None and self._will_be_stored(world, self.proposing):
                self._accept(world)
            self.proposing = None
        request, place, client = self._arrived(world, act)
        if isinstance(request, JoinRequest):
            self._join(world, moved, request, place, client)
        if isinstance(request, SyncRequest):
            self._propose(world, moved, request)
        if accepted:
            self._accept(world)
        if isinstance(act, Store):
            self.early &= {m.id for m in after.members if m.join is not None} | {a.member for a in _returns(moved)}
        if isinstance(act, Refuse):
            self._undone(world, after)
        leaver = request.member if isinstance(request, LeaveRequest) else None
        self._removals(before, after, act)
        begins = before.state in ("CompletingRebalance", "Stable") and not same and after.state not in ("Stable", "Empty")
        prompted = isinstance(act, Refuse) or act == Fire("sync", "") or (leaver is not None and before.is_pending(leaver))
        if begins and prompted and self.phase != "preparing":
            self.take("rebalance")
        if after.state not in ("Stable", "Empty"):
            for member in list(self.stand_in):
                self._replaced_after_all(world, member)
        if _completes(before, after):
            self._complete(before, after)
        if after.state == "Empty" and before.state not in ("Empty", "Dead") and self._will_be_stored(moved, moved.appends[-1]):
            self.take("empty")

    def _will_be_stored(self, world: World, append: Append) -> bool:
        return (world.epoch, append.number) in self.universe.made

    def _arrived(self, world: World, act: Act) -> tuple[Request | None, Place, str | None]:
        match act:
            case Arrive(who):
                client = world.client(who)
                call = next(c for c in client.calls if not c.received)
                return call.request, (client.connection, call.correlation), who
            case Wander(connection):
                call = next(s for s in world.strays if s.connection == connection).call
                return call.request, (connection, call.correlation), None
            case _:
                return None, ("", 0), None

    def _refused(self, world: World, act: Act) -> None:
        """A JoinGroup that the coordinator turned away was lost."""
        request, place, _ = self._arrived(world, act)
        if isinstance(request, JoinRequest) and self._is_latest(request.member, place):
            self.take("lose_join_request", request.member)

    def _is_latest(self, member: str, place: Place) -> bool:
        return self.latest.get(member) == place and self.holds("join_request", member)

    def _join(self, world: World, moved: World, request: JoinRequest, place: Place, client: str | None) -> None:
        before, after = world.group, moved.group
        if request.member:
            self._join_by_id(world, moved, request, place)
            return
        known = {m.id for m in before.members}
        fresh = next((m for m in after.members if m.id not in known), None)
        if fresh is None:
            return
        old = before.holder(request.instance)
        if old is None:
            self._begin(fresh.id, place, client)
            self.take("join_new", fresh.id)
        elif after.state == "Stable" and not all(self._will_be_stored(moved, a) for a in moved.appends[len(world.appends) :]):
            self.stand_in[fresh.id] = self.stand_in.pop(old.id, old)
            self._is_now(fresh.id, place, client)
            return
        else:
            self._begin(fresh.id, place, client)
            replaced = self.stand_in.pop(old.id, old).id
            if before.state == after.state == "Stable":
                if self.stand_in:
                    raise _Strayed("a record holds a replacement that could not be stored by itself")
                self.take("replace_stable", fresh.id, replaced)
                self.early.add(fresh.id)
            else:
                if self.phase == "stable" and (before.state != "Stable" or _offers(fresh) != _offers(old)):
                    self.take("rebalance")
                self.take("replace_rebalancing", fresh.id, replaced)
            self.early.discard(old.id)
        self._may_be_gone(world, fresh.id)

    def _may_be_gone(self, world: World, member: str) -> None:
        """The JoinGroup without an id that made the member may come from a client that has left, or wants no answer any more."""
        client = next((c for c in world.clients if self.who.get(c.name) == member), None)
        if client is None:
            self.take("reset" if member in self.early else "crash", member)
        elif isinstance(client.state, Consumer) and client.state.member_state is MemberState.UNJOINED:
            self.take("reset", member)

    def _begin(self, member: str, place: Place, client: str | None) -> None:
        self.take("start", member)
        self._is_now(member, place, client)

    def _is_now(self, member: str, place: Place, client: str | None) -> None:
        self.latest[member] = place
        if client is not None:
            self.who[client] = member
            self.awaiting[client] = place

    def _join_by_id(self, world: World, moved: World, request: JoinRequest, place: Place) -> None:
        before, after, x = world.group, moved.group, request.member
        member, was = after.member(x), before.member(x)
        parked = member is not None and member.join is not None and (member.join.address.process, member.join.address.correlation) == place
        refused = any(isinstance(e, Joined) and e.member == x and e.error != NONE for e in self.taken.moved.events)
        if refused or member is None:
            self._refused(world, self.taken.line.act)
            return
        if not self._is_latest(x, place):
            raise _Strayed("a JoinGroup that its member has superseded is accepted")
        if was is None:
            self.take("join_new", x)
        elif parked or _completes(before, after):
            self.take("join_known", x)
        else:
            if self.old and not _metadata(request).owned and self.of("request_generation", x) != self.of("owned_generation", x):
                raise _Strayed("a client from before 3.4 without claims names no generation, so that nothing has changed")
            self.take("join_unchanged", x)

    def _propose(self, world: World, moved: World, request: SyncRequest) -> None:
        """The leader's proposal is the first of this generation that will be stored, else the first."""
        begun = moved.appends[len(world.appends) :]
        if not begun or begun[0].why != "sync" or self.state["proposed"]:
            return
        stored = self.universe.proposals.get((moved.epoch, request.generation), {begun[0].number})
        if begun[0].number == min(stored):
            self.proposing = begun[0]
            self.take("propose", choice=((m, p) for m, share in request.shares for p in _given(share)))

    def _accept(self, world: World) -> None:
        """The leader's proposal is accepted; a different one of the same generation must not be written after it."""
        if self.proposing is None:
            raise _Failed("an assignment is accepted that the leader did not propose")
        accepted, self.proposing = self.proposing.record, None
        self.take("accept")
        for other in world.appends:
            of_same = other.why == "sync" and accepted and other.record and other.record.generation == accepted.generation
            if of_same and other.record != accepted and self._will_be_stored(world, other):
                raise _Strayed("a second, different proposal of one generation is stored")

    def _undone(self, world: World, after: Group) -> None:
        """A replacement that could not be stored is undone."""
        replaced = world.appends[0].replaced
        if replaced is None or world.group.member(replaced.member) is None or after.member(replaced.member) is not None:
            return
        if self.stand_in.pop(replaced.member, None) is None:
            raise _Strayed("a replacement is undone after a rebalance has begun with it")
        restored = after.member(replaced.before.id)
        if restored is not None and restored.protocols != replaced.before.protocols:
            raise _Strayed("a replacement is undone, but for what it claims (latent L8 of the old coordinator)")

    def _replaced_after_all(self, world: World, member: str) -> None:
        old = self.stand_in.pop(member)
        self.take("start", member)
        self.take("replace_rebalancing", member, old.id)
        self._may_be_gone(world, member)

    def _removals(self, before: Group, after: Group, act: Act) -> None:
        """Who is gone, but for those that were replaced, and the laggards of a join phase that completes."""
        now = {m.id for m in after.members} | {old.id for old in self.stand_in.values()}
        for m in before.members:
            if m.id in now or (act == Fire("join", "") and (_completes(before, after) or m.instance is not None)):
                continue
            x = self.stand_in.pop(m.id, m).id
            if self.holds("member", x):
                self.take("remove", x)

    def _complete(self, before: Group, after: Group) -> None:
        for m in after.members:
            waited = before.member(m.id)
            if waited is not None and waited.join is not None and m.id in self.early:
                self.take("rejoin", m.id)
                self.take("join_known", m.id)
                if m.id not in self.who.values():
                    self.take("reset", m.id)
        self.early.clear()
        now = self.of("generation")
        falls = [point for point, number in self.number.items() if number == after.generation]
        point = len(self.number)
        if after.generation <= self.number[now]:
            point = falls[-1] if falls else 0
        self.number.setdefault(point, after.generation)
        self.take("complete", point)

    # Answers.

    def _answer(self, world: World, moved: World) -> None:
        for was, now in zip(world.clients, moved.clients, strict=True):
            if was.calls is now.calls or now.name not in self.who:
                continue
            waited = {c.correlation for c in was.calls if c.response is None}
            for call in now.calls:
                granted = isinstance(call.response, SyncResponse) and call.response.error == NONE
                if granted and call.correlation in waited and isinstance(call.request, SyncRequest):
                    x = call.request.member
                    points = self.row("sync_request", x) or [self.of("joined", x)]
                    self.take("answer_sync", x, points[0])

    # The clients.

    def _client(self, was: Client, now: Client) -> None:
        x = self.who.get(now.name)
        state = now.state if isinstance(now.state, Consumer) else None
        if state is None or state.closed:
            if x is not None:
                self._leaves(now.name, x, "crash")
            return
        before = was.state if isinstance(was.state, Consumer) else None
        if x is not None and self.holds("fresh", x):
            x = x if self._still(state, now, x) else self._forget(now.name)
        elif x is not None and before is not None:
            x = self._goes_on(before, state, now, x)
        sent = {c.correlation for c in was.calls}
        for call in now.calls:
            if call.correlation in sent:
                continue
            place = now.connection, call.correlation
            if isinstance(call.request, JoinRequest) and call.request.member:
                self._sends_join(now, call.request.member, place)
            if isinstance(call.request, CommitRequest) and x is not None and self.client_state(x) == "settled":
                self.commits[place] = self.partitions("believes", x)

    def _goes_on(self, before: Consumer, state: Consumer, now: Client, x: str) -> str | None:
        received = state.member_state is not MemberState.PREPARING_REBALANCE and before.member_state is MemberState.PREPARING_REBALANCE
        if received and state.identity is not before.identity and state.identity.member == x:
            points = self.row("join_response", x) or [self.of("joined", x)]
            self.take("receive_join_response", x, points[0])
        if _takes(before, state):
            if self.client_state(x) != "settled":
                points = self.row("sync_response", x) or [self.of("joined", x)]
                self.take("revoke", x, points[0])
                self.take("assign", x)
        elif state.generation.id != -1:
            for p in sorted(set(before.assignment) - set(state.assignment)):
                self.take("give_up", x, p)
        if not self._still(state, now, x):
            return self._leaves(now.name, x, "reset")
        remembers = self.of("completed", x) > 0 or (self.of("joined", x) > 0 and not self.old)
        unjoined = state.member_state is MemberState.UNJOINED and self.client_state(x) != "unjoined"
        if state.generation.id == -1 and not state.assignment and (remembers or unjoined):
            self.take("reset", x)
        return x

    def _still(self, state: Consumer, now: Client, x: str) -> bool:
        """Whether the client is still that member: by its id, by what it has not lost yet, or by the id that it is being given."""
        if state.generation.member == x:
            self.awaiting.pop(now.name, None)
            return True
        place = self.awaiting.get(now.name)
        if place is not None:
            return place[0] == now.connection and place[1] in consumer.outstanding(state)
        return bool(state.assignment)

    def _leaves(self, client: str, x: str, how: str) -> None:
        if not self.holds("fresh", x):
            self.take("reset" if x in self.early else how, x)
        self._forget(client)

    def _forget(self, client: str) -> None:
        self.who.pop(client, None)
        self.awaiting.pop(client, None)

    def _sends_join(self, client: Client, x: str, place: Place) -> None:
        if self.holds("fresh", x):
            self.take("start", x)
            self.who[client.name] = x
        else:
            if self.holds("join_request", x):
                self.take("lose_join_request", x)
            self.take("rejoin", x)
        self.latest[x] = place

    def _commit(self, taken: Taken) -> None:
        request, place, _ = self._arrived(taken.before, taken.line.act)
        accepted = any(isinstance(e, CommitAnswered) and e.error == NONE for e in taken.moved.events)
        if not isinstance(request, CommitRequest) or not accepted or request.generation < 0:
            return
        x = request.member
        committed = self.commits.get(place, frozenset())
        for p in request.partitions:
            if (
                (self.client_state(x) == "settled" and p in self.partitions("believes", x))
                or self.number[self.of("generation")] != request.generation
                or not self.holds("member", x)
                or self.phase == "completing"
            ):
                self.take("commit", x, p)
            else:
                reason = "the client has moved on since" if p in committed else "the assignment of the generation is not taken over yet"
                self.result.outside.append(Outside(self.at, taken.line.act, f"a commit is accepted, but {reason}"))


def _returns(world: World) -> Iterator[Replaced]:
    """The replacements that wait for the log."""
    return (a.replaced for a in world.appends if a.replaced is not None)


def _offers(member: Member) -> tuple[str, ...]:
    return tuple(name for name, _ in member.protocols)


def _takes(before: Consumer, after: Consumer) -> bool:
    """Whether an assignment was taken over: the callback for what is new has begun."""

    def taking(c: Consumer) -> bool:
        return c.callback is not None and (c.callback.kind, c.callback.occasion) == ("assigned", "complete")

    return taking(after) and not taking(before)


class _Agreement:
    """What the world and the protocol must have in common after each step."""

    def __init__(self, simulation: _Simulation, world: World) -> None:
        self.s = simulation
        self.world = world
        self.group = _as_loaded(world)

    def check(self) -> None:
        """Raises _Failed with the first difference."""
        for what, here, there in self._compared():
            if here != there:
                raise _Failed(f"{what}: the world has {_shown(here)}, the protocol {_shown(there)}")

    def _compared(self) -> Iterator[tuple[str, object, object]]:
        yield from self._group()
        yield from self._log()
        for client in self.world.clients:
            yield from self._client(client)
        yield from self._nobody()

    def _group(self) -> Iterator[tuple[str, object, object]]:
        s, group = self.s, self.group
        members = {s.stand_in.get(m.id, m).id: s.stand_in.get(m.id, m) for m in group.members}
        standing = {x for x in s.universe.members if s.holds("member", x)}
        yield "members", set(members), standing
        phases = {"PreparingRebalance": "preparing", "CompletingRebalance": "completing", "Stable": "stable", "Empty": "stable"}
        emptied = group.state == "Empty" and s.phase == "preparing"
        yield "phase", "preparing" if emptied else phases[group.state], s.phase
        if group.state in ("CompletingRebalance", "Stable"):
            yield "generation", group.generation, s.number[s.of("generation")]
        for x, m in members.items():
            yield from self._claims(f"claims of {x}", _metadata(m), s.partitions("owned", x), s.of("owned_generation", x))
            if x not in s.early and x not in {old.id for old in s.stand_in.values()}:
                yield f"{x} waits for the join phase", m.join is not None, s.holds("joining", x)
            if group.state == "Stable":
                yield f"assignment of {x}", frozenset(_given(m.share)), s.assigned(s.of("generation"), x)
        if group.state == "CompletingRebalance":
            yield "proposed", s.proposing is not None, bool(s.state["proposed"])

    def _claims(self, what: str, metadata: Metadata, owned: frozenset[str], point: int) -> Iterator[tuple[str, object, object]]:
        """What is claimed, and from which generation; older clients name one from before a loss where they claim nothing."""
        yield what, frozenset(metadata.owned), owned
        if not self.s.old:
            yield f"generation of the {what}", metadata.generation, self.s.number[point]
        elif owned:
            yield f"generation of the {what}", metadata.user_data, self.s.number[point]

    def _log(self) -> Iterator[tuple[str, object, object]]:
        """What the log will hold of what the protocol has written."""
        s = self.s
        record = self.world.record
        for append in self.world.appends:
            ahead = append.why == "sync" and s.phase == "completing" and append.record and append.record.generation == self.group.generation
            if (self.world.epoch, append.number) in s.universe.made and not ahead:
                record = append.record
        stored = {m.id: m for m in record.members} if record is not None else {}
        yield "stored members", set(stored), {x for x in s.universe.members if s.holds("saved", x)}
        if stored and record is not None:
            point = s.of("saved_generation")
            yield "stored generation", record.generation, s.number[point]
            for x, m in stored.items():
                yield from self._claims(
                    f"stored claims of {x}", m.metadata, s.partitions("saved_owned", x), s.of("saved_owned_generation", x)
                )
                yield f"stored assignment of {x}", frozenset(_given(m.share)), s.assigned(point, x)

    def _client(self, client: Client) -> Iterator[tuple[str, object, object]]:
        s, x, state = self.s, self.s.who.get(client.name), client.state
        if x is None or s.holds("fresh", x):
            yield f"what {client.name} owns", frozenset(owned(client)), frozenset[str]()
            return
        assert isinstance(state, Consumer)
        yield f"what {x} owns", frozenset(state.assignment), s.partitions("believes", x)
        if not (state.member_state is MemberState.UNJOINED and state.assignment):
            yield f"state of {x}", *self._client_state(x, state)
        if state.joined:
            point = s.of("joined", x)
            if state.member_state is MemberState.STABLE and s.client_state(x) == "syncs":
                point = (s.row("sync_response", x) or [point])[0]
            yield f"generation of {x}", state.generation.id, s.number[point]
        for call in client.calls:
            yield from self._call(call, x)

    def _client_state(self, x: str, state: Consumer) -> tuple[str, str]:
        there = self.s.client_state(x)
        match state.member_state:
            case MemberState.UNJOINED:
                return "unjoined", there
            case MemberState.PREPARING_REBALANCE:
                return "joins", there
            case MemberState.COMPLETING_REBALANCE:
                return "syncs", there
            case MemberState.STABLE:
                return "syncs" if there == "syncs" and self.s.row("sync_response", x) else "settled", there

    def _call(self, call: Call, x: str) -> Iterator[tuple[str, object, object]]:
        """A request or an answer that is under way."""
        s = self.s
        match call:
            case Call(request=JoinRequest(member=member) as request, received=False) if member == x:
                yield f"JoinGroup of {x} under way", True, s.holds("join_request", x)
                metadata = _metadata(request)
                yield from self._claims(
                    f"claims on the way from {x}", metadata, s.partitions("request_owned", x), s.of("request_generation", x)
                )
            case Call(response=JoinResponse(error="NONE", generation=generation)):
                yield f"JoinGroup answer for {x}", [generation], [s.number[g] for g in s.row("join_response", x)]
            case Call(request=SyncRequest(member=member, generation=generation), response=None) if member == x:
                asked = {s.number[g] for g in s.row("sync_request", x)}
                yield f"SyncGroup of {x} under way", True, generation in asked or bool(s.row("sync_response", x))
            case Call(request=SyncRequest(member=member), response=SyncResponse(error="NONE", share=share)) if member == x:
                yield f"SyncGroup answer for {x}", True, bool(s.row("sync_response", x))
                yield f"assignment on the way to {x}", frozenset(_given(share)), s.partitions("response_assignment", x)
            case _:
                pass

    def _nobody(self) -> Iterator[tuple[str, object, object]]:
        """Members that are no client any more own nothing and do nothing."""
        clients = set(self.s.who.values())
        for x in self.s.universe.members.keys() - clients:
            yield f"{x} is gone", True, self.s.client_state(x) in ("fresh", "unjoined", "dead")


def _shown(value: object) -> str:
    return "{" + ", ".join(sorted(map(str, cast("Iterable[object]", value)))) + "}" if isinstance(value, Set) else str(value)
