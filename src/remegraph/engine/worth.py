"""Whether a sentence tells something by itself: what is remembered must still mean something when it stands alone.

Greetings, thanks, requests and praise for what the other said tell nothing; "It was so much fun" only refers back. All of
it stays in the ledger, and recall of messages finds it there.
"""

from __future__ import annotations

import re
import tomllib
from datetime import datetime
from functools import cache
from importlib.resources import files

from remegraph.language.scripts import language_of
from remegraph.language.times import resolve
from remegraph.rules.salience import telling_words
from remegraph.rules.signs import signs_in
from remegraph.rules.wording import weight, wording

__all__ = ["tells", "without_question"]

_EMPTY = ("reaction", "request", "pointer")
"""Beginnings of clauses that tell nothing, unless they name something or bear one of these signs."""

_SIGNS = ("own", "refuses", "cannot", "routine", "health")
"""Of the speaker's own, how something is to be, health: worth remembering, however it begins."""

_EPISODE = 3
"""What goes on telling is enough with so many telling words."""

_EDGE = " ,.:!，：。！、~～…—–-"
_CLAUSE = re.compile(r"[,;:，；：–—]|\s-\s|\s(?:but|and|so)\s(?=(?:i|we|my)\b)", re.IGNORECASE)
_QUESTION = re.compile(r"(?:^|[,，;；:：—–])[^,，;；:：—–]*[?？]\W*$")
_CALLED = re.compile(r"^[A-Z][\w’'-]+,\s+|,\s+[A-Z][\w’'-]+(?=\s*(?:[,.!?]|$))")
_NAMED = re.compile(r"(?<=[a-z,’'0-9] )(?!I\b)[A-Z]|\d")


def without_question(sentence: str) -> str:
    """Return a sentence without the question that it ends with: "I fly on Friday, what shall I pack?".

    Args:
        sentence: A sentence, as it was said.
    """
    return _QUESTION.sub("", sentence).strip()


def tells(sentence: str, said_at: datetime) -> bool:
    """Return whether a sentence tells something of somebody or something, without the sentences around it.

    Args:
        sentence: A sentence or a clause of one.
        said_at: When it was said: a time that it names tells something.
    """
    if not telling_words(_matter(sentence, said_at)):
        return False
    said = wording(sentence)
    short = weight(said.words) + len(said.numbers) < _EPISODE
    return not (short and _begins("episode", sentence)) or _names(sentence, said_at)


def _matter(sentence: str, said_at: datetime) -> str:
    """Return what is left once names that call the hearer, openers, and clauses that tell nothing are cut off."""
    rest, before = sentence, ""
    while rest != before:
        before = rest
        rest = _CALLED.sub("", rest).lstrip(_EDGE)
        empty = next(filter(None, (_begins(how, rest) for how in _EMPTY)), None)
        clause, *others = _CLAUSE.split(rest[empty.end() :], maxsplit=1) if empty else ("",)
        opener = _begins("opener", rest)
        if empty and not _matters(clause) and not _names(clause, said_at):
            rest = "".join(others)
        elif opener:
            rest = rest[opener.end() :]
    return rest


def _matters(clause: str) -> bool:
    signs = signs_in(clause)
    return any(signs[kind] for kind in _SIGNS)


def _names(text: str, said_at: datetime) -> bool:
    """Return whether a text holds a name, a number or a time, known without what was said before."""
    return bool(_NAMED.search(text)) or any(mention.kind != "instant" for mention in resolve(text, said_at))


def _begins(how: str, text: str) -> re.Match[str] | None:
    return _beginnings(how)[language_of(text)].match(text)


@cache
def _beginnings(how: str) -> dict[str, re.Pattern[str]]:
    table = tomllib.loads((files("remegraph.engine") / "data" / "worth.toml").read_text(encoding="utf-8"))[how]
    return {language: re.compile("|".join(patterns), re.IGNORECASE) for language, patterns in table.items()}
