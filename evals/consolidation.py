"""What long-term memories are worth that similar episodes were made into, and what is left when the episodes are gone.

    python -m evals consolidation --data locomo_dev.jsonl [--stores 5]

Each store is summarised without a model, asked its questions, consolidated, and asked again. Then every episode that a
long-term memory was made of is forgotten, and the questions are asked once more. *Degree* counts the live memories that
a long-term memory is linked with, where it came from aside; *isolated* has none, *untraceable* is one whose words or
blocks are not found again. A *quote* is a conclusion or condition with six words in a row from a message of the store.
*Still there*: asked for its own conclusion, recall returns it among the first ten, and its trace leads to its words.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from evals._figures import Figure, explain_data, finish
from evals._memories import SCOPE, evidence_recall, isolated, untraceable
from evals._peers import EMBEDDERS, embedder_of
from evals._records import Store
from evals._stores import stores
from remegraph import AgentMemorySettings, LifecyclePolicy, MemoryKit, Settings
from remegraph.models import Abstraction, Memory, Trace
from remegraph.ports import Embedder
from remegraph.rules.abstracting import repeats
from remegraph.testing import InMemoryVectorIndex

__all__ = ["Found", "consolidated", "figures", "main"]

_K = 10


@dataclass(slots=True)
class Found:
    """What became of some stores."""

    episodes: int = 0
    abstracted: int = 0
    sources: int = 0
    degrees: list[int] = field(default_factory=list)
    isolated: int = 0
    untraceable: int = 0
    quotes: int = 0
    again: int = 0
    """What a second run changed."""
    there: int = 0
    """Recalled and traced when the episodes are gone."""
    before: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    after: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    alone: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    """Shares of gold, by quotes and by blocks: before, after, and without the episodes."""


def consolidated(
    store: Store, embedder: Embedder, found: Found, timezone: str | None = None, policy: LifecyclePolicy | None = None
) -> None:
    """Consolidate a store and add up what became of it.

    Args:
        store: What is told and asked.
        embedder: The embedder.
        found: What became of the stores before.
        timezone: Zone of times that name none.
        policy: How alike episodes must be; the default unless given.
    """
    agent = AgentMemorySettings(lifecycle=policy or LifecyclePolicy())
    with (
        tempfile.TemporaryDirectory() as home,
        MemoryKit.open(
            settings=Settings(home=Path(home), agent=agent), model=None, embedder=embedder, index=InMemoryVectorIndex()
        ) as kit,
    ):
        kit.add_messages(store["messages"], scope=SCOPE, timezone=timezone)
        kit.summarize(scope=SCOPE, close=True)
        found.episodes += len(kit.memories(scope=SCOPE))
        _add(found.before, evidence_recall(store, kit, timezone))
        made = kit.consolidate(scope=SCOPE).made
        again = kit.consolidate(scope=SCOPE)
        found.again += len(again.made) + len(again.grown) + len(again.merged) + again.linked
        traces = [kit.trace(each.memory_id, scope=SCOPE) for each in _lasting(kit)]
        found.abstracted += len(made)
        found.degrees += [_degree(trace) for trace in traces]
        found.isolated += sum(map(isolated, traces))
        found.untraceable += sum(map(untraceable, traces))
        found.quotes += sum(_quotes(memory, store) for memory in made)
        _add(found.after, evidence_recall(store, kit, timezone))
        sources = {link.target_id for trace in traces for link in trace.links if link.type == "derived_from"}
        found.sources += len(sources)
        for source in sources:
            kit.forget(source, scope=SCOPE)
        found.there += sum(_still_there(kit, memory) for memory in made)
        _add(found.alone, evidence_recall(store, kit, timezone))


def _add(total: tuple[list[float], list[float]], more: tuple[list[float], list[float]]) -> None:
    for one, other in zip(total, more, strict=True):
        one.extend(other)


def _lasting(kit: MemoryKit) -> list[Memory]:
    return [memory for memory in kit.memories(scope=SCOPE) if memory.layer == "long_term" and memory.live]


def _degree(trace: Trace) -> int:
    ends = {end for link in trace.links if link.type != "derived_from" for end in (link.source_id, link.target_id)}
    return len(ends - {trace.memory.memory_id})


def _quotes(memory: Memory, store: Store) -> bool:
    abstraction = Abstraction.of(memory)
    conditions = abstraction.conditions if abstraction else ()
    return bool(repeats([memory.content, *conditions], [message["content"] for message in store["messages"]]))


def _still_there(kit: MemoryKit, memory: Memory) -> bool:
    hits = kit.recall(memory.content, scope=SCOPE, k=_K).memories
    return memory.memory_id in {hit.record_id for hit in hits}  # the words that it came from are withheld with them


def figures(found: Found) -> Iterator[Figure]:
    """Yield the figures with their bars.

    Args:
        found: What became of the stores.
    """
    note = f"of {found.episodes:,} memories, {found.sources:,} became sources"
    yield Figure("long-term memories made", found.abstracted, note=note)
    yield Figure("mean degree of long-term memories", float(np.mean(found.degrees)), 1, "over")
    yield Figure("isolated long-term memories", found.isolated, 0, "exactly", note=f"of {len(found.degrees):,}")
    yield Figure("untraceable long-term memories", found.untraceable, 0, "exactly")
    yield Figure("conclusions with a quote", found.quotes, 0, "exactly")
    yield Figure("changed by a second run", found.again, 0, "exactly")
    for number, name in enumerate(("quotes", "blocks")):
        before, after, alone = (float(np.mean(each[number])) for each in (found.before, found.after, found.alone))
        yield Figure(
            f"R@{_K} of memories, by their {name}, before", before, note=f"of {len(found.before[0]):,} questions"
        )
        yield Figure(f"R@{_K} of memories, by their {name}, consolidated", after, before, "at least")
        yield Figure(f"R@{_K} of memories, by their {name}, sources forgotten", alone)
    yield Figure("still there, sources forgotten", found.there, found.abstracted, "exactly")


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m evals consolidation", description="Long-term memories.")
    parser.add_argument("--data", type=Path, help="A file of stores.")
    parser.add_argument("--embedder", choices=EMBEDDERS, default="hashed", help="That of the kit.")
    parser.add_argument("--stores", type=int, default=3, help="The first so many of the file.")
    parser.add_argument("--likeness", type=float, default=LifecyclePolicy().cluster_likeness, help="Of episodes.")
    parser.add_argument("--timezone", help="Zone of times that name none.")
    options = parser.parse_args(argv)
    if options.data is None:
        explain_data("consolidation", "locomo_dev.jsonl")
        return
    found, policy = Found(), LifecyclePolicy(cluster_likeness=options.likeness)
    for store in islice(stores(options.data), options.stores):
        consolidated(store, embedder_of(options.embedder), found, options.timezone, policy)
    finish(list(figures(found)))


if __name__ == "__main__":
    main()
