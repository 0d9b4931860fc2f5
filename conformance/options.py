"""Options that several commands share: how to judge, and where to report to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import click

from ..spec.results import Severity
from ..spec.rule import Rule
from .failed import Failed
from .report import Report
from .reports import RENDERERS
from .waivers import Waiver, WaiverError, load

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_Command = TypeVar("_Command", bound=Callable[..., Any])
Target = tuple[str, str]
"""A report's format, and the file that it goes to; ``-`` is standard output."""


def judging(command: _Command) -> _Command:
    """Adds ``--report``, ``--rules``, ``--skip``, ``--severity`` and ``--waivers``: what `targets`, `rule_ids`, `severities` and `accepted` read."""
    for option in (
        click.option("--waivers", type=click.Path(dir_okay=False), help="TOML file of findings that are accepted until a day."),
        click.option(
            "--severity", "severities", multiple=True, metavar="ID=error|warning|info", help="Judge a rule more or less severely."
        ),
        click.option("--skip", metavar="ID,..", help="Leave these rules out."),
        click.option("--rules", "only", metavar="ID,..", help="Check only these rules."),
        click.option(
            "--report",
            "reports",
            multiple=True,
            metavar="FORMAT=FILE",
            help=f"Also write a report: {', '.join(RENDERERS)}. May be given again; - is standard output.",
        ),
    ):
        command = option(command)
    return command


def duration(text: str) -> int:
    """A duration such as ``500ms``, ``2s`` or ``5m``, in milliseconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a duration; write it like 500ms, 2s or 5m")
    return int(float(match[1]) * _UNITS[match[2]])


def targets(reports: Sequence[str]) -> list[Target]:
    """What ``--report`` names. Raises `Failed` for a file that can't be written: better now than after the work."""
    return [_target(report) for report in reports]


def _target(text: str) -> Target:
    name, _, file = text.partition("=")
    if name not in RENDERERS or not file:
        raise click.UsageError(f"--report {text}: write FORMAT=FILE with FORMAT one of {', '.join(RENDERERS)}")
    if file != "-" and not os.access(Path(file).parent, os.W_OK):
        raise Failed(f"can't write the {name} report to {file}: {Path(file).parent} is no directory that can be written")
    return name, file


def write(report: Report, to: Sequence[Target], rules: Mapping[str, Rule]) -> None:
    """Every report that was asked for, and where it is."""
    for name, file in to:
        text = RENDERERS[name](report, rules)
        if file == "-":
            click.echo(text)
            continue
        try:
            Path(file).write_text(text, encoding="utf-8")
        except OSError as error:
            raise Failed(f"can't write the {name} report to {file}: {error.strerror}") from error
        click.echo(f"{name} report: {file}")


def save(file: str, content: bytes) -> None:
    """Write a file that was asked for. Raises `Failed` where that can't be done."""
    try:
        Path(file).write_bytes(content)
    except OSError as error:
        raise Failed(f"can't write {file}: {error.strerror}") from error


def rule_ids(text: str | None, option: str, rules: Mapping[str, Rule]) -> frozenset[str] | None:
    """A list of rules; None for none given."""
    if text is None:
        return None
    ids = frozenset(part.strip() for part in text.split(",") if part.strip())
    for unknown in sorted(ids - rules.keys()):
        raise click.UsageError(f"{option}: there is no rule {unknown!r}; `kipcheck rules` lists them")
    return ids


def severities_of(texts: Sequence[str], rules: Mapping[str, Rule]) -> Mapping[str, Severity]:
    """What ``--severity`` sets, by rule."""
    return dict(_severity(text, rules) for text in texts)


def _severity(text: str, rules: Mapping[str, Rule]) -> tuple[str, Severity]:
    rule, _, severity = text.partition("=")
    if rule not in rules or severity not in get_args(Severity):
        raise click.UsageError(f"--severity {text}: write ID=error, ID=warning or ID=info, with an ID that `kipcheck rules` lists")
    return rule, cast("Severity", severity)


def accepted(path: str | None) -> Sequence[Waiver]:
    """The waivers of a file."""
    try:
        return load(path) if path else ()
    except WaiverError as error:
        raise click.UsageError(str(error)) from error
