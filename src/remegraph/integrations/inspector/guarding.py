"""The door: only this machine's browser, under our own name, after a login, with headers that let nothing else run."""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remegraph.integrations.inspector.sessions import Session

__all__ = ["Guard", "cookie_name"]

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


def cookie_name(host: str) -> str:
    """Return the name of the session's cookie: browsers send cookies to all ports of a host, so it says which.

    Args:
        host: As the browser calls us, with the port.
    """
    return f"remegraph-inspector-{host.rpartition(':')[2]}"


class Guard:
    """Wraps the inspector: refuses foreign hosts and origins and who is not let in, and sets the headers of all answers.

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
        """Return the answer to who may not come in; none to who may."""
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
