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

from remegraph.adapters.hearing import ToolCallHeard, heard
from remegraph.adapters.injecting import Turn, inject
from remegraph.adapters.remembering import Remembering, moment
from remegraph.adapters.scopes import ScopeSource, resolve_scope, thread_of
from remegraph.adapters.tools import memory_tools
from remegraph.kit import MemoryKit
from remegraph.models import Scope

__all__ = ["MemoryMiddleware", "MemoryState"]

_RECALLED, _BEGAN = "remegraph_recalled", "remegraph_began"

_UNDER_WAY = 1000
"""Runs that are kept in mind until they end; of those that never do, as when they are cancelled, the oldest go."""


class MemoryState(AgentState[Any]):
    """The agent's state, and what was recalled in this run: neither in input nor output, and never checkpointed."""

    remegraph_recalled: Annotated[NotRequired[dict[str, str]], UntrackedValue, PrivateStateAttr]
    """What is recalled, as text, by the name of the middleware."""

    remegraph_began: Annotated[NotRequired[dict[str, str]], UntrackedValue, PrivateStateAttr]
    """The checkpoint at which the run began, likewise."""


class MemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Gives an agent memory: `create_agent(model, middleware=[MemoryMiddleware(kit)], context_schema=Scope)`.

    Before the run, memory is recalled for the newest words of a person, and what the host edited or went back on since
    is followed. Each model call of the run gets it as a message of its own before these words: data, without the
    authority of the system prompt, and never part of the state. After the run, what was said is captured, as the hooks
    of the run left it; also what a crashed or interrupted run has left in the state. How tool calls go, and how long
    they take, is heard (`settings.tools.heard`). What fails is logged, counted and told as an event, and the run goes on.

    An agent whose settings say `enabled=False` is neither captured nor recalled for; the tools stay, as they are what
    the agent does of its own accord.

    Args:
        kit: The memory.
        scope: Whose memory, or what all runs have in common; see `resolve_scope` for what a run may say.
        name: Name of this middleware; two memories in one agent need two.
        tools: Whether the agent gets `memory_tools`, too.
    """

    state_schema = MemoryState

    def __init__(
        self,
        kit: MemoryKit,
        scope: Scope | ScopeSource | None = None,
        *,
        name: str = "MemoryMiddleware",
        tools: bool = True,
    ) -> None:
        super().__init__()
        self._kit = kit
        self._scope = scope
        self._memory = Remembering(kit, scope)
        self._name = name
        self._turns: dict[
            tuple[Scope, str, str], Turn
        ] = {}  # under way: whose, in which thread, since which checkpoint
        self.tools: Sequence[BaseTool] = memory_tools(kit, scope) if tools else []

    @property
    def name(self) -> str:
        """Name of this middleware."""
        return self._name

    def before_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any]:  # noqa: ARG002 - the base names it
        """Follow what the host changed, and recall for this run."""
        due = self._memory.capture(state["messages"], due=True)
        return self._update(state, self._memory.recall(state["messages"]), due)

    async def abefore_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any]:  # noqa: ARG002
        """Follow what the host changed, and recall for this run."""
        due = await self._memory.acapture(state["messages"], due=True)
        return self._update(state, await self._memory.arecall(state["messages"]), due)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model what was recalled."""
        memory, messages = self._of_run(request.state, _RECALLED), request.state["messages"]
        if memory is None:
            self._note(request.state, self._memory.capture(messages, due=True))
            memory = self._memory.recall(messages)
        self._note(request.state)
        return handler(_shown(request, memory))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Show the model what was recalled."""
        memory, messages = self._of_run(request.state, _RECALLED), request.state["messages"]
        if memory is None:
            self._note(request.state, await self._memory.acapture(messages, due=True))
            memory = await self._memory.arecall(messages)
        self._note(request.state)
        return await handler(_shown(request, memory))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Hear how a tool call goes."""
        self._note(request.state)
        call = self._call(request)
        if call is None:
            return handler(request)
        with heard(self._kit, call):
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
        with heard(self._kit, call):
            call.output = output = await handler(request)
        return output

    def after_agent(self, state: MemoryState, runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Capture what was said, and note what it drew on."""
        self._memory.capture(**self._ended(state))

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Capture what was said, and note what it drew on."""
        await self._memory.acapture(**self._ended(state))

    def _call(self, request: ToolCallRequest) -> ToolCallHeard | None:
        """Return the call, if it is to be heard."""
        scope = resolve_scope(self._scope, runtime=request.runtime, config=request.runtime.config)
        settings = self._kit.settings
        if not settings.tools.heard or not settings.for_agent(scope.agent).enabled:
            return None
        asked = request.tool_call
        return ToolCallHeard(scope, asked["name"], asked["args"], asked["id"] or "")

    def _update(self, state: Mapping[str, Any], memory: str, due: Collection[str]) -> dict[str, Any]:
        """Return what is kept in mind of a run that begins."""
        news = {_RECALLED: memory, _BEGAN: moment()}
        kept = {key: {**state.get(key, {}), self._name: value} for key, value in news.items()}
        self._note({**state, **kept}, due)
        return kept

    def _of_run(self, state: Mapping[str, Any], key: str) -> str | None:
        """Return what is kept in mind of this run; none where it went on from a checkpoint, which does not hold it."""
        found: Mapping[str, str] = state.get(key, {})
        return found.get(self._name)

    def _note(self, state: Mapping[str, Any], due: Collection[str] | None = None) -> None:
        """Keep what is due in mind as it is now: others may take parts of it out of the state before the run is over.

        In the middle of a run that began in another process, nobody says what is due: then all of it may be.
        """
        name, messages = self._run(state), state["messages"]
        if name in self._turns:
            self._turns[name].note(messages)
            return
        self._turns[name] = Turn(messages, [message.id for message in messages] if due is None else due)
        for each in [*self._turns][:-_UNDER_WAY]:
            self._turns.pop(each, None)

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
            "recalled": self._of_run(state, _RECALLED) or "",
            "began": self._of_run(state, _BEGAN) or "",
        }


def _shown(request: ModelRequest[Any], memory: str) -> ModelRequest[Any]:
    return request.override(messages=inject(request.messages, memory)) if memory else request
