"""Requests to forget: how they are recognised, and what of a talk they name.

Phrases flag the plain forms of a request, in six languages, Traditional characters included (data/requests.toml). A match only withholds the
words until someone has decided. Most requests are worded differently; the model
that reads the block finds those, in any language. Quoted words were said by others.

In English and Chinese, what a request names is looked for in its talk: by its words ("my locker code") or by what it is ("my weight",
of "82 kilos"; `kinds` in the data). What shares most with it is meant, and its repetitions elsewhere in the talk.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import dropwhile, takewhile
from typing import Any

from remegraph.models import Message
from remegraph.models.quotes import find_quote
from remegraph.models.remnants import without
from remegraph.models.standing import QUARANTINE_BELOW
from remegraph.text import table
from remegraph.text.scripts import has_cjk, has_han, simplified
from remegraph.text.sentences import Span, asks, sentences
from remegraph.text.telltales import Telltales, echo, values

__all__ = [
    "FORGET_TOOL",
    "Request",
    "asked_in",
    "asking_for",
    "asking_parts",
    "clauses",
    "holds_words_of",
    "is_carried_out",
    "left_by",
    "means",
    "meant_by",
    "own_words",
    "requests",
    "revealing_sentences",
    "sought_by",
]


FORGET_TOOL = "forget_memory"
"""The tool by which an agent forgets: what is said in its turn repeats what shall be forgotten."""

_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|„[^“\n]*“|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|`[^`\n]*`")

_LONGEST = 400
"""Characters of a sentence that may be a request; longer ones were pasted."""

_LANGUAGES = ("en", "de", "zh", "es", "fr", "ja")

_CLAUSE = re.compile(r"[,;:]\s+|[，；：、،؛—]|\s(?=(?:and|but|while|because|und|aber|weil)\s)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Request:
    """One sentence that sounds like a request to forget."""

    words: str
    back: bool
    """Whether it may refer to what was said just before."""
    own: bool = False
    """Whether a clause of it says what it refers to."""
    language: str = "en"
    """One of the languages of data/requests.toml."""
    faint: bool = False
    """Whether it counts only if the person has mentioned before what it names."""


def requests(text: str) -> tuple[Request, ...]:
    """Return what a person's words ask to be forgotten, sentence by sentence; nearly always nothing."""
    found = [_read(part) for span in sentences(text) for part in _news_apart(span.text)]
    whole = _read(text) if not any(found) and len(found) > 1 else None
    return tuple(each for each in (*found, whole) if each is not None)


def own_words(message: Message) -> bool:
    """Return whether a person said a message themselves."""
    return message.role == "user" and not message.is_document and message.trust >= QUARANTINE_BELOW


def asked_in(message: Message) -> tuple[Request, ...]:
    """Return what a person asks in a message that they said themselves."""
    return requests(message.text) if own_words(message) else ()


def is_carried_out(turn: Sequence[Message]) -> bool:
    """Return whether the agent forgets by its tool in the turn that begins here."""
    for message in turn[1:]:
        if message.role == "user":
            return False
        if any(call.name == FORGET_TOOL for call in message.tool_calls):
            return True
    return False


def _read(said: str) -> Request | None:
    if len(said) > _LONGEST:
        return None
    text = unicodedata.normalize("NFKC", _QUOTED.sub(" ", said)).casefold().replace("’", "'").strip()
    texts = dict.fromkeys(_LANGUAGES, text) | {"zh": simplified(text)}
    for language, words in texts.items():
        phrases = _phrases()[language]
        hinted = any(
            map(words.__contains__, phrases["hints"])
        )  # a text without any part of a phrase is ruled out quickly
        if hinted and phrases["forget"].search(words) and not phrases["none"].search(words):
            left = phrases["own"].sub(" ", words) if "own" in phrases else words
            back = phrases["back"].search(left) is not None
            own = not back and "clause" in phrases and bool(phrases["clause"].search(words))
            return Request(said, back, own=own, language=language)
    return _faint(said, texts[_language(text)])


def _faint(said: str, words: str) -> Request | None:
    """Return a sentence that speaks of removal and of something personal, and not of something being edited."""
    language = _language(said)
    phrases = _phrases()[language]
    parts = [part for part in _CLAUSE.split(words) if phrases["takes"].search(part)]
    named = any(_kinds_in(part) for part in parts) and not any(
        phrases[name].search(words) for name in ("none", "edits")
    )
    return Request(said, back=False, own=True, language=language, faint=True) if named else None


def asking_parts(text: str, before: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of a message that ask to forget, with all that may belong to them; empty if that is all of it.

    Everything else stays: sentences and marked clauses that say something by themselves, and that share no word with
    what is meant. In doubt a part goes, as words that were to be forgotten cannot be taken back.

    Args:
        text: The message.
        before: What was said before and is meant, or mentions it.
    """
    parts = [part for span in sentences(text) for part in _news_apart(span.text)]
    asked = {at: found for at, part in enumerate(parts) if (found := _read(part))}
    if not asked:
        return ()  # only the whole message is a request
    said = [each.words for each in asked.values()]
    back, clause = any(each.back for each in asked.values()), all(each.own for each in asked.values())
    here = _has("says", [*parts[: min(asked)], clauses(said[0])[0]])
    known = bool(before) or clause or (back and here)
    ahead = not known or _has("wide", said) or (not here and _has("ahead", said))
    meant = [*before, *said]
    first = 0 if known and not back else min(asked)
    news = {
        at for at, part in enumerate(parts) if at >= first and at not in asked and _is_news(part, marked_only=ahead)
    }
    meant += [part for at, part in enumerate(parts) if at not in news]
    told = {at for at in news if not _echoes(parts[at], meant)}
    return tuple(dict.fromkeys(part for at, part in enumerate(parts) if at not in told)) if told else ()


def _unasked(words: str) -> str:
    """Return what a request names: its words without those that ask."""
    return _pattern("verbs", words).sub(" ", _alike(words))


def _news_apart(sentence: str) -> list[str]:
    """Return a sentence, split where a marked clause follows a complete request."""
    starts = [0, *(match.start() for match in _pattern("also", sentence).finditer(_alike(sentence)) if match.start())]
    if len(starts) == 1:
        return [sentence]
    parts = [sentence[start:end].strip() for start, end in zip(starts, [*starts[1:], len(sentence)], strict=True)]
    return [part for part in parts if part] if any(map(_read, parts)) else [sentence]


def _is_news(part: str, *, marked_only: bool) -> bool:
    """Return whether a part of a message says something by itself; with `marked_only`, whether its first words say so."""
    words = _alike(part)
    marked = _pattern("also", part).match(words)
    rest = words[marked.end() :] if marked else words
    if _pattern("clings", part).search(rest) or (not marked and (marked_only or _pattern("past", part).search(rest))):
        return False
    return bool(_pattern("says", part).search(rest) or (marked and _pattern("verb", part).search(rest)))


def _echoes(part: str, meant: Iterable[str]) -> bool:
    """Return whether a part of a message shares a word, or a kind of number, with what is meant."""
    said = echo(part)
    return any(not said.isdisjoint(echo(each)) for each in meant)


def _has(name: str, texts: Iterable[str]) -> bool:
    """Return whether one of these texts holds the pattern of this name (data/requests.toml), that of its language."""
    return any(_pattern(name, text).search(_alike(text)) for text in texts)


def _pattern(name: str, text: str) -> re.Pattern[str]:
    """Return the pattern of this name (data/requests.toml), in the language of a text: English, or Chinese."""
    pattern: re.Pattern[str] = _phrases()[_language(text)][name]
    return pattern


def _language(text: str) -> str:
    return "zh" if has_han(text) else "en"


def _alike(text: str) -> str:
    """Return a text in the letters that the phrases are written in; all places stay."""
    return text.casefold() if text.isascii() else simplified("".join(map(_form, text)))


@lru_cache(maxsize=1 << 13)
def _form(letter: str) -> str:
    form = unicodedata.normalize("NFKC", letter).casefold().replace("\u2019", "'")
    return form if len(form) == 1 else letter


@cache
def _phrases() -> Mapping[str, Any]:
    data = table("requests")
    found: dict[str, Any] = {}
    for language in _LANGUAGES:
        patterns = {name: each if name == "hints" else _any(each) for name, each in data[language].items()}
        found[language] = patterns
    return found


def _kinds_in(text: str) -> frozenset[str]:
    """Return which kinds of personal things a text speaks of, in any words (data/requests.toml)."""
    words = simplified(text).casefold()
    return frozenset(kind for kind, pattern in _kinds().items() if pattern.search(words))


@cache
def _kinds() -> Mapping[str, re.Pattern[str]]:
    return {kind: re.compile(pattern) for kind, pattern in table("requests")["kinds"].items()}


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in patterns), re.MULTILINE)


def revealing_sentences(text: str, tells: Iterable[Telltales], *, beside: bool = False, near: bool = True) -> list[str]:
    """Return the sentences of a text that repeat a statement; of a long one only the clauses, if they are enough.

    With `beside`, the text was said right next to them, so less reveals them. With `near`, it was said where
    they were, so each of their clauses reveals them; elsewhere only those that count in any text do, until a
    sentence has matched.
    """
    known = list(tells)
    first = known if near else [each for each in known if each.everywhere]

    def reveals(part: str, by: Sequence[Telltales] = known) -> bool:
        return any(each.echoed_in(part) if beside else each.found_in(part) for each in by)

    found: list[str] = []
    for span in sentences(text):
        if reveals(span.text, first):
            parts = [clause for clause in clauses(span.text) if reveals(clause)]
            left = without(span.text, parts, mark="\n")
            found += parts if parts and not reveals(left) else [span.text]
    return found


def asking_for(text: str, quotes: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return the sentences of a text that hold quotes; of a sentence that says something else, too, the clauses.

    `others` are words of the same text that something else was learned from.
    """
    asks, tells = ([place for each in found if (place := find_quote(each, text))] for found in (quotes, others))
    found: list[str] = []
    for span in sentences(text):
        if _meets(span.start, span.end, asks):
            parts = list(_parts(text, span.start, span.end)) if _meets(span.start, span.end, tells) else [span]
            found += [part.text for part in parts if len(parts) == 1 or _meets(part.start, part.end, asks)]
    return found


def _meets(start: int, end: int, places: Iterable[tuple[int, int]]) -> bool:
    return any(start < last and first < end for first, last in places)


def _parts(text: str, start: int, end: int) -> Iterator[Span]:
    for part in _CLAUSE.split(text[start:end]):
        if part.strip():
            start = text.index(part, start)
            yield Span(start, start + len(part), part.strip())


def clauses(text: str) -> list[str]:
    """Return the parts of a text that say something each: sentences, and what commas and conjunctions divide."""
    parts = (part.strip() for span in sentences(text) for part in _CLAUSE.split(span.text))
    return [part for part in parts if part]


_READ = ("en", "zh")
"""The languages in which what a request names can be separated from the words that ask."""


def holds_words_of(request: Request, text: str) -> bool:
    """Return whether a text holds all words by which a request names what it means."""
    names = echo(_unasked(request.words))
    return bool(names) and names <= echo(text)


def means(request: Request, text: str) -> bool:
    """Return whether a request names what a text says: by a value, or by all of its words if there are two at least."""
    named = Telltales(_unasked(request.words))
    if named.values:
        return named.found_in(text)
    return len(echo(named.text)) > 1 and holds_words_of(request, text)


def sought_by(request: Request) -> list[str]:
    """Return tokens of our index; every text that a request may mean holds at least one of them."""
    return sorted(Telltales(_unasked(request.words)).sought)


def meant_by(message: Message, asked: Sequence[Request], before: Sequence[Message]) -> dict[str, tuple[str, ...]]:
    """Return what of a talk requests name, by the ids of its messages: the parts that say it, also where it is repeated.

    Args:
        message: The message that asks.
        asked: Its requests.
        before: What was said in the talk before; tool results are never meant.
    """
    before = [each for each in before if each.role in {"user", "assistant"}]
    said, kept = list(_clauses_of(before)), _staying(message)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for request in asked:
        if request.language in _READ:
            for named, clause in _named_by(request, said, kept):
                found[clause.message.message_id] += named.parts(clause, kept)
                if clause.answered:
                    found |= _answer(clause.message, before)
    tells = [Telltales(part) for parts in found.values() for part in parts]
    answers = False
    for each in before if tells else ():
        beside = answers and each.role != "user"
        if each.message_id not in found and (again := revealing_sentences(each.text, tells, beside=beside)):
            found[each.message_id] = again
        answers = each.message_id in found or beside
    return {message_id: tuple(dict.fromkeys(parts)) for message_id, parts in found.items()}


def left_by(message: Message, text: str) -> tuple[str, ...]:
    """Return the clauses of a text that a request referring back to it takes, if it says that others stay."""
    taken = _without(text, _staying(message))
    return () if taken == [text] else tuple(taken)


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause of a talk, and what it speaks of."""

    message: Message
    at: int
    """The place of the message in the talk, from 1."""
    text: str
    sentence: str
    answered: bool
    """Whether an agent asks it, and the person's next message is the answer."""
    words: frozenset[str]
    kinds: frozenset[str]
    others: frozenset[str]
    """Persons and places that it belongs to."""


@dataclass(frozen=True, slots=True)
class _Named:
    """What a request names."""

    words: frozenset[str]
    kinds: frozenset[str]
    others: frozenset[str]
    strict: bool
    """Whether all its words count: it may refer back to what was said just before."""

    @classmethod
    def of(cls, text: str, *, strict: bool, kinds: bool) -> _Named:
        """Return what words name; with `kinds`, by what it is, too."""
        named = _unasked(text)
        return cls(echo(named), _kinds_in(named) if kinds else frozenset(), _others_in(named), strict)

    def strength(self, clause: _Clause) -> tuple[int, int, int]:
        """Return how likely a clause is meant, more first, and 0 first where it is not.

        By shared words and kinds, then by not speaking of anyone else; what a person said, or was asked,
        and is known by its kind alone was said last.
        """
        shared = len(self.words & clause.words)
        alike = (clause.message.role == "user" or clause.answered) and not self.kinds.isdisjoint(clause.kinds)
        enough = shared == len(self.words) if self.strict else 2 * shared >= len(self.words)
        if not (alike or (shared and enough)):
            return 0, 0, 0
        return shared + alike, -len(clause.others - self.others), 0 if shared else clause.at

    def parts(self, clause: _Clause, kept: frozenset[str]) -> list[str]:
        """Return a clause, with those after it that continue it.

        If the clause is not enough by itself: the whole sentence, without clauses about someone else or to be kept.
        """
        parts = clauses(clause.sentence)
        alone = self.words & clause.words and len(clause.words - self.words) > has_cjk(clause.text)
        if alone or values(clause.text):
            after = parts[parts.index(clause.text) + 1 :]
            return [clause.text, *takewhile(lambda each: _has("follows", [each]), after)]
        mine = [each for each in parts if _others_in(each) <= self.others]
        return mine if 0 < len(mine) < len(parts) else _without(clause.sentence, kept - self.words)


def _clauses_of(talk: Sequence[Message]) -> Iterator[_Clause]:
    for at, each in enumerate(talk, start=1):
        for span in sentences(each.text):
            answered = each.role != "user" and asks(span.text)
            for part in clauses(span.text):
                yield _Clause(each, at, part, span.text, answered, echo(part), _kinds_in(part), _others_in(part))


def _named_by(request: Request, said: Sequence[_Clause], kept: frozenset[str]) -> list[tuple[_Named, _Clause]]:
    """Return the clauses that a request names: by a clause of its own, else by all of it; what is kept only where nothing else is."""
    for named in _namings(request):
        staying = kept - named.words
        found = _best(named, [each for each in said if not staying & each.words]) or _best(named, said)
        if found:
            return [(named, each) for each in found]
    return []


def _best(named: _Named, said: Sequence[_Clause]) -> list[_Clause]:
    ranked = [(named.strength(each), each) for each in said]
    best = max((strength for strength, _ in ranked), default=(0, 0, 0))
    return [each for strength, each in ranked if strength == best and best[0]]


def _answer(question: Message, before: Sequence[Message]) -> dict[str, list[str]]:
    """Return what a person said first after a question, as a whole."""
    after = dropwhile(lambda each: each is not question, before)
    return next(({each.message_id: [each.text]} for each in after if each.role == "user"), {})


def _without(text: str, kept: frozenset[str]) -> list[str]:
    """Return the clauses of a text without those that hold words to keep; the whole text if there are none, or only such."""
    parts = clauses(text)
    taken = [part for part in parts if not kept & echo(part)]
    return taken if 0 < len(taken) < len(parts) else [text]


def _staying(message: Message) -> frozenset[str]:
    """Return the words of what a request says is to be kept."""
    return frozenset().union(*(echo(each) for each in clauses(message.text) if _has("stays", [each])))


def _namings(request: Request) -> Iterator[_Named]:
    """Yield what a request names: by the clauses that ask, then by all of it."""
    for clause in clauses(request.words):
        for each in requests(clause):
            yield _Named.of(clause, strict=each.back, kinds=True)
    whole = " ".join(each for each in clauses(request.words) if not _has("stays", [each]))
    yield _Named.of(whole, strict=request.back, kinds=not request.back)


def _others_in(text: str) -> frozenset[str]:
    return frozenset(match.group() for match in _pattern("others", text).finditer(simplified(text).casefold()))
