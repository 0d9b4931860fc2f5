"""Drives the group coordinator alone: one group, a clock, a log, and a record of everything that was answered and seen."""

from __future__ import annotations

from dataclasses import replace

from kipcheck.model.choice import Choose, first
from kipcheck.model.coordinator import (
    NEW_4_0,
    Append,
    Group,
    GroupRecord,
    Release,
    Step,
    appended,
    delete,
    empty,
    fire,
    load,
    receive,
    timers,
    unload,
)
from kipcheck.model.messages import (
    Address,
    CommitRequest,
    HeartbeatRequest,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    Metadata,
    Request,
    Response,
    Share,
    SyncRequest,
    SyncResponse,
)
from kipcheck.spec import Finding, check
from kipcheck.spec.events import NONE, Event

EPOCH_US = 1_750_000_000_000_000


class Coordinator:
    """``log_answers`` is what the log says at once to every append, None: the appends wait for `log`.
    No two events are of one microsecond: equal events of one time would count as one that was captured twice.
    """

    def __init__(
        self,
        release: Release = NEW_4_0,
        *,
        choose: Choose = first,
        group: str = "g",
        log_answers: str | None = NONE,
    ) -> None:
        self.release = release
        self.choose = choose
        self.group: Group = empty(group)
        self.log_answers = log_answers
        self.clock_us = 0
        self.now = 0
        self.epoch = 0
        self.sent = 0
        self.replies: dict[int, Response] = {}
        self.events: list[Event] = []
        self.in_flight: list[Append] = []
        self.record: GroupRecord | None = None

    # What happens.

    def send(self, request: Request) -> int:
        """The correlation number of the request; its answer will be among ``replies``."""
        self.sent += 1
        self._take(receive(self.group, self.release, Address("p", self.sent), request, self.now, self.choose))
        return self.sent

    def ask(self, request: Request) -> Response | None:
        """The answer, None if the request waits."""
        return self.replies.get(self.send(request))

    def error(self, request: Request) -> str | None:
        answer = self.ask(request)
        return None if answer is None else answer.error

    def wait(self, ms: int) -> None:
        """Let time pass; timers fire when they are due."""
        until = self.now + ms
        while (due := timers(self.group)) and due[0].deadline <= until:
            self.now = max(self.now, due[0].deadline)
            self._take(fire(self.group, self.release, due[0], self.now, self.choose))
        self.now = until

    def log(self, error: str = NONE) -> None:
        """The log answers the oldest append."""
        self._answered(self.in_flight.pop(0), error)

    def fail_over(self, *, crash: bool = False) -> None:
        """Another coordinator takes over with the last record; appends in flight are lost."""
        if not crash:
            self._take(unload(self.group, self.release, self.now))
        self.in_flight.clear()
        self.epoch += 1
        self._take(load(self.group.id, self.release, self.record, self.now, ids_given=self.group.ids_given))

    def delete(self) -> None:
        self._take(delete(self.group, self.release, self.now))
        if self.group.state == "Dead":
            self.in_flight.clear()
            self.record = None
            self.epoch += 1
            self.group = empty(self.group.id, ids_given=self.group.ids_given)

    def _take(self, step: Step) -> None:
        self.group = step.group
        for reply in step.replies:
            assert reply.to.correlation not in self.replies, "answered twice"
            self.replies[reply.to.correlation] = reply.response
        for event in step.events:
            self.clock_us = max(self.clock_us + 1, EPOCH_US + self.now * 1000)
            self.events.append(replace(event, ts=self.clock_us, epoch=self.epoch))
        self.in_flight.extend(step.appends)
        while self.in_flight and self.log_answers is not None:
            self._answered(self.in_flight.pop(0), self.log_answers)

    def _answered(self, append: Append, error: str) -> None:
        if error == NONE:
            self.record = append.record
        self._take(appended(self.group, self.release, append, error, self.now, self.choose))

    # Requests.

    def join(self, request: JoinRequest) -> JoinResponse | None:
        answer = self.ask(request)
        assert answer is None or isinstance(answer, JoinResponse)
        return answer

    def enter(self, client: str, **fields: object) -> int:
        """JoinGroup of a client that knows no id, twice if it must: the number of the one that waits."""
        number = self.send(join_request(client, **fields))
        answer = self.replies.get(number)
        if isinstance(answer, JoinResponse) and answer.error == "MEMBER_ID_REQUIRED":
            number = self.send(join_request(client, **{**fields, "member": answer.member}))
        return number

    def stable(self, *clients: str, **fields: object) -> list[str]:
        """Make these clients the members of a stable group, ``i..`` being static; each gets one partition. Their ids."""
        numbers = [self.enter(c, instance=c if c.startswith("i") else None, **fields) for c in clients]
        self.settle()
        ids = [self.joined(n).member for n in numbers]
        self.sync_all()
        return ids

    def settle(self) -> None:
        """Wait until the join phase is over."""
        while self.group.state == "PreparingRebalance":
            self.wait(1_000)

    def joined(self, number: int) -> JoinResponse:
        answer = self.replies[number]
        assert isinstance(answer, JoinResponse)
        assert answer.error == NONE
        return answer

    def sync_all(self, shares: dict[str, Share] | None = None) -> dict[str, SyncResponse]:
        """Every member sends SyncGroup, the leader last; the leader gives everyone one partition."""
        group = self.group
        given = shares_of(group) if shares is None else shares
        order = sorted(group.members, key=lambda m: m.id == group.leader)
        numbers = {m.id: self.send(sync_request(group, m.id, given if m.id == group.leader else {})) for m in order}
        answers = {member: self.replies.get(number) for member, number in numbers.items()}
        return {member: answer for member, answer in answers.items() if isinstance(answer, SyncResponse)}

    def rejoin_all(self, *, but: tuple[str, ...] = (), **fields: object) -> list[int]:
        """Every member that doesn't wait sends JoinGroup with its id."""
        waiting = [m for m in self.group.members if m.join is None and m.id not in but]
        return [self.send(join_request(m.client, member=m.id, instance=m.instance, **fields)) for m in waiting]

    def heartbeat(self, member: str, *, instance: str | None = None, generation: int | None = None) -> str | None:
        return self.error(HeartbeatRequest(member=member, instance=instance, generation=self._generation(generation)))

    def commit(self, member: str, *, instance: str | None = None, generation: int | None = None) -> str | None:
        return self.error(CommitRequest(member=member, instance=instance, generation=self._generation(generation), partitions=("t-0",)))

    def leave(self, member: str = "", *, instance: str | None = None) -> str | None:
        return self.error(LeaveRequest(member=member, instance=instance, reason=""))

    def _generation(self, generation: int | None) -> int:
        return self.group.generation if generation is None else generation

    # What a checker says.

    def findings(self) -> list[Finding]:
        """Everything that the rules find in the trace so far, costs left out."""
        return [f for result in check(self.events) for f in result.findings if f.severity != "info"]

    def broken(self) -> set[str]:
        return {f.rule for f in self.findings()}

    def seen(self, kind: type[Event]) -> list[Event]:
        return [e for e in self.events if isinstance(e, kind)]


def join_request(
    client: str,
    *,
    member: str = "",
    instance: str | None = None,
    protocols: tuple[str, ...] = ("range",),
    topics: tuple[str, ...] = ("t",),
    session: int = 45_000,
    timeout: int = 60_000,
    version: int = 9,
) -> JoinRequest:
    return JoinRequest(
        member=member,
        instance=instance,
        client=client,
        protocols=tuple((name, Metadata(topics=topics)) for name in protocols),
        session_timeout_ms=session,
        rebalance_timeout_ms=timeout,
        version=version,
    )


def shares_of(group: Group) -> dict[str, Share]:
    return {m.id: Share((f"t-{index}",)) for index, m in enumerate(group.members)}


def sync_request(group: Group, member: str, shares: dict[str, Share] | None = None, **fields: object) -> SyncRequest:
    known = group.member(member)
    request = SyncRequest(
        member=member,
        generation=group.generation,
        instance=None if known is None else known.instance,
        protocol=group.protocol,
        shares=tuple((shares or {}).items()),
    )
    return replace(request, **fields)
