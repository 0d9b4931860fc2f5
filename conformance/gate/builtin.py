"""The reference assignors as subjects, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from ...model.assignors import ASSIGNORS, MUTATIONS, AssignorFailed, Claim
from ...model.messages import JoinedMember, Metadata
from ...spec.assignors.case import ABSENT, Answer, Case, Member, NoAnswer
from ...spec.assignors.kinds import KINDS, Kind
from ..failed import Failed, hint
from .mended import AS_KAFKA, mended, remembers
from .wire import Subscription, Undecodable, from_kafka_python, one_line, sent


@dataclass
class Builtin:
    """See `Subject`. ``assignor`` is Kafka's name of it, ``defects`` are names of `MUTATIONS`, or `AS_KAFKA`.

    Without defects it keeps all promises, which Kafka's own do not: see `mended`.
    """

    assignor: str
    defects: frozenset[str] = frozenset()
    seconds: float = 0.0
    renews: bool = True

    def __post_init__(self) -> None:
        _known(self.assignor, list(ASSIGNORS), "built-in assignor")
        for defect in self.defects:
            _known(defect, [AS_KAFKA, *(each.name for each in MUTATIONS)], "defect")
        self.name = f"builtin:{self.assignor}" + (f"!{','.join(sorted(self.defects))}" if self.defects else "")
        self.kind: Kind = next(kind for kind in KINDS if kind == self.assignor)

    def ask(self, cases: Sequence[Case]) -> Sequence[Answer]:
        return [self._answer(case) for case in cases]

    def _answer(self, case: Case) -> Answer:
        """As one leader answers ``case`` after those before it; a failed call leaves it what it was."""
        seen = ABSENT
        for earlier in case.before:
            _, seen = self._call(earlier, seen)
        return self._call(case, seen if remembers(self.defects) else ABSENT)[0]

    def _call(self, case: Case, seen: int) -> tuple[Answer, int]:
        """The answer, and the highest generation that the leader's assignor has read so far (see model.consumer.leader.lead)."""
        assignor = ASSIGNORS[self.assignor]
        started = perf_counter()
        try:
            case = mended(replace(case, members=tuple(_decoded(member, self.assignor) for member in case.members)), self.defects)
            members = [_joined(member, self.assignor) for member in case.members]
            shares = assignor.assign(members, case.topics, case.racks, seen=seen, defects=self.defects) if members else {}
        except (AssignorFailed, Undecodable, ValueError) as error:
            return NoAnswer("error", one_line(str(error))), seen
        finally:
            self.seconds += perf_counter() - started
        return shares, max([seen, *(assignor.claim(each.metadata).generation for each in members)])

    def close(self) -> None:
        """Nothing was started."""


def builtin(spec: str) -> Builtin:
    """The subject ``NAME`` or ``NAME!DEFECT,DEFECT``. Raises `Failed` for a name that there is not."""
    name, _, defects = spec.partition("!")
    return Builtin(name, frozenset(each.strip() for each in defects.split(",") if each.strip()))


def _known(name: str, names: Sequence[str], what: str) -> None:
    if name not in names:
        raise Failed(f"there is no {what} {name!r}; " + hint(name, names, f"there are {', '.join(names)}"))


def _decoded(member: Member, assignor: str) -> Member:
    """The member with what its raw metadata say, if it has any. Raises `Undecodable`."""
    if member.metadata is None:
        return member
    read = sent(member)
    claim = _previous(read) if assignor == "sticky" else Claim(read.owned, read.generation)
    return replace(
        member, subscribed=read.topics, owned=claim.partitions, generation=claim.generation, rack=read.rack, version=3, metadata=None
    )


def _joined(member: Member, assignor: str) -> JoinedMember:
    """A line of the leader's member list, where user data carry what each assignor puts there.

    CooperativeSticky: the generation of the last assignment, since 2.8.1 and 3.0.0. Sticky: the last assignment and its generation.
    """
    read = sent(member)
    metadata = Metadata(topics=read.topics, generation=read.generation, rack=read.rack)
    if assignor == "cooperative-sticky":
        metadata = replace(metadata, owned=read.owned, user_data=member.generation)
    elif assignor == "sticky" and (member.owned or member.generation != ABSENT):
        metadata = replace(metadata, user_data=Claim(member.owned, member.generation))
    return JoinedMember(member=member.id, instance=member.instance, metadata=metadata)


def _previous(read: Subscription) -> Claim:
    """What Sticky's user data tell; nothing where they can't be read. Source: StickyAssignor."""
    schema = from_kafka_python("kafka.coordinator.assignors.sticky.user_data", "StickyAssignorUserData")
    for version in (1, 0):
        try:
            told = schema.decode(read.user_data or b"", version=version)
        except Exception:
            continue
        partitions = tuple(f"{each.topic}-{number}" for each in told.previous_assignment for number in each.partitions)
        return Claim(partitions, told.generation if version else ABSENT)
    return Claim()
