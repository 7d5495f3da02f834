"""The verbs about forgetting: when and why, what comes next, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from remegraph.errors import InputError
from remegraph.kit.calling import actor_of, check_numbers, check_text, check_times, required, twin
from remegraph.kit.verbs import Verbs
from remegraph.models import LIVE, Explanation, Fading, Memory, RecallFilter, Scope, Weight

if TYPE_CHECKING:
    from remegraph.lifecycle.retaining import Retained

__all__ = ["Keeping"]


class Keeping(Verbs):
    """The verbs of the kit about how memories fade. Only `restore` changes anything."""

    def explain(
        self,
        memory_id: str,
        *,
        scope: Scope,
        at: datetime | None = None,
        known_at: datetime | None = None,
        true_at: datetime | None = None,
    ) -> Explanation:
        """Let a memory answer: which layer it is in, when it will be forgotten and why, where it came from, what befell it.

        Args:
            memory_id: The memory.
            scope: Who asks.
            at: The time to weigh it at, with the reviews that it had by then; `known_at`, else now, unless given.
            known_at: In the version that was recorded by this time, with what had befallen it by then.
            true_at: Only if it was true in the world at this time.

        Raises:
            NotFoundError: The scope sees no such memory, or it was not known or not true then.
            InputError: The id is no text, or the time has no zone.
        """
        from remegraph.kit.tracing import trace
        from remegraph.lifecycle.skills import figures
        from remegraph.rules.procedures import is_skill
        from remegraph.rules.tiers import tier_of

        check_text(memory_id=memory_id)
        check_times(at=at, known_at=known_at, true_at=true_at)
        parts = self._open_parts()
        as_of = RecallFilter(known_at=known_at, true_at=true_at)
        found = trace(parts.archive, parts.grants, memory_id, required(scope), as_of)
        when = at or known_at or self._clock()
        (retained,) = self._retained([found.memory])
        then = retained.until(when)
        return Explanation(
            memory=found.memory,
            layer=found.memory.layer,
            tier=tier_of(
                found.memory,
                active=memory_id in {memory.memory_id for memory in self._active.of(scope)},
                derived=any(link.type == "derived_from" and link.source_id == memory_id for link in found.links),
            ),
            status=found.memory.status,
            weight=then.weight(when),
            forget_at=then.forget_at(),
            reviews=tuple(review.at for review in then.life.reviews),
            uses=tuple(review.at for review in then.life.reviews if review.used),
            skill=figures(parts.archive, [found.memory])[0] if is_skill(found.memory) else None,
            trace=found,
        )

    aexplain = twin(explain)

    def curve(self, memory_id: str, *, scope: Scope, times: Sequence[datetime]) -> tuple[Weight, ...]:
        """Return how much of a memory is left at each of some times, past or to come, with the reviews that it had by then.

        Args:
            memory_id: The memory.
            scope: Who asks.
            times: The times.

        Raises:
            NotFoundError: The scope sees no such memory.
            InputError: The id is no text, or a time has no zone.
        """
        from remegraph.kit.tracing import trace

        check_text(memory_id=memory_id)
        check_times(**{f"times[{at}]": time for at, time in enumerate(times)})
        parts = self._open_parts()
        (retained,) = self._retained([trace(parts.archive, parts.grants, memory_id, required(scope)).memory])
        return tuple(retained.until(time).weight(time) for time in times)

    acurve = twin(curve)

    def forecast(self, days: float = 30, *, scope: Scope) -> tuple[Fading, ...]:
        """Return what will be forgotten in the next days unless it is reviewed before, the next first.

        What is due already comes first. What `max_entries` pushes out depends on what is still to come, and is left out.

        Args:
            days: How many.
            scope: Who asks.

        Raises:
            InputError: The days are none or too many.
        """
        from remegraph.lifecycle.retaining import forecast

        check_numbers(least=0, whole=False, days=days)
        now = self._clock()
        try:
            until = now + timedelta(days=days)
        except (OverflowError, TypeError) as error:
            raise InputError(f"days is {days!r}.", "Give a number of days, as 30.") from error
        archive = self._open_parts().archive
        memories = archive.memories(archive.visible(required(scope)), statuses=sorted(LIVE))
        return forecast(self._retained(memories), now, until)

    aforecast = twin(forecast)

    def restore(self, memory_id: str, *, scope: Scope) -> Memory:
        """Bring back a memory that was archived, which counts as a review, or forgotten, with all that went with it.

        Restoring an active one changes nothing.

        Args:
            memory_id: The memory.
            scope: Whose memory.

        Returns:
            The memory, active.

        Raises:
            NotFoundError: There is no such memory, it is not this user's, or it was neither archived nor forgotten.
            ConflictError: It was learned anew meanwhile, or it changed just now.
            InputError: The id is no text.
        """
        from remegraph.lifecycle.fading import restore

        check_text(memory_id=memory_id)
        parts = self._open_parts()
        memory = parts.retraction.restore(memory_id, required(scope)) or restore(
            parts.archive,
            parts.own(scope),
            memory_id,
            actor=actor_of(scope),
            at=self._clock(),
            operation_id=self._new_id(),
        )
        self._bring_up_to_date()
        return memory

    arestore = twin(restore)

    def _retained(self, memories: Sequence[Memory]) -> list[Retained]:
        from remegraph.lifecycle.retaining import retained

        return list(retained(self._open_parts().archive, memories, self._lifecycle_of, self._reviews.accesses()))
