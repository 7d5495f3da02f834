"""The kit as a server of the Model Context Protocol: for Claude, editors, and whatever else speaks it.

Nothing is imported before it is asked for: the extra may be missing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Literal

from remegraph.errors import MissingExtraError

if TYPE_CHECKING:
    from remegraph.servers.mcp.server import memory_server
    from remegraph.servers.mcp.transport import MemoryServer, Tokens, http_app, serve_http, serve_stdio

__all__ = ["MemoryServer", "Tokens", "http_app", "memory_server", "serve_http", "serve_stdio"]

Rights = Literal["read", "save", "write"]
"""Rights of a client: look things up; state new memories, too; take memories back and decide conflicts, too."""

_HOMES = dict.fromkeys(("MemoryServer", "Tokens", "http_app", "serve_http", "serve_stdio"), "transport") | {
    "memory_server": "server"
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
