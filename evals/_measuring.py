"""The one way in which memories are measured: told the same messages, asked the same questions, counted alike."""

from __future__ import annotations

import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from evals._peers import PeerKind
from evals._records import Question, Store, said
from evals._results import Result, row_of
from evals._stores import stores
from remegraph.language.tokens import estimate_tokens
from remegraph.ports import Embedder

__all__ = ["compare", "measure", "sample"]

_KEYS: dict[str, Literal["id", "thread"]] = {"message": "id", "thread": "thread"}
"""Where a message says what it is counted as."""

_DEPTH = {"message": 50, "thread": 100}
"""Messages that every memory is asked for, by what counts: several may be of one thread."""


def sample(questions: Sequence[Question], size: int | None) -> list[Question]:
    """Return so many of the questions, the same in every run, in their order; all of them for none."""
    if size is None or size >= len(questions):
        return list(questions)
    chosen = sorted(random.Random(7).sample(range(len(questions)), size))
    return [questions[at] for at in chosen]


def measure(store: Store, kind: PeerKind, embedder: Embedder, questions: Sequence[Question], result: Result) -> None:
    """Tell a memory the messages of a store, ask the questions, and add what it finds to the result."""
    thread_of = {message["id"]: message["thread"] for message in store["messages"]}
    unit = store.get("gold_unit", "message")
    tokens: dict[str, int] = defaultdict(int)
    for message in store["messages"]:
        tokens[message[_KEYS[unit]]] += estimate_tokens(said(message))
    with tempfile.TemporaryDirectory() as folder:
        peer = kind.make(embedder, Path(folder))
        try:
            peer.add(store["messages"])
            for question in questions:
                began = time.process_time()  # a busy machine makes nobody slower
                found = peer.ask(question, _DEPTH[unit])
                seconds = time.process_time() - began
                units = found if unit == "message" else list(dict.fromkeys(thread_of[each] for each in found))
                result.rows.append(row_of(store["store"], question, units, tokens, seconds))
        finally:
            peer.close()


def compare(
    path: Path, kinds: Mapping[str, PeerKind], embedder: Embedder, questions: int | None = None
) -> dict[str, Result]:
    """Return what each memory is worth on the stores of a file.

    Args:
        path: The file.
        kinds: The memories by name.
        embedder: The one that all of them use.
        questions: At most so many of each store; the same for all.
    """
    results = {name: Result(kind.version) for name, kind in kinds.items()}
    for store in stores(path):
        asked = sample(store["questions"], questions)
        embedder.embed([question["text"] for question in asked])  # so that nobody's time has it in
        for name, kind in kinds.items():
            measure(store, kind, embedder, asked, results[name])
    return results
