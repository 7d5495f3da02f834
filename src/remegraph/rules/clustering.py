"""Which memories of one topic belong together: communities of a graph whose edges are likeness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import networkx as nx

from remegraph.rules.terms import Lexicon, recurring

__all__ = ["clusters"]

_SEED = 7

_HOLDERS = 100
"""A word that more have ties nobody by itself: pairs grow with the square of them."""

Near = Callable[[int, int], float | None]
"""Cosine of two texts' meanings; none where it is not known."""


def clusters(
    said: Sequence[frozenset[str]],
    lexicon: Lexicon,
    *,
    threshold: float,
    least: int,
    apart: Callable[[int, int], bool],
    near: Near = lambda _one, _other: None,
) -> list[tuple[int, ...]]:
    """Return groups of similar texts, the largest first; a text that fits nowhere is in none.

    Texts are tied where they are alike enough; groups are the communities of that graph (Blondel et al., "Fast unfolding
    of communities in large networks", 2008). In a group remains who has one of the words that recur in it: a chain of
    texts of which only neighbours are alike is no group. The same texts give the same groups.

    Args:
        said: The telling words of each text.
        lexicon: Weighs them.
        threshold: Likeness from which on two are tied, 0 to 1: the cosine of their words, or its mean with that of
            their meanings.
        least: Size of the smallest group.
        apart: Says of two texts that they must not be tied.
        near: Says how near their meanings are.
    """
    graph = nx.Graph()
    graph.add_nodes_from(range(len(said)))
    for one, other, words in _alike(said, lexicon):
        meaning = near(one, other)
        likeness = words if meaning is None else (words + max(meaning, 0.0)) / 2
        if likeness >= threshold and not apart(one, other):
            graph.add_edge(one, other, weight=likeness)
    found = [_core(sorted(group), said, lexicon) for group in nx.community.louvain_communities(graph, seed=_SEED)]
    return sorted((group for group in found if len(group) >= least), key=lambda group: (-len(group), group))


def _alike(said: Sequence[frozenset[str]], lexicon: Lexicon) -> Iterator[tuple[int, int, float]]:
    """Yield pairs that share a word that few have, with the cosine of all their words."""
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for number, words in enumerate(said):
        for word in words:
            holders[word].append(number)
    rare = [numbers for numbers in holders.values() if len(numbers) <= _HOLDERS]
    for one, other in sorted({pair for numbers in rare for pair in combinations(numbers, 2)}):
        yield one, other, lexicon.likeness(said[one], said[other])


def _core(group: Sequence[int], said: Sequence[frozenset[str]], lexicon: Lexicon) -> tuple[int, ...]:
    words = frozenset(recurring([said[number] for number in group], lexicon))
    return tuple(number for number in group if said[number] & words)
