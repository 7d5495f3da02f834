"""The composition root: what applications open and call. A name is imported when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remegraph.kit.kit import MemoryKit

__all__ = ["MemoryKit"]

_HOMES = {"MemoryKit": "remegraph.kit.kit"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
