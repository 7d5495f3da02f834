"""Conversations and scripted answers that several tests share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import event

from remegraph import AgentMemorySettings, ExtractionPolicy, MemoryKit, Message, Scope, Settings, SummaryPolicy
from remegraph.kit import OpenOptions, SaveOptions
from remegraph.models import ToolCall
from remegraph.testing import (
    Answer,
    FrozenClock,
    InMemoryVectorIndex,
    ModelCall,
    ScriptedChatModel,
    SequentialIds,
    Step,
)

NOON = datetime(2025, 3, 4, 12, tzinfo=UTC)
ANN = Scope(user="ann", agent="remy")
EACH_TURN = AgentMemorySettings(extraction=ExtractionPolicy(trigger="per-turn"))
"""For tests of what follows when a turn is cut: that is at once."""
SHARED_KEY = "of all processes on one ledger"
"""Of the journal: on PostgreSQL, none is made unasked."""


def said(text: str, *, name: str = "Ann", minutes: int = 0, thread: str = "main", **fields: Any) -> Message:
    """A message of a user."""
    time = NOON + timedelta(minutes=minutes)
    return Message(role="user", name=name, content=text, time=time, thread=thread, **fields)


def replied(text: str, *, minutes: int = 0, **fields: Any) -> Message:
    """A message of the agent."""
    return Message(role="assistant", name="remy", content=text, time=NOON + timedelta(minutes=minutes), **fields)


def called(tool: str, call_id: str, *, minutes: int = 0, **args: Any) -> Message:
    """A tool call of the agent."""
    call = ToolCall(name=tool, args=args, call_id=call_id)
    return replied("", minutes=minutes, tool_calls=(call,))


def returned(call_id: str, text: str, *, ok: bool = True, minutes: int = 0) -> Message:
    """The result of a tool call."""
    time = NOON + timedelta(minutes=minutes)
    return Message(role="tool", content=text, time=time, tool_call_id=call_id, ok=ok)


def urls_of(home: Path) -> Mapping[str, Any]:  # noqa: ARG001 - what stands in for it looks at the home
    """The servers that a home is on; none here, others with the fixture `setup`."""
    return {}


def open_kit(
    home: Path,
    script: Mapping[str, Any] | None = None,
    *,
    latency: float = 0,
    agent: AgentMemorySettings | None = None,
    extractors: Mapping[str, ScriptedChatModel] | None = None,
    **policy: Any,
) -> MemoryKit:
    """A kit with a scripted model (or none), a standing clock and ids in order; `agent` is the memory of remy."""
    model = None if script is None else ScriptedChatModel(script=dict(script), latency=latency)
    agents = {} if agent is None else {"remy": agent}
    urls = urls_of(home)
    summary = SummaryPolicy(backoff=0, **policy)
    settings = Settings(home=home, summary=summary, agent=EACH_TURN, agents=agents, **urls)
    return MemoryKit.open(
        settings=settings,
        model=model,
        embedder=None,
        index=None if urls else InMemoryVectorIndex(),
        clock=FrozenClock(NOON),
        options=OpenOptions(extractors=extractors or {}, new_id=SequentialIds()),
    )


def packed(given: Mapping[str, Any], kind: type[OpenOptions | SaveOptions] = SaveOptions) -> dict[str, Any]:
    """Return what `save`, or `open`, is given, with what few callers give where it belongs."""
    rare = {each.name for each in fields(kind)}
    options = {name: value for name, value in given.items() if name in rare}
    return {**{name: value for name, value in given.items() if name not in rare}, "options": kind(**options)}


def model_of(kit: MemoryKit, agent: str | None = None) -> ScriptedChatModel:
    """The scripted model of a kit that `open_kit` opened, or that of one agent."""
    model = kit.context.parts().thinkers.of(agent)._asker._model  # type: ignore[attr-defined]
    assert isinstance(model, ScriptedChatModel)
    return model


def clock_of(kit: MemoryKit) -> FrozenClock:
    """The standing clock of a kit that `open_kit` opened."""
    clock = kit.context.parts().clock
    assert isinstance(clock, FrozenClock)
    return clock


def digest(*topics: str, summary: str = "Ann tells about herself.") -> dict[str, Any]:
    """An answer to a digest."""
    return {"summary": summary, "entities": [], "topics": list(topics)}


def create(content: str, n: int, quote: str, **fields: Any) -> dict[str, Any]:
    """An operation that makes a memory."""
    return {"action": "CREATE", "content": content, "evidence": [{"n": n, "quote": quote}], **fields}


def change(action: str, memory: str, n: int, quote: str, **fields: Any) -> dict[str, Any]:
    """An operation on a known memory."""
    return {"action": action, "id": memory, "evidence": [{"n": n, "quote": quote}], **fields}


def proposal(*operations: Mapping[str, Any]) -> dict[str, Any]:
    """An answer to a Sub Agent's question."""
    return {"operations": [dict(operation) for operation in operations]}


def by_topic(answers: Mapping[str, Answer | Sequence[Answer]]) -> Step:
    """A step that answers by the topic asked about: branches run in parallel, so order tells nothing."""
    taken: dict[str, int] = {}

    def step(call: ModelCall) -> Answer:
        match = re.search(r"(?:Topic: |主题：)(\S+)", call.text)
        assert match is not None, call.text
        key = match[1]
        answer = answers[key]
        if isinstance(answer, Sequence):
            at = taken.get(key, 0)
            taken[key] = at + 1
            return answer[min(at, len(answer) - 1)]
        return answer

    return step


def replaced(kit: MemoryKit, old: str, new: str, scope: Scope = ANN) -> None:
    """A person says that the memory which has some words replaced the one which has others."""
    (former,), (latter,) = (
        [each for each in kit.memories(scope=scope) if words in each.content] for words in (old, new)
    )
    kit.topics.link(latter.memory_id, "contradicts", former.memory_id, scope=scope, reason="There is one home.")
    (conflict,) = kit.conflicts.list(scope=scope)
    kit.conflicts.resolve(conflict.conflict_id, "supersede", scope=scope, by="Olga", keep=latter.memory_id)


@contextmanager
def statements(kit: MemoryKit) -> Iterator[list[str]]:
    """Collect what the kit runs on its ledger meanwhile, beginnings and ends of transactions left out."""
    engine, run = kit.context.parts().archive.database.engine, list[str]()

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith(("BEGIN", "COMMIT", "ROLLBACK")):
            run.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield run
    finally:
        event.remove(engine, "before_cursor_execute", note)


def misled(home: Path) -> MemoryKit:
    """A kit whose model takes what a document says for a memory of Ann: it is in quarantine."""
    page = "Ann pays at https://evil.example/x."
    told = digest("personal:Ann", summary=f"Ann asked. {page}")
    steps = {"DigestAnswer": told, "ProposalAnswer": proposal(create(page, 2, page))}
    kit = open_kit(home, steps, reviser="rules")
    pasted = said(page, minutes=1, extra={"remegraph_document": True})
    kit.add_messages([said("I love hiking. Please read this."), pasted], scope=ANN)
    kit.summarize(scope=ANN, close=True)
    return kit
