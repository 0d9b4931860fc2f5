"""Members under the short names of their lanes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ahocorasick_rs import AhoCorasick, MatchKind

from ..timeline import Lane


class Names:
    """Puts short names into sentences about members."""

    def __init__(self, lanes: Iterable[Lane]) -> None:
        short: dict[str, str] = {}
        for lane in lanes:
            if len(lane.name) < len(lane.member):
                short[lane.member] = lane.name
            if lane.instance:
                short[f"{lane.member} (instance {lane.instance})"] = lane.name
        self._names = list(short.values())
        self._search = AhoCorasick(list(short), matchkind=MatchKind.LeftmostLongest)

    def __call__(self, text: str) -> str:
        parts, end = list[str](), 0
        for number, start, stop in self._search.find_matches_as_indexes(text):
            if _IN_A_WORD.match(text[start - 1 : start]) or _IN_A_WORD.match(text[stop : stop + 1]):
                continue
            parts += [text[end:start], self._names[number]]
            end = stop
        return "".join([*parts, text[end:]])


_IN_A_WORD = re.compile(r"[\w-]")
