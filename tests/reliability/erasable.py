"""A home full of somebody's words, in every place that words may get to, and a look at its bytes."""

from __future__ import annotations

import base64
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from remegraph import MemoryKit, Scope, Settings, SlicingPolicy
from remegraph.failpoints import listen
from remegraph.kit import OpenOptions
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.models import Abstraction, ChangeSet, Link, Memory, MemoryChange, Subject
from remegraph.ports import ItemChange
from remegraph.settings import RecallPolicy
from tests.talk import NOON, called, replied, returned, said

ANN = Scope(user="zzannuser", agent="remy", project="zzannproject")
BOB = Scope(user="bob", agent="remy")

WORDS = (
    "zztopic",
    "zzmessage",
    "zzmemory",
    "zzquery",
    "zzfault",
    "zzkey",
    "zzitem",
    "zzreason",
    "zzthread",
    "zzannuser",
)
"""What stands in one place each, and may stand in none after Ann is erased."""

EMBEDDER = HashedEmbedder(64)


def open_home(home: Path) -> MemoryKit:
    """Open it with a real index, which is searched however little there is."""
    settings = Settings(home=home, recall=RecallPolicy(exact_limit=0, index_timeout=60), slicing=SlicingPolicy())
    return MemoryKit.open(settings=settings, model=None, embedder=EMBEDDER, options=OpenOptions(require_index=True))


def fill(kit: MemoryKit) -> None:
    """Tell, learn, consolidate, call tools and keep items for Ann; tell something of Bob, for whom she decided."""
    told = [
        said("I like the zzmessage tea of Assam.", name="Zztopic", message_id="a1", thread="zzthread"),
        replied("Noted.", message_id="r1", thread="zzthread"),
        said("I like green tea from Uji.", name="Zztopic", minutes=1, message_id="a2", thread="zzthread"),
        replied("Noted, too.", minutes=2, message_id="r2", thread="zzthread"),
        said("I like black tea from Ceylon.", name="Zztopic", minutes=5, message_id="a5", thread="zzthread"),
        called("search", "c1", minutes=2, query="zzquery").model_copy(
            update={"thread": "zzthread", "message_id": "a3"}
        ),
        returned("c1", "zzfault: no such shop", ok=False, minutes=3).model_copy(
            update={"thread": "zzthread", "message_id": "a4"}
        ),
    ]
    kit.add_messages(told, scope=ANN)
    kit.tools.record("search", scope=ANN, args={"q": "zzquery"}, call_id="c9", ok=False, result="zzfault heard")
    kit.add_messages([said("I live in Paris.", name="Bob", message_id="a1")], scope=BOB)
    kit.summarize(scope=ANN, close=True)
    kit.summarize(scope=BOB, close=True)
    conclude(kit)
    given = kit.sharing.grant("clerk", scope=BOB, reason="work", actor=ANN.user)
    kit.sharing.revoke(given.grant_id, scope=BOB, reason="done", actor=ANN.user)
    with kit.context.parts().items.write(ANN.partition()) as shelf:
        value = {"text": "zzitem"}
        shelf.apply([ItemChange(namespace=("notes",), key="zzkey", value=value, texts=("zzitem text",), ttl=None)])
    kit.context.parts().projection.sync()
    assert kit.recall("tea", scope=ANN).memories


def conclude(kit: MemoryKit) -> None:
    """Conclude twice from three messages, one of them with words of its own, which one conclusion repeats; say why."""
    archive, place = kit.context.parts().archive, ANN.partition()
    first, *others = sorted(
        (each for each in archive.memories([place]) if each.topic.type == "personal" and each.evidence),
        key=lambda each: each.evidence[0].message_id,
    )
    abstraction = Abstraction(
        conditions=("when zzmessage comes up",),
        confidence=0.5,
        corroborations=3,
        terms=("tea", "zzmessage"),
    )
    long = Memory(
        memory_id="long",
        partition=place,
        topic=first.topic,
        content="Zztopic comes back to tea.",
        payload=abstraction.within({}),
        evidence=tuple(item for each in (first, *others) for item in each.evidence),
        block_ids=first.block_ids,
        layer="long_term",
        said_at=NOON + timedelta(minutes=1),
        recorded_at=NOON,
    )
    repeating = long.evolve(memory_id="repeating", content="Zztopic: tea, zzmessage, zzmemory", summary="")
    links = [
        Link(source_id=memory.memory_id, type="derived_from", target_id=each.memory_id, reason="zzreason of a link")
        for memory in (long, repeating)
        for each in (first, *others)
    ]
    why = "zzreason of a change"
    archive.commit(
        ChangeSet(
            operation_id="conclude",
            actor="test",
            recorded_at=NOON,
            at_home=True,
            changes=tuple(
                MemoryChange(memory=memory, expected_version=0, action="create", reason=why)
                for memory in (long, repeating)
            ),
            links=tuple(links),
        )
    )


def row_of(memory: Memory) -> bytes:
    """The vector of a memory, as bytes: words can be guessed from it."""
    row: bytes = EMBEDDER.embed([memory.indexed_text])[0].tobytes()
    return row


def vectors_of(kit: MemoryKit, scope: Scope) -> list[bytes]:
    """The vectors of what is remembered of somebody."""
    return [row_of(memory) for memory in kit.context.parts().archive.memories([scope.partition()])]


@dataclass(frozen=True)
class Found:
    """Bytes that should not be there."""

    what: str
    file: str


def look(home: Path, words: tuple[str, ...], blobs: list[bytes]) -> list[Found]:
    """Look for words, in all forms that a file may hold, and for bytes, in every file of a home."""
    forms = {form: word for word in words for form in _forms(word)} | dict.fromkeys(blobs, "a vector")
    found: list[Found] = []
    for path in sorted(home.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            lower = data.lower()
            found += [Found(what, path.name) for form, what in forms.items() if form in data or form in lower]
    return found


def _forms(word: str) -> Iterator[bytes]:
    for each in (word, word.title(), word.upper()):
        for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
            data = each.encode(encoding)
            yield data
            for shift, first in enumerate((0, 2, 3)):  # base64 of the word within a longer text: its middle is the same
                yield base64.b64encode(b"\0" * shift + data)[first : (shift + len(data)) * 8 // 6]
            yield data.hex().encode()


def _die_while_erasing(home: Path, step: str) -> None:
    """Erase Ann, and die at a step."""

    def die(name: str) -> None:
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    with open_home(home) as kit:
        listen(die)
        kit.admin.erase(Subject(user=ANN.user))


if __name__ == "__main__":
    _die_while_erasing(Path(sys.argv[1]), sys.argv[2])
