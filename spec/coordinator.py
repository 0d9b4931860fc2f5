"""The group coordinator's state as its own log lines and answers show it: a fold in the coordinator's order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from .events import NONE, Assignment, Event, Expire, GenerationStarted, Join, Joined, Leave, Load, Rebalance, Replace, Sync, Synced
from .rounds import Identities

Phase = Literal["unknown", "preparing", "completing", "stable", "empty"]


@dataclass(slots=True)
class Coordinator:
    """What is known of one group between two events. Everything is forgotten when a new epoch begins.

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
    rebalance: Rebalance | None = None
    joins: dict[str, Join] = field(default_factory=dict[str, Join])
    requested: dict[str, Join] = field(default_factory=dict[str, Join])
    last_seen: dict[str, Event] = field(default_factory=dict[str, Event])
    """Per slot: the last answered request of its member, which restarts its session timer."""
    session_timeout_ms: dict[str, int] = field(default_factory=dict[str, int])
    rebalance_timeout_ms: dict[str, int] = field(default_factory=dict[str, int])

    def apply(self, event: Event) -> None:
        """Move to the state after ``event``."""
        if event.epoch > self.epoch:
            self._forget(event.epoch)
        match event:
            case Load():
                self._forget(event.epoch)
                self.loading = True
                self.generation, self.since = event.generation, event
            case Rebalance():
                self.phase, self.rebalance = "preparing", event
                self.joins.clear()
                self._reach(event.generation, event)
            case GenerationStarted():
                self._reach(event.generation, event)
                self.phase = "empty" if event.members == () else "completing"
                if event.members is not None:
                    self.members, self.complete = dict.fromkeys(event.members, event), True
                    self._readmit(event.members)
                self.loading = False
                self._restart_sessions(event)
            case Assignment():
                self._reach(event.generation, event)
                self.phase = "stable"
                if event.members is not None:
                    self.members, self.complete = dict.fromkeys(event.members, event), True
                    for member, info in event.members.items():
                        if info.session_timeout_ms is not None:
                            self.session_timeout_ms[self.who.owner(member)] = info.session_timeout_ms
            case Join():
                self._join(event)
            case Joined(error="NONE"):
                if event.member:
                    self._reach(event.generation, event)
                    self.members.setdefault(event.member, event)
                    self._readmit((event.member,))
                    self._hold_slot(event.member, event)
                    self._seen(event)
            case Synced(error="NONE"):
                self._reach(event.generation, event)
                self.phase = "stable" if event.generation == self.generation else self.phase
                self._seen(event)
            case Sync():
                pass
            case Expire():
                self._remove(event)
            case Leave(error="NONE"):
                self._remove(event)
            case Replace():
                if event.member:
                    self.members[event.member] = event
                    for ended in (self.replaced, self.removed, self.fenced):
                        ended.pop(event.member, None)
                    self._hold_slot(event.member, event)
                if event.old_member:
                    self.replaced[event.old_member] = event
                    self.members.pop(event.old_member, None)
            case _:
                error = getattr(event, "error", None)
                if error == "FENCED_INSTANCE_ID" and event.member:
                    self.fenced.setdefault(event.member, event)
                elif error == NONE:
                    self._seen(event)

    def _forget(self, epoch: int) -> None:
        timeouts = self.session_timeout_ms, self.rebalance_timeout_ms
        fresh = Coordinator(self.who, epoch)
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))
        self.session_timeout_ms, self.rebalance_timeout_ms = timeouts

    def _reach(self, generation: int | None, event: Event) -> None:
        if generation is None or generation == self.generation or (self.generation is not None and generation < self.generation):
            return
        self.generation, self.since = generation, event
        self.members, self.complete, self.loading = {}, False, False
        if not isinstance(event, Rebalance):
            self.phase = "completing"
            self.joins.clear()

    def _join(self, event: Join) -> None:
        key = event.member or (f"instance:{event.instance}" if event.instance else "")
        if not key:
            return
        self.joins[key] = event
        self.requested[key] = event
        owner = self.who.owner(event.member) if event.member else key
        if event.session_timeout_ms is not None:
            self.session_timeout_ms[owner] = event.session_timeout_ms
        if event.rebalance_timeout_ms is not None:
            self.rebalance_timeout_ms[owner] = event.rebalance_timeout_ms
        if event.member:
            self.last_seen[owner] = event

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

    def _restart_sessions(self, event: GenerationStarted) -> None:
        for owner in {self.who.owner(m) for m in event.members or ()} | set(self.last_seen):
            self.last_seen[owner] = event

    def _remove(self, event: Event) -> None:
        ids = [event.member] if event.member else [m for m in self.members if self.who.instances.get(m) == event.instance]
        for member in ids:
            self.removed[member] = event
            self.members.pop(member, None)
