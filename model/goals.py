"""What a good set of runs must have reached: `sometimes` properties, one step of the world at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from ..spec.events import Commit, Expire, GenerationStarted, Heartbeat, Joined, Leave, Lost, Rebalance, Replace, Sync, Synced
from . import consumer
from .acts import Fall, Fire, Refuse, Resign, Start, Wander
from .connect import worker
from .messages import JoinRequest
from .runs import Taken
from .world import World

Goal = Callable[[Taken], bool]


def reached(taken: Taken) -> Iterator[str]:
    """The goals that a step reaches, by name."""
    return (name for name, goal in GOALS.items() if goal(taken))


def _told(taken: Taken, *kinds: type) -> Iterator[object]:
    return (event for event in taken.moved.events if isinstance(event, kinds))


def _state(world: World) -> str:
    return world.group.state


def _replaced_in(*states: str) -> Goal:
    return lambda taken: _state(taken.before) in states and any(_told(taken, Replace))


def _refused(kind: type[Joined | Synced | Heartbeat | Commit | Leave], *errors: str) -> Goal:
    return lambda taken: any(getattr(event, "error", "") in errors for event in _told(taken, kind))


def _expires(reason: str) -> Goal:
    return lambda taken: any(isinstance(event, Expire) and event.reason == reason for event in taken.moved.events)


def _rebalances_because(*words: str) -> Goal:
    def goal(taken: Taken) -> bool:
        return any(isinstance(e, Rebalance) and any(word in (e.reason or "") for word in words) for e in taken.moved.events)

    return goal


def _leader_fenced_in_sync(taken: Taken) -> bool:
    group = taken.before.group
    replaced = (e.old_member for e in taken.moved.events if isinstance(e, Replace))
    return group.state == "CompletingRebalance" and group.leader in replaced


def _expiry_during_revocation(taken: Taken) -> bool:
    """The member whose session expires is in its revocation callback just then."""
    expired = {e.member for e in taken.moved.events if isinstance(e, Expire) and e.reason == "session"}
    return any(
        isinstance(c.state, consumer.Consumer)
        and c.state.identity.member in expired
        and c.state.callback is not None
        and c.state.callback.kind == "revoked"
        for c in taken.before.clients
    )


def _failover_between_join_and_sync(taken: Taken) -> bool:
    return isinstance(taken.line.act, Resign | Fall) and _state(taken.before) == "CompletingRebalance"


def _protocol_switches(taken: Taken) -> bool:
    """A rolling upgrade: the group's first cooperative generation."""
    group = taken.before.group
    started = (e.protocol for e in taken.moved.events if isinstance(e, GenerationStarted))
    return group.protocol == "range" and "cooperative-sticky" in started


def _lost_callback(taken: Taken) -> bool:
    return any(isinstance(e, Lost) and e.resources for e in taken.moved.events)


def _connect_delay_ends(taken: Taken) -> bool:
    """The leader deals departed work out, for the delay that the last generation announced is over."""
    shares = [m.share for m in taken.before.group.members]
    return any(share is not None and share.delay_ms for share in shares) and any(
        isinstance(e, Sync) and e.delay_ms == 0 and e.assignment for e in taken.moved.events
    )


def _worker_returns(taken: Taken) -> bool:
    """A worker starts while departed work waits."""
    waiting = any(isinstance(c.state, worker.Worker) and c.state.deadline is not None for c in taken.before.clients)
    return isinstance(taken.line.act, Start) and waiting


def _member_id_unused(taken: Taken) -> bool:
    return isinstance(taken.line.act, Fire) and taken.line.act.kind == "pending"


def _absent_static_kept(taken: Taken) -> bool:
    """A join phase ends without a static member, which stays."""
    group = taken.before.group
    ended = any(isinstance(e, GenerationStarted) and e.members for e in taken.moved.events)
    return ended and any(m.instance and m.join is None for m in group.members)


def _commit_while_preparing(taken: Taken) -> bool:
    granted = any(isinstance(e, Commit) and e.error == "NONE" for e in taken.moved.events)
    return granted and _state(taken.before) == "PreparingRebalance"


def _late_join(taken: Taken) -> bool:
    """A JoinGroup that was sent on a broken connection arrives after all."""
    if not isinstance(taken.line.act, Wander):
        return False
    stray = next(s for s in taken.before.strays if s.connection == taken.line.act.connection)
    return isinstance(stray.call.request, JoinRequest)


def _fenced_without_twin(taken: Taken) -> bool:
    """After a failover a live static member is fenced although nobody shares its instance."""
    fenced = any(getattr(e, "error", "") == "FENCED_INSTANCE_ID" for e in taken.moved.events)
    instances = [c.config.instance for c in taken.before.clients if isinstance(c.config, consumer.Config) and c.config.instance]
    return fenced and taken.before.epoch > 0 and len(set(instances)) == len(instances)


GOALS: Mapping[str, Goal] = MappingProxyType(
    {
        "static leader fenced in the middle of a sync": _leader_fenced_in_sync,
        "session expires during revocation": _expiry_during_revocation,
        "follow-up round": _rebalances_because("need to revoke partitions"),
        "failover between join and sync": _failover_between_join_and_sync,
        "static replacement in a stable group": _replaced_in("Stable"),
        "static replacement in a rebalance": _replaced_in("PreparingRebalance", "CompletingRebalance"),
        "stale SyncGroup rejected": _refused(Synced, "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS"),
        "zombie commit rejected": _refused(Commit, "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"),
        "commit granted while preparing": _commit_while_preparing,
        "stale heartbeat rejected": _refused(Heartbeat, "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"),
        "given member id expires unused": _member_id_unused,
        "member id required": _refused(Joined, "MEMBER_ID_REQUIRED"),
        "protocol refused": _refused(Joined, "INCONSISTENT_GROUP_PROTOCOL"),
        "append fails": lambda taken: isinstance(taken.line.act, Refuse),
        "protocol switch from range to cooperative": _protocol_switches,
        "partition growth rebalances": _rebalances_because("metadata"),
        "partitions lost": _lost_callback,
        "poll timeout leaves": lambda taken: any(isinstance(e, Leave) and "poll timeout" in (e.reason or "") for e in taken.moved.events),
        "member dropped at the rebalance timeout": _expires("rebalance"),
        "member removed at the sync timeout": _expires("sync"),
        "absent static member kept": _absent_static_kept,
        "late JoinGroup": _late_join,
        "static member fenced after a failover": _fenced_without_twin,
        "Connect delay ends": _connect_delay_ends,
        "Connect worker returns within the delay": _worker_returns,
        "Connect revokes for balance": lambda taken: any(
            isinstance(e, Sync) and any((e.revoked or {}).values()) for e in taken.moved.events
        ),
    }
)
