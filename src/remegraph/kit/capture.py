"""Verbs of write-back: what an agent's host calls when a turn or a session is over, and what messages hold beside words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime, timedelta, tzinfo
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from remegraph.errors import ConflictError, MessageChangedError, NotFoundError, SetupError
from remegraph.importers.messages import MessageLike
from remegraph.importers.turns import Course, News, Turns
from remegraph.importers.views import Judge, View, placed
from remegraph.kit.base import Verbs, settled, twin
from remegraph.kit.health import observed
from remegraph.kit.validation import actor_of, check_text, here, library, required, zone
from remegraph.kit.worker import CUT, KIND, UPKEEP
from remegraph.models import AddReceipt, Block, Captured, Message, Partition, Scope, StoredMessage, Unrecorded
from remegraph.models.messages import WithheldReason, revised
from remegraph.settings import AgentMemorySettings

if TYPE_CHECKING:
    from remegraph.importers.attachments import Intake
    from remegraph.ports import Tail

__all__ = ["Capture", "UnrecordedTurns"]

_ATTEMPTS = 5
"""How often others may record the same messages just before us."""

_MOST_IDS, _MOST_THREADS = 500, 10_000
"""Of how much that could not be recorded the ids are kept: the newest of each conversation, and the newest of these."""

_UNREAD = ""
"""Stands for messages that could not be read."""

_WARNING = (
    "A turn could not be recorded. The next capture of its conversation records it, as does one of the host's checkpoint; "
    "`kit.admin.unrecorded` lists them."
)


class UnrecordedTurns:
    """What captures of this process could not record, by conversation: the ids of messages, and none of their words.

    They are missing until a capture has recorded them, here or in another process, as the ledger shows. Safe to use from
    any thread.

    Args:
        recorded: Gives what the ledger has of some messages of a place.
    """

    def __init__(self, recorded: Callable[[Partition, Sequence[str]], Mapping[str, object]]) -> None:
        self._recorded = recorded
        self._lock = Lock()
        self._missing: dict[tuple[Partition, str], dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._missing)

    @contextmanager
    def turn(self, place: Partition, thread: str) -> Iterator[list[str]]:
        """Give where to put the ids of the messages that are about to be recorded; they are missing if that fails."""
        said: list[str] = []
        try:
            yield said
        except Exception:
            with self._lock:
                missing = self._missing.pop((place, thread), {}) | dict.fromkeys(said or [_UNREAD])
                self._missing[place, thread] = dict.fromkeys(list(missing)[-_MOST_IDS:])
                while len(self._missing) > _MOST_THREADS:
                    del self._missing[next(iter(self._missing))]
            raise
        if (place, thread) in self._missing:
            self._found(place, thread, {*said, _UNREAD})
            self._look(place, thread)

    def look(self) -> tuple[Unrecorded, ...]:
        """Return what is missing, as the ledger shows now; as it was known where the ledger does not answer."""
        with suppress(SetupError):
            for place, thread in tuple(self._missing):
                self._look(place, thread)
        with self._lock:
            return tuple(
                Unrecorded(partition=place, thread=thread, messages=len(ids))
                for (place, thread), ids in self._missing.items()
            )

    def _look(self, place: Partition, thread: str) -> None:
        if ids := [each for each in self._missing.get((place, thread), ()) if each != _UNREAD]:
            self._found(place, thread, self._recorded(place, ids))

    def _found(self, place: Partition, thread: str, ids: Iterable[str]) -> None:
        with self._lock:
            missing = self._missing.get((place, thread), {})
            for each in ids:
                missing.pop(each, None)
            if not missing:
                self._missing.pop((place, thread), None)


class Capture(Verbs):
    """Verbs of the kit that write conversations back by themselves, as the settings of the agent say.

    Of attachments nothing is ever fetched: what came without bytes stays a reference.
    """

    @abstractmethod
    def _erase(self, home: Scope, message_ids: Sequence[str]) -> None:
        """Erase messages of a place."""

    def library(self, scope: Scope) -> Scope:
        """Return the scope that an agent's memories live under: its own, or that of all agents of the user.

        Args:
            scope: Who calls.
        """
        self._open_parts()
        return library(required(scope), self.settings)

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
        """Record what a thread has new, after each turn. No model is called; memories are made in the background.

        Give all messages of the thread, or only new ones: a known id is skipped. Where the host replaced the content
        under an id, the older form is hidden, with what was learned from it alone, and the newer is recorded under a
        new id, with the old one in `extra["revises"]`. A message without an id gets one
        from its place in the list, its role and its content: a host without ids must give the whole thread each time.
        Left out is what was not said: system messages, a framework's summaries, recalled memory. Results of tools that
        recall stay, as every call has its result. What is not in the list is not touched, unless `view` says that it is
        the host's whole state.

        When memories are made, `extraction.trigger` of the agent's settings says. Once this returns, the messages are
        durable; so is the decision to make a block of them, or when to look whether the conversation goes on. Until then
        recall finds them by their words.

        Args:
            messages: In any form that `add_messages` takes. None at all are fine.
            scope: Who speaks with which agent.
            thread: The conversation of messages that do not name one.
            timezone: Zone of the person, for times that name none and for messages without a time.
            view: What the list is to its host, where that is known, as node and middleware do.
            record: Whether it may be recorded. False: off the record. What of the list is not recorded yet never is, by
                whichever call it comes again: only its ids are kept, as marks that nothing can be read from. An answer to
                such words is off the record, too.

        Raises:
            MessageError: A message cannot be recorded; none was.
            LimitError: The tenant or the user has used up what the settings' `limits` allow; the next capture of the
                thread records it.
            ScopeError: The scope is missing.
            ConflictError: Others recorded the same messages at the same time, again and again.
        """
        home, memory = self.library(scope), self.settings.for_agent(scope.agent)
        check_text(thread=thread)
        intake = self._intake(strict=False)
        place = zone(timezone)
        turns = Turns(thread, scope.agent, here(self._clock(), place), place, take=intake.take)
        if not record:
            return self._keep_off_record(turns, messages, home.partition())
        if not memory.enabled:
            return Captured(enabled=False)
        with self._open_parts().archive.session():
            return self._captured(turns, messages, home, memory, intake=intake, view=view or View())

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
        thread, unrecorded = turns.thread, self._open_parts().unrecorded
        writes = not view.due or self.settings.capture.early
        turn: AbstractContextManager[list[str]] = (
            unrecorded.turn(home.partition(), thread) if writes else nullcontext([])
        )
        try:
            with turn as said:
                course = turns.heard(messages)
                said.extend(each.message_id for each in course.heard)
                if writes and course.heard:
                    self._open_parts().tenants.admit(home)
                idle = memory.extraction.idle if memory.learns and memory.extraction.gathers else None
                news, receipt = self._record(turns, course, partial(self._add, intake=intake, idle=idle), home, view)
        finally:
            self.health.figure("threads_unrecorded", len(unrecorded), _WARNING)
        if receipt is None:
            due = tuple(revised({"extra": each.extra}) or each.message_id for each in news.messages)
            return Captured(known=news.known, due=due)
        self.health.count("captures")
        report = Captured(added=receipt.added, known=news.known, revised=news.revised, erased=receipt.erased)
        if not report.added and not report.known:
            return report
        threads = dict.fromkeys((thread, *(message.thread for message in news.messages)))
        everywhere = memory.extraction.gathers and self._may_be_idle(home)
        return self._cut(report, home, memory, [None] if everywhere else list(threads))

    acapture = twin(capture)

    def end_session(self, thread: str = "main", *, scope: Scope) -> Captured:
        """Say that a conversation is over: what no block holds yet becomes one, and memories are made of it.

        With less than `min_turns` turns of a person it is left as it is, joins what is said next in this thread, and
        is found by its words meanwhile. Where the trigger is `manual`, or the agent keeps knowledge only, nothing
        happens. Ending a session again changes nothing.

        Args:
            thread: The conversation.
            scope: Who spoke with which agent.

        Raises:
            ScopeError: The scope is missing.
        """
        home, memory = self.library(scope), self.settings.for_agent(scope.agent)
        check_text(thread=thread)
        if not memory.enabled:
            return Captured(enabled=False)
        return self._cut(Captured(), home, memory, [thread], ended=True)

    aend_session = twin(end_session)

    def attachment(self, sha256: str, *, scope: Scope) -> bytes:
        """Return the bytes of an attachment, to the letter.

        Args:
            sha256: As `Message.attachments` names it.
            scope: Who asks; some message that it sees must have come with these bytes.

        Raises:
            NotFoundError: None did.
            SetupError: One did, and the bytes are lost or damaged.
            ScopeError: The scope is missing.
        """
        check_text(sha256=sha256)
        archive = self._open_parts().archive
        data = archive.attachments.get(archive.visible(required(scope)), sha256)
        if data is None:
            raise NotFoundError(f"There is no attachment {sha256!r} here.")
        return data

    aattachment = twin(attachment)

    def with_attachments(self, messages: Iterable[StoredMessage], *, scope: Scope) -> tuple[StoredMessage, ...]:
        """Return messages with the bytes of their attachments where they stood, as a chat model takes them.

        Args:
            messages: Messages of the ledger.
            scope: Who asks; what it cannot read stays a reference.

        Raises:
            SetupError: Bytes are lost or damaged.
            ScopeError: The scope is missing.
        """
        from remegraph.importers.attachments import restored

        archive = self._open_parts().archive
        partitions = archive.visible(required(scope))

        def read(sha256: str) -> bytes | None:
            return archive.attachments.get(partitions, sha256)

        return tuple(
            message.model_copy(update={"content": restored(message.content, read)}) if message.attachments else message
            for message in messages
        )

    awith_attachments = twin(with_attachments)

    # ------------------------------------------------------------------------------------------- inside

    def _keep_off_record(self, turns: Turns, messages: Iterable[MessageLike], place: Partition) -> Captured:
        """Mark what of a list is not recorded, so that no later call records it."""
        parts, course = self._open_parts(), turns.heard(messages)
        said = turns.places(course)
        parts.off_record.note(place, said)
        recorded = partial(parts.archive.recorded, place)
        news = turns.news(course.heard, recorded([name for _, name in said]), recorded).messages
        if news:
            parts.archive.keep_off_record(place, [(each.thread, each.message_id) for each in news])
        parts.off_record.forget(place, said)
        return Captured(off_record=len(news))

    def _on_record(self, turns: Turns, course: Course, place: Partition, known: Collection[str]) -> Course:
        """Return a list without what was said off the record, and without what was answered to that."""
        parts, new = self._open_parts(), [each for each in turns.places(course) if each[1] not in known]
        if not new:
            return course
        if missed := parts.off_record.among(place, new):  # the ledger did not answer when they were said
            parts.archive.keep_off_record(place, missed)
            parts.off_record.forget(place, missed)
        off = parts.archive.off_record(place, new)
        return course.without({name for _, name in off}) if off else course

    def _record(
        self,
        turns: Turns,
        course: Course,
        add: Callable[[Partition, Sequence[Message]], AddReceipt],
        home: Scope,
        view: View,
    ) -> tuple[News, AddReceipt | None]:
        """Follow what the host changed, and record what is new; none of the latter while an answer is due."""
        parts, partition = self._open_parts(), home.partition()
        recorded, mine = partial(parts.archive.recorded, partition), partial(parts.recent.holds, partition)
        for _ in range(_ATTEMPTS):
            known = recorded([each.message_id for each in course.heard])
            course = self._on_record(turns, course, partition, known)
            news = turns.news(course.heard, known, recorded)
            judge = Judge(course, view, turns.thread, known, recorded, self._clock(), mine)
            self._withhold(home, news.outdated, "edited")  # first: a crash before the newer form shows nothing stale
            self._withhold(home, judge.left, "rewound")
            receipt = None
            if not view.due or self.settings.capture.early:
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
        parts, now = self._open_parts(), self._clock()
        at = now + idle if idle else None
        add = partial(parts.archive.add_messages, partition, said, now, asleep=True, blobs=intake.blobs, cut_at=at)
        screened = parts.wishes.screen(partition, said)
        receipt = settled(partial(add, withheld=screened, screen=partial(parts.retraction.screen, partition, said)))
        parts.wishes.hold(partition, screened, partition.agent or "operator")
        parts.recent.note(partition, receipt.message_ids)
        return receipt

    def _withhold(self, home: Scope, message_ids: Sequence[str], reason: WithheldReason) -> None:
        if message_ids:
            self._open_parts().retraction.hide(home.partition(), message_ids, reason=reason, actor=actor_of(home))

    def _show(self, home: Scope, current: Sequence[str], back: Sequence[str]) -> None:
        """Show what the host came back to."""
        reasons: Mapping[WithheldReason, Sequence[str]] = {"edited": current, "rewound": back, "removed": back}
        for reason, message_ids in reasons.items():
            if message_ids:
                self._open_parts().retraction.show(
                    home.partition(), message_ids, reasons=[reason], actor=actor_of(home)
                )

    def _let_go(self, home: Scope, judge: Judge) -> None:
        """Do with what the host removed as the settings say."""
        if self.settings.capture.removed == "hide":
            self._withhold(home, judge.gone, "removed")
        elif self.settings.capture.removed == "erase" and (gone := (*judge.gone, *judge.left)):
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
        archive, place = self._open_parts().archive, home.partition()
        pending = archive.pending(self.settings.summary.recipe, [place])
        tails = [each for thread in threads for each in self._tails(place, memory, thread)]
        crowded = not ended and self._crowded(pending)
        blocks = self._add_blocks(place, tails, memory, self._clock(), ended=ended, crowded=crowded)
        upkeep = self.settings.for_agent(home.agent).lifecycle.every is not None
        if self.settings.capture.background and (pending or blocks or upkeep or memory.extraction.gathers):
            self._background().wake()
        return report.evolve(blocks=tuple(block.block_id for block in blocks), waiting=bool(pending or blocks))

    def _cut_idle(self, scope: Scope) -> timedelta | None:
        """Cut the conversations of one scope that are idle; return when the next may be. What waits has been decided on."""
        memory, now, place = self.settings.for_agent(scope.agent), self._clock(), scope.partition()
        if not memory.learns:
            return None
        memory = memory.evolve(extraction=memory.extraction.evolve(trigger="gathered"))
        idle = memory.extraction.idle
        if self._crowded(self._open_parts().archive.pending(self.settings.summary.recipe, [place])):
            return idle
        tails = self._tails(place, memory)
        self._add_blocks(place, tails, memory, now)
        left = (tail.messages[-1].recorded_at + idle - now for tail in tails)
        return min((each for each in left if each > timedelta(0)), default=None)

    def _may_be_idle(self, home: Scope) -> bool:
        """Return whether a conversation of this place may be idle, and was not looked at yet."""
        due = self._open_parts().jobs.next_due(CUT, partition=home.partition())
        return due is not None and due <= self._clock()

    def _tails(self, place: Partition, memory: AgentMemorySettings, thread: str | None = None) -> Sequence[Tail]:
        from remegraph.engine.slices import overlap

        needed = overlap(self.settings.slicing, turns=memory.extraction.gathers)
        return self._open_parts().archive.tails(place, needed, thread=thread)

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
        from remegraph.engine.slices import due

        parts, slicing, extraction = self._open_parts(), self.settings.slicing, memory.extraction
        cuts = [cut for tail in tails for cut in due(tail, slicing, extraction, now, ended=ended, crowded=crowded)]
        blocks = parts.archive.add_blocks(place, cuts, self.settings.summary.recipe, enqueue=True) if cuts else ()
        if blocks and self.settings.for_agent(place.agent).lifecycle.every is not None:
            parts.jobs.enqueue(UPKEEP, place)
        return blocks

    def _crowded(self, pending: int) -> bool:
        """Return whether the workers are behind: in this place, or all places taken together."""
        most = self.settings.capture.max_waiting
        return pending >= self.settings.capture.max_pending or (
            most is not None and self._open_parts().jobs.crowded(KIND, most)
        )

    def _intake(self, *, strict: bool) -> Intake:
        """Return what takes the bytes out of messages."""
        from remegraph.importers.attachments import Intake

        keeps = strict or self._open_parts().archive.attachments.keeps  # else the ledger itself says what is missing
        return Intake(self.settings.perception, strict=strict, keeps=keeps, redactor=self._open_parts().redactor)
