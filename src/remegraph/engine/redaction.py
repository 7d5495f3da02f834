"""Redaction: replace private data in what comes in, before anything is made of it, and in what goes out."""

from __future__ import annotations

import hmac
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from remegraph.models import Message
from remegraph.models.base import Record
from remegraph.ports import Embedder
from remegraph.text.desensitization import Cleaned, Placeholders, Pseudonyms, desensitize, findings, replaced
from remegraph.text.findings import KINDS, PLACEHOLDER, Finding, Kind, united

if TYPE_CHECKING:
    from remegraph.ports import Vectors

__all__ = ["UNREDACTED", "Cleaner", "RedactingEmbedder", "Redactor"]

_SECRET = re.compile(
    r"pass(?:word|wd|phrase|code)|pwd|secret|token(?!iz|[-_ ]?(?:id|type)s?\b)|credential|(?:api|access|private|auth)[-_ ]?key|密码|口令|密钥|令牌",
    re.IGNORECASE,
)
"""Keys whose values are secret, whatever they look like."""
_COUNTED = re.compile(r"tokens|token[-_ ]?(?:count|usage|limit|budget)", re.IGNORECASE)
"""Keys whose numbers are figures, such as the tokens that a model used."""
_OPEN = re.compile(rf"\s*|(?:[A-Za-z]+ )?\{{[^{{}}]+\}}|{PLACEHOLDER.pattern}")
"""Text that is not a value yet: empty, a slot, as in "Bearer {token}", or a placeholder."""

_LONGEST_KEY = 100
"""Characters of a key that may announce its value."""
_SHORTEST_NUMBER = 6
"""Digits from which a number may be a phone's, a card's or an account's."""


@dataclass
class Cleaner:
    """Cleans the content of one memory: the same value gets the same placeholder throughout.

    A value is read together with its key, which may say what it is: {"password": "..."}.
    """

    names: frozenset[str]
    kinds: frozenset[Kind] = frozenset(KINDS)
    table: Placeholders = field(default_factory=Placeholders)
    removed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often, by path and kind."""

    def clean(self, value: Any, path: str = "$", key: str = "") -> Any:
        """Return JSON with a placeholder for everything that may not leave."""
        if isinstance(value, Mapping):
            return dict(self._entry(name, each, path) for name, each in value.items())
        if isinstance(value, list | tuple):
            return [self.clean(each, f"{path}[{at}]", key) for at, each in enumerate(value)]
        if isinstance(value, str):
            return self._text(value, path, key)
        if not isinstance(value, int | float) or _COUNTED.search(key):
            return value
        text = str(value)
        if sum(each.isdigit() for each in text) < _SHORTEST_NUMBER:
            return value
        cleaned = self._text(text, path, key)
        return value if cleaned == text else cleaned

    def _entry(self, name: Any, value: Any, path: str) -> tuple[Any, Any]:
        cleaned = self._text(name, path, "") if isinstance(name, str) else name
        return cleaned, self.clean(value, f"{path}.{cleaned}", str(cleaned))

    def _text(self, text: str, path: str, key: str) -> str:
        if "password" in self.kinds and _SECRET.search(key) and not _OPEN.fullmatch(text):
            self.removed[path, "password"] += 1
            return self.table.of("password", text)
        head = f"{key}: " if 0 < len(key) <= _LONGEST_KEY else ""
        done = self._searched(head + text)
        if head and not done.text.startswith(head):  # the key itself is private, and is cleaned as a key
            head, done = "", self._searched(text)
        for kind, count in done.removed.items():
            self.removed[path, kind] += count
        return done.text.removeprefix(head)

    def _searched(self, text: str) -> Cleaned:
        return desensitize(text, names=self.names, kinds=self.kinds, table=self.table)


R = TypeVar("R", bound=Record)

_IDS = frozenset(
    {"id", "call_id", "tool_call_id", "tool_use_id", "message_id", "response_id", "run_id", "thread_id", "sha256"}
)
"""Keys of messages, as providers and frameworks write them: a host compares by these, and sends some of them back."""

_LONGEST_PLACEHOLDER = 32
_DEEPEST = 50
"""Levels of JSON that are looked into one by one."""
_WINDOW, _OVERLAP = 10_000, 4_000
"""Characters of a window; two windows overlap by more than the longest value, a key of many lines."""


class Redactor:
    """Replaces each value of some kinds with a placeholder, always the same one for the same value.

    Ids, threads, scopes, and the names of tools stay as they are: they are compared, and the host gave them.
    """

    def __init__(self, kinds: frozenset[Kind], key: bytes) -> None:
        self.kinds = kinds
        self._table = Pseudonyms(hmac.digest(key, b"redaction", "sha256"))

    def text(self, text: str) -> str:
        """Return a text without what is private; one that is JSON stays JSON."""
        return cast("str", self.json(text))

    def json(self, value: Any, *, keep: frozenset[str] = frozenset()) -> Any:
        """Return JSON without what is private in its texts and keys, and without numbers that identify a person."""
        return _Thorough(frozenset(), self.kinds, self._table, keep=keep).clean(value) if self.kinds else value

    def record(self, record: R, *fields: str, keep: frozenset[str] = frozenset()) -> R:
        """Return a record without what is private in some of its fields; the others, as ids and times, stay."""
        if not self.kinds:
            return record
        told = json.loads(record.to_json())
        said = self.json({name: told[name] for name in fields}, keep=keep)
        return type(record).model_validate({**dict(record), **said})

    def message(self, message: Message) -> Message:
        """Return a message without what is private; bytes were taken out of it before."""
        if not self.kinds:
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


@dataclass(eq=False)
class RedactingEmbedder:
    """An embedder that receives nothing private from any caller: a query, a host's own store, a task in words."""

    embedder: Embedder
    redactor: Redactor

    @property
    def name(self) -> str:
        """That of the embedder."""
        return self.embedder.name

    @property
    def dimension(self) -> int:
        """That of the embedder."""
        return self.embedder.dimension

    @property
    def semantic(self) -> bool:
        """Whether the embedder knows meaning."""
        return self.embedder.semantic

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of the texts without what is private; see `ports.Embedder`."""
        return self.embedder.embed([self.redactor.text(text) for text in texts])


@dataclass
class _Thorough(Cleaner):
    """Cleans what may come from anywhere: JSON within texts, texts of any length, trees of any depth."""

    keep: frozenset[str] = frozenset()
    depth: int = 0

    def clean(self, value: Any, path: str = "$", key: str = "") -> Any:
        """Return JSON with a placeholder for everything that may not be stored; what is nested very deeply becomes text."""
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
        """Yield what is private in a long text, searched in overlapping windows."""
        for at in range(0, len(text), _WINDOW - _OVERLAP):
            start, end = _beside(text, at), _beside(text, at + _WINDOW)
            for each in findings(text[start:end], kinds=self.kinds):
                yield Finding(start + each.start, start + each.end, each.kind)


def _beside(text: str, at: int) -> int:
    """Return where to cut a text without cutting a placeholder: half of one may look private."""
    around = PLACEHOLDER.finditer(text, max(0, at - _LONGEST_PLACEHOLDER), at + _LONGEST_PLACEHOLDER)
    return next((each.start() for each in around if each.start() < at < each.end()), at)


def _written(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "(nested too deeply to be searched)"
