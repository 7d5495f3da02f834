"""Watching a server: probes that need no token, and a log of who came in."""

from __future__ import annotations

import logging
from collections.abc import Callable
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remegraph import MemoryKit
from remegraph.telemetry import event

__all__ = ["PROBES", "AccessLog", "digest", "probes"]

LIVE, READY = PROBES = ("/health/live", "/health/ready")
"""Where the probes are."""

_REFUSED = frozenset({401, 403, 421})
_SHOWN = 12
"""Digits of a digest that distinguish callers. They say nothing of a secret; a name is guessed from a list of names."""

_log = logging.getLogger("remegraph.access")


def probes(kit: MemoryKit) -> list[Route]:
    """Return the routes `/health/live` and `/health/ready`, for orchestrators and load balancers.

    They need no token and say nothing else: live, whether the process answers; ready (200, or 503), whether the ledger
    answered within two seconds and fits this release. What else is missing, as the index, is none of theirs.

    Args:
        kit: The memory that is served.
    """

    async def live(_: Request) -> PlainTextResponse:  # noqa: RUF029 - as Starlette calls it
        return PlainTextResponse("live")

    async def ready(_: Request) -> PlainTextResponse:
        fine = await kit.admin.aready()
        return PlainTextResponse("ready" if fine else "not ready", 200 if fine else 503)

    return [Route(LIVE, live), Route(READY, ready)]


def digest(secret: str) -> str:
    """Return what a secret is known by."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class AccessLog:
    """Logs each answer to `remegraph.access`: which server, the status, and the caller by the digest of what they showed.

    A refusal is logged as a warning. No address, path or word of a request does.

    Args:
        app: The server.
        server: Its name.
        shown: Returns the secret that a request shows; none where it shows none.
    """

    def __init__(self, app: ASGIApp, *, server: str, shown: Callable[[Scope], str | None]) -> None:
        self._app = app
        self._server = server
        self._shown = shown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and log that."""
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(scope, message["status"])
            await send(message)

        await self._app(scope, receive, noted)

    def _note(self, scope: Scope, status: int) -> None:
        secret, server = self._shown(scope), self._server
        caller = digest(secret)[:_SHOWN] if secret else "nobody"
        if status in _REFUSED:
            fields = event("access.refused", server=server, caller=caller, status=status)
            _log.warning("%s refused %s: %d", server, caller, status, extra=fields)
        else:
            fields = event("access.answered", server=server, caller=caller, status=status)
            _log.info("%s answered %s: %d", server, caller, status, extra=fields)
