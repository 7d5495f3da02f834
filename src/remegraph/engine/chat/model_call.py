"""One question to a chat model: sent, metered, read tolerantly, repaired a bounded number of times.

Every call has a deadline, whatever the model's client does about time (`remegraph.deadlines`).

What to say is a generator (`_dialogue`) that knows no I/O; `ask` and `aask` are its two short drivers.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

import json_repair
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ValidationError
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from remegraph.deadlines import Gate, awithin, within
from remegraph.engine.chat.answers import problems, strict_form
from remegraph.engine.nodes import error_text, provider_failure
from remegraph.engine.summary_tasks import Meter
from remegraph.errors import InvalidAnswerError, ModelError, ModelUnavailableError, RequestRefusedError
from remegraph.models import CallRecord
from remegraph.prompts import Language, load
from remegraph.telemetry import SILENT, Attributes, Telemetry
from remegraph.text.tokens import estimate_tokens

__all__ = ["Asker", "FaultyPartsError", "Question", "asked_to_wait"]


def asked_to_wait(error: BaseException | None) -> float:
    """Return the seconds that a provider's error asks to wait; 0 if it does not ask.

    OpenAI, Anthropic and others raise errors with the HTTP response; some give `retry_after`.
    """
    headers = getattr(getattr(error, "response", None), "headers", None)
    told = headers.get("retry-after") if isinstance(headers, Mapping) else getattr(error, "retry_after", None)
    try:
        return max(0.0, float(told or 0))
    except (TypeError, ValueError):  # a date: the usual wait will do
        return 0.0


A = TypeVar("A", bound=BaseModel)
T = TypeVar("T")

_PROBLEM_LIMIT = 6_000
"""Characters of an error that are sent back to the model: it should see all faults together."""

_SAID_LIMIT = 60_000
"""Characters of an unusable answer that are shown to the model again: whole, unless it repeats itself without end."""

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)|\A(?:(?!<think).)*</think(?:ing)?>", re.DOTALL)
"""A model's thoughts; the opening mark may be in the prompt, and the closing one may be missing."""

_MARKED = frozenset({"anthropic"})
"""Providers that cache a prompt, including the answer's schema, up to a mark; others find the prefix themselves."""

_BINDS = "api.openai.com"
"""The host that supports strict output; others speak its protocol, and may refuse it."""

_BY_FORMAT = frozenset({"ollama"})
"""Providers, mostly of small models, that constrain the output without a tool; the prompt has to name the form."""

_OPENING = re.compile(r"[{\[]")


@dataclass(frozen=True, slots=True)
class Question(Generic[A, T]):
    """A question: its messages, the form of the answer, and what makes one acceptable."""

    operation: str
    prompt: tuple[str, str]
    """Instructions and data."""
    language: Language
    schema: type[A]
    accept: Callable[[A], T]
    """Turns the answer into its result, or raises InvalidAnswerError: its text goes back to the model."""
    shown: Sequence[dict[str, Any]] = ()
    """Content blocks that the model looks at, after the data."""
    settle: Callable[[str], T] | None = None
    """Given what is wrong with the rest, returns what was sound in the answers; None: all of it must be sound."""
    begun: bool = False
    """Whether something was sound before, so that there is a result even if no answer comes."""


class FaultyPartsError(InvalidAnswerError):
    """Parts of an answer cannot be used, and the others are kept: the model amends it instead of repeating it."""


class Asker:
    """Asks a chat model questions whose answers have a schema.

    Args:
        model: Any LangChain chat model.
        repairs: How often an invalid answer is sent back with the error.
        retries: How often a failed transport is tried again.
        backoff: First wait before such a retry, in seconds; doubles, with jitter.
        longest_wait: Longest such wait in seconds, also where the provider asks for more (Retry-After).
        timeout: Seconds that a call may take.
        telemetry: Records each call.
        gate: Limits how many calls run at the same time; None: no limit.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        repairs: int,
        retries: int,
        backoff: float,
        longest_wait: float = 30.0,
        timeout: float = 60.0,
        telemetry: Telemetry = SILENT,
        gate: Gate | None = None,
    ) -> None:
        self._model = model
        self._gate = gate or Gate(sys.maxsize)
        self._bound: dict[type[BaseModel], Runnable[LanguageModelInput, AIMessage]] = {}
        self._telemetry = telemetry
        self._repairs = repairs
        self._timeout = timeout
        stop = stop_after_attempt(retries + 1)
        usual = wait_exponential(multiplier=backoff, max=longest_wait) + wait_random(0, backoff)

        def wait(state: RetryCallState) -> float:
            failure = state.outcome.exception() if state.outcome else None
            asked = asked_to_wait(failure.__cause__ if failure else None)
            return min(max(usual(state), asked), longest_wait)

        transport = retry_if_exception_type(ModelUnavailableError)
        self._retrying = Retrying(stop=stop, wait=wait, retry=transport, reraise=True)
        self._aretrying = AsyncRetrying(stop=stop, wait=wait, retry=transport, reraise=True)

    @property
    def name(self) -> str:
        """Name of the model, as recorded on the memories it writes."""
        for attribute in ("model_name", "model"):
            value = getattr(self._model, attribute, None)
            if isinstance(value, str) and value:
                return value
        return self._model.get_name()

    @property
    def provider(self) -> str:
        """The model's provider, if its package names one."""
        return type(self._model).__module__.partition(".")[0].removeprefix("langchain_")

    def ask(self, question: Question[A, T], meter: Meter) -> T:
        """Return the accepted answer.

        Raises:
            InvalidAnswerError: No answer was acceptable, repairs included.
            RequestRefusedError: The provider refuses the question; it is not sent again.
            ModelUnavailableError: The model did not answer, retries included.
            BudgetExceededError: A call would go over the budget.
            RateLimitError: The tokens for today are used up.
        """
        meter.admit()
        bound = self._bind(question.schema)
        dialogue = self._dialogue(question, takes_tools=self._takes_tools(bound))
        step = _advance(dialogue, None)
        while isinstance(step, list):
            try:
                reply: AIMessage | ModelError = self._retrying(self._call, bound, step, question, meter)
            except (ModelUnavailableError, RequestRefusedError) as error:
                reply = error
            step = _advance(dialogue, reply)
        return step.value

    async def aask(self, question: Question[A, T], meter: Meter) -> T:
        """Return the accepted answer; see `ask`."""
        await asyncio.to_thread(meter.admit)  # it may read the ledger
        bound = self._bind(question.schema)
        dialogue = self._dialogue(question, takes_tools=self._takes_tools(bound))
        step = _advance(dialogue, None)
        while isinstance(step, list):
            try:
                reply: AIMessage | ModelError = await self._aretrying(self._acall, bound, step, question, meter)
            except (ModelUnavailableError, RequestRefusedError) as error:
                reply = error
            step = _advance(dialogue, reply)
        return step.value

    def _bind(self, schema: type[BaseModel]) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model bound to a schema; kept, as building it costs as much as a commit."""
        if schema not in self._bound:
            self._bound[schema] = self._offered(schema)
        return self._bound[schema]

    def _offered(self, schema: type[BaseModel]) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with the schema as a tool, as strict as the provider allows; the bare model if it takes no tools."""
        form = strict_form(schema)
        if form and self.provider in _BY_FORMAT:
            return self._model.bind(format=form["parameters"])
        if form and _host(self._model) == _BINDS:
            return self._model.bind_tools(
                [{"type": "function", "function": form}], tool_choice="any", parallel_tool_calls=False
            )
        for choice in ({"tool_choice": "any"}, {}):  # some take tools, but refuse a forced tool choice
            with suppress(NotImplementedError, ValueError):
                return self._model.bind_tools([schema], **choice)
        return self._model

    def _takes_tools(self, bound: Runnable[LanguageModelInput, AIMessage]) -> bool:
        return bound is not self._model and self.provider not in _BY_FORMAT

    def _dialogue(self, question: Question[A, T], *, takes_tools: bool) -> _Dialogue[T]:
        system, user = question.prompt
        if not takes_tools:
            form = json.dumps(question.schema.model_json_schema())
            user += "\n\n" + load("form", question.language).render(schema=form)[1]
        data = HumanMessage([{"type": "text", "text": user}, *question.shown] if question.shown else user)
        opening: list[BaseMessage] = [self._instructions(system), data]
        messages = opening
        wrong = ""
        for repairs_left in range(self._repairs, -1, -1):
            try:
                reply = yield messages
            except ModelError as error:
                if question.settle is None or not (wrong or question.begun):
                    raise
                return question.settle(f"{wrong} {error.what}".strip())
            try:
                return question.accept(_read(reply, question.schema))
            except InvalidAnswerError as error:
                wrong = error.what
                if not repairs_left and question.settle is None:
                    raise
                name = "amend" if isinstance(error, FaultyPartsError) else "repair"
                _, again = load(name, question.language).render(problem=wrong[:_PROBLEM_LIMIT])
                messages = [*opening, AIMessage(_reply_text(reply)), HumanMessage(again)]
        if question.settle is not None:
            return question.settle(wrong)
        raise AssertionError  # the loop returned or raised

    def _instructions(self, text: str) -> SystemMessage:
        """Return the instructions, which are the same in each call, marked for caching where the provider supports it."""
        marked = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
        return SystemMessage([marked] if self.provider in _MARKED else text)

    def _call(
        self,
        bound: Runnable[LanguageModelInput, AIMessage],
        messages: list[BaseMessage],
        question: Question[A, T],
        meter: Meter,
    ) -> AIMessage:
        with self._gate.inside(), self._booked(question, messages, meter) as replies:
            replies.append(within(self._timeout, lambda: bound.invoke(messages)))
        return replies[0]

    async def _acall(
        self,
        bound: Runnable[LanguageModelInput, AIMessage],
        messages: list[BaseMessage],
        question: Question[A, T],
        meter: Meter,
    ) -> AIMessage:
        async with self._gate.ainside():
            with self._booked(question, messages, meter) as replies:
                replies.append(await awithin(self._timeout, bound.ainvoke(messages)))
        return replies[0]

    @contextmanager
    def _booked(self, question: Question[A, T], messages: list[BaseMessage], meter: Meter) -> Iterator[list[AIMessage]]:
        """Record one call in the meter and in telemetry, whatever its outcome."""
        with (
            self._telemetry.chat(self.provider, self.name) as span,
            self._metered(question, messages, meter, span) as replies,
        ):
            yield replies

    @contextmanager
    def _metered(
        self, question: Question[A, T], messages: list[BaseMessage], meter: Meter, span: Attributes
    ) -> Iterator[list[AIMessage]]:
        """Record one call. This is the boundary to foreign model code: its errors end here."""
        estimate = sum(estimate_tokens(message.text) for message in messages) + _schema_tokens(question.schema)
        meter.reserve(estimate)
        replies: list[AIMessage] = []
        began = time.perf_counter()
        trouble = "interrupted"
        try:
            yield replies
            trouble = ""
        except Exception as error:
            trouble = error_text(error)
            raise provider_failure(self.name, error) from error
        finally:
            reply = replies[0] if replies else None
            usage = reply.usage_metadata if reply else None
            record = CallRecord(
                operation=question.operation,
                model=self.name,
                input_tokens=usage["input_tokens"] if usage else estimate,
                output_tokens=usage["output_tokens"] if usage else estimate_tokens(_reply_text(reply)) if reply else 0,
                estimated=usage is None,
                seconds=time.perf_counter() - began,
                error=trouble,
            )
            meter.record(record, estimate)
            span["remegraph.purpose"] = question.operation
            span["gen_ai.usage.input_tokens"] = record.input_tokens
            span["gen_ai.usage.output_tokens"] = record.output_tokens


def _host(model: BaseChatModel) -> str:
    """Return which host a client of OpenAI's protocol talks to; empty for other clients."""
    return str(getattr(getattr(getattr(model, "root_client", None), "base_url", None), "host", ""))


@dataclass(frozen=True, slots=True)
class _Answered(Generic[T]):
    value: T


_Dialogue = Generator[list[BaseMessage], AIMessage, T]


def _advance(dialogue: _Dialogue[T], reply: AIMessage | ModelError | None) -> list[BaseMessage] | _Answered[T]:
    """Advance to the next messages to send, or to the result."""
    try:
        if isinstance(reply, ModelError):
            return dialogue.throw(reply)
        return next(dialogue) if reply is None else dialogue.send(reply)
    except StopIteration as end:
        return _Answered(end.value)


@cache
def _schema_tokens(schema: type[BaseModel]) -> int:
    return estimate_tokens(json.dumps(convert_to_openai_tool(schema)))


def _reply_text(reply: AIMessage) -> str:
    """Return the model's answer as text: the arguments of its tool calls, else its content."""
    args = [call["args"] for call in reply.tool_calls]
    text = json.dumps(args[0] if len(args) == 1 else args, ensure_ascii=False) if args else reply.text
    return text.encode("utf-8", "replace").decode("utf-8")[:_SAID_LIMIT] or "(nothing)"


def _read(reply: AIMessage, schema: type[A]) -> A:
    """Return what the reply says in the form of the schema: tool calls, all of them, or JSON amid prose.

    Raises:
        InvalidAnswerError: Nothing in it has that form.
    """
    called: list[Any] = [call["args"] for call in reply.tool_calls]
    for call in reply.invalid_tool_calls:
        called += [found.value for found in _found(call["args"] or "")][:1]
    if called and (answer := _joined(called, schema)) is not None:
        return answer
    problem = f"there is no JSON object of the form {schema.__name__} in it."
    readable: list[tuple[int, A]] = []
    candidates = [*(_Found(each, size=0) for each in called), *_found(_THOUGHTS.sub("", reply.text))]
    for candidate in candidates:
        try:
            answer = schema.model_validate(candidate.value)
        except ValidationError as error:
            problem = problems(error)
        else:
            if candidate.cut and "cut" not in schema.model_fields:
                problem = "it broke off in the middle."
                continue
            readable.append((candidate.size, answer.model_copy(update={"cut": True}) if candidate.cut else answer))
    if not readable:
        raise InvalidAnswerError(problem, "Use a model that follows a JSON schema, or raise summary.repairs.")
    return max(readable, key=lambda each: each[0])[1]  # the longest: drafts and examples are shorter


def _joined(calls: Sequence[Any], schema: type[A]) -> A | None:
    """Return parallel calls as one answer, where it is a list; faults of one are reported with the others."""
    asked = [name for name in schema.model_fields if name not in {"notes", "cut"}]
    if len(calls) < 2 or len(asked) != 1:
        return None
    items: list[Any] = []
    for call in calls:
        try:
            items += getattr(schema.model_validate(call), asked[0])
        except (ValidationError, TypeError):
            items.append(call)
    try:
        return schema.model_validate({asked[0]: items})
    except ValidationError:
        return None


@dataclass(frozen=True, slots=True)
class _Found:
    """JSON in a text."""

    value: Any
    size: int
    cut: bool = False
    """Whether the text broke off within it: only what was closed is in the value."""


def _found(text: str) -> Iterator[_Found]:
    """Yield the JSON objects and lists of objects in a text, outermost only, mended where they are sloppy."""
    decoder = json.JSONDecoder(strict=False)
    at = _opening(text, 0)
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
            yield from _records(_Found(value, end - at))
        except (json.JSONDecodeError, RecursionError):
            whole, end = _closed(text, at)
            with suppress(ValueError, RecursionError):  # not JSON, then: the schema says what is missing
                yield from _records(_Found(json_repair.loads(whole, skip_json_loads=True), len(whole), end < 0))
            end = end if end >= 0 else len(text)
        at = _opening(text, end)


def _opening(text: str, start: int) -> int:
    found = _OPENING.search(text, start)
    return found.start() if found else -1


def _records(found: _Found) -> Iterator[_Found]:
    value = found.value
    if isinstance(value, dict) or (isinstance(value, list) and all(isinstance(item, dict) for item in value)):
        yield found


def _closed(text: str, start: int) -> tuple[str, int]:
    """Return the object that begins here and where it ends.

    One that the text breaks off is cut behind the last record in it that was closed, and closed there; its end is -1.
    Half a text could pass for a whole one.
    """
    waiting: list[str] = []
    kept = ""
    quoted = escaped = False
    for at in range(start, len(text)):
        character = text[at]
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "{[":
            waiting.append("}" if character == "{" else "]")
        elif waiting and character == waiting[-1]:
            waiting.pop()
            if not waiting:
                return text[start : at + 1], at + 1
            if character == "}":
                kept = text[start : at + 1] + "".join(reversed(waiting))
    return kept, -1
