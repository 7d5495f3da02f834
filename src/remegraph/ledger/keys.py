"""The keys that a journal is sealed with: a file in the home that only its owner reads, unless the settings give them.

A ring holds the newest key and those before it: which of them seals, the ledger says; all of them verify.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import token_hex
from uuid import uuid4

from remegraph.errors import JournalKeyError, SetupError

__all__ = ["FILE", "KeyRing", "add_key", "keys_in", "new_key"]

FILE = "journal.key"


class KeyRing:
    """The keys at hand.

    Args:
        keys: Newest first; none where no one gave one.
        first: Makes the first key of a journal that is not sealed yet, where none is at hand.
        again: Reads the keys once more, where that may bring others.

    Raises:
        JournalKeyError: By `first`, where a key must not be made in silence.
    """

    def __init__(
        self,
        keys: Sequence[bytes],
        first: Callable[[], bytes] | None = None,
        again: Callable[[], Sequence[bytes]] = tuple,
    ) -> None:
        self.keys = tuple(dict.fromkeys(keys))
        self.again = again
        self._first = first or none_given

    def first(self) -> bytes:
        """Return the key that a journal begins with."""
        return self.keys[0] if self.keys else self._first()


def none_given() -> bytes:
    """Refuse to make a key.

    Raises:
        JournalKeyError: Always.
    """
    raise JournalKeyError(
        "Other processes may share this ledger, and no key of its journal is given.",
        "Make one with `remegraph key make`, and give it to all of them: as REMEGRAPH_JOURNAL_KEY, or as the file "
        f"{FILE} in the home of each.",
    )


def new_key() -> str:
    """Return a key that no one has."""
    return token_hex(32)


def keys_in(home: Path) -> tuple[bytes, ...]:
    """Return the keys of a home, newest first; none where there is no file.

    Raises:
        SetupError: The file cannot be read.
    """
    written = _read(home)
    lines = [line for line in written.split(b"\n") if line]
    by_hand = [lines[-1] + b"\n"] if lines and written.endswith(b"\n") else []  # earlier releases took all of a file
    return (*lines, *by_hand)


def add_key(home: Path, *, first: bool = False) -> bytes:
    """Put a new key before those of a home; return the newest, which another process may have made.

    Args:
        home: The folder, which is made where it is missing.
        first: Leave the file as it is where there is one.

    Raises:
        SetupError: The file cannot be written.
    """
    known, key = keys_in(home), new_key()
    if known and first:
        return known[0]
    path = home / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{uuid4().hex}")
        _write(draft, b"\n".join([key.encode(), *filter(None, [_read(home)])]))
        try:
            if known:
                draft.replace(path)
            else:
                os.link(draft, path)
        except FileExistsError:  # another process was first
            pass
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise _unusable(home, error) from error
    return keys_in(home)[0]


def _read(home: Path) -> bytes:
    try:
        return (home / FILE).read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _unusable(home, error) from error


def _write(path: Path, text: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _unusable(home: Path, error: OSError) -> SetupError:
    return SetupError(
        f"The key of the journal, {home / FILE}, cannot be used ({error}).",
        "Make its folder writable, or give the key as REMEGRAPH_JOURNAL_KEY.",
    )
