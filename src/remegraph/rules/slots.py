"""Slots: whose attribute a memory is about, where a model, a caller or a schema says so; nothing reads them out of words."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from remegraph.rules.duplicates import content_digest

if TYPE_CHECKING:
    from remegraph.models import Memory

__all__ = ["Relation", "Statement", "canonical", "holds", "relation", "same"]

Relation = Literal["same", "supersedes", "disputes", "beside"]
"""What a statement is to one that was there before: the same again, its successor, at odds with it, or another."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What somebody states, with the slot that they give it."""

    content: str
    said_at: datetime
    canonical_topic: str = ""
    slot_value: str = ""
    slot_many: bool = False


def canonical(topic: str) -> str:
    """Return a slot, or canonical topic, as it is compared, part by part: `Database : Choice` is `database:choice`.

    Args:
        topic: Its parts, divided by colons, in any width.
    """
    parts = unicodedata.normalize("NFKC", topic).casefold().split(":")
    return ":".join(" ".join(part.split()) for part in parts)


def same(new: Memory | Statement, old: Memory | Statement) -> bool:
    """Return whether two memories say the same: in the same normalised words, or one value of one slot."""
    return content_digest(new.content) == content_digest(old.content) or holds(old, new.canonical_topic, new.slot_value)


def holds(memory: Memory | Statement, canonical_topic: str, value: str) -> bool:
    """Return whether a memory gives a slot that value.

    Args:
        memory: The memory.
        canonical_topic: The slot; empty: none.
        value: The value; empty: unknown, which is no value.
    """
    if not canonical_topic or canonical_topic != memory.canonical_topic:
        return False
    return bool(value) and canonical(value) == canonical(memory.slot_value)


def relation(new: Memory | Statement, old: Memory | Statement, *, one_source: bool) -> Relation:
    """Return what a memory is to an older one of the same library, by identity, slot and time alone.

    Args:
        new: What was said later, or at the same moment.
        old: What was there.
        one_source: Whether the same source says both: only then the later value of a slot takes the place of the earlier.
    """
    if same(new, old):
        return "same"
    if not new.canonical_topic or new.canonical_topic != old.canonical_topic or new.slot_many or old.slot_many:
        return "beside"
    return "supersedes" if one_source and new.said_at > old.said_at else "disputes"
