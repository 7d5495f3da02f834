"""The topic graph: the agent's memory of itself at the centre, and what ties topics together."""

from __future__ import annotations

import pytest

from remegraph.engine.routes import topic_graph
from remegraph.models import Link, Memory, Partition, Topic, TopicEdge
from tests.talk import NOON

SELF = Topic(type="self", target_name="self")
ANN = Topic(type="personal", target_name="Ann")
TAX = Topic(type="task", target_name="tax")
WEB = Topic(type="tool", target_name="web_search")


def memory(memory_id: str, topic: Topic, *block_ids: str) -> Memory:
    return Memory(
        memory_id=memory_id,
        partition=Partition(tenant="default", user="Ann"),
        topic=topic,
        content=memory_id,
        block_ids=block_ids,
        said_at=NOON,
        recorded_at=NOON,
    )


@pytest.mark.requirement("R5")
def test_the_agent_itself_is_the_centre_and_tied_to_every_topic() -> None:
    """Also before it knows anything of itself: what it is bears on all that it knows."""
    graph = topic_graph(SELF, [TAX, ANN], [], [])
    assert (graph.centre.topic, graph.centre.memories) == (SELF, 0)
    assert [(edge.source, edge.target) for edge in graph.edges] == [
        ("self:self", "personal:Ann"),
        ("self:self", "task:tax"),
    ]


@pytest.mark.requirement("R5")
def test_topics_that_share_a_block_or_a_link_are_tied() -> None:
    """The inspector shows which tool a task leans on, and which person it is about."""
    memories = [memory("m1", ANN, "b1", "b2"), memory("m2", TAX, "b2"), memory("m3", WEB, "b3"), memory("m4", SELF)]
    links = [
        Link(source_id="m2", type="depends_on", target_id="m3"),
        Link(source_id="m1", type="related", target_id="m4"),
        Link(source_id="m1", type="related", target_id="elsewhere"),
    ]
    graph = topic_graph(SELF, [SELF, ANN, TAX, WEB], memories, links)

    assert [node.topic for node in graph.topics] == [ANN, TAX, WEB]
    assert [node.block_ids for node in graph.topics] == [("b1", "b2"), ("b2",), ("b3",)]
    spokes, ties = graph.edges[:3], graph.edges[3:]
    assert {edge.target: edge.links for edge in spokes} == {"personal:Ann": 1, "task:tax": 0, "tool:web_search": 0}
    assert ties == (
        TopicEdge(source="personal:Ann", target="task:tax", block_ids=("b2",)),
        TopicEdge(source="task:tax", target="tool:web_search", links=1),
    )


@pytest.mark.requirement("R5")
def test_a_topic_on_two_shelves_is_one_bubble_and_no_edge_to_itself() -> None:
    """A person known to the user and to the team is one person."""
    memories = [memory("m1", ANN, "b1"), memory("m2", ANN.evolve(description="The boss."), "b1", "b4")]
    graph = topic_graph(SELF, [ANN, ANN], memories, [Link(source_id="m1", type="related", target_id="m2")])
    (bubble,) = graph.topics
    assert (bubble.memories, bubble.block_ids, len(graph.edges)) == (2, ("b1", "b4"), 1)
