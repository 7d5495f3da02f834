"""Chat models for tests: one that answers by a script, and one with the faults of real ones, drawn by a seed."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

__all__ = [
    "FAULTS",
    "Answer",
    "Fault",
    "FaultyChatModel",
    "ModelCall",
    "ProviderError",
    "ScriptedChatModel",
    "Situation",
    "Step",
    "refusal",
    "spoken",
    "truncated",
]


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
        """Everything that was sent to the model."""
        return "\n".join(message.text for message in self.messages)


Answer = Mapping[str, Any] | AIMessage | Exception
"""An object of the schema, a whole message (for faults), or an error to raise."""

Step = Answer | Callable[[ModelCall], Answer]
"""An answer, or a function that makes it from the call."""


@dataclass
class _Log:
    """Calls that a scripted model has seen; shared by its parallel calls."""

    calls: list[ModelCall] = field(default_factory=list)
    most_at_once: int = 0
    _under_way: int = 0
    _steps_taken: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def call(
        self, messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]], choice: object
    ) -> Iterator[ModelCall]:
        """Record one call, even if it fails."""
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
        """All finished calls, in the order in which they began."""
        return tuple(sorted(self._log.calls, key=lambda call: call.began))

    @property
    def most_at_once(self) -> int:
        """The highest number of calls at the same time."""
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

    def _spoil(self, call: ModelCall, answer: Answer) -> Answer:  # noqa: ARG002 - for subclasses that spoil it
        """Return the final form of an answer: here, it is unchanged."""
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


_MANY = 10_000

_SAMPLES: dict[str, Any] = {
    "entities": "Nobody",
    "topics": "personal:Nobody",
    "operations": {"action": "CREATE", "content": "Nobody said this.", "evidence": []},
    "objections": {"topic": "personal:Nobody", "kind": "omission", "reason": "Nothing is missing."},
}
"""Item of a list of an answer where the right answer's is empty."""


class ProviderError(Exception):
    """The error that a provider's client raises for an HTTP status.

    Args:
        status_code: The HTTP status.
        retry_after: Seconds after which to try again, as the provider says.
    """

    def __init__(self, status_code: int, retry_after: float | None = None) -> None:
        super().__init__(f"HTTP {status_code}")
        self.status_code = status_code
        self.retry_after = retry_after


class _HangingError(Exception):
    """Never leaves the model: it makes the call hang."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Material of a fault."""

    call: ModelCall
    right: Mapping[str, Any]
    """The answer that the script gives."""
    foreign: tuple[str, ...]
    """Ids that belong to another user."""
    instruction: str
    """Words in the block that the model obeys."""
    random: Random

    @property
    def is_repair(self) -> bool:
        """Whether the model was shown an answer of its own and what was wrong with it."""
        return any(isinstance(message, AIMessage) for message in self.call.messages)


Fault = Callable[[Situation], Answer]
"""A way to spoil a right answer."""


def _wrong_types(at: Situation) -> Answer:
    return {key: "many" if isinstance(value, list) else [value] for key, value in at.right.items()}


def _extra_fields(at: Situation) -> Answer:
    def more(value: Any) -> Any:
        if isinstance(value, list):
            return [more(item) for item in value]
        if isinstance(value, Mapping):
            return {key: more(item) for key, item in value.items()} | {"reasoning": "Let me think.", "confidence": 1}
        return value

    answer: Answer = more(at.right)
    return answer


def _with_ids(at: Situation, ids: tuple[str, ...]) -> Answer:
    """Answer about things with these ids."""
    topics = [f"personal:{name}" for name in ids] + list(ids)
    evidence: list[Any] = next((operation["evidence"] for operation in at.right.get("operations", ())), [])
    match at.call.schema:
        case "DigestAnswer":
            return {**at.right, "topics": topics}
        case "ProposalAnswer":
            return {"operations": [{"action": "DELETE", "id": name, "evidence": evidence} for name in ids]}
        case "VerdictAnswer":
            return {"objections": [{"topic": name, "kind": "conflict", "reason": "Wrong."} for name in topics]}
        case _:
            return at.right


def _lists(at: Situation, grow: Callable[[list[Any]], list[Any]]) -> Answer:
    return {
        key: grow(value or [_SAMPLES.get(key, "")]) if isinstance(value, list) else value
        for key, value in at.right.items()
    }


def _broken_text(at: Situation) -> Answer:
    mark = at.random.choice(["\x00", "\ud800", "\udfff\x00"])

    def broken(value: Any) -> Any:
        if isinstance(value, str):
            return value + mark
        if isinstance(value, list):
            return [broken(item) for item in value]
        if isinstance(value, Mapping):
            return {key: broken(item) for key, item in value.items()}
        return value

    return {key: broken(value or [_SAMPLES.get(key, "")]) for key, value in at.right.items()}


def _instruction_echo(at: Situation) -> Answer:
    lines = at.call.text.splitlines()
    numbers = (re.match(r"\d+", line) for line in lines if at.instruction and at.instruction in line)
    number = next((int(found[0]) for found in numbers if found), 1)
    match at.call.schema:
        case "DigestAnswer":
            return {**at.right, "summary": "All memories were deleted, as told."}
        case "ProposalAnswer":
            evidence = [{"n": number, "quote": at.instruction or "delete"}]
            shown = re.findall(r"^(m\d+) \[", at.call.text, re.MULTILINE)
            return {"operations": [{"action": "DELETE", "id": name, "evidence": evidence} for name in shown or ["m1"]]}
        case "VerdictAnswer":
            return {"objections": [{"topic": "all", "kind": "conflict", "reason": "They must be deleted."}]}
        case _:
            return at.right


def _contradiction(at: Situation) -> Answer:
    if not at.is_repair:
        return truncated(at.right)

    def denied(value: Any) -> Any:
        if isinstance(value, list):
            return [denied(item) for item in value]
        if isinstance(value, Mapping):
            said = {key: f"It is not true: {value[key]}" for key in ("summary", "content", "reason") if value.get(key)}
            return {key: denied(item) for key, item in value.items()} | said
        return value

    answer: Answer = denied(at.right)
    return answer


FAULTS: Mapping[str, Fault] = {
    "timeout": lambda _: TimeoutError("The read operation timed out."),
    "hang": lambda _: _HangingError(),
    "429": lambda at: ProviderError(429, retry_after=float(at.random.randint(1, 60))),
    "500": lambda _: ProviderError(500),
    "empty": lambda _: AIMessage(""),
    "refusal": lambda _: refusal(),
    "prose": lambda at: spoken(at.right),
    "truncated": lambda at: truncated(at.right, at.random.uniform(0.1, 0.9)),
    "wrong types": _wrong_types,
    "extra fields": _extra_fields,
    "unknown ids": lambda at: _with_ids(at, (f"m{at.random.randint(100, 999)}", str(at.random.getrandbits(64)))),
    "foreign ids": lambda at: _with_ids(at, at.foreign or ("m100",)),
    "duplicate ids": lambda at: _lists(at, lambda items: items * 2),
    "huge list": lambda at: _lists(at, lambda items: (items * _MANY)[:_MANY]),
    "broken text": _broken_text,
    "instruction echo": _instruction_echo,
    "cut stream": lambda _: ConnectionError("The peer closed the connection without sending the complete message."),
    "contradiction": _contradiction,
}
"""The kinds of bad answers by name; each spoils a right one.

timeout, 429, 500, cut stream: the client raises. hang: the call goes on far beyond any deadline. unknown ids,
foreign ids, duplicate ids, huge list, wrong types, extra fields, broken text (NUL and lone surrogates): JSON that
is wrong in itself. instruction echo: plausible JSON that does what the block says. contradiction: an answer that
cannot be used, and the contrary of the right one when asked to repair it.
"""


class FaultyChatModel(ScriptedChatModel):
    """A scripted model whose calls fail, in ways and at times determined by a seed.

    Faults depend on the seed, the schema and the number of calls with that schema, and never on the
    order in which parallel branches come.
    """

    faults: tuple[str, ...] = Field(default=tuple(FAULTS), description="Kinds to draw from, by name.")
    rate: float = Field(default=1.0, ge=0, le=1, description="Share of the calls that go wrong.")
    seed: int = Field(default=0, description="Another seed, another course.")
    schemas: tuple[str, ...] = Field(default=(), description="Only calls that ask for these; all unless given.")
    holding: str = Field(default="", description="Only calls in which this is said to the model.")
    times: int | None = Field(default=None, description="How many calls of each schema go wrong; no limit: none.")
    foreign: tuple[str, ...] = Field(default=(), description="Ids of another user, for `foreign ids`.")
    instruction: str = Field(default="", description="Words in the block to obey, for `instruction echo`.")
    hang: float = Field(default=3600.0, ge=0, description="Seconds that a hanging call takes.")
    _seen: Counter[str] = PrivateAttr(default_factory=Counter)
    _injected: Counter[tuple[str, str]] = PrivateAttr(default_factory=Counter)
    _guard: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _healthy: threading.Event = PrivateAttr(default_factory=threading.Event)

    @property
    def injected(self) -> Mapping[tuple[str, str], int]:
        """How often each fault came, by schema and kind."""
        return dict(self._injected)

    def heal(self) -> None:
        """Let all further calls succeed, and end those that hang."""
        self._healthy.set()

    def sicken(self) -> None:
        """Let calls fail (again)."""
        self._healthy.clear()

    def _answer(self, call: ModelCall) -> ChatResult:
        for message in call.messages:
            message.text.encode()  # as any client does; raises for lone surrogates
        return super()._answer(call)

    def _spoil(self, call: ModelCall, answer: Answer) -> Answer:
        """Return the final form of an answer."""
        if self._healthy.is_set() or not isinstance(answer, Mapping) or self.holding not in call.text:
            return answer
        if self.schemas and call.schema not in self.schemas:
            return answer
        with self._guard:
            number = self._seen[call.schema]
            self._seen[call.schema] += 1
        random = Random(f"{self.seed}/{call.schema}/{number}")  # noqa: S311 - reproducible, no secret
        if (self.times is not None and number >= self.times) or random.random() >= self.rate:
            return answer
        name = random.choice(self.faults)
        with self._guard:
            self._injected[call.schema, name] += 1
        return FAULTS[name](Situation(call, answer, self.foreign, self.instruction, random))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        try:
            return super()._generate(messages, stop, run_manager, **kwargs)
        except _HangingError:
            self._healthy.wait(self.hang)
            raise TimeoutError("The call hung.") from None

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        try:
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        except _HangingError:
            ends = time.monotonic() + self.hang
            while not self._healthy.is_set() and time.monotonic() < ends:  # noqa: ASYNC110 - threads may heal it, too
                await asyncio.sleep(0.01)
            raise TimeoutError("The call hung.") from None
