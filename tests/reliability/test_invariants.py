"""The invariants that hold the design up: what no other test watches, and that each is watched by some test."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import remegraph
from remegraph import MemoryKit, Scope, Settings
from remegraph.errors import IndexOwnedError, ModelUnavailableError, VectorIndexError
from remegraph.kit import OpenOptions
from remegraph.ledger.database import Database
from remegraph.ledger.index import vectors
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.models import ChangeSet, MemoryChange
from remegraph.testing import FrozenClock, InMemoryVectorIndex, ScriptedChatModel, SequentialIds
from tests.ledger.conftest import ANN, Ledger, create
from tests.talk import NOON, said

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from remegraph.ledger.index.vectors import Key
    from remegraph.ports import Vectors

_ROOT = Path(__file__).parents[2]
_SOURCES = sorted(Path(remegraph.__file__).parent.rglob("*.py"))
_SAM = Scope(user="sam", agent="remy")


class DownEmbedder:
    """Answers until it is down."""

    semantic = False
    name, dimension = "down", 64

    def __init__(self) -> None:
        self.down = False

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed, or fail."""
        if self.down:
            raise ModelUnavailableError("The embedder does not answer.")
        return HashedEmbedder(self.dimension).embed(texts)


class DownIndex(InMemoryVectorIndex):
    """Answers until it is down."""

    down = False

    def query(self, collection: str, shelves: Sequence[str] | None, vector: Vectors, k: int) -> list[tuple[str, float]]:
        """Answer, or fail."""
        if self.down:
            raise VectorIndexError("The index does not answer.")
        return super().query(collection, shelves, vector, k)


def open_kit(
    home: Path,
    *,
    model: ScriptedChatModel | None = None,
    embedder: DownEmbedder | None = None,
    index: InMemoryVectorIndex | None = None,
) -> MemoryKit:
    """A kit with all the parts given."""
    return MemoryKit.open(
        settings=Settings(home=home),
        model=model,
        embedder=embedder,
        index=index,
        clock=FrozenClock(NOON),
        options=OpenOptions(new_id=SequentialIds()),
    )


# --------------------------------------------------------------------- 1. the ledger is the truth


@pytest.mark.requirement("X2", "X3")
def test_a_change_and_its_mark_are_one_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever dies after the first transaction of a commit leaves no change that the index never hears of."""
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    changes = ledger.set_of(create(ledger.memory()))
    write, begun = Database.write, 0

    @contextmanager
    def write_once(self: Database, partition_ids: Sequence[int] = ()) -> Iterator[Connection]:
        nonlocal begun
        begun += 1
        if begun > 1:
            raise KeyboardInterrupt
        with write(self, partition_ids) as connection:
            yield connection

    with monkeypatch.context() as patch:
        patch.setattr(Database, "write", write_once)
        with suppress(KeyboardInterrupt):
            ledger.archive.commit(changes)
    with ledger.archive.database.read() as connection:
        marked = {key.record_id for key in vectors.marks(connection, None, 10)}
    assert marked == {memory.memory_id for memory in ledger.archive.memories([ANN])}
    ledger.archive.close()


@pytest.mark.requirement("X2")
@pytest.mark.parametrize("first", [0, 1], ids=["backwards", "from the second on"])
def test_every_record_gets_its_own_vector_in_whatever_order_sql_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """No database promises an order that was not asked for; a record under another one's vector is found for its words."""
    read = vectors.read

    def read_otherwise(connection: Connection, embedder_id: int, keys: Sequence[Key]) -> tuple[list[Key], Vectors]:
        found, rows = read(connection, embedder_id, keys)
        order = [*range(first, len(found)), *range(first)] if first else [*range(len(found))][::-1]
        return [found[at] for at in order], rows[order]

    monkeypatch.setattr(vectors, "read", read_otherwise)
    index = InMemoryVectorIndex()
    with open_kit(tmp_path, embedder=DownEmbedder(), index=index) as kit:
        kit.add_messages([said(f"I like {what}.", name="Sam") for what in ("tea", "chess", "snow")], scope=_SAM)
        kit.summarize(scope=_SAM, close=True)
        (collection,) = index.collections()
        for memory in kit.memories(scope=_SAM):
            vector = DownEmbedder().embed([memory.indexed_text])[0]
            ((name, similarity),) = index.query(collection, None, vector, 1)
            assert name.endswith(memory.memory_id)
            assert similarity == pytest.approx(1)


# ------------------------------------------------------------------ 2. acknowledge after commit


@pytest.mark.requirement("X3", "X8")
def test_adding_messages_needs_neither_model_nor_embedder_nor_index(tmp_path: Path) -> None:
    """What a user says is recorded also while everything else is down."""
    embedder, index, model = DownEmbedder(), DownIndex(), ScriptedChatModel(script={})
    with open_kit(tmp_path, model=model, embedder=embedder, index=index) as kit:
        embedder.down = index.down = True
        assert kit.add_messages([said("I like tea.", name="Sam")], scope=_SAM).added == 1
        assert [hit.text for hit in kit.recall("tea", scope=_SAM, depth="messages").messages] == ["Sam: I like tea."]
        assert model.calls == ()


# -------------------------------------------------------------------------- 3. one door for change


def test_only_the_commit_writes_memories_and_versions() -> None:
    """A second door would forget what this one checks. Erasure is the exception: it takes words away, and adds none."""
    door = re.compile(r"\b(?:insert|update|delete|upsert)\((?:[^()]*, )?(?:memories|versions|links|memory_sources)\)")
    doors = {path.name for path in _SOURCES if door.search(path.read_text(encoding="utf-8"))}
    assert doors == {"commit.py", "evidence.py", "removal.py"}
    text = "\n".join(path.read_text(encoding="utf-8") for path in _SOURCES)
    assert text.count("evidence.replace(") == 2  # the second file is a part of the first, and of the third


# -------------------------------------------------------------------------------- 4. scope


@pytest.mark.requirement("X5")
def test_no_verb_of_a_kit_works_without_a_scope() -> None:
    """A scope that may be left out is left out one day, and then everybody's rows are read."""
    unscoped = {"open", "aopen", "close", "aclose", "drain", "adrain", "serve", "aserve", "register_agent"}
    verbs = {name: verb for name, verb in inspect.getmembers(MemoryKit, callable) if not name.startswith("_")}
    for name, verb in verbs.items():
        scope = inspect.signature(verb).parameters.get("scope")
        assert (scope is None) == (name in unscoped), name
        assert scope is None or scope.default is inspect.Parameter.empty


# -------------------------------------------------------------- 8. recall works while all is down


@pytest.mark.requirement("X2", "X8")
def test_recall_finds_by_words_while_model_embedder_and_index_are_down(tmp_path: Path) -> None:
    """Full text in SQL is the floor: an outage makes recall worse, never impossible."""
    embedder, index = DownEmbedder(), DownIndex()
    with open_kit(tmp_path, embedder=embedder, index=index) as kit:
        kit.add_messages([said("I like tea.", name="Sam")], scope=_SAM)
        kit.summarize(scope=_SAM, close=True)
        index.down = True
        assert kit.recall("tea", scope=_SAM).memories
        embedder.down = True
        found = kit.recall("which tea", scope=_SAM, depth="messages")  # not asked before: no vector is at hand
        assert [len(hits) for hits in (found.memories, found.blocks, found.messages)] == [1, 1, 1]
        assert found.degraded == ("vectors: The embedder does not answer.",)


# ----------------------------------------------------------------------- 9. Chroma is disposable


@pytest.mark.requirement("X2")
def test_who_does_not_own_the_index_writes_and_recalls_from_sql_or_is_refused_at_once(tmp_path: Path) -> None:
    """Two processes on one home must not damage the index; whoever insists on it is told within a second."""
    with open_kit(tmp_path) as owner, open_kit(tmp_path) as other:
        other.add_messages([said("I like tea.", name="Sam")], scope=_SAM)
        other.summarize(scope=_SAM, close=True)
        found = other.recall("tea", scope=_SAM)
        assert (found.index, len(found.memories)) == ("sql", 1)
        assert owner.recall("tea", scope=_SAM).memories == found.memories
        assert not owner.admin.verify().healthy
        owner.context.parts().projection.sync()
        assert owner.admin.verify().healthy
        began = time.monotonic()
        with pytest.raises(IndexOwnedError, match="chroma run"):
            MemoryKit.open(tmp_path, model=None, embedder=None, options=OpenOptions(require_index=True))
        assert time.monotonic() - began < 1


# ------------------------------------------------------------------------------ 11. time is injected


def test_only_the_kits_own_clock_reads_the_time() -> None:
    """A clock that is read elsewhere makes results that cannot be repeated."""
    reads = re.compile(r"\b(?:datetime|date)\.(?:now|today|utcnow)\(|\btime\.time\(")
    found = {path.name: reads.findall(path.read_text(encoding="utf-8")) for path in _SOURCES}
    assert {name: len(hits) for name, hits in found.items() if hits} == {
        "kit.py": 1,
        "health.py": 1,  # how long a file was not touched: its time is the system's, too
    }


# ----------------------------------------------------------------- 12. nothing happens at import

_IMPORT_ALL = """
import json, logging, os, pkgutil, sys, threading
environment = dict(os.environ)
import remegraph
for module in pkgutil.walk_packages(remegraph.__path__, "remegraph."):
    if not module.name.startswith(("remegraph.cli", "remegraph.ledger.migrations.")):
        __import__(module.name)
print(json.dumps({
    "modules": sum(name.startswith("remegraph.") for name in sys.modules),
    "threads": threading.active_count(),
    "handlers": len(logging.getLogger("remegraph").handlers),
    "environment": environment == dict(os.environ),
    "chroma": "chromadb" in sys.modules,
}))
"""


@pytest.mark.slow
def test_importing_every_module_starts_and_writes_nothing(tmp_path: Path) -> None:
    """A library that does something at import does it to every test, worker and notebook of its users."""
    run = subprocess.run(
        [sys.executable, "-c", _IMPORT_ALL],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": "", "HOME": str(tmp_path), "PYTHONPATH": str(Path(remegraph.__file__).parents[1])},
    )
    assert run.returncode == 0, run.stderr
    seen = json.loads(run.stdout)
    assert seen.pop("modules") > 50
    assert seen == {"threads": 1, "handlers": 0, "environment": True, "chroma": False}
    assert list(tmp_path.iterdir()) == []
    assert run.stderr == ""


# ------------------------------------------------------------------------------------ the table


def test_every_invariant_names_tests_that_exist() -> None:
    """The page tells who reads the design where each promise is kept; a test that is renamed must not vanish from it."""
    page = (_ROOT / "docs" / "invariants.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| .+ \| (.+) \|$", page, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 13))
    defined: dict[str, set[str]] = {}
    for number, cell in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", cell)
        assert named, f"invariant {number} names no test"
        for file, name in named:
            if file not in defined:
                tree = ast.parse((_ROOT / file).read_text(encoding="utf-8"))
                functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
                defined[file] = {node.name for node in functions}
            assert name in defined[file], f"{file} has no {name}"


def test_what_a_change_set_says_is_checked_not_believed(tmp_path: Path) -> None:
    """A memory whose words nobody said is refused by the commit itself, whoever made it."""
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    memory = ledger.memory()
    (evidence,) = memory.evidence
    invented = memory.evolve(evidence=(evidence.evolve(quote="Ann is a spy."),))
    change = MemoryChange(memory=invented, expected_version=0, action="create")
    changes = ChangeSet(operation_id="o", actor="test", recorded_at=NOON, at_home=True, changes=(change,))
    with pytest.raises(remegraph.InputError, match="quote"):
        ledger.archive.commit(changes)
    assert ledger.archive.memories([ANN]) == ()
    ledger.archive.close()
