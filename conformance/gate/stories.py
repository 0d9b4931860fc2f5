"""What histories show that no single answer does: a group led by the assignor breaks a promise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from ...spec.results import Argument, Finding, Settings
from .verdicts import mark, severity

GROUP = "history"


class Story(Protocol):
    """A history, whatever it is of: what of it breaks a promise, and the stage and acts that play it again."""

    @property
    def findings(self) -> Sequence[Finding]: ...

    @property
    def script(self) -> str: ...


_Story = TypeVar("_Story", bound=Story)


@dataclass(frozen=True)
class Stage(Generic[_Story]):
    """Where the histories of the subject ``name`` are played: how to ``replay`` a script, and how to ``shrink`` one."""

    name: str
    replay: Callable[[str], _Story]
    shrink: Callable[[str, Callable[[_Story], bool]], str]


def told(histories: Iterable[_Story], stage: Stage[_Story], settings: Settings) -> Iterator[Finding]:
    """A finding per rule that a history broke, with the shortest script that breaks it as its last steps."""
    shortest: dict[str, _Story] = {}
    for history in histories:
        for rule in dict.fromkeys(finding.rule for finding in history.findings):
            if rule not in shortest or len(history.script) < len(shortest[rule].script):
                shortest[rule] = history
    for rule, history in shortest.items():
        if settings.wants(rule):
            yield _told(rule, history, stage, settings)


def _told(rule: str, history: _Story, stage: Stage[_Story], settings: Settings) -> Finding:
    script = stage.shrink(history.script, lambda shorter: _of(rule, shorter) is not None)
    finding = _of(rule, stage.replay(script)) or _of(rule, history)
    assert finding is not None
    began, *acts = script.splitlines()
    return replace(
        finding,
        fingerprint=mark(rule, GROUP),
        severity=severity(rule, settings),
        cluster=stage.name,
        group=GROUP,
        epoch=0,
        argument=(*finding.argument, Argument(f"the group: {began}"), Argument(f"its history: {'; '.join(acts)}")),
    )


def _of(rule: str, history: Story) -> Finding | None:
    return next((finding for finding in history.findings if finding.rule == rule), None)
