"""Whether recall can tell that nothing answers, on one scale for all stores and embedders.

    python -m evals nothing [--data FOLDER] [--embedder hashed] [--page docs/evals.md]

The four dialogues beside this file, learned without a model and from recorded answers, are asked what they answer, what
somebody who had read them found never mentioned (`nothing.jsonl`), and what other dialogues answer. A folder of kinds, as
`kinds` takes it, is asked its own questions and those of other stores of each kind.

- *Evidence lost*: of the questions whose evidence is found, those for which nothing that is found reaches the cut-off of
  .5: a recall with that threshold returns nothing.
- *Nothing*: the same of the questions that nothing answers; the more, the better.
- *Words alone*: no vectors, as where the embedder is down. The scale must be the same.
- *Without it*: the weights fitted to all other kinds, and tried on this one, in memory; with the other embedder they must
  hold, too.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evals._dialogues import dialogues
from evals._figures import Figure, finish
from evals._handoff import Answers
from evals._measuring import ADVERSARIAL
from evals._pages import how, place
from evals._peers import EMBEDDERS, embedder_of
from evals._rankers import MemoryIndex
from evals._records import Question, Store
from evals._stores import stores
from evals._systems import remembered
from evals.kinds import files
from remegraph.engine.retrieval.scores import bm25, coverage, nearest_of
from remegraph.models.standing import BEARS, Signs, relevance
from remegraph.ports import Embedder
from remegraph.text.questions import at_large, read_question
from remegraph.text.scripts import language_of

__all__ = ["Row", "fitted", "in_memory", "main", "measured", "of_dialogues", "table"]

_DATA = Path(__file__).parent
_ANSWERED, _ELSEWHERE, _NEVER = "answered", "asked of another store", "never mentioned"
_K = 10
_LOST, _SILENT = 0.03, 0.7
_TEXT = {True: 0.6, False: 0.85}
_ASKED, _STORES = 20, 12
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """A question, and what recall thinks of what it found for it."""

    kind: str
    asks: str
    """Whether something answers it."""
    best: float
    """The highest relevance: under .5, `RecallPolicy(threshold=0.5)` returns nothing."""
    evidence: float | None
    """The highest relevance of what answers it; None where none of that was found."""
    signs: Sequence[Signs] = ()
    """What speaks for each of what was found."""


# ---------------------------------------------------------------------------------------------- with the kit


def of_dialogues(folder: Path, asked: Path, mode: str) -> Iterator[Row]:
    """Yield what recall says of questions to dialogues.

    Args:
        folder: Of the dialogues, with the recorded answers.
        asked: Questions that nothing in a dialogue answers.
        mode: How they were learned, as `_systems.MODES` has it.
    """
    lines = [json.loads(line) for line in asked.read_text(encoding="utf-8").splitlines()]
    for dialogue in dialogues(folder):
        answers = Answers(folder / "recorded" / f"{dialogue.name}.summarize.answers.jsonl", None, wait=False)
        questions = [(fact.question, fact.evidence, _ANSWERED) for fact in dialogue.facts if fact.state == "current"]
        questions += [(each["question"], (), each["asks"]) for each in lines if each["talk"] == dialogue.name]
        with remembered(dialogue, mode, answers) as kit:
            for text, gold, asks in questions:
                found = kit.recall(text, scope=dialogue.scope, depth="messages", review=False)
                told = [
                    (hit.relevance or 0.0, {hit.record_id, *(each.message_id for each in hit.evidence)})
                    for hit in (*found.memories, *found.messages)
                ]
                right = [score for score, names in told if names & set(gold)]
                yield Row(dialogue.name, asks, found.confidence, max(right, default=None))


# ---------------------------------------------------------------------------------------------- in memory


def in_memory(kind: str, whole: Sequence[Store], embedder: Embedder, *, words: bool = False) -> Iterator[Row]:
    """Yield what stores of a kind say of their own questions and of those of others, each message a record.

    Args:
        kind: Of the stores.
        whole: The stores.
        embedder: The embedder.
        words: Whether words alone tell, as where the embedder is down.
    """
    large = {name: embedder.embed(at_large(name)) for name in ("en", "zh")}
    for number, store in enumerate(whole):
        index = MemoryIndex(store["messages"], "Asia/Shanghai")
        vectors = embedder.embed([f"{each.speaker}: {each.text}" for each in index.read.values()])
        for question, asks in _questions(number, whole):
            read = read_question(question["text"], index.last)
            vector = embedder.embed([read.text])[0]
            matches = index.match(read.tokens)
            covers, known = coverage(matches, read.weighted_tokens)
            text, cosines = bm25(matches, read.tokens), vectors @ vector
            above = nearest_of(vector, large[language_of(read.text)])
            weight = 1.0 if words else _TEXT[embedder.semantic]
            scores = {
                name: weight * text.get(name, 0.0) + (1 - weight) * max(0.0, float(cosine))
                for name, cosine in zip(index.read, cosines, strict=True)
            }
            near = dict(zip(index.read, (cosines - above).tolist(), strict=True))
            best = sorted(scores, key=lambda name: -scores[name])[:_K]
            signs = {
                name: Signs(covers.get(name, 0.0), known, None if words else near[name])
                for name in best
                if scores[name] > 0
            }
            right = [relevance(signs[name]) for name in signs if name in question["gold"]]
            likely = max(map(relevance, signs.values()), default=0.0)
            yield Row(kind, asks, likely, max(right, default=None), tuple(signs.values()))


def _questions(number: int, whole: Sequence[Store]) -> Iterator[tuple[Question, str]]:
    """Yield some of a store's own questions, and some of others of its kind; the same in every run."""
    own = [each for each in whole[number]["questions"] if each.get("category") != ADVERSARIAL]
    others = [
        each
        for at, other in enumerate(whole)
        for each in other["questions"]
        if at != number and each.get("category") != ADVERSARIAL
    ]
    for asked, asks in ((own, _ANSWERED), (others, _ELSEWHERE)):
        for each in random.Random(number).sample(asked, min(_ASKED, len(asked))):
            yield each, asks


# ---------------------------------------------------------------------------------------------- fitting


def fitted(rows: Sequence[Row]) -> _Floats:
    """Return the bias and the weights of covers, known and nearer that tell best what answers; 3 % of that lies below 0.

    Each kind counts as the root of its questions, of what answers and what does not alike.

    Args:
        rows: Questions with signs.
    """
    told = [row for row in rows if row.signs and (row.asks != _ANSWERED or row.evidence is not None)]
    table = np.array([[1.0, *max(map(_values, row.signs), key=sum)] for row in told])
    right = np.array([float(row.asks == _ANSWERED) for row in told])
    counts = Counter((row.kind, row.asks) for row in told)
    weigh = np.array([counts[row.kind, row.asks] ** -0.5 for row in told])
    weigh *= len(weigh) / weigh.sum()
    weights = np.zeros(table.shape[1])
    keep = np.diag([0.0, *[0.5] * (len(weights) - 1)]) + 1e-9 * np.eye(len(weights))
    for _ in range(30):  # Newton's method on the logistic likelihood
        chance = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (weigh * (chance - right)) + keep @ weights
        weights -= np.linalg.solve((table.T * (weigh * chance * (1 - chance))) @ table + keep, slope)
    best = np.array([_best(row, weights) for row in told if row.asks == _ANSWERED])
    weights[0] -= np.quantile(best, _LOST)
    return weights


def _values(signs: Signs) -> list[float]:
    return [each for each in signs if each is not None]


def _best(row: Row, weights: _Floats) -> float:
    return max(float(np.dot(weights, [1.0, *_values(each)])) for each in row.signs) if row.signs else -np.inf


def _left_out(rows: Mapping[str, Sequence[Row]], name: str) -> Iterator[Row]:
    """Yield the rows of an embedder as weights see them that were fitted to all other kinds."""
    for kind in dict.fromkeys(row.kind for row in rows[name]):
        weights = fitted([row for row in rows[name] if row.kind != kind])
        yield from (_seen(row, weights) for row in rows[name] if row.kind == kind)


def _seen(row: Row, weights: _Floats) -> Row:
    best = BEARS if _best(row, weights) >= 0 else 0.0
    return Row(row.kind, row.asks, best, None if row.evidence is None else best)


# ---------------------------------------------------------------------------------------------- figures


def measured(rows: Sequence[Row]) -> dict[str, tuple[float, int]]:
    """Return, for what was asked, the share under the cut-off, and of how many questions."""
    shares: dict[str, tuple[float, int]] = {}
    for asks in (_ANSWERED, _ELSEWHERE, _NEVER):
        some = [row for row in rows if row.asks == asks and (asks != _ANSWERED or row.evidence is not None)]
        if some:
            shares[asks] = float(np.mean([row.best < BEARS for row in some])), len(some)
    return shares


def table(parts: Mapping[str, Sequence[Row]]) -> str:
    """Return a table: a row for each system and kind, what is lost, and where nothing is shown."""
    heads = ("", "kind", "questions", "evidence lost", _ELSEWHERE, _NEVER)
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name, rows in parts.items():
        by_kind: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            by_kind[row.kind].append(row)
        for kind, some in ({"**all**": list(rows)} | by_kind).items():
            shares = measured(some)
            cells = [f"{shares[asks][0]:.2f}" if asks in shares else "" for asks in (_ANSWERED, _ELSEWHERE, _NEVER)]
            lines.append(f"| {' | '.join([name, kind, str(len(some)), *cells])} |")
    return "\n".join(lines)


def _bars(parts: Mapping[str, Iterable[Row]]) -> Iterator[Figure]:
    for name, rows in parts.items():
        shares = measured(list(rows))
        for asks, (share, asked) in shares.items():
            what, bar = (
                (f"{name}: evidence lost", _LOST) if asks == _ANSWERED else (f"{name}: {asks}: nothing", _SILENT)
            )
            yield Figure(what, share, bar, "at most" if asks == _ANSWERED else "at least", note=f"{asked} questions")


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables and bars."""
    parser = argparse.ArgumentParser(prog="python -m evals nothing", description="Can recall say that nothing answers?")
    parser.add_argument("--data", type=Path, help="A folder of kinds, or a file of stores.")
    parser.add_argument("--embedder", action="append", choices=EMBEDDERS, help="Both unless given.")
    parser.add_argument("--weights", action="store_true", help="Print weights fitted to all kinds.")
    parser.add_argument("--page", type=Path, help="A page with places for the tables.")
    options = parser.parse_args(argv)
    asked = _DATA / "nothing.jsonl"
    told = {mode: list(of_dialogues(_DATA / "dialogues", asked, mode)) for mode in ("no model", "strong")}
    tables, figures = {"nothing dialogues": table(told)}, list(_bars(told))
    if options.data:
        data = {kind: list(stores(path))[:_STORES] for kind, path in files([options.data]).items()}
        data = {kind: whole for kind, whole in data.items() if whole[0].get("gold_unit", "message") == "message"}
        rows: dict[str, list[Row]] = {}
        for name in options.embedder or EMBEDDERS:
            embedder = embedder_of(name)
            rows[name] = [row for kind, whole in data.items() for row in in_memory(kind, whole, embedder)]
        rows["words alone"] = [
            row for kind, whole in data.items() for row in in_memory(kind, whole, embedder_of("hashed"), words=True)
        ]
        without = {f"{name}, without it": list(_left_out(rows, name)) for name in rows}
        tables["nothing kinds"] = table(rows | without)
        figures += _bars(rows | without)
        for name in rows if options.weights else ():
            print(name, fitted(rows[name]).round(2))
    place(options.page, {"nothing how": how("nothing", [])} | tables)
    print(*(f"{name}\n\n{text}\n" for name, text in tables.items()), sep="\n")
    finish(figures)


if __name__ == "__main__":
    main()
