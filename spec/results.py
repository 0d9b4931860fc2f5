"""What a check says: findings with their argument, a status per rule, a verdict per group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Literal

from .events import Event, Source

Severity = Literal["error", "warning", "info"]
Metrics = Mapping[str, object]


class Status(StrEnum):
    """Of one rule in one group. ``UNKNOWN``: the evidence that the rule needs was never there."""

    PASS = "pass"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


class Verdict(StrEnum):
    """Of a group, or of a trace: the worst of its groups."""

    CONFORMS = "CONFORMS"
    VIOLATES = "VIOLATES"
    UNDETERMINED = "UNDETERMINED"


@dataclass(frozen=True, slots=True)
class Argument:
    """One step of a finding's short proof: what is known, and the line that shows it."""

    says: str
    evidence: Source | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A promise that did not hold.

    ``message`` is the finding in a sentence, ``argument`` its proof step by step, ``relaxed`` names the documented
    behaviour of a release that explains it, ``advice`` says what to do about it. Of an assignor, ``case`` is the smallest
    input that fails (an assignor case as JSON), and ``replay`` the command that shows it again.
    """

    fingerprint: str
    rule: str
    severity: Severity
    cluster: str
    group: str
    epoch: int
    generation: int | None
    members: tuple[str, ...]
    resources: tuple[str, ...]
    message: str
    argument: tuple[Argument, ...]
    relaxed: str | None = None
    advice: str | None = None
    case: Mapping[str, object] | None = None
    replay: str | None = None

    @property
    def evidence(self) -> tuple[Source, ...]:
        """The lines that the argument rests on, each once, in the argument's order."""
        return tuple(dict.fromkeys(step.evidence for step in self.argument if step.evidence is not None))


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule in one group: how often it was checked, and why it could not be (more often)."""

    status: Status
    checked: int = 0
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """Everything that a check says of one group."""

    cluster: str
    group: str
    protocol: str | None
    verdict: Verdict
    rules: Mapping[str, RuleResult]
    metrics: Metrics
    findings: tuple[Finding, ...]
    advice: tuple[str, ...] = ()
    events: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """A rule was checked ``times`` times and held."""

    times: int = 1


@dataclass(frozen=True, slots=True)
class Unknown:
    """A rule would have applied, but evidence is missing."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A rule did not hold. ``severity`` and ``relaxed`` override the rule's own where a release is known to do this."""

    epoch: int
    generation: int | None
    members: tuple[str, ...]
    resources: tuple[str, ...]
    message: str
    argument: tuple[Argument, ...]
    severity: Severity | None = None
    relaxed: str | None = None
    advice: str | None = None
    detail: str = ""
    """Tells apart findings of one rule, generation and resources; must not hold member ids or line numbers."""


Outcome = Held | Unknown | Broken


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a whole: VIOLATES if any part does, UNDETERMINED if there is no part or any is, else CONFORMS."""
    seen = set(verdicts)
    if Verdict.VIOLATES in seen:
        return Verdict.VIOLATES
    return Verdict.CONFORMS if seen == {Verdict.CONFORMS} else Verdict.UNDETERMINED


def fingerprint(rule: str, cluster: str, group: str, broken: Broken) -> str:
    """12 hex digits that name a finding by what happened: no line, no member id, no clock goes in."""
    return digest(rule, cluster, group, str(broken.epoch), str(broken.generation), *sorted(broken.resources), broken.detail)


def digest(*parts: str) -> str:
    """12 hex digits of some texts."""
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def shown(event: Event | None, says: str) -> Argument:
    """An argument step resting on ``event``'s line."""
    return Argument(says, event.src if event is not None else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a check may assume. Durations in milliseconds.

    ``clock_skew_ms`` bounds how far two clocks differ; ``max_delay_ms`` is scheduled.rebalance.max.delay.ms where the
    trace does not show it; ``severity`` overrides a rule's own.
    """

    clock_skew_ms: int = 1000
    max_delay_ms: int = 300_000
    only: frozenset[str] | None = None
    skip: frozenset[str] = frozenset()
    severity: Mapping[str, Severity] = field(default_factory=dict[str, Severity])

    def wants(self, rule: str) -> bool:
        """Whether a rule is to be judged at all."""
        return rule not in self.skip and (self.only is None or rule in self.only)
