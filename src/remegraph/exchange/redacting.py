"""Takes what is private out of what comes in, before anything is made of it: nothing further inside ever has it."""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from remegraph.errors import InputError
from remegraph.exchange.cleaning import Cleaner
from remegraph.exchange.offers import Offer
from remegraph.models import Message
from remegraph.models.base import Record
from remegraph.ports import Embedder
from remegraph.rules.desensitizing import Kind, Pseudonyms

if TYPE_CHECKING:
    from remegraph.ports import Vectors

__all__ = ["UNREDACTED", "RedactingEmbedder", "Redactor"]

R = TypeVar("R", bound=Record)


class Redactor:
    """Puts a placeholder for each value of some kinds, the same one wherever that value comes in.

    Ids, threads, scopes, and the names of tools stay as they are: they are compared, and the host gave them.

    Args:
        kinds: What is looked for; nothing is changed where there are none.
        key: Secret; the placeholders follow from it.
    """

    def __init__(self, kinds: frozenset[Kind], key: bytes) -> None:
        self._kinds = kinds
        self._table = Pseudonyms(hmac.digest(key, b"redaction", "sha256"))

    def text(self, text: str) -> str:
        """Return a text without what is private. A very long one is searched part by part, cut between lines or words.

        Args:
            text: Any text.
        """
        return str(self.json(text))

    def json(self, value: Any) -> Any:
        """Return JSON without what is private in its texts, its keys, and numbers that are somebody's.

        Args:
            value: JSON.
        """
        return _Parted(frozenset(), self._kinds, self._table).clean(value) if self._kinds else value

    def record(self, record: R, *fields: str) -> R:
        """Return a record without what is private in some of its fields; the others, as ids and times, stay.

        Args:
            record: The record.
            fields: Names of the fields that hold what somebody said.
        """
        if not self._kinds:
            return record
        told = json.loads(record.to_json())
        said = self.json({name: told[name] for name in fields})
        return type(record).model_validate({**dict(record), **said})

    def offer(self, offer: Offer) -> Offer:
        """Return an offer without what is private, in its raw record, too.

        Args:
            offer: Checked: a signature fits no other words.
        """
        if not self._kinds:
            return offer
        content = type(offer.content).model_validate(self.json(json.loads(offer.content.to_json())))
        tags = tuple(map(self.text, offer.tags))
        return replace(offer, title=self.text(offer.title), content=content, raw=self.json(offer.raw), tags=tags)

    def message(self, message: Message) -> Message:
        """Return a message without what is private; bytes were taken out of it before.

        Args:
            message: As it came in.
        """
        if not self._kinds:
            return message
        calls = (call.model_copy(update={"args": self.json(call.args)}) for call in message.tool_calls)
        fields = {
            "content": self.json(message.content),
            "tool_calls": tuple(calls),
            "name": self.text(message.name),
            "task": self.text(message.task),
            "extra": self.json(message.extra),
        }
        return message.model_copy(update=fields)


UNREDACTED = Redactor(frozenset(), b"")
"""Changes nothing."""


class RedactingEmbedder:
    """An embedder that is given nothing private, whoever asks: a query, a host's own store, a task in words.

    Args:
        embedder: Makes the vectors.
        redactor: Says what is private.
    """

    def __init__(self, embedder: Embedder, redactor: Redactor) -> None:
        self._embedder = embedder
        self._redactor = redactor

    @property
    def name(self) -> str:
        """That of the embedder."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """That of the embedder."""
        return self._embedder.dimension

    @property
    def semantic(self) -> bool:
        """Whether the embedder knows meaning."""
        return self._embedder.semantic

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of the texts without what is private; see `ports.Embedder`."""
        return self._embedder.embed([self._redactor.text(text) for text in texts])


class _Parted(Cleaner):
    """Cleans texts of any length: what is too long to be searched at once is cut in two."""

    def _text(self, text: str, path: str, key: str) -> str:
        try:
            return super()._text(text, path, key)
        except InputError:
            cut = _cut(text)
            return self._text(text[:cut], path, key) + self._text(text[cut:], path, key)


def _cut(text: str) -> int:
    """Return where a text is cut: after a line if it can be, else after a word."""
    half = len(text) // 2
    gaps = (text.rfind(gap, half // 2, half) + 1 for gap in ("\n", " "))
    return next(filter(None, gaps), half)
