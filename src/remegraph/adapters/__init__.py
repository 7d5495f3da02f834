"""The kit where LangChain and LangGraph look for memory: one line each.

Nothing is imported before it is asked for: who uses the tools need not install what the middleware needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remegraph.adapters.history import MessageHistory
    from remegraph.adapters.labels import decode_label, encode_label
    from remegraph.adapters.retriever import MemoryRetriever
    from remegraph.adapters.scopes import ScopeSource, resolve_scope
    from remegraph.adapters.store import MemoryStore
    from remegraph.adapters.tools import memory_tools

__all__ = [
    "MemoryRetriever",
    "MemoryStore",
    "MessageHistory",
    "ScopeSource",
    "decode_label",
    "encode_label",
    "memory_tools",
    "resolve_scope",
]

_HOMES = {
    "MemoryRetriever": "retriever",
    "MemoryStore": "store",
    "MessageHistory": "history",
    "ScopeSource": "scopes",
    "decode_label": "labels",
    "encode_label": "labels",
    "memory_tools": "tools",
    "resolve_scope": "scopes",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
