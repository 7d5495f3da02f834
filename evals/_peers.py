"""Other memories behind one small protocol, and what each needs to be asked the same questions with the same embedder.

Each is used as its documentation shows. What they are given is what each message says, one record a message.
A peer is imported when it is made: the packages are in an environment of their own (`make eval` sets it up).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from chromadb import PersistentClient
from chromadb.config import Settings
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore
from numpy.typing import NDArray

from evals._rankers import bm25_ranker
from evals._records import Message, Question, said
from remegraph.ports import Embedder

__all__ = ["PEERS", "AsLangChain", "Cached", "MakePeer", "Mem0", "Peer", "PeerKind", "installed"]

_USER = "ann"
_AT_ONCE = 1000
_NAMESPACE = ("memories", _USER)


class Peer(ABC):
    """A memory of one user."""

    @abstractmethod
    def add(self, messages: Sequence[Message]) -> None:
        """Record messages."""

    @abstractmethod
    def search(self, question: str, k: int) -> Sequence[str]:
        """Return the ids of at most k messages, best first."""

    def ask(self, question: Question, k: int) -> Sequence[str]:
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
            print(f"{name} is not installed: left out. `make eval` installs it.")
    return {name: kind for name, kind in kinds.items() if kind.installed}


class Cached:
    """An embedder that embeds no text twice, so that many memories can share a slow one.

    Args:
        embedder: The embedder.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, NDArray[np.float32]] = {}
        self.name = embedder.name
        self.dimension = embedder.dimension
        self.semantic = embedder.semantic

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, shape (len(texts), dimension)."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known |= dict(zip(new, self._embedder.embed(new), strict=True)) if new else {}
        return np.array([self._known[text] for text in texts], np.float32).reshape(len(texts), self.dimension)


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


class _BM25(Peer):
    """Plain BM25 over single messages, with the product's tokens: the floor."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:  # noqa: ARG002 - all peers are made alike
        self._messages: list[Message] = []

    def add(self, messages: Sequence[Message]) -> None:
        self._rank = bm25_ranker(messages)

    def search(self, question: str, k: int) -> Sequence[str]:
        return self._rank(question, k)


class _Chroma(Peer):
    """A collection of Chroma, by cosine."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        client = PersistentClient(str(folder), Settings(anonymized_telemetry=False))
        self._embedder = embedder
        self._collection = client.create_collection(
            "messages", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def add(self, messages: Sequence[Message]) -> None:
        for start in range(0, len(messages), _AT_ONCE):
            part = messages[start : start + _AT_ONCE]
            vectors = self._embedder.embed([said(each) for each in part])
            self._collection.add([each["id"] for each in part], embeddings=vectors)

    def search(self, question: str, k: int) -> Sequence[str]:
        found = self._collection.query(query_embeddings=self._embedder.embed([question]), n_results=k, include=[])
        return found["ids"][0]


class _LangGraphStore(Peer):
    """LangGraph's `InMemoryStore` with vector search."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:  # noqa: ARG002
        self._store = InMemoryStore(index={"embed": AsLangChain(embedder), "dims": embedder.dimension})

    def add(self, messages: Sequence[Message]) -> None:
        for each in messages:  # `batch` refuses texts that are there twice
            self._store.put(_NAMESPACE, each["id"], {"content": said(each)})

    def search(self, question: str, k: int) -> Sequence[str]:
        return [item.key for item in self._store.search(_NAMESPACE, query=question, limit=k)]


class _LangMem(_LangGraphStore):
    """LangMem's tool that searches the store."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        from langmem import create_search_memory_tool

        super().__init__(embedder, folder)
        self._tool = create_search_memory_tool(_NAMESPACE, store=self._store, response_format="content_and_artifact")

    def search(self, question: str, k: int) -> Sequence[str]:
        call = {"args": {"query": question, "limit": k}, "id": "1", "type": "tool_call", "name": self._tool.name}
        return [item.key for item in self._tool.invoke(call).artifact]


class Mem0(Peer):
    """mem0, which records what it is told as it is (`infer=False`), and leaves nothing out for being unlike."""

    def __init__(self, embedder: Embedder, folder: Path, store: Mapping[str, Any]) -> None:
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder))  # read when mem0 is imported
        from langchain_core.language_models import FakeListChatModel
        from mem0 import Memory

        self.memory = Memory.from_config(
            {
                "llm": {"provider": "langchain", "config": {"model": FakeListChatModel(responses=[""])}},
                "embedder": {"provider": "langchain", "config": {"model": AsLangChain(embedder)}},
                "vector_store": store,
                "history_db_path": str(folder / "history.db"),
            }
        )

    @classmethod
    def on_chroma(cls, embedder: Embedder, folder: Path) -> Mem0:
        """Return mem0 on Chroma."""
        return cls(embedder, folder, {"provider": "chroma", "config": {"path": str(folder / "chroma")}})

    @classmethod
    def on_qdrant(cls, embedder: Embedder, folder: Path) -> Mem0:
        """Return mem0 on Qdrant, in a folder."""
        place = {"path": str(folder / "qdrant"), "embedding_model_dims": embedder.dimension, "on_disk": True}
        return cls(embedder, folder, {"provider": "qdrant", "config": place})

    def add(self, messages: Sequence[Message]) -> None:
        for each in messages:
            turn = [{"role": "user", "content": said(each)}]
            self.memory.add(turn, user_id=_USER, infer=False, metadata={"message": each["id"]})

    def search(self, question: str, k: int) -> Sequence[str]:
        found = self.memory.search(question, filters={"user_id": _USER}, top_k=k, threshold=0.0)
        return [each["metadata"]["message"] for each in found["results"]]


PEERS = {
    "BM25": PeerKind(_BM25, "remegraph", "remegraph"),
    "Chroma": PeerKind(_Chroma, "chromadb", "chromadb"),
    "LangGraph InMemoryStore": PeerKind(_LangGraphStore, "langgraph", "langgraph"),
    "LangMem": PeerKind(_LangMem, "langmem", "langmem"),
    "mem0, Chroma": PeerKind(Mem0.on_chroma, "mem0ai", "mem0"),
    "mem0, Qdrant": PeerKind(Mem0.on_qdrant, "mem0ai", "mem0"),
}
