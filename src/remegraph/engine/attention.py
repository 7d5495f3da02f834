"""Whether a block is worth a model's call, and which of its messages: small talk is indexed by the rules alone."""

from __future__ import annotations

from collections.abc import Sequence

from remegraph.models import Message, StoredMessage
from remegraph.ports import Attention
from remegraph.rules.coverage import uncovered
from remegraph.rules.salience import telling_words

__all__ = ["attended", "attention"]

_FULL = 20
"""Different telling words with which a block has full attention."""


def attention(messages: Sequence[Message]) -> float:
    """Return how much a block has to tell, 0 to 1: its different words other than stop words and small talk.

    A block with tool calls, or with a statement that the rules find worth remembering, has full attention.

    Args:
        messages: The block.
    """
    if any(message.tool_calls for message in messages) or uncovered(messages, ()):
        return 1.0
    words = frozenset[str]().union(*(telling_words(message.text) for message in messages))
    return min(1.0, len(words) / _FULL)


def attended(messages: Sequence[StoredMessage], score: Attention, least: float) -> tuple[StoredMessage, ...]:
    """Return the messages of a block that get enough attention; tool calls, their results and attachments always do.

    Args:
        messages: The block.
        score: Scores a message, given those before it.
        least: The attention that it takes; 0: all have enough.
    """
    texts = [message.text for message in messages]
    return tuple(
        message
        for at, message in enumerate(messages)
        if not least
        or message.tool_calls
        or message.attachments
        or message.role == "tool"
        or score(message.text, texts[:at]) >= least
    )
