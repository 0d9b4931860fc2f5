"""Finds in a log the few lines that a reader may want, and leaves the rest untouched.

The file passes once, in blocks of whole lines. All anchors of all readers are searched at once (Aho-Corasick), and only
the lines around the hits are cut out. Every line is accounted for in the tally, and `Tally.lines` is at any time the
number of the last line passed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO

from ahocorasick_rs import BytesAhoCorasick, Implementation

from ...spec.events import Event, Source
from . import prefix
from .base import LogReader, MalformedLine, Message, Session, Taken
from .whole import Tally

BLOCK = 1 << 20
"""Bytes read at once."""
MAX_LINE = 16 << 20
"""A longer line is malformed, and passed without being held in memory."""
TOO_LONG = f"line too long (more than {MAX_LINE >> 20} MiB)"
TEXT_KEPT = 2000
"""Characters of a line that its `Source` keeps."""

_ESCAPED_BY_JSON = re.compile(r"""["\\/<>&='+\x00-\x1f\x7f-\U0010ffff]+""")


@dataclass(slots=True)
class _Offer:
    """A session at work, and literals one of which is in every line that it may take."""

    name: str
    literals: tuple[bytes, ...]
    session: Session


@dataclass(slots=True)
class Scan:
    """One pass of ``readers`` over the log ``file``. ``modified`` completes times without a year.

    Iterate `events` once; ``tally`` then accounts for every line, ``taken_by`` counts what each reader took.
    """

    file: str
    readers: Sequence[LogReader]
    modified: datetime
    tally: Tally = field(default_factory=Tally)
    taken_by: Counter[str] = field(default_factory=Counter[str])
    _offers: list[_Offer] = field(default_factory=list[_Offer])
    _waiting: _Offer | None = None

    def events(self, blocks: Iterable[bytes | None]) -> Iterator[Event]:
        """What the log in ``blocks`` (as `whole_lines` gives them) tells."""
        self._offers = [_Offer(reader.name, literals(reader.anchors), reader.open(self.file)) for reader in self.readers]
        anchors = [anchor for reader in self.readers for anchor in reader.anchors]
        search = BytesAhoCorasick(literals(anchors), implementation=Implementation.DFA)
        for block in blocks:
            if block is None:
                self._waiting = None
                self.tally.broken(self.tally.lines + 1, TOO_LONG)
            else:
                yield from self._block(block, search)
        for offer in self._offers:
            yield from offer.session.close()

    def _block(self, block: bytes, search: BytesAhoCorasick) -> Iterator[Event]:
        hits = iter([start for _, start, _ in search.find_matches_as_indexes(block)])
        hit, at, size = -1, 0, len(block)
        while at < size:
            start = at
            if self._waiting is None:
                while hit is not None and hit < at:
                    hit = next(hits, None)
                if hit is None:
                    self.tally.skipped(block.count(b"\n", at) + (not block.endswith(b"\n")))
                    return
                start = max(block.rfind(b"\n", at, hit) + 1, at)
                self.tally.skipped(block.count(b"\n", at, start))
            at = block.find(b"\n", start) + 1 or size
            yield from self._line(block[start:at])

    def _line(self, raw: bytes) -> Iterator[Event]:
        offers = [offer for offer in self._offers if any(literal in raw for literal in offer.literals)]
        if not offers and self._waiting is None:
            self.tally.skipped()
            return
        number = self.tally.lines + 1
        took, why = False, None
        for message in self._messages(raw, number):
            try:
                answer = self._offer(message, offers)
            except MalformedLine as malformed:
                why = str(malformed)
            else:
                if answer is not None:
                    took = True
                    yield from answer.events
        if why is not None:
            self.tally.broken(number, why)
        elif took:
            self.tally.took()
        else:
            self.tally.skipped()

    def _messages(self, raw: bytes, number: int) -> Iterator[Message]:
        line = raw.decode("utf-8", errors="replace")
        if number == 1:
            line = line.removeprefix("\ufeff")
        src = Source(self.file, number, line.rstrip("\r\n")[:TEXT_KEPT])
        bare = prefix.strip(line, self.modified)
        for text in bare.text.split("\n"):
            yield Message(text.rstrip("\r"), bare.ts, bare.stream, src)

    def _offer(self, message: Message, offers: Sequence[_Offer]) -> Taken | None:
        waiting, self._waiting = self._waiting, None
        for offer in (waiting, *offers) if waiting is not None else offers:
            answer = offer.session.feed(message)
            if answer is not None:
                self.taken_by[offer.name] += 1
                self._waiting = offer if answer.more else None
                return answer
        return None


def searchable(anchor: str) -> bytes:
    """The longest part of ``anchor`` that looks the same in a JSON string, whoever wrote that."""
    return max(_ESCAPED_BY_JSON.split(anchor), key=len).encode()


def literals(anchors: Iterable[str]) -> tuple[bytes, ...]:
    """What to search for in raw lines: every line that holds one of ``anchors``, plain or in JSON, holds one of these."""
    found = {searchable(anchor) for anchor in anchors}
    return tuple(sorted(literal for literal in found if not any(other != literal and other in literal for other in found)))


def whole_lines(blocks: Iterable[bytes], limit: int = MAX_LINE) -> Iterator[bytes | None]:
    """Regroup ``blocks`` (none longer than ``limit``) at line ends; None stands for one line of more than ``limit`` bytes.

    The last line of the file may lack its line end.
    """
    rest = b""
    skipping = False
    for block in blocks:
        first = block.find(b"\n")
        if skipping or len(rest) + (first if first >= 0 else len(block)) > limit:
            if not skipping:
                yield None
            rest = b""
            skipping = first < 0
            if skipping:
                continue
            block = block[first + 1 :]
        cut = block.rfind(b"\n") + 1
        if cut:
            yield rest + block[:cut]
            rest = block[cut:]
        else:
            rest += block
    if rest:
        yield rest if len(rest) <= limit else None


def blocks(stream: BinaryIO, size: int = BLOCK) -> Iterator[bytes]:
    """The rest of ``stream`` in blocks of ``size`` bytes."""
    while block := stream.read(size):
        yield block
