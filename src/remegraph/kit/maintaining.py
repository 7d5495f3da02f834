"""The verbs that tidy up: the maintenance run with all its steps, and consolidation by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from remegraph.errors import BudgetExceededError, ModelUnavailableError
from remegraph.kit.calling import check_text, required, twin
from remegraph.kit.observing import observed
from remegraph.kit.verbs import Verbs
from remegraph.models import Budget, Conclusion, Consolidation, Maintenance, Partition, Scope

if TYPE_CHECKING:
    from remegraph.engine.metering import Meter
    from remegraph.kit.draining import Cancel
    from remegraph.kit.summarizing import OnProgress
    from remegraph.lifecycle.maintenance import Round, Step

__all__ = ["Maintaining"]


class Maintaining(Verbs):
    """What is done now and then, by itself or when asked. A dry run tells it all before."""

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
        from remegraph.engine.metering import Meter
        from remegraph.lifecycle.maintenance import Round, maintain

        meter = Meter(budget)
        this = Round(self._clock(), dry_run, progress, cancel)
        done = maintain(self._steps(meter), self._open_parts().own(required(scope)), this).evolve(usage=meter.usage())
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
        from remegraph.engine.metering import Meter
        from remegraph.lifecycle.maintenance import Round

        meter = Meter(budget)
        this = Round(self._clock(), dry_run, progress, cancel)
        told = [self._redacted(each) for each in conclusions]
        done = self._consolidated(self._open_parts().own(required(scope)), this, meter, told)
        done = done.evolve(usage=meter.usage())
        changed = (done.made or done.grown) and not dry_run
        return done.evolve(degraded=(*done.degraded, *self._bring_up_to_date())) if changed else done

    aconsolidate = twin(consolidate)

    # ------------------------------------------------------------------------------------------- inside

    def _steps(self, meter: Meter) -> Mapping[str, Step]:
        """Return the steps of a maintenance run, in their order."""
        from remegraph.lifecycle.fading import Fading
        from remegraph.lifecycle.folding import Folding

        archive = self._open_parts().archive
        fading = Fading(archive, self._lifecycle_of, self._new_id, self._reviews.accesses())

        def consolidate(partition: Partition, this: Round) -> Maintenance:
            done = self._consolidated([partition], this, meter)
            found = (*done.made, *done.grown)
            return Maintenance(dry_run=this.dry_run, abstracted=found, skipped=done.skipped, degraded=done.degraded)

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
        from remegraph.lifecycle.consolidation import consolidate

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
        except (ModelUnavailableError, BudgetExceededError) as error:
            return Maintenance(dry_run=this.dry_run, degraded=(f"conclusions: {error}",))

    return tried
