"""How a tool of ours answers: in words that a model reads, also where the memory cannot do what it asks."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError

from remegraph.adapters.scopes import ScopeSource, resolve_scope
from remegraph.errors import InputError, RemegraphError, ScopeError
from remegraph.kit import MemoryKit
from remegraph.models import Scope
from remegraph.rules.context import RECALLED
from remegraph.telemetry import event

__all__ = ["NO_RUNTIME", "Answer", "MemoryId", "OfSomebody", "answered", "as_tool", "reply"]

_log = logging.getLogger(__name__)

NO_RUNTIME: Any = None
"""Stands for a runtime that is not injected: `ToolRuntime | None` has no JSON schema."""

Answer = str | ToolMessage
"""What a tool returns."""

MemoryId = Annotated[str, Field(description="The id of a memory, as search_memory gives it.")]
"""A memory, as a model names it."""


class OfSomebody:
    """What all tools know: the kit, and for whom a run calls.

    Args:
        kit: The memory.
        scope: Whose memory, or what all calls have in common.
    """

    def __init__(self, kit: MemoryKit, scope: Scope | ScopeSource | None) -> None:
        self._kit = kit
        self._scope = scope

    def _who(self, runtime: ToolRuntime[Any, Any] | None) -> Scope:
        return resolve_scope(self._scope, runtime=runtime, config=runtime.config if runtime else None)


def as_tool(name: str, run: Callable[..., Answer], arun: Callable[..., Awaitable[Answer]]) -> BaseTool:
    """Return a tool; what it is for, the model reads in the docstring.

    Args:
        name: Its name.
        run: What it does.
        arun: The same, awaited.
    """
    return StructuredTool.from_function(run, arun, name=name, handle_tool_error=True)


@contextmanager
def answered() -> Iterator[None]:
    """Turn what memory cannot do into an error that the model reads; the agent goes on."""
    try:
        yield
    except ScopeError:
        raise
    except InputError as error:  # what the model asked for cannot be done
        raise ToolException(str(error)) from error
    except RemegraphError as error:
        _log.warning("A memory tool failed: %s", error, extra=event("tool.failed", error))
        raise ToolException(str(error)) from error
    except SQLAlchemyError as error:
        _log.exception("The ledger failed under a memory tool", extra=event("tool.failed", error))
        raise ToolException("The memory cannot be reached at the moment; nothing can be relied on as saved.") from error


def reply(name: str, said: str, runtime: ToolRuntime[Any, Any] | None, recalled: Sequence[str] = ()) -> Answer:
    """Return the answer; where a message can be made, one that says which memories it shows (they were not said).

    Args:
        name: The tool.
        said: Its words.
        runtime: The runtime, if one was injected.
        recalled: Ids of the memories that the words show.
    """
    if runtime is None or not runtime.tool_call_id:
        return said
    marks = {RECALLED: list(recalled)} if recalled else {}
    return ToolMessage(said, name=name, tool_call_id=runtime.tool_call_id, additional_kwargs=marks)
