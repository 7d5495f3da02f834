"""The kit where LangChain and LangGraph look for memory: one line each.

Nothing is imported before it is asked for: who uses the tools need not install what the middleware needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from remegraph.errors import MissingExtraError

if TYPE_CHECKING:
    from remegraph.adapters.accounting import history_tools
    from remegraph.adapters.arguments import checked_arguments
    from remegraph.adapters.conflicts import conflict_tools
    from remegraph.adapters.events import MemoryCaptured, MemoryEvent, MemoryFailed, MemoryRecalled
    from remegraph.adapters.hearing import ToolMemoryHandler
    from remegraph.adapters.history import MessageHistory
    from remegraph.adapters.injecting import inject
    from remegraph.adapters.labels import decode_label, encode_label
    from remegraph.adapters.middleware import MemoryMiddleware
    from remegraph.adapters.nodes import Recalled, capture_node, memory_node, recall_node, until_answered
    from remegraph.adapters.retriever import MemoryRetriever
    from remegraph.adapters.scopes import ScopeSource, resolve_scope
    from remegraph.adapters.services import (
        BaseMemoryService,
        KnowledgeExchange,
        KnowledgeService,
        MemoryService,
        RetrievalOptions,
        RetrievalType,
        RetrievedItem,
    )
    from remegraph.adapters.store import MemoryStore
    from remegraph.adapters.tools import memory_tools, skill_tools, tool_advice
    from remegraph.adapters.wrapping import with_memory

__all__ = [
    "BaseMemoryService",
    "KnowledgeExchange",
    "KnowledgeService",
    "MemoryCaptured",
    "MemoryEvent",
    "MemoryFailed",
    "MemoryMiddleware",
    "MemoryRecalled",
    "MemoryRetriever",
    "MemoryService",
    "MemoryStore",
    "MessageHistory",
    "Recalled",
    "RetrievalOptions",
    "RetrievalType",
    "RetrievedItem",
    "ScopeSource",
    "ToolMemoryHandler",
    "capture_node",
    "checked_arguments",
    "conflict_tools",
    "decode_label",
    "encode_label",
    "history_tools",
    "inject",
    "memory_node",
    "memory_tools",
    "recall_node",
    "resolve_scope",
    "skill_tools",
    "tool_advice",
    "until_answered",
    "with_memory",
]

_HOMES = {
    "BaseMemoryService": "services",
    "KnowledgeExchange": "services",
    "KnowledgeService": "services",
    "MemoryCaptured": "events",
    "MemoryEvent": "events",
    "MemoryFailed": "events",
    "MemoryMiddleware": "middleware",
    "MemoryRecalled": "events",
    "MemoryRetriever": "retriever",
    "MemoryService": "services",
    "MemoryStore": "store",
    "MessageHistory": "history",
    "Recalled": "nodes",
    "RetrievalOptions": "services",
    "RetrievalType": "services",
    "RetrievedItem": "services",
    "ScopeSource": "scopes",
    "ToolMemoryHandler": "hearing",
    "capture_node": "nodes",
    "checked_arguments": "arguments",
    "conflict_tools": "conflicts",
    "decode_label": "labels",
    "encode_label": "labels",
    "history_tools": "accounting",
    "inject": "injecting",
    "memory_node": "nodes",
    "memory_tools": "tools",
    "recall_node": "nodes",
    "resolve_scope": "scopes",
    "skill_tools": "tools",
    "tool_advice": "tools",
    "until_answered": "nodes",
    "with_memory": "wrapping",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = import_module(f"{__name__}.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "langchain":
            raise
        raise MissingExtraError(f"{name} needs langchain.", "Run: pip install 'remegraph[langchain]'.") from error
    return getattr(home, name)
