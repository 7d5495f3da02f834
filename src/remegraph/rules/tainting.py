"""How far derived words are believed: no further than the least believed words that they draw on (docs/invariants.md, 7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remegraph.language.plain import folded
from remegraph.language.tokens import query_tokens
from remegraph.models import Evidence, Message
from remegraph.rules.standing import QUARANTINE_BELOW

__all__ = ["trust_of_evidence", "trust_of_summary"]


def trust_of_summary(text: str, messages: Sequence[Message]) -> float:
    """Return how far a summary is believed: a word that no person said makes it draw on all that hold that word.

    Args:
        text: The summary, with whatever else its entry says.
        messages: What it was made of.
    """
    own = {word for message in messages if message.trust >= 1 for word in query_tokens(message.indexed_text)}
    drawn = {*query_tokens(text)} - own
    others = (each for each in messages if each.trust < 1 and not drawn.isdisjoint(query_tokens(each.indexed_text)))
    return min((each.trust for each in others), default=1.0)


def trust_of_evidence(evidence: Iterable[Evidence], messages: Sequence[Message]) -> float:
    """Return how far words are believed: as whoever said them, and no further than a tool whose words an agent repeats.

    Args:
        evidence: The words; each of a message among these.
        messages: A block.
    """
    by_id = {message.message_id: message for message in messages}
    untrusted = [message for message in messages if message.trust < QUARANTINE_BELOW]
    return min(_trust(item, by_id[item.message_id], untrusted) for item in evidence)


def _trust(item: Evidence, said: Message, untrusted: Iterable[Message]) -> float:
    if said.trust >= 1:
        return said.trust
    words = folded(item.quote)
    return min((each.trust for each in untrusted if words in folded(each.text)), default=said.trust)
