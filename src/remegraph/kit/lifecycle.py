"""Verbs about the life of memories: what use they were, when and why they fade, the way back, and upkeep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from remegraph.engine.frame import shown_texts
from remegraph.errors import BudgetExceededError, InputError, ModelUnavailableError, NotFoundError, RateLimitError
from remegraph.kit.base import Verbs, twin
from remegraph.kit.health import observed
from remegraph.kit.validation import actor_of, check_numbers, check_text, check_times, required
from remegraph.models import (
    LIVE,
    Budget,
    Conclusion,
    Consolidation,
    Explanation,
    Fading,
    Maintenance,
    Memory,
    Partition,
    RecallFilter,
    Scope,
    Weight,
)

if TYPE_CHECKING:
    from remegraph.engine.tasks import Meter
    from remegraph.kit.summary_loop import OnProgress
    from remegraph.kit.worker import Cancel
    from remegraph.retention.forgetting import Retained
    from remegraph.retention.maintenance import Round, Step

__all__ = ["Lifecycle"]


class Lifecycle(Verbs):
    """Verbs of the kit about use, forgetting and upkeep.

    Use is only noted, like a recall: the next write takes it along. No memory is changed, and none is borne out by an
    answer that repeats it.
    """

    def used(self, memory_ids: Sequence[str], *, scope: Scope) -> None:
        """Note that these memories were of use, which counts more than that recall returned them.

        Args:
            memory_ids: The memories.
            scope: Who used them.

        Raises:
            NotFoundError: The scope sees no memory of one of the ids; nothing was noted.
            InputError: The ids are one text, or one is no text.
        """
        archive = self._open_parts().archive
        if isinstance(memory_ids, str):
            raise InputError("memory_ids is one text.", "Give a list of memory ids.")
        wanted = list(memory_ids)
        for memory_id in wanted:
            check_text(memory_id=memory_id)
        found = archive.memories(archive.visible(required(scope)), ids=wanted) if wanted else ()
        unknown = set(wanted) - {memory.memory_id for memory in found}
        if unknown:
            raise NotFoundError(f"There is no memory {min(unknown)!r} here.")
        self._note_used(found)

    aused = twin(used)

    def answered(self, answer: str, *, context: str, question: str = "", scope: Scope) -> tuple[str, ...]:
        """Note which memories of a recall's context an answer drew on, as far as its words tell.

        Node and middleware do this where they capture an answer. Call it where the agent is built otherwise.

        Args:
            answer: What the agent said.
            context: What was put before its model: `Recall.context`.
            question: What it was asked.
            scope: Who asked.

        Returns:
            The ids of the memories that it drew on.

        Raises:
            InputError: One of them is no text, or the context is not as recall wrote it.
        """
        from remegraph.retention.active_tier import drawn_on

        archive = self._open_parts().archive
        check_text(answer=answer, context=context, question=question)
        try:
            shown = shown_texts(context)
        except ValueError as error:
            raise InputError(f"The context is cut or changed ({error}).", "Give Recall.context as it is.") from error
        drawn = drawn_on(answer, question, shown)
        ids = archive.full_ids(drawn) if drawn else ()
        found = archive.memories(archive.visible(required(scope)), ids=ids) if ids else ()
        self._note_used(found)
        return tuple(memory.memory_id for memory in found)

    aanswered = twin(answered)

    def _note_used(self, memories: Sequence[Memory]) -> None:
        if self._reviews.note_used(memories, self._clock()):
            self._write_noted_soon()

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
        from remegraph.kit.provenance import trace
        from remegraph.models.skills import is_skill
        from remegraph.retention.active_tier import tier_of
        from remegraph.skills.choice import figures

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
        from remegraph.kit.provenance import trace

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
        from remegraph.retention.forgetting import forecast

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
            ConflictError: It was learned again meanwhile, or it changed just now.
            InputError: The id is no text.
        """
        from remegraph.retention.maintenance import restore

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
        from remegraph.retention.forgetting import retained

        return list(retained(self._open_parts().archive, memories, self._lifecycle_of, self._reviews.accesses()))

    @observed("maintain")
    def maintain(
        self,
        *,
        scope: Scope,
        dry_run: bool = False,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> Maintenance:
        """Tidy up: fade, merge, consolidate, write guidelines of tools, archive, purge.

        What has faded loses its priority, what says the same is merged, a model concludes from what is alike, what is
        all but gone is archived. What was archived for `LifecyclePolicy.purge_after` loses its content: its stub stays,
        and the messages that it came from do. With `LifecyclePolicy.every` it is done in the background, too, after the
        summaries.

        What is archived is found with `only=RecallFilter(statuses=("archived",))` and comes back with `restore`; the
        journal says why it went. A run that was stopped is finished by the next one, and one that runs beside another,
        or beside writers, leaves to them what they change. Where the model is down, or the budget used up, what needs a
        model waits for the next run, and `degraded` says so.

        Args:
            scope: Whose memories: the user's own, and the team's where the users of an agent are one.
            dry_run: Whether only to say what would be done; what guidelines would say is left out.
            budget: Hard limits on calls and tokens.
            progress: Told after each step.
            cancel: Asked before each step and each batch.

        Raises:
            CancelledError: `cancel` said so; what is done stays.
        """
        from remegraph.retention.maintenance import Round, maintain

        parts, place = self._open_parts(), required(scope).partition()
        this = Round(self._clock(), dry_run, progress, cancel)
        with parts.meter(place, budget) as meter:
            done = maintain(self._steps(meter), parts.own(scope), this)
        done = done.evolve(usage=meter.usage())
        return (
            done.evolve(degraded=(*done.degraded, *self._bring_up_to_date())) if done.changed and not dry_run else done
        )

    amaintain = twin(maintain)

    def consolidate(
        self,
        *,
        scope: Scope,
        dry_run: bool = False,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
        conclusions: Sequence[Conclusion] = (),
    ) -> Consolidation:
        """Make long-term memories of similar episodes: a conclusion, when it applies, how sure it is, and its sources.

        Likeness proposes which episodes belong together, or to a long-term memory that is there; the model concludes
        what they have in common, or that it is nothing. Without a model the groups are only named, in `proposed`, and a
        person may conclude from them. What is linked as contrary makes a conclusion less sure, and no long-term memory
        stands alone. No source is changed, and a model's conclusion repeats no words of a conversation. A run that was
        stopped is finished by the next one.

        Args:
            scope: Whose memories: the user's own, and the team's where the users of an agent are one.
            dry_run: Whether only to say what would be asked.
            budget: Hard limits on calls and tokens.
            progress: Told before each batch.
            cancel: Asked before each batch.
            conclusions: What a person concludes, each from memories of one topic; then no model is asked.

        Raises:
            NotFoundError: A conclusion names a memory that does not live here.
            InputError: Or memories that may not be mixed.
            ModelUnavailableError: The model is down; what is not done is done by the next call.
            BudgetExceededError: The budget is used up; likewise.
            CancelledError: `cancel` said so; likewise.
        """
        from remegraph.retention.maintenance import Round

        parts, place = self._open_parts(), required(scope).partition()
        this = Round(self._clock(), dry_run, progress, cancel)
        told = [self._redacted(each) for each in conclusions]
        with parts.meter(place, budget) as meter:
            done = self._consolidated(parts.own(scope), this, meter, told)
        done = done.evolve(usage=meter.usage())
        changed = (done.made or done.grown) and not dry_run
        return done.evolve(degraded=(*done.degraded, *self._bring_up_to_date())) if changed else done

    aconsolidate = twin(consolidate)

    # ------------------------------------------------------------------------------------------- inside

    def _steps(self, meter: Meter) -> Mapping[str, Step]:
        """Return the steps of a maintenance run, in their order."""
        from remegraph.retention.maintenance import Fading, Folding

        archive = self._open_parts().archive
        fading = Fading(archive, self._lifecycle_of, self._new_id, self._reviews.accesses())

        def consolidate(partition: Partition, this: Round) -> Maintenance:
            done = self._consolidated([partition], this, meter)
            found = (*done.made, *done.grown)
            return Maintenance(
                dry_run=this.dry_run,
                abstracted=found,
                lines=done.lines,
                skipped=done.skipped,
                degraded=done.degraded,
            )

        def guide(partition: Partition, this: Round) -> Maintenance:
            if this.dry_run:
                return Maintenance(dry_run=True)
            return Maintenance(dry_run=False, guidelines=self._open_parts().guide.refresh([partition]).written)

        return {
            "fade": fading.fade,
            "merge": Folding(archive, self._new_id).merge,
            "consolidate": _where_possible(consolidate),
            "guide": guide,
            "archive": fading.archive_faded,
            "purge": fading.purge,
        }

    def _redacted(self, each: Conclusion) -> Conclusion:
        told = self._open_parts().redactor.text
        for text in (*each.sources, *each.conditions, each.conclusion):
            check_text(conclusion=text)
        return each.evolve(conclusion=told(each.conclusion.strip()), conditions=tuple(map(told, each.conditions)))

    def _consolidated(
        self, partitions: Sequence[Partition], this: Round, meter: Meter, conclusions: Sequence[Conclusion] = ()
    ) -> Consolidation:
        from remegraph.retention.consolidation import consolidate

        parts = self._open_parts()
        return consolidate(
            parts.archive,
            partitions,
            self._lifecycle_of,
            this,
            concluder_of=lambda partition: parts.thinkers.concluder(partition.agent, meter),
            meanings_of=parts.projection.meanings,
            agreed=conclusions,
        )

    def _maintain_in_turn(self, scope: Scope, cancel: Cancel) -> timedelta | None:
        """Do the job of one scope, as its settings still say; return after which time again."""
        every = self.settings.for_agent(scope.agent).lifecycle.every
        if every is not None:
            self._write_noted()
            self.maintain(scope=scope, cancel=cancel)
        return every


def _where_possible(step: Step) -> Step:
    """Return a step that leaves to the next run what needs a model that is down now, or over the budget."""

    def tried(partition: Partition, this: Round) -> Maintenance:
        try:
            return step(partition, this)
        except (ModelUnavailableError, BudgetExceededError, RateLimitError) as error:
            return Maintenance(dry_run=this.dry_run, degraded=(f"conclusions: {error}",))

    return tried
