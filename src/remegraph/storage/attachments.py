"""Which messages hold which attachments, and what is in them, as far as it was read.

A reference in a message's content gives nobody bytes: only a row here does, and a row is written only with the bytes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select, update

from remegraph.language.tokens import token_counts
from remegraph.models import Message, Reading
from remegraph.models.attachments import Blob
from remegraph.rules.veil import without
from remegraph.storage import fulltext
from remegraph.storage.database import insert_rows
from remegraph.storage.rows import chunks
from remegraph.storage.tables import attachments, messages, texts

__all__ = ["add", "describe", "everywhere", "held", "mentions", "readings", "referenced", "words"]

_MARK = '"attachment":'
"""What the body of a message holds that may have attachments."""


def mentions(body: str) -> bool:
    """Return whether the body of a message may refer to attachments.

    Args:
        body: As JSON.
    """
    return _MARK in body


def add(connection: Connection, partition_id: int, new: Sequence[Message], blobs: Mapping[str, Blob]) -> None:
    """Record which of these bytes new messages hold.

    Args:
        connection: A write transaction.
        partition_id: Where.
        new: The messages.
        blobs: Bytes that came with them, by SHA-256.
    """
    rows = [
        {
            "partition_id": partition_id,
            "message_id": message.message_id,
            "sha256": sha256,
            **_told(blobs[sha256].reading),
        }
        for message in new
        for sha256 in dict.fromkeys(each.sha256 for each in message.attachments if each.sha256 in blobs)
    ]
    if rows:
        insert_rows(connection, attachments, rows)


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


def held(
    connection: Connection, partition_ids: Collection[int], message_id: str | None, sha256: str | None
) -> tuple[str, ...]:
    """Return the SHA-256 of attachments that messages here hold.

    Args:
        connection: A snapshot.
        partition_ids: Where.
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


def referenced(connection: Connection, names: Sequence[str]) -> set[str]:
    """Return those of these attachments that some message holds, whoever's it is."""
    query = select(attachments.c.sha256).distinct()
    found = [connection.execute(query.where(attachments.c.sha256.in_(chunk))).scalars() for chunk in chunks(names)]
    return {name for part in found for name in part}


def describe(connection: Connection, partition_id: int, message_id: str, told: Sequence[Reading]) -> None:
    """Record what is in attachments of a message that nobody read yet, and let the message be found by it.

    Args:
        connection: A write transaction that holds the partition's lock.
        partition_id: Where.
        message_id: The message.
        told: What is in them; those that were read before stay as they are.
    """
    here = (attachments.c.partition_id == partition_id, attachments.c.message_id == message_id)
    for reading in told:
        unread = (*here, attachments.c.sha256 == reading.sha256, attachments.c.reading.is_(None))
        connection.execute(update(attachments).where(*unread).values(**_told(reading)))
    row = connection.execute(
        select(messages.c.body, messages.c.withheld, texts.c.seq, texts.c.asks).where(
            messages.c.partition_id == partition_id,
            messages.c.message_id == message_id,
            texts.c.partition_id == messages.c.partition_id,
            texts.c.kind == "message",
            texts.c.record_id == messages.c.message_id,
        )
    ).one_or_none()
    if row is None:  # erased, while somebody looked at what it held
        return
    message = Message.from_json(row.body)
    hidden = [note["phrase"] or "" for note in json.loads(row.withheld or "[]")]
    known = [each.text for each in readings(connection, partition_id, message_id)]
    said = without(" ".join((message.indexed_text, *known)), hidden, mark="")
    shelf = fulltext.TextShelf(partition_id, "message")
    fulltext.remove(connection, shelf, [message_id])
    fulltext.put(connection, shelf, [fulltext.TextEntry(message_id, token_counts(said), row.seq, row.asks)])


def _told(reading: Reading | None) -> dict[str, str | None]:
    """Return the columns of a reading: JSON text, as a text may hold what no column can."""
    return {
        "reading": None if reading is None else json.dumps(reading.text),
        "reader": None if reading is None else json.dumps(reading.reader),
    }


def _reading(row: Row[Any]) -> Reading:
    return Reading(sha256=row.sha256, text=json.loads(row.reading), reader=json.loads(row.reader))
