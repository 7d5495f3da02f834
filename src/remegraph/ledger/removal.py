"""Removal of rows in the transaction of an erasure: records by name, memories with what is based on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, delete, func, insert, or_, select, update

from remegraph.ledger import evidence
from remegraph.ledger import memories as memory_rows
from remegraph.ledger.index import fulltext
from remegraph.ledger.index.vectors import Key
from remegraph.ledger.index.vectors import mark as mark_vectors
from remegraph.ledger.journal import Entry
from remegraph.ledger.rows import chunks, micros
from remegraph.ledger.schema import (
    attachments,
    blocks,
    dirty,
    endorsements,
    granted,
    grants,
    injections,
    item_namespaces,
    item_texts,
    items,
    jobs,
    links,
    memories,
    memory_sources,
    messages,
    operations,
    outcomes,
    reviews,
    revocations,
    shares,
    summaries,
    texts,
    threads,
    tool_calls,
    topics,
    totals,
    usage,
    vectors,
    versions,
    work,
)
from remegraph.models import HitKind, Memory, Message, Topic
from remegraph.models.remnants import NAMELESS, Loss, buried, remade
from remegraph.models.standing import TOMBSTONES
from remegraph.text.tokens import token_counts

__all__ = ["ACTOR", "Lost", "PartitionLoss", "Removal"]

_KINDS: tuple[HitKind, ...] = ("message", "block", "memory")

_WHOLE: tuple[Table, ...] = (
    totals, usage, vectors, dirty, tool_calls, reviews, injections, outcomes, shares, endorsements,
    item_texts, items, item_namespaces, summaries, work, jobs, operations, blocks, attachments, messages, threads,
)  # fmt: skip
"""What goes with a partition, in the order of their keys; memories and grants, which others may name, go before."""

ACTOR = "operator"
"""Who erases, as the journal says it: no name."""


class Removal:
    """Rows that go, in one transaction.

    Args:
        connection: A write transaction that has locked the partitions.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.counts: Counter[str] = Counter()
        """How many went, by place."""

    def rows(self, table: Table, *where: ColumnElement[bool]) -> None:
        """Delete rows that meet all conditions."""
        self.counts[table.name] += self.connection.execute(delete(table).where(*where)).rowcount

    def named(
        self, table: Table, column: ColumnElement[str], names: Sequence[str], *where: ColumnElement[bool]
    ) -> None:
        """Delete the rows that name one of these."""
        for some in chunks(names):
            self.rows(table, column.in_(some), *where)

    def texts(self, partition_id: int, names: Mapping[HitKind, Sequence[str] | None]) -> None:
        """Take records out of full text.

        Args:
            names: Ids by kind; none: all of the kind.
        """
        for kind, ids in names.items():
            shelf = fulltext.TextShelf(partition_id, kind)
            if ids is None:
                here = (texts.c.partition_id == partition_id, texts.c.kind == kind)
                ids = self.connection.execute(select(texts.c.record_id).where(*here)).scalars().all()  # noqa: PLW2901
            self.counts["full text"] += len(ids)
            fulltext.remove(self.connection, {shelf: ids})

    def vectors(self, partition_id: int, kind: str, names: Sequence[str]) -> None:
        """Delete the vectors of records, of all embedders."""
        self.named(vectors, vectors.c.record_id, names, vectors.c.partition_id == partition_id, vectors.c.kind == kind)

    def memories(self, memory_ids: Sequence[str]) -> None:
        """Delete memories with all that hangs on them; their topics stay."""
        self.ties(memory_ids)
        for some in chunks(memory_ids):
            numbers = select(memories.c.id).where(memories.c.memory_id.in_(some))
            self.rows(versions, versions.c.memory.in_(numbers))
            self.rows(memory_sources, memory_sources.c.memory.in_(numbers))
            self.rows(memories, memories.c.memory_id.in_(some))

    def ties(self, memory_ids: Sequence[str]) -> None:
        """Delete what others say of memories: links, grants of them, words on proposals, reviews, runs."""
        for some in chunks(memory_ids):
            self.rows(links, or_(links.c.source_id.in_(some), links.c.target_id.in_(some)))
        self.named(granted, granted.c.memory_id, memory_ids)
        self.named(endorsements, endorsements.c.proposal_id, memory_ids)
        self.named(reviews, reviews.c.memory_id, memory_ids)
        self.named(outcomes, outcomes.c.memory_id, memory_ids)

    def partitions(self, numbers: Sequence[int]) -> None:
        """Delete all rows of partitions, but for their journals."""
        for number in numbers:
            self.texts(number, dict.fromkeys(_KINDS))
        self.memories(
            self.connection.execute(select(memories.c.memory_id).where(memories.c.partition_id.in_(numbers)))
            .scalars()
            .all()
        )
        self.rows(topics, topics.c.partition_id.in_(numbers))
        given = select(grants.c.id).where(or_(grants.c.partition_id.in_(numbers), grants.c.reader_id.in_(numbers)))
        self.rows(granted, granted.c.grant.in_(given))
        self.rows(revocations, revocations.c.grant.in_(given))
        self.rows(grants, grants.c.id.in_(given))
        for table in _WHOLE:
            self.rows(table, table.c.partition_id.in_(numbers))

    def left(self, numbers: Sequence[int]) -> Counter[str]:
        """Return how many rows such partitions still hold, by place."""
        found: Counter[str] = Counter()
        for table in (*_WHOLE, texts, memories, topics, links, memory_sources):
            query = select(func.count()).select_from(table).where(table.c.partition_id.in_(numbers))
            found["full text" if table is texts else table.name] += self.connection.execute(query).scalar_one()
        return found


@dataclass(frozen=True, slots=True)
class Lost:
    """Messages that go, and what becomes of the blocks that held them."""

    partition_id: int
    message_ids: frozenset[str] = frozenset()
    blocks: Mapping[str, str | None] = field(default_factory=dict)
    """By label: the block that holds the rest; none where nothing is left."""
    said: Mapping[str, str] = field(default_factory=dict)
    """By label of the old block: what is erased of it."""


@dataclass(slots=True)
class PartitionLoss:
    """Rewrites memories without what is lost, or buries them.

    Args:
        removal: Takes rows out, in its transaction, before the messages themselves go.
    """

    removal: Removal
    now: datetime
    erasure_id: str
    after: dict[str, Memory | None] = field(default_factory=dict)
    """What became of each memory that was touched; none: nothing supports it."""
    before: dict[str, Memory] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)

    @property
    def connection(self) -> Connection:
        """The transaction."""
        return self.removal.connection

    @property
    def dead(self) -> list[str]:
        """The memories that go."""
        return [name for name, memory in self.after.items() if memory is None]

    @property
    def rederived(self) -> list[str]:
        """The memories that live on."""
        return [name for name, memory in self.after.items() if memory is not None]

    def touch(self, losses: Sequence[Lost]) -> None:
        """Decide on the memories that came from what is lost, wherever they live."""
        for lost in losses:
            for number in self._from_blocks(lost):
                head = self._head(number)
                if head.memory_id not in self.after and head.status not in TOMBSTONES:
                    self.before[head.memory_id] = head
                    self.after[head.memory_id] = remade(head, self._loss(number, head, lost))

    def bury(self, memory_ids: Iterable[str]) -> None:
        """Decide that memories go."""
        for head in self._heads(memory_ids):
            self.before[head.memory_id] = head
            self.after[head.memory_id] = None

    def leave(self, memory_ids: Iterable[str]) -> None:
        """Decide nothing on memories after all."""
        for name in memory_ids:
            self.before.pop(name, None)
            self.after.pop(name, None)

    def follow(self) -> None:
        """Decide on what was abstracted from the memories that are touched, and from that in turn."""
        while derived := [each for each in self._derived() if each.memory_id not in self.after]:
            for head in derived:
                self.before[head.memory_id] = head
                self.after[head.memory_id] = remade(head, self._abstracted(head))

    def write(self) -> dict[int, dict[str, bool]]:
        """Write what was decided; return by partition the memories touched, and whether each is live now."""
        touched: dict[int, dict[str, bool]] = defaultdict(dict)
        emptied: set[int] = set()
        for name, old in self.before.items():
            row = self._row(name)
            new = self.after[name]
            touched[row.partition_id][name] = new is not None and new.live
            emptied |= {row.topic_id} if new is None else set()
            self._write(row, old, new)
        self.removal.ties(self.dead)
        self._unlink(self.rederived)
        for number in emptied:
            self._clear_topic(number, touched)
        self.removal.counts["memories"] += len(self.dead)
        return touched

    # ------------------------------------------------------------------------------------------ deciding

    def _from_blocks(self, lost: Lost) -> list[int]:
        found: dict[int, None] = {}
        for some in chunks(list(lost.blocks)):
            here = (memory_sources.c.partition_id == lost.partition_id, memory_sources.c.block_id.in_(some))
            found |= dict.fromkeys(self.connection.execute(select(memory_sources.c.memory).where(*here)).scalars())
        return list(found)

    def _head(self, number: int) -> Memory:
        return Memory.from_json(
            self.connection.execute(select(memories.c.body).where(memories.c.id == number)).scalar_one()
        )

    def _heads(self, memory_ids: Iterable[str]) -> list[Memory]:
        found: list[Memory] = []
        for some in chunks(list(memory_ids)):
            query = select(memories.c.body).where(memories.c.memory_id.in_(some))
            found += map(Memory.from_json, self.connection.execute(query).scalars())
        return [head for head in found if head.status not in TOMBSTONES]

    def _loss(self, number: int, head: Memory, lost: Lost) -> Loss:
        """Return what one memory loses: the words of its blocks that go, and what its other messages still say."""
        sources = self.connection.execute(select(memory_sources).where(memory_sources.c.memory == number)).all()
        here = [row for row in sources if row.partition_id == lost.partition_id and row.block_id in lost.blocks]
        labels = {row.block_id for row in here}
        elsewhere = {row.block_id for row in sources if row.partition_id != lost.partition_id}
        gone = [row for row in here if row.message_id in lost.message_ids]
        said = self._messages_of([row for row in sources if row.message_id and row not in gone])
        return Loss(
            cited={(row.block_id, row.message_id): lost.blocks[row.block_id] for row in here}
            | {(row.block_id, row.message_id): None for row in gone},
            blocks={label: lost.blocks[label] for label in labels - elsewhere},
            lost="\n".join(lost.said.get(label, "") for label in labels),
            said={name: message.indexed_text for name, message in said.items()},
            speakers={name: message.speaker for name, message in said.items()},
            trust={name: message.trust for name, message in said.items()},
            sources=self._remaining(head) if self._targets(head.memory_id) else (),
        )

    def _abstracted(self, head: Memory) -> Loss:
        """Return what a long-term memory loses with sources of its own."""
        gone = [self.before[name] for name in self._targets(head.memory_id) if name in self.before]
        return Loss(
            cited={},
            blocks={},
            lost="\n".join(" ".join((old.content, *old.tags)) for old in gone),
            sources=self._remaining(head),
        )

    def _remaining(self, head: Memory) -> tuple[Memory, ...]:
        """Return what is left of the memories that one was abstracted from, as they are from now on."""
        heads = self._heads(self._targets(head.memory_id))
        found = (self.after.get(each.memory_id, each) for each in heads)
        return tuple(each for each in found if each is not None and each.memory_id != head.memory_id)

    def _targets(self, memory_id: str) -> list[str]:
        here = (links.c.source_id == memory_id, links.c.type == "derived_from")
        return list(self.connection.execute(select(links.c.target_id).where(*here)).scalars())

    def _derived(self) -> list[Memory]:
        above: dict[str, None] = {}
        for some in chunks(list(self.after)):
            query = select(links.c.source_id).where(links.c.target_id.in_(some), links.c.type == "derived_from")
            above |= dict.fromkeys(self.connection.execute(query).scalars())
        return self._heads(above)

    def _messages_of(self, rows: Sequence[Row[Any]]) -> dict[str, Message]:
        found: dict[str, Message] = {}
        by_place: dict[int, list[str]] = defaultdict(list)
        for row in rows:
            by_place[row.partition_id].append(row.message_id)
        for place, ids in by_place.items():
            for some in chunks(ids):
                here = (messages.c.partition_id == place, messages.c.message_id.in_(some))
                bodies = self.connection.execute(select(messages.c.body).where(*here)).scalars()
                found |= {message.message_id: message for message in map(Message.from_json, bodies)}
        return found

    # ------------------------------------------------------------------------------------------- writing

    def _next(self, old: Memory, new: Memory | None) -> Memory:
        if new is None:
            nowhere = Topic(type=old.topic.type, target_name=NAMELESS)
            stub = old.evolve(version=old.version + 1, status="erased", recorded_at=self.now, topic=nowhere)
            return buried(stub.evolve(block_ids=(), origin=None))
        kept = tuple(name for name in new.supersedes if name not in self.dead)
        return new.evolve(version=old.version + 1, recorded_at=self.now, supersedes=kept)

    def _row(self, memory_id: str) -> Row[Any]:
        return self.connection.execute(select(memories).where(memories.c.memory_id == memory_id)).one()

    def _write(self, row: Row[Any], old: Memory, new: Memory | None) -> None:
        """Write the only version that is kept of a memory, and what follows from it."""
        memory = self._next(old, new)
        shelf = row.topic_id if new is not None else self._nameless(row.partition_id, old.topic.type)
        values = memory_rows.head_columns(memory, shelf)
        self.connection.execute(update(memories).where(memories.c.id == row.id).values(**values))
        self.removal.rows(versions, versions.c.memory == row.id)
        self.connection.execute(
            insert(versions).values(
                memory=row.id,
                version=memory.version,
                recorded_at=micros(self.now),
                operation_id=self.erasure_id,
                body=memory.to_json(),
            )
        )
        self._reindex(row.partition_id, old, memory)
        self._resource(row, memory)
        action = "erase" if memory.status == "erased" else "rederive"
        self.entries.append(
            Entry(
                partition_id=row.partition_id,
                time=micros(self.now),
                actor=ACTOR,
                action=action,
                record_id=memory.memory_id,
                operation_id=self.erasure_id,
                version=memory.version,
                body=memory.to_json(),
            )
        )

    def _resource(self, row: Row[Any], memory: Memory) -> None:
        """Keep those sources that the version names; blocks that were cut again have new labels."""
        old = self.connection.execute(select(memory_sources).where(memory_sources.c.memory == row.id)).all()
        places = {each.message_id: each.partition_id for each in old if each.message_id}
        found = {
            evidence.Source(places.get(item.message_id, row.partition_id), item.block_id, item.message_id)
            for item in memory.evidence
        }
        covered = {source.block_id for source in found}
        by_block = {each.block_id: each.partition_id for each in old}
        whole = (block_id for block_id in memory.block_ids if block_id not in covered)
        found |= {evidence.Source(by_block.get(block_id, row.partition_id), block_id) for block_id in whole}
        evidence.replace(self.connection, {row.id: found})

    def _reindex(self, partition_id: int, old: Memory, memory: Memory) -> None:
        """Let full text and vectors follow."""
        shelf = fulltext.TextShelf(partition_id, "memory")
        fulltext.remove(self.connection, {shelf: [memory.memory_id]})
        if memory.live:
            entry = fulltext.TextEntry(memory.memory_id, token_counts(memory_rows.indexed_words(memory)))
            fulltext.put(self.connection, {shelf: [entry]})
        if memory.indexed_text != old.indexed_text or not memory.live:
            self.removal.vectors(partition_id, "memory", [memory.memory_id])
        mark_vectors(self.connection, [Key(partition_id, "memory", memory.memory_id)])

    def _unlink(self, memory_ids: Sequence[str]) -> None:
        """Take the reasons from the links of memories that live on: they may quote what went."""
        for some in chunks(memory_ids):
            here = or_(links.c.source_id.in_(some), links.c.target_id.in_(some))
            self.connection.execute(update(links).where(here, links.c.reason != "").values(reason=""))

    def _clear_topic(self, number: int, touched: dict[int, dict[str, bool]]) -> None:
        """Remove a topic that has only stubs left, which may not keep its name either."""
        rows = self.connection.execute(select(memories).where(memories.c.topic_id == number)).all()
        topic = self.connection.execute(select(topics).where(topics.c.id == number)).one()
        if topic.target == NAMELESS or any(row.status not in TOMBSTONES for row in rows):
            return
        for row in rows:
            touched[row.partition_id][row.memory_id] = False
            self._write(row, Memory.from_json(row.body), None)
        touched[topic.partition_id][f"topic:{number}"] = False  # its event has a digest of the name
        self.removal.rows(topics, topics.c.id == number)

    def _nameless(self, partition_id: int, kind: str) -> int:
        here = (topics.c.partition_id == partition_id, topics.c.type == kind, topics.c.target == NAMELESS)
        found = self.connection.execute(select(topics.c.id).where(*here)).scalar()
        if found is None:
            values = {"partition_id": partition_id, "type": kind, "target": NAMELESS, "target_name": NAMELESS}
            found = self.connection.execute(
                insert(topics).values(**values, description="").returning(topics.c.id)
            ).scalar_one()
        return int(found)
