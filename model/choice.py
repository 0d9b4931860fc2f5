"""Explicit nondeterminism: whatever Kafka leaves to chance is asked of a `Choose`.

A step that needs an arbitrary decision (which member leads, which protocol wins a tie) calls ``choose(what, options)``.
The caller decides: `first` for a deterministic run, a Hypothesis draw for a random one, `every` for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

Option = TypeVar("Option")
Result = TypeVar("Result")


class Choose(Protocol):
    """Picks one of ``options`` (never empty); ``what`` names the decision, as in "leader"."""

    def __call__(self, what: str, options: Sequence[Option], /) -> Option: ...


def first(what: str, options: Sequence[Option], /) -> Option:
    """Always the first option."""
    return options[0]


def every(run: Callable[[Choose], Result]) -> Iterator[Result]:
    """The results of ``run`` under every sequence of decisions; ``run`` must be pure."""
    pending: list[tuple[int, ...]] = [()]
    while pending:
        script = pending.pop()
        taken: list[int] = []

        def choose(what: str, options: Sequence[Any], /, script: tuple[int, ...] = script, taken: list[int] = taken) -> Any:
            turn = len(taken)
            if turn < len(script):
                taken.append(script[turn])
            else:
                pending.extend((*taken, other) for other in range(len(options) - 1, 0, -1))
                taken.append(0)
            return options[taken[turn]]

        yield run(choose)
