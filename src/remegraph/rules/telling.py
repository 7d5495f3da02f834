"""Who tells a memory: in the first person, "I learned that" only says how the agent knows."""

from __future__ import annotations

import re

__all__ = ["unreported"]

_REPORT = re.compile(
    r"^\s*(?:"
    r"I(?:['’]ve| have)?(?: (?:also|now|just|already|recently|still))*"
    r" (?:learned|learnt|know|found out|noted|noticed|remember|recall|gathered|understood|understand|realised|realized"
    r"|discovered)(?: that\s+|\s+(?=[A-Z]))"
    r"|我(?:已经|已|还|也|现在|今天|刚刚|刚)*(?:了解到|了解|知道|得知|记得|记住|记下|发现|注意到|学到)了?[，,：:]?\s*"
    r")"
)


def unreported(text: str) -> str:
    """Return a statement without the words that say how its teller knows it: "I learned that", 「我了解到」.

    Args:
        text: A sentence.
    """
    return _REPORT.sub("", text, count=1)
