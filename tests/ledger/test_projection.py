"""The vector projection: what was learned is found, with the index, without it, and while it is built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remegraph.errors import (
    DimensionError,
    EmbedderMismatchError,
    IndexOwnedError,
    ModelUnavailableError,
    VectorIndexError,
)
from remegraph.failpoints import listen
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.database import Database
from remegraph.ledger.index import embedders, indexer, placement, vectors
from remegraph.ledger.index.pgvector import PgvectorIndex
from remegraph.ledger.index.projection import VectorProjection
from remegraph.models import Mismatch, Status
from remegraph.ports import VectorIndex
from remegraph.testing import InMemoryVectorIndex
from tests.ledger.projections import ANN, BEN, CountingEmbedder, FailingIndex, Ledger, LossyIndex, asked, chroma

TEXTS = {"tea": "Ann likes green tea", "cat": "her cat is called Mia", "zh": "安喜欢绿茶", "job": "works as a nurse"}


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    opened = Ledger(ledger_url)
    yield opened
    opened.archive.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger on SQLite, where the database makes no difference."""
    opened = Ledger(f"sqlite:///{tmp_path / 'small.db'}")
    yield opened
    opened.archive.close()


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture(params=["memory", "chroma", "pgvector"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorIndex]:
    if request.param == "pgvector":
        with closing(Database.open(request.getfixturevalue("postgres_url"))) as database:
            yield PgvectorIndex.open(database)
        return
    opened: VectorIndex = InMemoryVectorIndex() if request.param == "memory" else chroma(tmp_path / "index")
    yield opened
    opened.close()


def found(projection: VectorProjection, embedder: CountingEmbedder, text: str, k: int = 3) -> list[str]:
    hits, _ = projection.nearest([ANN], "memory", asked(embedder, text), k)
    return [hit.record_id for hit in hits]


@pytest.mark.requirement("C3", "R15")
@pytest.mark.parametrize("exact_limit", [0, 5_000])
def test_a_memory_is_found_by_its_words_in_any_script(
    ledger: Ledger, index: VectorIndex, embedder: CountingEmbedder, exact_limit: int
) -> None:
    """The main promise, on both paths that the planner has."""
    ledger.remember(ANN, TEXTS)
    projection = VectorProjection.open(ledger.database, index, embedder, exact_limit=exact_limit)
    assert projection.sync() == len(TEXTS)
    hits, state = projection.nearest([ANN, BEN], "memory", asked(embedder, "which green tea?"), 2)
    assert hits[0].record_id == "tea"
    assert hits[0].partition == ANN
    assert 0 < hits[0].similarity < 1
    assert found(projection, embedder, "绿茶")[0] == "zh"
    assert state == (projection.searched if exact_limit == 0 else "exact")


@pytest.mark.requirement("X2")
def test_what_was_synced_verifies_and_is_not_embedded_again(
    ledger: Ledger, index: VectorIndex, embedder: CountingEmbedder
) -> None:
    """Embedding costs money: a text is paid for once, whatever happens to its status or to the index."""
    ledger.remember(ANN, TEXTS)
    projection = VectorProjection.open(ledger.database, index, embedder)
    projection.sync()
    ledger.move(ANN, ["tea", "cat"], "archived")
    projection.sync()
    ledger.move(ANN, ["tea"], "active")
    assert projection.sync() == 1
    projection.rebuild()
    assert sorted(embedder.texts) == sorted(TEXTS.values())
    assert projection.verify() == (3, ())
    assert projection.sync() == 0


@pytest.mark.requirement("X2")
def test_an_index_that_lost_everything_is_filled_again_by_the_next_change(
    small: Ledger, embedder: CountingEmbedder
) -> None:
    """A server that lost its disk, or gave way to an index in the process, must not answer with the newest alone."""
    small.remember(ANN, TEXTS)
    VectorProjection.open(small.database, InMemoryVectorIndex(), embedder).sync()
    projection = VectorProjection.open(small.database, InMemoryVectorIndex(), embedder, exact_limit=0)
    small.remember(ANN, {"new": "Ann moved to Porto"})
    assert projection.sync() == len(TEXTS) + 1
    assert projection.verify() == (len(TEXTS) + 1, ())
    assert found(projection, embedder, "green tea", 1) == ["tea"]
    assert len(embedder.texts) == len(TEXTS) + 2  # each memory once, and the question


@pytest.mark.requirement("X1")
@pytest.mark.parametrize("exact_limit", [0, 5_000])
def test_only_the_partitions_asked_for_answer(ledger: Ledger, embedder: CountingEmbedder, exact_limit: int) -> None:
    """Both users have the same block labels and the same words in one collection."""
    for partition in (ANN, BEN):
        ledger.summarise(partition, ["they talked about tea", "they talked about cats"])
    ledger.remember(ANN, {"a": "likes tea"})
    ledger.remember(BEN, {"b": "likes tea"})
    projection = VectorProjection.open(ledger.database, InMemoryVectorIndex(), embedder, exact_limit=exact_limit)
    projection.sync()
    assert found(projection, embedder, "tea") == ["a"]
    blocks, _ = projection.nearest([BEN], "block", asked(embedder, "tea"), 5)
    assert {hit.partition for hit in blocks} == {BEN}
    assert len(blocks) == 2
    assert projection.nearest([ANN], "message", asked(embedder, "tea"), 5) == ((), "none")


@pytest.mark.requirement("R15")
@pytest.mark.parametrize("exact_limit", [0, 5_000])
def test_changes_count_before_the_index_has_seen_them(
    ledger: Ledger, index: VectorIndex, embedder: CountingEmbedder, exact_limit: int
) -> None:
    """A deleted memory must not come back for a moment because the index lags behind."""
    ledger.remember(ANN, TEXTS)
    owner = VectorProjection.open(ledger.database, index, embedder, exact_limit=exact_limit)
    owner.sync()
    other = VectorProjection.open(ledger.database, None, embedder)
    ledger.move(ANN, ["tea"], "deleted")
    ledger.remember(ANN, {"cat": "likes green tea now"})
    ledger.remember(ANN, {"new": "green tea in the morning"})
    assert other.sync() == 0  # embeds, and leaves the marks to the owner
    assert set(found(owner, embedder, "green tea", 2)) == {"cat", "new"}
    assert set(found(other, embedder, "green tea", 2)) == {"cat", "new"}
    assert {difference.problem for difference in owner.verify()[1]} >= {"pending", "extra", "missing"}
    assert owner.sync() == 3
    assert owner.verify() == (4, ())
    assert set(found(owner, embedder, "green tea", 2)) == {"cat", "new"}


def test_a_rare_allowed_record_is_found_among_many(small: Ledger, embedder: CountingEmbedder) -> None:
    """Filters by topic or time happen in SQL: they must not starve a search that the index answers."""
    small.remember(ANN, {f"m{number}": f"likes tea number {number}" for number in range(150)})
    small.remember(ANN, {"far": "a submarine"})
    projection = VectorProjection.open(small.database, InMemoryVectorIndex(), embedder, exact_limit=1)
    projection.sync()
    hits, state = projection.nearest([ANN], "memory", asked(embedder, "likes tea"), 2, ["far", "m7", "never"])
    assert ([hit.record_id for hit in hits], state) == (["m7", "far"], "chroma")
    assert projection.nearest([ANN], "memory", asked(embedder, "likes tea"), 2, [])[0] == []
    small.move(ANN, [f"m{number}" for number in range(148)], "archived")
    assert set(found(projection, embedder, "tea")) == {"m148", "m149", "far"}


def test_equal_texts_come_in_one_order_on_every_path(small: Ledger, embedder: CountingEmbedder) -> None:
    """The same question gives the same answer, also where several memories are equally near."""
    embedder.answer = np.eye(64, dtype=np.float32)[:1]
    small.remember(ANN, {f"m{number}": f"likes tea number {number}" for number in range(9)})
    orders = []
    for exact_limit in (0, 5_000):
        index = InMemoryVectorIndex()
        projection = VectorProjection.open(small.database, index, embedder, exact_limit=exact_limit)
        projection.rebuild()
        orders.append(found(projection, embedder, "tea", 4))
    assert orders == [["m0", "m1", "m2", "m3"]] * 2


# ------------------------------------------------------------------------------------------------ faults


@pytest.mark.requirement("X5")
def test_while_the_embedder_is_down_nothing_is_lost_and_the_rest_goes_on(
    small: Ledger, embedder: CountingEmbedder
) -> None:
    """An outage of the provider delays new vectors; it must not hold deletes up or forget anything."""
    small.remember(ANN, TEXTS)
    index = InMemoryVectorIndex()
    projection = VectorProjection.open(small.database, index, embedder, exact_limit=0)
    projection.sync()
    small.move(ANN, ["tea"], "deleted")
    small.remember(ANN, {"new": "plays the cello"})
    question = asked(embedder, "plays the cello")
    embedder.down = True
    with pytest.raises(ModelUnavailableError):
        projection.sync()
    assert [difference.record_id for difference in projection.verify()[1]] == ["new", "new"]
    assert "new" not in [hit.record_id for hit in projection.nearest([ANN], "memory", question, 9)[0]]
    embedder.down = False
    assert projection.sync() == 1
    assert found(projection, embedder, "plays the cello", 1) == ["new"]


@pytest.mark.parametrize("answer", [np.ones((1, 65)), np.full((1, 64), np.nan), np.full((1, 64), np.inf)])
def test_vectors_that_cannot_be_are_refused_and_nothing_is_written(
    small: Ledger, embedder: CountingEmbedder, answer: np.ndarray[tuple[int, int], np.dtype[np.float32]]
) -> None:
    """One bad vector in Chroma spoils searches for good; a wrong length would refuse a whole batch for ever."""
    small.remember(ANN, TEXTS)
    projection = VectorProjection.open(small.database, InMemoryVectorIndex(), embedder)
    embedder.answer = answer
    with pytest.raises(DimensionError):
        projection.sync()
    with pytest.raises(DimensionError):
        projection.nearest([ANN], "memory", answer[0], 1)
    assert small.archive.counts()["vectors"] == 0
    embedder.answer = None
    assert projection.sync() == len(TEXTS)


@pytest.mark.requirement("X2")
def test_an_index_that_fails_half_way_is_healed_by_the_next_sync(small: Ledger, embedder: CountingEmbedder) -> None:
    """A Chroma error says nothing of what was done; repeating must be enough."""
    small.remember(ANN, TEXTS)
    index = FailingIndex()
    projection = VectorProjection.open(small.database, index, embedder, exact_limit=0)
    for leaving in ([], ["tea"]):
        if leaving:
            small.move(ANN, leaving, "archived")
        index.failures = 1
        with pytest.raises(VectorIndexError):
            projection.sync()
        projection.sync()
        assert projection.verify()[1] == ()


@pytest.mark.requirement("X5")
def test_recall_goes_on_from_sql_while_the_index_fails(small: Ledger, embedder: CountingEmbedder) -> None:
    """Chroma down is a slower search, not a lost memory; and it is no secret."""
    small.remember(ANN, TEXTS)
    index = FailingIndex()
    projection = VectorProjection.open(small.database, index, embedder, exact_limit=0)
    projection.sync()
    question = asked(embedder, "green tea")
    healthy = projection.nearest([ANN], "memory", question, 3)
    index.failures = 1
    failing = projection.nearest([ANN], "memory", question, 3)
    assert (list(healthy[0]), healthy[1]) == (list(failing[0]), "chroma")
    assert failing[1] == "sql"
    assert projection.failure is not None
    assert projection.nearest([ANN], "memory", question, 3) == healthy
    assert projection.failure is None


@pytest.mark.requirement("X2")
def test_what_another_process_brings_into_the_index_is_left_to_it_and_found_meanwhile(
    small: Ledger, embedder: CountingEmbedder, tmp_path: Path
) -> None:
    """Two processes on one server undid each other's marks: nothing was ever done, and both were busy with it."""
    index, there = InMemoryVectorIndex(), Ledger(f"sqlite:///{tmp_path / 'small.db'}")
    ours = VectorProjection.open(small.database, index, embedder, exact_limit=1)
    theirs = VectorProjection.open(there.database, index, embedder, exact_limit=1)
    small.remember(ANN, {"tea": TEXTS["tea"]})
    synced: list[int] = []

    def meanwhile(place: str) -> None:
        if place == "index.embedded" and not synced:
            synced.append(-1)
            there.remember(ANN, {"cat": TEXTS["cat"]})
            synced.append(theirs.sync())

    listen(meanwhile)
    try:
        assert ours.sync() == 1
    finally:
        listen(None)
    assert synced == [-1, 0]
    assert found(theirs, embedder, TEXTS["cat"], k=1) == ["cat"]
    assert (ours.lag(), ours.sync(), ours.lag()) == (1, 1, 0)
    there.archive.close()


@pytest.mark.parametrize("failures", [1, 2])
def test_a_rebuild_that_stops_anywhere_is_finished_by_sync(
    small: Ledger, embedder: CountingEmbedder, failures: int
) -> None:
    """Rebuilding takes minutes on a large small: somebody will stop it, and recall must not notice."""
    small.remember(ANN, TEXTS)
    index = FailingIndex()
    projection = VectorProjection.open(small.database, index, embedder, exact_limit=0)
    projection.sync()
    index.failures = failures
    for _ in range(failures):
        with pytest.raises(VectorIndexError):
            projection.rebuild()
        index_failures, index.failures = index.failures, 0
        assert found(projection, embedder, "green tea", 1) == ["tea"]
        index.failures = index_failures
    projection.sync()
    assert projection.verify() == (len(TEXTS), ())


@pytest.mark.requirement("X2")
def test_verify_names_whatever_differs(small: Ledger, embedder: CountingEmbedder) -> None:
    """A projection that can be wrong without a word would make 'rebuildable' worthless."""
    small.remember(ANN, TEXTS)
    index = InMemoryVectorIndex()
    projection = VectorProjection.open(small.database, index, embedder, exact_limit=0)
    projection.sync()
    (home,) = index.collections()
    ids = {name.rpartition(":")[2]: name for name in index.ids(home)}
    shelf = ids["tea"].rpartition(":")[0]
    index.delete(home, [ids["cat"]])
    index.upsert(home, [ids["job"], f"{shelf}:ghost"], [shelf] * 2, np.eye(64, dtype=np.float32)[:2])
    orphan = f"{home.rpartition('-')[0]}-99"
    index.upsert(orphan, ["x"], [shelf], np.eye(64, dtype=np.float32)[:1])
    index.upsert("of-somebody-else", ["x"], [shelf], np.eye(64, dtype=np.float32)[:1])
    compared, differences = projection.verify()
    assert compared == len(TEXTS)
    assert set(differences) == {
        Mismatch(where=home, record_id=ids["cat"], problem="missing"),
        Mismatch(where=home, record_id=f"{shelf}:ghost", problem="extra"),
        Mismatch(where=orphan, record_id="", problem="extra"),
        Mismatch(where=home, record_id="cat", problem="not found by its own vector"),
        Mismatch(where=home, record_id="job", problem="not found by its own vector"),
    }
    seen: list[tuple[int, int]] = []
    assert projection.rebuild(lambda done, total: seen.append((done, total))) == len(TEXTS)
    assert seen[-1] == (len(TEXTS), len(TEXTS))
    assert projection.verify() == (len(TEXTS), ())
    assert "of-somebody-else" in index.collections()


# ------------------------------------------------------------------------------------------------- reach


@pytest.mark.requirement("C3", "X2")
@pytest.mark.parametrize(("tries", "helps"), [(2, True), (1_000, False)])
def test_what_no_search_finds_is_written_once_more_or_searched_in_sql(
    small: Ledger, embedder: CountingEmbedder, tries: int, *, helps: bool
) -> None:
    """A memory to which no way of the graph leads would be gone for whoever asks, and stand in the ledger for ever."""
    index = LossyIndex()
    index.lost["tea"] = tries
    projection = VectorProjection.open(small.database, index, embedder, exact_limit=0)
    small.remember(ANN, TEXTS)
    assert projection.sync() == len(TEXTS)
    assert (index.lost["tea"] == 0) == helps
    assert found(projection, embedder, TEXTS["tea"], k=1) == ["tea"]
    assert projection.nearest([ANN], "memory", asked(embedder, TEXTS["tea"]), 1)[1] == "chroma"
    assert (projection.lag(), projection.verify()) == (0, (len(TEXTS), ()))
    index.lost.clear()
    projection.rebuild()
    with small.database.read() as connection:
        assert vectors.unreached(connection, [1, 2, 3]) == set(), "what is found need not be searched in SQL"


@pytest.mark.requirement("C3", "X2")
@pytest.mark.parametrize("rebuild", [False, True])
def test_what_stood_still_is_looked_for_once_its_neighbours_were_written(
    small: Ledger, embedder: CountingEmbedder, monkeypatch: pytest.MonkeyPatch, *, rebuild: bool
) -> None:
    """A memory must not go missing because what lies beside it was written after it, in a rebuild least of all."""
    monkeypatch.setattr(indexer, "_BATCH", 1)
    index = LossyIndex()
    projection = VectorProjection.open(small.database, index, embedder, exact_limit=0)
    small.remember(ANN, TEXTS)
    projection.sync()
    index.takes = {"tea": "cat"}  # in the order of their names, cats come first
    if rebuild:
        assert projection.rebuild() == len(TEXTS)
    else:
        small.remember(ANN, {"tea": "Ann likes white tea"})
        assert projection.sync() == 1
        assert index.lost["cat"] == 1, "one that is written is no reason to look at all"
        assert projection.verify()[1] == (
            Mismatch(where=next(iter(index.collections())), record_id="cat", problem="not found by its own vector"),
        )
        small.remember(ANN, {"job": "works as a teacher"})
        projection.sync()
    assert index.lost["cat"] == 0
    assert found(projection, embedder, TEXTS["cat"], k=1) == ["cat"]
    assert projection.verify() == (len(TEXTS), ())


@pytest.mark.requirement("C3", "X2")
@pytest.mark.parametrize(("exact_limit", "missed"), [(len(TEXTS), False), (len(TEXTS) - 1, True)])
def test_verify_and_recall_agree_about_what_is_found(
    ledger: Ledger, embedder: CountingEmbedder, exact_limit: int, *, missed: bool
) -> None:
    """An alarm about what every recall finds sends people to rebuild for ever; silence about the others is worse."""
    index = LossyIndex()
    projection = VectorProjection.open(ledger.database, index, embedder, exact_limit=exact_limit)
    ledger.remember(ANN, TEXTS)
    projection.sync()
    index.lost["tea"] = 1
    assert ("tea" not in found(projection, embedder, TEXTS["tea"])) == missed
    assert [each.record_id for each in projection.verify()[1]] == ["tea"] * missed


def test_the_index_is_asked_where_some_scope_sees_too_many_vectors_for_sql(
    ledger: Ledger, embedder: CountingEmbedder
) -> None:
    """What is shared by all users is searched together with each one's own."""
    shared, other = ANN.evolve(user=None, agent="remy"), ANN.evolve(tenant="u")
    for partition, size in ((ANN, 3), (BEN, 1), (shared, 2), (other, 4)):
        ledger.remember(partition, {f"{partition.tenant}{partition.user}{n}": f"tea {n}" for n in range(size)})
    VectorProjection.open(ledger.database, None, embedder).sync()
    with ledger.database.read() as connection:
        places = partition_rows.known(connection, [ANN, BEN, shared, other])
        embedder_id = embedders.require(connection, embedder)
        asked_for = {
            limit: {places[number] for number, _ in placement.searched(connection, embedder_id, limit)}
            for limit in range(6)
        }
    assert asked_for == {
        0: {ANN, BEN, shared, other},
        1: {ANN, BEN, shared, other},
        2: {ANN, BEN, shared, other},
        3: {ANN, shared, other},
        4: {ANN, shared},
        5: set(),
    }


# --------------------------------------------------------------------------------------------- embedders


def test_another_embedder_is_refused_with_the_cure(ledger: Ledger, embedder: CountingEmbedder) -> None:
    """Vectors of two embedders compare to nonsense, without any error of their own."""
    projection = VectorProjection.open(ledger.database, None, embedder)
    for other in (CountingEmbedder("other"), CountingEmbedder(dimension=32)):
        with pytest.raises(EmbedderMismatchError, match="reindex"):
            VectorProjection.open(ledger.database, None, other)
        late = VectorProjection.open(ledger.database, None, other, reindex=True)
        with pytest.raises(EmbedderMismatchError):
            late.nearest([ANN], "memory", asked(other, "tea"), 1)
        with pytest.raises(EmbedderMismatchError):
            late.sync()
    assert projection.sync() == 0


@pytest.mark.slow
def test_reindexing_changes_the_embedder_and_goes_on_where_it_stopped(
    ledger: Ledger, index: VectorIndex, embedder: CountingEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changing the embedder of a large ledger takes hours and money: no text is paid for twice."""
    monkeypatch.setattr(indexer, "_BATCH", 32)
    ledger.remember(ANN, {f"m{number}": f"fact number {number}" for number in range(70)})
    before = VectorProjection.open(ledger.database, index, embedder, exact_limit=0)
    before.sync()
    better = CountingEmbedder("better", 32)
    projection = VectorProjection.open(ledger.database, index, better, exact_limit=0, reindex=True)
    better.lasts = 1
    with pytest.raises(ModelUnavailableError):
        projection.reindex(better)
    assert found(before, embedder, "fact number 7", 1) == ["m7"]
    better.lasts, better.down = -1, False
    ledger.remember(ANN, {"m7": "fact about tea"})
    assert projection.reindex(better) == 70
    assert len(better.texts) <= 71
    assert projection.verify() == (70, ())
    assert found(projection, better, "fact about tea", 1) == ["m7"]
    assert ledger.archive.counts()["vectors"] == 70
    with pytest.raises(EmbedderMismatchError):
        before.nearest([ANN], "memory", asked(embedder, "tea"), 1)


def test_a_text_is_embedded_once_whoever_says_it(ledger: Ledger, embedder: CountingEmbedder) -> None:
    """'Thank you' of a thousand users costs one call, also after a restart; each user still finds only theirs."""
    projection = VectorProjection.open(ledger.database, None, embedder)
    ledger.remember(ANN, {"a": "I like tea.", "b": "I like milk."})
    projection.sync()
    ledger.remember(BEN, {"c": "I like tea.", "d": "I like snow."})
    again = CountingEmbedder()
    projection = VectorProjection.open(ledger.database, None, again)
    projection.sync()
    assert (embedder.texts, again.texts) == (["I like tea.", "I like milk."], ["I like snow."])
    found, _ = projection.nearest([BEN], "memory", again.embed(["I like tea."])[0], 1)
    assert [(one.record_id, round(one.similarity, 5)) for one in found] == [("c", 1.0)]


def test_one_name_with_two_lengths_is_refused(small: Ledger, embedder: CountingEmbedder) -> None:
    """The name stands for the vectors; two kinds under one name could not be told apart."""
    projection = VectorProjection.open(small.database, InMemoryVectorIndex(), embedder)
    with pytest.raises(DimensionError, match="name of its own"):
        projection.reindex(CountingEmbedder(dimension=32))


def test_who_does_not_own_the_index_cannot_rebuild_it(small: Ledger, embedder: CountingEmbedder) -> None:
    """A second process must not drop what the first one writes."""
    projection = VectorProjection.open(small.database, None, embedder)
    with pytest.raises(IndexOwnedError):
        projection.rebuild()
    with pytest.raises(IndexOwnedError):
        projection.reindex(embedder)


# ------------------------------------------------------------------------------------------- collections


def test_shelves_share_collections_and_leave_them_when_they_grow(
    ledger: Ledger, embedder: CountingEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One collection for all is slow for everybody, one for each costs memory; and users grow."""
    monkeypatch.setattr(placement, "CAPACITY", 40)
    monkeypatch.setattr(placement, "SPLIT_AT", 60)
    monkeypatch.setattr(placement, "RESERVED", 10)
    index = InMemoryVectorIndex()
    projection = VectorProjection.open(ledger.database, index, embedder, exact_limit=0)
    people = [ANN.evolve(user=f"u{number}") for number in range(5)]
    for number, person in enumerate(people):
        ledger.remember(person, {f"{number}": "likes tea"})
    projection.sync()
    assert sorted(len(index.ids(name)) for name in index.collections()) == [1, 4]
    for number in (0, 1):
        ledger.remember(people[number], {f"{number}-{n}": f"fact {n}" for n in range(45)})
        projection.sync()
        assert projection.verify()[1] == ()
    assert sorted(len(index.ids(name)) for name in index.collections()) == [1, 2, 46, 46]
    hits, state = projection.nearest(people, "memory", asked(embedder, "likes tea"), 5)
    assert ({hit.record_id for hit in hits}, state) == ({"0", "1", "2", "3", "4"}, "chroma")


def test_a_large_shelf_gets_its_own_collection_at_once(small: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first import of a long history is written once, and not moved while it grows."""
    monkeypatch.setattr(placement, "CAPACITY", 40)
    monkeypatch.setattr(placement, "RESERVED", 10)
    monkeypatch.setattr(indexer, "_BATCH", 8)
    small.remember(ANN, TEXTS)
    small.remember(BEN, {f"b{number}": f"fact {number}" for number in range(45)})
    index = InMemoryVectorIndex()
    VectorProjection.open(small.database, index, CountingEmbedder()).sync()
    assert sorted((name[-2:], len(index.ids(name))) for name in index.collections()) == [("-1", 4), ("-2", 45)]


def test_two_ledgers_share_a_server_without_touching_each_other(tmp_path: Path, embedder: CountingEmbedder) -> None:
    """One Chroma server for several deployments is common; a rebuild of one must not drop the other."""
    index = InMemoryVectorIndex()
    ledgers = [Ledger(f"sqlite:///{tmp_path / name}.db") for name in ("one", "two")]
    projections = [VectorProjection.open(ledger.database, index, embedder) for ledger in ledgers]
    for ledger, projection in zip(ledgers, projections, strict=True):
        ledger.remember(ANN, TEXTS)
        projection.sync()
    projections[0].rebuild()
    for ledger, projection in zip(ledgers, projections, strict=True):
        assert projection.verify() == (len(TEXTS), ())
        ledger.archive.close()


# ------------------------------------------------------------------------------------------ differential

WORDS = ("tea", "cat", "red", "sea", "安", "茶")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.integers(0, 7), st.sampled_from(WORDS), st.sampled_from(WORDS)),
        st.tuples(st.just("status"), st.integers(0, 7), st.sampled_from(["active", "archived"]), st.just("")),
        st.tuples(st.just("sync"), st.just(0), st.just(""), st.just("")),
        st.tuples(st.just("ask"), st.integers(1, 9), st.sampled_from(WORDS), st.just("")),
    ),
    max_size=12,
)


@pytest.mark.requirement("C3")
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
@pytest.mark.slow
def test_every_path_of_the_planner_gives_the_same_answer(
    index: VectorIndex, steps: list[tuple[str, int, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """How many vectors there are decides how they are searched, never what is found; whatever was synced or not."""
    folder = tmp_path_factory.mktemp("paths")
    ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}")
    embedder = CountingEmbedder()
    by_index = VectorProjection.open(ledger.database, index, embedder, exact_limit=0)
    exact = VectorProjection.open(ledger.database, None, embedder)
    for action, number, word, other in (*steps, ("ask", 9, "tea", ""), ("sync", 0, "", ""), ("ask", 9, "tea", "")):
        if action == "text":
            ledger.remember(ANN, {f"m{number}": f"{number} {word} {other}"})
        elif action == "status":
            status: Status = "active" if word == "active" else "archived"
            ledger.move(ANN, [f"m{number}"], status)
        elif action == "sync":
            by_index.sync()
            assert by_index.verify()[1] == ()
        else:
            question = asked(embedder, word)
            for allowed in (None, [f"m{n}" for n in range(4)]):
                one = by_index.nearest([ANN], "memory", question, number, allowed)[0]
                two = exact.nearest([ANN], "memory", question, number, allowed)[0]
                assert [hit.record_id for hit in one] == [hit.record_id for hit in two]
                assert [hit.similarity for hit in one] == pytest.approx([hit.similarity for hit in two], abs=1e-3)
    ledger.archive.close()
