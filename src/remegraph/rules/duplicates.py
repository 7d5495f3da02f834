"""Whether two memories say the same in other words."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from remegraph.language.scripts import language_of
from remegraph.rules.codes import differently_coded
from remegraph.rules.fitted import model
from remegraph.rules.wording import grams, opposed, weight, wording

__all__ = ["at_odds", "content_digest", "likeness", "near_duplicate"]

# Where so much is shared, a number or a "not" that differs is what the two are about.
_ALL_BUT_ONE = 0.75

_OUTER = re.compile(r"^[\W_]+|[\W_]+$")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NAME = re.compile(r"(?<=[a-z,’'] )[A-Z][\w’'-]+")


def near_duplicate(a: str, b: str, names: Iterable[str] = ()) -> bool:
    """Return whether two memory sentences say the same, in whatever words.

    A logistic model, fitted to cases, weighs how much of their content words (stems, synonyms folded) and letters they
    share against the names and numbers that only one of them has. Where what is liked differs, or a name or number and
    little else, they are no duplicates but a contradiction: "likes red" and "hates red". Nor are they where each has a
    sign of its own, which stems leave out: "room B" and "room C".

    Args:
        a: A sentence.
        b: Another.
        names: Whom they are about. These names do not count, as they stand in every memory of one topic.
    """
    if content_digest(a) == content_digest(b):
        return True
    signs = likeness(a, b, names)
    if signs["opposed"] or signs["only_names_differ"]:
        return False
    if (signs["numbers_clash"] or signs["negation"]) and signs["share_of_longer"] >= _ALL_BUT_ONE:
        return False
    return model("duplicate", language_of(f"{a} {b}")).score(signs) > 0 and not differently_coded(a, b)


def at_odds(a: str, b: str) -> bool:
    """Return whether two sentences that are alike differ in what counts: a name, a number or other sign, a denial, a taste.

    However near an embedder finds them ("the door code is 4711", "the door code is 4712"), they do not say the same.
    """
    signs = likeness(a, b)
    return differently_coded(a, b) or any(
        signs[sign] for sign in ("opposed", "only_names_differ", "numbers_clash", "negation")
    )


def likeness(a: str, b: str, names: Iterable[str] = ()) -> dict[str, float]:
    """Return what speaks for and against two sentences' saying the same: the signs of data/weights.toml.

    Args:
        a: A sentence.
        b: Another.
        names: Whom they are about.
    """
    names = tuple(names)
    about = frozenset[str]().union(*(wording(name).words for name in names))
    first, second = wording(a), wording(b)
    mine, yours = first.words - about, second.words - about
    my_names, your_names = _names(a) - about, _names(b) - about
    light = my_names | your_names
    shared = weight(mine & yours, light)
    shorter, longer = sorted((weight(mine, light), weight(yours, light)))
    my_grams, your_grams = grams(_without(a, names)), grams(_without(b, names))
    my_years, your_years = (frozenset(filter(_YEAR.fullmatch, said.numbers)) for said in (first, second))
    my_numbers, your_numbers = first.numbers - my_years, second.numbers - your_years
    return {
        "shared": math.log1p(shared),
        "share_of_shorter": shared / max(shorter, 0.5),
        "share_of_longer": shared / max(longer, 0.5),
        "shorter": math.log1p(shorter),
        "longer": math.log1p(longer),
        "synonyms": math.log1p(sum(word[0] == "=" for word in mine & yours)),
        "grams_of_shorter": len(my_grams & your_grams) / max(min(len(my_grams), len(your_grams)), 1),
        "grams_of_longer": len(my_grams & your_grams) / max(len(my_grams), len(your_grams), 1),
        "numbers_shared": math.log1p(len(my_numbers & your_numbers)),
        "numbers_differ": float(my_numbers != your_numbers),
        "numbers_clash": float(_clash(my_numbers, your_numbers) or _clash(my_years, your_years)),
        "years_shared": float(bool(my_years & your_years)),
        "years_differ": float(bool(my_years) != bool(your_years)),
        "years_clash": float(_clash(my_years, your_years)),
        "names_shared": math.log1p(len(my_names & your_names)),
        "names_differ": float(bool(my_names - yours) != bool(your_names - mine)),
        "names_clash": float(_clash(my_names - yours, your_names - mine)),
        "negation": float(first.negative != second.negative),
        "only_names_differ": float(_clash(mine, yours) and mine ^ yours <= light),
        "opposed": float(opposed(mine, yours)),
    }


def _names(text: str) -> frozenset[str]:
    return frozenset(word for name in _NAME.findall(text) for word in wording(name).words)


def _without(text: str, names: Iterable[str]) -> str:
    for name in filter(None, names):
        text = text.replace(name, " ")
    return text


def _clash(a: frozenset[str], b: frozenset[str]) -> bool:
    """Return whether each has what the other has not."""
    return bool(a - b) and bool(b - a)


@lru_cache(maxsize=1 << 12)  # each memory is compared with every other of its topic
def content_digest(text: str) -> str:
    """Return the SHA-256 of `text` without case, outer punctuation and differences of space and width."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = _OUTER.sub("", " ".join(folded.split()))
    return hashlib.sha256(folded.encode("utf-8", "surrogatepass")).hexdigest()
