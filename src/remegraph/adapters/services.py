"""The services of the MEK protocol (sections 2.1.5 and 2.3): its interfaces as it writes them, over a kit and a scope (K6)."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from inspect import signature
from typing import Any, get_args

from pydantic import Field

from remegraph.errors import InputError, NotFoundError
from remegraph.kit import MemoryKit, SaveOptions
from remegraph.kit.facade import twin
from remegraph.kit.validation import required
from remegraph.mek.items import read_item
from remegraph.models import (
    Hit,
    ImportanceLevel,
    KnowledgeItem,
    MemoryItem,
    RecallFilter,
    SaveResult,
    Scope,
    Standing,
    in_english,
)
from remegraph.models.base import AwareTime, Record, Text, Token, encodable
from remegraph.models.forms import importance_of

__all__ = [
    "BaseMemoryService",
    "KnowledgeExchange",
    "KnowledgeService",
    "MemoryService",
    "RetrievalOptions",
    "RetrievalType",
    "RetrievedItem",
]

_RARE = frozenset(each.name for each in fields(SaveOptions))
_OF_STATEMENTS = _RARE | frozenset(signature(MemoryKit.save).parameters) - {"self", "scope", "options"}


class RetrievalType(StrEnum):
    """How memories are searched for (section 2.1.4)."""

    EXACT = "exact"
    SEMANTIC = "semantic"
    TEMPORAL = "temporal"
    ASSOCIATIVE = "associative"


class RetrievalOptions(Record):
    """Further options. The protocol leaves its fields open."""

    limit: int = Field(default=10, ge=1, description="So many items at most.")
    time_start: AwareTime | None = Field(default=None, description="Only what was said at this time or later.")
    time_end: AwareTime | None = Field(default=None, description="Only what was said at this time or earlier.")
    tags: tuple[Token, ...] = Field(default=(), description="Only memories with one of these tags.")
    min_trust: float | None = Field(
        default=None, ge=0, le=1, description="Only memories that are trusted at least so far."
    )


class RetrievedItem(MemoryItem):
    """An item that was found, and what is known about it (section 2.1.4: metadata annotation)."""

    score: float = Field(description="The higher the better; comparable within one retrieval.")
    confidence: float | None = Field(
        default=None, ge=0, le=1, description="How sure it is that it holds; none where it was asked for by its id."
    )
    standing: Standing = Field(default="current", description="current, expired or superseded.")
    summary: Text = Field(default="", description="What it says, in short.")

    @property
    def item(self) -> MemoryItem:
        """The item alone."""
        return MemoryItem.model_validate({name: getattr(self, name) for name in MemoryItem.model_fields})


class BaseMemoryService(ABC):
    """The one interface of a memory system (section 2.3)."""

    @abstractmethod
    def add(self, input_data: str | dict[str, Any], **kwargs: Any) -> list[str]:
        """Add a memory: perceive, understand, store, with conflicts found and knowledge merged.

        Args:
            input_data: Raw data, or what another agent shared.
            kwargs: What else is known of it.

        Returns:
            Ids of the memories that are new or were updated.
        """

    @abstractmethod
    def retrieve(self, query: str, retrieval_type: RetrievalType, options: RetrievalOptions) -> list[MemoryItem]:
        """Return the memories that bear on a query, the best first.

        Args:
            query: What is searched for.
            retrieval_type: How.
            options: What else is asked for.
        """

    @abstractmethod
    def delete(self, memory_id: str) -> bool:
        """Delete a memory; return whether there was one.

        Args:
            memory_id: The memory.
        """

    @abstractmethod
    def update(self, memory_item: MemoryItem) -> str:
        """Update the memory of an item's id, or add the item; return the id of the memory.

        Args:
            memory_item: What it says from now on.
        """


class KnowledgeService(ABC):
    """How knowledge goes from agent to agent (section 2.1.5)."""

    @abstractmethod
    def share(self, query: str, context: dict[str, object] | None = None) -> list[KnowledgeItem]:
        """Return what is known about a query as knowledge that may leave: retrieved, extracted, standardised.

        Args:
            query: What is asked for.
            context: What else is known of the request.
        """

    @abstractmethod
    def absorb(self, knowledge_items: list[KnowledgeItem]) -> list[str]:
        """Make memories of knowledge, with conflicts found and resolved; return ids of those new or updated.

        Args:
            knowledge_items: What others shared.
        """


class KnowledgeExchange(KnowledgeService):
    """Shares and absorbs for one scope, by `kit.knowledge`.

    Args:
        kit: The memory.
        scope: Who shares and absorbs; it names the agent.
    """

    def __init__(self, kit: MemoryKit, scope: Scope) -> None:
        self._kit = kit
        self._scope = required(scope)

    def share(self, query: str, context: dict[str, object] | None = None) -> list[KnowledgeItem]:
        """Return knowledge for other agents; `kit.knowledge.share` also says what was held back, and why."""
        return list(self._kit.knowledge.share(query, scope=self._scope, context=context).items)

    ashare = twin(share)

    def absorb(self, knowledge_items: list[KnowledgeItem]) -> list[str]:
        """Take in what others shared; `kit.knowledge.absorb` also says what became of each item."""
        return list(self._kit.knowledge.absorb(knowledge_items, scope=self._scope).memory_ids)

    aabsorb = twin(absorb)


class MemoryService(BaseMemoryService):
    """Remembers for one scope; nothing that it is given leads out of it.

    Args:
        kit: The memory.
        scope: Whose memory.
    """

    def __init__(self, kit: MemoryKit, scope: Scope) -> None:
        self._kit = kit
        self._scope = required(scope)

    def add(self, input_data: str | dict[str, Any] | MemoryItem | KnowledgeItem, **kwargs: Any) -> list[str]:
        """Remember a statement, an item, knowledge of another agent, or what a conversation teaches.

        A text is a statement; so is a mapping with `content` alone, and what else `kit.save` takes. `memory_type` makes
        it a memory item, `knowledge_id` a knowledge item, and `messages` a conversation. Chinese names are read, too.

        Args:
            input_data: One of these.
            kwargs: Fields that the input does not have.

        Returns:
            Ids of the memories that are new, or have a new version: first that which holds it, then those that it
            replaces or contradicts. None where all is known already.

        Raises:
            InputError: It is none of these, a field cannot be used, or it was refused.
            ConflictError: Other changes came first, again and again.
        """
        if isinstance(input_data, KnowledgeItem):
            return self._knowledge(input_data)
        if isinstance(input_data, MemoryItem):
            return _changed(self._kit.forms.add(input_data, scope=self._scope))
        given = {"content": input_data} if isinstance(input_data, str) else _fields(input_data)
        if twice := sorted(given.keys() & kwargs.keys()):
            raise InputError(f"{twice[0]} is given twice.", "Give it in the input, or beside it.")
        given |= kwargs
        for key, take in self._takers().items():
            if key in given:
                return take(given)
        raise InputError(
            "The input holds nothing to remember.",
            "Give text, or a mapping with content, memory_type, knowledge_id or messages.",
        )

    async def aadd(self, input_data: str | dict[str, Any] | MemoryItem | KnowledgeItem, **kwargs: Any) -> list[str]:
        """Remember; see `add`."""
        return await asyncio.to_thread(self.add, input_data, **kwargs)

    def retrieve(self, query: str, retrieval_type: RetrievalType, options: RetrievalOptions) -> list[MemoryItem]:
        """Return the memories that bear on a query, the best first; of temporal retrieval, in the order of time.

        No model is called. What is exactly the id of a memory finds that memory.

        Args:
            query: What is searched for.
            retrieval_type: exact, semantic, temporal or associative.
            options: How many, and which.

        Raises:
            InputError: The query is empty, or there is no such type.
        """
        kind = _retrieval_type(retrieval_type)
        if not isinstance(options, RetrievalOptions):
            raise InputError(f"options is of type {type(options).__name__}.", "Give RetrievalOptions.")
        found = self._kit.recall(
            query,
            scope=self._scope,
            k=options.limit,
            mode=kind.value,
            time_start=options.time_start,
            time_end=options.time_end,
            only=RecallFilter(tags=options.tags, min_trust=options.min_trust),
        ).memories
        hits = {hit.record_id: hit for hit in found}
        named = [query] if kind is RetrievalType.EXACT and encodable(query) and "\x00" not in query else []
        items = self._kit.forms.view([*named, *hits], scope=self._scope)
        retrieved: list[MemoryItem] = [_retrieved(item, hits.get(item.memory_id)) for item in items]
        return retrieved[: options.limit]

    aretrieve = twin(retrieve)

    def delete(self, memory_id: str) -> bool:
        """Take a memory back: it is not recalled any more, its versions stay. Others' memories are never found.

        Args:
            memory_id: The memory.

        Raises:
            InputError: The id is no text.
        """
        try:
            self._kit.forget(memory_id, scope=self._scope)
        except NotFoundError:
            return False
        return True

    adelete = twin(delete)

    def update(self, memory_item: MemoryItem) -> str:
        """Let a memory say what its item says; an id that is not here is not taken over: the item gets one of ours.

        Args:
            memory_item: The item.

        Raises:
            InputError: The item says nothing, the memory does not hold now, or a memory that it names is not here.
            ConflictError: Other changes came first, again and again, or another memory says the same.
        """
        return self._kit.forms.update(memory_item, scope=self._scope).memory_id

    aupdate = twin(update)

    # ------------------------------------------------------------------------------------------- inside

    def _takers(self) -> Mapping[str, Callable[[dict[str, Any]], list[str]]]:
        """Return the receiver, by the field that names it; the first that is there counts."""
        return {
            "knowledge_id": self._knowledge,
            "memory_type": lambda given: _changed(self._kit.forms.add(given, scope=self._scope)),
            "messages": self._conversation,
            "content": self._statement,
        }

    def _knowledge(self, given: KnowledgeItem | dict[str, Any]) -> list[str]:
        return KnowledgeExchange(self._kit, self._scope).absorb([read_item(given, KnowledgeItem)])

    def _statement(self, given: dict[str, Any]) -> list[str]:
        if unknown := sorted(given.keys() - _OF_STATEMENTS):
            raise InputError(f"A statement has no {unknown[0]}.", f"Give {', '.join(sorted(_OF_STATEMENTS))}.")
        if given.get("importance") in get_args(ImportanceLevel):
            given = given | {"importance": importance_of(given["importance"])}
        told = {name: value for name, value in given.items() if name not in _RARE}
        options = SaveOptions(**{name: value for name, value in given.items() if name in _RARE})
        return _changed(self._kit.save(**{"key": "", **told}, scope=self._scope, options=options))

    def _conversation(self, given: dict[str, Any]) -> list[str]:
        """Record a conversation and learn from it, and from what waited before it."""
        if unknown := sorted(given.keys() - {"messages", "thread", "timezone"}):
            raise InputError(f"A conversation has no {unknown[0]}.", "Give messages, thread and timezone.")
        self._kit.add_messages(**given, scope=self._scope)
        return list(self._kit.summarize(scope=self._scope, close=True).memory_ids)


def _fields(given: object) -> dict[str, Any]:
    """Return the fields of an input, by their English names.

    Raises:
        InputError: It is no mapping, or a field is given twice.
    """
    if not isinstance(given, Mapping):
        raise InputError(f"The input is of type {type(given).__name__}.", "Give text, a mapping or an item.")
    try:
        return dict(in_english(given))
    except ValueError as error:
        raise InputError(f"The input cannot be used: {error}.", "Name each field once.") from error


def _retrieval_type(given: str) -> RetrievalType:
    try:
        return RetrievalType(given)
    except ValueError as error:
        known = ", ".join(RetrievalType)
        raise InputError(f"There is no retrieval type {given!r}.", f"Give one of {known}.") from error


def _changed(result: SaveResult) -> list[str]:
    """Return the memories that a statement made or changed.

    Raises:
        InputError: It was refused.
    """
    if result.memory is None:
        raise InputError(f"It was not taken up: {result.reason}", "Say it in other words, or leave it.")
    return [*dict.fromkeys((result.memory.memory_id, *result.superseded, *result.contradicts))]


def _retrieved(item: MemoryItem, hit: Hit | None) -> RetrievedItem:
    """Return an item with what is known of it; one that was asked for by its id is certain to be meant."""
    fields = {name: getattr(item, name) for name in MemoryItem.model_fields}
    known: dict[str, object] = {"score": 1.0}
    if hit is not None:
        known = {"score": hit.score, "confidence": hit.confidence, "standing": hit.standing, "summary": hit.summary}
    return RetrievedItem.model_validate(fields | known)
