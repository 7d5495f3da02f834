"""Draws the topic graph: topics are tied by the blocks they share and by the links between their memories (R5)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import combinations

from remegraph.models import Link, Memory, Topic, TopicEdge, TopicGraph, TopicNode

__all__ = ["topic_graph"]


def topic_graph(
    centre: Topic, topics: Iterable[Topic], memories: Iterable[Memory], links: Iterable[Link]
) -> TopicGraph:
    """Return the graph of topics around the centre.

    Topics of one key are one node, wherever they live. Two topics are tied where a block or a link is common to them;
    the centre is tied to all.

    Args:
        centre: The agent's topic of itself.
        topics: All topics, that of every memory among them; the centre may be one of them.
        memories: Their live memories.
        links: The links of these.
    """
    nodes = {topic.key: topic for topic in (*topics, centre)}
    topic_of = {memory.memory_id: memory.topic.key for memory in memories}
    counts = Counter(topic_of.values())
    topics_of_block: defaultdict[str, set[str]] = defaultdict(set)
    blocks: defaultdict[str, list[str]] = defaultdict(list)
    for memory in memories:
        for block_id in memory.block_ids:
            if memory.topic.key not in topics_of_block[block_id]:
                topics_of_block[block_id].add(memory.topic.key)
                blocks[memory.topic.key].append(block_id)
    shared: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for block_id, keys in topics_of_block.items():
        for pair in combinations(sorted(keys), 2):
            shared[pair].append(block_id)
    linked = Counter(
        _pair(topic_of[link.source_id], topic_of[link.target_id])
        for link in links
        if link.source_id in topic_of and link.target_id in topic_of
    )
    others = sorted(key for key in nodes if key != centre.key)
    spokes = [(centre.key, key) for key in others]
    ties = sorted(pair for pair in shared.keys() | linked.keys() if centre.key not in pair and pair[0] != pair[1])
    bubbles = {
        key: TopicNode(topic=topic, memories=counts[key], block_ids=tuple(blocks[key])) for key, topic in nodes.items()
    }
    return TopicGraph(
        centre=bubbles[centre.key],
        topics=tuple(bubbles[key] for key in others),
        edges=tuple(
            TopicEdge(
                source=one,
                target=other,
                block_ids=tuple(shared[_pair(one, other)]),
                links=linked[_pair(one, other)],
            )
            for one, other in (*spokes, *ties)
        ),
    )


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)
