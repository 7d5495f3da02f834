"""Erasure in the ledger, step by step: rows, vectors, bytes.

What is asked for is written down first; each step notes in SQL that it is done, and can be repeated. So an erasure
that was stopped anywhere is finished by whoever comes next. The rows go in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update

from remegraph.errors import NotFoundError
from remegraph.failpoints import failpoint
from remegraph.models import (
    NOT_COVERED,
    ErasedPlace,
    Erasure,
    ErasureRequest,
)
from remegraph.ports import Clock, NewId
from remegraph.storage import interning
from remegraph.storage.archive import SqlArchive
from remegraph.storage.database import Database
from remegraph.storage.projection import VectorProjection
from remegraph.storage.removing import Removal
from remegraph.storage.rows import chunks, from_micros, micros
from remegraph.storage.tables import (
    erasures,
    memories,
    memory_sources,
    messages,
    partitions,
    texts,
)
from remegraph.storage.unwriting import Plan, Unwriting, deeds

__all__ = ["SqlEraser"]


class SqlEraser:
    """Erases from a ledger and what is projected from it.

    Args:
        archive: The ledger.
        projection: Its vectors.
        clock: Tells the time.
        new_id: Names erasures.
    """

    def __init__(self, archive: SqlArchive, projection: VectorProjection, clock: Clock, new_id: NewId) -> None:
        self._archive = archive
        self._database: Database = archive.database
        self._projection = projection
        self._clock = clock
        self._new_id = new_id

    def ask(self, request: ErasureRequest) -> str:
        """Write down durably what shall be erased; return the id of the erasure.

        Args:
            request: What.

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

    def run(self, erasure_id: str, *, full: bool = False) -> Erasure:
        """Do what is left of an erasure, and look whether anything is.

        Args:
            erasure_id: From `ask` or `unfinished`.
            full: On PostgreSQL, whether tables are written anew (VACUUM FULL): that locks them meanwhile.

        Raises:
            IndexOwnedError: Another process owns the embedded index: it does the rest.
            VectorIndexError: The index failed; repeat.
            SetupError: The ledger, or a file, cannot be used; repeat.
        """
        if self._row(erasure_id).stage == "ledger":
            self._erase_rows(erasure_id)
            failpoint("erase.rows_gone")
        if self._row(erasure_id).stage == "index":
            plan = Plan.of(self._row(erasure_id).body)
            found = self._projection.forget(plan.collections, plan.partition_ids, plan.memories)
            plan.index_left, plan.index_cleared = found
            self._advance(erasure_id, "files", plan.to_json())
            failpoint("erase.index_rebuilt")
        if self._row(erasure_id).stage == "files":
            if Plan.of(self._row(erasure_id).body).blobs:
                self._archive.attachments.unreferenced(remove=True)
            self._database.shred(full=full)
            failpoint("erase.files_gone")
            self._finish(erasure_id)
        return Erasure.from_json(self._row(erasure_id).body)

    # ------------------------------------------------------------------------------------------- asking

    def _check(self, connection: Connection, request: ErasureRequest) -> None:
        if subject := request.subject:
            whose = (partitions.c.tenant == subject.tenant, partitions.c.user == subject.user)
            if not connection.execute(select(partitions.c.id).where(*whose)).first() and not deeds(connection, subject):
                raise NotFoundError(f"Nothing is recorded of user {subject.user!r} of tenant {subject.tenant!r}.")
        if request.partition is None:
            return
        numbers = list(interning.known(connection, [request.partition]))
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
            if row.stage != "ledger":  # somebody else was first
                return
            request = ErasureRequest.from_json(row.body)
            self._lock(connection, request)
            failpoint("erase.begin")
            plan = Unwriting(self._archive, connection, erasure_id, self._clock()).erase(request)
            values = {"stage": "index", "body": plan.to_json()}
            connection.execute(update(erasures).where(erasures.c.erasure_id == erasure_id).values(**values))
            failpoint("erase.before_commit")
            interning.forget(connection)
        with self._database.read() as connection:  # another thread may have looked names up before the commit
            interning.forget(connection)

    def _lock(self, connection: Connection, request: ErasureRequest) -> None:
        """Lock all partitions that memories of this person, or team, may live in, or that the person decided in."""
        numbers: Iterable[int] = ()
        if request.subject:
            numbers = interning.around(connection, request.subject.tenant)
        elif request.partition:
            query = select(partitions.c.id).where(partitions.c.tenant == request.partition.tenant)
            numbers = connection.execute(query).scalars()
        self._database.lock(connection, numbers)

    # -------------------------------------------------------------------------------------------- looking

    def _finish(self, erasure_id: str) -> None:
        row = self._row(erasure_id)
        plan = Plan.of(row.body)
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
        )
        self._advance(erasure_id, "done", told.to_json())

    def _uncovered(self, plan: Plan) -> list[str]:
        found = ["its name where it acted: an agent has the same name"] if plan.namesake else []
        found += [] if plan.index_cleared else ["files of the Chroma server, until it vacuums them"]
        if not self._database.is_sqlite:
            found.append("PostgreSQL's log, and its dead rows, until VACUUM FULL")
        return found

    def _left(self, plan: Plan) -> dict[str, int]:
        """Look in every place once more."""
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
