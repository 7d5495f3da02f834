"""Attachments: bytes in a folder, and in SQL who holds them; see `ports.Attachments` for what each method promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remegraph.errors import SetupError
from remegraph.models import Message, Partition, Reading
from remegraph.models.attachments import Blob, held_by
from remegraph.storage import attachments, interning
from remegraph.storage.blobs import BlobFolder
from remegraph.storage.database import Database
from remegraph.storage.layouts import LayoutCache

__all__ = ["LOCK", "SqlAttachments"]

LOCK = -1
"""Number of the lock, where partitions have theirs, that keeps the sweep of the folder from those who add to it."""


class SqlAttachments:
    """The attachments of a ledger. Bytes are durable before the message that refers to them.

    Args:
        database: The ledger's.
        layouts: Told where a message is found by other words than before.
        folder: Where bytes are; without it none are taken.
    """

    def __init__(self, database: Database, layouts: LayoutCache, folder: BlobFolder | None) -> None:
        self._database = database
        self._layouts = layouts
        self._folder = folder

    @property
    def keeps(self) -> bool:
        """Whether there is a folder for bytes."""
        return self._folder is not None

    def keep(self, messages: Sequence[Message], blobs: Mapping[str, Blob] | None) -> dict[str, Blob]:
        """Make those bytes durable that messages refer to; return them."""
        held = held_by(messages, blobs or {})
        for sha256, blob in held.items():
            self._home().put(sha256, blob.data)
        return held

    def get(self, partitions: Sequence[Partition], sha256: str) -> bytes | None:
        """Return the bytes of an attachment that some message in these partitions holds; None where none does."""
        return self._home().get(sha256) if sha256 in self.held(partitions, sha256=sha256) else None

    def held(
        self, partitions: Sequence[Partition], *, message_id: str | None = None, sha256: str | None = None
    ) -> tuple[str, ...]:
        """Return the SHA-256 of the attachments that messages in these partitions hold."""
        with self._database.read() as connection:
            return attachments.held(connection, interning.known(connection, partitions), message_id, sha256)

    def missing(self, partition: Partition) -> tuple[str, ...]:
        """Return the SHA-256 of attachments that messages hold and the folder does not."""
        held = self.held([partition])
        return tuple(sha256 for sha256 in held if self._folder is None or not self._folder.has(sha256))

    def describe(self, partition: Partition, read: Mapping[str, Sequence[Reading]]) -> None:
        """Record what is in attachments that nobody read yet, by message id, in one transaction."""
        with self._database.write() as connection:
            for partition_id in interning.known(connection, [partition]):
                self._database.lock(connection, [partition_id])
                for message_id, told in read.items():
                    attachments.describe(connection, partition_id, message_id, told)
        for partition_id in self._numbers(partition):
            self._layouts.forget(partition_id)

    def unreferenced(self, *, remove: bool = False) -> tuple[str, ...]:
        """Return the SHA-256 of bytes that no message holds; nobody adds any meanwhile."""
        if self._folder is None:
            return ()
        with self._database.write([LOCK]) as connection:
            names = tuple(self._folder.names())
            held = attachments.referenced(connection, names)
            loose = tuple(name for name in names if name not in held)
            for name in loose if remove else ():
                if not attachments.referenced(connection, [name]):  # the lock still holds, or this raises
                    self._folder.remove(name)
            return loose

    def _numbers(self, partition: Partition) -> list[int]:
        with self._database.read() as connection:
            return list(interning.known(connection, [partition]))

    def _home(self) -> BlobFolder:
        if self._folder is None:
            raise SetupError(
                "There is no folder for attachments: the ledger is on a server, and no home was given.",
                "Name one that all who share the ledger can reach: Settings(perception=PerceptionPolicy(folder=...)).",
            )
        return self._folder
