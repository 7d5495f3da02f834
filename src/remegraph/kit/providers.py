"""Models and embedders: made from names or given objects, and which one writes the memories of which agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from langchain_core.embeddings import Embeddings

from remegraph.deadlines import Gate
from remegraph.engine.chat.model_call import Asker
from remegraph.engine.extractive import ExtractiveThinker
from remegraph.engine.nodes import provider_failure
from remegraph.engine.salience import Purpose, salience
from remegraph.engine.schemas import Schemas
from remegraph.engine.summary_tasks import OwnerRules, Voice
from remegraph.errors import DimensionError, InputError, MissingExtraError, SetupError
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.prompts import Prompt, template
from remegraph.settings import AgentMemorySettings, ExtractionPolicy, Settings, SummaryPolicy
from remegraph.telemetry import telemetry_of
from remegraph.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from numpy.typing import NDArray

    from remegraph.engine.summary_tasks import Meter, Thinker
    from remegraph.ports import Attention, Concluder, Embedder, Generalizer, TokenCounter, Vectors

__all__ = [
    "LangChainEmbedder",
    "OnnxEmbedder",
    "Thinkers",
    "as_attention",
    "as_chat_model",
    "as_embedder",
    "token_counter",
]

_ONNX_FILES = ("model.onnx", "onnx/model.onnx")
_ONNX_BATCH = 8  # larger ones were no faster: they are padded more
_ONNX_TOKENS = 512


class OnnxEmbedder:
    """Embeds by a sentence transformer in ONNX, on this machine, without a download.

    Args:
        folder: Holds `tokenizer.json` and `model.onnx` or `onnx/model.onnx`. Vectors of tokens are averaged, unless
            `1_Pooling/config.json` asks for the first one.

    Raises:
        SetupError: The folder holds no such model.
    """

    semantic = True

    def __init__(self, folder: Path) -> None:
        from onnxruntime import InferenceSession, disable_telemetry_events  # writes into the user's cache when imported
        from tokenizers import Tokenizer

        disable_telemetry_events()
        model = next((folder / name for name in _ONNX_FILES if (folder / name).is_file()), None)
        if model is None or not (folder / "tokenizer.json").is_file():
            raise SetupError(
                f"{folder} holds no embedder.", "Name a folder with tokenizer.json and model.onnx or onnx/model.onnx."
            )
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._session = InferenceSession(str(model), providers=["CPUExecutionProvider"])
        except Exception as error:  # both raise Exception itself where they cannot read a file
            raise SetupError(f"The embedder in {folder} cannot be read: {error}", "Export it again.") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_ONNX_TOKENS)
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._first = _asks_for_first(folder / "1_Pooling" / "config.json")
        self.name = f"onnx:{folder.name}:{blake2b(model.read_bytes(), digest_size=4).hexdigest()}"
        self.dimension = int(self._run([[0]]).shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, shape (len(texts), dimension).

        Args:
            texts: Any texts; of each the first 512 tokens are read.
        """
        tokens = [encoded.ids or [0] for encoded in self._tokenizer.encode_batch([_plain(text) for text in texts])]
        vectors = np.empty((len(texts), self.dimension), np.float32)
        by_length = sorted(range(len(tokens)), key=lambda at: len(tokens[at]))  # alike long ones need little padding
        for start in range(0, len(by_length), _ONNX_BATCH):
            places = by_length[start : start + _ONNX_BATCH]
            vectors[places] = self._run([tokens[at] for at in places])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, np.where(lengths > 0, lengths, 1), dtype=np.float32)

    def _run(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        longest = max(map(len, batch))
        ids = np.array([[*row, *[0] * (longest - len(row))] for row in batch], np.int64)
        mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in batch], np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        output: Any = self._session.run(None, {name: given[name] for name in given.keys() & self._inputs})[0]
        if output.ndim == 2:
            return np.asarray(output, np.float32)  # pooled by the model itself
        if self._first:
            return np.asarray(output[:, 0], np.float32)
        return np.asarray((output * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True), np.float32)


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _asks_for_first(config: Path) -> bool:
    return config.is_file() and bool(json.loads(config.read_text(encoding="utf-8")).get("pooling_mode_cls_token"))


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
        SetupError: There is no such provider, its key is missing, or it is none at all.
    """
    if model is None:
        return None
    if not isinstance(model, str):
        if not callable(getattr(model, "invoke", None)):
            raise SetupError(f"The model is of type {type(model).__name__}.", f"Give a LangChain chat model. {_NAMED}")
        return model
    provider, _, name = model.partition(":")
    options: dict[str, Any] = {"timeout": timeout, "max_retries": 0}
    if provider == "openai":
        make = _member("langchain_openai", "ChatOpenAI", "openai")
        return cast("BaseChatModel", _made(model, lambda: make(model=name, **options)))
    make = _member("langchain.chat_models", "init_chat_model", "langchain")
    return cast("BaseChatModel", _made(model, lambda: make(model, **options)))


_NAMED = "By name: provider:model, as in openai:gpt-5-mini, with the provider's key set, as OPENAI_API_KEY is OpenAI's."


def _made(name: str, make: Callable[[], Any]) -> Any:
    """Return what a provider's package makes of a name.

    Raises:
        MissingExtraError: The package is not installed.
        SetupError: It makes nothing of it, as without its key.
    """
    provider, named, _ = name.partition(":")
    try:
        return make()
    except ImportError as error:
        raise MissingExtraError(f"The package of {provider!r} is not installed.", f"Install it ({error}).") from error
    except Exception as error:  # the boundary to foreign code: for a missing key, each provider has its own
        hint = "" if named else f"Name the provider, as in openai:{name}. "
        raise SetupError(f"No model can be made of {name!r}: {error}", hint + _NAMED) from error


def token_counter(model: BaseChatModel | None) -> TokenCounter:
    """Return what counts tokens for a chat model: the tokenizer that it was given, else our estimate.

    Its `get_num_tokens` is never asked: it may fetch a vocabulary or call its provider, and recall does neither.
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
        SetupError: There is no such provider, its key is missing, or it is none at all.
    """
    if embedder is None:
        return HashedEmbedder()
    if isinstance(embedder, str):
        return _embedder_by_name(embedder)
    if isinstance(embedder, Embeddings):
        return LangChainEmbedder(embedder)
    if not callable(getattr(embedder, "embed", None)):
        raise SetupError(
            f"The embedder is of type {type(embedder).__name__}.", f"Give an embedder or LangChain Embeddings. {_NAMED}"
        )
    return embedder


def _embedder_by_name(name: str) -> Embedder:
    provider, _, model = name.partition(":")
    if provider == "hashed":
        return _hashed(model)
    if provider == "openai":
        member = _member("langchain_openai", "OpenAIEmbeddings", "openai")
        made = _made(name, lambda: member(model=model))
        return LangChainEmbedder(made, name=name, dimension=_OPENAI_DIMENSIONS.get(model))
    if provider == "onnx":
        for module, needed in (("onnxruntime", "InferenceSession"), ("tokenizers", "Tokenizer")):
            _member(module, needed, "onnx")
        return OnnxEmbedder(Path(model).expanduser())
    if provider == "fastembed":
        return LangChainEmbedder(_FastEmbed(model), name=name)
    make = _member("langchain.embeddings", "init_embeddings", "langchain")
    return LangChainEmbedder(_made(name, lambda: make(name)), name=name)


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


@dataclass(frozen=True)
class _Mind:
    """What a thinker is made from."""

    model: BaseChatModel | None
    extraction: ExtractionPolicy
    template: Prompt | None
    schemas: Schemas


class Thinkers:
    """The thinkers of a kit. Models and templates are checked at once; a thinker is made when it is first asked for.

    Args:
        settings: Names agents, with their models, voices and templates.
        model: The kit's chat model; none: extractive mode.
        extractors: Chat models of agents, by name; they come before those that settings name.

    Raises:
        SetupError: A model cannot be made, a template cannot be used, an extractor is for no agent of its own, or there are
            rules of an owner that only a model could keep, and none.
    """

    def __init__(
        self, settings: Settings, model: BaseChatModel | None, extractors: Mapping[str, BaseChatModel | str]
    ) -> None:
        _check_extractors(settings, extractors)
        self._policy = settings.summary
        self._telemetry = telemetry_of(asked=settings.opentelemetry)
        self._minds: dict[str | None, _Mind] = {None: _mind(settings.agent, None, model, settings.summary)}
        for name, agent in settings.agents.items():
            self._minds[name] = _mind(agent, extractors.get(name), model, settings.summary)
        self._made: dict[str | None, Thinker] = {}
        self._gate = Gate(settings.summary.max_concurrency)

    def of(self, agent: str | None) -> Thinker:
        """Return who thinks for an agent; agents that no setting names have one in common."""
        name = agent if agent in self._minds else None
        if name not in self._made:
            self._made[name] = self._thinker(self._minds[name])
        return self._made[name]

    def concluder(self, agent: str | None, meter: Meter) -> Concluder | None:
        """Return who draws conclusions for an agent: its model; none in extractive mode."""
        from remegraph.engine.chat.modelled import ModelConcluder

        mind = self._minds[agent if agent in self._minds else None]
        return None if mind.model is None else ModelConcluder(self._asker(mind.model), meter)

    def generalizer(self, agent: str | None, meter: Meter) -> Generalizer | None:
        """Return who says things more generally for an agent: its model; none in extractive mode."""
        from remegraph.engine.chat.modelled import ModelGeneralizer

        mind = self._minds[agent if agent in self._minds else None]
        return None if mind.model is None else ModelGeneralizer(self._asker(mind.model), meter)

    def names(self) -> dict[str | None, str]:
        """Return what thinks, by agent: for all in common (None), and for each agent with a model of its own."""
        common = self._minds[None].model
        return {
            name: self.of(name).name for name, mind in self._minds.items() if name is None or mind.model is not common
        }

    def _thinker(self, mind: _Mind) -> Thinker:
        from remegraph.engine.chat.modelled import ModelThinker

        if mind.model is None:
            return ExtractiveThinker()
        voice = Voice(mind.extraction.mode, mind.extraction.voice, mind.extraction.language)
        return ModelThinker(
            self._asker(mind.model),
            similar_tokens=self._policy.similar_tokens,
            voice=voice,
            template=mind.template,
            rules=OwnerRules.of(mind.extraction),
            schemas=mind.schemas,
        )

    def _asker(self, model: BaseChatModel) -> Asker:
        policy = self._policy
        return Asker(
            model,
            repairs=policy.repairs,
            retries=policy.retries,
            backoff=policy.backoff,
            longest_wait=policy.longest_wait,
            timeout=policy.timeout,
            telemetry=self._telemetry,
            gate=self._gate,
        )


def _check_extractors(settings: Settings, extractors: Mapping[str, BaseChatModel | str]) -> None:
    for name in extractors:
        if name not in settings.agents:
            raise SetupError(
                f"There is an extractor for {name!r}, whom no setting names.", "Name the agent in settings.agents."
            )
        if settings.agents[name].library == "shared":
            raise SetupError(
                f"There is an extractor for {name!r}, whose library is shared.",
                "What is extracted into a shared library, the kit's model writes: leave the extractor out.",
            )


def _mind(
    agent: AgentMemorySettings,
    extractor: BaseChatModel | str | None,
    model: BaseChatModel | None,
    policy: SummaryPolicy,
) -> _Mind:
    extraction = agent.extraction
    own = as_chat_model(extractor or extraction.model_id, policy.timeout)
    if own is None and model is None and (rules := OwnerRules.of(extraction).need_a_model):
        raise SetupError(
            f"Only a model can judge what falls under {rules[0]!r}, and there is none to keep the owner's rules.",
            "Name a model, or forbid no more than credentials, which code recognises by their form.",
        )
    text = extraction.prompt_template
    try:
        schemas = Schemas(extraction.schemas)
    except InputError as error:
        raise SetupError(error.what, error.cure) from error
    return _Mind(own or model, extraction, None if text is None else template(text, "propose"), schemas)
