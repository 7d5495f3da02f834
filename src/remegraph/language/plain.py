"""Text as it can be written everywhere, as it is compared, and as it stands in JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["folded", "plain", "texts"]

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


def texts(value: Any) -> Iterator[str]:
    """Yield all texts of JSON, however deep they stand, names among them.

    Args:
        value: JSON, as Python holds it.
    """
    inside = [value]
    while inside:
        part = inside.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            yield from part
            inside.extend(reversed([*part.values()]))
        elif isinstance(part, list | tuple):
            inside.extend(reversed(part))
