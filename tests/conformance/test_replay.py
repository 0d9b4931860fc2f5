"""Replaying a captured trace: every step once, in time, with who owns what, and the findings where they rest."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kipcheck.conformance.cli import cli
from kipcheck.conformance.reports.story import Owners
from kipcheck.spec.events import Assigned, Closed, Lost, Owned, Revoked

EXAMPLES = Path(__file__).parents[2] / "traces" / "rules"


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "160"}).invoke(cli, ["replay", *arguments], catch_exceptions=False)


def test_a_finding_stands_where_it_rests() -> None:
    told = run(str(EXAMPLES / "exclusive-ownership.violates.jsonl"))
    assert told.exit_code == 0
    lines = [line.strip() for line in told.output.splitlines()]
    assert lines[0] == "exclusive-ownership-violates: VIOLATES"
    taken = next(number for number, line in enumerate(lines) if line.endswith("c2 takes orders-1"))
    assert lines[taken + 1] == "c1: orders-0 orders-1 c2: orders-1"
    assert lines[taken + 2].startswith("^ error exclusive-ownership: c2 took orders-1")
    assert re.match(r"error exclusive-ownership: .* \(b52f21bfe380\)", lines[-1])


def test_steps_are_in_time_whatever_the_order_of_lines(tmp_path: Path) -> None:
    lines = (EXAMPLES / "revoke-before-reassign.conforms.jsonl").read_text().splitlines()
    path = tmp_path / "trace.jsonl"

    def steps(lines: list[str]) -> list[str]:
        path.write_text("\n".join(lines) + "\n")
        return re.findall(r"^ *\d+ +([\d.]+) s", run(str(path)).output, re.MULTILINE)

    told = steps(lines)
    assert told == sorted(told, key=float)
    assert steps(lines[::-1]) == told


def test_several_groups_ask_for_a_name(tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text("".join((EXAMPLES / f"{rule}.violates.jsonl").read_text() for rule in ("exclusive-assignment", "exclusive-ownership")))
    unnamed = run(str(path))
    assert unnamed.exit_code == 2
    assert "several groups; name one of them with --group: exclusive-assignment-violates, exclusive-ownership-violates" in unnamed.output
    assert run(str(path), "--group", "exclusive-ownership-violates").exit_code == 0
    assert run(str(path), "--group", "nobody").exit_code == 2


@pytest.mark.parametrize("text", ["", "{}\n"])
def test_nothing_to_tell_is_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text(text)
    result = run(str(path))
    assert result.exit_code == 2
    assert "no group" in result.output


def test_hostile_names_are_shown_as_they_are(tmp_path: Path) -> None:
    lines = (EXAMPLES / "exclusive-ownership.violates.jsonl").read_text().splitlines()
    path = tmp_path / "hostile.jsonl"
    path.write_text("".join(json.dumps(json.loads(line)).replace("orders-1", "[red]x\\u001b[2J-1") + "\n" for line in lines))
    shown = run(str(path)).output
    assert "[red]x" in shown
    assert "\x1b" not in shown


def test_owners_follow_what_members_say() -> None:
    owned = Owners()
    for event in (
        Assigned(group="g", member="a", resources=("t-0", "t-1")),
        Assigned(group="g", member="b", resources=("t-1",)),
        Revoked(group="g", member="a", resources=("t-0",)),
    ):
        owned.apply(event)
    assert (owned.by_member(), owned.twice()) == ({"a": ("t-1",), "b": ("t-1",)}, {"t-1"})
    owned.apply(Lost(group="g", member="a", resources=("t-1",)))
    owned.apply(Owned(group="g", member="b", resources=("t-2", "t-3")))
    assert owned.by_resource() == {"t-2": ["b"], "t-3": ["b"]}
    owned.apply(Closed(group="g", member="b"))
    assert owned.by_member() == {"a": ()}


def test_names_are_no_markup(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    rows = [{"kind": "assigned", "group": "[/b]g", "member": "[/red]m[link=x]", "generation": 1, "resources": ["[bold]t-0"]}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for arguments in ((), ("--against", "model")):
        told = run(str(path), *arguments)
        assert told.exit_code in (0, 3)
        assert "[/b]g" in told.output
    assert "[/red]m[link=x] takes [bold]t-0" in run(str(path)).output
