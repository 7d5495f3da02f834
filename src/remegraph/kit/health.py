"""What a kit tells its operator: failures that no caller waits for, and figures for spans, metrics and the log."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from hashlib import sha256
from traceback import format_tb
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, get_args

from remegraph.errors import RemegraphError
from remegraph.models import AddReceipt, Captured, JobState, Maintenance, Recall, SummaryReport
from remegraph.settings import without_passwords
from remegraph.telemetry import SILENT, Attributes, Reading, Telemetry, event

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive
    from remegraph.ledger.index.projection import VectorProjection
    from remegraph.ledger.jobs import JobQueue

__all__ = ["Health", "aobserved", "gauges", "observed", "pseudonym"]

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

    def note(self, surface: str, error: BaseException) -> None:
        """Log a failure that the host is spared, count it, and keep its reason.

        Args:
            surface: What failed: recall, capture, background.
            error: Why.
        """
        defect = not isinstance(error, RemegraphError)  # what it says may be words of a conversation
        cause = getattr(error, "orig", error)  # of an error of the database
        told = type(error).__name__
        reason = told if defect and not isinstance(cause, OSError) else f"{told}: {cause}"
        with self._lock:
            self._counts[f"{surface}_failures"] += 1
            self._reasons[f"{surface}_failure"] = reason
        where = f" at:\n{''.join(format_tb(error.__traceback__))}" if defect else ""
        fields = event("host.spared", error, surface=surface)
        _log.warning("Memory failed, and its host goes on: %s: %s%s", surface, reason, where, extra=fields)
        self._telemetry.count("remegraph.failures", 1, surface=surface)

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
        "recall_failures",
        "background_failures",
        "jobs_foreign",
        "threads_unrecorded",
        "statements_refused",
    ),
    0,
)
"""Shown also before the first."""


class _Parts(Protocol):
    @property
    def telemetry(self) -> Telemetry: ...


class _Context(Protocol):
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
    """Let a verb tell what it did."""

    def decorate(verb: Callable[Concatenate[K, P], T]) -> Callable[Concatenate[K, P], T]:
        @wraps(verb)
        def run(self: K, /, *args: P.args, **kwargs: P.kwargs) -> T:
            with _operation(self, operation) as tell:
                result = verb(self, *args, **kwargs)
                tell(result)
                return result

        return run

    return decorate


def aobserved(
    operation: str,
) -> Callable[
    [Callable[Concatenate[K, P], Coroutine[Any, Any, T]]], Callable[Concatenate[K, P], Coroutine[Any, Any, T]]
]:
    """Let a verb that is awaited tell what it did; see `observed`."""

    def decorate(
        verb: Callable[Concatenate[K, P], Coroutine[Any, Any, T]],
    ) -> Callable[Concatenate[K, P], Coroutine[Any, Any, T]]:
        @wraps(verb)
        async def run(self: K, /, *args: P.args, **kwargs: P.kwargs) -> T:
            with _operation(self, operation) as tell:
                result = await verb(self, *args, **kwargs)
                tell(result)
                return result

        return run

    return decorate


@contextmanager
def _operation(verbs: _Verbs, operation: str) -> Iterator[Callable[[object], None]]:
    telemetry = verbs._context.parts().telemetry  # noqa: SLF001 - as the verbs themselves ask for them
    began = time.perf_counter()
    with telemetry.operation(operation) as told:

        def tell(result: object) -> None:
            told.update(_figures(result))
            for missed in _missed(result):
                telemetry.count("remegraph.degraded", 1, operation=operation, missed=missed)

        yield tell
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


def gauges(archive: Archive, projection: VectorProjection, jobs: JobQueue, recipe: str) -> dict[str, Reading]:
    """Return how to read what waits in a ledger."""

    def jobs_by_state() -> Mapping[str, int]:
        depth = jobs.depth()
        return {state: getattr(depth, state) for state in get_args(JobState)}

    return {
        "remegraph.index.lag": lambda: {"": projection.lag()},
        "remegraph.queue.depth": jobs_by_state,
        "remegraph.queue.age": lambda: {"": int(jobs.depth().overdue_seconds)},
        "remegraph.queue.foreign": lambda: {"": jobs.depth().foreign},
        "remegraph.blocks.pending": lambda: {"": archive.pending(recipe)},
    }


def pseudonym(url: str) -> str:
    """Return what tells a ledger from others, and nothing of where it is."""
    return sha256(without_passwords(url).encode()).hexdigest()[:12]
