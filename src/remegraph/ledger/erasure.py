"""Erasure in the ledger, step by step: rows, vectors, bytes.

What is asked for is written down first; each step notes in SQL that it is done, and can be repeated. So an erasure
that was stopped anywhere is finished by the next process. The rows go in one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Table, func, insert, select, update

from remegraph.errors import NotFoundError
from remegraph.failpoints import failpoint
from remegraph.ledger import blocks as block_rows
from remegraph.ledger import jobs
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.archive import Archive
from remegraph.ledger.database import Database
from remegraph.ledger.index import vectors
from remegraph.ledger.index.projection import VectorProjection
from remegraph.ledger.journal import Entry, acted_in
from remegraph.ledger.messages import revisions, stored
from remegraph.ledger.partitions import anonymous, partition_of
from remegraph.ledger.removal import ACTOR, Lost, PartitionLoss, Removal
from remegraph.ledger.rows import chunks, from_micros, micros
from remegraph.ledger.schema import (
    attachments,
    blocks,
    collections,
    endorsements,
    erasures,
    events,
    grants,
    injections,
    memories,
    memory_sources,
    messages,
    operations,
    partitions,
    summaries,
    texts,
    threads,
    tool_calls,
    work,
)
from remegraph.ledger.schema import jobs as job_rows
from remegraph.ledger.withheld import Grave, person
from remegraph.models import (
    NOT_COVERED,
    Block,
    Endorsement,
    ErasedPlace,
    Erasure,
    ErasureRequest,
    Grant,
    HitKind,
    Partition,
    Receipt,
    StoredMessage,
    Subject,
    Tenant,
)
from remegraph.ports import Clock, NewId

__all__ = ["Eraser"]

_GRAVES: tuple[tuple[Grave, Table, Column[str]], ...] = (
    ("message", messages, messages.c.message_id),
    ("block", blocks, blocks.c.block_id),
    ("memory", memories, memories.c.memory_id),
)


_NAMELESS = "erased"
"""Who decided, once that is no one's business any more."""
_DECISIONS: tuple[tuple[Table, type[Grant | Endorsement], str], ...] = (
    (grants, Grant, "actor"),
    (endorsements, Endorsement, "by"),
)


class Eraser:
    """Erases from a ledger and what is projected from it."""

    def __init__(self, archive: Archive, projection: VectorProjection, clock: Clock, new_id: NewId) -> None:
        self._archive = archive
        self._database: Database = archive.database
        self._projection = projection
        self._clock = clock
        self._new_id = new_id

    def ask(self, request: ErasureRequest) -> str:
        """Write down durably what should be erased; return the id of the erasure.

        Raises:
            NotFoundError: A person, message, memory or thread is not there.
        """
        erasure_id = self._new_id()
        with self._database.write() as connection:
            self._check(connection, request)
            connection.execute(
                insert(erasures).values(
                    erasure_id=erasure_id,
                    stage="ledger",
                    asked_at=micros(self._clock()),
                    body=request.to_json(),
                )
            )
        failpoint("erase.asked")
        return erasure_id

    def unfinished(self) -> tuple[str, ...]:
        """Return the ids of the erasures that were asked for and are not done, oldest first."""
        query = select(erasures.c.erasure_id).where(erasures.c.stage != "done").order_by(erasures.c.id)
        with self._database.read() as connection:
            return tuple(connection.execute(query).scalars())

    def receipts(self, erasure_id: str = "") -> tuple[Erasure, ...]:
        """Return the receipts of erasures, the newest first; of an unfinished one, when it was asked for and its stage.

        Args:
            erasure_id: The id of one, or its beginning; nothing: all.
        """
        mine = erasures.c.erasure_id.startswith(erasure_id, autoescape=True)
        query = select(erasures).where(mine).order_by(erasures.c.id.desc())
        with self._database.read() as connection:
            return tuple(
                Erasure.from_json(row.body)
                if row.stage == "done"
                else Erasure(erasure_id=row.erasure_id, asked_at=from_micros(row.asked_at), stage=row.stage)
                for row in connection.execute(query)
            )

    def run(self, erasure_id: str, *, full: bool = False) -> Erasure:
        """Do what is left of an erasure, and look whether anything is.

        Args:
            erasure_id: From `ask` or `unfinished`.
            full: On PostgreSQL, whether tables are rewritten (VACUUM FULL): that locks them meanwhile.

        Raises:
            IndexOwnedError: Another process owns the embedded index: it does the rest.
            VectorIndexError: The index failed; repeat.
            SetupError: The ledger, or a file, cannot be used; repeat.
        """
        if self._row(erasure_id).stage == "ledger":
            self._erase_rows(erasure_id)
            failpoint("erase.rows_gone")
        if self._row(erasure_id).stage == "index":
            plan = _Plan.of(self._row(erasure_id).body)
            found = self._projection.forget(plan.collections, plan.partition_ids, plan.memories)
            plan.index_left, plan.index_cleared = found
            self._advance(erasure_id, "files", plan.to_json())
            failpoint("erase.index_rebuilt")
        if self._row(erasure_id).stage == "files":
            if _Plan.of(self._row(erasure_id).body).blobs:
                self._archive.attachments.unreferenced(remove=True)
            not_rewritten = self._database.shred(full=full)
            failpoint("erase.files_gone")
            self._finish(erasure_id, not_rewritten)
        return Erasure.from_json(self._row(erasure_id).body)

    def rewrite(self) -> tuple[Erasure, ...]:
        """Have tables rewritten, if erasures were done without it; return their receipts, which say how it went.

        Raises:
            SetupError: The ledger cannot be used; repeat.
        """
        without = [each for each in self.receipts() if each.stage == "done" and not each.rewritten]
        if not without:
            return ()
        not_rewritten = self._database.shred(full=True)
        told = tuple(each.evolve(not_rewritten=not_rewritten) for each in without)
        for each in told:
            self._advance(each.erasure_id, "done", each.to_json())
        return told

    # ------------------------------------------------------------------------------------------- asking

    def _check(self, connection: Connection, request: ErasureRequest) -> None:
        if subject := request.subject:
            whose = (partitions.c.tenant == subject.tenant, partitions.c.user == subject.user)
            if not connection.execute(select(partitions.c.id).where(*whose)).first() and not _deeds(
                connection, subject
            ):
                raise NotFoundError(f"Nothing is recorded of user {subject.user!r} of tenant {subject.tenant!r}.")
        if request.tenant is not None:
            here = partitions.c.tenant == request.tenant.tenant
            if not connection.execute(select(partitions.c.id).where(here).limit(1)).first():
                raise NotFoundError(f"Nothing is recorded of tenant {request.tenant.tenant!r}.")
        if request.partition is None:
            return
        numbers = list(partition_rows.known(connection, [request.partition]))
        where = messages.c.partition_id.in_(numbers)
        if request.thread is not None and not _there(connection, where, messages.c.thread, [request.thread]):
            raise NotFoundError(f"There is no thread {request.thread!r} here.")
        known = _there(connection, where, messages.c.message_id, request.message_ids)
        if missing := sorted(set(request.message_ids) - known):
            raise NotFoundError(f"There is no message {', '.join(missing)} here.")
        known = _there(connection, memories.c.partition_id.in_(numbers), memories.c.memory_id, request.memory_ids)
        if missing := sorted(set(request.memory_ids) - known):
            raise NotFoundError(f"There is no memory {', '.join(missing)} here.")

    def _row(self, erasure_id: str) -> Any:
        with self._database.read() as connection:
            return connection.execute(select(erasures).where(erasures.c.erasure_id == erasure_id)).one()

    def _advance(self, erasure_id: str, stage: str, body: str) -> None:
        with self._database.write() as connection:
            here = erasures.c.erasure_id == erasure_id
            connection.execute(update(erasures).where(here).values(stage=stage, body=body))

    # ---------------------------------------------------------------------------------------------- rows

    def _erase_rows(self, erasure_id: str) -> None:
        with self._database.write() as connection:
            mine = select(erasures).where(erasures.c.erasure_id == erasure_id).with_for_update()  # or another machine's
            row = connection.execute(mine).one()
            if row.stage != "ledger":  # another process was first
                return
            request = ErasureRequest.from_json(row.body)
            self._lock(connection, request)
            failpoint("erase.begin")
            plan = _ErasureTransaction(self._archive, connection, erasure_id, self._clock()).erase(request)
            values = {"stage": "index", "body": plan.to_json()}
            connection.execute(update(erasures).where(erasures.c.erasure_id == erasure_id).values(**values))
            failpoint("erase.before_commit")
            partition_rows.forget(connection)
        with self._database.read() as connection:  # another thread may have looked names up before the commit
            partition_rows.forget(connection)

    def _lock(self, connection: Connection, request: ErasureRequest) -> None:
        """Lock all partitions that memories of this person, or team, may live in, or that the person decided in."""
        numbers: Iterable[int] = ()
        if whom := request.subject or request.tenant:
            numbers = partition_rows.around(connection, whom.tenant)
        elif request.partition:
            query = select(partitions.c.id).where(partitions.c.tenant == request.partition.tenant)
            numbers = connection.execute(query).scalars()
        self._database.lock(connection, numbers)

    # -------------------------------------------------------------------------------------------- looking

    def _finish(self, erasure_id: str, not_rewritten: str) -> None:
        row = self._row(erasure_id)
        plan = _Plan.of(row.body)
        left = self._left(plan)
        places = tuple(
            ErasedPlace(place=place, removed=plan.removed.get(place, 0), left=left.get(place, 0))
            for place in sorted({*plan.removed, *(place for place, count in left.items() if count)})
        )
        told = Erasure(
            erasure_id=erasure_id,
            asked_at=from_micros(row.asked_at),
            finished_at=self._clock(),
            stage="done",
            places=places,
            rederived=plan.rederived,
            not_covered=(*NOT_COVERED, *self._uncovered(plan)),
            not_rewritten=not_rewritten,
        )
        self._advance(erasure_id, "done", told.to_json())

    def _uncovered(self, plan: _Plan) -> list[str]:
        found = ["its name where it acted: an agent has the same name"] if plan.namesake else []
        found += [] if plan.index_cleared else ["files of the Chroma server, until it vacuums them"]
        statistics = "dead rows of PostgreSQL's statistics; before version 18 those of tables that are empty now, too"
        beside = [] if self._database.is_sqlite else ["PostgreSQL's logs, write-ahead log and archives", statistics]
        return found + beside

    def _left(self, plan: _Plan) -> dict[str, int]:
        """Check every place again."""
        with self._database.read() as connection:
            found: dict[str, int] = dict(Removal(connection).left(plan.partition_ids)) if plan.partition_ids else {}
            for number, ids in plan.messages.items():
                here = messages.c.partition_id == number
                _add(found, "messages", len(_there(connection, here, messages.c.message_id, ids)))
                texts_here = texts.c.partition_id == number
                _add(found, "full text", len(_there(connection, texts_here, texts.c.record_id, ids)))
                cited = memory_sources.c.partition_id == number
                _add(found, "memory_sources", len(_there(connection, cited, memory_sources.c.message_id, ids)))
            standing = memories.c.status != "erased"
            _add(found, "memories", len(_there(connection, standing, memories.c.memory_id, plan.memories)))
        found["index"], found["actors"] = plan.index_left, plan.actors_left
        held = self._archive.attachments.unreferenced() if plan.blobs else ()
        found["files"] = len(set(held).intersection(plan.blobs))
        return found


def _there(connection: Connection, where: Any, column: Any, names: Sequence[str]) -> set[str]:
    """Return those of the names that a column has."""
    found: set[str] = set()
    for some in chunks(names):
        found |= set(connection.execute(select(column).where(where, column.in_(some)).distinct()).scalars())
    return found


def _add(found: dict[str, int], place: str, count: int) -> None:
    found[place] = found.get(place, 0) + count


def _deeds(connection: Connection, subject: Subject) -> int:
    """Return how often the ledger still shows that a person acted or decided."""
    places = partition_rows.around(connection, subject.tenant)
    told = len(acted_in(connection, places, subject.user))
    return told + sum(1 for _ in _decisions(connection, places, subject.user))


def _decisions(connection: Connection, places: Iterable[int], name: str) -> Iterator[tuple[Table, int, str]]:
    """Yield the rows with this name as the one who decided, and their content without it."""
    for some in chunks(list(places)):
        for table, record, field in _DECISIONS:
            query = select(table.c.id, table.c.body).where(table.c.partition_id.in_(some))
            for row in connection.execute(query).all():
                told = record.from_json(row.body)
                if getattr(told, field) == name:
                    yield table, row.id, told.evolve(**{field: _NAMELESS}).to_json()


@dataclass(slots=True)
class _Plan:
    """What one erasure still has to do; in SQL, as JSON. It names records by id, and no one by name."""

    partition_ids: list[int]
    """Those that go whole."""
    messages: dict[int, list[str]]
    memories: list[str]
    collections: list[str]
    """Of the index, which are rebuilt."""
    blobs: list[str]
    removed: dict[str, int]
    rederived: int
    actors_left: int = 0
    """Decisions that still had the name after it."""
    namesake: bool = False
    """Whether an agent has the same name."""
    index_left: int = 0
    """Records that a look at the index found after it."""
    index_cleared: bool = True
    """Whether its files were ours to clear."""

    @classmethod
    def of(cls, body: str) -> _Plan:
        """Return the plan that `to_json` wrote."""
        read = json.loads(body)
        read["messages"] = {int(number): ids for number, ids in read["messages"].items()}
        return cls(**read)

    def to_json(self) -> str:
        """Return it as it is kept in SQL."""
        return json.dumps(asdict(self))


class _ErasureTransaction:
    """Takes the rows of one erasure out.

    Args:
        connection: A write transaction that has locked the partitions.
    """

    def __init__(self, archive: Archive, connection: Connection, erasure_id: str, now: datetime) -> None:
        self._archive = archive
        self._connection = connection
        self._id = erasure_id
        self._now = now
        self._removal = Removal(connection)
        self._loss = PartitionLoss(self._removal, now, erasure_id)

    def erase(self, request: ErasureRequest) -> _Plan:
        """Erase; return what is left to do beyond the ledger."""
        if request.subject is not None:
            return self._subject(request.subject)
        if request.tenant is not None:
            return self._tenant(request.tenant)
        assert request.partition is not None
        for number in partition_rows.known(self._connection, [request.partition], fresh=True):
            return self._parts(number, request.partition, request)
        return self._plan(partition_ids=[], messages={}, collections=[], blobs=[])  # it went with its person

    def _subject(self, subject: Subject) -> _Plan:
        whose = (partitions.c.tenant == subject.tenant, partitions.c.user == subject.user)
        return self._whole(whose, {person(subject)}, partial(self._unname, subject))

    def _tenant(self, tenant: Tenant) -> _Plan:
        return self._whole((partitions.c.tenant == tenant.tenant,), set(), partial(self._unname_all, tenant))

    def _whole(
        self,
        whose: Sequence[ColumnElement[bool]],
        people: set[Partition],
        unname: Callable[[Sequence[int]], dict[str, Any]],
    ) -> _Plan:
        """Erase partitions whole, with the names of people."""
        rows = {row.id: partition_of(row) for row in self._connection.execute(select(partitions).where(*whose))}
        numbers = list(rows)
        self._lay(rows)
        for each in people | {person(place) for place in rows.values()}:
            self._archive.tombstones.lay(self._connection, self._id, "person", each, [""])
        losses = [loss for number, place in rows.items() if (loss := self._cited_elsewhere(number, place, numbers))]
        own = self._connection.execute(select(memories.c.memory_id).where(memories.c.partition_id.in_(numbers)))
        mine = own.scalars().all()
        self._loss.bury(mine)
        self._loss.touch(losses)
        self._loss.follow()
        self._loss.leave(mine)  # they go with their rows
        touched = self._loss.write()
        blobs = self._blobs(attachments.c.partition_id.in_(numbers))
        homes = self._homes([*numbers, *touched])
        self._removal.partitions(numbers)
        forgotten = self._archive.journal.forget(self._connection, numbers, None)
        self._removal.counts["journal"] += forgotten
        unnamed = unname(numbers)
        self._journal({**{number: [] for number in numbers}, **touched})
        for number in numbers:
            here = partitions.c.id == number
            self._connection.execute(update(partitions).where(here).values(**anonymous(number)))
        return self._plan(partition_ids=numbers, messages={}, collections=homes, blobs=blobs, **unnamed)

    def _unname_all(self, tenant: Tenant, own: Sequence[int]) -> dict[str, Any]:
        """Remove the names of actors from the journals of a tenant, and those of its users from nameless ones."""
        places = partition_rows.around(self._connection, tenant.tenant)
        users, nameless = {place.user for place in places.values()}, list(places.keys() - set(own))
        acted: set[str] = set()
        for some in chunks(nameless):
            query = select(events.c.actor).where(events.c.partition_id.in_(some)).distinct()
            acted |= set(self._connection.execute(query).scalars())
        unname = partial(self._archive.journal.unname, self._connection)
        self._removal.counts["actors"] += unname(own, None, _NAMELESS)
        self._removal.counts["actors"] += sum(unname(nameless, name, _NAMELESS) for name in sorted(acted & users))
        return {}

    def _unname(self, subject: Subject, own: Collection[int]) -> dict[str, Any]:
        """Take the name of a person from what they decided about others; return what is left of it."""
        name, places = subject.user, partition_rows.around(self._connection, subject.tenant)
        if name in {place.agent for number, place in places.items() if number not in own}:
            return {"namesake": True}
        for table, number, body in _decisions(self._connection, places, name):
            here = table.c.id == number
            self._connection.execute(update(table).where(here).values(body=body))
            self._removal.counts["actors"] += 1
        self._removal.counts["actors"] += self._archive.journal.unname(self._connection, places, name, _NAMELESS)
        return {"actors_left": _deeds(self._connection, subject)}

    def _parts(self, number: int, place: Partition, request: ErasureRequest) -> _Plan:
        here = messages.c.partition_id == number
        ids = list(request.message_ids)
        if request.thread is not None:
            query = select(messages.c.message_id).where(here, messages.c.thread == request.thread)
            ids += self._connection.execute(query).scalars()
        ids = sorted({*ids, *revisions(self._connection, number, ids)})
        lost = self._recut(number, place, ids)
        calls = self._calls(number, ids)
        tombstones = self._archive.tombstones
        tombstones.lay(self._connection, self._id, "message", place, ids)
        tombstones.lay(self._connection, self._id, "call", place, calls)
        tombstones.lay(self._connection, self._id, "thread", place, [] if request.thread is None else [request.thread])
        self._loss.bury(request.memory_ids)
        self._loss.touch([lost])
        self._loss.follow()
        blobs = self._blobs(attachments.c.partition_id == number, attachments.c.message_id.in_(ids)) if ids else []
        touched = self._loss.write()
        touched.setdefault(number, {})
        tombstones.lay(self._connection, self._id, "memory", None, self._loss.dead)
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

    def _recut(self, number: int, place: Partition, ids: Sequence[str]) -> Lost:
        """Give what is left of each block a label of its own, and put it to work: another block than the one before."""
        gone = frozenset(ids)
        labels = [block.block_id for block in self._archive_blocks(number, place, ids)]
        said = {label: self._words(number, place, label, gone) for label in labels}
        relabelled: dict[str, str | None] = {}
        for label in labels:
            rest = [each for each in self._held(number, place, label) if each.message_id not in gone]
            block = block_rows.new(self._connection, number, rest, self._archive.tombstones) if rest else None
            relabelled[label] = block.block_id if block else None
            recipes = select(work.c.recipe).where(work.c.partition_id == number, work.c.block_id == label).distinct()
            for recipe in self._connection.execute(recipes).scalars().all() if block else ():
                jobs.await_work(self._connection, number, [block] if block else [], recipe)
                jobs.enqueue(self._connection, {"summarize": micros(self._now)}, number)
        self._archive.tombstones.lay(self._connection, self._id, "block", place, labels)
        return Lost(number, gone, relabelled, said)

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
        left = select(func.coalesce(func.sum(func.length(messages.c.body)), 0)).where(messages.c.partition_id == number)
        files = select(func.coalesce(func.sum(attachments.c.size), 0)).where(attachments.c.partition_id == number)
        stored_now = left.scalar_subquery() + files.scalar_subquery()
        self._connection.execute(update(partitions).where(partitions.c.id == number).values(stored=stored_now))

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
        self._archive.journal.add(self._connection, [*self._loss.entries, *done])
        for number in touched:
            seen = update(partitions).where(partitions.c.id == number)
            self._connection.execute(seen.values(erasures=partitions.c.erasures + 1))

    def _plan(self, **left: Any) -> _Plan:
        removed = {place: count for place, count in self._removal.counts.items() if count}
        return _Plan(memories=self._loss.dead, removed=removed, rederived=len(self._loss.rederived), **left)
