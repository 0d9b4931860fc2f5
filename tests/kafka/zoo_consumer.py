"""Historic defects of Kafka's consumer assignors, and what the gate says of the releases that have them.

``python -m tests.kafka.zoo_consumer`` runs the gate with default settings over the jars of Maven Central and prints the table; it takes Maven,
Java and five minutes. What a release answers to the smallest input of most of them is in test_gate_jvm.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from kipcheck.conformance.gate.adapters import subject
from kipcheck.conformance.gate.growth import group
from kipcheck.conformance.gate.run import How, gate
from kipcheck.conformance.report import Report
from kipcheck.spec.assignors.case import Case, Member
from kipcheck.spec.assignors.kinds import Kind

from .jars import classpath

CLASSES: dict[Kind, str] = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A finding that shows a defect: its rule, the class of inputs that it is found with, and what its message holds."""

    rule: str
    group: str
    says: str = ""

    def in_(self, report: Report) -> bool:
        return any((finding.rule, finding.group) == (self.rule, self.group) and self.says in finding.message for finding in report.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """A defect of the assignor of this ``kind``.

    ``key`` is that of Kafka's issue, None if there is none that names it. ``affected`` are releases that have it, the oldest first, not all of
    them; ``fixed`` is the first without it after them, None if the newest has it too. Each of ``shown`` is found in the affected
    releases, and none of them in the fixed one.
    """

    key: str | None
    what: str
    kind: Kind
    affected: tuple[str, ...]
    fixed: str | None
    shown: tuple[Shown, ...]


ANSWERS, SUBSCRIBED, EXCLUSIVE = "assignor-answers", "assigns-only-subscribed", "assigns-exclusively"
WITHHOLDS, IDEMPOTENT, INDEPENDENT = "cooperative-withholds", "idempotent", "history-independent"

ZOO = (
    Defect(
        key="KAFKA-7026",
        what="a member that comes back with what it was given long ago gets it, beside its new owner",
        kind="sticky",
        affected=("2.2.2",),
        fixed="2.3.0",
        shown=(Shown(EXCLUSIVE, "double claim"), Shown(EXCLUSIVE, "stale generation"), Shown("exclusive-ownership", "history")),
    ),
    Defect(
        key="KAFKA-7962",
        what="a subscribed topic that was deleted ends every rebalance with an exception",
        kind="sticky",
        affected=("2.2.2",),
        fixed="2.3.0",
        shown=(Shown(ANSWERS, "deleted topic", "NullPointerException"),),
    ),
    Defect(
        key="KAFKA-12984",
        what="two members that claim the same partition both get it, or neither gets anything",
        kind="cooperative-sticky",
        affected=("2.5.1", "2.8.0"),
        fixed="2.8.1",
        shown=(
            Shown(EXCLUSIVE, "double claim"),
            Shown(EXCLUSIVE, "stale generation"),
            Shown(ANSWERS, "double claim", "all consumers are at maximum capacity"),
            Shown("exclusive-ownership", "history"),
        ),
    ),
    Defect(
        key="KAFKA-12984",
        what="two members that claim the same partition both get it",
        kind="sticky",
        affected=("2.8.0",),
        fixed="2.8.1",
        shown=(Shown(EXCLUSIVE, "double claim"), Shown(ANSWERS, "double claim", "all consumers are at maximum capacity")),
    ),
    Defect(
        key=None,
        what="the first look at the members' user data leaves nothing to read: members whose subscriptions differ swap what they had",
        kind="sticky",
        affected=("2.8.0", "2.8.2"),
        fixed="3.0.0",
        shown=(Shown(IDEMPOTENT, "clean"), Shown("sticky", "clean")),
    ),
    Defect(
        key="KAFKA-13406",
        what="the leader's check takes a claim that the assignor ignores for good: the group rebalances for ever",
        kind="cooperative-sticky",
        affected=("2.8.1",),
        fixed="2.8.2",
        shown=(Shown(ANSWERS, "stale generation", "violates its requirements"),),
    ),
    Defect(
        key="KAFKA-13406",
        what="the leader's check takes a claim that the assignor ignores for good: the group rebalances for ever",
        kind="cooperative-sticky",
        affected=("3.0.0",),
        fixed="3.0.1",
        shown=(Shown(ANSWERS, "stale generation", "violates its requirements"),),
    ),
    Defect(
        key="KAFKA-14639",
        what="a partition goes to a new member while the one that missed a generation still has it",
        kind="cooperative-sticky",
        affected=("2.8.2", "3.0.1", "3.4.0"),
        fixed="3.4.1",
        shown=(Shown(WITHHOLDS, "double claim"), Shown(WITHHOLDS, "history")),
    ),
    Defect(
        key=None,
        what="a leader remembers the highest generation it ever saw, and ignores the claims of a group that begins anew",
        kind="cooperative-sticky",
        affected=("3.0.1", "3.4.0"),
        fixed="3.4.1",
        shown=(Shown(WITHHOLDS, "leader reused"), Shown("sticky", "leader reused")),
    ),
    Defect(
        key=None,
        what="a leader remembers the highest generation it ever saw, and ignores the claims of a group that begins anew",
        kind="sticky",
        affected=("3.0.0", "3.4.0"),
        fixed="3.4.1",
        shown=(Shown("sticky", "leader reused"),),
    ),
    Defect(
        key=None,
        what="of three members that claim a partition in three generations two get it",
        kind="cooperative-sticky",
        affected=("3.4.1", "3.5.1"),
        fixed="3.5.2",
        shown=(
            Shown(EXCLUSIVE, "stale generation"),
            Shown(ANSWERS, "stale generation", "No more unfilled consumers to be assigned"),
        ),
    ),
    Defect(
        key="KAFKA-15170",
        what="what moves to a better rack moves at once",
        kind="cooperative-sticky",
        affected=("3.5.1", "3.5.2", "3.7.0"),
        fixed="3.7.1",
        shown=(Shown(WITHHOLDS, "racks"), Shown("revoke-before-reassign", "history")),
    ),
    Defect(
        key="KAFKA-15170",
        what="racks make the assignor miscount who may have one more, and throw",
        kind="sticky",
        affected=("3.5.1", "3.5.2", "3.7.0"),
        fixed="3.7.1",
        shown=(Shown(ANSWERS, "racks", "and no more partitions to be assigned"),),
    ),
    Defect(
        key=None,
        what="claims of partitions that are gone since the topic was recreated with fewer are kept, and make others go out twice",
        kind="cooperative-sticky",
        affected=("3.0.1", "4.4.0"),
        fixed=None,
        shown=(
            Shown(SUBSCRIBED, "shrunk topic", "there is no such partition"),
            Shown(EXCLUSIVE, "shrunk topic"),
            Shown(ANSWERS, "shrunk topic", "No more unfilled consumers to be assigned"),
        ),
    ),
    Defect(
        key=None,
        what="claims of partitions that are gone since the topic was recreated with fewer are kept, and make others go out twice",
        kind="sticky",
        affected=("3.0.0", "4.4.0"),
        fixed=None,
        shown=(
            Shown(SUBSCRIBED, "shrunk topic", "there is no such partition"),
            Shown(EXCLUSIVE, "shrunk topic"),
            Shown(ANSWERS, "shrunk topic", "No more unfilled consumers to be assigned"),
        ),
    ),
    Defect(
        key=None,
        what="with unequal subscriptions an old claim is as good as the owner's: the partition is not withheld",
        kind="cooperative-sticky",
        affected=("3.4.1", "4.4.0"),
        fixed=None,
        shown=(Shown(WITHHOLDS, "stale generation"),),
    ),
    Defect(
        key=None,
        what="with unequal subscriptions a leader that saw a later generation before takes other hints of who had what",
        kind="cooperative-sticky",
        affected=("3.4.1", "4.4.0"),
        fixed=None,
        shown=(Shown(INDEPENDENT, "leader reused"),),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """A defect that only time shows: the affected release takes more than `TIMES_AS_LONG` as the fixed one for the same ``case``."""

    key: str
    what: str
    kind: Kind
    affected: str
    fixed: str
    case: Case


WAITS_S = 60.0
TIMES_AS_LONG = 5.0
"""Measured were 50 (KAFKA-9987) and 20 (KAFKA-15106)."""


def _two_camps(topics: int, partitions: int, members: int) -> Case:
    """One member in four subscribes the first half of the topics, the others the second half."""
    names = tuple(f"t{number}" for number in range(topics))
    return Case(
        id="two camps",
        topics=dict.fromkeys(names, partitions),
        members=tuple(
            Member(id=f"c{number}", subscribed=names[topics // 2 :] if number % 4 else names[: topics // 2]) for number in range(members)
        ),
    )


SLOW = (
    Slow(
        key="KAFKA-9987",
        what="every member is compared with every other, although all subscribe the same",
        kind="cooperative-sticky",
        affected="2.4.1",
        fixed="2.5.1",
        case=group(3_000),
    ),
    Slow(
        key="KAFKA-15106",
        what="what can't be made more level is tried again and again",
        kind="sticky",
        affected="3.5.1",
        fixed="3.5.2",
        case=_two_camps(80, 100, 300),
    ),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of the table: what was ``found`` in the affected releases, what was still found in the fixed one, and whether that is as expected."""

    defect: Defect | Slow
    found: tuple[str, ...]
    still: tuple[str, ...]
    confirmed: bool


def told(version: str, kind: Kind) -> Report:
    """What the gate says of a release, with default settings."""
    return gate(f"jvm:{CLASSES[kind]}", how=How(classpath=[classpath("kafka-clients", version)]))


def seconds(slow: Slow, version: str) -> float:
    """What a release takes for the case, warmed up; `WAITS_S` if it takes longer."""
    with closing(subject(f"jvm:{CLASSES[slow.kind]}", classpath=[classpath("kafka-clients", version)], timeout=WAITS_S)) as leader:
        leader.ask([group(100)])
        start = leader.seconds
        leader.ask([slow.case])
        return min(leader.seconds - start, WAITS_S)


def measured(zoo: Sequence[Defect] = ZOO, slow: Sequence[Slow] = SLOW) -> Iterator[Measured]:
    """Run the gate over every release that is needed, each once, and then what takes long."""
    wanted = dict.fromkeys((version, each.kind) for each in zoo for version in (*each.affected, each.fixed) if version)
    reports = {(version, kind): told(version, kind) for version, kind in wanted}
    for each in zoo:
        found = [shown for shown in each.shown if all(shown.in_(reports[version, each.kind]) for version in each.affected)]
        still = [shown for shown in each.shown if each.fixed and shown.in_(reports[each.fixed, each.kind])]
        rules = (tuple(dict.fromkeys(shown.rule for shown in some)) for some in (found, still))
        yield Measured(each, *rules, confirmed=len(found) == len(each.shown) and not still)
    for each in slow:
        affected, fixed = seconds(each, each.affected), seconds(each, each.fixed)
        confirmed = affected > TIMES_AS_LONG * fixed
        yield Measured(each, (f"{affected / fixed:.0f} times as long",) if confirmed else (), (), confirmed)


def table(rows: Iterable[Measured]) -> str:
    """The rows in Markdown."""
    lines = ["| issue | assignor | defect | found in | not in | shown by |", "|---|---|---|---|---|---|"]
    for row in rows:
        each = row.defect
        affected = each.affected if isinstance(each, Slow) else ", ".join(each.affected)
        fixed = (each.fixed or "open") + (f" (**found**: {', '.join(row.still)})" if row.still else "")
        shown = ", ".join(row.found) if row.confirmed else f"**not confirmed** {', '.join(row.found)}"
        lines.append(f"| {each.key or ''} | {each.kind} | {each.what} | {affected} | {fixed} | {shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(measured()), end="")
