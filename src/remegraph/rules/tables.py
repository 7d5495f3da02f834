"""The word lists, patterns and weights that stand in data files beside the rules."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["table", "text"]


@cache
def table(name: str) -> Mapping[str, Any]:
    """Return a table.

    Args:
        name: Name of the file, without `.toml`.
    """
    return tomllib.loads(text(f"{name}.toml"))


def text(name: str) -> str:
    """Return what a file holds.

    Args:
        name: Name of the file.
    """
    return (files("remegraph.rules") / "data" / name).read_text(encoding="utf-8")
