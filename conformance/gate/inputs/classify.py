"""What is special about an input: its class, read off the case alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType

from ....spec.assignors.case import Case, InputClass


def classify(case: Case) -> InputClass:
    """The most special class that the case shows; ``clean`` if none.

    Three classes leave no mark in a case and are told by who made it: a recreated topic, a history, a trace.
    """
    for input_class, shown in MARKS.items():
        if shown(case):
            return input_class
    return "clean"


def shows(case: Case, input_class: InputClass) -> bool:
    """Whether the case has the mark of the class; always true of a class without one."""
    return MARKS[input_class](case) if input_class in MARKS else True


def _hostile(case: Case) -> bool:
    return case.hostile


def _reused(case: Case) -> bool:
    return bool(case.before)


def _deleted(case: Case) -> bool:
    return any(topic not in case.topics for topic in chain(_subscribed(case), (topic for topic, _ in _owned(case))))


def _shrunk(case: Case) -> bool:
    return any(number >= case.topics[topic] for topic, number in _owned(case) if topic in case.topics)


def _unsubscribed(case: Case) -> bool:
    return any(split(partition)[0] not in member.subscribed for member in case.members for partition in member.owned)


def _duplicate(case: Case) -> bool:
    return any(len(set(member.subscribed)) < len(member.subscribed) for member in case.members)


def _double(case: Case) -> bool:
    claims = [(partition, member.generation) for member in case.members for partition in member.owned]
    return len(set(claims)) < len(claims)


def _stale(case: Case) -> bool:
    newest = max((member.generation for member in case.members), default=0)
    return any(member.owned and member.generation < newest for member in case.members)


def _mixed_versions(case: Case) -> bool:
    return len({member.version for member in case.members}) > 1


def _racks(case: Case) -> bool:
    return any(member.rack is not None for member in case.members) and any(case.racks.values())


def _static(case: Case) -> bool:
    return any(member.instance is not None for member in case.members)


MARKS: Mapping[InputClass, Callable[[Case], bool]] = MappingProxyType(
    {
        "hostile metadata": _hostile,
        "leader reused": _reused,
        "deleted topic": _deleted,
        "shrunk topic": _shrunk,
        "unsubscribed owner": _unsubscribed,
        "duplicate topic": _duplicate,
        "mixed metadata versions": _mixed_versions,
        "double claim": _double,
        "stale generation": _stale,
        "racks": _racks,
        "static members": _static,
    }
)
"""How to tell each class, the most special first."""


def split(partition: str) -> tuple[str, int]:
    """The topic and the number of ``topic-number``; a topic's name may hold dashes."""
    topic, _, number = partition.rpartition("-")
    return topic, int(number)


def _subscribed(case: Case) -> Iterator[str]:
    return (topic for member in case.members for topic in member.subscribed)


def _owned(case: Case) -> Iterator[tuple[str, int]]:
    return (split(partition) for member in case.members for partition in member.owned)
