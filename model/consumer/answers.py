"""What the member does with each answer, error code by error code.

Handlers run on whichever thread reads the network, so also while a callback runs; what the application thread then does
about it waits for its next poll. Source: the response handlers of AbstractCoordinator and ConsumerCoordinator.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..assignors import AssignorFailed
from ..messages import (
    CommitRequest,
    CommitResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    Share,
    SyncRequest,
    SyncResponse,
)
from ..process import Answer, exception
from .leader import lead
from .membership import mark_coordinator_unknown, prepare_commit_ended, request_rejoin, reset
from .state import Failed, Generation, InFlight, MemberState, Step, Succeeded

COORDINATOR_GONE = frozenset({"COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"})
MEMBERSHIP_GONE = frozenset({"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"})
LOADING = "COORDINATOR_LOAD_IN_PROGRESS"


def answered(step: Step, answer: Answer, asked: InFlight) -> None:
    """Handle the answer to ``asked``."""
    step.change(in_flight=tuple(r for r in step.consumer.in_flight if r is not asked))
    match asked.request, answer.response:
        case JoinRequest(), JoinResponse() as response:
            _join(step, response, asked.sent, answer.topics, answer.racks)
        case SyncRequest(), SyncResponse() as response:
            _sync(step, response, asked.sent)
        case HeartbeatRequest(), HeartbeatResponse() as response:
            _heartbeat(step, response.error, asked.sent)
        case CommitRequest(), CommitResponse() as response:
            _commit(step, response.error, asked)
        case LeaveRequest(), LeaveResponse():
            pass
        case request, response:
            raise ValueError(f"{type(response).__name__} answers {type(request).__name__}")


def _reset_on_error(step: Step, api: str, error: str) -> None:
    """The member id may still be valid after ILLEGAL_GENERATION, and only then."""
    reset(step, f"encountered {error} from {api} response", keep_member=error == "ILLEGAL_GENERATION")


def _is_current(step: Step, sent: Generation) -> bool:
    return step.consumer.generation == sent or step.consumer.has("stale-answer-resets-membership")


def _join(
    step: Step,
    response: JoinResponse,
    sent: Generation,
    topics: Mapping[str, int],
    racks: Mapping[str, tuple[str, ...]],
) -> None:
    match response.error:
        case "NONE" if step.consumer.member_state is MemberState.PREPARING_REBALANCE:
            _joined(step, response, topics, racks)
        case "NONE":
            step.change(join=Failed("UnjoinedGroupException", "backoff"))
        case "MEMBER_ID_REQUIRED":
            step.change(generation=Generation(member=response.member))
            request_rejoin(step, f"need to re-join with the given member-id: {response.member}")
            step.change(join=Failed(exception(response.error), "again"))
        case "UNKNOWN_MEMBER_ID":
            if _is_current(step, sent):
                _reset_on_error(step, "JOIN_GROUP", response.error)
            step.change(join=Failed(exception(response.error), "again"))
        case "REBALANCE_IN_PROGRESS":
            step.change(join=Failed(exception(response.error), "again"))
        case error if error == LOADING:
            step.change(join=Failed(exception(error), "backoff"))
        case error if error in COORDINATOR_GONE:
            mark_coordinator_unknown(step)
            step.change(join=Failed(exception(error), "backoff"))
        case error:
            step.change(join=Failed(exception(error), "throw"))


def _joined(step: Step, response: JoinResponse, topics: Mapping[str, int], racks: Mapping[str, tuple[str, ...]]) -> None:
    generation = Generation(response.generation, response.member, response.protocol)
    step.change(member_state=MemberState.COMPLETING_REBALANCE, generation=generation, identity=generation, heard=step.now)
    shares: Mapping[str, Share] = {}
    if response.leader == response.member:
        try:
            shares = lead(step, response, topics, racks)
        except AssignorFailed:
            step.change(join=Failed("IllegalStateException", "throw"))
            return
    step.send(
        SyncRequest(
            member=response.member,
            generation=response.generation,
            instance=step.consumer.config.instance,
            protocol=response.protocol,
            shares=tuple(sorted(shares.items())),
        )
    )


def _sync(step: Step, response: SyncResponse, sent: Generation) -> None:
    c = step.consumer
    match response.error:
        case "NONE" if c.generation.was_reset or c.member_state is not MemberState.COMPLETING_REBALANCE:
            step.change(join=Failed(exception("ILLEGAL_GENERATION"), "again"))
        case "NONE" if response.protocol not in (None, c.generation.protocol):
            step.change(join=Failed(exception("INCONSISTENT_GROUP_PROTOCOL"), "throw"))
        case "NONE":
            step.change(
                member_state=MemberState.STABLE,
                rejoin_needed=False,
                rejoin_reason="",
                join=Succeeded(response.share),
            )
        case "REBALANCE_IN_PROGRESS":
            if c.has("missed-sync-loses-everything"):
                _reset_on_error(step, "SYNC_GROUP", "ILLEGAL_GENERATION")
            step.change(join=Failed(exception(response.error), "again"))
        case error if error in MEMBERSHIP_GONE:
            if _is_current(step, sent):
                _reset_on_error(step, "SYNC_GROUP", error)
            step.change(join=Failed(exception(error), "again"))
        case error if error in COORDINATOR_GONE:
            mark_coordinator_unknown(step)
            step.change(join=Failed(exception(error), "backoff"))
        case error:
            step.change(join=Failed(exception(error), "throw"))


def _heartbeat(step: Step, error: str, sent: Generation) -> None:
    c = step.consumer
    match error:
        case "NONE":
            step.change(heard=step.now)
            if c.has("member-rejoins-with-every-heartbeat"):
                request_rejoin(step, "")
        case "REBALANCE_IN_PROGRESS":
            step.change(heard=step.now)
            if c.member_state is MemberState.STABLE:
                request_rejoin(step, "group is already rebalancing")
        case "FENCED_INSTANCE_ID" if c.has("fenced-member-goes-on"):
            step.change(heard=step.now)
        case "ILLEGAL_GENERATION" | "UNKNOWN_MEMBER_ID" | "FENCED_INSTANCE_ID":
            if _is_current(step, sent):
                _reset_on_error(step, "HEARTBEAT", error)
                step.change(fenced=error == "FENCED_INSTANCE_ID")
            else:
                step.change(heard=step.now)
        case error if error in COORDINATOR_GONE:
            mark_coordinator_unknown(step)
        case _:
            pass


def _commit(step: Step, error: str, asked: InFlight) -> None:
    """``step.error`` is what a synchronous commit throws; the commits of onJoinPrepare and close only log it."""
    match error:
        case "NONE":
            failure = None
        case "REBALANCE_IN_PROGRESS":
            request_rejoin(step, "offset commit failed since group is already rebalancing")
            failure = exception(error)
        case "UNKNOWN_MEMBER_ID" | "ILLEGAL_GENERATION" | "FENCED_INSTANCE_ID":
            current = step.consumer.generation == asked.sent
            preparing = step.consumer.member_state is MemberState.PREPARING_REBALANCE
            if not current and preparing:
                failure = exception("REBALANCE_IN_PROGRESS")
            elif error == "FENCED_INSTANCE_ID":
                failure = exception(error) if current else "CommitFailedException"
            else:
                _reset_on_error(step, "OFFSET_COMMIT", error)
                failure = "CommitFailedException"
        case error if error in COORDINATOR_GONE or error == "REQUEST_TIMED_OUT":
            mark_coordinator_unknown(step)
            failure = exception(error)
        case error:
            failure = exception(error)
    retriable = error in COORDINATOR_GONE or error in (LOADING, "REQUEST_TIMED_OUT", "UNKNOWN_TOPIC_OR_PARTITION")
    if not prepare_commit_ended(step, asked.correlation, retriable=retriable) and not step.consumer.closing:
        step.error = failure
