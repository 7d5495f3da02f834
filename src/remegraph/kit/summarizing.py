"""The loop around the summariser's graph: block by block, with progress, budget, cancel and resume.

What to run is a generator that knows no I/O of models; the kit drives it with `invoke` or `ainvoke`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from remegraph.engine.metering import Meter
from remegraph.engine.summarizer import BlockOutcome, Redo, SummarizerInput
from remegraph.errors import WITHOUT_VECTORS, CancelledError
from remegraph.kit.draining import Cancel
from remegraph.kit.parts import Parts
from remegraph.models import Budget, Progress, Scope, SummaryReport

__all__ = ["Loop", "OnProgress", "redo_loop", "summary_loop"]

OnProgress = Callable[[Progress], None]
Loop = Generator[SummarizerInput, BlockOutcome, SummaryReport]


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

    def report(self, parts: Parts, scope: Scope, recipe: str) -> SummaryReport:
        partition = scope.partition()
        try:
            parts.projection.follow()
            parts.projection.embed_messages(partition)
            degraded: tuple[str, ...] = ()
        except WITHOUT_VECTORS as error:  # the ledger has it; the index follows at the next sync
            degraded = (f"vectors: {error}",)
        open_work = parts.archive.work([partition], states=["pending", "failed", "review"], recipe=recipe)
        return SummaryReport(
            blocks=tuple(dict.fromkeys(self.blocks)),
            memory_ids=tuple(dict.fromkeys(self.memory_ids)),
            created=self.created,
            updated=len(self.memory_ids) - self.created,
            work=tuple(work for work in open_work if work.state != "pending"),
            objections=tuple(self.objections),
            notes=tuple(self.notes),
            warnings=tuple(self.warnings),
            pending=sum(work.state == "pending" for work in open_work),
            degraded=degraded,
            usage=self.meter.usage(),
        )


def summary_loop(
    parts: Parts,
    scope: Scope,
    recipe: str,
    *,
    close: bool,
    budget: Budget | None,
    progress: OnProgress | None,
    cancel: Cancel | None,
) -> Loop:
    """Run until no block of this scope is pending.

    Args:
        parts: The parts of the kit.
        scope: Whose blocks.
        recipe: Name of the way of summarising.
        close: Whether the open tail is cut too.
        budget: Hard limits of all runs together.
        progress: Told before each block and at the end.
        cancel: Asked before each block.

    Raises:
        CancelledError: `cancel` said so.
    """
    tally = _Tally(Meter(budget))
    while True:
        _check(cancel)
        outcome = yield {"scope": scope, "close": close, "redo": None, "meter": tally.meter}
        if outcome.get("block") is None:
            return tally.report(parts, scope, recipe)
        tally.add(outcome)
        if progress:
            left = parts.archive.work([scope.partition()], states=["pending"], recipe=recipe)
            done = len(tally.blocks)
            progress(Progress(stage="summarize", done=done, total=done + len(left), detail=tally.blocks[-1]))


def redo_loop(
    parts: Parts,
    scope: Scope,
    recipe: str,
    *,
    budget: Budget | None,
    progress: OnProgress | None,
    cancel: Cancel | None,
) -> Loop:
    """Run what failed once more, topic by topic; see `summary_loop`."""
    tally = _Tally(Meter(budget))
    failed: dict[str, list[str]] = {}
    for work in parts.archive.work([scope.partition()], states=["failed"], recipe=recipe):
        failed.setdefault(work.block_id, []).append(work.topic)
    for number, (block_id, topics) in enumerate(failed.items(), start=1):
        _check(cancel)
        redo = Redo(block_id, _topics(topics))
        tally.add((yield {"scope": scope, "close": False, "redo": redo, "meter": tally.meter}))
        if progress:
            progress(Progress(stage="retry", done=number, total=len(failed), detail=block_id))
    return tally.report(parts, scope, recipe)


def _topics(topics: Sequence[str]) -> tuple[str, ...]:
    """A failed digest is redone whole: it decides the topics anew."""
    return () if "" in topics else tuple(topics)


def _check(cancel: Cancel | None) -> None:
    if cancel is not None and cancel():
        raise CancelledError("Summarising was cancelled.")
