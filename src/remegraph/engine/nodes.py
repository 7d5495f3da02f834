"""One body for sync and async: a node is a generator that yields what it wants thought.

The body reads the ledger, yields a `Think`, receives the result (or the error, thrown in), and returns the
state's update. The sync driver calls the thinker; the async one awaits it, and runs the body itself in a
thread so that SQL never blocks the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from langchain_core.runnables import Runnable, RunnableLambda

from remegraph.engine.metering import Meter
from remegraph.errors import RemegraphError

if TYPE_CHECKING:
    from remegraph.engine.tasks import Thinker  # the retriever shares this module, and needs none of its rules

__all__ = ["Body", "Think", "Update", "node"]

S = TypeVar("S")

Update = dict[str, Any]
"""A state update, as LangGraph takes it."""

Body = Generator["Think", Any, Update]


@dataclass(frozen=True, slots=True)
class Think:
    """A request of a node's body to its thinker."""

    thinker: Thinker
    verb: Literal["describe", "digest", "propose", "review", "guide"]
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


def node(body: Callable[[S], Body], name: str) -> RunnableLambda[S, Update]:
    """Return a graph node, sync and async, that runs this body.

    Args:
        body: The generator function.
        name: Name of the node, for traces.
    """

    def call(state: S) -> Update:
        run = body(state)
        step = _advance(run, None, None)
        while isinstance(step, Think):
            try:
                answer = getattr(step.thinker, step.verb)(step.task, step.meter)
            except RemegraphError as error:
                step = _advance(run, None, error)
            else:
                step = _advance(run, answer, None)
        return step.update

    async def acall(state: S) -> Update:
        run = body(state)
        step = await asyncio.to_thread(_advance, run, None, None)
        while isinstance(step, Think):
            try:
                answer = await getattr(step.thinker, f"a{step.verb}")(step.task, step.meter)
            except RemegraphError as error:
                step = await asyncio.to_thread(_advance, run, None, error)
            else:
                step = await asyncio.to_thread(_advance, run, answer, None)
        return step.update

    return _Node(call, acall, name=name)


def _advance(run: Body, answer: object, error: RemegraphError | None) -> Think | _Done:
    """Go on to the body's next request or its end: StopIteration must not cross into a thread's future."""
    try:
        return run.throw(error) if error else run.send(answer)
    except StopIteration as end:
        return _Done(end.value)
