"""A shrunk trace as text: lines of trace version 1, and a pytest that replays them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...spec.events import Event
from ...spec.results import Finding
from ...spec.trace import encode
from .pytest_case import docstring, literal, test_name

_FILE = '''\
"""{title}

{about}
"""

import json

from kipcheck.spec import check
from kipcheck.spec.trace import decode

FINGERPRINT = {fingerprint}
TRACE = """\\
{trace}"""


def test_{name}() -> None:
    events = [decode(json.loads(line)) for line in TRACE.splitlines()]
    found = [finding.message for group in check(events) for finding in group.findings if finding.fingerprint == FINGERPRINT]
    assert not found
'''


def trace_test(finding: Finding, events: Iterable[Event]) -> str:
    """A test that fails as long as ``finding`` is found in ``events``: what a mended rule or reader, or a trace recorded anew, is held to.

    Whatever came from the input is a literal in it.
    """
    trace = "".join(json.dumps(encode(event)) + "\n" for event in events)
    return _FILE.format(
        title=docstring(f"{finding.rule}: {finding.message}"),
        about=docstring("Written by kipcheck shrink."),
        fingerprint=literal(finding.fingerprint),
        trace=trace.replace("\\", "\\\\").replace('"""', '\\"\\"\\"'),
        name=test_name(finding.rule),
    )
