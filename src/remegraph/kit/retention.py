"""`kit.retention`: how useful memories were, when and why they fade, which are ready, and maintenance; and `kit.working`.

What is in mind for a task is never stored: another process, or a restart, knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from remegraph.engine.frame import shown_texts
from remegraph.engine.salience import content_words
from remegraph.errors import BudgetExceededError, InputError, ModelUnavailableError, NotFoundError, RateLimitError
from remegraph.governance.versions import trace
from remegraph.importers.messages import MessageLike, to_messages
from remegraph.kit.facade import Facade, twin
from remegraph.kit.health import observed
from remegraph.kit.sources import metadata
from remegraph.kit.validation import actor_of, check_numbers, check_text, check_times, required
from remegraph.models import (
    LIVE,
    Budget,
    Chunk,
    Conclusion,
    Consolidation,
    Fading,
    Maintenance,
    Memory,
    MemoryMetadata,
    Partition,
    Scope,
    Sensed,
    Weight,
)
from remegraph.retention.consolidation import consolidate
from remegraph.retention.forgetting import forecast, retained
from remegraph.retention.maintenance import Fading as FadeSteps
from remegraph.retention.maintenance import Folding, Round, maintain
from remegraph.retention.working_memory import drawn_on, pin

if TYPE_CHECKING:
    from remegraph.engine.summary_tasks import Meter
    from remegraph.kit.worker import Cancel, OnProgress
    from remegraph.retention.forgetting import Retained
    from remegraph.retention.maintenance import Step

__all__ = ["Retention", "Working"]


class Retention(Facade):
    """Verbs of the kit about use, forgetting and maintenance.

    Use is only noted, like a recall: the next write records it. No memory is changed, and none is confirmed by an
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
        archive = self._parts().archive
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
        """Note which memories of a recall's context an answer drew on, as far as its words show.

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
        archive = self._parts().archive
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
        check_text(memory_id=memory_id)
        check_times(**{f"times[{at}]": time for at, time in enumerate(times)})
        parts = self._parts()
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
        check_numbers(least=0, whole=False, days=days)
        now = self._context.clock()
        try:
            until = now + timedelta(days=days)
        except (OverflowError, TypeError) as error:
            raise InputError(f"days is {days!r}.", "Give a number of days, as 30.") from error
        archive = self._parts().archive
        memories = archive.memories(archive.visible(required(scope)), statuses=sorted(LIVE))
        return forecast(self._retained(memories), now, until)

    aforecast = twin(forecast)

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
            dry_run: Whether only to report what would be done; what guidelines would say is left out.
            budget: Hard limits on calls and tokens.
            progress: Told after each step.
            cancel: Asked before each step and each batch.

        Raises:
            CancelledError: `cancel` said so; what is done stays.
        """
        parts, place = self._parts(), required(scope).partition()
        this = Round(self._context.clock(), dry_run, progress, cancel)
        with parts.meter(place, budget) as meter:
            done = maintain(self._steps(meter), parts.own(scope), this)
        done = done.evolve(usage=meter.usage())
        return done.evolve(degraded=(*done.degraded, *self._follow())) if done.changed and not dry_run else done

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
            dry_run: Whether only to report what would be asked.
            budget: Hard limits on calls and tokens.
            progress: Told before each batch.
            cancel: Asked before each batch.
            conclusions: What a person concludes, each from memories of one topic; then no model is asked.

        Raises:
            NotFoundError: A conclusion names a memory that does not live here.
            InputError: Or memories that may not be mixed.
            ModelUnavailableError: The model is down; what is not done is done by the next call.
            BudgetExceededError: The budget is used up; the next call continues.
            CancelledError: `cancel` said so; the next call continues.
        """
        parts, place = self._parts(), required(scope).partition()
        this = Round(self._context.clock(), dry_run, progress, cancel)
        told = [self._redacted(each) for each in conclusions]
        with parts.meter(place, budget) as meter:
            done = self._consolidated(parts.own(scope), this, meter, told)
        done = done.evolve(usage=meter.usage())
        changed = (done.made or done.grown) and not dry_run
        return done.evolve(degraded=(*done.degraded, *self._follow())) if changed else done

    aconsolidate = twin(consolidate)

    def metadata(self, memory_id: str, *, scope: Scope) -> MemoryMetadata:
        """Return what is known about a memory beside what it says: source, voice, accesses, sentiment (F8).

        Args:
            memory_id: The memory.
            scope: Who asks.

        Raises:
            NotFoundError: The scope sees no such memory.
            InputError: The id is no text.
        """
        check_text(memory_id=memory_id)
        parts = self._parts()
        return metadata(parts.archive, parts.grants, self._context.reviews, memory_id, required(scope))

    ametadata = twin(metadata)

    def active(self, *, scope: Scope, task: str | None = None) -> tuple[Memory, ...]:
        """Return the memories that are ready without a query: core rules, then what was used most recently and often.

        They are held in the process. While nothing was written, asking costs one look at the ledger's newest rows. It is
        no review, or whatever is active would stay so for ever. Use counts once it is written down.

        Args:
            scope: Who asks.
            task: What shares words with what is in mind for this task comes first; see `sense`.

        Raises:
            InputError: The task is no text.
        """
        self._parts()
        found = self._context.active.of(required(scope))
        if task is None:
            return found
        check_text(task=task)
        chunks = self._context.in_mind.chunks((scope.partition(), task))
        in_mind = frozenset[str]().union(*(content_words(chunk.content) for chunk in chunks))
        return tuple(sorted(found, key=lambda memory: in_mind.isdisjoint(content_words(memory.content))))

    aactive = twin(active)

    def pin(self, memory_id: str, *, scope: Scope, active: bool = True) -> Memory:
        """Keep a memory ready from now on, used or not; or never, however often it is used: then only queries find it.

        The journal records it.

        Args:
            memory_id: The memory.
            scope: Whose memory.
            active: Whether it is kept ready.

        Raises:
            NotFoundError: There is no such live memory, or it is not this user's.
            ConflictError: It changed just now.
            InputError: The id is no text.
        """
        check_text(memory_id=memory_id)
        parts = self._parts()
        memory = pin(
            parts.archive,
            parts.own(required(scope)),
            memory_id,
            resident=active,
            actor=actor_of(scope),
            at_home=parts.at_home(scope),
            at=self._context.clock(),
            operation_id=self._context.new_id(),
        )
        self._follow()
        return memory

    apin = twin(pin)

    # ------------------------------------------------------------------------------------------- inside

    def _note_used(self, memories: Sequence[Memory]) -> None:
        if self._context.reviews.note_used(memories, self._context.clock()):
            self._context.write_noted_soon()

    def _retained(self, memories: Sequence[Memory]) -> list[Retained]:
        return list(
            retained(self._parts().archive, memories, self._context.lifecycle_of, self._context.reviews.accesses())
        )

    def _steps(self, meter: Meter) -> Mapping[str, Step]:
        """Return the steps of a maintenance run, in their order."""
        archive = self._parts().archive
        fading = FadeSteps(archive, self._context.lifecycle_of, self._context.new_id, self._context.reviews.accesses())

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
            return Maintenance(dry_run=False, guidelines=self._parts().guide.refresh([partition]).written)

        return {
            "fade": fading.fade,
            "merge": Folding(archive, self._context.new_id).merge,
            "consolidate": _where_possible(consolidate),
            "guide": guide,
            "archive": fading.archive_faded,
            "purge": fading.purge,
        }

    def _redacted(self, each: Conclusion) -> Conclusion:
        told = self._parts().redactor.text
        for text in (*each.sources, *each.conditions, each.conclusion):
            check_text(conclusion=text)
        return each.evolve(conclusion=told(each.conclusion.strip()), conditions=tuple(map(told, each.conditions)))

    def _consolidated(
        self, partitions: Sequence[Partition], this: Round, meter: Meter, conclusions: Sequence[Conclusion] = ()
    ) -> Consolidation:
        parts = self._parts()
        return consolidate(
            parts.archive,
            partitions,
            self._context.lifecycle_of,
            this,
            concluder_of=lambda partition: parts.thinkers.concluder(partition.agent, meter),
            meanings_of=parts.projection.meanings,
            agreed=conclusions,
        )


def _where_possible(step: Step) -> Step:
    """Return a step that leaves to the next run what needs a model that is down now, or over the budget."""

    def tried(partition: Partition, this: Round) -> Maintenance:
        try:
            return step(partition, this)
        except (ModelUnavailableError, BudgetExceededError, RateLimitError) as error:
            return Maintenance(dry_run=this.dry_run, degraded=(f"conclusions: {error}",))

    return tried


# ------------------------------------------------------------------------------------------- kit.working


class Working(Facade):
    """The short-term memory of this process."""

    def sense(
        self,
        event: MessageLike,
        *,
        scope: Scope,
        task: str = "main",
        source: str = "",
        attention: float | None = None,
    ) -> Sensed:
        """Take in an event of the moment: what a sensor reads, a user does, a tool shows.

        It stays in the sensory buffer for its time to live, where nothing can read it. With enough attention it enters
        working memory, and is there until the task ends. It is no message: what is to be remembered is given to
        `add_messages` or `capture`.

        Args:
            event: A text, or a message in any form that `add_messages` takes.
            scope: Whose senses.
            task: What it may matter for.
            source: What it comes from; the speaker of a message that has a name, unless given.
            attention: How much attention it deserves, 0 to 1, where the caller knows; scored unless given.

        Raises:
            MessageError: The event has no words, or is no message.
            InputError: Task or source is no text, or the attention is not between 0 and 1.
            ScopeError: The scope is missing.
        """
        parts, partition = self._parts(), required(scope).partition()
        check_text(task=task, source=source)
        if attention is not None and not 0 <= attention <= 1:
            raise InputError(f"The attention is {attention}.", "Give a number from 0 to 1, or none.")
        redact = parts.redactor.message
        (message,) = to_messages([event], thread="main", default_time=self._context.clock(), timezone=None, take=redact)
        text, who = message.text, parts.redactor.text(source) or message.name
        score = parts.attention["now"]
        got = self._context.sensory.sense(
            partition,
            text,
            source=who,
            score=lambda before: score(text, before) if attention is None else attention,
        )
        if got < self._settings.sensory.threshold:
            return Sensed(attention=got, attended=False)
        chunk, evicted = self._context.in_mind.hold((partition, task), f"{who}: {text}" if who else text)
        return Sensed(attention=got, attended=True, chunk=chunk, evicted=evicted)

    asense = twin(sense)

    def chunks(self, *, scope: Scope, task: str = "main") -> tuple[Chunk, ...]:
        """Return what an agent has in mind for a task, oldest first.

        Args:
            scope: Which agent, and for whom.
            task: The task.

        Raises:
            InputError: The task is no text.
            ScopeError: The scope is missing.
        """
        self._parts()
        check_text(task=task)
        return self._context.in_mind.chunks((required(scope).partition(), task))

    achunks = twin(chunks)

    def rehearse(self, chunk_id: str, *, scope: Scope, task: str = "main") -> Chunk:
        """Keep a chunk in mind: what was rehearsed least has to go first.

        Args:
            chunk_id: The chunk.
            scope: Which agent, and for whom.
            task: The task.

        Raises:
            NotFoundError: There is no such chunk for this task.
            InputError: The task or the id is no text.
        """
        self._parts()
        check_text(chunk_id=chunk_id, task=task)
        return self._context.in_mind.rehearse((required(scope).partition(), task), chunk_id)

    arehearse = twin(rehearse)

    def end(self, task: str = "main", *, scope: Scope) -> int:
        """End a task: all that was in mind for it is dropped. Returns how many chunks that were.

        Args:
            task: The task.
            scope: Which agent, and for whom.

        Raises:
            InputError: The task is no text.
            ScopeError: The scope is missing.
        """
        self._parts()
        check_text(task=task)
        return self._context.in_mind.end((required(scope).partition(), task))

    aend = twin(end)
