"""The state of one classic group at its coordinator, as frozen records, and what one step of it yields.

Fields are those of kafka.coordinator.group.{GroupMetadata, MemberMetadata} and
org.apache.kafka.coordinator.group.classic.{ClassicGroup, ClassicGroupMember}. Times are milliseconds of the
coordinator's clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

from ...spec.events import Event
from ..messages import Address, JoinRequest, Metadata, ProtocolType, Reply, Share, SyncRequest

State = Literal["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"]
TimerKind = Literal["session", "new-member", "pending", "join", "sync"]
Protocols = tuple[tuple[str, Metadata], ...]
Asked = TypeVar("Asked", JoinRequest, SyncRequest)


@dataclass(frozen=True, slots=True)
class Parked(Generic[Asked]):
    """A request whose answer waits for the group."""

    address: Address
    request: Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """``share`` is None for Kafka's empty bytes. ``is_new`` until its first join phase is over.

    ``deadline`` is when its heartbeat timer fires, None if that fired while the member was waiting.
    """

    id: str
    instance: str | None
    client: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    share: Share | None = None
    is_new: bool = False
    join: Parked[JoinRequest] | None = None
    sync: Parked[SyncRequest] | None = None
    deadline: int | None = None

    def metadata(self, protocol: str | None) -> Metadata:
        """What it says of itself under ``protocol``, nothing if it did not offer that."""
        return next((metadata for name, metadata in self.protocols if name == protocol), Metadata())


@dataclass(frozen=True, slots=True)
class Pending:
    """An id that was handed out with MEMBER_ID_REQUIRED and not used yet."""

    id: str
    client: str
    deadline: int


@dataclass(frozen=True, slots=True)
class InitialDelay:
    """KIP-134: the length of the window that runs now, and how much the windows after it may take together."""

    window_ms: int
    remaining_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One group. ``exists`` once somebody joined it; ``loading`` while its coordinator reads the log.

    ``pending_sync`` are the ids that have yet to send SyncGroup; ``previous`` is the state before this one.
    ``ids_given`` and ``appends_given`` number the member ids and the appends.
    """

    id: str
    state: State = "Empty"
    previous: State = "Empty"
    exists: bool = False
    loading: bool = False
    generation: int = 0
    protocol_type: ProtocolType | None = None
    protocol: str | None = None
    leader: str | None = None
    members: tuple[Member, ...] = ()
    pending: tuple[Pending, ...] = ()
    pending_sync: tuple[str, ...] = ()
    new_member_added: bool = False
    initial_delay: InitialDelay | None = None
    join_deadline: int | None = None
    sync_deadline: int | None = None
    ids_given: int = 0
    appends_given: int = 0

    def member(self, member: str) -> Member | None:
        return next((m for m in self.members if m.id == member), None)

    def holder(self, instance: str | None) -> Member | None:
        """The member that has the slot of ``instance`` now."""
        return next((m for m in reversed(self.members) if m.instance == instance), None) if instance is not None else None

    def is_pending(self, member: str) -> bool:
        return any(p.id == member for p in self.pending)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest among the members, absent static ones included."""
        return max((m.rebalance_timeout_ms for m in self.members), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMember:
    """A member in the log: of its protocols only the metadata for the selected one."""

    id: str
    instance: str | None
    client: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    metadata: Metadata
    share: Share | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """GroupMetadataValue: all that survives a failover."""

    generation: int
    protocol_type: ProtocolType | None
    protocol: str | None
    leader: str | None
    members: tuple[StoredMember, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A static replacement that waits for the log: who returned as ``member``, and what to restore if it can't be stored."""

    member: str
    before: Member
    leader_before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """A group record on its way into the log; ``record`` None is a tombstone.

    ``member`` is the leader whose SyncGroup it is for (``why`` "sync"), ``replaced`` the return it is for ("static").
    """

    number: int
    record: GroupRecord | None
    why: Literal["sync", "static", "empty", "new group", "tombstone"]
    member: str = ""
    replaced: Replaced | None = None


class Timer(NamedTuple):
    """Fires at ``deadline`` or later; ``member`` is empty for the group's own."""

    deadline: int
    kind: TimerKind
    member: str = ""


class Step(NamedTuple):
    """What one happening yields: the group after it, answers, what an observer inside sees, and appends begun."""

    group: Group
    replies: tuple[Reply, ...] = ()
    events: tuple[Event, ...] = ()
    appends: tuple[Append, ...] = ()


def empty(group_id: str, *, ids_given: int = 0) -> Group:
    """A group that nobody has joined yet; ``ids_given`` goes on from an earlier life of its name."""
    return Group(id=group_id, ids_given=ids_given)


def timers(group: Group) -> tuple[Timer, ...]:
    """The timers that are armed, by deadline."""
    return tuple(sorted(_armed(group)))


def _armed(group: Group) -> Iterator[Timer]:
    for member in group.members:
        if member.deadline is not None:
            yield Timer(member.deadline, "new-member" if member.is_new else "session", member.id)
    for pending in group.pending:
        yield Timer(pending.deadline, "pending", pending.id)
    if group.join_deadline is not None:
        yield Timer(group.join_deadline, "join")
    if group.sync_deadline is not None and group.pending_sync:
        yield Timer(group.sync_deadline, "sync")
