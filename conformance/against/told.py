"""What comes of a replay against the reference model: frozen records, for reports and for other programs."""

from __future__ import annotations

from dataclasses import dataclass

from ...spec.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first event that the model can't do.

    ``number`` is the step that `kipcheck replay` shows the event as (``is_step``), or the last one before it if the event only confirms
    and is not shown. ``enabled`` is what the model would do instead, the likeliest first, ``blocked`` why it can't do what was captured.
    """

    event: Event
    number: int
    is_step: bool
    generation: int | None
    enabled: tuple[str, ...]
    blocked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One of those who are compared with the model: the group coordinator, a member, or a generation's leader.

    ``matched`` of its ``total`` captured events are what the model does, up to the divergence if there is one. ``unknown`` says what
    could not be told, and why.
    """

    name: str
    matched: int
    total: int
    divergence: Divergence | None = None
    unknown: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A group's capture against the reference model.

    ``matched`` of ``total`` steps, as `kipcheck replay` numbers them, come before the first ``divergence``. ``release`` names
    the coordinators that get furthest; several often do the same.
    """

    group: str
    matched: int
    total: int
    release: str | None
    subjects: tuple[Subject, ...]

    @property
    def divergence(self) -> Divergence | None:
        """The first of all."""
        found = [subject.divergence for subject in self.subjects if subject.divergence is not None]
        return min(found, key=lambda divergence: divergence.number, default=None)

    @property
    def unknown(self) -> str | None:
        """What could not be told; None if all of it could."""
        return "; ".join(f"{subject.name}: {subject.unknown}" for subject in self.subjects if subject.unknown) or None

    @property
    def status(self) -> int:
        """The exit status: 0 the model does all that was compared, 1 it would have done otherwise, 3 nothing could be compared."""
        if self.divergence is not None:
            return 1
        return 0 if any(subject.matched for subject in self.subjects) else 3
