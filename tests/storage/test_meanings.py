"""Vectors of messages: made once, in order, only by an embedder that knows meaning, and only for who may see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

from remegraph.errors import ModelUnavailableError
from remegraph.models import Message, Partition
from remegraph.storage import indexer
from remegraph.storage.projection import VectorProjection
from remegraph.testing import InMemoryVectorIndex
from tests.storage.projections import ANN, BEN, NOW, CountingEmbedder, Ledger


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
    assert projection.cosines(ANN, np.ones(8, np.float32), ["a", "b"]).tolist() == [0, 0]
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
    tea, milk = tell(small, ANN, "tea", "milk")
    (secret,) = tell(small, BEN, "secret")
    projection.embed_messages(ANN)
    projection.embed_messages(BEN)
    (late,) = tell(small, ANN, "late")
    vector = embedder.embed(["Ann: milk"])[0]
    found = projection.cosines(ANN, vector, [tea, milk, late, secret])
    assert found[1] == pytest.approx(1)
    assert 0 < found[0] < 1
    assert found[2:].tolist() == [0, 0]


def test_an_embedder_that_knows_words_only_makes_no_vectors_of_messages(small: Ledger) -> None:
    """They would cost room and time, and tell nothing that full text does not."""
    embedder = CountingEmbedder()
    tell(small, ANN, "tea")
    assert opened(small, embedder).embed_messages(ANN) == 0
    assert embedder.texts == []


def test_a_new_embedder_embeds_the_messages_before_it_serves(small: Ledger) -> None:
    """After a change of the embedder, recall is as good as before from the first question on."""
    opened(small, CountingEmbedder()).sync()
    (tea,) = tell(small, ANN, "tea")
    better = Knowing("better", 32)
    projection = VectorProjection.open(small.database, InMemoryVectorIndex(), better, reindex=True)
    projection.reindex(better)
    assert projection.cosines(ANN, better.embed(["Ann: tea"])[0], [tea])[0] == pytest.approx(1)
    assert projection.verify() == (0, ())


def test_only_the_beginning_of_a_long_message_is_embedded(small: Ledger) -> None:
    """Providers refuse long texts: one pasted log must not keep the rest of the conversation from its vectors."""
    embedder = Knowing()
    projection = opened(small, embedder)
    tell(small, ANN, "x" * 10_000, "tea")
    assert projection.embed_messages(ANN) == 2
    assert [len(text) for text in embedder.texts] == [2_000, len("Ann: tea")]
    assert np.isfinite(projection.cosines(ANN, embedder.embed(["tea"])[0], [])).all()
