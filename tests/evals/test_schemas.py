"""Profiles filled by recorded answers: the figures stand, and an eval that cannot fail measures nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evals._handoff import HandedModel, Prompt
from evals.schemas import cases, figures, filled, main, right
from remegraph.models import ProfileField

pytestmark = pytest.mark.requirement("X19")


@pytest.mark.slow
def test_every_field_is_right_with_its_words_and_no_wrong_type_enters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person, a project and a tool, told by parts of the judged dialogues."""
    monkeypatch.setattr(sys, "argv", ["schemas"])
    main()
    shown = capsys.readouterr().out
    assert "28 of 28" in shown
    assert shown.count("PASS") == 3
    assert "not answered yet" not in shown


def test_prompts_without_an_answer_wait_and_are_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A case with a prompt that waits is named, and its prompt lies in the folder."""
    given = ["schemas", "--recorded", str(tmp_path / "recorded"), "--ask", str(tmp_path / "ask")]
    monkeypatch.setattr(sys, "argv", given)
    main()
    assert capsys.readouterr().out.count("not answered yet.") == 4
    assert len([*(tmp_path / "ask").rglob("*.txt")]) == 4


def test_what_is_told_is_told_in_full_and_by_what_stands_in_the_dialogues() -> None:
    """Three kinds of topics, in two languages, each field of every schema either expected or to be unknown."""
    found = list(cases())
    assert {case.topic.partition(":")[0] for case in found} == {"personal", "task", "tool"}
    assert {case.dialogue.language for case in found} == {"en", "zh"}
    assert sum(len(case.schema.model_fields) for case in found) == 28
    for case in found:
        assert {*case.expect, *case.before} <= case.schema.model_fields.keys()


def test_a_wrong_unknown_or_disputed_field_is_not_right() -> None:
    """What is guessed, and what is stale, counts as wrong."""
    case = next(iter(cases()))
    good = ProfileField("diet", "hannah:diet", value="pescatarian", known=True)
    assert not right(case, good), "what it was before is missing"
    case = replace(case, before={})
    assert right(case, good)
    assert not right(case, replace(good, disputed=True))
    assert not right(case, replace(good, value="vegetarian"))
    assert not right(case, replace(good, value=None, known=False))
    assert not right(case, ProfileField("born_on", "hannah:born_on", value=None, known=True))
    several = ProfileField("allergies", "hannah:allergies", value=["Peanuts"], known=True)
    assert right(case, several)
    assert not right(case, replace(several, value=["peanuts", "nuts"]))


@pytest.mark.slow
def test_a_model_that_fills_nothing_misses_the_bar() -> None:
    """An eval that cannot fail measures nothing."""
    case = next(each for each in cases() if each.topic.startswith("tool:"))

    def nothing(prompt: Prompt) -> dict[str, Any]:
        return {"args": {"summary": "Nothing."} if prompt.tool == "DigestAnswer" else {"operations": []}}

    silent = filled(case, HandedModel(answer=nothing))
    missed = [each.name for each in figures({case.name: (case, silent, silent)}, whole=True) if each.verdict == "FAIL"]
    assert missed == ["fields right", "known fields with their words"]
