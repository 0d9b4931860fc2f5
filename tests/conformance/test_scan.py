"""The scanner: the right lines to the right session, every line accounted for, whatever the blocks."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.readers import registry
from kipcheck.conformance.readers.base import MalformedLine, Message, Taken
from kipcheck.conformance.readers.scan import TEXT_KEPT, TOO_LONG, Scan, blocks, literals, searchable, whole_lines
from kipcheck.conformance.readers.whole import MALFORMED_KEPT, MalformedAt
from kipcheck.spec.events import Event, Gap, Rebalance

MODIFIED = datetime(2024, 6, 1, tzinfo=UTC)


@dataclass
class Toy:
    """Takes ``NAME! group``; ``NAME+ n`` asks for lines that begin with a tab; ``NAME? `` is malformed."""

    name: str = "toy"
    seen: list[Message] = field(default_factory=list[Message])

    @property
    def anchors(self) -> tuple[str, ...]:
        return (f"{self.name}! ", f"{self.name}+ ", f"{self.name}? ")

    def open(self, file: str) -> ToySession:
        return ToySession(self)


@dataclass
class ToySession:
    reader: Toy
    inside: bool = False

    def feed(self, message: Message) -> Taken | None:
        self.reader.seen.append(message)
        name = self.reader.name
        if self.inside and message.text.startswith("\t"):
            return Taken(more=True)
        self.inside = f"{name}+ " in message.text
        if self.inside:
            return Taken(more=True)
        if f"{name}? " in message.text:
            raise MalformedLine("cut off")
        _, found, group = message.text.partition(f"{name}! ")
        return Taken((Rebalance(group=group, src=message.src),)) if found and group else None

    def close(self) -> Sequence[Event]:
        return (Gap(group=self.reader.name),)


def scan(text: bytes, *readers: Toy, size: int = 1 << 20, limit: int = 1 << 20) -> tuple[list[Event], Scan]:
    one = Scan("a.log", readers or (Toy(),), MODIFIED)
    return list(one.events(whole_lines(blocks(io.BytesIO(text), size), limit))), one


def groups(events: Sequence[Event]) -> list[tuple[str, int]]:
    return [(event.group, event.src.line) for event in events if event.src is not None]


def test_lines_are_taken_with_their_numbers() -> None:
    events, one = scan(b"x\ntoy! a\r\n\ny\n[toy! b\nz")
    assert groups(events) == [("a", 2), ("b", 5)]
    assert [event.src.text for event in events if event.src] == ["toy! a", "[toy! b"]
    assert events[-1] == Gap(group="toy")
    assert (one.tally.lines, one.tally.events, one.tally.irrelevant, one.tally.malformed) == (6, 2, 4, 0)
    assert one.taken_by == {"toy": 2}


def test_a_block_of_lines_ends_with_the_first_that_is_not_part_of_it() -> None:
    reader = Toy()
    events, one = scan(b"toy+ 3\n\tone\n\ttwo\ntoy! a\n\tthree\n", reader)
    assert groups(events) == [("a", 4)]
    assert (one.tally.events, one.tally.irrelevant) == (4, 1)
    assert [message.text for message in reader.seen] == ["toy+ 3", "\tone", "\ttwo", "toy! a"]


def test_the_first_reader_to_take_a_line_wins() -> None:
    first, second = Toy("one"), Toy("two")
    events, one = scan(b"two! one! a\ntwo! b\n", first, second)
    assert groups(events) == [("a", 1), ("b", 2)]
    assert one.taken_by == {"one": 1, "two": 1}
    assert [len(reader.seen) for reader in (first, second)] == [1, 1]


def test_malformed_lines_are_named() -> None:
    _, one = scan(b"x\ntoy? \n" * (MALFORMED_KEPT + 20))
    assert one.tally.malformed == MALFORMED_KEPT + 20
    assert len(one.tally.malformed_at) == MALFORMED_KEPT
    assert one.tally.malformed_at[1] == MalformedAt(4, "cut off")


def test_too_long_lines_are_malformed_and_passed() -> None:
    events, one = scan(b"toy! a\n" + b"toy! " * 100 + b"\ntoy! b\n" + b"x" * 65, size=16, limit=64)
    assert groups(events) == [("a", 1), ("b", 3)]
    assert one.tally.malformed_at == [MalformedAt(2, TOO_LONG), MalformedAt(4, TOO_LONG)]


def test_several_lines_inside_one_json_record() -> None:
    record = json.dumps({"message": "toy+ 2\n\tone\ntoy! a\n", "@timestamp": "2024-05-01T10:00:00Z"}).encode()
    reader = Toy()
    events, one = scan(b"{}\n" + record + b"\n", reader)
    assert groups(events) == [("a", 2)]
    assert (one.tally.lines, one.tally.events) == (2, 1)
    assert [message.text for message in reader.seen] == ["toy+ 2", "\tone", "toy! a"]
    assert {message.ts for message in reader.seen} == {1714557600_000000}


def test_odd_bytes() -> None:
    events, one = scan(b"\xef\xbb\xbftoy! a\xff\r\r\n\0\0toy! b\rc\n\x1b[31mtoy! d\x1b[0m")
    assert groups(events) == [("a\ufffd", 1), ("b\rc", 2), ("d", 3)]
    assert one.tally.lines == 3
    assert events[0].src is not None
    assert events[0].src.text == "toy! a\ufffd"


def test_the_source_keeps_the_beginning_of_a_line() -> None:
    events, _ = scan(b"toy! " + b"g" * 5000)
    assert events[0].src is not None
    assert len(events[0].src.text) == TEXT_KEPT
    assert len(events[0].group) == 5000


PIECES = st.sampled_from(
    [b"toy! a", b"toy+ 1", b"\tpart", b"toy? ", b"two! b", b"\n", b"\r\n", b"\n", b"x" * 30, b"toy", b"\0", b"\xc3", b'{"log":"toy! j\\n"}']
)
TEXTS = st.lists(PIECES, max_size=30).map(b"".join)


@given(TEXTS, st.integers(1, 40))
@settings(max_examples=400, derandomize=True, deadline=None)
def test_block_size_makes_no_difference(text: bytes, size: int) -> None:
    expected, whole = scan(text, Toy(), Toy("two"), limit=40)
    events, one = scan(text, Toy(), Toy("two"), size=size, limit=40)
    if max(map(len, text.split(b"\n"))) <= 40:
        assert (events, one.tally) == (expected, whole.tally)
    assert one.tally.lines == len(text.split(b"\n")) - (not text.split(b"\n")[-1])


@given(st.binary(max_size=300) | TEXTS, st.integers(1, 64))
@settings(max_examples=300, derandomize=True, deadline=None)
def test_every_line_is_accounted_for(text: bytes, size: int) -> None:
    one = Scan("a.log", registry.LOG_READERS, MODIFIED)
    for _ in one.events(whole_lines(blocks(io.BytesIO(text), size))):
        pass
    assert one.tally.lines == text.count(b"\n") + (not text.endswith(b"\n") and text != b"")


@given(st.lists(st.binary(max_size=12), max_size=12), st.integers(1, 20))
@settings(max_examples=300, derandomize=True, deadline=None)
def test_whole_lines_only_regroups(pieces: list[bytes], limit: int) -> None:
    found = list(whole_lines(iter(pieces), 1000))
    assert b"".join(block or b"" for block in found) == b"".join(pieces)
    assert all(block and block.endswith(b"\n") for block in found[:-1])
    for block in whole_lines(_small(pieces), limit):
        assert block is None or max(map(len, block.split(b"\n"))) <= limit


def _small(pieces: list[bytes]) -> Iterator[bytes]:
    return (piece[at : at + 1] for piece in pieces for at in range(len(piece)))


def test_literals_survive_json_and_cover_every_anchor() -> None:
    assert searchable('member "x" of group=g') == b" of group"
    assert literals(["for group ", "joins for group now", "other"]) == (b"for group ", b"other")
    for reader in registry.LOG_READERS:
        for anchor in reader.anchors:
            assert any(literal in json.dumps(anchor).encode() for literal in literals(reader.anchors)), anchor
            assert any(literal in anchor.encode() for literal in literals(reader.anchors)), anchor
