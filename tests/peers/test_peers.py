"""The example adapters answer as their clients' leaders would, and the page and case files of the matrix belong together."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kipcheck.conformance.gate.cases import load
from kipcheck.conformance.gate.process import Process
from kipcheck.spec.assignors.case import Case, Member, NoAnswer
from kipcheck.spec.assignors.catalogue import ASSIGNOR_RULES
from kipcheck.spec.assignors.kinds import Kind, cooperative

from .build import EXAMPLES, PEERS, ROOT, Missing, build

CHOICES: dict[str, tuple[Kind, ...]] = {
    "franz-go": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "sarama": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "kafka-go": ("range", "roundrobin"),
    "kafkajs": ("eager",),
    "platformatic-kafka": ("roundrobin", "cooperative-sticky"),
    "librdkafka": ("range", "roundrobin", "cooperative-sticky"),
    "shell": ("roundrobin",),
}
DECODES = ("franz-go", "sarama", "platformatic-kafka", "librdkafka")


@contextmanager
def adapter(peer: str, kind: Kind) -> Iterator[Process]:
    """The adapter, running; skips the test where it can't be built."""
    try:
        command = build(peer)
    except Missing as why:
        pytest.skip(f"{peer} {why}")
    if peer == "shell":
        command += [str(EXAMPLES / peer / f"{kind}.jq")]
    elif len(CHOICES[peer]) > 1:
        command += [kind]
    here = Path.cwd()
    os.chdir(ROOT)
    try:
        with closing(Process(peer, command, kind)) as process:
            yield process
    finally:
        os.chdir(here)


def group(*members: Member, topics: dict[str, int] | None = None) -> Case:
    return Case(id="x", topics={"a-b": 2, "t": 4} if topics is None else topics, members=members)


def member(name: str, *owned: str, **more: object) -> Member:
    return Member(id=name, subscribed=("a-b", "t"), owned=owned, generation=5 if owned else -1, **more)  # type: ignore[arg-type]


def test_every_example_is_built_somewhere() -> None:
    assert {path.name for path in (ROOT / EXAMPLES).iterdir() if path.is_dir()} == PEERS.keys() == CHOICES.keys()


@pytest.mark.parametrize(("peer", "kind"), [(peer, kind) for peer, kinds in CHOICES.items() for kind in kinds])
def test_whole_groups_are_answered_in_order(peer: str, kind: Kind) -> None:
    whole = {f"{topic}-{p}" for topic, count in (("a-b", 2), ("t", 4)) for p in range(count)}
    cases = [group(member("c0"), member("c1", instance="i")), group(member("c0")), group(member("c0"), member("c1"), member("c2"))]
    with adapter(peer, kind) as process:
        answers = process.ask(cases * 3)
    for case, answer in zip(cases * 3, answers, strict=True):
        assert not isinstance(answer, NoAnswer), answer.says
        assert answer.keys() == {each.id for each in case.members}
        assert sorted(tp for given in answer.values() for tp in given) == sorted(whole)


@pytest.mark.parametrize(("peer", "kind"), [(p, k) for p, kinds in CHOICES.items() for k in kinds if "sticky" in k])
def test_claims_reach_the_assignor(peer: str, kind: Kind) -> None:
    kept = {"c0": ("a-b-1", "t-0", "t-3"), "c1": ("a-b-0", "t-1", "t-2")}
    with adapter(peer, kind) as process:
        (answer,) = process.ask([group(*(member(name, *owned) for name, owned in kept.items()))])
    assert not isinstance(answer, NoAnswer)
    assert {name: sorted(given) for name, given in answer.items()} == {name: sorted(owned) for name, owned in kept.items()}


@pytest.mark.parametrize(("peer", "kind"), [(p, k) for p, kinds in CHOICES.items() for k in kinds if cooperative(k)])
def test_what_is_taken_from_an_owner_is_withheld(peer: str, kind: Kind) -> None:
    with adapter(peer, kind) as process:
        (answer,) = process.ask([group(member("c0", "a-b-0", "a-b-1", "t-0", "t-1", "t-2", "t-3"), member("c1"))])
    assert not isinstance(answer, NoAnswer)
    assert len(answer["c0"]) == 3
    assert answer["c1"] == ()


@pytest.mark.parametrize("peer", DECODES)
def test_raw_metadata_is_decoded(peer: str) -> None:
    only_t = bytes([0, 0, 0, 0, 0, 1, 0, 1]) + b"t" + bytes([255] * 4)
    assert b64encode(only_t) == b"AAAAAAABAAF0/////w=="
    with adapter(peer, CHOICES[peer][0]) as process:
        (answer,) = process.ask([group(member("c0", metadata=only_t), topics={"a-b": 0, "t": 1})])
    assert answer == {"c0": ("t-0",)}


def test_every_failing_cell_of_the_matrix_has_its_case_file_and_its_replay() -> None:
    page = (ROOT / "tests" / "peers" / "MATRIX.md").read_text(encoding="utf-8")
    files = {f"traces/gate/{path.name}" for path in (ROOT / "traces" / "gate").glob("*.json")}
    assert {word for word in page.split() if word.startswith("traces/gate/")} == files
    for file in files:
        cases, expected = load(str(ROOT / file))
        assert (len(cases), expected) == (1, {})
        assert any(file.endswith(f"-{rule}.json") for rule in ASSIGNOR_RULES)
        assert f"--cases {file}" in page


def test_locks_name_no_registry() -> None:
    for path in (ROOT / EXAMPLES).glob("*/package-lock.json"):
        assert all("resolved" not in package for package in json.loads(path.read_text())["packages"].values())
