"""`kit.topics`: what memories are about, how they are tied, and who reads a topic."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, get_args

from remegraph.engine.retrieval.topic_agent import TopicAgent
from remegraph.engine.routes import self_topic, topic_graph
from remegraph.errors import InputError, NotFoundError
from remegraph.kit.context import Facade, twin
from remegraph.kit.validation import actor_of, check_text, required
from remegraph.models import LIVE, ChangeSet, Link, LinkType, Partition, Scope, Shelf, TopicGraph, TopicType
from remegraph.models.standing import TOMBSTONES
from remegraph.ports import Search

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive
    from remegraph.ports import RetrievalAgent

__all__ = ["Topics", "tie"]


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
        """Return the topics and what ties them together, the agent's memory of itself at the centre (R5).

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
        stands in `Recall.degraded`.

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
        """State how one memory is tied to another; stating it again changes nothing. The journal tells who did.

        Temporal recall follows `causes`, associative recall follows every type, and a contradiction brings its
        counterpart along.

        Args:
            source_id: From this memory: the cause, of `causes`.
            type: causes, depends_on, is_a, superset_of, related, contradicts or may_contradict.
            target_id: To this memory: the effect.
            scope: Whose memories both are.
            reason: Why they are tied.

        Returns:
            The link as it stands.

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
    """Record a link, through the one door for change; one that is there already stays as it is.

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
            f"A link of type {link.type} is made by the change that it tells of.",
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
