"""Chroma as a vector index: embedded in this process, or a server that processes share.

Vectors are always passed in (no embedding function, which would fetch a model), the space is cosine, and a
record carries one metadata key, its shelf: filters cost time linear in the rows they match. Nothing is read
from the environment or a `.env`, and nothing is sent home.

Chroma reports its failures in many ways (its own errors, ValueError, those of its HTTP client), and a call
that failed may have been applied. Here every failure is a `VectorIndexError`: the outcome is unknown, and
the caller repeats, since writing and removing by id can be repeated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Literal, Self
from urllib.parse import urlsplit

from remegraph.errors import IndexSilentError, SetupError, VectorIndexError
from remegraph.files import AFTER_FORK, give_up_at_fork
from remegraph.ledger.index.breaker import CircuitBreaker

if TYPE_CHECKING:
    import httpx
    from chromadb.api import ClientAPI
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from chromadb.api.models.Collection import Collection
    from chromadb.base_types import InclusionExclusionOperator, LiteralValue, Where
    from chromadb.config import Settings, System
    from pydantic_settings import BaseSettings
    from pydantic_settings import PydanticBaseSettingsSource as Source

    from remegraph.ports import Vectors

__all__ = ["SHELF", "SPACE", "ChromaIndex", "persistent", "stranded"]

SHELF = "shelf"
"""The one metadata key of a record."""
_PAGE = 5_000
_SIGN_OF_LIFE = 2.0  # seconds that a server has for one, after it hung
_AT_ONCE = 500  # vectors that one query is asked with
_NEAR = 10  # hits that are looked at for a record, given its own vector
_SAME = 0.999  # of a cosine that went through the index
SPACE: CreateHNSWConfiguration = {
    "space": "cosine",
    # With Chroma's own 16 neighbours out of 100, no search ever reaches some of many almost equal vectors (117 of
    # 18,000 in twelve trials); with 48 out of 400 it reached all, at the same speed.
    "max_neighbors": 48,
    "ef_construction": 400,
    # The files are written, and the queue before them purged, every so many records. Small collections never reach
    # Chroma's own 1,000: their queue would be scanned at every write.
    "sync_threshold": 100,
}
"""How a collection is made."""
_FORKED = "Open a kit only after the fork (with gunicorn: without --preload), start processes by spawn, or use a Chroma server."
"""What to do where the vector index did not come through a fork."""
_opened_in: set[int] = set()
"""The processes that opened an embedded Chroma: this one, and those that it was forked from."""


class ChromaIndex:
    """Chroma as a `VectorIndex`. It is opened at first use: importing Chroma takes about a second.

    Args:
        connect: Opens it: `persistent` for files that this process owns; for a server see `server`.
    """

    def __init__(self, connect: Callable[[], ClientAPI], breaker: CircuitBreaker | None = None) -> None:
        self._connect = connect
        self._breaker = breaker
        self._process = os.getpid()
        self._client: ClientAPI | None = None
        self._opening = Lock()
        self._closed = False
        self._handles: dict[str, Collection] = {}
        give_up_at_fork(self)

    @classmethod
    def server(cls, url: str, *, timeout: float = 30.0, rest: float = 30.0) -> Self:
        """Use a Chroma server (`chroma run`).

        Args:
            url: `http://host:port` or `https://host:port`.
            timeout: Seconds that a call may take.
            rest: Seconds for which it is not asked again after that; then for a sign of life first.

        Raises:
            SetupError: Not such an address.
        """
        import chromadb.api.fastapi  # noqa: F401 - takes longer than the first recall waits for an index

        address = urlsplit(url)
        host = address.hostname
        if address.scheme not in {"http", "https"} or not host:
            raise SetupError("This is not the address of a Chroma server.", "Give it as http://host:port.")
        secure = address.scheme == "https"
        port = address.port or (443 if secure else 8000)

        heartbeat = partial(_heartbeat, f"{address.scheme}://{host}:{port}")

        def connect() -> ClientAPI:
            heartbeat(timeout)  # Chroma's client itself would wait for ever, from its first call on
            return _connected(host, port, secure=secure, timeout=timeout)

        return cls(connect, CircuitBreaker(partial(heartbeat, min(timeout, _SIGN_OF_LIFE)), rest=rest))

    def upsert(self, collection: str, ids: Sequence[str], shelves: Sequence[str], vectors: Vectors) -> None:
        """Write records, in batches; the collection is made where it is missing.

        Args:
            vectors: float32, shape (len(ids), dimension).
        """
        with self._outcome_unknown(collection) as client:
            handle = self._handles.get(collection) or client.get_or_create_collection(
                collection,
                configuration={"hnsw": SPACE},
                embedding_function=None,
            )
            self._handles[collection] = handle
            size = client.get_max_batch_size()
            for start in range(0, len(ids), size):
                part = slice(start, start + size)
                handle.upsert(
                    ids=list(ids[part]),
                    embeddings=vectors[part],
                    metadatas=[{SHELF: shelf} for shelf in shelves[part]],
                )

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove records, in batches; unknown ids and collections are no error."""
        with self._outcome_unknown(collection) as client, _missing_is_fine():
            handle = self._handle(client, collection)
            size = client.get_max_batch_size()
            for start in range(0, len(ids), size):
                handle.delete(ids=list(ids[start : start + size]))

    def query(self, collection: str, shelves: Sequence[str] | None, vector: Vectors, k: int) -> list[tuple[str, float]]:
        """Return the k nearest on these shelves, best first.

        Args:
            collection: Name of the collection, which must exist.
            shelves: Where to look; the whole collection where none: a filter costs time linear in what it lets pass.
            vector: float32, shape (dimension,).

        Returns:
            Ids with cosine similarities; fewer than k where the shelves hold fewer.
        """
        if k < 1 or (shelves is not None and not shelves):
            return []
        among: dict[InclusionExclusionOperator, list[LiteralValue]] = {"$in": [*(shelves or ())]}
        where: Where | None = None if shelves is None else {SHELF: among}
        with self._outcome_unknown(collection) as client:
            found = self._handle(client, collection).query(
                query_embeddings=vector, n_results=k, where=where, include=["distances"]
            )
            distances = found["distances"] or [[]]
            return [(name, 1.0 - distance) for name, distance in zip(found["ids"][0], distances[0], strict=True)]

    def unreached(self, collection: str, ids: Sequence[str], vectors: Vectors) -> list[str]:
        """Return those of these records that a search for their own vector does not find.

        A vector that is written over an old one takes ways to its neighbours away, and many at once are written side by
        side, without ways to each other: of almost equal ones, a third may be without any.

        Args:
            collection: Name of the collection, which must exist.
            vectors: Theirs, float32, shape (len(ids), dimension).
        """
        lost: list[str] = []
        with self._outcome_unknown(collection) as client:
            handle = self._handle(client, collection)
            looked_for = [at for at in range(len(ids)) if vectors[at].any()]  # nothing is near to zero
            for start in range(0, len(looked_for), _AT_ONCE):
                places = looked_for[start : start + _AT_ONCE]
                found = handle.query(query_embeddings=vectors[places], n_results=_NEAR, include=["distances"])
                for at, names, distances in zip(places, found["ids"], found["distances"] or [], strict=True):
                    if not _finds(ids[at], names, distances):
                        lost.append(ids[at])
        return lost

    def ids(self, collection: str) -> set[str]:
        """Return all ids of a collection; empty where it does not exist."""
        found: set[str] = set()
        with self._outcome_unknown(collection) as client, _missing_is_fine():
            handle = self._handle(client, collection)
            while page := handle.get(limit=_PAGE, offset=len(found), include=[])["ids"]:
                found.update(page)
        return found

    def collections(self) -> set[str]:
        """Return the names of all collections, those of others on the same server too."""
        found: set[str] = set()
        with self._outcome_unknown("the list of collections") as client:
            while page := client.list_collections(limit=_PAGE, offset=len(found)):
                found.update(collection.name for collection in page)
        return found

    def drop(self, collection: str) -> None:
        """Remove a collection; an unknown one is no error."""
        with self._outcome_unknown(collection) as client, _missing_is_fine():
            self._handles.pop(collection, None)
            client.delete_collection(collection)

    def optimize(self, collection: str) -> None:
        """Do nothing: Chroma does so as it writes."""

    def damage(self, *, thorough: bool = False) -> Mapping[str, str]:  # noqa: ARG002 - nothing to look at
        """Return nothing: what is wrong shows when it is used. A `GuardedIndex` looks first."""
        return {}

    def reset(self) -> bool:
        """Refuse: others may share it."""
        return False

    def shred(self) -> bool:
        """Refuse: the files are the server's."""
        return False

    def give_up(self) -> None:
        """Have Chroma forget the client in a forked child, where it would be handed out to new connections."""
        if self._client is not None:
            _forget(self._client._system)  # type: ignore[attr-defined]  # noqa: SLF001 - as above

    def close(self) -> None:
        """Close the client; using the index afterwards is an error."""
        self._closed = True
        self._handles.clear()
        with self._opening:
            client, self._client = self._client, None
        if client is not None and self._process == os.getpid():
            _close(client)

    def _handle(self, client: ClientAPI, collection: str) -> Collection:
        handle = self._handles.get(collection) or client.get_collection(collection, embedding_function=None)
        self._handles[collection] = handle
        return handle

    def _open(self) -> ClientAPI:
        if self._closed:
            raise VectorIndexError("The vector index was closed.", "Open it again.")
        if self._process != os.getpid():  # a client that came through a fork hangs at its first call
            raise VectorIndexError(
                "The vector index was opened by the process that this one was forked from.", AFTER_FORK
            )
        if self._breaker is not None:
            self._breaker.check()
        with self._opening:
            if self._client is None:
                self._client = self._connect()
            return self._client

    @contextmanager
    def _outcome_unknown(self, collection: str) -> Iterator[ClientAPI]:
        """The boundary to Chroma: whatever it raises becomes a `VectorIndexError`."""
        try:
            yield self._open()
        except VectorIndexError:
            raise
        except Exception as error:
            self._handles.pop(collection, None)  # another process may have dropped and recreated it
            if self._breaker is not None and (silence := _silence(error)):
                if silence == "hung":
                    self._breaker.trip()
                raise IndexSilentError(
                    f"The Chroma server does not answer ({str(error) or type(error).__name__})."
                ) from error
            raise VectorIndexError(f"Chroma failed on {collection}: {error}") from error


def _finds(name: str, names: Sequence[str], distances: Sequence[float]) -> bool:
    """Return whether the hits hold a record, or only others that are as near: then it need not be among them."""
    own = names.index(name) if name in names else -1 if len(names) == _NEAR else None
    return own is not None and distances[own] <= 1 - _SAME


def persistent(files: Path) -> ClientAPI:
    """Open an embedded Chroma.

    Args:
        files: Its folder, which is made where it is missing. Only one process may have it open.

    Raises:
        VectorIndexError: It would hang: see `stranded`.
    """
    import chromadb

    if error := stranded():
        raise error
    _opened_in.add(os.getpid())
    return chromadb.PersistentClient(files, settings=_settings())


def stranded() -> VectorIndexError | None:
    """Return why no embedded Chroma can be opened in this process; none where it can.

    Chroma's threads, which it never ends, do not come along through a fork: a child would wait for them for ever, even
    where its parent had closed what it opened.
    """
    if _opened_in <= {os.getpid()}:
        return None
    return VectorIndexError("This process was forked from one that had used a vector index.", _FORKED)


def _heartbeat(address: str, timeout: float) -> None:
    import httpx

    httpx.get(f"{address}/api/v2/heartbeat", timeout=timeout)


def _silence(error: Exception) -> Literal["hung", "away", ""]:
    """Return why a server gave no answer; nothing where it gave one."""
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return "hung"
    return "away" if isinstance(error, httpx.TransportError) else ""


def _connected(host: str, port: int, *, secure: bool, timeout: float) -> ClientAPI:
    """Connect to a server that answers."""
    import chromadb

    client = chromadb.HttpClient(host=host, port=port, ssl=secure, settings=_settings())
    for session in _sessions(client):
        session.timeout = timeout
    return client


def _close(client: ClientAPI) -> None:
    from chromadb.api.client import Client

    assert isinstance(client, Client)  # the interface lacks `close`
    sessions, system = _sessions(client), client._system  # noqa: SLF001 - as below, nothing public leads there
    client.close()
    for session in sessions:  # Chroma leaves its connections to a server open
        session.close()
    if sessions:  # and knows the client by one more name, under which it keeps it for good
        _forget(system)


def _forget(system: System) -> None:
    """Have Chroma know a client no more, under any name."""
    from chromadb.api.shared_system_client import SharedSystemClient

    known = SharedSystemClient._identifier_to_system  # noqa: SLF001
    for name in [name for name, each in known.copy().items() if each is system]:
        known.pop(name, None)


def _sessions(client: ClientAPI) -> list[httpx.Client]:
    """Return what a client speaks to its server through; none where Chroma is embedded."""
    from chromadb.api.client import AdminClient, Client
    from chromadb.api.fastapi import FastAPI

    assert isinstance(client, Client)
    admin = client._admin_client  # noqa: SLF001
    assert isinstance(admin, AdminClient)
    servers = (client._server, admin._server)  # noqa: SLF001
    return [server._session for server in servers if isinstance(server, FastAPI)]  # noqa: SLF001


def _settings() -> Settings:
    """Return settings that come from here alone: no environment, no `.env`, no telemetry."""
    return _own_settings()(anonymized_telemetry=False)


@cache  # a class that is made at every open stays in memory
def _own_settings() -> type[Settings]:
    from chromadb.config import Settings

    class OwnSettings(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],  # noqa: ARG003
            init_settings: Source,
            env_settings: Source,  # noqa: ARG003
            dotenv_settings: Source,  # noqa: ARG003
            file_secret_settings: Source,  # noqa: ARG003
        ) -> tuple[Source, ...]:
            return (init_settings,)

    return OwnSettings


@contextmanager
def _missing_is_fine() -> Iterator[None]:
    from chromadb.errors import NotFoundError

    with suppress(NotFoundError):
        yield
