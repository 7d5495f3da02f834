"""What other agents let the reader read: searched among these memories alone, and told as theirs (B11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from remegraph.engine.hits import memory_hit
from remegraph.engine.looking_back import as_asked
from remegraph.engine.passing import holds, timed, within
from remegraph.engine.retrieval import OVERFETCH, RecallInput
from remegraph.engine.search import Searcher
from remegraph.models import Hit, Memory, Origin, Partition
from remegraph.ports import GrantBook
from remegraph.rules.sharing import believed
from remegraph.settings import SharingPolicy

__all__ = ["Borrower"]


class Borrower:
    """Finds what grants let through. Which memories those are, the ledger decides at each read.

    Args:
        book: The grants.
        searcher: Searches among the memories that they let through.
        policy: How far the givers are believed.
    """

    def __init__(self, book: GrantBook, searcher: Searcher, policy: SharingPolicy) -> None:
        self._book = book
        self._searcher = searcher
        self._policy = policy

    def find(self, asked: RecallInput, wanted: int) -> tuple[Hit, ...]:
        """Return what bears on a query of what others let the scope read.

        Args:
            asked: The query, with all its conditions.
            wanted: How many hits are enough.
        """
        if asked["scope"].agent is None or asked["depth"] == "summaries":
            return ()
        opened = self._book.opened(asked["scope"])
        if not opened:
            return ()
        looks_back = asked["only"].looks_back or timed(asked["mode"], asked["time_start"], asked["time_end"])
        hits = self._looked_back(asked) if looks_back else self._searched(asked, opened, wanted)
        return tuple(_as_theirs(hit) for hit in hits)

    def _looked_back(self, asked: RecallInput) -> list[Hit]:
        scope, only = asked["scope"], asked["only"]
        hits = as_asked(
            self._weighed(self._book.memories(scope)),
            lambda head: self._weighed(self._book.versions(scope, head.memory_id)),
            asked["query"],
            only,
            worded=not timed(asked["mode"], asked["time_start"], asked["time_end"]),
        )
        return [hit for hit in hits if _in_reach(hit, asked)]

    def _searched(self, asked: RecallInput, opened: Mapping[Partition, Sequence[str]], wanted: int) -> list[Hit]:
        """Read the best candidates; where few of them pass, read on."""
        scope, words = asked["scope"], asked["mode"] != "semantic"
        ids = [memory_id for some in opened.values() for memory_id in some]
        looked_at = wanted * OVERFETCH
        candidates = self._searcher.search(
            list(opened), "memory", asked["question"], looked_at, words=words, allowed=ids, patience=asked["patience"]
        ).found
        hits: list[Hit] = []
        for start in range(0, len(candidates), wanted):
            scores = {each.record_id: each.contributions for each in candidates[start : start + wanted]}
            memories = self._weighed(self._book.memories(scope, list(scores)))
            read = (memory_hit(each, scores[each.memory_id]) for each in memories if asked["only"].admits(each))
            hits.extend(hit for hit in read if _in_reach(hit, asked))
            if len(hits) >= wanted:
                break
        return hits

    def _weighed(self, memories: Iterable[Memory]) -> list[Memory]:
        """Return memories, believed no further than those who gave them."""
        return [
            each.model_copy(update={"trust": believed(each.trust, each.partition.agent or "", self._policy)})
            for each in memories
        ]


def _in_reach(hit: Hit, asked: RecallInput) -> bool:
    """Return whether a hit is of the topics, the time and the letter asked for."""
    keys = None if asked["topics"] is None else {key.casefold() for key in asked["topics"]}
    return (
        (keys is None or hit.topic.casefold() in keys)
        and within(hit.time, asked["time_start"], asked["time_end"])
        and holds(hit.text, asked)
    )


def _as_theirs(hit: Hit) -> Hit:
    """Return a hit as another agent's own: it binds nobody here, and does not speak in the reader's voice."""
    origin = Origin(via="granted", agents=(hit.partition.agent or "",), at=hit.time)
    return hit.model_copy(update={"origin": origin, "enforcement": None, "perspective": "third-person"})
