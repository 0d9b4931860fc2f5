"""The broker's own log: the group coordinator's lines, old (Scala, 2.0 to 3.x) and new (Java, 3.7 to 4.x).

Sources of the wordings: kafka.coordinator.group.{GroupCoordinator, GroupMetadata, GroupMetadataManager} and
org.apache.kafka.coordinator.group.{GroupMetadataManager, classic.ClassicGroup}. Confluent builds print the same.

Some lines name no group (fencing, 2.3's static replacement): the group is the one in which the member, else the
instance, was last seen, and the line tells nothing if that is unknown or ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...spec.events import (
    Commit,
    Event,
    Expire,
    Gap,
    GenerationStarted,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Load,
    Rebalance,
    Replace,
    Sync,
    Synced,
)
from .base import LogReader, MalformedLine, Message, Session, Taken

_MEMBER_METADATA = (
    "MemberMetadata(memberId={member}, groupInstanceId={instance}, clientId={client}, clientHost={host}, "
    "sessionTimeoutMs={session}, rebalanceTimeoutMs={rebalance}, supportedProtocols={protocols})"
)

_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "rebalance": (
        "Preparing to rebalance group {group} in state {state} with old generation {generation} ({more}",
        "Preparing to rebalance group {group} with old generation {generation} ({more}",
        "Preparing to restabilize group {group} with old generation {generation}",
    ),
    "stabilized": (
        "Stabilized group {group} generation {generation} (__consumer_offsets-{partition}) with {count} members",
        "Stabilized group {group} generation {generation} with {count} members",
        "Stabilized group {group} generation {generation} (",
    ),
    "assignment": (
        "Assignment received from leader {member} for group {group} for generation {generation}. "
        "The group has {count} members, {static} of which are static",
        "Assignment received from leader for group {group} for generation {generation}. "
        "The group has {count} members, {static} of which are static",
        "Assignment received from leader for group {group} for generation {generation}",
    ),
    "emptied": ("Group {group} with generation {generation} is now empty",),
    "id required": ("Dynamic member with unknown member id joins group {group} in {state}. Created a new member id {member} and request",),
    "join": (
        "Dynamic Member with unknown member id joins group {group} in {state}. Created a new member id {member} for this member and add",
        "Dynamic member with unknown member id joins group {group} in {state}. Created a new member id {member} and added the member",
        "Static Member with unknown member id joins group {group} in {state}. Created a new member id {member} for this member and add",
        "Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state}. "
        "Created a new member id {member} for this member and add",
        "Pending dynamic member with id {member} joins group {group} in {state}. Adding to the group now",
        "Dynamic Member with specific member id {member} joins group {group} in {state}. Adding to the group now",
    ),
    "replace": (
        "Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state}. "
        "Replacing previously mapped member {old} with this groupInstanceId",
        "Static member {instance} of group {group} with unknown member id rejoins, assigning new member id {member}, "
        "while old member id {old} will be removed",
        "Static member {instance} with unknown member id rejoins, assigning new member id {member}, while old member {old} will be removed",
    ),
    "replace undone": (
        "Failed to persist metadata for group {group} static member {member} with group instance id {instance} due to {cause}. "
        "Reverting to old member id {old}.",
        "Failed to persist metadata for group {group}: ",
    ),
    "fenced": (
        "Request memberId={member} for static member with groupInstanceId={instance} is fenced by current memberId={current} "
        "during operation {operation}",
        "Request memberId={member} for static member with groupInstanceId={instance} is fenced by existing memberId={current} "
        "during operation {operation}",
        "given member.id {member} is identified as a known static member {instance}, but not matching the expected member.id {current} "
        "during {operation}, will respond",
    ),
    "expire": ("Member {member} in group {group} has failed, removing it from the group",),
    "expire pending": ("Pending member {member} in group {group} has been removed after session timeout expiration",),
    "expire laggards": ("Group {group} removed dynamic members who haven't joined: {members}",),
    "expire unsynced": (
        "Group {group} removed members who haven't sent their sync request: {members}",
        "Group {group} removed members who haven't sent their sync requests: {members}",
    ),
    "leave": (
        f"Member {_MEMBER_METADATA} has left group {{group}} through explicit `LeaveGroup`; client reason: {{reason}}",
        f"Member {_MEMBER_METADATA} has left group {{group}} through explicit `LeaveGroup` request",
        "[Group {group}] Static Member {member} with instance id {instance} has left group through explicit `LeaveGroup` request; "
        "client reason: {reason}",
        "[Group {group}] Dynamic Member {member} has left group through explicit `LeaveGroup` request; client reason: {reason}",
        "[Group {group}] Member {member} has left group through explicit `LeaveGroup` request; client reason: {reason}",
        "Member[group.instance.id {instance}, member.id {member}] in group {group} has left, removing it from the group",
        "Member {member} in group {group} has left, removing it from the group",
    ),
    "leave pending": (
        "[Group {group}] Pending member {member} has left group through explicit `LeaveGroup` request; client reason: {reason}",
        "Pending member with memberId={member} has left group {group} through explicit `LeaveGroup` request",
        "Pending member {member} is leaving group {group}.",
    ),
    "load": (
        "Loading group metadata for {group} with generation {generation}",
        "Loaded classic group {group} with {count} members",
    ),
    "over": (
        "Unloading group metadata for {group} with generation {generation}",
        "[GroupId={group}] Unloading group metadata for generation ",
        "Group {group} transitioned to Dead in generation ",
        "Group {group} generation {generation} is dead and removed",
        "Group {group} removed from the metadata cache and marked for deletion",
    ),
    "deleted": ("The following groups were deleted: {groups}. A total of ",),
    "start": (
        "[GroupCoordinator {broker}]: Starting up.",
        "[GroupCoordinator id={broker}] Starting up.",
    ),
    "KIP-848": (
        "[GroupId {group}] Bumped {more}group epoch to ",
        "[GroupId {group}] Computed a new target assignment ",
        "[GroupId {group}] {more} new assignment state: epoch=",
        "[GroupId {group}] {more} transitioned from ",
        "[GroupId {group}] {more} the consumer group",
        "[GroupId {group}] {more} fenced from the group because ",
        "Loaded consumer group {group} with {count} members",
        "Loaded member {member} in consumer group {group}.",
    ),
    "no consequence": (
        "[GroupId {group}] {more} the share group",
        "[GroupId {group}][MemberId {member}]",
        "Static member joins during ",
        "Static member which joins during Stable stage",
        "given member.id {member} is identified as a known static member",
        "Attempt to add rejoining member {member} of group ",
        "Group {group} could not complete rebalance because no members rejoined",
        "Group {group} is dead, skipping rebalance stage",
        "Group leader [member.id: {member} failed to join before rebalance timeout",
        "Group leader [memberId: {member} failed to join before the rebalance timeout",
        "Setting empty assignments for members ",
        "Sending empty assignment to member ",
        "Failed to write empty metadata for group ",
        "Appending metadata message for group {group} generation {generation} failed",
        "Metadata from group {group} with generation {generation} failed when appending",
        "Received notification of heartbeat expiration for member ",
        "Received unexpected notification of sync expiration ",
        "Member id {member} was not found in {group} during heartbeat completion check",
        "Cannot complete join phase of group ",
        "Elected as the group coordinator for partition ",
        "Resigned as the group coordinator for partition ",
        f"Loaded member {_MEMBER_METADATA} in group {{group}} with generation {{generation}}.",
        "Loaded member {member} in classic group {group}.",
        "Scheduling loading of offsets and group metadata from ",
        "Scheduling unloading of offsets and group metadata from ",
        "Finished loading offsets and group metadata from ",
        "Finished unloading __consumer_offsets-",
        "Already loading offsets and group metadata from ",
        "Not loading offsets and group metadata for ",
        "Not removing offsets and group metadata for ",
        "Error loading offsets from __consumer_offsets-",
        "Scheduling loading of metadata from __consumer_offsets-",
        "Finished loading of metadata from __consumer_offsets-",
        "Ignored loading metadata from __consumer_offsets-",
        "Failed to load metadata from __consumer_offsets-",
        "Scheduling unloading of metadata for __consumer_offsets-",
        "Started unloading metadata for __consumer_offsets-",
        "Finished unloading metadata for __consumer_offsets-",
        "Ignored unloading metadata for __consumer_offsets-",
        "Loaded group metadata ",
        "[GroupId={group}] Unloaded group metadata for group epoch ",
        "Cannot upgrade classic group ",
        "Cannot downgrade consumer group ",
        "tombstone records while cleaning up group metadata",
        "Creating simple consumer group ",
        "Creating a simple consumer group ",
        "expired offsets in ",
        "[GroupCoordinator {broker}]: Startup complete.",
        "[GroupCoordinator {broker}]: Shutting down.",
        "[GroupCoordinator {broker}]: Shutdown complete.",
        "[GroupCoordinator id={broker}] Startup complete.",
        "[GroupCoordinator id={broker}] Shutting down.",
        "[GroupCoordinator id={broker}] Shutdown complete.",
    ),
}
"""What each kind of line looks like, without the coordinator's prefix; the first template that fits counts."""

_REASONS: tuple[str, ...] = (
    "Adding new member {member} with group instance id {instance}",
    "Adding new member {member} with group instanceid {instance}",
    "Adding new member {member}",
    "Updating metadata for static member {member} with instance id {instance}",
    "Group's selectedProtocol will change because static member {member} with instance id {instance} joined with change",
    "Updating metadata for member {member} during ",
    "Updating metadata for member {member}",
    "Leader {member} re-joining group during ",
    "leader {member} re-joining group during ",
    "Member {member} joining group during ",
    "Member {member} is joining group during ",
)
"""Reasons of a rebalance that tell of a JoinGroup request; those of a removal are read on their own."""

_NUMBERS = frozenset({"generation", "count", "static", "session", "rebalance", "broker", "partition"})
_FIELD = re.compile(r"\{(\w+)\}")


def _compile(template: str) -> re.Pattern[str]:
    """A template as a pattern that takes linear time: each field ends where the text after it first stands, and stays so."""
    head, *rest = _FIELD.split(template)
    pattern = re.escape(head)
    for name, literal in zip(rest[::2], rest[1::2], strict=True):
        value = "[0-9]{1,10}(?![0-9])" if name in _NUMBERS else ".*?" if literal else ".*"
        pattern += f"(?>(?P<{name}>{value}){re.escape(literal)})"
    return re.compile(pattern)


@dataclass(frozen=True, slots=True)
class _Line:
    """One template: it begins with ``head`` and holds ``longest``, the rarest text of it."""

    kind: str
    head: str
    longest: str
    pattern: re.Pattern[str]

    def read(self, text: str) -> Mapping[str, str] | None:
        at = text.find(self.head)
        found = self.pattern.match(text, at) if at >= 0 else None
        return None if found is None else found.groupdict()


def _line(kind: str, template: str) -> _Line:
    literals = _FIELD.split(template)[::2]
    return _Line(kind, literals[0], max(literals, key=len), _compile(template))


_LINES = tuple(_line(kind, template) for kind, templates in _TEMPLATES.items() for template in templates)
_JOIN_REASONS = tuple(_line("join", template) for template in _REASONS)
_HEARTBEAT_REASON = _line("expire", "removing member {member} on heartbeat expiration")
_SYNC_REASON = _line("expire", "Removing {members} on pending sync request expiration")

_HEADS = ("Preparing to rebalance group ", "Stabilized group ", "Assignment received from leader")
_OWNED = re.compile(r"\[GroupCoordinator [^\]]{0,200}\]:? (?:" + "|".join(_HEADS) + ")")
_BROKER = re.compile(r"\[Group(?:Coordinator|MetadataManager) (?:id=|brokerId=)?([0-9]{1,10})\b")
_LOGGER = re.compile(r" \([\w.$:]{1,200}\)\s*$")
_PARENTHESIS = re.compile(r"[()]")
_COLLECTION = re.compile(r"\w*[(\[]")
_UUID_END = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", re.IGNORECASE)
_RELEASE = re.compile(r"\bKafka version ?: ([0-9]\S{0,60})")

_ANSWERS: Mapping[str, Callable[..., Event]] = {
    "join-group": Joined,
    "sync-group": Synced,
    "heartbeat": Heartbeat,
    "leave-group": Leave,
    "offset-commit": Commit,
    "txn-offset-commit": Commit,
}
_OUT_OF_SCOPE = "KIP-848 consumer protocol: out of scope"
_NO_REASON = "not provided"
_HOMES_KEPT = 200_000
_TOLD_KEPT = 10_000
_STREAMS_KEPT = 10_000

_Broker = tuple[str, str]
_Fields = Mapping[str, str]


@dataclass(slots=True)
class _Group:
    """What the file told of one group. ``over``: its coordinator let it go, so whatever comes next is a new epoch.

    ``told`` maps each join and removal that was told since the last rebalance to the instance it named, if any;
    ``replaced`` holds the static replacements since the last generation. ``starts`` counts its coordinator's starts.
    """

    epoch: int = 0
    generation: int | None = None
    broker: _Broker | None = None
    starts: int = 0
    empty: bool = False
    over: bool = False
    loading: bool = False
    out_of_scope: bool = False
    told: dict[tuple[type[Event], str], str | None] = field(default_factory=dict[tuple[type[Event], str], str | None])
    replaced: list[Replace] = field(default_factory=list[Replace])

    def renew(self) -> None:
        self.epoch += 1
        self.generation = None
        self.empty = self.over = self.loading = False
        self.told.clear()
        self.replaced.clear()

    def news(self, event: Join | Expire) -> bool:
        """Whether this was not told yet in this round, or names an instance that was not told."""
        key = (type(event), event.member or "")
        if key in self.told and event.instance in (None, self.told[key]):
            return False
        if len(self.told) >= _TOLD_KEPT:
            self.told.clear()
        self.told[key] = event.instance
        return True


class _Homes:
    """Where members and instances were last seen, bounded. An instance seen in two groups has no home."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], str | None] = {}

    def saw(self, event: Event) -> None:
        if event.member:
            self._keep(("member", event.member), event.group)
        if event.instance:
            key = ("instance", event.instance)
            alone = self._groups.get(key, event.group) == event.group
            self._keep(key, event.group if alone else None)

    def of(self, members: Iterable[str], instance: str | None) -> str | None:
        known = {self._groups.get(("member", member)) for member in members} - {None}
        if not known and instance is not None:
            return self._groups.get(("instance", instance))
        return known.pop() if len(known) == 1 else None

    def _keep(self, key: tuple[str, str], group: str | None) -> None:
        if key not in self._groups and len(self._groups) >= _HOMES_KEPT:
            del self._groups[next(iter(self._groups))]
        self._groups[key] = group


class _BrokerSession:
    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._starts: dict[_Broker, int] = {}
        self._releases: dict[str, str] = {}
        self._homes = _Homes()

    def feed(self, message: Message) -> Taken | None:
        text = _LOGGER.sub("", message.text)
        for line in _LINES:
            if line.longest in text and (fields := line.read(text)) is not None:
                broker = _BROKER.search(text)
                told = self._tell(line.kind, fields, None if broker is None else (message.stream, broker[1]))
                return Taken([self._stamped(event, message) for event in told])
        release = _RELEASE.search(text)
        if release is not None and len(self._releases) < _STREAMS_KEPT:
            self._releases[message.stream] = release[1]
        if _OWNED.search(text) is not None:
            raise MalformedLine("expected a whole line of the group coordinator: the group and its generation")
        return None

    def close(self) -> Sequence[Event]:
        return ()

    def _stamped(self, event: Event, message: Message) -> Event:
        self._homes.saw(event)
        release = self._releases.get(message.stream)
        extra = dict(event.extra) if release is None else {**event.extra, "release": release}
        return replace(event, ts=message.ts, epoch=self._groups[event.group].epoch, src=message.src, extra=extra)

    def _group(self, name: str, broker: _Broker | None, generation: int | None = None) -> _Group:
        """The group as of now: in a new epoch if it was let go, moved or recreated since it was last mentioned."""
        group = self._groups.get(name)
        starts = 0 if broker is None else self._starts.get(broker, 0)
        if group is None:
            group = self._groups[name] = _Group(broker=broker, starts=starts)
        elif (
            group.over
            or (broker is not None and group.broker is not None and (broker, starts) != (group.broker, group.starts))
            or (group.empty and generation is not None and group.generation is not None and generation < group.generation)
        ):
            group.renew()
        if broker is not None:
            group.broker, group.starts = broker, starts
        return group

    def _tell(self, kind: str, fields: _Fields, broker: _Broker | None) -> Iterable[Event]:
        name = fields.get("group")
        if kind == "no consequence":
            return ()
        if kind == "start":
            if broker is not None and (broker in self._starts or len(self._starts) < _STREAMS_KEPT):
                self._starts[broker] = self._starts.get(broker, 0) + 1
            return ()
        if kind == "deleted":
            for deleted in fields["groups"].split(", "):
                self._let_go(deleted, broker)
            return ()
        if kind == "over" and name is not None:
            self._let_go(name, broker)
            return ()
        instance = _instance(fields.get("instance"))
        if name is None:
            name = self._homes.of((fields[m] for m in ("member", "old", "current") if m in fields), instance)
        if name is None:
            return ()
        generation = int(fields["generation"]) if "generation" in fields else None
        if kind == "load":
            return self._loaded(name, broker, generation)
        group = self._group(name, broker, generation)
        group.loading = False
        if fields.get("state") in ("Empty state", "state Empty"):
            group.empty = True
        return self._tell_of(kind, name, group, generation, instance, fields)

    def _tell_of(
        self, kind: str, name: str, group: _Group, generation: int | None, instance: str | None, fields: _Fields
    ) -> Iterable[Event]:
        member = fields.get("member")
        match kind:
            case "rebalance":
                return self._rebalance(name, group, generation, fields.get("more", ""))
            case "stabilized" | "emptied":
                group.generation, group.empty = generation, kind == "emptied"
                group.told.clear()
                group.replaced.clear()
                extra = {"members_count": int(fields["count"])} if "count" in fields else {}
                return [GenerationStarted(group=name, generation=generation, members=() if group.empty else None, extra=extra)]
            case "assignment":
                if "count" not in fields and group.generation not in (None, generation):
                    return ()
                extra = {"members_count": int(fields["count"]), "static_count": int(fields["static"])} if "count" in fields else {}
                return [Sync(group=name, generation=generation, member=member, extra=extra)]
            case "id required":
                return [Joined(group=name, member=member, error="MEMBER_ID_REQUIRED")]
            case "join":
                return _news(group, [Join(group=name, member=member, instance=instance)])
            case "replace":
                event = Replace(group=name, instance=instance, old_member=fields["old"], member=member)
                if len(group.replaced) < _TOLD_KEPT:
                    group.replaced.append(event)
                return [event]
            case "replace undone":
                return [_undone(name, group, instance, fields)]
            case "fenced":
                answered = _ANSWERS.get(fields["operation"])
                return [] if answered is None else [answered(group=name, member=member, instance=instance, error="FENCED_INSTANCE_ID")]
            case "expire":
                return _news(group, [Expire(group=name, member=member, reason="session")])
            case "expire pending":
                return [Expire(group=name, member=member, reason="session", extra={"pending": True})]
            case "expire laggards":
                return _news(group, [Expire(group=name, member=m, reason="rebalance") for m in _members(fields["members"])])
            case "expire unsynced":
                return _news(group, [Expire(group=name, member=m, reason="sync") for m in _members(fields["members"])])
            case "leave" | "leave pending":
                extra: dict[str, object] = {"pending": True} if kind == "leave pending" else {}
                if "session" in fields:
                    extra = {"session_timeout_ms": int(fields["session"]), "rebalance_timeout_ms": int(fields["rebalance"])}
                reason = fields.get("reason", _NO_REASON)
                return [Leave(group=name, member=member, instance=instance, client=fields.get("client"), reason=reason, extra=extra)]
            case _:
                first, group.out_of_scope = not group.out_of_scope, True
                return [Gap(group=name, reason=_OUT_OF_SCOPE)] if first else []

    def _loaded(self, name: str, broker: _Broker | None, generation: int | None) -> Iterable[Event]:
        known = self._groups.get(name)
        before = None if known is None else known.epoch
        group = self._group(name, broker)
        if group.loading:
            return ()
        if group.epoch == before or before is None:
            group.renew()
        group.loading, group.generation = True, generation
        return [Load(group=name, generation=generation)]

    def _let_go(self, name: str, broker: _Broker | None) -> None:
        group = self._groups.get(name)
        if group is not None and (broker is None or group.broker in (None, broker)):
            group.over = True

    def _rebalance(self, name: str, group: _Group, generation: int | None, more: str) -> Iterable[Event]:
        reason = _reason(more)
        told = _news(group, _from_reason(name, generation, reason or ""))
        group.generation, group.empty = generation, False
        group.told.clear()
        return [*told, Rebalance(group=name, generation=generation, reason=reason)]


def _news(group: _Group, events: Iterable[Join | Expire]) -> list[Event]:
    return [event for event in events if group.news(event)]


def _from_reason(name: str, generation: int | None, reason: str) -> Iterator[Join | Expire]:
    """The member events that a rebalance's reason tells of."""
    coordinators = reason.partition("; client reason: ")[0]
    expired = _HEARTBEAT_REASON.read(coordinators)
    unsynced = _SYNC_REASON.read(coordinators)
    joined = next((fields for line in _JOIN_REASONS if (fields := line.read(coordinators)) is not None), None)
    if expired is not None:
        yield Expire(group=name, member=expired["member"], reason="session")
    elif unsynced is not None:
        for member in _members(unsynced["members"]):
            yield Expire(group=name, member=member, reason="sync")
    elif joined is not None:
        yield Join(group=name, generation=generation, member=joined["member"], instance=_instance(joined.get("instance")))


def _undone(name: str, group: _Group, instance: str | None, fields: _Fields) -> Event:
    if "old" in fields:
        return Replace(group=name, instance=instance, old_member=fields["member"], member=fields["old"])
    if len(group.replaced) == 1:
        last = group.replaced.pop()
        return Replace(group=name, instance=last.instance, old_member=last.member, member=last.old_member)
    return Gap(group=name, reason="a static member's new member id was not persisted, and the log does not say which")


def _reason(text: str) -> str | None:
    """The text within ``(reason: ...)``, None if there is none or the line was cut off within it."""
    _, found, rest = text.partition("reason: ")
    depth = 1
    for parenthesis in _PARENTHESIS.finditer(rest):
        depth += 1 if parenthesis[0] == "(" else -1
        if depth == 0:
            return rest[: parenthesis.start()]
    end = rest.rfind(")")
    return rest[:end] if found and end >= 0 else None


def _instance(text: str | None) -> str | None:
    """A group.instance.id as Scala (``Some(x)``, ``None``) or Java (``x``, ``null``) prints it."""
    plain = text[5:-1] if text is not None and text.startswith("Some(") and text.endswith(")") else text
    return None if plain in ("", "None", "null") else plain


def _members(text: str) -> list[str]:
    """The ids of a printed collection: ``Set(a, b)``, ``HashSet(a, b)``, ``[a, b]``. An id that holds ", " ends in its UUID."""
    opened = _COLLECTION.match(text)
    inside = text if opened is None else text[opened.end() : max(text.rfind(")"), text.rfind("]"))]
    pieces = [piece for piece in inside.split(", ") if piece]
    if not pieces or _UUID_END.search(pieces[-1]) is None:
        return pieces
    members: list[str] = []
    start = 0
    for at, piece in enumerate(pieces):
        if _UUID_END.search(piece) is not None:
            members.append(", ".join(pieces[start : at + 1]))
            start = at + 1
    return members


@dataclass(frozen=True, slots=True)
class _BrokerReader:
    name: str = "broker"
    anchors: tuple[str, ...] = ("[GroupCoordinator ", "[GroupMetadataManager ", "Loaded member ", "Group leader [member", "Kafka version")

    def open(self, file: str) -> Session:
        return _BrokerSession()


READER: LogReader = _BrokerReader()
