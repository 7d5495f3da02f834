"""What is rewritten no more: words withheld of messages, noted beside them; and marks of what was erased, or said off the record.

Every reader of a row sees the notes without the words. By a mark, late workers, replays and repeated imports are turned away:
it is an HMAC with the key of the journal, which is not in the ledger, so no name can be read from it, and no guess be
confirmed by it without the key.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, Row, bindparam, exists, func, select, update

from remegraph.errors import ConflictError, ErasedError, NotFoundError
from remegraph.ledger import attachments
from remegraph.ledger.index import fulltext
from remegraph.ledger.journal import Journal
from remegraph.ledger.rows import chunks, from_micros, micros, upsert
from remegraph.ledger.schema import blocks, events, messages, partitions, summaries, tombstones, tool_calls
from remegraph.models import ChangeSet, Message, Partition, Subject, ToolRecord, Withholding
from remegraph.models.messages import WithheldReason
from remegraph.models.remnants import overlap, veiled, without
from remegraph.models.tools import error_line
from remegraph.text.sentences import asks
from remegraph.text.tokens import token_counts

__all__ = [
    "ANY",
    "Grave",
    "Tombstones",
    "add",
    "by",
    "causes",
    "counts",
    "dropped",
    "hides",
    "notes",
    "of_messages",
    "person",
    "phrases",
    "public",
    "release",
    "summaries_again",
    "unsaid",
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


def phrases(stored: str | None, shown: Collection[WithheldReason] = ()) -> list[str | None]:
    """Return what is withheld, by the column; None: all of it.

    Args:
        shown: Reasons that do not count.
    """
    return [note["phrase"] for note in notes(stored) if note["reason"] not in shown]


def public(stored: str | None) -> list[dict[str, Any]]:
    """Return what a reader of the message may know of it: that words are withheld, why and since when."""
    seen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for note in notes(stored):
        rewritten = {key: note[key] for key in ("reason", "cause")}
        rewritten |= {"at": from_micros(note["at"]), "whole": note["phrase"] is None}
        seen[tuple(map(str, rewritten.values()))] = rewritten
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
    """Return, by id, the text of messages with withheld parts, and these parts."""
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
    """Return the operations that withhold words in these partitions because someone wants them forgotten.

    What its host edited, abandoned or removed is not part of the conversation any more, and may be said again.
    """
    query = select(messages.c.withheld).where(
        messages.c.partition_id.in_(partition_ids), messages.c.withheld.is_not(None)
    )
    return frozenset(
        note["cause"]
        for stored in connection.execute(query).scalars()
        for note in notes(stored)
        if note["reason"] in {"forgotten", "asked"}
    )


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
    _invalidate(connection, partition_id)
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
    _invalidate(connection, partition_id)
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
        _rewrite_error(connection, row, stored)
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


def _rewrite_error(connection: Connection, row: Row[Any], stored: str | None) -> None:
    """Let the record of a failed call say of its error what its result still says."""
    result = Message.model_validate(veiled(json.loads(row.body), phrases(stored)))
    failed = (
        tool_calls.c.partition_id == row.partition_id,
        tool_calls.c.call == json.dumps(result.tool_call_id),
        tool_calls.c.ok.is_(False),
    )
    for body in connection.execute(select(tool_calls.c.body).where(*failed)).scalars().all():
        rewritten = ToolRecord.from_json(body).evolve(error=error_line(result.text)).to_json()
        connection.execute(update(tool_calls).where(*failed, tool_calls.c.body == body).values(body=rewritten))


def _invalidate(connection: Connection, partition_id: int) -> None:
    """Let what is cached of the partition's messages be read again."""
    here = update(partitions).where(partitions.c.id == partition_id)
    connection.execute(here.values(erasures=partitions.c.erasures + 1))


# ---------------------------------------------------------------------------------- what was erased

Grave = Literal["message", "block", "memory", "call", "thread", "person"]

ANY = exists(select(tombstones.c.mark)).label("graves")
"""A column that says whether there is any mark, to read along with a row: most ledgers have none."""

# Said once: building a statement costs as much as running it.
_FOUND = select(tombstones.c.mark).where(tombstones.c.mark.in_(bindparam("marks", expanding=True)))
_WHEN = (
    select(tombstones.c.mark, func.max(events.c.time).label("time"))
    .join(events, events.c.operation_id == tombstones.c.erasure_id)
    .where(tombstones.c.mark.in_(bindparam("marks", expanding=True)))
    .group_by(tombstones.c.mark)
)


def person(whose: Subject | Partition) -> Partition:
    """Return the mark of a person, or of a partition's person, whatever agent and project."""
    return Partition(tenant=whose.tenant, user=whose.user)


def unsaid(thread: str, message_id: str) -> str:
    """Return what a message that was said off the record is marked by: hosts may number each thread from the start."""
    return json.dumps(["unsaid", thread, message_id])


class Tombstones:
    """What was erased from a ledger.

    Args:
        journal: Its journal, which has the key.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def lay(
        self, connection: Connection, erasure_id: str, kind: Grave, partition: Partition | None, ids: Iterable[str]
    ) -> None:
        """Mark records as erased.

        Args:
            partition: Where they were; none for memories, whose ids are unique.
        """
        rows = [{"mark": self._marks(kind, partition, each)[0], "erasure_id": erasure_id} for each in ids]
        if rows:
            statement = upsert(connection.dialect.name, tombstones)
            newest = {"erasure_id": statement.excluded.erasure_id}
            connection.execute(statement.on_conflict_do_update(index_elements=["mark"], set_=newest), rows)

    def among(
        self, connection: Connection, kind: Grave, partition: Partition | None, ids: Sequence[str]
    ) -> frozenset[str]:
        """Return those of the ids that were erased.

        Args:
            partition: Where; none for memories.
        """
        by_mark = {mark: each for each in ids for mark in self._marks(kind, partition, each)}
        return frozenset(
            by_mark[mark]
            for chunk in chunks(list(by_mark))
            for mark in connection.execute(_FOUND, {"marks": chunk}).scalars()
        )

    def late(self, connection: Connection, kind: Grave, notes: Sequence[tuple[Partition, str, datetime]]) -> list[bool]:
        """Tell of notes that waited to be written whether what they are about, or its person, was erased meanwhile.

        Names of calls and threads come again, and so do persons: only what was noted before the erasure is late.

        Args:
            notes: Where, about which, noted when.
        """
        found = [
            (*self._marks("person", person(place), ""), *self._marks(kind, place, name)) for place, name, _ in notes
        ]
        wanted = list(dict.fromkeys(mark for each in found for mark in each))
        rows = (row for chunk in chunks(wanted) for row in connection.execute(_WHEN, {"marks": chunk}))
        erased = {row.mark: row.time for row in rows}
        return [
            any(mark in erased and micros(at) <= erased[mark] for mark in each)
            for each, (_, _, at) in zip(found, notes, strict=True)
        ]

    def check(self, connection: Connection, changes: ChangeSet) -> None:
        """Turn away what was erased, and whatever was made of it by who read it before.

        Args:
            connection: The transaction that would write it.

        Raises:
            ErasedError: A memory or a message of it was erased.
            ConflictError: It refers to an erased memory.
        """
        own = [change.memory.memory_id for change in changes.changes]
        ends = [end for link in changes.links for end in (link.source_id, link.target_id)]
        gone = self.among(connection, "memory", None, [*own, *ends])
        if stale := sorted(gone.intersection(own)):
            raise ErasedError(f"Memory {', '.join(stale)} was erased.")
        if gone:
            raise ConflictError(sorted(gone), "It was erased meanwhile: read again, and go on without it.")
        if changes.brought is not None:
            brought = [message.message_id for message in changes.brought.messages]
            if names := sorted(self.among(connection, "message", changes.brought.partition, brought)):
                raise ErasedError(f"Message {', '.join(names)} was erased.")

    def _marks(self, kind: Grave, partition: Partition | None, name: str) -> tuple[str, ...]:
        """Return the marks of one record: that of the key that seals, then those of other keys at hand."""
        place = None if partition is None else [partition.tenant, partition.user, partition.agent, partition.project]
        return self._journal.marks(json.dumps([kind, place, name]))
