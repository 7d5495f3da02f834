"""How several processes meet: locks that end with their process, folders that appear whole or not at all, which worker is alive.

Chroma's embedded client is made for one process: a second writer silently loses vectors. A lock file would
outlive a crash; a lock on an open file goes with the process.

Whatever is open belongs to the process that opened it. A child that was forked from it has the same sockets, locks that
no one will ever release, and none of the threads: there it is given up immediately, before anyone can use it.

A worker is called `machine/process/mark/worker`. The mark identifies the boot of the system, the namespaces of the
process number, and when the process began: so neither another container with the same numbers, nor a process that reuses
the number of one that ended, is taken for it. Only Linux has all that; elsewhere there is no mark, and nothing is certain.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Protocol, Self
from uuid import uuid4
from weakref import WeakSet

from remegraph.errors import BackupError

__all__ = [
    "AFTER_FORK",
    "LOCK_FILE",
    "IndexOwner",
    "alone",
    "drafted",
    "give_up_at_fork",
    "holder",
    "keep_at_fork",
    "lives",
    "sync_file",
    "sync_folder",
    "worker_name",
]

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_FILE = "owner.lock"
AFTER_FORK = "Open it in each process, after the fork (in gunicorn's post_fork), or start processes by spawn."
"""The cure for what is used in a process that was forked from the one that opened it."""

_PROC = Path("/proc")
_BEGAN = 19
"""The field after the name of its program with the start of a process, in ticks since boot; see proc(5), stat."""

_OVER = "ZXx"
"""States of a process that has ended and was not reaped by its parent: in a container it may never be."""


class _Inherited(Protocol):
    """Something open that a child cannot use."""

    def give_up(self) -> None:
        """Make it harmless in a child, without waiting for any lock."""
        ...


def give_up_at_fork(thing: _Inherited) -> None:
    """Have a thing given up in every child that this process forks, as long as it exists."""
    _open_here().add(thing)


def keep_at_fork(thing: _Inherited) -> None:
    """Forget a thing that was closed."""
    _open_here().discard(thing)


@cache
def _open_here() -> WeakSet[_Inherited]:
    things: WeakSet[_Inherited] = WeakSet()

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
        """Take the lock of a directory, which is created where it is missing.

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
        """Close the copy of the file in a forked child: the parent keeps its lock, for as long as it wants."""
        self.close()

    def close(self) -> None:
        """Release the lock; in a forked child only the copy of the file is closed and the parent keeps it."""
        if self._descriptor is None:
            return
        os.close(self._descriptor)  # the lock goes with the last copy of the open file
        self._descriptor = None


def holder(directory: Path) -> int | None:
    """Return the process that holds the lock of a directory, where the system knows it, as Linux does."""
    try:
        file = (directory / LOCK_FILE).stat().st_ino
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    held = (line.split() for line in locks)
    found = (int(each[4]) for each in held if each[1] == "FLOCK" and each[5].endswith(f":{file}"))
    return next(found, None)


@contextmanager
def alone(file: Path) -> Iterator[bool]:
    """Yield whether no other process is in here; until the end, none gets in. It never waits.

    Args:
        file: The lock file; it is created where it is missing, and stays.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Take the lock of an open file, which goes with it; return whether no one held it."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # held, on POSIX and on Windows
        return False
    return True


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make a folder's entries durable, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def drafted(folder: Path) -> Iterator[Path]:
    """Yield a folder to fill, which takes its name at the end: whole, or not at all.

    What a killed process left is removed by the next one that makes the same folder.

    Args:
        folder: The folder to make; must be missing or empty.

    Raises:
        BackupError: It is not empty, another process makes it just now, or it cannot be written.
    """
    folder = folder.absolute()
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise BackupError(f"{folder} is there already, and not empty.", "Name a folder that does not exist yet.")
    draft = folder.with_name(f".{folder.name}.draft")
    try:
        if draft.exists() and any(draft.iterdir()) and not (draft / LOCK_FILE).exists():
            raise BackupError(f"{draft} is in the way, and no draft of ours.", "Move it away, or name another folder.")
        owner = IndexOwner.acquire(draft)
        if owner is None:
            raise BackupError(f"Another process writes {folder} just now.", "Wait for it, or name another folder.")
        try:
            with closing(owner), _cleared(draft):
                draft.chmod(0o700)
                yield draft
                sync_folder(draft)
        except BaseException:
            (draft / LOCK_FILE).unlink(missing_ok=True)
            draft.rmdir()
            raise
        if folder.exists():
            folder.rmdir()  # it is empty; a folder takes the place of none elsewhere than on POSIX
        draft.rename(folder)
        (folder / LOCK_FILE).unlink()  # it marks a draft as ours until the end
        sync_folder(folder)
        sync_folder(folder.parent)
    except OSError as error:
        raise BackupError(
            f"{folder} cannot be written ({error}).", "Free some space, or name a folder that you may write to."
        ) from error


@contextmanager
def _cleared(draft: Path) -> Iterator[None]:
    """Empty a draft before it is filled, and again where that fails."""
    _clear(draft)
    try:
        yield
    except BaseException:
        _clear(draft)
        raise


def _clear(draft: Path) -> None:
    """Remove what is in a draft, except its lock."""
    for path in draft.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK_FILE:
            path.unlink()


def worker_name() -> str:
    """Return a new name for a worker of this process."""
    place = _place()
    mark = f"{place}-{_stat_of(os.getpid())[0]}" if place else ""
    return f"{platform.node()}/{os.getpid()}/{mark}/{uuid4().hex}"


def lives(worker: str) -> bool | None:
    """Return whether the process of a worker is alive; None where that is not certain from here."""
    machine, _, name = worker.partition("/")
    process, _, rest = name.partition("/")
    place, _, began = rest.partition("/")[0].partition("-")
    if machine != platform.node() or not began or place != _place():
        return None
    try:
        os.kill(int(process), 0)
        now, state = _stat_of(int(process))
        return now == int(began) and state not in _OVER
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's, or /proc hides it
        return None


def _place() -> str:
    """Return a digest of the boot and the namespaces that numbers and times of processes hold in; none where unknown."""
    try:
        if str((_PROC / "self").readlink()) != str(os.getpid()):  # this /proc is of another namespace
            return ""
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii")
        spaces = _PROC / "self/ns"
        times = (spaces / "time").readlink() if (spaces / "time").is_symlink() else ""
        place = f"{boot} {(spaces / 'pid').readlink()} {times}"
        return blake2b(place.encode(), digest_size=6).hexdigest()
    except OSError:
        return ""


def _stat_of(process: int) -> tuple[int, str]:
    """Return when a process began, and its state."""
    stat = (_PROC / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
    fields = stat.rpartition(")")[2].split()
    return int(fields[_BEGAN]), fields[0]
