"""A Connect cluster as a person tells it, and the worker's part in it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from connect_cluster import Cluster, Generation, named

from kipcheck.model.choice import first
from kipcheck.model.connect import worker as connect
from kipcheck.model.connect.worker import Config, Configured
from kipcheck.model.messages import JoinRequest, LeaveRequest, SyncResponse
from kipcheck.model.process import Close, Poll, PollTimeout
from kipcheck.spec import Status, check
from kipcheck.spec.events import Lost, Revoked

MINUTE = 60_000


def started(generation: Generation) -> dict[str, str]:
    return {member: named(share.started or ()) for member, share in generation.shares.items() if share.started}


def stopped(generation: Generation) -> dict[str, str]:
    return {member: named(share.revoked or ()) for member, share in generation.shares.items() if share.revoked}


def test_a_worker_restarts_within_the_delay_and_gets_its_work_back() -> None:
    cluster = Cluster({"A": 3, "B": 3})

    cluster.start("W1")
    assert named(cluster.owned("W1")) == "A B A-0 A-1 A-2 B-0 B-1 B-2", "W1 is alone and runs everything"

    cluster.at(10_000)
    cluster.start("W2", "W3")
    _, arrival, follow_up = cluster.history
    assert (started(arrival), stopped(arrival)) == ({}, {"W1": "A A-0 A-1 A-2 B-0"}), "first W1 stops what it is to give away"
    assert (started(follow_up), stopped(follow_up)) == ({"W2": "A A-0 A-2", "W3": "A-1 B-0"}, {}), "then the others get it"
    kept = cluster.owned("W1"), cluster.owned("W3")
    assert [named(units) for units in kept] == ["B B-1 B-2", "A-1 B-0"]

    cluster.at(1 * MINUTE)
    cluster.stop("W2")
    departure = cluster.history[-1]
    assert (departure.delay, started(departure)) == (5 * MINUTE, {}), "W2's work waits five minutes for it"

    cluster.at(2 * MINUTE)
    cluster.start("W2")
    back = cluster.history[-1]
    assert (back.delay, started(back)) == (4 * MINUTE, {}), "W2 is back as another member, and waits for the rest of the time"
    assert back.memory.candidates == ("W2b",)

    cluster.at(6 * MINUTE - 1)
    assert cluster.owned("W2") == (), "not a millisecond early"
    cluster.at(6 * MINUTE)
    over = cluster.history[-1]
    assert (over.delay, started(over), stopped(over)) == (0, {"W2b": "A A-0 A-2"}, {}), "W2 has all of its work again"

    cluster.rest()
    assert cluster.history[-1] is over, "and that is that"
    assert (cluster.owned("W1"), cluster.owned("W3")) == kept, "the others never stopped"
    (result,) = check(cluster.events)
    assert not [finding for finding in result.findings if finding.severity == "error"]
    for rule in ("connect-revoke-before-reassign", "lost-work-withheld", "delay-bounded", "delay-counts-down"):
        assert result.rules[rule].status is Status.PASS, rule
    for rule in ("returning-worker-restored", "connect-balanced"):
        assert result.rules[rule].status is Status.PASS, rule


def test_a_worker_that_never_returns() -> None:
    cluster = Cluster({"A": 2, "B": 1})
    cluster.start("W1")
    cluster.start("W2", "W3")
    cluster.at(MINUTE)
    cluster.crash("W2")
    cluster.rest()
    assert started(cluster.history[-1]) == {"W3": "A", "W1": "A-0"}, "connectors and tasks go to the least loaded, each kind by itself"
    assert cluster.history[-1].at == 6 * MINUTE


def test_the_leader_bounces_and_nobody_waits_any_more() -> None:
    cluster = Cluster({"A": 2, "B": 1})
    cluster.start("W1")
    cluster.start("W2", "W3")
    cluster.at(MINUTE)
    cluster.stop("W2")
    cluster.at(2 * MINUTE)
    cluster.stop("W1")
    now = cluster.history[-1]
    assert now.leader == "W3"
    assert now.delay == 0
    assert named(cluster.owned("W3")) == "A B A-0 A-1 B-0", "its successor knows of no delay: all is placed at once"


def test_a_worker_cut_off_gives_up_its_work_and_a_paused_one_does_not() -> None:
    cluster = Cluster({"A": 4})
    cluster.start("W1")
    cluster.start("W2")
    cluster.at(MINUTE)
    cluster.cut("W2")
    cluster.at(MINUTE + 2_999)
    assert named(cluster.owned("W2")) == "A-0 A-1"
    cluster.at(MINUTE + 3_000)
    assert cluster.owned("W2") == ()
    assert isinstance(cluster.events[-1], Lost)
    cluster.mend("W2")
    cluster.rest()
    assert cluster.history[-1].delay == 0, "nobody departed: what is missing is made good at once"

    held = cluster.owned("W2")
    cluster.freeze("W2")
    cluster.thaw("W2")
    assert (cluster.owned("W2"), cluster.history[-1].delay) == (held, 0), "it comes back as another member, with its work"
    assert cluster.running["W2"].worker.member == "W2b"


def test_a_stale_worker_and_its_successors_all_stop() -> None:
    cluster = Cluster({"A": 4})
    cluster.start("W1")
    cluster.start("W2")
    cluster.at(MINUTE)
    cluster.freeze("W2")
    cluster.at(10 * MINUTE)
    assert set(cluster.owned("W2")) <= set(cluster.owned("W1")), "A-0 and A-1 run twice"
    cluster.thaw("W2")
    both, follow_up = cluster.history[-2:]
    assert stopped(both) == {"W1": "A-0 A-1", "W2b": "A-0 A-1"}
    assert started(follow_up) == {"W2b": "A-0 A-1"}


def test_a_leader_that_lost_its_own_share_forgets_the_departed() -> None:
    """Kafka does so: a leader that missed a generation takes lost work for new, and nobody waits any more."""
    cluster = Cluster({"A": 4})
    cluster.start("W1")
    cluster.start("W2")
    cluster.stop("W2")
    cluster.at(MINUTE)
    cluster.lose_next_sync("W1", answered=True)
    cluster.start("W3")
    cluster.rest()
    assert [generation.delay for generation in cluster.history[-3:]] == [5 * MINUTE, 4 * MINUTE, 0]
    (result,) = check(cluster.events)
    assert not [finding for finding in result.findings if finding.severity == "error"]


def test_an_eager_worker_makes_everybody_stop() -> None:
    cluster = Cluster({"A": 2, "B": 2}, protocol="eager")
    cluster.start("W1")
    cluster.start("W2")
    assert cluster.protocol == "default"
    assert [named(cluster.owned(name)) for name in ("W1", "W2")] == ["A A-0 B-0", "B A-1 B-1"]
    assert [named(e.resources or ()) for e in cluster.events if isinstance(e, Revoked)] == ["A B A-0 A-1 B-0 B-1"]


def test_the_last_eager_worker_leaves() -> None:
    cluster = Cluster({"A": 4})
    cluster.start("W1")
    cluster.start("W2", protocol="eager")
    assert cluster.protocol == "default"
    cluster.stop("W2")
    assert cluster.protocol == "sessioned"
    assert cluster.history[-1].delay == 0
    assert named(cluster.owned("W1")) == "A A-0 A-1 A-2 A-3"


def test_closing_stops_the_work_before_it_leaves() -> None:
    cluster = Cluster({"A": 1})
    cluster.start("W1")
    process = cluster.running["W1"].worker
    closing = connect.step(process, Close(), 5, first)
    assert connect.busy(closing.process) == "revoked"
    assert not closing.requests
    cluster.stop("W1")
    assert [event.kind for event in cluster.events if event.member == "W1"][-3:] == ["revoked", "closed", "leave"]


def test_a_worker_that_polls_too_late_leaves_with_its_work() -> None:
    cluster = Cluster({"A": 1})
    cluster.start("W1")
    turn = connect.step(cluster.running["W1"].worker, PollTimeout(), 5, first)
    assert isinstance(turn.requests[0][1], LeaveRequest)
    assert connect.owned(turn.process)
    assert turn.process.membership.member == ""


class Alone:
    """One worker, and a coordinator that says what it is told to."""

    def __init__(self, **config: object) -> None:
        self.cluster = Cluster({"A": 1}, **config)
        self.cluster.start("W1")
        self.worker = self.cluster.running["W1"].worker

    def behind(self, offset: int) -> connect.Worker:
        """The worker after a generation that was assigned at ``offset`` of the config topic."""
        snapshot = self.worker.snapshot
        assert snapshot is not None
        told = replace(snapshot, started=(), user_data=snapshot.user_data._replace(offset=offset))  # pyright: ignore
        return replace(self.worker, synced=told, resolved=False)


def test_a_worker_behind_the_config_topic_reads_on_and_then_leaves() -> None:
    worker = Alone().behind(7)
    waiting = connect.step(worker, Poll({}, {}), 0, first)
    assert waiting.process.deadline == 3_000
    assert not waiting.events
    read = connect.step(waiting.process, Configured((("A", 1),), 7), 10, first).process
    assert [e.kind for e in connect.step(read, Poll({}, {}), 10, first).events] == ["owned"]
    beyond = connect.step(waiting.process, Configured((("A", 1),), 8), 10, first).process
    forced = connect.step(beyond, Poll({}, {}), 10, first)
    assert not forced.events
    assert isinstance(forced.requests[0][1], JoinRequest), "it knows more than the generation: join again"

    late = connect.step(waiting.process, Poll({}, {}), 3_000, first)
    assert isinstance(late.requests[0][1], LeaveRequest)
    pauses: list[int] = []
    process, now = late.process, 3_000
    while process.backoff is not None and len(pauses) < 5:
        pauses.append(process.backoff - now)
        now = process.backoff
        process = connect.step(process, Poll({}, {}), now, first).process
    assert pauses == [6_000, 7_500, 10_000, 15_000, 30_000]
    assert connect.busy(process) == "lost", "then it gives up its work"


def test_a_share_for_a_session_that_is_lost_is_dropped() -> None:
    worker = Alone().behind(1)
    lost = replace(worker, state=connect.MemberState.UNJOINED)
    turn = connect.step(lost, Poll({}, {}), 0, first)
    assert turn.process.synced is None
    assert connect.owned(turn.process) == connect.owned(worker)


@pytest.mark.parametrize(("protocol", "offered"), [("eager", 1), ("compatible", 2), ("sessioned", 3)])
def test_offers_its_protocol_and_every_older_one(protocol: str, offered: int) -> None:
    worker = connect.start(Config(process="w", group="g", protocol=protocol), 0)  # pyright: ignore[reportArgumentType]
    ((_, request),) = connect.step(worker, Poll({}, {}), 0, first).requests
    assert isinstance(request, JoinRequest)
    assert request.instance is None
    assert [name for name, _ in request.protocols] == ["sessioned", "compatible", "default"][-offered:]


def test_an_answer_to_nothing_changes_nothing() -> None:
    worker = Alone().worker
    assert connect.step(worker, connect.Answer(99, SyncResponse(), {}, {}), 0, first).process == worker
