"""A reranker has the last word on what comes first, and never on whether there is an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document

from remegraph import MemoryKit, Recall, RecallPolicy, Scope, Settings, SetupError
from remegraph.kit import OpenOptions
from remegraph.testing import FrozenClock, InMemoryVectorIndex, SequentialIds
from tests.talk import ANN, NOON, said

TEXTS = [
    "I love tea.",
    "I love green tea in the garden.",
    "I love black tea with milk.",
    "I love jasmine tea, tea, tea.",
]
QUERY = "What tea does Ann love?"


class Compressor(BaseDocumentCompressor):
    """A reranker whose order a test gives."""

    order: Callable[[Sequence[Document], str], Sequence[Document]]

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,  # noqa: ARG002 - the base class names it
    ) -> Sequence[Document]:
        return self.order(documents, query)


def longest(documents: Sequence[Document], _query: str) -> Sequence[Document]:
    return sorted(documents, key=lambda document: len(document.page_content), reverse=True)


@contextmanager
def telling(home: Path, reranker: BaseDocumentCompressor | None, **policy: float) -> Iterator[MemoryKit]:
    """A kit in which Ann told of tea."""
    settings = Settings(home=home, recall=RecallPolicy.model_validate(policy))
    with MemoryKit.open(
        settings=settings,
        model=None,
        embedder=None,
        index=InMemoryVectorIndex(),
        clock=FrozenClock(NOON),
        options=OpenOptions(new_id=SequentialIds(), reranker=reranker),
    ) as kit:
        kit.add_messages([said(text, minutes=600 * at) for at, text in enumerate(TEXTS)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        yield kit


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Recall:
    """What recall finds without a reranker."""
    with telling(tmp_path_factory.mktemp("plain"), None) as kit:
        return kit.recall(QUERY, scope=ANN, depth="messages")


def texts(recall: Recall) -> list[list[str]]:
    return [[hit.text for hit in hits] for hits in (recall.memories, recall.messages)]


async def test_the_best_come_in_its_order_and_each_says_what_that_changed(tmp_path: Path, plain: Recall) -> None:
    """A cross-encoder reads question and answer together; a user must see that it, not the search, put this first."""
    with telling(tmp_path, Compressor(order=longest)) as kit:
        recall = kit.recall(QUERY, scope=ANN, depth="messages")
        later = await kit.arecall(QUERY, scope=ANN, depth="messages")
    expected = sorted((f"Ann: {text}" for text in TEXTS), key=len, reverse=True)
    assert texts(recall) == texts(later) == [expected, expected] != texts(plain)
    assert recall.degraded == later.degraded == ()
    for hits, before in ((recall.memories, plain.memories), (recall.messages, plain.messages)):
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in before])
        for hit in hits:
            assert "reranker" in hit.contributions
            assert sum(hit.contributions.values()) == pytest.approx(hit.score)
        assert "reranker" in hits[0].why


def test_it_chooses_among_more_than_are_asked_for(tmp_path: Path) -> None:
    """The one right answer is often the twelfth of the search."""
    with telling(tmp_path, Compressor(order=longest)) as kit:
        (hit,) = kit.recall(QUERY, scope=ANN, k=1).memories
        assert hit.text == f"Ann: {max(TEXTS, key=len)}"
        assert len(kit.recall(QUERY, scope=ANN, k=1, depth="messages").messages) == 1


def test_it_sees_no_more_than_it_is_to_see(tmp_path: Path) -> None:
    """A cross-encoder costs milliseconds for each text: the setting is the bill."""
    seen: list[int] = []

    def count(documents: Sequence[Document], _query: str) -> Sequence[Document]:
        seen.append(len(documents))
        return documents[::-1]

    with telling(tmp_path, Compressor(order=count), rerank=2) as kit:
        found = kit.recall(QUERY, scope=ANN, depth="messages")
    assert seen == [4]
    assert (len(found.memories), len(found.messages)) == (4, 4)
    assert ["reranker" in hit.contributions for hit in found.memories] == [True, True, False, False]


def test_it_is_not_asked_where_there_is_nothing_to_choose(tmp_path: Path) -> None:
    """Services refuse an empty list: each question to an empty memory would cost a call and say that something failed."""

    def refuse(documents: Sequence[Document], _query: str) -> Sequence[Document]:
        if not documents:
            raise ValueError("documents must not be empty")
        return documents

    with telling(tmp_path, Compressor(order=refuse)) as kit:
        nobody = kit.recall(QUERY, scope=Scope(user="nobody"))

    assert (nobody.memories, nobody.degraded) == ((), ())


def test_it_sees_as_many_messages_as_it_is_to_see(tmp_path: Path) -> None:
    """Who lets it look at many would pay for a choice among the few that a recall without it reads."""
    seen: list[Document] = []

    def note(documents: Sequence[Document], _query: str) -> Sequence[Document]:
        seen[:] = [document for document in documents if document.metadata["kind"] == "message"]
        return documents

    with telling(tmp_path, Compressor(order=note), rerank=80) as kit:
        kit.add_messages([said(f"Tea number {number}.", minutes=3000 + number) for number in range(90)], scope=ANN)
        kit.recall(QUERY, scope=ANN, k=3, depth="messages")

    assert len(seen) == 80


def test_what_it_leaves_out_or_makes_anew_is_still_found(tmp_path: Path, plain: Recall) -> None:
    """Most rerankers return their best three, some as new documents; the caller asked for k."""

    def best(documents: Sequence[Document], _query: str) -> Sequence[Document]:
        return [Document(document.page_content) for document in longest(documents, "")[:2]]

    with telling(tmp_path, Compressor(order=best)) as kit:
        recall = kit.recall(QUERY, scope=ANN)
    first = f"Ann: {max(TEXTS, key=len)}"
    assert texts(recall)[0] == [first, *(text for text in texts(plain)[0] if text != first)]


def refuse(_documents: Sequence[Document], _query: str) -> Sequence[Document]:
    raise RuntimeError("out of memory")


@pytest.mark.parametrize("answer", [refuse, lambda *_: None, lambda *_: ["text"]], ids=["raises", "none", "texts"])
async def test_without_it_recall_answers_and_says_so(
    tmp_path: Path, plain: Recall, answer: Callable[..., Sequence[Document]]
) -> None:
    """A model that fails, or answers nonsense, costs the order, never the answer."""
    with telling(tmp_path, Compressor(order=answer)) as kit:
        found = kit.recall(QUERY, scope=ANN, depth="messages"), await kit.arecall(QUERY, scope=ANN, depth="messages")
    for recall in found:
        assert texts(recall) == texts(plain)
        (reason,) = recall.degraded
        assert reason.startswith("reranker: Compressor did not answer")


async def test_one_that_is_too_slow_is_given_up(tmp_path: Path, plain: Recall) -> None:
    """An agent waits for memory before it speaks."""
    released = Event()

    def wait(documents: Sequence[Document], _query: str) -> Sequence[Document]:
        released.wait()
        return documents

    with telling(tmp_path, Compressor(order=wait), rerank_timeout=0.01) as kit:
        try:
            found = kit.recall(QUERY, scope=ANN), await kit.arecall(QUERY, scope=ANN)
        finally:
            released.set()
    assert all("no answer in 0.01 seconds" in recall.degraded[0] for recall in found)
    assert texts(found[0])[0] == texts(found[1])[0] == texts(plain)[0]


def test_what_is_no_compressor_is_refused_when_the_kit_opens(tmp_path: Path) -> None:
    """Not at the first question, and not in silence."""
    with pytest.raises(SetupError, match="document compressor"):
        MemoryKit.open(tmp_path, model=None, embedder=None, options=OpenOptions(reranker="cross-encoder"))  # type: ignore[arg-type]
