"""The chain of a memory, both ways, with all versions, times, actors, reasons and words (G6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from remegraph.errors import NotFoundError
from remegraph.models import Archaeology, Event, Find, Memory, Partition, RecallFilter, StoredMessage, VersionNote
from remegraph.ports import Archive
from remegraph.rules.chains import known_by
from remegraph.rules.quotes import quoted

__all__ = ["dig", "dug", "ends"]


def dig(archive: Archive, partitions: Sequence[Partition], memory_id: str, as_of: RecallFilter) -> Archaeology:
    """Return the chain that a memory is part of.

    Args:
        archive: The ledger.
        partitions: What the caller may see.
        memory_id: The memory.
        as_of: What was known at a time, or true; its other conditions do not count.

    Raises:
        NotFoundError: There is no such memory, or it was not known then.
    """
    site = _Site(archive, partitions, as_of)
    if not site.versions(memory_id):
        raise _not_found(memory_id, as_of)
    older, newer = site.walk(memory_id, down=True), site.walk(memory_id, down=False)
    pairs = [*older, *((new, old) for old, new in newer)]
    ids = dict.fromkeys([memory_id, *(old for _, old in older), *(new for _, new in newer)])
    found = tuple(site.find(each, pairs) for each in ids)
    return Archaeology(finds=found, held=tuple(find.head for find in found if as_of.admits(find.head)))


def dug(versions: Sequence[Memory], memory_id: str, as_of: RecallFilter) -> Archaeology:
    """Return a memory whose versions are all that may be seen of its chain, as another agent lets it be read.

    Args:
        versions: Its versions, oldest first.
        memory_id: The memory.
        as_of: See `dig`.

    Raises:
        NotFoundError: There is no such memory, or it was not known then.
    """
    known = known_by(versions, as_of.known_at)
    if not known:
        raise _not_found(memory_id, as_of)
    notes = tuple(VersionNote(memory=version) for version in known)
    find = Find(memory_id=memory_id, status=known[-1].status, versions=notes)
    return Archaeology(finds=(find,), held=tuple(each for each in known[-1:] if as_of.admits(each)))


def ends(archive: Archive, partitions: Sequence[Partition], memory_id: str) -> tuple[Memory, ...]:
    """Return the ends of the chain that leads up from a memory: what was replaced by nothing.

    Args:
        archive: The ledger.
        partitions: What the caller may see.
        memory_id: The memory.
    """
    newer = _Site(archive, partitions, RecallFilter()).walk(memory_id, down=False)
    last = {new for _, new in newer} - {old for old, _ in newer} or {memory_id}
    return archive.memories(partitions, ids=sorted(last))


class _Site:
    """What is read of a chain, each memory once."""

    def __init__(self, archive: Archive, partitions: Sequence[Partition], as_of: RecallFilter) -> None:
        self._archive = archive
        self._partitions = partitions
        self._as_of = as_of
        self._versions: dict[str, tuple[Memory, ...]] = {}

    def versions(self, memory_id: str) -> tuple[Memory, ...]:
        """Return the versions that were known then."""
        if memory_id not in self._versions:
            every = self._archive.versions(self._partitions, memory_id) if self._partitions else ()
            self._versions[memory_id] = known_by(every, self._as_of.known_at)
        return self._versions[memory_id]

    def walk(self, memory_id: str, *, down: bool) -> dict[tuple[str, str], None]:
        """Return the pairs of what replaced and what was replaced, or upwards the other way round, the nearest first."""
        found: dict[tuple[str, str], None] = {}
        edge, seen = [memory_id], {memory_id}
        while edge:
            links = self._archive.links(self._partitions, edge, types=["supersedes"])
            pairs = [(link.source_id, link.target_id) if down else (link.target_id, link.source_id) for link in links]
            reached = {pair: None for pair in pairs if pair[0] in edge and self.versions(pair[1])}
            found |= reached
            edge = sorted({far for _, far in reached} - seen)
            seen.update(edge)
        return found

    def find(self, memory_id: str, pairs: Collection[tuple[str, str]]) -> Find:
        """Return a memory with its versions, and what of these pairs of new and old is next to it."""
        versions = self.versions(memory_id)
        cited = list(dict.fromkeys(item.message_id for version in versions for item in version.evidence))
        said = {each.message_id: each for each in self._archive.messages(self._partitions, ids=cited)}
        events = self._archive.events(self._partitions, record_id=memory_id)
        by_version = {event.version: event for event in events if event.version}
        return Find(
            memory_id=memory_id,
            status=versions[-1].status,
            versions=tuple(_note(version, by_version.get(version.version), said) for version in versions),
            replaced=tuple(old for new, old in pairs if new == memory_id),
            replaced_by=tuple(new for new, old in pairs if old == memory_id),
        )


def _not_found(memory_id: str, as_of: RecallFilter) -> NotFoundError:
    return NotFoundError(f"There {'is' if as_of.known_at is None else 'was'} no memory {memory_id!r} here.")


def _note(version: Memory, event: Event | None, said: Mapping[str, StoredMessage]) -> VersionNote:
    told = {} if event is None else {"actor": event.actor, "action": event.action, "reason": event.reason}
    return VersionNote(memory=version, quotes=quoted(version.evidence, said)[0], **told)
