"""From the SPEC of a command line to an assignor that answers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import cast

from ...spec.assignors.kinds import KINDS, Kind
from ..failed import Failed
from .builtin import builtin
from .child import Child, Ended
from .process import Process
from .subject import Subject

FORMS = "python:MODULE:CLASS, jvm:CLASS (with --classpath), exec:COMMAND or builtin:NAME"
_WORKERS = "kipcheck.conformance.gate.workers"
_DESCRIBING = 60.0
"""Seconds that a worker may take to say what it has got."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a worker says of its assignor: its name, and the rebalance protocols that it supports."""

    name: str
    protocols: tuple[str, ...]

    @property
    def kind(self) -> Kind:
        """Kafka's four by name, others by protocol."""
        named: Kind | None = next((kind for kind in KINDS if kind == self.name), None)
        return named or ("cooperative" if "COOPERATIVE" in self.protocols else "eager")


def subject(
    spec: str,
    *,
    classpath: Sequence[str] = (),
    as_kind: Kind | None = None,
    timeout: float = 10.0,
    metadata: bool = False,
    renews: bool = False,
) -> Subject:
    """The assignor that ``spec`` names, started; the caller closes it.

    ``classpath`` are globs of jars, for ``jvm:``. ``as_kind`` is what it is held to: if None, what it says of itself, and ``cooperative``
    for an ``exec:`` command. ``timeout`` are seconds per case. ``metadata``: an ``exec:`` command gets every member's raw JoinGroup metadata
    (workers of ours always put their assignor behind it). ``renews``: see `How`. Raises `Failed` if there is no such assignor.
    """
    form, colon, rest = spec.partition(":")
    if not colon or not rest:
        raise Failed(f"assignor {spec!r}: expected {FORMS}")
    match form:
        case "builtin":
            made: Subject = builtin(rest)
            if as_kind:
                made.kind = as_kind
            return made
        case "exec":
            return Process(spec, rest, as_kind or "cooperative", timeout, renews=renews, metadata=metadata)
        case "python" | "jvm":
            command = [sys.executable, "-m", f"{_WORKERS}.{form}", rest]
            if form == "jvm":
                if not classpath:
                    raise Failed(f"{spec}: needs --classpath with the jars of the assignor, of kafka-clients and of slf4j-api")
                command += ["--classpath", os.pathsep.join(classpath)]
            kind = describe(spec, command).kind
            return Process(spec, command, as_kind or kind, timeout, renews=True, environment=_repeatable())
        case _:
            raise Failed(f"assignor {spec!r}: there is no form {form!r}; expected {FORMS}")


def _repeatable() -> dict[str, str]:
    """Our environment; sets of strings have the same order in every run, unless it says otherwise."""
    return {"PYTHONHASHSEED": "0", **os.environ}


def describe(spec: str, worker: Sequence[str]) -> Description:
    """What ``worker`` has got. Raises `Failed` with its reason if it has got nothing."""
    try:
        with closing(Child([*worker, "--describe"])) as child:
            told = cast("dict[str, object]", json.loads(child.hear(_DESCRIBING, 1)))
    except Ended as ended:
        raise Failed(f"{spec}: {ended.says.rpartition('kipcheck: ')[2].removeprefix('exit status 2: ')}") from None
    return Description(str(told["name"]), tuple(map(str, cast("list[object]", told["protocols"]))))
