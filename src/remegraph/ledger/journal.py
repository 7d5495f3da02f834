"""What every change leaves behind: a row of the journal, chained to the row before it.

Each event carries an HMAC of itself and of the chain before it in its partition; the partition's row keeps the newest
one. Changing, moving or dropping an event without the key breaks the chain there. Digests are salted, so that what an
event is about cannot be guessed from it.

The keys are a file in the home that only its owner reads, unless the settings give them. A ring holds the newest key and
those before it: which of them seals, the ledger says; all of them verify.
"""

from __future__ import annotations

import hmac
import json
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple, Self
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, bindparam, delete, exists, insert, or_, select, update

from remegraph.errors import JournalKeyError, SetupError
from remegraph.ledger.database import EVERYBODY, Database
from remegraph.ledger.rows import chunks, digest, insert_rows
from remegraph.ledger.schema import events, partitions, seals
from remegraph.telemetry import event

__all__ = [
    "HEAD",
    "KEY_FILE",
    "Entry",
    "Heads",
    "Journal",
    "KeyRing",
    "Walk",
    "acted_in",
    "add_key",
    "heads_of",
    "keys_in",
    "new_key",
    "origin",
]


_log = logging.getLogger(__name__)

_PAGE = 500

# Said once: building a statement costs as much as running it.
_SEALING = select(seals.c.fingerprint)
HEAD: Sequence[ColumnElement[Any]] = (
    partitions.c.id.label("number"),
    partitions.c.journal_head,
    _SEALING.scalar_subquery().label("sealing"),
)
"""The columns of `heads_of`, to read along with the row of a partition."""

_HEADS = select(*HEAD).where(partitions.c.id.in_(bindparam("numbers", expanding=True)))
_SET_HEAD = update(partitions).where(partitions.c.id == bindparam("number")).values(journal_head=bindparam("head"))


class Heads(NamedTuple):
    """Where the journals of locked partitions go on, and the key that seals."""

    sealing: str
    chains: Mapping[int, str]


def heads_of(rows: Sequence[Any]) -> Heads:
    """Return the heads of partitions, from their rows with the columns `HEAD`."""
    chains = {row.number: row.journal_head or origin(row.number) for row in rows}
    return Heads(rows[0].sealing if rows else "", chains)


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
        ring: The keys given, newest first: anyone with one can write a chain that fits.
        sealing: Fingerprint of the key that seals; the newest unless given.
    """

    def __init__(self, ring: Sequence[bytes], salt: str, sealing: str = "") -> None:
        self._keys = {_fingerprint(key): key for key in ring or [token_hex().encode()]}  # without a key, none fits
        self._salt = salt.encode()
        self._sealing = sealing or next(iter(self._keys))
        self.again: Callable[[], Sequence[bytes]] = tuple
        """Reads the keys again, should another process have changed the one that seals."""

    @property
    def ours(self) -> bool:
        """Whether the key that seals is at hand, as far as is known."""
        return self._sealing in self._keys

    @property
    def newest_seals(self) -> bool:
        """Whether no key at hand is newer than the one that seals, as far as is known."""
        return self._sealing == next(iter(self._keys))

    @classmethod
    def open(cls, database: Database, ring: KeyRing) -> Self:
        """Return the journal of a ledger; events of an earlier release are chained now.

        Where the key that seals it is not at hand, nothing but what follows from the ledger can be written.

        Args:
            ring: Keys of the process.

        Raises:
            JournalKeyError: It is not sealed yet, and a key must be given.
        """
        with database.read() as connection:
            found = cls._settled(connection, ring.keys)
        if found is None:
            keys = ring.keys or (ring.first(),)
            with database.write([EVERYBODY]) as connection:
                found = cls._settled(connection, keys) or cls._begun(database, connection, keys)
        found.again = ring.again
        if not found.ours:
            error = _not_ours()
            database.refuse(error)
            _log.warning("Memory can be read, and not written: %s", error, extra=event("journal.key", error))
        return found

    def seal(self, database: Database, entry: Entry, *, despite: bool) -> None:
        """Seal from now on with the newest key at hand.

        What older keys at hand have sealed stays as it is. What no key fits, or what was changed, can be sealed again with
        the newest; then each partition says so for ever. Heads that were exported before fit no more there.

        Args:
            entry: What each partition says of it; its partition is left open.
            despite: Whether what does not fit is sealed, too.
        """
        newest = next(iter(self._keys))
        with database.write([EVERYBODY]) as connection:
            self._lock_all(database, connection)
            if despite:
                for number in _numbers(connection):
                    self._chain_anew(connection, number, salted=True, key=newest)
            self._salt = self._salt or token_hex(16).encode()  # the row may be gone
            self._note(connection, newest)
            told = connection.execute(select(events.c.partition_id).distinct()).scalars().all()
            self.add(connection, [replace(entry, partition_id=number) for number in told])
        self._sealing = newest
        database.refuse(None)

    def add(self, connection: Connection, entries: Sequence[Entry], heads: Heads | None = None) -> None:
        """Write events, in this order.

        Args:
            connection: A write transaction that has locked their partitions.
            heads: Read since, and before any other event was written.

        Raises:
            JournalKeyError: Another process has changed the key since, and the new one is not at hand.
        """
        if not entries:
            return
        numbers = {entry.partition_id for entry in entries}
        if heads is None:
            heads = heads_of(connection.execute(_HEADS, {"numbers": list(numbers)}).all())
        chains = {number: heads.chains[number] for number in numbers}
        rows: list[dict[str, Any]] = []
        for entry in entries:
            number = entry.partition_id
            row = {name: getattr(entry, name) for name in _GIVEN}
            row["digest"] = self.digest(entry.body)
            chains[number] = row["chain"] = self._chained(chains[number], row, heads.sealing)
            rows.append(row)
        self._sealing = heads.sealing
        insert_rows(connection, events, rows)
        connection.execute(_SET_HEAD, [{"number": number, "head": head} for number, head in chains.items()])

    def forget(self, connection: Connection, partition_ids: Sequence[int], record_ids: Sequence[str] | None) -> int:
        """Take digests and reasons from events, and chain their partitions again; return how many events that were.

        Who did what to which record, and when, stays; by a digest a guess of the words could be confirmed.

        Args:
            connection: A write transaction that has locked the partitions.
            record_ids: Of these records; none: of all.
        """
        here = (events.c.partition_id.in_(partition_ids), or_(events.c.digest != "", events.c.reason != ""))
        parts = [()] if record_ids is None else [(events.c.record_id.in_(some),) for some in chunks(record_ids)]
        emptied = update(events).values(digest="", reason="")
        count = sum(connection.execute(emptied.where(*here, *part)).rowcount for part in parts)
        self._sealing = connection.execute(_SEALING).scalar_one()
        for number in partition_ids if count else ():
            self._chain_anew(connection, number, salted=True, key=self._sealing)
        return count

    def unname(self, connection: Connection, partition_ids: Collection[int], name: str | None, instead: str) -> int:
        """Remove an actor's name from events, and chain their partitions again; return how many events that were.

        Args:
            connection: A write transaction that has locked the partitions.
            name: Who acted; none: any actor.
            instead: What replaces it.
        """
        count = 0
        self._sealing = connection.execute(_SEALING).scalar_one()
        for number in acted_in(connection, partition_ids, name):
            mine = (
                events.c.partition_id == number,
                events.c.actor == name if name is not None else events.c.actor != instead,
            )
            connection.execute(
                update(events).where(*mine, events.c.version == 0).values(digest="")
            )  # it depends on the name
            count += connection.execute(update(events).where(*mine).values(actor=instead)).rowcount
            self._chain_anew(connection, number, salted=True, key=self._sealing)
        return count

    def digest(self, body: str) -> str:
        """Return what an event keeps of a body."""
        return self._salted(digest(body))

    def seals(self, previous: Sequence[str], line: str) -> tuple[str, ...]:
        """Return the HMACs of a line and of what was sealed before it, by each key at hand, the one that seals first.

        Args:
            previous: Those before it, in the same order; none before the first line.
        """
        before = previous or [""] * len(self._keys)
        return tuple(_hmac(key, f"{seal}\n{line}") for key, seal in zip(self._sealing_first(), before, strict=True))

    def marks(self, line: str) -> tuple[str, ...]:
        """Return the marks of what was erased, by each key given, the one that seals first."""
        return tuple(_hmac(key, f"tombstone\n{line}") for key in self._sealing_first())

    def _sealing_first(self) -> list[bytes]:
        return [self._keys[name] for name in sorted(self._keys, key=self._sealing.__ne__)]

    def walk(self) -> Walk:
        """Return what follows the chain of a partition."""
        return Walk([*reversed(self._keys.values())])

    def _chained(self, previous: str, row: Mapping[str, Any], key: str) -> str:
        if key not in self._keys:
            self._keys = {_fingerprint(each): each for each in self.again()} | self._keys
        if key not in self._keys:
            raise _not_ours()
        return _hmac(self._keys[key], f"{previous}\n{_line(row)}")

    def _salted(self, plain: str) -> str:
        return hmac.digest(self._salt, plain.encode(), sha256).hex()

    @classmethod
    def _settled(cls, connection: Connection, ring: Sequence[bytes]) -> Self | None:
        """Return the journal as it was sealed; none where nothing is, or only an empty one with another key.

        A chain whose seal is gone was still sealed: to take it for one of an earlier release would be to vouch for
        whatever it says.
        """
        found = connection.execute(select(seals)).first()
        chained = connection.execute(select(exists(select(events.c.id).where(events.c.chain != "")))).scalar()
        if found is None:
            return cls(ring, "", "gone") if chained else None
        journal = cls(ring, found.salt, found.fingerprint)
        return journal if journal.ours or chained else None

    @classmethod
    def _begun(cls, database: Database, connection: Connection, ring: Sequence[bytes]) -> Self:
        salted = connection.execute(select(seals.c.salt)).scalar()
        journal = cls(ring, salted or token_hex(16))
        journal._lock_all(database, connection)
        for number in _numbers(connection):
            journal._chain_anew(connection, number, salted=salted is not None, key=journal._sealing)
        journal._note(connection, journal._sealing)
        return journal

    def _note(self, connection: Connection, fingerprint: str) -> None:
        """Say in the ledger which key seals from now on."""
        connection.execute(delete(seals))
        connection.execute(insert(seals).values(id=1, salt=self._salt.decode(), fingerprint=fingerprint))

    def _lock_all(self, database: Database, connection: Connection) -> None:
        """Let no event be written meanwhile."""
        database.lock(connection, _numbers(connection))

    def _chain_anew(self, connection: Connection, partition_id: int, *, salted: bool, key: str) -> None:
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
                head = self._chained(head, row, key)
                rows.append({"at": row["id"], "new_digest": row["digest"], "new_chain": head})
            connection.execute(change, rows)
            after = page[-1].id
        if after:
            connection.execute(_SET_HEAD, {"number": partition_id, "head": head})


class Walk:
    """Follows a chain, event by event: a key that seals gives way to a newer one, and never to an older.

    Args:
        keys: Oldest first.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = keys

    def fits(self, previous: str, row: Mapping[str, Any]) -> bool:
        """Return whether an event has the chain that it must have after the chain before it.

        Args:
            previous: The chain before it; that of the first one: `origin`.
        """
        line = f"{previous}\n{_line(row)}"
        for at, key in enumerate(self._keys):
            if _hmac(key, line) == row["chain"]:
                self._keys = self._keys[at:]
                return True
        return False


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps([row[name] for name in _TOLD])


def _hmac(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), sha256).hex()


def _not_ours() -> JournalKeyError:
    return JournalKeyError("The journal of this ledger is sealed with another key than those at hand.")


def _fingerprint(key: bytes) -> str:
    return _hmac(key, "fingerprint")


def _numbers(connection: Connection) -> Sequence[int]:
    return connection.execute(select(partitions.c.id)).scalars().all()


_GIVEN = tuple(each.name for each in fields(Entry) if each.name != "body")

_TOLD = ("time", "actor", "action", "record_id", "version", "operation_id", "digest", "reason")
"""The columns that the chain covers, in its order."""


def acted_in(connection: Connection, partition_ids: Collection[int], name: str | None) -> list[int]:
    """Return the partitions in whose journal this name acted; without a name: all of them."""
    if name is None:
        return sorted(partition_ids)
    found = connection.execute(select(events.c.partition_id).where(events.c.actor == name).distinct()).scalars()
    return sorted(set(found).intersection(partition_ids))


def origin(partition_id: int) -> str:
    """Return what the first event of a partition is chained to: chains of two partitions cannot be exchanged."""
    return f"partition {partition_id}"


# ------------------------------------------------------------------------------------------------------- keys


KEY_FILE = "journal.key"


class KeyRing:
    """The keys at hand.

    Args:
        keys: Newest first; none where no one gave one.
        first: Makes the first key of a journal that is not sealed yet, where none is at hand.
        again: Reads the keys again, where that may bring others.

    Raises:
        JournalKeyError: By `first`, where a key must not be made in silence.
    """

    def __init__(
        self,
        keys: Sequence[bytes],
        first: Callable[[], bytes] | None = None,
        again: Callable[[], Sequence[bytes]] = tuple,
    ) -> None:
        self.keys = tuple(dict.fromkeys(keys))
        self.again = again
        self._first = first or none_given

    def first(self) -> bytes:
        """Return the key that a journal begins with."""
        return self.keys[0] if self.keys else self._first()


def none_given() -> bytes:
    """Refuse to make a key.

    Raises:
        JournalKeyError: Always.
    """
    raise JournalKeyError(
        "Other processes may share this ledger, and no key of its journal is given.",
        "Make one with `remegraph admin key make`, and give it to all of them: as REMEGRAPH_JOURNAL_KEY, or as the file "
        f"{KEY_FILE} in the home of each.",
    )


def new_key() -> str:
    """Return a key that no one has."""
    return token_hex(32)


def keys_in(home: Path) -> tuple[bytes, ...]:
    """Return the keys of a home, newest first; none where there is no file.

    Raises:
        SetupError: The file cannot be read.
    """
    written = _read(home)
    lines = [line for line in written.split(b"\n") if line]
    by_hand = [lines[-1] + b"\n"] if lines and written.endswith(b"\n") else []  # earlier releases took all of a file
    return (*lines, *by_hand)


def add_key(home: Path, *, first: bool = False) -> bytes:
    """Put a new key before those of a home; return the newest, which another process may have made.

    Args:
        home: The folder, which is made where it is missing.
        first: Leave the file as it is where there is one.

    Raises:
        SetupError: The file cannot be written.
    """
    known, key = keys_in(home), new_key()
    if known and first:
        return known[0]
    path = home / KEY_FILE
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{uuid4().hex}")
        _write(draft, b"\n".join([key.encode(), *filter(None, [_read(home)])]))
        try:
            if known:
                draft.replace(path)
            else:
                os.link(draft, path)
        except FileExistsError:  # another process was first
            pass
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise _unusable(home, error) from error
    return keys_in(home)[0]


def _read(home: Path) -> bytes:
    try:
        return (home / KEY_FILE).read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _unusable(home, error) from error


def _write(path: Path, text: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _unusable(home: Path, error: OSError) -> SetupError:
    return SetupError(
        f"The key of the journal, {home / KEY_FILE}, cannot be used ({error}).",
        "Make its folder writable, or give the key as REMEGRAPH_JOURNAL_KEY.",
    )
