"""`kit.items`: key-value items of a scope, with vector search and a time to live; not memories, and not versioned.

What a LangGraph store is made of. An item belongs to one scope, and no other scope ever sees it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from remegraph.errors import WITHOUT_VECTORS, EmbedderMismatchError, ModelError
from remegraph.kit.validation import check_numbers, required
from remegraph.models import Partition, Scope
from remegraph.ports import ItemChange, StoredItem
from remegraph.telemetry import event

if TYPE_CHECKING:
    from remegraph.kit.components import Parts
    from remegraph.ports import Vectors

__all__ = ["Items"]

_log = logging.getLogger(__name__)

_FIRST_LOOK = 200  # texts that a search looks at: an item may have several
_WIDEN = 4
_DIGITS = 6  # of a cosine: what differs less is equally near

Where = Callable[[Mapping[str, Any]], bool]
"""Returns, from the value of an item, whether it is wanted."""

Scored = tuple[StoredItem, float | None]
"""An item, and its cosine with the query; none where it was not found by its texts."""


class Items:
    """The items of all scopes, one scope at a time. All calls block; run them in a thread where that matters.

    Args:
        parts: Gives the parts of an open kit.
    """

    def __init__(self, parts: Callable[[], Parts]) -> None:
        self._parts = parts

    def get(self, namespace: tuple[str, ...], key: str, *, scope: Scope, refresh: bool = True) -> StoredItem | None:
        """Return an item, if there is one.

        Args:
            namespace: Its namespace, label by label.
            key: Its key.
            scope: Whose item.
            refresh: Whether reading it gives it its full time to live again.
        """
        partition = required(scope).partition()
        with self._parts().items.read(partition) as shelf:
            found = shelf.find(namespace, key)
        if found is not None and refresh:
            self._refresh(partition, [found])
        return found

    def search(
        self,
        prefix: tuple[str, ...],
        *,
        scope: Scope,
        query: str = "",
        where: Where | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = True,
    ) -> list[Scored]:
        """Return the items of all namespaces that begin with some labels.

        Without a query they come in their order: by namespace, then by item, the oldest first. With one, those that
        have indexed texts come first, best first, by the best of their texts; the others fill up what is missing to
        the limit. Where the embedder is down, all come in their order.

        Args:
            prefix: The first labels; none: all namespaces.
            scope: Whose items.
            query: What to look for by meaning.
            where: Only items that it returns true for.
            limit: How many at most.
            offset: How many of the best to leave out.
            refresh: Whether reading items gives them their full time to live again.

        Raises:
            InputError: The limit or the offset is no number that can be counted to.
        """
        check_numbers(least=0, whole=True, limit=limit, offset=offset)
        partition = required(scope).partition()
        found: list[Scored] | None = None
        if query:
            try:
                found = self._nearest(partition, prefix, query, where, limit=limit, offset=offset)
            except (EmbedderMismatchError, ModelError) as error:
                _log.warning(
                    "Items are listed without regard to the query: %s", error, extra=event("search.words", error)
                )
        if found is None:
            found = self._in_order(partition, prefix, where, limit=limit, offset=offset)
        if refresh:
            self._refresh(partition, (item for item, _ in found))
        return found

    def namespaces(self, *, scope: Scope) -> list[tuple[str, ...]]:
        """Return all namespaces that hold an item, by their labels.

        Args:
            scope: Whose items.
        """
        with self._parts().items.read(required(scope).partition()) as shelf:
            return shelf.namespaces()

    def write(self, changes: Sequence[ItemChange], *, scope: Scope) -> int:
        """Write and delete items: all or none. What has expired is deleted, too; return how many items that were.

        The items are durable once this returns. Where the embedder or the vector index is down, they get their
        vectors later, and come last in a search by query until then.

        Args:
            changes: At most one for each name; none, to delete what has expired.
            scope: Whose items.
        """
        parts = self._parts()
        kept = [
            replace(each, value=parts.redactor.json(each.value), texts=tuple(map(parts.redactor.text, each.texts)))
            for each in changes
        ]
        with parts.items.write(required(scope).partition()) as shelf:
            expired = shelf.apply(kept)
        self._sync()
        return expired

    # ------------------------------------------------------------------------------------------- inside

    def _in_order(
        self, partition: Partition, prefix: tuple[str, ...], where: Where | None, *, limit: int, offset: int
    ) -> list[Scored]:
        with self._parts().items.read(partition) as shelf:
            if where is None:
                return [(item, None) for item in shelf.below(prefix, limit=limit, offset=offset)]
            found = [(item, None) for item in shelf.below(prefix) if where(item.value)]
        return [*found[offset : offset + limit]]

    def _nearest(
        self,
        partition: Partition,
        prefix: tuple[str, ...],
        query: str,
        where: Where | None,
        *,
        limit: int,
        offset: int,
    ) -> list[Scored]:
        parts = self._parts()
        vector = parts.embedder.embed([query])[0]
        with parts.items.read(partition) as shelf:
            numbers = (
                shelf.numbers_below(prefix)
                if where is None
                else [item.number for item in shelf.below(prefix) if where(item.value)]
            )
            places = {number: place for place, number in enumerate(numbers)}
            texts = {name: number for name, number in shelf.texts_below(prefix).items() if number in places}
        scores = self._scores(partition, texts, vector, offset + limit)
        ranked = sorted(scores, key=lambda number: (-round(scores[number], _DIGITS), places[number]))
        chosen = ranked[offset : offset + limit]
        unscored = (number for number in numbers if number not in scores)
        chosen += islice(unscored, limit - len(chosen))
        with parts.items.read(partition) as shelf:
            found = shelf.numbered(chosen)
        return [(found[number], scores.get(number)) for number in chosen if number in found]

    def _scores(self, partition: Partition, texts: Mapping[str, int], vector: Vectors, wanted: int) -> dict[int, float]:
        """Return the best cosines of so many items at least, if so many have vectors."""
        look = max(_FIRST_LOOK, wanted)
        while True:
            hits, _ = self._parts().projection.nearest([partition], "item", vector, look, allowed=list(texts))
            scores: dict[int, float] = {}
            for hit in hits:  # best first
                scores.setdefault(texts[hit.record_id], hit.similarity)
            if len(scores) >= wanted or len(hits) < look:
                return scores
            look *= _WIDEN

    def _refresh(self, partition: Partition, found: Iterable[StoredItem]) -> None:
        expiring = [item.number for item in found if item.expires]
        if expiring:
            with self._parts().items.write(partition) as shelf:
                shelf.touch(expiring)

    def _sync(self) -> None:
        try:
            self._parts().projection.follow()
        except WITHOUT_VECTORS as error:  # SQL has the items; a later sync goes on
            _log.warning(
                "Items were written, but not all have vectors yet: %s", error, extra=event("index.behind", error)
            )
