"""How much recall finds in kinds of conversation that it was not made for, beside other memories, and where it loses.

    python -m evals kinds --data FOLDER [--embedder hashed] [--questions 0] [--page docs/evals.md]
    python -m evals kinds --data mine.jsonl --memory BM25

A folder has a file of each kind, `NAME_dev.jsonl`, one memory store per line: messages, and questions with the ids of the
messages (or threads, where `gold_unit` says so) that answer them; of more than 300 of a kind a seed draws 300; LoCoMo's and LongMemEval's own files and files of
tool calls are read, too. Every memory is told the same messages and asked the same questions, with the same embedder.
R@k of a question is |gold found in the first k| / |gold|, MRR 1 / the place of the first gold one; in brackets stands
the 95 % bootstrap interval over questions. `stale first`: of the questions that something stale bears on, the share
where it comes before all that is gold; the less, the better.

- *Nothing answers*: questions of other stores of the same kind, questions that somebody else wrote about what was never
  mentioned (`kinds_unanswerable.json`), and LoCoMo's adversarial ones, which ask one speaker for what the other one said and
  are left out of recall. Shown is how many of ten places are filled all the same, and how often the best of an answered
  question scores higher than that of such a one (the area under ROC; .5 is chance).
- *Fitted*: the weights of the blend, fitted anew to all kinds but one and tried on that one; the same for attention.
- *Memories*: of the smallest store of each kind, summarised without a model, how many are isolated or lead nowhere.

A loss is marked: ▼ where the interval of the difference lies below 0, ▽ where it does not.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import sys
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from evals._figures import Figure, Sense, block, explain_data, finish
from evals._measuring import ADVERSARIAL, DEPTH, METRICS, STALE_FIRST, Row, measure, worth
from evals._memories import remembered
from evals._metrics import interval, told_apart
from evals._pages import how, place
from evals._peers import EMBEDDERS, OURS, PEERS, Kit, Mem0, embedder_of, installed
from evals._rankers import MemoryIndex, asked_at, blend_ranker
from evals._records import Question, Store
from evals._stores import QUESTIONS, ZONES, answerable, drawn, files, stores
from evals.attention import fit_attention, signs_of_evidence, weighed
from evals.fit_blend import alike, asked_of, refitted
from remegraph.engine.retrieval.blend import Weights, default_weights
from remegraph.engine.salience import weights as attention
from remegraph.ports import Embedder

__all__ = ["Found", "apart", "files", "losses", "main", "never_mentioned", "questions_of", "refit", "table"]

NEVER = Path(__file__).with_name("kinds_unanswerable.json")
_OTHERS = 10
"""Questions of other stores that each store is asked."""
_ELSEWHERE, _NEVER = "asked of another store", "never mentioned"
_APART = (_NEVER, _ELSEWHERE, ADVERSARIAL)
_SHOWN = 0.5
"""What memory shows where nothing answers may be half of what it shows where something does."""

_Floats = NDArray[np.float64]
Vectors = Mapping[str, NDArray[np.float32]]
Measured = tuple[dict[str, str], list[Figure]]
"""Tables by their places, and bars."""


@dataclass
class Found:
    """What each memory found, by its name, question by question; all were asked the same."""

    rows: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def kinds(self) -> list[str]:
        """The kinds asked, in order."""
        return list(dict.fromkeys(row.kind for row in next(iter(self.rows.values()))))

    def values(self, name: str, kind: str, metric: str) -> _Floats:
        """Return a metric of each question of a kind that a memory was asked and something answers."""
        rows = [row for row in self.rows[name] if row.kind == kind and row.category not in _APART]
        return np.array([row.values[metric] for row in rows if metric in row.values])

    def of(self, name: str, category: str = "") -> list[Row]:
        """Return the rows of a category that is told apart; without one, those that something answers."""
        rows = self.rows[name]
        return [row for row in rows if row.category == category or not (category or row.category in _APART)]


def never_mentioned(kind: str, store: Store, path: Path = NEVER) -> list[Question]:
    """Return the questions that somebody else wrote about what a store never mentions; a word of it drops one.

    Args:
        kind: Of the store.
        store: What was said.
        path: The questions, with the store and the words that each is about.
    """
    if not path.exists():
        return []
    said = "\n".join(message["content"] for message in store["messages"]).lower()
    return [
        Question(text=each["text"], gold=[], category=_NEVER)
        for each in json.loads(path.read_text(encoding="utf-8"))["questions"]
        if (each["set"].removesuffix("_dev"), each["store"]) == (kind, store["store"])
        if not any(word.lower() in said for word in each["words"])
    ]


def questions_of(kind: str, store: Store, all_stores: Sequence[Store]) -> list[Question]:
    """Return what a store is asked: its own questions, some of others of its kind, and some that nothing answers."""
    others = [
        Question(text=each["text"], gold=[], category=_ELSEWHERE)
        for other in all_stores
        if other["store"] != store["store"]
        for each in other["questions"]
        if each.get("category") != ADVERSARIAL
    ]
    drawn = random.Random(store["store"]).sample(others, min(_OTHERS, len(others)))
    return [*store["questions"], *drawn, *never_mentioned(kind, store)]


def _asked(name: str, kind: str, path: Path, memories: Sequence[str], size: int) -> tuple[Found, Vectors]:
    """Return what each memory found in one kind, and the vectors that took long to make."""
    logging.getLogger("mem0").setLevel(logging.ERROR)  # it says for each store what it lacks
    makers = {each: peer.make for each, peer in installed({each: PEERS[each] for each in memories}).items()}
    embedder, whole = embedder_of(name), drawn(path, size)
    if "mem0" in makers:
        with TemporaryDirectory() as folder:
            Mem0(embedder, Path(folder)).check()
    found, began = Found({name: [] for name in makers}), datetime.now(UTC)
    for store, (memory, make) in product(whole, makers.items()):
        made = partial(Kit, timezone=ZONES.get(kind)) if make is Kit else make
        found.rows[memory] += measure(kind, store, made, embedder, questions_of(kind, store, whole))
    took = (datetime.now(UTC) - began).total_seconds()
    print(f"{embedder.name} {kind}: {took:.0f} s", file=sys.stderr, flush=True)
    return found, embedder.known if embedder.semantic else {}


def _line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _heads(*heads: str) -> list[str]:
    return [_line(heads), _line("---" for _ in heads)]


def _better(metric: str) -> int:
    return -1 if metric == STALE_FIRST else 1


def _differences(found: Found, kind: str, metric: str) -> dict[str, tuple[float, float, float]]:
    """Return by how much ours is ahead of each other, with the interval."""
    ours = found.values(OURS, kind, metric)
    gains = {name: _better(metric) * (ours - found.values(name, kind, metric)) for name in found.rows if name != OURS}
    return {name: (float(gain.mean()), *interval(gain)) for name, gain in gains.items()}


def _mark(differences: Mapping[str, tuple[float, float, float]]) -> str:
    if any(high < 0 for _, _, high in differences.values()):
        return " ▼"
    return " ▽" if any(mean < 0 for mean, _, _ in differences.values()) else ""


def table(found: Found, metric: str) -> list[str]:
    """Return a table of a metric, a row for each kind that has it, ours marked where another is ahead.

    Args:
        found: By all memories.
        metric: Which.
    """
    lines = _heads(metric, "questions", *(f"**{name}**" if name == OURS else name for name in found.rows))
    for kind in found.kinds:
        values = {name: found.values(name, kind, metric) for name in found.rows}
        if not len(values[OURS]):
            continue
        cells = {name: "{:.3f} ({:.3f}–{:.3f})".format(each.mean(), *interval(each)) for name, each in values.items()}
        cells[OURS] += _mark(_differences(found, kind, metric))
        lines.append(_line([kind, len(values[OURS]), *cells.values()]))
    return lines


def losses(found: Found, embedder: str) -> Iterator[Figure]:
    """Yield each figure of ours beside the best of the others: whoever is behind has lost.

    Args:
        found: By all memories.
        embedder: That all of them used.
    """
    for kind, metric in product(found.kinds, (*METRICS, STALE_FIRST)):
        ours = found.values(OURS, kind, metric)
        differences = _differences(found, kind, metric) if len(ours) else {}
        if differences:
            name, (mean, low, high) = min(differences.items(), key=lambda each: each[1][0])
            bar = float(found.values(name, kind, metric).mean())
            sense: Sense = "at most" if metric == STALE_FIRST else "at least"
            note = f"{name}; ahead by {mean:.3f}, {low:.3f} to {high:.3f}"
            yield Figure(f"{kind}, {embedder}: {metric}", float(ours.mean()), bar, sense, note=note)


def apart(found: Found, embedder: str) -> tuple[list[str], list[Figure]]:
    """Return how much is shown where nothing answers, as a table and as bars for ours.

    Args:
        found: By all memories.
        embedder: That all of them used.
    """
    heads = ("where nothing answers", "questions", "memory", "nothing shown", "of ten places filled", "told apart")
    lines, figures = _heads(*heads), list[Figure]()
    for category in _APART:
        told: dict[str, float] = {}
        for name in found.rows:
            nothing = found.of(name, category)
            kinds = {row.kind for row in nothing}
            answered = [row for row in found.of(name) if row.kind in kinds]
            if not answered:
                continue
            silent = float(np.mean([not row.shown for row in nothing]))
            filled, usual = (float(np.mean([row.shown for row in rows])) for rows in (nothing, answered))
            told[name] = float(np.mean([_apart(answered, nothing, kind) for kind in kinds]))
            cells = (f"{silent:.3f}", f"{filled:.2f}", f"{told[name]:.3f}")
            lines.append(_line((category, len(nothing), name, *cells)))
            if name == OURS:
                what, note = f"{category}, {embedder}: shown", f"{filled:.2f} and {usual:.2f} of ten places"
                figures.append(
                    Figure(f"{what} / where something answers", filled / max(usual, 1e-9), _SHOWN, note=note)
                )
        best = max((each for each in told if each != OURS), key=told.__getitem__, default=None)
        if best:
            figures.append(Figure(f"{category}, {embedder}: told apart", told[OURS], told[best], "at least", note=best))
    return lines, figures


def _apart(answered: Sequence[Row], nothing: Sequence[Row], kind: str) -> float:
    return told_apart(*([row.best for row in rows if row.kind == kind] for rows in (answered, nothing)))


def refit(
    data: Mapping[str, Sequence[Store]], embedder: Embedder, found: Found, name: str
) -> tuple[list[str], list[Figure]]:
    """Return what the weights are worth as shipped and fitted without the kind at hand; memory must rank as the kit does.

    Args:
        data: Stores by kind, with the questions that they were asked.
        embedder: The embedder.
        found: What the kit and BM25 found.
        name: Of the embedder.
    """
    semantic = embedder.semantic
    indexes = {
        kind: [MemoryIndex(store["messages"], ZONES.get(kind), embedder) for store in whole]
        for kind, whole in data.items()
    }
    asked = {
        kind: [
            each
            for store, index in zip(whole, indexes[kind], strict=True)
            for each in asked_of(store, index, ZONES.get(kind), semantic=semantic)
        ]
        for kind, whole in data.items()
    }
    hows = ("shipped", "without it")
    lines = _heads("kind left out", "questions", *(f"{metric}, {how}" for metric in METRICS for how in hows))
    figures: list[Figure] = []
    for kind, whole in data.items():
        others = alike(every for other, every in asked.items() if other != kind)
        weights = default_weights(semantic=semantic), refitted(others, semantic=semantic) if others else None
        shipped, without = (list(_ranked(kind, whole, indexes[kind], each)) if each else [] for each in weights)
        kit = [row.found for row in found.of(OURS) if row.kind == kind]
        unlike = sum(row != tuple(ids) for row, (_, ids) in zip(kit, shipped, strict=True))
        figures.append(Figure(f"{kind}, {name}: answers of the kit unlike those in memory", unlike, 0, "exactly"))
        if without:
            values = {
                metric: [np.array([worth(asking, ids)[metric] for asking, ids in each]) for each in (shipped, without)]
                for metric in METRICS
            }
            lines.append(
                _line((kind, len(without), *(f"{each.mean():.3f}" for both in values.values() for each in both)))
            )
            before, after = values["R@10"]
            floor = float(found.values("BM25", kind, "R@10").mean()) if "BM25" in found.rows else None
            low, high = interval(after - before)
            note = f"shipped {before.mean():.3f}, difference {low:.3f} to {high:.3f}; bar: BM25"
            figures.append(
                Figure(f"{kind}, {name}: R@10 fitted without it", float(after.mean()), floor, "at least", note=note)
            )
    return lines, figures


def _ranked(
    kind: str, whole: Sequence[Store], indexes: Sequence[MemoryIndex], weights: Weights
) -> Iterator[tuple[Question, list[str]]]:
    for store, index in zip(whole, indexes, strict=True):
        rank, unit = blend_ranker(index, weights), store.get("gold_unit", "message")
        thread_of = {message["id"]: message["thread"] for message in store["messages"]}
        for question in store["questions"]:
            at = asked_at(store["messages"], ZONES.get(kind), question.get("time"))
            ids = rank(question["text"], DEPTH[unit], at)
            yield question, list(ids) if unit == "message" else list(dict.fromkeys(thread_of[each] for each in ids))


def _attention(data: Mapping[str, Sequence[Store]]) -> list[str]:
    """Return how often evidence gets more attention than other messages, as shipped and fitted without the kind."""
    known = {kind: whole for kind, whole in data.items() if whole[0].get("gold_unit", "message") == "message"}
    every = {kind: signs_of_evidence(whole) for kind, whole in known.items()}
    signs = {
        kind: part for kind, part in every.items() if 0 < part[1].mean() < 1
    }  # of prefeval everything is asked for
    shipped = attention("later")
    lines = _heads("attention: evidence above the rest", "messages", "shipped", "without it")
    for kind, (rows, evidence) in signs.items() if len(signs) > 1 else ():
        others = [each for other, each in signs.items() if other != kind]
        fitted = fit_attention(
            [row for every, _ in others for row in every], np.concatenate([each for _, each in others])
        )
        cells = []
        for table_of in (shipped, fitted):
            scores = weighed(rows, table_of)
            cells.append(f"{told_apart(scores[evidence > 0], scores[evidence == 0]):.3f}")
        lines.append(_line([kind, len(rows), *cells]))
    return lines


def _measure(name: str, data: Mapping[str, Path], size: int, asked: Sequence[tuple[Found, Vectors]]) -> Measured:
    """Return the tables of one embedder by their places, and all bars."""
    whole = {kind: drawn(path, size) for kind, path in data.items()}
    embedder = embedder_of(name, ChainMap(*(dict(vectors) for _, vectors in asked)))
    found = Found({memory: [row for part, _ in asked for row in part.rows[memory]] for memory in asked[0][0].rows})
    places = {f"kinds {metric} {name}": "\n".join(table(found, metric)) for metric in (*METRICS, STALE_FIRST)}
    lines, nothing = apart(found, name)
    fitted, bars = refit({kind: answerable(each) for kind, each in whole.items()}, embedder, found, name)
    places |= {f"kinds apart {name}": "\n".join(lines), f"kinds fitted {name}": "\n".join(fitted)}
    figures = [*losses(found, name), *nothing, *bars]
    missed = [figure for figure in figures if figure.verdict == "FAIL"]
    places[f"kinds losses {name}"] = block(missed) if missed else "None."
    return places, figures


def _without_model(data: Mapping[str, Path]) -> Measured:
    """Return what does not depend on the embedder: what attention is worth, and memories made without a model."""
    whole = {kind: list(stores(path)) for kind, path in data.items()}
    smallest = {kind: min(each, key=lambda store: len(store["messages"])) for kind, each in whole.items()}
    made = [
        figure
        for kind, store in smallest.items()
        for figure in remembered(kind, store, embedder_of("hashed"), ZONES.get(kind))
    ]
    return {
        "kinds attention": "\n".join(_attention({kind: answerable(each) for kind, each in whole.items()})),
        "kinds memories": block(made),
    }, []


def main(argv: Sequence[str] | None = None) -> None:
    """Print all tables and bars."""
    parser = argparse.ArgumentParser(
        prog="python -m evals kinds", description="Recall in unseen kinds of conversation."
    )
    parser.add_argument(
        "--data", type=Path, action="append", help="A folder of kinds, or a file of stores; repeatable."
    )
    parser.add_argument(
        "--embedder", action="append", choices=EMBEDDERS, help="That of all memories; both unless given."
    )
    parser.add_argument("--memory", action="append", choices=list(PEERS), help="Beside these only; repeatable.")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="At most so many of each kind; 0: all.")
    parser.add_argument("--page", type=Path, help="A page with places for the tables, as docs/evals.md.")
    options = parser.parse_args(argv)
    if not options.data:
        explain_data("kinds", "FOLDER, or a file")
        return
    data, memories = files(options.data), list(dict.fromkeys([OURS, *(options.memory or PEERS)]))
    packages = [PEERS[name].package for name in memories if PEERS[name].installed]
    place(options.page, {"kinds how": how("kinds", packages)})
    figures: list[Figure] = []
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # the processes share the cores
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        size, names = options.questions, options.embedder or EMBEDDERS
        asked = {
            name: [pool.submit(_asked, name, kind, path, memories, size) for kind, path in data.items()]
            for name in sorted(names, key=EMBEDDERS.index, reverse=True)  # what takes longest first
        }
        without = pool.submit(_without_model, data)
        last = [pool.submit(_measure, name, data, size, [each.result() for each in asked[name]]) for name in asked]
        for done in as_completed([without, *last]):
            tables, found = done.result()
            print(*(f"{name}\n\n{text}\n" for name, text in tables.items()), sep="\n", flush=True)
            place(options.page, tables)
            figures += found
    finish(figures)


if __name__ == "__main__":
    main()
