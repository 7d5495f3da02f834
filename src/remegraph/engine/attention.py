"""Whether a block is worth a model's call: small talk is indexed by the rules alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from remegraph.language.scripts import language_of
from remegraph.language.sentences import sentences
from remegraph.language.tokens import query_tokens
from remegraph.models import Message
from remegraph.rules.claims import read_claims
from remegraph.rules.coverage import uncovered

__all__ = ["attention", "small_talk"]

_FULL = 20
"""Different telling words with which a block has full attention."""


def attention(messages: Sequence[Message]) -> float:
    """Return how much a block has to tell, 0 to 1: its different words other than stop words and small talk.

    A block with tool calls, or with a statement that the rules find worth remembering, has full attention.

    Args:
        messages: The block.
    """
    if any(message.tool_calls or _claims(message) for message in messages) or uncovered(messages, ()):
        return 1.0
    words = {token for message in messages for token in query_tokens(message.text)}
    return min(1.0, len(words - small_talk()) / _FULL)


def _claims(message: Message) -> bool:
    text = message.text
    return any(read_claims(span.text.strip(), message.speaker, language_of(text)) for span in sentences(text))


@cache
def small_talk() -> frozenset[str]:
    """Return the words of greetings, thanks and the like."""
    text = files("remegraph.engine").joinpath("data", "small_talk.txt").read_text(encoding="utf-8")
    return frozenset(query_tokens(text))
