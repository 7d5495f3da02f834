"""What must be on the disk before somebody is told that it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from remegraph.errors import BackupError
from remegraph.storage.owner import LOCK_FILE, IndexOwner

__all__ = ["drafted", "sync_file", "sync_folder"]


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
    """Give a folder to fill, which takes its name at the end: whole, or not at all.

    What a process left that was killed meanwhile is removed by the next one that makes the same folder.

    Args:
        folder: What it shall be; must be missing or empty.

    Raises:
        BackupError: There is something already, another process makes it just now, or it cannot be written.
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
        (folder / LOCK_FILE).unlink()  # by which a draft is known as ours to the last
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
    """Remove what is in a draft, but for its lock."""
    for path in draft.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK_FILE:
            path.unlink()
