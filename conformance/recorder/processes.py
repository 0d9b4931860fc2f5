"""Starts programs in process groups of their own, talks to them, and always ends them."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar, cast

STOP_SECONDS: Final = 30.0
WAIT_SECONDS: Final = 60.0
Result = TypeVar("Result")


class RecordingError(Exception):
    """A recording that did not go as its scenario says."""


@dataclass(frozen=True, slots=True)
class Callback:
    """What a driven program reported: ``at`` in epoch milliseconds, partitions as ``topic-0``."""

    at: int
    event: str
    partitions: tuple[str, ...] = ()
    owned: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, line: str) -> Self:
        """Reads one line of a driven program; ValueError, KeyError or TypeError if it is not one."""
        fields = cast("dict[str, Any]", json.loads(line))
        owned = fields.get("owned")
        return cls(
            at=int(fields["at"]),
            event=str(fields["event"]),
            partitions=tuple(fields.get("partitions", ())),
            owned=None if owned is None else tuple(owned),
        )


class Program:
    """A running program whose standard output is a line of JSON per ``Callback``, and whose input takes commands."""

    def __init__(self, name: str, command: Sequence[str], directory: Path, errors: Path) -> None:
        """Starts ``command`` in ``directory``; its standard error is appended to ``errors``."""
        directory.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.errors = errors
        with errors.open("ab") as sink:
            self._process = subprocess.Popen(
                command,
                cwd=directory,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                text=True,
                encoding="utf-8",
                start_new_session=True,
                env=os.environ | {"TZ": "UTC", "LC_ALL": "C.UTF-8"},
            )
        self.callbacks: list[Callback] = []
        self._reader = threading.Thread(target=self._read, name=f"read {name}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith('{"at":'):
                self.callbacks.append(Callback.parse(line))

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    @property
    def owned(self) -> frozenset[str]:
        """The partitions that it owns according to its last callback; none once it has ended."""
        if not self.running:
            return frozenset()
        known = [each.owned for each in tuple(self.callbacks) if each.owned is not None]
        return frozenset(known[-1] if known else ())

    def send(self, command: str) -> None:
        """Gives it one command; RecordingError if it has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RecordingError(f"{self.name} ended too early: {self._last_words()}") from None

    def ask(self, command: str) -> None:
        """Gives it one command and waits until it reports the end of it."""
        before = len(self.callbacks)
        self.send(command)
        wait_for(f"{self.name} to {command}", lambda: len(self.callbacks) > before, programs=(self,))

    def close(self) -> None:
        """Asks it to close, and waits for its end; RecordingError if it ended badly."""
        self.send("close")
        self._wait()

    def terminate(self) -> None:
        """Sends SIGTERM, and waits for its end."""
        self._signal(signal.SIGTERM)
        self._wait(expected=(0, 128 + signal.SIGTERM, -signal.SIGTERM))

    def kill(self) -> None:
        """Sends SIGKILL to it and to all that it started, and waits for its end."""
        self._signal(signal.SIGKILL)
        self._wait(expected=None)

    def fail(self, why: str) -> None:
        """Waits until it has failed by itself; RecordingError if it ends in another way, or does not name ``why`` on standard error."""
        self._wait(expected=(1,))
        if why not in self.errors.read_text(encoding="utf-8", errors="replace"):
            raise RecordingError(f"{self.name} failed, but not for {why}: {self._last_words()}")

    def end(self) -> None:
        """Makes sure that it is gone, gently if it lets us. Never raises RecordingError."""
        if self.running:
            self._signal(signal.SIGTERM)
        try:
            self._wait(expected=None)
        except RecordingError:
            self.kill()

    def check(self) -> None:
        """RecordingError if it has ended."""
        if not self.running:
            raise RecordingError(f"{self.name} ended too early: {self._last_words()}")

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return

    def _wait(self, expected: tuple[int, ...] | None = (0,)) -> None:
        try:
            status = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise RecordingError(f"{self.name} did not end within {STOP_SECONDS:.0f} s") from None
        self._reader.join(STOP_SECONDS)
        self._close_pipes()
        if expected is not None and status not in expected:
            raise RecordingError(f"{self.name} ended with status {status}: {self._last_words()}")

    def _close_pipes(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()

    def _last_words(self) -> str:
        return self.errors.read_text(encoding="utf-8", errors="replace")[-2000:] or "(nothing said)"


class Crew:
    """Starts programs and, on leaving the ``with`` block, ends those that still run, the last started first."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, name: str, command: Sequence[str], directory: Path, errors: Path) -> Program:
        """Starts a program; see ``Program``."""
        program = Program(name, command, directory, errors)
        self._stack.callback(program.end)
        return program

    def enter(self, context: AbstractContextManager[Result]) -> Result:
        """Enters a context, and exits it when its turn comes."""
        return self._stack.enter_context(context)


def run(command: Sequence[str], directory: Path) -> str:
    """Runs a program to its end and returns its exact standard output; RecordingError if it fails or takes too long."""
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, check=True, timeout=WAIT_SECONDS, text=True, encoding="utf-8")
    except subprocess.TimeoutExpired:
        raise RecordingError(f"took over {WAIT_SECONDS:.0f} s: {' '.join(command)}") from None
    except subprocess.CalledProcessError as failure:
        raise RecordingError(f"{' '.join(command)} failed: {str(failure.stderr)[-2000:]}") from None
    return done.stdout


def wait_for(
    what: str, condition: Callable[[], Result | None], *, programs: Sequence[Program] = (), seconds: float = WAIT_SECONDS
) -> Result:
    """Polls until ``condition`` returns something true, and returns that.

    RecordingError after ``seconds``, or as soon as one of the ``programs`` has ended.
    """
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        for program in programs:
            program.check()
        if time.monotonic() > deadline:
            raise RecordingError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.05)


def free_ports(count: int) -> tuple[int, ...]:
    """Loopback ports that were free just now, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return tuple(each.getsockname()[1] for each in sockets)
