"""The consumer as a process: what happens to it, and what it does then.

The application thread acts in `Poll`, `Subscribe`, `CommitDue`, `Close` and when its callback ends; the heartbeat thread in
`HeartbeatDue` and `PollTimeout`; answers are handled as they come, on either. So the effect of an answer on what the
member owns waits for the application's next poll, as in Kafka.
"""

from __future__ import annotations

from ..choice import Choose
from ..messages import CommitRequest, HeartbeatRequest
from ..process import (
    Answer,
    CallbackDone,
    Close,
    CommitDue,
    Disconnected,
    Happening,
    HeartbeatDue,
    Poll,
    PollTimeout,
    Subscribe,
    Turn,
    exception,
)
from .answers import answered
from .config import Config
from .membership import find_coordinator, mark_coordinator_unknown, maybe_leave_group, request_rejoin
from .rebalance import callback_done, closed, commit_refused, leave, rejoin_if_needed, send_commit
from .state import CallbackKind, Consumer, Step, snapshot


def start(config: Config, now: int) -> Consumer:
    """A consumer that has subscribed and not polled yet."""
    return Consumer(config=config, subscription=tuple(sorted(set(config.topics))), heard=now)


def step(consumer: Consumer, happening: Happening, now: int, choose: Choose) -> Turn[Consumer]:
    """What the consumer does when ``happening`` happens at ``now`` (ms).

    Nothing if it is closed, or if its application is to call it while inside close. Raises ValueError if the application is
    to poll, subscribe or close while inside a callback (it may commit there), or to leave a callback that it is not in.
    """
    going = Step(consumer, now)
    if not consumer.closed:
        _happens(going, happening)
    return going.turn()


def busy(consumer: Consumer) -> CallbackKind | None:
    """Which rebalance callback runs now: until `CallbackDone` the application can't poll."""
    return consumer.callback.kind if consumer.callback is not None else None


def owned(consumer: Consumer) -> tuple[str, ...]:
    """What the consumer believes it owns: while a revoking callback runs still with what it revokes."""
    return consumer.assignment


def outstanding(consumer: Consumer) -> tuple[int, ...]:
    """The correlation numbers of requests that wait for an answer. When one is disconnected, all are: they share a connection."""
    return tuple(each.correlation for each in consumer.in_flight)


def _happens(step: Step, happening: Happening) -> None:
    c = step.consumer
    match happening:
        case Answer(correlation=number):
            asked = next((each for each in c.in_flight if each.correlation == number), None)
            if asked is not None:
                answered(step, happening, asked)
                _go_on_closing(step)
        case Disconnected(number):
            if number in outstanding(c):
                mark_coordinator_unknown(step)
                _go_on_closing(step)
        case HeartbeatDue():
            _heartbeat(step)
        case PollTimeout():
            if c.joined and not c.closing:
                find_coordinator(step)
                maybe_leave_group(step, "consumer poll timeout has expired.")
        case CallbackDone(raised):
            if c.callback is None:
                raise ValueError("no callback is running")
            callback_done(step, c.callback, raised)
        case CommitDue():
            if c.callback is not None or not c.closing:
                step.error = _commit(step)
        case Poll() | Subscribe() | Close() if c.callback is not None:
            raise ValueError(f"{type(happening).__name__} inside a callback")
        case Poll() | Subscribe() | Close() if c.closing:
            pass
        case Poll():
            _poll(step, happening)
        case Subscribe(()):
            leave(step, "unsubscribe")
        case Subscribe(topics):
            step.change(subscription=tuple(sorted(set(topics))))
        case Close():
            step.change(closing=True)
            if c.config.auto_commit:
                _commit(step)
            _go_on_closing(step)


def _poll(step: Step, poll: Poll) -> None:
    c = step.consumer
    if not c.subscription:
        return
    if c.fenced:
        step.change(fenced=False)
        step.error = exception("FENCED_INSTANCE_ID")
        return
    find_coordinator(step)
    seen = c.assignment_snapshot
    if seen is not None and not c.rejoin_needed and snapshot(seen.watched, poll.topics, poll.racks, c.config.rack) != seen:
        request_rejoin(step, "cached metadata has changed")
    rejoin_if_needed(step)


def _heartbeat(step: Step) -> None:
    """One round of the heartbeat thread, which rests unless JoinGroup was answered, and ends before close runs its callback."""
    c = step.consumer
    if not c.joined or (c.closing and c.callback is not None):
        return
    if not c.coordinator_known:
        find_coordinator(step)
    elif step.now - c.heard >= c.config.session_timeout_ms:
        mark_coordinator_unknown(step)
    else:
        generation, member = c.generation.id, c.generation.member
        step.send(HeartbeatRequest(member=member, generation=generation, instance=c.config.instance))


def _commit(step: Step) -> str | None:
    """Commit what is owned, if anything; returns what that throws without asking the coordinator."""
    c = step.consumer
    refused = commit_refused(c) if c.assignment else None
    if c.assignment and refused is None:
        find_coordinator(step)
        send_commit(step)
    return refused


def _go_on_closing(step: Step) -> None:
    """Close waits for commits in flight, then leaves; without the callback and LeaveGroup where so configured."""
    c = step.consumer
    if not c.closing or c.callback is not None or any(isinstance(each.request, CommitRequest) for each in c.in_flight):
        return
    if c.config.leave_on_close:
        leave(step, "close")
    else:
        closed(step)
