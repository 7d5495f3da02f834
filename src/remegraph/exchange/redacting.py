"""Takes what is private out of what comes in, before anything is made of it: nothing further inside ever has it."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from remegraph.exchange.cleaning import Cleaner
from remegraph.exchange.offers import Offer
from remegraph.models import Message
from remegraph.models.base import Record
from remegraph.ports import Embedder
from remegraph.rules.desensitizing import (
    PLACEHOLDER,
    Cleaned,
    Finding,
    Kind,
    Pseudonyms,
    findings,
    replaced,
    united,
)

if TYPE_CHECKING:
    from remegraph.ports import Vectors

__all__ = ["UNREDACTED", "RedactingEmbedder", "Redactor"]

R = TypeVar("R", bound=Record)

_IDS = frozenset(
    {"id", "call_id", "tool_call_id", "tool_use_id", "message_id", "response_id", "run_id", "thread_id", "sha256"}
)
"""Keys of messages, as providers and frameworks write them: a host compares by these, and sends some of them back."""

_LONGEST_PLACEHOLDER = 32
_DEEPEST = 50
"""Levels of JSON that are looked into one by one."""
_WINDOW, _OVERLAP = 10_000, 4_000
"""Characters that are searched at once; the longest value, a key in many lines, has room in what two windows share."""


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
        """Return a text without what is private; one that is JSON stays JSON.

        Args:
            text: Any text, of any length.
        """
        return cast("str", self.json(text))

    def json(self, value: Any, *, keep: frozenset[str] = frozenset()) -> Any:
        """Return JSON without what is private in its texts, its keys, and numbers that are somebody's.

        Args:
            value: JSON.
            keep: Keys whose values are ids or names of tools, and stay.
        """
        return _Thorough(frozenset(), self._kinds, self._table, keep=keep).clean(value) if self._kinds else value

    def record(self, record: R, *fields: str, keep: frozenset[str] = frozenset()) -> R:
        """Return a record without what is private in some of its fields; the others, as ids and times, stay.

        Args:
            record: The record.
            fields: Names of the fields that hold what somebody said.
            keep: Keys within them whose values are ids or names of tools, and stay.
        """
        if not self._kinds:
            return record
        told = json.loads(record.to_json())
        said = self.json({name: told[name] for name in fields}, keep=keep)
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
            "content": self.json(message.content, keep=_IDS),
            "tool_calls": tuple(calls),
            "name": self.text(message.name),
            "task": self.text(message.task),
            "extra": self.json(message.extra, keep=_IDS),
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


@dataclass
class _Thorough(Cleaner):
    """Cleans what may come from anywhere: JSON within texts, texts of any length, trees of any depth.

    Args:
        keep: Keys whose values are ids and stay.
    """

    keep: frozenset[str] = frozenset()
    depth: int = 0

    def clean(self, value: Any, path: str = "$", key: str = "") -> Any:
        """Return JSON with a placeholder for all that may not come in; what is nested very deeply becomes text."""
        if self.depth >= _DEEPEST and isinstance(value, Mapping | list | tuple):
            value = _written(value)
        self.depth += 1
        try:
            return super().clean(value, path, key)
        finally:
            self.depth -= 1

    def _entry(self, name: Any, value: Any, path: str) -> tuple[Any, Any]:
        if name in self.keep and isinstance(value, str | int):
            return name, value
        return super()._entry(name, value, path)

    def _text(self, text: str, path: str, key: str) -> str:
        if text[:1].isspace() or text[:1] in {"{", "["}:
            text = self._document(text)
        return super()._text(text, path, key)

    def _document(self, text: str) -> str:
        """Return a text that is JSON without what is private in it: still JSON."""
        try:
            value = json.loads(text) if self.depth <= _DEEPEST else None
        except (ValueError, RecursionError):
            return text
        if not isinstance(value, dict | list):
            return text
        cleaned = replace(self, keep=frozenset()).clean(value)
        return text if cleaned == value else json.dumps(cleaned, ensure_ascii=False)

    def _searched(self, text: str) -> Cleaned:
        if len(text) <= _WINDOW:
            return super()._searched(text)
        while found := united(self._seen(text)):
            text = replaced(text, found, self.table)
        return Cleaned(text, {}, self.table)

    def _seen(self, text: str) -> Iterator[Finding]:
        """Yield what is private in a long text: looked at by windows, each of which begins well within the last one."""
        for at in range(0, len(text), _WINDOW - _OVERLAP):
            start, end = _beside(text, at), _beside(text, at + _WINDOW)
            for each in findings(text[start:end], kinds=self.kinds):
                yield Finding(start + each.start, start + each.end, each.kind)


def _beside(text: str, at: int) -> int:
    """Return where a text is cut so that no placeholder is: half of one may look private."""
    around = PLACEHOLDER.finditer(text, max(0, at - _LONGEST_PLACEHOLDER), at + _LONGEST_PLACEHOLDER)
    return next((each.start() for each in around if each.start() < at < each.end()), at)


def _written(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "(nested too deeply to be searched)"
