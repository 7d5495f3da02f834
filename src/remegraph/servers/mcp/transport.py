"""How the server is reached: by the pipes of a process, or over HTTP with a token for each caller."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self

import uvicorn
from mcp import stdio_server
from mcp.server import Server
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl, ValidationError
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.types import Scope as Request

from remegraph.errors import InputError, RemegraphError, SetupError
from remegraph.kit import MemoryKit
from remegraph.kit.validation import required
from remegraph.models import Scope
from remegraph.servers.watch import AccessLog, digest, probes
from remegraph.settings import closed_to_others
from remegraph.telemetry import event

__all__ = ["MemoryServer", "Tokens", "http_app", "scope_of", "serve_http", "serve_stdio"]

_PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LARGEST = 1_000_000
"""Bytes of one request: what a model says in one call is far less."""
_SHORTEST = 16
"""Characters of a token."""
_SCOPE = "remegraph_scope"

_log = logging.getLogger("remegraph.access")


class MemoryServer(Server[Any]):
    """A server of the SDK over a kit; see `memory_server`."""

    kit: MemoryKit


class Tokens(TokenVerifier):
    """Knows each token by its digest, so that comparing takes the same time however much of one is guessed.

    Args:
        scopes: The scope of each token.

    Raises:
        InputError: There is none, or one is too short to be a secret.
        ScopeError: One has no user.
    """

    def __init__(self, scopes: Mapping[str, Scope]) -> None:
        self._scopes = _known(scopes)
        self._file: Path | None = None
        self._stamp: tuple[int, ...] = ()

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Read tokens from a JSON file: `{"TOKEN": {"user": ..., "agent": ...}, ...}`.

        When the file has changed, the next request is checked against its new content: a token that was taken out is
        refused, and a new one let in. Replace it whole; one that cannot be used changes nothing, and the log says so.

        Args:
            path: The file; its group may read it, others may not use it at all.

        Raises:
            SetupError: It cannot be read, others can read it, or it holds something else.
            InputError: A token is too short.
        """
        stamp = _stamp(path)
        tokens = cls(_read(path))
        tokens._file, tokens._stamp = path, stamp
        return tokens

    def reload(self) -> None:
        """Read the file again, if there is one. Where it cannot be used, those known so far are kept."""
        if self._file is None:
            return
        self._stamp = _stamp(self._file)
        try:
            self._scopes = _known(_read(self._file))
        except RemegraphError as error:
            _log.error("Tokens stay as they were: %s", error, extra=event("access.tokens", error))
        else:
            _log.info("Tokens read: %d", len(self._scopes), extra=event("access.tokens", tokens=len(self._scopes)))

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the scope of a token; none, if it is unknown."""
        if self._file is not None and _stamp(self._file) != self._stamp:
            self.reload()
        name = digest(token)
        scope = self._scopes.get(name)
        if scope is None:
            return None
        return AccessToken(token=name, client_id=name, scopes=[], claims={_SCOPE: scope.model_dump()})


_FORM = 'Write {"TOKEN": {"user": "ann"}} there.'
_NAMED_AT_ONCE = 5  # wrong entries that one error names


def _known(scopes: Mapping[str, Scope]) -> dict[str, Scope]:
    cure = "Make one: openssl rand -hex 32."
    if not scopes:
        raise InputError("There is no token.", cure)
    for place, token in enumerate(scopes, 1):
        if len(token) < _SHORTEST:
            raise InputError(f"The token of entry {place} has under {_SHORTEST} characters.", cure)
    return {digest(token): required(scope) for token, scope in scopes.items()}


def _read(path: Path) -> dict[str, Scope]:
    try:
        given = dict(json.loads(closed_to_others(path).read_text(encoding="utf-8")))
    except json.JSONDecodeError as error:  # it says where, in the words of the grammar
        raise SetupError(f"The tokens in {path} cannot be read: {error}.", _FORM) from None  # it holds the whole file
    except (OSError, ValueError, TypeError) as error:
        raise SetupError(f"The tokens in {path} cannot be read ({type(error).__name__}).", _FORM) from error
    found: dict[str, Scope] = {}
    faults: list[str] = []
    for place, (token, scope) in enumerate(given.items(), 1):
        try:
            found[token] = Scope.model_validate(scope)
        except ValidationError as error:
            faults.append(f"entry {place} is no scope ({_faults(error)})")
    if faults:
        more = f", and {len(faults) - _NAMED_AT_ONCE} more" if len(faults) > _NAMED_AT_ONCE else ""
        raise SetupError(f"The tokens in {path} cannot be read: {'; '.join(faults[:_NAMED_AT_ONCE])}{more}.", _FORM)
    return found


def _faults(error: ValidationError) -> str:
    """Return what is wrong with an entry without a word of it: its token is a secret, and logs name no user.

    A key that is not known comes first: where one is missing, it was mostly mistyped.
    """
    found = error.errors(include_input=False, include_url=False)
    found.sort(key=lambda each: each["type"] != "extra_forbidden")
    return "; ".join(
        (f"its key {'.'.join(map(str, each['loc']))!r}: " if each["loc"] else "") + each["msg"] for each in found
    )


def _stamp(path: Path) -> tuple[int, ...]:
    """Return what changes with a file, also where it is replaced by way of a link, as secrets of Kubernetes are."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size


def scope_of(token: AccessToken) -> Scope | None:
    """Return the scope of a token that `Tokens` verified."""
    claims = token.claims or {}
    return Scope.model_validate(claims[_SCOPE]) if _SCOPE in claims else None


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client over standard input and output, until it closes them.

    Args:
        server: As `memory_server` returns it, with a scope.
    """
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def http_app(server: MemoryServer, tokens: Tokens, *, names: Sequence[str] = _LOOPBACK) -> Starlette:
    """Return the server as an ASGI application, at `/mcp`; beside it, without a token, the [probes](../health.md).

    A request needs a token, must be addressed to one of the names (else a web page could reach it by a name of its own
    that leads here), and must not come from a web page at all: one that has an `Origin` is refused.

    Args:
        server: As `memory_server` returns it, without a scope.
        tokens: The scope of each token.
        names: The host names that clients reach it by, without port.
    """
    security = TransportSecuritySettings(allowed_hosts=[host for name in names for host in (name, f"{name}:*")])
    app = server.streamable_http_app(
        streamable_http_path=_PATH,
        max_request_body_size=_LARGEST,
        transport_security=security,
        token_verifier=tokens,
        # tokens are given by hand
        auth=AuthSettings(issuer_url=AnyHttpUrl("http://localhost"), resource_server_url=None),
        custom_starlette_routes=probes(server.kit),
    )
    app.add_middleware(AccessLog, server="mcp", shown=_bearer)
    return app


def _bearer(request: Request) -> str | None:
    """Return the token that a request shows."""
    kind, _, token = Headers(scope=request).get("authorization", "").partition(" ")
    return token if kind.casefold() == "bearer" else None


async def serve_http(
    server: MemoryServer,
    tokens: Tokens,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    names: Sequence[str] = (),
    ready: Callable[[str], object] = lambda _: None,
) -> None:
    """Serve over HTTP until the process is stopped. On SIGHUP the file of tokens is read again, as after any change of it.

    Args:
        server: As `memory_server` returns it, without a scope.
        tokens: The scope of each token.
        host: The address to listen at. There is no encryption: what is not loopback belongs behind a proxy with TLS.
        port: The port; 0 for a free one.
        names: The host names that clients reach it by; must be given where the address is not loopback.
        ready: Called with the URL once it listens.

    Raises:
        SetupError: The address cannot be listened at, or would open the memory to a network by mistake.
    """
    if not (names or _is_loopback(host)):
        raise SetupError(
            f"{host} can be reached from other machines.",
            "Say by which name, that of a proxy with TLS: --name memory.example.org; or listen at 127.0.0.1.",
        )
    app = http_app(server, tokens, names=names or _LOOPBACK)
    config = uvicorn.Config(app, log_config=None, log_level="warning", ws="none", server_header=False)
    with _listening(host, port) as listener:
        address = f"[{host}]" if ":" in host else host
        ready(f"http://{address}:{listener.getsockname()[1]}{_PATH}")
        with _hearing_hangups(tokens.reload):
            await uvicorn.Server(config).serve(sockets=[listener])


@contextmanager
def _hearing_hangups(heard: Callable[[], None]) -> Iterator[None]:
    """Have something done at each SIGHUP, which would end the process; where there is none, or in a thread, do nothing."""
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, heard)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port < 2**16:
        raise SetupError(f"There is no port {port}.", "Give one up to 65535.")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise SetupError(f"Cannot listen at {host}, port {port}: {error}.", "Give another address or port.") from error
