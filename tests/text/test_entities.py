"""Names, numbers and terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.text.entities import entities


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hey Mel! I went to New York with Anna O'Neil.", "name:Mel name:New York name:Anna O'Neil"),
        ("Thanks, Caroline! We saw the Museum of Modern Art.", "name:Caroline name:Museum of Modern Art"),
        ("Paris is nice. Everyone says so.", ""),
        ("NASA launched it with J. Smith's help.", "name:NASA name:J. Smith"),
        ("I think OK is fine. That is what We do.", ""),
        ("The dog cost $1,200.50 and weighs 15 kg, 30% more.", "number:$1,200.50 number:15 kg number:30%"),
        ("Call search_flights() or getUser, v1.2.3.", "term:search_flights() term:getUser term:v1.2.3"),
        ("Mail bob@x.org, see https://a.b/c?d=1.", "term:bob@x.org term:https://a.b/c?d=1"),
        ('He said "let it be" twice in May 2020.', "quoted:let it be date:May 2020"),
        ("I saw it yesterday with Tom.", "date:yesterday name:Tom"),
        ("我叫李小明，今年25岁。", "name:李小明 date:今年 number:25岁"),
        ("昨天和张伟强去了北京大学，见了刘老师", "date:昨天 name:张伟强 name:北京大学 name:刘老师"),
        ("何医生住在上海市，任何时候都可以，许多人", "name:何医生 name:上海市"),
        ("我看了《红楼梦》和「你好」", "quoted:红楼梦 quoted:你好"),
        ("规模是九千人，花了三千五百元，一个人去的", "number:九千人 number:三千五百元"),
        ("我很高兴，方便的话再说", ""),
        ("", ""),
    ],
)
def test_what_a_text_names_is_found_and_no_more(text: str, found: str) -> None:
    """Routing and coverage checks count on these; a false name costs more than a missed one."""
    got = entities(text)

    assert " ".join(f"{one.kind}:{one.text}" for one in got) == found
    assert all(text[one.start : one.end] == one.text for one in got)


def test_known_names_are_found_wherever_they_stand() -> None:
    """The speakers of a talk are known, even in lower case or at the start of a sentence."""
    got = entities("Mel left. caroline stayed with 小明, not carolines.", known=["Mel", "Caroline", "小明"])

    assert [one.text for one in got] == ["Mel", "caroline", "小明"]


@given(
    st.text(st.sampled_from("aA Bb1.,'’\"“”「」《》@_/:$%年月日张王三的先生和。\n\x00\ud800")),
    st.lists(st.text(max_size=3), max_size=2),
)
def test_any_text_gives_entities_in_order_without_overlap(text: str, known: list[str]) -> None:
    """No message, however odd, stops the digest."""
    end = 0
    for one in entities(text, known):
        assert end <= one.start < one.end
        assert text[one.start : one.end] == one.text
        end = one.end
