"""Statements that someone makes outright: they too have a raw record, a block, and evidence (REQUIREMENTS, 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from remegraph.engine.governed import UNGOVERNED, Governed
from remegraph.errors import InputError
from remegraph.language.scripts import language_of
from remegraph.models import (
    Block,
    BlockSummary,
    ChangeSet,
    Cut,
    Evidence,
    Memory,
    MemoryChange,
    Message,
    Partition,
    Shelf,
    StoredMessage,
    Work,
)
from remegraph.ports import Archive, Clock, NewId
from remegraph.rules.naming import operation_id

__all__ = ["Stated", "check_statement", "closing", "remember", "state"]


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement as it was recorded: one message, in a block of its own."""

    message: StoredMessage
    block: Block

    @property
    def evidence(self) -> Evidence:
        """The whole statement, as evidence."""
        return Evidence(message_id=self.message.message_id, quote=self.message.text, block_id=self.block.block_id)

    @property
    def summary(self) -> BlockSummary:
        """The index entry of its block: the statement itself."""
        return BlockSummary(
            block_id=self.block.block_id,
            partition=self.block.partition,
            start_time=self.message.time,
            end_time=self.message.time,
            summary=self.message.text,
            language=language_of(self.message.text),
            trust=self.message.trust,
        )

    def work(self, recipe: str) -> Work:
        """Its block is done: there is nothing left to summarise.

        Args:
            recipe: Name of the way of summarising.
        """
        return Work(
            partition=self.block.partition, block_id=self.block.block_id, recipe=recipe, state="done", attempts=1
        )


def check_statement(content: str, importance: float) -> None:
    """Refuse what cannot be remembered.

    Raises:
        InputError: The statement is empty, or the importance is not between 0 and 1.
    """
    if not content.strip():
        raise InputError("The statement is empty.", "Say what to remember.")
    if not 0 <= importance <= 1:
        raise InputError(f"The importance is {importance}.", "Give a number from 0 to 1.")


def state(
    archive: Archive,
    clock: Clock,
    partition: Partition,
    content: str,
    *,
    statement_id: str,
    role: Literal["assistant", "system"],
    actor: str,
    recipe: str,
    extra: Mapping[str, object] | None = None,
    said_at: datetime | None = None,
) -> Stated:
    """Record a statement as a message and a block of its own; one that is recorded already is taken up again.

    Args:
        archive: The ledger.
        clock: Tells the time.
        partition: Where.
        content: The statement.
        statement_id: Id of the message.
        role: system for a person or an application, assistant for a model.
        actor: Who states it.
        recipe: Name of the way of summarising, for the work row.
        extra: What else was said with it.
        said_at: When it was said; now unless given.
    """
    if not archive.messages([partition], ids=[statement_id]):
        now = clock()
        message = Message(
            message_id=statement_id,
            thread=f"stated:{statement_id}",
            role=role,
            name=actor,
            content=content,
            time=said_at or now,
            extra=dict(extra or {}),
        )
        archive.add_messages(partition, [message], now)
    (stored,) = archive.messages([partition], ids=[statement_id])
    cut = Cut(thread=stored.thread, after_seq=0, first_seq=stored.seq, last_seq=stored.seq)
    archive.add_blocks(partition, [cut], recipe)  # left out where it is cut already
    (block,) = archive.blocks([partition], thread=stored.thread)
    return Stated(stored, block)


def closing(archive: Archive, stated: Stated, recipe: str) -> tuple[tuple[BlockSummary, ...], tuple[Work, ...]]:
    """Return index entry and work that close the block of a statement; none where the background was faster.

    Args:
        archive: The ledger.
        stated: The statement.
        recipe: Name of the way of summarising.
    """
    if archive.summaries([stated.block.partition], ids=[stated.block.block_id]):
        return (), ()
    return (stated.summary,), (stated.work(recipe),)


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
    governed: Governed = UNGOVERNED,
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
        governed: What it says of itself as governance has it.

    Raises:
        InputError: The statement is empty, or the importance is not between 0 and 1.
    """
    check_statement(content, importance)
    partition = shelf.partition
    twins = [
        m for m in archive.memories([partition], topics=[shelf.topic], statuses=["active"]) if m.content == content
    ]
    if twins:
        return twins[0]
    stated = state(archive, clock, partition, content, statement_id=new_id(), role="system", actor=actor, recipe=recipe)
    memory = Memory(
        memory_id=operation_id(shelf.to_json(), stated.message.message_id),
        partition=partition,
        topic=shelf.topic,
        content=content,
        **governed.fields(content, partition),
        kind="profile",
        evidence=(stated.evidence,),
        block_ids=(stated.block.block_id,),
        layer="long_term",
        importance=importance,
        language=language_of(content),
        source="tool-call",
        extractor=actor,
        said_at=stated.message.time,
        recorded_at=stated.message.time,
    )
    archive.commit(
        ChangeSet(
            operation_id=operation_id("state", memory.memory_id),
            actor=actor,
            recorded_at=stated.message.time,
            shelves=(shelf,),
            changes=(MemoryChange(memory=memory, expected_version=0, action="create"),),
            summaries=(stated.summary,),
            work=(stated.work(recipe),),
        )
    )
    return memory
