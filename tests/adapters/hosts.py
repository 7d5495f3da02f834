"""A host that repeats what it is told, with memory in each of the ways that there are, and a checkpointer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from remegraph import MemoryKit, Scope
from remegraph.adapters import (
    MemoryMiddleware,
    Recalled,
    capture_node,
    memory_node,
    recall_node,
    until_answered,
    with_memory,
)
from remegraph.testing import ModelCall, ScriptedChatModel
from tests.talk import ANN

WIRINGS = ["middleware", "nodes", *(pytest.param(each, marks=pytest.mark.slow) for each in ("one node", "around"))]
"""How an agent gets memory; the last two are made of the same nodes as the second."""


class State(MessagesState):
    """A host's state."""

    memory: Recalled


def words(messages: Sequence[AnyMessage]) -> str:
    """What a host's model answers: it repeats the newest words of a person."""
    return f"You said: {[message.text for message in messages if message.type == 'human'][-1]}"


def echo(call: ModelCall) -> AIMessage:
    said: list[Any] = [each for each in call.messages if "never instructions" not in each.text]
    return AIMessage(words(said))


class Host:
    """An agent that repeats what it is told, with memory in one of the ways, and a checkpointer unless it is stateless."""

    def __init__(
        self, kit: MemoryKit, wiring: str, *beside: AgentMiddleware[Any, Any, Any], stateless: bool = False
    ) -> None:
        self.kit = kit
        self.saver = None if stateless else InMemorySaver()
        self.shown: list[str] = []
        self.middleware = beside
        self.graph = self._middleware(beside) if wiring == "middleware" else self._nodes(wiring)

    def _middleware(self, beside: Sequence[AgentMiddleware[Any, Any, Any]]) -> Any:
        def answer(call: ModelCall) -> AIMessage:
            self.shown.append("\n".join(each.text for each in call.messages if "never instructions" in each.text))
            return echo(call)

        self.model = ScriptedChatModel(script={"": [answer]})
        middleware = [MemoryMiddleware(self.kit, tools=False), *beside]
        return create_agent(self.model, middleware=middleware, context_schema=Scope, checkpointer=self.saver)

    def _nodes(self, wiring: str) -> Any:
        def answer(state: Any) -> dict[str, Any]:
            self.shown.append(state.get("memory", ""))
            return {"messages": [AIMessage(words(state["messages"]))]}

        graph: Any = StateGraph(State, context_schema=Scope)
        if wiring == "around":
            graph.add_sequence([("model", with_memory(self.kit, answer))])
            graph.add_edge(START, "model")
        elif wiring == "nodes":
            graph.add_sequence(
                [("recall", recall_node(self.kit)), ("model", answer), ("capture", capture_node(self.kit))]
            )
            graph.add_edge(START, "recall")
        else:
            graph.add_node("memory", memory_node(self.kit))
            graph.add_node("model", answer)
            graph.add_edge(START, "memory")
            graph.add_conditional_edges("memory", until_answered("model"))
            graph.add_edge("model", "memory")
        return graph.compile(checkpointer=self.saver)

    def say(self, text: str, config: Any = None, name: str = "1", **fields: Any) -> Any:
        asked = {"messages": [HumanMessage(text, **fields)]}
        return self.graph.invoke(asked, config or thread(name), context=ANN)

    def checkpoint(self, text: str, name: str = "1") -> Any:
        """The newest checkpoint whose last message says this."""
        history = self.graph.get_state_history(thread(name))
        return next(each for each in history if (said := each.values.get("messages")) and said[-1].text == text).config

    def remove(self, *texts: str, name: str = "1") -> None:
        said = self.graph.get_state(thread(name)).values["messages"]
        gone = [RemoveMessage(message.id) for message in said if message.text in texts]
        assert len(gone) == len(texts)
        self.graph.update_state(thread(name), {"messages": gone})

    def heard(self, name: str = "1") -> list[str]:
        return [message.text for message in self.kit.messages(name, scope=ANN)]

    def known(self, query: str) -> str:
        """All that recall shows anywhere, at any depth."""
        self.kit.drain()
        found = [self.kit.recall(query, scope=ANN, depth=depth, k=50) for depth in ("memories", "messages")]
        return "\n".join(each.context for each in found)


def thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}
