"""How the server is reached: by the pipes of a process, or by HTTP on this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any

import uvicorn
from mcp import stdio_server
from mcp.server import Server
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette

from remegraph.errors import SetupError
from remegraph.integrations.mcp.tokens import Tokens

__all__ = ["http_app", "serve_http", "serve_stdio"]

_PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LARGEST = 1_000_000
"""Bytes of one request: what a model says in one call is far less."""


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
        auth=AuthSettings(
            issuer_url=AnyHttpUrl("http://localhost"), resource_server_url=None
        ),  # tokens are given by hand
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
