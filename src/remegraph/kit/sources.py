"""`kit.sources`: what was said, word for word: raw messages, their blocks, and what they came with."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from remegraph.errors import InputError, NotFoundError
from remegraph.importers.attachments import restored
from remegraph.kit.context import Facade, twin
from remegraph.kit.validation import check_numbers, check_text, check_times, required
from remegraph.models import Block, BlockSummary, Hit, Partition, Scope, StoredMessage

__all__ = ["Sources", "held"]


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
