"""Sentences as spans of the original."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.text.sentences import asks, sentences


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("I came. I saw! Did I win?", ["I came.", "I saw!", "Did I win?"]),
        ("我来了。我看了！我赢了吗？", ["我来了。", "我看了！", "我赢了吗？"]),
        ("他说：「好。」然后走了；再没回来。", ["他说：「好。」", "然后走了；", "再没回来。"]),
        ("真的吗?我不信!走吧", ["真的吗?", "我不信!", "走吧"]),
        ("One\ntwo\n\n three ", ["One", "two", "three"]),
        (
            "Dr. Smith met Mr. J. Doe, e.g. at 5 p.m. today. Fine.",
            ["Dr. Smith met Mr. J. Doe, e.g. at 5 p.m. today.", "Fine."],
        ),
        ("We met at 5 p.m. Then we ate.", ["We met at 5 p.m.", "Then we ate."]),
        ("It costs 3.50 dollars, v1.2.3 of a.b.c.", ["It costs 3.50 dollars, v1.2.3 of a.b.c."]),
        (
            "Mail bob.x@mail.example.org. Or see https://a.b/c?d=1!e now.",
            ["Mail bob.x@mail.example.org.", "Or see https://a.b/c?d=1!e now."],
        ),
        ("Well... maybe. Wait... What?", ["Well... maybe.", "Wait...", "What?"]),
        ('He said "Go." She went.', ['He said "Go."', "She went."]),
        ("1. Buy milk. 2 eggs too.", ["1. Buy milk.", "2 eggs too."]),
        ("It was I. You know.", ["It was I.", "You know."]),
        ("no. yes. ok", ["no.", "yes.", "ok"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_a_text_is_split_where_its_sentences_end(text: str, parts: list[str]) -> None:
    """An extract of half a sentence, or of an e-mail address, is of no use."""
    assert [span.text for span in sentences(text)] == parts


@given(st.text(st.sampled_from('ab A1.!?。！ \n"”u@/:')))
def test_spans_index_the_original_and_lose_nothing(text: str) -> None:
    """Quotes are checked against the source letter by letter."""
    spans = sentences(text)

    assert all(text[span.start : span.end] == span.text for span in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    assert "".join("".join(span.text.split()) for span in spans) == "".join(text.split())


@pytest.mark.requirement("X17")
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("मैं हैदराबाद में रहता हूँ। वैसे नौकरी छोड़ने वाला हूँ।", ["मैं हैदराबाद में रहता हूँ।", "वैसे नौकरी छोड़ने वाला हूँ।"]),
        ("متى تصل؟ أنا في البيت. نعم", ["متى تصل؟", "أنا في البيت.", "نعم"]),
        ("میں لاہور میں ہوں۔ آپ کہاں ہیں؟", ["میں لاہور میں ہوں۔", "آپ کہاں ہیں؟"]),
        ("仙台です。大学院に進むので｡専門は地震学です", ["仙台です。", "大学院に進むので｡", "専門は地震学です"]),
        ("¿Fechas? El viernes. ¡Ya!", ["¿Fechas?", "El viernes.", "¡Ya!"]),
        ("Il dit « oui. » Puis il part.", ["Il dit « oui. »", "Puis il part."]),
        ("강아지예요. 이름은 보리!", ["강아지예요.", "이름은 보리!"]),
    ],
)
def test_sentences_end_as_each_language_ends_them(text: str, parts: list[str]) -> None:
    """What is one sentence goes as a whole when something in it is forgotten."""
    assert [span.text for span in sentences(text)] == parts


@pytest.mark.requirement("X17")
@pytest.mark.parametrize("text", ["متى تصل؟", "今ですか？", "¿Fechas?", "कब जाना है?"])
def test_a_question_is_one_in_every_script(text: str) -> None:
    """A short answer is kept with the question that it answers."""
    assert asks(text)
