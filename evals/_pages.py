"""Tables in the place that a page of the documentation has for them, so that a new run needs no pasting, and how they came."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from docs.generate import filled

__all__ = ["how", "place"]


def how(name: str, packages: Iterable[str]) -> str:
    """Return the command of an eval with the names of its files only, versions, the date and the machine.

    Args:
        name: Of the eval.
        packages: The distributions that were measured.
    """
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    versions = ", ".join(f"{package} {version(package)}" for package in dict.fromkeys(packages))
    when, machine = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    command = shlex.join(["python", "-m", "evals", name, *words])
    return f"`{command}`: {versions}, Python {platform.python_version()}; {when}; {machine} at the start."


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
