"""What stands where something private stood: its kind and a number, so that the same is still seen to be the same."""

from __future__ import annotations

import hmac
import re

from remegraph.errors import InputError
from remegraph.rules.desensitizing.finding import KINDS, Kind

__all__ = ["PLACEHOLDER", "Placeholders", "Pseudonyms"]

_MOST = 99_999

PLACEHOLDER = re.compile(rf"<({'|'.join(KINDS)})-([1-9][0-9]{{0,{len(str(_MOST)) - 1}}})>")

_WRITTEN_APART = frozenset({"phone", "card", "iban", "ssn", "cn-id", "plate", "mac"})
_AS_WRITTEN = frozenset({"key", "password", "path", "url"})


class Placeholders:
    """The placeholders of one share: the same value has the same one in all its texts, another value another one.

    It holds what was removed, so it must never leave; nothing can be told from a placeholder itself.
    """

    def __init__(self) -> None:
        self._given: dict[tuple[Kind, str], str] = {}
        self._taken: set[str] = set()
        self._last: dict[Kind, int] = {}

    def __len__(self) -> int:
        return len(self._given)

    def __repr__(self) -> str:
        return f"Placeholders({len(self)})"

    def reserve(self, text: str) -> None:
        """Take the placeholders that stand in a text already: no other value gets one of them.

        Args:
            text: Any text.
        """
        self._taken.update(found.group() for found in PLACEHOLDER.finditer(text))

    def of(self, kind: Kind, value: str) -> str:
        """Return the placeholder of a value.

        Args:
            kind: What it is.
            value: The value, as it reads.

        Raises:
            InputError: One share holds too many of a kind.
        """
        key = kind, _same(kind, value)
        if key not in self._given:
            self._given[key] = self._new(kind)
        return self._given[key]

    def _new(self, kind: Kind) -> str:
        for number in range(self._last.get(kind, 0) + 1, _MOST + 1):
            if (placeholder := f"<{kind}-{number}>") not in self._taken:
                self._last[kind] = number
                return placeholder
        raise InputError(f"There are more than {_MOST:,} values of the kind {kind!r}.", "Share less at once.")


class Pseudonyms(Placeholders):
    """Placeholders that follow from the value and a key: the same ones in all texts, processes and years.

    Nothing is kept. Two values of a kind share one by chance once in 99,999 pairs; so not even with the key can a value
    be told from its placeholder, only that it may be one of very many.

    Args:
        key: Secret; with another one, the same value gets another placeholder.
    """

    def __init__(self, key: bytes) -> None:
        super().__init__()
        self._key = key

    def reserve(self, text: str) -> None:
        """Nothing: a placeholder in a text is that of the same value.

        Args:
            text: Any text.
        """

    def of(self, kind: Kind, value: str) -> str:
        """Return the placeholder of a value.

        Args:
            kind: What it is.
            value: The value, as it reads.
        """
        digest = hmac.digest(self._key, _same(kind, value).encode("utf-8", "surrogatepass"), "sha256")
        return f"<{kind}-{int.from_bytes(digest) % _MOST + 1}>"


def _same(kind: Kind, value: str) -> str:
    """Return a value in the form in which it equals itself, however it is written."""
    if kind in _AS_WRITTEN:
        return value
    folded = value.casefold()
    return re.sub(r"[\W_]+", "", folded) if kind in _WRITTEN_APART else " ".join(folded.split())
