"""The assignor contract in a user's own suite, run by pytest as the user runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from kipcheck.conformance.gate.contract import assignor_contract
from kipcheck.spec.assignors.case import Member
from kipcheck.spec.assignors.catalogue import ASSIGNOR_RULES

SUITE = '''
import random

from kipcheck.conformance.gate.contract import assignor_contract


class Fair:
    """Partition by partition to whoever subscribes the topic and has least, then from those who have more to those who have less."""

    protocols = ("EAGER",)

    def assign(self, topics, members):
        shares = {member.id: [] for member in members}
        for topic, count in topics.items():
            takers = [member.id for member in members if topic in member.subscribed]
            for number in range(count):
                if takers:
                    shares[min(takers, key=lambda each: len(shares[each]))].append(f"{topic}-{number}")
        while move := self.better(members, shares):
            partition, giver, taker = move
            shares[giver].remove(partition)
            shares[taker].append(partition)
        return shares

    def better(self, members, shares):
        for taker in members:
            for giver, share in shares.items():
                if len(share) > len(shares[taker.id]) + 1:
                    for partition in share:
                        if partition.rpartition("-")[0] in taker.subscribed:
                            return partition, giver, taker.id


class Greedy(Fair):
    """The first one takes all."""

    def assign(self, topics, members):
        shares = {member.id: [] for member in members}
        for topic, count in topics.items():
            for member in [each for each in members if topic in each.subscribed][:1]:
                shares[member.id] += [f"{topic}-{number}" for number in range(count)]
        topics.clear()
        return shares


def fails(topics, members):
    raise KeyError("\\x1b[31m" if members else "nobody")


def dice(topics, members):
    shares = {member.id: [] for member in members}
    for topic, count in topics.items():
        for number in range(count):
            if takers := [member.id for member in members if topic in member.subscribed]:
                shares[random.choice(takers)].append(f"{topic}-{number}")
    return shares


test_fair = assignor_contract(Fair, examples=30)
test_greedy = assignor_contract(Greedy(), examples=30)
test_fails = assignor_contract(fails, rules=["assignor-answers"])
test_dice = assignor_contract(dice, kind="eager", rules=["deterministic"])
test_number = assignor_contract(3, rules=["balanced"])
test_unknown = assignor_contract("builtin:nobody", rules=["balanced"])
test_builtin = assignor_contract("builtin:roundrobin", rules=["balanced", "cooperative-withholds"], examples=30)
test_ended = assignor_contract("exec:exit 3", rules=["assignor-answers"])
'''


def run(folder: Path, *arguments: str) -> str:
    plugin = [] if entry_points(group="pytest11", name="kipcheck") else ["-p", "kipcheck.conformance.gate.plugin"]
    command = [sys.executable, "-m", "pytest", *plugin, "--hypothesis-seed=1", "-rA", "--color=no"]
    (folder / "test_mine.py").write_text(SUITE, encoding="utf-8")
    ran = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert "INTERNALERROR" not in ran.stdout
    return ran.stdout


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    return run(tmp_path_factory.mktemp("suite"))


def outcomes(told: str) -> Mapping[str, str]:
    return {name: word for word, name in re.findall(r"^(PASSED|FAILED|ERROR) test_mine\.py::(\S+)", told, re.MULTILINE)}


def failure(told: str, name: str) -> str:
    return re.search(rf"^_+ {re.escape(name)} _+\n(.*?)(?=^_{{5}}|^={{5}})", told, re.MULTILINE | re.DOTALL).group(1)  # type: ignore[union-attr]


def test_one_test_for_each_rule_whose_breach_is_an_error(told: str) -> None:
    errors = {rule for rule, entry in ASSIGNOR_RULES.items() if entry.severity == "error"}
    fair = {name: word for name, word in outcomes(told).items() if name.startswith("test_fair")}
    not_of_eager = {"cooperative-withholds", "converges-in-rounds", "follows-algorithm", "static-stable"}
    assert fair == {f"test_fair[{rule}]": "PASSED" for rule in errors - not_of_eager}
    assert "no input puts cooperative-withholds to the test: the assignor's kind is eager" in told


def test_a_failure_is_the_smallest_input_as_a_table_without_a_traceback(told: str) -> None:
    assert {name: word for name, word in outcomes(told).items() if word != "PASSED" and name.startswith("test_greedy")} == {
        "test_greedy[balanced]": "FAILED"
    }
    shown = failure(told, "test_greedy[balanced]")
    assert shown.startswith("Greedy breaks balanced: c0 has 2 partitions where c1 has 0, ")
    assert re.search(r"\n  member  subscribes  was given\n  c0 +\S.*  \S+, \S+\n  c1 .*  nothing\n", shown)
    assert '"members": [{"id": "c0", "subscribed": [' in shown
    assert "Traceback" not in shown
    assert "Falsifying" not in shown


def test_what_the_assignor_raises_is_a_finding(told: str) -> None:
    shown = failure(told, "test_fails[assignor-answers]")
    assert "the assignor fails: KeyError: " in shown
    assert "\x1b" not in shown
    assert "exit status 3" in failure(told, "test_ended[assignor-answers]")


def test_an_assignor_that_throws_dice_is_found_out(told: str) -> None:
    assert "dice breaks deterministic: the same input is answered in two ways" in failure(told, "test_dice[deterministic]")


def test_what_is_no_assignor_is_said_plainly(told: str) -> None:
    assert failure(told, "test_number[balanced]").startswith("int is no assignor: ")
    assert failure(told, "test_unknown[balanced]").startswith("there is no built-in assignor 'nobody'")
    assert "Traceback" not in failure(told, "test_unknown[balanced]")


def test_a_spec_is_held_to_what_it_promises(told: str) -> None:
    assert outcomes(told)["test_builtin[balanced]"] == "PASSED"
    assert "no input puts cooperative-withholds to the test: the assignor's kind is roundrobin" in told


def test_the_option_says_how_many_inputs(tmp_path: Path) -> None:
    shown = run(tmp_path, "--kipcheck-examples=1", "-k", "greedy and balanced")
    assert outcomes(shown) == {"test_greedy[balanced]": "PASSED"}


def test_a_rule_that_there_is_not() -> None:
    def assign(topics: Mapping[str, int], members: Sequence[Member]) -> Mapping[str, Sequence[str]]:
        return {}

    with pytest.raises(ValueError, match="did you mean balanced"):
        assignor_contract(assign, rules=["balance"])


def test_the_plugin_costs_next_to_nothing() -> None:
    heavy = ("hypothesis", "jinja2", "kafka", "pytest", "kipcheck.conformance.gate.contract")
    source = f"import sys, kipcheck.conformance.gate.plugin; print([name for name in {heavy!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "[]"
