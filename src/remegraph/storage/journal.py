"""What every change leaves behind: a row of the journal, chained to the row before it.

Each event carries an HMAC of itself and of the chain before it in its partition; the partition's row keeps the newest
one. Whoever changes, moves or drops an event without the key breaks the chain there. Digests are salted, so that what an
event is about cannot be guessed from it.
"""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from secrets import token_hex
from typing import Any, Self

from sqlalchemy import Connection, bindparam, delete, exists, insert, or_, select, update

from remegraph.storage.database import EVERYBODY, Database, insert_rows
from remegraph.storage.rows import chunks, digest
from remegraph.storage.tables import events, partitions, seals
from remegraph.telemetry import event

__all__ = ["Entry", "Journal", "acted_in", "origin"]

_log = logging.getLogger(__name__)

_PAGE = 500

# Said once: building a statement costs as much as running it.
_HEAD = select(partitions.c.journal_head).where(partitions.c.id == bindparam("number"))
_SET_HEAD = update(partitions).where(partitions.c.id == bindparam("number")).values(journal_head=bindparam("head"))


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the journal, before it is sealed."""

    partition_id: int
    time: int
    actor: str
    action: str
    record_id: str
    operation_id: str
    version: int = 0
    body: str = ""
    """What the event is about; only its digest is kept."""
    reason: str = ""


class Journal:
    """Writes events so that none can be changed unseen.

    Args:
        key: Whoever has it can write a chain that fits.
        salt: Of this ledger's digests.
    """

    def __init__(self, key: bytes, salt: str) -> None:
        self._key = key
        self._salt = salt.encode()
        self.ours = True
        """Whether this key has sealed what is there."""

    @classmethod
    def open(cls, database: Database, key: bytes) -> Self:
        """Return the journal of a ledger; events of an earlier release are chained now.

        Args:
            database: An open database.
            key: Secret of whoever runs it.
        """
        with database.read() as connection:
            found = cls._settled(connection, key)
        if found is None:
            with database.write([EVERYBODY]) as connection:
                found = cls._settled(connection, key) or cls._begun(database, connection, key)
        if not found.ours:
            _log.warning(
                "The journal is sealed with another key than this one: put that back, or seal it anew.",
                extra=event("journal.key"),
            )
        return found

    def seal_anew(self, database: Database) -> None:
        """Chain all events with this key. Heads that were exported before fit no more.

        Args:
            database: Of this journal.
        """
        with database.write([EVERYBODY]) as connection:
            self._seal(database, connection)
        self.ours = True

    def add(self, connection: Connection, entries: Sequence[Entry]) -> None:
        """Write events, in this order.

        Args:
            connection: A write transaction that has locked their partitions.
            entries: The events.
        """
        heads: dict[int, str] = {}
        rows: list[dict[str, Any]] = []
        for entry in entries:
            number = entry.partition_id
            if number not in heads:
                heads[number] = connection.execute(_HEAD, {"number": number}).scalar_one() or origin(number)
            row = {name: getattr(entry, name) for name in _GIVEN}
            row["digest"] = self.digest(entry.body)
            heads[number] = row["chain"] = self.chained(heads[number], row)
            rows.append(row)
        if rows:
            insert_rows(connection, events, rows)
        for number, head in heads.items():
            connection.execute(_SET_HEAD, {"number": number, "head": head})

    def forget(self, connection: Connection, partition_ids: Sequence[int], record_ids: Sequence[str] | None) -> int:
        """Take digests and reasons from events, and chain their partitions anew; return how many events that were.

        Who did what to which record, and when, stays; by a digest a guess of the words could be confirmed.

        Args:
            connection: A write transaction that has locked the partitions.
            partition_ids: Where.
            record_ids: Of these records; none: of all.
        """
        here = (events.c.partition_id.in_(partition_ids), or_(events.c.digest != "", events.c.reason != ""))
        parts = [()] if record_ids is None else [(events.c.record_id.in_(some),) for some in chunks(record_ids)]
        emptied = update(events).values(digest="", reason="")
        count = sum(connection.execute(emptied.where(*here, *part)).rowcount for part in parts)
        for number in partition_ids if count else ():
            self._chain_anew(connection, number, salted=True)
        return count

    def unname(self, connection: Connection, partition_ids: Collection[int], name: str, instead: str) -> int:
        """Take the name of whoever acted from events, and chain their partitions anew; return how many events that were.

        Args:
            connection: A write transaction that has locked the partitions.
            partition_ids: Where.
            name: The name.
            instead: What stands there from now on.
        """
        count = 0
        for number in acted_in(connection, partition_ids, name):
            mine = (events.c.partition_id == number, events.c.actor == name)
            connection.execute(update(events).where(*mine, events.c.version == 0).values(digest=""))  # it told the name
            count += connection.execute(update(events).where(*mine).values(actor=instead)).rowcount
            self._chain_anew(connection, number, salted=True)
        return count

    def digest(self, body: str) -> str:
        """Return what an event keeps of a body."""
        return self._salted(digest(body))

    def chained(self, previous: str, row: Mapping[str, Any]) -> str:
        """Return the chain that ends with an event.

        Args:
            previous: The chain before it; that of the first one: `origin`.
            row: The event's columns.
        """
        return self.sealed(previous, json.dumps([row[name] for name in _TOLD]))

    def sealed(self, previous: str, line: str) -> str:
        """Return the HMAC of a line and of what was sealed before it."""
        return hmac.digest(self._key, f"{previous}\n{line}".encode(), sha256).hex()

    def _salted(self, plain: str) -> str:
        return hmac.digest(self._salt, plain.encode(), sha256).hex()

    @classmethod
    def _settled(cls, connection: Connection, key: bytes) -> Self | None:
        """Return the journal as it was sealed; none where nothing is, or only an empty one with another key."""
        found = connection.execute(select(seals)).first()
        if found is None:
            return None
        journal = cls(key, found.salt)
        journal.ours = found.fingerprint == journal._fingerprint()
        return journal if journal.ours or connection.execute(select(exists(select(events.c.id)))).scalar() else None

    @classmethod
    def _begun(cls, database: Database, connection: Connection, key: bytes) -> Self:
        salted = connection.execute(select(seals.c.salt)).scalar()
        journal = cls(key, salted or token_hex(16))
        journal._seal(database, connection, salted=salted is not None)
        return journal

    def _seal(self, database: Database, connection: Connection, *, salted: bool = True) -> None:
        numbers = connection.execute(select(partitions.c.id)).scalars().all()
        database.lock(connection, numbers)
        for number in numbers:
            self._chain_anew(connection, number, salted=salted)
        connection.execute(delete(seals))
        connection.execute(insert(seals).values(id=1, salt=self._salt.decode(), fingerprint=self._fingerprint()))

    def _fingerprint(self) -> str:
        return hmac.digest(self._key, b"fingerprint", sha256).hex()

    def _chain_anew(self, connection: Connection, partition_id: int, *, salted: bool) -> None:
        """Chain the events of a partition; those of an earlier release have no salt yet."""
        change = update(events).where(events.c.id == bindparam("at"))
        change = change.values(digest=bindparam("new_digest"), chain=bindparam("new_chain"))
        head, after = origin(partition_id), 0
        query = select(events).where(events.c.partition_id == partition_id).order_by(events.c.id).limit(_PAGE)
        while page := connection.execute(query.where(events.c.id > after)).all():
            rows = []
            for found in page:
                row = found._asdict()
                if not salted:
                    row["digest"] = self._salted(row["digest"])
                head = self.chained(head, row)
                rows.append({"at": row["id"], "new_digest": row["digest"], "new_chain": head})
            connection.execute(change, rows)
            after = page[-1].id
        if after:
            connection.execute(_SET_HEAD, {"number": partition_id, "head": head})


_GIVEN = tuple(each.name for each in fields(Entry) if each.name != "body")

_TOLD = ("time", "actor", "action", "record_id", "version", "operation_id", "digest", "reason")
"""The columns that the chain covers, in its order."""


def acted_in(connection: Connection, partition_ids: Collection[int], name: str) -> list[int]:
    """Return the partitions in whose journal this name acted."""
    found = connection.execute(select(events.c.partition_id).where(events.c.actor == name).distinct()).scalars()
    return sorted(set(found).intersection(partition_ids))


def origin(partition_id: int) -> str:
    """Return what the first event of a partition is chained to: chains of two partitions cannot be exchanged."""
    return f"partition {partition_id}"
