"""Where a memory came from, checked again in the commit: its words stand in messages, its blocks hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from remegraph.errors import ConflictError, InputError, NotFoundError
from remegraph.ledger import attachments, withheld
from remegraph.ledger.rows import chunks
from remegraph.ledger.schema import blocks, memory_sources, messages, partitions
from remegraph.models import Evidence, Memory, Message, Partition
from remegraph.models.quotes import find_quote
from remegraph.models.remnants import MARK

__all__ = ["Source", "check", "replace"]


@dataclass(frozen=True, slots=True)
class Source:
    """A row of `memory_sources`: a message in a block, or a block as a whole."""

    partition_id: int
    block_id: str
    message_id: str = ""


def check(connection: Connection, number: int, partition_id: int, memory: Memory, before: Memory | None) -> set[Source]:
    """Return the sources of a version; evidence that its head holds already was checked when that was committed.

    Sources lie in the memory's own partition, or, where it is shared, in those that it is shared by: whose fields are
    the same wherever the memory's partition has any.

    Args:
        number: The memory's row number; 0 where it is new.
        memory: The version to be committed.
        before: The head that it follows.

    Raises:
        NotFoundError: A message or block is not there.
        InputError: A quote is not in its message, or a message not in its block.
        ConflictError: The words were withheld since someone quoted them.
    """
    kept = _kept(connection, number, memory) if number else set()
    proven = frozenset(before.evidence if before else ())
    fresh = [evidence for evidence in memory.evidence if evidence not in proven]
    found = kept | _witnesses(connection, partition_id, memory.partition, fresh)
    covered = {source.block_id for source in found}
    whole = [block_id for block_id in memory.block_ids if block_id not in covered]
    return found | _whole_blocks(connection, {partition_id, *(source.partition_id for source in found)}, whole)


def replace(connection: Connection, sources: Mapping[int, Iterable[Source]]) -> None:
    """Make these the sources of memories.

    Args:
        sources: From `check`, by the memory's row number.
    """
    for chunk in chunks(list(sources)):
        connection.execute(delete(memory_sources).where(memory_sources.c.memory.in_(chunk)))
    rows = [{"memory": number, **asdict(source)} for number, found in sources.items() for source in found]
    if rows:
        connection.execute(insert(memory_sources), rows)


def _kept(connection: Connection, number: int, memory: Memory) -> set[Source]:
    """Return those sources of the head that the version still names."""
    cited = {(evidence.block_id, evidence.message_id) for evidence in memory.evidence}
    cited |= {(block_id, "") for block_id in memory.block_ids}
    return {
        Source(row.partition_id, row.block_id, row.message_id)
        for row in connection.execute(select(memory_sources).where(memory_sources.c.memory == number))
        if (row.block_id, row.message_id) in cited
    }


def _witnesses(
    connection: Connection, partition_id: int, partition: Partition, fresh: Sequence[Evidence]
) -> set[Source]:
    message_ids = list(dict.fromkeys(evidence.message_id for evidence in fresh))
    rows = _messages(connection, [partition_id], message_ids)
    if missing := [message_id for message_id in message_ids if message_id not in rows]:
        rows |= _messages(connection, _sharers(connection, partition), missing)
    return {_witness(connection, evidence, rows.get(evidence.message_id, [])) for evidence in fresh}


def _text(connection: Connection, evidence: Evidence, row: Row[Any]) -> str:
    """Return what the quote must stand in: the words of the message, or what is in the attachment that is named."""
    if not evidence.attachment:
        return Message.from_json(row.body).text
    read = attachments.readings(connection, row.partition_id, row.message_id)
    return next((each.text for each in read if each.sha256 == evidence.attachment), "")


def _says(connection: Connection, evidence: Evidence, row: Row[Any]) -> bool:
    """Return whether the words stand in a message; a mark stands for words that are withheld, and no words do.

    Raises:
        ConflictError: They are withheld.
    """
    text = _text(connection, evidence, row)
    if row.withheld is None:
        return find_quote(evidence.quote, text) is not None
    hidden = withheld.phrases(row.withheld)
    if evidence.quote == MARK:
        return True
    if find_quote(evidence.quote, text) is None:
        return False
    if withheld.hides(evidence.quote, [(text, hidden)]):
        raise ConflictError([row.message_id], "Its words were withheld meanwhile: read it again.")
    return True


def _messages(
    connection: Connection, partition_ids: Sequence[int], message_ids: Sequence[str]
) -> dict[str, list[Row[Any]]]:
    found: dict[str, list[Row[Any]]] = {}
    for places in chunks(partition_ids):
        for ids in chunks(message_ids):
            here = (messages.c.partition_id.in_(places), messages.c.message_id.in_(ids))
            for row in connection.execute(select(messages).where(*here).order_by(messages.c.partition_id)):
                found.setdefault(row.message_id, []).append(row)
    return found


def _sharers(connection: Connection, partition: Partition) -> list[int]:
    """Return the partitions that the given one is wider than."""
    query = select(partitions.c.id).where(partitions.c.tenant == partition.tenant).order_by(partitions.c.id)
    for column, value in (
        (partitions.c.user, partition.user),
        (partitions.c.agent, partition.agent),
        (partitions.c.project, partition.project),
    ):
        if value is not None:
            query = query.where(column == value)
    return list(connection.execute(query).scalars())


def _witness(connection: Connection, evidence: Evidence, rows: Sequence[Row[Any]]) -> Source:
    if not rows:
        raise NotFoundError(f"Evidence names message {evidence.message_id}, which is not here.")
    said = [row for row in rows if _says(connection, evidence, row)]
    if not said:
        raise InputError(
            f"The quote is not in message {evidence.message_id}.", "Quote the message as it stands, word by word."
        )
    for row in said:
        holding = select(blocks.c.id).where(
            blocks.c.partition_id == row.partition_id,
            blocks.c.block_id == evidence.block_id,
            blocks.c.thread == row.thread,
            blocks.c.first_seq <= row.seq,
            blocks.c.last_seq >= row.seq,
        )
        if connection.execute(holding).first():
            return Source(row.partition_id, evidence.block_id, evidence.message_id)
    raise NotFoundError(f"No block {evidence.block_id} holds message {evidence.message_id} here.")


def _whole_blocks(connection: Connection, partition_ids: set[int], block_ids: Sequence[str]) -> set[Source]:
    found: set[Source] = set()
    for chunk in chunks(block_ids):
        here = (blocks.c.partition_id.in_(sorted(partition_ids)), blocks.c.block_id.in_(chunk))
        rows = connection.execute(select(blocks.c.partition_id, blocks.c.block_id).where(*here))
        found |= {Source(row.partition_id, row.block_id) for row in rows}
    if missing := sorted(set(block_ids) - {source.block_id for source in found}):
        raise NotFoundError(f"There is no block {', '.join(missing)} here.")
    return found
