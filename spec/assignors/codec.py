"""Assignor cases as JSON: version 1 of the assignor case, to and from the records of `case`."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, cast, get_args

from .case import ABSENT, Answer, Assignment, Case, CaseError, InputClass, Member

_PARTITION = re.compile(r".+-(0|[1-9][0-9]*)", re.DOTALL)
_MOST_VERSION = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What a case of a ``--cases`` file says that the gate must find: exactly these rules ``violates``, none at all, or this ``assignment``."""

    violates: frozenset[str] = frozenset()
    assignment: Assignment | None = None


def encode(case: Case, answer: Answer | None = None) -> dict[str, object]:
    """The JSON object of ``case``, the inverse of `decode`; what has its default is left out.

    With an assignment as ``answer`` it also tells what the members were given, which `decode` does not read.
    """
    told: dict[str, object] = {"id": case.id, "topics": dict(case.topics)}
    if case.racks:
        told["racks"] = {partition: list(where) for partition, where in case.racks.items()}
    told["members"] = [_member_told(member) for member in case.members]
    if case.input_class != "given":
        told["class"] = case.input_class
    if case.before:
        told["before"] = [encode(each) for each in case.before]
    if isinstance(answer, Mapping):
        told["answer"] = {member: list(partitions) for member, partitions in answer.items()}
    return told


def _member_told(member: Member) -> dict[str, object]:
    told: dict[str, object] = {"id": member.id}
    if member.instance is not None:
        told["instance"] = member.instance
    told["subscribed"] = list(member.subscribed)
    if member.owned:
        told["owned"] = list(member.owned)
    if member.generation != ABSENT:
        told["generation"] = member.generation
    if member.rack is not None:
        told["rack"] = member.rack
    if member.version != _MOST_VERSION:
        told["version"] = member.version
    if member.metadata is not None:
        told["metadata"] = base64.b64encode(member.metadata).decode("ascii")
    return told


def decode(obj: object) -> tuple[Case, Expect | None]:
    """The case in ``obj``, as `json.loads` gives it, and what it expects. Raises `CaseError` that names the field; unknown fields are ignored."""
    row = _object(obj, "case")
    case = Case(
        id=_text(row, "id", "case"),
        topics={topic: _count(count, f"topics.{topic}") for topic, count in _object(row.get("topics"), "topics").items()},
        racks={_partition(p, "racks"): _texts(where, f"racks.{p}") for p, where in _object(row.get("racks") or {}, "racks").items()},
        members=tuple(_member(each, f"members[{number}]") for number, each in enumerate(_list(row.get("members"), "members"))),
        input_class=_input_class(row.get("class")),
        before=tuple(decode(each)[0] for each in _list(row.get("before") or [], "before")),
    )
    ids = [member.id for member in case.members]
    if twice := next((id_ for id_ in ids if ids.count(id_) > 1), None):
        raise CaseError(f"members: the id {twice!r} is there twice; every member has its own")
    return case, _expect(row.get("expect"))


def _member(obj: object, where: str) -> Member:
    row = _object(obj, where)
    generation = row.get("generation")
    if generation is not None and (not isinstance(generation, int) or isinstance(generation, bool) or generation < ABSENT):
        raise CaseError(f"{where}.generation: expected a number from {ABSENT} up or null, found {_found(generation)}")
    owned = tuple(_partition(each, f"{where}.owned") for each in _texts(row.get("owned") or [], f"{where}.owned"))
    if len(set(owned)) < len(owned):
        raise CaseError(f"{where}.owned: a partition is there twice")
    return Member(
        id=_text(row, "id", where),
        instance=_text_or_null(row, "instance", where),
        subscribed=_texts(row.get("subscribed"), f"{where}.subscribed"),
        owned=owned,
        generation=ABSENT if generation is None else generation,
        rack=_text_or_null(row, "rack", where),
        version=_version(row.get("version"), f"{where}.version"),
        metadata=_bytes(row.get("metadata"), f"{where}.metadata"),
    )


def _expect(obj: object) -> Expect | None:
    if obj is None:
        return None
    row = _object(obj, "expect")
    match row:
        case {"violates": rules} if len(row) == 1 and rules:
            return Expect(violates=frozenset(_texts(rules, "expect.violates")))
        case {"conforms": True} if len(row) == 1:
            return Expect()
        case {"assignment": assignment} if len(row) == 1:
            told = _object(assignment, "expect.assignment")
            return Expect(assignment={member: _texts(each, f"expect.assignment.{member}") for member, each in told.items()})
        case _:
            raise CaseError('expect: write {"violates": ["RULE-ID"]}, {"conforms": true} or {"assignment": {"MEMBER": ["TOPIC-0"]}}')


def _input_class(value: object) -> InputClass:
    if value is None:
        return "given"
    known: tuple[InputClass, ...] = get_args(InputClass)
    for each in known:
        if each == value:
            return each
    raise CaseError(f"class: expected one of {', '.join(known)}, found {_found(value)}")


def _version(value: object, where: str) -> int:
    if value is None:
        return _MOST_VERSION
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_VERSION:
        return value
    raise CaseError(f"{where}: expected 0 to {_MOST_VERSION}, found {_found(value)}")


def _bytes(value: object, where: str) -> bytes | None:
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else _wrong(where, "base64", value)
    except binascii.Error:
        return _wrong(where, "base64", value)


def _object(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        return _wrong(where, "a JSON object", value)
    return cast("Mapping[str, object]", value)


def _list(value: object, where: str) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else _wrong(where, "a list", value)


def _texts(value: object, where: str) -> tuple[str, ...]:
    found = _list(value, where)
    return tuple(each if isinstance(each, str) else _wrong(where, "a list of strings", each) for each in found)


def _text(row: Mapping[str, object], name: str, where: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) and value else _wrong(f"{where}.{name}", "a string that is not empty", value)


def _text_or_null(row: Mapping[str, object], name: str, where: str) -> str | None:
    value = row.get(name)
    return value if value is None or isinstance(value, str) else _wrong(f"{where}.{name}", "a string or null", value)


def _count(value: object, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return _wrong(where, "a partition count from 0 up", value)


def _partition(text: str, where: str) -> str:
    return text if _PARTITION.fullmatch(text) else _wrong(where, "a topic partition such as orders-0", text)


def _wrong(where: str, expected: str, value: object) -> NoReturn:
    raise CaseError(f"{where}: expected {expected}, found {_found(value)}")


def _found(value: object) -> str:
    return "nothing" if value is None else f"{str(value)[:60]!r}"
