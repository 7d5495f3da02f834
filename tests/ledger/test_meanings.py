"""Vectors of messages: made once, in order, only by an embedder that knows meaning, and only for who may see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from sqlalchemy import delete, update

from remegraph.errors import ModelUnavailableError
from remegraph.ledger.database import EVERYBODY
from remegraph.ledger.index import indexer, meanings
from remegraph.ledger.index.projection import VectorProjection
from remegraph.ledger.schema import partitions, vectors
from remegraph.models import Message, Partition
from remegraph.testing import InMemoryVectorIndex
from tests.ledger.projections import ANN, BEN, NOW, CountingEmbedder, Ledger


class Knowing(CountingEmbedder):
    """An embedder that says it knows meaning."""

    semantic = True


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(f"sqlite:///{tmp_path / 'small.db'}")
    yield opened
    opened.archive.close()


def tell(ledger: Ledger, partition: Partition, *texts: str) -> list[str]:
    """Record messages; return their ids."""
    messages = [Message(message_id=uuid4().hex, role="user", name="Ann", content=each, time=NOW) for each in texts]
    ledger.archive.add_messages(partition, messages, NOW)
    return [message.message_id for message in messages]


def opened(ledger: Ledger, embedder: CountingEmbedder) -> VectorProjection:
    return VectorProjection.open(ledger.database, InMemoryVectorIndex(), embedder)


def test_each_message_is_embedded_once(small: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Embedding costs money or minutes: what is known is not paid for again, however often it is asked for."""
    monkeypatch.setattr(indexer, "_BATCH", 2)
    embedder = Knowing()
    projection = opened(small, embedder)
    tell(small, ANN, "tea", "coffee", "milk")
    tell(small, BEN, "secret")
    assert projection.embed_messages(ANN) == 3
    tell(small, ANN, "water")
    assert (projection.embed_messages(ANN), projection.embed_messages(ANN)) == (1, 0)
    assert embedder.texts == ["Ann: tea", "Ann: coffee", "Ann: milk", "Ann: water"]


def test_a_place_that_is_erased_while_it_is_searched_means_nothing_any_more(small: Ledger) -> None:
    """Another process may erase a person between two looks of a recall, which must not fail for it."""
    projection = opened(small, Knowing())
    assert projection.meant([ANN], np.ones(8, np.float32)) == {}
    assert (projection.meanings(ANN, ["a"]), projection.embed_messages(ANN)) == ({}, 0)


def test_what_was_made_before_the_embedder_failed_is_kept(small: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that fails half-way through a long history must not make it start anew."""
    monkeypatch.setattr(indexer, "_BATCH", 2)
    embedder = Knowing()
    projection = opened(small, embedder)
    tell(small, ANN, "tea", "coffee", "milk")
    embedder.lasts = 1
    with pytest.raises(ModelUnavailableError):
        projection.embed_messages(ANN)
    embedder.lasts, embedder.down = -1, False
    assert projection.embed_messages(ANN) == 1
    assert len(embedder.texts) == 3


def test_cosines_are_those_of_the_partition_and_nothing_for_what_has_no_vector(small: Ledger) -> None:
    """A message that was recorded a moment ago is ranked by its words; another user's vectors say nothing."""
    embedder = Knowing()
    projection = opened(small, embedder)
    tell(small, ANN, "tea", "milk")
    tell(small, BEN, "secret")
    projection.embed_messages(ANN)
    projection.embed_messages(BEN)
    tell(small, ANN, "late")
    vector = embedder.embed(["Ann: milk"])[0]
    found = projection.meant([ANN], vector)
    assert list(found) == [ANN]
    assert found[ANN].seqs.tolist() == [1, 2]
    assert found[ANN].cosines[1] == pytest.approx(1, abs=1e-3)
    assert 0 < found[ANN].cosines[0] < 1


def test_what_is_embedded_later_is_found_beside_what_is_in_memory(small: Ledger) -> None:
    """A long history is read once, and each turn adds to it; a cosine does not depend on when it was read."""
    embedder = Knowing()
    kept = opened(small, embedder)
    vector = embedder.embed(["Ann: milk"])[0]
    for text in ("tea", "milk", "water"):
        tell(small, ANN, text)
        kept.embed_messages(ANN)
        kept.meant([ANN], vector)
    bit_by_bit = kept.meant([ANN], vector)[ANN]
    at_once = opened(small, embedder).meant([ANN], vector)[ANN]
    assert bit_by_bit.seqs.tolist() == at_once.seqs.tolist() == [1, 2, 3]
    assert bit_by_bit.cosines.tolist() == at_once.cosines.tolist()


def test_what_is_erased_is_gone_from_memory_too(small: Ledger) -> None:
    """A vector tells of its words: none outlives them, in no process."""
    embedder = Knowing()
    projection = opened(small, embedder)
    tell(small, ANN, "tea", "milk")
    projection.embed_messages(ANN)
    vector = embedder.embed(["Ann: milk"])[0]
    assert projection.meant([ANN], vector)[ANN].seqs.tolist() == [1, 2]
    with small.database.write([EVERYBODY]) as connection:
        connection.execute(delete(vectors).where(vectors.c.kind == "message"))
        connection.execute(update(partitions).values(erasures=partitions.c.erasures + 1))
    assert projection.meant([ANN], vector) == {}


def test_memory_holds_the_newest_where_there_is_no_room_for_all(small: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process must not grow without bound; what is oldest is then found by its words."""
    embedder = Knowing()
    monkeypatch.setattr(meanings, "_MOST_BYTES", 2 * embedder.dimension * 2)
    monkeypatch.setattr(meanings, "_AT_ONCE", 1)
    projection = opened(small, embedder)
    tell(small, ANN, "tea", "milk", "water")
    tell(small, BEN, "juice")
    projection.embed_messages(ANN)
    projection.embed_messages(BEN)
    vector = embedder.embed(["Ann: milk"])[0]
    assert projection.meant([ANN, BEN], vector)[ANN].seqs.tolist() == [2, 3]
    tell(small, ANN, "late")
    projection.embed_messages(ANN)
    assert projection.meant([ANN], vector)[ANN].seqs.tolist() == [3, 4]


def test_an_embedder_that_knows_words_only_makes_no_vectors_of_messages(small: Ledger) -> None:
    """They would cost room and time, and tell nothing that full text does not."""
    embedder = CountingEmbedder()
    tell(small, ANN, "tea")
    assert opened(small, embedder).embed_messages(ANN) == 0
    assert embedder.texts == []


def test_a_new_embedder_embeds_the_messages_before_it_serves(small: Ledger) -> None:
    """After a change of the embedder, recall is as good as before from the first question on."""
    opened(small, CountingEmbedder()).sync()
    tell(small, ANN, "tea")
    better = Knowing("better", 32)
    projection = VectorProjection.open(small.database, InMemoryVectorIndex(), better, reindex=True)
    projection.reindex(better)
    assert projection.meant([ANN], better.embed(["Ann: tea"])[0])[ANN].cosines[0] == pytest.approx(1, abs=1e-3)
    assert projection.verify() == (0, ())


def test_only_the_beginning_of_a_long_message_is_embedded(small: Ledger) -> None:
    """Providers refuse long texts: one pasted log must not keep the rest of the conversation from its vectors."""
    embedder = Knowing()
    projection = opened(small, embedder)
    tell(small, ANN, "x" * 10_000, "tea")
    assert projection.embed_messages(ANN) == 2
    assert [len(text) for text in embedder.texts] == [2_000, len("Ann: tea")]
    assert np.isfinite(projection.meant([ANN], embedder.embed(["tea"])[0])[ANN].cosines).all()
