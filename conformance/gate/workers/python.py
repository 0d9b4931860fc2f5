"""A process that answers assignor cases with an assignor written in Python.

    python -m kipcheck.conformance.gate.workers.python MODULE:CLASS [--describe]

It recognises kipcheck's own small protocol (`Small`), and the assignors of kafka-python and aiokafka, to which it is what their consumers
are: each member's own assignor writes the member's user data, the leader's reads it.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Protocol, cast

from ....spec.assignors.case import ABSENT, Case, Member
from ....spec.assignors.codec import decode
from ..wire import metadata_of, subscription
from .loop import Shares, own_output, said, serve

_REMEMBERED = 1 << 12
"""Most members whose JoinGroup metadata is kept: the same ones come in many cases."""


class Unusable(Exception):
    """Why there is no assignor, and how to mend it."""


class Leader(Protocol):
    """Asks one assignor as the leader of a group does."""

    name: str
    protocols: tuple[str, ...]

    def renew(self) -> None:
        """Forget what was asked before."""
        ...

    def assign(self, case: Case) -> Shares:
        """The assignor's answer; raises whatever it raises."""
        ...


class Small:
    """kipcheck's own protocol: ``assign(topics, members)``, or a function of the two.

    ``topics`` are partition counts, ``members`` are `Member` records, the answer is topic partitions such as ``orders-0`` by member id. With
    a parameter ``racks`` it is also given the racks that hold a replica, by partition. Attributes ``name`` and ``protocols`` (``EAGER``,
    ``COOPERATIVE``) may say what it is; what says nothing is taken for cooperative, which promises more.
    """

    def __init__(self, make: Callable[[], Any], title: str) -> None:
        self._make = make
        self._assign = _function(make())
        self._racks = "racks" in _parameters(self._assign)
        owner = make()
        self.name = str(getattr(owner, "name", title))
        self.protocols = tuple(str(each).upper() for each in getattr(owner, "protocols", ("COOPERATIVE",)))

    def renew(self) -> None:
        self._assign = _function(self._make())

    def assign(self, case: Case) -> Shares:
        members = [each if each.metadata is None else _decoded(each) for each in case.members]
        more = {"racks": case.racks} if self._racks else {}
        return {member: _listed(member, share) for member, share in _mapping(self._assign(case.topics, members, **more)).items()}


class ByObject:
    """kafka-python from 3.0 on: a consumer has an assignor object, and ``assign(cluster, members)`` takes JoinGroup's members."""

    def __init__(self, make: Callable[[], Any]) -> None:
        from kafka.cluster import ClusterMetadata
        from kafka.protocol.consumer.group import JoinGroupResponse
        from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

        self._make = make
        self._cluster: type[Any] = ClusterMetadata
        self._member: Any = cast("Any", JoinGroupResponse).JoinGroupResponseMember
        self._assignment: Any = ConsumerProtocolAssignment
        self._subscription: Any = ConsumerProtocolSubscription
        self._leader = make()
        self._bytes = lru_cache(_REMEMBERED)(self._sent)
        self.name = str(self._leader.name)
        self.protocols: tuple[str, ...] = tuple(str(each.name) for each in self._leader.supported_protocols())

    def renew(self) -> None:
        self._leader = self._make()

    def assign(self, case: Case) -> Shares:
        members = [
            self._member(member_id=each.id, group_instance_id=each.instance, metadata=self._subscription.decode(self._bytes(each)))
            for each in case.members
        ]
        return _partitions(self._leader.assign(_cluster(self._cluster, case.topics), members))

    def _sent(self, member: Member) -> bytes:
        """What the member sends in JoinGroup; an eager one has given up all that it owned."""
        if member.metadata is not None:
            return member.metadata
        own = self._make()
        if _was_given(member):
            own.on_assignment(self._assignment(0, _by_topic(member.owned), b""), member.generation)
        user_data = subscription(own.metadata(member.subscribed).encode()).user_data
        return metadata_of(member if "COOPERATIVE" in self.protocols else replace(member, owned=()), user_data)


class ByClass:
    """aiokafka, and kafka-python before 3.0: a consumer's assignor is a class that keeps its state, and all are eager."""

    def __init__(self, found: type[Any], library: str) -> None:
        load = importlib.import_module
        self._found = found
        self._cluster: type[Any] = load(f"{library}.cluster").ClusterMetadata
        told: Any = load(f"{library}.coordinator.protocol").ConsumerProtocol
        protocol: Any = told[0] if library == "kafka" else told
        self._metadata: Any = protocol.METADATA
        self._assignment: Any = protocol.ASSIGNMENT
        self._joined: Callable[[Any, str | None], Any] = (
            load("kafka.coordinator.subscription").Subscription if library == "kafka" else lambda metadata, instance: metadata
        )
        self._leader = _like(found)
        self._bytes = lru_cache(_REMEMBERED)(self._sent)
        self.name = str(found.name)
        self.protocols: tuple[str, ...] = ("EAGER",)

    def renew(self) -> None:
        self._leader = _like(self._found)

    def assign(self, case: Case) -> Shares:
        members = {each.id: self._joined(self._metadata.decode(self._bytes(each)), each.instance) for each in case.members}
        return _partitions(self._leader.assign(_cluster(self._cluster, case.topics), members))

    def _sent(self, member: Member) -> bytes:
        """What the member sends in JoinGroup."""
        if member.metadata is not None:
            return member.metadata
        own = _like(self._found)
        if _was_given(member):
            own.on_assignment(self._assignment(0, _by_topic(member.owned), b""))
            if hasattr(own, "on_generation_assignment"):
                own.on_generation_assignment(member.generation)
        metadata = own.metadata(member.subscribed)
        return cast("bytes", metadata.encode())


def _like(found: type[Any]) -> Any:
    """A class as ``found``, with a state of its own."""
    made: Any = type(found)
    return made(found.__name__, (found,), {})


def _was_given(member: Member) -> bool:
    return bool(member.owned) or member.generation != ABSENT


def _by_topic(partitions: Iterable[str]) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topic, _, number = partition.rpartition("-")
        topics.setdefault(topic, []).append(int(number))
    return list(topics.items())


def _partitions(assignments: object) -> Shares:
    """Topic partitions by member id from a library's assignments."""
    told = cast("Mapping[str, Any]", _mapping(assignments))
    return {member: [f"{topic}-{number}" for topic, number in assignment.partitions()] for member, assignment in told.items()}


def _mapping(answer: object) -> Mapping[str, Iterable[str]]:
    if not isinstance(answer, Mapping):
        raise TypeError(f"assign returned {type(answer).__name__}, not a mapping of member ids")
    return cast("Mapping[str, Iterable[str]]", answer)


def _listed(member: object, share: object) -> list[str]:
    if not isinstance(member, str):
        raise TypeError(f"assign returned a mapping with the key {member!r}, which is no member id")
    if isinstance(share, str) or not isinstance(share, Iterable):
        raise TypeError(f"assign returned {type(share).__name__} for {member!r}, where topic partitions were expected")
    return list(cast("Iterable[str]", share))


def _decoded(member: Member) -> Member:
    """A member as its raw JoinGroup metadata says. Raises `Undecodable`."""
    told = subscription(member.metadata or b"")
    return replace(
        member, subscribed=told.topics, owned=told.owned, generation=told.generation, rack=told.rack, version=min(told.version, 3)
    )


def _cluster(base: type[Any], topics: Mapping[str, int]) -> Any:
    return _known_cluster(base, tuple(topics.items()))


@lru_cache(maxsize=64)
def _known_cluster(base: type[Any], topics: tuple[tuple[str, int], ...]) -> Any:
    """The library's cluster metadata with these partition counts; a topic without partitions is not there."""
    partitions = {topic: frozenset(range(count)) for topic, count in topics if count}

    class Cluster(base):
        def topics(self, exclude_internal_topics: bool = True) -> set[str]:
            return set(partitions)

        def partitions_for_topic(self, topic: str) -> set[int] | None:
            return set(partitions[topic]) if topic in partitions else None

        available_partitions_for_topic = partitions_for_topic

    return Cluster()


def _function(owner: Any) -> Callable[..., object]:
    return owner.assign if hasattr(owner, "assign") else owner


def _parameters(function: Callable[..., object]) -> Sequence[str]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


def find(target: str) -> tuple[Any, str]:
    """The class, object or function MODULE:CLASS, and its last name. Raises `Unusable`."""
    module, colon, path = target.partition(":")
    if not colon or not module or not path:
        near = ":".join(target.rsplit(".", 1)) if "." in target and not colon else "package.module:ClassName"
        raise Unusable(f"{target!r}: expected MODULE:CLASS, such as {near}")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise Unusable(
                f"there is no module {error.name!r}, neither in the current directory nor among this Python's packages"
            ) from None
        raise Unusable(f"importing {module} fails: {error}; install that first") from None
    except BaseException as error:
        raise Unusable(f"importing {module} fails: {said(error)}") from error
    for name in path.split("."):
        if not hasattr(found, name):
            near = get_close_matches(name, [each for each in dir(found) if not each.startswith("_")], 1)
            raise Unusable(f"{module} has no {name!r}" + (f"; did you mean {near[0]}?" if near else ""))
        found = getattr(found, name)
    return found, path.rpartition(".")[2]


def leader(found: Any, title: str) -> Leader:
    """Who asks ``found`` as its kind of assignor wants to be asked. Raises `Unusable`."""
    kind = cast("type[Any]", found if isinstance(found, type) else type(found))
    assign = getattr(found, "assign", None if isinstance(found, type) else found)
    if not callable(assign):
        raise Unusable(
            f"{title} is no assignor: it has no assign(topics, members) (kipcheck's), no assign(cluster, members) (kafka-python, aiokafka), "
            "and is no function of (topics, members)"
        )
    make = _maker(found, title)
    packages = {base.__module__.partition(".")[0] for base in kind.__mro__}
    if "aiokafka" in packages:
        return ByClass(kind, "aiokafka")
    if "kafka" in packages or "cluster" in _parameters(assign):
        return ByObject(make) if importlib.util.find_spec("kafka.protocol.consumer") else ByClass(kind, "kafka")
    return Small(make, title)


def _maker(found: Any, title: str) -> Callable[[], Any]:
    """What makes an assignor that was never asked. Raises `Unusable` when that takes arguments."""
    if inspect.isroutine(found):
        return lambda: found
    if not isinstance(found, type):
        return lambda: copy.deepcopy(found)
    make = cast("Callable[[], Any]", found)
    try:
        make()
    except Exception as error:
        raise Unusable(f"{title}() fails, and a consumer makes its assignor without arguments: {said(error)}") from error
    return make


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kipcheck.conformance.gate.workers.python")
    parser.add_argument("target", metavar="MODULE:CLASS")
    parser.add_argument("--describe", action="store_true", help="print its name and protocols, and end")
    asked = parser.parse_args(arguments)
    output = own_output()
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        asks = leader(*find(asked.target))
    except Unusable as error:
        print(f"kipcheck: {error}", file=sys.stderr)
        return 2
    if asked.describe:
        output.write(json.dumps({"name": asks.name, "protocols": asks.protocols}).encode("ascii") + b"\n")
        output.close()
        return 0

    def answer(row: Mapping[str, object]) -> Shares:
        if row.get("fresh"):
            asks.renew()
        return asks.assign(decode(row)[0])

    serve(answer, output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
