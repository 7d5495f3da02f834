"""What hangs together: the way from a memory to its words, and the topics around the agent."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text
from rich.tree import Tree

from remegraph.cli.views.looks import SHORT_ID, WORDS, Views, counted, minute, plain
from remegraph.models import Quote, TopicEdge, TopicGraph, TopicNode, Trace

__all__ = ["topic_graph", "trace"]


def trace(found: Trace) -> RenderableType:
    """Show the way from a memory down to the exact words."""
    memory = found.memory
    head = Text(plain(memory.content), style="bold").append("\n")
    facts = [memory.status, memory.layer, memory.topic.key, f"version {memory.version}", f"by {memory.extractor}"]
    tree = Tree(head.append(plain(" · ".join(facts)), style="not bold dim"), guide_style="dim")
    if len(found.versions) > 1:
        versions = tree.add(Text("versions", style="cyan"))
        for version in found.versions:
            versions.add(Text(f"{version.version}  {minute(version.recorded_at)}  {plain(version.content)}"))
    entries = {entry.block_id: entry for entry in found.summaries}
    told = set()
    for block in found.blocks:
        entry = entries.get(block.block_id)
        label = Text(f"block {block.block_id}", style="cyan").append(f"  {minute(block.start_time)}", style="dim")
        branch = tree.add(label.append(f"\n{plain(entry.summary)}", style="not dim") if entry else label)
        own = {message.message_id for message in found.messages if block.first_seq <= message.seq <= block.last_seq}
        for quote in found.quotes:
            if quote.message.message_id in own and block.thread == quote.message.thread:
                branch.add(_quoted(quote))
                told.add((quote.message.message_id, quote.start))
    for quote in found.quotes:
        if (quote.message.message_id, quote.start) not in told:
            tree.add(_quoted(quote))
    for link in found.links:
        tree.add(Text(f"{link.type} {link.target_id[:SHORT_ID]}  {plain(link.reason)}"))
    for missing in found.missing:
        tree.add(Text(f"missing: {plain(missing)}", style="yellow"))
    return tree


def _quoted(quote: Quote) -> Text:
    """Return the message with the exact words between brackets, and highlighted."""
    message = quote.message
    before, after = quote.text[: quote.start], quote.text[quote.end :]
    head = f"{plain(message.speaker)}, {minute(message.time)}, message {plain(message.message_id)}\n"
    return Text.assemble((head, "dim"), plain(before), (f"[{plain(quote.words)}]", WORDS), plain(after))


def topic_graph(graph: TopicGraph) -> Views:
    """Show the topics as branches of the centre, each with what ties it to others."""
    tree = Tree(_bubble(graph.centre), guide_style="dim")
    spokes = {edge.target: edge for edge in graph.edges if edge.source == graph.centre.topic.key}
    for node in graph.topics:
        key = node.topic.key
        branch = tree.add(_bubble(node))
        ties = [edge for edge in graph.edges if key in (edge.source, edge.target) and edge not in spokes.values()]
        for edge in (spokes[key], *ties):
            if common := _common(edge):
                other = edge.target if edge.source == key else edge.source
                branch.add(Text(plain(f"{common} with {other}"), style="dim"))
    return (tree,)


def _bubble(node: TopicNode) -> Text:
    facts = f" · {counted(node.memories, 'memory', 'memories')} · {counted(len(node.block_ids), 'block')}"
    return Text.assemble((plain(node.topic.key), "bold"), (facts, "dim"))


def _common(edge: TopicEdge) -> str:
    counts = ((len(edge.block_ids), "block"), (edge.links, "link"))
    return " and ".join(counted(number, what) for number, what in counts if number)
