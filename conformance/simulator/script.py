"""What a user of the simulator says, a line each: the script of a run, to be saved, read and played again.

::

    scenario two-cooperative      how it begins: a cast of `SCENARIOS`, all absent; without it an empty group
    mutate trusts-every-claim     a defect of the model, on from the beginning
    resize orders 6               an act, see model/acts.py
    add c1 consumer topics=orders assignors=cooperative-sticky instance=i1 session=10000 rebalance=20000 heartbeat=3000
    add w1 worker protocol=sessioned session=10000 rebalance=20000 heartbeat=3000 delay=60000
    due                           whatever is due happens, time stands still
    settle                        whatever is due happens and time passes, until the group rests
    wait 5000                     the same for so many milliseconds
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import cast, get_args

from ...model import consumer
from ...model.acts import Line, Resize, Subscribe
from ...model.acts import line as act_line
from ...model.assignors import ASSIGNORS
from ...model.connect import worker
from ...model.connect.state import Protocol
from ...model.mutations import REFERENCE, SCENARIOS
from ...model.scenarios import connect, dynamic, static
from ...model.world import Config
from ..failed import hint

LONGEST_LINE, LONGEST_NAME = 400, 40
MOST_LINES, MOST_MEMBERS, MOST_TOPICS, MOST_PARTITIONS = 5_000, 20, 10, 100
LONGEST_WAIT_MS = 3_600_000
FEW = 12
"""So many names are all told to whoever took another."""
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")


@dataclass(frozen=True, slots=True)
class Add:
    """A process starts with this configuration: a new one, or one that was away."""

    config: Config

    @property
    def name(self) -> str:
        return self.config.client

    def __str__(self) -> str:
        return f"add {self.name} {' '.join(_told(self.config))}"


@dataclass(frozen=True, slots=True)
class Due:
    """Whatever is due happens, in a fair order; time stands still."""

    def __str__(self) -> str:
        return "due"


@dataclass(frozen=True, slots=True)
class Settle:
    """Whatever is due happens and time passes, until the group rests."""

    def __str__(self) -> str:
        return "settle"


@dataclass(frozen=True, slots=True)
class Wait:
    """Whatever is due happens and time passes, for so many milliseconds."""

    milliseconds: int

    def __str__(self) -> str:
        return f"wait {self.milliseconds}"


Command = Line | Add | Due | Settle | Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """How a run begins, and what is done then."""

    scenario: str | None = None
    mutation: str | None = None
    commands: tuple[Command, ...] = ()

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[object]:
        yield from (f"scenario {self.scenario}",) if self.scenario else ()
        yield from (f"mutate {self.mutation}",) if self.mutation else ()
        yield from self.commands


def read(text: str) -> Script:
    """The script that stands in ``text``; empty lines and those that begin with ``#`` are left out. Raises ValueError with the line."""
    script = Script()
    commands: list[Command] = []
    for number, said in enumerate(text.splitlines(), 1):
        words = "" if said.lstrip().startswith("#") else said.strip()
        if len(commands) == MOST_LINES:
            raise ValueError(f"line {number}: a script has at most {MOST_LINES:,} lines")
        try:
            match words.split():
                case []:
                    pass
                case ["scenario", name] if not commands and script.scenario is None:
                    script = replace(script, scenario=known(name, SCENARIOS, "scenario"))
                case ["mutate", name] if script.mutation is None:
                    script = replace(script, mutation=known(name, REFERENCE, "mutation"))
                case ["scenario" | "mutate", _]:
                    raise ValueError(f"{words!r} stands at the beginning of a script, once")
                case _:
                    commands.append(command(words))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return replace(script, commands=tuple(commands))


def known(name: str, names: Mapping[str, object], kind: str) -> str:
    """``name``, if it is one of ``names``; else raises ValueError that tells the nearest."""
    if name not in names:
        otherwise = f"there are {', '.join(names)}" if len(names) <= FEW else "`kipcheck explore --list` lists them all"
        raise ValueError(f"there is no {kind} {name[:LONGEST_NAME]!r}; {hint(name, names, otherwise)}")
    return name


def command(text: str) -> Command:
    """What one line says. Raises ValueError if it is none."""
    if len(text) > LONGEST_LINE or not text.isprintable():
        raise ValueError(f"a line is at most {LONGEST_LINE} printable characters long")
    match text.split():
        case ["due"]:
            return Due()
        case ["settle"]:
            return Settle()
        case ["wait", time]:
            return Wait(_number(time, "wait", 1, LONGEST_WAIT_MS))
        case ["add", name, kind, *options]:
            return Add(_config(_name(name, "member"), kind, options))
        case _:
            return _act(act_line(text))


def _act(line: Line) -> Line:
    """A line whose names and numbers are in bounds."""
    for field in fields(line.act):
        value = getattr(line.act, field.name)
        if isinstance(value, str) and len(value) > 2 * LONGEST_NAME:
            raise ValueError(f"a name is at most {LONGEST_NAME} characters long")
    match line.act:
        case Resize(topic, partitions):
            _name(topic, "topic")
            _number(str(partitions), "the number of partitions", 0, MOST_PARTITIONS)
        case Subscribe(_, topics):
            _names(topics, "topic", MOST_TOPICS)
        case _:
            pass
    return line


def _name(text: str, what: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text[:LONGEST_NAME]!r} is no name of a {what}: letters, digits, '.', '_' and '-', at most {LONGEST_NAME}")
    return text


def _names(texts: Sequence[str], what: str, most: int) -> tuple[str, ...]:
    if len(texts) > most:
        raise ValueError(f"at most {most} {what}s can be named")
    return tuple(dict.fromkeys(_name(text, what) for text in texts))


def _number(text: str, what: str, least: int, most: int) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
        raise ValueError(f"{what} must be a whole number from {least:,} to {most:,}, not {text[:LONGEST_NAME]!r}")
    return int(text)


# Configurations.

_TIMES: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"session": (6_000, 1_800_000), "rebalance": (1_000, 3_600_000), "heartbeat": (500, 600_000), "delay": (0, 3_600_000)}
)
"""Milliseconds, as far as brokers and clients accept them by default, and a run stays short."""


def _config(name: str, kind: str, words: Sequence[str]) -> Config:
    options = {key: value for key, _, value in (word.partition("=") for word in words)}
    times = {key: _number(options.pop(key), key, *bounds) for key, bounds in _TIMES.items() if key in options}
    match kind:
        case "consumer" if "delay" not in times:
            config = _timed(_consumer(name, options), times, rebalance="max_poll_interval_ms")
        case "worker":
            config = _timed(_worker(name, options), times, rebalance="rebalance_timeout_ms")
        case _:
            raise ValueError("add NAME consumer [topics=T,..] [assignors=A,..] [instance=ID] or add NAME worker [protocol=P] [delay=MS]")
    if options:
        raise ValueError(f"a {kind} has no {', '.join(options)[:LONGEST_NAME]}")
    if config.heartbeat_interval_ms >= config.session_timeout_ms:
        raise ValueError("heartbeat must be shorter than session")
    return config


def _timed(config: Config, times: Mapping[str, int], rebalance: str) -> Config:
    fields = {"session": "session_timeout_ms", "rebalance": rebalance, "heartbeat": "heartbeat_interval_ms", "delay": "max_delay_ms"}
    changes = {fields[key]: time for key, time in times.items()}
    return cast(Callable[..., Config], replace)(config, **changes)


def _consumer(name: str, options: dict[str, str]) -> Config:
    topics = _names([topic for topic in options.pop("topics", "").split(",") if topic], "topic", MOST_TOPICS)
    assignors = tuple(dict.fromkeys(options.pop("assignors", "cooperative-sticky").split(",")))
    for assignor in assignors:
        known(assignor, ASSIGNORS, "assignor")
    if instance := options.pop("instance", ""):
        return static(name, _name(instance, "instance"), *assignors, topics=topics)
    return dynamic(name, *assignors, topics=topics)


def _worker(name: str, options: dict[str, str]) -> Config:
    protocol = options.pop("protocol", "sessioned")
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol is one of {', '.join(PROTOCOLS)}")
    return connect(name, protocol)


def _told(config: Config) -> Iterator[str]:
    if isinstance(config, consumer.Config):
        yield "consumer"
        yield f"topics={','.join(config.topics)}"
        yield f"assignors={','.join(config.assignors)}"
        yield from (f"instance={config.instance}",) if config.instance else ()
    else:
        yield f"worker protocol={config.protocol}"
    yield f"session={config.session_timeout_ms} rebalance={config.rebalance_timeout_ms} heartbeat={config.heartbeat_interval_ms}"
    yield from (f"delay={config.max_delay_ms}",) if isinstance(config, worker.Config) else ()
