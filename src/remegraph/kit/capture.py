"""Verbs of write-back: what an agent's host calls when a turn or a session is over, and what messages hold beside words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import TYPE_CHECKING

from remegraph.engine.slices import due, overlap
from remegraph.errors import ConflictError, MessageChangedError, MessageError
from remegraph.importers.attachments import Intake
from remegraph.importers.messages import MessageLike, listed, timed, to_messages
from remegraph.importers.turns import Course, News, Turns
from remegraph.importers.views import Judge, View, placed
from remegraph.kit.facade import Context, Facade, settled
from remegraph.kit.health import observed
from remegraph.kit.validation import actor_of, check_text, here, required, zone
from remegraph.kit.worker import CUT, KIND, UPKEEP
from remegraph.models import AddReceipt, Block, Captured, Message, Partition, Scope
from remegraph.models.messages import WithheldReason, revised
from remegraph.settings import AgentMemorySettings

if TYPE_CHECKING:
    from remegraph.ports import Tail

__all__ = ["Capture"]

_ATTEMPTS = 5
"""How often others may record the same messages just before us."""

_WARNING = (
    "A turn could not be recorded. The next capture of its conversation records it, as does one of the host's checkpoint; "
    "`kit.admin.unrecorded` lists them."
)


class Capture(Facade):
    """Writes conversations down, as the settings of the agent say.

    Attachments are never fetched: what came without bytes stays a reference.

    Args:
        context: What the verbs of the kit share.
        erase: Erases messages of a place, where the settings say so of those that a host removed.
    """

    def __init__(self, context: Context, erase: Callable[[Scope, Sequence[str]], object]) -> None:
        super().__init__(context)
        self._erase = erase

    @observed("add_messages")
    def add_messages(
        self,
        messages: Iterable[MessageLike],
        *,
        scope: Scope,
        thread: str | None = None,
        timezone: str | tzinfo | None = None,
    ) -> AddReceipt:
        """Record messages; see `MemoryKit.add_messages`."""
        parts, now = self._parts(), self._context.clock()
        partition = required(scope).partition()
        parts.tenants.admit(partition)
        intake = self._intake(strict=True)
        given = tuple(listed(messages))
        place = zone(timezone)
        read = to_messages(
            given, thread=thread or "main", default_time=here(now, place), timezone=place, take=intake.take
        )
        if not read:
            raise MessageError("There are no messages.", "Give at least one.")
        named = [
            each if each.message_id else each.model_copy(update={"message_id": self._context.new_id()}) for each in read
        ]
        untimed = {each.message_id for value, each in zip(given, named, strict=True) if not timed(value)}
        asleep = not self._settings.for_agent(scope.agent).learns
        screened = parts.wishes.screen(partition, named)
        receipt = settled(
            lambda: parts.archive.add_messages(
                partition,
                named,
                now,
                asleep=asleep,
                blobs=intake.blobs,
                untimed=untimed,
                withheld=screened,
                screen=partial(parts.retraction.screen, partition, named, screened),
            )
        )
        parts.wishes.hold(partition, screened, partition.agent or "operator")
        return receipt

    @observed("capture")
    def capture(
        self,
        messages: Iterable[MessageLike],
        *,
        scope: Scope,
        thread: str = "main",
        timezone: str | tzinfo | None = None,
        view: View | None = None,
        record: bool = True,
    ) -> Captured:
        """Record what is new in a thread, after each turn; see `MemoryKit.capture`."""
        home, memory = self._context.library(scope), self._settings.for_agent(scope.agent)
        check_text(thread=thread)
        intake = self._intake(strict=False)
        place = zone(timezone)
        turns = Turns(thread, scope.agent, here(self._context.clock(), place), place, take=intake.take)
        if not record:
            return self._keep_off_record(turns, messages, home.partition())
        if not memory.enabled:
            return Captured(enabled=False)
        with self._parts().archive.session():
            return self._captured(turns, messages, home, memory, intake=intake, view=view or View())

    def end_session(self, thread: str = "main", *, scope: Scope) -> Captured:
        """See `MemoryKit.end_session`."""
        home, memory = self._context.library(scope), self._settings.for_agent(scope.agent)
        check_text(thread=thread)
        if not memory.enabled:
            return Captured(enabled=False)
        return self._cut(Captured(), home, memory, [thread], ended=True)

    def cut_idle(self, scope: Scope) -> timedelta | None:
        """Cut the conversations of one scope that are idle; return when the next may be. What waits has been decided on."""
        memory, now, place = self._settings.for_agent(scope.agent), self._context.clock(), scope.partition()
        if not memory.learns:
            return None
        memory = memory.evolve(extraction=memory.extraction.evolve(trigger="gathered"))
        idle = memory.extraction.idle
        if self._crowded(self._parts().archive.pending(self._settings.summary.recipe, [place])):
            return idle
        tails = self._tails(place, memory)
        self._add_blocks(place, tails, memory, now)
        left = (tail.messages[-1].recorded_at + idle - now for tail in tails)
        return min((each for each in left if each > timedelta(0)), default=None)

    def _captured(
        self,
        turns: Turns,
        messages: Iterable[MessageLike],
        home: Scope,
        memory: AgentMemorySettings,
        *,
        intake: Intake,
        view: View,
    ) -> Captured:
        """Record what is new, and make blocks of what is complete; see `capture`."""
        thread, unrecorded = turns.thread, self._parts().unrecorded
        writes = not view.due or self._settings.capture.early
        turn: AbstractContextManager[list[str]] = (
            unrecorded.turn(home.partition(), thread) if writes else nullcontext([])
        )
        try:
            with turn as said:
                course = turns.read(messages)
                said.extend(each.message_id for each in course.heard)
                if writes and course.heard:
                    self._parts().tenants.admit(home)
                idle = memory.extraction.idle if memory.learns and memory.extraction.gathers else None
                news, receipt = self._record(turns, course, partial(self._add, intake=intake, idle=idle), home, view)
        finally:
            self._context.health.figure("threads_unrecorded", unrecorded.failed, _WARNING)
        if receipt is None:
            due = tuple(revised({"extra": each.extra}) or each.message_id for each in news.messages)
            return Captured(known=news.known, due=due)
        self._context.health.count("captures")
        report = Captured(added=receipt.added, known=news.known, revised=news.revised, erased=receipt.erased)
        if not report.added and not report.known:
            return report
        threads = dict.fromkeys((thread, *(message.thread for message in news.messages)))
        everywhere = memory.extraction.gathers and self._may_be_idle(home)
        return self._cut(report, home, memory, [None] if everywhere else list(threads))

    def _keep_off_record(self, turns: Turns, messages: Iterable[MessageLike], place: Partition) -> Captured:
        """Mark what of a list is not recorded, so that no later call records it."""
        parts, course = self._parts(), turns.read(messages)
        said = turns.places(course)
        parts.off_record.note(place, said)
        recorded = partial(parts.archive.recorded, place)
        news = turns.news(course.heard, recorded([name for _, name in said]), recorded).messages
        if news:
            by_place = turns.by_place(course)
            names = [
                (each.thread, name)
                for each in news
                for name in (each.message_id, by_place.get(each.message_id))
                if name
            ]
            parts.archive.keep_off_record(place, names)
        parts.off_record.forget(place, said)
        return Captured(off_record=len(news))

    def _on_record(
        self, turns: Turns, course: Course, place: Partition, known: Collection[str], *, stateless: bool
    ) -> Course:
        """Return a list without what was said off the record, and without what was answered to that."""
        parts, new = self._parts(), [each for each in turns.places(course) if each[1] not in known]
        if not new:
            return course
        if missed := parts.off_record.among(place, new):  # the ledger did not answer when they were said
            parts.archive.keep_off_record(place, missed)
            parts.off_record.forget(place, missed)
        names = {each: each[1] for each in new}
        if stateless:
            by_place = turns.by_place(course)
            names |= {(thread, by_place[name]): name for thread, name in new}
        off = parts.archive.off_record(place, list(names))
        return course.without({names[each] for each in off}) if off else course

    def _record(
        self,
        turns: Turns,
        course: Course,
        add: Callable[[Partition, Sequence[Message]], AddReceipt],
        home: Scope,
        view: View,
    ) -> tuple[News, AddReceipt | None]:
        """Follow what the host changed, and record what is new; none of the latter while an answer is due."""
        parts, partition = self._parts(), home.partition()
        recorded, mine = partial(parts.archive.recorded, partition), partial(parts.recent.holds, partition)
        for _ in range(_ATTEMPTS):
            known = recorded([each.message_id for each in course.heard])
            course = self._on_record(turns, course, partition, known, stateless=view.stateless)
            if view.stateless and (again := turns.given_again(course, known, recorded)):
                course = Course(tuple(each for each in course.heard if each.message_id not in again), course.gap)
            news = turns.news(course.heard, known, recorded)
            judge = Judge(course, view, turns.thread, known, recorded, self._context.clock(), mine)
            self._withhold(home, news.outdated, "edited")  # first: a crash before the newer form shows nothing stale
            self._withhold(home, judge.left, "rewound")
            receipt = None
            if not view.due or self._settings.capture.early:
                said = placed(news.messages, course, view)
                try:
                    receipt = add(partition, said)
                except MessageChangedError:
                    continue  # another process recorded one of them between our look and our write
            self._show(home, news.current, judge.back)
            self._let_go(home, judge)
            return news, receipt
        raise ConflictError([each.message_id for each in course.heard])

    def _add(
        self, partition: Partition, said: Sequence[Message], *, intake: Intake, idle: timedelta | None
    ) -> AddReceipt:
        parts, now = self._parts(), self._context.clock()
        at = now + idle if idle else None
        add = partial(parts.archive.add_messages, partition, said, now, asleep=True, blobs=intake.blobs, cut_at=at)
        screened = parts.wishes.screen(partition, said)
        screen = partial(parts.retraction.screen, partition, said, screened)
        receipt = settled(partial(add, withheld=screened, screen=screen))
        parts.wishes.hold(partition, screened, partition.agent or "operator")
        parts.recent.note(partition, receipt.message_ids)
        return receipt

    def _withhold(self, home: Scope, message_ids: Sequence[str], reason: WithheldReason) -> None:
        if message_ids:
            self._parts().retraction.hide(home.partition(), message_ids, reason=reason, actor=actor_of(home))

    def _show(self, home: Scope, current: Sequence[str], back: Sequence[str]) -> None:
        """Show again what the host returned to."""
        reasons: Mapping[WithheldReason, Sequence[str]] = {"edited": current, "rewound": back, "removed": back}
        for reason, message_ids in reasons.items():
            if message_ids:
                self._parts().retraction.show(home.partition(), message_ids, reasons=[reason], actor=actor_of(home))

    def _let_go(self, home: Scope, judge: Judge) -> None:
        """Treat what the host removed as the settings say."""
        if self._settings.capture.removed == "hide":
            self._withhold(home, judge.gone, "removed")
        elif self._settings.capture.removed == "erase" and (gone := (*judge.gone, *judge.left)):
            self._erase(home, gone)

    def _cut(
        self,
        report: Captured,
        home: Scope,
        memory: AgentMemorySettings,
        threads: Sequence[str | None],
        *,
        ended: bool = False,
    ) -> Captured:
        """Make blocks of what is complete, and wake the runner if there is something to do, or will be."""
        if not memory.learns:
            return report
        archive, place = self._parts().archive, home.partition()
        pending = archive.pending(self._settings.summary.recipe, [place])
        tails = [each for thread in threads for each in self._tails(place, memory, thread)]
        crowded = not ended and self._crowded(pending)
        blocks = self._add_blocks(place, tails, memory, self._context.clock(), ended=ended, crowded=crowded)
        upkeep = self._settings.for_agent(home.agent).lifecycle.every is not None
        if self._settings.capture.background and (pending or blocks or upkeep or memory.extraction.gathers):
            self._context.background.wake()
        return report.evolve(blocks=tuple(block.block_id for block in blocks), waiting=bool(pending or blocks))

    def _may_be_idle(self, home: Scope) -> bool:
        """Return whether a conversation of this place may be idle, and was not looked at yet."""
        due = self._parts().jobs.next_due(CUT, partition=home.partition())
        return due is not None and due <= self._context.clock()

    def _tails(self, place: Partition, memory: AgentMemorySettings, thread: str | None = None) -> Sequence[Tail]:
        needed = overlap(self._settings.slicing, turns=memory.extraction.gathers)
        return self._parts().archive.tails(place, needed, thread=thread)

    def _add_blocks(
        self,
        place: Partition,
        tails: Sequence[Tail],
        memory: AgentMemorySettings,
        now: datetime,
        *,
        ended: bool = False,
        crowded: bool = False,
    ) -> Sequence[Block]:
        """Cut what is due of tails; the decision to summarise it is as durable as the blocks."""
        parts, slicing, extraction = self._parts(), self._settings.slicing, memory.extraction
        cuts = [cut for tail in tails for cut in due(tail, slicing, extraction, now, ended=ended, crowded=crowded)]
        blocks = parts.archive.add_blocks(place, cuts, self._settings.summary.recipe, enqueue=True) if cuts else ()
        if blocks and self._settings.for_agent(place.agent).lifecycle.every is not None:
            parts.jobs.enqueue(UPKEEP, place)
        return blocks

    def _crowded(self, pending: int) -> bool:
        """Return whether the workers are behind: in this place, or all places taken together."""
        most = self._settings.capture.max_waiting
        return pending >= self._settings.capture.max_pending or (
            most is not None and self._parts().jobs.crowded(KIND, most)
        )

    def _intake(self, *, strict: bool) -> Intake:
        """Return what takes the bytes out of messages."""
        keeps = strict or self._parts().archive.attachments.keeps  # else the ledger itself says what is missing
        return Intake(self._settings.perception, strict=strict, keeps=keeps, redactor=self._parts().redactor)
