"""What a request to forget names: which words of a talk it means, and which its speaker wants to stay.

A request names a thing by its words ("my locker code") or by what it is ("my weight", of "82 kilos"; data/requests.toml, `kinds`).
Nearest by most words shared is meant, sentence by sentence, and what says the same again elsewhere in the talk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile

from remegraph.engine.forget_phrases import (
    Request,
    Telltales,
    clauses,
    echo,
    has_form,
    kinds_in,
    pattern_of,
    requests,
    telling_sentences,
    unasked,
    values,
)
from remegraph.models import Message
from remegraph.text.scripts import has_cjk, simplified
from remegraph.text.sentences import asks, sentences

__all__ = ["holds_words_of", "left_by", "means", "meant_by", "sought_by"]


_READ = ("en", "zh")
"""The languages in which what a request names is told from the words that ask."""


def holds_words_of(request: Request, text: str) -> bool:
    """Return whether a text holds all words by which a request names what it means."""
    names = echo(unasked(request.words))
    return bool(names) and names <= echo(text)


def means(request: Request, text: str) -> bool:
    """Return whether a request names what a text says: by a value, or by all of its words if there are two at least."""
    named = Telltales(unasked(request.words))
    if named.values:
        return named.said_in(text)
    return len(echo(named.text)) > 1 and holds_words_of(request, text)


def sought_by(request: Request) -> list[str]:
    """Return tokens of our index of which a text that a request means holds some."""
    return sorted(Telltales(unasked(request.words)).sought)


def meant_by(message: Message, asked: Sequence[Request], before: Sequence[Message]) -> dict[str, tuple[str, ...]]:
    """Return what of a talk requests name, by the ids of its messages: the parts that say it, also where it is repeated.

    Args:
        message: The message that asks.
        asked: Its requests.
        before: What was said in the talk before; of what tools gave, nothing is meant.
    """
    before = [each for each in before if each.role in {"user", "assistant"}]
    kept = _staying(message)
    found: dict[str, list[str]] = {}
    for request in asked:
        for message_id, parts in _named_by(request, before, kept).items():
            found.setdefault(message_id, []).extend(parts)
    told = [Telltales(part) for parts in found.values() for part in parts]
    answers = False
    for each in before if told else ():
        beside = answers and each.role != "user"
        if each.message_id not in found and (again := telling_sentences(each.text, told, beside=beside)):
            found[each.message_id] = again
        answers = each.message_id in found or beside
    return {message_id: tuple(dict.fromkeys(parts)) for message_id, parts in found.items()}


def _named_by(request: Request, before: Sequence[Message], kept: frozenset[str]) -> dict[str, list[str]]:
    """Return the parts that one request names, by message: what its own clause names, else what all of it does."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    if request.language not in _READ:
        return found
    for named in _namings(request):
        for each, clause, sentence in _best(named, before, kept) or _best(named, before, frozenset()):
            parts = named.parts(clause, sentence)
            found[each.message_id] += parts if parts != [sentence] else _without(sentence, kept - named.words)
            if each.role != "user" and asks(sentence):
                found.update(_answer(each, before))
        if found:
            break
    return found


def left_by(message: Message, text: str) -> tuple[str, ...]:
    """Return the clauses of a text that a request which points back to it takes, if it says that others stay; else nothing."""
    taken = _without(text, _staying(message))
    return () if taken == [text] else tuple(taken)


@dataclass(frozen=True, slots=True)
class _Named:
    """What a request names."""

    words: frozenset[str]
    kinds: frozenset[str]
    others: frozenset[str]
    """Persons and places whose it is."""
    strict: bool
    """Whether all its words count: it may point back to what was said just before."""

    @classmethod
    def of(cls, text: str, *, strict: bool, kinds: bool) -> _Named:
        """Return what words name; with `kinds`, by what it is, too."""
        named = unasked(text)
        return cls(echo(named), kinds_in(named) if kinds else frozenset(), _others_in(named), strict)

    def strength(self, clause: str, at: int | None) -> tuple[int, int, int]:
        """Return how likely a clause of a talk is meant, more first, and 0 first where it is not.

        By the words and kinds that it shares with the request, then by speaking of nobody else; what is known by its kind
        alone was said last.

        Args:
            clause: What was said.
            at: Its place in the talk, if a person said it or was asked it.
        """
        shared = len(self.words & echo(clause))
        alike = at is not None and not self.kinds.isdisjoint(kinds_in(clause))
        enough = shared == len(self.words) if self.strict else 2 * shared >= len(self.words)
        if not (alike or (shared and enough)):
            return 0, 0, 0
        return shared + alike, -len(_others_in(clause) - self.others), 0 if shared or at is None else at

    def parts(self, clause: str, sentence: str) -> list[str]:
        """Return a clause, with those after it that go on about it; all of its sentence if it does not say it by itself."""
        shared, told = self.words & echo(clause), echo(clause) - self.words
        parts = clauses(sentence)
        if not values(clause) and not (shared and len(told) > has_cjk(clause)):
            mine = [each for each in parts if _others_in(each) <= self.others]
            return mine if 0 < len(mine) < len(parts) else [sentence]
        after = parts[parts.index(clause) + 1 :]
        return [clause, *takewhile(lambda each: has_form("follows", [each]), after)]


def _best(named: _Named, before: Sequence[Message], stays: frozenset[str]) -> list[tuple[Message, str, str]]:
    """Return the clauses of a talk that are meant most likely, with their messages and sentences."""
    found = [
        (named.strength(clause, at if each.role == "user" or asks(span.text) else None), (each, clause, span.text))
        for at, each in enumerate(before, start=1)
        for span in sentences(each.text)
        for clause in clauses(span.text)
        if not (stays - named.words) & echo(clause)
    ]
    best = max((strength for strength, _ in found), default=(0, 0, 0))
    return [place for strength, place in found if strength == best and best[0]]


def _answer(question: Message, before: Sequence[Message]) -> dict[str, list[str]]:
    """Return what a person said first after a question, as a whole."""
    after = dropwhile(lambda each: each is not question, before)
    return next(({each.message_id: [each.text]} for each in after if each.role == "user"), {})


def _without(text: str, kept: frozenset[str]) -> list[str]:
    """Return the clauses of a text without those that hold words that stay; all of it where there are none, or only such."""
    parts = clauses(text)
    taken = [part for part in parts if not kept & echo(part)]
    return taken if 0 < len(taken) < len(parts) else [text]


def _staying(message: Message) -> frozenset[str]:
    """Return the words of what a message that asks says is to stay."""
    return frozenset().union(*(echo(each) for each in clauses(message.text) if has_form("stays", [each])))


def _namings(request: Request) -> Iterator[_Named]:
    """Yield what a request names: by the clauses that ask, then by all of it."""
    for clause in clauses(request.words):
        for each in requests(clause):
            yield _Named.of(clause, strict=each.back, kinds=True)
    whole = " ".join(each for each in clauses(request.words) if not has_form("stays", [each]))
    yield _Named.of(whole, strict=request.back, kinds=not request.back)


def _others_in(text: str) -> frozenset[str]:
    return frozenset(match.group() for match in pattern_of("others", text).finditer(simplified(text).casefold()))
