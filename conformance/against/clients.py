"""Which members' clients the reference consumer stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...spec.events import Event

_JAVA = "[Consumer "
"""How Kafka's own consumer begins its log lines."""


def is_reference(member: str, events: Iterable[Event], *, whole: bool) -> bool:
    """Whether the member's own log shows that its client is Kafka's own.

    A ``whole`` trace that was never a log, so one of the model's, has the reference consumer's members.
    """
    own = [event for event in events if event.member == member]
    shown = any(event.src is not None and _JAVA in event.src.text for event in own if event.observer == "member")
    return shown or (whole and all(event.src is None or event.src.text[:1] in ("", "{") for event in own))


def release_of(member: str, events: Iterable[Event]) -> tuple[int, ...] | None:
    """The version of the member's client as its log told, None if it did not."""
    told = (
        str(event.extra["release"])
        for event in events
        if event.member == member and event.observer == "member" and "release" in event.extra
    )
    return next(map(kafka_version, told), None)


def kafka_version(told: str) -> tuple[int, ...]:
    """The version of Apache Kafka: Confluent's 5.x is 2.x, its 6.x is 2.6 and later, its 7.x is 3.x, its 8.x is 4.x. Empty if there is none."""
    match tuple(map(int, re.findall(r"\d{1,4}", told)[:3])):
        case (5, minor, *_):
            return 2, minor
        case (6, minor, *_):
            return 2, 6 + minor
        case (major, *rest) if major > 6:
            return major - 4, *rest
        case version:
            return version
