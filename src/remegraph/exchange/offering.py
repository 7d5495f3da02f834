"""Knowledge items as offers: from whom each is, as far as that is proven, and how far it is believed (K8, X6)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from remegraph.exchange.offers import Offer
from remegraph.models import KnowledgeItem, Origin
from remegraph.settings import SharingPolicy

__all__ = ["Reception"]


@dataclass(frozen=True, slots=True)
class Reception:
    """Where items come in."""

    policy: SharingPolicy
    receiver: str | None
    """The agent that takes them in."""
    expected: str | None
    """The agent that they are expected from; none: any."""
    at: datetime

    def offer(self, item: KnowledgeItem, agent: str | None) -> Offer:
        """Return an item as an offer.

        Args:
            item: The item.
            agent: The agent that truly shared it; none where nothing proves which.
        """
        claimed = "" if agent is not None else item.source_agent
        refusal = ""
        if agent is not None and agent == self.receiver:
            refusal = "It is what this agent shared itself."
        elif self.expected is not None and self.expected != (agent or item.source_agent):
            refusal = f"It is not from {self.expected}."
        return Offer(
            item_id=item.knowledge_id,
            title=item.title,
            content=item.content,
            origin=Origin(
                via="absorbed",
                agents=() if agent is None else (agent,),
                claimed=claimed,
                knowledge_id=item.knowledge_id,
                at=self.at,
            ),
            trust=min(_own_trust(item), self._believed(agent, claimed)),
            raw=json.loads(item.to_json()),
            tags=_tags(item),
            refusal=refusal,
            notice="" if agent is not None else f"Nothing proves that it is from {claimed or 'anybody'}.",
        )

    def _believed(self, agent: str | None, claimed: str) -> float:
        """Return how far a source is believed: a name that anybody may write makes it no more believed, only less."""
        trust, usual = self.policy.trust, self.policy.default_trust
        return trust.get(agent, usual) if agent is not None else min(usual, trust.get(claimed, usual))


def _own_trust(item: KnowledgeItem) -> float:
    """Return how far an item is believed by who shared it; what is no such figure says nothing for it."""
    given = item.metadata.get("trust", 1.0)
    is_figure = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 1
    return float(given) if is_figure else 0.0


def _tags(item: KnowledgeItem) -> tuple[str, ...]:
    given = item.metadata.get("tags")
    return tuple(dict.fromkeys(each for each in given if isinstance(each, str))) if isinstance(given, list) else ()
