"""What the verbs of a kit are built on: base classes of the kit's own and of its facades, and their async twins."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from remegraph.errors import WITHOUT_VECTORS, LedgerUnavailableError, OutcomeUnknownError
from remegraph.kit.validation import library, required
from remegraph.models import Partition
from remegraph.settings import LifecyclePolicy, Settings
from remegraph.telemetry import event

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from remegraph.kit.background import Runner
    from remegraph.kit.components import Parts
    from remegraph.kit.health import Health
    from remegraph.kit.write_buffers import ReviewBuffer
    from remegraph.models import Scope
    from remegraph.ports import Clock, NewId
    from remegraph.retention.active_tier import ActiveTier
    from remegraph.retention.working_memory import WorkingMemory

__all__ = ["ALONE", "Access", "Facade", "Verbs", "settled", "stream", "twin"]

_log = logging.getLogger(__name__)

ALONE: RunnableConfig = {"configurable": {"__pregel_durability": "async"}}
"""How graphs without a checkpointer run within those of a host that waits for each of its checkpoints: there LangGraph
waits for one of ours, too, which there is not, and fails. The name is its own affair: tests say when it is another."""

_PART = 500

K = TypeVar("K")
P = ParamSpec("P")
T = TypeVar("T")


def twin(verb: Callable[Concatenate[K, P], T]) -> Callable[Concatenate[K, P], Coroutine[Any, Any, T]]:
    """Return the async twin of a verb that waits for the ledger only: the same code in a thread."""

    @wraps(verb)
    async def run(self: K, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(verb, self, *args, **kwargs)

    return run


def stream(verb: Callable[Concatenate[K, P], Iterator[T]]) -> Callable[Concatenate[K, P], AsyncIterator[T]]:
    """Return the async twin of a verb that yields what it reads from the ledger: the same code in a thread, by parts."""

    @wraps(verb)
    async def run(self: K, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        found = await asyncio.to_thread(verb, self, *args, **kwargs)
        while part := await asyncio.to_thread(lambda: list(islice(found, _PART))):
            for each in part:
                yield each

    return run


def settled(write: Callable[[], T]) -> T:
    """Do a write that carries its ids, and once more where its outcome is unknown: the second finds what the first did.

    Args:
        write: Records, and does nothing where all is recorded.

    Raises:
        OutcomeUnknownError: The ledger could not be asked again.
    """
    try:
        return write()
    except OutcomeUnknownError as unknown:
        try:
            return write()
        except LedgerUnavailableError as error:
            raise unknown from error


class Verbs(ABC):
    """Some of the verbs of a kit."""

    settings: Settings
    health: Health
    _clock: Clock
    _new_id: NewId
    _reviews: ReviewBuffer
    _active: ActiveTier
    _working: WorkingMemory

    @abstractmethod
    def _open_parts(self) -> Parts:
        """Return the parts, if the kit is open."""

    @abstractmethod
    def _background(self) -> Runner:
        """Return what works in the background."""

    @abstractmethod
    def _write_noted(self) -> None:
        """Write down what was noted."""

    @abstractmethod
    def _write_noted_soon(self) -> None:
        """Write down what was noted, in the background."""

    def _config(self) -> RunnableConfig:
        """Return how graphs are run."""
        return {**ALONE, "max_concurrency": self.settings.summary.max_concurrency}

    def _lifecycle_of(self, partition: Partition) -> LifecyclePolicy:
        """Return how the memories of a partition live on."""
        return self.settings.for_agent(partition.agent).lifecycle

    def _bring_up_to_date(self) -> tuple[str, ...]:
        """Let the vectors follow; return why they do not, if so: the ledger has it, the next sync brings them."""
        try:
            self._open_parts().projection.follow()
        except WITHOUT_VECTORS as error:
            _log.warning("What was written has no vector yet: %s", error, extra=event("index.behind", error))
            return (f"vectors: {error.what}",)
        return ()


@dataclass(frozen=True)
class Access:
    """What a kit lets its facades do with it."""

    parts: Callable[[], Parts]
    """Gives the parts, while the kit is open."""
    settings: Settings
    follow: Callable[[], tuple[str, ...]]
    """Brings the vectors up to date after a change; tells what could not be."""


class Facade:
    """Verbs of a kit under a name of their own."""

    def __init__(self, access: Access) -> None:
        self._parts = access.parts
        self._settings = access.settings
        self._follow = access.follow

    def _library(self, scope: Scope) -> Scope:
        return library(required(scope), self._settings)
