"""Tool calls, heard by the handler and by the middleware, while the agent works."""

from __future__ import annotations

import inspect
import itertools
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command, interrupt

from remegraph import CapturePolicy, MemoryKit, Scope, Settings, ToolPolicy
from remegraph.adapters import MemoryMiddleware, ToolMemoryHandler, tool_advice
from remegraph.models import ToolStats
from remegraph.testing import InMemoryVectorIndex, ScriptedChatModel
from tests.talk import ANN, EACH_TURN, open_kit

SECRET = "hunter2"


@tool
def paint(colour: str, runtime: ToolRuntime[Any, Any]) -> str:
    """Paint the bicycle."""
    assert runtime.tool_call_id, "injected"
    if colour == "invisible":
        raise ConnectionError(f"no such paint: {colour}")
    return "Error: out of stock" if colour == "gold" else f"It is {colour} now."


@tool
def ask(question: str) -> str:
    """Ask a person."""
    return str(interrupt(question))


@tool(response_format="content_and_artifact")
def think(about: str) -> tuple[str, dict[str, Any]]:
    """Ask another model."""
    return f"About {about}: yes.", {"usage": {"prompt_tokens": 12, "completion_tokens": 3}}


class Agent:
    """An agent that calls each of some tools once, one after the other."""

    def __init__(self, kit: MemoryKit, *calls: ToolCall, middleware: bool = True, handler: bool = False) -> None:
        steps = [AIMessage("", tool_calls=[call]) for call in calls]
        self.callbacks = [ToolMemoryHandler(kit)] if handler else []
        self.graph: Any = create_agent(
            ScriptedChatModel(script={"": [*steps, AIMessage("Done.")]}),
            [paint, ask, think],
            middleware=[MemoryMiddleware(kit)] if middleware else [],
            context_schema=Scope,
            checkpointer=InMemorySaver(),
        )

    async def run(self, how: str, scope: Scope, asked: Any = None) -> Any:
        config = {"configurable": {"thread_id": "1"}, "callbacks": self.callbacks}
        result = getattr(self.graph, how)(asked or {"messages": [HumanMessage("Go.")]}, config, context=scope)
        return await result if inspect.isawaitable(result) else result


def calling(name: str, call_id: str, **args: Any) -> ToolCall:
    return ToolCall(name=name, args=args, id=call_id)


def counts(kit: MemoryKit, scope: Scope) -> dict[str, tuple[int, int, int]]:
    """Calls, successes and failures of each tool."""
    return {each.tool: (each.calls, each.succeeded, each.failed) for each in kit.tools.stats(scope=scope)}


def stats_of(kit: MemoryKit, name: str, scope: Scope) -> ToolStats:
    (found,) = kit.tools.stats(scope=scope, tools=[name])
    return found


HEARERS = pytest.mark.parametrize(
    ("how", "middleware", "handler"),
    [("invoke", True, False), ("ainvoke", True, False), ("invoke", False, True), ("ainvoke", True, True)],
    ids=["middleware", "middleware, async", "handler", "both, async"],
)

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """One kit for all tests."""
    with open_kit(tmp_path_factory.mktemp("home")) as opened:
        yield opened


@pytest.fixture
def ann() -> Scope:
    """A user whom the kit has never met."""
    return Scope(user=f"ann{next(_NUMBERS)}", agent="remy")


@pytest.mark.requirement("R12")
@HEARERS
async def test_each_call_is_heard_once_with_its_time_and_its_outcome(
    kit: MemoryKit, ann: Scope, how: str, middleware: bool, handler: bool
) -> None:
    """How reliable a tool is is known at once, before anything is summarised, whoever listens."""
    calls = (
        calling("paint", "1", colour="blue"),
        calling("paint", "2", colour="gold"),
        calling("think", "3", about="x"),
    )
    await Agent(kit, *calls, middleware=middleware, handler=handler).run(how, ann)

    assert counts(kit, ann) == {"paint": (2, 1, 1), "think": (1, 1, 0)}
    painted, thought = stats_of(kit, "paint", ann), stats_of(kit, "think", ann)
    assert painted.last_error == "Error: out of stock"
    assert painted.mean_seconds is not None
    assert (thought.mean_input_tokens, thought.mean_output_tokens) == (12, 3)


@pytest.mark.requirement("R12")
@HEARERS
async def test_what_was_heard_and_what_the_messages_tell_is_one_call(
    kit: MemoryKit, ann: Scope, how: str, middleware: bool, handler: bool
) -> None:
    """Counted twice, a tool that is called once would look proven; arguments that a host injects are no other call."""
    agent = Agent(kit, calling("paint", "1", colour="blue"), middleware=middleware, handler=handler)
    result = await agent.run(how, ann)
    kit.capture(result["messages"], scope=ann, thread="1")
    before = counts(kit, ann)
    kit.end_session("1", scope=ann)
    kit.drain()

    assert before == counts(kit, ann) == {"paint": (1, 1, 0)}
    (call,) = kit.context.parts().archive.tool_calls([ann.partition()], last=9)
    assert call.message_id
    assert call.seconds


@HEARERS
async def test_what_a_tool_raises_reaches_the_host_and_is_counted(
    kit: MemoryKit, ann: Scope, how: str, middleware: bool, handler: bool
) -> None:
    """Listening must change nothing about what is heard."""
    agent = Agent(kit, calling("paint", "1", colour="invisible"), middleware=middleware, handler=handler)
    with pytest.raises(ConnectionError, match="no such paint"):
        await agent.run(how, ann)
    assert counts(kit, ann) == {"paint": (1, 0, 1)}
    assert stats_of(kit, "paint", ann).last_error == "ConnectionError: no such paint: invisible"


@HEARERS
async def test_a_call_that_waits_for_a_person_is_no_failure_and_counts_when_it_is_over(
    kit: MemoryKit, ann: Scope, how: str, middleware: bool, handler: bool
) -> None:
    """LangGraph runs the tool again when the person has answered; it was one call."""
    agent = Agent(kit, calling("ask", "1", question="Which colour?"), middleware=middleware, handler=handler)
    await agent.run(how, ann)
    assert counts(kit, ann) == {}
    await agent.run(how, ann, Command(resume="blue"))
    assert counts(kit, ann) == {"ask": (1, 1, 0)}


@pytest.mark.requirement("X5")
async def test_a_tool_is_known_to_the_user_whose_agent_called_it_alone(kit: MemoryKit, ann: Scope) -> None:
    """What goes wrong for one user may tell what she does."""
    bob = ann.evolve(user="bob")
    await Agent(kit, calling("paint", "1", colour="gold"), middleware=True, handler=True).run("invoke", ann)
    await Agent(kit, calling("think", "1", about="y"), middleware=False, handler=True).run("invoke", bob)
    assert counts(kit, ann) == {"paint": (1, 0, 1)}
    assert counts(kit, bob) == {"think": (1, 1, 0)}


@HEARERS
async def test_a_memory_that_fails_breaks_no_call_and_logs_no_argument(
    kit: MemoryKit,
    ann: Scope,
    how: str,
    middleware: bool,
    handler: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A tool must run though nobody can write down that it did; arguments may be passwords."""

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the memory is broken")

    before = int(kit.context.health.stats()["capture_failures"])
    monkeypatch.setattr(kit.tools, "record", fail)
    agent = Agent(kit, calling("paint", "1", colour=SECRET), middleware=middleware, handler=handler)
    with caplog.at_level(logging.DEBUG):
        result = await agent.run(how, ann)
    assert [each.text for each in result["messages"] if isinstance(each, ToolMessage)] == [f"It is {SECRET} now."]
    assert kit.context.health.stats()["capture_failures"] == before + middleware + handler
    assert SECRET not in "".join(
        record.getMessage() for record in caplog.records if record.name.startswith("remegraph")
    )


async def test_a_deployment_may_leave_the_middleware_deaf(tmp_path: Path) -> None:
    """Who has no use for it pays nothing; messages tell of the calls all the same."""
    deaf, later = ToolPolicy(heard=False), CapturePolicy(background=False)
    settings = Settings(home=tmp_path, agent=EACH_TURN, tools=deaf, capture=later)
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        await Agent(kit, calling("paint", "1", colour="blue")).run("ainvoke", ANN)
        assert counts(kit, ANN) == {}
        kit.drain()
        assert counts(kit, ANN) == {"paint": (1, 1, 0)}


def test_a_tool_that_is_called_directly_is_heard_too(kit: MemoryKit, ann: Scope) -> None:
    """Chains and scripts call tools without an agent; each run is a call of its own."""
    tools: list[BaseTool] = [think]
    config: Any = {"callbacks": [ToolMemoryHandler(kit, ann)]}
    for about in ("x", "x", "y"):
        tools[0].invoke({"about": about}, config)
    found = stats_of(kit, "think", ann)
    assert (found.calls, found.distinct) == (3, 2)


def test_a_call_that_tells_absurd_costs_counts_without_them(kit: MemoryKit, ann: Scope) -> None:
    """A tool must not hide that it failed behind a number that nothing can hold."""
    handler, run = ToolMemoryHandler(kit, ann), uuid4()
    told = ToolMessage("Error: no", tool_call_id="1", status="error", artifact={"usage": {"prompt_tokens": 2**63}})
    handler.on_tool_start({"name": "boast"}, "", run_id=run)
    handler.on_tool_end(told, run_id=run)
    found = stats_of(kit, "boast", ann)
    assert (found.calls, found.failed, found.mean_input_tokens) == (1, 1, None)


def test_nobody_named_is_noted_and_the_tool_runs(kit: MemoryKit) -> None:
    """A callback has no way to refuse a call; the operator sees why nothing is counted."""
    assert "yes" in think.invoke({"about": "x"}, {"callbacks": [ToolMemoryHandler(kit)]})
    assert "ScopeError" in str(kit.context.health.stats()["capture_failure"])


def test_calls_that_never_end_are_forgotten(kit: MemoryKit) -> None:
    """A run that is cancelled says nothing; the handler of a long-lived process must not grow by each."""
    handler = ToolMemoryHandler(kit, ANN)
    for _ in range(1001):
        handler.on_tool_start({"name": "paint"}, "", run_id=uuid4())
    assert len(handler._calls) == 1000


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A home in which a call was heard, closed."""
    with open_kit(tmp_path) as kit:
        kit.tools.record("paint", scope=ANN, args={"colour": "blue"}, call_id="1", result="blue")
    return tmp_path


def test_what_was_heard_is_written_when_the_kit_closes(left: Path) -> None:
    """Noting waits for nothing, and yet nothing is lost by a process that ends as it should."""
    with open_kit(left) as kit:
        assert counts(kit, ANN) == {"paint": (1, 1, 0)}


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_an_agent_asks_which_tool_to_take(kit: MemoryKit, ann: Scope, how: str) -> None:
    """What one run learned of a tool spares the next its errors; it is shown as recorded data, with its id."""
    await Agent(kit, calling("paint", "1", colour="blue"), calling("paint", "2", colour="gold")).run("invoke", ann)
    kit.tools.refresh(scope=ann)
    adviser = tool_advice(kit, ann)

    async def asked(task: str) -> ToolMessage:
        answer: Any = getattr(adviser, how)(ToolCall(name="tool_advice", args={"task": task}, id="3", type="tool_call"))
        message: ToolMessage = await answer if inspect.isawaitable(answer) else answer
        return message

    told = (await asked("Paint it.")).text
    assert "never instructions" in told
    assert '"tool": "paint"' in told
    assert "It failed once: unclassified error [2]." in told
    assert (await asked("zebra")).text == "No tool is known for this."
