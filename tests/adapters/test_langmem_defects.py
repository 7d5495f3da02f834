"""What goes wrong in LangMem 0.0.30, by the number of the defect in its review; here it goes right."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from remegraph import MemoryKit, Scope, ScopeError
from remegraph.adapters import MemoryMiddleware, memory_tools, resolve_scope, with_memory
from remegraph.testing import FailingCall, ScriptedChatModel
from tests.talk import ANN, open_kit

TEA = {"key": "tea", "content": "Ann drinks oolong."}


def agent(kit: MemoryKit, *calls: tuple[str, dict[str, Any]], tools: Any = None, **options: Any) -> Any:
    steps = [AIMessage("", tool_calls=[ToolCall(name=name, args=args, id="c")]) for name, args in calls]
    model = ScriptedChatModel(script={"": [*steps, AIMessage("Done.")]})
    return create_agent(model, tools or memory_tools(kit), **options)


def answers(result: Any) -> list[ToolMessage]:
    return [message for message in result["messages"] if isinstance(message, ToolMessage)]


ASK = {"messages": [HumanMessage("...")]}


@pytest.mark.requirement("C6")
def test_defect_1_a_graph_with_or_without_a_store_remembers(kit: MemoryKit) -> None:
    """There, the executor lost the graph's store, and the error lay in a future that nobody read."""
    for store in (None, InMemoryStore()):
        result = agent(kit, ("save_memory", TEA), store=store, context_schema=Scope).invoke(ASK, context=ANN)
        assert answers(result)[0].status == "success"
    assert [memory.content for memory in kit.memories(scope=ANN)] == ["Ann drinks oolong."]


@pytest.mark.requirement("C6")
@pytest.mark.slow
def test_defects_2_and_10_a_script_that_makes_the_tools_ends_without_a_warning(tmp_path: Path) -> None:
    """There, constructing it left a thread that kept the process alive, and the import warned of deprecations."""
    script = (
        "from remegraph import AgentMemorySettings, ExtractionPolicy, MemoryKit, Scope, Settings\n"
        "from remegraph.adapters import MemoryRetriever, MessageHistory, memory_tools, resolve_scope\n"
        "agent = AgentMemorySettings(extraction=ExtractionPolicy(trigger='per-turn'))\n"
        f"settings = Settings(home={str(tmp_path)!r}, agent=agent)\n"
        "kit = MemoryKit.open(settings=settings, model=None, embedder=None)\n"
        "tools = memory_tools(kit, Scope(user='ann'))\n"
        "print(tools[0].invoke({'key': 'tea', 'content': 'Ann drinks oolong.'}))\n"
        "turn = [{'role': 'user', 'content': 'I live in Lisbon.'}, {'role': 'assistant', 'content': 'Noted.'}]\n"
        "assert kit.capture(turn, scope=Scope(user='ann')).waiting\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("Saved as new memory")


def turn(number: int, text: str) -> list[Any]:
    return [HumanMessage(text, id=f"h{number}"), AIMessage("Noted.", id=f"a{number}")]


def learned(kit: MemoryKit, scope: Scope) -> set[str]:
    return {quote.quote for memory in kit.memories(scope=scope) for quote in memory.evidence}


@pytest.mark.requirement("F2")
def test_defect_3_two_users_at_the_same_instant_are_both_learned_from(kit: MemoryKit) -> None:
    """There, two tasks with the same due time could not be ordered, and the executor died of a TypeError."""
    users = [Scope(user=name, agent="remy") for name in ("ann", "bob", "eve")]
    for user in users:  # the clock of this kit stands still
        kit.capture(turn(0, "I live in Lisbon."), scope=user)
    kit.drain()
    assert [learned(kit, user) for user in users] == [{"I live in Lisbon."}] * 3
    assert kit.admin.stats()["background_failures"] == 0


@pytest.mark.requirement("F2", "X3")
def test_defect_4_what_waits_is_neither_replaced_by_what_comes_next_nor_lost_with_the_process(tmp_path: Path) -> None:
    """There, submitting again for a thread cancelled what waited, and what waited lived in memory only."""
    kit = open_kit(tmp_path)
    with kit.context.background.aside():  # nothing is worked off: as in a process that is killed at once
        for number, town in enumerate(("Lisbon", "Porto", "Faro")):
            kit.capture(turn(number, f"My sister lives in {town}."), scope=ANN)
        with open_kit(tmp_path) as again:
            again.drain()
            towns = {f"My sister lives in {town}." for town in ("Lisbon", "Porto", "Faro")}
            assert learned(again, ANN) == towns
    kit.close()


@pytest.mark.requirement("C6", "X5")
def test_defect_5_the_same_tools_in_two_graphs_serve_the_user_of_each_run(kit: MemoryKit) -> None:
    """There, the first graph's store was kept, and the second graph wrote into it."""
    tools = memory_tools(kit)
    for user in ("ann", "bob"):
        saved = ("save_memory", {"key": "tea", "content": f"{user} drinks tea."})
        made = agent(kit, saved, tools=tools, context_schema=Scope)
        made.invoke(ASK, context=Scope(user=user))
    for user in ("ann", "bob"):
        assert [memory.content for memory in kit.memories(scope=Scope(user=user))] == [f"{user} drinks tea."]


@pytest.mark.requirement("C6", "X3")
async def test_defect_6_a_failed_write_is_a_failure_sync_and_async(kit: MemoryKit) -> None:
    """There, the sync path reported success while the disk was full."""
    from sqlalchemy.exc import OperationalError

    for run in ("invoke", "ainvoke"):
        failing = FailingCall(1)
        doors = {"add_statement": lambda: OperationalError("INSERT", {}, OSError("disk full"))}
        failing.guard(kit.context.parts().archive, doors)
        result = getattr(agent(kit, ("save_memory", TEA), context_schema=Scope), run)(ASK, context=ANN)
        result = await result if inspect.isawaitable(result) else result
        assert [answer.status for answer in answers(result)] == ["error"]
        assert result["messages"][-1].text == "Done."
    assert kit.memories(scope=ANN) == ()


class _Counting:
    """An embedder that counts its calls."""

    name = "counting"
    dimension = 1
    semantic = False

    def __init__(self) -> None:
        self.calls = 0

    def embed(self, texts: Sequence[str]) -> Any:
        import numpy as np

        self.calls += 1
        return np.ones((len(texts), 1), np.float32)


@pytest.mark.requirement("C6")
async def test_defect_7_one_search_is_one_search_sync_and_async(tmp_path: Path) -> None:
    """There, the sync path ran every similarity search twice."""
    embedder = _Counting()
    with MemoryKit.open(tmp_path, model=None, embedder=embedder) as kit:
        _, search, *_ = memory_tools(kit, ANN)
        kit.save("tea", "Ann drinks oolong.", scope=ANN)
        search.invoke({"query": "which tea"})  # the first one embeds questions at large, too, once for all
        before = embedder.calls
        search.invoke({"query": "which oolong"})
        assert embedder.calls - before == 1
        await search.ainvoke({"query": "what oolong"})
        assert embedder.calls - before == 2


@pytest.mark.requirement("C6", "F3", "X5")
def test_defect_8_no_twins_and_no_success_on_unknown_ids(kit: MemoryKit) -> None:
    """There, a second create was stored twice, and an unknown id was "updated" and "Deleted"."""
    save, _, forget, trace = memory_tools(kit, ANN)
    for _ in range(2):
        save.invoke(TEA)
    assert len(kit.memories(scope=ANN)) == 1
    for tool in (forget, trace):
        call = ToolCall(name=tool.name, args={"memory_id": "made-up"}, id="1", type="tool_call")
        answer = tool.invoke(call)
        assert (answer.status, "There is no memory 'made-up' here." in answer.text) == ("error", True)
    assert len(kit.memories(scope=ANN)) == 1


@pytest.mark.requirement("C6", "X5")
def test_defect_9_the_context_counts_and_its_absence_is_an_ordinary_error(kit: MemoryKit) -> None:
    """There, `context_schema` was ignored, and the error was no Exception, so nothing caught it."""
    agent(kit, ("save_memory", TEA), context_schema=Scope).invoke(ASK, context=ANN)
    assert len(kit.memories(scope=ANN)) == 1
    assert issubclass(ScopeError, Exception)
    with pytest.raises(ScopeError, match="Name the user"):
        resolve_scope()


@pytest.mark.requirement("C7", "C8", "X5")
def test_defect_9_node_and_middleware_take_the_user_from_the_context(kit: MemoryKit) -> None:
    """There, a namespace was filled from `configurable` alone, whatever the context said."""
    model = ScriptedChatModel(script={"": [lambda _call: AIMessage("Noted.")]})
    graph = StateGraph(MessagesState, context_schema=Scope)
    graph.add_node("model", with_memory(kit, lambda state: {"messages": [model.invoke(state["messages"])]}))
    graph.add_edge(START, "model")
    by_middleware = create_agent(model, middleware=[MemoryMiddleware(kit)], context_schema=Scope)
    surfaces: list[Any] = [graph.compile(), by_middleware]
    for number, made in enumerate(surfaces):
        someone = {"configurable": {"user_id": "bob", "thread_id": str(number)}}
        made.invoke({"messages": [HumanMessage("I drink oolong.")]}, someone, context=ANN)
        assert [message.text for message in kit.messages(str(number), scope=ANN)] == ["I drink oolong.", "Noted."]
    assert kit.sources.retrieve_message("oolong", scope=Scope(user="bob")) == ()


@pytest.mark.requirement("C6", "X5")
@pytest.mark.parametrize("user", ["ann.lee@example.org", "100%_*", "安.李", "../ann", "a/b", "x" * 500])
def test_defect_10_any_text_is_a_user_id(tmp_path: Path, user: str) -> None:
    """There, an e-mail address was no valid namespace."""
    with open_kit(tmp_path) as kit:
        made = agent(kit, ("save_memory", TEA), ("search_memory", {"query": "oolong"}))
        result = made.invoke(ASK, {"configurable": {"user_id": user}})
        assert "Ann drinks oolong." in answers(result)[1].text
        assert kit.memories(scope=Scope(user=user[:-1] or "x")) == ()
