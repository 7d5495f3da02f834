"""The origin of a memory (X1), and its versions: history, differences, restoring one, what an agent knew at a time (G6)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import SequenceMatcher

from remegraph.engine.retrieval.hits import known_by
from remegraph.errors import InputError, NotFoundError
from remegraph.ledger.archive import Archive
from remegraph.ledger.permissions import GrantBook
from remegraph.models import (
    FORGOTTEN,
    Archaeology,
    ChangeSet,
    Diff,
    Event,
    FieldDiff,
    Find,
    Known,
    Link,
    Memory,
    MemoryChange,
    Partition,
    RecallFilter,
    Scope,
    Shown,
    Status,
    Trace,
    VersionNote,
    WordDiff,
    may_move,
)
from remegraph.models.quotes import quoted
from remegraph.models.standing import TOMBSTONES
from remegraph.models.supersession import revision
from remegraph.ports import NewId
from remegraph.text.scripts import CJK

__all__ = ["difference", "dig", "dug", "ends", "known", "promote", "restore", "trace"]


def dig(archive: Archive, partitions: Sequence[Partition], memory_id: str, as_of: RecallFilter) -> Archaeology:
    """Return the chain that a memory is part of."""
    site = _Site(archive, partitions, as_of)
    if not site.versions(memory_id):
        raise _not_found(memory_id, as_of)
    older, newer = site.walk(memory_id, down=True), site.walk(memory_id, down=False)
    pairs = [*older, *((new, old) for old, new in newer)]
    ids = dict.fromkeys([memory_id, *(old for _, old in older), *(new for _, new in newer)])
    found = tuple(site.find(each, pairs) for each in ids)
    return Archaeology(finds=found, held=tuple(find.head for find in found if as_of.admits(find.head)))


def dug(versions: Sequence[Memory], memory_id: str, as_of: RecallFilter) -> Archaeology:
    """Return a memory that another agent grants to read: of its chain, only its own versions may be seen."""
    known = known_by(versions, as_of.known_at)
    if not known:
        raise _not_found(memory_id, as_of)
    notes = tuple(VersionNote(memory=version) for version in known)
    find = Find(memory_id=memory_id, status=known[-1].status, versions=notes)
    return Archaeology(finds=(find,), held=tuple(each for each in known[-1:] if as_of.admits(each)))


def ends(archive: Archive, partitions: Sequence[Partition], memory_id: str) -> tuple[Memory, ...]:
    """Return the ends of the chain that leads up from a memory: those not replaced by anything."""
    newer = _Site(archive, partitions, RecallFilter()).walk(memory_id, down=False)
    last = {new for _, new in newer} - {old for old, _ in newer} or {memory_id}
    return archive.memories(partitions, ids=sorted(last))


@dataclass
class _Site:
    """The versions read of a chain, each memory once."""

    archive: Archive
    partitions: Sequence[Partition]
    as_of: RecallFilter
    _versions: dict[str, tuple[Memory, ...]] = field(default_factory=dict, init=False)

    def versions(self, memory_id: str) -> tuple[Memory, ...]:
        """Return the versions that were known then."""
        if memory_id not in self._versions:
            every = self.archive.versions(self.partitions, memory_id) if self.partitions else ()
            self._versions[memory_id] = known_by(every, self.as_of.known_at)
        return self._versions[memory_id]

    def walk(self, memory_id: str, *, down: bool) -> dict[tuple[str, str], None]:
        """Return the pairs of successor and predecessor, reversed if upwards, the nearest first."""
        found: dict[tuple[str, str], None] = {}
        edge, seen = [memory_id], {memory_id}
        while edge:
            links = self.archive.links(self.partitions, edge, types=["supersedes"])
            pairs = [(link.source_id, link.target_id) if down else (link.target_id, link.source_id) for link in links]
            reached = {pair: None for pair in pairs if pair[0] in edge and self.versions(pair[1])}
            found |= reached
            edge = sorted({far for _, far in reached} - seen)
            seen.update(edge)
        return found

    def find(self, memory_id: str, pairs: Collection[tuple[str, str]]) -> Find:
        """Return a memory with its versions and its neighbours among these pairs of new and old."""
        versions = self.versions(memory_id)
        cited = list(dict.fromkeys(item.message_id for version in versions for item in version.evidence))
        said = {each.message_id: each for each in self.archive.messages(self.partitions, ids=cited)}
        events = self.archive.events(self.partitions, record_id=memory_id)
        by_version = {event.version: event for event in events if event.version}

        def note(version: Memory, event: Event | None) -> VersionNote:
            by = {} if event is None else {"actor": event.actor, "action": event.action, "reason": event.reason}
            return VersionNote(memory=version, quotes=quoted(version.evidence, said)[0], **by)

        return Find(
            memory_id=memory_id,
            status=versions[-1].status,
            versions=tuple(note(version, by_version.get(version.version)) for version in versions),
            replaced=tuple(old for new, old in pairs if new == memory_id),
            replaced_by=tuple(new for new, old in pairs if old == memory_id),
        )


def _not_found(memory_id: str, as_of: RecallFilter) -> NotFoundError:
    return NotFoundError(f"There {'is' if as_of.known_at is None else 'was'} no memory {memory_id!r} here.")


_AWAITING: frozenset[Status] = frozenset({"proposed", "quarantined"})


def restore(
    archive: Archive,
    visible: Sequence[Partition],
    own: Sequence[Partition],
    memory_id: str,
    version: int,
    *,
    actor: str,
    at_home: bool,
    at: datetime,
    new_id: str,
    operation_id: str,
) -> Memory:
    """Restore a version of a memory.

    If nothing replaced the memory, it gets a new version with what the old one says. If something did, a new
    memory says it, and replaces the end of the chain: so a chain grows at its end only.
    """
    versions = archive.versions(own, memory_id) if own else ()
    if not versions:
        raise NotFoundError(f"There is no memory {memory_id!r} here.")
    chosen = next((each for each in versions if each.version == version), None)
    if chosen is None:
        raise NotFoundError(f"Memory {memory_id!r} has no version {version}.", f"It has 1 to {len(versions)}.")
    head = versions[-1]
    if head.status in _AWAITING:
        raise InputError(f"Memory {memory_id!r} is {head.status}.", "It must be approved before it can hold.")
    if not chosen.live:
        raise InputError(
            f"Version {version} of memory {memory_id!r} was {chosen.status}.", "Give one in which it held."
        )
    if head.live and head == chosen:
        return head
    if head.status == "superseded":
        changes = _again(chosen, ends(archive, visible, memory_id), own, at, new_id)
    else:
        memory = chosen.evolve(version=head.version + 1, status="active", supersedes=head.supersedes, recorded_at=at)
        reason = f"version {chosen.version}"
        changes = (MemoryChange(memory=memory, expected_version=head.version, action="restore", reason=reason),)
    archive.commit(ChangeSet(operation_id=operation_id, actor=actor, recorded_at=at, at_home=at_home, changes=changes))
    return changes[0].memory


def _again(
    chosen: Memory, last: Sequence[Memory], own: Sequence[Partition], at: datetime, new_id: str
) -> tuple[MemoryChange, ...]:
    """Return a new memory that says it from now on, and the retired version of what replaced it."""
    if foreign := [each.memory_id for each in last if each.partition not in own]:
        raise NotFoundError(f"{', '.join(foreign)} replaced it, and is not this user's to change.")
    replaced = tuple(each.memory_id for each in last)
    reason = f"version {chosen.version} of {chosen.memory_id}"
    memory = chosen.evolve(
        memory_id=new_id, version=1, status="active", supersedes=replaced, valid_from=at, valid_to=None, recorded_at=at
    )
    retired = (
        revision(each, at, "supersede", f"{reason} was restored", status="superseded", valid_to=each.valid_to or at)
        for each in last
        if may_move(each.status, "superseded")
    )
    return (MemoryChange(memory=memory, expected_version=0, action="restore", reason=reason), *retired)


def known(archive: Archive, partitions: Sequence[Partition], records: Iterable[Shown]) -> tuple[Known, ...]:
    """Return the memories that each record shows, in the versions of that time, as far as they are kept."""
    versions: dict[str, dict[int, Memory]] = {}
    found: list[Known] = []
    for shown in records:
        for memory_id in shown.versions.keys() - versions.keys():
            every = archive.versions(partitions, memory_id) if partitions else ()
            versions[memory_id] = {each.version: each for each in every}
        memories = {memory_id: versions[memory_id].get(number) for memory_id, number in shown.versions.items()}
        found.append(
            Known(
                shown=shown,
                memories=tuple(each for each in memories.values() if each is not None),
                missing=tuple(memory_id for memory_id, each in memories.items() if each is None),
            )
        )
    return tuple(found)


def promote(
    archive: Archive,
    partitions: Sequence[Partition],
    memory_id: str,
    *,
    actor: str,
    at_home: bool,
    reason: str,
    at: datetime,
    new_id: NewId,
) -> Memory:
    """Let a memory of one project hold in all projects, by a new memory that supersedes it (G8)."""
    if not reason.strip():
        raise InputError("The reason is empty.", "Say why it shall hold in all projects.")
    found = archive.memories(partitions, ids=[memory_id]) if partitions else ()
    if not found or not found[0].live:
        raise NotFoundError(f"There is no live memory {memory_id!r} here.")
    (old,) = found
    if old.partition.project is None:
        return old
    where = old.partition.evolve(project=None)
    new = old.evolve(
        memory_id=new_id(),
        version=1,
        partition=where,
        applies_to=old.applies_to if old.language_it_applies_to else where.applies_to,
        supersedes=(old.memory_id,),
        recorded_at=at,
    )
    archive.commit(
        ChangeSet(
            operation_id=new_id(),
            actor=actor,
            recorded_at=at,
            at_home=at_home,
            changes=(
                MemoryChange(memory=new, expected_version=0, action="promote", reason=reason),
                revision(old, at, "supersede", reason, status="superseded"),
            ),
            links=(Link(source_id=new.memory_id, type="supersedes", target_id=old.memory_id, reason=reason),),
        )
    )
    return new


_UNCOMPARED = frozenset({"memory_id", "version", "partition", "recorded_at", "summary"})
"""Fields that are the same in all versions of a memory, or in no two, or follow from the content."""

_WORD = re.compile(rf"(?:[{CJK}]|[^\W{CJK}]+|\S)\s*")
"""A word with the space after it; of a script without spaces, a character."""


def difference(before: Memory, after: Memory) -> Diff:
    """Return what differs between two versions."""
    first, second = json.loads(before.to_json()), json.loads(after.to_json())
    return Diff(
        memory_id=before.memory_id,
        before=before.version,
        after=after.version,
        fields=tuple(
            FieldDiff(name=name, before=_value(first[name]), after=_value(second[name]))
            for name in first
            if name not in _UNCOMPARED and first[name] != second[name]
        ),
        words=tuple(_word_runs(before.content, after.content)),
    )


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _word_runs(before: str, after: str) -> Iterator[WordDiff]:
    first, second = _WORD.findall(before), _WORD.findall(after)
    one, other = [word.rstrip() for word in first], [word.rstrip() for word in second]
    for change, start, end, new_start, new_end in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if change == "equal":
            yield WordDiff(change="same", words="".join(second[new_start:new_end]))
            continue
        if start < end:
            yield WordDiff(change="removed", words="".join(first[start:end]))
        if new_start < new_end:
            yield WordDiff(change="added", words="".join(second[new_start:new_end]))


# ------------------------------------------------------------------------------------------- what it came from


def trace(
    archive: Archive, grants: GrantBook, memory_id: str, scope: Scope, as_of: RecallFilter | None = None
) -> Trace:
    """Return all that a memory came from, as far as the scope may see it.

    For a memory that another agent lets it read, that is its content, the words quoted as its evidence, and the index
    entries of its blocks: no message, link or event.

    Args:
        archive: The ledger.
        grants: What other agents let it read.
        memory_id: The memory.
        scope: Who asks.
        as_of: What was known, or true, at a time; its other conditions are ignored.

    Raises:
        NotFoundError: The scope sees no such memory, or it was not known or not true then.
    """
    partitions = archive.visible(scope)
    known_at, true_at = (as_of.known_at, as_of.true_at) if as_of else (None, None)
    own = archive.versions(partitions, memory_id) if partitions else ()
    versions = known_by(own or grants.versions(scope, memory_id), known_at)
    if not versions:
        raise NotFoundError(f"There {'is' if known_at is None else 'was'} no memory {memory_id!r} here.")
    memory = versions[-1]
    if true_at is not None and not memory.held_at(true_at):
        raise NotFoundError(f"Memory {memory_id!r} was not true then.", "Ask archaeology() what was.")
    if own:
        return _traced(archive, partitions, versions, known_at)
    return Trace(
        memory=memory,
        versions=versions,
        summaries=grants.summaries(scope, memory_id),
        missing=(f"what is around the words: of agent {memory.partition.agent}, who lets the memory alone be read",),
    )


def _traced(
    archive: Archive, partitions: Sequence[Partition], versions: Sequence[Memory], known_at: datetime | None
) -> Trace:
    """Return the origin of the last of these versions: words, blocks and their entries, the messages around them, events."""
    memory = versions[-1]
    cited = [item.message_id for item in memory.evidence]
    messages = {message.message_id: message for message in archive.messages(partitions, ids=cited)}
    quotes, unseen = quoted(memory.evidence, messages)
    missing = [f"content: {memory.status} on {memory.recorded_at:%Y-%m-%d}"] if memory.status in TOMBSTONES else []
    if memory.status == FORGOTTEN:
        missing.append(f"content: withheld on {memory.recorded_at:%Y-%m-%d}")
    missing += [
        f"message {message.message_id}: words withheld on {note.at:%Y-%m-%d} ({note.reason})"
        for message in messages.values()
        for note in message.withheld
    ]
    missing += [f"message {each}: not visible here, or no longer kept" for each in unseen]
    # Labels of blocks are unique in their partition only: if its words cannot be seen, the block cannot either.
    homes = dict.fromkeys(quote.message.partition for quote in quotes) if memory.evidence else partitions
    blocks = archive.blocks(list(homes), ids=memory.block_ids)
    gone = set(memory.block_ids) - {block.block_id for block in blocks}
    missing.extend(f"block {block_id}: not visible here, or no longer kept" for block_id in sorted(gone))
    events = archive.events(partitions, record_id=memory.memory_id)
    return Trace(
        memory=memory,
        versions=tuple(versions),
        quotes=quotes,
        blocks=blocks,
        summaries=archive.summaries([block.partition for block in blocks], ids=memory.block_ids) if blocks else (),
        messages=tuple(
            message
            for block in blocks
            for message in archive.messages(
                [block.partition], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq
            )
            if not message.dropped
        ),
        links=archive.links(partitions, [memory.memory_id]),
        events=tuple(event for event in events if known_at is None or event.time <= known_at),
        missing=tuple(missing),
    )
