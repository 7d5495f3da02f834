"""Judged answers: a model may say how right they are only by the rules that are shown, and never for free."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evals import qa
from remegraph.language.tokens import estimate_tokens
from remegraph.prompts import LANGUAGES, load, names
from remegraph.testing import ModelCall, ScriptedChatModel


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A conversation, with a question that it answers, one that it does not, and one without an answer to compare."""
    messages = [
        {"id": f"m{number}", "thread": "t", "name": "Ann", "role": "user", "content": content}
        | {"time": f"2025-03-04T12:0{number}:00Z"}
        for number, content in enumerate(("My sister Berta lives in Lisbon.", "I bought a bicycle."))
    ]
    questions = [
        {"text": "Where does Berta live?", "gold": ["m0"], "category": "place", "answer": "Lisbon"},
        {"text": "Where does Zoe live?", "gold": ["m0"], "category": "adversarial", "answer": "Lisbon"},
        {"text": "What did Ann buy?", "gold": ["m1"], "category": "thing"},
    ]
    path = tmp_path / "small.jsonl"
    path.write_text(json.dumps({"store": "ann", "messages": messages, "questions": questions}), encoding="utf-8")
    return path


def _answer(call: ModelCall) -> dict[str, str]:
    """Answer from what is shown."""
    known = "Berta live?" in call.text and "lives in Lisbon" in call.text
    return {"answer": "In Lisbon." if known else "It is not known."}


def _grade(call: ModelCall) -> dict[str, object]:
    """Judge as the instructions say."""
    right = "In Lisbon." if "Expected answer: Lisbon" in call.text else "It is not known."
    return {"reason": "So it says.", "correct": f"Given answer: {right}" in call.text}


def test_answers_come_from_what_is_recalled_and_are_judged(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing answers, saying so is right; a question without an answer to compare is not asked."""
    model = ScriptedChatModel(script={"Answered": _answer, "Verdict": _grade})
    qa.main(["--data", str(data)], model)
    printed = capsys.readouterr().out
    assert [call.schema for call in model.calls] == ["Answered", "Verdict"] * 2
    for name, count in (("small", 2), ("small, place", 1), ("small, adversarial", 1)):
        assert f"{name}: judged right" in printed
        assert f"[1.000, 1.000] of {count}" in printed
    assert "What did Ann buy?" not in "".join(call.text for call in model.calls)


def test_a_wrong_verdict_and_an_unusable_answer_count_as_wrong(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A figure from which failures are left out is too good; which question failed must be seen."""
    model = ScriptedChatModel(
        script={"Answered": [{"answer": "In Porto."}, {"answer": ""}], "Verdict": {"reason": "No.", "correct": False}}
    )
    qa.main(["--data", str(data)], model)
    printed = capsys.readouterr().out
    rows = {line[:42].strip(): line[42:].split() for line in printed.splitlines()}
    assert rows["small: judged right"][0] == "0"
    assert rows["small: answers or verdicts of no use"][0] == "1"
    assert "Where does Zoe live?: " in printed


def test_without_a_model_it_says_how_to_give_one(data: Path) -> None:
    """Nothing may look as if it had been judged."""
    with pytest.raises(SystemExit, match="--model openai:gpt-5-mini"):
        qa.main(["--data", str(data)])


@pytest.mark.parametrize("name", names("evals.prompts"))
def test_the_prompts_are_there_in_each_language_with_the_same_variables(name: str) -> None:
    """A variable that one language lacks is a context that its model never sees."""
    english, chinese = (load(name, language, "evals.prompts") for language in LANGUAGES)
    assert english.variables == chinese.variables
    assert english.system
    assert chinese.system
    assert "memories" not in {name for name in english.variables if f"{{{{{name}}}}}" in english.system}
    assert estimate_tokens(english.system) < 120
