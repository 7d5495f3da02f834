"""Whether memories come out of a pack as they went in: exported, imported into a new home, compared.

    python -m evals packs --data locomo_dev.jsonl [--limit-stores 2] [--timezone ZONE]

Each store is one user's conversation, recorded, summarised and consolidated without a model; then its memories go into a
pack, and from there into another home. Compared are all versions of all memories, all links between them, and the words
and blocks that they came from. A second import may change no row of any table, and both homes must verify.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

from evals._figures import Figure, explain_data, finish
from evals.ingest import ingest, table_digests
from remegraph import MemoryKit, Scope, Settings
from remegraph.importers.conversations import read_conversations
from remegraph.models import LIVE, Block, Link, Memory, Message

__all__ = ["Whole", "main", "unequal", "whole"]


@dataclass(frozen=True)
class Whole:
    """All that a scope's memories are."""

    versions: dict[str, tuple[Memory, ...]] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    words: dict[str, str] = field(default_factory=dict)
    """The messages of the blocks that memories cite, by id, as JSON."""
    blocks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The messages of each of these blocks."""


def whole(kit: MemoryKit, scope: Scope) -> Whole:
    """Return all that the scope's memories are, but for what was taken back.

    Args:
        kit: Holds them.
        scope: Whose.
    """
    archive, here = kit.context.parts().archive, [scope.partition()]
    heads = archive.memories(here, statuses=sorted({*LIVE, "archived", "superseded"}))
    versions = {head.memory_id: archive.versions(here, head.memory_id) for head in heads}
    cited = {name for each in versions.values() for version in each for name in version.block_ids}
    held = {block.block_id: _messages(kit, block) for block in archive.blocks(here, ids=sorted(cited))}
    return Whole(
        versions=versions,
        links=archive.links(here, sorted(versions)),
        words={
            message.message_id: message.model_dump_json(exclude={"seq", "recorded_at"})
            for each in held.values()
            for message in each
        },
        blocks={name: tuple(message.message_id for message in each) for name, each in held.items()},
    )


def _messages(kit: MemoryKit, block: Block) -> Sequence[Message]:
    return kit.context.parts().archive.messages(
        [block.partition], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq
    )


def unequal(one: Whole, other: Whole) -> Counter[str]:
    """Return how many records of each sort are not equal, or are missing on one side."""
    found: Counter[str] = Counter()
    for name in ("versions", "words", "blocks"):
        mine, theirs = getattr(one, name), getattr(other, name)
        found[name] = sum(mine.get(key) != theirs.get(key) for key in mine.keys() | theirs.keys())
    found["links"] = len(set(one.links) ^ set(other.links))
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="python -m evals packs", description="Moves memories by packs.")
    parser.add_argument("--data", type=Path, help="A file of stores.")
    parser.add_argument("--limit-stores", type=int, help="Only the first so many.")
    parser.add_argument("--timezone", type=ZoneInfo, help="Zone of times that name none.")
    options = parser.parse_args(argv)
    if options.data is None:
        explain_data("packs", "locomo_dev.jsonl [--timezone ZONE]")
        return
    conversations = list(islice(read_conversations(options.data, timezone=options.timezone), options.limit_stores))
    counts, differing = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, second = (Settings(home=folder / home) for home in ("first", "second"))
        with (
            MemoryKit.open(settings=first, model=None, embedder=None) as source,
            MemoryKit.open(settings=second, model=None, embedder=None) as target,
        ):
            ingest(source, conversations)
            for number, conversation in enumerate(conversations):
                scope = Scope(user=conversation.user or "user", agent="remy")
                source.retention.consolidate(scope=scope)
                pack = folder / f"{number}.pack"
                began = time.process_time()
                source.packs.build(pack, scope=scope)
                built = time.process_time()
                target.packs.install(pack, scope=scope, trust=1)
                counts["build_ms"] += round(1000 * (built - began))
                counts["install_ms"] += round(1000 * (time.process_time() - built))
                counts["bytes"] += pack.stat().st_size
                mine = whole(source, scope)
                differing += unequal(mine, whole(target, scope))
                counts += _counted(mine)
            healthy = sum(len(kit.admin.verify().differences) for kit in (source, target))
            before = table_digests(f"sqlite:///{second.home / 'ledger.sqlite'}")
            for number, conversation in enumerate(conversations):
                scope = Scope(user=conversation.user or "user", agent="remy")
                target.packs.install(folder / f"{number}.pack", scope=scope, trust=1)
            after = table_digests(f"sqlite:///{second.home / 'ledger.sqlite'}")
    print(f"{options.data.name}: {len(conversations)} stores")
    changed = sorted(name for name in before if before[name] != after.get(name))
    finish(
        [
            Figure("memories that differ in a version", differing["versions"], 0, "exactly", note=_told(counts)),
            Figure("links that differ", differing["links"], 0, "exactly", note=f"of {counts['links']:,}"),
            Figure("messages that differ", differing["words"], 0, "exactly", note=f"of {counts['words']:,}"),
            Figure("blocks that differ", differing["blocks"], 0, "exactly", note=f"of {counts['blocks']:,}"),
            Figure("differences that verify finds", healthy, 0, "exactly", note="in both homes"),
            Figure("tables that a second import changes", len(changed), 0, "exactly", note=", ".join(changed)),
            Figure("size of the packs", counts["bytes"] / 1e6, unit="MB"),
            Figure("processor time to build", counts["build_ms"] / 1000, unit="s"),
            Figure("processor time to install", counts["install_ms"] / 1000, unit="s"),
        ]
    )


def _counted(found: Whole) -> Counter[str]:
    versions = [len(each) for each in found.versions.values()]
    return Counter(
        memories=len(versions),
        versions=sum(versions),
        several=sum(each > 1 for each in versions),
        links=len(found.links),
        words=len(found.words),
        blocks=len(found.blocks),
    )


def _told(counts: Counter[str]) -> str:
    return f"of {counts['memories']:,}, in {counts['versions']:,} versions; {counts['several']:,} have several"


if __name__ == "__main__":
    main()
