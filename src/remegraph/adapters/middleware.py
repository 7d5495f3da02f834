"""The kit as middleware of LangChain's `create_agent`: recall, capture and tools by one argument."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import ToolMessage
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langgraph.channels import UntrackedValue
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command

from remegraph.adapters.conversation_memory import ConversationMemory, moment
from remegraph.adapters.notes import Note, Turn, inject, newest_words
from remegraph.adapters.scopes import MemoryMode, ScopeSource, memory_mode, resolve_scope, thread_of, usual_mode
from remegraph.adapters.tool_handler import ObservedCall, observed
from remegraph.adapters.tools import memory_tools
from remegraph.kit import MemoryKit
from remegraph.models import Scope

__all__ = ["MemoryMiddleware", "MemoryState"]

_BEGAN = "remegraph_began"

_UNDER_WAY = 1000
"""Runs that are kept in mind until they end; of those that never do, as when they are cancelled, the oldest go."""


class MemoryState(AgentState[Any]):
    """The agent's state, and where this run began: neither in input nor output, and never checkpointed."""

    remegraph_began: Annotated[NotRequired[dict[str, str]], UntrackedValue, PrivateStateAttr]
    """The checkpoint at which the run began, by the name of the middleware."""


class MemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Gives an agent memory: `create_agent(model, middleware=[MemoryMiddleware(kit)], context_schema=Scope)`.

    Before the run, memory follows edits and rewinds that the host made since. At its first model call, memory is recalled
    for the newest words of a person. Each model call gets it as a message of its own before these words: data, without
    the authority of the system prompt, and never part of the state. On later turns it stays in its place, without what
    was forgotten since, so a provider's prompt cache serves what was sent before. After the run, what was said is
    captured, as the hooks of the run left it; also what a crashed or interrupted run has left in the state. How tool calls
    go, and how long they take, is heard (`settings.tools.heard`). What fails is logged, counted and sent as an event, and
    the run goes on.

    An agent whose settings say `enabled=False` is neither captured nor recalled for; the tools stay, as they are what
    the agent does of its own accord.

    Args:
        kit: The memory.
        scope: Whose memory, or what all runs have in common; see `resolve_scope` for what a run may say.
        name: Name of this middleware; two memories in one agent need two.
        tools: Whether the agent gets `memory_tools`, too.
        memory: What a run may do that does not say it, by `memory` in its context or under `configurable`. on: recall and
            record; read: recall, and record or learn nothing; off: neither. What is said in a run that records nothing
            stays unrecorded in later runs of the thread.
    """

    state_schema = MemoryState

    def __init__(
        self,
        kit: MemoryKit,
        scope: Scope | ScopeSource | None = None,
        *,
        name: str = "MemoryMiddleware",
        tools: bool = True,
        memory: MemoryMode = "on",
    ) -> None:
        super().__init__()
        self._kit = kit
        self._scope = scope
        self._memory = ConversationMemory(kit, scope, memory=memory)
        self._usual = usual_mode(memory)
        self._name = name
        self._turns: dict[
            tuple[Scope, str, str], Turn
        ] = {}  # under way: whose, in which thread, since which checkpoint
        self.tools: Sequence[BaseTool] = memory_tools(kit, scope, memory=memory) if tools else []

    @property
    def name(self) -> str:
        """Name of this middleware."""
        return self._name

    def before_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any]:  # noqa: ARG002 - the base names it
        """Follow what the host changed."""
        return self._update(state, self._memory.capture(state["messages"], due=True))

    async def abefore_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any]:  # noqa: ARG002
        """Follow what the host changed."""
        return self._update(state, await self._memory.acapture(state["messages"], due=True))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model what is recalled."""
        resumed = self._of_run(request.state, _BEGAN) is None
        due = self._memory.capture(request.state["messages"], due=True) if resumed else None
        turn = self._note(request.state, due)
        note = self._memory.recall(request.messages, _known(turn, request))
        return handler(_shown(request, turn, note))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Show the model what is recalled."""
        resumed = self._of_run(request.state, _BEGAN) is None
        due = await self._memory.acapture(request.state["messages"], due=True) if resumed else None
        turn = self._note(request.state, due)
        note = await self._memory.arecall(request.messages, _known(turn, request))
        return await handler(_shown(request, turn, note))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Hear how a tool call goes."""
        self._note(request.state)
        call = self._call(request)
        if call is None:
            return handler(request)
        with observed(self._kit, call):
            call.output = output = handler(request)
        return output

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Hear how a tool call goes."""
        self._note(request.state)
        call = self._call(request)
        if call is None:
            return await handler(request)
        with observed(self._kit, call):
            call.output = output = await handler(request)
        return output

    def after_agent(self, state: MemoryState, runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Capture what was said, and note what it drew on."""
        self._memory.capture(**self._ended(state))

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Capture what was said, and note what it drew on."""
        await self._memory.acapture(**self._ended(state))

    def _call(self, request: ToolCallRequest) -> ObservedCall | None:
        """Return the call, if it is to be heard."""
        scope = resolve_scope(self._scope, runtime=request.runtime, config=request.runtime.config)
        settings = self._kit.settings
        mode = memory_mode(self._usual, runtime=request.runtime, config=request.runtime.config)
        if mode != "on" or not settings.tools.heard or not settings.for_agent(scope.agent).enabled:
            return None
        asked = request.tool_call
        return ObservedCall(scope, asked["name"], asked["args"], asked["id"] or "")

    def _update(self, state: Mapping[str, Any], due: Collection[str]) -> dict[str, Any]:
        """Return what is kept in mind of a run that begins."""
        kept = {_BEGAN: {**state.get(_BEGAN, {}), self._name: moment()}}
        self._note({**state, **kept}, due).recalled = None
        return kept

    def _of_run(self, state: Mapping[str, Any], key: str) -> str | None:
        """Return what is kept in mind of this run; none where it went on from a checkpoint, which does not hold it."""
        found: Mapping[str, str] = state.get(key, {})
        return found.get(self._name)

    def _note(self, state: Mapping[str, Any], due: Collection[str] | None = None) -> Turn:
        """Keep what is due in mind as it is now: others may take parts of it out of the state before the run is over.

        In the middle of a run that began in another process, what is due is unknown: then all of it may be.
        """
        name, messages = self._run(state), state["messages"]
        turn = self._turns.get(name)
        if turn is not None:
            turn.note(messages)
            return turn
        turn = self._turns[name] = Turn(messages, [message.id for message in messages] if due is None else due)
        for each in [*self._turns][:-_UNDER_WAY]:
            self._turns.pop(each, None)
        return turn

    def _run(self, state: Mapping[str, Any]) -> tuple[Scope, str, str]:
        """Return the name of the run at hand: where it went on from a checkpoint, of the last one of its thread."""
        scope, thread, began = resolve_scope(self._scope), thread_of(ensure_config()), self._of_run(state, _BEGAN)
        if began is None:
            return next((each for each in reversed([*self._turns]) if each[:2] == (scope, thread)), (scope, thread, ""))
        return scope, thread, began

    def _ended(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is captured of a run that is over, and what is known of it."""
        turn, messages = self._turns.pop(self._run(state), None), state["messages"]
        return {
            "messages": turn.within(messages) if turn else messages,
            "recalled": (turn.recalled if turn else None) or "",
            "began": self._of_run(state, _BEGAN) or "",
        }


def _known(turn: Turn, request: ModelRequest[Any]) -> Note | None:
    """Return what was recalled in this run for these words, which the host may have trimmed away since."""
    return turn.recalled if newest_words(request.messages) in {"", turn.asked} else None


def _shown(request: ModelRequest[Any], turn: Turn, note: Note) -> ModelRequest[Any]:
    asked = newest_words(request.messages) or turn.asked
    if note or asked != turn.asked:  # where it could not be checked now, it may be at the next call
        turn.recalled, turn.asked = note, asked
    return request.override(messages=inject(request.messages, note))
