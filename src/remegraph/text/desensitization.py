"""Find private data and secrets in a text, and replace them with placeholders (K7).

Street addresses and names are best effort: of names, only those that the caller knows are found.
"""

from __future__ import annotations

import hmac
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from remegraph.errors import InputError
from remegraph.settings import without_passwords
from remegraph.text import personal, secrets
from remegraph.text.findings import ESCAPE, KINDS, MOST, PLACEHOLDER, Finding, Folded, Kind, folded, united

__all__ = ["LONGEST", "Cleaned", "Placeholders", "Pseudonyms", "desensitize", "findings", "masked", "replaced"]

_WRITTEN_APART = frozenset({"phone", "card", "iban", "ssn", "cn-id", "plate", "mac"})
_AS_WRITTEN = frozenset({"key", "password", "path", "url"})


class Placeholders:
    """The placeholders of one share: equal values get the same one in all its texts.

    It holds what was removed, so it must never leave; a placeholder itself gives nothing away.
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
        """Give no new value a placeholder that this text has already."""
        self._taken.update(found.group() for found in PLACEHOLDER.finditer(text))

    def of(self, kind: Kind, value: str) -> str:
        """Return the placeholder of a value."""
        key = kind, _same(kind, value)
        if key not in self._given:
            self._given[key] = self._new(kind)
        return self._given[key]

    def _new(self, kind: Kind) -> str:
        for number in range(self._last.get(kind, 0) + 1, MOST + 1):
            if (placeholder := f"<{kind}-{number}>") not in self._taken:
                self._last[kind] = number
                return placeholder
        raise InputError(f"There are more than {MOST:,} values of the kind {kind!r}.", "Share less at once.")


class Pseudonyms(Placeholders):
    """Placeholders that follow from the value and a key: the same ones in all texts, processes and years.

    Nothing is kept. Two values share one by chance once in 99,999 pairs, so not even the key leads back to a value.
    """

    def __init__(self, key: bytes) -> None:
        super().__init__()
        self._key = key

    def reserve(self, text: str) -> None:
        """Do nothing: a placeholder in a text is that of the same value."""

    def of(self, kind: Kind, value: str) -> str:
        """Return the placeholder of a value."""
        digest = hmac.digest(self._key, _same(kind, value).encode("utf-8", "surrogatepass"), "sha256")
        return f"<{kind}-{int.from_bytes(digest) % MOST + 1}>"


def _same(kind: Kind, value: str) -> str:
    """Return a value in a form that does not depend on how it is written."""
    if kind in _AS_WRITTEN:
        return value
    folded = value.casefold()
    return re.sub(r"[\W_]+", "", folded) if kind in _WRITTEN_APART else " ".join(folded.split())


LONGEST = 200_000
"""Characters of a text at most, each placeholder in it counted as one."""

_RECOGNISERS: Mapping[Callable[[str], Iterator[Finding]], frozenset[Kind]] = {
    personal.emails: frozenset({"email"}),
    personal.phones: frozenset({"phone"}),
    personal.cards: frozenset({"card"}),
    personal.ibans: frozenset({"iban"}),
    personal.numbers: frozenset({"cn-id", "ssn", "plate", "passport"}),
    personal.birth_dates: frozenset({"birth-date"}),
    secrets.addresses: frozenset({"ip", "mac"}),
    secrets.urls: frozenset({"key", "url"}),
    secrets.hosts: frozenset({"host"}),
    secrets.keys: frozenset({"key"}),
    secrets.passwords: frozenset({"password"}),
    secrets.paths: frozenset({"path"}),
    personal.streets: frozenset({"address"}),
    personal.accounts: frozenset({"account"}),
}
"""The kinds that each recogniser finds."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text after its private data was replaced."""

    text: str
    removed: Mapping[Kind, int]
    """How many of each kind were replaced."""
    table: Placeholders
    """For the other texts of the same share."""


def findings(
    text: str, *, names: Collection[str] = (), kinds: Collection[Kind] = frozenset(KINDS)
) -> tuple[Finding, ...]:
    """Return what is private in a text, in order and without overlaps.

    Known names are also looked for in their parts, such as the first name. Nothing is found within a placeholder.

    Raises:
        InputError: The text is longer than `LONGEST`.
        MissingExtraError: The package `phonenumbers` is not installed.
    """
    plain = folded(text)
    if len(plain.text) > LONGEST:
        raise InputError(f"A text of {len(plain.text):,} characters is too long to be searched.", "Share it in parts.")
    found = list(_found(plain, names, kinds))
    if escapes := {each.start("escaped") for each in ESCAPE.finditer(text)}:  # JSON, or a part of it
        found = [each for each in found if each.start not in escapes or each.kind == "path"]
        found += _found(folded(text, escapes=True), names, kinds)
    return united(found)


def _found(plain: Folded, names: Collection[str], kinds: Collection[Kind]) -> Iterator[Finding]:
    asked = [recognise for recognise, finds in _RECOGNISERS.items() if not finds.isdisjoint(kinds)]
    found = [each for recognise in asked for each in recognise(plain.text) if each.kind in kinds]
    found += personal.names(plain.text, names)
    return (Finding(*plain.span(each.start, each.end), each.kind) for each in found if each.start < each.end)


def desensitize(
    text: str,
    *,
    names: Collection[str] = (),
    kinds: Collection[Kind] = frozenset(KINDS),
    table: Placeholders | None = None,
) -> Cleaned:
    """Replace all that is private in a text with placeholders, those of `table` if given. Idempotent."""
    table = Placeholders() if table is None else table
    table.reserve(text)
    removed: Counter[Kind] = Counter()
    # A gap may bare what stood beside it. It ends: each round removes characters.
    while found := findings(text, names=names, kinds=kinds):
        removed.update(each.kind for each in found)
        text = replaced(text, found, table)
    return Cleaned(text, dict(removed), table)


def replaced(text: str, found: Sequence[Finding], table: Placeholders) -> str:
    """Return a text with placeholders for what was found in it."""
    parts: list[str] = []
    before = 0
    for each in found:
        parts += text[before : each.start], table.of(each.kind, folded(text[each.start : each.end]).text)
        before = each.end
    return "".join([*parts, text[before:]])


def masked(text: str) -> str:
    """Replace keys, passwords and connection strings in an error message with stars."""
    text = without_passwords(text)
    plain = folded(text)
    found = united(
        Finding(*plain.span(each.start, each.end), each.kind)
        for recognise in (secrets.keys, secrets.passwords)
        for each in recognise(plain.text)
    )
    for each in reversed(found):
        text = f"{text[: each.start]}***{text[each.end :]}"
    return text
