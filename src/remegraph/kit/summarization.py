"""The verbs that turn what was recorded into memories, block by block: what is new, what failed, or all that waits.

The loop around the summariser's graph, with progress, budget, cancel and resume, is a generator that knows no I/O of models;
the verbs drive it with `invoke` or `ainvoke`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event
from typing import TYPE_CHECKING, cast

from remegraph.engine.routes import home
from remegraph.engine.slices import readable
from remegraph.engine.summarizer import BlockOutcome, Redo, SummarizerInput
from remegraph.engine.summary_tasks import Meter, OwnerRules
from remegraph.errors import WITHOUT_VECTORS, BudgetExceededError, CancelledError, InputError, RemegraphError
from remegraph.kit.background import at_once, serve
from remegraph.kit.components import Parts
from remegraph.kit.facade import Context, Facade, twin
from remegraph.kit.health import aobserved, observed
from remegraph.kit.validation import check_choices, check_numbers, check_text, required
from remegraph.kit.worker import CUT, KIND, REREAD, UPKEEP, Cancel, Done, OnProgress, Worker, drain
from remegraph.models import LIVE, Budget, CallRecord, Progress, Scope, SummaryReport, Usage, Work, WorkState
from remegraph.telemetry import event
from remegraph.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from remegraph.kit.worker import Duty, Turn

__all__ = ["Summarization", "Worklist"]

_log = logging.getLogger(__name__)

Loop = Generator[SummarizerInput, BlockOutcome, SummaryReport]
_Outcome = BlockOutcome | RemegraphError

_PAUSE = timedelta(hours=1)
"""Least time between two runs in which the background reads blocks of one scope again."""


class Summarization(Facade):
    """Learns from messages: what is new, or all that waits; and defines the background work.

    Args:
        context: What the verbs of the kit share.
        cut_idle: Cuts the idle tails of one scope; returns after which time again.
        maintain: Maintains one scope.
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
        return _news(
            self._parts(),
            required(scope),
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
            step = self._advance(loop)
            while not isinstance(step, SummaryReport):
                try:
                    outcome: _Outcome = cast("BlockOutcome", graph.invoke(step, config))
                except RemegraphError as error:
                    outcome = error
                step = self._advance(loop, outcome)
            return step

    @aobserved("summarize")
    async def arun(self, loop: Loop) -> SummaryReport:
        """Work a loop off; see `run`."""
        graph, config = self._parts().summarizer, self._context.graph_config()
        try:
            step = await asyncio.to_thread(self._advance, loop)
            while not isinstance(step, SummaryReport):
                try:
                    outcome: _Outcome = cast("BlockOutcome", await graph.ainvoke(step, config))
                except RemegraphError as error:
                    outcome = error
                step = await asyncio.to_thread(self._advance, loop, outcome)
            return step
        finally:
            await asyncio.to_thread(loop.close)

    def _advance(self, loop: Loop, outcome: _Outcome | None = None) -> SummarizerInput | SummaryReport:
        """Go on to the loop's next run or its report: StopIteration must not cross into a thread's future."""
        try:
            if isinstance(outcome, RemegraphError):
                return loop.throw(outcome)
            if outcome is None:
                return next(loop)
            self._context.health.count("statements_refused", len(outcome.get("kept_out", ())))
            return loop.send(outcome)
        except StopIteration as end:
            report: SummaryReport = end.value
            return report

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
            return Done(self.run(self.loop(scope, progress=progress, cancel=turn.over, passes=turn.passes)))

        def maintain(scope: Scope, turn: Turn) -> Done:
            every = self._context.lifecycle_of(
                scope.partition()
            ).every  # as the settings say now, not when it was asked for
            if every is not None:
                self._context.write_noted()
                self._maintain(scope=scope, cancel=turn.over)
            return Done(SummaryReport(), every)

        def reread(scope: Scope, turn: Turn) -> Done:
            if not _rereads(self._parts(), scope):
                return Done(SummaryReport())
            most = self._settings.capture.reread
            again = _again(
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


class Worklist(Facade):
    """`kit.work`: what waits, failed, or needs a person, and the workers that do it.

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
            states: The states wanted: pending, done, failed or review.

        Raises:
            InputError: There is no such state.
        """
        check_choices(WorkState, states=states)
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
        """Retry what failed, each topic alone; see `summarize`."""
        return self._summarization.run(_failed(self._parts(), required(scope), budget, progress, cancel))

    async def aretry(
        self,
        *,
        scope: Scope,
        budget: Budget | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> SummaryReport:
        """Retry what failed; see `retry`."""
        return await self._summarization.arun(_failed(self._parts(), required(scope), budget, progress, cancel))

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
        """Have the model read again what was read without one, the newest blocks first. Continues where the last run stopped.

        What the last reading of a block made gives way in the same commit that brings what the model makes of it, unless
        other blocks support it, a person stated or changed it, or the reading fails. What was said later is never
        replaced by what was said before. Requests to forget that wait for a model are decided.

        Once the budget is used up, or `cancel` says so, it ends; `pending` in the report has how many blocks are left. A
        block that the model fails on is `failed`, and `retry` tries it again.

        Args:
            scope: Whose blocks.
            by: What read them last: no model, or the model of this name, where today's is a better one.
            dry_run: Whether nothing is read, and the report has what would be, and about what it would cost.
            budget: Hard limits on calls and tokens.
            progress: Told after each block.
            cancel: Asked before each block.

        Raises:
            InputError: There is no model, or it is the one that read them.
            ModelUnavailableError: The model is down; what is not done stays as it is.
        """
        return self._summarization.run(
            _again(self._context, scope, by=by, dry_run=dry_run, budget=budget, progress=progress, cancel=cancel)
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
            _again(self._context, scope, by=by, dry_run=dry_run, budget=budget, progress=progress, cancel=cancel)
        )

    def serve(self, stop: Event, *, concurrency: int | None = None) -> None:
        """Do all work that waits, in every scope, as it comes, until `stop` is set, as `remegraph worker` does.

        Any number of processes can do so on one PostgreSQL ledger and one Chroma server. Once `stop` is set, current
        blocks are finished and the jobs given back. What fails waits for its next try; `health` counts it.

        Args:
            stop: Set it to end the work.
            concurrency: How many jobs at once, each of another user; as `CapturePolicy.concurrency` says unless given.

        Raises:
            InputError: `concurrency` is no number of at least 1.
        """
        concurrency = at_once(self._settings) if concurrency is None else concurrency
        check_numbers(least=1, whole=True, concurrency=concurrency)
        serve(self._parts(), self._summarization.duties(), self._context.health, concurrency=concurrency, stop=stop)

    aserve = twin(serve)


def _again(
    context: Context,
    scope: Scope,
    *,
    by: str,
    dry_run: bool,
    budget: Budget | None,
    progress: OnProgress | None,
    cancel: Cancel | None,
) -> Loop:
    """Return the reading of what was read without a model, or by another; see `Worklist.reread`."""
    check_text(by=by)
    parts = context.parts()
    thinker = parts.thinkers.of(required(scope).agent)
    if not thinker.learns:
        raise InputError(
            "There is no model to read anything again.", "Open the kit with one: MemoryKit.open(model=...)."
        )
    if not context.settings.for_agent(scope.agent).extracts:
        raise InputError(f"Nothing is learned from conversations of {scope.agent!r}.", "See ExtractionPolicy.mode.")
    if by == thinker.name:
        raise InputError(f"{by} is the model that would read them again.", "Name another that read them, or none.")
    return _reread(parts, scope, by=by, dry_run=dry_run, budget=budget, progress=progress, cancel=cancel)


def _never() -> bool:
    return False


# ------------------------------------------------------------------------------------------- the loop

_COST = {"digest": (500, 100), "propose": (1_100, 300), "screen": (500, 100)}
"""What a call costs beside the block and the memories that it shows: tokens of instructions and form, and of the answer."""

_KNOWN = 500
"""Memories of a topic that are looked at for what they cost: as a rule the budget of what is shown ends before."""

_EACH = 25
"""Tokens of a line that shows a message or a memory, beside its words."""


@dataclass
class _Tally:
    """Adds up what the runs did."""

    meter: Meter
    blocks: list[str] = field(default_factory=list)
    memory_ids: list[str] = field(default_factory=list)
    created: int = 0
    objections: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: BlockOutcome) -> None:
        block = outcome.get("block")
        if block is not None:
            self.blocks.append(block.block_id)
        receipt = outcome.get("receipt")
        if receipt is not None and not receipt.replayed:
            self.memory_ids.extend(receipt.memory_ids)
            self.created += receipt.created
            self.warnings.extend(receipt.warnings)
        self.objections.extend(outcome.get("objections", ()))
        self.notes.extend(outcome.get("notes", ()))
        self.refused.update(outcome.get("kept_out", ()))
        self.meter.settle()

    def report(self, parts: Parts, scope: Scope) -> SummaryReport:
        partition, recipe = scope.partition(), parts.settings.summary.recipe
        try:
            parts.projection.follow()
            parts.projection.embed_messages(partition)
            degraded: tuple[str, ...] = ()
        except WITHOUT_VECTORS as error:  # the ledger has it; the index follows at the next sync
            degraded = (f"vectors: {error}",)
        open_work = parts.archive.work([partition], states=["pending", "failed", "review"], recipe=recipe)
        failed = {work.block_id for work in open_work if work.state == "failed"} & set(self.blocks)
        if failed:
            warning = "%d of %d blocks were not learned, or not all of them. `remegraph doctor` says why, and how to try again."
            _log.warning(warning, len(failed), len(self.blocks), extra=event("block.failed"))
        return SummaryReport(
            blocks=tuple(dict.fromkeys(self.blocks)),
            memory_ids=tuple(dict.fromkeys(self.memory_ids)),
            created=self.created,
            updated=len(self.memory_ids) - self.created,
            work=tuple(work for work in open_work if work.state != "pending"),
            objections=tuple(self.objections),
            notes=tuple(self.notes),
            refused=dict(self.refused),
            warnings=tuple(self.warnings),
            pending=sum(work.state == "pending" for work in open_work),
            degraded=degraded,
            usage=self.meter.usage(),
        )


def _news(
    parts: Parts,
    scope: Scope,
    *,
    close: bool,
    budget: Budget | None,
    progress: OnProgress | None,
    cancel: Cancel | None,
    passes: Cancel | None = None,
) -> Loop:
    """Run until no block of this scope is pending, or until it is the turn of others. Then no job that asks for this waits.

    `passes` is asked after each block whether to leave the rest for later, `cancel` before each whether to end with an error.
    """
    recipe, kinds = parts.settings.summary.recipe, (CUT, KIND) if close else (KIND,)
    with parts.meter(scope.partition(), budget) as meter:
        tally = _Tally(meter)
        while True:
            _check(cancel)
            asked = parts.jobs.unheld(kinds, scope.partition())
            outcome = yield {"scope": scope, "close": close, "redo": None, "meter": tally.meter}
            if outcome.get("block") is None:
                parts.jobs.settle(asked)
                if _rereads(parts, scope):
                    parts.jobs.enqueue(REREAD, scope.partition())
                return tally.report(parts, scope)
            tally.add(outcome)
            if progress:
                left = parts.archive.work([scope.partition()], states=["pending"], recipe=recipe)
                done = len(tally.blocks)
                progress(Progress(stage="summarize", done=done, total=done + len(left), detail=tally.blocks[-1]))
            if passes is not None and passes():
                return tally.report(parts, scope)


def _rereads(parts: Parts, scope: Scope) -> bool:
    """Return whether blocks of a scope wait for the background to read them again."""
    settings = parts.settings
    return (
        settings.capture.reread > 0
        and parts.thinkers.of(scope.agent).learns
        and settings.for_agent(scope.agent).extracts
        and bool(parts.archive.read_by([scope.partition()], "extractive", settings.summary.recipe))
    )


def _failed(
    parts: Parts, scope: Scope, budget: Budget | None, progress: OnProgress | None, cancel: Cancel | None
) -> Loop:
    """Run what failed once more, topic by topic; see `_news`."""
    recipe = parts.settings.summary.recipe
    with parts.meter(scope.partition(), budget) as meter:
        tally = _Tally(meter)
        failed: dict[str, list[str]] = {}
        for work in parts.archive.work([scope.partition()], states=["failed"], recipe=recipe):
            failed.setdefault(work.block_id, []).append(work.topic)
        for number, (block_id, topics) in enumerate(failed.items(), start=1):
            _check(cancel)
            redo = Redo(block_id, _topics(topics))
            tally.add((yield {"scope": scope, "close": False, "redo": redo, "meter": tally.meter}))
            if progress:
                progress(Progress(stage="retry", done=number, total=len(failed), detail=block_id))
        return tally.report(parts, scope)


def _reread(
    parts: Parts,
    scope: Scope,
    *,
    by: str,
    dry_run: bool,
    budget: Budget | None,
    progress: OnProgress | None,
    cancel: Cancel | None,
) -> Loop:
    """Read blocks again, the newest first, until the budget is used up or `cancel` says so; see `_news`."""
    waiting = parts.archive.read_by([scope.partition()], by, parts.settings.summary.recipe)
    if dry_run:
        calls = tuple(call for block_id in waiting for call in _expected(parts, scope, block_id))
        return SummaryReport(blocks=waiting, pending=len(waiting), usage=Usage(calls=calls))
    with parts.meter(scope.partition(), budget) as meter:
        tally = _Tally(meter)
        for number, block_id in enumerate(waiting, start=1):
            if (cancel and cancel()) or not tally.meter.affords(_expected(parts, scope, block_id)):
                break
            try:
                tally.add((yield {"scope": scope, "close": False, "redo": Redo(block_id, ()), "meter": tally.meter}))
            except BudgetExceededError:  # in the middle of a block, of which nothing was written: it waits
                break
            if progress:
                progress(Progress(stage="reread", done=number, total=len(waiting), detail=block_id))
        return tally.report(parts, scope).evolve(pending=len(waiting) - len(tally.blocks))


def _expected(parts: Parts, scope: Scope, block_id: str) -> Iterator[CallRecord]:
    """Yield what reading a block will cost, about: a call for it, for each topic that it taught something, and for rules."""
    partition, thinker = scope.partition(), parts.thinkers.of(scope.agent)
    (block,) = parts.archive.blocks([partition], ids=[block_id])
    rows = parts.archive.messages(
        [partition], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq, shown=["asked"]
    )
    shown = sum(estimate_tokens(row.text) + _EACH for row in readable(rows))
    where = home(scope, parts.settings.trust_boundary)
    here = list(dict.fromkeys((where, partition)))
    topics = {memory.topic.key: memory.topic for memory in parts.archive.memories(here, block_ids=[block_id])}
    known = [
        sum(
            estimate_tokens(each.content) + _EACH
            for each in parts.archive.memories([where], topics=[topic], statuses=sorted(LIVE), limit=_KNOWN)
        )
        for topic in topics.values()
    ] or [0]
    screens = [("screen", 0)] if OwnerRules.of(parts.settings.for_agent(scope.agent).extraction) else []
    proposes = (("propose", min(each, thinker.similar_tokens)) for each in known)
    for operation, more in (("digest", 0), *proposes, *screens):
        sent, received = _COST[operation]
        yield CallRecord(
            operation=operation,
            model=thinker.name,
            input_tokens=sent + shown + more,
            output_tokens=received,
            estimated=True,
            seconds=0,
        )


def _topics(topics: Sequence[str]) -> tuple[str, ...]:
    """Return the topics to redo; none where the digest failed, which decides the topics again."""
    return () if "" in topics else tuple(topics)


def _check(cancel: Cancel | None) -> None:
    if cancel is not None and cancel():
        raise CancelledError("Summarising was cancelled.")
