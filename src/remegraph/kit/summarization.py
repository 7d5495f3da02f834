"""The verbs that turn what was recorded into memories, block by block: what is new, what failed, or whatever waits."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from threading import Event
from typing import TYPE_CHECKING, cast

from remegraph.errors import InputError, RemegraphError
from remegraph.kit.base import Verbs, twin
from remegraph.kit.health import aobserved, observed
from remegraph.kit.validation import check_numbers, check_text, required
from remegraph.models import Budget, Scope, SummaryReport

if TYPE_CHECKING:
    from remegraph.engine.summarizer import BlockOutcome, SummarizerInput
    from remegraph.kit.summary_loop import Loop, OnProgress
    from remegraph.kit.worker import Cancel, Duty, Turn

__all__ = ["Summarization"]

_PAUSE = timedelta(hours=1)
"""Least time between two runs in which the background reads blocks of one scope again."""


class Summarization(Verbs):
    """The verbs of the kit that learn from messages: what is new, what failed, or whatever waits."""

    @abstractmethod
    def _maintain_in_turn(self, scope: Scope, cancel: Cancel) -> timedelta | None:
        """Do the upkeep of one scope; return after which time again."""

    @abstractmethod
    def _cut_idle(self, scope: Scope) -> timedelta | None:
        """Cut the idle tails of one scope; return after which time again."""

    @observed("summarize")
    def summarize(
        self,
        *,
        scope: Scope,
        close: bool = False,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> SummaryReport:
        """Turn what is new into blocks, index entries and topic memories. Goes on where the last run stopped.

        Args:
            scope: Whose messages.
            close: Whether the open tail of each thread, which more messages may still join, is a block too.
            budget: Hard limits on calls and tokens.
            progress: Told after each block.
            cancel: Asked before each block.

        Raises:
            ModelUnavailableError: The model is down; what is not done stays pending.
            BudgetExceededError: The budget is used up; likewise.
            CancelledError: `cancel` said so; likewise.
        """
        return self._drive(self._summary_loop(scope, budget, progress, cancel, close=close))

    @aobserved("summarize")
    async def asummarize(
        self,
        *,
        scope: Scope,
        close: bool = False,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> SummaryReport:
        """Turn what is new into memories; see `summarize`."""
        return await self._adrive(self._summary_loop(scope, budget, progress, cancel, close=close))

    @observed("summarize")
    def retry(
        self,
        *,
        scope: Scope,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> SummaryReport:
        """Try what failed once more, each topic alone; see `summarize`."""
        return self._drive(self._redo_loop(scope, budget, progress, cancel))

    @aobserved("summarize")
    async def aretry(
        self,
        *,
        scope: Scope,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> SummaryReport:
        """Try what failed once more; see `retry`."""
        return await self._adrive(self._redo_loop(scope, budget, progress, cancel))

    @observed("summarize")
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
        return self._drive(self._reread_loop(scope, by, budget, progress, cancel, dry_run=dry_run))

    @aobserved("summarize")
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
        return await self._adrive(self._reread_loop(scope, by, budget, progress, cancel, dry_run=dry_run))

    def drain(self, *, progress: OnProgress | None = None, cancel: Cancel | None = None) -> SummaryReport:
        """Summarise whatever waits, in every scope, oldest first, also where the trigger is `manual`; then maintain.

        The last turns of a conversation that is not idle yet are left to go on: `end_session` ends it, `summarize` with
        `close` takes them as they are. The background work stands aside meanwhile. Once this returns, nothing of this kit waits or runs, but for jobs
        that failed and wait for their next try: the report tells their blocks as pending, and why.

        Args:
            progress: Told after each block.
            cancel: Asked before each block.

        Raises:
            ModelUnavailableError: The model is down; the job waits for the next call.
            CancelledError: `cancel` said so; likewise.
        """
        from remegraph.kit.worker import Worker, drain

        parts = self._open_parts()
        worker = Worker(parts, self._duties(progress), shares=False)
        with self._background().aside():
            self._write_noted()
            return drain(parts, worker, cancel or _never)

    adrain = twin(drain)

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
        from remegraph.kit.background import at_once, serve

        concurrency = at_once(self.settings) if concurrency is None else concurrency
        check_numbers(least=1, whole=True, concurrency=concurrency)
        serve(self._open_parts(), self._duties(), self.health, concurrency=concurrency, stop=stop)

    aserve = twin(serve)

    def _duties(self, progress: OnProgress | None = None) -> Mapping[str, Duty]:
        """Return what the background work consists of: a scope's blocks, their summaries, its upkeep, what is read again."""
        from remegraph.kit.worker import CUT, KIND, REREAD, UPKEEP, Done

        def cut(scope: Scope, _: Turn) -> Done:
            return Done(SummaryReport(), self._cut_idle(scope))

        def summarize(scope: Scope, turn: Turn) -> Done:
            report = self._summarize_in_turn(scope, turn, progress)
            if self._rereads(scope):
                self._open_parts().jobs.enqueue(REREAD, scope.partition())
            return Done(report)

        def maintain(scope: Scope, turn: Turn) -> Done:
            return Done(SummaryReport(), self._maintain_in_turn(scope, turn.over))

        def reread(scope: Scope, turn: Turn) -> Done:
            if not self._rereads(scope):
                return Done(SummaryReport())
            most = self.settings.capture.reread
            report = self.reread(scope=scope, budget=Budget(max_tokens=most), cancel=turn.over, progress=progress)
            spent = report.usage.input_tokens + report.usage.output_tokens
            return Done(report.evolve(pending=0), max(_PAUSE, timedelta(days=spent / most)))

        return {CUT: cut, KIND: summarize, UPKEEP: maintain, REREAD: reread}

    @observed("summarize")
    def _summarize_in_turn(self, scope: Scope, turn: Turn, progress: OnProgress | None) -> SummaryReport:
        """Do the job of one scope, or as much of it as its turn lasts."""
        loop = self._summary_loop(scope, None, progress, turn.over, close=False, passes=turn.passes)
        return self._drive(loop)

    def _rereads(self, scope: Scope) -> bool:
        """Return whether blocks of a scope wait that the background shall have read again."""
        parts, settings = self._open_parts(), self.settings
        return (
            settings.capture.reread > 0
            and parts.thinkers.of(scope.agent).learns
            and settings.for_agent(scope.agent).extracts
            and bool(parts.archive.read_by([scope.partition()], "extractive", settings.summary.recipe))
        )

    def _summary_loop(
        self,
        scope: Scope,
        budget: Budget | None,
        progress: OnProgress | None,
        cancel: Cancel | None,
        *,
        close: bool,
        passes: Cancel | None = None,
    ) -> Loop:
        from remegraph.kit.summary_loop import summary_loop

        return summary_loop(
            self._open_parts(),
            required(scope),
            self.settings.summary.recipe,
            close=close,
            budget=budget,
            progress=progress,
            cancel=cancel,
            passes=passes,
        )

    def _redo_loop(
        self, scope: Scope, budget: Budget | None, progress: OnProgress | None, cancel: Cancel | None
    ) -> Loop:
        from remegraph.kit.summary_loop import redo_loop

        recipe = self.settings.summary.recipe
        return redo_loop(self._open_parts(), required(scope), recipe, budget=budget, progress=progress, cancel=cancel)

    def _reread_loop(
        self,
        scope: Scope,
        by: str,
        budget: Budget | None,
        progress: OnProgress | None,
        cancel: Cancel | None,
        *,
        dry_run: bool,
    ) -> Loop:
        from remegraph.kit.summary_loop import reread_loop

        check_text(by=by)
        parts, recipe = self._open_parts(), self.settings.summary.recipe
        thinker = parts.thinkers.of(required(scope).agent)
        if not thinker.learns:
            raise InputError(
                "There is no model to read anything again.", "Open the kit with one: MemoryKit.open(model=...)."
            )
        if not self.settings.for_agent(scope.agent).extracts:
            raise InputError(f"Nothing is learned from conversations of {scope.agent!r}.", "See ExtractionPolicy.mode.")
        if by == thinker.name:
            raise InputError(f"{by} is the model that would read them again.", "Name another that read them, or none.")
        return reread_loop(
            parts, scope, recipe, by=by, dry_run=dry_run, budget=budget, progress=progress, cancel=cancel
        )

    def _drive(self, loop: Loop) -> SummaryReport:
        graph, config = self._open_parts().summarizer, self._config()
        with closing(loop):  # what models were asked is booked now, not when the loop happens to be collected
            step = _advance(loop, None)
            while not isinstance(step, SummaryReport):
                try:
                    outcome = cast("BlockOutcome", graph.invoke(step, config))
                except RemegraphError as error:
                    step = _advance(loop, error)
                else:
                    self.health.count("statements_refused", len(outcome.get("kept_out", ())))
                    step = _advance(loop, outcome)
            return step

    async def _adrive(self, loop: Loop) -> SummaryReport:
        graph, config = self._open_parts().summarizer, self._config()
        try:
            step = await asyncio.to_thread(_advance, loop, None)
            while not isinstance(step, SummaryReport):
                try:
                    outcome = cast("BlockOutcome", await graph.ainvoke(step, config))
                except RemegraphError as error:
                    step = await asyncio.to_thread(_advance, loop, error)
                else:
                    self.health.count("statements_refused", len(outcome.get("kept_out", ())))
                    step = await asyncio.to_thread(_advance, loop, outcome)
            return step
        finally:
            await asyncio.to_thread(loop.close)


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
