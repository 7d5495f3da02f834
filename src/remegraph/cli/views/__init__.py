"""How records look on a terminal: sober, readable without colour, and in narrow windows."""

from remegraph.cli.views.conflicts import conflicts
from remegraph.cli.views.erasing import erasures
from remegraph.cli.views.fading import consolidation, explanation, forecast, maintenance
from remegraph.cli.views.governing import archaeology, audit, checked, difference, exported
from remegraph.cli.views.importing import imported
from remegraph.cli.views.looks import SHORT_ID, Views, plain, text
from remegraph.cli.views.packs import built, installed, keys, new_key, pack, pack_difference
from remegraph.cli.views.reading import blocks, memories, messages, recall, skills, tools, topics
from remegraph.cli.views.recording import ingested, objections, summary, work
from remegraph.cli.views.rules import injection, rules
from remegraph.cli.views.sharing import grants, proposals
from remegraph.cli.views.trees import topic_graph, trace
from remegraph.cli.views.upkeep import backup, diagnosis, stats, verification
from remegraph.cli.views.working import health, jobs

__all__ = [
    "SHORT_ID",
    "Views",
    "archaeology",
    "audit",
    "backup",
    "blocks",
    "built",
    "checked",
    "conflicts",
    "consolidation",
    "diagnosis",
    "difference",
    "erasures",
    "explanation",
    "exported",
    "forecast",
    "grants",
    "health",
    "imported",
    "ingested",
    "injection",
    "installed",
    "jobs",
    "keys",
    "maintenance",
    "memories",
    "messages",
    "new_key",
    "objections",
    "pack",
    "pack_difference",
    "plain",
    "proposals",
    "recall",
    "rules",
    "skills",
    "stats",
    "summary",
    "text",
    "tools",
    "topic_graph",
    "topics",
    "trace",
    "verification",
    "work",
]
