"""What a host redacts within a turn reaches neither ledger nor recall, wherever its redaction stands."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, PIIDetectionError, PIIMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from remegraph import MemoryKit, Scope
from remegraph.adapters import MemoryMiddleware, Recalled, capture_node, memory_node, until_answered, with_memory
from remegraph.testing import ScriptedChatModel
from tests.talk import ANN, open_kit

pytestmark = pytest.mark.requirement("C7", "C8", "X8")

MAIL = "mia.berg@example.org"
TOLD = f"My address is {MAIL}, and I own a scarlet bicycle."
STRATEGIES = ["redact", "mask", "hash", "block"]
THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}


@tool
def look_up(name: str) -> str:
    """Look an address up."""
    return f"{name} is reached at {MAIL}."


@tool
def send(name: str) -> str:
    """Send a letter."""
    raise ValueError(f"{name} cannot be reached at {MAIL}")


class Answering(AgentMiddleware[Any, Any, Any]):
    """What fails in a tool is an answer for the model."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except ValueError as error:
            return self._answer(request, error)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except ValueError as error:
            return self._answer(request, error)

    def _answer(self, request: Any, error: ValueError) -> Any:
        return ToolMessage(f"Error: {error}", tool_call_id=request.tool_call["id"], status="error")


def calling(name: str) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=name, args={"name": "Mia"}, id=f"call {name}")])


SURFACES = {"apply_to_input": True, "apply_to_output": True, "apply_to_tool_results": True}


def agent(
    strategy: Any,
    *middleware: AgentMiddleware[Any, Any, Any],
    last: bool = False,
    surfaces: Mapping[str, Any] = SURFACES,
    **options: Any,
) -> Any:
    """An agent that hears, says and is told an address; the other middleware stands before the redaction, or after."""
    steps = [calling("look_up"), calling("send"), AIMessage(f"I noted {MAIL}.")]
    pii: Any = PIIMiddleware("email", strategy=strategy, **surfaces)
    stack = [pii, *middleware] if last else [*middleware, pii]
    model = ScriptedChatModel(script={"": steps})
    return create_agent(model, [look_up, send], middleware=[Answering(), *stack], context_schema=Scope, **options)


async def ran(graph: Any, how: str, text: str, *, blocked: bool) -> None:
    """One turn; a host that blocks ends it with an error."""
    try:
        result = getattr(graph, how)({"messages": [HumanMessage(text)]}, THREAD, context=ANN)
        await result if inspect.isawaitable(result) else result
    except PIIDetectionError:
        assert blocked
    else:
        assert not blocked


def written(home: Path) -> bytes:
    """All that the home's files hold."""
    return b"".join(each.read_bytes() for each in home.rglob("*") if each.is_file())


def check(kit: MemoryKit, home: Path, *, blocked: bool) -> None:
    """The turn is remembered, and the address is nowhere."""
    kit.drain()
    heard = [message.text for message in kit.messages("1", scope=ANN)]
    shown = [kit.recall(query, scope=ANN, depth=depth) for query in (TOLD, MAIL) for depth in ("memories", "messages")]
    kit.close()
    assert bool(heard) is not blocked
    assert not any(MAIL in text for text in heard)
    assert not any(MAIL in found.evolve(query="").to_json() for found in shown)
    assert MAIL.encode() not in written(home)
    assert blocked or any("scarlet bicycle" in text for text in heard)


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
@pytest.mark.parametrize("last", [False, True], ids=["before it", "after it"])
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_what_a_middleware_redacts_is_never_recorded_in_either_order(
    tmp_path: Path, strategy: str, last: bool, how: str
) -> None:
    """The model sees the redacted words, and memory must not bring the others back in the next turn."""
    with open_kit(tmp_path) as kit:
        graph = agent(strategy, MemoryMiddleware(kit), last=last, checkpointer=InMemorySaver())
        await ran(graph, how, TOLD, blocked=strategy == "block")
        check(kit, tmp_path, blocked=strategy == "block")


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
@pytest.mark.parametrize("last", [False, True], ids=["before it", "after it"])
@pytest.mark.parametrize("surface", SURFACES)
async def test_a_turn_that_a_middleware_blocks_leaves_nothing_wherever_it_is_blocked(
    tmp_path: Path, surface: str, last: bool, how: str
) -> None:
    """In the question, in what a tool returns, in the answer: such a turn ends with an error."""
    surfaces = {each: each == surface for each in SURFACES}
    with open_kit(tmp_path) as kit:
        memory = MemoryMiddleware(kit)
        graph = agent("block", memory, last=last, surfaces=surfaces, checkpointer=InMemorySaver())
        await ran(graph, how, TOLD if surface == "apply_to_input" else "Hello.", blocked=True)
        check(kit, tmp_path, blocked=True)


def around(kit: MemoryKit, node: Any) -> Any:
    graph = StateGraph(MessagesState, context_schema=Scope)
    graph.add_node("model", with_memory(kit, node))
    graph.add_edge(START, "model")
    return graph


def beside(kit: MemoryKit, node: Any) -> Any:
    """Captures twice in a run, as a host may: before the redaction, too."""
    graph = StateGraph(MessagesState, context_schema=Scope)
    graph.add_sequence([("first", capture_node(kit)), ("model", node), ("last", capture_node(kit))])
    graph.add_edge(START, "first")
    return graph


class State(MessagesState):
    """A host's state."""

    memory: Recalled


def one_node(kit: MemoryKit, node: Any) -> Any:
    graph = StateGraph(State, context_schema=Scope)
    graph.add_node("memory", memory_node(kit))
    graph.add_node("model", node)
    graph.add_edge(START, "memory")
    graph.add_conditional_edges("memory", until_answered("model"))
    graph.add_edge("model", "memory")
    return graph


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
@pytest.mark.parametrize("wired", [around, beside, one_node])
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_what_a_node_redacts_is_never_recorded_however_memory_is_wired(
    tmp_path: Path, strategy: str, wired: Callable[[MemoryKit, Any], Any], how: str
) -> None:
    """The node gives a message back under its id, with other words: what stood there before it is not what was said."""
    with open_kit(tmp_path) as kit:
        graph = wired(kit, agent(strategy)).compile(checkpointer=InMemorySaver())
        await ran(graph, how, TOLD, blocked=strategy == "block")
        check(kit, tmp_path, blocked=strategy == "block")
