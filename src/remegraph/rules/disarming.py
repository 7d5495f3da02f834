"""Words that nobody vouches for, shown so that nothing fetches or follows what they point to."""

from __future__ import annotations

import re

from remegraph.rules.standing import QUARANTINE_BELOW

__all__ = ["disarmed", "vouched"]

_RULES = (
    (re.compile(r"http(?=s?:)", re.IGNORECASE), "hxxp"),
    (re.compile(r"(?<!\[)://"), "[://]"),
    (re.compile(r"(data|javascript|vbscript|file|blob|mailto|tel|sms)\s*:(?!//)", re.IGNORECASE), r"\1[:]"),
    (re.compile(r"\bwww\.", re.IGNORECASE), "www[.]"),
    (re.compile(r"(?<=\S)@(?=\w)"), "[@]"),
    (re.compile(r"!+(?=\[)"), ""),  # an image
    (re.compile(r"\](?=[(\[:])"), "] "),  # a link, by address or by reference
    (re.compile(r"<(?=[\w/!?])"), "‹"),  # a tag
)


def disarmed(text: str) -> str:
    """Return a text with its links, images and tags as mere text: `hxxps[://]example.org`. Doing it again changes nothing.

    Args:
        text: What a tool or a document says, or what was made of that.
    """
    for pattern, shown in _RULES:
        text = pattern.sub(shown, text)
    return text


def vouched(text: str, trust: float) -> str:
    """Return a text as a model may see it: as it is, or disarmed where nobody vouches for it.

    Args:
        text: What is to be shown.
        trust: How far it is believed.
    """
    return disarmed(text) if trust < QUARANTINE_BELOW else text
