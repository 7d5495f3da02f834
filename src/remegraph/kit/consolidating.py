"""The verb that makes long-term memories of similar episodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from remegraph.kit.calling import required, twin
from remegraph.models import Budget, Consolidation, Progress, Scope
from remegraph.settings import LifecyclePolicy, Settings

if TYPE_CHECKING:
    from remegraph.kit.draining import Cancel
    from remegraph.kit.parts import Parts
    from remegraph.models import Partition
    from remegraph.ports import Clock

__all__ = ["Consolidating"]


class Consolidating(ABC):
    """How episodes become knowledge."""

    settings: Settings
    _clock: Clock

    @abstractmethod
    def _open_parts(self) -> Parts:
        """Return the parts, if the kit is open."""

    @abstractmethod
    def _bring_up_to_date(self) -> tuple[str, ...]:
        """Let the vectors follow; return why they do not, if so."""

    @abstractmethod
    def _lifecycle_of(self, partition: Partition) -> LifecyclePolicy:
        """Return how the memories of a partition live on."""

    def consolidate(
        self,
        *,
        scope: Scope,
        dry_run: bool = False,
        budget: Budget | None = None,
        progress: Callable[[Progress], None] | None = None,
        cancel: Cancel | None = None,
    ) -> Consolidation:
        """Make long-term memories of similar episodes: a conclusion, when it applies, how sure it is, and its sources.

        A new episode joins the long-term memory that it resembles, what says the same becomes one, what says the
        contrary is linked and makes it less sure, and no long-term memory stands alone. No source is changed, and no
        words of a conversation come into a conclusion. A run that was stopped is finished by the next one; a second one
        changes nothing.

        Args:
            scope: Whose memories: the user's own, and the team's where the users of an agent are one.
            dry_run: Whether only to say what would be done; no model is asked, so conclusions read as they do without.
            budget: Hard limits on calls and tokens.
            progress: Told before each batch.
            cancel: Asked before each batch.

        Raises:
            ModelUnavailableError: The model is down; what is not done is done by the next call.
            BudgetExceededError: The budget is used up; likewise.
            CancelledError: `cancel` said so; likewise.
        """
        from remegraph.engine.metering import Meter
        from remegraph.engine.routing import own
        from remegraph.lifecycle.consolidation import consolidate

        parts, meter = self._open_parts(), Meter(budget)
        done = consolidate(
            parts.archive,
            own(parts.archive.visible(required(scope)), scope, self.settings.trust_boundary),
            self._lifecycle_of,
            at=self._clock(),
            dry_run=dry_run,
            concluder_of=lambda partition: parts.thinkers.concluder(partition.agent, meter),
            meanings_of=parts.projection.meanings,
            progress=progress or _unheard,
            cancel=cancel or _never,
        ).evolve(usage=meter.usage())
        changed = (done.made or done.grown) and not dry_run
        return done.evolve(degraded=(*done.degraded, *self._bring_up_to_date())) if changed else done

    aconsolidate = twin(consolidate)


def _unheard(_: Progress) -> None:
    pass


def _never() -> bool:
    return False
