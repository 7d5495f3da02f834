"""How a tool of ours answers, in words that a model reads, and checks of what a model gave it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import ArgsSchema, BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from pydantic import BaseModel, Field, ValidationError
from sqlalchemy.exc import SQLAlchemyError

from remegraph.adapters.scopes import MemoryMode, ScopeSource, check_surface, memory_mode, resolve_scope, usual_mode
from remegraph.engine.frame import RECALLED
from remegraph.errors import ConflictError, InputError, LimitError, RemegraphError, ScopeError
from remegraph.kit import MemoryKit
from remegraph.kit.health import log_refusal
from remegraph.models import Injection, Recall, Scope
from remegraph.telemetry import event

__all__ = [
    "NO_RUNTIME",
    "Answer",
    "MemoryId",
    "ScopedTools",
    "answered",
    "as_tool",
    "checked_arguments",
    "ids_in",
    "reply",
]

_log = logging.getLogger(__name__)

NO_RUNTIME: Any = None
"""Default for a runtime that is not injected: `ToolRuntime | None` has no JSON schema."""

Answer = str | ToolMessage
"""Result of a tool."""

MemoryId = Annotated[str, Field(description="The id of a memory, as search_memory gives it.")]
"""A memory, as a model names it."""


class ScopedTools:
    """Base of all tools: the kit, and the scope of a run.

    Args:
        kit: The memory.
        scope: Whose memory, or what all calls have in common.
        memory: What runs that say nothing of it may do: see `memory_mode`.
    """

    def __init__(self, kit: MemoryKit, scope: Scope | ScopeSource | None, memory: MemoryMode = "on") -> None:
        check_surface(kit, scope)
        self._kit = kit
        self._scope = scope
        self._usual = usual_mode(memory)

    def _who(self, runtime: ToolRuntime[Any, Any] | None, *modes: MemoryMode) -> Scope:
        """Return who calls.

        Args:
            runtime: Of the call.
            modes: In which modes of memory this may be done; on and read unless given.

        Raises:
            InputError: The run is in another.
        """
        if self._mode(runtime) not in (modes or ("on", "read")):
            raise InputError("This conversation is off the record.", "Go on without memory; nothing of it is kept.")
        return resolve_scope(self._scope, runtime=runtime, config=runtime.config if runtime else None)

    def _mode(self, runtime: ToolRuntime[Any, Any] | None) -> MemoryMode:
        return memory_mode(self._usual, runtime=runtime, config=runtime.config if runtime else None)


_SCHEMAS: dict[object, ArgsSchema | None] = {}
"""Argument schemas of the tools, by function: building them took most of the time of making a middleware."""


def as_tool(name: str, run: Callable[..., Answer], arun: Callable[..., Awaitable[Answer]]) -> BaseTool:
    """Return a tool; what it is for, the model reads in the docstring."""
    function = getattr(run, "__func__", run)
    tool = StructuredTool.from_function(
        run, arun, name=name, args_schema=_SCHEMAS.get(function), handle_tool_error=True
    )
    _SCHEMAS[function] = tool.args_schema
    return tool


@contextmanager
def answered() -> Iterator[None]:
    """Turn what memory cannot do into an error that the model reads; the agent goes on.

    Where the cure is an operator's, the log has it: a model that reads a command may carry it out.
    """
    try:
        yield
    except ScopeError:
        raise
    except (InputError, ConflictError) as error:  # what the model asked for cannot be done
        raise ToolException(str(error)) from error
    except LimitError as error:
        log_refusal("tool", error)
        raise ToolException(str(error)) from error
    except RemegraphError as error:
        _log.warning("A memory tool failed: %s", error, extra=event("tool.failed", error))
        raise ToolException(
            f"{error.what} Nothing can be relied on as saved; whoever runs this memory finds in its log what to do."
        ) from error
    except SQLAlchemyError as error:
        _log.exception("The ledger failed under a memory tool", extra=event("tool.failed", error))
        raise ToolException("The memory cannot be reached at the moment; nothing can be relied on as saved.") from error


def ids_in(found: Recall | Injection) -> list[str]:
    """Return the ids of what a context shows."""
    if isinstance(found, Injection):
        return list(found.ids)
    ids = [memory.memory_id for memory in (*found.self_memories, *found.active)]
    ids += [hit.record_id for hit in (*found.memories, *found.blocks, *found.messages, *found.beside)]
    return [each for each in dict.fromkeys(ids) if each not in found.left_out]


def reply(name: str, said: str, runtime: ToolRuntime[Any, Any] | None, recalled: Sequence[str] = ()) -> Answer:
    """Return the answer; where a message can be made, one that says which memories it shows (they were not said)."""
    if runtime is None or not runtime.tool_call_id:
        return said
    marks = {RECALLED: list(recalled)} if recalled else {}
    return ToolMessage(said, name=name, tool_call_id=runtime.tool_call_id, additional_kwargs=marks)


def checked_arguments(tool: BaseTool, given: object) -> dict[str, object]:
    """Return the arguments of a call, which are those of the tool's schema and no others.

    Args:
        tool: What is called.
        given: What the model gave, read as JSON.

    Raises:
        InputError: They do not fit; says how, for the model.
    """
    if not isinstance(given, Mapping):
        raise InputError(f"Its arguments must be one JSON object, not {type(given).__name__}.")
    if unknown := sorted(given.keys() - tool.args.keys()):  # nor may a model give what only a run injects
        raise InputError(f"It takes no {', '.join(unknown)}, only {', '.join(tool.args) or 'nothing'}.")
    schema = cast("type[BaseModel]", tool.tool_call_schema)
    try:
        schema.model_validate(given)
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False))
        raise InputError(f"Its arguments do not fit: {'; '.join(faults)}.") from error
    return dict(given)
