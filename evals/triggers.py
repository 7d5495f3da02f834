"""Whether memory is asked where it should be: precision and recall of the triggers over labelled sentences.

    python -m evals triggers
    python -m evals triggers --data locomo_dev.jsonl

The sentences and their labels stand in triggers.toml and were written before the rules. Half of each language, those whose
SHA-256 comes first, are set aside: the bars are for them, and no rule was made by looking at them. `--misses` shows what
goes wrong in the other half. One author wrote sentences and rules, so the figures flatter. A file of stores is a check
from outside: in what share of its messages, which mostly tell something new, words of the past, of decisions or of one's
own things fire, and in what share of its questions. No topic is known there, so names do not fire.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from evals._figures import Figure, finish
from evals._stores import stores
from remegraph.governance.injection import triggers

__all__ = ["Sentence", "figures", "main", "sentences"]

_BAR = 0.9
_BARRED = ("en", "zh")
"""German and Spanish are read by fewer words, and have no bar."""


@dataclass(frozen=True)
class Sentence:
    """A sentence, and what should fire for it."""

    language: str
    text: str
    label: str
    """past, decision or entity; empty: nothing."""
    known: Sequence[str]
    aside: bool
    """Whether it was set aside."""

    @property
    def fired(self) -> frozenset[str]:
        """What fires."""
        return frozenset(trigger.kind for trigger in triggers(self.text, turn=1, known=self.known))


def sentences() -> Iterator[Sentence]:
    """Yield all sentences."""
    data = tomllib.loads((Path(__file__).parent / "triggers.toml").read_text(encoding="utf-8"))
    for language, part in data.items():
        texts = sorted((text for _, text, _ in part["sentences"]), key=lambda text: sha256(text.encode()).hexdigest())
        aside = set(texts[: len(texts) // 2])
        for label, text, _ in part["sentences"]:
            yield Sentence(language, text, label, part["known"], text in aside)


def figures(data: Sequence[Sentence]) -> Iterator[Figure]:
    """Yield precision and recall, of what was set aside and of the rest.

    Args:
        data: The sentences.
    """
    for aside in (True, False):
        for language in dict.fromkeys(each.language for each in data):
            part = [each for each in data if each.aside == aside and each.language == language]
            name = f"{language}, {'set aside' if aside else 'seen'}"
            right = sum(bool(each.fired) for each in part if each.label)
            fired = sum(bool(each.fired) for each in part)
            wanted = sum(bool(each.label) for each in part)
            bar = _BAR if aside and language in _BARRED else None
            yield Figure(f"{name}: precision", right / fired, bar, "at least", note=f"{right} of {fired} that fired")
            yield Figure(f"{name}: recall", right / wanted, bar, "at least", note=f"{right} of {wanted} that should")
            reason = sum(each.label in each.fired for each in part if each.label)
            yield Figure(f"{name}: for the labelled reason", reason / wanted)


def outside(path: Path) -> Iterator[Figure]:
    """Yield how often triggers fire in what others wrote.

    Args:
        path: A file of stores.
    """
    data = list(stores(path))
    said = [message["content"] for store in data for message in store["messages"] if message["role"] == "user"]
    asked = [question["text"] for store in data for question in store["questions"]]
    for name, texts in (("messages", said), ("questions", asked)):
        fired = sum(bool(triggers(text, turn=1)) for text in texts)
        yield Figure(f"{path.stem}: {name} that fire", fired / len(texts), note=f"{fired:,} of {len(texts):,}")


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m evals triggers", description="When memory is asked.")
    parser.add_argument("--misses", action="store_true", help="Show what goes wrong in the half that was seen.")
    parser.add_argument("--data", type=Path, action="append", default=[], help="A file of stores; repeatable.")
    options = parser.parse_args(argv)
    data = list(sentences())
    if options.misses:
        for each in data:
            if not each.aside and bool(each.fired) != bool(each.label):
                print(f"{each.label or 'nothing'}, not {sorted(each.fired) or 'nothing'}: {each.text}")
    finish([*figures(data), *(figure for path in options.data for figure in outside(path))])


if __name__ == "__main__":
    main()
