"""Finds a quote again in the words that it claims to come from."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from remegraph.language.scripts import CJK
from remegraph.models import Evidence, Quote, StoredMessage

__all__ = ["cited_text", "find_quote", "quoted"]

_CJK_CHARACTER = re.compile(f"[{CJK}]")
_QUOTATION_MARKS = frozenset(
    "'\"`\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2032\u2033\u2039\u203a\u00ab\u00bb\u300c\u300d\u300e\u300f\u301d\u301e"
)
_DASHES = frozenset("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b")
_FULL_STOPS = frozenset("\u3002\uff61")


def find_quote(quote: str, text: str) -> tuple[int, int] | None:
    """Return where `quote` stands in `text`, or None.

    It is looked for to the letter, then with what language models change when they copy folded away: case, runs of
    white space (between Chinese characters: any white space), kinds of quotation marks and dashes, full and half width,
    punctuation around the quote and an ellipsis after it. Words are never folded: a quote that begins or ends within a
    word of the text ("likes" in "dislikes", "12" in "2012") is not found.

    Args:
        quote: Words that a model or a person says it read.
        text: The words of one message.

    Returns:
        Start and end of the first such place, as indices of `text`.
    """
    if not quote.strip():
        return None
    start = text.find(quote)
    while start >= 0:
        if _between_words(text, start, start + len(quote)):
            return start, start + len(quote)
        start = text.find(quote, start + 1)
    return _find_folded(quote, text)


def quoted(
    evidence: Iterable[Evidence], messages: Mapping[str, StoredMessage]
) -> tuple[tuple[Quote, ...], tuple[str, ...]]:
    """Return evidence found again in the raw messages, and the ids of messages that do not show it.

    Args:
        evidence: What bears a memory out.
        messages: What can be seen of its messages, by id.
    """
    quotes: list[Quote] = []
    missing: list[str] = []
    for item in evidence:
        message = messages.get(item.message_id)
        span = find_quote(item.quote, cited_text(item, message)) if message else None
        if message is None or span is None:
            missing.append(item.message_id)
        else:
            quotes.append(Quote(message=message, start=span[0], end=span[1], attachment=item.attachment))
    return tuple(quotes), tuple(missing)


def cited_text(evidence: Evidence, message: StoredMessage) -> str:
    """Return the text that evidence cites: the words of its message, or what is in an attachment of it.

    Args:
        evidence: Names the message, and the attachment.
        message: That message.
    """
    return (message.reading(evidence.attachment) or "") if evidence.attachment else message.text


def _find_folded(quote: str, text: str) -> tuple[int, int] | None:
    wanted = _strip(_fold(quote)[0])
    if not wanted:
        return None
    folded, origin = _fold(text)
    at = folded.find(wanted)
    while at >= 0:
        start, end = origin[at], origin[at + len(wanted) - 1] + 1
        whole = (at == 0 or origin[at - 1] < start) and (
            at + len(wanted) == len(origin) or origin[at + len(wanted)] >= end
        )
        if whole and _between_words(text, start, end):
            return start, end
        at = folded.find(wanted, at + 1)
    return None


def _fold(text: str) -> tuple[str, list[int]]:
    """Return the folded text and, for each of its characters, the index in `text` that it comes from."""
    folded: list[str] = []
    origin: list[int] = []
    gap = -1  # where a run of white space began that is not yet written
    for index, character in enumerate(text):
        new = _fold_character(character)
        if new == " ":
            gap = index if gap < 0 else gap
            continue
        if not new or (new == "-" and folded and folded[-1] == "-" and gap < 0):
            continue
        if gap >= 0 and folded and not (_CJK_CHARACTER.match(folded[-1]) or _CJK_CHARACTER.match(new)):
            folded.append(" ")
            origin.append(gap)
        gap = -1
        folded.extend(new)
        origin.extend([index] * len(new))
    return "".join(folded), origin


@lru_cache(maxsize=1 << 14)
def _fold_character(character: str) -> str:
    if character.isspace():
        return " "
    if character in _QUOTATION_MARKS:
        return "'"
    if character in _DASHES:
        return "-"
    if character in _FULL_STOPS:
        return "."
    if unicodedata.category(character) == "Cf":  # zero width, soft hyphen, direction
        return ""
    new = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    return " " if new.isspace() else new.replace(" ", "")


def _strip(folded: str) -> str:
    """Cut off what is no word at both ends."""
    start, end = 0, len(folded)
    while start < end and not _is_word(folded[start]):
        start += 1
    while end > start and not _is_word(folded[end - 1]):
        end -= 1
    return folded[start:end]


def _is_word(character: str) -> bool:
    # Letters, marks, numbers, currency and other symbols: all but punctuation, spaces and modifiers.
    return unicodedata.category(character)[0] in "LMN" or unicodedata.category(character) in ("Sc", "So", "Sm")


def _between_words(text: str, start: int, end: int) -> bool:
    return not (_same_word(text, start) or _same_word(text, end))


def _same_word(text: str, index: int) -> bool:
    """Return whether the characters before and at `index` belong to one word."""
    if not 0 < index < len(text):
        return False
    before, after = text[index - 1], text[index]
    if unicodedata.category(after)[0] == "M":
        return True
    spelled = before.isalnum() and after.isalnum()
    return spelled and not (_CJK_CHARACTER.match(before) or _CJK_CHARACTER.match(after))
