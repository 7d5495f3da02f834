"""The reading half of the kit: recall, trace, and lists. No model is called and nothing is written."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar, cast, get_args

from pydantic import BaseModel

from remegraph.errors import InputError, NotFoundError
from remegraph.kit.base import Verbs, twin
from remegraph.kit.health import observed
from remegraph.kit.recall import recall_input, recalled
from remegraph.kit.tools import ToolMemory
from remegraph.kit.validation import check_numbers, check_text, check_times, required
from remegraph.models import (
    LIVE,
    Block,
    BlockSummary,
    Depth,
    Hit,
    Memory,
    MemoryMetadata,
    Partition,
    Profile,
    Recall,
    RecallFilter,
    RecallMode,
    Scope,
    Shelf,
    Status,
    StoredMessage,
    ToolStats,
    Topic,
    TopicGraph,
    TopicType,
    Trace,
    Work,
    WorkState,
)

if TYPE_CHECKING:
    from remegraph.engine.retrieval.hits import Found
    from remegraph.engine.retrieval.topic_agent import TopicAgent

__all__ = ["Lookup"]

S = TypeVar("S", bound=BaseModel)


class Lookup(Verbs):
    """The verbs of the kit that only read."""

    tools: ToolMemory
    embedder_name: str
    """Name of the embedder, as it is recorded with every vector."""

    @observed("recall")
    def recall(
        self,
        query: str,
        *,
        scope: Scope,
        k: int | None = None,
        depth: Depth = "memories",
        mode: RecallMode = "hybrid",
        time_start: datetime | None = None,
        time_end: datetime | None = None,
        topics: Sequence[str] | None = None,
        only: RecallFilter | None = None,
        without: Collection[str] = (),
        budget: int | None = None,
        brief: bool = False,
        asked_at: datetime | None = None,
        previous: str = "",
        task: str | None = None,
        review: bool = True,
    ) -> Recall:
        """Find what bears on a query. Calls no model and writes nothing.

        Args:
            query: A question, or any text.
            scope: Who asks.
            k: Hits of each kind; the policy's unless given.
            depth: How far to expand: memories, then index entries (blocks), then raw messages; or index entries alone
                (summaries), for an overview that costs few tokens and no memory's or message's words.
            mode: What counts: words and vectors (hybrid), or one of the other ways of `RecallMode`.
            time_start: Only what was said at this time or later.
            time_end: Only what was said at this time or earlier.
            topics: Only these topics, by key.
            only: Which memories may be returned: by type, tag, status, trust, and as of which time.
            without: Ids of raw messages that the caller has at hand, which need not be found again; nor does the context
                show what rests on them alone.
            budget: Tokens of the context; the policy's unless given.
            brief: Whether the context leaves out what it says already in other records, sentence by sentence, and what only
                asks the same, as a note for a model should.
            asked_at: When it is asked, for the times that it names ("last week") and the age of what is found; now unless
                given.
            previous: What was asked before it: a question that refers back ("and where was that?") is read with it.
            task: What is in mind for this task comes first in the context; see `sense`.
            review: Whether it strengthens the memories that it finds; pass False to try queries out.

        Raises:
            InputError: The query is empty, k or budget is not positive, the task is no text, or a time has no zone.
        """
        began = time.perf_counter()
        parts = self._open_parts()
        asked = recall_input(
            query,
            scope,
            k=k,
            depth=depth,
            mode=mode,
            time_range=(time_start, time_end),
            asked_at=parts.clock() if asked_at is None else asked_at,
            topics=topics,
            only=only,
            without=without,
            budget=budget,
            brief=brief,
            previous=previous,
            settings=self.settings,
            redact=parts.redactor.text,
            task=task,
            working=self._working,
            active=self._active.of,
        )
        with parts.archive.session():
            found = parts.retriever.invoke(asked, self._config())
        return self._recalled(recalled(asked, cast("Found", found), began), review=review)

    arecall = twin(recall)

    def trace(self, memory_id: str, *, scope: Scope) -> Trace:
        """Follow a memory down to the exact words that it came from.

        Args:
            memory_id: The memory: its id, or what a context calls it.
            scope: Who asks.

        Raises:
            NotFoundError: The scope sees no such memory.
            InputError: The id is no text.
        """
        from remegraph.engine.retrieval.hits import named
        from remegraph.kit.provenance import trace

        check_text(memory_id=memory_id)
        parts = self._open_parts()
        return trace(
            parts.archive, parts.grants, named(parts.archive, parts.grants, required(scope), memory_id), required(scope)
        )

    atrace = twin(trace)

    def topic_agent(self, topic: str, *, scope: Scope) -> TopicAgent:
        """Return the Sub Agent of a topic, to read from it by query or by time (R9): the one that `recall` asks, too.

        Args:
            topic: Its key, `type:name`.
            scope: Who asks.

        Raises:
            NotFoundError: The scope has no such topic.
            InputError: The key is no text.
        """
        from remegraph.engine.retrieval.topic_agent import TopicAgent
        from remegraph.ports import Search

        check_text(topic=topic)
        parts = self._open_parts()
        for shelf in parts.archive.topics(parts.archive.visible(required(scope))):
            if shelf.topic.key.casefold() == topic.casefold():
                search = Search(query="", shelf=shelf, k=self.settings.recall.k)
                return TopicAgent(parts.archive, parts.searcher, search, parts.clock())
        raise NotFoundError(f"There is no topic {topic!r} here.")

    atopic_agent = twin(topic_agent)

    def messages(self, thread: str = "main", *, scope: Scope) -> tuple[StoredMessage, ...]:
        """Return the raw messages of a thread, in the order of recording.

        Args:
            thread: The conversation.
            scope: Who asks; only what was said in this very scope.

        Raises:
            InputError: The thread is no text.
        """
        archive = self._open_parts().archive
        check_text(thread=thread)
        return _held(archive.messages([required(scope).partition()], thread=thread))

    amessages = twin(messages)

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
        archive = self._open_parts().archive
        check_text(block_id=block_id)
        visible = [each for each in archive.visible(required(scope)) if partition in {None, each}]
        blocks = archive.blocks(visible, ids=[block_id])
        if not blocks:
            raise NotFoundError(f"There is no block {block_id!r} here.")
        block = min(blocks, key=lambda each: visible.index(each.partition))  # the scope's own partition comes first
        return _held(
            archive.messages([block.partition], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq)
        )

    aretrieve_block = twin(retrieve_block)

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
        archive, visible = self._open_parts().archive, self._open_parts().archive.visible(required(scope))
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
        archive = self._open_parts().archive
        if key_word is not None and not isinstance(key_word, str):
            raise InputError(f"key_word is of type {type(key_word).__name__}.", "Give text.")
        key_word = key_word and self._open_parts().redactor.text(key_word)
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
        archive = self._open_parts().archive
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
        return _held(found.values())

    atime_match_memories = twin(time_match_memories)

    def metadata(self, memory_id: str, *, scope: Scope) -> MemoryMetadata:
        """Return what is known about a memory beside what it says: source, voice, accesses, sentiment (F8).

        Args:
            memory_id: The memory.
            scope: Who asks.

        Raises:
            NotFoundError: The scope sees no such memory.
            InputError: The id is no text.
        """
        from remegraph.kit.provenance import metadata

        check_text(memory_id=memory_id)
        parts = self._open_parts()
        return metadata(parts.archive, parts.grants, self._reviews, memory_id, required(scope))

    ametadata = twin(metadata)

    def topics(self, *, scope: Scope) -> tuple[Shelf, ...]:
        """Return the topic index.

        Args:
            scope: Who asks.
        """
        archive = self._open_parts().archive
        return archive.topics(archive.visible(required(scope)))

    atopics = twin(topics)

    def topic_graph(self, *, scope: Scope) -> TopicGraph:
        """Return the topics and what ties them together, the agent's memory of itself at the centre (R5).

        Args:
            scope: Who asks.
        """
        from remegraph.engine.routes import self_topic, topic_graph

        archive = self._open_parts().archive
        partitions = archive.visible(required(scope))
        memories = archive.memories(partitions, statuses=sorted(LIVE))
        links = archive.links(partitions, [memory.memory_id for memory in memories])
        return topic_graph(self_topic(), (shelf.topic for shelf in archive.topics(partitions)), memories, links)

    atopic_graph = twin(topic_graph)

    def memories(
        self,
        *,
        scope: Scope,
        topic: str | None = None,
        statuses: Sequence[Status] | None = None,
        limit: int | None = None,
    ) -> tuple[Memory, ...]:
        """Return memories in their head version, newest first.

        Args:
            scope: Who asks.
            topic: Only of this topic, by key.
            statuses: Only in these statuses; any unless given.
            limit: So many at most; all unless given.

        Raises:
            InputError: The limit is not positive, or the topic is no text.
        """
        check_numbers(least=1, whole=True, limit=limit)
        archive = self._open_parts().archive
        partitions = archive.visible(required(scope))
        asked = None
        if topic is not None:
            check_text(topic=topic)
            asked = [
                shelf.topic for shelf in archive.topics(partitions) if shelf.topic.key.casefold() == topic.casefold()
            ]
            if not asked:
                return ()
        return archive.memories(partitions, topics=asked, statuses=statuses, limit=limit)

    amemories = twin(memories)

    def profile(self, schema: type[S], *, scope: Scope, topic: str | None = None) -> Profile[S]:
        """Return what a topic knows as a pydantic model: each field with its words, its history, and what is unknown.

        Any model will do; models that conversations shall fill are named in `ExtractionPolicy.schemas`. What stands in a
        slot and is no value of its field now is told as unknown, with the reason and its words.

        Args:
            schema: The model. Its fields are slots of the topic, by their names and aliases; of a list, each item is a
                memory of its own.
            scope: Who asks.
            topic: Key of the topic, `type:name`, as in task:atlas; the scope's user unless given.

        Raises:
            InputError: The model cannot be a schema, or the key names no topic.
        """
        from remegraph.engine.schemas import profile

        parts = self._open_parts()
        key = topic or f"personal:{required(scope).user}"
        check_text(topic=key)
        kind, _, name = key.partition(":")
        if kind not in get_args(TopicType) or not name.strip():
            raise InputError(f"{key!r} names no topic.", "Write it as type:name, as in task:atlas.")
        asked = Topic(type=cast("TopicType", kind), target_name=name)
        return profile(parts.archive, required(scope), schema, asked, self._clock())

    aprofile = twin(profile)

    def blocks(self, *, scope: Scope) -> tuple[BlockSummary, ...]:
        """Return the block index, oldest first.

        Args:
            scope: Who asks.
        """
        archive = self._open_parts().archive
        return archive.summaries(archive.visible(required(scope)))

    ablocks = twin(blocks)

    def tool_stats(self, *, scope: Scope) -> tuple[ToolStats, ...]:
        """Return the statistics of the tools that were called; see `tools.stats`.

        Args:
            scope: Who asks.
        """
        return self.tools.stats(scope=scope)

    atool_stats = twin(tool_stats)

    def work(self, *, scope: Scope, states: Sequence[WorkState] = ("pending", "failed", "review")) -> tuple[Work, ...]:
        """Return work that is not simply done: pending blocks, failed topics, what a person should look at.

        Args:
            scope: Who asks.
            states: The states wanted.
        """
        archive = self._open_parts().archive
        return archive.work(archive.visible(required(scope)), states=states, recipe=self.settings.summary.recipe)

    awork = twin(work)

    def _recalled(self, recall: Recall, *, review: bool) -> Recall:
        self.health.count("recalls")
        if recall.degraded:
            self.health.count("recalls_degraded")
        own = [hit for hit in recall.memories if not hit.granted]  # to read is not to strengthen what another one knows
        if review and self._reviews.note(own, self._clock()):
            self._write_noted_soon()
        return recall


def _held(messages: Iterable[StoredMessage]) -> tuple[StoredMessage, ...]:
    """Return the messages that their host still holds; of those that were forgotten, that there is one."""
    return tuple(message for message in messages if not message.dropped)
