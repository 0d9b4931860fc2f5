"""Small traces, told event by event: ``Trace().join("c1").generation(1, ["c1"]).events()``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from kipcheck.spec import RULES, Finding, GroupResult, Settings, check
from kipcheck.spec.events import Event, Source
from kipcheck.spec.trace import decode

Row = dict[str, object]
Shares = Mapping[str, Sequence[str]]
COOPERATIVE = "cooperative-sticky"
STEP_S = 0.05
"""How far the clock moves on from one event to the next."""


def p(*numbers: int) -> list[str]:
    """Partitions of the topic orders."""
    return [f"orders-{number}" for number in numbers]


class Trace:
    """Rows of trace version 1 in the order in which they are told. Member ids such as ``i1-aa`` are instance i1's."""

    def __init__(self, *, clock: bool = True, protocol: str = COOPERATIVE, file: str = "trace.jsonl", epoch: int = 0) -> None:
        self.rows: list[Row] = []
        self.now = 0.0
        self.clock = clock
        self.protocol = protocol
        self.file = file
        self.coordinator_epoch = epoch

    def at(self, seconds: float) -> Self:
        """Move the clock there."""
        self.now = seconds
        return self

    def failover(self) -> Self:
        """What follows is seen by another coordinator."""
        self.coordinator_epoch += 1
        return self

    def add(self, kind: str, generation: int | None = None, member: str | None = None, **fields: object) -> Self:
        """Any event. A field that is None is left out; a member id with a dash names its instance."""
        row: Row = {
            "kind": kind,
            "group": "orders",
            "ts": _clock(self.now) if self.clock else None,
            "generation": generation,
            "member": member,
        }
        row["epoch"] = self.coordinator_epoch
        row["instance"] = member.partition("-")[0] if member and "-" in member else None
        row |= fields
        self.rows.append({name: value for name, value in row.items() if value is not None})
        self.now += STEP_S
        return self

    def join(self, member: str, owned: Sequence[str] | None = (), generation: int = -1, **fields: object) -> Self:
        """A JoinGroup request with everything in it."""
        usual: Row = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 60_000, "protocols": [self.protocol], "subscribed": ["orders"]}
        claim = {} if owned is None else {"owned": list(owned), "owned_generation": generation}
        return self.add("join", None, member, **(usual | claim | fields))

    def joined(self, generation: int, *members: str, leader: str | None = None, error: str = "NONE", **fields: object) -> Self:
        """The answers to their JoinGroup."""
        for member in members:
            self.add("joined", generation, member, leader=leader or members[0], protocol=self.protocol, error=error, **fields)
        return self

    def generation(self, number: int, members: Sequence[str] | None, **fields: object) -> Self:
        """The join phase is over."""
        listed = None if members is None else list(members)
        return self.add("generation", number, None, members=listed, protocol=self.protocol if members else None, **fields)

    def sync(self, generation: int, leader: str, shares: Shares, **fields: object) -> Self:
        """The leader's SyncGroup."""
        return self.add("sync", generation, leader, assignment={m: list(r) for m, r in shares.items()}, **fields)

    def synced(self, generation: int, member: str, resources: Sequence[str] | None, error: str = "NONE", **fields: object) -> Self:
        """An answer to SyncGroup."""
        return self.add("synced", generation, member, resources=None if resources is None else list(resources), error=error, **fields)

    def stored(self, generation: int, shares: Shares, **fields: object) -> Self:
        """The coordinator's record of the generation."""
        members = {m: {"instance": m.partition("-")[0], "session_timeout_ms": 45_000} if "-" in m else {} for m in shares}
        usual: Row = {"assignment": {m: list(r) for m, r in shares.items()}, "members": members, "protocol": self.protocol}
        return self.add("assignment", generation, None, **(usual | fields))

    def round(self, generation: int, shares: Shares, owned: Shares | None = None) -> Self:
        """A whole generation as the coordinator sees it: everybody joins claiming what ``owned`` says, and is given its share."""
        for member in shares:
            mine = (owned or {}).get(member, ())
            self.join(member, mine, generation - 1 if mine else -1)
        self.generation(generation, list(shares)).joined(generation, *shares)
        self.sync(generation, next(iter(shares)), shares)
        for member, resources in shares.items():
            self.synced(generation, member, resources)
        return self

    def rebalance(self, generation: int | None, reason: str | None = "Adding new member c9") -> Self:
        return self.add("rebalance", generation, None, reason=reason)

    def heartbeat(self, generation: int | None, member: str, error: str = "NONE", **fields: object) -> Self:
        return self.add("heartbeat", generation, member, error=error, **fields)

    def commit(self, generation: int | None, member: str | None, *partitions: int, error: str = "NONE", **fields: object) -> Self:
        return self.add("commit", generation, member, resources=p(*partitions), error=error, **fields)

    def leave(self, member: str | None, error: str = "NONE", **fields: object) -> Self:
        return self.add("leave", None, member, error=error, **fields)

    def expire(self, member: str, reason: str = "session", **fields: object) -> Self:
        return self.add("expire", fields.pop("generation", None), member, reason=reason, **fields)  # type: ignore[arg-type]

    def replace(self, generation: int | None, old: str, new: str) -> Self:
        return self.add("replace", generation, new, old_member=old)

    def own(self, kind: str, generation: int | None, member: str, *partitions: int, **fields: object) -> Self:
        """A member's own word: assigned, revoked, lost or owned."""
        return self.add(kind, generation, member, resources=p(*partitions), **fields)

    def events(self) -> list[Event]:
        return [decode(row, Source(self.file, number, json.dumps(row))) for number, row in enumerate(self.rows, 1)]


def _clock(seconds: float) -> str:
    minute, second = divmod(seconds, 60)
    hour, minute = divmod(int(minute), 60)
    return f"2026-03-02T{9 + hour:02d}:{minute:02d}:{second:09.6f}Z"


def result(trace: Trace | Iterable[Event], settings: Settings | None = None) -> GroupResult:
    (group,) = check(trace.events() if isinstance(trace, Trace) else list(trace), settings)
    return group


def promises(trace: Trace | Iterable[Event], settings: Settings | None = None) -> list[Finding]:
    """The findings of broken promises."""
    return [f for f in result(trace, settings).findings if RULES[f.rule].kip != "cost"]


def broken(trace: Trace | Iterable[Event], settings: Settings | None = None) -> list[str]:
    """The rules that a trace breaks, each as often as it does."""
    return sorted(f.rule for f in promises(trace, settings))


def checked(rule: str, trace: Trace | Iterable[Event]) -> int:
    return result(trace).rules[rule].checked


def why(rule: str, trace: Trace | Iterable[Event]) -> str:
    """Why the rule could not be checked (more often)."""
    return result(trace).rules[rule].why or ""
