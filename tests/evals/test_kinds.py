"""Recall in kinds of conversation: whoever quotes its figures must be able to trust how they were made, and see losses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evals import _metrics, kinds
from evals._dialogues import Dialogue, dialogues
from evals._figures import Figure
from evals._measuring import ADVERSARIAL, METRICS, STALE_FIRST, Row, measure, sample, worth
from evals._minilm import _gelu
from evals._peers import OURS, PEERS, Cached, Kit, Peer, PeerKind, Scored, installed
from evals._rankers import MemoryIndex, Ranker, blend_ranker, bm25_ranker
from evals._records import Message, Question, Store, said
from evals._stores import stores
from evals.fit_blend import Asked, refitted
from evals.kinds import Found, apart, files, losses, never_mentioned, questions_of, refit, table
from remegraph.engine.retrieval.blend import Weights, default_weights
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.ports import Embedder

RANKED = ("a", "b", "c", "d")
EMBEDDER = HashedEmbedder(64)
SAID = ("I love hiking in Wales.", "Berta lives in Lisbon.", "We talk about the weather.", "The bicycle is red.")
QUESTIONS: Mapping[str, Question] = {
    "where": {"text": "Where does Berta live?", "gold": ["m1"], "stale": ["m0"]},
    "what": {"text": "Which colour is the bicycle?", "gold": ["m3"]},
    "swapped": {"text": "Where does Ann live?", "gold": ["m1"], "category": ADVERSARIAL},
    "nothing": {"text": "What is the tortoise called?", "gold": [], "category": "never mentioned"},
}
DIALOGUES = Path(kinds.__file__).with_name("dialogues")


def store(name: str = "ann", unit: str = "message") -> Store:
    messages: list[Message] = [
        {"id": f"m{number}", "thread": f"t{number}", "name": "Ann", "role": "user", "content": content}
        | {"time": f"2025-03-04T12:0{number}:00Z"}  # type: ignore[misc]
        for number, content in enumerate(SAID)
    ]
    asked: list[Question] = [QUESTIONS[each].copy() for each in ("where", "what", "swapped")]
    for question in asked if unit == "thread" else ():
        question |= {"gold": [gold.replace("m", "t") for gold in question["gold"]], "stale": []}
    return {"store": name, "gold_unit": unit, "messages": messages, "questions": asked}


def written(path: Path, *whole: Store) -> Path:
    path.write_text("\n".join(map(json.dumps, whole)), encoding="utf-8")
    return path


class Planted(Peer):
    """Finds what it is planted to find."""

    def __init__(self, find: Callable[[Question], Sequence[str]]) -> None:
        self._find = find

    def add(self, messages: Sequence[Message]) -> None:
        """Take all."""

    def search(self, question: str, k: int) -> Sequence[Scored]:
        raise NotImplementedError

    def ask(self, question: Question, k: int) -> Sequence[Scored]:
        return [(name, 1 - place / 10) for place, name in enumerate(self._find(question)[:k])]


def right(question: Question) -> Sequence[str]:
    return question["gold"] if question.get("category") != ADVERSARIAL else ()


def everything(question: Question) -> Sequence[str]:
    return [*question["gold"], *(name for name in ("m0", "m1", "m2", "m3") if name not in question["gold"])]


def asked(**memories: Callable[[str], Callable[[Question], Sequence[str]]]) -> Found:
    """Ask memories, planted by kind, of two kinds of which each has two questions that something answers."""

    def rows(name: str) -> list[Row]:
        return [
            row
            for kind in ("chat", "notes")
            for row in measure(
                kind,
                store(),
                lambda *_: Planted(memories[name](kind)),  # noqa: B023 - called at once
                EMBEDDER,
                list(QUESTIONS.values()),
            )
        ]

    return Found({OURS if name == "ours" else name: rows(name) for name in memories})


def verdicts(figures: Sequence[Figure]) -> dict[str, str]:
    return {figure.name: figure.verdict for figure in figures}


def test_each_metric_says_what_its_name_says() -> None:
    """The numbers are compared with published ones: recall and MRR must be the usual ones."""
    gold = ("b", "d")
    assert [_metrics.recall(RANKED, gold, k) for k in (1, 2, 4)] == [0.0, 0.5, 1.0]
    assert _metrics.reciprocal_rank(RANKED, gold) == 0.5
    assert _metrics.reciprocal_rank(RANKED, ("x",)) == 0.0
    assert worth({"text": "", "gold": []}, RANKED) == {}


def test_stale_is_first_where_it_comes_before_all_gold() -> None:
    """An answer that held once does harm only where what holds now comes later, or not at all."""
    assert _metrics.stale_first(RANKED, ("b",), ("c", "a")) == 1.0
    assert _metrics.stale_first(RANKED, ("a", "d"), ("b",)) == 0.0
    assert _metrics.stale_first(RANKED, ("x",), ("d",)) == 1.0
    assert _metrics.stale_first(RANKED, ("x",), ("y",)) == 0.0


def test_what_is_told_apart_is_the_area_under_roc() -> None:
    """Half is chance; a memory that found nothing at all scores lowest."""
    assert _metrics.told_apart([2, 3], [0, 1]) == 1
    assert _metrics.told_apart([0, 1], [2, 3]) == 0
    assert _metrics.told_apart([1, 1], [1, 1]) == 0.5
    assert _metrics.told_apart([1, 3], [2, -math.inf]) == 0.75


def test_a_kit_that_is_as_good_as_the_others_loses_nothing() -> None:
    """Where nothing is red, something else could be."""
    found = asked(ours=lambda _: right, other=lambda _: right)
    assert set(verdicts([*losses(found, "hashed"), *apart(found, "hashed")[1]]).values()) == {"PASS"}
    assert not [line for metric in METRICS for line in table(found, metric) if "▼" in line or "▽" in line]


def test_a_kit_that_returns_nothing_loses_everything_that_something_answers() -> None:
    """Silence is right only where nothing answers."""
    found = asked(ours=lambda _: lambda _: (), other=lambda _: right)
    lost = verdicts(list(losses(found, "hashed")))
    assert {name for name, verdict in lost.items() if verdict == "FAIL"} == {
        f"{kind}, hashed: {metric}" for kind in ("chat", "notes") for metric in METRICS
    }
    assert sum("▼" in line for line in table(found, "R@5")) == 2


def test_a_kit_that_returns_everything_is_red_where_nothing_answers() -> None:
    """Recall is perfect, and so is that of a memory that shows all it has."""
    found = asked(ours=lambda _: everything, other=lambda _: right)
    assert set(verdicts(list(losses(found, "hashed"))).values()) == {"PASS"}
    lines, figures = apart(found, "hashed")
    shown = {name: verdict for name, verdict in verdicts(figures).items() if "shown" in name}
    assert shown == {
        "never mentioned, hashed: shown / where something answers": "FAIL",
        "adversarial, hashed: shown / where something answers": "FAIL",
    }
    told = {name: verdict for name, verdict in verdicts(figures).items() if "told apart" in name}
    assert set(told.values()) == {"FAIL"}
    assert len(lines) == 2 + 2 * 2


def test_a_kit_that_loses_one_kind_is_red_in_that_kind_alone() -> None:
    """A mean over all kinds would hide it."""
    found = asked(ours=lambda kind: right if kind == "chat" else lambda _: (), other=lambda _: right)
    lost = {name for name, verdict in verdicts(list(losses(found, "hashed"))).items() if verdict == "FAIL"}
    assert lost == {f"notes, hashed: {metric}" for metric in METRICS}
    assert [line.split(" | ")[0] for line in table(found, "R@10") if "▼" in line] == ["| notes"]


def test_what_is_stale_first_is_a_loss_and_less_of_it_none() -> None:
    """Of this figure alone less is better."""
    old = lambda _: lambda question: [*question.get("stale", ()), *question["gold"]]  # noqa: E731
    worse, better = asked(ours=old, other=lambda _: right), asked(ours=lambda _: right, other=old)
    name = f"chat, hashed: {STALE_FIRST}"
    assert [verdicts(list(losses(found, "hashed")))[name] for found in (worse, better)] == ["FAIL", "PASS"]


def test_adversarial_questions_are_left_out_of_recall() -> None:
    """They have evidence, of the other speaker: whoever finds it has found no answer."""
    found = asked(ours=lambda _: everything)
    assert len(found.values(OURS, "chat", "R@5")) == 2
    assert [row.category for row in found.of(OURS, ADVERSARIAL)] == [ADVERSARIAL] * 2


def test_a_store_is_asked_what_others_were_and_what_nobody_mentioned(tmp_path: Path) -> None:
    """Questions of other stores are drawn alike in every run; one whose words occur in the store asks for something."""
    path = tmp_path / "never.json"
    found = [
        {"set": "chat_dev", "store": of, "text": f"What about the {word}?", "words": [word]}
        for of, word in (("ann", "tortoise"), ("ann", "bicycle"), ("bob", "piano"))
    ]
    path.write_text(json.dumps({"questions": found}), encoding="utf-8")
    assert [each["text"] for each in never_mentioned("chat", store(), path)] == ["What about the tortoise?"]
    assert never_mentioned("chat", store(), tmp_path / "missing.json") == []
    whole = [store(), store("bob")]
    questions = questions_of("chat", whole[0], whole)
    assert questions == questions_of("chat", whole[0], whole)
    assert {each["text"] for each in questions if not each["gold"]} == {
        QUESTIONS[name]["text"] for name in ("where", "what")
    }
    assert {each.get("category") for each in questions if not each["gold"]} == {"asked of another store"}


def test_weights_are_fitted_without_the_kind_that_they_are_tried_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refit that saw the kind would say nothing of unseen ones; and memory must rank as the kit does."""
    fitted_to: list[int] = []

    def heard(questions: Sequence[Asked], *, semantic: bool) -> Weights:
        fitted_to.append(len(questions))
        return refitted(questions, semantic=semantic)

    monkeypatch.setattr(kinds, "refitted", heard)
    data: dict[str, list[Store]] = {
        kind: [{**store(), "questions": store()["questions"][:size]}] for kind, size in (("chat", 2), ("notes", 1))
    }
    rows = [row for kind, (one,) in data.items() for row in measure(kind, one, Kit, EMBEDDER, one["questions"])]
    lines, figures = refit(data, EMBEDDER, Found({OURS: rows, "BM25": rows}), "hashed")
    assert [line.split(" | ")[:2] for line in lines[2:]] == [["| chat", "2"], ["| notes", "1"]]
    assert fitted_to == [1, 2]
    assert set(verdicts(figures).values()) == {"PASS"}
    others = [row if row.kind == "chat" else Row("notes", "", ("m2",), row.values, 1, 0.0) for row in rows]
    unlike = verdicts(refit(data, EMBEDDER, Found({OURS: others}), "hashed")[1])
    assert unlike["notes, hashed: answers of the kit unlike those in memory"] == "FAIL"
    assert unlike["chat, hashed: answers of the kit unlike those in memory"] == "PASS"


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["message", "thread"])
def test_the_whole_command_runs_and_fills_the_page(
    unit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder of kinds, other files in it left alone; ours and BM25 in one table; on the page, too."""
    data = tmp_path / "data"
    data.mkdir()
    for kind in ("chat", "notes"):
        written(data / f"{kind}_dev.jsonl", store(unit=unit), store("bob", unit))
    (data / "pairs_dev.jsonl").write_text('{"one": 1}\n', encoding="utf-8")
    assert list(files([data])) == ["chat", "notes"]
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- begin: kinds R@5 hashed -->\nold\n<!-- end: kinds R@5 hashed -->\n", "utf-8")
    with pytest.raises(SystemExit):
        kinds.main(["--data", str(data), "--embedder", "hashed", "--memory", "BM25", "--page", str(page)])
    printed, text = capsys.readouterr().out, page.read_text(encoding="utf-8")
    assert text.startswith("Before.\n")
    assert "old" not in text
    assert "| chat | 4 | 1.000 (1.000–1.000) | 1.000 (1.000–1.000) |" in text
    assert "chat, hashed: R@5" in printed
    assert "chat: isolated memories" in printed


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
    """Five memories share a slow one; the vectors must still be each text's own."""
    embedded: list[str] = []

    class Counting(HashedEmbedder):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            embedded.extend(texts)
            return super().embed(texts)

    cached = Cached(Counting(64))
    cached.embed(["a walk", "a talk", "a walk"])
    found = cached.embed(["a talk", "a dog"])
    assert embedded == ["a walk", "a talk", "a dog"]
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
    (read,) = stores(written(tmp_path / "small.jsonl", store()))

    def ranked(embedder: Embedder) -> Sequence[str]:
        index = MemoryIndex(read["messages"], None, embedder)
        return blend_ranker(index, default_weights(semantic=embedder.semantic))(question, 3)

    kit = Kit(Knowing(64), tmp_path / "kit")
    kit.add(read["messages"])
    question = "Where does Ann talk of Berta, and of hiking?"
    found = [name for name, _ in kit.search(question, 3)]
    kit.close()
    assert len(found) == 3
    assert found == ranked(Knowing(64))
    assert found != ranked(HashedEmbedder(64))


def test_attention_is_tried_on_kinds_where_some_messages_answer_and_others_do_not() -> None:
    """Where everything is asked for, nothing can be told apart, and such a kind would teach that all is evidence."""
    everything: Store = {**store(), "questions": [{"text": "All?", "gold": [f"m{number}" for number in range(4)]}]}
    some: Store = {**store(), "questions": store()["questions"][:2]}
    lines = kinds._attention(
        {"chat": [some], "notes": [some], "wishes": [everything], "threads": [store("bob", "thread")]}
    )
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| chat", "| notes"]
    assert "nan" not in "".join(lines)


def cosine_ranker(messages: Sequence[Message]) -> Ranker:
    """Rank single messages by vectors alone, as a vector store does."""
    embedder = HashedEmbedder()
    vectors = embedder.embed([said(each) for each in messages])

    def ranked(question: str, k: int, at: datetime | None = None) -> Sequence[str]:  # noqa: ARG001 - meaning only
        best = np.argsort(-(vectors @ embedder.embed([question])[0]), kind="stable")[:k]
        return [messages[at]["id"] for at in best]

    return ranked


def recalled(dialogue: Dialogue, rank: Ranker) -> NDArray[np.float64]:
    """Return the metrics of each question about what holds; shape (questions, metrics)."""
    facts = [fact for fact in dialogue.facts if fact.state == "current" and fact.evidence]
    found = [(fact, rank(fact.question, 50, dialogue.asked_at)) for fact in facts]
    values = [worth(Question(text=fact.question, gold=list(fact.evidence)), ids) for fact, ids in found]
    return np.array([[each[metric] for metric in METRICS] for each in values])


@pytest.mark.requirement("X15")
@pytest.mark.parametrize("dialogue", [*dialogues(DIALOGUES)], ids=lambda dialogue: dialogue.name)
def test_recall_of_a_dialogue_is_not_under_plain_words_or_plain_vectors(dialogue: Dialogue) -> None:
    """Nothing was fitted to these four: private and technical, English, Chinese and German."""
    ours = recalled(dialogue, blend_ranker(MemoryIndex(dialogue.messages), default_weights()))
    for plain in (bm25_ranker(dialogue.messages), cosine_ranker(dialogue.messages)):
        gains = ours - recalled(dialogue, plain)
        assert gains[:, METRICS.index("R@10")].mean() >= 0
        assert all(_metrics.interval(gain)[1] > 0 for gain in gains.T)
