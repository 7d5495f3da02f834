"""Attachments: which messages hold them, what is in them as far as it was read, and their bytes in a folder.

A reference in a message's content gives no one bytes: only a row here does, and a row is written only with the bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Row, select, update

from remegraph.errors import SetupError
from remegraph.files import sync_folder
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.database import Database
from remegraph.ledger.index import fulltext
from remegraph.ledger.index.fulltext import LayoutCache
from remegraph.ledger.rows import chunks, insert_rows
from remegraph.ledger.schema import attachments, messages, texts
from remegraph.models import Message, Partition, Reading
from remegraph.models.messages import Blob, held_by
from remegraph.models.remnants import without
from remegraph.text.tokens import token_counts

__all__ = ["SWEEP_LOCK", "Attachments", "BlobFolder", "add", "everywhere", "mentions", "readings", "words"]

_MARK = '"attachment":'
"""What the body of a message holds that may have attachments."""

SWEEP_LOCK = -1
"""Number of the lock, where partitions have theirs, that keeps the sweep of the folder from those who add to it."""


def mentions(body: str) -> bool:
    """Return whether the body of a message may refer to attachments."""
    return _MARK in body


def add(connection: Connection, partition_id: int, new: Sequence[Message], blobs: Mapping[str, Blob]) -> None:
    """Record which of these bytes new messages hold.

    Args:
        blobs: Bytes that came with them, by SHA-256.
    """
    rows = [
        {
            "partition_id": partition_id,
            "message_id": message.message_id,
            "sha256": sha256,
            "size": len(blobs[sha256].data),
            **_reading_columns(blobs[sha256].reading),
        }
        for message in new
        for sha256 in _among(message, blobs)
    ]
    if rows:
        insert_rows(connection, attachments, rows)


def size(new: Sequence[Message], blobs: Mapping[str, Blob]) -> int:
    """Return how many of these bytes new messages hold."""
    return sum(len(blobs[sha256].data) for message in new for sha256 in _among(message, blobs))


def _among(message: Message, blobs: Mapping[str, Blob]) -> Iterable[str]:
    return dict.fromkeys(each.sha256 for each in message.attachments if each.sha256 in blobs)


def words(message: Message, blobs: Mapping[str, Blob]) -> str:
    """Return what a new message is found by, with what is in its attachments."""
    held = dict.fromkeys(each.sha256 for each in message.attachments) if blobs else {}
    read = [reading.text for each in held if each in blobs and (reading := blobs[each].reading)]
    return " ".join((message.indexed_text, *read))


def readings(connection: Connection, partition_id: int, message_id: str) -> tuple[Reading, ...]:
    """Return what is in the attachments of a message, as far as it was read."""
    here = (attachments.c.partition_id == partition_id, attachments.c.message_id == message_id)
    query = select(attachments).where(*here, attachments.c.reading.is_not(None)).order_by(attachments.c.id)
    return tuple(_reading(row) for row in connection.execute(query))


def _held(
    connection: Connection, partition_ids: Collection[int], message_id: str | None, sha256: str | None
) -> tuple[str, ...]:
    """Return the SHA-256 of attachments that messages here hold.

    Args:
        message_id: Only those of this message.
        sha256: Only this one.
    """
    query = select(attachments.c.sha256).distinct().where(attachments.c.partition_id.in_(list(partition_ids)))
    if message_id is not None:
        query = query.where(attachments.c.message_id == message_id)
    if sha256 is not None:
        query = query.where(attachments.c.sha256 == sha256)
    return tuple(connection.execute(query.order_by(attachments.c.sha256)).scalars())


def everywhere(connection: Connection) -> tuple[str, ...]:
    """Return the SHA-256 of all attachments that some message holds."""
    return tuple(connection.execute(select(attachments.c.sha256).distinct().order_by(attachments.c.sha256)).scalars())


def _referenced(connection: Connection, names: Sequence[str]) -> set[str]:
    """Return those of these attachments that some message holds, whoever's it is."""
    query = select(attachments.c.sha256).distinct()
    found = [connection.execute(query.where(attachments.c.sha256.in_(chunk))).scalars() for chunk in chunks(names)]
    return {name for part in found for name in part}


def _describe(connection: Connection, partition_id: int, message_id: str, told: Sequence[Reading]) -> None:
    """Record what is in attachments of a message that no one read yet, and let the message be found by it.

    Args:
        connection: A write transaction that holds the partition's lock.
        told: What is in them; those that were read before stay as they are.
    """
    here = (attachments.c.partition_id == partition_id, attachments.c.message_id == message_id)
    for reading in told:
        unread = (*here, attachments.c.sha256 == reading.sha256, attachments.c.reading.is_(None))
        connection.execute(update(attachments).where(*unread).values(**_reading_columns(reading)))
    row = connection.execute(
        select(messages.c.body, messages.c.withheld, texts.c.seq, texts.c.asks).where(
            messages.c.partition_id == partition_id,
            messages.c.message_id == message_id,
            texts.c.partition_id == messages.c.partition_id,
            texts.c.kind == "message",
            texts.c.record_id == messages.c.message_id,
        )
    ).one_or_none()
    if row is None:  # erased, while someone looked at what it held
        return
    message = Message.from_json(row.body)
    hidden = [note["phrase"] or "" for note in json.loads(row.withheld or "[]")]
    known = [each.text for each in readings(connection, partition_id, message_id)]
    said = without(" ".join((message.indexed_text, *known)), hidden, mark="")
    shelf = fulltext.TextShelf(partition_id, "message")
    fulltext.remove(connection, {shelf: [message_id]})
    fulltext.put(connection, {shelf: [fulltext.TextEntry(message_id, token_counts(said), row.seq, row.asks)]})


def _reading_columns(reading: Reading | None) -> dict[str, str | None]:
    """Return the columns of a reading: JSON text, as a text may hold what no column can."""
    return {
        "reading": None if reading is None else json.dumps(reading.text),
        "reader": None if reading is None else json.dumps(reading.reader),
    }


def _reading(row: Row[Any]) -> Reading:
    return Reading(sha256=row.sha256, text=json.loads(row.reading), reader=json.loads(row.reader))


_SHA256 = re.compile("[0-9a-f]{64}")
_FOLDER_CURE = "Make the folder writable, or name another one as perception.folder."


class BlobFolder:
    """A folder of bytes. What is in it is never changed; equal bytes are kept once.

    Args:
        folder: Made when the first bytes come.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, sha256: str, data: bytes) -> None:
        """Keep bytes: whole or not at all, and durable once this returns.

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
            raise SetupError(
                f"The attachment {sha256} cannot be kept in {self.folder} ({error}).", _FOLDER_CURE
            ) from error

    def get(self, sha256: str) -> bytes:
        """Return the exact bytes.

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
        """Return whether these bytes are here."""
        return self._path(sha256).is_file()

    def names(self) -> Iterator[str]:
        """Yield the SHA-256 of all that is here."""
        if self.folder.is_dir():
            yield from sorted(path.name for path in self.folder.glob("??/??/*") if _SHA256.fullmatch(path.name))

    def remove(self, sha256: str) -> None:
        """Remove bytes; those that are not here are no error.

        Raises:
            SetupError: The folder cannot be written.
        """
        try:
            self._path(sha256).unlink(missing_ok=True)
        except OSError as error:
            raise SetupError(f"The attachment {sha256} cannot be removed ({error}).", _FOLDER_CURE) from error

    def _path(self, sha256: str) -> Path:
        if not _SHA256.fullmatch(sha256):  # it becomes part of a path
            raise ValueError(f"{sha256!r} is no SHA-256 in hex")
        return self.folder / sha256[:2] / sha256[2:4] / sha256


class Attachments:
    """The attachments of a ledger. Bytes are durable before the message that refers to them.

    Args:
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
        """Return the bytes of an attachment that some message in these partitions holds; None where none does.

        Raises:
            SetupError: One does, and the bytes are lost or damaged.
        """
        return self._home().get(sha256) if sha256 in self.held(partitions, sha256=sha256) else None

    def held(
        self, partitions: Sequence[Partition], *, message_id: str | None = None, sha256: str | None = None
    ) -> tuple[str, ...]:
        """Return the SHA-256 of the attachments that messages in these partitions hold.

        Args:
            message_id: Only those of this message.
            sha256: Only this one.
        """
        with self._database.read() as connection:
            return _held(connection, partition_rows.known(connection, partitions), message_id, sha256)

    def missing(self, partition: Partition) -> tuple[str, ...]:
        """Return the SHA-256 of attachments that messages hold, and whose bytes are lost."""
        held = self.held([partition])
        return tuple(sha256 for sha256 in held if self._folder is None or not self._folder.has(sha256))

    def describe(self, partition: Partition, read: Mapping[str, Sequence[Reading]]) -> None:
        """Record what is in attachments, in one transaction; what was read before stays. Messages are found by it.

        Args:
            read: What is in their attachments, by message id.
        """
        with self._database.write() as connection:
            for partition_id in partition_rows.known(connection, [partition]):
                self._database.lock(connection, [partition_id])
                for message_id, told in read.items():
                    _describe(connection, partition_id, message_id, told)
        for partition_id in self._numbers(partition):
            self._layouts.forget(partition_id)

    def unreferenced(self, *, remove: bool = False) -> tuple[str, ...]:
        """Return the SHA-256 of bytes that are kept and that no message holds.

        Args:
            remove: Whether they are removed. No one adds any meanwhile; else some may be those of a message that is just recorded.
        """
        if self._folder is None:
            return ()
        with self._database.write([SWEEP_LOCK]) if remove else self._database.read() as connection:
            names = tuple(self._folder.names())
            held = _referenced(connection, names)
            loose = tuple(name for name in names if name not in held)
            for name in loose if remove else ():
                if not _referenced(connection, [name]):  # the lock still holds, or this raises
                    self._folder.remove(name)
            return loose

    def _numbers(self, partition: Partition) -> list[int]:
        with self._database.read() as connection:
            return list(partition_rows.known(connection, [partition]))

    def _home(self) -> BlobFolder:
        if self._folder is None:
            raise SetupError(
                "There is no folder for attachments: the ledger is on a server, and no home was given.",
                "Name one that all who share the ledger can reach: Settings(perception=PerceptionPolicy(folder=...)).",
            )
        return self._folder
