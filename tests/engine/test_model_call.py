"""Questions to a chat model, and everything that real models do instead of answering."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from threading import Semaphore
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.exceptions import ContextOverflowError, ModelInvalidRequestError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import BaseModel, Field

from remegraph import Budget, BudgetExceededError
from remegraph.deadlines import Gate
from remegraph.engine.chat.model_call import Asker, Question
from remegraph.engine.summary_tasks import Meter
from remegraph.errors import InvalidAnswerError, ModelUnavailableError, RequestRefusedError
from remegraph.testing import FaultyChatModel, ModelCall, ProviderError, ScriptedChatModel, refusal, spoken, truncated


class Sum(BaseModel):
    """A sum."""

    total: int = Field(ge=0)
    parts: list[int] = Field(max_length=5)


RIGHT = {"total": 3, "parts": [1, 2]}


def accept(answer: Sum) -> int:
    if answer.total != sum(answer.parts):
        raise InvalidAnswerError(f"the parts make {sum(answer.parts)}, not {answer.total}.")
    return answer.total


QUESTION = Question("add", ("Add up.", "1 and 2"), "en", Sum, accept)


def asker(*steps: object, repairs: int = 1, retries: int = 1) -> tuple[Asker, ScriptedChatModel]:
    model = ScriptedChatModel(script={"Sum": list(steps)})
    return Asker(model, repairs=repairs, retries=retries, backoff=0), model


@pytest.mark.parametrize(
    "answer",
    [
        RIGHT,
        spoken(RIGHT),
        AIMessage('{"total": 3, "parts": [1, 2]}'),
        AIMessage('The parts are {1} and {2}, so: {"total": 3, "parts": [1, 2]} as asked.'),
        RIGHT | {"remark": "an extra field"},
        AIMessage(
            "",
            invalid_tool_calls=[
                {"name": "Sum", "args": '```json\n{"total": 3, "parts": [1, 2]}\n```', "id": "1", "error": None}
            ],
        ),
    ],
    ids=["tool call", "fenced amid prose", "bare JSON", "JSON after braces", "extra field", "fenced tool arguments"],
)
@pytest.mark.requirement("C9")
def test_an_answer_counts_in_whatever_wrapping_it_comes(answer: object) -> None:
    """Users lose memories when a model chats around its JSON; here it costs not even a second call."""
    asking, model = asker(answer)

    assert asking.ask(QUESTION, Meter()) == 3
    assert len(model.calls) == 1


@pytest.mark.parametrize(
    "fault",
    [
        truncated(RIGHT),
        refusal(),
        AIMessage(""),
        {},
        {"total": "three", "parts": [1, 2]},
        {"total": 4, "parts": [1, 2]},
        {"total": -3, "parts": [1, 2]},
        {"total": 10_000, "parts": [1] * 10_000},
        AIMessage('{"total": 3, "parts": [1, 2'),
    ],
    ids=["truncated", "refusal", "empty", "no field", "wrong type", "wrong sum", "out of range", "huge list", "cut"],
)
@pytest.mark.requirement("C9", "X8")
def test_an_unusable_answer_goes_back_once_with_the_error(fault: object) -> None:
    """A model that is told what was wrong usually mends it; nothing is lost, and the second call is bounded."""
    asking, model = asker(fault, RIGHT)

    assert asking.ask(QUESTION, Meter()) == 3
    assert len(model.calls) == 2
    assert "could not be used" in model.calls[1].text


def test_an_answer_that_stays_unusable_is_an_error_that_says_why() -> None:
    """The caller must see what the model did wrong, not an empty result."""
    asking, model = asker({"total": 4, "parts": [1, 2]}, repairs=2)

    with pytest.raises(InvalidAnswerError, match="the parts make 3, not 4"):
        asking.ask(QUESTION, Meter())
    assert len(model.calls) == 3


def test_an_inner_object_of_a_cut_answer_never_passes_for_the_whole() -> None:
    """A truncated list of changes must not be read as 'no change'."""
    asking, _ = asker(AIMessage('{"total": 3, "deep": {"total": 5, "parts": []}, "parts": [1'), repairs=0)

    with pytest.raises(InvalidAnswerError):
        asking.ask(QUESTION, Meter())


@pytest.mark.parametrize(
    "error", [TimeoutError("slow"), ConnectionError("gone"), RuntimeError("429: too many requests")]
)
def test_a_failed_transport_is_tried_again_and_then_named(error: Exception) -> None:
    """A hiccup costs a retry, a dead provider a typed error; both calls stand in the ledger of calls."""
    asking, _ = asker(error, RIGHT)
    assert asking.ask(QUESTION, Meter()) == 3

    asking, model = asker(error)
    meter = Meter()
    with pytest.raises(ModelUnavailableError, match="scripted did not answer"):
        asking.ask(QUESTION, meter)
    assert len(model.calls) == 2
    assert [bool(call.error) for call in meter.usage().calls] == [True, True]


def test_an_error_that_repeats_the_whole_request_is_told_in_short_and_without_its_key() -> None:
    """It goes into logs and into the ledger of calls; where it is cut, half of a key would no longer look like one."""
    asking, _ = asker(ConnectionError(f"{'x' * 570} sk-proj-{'Ab1' * 12} {'said ' * 50_000}"), retries=0)
    meter = Meter()
    with pytest.raises(ModelUnavailableError) as raised:
        asking.ask(QUESTION, meter)

    (call,) = meter.usage().calls
    assert "x ***" in call.error
    assert "sk-" not in f"{call.error} {raised.value}"
    assert max(len(call.error), len(str(raised.value))) < 1000


@pytest.mark.requirement("X8")
def test_every_call_is_booked_with_its_tokens() -> None:
    """Users pay for failed calls too, so the ledger of calls holds them all."""
    told = AIMessage("no", usage_metadata={"input_tokens": 7, "output_tokens": 2, "total_tokens": 9})
    asking, _ = asker(told, RIGHT)
    meter = Meter()

    asking.ask(QUESTION, meter)

    first, second = meter.usage().calls
    assert (first.input_tokens, first.output_tokens, first.estimated) == (7, 2, False)
    assert second.estimated
    assert second.input_tokens > 0
    assert second.output_tokens > 0


@pytest.mark.requirement("X8")
@pytest.mark.parametrize("budget", [Budget(max_calls=1), Budget(max_tokens=200)])
def test_a_budget_is_never_overdrawn(budget: Budget) -> None:
    """A budget that only warns is no budget: the call that would go over it is not made."""
    asking, model = asker(AIMessage("no " * 100), RIGHT)

    with pytest.raises(BudgetExceededError):
        asking.ask(QUESTION, Meter(budget))
    assert len(model.calls) == 1


class Counted(BaseChatModel):
    """A model that says which of its calls are under way, and answers when it is let."""

    at_work: list[str] = Field(default_factory=list)
    most: int = 0
    begun: Any = Field(default_factory=lambda: Semaphore(0))
    let: Any = Field(default_factory=lambda: Semaphore(0))

    @property
    def _llm_type(self) -> str:
        return "counted"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        self.at_work.append("call")
        self.most = max(self.most, len(self.at_work))
        self.begun.release()
        assert self.let.acquire(timeout=30)
        self.at_work.pop()
        return ChatResult(generations=[ChatGeneration(message=AIMessage('{"total": 3, "parts": [1, 2]}'))])


@pytest.mark.requirement("X8")
def test_a_budget_is_never_overdrawn_by_eight_who_ask_at_once() -> None:
    """What is under way counts as spent, or eight who look at the same moment would each find enough left."""
    model, meter = Counted(), Meter(Budget(max_calls=5))
    asking = Asker(model, repairs=0, retries=0, backoff=0)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(asking.ask, QUESTION, meter) for _ in range(8)]
        for _ in range(5):
            assert model.begun.acquire(timeout=30)
        model.let.release(8)
    assert sum(isinstance(each.exception(), BudgetExceededError) for each in asked) == 3
    assert model.most == len(meter.usage().calls) == 5


async def test_no_more_calls_are_under_way_than_the_gate_lets_in_of_threads_and_tasks_together() -> None:
    """What a provider allows at once is one number, whoever asks; and who is cancelled while it waits costs no place."""
    model, gate = Counted(), Gate(2)
    askers = [Asker(model, repairs=0, retries=0, backoff=0, gate=gate) for _ in range(2)]
    given_up = [asyncio.create_task(askers[0].aask(QUESTION, Meter())) for _ in range(3)]
    tasks = [asyncio.create_task(askers[0].aask(QUESTION, Meter())) for _ in range(3)]
    threads = [asyncio.create_task(asyncio.to_thread(askers[1].ask, QUESTION, Meter())) for _ in range(3)]
    for _ in range(2):
        assert await asyncio.to_thread(model.begun.acquire, timeout=30)
    given_up[2].cancel()
    model.let.release(20)
    done = await asyncio.gather(*given_up, *tasks, *threads, return_exceptions=True)
    assert [each for each in done if each != 3] == [done[2]]
    assert isinstance(done[2], asyncio.CancelledError)
    assert model.most == 2
    with gate.inside(), gate.inside():  # both places are free again
        pass


class Plain(BaseChatModel):
    """A model without tools."""

    heard: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "plain"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the base class names it
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **_: Any,
    ) -> ChatResult:
        self.heard.extend(message.text for message in messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage('Here: {"total": 3, "parts": [1, 2]}'))])


def test_a_model_without_tools_is_told_the_form_in_words() -> None:
    """Small local models take no tools; they can remember all the same."""
    model = Plain()

    assert Asker(model, repairs=0, retries=0, backoff=0).ask(QUESTION, Meter()) == 3
    assert any('"parts"' in text for text in model.heard)


async def test_asking_asynchronously_is_the_same() -> None:
    """Async agents get the same repairs and the same booking."""
    asking, model = asker(TimeoutError("slow"), refusal(), RIGHT)
    meter = Meter()

    assert await asking.aask(QUESTION, meter) == 3
    assert len(model.calls) == 3
    assert len(meter.usage().calls) == 3


@pytest.mark.requirement("X3", "X8")
async def test_a_call_that_hangs_is_given_up_at_its_deadline() -> None:
    """Some clients have no timeout; one lost connection must not stop a worker for good."""
    model = FaultyChatModel(script={"Sum": RIGHT}, faults=("hang",))
    asking = Asker(model, repairs=0, retries=1, backoff=0, timeout=0.05)
    meter = Meter()

    with pytest.raises(ModelUnavailableError, match=r"no answer in 0\.05 seconds"):
        asking.ask(QUESTION, meter)
    with pytest.raises(ModelUnavailableError, match=r"no answer in 0\.05 seconds"):
        await asking.aask(QUESTION, meter)

    assert len(meter.usage().calls) == 4
    model.heal()
    assert asking.ask(QUESTION, Meter()) == await asking.aask(QUESTION, Meter()) == 3


def test_a_call_sees_the_context_of_its_caller() -> None:
    """LangChain's callbacks and tracing are context variables: a deadline must not cost them."""
    user: ContextVar[str] = ContextVar("user", default="nobody")
    seen: list[str] = []

    def answer(_: ModelCall) -> dict[str, Any]:
        seen.append(user.get())
        return RIGHT

    token = user.set("ann")
    try:
        asker(answer)[0].ask(QUESTION, Meter())
    finally:
        user.reset(token)

    assert seen == ["ann"]


class ResponseError(Exception):
    """The error of a client that keeps the HTTP response, as OpenAI's and Anthropic's do."""

    def __init__(self, retry_after: str = "", status: int = 429) -> None:
        super().__init__(f"HTTP {status}")
        self.response = httpx.Response(status, headers={"Retry-After": retry_after} if retry_after else {})


@pytest.mark.parametrize(
    "error",
    [
        *(ProviderError(status) for status in (400, 422)),
        ResponseError(status=413),
        ContextOverflowError("too long"),
        ModelInvalidRequestError("against the rules"),
    ],
    ids=str,
)
@pytest.mark.requirement("X3", "X8")
async def test_a_request_that_the_provider_refuses_is_not_sent_again(error: Exception) -> None:
    """The same words would be refused each time: who takes that for an outage waits for ever."""
    asking, model = asker(error, retries=3)

    with pytest.raises(RequestRefusedError, match=f"scripted refused the request .*{error}.*retry"):
        asking.ask(QUESTION, Meter())
    with pytest.raises(RequestRefusedError):
        await asking.aask(QUESTION, Meter())
    assert len(model.calls) == 2


@pytest.mark.parametrize("status", [401, 403, 404, 408, 409, 429, 500, 503])
@pytest.mark.requirement("X3")
def test_what_may_pass_without_another_request_is_an_outage(status: int) -> None:
    """A key that has run out is renewed, a model is deployed: until then the block waits, and says why."""
    asking, model = asker(ProviderError(status))

    with pytest.raises(ModelUnavailableError, match=f"HTTP {status}"):
        asking.ask(QUESTION, Meter())
    assert len(model.calls) == 2


@pytest.mark.parametrize(
    ("error", "waited"),
    [
        (ProviderError(429, retry_after=7), 7),
        (ProviderError(429, retry_after=86_400), 20),
        (ProviderError(500), 0),
        (ResponseError("12"), 12),
        (ResponseError("Fri, 21 Nov 2025 10:00:00 GMT"), 0),
        (ResponseError("-3"), 0),
        (ResponseError("nan"), 0),
    ],
    ids=["hint", "a day", "no hint", "header", "date", "negative", "not a number"],
)
async def test_a_retry_waits_as_long_as_the_provider_asks_but_not_for_ever(
    error: Exception, waited: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes back too early is turned away again; who waits a day at every call is down."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:  # noqa: RUF029 - stands in for asyncio.sleep
        waits.append(seconds)

    model = ScriptedChatModel(script={"Sum": [error, RIGHT, error, RIGHT]})
    asking = Asker(model, repairs=0, retries=1, backoff=0, longest_wait=20)
    monkeypatch.setattr(asking._retrying, "sleep", waits.append)
    monkeypatch.setattr(asking._aretrying, "sleep", sleep)

    assert asking.ask(QUESTION, Meter()) == await asking.aask(QUESTION, Meter()) == 3
    assert waits == [waited, waited]


class Choosy(ScriptedChatModel):
    """A model that takes tools, and refuses to be made to use one; or refuses any, with an error of its own."""

    takes_tools: bool = True

    def bind_tools(self, tools: Any, *, tool_choice: Any = None, **kwargs: Any) -> Any:
        """Refuse a choice."""
        if tool_choice or not self.takes_tools:
            raise ValueError(f"tool_choice {tool_choice!r} is not supported")
        return super().bind_tools(tools, **kwargs)


@pytest.mark.parametrize("takes_tools", [True, False])
def test_a_model_that_refuses_a_tool_choice_is_asked_without(takes_tools: bool) -> None:
    """A client's ValueError came out raw, and the user's memory stood still."""
    model = Choosy(script={"": spoken(RIGHT), "Sum": RIGHT}, takes_tools=takes_tools)

    assert Asker(model, repairs=0, retries=0, backoff=0).ask(QUESTION, Meter()) == 3


class _Marked(ScriptedChatModel):
    """A model of a provider that caches what is marked."""


_Marked.__module__ = "langchain_anthropic.chat_models"


@pytest.mark.requirement("X20")
@pytest.mark.parametrize("model", [_Marked, ScriptedChatModel])
def test_instructions_are_marked_for_providers_that_cache_what_is_marked(model: type[ScriptedChatModel]) -> None:
    """They are the same for every block, and half of what a block costs."""
    asked = model(script={"Sum": [RIGHT]})
    Asker(asked, repairs=0, retries=0, backoff=0).ask(QUESTION, Meter())

    (call,) = asked.calls
    instructions = call.messages[0].content
    mark = [{"type": "text", "text": "Add up.", "cache_control": {"type": "ephemeral"}}]
    assert instructions == (mark if model is _Marked else "Add up.")
