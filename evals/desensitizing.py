"""Whether what is private goes and all else stays: recall and precision of desensitising, by kind.

    python -m evals desensitizing --seed 7 --n 1500
    python -m evals desensitizing --misses
    python -m evals desensitizing --data locomo_dev.jsonl

The sentences are templates (desensitizing.toml) filled by Faker and by generators of numbers that hold their checksums.
Half of the templates, those whose SHA-256 comes last, are set aside: nothing was tuned by looking at them. `--misses`
shows what goes wrong in the other half. One author wrote templates and recognisers, so the figures flatter.

Recall counts a value only where no character of it is left. Precision counts what is replaced only where at least half
of its characters belong to values that were planted. Half of the sentences come with a table of the names that the
sharer knows. A file of stores is a check from outside: what is found in messages that others wrote.
"""

from __future__ import annotations

import argparse
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

from evals._figures import Figure, finish
from evals._planting import Planted, Values, filled
from evals._stores import stores
from remegraph.text.desensitization import findings
from remegraph.text.findings import Finding

__all__ = ["BARS", "LANGUAGES", "Sentence", "figures", "main", "misses", "sentences", "templates"]

LANGUAGES = ("en", "zh")
BARS = {
    **dict.fromkeys(("email", "card", "iban", "ssn", "ip", "cn-id", "mobile"), 0.98),
    "key": 0.95,
    "password": 0.95,
}
_COUNTED_AS = {"name": "name, known"}
_PLAIN = 0.3


Find = Callable[..., Sequence[Finding]]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, what is private in it, and the names that the sharer knows."""

    language: str
    text: str
    planted: tuple[Planted, ...]
    known: tuple[str, ...]
    aside: bool
    """Whether its template was set aside."""

    def type_of(self, planted: Planted) -> str:
        """Return the type under which a value is counted."""
        return planted.type if planted.type != "name" else f"name, {'known' if self.known else 'unknown'}"


def templates() -> dict[str, dict[str, list[str]]]:
    """Return the templates by language: those with private slots, and plain ones."""
    data: dict[str, dict[str, list[str]]] = tomllib.loads(
        (Path(__file__).parent / "desensitizing.toml").read_text(encoding="utf-8")
    )
    return data


def sentences(seed: int, n: int) -> Iterator[Sentence]:
    """Yield sentences, as many of each language.

    Args:
        seed: Of all that is random.
        n: How many of each language.
    """
    for language, part in templates().items():
        random = Random(f"{seed} {language}")
        values = Values(language, random)
        aside = {each for group in part.values() for each in _second_half(group)}
        groups = {name: _shuffled(group, random) for name, group in part.items()}
        for at in range(n):
            group = groups["plain" if at % 100 < 100 * _PLAIN else "private"]
            template = group[at % len(group)]
            text, planted = filled(template, values)
            known = at % 2 == 0
            names = tuple(each.value for each in planted if each.type == "name") if known else ()
            yield Sentence(language, text, planted, names + (values.colleagues if known else ()), template in aside)


def _second_half(group: Sequence[str]) -> Sequence[str]:
    ordered = sorted(group, key=lambda template: sha256(template.encode()).hexdigest())
    return ordered[len(ordered) // 2 :]


def _shuffled(group: Sequence[str], random: Random) -> list[str]:
    return random.sample(list(group), len(group))


@dataclass
class _Score:
    """What became of the values of one type."""

    planted: int = 0
    gone: int = 0
    removed: int = 0
    right: int = 0


def figures(data: Collection[Sentence], name: str, *, find: Find = findings) -> Iterator[Figure]:
    """Yield recall and precision of each type, with the bars.

    Args:
        data: The sentences.
        name: What they are.
        find: Finds what is private.
    """
    for language in LANGUAGES:
        part = [sentence for sentence in data if sentence.language == language]
        for type_, score in sorted(_scores(part, find).items()):
            shares = {"recall": (score.gone, score.planted), "precision": (score.right, score.removed)}
            for share, (good, all_) in shares.items():
                if all_:
                    bar, note = BARS.get(type_), f"{good} of {all_}"
                    yield Figure(f"{name}, {language}: {type_}, {share}", good / all_, bar, "at least", note=note)


def misses(data: Collection[Sentence], *, find: Find = findings) -> Iterator[str]:
    """Yield what goes wrong, of the templates that were not set aside.

    Args:
        data: The sentences.
        find: Finds what is private.
    """
    for sentence in data:
        if not sentence.aside:
            for planted, gone in _left(sentence, find):
                if not gone and sentence.type_of(planted) != "name, unknown":
                    yield f"left {planted.type} {planted.value!r} in: {sentence.text!r}"
            for found, right in _removed(sentence, find):
                if not right:
                    yield f"removed {found.kind} {sentence.text[found.start : found.end]!r} from: {sentence.text!r}"


def _scores(data: Collection[Sentence], find: Find) -> dict[str, _Score]:
    scores: defaultdict[str, _Score] = defaultdict(_Score)
    for sentence in data:
        for planted, gone in _left(sentence, find):
            score = scores[sentence.type_of(planted)]
            score.planted += 1
            score.gone += gone
        for found, right in _removed(sentence, find):
            there = [each for each in sentence.planted if each.start < found.end and found.start < each.end]
            score = scores[sentence.type_of(there[0]) if there else _COUNTED_AS.get(found.kind, found.kind)]
            score.removed += 1
            score.right += right
    return scores


def _left(sentence: Sentence, find: Find) -> Iterator[tuple[Planted, bool]]:
    """Yield what was planted, and whether all of it is gone."""
    removed = _characters(find(sentence.text, names=sentence.known))
    return ((each, removed >= _characters([each])) for each in sentence.planted)


def _removed(sentence: Sentence, find: Find) -> Iterator[tuple[Finding, bool]]:
    """Yield what was removed, and whether at least half of it was planted."""
    planted = _characters(sentence.planted)
    found = find(sentence.text, names=sentence.known)
    return ((each, 2 * len(_characters([each]) & planted) >= each.end - each.start) for each in found)


def _characters(spans: Iterable[Planted | Finding]) -> set[int]:
    return {at for each in spans for at in range(each.start, each.end)}


def outside(path: Path) -> Iterator[Figure]:
    """Yield how often something is found in what others wrote.

    Args:
        path: A file of stores.
    """
    said = [str(message["content"]) for store in stores(path) for message in store["messages"]]
    kinds = Counter(each.kind for text in said for each in findings(text))
    yield Figure(f"{path.stem}: messages", len(said))
    for kind, count in sorted(kinds.items()):
        yield Figure(f"{path.stem}: {kind}", count)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m evals desensitizing", description="What is private goes.")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--n", type=int, default=1500, help="Sentences of each language.")
    parser.add_argument("--misses", action="store_true", help="Show what goes wrong in the half that was seen.")
    parser.add_argument("--data", type=Path, action="append", default=[], help="A file of stores; repeatable.")
    options = parser.parse_args(argv)
    data = list(sentences(options.seed, options.n))
    if options.misses:
        print(*misses(data), sep="\n")
        return
    plain = Counter(sentence.language for sentence in data if not sentence.planted)
    print(
        *(f"{language}: {plain[language]} of {options.n} sentences hold nothing private" for language in LANGUAGES),
        sep="\n",
    )
    finish(
        [
            *figures(data, "all"),
            *figures([each for each in data if each.aside], "set aside"),
            *figures([each for each in data if not each.aside], "seen"),
            *(figure for path in options.data for figure in outside(path)),
        ]
    )


if __name__ == "__main__":
    main()
