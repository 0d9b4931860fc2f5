"""The proxy between a client and the broker, with a broker that answers every request with its own number."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from kipcheck.conformance.recorder.processes import free_ports
from kipcheck.conformance.recorder.proxy import Api, Incident, Proxy, Side

FETCH = 1


class Echo(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while len(length := self.rfile.read(4)) == 4:
            self.wfile.write(struct.pack(">i", 4) + self.rfile.read(int.from_bytes(length))[4:8])


class Broker(socketserver.ThreadingTCPServer):
    daemon_threads = True


@pytest.fixture
def broker() -> Iterator[int]:
    with Broker(("127.0.0.1", 0), Echo) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.02,))
        serving.start()
        yield server.server_address[1]
        server.shutdown()
        serving.join()


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture
def proxy(broker: int, port: int) -> Iterator[Proxy]:
    with Proxy(broker, port) as proxy:
        yield proxy


def connect(port: int) -> closing[socket.socket]:
    return closing(socket.create_connection(("127.0.0.1", port), timeout=5))


def send(client: socket.socket, api: int, number: int) -> None:
    body = struct.pack(">hhi", api, 9, number) + b"the rest"
    client.sendall(struct.pack(">i", len(body)) + body)


def answer(client: socket.socket) -> int | None:
    """The number of the next answer; None if the connection is broken."""
    frame = client.recv(8, socket.MSG_WAITALL)
    return int.from_bytes(frame[4:]) if frame else None


def ask(client: socket.socket, api: int, number: int) -> int | None:
    send(client, api, number)
    return answer(client)


def silent(client: socket.socket) -> bool:
    client.settimeout(0.2)
    try:
        return not client.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        client.settimeout(5)


@pytest.mark.usefixtures("proxy")
def test_everything_passes_without_a_plan(port: int) -> None:
    with connect(port) as client:
        assert [ask(client, api, number) for number, api in enumerate((Api.JOIN_GROUP, Api.SYNC_GROUP, FETCH))] == [0, 1, 2]


SIDES: tuple[Side, ...] = ("request", "answer")


@pytest.mark.parametrize("side", SIDES)
def test_a_message_held_up_holds_up_its_connection_only(proxy: Proxy, port: int, side: Side) -> None:
    incident = Incident("c1", side, Api.JOIN_GROUP, "hold")
    proxy.plan(incident)
    with connect(port) as client, connect(port) as other:
        assert ask(client, FETCH, 1) == 1
        assert not incident.happened.is_set()
        send(client, Api.JOIN_GROUP, 2)
        send(client, FETCH, 3)
        assert incident.happened.wait(5)
        assert silent(client)
        assert ask(other, Api.JOIN_GROUP, 4) == 4
        incident.released.set()
        assert [answer(client), answer(client)] == [2, 3]


@pytest.mark.parametrize("side", SIDES)
def test_a_connection_breaks_at_a_message_and_others_go_on(proxy: Proxy, port: int, side: Side) -> None:
    incident = Incident("c1", side, Api.SYNC_GROUP, "cut")
    proxy.plan(incident)
    with connect(port) as client, connect(port) as other:
        assert ask(other, FETCH, 1) == 1
        assert ask(client, Api.SYNC_GROUP, 2) is None
        assert incident.happened.is_set()
        assert ask(other, Api.SYNC_GROUP, 3) == 3
    with connect(port) as client:
        assert ask(client, Api.SYNC_GROUP, 4) == 4


def test_an_incident_waits_for_those_planned_before_it(proxy: Proxy, port: int) -> None:
    first, second = Incident("c1", "request", Api.SYNC_GROUP, "hold"), Incident("c1", "request", Api.JOIN_GROUP, "cut")
    proxy.plan(first)
    proxy.plan(second)
    first.released.set()
    with connect(port) as client:
        assert [ask(client, Api.JOIN_GROUP, 1), ask(client, Api.SYNC_GROUP, 2), ask(client, Api.JOIN_GROUP, 3)] == [1, 2, None]


def test_nothing_is_left_of_a_closed_proxy(broker: int, port: int) -> None:
    incident = Incident("c1", "request", Api.JOIN_GROUP, "hold")
    with ExitStack() as stack:
        with Proxy(broker, port) as proxy:
            proxy.plan(incident)
            client = stack.enter_context(connect(port))
            send(client, Api.JOIN_GROUP, 1)
            assert incident.happened.wait(5)
        assert answer(client) is None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    assert not [each for each in threading.enumerate() if each.name.startswith("prox")]


def test_a_client_of_a_broker_that_is_away_is_hung_up_on(port: int) -> None:
    with Proxy(free_ports(1)[0], port), connect(port) as client:
        assert answer(client) is None


def test_an_incident_names_its_message() -> None:
    assert str(Incident("c2", "answer", Api.JOIN_GROUP, "cut")) == "the JoinGroup answer of c2"
