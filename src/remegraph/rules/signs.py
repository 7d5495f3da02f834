"""Signs by which a statement about a person is told from talk of the moment."""

from __future__ import annotations

import re
from functools import lru_cache

from remegraph.language.scripts import language_of
from remegraph.rules.tables import table

__all__ = ["signs_in"]


@lru_cache(maxsize=1 << 11)
def signs_in(text: str) -> dict[str, float]:
    """Return which kinds of signs (data/marks.toml) stand in a sentence or clause: 1.0 or 0.0 for each."""
    return {kind: float(pattern.search(text) is not None) for kind, pattern in _patterns(language_of(text)).items()}


@lru_cache(maxsize=2)
def _patterns(language: str) -> dict[str, re.Pattern[str]]:
    marks = table("marks").items()
    return {kind: re.compile("|".join(patterns[language]), re.IGNORECASE) for kind, patterns in marks}
