"""Assignors that run in a process of their own."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from itertools import takewhile
from time import monotonic

from ...spec.assignors.case import Answer, Case, NoAnswer
from ...spec.assignors.kinds import Kind
from ..failed import Failed
from .child import Child, Ended
from .wire import OutOfStep, answer, line, one_line, shown

_SLOWEST_START = 30.0
_STARTS = 3
"""After that many starts without a single answer, or a first one that hangs, a process is not started again."""


class Process:
    """See `Subject`. ``command`` is a program with its arguments, or a line for ``/bin/sh``.

    ``timeout`` are seconds per case, from the moment when its turn came: the answer before it has arrived. ``renews``: the process makes a
    new leader where a line says ``fresh``; if it doesn't, cases with calls before them get a process of their own. ``metadata``: send every
    member's raw JoinGroup metadata. ``environment`` is the whole of its environment, None for ours. ``start`` are the seconds that it may take
    to its first answer, on top of the timeout. The process starts at once; raises `Failed` if it can't.
    """

    def __init__(
        self,
        spec: str,
        command: Sequence[str] | str,
        kind: Kind,
        timeout: float = 10.0,
        *,
        renews: bool = False,
        metadata: bool = False,
        environment: Mapping[str, str] | None = None,
        start: float = _SLOWEST_START,
    ) -> None:
        self.name = spec
        self.kind: Kind = kind
        self.seconds = 0.0
        self._command = ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
        self._timeout = timeout
        self.renews = renews
        self._metadata = metadata
        self._environment = environment
        self._start = start
        self._ever_answered = False
        self._answered: str | None = None
        self._failures = 0
        self._hopeless: NoAnswer | None = None
        _must_exist(command)
        try:
            self._child: Child | None = Child(self._command, self._environment)
        except OSError as error:
            raise Failed(f"{spec}: can't start {self._command[0]!r}: {error.strerror}; is it executable?") from error

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and all that it started. It starts anew if it is asked again."""
        self._end(politely=True)

    def ask(self, cases: Sequence[Case]) -> Sequence[Answer]:
        answers: list[Answer] = []
        try:
            while len(answers) < len(cases):
                answers += self._converse(cases[len(answers) :])
        except BaseException:
            self._end(politely=False)
            raise
        return answers

    def _converse(self, cases: Sequence[Case]) -> list[Answer]:
        """Answers to the first of ``cases``, at least one, from one process: to all of them, or until it fails or has to make way."""
        if self._hopeless:
            return [self._hopeless] * len(cases)
        own_process = not self.renews and bool(cases[0].before)
        if own_process:
            cases = cases[:1]
            if self._answered is not None:
                self._end(politely=True)
        elif not self.renews:
            cases = list(takewhile(lambda case: not case.before, cases))
        answers: list[Answer] = []
        try:
            self._hear(self._ready(), cases, answers)
        except Ended as ended:
            answers.append(self._failed(NoAnswer(ended.how, one_line(ended.says))))
        else:
            if own_process:
                self._end(politely=True)
        return answers

    def _ready(self) -> Child:
        """The process. Raises `Ended`."""
        if self._child is None:
            try:
                self._child = Child(self._command, self._environment)
            except OSError as error:
                raise Ended("crash", f"can't start {self._command[0]!r}: {error.strerror}") from error
        return self._child

    def _hear(self, child: Child, cases: Sequence[Case], answers: list[Answer]) -> None:
        """Put the cases to ``child``, and add its answers to ``answers`` as they come. Raises `Ended`."""
        child.tell(
            line(call, fresh=number == 0, metadata=self._metadata) for case in cases for number, call in enumerate((*case.before, case))
        )
        due = sum(1 + len(case.before) for case in cases)
        already = child.waited
        try:
            for case in cases:
                for call in case.before:
                    self._next(child, call, due)
                    due -= 1
                answers.append(self._next(child, case, due))
                due -= 1
        finally:
            self.seconds += child.waited - already

    def _next(self, child: Child, call: Case, due: int) -> Answer:
        started = monotonic()
        text = child.hear(self._timeout, due, start=self._start if self._answered is None else 0.0)
        if self._answered is None:
            self._start = min(self._start, monotonic() - started)
        try:
            found = answer(text, call.id)
        except OutOfStep as error:
            if error.id is not None and error.id == self._answered:
                raise Ended("flood", f"answers the case {shown(error.id)} more than once") from None
            reminder = "standard output is for answers, one line per case, all else goes to standard error"
            raise Ended("nonsense", f"{error}; {reminder}") from None
        self._answered, self._ever_answered = call.id, True
        return found

    def _failed(self, what: NoAnswer) -> NoAnswer:
        """End the process that did ``what``, for good if it never does anything else."""
        self._end(politely=False)
        self._failures += 1
        if not self._ever_answered and self._failures >= (1 if what.how == "hang" else _STARTS):
            self._hopeless = what
        return what

    def _end(self, *, politely: bool) -> None:
        child, self._child, self._answered = self._child, None, None
        if child:
            child.close(politely=politely)


def _must_exist(command: Sequence[str] | str) -> None:
    """Raises `Failed` if the program of ``command`` is not there. Of a line for the shell that starts with syntax nothing is said."""
    if not isinstance(command, str):
        program, found = command[0], shutil.which(command[0]) is not None
    else:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise Failed(f"exec: {command!r} can't be read: {error}") from error
        program = next((word for word in words if not re.match(r"\w+=", word)), "")
        found = not re.fullmatch(r"[\w./+-]+", program) or _shell_knows(program)
    if not found:
        raise Failed(f"exec: there is no program {program!r}; give its path, or put its directory on PATH")


def _shell_knows(word: str) -> bool:
    check = ["/bin/sh", "-c", 'command -v "$1"', "sh", word]
    return subprocess.run(check, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
