"""One erasure in its transaction: which rows go, which are cut or made anew, and what is left to do after it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, Table, func, select, update

from remegraph.models import (
    Block,
    Endorsement,
    ErasureRequest,
    Grant,
    HitKind,
    Partition,
    Receipt,
    StoredMessage,
    Subject,
)
from remegraph.storage import block_notes, interning, jobs, vectors
from remegraph.storage import blocks as block_rows
from remegraph.storage.archive import SqlArchive
from remegraph.storage.interning import anonymous, partition_of
from remegraph.storage.journal import Entry, acted_in
from remegraph.storage.losing import ACTOR, Losing, Lost
from remegraph.storage.messages import revisions, stored
from remegraph.storage.removing import Removal
from remegraph.storage.rows import chunks, micros
from remegraph.storage.tables import (
    attachments,
    blocks,
    collections,
    endorsements,
    grants,
    injections,
    memories,
    memory_sources,
    messages,
    operations,
    partitions,
    summaries,
    threads,
    tool_calls,
    work,
)
from remegraph.storage.tables import jobs as job_rows
from remegraph.storage.tombstones import Grave, person

__all__ = ["Plan", "Unwriting", "deeds"]

_GRAVES: tuple[tuple[Grave, Table, Column[str]], ...] = (
    ("message", messages, messages.c.message_id),
    ("block", blocks, blocks.c.block_id),
    ("memory", memories, memories.c.memory_id),
)


_NAMELESS = "erased"
"""Who decided, once that is nobody's business any more."""
_DECISIONS: tuple[tuple[Table, type[Grant | Endorsement], str], ...] = (
    (grants, Grant, "actor"),
    (endorsements, Endorsement, "by"),
)


def deeds(connection: Connection, subject: Subject) -> int:
    """Return how often a person acted or decided, as the ledger still tells.

    Args:
        connection: A connection.
        subject: The person.
    """
    places = interning.around(connection, subject.tenant)
    told = len(acted_in(connection, places, subject.user))
    return told + sum(1 for _ in _decisions(connection, places, subject.user))


def _decisions(connection: Connection, places: Iterable[int], name: str) -> Iterator[tuple[Table, int, str]]:
    """Yield the rows that tell this name as that of whoever decided, and what they say without it."""
    for some in chunks(list(places)):
        for table, record, field in _DECISIONS:
            query = select(table.c.id, table.c.body).where(table.c.partition_id.in_(some))
            for row in connection.execute(query).all():
                told = record.from_json(row.body)
                if getattr(told, field) == name:
                    yield table, row.id, told.evolve(**{field: _NAMELESS}).to_json()


@dataclass(slots=True)
class Plan:
    """What one erasure still has to do; in SQL, as JSON. It names records by id, and nobody by name."""

    partition_ids: list[int]
    """Those that go whole."""
    messages: dict[int, list[str]]
    memories: list[str]
    collections: list[str]
    """Of the index, which are made anew."""
    blobs: list[str]
    removed: dict[str, int]
    rederived: int
    actors_left: int = 0
    """Decisions that still told the name after it."""
    namesake: bool = False
    """Whether an agent has the same name."""
    index_left: int = 0
    """Records that a look at the index found after it."""
    index_cleared: bool = True
    """Whether its files were ours to clear."""

    @classmethod
    def of(cls, body: str) -> Plan:
        """Return the plan that `to_json` wrote."""
        read = json.loads(body)
        read["messages"] = {int(number): ids for number, ids in read["messages"].items()}
        return cls(**read)

    def to_json(self) -> str:
        """Return it as it is kept in SQL."""
        return json.dumps(asdict(self))


class Unwriting:
    """Takes the rows of one erasure out.

    Args:
        archive: The ledger.
        connection: A write transaction that has locked the partitions.
        erasure_id: Which erasure.
        now: When.
    """

    def __init__(self, archive: SqlArchive, connection: Connection, erasure_id: str, now: datetime) -> None:
        self._archive = archive
        self._connection = connection
        self._id = erasure_id
        self._now = now
        self._removal = Removal(connection)
        self._losing = Losing(self._removal, now, erasure_id)

    def erase(self, request: ErasureRequest) -> Plan:
        """Erase; return what is left to do beyond the ledger."""
        if request.subject is not None:
            return self._subject(request.subject)
        assert request.partition is not None
        for number in interning.known(self._connection, [request.partition], anew=True):
            return self._parts(number, request.partition, request)
        return self._plan(partition_ids=[], messages={}, collections=[], blobs=[])  # it went with its person

    def _subject(self, subject: Subject) -> Plan:
        whose = (partitions.c.tenant == subject.tenant, partitions.c.user == subject.user)
        rows = {row.id: partition_of(row) for row in self._connection.execute(select(partitions).where(*whose))}
        numbers = list(rows)
        self._lay(rows)
        self._archive.tombstones.lay(self._connection, self._id, "person", person(subject), [""])
        losses = [loss for number, place in rows.items() if (loss := self._cited_elsewhere(number, place, numbers))]
        own = self._connection.execute(select(memories.c.memory_id).where(memories.c.partition_id.in_(numbers)))
        mine = own.scalars().all()
        self._losing.bury(mine)
        self._losing.touch(losses)
        self._losing.follow()
        self._losing.leave(mine)  # they go with their rows
        touched = self._losing.write()
        blobs = self._blobs(attachments.c.partition_id.in_(numbers))
        homes = self._homes([*numbers, *touched])
        self._removal.partitions(numbers)
        forgotten = self._archive.journal.forget(self._connection, numbers, None)
        self._removal.counts["journal"] += forgotten
        unnamed = self._unname(subject, numbers)
        self._journal({**{number: [] for number in numbers}, **touched})
        for number in numbers:
            here = partitions.c.id == number
            self._connection.execute(update(partitions).where(here).values(**anonymous(number)))
        return self._plan(partition_ids=numbers, messages={}, collections=homes, blobs=blobs, **unnamed)

    def _unname(self, subject: Subject, own: Collection[int]) -> dict[str, Any]:
        """Take the name of a person from what they decided about others; return what is left of it."""
        name, places = subject.user, interning.around(self._connection, subject.tenant)
        if name in {place.agent for number, place in places.items() if number not in own}:
            return {"namesake": True}
        for table, number, body in _decisions(self._connection, places, name):
            here = table.c.id == number
            self._connection.execute(update(table).where(here).values(body=body))
            self._removal.counts["actors"] += 1
        self._removal.counts["actors"] += self._archive.journal.unname(self._connection, places, name, _NAMELESS)
        return {"actors_left": deeds(self._connection, subject)}

    def _parts(self, number: int, place: Partition, request: ErasureRequest) -> Plan:
        here = messages.c.partition_id == number
        ids = list(request.message_ids)
        if request.thread is not None:
            query = select(messages.c.message_id).where(here, messages.c.thread == request.thread)
            ids += self._connection.execute(query).scalars()
        ids = sorted({*ids, *revisions(self._connection, number, ids)})
        lost = self._cut_anew(number, place, ids)
        calls = self._calls(number, ids)
        tombstones = self._archive.tombstones
        tombstones.lay(self._connection, self._id, "message", place, ids)
        tombstones.lay(self._connection, self._id, "call", place, calls)
        tombstones.lay(self._connection, self._id, "thread", place, [] if request.thread is None else [request.thread])
        self._losing.bury(request.memory_ids)
        self._losing.touch([lost])
        self._losing.follow()
        blobs = self._blobs(attachments.c.partition_id == number, attachments.c.message_id.in_(ids)) if ids else []
        touched = self._losing.write()
        touched.setdefault(number, {})
        tombstones.lay(self._connection, self._id, "memory", None, self._losing.dead)
        self._remove_messages(number, ids, calls, lost)
        if request.thread is not None:
            gone = json.dumps(request.thread)
            self._removal.rows(injections, injections.c.partition_id == number, injections.c.thread == gone)
        homes = self._homes(touched)
        for each, names in touched.items():
            records = [*names, *lost.blocks] if each == number else list(names)
            self._removal.counts["journal"] += self._archive.journal.forget(self._connection, [each], records)
            self._hush(each)
        self._journal(touched)
        return self._plan(partition_ids=[], messages={number: ids}, collections=homes, blobs=blobs)

    def _lay(self, places: Mapping[int, Partition]) -> None:
        """Mark all that goes with whole partitions."""
        for number, place in places.items():
            for kind, table, column in _GRAVES:
                ids = self._connection.execute(select(column).where(table.c.partition_id == number)).scalars().all()
                where = None if kind == "memory" else place
                self._archive.tombstones.lay(self._connection, self._id, kind, where, ids)

    def _cited_elsewhere(self, number: int, place: Partition, own: Sequence[int]) -> Lost | None:
        """Return what memories of other partitions lose with this one."""
        query = (
            select(memory_sources.c.block_id)
            .join(memories, memories.c.id == memory_sources.c.memory)
            .where(memory_sources.c.partition_id == number, memories.c.partition_id.not_in(own))
        )
        labels = set(self._connection.execute(query).scalars())
        if not labels:
            return None
        ids = self._connection.execute(select(messages.c.message_id).where(messages.c.partition_id == number)).scalars()
        said = {label: self._words(number, place, label, None) for label in labels}
        return Lost(number, frozenset(ids), dict.fromkeys(labels), said)

    def _words(self, number: int, place: Partition, label: str, only: frozenset[str] | None) -> str:
        held = self._held(number, place, label)
        return "\n".join(each.indexed_text for each in held if only is None or each.message_id in only)

    def _held(self, number: int, place: Partition, label: str) -> list[StoredMessage]:
        block = self._connection.execute(
            select(blocks).where(blocks.c.partition_id == number, blocks.c.block_id == label)
        ).one()
        here = (messages.c.partition_id == number, messages.c.thread == block.thread)
        query = select(messages).where(*here, messages.c.seq.between(block.first_seq, block.last_seq))
        return [stored(place, row) for row in self._connection.execute(query.order_by(messages.c.seq))]

    def _cut_anew(self, number: int, place: Partition, ids: Sequence[str]) -> Lost:
        """Give what is left of each block a label of its own, and put it to work: another block than the one before."""
        gone = frozenset(ids)
        labels = [block.block_id for block in self._archive_blocks(number, place, ids)]
        said = {label: self._words(number, place, label, gone) for label in labels}
        anew: dict[str, str | None] = {}
        for label in labels:
            rest = [each for each in self._held(number, place, label) if each.message_id not in gone]
            block = block_rows.new(self._connection, number, rest, self._archive.tombstones) if rest else None
            anew[label] = block.block_id if block else None
            recipes = select(work.c.recipe).where(work.c.partition_id == number, work.c.block_id == label).distinct()
            for recipe in self._connection.execute(recipes).scalars().all() if block else ():
                block_notes.await_work(self._connection, number, [block] if block else [], recipe)
                jobs.enqueue(self._connection, "summarize", number, micros(self._now))
        self._archive.tombstones.lay(self._connection, self._id, "block", place, labels)
        return Lost(number, gone, anew, said)

    def _archive_blocks(self, number: int, place: Partition, ids: Sequence[str]) -> Iterable[Block]:
        everything = block_rows.BlockFilter(None, None, None)
        return block_rows.read(self._connection, {number: place}, everything, None, ids) if ids else ()

    def _remove_messages(self, number: int, ids: Sequence[str], calls: Sequence[str], lost: Lost) -> None:
        """Delete messages and the blocks that held them, and let their threads end where they end now."""
        removal, labels = self._removal, list(lost.blocks)
        kinds: dict[HitKind, Sequence[str] | None] = {"message": ids, "block": labels}
        removal.texts(number, kinds)
        removal.vectors(number, "message", ids)
        removal.vectors(number, "block", labels)
        vectors.mark(self._connection, [vectors.Key(number, "block", label) for label in labels])
        removal.named(tool_calls, tool_calls.c.message_id, ids, tool_calls.c.partition_id == number)
        keys = [json.dumps(call) for call in calls]
        removal.named(tool_calls, tool_calls.c.call, keys, tool_calls.c.partition_id == number)
        removal.named(attachments, attachments.c.message_id, ids, attachments.c.partition_id == number)
        for table in (summaries, work, blocks):
            removal.named(table, table.c.block_id, labels, table.c.partition_id == number)
        named: set[str] = set()
        for some in chunks(ids):
            here = (messages.c.partition_id == number, messages.c.message_id.in_(some))
            named |= set(self._connection.execute(select(messages.c.thread).where(*here)).scalars())
        removal.named(messages, messages.c.message_id, ids, messages.c.partition_id == number)
        for thread in named:
            self._end_thread(number, thread)

    def _calls(self, number: int, ids: Sequence[str]) -> list[str]:
        """Return the ids of the calls that messages asked for or answer."""
        found: list[str] = []
        for some in chunks(ids):
            here = (messages.c.partition_id == number, messages.c.message_id.in_(some))
            for body in self._connection.execute(select(messages.c.body).where(*here)).scalars():
                said = json.loads(body)
                found += [call["call_id"] for call in said.get("tool_calls", ())] + [said.get("tool_call_id", "")]
        return [call for call in dict.fromkeys(found) if call]

    def _end_thread(self, number: int, thread: str) -> None:
        last = self._newest(messages.c.seq, messages, number, thread)
        here = (threads.c.partition_id == number, threads.c.thread == thread)
        if not last:
            self._removal.rows(threads, *here)
            return
        block = self._newest(blocks.c.last_seq, blocks, number, thread)
        self._connection.execute(update(threads).where(*here).values(last_seq=last, block_seq=block))

    def _newest(self, column: Any, table: Any, number: int, thread: str) -> int:
        here = (table.c.partition_id == number, table.c.thread == thread)
        return int(self._connection.execute(select(func.coalesce(func.max(column), 0)).where(*here)).scalar_one())

    def _hush(self, number: int) -> None:
        """Empty what may quote anything that was said here: reasons of jobs, warnings of receipts."""
        here = (job_rows.c.partition_id == number, job_rows.c.reason != "")
        self._connection.execute(update(job_rows).where(*here).values(reason=""))
        receipts = select(operations).where(operations.c.partition_id == number)
        for row in self._connection.execute(receipts).all():
            told = Receipt.from_json(row.receipt)
            if told.warnings:
                same = (operations.c.partition_id == number, operations.c.operation_id == row.operation_id)
                quiet = told.evolve(warnings=()).to_json()
                self._connection.execute(update(operations).where(*same).values(receipt=quiet))

    def _blobs(self, *where: Any) -> list[str]:
        return sorted(set(self._connection.execute(select(attachments.c.sha256).where(*where)).scalars()))

    def _homes(self, numbers: Iterable[int]) -> list[str]:
        here = collections.c.partition_id.in_(list(numbers))
        return sorted(set(self._connection.execute(select(collections.c.name).where(here)).scalars()))

    def _journal(self, touched: Mapping[int, object]) -> None:
        """Write what was done: to each memory that stays or leaves a stub, and to each partition."""
        done = [
            Entry(
                partition_id=number,
                time=micros(self._now),
                actor=ACTOR,
                action="erase",
                record_id=self._id,
                operation_id=self._id,
            )
            for number in touched
        ]
        self._archive.journal.add(self._connection, [*self._losing.entries, *done])
        for number in touched:
            seen = update(partitions).where(partitions.c.id == number)
            self._connection.execute(seen.values(erasures=partitions.c.erasures + 1))

    def _plan(self, **left: Any) -> Plan:
        removed = {place: count for place, count in self._removal.counts.items() if count}
        return Plan(memories=self._losing.dead, removed=removed, rederived=len(self._losing.rederived), **left)
