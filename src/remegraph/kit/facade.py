"""What the verbs of a kit are built on: the context that they share, the base of its facades, and async twins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from functools import wraps
from itertools import islice
from threading import Thread
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from remegraph.errors import WITHOUT_VECTORS, ClosedError, LedgerUnavailableError, OutcomeUnknownError, RemegraphError
from remegraph.kit.background import Runner, at_once
from remegraph.kit.health import Health
from remegraph.kit.validation import library, required
from remegraph.kit.worker import Worker
from remegraph.kit.write_buffers import CallBuffer, ReviewBuffer, ShownBuffer
from remegraph.models import Partition, Scope
from remegraph.retention.working_memory import ActiveTier, SensoryBuffer, WorkingMemory
from remegraph.settings import LifecyclePolicy, Settings
from remegraph.telemetry import event

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from remegraph.kit.components import Parts
    from remegraph.kit.worker import Duty

__all__ = ["ALONE", "Context", "Facade", "settled", "stream", "twin"]

_log = logging.getLogger(__name__)

ALONE: RunnableConfig = {"configurable": {"__pregel_durability": "async"}}
"""How graphs without a checkpointer run inside those of a host that waits for each of its checkpoints: there LangGraph
also waits for one of ours, which does not exist, and fails. The name is private to it: tests show when it changes."""

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
    """Do a write that carries its ids, and repeat it where its outcome is unknown: the second finds what the first did.

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


class Context:
    """What the verbs of an open kit share: its parts, and what this process has noted or keeps in mind.

    Args:
        parts: Everything behind the kit.
        duties: Gives what the background work consists of, once there is some.
    """

    def __init__(self, parts: Parts, duties: Callable[[], Mapping[str, Duty]]) -> None:
        settings, clock = parts.settings, parts.clock
        self._parts: Parts | None = parts
        self.settings = settings
        self.clock = clock
        self.new_id = parts.new_id
        self.health = Health(parts.telemetry)
        self.duties = duties
        self.reviews = ReviewBuffer(parts.archive, self.health)
        self.shown = ShownBuffer(parts.trail, self.health)
        self.calls = CallBuffer(parts.archive, clock, parts.new_id, self.health)
        self.sensory = SensoryBuffer(settings.sensory, clock)
        self.in_mind = WorkingMemory(settings.working, parts.new_id, clock)
        self.active = ActiveTier(parts.archive, settings, clock)
        self.background = Runner(
            lambda: Worker(parts, duties()),
            clock,
            concurrency=at_once(settings),
            poll=settings.capture.poll,
            health=self.health,
        )
        self._notes = (self.reviews, self.calls, self.shown, parts.tenants)
        parts.tenants.written_by(self.write_noted)

    def parts(self) -> Parts:
        """Return the parts.

        Raises:
            ClosedError: The kit is closed.
            SetupError: This process was forked from the one that opened it.
        """
        if self._parts is None:
            raise ClosedError("This kit is closed.")
        self._parts.archive.database.check()
        return self._parts

    @property
    def closed(self) -> bool:
        """Whether the kit is closed."""
        return self._parts is None

    @property
    def forked(self) -> bool:
        """Whether this process was forked from the one that opened the kit."""
        return self._parts is not None and self._parts.archive.database.given_up

    def close(self) -> None:
        """Stop the background work, write down what was noted, and release everything. Closing twice is fine."""
        if self.forked:
            self._parts = None
            return
        self.background.close()
        parts, self._parts = self._parts, None
        self.forget_sensed()
        if parts is not None:
            with parts.closing:
                self.write_noted()

    def library(self, scope: Scope) -> Scope:
        """Return the scope that an agent's memories live under: its own, or that of all agents of the user.

        Raises:
            ScopeError: The scope is missing.
        """
        return library(required(scope), self.settings)

    def lifecycle_of(self, partition: Partition) -> LifecyclePolicy:
        """Return how the memories of a partition live on."""
        return self.settings.for_agent(partition.agent).lifecycle

    def graph_config(self) -> RunnableConfig:
        """Return how graphs are run."""
        return {**ALONE, "max_concurrency": self.settings.summary.max_concurrency}

    def follow(self) -> tuple[str, ...]:
        """Bring the vectors up to date; return why they are not, if so: the ledger has the change, the next sync applies it."""
        try:
            self.parts().projection.follow()
        except WITHOUT_VECTORS as error:
            _log.warning("What was written has no vector yet: %s", error, extra=event("index.behind", error))
            return (f"vectors: {error.what}",)
        return ()

    def write_noted(self) -> None:
        """Write down what was noted. No caller waits for it, so a failure is only reported."""
        for notes in self._notes:
            try:
                notes.flush()
            except (RemegraphError, SQLAlchemyError) as error:
                self.health.note("background", error)

    def write_noted_soon(self) -> None:
        """Write down what was noted, in the background."""
        Thread(target=self.write_noted, name="remegraph-notes", daemon=True).start()

    def forget_sensed(self) -> None:
        """Drop everything that was sensed or is kept in mind: it cannot be known whose it was."""
        self.sensory.clear()
        self.in_mind.clear()


class Facade:
    """Verbs of a kit under a name of their own.

    Args:
        context: What the verbs of the kit share.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._parts = context.parts
        self._follow = context.follow

    @property
    def _settings(self) -> Settings:
        return self._context.settings

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"
