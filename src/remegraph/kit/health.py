"""How the memory is, for its operator: failures that no caller waits for, figures, and probes.

A kit reports failures and figures, to spans, metrics and the log. Probes are asked every few seconds from outside, and
cost next to nothing: does the ledger answer, does the index, do workers live. For them no kit is opened, and neither Chroma
nor a model is imported. Each is answered in time, and never by an exception.
"""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial, wraps
from hashlib import sha256
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from threading import Lock
from traceback import format_tb
from typing import TYPE_CHECKING, Any, Concatenate, Literal, NamedTuple, ParamSpec, Protocol, TypeVar, get_args
from urllib.parse import urlsplit

from remegraph.deadlines import Probe, within
from remegraph.errors import LedgerUnavailableError, LimitError, RemegraphError, SetupError
from remegraph.models import (
    AddReceipt,
    Captured,
    HealthReport,
    JobState,
    Maintenance,
    QueueDepth,
    Recall,
    SummaryReport,
    WorkerSign,
)
from remegraph.settings import without_passwords
from remegraph.telemetry import SILENT, Attributes, Reading, Telemetry, event

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive
    from remegraph.ledger.database import Database
    from remegraph.ledger.index.projection import VectorProjection
    from remegraph.ledger.jobs import JobQueue
    from remegraph.settings import Settings

__all__ = [
    "INDEX_SECONDS",
    "LEDGER_SECONDS",
    "Health",
    "LifeSign",
    "answered",
    "aobserved",
    "gauges",
    "health",
    "log_refusal",
    "observed",
    "pseudonym",
    "queue_of",
    "worker_gauges",
    "workers",
]

_log = logging.getLogger(__name__)


class Health:
    """Counts what was done and what failed. A surface that must not break its host reports here instead.

    Safe to use from any thread.
    """

    def __init__(self, telemetry: Telemetry = SILENT) -> None:
        self._telemetry = telemetry
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}
        self._away = False

    def count(self, what: str, number: int = 1) -> None:
        """Count some of something, as captures.

        Args:
            what: Names it, in the plural.
            number: How many came.
        """
        with self._lock:
            self._counts[what] += number

    def figure(self, what: str, number: int, warning: str) -> None:
        """Keep how many there are of what should not be, and log it when the first comes.

        Args:
            what: Names it, in the plural.
            number: How many there are now.
            warning: What to say of the first, with the cure.
        """
        with self._lock:
            before, self._counts[what] = self._counts[what], number
        if number and not before:
            _log.warning("%s: %d. %s", what, number, warning, extra=event("host.warned", what=what, number=number))

    def note(self, surface: str, error: BaseException) -> bool:
        """Log a failure that the host is spared, count it, and keep its reason; what a limit refused is logged as that.

        Of an outage of the ledger only the first failure is a warning, until `over`; others are at DEBUG.

        Args:
            surface: What failed: recall, capture, background.
            error: Why.

        Returns:
            Whether it was logged above DEBUG.
        """
        if isinstance(error, LimitError):  # nothing is broken; `remegraph.refused` counts it
            with self._lock:
                self._counts[f"{surface}_refusals"] += 1
                self._reasons[f"{surface}_refusal"] = str(error)
            log_refusal(surface, error)
            return True
        defect = not isinstance(error, RemegraphError)  # what it says may be words of a conversation
        cause = getattr(error, "orig", error)  # of an error of the database
        kind = type(error).__name__
        reason = kind if defect and not isinstance(cause, OSError) else f"{kind}: {cause}"
        with self._lock:
            self._counts[f"{surface}_failures"] += 1
            self._reasons[f"{surface}_failure"] = reason
            outage = isinstance(error, LedgerUnavailableError)
            loud = not (outage and self._away)
            self._away = self._away or outage
        where = f" at:\n{''.join(format_tb(error.__traceback__))}" if defect else ""
        fields = event("host.spared", error, surface=surface)
        level = logging.WARNING if loud else logging.DEBUG
        _log.log(level, "Memory failed (%s), and this process goes on: %s%s", surface, reason, where, extra=fields)
        self._telemetry.count("remegraph.failures", 1, surface=surface)
        return loud

    def over(self) -> None:
        """Note that the ledger answers again, after an outage."""
        with self._lock:
            away, self._away = self._away, False
        if away:
            _log.info("The ledger answers again.", extra=event("ledger.back"))

    def stats(self) -> Mapping[str, int | str]:
        """Return all counts, and the last reason of each kind of failure."""
        with self._lock:
            return {**_NONE, **self._counts, **self._reasons}


_NONE: Mapping[str, int] = dict.fromkeys(
    (
        "captures",
        "recalls",
        "recalls_degraded",
        "capture_failures",
        "capture_refusals",
        "recall_failures",
        "background_failures",
        "background_refusals",
        "jobs_foreign",
        "threads_unrecorded",
        "statements_refused",
    ),
    0,
)
"""Shown also before the first."""


def log_refusal(surface: str, error: LimitError) -> None:
    """Log that a limit refused something, below the level that wakes an operator: which one, of a user or a tenant, and when it may be again."""
    fields = event("limit.refused", error, surface=surface, limit=error.limit, whose=error.whose)
    _log.info("A limit refused (%s), and this process goes on: %s", surface, error, extra=fields)


class _Parts(Protocol):
    @property
    def telemetry(self) -> Telemetry: ...


class _Context(Protocol):
    @property
    def health(self) -> Health: ...

    def parts(self) -> _Parts: ...


class _Verbs(Protocol):
    @property
    def _context(self) -> _Context: ...


K = TypeVar("K", bound=_Verbs)
P = ParamSpec("P")
T = TypeVar("T")

_MISSED = frozenset({"conclusions", "index", "model", "reranker", "vectors"})
"""What an operation can do without, as its report names it before the reason."""


def observed(operation: str) -> Callable[[Callable[Concatenate[K, P], T]], Callable[Concatenate[K, P], T]]:
    """Have a verb report what it did."""

    def decorate(verb: Callable[Concatenate[K, P], T]) -> Callable[Concatenate[K, P], T]:
        @wraps(verb)
        def run(self: K, /, *args: P.args, **kwargs: P.kwargs) -> T:
            with _operation(self, operation) as note:
                result = verb(self, *args, **kwargs)
                note(result)
                return result

        return run

    return decorate


def aobserved(
    operation: str,
) -> Callable[
    [Callable[Concatenate[K, P], Coroutine[Any, Any, T]]], Callable[Concatenate[K, P], Coroutine[Any, Any, T]]
]:
    """Have an async verb report what it did; see `observed`."""

    def decorate(
        verb: Callable[Concatenate[K, P], Coroutine[Any, Any, T]],
    ) -> Callable[Concatenate[K, P], Coroutine[Any, Any, T]]:
        @wraps(verb)
        async def run(self: K, /, *args: P.args, **kwargs: P.kwargs) -> T:
            with _operation(self, operation) as note:
                result = await verb(self, *args, **kwargs)
                note(result)
                return result

        return run

    return decorate


@contextmanager
def _operation(verbs: _Verbs, operation: str) -> Iterator[Callable[[object], None]]:
    context = verbs._context  # noqa: SLF001 - as the verbs themselves ask for it
    telemetry = context.parts().telemetry
    began = time.perf_counter()
    with telemetry.operation(operation) as told:

        def note(result: object) -> None:
            if isinstance(result, AddReceipt | Recall | SummaryReport) or (
                isinstance(result, Captured) and result.added
            ):
                context.health.over()  # none of these is made without the ledger
            told.update(_figures(result))
            for missed in _missed(result):
                telemetry.count("remegraph.degraded", 1, operation=operation, missed=missed)

        yield note
        if _log.isEnabledFor(logging.DEBUG):
            seconds = time.perf_counter() - began
            fields = event("operation.done", operation=operation, seconds=seconds) | told
            _log.debug("Done: %s", operation, extra=fields)


def _figures(result: object) -> Attributes:
    """Return what a result says in numbers."""
    match result:
        case AddReceipt(added=added) | Captured(added=added):
            return {"remegraph.messages.added": added}
        case SummaryReport():
            return {
                "remegraph.blocks.summarized": len(result.blocks),
                "remegraph.memories.created": result.created,
                "remegraph.memories.updated": result.updated,
                "remegraph.memories.refused": sum(result.refused.values()),
            }
        case Recall():
            hits = len(result.memories) + len(result.blocks) + len(result.messages)
            return {"remegraph.recall.hits": hits, "remegraph.recall.index": result.index}
        case Maintenance(dry_run=False):
            return {"remegraph.memories.moved": len(result.moves)}
        case _:
            return {}


def _missed(result: object) -> set[str]:
    """Return what a result had to do without; the reasons are left out, as they may be anybody's words."""
    reasons: tuple[str, ...] = getattr(result, "degraded", ())
    return {name if (name := reason.partition(":")[0]) in _MISSED else "other" for reason in reasons}


def gauges(
    archive: Archive, projection: VectorProjection, jobs: JobQueue, recipe: str, probe: Probe
) -> dict[str, Reading]:
    """Return how to read what waits in a ledger, if it answers in time: an exporter waits for all gauges of a process."""

    def jobs_by_state() -> Mapping[str, int]:
        depth = jobs.depth()
        return {state: getattr(depth, state) for state in get_args(JobState)}

    readings: dict[str, Reading] = {
        "remegraph.index.lag": lambda: {"": projection.lag()},
        "remegraph.queue.depth": jobs_by_state,
        "remegraph.queue.age": lambda: {"": int(jobs.depth().overdue_seconds)},
        "remegraph.queue.foreign": lambda: {"": jobs.depth().foreign},
        "remegraph.blocks.pending": lambda: {"": archive.pending(recipe)},
        "remegraph.blocks.failed": lambda: {"": archive.failed(recipe)},
    }
    return {metric: partial(probe.ask, reading) for metric, reading in readings.items()}


def worker_gauges(home: Path) -> dict[str, Reading]:
    """Return how to read how the workers of this machine are that have this home."""

    def silence() -> Mapping[str, int]:
        return {"": max(int(each.silent_seconds) for each in signs)} if (signs := workers(home)) else {}

    return {
        "remegraph.workers.alive": lambda: {"": sum(each.alive for each in workers(home))},
        "remegraph.workers.silence": silence,
    }


def pseudonym(url: str) -> str:
    """Return what identifies a ledger, without where it is."""
    return sha256(without_passwords(url).encode()).hexdigest()[:12]


# ------------------------------------------------------------------------------------------- from outside


LEDGER_SECONDS, INDEX_SECONDS = 2.0, 1.0
"""Seconds in which the ledger must answer, and the index."""


_WORKERS = "workers"
_EVERY = 1.0  # seconds between two signs of life, at least
_NOW = partial(datetime.now, UTC)


def answered(ask: Callable[[], T], otherwise: T, seconds: float) -> tuple[T, str]:
    """Return an answer and no reason; where there is none in time, the fallback, and why."""
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
    """Ask ledger and index from outside, without a kit. What is wrong is reported, never raised.

    An index in the home itself is not asked: only the process that owns it can.

    Args:
        settings: What a kit would be opened with.
    """
    url, asked = settings.ledger_url, _Asked(QueueDepth(), settings.index)
    try:
        database, jobs = _ledger(settings)
    except RemegraphError as error:
        problem = str(error)
    else:  # what it takes to import and to set up is not the ledger's time
        with closing(database):
            asked, problem = answered(partial(_asked, settings, database, jobs), asked, LEDGER_SECONDS)
    index: Literal["chroma", "pgvector", "embedded", "down"] = "embedded"
    silent = asked.no_index
    if silent:
        index = "down"
    elif asked.chosen == "pgvector":
        index = "down" if problem else "pgvector"
    elif settings.chroma_url is not None:
        _, silent = answered(partial(_greet, settings.chroma_url), None, INDEX_SECONDS)
        index = "down" if silent else "chroma"
    problem = problem or asked.unfit
    return HealthReport(
        ledger="sqlite" if url is None or url.startswith("sqlite") else "postgresql",
        ready=not problem,
        index=index,
        problem=problem or silent,
        queue=asked.queue,
    )


class _Asked(NamedTuple):
    """How much work waits, which index is to be searched, why it cannot be, and why no kit opens with these settings."""

    queue: QueueDepth
    chosen: str | None
    no_index: str = ""
    unfit: str = ""


def _asked(settings: Settings, database: Database, jobs: JobQueue) -> _Asked:
    from remegraph.ledger.index.placement import misnamed, named, noted
    from remegraph.ledger.migrations import brings_jobs, lacks_pgvector, lacks_procrastinate

    queue = queue_of(database, jobs)
    with database.read() as connection:
        index = named(settings) or noted(connection)
        no_index = misnamed(connection, index)
        changes = no_index is not None and settings.migrate == "auto"  # whoever opens it has the ledger change over
        if no_index is None and index == "pgvector":
            no_index = lacks_pgvector(connection)
        unfit = None if changes else no_index
        if unfit is None and brings_jobs(settings, sqlite=database.is_sqlite):
            unfit = lacks_procrastinate(connection)
    return _Asked(queue, index, str(no_index or ""), str(unfit or ""))


def _ledger(settings: Settings) -> tuple[Database, JobQueue]:
    from remegraph.ledger import connections, database, jobs

    home = settings.home.expanduser()
    if settings.ledger_url is None and connections.lacks_ledger(home):
        raise SetupError(f"There is no ledger in {home}.", "Name another folder, or record something first.")
    found = database.Database.as_it_is(connections.ledger_url(settings))
    return found, jobs.JobQueue(found, _NOW, jobs.Stamps(settings))


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

    def __init__(self, home: Path, seconds: float, failed: Callable[[OSError], object]) -> None:
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
