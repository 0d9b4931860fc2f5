"""The scenarios. To add one, write one function here: its name is the scenario's, its docstring tells what happens."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from .proxy import Api, Incident
from .stage import Stage

RANGE: Final = "org.apache.kafka.clients.consumer.RangeAssignor"
COOPERATIVE: Final = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
CLIENTS: Final = ("c1", "c2", "c3")
WORKERS: Final = ("w1", "w2", "w3")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A script, and what its trace must show, in sentences."""

    name: str
    summary: str
    protocol: str
    expect: tuple[str, ...]
    play: Callable[[Stage], None]
    proxied: tuple[str, ...] = ()
    """The clients that reach the broker through a proxy."""

    def group(self, release: str) -> str:
        """The group that it is about; each release has its own, so that recordings can be validated together."""
        return f"{'etl' if self.protocol == 'connect' else 'orders'}-{self.name}-{release}"


SCENARIOS: Final[dict[str, Scenario]] = {}


def scenario(protocol: str, *expect: str, proxied: tuple[str, ...] = ()) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Registers the decorated function as a scenario of this protocol type."""

    def register(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
        name = play.__name__.replace("_", "-")
        SCENARIOS[name] = Scenario(name, (play.__doc__ or "").strip(), protocol, expect, play, proxied)
        return play

    return register


def _assignors(*names: str) -> dict[str, str]:
    return {"partition.assignment.strategy": ",".join(names)}


def _static(name: str) -> dict[str, str]:
    return {"group.instance.id": f"instance-{name}", **_assignors(COOPERATIVE)}


def _gather(stage: Stage, extra: Callable[[str], dict[str, str]]) -> None:
    """Starts c1, c2 and c3 one after another and waits until they share the topic orders."""
    stage.topic("orders", 6)
    for present in (CLIENTS[:1], CLIENTS[:2], CLIENTS):
        stage.join(present[-1], "orders", extra=extra(present[-1]))
        stage.settle(*present)
    stage.let_work(2)


def _scale(stage: Stage, extra: dict[str, str]) -> None:
    _gather(stage, lambda _: extra)
    stage.leave("c2")
    stage.settle("c1", "c3")
    stage.leave("c1")
    stage.settle("c3")
    stage.let_work(1)


@scenario(
    "consumer",
    "protocol cooperative-sticky in every generation",
    "a partition that moves is first revoked by its old owner, and given away one generation later",
    "no partition is lost",
)
def cooperative_scale(stage: Stage) -> None:
    """Three cooperative consumers join one after another, then two leave."""
    _scale(stage, _assignors(COOPERATIVE))


@scenario("consumer", "protocol range in every generation", "every member revokes all that it has before it joins again")
def range_scale(stage: Stage) -> None:
    """Three eager consumers join one after another, then two leave."""
    _scale(stage, _assignors(RANGE))


@scenario(
    "consumer",
    "no rebalance after the third member has settled",
    "each member comes back under a new member id and keeps its partitions",
    "no LeaveGroup request",
)
def static_rolling_restart(stage: Stage) -> None:
    """Three static members are closed and started again, one after another, each within its session timeout."""
    _gather(stage, lambda name: _static(name) | {"session.timeout.ms": "10000"})
    for name in CLIENTS:
        stage.leave(name)
        stage.join(name, "orders", extra=_static(name) | {"session.timeout.ms": "10000"})
        stage.settle(*CLIENTS)
    stage.let_work(1)


@scenario(
    "consumer",
    "no rebalance until the session of c2 has expired, one after that",
    "c2 comes back as a new member",
)
def static_away_too_long(stage: Stage) -> None:
    """A static member is closed and stays away until its session has expired; later it comes back."""
    _gather(stage, _static)
    stage.leave("c2")
    stage.settle("c1", "c3")
    stage.join("c2", "orders", extra=_static("c2"))
    stage.settle(*CLIENTS)
    stage.let_work(1)


@scenario(
    "consumer",
    "no rebalance after the third member has settled",
    "the twin takes over the partitions of c2 under a new member id",
    "c2 is fenced: nothing is granted to its member id any more",
)
def static_duplicate(stage: Stage) -> None:
    """A second process starts with the group.instance.id of c2 while c2 still runs."""
    _gather(stage, _static)
    stage.join("c2-twin", "orders", extra=_static("c2"))
    stage.wait_for_failure("c2", "FencedInstanceIdException")
    stage.settle("c1", "c2-twin", "c3")
    stage.let_work(2)


@scenario(
    "consumer",
    "the rebalances that c3 causes wait for c2 until the rebalance timeout is over, and keep c2 as a member",
    "c2 is removed one rebalance timeout after a join phase that it missed, long before its session could expire",
    "c2 comes back as a new member",
)
def static_absent_in_rebalance(stage: Stage) -> None:
    """A static member is killed, and while it is away, but within its session timeout, another one joins; later it comes back."""
    patient = {"session.timeout.ms": "45000", "max.poll.interval.ms": "6000"}
    stage.topic("orders", 6)
    for present in (CLIENTS[:1], CLIENTS[:2]):
        stage.join(present[-1], "orders", extra=_static(present[-1]) | patient)
        stage.settle(*present)
    stage.let_work(2)
    stage.kill("c2")
    stage.join("c3", "orders", extra=_static("c3") | patient)
    stage.settle("c1", "c3")
    stage.join("c2", "orders", extra=_static("c2") | patient)
    stage.settle(*CLIENTS)
    stage.let_work(1)


def _give_to_c1_while_c2_is_late(stage: Stage, *topics: str, **owned: tuple[str, ...]) -> Incident:
    """c2 owns all of orders; its next JoinGroup, returned here, is held up until c1 has joined without it and has its share."""
    patient = {"session.timeout.ms": "45000", "max.poll.interval.ms": "6000", "metadata.max.age.ms": "1000"}
    stage.join("c2", "orders", extra=_static("c2") | patient)
    stage.settle("c2")
    late = stage.hold("c2", Api.JOIN_GROUP)
    stage.join("c1", *topics, extra=_static("c1") | patient)
    stage.commit_when_revoked("c1")
    stage.wait_for(late)
    stage.settle_as(**owned)
    return late


def _let_both_work(stage: Stage, unheard: Incident) -> None:
    """c2 owns a partition of c1, which has not heard of it; when it does, c2 is busy with what it has polled before."""
    stage.wait_for(unheard)
    stage.let_work(3)
    stage.stop_polling("c2", 3)
    stage.let_work(1.5)
    stage.release(unheard)


@scenario(
    "consumer",
    "in generation 2 orders-0 is given to c1, because c2 is a generation late",
    "in generation 4 it is given to c2 and taken from c1, although c1 has claimed it with generation 2",
    "both own it and commit it in generation 4; what c2 commits after c1 is less",
    proxied=("c1", "c2"),
)
def static_late_claim(stage: Stage) -> None:
    """The JoinGroup of a static member is a generation late; then connections break, and it joins again with what it had before."""
    stage.topic("orders", 1)
    late = _give_to_c1_while_c2_is_late(stage, "orders", c1=("orders-0",), c2=("orders-0",))
    unanswered = stage.cut("c1", Api.JOIN_GROUP, "answer")
    again = stage.hold("c1", Api.JOIN_GROUP)
    unheard = stage.hold("c1", Api.SYNC_GROUP, "answer")
    unsynced = stage.cut("c2", Api.SYNC_GROUP)
    stage.release(late)
    stage.wait_for(unanswered)
    stage.wait_for(unsynced)
    stage.wait_for_rebalance(3)
    stage.release(again)
    _let_both_work(stage, unheard)
    stage.settle_as(c1=(), c2=("orders-0",))
    stage.let_work(1)


@scenario(
    "consumer",
    "in generation 2 orders-1 is given to c1, because c2 is a generation late",
    "in generation 3 it is given to c2 and taken from c1, although the claim of c1 is newer",
    "both own it and commit it in generation 3; what c2 commits after c1 is less",
    proxied=("c1", "c2"),
)
def unequal_subscriptions_claim(stage: Stage) -> None:
    """The JoinGroup of a static member is a generation late, while a topic grows to which only the other member subscribes."""
    stage.topic("orders", 2)
    stage.topic("payments", 1)
    late = _give_to_c1_while_c2_is_late(stage, "orders", "payments", c1=("orders-1", "payments-0"), c2=("orders-0", "orders-1"))
    noticed = stage.hold("c1", Api.JOIN_GROUP)
    unheard = stage.hold("c1", Api.SYNC_GROUP, "answer")
    stage.grow("payments", 3)
    stage.wait_for(noticed)
    stage.release(noticed)
    stage.release(late)
    _let_both_work(stage, unheard)
    stage.settle("c1", "c2")
    stage.let_work(1)


@scenario(
    "consumer",
    "the group is loaded again with the members, the generation and the assignment that it had",
    "every partition stays with its owner until c2 leaves",
    "no partition is lost",
)
def coordinator_restart(stage: Stage) -> None:
    """The only broker is stopped and started again under three cooperative consumers; then one leaves."""
    _gather(stage, lambda _: _assignors(COOPERATIVE))
    stage.restart_broker()
    stage.let_work(5)
    stage.leave("c2")
    stage.settle("c1", "c3")
    stage.let_work(1)


@scenario("consumer", "c2 is removed when its session has expired, not before", "its partitions go to c1 and c3 in one rebalance")
def kill_minus_nine(stage: Stage) -> None:
    """A member is killed, with no chance to say goodbye."""
    _gather(stage, lambda _: _assignors(COOPERATIVE))
    stage.kill("c2")
    stage.settle("c1", "c3")
    stage.let_work(1)


@scenario(
    "consumer",
    "c2 leaves by itself when its poll interval is over, while the application still believes that it owns its partitions",
    "c2 loses its partitions when it polls again, and joins as a new member",
)
def poll_timeout(stage: Stage) -> None:
    """The application of c2 stops polling for longer than max.poll.interval.ms, then goes on."""
    _gather(stage, lambda _: _assignors(COOPERATIVE) | {"max.poll.interval.ms": "5000"})
    stage.stop_polling("c2", 15)
    stage.settle("c1", "c3")
    stage.settle(*CLIENTS)
    stage.let_work(1)


@scenario("consumer", "one more rebalance, started by the leader, hands out the three new partitions", "no partition is revoked in it")
def partitions_added(stage: Stage) -> None:
    """The topic grows from six to nine partitions under three cooperative consumers."""
    _gather(stage, lambda _: _assignors(COOPERATIVE) | {"metadata.max.age.ms": "2000"})
    stage.grow("orders", 9)
    stage.settle(*CLIENTS)
    stage.let_work(1)


@scenario("consumer", "every member owns partitions of topics that it subscribes to, and of no others")
def subscription_change(stage: Stage) -> None:
    """Two cooperative consumers of one topic take on a second one, then c2 drops the first."""
    stage.topic("orders", 6)
    stage.topic("payments", 3)
    for present in (CLIENTS[:1], CLIENTS[:2]):
        stage.join(present[-1], "orders", extra=_assignors(COOPERATIVE))
        stage.settle(*present)
    for name, topics in (("c2", ("orders", "payments")), ("c1", ("orders", "payments")), ("c2", ("payments",))):
        stage.subscribe(name, *topics)
        stage.settle("c1", "c2")
    stage.let_work(1)


@scenario(
    "consumer",
    "protocol range until the last member that knows only range has gone, then cooperative-sticky",
    "a member that offers both revokes all before it joins, whichever is chosen",
)
def rolling_upgrade(stage: Stage) -> None:
    """Two rounds of bounces move a group from range to cooperative-sticky: first both are offered, then only the new one."""
    _gather(stage, lambda _: _assignors(RANGE))
    for assignors in ((COOPERATIVE, RANGE), (COOPERATIVE,)):
        for name in CLIENTS:
            stage.leave(name)
            stage.join(name, "orders", extra=_assignors(*assignors))
            stage.settle(*CLIENTS)
    stage.let_work(1)


def _connect(stage: Stage, max_delay_ms: int) -> None:
    """Starts three workers, gives them one source and two sinks, and stops w2 once all is spread evenly."""
    for topic, partitions in (("orders", 6), ("lines", 1)):
        stage.topic(topic, partitions)
    for name in WORKERS:
        stage.worker(name, max_delay_ms=max_delay_ms)
    stage.connector("file-in", "Source", topic="lines", tasks=1, worker="w1")
    stage.connector("sink-a", "Sink", topic="orders", tasks=3, worker="w1")
    stage.connector("sink-b", "Sink", topic="orders", tasks=3, worker="w1")
    stage.settle_workers(*WORKERS)
    stage.let_work(2)
    stage.leave("w2")
    stage.wait_for_delay("w1", "w3")


@scenario("connect", "the work of w2 is assigned to nobody until w2 is back, then to w2", "no other work moves on its return")
def connect_return(stage: Stage) -> None:
    """A Connect worker leaves and comes back before scheduled.rebalance.max.delay.ms is over."""
    _connect(stage, 20_000)
    stage.worker("w2", max_delay_ms=20_000)
    stage.settle_workers(*WORKERS)
    stage.let_work(1)


@scenario("connect", "the work of w2 is assigned to nobody until the delay is over, then to w1 and w3")
def connect_no_return(stage: Stage) -> None:
    """A Connect worker leaves for good; the others take over its work when the delay is over."""
    _connect(stage, 8_000)
    stage.settle_workers("w1", "w3")
    stage.let_work(1)


@scenario(
    "consumer",
    "protocol cooperative-sticky in every generation",
    "a partition that moves is first revoked by its old owner, and given away one generation later",
)
def librdkafka_cooperative(stage: Stage) -> None:
    """The cooperative scale-out and scale-in, with librdkafka's consumers."""
    stage.topic("orders", 6)
    for present in (CLIENTS[:1], CLIENTS[:2], CLIENTS):
        stage.join_librdkafka(present[-1], "orders", extra={"partition.assignment.strategy": "cooperative-sticky"})
        stage.settle(*present)
    stage.let_work(2)
    stage.leave("c2")
    stage.settle("c1", "c3")
    stage.leave("c1")
    stage.settle("c3")
    stage.let_work(1)
