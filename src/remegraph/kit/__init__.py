"""The composition root: what applications open and call. A name is imported when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remegraph.kit.components import OpenOptions
    from remegraph.kit.kit import MemoryKit
    from remegraph.kit.statements import SaveOptions

__all__ = ["MemoryKit", "OpenOptions", "SaveOptions"]

_HOMES = {
    "MemoryKit": "remegraph.kit.kit",
    "OpenOptions": "remegraph.kit.components",
    "SaveOptions": "remegraph.kit.statements",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
