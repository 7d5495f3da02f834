"""Hears how tool calls go, beside the agent: what was called, for how long, and whether it failed (R12)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from remegraph.adapters.conversation_memory import HostGuard
from remegraph.adapters.scopes import MemoryMode, ScopeSource, check_surface, memory_mode, resolve_scope, usual_mode
from remegraph.kit import MemoryKit
from remegraph.models import Scope

__all__ = ["ObservedCall", "ToolMemoryHandler", "observed"]

_UNDER_WAY = 1000
"""Calls that are remembered until they end; of those that never do, as when a run is cancelled, the oldest go."""

_MOST = 2**31 - 1  # more tokens than any call costs: the rest of its figures still count
_TOKENS = {"input_tokens": ("input_tokens", "prompt_tokens"), "output_tokens": ("output_tokens", "completion_tokens")}


@dataclass(slots=True)
class ObservedCall:
    """A call under way."""

    scope: Scope
    tool: str
    args: object
    call_id: str
    output: object = None
    """The result: set before the call is over."""
    began: float = field(default_factory=time.perf_counter)

    def record(self, kit: MemoryKit, error: BaseException | None = None) -> None:
        """Note how it went. Whatever fails here, the host's call goes on; this waits for nothing."""
        seconds = time.perf_counter() - self.began
        with HostGuard(kit, "capture"):
            message = _message(self.output)
            told = error is None and (message is None or message.status != "error")
            text = message.text if message else "" if self.output is None else str(self.output)
            kit.tools.record(
                self.tool,
                scope=self.scope,
                args=self.args,
                call_id=self.call_id,
                ok=told,
                result=text if error is None else f"{type(error).__name__}: {error}",
                seconds=seconds,
                **_usage(message),
            )


@contextmanager
def observed(kit: MemoryKit, call: ObservedCall) -> Iterator[ObservedCall]:
    """Observe a call: its output is to be set inside. What it raises passes; a call that waits for a person is not over."""
    try:
        yield call
    except GraphBubbleUp:
        raise
    except Exception as error:
        call.record(kit, error)
        raise
    call.record(kit)


class ToolMemoryHandler(BaseCallbackHandler):
    """A callback handler that remembers how tools go: `tool.invoke(call, {"callbacks": [ToolMemoryHandler(kit, scope)]})`.

    One object serves sync and async runs, and many users at once. It only notes, and so never blocks a call; what fails
    is logged and counted. Beside the middleware, or where the conversation is captured, each call counts once.

    Args:
        kit: The memory.
        scope: Who calls, or what all calls have in common; outside of a graph, name the user here.
        memory: What runs may do that do not say it: on, read or off; unless it is on, nothing is heard.
    """

    run_inline = True  # noting takes microseconds; a thread for it would take longer

    def __init__(self, kit: MemoryKit, scope: Scope | ScopeSource | None = None, *, memory: MemoryMode = "on") -> None:
        check_surface(kit, scope)
        self._kit = kit
        self._scope = scope
        self._usual = usual_mode(memory)
        self._lock = threading.Lock()
        self._calls: dict[UUID, ObservedCall] = {}

    @property
    def ignore_llm(self) -> bool:
        """It has no ear for models."""
        return True

    @property
    def ignore_chat_model(self) -> bool:
        """Nor for chat models."""
        return True

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Remember that a call began."""
        with HostGuard(self._kit, "capture"):
            scope = resolve_scope(self._scope)
            if not self._kit.settings.for_agent(scope.agent).enabled or memory_mode(self._usual) != "on":
                return
            tool = str((serialized or {}).get("name") or kwargs.get("name") or "")
            call_id = str(kwargs.get("tool_call_id") or run_id)
            call = ObservedCall(scope, tool, input_str if inputs is None else inputs, call_id)
            with self._lock:
                self._calls[run_id] = call
                if len(self._calls) > _UNDER_WAY:
                    del self._calls[next(iter(self._calls))]

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002 - the base names them
        """Note how it went."""
        with self._lock:
            call = self._calls.pop(run_id, None)
        if call is not None:
            call.output = output
            call.record(self._kit)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Note that it failed, unless it only waits for a person."""
        with self._lock:
            call = self._calls.pop(run_id, None)
        if call is not None and not isinstance(error, GraphBubbleUp):
            call.record(self._kit, error)


def _message(output: object) -> ToolMessage | None:
    """Return the message that a tool answered with, also where it wrote into a graph's state."""
    if isinstance(output, ToolMessage):
        return output
    update = output.update if isinstance(output, Command) else None
    messages = update.get("messages") if isinstance(update, Mapping) else None
    found = [each for each in messages if isinstance(each, ToolMessage)] if isinstance(messages, Sequence) else []
    return found[-1] if found else None


def _usage(message: ToolMessage | None) -> dict[str, int | None]:
    """Return the tokens that a result says it cost: a tool that asks a model may tell."""
    if message is None:
        return {}
    places = (message.response_metadata, message.additional_kwargs, message.artifact)
    told = [
        place[name]
        for place in places
        if isinstance(place, Mapping)
        for name in ("usage_metadata", "token_usage", "usage")
        if isinstance(place.get(name), Mapping)
    ]
    return {field: _first(told, names) for field, names in _TOKENS.items()}


def _first(told: Sequence[Mapping[str, Any]], names: Sequence[str]) -> int | None:
    values = (usage.get(name) for usage in told for name in names)
    return next((value for value in values if type(value) is int and 0 <= value <= _MOST), None)
