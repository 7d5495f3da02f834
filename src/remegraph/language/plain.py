"""Text as it can be written everywhere."""

from __future__ import annotations

import re

__all__ = ["folded", "plain"]

_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")


def plain(text: str) -> str:
    """Return a text in which U+FFFD stands for every NUL and lone surrogate.

    Raw messages are kept to the letter; names and statements taken from them go where such characters cannot.

    Args:
        text: Any Python string.
    """
    return _UNWRITABLE.sub("\ufffd", text)


def folded(text: str) -> str:
    """Return `text` as it is compared: case, spaces and a final stop aside, two texts that say the same are equal."""
    return " ".join(text.casefold().split()).rstrip(".!\u3002\uff01")
