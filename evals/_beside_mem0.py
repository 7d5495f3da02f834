"""The same messages of one user given to this library and to mem0 on Chroma, with the same embedder, in one process.

mem0 records what it is told as it is (`infer=False`): no model is called. Questions and additions come in turn, so that
whatever else the machine does weighs on both alike.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TypedDict

from evals._figures import Figure
from evals._peers import PEERS
from evals._records import Message as Told
from evals._talk import PER_MEMORY, Talk, learn
from evals._timing import Stopwatch, Timing
from remegraph import MemoryKit, Message, Settings
from remegraph.language.embedding import HashedEmbedder

__all__ = ["MEM0", "Beside", "figures", "measure"]

MEM0 = PEERS["mem0, Chroma"]
_BATCH = 1_000
_K = 10
_USER = 0


class Beside(TypedDict):
    """What each takes, with so many messages of one user."""

    messages: int
    version: str
    recall: Timing
    recall_messages: Timing
    search: Timing
    """mem0's."""
    single: Timing
    thousand: Timing
    add: Timing
    """mem0's, of one message."""


def measure(messages: int, *, rounds: int) -> Beside:
    """Fill both with so many messages, then ask both and add to both.

    Args:
        messages: In all.
        rounds: Questions asked, and messages added one by one.
    """
    talk, watch = Talk(), Stopwatch()
    scope = talk.scope(_USER)
    with (
        tempfile.TemporaryDirectory() as folder,
        MemoryKit.open(settings=Settings(home=Path(folder) / "home"), model=None, embedder=None) as kit,
    ):
        peer = MEM0.make(HashedEmbedder(), Path(folder) / "mem0")
        for _ in range(0, messages, _BATCH):
            batch = talk.messages(min(_BATCH, messages))
            watch.time("thousand", lambda: kit.add_messages(batch, scope=scope))  # noqa: B023 - called at once
            peer.add([_told(message) for message in batch])
        learn(kit, talk.memories(scope.partition(), messages // PER_MEMORY, "history"))
        for message in talk.messages(rounds):
            watch.time("single", lambda: kit.add_messages([message], scope=scope))  # noqa: B023
            told = [_told(message)]
            watch.time("add", lambda: peer.add(told))  # noqa: B023
        for _, question in talk.questions(rounds, 1):
            watch.time("recall", lambda: kit.recall(question, scope=scope, k=_K))  # noqa: B023
            watch.time("recall messages", lambda: kit.recall(question, scope=scope, k=_K, depth="messages"))  # noqa: B023
            watch.time("search", lambda: peer.search(question, _K))  # noqa: B023
        peer.close()
    return Beside(
        messages=messages,
        version=MEM0.version,
        recall=watch.timing("recall"),
        recall_messages=watch.timing("recall messages"),
        search=watch.timing("search"),
        single=watch.timing("single"),
        thousand=watch.timing("thousand"),
        add=watch.timing("add"),
    )


def _told(message: Message) -> Told:
    return Told(
        id=message.message_id,
        thread=message.thread,
        name=message.name,
        role=message.role,
        content=message.text,
        time=message.time.isoformat(),
    )


def figures(beside: Beside) -> list[Figure]:
    """Return how many times faster each is than mem0.

    Args:
        beside: What was measured.
    """
    name = f"{beside['messages']:,} messages, {beside['version']}"
    search, add = beside["search"], beside["add"]
    found = [
        Figure(
            f"{name}: its search / {what}",
            search["p50"] / timing["p50"],
            5,
            "at least",
            "x",
            f"{search['p50']:.1f} ms / {timing['p50']:.1f} ms",
        )
        for what, timing in (("recall", beside["recall"]), ("recall of messages", beside["recall_messages"]))
    ]
    return [
        *found,
        Figure(
            f"{name}: its add / single add",
            add["p50"] / beside["single"]["p50"],
            20,
            "at least",
            "x",
            f"{add['p50']:.1f} ms / {beside['single']['p50']:.2f} ms",
        ),
        Figure(
            f"{name}: its add / a message of 1,000",
            add["p50"] * min(_BATCH, beside["messages"]) / beside["thousand"]["p50"],
            150,
            "at least",
            "x",
        ),
    ]
