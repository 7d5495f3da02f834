"""The ledger as a LangChain chat message history, for chains that still use one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, messages_from_dict

from remegraph.adapters.scopes import ScopeSource, resolve_scope
from remegraph.exchange.chat import to_langchain_dict
from remegraph.kit import MemoryKit
from remegraph.kit.calling import twin
from remegraph.models import Scope

__all__ = ["MessageHistory"]

_CLEARED = "remegraph_cleared"
"""Key in `Message.extra` of the empty message that `clear` records."""


class MessageHistory(BaseChatMessageHistory):
    """The messages of one thread, in the ledger: durable, lossless, and summarised like all others.

    `clear` deletes nothing. It records a mark, and what stands before the mark is not shown any more; it stays in the
    ledger, and so do the memories made from it.

    Args:
        kit: The memory.
        scope: Whose thread, or what all calls have in common; see `resolve_scope` for what a run may say.
        thread: The thread.
    """

    def __init__(self, kit: MemoryKit, scope: Scope | ScopeSource | None = None, thread: str = "main") -> None:
        super().__init__()
        self._kit = kit
        self._scope = scope
        self._thread = thread

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # the base class declares a plain attribute
        """The messages, oldest first."""
        return self._shown()

    async def aget_messages(self) -> list[BaseMessage]:
        """Return the messages, oldest first."""
        return await self._ashown()

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Record messages, all or none; they are durable once this returns. A known id with the same content is skipped.

        Args:
            messages: What was said.
        """
        if messages:
            self._kit.add_messages(messages, scope=resolve_scope(self._scope), thread=self._thread)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Record messages; see `add_messages`."""
        if messages:
            await self._kit.aadd_messages(messages, scope=resolve_scope(self._scope), thread=self._thread)

    def clear(self) -> None:
        """Show nothing of what was said so far; see the class."""
        self._kit.add_messages([_mark()], scope=resolve_scope(self._scope), thread=self._thread)

    async def aclear(self) -> None:
        """Show nothing of what was said so far; see the class."""
        await self._kit.aadd_messages([_mark()], scope=resolve_scope(self._scope), thread=self._thread)

    def _shown(self) -> list[BaseMessage]:
        """Return what was said since the last mark, with the bytes of its attachments and of no others."""
        scope = resolve_scope(self._scope)
        stored = self._kit.messages(self._thread, scope=scope)
        marks = [number for number, message in enumerate(stored, start=1) if _CLEARED in message.extra]
        since = self._kit.with_attachments(stored[marks[-1] if marks else 0 :], scope=scope)
        return messages_from_dict([to_langchain_dict(message) for message in since])

    _ashown = twin(_shown)


def _mark() -> Mapping[str, object]:
    return {"role": "system", "content": "", "extra": {_CLEARED: True}}
