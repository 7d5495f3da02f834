"""Knowledge items that go to another ledger: signed by the agent that shares them, so that their source can be proven."""

from __future__ import annotations

from pydantic import ValidationError

from remegraph.errors import SignatureError
from remegraph.exchange.signing import SigningKey, TrustStore
from remegraph.models import KnowledgeItem, Signature
from remegraph.rules.standardizing import SIGNATURE, item_digest

__all__ = ["signed", "signer"]

_PURPOSE = "knowledge"


def signed(item: KnowledgeItem, key: SigningKey) -> KnowledgeItem:
    """Return an item with its signature, in place of one that it has.

    Args:
        item: The item.
        key: That of the agent that shares it.
    """
    signature = key.sign(item_digest(item).encode(), purpose=_PURPOSE)
    return item.evolve(metadata={**item.metadata, SIGNATURE: signature.model_dump(mode="json")})


def signer(item: KnowledgeItem, keys: TrustStore) -> str | None:
    """Return the agent whose key signed an item, if it is the one that the item names; none where nothing proves that.

    Args:
        item: The item.
        keys: The keys that are believed.
    """
    try:
        key = keys.verify(
            item_digest(item).encode(), Signature.model_validate(item.metadata.get(SIGNATURE)), purpose=_PURPOSE
        )
    except (SignatureError, ValidationError):
        return None
    return key.name if key.name == item.source_agent else None
