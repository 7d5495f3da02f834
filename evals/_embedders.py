"""The embedders that evals measure with, by name."""

from __future__ import annotations

from evals._minilm import MiniLM
from evals._peers import Cached
from remegraph.kit.providers import as_embedder

__all__ = ["EMBEDDERS", "embedder_of"]

EMBEDDERS = ("hashed", "minilm")
"""Hashed n-grams, with nothing downloaded; all-MiniLM-L6-v2, which knows the meaning of English."""


def embedder_of(name: str) -> Cached:
    """Return an embedder that embeds no text twice.

    Args:
        name: One of `EMBEDDERS`.
    """
    return Cached(MiniLM() if name == "minilm" else as_embedder(None))
