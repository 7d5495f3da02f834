"""Find what is private in a text, and replace it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from remegraph.errors import InputError
from remegraph.rules.desensitizing import accounts, contacts, identity, money, network, people, places, secrets
from remegraph.rules.desensitizing.finding import KINDS, Finding, Kind, united
from remegraph.rules.desensitizing.folding import ESCAPE, Folded, folded
from remegraph.rules.desensitizing.placeholders import Placeholders

__all__ = ["LONGEST", "Cleaned", "desensitize", "findings", "replaced"]

LONGEST = 200_000
"""Characters of a text at most, each placeholder in it counted as one."""

_RECOGNISERS: Mapping[Callable[[str], Iterator[Finding]], frozenset[Kind]] = {
    contacts.emails: frozenset({"email"}),
    contacts.phones: frozenset({"phone"}),
    money.cards: frozenset({"card"}),
    money.ibans: frozenset({"iban"}),
    identity.numbers: frozenset({"cn-id", "ssn", "plate", "passport"}),
    identity.birth_dates: frozenset({"birth-date"}),
    network.addresses: frozenset({"ip", "mac"}),
    network.urls: frozenset({"key", "url"}),
    network.hosts: frozenset({"host"}),
    secrets.keys: frozenset({"key"}),
    secrets.passwords: frozenset({"password"}),
    places.paths: frozenset({"path"}),
    places.streets: frozenset({"address"}),
    accounts.accounts: frozenset({"account"}),
}
"""What looks for which kinds."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text without what is private."""

    text: str
    removed: Mapping[Kind, int]
    """How many of each kind were replaced."""
    table: Placeholders
    """For the other texts of the same share."""


def findings(
    text: str, *, names: Collection[str] = (), kinds: Collection[Kind] = frozenset(KINDS)
) -> tuple[Finding, ...]:
    """Return what is private in a text, in order and without overlaps.

    Args:
        text: Any text, English or Chinese. What stands in a placeholder is not private.
        names: Names that are known; each is also looked for in its parts, such as the first name.
        kinds: Only these.

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
    found += people.names(plain.text, names)
    return (Finding(*plain.span(each.start, each.end), each.kind) for each in found if each.start < each.end)


def desensitize(
    text: str,
    *,
    names: Collection[str] = (),
    kinds: Collection[Kind] = frozenset(KINDS),
    table: Placeholders | None = None,
) -> Cleaned:
    """Return a text in which placeholders stand for all that is private. Cleaning it once more changes nothing.

    Args:
        text: Any text, English or Chinese.
        names: Names that are known; each is also looked for in its parts, such as the first name.
        kinds: Only these.
        table: The placeholders given so far in this share; a new one unless given.

    Raises:
        InputError: The text is longer than `LONGEST`.
        MissingExtraError: The package `phonenumbers` is not installed.
    """
    table = Placeholders() if table is None else table
    table.reserve(text)
    removed: Counter[Kind] = Counter()
    # A gap may bare what stood beside it. It ends: each round removes characters.
    while found := findings(text, names=names, kinds=kinds):
        removed.update(each.kind for each in found)
        text = replaced(text, found, table)
    return Cleaned(text, dict(removed), table)


def replaced(text: str, found: Sequence[Finding], table: Placeholders) -> str:
    """Return a text with placeholders for what was found in it.

    Args:
        text: Any text.
        found: In order and without overlaps.
        table: Gives the placeholders.
    """
    parts: list[str] = []
    before = 0
    for each in found:
        parts += text[before : each.start], table.of(each.kind, folded(text[each.start : each.end]).text)
        before = each.end
    return "".join([*parts, text[before:]])
