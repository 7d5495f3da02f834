"""The kit as a LangChain retriever, for chains that ask for documents."""

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
from remegraph.kit.calling import twin
from remegraph.models import Depth, Hit, InjectionLayer, Scope
from remegraph.rules.sharing import source_of

__all__ = ["MemoryRetriever"]


class MemoryRetriever(BaseRetriever):
    """Finds memories as documents, best first. No model is called.

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
            ls_embedding_model=self.kit.embedder_name,
        )

    def _found(self, query: str, scope: Scope, k: int) -> list[Document]:
        wanted = self.kit.settings.for_agent(scope.agent).retrieval
        if wanted.injection == "layers":
            given = self.kit.inject(query, scope=scope, workspace=wanted.workspace, depth=self.mode, always=True)
            return [_document(each.hit, given.degraded, each.layer) for each in given.shown][:k]
        recall = self.kit.recall(query, scope=scope, k=k, depth=self.mode)
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
