"""What a backup holds."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from remegraph.models.base import Record

__all__ = ["Backup", "BackupFile"]


class BackupFile(Record):
    """A file of a backup."""

    size: int = Field(ge=0, description="Its length in bytes.")
    sha256: str = Field(description="Of its bytes.")


class Backup(Record):
    """What a backup says of itself: the content of its manifest."""

    format: Literal[1] = Field(default=1, description="How it is laid out.")
    revision: str = Field(description="Of the ledger's schema.")
    taken_at: datetime = Field(description="When it was begun: it holds what was acknowledged before then.")
    counts: dict[str, int] = Field(description="Rows of the ledger, by table.")
    files: dict[str, BackupFile] = Field(description="All its files but the manifest, by path.")
    missing: tuple[str, ...] = Field(
        default=(), description="SHA-256 of attachments that messages hold and the home did not."
    )
    settings: dict[str, Any] = Field(description="What the kit was opened with, without addresses and keys.")

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())
