"""The kit as a LangChain retriever."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, set_config_context
from pydantic import ConfigDict, Field

from remegraph.adapters.scopes import ScopeSource, resolve_scope
from remegraph.kit import MemoryKit
from remegraph.models import Depth, Hit, Recall, Scope

__all__ = ["MemoryRetriever"]


class MemoryRetriever(BaseRetriever):
    """Finds memories as documents, best first. No model is called.

    A document's metadata holds `id`, `kind`, `score`, `why`, `time`, `age` (seconds), `trust`, `confidence`, `standing`
    (current, expired or superseded), `topic`, `layer`, `status`, `block_ids`, `evidence` (message ids and quotes), and
    `degraded`: what could not be used. When embedder or index fail, what SQL
    finds is returned.

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
        recall = self.kit.recall(query, scope=resolve_scope(self.scope), k=self.k if k is None else k, depth=self.mode)
        return self._documents(recall)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002
        k: int | None = None,
    ) -> list[Document]:
        k = self.k if k is None else k
        recall = await self.kit.arecall(query, scope=resolve_scope(self.scope), k=k, depth=self.mode)
        return self._documents(recall)

    def _get_ls_params(self, **_kwargs: Any) -> LangSmithRetrieverParams:
        return LangSmithRetrieverParams(
            ls_retriever_name="remegraph",
            ls_vector_store_provider="chroma",
            ls_embedding_model=self.kit.embedder_name,
        )

    def _documents(self, recall: Recall) -> list[Document]:
        hits = {"memories": recall.memories, "messages": recall.messages}.get(self.mode, recall.blocks)
        return [_document(hit, recall.degraded) for hit in hits]


def _document(hit: Hit, degraded: tuple[str, ...]) -> Document:
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
        },
    )
