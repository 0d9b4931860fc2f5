"""What a worker does with each answer; what its herder then does about it waits for the next tick.

Source: the response handlers of AbstractCoordinator, and WorkerCoordinator.onLeaderElected.
"""

from __future__ import annotations

from ...spec.events import NONE
from ..messages import HeartbeatRequest, HeartbeatResponse, JoinRequest, JoinResponse, Metadata, Response, Share, SyncRequest, SyncResponse
from ..process import exception
from .leader import Asked, Header, Lead, LeadFailed, assign, assign_eagerly, follow, refuse
from .state import EAGER, RETRY_BACKOFF_MS, InFlight, Membership, MemberState, Step, Unreachable, reported
from .units import Connectors

COORDINATOR_GONE = frozenset({"COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"})
RETRIABLE = frozenset({"REBALANCE_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS"})
MEMBERSHIP_GONE = frozenset({"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"})


def answered(step: Step, asked: InFlight, response: Response) -> None:
    """Handle the answer to ``asked``."""
    if response.error in COORDINATOR_GONE:
        lose_coordinator(step)
        return
    step.change(in_flight=tuple(each for each in step.worker.in_flight if each is not asked), unreachable=None)
    match asked.request, response:
        case JoinRequest(), JoinResponse():
            _join(step, asked.sent, response)
        case SyncRequest(), SyncResponse():
            _sync(step, asked.sent, response)
        case HeartbeatRequest() as request, HeartbeatResponse() if request.member == asked.sent.member:
            _heartbeat(step, asked.sent, response.error)
        case _:
            pass


def lose_coordinator(step: Step) -> None:
    """Drop the connection to the coordinator, and what is in flight on it; membership and work stay."""
    w = step.worker
    since = step.now if w.unreachable is None else w.unreachable.since
    step.change(in_flight=(), rejoin=w.rejoin or w.joining, unreachable=Unreachable(since, step.now + RETRY_BACKOFF_MS))


def reset(step: Step, *, keep_member: bool = False) -> None:
    """The session is lost: join again, as a new member unless the id may still be valid. Work goes on, unlike a consumer's."""
    step.change(
        state=MemberState.UNJOINED,
        membership=Membership(member=step.worker.membership.member if keep_member else ""),
        rejoin=True,
        prepared=False,
    )


def _reset_unless_stale(step: Step, sent: Membership, error: str) -> None:
    if step.worker.membership == sent:
        reset(step, keep_member=error == "ILLEGAL_GENERATION")


def _join(step: Step, sent: Membership, response: JoinResponse) -> None:
    w = step.worker
    match response.error:
        case "NONE" if w.state is MemberState.PREPARING_REBALANCE:
            _joined(step, response)
        case "MEMBER_ID_REQUIRED":
            step.change(membership=Membership(member=response.member), rejoin=True)
        case "UNKNOWN_MEMBER_ID":
            _reset_unless_stale(step, sent, response.error)
        case error:
            step.change(rejoin=True)
            if error != NONE and error not in RETRIABLE:
                step.error = exception(error)


def _joined(step: Step, response: JoinResponse) -> None:
    membership = Membership(response.generation, response.member, response.protocol)
    step.change(state=MemberState.COMPLETING_REBALANCE, membership=membership, identity=membership)
    if response.skip_assignment:
        step.error = "IllegalStateException"
        return
    try:
        shares = _lead(step, response) if response.leader == response.member else ()
    except LeadFailed:
        step.error = "ConnectException"
        return
    request = SyncRequest(
        member=response.member,
        generation=response.generation,
        protocol_type="connect",
        protocol=response.protocol,
        shares=tuple(sorted(shares, key=lambda share: share[0])),
    )
    step.send(request)


def _lead(step: Step, response: JoinResponse) -> tuple[tuple[str, Share], ...]:
    """Share out the work as leader. Source: IncrementalCooperativeAssignor.performAssignment, ensureLeaderConfig."""
    w = step.worker
    members = tuple((each.member, each.metadata) for each in response.members)
    newest = max(reported(told.user_data).offset for _, told in members)
    configs, offset = w.sent_configs, newest
    if configs.offset < newest:
        if w.configs.offset < newest:
            return refuse(members, Header(response.member, newest))
        configs, offset = w.configs, w.configs.offset
        step.change(sent_configs=configs)
    told = Header(response.member, offset)
    if response.protocol == EAGER:
        return assign_eagerly(members, configs.connectors, told)
    if w.config.leads_with is not None:
        return _lead_with(step, w.config.leads_with, members, configs.connectors, told)
    leader, shares = assign(
        w.leader,
        members,
        configs.connectors,
        generation=response.generation,
        completed=w.completed,
        now=step.now,
        header=told,
        policy=w.config.policy,
    )
    step.change(leader=leader)
    return shares


def _lead_with(
    step: Step, lead: Lead, members: tuple[tuple[str, Metadata], ...], connectors: Connectors, header: Header
) -> tuple[tuple[str, Share], ...]:
    w = step.worker
    asked = Asked(
        members=members,
        connectors=connectors,
        generation=w.membership.generation,
        completed=w.completed,
        now=step.now,
        header=header,
        max_delay_ms=w.config.max_delay_ms,
    )
    step.change(led=(*w.led, asked))
    return follow(asked, lead(asked, w.led))


def _sync(step: Step, sent: Membership, response: SyncResponse) -> None:
    w = step.worker
    match response.error:
        case "NONE" if w.state is not MemberState.COMPLETING_REBALANCE or response.share is None:
            step.change(rejoin=True)
        case "NONE":
            step.change(state=MemberState.STABLE, rejoin=False, synced=response.share)
        case error if error in MEMBERSHIP_GONE:
            _reset_unless_stale(step, sent, error)
            step.change(rejoin=True)
        case error:
            step.change(rejoin=True)
            if error not in RETRIABLE:
                step.error = exception(error)


def _heartbeat(step: Step, sent: Membership, error: str) -> None:
    if error == "REBALANCE_IN_PROGRESS" and step.worker.state is MemberState.STABLE:
        step.change(rejoin=True)
    elif error in MEMBERSHIP_GONE:
        _reset_unless_stale(step, sent, error)
