"""The telling words of memories: which two have in common, and how rare they are."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from remegraph.language.scripts import HAN
from remegraph.rules.wording import wording

__all__ = ["Lexicon", "recurring"]

_WORD = re.compile(rf"[^\W\d_{HAN}]{{2,}}")
_RUN = re.compile(f"[{HAN}]{{2,}}")

_COMMON_SHARE, _COMMON_LEAST = 0.1, 10
"""What stands in so many of a topic's memories, by share and by number, tells none of them from another."""

_SMALL = 50
"""How rare a word is, few memories cannot tell: they count as so many."""

_MOST = 5
"""Recurring words by which a group is known."""


@lru_cache(maxsize=1 << 9)  # `wording`, which is most of the work, remembers more
def _terms(text: str) -> frozenset[str]:
    """Return the telling words of a text: stems with synonyms folded; of Chinese, pairs of characters. No numbers."""
    telling = frozenset(word for word in wording(text).words if not word.startswith("~"))
    found = {word for match in _WORD.finditer(text) for word in wording(match.group()).words & telling}
    for match in _RUN.finditer(text):
        found |= {one + other for one, other in pairwise(match.group()) if {one, other} <= telling}
    return frozenset(found | {word for word in telling if word.startswith("=")})


class Lexicon:
    """How much each word tells among the memories of one topic.

    Args:
        texts: What the memories say.
        names: Whom or what all of them are about: these words tell nothing.
    """

    def __init__(self, texts: Iterable[str], names: Iterable[str]) -> None:
        said = [_terms(text) for text in texts]
        counts = Counter(word for words in said for word in words)
        most = max(_COMMON_LEAST, _COMMON_SHARE * len(said))
        about = {word for name in names for word in _terms(name)}
        self._weights = {
            word: math.log((max(len(said), _SMALL) + 1) / count)
            for word, count in counts.items()
            if count <= most and word not in about
        }

    def weight(self, word: str) -> float:
        """Return how much a word tells: 0 for one that stands in most memories, or in none."""
        return self._weights.get(word, 0.0)

    def words(self, text: str) -> frozenset[str]:
        """Return the words of a text that tell something."""
        return frozenset(word for word in _terms(text) if word in self._weights)

    def likeness(self, one: frozenset[str], other: frozenset[str]) -> float:
        """Return the cosine of two sets of words, rare ones weighing more."""
        shared = self._square(one & other)
        return shared / math.sqrt(self._square(one) * self._square(other)) if shared else 0.0

    def _square(self, words: Iterable[str]) -> float:
        return sum(self.weight(word) ** 2 for word in sorted(words))


def recurring(said: Sequence[frozenset[str]], lexicon: Lexicon) -> tuple[str, ...]:
    """Return the words that recur in texts: in a third of them and in two at least, the most telling first.

    Args:
        said: The telling words of each text.
        lexicon: Weighs them.
    """
    counts = Counter(word for words in said for word in words)
    least = max(2, len(said) / 3)
    found = [word for word, count in counts.items() if count >= least]
    return tuple(sorted(found, key=lambda word: (-counts[word] * lexicon.weight(word), word))[:_MOST])
