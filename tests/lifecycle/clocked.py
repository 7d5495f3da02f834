"""Kits whose time is moved by hand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from remegraph import AgentMemorySettings, LifecyclePolicy, MemoryKit, RetrievalPolicy, Settings
from remegraph.models import Memory
from remegraph.testing import FrozenClock, InMemoryVectorIndex, SequentialIds
from tests.talk import ANN, NOON, said

DAY = timedelta(days=1)


def clocked(
    home: Path,
    clock: FrozenClock | None = None,
    *,
    lifecycle: LifecyclePolicy | None = None,
    retrieval: RetrievalPolicy | None = None,
    ids: str = "id-",
) -> tuple[MemoryKit, FrozenClock]:
    """A kit of remy, and its clock."""
    clock = clock or FrozenClock(NOON)
    agent = AgentMemorySettings(lifecycle=lifecycle or LifecyclePolicy(), retrieval=retrieval or RetrievalPolicy())
    kit = MemoryKit.open(
        settings=Settings(home=home, agent=agent),
        model=None,
        embedder=None,
        index=InMemoryVectorIndex(),
        clock=clock,
        new_id=SequentialIds(ids),
    )
    return kit, clock


def told(kit: MemoryKit, *texts: str) -> list[Memory]:
    """Let Ann tell something now, each in a conversation of its own; return the memories of it: episodes."""
    now = kit._clock()
    messages = [said(text, thread=text).evolve(time=now) for text in texts]
    kit.add_messages(messages, scope=ANN)
    kit.summarize(scope=ANN, close=True)
    known = {memory.content.removeprefix("Ann: "): memory for memory in kit.memories(scope=ANN)}
    return [known[text] for text in texts]


def saved(kit: MemoryKit, content: str, **fields: float) -> Memory:
    """Save a statement of Ann's, which makes a long-term memory of it."""
    memory = kit.save("note", content, scope=ANN, importance=fields.get("importance", 0.5)).memory
    assert memory is not None
    return memory
