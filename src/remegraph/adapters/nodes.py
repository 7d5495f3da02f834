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
from dataclasses import is_dataclass, replace
from functools import wraps
from inspect import iscoroutinefunction
from typing import Annotated, Any, TypedDict
from uuid import UUID, uuid4, uuid5

from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.messages.utils import convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.base import RunnableBinding
from langgraph.channels import UntrackedValue
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command
from pydantic import BaseModel

from remegraph.adapters.conversation_memory import ConversationMemory
from remegraph.adapters.notes import person_speaks_last, replaced
from remegraph.adapters.scopes import MemoryMode, ScopeSource
from remegraph.errors import InputError
from remegraph.kit import MemoryKit
from remegraph.kit.facade import ALONE, twin
from remegraph.models import Scope

__all__ = ["Recalled", "capture_node", "memory_node", "recall_node", "until_answered", "with_memory"]

_LEVEL = 2
"""A node is a graph within the host's."""

Recalled = Annotated[str, UntrackedValue]
"""The type of the host's key for what was recalled: it lives for one run, and no checkpointer ever writes it.

After an interrupt the run continues from a checkpoint, so the key is not there: read it by `state.get("memory", "")`, or
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
    memory: MemoryMode = "on",
) -> Node:
    """Return a node that looks up what is relevant to the newest words of a person.

    Args:
        kit: The memory.
        scope: Whose memory, or what all runs have in common; see `resolve_scope` for what a run may say.
        messages_key: The host's key of the conversation.
        memory_key: The host's key for what is recalled, of type `Recalled`.
        memory: What a run may do that does not say it: on, read or off; see `MemoryMiddleware`.
    """
    remembering = ConversationMemory(kit, scope, channel=messages_key, level=_LEVEL, memory=memory)

    def recall(messages: Sequence[BaseMessage], _: str) -> dict[str, str]:
        remembering.follow(messages)
        return {memory_key: remembering.recall(messages)}

    return _node(recall, "recall", messages_key, memory_key, writes=True)


def capture_node(
    kit: MemoryKit,
    scope: Scope | ScopeSource | None = None,
    *,
    messages_key: str = "messages",
    memory_key: str = "memory",
    memory: MemoryMode = "on",
) -> Node:
    """Return a node that records what was said. It may run as often as it likes: nothing is recorded twice.

    While a person waits for an answer, nothing is recorded (`capture.early` aside): what your graph redacts in the turn
    has then had its time. Where your graph never answers, set `capture.early`.

    Args:
        kit: The memory.
        scope: Whose memory, or what all runs have in common.
        messages_key: The host's key of the conversation.
        memory_key: The host's key for what was recalled, if it has one.
        memory: What a run may do that does not say it: on, read or off; see `MemoryMiddleware`.
    """
    remembering = ConversationMemory(kit, scope, channel=messages_key, level=_LEVEL, memory=memory)

    def capture(messages: Sequence[BaseMessage], recalled: str) -> dict[str, str]:
        remembering.capture(messages, recalled, due=person_speaks_last(messages))
        return {}

    return _node(capture, "capture", messages_key, memory_key, writes=False)


def memory_node(
    kit: MemoryKit,
    scope: Scope | ScopeSource | None = None,
    *,
    messages_key: str = "messages",
    memory_key: str = "memory",
    memory: MemoryMode = "on",
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
        memory: What a run may do that does not say it: on, read or off; see `MemoryMiddleware`.
    """
    remembering = ConversationMemory(kit, scope, channel=messages_key, level=_LEVEL, memory=memory)

    def remember(messages: Sequence[BaseMessage], recalled: str) -> dict[str, str]:
        due = person_speaks_last(messages)
        remembering.capture(messages, recalled, due=due)
        return {memory_key: remembering.recall(messages)} if due else {}

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
    """Return the messages of a state, which may be a mapping or an object, and hold them in any form of LangChain."""
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


_IDS = UUID("6d2c1d0e-94a1-4b62-9f0e-7c1f3f6f2a55")
"""Namespace of the ids that messages get; changing it records the answers of runs under way twice."""


def with_memory(
    kit: MemoryKit,
    node: Callable[..., Any] | Runnable[Any, Any],
    scope: Scope | ScopeSource | None = None,
    *,
    messages_key: str = "messages",
    memory_key: str = "memory",
    memory: MemoryMode = "on",
) -> Any:
    """Put memory around a node that a graph has already.

        graph.add_node("model", with_memory(kit, call_model))

    What is relevant to the newest words is recalled, and the node sees it as `state["memory"]`, which the host's state need
    not declare. Once it has answered, what was said is captured, in the form that the node left it in. Its update is
    passed on as it is; only messages without an id get one, so that state and ledger agree. When a run goes on after an
    interrupt, the node starts again and memory is recalled again.

    Args:
        kit: The memory.
        node: A function or coroutine function, with whatever LangGraph injects into it, or a Runnable.
        scope: Whose memory, or what all runs have in common; see `resolve_scope` for what a run may say.
        messages_key: The host's key of the conversation.
        memory_key: Where the node finds what is recalled, as text.
        memory: What a run may do that does not say it: on, read or off; see `MemoryMiddleware`.
    """
    if not callable(node) and not isinstance(node, Runnable):
        raise InputError(f"node is of type {type(node).__name__}.", "Give a function or a Runnable.")
    around = _Around(ConversationMemory(kit, scope, channel=messages_key, memory=memory), messages_key, memory_key)
    if isinstance(node, Runnable):
        return _around_runnable(around, node)

    # LangGraph reads the wrapped signature: it injects into the node, and takes the schema of its state, as before
    if iscoroutinefunction(node):

        @wraps(node)
        async def arun(state: Any, **injected: Any) -> Any:
            seen, recalled = await around.abefore(state)
            return await around.aafter(state, recalled, await node(seen, **injected))

        return arun

    @wraps(node)
    def run(state: Any, **injected: Any) -> Any:
        seen, recalled = around.before(state)
        return around.after(state, recalled, node(seen, **injected))

    return run


def _around_runnable(around: _Around, node: Runnable[Any, Any]) -> Runnable[Any, Any]:
    def call(state: Any, config: RunnableConfig) -> Any:
        seen, recalled = around.before(state)
        return around.after(state, recalled, node.invoke(seen, config))

    async def acall(state: Any, config: RunnableConfig) -> Any:
        seen, recalled = await around.abefore(state)
        return await around.aafter(state, recalled, await node.ainvoke(seen, config))

    return RunnableLambda(call, acall, name=node.get_name())


class _Around:
    """Recall before the node, capture after it."""

    def __init__(self, memory: ConversationMemory, messages_key: str, memory_key: str) -> None:
        self._memory = memory
        self._messages_key = messages_key
        self._memory_key = memory_key

    def before(self, state: Any) -> tuple[Any, str]:
        """Return the state as the node sees it, and what was recalled."""
        messages = conversation(state, self._messages_key)
        self._memory.capture(messages, due=True)
        recalled = self._memory.recall(messages)
        return self._seen(state, recalled), recalled

    abefore = twin(before)

    def after(self, state: Any, recalled: str, update: Any) -> Any:
        update, said = _identified(update, self._messages_key)
        messages = replaced(conversation(state, self._messages_key), said)
        answered = any(message.type != "remove" for message in said)
        self._memory.capture(messages, recalled, due=not answered)
        return update

    aafter = twin(after)

    def _seen(self, state: Any, memory: str) -> Any:
        """Return the state as the node sees it."""
        news = {self._memory_key: memory}
        if isinstance(state, Mapping):
            return {**state, **news}
        if isinstance(state, BaseModel):
            return state.model_copy(update=news)
        if is_dataclass(state) and not isinstance(state, type) and hasattr(state, self._memory_key):
            return replace(state, **news)
        raise InputError(
            f"A state of type {type(state).__name__} has no place for {self._memory_key!r}.",
            "Declare it in the state, or use a TypedDict or pydantic state.",
        )


def _identified(update: Any, key: str) -> tuple[Any, list[BaseMessage]]:
    """Return a node's update, in which each message has an id, and what was said in it."""
    if isinstance(update, Command):
        inner, said = _identified(update.update, key)
        return (update if inner is update.update else replace(update, update=inner)), said
    if isinstance(update, Mapping) and update.get(key):
        value = update[key]
        listed: Sequence[Any] = value if isinstance(value, list) else [value]
        messages = [_with_id(message, place) for place, message in enumerate(listed)]
        if all(new is old for new, old in zip(messages, listed, strict=True)):
            return update, messages
        return {**update, key: messages if isinstance(value, list) else messages[0]}, messages
    if isinstance(update, list | tuple):
        pairs = [_identified(each, key) for each in update]
        return [inner for inner, _ in pairs], [message for _, said in pairs for message in said]
    return update, []


def _with_id(message: Any, place: int) -> BaseMessage:
    (read,) = convert_to_messages([message])
    return read if read.id else read.model_copy(update={"id": _id(place)})


def _id(place: int) -> str:
    """Return an id for a message of the task at hand: the same one when a crash makes LangGraph run it again."""
    try:
        info = get_runtime().execution_info
    except (RuntimeError, KeyError):  # outside of any graph
        info = None
    return str(uuid5(_IDS, f"{info.task_id}/{place}") if info is not None else uuid4())
