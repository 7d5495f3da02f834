"""Whether two memories say the same in other words."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from remegraph.rules.wording import Wording, opposed, weight, wording

__all__ = ["at_odds", "content_digest", "near_duplicate"]

# Set on the cases in evals/reviser_cases. What counts is weighed: see `weight`.
_LEAST_SHARED = 1.5
_LEAST_SHARE = 0.35
_LEAST_SHARED_OF_FEW = 1.0
_LEAST_SHARE_OF_FEW = 0.75
_ALL_BUT_NEGATION = 0.75

_OUTER = re.compile(r"^[\W_]+|[\W_]+$")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NAME = re.compile(r"(?<=[a-z,’'] )[A-Z][\w’'-]+")


def near_duplicate(a: str, b: str, names: Iterable[str] = ()) -> bool:
    """Return whether two memory sentences say the same, in whatever words.

    They do where they share enough of their content words (stems, synonyms folded): one and a half that make up .35 of
    the shorter one, or one that makes up .75 of it. Names and words that say little by themselves count half. Numbers and
    years must not differ, nor what is denied or liked: "likes red" and "hates red" are no duplicates but a contradiction.

    Args:
        a: A sentence.
        b: Another.
        names: Whom they are about. These names do not count, as they stand in every memory of one topic.
    """
    if content_digest(a) == content_digest(b):
        return True
    about: set[str] = set()
    for name in names:
        about |= wording(name).words
    first, second = wording(a), wording(b)
    mine, yours = first.words - about, second.words - about
    if not _numbers_agree(first.numbers, second.numbers) or opposed(mine, yours):
        return False
    light = {word for text in (a, b) for name in _NAME.findall(text) for word in wording(name).words}
    numbers = {number for number in first.numbers & second.numbers if not _YEAR.fullmatch(number)}
    shared = weight(mine & yours, light) + len(numbers)
    sizes = _size(first, mine, light), _size(second, yours, light)
    share = shared / max(min(sizes), 0.5)
    if first.negative != second.negative and shared >= _ALL_BUT_NEGATION * max(sizes):
        return False
    return (shared >= _LEAST_SHARED and share >= _LEAST_SHARE) or (
        shared >= _LEAST_SHARED_OF_FEW and share >= _LEAST_SHARE_OF_FEW
    )


@lru_cache(maxsize=1 << 13)  # each memory is compared with every other of its topic
def at_odds(a: str, b: str) -> bool:
    """Return whether two sentences that are alike differ in what counts: numbers, what is denied, or what is liked.

    However near an embedder finds them ("the door code is 4711", "the door code is 4712"), they do not say the same.
    """
    first, second = wording(a), wording(b)
    return (
        first.negative != second.negative
        or opposed(first.words, second.words)
        or not _numbers_agree(first.numbers, second.numbers)
    )


def content_digest(text: str) -> str:
    """Return the SHA-256 of `text` without case, outer punctuation and differences of space and width."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = _OUTER.sub("", " ".join(folded.split()))
    return hashlib.sha256(folded.encode("utf-8", "surrogatepass")).hexdigest()


def _size(said: Wording, words: frozenset[str], light: set[str]) -> float:
    return weight(words, light) + sum(not _YEAR.fullmatch(number) for number in said.numbers)


def _numbers_agree(a: frozenset[str], b: frozenset[str]) -> bool:
    """Return whether the numbers of one are all found in the other, years and other numbers each on their own."""
    for years in (True, False):
        mine = {number for number in a if bool(_YEAR.fullmatch(number)) is years}
        yours = {number for number in b if bool(_YEAR.fullmatch(number)) is years}
        if not (mine <= yours or yours <= mine):
            return False
    return True
