"""Raw records that come from elsewhere: each gets a block of its own, and none of them is left to be summarised."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remegraph.models import Brought, BroughtBlock, Message, Partition, Work
from remegraph.ports import Archive

__all__ = ["brought", "done"]


def brought(archive: Archive, home: Partition, records: Sequence[Message]) -> Brought:
    """Return raw records, each in a block of its own, under a label that no block has or had.

    Args:
        archive: The ledger.
        home: Where they go.
        records: The raw records, of threads of their own.
    """
    labels = archive.free_labels(home, [each.time for each in records])
    return Brought(
        partition=home,
        messages=tuple(records),
        blocks=tuple(
            BroughtBlock(block_id=label, thread=each.thread, message_ids=(each.message_id,))
            for label, each in zip(labels, records, strict=True)
        ),
    )


def done(block_ids: Iterable[str], home: Partition, recipe: str) -> tuple[Work, ...]:
    """Return that blocks are not to be summarised: what they hold is taken for what it is.

    Args:
        block_ids: Their labels.
        home: Where they are.
        recipe: Name of the way of summarising.
    """
    return tuple(
        Work(partition=home, block_id=block_id, recipe=recipe, state="done", attempts=1) for block_id in block_ids
    )
