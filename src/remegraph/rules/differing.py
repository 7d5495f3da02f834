"""What differs between two versions of a memory: field by field, and word by word."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from remegraph.language.scripts import CJK
from remegraph.models import Diff, FieldDiff, Memory, WordDiff

__all__ = ["difference"]

_UNCOMPARED = frozenset({"memory_id", "version", "partition", "recorded_at", "summary"})
"""What is the same in all versions of a memory, or in no two, or follows from the content."""

_WORD = re.compile(rf"(?:[{CJK}]|[^\W{CJK}]+|\S)\s*")
"""A word with the space after it; of a script without spaces, a character."""


def difference(before: Memory, after: Memory) -> Diff:
    """Return what differs between two versions.

    Args:
        before: The first.
        after: The second.
    """
    first, second = json.loads(before.to_json()), json.loads(after.to_json())
    return Diff(
        memory_id=before.memory_id,
        before=before.version,
        after=after.version,
        fields=tuple(
            FieldDiff(name=name, before=_told(first[name]), after=_told(second[name]))
            for name in first
            if name not in _UNCOMPARED and first[name] != second[name]
        ),
        words=tuple(_words(before.content, after.content)),
    )


def _told(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _words(before: str, after: str) -> Iterator[WordDiff]:
    first, second = _WORD.findall(before), _WORD.findall(after)
    one, other = [word.rstrip() for word in first], [word.rstrip() for word in second]
    for change, start, end, new_start, new_end in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if change == "equal":
            yield WordDiff(change="same", words="".join(second[new_start:new_end]))
            continue
        if start < end:
            yield WordDiff(change="removed", words="".join(first[start:end]))
        if new_start < new_end:
            yield WordDiff(change="added", words="".join(second[new_start:new_end]))
