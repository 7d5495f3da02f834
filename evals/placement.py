"""Where recalled memory stands in a host's prompt, and what a provider's cache serves of that prompt then.

    python -m evals placement [--page docs/benchmarks.md] [--turns 8]

The agent of `python -m evals turns` with a note of at most so many tokens as by default, placed in four ways: *kept*, as
the middleware does; *moving*: before the newest words, and gone on the next turn; *end*: after all messages of a call;
*system*: at the end of the system prompt. With tools (two a turn, 6,000 characters each) and without, by `invoke` and by
`ainvoke`. What is uncached is counted in two ways:

- implicit: what no call of the last five minutes began with, where it began with at least 1,024 tokens alike;
- marked: a host marks the end of its system prompt and its newest message, as LangChain's middleware for Anthropic does;
  found is what an earlier call was marked for, at most 20 messages back.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.messages import HumanMessage, SystemMessage

from evals._figures import Figure, block, finish
from evals._pages import how, place
from evals.turns import Prompt, beyond, estimated, notes, prompt
from remegraph import MemoryKit, Scope
from remegraph.adapters import MemoryMiddleware, inject, memory_tools
from remegraph.adapters.conversation_memory import ConversationMemory

__all__ = ["WAYS", "main", "marked"]

_LOOKS_BACK, _LEAST = 20, 1024

_Place = Callable[[ModelRequest[Any], str], ModelRequest[Any]]


class _Placed(AgentMiddleware[Any, Any, Any]):
    """Memory as by default, but for where it stands.

    Args:
        kit: The memory.
        scope: Whose.
        where: Puts a note into a request.
    """

    def __init__(self, kit: MemoryKit, scope: Scope, where: _Place) -> None:
        super().__init__()
        self._memory, self._where = ConversationMemory(kit, scope), where
        self.tools = memory_tools(kit, scope)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Show what is recalled, and nothing of earlier turns."""
        note = str(self._memory.recall(request.messages))
        return handler(self._where(request, note) if note else request)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Show what is recalled, and nothing of earlier turns."""
        note = str(await self._memory.arecall(request.messages))
        return await handler(self._where(request, note) if note else request)

    def after_agent(self, state: Any, runtime: Any) -> None:  # noqa: ARG002 - the base class names it
        """Capture what was said."""
        self._memory.capture(state["messages"])

    async def aafter_agent(self, state: Any, runtime: Any) -> None:  # noqa: ARG002
        """Capture what was said."""
        await self._memory.acapture(state["messages"])


def _moving(request: ModelRequest[Any], note: str) -> ModelRequest[Any]:
    return request.override(messages=inject(request.messages, note))


def _end(request: ModelRequest[Any], note: str) -> ModelRequest[Any]:
    return request.override(messages=[*request.messages, HumanMessage(note)])


def _system(request: ModelRequest[Any], note: str) -> ModelRequest[Any]:
    said = request.system_message.text if request.system_message else ""
    return request.override(system_message=SystemMessage(f"{said}\n{note}"))


WAYS: Mapping[str, Callable[[MemoryKit, Scope], Any]] = {
    "kept": MemoryMiddleware,
    "moving": lambda kit, scope: _Placed(kit, scope, _moving),
    "end": lambda kit, scope: _Placed(kit, scope, _end),
    "system": lambda kit, scope: _Placed(kit, scope, _system),
}


def marked(found: Prompt) -> int:
    """Return the tokens that no mark of an earlier call was good for.

    Args:
        found: What a host's model was sent; its calls follow each other within minutes.
    """
    known: set[tuple[str, ...]] = set()
    paid = 0
    for texts in found.texts:
        sizes = [*accumulate(map(estimated, texts), initial=found.tools)]
        ends = {1, *range(max(1, len(texts) - _LOOKS_BACK), len(texts) + 1)}
        served = max((sizes[end] for end in ends if texts[:end] in known and sizes[end] >= _LEAST), default=0)
        paid += sizes[-1] - served
        known |= {texts[:1], texts}
    return paid


def _rows(turns: int) -> Iterator[Figure]:
    for looks, waits in ((2, True), (2, False), (0, True)):
        bare = prompt(None, turns=turns, looks=looks, waits=waits)
        what = f"{'tools' if looks else 'no tools'}, {'invoke' if waits else 'ainvoke'}"
        for name, way in WAYS.items():
            found = prompt(way, turns=turns, looks=looks, waits=waits)
            more = {"implicit": beyond(bare, found), "marked": beyond(bare, found) + _dearer(bare, found)}
            once = sum(map(estimated, notes(bare, found)))
            note = (
                f"{found.uncached:,} paid implicit, {marked(found):,} marked, of {found.tokens:,}; notes {once:,} once"
            )
            for provider, figure in more.items():
                bar = 0 if name == "kept" else None
                yield Figure(f"{what}: {name}, {provider}", figure, bar, unit="tokens", note=note)


def _dearer(bare: Prompt, found: Prompt) -> int:
    """Return by how much more memory costs where a host marks what to cache."""
    return (marked(found) - marked(bare)) - (found.uncached - bare.uncached)


def main(argv: Sequence[str] | None = None) -> None:
    """Print all figures: uncached tokens beyond those of the agent without memory and each note and tool once."""
    parser = argparse.ArgumentParser(prog="python -m evals placement", description="Where memory stands in a prompt.")
    parser.add_argument("--turns", type=int, default=8, help="Turns of the conversation.")
    parser.add_argument("--page", type=Path, help="A page with places for the tables, as docs/benchmarks.md.")
    options = parser.parse_args(argv)
    figures = list(_rows(options.turns))
    place(options.page, {"placement how": how("placement", ["remegraph"]), "placement": block(figures)})
    finish(figures)


if __name__ == "__main__":
    main()
