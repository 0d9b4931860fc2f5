"""What one client's own log tells of its membership.

Client logs name the member, the generation and the owned partitions in different lines, so each reader folds its client's
lines into a `Member`: one method per fact that a line can tell, which returns the events that follow from it. Where a line
is missing (cut file, filtered log, two processes that write under one client.id) the member says so by one `Gap`, forgets
what it can no longer know, and stays silent about ownership until a line with a generation sets it right.

The order of a client's lines, as written by KafkaConsumer and its ports (ConsumerCoordinator.onJoinPrepare, onJoinComplete):
[eager: revoke everything] - join - joined - [leader: assignment] - synced - [cooperative: revoke something] - assigned.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from enum import Enum

from ...spec.events import (
    Assigned,
    AssignmentMap,
    Closed,
    Commit,
    Event,
    Gap,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Lost,
    Owned,
    Resources,
    Revoked,
    Sync,
    Synced,
)
from .base import Message
from .text import sorted_names

RIVALS_KEPT = 1_000
"""How many members that write under one name are told apart."""

_NOTHING: frozenset[str] = frozenset()


class _Phase(Enum):
    """Where the member stands in the round that its log shows."""

    IDLE = "idle"
    JOINING = "joining"
    JOINED = "joined"
    SETTLED = "settled"


class Member:
    """One client of one group in one stream of one file; ``place`` names stream or file and makes invented member ids unique.

    ``client`` is None where the program doesn't log its client.id. A client that doesn't log its member id goes by
    ``{client}@{place}#{n}``, n counting its incarnations.
    """

    def __init__(self, group: str, client: str | None, place: str) -> None:
        self.group = group
        self.client = client
        self.instance: str | None = None
        self.subscribed: Resources | None = None
        self.release: str | None = None
        self.streams = False
        self.probing = False
        self.poll_timeout = False
        self._inventions = f"{client or group}@{place}#"
        self._incarnation = 0
        self._name: str | None = None
        self._former: str | None = None
        self._given: str | None = None
        self._fresh = False
        self._phase = _Phase.IDLE
        self._generation: int | None = None
        self._previous: int | None = None
        self._eager: bool | None = None
        self._increment_told = False
        self._owned: frozenset[str] | None = None
        self._assigned: frozenset[str] | None = None
        self._rivals: dict[str, int | None] = {}
        self._mixed = False

    @property
    def name(self) -> str | None:
        """The member id it last joined under, logged or invented; None before the first join."""
        return self._name

    @property
    def generation(self) -> int | None:
        """The generation it is in, None while unknown."""
        return self._generation

    @property
    def attributable(self) -> bool:
        """Whether lines that name no member surely speak of this one."""
        return self._name is not None and self._generation is not None and not self._rivals and not self._mixed

    @property
    def in_round(self) -> bool:
        """Whether it joined a generation and has not taken its assignment yet."""
        return self._phase is _Phase.JOINED

    def own_among(self, members: Collection[str]) -> str | None:
        """Its id among those of a generation that it surely is in, if just one of them can be its own.

        Coordinators build ids as ``{client.id or group.instance.id}-{uuid}``.
        """
        owner = self.instance or self.client
        if owner is None:
            return None
        own = [member for member in members if len(member) == len(owner) + 37 and member.startswith(owner + "-")]
        return own[0] if len(own) == 1 else None

    def join(self, message: Message) -> list[Event]:
        """It sends JoinGroup."""
        self._phase = _Phase.JOINING
        if self._confused:
            return []
        member = self._given or ("" if self._fresh else self._name)
        generation = None if self._fresh else self._generation
        extra: dict[str, object] = {"probing": True} if self.probing else {}
        self.probing = self.poll_timeout = False
        return self._tell(message, Join(group=self.group, generation=generation, member=member, subscribed=self.subscribed, extra=extra))

    def given(self, message: Message, member: str | None) -> list[Event]:
        """The coordinator wants a member id in the next JoinGroup, hence a new incarnation. None: the line doesn't say which id."""
        gap = [] if self._confused else self._abandon(message, "a new member id was taken; what became of the partitions was not logged")
        self._fresh = True
        self._given = member
        return gap

    def forgot_id(self) -> None:
        """It dropped its member id; what it owned stays its own until it says otherwise."""
        self._fresh = True
        self._given = None

    def joined(self, message: Message, generation: int, member: str | None = None, protocol: str | None = None) -> list[Event]:
        """JoinGroup was granted. ``member`` None: the line doesn't name it."""
        events: list[Event] = []
        if member is None:
            if self._mixed:
                return []
            if self._phase is not _Phase.JOINING and generation == self._generation:
                return self._mix(message)
            member = self._given or self._unnamed(generation)
        elif not self._rivals and self._is_rival(member, generation):
            events += self._mix_named(message, member)
        if self._rivals:
            self._rivals[member] = generation
            self._mixed = len(self._rivals) > RIVALS_KEPT
            self._rivals = {} if self._mixed else self._rivals
        else:
            events += self._enter(message, generation, member)
            self._assigned = None
            self._increment_told = False
        self._phase = _Phase.JOINED
        return [*events, *self._tell(message, Joined(group=self.group, generation=generation, member=member, protocol=protocol))]

    def join_failed(self, message: Message, error: str, generation: int | None, member: str | None) -> list[Event]:
        """JoinGroup was refused."""
        return self._tell(message, Joined(group=self.group, generation=generation, member=self._here(member), error=error))

    def sync_failed(self, message: Message, error: str, generation: int | None, member: str | None) -> list[Event]:
        """SyncGroup was refused."""
        return self._tell(message, Synced(group=self.group, generation=generation, member=self._here(member), error=error))

    def led(self, message: Message, generation: int, members: Collection[str], assignment: AssignmentMap | None) -> list[Event]:
        """It leads and sends SyncGroup with the whole ``assignment`` of ``generation``, None where the log can't show it."""
        if self._name in members:
            leader = self._name
        else:
            leader = self.own_among(members)
            if leader is not None and self._phase is _Phase.JOINING:
                self._given = leader
        return self._tell(message, Sync(group=self.group, generation=generation, member=leader, assignment=assignment))

    def synced(self, message: Message, generation: int, member: str | None = None) -> list[Event]:
        """SyncGroup was granted; the line doesn't show what was assigned."""
        if member is None and not self.attributable:
            return []
        return self._tell(message, Synced(group=self.group, generation=generation, member=member or self._name))

    def assignment(self, message: Message, resources: Resources) -> list[Event]:
        """Its assignment in the current generation, everything that it is to own."""
        if not self.attributable:
            return []
        if self._phase is not _Phase.JOINED:
            return self._lose_track(message, "an assignment came without the line that names its generation")
        if self._assigned == frozenset(resources):
            return []
        if self._assigned is not None:
            return self._lose_track(message, "two assignments in one generation")
        self._assigned = frozenset(resources)
        return self._tell(message, Synced(group=self.group, generation=self._generation, member=self._name, resources=resources))

    def increment(self) -> None:
        """The line that opens a cooperative member's list of changes: it is not eager."""
        self._increment_told = True

    def change(self, message: Message, assigned: Resources, owned: Resources) -> list[Event]:
        """A cooperative member's list of changes: ``owned`` before this generation, ``assigned`` in it."""
        if not self.attributable:
            return []
        before: list[Event] = []
        if self._phase is _Phase.JOINED and self._owned != frozenset(owned):
            if self._previous is not None:
                before = self._tell(message, Owned(group=self.group, generation=self._previous, member=self._name, resources=owned))
            self._owned = frozenset(owned)
        return [*before, *self.assignment(message, assigned)]

    def assigned(self, message: Message, added: Resources) -> list[Event]:
        """It took ``added``. A member that did not list its changes before is eager, whatever the assignor's name."""
        if not self.attributable:
            self._owned = None
            return []
        if self._phase is not _Phase.JOINED:
            if self._phase is _Phase.SETTLED and not added:
                return []
            return self._lose_track(message, "partitions came without the line that names their generation")
        self._phase = _Phase.SETTLED
        self._eager = not self._increment_told
        events: list[Event] = []
        if self._eager and self._owned:
            events += self._gap(message, "an eager member took partitions without giving up the former ones", before=True)
            self._owned = _NOTHING
        taken = Assigned(group=self.group, generation=self._generation, member=self._name, resources=added)
        known = _NOTHING if self._eager else self._owned
        if self._assigned is None:
            self._owned = None if known is None else known | set(added)
            return [*events, *self._tell(message, taken)]
        if known is not None and known | set(added) != self._assigned and not events:
            events += self._gap(message, "what it took and what it owned don't make up its assignment", before=True)
        sure = known is not None and known | set(added) == self._assigned
        self._owned = self._assigned
        everything = Owned(group=self.group, generation=self._generation, member=self._name, resources=sorted_names(self._assigned))
        return [*events, *self._tell(message, taken), *([] if sure else self._tell(message, everything))]

    def revoked(self, message: Message, resources: Resources) -> list[Event]:
        """It gave up ``resources`` in order."""
        if not self.attributable:
            return []
        if self._owned and not resources and self._eager:
            return self.restarted(message, "a process that owned nothing took over the client.id", sure=False)
        return self._gives_up(message, Revoked(group=self.group, generation=self._generation, member=self._name, resources=resources))

    def settle(self, owned: Resources) -> None:
        """The round is over and left it with ``owned``, as its reader knows."""
        self._owned = frozenset(owned)
        self._phase = _Phase.SETTLED

    def lost(self, message: Message, resources: Resources) -> list[Event]:
        """It learnt that ``resources`` were no longer its own."""
        if not self.attributable:
            return []
        extra: dict[str, object] = {"poll_timeout": True} if self.poll_timeout else {}
        return self._gives_up(
            message, Lost(group=self.group, generation=self._generation, member=self._name, resources=resources, extra=extra)
        )

    def heartbeat_failed(self, message: Message, error: str, generation: int | None = None, member: str | None = None) -> list[Event]:
        """A heartbeat was refused. ``generation`` and ``member`` where the line names them."""
        if member is None and not self.attributable:
            return []
        if member is None:
            member, generation = self._name, self._generation if generation is None else generation
        return self._tell(message, Heartbeat(group=self.group, generation=generation, member=self._here(member), error=error))

    def commit_failed(self, message: Message, error: str, generation: int, member: str) -> list[Event]:
        """An OffsetCommit was refused; the line doesn't show which partitions."""
        return self._tell(message, Commit(group=self.group, generation=generation, member=self._here(member), error=error))

    def leaves(self, message: Message, reason: str | None, member: str | None = None) -> list[Event]:
        """It sends LeaveGroup."""
        if member is None:
            if not self.attributable:
                return []
            member = self._name
        member = self._here(member)
        if self._rivals:
            generation = self._rivals.pop(member or "", None)
            self._settle_rivals()
        else:
            generation = self._generation if member == self._name else None
            self.forgot_id()
        extra: dict[str, object] = {"poll_timeout": True} if self.poll_timeout else {}
        return self._tell(message, Leave(group=self.group, generation=generation, member=member, reason=reason, extra=extra))

    def closed(self, message: Message) -> list[Event]:
        """The client was closed in order."""
        if not self.attributable:
            return []
        closed = self._tell(message, Closed(group=self.group, generation=self._generation, member=self._name))
        self._owned = _NOTHING
        return [*closed, *self.restarted(message, "")]

    def restarted(self, message: Message, why: str, sure: bool = True) -> list[Event]:
        """Another process goes on under this client.id. ``sure``: it was seen to begin, so that its first join names no member."""
        if self._confused:
            return []
        gap = self._abandon(message, why)
        self._former, self._name = self._name or self._former, None
        self._generation = self._previous = None
        self._given = None
        self._fresh = sure
        self._owned = _NOTHING
        self._assigned = None
        self._eager = None
        self._phase = _Phase.IDLE
        return gap

    def out_of_scope(self, message: Message, reason: str) -> list[Event]:
        """The group follows a protocol without generations."""
        return self._tell(message, Gap(group=self.group, reason=reason))

    @property
    def _confused(self) -> bool:
        return self._mixed or bool(self._rivals)

    def _here(self, member: str | None) -> str | None:
        """How a member id that the line names is called here: an invented id stays until the incarnation ends."""
        if member and not self._confused and self._name is not None and self._name.startswith(self._inventions):
            return self._name
        return member

    def _unnamed(self, generation: int) -> str:
        if self._name is not None and not self._fresh and (self._generation is None or generation >= self._generation):
            return self._name
        self._incarnation += 1
        return f"{self._inventions}{self._incarnation}"

    def _is_rival(self, member: str, generation: int) -> bool:
        """Whether a join under ``member`` shows that two processes write under this client.id."""
        if self._given is not None and member != self._given and member == self._name:
            return True
        if self._name is None or member == self._name or member == self._given:
            return False
        return generation == self._generation or member == self._former

    def _enter(self, message: Message, generation: int, member: str) -> list[Event]:
        events: list[Event] = []
        if member != self._name:
            events = self._abandon(message, "the member id changed; what became of the partitions was not logged")
            if self._fresh or self._name is not None:
                self._owned = _NOTHING
            self._former, self._name = self._name or self._former, member
        if generation != self._generation:
            self._previous, self._generation = self._generation, generation
        self._fresh = False
        self._given = None
        return events

    def _gives_up(self, message: Message, event: Revoked | Lost) -> list[Event]:
        gone = frozenset(event.resources or ())
        if self._owned is not None and not gone <= self._owned:
            return self._lose_track(message, "it gave up partitions that it was not seen to take")
        if self._eager and not self._increment_told and self._owned is not None and gone != self._owned:
            return self._lose_track(message, "an eager member gave up a part of what it was seen to take")
        self._owned = None if self._owned is None else self._owned - gone
        return self._tell(message, event)

    def _abandon(self, message: Message, why: str) -> list[Event]:
        """The partitions that it still owned stay unaccounted for."""
        gap = self._gap(message, why) if self._owned and self._name is not None else []
        self._owned = _NOTHING
        return gap

    def _lose_track(self, message: Message, why: str) -> list[Event]:
        gap = self._gap(message, why)
        self._generation = self._previous = None
        self._owned = self._assigned = None
        return gap

    def _mix_named(self, message: Message, member: str) -> list[Event]:
        names = [name for name in dict.fromkeys((self._name, self._given, member)) if name]
        self._rivals = dict.fromkeys(names, self._generation)
        self._owned = None
        self._given = None
        return [gap for name in names for gap in self._gap(message, "two members log under one name", name)]

    def _mix(self, message: Message) -> list[Event]:
        """Two processes that log no member id can't be told apart any more."""
        self._mixed = True
        self._owned = None
        return self._gap(message, "two members log without saying which of them speaks")

    def _settle_rivals(self) -> None:
        """Once all but one left, lines without a member id speak of that one again."""
        if len(self._rivals) != 1:
            return
        ((self._name, self._generation),) = self._rivals.items()
        self._rivals = {}
        self._previous = None
        self._owned = None
        self._phase = _Phase.SETTLED

    def _gap(self, message: Message, why: str, name: str | None = None, *, before: bool = False) -> list[Event]:
        generation = self._previous if before and self._previous is not None else self._generation
        return self._tell(message, Gap(group=self.group, generation=generation, member=name or self._name, reason=why))

    def _tell(self, message: Message, event: Event) -> list[Event]:
        extra = dict(event.extra)
        if self.release is not None:
            extra["release"] = self.release
        if self.streams:
            extra["streams"] = True
        seen_by = "member" if event.default_observer == "coordinator" else None
        return [replace(event, ts=message.ts, src=message.src, client=self.client, instance=self.instance, seen_by=seen_by, extra=extra)]
