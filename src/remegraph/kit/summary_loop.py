"""The loop around the summariser's graph: block by block, with progress, budget, cancel and resume.

What to run is a generator that knows no I/O of models; the kit drives it with `invoke` or `ainvoke`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

from remegraph.engine.routes import home
from remegraph.engine.slices import readable
from remegraph.engine.summarizer import BlockOutcome, Redo, SummarizerInput
from remegraph.engine.tasks import Meter, OwnerRules
from remegraph.errors import WITHOUT_VECTORS, BudgetExceededError, CancelledError
from remegraph.kit.components import Parts
from remegraph.kit.worker import Cancel
from remegraph.models import LIVE, Budget, CallRecord, Progress, Scope, SummaryReport, Usage
from remegraph.text.tokens import estimate_tokens

__all__ = ["Loop", "OnProgress", "redo_loop", "reread_loop", "summary_loop"]

_COST = {"digest": (500, 100), "propose": (1_100, 300), "screen": (500, 100)}
"""What a call costs beside the block and the memories that it shows: tokens of instructions and form, and of the answer."""

_KNOWN = 500
"""Memories of a topic that are looked at for what they cost: as a rule the budget of what is shown ends before."""

_EACH = 25
"""Tokens of a line that shows a message or a memory, beside its words."""

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
            refused=dict(self.refused),
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
    passes: Cancel | None = None,
) -> Loop:
    """Run until no block of this scope is pending, or until it is the turn of others.

    Args:
        parts: The parts of the kit.
        scope: Whose blocks.
        recipe: Name of the way of summarising.
        close: Whether the open tail is cut too.
        budget: Hard limits of all runs together.
        progress: Told before each block and at the end.
        cancel: Asked before each block.
        passes: Asked after each block whether to leave the rest for later.

    Raises:
        CancelledError: `cancel` said so.
    """
    with parts.meter(scope.partition(), budget) as meter:
        tally = _Tally(meter)
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
            if passes is not None and passes():
                return tally.report(parts, scope, recipe)


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
        return tally.report(parts, scope, recipe)


def reread_loop(
    parts: Parts,
    scope: Scope,
    recipe: str,
    *,
    by: str,
    dry_run: bool,
    budget: Budget | None,
    progress: OnProgress | None,
    cancel: Cancel | None,
) -> Loop:
    """Read blocks again, the newest first, until the budget is used up or `cancel` says so; see `summary_loop`.

    Args:
        parts: The parts of the kit.
        scope: Whose blocks.
        recipe: Name of the way of summarising.
        by: Who read them last.
        dry_run: Whether only to say what it would cost.
        budget: Hard limits of all runs together.
        progress: Told after each block.
        cancel: Asked before each block.
    """
    waiting = parts.archive.read_by([scope.partition()], by, recipe)
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
        return tally.report(parts, scope, recipe).evolve(pending=len(waiting) - len(tally.blocks))


def _expected(parts: Parts, scope: Scope, block_id: str) -> Iterator[CallRecord]:
    """Yield what reading a block will cost, about: a call for it, for each topic that it taught something, and for rules."""
    partition, thinker = scope.partition(), parts.thinkers.of(scope.agent)
    (block,) = parts.archive.blocks([partition], ids=[block_id])
    rows = parts.archive.messages(
        [partition], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq, asked=True
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
