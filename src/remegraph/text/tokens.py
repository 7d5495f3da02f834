"""Words as they are indexed and asked for."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

import snowballstemmer

from remegraph.text import word_list
from remegraph.text.scripts import CJK

__all__ = ["asked_tokens", "estimate_tokens", "query_tokens", "stop_words", "token_counts", "tokenize"]

_LONGEST = 64
_CHARACTERS_PER_LLM_TOKEN = 4
_LANGUAGES = ("stopwords_en.txt", "stopwords_de.txt", "stopwords_es.txt", "stopwords_fr.txt")

# Thai, Lao, Tibetan, Myanmar and Khmer put no spaces between words either. Their digits and signs may come along.
_UNSPACED = CJK + "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0f40-\u0fbc\u1000-\u1049\u1050-\u109f\u1780-\u17d3"
# Vowel signs and accents are not letters to `re`, but they are part of a word.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
_LETTER = rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])"
_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)"
_WORD = re.compile(rf"(?P<run>[{_UNSPACED}]+)|{_NUMBER}|{_LETTER}+(?:['\u2019]{_LETTER}+)*")
_ASCII_WORD = re.compile(rf"{_NUMBER}|[a-z0-9]+(?:'[a-z0-9]+)*")
_LATIN = re.compile("[a-z\u00df-\u024f]+")
_ACCENTS = re.compile("[\u0300-\u036f]")
_CJK_CHARACTER = re.compile(f"[{CJK}]")

_DIGIT = re.compile(r"[^\D0-9]")
# Arabic and Hindi are known by their script; all that is written in Latin letters is stemmed as English, question and text.
_SCRIPTS = (
    (re.compile("[\u0621-\u0652\u0670]+"), snowballstemmer.stemmer("arabic")),
    (re.compile("[\u0900-\u0963]+"), snowballstemmer.stemmer("hindi")),
)
# What is written as one word with the word it belongs to: articles of French and Italian, "and the" of Arabic.
_ELIDED = re.compile(r"\A(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quelqu|un|(?:d|n|s)?(?:el|al|ul)l)'(?=\w{2})")
_JOINED = re.compile("\\A(?:[\u0648\u0641\u0628\u0643]\u0627\u0644|\u0644\u0644)(?=\\w{2})")
_stemmer = snowballstemmer.stemmer("english")
_stemming = threading.Lock()


@lru_cache(maxsize=1 << 14)
def _stem(word: str) -> str:
    return _one(_stemmed(word))


@lru_cache(maxsize=1 << 15)
def _one(stem: str) -> str:
    """Return a stem as one object: what was derived from texts outlives the cache above, and would hold words twice.

    Where `sys.intern` did that, its table grew by 2 MB in one step, and the first releases of Python 3.12 never release what
    is in it (python/cpython#113993).
    """
    return stem


def _stemmed(word: str) -> str:
    word = _ELIDED.sub("", word.replace("\u2019", "'").removesuffix("'s")).replace("'", "").replace(",", "")
    if not _LATIN.fullmatch(word):
        stemmer = next((stemmer for script, stemmer in _SCRIPTS if script.fullmatch(word)), None)
        with _stemming:
            return (str(stemmer.stemWord(_JOINED.sub("\u0627\u0644", word))) if stemmer else word)[:_LONGEST]
    if not word.isascii():
        word = _ACCENTS.sub("", unicodedata.normalize("NFKD", word))
    with _stemming:  # the stemmer keeps the word that it works on in itself
        return str(_stemmer.stemWord(word[:_LONGEST]))


def _grams(run: str) -> Iterator[str]:
    yield from (character for character in run if character.isalnum())
    yield from (run[at : at + 2] for at in range(len(run) - 1))


def _ascii_words(text: str) -> list[str]:
    return _ASCII_WORD.findall(text.lower())


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the normalised words of a text, and whether each is a run of a script without spaces."""
    if text.isascii():
        yield from ((word, False) for word in _ascii_words(text))
        return
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    folded = _DIGIT.sub(lambda digit: str(int(digit[0])), folded)
    for match in _WORD.finditer(folded):
        yield match.group(), match.lastgroup == "run"


def tokenize(text: str) -> list[str]:
    """Return the words of `text` as they are indexed, in order, with repeats.

    Words are NFKC-normalised and casefolded, digits of any script are 0 to 9; Latin ones lose accents and possessives and
    are stemmed (Snowball, English), Arabic and Hindi ones by their own rules. Runs of scripts without spaces (Chinese, Japanese, Korean, Thai, ...) become single characters and
    overlapping pairs. A token holds letters, digits and their marks only - no space, NUL or lone surrogate - and at
    most 64 characters.
    """
    if text.isascii():  # without a step per word in Python: recording messages is mostly this
        return [token for token in map(_stem, _ascii_words(text)) if token]
    tokens: list[str] = []
    for word, is_run in _words(text):
        if is_run:
            tokens.extend(_grams(word))
        else:
            tokens.append(_stem(word))
    return [token for token in tokens if token]


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """Return the English and Chinese words that say nothing about what a text is about, casefolded."""
    return word_list("stopwords_en.txt") | word_list("stopwords_zh.txt")


def query_tokens(text: str) -> list[str]:
    """Return the words to search for when `text` is asked: those of `tokenize`, without stop words, each once.

    If the question holds stop words only, all are kept.
    """
    return _kept(list(_words(text)), stop_words()) or list(dict.fromkeys(tokenize(text)))


def asked_tokens(text: str) -> list[str]:
    """Return the words that a question looks for: `query_tokens`, without the stop words of its language either.

    That is German, Spanish or French where more of its words, two at least, are stop words of it than are of English.
    """
    words = list(_words(text))
    said = [word.replace("\u2019", "'") for word, is_run in words if not is_run]
    most = max(map(word_list, _LANGUAGES), key=lambda known: max(1, sum(word in known for word in said)))
    return _kept(words, stop_words() | most) or query_tokens(text)


def _kept(words: Iterable[tuple[str, bool]], stop: frozenset[str]) -> list[str]:
    """Return the tokens of words that are no stop words, each once."""
    kept: list[str] = []
    for word, is_run in words:
        if is_run:
            kept.extend(gram for gram in _grams(word) if gram not in stop)
        elif word.replace("\u2019", "'") not in stop:
            kept.append(_stem(word))
    return [token for token in dict.fromkeys(kept) if token]


def token_counts(text: str) -> dict[str, int]:
    """Return how often `text` holds each of its tokens."""
    counts: dict[str, int] = {}
    for token in tokenize(text):  # half the time of a Counter, for so few
        counts[token] = counts.get(token, 0) + 1
    return counts


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a language model reads in `text`.

    One per Chinese, Japanese or Korean character and one per four others, rounded up: the rule of thumb for byte-pair
    vocabularies on prose, the same for every model.
    """
    cjk = len(_CJK_CHARACTER.findall(text))
    return cjk - (cjk - len(text)) // _CHARACTERS_PER_LLM_TOKEN
