"""Text as it can be written everywhere."""

from __future__ import annotations

import re

__all__ = ["plain"]

_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")


def plain(text: str) -> str:
    """Return a text in which U+FFFD stands for every NUL and lone surrogate.

    Raw messages are kept to the letter; names and statements taken from them go where such characters cannot.

    Args:
        text: Any Python string.
    """
    return _UNWRITABLE.sub("\ufffd", text)
