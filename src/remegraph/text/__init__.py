"""Read words, without any knowledge of memories, by the word lists, patterns and weights of the data files."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["table", "text", "word_list"]


@cache
def table(name: str) -> Mapping[str, Any]:
    """Return a table.

    The name is that of the file without `.toml`.
    """
    return tomllib.loads(text(f"{name}.toml"))


def text(name: str) -> str:
    """Return what a file holds."""
    return (files("remegraph") / "data" / name).read_text(encoding="utf-8")


@cache
def word_list(name: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(text(name).split())
