"""The door: only this machine's browser, under our own name, after a login, with headers that let nothing else run."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Collection
from threading import Lock

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remegraph import SetupError
from remegraph.servers.watch import PROBES

__all__ = ["ADDRESS", "Guard", "Session", "cookie_name", "listen", "shown"]

ADDRESS = "127.0.0.1"
_OPEN = ("/static/", "/login")
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def listen(port: int) -> socket.socket:
    """Return a socket on the loopback address, which no other machine can reach; port 0 takes any that is free.

    Raises:
        SetupError: The port is taken, or may not be used.
    """
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it would let others take the port from us
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((ADDRESS, port))
        door.listen()  # who opens the address as soon as it is printed waits, and is not turned away
    except OSError as error:
        door.close()
        raise SetupError(f"Port {port} cannot be used: {error.strerror}.", "Name another one with --port.") from error
    return door


class Session:
    """The one visit that an inspector serves. Its secrets live in memory and die with it."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        """Opens the door, once."""
        self.csrf = secrets.token_urlsafe(32)
        """Part of every form: only someone who has seen our pages can send one."""
        self._cookie = secrets.token_urlsafe(32)
        self._lock = Lock()
        self._open = True

    def enter(self, token: str) -> str | None:
        """Return the cookie for the right token, the first time; `None` for anything else."""
        with self._lock:
            if not self._open or not _same(token, self.token):
                return None
            self._open = False
            return self._cookie

    def knows(self, cookie: str) -> bool:
        """Return whether this cookie belongs to the visitor who was let in."""
        return _same(cookie, self._cookie)

    def sent(self, csrf: str) -> bool:
        """Return whether a form with this token is one of ours."""
        return _same(csrf, self.csrf)


def _same(given: str, expected: str) -> bool:
    """Compare in constant time."""
    return secrets.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def cookie_name(host: str) -> str:
    """Return the name of the session's cookie, with the port of the host: browsers send cookies to all its ports."""
    return f"remegraph-inspector-{host.rpartition(':')[2]}"


def shown(scope: Scope) -> str | None:
    """Return the secret that a request shows: its cookie, or the token of a login."""
    request = Request(scope)
    return request.cookies.get(cookie_name(request.headers.get("host", ""))) or request.query_params.get("token")


class Guard:
    """Wraps the inspector: refuses foreign hosts, origins and visitors, and sets the headers of all answers.

    Args:
        app: The inspector.
        session: The visit.
        hosts: The names, with port, that we answer to: another one is a page elsewhere that points its name at us.
    """

    def __init__(self, app: ASGIApp, session: Session, hosts: Collection[str]) -> None:
        self._app = app
        self._session = session
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the inspector answer."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # we have no web sockets; a server that closes one says 403
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        """Return the answer to a visitor who may not come in."""
        if scope["path"] in PROBES:  # a prober has neither our name nor a token, and learns nothing
            return None
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host not in self._hosts:
            return PlainTextResponse("This host is not ours.", 421)
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return PlainTextResponse("This comes from another site.", 403)
        if scope["path"].startswith(_OPEN):
            return None
        if self._session.knows(Request(scope).cookies.get(cookie_name(host), "")):
            return None
        return RedirectResponse("/login", 303)
