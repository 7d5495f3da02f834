"""The final order of the best hits, by a LangChain document compressor such as a cross-encoder.

The scores stay those of the search, handed out in its order: what comes after the best is still comparable with them,
and `contributions["reranker"]` says what each hit gained or lost. The scores of rerankers have no common scale, and
many give none. What it leaves out comes after what it returns: it may not know all that the caller wants.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Literal, TypedDict

from langchain_core.documents import BaseDocumentCompressor, Document

from remegraph.deadlines import within
from remegraph.engine.nodes import Update, provider_failure
from remegraph.engine.retrieval.hits import reasons
from remegraph.models import Hit

__all__ = ["Rerankable", "Reranker"]

_KINDS: tuple[Literal["memories", "messages"], ...] = ("memories", "messages")
_PLACE = "remegraph_place"


class Rerankable(TypedDict):
    """The part of the retriever's state that the node reads."""

    query: str
    memories: tuple[Hit, ...]
    messages: tuple[Hit, ...]
    degraded: tuple[str, ...]


class Reranker:
    """Puts the best memories and messages in the order of a document compressor; without one, the order stays.

    It gets the `first` of each kind in one call, which may take `seconds`.
    """

    def __init__(self, compressor: BaseDocumentCompressor, *, first: int, seconds: float) -> None:
        self._compressor = compressor
        self._first = first
        self._seconds = seconds

    def rerank(self, state: Rerankable) -> Update:
        """Put the best in order, as a node of the retriever."""
        documents, query = self._documents(state), state["query"]
        if not documents:  # services refuse an empty list
            return self._in_order(state, ())
        try:
            answer = within(self._seconds, lambda: self._compressor.compress_documents(documents, query))
            return self._in_order(state, _order(documents, answer))
        except Exception as error:  # noqa: BLE001 - the boundary to foreign code, which may also answer anything
            return self._without(state, error)

    def _documents(self, state: Rerankable) -> list[Document]:
        shown = chain.from_iterable(state[kind][: self._first] for kind in _KINDS)
        return [
            Document(
                page_content=hit.text.encode("utf-8", "replace").decode("utf-8"),
                metadata={_PLACE: place, "id": hit.record_id, "kind": hit.kind, "time": hit.time.isoformat()},
            )
            for place, hit in enumerate(shown)
        ]

    def _in_order(self, state: Rerankable, order: Sequence[int]) -> Update:
        update: Update = {}
        begins = 0
        for kind in _KINDS:
            hits = state[kind]
            ends = begins + len(hits[: self._first])
            mine = [place - begins for place in order if begins <= place < ends]
            update[kind] = (*_moved(hits, mine), *hits[self._first :])
            begins = ends
        return update

    def _without(self, state: Rerankable, error: Exception) -> Update:
        failure = provider_failure(type(self._compressor).__name__, error)
        return {"degraded": (*state["degraded"], f"reranker: {failure.what}")}


def _order(documents: Sequence[Document], answer: Sequence[Document]) -> list[int]:
    """Return the places of documents in the order returned, then of the others. New objects are matched by their text."""
    by_text: defaultdict[str, list[int]] = defaultdict(list)
    for place, document in enumerate(documents):
        by_text[document.page_content].append(place)
    known = [document.metadata.get(_PLACE) for document in answer]
    first = [
        place
        for document, told in zip(answer, known, strict=True)
        for place in ([told] if told in range(len(documents)) else by_text.get(document.page_content, ()))
    ]
    return list(dict.fromkeys((*first, *range(len(documents)))))


def _moved(hits: Sequence[Hit], order: Sequence[int]) -> list[Hit]:
    """Return hits in this order, with the scores of their new places."""
    moved = []
    for place, score in zip(order, (hit.score for hit in hits), strict=False):
        hit = hits[place]
        contributions = hit.contributions | {"reranker": score - hit.score}
        moved.append(hit.evolve(score=score, contributions=contributions, why=reasons(contributions)))
    return moved
