"""What is compared on a dialogue: this kit by mode and way in, lines that BM25 or Chroma find, and all that was said.

Clock, ids and embedder are given, and one thing happens after the other, so that prompts and contexts are the same to
the byte on each run and each machine.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from evals._dialogues import Dialogue
from evals._handoff import Answers, HandedModel, Prompt, damaged
from evals._peers import PEERS
from evals._records import Message
from remegraph import AgentMemorySettings, CapturePolicy, ExtractionPolicy, MemoryKit, Settings, SummaryPolicy
from remegraph.adapters import MemoryMiddleware
from remegraph.kit import OpenOptions
from remegraph.kit.providers import as_embedder
from remegraph.models import Captured, Memory
from remegraph.models.standing import QUARANTINE_BELOW
from remegraph.testing import FrozenClock, SequentialIds
from remegraph.text.scripts import folded
from remegraph.text.tokens import estimate_tokens

__all__ = ["BUDGETS", "MODES", "NOTE", "TRACED", "WAYS", "Learned", "found_lines", "ours", "remembered", "whole"]

BUDGETS = (500, 2000)
"""Tokens of a context that is asked for."""

TRACED = 1000
"""Tokens of a context in which the words of the memories found are looked for."""

NOTE = "note"
"""Name of what the default middleware shows by itself."""

MODES = ("no model", "strong", "weak")
WAYS = ("summarize", "middleware")

_PATIENT = 10_000_000.0
"""Seconds that an answer may take which somebody writes into a file."""


@dataclass
class Learned:
    """What a kit has after a dialogue."""

    contexts: dict[str, list[str]] = field(default_factory=dict)
    """What an agent would see, by budget or by default, for each question."""
    memories: list[str] = field(default_factory=list)
    """What its live memories say."""
    calls: int = 0
    """How often the model was asked."""
    traced: list[list[bool]] = field(default_factory=list)
    """Of each memory found that stands on words which tell the fact asked for: whether a context of `TRACED` tokens shows
    its quotes, one by one."""


def ours(dialogue: Dialogue, mode: str, way: str, answers: Answers) -> Learned:
    """Tell the kit a dialogue, and return what an agent is shown for each question, and what is remembered.

    Args:
        dialogue: What is said.
        mode: One of `MODES`.
        way: One of `WAYS`.
        answers: What the model answers.

    Raises:
        Unanswered: A prompt waits for its answer.
    """
    before, learned, clock = answers.asked, Learned(), FrozenClock(datetime.fromisoformat(dialogue.messages[0]["time"]))
    model = None if mode == "no model" else HandedModel(answer=_answerer(mode, answers))
    with tempfile.TemporaryDirectory() as home:
        with _opened(home, model, clock, _TRIGGERS[way]) as kit:
            _TOLD[way](kit, dialogue, clock)
            _move(clock, dialogue.asked_at)
            kit.drain()
            live = [each for each in kit.memories(scope=dialogue.scope) if each.live]
            learned.memories = sorted(map(_listed, live))
        with _opened(home, None, clock, _TRIGGERS[way]) as kit:
            for budget in BUDGETS:
                learned.contexts[f"{budget}"] = [
                    _asked(kit, dialogue, fact.question, budget) for fact in dialogue.facts
                ]
            learned.contexts[NOTE] = list(_shown(kit, dialogue))
            learned.traced = list(_traced(kit, dialogue))
    learned.calls = answers.asked - before
    return learned


@contextmanager
def remembered(dialogue: Dialogue, mode: str, answers: Answers) -> Iterator[MemoryKit]:
    """Open a kit that was told a dialogue session by session, a day after its last words.

    Args:
        dialogue: What is said.
        mode: One of `MODES`.
        answers: What the model answers.
    """
    clock = FrozenClock(datetime.fromisoformat(dialogue.messages[0]["time"]))
    model = None if mode == "no model" else HandedModel(answer=_answerer(mode, answers))
    with tempfile.TemporaryDirectory() as home, _opened(home, model, clock, _TRIGGERS["summarize"]) as kit:
        _summarized(kit, dialogue, clock)
        _move(clock, dialogue.asked_at)
        yield kit


def _listed(memory: Memory) -> str:
    """Return a memory as a list shows it: what is over, with its end."""
    return f"{memory.content} (until {memory.valid_to:%Y-%m-%d})" if memory.valid_to else memory.content


def _answerer(mode: str, answers: Answers) -> Callable[[Prompt], dict[str, Any]]:
    if mode == "strong":
        return answers.exact
    return lambda prompt: damaged(answers.nearest(prompt), prompt.key)


def _opened(
    home: str, model: BaseChatModel | None, clock: FrozenClock, extraction: ExtractionPolicy | None = None
) -> MemoryKit:
    settings = Settings(
        home=Path(home),
        capture=CapturePolicy(background=False),  # `drain` does at once what the background would do a moment later
        summary=SummaryPolicy(max_concurrency=1, timeout=_PATIENT),
        agent=AgentMemorySettings(extraction=extraction or ExtractionPolicy()),
    )
    ids = SequentialIds("asked-" if model is None else "id-")
    return MemoryKit.open(settings=settings, model=model, embedder=None, clock=clock, options=OpenOptions(new_id=ids))


def _move(clock: FrozenClock, to: datetime) -> None:
    clock.move(to - clock())


# ---------------------------------------------------------------------------------------------- ways in


def _summarized(kit: MemoryKit, dialogue: Dialogue, clock: FrozenClock) -> None:
    """Summarise after each session."""
    for session in dialogue.sessions:
        _move(clock, session.ends)
        kit.add_messages(session.messages, scope=dialogue.scope, thread=session.thread)
        kit.summarize(scope=dialogue.scope, close=True)


def _talked(kit: MemoryKit, dialogue: Dialogue, clock: FrozenClock) -> None:
    """Let an agent with memory say turn by turn what the assistant of the dialogue said, tool calls included."""
    lines, results = _Lines(), _Results()
    agent = create_agent(
        lines,
        [_NamedTool(name=name) for name in sorted(_tools(dialogue.messages))],
        middleware=[MemoryMiddleware(kit, dialogue.scope), results],
        checkpointer=InMemorySaver(),
    )
    for session in dialogue.sessions:
        config: RunnableConfig = {"configurable": {"thread_id": session.thread}}
        for said, answered in _turns(session.messages):
            _move(clock, datetime.fromisoformat(said[-1]["time"]))
            kit.drain()  # nobody spoke for a while, perhaps
            results.told = {each["tool_call_id"]: each for each in answered if each["role"] == "tool"}
            lines.due = list(_due(said, answered, clock))
            agent.invoke({"messages": [_spoken(each) for each in said]}, config)
            kit.drain()


_TRIGGERS = {"summarize": ExtractionPolicy(trigger="manual"), "middleware": ExtractionPolicy()}
"""When blocks are cut: where slicing alone says so, or as by default."""

_TOLD: Mapping[str, Callable[[MemoryKit, Dialogue, FrozenClock], None]] = {
    "summarize": _summarized,
    "middleware": _talked,
}


def _turns(messages: Sequence[Message]) -> Iterator[tuple[list[Message], list[Message]]]:
    """Yield what is said to the assistant in a row, and all that follows until somebody speaks again."""
    said: list[Message] = []
    answered: list[Message] = []
    for message in messages:
        if message["role"] == "user" and answered:
            yield said, answered
            said, answered = [], []
        (said if message["role"] == "user" else answered).append(message)
    yield said, answered


def _due(said: Sequence[Message], answered: Sequence[Message], clock: FrozenClock) -> Iterator[Callable[[], AIMessage]]:
    """Yield what the model says in a turn, each at its time; it says nothing where the assistant of the dialogue did not."""

    def at(message: Message, text: str) -> Callable[[], AIMessage]:
        def speak() -> AIMessage:
            _move(clock, datetime.fromisoformat(message["time"]))
            calls = [{**call, "type": "tool_call"} for call in message.get("tool_calls", ())]
            return AIMessage(text, id=message["id"], tool_calls=calls)

        return speak

    spoken = [each for each in answered if each["role"] == "assistant"]
    yield from (at(each, each["content"]) for each in spoken)
    if not spoken or spoken[-1].get("tool_calls"):
        last = (answered or said)[-1]
        yield lambda: AIMessage("", id=f"{last['id']}-end")


def _spoken(message: Message) -> HumanMessage:
    return HumanMessage(message["content"], id=message["id"], name=message["name"])


def _tools(messages: Sequence[Message]) -> set[str]:
    return {call["name"] for message in messages for call in message.get("tool_calls", ())}


class _Lines(BaseChatModel):
    """Says what is due."""

    due: list[Callable[[], AIMessage]] = []  # noqa: RUF012 - pydantic copies it
    seen: list[BaseMessage] = []  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "lines"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:  # noqa: ARG002 - the base names them
        """Know which tools there are already."""
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:  # noqa: ARG002
        self.seen = list(messages)
        return ChatResult(generations=[ChatGeneration(message=self.due.pop(0)())])


class _NamedTool(BaseTool):
    """A tool that the agent knows by name; `_Results` has what it returns."""

    description: str = "A tool."

    def _run(self, **args: Any) -> str:
        raise NotImplementedError


class _Results(AgentMiddleware[Any, Any, Any]):
    """Returns what the tools of the dialogue returned."""

    told: Mapping[str, Message] = {}

    def wrap_tool_call(self, request: Any, handler: Any) -> ToolMessage:  # noqa: ARG002 - the base class names it
        """Return the recorded result."""
        result = self.told[request.tool_call["id"]]
        status = "success" if result.get("ok", True) else "error"
        return ToolMessage(
            result["content"],
            id=result["id"],
            tool_call_id=result["tool_call_id"],
            name=request.tool_call["name"],
            status=status,
        )


# ---------------------------------------------------------------------------------------------- what is shown


class _Unrecording:
    """A kit that records nothing of the conversation: each question is asked of the same memory."""

    def __init__(self, kit: MemoryKit) -> None:
        self._kit = kit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kit, name)

    def capture(self, *given: Any, **options: Any) -> Captured:  # noqa: ARG002 - as the kit is called
        """Record nothing."""
        return Captured()


def _asked(kit: MemoryKit, dialogue: Dialogue, question: str, budget: int) -> str:
    """Return what who asks the kit for so many tokens is shown."""
    return kit.recall(question, scope=dialogue.scope, depth="messages", budget=budget).context


def _traced(kit: MemoryKit, dialogue: Dialogue) -> Iterator[list[bool]]:
    """Yield of each memory found that tells a fact whether the context shows its quotes, as far as they may be shown."""
    for fact in dialogue.facts:
        recall = kit.recall(fact.question, scope=dialogue.scope, depth="messages", budget=TRACED, review=False)
        context = folded(recall.context)
        for hit in recall.memories:
            if {item.message_id for item in hit.evidence}.isdisjoint(fact.evidence):
                continue
            quotes = kit.trace(hit.record_id, scope=dialogue.scope).quotes
            told = [each for each in quotes if each.message.trust >= QUARANTINE_BELOW and not each.message.hidden]
            if told:
                yield [folded(each.words) in context for each in told]


def _shown(kit: MemoryKit, dialogue: Dialogue) -> Iterator[str]:
    """Yield what the model of an agent sees beside each question, as the default middleware shows it."""
    lines, memory = _Lines(), MemoryMiddleware(_Unrecording(kit), dialogue.scope)  # type: ignore[arg-type]
    agent = create_agent(lines, middleware=[memory])
    for fact in dialogue.facts:
        lines.due = [lambda: AIMessage("", id="end")]
        asked = HumanMessage(fact.question, id=f"question {fact.n}")
        agent.invoke({"messages": [asked]}, {"configurable": {"thread_id": f"question {fact.n}"}})
        seen = "\n".join(each.text for each in lines.seen)
        yield seen.replace(fact.question, "", 1).strip() if fact.question in seen else seen


# ---------------------------------------------------------------------------------------------- beside it


def found_lines(dialogue: Dialogue, name: str, budget: int) -> list[str]:
    """Return for each question the lines that another memory finds, as many as fit, in the order in which they were said.

    Args:
        dialogue: What is said.
        name: One of `PEERS`.
        budget: Tokens.
    """
    lines, place = dialogue.lines, {message["id"]: at for at, message in enumerate(dialogue.messages)}
    tokens: dict[str, int] = defaultdict(int, {each: estimate_tokens(line + "\n") for each, line in lines.items()})
    with tempfile.TemporaryDirectory() as folder:
        peer = PEERS[name].make(as_embedder(None), Path(folder))
        try:
            peer.add(dialogue.messages)
            return [
                "\n".join(lines[each] for each in sorted(_fitting(found, tokens, budget), key=place.__getitem__))
                for fact in dialogue.facts
                for found in ([each for each, _ in peer.search(fact.question, len(lines))],)
            ]
        finally:
            peer.close()


def _fitting(found: Sequence[str], tokens: Mapping[str, int], budget: int) -> Iterator[str]:
    """Yield what fits into a budget, best first; a long line does not end it."""
    for each in found:
        if tokens[each] <= budget:
            budget -= tokens[each]
            yield each


def whole(dialogue: Dialogue) -> list[str]:
    """Return all that was said, for each question: the ceiling."""
    return ["\n".join(dialogue.lines.values())] * len(dialogue.facts)
