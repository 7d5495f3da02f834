"""What is asked every few seconds, and costs next to nothing: does the ledger answer, does the index, do workers live.

No kit is opened, and neither Chroma nor a model is imported. Whoever asks is answered in time, and never by an exception.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Literal, TypeVar
from urllib.parse import urlsplit

from remegraph.deadlines import within
from remegraph.errors import RemegraphError, SetupError
from remegraph.models import HealthReport, QueueDepth, WorkerSign

if TYPE_CHECKING:
    from remegraph.ledger.database import Database
    from remegraph.ledger.jobs import JobQueue
    from remegraph.settings import Settings

__all__ = ["INDEX_SECONDS", "LEDGER_SECONDS", "LifeSign", "answered", "health", "queue_of", "workers"]

LEDGER_SECONDS, INDEX_SECONDS = 2.0, 1.0
"""Seconds in which the ledger must answer, and the index."""

T = TypeVar("T")

_WORKERS = "workers"
_EVERY = 1.0  # seconds between two signs of life, at least
_NOW = partial(datetime.now, UTC)


def answered(ask: Callable[[], T], otherwise: T, seconds: float) -> tuple[T, str]:
    """Return an answer and nothing; where there is none in time, what is said otherwise, and why."""
    try:
        return within(seconds, ask), ""
    except TimeoutError as error:
        return otherwise, f"There was {error}."
    except (RemegraphError, OSError, HTTPException) as error:
        return otherwise, str(error) or type(error).__name__


def queue_of(database: Database, jobs: JobQueue) -> QueueDepth:
    """Return how much work waits, if the ledger answers and fits this release.

    Raises:
        SetupError: It does not.
    """
    database.ping()
    return jobs.depth()


def health(settings: Settings) -> HealthReport:
    """Ask ledger and index from outside, without a kit. What is wrong is told, and never raised.

    An index in the home itself is not asked: only the process that owns it can.

    Args:
        settings: What a kit would be opened with.
    """
    from remegraph.ledger.jobs import JobQueue, Stamps

    url, queue = settings.ledger_url, QueueDepth()
    try:
        database = _ledger(settings)
    except RemegraphError as error:
        problem = str(error)
    else:  # what it takes to import and to set up is not the ledger's time
        with closing(database):
            jobs = JobQueue(database, _NOW, Stamps(settings))
            queue, problem = answered(partial(queue_of, database, jobs), queue, LEDGER_SECONDS)
    index: Literal["chroma", "pgvector", "embedded", "down"] = "embedded"
    silent = ""
    if settings.index == "pgvector":
        index = "down" if problem else "pgvector"
    elif settings.chroma_url is not None:
        _, silent = answered(partial(_greet, settings.chroma_url), None, INDEX_SECONDS)
        index = "down" if silent else "chroma"
    return HealthReport(
        ledger="sqlite" if url is None or url.startswith("sqlite") else "postgresql",
        ready=not problem,
        index=index,
        problem=problem or silent,
        queue=queue,
    )


def _ledger(settings: Settings) -> Database:
    from remegraph.ledger.connections import lacks_ledger, ledger_url
    from remegraph.ledger.database import Database

    home = settings.home.expanduser()
    if settings.ledger_url is None and lacks_ledger(home):
        raise SetupError(f"There is no ledger in {home}.", "Name another folder, or record something first.")
    return Database.as_it_is(ledger_url(settings))


def _greet(url: str) -> None:
    """Ask a Chroma server for a sign of life.

    Raises:
        SetupError: It does not give one.
    """
    parsed = urlsplit(url if "://" in url else f"http://{url}")
    connection = HTTPSConnection if parsed.scheme == "https" else HTTPConnection
    with closing(connection(parsed.hostname or "", parsed.port, timeout=INDEX_SECONDS)) as opened:
        opened.request("GET", "/api/v2/heartbeat")
        status = opened.getresponse().status
    if status != 200:
        raise SetupError(f"The Chroma server answers with {status}.", "Look at its log.")


# ------------------------------------------------------------------------------------------- workers


class LifeSign:
    """A file in the home that a worker touches while it looks for work or goes on with some, and removes in the end.

    Args:
        home: Of the worker.
        seconds: How long it may be silent: a lease, in which each job is renewed.
        failed: Told the first time that the file cannot be written: it costs the sign, and no work.
    """

    def __init__(self, home: Path, seconds: float, failed: Callable[[OSError], None]) -> None:
        self._file = home / _WORKERS / f"{os.getpid()}@{platform.node()}"
        self._seconds = seconds
        self._failed = failed
        self._well = True
        self._next = 0.0
        self._lock = Lock()

    def give(self) -> None:
        """Give a sign, unless there was one a moment ago. Any thread may."""
        with self._lock:
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + _EVERY
            try:
                self._touch()
                self._well = True
            except OSError as error:
                if self._well:
                    self._failed(error)
                self._well = False

    def _touch(self) -> None:
        try:
            os.utime(self._file)
        except FileNotFoundError:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(f"{self._seconds:g}", encoding="ascii")

    def close(self) -> None:
        """Take it away."""
        if self._well:
            self._file.unlink(missing_ok=True)


def workers(home: Path) -> tuple[WorkerSign, ...]:
    """Return the workers of this machine that have this home, and whether each has given a sign of life lately.

    Args:
        home: As the settings have it; it need not be there.
    """
    found: list[WorkerSign] = []
    for file in sorted((home.expanduser() / _WORKERS).glob(f"*@{platform.node()}")):
        process = int(file.name.partition("@")[0])
        if not _runs(process):
            file.unlink(missing_ok=True)  # it was killed
            continue
        with suppress(FileNotFoundError):  # it ends right now
            silent, limit = max(0.0, time.time() - file.stat().st_mtime), float(file.read_text(encoding="ascii") or 0)
            found.append(WorkerSign(process=process, silent_seconds=silent, alive=silent <= limit))
    return tuple(found)


def _runs(process: int) -> bool:
    if os.name != "posix":
        return True  # there is no way to ask without ending it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
