"""The embedder that needs no model."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.ports import Embedder


def test_it_is_an_embedder_that_says_what_it_is() -> None:
    """The ledger records which embedder made its vectors, and refuses another."""
    embedder: Embedder = HashedEmbedder(256)

    assert (embedder.name, embedder.dimension, embedder.semantic) == ("hashed-ngram-1:256", 256, False)


@given(st.lists(st.text(st.characters(codec=None), max_size=30), max_size=4))
def test_every_text_gets_a_unit_vector(texts: list[str]) -> None:
    """A NaN or a zero vector poisons a cosine index."""
    vectors = HashedEmbedder(64).embed(texts)

    assert vectors.shape == (len(texts), 64)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_without_words_gets_a_fixed_vector() -> None:
    """Two empty texts are the same."""
    empty, dots = HashedEmbedder().embed(["", "... \x00"])

    assert empty.tolist() == dots.tolist()
    assert empty[0] == 1


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("Where did Anna paint?", "Anna painted in the garden.", "Where did the dog sleep?"),
        ("张伟的生日是哪天", "张伟的生日在五月", "李明的工作地点"),
        ("photography", "a photographer", "a biologist"),
    ],
)
def test_texts_that_share_words_are_nearer(query: str, near: str, far: str) -> None:
    """It knows no meaning, but words, their forms and their parts."""
    asked, close, other = HashedEmbedder().embed([query, near, far])

    assert asked @ close > asked @ other


def test_a_vector_does_not_depend_on_what_else_is_embedded() -> None:
    """Rebuilt in other batches, an index must be the same."""
    texts = [f"text number {n} about 第{n}个" for n in range(600)]
    embedder = HashedEmbedder(128)

    assert np.array_equal(embedder.embed(texts)[300:301], embedder.embed(texts[300:301]))


def test_another_process_gets_the_same_vector() -> None:
    """Python's own hash differs from process to process; an index that outlives one must not."""
    code = (
        "from remegraph.ledger.index.embedders import HashedEmbedder;"
        "print(HashedEmbedder(64).embed(['hello 世界']).tobytes().hex())"
    )

    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")

    assert other.stdout.strip() == HashedEmbedder(64).embed(["hello 世界"]).tobytes().hex()
