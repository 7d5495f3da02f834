"""The memory as a LangChain retriever."""

from __future__ import annotations

import pickle
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumps
from langchain_core.tools import create_retriever_tool
from langgraph.graph import START, StateGraph

from remegraph import InputError, MemoryKit, Scope, ScopeError
from remegraph.adapters import MemoryRetriever, ScopeSource
from remegraph.errors import VectorIndexError
from remegraph.models import Depth
from tests.talk import ANN, replied, said

BOB = Scope(user="bob", agent="remy")


@pytest.fixture
def told(kit: MemoryKit) -> MemoryKit:
    """A kit in which Ann has talked, and Bob too."""
    talk = [said("I hate mushrooms."), replied("Noted.", minutes=1), said("I live in Lisbon.", minutes=2)]
    kit.add_messages([*talk, replied("I see.", minutes=3), said("I love tea.", minutes=4)], scope=ANN)
    kit.add_messages([said("I live in Rome.", name="Bob")], scope=BOB)
    kit.summarize(scope=ANN, close=True)
    kit.summarize(scope=BOB, close=True)
    return kit


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    ("mode", "kind", "text"),
    [
        ("memories", "memory", "Ann: I hate mushrooms."),
        ("blocks", "block", "mushrooms"),
        ("summaries", "block", "mushrooms"),
        ("messages", "message", "Ann: I hate mushrooms."),
    ],
)
def test_a_document_says_what_it_is_where_it_comes_from_and_how_good(
    told: MemoryKit, mode: Depth, kind: str, text: str
) -> None:
    """A chain that shows sources, or weighs trust, needs more than words."""
    first = MemoryRetriever(told, scope=ANN, mode=mode).invoke("mushrooms")[0]

    assert text in first.page_content
    assert first.id == first.metadata["id"]
    assert first.metadata["kind"] == kind
    assert first.metadata["score"] > 0
    assert first.metadata["why"]
    assert first.metadata["time"].startswith("2025-03-04T12:00")
    assert first.metadata["degraded"] == []
    assert (first.metadata["standing"], first.metadata["age"]) == ("current", 0.0)
    if kind == "memory":
        evidence = first.metadata["evidence"][0]
        assert evidence["quote"] == "I hate mushrooms."
        assert first.metadata["block_ids"] == ["20250304_01"]
        assert [first.metadata[key] for key in ("topic", "layer", "status", "trust")] == [
            "personal:Ann", "episodic", "active", 1.0,
        ]  # fmt: skip
        assert 0 < first.metadata["confidence"] < 1
        assert told.trace(str(first.id), scope=ANN).quotes[0].message.message_id == evidence["message_id"]


@pytest.mark.requirement("C4", "X5")
async def test_the_run_says_for_whom_sync_and_async(told: MemoryKit) -> None:
    """One retriever serves all users, and no user sees another's."""
    retriever = MemoryRetriever(told, scope=ScopeSource(agent="remy"))
    for user, place in (("ann", "Lisbon"), ("bob", "Rome")):
        config: Any = {"configurable": {"user_id": user}}
        for found in (
            retriever.invoke("Where do I live?", config),
            await retriever.ainvoke("Where do I live?", config),
        ):
            assert place in found[0].page_content
            assert {each.metadata["topic"] for each in found} == {f"personal:{user.title()}"}
    with pytest.raises(ScopeError):
        retriever.invoke("Where do I live?")


class _State(TypedDict):
    found: list[Document]


@pytest.mark.requirement("C4", "X5")
async def test_inside_a_graph_it_serves_the_user_of_the_run(told: MemoryKit) -> None:
    """The node passes nothing on; context and configurable both reach it."""
    retriever = MemoryRetriever(told)

    async def arecall(_: _State) -> _State:
        return {"found": await retriever.ainvoke("live")}

    for node in (lambda _: {"found": retriever.invoke("live")}, arecall):
        graph: Any = StateGraph(_State, context_schema=Scope)
        graph.add_node("recall", node)
        graph.add_edge(START, "recall")
        found = (await graph.compile().ainvoke({"found": []}, context=BOB))["found"]
        assert [each.page_content for each in found] == ["Bob: I live in Rome."]


@pytest.mark.requirement("C4")
def test_k_is_checked_and_counts_per_call(told: MemoryKit) -> None:
    """A k of 0 is a mistake, and no way to ask for everything."""
    retriever = MemoryRetriever(told, scope=ANN, k=1)
    assert len(retriever.invoke("I live, hate, love")) == 1
    assert len(retriever.invoke("I live, hate, love", k=3)) == 3
    with pytest.raises(InputError, match="k is 0"):
        retriever.invoke("tea", k=0)
    with pytest.raises(InputError, match="k is 0"):
        MemoryRetriever(told, scope=ANN, k=0)


@pytest.mark.requirement("C4", "X2")
async def test_without_index_and_embedder_sql_answers_and_each_document_says_so(
    told: MemoryKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain goes on with what words find, and can tell."""

    def fail(*_args: Any, **_kwargs: Any) -> Any:
        raise VectorIndexError("Chroma is gone.")

    monkeypatch.setattr(told.context.parts().projection, "nearest", fail)
    retriever = MemoryRetriever(told, scope=ANN)
    for found in (retriever.invoke("mushrooms"), await retriever.ainvoke("mushrooms")):
        assert found[0].page_content == "Ann: I hate mushrooms."
        assert found[0].metadata["degraded"] == ["vectors: Chroma is gone."]


@pytest.mark.requirement("C4")
def test_traces_name_it_and_never_hold_the_kit(told: MemoryKit) -> None:
    """What goes to LangSmith must hold neither connections nor other users' data."""
    retriever = MemoryRetriever(told, scope=ANN)
    assert retriever._get_ls_params() == {
        "ls_retriever_name": "remegraph",
        "ls_vector_store_provider": "chroma",
        "ls_embedding_model": told.context.parts().embedder.name,
    }
    assert "kit" not in retriever.model_dump()
    assert "MemoryKit" not in dumps(retriever) + repr(retriever)


@pytest.mark.requirement("C4")
def test_it_becomes_a_tool_by_langchains_own_means(told: MemoryKit) -> None:
    """What takes a retriever takes this one."""
    tool = create_retriever_tool(MemoryRetriever(told, scope=ANN, k=1), "remember", "What is known of the user.")
    assert tool.invoke({"query": "mushrooms"}) == "Ann: I hate mushrooms."
    documents = MemoryRetriever(told, scope=ANN).batch(["tea", "mushrooms"])
    assert pickle.loads(pickle.dumps(documents)) == documents
