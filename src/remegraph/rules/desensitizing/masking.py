"""Keys and passwords in what others tell us, before it is logged or told on."""

from __future__ import annotations

from remegraph.rules.desensitizing import secrets
from remegraph.rules.desensitizing.finding import Finding, united
from remegraph.rules.desensitizing.folding import folded
from remegraph.settings import without_passwords

__all__ = ["masked"]


def masked(text: str) -> str:
    """Return a text with stars for the keys, passwords and connection strings in it.

    Args:
        text: An error of a provider, not too long.
    """
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
