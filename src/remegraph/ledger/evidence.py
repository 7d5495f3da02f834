"""Where a memory came from, checked again in the commit: its words are in messages, its blocks hold them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, bindparam, delete, select

from remegraph.errors import ConflictError, InputError, NotFoundError
from remegraph.ledger import attachments, withheld
from remegraph.ledger.blocks import Extents, extents
from remegraph.ledger.rows import chunks, insert_rows
from remegraph.ledger.schema import blocks, memory_sources, messages, partitions
from remegraph.models import Evidence, Memory, Message, Partition
from remegraph.models.quotes import find_quote
from remegraph.models.remnants import MARK

__all__ = ["Claim", "Source", "check", "replace"]


# Said once: building a statement costs as much as running it.
_NAMED = (
    select(messages)
    .where(
        messages.c.partition_id.in_(bindparam("here", expanding=True)),
        messages.c.message_id.in_(bindparam("ids", expanding=True)),
    )
    .order_by(messages.c.partition_id)
)


@dataclass(frozen=True, slots=True)
class Source:
    """A row of `memory_sources`: a message in a block, or a block as a whole."""

    partition_id: int
    block_id: str
    message_id: str = ""


class Claim(NamedTuple):
    """A version that is to be committed, and what is known of where its words are."""

    number: int
    """The memory's row; 0 where it is new."""
    partition_id: int
    memory: Memory
    before: Memory | None
    """The head that it follows."""

    @property
    def fresh(self) -> list[Evidence]:
        """The evidence that its head does not hold already: that was checked when it was committed."""
        proven = frozenset(self.before.evidence if self.before else ())
        return [evidence for evidence in self.memory.evidence if evidence not in proven]


def check(connection: Connection, claims: Sequence[Claim], there: Extents) -> list[set[Source]]:
    """Return the sources of versions, in their order.

    Sources lie in the memory's own partition, or, where it is shared, in those that it is shared by: whose fields are
    the same wherever the memory's partition has any.

    Args:
        there: Blocks of their own partitions.

    Raises:
        NotFoundError: A message or block is not there.
        InputError: A quote is not in its message, or a message not in its block.
        ConflictError: The words were withheld since someone quoted them.
    """
    kept = _kept(connection, claims)
    numbers = {claim.partition_id for claim in claims if claim.fresh}
    rows = _messages(connection, sorted(numbers), list({item.message_id for each in claims for item in each.fresh}))
    return [_check(connection, claim, kept.get(claim.number, set()), rows, there) for claim in claims]


def _check(
    connection: Connection,
    claim: Claim,
    kept: set[Source],
    rows: Mapping[str, Sequence[Row[Any]]],
    there: Extents,
) -> set[Source]:
    fresh = claim.fresh
    mine = {
        name: [row for row in rows.get(name, ()) if row.partition_id == claim.partition_id]
        for name in dict.fromkeys(evidence.message_id for evidence in fresh)
    }
    if missing := [name for name, found in mine.items() if not found]:
        elsewhere = _sharers(connection, claim.memory.partition)
        mine |= _messages(connection, elsewhere, missing)
        there = Extents(there | extents(connection, elsewhere, {evidence.block_id for evidence in fresh}))
    found = kept | {_witness(connection, evidence, mine[evidence.message_id], there) for evidence in fresh}
    covered = {source.block_id for source in found}
    whole = [block_id for block_id in claim.memory.block_ids if block_id not in covered]
    return found | _whole_blocks(connection, {claim.partition_id, *(each.partition_id for each in found)}, whole)


def replace(connection: Connection, sources: Mapping[int, Iterable[Source]], *, new: Collection[int] = ()) -> None:
    """Make these the sources of memories.

    Args:
        sources: From `check`, by the memory's row number.
        new: Memories that have none yet.
    """
    for chunk in chunks([number for number in sources if number not in new]):
        connection.execute(delete(memory_sources).where(memory_sources.c.memory.in_(chunk)))
    rows = [{"memory": number, **asdict(source)} for number, found in sources.items() for source in found]
    if rows:
        insert_rows(connection, memory_sources, rows)


def _kept(connection: Connection, claims: Sequence[Claim]) -> dict[int, set[Source]]:
    """Return those sources of the heads, by row number, that the versions still name."""
    cited = {
        claim.number: {
            *((evidence.block_id, evidence.message_id) for evidence in claim.memory.evidence),
            *((block_id, "") for block_id in claim.memory.block_ids),
        }
        for claim in claims
        if claim.number
    }
    found: dict[int, set[Source]] = {}
    for chunk in chunks(list(cited)):
        for row in connection.execute(select(memory_sources).where(memory_sources.c.memory.in_(chunk))):
            if (row.block_id, row.message_id) in cited[row.memory]:
                found.setdefault(row.memory, set()).add(Source(row.partition_id, row.block_id, row.message_id))
    return found


def _text(connection: Connection, evidence: Evidence, row: Row[Any]) -> str:
    """Return what must contain the quote: the words of the message, or what is in the attachment that is named."""
    if not evidence.attachment:
        return Message.from_json(row.body).text
    read = attachments.readings(connection, row.partition_id, row.message_id)
    return next((each.text for each in read if each.sha256 == evidence.attachment), "")


def _supports(connection: Connection, evidence: Evidence, row: Row[Any]) -> bool:
    """Return whether a message contains the words. If words of it are withheld, a mark counts, withheld words do not.

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
    """Return the rows of these messages, by id."""
    found: dict[str, list[Row[Any]]] = {name: [] for name in message_ids}
    for places in chunks(partition_ids):
        for ids in chunks(message_ids):
            for row in connection.execute(_NAMED, {"here": places, "ids": ids}):
                found[row.message_id].append(row)
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


def _witness(connection: Connection, evidence: Evidence, rows: Sequence[Row[Any]], there: Extents) -> Source:
    if not rows:
        raise NotFoundError(f"Evidence names message {evidence.message_id}, which is not here.")
    said = [row for row in rows if _supports(connection, evidence, row)]
    if not said:
        raise InputError(
            f"The quote is not in message {evidence.message_id}.", "Quote the message as it stands, word by word."
        )
    for row in said:
        holding = there.get((row.partition_id, evidence.block_id))
        if holding is not None and holding.holds(row):
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
