"""Tables in the place that a page of the documentation has for them, so that a new run needs no pasting."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from docs.generate import filled

__all__ = ["place"]


def place(page: Path | None, tables: Mapping[str, str]) -> None:
    """Write tables between their markers, `<!-- begin: name -->` and `<!-- end: name -->`.

    Args:
        page: The page; none: nothing is written.
        tables: By name; those that the page has no place for are left out.
    """
    if page is None:
        return
    text = page.read_text(encoding="utf-8")
    wanted = {name: f"\n{table}\n" for name, table in tables.items() if f"<!-- begin: {name} -->" in text}
    page.write_text(filled(text, wanted), encoding="utf-8")
