"""The same messages of many users given to this library and to mem0 on Chroma, with the same embedder, in one process.

mem0 records what it is told as it is (`infer=False`): no model is called. One by one that would take too long, so its
history is written to its own store in bulk, in records that are checked against one of its `add`. Questions and
additions come in turn, so that whatever else the machine does weighs on both alike.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from evals._figures import Figure
from evals._peers import PEERS, Mem0
from evals._talk import PER_MEMORY, Talk, learn
from evals._timing import Stopwatch, Timing
from remegraph import MemoryKit, Message, Scope, Settings
from remegraph.ledger.index.embedders import HashedEmbedder

__all__ = ["MEM0", "Beside", "figures", "measure"]

MEM0 = PEERS["mem0"]
_AT_ONCE = 1_000
_TOLD = 100
"""Messages that mem0 is told in one call: it takes each by itself all the same."""
_K = 10
_WARM = 5


class Beside(TypedDict):
    """What each takes, with so many messages of so many users."""

    messages: int
    users: int
    version: str
    recall: Timing
    recall_messages: Timing
    search: Timing
    """mem0's."""
    single: Timing
    thousand: Timing
    add: Timing
    """mem0's, of one message."""
    add_hundred: Timing
    """mem0's, of a hundred messages in one call."""


def measure(messages: int, users: int, *, rounds: int) -> Beside:
    """Fill both with so many messages of so many users, then ask both and add to both.

    Args:
        messages: In all.
        users: Each has the same number of them.
        rounds: Questions asked, and messages added one by one.
    """
    talk, watch = Talk(), Stopwatch()
    with (
        tempfile.TemporaryDirectory() as folder,
        MemoryKit.open(settings=Settings(home=Path(folder) / "home"), model=None, embedder=None) as kit,
    ):
        peer = _Peer(HashedEmbedder(), Path(folder) / "mem0")
        _fill(kit, peer, talk, messages, users)
        for number, (scope, question) in enumerate(talk.questions(rounds + _WARM, users)):
            clock = watch if number >= _WARM else Stopwatch()
            clock.time("recall", lambda: kit.recall(question, scope=scope, k=_K))  # noqa: B023 - called at once
            clock.time("recall messages", lambda: kit.recall(question, scope=scope, k=_K, depth="messages"))  # noqa: B023
            clock.time("search", lambda: peer.search_of(scope, question))  # noqa: B023
        for number, message in enumerate(talk.messages(rounds)):
            scope = talk.scope(number % users)
            watch.time("single", lambda: kit.add_messages([message], scope=scope))  # noqa: B023
            watch.time("add", lambda: peer.add_of(scope, [message]))  # noqa: B023
        for _ in range(max(1, rounds // 20)):
            batch = talk.messages(_AT_ONCE)
            watch.time("thousand", lambda: kit.add_messages(batch, scope=scope))  # noqa: B023
            watch.time("add hundred", lambda: peer.add_of(scope, batch[:_TOLD]))  # noqa: B023
    return Beside(
        messages=messages,
        users=users,
        version=MEM0.version,
        recall=watch.timing("recall"),
        recall_messages=watch.timing("recall messages"),
        search=watch.timing("search"),
        single=watch.timing("single"),
        thousand=watch.timing("thousand"),
        add=watch.timing("add"),
        add_hundred=watch.timing("add hundred"),
    )


def _fill(kit: MemoryKit, peer: _Peer, talk: Talk, messages: int, users: int) -> None:
    each = messages // users
    waiting: list[tuple[Scope, Message]] = []
    for user in range(users):
        scope = talk.scope(user)
        for first in range(0, each, _AT_ONCE):
            batch = talk.messages(min(_AT_ONCE, each - first))
            kit.add_messages(batch, scope=scope)
            waiting += [(scope, message) for message in batch]
            if len(waiting) >= _AT_ONCE or user == users - 1:
                peer.fill_of(waiting)
                waiting.clear()
    learned = max(1, each // PER_MEMORY)
    learn(kit, *(talk.memories(talk.scope(user).partition(), learned, f"history of {user}") for user in range(users)))
    peer.check()


class _Peer(Mem0):
    """mem0 with many users."""

    def add_of(self, scope: Scope, messages: Sequence[Message]) -> object:
        """Record messages of a user."""
        told = [{"role": "user", "content": message.text} for message in messages]
        return self.memory.add(told, user_id=_user(scope), infer=False)

    def search_of(self, scope: Scope, question: str) -> object:
        """Return what is found for a user."""
        return self.memory.search(question, filters={"user_id": _user(scope)}, top_k=_K, threshold=0.0)

    def fill_of(self, told: Sequence[tuple[Scope, Message]]) -> None:
        """Write to its store what its `add` would."""
        self.fill([(_user(scope), message.text, {}) for scope, message in told])


def _user(scope: Scope) -> str:
    return (scope.user or "").replace(" ", "-")


def figures(beside: Beside) -> list[Figure]:
    """Return how many times faster each is than mem0.

    Args:
        beside: What was measured.
    """
    name = f"{beside['messages']:,} messages of {beside['users']:,} users, {beside['version']}"
    search, add = beside["search"], beside["add"]
    hundred, thousand = beside["add_hundred"], beside["thousand"]
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
            f"{name}: a message of its 100 / of 1,000",
            hundred["p50"] / _TOLD / (thousand["p50"] / _AT_ONCE),
            150,
            "at least",
            "x",
            f"{hundred['p50'] / _TOLD:.1f} ms / {thousand['p50'] / _AT_ONCE:.3f} ms",
        ),
    ]
