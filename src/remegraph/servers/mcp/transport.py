"""How the server is reached: by the pipes of a process, or over HTTP with a token for each caller."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
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

from remegraph.errors import InputError, SetupError
from remegraph.kit.validation import required
from remegraph.models import Scope

__all__ = ["Tokens", "http_app", "scope_of", "serve_http", "serve_stdio"]

_PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LARGEST = 1_000_000
"""Bytes of one request: what a model says in one call is far less."""
_SHORTEST = 16
"""Characters of a token."""
_SCOPE = "remegraph_scope"


class Tokens(TokenVerifier):
    """Knows each token by its digest, so that comparing takes the same time however much of one is guessed.

    Args:
        scopes: Whom each token stands for.

    Raises:
        InputError: There is none, or one is too short to be a secret.
        ScopeError: One stands for nobody.
    """

    def __init__(self, scopes: Mapping[str, Scope]) -> None:
        if not scopes or any(len(token) < _SHORTEST for token in scopes):
            raise InputError(
                f"A token has under {_SHORTEST} characters, or there is none.", "Make one: openssl rand -hex 32."
            )
        self._scopes = {_digest(token): required(scope) for token, scope in scopes.items()}

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Read tokens from a JSON file: `{"TOKEN": {"user": ..., "agent": ...}, ...}`.

        Args:
            path: The file; others must not be able to read it.

        Raises:
            SetupError: It cannot be read, others can read it, or it holds something else.
            InputError: A token is too short.
        """
        try:
            others = stat.S_IMODE(path.stat().st_mode) & 0o077 if os.name == "posix" else 0
            given = json.loads(path.read_text(encoding="utf-8"))
            scopes = {token: Scope.model_validate(scope) for token, scope in dict(given).items()}
        except (OSError, ValueError, TypeError, ValidationError) as error:
            raise SetupError(
                f"The tokens in {path} cannot be read ({type(error).__name__}).",
                'Write {"TOKEN": {"user": "ann"}} there.',
            ) from error
        if others:
            raise SetupError(f"Others than its owner may use {path}.", f"Run: chmod 600 {path}.")
        return cls(scopes)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whom a token stands for; nobody, if it is unknown."""
        digest = _digest(token)
        scope = self._scopes.get(digest)
        if scope is None:
            return None
        return AccessToken(token=digest, client_id=digest, scopes=[], claims={_SCOPE: scope.model_dump()})


def scope_of(token: AccessToken) -> Scope | None:
    """Return whom a token stands for that `Tokens` verified."""
    claims = token.claims or {}
    return Scope.model_validate(claims[_SCOPE]) if _SCOPE in claims else None


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client over standard input and output, until it closes them.

    Args:
        server: As `memory_server` returns it, with a scope.
    """
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def http_app(server: Server[Any], tokens: Tokens, *, names: Sequence[str] = _LOOPBACK) -> Starlette:
    """Return the server as an ASGI application, at `/mcp`.

    A request needs a token, must be addressed to one of the names (else a web page could reach it by a name of its own
    that leads here), and must not come from a web page at all: one that has an `Origin` is refused.

    Args:
        server: As `memory_server` returns it, without a scope.
        tokens: Whom each token stands for.
        names: The host names that clients reach it by, without port.
    """
    security = TransportSecuritySettings(allowed_hosts=[host for name in names for host in (name, f"{name}:*")])
    return server.streamable_http_app(
        streamable_http_path=_PATH,
        max_request_body_size=_LARGEST,
        transport_security=security,
        token_verifier=tokens,
        # tokens are given by hand
        auth=AuthSettings(issuer_url=AnyHttpUrl("http://localhost"), resource_server_url=None),
    )


async def serve_http(
    server: Server[Any],
    tokens: Tokens,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    names: Sequence[str] = (),
    ready: Callable[[str], object] = lambda _: None,
) -> None:
    """Serve over HTTP until the process is told to stop.

    Args:
        server: As `memory_server` returns it, without a scope.
        tokens: Whom each token stands for.
        host: The address to listen at. There is no encryption: what is not loopback belongs behind a proxy with TLS.
        port: The port; 0 for a free one.
        names: The host names that clients reach it by; must be given where the address is not loopback.
        ready: Told the URL once it listens.

    Raises:
        SetupError: The address cannot be listened at, or would open the memory to a network by mistake.
    """
    if not (names or _is_loopback(host)):
        raise SetupError(
            f"{host} can be reached from other machines.",
            "Say by which name, that of a proxy with TLS: --name memory.example.org; or listen at 127.0.0.1.",
        )
    app = http_app(server, tokens, names=names or _LOOPBACK)
    config = uvicorn.Config(app, log_level="warning", ws="none", server_header=False)
    with _listening(host, port) as listener:
        address = f"[{host}]" if ":" in host else host
        ready(f"http://{address}:{listener.getsockname()[1]}{_PATH}")
        await uvicorn.Server(config).serve(sockets=[listener])


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
