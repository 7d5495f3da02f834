"""Where LangGraph and LangChain look for memory; each adapter is imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remegraph.adapters.labels import decode_label, encode_label
    from remegraph.adapters.store import MemoryStore

__all__ = ["MemoryStore", "decode_label", "encode_label"]

_HOMES = {
    "MemoryStore": "remegraph.adapters.store",
    "decode_label": "remegraph.adapters.labels",
    "encode_label": "remegraph.adapters.labels",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
