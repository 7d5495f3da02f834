"""`remegraph demo`: the whole path on a bundled conversation, offline and without a model."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from remegraph.cli import views
from remegraph.cli.options import AsJson
from remegraph.cli.session import guarded, open_kit
from remegraph.demo import PEOPLE, Person, Played, play
from remegraph.kit import MemoryKit
from remegraph.models import MOVES, Memory, Recall

__all__ = ["demo"]

HITS = 4
"""Hits shown of each recall."""


def demo(
    *,
    home: Annotated[
        Path | None,
        typer.Option(
            "--home", help="Keep the memory in this folder. Unless given it is thrown away.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the whole path on a bundled conversation: offline, without a model, in a few seconds."""
    with (
        guarded(as_json=as_json) as out,
        _folder(home) as folder,
        open_kit(folder, model="none", create=True) as kit,
    ):
        started = time.perf_counter()
        with out.bars() as report:
            played = play(kit, report)
        seconds = time.perf_counter() - started
        shown = _Show(kit, played)
        out.show(shown.data(seconds), *(() if as_json else shown.views(seconds, out.console.width, home)))


@contextmanager
def _folder(home: Path | None) -> Iterator[Path]:
    if home is not None:
        yield home
        return
    with tempfile.TemporaryDirectory(prefix="remegraph-demo-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


class _Show:
    """What the demo shows, read off the kit."""

    def __init__(self, kit: MemoryKit, played: Sequence[Played]) -> None:
        self.kit = kit
        self.played = played
        statuses = tuple(MOVES)
        self.memories = {person: kit.memories(scope=person.scope, statuses=statuses) for person in PEOPLE}
        self.recalls = {
            person: kit.recall(person.question, scope=person.scope, k=HITS, depth="memories") for person in PEOPLE
        }

    def data(self, seconds: float) -> dict[str, object]:
        """Return everything as one document."""
        return {
            "seconds": round(seconds, 3),
            "people": [
                {
                    "user": entry.person.scope.user,
                    "messages": entry.added + entry.known,
                    "blocks": self.kit.blocks(scope=entry.person.scope),
                    "topics": self.kit.topics(scope=entry.person.scope),
                    "memories": self.memories[entry.person],
                    "objections": entry.report.objections,
                    "tools": self.kit.tool_stats(scope=entry.person.scope),
                    "recall": self.recalls[entry.person],
                    "trace": self.kit.trace(memory.memory_id, scope=entry.person.scope)
                    if (memory := self.traced(entry.person))
                    else None,
                }
                for entry in self.played
            ],
        }

    def traced(self, person: Person) -> Memory | None:
        """Return the memory to trace: the newest one that replaced another, else the best hit of the recall."""
        replacing = [memory for memory in self.memories[person] if memory.supersedes and memory.live]
        if replacing:
            return max(replacing, key=lambda memory: memory.said_at)
        found = {memory.memory_id: memory for memory in self.memories[person]}
        return next((found[hit.record_id] for hit in self.recalls[person].memories if hit.record_id in found), None)

    def views(self, seconds: float, width: int, home: Path | None) -> Iterator[RenderableType]:
        """Yield the show, part by part."""
        ann = PEOPLE[0]
        count = sum(entry.added + entry.known for entry in self.played)
        yield Text.assemble(
            ("remegraph", "bold"), "  every memory can be traced to the words that it came from\n",
            (f"{count} messages of two people with their agent Remy, summarised in {seconds:.1f} s. ", "dim"),
            ("No model, no network.", "dim"),
        )  # fmt: skip
        yield _head("1", "What was said, cut into blocks: the block index")
        for person in PEOPLE:
            yield from _indented(_name(person), *views.blocks(self.kit.blocks(scope=person.scope)))
        last = self.kit.blocks(scope=ann.scope)[-1]
        yield _head("2", f"One block, to the letter: {last.block_id}")
        yield from _indented(*views.messages(self.kit.retrieve_block(last.block_id, scope=ann.scope)))
        yield _head("3", "What is remembered, topic by topic; what was replaced is kept")
        for person in PEOPLE:
            yield from _indented(_name(person), *views.memories(self.memories[person]))
        yield _head("4", "What the reviser objected to")
        for entry in self.played:
            yield from _indented(_name(entry.person), *(views.objections(entry.report) or (Text("Nothing."),)))
        yield _head("5", "How reliable the tools are, for Ann")
        yield from _indented(*views.tools(self.kit.tool_stats(scope=ann.scope)))
        yield _head("6", "Recall: each sees their own memories only")
        for person in PEOPLE:
            asked = Text(f"“{person.question}”", style="italic")
            yield from _indented(_name(person), asked, *views.recall(self.recalls[person], width=width))
        yield Text(_apart(self.recalls), style="dim")
        if memory := self.traced(ann):
            yield _head("7", "Trace: from a memory down to the exact words")
            yield from _indented(views.trace(self.kit.trace(memory.memory_id, scope=ann.scope)))
        yield _head("", "Next")
        yield from _indented(_next(home))


def _head(number: str, title: str) -> RenderableType:
    return Padding(Rule(Text(f"{number} {title}".strip(), style="bold"), align="left", style="dim"), (1, 0, 0, 0))


def _name(person: Person) -> Text:
    return Text(person.scope.user, style="bold cyan")


def _indented(*parts: RenderableType) -> Iterator[RenderableType]:
    for part in parts:
        yield Padding(part, (0, 0, 0, 2))


def _apart(recalls: dict[Person, Recall]) -> str:
    """Say how many hits the two recalls share: none, or isolation is broken."""
    ann, xiaolin = ({hit.record_id for hit in found.memories} for found in recalls.values())
    return f"Hits that both see: {len(ann & xiaolin)}."


def _next(home: Path | None) -> Text:
    keep = f"remegraph --home {home}" if home else "remegraph demo --home ./remy   # keep this memory, then:"
    user = " --user Ann --agent remy"
    lines = [
        *([] if home else [keep]),
        f'remegraph --home {home or "./remy"} recall "What may Ann not eat?"{user}',
        f"remegraph --home {home or './remy'} trace ID{user}",
        "remegraph ingest chat.json   # your own conversation",
    ]
    return Text("\n".join(lines))
