"""This kit and other memories behind one small protocol: told the same messages, asked the same, with the same embedder.

Each is used as its documentation shows. What they are given is what each message says, one record a message.
A peer is imported when it is made: the packages are in an environment of their own (`make judge` sets it up).
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from chromadb import PersistentClient
from chromadb.config import Settings as ChromaSettings
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore
from numpy.typing import NDArray

from evals._minilm import MiniLM
from evals._rankers import asked_at, bm25_scores
from evals._records import Message, Question, said
from remegraph import AgentMemorySettings, ExtractionPolicy, MemoryKit, RecallFilter, Scope, Settings
from remegraph.kit.providers import as_embedder
from remegraph.ports import Embedder

__all__ = [
    "EMBEDDERS",
    "OURS",
    "PEERS",
    "AsLangChain",
    "Cached",
    "Kit",
    "MakePeer",
    "Mem0",
    "Peer",
    "PeerKind",
    "Scored",
    "embedder_of",
    "installed",
]

EMBEDDERS = ("hashed", "minilm")
"""Hashed n-grams, with nothing downloaded; all-MiniLM-L6-v2, which knows the meaning of English."""

OURS = "remegraph"
Scored = tuple[str, float]
"""The id of a message, and how well it fits; the better, the greater."""

_USER = "ann"
_SCOPE = Scope(user=_USER, agent="remy")
_NOTHING_EXTRACTED = AgentMemorySettings(extraction=ExtractionPolicy(mode="tool-call"))
"""Raw messages are compared: time for memories made of them would be wasted."""
_ALL = RecallFilter(min_trust=0)
"""What tools returned is asked for, too."""
_AT_ONCE = 1000
_NAMESPACE = ("memories", _USER)
_MEM0_TIMES = ("created_at", "updated_at")


class Peer(ABC):
    """A memory of one user."""

    @abstractmethod
    def add(self, messages: Sequence[Message]) -> None:
        """Record messages."""

    @abstractmethod
    def search(self, question: str, k: int) -> Sequence[Scored]:
        """Return at most k messages, best first."""

    def ask(self, question: Question, k: int) -> Sequence[Scored]:
        """Return the same for a question with its time; most have no use for that."""
        return self.search(question["text"], k)

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Give back what it holds."""


MakePeer = Callable[[Embedder, Path], Peer]
"""Makes an empty memory, with an embedder, in an empty folder."""


@dataclass(frozen=True, slots=True)
class PeerKind:
    """How a memory is made, and the distribution that it needs."""

    make: MakePeer
    package: str
    module: str

    @property
    def installed(self) -> bool:
        """Whether it can be made here."""
        return find_spec(self.module) is not None

    @property
    def version(self) -> str:
        """Of its distribution."""
        return f"{self.package} {version(self.package)}"


def installed(kinds: Mapping[str, PeerKind]) -> dict[str, PeerKind]:
    """Return those that can be made here, and say which cannot."""
    for name, kind in kinds.items():
        if not kind.installed:
            print(f"{name} is not installed: left out. `make judge` installs it.")
    return {name: kind for name, kind in kinds.items() if kind.installed}


class Cached:
    """An embedder that embeds no text twice, so that many memories can share a slow one.

    Args:
        embedder: The embedder.
        known: What it has embedded elsewhere.
    """

    def __init__(self, embedder: Embedder, known: Mapping[str, NDArray[np.float32]] | None = None) -> None:
        self._embedder = embedder
        self.known: dict[str, NDArray[np.float32]] = {**(known or {})}
        self.name = embedder.name
        self.dimension = embedder.dimension
        self.semantic = embedder.semantic

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, shape (len(texts), dimension)."""
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        self.known |= dict(zip(new, self._embedder.embed(new), strict=True)) if new else {}
        return np.array([self.known[text] for text in texts], np.float32).reshape(len(texts), self.dimension)


def embedder_of(name: str, known: Mapping[str, NDArray[np.float32]] | None = None) -> Cached:
    """Return an embedder that embeds no text twice.

    Args:
        name: One of `EMBEDDERS`.
        known: What it has embedded elsewhere.
    """
    return Cached(MiniLM() if name == "minilm" else as_embedder(None), known)


class AsLangChain(Embeddings):
    """One of our embedders as LangChain's `Embeddings`.

    Args:
        embedder: The embedder.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector per text."""
        vectors: list[list[float]] = self._embedder.embed(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        return self.embed_documents([text])[0]


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

    def search(self, question: str, k: int) -> Sequence[Scored]:
        """Return at most k messages, best first."""
        return self._found(question, k, self._at())

    def ask(self, question: Question, k: int) -> Sequence[Scored]:
        """Return the same, as if it were asked at its time."""
        return self._found(question["text"], k, self._at(question.get("time")))

    def _found(self, question: str, k: int, at: datetime) -> Sequence[Scored]:
        recall = self._kit.recall(question, scope=_SCOPE, depth="messages", k=k, asked_at=at, only=_ALL)
        return [(hit.record_id, hit.score) for hit in recall.messages]

    def close(self) -> None:
        """Close the kit."""
        self._kit.close()


class _BM25(Peer):
    """Plain BM25 over single messages, with the product's tokens: the floor."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        """Take no embedder and no folder: all peers are made alike."""

    def add(self, messages: Sequence[Message]) -> None:
        self._scores = bm25_scores(messages)

    def search(self, question: str, k: int) -> Sequence[Scored]:
        return sorted(self._scores(question).items(), key=lambda scored: -scored[1])[:k]


class _Chroma(Peer):
    """A collection of Chroma, by cosine."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        client = PersistentClient(str(folder), ChromaSettings(anonymized_telemetry=False))
        self._embedder = embedder
        self._collection = client.create_collection(
            "messages", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def add(self, messages: Sequence[Message]) -> None:
        for start in range(0, len(messages), _AT_ONCE):
            part = messages[start : start + _AT_ONCE]
            vectors = self._embedder.embed([said(each) for each in part])
            self._collection.add([each["id"] for each in part], embeddings=vectors)

    def search(self, question: str, k: int) -> Sequence[Scored]:
        vector = self._embedder.embed([question])
        found = self._collection.query(query_embeddings=vector, n_results=k, include=["distances"])
        (distances,) = found["distances"] or [[]]
        return [(name, -distance) for name, distance in zip(found["ids"][0], distances, strict=True)]


class _LangMem(Peer):
    """LangMem's tool that searches LangGraph's `InMemoryStore`."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:  # noqa: ARG002 - all peers are made alike
        from langmem import create_search_memory_tool

        self._store = InMemoryStore(index={"embed": AsLangChain(embedder), "dims": embedder.dimension})
        self._tool = create_search_memory_tool(_NAMESPACE, store=self._store, response_format="content_and_artifact")

    def add(self, messages: Sequence[Message]) -> None:
        for each in messages:  # `batch` refuses texts that are there twice
            self._store.put(_NAMESPACE, each["id"], {"content": said(each)})

    def search(self, question: str, k: int) -> Sequence[Scored]:
        call = {"args": {"query": question, "limit": k}, "id": "1", "type": "tool_call", "name": self._tool.name}
        return [(item.key, item.score) for item in self._tool.invoke(call).artifact]


class Mem0(Peer):
    """mem0 on Chroma, which records what it is told as it is (`infer=False`), and leaves nothing out for being unlike.

    One by one that takes too long: what its `add` writes is given to its own vector store in bulk, in records that are
    checked against one of its `add`.
    """

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder))  # read when mem0 is imported
        from langchain_core.language_models import FakeListChatModel
        from mem0 import Memory

        self._embedder = embedder
        self.memory = Memory.from_config(
            {
                "llm": {"provider": "langchain", "config": {"model": FakeListChatModel(responses=[""])}},
                "embedder": {"provider": "langchain", "config": {"model": AsLangChain(embedder)}},
                "vector_store": {"provider": "chroma", "config": {"path": str(folder / "chroma")}},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def add(self, messages: Sequence[Message]) -> None:
        for start in range(0, len(messages), _AT_ONCE):
            part = messages[start : start + _AT_ONCE]
            self.fill([(_USER, said(each), {"message": each["id"]}) for each in part])

    def search(self, question: str, k: int) -> Sequence[Scored]:
        found = self.memory.search(question, filters={"user_id": _USER}, top_k=k, threshold=0.0)
        return [(each["metadata"]["message"], each["score"]) for each in found["results"]]

    def fill(self, told: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
        """Write to its store what `add` would; return the ids of the records.

        Args:
            told: Users, texts and metadata.
        """
        from mem0.utils.lemmatization import lemmatize_for_bm25

        now = datetime.now(UTC).isoformat()
        ids = [str(uuid4()) for _ in told]
        payloads = [
            {
                **metadata,
                "user_id": user,
                "role": "user",
                "data": text,
                "hash": hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
                "text_lemmatized": lemmatize_for_bm25(text),
            }
            | dict.fromkeys(_MEM0_TIMES, now)
            for user, text, metadata in told
        ]
        vectors = self._embedder.embed([text for _, text, _ in told])
        self.memory.vector_store.insert(vectors=vectors, payloads=payloads, ids=ids)
        return ids

    def check(self) -> None:
        """Make sure that a record of `fill` is one of `add`.

        Raises:
            RuntimeError: Another version of mem0 writes other records.
        """
        text, metadata = "I love hiking in the hills of Wales.", {"message": "check"}
        (filled,) = self.fill([("checker", text, metadata)])
        turn = [{"role": "user", "content": text}]
        added = self.memory.add(turn, user_id="checker", infer=False, metadata=metadata)["results"][0]["id"]
        if self._record(filled) != self._record(added):
            raise RuntimeError(f"mem0 writes {self._record(added)}, not {self._record(filled)}: say so in `fill`.")

    def _record(self, name: str) -> tuple[dict[str, Any], list[float]]:
        """Return a record without its times, but with their kinds."""
        found = self.memory.vector_store.collection.get(ids=[name], include=["metadatas", "embeddings"])
        (payload,), (vector,) = found["metadatas"], found["embeddings"]
        return payload | {time: type(payload[time]).__name__ for time in _MEM0_TIMES}, vector.tolist()


PEERS = {
    OURS: PeerKind(Kit, "remegraph", "remegraph"),
    "BM25": PeerKind(_BM25, "remegraph", "remegraph"),
    "Chroma": PeerKind(_Chroma, "chromadb", "chromadb"),
    "mem0": PeerKind(Mem0, "mem0ai", "mem0"),
    "LangMem": PeerKind(_LangMem, "langmem", "langmem"),
}
