"""The telling words of memories: which two have in common, how rare they are, and how they are written."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from remegraph.language.scripts import HAN
from remegraph.language.tokens import stop_words
from remegraph.rules.feelings import sentiment
from remegraph.rules.wording import wording

__all__ = ["Lexicon", "phrases", "recurring", "terms_of"]

_WORD = re.compile(rf"[^\W\d_{HAN}]{{2,}}")
_RUN = re.compile(f"[{HAN}]{{2,}}")

_COMMON_SHARE, _COMMON_LEAST = 0.1, 10
"""What stands in so many of a topic's memories, by share and by number, tells none of them from another."""

_SMALL = 50
"""How rare a word is, few memories cannot tell: they count as so many."""

_MOST = 5
"""Recurring words that say what a group is about: with more, a list of them might repeat a sentence."""

_LONGEST_SYNONYM = 4
_LONGEST_PHRASE = 8
"""Chinese characters."""


@lru_cache(maxsize=1 << 9)  # `wording`, which is most of the work, remembers more
def terms_of(text: str) -> Mapping[str, str]:
    """Return the telling words of a text as they are compared, each with how it is written first.

    English words are stems with synonyms folded; Chinese ones are pairs of characters. Numbers are left out.

    Args:
        text: A sentence, English or Chinese.
    """
    telling = frozenset(word for word in wording(text).words if not word.startswith("~"))
    found: dict[str, str] = {}
    for match in _WORD.finditer(text):
        for word in wording(match.group()).words & telling:
            found.setdefault(word, match.group())
    for match in _RUN.finditer(text):
        found |= {word: written for word, written in _chinese(match.group(), telling) if word not in found}
    return found


def _chinese(run: str, telling: frozenset[str]) -> Iterator[tuple[str, str]]:
    for one, other in pairwise(run):
        if {one, other} <= telling:
            yield one + other, one + other
    groups = {word for word in telling if word.startswith("=")}
    for length in range(_LONGEST_SYNONYM if groups else 0, 0, -1):  # the shortest is written last, and stays
        for at in range(len(run) - length + 1):
            (word, *more) = wording(run[at : at + length]).words or ("",)
            if word in groups and not more:
                yield word, run[at : at + length]


class Lexicon:
    """How much each word tells among the memories of one topic. How somebody feels is not what they talk about.

    Args:
        texts: What the memories say.
        names: Whom or what all of them are about: these words tell nothing.
    """

    def __init__(self, texts: Iterable[str], names: Iterable[str]) -> None:
        said = [terms_of(text) for text in texts]
        counts = Counter(word for words in said for word in words)
        most = max(_COMMON_LEAST, _COMMON_SHARE * len(said))
        written = {word: text for words in said for word, text in words.items()}
        about = {word for name in names for word in terms_of(name)}
        self._weights = {
            word: math.log((max(len(said), _SMALL) + 1) / count)
            for word, count in counts.items()
            if count <= most and word not in about and not sentiment(written[word])
        }

    def weight(self, word: str) -> float:
        """Return how much a word tells: 0 for one that stands in most memories, or in none."""
        return self._weights.get(word, 0.0)

    def words(self, text: str) -> frozenset[str]:
        """Return the words of a text that tell something."""
        return frozenset(word for word in terms_of(text) if word in self._weights)

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


def phrases(terms: Sequence[str], texts: Sequence[str]) -> tuple[str, ...]:
    """Return terms as some texts write them, rather in small letters; Chinese ones as the phrase that all of them share.

    Args:
        terms: Words as they are compared.
        texts: Where they stand.
    """
    found: list[str] = []
    for term in terms:
        written = Counter(words[term] for words in map(terms_of, texts) if term in words)
        if written:
            chosen = min(written, key=lambda each: (not each.islower(), -written[each], each))
            found.append(_widened(chosen, texts) if _RUN.fullmatch(chosen * 2) else chosen)
    return tuple(
        phrase
        for place, phrase in enumerate(found)
        if phrase not in found[:place]
        and not (_RUN.match(phrase * 2) and any(phrase in other or other in phrase for other in found[:place]))
    )


def _widened(phrase: str, texts: Sequence[str]) -> str:
    """Return a Chinese phrase with the characters that stand beside it wherever it stands, but for stop words."""
    within = [text for text in texts if phrase in text]
    while len(within) > 1 and len(phrase) < _LONGEST_PHRASE:
        for pattern, put in ((f"(?=([{HAN}]){phrase})", "{1}{0}"), (f"(?={phrase}([{HAN}]))", "{0}{1}")):
            beside = [frozenset(re.findall(pattern, text)) for text in within]
            if len(set(beside)) == 1 and len(beside[0]) == 1 and not beside[0] & stop_words():
                phrase = put.format(phrase, *beside[0])
                break
        else:
            break
    return phrase
