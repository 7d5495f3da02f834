"""Inside somebody else's LangGraph graph: it works, and leaves none of our text behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from remegraph import MemoryKit, NotFoundError, Scope
from tests.talk import ANN, create, digest, open_kit, proposal, said

RAW, SUMMARY, MEMORY, SELF = "canary-raw", "canary-summary", "canary-memory", "canary-self"
CANARIES = (RAW, SUMMARY, MEMORY, SELF)
HOST = "canary-host"
"""What the host's own state holds: it must be found, or the search proves nothing."""

SCRIPT = {
    "DigestAnswer": digest("personal:Ann", summary=f"Ann tells about the {SUMMARY}."),
    "ProposalAnswer": proposal(create(f"Ann loves the {MEMORY}.", 1, f"I love the {RAW}")),
    "VerdictAnswer": {"objections": []},
}


class Host(TypedDict, total=False):
    """The state of a host's graph."""

    note: str
    hits: int
    leak: str


@pytest.fixture(params=["scripted", "extractive"])
def kit(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryKit]:
    """A kit that knows something of its agent."""
    with open_kit(tmp_path / "home", SCRIPT if request.param == "scripted" else None, reviser="rules") as opened:
        opened.remember_self(f"I am the {SELF}.", scope=ANN)
        yield opened


def around(node: Callable[..., Any]) -> Any:
    """A host's graph around one node."""
    graph = StateGraph(Host)
    graph.add_node("think", node)
    graph.add_edge(START, "think")
    graph.add_edge("think", END)
    return graph


def use(kit: MemoryKit, scope: Scope) -> int:
    """All that a host does in a node."""
    kit.add_messages([said(f"I love the {RAW} in the hills.")], scope=scope)
    kit.summarize(scope=scope, close=True)
    recall = kit.recall("What does Ann love?", scope=scope, depth="messages")
    assert all(canary in recall.context for canary in (RAW, SELF))
    return len(recall.memories)


def checkpoint_bytes(folder: Path) -> bytes:
    """All that a checkpointer wrote, its write-ahead log too."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("checkpoints.db*")))


def run(folder: Path, graph: Any, **configurable: Any) -> bytes:
    """Run a host's graph with checkpoints in a file; return what the file holds then."""
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver, closing(saver.conn):
        compiled = graph.compile(checkpointer=saver)
        compiled.invoke({"note": HOST}, {"configurable": {"thread_id": "t", **configurable}})
        return checkpoint_bytes(folder)


@pytest.mark.requirement("C2", "X5")
def test_no_text_of_ours_is_in_the_checkpoints_of_a_host(kit: MemoryKit, tmp_path: Path) -> None:
    """A checkpoint outlives an erasure, and is read by whoever may read the thread."""
    written = run(tmp_path, around(lambda _state: {"hits": use(kit, ANN)}))

    assert HOST.encode() in written
    assert [canary for canary in CANARIES if canary.encode() in written] == []


def test_the_search_would_find_a_leak(kit: MemoryKit, tmp_path: Path) -> None:
    """The test above must be able to fail: here the host itself keeps what it recalled."""

    def leak(_state: Host) -> Host:
        use(kit, ANN)
        return {"leak": kit.recall("What does Ann love?", scope=ANN).context}

    written = run(tmp_path, around(leak))

    assert SELF.encode() in written


@pytest.mark.requirement("C2")
def test_the_configuration_of_a_host_does_not_reach_into_the_kit(kit: MemoryKit, tmp_path: Path) -> None:
    """A host's thread, namespace and store settings are its own."""
    seen: list[RunnableConfig] = []

    def node(_state: Host, config: RunnableConfig) -> Host:
        seen.append(config)
        return {"hits": use(kit, ANN)}

    graph = around(node)
    written = run(tmp_path, graph, user="mallory", scope="everything", checkpoint_ns="host", model="other")

    assert seen[0]["configurable"]["user"] == "mallory"
    assert HOST.encode() in written
    assert len(kit.memories(scope=ANN)) == 2
    assert kit.topics.list(scope=Scope(user="mallory")) == ()


@pytest.mark.requirement("C2")
async def test_a_node_may_await_the_kit(kit: MemoryKit) -> None:
    """Async hosts use the async twins, in the same place."""

    async def node(_state: Host) -> Host:
        await kit.aadd_messages([said(f"I love the {RAW} in the hills.")], scope=ANN)
        report = await kit.asummarize(scope=ANN, close=True)
        recall = await kit.arecall("What does Ann love?", scope=ANN)
        assert report.created == 1
        return {"hits": len(recall.memories)}

    assert await around(node).compile().ainvoke({"note": HOST}) == {"note": HOST, "hits": 1}


def test_a_host_sees_the_errors_of_the_kit_as_they_are(kit: MemoryKit) -> None:
    """Retry policies and handlers of the host decide by type."""
    graph = around(lambda _state: {"hits": len(kit.trace("nowhere", scope=ANN).quotes)}).compile()
    with pytest.raises(NotFoundError):
        graph.invoke({"note": HOST})
