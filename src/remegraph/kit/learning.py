"""The verbs that turn what was recorded into memories, block by block: what is new, what failed, or whatever waits."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from threading import Event
from typing import TYPE_CHECKING, cast

from remegraph.kit.calling import check_numbers, required, twin
from remegraph.kit.observing import aobserved, observed
from remegraph.kit.verbs import Verbs
from remegraph.models import Budget, Scope, SummaryReport

if TYPE_CHECKING:
    from remegraph.engine.summarizer import BlockOutcome, SummarizerInput
    from remegraph.kit.draining import Cancel, Duty
    from remegraph.kit.summarizing import Loop, OnProgress

__all__ = ["Learning"]


class Learning(Verbs):
    """The verbs of the kit that learn from messages: what is new, what failed, or whatever waits."""

    @abstractmethod
    def _maintain_in_turn(self, scope: Scope, cancel: Cancel) -> timedelta | None:
        """Do the upkeep of one scope; return after which time again."""

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

    def drain(self, *, progress: OnProgress | None = None, cancel: Cancel | None = None) -> SummaryReport:
        """Summarise whatever waits, in every scope, oldest first, also where the trigger is `manual`; then maintain.

        The background work stands aside meanwhile. Once this returns, nothing of this kit waits or runs, but for jobs
        that failed and wait for their next try: the report tells their blocks as pending, and why.

        Args:
            progress: Told after each block.
            cancel: Asked before each block.

        Raises:
            ModelUnavailableError: The model is down; the job waits for the next call.
            CancelledError: `cancel` said so; likewise.
        """
        from remegraph.kit.draining import Worker, drain

        parts = self._open_parts()
        worker = Worker(parts, self._duties(progress))
        with self._background().aside():
            self._write_noted()
            return drain(parts, worker, cancel or _never)

    adrain = twin(drain)

    def serve(self, stop: Event, *, concurrency: int = 4) -> None:
        """Do whatever waits, in every scope, as it comes, until `stop` is set: what `remegraph worker` does.

        Any number of processes may, on one PostgreSQL ledger and one Chroma server. Once `stop` is set, the blocks at
        hand are finished and the jobs given back. What fails waits for its next try; `health` counts it.

        Args:
            stop: Set by whoever wants it to end.
            concurrency: How many jobs at once, each of another scope.

        Raises:
            InputError: `concurrency` is no number of at least 1.
        """
        from remegraph.kit.serving import serve

        check_numbers(least=1, whole=True, concurrency=concurrency)
        serve(self._open_parts(), self._duties(), self.health, concurrency=concurrency, stop=stop)

    aserve = twin(serve)

    def _duties(self, progress: OnProgress | None = None) -> Mapping[str, Duty]:
        """Return what the background work consists of: the summaries of a scope, then its upkeep."""
        from remegraph.kit.draining import KIND, UPKEEP, Done

        def summarize(scope: Scope, cancel: Cancel) -> Done:
            return Done(self.summarize(scope=scope, cancel=cancel, progress=progress))

        def maintain(scope: Scope, cancel: Cancel) -> Done:
            return Done(SummaryReport(), self._maintain_in_turn(scope, cancel))

        return {KIND: summarize, UPKEEP: maintain}

    def _summary_loop(
        self,
        scope: Scope,
        budget: Budget | None,
        progress: OnProgress | None,
        cancel: Cancel | None,
        *,
        close: bool,
    ) -> Loop:
        from remegraph.kit.summarizing import summary_loop

        recipe = self.settings.summary.recipe
        return summary_loop(
            self._open_parts(), required(scope), recipe, close=close, budget=budget, progress=progress, cancel=cancel
        )

    def _redo_loop(
        self, scope: Scope, budget: Budget | None, progress: OnProgress | None, cancel: Cancel | None
    ) -> Loop:
        from remegraph.kit.summarizing import redo_loop

        recipe = self.settings.summary.recipe
        return redo_loop(self._open_parts(), required(scope), recipe, budget=budget, progress=progress, cancel=cancel)

    def _drive(self, loop: Loop) -> SummaryReport:
        graph, config = self._open_parts().summarizer, self._config()
        step = _advance(loop, None)
        while not isinstance(step, SummaryReport):
            step = _advance(loop, cast("BlockOutcome", graph.invoke(step, config)))
        return step

    async def _adrive(self, loop: Loop) -> SummaryReport:
        graph, config = self._open_parts().summarizer, self._config()
        step = await asyncio.to_thread(_advance, loop, None)
        while not isinstance(step, SummaryReport):
            outcome = cast("BlockOutcome", await graph.ainvoke(step, config))
            step = await asyncio.to_thread(_advance, loop, outcome)
        return step


def _advance(loop: Loop, outcome: BlockOutcome | None) -> SummarizerInput | SummaryReport:
    """Go on to the loop's next run or its report: StopIteration must not cross into a thread's future."""
    try:
        return next(loop) if outcome is None else loop.send(outcome)
    except StopIteration as end:
        report: SummaryReport = end.value
        return report


def _never() -> bool:
    return False
