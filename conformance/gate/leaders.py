"""Leaders of Connect clusters that histories can ask: the reference leader, and any class like Kafka's in a Java virtual machine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, cast

from ...model.connect.leader import Asked, Decision, Leader, LeadFailed, Policy, assign
from ...model.connect.mutations import MUTATIONS
from ...model.connect.units import on_the_wire
from ..failed import Failed
from .child import Child, Ended

ASSIGNOR = "org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeAssignor"
WORKER = "kipcheck.conformance.gate.workers.connect"
START_S = 30.0
"""Seconds that the machine may take to start, on top of what a decision may."""

MEMORIES = 32
"""Leaders that are remembered, the latest ones; another one is asked everything again."""


class Subject(Protocol):
    """The assignor of a Connect leader. ``name`` is the SPEC that made it."""

    name: str

    def decide(self, asked: Asked, before: tuple[Asked, ...]) -> Decision:
        """The decision of a leader that was asked ``before``, oldest first. Raises `LeadFailed`."""
        ...

    def close(self) -> None:
        """End everything that it started."""
        ...


CONNECT = "org.apache.kafka.connect."
BUILT_IN = "builtin:connect"


def leader(spec: str, *, classpath: Sequence[str] = (), connect: bool = False, timeout: float = 10.0) -> Subject | None:
    """The Connect leader that ``spec`` names, None if it is a consumer's assignor.

    ``jvm:CLASS`` with a class of Kafka Connect, or any other if ``connect`` says so; ``builtin:connect`` is the reference leader, and
    ``builtin:connect!DEFECT`` one with a defect. Raises `Failed` for a SPEC that there is not.
    """
    form, _, name = spec.partition(":")
    if spec.partition("!")[0] == BUILT_IN:
        defects = frozenset(each for each in spec.partition("!")[2].split(",") if each)
        known = sorted(mutation.name for mutation in MUTATIONS)
        if strange := sorted(defects.difference(known)):
            raise Failed(f"there is no defect {strange[0]!r} of a Connect leader; there are {', '.join(known)}")
        return Reference(Policy(release="mended", defects=defects), spec)
    if form == "jvm" and (connect or name.startswith(CONNECT)):
        if not classpath:
            raise Failed(f"{spec}: needs --classpath with the jars of connect-runtime, connect-api, kafka-clients and slf4j-api")
        return Java(classpath, name, timeout)
    if connect:
        raise Failed(f"{spec}: a Connect leader is jvm:CLASS or {BUILT_IN}")
    return None


class Reference:
    """The reference leader (model.connect.leader), of a behaviour class and with defects if so wished."""

    def __init__(self, policy: Policy, name: str = "") -> None:
        self.name = name or f"{BUILT_IN} {policy.release}" + "".join(f"!{defect}" for defect in sorted(policy.defects))
        self._policy = policy
        self._memories: dict[tuple[Asked, ...], Leader] = {(): Leader()}

    def decide(self, asked: Asked, before: tuple[Asked, ...]) -> Decision:
        if before not in self._memories:
            self.decide(before[-1], before[:-1])
        memory, shares = assign(
            self._memories[before],
            asked.members,
            asked.connectors,
            generation=asked.generation,
            completed=asked.completed,
            now=asked.now,
            header=asked.header,
            policy=replace(self._policy, max_delay_ms=asked.max_delay_ms),
        )
        if not before:
            self._memories = {(): Leader(), **dict(list(self._memories.items())[-MEMORIES:])}
        self._memories[(*before, asked)] = memory
        return Decision(
            assigned={member: on_the_wire(share.started or ()) for member, share in shares},
            revoked={member: on_the_wire(share.revoked or ()) for member, share in shares},
            delay_ms=max((share.delay_ms or 0 for _, share in shares), default=0),
        )

    def close(self) -> None:
        """Nothing was started."""


class Java:
    """A class like Kafka's IncrementalCooperativeAssignor in a Java virtual machine of its own: see workers/connect.py.

    ``classpath`` are globs of jars: those of connect-runtime, connect-api, kafka-clients (2.6 and 2.7 want jackson-databind, too) and
    slf4j-api. ``timeout`` are seconds per decision. ``decide`` raises `Failed` where the machine or the class can't be had.
    """

    def __init__(self, classpath: Sequence[str], class_name: str = ASSIGNOR, timeout: float = 10.0) -> None:
        self.name = f"jvm:{class_name}"
        self._timeout = timeout
        self._command = (sys.executable, "-m", WORKER, class_name, "--classpath", os.pathsep.join(classpath))
        self._child: Child | None = None
        self._answered = self._warm = False
        self._leaders: dict[tuple[Asked, ...], str] = {}
        self._made = 0

    def decide(self, asked: Asked, before: tuple[Asked, ...]) -> Decision:
        leader = self._leaders.pop(before, None) if before else None
        if leader is None:
            self._made += 1
            leader = str(self._made)
            for number, earlier in enumerate(before):
                self._ask(leader, earlier, fresh=number == 0)
        told = self._ask(leader, asked, fresh=not before)
        if not before:
            self._leaders = dict(list(self._leaders.items())[-MEMORIES:])
        self._leaders[(*before, asked)] = leader
        if "error" in told:
            raise LeadFailed(str(told["error"]))
        return Decision(_units(told["assigned"]), _units(told["revoked"]), int(cast("int", told["delay_ms"])))

    def _ask(self, leader: str, asked: Asked, *, fresh: bool) -> Mapping[str, object]:
        said = {
            "id": leader,
            "leader": leader,
            "fresh": fresh,
            "now_ms": asked.now,
            "generation": asked.generation,
            "completed": asked.completed,
            "max_delay_ms": asked.max_delay_ms,
            "offset": asked.header.offset,
            "connectors": dict(asked.connectors),
            "members": [{"id": member, "work": told.owned} for member, told in asked.members],
        }
        child = self._running()
        child.tell([json.dumps(said).encode() + b"\n"])
        try:
            line = child.hear(self._timeout, 1, start=0.0 if self._warm else START_S)
        except Ended as end:
            self.close()
            if not self._answered:
                raise Failed(f"{self.name}: {end.says.removeprefix('exit status 2: ')}") from None
            raise LeadFailed(f"{end.how}: {end.says}") from None
        self._answered = self._warm = True
        return json.loads(line)

    def _running(self) -> Child:
        if self._child is None:
            try:
                self._child = Child(self._command)
            except OSError as error:
                raise Failed(f"{self.name}: can't start {sys.executable}: {error.strerror}") from error
        return self._child

    def close(self) -> None:
        """End the machine. It starts anew if it is asked again."""
        if self._child is not None:
            self._child.close()
        self._child, self._leaders, self._warm = None, {}, False


def _units(told: object) -> dict[str, tuple[str, ...]]:
    return {member: tuple(units) for member, units in cast("Mapping[str, Sequence[str]]", told).items()}
