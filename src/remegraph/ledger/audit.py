"""The journal for those who audit it: read in its order, checked link by link, and exported with heads.

Each partition is a chain of its own. The head of an export says how many events it holds and where their chain begins and
ends, and seals their exact lines: given the head, nothing in the file can be changed or left out unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, and_, exists, func, insert, select

from remegraph.errors import FileFormatError
from remegraph.ledger import memories as memory_rows
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.database import Database
from remegraph.ledger.journal import Entry, Journal, origin
from remegraph.ledger.rows import from_micros, micros
from remegraph.ledger.schema import events, injections, memories, partitions, topics, versions
from remegraph.ledger.withheld import Tombstones
from remegraph.models import AuditEntry, AuditHead, Event, Memory, Mismatch, Partition, Shown

__all__ = ["AuditTrail", "check_export", "entries", "event_of", "export", "read_events", "read_heads"]

_PAGE = 500
_LAST = (1 << 63) - 1

_WHERE = "journal"
_SEAL = "seal_journal"
_DESPITE = "seal_journal_despite"
"""The event of a seal over what does not fit: it stays where no one can take it away unseen."""

# An event, and the version that came of it as far as it is kept.
_EVENTS = (
    select(events, versions.c.body)
    .outerjoin(memories, and_(memories.c.memory_id == events.c.record_id, events.c.version > 0))
    .outerjoin(versions, and_(versions.c.memory == memories.c.id, versions.c.version == events.c.version))
    .order_by(events.c.id)
    .limit(_PAGE)
)

_HEADS = (
    select(memories, topics.c.type, topics.c.target, versions.c.body.label("committed"))
    .join(topics, topics.c.id == memories.c.topic_id)
    .outerjoin(versions, and_(versions.c.memory == memories.c.id, versions.c.version == memories.c.version))
    .order_by(memories.c.id)
    .limit(_PAGE)
)


class AuditTrail:
    """Reads and checks the journal of a ledger."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self._database = database
        self._journal = journal

    def pages(
        self, partition: Partition, since: datetime | None, until: datetime | None
    ) -> Iterator[Sequence[AuditEntry]]:
        """Yield the events of a partition in their order, without gaps.

        Args:
            since: From the first event of this time or later on.
            until: To the last event of this time or earlier.
        """
        number = self._number(partition)
        if number is None:
            return
        first, last = self._bounds(number, since, until)
        with self._database.read() as connection:
            previous = _chain_before(connection, number, first)
        for page in self._rows(number, first, last):
            found: list[AuditEntry] = []
            for row in page:
                found.append(_entry(row, partition, previous))
                previous = row.chain
            yield found

    def walk(self) -> Callable[[str, Event], bool]:
        """Return a check that says, event by event of a partition, whether it fits the chain before it."""
        walk = self._journal.walk()
        return lambda previous, event: walk.fits(previous, {**dict(event), "time": micros(event.time)})

    def seals(self, previous: Sequence[str], line: str) -> tuple[str, ...]:
        """Return the seals of a line and of all lines before it, by each key at hand, the one that seals first.

        Args:
            previous: The seals of those before it; none before the first line.
        """
        return self._journal.seals(previous, line)

    def differences(self, partition: Partition) -> Iterator[Mismatch]:
        """Yield where the chain of a partition is broken, and which versions are not what was committed."""
        number = self._number(partition)
        if number is None:
            return
        if not self._journal.ours:
            yield _mismatch("", "it is sealed with another key than this one, so it cannot be checked")
            return
        with self._database.read() as connection:
            head = connection.execute(select(partitions.c.journal_head).where(partitions.c.id == number)).scalar_one()
            last = connection.execute(select(func.max(events.c.id)).where(events.c.partition_id == number)).scalar()
        previous, walk = origin(number), self._journal.walk()
        unfit: list[int] = []
        fitted = False  # anything since a key began to seal
        for page in self._rows(number, 0, last or 0):
            for row in page:
                fits = walk.fits(previous, row._asdict())
                if row.action == _SEAL:
                    yield from _unfit(unfit, None if fitted else from_micros(row.time))
                    unfit, fitted = [], False
                fitted = fitted or fits
                unfit += [] if fits else [row.id]
                if row.body and self._journal.digest(row.body) != row.digest:
                    yield _mismatch(row.id, f"version {row.version} of {row.record_id} is not what was committed")
                previous = row.chain
        yield from _unfit(unfit, None)
        if (head or origin(number)) != previous:
            yield _mismatch("", "its newest events were taken away, or its head was changed")

    def renamed(self) -> Iterator[Mismatch]:
        """Yield the partitions that were given another name: what they hold would be another's."""
        with self._database.read() as connection:
            for number in partition_rows.renamed(connection):
                problem = "its name was changed: what it holds is not found under the one that it had"
                yield Mismatch(where="partitions", record_id=str(number), problem=problem)

    def misstated(self, partition: Partition) -> Iterator[Mismatch]:
        """Yield the memories of a partition whose row says something else than their newest version."""
        number, after = self._number(partition), 0
        while True:
            with self._database.read() as connection:
                page = connection.execute(_HEADS.where(memories.c.partition_id == number, memories.c.id > after)).all()
            if not page:
                return
            for row in page:
                if problem := _wrong(row, partition):
                    yield Mismatch(where="memories", record_id=row.memory_id, problem=problem)
            after = page[-1].id

    def holds(self, head: AuditHead) -> bool:
        """Return whether the journal still has the event that an export ended with."""
        number = self._number(head.partition)
        here = (events.c.partition_id == number, events.c.chain == head.chain)
        with self._database.read() as connection:
            return bool(connection.execute(select(exists(select(events.c.id).where(*here)))).scalar())

    def seal(self, at: datetime, operation_id: str, reason: str, *, despite: bool) -> None:
        """Seal with the newest key at hand from now on, and say so in each partition.

        Args:
            despite: Whether events that do not fit are chained again, too. Exported heads fit no more then.
        """
        action = _DESPITE if despite else _SEAL
        entry = Entry(
            partition_id=0,
            time=micros(at),
            actor="operator",
            action=action,
            record_id=_WHERE,
            operation_id=operation_id,
            reason=reason,
        )
        self._journal.seal(self._database, entry, despite=despite)

    def sealed_despite(self) -> tuple[datetime, str] | None:
        """Return when and why the journal was sealed last although it did not fit; none where it never was."""
        last = select(events.c.time, events.c.reason).where(events.c.action == _DESPITE).order_by(events.c.id.desc())
        with self._database.read() as connection:
            row = connection.execute(last.limit(1)).first()
        return None if row is None else (from_micros(row.time), row.reason)

    def add_shown(self, shown: Sequence[Shown]) -> None:
        """Append records of what agents were shown. They are no versions, and no reader waits for them."""
        if not shown:
            return
        with self._database.write() as connection:
            kept = self._not_late(connection, shown)
            numbers = partition_rows.hold(self._database, connection, [each.partition for each in kept])
            if not self._database.is_sqlite:  # it may have waited for an erasure
                kept = self._not_late(connection, kept)
            if not kept:
                connection.rollback()  # the names that were just written, too
                return
            rows = [
                {
                    "partition_id": numbers[each.partition],
                    "thread": json.dumps(each.thread),
                    "run_id": json.dumps(each.run_id),
                    "turn": each.turn,
                    "at": micros(each.at),
                    "shown": json.dumps(each.versions),
                }
                for each in kept
            ]
            if rows:
                connection.execute(insert(injections), rows)

    def _not_late(self, connection: Connection, shown: Sequence[Shown]) -> list[Shown]:
        """Return the records whose person or thread was not erased since they were made."""
        noted = [(each.partition, each.thread, each.at) for each in shown]
        late = Tombstones(self._journal).late(connection, "thread", noted)
        return [each for each, is_late in zip(shown, late, strict=True) if not is_late]

    def shown(
        self, partition: Partition, *, thread: str | None, run_id: str | None, turn: int | None
    ) -> tuple[Shown, ...]:
        """Return the records of a partition that meet all conditions, oldest first."""
        query = select(injections).where(injections.c.partition_id == self._number(partition))
        if thread is not None:
            query = query.where(injections.c.thread == json.dumps(thread))
        if run_id is not None:
            query = query.where(injections.c.run_id == json.dumps(run_id))
        if turn is not None:
            query = query.where(injections.c.turn == turn)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(injections.c.at, injections.c.id)).all()
        return tuple(
            Shown(
                partition=partition,
                thread=json.loads(row.thread),
                run_id=json.loads(row.run_id),
                turn=row.turn,
                at=from_micros(row.at),
                versions=json.loads(row.shown),
            )
            for row in rows
        )

    def _number(self, partition: Partition) -> int | None:
        with self._database.read() as connection:
            return next(iter(partition_rows.known(connection, [partition])), None)

    def _bounds(self, number: int, since: datetime | None, until: datetime | None) -> tuple[int, int]:
        """Return the first and the last event of a time: none between them is left out, whatever clock it had."""
        with self._database.read() as connection:
            here = events.c.partition_id == number
            first = select(func.min(events.c.id)).where(here)
            last = select(func.max(events.c.id)).where(here)
            if since is not None:
                first = first.where(events.c.time >= micros(since))
            if until is not None:
                last = last.where(events.c.time <= micros(until))
            return connection.execute(first).scalar() or _LAST, connection.execute(last).scalar() or 0

    def _rows(self, number: int, first: int, last: int) -> Iterator[Sequence[Row[Any]]]:
        """Yield the rows from one event to another, page by page, each in a transaction of its own."""
        query = _EVENTS.where(events.c.partition_id == number, events.c.id <= last)
        while first <= last:
            with self._database.read() as connection:
                page = connection.execute(query.where(events.c.id >= first)).all()
            if not page:
                return
            yield page
            first = page[-1].id + 1


def _wrong(row: Row[Any], partition: Partition) -> str:
    """Return what is wrong with the row of a memory; nothing where all is well."""
    if row.body != row.committed:
        return "its head is no version that was committed"
    memory = Memory.from_json(row.body)
    held, told = row._asdict(), memory_rows.head_columns(memory, row.topic_id)
    # What an earlier release wrote may differ: by fields that it lacked, by how it folded words, in what is not live.
    lenient = {"body", "words"} if memory.live else {"body", "words", "resident"}
    wrong = [name for name in told if name not in lenient and held[name] != told[name]]
    wrong += ["topic"] * ((row.type, row.target) != (memory.topic.type, memory.topic.target))
    wrong += ["partition"] * (memory.partition != partition)
    verb = "is" if len(wrong) == 1 else "are"
    return f"its {' and '.join(wrong)} {verb} not what was committed" if wrong else ""


def _chain_before(connection: Connection, number: int, first: int) -> str:
    query = select(events.c.chain).where(events.c.partition_id == number, events.c.id < first)
    return connection.execute(query.order_by(events.c.id.desc()).limit(1)).scalar() or origin(number)


def _entry(row: Row[Any], partition: Partition, previous: str) -> AuditEntry:
    body = json.loads(row.body) if row.body else {}
    return AuditEntry(
        event=event_of(row, partition),
        previous=previous,
        before=max(row.version - 1, 0),
        after=row.version,
        evidence=tuple(dict.fromkeys(item["message_id"] for item in body.get("evidence", ()))),
        extractor=body.get("extractor", ""),
        prompt=body.get("prompt", ""),
    )


def _unfit(numbers: Sequence[int], sealed: datetime | None) -> Iterator[Mismatch]:
    """Yield a mismatch for events that fit none of the keys.

    Args:
        numbers: The events.
        sealed: When a newer key took over after them, where none of theirs fits: then one mismatch covers all.
    """
    if numbers and sealed is not None:
        which = f"{len(numbers)} events before the seal of {sealed:%Y-%m-%d %H:%M} UTC"
        yield _mismatch(numbers[0], f"{which} fit no key at hand: a former key is missing, or they were changed")
        return
    for number in numbers:
        yield _mismatch(number, "it, or an event before it, was changed, moved or taken away")


def _mismatch(event: object, problem: str) -> Mismatch:
    return Mismatch(where=_WHERE, record_id=str(event), problem=problem)


def read_events(
    connection: Connection, places: Mapping[int, Partition], record_id: str | None, limit: int | None
) -> tuple[Event, ...]:
    """Return the journal, oldest first."""
    query = select(events).where(events.c.partition_id.in_(list(places))).order_by(events.c.id).limit(limit)
    if record_id is not None:
        query = query.where(events.c.record_id == record_id)
    return tuple(event_of(row, places[row.partition_id]) for row in connection.execute(query))


def event_of(row: Row[Any], partition: Partition) -> Event:
    """Return a row of the journal as a record."""
    return Event(
        event_id=row.id,
        partition=partition,
        time=from_micros(row.time),
        actor=row.actor,
        action=row.action,
        record_id=row.record_id,
        version=row.version,
        operation_id=row.operation_id,
        digest=row.digest,
        reason=row.reason,
        chain=row.chain,
    )


# ---------------------------------------------------------------------------------------------------- exports


def entries(
    trail: AuditTrail, partitions: Sequence[Partition], since: datetime | None, until: datetime | None
) -> Iterator[AuditEntry | AuditHead]:
    """Yield the events of partitions, each partition's in their order; then the head of each."""
    chains = {partition: _Chain(trail, partition) for partition in partitions}
    for partition, chain in chains.items():
        for page in trail.pages(partition, since, until):
            for entry in page:
                chain.add(entry)
                yield entry
    yield from (head for chain in chains.values() if (head := chain.head()) is not None)


def export(path: Path, found: Iterator[AuditEntry | AuditHead]) -> tuple[AuditHead, ...]:
    """Write what `entries` yields as JSON lines; return the heads."""
    heads: list[AuditHead] = []
    try:
        with path.open("x", encoding="ascii", newline="\n") as file:
            for each in found:
                file.write(f"{each.to_json()}\n")
                if isinstance(each, AuditHead):
                    heads.append(each)
    except OSError as error:
        raise FileFormatError(f"{path} cannot be written ({error}).", "Name a file that is not there yet.") from error
    return tuple(heads)


def read_heads(path: Path) -> tuple[AuditHead, ...]:
    """Return the heads of a file: of a whole export, or of its last lines."""
    heads = tuple(each for _, line in _lines(path) if isinstance(each := _read(line), AuditHead))
    if not heads:
        raise FileFormatError(f"{path} holds no head.", "Name a file with the last lines of an export.")
    return heads


def check_export(trail: AuditTrail, path: Path, heads: Sequence[AuditHead]) -> tuple[Mismatch, ...]:
    """Return what changed in an exported file since its export; nothing where it is whole."""
    chains: dict[Partition, _Chain] = {}
    ended: list[AuditHead] = []
    found: list[Mismatch] = []
    for number, line in _lines(path):
        each = _read(line)
        if each is None:
            found.append(_in_file(path, number, "it is no line of an export"))
        elif isinstance(each, AuditHead):
            ended.append(each)
        else:
            partition = each.event.partition
            if problem := chains.setdefault(partition, _Chain(trail, partition)).add(each):
                found.append(_in_file(path, number, problem))
    wanted = {head.partition: head for head in heads or ended}
    found.extend(
        _in_file(path, 0, f"what it holds of {partition.to_json()} does not end with its head")
        for partition in {**wanted, **chains}
        if partition not in chains or not chains[partition].ends_with(wanted.get(partition))
    )
    return tuple(found)


@dataclass
class _Chain:
    """The events of one partition, as they come."""

    trail: AuditTrail
    partition: Partition
    events: int = 0
    begins: str = ""
    chain: str = ""
    seals: tuple[str, ...] = ()

    @cached_property
    def _fits(self) -> Callable[[str, Event], bool]:
        return self.trail.walk()

    def add(self, entry: AuditEntry) -> str:
        """Take the next event; return what is wrong with it, if anything."""
        problem = ""
        if self.events and entry.previous != self.chain:
            problem = "an event before it was moved or taken away"
        elif not self._fits(entry.previous, entry.event):
            problem = "the event was changed"
        self.begins = self.begins or entry.previous
        self.events += 1
        self.chain = entry.event.chain
        self.seals = self.trail.seals(self.seals, entry.to_json())
        return problem

    def ends_with(self, head: AuditHead | None) -> bool:
        """Return whether this is the head, sealed by a known key."""
        own = self.head()
        return own is not None and head is not None and head.seal in self.seals and head.evolve(seal=own.seal) == own

    def head(self) -> AuditHead | None:
        """Return the head; None without events."""
        if not self.events:
            return None
        return AuditHead(
            partition=self.partition, events=self.events, previous=self.begins, chain=self.chain, seal=self.seals[0]
        )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from enumerate(file, start=1)
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path} cannot be read ({error}).", "Name a file that `audit` exported.") from error


def _read(line: str) -> AuditEntry | AuditHead | None:
    try:
        kind = AuditHead if json.loads(line).get("kind") == "head" else AuditEntry
        return kind.from_json(line)
    except (ValueError, AttributeError):
        return None


def _in_file(path: Path, line: int, problem: str) -> Mismatch:
    return Mismatch(where=path.name, record_id=f"line {line}" if line else "", problem=problem)
