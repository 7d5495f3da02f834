"""What a kit tells its operator: what its verbs did, in figures for spans, metrics and the log, and what waits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, get_args

from remegraph.models import AddReceipt, Captured, JobState, Maintenance, Recall, SummaryReport
from remegraph.settings import without_passwords
from remegraph.telemetry import Attributes, Reading, Telemetry, event

if TYPE_CHECKING:
    from remegraph.ports import Archive, JobQueue
    from remegraph.storage.projection import VectorProjection

__all__ = ["aobserved", "gauges", "observed", "pseudonym"]

_log = logging.getLogger(__name__)


class _Parts(Protocol):
    @property
    def telemetry(self) -> Telemetry: ...


class _Kit(Protocol):
    def _open_parts(self) -> _Parts: ...


K = TypeVar("K", bound=_Kit)
P = ParamSpec("P")
T = TypeVar("T")

_MISSED = frozenset({"conclusions", "index", "model", "reranker", "vectors"})
"""What an operation can do without, as its report names it before the reason."""


def observed(operation: str) -> Callable[[Callable[Concatenate[K, P], T]], Callable[Concatenate[K, P], T]]:
    """Let a verb tell what it did.

    Args:
        operation: One of `telemetry.OPERATIONS`.
    """

    def decorate(verb: Callable[Concatenate[K, P], T]) -> Callable[Concatenate[K, P], T]:
        @wraps(verb)
        def run(self: K, /, *args: P.args, **kwargs: P.kwargs) -> T:
            with _telling(self, operation) as tell:
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
            with _telling(self, operation) as tell:
                result = await verb(self, *args, **kwargs)
                tell(result)
                return result

        return run

    return decorate


@contextmanager
def _telling(kit: _Kit, operation: str) -> Iterator[Callable[[object], None]]:
    telemetry = kit._open_parts().telemetry  # noqa: SLF001 - as the verbs themselves ask for them
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
    """Return how to read what waits in a ledger.

    Args:
        archive: Knows the blocks.
        projection: Knows what is not in the index yet.
        jobs: The queue.
        recipe: Name of the way of summarising.
    """

    def jobs_by_state() -> Mapping[str, int]:
        depth = jobs.depth()
        return {state: getattr(depth, state) for state in get_args(JobState)}

    return {
        "remegraph.index.lag": lambda: {"": projection.lag()},
        "remegraph.queue.depth": jobs_by_state,
        "remegraph.queue.foreign": lambda: {"": jobs.depth().foreign},
        "remegraph.blocks.pending": lambda: {"": archive.pending(recipe)},
    }


def pseudonym(url: str) -> str:
    """Return what tells a ledger from others, and nothing of where it is.

    Args:
        url: Its URL.
    """
    return sha256(without_passwords(url).encode()).hexdigest()[:12]
