"""The kit where LangChain and LangGraph look for memory: one line each.

Nothing is imported before it is asked for: who uses the tools need not install what the middleware needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from remegraph.errors import MissingExtraError

if TYPE_CHECKING:
    from remegraph.adapters.answers import checked_arguments
    from remegraph.adapters.chains import MemoryRetriever, MessageHistory
    from remegraph.adapters.conversation_memory import MemoryCaptured, MemoryEvent, MemoryFailed, MemoryRecalled
    from remegraph.adapters.middleware import MemoryMiddleware
    from remegraph.adapters.nodes import Recalled, capture_node, memory_node, recall_node, until_answered, with_memory
    from remegraph.adapters.notes import inject
    from remegraph.adapters.review_tools import conflict_tools, history_tools
    from remegraph.adapters.scopes import ScopeSource, resolve_scope
    from remegraph.adapters.store import MemoryStore
    from remegraph.adapters.tool_handler import ToolMemoryHandler
    from remegraph.adapters.tools import memory_tools, skill_tools, tool_advice

__all__ = [
    "MemoryCaptured",
    "MemoryEvent",
    "MemoryFailed",
    "MemoryMiddleware",
    "MemoryRecalled",
    "MemoryRetriever",
    "MemoryStore",
    "MessageHistory",
    "Recalled",
    "ScopeSource",
    "ToolMemoryHandler",
    "capture_node",
    "checked_arguments",
    "conflict_tools",
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

_NAMES = {
    "answers": "checked_arguments",
    "chains": "MemoryRetriever MessageHistory",
    "conversation_memory": "MemoryCaptured MemoryEvent MemoryFailed MemoryRecalled",
    "middleware": "MemoryMiddleware",
    "nodes": "Recalled capture_node memory_node recall_node until_answered with_memory",
    "notes": "inject",
    "review_tools": "conflict_tools history_tools",
    "scopes": "ScopeSource resolve_scope",
    "store": "MemoryStore",
    "tool_handler": "ToolMemoryHandler",
    "tools": "memory_tools skill_tools tool_advice",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


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
