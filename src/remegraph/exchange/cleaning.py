"""Takes out of JSON what may not leave, and says where it stood; finds again what was left in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from remegraph.rules.desensitizing import KINDS, PLACEHOLDER, Cleaned, Kind, Placeholders, desensitize

__all__ = ["Cleaner"]

_SECRET = re.compile(
    r"pass(?:word|wd|phrase|code)|pwd|secret|token(?!iz|[-_ ]?(?:id|type)s?\b)|credential|(?:api|access|private|auth)[-_ ]?key|密码|口令|密钥|令牌",
    re.IGNORECASE,
)
"""Keys whose values are secret, whatever they look like."""
_COUNTED = re.compile(r"tokens|token[-_ ]?(?:count|usage|limit|budget)", re.IGNORECASE)
"""Keys whose numbers are figures: a model is told, and tells, how many tokens something took."""
_OPEN = re.compile(rf"\s*|(?:[A-Za-z]+ )?\{{[^{{}}]+\}}|{PLACEHOLDER.pattern}")
"""What is no value yet: nothing, a slot, as in "Bearer {token}", or a placeholder."""

_LONGEST_KEY = 100
"""Characters of a key that may announce its value."""
_SHORTEST_NUMBER = 6
"""Digits from which a number may be a phone's, a card's or an account's."""


@dataclass
class Cleaner:
    """Cleans the content of one memory: the same value gets the same placeholder all through it.

    A value is read together with its key, which may say what it is: {"password": "..."}.

    Args:
        names: What is known by name, and may not leave.
        kinds: Only these are looked for.
        table: Gives the placeholders.
    """

    names: frozenset[str]
    kinds: frozenset[Kind] = frozenset(KINDS)
    table: Placeholders = field(default_factory=Placeholders)
    removed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often, by path and kind."""

    def clean(self, value: Any, path: str = "$", key: str = "") -> Any:
        """Return JSON with a placeholder for all that may not leave.

        Args:
            value: JSON.
            path: Where it stands.
            key: The key that it stands under.
        """
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
