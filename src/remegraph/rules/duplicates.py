"""When two texts are the same words."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

__all__ = ["content_digest"]

_OUTER = re.compile(r"^[\W_]+|[\W_]+$")


@lru_cache(maxsize=1 << 12)  # each memory is compared with every other of its topic
def content_digest(text: str) -> str:
    """Return the SHA-256 of `text` without case, outer punctuation and differences of space and width."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = _OUTER.sub("", " ".join(folded.split()))
    return hashlib.sha256(folded.encode("utf-8", "surrogatepass")).hexdigest()
