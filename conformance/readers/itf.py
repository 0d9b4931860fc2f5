"""Traces in the Informal Trace Format (ITF), the JSON that Quint and Apalache write: the states of a specification, read as events.

Which variables say what (a module's name before ``::`` is passed over):

``event``
    An event of trace version 1, as ``kipcheck convert --to itf`` writes it: a record with ``kind`` and the fields of that kind, or a
    variant whose tag is the kind and whose value is the record of its fields. The option ``None`` is a state without an event.
``owned``, where there is no ``event``
    A map or record from each member to the set of what it believes to own. What changes from one state to the next are events.
``generation``, ``epoch``, ``group``, beside ``owned``
    ``generation`` maps each member to the generation whose assignment it has; it never falls, or the member is in none. One number
    for all is the group's: then a member is known to have that generation's assignment only if it takes something while the number
    stands. Without ``generation`` the story is told and nothing is judged. ``epoch`` is a number (0), ``group`` a name (``model``).

A run that ends as soon as two members own the same is not judged yet: one of them may have missed the newest generation and be fenced.
Names are strings, integers, variants without a value (``c1`` by its tag), or tuples of these: ``("orders", 0)`` is ``orders-0``.
The states are read once, in their order; a ``loop`` is not followed. Line N of the file's ledger, and of an event without a source of
its own, is its N-th state, which ITF counts as index N - 1.

Source: ADR-015 of Apalache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, NoReturn, Protocol, cast

from ...spec.events import Assigned, Crashed, Event, Gap, Owned, Revoked, Source
from ...spec.trace import MAX_DEPTH, MalformedEvent, decode
from . import detect
from .scan import TEXT_KEPT
from .whole import Tally, WholeFileReader

MAX_FILE = 64 << 20
"""Bytes of an ITF file, decompressed: it is one JSON document, and takes some thirteen times as much memory."""
GROUP = "model"
"""The group of a specification that names none."""

_DEPTH = MAX_DEPTH + 8
_NAMES_SHOWN = 10
_BIGINT = re.compile(r"-?[0-9]+")
_TOO_LARGE = (
    f"an ITF file is one JSON document, so more than {MAX_FILE >> 20} MiB of it are not read: "
    "shorten the trace, or write its events as JSON Lines (kipcheck schema trace)"
)


class _Itf:
    """A state is a line."""

    name = detect.ITF

    def read(self, stream: BinaryIO, file: str, tally: Tally) -> Iterator[Event]:
        document = _document(stream)
        named = _variables(document)
        told: _Reading = _Events(named["event"]) if "event" in named else _Ownership(named)
        for number, state in enumerate(_states(document), 1):
            try:
                events = told.events(_State(state, file, number))
            except MalformedEvent as malformed:
                tally.broken(number, f"state {number - 1}: {malformed}")
                continue
            tally.took()
            yield from events


READER: WholeFileReader = _Itf()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _document(stream: BinaryIO) -> Mapping[str, object]:
    """The trace object. Raises `OSError` for a file that is none, or too large."""
    content = stream.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise OSError(_TOO_LARGE)
    try:
        parsed: object = _DECODER.decode(content.decode().removeprefix("\ufeff"))
    except UnicodeError:
        raise OSError("not an ITF trace: not text in UTF-8") from None
    except json.JSONDecodeError as error:
        raise OSError(f"not an ITF trace, or cut off: {error.msg} at character {error.pos + 1} of the JSON document") from None
    except ValueError:
        raise OSError("not an ITF trace: it holds a number that JSON does not have, or one with too many digits") from None
    except RecursionError:
        raise OSError("not an ITF trace: nested too deep") from None
    if not isinstance(parsed, dict):
        raise OSError("not an ITF trace: expected a JSON object with vars and states")
    return cast(dict[str, object], parsed)


def _states(document: Mapping[str, object]) -> Sequence[object]:
    states = document.get("states")
    if not isinstance(states, list):
        raise OSError("not an ITF trace: states must be an array of states")
    return cast(list[object], states)


def _variables(document: Mapping[str, object]) -> Mapping[str, str]:
    """The trace's own names of the variables that are read, by ours. Raises `OSError` if there is none to read."""
    names = document.get("vars")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in cast(list[object], names)):
        raise OSError("not an ITF trace: vars must be an array of the variables' names")
    found: dict[str, str] = {}
    for name in cast(list[str], names):
        short = name.rpartition("::")[2]
        if short in ("event", "owned", "generation", "epoch", "group") and found.setdefault(short, name) != name:
            raise OSError(f"{_shown(found[short])} and {_shown(name)} are both named {short}: rename one of them")
    if "event" not in found and "owned" not in found:
        given = ", ".join(_shown(name) for name in cast(list[str], names)[:_NAMES_SHOWN]) or "none"
        raise OSError(
            f"no variable is named event or owned (there are: {given}): name the one that maps each member to what it owns `owned`, "
            "or write what happens to a variable `event`"
        )
    return found


def _shown(value: object) -> str:
    """A value of the file in a few words."""
    match value:
        case None:
            return "nothing"
        case list():
            return "a list"
        case dict():
            return "a record"
        case _:
            text = repr(value)
            return text if len(text) <= 60 else f"{text[:60]}..."


@dataclass(frozen=True, slots=True)
class _State:
    """One state, ``number`` counted from 1. Its methods raise `MalformedEvent`."""

    raw: object
    file: str
    number: int

    def source(self) -> Source:
        try:
            text = json.dumps(self.raw, ensure_ascii=False)
            text.encode()
        except UnicodeError:
            raise MalformedEvent("not text in UTF-8") from None
        except RecursionError:
            raise MalformedEvent("nested too deep") from None
        return Source(self.file, self.number, text[:TEXT_KEPT])

    def variable(self, name: str) -> object:
        """The plain value of a variable."""
        if not isinstance(self.raw, dict):
            raise MalformedEvent(f"expected an object with a value for each variable, found {_shown(self.raw)}")
        row = cast(dict[str, object], self.raw)
        if name not in row:
            raise MalformedEvent(f"no value for the variable {name}: every state has one for each of vars")
        try:
            return _plain(row[name], _DEPTH)
        except MalformedEvent as malformed:
            raise MalformedEvent(f"{name}: {malformed}") from None


class _Reading(Protocol):
    """States in their order. ``events`` raises `MalformedEvent` for one that can't be read; the next one may follow."""

    def events(self, state: _State) -> Sequence[Event]: ...


@dataclass(frozen=True, slots=True)
class _Events:
    """The events that the variable ``name`` holds."""

    name: str

    def events(self, state: _State) -> Sequence[Event]:
        told = state.variable(self.name)
        if told is None:
            return ()
        if isinstance(told, str):
            row: dict[str, object] = {"kind": told}
        elif isinstance(told, dict):
            row = cast(dict[str, object], told)
        else:
            raise MalformedEvent(f"{self.name}: expected a record or a variant, found {_shown(told)}")
        if row.keys() == {"tag", "value"} and isinstance(fields := row["value"], dict):
            row = {**cast(dict[str, object], fields), "kind": row["tag"]}
        kind = row.get("kind")
        row = {"group": GROUP, **row, "kind": kind.lower() if isinstance(kind, str) else kind}
        try:
            return (decode(row, state.source()),)
        except MalformedEvent as malformed:
            raise MalformedEvent(f"{self.name}: {malformed}") from None


_Owns = frozenset[str]
_Stamp = tuple[int, int | None]
"""The epoch and the generation whose assignment a member has; None as long as none is known."""
_OUTSIDE = -1
"""The generation of a member that had one and is in none now: what it says is told, and is no evidence on any generation."""


@dataclass(slots=True)
class _Ownership:
    """What members take and give up from one state to the next, of the variables ``named``.

    States are in one order, and that settles what came first. What a member gives up in the step that brings it to another generation, it
    gave up while it had the old one's assignment, unless a member that has the new one already owned it: that one was given it too early.
    """

    named: Mapping[str, str]
    before: Mapping[str, _Owns] | None = None
    """None at first, and after a state that could not be read."""
    had: Mapping[str, _Stamp] = field(default_factory=dict[str, _Stamp])
    newest: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Of each member. A specification that sets a member's generation back says that it is in none now."""
    lacking: bool = False

    def events(self, state: _State) -> Sequence[Event]:
        before, self.before = self.before, None
        lacking, self.lacking = self.lacking, True
        owned = self._owned(state)
        has = self._stamps(state, owned, before)
        say = _Sayer(self._group(state), state.source())
        if before is None:
            told = [event for member in owned for event in self._anew(say, member, owned[member], has[member], lacking)]
        else:
            told = [event for member in owned for event in self._step(say, member, before, owned[member], has[member])]
            told += [say.of(Crashed, member, self.had[member]) for member in before if member not in owned]
        self.before, self.had, self.lacking = owned, has, False
        return told

    @staticmethod
    def _anew(say: _Sayer, member: str, owns: _Owns, at: _Stamp, lacking: bool) -> Iterator[Event]:
        if lacking:
            yield say.of(Gap, member, at)
        yield say.of(Owned, member, at, owns)

    def _step(self, say: _Sayer, member: str, before: Mapping[str, _Owns], owns: _Owns, at: _Stamp) -> Iterator[Event]:
        had, was = self.had.get(member, at), before.get(member, frozenset())
        beside = [before[other] for other, stamp in self.had.items() if other != member and stamp == at and stamp[1] is not None]
        shared = (was - owns).intersection(frozenset[str]().union(*beside))
        known, moves = at[1] not in (None, _OUTSIDE), at != had
        if known and had[1] == _OUTSIDE:
            yield from self._anew(say, member, owns, at, lacking=True)
            return
        if in_order := was - owns - shared:
            yield say.of(Revoked, member, had, in_order)
            if known and not moves:
                yield say.of(Owned, member, at, was - in_order)
        if shared and moves:
            yield say.of(Revoked, member, at, shared)
        if owns - was:
            yield say.of(Assigned, member, at, owns - was)
        if shared and not moves:
            yield say.of(Revoked, member, at, shared)
        if known and (moves or member not in before):
            yield say.of(Owned, member, at, owns)

    def _owned(self, state: _State) -> dict[str, _Owns]:
        name = self.named["owned"]
        shares = state.variable(name)
        if not isinstance(shares, dict):
            raise MalformedEvent(f"{name}: expected a map or record from member to the set of what it owns, found {_shown(shares)}")
        owned: dict[str, _Owns] = {}
        for member, share in cast(dict[str, object], shares).items():
            if not isinstance(share, list):
                raise MalformedEvent(f"{name}: expected a set or list of what {_shown(member)} owns, found {_shown(share)}")
            owned[member] = frozenset(_name(resource) for resource in cast(list[object], share))
        return owned

    def _stamps(self, state: _State, owned: Mapping[str, _Owns], before: Mapping[str, _Owns] | None) -> dict[str, _Stamp]:
        """Whose assignment each member has."""
        epoch = _integer(state.variable(self.named["epoch"]), self.named["epoch"]) if "epoch" in self.named else 0
        name = self.named.get("generation")
        told: object = state.variable(name) if name is not None else {}
        stamps: dict[str, _Stamp] = dict.fromkeys(owned, (epoch, None))
        if isinstance(told, dict):
            for member, generation in cast(dict[str, object], told).items():
                if member in owned and generation is not None:
                    stamps[member] = epoch, _integer(generation, f"{name} of {_shown(member)}")
        else:
            current = epoch, _integer(told, str(name))
            for member in owned if before is not None else ():
                takes = owned[member] - (before or {}).get(member, frozenset())
                stamps[member] = current if takes else self.had.get(member, stamps[member])
        return {member: self._forward(member, *stamp) for member, stamp in stamps.items()}

    def _forward(self, member: str, epoch: int, generation: int | None) -> _Stamp:
        newest = self.newest.get(member, (epoch, 0))
        if generation is None or (epoch, generation) < newest:
            return max(epoch, newest[0]), _OUTSIDE if member in self.newest else None
        self.newest[member] = epoch, generation
        return epoch, generation

    def _group(self, state: _State) -> str:
        if "group" not in self.named:
            return GROUP
        group = state.variable(self.named["group"])
        if not isinstance(group, str) or not group:
            raise MalformedEvent(f"{self.named['group']}: expected a non-empty string, found {_shown(group)}")
        return group


@dataclass(frozen=True, slots=True)
class _Sayer:
    """Events that one state shows."""

    group: str
    src: Source

    def of(self, kind: type[Event], member: str, stamp: _Stamp, resources: _Owns | None = None) -> Event:
        return kind(
            group=self.group,
            member=member,
            epoch=stamp[0],
            generation=None if stamp[1] == _OUTSIDE else stamp[1],
            seen_by="any" if stamp[1] == _OUTSIDE else None,
            resources=None if resources is None else tuple(sorted(resources)),
            src=self.src,
        )


_INT64 = 1 << 63


def _integer(value: object, name: str) -> int:
    if type(value) is int and -_INT64 <= value < _INT64:
        return value
    raise MalformedEvent(f"{name}: expected an integer of 64 bits, found {_shown(value)}")


def _name(value: object) -> str:
    """The name of a member or resource."""
    match value:
        case str():
            return value
        case bool():
            pass
        case int():
            return str(value)
        case list() if value:
            return "-".join(_name(part) for part in cast(list[object], value))
        case _:
            pass
    raise MalformedEvent(f"expected a name (a string, an integer, or a tuple of these), found {_shown(value)}")


def _plain(value: object, depth: int) -> object:
    """An ITF expression as a plain JSON value: sets and tuples as lists, maps and records as objects, options as their value or None.

    Of another variant without a value it is the tag, else an object of ``tag`` and ``value``.
    """
    if not depth:
        raise MalformedEvent(f"nested deeper than {_DEPTH} levels")
    if isinstance(value, list):
        return [_plain(item, depth - 1) for item in cast(list[object], value)]
    if not isinstance(value, dict):
        return value
    row = cast(dict[str, object], value)
    if isinstance(tag := row.get("tag"), str) and row.keys() <= {"tag", "value"}:
        return _variant(tag, _plain(row.get("value"), depth - 1))
    form = next((key for key in row if key.startswith("#")), None)
    if form is None:
        return {key: _plain(item, depth - 1) for key, item in row.items()}
    match form, row[form]:
        case "#bigint", str(digits) if _BIGINT.fullmatch(digits):
            return _number(digits)
        case (("#set" | "#tup"), list()):
            return _plain(row[form], depth)
        case "#map", list():
            return _mapping([_pair(pair, depth - 1) for pair in cast(list[object], row[form])])
        case "#unserializable", str(text):
            return _written(text)
        case _:
            raise MalformedEvent(f"{_shown(form)} is no form of ITF, or holds something else than it should")


def _pair(pair: object, depth: int) -> tuple[str, object]:
    if not isinstance(pair, list) or len(items := cast(list[object], pair)) != 2:
        raise MalformedEvent(f"expected pairs of a key and a value in #map, found {_shown(cast(object, pair))}")
    return _name(_plain(items[0], depth)), _plain(items[1], depth)


def _mapping(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    named: dict[str, object] = {}
    for name, value in pairs:
        if name in named:
            raise MalformedEvent(f"two keys of #map have the name {_shown(name)}")
        named[name] = value
    return named


def _variant(tag: str, value: object) -> object:
    if tag == "Some":
        return value
    if tag in ("None", "UNIT"):
        return None
    return tag if value in (None, [], {}) else {"tag": tag, "value": value}


def _number(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise MalformedEvent("a number has too many digits") from None


def _written(text: str) -> object:
    """What ITF has no form for: null, and numbers that are no integers, as JSON writes them."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if value is None or isinstance(value, float):
        return value
    raise MalformedEvent(f"the program that wrote the trace could not write the value {_shown(text)}")
