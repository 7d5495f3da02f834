"""The comparison with other memories: whoever quotes its figures must be able to trust how they were made."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evals import _metrics, compare
from evals._measuring import sample
from evals._minilm import _gelu
from evals._ours import Kit
from evals._peers import PEERS, Cached, PeerKind, installed
from evals._rankers import blend_ranker
from evals._records import Question
from evals._stores import stores
from remegraph.language.embedding import HashedEmbedder

RANKED = ("a", "b", "c", "d")


def store(path: Path, unit: str = "message") -> Path:
    """Write a store whose second message, in the second thread, answers."""
    said = ("I love hiking in Wales.", "Berta lives in Lisbon.", "We talk about the weather.")
    messages = [
        {"id": f"m{number}", "thread": f"t{number}", "name": "Ann", "role": "user", "content": content}
        | {"time": f"2025-03-04T12:0{number}:00Z"}
        for number, content in enumerate(said)
    ]
    gold = "m1" if unit == "message" else "t1"
    questions = [{"text": "Where does Berta live?", "gold": [gold], "category": "place"}]
    path.write_text(
        json.dumps({"store": "ann", "gold_unit": unit, "messages": messages, "questions": questions}), encoding="utf-8"
    )
    return path


def test_each_metric_says_what_its_name_says() -> None:
    """The numbers are compared with published ones: nDCG, MRR and recall must be the usual ones."""
    gold = ("b", "d")
    assert [_metrics.recall(RANKED, gold, k) for k in (1, 2, 4)] == [0.0, 0.5, 1.0]
    assert [_metrics.recall_all(RANKED, gold, k) for k in (3, 4)] == [0.0, 1.0]
    assert _metrics.reciprocal_rank(RANKED, gold) == 0.5
    assert _metrics.reciprocal_rank(RANKED, ("x",)) == 0.0
    best = 1 + 1 / math.log2(3)
    assert _metrics.ndcg(RANKED, gold, 4) == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / best)
    assert _metrics.ndcg(("b", "d"), gold, 10) == 1.0


def test_tokens_are_counted_up_to_the_last_gold_message() -> None:
    """What a user pays for an answer is all that stands before it."""
    tokens = {"a": 1, "b": 10, "c": 100, "d": 1000}
    assert _metrics.tokens_to_all(RANKED, ("a", "c"), tokens) == 111
    assert _metrics.tokens_to_all(RANKED, ("x",), tokens) == math.inf


def test_stale_is_first_where_it_comes_before_all_gold() -> None:
    """An answer that held once does harm only where what holds now comes later, or not at all."""
    assert _metrics.stale_first(RANKED, ("b",), ("c", "a")) == 1.0
    assert _metrics.stale_first(RANKED, ("a", "d"), ("b",)) == 0.0
    assert _metrics.stale_first(RANKED, ("x",), ("d",)) == 1.0
    assert _metrics.stale_first(RANKED, ("x",), ("y",)) == 0.0


@pytest.mark.parametrize("unit", ["message", "thread"])
def test_all_memories_are_asked_the_same_and_counted_alike(
    unit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kit, its parts and a peer in one table, on the page, too; a peer as good as the kit is not behind it."""
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- begin: compare small hashed -->\nold\n<!-- end: compare small hashed -->\n", "utf-8")
    with pytest.raises(SystemExit, match="1"):
        compare.main(["--data", str(store(tmp_path / "small.jsonl", unit)), "--peer", "BM25", "--page", str(page)])
    table = capsys.readouterr().out
    written = page.read_text(encoding="utf-8")
    assert written.startswith("Before.\n")
    assert "old" not in written
    assert next(line for line in written.splitlines() if line.startswith("| **")) in table.splitlines()
    rows = {cells[1]: cells[2:] for line in table.splitlines() if len(cells := line.split("|")) > 1}
    left = ("words only", "windows only", "without thread", "without answers", "without speaker, tells and then")
    parts = [f"– {name}" for name in left]
    for name in ("**remegraph**", *parts, "BM25"):
        assert rows[f" {name} "][:7] == [" 1.000 "] * 7
    assert "1 of 1 bars are missed." in table


def test_a_peer_that_is_not_installed_is_named_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """A table that silently lacks a peer looks as if it had been beaten."""
    missing = PeerKind(PEERS["BM25"].make, "nowhere", "nowhere_to_be_found")
    assert list(installed({"Nowhere": missing, "BM25": PEERS["BM25"]})) == ["BM25"]
    assert "Nowhere is not installed: left out." in capsys.readouterr().out


def test_the_same_questions_are_drawn_in_every_run() -> None:
    """Peers that see other questions are not compared."""
    questions: list[Question] = [{"text": str(number), "gold": ["m"]} for number in range(50)]
    drawn = sample(questions, 5)
    assert drawn == sample(questions, 5)
    assert len(drawn) == 5
    assert sample(questions, None) == questions


def test_a_shared_embedder_embeds_no_text_twice() -> None:
    """Six memories share a slow one; the vectors must still be each text's own."""
    asked: list[str] = []

    class Counting(HashedEmbedder):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            asked.extend(texts)
            return super().embed(texts)

    cached = Cached(Counting(64))
    cached.embed(["a walk", "a talk", "a walk"])
    found = cached.embed(["a talk", "a dog"])
    assert asked == ["a walk", "a talk", "a dog"]
    assert np.array_equal(found, HashedEmbedder(64).embed(["a talk", "a dog"]))


def test_the_activation_of_the_semantic_embedder_is_right() -> None:
    """Its formula is our own: a wrong digit would cost every semantic figure a little."""
    values = np.linspace(-6, 6, 101, dtype=np.float32)
    exact = [value / 2 * (1 + math.erf(value / math.sqrt(2))) for value in values.tolist()]
    assert np.allclose(_gelu(values), exact, atol=1e-6)


class Knowing(HashedEmbedder):
    """Says that it knows meaning."""

    semantic = True


def test_with_meaning_the_kit_ranks_as_it_does_in_memory(tmp_path: Path) -> None:
    """The weights are fitted in memory: they hold for the kit only where both rank alike."""
    (read,) = stores(store(tmp_path / "small.jsonl"))
    kit = Kit(Knowing(64), tmp_path / "kit")
    kit.add(read["messages"])
    question = "Where does Ann talk of Berta, and of hiking?"
    found = kit.search(question, 3)
    kit.close()
    assert len(found) == 3
    assert found == blend_ranker(read["messages"], embedder=Knowing(64))(question, 3)
    assert found != blend_ranker(read["messages"])(question, 3)
