"""A chat model that answers by a script: a test says what the model would, and needs no key and no network."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

__all__ = ["Answer", "ModelCall", "ScriptedChatModel", "Step", "refusal", "spoken", "truncated"]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call that a scripted model received."""

    schema: str
    """Name of the schema asked for; empty where none was, or where tools were merely offered."""
    messages: tuple[BaseMessage, ...]
    instructions: tuple[dict[str, Any], ...]
    """The schemas sent along, as OpenAI tools."""
    began: float
    """Seconds, by a monotonic clock."""
    ended: float

    @property
    def text(self) -> str:
        """All that was said to the model."""
        return "\n".join(message.text for message in self.messages)


Answer = Mapping[str, Any] | AIMessage | Exception
"""An object of the schema, a whole message (for faults), or an error to raise."""

Step = Answer | Callable[[ModelCall], Answer]
"""An answer, or how to make it from the call."""


@dataclass
class _Log:
    """What a scripted model has seen; shared by its parallel calls."""

    calls: list[ModelCall] = field(default_factory=list)
    most_at_once: int = 0
    _under_way: int = 0
    _steps_taken: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def call(
        self, messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]], choice: object
    ) -> Iterator[ModelCall]:
        """Book one call, also where it fails."""
        schema = tools[0]["function"]["name"] if tools and choice else ""
        began = time.monotonic()
        with self._lock:
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            yield ModelCall(schema, tuple(messages), tuple(tools), began, began)
        finally:
            with self._lock:
                self._under_way -= 1
                self.calls.append(ModelCall(schema, tuple(messages), tuple(tools), began, time.monotonic()))

    def next_step(self, schema: str, steps: Sequence[Step]) -> Step:
        """Return the schema's next step; its last one again and again."""
        with self._lock:
            taken = self._steps_taken.get(schema, 0)
            self._steps_taken[schema] = taken + 1
        return steps[min(taken, len(steps) - 1)]


class ScriptedChatModel(BaseChatModel):
    """A chat model that answers by the schema asked for, never by the order of calls.

    Branches of a graph run in parallel, so a queue would answer the wrong one. Each schema has its own steps;
    its last step repeats. A schema without steps is an error that names it.

    Args:
        script: Steps by schema name: `DigestAnswer`, `ProposalAnswer`, `VerdictAnswer`; under the empty name
            the answers to calls that need not use one. Those are an agent's turns, too: its tools are offered, and no
            `tool_choice` demands one, so a step may be an `AIMessage` with tool calls or with text.
        latency: Seconds that each call takes.
    """

    script: dict[str, Any]
    latency: float = 0.0
    model_name: str = "scripted"
    _log: _Log = PrivateAttr(default_factory=_Log)

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """All calls that ended, in the order of their beginning."""
        return tuple(sorted(self._log.calls, key=lambda call: call.began))

    @property
    def most_at_once(self) -> int:
        """How many calls were under way at the same time, at most."""
        return self._log.most_at_once

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Remember the schemas for the call."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the base class names it
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> ChatResult:
        with self._log.call(messages, kwargs.get("tools", ()), kwargs.get("tool_choice")) as call:
            if self.latency:
                time.sleep(self.latency)
            return self._answer(call)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the base class names it
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> ChatResult:
        with self._log.call(messages, kwargs.get("tools", ()), kwargs.get("tool_choice")) as call:
            if self.latency:
                await asyncio.sleep(self.latency)
            return self._answer(call)

    def _answer(self, call: ModelCall) -> ChatResult:
        steps = self.script.get(call.schema)
        if steps is None:
            raise AssertionError(f"The script has no steps for {call.schema!r}; it has {sorted(self.script)}.")
        step = self._log.next_step(call.schema, steps if isinstance(steps, list) else [steps])
        answer = self._spoil(call, step(call) if callable(step) else step)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, AIMessage):
            message = answer
        elif call.schema:
            arguments = {"name": call.schema, "args": dict(answer), "id": "call", "type": "tool_call"}
            message = AIMessage("", tool_calls=[arguments])
        else:
            message = AIMessage(json.dumps(answer))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _spoil(self, call: ModelCall, answer: Answer) -> Answer:  # noqa: ARG002 - for those that spoil it
        """Return what becomes of an answer: here it stays as it is."""
        return answer


def spoken(answer: Mapping[str, Any], before: str = "Sure! Here it is:", after: str = "Anything else?") -> AIMessage:
    """Return an answer as real models often give it: fenced JSON amid prose, no tool call."""
    return AIMessage(f"{before}\n```json\n{json.dumps(answer)}\n```\n{after}")


def truncated(answer: Mapping[str, Any], share: float = 0.6) -> AIMessage:
    """Return the first part of an answer's JSON, as a token limit leaves it."""
    text = json.dumps(answer)
    return AIMessage(text[: int(len(text) * share)])


def refusal() -> AIMessage:
    """Return a refusal."""
    return AIMessage("I'm sorry, but I can't help with that.")
