"""One question to a chat model: sent, metered, read tolerantly, repaired a bounded number of times.

Every call has a deadline, whatever the model's client does about time (`remegraph.deadlines`).

What to say is a generator (`_dialogue`) that knows no I/O; `ask` and `aask` are its two short drivers.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

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

from remegraph.deadlines import awithin, within
from remegraph.engine.failures import asked_to_wait, provider_failure, told
from remegraph.engine.metering import Meter
from remegraph.errors import InvalidAnswerError, ModelUnavailableError
from remegraph.language.tokens import estimate_tokens
from remegraph.models import CallRecord
from remegraph.prompts import Language, load
from remegraph.telemetry import SILENT, Attributes, Telemetry

__all__ = ["Asker", "Question"]

A = TypeVar("A", bound=BaseModel)
T = TypeVar("T")

_PROBLEM_LIMIT = 600
"""Characters of an error that are fed back to the model."""

_SAID_LIMIT = 4000
"""Characters of an unusable answer that are shown to the model again."""

_FENCED = re.compile(r"```(?:json)?\s*(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Question(Generic[A, T]):
    """What is asked, in which form, and what makes an answer acceptable."""

    operation: str
    prompt: tuple[str, str]
    """Instructions and data."""
    language: Language
    schema: type[A]
    accept: Callable[[A], T]
    """Turns the answer into its result, or raises InvalidAnswerError: its text goes back to the model."""
    shown: Sequence[dict[str, Any]] = ()
    """Content blocks that the model looks at, after the data."""


class Asker:
    """Asks a chat model questions whose answers have a schema.

    Args:
        model: Any LangChain chat model.
        repairs: How often an invalid answer is sent back with the error.
        retries: How often a failed transport is tried again.
        backoff: First wait before such a retry, in seconds; doubles, with jitter.
        longest_wait: Longest such wait in seconds, also where the provider asks for more (Retry-After).
        timeout: Seconds that a call may take.
        telemetry: Told of each call.
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
    ) -> None:
        self._model = model
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
        """Name of the model, as recorded on what it writes."""
        for attribute in ("model_name", "model"):
            value = getattr(self._model, attribute, None)
            if isinstance(value, str) and value:
                return value
        return self._model.get_name()

    @property
    def provider(self) -> str:
        """Who offers the model, as far as its package says."""
        return type(self._model).__module__.partition(".")[0].removeprefix("langchain_")

    def ask(self, question: Question[A, T], meter: Meter) -> T:
        """Return the accepted answer.

        Args:
            question: What to ask.
            meter: Books every call.

        Raises:
            InvalidAnswerError: No answer was acceptable, repairs included.
            RequestRefusedError: The provider does not take the question; it is not sent again.
            ModelUnavailableError: The model did not answer, retries included.
            BudgetExceededError: A call would go over the budget.
        """
        bound = self._bind(question.schema)
        dialogue = self._dialogue(question, takes_tools=bound is not self._model)
        messages = next(dialogue)
        while True:
            reply: AIMessage = self._retrying(self._call, bound, messages, question, meter)
            try:
                messages = dialogue.send(reply)
            except StopIteration as end:
                result: T = end.value
                return result

    async def aask(self, question: Question[A, T], meter: Meter) -> T:
        """Return the accepted answer; see `ask`."""
        bound = self._bind(question.schema)
        dialogue = self._dialogue(question, takes_tools=bound is not self._model)
        messages = next(dialogue)
        while True:
            reply: AIMessage = await self._aretrying(self._acall, bound, messages, question, meter)
            try:
                messages = dialogue.send(reply)
            except StopIteration as end:
                result: T = end.value
                return result

    def _bind(self, schema: type[BaseModel]) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with the schema as a tool; the bare model where it takes no tools."""
        try:
            return self._model.bind_tools([schema], tool_choice="any")
        except NotImplementedError:
            return self._model

    def _dialogue(self, question: Question[A, T], *, takes_tools: bool) -> Generator[list[BaseMessage], AIMessage, T]:
        system, user = question.prompt
        if not takes_tools:
            form = json.dumps(question.schema.model_json_schema())
            user += "\n\n" + load("form", question.language).render(schema=form)[1]
        data = HumanMessage([{"type": "text", "text": user}, *question.shown] if question.shown else user)
        opening: list[BaseMessage] = [SystemMessage(system), data]
        messages = opening
        for repairs_left in range(self._repairs, -1, -1):
            reply = yield messages
            try:
                return question.accept(_read(reply, question.schema))
            except InvalidAnswerError as error:
                if not repairs_left:
                    raise
                _, again = load("repair", question.language).render(problem=error.what[:_PROBLEM_LIMIT])
                messages = [*opening, AIMessage(_said(reply)), HumanMessage(again)]
        raise AssertionError  # the loop returns or raises

    def _call(
        self,
        bound: Runnable[LanguageModelInput, AIMessage],
        messages: list[BaseMessage],
        question: Question[A, T],
        meter: Meter,
    ) -> AIMessage:
        with self._booked(question, messages, meter) as replies:
            replies.append(within(self._timeout, lambda: bound.invoke(messages)))
        return replies[0]

    async def _acall(
        self,
        bound: Runnable[LanguageModelInput, AIMessage],
        messages: list[BaseMessage],
        question: Question[A, T],
        meter: Meter,
    ) -> AIMessage:
        with self._booked(question, messages, meter) as replies:
            replies.append(await awithin(self._timeout, bound.ainvoke(messages)))
        return replies[0]

    @contextmanager
    def _booked(self, question: Question[A, T], messages: list[BaseMessage], meter: Meter) -> Iterator[list[AIMessage]]:
        """Book one call and tell of it, whatever comes of it."""
        with (
            self._telemetry.chat(self.provider, self.name) as span,
            self._metered(question, messages, meter, span) as replies,
        ):
            yield replies

    @contextmanager
    def _metered(
        self, question: Question[A, T], messages: list[BaseMessage], meter: Meter, span: Attributes
    ) -> Iterator[list[AIMessage]]:
        """Book one call. The boundary to foreign model code: its errors end here."""
        estimate = sum(estimate_tokens(message.text) for message in messages) + _schema_tokens(question.schema)
        meter.reserve(estimate)
        replies: list[AIMessage] = []
        began = time.perf_counter()
        trouble = "interrupted"
        try:
            yield replies
            trouble = ""
        except Exception as error:
            trouble = told(error)
            raise provider_failure(self.name, error) from error
        finally:
            reply = replies[0] if replies else None
            usage = reply.usage_metadata if reply else None
            record = CallRecord(
                operation=question.operation,
                model=self.name,
                input_tokens=usage["input_tokens"] if usage else estimate,
                output_tokens=usage["output_tokens"] if usage else estimate_tokens(_said(reply)) if reply else 0,
                estimated=usage is None,
                seconds=time.perf_counter() - began,
                error=trouble,
            )
            meter.record(record, estimate)
            span["remegraph.purpose"] = question.operation
            span["gen_ai.usage.input_tokens"] = record.input_tokens
            span["gen_ai.usage.output_tokens"] = record.output_tokens


@cache
def _schema_tokens(schema: type[BaseModel]) -> int:
    return estimate_tokens(json.dumps(convert_to_openai_tool(schema)))


def _said(reply: AIMessage) -> str:
    """What the model said, as text: its tool arguments, else its content."""
    if reply.tool_calls:
        return json.dumps(reply.tool_calls[0]["args"])[:_SAID_LIMIT]
    return reply.text[:_SAID_LIMIT] or "(nothing)"


def _read(reply: AIMessage, schema: type[A]) -> A:
    """Return the first thing in the reply that fits the schema: tool arguments, fenced JSON, JSON amid prose."""
    problem = f"there is no JSON object of the form {schema.__name__} in it."
    for candidate in _candidates(reply):
        try:
            return schema.model_validate(candidate)
        except ValidationError as error:
            details = error.errors(include_url=False, include_input=False, include_context=False)
            problem = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in details[:8])
    raise InvalidAnswerError(problem, "Use a model that follows a JSON schema, or raise summary.repairs.")


def _candidates(reply: AIMessage) -> Iterator[object]:
    for call in reply.tool_calls:
        yield call["args"]
    texts = [call["args"] or "" for call in reply.invalid_tool_calls]
    texts.append(reply.text)
    for text in texts:
        for part in (*_FENCED.findall(text), text):
            yield from _objects(part)


def _objects(text: str) -> Iterator[object]:
    """Yield the JSON objects that stand in a text, outermost only."""
    decoder = json.JSONDecoder(strict=False)
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            end = at + 1
        else:
            yield value
        at = text.find("{", end)
