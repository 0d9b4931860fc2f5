"""Assignors written in Python: kipcheck's own small protocol, kafka-python's and aiokafka's."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from kipcheck.conformance.failed import Failed
from kipcheck.conformance.gate.adapters import Description, subject
from kipcheck.conformance.gate.wire import metadata_of
from kipcheck.conformance.gate.workers.python import Leader, Unusable, find, leader
from kipcheck.spec.assignors.case import Answer, Case, Member, NoAnswer

MINE = '''
import sys

class Deals:
    """One partition after the other; remembers how often it was asked."""

    name = "deals"
    protocols = ("eager",)

    def __init__(self):
        self.asked = 0

    def assign(self, topics, members, racks):
        print("a word to nobody")
        assert sys.stdin.read() == ""
        self.asked += 1
        return {each.id: (f"asked-{self.asked}", f"racks-{len(racks)}") for each in members}

def everything_to_the_first(topics, members):
    shares = {each.id: set() for each in members}
    shares[members[0].id] = {f"{topic}-{number}" for topic, count in topics.items() for number in range(count)}
    return shares


class Sees:
    def assign(self, topics, members):
        return {each.id: [f"{each.subscribed} {each.owned} {each.generation} {each.instance} {each.rack}"] for each in members}

class Fails:
    def assign(self, topics, members):
        what = members[0].id
        if what == "none":
            return None
        if what == "exit":
            sys.exit(3)
        if what == "deep":
            return self.assign(topics, members)
        if what == "memory":
            raise MemoryError
        if what == "key":
            return {1: ["t-0"]}
        if what == "number":
            return {what: [1]}
        if what == "text":
            return {what: "t-0"}
        if what == "address":
            raise ValueError(object())
        if what == "crash":
            import os
            os.abort()
        return {what: []}

class Needs:
    def __init__(self, argument):
        pass
    def assign(self, topics, members):
        return {}

class Neither:
    def partition(self):
        pass

class Counts:
    count = 0
    def assign(self, topics, members):
        self.count += 1
        return {each.id: [str(self.count)] for each in members}

class Outer:
    inner = Counts()
    class Inner(Deals):
        name = "range"
'''
KAFKA = "python:kafka.coordinator.assignors"
RANGE, ROUND_ROBIN = f"{KAFKA}.range:RangePartitionAssignor", f"{KAFKA}.roundrobin:RoundRobinPartitionAssignor"
STICKY = f"{KAFKA}.sticky.sticky_assignor:StickyPartitionAssignor"
COOPERATIVE = f"{KAFKA}.cooperative_sticky:CooperativeStickyAssignor"


pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("mine", "ours"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return tmp_path


def case(*members: Member, name: str = "a", partitions: int = 4, before: tuple[Case, ...] = ()) -> Case:
    return Case(id=name, topics={"t": partitions}, members=members, before=before)


def member(name: str, *owned: str, generation: int = -1, version: int = 3) -> Member:
    return Member(id=name, subscribed=("t",), owned=owned, generation=generation, version=version)


PAIR = case(member("c0", "t-0", "t-1", generation=4), member("c1", "t-1", "t-2", generation=5))


def answers(spec: str, *cases: Case) -> list[Answer]:
    with closing(subject(spec)) as made:
        return list(made.ask(cases))


def found(spec: str) -> Leader:
    """The assignor as its worker sees it, in this process."""
    return leader(*find(spec.removeprefix("python:")))


def answered(spec: str, *cases: Case) -> list[Answer]:
    """The answers of new leaders in this process."""
    shares = [found(spec).assign(each) for each in cases]
    return [{member: tuple(share) for member, share in each.items()} for each in shares]


def test_one_object_serves_one_leader() -> None:
    first = case(member("c0"))
    used = case(member("c0"), before=(first, first))
    assert answers("python:mine:Deals", first, first, used, first) == [{"c0": (f"asked-{count}", "racks-0")} for count in (1, 1, 3, 1)]


def test_an_object_is_copied_for_each_leader() -> None:
    ours = found("mine:Outer.inner")
    for _ in range(2):
        ours.renew()
        assert ours.assign(PAIR) == {"c0": ["1"], "c1": ["1"]}
    assert ours.assign(PAIR) == {"c0": ["2"], "c1": ["2"]}


def test_a_function_will_do() -> None:
    (shares,) = answered("mine:everything_to_the_first", PAIR)
    assert isinstance(shares, dict)
    assert [set(share) for share in shares.values()] == [{"t-0", "t-1", "t-2", "t-3"}, set()]


@pytest.mark.parametrize(
    ("spec", "kind"),
    [("mine:Deals", "eager"), ("mine:Sees", "cooperative"), ("mine:everything_to_the_first", "cooperative"), ("mine:Outer.Inner", "range")],
)
def test_kinds_come_from_names_then_from_protocols(spec: str, kind: str) -> None:
    ours = found(spec)
    assert Description(ours.name, ours.protocols).kind == kind


def test_it_may_be_held_to_another_kind() -> None:
    with closing(subject("python:mine:Deals", as_kind="sticky")) as made:
        assert made.kind == "sticky"


def test_members_arrive_as_they_are() -> None:
    asked = case(
        replace(member("é\ud800\n", "t-0", generation=4), instance="i", rack="ra"),
        replace(member("raw"), metadata=metadata_of(PAIR.members[0])),
    )
    assert answers("python:mine:Sees", asked) == [{"é\ud800\n": ("('t',) ('t-0',) 4 i ra",), "raw": ("('t',) ('t-0', 't-1') 4 None None",)}]


def test_whatever_goes_wrong_is_an_answer() -> None:
    expected = {
        "none": "TypeError: assign returned NoneType, not a mapping of member ids",
        "exit": "SystemExit: 3 (mine.py:",
        "deep": "RecursionError: maximum recursion depth exceeded",
        "memory": "MemoryError (mine.py:",
        "key": "TypeError: assign returned a mapping with the key 1, which is no member id",
        "text": "TypeError: assign returned str for 'text'",
        "number": "assignment.number: expected topic partitions such as orders-0, found 1",
        "address": "ValueError: <object object> (mine.py:",
        "crash": "killed by SIGABRT",
    }
    *failed, fine = answers("python:mine:Fails", *(case(member(name), name=name) for name in [*expected, "fine"]))
    assert fine == {"fine": ()}
    for each, words in zip(failed, expected.values(), strict=True):
        assert isinstance(each, NoAnswer)
        assert words in each.says
    assert [each.how for each in failed if isinstance(each, NoAnswer)] == [*["error"] * 6, "nonsense", "error", "crash"]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("mine", "expected MODULE:CLASS"),
        ("mine.Deals", "such as mine:Deals"),
        ("mine:Deal", "mine has no 'Deal'; did you mean Deals?"),
        ("mine:Zzz", "mine has no 'Zzz'"),
        ("nothing:Deals", "no module 'nothing', neither in the current directory"),
        ("needs_more:X", "importing needs_more fails: No module named 'missing_one'; install that first"),
        ("broken:X", "importing broken fails: SyntaxError"),
        ("mine:Neither", "Neither is no assignor: it has no assign(topics, members)"),
        ("mine:MINE_IS_NOT", "no 'MINE_IS_NOT'"),
        ("mine:Needs", "Needs() fails, and a consumer makes its assignor without arguments"),
        ("kafka.coordinator.assignors.abstract:AbstractPartitionAssignor", "AbstractPartitionAssignor() fails"),
    ],
)
def test_a_target_that_is_none_names_the_fix(mine: Path, target: str, words: str) -> None:
    (mine / "needs_more.py").write_text("import missing_one\n")
    (mine / "broken.py").write_text("def (\n")
    with pytest.raises(Unusable) as refused:
        found(target)
    assert words in str(refused.value)


def test_a_target_that_is_none_ends_the_command() -> None:
    with pytest.raises(Failed) as failed:
        subject("python:mine:Deal")
    assert failed.value.message == "python:mine:Deal: mine has no 'Deal'; did you mean Deals?"


@pytest.mark.parametrize(
    ("spec", "kind", "expected"),
    [
        (RANGE, "range", {"c0": ("t-0", "t-1"), "c1": ("t-2", "t-3")}),
        (ROUND_ROBIN, "roundrobin", {"c0": ("t-0", "t-2"), "c1": ("t-1", "t-3")}),
        (STICKY, "sticky", {"c0": ("t-0", "t-3"), "c1": ("t-1", "t-2")}),
        (COOPERATIVE, "cooperative-sticky", {"c0": ("t-0", "t-3"), "c1": ("t-1", "t-2")}),
    ],
)
def test_kafka_python(spec: str, kind: str, expected: dict[str, tuple[str, ...]]) -> None:
    static = case(replace(member("c1"), instance="a"), replace(member("c0"), instance="b"))
    missing = replace(
        PAIR, topics={"t": 4, "gone": 0}, members=tuple(replace(each, subscribed=("t", "gone", "never")) for each in PAIR.members)
    )
    hostile = case(replace(member("c0"), metadata=b"\0\1"))
    with closing(subject(spec)) as made:
        assert made.kind == kind
        first, again, of_static, of_missing, of_hostile = made.ask([PAIR, PAIR, static, missing, hostile])
    assert first == again == of_missing == expected
    assert isinstance(of_static, dict)
    assert {len(share) for share in of_static.values()} == {2}
    assert isinstance(of_hostile, NoAnswer)
    assert of_hostile.how == "error"


def test_kafka_python_reads_claims_as_its_leader_would() -> None:
    """Sticky's come in user data whatever the version, CooperativeSticky's in the fields that a version has."""
    asked = [case(member("c0", "t-2", "t-3", version=version, generation=4), member("c1"), name=f"v{version}") for version in range(4)]
    assert answered(STICKY, *asked) == [{"c0": ("t-2", "t-3"), "c1": ("t-0", "t-1")}] * 4
    kept = {"c0": ("t-2", "t-3"), "c1": ("t-0", "t-1")}
    first, *rest = answered(COOPERATIVE, *asked)
    assert rest == [kept] * 3
    assert first != kept


def test_a_subclass_is_of_its_library(mine: Path) -> None:
    (mine / "ours.py").write_text(
        "from kafka.coordinator.assignors.range import RangePartitionAssignor\nclass Ours(RangePartitionAssignor):\n    name = 'ours'\n"
    )
    assert (found("ours:Ours").name, found("ours:Ours").protocols) == ("ours", ("EAGER",))
    assert answered("ours:Ours", PAIR) == [{"c0": ("t-0", "t-1"), "c1": ("t-2", "t-3")}]


AIOKAFKA = {
    "__init__.py": "",
    "cluster.py": "class ClusterMetadata:\n    pass\n",
    "coordinator/__init__.py": "",
    "coordinator/protocol.py": """
import json
class Struct:
    def __init__(self, *values):
        self.values = values
    def encode(self):
        return json.dumps(self.values).encode()
    @classmethod
    def decode(cls, data):
        return cls(*json.loads(data))
class Metadata(Struct):
    subscription = property(lambda self: self.values[1])
    user_data = property(lambda self: self.values[2])
class Assignment(Struct):
    def partitions(self):
        return [(topic, number) for topic, numbers in self.values[1] for number in numbers]
class ConsumerProtocol:
    METADATA, ASSIGNMENT = Metadata, Assignment
""",
    "coordinator/assignor.py": """
from .protocol import Assignment, Metadata
class Keeps:
    name = "keeps"
    held, generation = None, -1
    @classmethod
    def metadata(cls, topics):
        return Metadata(0, list(topics), [cls.held, cls.generation])
    @classmethod
    def on_assignment(cls, assignment):
        cls.held = assignment.partitions()
    @classmethod
    def on_generation_assignment(cls, generation):
        cls.generation = generation
    @classmethod
    def assign(cls, cluster, members):
        return {
            name: Assignment(0, [(topic, [number]) for topic, number in each.user_data[0] or []] + [("generation", [each.user_data[1]])])
            for name, each in members.items()
        }
""",
}
"""aiokafka's assignor interface in small: classes that keep the state of their member."""


def test_class_state_is_each_members_own(mine: Path) -> None:
    for name, text in AIOKAFKA.items():
        (mine / "aiokafka" / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / "aiokafka" / name).write_text(text)
    asked = case(member("c0", "t-0", "t-1", generation=4), member("c1"), member("c2", "t-2", generation=5))
    with closing(subject("python:aiokafka.coordinator.assignor:Keeps")) as made:
        assert made.kind == "eager"
        assert made.ask([asked]) == [{"c0": ("t-0", "t-1", "generation-4"), "c1": ("generation--1",), "c2": ("t-2", "generation-5")}]


@pytest.mark.skipif(importlib.util.find_spec("aiokafka") is None, reason="aiokafka is not installed")
def test_aiokafka() -> None:
    assignors = "python:aiokafka.coordinator.assignors"
    assert answers(f"{assignors}.range:RangePartitionAssignor", PAIR) == [{"c0": ("t-0", "t-1"), "c1": ("t-2", "t-3")}]
    assert answers(f"{assignors}.sticky.sticky_assignor:StickyPartitionAssignor", PAIR) == [{"c0": ("t-0", "t-3"), "c1": ("t-1", "t-2")}]


def test_a_bad_line_does_not_end_the_worker() -> None:
    lines = ["nothing", "[]", '{"id": "a"}', '{"id": "b", "topics": {}, "members": [{"id": "c0", "subscribed": []}], "fresh": true}']
    worker = [sys.executable, "-m", "kipcheck.conformance.gate.workers.python", "mine:Sees"]
    ran = subprocess.run(worker, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    told = [json.loads(each) for each in ran.stdout.splitlines()]
    assert [each["id"] for each in told] == [None, None, "a", "b"]
    assert ["error" in each for each in told] == [True, True, True, False]
    assert "topics: expected a JSON object" in told[2]["error"]
