"""The verbs of write-back: what an agent's host calls when a turn or a session is over."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import tzinfo
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from remegraph.errors import ConflictError, MessageChangedError, SetupError
from remegraph.exchange.chat import MessageLike
from remegraph.exchange.turns import Course, News, Turns
from remegraph.exchange.views import Judge, View, placed
from remegraph.kit.calling import actor_of, check_text, library, required, settled, twin, zone
from remegraph.kit.observing import observed
from remegraph.kit.verbs import Verbs
from remegraph.models import AddReceipt, Captured, Cut, Message, Partition, Scope, Unrecorded
from remegraph.models.messages import WithheldReason, revised
from remegraph.settings import AgentMemorySettings

if TYPE_CHECKING:
    from remegraph.exchange.attaching import Intake
    from remegraph.ports import Tail

__all__ = ["Capturing", "UnrecordedTurns"]

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
        """Give where to put the ids of the messages that are about to be recorded; they are missing if that fails.

        Args:
            place: Whose conversation.
            thread: The conversation.
        """
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


class Capturing(Verbs):
    """The verbs of the kit that write conversations back by themselves, as the settings of the agent say."""

    @abstractmethod
    def _intake(self, *, strict: bool) -> Intake:
        """Return what takes the bytes out of messages."""

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
    ) -> Captured:
        """Record what a thread has new, after each turn. No model is called; memories are made in the background.

        Give all messages of the thread, or only new ones: a known id is skipped. Where the host replaced the content
        under an id, the older form is hidden, with what was learned from it alone, and the newer is recorded under a
        new id, with the old one in `extra["revises"]`. A message without an id gets one
        from its place in the list, its role and its content: a host without ids must give the whole thread each time.
        Left out is what nobody said: system messages, a framework's summaries, recalled memory. Results of tools that
        recall stay, as every call has its result. What is not in the list is not touched, unless `view` says that it is
        the host's whole state.

        When memories are made, `extraction.trigger` of the agent's settings says. Once this returns, the messages are
        durable; so is the decision to make a block of them.

        Args:
            messages: In any form that `add_messages` takes. None at all are fine.
            scope: Who speaks with which agent.
            thread: The conversation of messages that do not name one.
            timezone: Zone of times that do not name one.
            view: What the list is to its host, where that is known, as node and middleware do.

        Raises:
            MessageError: A message cannot be recorded; none was.
            ScopeError: The scope is missing.
            ConflictError: Others recorded the same messages at the same time, again and again.
        """
        home, memory = self.library(scope), self.settings.for_agent(scope.agent)
        check_text(thread=thread)
        if not memory.enabled:
            return Captured(enabled=False)
        intake, unrecorded = self._intake(strict=False), self._open_parts().unrecorded
        turns = Turns(thread, scope.agent, self._clock(), zone(timezone), take=intake.take)
        view = view or View()
        writes = not view.due or self.settings.capture.early
        turn: AbstractContextManager[list[str]] = (
            unrecorded.turn(home.partition(), thread) if writes else nullcontext([])
        )
        try:
            with turn as said:
                course = turns.heard(messages)
                said.extend(each.message_id for each in course.heard)
                news, receipt = self._record(turns, course, intake, home, view)
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
        return self._cut(report, home, memory, list(threads), ended=False)

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

    # ------------------------------------------------------------------------------------------- inside

    def _record(
        self, turns: Turns, course: Course, intake: Intake, home: Scope, view: View
    ) -> tuple[News, AddReceipt | None]:
        """Follow what the host changed, and record what is new; none of the latter while an answer is due."""
        parts, partition = self._open_parts(), home.partition()
        recorded, mine = partial(parts.archive.recorded, partition), partial(parts.recent.holds, partition)
        for _ in range(_ATTEMPTS):
            known = recorded([each.message_id for each in course.heard])
            news = turns.news(course.heard, known, recorded)
            judge = Judge(course, view, turns.thread, known, recorded, self._clock(), mine)
            self._withhold(home, news.outdated, "edited")  # first: a crash before the newer form shows nothing stale
            self._withhold(home, judge.left, "rewound")
            receipt = None
            if not view.due or self.settings.capture.early:
                said = placed(news.messages, course, view)
                try:
                    receipt = self._add(partition, said, intake)
                except MessageChangedError:
                    continue  # another process recorded one of them between our look and our write
            self._show(home, news.current, judge.back)
            self._let_go(home, judge)
            return news, receipt
        raise ConflictError([each.message_id for each in course.heard])

    def _add(self, partition: Partition, said: Sequence[Message], intake: Intake) -> AddReceipt:
        parts = self._open_parts()
        add = partial(parts.archive.add_messages, partition, said, self._clock(), asleep=True, blobs=intake.blobs)
        screened = parts.wishes.screen(partition, said)
        receipt = settled(partial(add, withheld=screened))
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
        self, report: Captured, home: Scope, memory: AgentMemorySettings, threads: Sequence[str], *, ended: bool
    ) -> Captured:
        """Make blocks of what is complete, and wake the runner if any wait."""
        from remegraph.kit.draining import UPKEEP

        if not memory.learns:
            return report
        archive, partition, recipe = self._open_parts().archive, home.partition(), self.settings.summary.recipe
        overlap = self.settings.slicing.overlap if self.settings.slicing.strategy == "length" else 0
        pending = archive.pending(recipe, [partition])
        crowded = pending >= self.settings.capture.max_pending or self._crowded()
        cuts = [
            each
            for thread in threads
            for tail in archive.tails(partition, overlap, thread=thread)
            for each in self._cuts(tail, memory, ended=ended, crowded=crowded)
        ]
        blocks = archive.add_blocks(partition, cuts, recipe, enqueue=True) if cuts else ()
        upkeep = self.settings.for_agent(home.agent).lifecycle.every is not None
        if blocks and upkeep:
            self._open_parts().jobs.enqueue(UPKEEP, partition)
        if self.settings.capture.background and (pending or blocks or upkeep):
            self._background().wake()
        return report.evolve(blocks=tuple(block.block_id for block in blocks), waiting=bool(pending or blocks))

    def _crowded(self) -> bool:
        """Return whether the workers are behind, all partitions taken together."""
        from remegraph.kit.draining import KIND

        most = self.settings.capture.max_waiting
        return most is not None and self._open_parts().jobs.crowded(KIND, most)

    def _cuts(self, tail: Tail, memory: AgentMemorySettings, *, ended: bool, crowded: bool) -> Sequence[Cut]:
        """Cut a tail: where slicing does, and at its end if a turn or the session ends it.

        Where too much waits already, turns are not cut one by one; so the work that waits grows no faster than slicing
        allows.
        """
        from remegraph.engine.slicing import answered, cut

        policy, extraction = self.settings.slicing, memory.extraction
        over = tail if ended else answered(tail)
        turns = sum(message.role == "user" for message in over.messages)
        due = ended or (extraction.trigger == "per-turn" and not crowded)
        if due and turns >= extraction.min_turns:
            return cut(over, policy, close=True)
        return () if ended else cut(tail, policy)
