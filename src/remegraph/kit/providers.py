"""From a setting to a chat model or an embedder; optional packages are imported here, when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from langchain_core.embeddings import Embeddings

from remegraph.engine.failures import provider_failure
from remegraph.errors import DimensionError, InputError, MissingExtraError, SetupError
from remegraph.language.embedding import HashedEmbedder
from remegraph.language.tokens import estimate_tokens
from remegraph.rules.salience import Purpose, salience

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from remegraph.ports import Attention, Embedder, TokenCounter, Vectors

__all__ = ["LangChainEmbedder", "as_attention", "as_chat_model", "as_embedder", "token_counter"]

_OPENAI_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}

_LONGEST_HASHED = 65_536


class LangChainEmbedder:
    """Any LangChain `Embeddings` as our embedder.

    Args:
        embeddings: The embeddings.
        name: Recorded with every vector; class and model name unless given.
        dimension: Length of the vectors; found out by one call at first use unless given.
    """

    semantic = True

    def __init__(self, embeddings: Embeddings, *, name: str = "", dimension: int | None = None) -> None:
        self._embeddings = embeddings
        model = getattr(embeddings, "model", "") or getattr(embeddings, "model_name", "")
        self.name = name or ":".join(part for part in (type(embeddings).__name__, str(model)) if part)
        self._dimension = dimension

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        if self._dimension is None:
            self._dimension = self._call(["dimension"]).shape[1]
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, shape (len(texts), dimension).

        Raises:
            ModelUnavailableError: The provider failed.
            RequestRefusedError: The provider does not take one of the texts.
            DimensionError: The vectors have another length than before, or are no numbers.
        """
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        vectors = self._call(texts)
        if vectors.shape != (len(texts), self.dimension):
            raise DimensionError(
                f"{self.name} gave vectors of shape {vectors.shape}, not {(len(texts), self.dimension)}.",
                "Give the embedder its real dimension.",
            )
        return vectors

    def _call(self, texts: Sequence[str]) -> Vectors:
        plain = [text.encode("utf-8", "replace").decode("utf-8") or " " for text in texts]
        try:
            answer = self._embeddings.embed_documents(plain)
        except Exception as error:  # the boundary to foreign embedder code
            raise provider_failure(self.name, error) from error
        vectors = np.asarray(answer, dtype=np.float32)
        if vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise DimensionError(f"{self.name} gave no finite vectors.", "Use another embedder.")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, np.where(lengths > 0, lengths, 1), dtype=np.float32)


def as_chat_model(model: BaseChatModel | str | None, timeout: float) -> BaseChatModel | None:
    """Return a chat model as it is, or made from its name `provider:model`; none stays none.

    Args:
        model: The model, its name, or none.
        timeout: Seconds that a call may take, for models made here.

    Raises:
        MissingExtraError: The provider's package is not installed.
        SetupError: There is no such provider.
    """
    if not isinstance(model, str):
        return model
    provider, _, name = model.partition(":")
    if provider == "openai":
        return cast(
            "BaseChatModel",
            _member("langchain_openai", "ChatOpenAI", "openai")(model=name, timeout=timeout, max_retries=0),
        )
    make = _member("langchain.chat_models", "init_chat_model", "langchain")
    try:
        return cast("BaseChatModel", make(model, timeout=timeout, max_retries=0))
    except ImportError as error:
        raise MissingExtraError(f"The package of {provider!r} is not installed.", f"Install it ({error}).") from error
    except ValueError as error:
        raise SetupError(
            f"There is no chat model {model!r}.", "Write provider:model, as in openai:gpt-5-mini."
        ) from error


def token_counter(model: BaseChatModel | None) -> TokenCounter:
    """Return what counts tokens for a chat model: the tokenizer that it was given, else our estimate.

    Its `get_num_tokens` is never asked: it may fetch a vocabulary or call its provider, and recall does neither.

    Args:
        model: The model, if there is one.
    """
    encode = getattr(model, "custom_get_token_ids", None)
    return estimate_tokens if encode is None else lambda text: len(encode(text))


def as_attention(given: Attention | None) -> Mapping[Purpose, Attention]:
    """Return what scores attention, by what it is for: our model, or the host's own for everything.

    Args:
        given: The host's own; what it returns is checked.

    Raises:
        SetupError: It cannot be called.
    """
    if given is None:
        return {"now": partial(salience, purpose="now"), "later": partial(salience, purpose="later")}
    if not callable(given):
        raise SetupError(f"The attention is of type {type(given).__name__}.", "Give a callable, or none.")

    def checked(text: str, before: Sequence[str], /) -> float:
        score: object = given(text, before)
        if not isinstance(score, int | float) or not 0 <= score <= 1:
            raise InputError(f"The attention callable returned {score!r}.", "Let it return a number from 0 to 1.")
        return float(score)

    return {"now": checked, "later": checked}


def as_embedder(embedder: Embedder | Embeddings | str | None) -> Embedder:
    """Return an embedder as it is, over LangChain `Embeddings`, or made from its name; hashed n-grams for none.

    Args:
        embedder: The embedder, LangChain `Embeddings`, a name `provider:model` (`hashed:512` for hashed n-grams of
            another length, `onnx:/folder` for a model on this machine), or none.

    Raises:
        MissingExtraError: The provider's package is not installed.
        SetupError: There is no such provider.
    """
    if embedder is None:
        return HashedEmbedder()
    if isinstance(embedder, str):
        return _named(embedder)
    if isinstance(embedder, Embeddings):
        return LangChainEmbedder(embedder)
    return embedder


def _named(name: str) -> Embedder:
    provider, _, model = name.partition(":")
    if provider == "hashed":
        return _hashed(model)
    if provider == "openai":
        made = _member("langchain_openai", "OpenAIEmbeddings", "openai")(model=model)
        return LangChainEmbedder(made, name=name, dimension=_OPENAI_DIMENSIONS.get(model))
    if provider == "onnx":
        for module, member in (("onnxruntime", "InferenceSession"), ("tokenizers", "Tokenizer")):
            _member(module, member, "onnx")
        from remegraph.kit.onnx import OnnxEmbedder

        return OnnxEmbedder(Path(model).expanduser())
    if provider == "fastembed":
        return LangChainEmbedder(_FastEmbed(model), name=name)
    make = _member("langchain.embeddings", "init_embeddings", "langchain")
    try:
        return LangChainEmbedder(make(name), name=name)
    except (ImportError, ValueError) as error:
        raise SetupError(f"There is no embedder {name!r}.", f"Write provider:model ({error}).") from error


def _hashed(dimension: str) -> Embedder:
    if not dimension:
        return HashedEmbedder()
    if not dimension.isdecimal() or not 1 <= int(dimension) <= _LONGEST_HASHED:
        raise SetupError(
            f"{dimension!r} is no length of hashed vectors.",
            f"Write hashed:512, or any number up to {_LONGEST_HASHED:,}.",
        )
    return HashedEmbedder(int(dimension))


class _FastEmbed(Embeddings):
    """LangChain's `Embeddings` over fastembed, which fetches its model on first use."""

    def __init__(self, model: str) -> None:
        self._model = _member("fastembed", "TextEmbedding", "fastembed")(model)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector.tolist() for vector in self._model.embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def _member(module: str, name: str, extra: str) -> Any:
    """Return a member of an optional package."""
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The package {module.partition('.')[0]} is not installed.", f"Run: pip install 'remegraph[{extra}]'."
        ) from error
