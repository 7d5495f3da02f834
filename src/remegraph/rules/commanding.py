"""Whether a text speaks to the agent as if it were to be obeyed: what somebody should look at before it is remembered.

A tripwire, no wall: whatever passes is still shown as data, with its source and its trust.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

from remegraph.rules.tables import table

__all__ = ["commands"]

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def commands(texts: Iterable[str]) -> bool:
    """Return whether one of these texts does.

    Args:
        texts: English, Chinese, or both.
    """
    return any(_pattern().search(_seen(text)) for text in texts)


def _seen(text: str) -> str:
    """Return a text as a model sees it: width, invisible characters and runs of space aside."""
    return " ".join(_INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).split())


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in table("commanding")["patterns"]), re.IGNORECASE)
