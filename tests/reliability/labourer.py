"""A process that works on a ledger, says what is done, and is killed: at a failpoint, or from outside at any time.

Each turn adds a batch of messages, makes a block of it, and commits one operation for the block that gives every one
of `MEMORIES` memories its next version. It goes on where the one before was killed, and does what that one may have
done last once more.

Run as a program, this is a foreman: for each line of JSON, an `Order`, it forks a labourer, and says how it ended. It
has imported everything and opened nothing, so a labourer costs only its work.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import chromadb  # noqa: F401 - the labourers need it

from remegraph import MemoryKit, failpoints
from remegraph.files import IndexOwner
from remegraph.kit import (
    OpenOptions,
    components,  # noqa: F401 - likewise
)
from remegraph.ledger.archive import Archive
from remegraph.ledger.database import Database
from remegraph.ledger.index.chroma import ChromaIndex
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.ledger.index.guard import GuardedIndex
from remegraph.ledger.index.projection import VectorProjection, differences
from remegraph.ledger.journal import KeyRing, add_key
from remegraph.models import (
    AddReceipt,
    BlockSummary,
    ChangeSet,
    Cut,
    Memory,
    MemoryChange,
    Message,
    Partition,
    Scope,
    Topic,
    Work,
)
from remegraph.ports import VectorIndex
from tests.talk import packed

MEMORIES = 120
BATCH = 5
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
HERE = Partition(tenant="default", user="ann")
TALKER = Scope(user="ben")
TOPIC = Topic(type="personal", target_name="Ann")
WORDS = "tea cat sea red job moon salt bread river cello paint train glass violet summer garden mountain".split()


def say(*words: object) -> None:
    """Acknowledge: what was said is done."""
    print(*words, flush=True)  # noqa: T201 - the acknowledgement


def die_at(name: str, hits: int) -> None:
    """Be killed when a place is reached the so-manieth time."""
    left = hits

    def reached(place: str) -> None:
        nonlocal left
        if place == name:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    failpoints.listen(reached)


@dataclass(frozen=True)
class Place:
    """Where is worked: a home, and the servers that it is on, if it is."""

    home: Path
    servers: Mapping[str, Any]
    """`ledger_url` and `chroma_url`; none where the home has files of its own."""

    @property
    def ledger_url(self) -> str:
        """The ledger."""
        return str(self.servers.get("ledger_url", f"sqlite:///{self.home / 'ledger.sqlite'}"))

    def index(self, database: Database) -> VectorIndex:
        """Open the vector index."""
        if self.servers:
            return ChromaIndex.server(self.servers["chroma_url"])
        owner = IndexOwner.acquire(self.home / "index")
        assert owner is not None
        return GuardedIndex(database, owner)

    def kit(self, **options: Any) -> MemoryKit:
        """Open a kit without a model."""
        return MemoryKit.open(
            self.home, model=None, embedder=HashedEmbedder(64), **self.servers, **packed(options, OpenOptions)
        )


class Labourer:
    """Works on the ledger below the kit."""

    def __init__(self, place: Place) -> None:
        keys = KeyRing([add_key(place.home, first=True)])
        self.archive = Archive.open(place.ledger_url, keys=keys, clock=lambda: NOON, new_id=lambda: uuid4().hex)

    def recover(self) -> None:
        """Finish what the one before began; deliver once more what it delivered last."""
        self.cut()
        self.commit_open()
        batches = len(self.archive.messages([HERE])) // BATCH
        if batches:
            assert self.add(batches).added == 0
        done = [work for work in self.archive.work([HERE], states=["done"]) if not work.topic]
        if done:
            last = max(work.block_id for work in done)
            assert self.archive.commit(self.change(last, len(done))).replayed
        self.turns = batches

    def turn(self) -> None:
        """Add, cut, commit."""
        self.turns += 1
        self.add(self.turns)
        say("batch", self.turns)
        self.cut()
        self.commit_open()

    def add(self, number: int) -> AddReceipt:
        """Record a batch of messages, whose ids tell its number."""
        messages = [
            Message(message_id=f"b{number}-{at}", role="user", content=f"tea {number} {at}", time=day(number))
            for at in range(BATCH)
        ]
        return self.archive.add_messages(HERE, messages, NOON)

    def cut(self) -> None:
        """Make a block of what has none."""
        for tail in self.archive.tails(HERE):
            first, last = tail.messages[0].seq, tail.messages[-1].seq
            cut = Cut(thread=tail.thread, after_seq=tail.after_seq, first_seq=first, last_seq=last)
            for block in self.archive.add_blocks(HERE, [cut], "1"):
                say("block", block.block_id)

    def commit_open(self) -> None:
        """Commit the operation of each block that waits."""
        for work in self.archive.work([HERE], states=["pending"]):
            done = len(self.archive.work([HERE], states=["done"]))
            self.archive.commit(self.change(work.block_id, done + 1))
            say("operation", done + 1)

    def change(self, block_id: str, version: int) -> ChangeSet:
        """The operation of a block: all memories get their next version, the block its index entry and its mark."""
        rng = random.Random(version)
        (block,) = self.archive.blocks([HERE], ids=[block_id])
        summary = BlockSummary(
            block_id=block_id,
            partition=HERE,
            start_time=block.start_time,
            end_time=block.end_time,
            summary=f"{' '.join(rng.sample(WORDS, 5))} {block_id}",
        )
        memories = [
            Memory(
                memory_id=f"m{number}",
                partition=HERE,
                topic=TOPIC,
                content=f"{' '.join(rng.sample(WORDS, 6))} {number} {version}",
                said_at=NOON,
                recorded_at=NOON,
            )
            for number in range(MEMORIES)
        ]
        return ChangeSet(
            operation_id=f"operation of {block_id}",
            actor="labourer",
            recorded_at=NOON,
            at_home=True,
            changes=tuple(
                MemoryChange(memory=each, expected_version=version - 1, action="refine") for each in memories
            ),
            summaries=(summary,),
            work=(Work(partition=HERE, block_id=block_id, recipe="1", state="done", attempts=1),),
        )


def day(number: int) -> datetime:
    """A day of its own for each batch, so that labels sort as they were made."""
    return NOON + timedelta(days=number)


def ledger_only(place: Place, kill: Callable[[], None]) -> None:
    """Work on the ledger, without an index."""
    labourer = Labourer(place)
    labourer.recover()
    kill()
    say("ready")
    while True:
        labourer.turn()


def with_index(place: Place, kill: Callable[[], None], *, healing: bool = False) -> None:
    """Work on the ledger and apply it to the index, in batches of over a hundred, and build it anew now and then."""
    labourer = Labourer(place)
    database = labourer.archive.database
    index, embedder = place.index(database), HashedEmbedder(64)
    projection = VectorProjection.open(database, index, embedder, exact_limit=0)
    labourer.recover()
    if healing:
        kill()
    projection.sync()
    say("compared", *differences(database, index, embedder, 200, thorough=False)[1])
    kill()
    say("ready")
    while True:
        labourer.turn()
        projection.sync()
        say("synced")
        if labourer.turns % 3 == 0:
            projection.rebuild()
            say("rebuilt")


def with_kit(place: Place, kill: Callable[[], None]) -> None:
    """Talk, summarise without a model, and recall."""
    kit = place.kit()
    kit.summarize(scope=TALKER, close=True)
    kill()
    say("ready")
    rng = random.Random(os.getpid())
    while True:
        texts = [f"I like {' and '.join(rng.sample(WORDS, 3))}." for _ in range(BATCH)]
        say("said", *kit.add_messages(texts, scope=TALKER).message_ids)
        kit.summarize(scope=TALKER, close=True)
        kit.recall("What do I like?", scope=TALKER)
        say("summarized")


@dataclass(frozen=True)
class Order:
    """What a labourer shall do, and where it is killed; no place: at any moment, from outside."""

    home: str
    servers: Mapping[str, Any]
    mode: str
    place: str
    hits: int

    def carry_out(self) -> None:
        """Work until killed."""
        say("born", os.getpid())
        modes: dict[str, Callable[[Place, Callable[[], None]], None]] = {
            "ledger": ledger_only,
            "index": with_index,
            "healing": partial(with_index, healing=True),
            "kit": with_kit,
        }
        where = Place(Path(self.home), self.servers)
        modes[self.mode](where, lambda: die_at(self.place, self.hits) if self.place else None)


def _main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if not child:
            Order(**json.loads(line)).carry_out()
            return
        _, status = os.waitpid(child, 0)
        say("ended", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    _main()
