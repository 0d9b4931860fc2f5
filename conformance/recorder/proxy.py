"""Stands between one client and the broker, on loopback, and can hold up a message or break the connection at it.

Kafka's frames: four bytes of length; then, in a request, the api key (two bytes), its version (two) and the correlation id
(four); in an answer, the correlation id.
"""

import socket
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import BinaryIO, Final, Literal, Self, TypeAlias

Side: TypeAlias = Literal["request", "answer"]
HOST: Final = "127.0.0.1"


class Api(IntEnum):
    """The requests that a script can pick out, by Kafka's api key."""

    JOIN_GROUP = 11
    SYNC_GROUP = 14

    @property
    def title(self) -> str:
        """Kafka's name of it."""
        return self.name.title().replace("_", "")


@dataclass(frozen=True, slots=True)
class Incident:
    """What befalls one message of a client: it waits on its way until ``released`` is set, or the connection breaks at it.

    A message held up also holds up what follows it on its connection. The client's other connections go on.
    """

    client: str
    side: Side
    api: Api
    kind: Literal["hold", "cut"]
    happened: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def __str__(self) -> str:
        return f"the {self.api.title} {self.side} of {self.client}"


class Proxy:
    """Passes every frame on, but for those that its incidents are about; a context manager."""

    def __init__(self, broker_port: int, port: int) -> None:
        """Listens on ``port``; OSError if it is taken."""
        self._broker_port = broker_port
        self._lock = threading.Lock()
        self._plan: deque[Incident] = deque()
        self._held: list[Incident] = []
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._listener = socket.create_server((HOST, port))
        self._accepting = threading.Thread(target=self._accept, name=f"proxy {port}", daemon=True)
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Breaks all connections, and returns when nothing is left."""
        with self._lock:
            self._closed = True
            self._plan.clear()
            for incident in self._held:
                incident.released.set()
            for each in (self._listener, *self._sockets):
                _break(each)
        self._listener.close()
        self._accepting.join()
        for thread in self._threads:
            thread.join()

    def plan(self, incident: Incident) -> None:
        """The incident befalls the first message of its kind after the incidents planned before it have happened."""
        with self._lock:
            self._plan.append(incident)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), name="proxied connection", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection((HOST, self._broker_port)) as broker:
            with self._lock:
                if self._closed:
                    return
                self._sockets += client, broker
            asked: dict[bytes, int] = {}
            answers = threading.Thread(target=self._pass_on, args=("answer", broker, client, asked), name="proxied answers", daemon=True)
            answers.start()
            self._pass_on("request", client, broker, asked)
            answers.join()

    def _pass_on(self, side: Side, source: socket.socket, sink: socket.socket, asked: dict[bytes, int]) -> None:
        """Until either end is closed. ``asked``: the api key of each correlation id that waits for its answer."""
        with suppress(OSError), source.makefile("rb") as frames:
            while frame := _read(frames):
                if side == "request":
                    api = asked[frame[8:12]] = int.from_bytes(frame[4:6])
                else:
                    api = asked.pop(frame[4:8])
                if not self._passes(side, api):
                    break
                sink.sendall(frame)
        _break(source)
        _break(sink)

    def _passes(self, side: Side, api: int) -> bool:
        """Lets the next incident happen if it is about this message; False if the connection breaks at it."""
        with self._lock:
            if not self._plan or (self._plan[0].side, self._plan[0].api) != (side, api):
                return True
            incident = self._plan.popleft()
            self._held.append(incident)
        incident.happened.set()
        if incident.kind == "cut":
            return False
        incident.released.wait()
        return True


def _read(frames: BinaryIO) -> bytes:
    """The next whole frame, with its length; nothing at the end of the connection."""
    length = frames.read(4)
    body = frames.read(int.from_bytes(length))
    return length + body if body and len(body) == int.from_bytes(length) else b""


def _break(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
