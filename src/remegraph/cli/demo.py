"""`remegraph demo`: the whole path on a bundled conversation, offline, with what a model answered to it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from rich.console import RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text
from typer import Option

from remegraph.cli.command import SHORT_ID, guarded
from remegraph.cli.options import AsJson
from remegraph.cli.recall import block_grid, memory_list, message_list, recall_list, tool_table, trace_tree
from remegraph.cli.work import objections
from remegraph.demo import PEOPLE, Person, Played, model, play
from remegraph.kit import MemoryKit
from remegraph.models import MOVES, Memory
from remegraph.settings import Settings

__all__ = ["demo"]

HITS = 3
"""Hits shown of each recall."""

_ELSEWHERE = (
    "OPENAI_API_KEY",
    "REMEGRAPH_CHROMA_URL",
    "REMEGRAPH_EMBEDDER",
    "REMEGRAPH_FORMER_JOURNAL_KEYS",
    "REMEGRAPH_JOURNAL_KEY",
    "REMEGRAPH_LEDGER_URL",
    "REMEGRAPH_QUEUE",
    "REMEGRAPH_SETTINGS",
)
"""Settings that the demo ignores and other commands do not: where one is set, the commands that follow must unset it."""


def demo(
    *,
    home: Annotated[
        Path | None,
        Option("--home", help="Keep the memory in this folder; otherwise it is deleted."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the whole path on a bundled conversation: offline, with recorded answers of a model, in a few seconds."""
    with (
        guarded(as_json=as_json) as session,
        tempfile.TemporaryDirectory(prefix="remegraph-demo-", ignore_cleanup_errors=True) as folder,
        # whatever is configured
        MemoryKit.open(settings=Settings(home=home or Path(folder)), model=model(), embedder=None) as kit,
    ):
        started = time.perf_counter()
        played = play(kit, session.bars())
        seconds = time.perf_counter() - started
        shown = _Show(kit, played)
        session.show(shown.data(seconds), *(() if as_json else shown.views(seconds, session.console.width, home)))


class _Show:
    """Figures that the demo shows, read off the kit."""

    def __init__(self, kit: MemoryKit, played: Sequence[Played]) -> None:
        self.kit = kit
        self.played = played
        self.memories = {person: kit.memories(scope=person.scope, statuses=tuple(MOVES)) for person in PEOPLE}
        self.blocks = {
            person: [
                block for block in kit.sources.blocks(scope=person.scope) if block.partition.user == person.scope.user
            ]
            for person in PEOPLE
        }
        self.recalls = {person: kit.recall(person.question, scope=person.scope, k=HITS) for person in PEOPLE}

    def data(self, seconds: float) -> dict[str, object]:
        """Return everything as one document."""
        people = [
            {
                "user": entry.person.scope.user,
                "messages": entry.added + entry.known,
                "blocks": self.blocks[entry.person],
                "topics": self.kit.topics.list(scope=entry.person.scope),
                "memories": self.memories[entry.person],
                "objections": entry.report.objections,
                "tools": self.kit.tools.stats(scope=entry.person.scope),
                "recall": self.recalls[entry.person],
            }
            for entry in self.played
        ]
        return {"seconds": round(seconds, 3), "seen_of_others": self.seen_of_others(), "people": people}

    def seen_of_others(self) -> int:
        """Ask each person's question for the other, and count the hits that are not their own: none, or all is lost."""
        return sum(
            hit.partition.user not in {None, person.scope.user}
            for person in PEOPLE
            for other in PEOPLE
            for hit in self.kit.recall(other.question, scope=person.scope, depth="messages").memories
        )

    def traced(self) -> tuple[Person, Memory]:
        """Return the memory to trace: the newest that a person said of themselves and that replaced another."""
        found = ((person, memory) for person in PEOPLE for memory in self.memories[person])
        own = [(person, memory) for person, memory in found if memory.live and memory.topic.type == "personal"]
        return max(own, key=lambda found: (bool(found[1].supersedes), found[1].said_at))

    def views(self, seconds: float, width: int, home: Path | None) -> Iterator[RenderableType]:
        """Yield the show, part by part."""
        count = sum(entry.added + entry.known for entry in self.played)
        facts = (
            f"{count} messages of two people with their agent Remy, summarised in {seconds:.1f} s. No network: "
            "what a large language model answered was recorded."
        )
        yield Text.assemble(
            ("remegraph", "bold"), "  every memory can be traced to the words that it came from\n", (facts, "dim")
        )
        yield _head("1", "What was said, cut into blocks: the block index")
        for person in PEOPLE:
            yield from _indented(_name(person), *block_grid(self.blocks[person]))
        yield from self._block()
        yield from self._topics()
        yield _head("4", "What the reviser objected to: nothing fails silently")
        for entry in self.played:
            yield from _indented(_name(entry.person), *(objections(entry.report) or (Text("Nothing."),)))
        yield _head("5", f"How reliable the tools are, for {PEOPLE[0].scope.user}")
        yield from _indented(*tool_table(self.kit.tools.stats(scope=PEOPLE[0].scope)))
        yield _head("6", "Recall: each question finds its own user's memories, with scores and reasons")
        for person in PEOPLE:
            asked = Text(f"“{person.question}”", style="italic")
            yield from _indented(_name(person), asked, *recall_list(self.recalls[person], width=width))
        yield from _indented(Text(f"Memories of the other that either finds: {self.seen_of_others()}.", style="dim"))
        person, memory = self.traced()
        yield _head("7", "Trace: from a memory down to the exact words")
        yield from _indented(trace_tree(self.kit.trace(memory.memory_id, scope=person.scope)))
        yield _head("", "Next")
        yield from _indented(_next(home, person, memory))

    def _block(self) -> Iterator[RenderableType]:
        """Show the block of the memory that is traced, to the letter."""
        person, memory = self.traced()
        block_id = memory.block_ids[-1]
        yield _head("2", f"One block, to the letter: {block_id}")
        yield from _indented(*message_list(self.kit.sources.retrieve_block(block_id, scope=person.scope)))

    def _topics(self) -> Iterator[RenderableType]:
        yield _head("3", "What is remembered, topic by topic, as a model answered")
        shared = [memory for memory in self.memories[PEOPLE[0]] if memory.partition.user is None]
        yield from _indented(Text("Remy, for all its users", style="bold cyan"), *memory_list(shared))
        for person in PEOPLE:
            own = [memory for memory in self.memories[person] if memory.partition.user is not None]
            yield from _indented(_name(person), *memory_list(own))


def _head(number: str, title: str) -> RenderableType:
    return Padding(Rule(Text(f"{number} {title}".strip(), style="bold"), align="left", style="dim"), (1, 0, 0, 0))


def _name(person: Person) -> Text:
    return Text(person.scope.user, style="bold cyan")


def _indented(*parts: RenderableType) -> Iterator[RenderableType]:
    for part in parts:
        yield Padding(part, (0, 0, 0, 2))


def _next(home: Path | None, person: Person, memory: Memory) -> Text:
    folder = home or Path("remy")
    who = f"--user {person.scope.user} --agent {person.scope.agent}"
    command = "".join(f"{name}= " for name in _ELSEWHERE if os.environ.get(name)) + f"remegraph --home {folder}"
    lines = [
        *([] if home else [f"remegraph demo --home {folder}"]),
        f'{command} recall "What may Ann not eat?" {who}',
        f"{command} trace {memory.memory_id[:SHORT_ID]} {who}",
        f"{command} inspect {who}",
        f"{command} admin verify",
        "remegraph ingest chat.json    # your own: OpenAI or LangChain messages",
    ]
    return Text("\n".join(lines))
