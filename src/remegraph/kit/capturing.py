"""The verbs of write-back: what an agent's host calls when a turn or a session is over."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING

from remegraph.errors import ConflictError, MessageChangedError
from remegraph.exchange.chat import MessageLike
from remegraph.exchange.turns import News, Turns
from remegraph.kit.calling import check_text, library, required, twin, zone
from remegraph.kit.observing import observed
from remegraph.kit.verbs import Verbs
from remegraph.models import AddReceipt, Captured, Cut, Scope
from remegraph.settings import AgentMemorySettings

if TYPE_CHECKING:
    from remegraph.exchange.attaching import Intake
    from remegraph.ports import Tail

__all__ = ["Capturing"]

_ATTEMPTS = 5
"""How often others may record the same messages just before us."""


class Capturing(Verbs):
    """The verbs of the kit that write conversations back by themselves, as the settings of the agent say."""

    @abstractmethod
    def _intake(self, *, strict: bool) -> Intake:
        """Return what takes the bytes out of messages."""

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
    ) -> Captured:
        """Record what a thread has new, after each turn. No model is called; memories are made in the background.

        Give all messages of the thread, or only new ones: a known id is skipped, and one whose content the host
        replaced is recorded under a new id, with the old one in `extra["revises"]`. A message without an id gets one
        from its place in the list, its role and its content: a host without ids must give the whole thread each time.
        Left out is what nobody said: system messages, a framework's summaries, recalled memory. Results of tools that
        recall stay, as every call has its result.

        When memories are made, `extraction.trigger` of the agent's settings says. Once this returns, the messages are
        durable; so is the decision to make a block of them.

        Args:
            messages: In any form that `add_messages` takes. None at all are fine.
            scope: Who speaks with which agent.
            thread: The conversation of messages that do not name one.
            timezone: Zone of times that do not name one.

        Raises:
            MessageError: A message cannot be recorded; none was.
            ScopeError: The scope is missing.
            ConflictError: Others recorded the same messages at the same time, again and again.
        """
        home, memory = self.library(scope), self.settings.for_agent(scope.agent)
        check_text(thread=thread)
        if not memory.enabled:
            return Captured(enabled=False)
        news, receipt = self._record(thread, scope.agent, zone(timezone), messages, home)
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
        self,
        thread: str,
        agent: str | None,
        timezone: tzinfo | None,
        messages: Iterable[MessageLike],
        home: Scope,
    ) -> tuple[News, AddReceipt]:
        parts, partition = self._open_parts(), home.partition()
        archive = parts.archive
        intake = self._intake(strict=False)  # a turn that was said is not lost for a file
        turns = Turns(thread, agent, self._clock(), timezone, take=intake.take)
        heard = turns.heard(messages)
        for _ in range(_ATTEMPTS):
            news = turns.news(heard, lambda ids: archive.bodies(partition, ids))
            try:
                receipt = archive.add_messages(
                    partition,
                    news.messages,
                    self._clock(),
                    asleep=True,
                    blobs=intake.blobs,
                    withheld=parts.retraction.screen(partition, news.messages),
                )
            except MessageChangedError:
                continue  # another process recorded one of them between our look and our write
            return news, receipt
        raise ConflictError([each.message_id for each in heard])

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
