"""From a memory down to the exact words."""

from __future__ import annotations

from remegraph.errors import NotFoundError
from remegraph.models import Quote, Scope, Trace
from remegraph.ports import Archive
from remegraph.rules.quotes import find_quote

__all__ = ["trace"]


def trace(archive: Archive, memory_id: str, scope: Scope) -> Trace:
    """Return all that a memory came from, as far as the scope may see it.

    Args:
        archive: The ledger.
        memory_id: The memory.
        scope: Who asks.

    Raises:
        NotFoundError: The scope sees no such memory.
    """
    partitions = archive.visible(scope)
    found = archive.memories(partitions, ids=[memory_id]) if partitions else ()
    if not found:
        raise NotFoundError(f"There is no memory {memory_id!r} here.")
    (memory,) = found
    messages = {
        message.message_id: message
        for message in archive.messages(partitions, ids=[item.message_id for item in memory.evidence])
    }
    quotes: list[Quote] = []
    missing: list[str] = []
    for item in memory.evidence:
        message = messages.get(item.message_id)
        span = find_quote(item.quote, message.text) if message else None
        if message is None or span is None:
            missing.append(f"message {item.message_id}: not visible here, or no longer kept")
        else:
            quotes.append(Quote(message=message, start=span[0], end=span[1]))
    homes = [quote.message.partition for quote in quotes] or partitions
    blocks = archive.blocks(list(dict.fromkeys(homes)), ids=memory.block_ids)
    gone = set(memory.block_ids) - {block.block_id for block in blocks}
    missing.extend(f"block {block_id}: not visible here, or no longer kept" for block_id in sorted(gone))
    return Trace(
        memory=memory,
        versions=archive.versions(partitions, memory_id),
        quotes=tuple(quotes),
        blocks=blocks,
        summaries=archive.summaries([block.partition for block in blocks], ids=memory.block_ids) if blocks else (),
        messages=tuple(
            message
            for block in blocks
            for message in archive.messages(
                [block.partition], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq
            )
        ),
        links=archive.links(partitions, [memory_id]),
        events=archive.events(partitions, record_id=memory_id),
        missing=tuple(missing),
    )
