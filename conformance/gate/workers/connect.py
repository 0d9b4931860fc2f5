"""A leader of a Connect cluster in a real Java virtual machine: ``python -m kipcheck.conformance.gate.workers.connect CLASS --classpath JARS``.

CLASS is Kafka's IncrementalCooperativeAssignor (2.3 to 4.x), or a class like it: made with a LogContext, a Time and the maximal delay,
and called through ``performAssignment`` with metadata as workers encode it. A line on standard input is one generation, with units named
as in trace version 1; standard output has a line for each::

    {"id": "1", "leader": "w1", "fresh": true, "now_ms": 0, "generation": 2, "completed": 1, "max_delay_ms": 300000, "offset": 1,
     "connectors": {"A": 3}, "members": [{"id": "w1-1", "work": ["connector:A", "task:A-0"]}]}
    {"id": "1", "assigned": {"w1-1": ["task:A-1"]}, "revoked": {}, "delay_ms": 0}

``fresh`` makes the leader, an assignor object of its own whose clock stands at ``now_ms``; ``completed`` is the last generation that
it finished as a worker. Of the leaders the last `LEADERS` are kept. ``error`` says what the assignor threw.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, BinaryIO

from . import java
from .loop import own_input, own_output

DISTRIBUTED = "org.apache.kafka.connect.runtime.distributed"
LEADERS = 64
NEEDED = {
    "org.slf4j.LoggerFactory": "slf4j-api-1.7.36.jar",
    "org.apache.kafka.common.utils.Time": "kafka-clients-VERSION.jar",
    "org.apache.kafka.connect.connector.Connector": "connect-api-VERSION.jar",
    f"{DISTRIBUTED}.WorkerCoordinator": "connect-runtime-VERSION.jar",
}
"""A class of each jar."""


class Clock:
    """What the assignor gets as Kafka's Time; nothing else of it is asked for."""

    now = 0

    def milliseconds(self) -> int:
        return self.now

    def nanoseconds(self) -> int:
        return self.now * 1_000_000


class Leader:
    """An assignor object, and the coordinator object of the worker that it belongs to: one that never was in any group."""

    def __init__(self, made: Any, max_delay_ms: int) -> None:
        self._clock = Clock()
        time = java.jpype().JProxy("org.apache.kafka.common.utils.Time", inst=self._clock)
        self._assignor = made(load("org.apache.kafka.common.utils.LogContext")(), time, max_delay_ms)
        self._coordinator = bare(f"{DISTRIBUTED}.WorkerCoordinator")
        self._protocol = called_with(made)

    def decide(self, asked: Mapping[str, Any]) -> dict[str, object]:
        """The rest of the answering line."""
        self._clock.now = int(asked["now_ms"])
        leader, offset = str(asked["members"][0]["id"]), int(asked["offset"])
        generation = load("org.apache.kafka.clients.consumer.internals.AbstractCoordinator$Generation")
        put(self._coordinator, "generation", generation(int(asked["generation"]), leader, str(newest_protocol().protocol())))
        put(self._coordinator, "lastCompletedGenerationId", int(asked["completed"]), optional=True)
        put(self._coordinator, "configSnapshot", config_state(asked["connectors"], offset))
        members = load("java.util.ArrayList")()
        for each in asked["members"]:
            members.add(joined(str(each["id"]), int(each.get("offset", offset)), each["work"]))
        decided = self._assignor.performAssignment(leader, self._protocol, members, self._coordinator)
        protocol = load(f"{DISTRIBUTED}.IncrementalCooperativeConnectProtocol")
        told = {str(each.getKey()): protocol.deserializeAssignment(each.getValue()) for each in decided.entrySet()}
        delays = {int(each.delay()) for each in told.values()}
        if len(delays) > 1:
            return {"error": f"workers are told different delays: {sorted(delays)} ms"}
        return {
            "assigned": {member: units(each.connectors(), each.tasks()) for member, each in told.items()},
            "revoked": {member: units(each.revokedConnectors(), each.revokedTasks()) for member, each in told.items()},
            "delay_ms": max(delays, default=0),
        }


@cache
def load(name: str) -> Any:
    """`java.load`, once."""
    return java.load(name)


@cache
def newest_protocol() -> Any:
    """The ConnectProtocolCompatibility of the highest version: sessioned since 2.4.0, before that compatible."""
    values = load(f"{DISTRIBUTED}.ConnectProtocolCompatibility").values()
    return values[len(values) - 1]


def called_with(made: Any) -> Any:
    """The protocol as ``performAssignment`` takes it: its name, in the newest releases itself."""
    method = next(each for each in made.class_.getMethods() if str(each.getName()) == "performAssignment")
    by_name = str(method.getParameterTypes()[1].getName()) == "java.lang.String"
    return str(newest_protocol().protocol()) if by_name else newest_protocol()


def bare(name: str) -> Any:
    """An object of the class without a call of its constructor, which would want a broker to talk to."""
    unsafe = load("sun.misc.Unsafe").class_.getDeclaredField("theUnsafe")
    unsafe.setAccessible(True)
    return unsafe.get(None).allocateInstance(load(name).class_)


def fields_of(thing: Any) -> dict[str, Any]:
    """The fields of an object, inherited ones too, by name."""
    found: dict[str, Any] = {}
    level = thing.getClass()
    while level is not None:
        for each in level.getDeclaredFields():
            found.setdefault(str(each.getName()), each)
        level = level.getSuperclass()
    return found


def put(thing: Any, name: str, value: object, *, optional: bool = False) -> None:
    """Set a private field. One that is ``optional`` need not exist: releases differ."""
    field = fields_of(thing).get(name)
    if field is None and optional:
        return
    if field is None:
        raise java.JavaFailed(f"{thing.getClass().getName()} has no field {name}: this release of Connect is not known")
    field.setAccessible(True)
    if isinstance(value, int):
        (field.setInt if str(field.getType().getName()) == "int" else field.setLong)(thing, value)
    else:
        field.set(thing, value)


def config_state(connectors: Mapping[str, int], offset: int) -> Any:
    """What the config topic holds up to ``offset``: a ClusterConfigState, whose constructor every few releases has other arguments."""
    counts, configs = load("java.util.TreeMap")(), load("java.util.TreeMap")()
    for name, tasks in connectors.items():
        counts.put(name, load("java.lang.Integer").valueOf(int(tasks)))
        configs.put(name, load("java.util.Collections").emptyMap())
    state = bare(str(fields_of(bare(f"{DISTRIBUTED}.WorkerCoordinator"))["configSnapshot"].getType().getName()))
    for name, field in fields_of(state).items():
        kind = str(field.getType().getName())
        empty = {"java.util.Map": load("java.util.Collections").emptyMap(), "java.util.Set": load("java.util.Collections").emptySet()}
        if kind in empty:
            put(state, name, {"connectorTaskCounts": counts, "connectorConfigs": configs}.get(name, empty[kind]))
    put(state, "offset", offset)
    return state


def joined(member: str, offset: int, work: Sequence[str]) -> Any:
    """A line of the leader's member list, with the metadata of a worker that runs ``work``."""
    protocol = load(f"{DISTRIBUTED}.IncrementalCooperativeConnectProtocol")
    connectors, tasks = load("java.util.ArrayList")(), load("java.util.ArrayList")()
    for unit in work:
        kind, _, name = unit.partition(":")
        if kind == "connector":
            connectors.add(name)
        else:
            connector, _, number = name.rpartition("-")
            tasks.add(load("org.apache.kafka.connect.util.ConnectorTaskId")(connector, int(number)))
    short = java.jpype().JShort
    url, nothing = f"http://{member}:8083/", load("java.util.Collections").emptyList()
    running = load(f"{DISTRIBUTED}.ExtendedAssignment")(short(1), short(0), member, url, offset, connectors, tasks, nothing, nothing, 0)
    state = load(f"{DISTRIBUTED}.ExtendedWorkerState")(url, offset, running)
    encoded = protocol.serializeMetadata(*(state,) if str(newest_protocol().protocol()) == "compatible" else (state, True))
    line = load("org.apache.kafka.common.message.JoinGroupResponseData$JoinGroupResponseMember")()
    return line.setMemberId(member).setMetadata(encoded.array())


def units(connectors: Any, tasks: Any) -> list[str]:
    """Units by name, in their order."""
    return [*(f"connector:{each}" for each in connectors), *(f"task:{each.connector()}-{each.task()}" for each in tasks)]


def serve(made: Any, answers: BinaryIO) -> None:
    """Answer each line of standard input."""
    leaders: OrderedDict[str, Leader] = OrderedDict()
    for line in own_input():
        asked: dict[str, Any] = json.loads(line)
        name = str(asked["leader"])
        try:
            if asked.get("fresh"):
                leaders[name] = Leader(made, int(asked["max_delay_ms"]))
                if len(leaders) > LEADERS:
                    leaders.popitem(last=False)
            leaders.move_to_end(name)
            told = leaders[name].decide(asked)
        except java.throwable() as error:
            told = {"error": java.one_line(error)}
        answers.write(json.dumps({"id": asked["id"], **told}, separators=(",", ":")).encode() + b"\n")
        answers.flush()


def assignor(name: str) -> Any:
    """The class ``name``. Raises `java.JavaFailed`, which says how to mend it."""
    for needed, jar in NEEDED.items():
        try:
            load(needed)
        except java.throwable() as error:
            raise java.JavaFailed(f"--classpath lacks {needed}: add {jar} ({java.one_line(error)})") from None
    java.silence()
    try:
        return load(name)
    except java.throwable() as error:
        raise java.JavaFailed(f"no class {name} on the class path: {java.one_line(error)}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kipcheck.conformance.gate.workers.connect")
    parser.add_argument("name", metavar="CLASS")
    parser.add_argument(
        "--classpath", required=True, metavar="GLOB[:GLOB..]", help="connect-runtime, connect-api, kafka-clients, slf4j-api"
    )
    asked = parser.parse_args(arguments)
    answers = own_output()
    try:
        java.start(java.expand(asked.classpath))
        serve(assignor(asked.name), answers)
    except (java.JavaFailed, json.JSONDecodeError, KeyError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    java.leave(main())
