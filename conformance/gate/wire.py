"""The lines between the gate and an assignor's process: a case goes out, an answer comes in (DESIGN 3.4)."""

from __future__ import annotations

import base64
import importlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from ...spec.assignors.case import ABSENT, Answer, Case, Member, NoAnswer

_LONGEST_TEXT = 300
"""Characters of foreign text that an answer quotes."""


class OutOfStep(ValueError):
    """A line that is no answer to the case it should answer, so that none of the lines behind it can be trusted; the ``id`` that it names."""

    def __init__(self, says: str, id: object = None) -> None:
        super().__init__(says)
        self.id = id


class Undecodable(ValueError):
    """JoinGroup metadata that ConsumerProtocol.deserializeSubscription refuses with a SchemaException."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Decoded JoinGroup metadata. What its version does not carry is empty, `ABSENT` or None. Source: ConsumerProtocolSubscription.json."""

    version: int
    topics: tuple[str, ...]
    owned: tuple[str, ...] = ()
    generation: int = ABSENT
    rack: str | None = None
    user_data: bytes | None = None


def line(case: Case, *, fresh: bool, metadata: bool = False) -> bytes:
    """``case`` as one line of JSON, without what came before it.

    ``fresh`` asks for an answer as of a leader that was never asked before. With ``metadata`` every member carries the raw bytes of its
    JoinGroup metadata, else only those have them whose bytes are not what its fields encode to.
    """
    told: dict[str, object] = {"id": case.id, "topics": dict(case.topics)}
    if case.racks:
        told["racks"] = dict(case.racks)
    told["members"] = [_member(member, metadata) for member in case.members]
    if fresh:
        told["fresh"] = True
    return json.dumps(told, separators=(",", ":")).encode("ascii") + b"\n"


def _member(member: Member, metadata: bool) -> dict[str, object]:
    told: dict[str, object] = {
        "id": member.id,
        "instance": member.instance,
        "subscribed": member.subscribed,
        "owned": member.owned,
        "generation": member.generation,
        "rack": member.rack,
        "version": member.version,
    }
    if metadata or member.metadata is not None:
        told["metadata"] = base64.b64encode(metadata_of(member)).decode("ascii")
    return told


def answer(text: bytes, expected: str) -> Answer:
    """The answer to the case ``expected`` in a line of an assignor's process. Raises `OutOfStep` if it answers something else."""
    try:
        told: object = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        raise OutOfStep(f"no JSON: {quoted(text)}") from None
    if not isinstance(told, dict):
        raise OutOfStep(f"no JSON object: {quoted(text)}")
    row = cast("dict[str, object]", told)
    if row.get("id") != expected:
        found = f"the id {shown(row['id'])}" if "id" in row else "no id"
        raise OutOfStep(f"answers with {found} where {shown(expected)} was asked", row.get("id"))
    error, assignment = row.get("error"), row.get("assignment")
    if error or (error is not None and assignment is None):
        return NoAnswer("error", one_line(error)) if isinstance(error, str) else _nonsense("error", "a string", error)
    if not isinstance(assignment, dict):
        return _nonsense("assignment", "an object of lists of topic partitions by member id", assignment)
    return _assignment(cast("dict[str, object]", assignment))


def _assignment(told: dict[str, object]) -> Answer:
    shares: dict[str, tuple[str, ...]] = {}
    for member, share in told.items():
        if not isinstance(share, list):
            return _nonsense(f"assignment.{member}", "a list of topic partitions", share)
        partitions = cast("list[object]", share)
        for partition in partitions:
            if type(partition) is not str:
                return _nonsense(f"assignment.{member}", "topic partitions such as orders-0", partition)
        shares[member] = tuple(cast("list[str]", partitions))
    return shares


def _nonsense(where: str, expected: str, found: object) -> NoAnswer:
    return NoAnswer("nonsense", one_line(f"{where}: expected {expected}, found {shown(found)}"))


def shown(value: object) -> str:
    """A JSON value for people, cut short."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else f"{text[:57]}..."


def quoted(text: bytes) -> str:
    """The beginning of a foreign line."""
    return repr(text[:60].decode("utf-8", "replace")) + ("..." if len(text) > 60 else "")


def one_line(text: str) -> str:
    """Foreign text as one bounded line without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _LONGEST_TEXT]).split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 3]}..."


def metadata_of(member: Member, user_data: bytes | None = None) -> bytes:
    """The JoinGroup metadata of ``member``: its own bytes if it has any, else its fields as its version encodes them."""
    if member.metadata is not None:
        return member.metadata
    schema = _schema()
    owned: dict[str, list[int]] = {}
    for partition in member.owned:
        topic, _, number = partition.rpartition("-")
        owned.setdefault(topic, []).append(int(number))
    return cast(
        "bytes",
        schema(
            version=member.version,
            topics=list(member.subscribed),
            user_data=user_data,
            owned_partitions=[schema.TopicPartition(topic=topic, partitions=numbers) for topic, numbers in owned.items()],
            generation_id=member.generation,
            rack_id=member.rack,
        ).encode(),
    )


def subscription(metadata: bytes) -> Subscription:
    """What a leader reads from JoinGroup ``metadata``; of a version above 3 what version 3 knows. Raises `Undecodable`."""
    try:
        told = _schema().decode(metadata)
    except Exception as error:
        raise Undecodable(one_line(f"JoinGroup metadata can't be decoded: {error}")) from error
    version = int(told.version)
    owned = cast("Sequence[Any] | None", told.owned_partitions) if version >= 1 else ()
    topics = cast("Sequence[str | None] | None", told.topics)
    if topics is None or None in topics or owned is None or any(each.topic is None or each.partitions is None for each in owned):
        raise Undecodable("JoinGroup metadata can't be decoded: null where a value is required")
    return Subscription(
        version=version,
        topics=tuple(cast("Sequence[str]", topics)),
        owned=tuple(f"{each.topic}-{number}" for each in owned for number in each.partitions),
        generation=told.generation_id if version >= 2 else ABSENT,
        rack=told.rack_id if version >= 3 else None,
        user_data=told.user_data,
    )


def _schema() -> Any:
    return from_kafka_python("kafka.protocol.consumer.metadata", "ConsumerProtocolSubscription")


@cache
def from_kafka_python(module: str, name: str) -> Any:
    """A class of kafka-python, which has no types, and which reads its schemas in a way that Python 3.11 and 3.12 warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return getattr(importlib.import_module(module), name)


def sent(member: Member) -> Subscription:
    """What a leader reads of ``member``, which its metadata's version limits. Raises `Undecodable`."""
    if member.metadata is not None:
        return subscription(member.metadata)
    return Subscription(
        version=member.version,
        topics=member.subscribed,
        owned=member.owned if member.version >= 1 else (),
        generation=member.generation if member.version >= 2 else ABSENT,
        rack=member.rack if member.version >= 3 else None,
    )
