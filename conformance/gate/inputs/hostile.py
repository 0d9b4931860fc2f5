"""Raw JoinGroup metadata that no sane client sends: what a leader must survive when one member is broken, newer or malicious.

Layout: ConsumerProtocolSubscription.json of Apache Kafka, version 3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ....spec.assignors.case import ABSENT, Member
from .classify import split

_MOST_INT16, _MOST_INT32 = 2**15 - 1, 2**31 - 1


def hostile(member: Member) -> Iterator[tuple[str, Member]]:
    """``member`` with each kind of hostile metadata, by a name that tells it; always the same ones.

    Its fields are what a reader finds in the bytes: no topics and no claim where they can't be read.
    """
    layout = _layout(member)
    nothing = replace(member, subscribed=(), owned=(), generation=ABSENT, rack=None)
    for name, metadata in (*_cut(layout.encoded), *_unreadable(layout)):
        yield name, replace(nothing, metadata=metadata)
    for name, metadata in _readable(layout):
        yield name, replace(member, metadata=metadata)
    yield from _misread(member, layout)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The fields in their order, each encoded."""

    version: bytes
    topics: bytes
    user_data: bytes
    owned: bytes
    generation: bytes
    rack: bytes

    @property
    def encoded(self) -> bytes:
        return self.version + self.topics + self.user_data + self.owned + self.generation + self.rack


def _layout(member: Member) -> _Layout:
    numbers: dict[str, list[int]] = {}
    for topic, number in map(split, member.owned):
        numbers.setdefault(topic, []).append(number)
    return _Layout(
        version=_int16(3),
        topics=_array([_string(topic) for topic in member.subscribed]),
        user_data=_bytes(None),
        owned=_array([_claim(topic, found) for topic, found in numbers.items()]),
        generation=_int32(member.generation),
        rack=_string(member.rack),
    )


def _cut(whole: bytes) -> Iterator[tuple[str, bytes]]:
    yield "no bytes", b""
    yield "half a version", whole[:1]
    yield "a version alone", whole[:2]
    yield "half of it", whole[: len(whole) // 2]
    yield "all but the last byte", whole[:-1]
    yield "nothing but 0xff", b"\xff" * 64
    yield "text", b'{"topics": ["t"], "version": 3}'


def _unreadable(layout: _Layout) -> Iterator[tuple[str, bytes]]:
    spoiled = {
        "version -1": replace(layout, version=_int16(-1)),
        "version -32768": replace(layout, version=_int16(-_MOST_INT16 - 1)),
        "-1 topics": replace(layout, topics=_int32(-1), owned=_int32(0), generation=_int32(ABSENT), rack=_string(None)),
        "-2 topics": replace(layout, topics=_int32(-2)),
        "2147483647 topics": replace(layout, topics=_int32(_MOST_INT32)),
        "a topic of -1 bytes": replace(layout, topics=_int32(1) + _int16(-1)),
        "a topic of -32768 bytes": replace(layout, topics=_int32(1) + _int16(-_MOST_INT16 - 1)),
        "a topic of 32767 bytes that are not there": replace(layout, topics=_int32(1) + _int16(_MOST_INT16)),
        "a topic not in UTF-8": replace(layout, topics=_int32(1) + _int16(4) + b"\xff\xfe\xc0\x80"),
        "user data of -2 bytes": replace(layout, user_data=_int32(-2)),
        "user data of 2147483647 bytes": replace(layout, user_data=_int32(_MOST_INT32)),
        "2147483647 owned topics": replace(layout, owned=_int32(_MOST_INT32)),
        "2147483647 owned partitions": replace(layout, owned=_int32(1) + _string("t") + _int32(_MOST_INT32)),
        "-2 owned partitions": replace(layout, owned=_int32(1) + _string("t") + _int32(-2)),
        "a rack not in UTF-8": replace(layout, rack=_int16(2) + b"\xff\xff"),
    }
    return ((name, each.encoded) for name, each in spoiled.items())


def _readable(layout: _Layout) -> Iterator[tuple[str, bytes]]:
    yield "version 32767", replace(layout, version=_int16(_MOST_INT16)).encoded
    yield "trailing bytes", layout.encoded + b"\x00\xff\x7f"
    yield "a tail of 64 KiB", layout.encoded + b"\x00" * 2**16
    for name, user_data in (
        ("empty user data", b""),
        ("garbage for user data", b"\xde\xad\xbe\xef"),
        ("user data of 2147483647 topics", _int32(_MOST_INT32)),
        ("user data with partition -1", _array([_claim("t", [-1])]) + _int32(1)),
    ):
        yield name, replace(layout, user_data=_bytes(user_data)).encoded


def _misread(member: Member, layout: _Layout) -> Iterator[tuple[str, Member]]:
    """What can be read, and says something else than any client does."""
    topic = member.subscribed[0] if member.subscribed else "t"
    least = replace(layout, generation=_int32(-_MOST_INT32 - 1))
    yield "generation -2147483648", replace(member, generation=ABSENT, metadata=least.encoded)
    yield "a rack of 0 bytes", replace(member, rack=None, metadata=replace(layout, rack=_string("")).encoded)
    twice = replace(member, subscribed=(*member.subscribed, *member.subscribed))
    yield "every topic twice", replace(twice, metadata=_layout(twice).encoded)
    for numbers, owned in (([-1], ()), ([_MOST_INT32], (f"{topic}-{_MOST_INT32}",)), ([0, 0], (f"{topic}-0",))):
        claim = replace(layout, owned=_array([_claim(topic, numbers)]))
        yield f"owned partitions {numbers}", replace(member, owned=owned, metadata=claim.encoded)


def _claim(topic: str, numbers: Sequence[int]) -> bytes:
    return _string(topic) + _array([_int32(number) for number in numbers])


def _int16(number: int) -> bytes:
    return struct.pack(">h", number)


def _int32(number: int) -> bytes:
    return struct.pack(">i", number)


def _array(items: Sequence[bytes]) -> bytes:
    return _int32(len(items)) + b"".join(items)


def _string(text: str | None) -> bytes:
    encoded = b"" if text is None else text.encode()
    return _int16(-1 if text is None else len(encoded)) + encoded


def _bytes(data: bytes | None) -> bytes:
    return _int32(-1 if data is None else len(data)) + (data or b"")
