"""One assignor beside another on the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...spec.assignors.catalogue import ASSIGNOR_RULES
from ..report import Compared, Comparison
from .subject import Subject
from .tally import Figures, Tally

SLOWER = 1.5
"""From this factor on more time is a regression; less is noise."""


def compared(subject: Subject, tally: Tally, baseline: Subject, other: Tally) -> Comparison:
    """Violations rule by rule, movement, balance, rounds and time; figures that only one of them has count for neither."""
    pairs = [(tally.figures[name], other.figures[name]) for name in tally.figures if name in other.figures]
    time = _time(subject, tally, baseline, other)
    return Comparison(subject.name, baseline.name, (*_violations(pairs), *_figures(pairs), time))


Pairs = Sequence[tuple[Figures, Figures]]


def _violations(pairs: Pairs) -> Iterator[Compared]:
    for rule in ASSIGNOR_RULES:
        one, two = (sum(rule in pair[side].broken for pair in pairs) for side in (0, 1))
        new = sum(rule in mine.broken and rule not in theirs.broken for mine, theirs in pairs)
        if one or two:
            yield Compared(f"{rule} violated" + (f" ({new:,} newly)" if new and two else ""), "inputs", one, two, new > 0)


def _figures(pairs: Pairs) -> Iterator[Compared]:
    known: tuple[tuple[str, str, Callable[[Figures], int | None]], ...] = (
        ("moved beyond the minimum", "partitions", lambda each: None if each.minimum is None else max(0, each.moved - each.minimum)),
        ("moved in the first round", "partitions", lambda each: each.moved),
        ("largest minus smallest load when settled", "partitions", lambda each: each.spread),
        ("rounds to settle", "rounds", lambda each: each.rounds),
    )
    for what, unit, figure in known:
        both = [
            (one, two) for one, two in ((figure(mine), figure(theirs)) for mine, theirs in pairs) if one is not None and two is not None
        ]
        one, two = sum(mine for mine, _ in both), sum(theirs for _, theirs in both)
        yield Compared(f"{what}, over {len(both):,} inputs", unit, one, two, one > two)


def _time(subject: Subject, tally: Tally, baseline: Subject, other: Tally) -> Compared:
    one, two = subject.seconds / max(1, tally.inputs) * 1000, baseline.seconds / max(1, other.inputs) * 1000
    return Compared("time per input", "ms", round(one, 3), round(two, 3), one > SLOWER * two)
