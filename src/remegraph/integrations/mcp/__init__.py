"""The kit as a server of the Model Context Protocol: for Claude, editors, and whatever else speaks it.

Nothing is imported before it is asked for: the extra may be missing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from remegraph.errors import MissingExtraError

if TYPE_CHECKING:
    from remegraph.integrations.mcp.server import memory_server
    from remegraph.integrations.mcp.serving import http_app, serve_http, serve_stdio
    from remegraph.integrations.mcp.tokens import Tokens

__all__ = ["Tokens", "http_app", "memory_server", "serve_http", "serve_stdio"]

_HOMES = {
    "Tokens": "tokens",
    "http_app": "serving",
    "memory_server": "server",
    "serve_http": "serving",
    "serve_stdio": "serving",
}
_EXTRA = frozenset({"mcp", "mcp_types", "starlette", "uvicorn"})


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = import_module(f"{__name__}.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise MissingExtraError("The MCP server needs mcp.", "Run: pip install 'remegraph[mcp]'.") from error
    return getattr(home, name)
