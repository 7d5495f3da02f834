"""An embedder from a local folder: a model in ONNX with its tokenizer, as Hugging Face keeps sentence transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from remegraph.errors import SetupError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from remegraph.ports import Vectors

__all__ = ["OnnxEmbedder"]

_MODELS = ("model.onnx", "onnx/model.onnx")
_BATCH = 8  # larger ones were no faster: they are padded more
_TOKENS = 512


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
        model = next((folder / name for name in _MODELS if (folder / name).is_file()), None)
        if model is None or not (folder / "tokenizer.json").is_file():
            raise SetupError(
                f"{folder} holds no embedder.", "Name a folder with tokenizer.json and model.onnx or onnx/model.onnx."
            )
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._session = InferenceSession(str(model), providers=["CPUExecutionProvider"])
        except Exception as error:  # both raise Exception itself where they cannot read a file
            raise SetupError(f"The embedder in {folder} cannot be read: {error}", "Export it anew.") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_TOKENS)
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
        for start in range(0, len(by_length), _BATCH):
            places = by_length[start : start + _BATCH]
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
