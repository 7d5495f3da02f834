"""What memory adds to an agent's turn: latency of recall and capture, beside LangMem and mem0 in the same run.

    python -m evals turns [--turns 40] [--latency 0.2]      (`make bench-peers` installs the peers, apart from the rest)

One `create_agent` agent talks with one user, over several threads. The chat model is scripted and takes the same time
for every call, whoever calls it; embeddings are ours, for all. Each memory is used as its documentation shows: recall
before the answer, capture after it. Ours is `MemoryMiddleware`: the ledger write is in line, extraction is not.
A peer that is not installed is left out. Recall is the time of the hook before the answer, capture that of the hook
after it, the turn that of the whole call, less the median turn of the same agent without memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage

from evals._figures import Figure, finish
from evals._peers import AsLangChain
from remegraph import MemoryKit, Scope
from remegraph.adapters import MemoryMiddleware
from remegraph.kit.providers import as_embedder
from remegraph.testing import ModelCall, ScriptedChatModel

__all__ = ["SYSTEMS", "main", "measure"]

USER = "ann"
_THREADS = 4
_HOBBIES = ("hiking in Wales", "chess on Sundays", "green tea", "old maps", "jazz records", "baking rye bread")


@dataclass
class Times:
    """Seconds of each turn, and the model calls that memory made."""

    recall: list[float] = field(default_factory=list)
    capture: list[float] = field(default_factory=list)
    turn: list[float] = field(default_factory=list)
    calls: int = 0
    shown: int = 0
    """Turns whose model was shown something remembered."""

    @contextmanager
    def book(self, seconds: list[float]) -> Iterator[None]:
        """Book what the body takes."""
        began = time.perf_counter()
        yield
        seconds.append(time.perf_counter() - began)


class _PeerMiddleware(AgentMiddleware[Any, Any, Any], ABC):
    """A peer in the agent's loop: search before the answer, add after it, as their documentation shows."""

    def __init__(self, times: Times) -> None:
        super().__init__()
        self._times = times
        self._found = ""

    @abstractmethod
    def search(self, query: str) -> Sequence[str]:
        """Return what is remembered."""

    @abstractmethod
    def add(self, said: Sequence[dict[str, str]]) -> None:
        """Remember a turn."""

    def before_agent(self, state: Any, runtime: Any) -> None:  # noqa: ARG002 - the base class names it
        with self._times.book(self._times.recall):
            self._found = "\n".join(self.search(state["messages"][-1].text))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        self._times.shown += bool(self._found)
        return handler(request.override(system_prompt=f"You remember:\n{self._found}"))

    def after_agent(self, state: Any, runtime: Any) -> None:  # noqa: ARG002
        said = [{"role": _ROLES[each.type], "content": each.text} for each in state["messages"][-2:]]
        with self._times.book(self._times.capture):
            self.add(said)


_ROLES = {"human": "user", "ai": "assistant"}


class _LangMem(_PeerMiddleware):
    """LangMem's store manager on LangGraph's InMemoryStore."""

    def __init__(self, times: Times, model: ScriptedChatModel, embeddings: Embeddings) -> None:
        from langgraph.store.memory import InMemoryStore
        from langmem import create_memory_store_manager

        super().__init__(times)
        dims = len(embeddings.embed_query("dimension"))
        self._store = InMemoryStore(index={"embed": embeddings, "dims": dims})
        self._manager = create_memory_store_manager(
            model, store=self._store, namespace=("memories", "{langgraph_user_id}")
        )

    def search(self, query: str) -> Sequence[str]:
        return [item.value["content"]["content"] for item in self._store.search(("memories", USER), query=query)]

    def add(self, said: Sequence[dict[str, str]]) -> None:
        self._manager.invoke({"messages": list(said)}, {"configurable": {"langgraph_user_id": USER}})


class _Mem0(_PeerMiddleware):
    """mem0 with its default store, on disk."""

    def __init__(self, times: Times, model: ScriptedChatModel, embeddings: Embeddings, folder: Path) -> None:
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder))  # read when mem0 is imported
        from mem0 import Memory

        super().__init__(times)
        dims = len(embeddings.embed_query("dimension"))
        store = {"path": str(folder / "qdrant"), "embedding_model_dims": dims, "on_disk": True}
        self._memory = Memory.from_config(
            {
                "llm": {"provider": "langchain", "config": {"model": model}},
                "embedder": {"provider": "langchain", "config": {"model": embeddings}},
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def search(self, query: str) -> Sequence[str]:
        return [found["memory"] for found in self._memory.search(query, filters={"user_id": USER})["results"]]

    def add(self, said: Sequence[dict[str, str]]) -> None:
        self._memory.add(list(said), user_id=USER)


class _Ours(MemoryMiddleware):
    """Our middleware, timed."""

    def __init__(self, kit: MemoryKit, times: Times) -> None:
        super().__init__(kit, Scope(user=USER), tools=False)
        self._times = times

    def before_agent(self, state: Any, runtime: Any, *more: Any) -> Any:
        with self._times.book(self._times.recall):
            return super().before_agent(state, runtime, *more)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        def asked(changed: Any) -> Any:
            self._times.shown += len(changed.messages) > len(request.messages)
            return handler(changed)

        return super().wrap_model_call(request, asked)

    def after_agent(self, state: Any, runtime: Any, *more: Any) -> Any:
        with self._times.book(self._times.capture):
            return super().after_agent(state, runtime, *more)


def _memory_model(latency: float) -> ScriptedChatModel:
    """A model that finds one thing to remember in every turn, in the form that each memory asks for."""

    def statement(call: ModelCall) -> str:
        said = [line for line in call.text.splitlines() if "I love" in line]
        return (said[-1] if said else call.text[-80:]).partition("I love")[2].strip(' ."}') or "something"

    def langmem(call: ModelCall) -> AIMessage:
        args = {"content": f"Ann loves {statement(call)}"}
        return AIMessage("", tool_calls=[{"name": "Memory", "args": args, "id": "1"}])

    def mem0(call: ModelCall) -> AIMessage:
        found = {"id": "0", "text": f"Ann loves {statement(call)}", "attributed_to": "user"}
        return AIMessage(json.dumps({"memory": [found]}))

    def propose(call: ModelCall) -> dict[str, Any]:
        words = f"I love {statement(call)}"
        content = f"Ann loves {statement(call)}"
        return {"operations": [{"action": "CREATE", "content": content, "evidence": [{"n": 1, "quote": words}]}]}

    digest = {"summary": "Ann talks about what she loves.", "entities": [], "topics": [f"personal:{USER}"]}
    script = {
        "DigestAnswer": digest,
        "ProposalAnswer": propose,
        "VerdictAnswer": {"objections": []},
        "Memory": langmem,
        "PatchDoc": langmem,
        "": mem0,
    }
    return ScriptedChatModel(script=script, latency=latency)


def _talk(agent: Any, times: Times, turns: int) -> None:
    for number in range(turns):
        words = f"I love {_HOBBIES[number % len(_HOBBIES)]} more than anything, as of day {number}."
        config = {"configurable": {"thread_id": f"thread {number % _THREADS}"}}
        with times.book(times.turn):
            agent.invoke({"messages": [("user", words)]}, config)


def _agent(latency: float, middleware: Sequence[Any] = ()) -> Any:
    model = ScriptedChatModel(script={"": lambda _: AIMessage("How nice.")}, latency=latency)  # a new message each time
    return create_agent(model, middleware=middleware)


def _none(turns: int, latency: float, folder: Path) -> Times:  # noqa: ARG001 - all systems are called alike
    times = Times()
    _talk(_agent(latency), times, turns)
    return times


def _ours(turns: int, latency: float, folder: Path) -> Times:
    times, model = Times(), _memory_model(latency)
    with MemoryKit.open(folder, model=model, embedder=None) as kit:
        _talk(_agent(latency, [_Ours(kit, times)]), times, turns)
        kit.drain()
    times.calls = len(model.calls)
    return times


def _langmem(turns: int, latency: float, folder: Path) -> Times:  # noqa: ARG001
    times, model = Times(), _memory_model(latency)
    _talk(_agent(latency, [_LangMem(times, model, AsLangChain(as_embedder(None)))]), times, turns)
    times.calls = len(model.calls)
    return times


def _mem0(turns: int, latency: float, folder: Path) -> Times:
    times, model = Times(), _memory_model(latency)
    _talk(_agent(latency, [_Mem0(times, model, AsLangChain(as_embedder(None)), folder)]), times, turns)
    times.calls = len(model.calls)
    return times


@dataclass(frozen=True)
class System:
    """One memory, and the package that it needs."""

    run: Callable[[int, float, Path], Times]
    package: str = ""


SYSTEMS = {
    "none": System(_none),
    "remegraph": System(_ours),
    "langmem": System(_langmem, "langmem"),
    "mem0": System(_mem0, "mem0"),
}


def measure(system: System, turns: int, latency: float) -> Times:
    """Talk for some turns; the first, which warms up, is not in the times.

    Args:
        system: Which memory.
        turns: How many turns are measured.
        latency: Seconds that a model call takes.
    """
    with tempfile.TemporaryDirectory() as folder:
        times = system.run(turns + 1, latency, Path(folder))
    return Times(times.recall[1:], times.capture[1:], times.turn[1:], times.calls, times.shown)


def _percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    return statistics.median(seconds), float(np.percentile(seconds, 95))


def main(argv: Sequence[str] | None = None) -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="python -m evals turns", description="What memory adds to a turn.")
    parser.add_argument("--turns", type=int, default=40, help="Turns of each agent, beside the one that warms up.")
    parser.add_argument("--latency", type=float, default=0.2, help="Seconds that a model call takes.")
    options = parser.parse_args(argv)
    found: dict[str, Times] = {}
    for name, system in SYSTEMS.items():
        if system.package and find_spec(system.package) is None:
            print(f"{name} is not installed: left out. `make bench-peers` installs it.")
        else:
            found[name] = measure(system, options.turns, options.latency)
    bare = statistics.median(found.pop("none").turn)
    figures: list[Figure] = []
    worst: dict[str, float] = {}
    for name, times in found.items():
        parts = {"recall": times.recall, "capture": times.capture, "turn": [each - bare for each in times.turn]}
        for part, seconds in parts.items():
            p50, p95 = (each * 1000 for each in _percentiles(seconds))
            figures += [Figure(f"{name}: {part} p50", p50, unit="ms"), Figure(f"{name}: {part} p95", p95, unit="ms")]
        worst[name] = _percentiles(parts["turn"])[1]
        note = "in the background" if name == "remegraph" else "before the turn ends"
        figures.append(Figure(f"{name}: model calls of memory", times.calls / (options.turns + 1), note=note))
    for name in worst.keys() - {"remegraph"}:
        ratio = worst["remegraph"] / worst[name]
        figures.append(Figure(f"added to a turn, p95: remegraph / {name}", ratio, 1.0, "under"))
    finish(figures)


if __name__ == "__main__":
    main()
