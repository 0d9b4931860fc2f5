"""A Kafka Connect worker in distributed mode: the herder's thread, group membership, and what it runs.

A worker keeps its work while it joins (protocol versions 1 and 2). It stops what a generation revokes before anything
else, starts what it was given, and only then joins again if it had to stop something. Stopping takes time: the step that
begins it leaves it pending, `CallbackDone` ends it. Connect knows no static membership.

Source: WorkerCoordinator and DistributedHerder of Kafka 3.9, KIP-415.
"""

from __future__ import annotations

from dataclasses import replace

from ...spec.events import Assigned, Closed, Lost, Owned, Resources, Revoked
from ..choice import Choose
from ..messages import HeartbeatRequest, JoinRequest, LeaveRequest
from ..process import Answer, CallbackDone, Close, Disconnected, HeartbeatDue, Poll, PollTimeout, Turn
from .answers import answered, lose_coordinator, reset
from .state import (
    EAGER,
    OFFERS,
    RETRIES,
    Config,
    ConfigState,
    Configured,
    MemberState,
    Occasion,
    Step,
    Stopping,
    Unreachable,
    Worker,
    WorkerHappening,
    header,
    metadata,
)

__all__ = ["Config", "Configured", "Worker", "WorkerHappening", "busy", "outstanding", "owned", "start", "step"]


def start(config: Config, now: int) -> Worker:
    """A worker that has read the config topic and runs nothing yet."""
    configs = ConfigState(config.connectors, config.offset)
    return Worker(config=config, configs=configs, sent_configs=configs, current=OFFERS[config.protocol][0])


def busy(worker: Worker) -> str | None:
    """What keeps the herder's thread: ``revoked`` or ``lost`` while work is being stopped, else None."""
    if worker.stopping is None:
        return None
    return "revoked" if worker.stopping.orderly else "lost"


def owned(worker: Worker) -> Resources:
    """What runs, sorted."""
    return worker.running


def outstanding(worker: Worker) -> tuple[int, ...]:
    """The correlation numbers of the requests that the worker still wants answers to."""
    return tuple(each.correlation for each in worker.in_flight)


def step(worker: Worker, happening: WorkerHappening, now: int, choose: Choose) -> Turn[Worker]:
    """One step. A worker leaves nothing to chance: what Kafka's leader leaves to hash order is reproduced."""
    this = Step(worker, now)
    if worker.closed:
        return this.turn()
    match happening:
        case Poll():
            _tick(this)
        case Answer(correlation, response):
            asked = next((each for each in worker.in_flight if each.correlation == correlation), None)
            if asked is not None:
                answered(this, asked, response)
        case Disconnected(correlation):
            if correlation in outstanding(worker):
                lose_coordinator(this)
        case HeartbeatDue():
            _heartbeat(this)
        case PollTimeout():
            _leave(this, "worker poll timeout has expired.")
        case CallbackDone() if worker.stopping is not None:
            _stopped(this, worker.stopping)
        case Configured(connectors, offset):
            changed = connectors != worker.configs.connectors
            this.change(configs=ConfigState(connectors, offset), rejoin=worker.rejoin or changed)
        case Close() if worker.stopping is None:
            _stop(this, worker.running, "close")
        case _:
            pass
    return this.turn()


def _tick(step: Step) -> None:
    """The herder's loop, until it waits for something. Source: DistributedHerder.tick, WorkerCoordinator.poll."""
    while step.worker.stopping is None and not step.worker.closed and _in_sync(step):
        w = step.worker
        if _cut_off(w, step.now):
            _stop(step, w.running, "cut off")
        elif w.synced is not None and w.state is not MemberState.STABLE:
            step.change(synced=None)
        elif w.synced is not None:
            _join_complete(step)
        elif w.unreachable is not None:
            if not _coordinator_ready(step, w.unreachable):
                return
        elif w.rejoin or w.snapshot is None:
            if w.joining or not _join(step):
                return
        elif w.state is not MemberState.STABLE or _rebalance_completed(step) or not step.worker.rejoin:
            return


def _cut_off(w: Worker, now: int) -> bool:
    return w.unreachable is not None and w.snapshot is not None and now >= w.unreachable.since + w.config.heartbeat_interval_ms


def _coordinator_ready(step: Step, lost: Unreachable) -> bool:
    """Look for the coordinator that was lost; a heartbeat stands in for FindCoordinator, any answer will do.

    Source: AbstractCoordinator.ensureCoordinatorReady.
    """
    w = step.worker
    if step.now < lost.retry or w.in_flight:
        return False
    member = w.membership.member or w.identity.member
    if not member:
        step.change(unreachable=None)
        return True
    step.send(HeartbeatRequest(member=member, generation=w.membership.generation))
    return False


def _heartbeat(step: Step) -> None:
    w = step.worker
    beating = any(isinstance(each.request, HeartbeatRequest) for each in w.in_flight)
    if w.joined and w.unreachable is None and not beating:
        step.send(HeartbeatRequest(member=w.membership.member, generation=w.membership.generation))


# Joining.


def _join(step: Step) -> bool:
    """Send JoinGroup; False once sent. Workers of version 0 stop everything first. Source: WorkerCoordinator.onJoinPrepare."""
    w = step.worker
    if not w.prepared:
        step.change(prepared=True)
        stops = w.current == EAGER or w.has("worker-stops-everything-to-join")
        if stops and w.snapshot is not None and not header(w.snapshot).failed:
            known = w.snapshot.resources if w.has("downgrade-leaks-work") else w.running
            _stop(step, tuple(unit for unit in w.running if unit in known), "prepare")
            return True
    c = w.config
    step.change(state=MemberState.PREPARING_REBALANCE, sent_configs=w.configs)
    request = JoinRequest(
        member=w.membership.member,
        client=c.client,
        protocol_type="connect",
        protocols=metadata(w),
        session_timeout_ms=c.session_timeout_ms,
        rebalance_timeout_ms=c.rebalance_timeout_ms,
        version=c.join_version,
    )
    step.send(request)
    return False


def _join_complete(step: Step) -> None:
    """SyncGroup brought a share: stop what it revokes, then take it over. Source: WorkerCoordinator.onJoinComplete."""
    w = step.worker
    share = w.synced
    assert share is not None
    step.change(rejoin=False, prepared=False)
    revoked = share.revoked or ()
    skipped = w.has("unresolved-round-skips-revocation") and (not w.resolved or w.timer is not None)
    if revoked and w.identity.protocol != EAGER and not skipped:
        _stop(step, tuple(unit for unit in w.running if unit in revoked), "complete")
    else:
        _take_over(step)


def _take_over(step: Step) -> None:
    """The share becomes the worker's assignment: on the wire it only said what to start and what to stop."""
    w = step.worker
    share = w.synced
    assert share is not None
    if w.identity.protocol != EAGER:
        started = share.started or ()
        kept = () if w.snapshot is None else w.snapshot.resources
        kept = tuple(unit for unit in kept if unit not in (share.revoked or ()) and unit not in started)
        share = replace(share, resources=(*started, *kept), started=None)
    delay = share.delay_ms or 0
    step.change(
        synced=None,
        snapshot=share,
        current=w.identity.protocol,
        completed=w.identity.generation,
        timer=step.now + delay if delay > 0 else None,
        resolved=False,
        reading=None,
    )


# After a rebalance.


def _rebalance_completed(step: Step) -> bool:
    """Start what was assigned; False if that has to wait or takes another rebalance.

    Source: DistributedHerder.handleRebalanceCompleted.
    """
    w = step.worker
    assert w.snapshot is not None
    if w.resolved and w.timer is None:
        return True
    told = header(w.snapshot)
    due = w.timer is not None and w.timer <= step.now
    if w.configs.offset < told.offset and not due:
        return _read_configs(step)
    step.change(reading=None)
    if told.failed or due or w.configs.offset != told.offset:
        step.change(timer=None if due else w.timer, resolved=False, rejoin=True)
        return False
    if w.resolved:
        return True
    return _start_work(step)


def _start_work(step: Step) -> bool:
    """Start what does not run yet; what version 0 took away unasked is stopped first."""
    w = step.worker
    assert w.snapshot is not None
    mine = w.snapshot.resources
    left = tuple(unit for unit in w.running if unit not in mine)
    if left and w.current == EAGER and not w.has("downgrade-leaks-work"):
        _stop(step, left, "started")
        return False
    fresh = tuple(sorted(set(mine) - set(w.running)))
    step.change(running=tuple(sorted({*w.running, *mine})), resolved=True, retries=RETRIES)
    if fresh:
        step.tell(Assigned, fresh)
    step.tell(Owned, step.worker.running)
    if w.snapshot.revoked:
        step.change(snapshot=replace(w.snapshot, revoked=()), rejoin=True)
        return False
    return True


def _read_configs(step: Step) -> bool:
    """Wait for the config topic, for a while; then leave the group. Source: DistributedHerder.readConfigToEnd, backoff."""
    w = step.worker
    if w.reading is None:
        step.change(reading=step.now)
    elif step.now >= w.reading + w.config.sync_timeout_ms:
        _leave(step, "taking too long to read the log")
        _back_off(step)
    return False


def _in_sync(step: Step) -> bool:
    """Whether the worker may join: one that could not read the config topic stays out of the group until it can."""
    w = step.worker
    if w.backoff is None:
        return True
    if w.snapshot is None or w.configs.offset >= header(w.snapshot).offset:
        step.change(backoff=None, retries=RETRIES)
        return True
    if step.now >= w.backoff:
        _back_off(step)
    return False


def _back_off(step: Step) -> None:
    w = step.worker
    if w.retries:
        step.change(backoff=step.now + w.config.max_delay_ms // 10 // w.retries, retries=w.retries - 1, reading=None)
    else:
        step.change(backoff=step.now + w.config.sync_timeout_ms, retries=RETRIES)
        _stop(step, w.running, "unsynced")


# Stopping, and leaving.


def _stop(step: Step, units: Resources, occasion: Occasion) -> None:
    """Begin to stop work; nothing to stop takes no time."""
    stopping = Stopping(units, occasion)
    step.change(stopping=stopping)
    if not units:
        _stopped(step, stopping)


def _stopped(step: Step, stopping: Stopping) -> None:
    """The work is stopped: go on where the herder was. What missed its time to stop was abandoned, which looks the same."""
    w = step.worker
    gone = stopping.units
    step.change(stopping=None, running=tuple(unit for unit in w.running if unit not in gone))
    if gone:
        step.tell(Revoked if stopping.orderly else Lost, gone)
    match stopping.occasion:
        case "complete":
            _take_over(step)
        case "cut off":
            step.change(snapshot=None, rejoin=True)
        case "close":
            _leave(step, "the consumer is being closed")
            step.tell(Closed)
            step.change(closed=True)
        case _:
            pass


def _leave(step: Step, reason: str) -> None:
    """Leave the group if the worker is in it, in any case lose the membership. Source: AbstractCoordinator.maybeLeaveGroup."""
    w = step.worker
    if w.membership.member and w.state is not MemberState.UNJOINED and w.unreachable is None:
        step.send(LeaveRequest(member=w.membership.member, reason=reason))
    reset(step)
