"""The bytes of attachments: one file each, named by its SHA-256, in two levels of folders."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from remegraph.errors import SetupError
from remegraph.storage.durable import sync_folder

__all__ = ["BlobFolder"]

_NAME = re.compile("[0-9a-f]{64}")
_CURE = "Make the folder writable, or name another one as perception.folder."


class BlobFolder:
    """A folder of bytes. What is in it is never changed; equal bytes are kept once.

    Args:
        folder: Made when the first bytes come.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, sha256: str, data: bytes) -> None:
        """Keep bytes: whole or not at all, and durable once this returns.

        Args:
            sha256: Of the bytes.
            data: The bytes.

        Raises:
            SetupError: The folder cannot be written.
        """
        path = self._path(sha256)
        try:
            if path.exists():
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f"{uuid4().hex}.part")
            try:
                with draft.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
            for folder in (path.parent, path.parent.parent, self.folder):
                sync_folder(folder)
        except OSError as error:
            raise SetupError(f"The attachment {sha256} cannot be kept in {self.folder} ({error}).", _CURE) from error

    def get(self, sha256: str) -> bytes:
        """Return bytes to the letter.

        Args:
            sha256: Of the bytes.

        Raises:
            SetupError: They are not there any more, cannot be read, or are others.
        """
        try:
            data = self._path(sha256).read_bytes()
        except OSError as error:
            raise SetupError(
                f"The bytes of attachment {sha256} are not in {self.folder} ({error}).",
                "Bring the folder back from a backup; messages and memories are whole without it.",
            ) from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise SetupError(
                f"The bytes of attachment {sha256} in {self.folder} are damaged.", "Bring the file back from a backup."
            )
        return data

    def has(self, sha256: str) -> bool:
        """Return whether these bytes are here.

        Args:
            sha256: Of the bytes.
        """
        return self._path(sha256).is_file()

    def names(self) -> Iterator[str]:
        """Yield the SHA-256 of all that is here."""
        if self.folder.is_dir():
            yield from sorted(path.name for path in self.folder.glob("??/??/*") if _NAME.fullmatch(path.name))

    def remove(self, sha256: str) -> None:
        """Remove bytes; those that are not here are no error.

        Args:
            sha256: Of the bytes.

        Raises:
            SetupError: The folder cannot be written.
        """
        try:
            self._path(sha256).unlink(missing_ok=True)
        except OSError as error:
            raise SetupError(f"The attachment {sha256} cannot be removed ({error}).", _CURE) from error

    def _path(self, sha256: str) -> Path:
        if not _NAME.fullmatch(sha256):  # it becomes part of a path
            raise ValueError(f"{sha256!r} is no SHA-256 in hex")
        return self.folder / sha256[:2] / sha256[2:4] / sha256
