"""Verbs about what is at hand in this process: the active tier, what is sensed, and what an agent has in mind for a task.

Nothing of what is sensed or kept in mind is ever stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remegraph.errors import InputError
from remegraph.importers.messages import MessageLike, to_messages
from remegraph.kit.base import Verbs, twin
from remegraph.kit.validation import actor_of, check_text, required
from remegraph.models import Chunk, Memory, Scope, Sensed

if TYPE_CHECKING:
    from remegraph.retention.working_memory import SensoryBuffer

__all__ = ["ShortTerm"]


class ShortTerm(Verbs):
    """Verbs of the kit about what lives in this process alone: another one, or a restart, knows nothing of it."""

    def active(self, *, scope: Scope, task: str | None = None) -> tuple[Memory, ...]:
        """Return the memories that stand ready without a query: core rules, then what was used most of late.

        They are held in the process. While nothing was written, asking costs one look at the ledger's newest rows. It is
        no review, or whatever is active would stay so for ever. Use counts once it is written down.

        Args:
            scope: Who asks.
            task: What shares words with what is in mind for this task comes first; see `sense`.

        Raises:
            InputError: The task is no text.
        """
        from remegraph.engine.salience import telling_words

        self._open_parts()
        found = self._active.of(required(scope))
        if task is None:
            return found
        check_text(task=task)
        chunks = self._working.chunks((scope.partition(), task))
        in_mind = frozenset[str]().union(*(telling_words(chunk.content) for chunk in chunks))
        return tuple(sorted(found, key=lambda memory: in_mind.isdisjoint(telling_words(memory.content))))

    aactive = twin(active)

    def activate(self, memory_id: str, *, scope: Scope) -> Memory:
        """Have a memory stand ready from now on, whether it is used or not. The journal keeps it.

        Args:
            memory_id: The memory.
            scope: Whose memory.

        Raises:
            NotFoundError: There is no such live memory, or it is not this user's.
            ConflictError: It changed just now.
            InputError: The id is no text.
        """
        return self._pin(memory_id, scope, resident=True)

    aactivate = twin(activate)

    def deactivate(self, memory_id: str, *, scope: Scope) -> Memory:
        """Have a memory never stand ready, however often it is used; queries find it. `activate` takes it back.

        Args:
            memory_id: The memory.
            scope: Whose memory.

        Raises:
            NotFoundError: There is no such live memory, or it is not this user's.
            ConflictError: It changed just now.
            InputError: The id is no text.
        """
        return self._pin(memory_id, scope, resident=False)

    adeactivate = twin(deactivate)

    def _pin(self, memory_id: str, scope: Scope, *, resident: bool) -> Memory:
        from remegraph.retention.active_tier import pin

        check_text(memory_id=memory_id)
        parts = self._open_parts()
        memory = pin(
            parts.archive,
            parts.own(required(scope)),
            memory_id,
            resident=resident,
            actor=actor_of(scope),
            at_home=parts.at_home(scope),
            at=self._clock(),
            operation_id=self._new_id(),
        )
        self._bring_up_to_date()
        return memory

    _sensory: SensoryBuffer

    def sense(
        self,
        event: MessageLike,
        *,
        scope: Scope,
        task: str = "main",
        source: str = "",
        attention: float | None = None,
    ) -> Sensed:
        """Take in an event of the moment: what a sensor reads, a user does, a tool shows.

        It stays in the sensory buffer for its time to live, where nothing can read it. With enough attention it enters
        working memory, and is there until the task ends. It is no message: what is to be remembered is given to
        `add_messages` or `capture`.

        Args:
            event: A text, or a message in any form that `add_messages` takes.
            scope: Whose senses.
            task: What it may matter for.
            source: What it comes from; the speaker of a message that has a name, unless given.
            attention: How much attention it deserves, 0 to 1, where the caller knows; scored unless given.

        Raises:
            MessageError: The event has no words, or is no message.
            InputError: Task or source is no text, or the attention is not between 0 and 1.
            ScopeError: The scope is missing.
        """
        parts, partition = self._open_parts(), required(scope).partition()
        check_text(task=task, source=source)
        if attention is not None and not 0 <= attention <= 1:
            raise InputError(f"The attention is {attention}.", "Give a number from 0 to 1, or none.")
        redact = parts.redactor.message
        (message,) = to_messages([event], thread="main", default_time=self._clock(), timezone=None, take=redact)
        text, who = message.text, parts.redactor.text(source) or message.name
        score = parts.attention["now"]
        got = self._sensory.sense(
            partition,
            text,
            source=who,
            score=lambda before: score(text, before) if attention is None else attention,
        )
        if got < self.settings.sensory.threshold:
            return Sensed(attention=got, attended=False)
        chunk, evicted = self._working.hold((partition, task), f"{who}: {text}" if who else text)
        return Sensed(attention=got, attended=True, chunk=chunk, evicted=evicted)

    asense = twin(sense)

    def working(self, *, scope: Scope, task: str = "main") -> tuple[Chunk, ...]:
        """Return what an agent has in mind for a task, oldest first.

        Args:
            scope: Which agent, and for whom.
            task: The task.

        Raises:
            InputError: The task is no text.
            ScopeError: The scope is missing.
        """
        self._open_parts()
        check_text(task=task)
        return self._working.chunks((required(scope).partition(), task))

    aworking = twin(working)

    def rehearse(self, chunk_id: str, *, scope: Scope, task: str = "main") -> Chunk:
        """Keep a chunk in mind: what was rehearsed least has to go first.

        Args:
            chunk_id: The chunk.
            scope: Which agent, and for whom.
            task: The task.

        Raises:
            NotFoundError: There is no such chunk for this task.
            InputError: The task or the id is no text.
        """
        self._open_parts()
        check_text(chunk_id=chunk_id, task=task)
        return self._working.rehearse((required(scope).partition(), task), chunk_id)

    arehearse = twin(rehearse)

    def end_task(self, task: str = "main", *, scope: Scope) -> int:
        """Say that a task is over: all that was in mind for it is gone. Returns how many chunks that were.

        Args:
            task: The task.
            scope: Which agent, and for whom.

        Raises:
            InputError: The task is no text.
            ScopeError: The scope is missing.
        """
        self._open_parts()
        check_text(task=task)
        return self._working.end((required(scope).partition(), task))

    aend_task = twin(end_task)

    # ------------------------------------------------------------------------------------------- inside

    def _forget_sensed(self) -> None:
        """Let go of all that was sensed or is kept in mind: whose it was cannot be told."""
        self._sensory.clear()
        self._working.clear()
