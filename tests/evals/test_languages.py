"""Talks in seven languages: what they are remembered in, and what becomes of requests in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from evals._handoff import Answers
from evals.languages import RECORDED, Outcome, figures, languages, talks, tell


@pytest.mark.requirement("X14", "X17")
@pytest.mark.slow
def test_talks_are_remembered_in_their_language_and_requests_in_them_are_carried_out() -> None:
    """With what was answered to today's prompts; an eval that cannot fail measures nothing."""
    said, answers = list(talks()), Answers(RECORDED)
    assert Counter(each.language for each in said).keys() == {"de", "es", "fr", "ja", "ko", "hi", "ar"}
    found = [tell(each, answers) for each in said]
    assert [figure.name for figure in figures(found) if figure.verdict == "FAIL"] == []
    spoiled = [
        replace(each, memories=["The user lives in a town by the sea."], shown=[each.talk.messages[0].text] * 2)
        for each in found
    ]
    assert sum(figure.verdict == "FAIL" for figure in figures(spoiled)) >= 3


@pytest.mark.requirement("X17")
@pytest.mark.slow
def test_without_a_model_nothing_said_in_any_language_is_lost_or_invented() -> None:
    """Each of a person's turns is recalled by its own words, and a memory holds nothing but words that were said."""
    for talk in talks():
        found = tell(talk, None)
        own = [message.text for message in talk.messages if message.role == "user"]
        everything = " ".join("\n".join(message.text for message in talk.messages).split())
        assert found.memories, talk.name
        for memory in found.memories:
            told = memory.partition(": ")[2].partition(" (asked: ")[0]
            assert " ".join(told.split()) in everything, talk.name
        for text, shown in zip((m.text for m in talk.messages), found.shown, strict=True):
            withheld = text not in own or text in found.withheld
            assert withheld or text in shown, (talk.name, text)


def test_a_language_is_told_by_its_script_or_its_small_words() -> None:
    """Han characters stand in Japanese, too; names stand in all of them."""
    said = {
        "de": "Die Tochter von Ann ist seit Mai in Rostock.",
        "es": "La madre de Ann vive en Cuenca con su hermana y no tiene coche.",
        "fr": "Le mari d'Ann est allergique aux arachides.",
        "en": "Ann lives with her mother in Porto.",
        "ja": "Annの専門は地震学である。",
        "ko": "Ann은 해운대에 산다.",
        "hi": "Ann इंदौर में रहती है।",
        "ar": "Ann تسكن في عمّان.",
    }
    assert {tongue: languages(text) for tongue, text in said.items()} == {tongue: {tongue} for tongue in said}
    assert Outcome(next(talks()), ["Ann lives in Porto."]).other_tongue == ["Ann lives in Porto."]
