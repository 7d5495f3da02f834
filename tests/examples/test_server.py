"""The graphs that `langgraph.json` names, loaded and run as a LangGraph server does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolCall
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_store
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.memory import InMemoryStore

from remegraph import MemoryKit, Scope, ScopeError, SetupError
from remegraph.testing import ModelCall, ScriptedChatModel
from tests.talk import open_kit, said

_ROOT = Path(__file__).parents[2]
_CONFIG = _ROOT / "langgraph.json"
ANN: Any = {"user_id": "ann@example.org"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home that the environment names."""
    monkeypatch.setenv("REMEGRAPH_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def server(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the graphs, loaded from its file; its kit is closed at the end."""
    paths = {spec["path"].split(":")[0] for spec in json.loads(_CONFIG.read_text(encoding="utf-8"))["graphs"].values()}
    (path,) = paths
    spec = spec_from_file_location("served", _ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "served", module)  # so does the server; LangGraph looks annotations up there
    spec.loader.exec_module(module)
    yield module
    if any(home.iterdir()):
        module._opened().close()


def served(graph: CompiledStateGraph[Any, Any, Any, Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph with the server's checkpointer and store, put in as the server does."""
    assert (graph.checkpointer, graph.store) == (None, None)
    return graph.copy(update={"checkpointer": InMemorySaver(), "store": InMemoryStore()})


def test_langgraph_accepts_the_configuration() -> None:
    """A typo in it would show only when somebody deploys."""
    run = subprocess.run(
        [str(Path(sys.executable).with_name("langgraph")), "validate", "-c", str(_CONFIG)],
        env={**os.environ, "LANGGRAPH_CLI_NO_ANALYTICS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "2 graphs found" in run.stdout


async def test_the_summarizer_summarises_for_the_user_of_the_run_and_tells_how_far_it_is(
    server: Any,
) -> None:
    """A schedule starts it; who watches sees progress, and the report can be kept in a checkpoint."""
    graph = served(await server.summarizer())
    kit: MemoryKit = server._opened()
    ann, bob = Scope(user="ann@example.org"), Scope(user="bob@example.org")
    for scope in (ann, bob):
        kit.add_messages([said("I live in Lisbon. I hate mushrooms.")], scope=scope)

    config: Any = {"configurable": {"thread_id": "nightly"}}
    stream = graph.astream({"close": True}, config, context=ANN, stream_mode=["custom", "values"])
    parts: list[Any] = [part async for part in stream]

    assert [value["total"] for mode, value in parts if mode == "custom"] == [1]
    report = parts[-1][1]["report"]
    assert (len(report["blocks"]), report["pending"]) == (1, 0)
    assert graph.get_state(config).values["report"] == report
    assert kit.memories(scope=ann)
    assert kit.memories(scope=bob) == ()
    assert graph.invoke({}, config, context=ANN)["report"]["blocks"] == []
    with pytest.raises(ScopeError, match="Name the user"):
        graph.invoke({}, {"configurable": {"thread_id": "2"}})


@pytest.mark.requirement("C6", "X5")
async def test_the_agent_remembers_across_threads_with_the_store_and_checkpointer_of_the_server(
    server: Any, tmp_path: Path
) -> None:
    """A checkpointer or store of its own would hide what the server keeps, and lose it at the next deployment."""
    stores: list[object] = []

    def answer(call: ModelCall) -> AIMessage:
        stores.append(get_store())
        last = call.messages[-1].text
        if last.startswith("I own"):
            args = {"key": "bike", "content": "Ann owns a red bicycle."}
            return AIMessage("", tool_calls=[ToolCall(name="save_memory", args=args, id="1")])
        if last.endswith("?"):
            return AIMessage("", tool_calls=[ToolCall(name="search_memory", args={"query": "bicycle"}, id="2")])
        return AIMessage(last)

    with open_kit(tmp_path / "agent") as kit:
        graph = served(server.agent_graph(kit, ScriptedChatModel(script={"": answer})))
        first: Any = {"configurable": {"thread_id": "1"}}
        await graph.ainvoke({"messages": [("user", "I own a red bicycle.")]}, first, context=ANN)
        ask: Any = {"messages": [("user", "What do I own?")]}
        told = graph.invoke(ask, {"configurable": {"thread_id": "2"}}, context=ANN)
        other: Any = {"user_id": "bob@example.org"}
        recorded = [message.text for message in kit.messages("1", scope=Scope(user="ann@example.org"))]
        refused = graph.invoke(ask, {"configurable": {"thread_id": "3"}}, context=other)

    assert "red bicycle" in told["messages"][-1].text
    assert "red bicycle" not in refused["messages"][-1].text
    state = graph.get_state(first).values
    assert [message.text for message in state["messages"]] == recorded
    assert set(stores) == {graph.store}


async def test_the_agent_takes_its_model_from_the_environment_or_says_what_is_missing(
    server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The server shows the error of a graph to whoever runs it; it should say the cure."""
    with pytest.raises(SetupError, match="Set REMEGRAPH_MODEL"):
        await server.agent()
    server._opened().close()
    server._opened.cache_clear()
    monkeypatch.setenv("REMEGRAPH_MODEL", "openai:gpt-5-mini")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("REMEGRAPH_HOME", str(tmp_path / "with-model"))
    assert {"model", "tools"} <= (await server.agent()).nodes.keys()
