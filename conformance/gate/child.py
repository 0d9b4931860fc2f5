"""A child process that is talked to in lines: never waited for without end, never left behind."""

from __future__ import annotations

import os
import select
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from time import monotonic
from typing import IO, cast

from ...spec.assignors.case import How
from .wire import one_line, quoted

LONGEST_LINE = 64 << 20
"""Bytes of a line, more than an answer with a million partitions needs."""
_SPAM = 1000
"""Lines beyond those that are due which no banner or stray message amounts to."""
_LAST_WORDS = 4096
"""Bytes that are kept of standard error."""
_LAST_LINES, _LAST_TEXT = 3, 250
"""Lines and characters that are quoted of it."""
_CHUNK = 1 << 16
_TICK = 0.1
"""Seconds after which a silent child is looked at: it may have ended while a process of its own holds the pipe open."""
_GRACE = 1.0
"""Seconds that a child is given to end by itself once its standard input is closed."""
_GUARD = ("/bin/sh", "-c", "read -r _; kill -s KILL -- -$$")
"""Leads the process group and kills it when our end of its pipe closes, however we end."""


class Ended(Exception):
    """A conversation that can't go on, and what happened."""

    def __init__(self, how: How, says: str) -> None:
        super().__init__(says)
        self.how: How = how
        self.says = says


class Child:
    """Started at once, in a process group of its own that ends with us. ``waited`` are the seconds spent waiting for it.

    ``environment`` is the whole of its environment, None for ours. Raises OSError when it can't be started.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.waited = 0.0
        self._guard = Popen(_GUARD, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, process_group=0)
        try:
            self._process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, process_group=self._guard.pid, env=environment)
        except BaseException:
            self._end_group()
            raise
        self._pipes = cast("tuple[IO[bytes], ...]", (self._process.stdin, self._process.stdout, self._process.stderr))
        self._in, self._out, self._err = (pipe.fileno() for pipe in self._pipes)
        self._poll = select.poll()
        for pipe in (self._in, self._out, self._err):
            os.set_blocking(pipe, False)
        self._poll.register(self._out, select.POLLIN)
        self._poll.register(self._err, select.POLLIN)
        self._to_tell: Iterator[bytes] = iter(())
        self._unwritten = bytearray()
        self._deaf = False
        self._lines: deque[bytes] = deque()
        self._unfinished = bytearray()
        self._silent = False
        self._words = bytearray()

    def tell(self, lines: Iterable[bytes]) -> None:
        """Write ``lines``, each with its end, while `hear` waits. They are asked for as the child takes them."""
        self._to_tell = iter(lines)

    def hear(self, seconds: float, due: int, *, start: float = 0.0) -> bytes:
        """The next of ``due`` lines, without its end.

        Raises `Ended` when it doesn't come within ``seconds``, and the seconds for its ``start`` on top, or far more lines come.
        """
        deadline = monotonic() + seconds + start
        while not self._lines:
            left = deadline - monotonic()
            if left <= 0:
                raise Ended("hang", f"no answer within {seconds:g} s{self._held_back()}{self._last_words()}")
            if self._pump(min(left, _TICK)):
                continue
            if self._silent or (self._process.poll() is not None and not self._read()):
                raise Ended("crash", self._epitaph())
        if len(self._lines) > due + _SPAM:
            raise Ended("flood", f"far more lines than it was asked for, first {quoted(self._lines[0])}")
        return self._lines.popleft()

    def _pump(self, seconds: float) -> bool:
        """Write and read what can be written and read, waiting up to ``seconds`` for something to happen. Whether something was heard."""
        self._write()
        started = monotonic()
        ready = self._poll.poll(seconds * 1000)
        self.waited += monotonic() - started
        heard = False
        for pipe, _ in ready:
            if pipe == self._out:
                heard = self._read()
            elif pipe == self._err:
                self._read_words()
        return heard

    def _write(self) -> None:
        while not self._deaf:
            while len(self._unwritten) < _CHUNK and (line := next(self._to_tell, None)) is not None:
                self._unwritten += line
            if not self._unwritten:
                break
            try:
                del self._unwritten[: os.write(self._in, self._unwritten)]
            except BlockingIOError:
                self._poll.register(self._in, select.POLLOUT)
                return
            except BrokenPipeError:
                self._deaf = True
        with suppress(KeyError):
            self._poll.unregister(self._in)

    def _read(self) -> bool:
        try:
            chunk = os.read(self._out, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._silent = True
            self._poll.unregister(self._out)
            return False
        first, *more = chunk.split(b"\n")
        self._unfinished += first
        if more:
            self._lines.append(bytes(self._unfinished))
            self._lines.extend(more[:-1])
            self._unfinished = bytearray(more[-1])
        if len(self._unfinished) > LONGEST_LINE:
            raise Ended("flood", f"a line of more than {LONGEST_LINE >> 20} MB, starting {quoted(bytes(self._unfinished[:100]))}")
        return True

    def _read_words(self) -> bool:
        try:
            chunk = os.read(self._err, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            with suppress(KeyError):
                self._poll.unregister(self._err)
        self._words += chunk
        del self._words[:-_LAST_WORDS]
        return bool(chunk)

    def _held_back(self) -> str:
        """Whether it has answers that come only at the end of its input, as those of a program that does not flush its output."""
        if self._unwritten:
            return ""
        self._pipes[0].close()
        heard = any(self._pump(_TICK) for _ in range(int(_GRACE / _TICK)))
        return ", only at the end of its input: standard output has to be flushed after every line" if heard else ""

    def _epitaph(self) -> str:
        """How it ended, or that it only fell silent, and its last words."""
        try:
            status = self._process.wait(_GRACE)
        except TimeoutExpired:
            return f"closed its standard output{self._last_words()}"
        if status < 0 or status > 128:
            number = -status if status < 0 else status - 128
            name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
            how = f"killed by {name}" if status < 0 else f"exit status {status} ({name})"
        else:
            how = f"exit status {status}"
        return f"{how}{self._last_words()}"

    def _last_words(self) -> str:
        for _ in range(_LAST_WORDS):
            if not self._read_words():
                break
        words = [one_line(each) for each in self._words.decode("utf-8", "replace").splitlines() if each.strip()]
        for count in range(_LAST_LINES, 1, -1):
            if len(text := " / ".join(words[-count:])) <= _LAST_TEXT:
                return f": {text}" if text else ""
        return f": {words[-1]}"

    def close(self, *, politely: bool = True) -> None:
        """End it and all that it started. ``politely``: its standard input closes, and it has a moment to end by itself."""
        for pipe in self._pipes:
            with suppress(OSError):
                pipe.close()
        if politely:
            with suppress(TimeoutExpired):
                self._process.wait(_GRACE)
        self._end_group()
        self._process.wait()

    def _end_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._guard.pid, signal.SIGKILL)
        self._guard.communicate()
