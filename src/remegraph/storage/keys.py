"""The key that the journal is sealed with: a file in the home that only its owner reads, unless the settings give one."""

from __future__ import annotations

import os
from pathlib import Path
from secrets import token_hex
from uuid import uuid4

from remegraph.errors import SetupError

__all__ = ["FILE", "journal_key"]

FILE = "journal.key"


def journal_key(home: Path) -> bytes:
    """Return the key of a home, which is made where it is missing.

    Args:
        home: The folder.

    Raises:
        SetupError: The file can neither be read nor made.
    """
    path = home / FILE
    try:
        if not path.exists():
            _make(path)
        return path.read_bytes()
    except OSError as error:
        raise SetupError(
            f"The key of the journal, {path}, cannot be used ({error}).",
            "Make its folder writable, or give the key as REMEGRAPH_JOURNAL_KEY.",
        ) from error


def _make(path: Path) -> None:
    """Write a new key, whole or not at all; where another process is first, its key stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{uuid4().hex}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(token_hex(32))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink()
