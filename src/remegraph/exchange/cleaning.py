"""Takes out of JSON what may not leave, and says where it stood; finds again what was left in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from remegraph.rules.desensitizing import PLACEHOLDER, Placeholders, desensitize

__all__ = ["Cleaner"]

_SECRET = re.compile(
    r"pass(?:word|wd|phrase|code)|pwd|secret|token|credential|(?:api|access|private|auth)[-_ ]?key|密码|口令|密钥|令牌",
    re.IGNORECASE,
)
"""Keys whose values are secret, whatever they look like."""
_OPEN = re.compile(rf"\s*|\{{[^{{}}]+\}}|{PLACEHOLDER.pattern}")
"""What is no value yet: nothing, a slot, or a placeholder."""

_SHORTEST_NUMBER = 6
"""Digits from which a number may be a phone's, a card's or an account's."""


@dataclass
class Cleaner:
    """Cleans the content of one memory: the same value gets the same placeholder all through it.

    A value is read together with its key, which may say what it is: {"password": "..."}.

    Args:
        names: What is known by name, and may not leave.
    """

    names: frozenset[str]
    removed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often, by path and kind."""
    _table: Placeholders = field(default_factory=Placeholders)

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
        if isinstance(value, int | float) and sum(each.isdigit() for each in str(value)) >= _SHORTEST_NUMBER:
            text = self._text(str(value), path, key)
            return value if text == str(value) else text
        return value

    def _entry(self, name: str, value: Any, path: str) -> tuple[str, Any]:
        cleaned = self._text(name, path, "")
        return cleaned, self.clean(value, f"{path}.{cleaned}", name)

    def _text(self, text: str, path: str, key: str) -> str:
        if _SECRET.search(key) and not _OPEN.fullmatch(text):
            self.removed[path, "password"] += 1
            return self._table.of("password", text)
        head = f"{key}: " if key else ""
        done = desensitize(head + text, names=self.names, table=self._table)
        if head and not done.text.startswith(head):  # the key itself is private, and is cleaned as a key
            head, done = "", desensitize(text, names=self.names, table=self._table)
        for kind, count in done.removed.items():
            self.removed[path, kind] += count
        return done.text.removeprefix(head)
