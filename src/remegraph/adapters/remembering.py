"""What node and middleware do: recall for the newest words, capture what was said; one body for sync and async."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import ensure_config

from remegraph.adapters.events import emit
from remegraph.adapters.guarding import Unbroken
from remegraph.adapters.injecting import newest_answer, newest_words, previous_words, turns
from remegraph.adapters.scopes import ScopeSource, resolve_scope, run_id, thread_of
from remegraph.kit import MemoryKit
from remegraph.kit.calling import twin
from remegraph.models import Injection, Recall, Scope
from remegraph.rules.context import shown_ids
from remegraph.settings import RetrievalPolicy

__all__ = ["Remembering"]


class Remembering:
    """Memory for the run at hand: user, thread and settings are looked up at each call, so one object serves all runs.

    Args:
        kit: The memory.
        scope: Whose memory, or what all calls have in common; see `resolve_scope` for what a run may say.
    """

    def __init__(self, kit: MemoryKit, scope: Scope | ScopeSource | None) -> None:
        self._kit = kit
        self._scope = scope

    def recall(self, messages: Sequence[BaseMessage]) -> str:
        """Return what bears on the newest words of a person, as data for a prompt; nothing where nothing does.

        What is in mind for the task that is called like the thread comes first.

        Args:
            messages: The conversation.

        Raises:
            ScopeError: Nobody says who the user is.
        """
        scope = resolve_scope(self._scope)
        settings = self._kit.settings.for_agent(scope.agent)
        words = newest_words(messages)
        if not settings.enabled or not words:
            return ""
        with Unbroken(self._kit, "recall"):
            found = self._found(words, messages, scope, settings.retrieval)
            self._kit.governance.injected(
                found, scope=scope, thread=_thread(), turn=turns(messages), run_id=run_id(ensure_config())
            )
            ids = shown_ids(found.context)
            milliseconds = round(1000 * found.seconds, 3)
            emit({"event": "memory_recalled", "ids": ids, "degraded": [*found.degraded], "ms": milliseconds})
            return found.context
        return ""

    arecall = twin(recall)

    def _found(
        self, words: str, messages: Sequence[BaseMessage], scope: Scope, wanted: RetrievalPolicy
    ) -> Recall | Injection:
        here = {message.id for message in messages if message.id}
        previous, task = previous_words(messages), _thread()
        if wanted.injection == "recall":
            return self._kit.recall(
                words, scope=scope, k=wanted.k, depth=wanted.depth, without=here, previous=previous, task=task
            )
        return self._kit.inject(
            words,
            scope=scope,
            turn=turns(messages),
            workspace=wanted.workspace,
            depth=wanted.depth,
            without=here,
            previous=previous,
            task=task,
        )

    def capture(self, messages: Sequence[BaseMessage], recalled: str = "") -> None:
        """Record what of the conversation is not recorded yet; also what a run that crashed or waits has left.

        Where there is a new answer, the memories that it drew on are noted as used.

        Args:
            messages: The whole conversation, as far as the host has it.
            recalled: What was recalled for the newest words of a person.

        Raises:
            ScopeError: Nobody says who the user is.
        """
        scope = resolve_scope(self._scope)
        with Unbroken(self._kit, "capture"):
            captured = self._kit.capture(messages, scope=scope, thread=_thread())
            if captured.added:
                emit({"event": "memory_captured", "added": captured.added})
            answer = newest_answer(messages)
            if captured.added and answer and recalled:
                self._kit.answered(answer, context=recalled, question=newest_words(messages), scope=scope)

    acapture = twin(capture)


def _thread() -> str:
    """Return the thread of the run at hand; runs that name none are one conversation."""
    return thread_of(ensure_config()) or "main"
