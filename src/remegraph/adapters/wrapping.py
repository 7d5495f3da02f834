"""Memory around a node that a host already has: recall, the node, capture, under the node's own name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any
from uuid import UUID, uuid4, uuid5

from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.runtime import get_runtime
from langgraph.types import Command
from pydantic import BaseModel

from remegraph.adapters.injecting import replaced
from remegraph.adapters.nodes import conversation
from remegraph.adapters.remembering import Remembering
from remegraph.adapters.scopes import ScopeSource
from remegraph.errors import InputError
from remegraph.kit import MemoryKit
from remegraph.kit.calling import twin
from remegraph.models import Scope

__all__ = ["with_memory"]

_IDS = UUID("6d2c1d0e-94a1-4b62-9f0e-7c1f3f6f2a55")
"""Namespace of the ids that messages get; changing it records the answers of runs under way twice."""


def with_memory(
    kit: MemoryKit,
    node: Callable[..., Any] | Runnable[Any, Any],
    scope: Scope | ScopeSource | None = None,
    *,
    messages_key: str = "messages",
    memory_key: str = "memory",
) -> Any:
    """Put memory around a node that a graph has already.

        graph.add_node("model", with_memory(kit, call_model))

    What bears on the newest words is recalled, and the node sees it as `state["memory"]`, which the host's state need
    not declare. Once it has answered, what was said is captured, in the form that the node left it in. Its update is
    passed on as it is; only messages without an id get one, so that state and ledger agree. When a run goes on after an
    interrupt, the node starts again and memory is recalled again.

    Args:
        kit: The memory.
        node: A function or coroutine function, with whatever LangGraph injects into it, or a Runnable.
        scope: Whose memory, or what all runs have in common; see `resolve_scope` for what a run may say.
        messages_key: The host's key of the conversation.
        memory_key: Where the node finds what is recalled, as text.
    """
    around = _Around(Remembering(kit, scope, channel=messages_key), messages_key, memory_key)
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
    """What happens before and after the node."""

    def __init__(self, memory: Remembering, messages_key: str, memory_key: str) -> None:
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
