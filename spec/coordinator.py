"""The group coordinator's state as its own log lines and answers show it: a fold in the coordinator's order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from .events import NONE, Assignment, Event, Gap, GenerationStarted, Join, Joined, Load, Rebalance, Replace, Synced
from .rounds import Identities, removes

Phase = Literal["unknown", "preparing", "completing", "stable", "empty"]

NOT_THE_LOGS = frozenset({"FENCED_INSTANCE_ID", "INCONSISTENT_GROUP_PROTOCOL", "INVALID_SESSION_TIMEOUT", "UNKNOWN_MEMBER_ID"})
"""Errors of a JoinGroup that do not say that a record could not be stored."""


@dataclass(slots=True)
class Coordinator:
    """What is known of one group between two events. All but timeouts and the ``latest`` event is forgotten when a new epoch begins.

    ``members`` maps the ids known to be in the current generation to the event that shows it; ``complete`` says that
    all of them are known. ``removed``, ``replaced`` and ``fenced`` map ids to the event that ended them.
    """

    who: Identities
    epoch: int = 0
    generation: int | None = None
    since: Event | None = None
    phase: Phase = "unknown"
    loading: bool = False
    members: dict[str, Event] = field(default_factory=dict[str, Event])
    complete: bool = False
    removed: dict[str, Event] = field(default_factory=dict[str, Event])
    replaced: dict[str, Event] = field(default_factory=dict[str, Event])
    static: dict[str, str] = field(default_factory=dict[str, str])
    """Which member id each group.instance.id has now."""
    fenced: dict[str, Event] = field(default_factory=dict[str, Event])
    replacing: dict[str, Replace] = field(default_factory=dict[str, Replace])
    """Per group.instance.id: its replacement in a stable group, which is being stored until its JoinGroup is answered."""
    doubtful: set[str] = field(default_factory=set[str])
    """Ids that were replaced unless storing that failed, which was not captured: then they hold their slots again."""
    rebalance: Rebalance | None = None
    joins: dict[str, Join] = field(default_factory=dict[str, Join])
    last_seen: dict[str, Event] = field(default_factory=dict[str, Event])
    """Per slot: what restarted its session timer for sure. A JoinGroup or SyncGroup in a stable group need not."""
    session_timeout_ms: dict[str, int] = field(default_factory=dict[str, int])
    """Per slot: the shortest that it ever asked for; brokers before 3.3.2 ignore what a returning member asks for (KAFKA-14009)."""
    rebalance_timeout_ms: dict[str, int] = field(default_factory=dict[str, int])
    """Per slot: the longest that it ever asked for."""
    least_rebalance_timeout_ms: dict[str, int] = field(default_factory=dict[str, int])
    """Per slot: the shortest that it ever asked for."""
    latest: Event | None = None
    """The last event, of whatever epoch."""

    def enter(self, epoch: int) -> None:
        """Forget what an older epoch's coordinator knew."""
        if epoch > self.epoch:
            self._forget(epoch)

    def apply(self, event: Event) -> None:
        """Move to the state after ``event``."""
        self.enter(event.epoch)
        self.latest = event
        if removes(event):
            self._remove(event)
            return
        match event:
            case Gap() if not event.member:
                self._forget(event.epoch)
            case Load():
                self._forget(event.epoch)
                self.loading = True
                self.generation, self.since = event.generation, event
            case Rebalance() | GenerationStarted() | Assignment() if self._is_past(event.generation):
                pass
            case Rebalance():
                self.phase, self.rebalance = "preparing", event
                self.joins.clear()
                self._reach(event.generation, event)
            case GenerationStarted():
                self._reach(event.generation, event)
                self.phase = "empty" if event.members == () else "completing"
                self._list(event, event.members)
                self.last_seen.update({self.who.owner(m): event for m in event.members or ()})
                self.loading = False
            case Assignment():
                self._reach(event.generation, event)
                if self.phase != "preparing":  # a record stored late, when the next join phase has begun, brings nobody back
                    self._list(event, event.members)
                if not event.extra.get("estimated"):
                    self._settle("empty" if event.members == {} else "stable")
                for member, info in (event.members or {}).items():
                    self._session_timeout(self.who.owner(member), info.session_timeout_ms)
            case Join():
                self._join(event)
            case Joined(error="NONE"):
                if event.member:
                    self._reach(event.generation, event)
                    if event.member not in self.members:
                        self.members[event.member] = event
                        self.last_seen[self.who.owner(event.member)] = self.since or event
                    self._readmit((event.member,))
                    self._hold_slot(event.member, event)
                    self._granted(event)
            case Joined() if event.error not in NOT_THE_LOGS:
                self._take_back(event)
            case Synced(error="NONE"):
                self._reach(event.generation, event)
                self._granted(event)
                if event.generation == self.generation:
                    self._settle("stable")
            case Replace():
                self._replacing(event)
                if event.member:
                    self.members[event.member] = event
                    for ended in (self.replaced, self.removed, self.fenced):
                        ended.pop(event.member, None)
                    self._hold_slot(event.member, event)
                    self._seen(event)
                if event.old_member:
                    self.replaced[event.old_member] = event
                    self.members.pop(event.old_member, None)
            case _:
                error = getattr(event, "error", None)
                if error == "FENCED_INSTANCE_ID" and event.member:
                    self.fenced.setdefault(event.member, event)
                elif error == NONE:
                    self._seen(event)
                    self._granted(event)

    def _forget(self, epoch: int) -> None:
        kept = self.session_timeout_ms, self.rebalance_timeout_ms, self.least_rebalance_timeout_ms, self.latest
        fresh = Coordinator(self.who, epoch)
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))
        self.session_timeout_ms, self.rebalance_timeout_ms, self.least_rebalance_timeout_ms, self.latest = kept

    def _is_past(self, generation: int | None) -> bool:
        return generation is not None and self.generation is not None and generation < self.generation

    def _reach(self, generation: int | None, event: Event) -> None:
        if generation is None or generation == self.generation or self._is_past(generation):
            return
        self.generation, self.since = generation, event
        self._move_on()
        self.members, self.complete, self.loading = {}, False, False
        if not isinstance(event, Rebalance):
            self.phase = "completing"
            self.joins.clear()

    def _settle(self, phase: Phase) -> None:
        """The leader's assignment was accepted. The answer may be seen when the next join phase has begun already."""
        if self.phase != "preparing":
            self.phase = phase

    def _join(self, event: Join) -> None:
        key = event.member or (f"instance:{event.instance}" if event.instance else "")
        if not key:
            return
        self.joins[key] = event
        owner = self.who.owner(event.member) if event.member else key
        self._session_timeout(owner, event.session_timeout_ms)
        if event.rebalance_timeout_ms is not None:
            asked = event.rebalance_timeout_ms
            self.rebalance_timeout_ms[owner] = max(asked, self.rebalance_timeout_ms.get(owner, asked))
            self.least_rebalance_timeout_ms[owner] = min(asked, self.least_rebalance_timeout_ms.get(owner, asked))

    def _session_timeout(self, owner: str, asked: int | None) -> None:
        if asked is not None:
            self.session_timeout_ms[owner] = min(asked, self.session_timeout_ms.get(owner, asked))

    def _list(self, event: Event, members: Iterable[str] | None) -> None:
        if members is not None:
            self.members, self.complete = dict.fromkeys(members, event), True
            self._readmit(self.members)
            self.static = {i: m for m in self.members if (i := self.who.instances.get(m)) is not None}
            self.last_seen = {o: self.last_seen[o] for o in map(self.who.owner, self.members) if o in self.last_seen}

    def _replacing(self, event: Replace) -> None:
        """Only a stable group stores a replacement. A broker's log may tell of its undoing as of another replacement."""
        if not event.instance:
            return
        before = self._replaced(event.instance)
        undoes = before is not None and (before.member, before.old_member) == (event.old_member, event.member)
        if not undoes and self.phase in ("stable", "unknown") and event.old_member:
            self.replacing[event.instance] = event
            self.doubtful.add(event.old_member)

    def _replaced(self, instance: str) -> Replace | None:
        """The instance's replacement is stored or undone."""
        replaced = self.replacing.pop(instance, None)
        if replaced is not None and replaced.old_member:
            self.doubtful.discard(replaced.old_member)
        return replaced

    def _granted(self, event: Event) -> None:
        """The new id learns of itself when its replacement is stored, or when another generation starts."""
        instance = self.who.instances.get(event.member or "", "")
        replaced = self.replacing.get(instance)
        if replaced is not None and replaced.old_member and (replaced.member, replaced.generation) == (event.member, event.generation):
            self.doubtful.discard(replaced.old_member)
            if isinstance(event, Joined):
                self._replaced(instance)

    def _take_back(self, refused: Joined) -> None:
        """A replacement that could not be stored is undone: the JoinGroup is refused, and the old id holds the slot again."""
        if refused.instance is None:
            return
        self._unfence(refused.instance)
        cause = self.replacing.get(refused.instance)
        if cause is not None and cause.old_member and cause.member and refused.member in (None, "", cause.member):
            self._replaced(refused.instance)
            self.replaced.pop(cause.old_member, None)
            self.members.pop(cause.member, None)
            self.members[cause.old_member] = cause
            self.static[refused.instance] = cause.old_member

    def _move_on(self) -> None:
        """A generation starts before a replacement is stored: should that fail, nobody is told that the old id has the slot again."""
        for instance, replaced in self.replacing.items():
            self.replaced.pop(replaced.old_member or "", None)
            self._unfence(instance)
        self.replacing.clear()

    def _unfence(self, instance: str) -> None:
        for member in [m for m in self.fenced if self.who.instances.get(m) == instance]:
            del self.fenced[member]

    def _hold_slot(self, member: str, event: Event) -> None:
        """``member`` has its instance's slot from now on; whoever had it before is replaced."""
        instance = self.who.instances.get(member)
        if instance is None or member in self.replaced:
            return
        before = self.static.get(instance)
        self.static[instance] = member
        if before is not None and before != member:
            self.replaced[before] = event
            self.members.pop(before, None)

    def _readmit(self, members: Iterable[str]) -> None:
        for member in members:
            self.removed.pop(member, None)

    def _seen(self, event: Event) -> None:
        if event.member:
            self.last_seen[self.who.owner(event.member)] = event

    def _remove(self, event: Event) -> None:
        ids = [event.member] if event.member else [m for m in self.members if self.who.instances.get(m) == event.instance]
        for member in ids:
            self.removed[member] = event
            self.members.pop(member, None)
            instance = self.who.instances.get(member, "")
            if self.static.get(instance, member) == member:
                self.static.pop(instance, None)
                self._replaced(instance)
                self.last_seen.pop(self.who.owner(member), None)
