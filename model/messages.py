"""What members and the group coordinator say to one another, one frozen record per request and response.

The field names are those of Kafka's request schemas, shortened as in trace version 1. Errors are Kafka's names
(``FENCED_INSTANCE_ID``), `NONE` when granted. Durations are milliseconds. The classic group protocol is one: consumers
and Connect workers send the same requests and differ only in what `Metadata` and `Share` carry.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from ..spec.events import NONE, Resources

ProtocolType = Literal["consumer", "connect"]


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a member says of itself in JoinGroup. The coordinator compares it for equality only, as Kafka compares bytes.

    ``owned`` is the claim (Connect: the worker's current connectors and tasks) and ``generation`` the generation that it
    dates from, -1 when absent. ``user_data`` is whatever the assignor adds (sticky: its own prior assignment), Connect:
    the worker's config offset.
    """

    topics: Resources = ()
    owned: Resources = ()
    generation: int = -1
    rack: str | None = None
    user_data: Hashable = None


@dataclass(frozen=True, slots=True)
class Share:
    """What the leader gives one member: everything it is to own once it has applied it.

    Connect's wire form is incremental: ``started`` and ``revoked`` are the two lists that travel, ``delay_ms`` the
    scheduled rebalance delay, and ``user_data`` carries the leader's url, config offset and error.
    """

    resources: Resources = ()
    started: Resources | None = None
    revoked: Resources | None = None
    delay_ms: int | None = None
    user_data: Hashable = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """JoinGroup. ``member`` is empty when unknown; ``protocols`` are in order of preference.

    ``version`` is the request's: from 4 on a dynamic member without an id is sent away with MEMBER_ID_REQUIRED, from 5
    on ``instance`` exists, from 9 on the answer may carry ``skip_assignment``.
    """

    member: str = ""
    instance: str | None = None
    client: str = ""
    protocol_type: ProtocolType = "consumer"
    protocols: tuple[tuple[str, Metadata], ...] = ()
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    version: int = 9
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedMember:
    """One line of the member list that the leader is given."""

    member: str
    instance: str | None
    metadata: Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinResponse:
    """The answer to JoinGroup; ``members`` is empty for followers."""

    error: str = NONE
    generation: int = -1
    protocol: str | None = None
    leader: str = ""
    member: str = ""
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequest:
    """SyncGroup; ``shares`` is empty for followers."""

    member: str
    generation: int
    instance: str | None = None
    protocol_type: ProtocolType = "consumer"
    protocol: str | None = None
    shares: tuple[tuple[str, Share], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResponse:
    """The answer to SyncGroup; ``share`` is None where Kafka answers with empty bytes."""

    error: str = NONE
    protocol: str | None = None
    share: Share | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRequest:
    member: str
    generation: int
    instance: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResponse:
    error: str = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveRequest:
    """LeaveGroup for one member; an administrator removes a static member by its ``instance`` alone."""

    member: str = ""
    instance: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveResponse:
    error: str = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """OffsetCommit for ``partitions``; ``generation`` -1 and an empty member are a commit from outside the group."""

    member: str
    generation: int
    partitions: Resources
    instance: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResponse:
    error: str = NONE


Request = JoinRequest | SyncRequest | HeartbeatRequest | LeaveRequest | CommitRequest
Response = JoinResponse | SyncResponse | HeartbeatResponse | LeaveResponse | CommitResponse


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """Who waits for an answer: the client process and its own number for the request (Kafka's correlation id)."""

    process: str
    correlation: int


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer on its way to ``to``."""

    to: Address
    response: Response
