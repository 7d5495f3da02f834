"""From a memory down to the exact words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from remegraph.errors import NotFoundError
from remegraph.models import FORGOTTEN, Memory, Partition, RecallFilter, Scope, Trace
from remegraph.ports import Archive, GrantBook
from remegraph.rules.chains import known_by
from remegraph.rules.quotes import quoted
from remegraph.rules.tombstones import TOMBSTONES

__all__ = ["trace"]


def trace(
    archive: Archive, grants: GrantBook, memory_id: str, scope: Scope, as_of: RecallFilter | None = None
) -> Trace:
    """Return all that a memory came from, as far as the scope may see it.

    Of a memory that another agent lets it read, that is what it says, the words quoted as its evidence, and the index
    entries of its blocks: no message, link or event.

    Args:
        archive: The ledger.
        grants: What other agents let it read.
        memory_id: The memory.
        scope: Who asks.
        as_of: What was known at a time, or true; its other conditions do not count.

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
    """Return what the last of these versions came from: words, blocks and their entries, what was said around, events."""
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
    # Labels of blocks are unique in their partition only: where no word can be seen, nor can its block.
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
