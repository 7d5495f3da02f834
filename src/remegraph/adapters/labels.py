"""Any text as a label of a LangGraph namespace: user ids are e-mail addresses, paths, names in any script.

LangGraph refuses labels that are empty or hold a period or NUL, and `langgraph` as the first one; `*` in a pattern
means any label; deepagents takes little but letters, digits and `@`. So letters and digits of ASCII and `-_@+:` stay
as they are, and all else is written as in URLs, with `~` for `%`: `ann@example.org` becomes `ann@example~2Eorg`.
"""

from __future__ import annotations

import re

from remegraph.errors import InputError

__all__ = ["decode_label", "encode_label"]

_EMPTY = "~"
_RESERVED_WORD = "langgraph"
_RESERVED = re.compile(r"[^A-Za-z0-9_@+:-]")
_ESCAPED = re.compile(r"(?:~[0-9A-F]{2})+")


def encode_label(text: str) -> str:
    """Return a text as a label that LangGraph takes; different texts give different labels.

    Args:
        text: Any text.
    """
    if not text:
        return _EMPTY
    if text == _RESERVED_WORD:
        return _escaped(text[0]) + text[1:]
    return _RESERVED.sub(lambda found: _escaped(found[0]), text)


def decode_label(label: str) -> str:
    """Return the text that `encode_label` made a label of.

    Args:
        label: The label.

    Raises:
        InputError: `encode_label` did not make it.
    """
    try:
        text = "" if label == _EMPTY else _ESCAPED.sub(lambda found: _unescaped(found[0]), label)
    except UnicodeDecodeError:
        text = None
    if text is None or encode_label(text) != label:
        raise InputError(f"{label!r} is no encoded label.", "Give what encode_label returned.")
    return text


def _escaped(text: str) -> str:
    return "".join(f"~{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def _unescaped(digits: str) -> str:
    return bytes.fromhex(digits.replace("~", "")).decode("utf-8", "surrogatepass")
