"""What an assignor showed over all inputs: counts by kind of input, and the simplest input of each kind of fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...spec.assignors.case import Answer, Case
from ...spec.assignors.examine import Examined
from ...spec.assignors.judge import Fault
from .shrink import size

_SILENT = ("crash", "hang", "flood")


@dataclass(frozen=True, slots=True)
class Failure:
    """A fault, the simplest input that shows it with what was answered first, and the group of inputs that it was seen in."""

    group: str
    fault: Fault
    case: Case
    answer: Answer


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one input: the rules that it broke, and what `Examined` measured."""

    broken: frozenset[str]
    moved: int
    minimum: int | None
    rounds: int | None
    spread: int | None


@dataclass(slots=True)
class GroupTally:
    """Inputs of one kind. ``moved`` and ``minimum`` are summed over those whose minimum is known."""

    inputs: int = 0
    checked: Counter[str] = field(default_factory=Counter[str])
    unknown: dict[str, str] = field(default_factory=dict[str, str])
    failing: Counter[str] = field(default_factory=Counter[str])
    moved: int = 0
    minimum: int = 0
    rounds: int | None = None

    def add(self, found: Examined) -> None:
        """Counts one input."""
        self.inputs += 1
        self.checked.update(found.checked)
        for rule, why in found.unknown.items():
            self.unknown.setdefault(rule, why)
        self.failing.update({fault.rule for fault in found.faults})
        if found.minimum is not None:
            self.moved += found.moved
            self.minimum += found.minimum
        if found.rounds is not None:
            self.rounds = max(self.rounds or 0, found.rounds)

    @property
    def metrics(self) -> Mapping[str, object]:
        """For the report."""
        told: dict[str, object] = {"inputs": self.inputs, "moved": self.moved, "moved_minimum": self.minimum}
        return told if self.rounds is None else told | {"rounds_max": self.rounds}


class Tally:
    """Everything that one subject showed.

    ``figures`` are those of each input by its id, if they are to be compared; ``silent`` counts the inputs that brought a crash, a hang or a flood.
    """

    def __init__(self, *, figures: bool) -> None:
        self._compared = figures
        self.groups: dict[str, GroupTally] = {}
        self.figures: dict[str, Figures] = {}
        self.inputs = 0
        self.silent = 0
        self._simplest: dict[tuple[str, str, str], Failure] = {}

    def add(self, group: str, found: Examined) -> None:
        """Counts one input, and keeps it if nothing simpler fails in the same way."""
        self.inputs += 1
        self.groups.setdefault(group, GroupTally()).add(found)
        if self._compared:
            broken = frozenset(fault.rule for fault in found.faults)
            self.figures[found.case.id] = Figures(broken, found.moved, found.minimum, found.rounds, found.spread)
        self.silent += any(fault.rule == "assignor-answers" and fault.detail.startswith(_SILENT) for fault in found.faults)
        for fault in found.faults:
            key = (group, fault.rule, fault.detail)
            known = self._simplest.get(key)
            if known is None or size(found.case) < size(known.case):
                self._simplest[key] = Failure(group, fault, found.case, found.answer)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The simplest of each rule, group and kind of fault, simplest first."""
        return tuple(sorted(self._simplest.values(), key=lambda each: size(each.case)))
