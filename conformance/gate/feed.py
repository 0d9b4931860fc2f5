"""What the gate is asked to do."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...spec.assignors.case import Case
from ...spec.assignors.codec import Expect
from ...spec.assignors.kinds import Kind
from ...spec.results import Finding

EXAMPLES = 1500
"""Random inputs besides the exhaustive ones."""
HISTORIES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """What to feed an assignor.

    ``cases`` alone, if there are any, with what they expect by id. Else what the traces at the paths ``inputs`` asked of their
    leaders, every small input, ``histories`` of groups that the assignor leads, and ``examples`` random inputs by ``seed``: None is `EXAMPLES`, or
    with a ``budget`` as many as there is time for. ``budget`` seconds end it. ``growth``: also measure how the time of one answer grows with the group.
    ``stops_after``: inputs that bring a crash, a hang or a flood, after which nothing more is fed.
    """

    cases: Sequence[Case] = ()
    expected: Mapping[str, Expect] = field(default_factory=dict[str, Expect])
    inputs: Sequence[str] = ()
    examples: int | None = None
    histories: int = HISTORIES
    seed: int = 0
    budget: float | None = None
    growth: bool = False
    stops_after: int = 5

    @property
    def random(self) -> int:
        """How many random inputs to feed at most."""
        return self.examples if self.examples is not None else EXAMPLES if self.budget is None else sys.maxsize


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How to reach an assignor, and as what ``kind`` to judge it: see `adapters.subject`; ``connect``: as a Connect leader.

    ``timeout`` in seconds per answer. ``renews``: an ``exec:`` command that makes a new leader where a line says ``fresh``, or keeps nothing
    between cases, so that it need not be started anew for inputs with a past.
    """

    classpath: Sequence[str] = ()
    kind: Kind | None = None
    connect: bool = False
    timeout: float = 10.0
    metadata: bool = False
    renews: bool = False


def case_file(finding: Finding) -> str:
    """Where the command line writes the smallest input of a finding."""
    return f"kipcheck-gate/{finding.rule}-{finding.fingerprint}.json"
