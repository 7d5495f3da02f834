"""remegraph as the memory of classic LangChain chains: a migration aid for `ConversationChain` and its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_classic.memory.chat_memory import BaseChatMemory
from langchain_classic.memory.utils import get_prompt_input_key
from langchain_core.messages import BaseMessage, HumanMessage, get_buffer_string
from pydantic import ConfigDict, Field, PrivateAttr

from remegraph import InputError, MemoryKit, Scope
from remegraph.adapters import MessageHistory, ScopeSource, resolve_scope

__all__ = ["ClassicMemory"]


class ClassicMemory(BaseChatMemory):
    """A `BaseMemory` over the kit: what is recalled for the newest input, then the last turns of the thread.

    What a chain says is recorded in the ledger. It becomes memory when the kit summarises it, like all that is said.
    `clear` hides the turns so far, as `MessageHistory` does; what was learned from them stays.

    Args:
        kit: The memory.
        scope: Whose memory; see `resolve_scope`.
        thread: The thread that turns are recorded in.
        options: The fields of this class: `memory_key`, `k`, `turns`, `return_messages`, `input_key`, `output_key`.
    """

    model_config = ConfigDict(extra="forbid")

    memory_key: str = Field(default="history", description="The variable that the prompt holds.")
    k: int = Field(default=5, ge=1, description="How many memories to recall.")
    turns: int = Field(default=5, ge=0, description="How many of the last turns to show.")

    _kit: MemoryKit = PrivateAttr()
    _scope: Scope | ScopeSource | None = PrivateAttr()

    def __init__(
        self, kit: MemoryKit, scope: Scope | ScopeSource | None = None, thread: str = "main", **options: Any
    ) -> None:
        super().__init__(chat_memory=MessageHistory(kit, scope, thread), **options)
        self._kit = kit
        self._scope = scope

    @property
    def memory_variables(self) -> list[str]:
        """The variable that this memory fills."""
        return [self.memory_key]

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return what is remembered, as text or as messages (`return_messages`).

        Args:
            inputs: The inputs of the chain. Where there are none, nothing is recalled: these are the last turns alone.

        Raises:
            InputError: Several inputs, and nothing says which one is the question.
        """
        question = self._question(inputs)
        recalled = self._kit.recall(question, scope=resolve_scope(self._scope), k=self.k).context if question else ""
        return self._shown(recalled, self.chat_memory.messages)

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return what is remembered; see `load_memory_variables`."""
        question = self._question(inputs)
        scope = resolve_scope(self._scope)
        recalled = (await self._kit.arecall(question, scope=scope, k=self.k)).context if question else ""
        return self._shown(recalled, await self.chat_memory.aget_messages())

    def _question(self, inputs: Mapping[str, Any]) -> str:
        if not inputs:
            return ""
        try:
            key = self.input_key or get_prompt_input_key(dict(inputs), self.memory_variables)
        except ValueError as error:
            raise InputError(
                f"{error}.", "Say which one is the question: ClassicMemory(..., input_key=...)."
            ) from error
        return str(inputs[key]).strip()

    def _shown(self, recalled: str, messages: Sequence[BaseMessage]) -> dict[str, Any]:
        """Return the variable: the recalled is said by nobody, and is framed as data."""
        last = messages[-2 * self.turns :] if self.turns else ()
        if self.return_messages:
            return {self.memory_key: [*([HumanMessage(recalled)] if recalled else ()), *last]}
        return {self.memory_key: "\n".join(part for part in (recalled, get_buffer_string(last)) if part)}
