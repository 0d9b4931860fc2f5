"""A process that answers assignor cases with a Java assignor, in a real JVM, as the leader of a consumer group would.

    python -m kipcheck.conformance.gate.workers.jvm CLASS --classpath GLOB[:GLOB..] [--describe]

It drives any ``ConsumerPartitionAssignor`` (Kafka 2.4 to 4.x) and any ``PartitionAssignor`` (up to 2.3). A case is put to it as a
JoinGroup response is to a leader: each member's own assignor object writes the member's user data, the release's
``ConsumerProtocol`` encodes and decodes the subscription, the leader's coordinator checks a cooperative assignment, and each
member's share is encoded and decoded again. Sources: ConsumerCoordinator.metadata and .onLeaderElected (.performAssignment
before 3.2).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import starmap
from typing import Any, BinaryIO, Protocol

from ....spec.assignors.case import ABSENT, Case, CaseError, Member
from ....spec.assignors.codec import decode
from . import java
from .java import load
from .loop import own_input, own_output

CONSUMER = "org.apache.kafka.clients.consumer"
COMMON = "org.apache.kafka.common"
GROUP = "kipcheck"
REMEMBERED = 1 << 16
"""Most Java objects of one sort that are kept to be used again."""

CONFIG = {
    "bootstrap.servers": "localhost:9092",
    "client.id": GROUP,
    "group.id": GROUP,
    "key.deserializer": f"{COMMON}.serialization.ByteArrayDeserializer",
    "value.deserializer": f"{COMMON}.serialization.ByteArrayDeserializer",
}
"""What an assignor that is Configurable is given."""


class Assignor(Protocol):
    """An assignor class, called by the interface of its release. Everything but the constructor throws what Java does."""

    name: str
    protocols: tuple[str, ...]

    def new(self) -> Any:
        """An assignor, as the constructor of a consumer makes one."""
        ...

    def subscription(self, member: Member) -> Any:
        """The Subscription that the leader decodes from the member's JoinGroup metadata."""
        ...

    def assign(self, assignor: Any, cluster: Any, subscriptions: Any) -> Any:
        """Assignments by member id (a Java map) from subscriptions by member id, as far as the leader lets them out."""
        ...

    def received(self, assignment: Any) -> Any:
        """What a member decodes of the leader's Assignment."""
        ...


class Modern:
    """A ``ConsumerPartitionAssignor`` (KIP-429): in cooperative mode if it supports that, as it would be if it were the only one configured."""

    INTERFACE = f"{CONSUMER}.ConsumerPartitionAssignor"

    def __init__(self, made: Any) -> None:
        self._class = made
        self._subscription = load(f"{self.INTERFACE}$Subscription")
        self._assignment = load(f"{self.INTERFACE}$Assignment")
        self._group = load(f"{self.INTERFACE}$GroupSubscription")
        self._metadata = load(f"{CONSUMER}.ConsumerGroupMetadata")
        self._codec = load(f"{CONSUMER}.internals.ConsumerProtocol")
        self._has_racks = any(len(each.getParameterTypes()) == 5 for each in self._subscription.class_.getConstructors())
        self._newest = int(self._codec.serializeSubscription(self._subscription(listed(()))).getShort(0))
        example = self.new()
        self.name = str(example.name())
        self.protocols = tuple(str(each.name()) for each in example.supportedProtocols())
        self._cooperative = "COOPERATIVE" in self.protocols
        self._check = cooperative_check(self.name) if self._cooperative else None

    def new(self) -> Any:
        return configured(self._class())

    def subscription(self, member: Member) -> Any:
        decoded = self._codec.deserializeSubscription(self._encoded(member) if member.metadata is None else buffer(member.metadata))
        decoded.setGroupInstanceId(optional(member.instance))
        return decoded

    def _encoded(self, member: Member) -> Any:
        own, topics, owned = self.new(), topics_of(member.subscribed), listed(map(partition, member.owned))
        if claims(member):
            own.onAssignment(self._assignment(owned), self._metadata(GROUP, member.generation, member.id, optional(member.instance)))
        fields = [topics, own.subscriptionUserData(load("java.util.HashSet")(topics)), owned if self._cooperative else listed(())]
        if self._has_racks:
            fields += [member.generation, optional(member.rack)]
        return self._codec.serializeSubscription(self._subscription(*fields), short(min(member.version, self._newest)))

    def assign(self, assignor: Any, cluster: Any, subscriptions: Any) -> Any:
        owned = load("java.util.HashMap")()
        if self._check:
            for each in subscriptions.entrySet():
                owned.put(each.getKey(), each.getValue().ownedPartitions())
        assigned = returned(assignor.assign(cluster, self._group(subscriptions))).groupAssignment()
        if self._check:
            self._check(owned, assigned)
        return assigned

    def received(self, assignment: Any) -> Any:
        return self._codec.deserializeAssignment(self._codec.serializeAssignment(assignment))


class Legacy:
    """A ``PartitionAssignor``: eager. Its members tell it a generation since 2.3 (KIP-341)."""

    INTERFACE = f"{CONSUMER}.internals.PartitionAssignor"

    def __init__(self, made: Any) -> None:
        self._class = made
        self._assignment = load(f"{self.INTERFACE}$Assignment")
        self._codec = load(f"{CONSUMER}.internals.ConsumerProtocol")
        interface = load(self.INTERFACE).class_
        self._has_generations = any(
            each.getName() == "onAssignment" and len(each.getParameterTypes()) == 2 for each in interface.getMethods()
        )
        self.name = str(self.new().name())
        self.protocols: tuple[str, ...] = ("EAGER",)

    def new(self) -> Any:
        return configured(self._class())

    def subscription(self, member: Member) -> Any:
        if member.metadata is not None:
            return self._codec.deserializeSubscription(buffer(member.metadata))
        own = self.new()
        if claims(member):
            applied = self._assignment(listed(map(partition, member.owned)))
            own.onAssignment(*(applied, member.generation) if self._has_generations else (applied,))
        topics = load("java.util.HashSet")(topics_of(member.subscribed))
        return self._codec.deserializeSubscription(self._codec.serializeSubscription(own.subscription(topics)))

    def assign(self, assignor: Any, cluster: Any, subscriptions: Any) -> Any:
        return returned(assignor.assign(cluster, subscriptions))

    def received(self, assignment: Any) -> Any:
        return self._codec.deserializeAssignment(self._codec.serializeAssignment(assignment))


def assignor(name: str) -> Assignor:
    """The assignor of the class ``name``. Raises `java.JavaFailed`, which says how to mend it."""
    for needed, jar in (("org.slf4j.LoggerFactory", "slf4j-api-1.7.36.jar"), (f"{COMMON}.TopicPartition", "kafka-clients-VERSION.jar")):
        if _loaded(needed) is None:
            raise java.JavaFailed(f"--classpath lacks {needed}: add {jar}")
    java.silence()
    modern = _loaded(Modern.INTERFACE)
    interface, kind = (modern, Modern) if modern is not None else (load(Legacy.INTERFACE), Legacy)
    made = _loaded(name)
    if made is None:
        raise java.JavaFailed(f"no class {name} on the class path: write its full name, and add its jar to --classpath")
    if not interface.class_.isAssignableFrom(made.class_):
        raise java.JavaFailed(f"{name} is no partition assignor: it does not implement {kind.INTERFACE}")
    try:
        return kind(made)
    except (TypeError, java.throwable()) as error:
        raise java.JavaFailed(f"{name} cannot be made: {java.one_line(error)}") from None


class Leader:
    """The leader of a consumer group: one assignor object answers one case after the other."""

    def __init__(self, assignor: Assignor) -> None:
        self._assignor = assignor
        self._object = assignor.new()

    def answer(self, case: Case, *, fresh: bool) -> dict[str, object]:
        """The line for ``case``; ``fresh``: as a leader that was never asked before."""
        try:
            if fresh:
                self._object = self._assignor.new()
            subscriptions = load("java.util.HashMap")()
            for member in case.members:
                subscriptions.put(member.id, self._assignor.subscription(member))
            assigned = self._assignor.assign(self._object, cluster(case), subscriptions)
            shares = {str(each.getKey()): self._assignor.received(each.getValue()).partitions() for each in assigned.entrySet()}
            return {"id": case.id, "assignment": {member: names(share) for member, share in shares.items()}}
        except java.throwable() as error:
            return {"id": case.id, "error": java.one_line(error)}


def claims(member: Member) -> bool:
    """Whether its assignor was told of an assignment before."""
    return bool(member.owned) or member.generation != ABSENT


def returned(value: Any) -> Any:
    """What ``assign`` returned. Throws, as the leader does, if that is null."""
    return load("java.util.Objects").requireNonNull(value, "assign returned null")


def cooperative_check(name: str) -> Callable[[Any, Any], None] | None:
    """What a cooperative leader does with partitions owned and assigned (Java maps by member id): throw, where one moves at once.

    None where the release trusts the assignor of this name: since KAFKA-13406 (2.8.2, 3.0.1, 3.1.0) ConsumerCoordinator tells
    cooperative-sticky apart, so its class file holds the name.
    """
    coordinator = load(f"{CONSUMER}.internals.ConsumerCoordinator")
    code = bytes(coordinator.class_.getResourceAsStream("ConsumerCoordinator.class").readAllBytes())
    if name == "cooperative-sticky" and name.encode() in code:
        return None
    unsafe = load("sun.misc.Unsafe").class_.getDeclaredField("theUnsafe")
    unsafe.setAccessible(True)
    bare = unsafe.get(None).allocateInstance(coordinator.class_)
    log = coordinator.class_.getDeclaredField("log")
    log.setAccessible(True)
    log.set(bare, load("org.slf4j.LoggerFactory").getLogger(coordinator.class_))
    method = coordinator.class_.getDeclaredMethod("validateCooperativeAssignment", load("java.util.Map"), load("java.util.Map"))
    method.setAccessible(True)

    def check(owned: Any, assigned: Any) -> None:
        try:
            method.invoke(bare, [owned, assigned])
        except load("java.lang.reflect.InvocationTargetException") as error:
            thrown: Any = error
            raise thrown.getCause() from None

    return check


@cache
def array_of(name: str) -> Any:
    """The class of arrays of the class ``name``."""
    return java.jpype().JArray(load(name))


def _loaded(name: str) -> Any:
    """The class; None if there is none. Raises `java.JavaFailed` if it is broken."""
    try:
        return load(name)
    except java.throwable() as error:
        if java.one_line(error).startswith("java.lang.ClassNotFoundException"):
            return None
        raise java.JavaFailed(f"{name} cannot be loaded: {java.one_line(error)}") from None


def configured(made: Any) -> Any:
    """The assignor, configured if it wants to be."""
    if isinstance(made, load(f"{COMMON}.Configurable")):
        made.configure(load("java.util.HashMap")(CONFIG))
    return made


def cluster(case: Case) -> Any:
    """The metadata that a leader has: the partitions of subscribed topics, with a node for each rack that holds a replica."""
    wanted = {topic for member in case.members for topic in member.subscribed}
    held = [
        (topic, number, case.racks.get(f"{topic}-{number}") or (None,))
        for topic, count in case.topics.items()
        if topic in wanted
        for number in range(count)
    ]
    nodes = [node(rack) for rack in {rack: None for _, _, racks in held for rack in racks}]
    none = load("java.util.Collections").emptySet()
    return load(f"{COMMON}.Cluster")(GROUP, listed(nodes), listed(starmap(partition_info, held)), none, none)


@lru_cache(REMEMBERED)
def partition_info(topic: str, number: int, racks: tuple[str | None, ...]) -> Any:
    replicas = [node(rack) for rack in racks]
    nodes = array_of(f"{COMMON}.Node")(replicas)
    return load(f"{COMMON}.PartitionInfo")(topic, number, replicas[0], nodes, nodes)


@cache
def node(rack: str | None) -> Any:
    return load(f"{COMMON}.Node")(0, "localhost", 9092) if rack is None else load(f"{COMMON}.Node")(_number(rack), "localhost", 9092, rack)


@cache
def _number(rack: str) -> int:
    """From 1 up, each rack its own."""
    return _number.cache_info().currsize + 1


@lru_cache(REMEMBERED)
def partition(name: str) -> Any:
    """The TopicPartition of ``orders-0``."""
    topic, _, number = name.rpartition("-")
    return load(f"{COMMON}.TopicPartition")(topic, int(number))


@lru_cache(REMEMBERED >> 6)
def topics_of(subscribed: tuple[str, ...]) -> Any:
    """A list of them, which nobody changes."""
    return load("java.util.Collections").unmodifiableList(listed(subscribed))


def listed(items: Iterable[Any]) -> Any:
    """An ArrayList."""
    return load("java.util.ArrayList")(load("java.util.Arrays").asList(array_of("java.lang.Object")(list(items))))


def names(partitions: Any) -> list[str]:
    """The names in a list of TopicPartitions; topic names hold no comma."""
    text = str(load("java.util.Arrays").toString(partitions.toArray()))[1:-1]
    return text.split(", ") if text else []


def optional(text: str | None) -> Any:
    return load("java.util.Optional").ofNullable(text)


def buffer(data: bytes) -> Any:
    """A ByteBuffer."""
    return load("java.nio.ByteBuffer").wrap(java.jpype().JArray(java.jpype().JByte)(data))


def short(number: int) -> Any:
    return java.jpype().JShort(number)


def serve(leader: Leader, answers: BinaryIO) -> None:
    """Answer each line of standard input. Raises `CaseError` or `json.JSONDecodeError` for what is no case."""
    for line in own_input():
        told = json.loads(line)
        case, _ = decode(told)
        answers.write(json.dumps(leader.answer(case, fresh=told.get("fresh") is True), separators=(",", ":")).encode() + b"\n")
        answers.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kipcheck.conformance.gate.workers.jvm")
    parser.add_argument("name", metavar="CLASS")
    parser.add_argument(
        "--classpath", required=True, metavar="GLOB[:GLOB..]", help="jars and directories, kafka-clients and slf4j-api among them"
    )
    parser.add_argument("--describe", action="store_true", help="print its name and protocols, and end")
    asked = parser.parse_args(arguments)
    answers = own_output()
    try:
        java.start(java.expand(asked.classpath))
        found = assignor(asked.name)
        if asked.describe:
            answers.write(json.dumps({"name": found.name, "protocols": found.protocols}).encode() + b"\n")
            answers.flush()
        else:
            serve(Leader(found), answers)
    except (java.JavaFailed, CaseError, json.JSONDecodeError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    java.leave(main())
