"""This kit, and its ranking in memory with signs left out, as memories to be measured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from evals._peers import Peer, PeerKind
from evals._rankers import asked_at, blend_ranker
from evals._records import Message, Question
from evals._tables import OURS, PART
from remegraph import AgentMemorySettings, ExtractionPolicy, MemoryKit, RecallFilter, Scope, Settings
from remegraph.ports import Embedder
from remegraph.rules.blending import Weights, default_weights

__all__ = ["Kit", "Part", "kit", "parts"]

_SCOPE = Scope(user="ann", agent="remy")
_NOTHING_EXTRACTED = AgentMemorySettings(extraction=ExtractionPolicy(mode="tool-call"))
"""Raw messages are compared: time for memories made of them would be wasted."""
_ALL = RecallFilter(min_trust=0)
"""What tools returned is asked for, too."""


class Kit(Peer):
    """This kit: messages are recorded and, where the embedder knows meaning, embedded.

    Args:
        embedder: The embedder.
        folder: Its home.
        timezone: Zone of times that name none.
    """

    def __init__(self, embedder: Embedder, folder: Path, timezone: str | None = None) -> None:
        settings = Settings(home=folder, agents={"remy": _NOTHING_EXTRACTED})
        self._kit = MemoryKit.open(settings=settings, model=None, embedder=embedder)
        self._semantic = embedder.semantic
        self._timezone = timezone

    def add(self, messages: Sequence[Message]) -> None:
        """Record messages."""
        self._kit.add_messages(messages, scope=_SCOPE, timezone=self._timezone)
        self._at = partial(asked_at, messages, self._timezone)
        if self._semantic:
            self._kit.summarize(scope=_SCOPE)  # makes the vectors of messages

    def search(self, question: str, k: int) -> Sequence[str]:
        """Return the ids of at most k messages, best first."""
        return self._found(question, k, self._at())

    def ask(self, question: Question, k: int) -> Sequence[str]:
        """Return the same, as if it were asked at its time."""
        return self._found(question["text"], k, self._at(question.get("time")))

    def _found(self, question: str, k: int, at: datetime) -> Sequence[str]:
        recall = self._kit.recall(question, scope=_SCOPE, depth="messages", k=k, asked_at=at, only=_ALL)
        return [hit.record_id for hit in recall.messages]

    def close(self) -> None:
        """Close the kit."""
        self._kit.close()


class Part(Peer):
    """The kit's ranking in memory, with some of its signs."""

    def __init__(
        self,
        embedder: Embedder,
        folder: Path,  # noqa: ARG002 - all peers are made alike
        *,
        weights: Weights | None = None,
        timezone: str | None = None,
    ) -> None:
        self._embedder = embedder
        self._weights = weights
        self._timezone = timezone

    def add(self, messages: Sequence[Message]) -> None:
        self._rank = blend_ranker(messages, self._timezone, self._weights, self._embedder)
        self._at = partial(asked_at, messages, self._timezone)

    def search(self, question: str, k: int) -> Sequence[str]:
        return self._rank(question, k)

    def ask(self, question: Question, k: int) -> Sequence[str]:
        return self._rank(question["text"], k, self._at(question.get("time")))


def kit(timezone: str | None) -> dict[str, PeerKind]:
    """Return this kit, by its name."""
    return {OURS: PeerKind(partial(Kit, timezone=timezone), "remegraph", "remegraph")}


def parts(timezone: str | None, *, semantic: bool) -> dict[str, PeerKind]:
    """Return its ranking with signs left out, by what is left."""
    full = default_weights(semantic=semantic)
    windows = {name: weight for name, weight in full.words.items() if name.startswith("window")}
    threadless = {name: weight for name, weight in full.words.items() if name != "thread"}
    answerless = {name: weight for name, weight in full.words.items() if name != "answers"}
    left = {
        "words only": Weights.of({"words": 1.0}, {}),
        "windows only": Weights.of(windows, {}),
        "without thread": Weights.of(threadless, full.message, full.meaning, full.read),
        "without answers": Weights.of(answerless, full.message, full.meaning, full.read),
        "without speaker, tells and then": Weights.of(full.words, {}, full.meaning, full.read),
    }
    if semantic:
        left["without meaning"] = default_weights()
    return {
        f"{PART}{name}": PeerKind(partial(Part, weights=weights, timezone=timezone), "remegraph", "remegraph")
        for name, weights in left.items()
    }
