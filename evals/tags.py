"""Whether tags find what words do not: recall with tags spread over their co-occurrence, and without, side by side.

    python -m evals tags [--seed 7] [--page docs/evals.md]

Ten people, half of them English, half Chinese, each keep what `tags.toml` says of eight or six matters, by `kit.save`.
A seed draws the tags: each memory gets two of the four of its matter, every fourth one of another matter's, too, and
every second one a tag that stands everywhere. Five kinds of questions:

- *beside* names one tag and nothing else; its gold are the memories of the matter that do not carry it;
- *plain* asks for one memory by its words;
- *within* does, too, and names a tag that it carries; *aside* one of another matter, which it does not carry;
- *vague* names such a tag of another matter, too, and holds but one word of the memory.

The first kind is what spreading is for; with the others it can only do harm. Nothing is linked here, so `associative`
recall differs from `hybrid` recall by the tags alone.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypedDict, cast

import numpy as np

from evals._figures import Figure, block, finish
from evals._metrics import interval, recall, reciprocal_rank
from evals._pages import place
from remegraph import MemoryKit, Scope, Settings
from remegraph.kit import OpenOptions
from remegraph.models import RecallMode
from remegraph.testing import SequentialIds
from remegraph.text.tokens import stop_words

__all__ = ["Asked", "Kept", "Outcome", "Person", "figures", "keep", "main", "measure", "people", "ranked", "table"]

KINDS = ("beside", "plain", "within", "aside", "vague")
"""Of questions."""

MODES: tuple[RecallMode, ...] = ("hybrid", "associative")
"""Without tags, and with them."""

METRICS: Mapping[str, Callable[[Sequence[str], Collection[str]], float]] = {
    "R@1": partial(recall, k=1),
    "R@5": partial(recall, k=5),
    "R@10": partial(recall, k=10),
    "MRR": reciprocal_rank,
}
HELP, HARM = 0.2, 0.01
"""The bars: what spreading must gain where it is to help, and may lose elsewhere."""

_K = 10
_OF_ANOTHER, _EVERYWHERE = 0.25, 0.5
"""How many memories carry a tag of another matter, and the tag that stands everywhere."""


class _Matter(TypedDict):
    tags: list[str]
    said: list[tuple[str, str]]


class _Language(TypedDict):
    people: list[str]
    everywhere: str
    beside: list[str]
    within: list[str]
    aside: list[str]
    vague: list[str]
    matters: list[_Matter]


@dataclass(frozen=True)
class Kept:
    """A memory to be, with its tags."""

    text: str
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """A question; its gold are texts."""

    kind: str
    text: str
    gold: frozenset[str]


@dataclass(frozen=True)
class Person:
    """Who keeps what, and asks."""

    name: str
    language: str
    kept: tuple[Kept, ...]
    questions: tuple[Asked, ...]


@dataclass
class Outcome:
    """What one way of recall finds, and what it costs."""

    rows: dict[str, list[list[float]]] = field(default_factory=lambda: defaultdict(list))
    """By kind of question: the metrics of each."""
    seconds: float = 0.0
    """Of the processor."""

    def means(self, kind: str) -> list[float]:
        """Return the mean of each metric.

        Args:
            kind: Of questions.
        """
        return [float(mean) for mean in np.mean(self.rows[kind], axis=0)]


def people(seed: int) -> Iterator[Person]:
    """Yield what each person keeps and asks, the same for the same seed.

    Args:
        seed: Of the random choices.
    """
    rng = random.Random(seed)
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    for language, data in cast("dict[str, _Language]", tomllib.loads(text)).items():
        for name in data["people"]:
            kept = [[_kept(matter, said, data, rng) for said, _ in matter["said"]] for matter in data["matters"]]
            asked = [
                question
                for matter, here in zip(data["matters"], kept, strict=True)
                for question in (*_beside(matter, here, data, rng), *_by_words(matter, here, data, rng))
            ]
            everything = [each for here in kept for each in here]
            rng.shuffle(everything)
            yield Person(name, language, tuple(everything), tuple(asked))


def _kept(matter: _Matter, said: str, data: _Language, rng: random.Random) -> Kept:
    tags = rng.sample(matter["tags"], 2)
    if rng.random() < _OF_ANOTHER:
        tags.append(_other_tag(matter, data, rng))
    if rng.random() < _EVERYWHERE:
        tags.append(data["everywhere"])
    return Kept(said, tuple(tags))


def _other_tag(matter: _Matter, data: _Language, rng: random.Random) -> str:
    others = [other for other in data["matters"] if other is not matter]
    return rng.choice(rng.choice(others)["tags"])


def _beside(matter: _Matter, here: Sequence[Kept], data: _Language, rng: random.Random) -> Iterator[Asked]:
    for tag in matter["tags"]:
        gold = frozenset(each.text for each in here if tag not in each.tags)
        if 0 < len(gold) < len(here):
            yield Asked("beside", rng.choice(data["beside"]).format(tag=tag), gold)


def _by_words(matter: _Matter, here: Sequence[Kept], data: _Language, rng: random.Random) -> Iterator[Asked]:
    for each, (said, ask) in zip(here, matter["said"], strict=True):
        gold = frozenset({said})
        other = _other_tag(matter, data, rng)
        yield Asked("plain", ask, gold)
        yield Asked("within", rng.choice(data["within"]).format(tag=each.tags[0], ask=ask), gold)
        if other not in each.tags:
            yield Asked("aside", rng.choice(data["aside"]).format(tag=other, ask=ask), gold)
            yield Asked("vague", rng.choice(data["vague"]).format(tag=other, word=_word(said, rng)), gold)


def _word(said: str, rng: random.Random) -> str:
    """Return one word of a text that says something; two neighbouring characters where words have no spaces."""
    words: list[str] = [word for word in re.findall(r"[a-z0-9]+", said.casefold()) if word not in stop_words()]
    return rng.choice(words or [said[at : at + 2] for at in range(len(said) - 2)])


def ranked(kit: MemoryKit, person: Person, mode: RecallMode) -> Iterator[list[str]]:
    """Yield the memories that come back for each question of a person, best first.

    Args:
        kit: Knows what the person keeps.
        person: Who asks.
        mode: Which way.
    """
    for question in person.questions:
        hits = kit.recall(question.text, scope=Scope(user=person.name), k=_K, mode=mode).memories
        yield [hit.text for hit in hits]


def keep(kit: MemoryKit, person: Person) -> None:
    """Save what a person keeps.

    Args:
        kit: Where.
        person: Who.

    Raises:
        ValueError: A text is like another one, and so no memory of its own.
    """
    for each in person.kept:
        result = kit.save(each.text, each.text, scope=Scope(user=person.name), tags=each.tags)
        if result.outcome != "new" or result.superseded or result.may_contradict:
            raise ValueError(f"{each.text!r} is like another text. Word it otherwise.")


def measure(kit: MemoryKit, everybody: Iterable[Person]) -> dict[RecallMode, Outcome]:
    """Return what each way of recall finds, and what it costs.

    Args:
        kit: An empty one.
        everybody: Who keep something and ask.
    """
    outcomes = {mode: Outcome() for mode in MODES}
    for person in everybody:
        keep(kit, person)
        for mode, outcome in outcomes.items():
            began = time.process_time()
            found = list(ranked(kit, person, mode))
            outcome.seconds += time.process_time() - began
            for question, texts in zip(person.questions, found, strict=True):
                outcome.rows[question.kind].append([measured(texts, question.gold) for measured in METRICS.values()])
    return outcomes


def table(outcomes: Mapping[RecallMode, Outcome]) -> Iterator[str]:
    """Yield the lines of a table, a row for each kind of question."""
    heads = ["", "questions", *(f"{metric}, {mode}" for metric in METRICS for mode in outcomes)]
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for kind in KINDS:
        means = {mode: outcome.means(kind) for mode, outcome in outcomes.items()}
        cells = [f"{means[mode][at]:.3f}" for at in range(len(METRICS)) for mode in outcomes]
        yield f"| {' | '.join([kind, str(len(outcomes['hybrid'].rows[kind])), *cells])} |"


def figures(outcomes: Mapping[RecallMode, Outcome]) -> Iterator[Figure]:
    """Yield R@5 with tags beside that without: where they are to help, and where they must do no harm."""
    at = list(METRICS).index("R@5")
    for kind in KINDS:
        without, spread = (np.array(outcomes[mode].rows[kind])[:, at] for mode in MODES)
        low, high = interval(spread - without)
        bar = HELP if kind == "beside" else -HARM
        note = f"[{low:.3f}, {high:.3f}] of {len(spread)}"
        yield Figure(f"{kind}: R@5 gained", float((spread - without).mean()), bar, "at least", note=note)
    share = outcomes["associative"].seconds / outcomes["hybrid"].seconds
    yield Figure("processor time, of that of hybrid", share, unit="times")


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table and the figures."""
    parser = argparse.ArgumentParser(prog="python -m evals tags", description="Recall with tags spread, and without.")
    parser.add_argument("--seed", type=int, default=7, help="Of the random choices.")
    parser.add_argument("--page", type=Path, help="A page with a place for the table, as docs/evals.md.")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home) / "memory")
        # Of equals the one with the lower id comes first: ids in order make a seed give the same figures each time.
        with MemoryKit.open(
            settings=settings, model=None, embedder=None, options=OpenOptions(new_id=SequentialIds())
        ) as kit:
            outcomes = measure(kit, people(options.seed))
    shown, found = "\n".join(table(outcomes)), list(figures(outcomes))
    place(options.page, {"tags": shown, "tags figures": block(found)})
    print(shown, end="\n\n")
    finish(found)


if __name__ == "__main__":
    main()
