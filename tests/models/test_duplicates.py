"""When two texts are the same words."""

from __future__ import annotations

import pytest

from remegraph.models.supersession import content_digest


@pytest.mark.requirement("F4")
def test_a_digest_ignores_case_space_and_outer_punctuation() -> None:
    """The same words written otherwise are the same words."""
    assert content_digest("  Ann LIKES\ttea. ") == content_digest("ann likes tea")
    assert content_digest("Ａｎｎ likes tea") == content_digest("Ann likes tea")


@pytest.mark.requirement("F4", "X11")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann sits in room B.", "Ann sits in room C."),
        ("The API is stable.", "The API is not stable."),
        ("Ann likes tea.", "Ann loves tea."),
        ("小林坐在B座。", "小林坐在C座。"),
    ],
)
def test_one_sign_makes_other_words(one: str, other: str) -> None:
    """What is nearly the same is not the same: a letter is what two sentences may be about."""
    assert content_digest(one) != content_digest(other)
