"""A step under construction: the group as it changes, the answers given, what an observer inside the coordinator sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ...spec.events import (
    NONE,
    Assignment,
    Commit,
    Event,
    Expire,
    GenerationStarted,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Load,
    MemberInfo,
    Rebalance,
    Replace,
    Sync,
    Synced,
)
from ..choice import Choose
from ..messages import (
    Address,
    CommitRequest,
    CommitResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    ProtocolType,
    Reply,
    Share,
    SyncRequest,
    SyncResponse,
)
from .release import Release
from .state import Append, Group, GroupRecord, Member, Parked, Step, StoredMember

_CONNECT_INCREMENTAL = frozenset({"compatible", "sessioned"})


@dataclass(slots=True)
class Work:
    """Collects one step; `done` hands it over."""

    group: Group
    release: Release
    now: int
    choose: Choose
    replies: list[Reply] = field(default_factory=list[Reply])
    events: list[Event] = field(default_factory=list[Event])
    appends: list[Append] = field(default_factory=list[Append])

    def done(self) -> Step:
        return Step(self.group, tuple(self.replies), tuple(self.events), tuple(self.appends))

    def defect(self, name: str) -> bool:
        return name in self.release.defects

    # The group.

    def put(self, member: Member, in_place_of: str | None = None) -> None:
        """Store what became of a member, under its own id or in the place of another one."""
        place = in_place_of or member.id
        self.group = replace(self.group, members=tuple(member if m.id == place else m for m in self.group.members))

    def restart_session(self, member: Member) -> None:
        self.put(replace(member, deadline=self.now + member.session_timeout_ms))

    def new_id(self, prefix: str) -> str:
        """A member id that was never given before."""
        self.group = replace(self.group, ids_given=self.group.ids_given + 1)
        return f"{prefix}-{self.group.ids_given}"

    # Answers, each with the event that shows it.

    def answer_join(self, parked: Parked[JoinRequest], response: JoinResponse) -> None:
        request = parked.request
        granted = response.error == NONE
        self.replies.append(Reply(parked.address, response))
        self.events.append(
            Joined(
                group=self.group.id,
                generation=response.generation if granted else None,
                member=response.member or request.member,
                instance=request.instance,
                client=request.client,
                leader=response.leader if granted else None,
                protocol=response.protocol if granted else None,
                error=response.error,
                extra={"skip_assignment": True} if response.skip_assignment else {},
            )
        )

    def answer_sync(self, parked: Parked[SyncRequest], response: SyncResponse) -> None:
        request = parked.request
        share = (response.share or Share()) if response.error == NONE else None
        instance, client = self._who(request.member, request.instance)
        self.replies.append(Reply(parked.address, response))
        self.events.append(
            Synced(
                group=self.group.id,
                generation=request.generation,
                member=request.member,
                instance=instance,
                client=client,
                resources=None if share is None else share.resources,
                revoked=None if share is None else share.revoked,
                delay_ms=None if share is None else share.delay_ms,
                error=response.error,
            )
        )

    def answer_heartbeat(self, address: Address, request: HeartbeatRequest, error: str) -> None:
        instance, client = self._who(request.member, request.instance)
        self.replies.append(Reply(address, HeartbeatResponse(error=error)))
        self.events.append(
            Heartbeat(
                group=self.group.id, generation=request.generation, member=request.member, instance=instance, client=client, error=error
            )
        )

    def answer_leave(self, address: Address, request: LeaveRequest, error: str, *, pending: bool = False) -> None:
        instance, client = self._who(request.member, request.instance)
        self.replies.append(Reply(address, LeaveResponse(error=error)))
        self.events.append(
            Leave(
                group=self.group.id,
                generation=self.group.generation,
                member=request.member,
                instance=instance,
                client=client,
                reason=request.reason or None,
                error=error,
                extra={"pending": True} if pending else {},
            )
        )

    def answer_commit(self, address: Address, request: CommitRequest, error: str) -> None:
        instance, client = self._who(request.member, request.instance)
        self.replies.append(Reply(address, CommitResponse(error=error)))
        self.events.append(
            Commit(
                group=self.group.id,
                generation=request.generation,
                member=request.member,
                instance=instance,
                client=client,
                resources=request.partitions,
                error=error,
            )
        )

    # What an observer sees besides.

    def saw_join(self, request: JoinRequest) -> None:
        name, metadata = request.protocols[0] if request.protocols else ("", None)
        consumer = request.protocol_type == "consumer"
        claims = metadata is not None and (consumer or name in _CONNECT_INCREMENTAL)
        self.events.append(
            Join(
                group=self.group.id,
                member=request.member,
                instance=request.instance,
                client=request.client,
                session_timeout_ms=request.session_timeout_ms,
                rebalance_timeout_ms=request.rebalance_timeout_ms,
                protocols=tuple(protocol for protocol, _ in request.protocols),
                subscribed=metadata.topics if metadata is not None and consumer else None,
                owned=metadata.owned if metadata is not None and claims else None,
                owned_generation=metadata.generation if metadata is not None and consumer else None,
                rack=metadata.rack if metadata is not None and consumer else None,
                extra={"reason": request.reason} if request.reason else {},
            )
        )

    def saw_sync(self, request: SyncRequest) -> None:
        instance, client = self._who(request.member, request.instance)
        delays = [share.delay_ms for _, share in request.shares if share.delay_ms is not None]
        self.events.append(
            Sync(
                group=self.group.id,
                generation=request.generation,
                member=request.member,
                instance=instance,
                client=client,
                assignment={member: share.resources for member, share in request.shares} or None,
                revoked={member: share.revoked for member, share in request.shares if share.revoked is not None} or None,
                delay_ms=max(delays) if delays else None,
            )
        )

    def saw_rebalance(self, reason: str) -> None:
        self.events.append(Rebalance(group=self.group.id, generation=self.group.generation, reason=reason))

    def saw_generation(self) -> None:
        group = self.group
        instances: Mapping[str, str | None] = {m.id: m.instance for m in group.members}
        self.events.append(
            GenerationStarted(
                group=group.id,
                generation=group.generation,
                members=tuple(instances),
                leader=group.leader,
                protocol=group.protocol,
                extra={"instances": instances},
            )
        )

    def saw_stored(self, record: GroupRecord) -> None:
        """The log took ``record``. An emptied group was told of when its join phase ended."""
        if record.members:
            self.events.append(
                Assignment(
                    group=self.group.id,
                    generation=record.generation,
                    leader=record.leader,
                    protocol=record.protocol,
                    assignment={m.id: m.share.resources if m.share is not None else () for m in record.members},
                    members={m.id: _info(m, record.protocol_type, record.protocol) for m in record.members},
                )
            )

    def saw_expiry(self, member: str, reason: str, *, pending: bool = False) -> None:
        instance, client = self._who(member, None)
        self.events.append(
            Expire(
                group=self.group.id,
                generation=self.group.generation,
                member=member,
                instance=instance,
                client=client,
                reason=reason,
                extra={"pending": True} if pending else {},
            )
        )

    def saw_replacement(self, member: Member, old_member: str) -> None:
        self.events.append(
            Replace(
                group=self.group.id,
                generation=self.group.generation,
                member=member.id,
                instance=member.instance,
                client=member.client,
                old_member=old_member,
            )
        )

    def saw_load(self, record: GroupRecord | None) -> None:
        self.events.append(Load(group=self.group.id, generation=None if record is None else record.generation))

    def _who(self, member: str, instance: str | None) -> tuple[str | None, str | None]:
        """The group.instance.id and client.id of ``member``: as the group knows it, else as the request says."""
        known = self.group.member(member) or (self.group.holder(instance) if not member else None)
        if known is not None:
            return known.instance, known.client
        pending = next((p for p in self.group.pending if p.id == member), None)
        return (None, pending.client) if pending is not None else (instance, None)


def _info(member: StoredMember, protocol_type: ProtocolType | None, protocol: str | None) -> MemberInfo:
    consumer = protocol_type == "consumer"
    claims = consumer or protocol in _CONNECT_INCREMENTAL
    return MemberInfo(
        instance=member.instance,
        session_timeout_ms=member.session_timeout_ms,
        subscribed=member.metadata.topics if consumer else None,
        owned=member.metadata.owned if claims else None,
        extra={"owned_generation": member.metadata.generation} if consumer else {},
    )
