"""A consumer's life as scripted conversations: the test plays application, heartbeat thread and coordinator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kipcheck.model.choice import first
from kipcheck.model.consumer import Config, Consumer, Release, busy, outstanding, owned, start, step
from kipcheck.model.messages import (
    CommitRequest,
    CommitResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinedMember,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    Metadata,
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

COOPERATIVE, EAGER = ("cooperative-sticky",), ("range",)
ANSWERS: dict[type[Any], type[Any]] = {
    JoinResponse: JoinRequest,
    SyncResponse: SyncRequest,
    HeartbeatResponse: HeartbeatRequest,
    CommitResponse: CommitRequest,
}


class Talk:
    """One consumer, and everything that it said: ``told`` as words, ``sent`` as requests, ``thrown`` as exceptions."""

    def __init__(self, *, protocol: tuple[str, ...] = COOPERATIVE, **config: Any) -> None:
        config = {"process": "p", "group": "g", "client": "c", "topics": ("t",), "assignors": protocol} | config
        self.consumer: Consumer = start(Config(**config), 0)
        self.topics = {"t": 4, "u": 2}
        self.now = 0
        self.sent: list[Request] = []
        self.told: list[str] = []
        self.thrown: list[str] = []

    def happen(self, happening: Happening) -> Turn[Consumer]:
        turn = step(self.consumer, happening, self.now, first)
        self.consumer = turn.process
        self.sent += [request for _, request in turn.requests]
        self.told += [f"{event.kind} {' '.join(event.resources or ())}".strip() for event in turn.events]
        self.thrown += [turn.error] if turn.error else []
        return turn

    def poll(self) -> Turn[Consumer]:
        return self.happen(Poll(self.topics, {}))

    def answer(self, response: Response) -> Turn[Consumer]:
        """Answer the oldest request of that kind."""
        asked = next(each for each in self.consumer.in_flight if isinstance(each.request, ANSWERS[type(response)]))
        return self.happen(Answer(asked.correlation, response, self.topics, {}))

    def callback(self, raised: bool = False) -> Turn[Consumer]:
        return self.happen(CallbackDone(raised))

    def joins(self, generation: int, member: str = "m1", leader: str = "other", **more: Any) -> None:
        """Poll until JoinGroup is out, finishing callbacks, and let it be granted."""
        self.asks()
        protocol = more.pop("protocol", self.consumer.config.assignors[0])
        self.answer(JoinResponse(generation=generation, protocol=protocol, leader=leader, member=member, **more))

    def asks(self) -> JoinRequest:
        """Poll until JoinGroup is out, finishing callbacks."""
        for _ in range(8):
            self.callback() if busy(self.consumer) else self.poll()
            if self.sent and isinstance(self.sent[-1], JoinRequest) and self.consumer.in_flight:
                return self.sent[-1]
        raise AssertionError("no JoinGroup")

    def given(self, *partitions: str) -> None:
        """SyncGroup is granted, and the callbacks of the assignment end."""
        self.answer(SyncResponse(share=Share(partitions)))
        self.poll()
        while busy(self.consumer):
            self.callback()

    def rebalances(self) -> None:
        """A heartbeat tells that the group rebalances."""
        self.beats("REBALANCE_IN_PROGRESS")

    def beats(self, error: str) -> None:
        self.happen(HeartbeatDue())
        self.answer(HeartbeatResponse(error=error))

    def forget(self) -> None:
        """Only what comes from now on counts."""
        self.sent, self.told, self.thrown = [], [], []


def member(*partitions: str, generation: int = 5, **config: Any) -> Talk:
    """A stable member m1 that owns ``partitions``."""
    talk = Talk(**config)
    talk.joins(generation)
    talk.given(*partitions)
    talk.forget()
    return talk


def claims(request: Request) -> tuple[str, ...]:
    assert isinstance(request, JoinRequest)
    return request.protocols[0][1].owned


def test_first_join_takes_two_requests() -> None:
    talk = Talk(session_timeout_ms=10_000, max_poll_interval_ms=60_000)
    request = talk.asks()
    assert (request.member, request.session_timeout_ms, request.rebalance_timeout_ms) == ("", 10_000, 60_000)
    assert request.protocols == (("cooperative-sticky", Metadata(topics=("t",), user_data=-1)),)
    talk.answer(JoinResponse(error="MEMBER_ID_REQUIRED", member="m1"))
    assert talk.asks().member == "m1"
    talk.answer(JoinResponse(generation=1, protocol="cooperative-sticky", leader="other", member="m1"))
    assert talk.sent[-1] == SyncRequest(member="m1", generation=1, protocol="cooperative-sticky")
    talk.answer(SyncResponse(share=Share(("t-1", "t-0"))))
    assert (owned(talk.consumer), talk.told) == ((), [])
    talk.poll()
    assert (busy(talk.consumer), owned(talk.consumer), talk.told) == ("assigned", ("t-0", "t-1"), [])
    turn = talk.callback()
    assert talk.told == ["assigned t-0 t-1", "owned t-0 t-1"]
    assert {(e.group, e.member, e.client, e.generation) for e in turn.events} == {("g", "m1", "c", 1)}


def test_leader_assigns_and_a_returning_one_is_told_not_to() -> None:
    others = tuple(JoinedMember(member=m, instance=None, metadata=Metadata(topics=("t", "u"))) for m in ("m1", "m2"))
    talk = Talk(protocol=EAGER)
    talk.joins(1, leader="m1", members=others)
    shares = (("m1", Share(("t-0", "t-1", "u-0"))), ("m2", Share(("t-2", "t-3", "u-1"))))
    assert talk.sent[-1] == SyncRequest(member="m1", generation=1, protocol="range", shares=shares)

    talk = Talk(protocol=EAGER, instance="i1")
    talk.joins(1, leader="m1", members=others, skip_assignment=True)
    assert talk.sent[-1] == SyncRequest(member="m1", generation=1, protocol="range", instance="i1")


@pytest.mark.parametrize("skipped", [False, True], ids=["assigns", "returns-static"])
def test_only_a_leader_watches_the_topics_of_the_whole_group(skipped: bool) -> None:
    """A restarted static leader too (KAFKA-13435)."""
    members = tuple(JoinedMember(member=m, instance=None, metadata=Metadata(topics=("t", "u"))) for m in ("m1", "m2"))
    for leader, rejoins in (("m1", True), ("m2", False)):
        talk = Talk(protocol=EAGER, instance="i1")
        talk.joins(1, leader=leader, members=members if leader == "m1" else (), skip_assignment=skipped)
        talk.given("t-0")
        talk.forget()
        talk.topics["unrelated"] = 1
        assert talk.poll().requests == ()
        talk.topics["u"] = 3
        talk.poll()
        assert busy(talk.consumer) == ("revoked" if rejoins else None)


def test_eager_member_gives_everything_up_before_it_joins() -> None:
    talk = member("t-0", "t-1", protocol=EAGER)
    talk.rebalances()
    talk.poll()
    assert (busy(talk.consumer), owned(talk.consumer)) == ("revoked", ("t-0", "t-1"))
    talk.callback()
    assert talk.told == ["revoked t-0 t-1"]
    assert claims(talk.sent[-1]) == owned(talk.consumer) == ()
    talk.answer(JoinResponse(generation=6, protocol="range", leader="other", member="m1"))
    talk.given("t-1")
    assert talk.told == ["revoked t-0 t-1", "assigned t-1", "owned t-1"]


def test_eager_callback_hears_of_nothing_too() -> None:
    talk = member(protocol=EAGER)
    talk.rebalances()
    talk.poll()
    talk.callback()
    assert talk.told == ["revoked"]


def test_cooperative_member_revokes_what_moves_while_it_still_owns_it_and_rejoins_at_once() -> None:
    talk = member("t-0", "t-1")
    talk.rebalances()
    assert claims(talk.asks()) == ("t-0", "t-1")
    talk.answer(JoinResponse(generation=6, protocol="cooperative-sticky", leader="other", member="m1"))
    talk.answer(SyncResponse(share=Share(("t-1", "t-2"))))
    talk.poll()
    assert (busy(talk.consumer), owned(talk.consumer)) == ("revoked", ("t-0", "t-1"))
    talk.happen(CommitDue())
    assert talk.sent[-1] == CommitRequest(member="m1", generation=6, partitions=("t-0", "t-1"))
    talk.callback()
    assert (busy(talk.consumer), owned(talk.consumer)) == ("assigned", ("t-1", "t-2"))
    talk.callback()
    assert talk.told == ["revoked t-0", "assigned t-2", "owned t-1 t-2"]
    request = talk.sent[-1]
    assert isinstance(request, JoinRequest)
    assert (claims(request), request.protocols[0][1].generation) == (("t-1", "t-2"), 6)
    assert request.reason == "need to revoke partitions and re-join"


def test_cooperative_member_that_keeps_its_share_hears_of_nothing_added_and_stays() -> None:
    talk = member("t-0")
    talk.rebalances()
    talk.joins(6)
    talk.given("t-0")
    assert talk.told == ["assigned", "owned t-0"]
    assert talk.poll().requests == ()


def test_rolling_upgrade_from_range_to_cooperative() -> None:
    """KIP-429: eager as long as range is offered too, whatever the group has chosen."""
    for offered, chosen, eager in (
        (("range",), "range", True),
        (("cooperative-sticky", "range"), "range", True),
        (("cooperative-sticky", "range"), "cooperative-sticky", True),
        (("range", "cooperative-sticky"), "cooperative-sticky", True),
        (("cooperative-sticky",), "cooperative-sticky", False),
    ):
        talk = Talk(protocol=offered)
        talk.joins(1, protocol=chosen)
        talk.given("t-0", "t-1")
        talk.rebalances()
        request = talk.asks()
        assert tuple(name for name, _ in request.protocols) == offered
        assert claims(request) == (() if eager else ("t-0", "t-1"))


def test_older_clients_say_less() -> None:
    for release, said in (
        (Release(), (("t-0",), 5, "r")),
        (Release(claims_generation=False), (("t-0",), -1, None)),
        (Release(claims_owned=False, claims_generation=False), ((), -1, None)),
    ):
        talk = member("t-0", release=release, rack="r")
        talk.rebalances()
        metadata = talk.asks().protocols[0][1]
        assert (metadata.owned, metadata.generation, metadata.rack) == said


def test_changed_subscription_rejoins_and_gives_up_its_topic_first() -> None:
    talk = member("t-0", "u-0", topics=("t", "u"))
    talk.happen(Subscribe(("t",)))
    talk.poll()
    assert busy(talk.consumer) == "revoked"
    talk.callback()
    assert talk.told == ["revoked u-0"]
    assert claims(talk.sent[-1]) == ("t-0",)


def test_assignment_of_a_topic_that_is_not_subscribed_any_more_is_not_applied() -> None:
    talk = member("t-0", topics=("t", "u"))
    talk.rebalances()
    talk.joins(6)
    talk.happen(Subscribe(("t",)))
    talk.answer(SyncResponse(share=Share(("t-0", "u-0"))))
    talk.forget()
    talk.poll()
    assert (talk.told, owned(talk.consumer)) == ([], ("t-0",))
    assert claims(talk.sent[-1]) == ("t-0",)


def test_empty_bytes_instead_of_an_assignment_are_thrown() -> None:
    talk = Talk()
    talk.joins(1)
    talk.answer(SyncResponse(share=None))
    talk.poll()
    assert talk.thrown == ["IllegalStateException"]


def test_poll_timeout_leaves_without_a_callback_and_the_next_poll_tells_of_the_loss() -> None:
    talk = member("t-0")
    talk.happen(PollTimeout())
    assert talk.sent == [LeaveRequest(member="m1", reason="consumer poll timeout has expired.")]
    assert (owned(talk.consumer), talk.told) == (("t-0",), [])
    talk.happen(CommitDue())
    assert talk.thrown == ["CommitFailedException"]
    assert talk.happen(HeartbeatDue()).requests == ()
    request = talk.asks()
    assert (talk.told, request.member, claims(request)) == (["lost t-0"], "", ())


def test_static_member_keeps_quiet_when_its_poll_is_late() -> None:
    talk = member("t-0", instance="i1")
    talk.happen(PollTimeout())
    assert talk.sent == []
    assert talk.happen(HeartbeatDue()).requests == ()
    assert (talk.asks().member, talk.told) == ("m1", ["lost t-0"])


def test_no_poll_timeout_while_a_join_waits() -> None:
    talk = member("t-0")
    talk.rebalances()
    talk.asks()
    assert talk.happen(PollTimeout()).requests == talk.happen(HeartbeatDue()).requests == ()


@pytest.mark.parametrize(
    ("at", "config", "told", "leaves"),
    [
        ("stable", {}, ["revoked t-0", "closed"], True),
        ("stable", {"instance": "i1"}, ["revoked t-0", "closed"], False),
        ("stable", {"leave_on_close": False}, ["closed"], False),
        ("joining", {}, ["lost t-0", "closed"], True),
        ("syncing", {}, ["lost t-0", "closed"], True),
        ("out", {}, ["lost t-0", "closed"], False),
        ("disconnected", {}, ["revoked t-0", "closed"], False),
    ],
)
def test_close(at: str, config: dict[str, Any], told: list[str], leaves: bool) -> None:
    talk = member("t-0", **config)
    if at in ("joining", "syncing"):
        talk.rebalances()
        talk.asks() if at == "joining" else talk.joins(6)
    if at == "out":
        talk.beats("UNKNOWN_MEMBER_ID")
    if at == "disconnected":
        talk.happen(HeartbeatDue())
        talk.happen(Disconnected(outstanding(talk.consumer)[0]))
    talk.forget()
    talk.happen(Close())
    if busy(talk.consumer):
        assert talk.happen(HeartbeatDue()).requests == talk.happen(PollTimeout()).requests == ()
        talk.callback()
    assert talk.told == told
    assert talk.sent == ([LeaveRequest(member="m1", reason="the consumer is being closed")] if leaves else [])
    assert (talk.consumer.closed, owned(talk.consumer), outstanding(talk.consumer)) == (True, (), ())
    assert talk.poll() == Turn(talk.consumer)


@pytest.mark.parametrize("answered", [True, False])
def test_close_commits_first(answered: bool) -> None:
    talk = member("t-0", auto_commit=True)
    talk.happen(Close())
    assert talk.sent == [CommitRequest(member="m1", generation=5, partitions=("t-0",))]
    assert talk.poll() == talk.happen(CommitDue()) == talk.happen(Close()) == Turn(talk.consumer)
    if answered:
        talk.answer(CommitResponse())
    else:
        talk.happen(Disconnected(outstanding(talk.consumer)[0]))
    assert busy(talk.consumer) == "revoked"
    talk.callback()
    assert talk.told == ["revoked t-0", "closed"]
    assert len(talk.sent) == (2 if answered else 1)


def test_unsubscribe_leaves_and_a_later_subscription_starts_anew() -> None:
    talk = member("t-0")
    talk.happen(Subscribe(()))
    assert busy(talk.consumer) == "revoked"
    talk.callback()
    assert talk.told == ["revoked t-0"]
    assert talk.sent == [LeaveRequest(member="m1", reason="the consumer unsubscribed from all topics")]
    assert talk.poll() == Turn(talk.consumer)
    talk.happen(Answer(outstanding(talk.consumer)[0], LeaveResponse(), {}, {}))
    talk.happen(Subscribe(("u",)))
    request = talk.asks()
    assert (request.member, request.protocols[0][1].topics) == ("", ("u",))


@pytest.mark.parametrize("happening", [Close(), Subscribe(())], ids=["close", "unsubscribe"])
def test_leaving_with_nothing_runs_no_callback(happening: Happening) -> None:
    talk = member()
    talk.happen(happening)
    assert (busy(talk.consumer), [type(request) for request in talk.sent]) == (None, [LeaveRequest])


def test_unsubscribe_while_out_is_a_loss() -> None:
    talk = member("t-0")
    talk.beats("ILLEGAL_GENERATION")
    talk.happen(Subscribe(()))
    talk.callback()
    assert (talk.told, len(talk.sent)) == (["lost t-0"], 1)


def test_rebalance_waits_for_the_commit_before_it() -> None:
    talk = member("t-0", protocol=EAGER, auto_commit=True, max_poll_interval_ms=1_000)
    talk.rebalances()
    talk.poll()
    assert talk.sent[-1] == CommitRequest(member="m1", generation=5, partitions=("t-0",))
    assert talk.poll() == Turn(talk.consumer)
    assert len(talk.happen(HeartbeatDue()).requests) == 1
    talk.answer(CommitResponse(error="COORDINATOR_LOAD_IN_PROGRESS"))
    talk.poll()
    assert isinstance(talk.sent[-1], CommitRequest)
    talk.answer(CommitResponse(error="UNKNOWN_SERVER_ERROR"))
    talk.poll()
    assert (busy(talk.consumer), talk.thrown) == ("revoked", [])

    talk = member("t-0", protocol=EAGER, auto_commit=True, max_poll_interval_ms=1_000)
    talk.rebalances()
    talk.poll()
    talk.now = 1_000
    talk.poll()
    assert busy(talk.consumer) == "revoked"


@pytest.mark.parametrize("kind", ["revoked", "lost", "assigned"])
def test_exception_of_a_callback_is_thrown_after_the_belief_changed(kind: str) -> None:
    talk = member("t-0", protocol=EAGER)
    match kind:
        case "revoked":
            talk.rebalances()
            talk.poll()
        case "lost":
            talk.beats("UNKNOWN_MEMBER_ID")
            talk.poll()
        case _:
            talk.rebalances()
            talk.joins(6)
            talk.answer(SyncResponse(share=Share(("t-3",))))
            talk.poll()
    talk.forget()
    talk.callback(raised=True)
    assert (talk.thrown, talk.sent) == (["KafkaException"], [])
    if kind == "assigned":
        assert talk.told == ["assigned t-3", "owned t-3"]
        talk.poll()
        talk.callback()
        assert talk.told[2:] == ["assigned", "owned t-3"]
        assert talk.poll().requests == ()
    else:
        assert (talk.told, owned(talk.consumer)) == ([f"{kind} t-0"], ())
        assert isinstance(talk.poll().requests[0][1], JoinRequest)


def test_exception_while_revoking_cooperatively_does_not_skip_the_rest() -> None:
    """KAFKA-9620."""
    talk = member("t-0")
    talk.rebalances()
    talk.joins(6)
    talk.answer(SyncResponse(share=Share(("t-1",))))
    talk.poll()
    talk.callback(raised=True)
    assert busy(talk.consumer) == "assigned"
    talk.callback()
    assert (talk.told, talk.thrown) == (["revoked t-0", "assigned t-1", "owned t-1"], ["KafkaException"])
    assert claims(talk.asks()) == ("t-1",)


@pytest.mark.parametrize("occasion", ["close", "unsubscribe"])
def test_exception_while_leaving_keeps_the_member_in_the_group(occasion: str) -> None:
    talk = member("t-0")
    talk.happen(Close() if occasion == "close" else Subscribe(()))
    talk.callback(raised=True)
    assert (talk.sent, talk.thrown, owned(talk.consumer)) == ([], ["KafkaException"], ())
    assert talk.consumer.closed == (occasion == "close")
    assert talk.consumer.subscription == ("t",)


def test_heartbeats_go_on_during_a_callback_and_what_they_bring_waits_for_it() -> None:
    talk = member("t-0", "t-1")
    talk.rebalances()
    talk.joins(6)
    talk.answer(SyncResponse(share=Share(("t-1", "t-2"))))
    talk.poll()
    talk.beats("UNKNOWN_MEMBER_ID")
    assert busy(talk.consumer) == "revoked"
    for happening in (Poll({}, {}), Close(), Subscribe(())):
        with pytest.raises(ValueError, match="inside a callback"):
            talk.happen(happening)
    talk.callback()
    talk.callback()
    assert (busy(talk.consumer), talk.told) == ("lost", ["revoked t-0", "assigned t-2", "owned t-1 t-2"])
    talk.callback()
    assert talk.told[-1] == "lost t-1 t-2"
    assert talk.sent[-1] == replace(talk.sent[-1], member="")


def test_callback_that_does_not_run_cannot_end() -> None:
    with pytest.raises(ValueError, match="no callback"):
        Talk().callback()


def test_reset_between_the_assignment_and_the_next_poll_throws_the_assignment_away() -> None:
    talk = member("t-0")
    talk.rebalances()
    talk.joins(6)
    talk.answer(SyncResponse(share=Share(("t-0", "t-1"))))
    talk.beats("ILLEGAL_GENERATION")
    request = talk.asks()
    assert (talk.told, request.member, claims(request)) == (["lost t-0"], "", ())


def test_answer_to_a_join_that_was_given_up_by_leaving_is_dropped() -> None:
    talk = member("t-0")
    talk.rebalances()
    talk.asks()
    talk.happen(Subscribe(()))
    talk.callback()
    talk.happen(Subscribe(("t",)))
    assert talk.poll().requests == ()
    talk.answer(JoinResponse(generation=6, protocol="cooperative-sticky", leader="m1", member="m1"))
    assert isinstance(talk.sent[-1], LeaveRequest)
    assert talk.asks().member == ""


def test_answer_of_a_dropped_connection_is_ignored() -> None:
    talk = member("t-0")
    talk.rebalances()
    talk.happen(HeartbeatDue())
    talk.poll()
    heartbeat, join = outstanding(talk.consumer)
    talk.happen(Disconnected(heartbeat))
    assert outstanding(talk.consumer) == ()
    before = talk.consumer
    talk.happen(Answer(join, JoinResponse(generation=6, protocol="cooperative-sticky", leader="x", member="m1"), {}, {}))
    talk.happen(Disconnected(join))
    assert talk.consumer == before
    request = talk.asks()
    assert (request.member, claims(request), talk.told) == ("m1", ("t-0",), [])


def test_silence_of_the_coordinator_only_drops_the_connection() -> None:
    talk = member("t-0", session_timeout_ms=10_000)
    talk.now = 9_999
    assert len(talk.happen(HeartbeatDue()).requests) == 1
    talk.now = 10_000
    assert talk.happen(HeartbeatDue()).requests == ()
    assert (outstanding(talk.consumer), owned(talk.consumer)) == ((), ("t-0",))
    talk.happen(HeartbeatDue())
    assert len(talk.happen(HeartbeatDue()).requests) == 1


def test_answers_of_another_kind_are_refused() -> None:
    talk = Talk()
    talk.poll()
    with pytest.raises(ValueError, match="HeartbeatResponse answers JoinRequest"):
        talk.happen(Answer(1, HeartbeatResponse(), {}, {}))


def test_failing_assignor_surfaces_from_the_leaders_poll() -> None:
    """KAFKA-13406: an assignor that drops an old claim, and a leader that does not."""
    old = JoinedMember(member="m2", instance=None, metadata=Metadata(topics=("t",), owned=("t-0",), generation=3))
    new = JoinedMember(member="m1", instance=None, metadata=Metadata(topics=("t",), generation=4))
    for defects, thrown in (
        ({"only-highest-generation-counts"}, False),
        ({"only-highest-generation-counts", "validates-built-in-assignor"}, True),
    ):
        talk = Talk(defects=frozenset(defects))
        talk.topics = {"t": 1}
        talk.joins(5, leader="m1", members=(new, old))
        assert isinstance(talk.sent[-1], JoinRequest if thrown else SyncRequest)
        talk.poll()
        assert talk.thrown == (["IllegalStateException"] if thrown else [])
