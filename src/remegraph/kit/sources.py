"""`kit.sources`: what was said, word for word; and what each memory comes from, by words, blocks and versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from remegraph.engine.retrieval.hits import known_by
from remegraph.errors import InputError, NotFoundError
from remegraph.importers.attachments import restored
from remegraph.kit.context import Context, Facade, twin
from remegraph.kit.validation import check_numbers, check_text, check_times, required
from remegraph.kit.write_buffers import ReviewBuffer
from remegraph.ledger.archive import Archive
from remegraph.ledger.grants import GrantBook
from remegraph.models import (
    FORGOTTEN,
    Block,
    BlockSummary,
    Explanation,
    Hit,
    Memory,
    MemoryMetadata,
    Partition,
    RecallFilter,
    Reviews,
    Scope,
    StoredMessage,
    Trace,
)
from remegraph.models.quotes import quoted
from remegraph.models.skills import is_skill
from remegraph.models.standing import TOMBSTONES
from remegraph.retention.forgetting import retained
from remegraph.retention.working_memory import tier_of
from remegraph.skills.choice import figures

__all__ = ["Sources", "explain", "held", "metadata", "trace"]


class Sources(Facade):
    """Reads the ledger. No model is called, and nothing is written."""

    def blocks(self, *, scope: Scope) -> tuple[BlockSummary, ...]:
        """Return the block index, oldest first.

        Args:
            scope: Who asks.
        """
        archive = self._parts().archive
        return archive.summaries(archive.visible(required(scope)))

    ablocks = twin(blocks)

    def block_of(
        self, message: StoredMessage | Hit | str, *, scope: Scope, partition: Partition | None = None
    ) -> Block | None:
        """Return the block that holds a message: of several that overlap, the one where it was new.

        Args:
            message: The message, a hit, or its id.
            scope: Who asks.
            partition: Where the message lives; of an id, the scope's own partition comes first unless given.

        Returns:
            The block; None while the message waits for one.

        Raises:
            NotFoundError: The scope sees no such message.
            InputError: It is no message, hit of one, or id.
        """
        archive, visible = self._parts().archive, self._parts().archive.visible(required(scope))
        if isinstance(message, StoredMessage | Hit):
            if isinstance(message, Hit) and message.kind != "message":
                raise InputError(f"The hit is a {message.kind}.", "Give a message; a memory tells its `block_ids`.")
            partition = message.partition
        found = message.message_id if isinstance(message, StoredMessage) else message
        message_id = found.record_id if isinstance(found, Hit) else found
        check_text(message=message_id)
        rows = archive.messages([each for each in visible if partition in {None, each}], ids=[message_id])
        if not rows:
            raise NotFoundError(f"There is no message {message_id!r} here.")
        row = min(rows, key=lambda each: visible.index(each.partition))
        return archive.blocks_of({row.partition: [row.seq]}).get((row.partition, row.seq))

    ablock_of = twin(block_of)

    def retrieve_block(
        self, block_id: str, *, scope: Scope, partition: Partition | None = None
    ) -> tuple[StoredMessage, ...]:
        """Return the raw messages of a block.

        Args:
            block_id: Its label, which is unique in its partition.
            scope: Who asks.
            partition: Where the block lives, as on its hit or entry; unless given, the scope's own block is meant where
                a wider partition has one of the same label.

        Raises:
            NotFoundError: The scope has no such block.
            InputError: The label is no text.
        """
        archive = self._parts().archive
        check_text(block_id=block_id)
        visible = [each for each in archive.visible(required(scope)) if partition in {None, each}]
        blocks = archive.blocks(visible, ids=[block_id])
        if not blocks:
            raise NotFoundError(f"There is no block {block_id!r} here.")
        block = min(blocks, key=lambda each: visible.index(each.partition))  # the scope's own partition comes first
        return held(
            archive.messages([block.partition], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq)
        )

    aretrieve_block = twin(retrieve_block)

    def retrieve_message(
        self,
        key_word: str | None = None,
        time_start: datetime | None = None,
        time_end: datetime | None = None,
        limit: int = 50,
        *,
        scope: Scope,
    ) -> tuple[StoredMessage, ...]:
        """Return raw messages that hold a literal text and were said in a time range.

        Args:
            key_word: Text that stands in the message; wildcards mean themselves.
            time_start: Said at this time or later.
            time_end: Said at this time or earlier.
            limit: At most so many.
            scope: Who asks.

        Raises:
            InputError: The key word is no text, the limit is not positive, or a time has no zone.
        """
        archive = self._parts().archive
        if key_word is not None and not isinstance(key_word, str):
            raise InputError(f"key_word is of type {type(key_word).__name__}.", "Give text.")
        key_word = key_word and self._parts().redactor.text(key_word)
        check_numbers(least=1, whole=True, limit=limit)
        check_times(time_start=time_start, time_end=time_end)
        found = archive.messages(
            archive.visible(required(scope)), key_word=key_word, time_start=time_start, time_end=time_end, limit=limit
        )
        return tuple(message for message in found if not message.hidden)

    aretrieve_message = twin(retrieve_message)

    def time_match_memories(self, time_range: tuple[datetime, datetime], *, scope: Scope) -> tuple[StoredMessage, ...]:
        """Return the raw messages of all blocks that a time range touches.

        Args:
            time_range: Start and end.
            scope: Who asks.

        Raises:
            NaiveTimeError: A time has no zone.
        """
        archive = self._parts().archive
        start, end = time_range
        check_times(time_start=start, time_end=end)
        blocks = archive.blocks(archive.visible(required(scope)), time_start=start, time_end=end)
        found = {
            (message.partition, message.seq): message
            for block in blocks
            for message in archive.messages(
                [block.partition], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq
            )
        }
        return held(found.values())

    atime_match_memories = twin(time_match_memories)

    def attachment(self, sha256: str, *, scope: Scope) -> bytes:
        """Return the bytes of an attachment, to the letter.

        Args:
            sha256: As `Message.attachments` names it.
            scope: Who asks; some message that it sees must have come with these bytes.

        Raises:
            NotFoundError: None did.
            SetupError: One did, and the bytes are lost or damaged.
            ScopeError: The scope is missing.
        """
        check_text(sha256=sha256)
        archive = self._parts().archive
        data = archive.attachments.get(archive.visible(required(scope)), sha256)
        if data is None:
            raise NotFoundError(f"There is no attachment {sha256!r} here.")
        return data

    aattachment = twin(attachment)

    def with_attachments(self, messages: Iterable[StoredMessage], *, scope: Scope) -> tuple[StoredMessage, ...]:
        """Return messages with the bytes of their attachments where they stood, as a chat model takes them.

        Args:
            messages: Messages of the ledger.
            scope: Who asks; what it cannot read stays a reference.

        Raises:
            SetupError: Bytes are lost or damaged.
            ScopeError: The scope is missing.
        """
        archive = self._parts().archive
        partitions = archive.visible(required(scope))

        def read(sha256: str) -> bytes | None:
            return archive.attachments.get(partitions, sha256)

        return tuple(
            message.model_copy(update={"content": restored(message.content, read)}) if message.attachments else message
            for message in messages
        )

    awith_attachments = twin(with_attachments)


def held(messages: Iterable[StoredMessage]) -> tuple[StoredMessage, ...]:
    """Return the messages that their host still holds; of those that were forgotten, that there is one."""
    return tuple(message for message in messages if not message.dropped)


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


def metadata(archive: Archive, grants: GrantBook, buffer: ReviewBuffer, memory_id: str, scope: Scope) -> MemoryMetadata:
    """Return a memory's metadata; reviews that are not written down yet count.

    Raises:
        NotFoundError: The scope sees no such memory.
    """
    partitions = archive.visible(scope)
    found = archive.memories(partitions, ids=[memory_id]) or grants.memories(scope, [memory_id])
    if not found:
        raise NotFoundError(f"There is no memory {memory_id!r} here.")
    memory = found[0]
    written = archive.reviews([memory.partition], [memory_id]).get((memory.partition, memory_id), Reviews())
    counted = written.noted(review for review in buffer.waiting(memory_id) if review.partition == memory.partition)
    return MemoryMetadata(
        memory_id=memory_id,
        memory_type=memory.category,
        source_session_id=_session(archive, memory, scope),
        source_agent_id=memory.partition.agent or "",
        access_count=counted.count,
        last_accessed_at=counted.last,
        utility_score=counted.utility,
        sentiment=_sentiment(memory),
        source=memory.source,
        perspective=memory.perspective,
        extractor_model_id=memory.extractor,
        previous_version_id=_previous(memory),
    )


def _session(archive: Archive, memory: Memory, scope: Scope) -> str:
    """Return the session that was named when it was saved, else the thread of the words that it came from first."""
    named = memory.payload.get("session") if isinstance(memory.payload, dict) else None
    if named:
        return str(named)
    first = [item.message_id for item in memory.evidence[:1]]
    said = archive.messages(archive.visible(scope), ids=first) if first else ()
    return said[0].thread if said else ""


def _sentiment(memory: Memory) -> float | None:
    """Return what a model or a caller gave."""
    given = memory.payload.get("sentiment") if isinstance(memory.payload, dict) else None
    return max(-1.0, min(1.0, float(given))) if isinstance(given, int | float) else None


def _previous(memory: Memory) -> str | None:
    if memory.version > 1:
        return f"{memory.memory_id}@{memory.version - 1}"
    return memory.supersedes[0] if memory.supersedes else None


def explain(
    context: Context,
    memory_id: str,
    scope: Scope,
    *,
    at: datetime | None,
    known_at: datetime | None,
    true_at: datetime | None,
) -> Explanation:
    """Return which layer a memory is in, when it will be forgotten and why, and where it came from; see `MemoryKit.explain`."""
    check_text(memory_id=memory_id)
    check_times(at=at, known_at=known_at, true_at=true_at)
    parts = context.parts()
    as_of = RecallFilter(known_at=known_at, true_at=true_at)
    found = trace(parts.archive, parts.grants, memory_id, required(scope), as_of)
    when = at or known_at or context.clock()
    (fading,) = retained(parts.archive, [found.memory], context.lifecycle_of, context.reviews.accesses())
    then = fading.until(when)
    return Explanation(
        memory=found.memory,
        layer=found.memory.layer,
        tier=tier_of(
            found.memory,
            active=memory_id in {memory.memory_id for memory in context.active.of(scope)},
            derived=any(link.type == "derived_from" and link.source_id == memory_id for link in found.links),
        ),
        status=found.memory.status,
        weight=then.weight(when),
        forget_at=then.forget_at(),
        reviews=tuple(review.at for review in then.life.reviews),
        uses=tuple(review.at for review in then.life.reviews if review.used),
        skill=figures(parts.archive, [found.memory])[0] if is_skill(found.memory) else None,
        trace=found,
    )
