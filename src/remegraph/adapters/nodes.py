"""Memory as nodes of a LangGraph graph: compiled subgraphs that see the messages, and write one untracked key or none.

    recall_node    messages -> memory      before the model
    capture_node   messages, memory ->     after it
    memory_node    messages -> memory      both in one, before and after the model

Capturing reads what was recalled, if anything was, to note which memories the answer drew on. Each has narrow schemas
and no checkpointer: no other key of the host is read or written, and nothing of ours gets into its checkpoints.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.messages.utils import convert_to_messages
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.runnables.base import RunnableBinding
from langgraph.channels import UntrackedValue
from langgraph.graph import END, START, StateGraph

from remegraph.adapters.injecting import person_speaks_last
from remegraph.adapters.remembering import Remembering
from remegraph.adapters.scopes import ScopeSource
from remegraph.kit import MemoryKit
from remegraph.kit.calling import ALONE
from remegraph.models import Scope

__all__ = ["Recalled", "capture_node", "memory_node", "recall_node", "until_answered"]

_LEVEL = 2
"""A node is a graph within the host's."""

Recalled = Annotated[str, UntrackedValue]
"""The type of the host's key for what was recalled: it lives for one run, and no checkpointer ever writes it.

After an interrupt the run goes on from a checkpoint, so the key is not there: read it by `state.get("memory", "")`, or
use `with_memory`, which recalls again.
"""

Node = Runnable[Any, Any]
"""A graph that a host adds as a node."""


def recall_node(
    kit: MemoryKit,
    scope: Scope | ScopeSource | None = None,
    *,
    messages_key: str = "messages",
    memory_key: str = "memory",
) -> Node:
    """Return a node that looks up what bears on the newest words of a person.

    Args:
        kit: The memory.
        scope: Whose memory, or what all runs have in common; see `resolve_scope` for what a run may say.
        messages_key: The host's key of the conversation.
        memory_key: The host's key for what is recalled, of type `Recalled`.
    """
    memory = Remembering(kit, scope, channel=messages_key, level=_LEVEL)

    def recall(messages: Sequence[BaseMessage], _: str) -> dict[str, str]:
        memory.follow(messages)
        return {memory_key: memory.recall(messages)}

    return _node(recall, "recall", messages_key, memory_key, writes=True)


def capture_node(
    kit: MemoryKit,
    scope: Scope | ScopeSource | None = None,
    *,
    messages_key: str = "messages",
    memory_key: str = "memory",
) -> Node:
    """Return a node that records what was said. It may run as often as it likes: nothing is recorded twice.

    While a person waits for an answer, nothing is recorded (`capture.early` aside): what your graph redacts in the turn
    has then had its time. Where your graph never answers, set `capture.early`.

    Args:
        kit: The memory.
        scope: Whose memory, or what all runs have in common.
        messages_key: The host's key of the conversation.
        memory_key: The host's key for what was recalled, if it has one.
    """
    memory = Remembering(kit, scope, channel=messages_key, level=_LEVEL)

    def capture(messages: Sequence[BaseMessage], recalled: str) -> dict[str, str]:
        memory.capture(messages, recalled, due=person_speaks_last(messages))
        return {}

    return _node(capture, "capture", messages_key, memory_key, writes=False)


def memory_node(
    kit: MemoryKit,
    scope: Scope | ScopeSource | None = None,
    *,
    messages_key: str = "messages",
    memory_key: str = "memory",
) -> Node:
    """Return a node for before and after the model: it recalls where an answer is due, and captures once it is there.

        graph.add_node("memory", memory_node(kit))
        graph.add_edge(START, "memory")
        graph.add_conditional_edges("memory", until_answered("model"))
        graph.add_edge("model", "memory")

    Args:
        kit: The memory.
        scope: Whose memory, or what all runs have in common.
        messages_key: The host's key of the conversation.
        memory_key: The host's key for what is recalled, of type `Recalled`.
    """
    memory = Remembering(kit, scope, channel=messages_key, level=_LEVEL)

    def remember(messages: Sequence[BaseMessage], recalled: str) -> dict[str, str]:
        due = person_speaks_last(messages)
        memory.capture(messages, recalled, due=due)
        return {memory_key: memory.recall(messages)} if due else {}

    return _node(remember, "memory", messages_key, memory_key, writes=True)


def until_answered(model: str, *, messages_key: str = "messages") -> Callable[[Any], str]:
    """Return the router that follows a `memory_node`: to the model while a person waits for an answer, else to the end.

    Args:
        model: The host's node that answers.
        messages_key: The host's key of the conversation.
    """

    def route(state: Any) -> str:
        return model if person_speaks_last(conversation(state, messages_key)) else END

    return route


def conversation(state: object, key: str) -> list[BaseMessage]:
    """Return the messages of a state, which may be a mapping or an object, and hold them in any form of LangChain.

    Args:
        state: The state.
        key: Where they are.
    """
    found = state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
    return convert_to_messages(found or [])


def _node(
    step: Callable[[Sequence[BaseMessage], str], dict[str, str]],
    name: str,
    messages_key: str,
    memory_key: str,
    *,
    writes: bool,
) -> Node:
    """Return a graph of one step; the async run is the same code in a thread, since it waits for the ledger only."""
    typed: Any = TypedDict  # the keys are the host's to name
    asked = typed("Asked", {messages_key: list[AnyMessage], memory_key: str})
    answered = typed("Answered", {memory_key: str} if writes else {})

    def run(state: Any) -> dict[str, str]:
        return step(conversation(state, messages_key), state.get(memory_key) or "")

    async def arun(state: Any) -> dict[str, str]:
        return await asyncio.to_thread(run, state)

    graph = StateGraph(
        asked,
        output_schema=answered,
    )
    graph.add_node(name, RunnableLambda(run, arun, name=name))
    graph.add_edge(START, name)
    compiled = graph.compile(checkpointer=False, name=name)
    return RunnableBinding(bound=compiled, config_factories=[lambda _: ALONE])  # over what the host's run says
