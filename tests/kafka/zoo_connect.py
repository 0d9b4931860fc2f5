"""Historic defects of Connect's leader, and what histories say of the releases that have them and of those that do not.

``python -m tests.kafka.zoo_connect`` measures and prints the table; it takes Maven, Java and half a minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain

from kipcheck.conformance.gate.connect import OPENINGS, replay
from kipcheck.conformance.gate.leaders import Java

from .jars import jars

NEWEST = "4.3.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """A defect of the leader.

    ``key`` is that of Kafka's issue, None if there is none that names it. ``affected`` is a release that has it, ``fixed`` the first one
    measured without it, None if the newest has it, too. ``rules`` are broken in the history ``opening`` in the one, and not in the other.
    """

    key: str | None
    what: str
    affected: str
    fixed: str | None
    opening: str
    rules: frozenset[str]


@dataclass(frozen=True, slots=True)
class Measured:
    """What the two releases broke in the history of a defect; None for a release that was not asked."""

    defect: Defect
    affected: frozenset[str]
    fixed: frozenset[str] | None

    @property
    def confirmed(self) -> bool:
        """Whether the affected release breaks all of the rules, and the fixed one none."""
        return self.defect.rules <= self.affected and not (self.fixed is not None and self.defect.rules & self.fixed)


ZOO = (
    Defect(
        key="KAFKA-9184",
        what="the delay goes on after the lost work has come back",
        affected="2.3.1",
        fixed="2.4.0",
        opening="work comes back while it waits",
        rules=frozenset({"delay-counts-down", "delay-has-reason"}),
    ),
    Defect(
        key="KAFKA-9848",
        what="work that a worker never got, as its SyncGroup failed, waits as if a worker had departed",
        affected="2.5.0",
        fixed="2.5.1",
        opening="a SyncGroup fails",
        rules=frozenset({"departure-before-delay"}),
    ),
    Defect(
        key="KAFKA-9841",
        what="what two workers run stays with both",
        affected="2.5.0",
        fixed="2.5.1",
        opening="a worker comes back with work that others have by now",
        rules=frozenset({"duplicates-resolved", "exclusive-assignment", "exclusive-ownership"}),
    ),
    Defect(
        key="KAFKA-10413",
        what="too little is revoked for two workers that arrive at once",
        affected="2.5.1",
        fixed="2.8.2",
        opening="two workers arrive at once",
        rules=frozenset({"connect-balanced"}),
    ),
    Defect(
        key="KAFKA-10413",
        what="the first idle worker gets all that was lost",
        affected="2.5.1",
        fixed="2.8.2",
        opening="a worker comes back, and an idle one is there, too",
        rules=frozenset({"returning-worker-restored"}),
    ),
    Defect(
        key=None,
        what="a worker that runs something twice goes on running what is deleted",
        affected="3.3.2",
        fixed="3.4.0",
        opening="a worker comes back with such work as some of it is deleted",
        rules=frozenset({"deleted-work-stopped"}),
    ),
    Defect(
        key="KAFKA-12495",
        what="nothing is revoked in the generation after a revocation, and never after it",
        affected="3.3.2",
        fixed="3.4.0",
        opening="a worker arrives amid the follow-up of another's arrival",
        rules=frozenset({"connect-balanced"}),
    ),
    Defect(
        key="KAFKA-13764",
        what="nothing is revoked for workers that have less than others, unless they have nothing",
        affected="3.3.2",
        fixed="3.4.0",
        opening="a connector gets fewer tasks",
        rules=frozenset({"connect-balanced"}),
    ),
    Defect(
        key="KAFKA-15693",
        what="with a maximal delay of 0 lost work is given to nobody",
        affected="3.5.1",
        fixed="3.5.2",
        opening="a worker departs where nothing waits",
        rules=frozenset({"work-placed"}),
    ),
    Defect(
        key=None,
        what="a full delay for nothing, where an idle worker departs after a revocation (apache/kafka pull request 14000)",
        affected=NEWEST,
        fixed=None,
        opening="an idle worker departs after a revocation",
        rules=frozenset({"delay-has-reason"}),
    ),
    Defect(
        key=None,
        what="work that is dealt when its delay is over and revoked at once counts as lost again, and waits another delay if a worker departs",
        affected=NEWEST,
        fixed=None,
        opening="a worker that got too much of what was lost departs at once",
        rules=frozenset({"waits-once"}),
    ),
    Defect(
        key=None,
        what="work deleted while the leader changes goes on running",
        affected=NEWEST,
        fixed=None,
        opening="a connector is deleted while the leader changes",
        rules=frozenset({"deleted-work-stopped"}),
    ),
)


def leader(version: str) -> Java:
    """The leader of this release; the caller closes it."""
    found = chain.from_iterable(jars(artifact, version) for artifact in ("connect-runtime", "connect-api", "kafka-clients"))
    return Java([*dict.fromkeys(map(str, found))])


def broken(version: str, openings: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """The rules that a release breaks, by history."""
    with closing(leader(version)) as subject:
        told = {opening: replay(OPENINGS[opening].replace(";", "\n"), subject) for opening in openings}
    return {opening: frozenset(finding.rule for finding in history.findings) for opening, history in told.items()}


def measured(zoo: Sequence[Defect] = ZOO) -> Iterator[Measured]:
    """Run each defect's history on both releases; every release starts once."""
    versions = dict.fromkeys(version for each in zoo for version in (each.affected, each.fixed) if version is not None)
    told = {v: broken(v, dict.fromkeys(each.opening for each in zoo if v in (each.affected, each.fixed))) for v in versions}
    for each in zoo:
        yield Measured(each, told[each.affected][each.opening], None if each.fixed is None else told[each.fixed][each.opening])


def table(rows: Iterable[Measured]) -> str:
    """The rows in Markdown."""
    lines = ["| issue | defect | found in | not in | rules |", "|---|---|---|---|---|"]
    for row in rows:
        each = row.defect
        shown = ", ".join(sorted(each.rules & row.affected)) or "**not found**"
        again = "" if row.fixed is None or not each.rules & row.fixed else f" (**found**: {', '.join(sorted(each.rules & row.fixed))})"
        lines.append(f"| {each.key or ''} | {each.what} | {each.affected} | {each.fixed or 'open'}{again} | {shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(measured()), end="")
