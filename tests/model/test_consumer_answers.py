"""Every error code of every answer: what the member keeps, and what its application sees next.

Each row: the code, what is left of the membership (``kept``: all of it; ``id``: the member id; ``none``), and what the next
polls do until the member asks to join again: callbacks, exceptions, the JoinGroup (as member id and claims).
"""

from __future__ import annotations

from typing import Any

import pytest
from test_consumer_conversations import EAGER, Talk, claims, member

from kipcheck.model.consumer import busy, owned
from kipcheck.model.consumer.state import MemberState
from kipcheck.model.messages import CommitResponse, HeartbeatResponse, JoinRequest, JoinResponse, SyncResponse
from kipcheck.model.process import CommitDue, HeartbeatDue, PollTimeout

JOIN_THROWN = (
    ("FENCED_INSTANCE_ID", "FencedInstanceIdException"),
    ("INCONSISTENT_GROUP_PROTOCOL", "InconsistentGroupProtocolException"),
    ("INVALID_SESSION_TIMEOUT", "InvalidSessionTimeoutException"),
    ("INVALID_GROUP_ID", "InvalidGroupIdException"),
    ("GROUP_AUTHORIZATION_FAILED", "GroupAuthorizationException"),
    ("GROUP_MAX_SIZE_REACHED", "GroupMaxSizeReachedException"),
    ("UNSUPPORTED_VERSION", "UnsupportedVersionException"),
    ("UNKNOWN_SERVER_ERROR", "UnknownServerErrorException"),
)
JOIN = (
    ("COORDINATOR_LOAD_IN_PROGRESS", "kept", ["join m1 t-0"]),
    ("COORDINATOR_NOT_AVAILABLE", "kept", ["join m1 t-0"]),
    ("NOT_COORDINATOR", "kept", ["join m1 t-0"]),
    ("REBALANCE_IN_PROGRESS", "kept", ["join m1 t-0"]),
    ("UNKNOWN_MEMBER_ID", "none", ["lost t-0", "join"]),
    *((code, "kept", [f"throw {thrown}", "join m1 t-0"]) for code, thrown in JOIN_THROWN),
)
SYNC = (
    ("REBALANCE_IN_PROGRESS", "kept", ["join m1 t-0"]),
    ("COORDINATOR_NOT_AVAILABLE", "kept", ["join m1 t-0"]),
    ("NOT_COORDINATOR", "kept", ["join m1 t-0"]),
    ("UNKNOWN_MEMBER_ID", "none", ["lost t-0", "join"]),
    ("ILLEGAL_GENERATION", "id", ["lost t-0", "join m1"]),
    ("FENCED_INSTANCE_ID", "kept", ["throw FencedInstanceIdException", "join m1 t-0"]),
    ("GROUP_AUTHORIZATION_FAILED", "kept", ["throw GroupAuthorizationException", "join m1 t-0"]),
    ("UNKNOWN_SERVER_ERROR", "kept", ["throw UnknownServerErrorException", "join m1 t-0"]),
)
HEARTBEAT = (
    ("NONE", "kept", []),
    ("REBALANCE_IN_PROGRESS", "kept", ["join m1 t-0"]),
    ("COORDINATOR_NOT_AVAILABLE", "kept", []),
    ("NOT_COORDINATOR", "kept", []),
    ("UNKNOWN_SERVER_ERROR", "kept", []),
    ("UNKNOWN_MEMBER_ID", "none", ["lost t-0", "join"]),
    ("ILLEGAL_GENERATION", "id", ["lost t-0", "join m1"]),
    ("FENCED_INSTANCE_ID", "none", ["throw FencedInstanceIdException", "lost t-0", "join"]),
)
COMMIT = (
    ("NONE", "kept", None, []),
    ("REBALANCE_IN_PROGRESS", "kept", "RebalanceInProgressException", ["join m1 t-0"]),
    ("UNKNOWN_MEMBER_ID", "none", "CommitFailedException", ["lost t-0", "join"]),
    ("ILLEGAL_GENERATION", "id", "CommitFailedException", ["lost t-0", "join m1"]),
    ("FENCED_INSTANCE_ID", "kept", "FencedInstanceIdException", []),
    ("COORDINATOR_LOAD_IN_PROGRESS", "kept", "CoordinatorLoadInProgressException", []),
    ("NOT_COORDINATOR", "kept", "NotCoordinatorException", []),
    ("REQUEST_TIMED_OUT", "kept", "RequestTimedOutException", []),
    ("UNKNOWN_TOPIC_OR_PARTITION", "kept", "UnknownTopicOrPartitionException", []),
)
COORDINATOR_GONE = {"COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "REQUEST_TIMED_OUT"}


def left(talk: Talk) -> str:
    """How much of the membership of m1 is left."""
    generation = talk.consumer.generation
    return "kept" if generation.id >= 0 else "id" if generation.member == "m1" else "none"


def follows(talk: Talk) -> list[str]:
    """What the application sees in its next polls, until the member asks to join or has nothing to do."""
    seen: list[str] = []
    for _ in range(10):
        talk.forget()
        before = talk.consumer
        talk.callback() if busy(talk.consumer) else talk.poll()
        seen += [*talk.told, *(f"throw {thrown}" for thrown in talk.thrown)]
        asked = next((request for request in talk.sent if isinstance(request, JoinRequest)), None)
        if asked is not None:
            return [*seen, " ".join(word for word in ("join", asked.member, *claims(asked)) if word)]
        if talk.consumer == before:
            break
    return seen


def joining(**config: Any) -> Talk:
    talk = member("t-0", **config)
    talk.rebalances()
    talk.asks()
    return talk


def syncing(**config: Any) -> Talk:
    talk = member("t-0", **config)
    talk.rebalances()
    talk.joins(6)
    return talk


def beating(**config: Any) -> Talk:
    talk = member("t-0", **config)
    talk.happen(HeartbeatDue())
    return talk


def committing(**config: Any) -> Talk:
    talk = member("t-0", **config)
    talk.happen(CommitDue())
    return talk


@pytest.mark.parametrize(("code", "membership", "then"), JOIN)
def test_join_group(code: str, membership: str, then: list[str]) -> None:
    talk = joining()
    talk.answer(JoinResponse(error=code))
    assert (left(talk), owned(talk.consumer)) == (membership, ("t-0",))
    assert talk.consumer.coordinator_known == (code not in COORDINATOR_GONE)
    assert follows(talk) == then


def test_join_group_asks_for_the_member_id() -> None:
    """The given id is used at once, and what was prepared once is not prepared again."""
    talk = member("t-0", protocol=EAGER)
    talk.beats("UNKNOWN_MEMBER_ID")
    assert follows(talk) == ["lost t-0", "join"]
    talk.answer(JoinResponse(error="MEMBER_ID_REQUIRED", member="m2"))
    assert (talk.consumer.generation.member, talk.consumer.needs_join_prepare) == ("m2", False)
    assert follows(talk) == ["join m2"]


@pytest.mark.parametrize(("code", "membership", "then"), SYNC)
def test_sync_group(code: str, membership: str, then: list[str]) -> None:
    talk = syncing()
    talk.answer(SyncResponse(error=code))
    assert (left(talk), owned(talk.consumer)) == (membership, ("t-0",))
    assert talk.consumer.coordinator_known == (code not in COORDINATOR_GONE)
    assert follows(talk) == then


def test_member_that_missed_a_sync_claims_its_old_partitions_with_the_new_generation() -> None:
    """KAFKA-13419: by design, for it still owns them."""
    talk = syncing()
    talk.answer(SyncResponse(error="REBALANCE_IN_PROGRESS"))
    metadata = talk.asks().protocols[0][1]
    assert (metadata.owned, metadata.generation, metadata.user_data) == (("t-0",), 6, 5)


def test_sync_group_of_another_protocol_is_thrown() -> None:
    talk = syncing()
    talk.answer(SyncResponse(protocol="range"))
    assert follows(talk) == ["throw InconsistentGroupProtocolException", "join m1 t-0"]


def test_sync_group_after_a_reset_is_dropped() -> None:
    talk = syncing()
    talk.happen(PollTimeout())
    talk.answer(SyncResponse())
    assert follows(talk) == ["lost t-0", "join"]


@pytest.mark.parametrize(("code", "membership", "then"), HEARTBEAT)
def test_heartbeat(code: str, membership: str, then: list[str]) -> None:
    talk = beating()
    talk.answer(HeartbeatResponse(error=code))
    assert (left(talk), owned(talk.consumer)) == (membership, ("t-0",))
    assert talk.consumer.coordinator_known == (code not in COORDINATOR_GONE)
    assert follows(talk) == then


@pytest.mark.parametrize("code", ["REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID"])
def test_heartbeat_of_an_older_generation_means_nothing(code: str) -> None:
    """Also REBALANCE_IN_PROGRESS while the member itself is on the way into the next generation (KAFKA-9823)."""
    talk = beating()
    talk.happen(HeartbeatDue())
    talk.answer(HeartbeatResponse(error="REBALANCE_IN_PROGRESS"))
    talk.joins(6)
    before = talk.consumer.generation
    talk.answer(HeartbeatResponse(error=code))
    assert (talk.consumer.generation, talk.consumer.member_state) == (before, MemberState.COMPLETING_REBALANCE)
    talk.given("t-0")
    assert follows(talk) == []


@pytest.mark.parametrize(("code", "membership", "thrown", "then"), COMMIT)
def test_offset_commit(code: str, membership: str, thrown: str | None, then: list[str]) -> None:
    talk = committing()
    assert talk.answer(CommitResponse(error=code)).error == thrown
    assert (left(talk), owned(talk.consumer)) == (membership, ("t-0",))
    assert talk.consumer.coordinator_known == (code not in COORDINATOR_GONE)
    assert follows(talk) == then


@pytest.mark.parametrize("code", ["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID"])
def test_offset_commit_of_an_older_generation_while_joining(code: str) -> None:
    talk = committing()
    talk.rebalances()
    talk.joins(6)
    talk.answer(SyncResponse(error="REBALANCE_IN_PROGRESS"))
    talk.asks()
    assert talk.answer(CommitResponse(error=code)).error == "RebalanceInProgressException"
    assert talk.consumer.generation.id == 6


@pytest.mark.parametrize(
    ("stage", "thrown"),
    [(joining, "RebalanceInProgressException"), (syncing, "RebalanceInProgressException"), (member, None)],
    ids=["joining", "syncing", "stable"],
)
def test_commits_leave_a_stable_member_only(stage: Any, thrown: str | None) -> None:
    talk = stage() if stage is not member else member("t-0")
    turn = talk.happen(CommitDue())
    assert (turn.error, len(turn.requests)) == (thrown, 0 if thrown else 1)


def test_member_without_partitions_commits_nothing() -> None:
    assert Talk().happen(CommitDue()).error is None
