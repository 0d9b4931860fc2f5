"""What holds for a consumer whatever happens to it, in any order, with any answers."""

from __future__ import annotations

from typing import Any

from hypothesis import given, note, settings
from hypothesis import strategies as st
from test_consumer_conversations import COOPERATIVE, EAGER

from kipcheck.model.choice import first
from kipcheck.model.consumer import Config, Consumer, busy, outstanding, owned, start, step
from kipcheck.model.consumer.state import InFlight, MemberState
from kipcheck.model.messages import (
    CommitRequest,
    CommitResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinedMember,
    JoinRequest,
    JoinResponse,
    LeaveResponse,
    Request,
    Response,
    Share,
    SyncRequest,
    SyncResponse,
)
from kipcheck.model.process import (
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
)
from kipcheck.spec.events import Assigned, Closed, Event, Lost, Owned, Revoked

TOPICS = {"t": 3, "u": 2}
PARTITIONS = tuple(f"{topic}-{n}" for topic, count in TOPICS.items() for n in range(count))
ERRORS = (
    "UNKNOWN_MEMBER_ID",
    "ILLEGAL_GENERATION",
    "REBALANCE_IN_PROGRESS",
    "FENCED_INSTANCE_ID",
    "NOT_COORDINATOR",
    "COORDINATOR_LOAD_IN_PROGRESS",
)


class Run:
    """A consumer driven at random; generations only grow, as those of a coordinator that never fails over."""

    def __init__(self, config: Config, draw: Any) -> None:
        self.draw = draw
        self.consumer: Consumer = start(config, 0)
        self.now = 0
        self.generation = 0
        self.ids = 0
        self.requests: list[Request] = []
        self.events: list[Event] = []
        self.correlations: list[int] = []

    def response(self, asked: InFlight) -> Response:
        draw = self.draw
        error = draw(st.sampled_from(("NONE", "NONE", "NONE", *ERRORS)))
        match asked.request:
            case JoinRequest(member="", instance=None) if draw(st.booleans()):
                self.ids += 1
                return JoinResponse(error="MEMBER_ID_REQUIRED", member=f"m{self.ids}")
            case JoinRequest() as join if error == "NONE":
                self.generation += 1
                self.ids += not join.member
                member = join.member or f"m{self.ids}"
                members = (JoinedMember(member=member, instance=join.instance, metadata=join.protocols[0][1]),)
                leads = draw(st.booleans())
                return JoinResponse(
                    generation=self.generation,
                    protocol=join.protocols[0][0],
                    leader=member if leads else "",
                    member=member,
                    members=members if leads else (),
                )
            case JoinRequest():
                return JoinResponse(error=error)
            case SyncRequest() if error == "NONE":
                topics = self.consumer.subscription if draw(st.integers(0, 5)) else tuple(TOPICS)
                known = [p for p in PARTITIONS if p[0] in topics]
                return SyncResponse(share=Share(tuple(p for p in known if draw(st.booleans()))))
            case SyncRequest():
                return SyncResponse(error=error)
            case HeartbeatRequest():
                return HeartbeatResponse(error=error)
            case CommitRequest():
                return CommitResponse(error=error)
            case _:
                return LeaveResponse()

    def happening(self) -> Happening:
        draw = self.draw
        choices = ["heartbeat", "heartbeat", "commit", "poll timeout"]
        if outstanding(self.consumer):
            choices += ["answer"] * 8 + ["disconnected"]
        choices += ["callback done"] * 6 if busy(self.consumer) else ["poll"] * 6 + ["subscribe", "close"]
        match draw(st.sampled_from(choices)):
            case "answer":
                asked = draw(st.sampled_from(self.consumer.in_flight))
                return Answer(asked.correlation, self.response(asked), TOPICS, {})
            case "disconnected":
                return Disconnected(draw(st.sampled_from(outstanding(self.consumer))))
            case "callback done":
                return CallbackDone(draw(st.integers(0, 4)) == 4)
            case "poll":
                return Poll({**TOPICS, "t": draw(st.sampled_from((3, 3, 3, 4)))}, {})
            case "subscribe":
                return Subscribe(draw(st.sampled_from((("t",), ("t", "u"), ("t", "u"), ()))))
            case "close":
                return Close() if draw(st.integers(0, 3)) == 3 else CommitDue()
            case "commit":
                return CommitDue()
            case "poll timeout":
                return PollTimeout()
            case _:
                return HeartbeatDue()

    def step(self) -> tuple[Consumer, Happening, Turn[Consumer]]:
        before, happening = self.consumer, self.happening()
        note(f"at {self.now}: {happening}")
        turn = step(before, happening, self.now, first)
        again = step(before, happening, self.now, first)
        assert (turn, hash(turn.process)) == (again, hash(again.process))
        self.consumer = turn.process
        self.now += self.draw(st.sampled_from((0, 100, 3_000)))
        self.requests += [request for _, request in turn.requests]
        self.correlations += [number for number, _ in turn.requests]
        self.events += turn.events
        return before, happening, turn


CONFIGS = st.builds(
    Config,
    process=st.just("p"),
    group=st.just("g"),
    client=st.just("c"),
    topics=st.just(("t", "u")),
    assignors=st.sampled_from((COOPERATIVE, EAGER)),
    instance=st.sampled_from((None, "i1")),
    auto_commit=st.booleans(),
    max_poll_interval_ms=st.just(10_000),
    session_timeout_ms=st.just(6_000),
    leave_on_close=st.booleans(),
)


def believed(events: list[Event]) -> set[str]:
    """What an observer of the member's events believes that it owns."""
    belief: set[str] = set()
    for event in events:
        match event:
            case Assigned():
                belief |= set(event.resources or ())
            case Revoked() | Lost():
                belief -= set(event.resources or ())
            case Owned():
                belief = set(event.resources or ())
            case Closed():
                belief = set()
            case _:
                pass
    return belief


@settings(derandomize=True, deadline=None, max_examples=100)
@given(config=CONFIGS, data=st.data())
def test_whatever_happens(config: Config, data: st.DataObject) -> None:
    run = Run(config, data.draw)
    for _ in range(data.draw(st.integers(20, 80))):
        before, happening, turn = run.step()
        after = turn.process
        if before.callback is None and after.callback is None:
            assert owned(before) == owned(after) or after.closed, "the belief changes through callbacks only"
        if busy(after) is None:
            assert believed(run.events) == set(owned(after)), "the belief is what the events tell"
        if busy(before) and not isinstance(happening, CallbackDone):
            assert (after.callback, owned(after), turn.events) == (before.callback, owned(before), ())
        for _, request in turn.requests:
            match request:
                case JoinRequest():
                    metadata = request.protocols[0][1]
                    assert busy(after) is None
                    assert metadata.owned == owned(after), "a JoinGroup claims exactly what the member owns"
                    assert config.assignors == COOPERATIVE or not metadata.owned, "an eager member owns nothing when it joins"
                    assert metadata.generation >= 0 or not metadata.owned, "a reset leads to a loss before the next JoinGroup"
                case CommitRequest():
                    assert before.member_state is MemberState.STABLE
                    assert (request.generation, request.member) == (before.generation.id, before.generation.member)
                case HeartbeatRequest():
                    assert before.member_state in (MemberState.STABLE, MemberState.COMPLETING_REBALANCE)
                    assert (request.generation, request.member) == (before.generation.id, before.generation.member)
                case SyncRequest():
                    assert (request.generation, request.member) == (after.generation.id, after.generation.member)
                case _:
                    assert config.instance is None, "a static member sends no LeaveGroup"
        joining = [r for r in after.in_flight if isinstance(r.request, JoinRequest | SyncRequest)]
        assert len(joining) <= 1
    assert run.correlations == list(range(1, len(run.correlations) + 1))
    generations: dict[str | None, int] = {}
    for event in run.events:
        assert (event.generation or 0) >= generations.get(event.member, 0), "generations of a member id never fall"
        generations[event.member] = event.generation or 0


@settings(derandomize=True, deadline=None, max_examples=60)
@given(config=CONFIGS, data=st.data())
def test_left_alone_with_a_kind_coordinator_it_becomes_stable(config: Config, data: st.DataObject) -> None:
    """From wherever it is: answers without errors, callbacks that return, and polls end in a stable member."""
    run = Run(config, data.draw)
    for _ in range(data.draw(st.integers(0, 40))):
        run.step()
    for _ in range(60):
        c, now = run.consumer, run.now
        if busy(c):
            happening: Happening = CallbackDone()
        elif c.in_flight:
            asked = c.in_flight[0]
            happening = Answer(asked.correlation, kind(asked, run), TOPICS, {})
        elif not c.subscription:
            happening = Subscribe(("t",))
        else:
            happening = Poll(TOPICS, {})
        note(f"then: {happening}")
        run.consumer = step(c, happening, now, first).process
    c = run.consumer
    assert c.closed or (c.member_state is MemberState.STABLE and c.join is None and not c.rejoin_needed)


def kind(asked: InFlight, run: Run) -> Response:
    match asked.request:
        case JoinRequest() as join:
            run.generation += 1
            return JoinResponse(generation=run.generation, protocol=join.protocols[0][0], leader="", member=join.member or "new")
        case SyncRequest():
            return SyncResponse(share=Share(tuple(p for p in PARTITIONS if p[0] in run.consumer.subscription)))
        case HeartbeatRequest():
            return HeartbeatResponse()
        case CommitRequest():
            return CommitResponse()
        case _:
            return LeaveResponse()
