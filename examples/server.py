"""Two graphs for a LangGraph server: an agent with memory, and the job that turns conversations into memories.

`langgraph.json` names them. The first run opens the kit from the environment (`REMEGRAPH_*`), once per process.
No checkpointer or store is set here: the server gives each run its own.
"""

from __future__ import annotations

import asyncio
import threading
from functools import cache
from typing import Any, NotRequired, TypedDict

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from remegraph import MemoryKit, Progress, SetupError
from remegraph.adapters import MemoryMiddleware, resolve_scope

__all__ = ["agent", "agent_graph", "summarizer", "summarizer_graph"]

Graph = CompiledStateGraph[Any, Any, Any, Any]


class Job(TypedDict):
    """What the summarizer is asked to do; the run says for which user."""

    close: NotRequired[bool]
    """Whether to summarise the open tail of each thread too, which may still get more messages."""


class Outcome(TypedDict):
    """What the summarizer did."""

    report: dict[str, Any]
    """A `SummaryReport`, as JSON: checkpoints hold only JSON."""


def agent_graph(kit: MemoryKit, model: BaseChatModel | str) -> Graph:
    """Return an agent that records what is said, recalls what it needs, and has the memory tools.

    Args:
        kit: Its memory.
        model: Its chat model.
    """
    return create_agent(model, middleware=[MemoryMiddleware(kit)], name="agent")


def summarizer_graph(kit: MemoryKit) -> Graph:
    """Return a graph that summarises one user's new messages and streams its progress as custom events.

    Args:
        kit: The memory.
    """

    def summarize(state: Job, runtime: Runtime[Any]) -> Outcome:
        def tell(progress: Progress) -> None:
            runtime.stream_writer(progress.model_dump(mode="json"))

        report = kit.summarize(scope=resolve_scope(runtime=runtime), close=state.get("close", False), progress=tell)
        return {"report": report.model_dump(mode="json")}

    graph: StateGraph[Outcome, Any, Job, Outcome] = StateGraph(Outcome, input_schema=Job, output_schema=Outcome)
    graph.add_node("summarize", summarize, input_schema=Job)
    graph.add_edge(START, "summarize")
    graph.add_edge("summarize", END)
    return graph.compile(name="summarizer")


async def agent() -> Graph:
    """Return the agent, with the kit from the environment; the server calls this for each run."""
    kit = await asyncio.to_thread(_kit)
    if kit.settings.model is None:
        raise SetupError("The agent has no model.", "Set REMEGRAPH_MODEL=provider:model, or OPENAI_API_KEY.")
    return await asyncio.to_thread(agent_graph, kit, kit.settings.model)


async def summarizer() -> Graph:
    """Return the summarizer, with the kit from the environment."""
    return summarizer_graph(await asyncio.to_thread(_kit))


_opening = threading.Lock()


def _kit() -> MemoryKit:
    with _opening:  # first runs may start together, and a second kit would find the index locked
        return _opened()


@cache
def _opened() -> MemoryKit:
    return MemoryKit.open()
