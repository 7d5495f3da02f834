"""What the verbs of the kit itself stand on, in whichever module they are; those of its facades stand on `facade`."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from remegraph.errors import WITHOUT_VECTORS
from remegraph.kit.calling import ALONE
from remegraph.kit.health import Health
from remegraph.kit.reviewing import ReviewBuffer
from remegraph.models import Partition
from remegraph.settings import LifecyclePolicy, Settings
from remegraph.telemetry import event

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from remegraph.kit.parts import Parts
    from remegraph.kit.running import Runner
    from remegraph.lifecycle.active import ActiveTier
    from remegraph.lifecycle.working import WorkingMemory
    from remegraph.ports import Clock, NewId

__all__ = ["Verbs"]

_log = logging.getLogger(__name__)


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
        """Write down what was noted, while nobody waits for it."""

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
