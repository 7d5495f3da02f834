"""What the eval of owners' rules measures: what a heedless model would keep, and what others' verdicts keep out (X18)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evals._handoff import Answers, Unanswered
from evals.rules import Case, Fate, Group, figures, groups, heedless, main, told
from remegraph.testing import ScriptedChatModel

GROUP = Group(
    "en",
    ("health",),
    (
        Case("I have diabetes.", "User has diabetes.", forbidden=True),
        Case("I live in Porto.", "User lives in Porto.", forbidden=False),
    ),
)


def model(*rules: int, words: bool = True) -> ScriptedChatModel:
    """One that remembers both, and screens like this."""
    said = [
        {"action": "CREATE", "content": case.memory, "evidence": [{"n": 2 * at + 1, "quote": case.statement}]}
        for at, case in enumerate(GROUP.cases)
    ]
    screen: dict[str, Any] = {
        "verdicts": [{"n": n, "rule": rule} for n, rule in enumerate(rules, start=1)],
        "words": [{"n": 1, "quote": "I have diabetes."}] if words else [],
    }
    digest = {"summary": "User has diabetes. User lives in Porto.", "topics": ["personal:Ann"]}
    return ScriptedChatModel(
        script={"DigestAnswer": digest, "ProposalAnswer": {"operations": said}, "ScreenAnswer": screen}
    )


def test_there_are_120_statements_in_three_languages_half_of_them_forbidden() -> None:
    """A share of few is a matter of luck."""
    found = groups()
    assert {group.language for group in found} == {"en", "zh-Hans", "de"}
    assert [case.forbidden for group in found for case in group.cases].count(True) == 60
    assert sum(len(group.cases) for group in found) == 120


def test_what_a_screen_lets_pass_and_what_it_holds_back_is_counted() -> None:
    """Else the figures would be good whatever happened."""
    ill, home = GROUP.cases
    assert told(GROUP, model(1, 0, 1)) == {ill: Fate(False, False, False), home: Fate(True, True, True)}
    assert told(GROUP, model(0, 1, 0, words=False)) == {ill: Fate(True, True, True), home: Fate(False, True, True)}


def test_a_figure_over_its_bar_fails() -> None:
    """A red line that is printed as green is none."""
    ill, home = GROUP.cases
    verdicts = [
        each.verdict for each in figures({ill: Fate(True, True, True), home: Fate(True, True, True)}, whole=True)
    ]
    assert verdicts == ["FAIL", "FAIL", "FAIL", "PASS", "PASS"]


@pytest.mark.slow
@pytest.mark.requirement("X18")
def test_a_heedless_model_keeps_nothing_forbidden_by_the_recorded_verdicts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bar: none of 60 forbidden kept, at most 3 of 60 allowed lost."""
    monkeypatch.setattr("sys.argv", ["rules"])
    main()
    printed = capsys.readouterr().out
    assert printed.count("PASS") == 5
    assert "not answered" not in printed


def test_a_prompt_without_an_answer_is_handed_over(tmp_path: Path) -> None:
    """Nobody guesses."""
    answers = Answers(tmp_path / "recorded.jsonl", tmp_path / "ask")
    with pytest.raises(Unanswered):
        told(GROUP, heedless(GROUP, answers))
    assert len(list((tmp_path / "ask").glob("*.txt"))) == 1
