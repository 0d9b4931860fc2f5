"""`kipcheck explore` and `kipcheck prove` as a designer types them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kipcheck.conformance.cli import cli
from kipcheck.model import proofs
from kipcheck.model.protocol.assignor import Result as Bounded
from kipcheck.model.protocol.language import System
from kipcheck.model.protocol.systems import THEORIES
from kipcheck.spec import check
from kipcheck.spec.trace import decode


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, catch_exceptions=False, env={"COLUMNS": "160"})


class TestExplore:
    def test_all_states_of_a_small_group(self) -> None:
        result = run("explore", "--partitions", "1")
        assert result.exit_code == 0
        for said in ("S2 ", "holds", "withheld", "reached in", "eventually", "all of them"):
            assert said in result.output

    def test_a_bound_leaves_it_undecided(self) -> None:
        result = run("explore", "--max-states", "2k")
        assert (result.exit_code, "undecided" in result.output, "--max-states" in result.output) == (3, True, True)

    def test_a_popular_promise_is_false(self, tmp_path: Path) -> None:
        file = tmp_path / "run.jsonl"
        result = run("explore", "--popular", "exclusive-ownership-by-membership", "-o", str(file))
        assert result.exit_code == 1
        assert "violated in 18 steps" in result.output
        assert run("validate", str(file)).exit_code in (0, 3)

    def test_a_mutant_of_the_protocol(self, tmp_path: Path) -> None:
        file = tmp_path / "run.jsonl"
        result = run("explore", "--mutate", "older-claims-ignored", "-o", str(file))
        assert (result.exit_code, "violated in 27 steps" in result.output) == (1, True)
        assert run("validate", str(file)).exit_code == 1

    def test_a_mutant_of_the_reference(self, tmp_path: Path) -> None:
        file = tmp_path / "run.jsonl"
        result = run("explore", "--mutate", "static-member-leaves-on-close", "-o", str(file))
        assert (result.exit_code, "violated" in result.output) == (1, True)
        (group,) = check([decode(json.loads(line)) for line in file.read_text().splitlines()])
        assert [finding.rule for finding in group.findings if finding.severity == "error"] == ["static-close-sends-no-leave"]

    def test_a_mutant_that_needs_acts_out_of_turn(self) -> None:
        mutant = ("explore", "--mutate", "static-return-answered-while-completing")
        found = run(*mutant)
        assert (found.exit_code, "2 acts out of turn" in found.output) == (1, True)
        in_turn = run(*mutant, "--reorderings", "0")
        assert (in_turn.exit_code, "no acts out of turn" in in_turn.output) == (0, True)

    def test_a_scenario_without_a_defect(self) -> None:
        assert run("explore", "--scenario", "static-restart").exit_code == 0

    def test_the_list_names_everything(self) -> None:
        result = run("explore", "--list")
        for name in (
            "--scenario failover",
            "--mutate laggard-kept",
            "--mutate revoker-stays",
            "--popular static-partitions-held-while-absent",
        ):
            assert name in result.output

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("--mutate", "laggard-kep"), "did you mean laggard-kept?"),
            (("--scenario", "nowhere"), "there is no 'nowhere'"),
            (("--popular", "x", "--mutate", "y"), "--popular stands alone"),
            (("--max-memory", "lots"), "write it like 500k, 2M or 8G"),
        ],
    )
    def test_wrong_names_are_explained(self, arguments: tuple[str, ...], said: str) -> None:
        result = run("explore", *arguments)
        assert (result.exit_code, said in result.output) == (2, True)


class TestProve:
    def test_the_promises_of_one_rule(self) -> None:
        result = run("prove", "--rule", "one-member-per-instance", "--seeds", "1", "--matrix")
        assert result.exit_code == 0
        for said in ("S9", "all proved", "every action can happen", "decidable"):
            assert said in result.output

    def test_a_rule_without_a_proof_form(self) -> None:
        result = run("prove", "--rule", "rebalance-within-timeout")
        assert (result.exit_code, "no proof form" in result.output) == (3, True)

    def test_what_is_only_not_inductive_is_open(self, monkeypatch: pytest.MonkeyPatch) -> None:
        theory = THEORIES["consumer"]

        def mutant(mutations: frozenset[str]) -> System:
            return theory.build(mutations | {"both-ids-stay"})

        monkeypatch.setattr(proofs, "THEORIES", {theory.name: replace(theory, build=mutant)})
        result = run("prove", "--rule", "one-member-per-instance", "--seeds", "1")
        assert (result.exit_code, "not proved" in result.output) == (3, True)

    @pytest.mark.parametrize(("holds", "known", "status"), [(True, "", 0), (False, "Kafka does so", 0), (False, "", 1), (None, "", 3)])
    def test_an_input_of_the_assignor_refutes(self, holds: bool | None, known: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
        bounded = (Bounded("sticky", "...", "any size", True, 0.0), Bounded("balanced", "...", "any size", holds, 0.0, known=known))
        monkeypatch.setattr(proofs, "THEORIES", {})
        monkeypatch.setattr(proofs, "verify_assignor", lambda: bounded)
        assert run("prove").exit_code == status

    def test_a_mutant_is_refuted_or_harmless(self) -> None:
        assert run("prove", "--mutate", "both-ids-stay", "--seeds", "1").exit_code == 1
        harmless = run("prove", "--mutate", "take-before-revoke", "--seeds", "1")
        assert (harmless.exit_code, "harmless" in harmless.output) == (0, True)


@pytest.mark.parametrize("command", [("explore",), ("prove",), ("explore", "--popular", "static-partitions-held-while-absent")])
def test_without_the_extra_the_remedy_is_told(command: tuple[str, ...]) -> None:
    hide = (
        "import sys; sys.modules.update(z3=None, numpy=None, scipy=None, networkx=None); from kipcheck.conformance.cli import main; main()"
    )
    result = subprocess.run([sys.executable, "-c", hide, *command], capture_output=True, text=True, check=False)
    assert (result.returncode, "pip install 'kipcheck[prove]'" in result.stderr) == (2, True), result.stderr
