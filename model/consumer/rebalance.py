"""What the application thread does inside poll, unsubscribe and close: join, and run the rebalance callbacks.

A callback takes time: onJoinPrepare, onJoinComplete and onLeavePrepare end here where their callback starts, and
`callback_done` goes on from there. Source: AbstractCoordinator.joinGroupIfNeeded, ConsumerCoordinator.
"""

from __future__ import annotations

from dataclasses import replace

from ...spec.events import Assigned, Closed, Lost, Owned, Resources, Revoked
from ..assignors.base import Claim, split
from ..messages import CommitRequest, JoinRequest
from ..process import exception
from .leader import metadata, rebalance_protocol
from .membership import maybe_leave_group, request_rejoin, reset
from .state import Callback, Consumer, Failed, MemberState, Occasion, PrepareCommit, Step, Succeeded, Waiting

LISTENER_RAISED = "KafkaException"
REVOKED = "need to revoke partitions and re-join"
CHANGES = {"revoked": Revoked, "lost": Lost, "assigned": Assigned}
LEAVE_REASONS = {"unsubscribe": "the consumer unsubscribed from all topics", "close": "the consumer is being closed"}


def rejoin_if_needed(step: Step) -> None:
    """Go round the join loop until it waits for an answer or a callback, throws, or the member is in the group."""
    while step.consumer.callback is None and step.error is None and _rejoin_needed_or_pending(step):
        if step.consumer.needs_join_prepare:
            if not _committed(step):
                return
            step.change(needs_join_prepare=False)
            _prepare(step)
            continue
        match step.consumer.join:
            case None:
                _send_join(step)
                return
            case Waiting():
                return
            case Succeeded():
                _complete(step)
            case Failed(failure, then):
                step.change(join=None)
                if failure != exception("MEMBER_ID_REQUIRED"):
                    request_rejoin(step, f"rebalance failed due to {failure}")
                if then == "throw":
                    step.error = failure
                if then == "backoff":
                    return


def leave(step: Step, occasion: Occasion) -> None:
    """Unsubscribe, or the second half of close: give everything up in order, or as lost, then leave the group."""
    c = step.consumer
    if c.assignment:
        in_order = not (_is_out(c) or c.rebalancing) or c.has("leaving-member-revokes-what-it-lost")
        step.change(callback=Callback("revoked" if in_order else "lost", c.assignment, occasion))
    else:
        _left(step, occasion, raised=False)


def closed(step: Step) -> None:
    """The process ends."""
    step.tell(Closed)
    step.change(closed=True, assignment=(), in_flight=())


def callback_done(step: Step, callback: Callback, raised: bool) -> None:
    """Go on after a callback. What it raised is thrown once the change of belief is done, a wakeup at once."""
    step.change(callback=None)
    if raised and callback.occasion != "close" and step.consumer.has("wakeup-in-callback-keeps-partitions"):
        step.error = "WakeupException"
        return
    step.tell(CHANGES[callback.kind], callback.partitions)
    raised = raised or callback.raised
    match callback.occasion:
        case "prepare":
            _give_up(step, callback.partitions)
            _end_prepare(step)
        case "complete" if callback.kind == "revoked":
            if not step.consumer.has("revoker-stays"):
                request_rejoin(step, REVOKED)
            _take(step, _assigned(step.consumer) or (), raised=raised)
            return
        case "complete":
            step.tell(Owned, step.consumer.assignment)
            if not raised:
                _end_complete(step)
        case occasion:
            _give_up(step, callback.partitions)
            _left(step, occasion, raised)
    if raised:
        step.error = LISTENER_RAISED
    elif not step.consumer.closing:
        rejoin_if_needed(step)


def commit_refused(c: Consumer) -> str | None:
    """What a commit throws without asking the coordinator: a subscribed member may commit only while STABLE."""
    if c.member_state is MemberState.STABLE:
        return None
    return exception("REBALANCE_IN_PROGRESS") if c.rebalancing else "CommitFailedException"


def send_commit(step: Step) -> int:
    """Commit everything owned; returns the correlation number."""
    c = step.consumer
    generation, member = c.generation.id, c.generation.member
    return step.send(CommitRequest(member=member, generation=generation, partitions=c.assignment, instance=c.config.instance))


def _rejoin_needed_or_pending(step: Step) -> bool:
    c = step.consumer
    if not c.subscription:
        return False
    if not c.rejoin_needed and c.joined_subscription not in (None, c.subscription):
        request_rejoin(step, "subscription has changed")
    return step.consumer.rejoin_needed or c.join is not None


def _is_out(c: Consumer) -> bool:
    """Whether the generation or the member id was reset."""
    no_generation, no_member = c.generation.id == -1, c.generation.member == ""
    return (no_generation and no_member) if c.has("known-member-keeps-what-it-lost") else (no_generation or no_member)


def _committed(step: Step) -> bool:
    """Whether the auto-commit that goes before a rebalance is through, or has used up the rebalance timeout."""
    c = step.consumer
    if not c.config.auto_commit:
        return True
    pending = c.prepare_commit or PrepareCommit(step.now + c.config.rebalance_timeout_ms)
    if pending.correlation is None and not pending.done:
        if not c.assignment or commit_refused(c):
            return True
        pending = replace(pending, correlation=send_commit(step))
        step.change(prepare_commit=pending)
    if c.has("prepare-commit-never-ends"):
        return commit_refused(c) is not None
    return pending.done or step.now >= pending.deadline


def _prepare(step: Step) -> None:
    """onJoinPrepare: before JoinGroup, give up what must not be carried into the rebalance."""
    c = step.consumer
    everything = rebalance_protocol(c.config) == "EAGER" or c.has("cooperative-member-revokes-everything")
    unsubscribed = tuple(p for p in c.assignment if _topic(p) not in c.subscription)
    if _is_out(c):
        callback = Callback("lost", c.assignment, "prepare") if c.assignment else None
    elif everything:
        callback = Callback("revoked", c.assignment, "prepare")
    else:
        callback = Callback("revoked", unsubscribed, "prepare") if unsubscribed else None
    step.change(callback=callback, prepare_commit=None)
    if callback is None:
        _end_prepare(step)


def _end_prepare(step: Step) -> None:
    step.change(is_leader=False)


def _send_join(step: Step) -> None:
    c = step.consumer
    step.change(member_state=MemberState.PREPARING_REBALANCE, join=Waiting(), joined_subscription=c.subscription)
    step.send(
        JoinRequest(
            member=c.generation.member,
            instance=c.config.instance,
            client=c.config.client,
            protocols=metadata(c),
            session_timeout_ms=c.config.session_timeout_ms,
            rebalance_timeout_ms=c.config.rebalance_timeout_ms,
            version=c.config.join_version,
            reason=c.rejoin_reason,
        )
    )


def _assigned(c: Consumer) -> Resources | None:
    """What SyncGroup brought; None for empty bytes, which are not even an empty assignment."""
    share = c.join.share if isinstance(c.join, Succeeded) else None
    return tuple(sorted(share.resources)) if share is not None else None


def _complete(step: Step) -> None:
    """onJoinComplete: a cooperative member first revokes, while it still owns it, what it is not assigned again."""
    c = step.consumer
    assigned = _assigned(c)
    if (c.generation.was_reset or c.member_state is not MemberState.STABLE) and not c.has("completes-after-reset"):
        reset(step, "rebalance failed since the generation was modified before the rebalance callback", keep_member=False)
        step.change(join=None)
        return
    if not c.is_leader:
        step.change(assignment_snapshot=None)
    if assigned is None:
        step.error = "IllegalStateException"
    elif any(_topic(p) not in c.subscription for p in assigned):
        request_rejoin(step, "received assignment does not match the current subscription")
        _end_complete(step)
    else:
        moving = _moving(c, assigned)
        revoked = _without(moving, _held_back(c, moving))
        if revoked:
            step.change(callback=Callback("revoked", revoked, "complete"))
        else:
            if moving:
                request_rejoin(step, REVOKED)
            _take(step, assigned, raised=False)


def _moving(c: Consumer, assigned: Resources) -> Resources:
    """What a cooperative member owns and is not assigned again; an eager one has given everything up before."""
    return _without(c.assignment, assigned) if rebalance_protocol(c.config) == "COOPERATIVE" else ()


def _held_back(c: Consumer, moving: Resources) -> Resources:
    """What two deliberate defects do not revoke: all that moves away, or what was still reported when the member joined."""
    if c.has("member-keeps-what-it-must-give-up"):
        return moving
    if c.has("member-rejoins-before-revoking") and c.applied is not None:
        return tuple(p for p in moving if p in c.applied.partitions)
    return ()


def _take(step: Step, assigned: Resources, *, raised: bool) -> None:
    """The belief changes; onPartitionsAssigned hears what was added, even if that is nothing."""
    c = step.consumer
    step.change(
        assignment=tuple(sorted((*assigned, *_held_back(c, _moving(c, assigned))))),
        applied=Claim(assigned, c.identity.id),
        callback=Callback("assigned", _without(assigned, c.assignment), "complete", raised),
    )


def _end_complete(step: Step) -> None:
    step.change(join=None, needs_join_prepare=True)


def _left(step: Step, occasion: Occasion, raised: bool) -> None:
    """An exception of the callback keeps LeaveGroup from being sent, and the subscription from being dropped."""
    if not raised:
        maybe_leave_group(step, LEAVE_REASONS[occasion])
    if occasion == "close":
        closed(step)
    elif not raised:
        step.change(subscription=(), assignment=())


def _give_up(step: Step, partitions: Resources) -> None:
    step.change(assignment=_without(step.consumer.assignment, partitions))


def _topic(partition: str) -> str:
    return split(partition)[0]


def _without(partitions: Resources, others: Resources) -> Resources:
    return tuple(p for p in partitions if p not in others)
