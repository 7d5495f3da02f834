"""What is withheld of messages: noted beside them, so that every reader of a row sees it without the words."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, update

from remegraph.errors import NotFoundError
from remegraph.ledger import attachments
from remegraph.ledger.index import fulltext
from remegraph.ledger.rows import chunks, from_micros
from remegraph.ledger.schema import blocks, messages, partitions, summaries, tool_calls
from remegraph.models import Message, Partition, ToolRecord, Withholding
from remegraph.models.messages import WithheldReason
from remegraph.models.remnants import overlap, veiled, without
from remegraph.models.tools import error_line
from remegraph.text.sentences import asks
from remegraph.text.tokens import token_counts

__all__ = [
    "add",
    "by",
    "causes",
    "counts",
    "dropped",
    "hides",
    "notes",
    "of_messages",
    "phrases",
    "public",
    "release",
    "summaries_again",
    "withhold",
    "words",
]

# Said once: building a statement costs as much as running it.
_HIDDEN = select(messages.c.thread, messages.c.seq, messages.c.withheld).where(
    messages.c.partition_id == bindparam("here"),
    messages.c.seq.between(bindparam("first"), bindparam("last")),
    messages.c.withheld.is_not(None),
)

Notes = list[dict[str, Any]]
"""As the column holds them: phrase (null: the whole message), reason, cause, and when, in microseconds."""


def notes(stored: str | None) -> Notes:
    """Return what the column says."""
    found: Notes = json.loads(stored) if stored else []
    return found


def phrases(stored: str | None, *, asked: bool = True) -> list[str | None]:
    """Return what is withheld, by the column; None: all of it.

    Args:
        asked: Whether what waits for a decision counts.
    """
    return [note["phrase"] for note in notes(stored) if asked or note["reason"] != "asked"]


def public(stored: str | None) -> list[dict[str, Any]]:
    """Return what a reader of the message may know of it: that words are withheld, why and since when."""
    seen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for note in notes(stored):
        told = {key: note[key] for key in ("reason", "cause")}
        told |= {"at": from_micros(note["at"]), "whole": note["phrase"] is None}
        seen[tuple(map(str, told.values()))] = told
    return list(seen.values())


def dropped(stored: str | None) -> frozenset[WithheldReason]:
    """Return why a message is no part of its host's conversation any more; nothing where it is."""
    return frozenset(note["reason"] for note in notes(stored) if note["phrase"] is None) - {"forgotten", "asked"}


def words(body: str, stored: str | None) -> Message:
    """Return a message without the words that are withheld, and without a mark in their place: what it is found by."""
    message = Message.from_json(body)
    return Message.model_validate(veiled(message.model_dump(), phrases(stored), mark="")) if stored else message


def of_messages(
    connection: Connection, partition_ids: Iterable[int], message_ids: Iterable[str]
) -> dict[str, list[tuple[str, list[str | None]]]]:
    """Return, by id, the text of messages of which something is withheld, and what is."""
    found: dict[str, list[tuple[str, list[str | None]]]] = defaultdict(list)
    query = select(messages.c.message_id, messages.c.body, messages.c.withheld).where(messages.c.withheld.is_not(None))
    for places in chunks(sorted(set(partition_ids))):
        for ids in chunks(sorted(set(message_ids))):
            here = query.where(messages.c.partition_id.in_(places), messages.c.message_id.in_(ids))
            for row in connection.execute(here):
                found[row.message_id].append((Message.from_json(row.body).text, phrases(row.withheld)))
    return found


def hides(quote: str, found: Sequence[tuple[str, list[str | None]]]) -> bool:
    """Return whether quoted words are withheld in any of these messages; see `of_messages`."""
    return any(overlap(quote, withheld, text) for text, withheld in found)


def counts(connection: Connection, partition_id: int, extents: Mapping[str, tuple[str, int, int]]) -> dict[str, int]:
    """Return how much is withheld in each of some blocks: what was made of its words is stale once that is more.

    Args:
        extents: Thread, first and last seq of each block, by its label.
    """
    if not extents:
        return {}
    ends = min(first for _, first, _ in extents.values()), max(last for _, _, last in extents.values())
    rows = connection.execute(_HIDDEN, {"here": partition_id, "first": ends[0], "last": ends[1]}).all()
    return {
        label: sum(len(public(row.withheld)) for row in rows if row.thread == thread and first <= row.seq <= last)
        for label, (thread, first, last) in extents.items()
    }


def by(connection: Connection, places: Mapping[int, Partition], cause: str) -> tuple[Withholding, ...]:
    """Return what an operation withholds, by message."""
    query = select(messages).where(messages.c.partition_id.in_(list(places)), messages.c.withheld.is_not(None))
    found: dict[tuple[Partition, str], Withholding] = {}
    for row in connection.execute(query):
        place = (places[row.partition_id], row.message_id)
        held = [note for note in notes(row.withheld) if note["cause"] == cause]
        if held:
            words = [note["phrase"] for note in held]
            found[place] = Withholding(
                partition=place[0],
                message_id=place[1],
                phrases=() if None in words else tuple(words),
                reason=held[0]["reason"],
                cause=cause,
            )
    return tuple(found.values())


def causes(connection: Connection, partition_ids: Sequence[int]) -> frozenset[str]:
    """Return the operations that withhold words in these partitions."""
    query = select(messages.c.withheld).where(
        messages.c.partition_id.in_(partition_ids), messages.c.withheld.is_not(None)
    )
    return frozenset(note["cause"] for stored in connection.execute(query).scalars() for note in notes(stored))


def add(connection: Connection, partition_id: int, asked: Sequence[Withholding], now: int) -> None:
    """Withhold words of new messages, for causes that are older than these; see `withhold`."""
    for cause in dict.fromkeys(each.cause for each in asked):
        withhold(connection, partition_id, [each for each in asked if each.cause == cause], cause=cause, now=now)


def withhold(
    connection: Connection, partition_id: int, asked: Sequence[Withholding], *, cause: str, now: int
) -> list[str]:
    """Withhold words of messages, and let the messages be found by the others only; return the ids of the messages.

    Args:
        connection: A write transaction that holds the partition's lock.
        asked: What to withhold, all of it in this partition.
        cause: The operation by which it is released again, where a withholding names none.
        now: When, in microseconds.

    Raises:
        NotFoundError: There is no such message.
    """
    rows = _rows(connection, partition_id, [each.message_id for each in asked])
    for each in asked:
        if each.message_id not in rows:
            raise NotFoundError(f"There is no message {each.message_id} here.")
        new: Sequence[str | None] = each.phrases or [None]
        before = notes(rows[each.message_id].withheld)
        after = before + [
            {"phrase": phrase, "reason": each.reason, "cause": each.cause or cause, "at": now}
            for phrase in dict.fromkeys(new)
        ]
        _write(connection, rows[each.message_id], after)
    _look_anew(connection, partition_id)
    return list(rows)


def release(connection: Connection, partition_id: int, asked: Sequence[Withholding]) -> list[str]:
    """Show words again; return the ids of the messages. What other operations withhold stays withheld.

    Args:
        connection: A write transaction that holds the partition's lock.
        asked: Of which messages, and which operations withheld them.
    """
    rows = _rows(connection, partition_id, [each.message_id for each in asked])
    causes: dict[str, set[str]] = defaultdict(set)
    for each in asked:
        causes[each.message_id].add(each.cause)
    for message_id, row in rows.items():
        left = [note for note in notes(row.withheld) if note["cause"] not in causes[message_id]]
        _write(connection, row, left)
    _look_anew(connection, partition_id)
    return list(rows)


def summaries_again(connection: Connection, partition_id: int, message_ids: Sequence[str]) -> dict[str, str]:
    """Put back the index entries of blocks in which nothing is withheld any more; return them by label.

    Args:
        connection: A write transaction that holds the partition's lock.
    """
    again: dict[str, str] = {}
    for row in _rows(connection, partition_id, message_ids).values():
        holding = select(blocks).where(
            blocks.c.partition_id == partition_id,
            blocks.c.thread == row.thread,
            blocks.c.first_seq <= row.seq,
            blocks.c.last_seq >= row.seq,
        )
        for block in connection.execute(holding).all():
            here = (summaries.c.partition_id == partition_id, summaries.c.block_id == block.block_id)
            original = connection.execute(select(summaries.c.original).where(*here)).scalar_one_or_none()
            extent = block.thread, block.first_seq, block.last_seq
            if original is None or counts(connection, partition_id, {block.block_id: extent})[block.block_id]:
                continue
            connection.execute(update(summaries).where(*here).values(body=original, original=None))
            again[block.block_id] = original
    return again


def _rows(connection: Connection, partition_id: int, message_ids: Sequence[str]) -> dict[str, Row[Any]]:
    found: dict[str, Row[Any]] = {}
    for some in chunks(list(dict.fromkeys(message_ids))):
        here = (messages.c.partition_id == partition_id, messages.c.message_id.in_(some))
        found |= {row.message_id: row for row in connection.execute(select(messages).where(*here))}
    return found


def _write(connection: Connection, row: Row[Any], after: Notes) -> None:
    stored = json.dumps(after) if after else None
    connection.execute(update(messages).where(messages.c.id == row.id).values(withheld=stored))
    if row.role == "tool":
        _tell_of_call(connection, row, stored)
    shelf = fulltext.TextShelf(row.partition_id, "message")
    fulltext.remove(connection, {shelf: [row.message_id]})
    if None in (note["phrase"] for note in after):
        return
    said = words(row.body, stored)
    hidden = [str(note["phrase"]) for note in after]
    read = [
        without(each.text, hidden, mark="")
        for each in (
            attachments.readings(connection, row.partition_id, row.message_id) if attachments.mentions(row.body) else ()
        )
    ]
    counts = token_counts(" ".join((said.indexed_text, *read)))
    fulltext.put(connection, {shelf: [fulltext.TextEntry(row.message_id, counts, row.seq, asks(said.text))]})


def _tell_of_call(connection: Connection, row: Row[Any], stored: str | None) -> None:
    """Let the record of a failed call say of its error what its result still says."""
    result = Message.model_validate(veiled(json.loads(row.body), phrases(stored)))
    failed = (
        tool_calls.c.partition_id == row.partition_id,
        tool_calls.c.call == json.dumps(result.tool_call_id),
        tool_calls.c.ok.is_(False),
    )
    for body in connection.execute(select(tool_calls.c.body).where(*failed)).scalars().all():
        told = ToolRecord.from_json(body).evolve(error=error_line(result.text)).to_json()
        connection.execute(update(tool_calls).where(*failed, tool_calls.c.body == body).values(body=told))


def _look_anew(connection: Connection, partition_id: int) -> None:
    """Let what is cached of the partition's messages be read again."""
    here = update(partitions).where(partitions.c.id == partition_id)
    connection.execute(here.values(erasures=partitions.c.erasures + 1))
