"""The verbs that turn what was recorded into memories, block by block: what is new, what failed, or whatever waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from threading import Event
from typing import TYPE_CHECKING, cast

from remegraph.errors import InputError, RemegraphError
from remegraph.kit.background import at_once, serve
from remegraph.kit.context import Context, Facade, twin
from remegraph.kit.health import aobserved, observed
from remegraph.kit.summary_loop import redo_loop, reread_loop, summary_loop
from remegraph.kit.validation import check_numbers, check_text, required
from remegraph.kit.worker import CUT, KIND, REREAD, UPKEEP, Done, Worker, drain
from remegraph.models import Budget, Scope, SummaryReport, Work, WorkState

if TYPE_CHECKING:
    from remegraph.engine.summarizer import BlockOutcome, SummarizerInput
    from remegraph.kit.summary_loop import Loop, OnProgress
    from remegraph.kit.worker import Cancel, Duty, Turn

__all__ = ["Summarization", "Worklist"]

_PAUSE = timedelta(hours=1)
"""Least time between two runs in which the background reads blocks of one scope again."""


class Summarization(Facade):
    """Learns from messages: what is new, or whatever waits; and says what the background work consists of.

    Args:
        context: What the verbs of the kit share.
        cut_idle: Cuts the idle tails of one scope; returns after which time again.
        maintain: Does the upkeep of one scope.
    """

    def __init__(
        self,
        context: Context,
        cut_idle: Callable[[Scope], timedelta | None],
        maintain: Callable[..., object],
    ) -> None:
        super().__init__(context)
        self._cut_idle = cut_idle
        self._maintain = maintain

    def loop(
        self,
        scope: Scope,
        *,
        close: bool = False,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
        passes: Cancel | None = None,
    ) -> Loop:
        """Return the work on what is new; see `MemoryKit.summarize`. It ends after a block where `passes` says so."""
        return summary_loop(
            self._parts(),
            required(scope),
            self._settings.summary.recipe,
            close=close,
            budget=budget,
            progress=progress,
            cancel=cancel,
            passes=passes,
        )

    @observed("summarize")
    def run(self, loop: Loop) -> SummaryReport:
        """Work a loop off."""
        graph, config = self._parts().summarizer, self._context.graph_config()
        with closing(loop):  # what models were asked is booked now, not when the loop happens to be collected
            step = _advance(loop, None)
            while not isinstance(step, SummaryReport):
                try:
                    outcome = cast("BlockOutcome", graph.invoke(step, config))
                except RemegraphError as error:
                    step = _advance(loop, error)
                else:
                    self._context.health.count("statements_refused", len(outcome.get("kept_out", ())))
                    step = _advance(loop, outcome)
            return step

    @aobserved("summarize")
    async def arun(self, loop: Loop) -> SummaryReport:
        """Work a loop off; see `run`."""
        graph, config = self._parts().summarizer, self._context.graph_config()
        try:
            step = await asyncio.to_thread(_advance, loop, None)
            while not isinstance(step, SummaryReport):
                try:
                    outcome = cast("BlockOutcome", await graph.ainvoke(step, config))
                except RemegraphError as error:
                    step = await asyncio.to_thread(_advance, loop, error)
                else:
                    self._context.health.count("statements_refused", len(outcome.get("kept_out", ())))
                    step = await asyncio.to_thread(_advance, loop, outcome)
            return step
        finally:
            await asyncio.to_thread(loop.close)

    def drain(self, *, progress: OnProgress | None = None, cancel: Cancel | None = None) -> SummaryReport:
        """See `MemoryKit.drain`."""
        parts = self._parts()
        worker = Worker(parts, self.duties(progress), shares=False)
        with self._context.background.aside():
            self._context.write_noted()
            return drain(parts, worker, cancel or _never)

    def duties(self, progress: OnProgress | None = None) -> Mapping[str, Duty]:
        """Return what the background work consists of: a scope's blocks, their summaries, its upkeep, what is read again."""

        def cut(scope: Scope, _: Turn) -> Done:
            return Done(SummaryReport(), self._cut_idle(scope))

        def summarize(scope: Scope, turn: Turn) -> Done:
            report = self.run(self.loop(scope, progress=progress, cancel=turn.over, passes=turn.passes))
            if self._rereads(scope):
                self._parts().jobs.enqueue(REREAD, scope.partition())
            return Done(report)

        def maintain(scope: Scope, turn: Turn) -> Done:
            every = self._context.lifecycle_of(
                scope.partition()
            ).every  # as the settings say now, not when it was asked for
            if every is not None:
                self._context.write_noted()
                self._maintain(scope=scope, cancel=turn.over)
            return Done(SummaryReport(), every)

        def reread(scope: Scope, turn: Turn) -> Done:
            if not self._rereads(scope):
                return Done(SummaryReport())
            most = self._settings.capture.reread
            again = _reread_loop(
                self._context,
                scope,
                by="extractive",
                dry_run=False,
                budget=Budget(max_tokens=most),
                progress=progress,
                cancel=turn.over,
            )
            report = self.run(again)
            spent = report.usage.input_tokens + report.usage.output_tokens
            return Done(report.evolve(pending=0), max(_PAUSE, timedelta(days=spent / most)))

        return {CUT: cut, KIND: summarize, UPKEEP: maintain, REREAD: reread}

    def _rereads(self, scope: Scope) -> bool:
        """Return whether blocks of a scope wait that the background shall have read again."""
        parts, settings = self._parts(), self._settings
        return (
            settings.capture.reread > 0
            and parts.thinkers.of(scope.agent).learns
            and settings.for_agent(scope.agent).extracts
            and bool(parts.archive.read_by([scope.partition()], "extractive", settings.summary.recipe))
        )


class Worklist(Facade):
    """`kit.work`: what waits, failed, or is to be looked at; and who does it.

    Args:
        context: What the verbs of the kit share.
        summarization: Reads blocks.
    """

    def __init__(self, context: Context, summarization: Summarization) -> None:
        super().__init__(context)
        self._summarization = summarization

    def list(self, *, scope: Scope, states: Sequence[WorkState] = ("pending", "failed", "review")) -> tuple[Work, ...]:
        """Return work that is not simply done: pending blocks, failed topics, what a person should look at.

        Args:
            scope: Who asks.
            states: The states wanted.
        """
        archive = self._parts().archive
        return archive.work(archive.visible(required(scope)), states=states, recipe=self._settings.summary.recipe)

    alist = twin(list)  # noqa: A003 - the verb above

    def retry(
        self,
        *,
        scope: Scope,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> SummaryReport:
        """Try what failed once more, each topic alone; see `summarize`."""
        return self._summarization.run(self._redo_loop(scope, budget, progress, cancel))

    async def aretry(
        self,
        *,
        scope: Scope,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> SummaryReport:
        """Try what failed once more; see `retry`."""
        return await self._summarization.arun(self._redo_loop(scope, budget, progress, cancel))

    def reread(
        self,
        *,
        scope: Scope,
        by: str = "extractive",
        dry_run: bool = False,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> SummaryReport:
        """Have the model read again what was read without one, the newest blocks first. Goes on where the last run stopped.

        What the last reading of a block made gives way in the same commit that brings what the model makes of it, unless
        other blocks bear it out, somebody stated or changed it, or the reading fails. What was said later is never
        replaced by what was said before. Requests to forget that wait for a model are decided.

        Once the budget is used up, or `cancel` says so, it ends; the report tells in `pending` how many blocks are left. A
        block that the model fails on is `failed`, and `retry` tries it again.

        Args:
            scope: Whose blocks.
            by: Who read them last: nobody's model, or the model of this name, where today's is a better one.
            dry_run: Whether nothing is read, and the report tells what would be, and about what it would cost.
            budget: Hard limits on calls and tokens.
            progress: Told after each block.
            cancel: Asked before each block.

        Raises:
            InputError: There is no model, or it is the one that read them.
            ModelUnavailableError: The model is down; what is not done stays as it is.
        """
        return self._summarization.run(
            _reread_loop(self._context, scope, by=by, dry_run=dry_run, budget=budget, progress=progress, cancel=cancel)
        )

    async def areread(
        self,
        *,
        scope: Scope,
        by: str = "extractive",
        dry_run: bool = False,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> SummaryReport:
        """Have the model read again what was read without one; see `reread`."""
        return await self._summarization.arun(
            _reread_loop(self._context, scope, by=by, dry_run=dry_run, budget=budget, progress=progress, cancel=cancel)
        )

    def serve(self, stop: Event, *, concurrency: int | None = None) -> None:
        """Do whatever waits, in every scope, as it comes, until `stop` is set: what `remegraph worker` does.

        Any number of processes may, on one PostgreSQL ledger and one Chroma server. Once `stop` is set, the blocks at
        hand are finished and the jobs given back. What fails waits for its next try; `health` counts it.

        Args:
            stop: Set by whoever wants it to end.
            concurrency: How many jobs at once, each of another user; as `CapturePolicy.concurrency` says unless given.

        Raises:
            InputError: `concurrency` is no number of at least 1.
        """
        concurrency = at_once(self._settings) if concurrency is None else concurrency
        check_numbers(least=1, whole=True, concurrency=concurrency)
        serve(self._parts(), self._summarization.duties(), self._context.health, concurrency=concurrency, stop=stop)

    aserve = twin(serve)

    def _redo_loop(
        self, scope: Scope, budget: Budget | None, progress: OnProgress | None, cancel: Cancel | None
    ) -> Loop:
        recipe = self._settings.summary.recipe
        return redo_loop(self._parts(), required(scope), recipe, budget=budget, progress=progress, cancel=cancel)


def _reread_loop(
    context: Context,
    scope: Scope,
    *,
    by: str,
    dry_run: bool,
    budget: Budget | None,
    progress: OnProgress | None,
    cancel: Cancel | None,
) -> Loop:
    check_text(by=by)
    parts, recipe = context.parts(), context.settings.summary.recipe
    thinker = parts.thinkers.of(required(scope).agent)
    if not thinker.learns:
        raise InputError(
            "There is no model to read anything again.", "Open the kit with one: MemoryKit.open(model=...)."
        )
    if not context.settings.for_agent(scope.agent).extracts:
        raise InputError(f"Nothing is learned from conversations of {scope.agent!r}.", "See ExtractionPolicy.mode.")
    if by == thinker.name:
        raise InputError(f"{by} is the model that would read them again.", "Name another that read them, or none.")
    return reread_loop(parts, scope, recipe, by=by, dry_run=dry_run, budget=budget, progress=progress, cancel=cancel)


def _advance(loop: Loop, outcome: BlockOutcome | RemegraphError | None) -> SummarizerInput | SummaryReport:
    """Go on to the loop's next run or its report: StopIteration must not cross into a thread's future."""
    try:
        if isinstance(outcome, RemegraphError):
            return loop.throw(outcome)
        return next(loop) if outcome is None else loop.send(outcome)
    except StopIteration as end:
        report: SummaryReport = end.value
        return report


def _never() -> bool:
    return False
