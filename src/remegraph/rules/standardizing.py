"""What names knowledge: its id, the digest by which a copy is told from a forgery, and its title."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from remegraph.models import Kind, KnowledgeItem

__all__ = ["SIGNATURE", "item_digest", "knowledge_id", "short"]

SIGNATURE = "signature"
"""Where the metadata of an item hold its signature."""

_LONGEST = 80


def knowledge_id(kind: Kind, content: Mapping[str, Any]) -> str:
    """Return the id of knowledge: whoever shares the same again gives it the same.

    Args:
        kind: The type of the memory it was made from.
        content: What it says, as JSON.
    """
    return str(uuid5(NAMESPACE_URL, f"remegraph:knowledge:{kind}:{_canonical(content)}"))


def item_digest(item: KnowledgeItem) -> str:
    """Return what tells an item from every other one: all that it says, but for the time of sharing, and a signature."""
    said = json.loads(item.to_json())
    del said["created_at"]
    said["metadata"].pop(SIGNATURE, None)
    return sha256(_canonical(said).encode()).hexdigest()


def short(text: str) -> str:
    """Return a title: the beginning of a text, whole words where it has spaces."""
    if len(text) <= _LONGEST:
        return text
    cut = text[: _LONGEST - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}…"


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
