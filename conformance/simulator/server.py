"""The session behind HTTP, for a browser on this machine and for nobody else.

It listens on the loopback address only. A random token is part of every path, and requests that name another host, or come from
another site's page, are refused: so no page that happens to be open can reach it, not by DNS rebinding either. All tabs share the session.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Protocol, cast

from ...model.mutations import REFERENCE, SCENARIOS
from . import session
from .page import page, shown
from .presets import PRESETS
from .script import command, known, read
from .session import Session
from .view import view

ADDRESS = "127.0.0.1"
LONGEST_BODY = 512 * 1024
PATIENCE_S = 30
"""How long a connection may say nothing."""

_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


class Refused(Exception):
    """A request that is answered with an error; the text is for the user."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Simulator(ThreadingHTTPServer):
    """Serves one session; ``address`` is what the browser opens. Port 0 takes any free one. Raises OSError if it is taken."""

    daemon_threads = True

    def __init__(self, begun: Session, port: int = 0) -> None:
        super().__init__((ADDRESS, port), _Handler)
        self.token = secrets.token_urlsafe(24)
        self.session = begun
        self.turn = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tells of defects; a browser that hangs up is none."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


# What can be asked for.


def _do(now: Session, body: Mapping[str, object]) -> Session:
    for line in _texts(body, "lines"):
        now = session.obey(now, command(line))
    return now


def _go(now: Session, body: Mapping[str, object]) -> Session:
    step = body.get("step")
    if not isinstance(step, int) or isinstance(step, bool):
        raise ValueError("step must be a number")
    return session.go(now, step)


def _mutate(now: Session, body: Mapping[str, object]) -> Session:
    mutation = _text(body, "mutation")
    return session.mutate(now, known(mutation, REFERENCE, "mutation") if mutation else None)


def _begin(body: Mapping[str, object]) -> Session:
    """Another run; it may take seconds to find, so nobody waits for it."""
    match list(body):
        case ["preset"]:
            return PRESETS[known(_text(body, "preset"), PRESETS, "preset")].begin()
        case ["scenario"]:
            return session.scenario(known(_text(body, "scenario"), SCENARIOS, "scenario"))
        case ["counterexample"]:
            return session.counterexample(known(_text(body, "counterexample"), REFERENCE, "mutation"))
        case ["script"]:
            return session.begin(read(_text(body, "script")))
        case _:
            raise ValueError("begin with a preset, a scenario, a counterexample or a script")


_POSTS: Mapping[str, Callable[[Session, Mapping[str, object]], Session]] = {"do": _do, "go": _go, "mutate": _mutate}


class _Get(Protocol):
    def __call__(self, now: Session, /) -> str: ...


_GETS: Mapping[str, tuple[str, _Get]] = {
    "": ("text/html", lambda _: page()),
    "state": ("application/json", lambda now: json.dumps(view(now))),
    session.TRACE: ("application/x-ndjson", lambda now: "".join(f"{line}\n" for line in session.trace(now))),
    session.SCRIPT: ("text/plain", lambda now: str(now.script)),
    "show": ("text/html", shown),
}
_SAVED = frozenset({session.TRACE, session.SCRIPT})


def _text(body: Mapping[str, object], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text")
    return value


def _texts(body: Mapping[str, object], name: str) -> list[str]:
    values = body.get(name)
    if not isinstance(values, list) or not all(isinstance(each, str) for each in cast("list[object]", values)):
        raise ValueError(f"{name} must be a list of texts")
    return cast("list[str]", values)


# HTTP.


class _Handler(BaseHTTPRequestHandler):
    server: Simulator  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version = "kipcheck"
    sys_version = ""
    timeout = PATIENCE_S
    _ALWAYS: ClassVar[Mapping[str, str]] = {
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }

    def do_GET(self) -> None:
        try:
            name = self._asked()
            if name not in _GETS:
                raise Refused(HTTPStatus.NOT_FOUND, "there is no such page")
            kind, get = _GETS[name]
            self._answer(HTTPStatus.OK, kind, get(self.server.session), saved=name if name in _SAVED else None)
        except Refused as refused:
            self._refuse(refused)

    def do_POST(self) -> None:
        try:
            name = self._asked()
            body = self._body()
            if name not in _POSTS and name != "begin":
                raise Refused(HTTPStatus.NOT_FOUND, "there is no such command")
            try:
                begun = _begin(body) if name == "begin" else None
                with self.server.turn:
                    self.server.session = now = begun if begun is not None else _POSTS[name](self.server.session, body)
            except ValueError as error:
                raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error
            self._answer(HTTPStatus.OK, "application/json", json.dumps(view(now)))
        except Refused as refused:
            self._refuse(refused)

    def _asked(self) -> str:
        """What is asked for below the token. Raises `Refused`."""
        host = f"{ADDRESS}:{self.server.server_port}"
        if self.headers.get("Host") != host:
            raise Refused(HTTPStatus.FORBIDDEN, "wrong host")
        if self.headers.get("Origin", f"http://{host}") != f"http://{host}" or self.headers.get("Sec-Fetch-Site") == "cross-site":
            raise Refused(HTTPStatus.FORBIDDEN, "wrong origin")
        _, token, name = (*self.path.partition("?")[0].split("/", 2), "", "")[:3]
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise Refused(HTTPStatus.NOT_FOUND, "there is nothing here: open the address that kipcheck simulate printed")
        return name

    def _body(self) -> Mapping[str, object]:
        if self.headers.get_content_type() != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a command is JSON")
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,9}", length):
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "a command has a length")
        if int(length) > LONGEST_BODY:
            self.rfile.read(min(int(length), 2 * LONGEST_BODY))  # an answer gets lost if the connection is closed on bytes that nobody read
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a command is at most {LONGEST_BODY:,} bytes long")
        try:
            body: object = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise Refused(HTTPStatus.BAD_REQUEST, "a command is JSON") from error
        if not isinstance(body, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, "a command is a JSON object")
        return cast("dict[str, object]", body)

    def _refuse(self, refused: Refused) -> None:
        self.close_connection = True
        self._answer(refused.status, "application/json", json.dumps({"error": str(refused)}))

    def _answer(self, status: HTTPStatus, kind: str, text: str, *, saved: str | None = None) -> None:
        content = text.encode("utf-8", "replace")
        self.send_response(status)
        headers = {**self._ALWAYS, "Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(content))}
        headers["Content-Security-Policy"] = policy(content if kind == "text/html" else b"")
        if saved:
            headers["Content-Disposition"] = f'attachment; filename="{saved}"'
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal has the address, and stays readable."""


def policy(html: bytes) -> str:
    """A content security policy that lets a page run the scripts that stand in it and talk to this server, and nothing else."""
    digests = (base64.b64encode(hashlib.sha256(script).digest()).decode() for script in _SCRIPT.findall(html))
    scripts = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
