"""The kit for chains of LangChain: as a retriever, and as a chat message history."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, messages_from_dict
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, set_config_context
from pydantic import ConfigDict, Field

from remegraph.adapters.scopes import ScopeSource, asked_now, check_surface, memory_mode, resolve_scope
from remegraph.engine.retrieval.context import source_of
from remegraph.importers.messages import to_langchain_dict
from remegraph.kit import MemoryKit
from remegraph.kit.facade import twin
from remegraph.kit.validation import check_choice, check_numbers
from remegraph.models import Depth, Hit, InjectionLayer, Scope

__all__ = ["MemoryRetriever", "MessageHistory"]


class MemoryRetriever(BaseRetriever):
    """Finds memories as documents, best first; none in a run whose memory is "off". No model is called.

    A document's metadata holds `id`, `kind`, `score`, `why`, `time`, `age` (seconds), `trust`, `confidence`, `standing`
    (current, expired or superseded), `topic`, `layer`, `status`, `block_ids`, `evidence` (message ids and quotes), and
    `degraded`: what could not be used. When embedder or index fail, what SQL
    finds is returned. `rule` is how binding a policy is. Where the agent's settings say `injection="layers"`, core rules
    and what applies here come first, and `injected` says the layer: core, scope or query.

    Args:
        kit: The memory.
        scope: Whose memory, or what all calls have in common; see `resolve_scope` for what a run may say.
        k: How many documents; `invoke(query, k=...)` overrides it.
        mode: What documents are: memories, index entries of blocks (`summaries` searches nothing else), or raw messages.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    kit: MemoryKit = Field(exclude=True, repr=False)
    scope: Scope | ScopeSource | None = None
    k: int = Field(default=10, ge=1)
    mode: Depth = "memories"

    def __init__(
        self,
        kit: MemoryKit,
        *,
        scope: Scope | ScopeSource | None = None,
        k: int = 10,
        mode: Depth = "memories",
        **fields: Any,
    ) -> None:
        check_surface(kit, scope)
        check_numbers(least=1, whole=True, k=k)
        check_choice(Depth, mode=mode)
        fields |= {"kit": kit, "scope": scope, "k": k, "mode": mode}
        super().__init__(**fields)

    def invoke(
        self,
        input: str,  # noqa: A002 - the base class names it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the documents for a query.

        Args:
            input: The query.
            config: May name the user, under `configurable`.
            kwargs: `k`: how many.
        """
        with set_config_context(ensure_config(config)) as context:
            return context.run(super().invoke, input, config, **kwargs)

    async def ainvoke(
        self,
        input: str,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the documents for a query; see `invoke`."""
        with set_config_context(ensure_config(config)) as context:
            return await asyncio.create_task(super().ainvoke(input, config, **kwargs), context=context)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - the base class names it
        k: int | None = None,
    ) -> list[Document]:
        return self._found(query, resolve_scope(self.scope), self.k if k is None else k)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002
        k: int | None = None,
    ) -> list[Document]:
        return await self._afound(query, resolve_scope(self.scope), self.k if k is None else k)

    def _get_ls_params(self, **_kwargs: Any) -> LangSmithRetrieverParams:
        return LangSmithRetrieverParams(
            ls_retriever_name="remegraph",
            ls_vector_store_provider="chroma",
            ls_embedding_model=self.kit.context.parts().embedder.name,
        )

    def _found(self, query: str, scope: Scope, k: int) -> list[Document]:
        if memory_mode() == "off":
            return []
        wanted, now = self.kit.settings.for_agent(scope.agent).retrieval, asked_now(self.kit)
        if wanted.injection == "layers":
            given = self.kit.inject(
                query, scope=scope, workspace=wanted.workspace, depth=self.mode, always=True, asked_at=now
            )
            return [_document(each.hit, given.degraded, each.layer) for each in given.shown][:k]
        recall = self.kit.recall(query, scope=scope, k=k, depth=self.mode, asked_at=now)
        hits = {"memories": recall.memories, "messages": recall.messages}.get(self.mode, recall.blocks)
        return [_document(hit, recall.degraded) for hit in hits]

    _afound = twin(_found)


def _document(hit: Hit, degraded: tuple[str, ...], injected: InjectionLayer = "query") -> Document:
    return Document(
        page_content=hit.text,
        id=hit.record_id,
        metadata={
            "id": hit.record_id,
            "kind": hit.kind,
            "score": hit.score,
            "why": hit.why,
            "time": hit.time.isoformat(),
            "age": hit.age.total_seconds(),
            "trust": hit.trust,
            "confidence": hit.confidence,
            "standing": hit.standing,
            "topic": hit.topic,
            "layer": hit.layer,
            "status": hit.status,
            "block_ids": list(hit.block_ids),
            "evidence": [item.model_dump() for item in hit.evidence],
            "degraded": list(degraded),
            "injected": injected,
            "rule": hit.enforcement,
            "from": source_of(hit.origin, None),
        },
    )


_CLEARED = "remegraph_cleared"
"""Key in `Message.extra` of the empty message that `clear` records."""


class MessageHistory(BaseChatMessageHistory):
    """The messages of one thread, in the ledger: durable, lossless, and summarised like all others.

    `clear` deletes nothing. It records a mark, and what comes before the mark is not shown any more; it stays in the
    ledger, and so do the memories made from it.

    Args:
        kit: The memory.
        scope: Whose thread, or what all calls have in common; see `resolve_scope` for what a run may say.
        thread: The thread.
    """

    def __init__(self, kit: MemoryKit, scope: Scope | ScopeSource | None = None, thread: str = "main") -> None:
        super().__init__()
        check_surface(kit, scope)
        self._kit = kit
        self._scope = scope
        self._thread = thread

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # the base class declares a plain attribute
        """The messages, oldest first."""
        return self._shown()

    async def aget_messages(self) -> list[BaseMessage]:
        """Return the messages, oldest first."""
        return await self._ashown()

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Record messages, all or none; they are durable once this returns. A known id with the same content is skipped.

        In a run whose memory is "read" or "off" nothing is recorded, and so the thread does not show it either.

        Args:
            messages: What was said.
        """
        if messages and memory_mode() == "on":
            self._kit.add_messages(messages, scope=resolve_scope(self._scope), thread=self._thread)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Record messages; see `add_messages`."""
        if messages and memory_mode() == "on":
            await self._kit.aadd_messages(messages, scope=resolve_scope(self._scope), thread=self._thread)

    def clear(self) -> None:
        """Show nothing of what was said so far; see the class."""
        self._kit.add_messages([_mark()], scope=resolve_scope(self._scope), thread=self._thread)

    async def aclear(self) -> None:
        """Show nothing of what was said so far; see the class."""
        await self._kit.aadd_messages([_mark()], scope=resolve_scope(self._scope), thread=self._thread)

    def _shown(self) -> list[BaseMessage]:
        """Return what was said since the last mark, with the bytes of its attachments and of no others."""
        scope = resolve_scope(self._scope)
        stored = self._kit.messages(self._thread, scope=scope)
        marks = [number for number, message in enumerate(stored, start=1) if _CLEARED in message.extra]
        since = self._kit.sources.with_attachments(stored[marks[-1] if marks else 0 :], scope=scope)
        return messages_from_dict([to_langchain_dict(message) for message in since])

    _ashown = twin(_shown)


def _mark() -> Mapping[str, object]:
    return {"role": "system", "content": "", "extra": {_CLEARED: True}}
