"""The vocabulary: what an observer of a consumer group or Connect cluster can witness.

One frozen record per kind of trace version 1. Times are whole microseconds since 1970-01-01 UTC, durations are
milliseconds, as the field names say. A field that the observer did not see is ``None``; an empty tuple means that it
saw *nothing* there (a member that owns no partition).

Who saw it decides how an event is ordered, so every record says so (``seen_by``). The coordinator's requests and
responses are ordered by the coordinator; what a member logs is ordered by that member alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Literal

Observer = Literal["coordinator", "member", "harness", "any"]
Resources = tuple[str, ...]
AssignmentMap = Mapping[str, Resources]

NONE = "NONE"
"""The Kafka error code of a request that was granted."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where an event was read: ``line`` counts from 1 (0: not a line of text), ``text`` is the line as it stood there."""

    file: str
    line: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """What the coordinator stores of a member: group.instance.id, session.timeout.ms, subscription and claimed partitions."""

    instance: str | None = None
    session_timeout_ms: int | None = None
    subscribed: Resources | None = None
    owned: Resources | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object], compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event carries. ``generation`` is the generation that the event belongs to."""

    kind: ClassVar[str] = ""
    default_observer: ClassVar[Observer] = "any"

    group: str
    ts: int | None = None
    cluster: str = "default"
    epoch: int = 0
    generation: int | None = None
    member: str | None = None
    instance: str | None = None
    client: str | None = None
    resources: Resources | None = None
    src: Source | None = None
    seen_by: Observer | None = None
    """Overrides who usually sees this kind: a client log shows the member's side of JoinGroup and SyncGroup."""
    times: int = field(default=1, compare=False)
    """How many requests this one stands for, itself the last: equal but for their times, with nothing else of the group in between."""
    extra: Mapping[str, object] = field(default_factory=dict[str, object], compare=False)
    """Fields that trace version 1 does not name, kept as read."""

    @property
    def observer(self) -> Observer:
        """Who saw this event."""
        return self.seen_by or self.default_observer


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(Event):
    """JoinGroup request. An empty ``member`` is a first join; ``owned_generation`` -1 means absent."""

    kind: ClassVar[str] = "join"
    default_observer: ClassVar[Observer] = "coordinator"
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    protocols: Resources | None = None
    subscribed: Resources | None = None
    owned: Resources | None = None
    owned_generation: int | None = None
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined(Event):
    """JoinGroup response."""

    kind: ClassVar[str] = "joined"
    default_observer: ClassVar[Observer] = "coordinator"
    leader: str | None = None
    protocol: str | None = None
    error: str = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync(Event):
    """SyncGroup request; the leader's carries the whole ``assignment``, under Connect also ``revoked`` and ``delay_ms``."""

    kind: ClassVar[str] = "sync"
    default_observer: ClassVar[Observer] = "coordinator"
    assignment: AssignmentMap | None = None
    revoked: AssignmentMap | None = None
    delay_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced(Event):
    """SyncGroup response: ``resources`` is everything the member is to own once it has applied this generation."""

    kind: ClassVar[str] = "synced"
    default_observer: ClassVar[Observer] = "coordinator"
    revoked: Resources | None = None
    delay_ms: int | None = None
    error: str = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Event):
    """Heartbeat, answered."""

    kind: ClassVar[str] = "heartbeat"
    default_observer: ClassVar[Observer] = "coordinator"
    error: str = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave(Event):
    """LeaveGroup, answered, one event per member named in the request."""

    kind: ClassVar[str] = "leave"
    default_observer: ClassVar[Observer] = "coordinator"
    reason: str | None = None
    error: str = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Event):
    """OffsetCommit, answered; ``resources`` are the partitions committed."""

    kind: ClassVar[str] = "commit"
    default_observer: ClassVar[Observer] = "coordinator"
    error: str = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance(Event):
    """The group entered PreparingRebalance; ``generation`` is the old one."""

    kind: ClassVar[str] = "rebalance"
    default_observer: ClassVar[Observer] = "coordinator"
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStarted(Event):
    """The join phase completed: the group entered CompletingRebalance with these ``members``."""

    kind: ClassVar[str] = "generation"
    default_observer: ClassVar[Observer] = "coordinator"
    members: Resources | None = None
    leader: str | None = None
    protocol: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment(Event):
    """The whole assignment of a generation, as the coordinator stores it."""

    kind: ClassVar[str] = "assignment"
    default_observer: ClassVar[Observer] = "coordinator"
    assignment: AssignmentMap | None = None
    members: Mapping[str, MemberInfo] | None = None
    leader: str | None = None
    protocol: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire(Event):
    """A timer removed the member: ``reason`` is ``session``, ``rebalance`` or ``sync``."""

    kind: ClassVar[str] = "expire"
    default_observer: ClassVar[Observer] = "coordinator"
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace(Event):
    """Static replacement: ``member`` takes the place of ``old_member`` under one group.instance.id."""

    kind: ClassVar[str] = "replace"
    default_observer: ClassVar[Observer] = "coordinator"
    old_member: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(Event):
    """A coordinator loaded the group from its log: a new ``epoch``."""

    kind: ClassVar[str] = "load"
    default_observer: ClassVar[Observer] = "coordinator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned(Event):
    """The member took ``resources`` in addition to what it owned; its callback has finished."""

    kind: ClassVar[str] = "assigned"
    default_observer: ClassVar[Observer] = "member"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked(Event):
    """The member gave ``resources`` up in order; its callback has finished."""

    kind: ClassVar[str] = "revoked"
    default_observer: ClassVar[Observer] = "member"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(Event):
    """The member learnt that ``resources`` were no longer its own."""

    kind: ClassVar[str] = "lost"
    default_observer: ClassVar[Observer] = "member"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned(Event):
    """Everything that the member believes it owns at this moment."""

    kind: ClassVar[str] = "owned"
    default_observer: ClassVar[Observer] = "member"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Event):
    """The member's process ended in order."""

    kind: ClassVar[str] = "closed"
    default_observer: ClassVar[Observer] = "harness"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed(Event):
    """The member's process ended without a word."""

    kind: ClassVar[str] = "crashed"
    default_observer: ClassVar[Observer] = "harness"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics(Event):
    """Partition counts of topics."""

    kind: ClassVar[str] = "topics"
    topics: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap(Event):
    """Evidence is missing here. With a ``member``: in that member's log only."""

    kind: ClassVar[str] = "gap"
    reason: str | None = None


Answered = Joined | Synced | Heartbeat | Leave | Commit
BeliefChange = Assigned | Revoked | Lost | Owned

KINDS: Mapping[str, type[Event]] = MappingProxyType(
    {
        record.kind: record
        for record in (
            Join,
            Joined,
            Sync,
            Synced,
            Heartbeat,
            Leave,
            Commit,
            Rebalance,
            GenerationStarted,
            Assignment,
            Expire,
            Replace,
            Load,
            Assigned,
            Revoked,
            Lost,
            Owned,
            Closed,
            Crashed,
            Topics,
            Gap,
        )
    }
)
"""Every kind of trace version 1 by its name on the wire."""
