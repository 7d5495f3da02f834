"""Whether what is private goes and all else stays: recall and precision of desensitising, by kind.

    python -m evals desensitizing --seed 7 --n 1500
    python -m evals desensitizing --misses

The sentences are templates (desensitizing.toml) filled by Faker and by generators of numbers that hold their checksums.
Half of the templates, those whose SHA-256 comes last, are set aside: nothing was tuned by looking at them. `--misses`
shows what goes wrong in the other half. One author wrote templates and recognisers, so the figures flatter.

Recall counts a value only where no character of it is left. Precision counts what is replaced only where at least half
of its characters belong to values that were planted. Of the names, half of the sentences come with the sharer's table.
"""

from __future__ import annotations

import argparse
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

from evals._figures import Figure, finish
from evals._planting import Planted, Values, filled
from remegraph.rules.desensitizing import Finding, findings

__all__ = ["LANGUAGES", "Sentence", "figures", "main", "sentences"]

LANGUAGES = ("en", "zh")
_BARS = {
    **dict.fromkeys(("email", "card", "iban", "ssn", "ip", "cn-id", "mobile"), 0.98),
    "key": 0.95,
    "password": 0.95,
}
_LEAST_PLAIN = 0.3


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, what is private in it, and the names that the sharer knows."""

    language: str
    text: str
    planted: tuple[Planted, ...]
    known: tuple[str, ...]
    aside: bool
    """Whether its template was set aside."""

    @property
    def found(self) -> tuple[Finding, ...]:
        """What the recognisers find."""
        return findings(self.text, names=self.known)


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
            group = groups["plain" if at % 100 < 100 * _LEAST_PLAIN else "private"]
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


def figures(data: Collection[Sentence], name: str) -> Iterator[Figure]:
    """Yield recall and precision of each type, with the bars.

    Args:
        data: The sentences.
        name: What they are.
    """
    for language in LANGUAGES:
        part = [sentence for sentence in data if sentence.language == language]
        for type_, score in sorted(_scores(part).items()):
            title, bar = f"{name}, {language}: {type_}", _BARS.get(type_)
            if score.planted:
                yield Figure(
                    f"{title}, recall",
                    score.gone / score.planted,
                    bar,
                    "at least",
                    note=f"{score.gone} of {score.planted}",
                )
            if score.removed:
                yield Figure(
                    f"{title}, precision",
                    score.right / score.removed,
                    bar,
                    "at least",
                    note=f"{score.right} of {score.removed}",
                )


def _scores(data: Collection[Sentence]) -> dict[str, _Score]:
    scores: dict[str, _Score] = {}
    for sentence in data:
        found = sentence.found
        gone = {at for each in found for at in range(each.start, each.end)}
        private = {at for each in sentence.planted for at in range(each.start, each.end)}
        for planted in sentence.planted:
            score = scores.setdefault(_type(planted, known=bool(sentence.known)), _Score())
            score.planted += 1
            score.gone += gone.issuperset(range(planted.start, planted.end))
        for each in found:
            score = scores.setdefault(_removed_as(each, sentence), _Score())
            score.removed += 1
            score.right += 2 * sum(at in private for at in range(each.start, each.end)) >= each.end - each.start
    return scores


def _type(planted: Planted, *, known: bool) -> str:
    return planted.type if planted.type != "name" else f"name, {'known' if known else 'unknown'}"


def _removed_as(found: Finding, sentence: Sentence) -> str:
    """Return the type under which something removed is counted: that of the value there, else of the finding."""
    there = [each for each in sentence.planted if each.start < found.end and found.start < each.end]
    return _type(there[0], known=bool(sentence.known)) if there else _FOUND_AS.get(found.kind, found.kind)


_FOUND_AS = {"name": "name, known"}


def misses(data: Collection[Sentence]) -> Iterator[str]:
    """Yield what goes wrong, of the templates that were not set aside.

    Args:
        data: The sentences.
    """
    for sentence in data:
        if sentence.aside:
            continue
        found = sentence.found
        gone = {at for each in found for at in range(each.start, each.end)}
        private = {at for each in sentence.planted for at in range(each.start, each.end)}
        for planted in sentence.planted:
            if not gone.issuperset(range(planted.start, planted.end)) and (planted.type != "name" or sentence.known):
                yield f"left {planted.type} {planted.value!r} in: {sentence.text}"
        for each in found:
            if 2 * sum(at in private for at in range(each.start, each.end)) < each.end - each.start:
                yield f"removed {each.kind} {sentence.text[each.start : each.end]!r} from: {sentence.text}"


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m evals desensitizing", description="What is private goes.")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--n", type=int, default=1500, help="Sentences of each language.")
    parser.add_argument("--misses", action="store_true", help="Show what goes wrong in the half that was seen.")
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
        ]
    )


if __name__ == "__main__":
    main()
