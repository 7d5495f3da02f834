"""A process that talks with an agent that has memory, and prints its answers.

Run as `python -m tests.adapters.talker HOME KIND THREAD USER TEXT...`; KIND is agent (`create_agent`) or graph. The host
keeps its checkpoints in HOME, too.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from remegraph import MemoryKit, Scope
from remegraph.adapters import MemoryMiddleware, inject, with_memory
from remegraph.testing import ModelCall, ScriptedChatModel


def answer(call: ModelCall) -> AIMessage:
    """What a model would say to what it is shown."""
    last = call.messages[-1].text
    if last.startswith("What colour"):
        return AIMessage("Scarlet." if "scarlet" in call.text else "I do not know.")
    return AIMessage(f"Heard: {last}")


def host(kind: str, kit: MemoryKit, saver: SqliteSaver) -> Any:
    """An agent with memory, each way."""
    model = ScriptedChatModel(script={"": [answer]})
    if kind == "agent":
        return create_agent(model, middleware=[MemoryMiddleware(kit)], context_schema=Scope, checkpointer=saver)

    def call_model(state: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [model.invoke(inject(state["messages"], state["memory"]))]}

    graph = StateGraph(MessagesState, context_schema=Scope)
    graph.add_node("model", with_memory(kit, call_model))
    graph.add_edge(START, "model")
    return graph.compile(checkpointer=saver)


def main(home: str, kind: str, thread: str, user: str, *texts: str) -> None:
    """Say the texts one after the other, each in a run of its own."""
    database = sqlite3.connect(Path(home) / "host.sqlite", check_same_thread=False, timeout=60)
    with MemoryKit.open(home, model=None, embedder=None) as kit, closing(database) as connection:
        graph = host(kind, kit, SqliteSaver(connection))
        for text in texts:
            said = {"messages": [HumanMessage(text)]}
            result = graph.invoke(said, {"configurable": {"thread_id": thread}}, context=Scope(user=user))
            print(result["messages"][-1].text)  # noqa: T201 - the answer
        stats = kit.admin.stats()
    if stats["capture_failures"] or stats["recall_failures"]:
        raise SystemExit(str(stats))


if __name__ == "__main__":
    main(*sys.argv[1:])
