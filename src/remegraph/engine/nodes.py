"""Nodes of the graphs: one body for sync and async, and what the error of a provider's client means.

A node's body is a generator. It reads the ledger, yields a `Think` request, receives the result (or
the error, thrown in), and returns the state's update. The sync driver calls the thinker; the async one awaits it, and runs the
body itself in a thread so that SQL never blocks the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.exceptions import ContextOverflowError, ModelInvalidRequestError
from langchain_core.runnables import Runnable, RunnableLambda

from remegraph.errors import ModelUnavailableError, RemegraphError, RequestRefusedError
from remegraph.text.desensitization import masked

if TYPE_CHECKING:
    # the retriever shares this module, and does not need its rules
    from remegraph.engine.summary_tasks import Meter, Thinker, Verb

__all__ = ["Body", "Think", "Update", "error_text", "node", "provider_failure"]

S = TypeVar("S")

Update = dict[str, Any]
"""A state update, as LangGraph takes it."""

Body = Generator["Think", Any, Update]


@dataclass(frozen=True, slots=True)
class Think:
    """A request of a node's body to its thinker."""

    thinker: Thinker
    verb: Verb
    task: Any
    meter: Meter


@dataclass(frozen=True, slots=True)
class _Done:
    update: Update


class _Node(RunnableLambda[S, Update]):
    """A node that holds no graph.

    LangChain looks for graphs in what a function closes over, and remembers the last 256 functions that it looked at:
    with them it would hold kits that are long closed.
    """

    @cached_property
    def deps(self) -> list[Runnable[Any, Any]]:
        """None."""
        return []


def node(
    body: Callable[[S], Body], name: str, session: Callable[[], AbstractContextManager[None]] = nullcontext
) -> RunnableLambda[S, Update]:
    """Return a graph node, sync and async, that runs this body, in ledger sessions that end before each thinker call."""
    advance = partial(_go_on, session)

    def call(state: S) -> Update:
        run = body(state)
        step = advance(run, None, None)
        while isinstance(step, Think):
            try:
                answer = getattr(step.thinker, step.verb)(step.task, step.meter)
            except RemegraphError as error:
                step = advance(run, None, error)
            else:
                step = advance(run, answer, None)
        return step.update

    async def acall(state: S) -> Update:
        run = body(state)
        step = await asyncio.to_thread(advance, run, None, None)
        while isinstance(step, Think):
            try:
                answer = await step.thinker.athink(step.verb, step.task, step.meter)
            except RemegraphError as error:
                step = await asyncio.to_thread(advance, run, None, error)
            else:
                step = await asyncio.to_thread(advance, run, answer, None)
        return step.update

    return _Node(call, acall, name=name)


def _go_on(
    session: Callable[[], AbstractContextManager[None]], run: Body, answer: object, error: RemegraphError | None
) -> Think | _Done:
    """Advance to the body's next request or its end: StopIteration must not cross into a thread's future."""
    try:
        with session():
            return run.throw(error) if error else run.send(answer)
    except StopIteration as end:
        return _Done(end.value)


_LONGEST = 600
"""Characters of a provider's error that are passed on."""


_REFUSALS = (ModelInvalidRequestError, ContextOverflowError)


_REFUSING = frozenset({400, 413, 422})
"""Invalid, too large, not to be processed: the same request gets the same answer. 401 and 403 last until the key changes."""


def provider_failure(name: str, error: Exception) -> ModelUnavailableError | RequestRefusedError:
    """Return our error for one raised by a model's or an embedder's client."""
    if isinstance(error, _REFUSALS) or _status(error) in _REFUSING:
        return RequestRefusedError(f"{name} refused the request ({error_text(error)}).")
    return ModelUnavailableError(f"{name} did not answer ({error_text(error)}).")


def error_text(error: Exception) -> str:
    """Return what an error says, shortened and without keys and passwords.

    Some errors repeat the whole request.
    """
    text = f"{type(error).__name__}: {error}"
    return masked(text[: 2 * _LONGEST])[:_LONGEST]  # a key that the end cuts in two would no longer look like one


def _status(error: Exception) -> object:
    """Return the HTTP status, which clients keep on the error or on its response; None if neither has it."""
    own = getattr(error, "status_code", None)
    return own if isinstance(own, int) else getattr(getattr(error, "response", None), "status_code", None)
