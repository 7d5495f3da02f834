"""An embedder from a local folder: no download, no key, and the same vectors as its model gives anywhere else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from remegraph import SetupError
from remegraph.kit.providers import as_embedder

WORDS = {"[PAD]": 0, "tea": 1, "milk": 2, "[UNK]": 3}
TABLE = np.array([[9, 9, 9], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
"""The model: a vector for each word. Padding has one, too, which must not be seen in any other."""


def field(number: int, value: int | bytes | str) -> bytes:
    """Encode a field of a protocol buffer."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def tensor(name: str, kind: int, shape: Sequence[str]) -> bytes:
    """Describe an input or output."""
    dimensions = b"".join(field(1, field(2, each)) for each in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, dimensions)))


def model() -> bytes:
    """Write a model in ONNX that looks each word up in the table."""
    floats, integers = 1, 7
    node = field(1, "table") + field(1, "input_ids") + field(2, "states") + field(4, "Gather")
    table = field(1, TABLE.shape[0]) + field(1, TABLE.shape[1]) + field(2, floats) + field(8, "table")
    graph = field(1, node) + field(2, "lookup") + field(5, table + field(9, TABLE.tobytes()))
    for name in ("input_ids", "attention_mask"):
        graph += field(11, tensor(name, integers, ("rows", "tokens")))
    graph += field(12, tensor("states", floats, ("rows", "tokens", "width")))
    return field(1, 8) + field(8, field(1, "") + field(2, 13)) + field(7, graph)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizer = Tokenizer(WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").write_bytes(model())
    return tmp_path


def unit(*values: float) -> NDArray[np.float32]:
    return np.array(values, np.float32) / np.float32(np.linalg.norm(values))


def test_a_text_is_the_mean_of_its_tokens_whatever_stands_beside_it(folder: Path) -> None:
    """A vector that depended on its batch would make recall depend on chance."""
    embedder = as_embedder(f"onnx:{folder}")
    texts = ["tea", "tea tea milk", *["milk"] * 20, "tea milk " * 600]
    found = embedder.embed(texts)
    assert (embedder.dimension, embedder.semantic) == (3, True)
    assert found.dtype == np.float32
    assert found[:3] == pytest.approx(np.stack([unit(1, 0, 0), unit(2, 1, 0), unit(0, 1, 0)]))
    assert found[-1] == pytest.approx(unit(1, 1, 0))
    assert np.allclose([embedder.embed([text])[0] for text in texts[:4]], found[:4])
    assert embedder.embed([]).shape == (0, 3)
    assert np.isfinite(embedder.embed(["", "\ud800"])).all()


def test_the_model_says_which_token_speaks_for_a_text(folder: Path) -> None:
    """Some models are trained so that their first token holds the meaning; a mean of all would blur it."""
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}), encoding="utf-8")
    assert as_embedder(f"onnx:{folder}").embed(["milk tea"])[0] == pytest.approx(unit(0, 1, 0))


def test_another_model_in_the_same_folder_has_another_name(folder: Path) -> None:
    """Its vectors do not compare with the old ones: the ledger must notice, and refuse."""
    before = as_embedder(f"onnx:{folder}").name
    changed = model().replace(TABLE.tobytes(), (TABLE + 1).tobytes())
    (folder / "onnx" / "model.onnx").write_bytes(changed)
    assert as_embedder(f"onnx:{folder}").name != before


def test_a_folder_without_a_model_is_refused_with_the_cure(folder: Path) -> None:
    """A wrong path is found when the kit opens, not at the first question."""
    with pytest.raises(SetupError, match=r"tokenizer\.json"):
        as_embedder("onnx:/nowhere")
    (folder / "onnx" / "model.onnx").write_bytes(b"torn")
    with pytest.raises(SetupError, match="cannot be read"):
        as_embedder(f"onnx:{folder}")
