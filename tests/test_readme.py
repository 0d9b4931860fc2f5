"""The README shows what the commands really print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kipcheck.conformance.cli import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def printed(command: str) -> list[str]:
    result = CliRunner().invoke(cli, command.split()[1:], catch_exceptions=False)
    return [line.rstrip() for line in result.output.splitlines() if line.strip()]


@pytest.mark.parametrize(
    "command", [r"\$ (kipcheck validate traces/\S+)", r"\$ (kipcheck explore --popular \S+)", r"\$ (kipcheck replay \S+ --against model)"]
)
def test_the_examples_are_the_real_output(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    (shown,) = re.findall(command + r"\n(.*?)```", README, re.DOTALL)
    lines = [line.rstrip() for line in shown[1].splitlines() if line.strip() and line.strip() != "..."]
    real = iter(printed(shown[0]))
    assert len(lines) > 3
    assert [line for line in lines if line not in real] == [], "each line stands in the output, in this order"


def test_the_failing_gate_is_the_real_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    shown = [line.removeprefix(">").strip() for line in README.splitlines() if line.startswith(">")]
    ((spec),) = re.findall(r"`kipcheck gate --assignor '(builtin:\S+)' --report markdown=gate.md`", README)
    result = CliRunner().invoke(cli, ["gate", "--assignor", spec, "--report", "markdown=gate.md"], catch_exceptions=False)
    assert result.exit_code == 1
    real = [line.strip() for line in Path("gate.md").read_text().splitlines()]
    assert len(shown) > 40
    assert real[: len(shown)] == shown


def test_the_rule_table_is_the_catalogue() -> None:
    assert "\n".join(printed("kipcheck rules --markdown")) in README


def test_commands_and_files_that_the_readme_names_exist() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
    for command in set(re.findall(r"`kipcheck (\w+)", README)):
        assert command in cli.commands, command
