"""What memories made without a model are worth: what they lead to, and whether any stands alone.

A memory answers a question where one of the messages that it came from does: those that it quotes, or those of its
blocks. *Isolated* is one that no link ties to another memory (where it came from is no tie), *untraceable* one whose
words or blocks are not found again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from evals import _metrics
from evals._figures import Figure
from evals._rankers import asked_at
from evals._records import Store
from remegraph import MemoryKit, Scope, Settings
from remegraph.models import Hit, Trace
from remegraph.ports import Embedder

__all__ = ["SCOPE", "evidence_recall", "isolated", "remembered", "untraceable"]

SCOPE = Scope(user="ann", agent="remy")
_K = 10


def remembered(name: str, store: Store, embedder: Embedder, timezone: str | None = None) -> Iterator[Figure]:
    """Summarise a store without a model, and yield what its memories are worth.

    Args:
        name: What the figures are called.
        store: What is told.
        embedder: The embedder.
        timezone: Zone of times that name none.
    """
    with (
        tempfile.TemporaryDirectory() as home,
        MemoryKit.open(settings=Settings(home=Path(home)), model=None, embedder=embedder) as kit,
    ):
        kit.add_messages(store["messages"], scope=SCOPE, timezone=timezone)
        kit.summarize(scope=SCOPE, close=True)
        traces = [kit.trace(memory.memory_id, scope=SCOPE) for memory in kit.memories(scope=SCOPE)]
        yield from _counts(name, traces)
        yield from _recall(name, store, kit, timezone)


def _counts(name: str, traces: list[Trace]) -> Iterator[Figure]:
    note = f"of {len(traces):,} memories"
    yield Figure(f"{name}: isolated memories", sum(map(isolated, traces)), note=note)
    yield Figure(f"{name}: untraceable memories", sum(map(untraceable, traces)), note=note)


def isolated(trace: Trace) -> bool:
    """Return whether no link ties a memory to another one."""
    return not any(link.type != "derived_from" and link.source_id != link.target_id for link in trace.links)


def untraceable(trace: Trace) -> bool:
    """Return whether a memory came from nowhere, or from where nothing is any more."""
    return bool(trace.missing) or not trace.quotes


def evidence_recall(store: Store, kit: MemoryKit, timezone: str | None = None) -> tuple[list[float], list[float]]:
    """Return the share of each question's gold that the first memories lead to: by what they quote, by their blocks.

    Args:
        store: What was told, and is asked.
        kit: Holds its memories.
        timezone: Zone of times that name none.
    """
    unit_of = {message["id"]: message["id"] for message in store["messages"]}
    if store.get("gold_unit") == "thread":
        unit_of = {message["id"]: message["thread"] for message in store["messages"]}
    blocks = {
        entry.block_id: [message.message_id for message in kit.sources.retrieve_block(entry.block_id, scope=SCOPE)]
        for entry in kit.sources.blocks(scope=SCOPE)
    }
    quoted: list[float] = []
    within: list[float] = []
    for question in store["questions"]:
        at = asked_at(store["messages"], timezone, question.get("time"))
        hits = kit.recall(question["text"], scope=SCOPE, k=_K, asked_at=at).memories[:_K]
        words = {unit_of[each.message_id] for hit in hits for each in hit.evidence}
        around = {unit_of[each] for hit in hits for each in _of_blocks(hit, blocks)}
        quoted.append(_metrics.recall(sorted(words), question["gold"], len(words)))
        within.append(_metrics.recall(sorted(words | around), question["gold"], len(words | around)))
    return quoted, within


def _recall(name: str, store: Store, kit: MemoryKit, timezone: str | None) -> Iterator[Figure]:
    quoted, within = evidence_recall(store, kit, timezone)
    note = f"of {len(quoted)} questions"
    yield Figure(f"{name}: R@{_K} of memories, by their quotes", float(np.mean(quoted)), note=note)
    yield Figure(f"{name}: R@{_K} of memories, by their blocks", float(np.mean(within)), note=note)


def _of_blocks(hit: Hit, blocks: dict[str, list[str]]) -> Iterator[str]:
    for block_id in hit.block_ids:
        yield from blocks[block_id]
