"""A memory that someone states outright: it too has a raw record, a block, and evidence (REQUIREMENTS, 9)."""

from __future__ import annotations

from remegraph.engine.proposals import operation_id
from remegraph.errors import InputError
from remegraph.language.scripts import language_of
from remegraph.models import (
    BlockSummary,
    ChangeSet,
    Cut,
    Evidence,
    Memory,
    MemoryChange,
    Message,
    Shelf,
    Work,
)
from remegraph.ports import Archive, Clock, NewId

__all__ = ["remember"]


def remember(
    archive: Archive,
    clock: Clock,
    new_id: NewId,
    shelf: Shelf,
    content: str,
    *,
    actor: str,
    recipe: str,
    importance: float,
) -> Memory:
    """Record a statement as a message and a block of its own, and make it a memory.

    Stating the same words again changes nothing and returns the memory that holds them.

    Args:
        archive: The ledger.
        clock: Tells the time.
        new_id: Makes the message's id.
        shelf: The topic, and where it lives.
        content: The statement.
        actor: Who states it.
        recipe: Name of the way of summarising, for the work row.
        importance: 0 to 1; .9 and more make it a core rule.

    Raises:
        InputError: The statement is empty, or the importance is not between 0 and 1.
    """
    if not content.strip():
        raise InputError("The statement is empty.", "Say what to remember.")
    if not 0 <= importance <= 1:
        raise InputError(f"The importance is {importance}.", "Give a number from 0 to 1.")
    now = clock()
    partition = shelf.partition
    twins = [
        m for m in archive.memories([partition], topics=[shelf.topic], statuses=["active"]) if m.content == content
    ]
    if twins:
        return twins[0]
    message = Message(
        message_id=new_id(), thread=f"stated:{new_id()}", role="system", name=actor, content=content, time=now
    )
    archive.add_messages(partition, [message], now)
    (tail,) = (tail for tail in archive.tails(partition) if tail.thread == message.thread)
    seq = tail.messages[0].seq
    (block,) = archive.add_blocks(
        partition, [Cut(thread=message.thread, after_seq=0, first_seq=seq, last_seq=seq)], recipe
    )
    evidence = Evidence(message_id=message.message_id, quote=content, block_id=block.block_id)
    memory = Memory(
        memory_id=operation_id(shelf.to_json(), message.message_id),
        partition=partition,
        topic=shelf.topic,
        content=content,
        kind="profile",
        evidence=(evidence,),
        block_ids=(block.block_id,),
        layer="long_term",
        importance=importance,
        language=language_of(content),
        source="tool-call",
        extractor=actor,
        said_at=now,
        recorded_at=now,
    )
    summary = BlockSummary(
        block_id=block.block_id,
        partition=partition,
        start_time=now,
        end_time=now,
        summary=content,
        language=language_of(content),
    )
    work = Work(partition=partition, block_id=block.block_id, recipe=recipe, state="done", attempts=1)
    archive.commit(
        ChangeSet(
            operation_id=operation_id("state", memory.memory_id),
            actor=actor,
            recorded_at=now,
            shelves=(shelf,),
            changes=(MemoryChange(memory=memory, expected_version=0, action="create"),),
            summaries=(summary,),
            work=(work,),
        )
    )
    return memory
