"""The kit where LangChain and LangGraph look for memory: one line each.

Nothing is imported before it is asked for: who uses the tools need not install what the middleware needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remegraph.adapters.labels import decode_label, encode_label
    from remegraph.adapters.store import MemoryStore

__all__ = ["MemoryStore", "decode_label", "encode_label"]

_HOMES = {
    "MemoryStore": "store",
    "decode_label": "labels",
    "encode_label": "labels",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
