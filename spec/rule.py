"""A rule is one promise with one id; a monitor is its executable meaning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from .events import Event
from .results import Outcome, Settings, Severity

if TYPE_CHECKING:
    from .coordinator import Coordinator
    from .rounds import Round

Kip = Literal["group protocol", "KIP-429", "KIP-345", "KIP-415", "cost", "assignors"]
Slice = Literal["resource", "member", "group"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The catalogue entry.

    ``promise`` is one sentence; ``clause`` the KIP section and ``source`` the Kafka class that it comes from; ``needs``
    the event kinds without which it can't be checked; ``unknown_when`` says when the verdict is unknown although they
    are there; ``exceptions`` are behaviours that look like a violation and are legal. ``slice`` is the least part of a
    group's events that decides it.
    """

    id: str
    kip: Kip
    promise: str
    clause: str
    source: str
    needs: tuple[str, ...]
    unknown_when: str
    exceptions: tuple[str, ...] = ()
    severity: Severity = "error"
    slice: Slice = "group"


class Monitor:
    """Folds one group's events and says what held. One instance watches one group, once.

    The fold has two orders. ``request`` receives what the coordinator saw, in the coordinator's order. ``round``
    receives each generation once it is complete, in the order of (epoch, generation), with the few before it in
    ``past``; what members saw is in it, placed by generation and never by their clocks. ``end`` closes the trace.

    ``hears`` are the kinds of events that ``request`` is called with: no other one is any of its business.
    """

    rule: ClassVar[Rule]
    hears: ClassVar[tuple[type[Event], ...]] = ()

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def request(self, event: Event, group: Coordinator) -> Iterator[Outcome]:
        """One event that the coordinator saw; ``group`` is its state *before* this event."""
        yield from ()

    def round(self, now: Round, past: Sequence[Round]) -> Iterator[Outcome]:
        """One complete generation; ``past`` holds up to `WINDOW` rounds before it, latest last."""
        yield from ()

    def end(self, past: Sequence[Round]) -> Iterator[Outcome]:
        """The trace ends; ``past`` holds its last rounds."""
        yield from ()
