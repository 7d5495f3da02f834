"""What recall finds, beside other memories in the same run: the same data, the same embedder, the same questions.

    python -m evals compare --data locomo_dev.jsonl [--embedder minilm] [--questions 100] [--charts docs/figures]

(`make eval` installs the other memories, apart from the rest.) Data is that of `evals recall`, or LoCoMo's or
LongMemEval's own file. Every memory is told the same messages, and asked for the best 50 for every question. R@k is
the share of a question's gold among the first k, all@10 the share of questions with all gold among the first ten;
tokens is what has been read, for half of the questions, when the last gold message has (at most that many; a dash
where more than half never get there). Below ours stand its parts: what it ranks by when some signs are left out.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from math import isinf
from pathlib import Path

import numpy as np

from evals._charts import draw
from evals._figures import Figure, explain_data, finish
from evals._minilm import MiniLM
from evals._peers import PEERS, Cached, Peer, PeerKind, installed, said
from evals._results import METRICS, Result
from evals._stores import Message, Question, Store, stores
from evals.recall import blend_ranker, interval
from remegraph import AgentMemorySettings, ExtractionPolicy, MemoryKit, Scope, Settings
from remegraph.kit.providers import as_embedder
from remegraph.language.tokens import estimate_tokens
from remegraph.ports import Embedder
from remegraph.rules.blending import Weights, default_weights

__all__ = ["OURS", "Kit", "compare", "main", "measure", "sample"]

OURS = "remegraph"

_DEPTH = 50
_SCOPE = Scope(user="ann", agent="remy")
_NOTHING_EXTRACTED = AgentMemorySettings(extraction=ExtractionPolicy(mode="tool-call"))
"""Raw messages are compared: time for memories made of them would be wasted."""


class Kit(Peer):
    """This kit: messages are recorded and, where the embedder knows meaning, embedded.

    Args:
        embedder: The embedder.
        folder: Its home.
        timezone: Zone of times that name none.
    """

    def __init__(self, embedder: Embedder, folder: Path, timezone: str | None = None) -> None:
        settings = Settings(home=folder, agents={"remy": _NOTHING_EXTRACTED})
        self._kit = MemoryKit.open(settings=settings, model=None, embedder=embedder)
        self._semantic = embedder.semantic
        self._timezone = timezone

    def add(self, messages: Sequence[Message]) -> None:
        """Record messages."""
        self._kit.add_messages(messages, scope=_SCOPE, timezone=self._timezone)
        if self._semantic:
            self._kit.summarize(scope=_SCOPE)  # makes the vectors of messages

    def search(self, question: str, k: int) -> Sequence[str]:
        """Return the ids of at most k messages, best first."""
        recall = self._kit.recall(question, scope=_SCOPE, depth="messages", k=k)
        return [hit.record_id for hit in recall.messages]

    def close(self) -> None:
        """Close the kit."""
        self._kit.close()


class _Part(Peer):
    """The kit's ranking in memory, with some of its signs."""

    def __init__(self, embedder: Embedder, folder: Path, *, weights: Weights, timezone: str | None) -> None:  # noqa: ARG002
        self._embedder = embedder
        self._weights = weights
        self._timezone = timezone

    def add(self, messages: Sequence[Message]) -> None:
        self._rank = blend_ranker(messages, self._timezone, self._weights, self._embedder)

    def search(self, question: str, k: int) -> Sequence[str]:
        return self._rank(question)[:k]


def _ours(timezone: str | None, *, semantic: bool) -> dict[str, PeerKind]:
    """Return this kit, and its ranking with signs left out."""
    full = default_weights(semantic=semantic)
    windows = {name: weight for name, weight in full.words.items() if name.startswith("window")}
    threadless = {name: weight for name, weight in full.words.items() if name != "thread"}
    parts = {
        "words only": Weights.of({"words": 1.0}, {}),
        "windows only": Weights.of(windows, {}),
        "without thread": Weights.of(threadless, full.message, full.meaning, full.read),
        "without speaker and tells": Weights.of(full.words, {}, full.meaning, full.read),
    }
    if semantic:
        parts["without meaning"] = default_weights()
    made = {OURS: PeerKind(partial(Kit, timezone=timezone), "remegraph", "remegraph")}
    for name, weights in parts.items():
        make = partial(_Part, weights=weights, timezone=timezone)
        made[f"  {name}"] = PeerKind(make, "remegraph", "remegraph")
    return made


def sample(questions: Sequence[Question], size: int | None) -> list[Question]:
    """Return so many of the questions, the same in every run, in their order; all of them for none."""
    if size is None or size >= len(questions):
        return list(questions)
    chosen = sorted(random.Random(7).sample(range(len(questions)), size))
    return [questions[at] for at in chosen]


def measure(store: Store, kind: PeerKind, embedder: Embedder, questions: Sequence[Question], result: Result) -> None:
    """Tell a memory the messages of a store, ask the questions, and add what it finds to the result."""
    thread_of = {message["id"]: message["thread"] for message in store["messages"]}
    by_thread = store.get("gold_unit") == "thread"
    tokens: dict[str, int] = defaultdict(int)
    for message in store["messages"]:
        tokens[thread_of[message["id"]] if by_thread else message["id"]] += estimate_tokens(said(message))
    with tempfile.TemporaryDirectory() as folder:
        peer = kind.make(embedder, Path(folder))
        try:
            peer.add(store["messages"])
            for question in questions:
                ranked = peer.search(question["text"], _DEPTH)
                units = list(dict.fromkeys(thread_of[each] for each in ranked)) if by_thread else ranked
                result.add(units, question["gold"], tokens, str(question.get("category", "all")))
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
        for name, kind in kinds.items():
            measure(store, kind, embedder, asked, results[name])
    return results


def _print(title: str, results: Mapping[str, Result]) -> None:
    """Print the table of all metrics, and that of R@10 by category."""
    print(f"\n{title}, {len(next(iter(results.values())).tokens)} questions")
    width = max(map(len, results))
    print(f"{'':{width}}  " + "".join(f"{metric:>9}" for metric in (*METRICS, "tokens")) + "  R@10 within")
    for name, result in results.items():
        tokens = statistics.median(result.tokens)
        cells = [f"{result.mean(metric):.3f}" for metric in METRICS] + ["-" if isinf(tokens) else f"{tokens:,.0f}"]
        low, high = interval(np.array(result.values["R@10"]))
        print(f"{name:{width}}  " + "".join(f"{cell:>9}" for cell in cells) + f"  {low:.3f} to {high:.3f}")
    categories = sorted(set(next(iter(results.values())).categories))
    if len(categories) > 1:
        print(f"\n{title}, R@10 by category\n{'':{width}}  " + "".join(f"{each:>17}" for each in categories))
        for name, result in results.items():
            print(f"{name:{width}}  " + "".join(f"{result.mean('R@10', each):>17.3f}" for each in categories))


def _bars(title: str, results: Mapping[str, Result]) -> list[Figure]:
    """Every peer must be behind."""
    ours = results[OURS].mean("R@10")
    return [
        Figure(f"{title}: R@10 of {name}", result.mean("R@10"), ours, "under", note=result.version)
        for name, result in results.items()
        if name in PEERS
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables, and draw them where a folder is given."""
    parser = argparse.ArgumentParser(prog="python -m evals compare", description="Recall beside other memories.")
    parser.add_argument("--data", type=Path, action="append", help="A file of stores; repeatable.")
    parser.add_argument("--embedder", default="hashed", help="That of all memories: minilm, or as MemoryKit takes it.")
    parser.add_argument("--questions", type=int, help="At most so many of each store.")
    parser.add_argument("--peer", action="append", choices=list(PEERS), help="Only this one; repeatable.")
    parser.add_argument("--timezone", help="Zone of times that name none.")
    parser.add_argument("--charts", type=Path, help="Folder for bar charts, as PNG and SVG.")
    options = parser.parse_args(argv)
    if not options.data:
        explain_data("compare", "locomo_dev.jsonl [--embedder minilm]")
        return
    embedder = Cached(MiniLM() if options.embedder == "minilm" else as_embedder(None))
    kinds = _ours(options.timezone, semantic=embedder.semantic) | installed(
        {name: PEERS[name] for name in options.peer or PEERS}
    )
    figures: list[Figure] = []
    for path in options.data:
        results = compare(path, kinds, embedder, options.questions)
        title = f"{path.stem}, {embedder.name}"
        _print(title, results)
        figures += _bars(title, results)
        if options.charts:
            draw(options.charts / f"{path.stem}-{options.embedder}", title, results)
    print()
    finish(figures)


if __name__ == "__main__":
    main()
