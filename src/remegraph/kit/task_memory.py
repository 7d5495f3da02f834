"""`kit.working`: what is sensed at the moment, and what an agent has in mind for a task.

Nothing of it is ever stored: another process, or a restart, knows nothing of it.
"""

from __future__ import annotations

from remegraph.errors import InputError
from remegraph.importers.messages import MessageLike, to_messages
from remegraph.kit.context import Facade, twin
from remegraph.kit.validation import check_text, required
from remegraph.models import Chunk, Scope, Sensed

__all__ = ["Working"]


class Working(Facade):
    """The short-term memory of this process."""

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
        parts, partition = self._parts(), required(scope).partition()
        check_text(task=task, source=source)
        if attention is not None and not 0 <= attention <= 1:
            raise InputError(f"The attention is {attention}.", "Give a number from 0 to 1, or none.")
        redact = parts.redactor.message
        (message,) = to_messages([event], thread="main", default_time=self._context.clock(), timezone=None, take=redact)
        text, who = message.text, parts.redactor.text(source) or message.name
        score = parts.attention["now"]
        got = self._context.sensory.sense(
            partition,
            text,
            source=who,
            score=lambda before: score(text, before) if attention is None else attention,
        )
        if got < self._settings.sensory.threshold:
            return Sensed(attention=got, attended=False)
        chunk, evicted = self._context.in_mind.hold((partition, task), f"{who}: {text}" if who else text)
        return Sensed(attention=got, attended=True, chunk=chunk, evicted=evicted)

    asense = twin(sense)

    def chunks(self, *, scope: Scope, task: str = "main") -> tuple[Chunk, ...]:
        """Return what an agent has in mind for a task, oldest first.

        Args:
            scope: Which agent, and for whom.
            task: The task.

        Raises:
            InputError: The task is no text.
            ScopeError: The scope is missing.
        """
        self._parts()
        check_text(task=task)
        return self._context.in_mind.chunks((required(scope).partition(), task))

    achunks = twin(chunks)

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
        self._parts()
        check_text(chunk_id=chunk_id, task=task)
        return self._context.in_mind.rehearse((required(scope).partition(), task), chunk_id)

    arehearse = twin(rehearse)

    def end(self, task: str = "main", *, scope: Scope) -> int:
        """Say that a task is over: all that was in mind for it is gone. Returns how many chunks that were.

        Args:
            task: The task.
            scope: Which agent, and for whom.

        Raises:
            InputError: The task is no text.
            ScopeError: The scope is missing.
        """
        self._parts()
        check_text(task=task)
        return self._context.in_mind.end((required(scope).partition(), task))

    aend = twin(end)
