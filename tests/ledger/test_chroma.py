"""The promises of a vector index, held by each: in memory, Chroma embedded, a Chroma server, pgvector."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import numpy as np
import pytest
from chromadb.api.shared_system_client import SharedSystemClient

from conftest import Figure
from evals._servers import ChromaServer
from remegraph import MemoryKit, Scope
from remegraph.errors import IndexSilentError, SetupError, VectorIndexError
from remegraph.kit import OpenOptions
from remegraph.ledger.database import Database
from remegraph.ledger.index import pgvector
from remegraph.ledger.index.breaker import CircuitBreaker
from remegraph.ledger.index.chroma import ChromaIndex, _settings, persistent
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.ledger.index.pgvector import PgvectorIndex
from remegraph.ledger.index.projection import VectorProjection
from remegraph.ledger.index.vectors import unreached as find_unreached
from remegraph.ports import VectorIndex
from remegraph.testing import InMemoryVectorIndex
from tests.ledger.projections import ANN as PLACE
from tests.ledger.projections import Ledger

if TYPE_CHECKING:
    from remegraph.ports import Vectors

ANN = Scope(user="ann")
A, B, C = np.eye(3, dtype=np.float32)


class Graphed(PgvectorIndex):
    """pgvector that makes a graph of each collection, however small."""

    def upsert(self, collection: str, ids: Sequence[str], shelves: Sequence[str], vectors: Vectors) -> None:
        """Write, then make the graph."""
        super().upsert(collection, ids, shelves, vectors)
        self.optimize(collection)


@pytest.fixture(params=["memory", "embedded", "server", "pgvector", "pgvector graph"])
def index(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VectorIndex]:
    opened: VectorIndex
    if request.param == "memory":
        opened = InMemoryVectorIndex()
    elif request.param == "pgvector":
        with closing(Database.open(request.getfixturevalue("postgres_url"))) as database:
            yield PgvectorIndex.open(database)
        return
    elif request.param == "pgvector graph":
        monkeypatch.setattr(pgvector, "LARGE", 1)
        with closing(Database.open(request.getfixturevalue("postgres_url"))) as database:
            yield Graphed.open(database)
        return
    elif request.param == "embedded":
        opened = embedded(tmp_path)
    else:
        opened = ChromaIndex.server(request.getfixturevalue("chroma_url"))
        for name in opened.collections():
            opened.drop(name)
    yield opened
    opened.close()


def embedded(folder: Path) -> ChromaIndex:
    return ChromaIndex(lambda: persistent(folder / "chroma"))


def rows(*vectors: Vectors) -> Vectors:
    return np.stack(vectors)


def test_the_nearest_come_first_with_their_cosine(index: VectorIndex) -> None:
    """Whoever asks wants the best hit first, and a similarity that means the same everywhere."""
    index.upsert("col", ["a", "b", "half"], ["x"] * 3, rows(A, B, A + B))
    hits = index.query("col", ["x"], A, 3)
    assert [name for name, _ in hits] == ["a", "half", "b"]
    assert [similarity for _, similarity in hits] == pytest.approx([1.0, 0.5**0.5, 0.0], abs=1e-5)


@pytest.mark.requirement("X1")
def test_a_query_sees_only_the_shelves_it_names(index: VectorIndex) -> None:
    """A collection holds several partitions: one of them must never answer for another."""
    index.upsert("col", ["a", "b", "c"], ["x", "y", "z"], rows(A, A, A))
    assert {name for name, _ in index.query("col", ["x", "z"], A, 10)} == {"a", "c"}
    assert index.query("col", ["w"], A, 10) == []
    assert index.query("col", [], A, 10) == []
    assert {name for name, _ in index.query("col", None, A, 10)} == {"a", "b", "c"}


def test_writing_an_id_again_replaces_it(index: VectorIndex) -> None:
    """A call whose outcome is unknown is repeated; a changed memory keeps its id."""
    for vector, shelf in ((A, "x"), (A, "x"), (B, "y")):
        index.upsert("col", ["a"], [shelf], rows(vector))
    assert index.ids("col") == {"a"}
    assert index.query("col", ["x"], A, 1) == []
    assert index.query("col", ["y"], B, 1)[0][1] == pytest.approx(1.0)


def test_deleting_can_be_repeated(index: VectorIndex) -> None:
    """A retry finds the record gone already, or the whole collection: that is what was wanted."""
    index.upsert("col", ["a", "b"], ["x", "x"], rows(A, B))
    for _ in range(2):
        index.delete("col", ["a", "never"])
        index.delete("nowhere", ["a"])
    assert index.ids("col") == {"b"}
    assert [name for name, _ in index.query("col", ["x"], A, 5)] == ["b"]


def test_dropping_can_be_repeated_and_the_name_used_again(index: VectorIndex) -> None:
    """A rebuild begins with dropping; nothing of the old collection may come back."""
    index.upsert("col", ["a"], ["x"], rows(A))
    for _ in range(2):
        index.drop("col")
    assert index.ids("col") == set()
    assert "col" not in index.collections()
    index.upsert("col", ["b"], ["x"], rows(B))
    assert index.ids("col") == {"b"}


def test_a_missing_collection_is_an_error_to_a_query(index: VectorIndex) -> None:
    """An index that lost a collection must not answer that there is nothing: the caller searches SQL instead."""
    with pytest.raises(VectorIndexError):
        index.query("nowhere", ["x"], A, 1)


@pytest.mark.slow
def test_more_records_than_chroma_takes_at_once_are_written_and_listed(index: VectorIndex) -> None:
    """Chroma refuses batches over 5,461 records; a rebuild must not."""
    vectors = np.random.default_rng(1).normal(size=(5_500, 3)).astype(np.float32)
    ids = [f"r{number}" for number in range(len(vectors))]
    index.upsert("col", ids, ["x"] * len(ids), vectors)
    assert index.ids("col") == set(ids)
    index.delete("col", ids)
    assert index.ids("col") == set()


def test_next_to_no_record_is_lost_among_almost_equal_ones(index: VectorIndex) -> None:
    """People say the same thing again and again; with Chroma's own settings no search reaches ten of these."""
    vectors = HashedEmbedder(64).embed([f"fact number {number % 400}" for number in range(1_500)])
    ids = [f"r{number}" for number in range(len(vectors))]
    for start in range(0, len(ids), 256):
        part = slice(start, start + 256)
        index.upsert("col", ids[part], ["x"] * len(ids[part]), vectors[part])
    assert len(index.query("col", None, vectors[0], 2_000)) >= len(ids) - 2


def test_ids_may_hold_any_text(index: VectorIndex) -> None:
    """Ids come from hosts, in any script and with any sign."""
    ids = ["记忆", "a b:c/d", "'; --", "🙂", "x" * 2_000]
    index.upsert("col", ids, ["x"] * len(ids), np.ones((len(ids), 3), np.float32))
    assert index.ids("col") == set(ids)


@pytest.mark.parametrize("use", ["embedded", "server"])
def test_chroma_that_fails_is_a_vector_index_error_with_its_cause(
    use: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Chroma's errors have no common class; callers handle one, and still see what Chroma said."""
    chroma = embedded(tmp_path) if use == "embedded" else ChromaIndex.server(request.getfixturevalue("chroma_url"))
    chroma.upsert("dim", ["a"], ["x"], rows(A))
    with pytest.raises(VectorIndexError, match="dimension") as failure:
        chroma.upsert("dim", ["b"], ["x"], np.ones((1, 7), np.float32))
    assert failure.value.__cause__ is not None
    chroma.upsert("dim", ["b"], ["x"], rows(B))
    chroma.close()
    with pytest.raises(VectorIndexError, match="closed"):
        chroma.ids("dim")


def test_a_server_that_is_not_there_is_a_vector_index_error() -> None:
    """Recall goes on from SQL while the server is down, so this must be the error that recall expects."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        chroma = ChromaIndex.server(f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(IndexSilentError, match="REMEGRAPH_CHROMA_URL"):
            chroma.query("col", ["x"], A, 1)
    chroma.close()


def test_what_no_search_finds_is_told_and_what_others_stand_for_is_not(index: VectorIndex) -> None:
    """Whether all can be found must be known; of more that are equal than a search returns, each is as good."""
    same = HashedEmbedder(64).embed(["fact"] * 30)
    names = [f"r{number}" for number in range(30)]
    index.upsert("col", names, ["x"] * 30, same)
    assert index.unreached("col", names, same) == []
    other = HashedEmbedder(64).embed(["something else altogether"])
    assert index.unreached("col", ["other", "r0"], np.concatenate([other, same[:1]])) == ["other"]
    assert index.unreached("col", ["zero"], np.zeros((1, 64), np.float32)) == [], "nothing is near to it"


@pytest.mark.slow
def test_what_was_just_written_over_is_found(tmp_path: Path) -> None:
    """Chroma forgets the way to a quarter of some vectors that all change a little: a user's memories would be gone."""
    ledger, embedder = Ledger(f"sqlite:///{tmp_path / 'small.db'}"), HashedEmbedder(64)
    chroma = embedded(tmp_path)
    projection = VectorProjection.open(ledger.database, chroma, embedder, exact_limit=0)
    for version in range(20):
        ledger.remember(PLACE, {f"m{number}": f"tea {number} {version}" for number in range(120)})
        projection.sync()
        assert projection.verify() == (120, ())
    projection.close()
    ledger.archive.close()


@pytest.mark.slow
@pytest.mark.requirement("X2")
def test_after_a_rebuild_on_a_server_every_sentence_of_a_template_is_found(
    postgres_url: str, chroma_url: str, figure: Figure
) -> None:
    """Templates write almost equal sentences, and a rebuild adds them all at once: no way led to some of them."""
    ledger, embedder = Ledger(postgres_url), HashedEmbedder(512)
    texts = {f"m{number}": f"fact number {number}" for number in range(400)}
    projection = VectorProjection.open(ledger.database, ChromaIndex.server(chroma_url), embedder, exact_limit=0)
    for start in range(0, len(texts), 40):
        ledger.remember(PLACE, dict(list(texts.items())[start : start + 40]))
        projection.sync()
    wrong, missed = 0, 0
    for _ in range(4):
        assert projection.rebuild() == len(texts)
        wrong += len(projection.verify()[1])
        for name, vector in zip(texts, embedder.embed(list(texts.values())), strict=True):
            hits, asked = projection.nearest([PLACE], "memory", vector, 5)
            assert asked == "chroma"
            missed += name not in {hit.record_id for hit in hits}
    with ledger.database.read() as connection:
        in_sql = len(find_unreached(connection, [1, 2, 3]))
    figure(
        "bar 27: unreachable after 4 rebuilds of 400", f"{wrong} by verify, {missed} by recall, {in_sql} served by SQL"
    )
    assert (wrong, missed) == (0, 0)
    projection.close()
    ledger.archive.close()


@pytest.fixture(params=["/heartbeat", "/collections"])
def hanging_server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server that answers like Chroma, but for one call: that it never answers."""
    ended = Event()
    answers = {"/identity": {"user_id": "", "tenant": "t", "databases": ["d"]}, "/heartbeat": {}}

    class Hanging(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if request.param in self.path:
                ended.wait()
                return
            answer = answers.get(self.path[self.path.rindex("/") :], {"id": "0" * 32, "name": "n", "tenant": "t"})
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Hanging) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(server.serve_forever)
        yield f"http://127.0.0.1:{server.server_port}"
        ended.set()
        server.shutdown()


def test_a_server_that_hangs_is_given_up(hanging_server: str) -> None:
    """Chroma's client has no deadline: one hung server would stop every recall of the service."""
    chroma = ChromaIndex.server(hanging_server, timeout=0.1)
    with pytest.raises(VectorIndexError, match="timed out"):
        chroma.query("col", ["x"], A, 1)
    chroma.close()


def test_a_server_that_hung_is_left_alone_for_a_while(hanging_server: str) -> None:
    """Every recall would wait for the same silence; who is told at once goes on from SQL."""
    chroma = ChromaIndex.server(hanging_server, timeout=0.1, rest=60)
    with pytest.raises(VectorIndexError, match="timed out"):
        chroma.query("col", ["x"], A, 1)
    for _ in range(3):
        with pytest.raises(VectorIndexError, match=r"did not answer in time.*asked again in \d+ seconds"):
            chroma.query("col", ["x"], A, 1)
    chroma.close()


def test_after_its_rest_one_call_looks_whether_a_server_lives() -> None:
    """It comes back by itself, without anybody's doing; until then nobody but the one who looks waits."""
    asked: list[str] = []

    def silent() -> None:
        asked.append("silent")
        with pytest.raises(VectorIndexError, match="did not answer"):
            resting.check()  # another thread, meanwhile
        raise TimeoutError

    breaker = CircuitBreaker(lambda: asked.append("alive"), rest=0)
    breaker.check()
    assert asked == [], "nothing hung"
    breaker.trip()
    breaker.check()
    breaker.check()
    assert asked == ["alive"], "asked once, and then no more"
    resting = CircuitBreaker(silent, rest=60)
    resting._until = 0.0  # it tripped long ago
    with pytest.raises(TimeoutError):
        resting.check()
    with pytest.raises(VectorIndexError, match="did not answer"):
        resting.check()
    assert asked == ["alive", "silent"]


@pytest.mark.slow
def test_a_server_that_was_stopped_is_used_again_once_it_goes_on(tmp_path: Path) -> None:
    """A machine that swaps, a debugger, a pause of a virtual machine: it answers nothing, and then it does again."""
    server = ChromaServer(tmp_path)
    with server.running() as process:
        chroma = ChromaIndex.server(server.url, timeout=0.5, rest=0)

        def asked() -> list[str]:
            try:
                return [name for name, _ in chroma.query("col", ["x"], A, 1)]
            except VectorIndexError:
                return []

        chroma.upsert("col", ["a"], ["x"], A[np.newaxis])
        assert asked() == ["a"]
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)  # a busy machine stops its threads one after the other
        assert [asked(), asked()] == [[], []]
        process.send_signal(signal.SIGCONT)
        assert ["a"] in (asked() for _ in range(20))  # a busy machine may take a while
        chroma.close()


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host", "http://"])
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    """A typing error in a setting should not look like a server that is down."""
    with pytest.raises(SetupError, match="http://host:port"):
        ChromaIndex.server(url)


def test_records_survive_a_restart(tmp_path: Path) -> None:
    """The index is disposable, but nobody wants to build it at every start."""
    first = embedded(tmp_path)
    first.upsert("col", ["a"], ["x"], rows(A))
    first.close()
    second = embedded(tmp_path)
    assert second.query("col", ["x"], A, 1)[0][0] == "a"
    second.close()


def test_each_open_has_settings_of_its_own_and_none_makes_a_class_anew() -> None:
    """A class stays in memory for good: a host that opens homes by turns would fill up with them."""
    one, other = _settings(), _settings()
    assert one is not other
    assert type(one) is type(other)


def test_a_client_of_a_server_is_let_go(chroma_url: str) -> None:
    """Chroma itself keeps a megabyte of each client that was ever opened."""
    before = set(SharedSystemClient._identifier_to_system)
    index = ChromaIndex.server(chroma_url)
    index.collections()
    assert set(SharedSystemClient._identifier_to_system) > before
    index.close()
    assert set(SharedSystemClient._identifier_to_system) == before


def test_neither_the_environment_nor_a_dotenv_file_reaches_chroma(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chroma's own settings would take its directory, its server and a reset switch from whatever lies around."""
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / ".env").write_text(f"PERSIST_DIRECTORY={elsewhere}\nALLOW_RESET=true\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHROMA_SERVER_HOST", "example.org")
    monkeypatch.setenv("PERSIST_DIRECTORY", str(elsewhere))
    chroma = embedded(tmp_path / "index")
    chroma.upsert("col", ["a"], ["x"], rows(A))
    chroma.close()
    assert not elsewhere.exists()
    assert (tmp_path / "index" / "chroma" / "chroma.sqlite3").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_refused_instead_of_hanging(tmp_path: Path) -> None:
    """Chroma's client hangs for ever in a forked child (web servers fork)."""
    chroma = embedded(tmp_path)
    chroma.upsert("col", ["a"], ["x"], rows(A))

    def use_and_close() -> None:
        with pytest.raises(VectorIndexError, match="forked"):
            chroma.query("col", ["x"], A, 1)
        chroma.close()

    assert exit_code_in_child(use_and_close) == 0
    assert chroma.ids("col") == {"a"}
    chroma.close()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_a_process_that_used_and_closed_a_kit_works_from_sql(tmp_path: Path) -> None:
    """So forks gunicorn --preload: each worker would hang for ever at the first memory, in whatever home."""

    def use(home: Path) -> str:
        with MemoryKit.open(home, model=None, embedder=None) as kit:
            kit.save("drink", "Ann likes green tea", scope=ANN)
            found = kit.recall("green tea", scope=ANN)
            owners = [each.what for each in kit.admin.examine().findings if each.check == "owner"]
            assert [hit.text for hit in found.memories] == ["Ann likes green tea"]
            return f"{kit.admin.health().index}, {owners}"

    def use_other_homes() -> None:
        for home in ("parents", "own"):
            told = use(tmp_path / home)
            assert told.startswith("sql, ['This process was forked from one that had used a vector index")
            with pytest.raises(SetupError, match="only after the fork"):
                MemoryKit.open(tmp_path / home, model=None, embedder=None, options=OpenOptions(require_index=True))

    assert use(tmp_path / "parents") == "chroma, []"
    assert exit_code_in_child(use_other_homes) == 0
    assert use(tmp_path / "own") == "chroma, []"


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def exit_code_in_child(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(30)  # whoever hangs dies
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
