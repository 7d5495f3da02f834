"""What node and middleware do: recall for the newest words, capture what was said; one body for sync and async."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config

from remegraph.adapters.events import emit
from remegraph.adapters.guarding import Unbroken
from remegraph.adapters.injecting import newest_answer, newest_words, previous_words, turns
from remegraph.adapters.scopes import ScopeSource, resolve_scope, run_id, thread_of
from remegraph.exchange.views import View
from remegraph.kit import MemoryKit
from remegraph.kit.calling import twin
from remegraph.models import Injection, Recall, Scope
from remegraph.rules.context import shown_ids
from remegraph.settings import RetrievalPolicy

__all__ = ["Remembering", "moment"]

_SENT = "__pregel_push"
"""How LangGraph marks a task that was sent a state of its own; and where it keeps the checkpointer. Both are its own
affair: should it name them otherwise, no rewind is told any more, and tests say so."""

_CHECKPOINTER = "__pregel_checkpointer"


class Remembering:
    """Memory for the run at hand: user, thread and settings are looked up at each call, so one object serves all runs.

    Args:
        kit: The memory.
        scope: Whose memory, or what all calls have in common; see `resolve_scope` for what a run may say.
        channel: The host's key of the conversation.
        level: How deep in the host's graph it is called: 1 in a node of it, 2 in a node that is a graph itself.
    """

    def __init__(
        self, kit: MemoryKit, scope: Scope | ScopeSource | None, *, channel: str = "messages", level: int = 1
    ) -> None:
        self._kit = kit
        self._scope = scope
        self._channel = channel
        self._level = level

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

    def capture(
        self, messages: Sequence[BaseMessage], recalled: str = "", *, due: bool = False, began: str = ""
    ) -> tuple[str, ...]:
        """Record what of the conversation is not recorded yet; also what a run that crashed or waited has left.

        Return the ids of messages that are still to be recorded.

        Where there is a new answer, the memories that it drew on are noted as used. While an answer is due, only what
        the host did to recorded messages is followed, unless the settings want words early.

        Args:
            messages: The whole conversation, as far as the host has it.
            recalled: What was recalled for the newest words of a person.
            due: Whether the answer is still to come.
            began: The checkpoint at which the run began, where that is known; see `moment`.

        Raises:
            ScopeError: Nobody says who the user is.
        """
        scope = resolve_scope(self._scope)
        with Unbroken(self._kit, "capture"):
            view = _view(ensure_config(), self._channel, self._level).evolve(due=due, began=began)
            captured = self._kit.capture(messages, scope=scope, thread=_thread(), view=view)
            if captured.added:
                emit({"event": "memory_captured", "added": captured.added})
            answer = newest_answer(messages)
            if captured.added and answer and recalled:
                self._kit.answered(answer, context=recalled, question=newest_words(messages), scope=scope)
            return captured.due
        return tuple(message.id for message in messages if message.id)

    acapture = twin(capture)

    def follow(self, messages: Sequence[BaseMessage]) -> None:
        """Follow what the host did to recorded messages, and record nothing.

        Args:
            messages: The whole conversation, as far as the host has it.

        Raises:
            ScopeError: Nobody says who the user is.
        """
        if not self._kit.settings.capture.early:
            self.capture(messages, due=True)


def moment() -> str:
    """Return the checkpoint that the run at hand has come to; nothing outside of any graph."""
    return _moment(ensure_config())


def _moment(config: RunnableConfig) -> str:
    checkpoints = config.get("configurable", {}).get("checkpoint_map")
    return str(checkpoints.get("", "")) if isinstance(checkpoints, Mapping) else ""


def _view(config: RunnableConfig, channel: str, level: int) -> View:
    """Return what the messages are to the host: its whole state only in the outermost graph, and with a checkpointer.

    A worker sees what it was sent. Without a checkpointer, a caller may hand over the newest messages only.
    """
    places, told = config.get("configurable", {}), config.get("metadata", {})
    checkpoints, path = places.get("checkpoint_map"), told.get("langgraph_path") or ("",)
    return View(
        whole=isinstance(checkpoints, Mapping)
        and len(checkpoints) == level
        and path[0] != _SENT
        and places.get(_CHECKPOINTER) is not None,
        channel=channel,
        moment=_moment(config),
        addressed=str(told.get("checkpoint_id") or ""),
    )


def _thread() -> str:
    """Return the thread of the run at hand; runs that name none are one conversation."""
    return thread_of(ensure_config()) or "main"
