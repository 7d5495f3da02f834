"""The one door for change (docs/invariants.md, 3): a change set is checked again and applied whole and once, or not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update
from sqlalchemy.sql.dml import ReturningInsert

from remegraph.errors import ConflictError, InputError, NotFoundError
from remegraph.failpoints import failpoint
from remegraph.ledger import blocks, evidence, jobs, usage, withheld
from remegraph.ledger import memories as memory_rows
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.database import Database
from remegraph.ledger.index import fulltext, vectors
from remegraph.ledger.journal import HEAD, Entry, Heads, Journal, heads_of
from remegraph.ledger.permissions import Consent
from remegraph.ledger.rows import chunks, insert_rows, micros, upsert
from remegraph.ledger.schema import (
    links,
    memories,
    operations,
    partitions,
    versions,
)
from remegraph.ledger.withheld import ANY, Tombstones
from remegraph.models import (
    FORGOTTEN,
    LIVE,
    BlockSummary,
    Brought,
    ChangeSet,
    Link,
    Memory,
    MemoryChange,
    Partition,
    Receipt,
    Topic,
    may_move,
)
from remegraph.models.remnants import MARK, buried
from remegraph.models.standing import TOMBSTONES
from remegraph.models.supersession import CONTRARY, at_variance, crowded
from remegraph.text.sentences import summary_of
from remegraph.text.tokens import token_counts

__all__ = ["commit", "committed", "resummarised"]

_Edges = Mapping[str, set[str]]

_BEGUN = (  # said once: building a statement costs as much as running it
    select(*HEAD, ANY, partitions.c.key, operations.c.receipt)
    .select_from(partitions)
    .outerjoin(
        operations,
        and_(operations.c.partition_id == partitions.c.id, operations.c.operation_id == bindparam("operation_id")),
    )
    .where(partitions.c.id.in_(bindparam("touched", expanding=True)))
    .order_by(partitions.c.id)
)


def commit(
    database: Database,
    journal: Journal,
    changes: ChangeSet,
    *,
    quorum: int,
    tombstones: Tombstones,
) -> Receipt:
    """Apply a change set in one transaction; see `Archive.commit`."""
    if not _named(changes) and not changes.links:
        return Receipt(operation_id=changes.operation_id, replayed=False)
    with database.write() as connection:
        if changes.tools:
            changes = changes.evolve(tools=usage.without_late_calls(connection, tombstones, changes.tools))
        named = _named(changes)
        witnesses = [word.memory_id for word in changes.endorsements if word.memory_id]
        others = [*(each.source_id for each in changes.links), *witnesses]
        numbers, rows = _held(database, connection, named, others, changes.operation_id)
        touched = [row.number for row in rows]
        if rows and rows[0].receipt is not None:
            return Receipt.from_json(rows[0].receipt).evolve(replayed=True)
        referred = [*witnesses, *(change.memory.memory_id for change in changes.changes)]
        referred += [end for link in changes.links for end in (link.source_id, link.target_id)]
        referred += [other for change in changes.changes for other in change.memory.supersedes]
        if not rows or rows[0].graves:
            tombstones.check(connection, changes)
        failpoint("commit.begin")
        heads = memory_rows.read_heads(connection, referred)
        bodies = {name: head.body for name, head in heads.items()}
        consent = Consent(connection, changes, numbers, bodies, quorum)
        receipt = _Commit(connection, journal, heads_of(rows), changes, numbers, heads, touched, consent).apply()
        failpoint("commit.before_commit")
    failpoint("commit.after_commit")
    return receipt


def _held(
    database: Database, connection: Connection, named: Sequence[Partition], others: Sequence[str], operation_id: str
) -> tuple[dict[Partition, int], Sequence[Any]]:
    """Lock partitions, and those of other memories; return the numbers of the former, and the rows of all in order.

    Raises:
        ConflictError: One was erased meanwhile.
    """
    known = {} if others else partition_rows.cached(connection, named)
    if named and known.keys() >= set(named):  # as a rule they are what they were, and are looked up once
        database.lock(connection, known.values())
        rows = _begun(connection, known.values(), operation_id)
        if {row.number: row.key for row in rows} == {known[each]: partition_rows.key_of(each) for each in named}:
            return known, rows
    numbers = partition_rows.ensure(connection, named)
    touched = {*numbers.values(), *(head.partition_id for head in memory_rows.read_heads(connection, others).values())}
    if not database.is_sqlite and numbers != known:
        database.lock(connection, touched)
        if partition_rows.ensure(connection, named) != numbers:  # it waited for an erasure
            raise ConflictError(sorted(map(str, named)), "They were erased meanwhile: read again.")
    return numbers, _begun(connection, touched, operation_id)


def _named(changes: ChangeSet) -> list[Partition]:
    named = [shelf.partition for shelf in changes.shelves]
    named += [change.memory.partition for change in changes.changes]
    named += [summary.partition for summary in changes.summaries]
    named += [call.partition for call in changes.tools]
    named += [one.partition for one in changes.work]
    named += [one.partition for one in (*changes.withheld, *changes.shown)]
    named += [changes.brought.partition] if changes.brought else []
    return list(dict.fromkeys(named))


def _begun(connection: Connection, touched: Collection[int], operation_id: str) -> Sequence[Any]:
    """Return the rows of locked partitions, each with what the operation did if it was committed there before."""
    return connection.execute(_BEGUN, {"touched": list(touched), "operation_id": operation_id}).all() if touched else ()


def committed(connection: Connection, partition_ids: Iterable[int], operation_id: str) -> bool:
    """Return whether an operation was committed in one of these partitions."""
    here = (operations.c.partition_id.in_(list(partition_ids)), operations.c.operation_id == operation_id)
    return connection.execute(select(operations.c.partition_id).where(*here)).first() is not None


def _may_meet(one: Partition, other: Partition) -> bool:
    """Return whether memories of two partitions may know of each other: one tenant, and not two persons."""
    return one.tenant == other.tenant and (None in (one.user, other.user) or one.user == other.user)


def _comes_back(head: memory_rows.Head, change: MemoryChange) -> bool:
    """Return whether a forgotten memory is restored: to whatever it was before."""
    return head.status == FORGOTTEN and change.action == "restore"


@dataclass(slots=True)
class _Commit:
    """One commit at work; everything it reads and writes is under the locks of the touched partitions."""

    connection: Connection
    journal: Journal
    journals: Heads
    """Where the journals of the touched partitions go on."""
    changes: ChangeSet
    numbers: dict[Partition, int]
    heads: dict[str, memory_rows.Head]
    touched: Sequence[int]
    consent: Consent
    now: int = field(init=False)
    there: blocks.Extents = field(default_factory=blocks.Extents)
    """Blocks that the change names, as far as they are there."""
    entries: list[Entry] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    indexed: dict[fulltext.TextShelf, dict[str, str | None]] = field(default_factory=dict)
    """What full text should index of each touched record; none: it leaves the index."""
    stale: defaultdict[fulltext.TextShelf, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Those of them that full text may hold already."""

    def __post_init__(self) -> None:
        self.now = micros(self.changes.recorded_at)

    def apply(self) -> Receipt:
        """Check and write everything; any error rolls the transaction back."""
        self.there = blocks.extents(self.connection, self.numbers.values(), _labels(self.changes))
        jobs.check_open(self.connection, self.numbers, self.there, self.changes.work, self.changes.again)
        self._check_seen()
        self._check_heads()
        self._check_knowledge()
        self._check_references()
        self.consent.check()
        _check_no_circle(self.connection, self.changes)
        if self.changes.brought is not None:
            self._bring(self.changes.brought)
        self._withhold()
        shelves = self._ensure_topics()
        written = self._write(shelves)
        failpoint("commit.half_written")
        self._check_twins(written)
        self._warn_of_crowds(written)
        self._link()
        self._summarise()
        usage.record_calls(self.connection, self.numbers, self.there, self.changes.tools)
        jobs.set_work(self.connection, self.numbers, self.there, self.changes.work)
        self._index()
        self.journal.add(self.connection, self.entries, self.journals)
        receipt = Receipt(
            operation_id=self.changes.operation_id,
            replayed=False,
            memory_ids=tuple(memory.memory_id for memory in written),
            created=sum(change.expected_version == 0 for change in self.changes.changes),
            warnings=tuple(self.warnings),
        )
        if self.touched:
            self.connection.execute(
                insert(operations).values(
                    partition_id=self.touched[0],
                    operation_id=receipt.operation_id,
                    recorded_at=self.now,
                    receipt=receipt.to_json(),
                )
            )
        return receipt

    def _check_heads(self) -> None:
        ids = [change.memory.memory_id for change in self.changes.changes]
        if len(set(ids)) != len(ids):
            raise InputError("A change set changes one memory twice.", "Make one change of the two.")
        stale: list[str] = []
        for change in self.changes.changes:
            memory, head = change.memory, self.heads.get(change.memory.memory_id)
            if head is not None and head.partition != memory.partition and change.expected_version:
                raise NotFoundError(f"There is no memory {memory.memory_id} here.")
            if change.expected_version != (head.version if head else 0):
                stale.append(memory.memory_id)
            elif (head is not None and head.status in TOMBSTONES) or (head is None and memory.status in TOMBSTONES):
                raise InputError(f"Memory {memory.memory_id} is {head.status if head else memory.status} for good.", "")
            elif memory.content == MARK and memory.status not in TOMBSTONES:
                raise InputError(f"What memory {memory.memory_id} says is withheld.", "Restore it first.")
            elif head is not None and not (may_move(head.status, memory.status) or _comes_back(head, change)):
                raise InputError(
                    f"Memory {memory.memory_id} cannot go from {head.status} to {memory.status}.",
                    "See remegraph.models.MOVES for the moves that are allowed.",
                )
        if stale:
            raise ConflictError(stale)

    def _bring(self, brought: Brought) -> None:
        number = self.numbers[brought.partition]
        for block in blocks.bring(self.connection, number, brought, self.changes.recorded_at):
            self.there[number, block.block_id] = blocks.Extent(block.thread, block.first_seq, block.last_seq)
            self._event(number, "add_block", block.block_id, body=block.to_json())

    def _check_knowledge(self) -> None:
        if not self.changes.extracted:
            return
        known = [name for name, head in self.heads.items() if Memory.from_json(head.body).firm]
        if ids := _spoilt(self.changes, known):
            raise ConflictError(
                ids, "It is knowledge or a policy, which no conversation changes: create what is new beside it."
            )

    def _check_references(self) -> None:
        """Check that links and `supersedes` name memories, known or of this set, that one person may see together."""
        homes = {memory_id: head.partition for memory_id, head in self.heads.items()}
        homes |= {change.memory.memory_id: change.memory.partition for change in self.changes.changes}
        pairs = [(link.source_id, link.target_id) for link in self.changes.links]
        pairs += [
            (change.memory.memory_id, other) for change in self.changes.changes for other in change.memory.supersedes
        ]
        for mine, other in pairs:
            if mine not in homes:
                raise NotFoundError(f"There is no memory {mine} here.")
            if other not in homes or not _may_meet(homes[mine], homes[other]):
                raise NotFoundError(f"There is no memory {other} here.")
        tenants = {partition.tenant for partition in self.numbers} | {homes[mine].tenant for mine, _ in pairs}
        if len(tenants) > 1:
            raise InputError("A change set names more than one tenant.", "Make one change set for each.")

    def _ensure_topics(self) -> dict[tuple[Partition, str, str], int]:
        wanted = [(shelf.partition, shelf.topic) for shelf in self.changes.shelves]
        wanted += [(change.memory.partition, change.memory.topic) for change in self.changes.changes]
        shelves: dict[memory_rows.Place, Topic] = {}
        for partition, topic in wanted:
            shelves.setdefault((self.numbers[partition], topic.type, topic.target), topic)
        found = memory_rows.topic_numbers(self.connection, shelves)
        new = {shelf: topic for shelf, topic in shelves.items() if shelf not in found}
        for shelf, number in memory_rows.add_topics(self.connection, new).items():
            found[shelf] = number
            self._event(shelf[0], "create_topic", f"topic:{number}", body=new[shelf].to_json())
        return {
            (partition, topic.type, topic.target): found[self.numbers[partition], topic.type, topic.target]
            for partition, topic in wanted
        }

    def _write(self, shelves: dict[tuple[Partition, str, str], int]) -> list[Memory]:
        """Write heads, versions and sources of all memories that change."""
        claims: list[evidence.Claim] = []
        for change in self.changes.changes:
            head = self.heads.get(change.memory.memory_id)
            before = Memory.from_json(head.body) if head else None
            memory = change.memory if change.history is not None else self._made_now(change, before)
            claims.append(evidence.Claim(head.number if head else 0, self.numbers[memory.partition], memory, before))
        sources = evidence.check(self.connection, claims, self.there)
        numbers = self._write_heads([claim.memory for claim in claims], shelves)
        for change, claim in zip(self.changes.changes, claims, strict=True):
            memory, shelf = claim.memory, fulltext.TextShelf(claim.partition_id, "memory")
            words = memory_rows.indexed_words(memory) if memory.live else None
            self._reindex(shelf, memory.memory_id, words, new=not claim.number)
            for each in (*(change.history or ()), memory):
                self._event(
                    shelf.partition_id,
                    change.action,
                    each.memory_id,
                    version=each.version,
                    body=each.to_json(),
                    reason=change.reason,
                )
        if claims:
            histories = [change.history or () for change in self.changes.changes]
            written = {number: claim.memory for number, claim in zip(numbers, claims, strict=True)}
            self._write_versions(written, dict(zip(numbers, histories, strict=True)))
            new = [number for number, claim in zip(numbers, claims, strict=True) if not claim.number]
            evidence.replace(self.connection, dict(zip(numbers, sources, strict=True)), new=new)
        return [claim.memory for claim in claims]

    def _made_now(self, change: MemoryChange, before: Memory | None) -> Memory:
        memory = change.memory.evolve(
            version=change.expected_version + 1,
            recorded_at=self.changes.recorded_at,
            summary=resummarised(change.memory, before),
        )
        return buried(memory) if memory.status in TOMBSTONES else memory

    def _write_heads(self, written: Sequence[Memory], shelves: dict[tuple[Partition, str, str], int]) -> list[int]:
        """Write heads; return their row numbers, in the same order."""
        numbers = {name: head.number for name, head in self.heads.items()}
        old: list[dict[str, Any]] = []
        new: list[dict[str, Any]] = []
        for memory in written:
            topic = shelves[memory.partition, memory.topic.type, memory.topic.target]
            values = memory_rows.head_columns(memory, topic)
            if memory.memory_id in numbers:
                old.append({"number": numbers[memory.memory_id], **values})
            else:
                values |= {"partition_id": self.numbers[memory.partition], "memory_id": memory.memory_id}
                new.append(values)
        if old:
            self.connection.execute(update(memories).where(memories.c.id == bindparam("number")), old)
        if new:
            rows = self.connection.execute(insert(memories).returning(memories.c.id, memories.c.memory_id), new)
            numbers |= {row.memory_id: row.id for row in rows}
        return [numbers[memory.memory_id] for memory in written]

    def _write_versions(self, written: Mapping[int, Memory], histories: Mapping[int, Sequence[Memory]]) -> None:
        for dead in chunks([number for number, memory in written.items() if memory.status in TOMBSTONES]):
            self.connection.execute(delete(versions).where(versions.c.memory.in_(dead)))
        rows = [
            {
                "memory": number,
                "version": version.version,
                "recorded_at": micros(version.recorded_at),
                "operation_id": self.changes.operation_id,
                "body": version.to_json(),
            }
            for number, memory in written.items()
            for version in (*histories[number], memory)
        ]
        insert_rows(self.connection, versions, rows)

    def _reindex(self, shelf: fulltext.TextShelf, record_id: str, said: str | None, *, new: bool) -> None:
        self.indexed.setdefault(shelf, {})[record_id] = said
        if not new:
            self.stale[shelf].add(record_id)

    def _index(self) -> None:
        """Put what changed in the full text index, or take it out; mark it for the vector index."""
        texts = {
            shelf: [fulltext.TextEntry(name, token_counts(said)) for name, said in records.items() if said is not None]
            for shelf, records in self.indexed.items()
        }
        fulltext.remove(self.connection, self.stale)
        fulltext.put(self.connection, texts)
        keys = [
            vectors.Key(shelf.partition_id, shelf.kind, record_id)
            for shelf, records in self.indexed.items()
            for record_id in records
        ]
        vectors.mark(self.connection, keys)

    def _check_twins(self, written: Sequence[Memory]) -> None:
        """Refuse a second live memory with the same words on a shelf; seen after all writes, so of this set too."""
        live = {memory.memory_id: memory for memory in written if memory.live}
        groups: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
        for partition_id in {self.numbers[memory.partition] for memory in live.values()}:
            words = {
                memory_rows.words_digest(memory)
                for memory in live.values()
                if self.numbers[memory.partition] == partition_id
            }
            for chunk in chunks(sorted(words)):
                query = select(memories.c.memory_id, memories.c.topic_id, memories.c.words).where(
                    memories.c.partition_id == partition_id,
                    memories.c.words.in_(chunk),
                    memories.c.status.in_(sorted(LIVE)),
                )
                for row in self.connection.execute(query):
                    groups[row.topic_id, row.words].add(row.memory_id)
        twins = {other for group in groups.values() for mine in group & live.keys() for other in group - {mine}}
        if twins:
            raise ConflictError(sorted(twins), "A memory with the same words is on the shelf: corroborate it instead.")

    def _warn_of_crowds(self, written: Sequence[Memory]) -> None:
        """Warn where a new memory is not the only one on its canonical topic, and no dispute says so."""
        new = [memory for memory in written if memory.version == 1 and memory.status == "active"]
        new = [memory for memory in new if memory.canonical_topic and not memory.slot_many]
        for partition_id in {self.numbers[memory.partition] for memory in new}:
            slots = {memory.canonical_topic for memory in new if self.numbers[memory.partition] == partition_id}
            holders = memory_rows.holders(self.connection, partition_id, slots)
            self.warnings += [crowded(slot, ids) for slot, ids in sorted(holders.items()) if len(ids) > 1]

    def _link(self) -> None:
        homes = {memory_id: head.partition_id for memory_id, head in self.heads.items()}
        homes |= {change.memory.memory_id: self.numbers[change.memory.partition] for change in self.changes.changes}
        given: dict[tuple[str, str, str], Link] = {}
        for link in (*self.changes.links, *_replacing(self.changes)):
            given.setdefault((link.source_id, link.type, link.target_id), link)
        rows = [
            {**link.model_dump(), "partition_id": homes[link.source_id], "recorded_at": self.now}
            for link in given.values()
        ]
        linked = self.connection.execute(_linked(self.connection.dialect.name), rows) if rows else ()
        added = {(row.source_id, row.type, row.target_id) for row in linked}
        for key, link in given.items():
            if key in added:
                self._event(homes[link.source_id], "link", link.source_id, body=link.to_json())
                self.warnings += [at_variance(link)] if link.type in CONTRARY else []

    def _check_seen(self) -> None:
        """Refuse what was made of words that are withheld by now."""
        homes = [each.partition for each in self.changes.summaries] + [each.partition for each in self.changes.work]
        for number in {self.numbers[home] for home in homes}:
            seen = {label: self.there[number, label] for label in self.changes.seen if (number, label) in self.there}
            extents = {
                label: (each.thread, each.first_seq, each.last_seq) for label, each in seen.items() if each.hides
            }
            hidden = withheld.counts(self.connection, number, extents)
            if changed := [label for label in seen if hidden.get(label, 0) != self.changes.seen[label]]:
                raise ConflictError(changed[:1], "Words of it were withheld meanwhile: read it again.")

    def _withhold(self) -> None:
        """Withhold words and show others again, first: what is written in this change is checked against what is left."""
        for partition, number in self.numbers.items():
            hidden = [each for each in self.changes.withheld if each.partition == partition]
            shown = [each for each in self.changes.shown if each.partition == partition]
            cause = self.changes.operation_id
            touched = withheld.withhold(self.connection, number, hidden, cause=cause, now=self.now) if hidden else []
            again = withheld.release(self.connection, number, shown) if shown else []
            for action, names in (("withhold", touched), ("show", again)):
                for name in names:
                    self._event(number, action, name, body="")
            for label, body in withheld.summaries_again(self.connection, number, again).items():
                self._reindex_summary(number, BlockSummary.from_json(body), new=False)
                self._event(number, "summarize", label, body=body)

    def _summarise(self) -> None:
        given, keep = self.changes.summaries, bool(self.changes.withheld)
        blocks.write_summaries(self.connection, self.numbers, self.there, given, keep=keep)
        for summary in given:
            partition_id = self.numbers[summary.partition]
            self._reindex_summary(partition_id, summary, new=not self.there[partition_id, summary.block_id].entered)
            self._event(partition_id, "summarize", summary.block_id, body=summary.to_json())

    def _reindex_summary(self, partition_id: int, summary: BlockSummary, *, new: bool) -> None:
        """Let an index entry be found by its words, unless none is left."""
        said = None if summary.summary == MARK else " ".join((summary.summary, *summary.entities))
        self._reindex(fulltext.TextShelf(partition_id, "block"), summary.block_id, said, new=new)

    def _event(
        self, partition_id: int, action: str, record_id: str, *, body: str, version: int = 0, reason: str = ""
    ) -> None:
        self.entries.append(
            Entry(
                partition_id=partition_id,
                time=self.now,
                actor=self.changes.actor,
                action=action,
                record_id=record_id,
                operation_id=self.changes.operation_id,
                version=version,
                body=body,
                reason=reason,
            )
        )


@cache
def _linked(dialect: str) -> ReturningInsert[tuple[str, str, str]]:
    statement = upsert(dialect, links).on_conflict_do_nothing()
    return statement.returning(links.c.source_id, links.c.type, links.c.target_id)


def _labels(changes: ChangeSet) -> set[str]:
    """Return the blocks that a change names."""
    made = [change.memory for change in changes.changes]
    found = {item.block_id for memory in made for item in memory.evidence}.union(changes.seen)
    found |= {each.block_id for each in changes.summaries} | {each.block_id for each in changes.work}
    return (found | {each.block_id for each in changes.tools}) - {""}


def _replacing(changes: ChangeSet) -> tuple[Link, ...]:
    """Return the links of what the memories of a set replace: the chain can be walked both ways by them."""
    return tuple(
        Link(source_id=change.memory.memory_id, type="supersedes", target_id=old)
        for change in changes.changes
        for old in change.memory.supersedes
    )


def _check_no_circle(connection: Connection, changes: ChangeSet) -> None:
    """Refuse a set by which a memory would replace itself, over any number of steps.

    Raises:
        InputError: It would.
    """
    given: defaultdict[str, set[str]] = defaultdict(set)
    for link in (*changes.links, *_replacing(changes)):
        if link.type == "supersedes":
            given[link.source_id].add(link.target_id)
    replaced = set().union(*given.values())
    made = {change.memory.memory_id for change in changes.changes if not change.expected_version}
    # What is new and replaced by nothing closes no circle: as a rule nothing need be read.
    starts = [source for source in given if source in replaced or source not in made]
    if starts:
        _check(starts, _below(connection, starts, given))


def _below(connection: Connection, starts: Iterable[str], given: _Edges) -> _Edges:
    """Return what each memory replaces, of those that can be reached."""
    found: dict[str, set[str]] = {}
    edge = set(starts)
    while edge:
        found |= {each: set(given.get(each, ())) for each in edge}
        for chunk in chunks(sorted(edge)):
            here = (links.c.source_id.in_(chunk), links.c.type == "supersedes")
            for row in connection.execute(select(links.c.source_id, links.c.target_id).where(*here)):
                found[row.source_id].add(row.target_id)
        edge = {target for each in edge for target in found[each]} - found.keys()
    return found


def _check(starts: Iterable[str], edges: _Edges) -> None:
    for start in starts:
        seen: set[str] = set()
        ahead = list(edges[start])
        while ahead:
            each = ahead.pop()
            if each == start:
                raise InputError(f"Memory {start} would replace itself.", "What replaces what must not go in a circle.")
            if each not in seen:
                seen.add(each)
                ahead += edges[each]


def resummarised(memory: Memory, before: Memory | None) -> str:
    """Return the summary of a memory's next version: its own, or one that is made where it has none or says what was."""
    stale = before is not None and memory.content != before.content and memory.summary == before.summary
    return summary_of(memory.content) if stale or not memory.summary else memory.summary


def _spoilt(changes: ChangeSet, known: Collection[str]) -> list[str]:
    """Return the ids of memories that what was learned from a conversation must not touch as it does; `known` are firm."""
    memories = [change.memory for change in changes.changes]
    touched = {memory.memory_id for memory in memories}
    replaced = {other for memory in memories for other in memory.supersedes}
    replaced |= {link.target_id for link in changes.links if link.type == "supersedes"}
    made = {memory.memory_id for memory in memories if memory.firm}
    return sorted(made | ((touched | replaced) & set(known)))
