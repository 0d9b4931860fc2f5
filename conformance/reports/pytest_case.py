"""The smallest input that fails as a test for the user's own suite: a Python file for pytest, ASCII only."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from types import MappingProxyType

from ...spec.results import Finding
from .cases import WIDTH, laid_out

_FILE = '''\
"""{title}

{about}
"""

from kipcheck.conformance.gate import {names}
from kipcheck.spec.assignors.codec import decode

ASSIGNOR = {spec}
BROKEN = {rule}
INPUT = {case}


def test_{name}() -> None:
    case, _ = decode(INPUT)
    report = gate(ASSIGNOR, cases=[case]{how})
    messages = [finding.message for finding in report.findings if finding.rule in (BROKEN, "assignor-answers")]
    assert not messages
'''


def render_test(finding: Finding, spec: str, how: Mapping[str, object] = MappingProxyType({})) -> str:
    """A test that puts the finding's case to the assignor ``spec`` again: it fails until the rule holds.

    ``how`` are the fields of the gate's ``How`` that reached the assignor, where they are not its defaults. Whatever came from the input
    is a literal in the file. Raises `ValueError` for a finding without a case.
    """
    if finding.case is None:
        raise ValueError(f"finding {finding.fingerprint} has no input that could be played again")
    case = {key: value for key, value in finding.case.items() if key != "answer"}
    return _FILE.format(
        title=docstring(f"{finding.rule}: {finding.message}"),
        about=docstring("Written by kipcheck gate. It fails while the assignor does this and passes once it does not."),
        spec=literal(spec),
        rule=literal(finding.rule),
        case=laid_out(case, literal, last=",", step="    "),
        names="How, gate" if how else "gate",
        how=f", how=How({_arguments(how)})" if how else "",
        name=test_name(finding.rule),
    )


def _arguments(given: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={laid_out(value, literal, last='')}" for name, value in given.items())


def test_name(rule: str) -> str:
    """What stands for a rule in the name of a test."""
    return re.sub(r"[^a-z0-9]+", "_", rule.lower()).strip("_") or "case"


def docstring(text: str) -> str:
    """Lines of a docstring."""
    return textwrap.fill(_escaped(" ".join(text.split())), WIDTH, break_long_words=False, break_on_hyphens=False)


def literal(value: object) -> str:
    return f'"{_escaped(value)}"' if isinstance(value, str) else repr(value)


def _escaped(text: str) -> str:
    """What stands between double quotes for ``text``."""
    return text.encode("unicode_escape").decode("ascii").replace('"', '\\"')
