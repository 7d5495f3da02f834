"""Personal data and secrets in a text: found by form, checksum and the words nearby, and replaced (K7).

One family of recognisers is one module; what they share is a text without tricks (folding.py) and a `Finding`.
Street addresses and names are best effort: of names, only those that the caller knows are found.
"""

from __future__ import annotations

from remegraph.rules.desensitizing.finding import KINDS, Finding, Kind, united
from remegraph.rules.desensitizing.placeholders import PLACEHOLDER, Placeholders, Pseudonyms
from remegraph.rules.desensitizing.removing import LONGEST, Cleaned, desensitize, findings, replaced

__all__ = [
    "KINDS",
    "LONGEST",
    "PLACEHOLDER",
    "Cleaned",
    "Finding",
    "Kind",
    "Placeholders",
    "Pseudonyms",
    "desensitize",
    "findings",
    "replaced",
    "united",
]
