"""`kit.sources` and `kit.topics`: what was said, word for word; what memories are about, how they are linked, who reads a topic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, get_args

from remegraph.engine.retrieval.topic_agent import TopicAgent
from remegraph.engine.routes import self_topic, topic_graph
from remegraph.errors import InputError, NotFoundError
from remegraph.governance.versions import trace
from remegraph.importers.attachments import restored
from remegraph.kit.facade import Context, Facade, twin
from remegraph.kit.validation import actor_of, check_numbers, check_text, check_times, required
from remegraph.kit.write_buffers import ReviewBuffer
from remegraph.ledger.archive import Archive
from remegraph.ledger.permissions import GrantBook
from remegraph.models import (
    LIVE,
    Block,
    BlockSummary,
    ChangeSet,
    Explanation,
    Hit,
    Link,
    LinkType,
    Memory,
    MemoryMetadata,
    Partition,
    RecallFilter,
    Reviews,
    Scope,
    Shelf,
    StoredMessage,
    TopicGraph,
    TopicType,
)
from remegraph.models.skills import is_skill
from remegraph.models.standing import TOMBSTONES
from remegraph.ports import Search
from remegraph.retention.forgetting import retained
from remegraph.retention.working_memory import tier_of
from remegraph.skills.choice import figures

if TYPE_CHECKING:
    from remegraph.ports import RetrievalAgent

__all__ = ["Sources", "Topics", "explain", "held", "metadata", "tie"]


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
                raise InputError(f"The hit is a {message.kind}.", "Give a message; a memory has `block_ids`.")
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
            key_word: Text that the message contains; wildcards mean themselves.
            time_start: Said at this time or later.
            time_end: Said at this time or earlier.
            limit: At most this many.
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
        """Return the bytes of an attachment, unchanged.

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
        """Return messages with the bytes of their attachments in their places, as a chat model takes them.

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
    """Return the messages that their host still holds; of forgotten ones, only that they exist."""
    return tuple(message for message in messages if not message.dropped)


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


# ------------------------------------------------------------------------------------------- topics


class Topics(Facade):
    """The topic index, its graph, and the Sub Agents that read from it."""

    def list(self, *, scope: Scope) -> tuple[Shelf, ...]:
        """Return the topic index.

        Args:
            scope: Who asks.
        """
        archive = self._parts().archive
        return archive.topics(archive.visible(required(scope)))

    alist = twin(list)  # noqa: A003 - the verb above

    def graph(self, *, scope: Scope) -> TopicGraph:
        """Return the topics and their links, the agent's memory of itself at the centre (R5).

        Args:
            scope: Who asks.
        """
        archive = self._parts().archive
        partitions = archive.visible(required(scope))
        memories = archive.memories(partitions, statuses=sorted(LIVE))
        links = archive.links(partitions, [memory.memory_id for memory in memories])
        return topic_graph(self_topic(), (shelf.topic for shelf in archive.topics(partitions)), memories, links)

    agraph = twin(graph)

    def agent(self, topic: str, *, scope: Scope) -> TopicAgent:
        """Return the Sub Agent of a topic, to read from it by query or by time (R9): the one that `recall` asks, too.

        Args:
            topic: Its key, `type:name`.
            scope: Who asks.

        Raises:
            NotFoundError: The scope has no such topic.
            InputError: The key is no text.
        """
        check_text(topic=topic)
        parts = self._parts()
        for shelf in parts.archive.topics(parts.archive.visible(required(scope))):
            if shelf.topic.key.casefold() == topic.casefold():
                search = Search(query="", shelf=shelf, k=self._settings.recall.k)
                return TopicAgent(parts.archive, parts.searcher, search, parts.clock())
        raise NotFoundError(f"There is no topic {topic!r} here.")

    aagent = twin(agent)

    def register(self, key: str, agent: RetrievalAgent) -> None:
        """Let a custom Sub Agent retrieve from a topic, or from all topics of a type (R9).

        It reads its topic alone, and within what is asked; what it returns is held against the ledger, and what it raises
        is in `Recall.degraded`.

        Args:
            key: Topic key `type:name`, which need not exist yet, or a type.
            agent: Returns hits for a search.

        Raises:
            InputError: The key names neither a topic nor a type, or the agent cannot be called.
        """
        check_text(key=key)
        kind, named, name = key.strip().partition(":")
        if kind.casefold() not in get_args(TopicType) or (named and not name.strip()):
            types = ", ".join(get_args(TopicType))
            raise InputError(f"{key!r} names no topic.", f"Give `type:name`, or one of the types: {types}.")
        if not callable(agent):
            raise InputError(f"The agent is of type {type(agent).__name__}.", "Give a RetrievalAgent: it is called.")
        self._parts().agents[key.strip().casefold()] = agent

    def link(
        self,
        source_id: str,
        type: LinkType,  # noqa: A002 - as in a link
        target_id: str,
        *,
        scope: Scope,
        reason: str = "",
    ) -> Link:
        """State how one memory is linked to another; stating it again changes nothing. The journal records who did.

        Temporal recall follows `causes`, associative recall follows every type, and a contradiction brings its
        counterpart along.

        Args:
            source_id: From this memory: the cause, of `causes`.
            type: causes, depends_on, is_a, superset_of, related, contradicts or may_contradict.
            target_id: To this memory: the effect.
            scope: Whose memories both are.
            reason: Why they are linked.

        Returns:
            The link as it is now.

        Raises:
            InputError: The type is none of these, the memories are one, or something is no text.
            NotFoundError: There is no such memory, or it is not this user's.
        """
        check_text(source_id=source_id, target_id=target_id, reason=reason)
        if type not in get_args(LinkType):
            raise InputError(f"There is no type of link {type!r}.", f"Give one of {', '.join(get_args(LinkType))}.")
        parts = self._parts()
        return tie(
            parts.archive,
            parts.own(required(scope)),
            Link(source_id=source_id, type=type, target_id=target_id, reason=parts.redactor.text(reason)),
            actor=actor_of(scope),
            at_home=parts.at_home(scope),
            operation_id=self._context.new_id(),
            now=self._context.clock(),
        )

    alink = twin(link)


_STATED: frozenset[LinkType] = frozenset(get_args(LinkType)) - {"supersedes", "derived_from", "settled"}
"""The others say what a change did; stated by themselves they would be untrue."""


def tie(
    archive: Archive,
    partitions: Sequence[Partition],
    link: Link,
    *,
    actor: str,
    at_home: bool,
    operation_id: str,
    now: datetime,
) -> Link:
    """Record a link, through the one way to change; an existing one stays as it is.

    Args:
        archive: The ledger.
        partitions: Where both memories live.
        link: The link.
        actor: Who states it.
        at_home: Whether what all agents of the user own is theirs to change.
        operation_id: Names the operation.
        now: When.

    Raises:
        InputError: The type is none that can be stated, or the memories are one.
        NotFoundError: One of the memories is not there, or gone.
    """
    if link.type not in _STATED:
        raise InputError(
            f"A link of type {link.type} is made by the change that it describes.",
            f"Give one of {', '.join(sorted(_STATED))}; what replaces a memory, save.",
        )
    if link.source_id == link.target_id:
        raise InputError(f"Both ends are memory {link.source_id}.", "Name two memories.")
    ends = [link.source_id, link.target_id]
    found = archive.memories(partitions, ids=ends)
    there = {memory.memory_id for memory in found if memory.status not in {"deleted", *TOMBSTONES}}
    for end in ends:
        if end not in there:
            raise NotFoundError(f"There is no memory {end!r} here.")
    change = ChangeSet(operation_id=operation_id, actor=actor, recorded_at=now, at_home=at_home, links=(link,))
    archive.commit(change)
    stands = archive.links(partitions, [link.source_id], types=[link.type])
    return next(each for each in stands if each.target_id == link.target_id)
