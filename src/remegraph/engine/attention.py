"""Whether a block is worth a model's call: small talk is indexed by the rules alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from remegraph.language.tokens import query_tokens
from remegraph.models import Message

__all__ = ["attention"]

_FULL = 20
"""Different telling words with which a block has full attention."""


def attention(messages: Sequence[Message]) -> float:
    """Return how much a block has to tell, 0 to 1: its different words other than stop words and small talk.

    A block with tool calls has full attention.

    Args:
        messages: The block.
    """
    if any(message.tool_calls for message in messages):
        return 1.0
    words = {token for message in messages for token in query_tokens(message.text)}
    return min(1.0, len(words - _small_talk()) / _FULL)


@cache
def _small_talk() -> frozenset[str]:
    text = files("remegraph.engine").joinpath("data", "small_talk.txt").read_text(encoding="utf-8")
    return frozenset(query_tokens(text))
