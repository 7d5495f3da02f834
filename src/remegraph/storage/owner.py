"""Which process owns what: the embedded vector index, by a lock that the operating system holds; and what a fork takes along.

Chroma's embedded client is made for one process: a second writer silently loses vectors. A lock file would
outlive a crash; a lock on an open file goes with the process.

Whatever is open belongs to the process that opened it. A child that was forked from it has the same sockets, locks that
nobody will ever release, and none of the threads: there it is given up at once, before anybody can use it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Protocol, Self
from weakref import WeakSet

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["AFTER_FORK", "LOCK_FILE", "IndexOwner", "Inherited", "alone", "give_up_at_fork", "holder", "keep_at_fork"]

LOCK_FILE = "owner.lock"
AFTER_FORK = "Open it in each process, after the fork (in gunicorn's post_fork), or start processes by spawn."
"""The cure for what is used in a process that was forked from the one that opened it."""


class Inherited(Protocol):
    """What is open, and of no use in a child."""

    def give_up(self) -> None:
        """Do, in a child, without waiting for any lock, what keeps it from harm."""
        ...


def give_up_at_fork(thing: Inherited) -> None:
    """Have a thing given up in every child that this process forks, as long as there is the thing."""
    _open_here().add(thing)


def keep_at_fork(thing: Inherited) -> None:
    """Let a thing be: it was closed."""
    _open_here().discard(thing)


@cache
def _open_here() -> WeakSet[Inherited]:
    things: WeakSet[Inherited] = WeakSet()

    def give_all_up() -> None:
        for thing in list(things):
            ctypes.pythonapi.Py_IncRef(
                ctypes.py_object(thing)
            )  # never freed: that closes what is the parent's, or hangs
            thing.give_up()
        things.clear()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=give_all_up)
    return things


class IndexOwner:
    """The exclusive right to the index in a directory, from `acquire` to `close` or the end of the process."""

    def __init__(self, directory: Path, descriptor: int) -> None:
        self._directory = directory
        self._descriptor: int | None = descriptor
        give_up_at_fork(self)

    @classmethod
    def acquire(cls, directory: Path) -> Self | None:
        """Take the lock of a directory, which is made where it is missing.

        Args:
            directory: The folder of the index.

        Returns:
            The owner, or none where someone else holds the lock. It never waits.
        """
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        if _lock(descriptor):
            return cls(directory, descriptor)
        os.close(descriptor)
        return None

    @property
    def directory(self) -> Path:
        """The folder of the index."""
        return self._directory

    def give_up(self) -> None:
        """Close the copy of the file in a forked child: the parent keeps its lock, and no longer than it wants."""
        self.close()

    def close(self) -> None:
        """Release the lock; in a forked child only the copy of the file is closed and the parent keeps it."""
        if self._descriptor is None:
            return
        os.close(self._descriptor)  # the lock goes with the last copy of the open file
        self._descriptor = None


def holder(directory: Path) -> int | None:
    """Return the process that holds the lock of a directory, where the system tells: Linux does.

    Args:
        directory: The folder of the index.
    """
    try:
        file = (directory / LOCK_FILE).stat().st_ino
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    told = (line.split() for line in locks)
    found = (int(each[4]) for each in told if each[1] == "FLOCK" and each[5].endswith(f":{file}"))
    return next(found, None)


@contextmanager
def alone(file: Path) -> Iterator[bool]:
    """Give whether nobody else is in here, in whatever process; until the end, nobody else gets in. It never waits.

    Args:
        file: Stands for what nobody else does meanwhile; it is made where it is missing, and stays.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Take the lock of an open file, which goes with it; return whether nobody held it."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # held: as POSIX says it, as Windows says it
        return False
    return True
