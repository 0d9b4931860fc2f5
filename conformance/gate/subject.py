"""An assignor under test, whatever it is written in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...spec.assignors.case import Answer, Case
from ...spec.assignors.kinds import Kind


class Subject(Protocol):
    """Answers cases. ``name`` is the SPEC that made it; ``seconds`` is the time spent waiting for its answers so far.

    ``renews``: it makes a new leader for each case. One that doesn't is started anew for cases with ``before``, which takes its time.
    """

    name: str
    kind: Kind
    seconds: float
    renews: bool

    def ask(self, cases: Sequence[Case]) -> Sequence[Answer]:
        """An answer per case, in order. Each case is put to a new leader, which first answers ``case.before`` in order.

        A subject that can't tell leaders apart (an ``exec:`` command that ignores ``fresh``) answers cases without ``before`` as
        they come, and is started anew for those with. What goes wrong is an answer (`NoAnswer`), never an exception.
        """
        ...

    def close(self) -> None:
        """End everything that it started. May be called twice."""
        ...
