"""The eval of long-term memories: it measures what it says, and its bars can be missed."""

from __future__ import annotations

import pytest

from evals import consolidation
from evals._records import Message, Question, Store
from evals.consolidation import Found
from remegraph.language.embedding import HashedEmbedder

TOLD = (
    "I drink sencha tea from Uji.", "I keep my sencha tea at the office.", "Bob gave me sencha tea from Uji.",
    "I jog along the river on Sundays.", "I jog by the river with Rex.", "My knee hurts when I jog by the river.",
)  # fmt: skip


@pytest.mark.requirement("B7", "B8")
def test_a_store_is_consolidated_asked_and_asked_again_without_its_episodes() -> None:
    """The figures are those of the real kit: before, after, and when the episodes are gone."""
    messages = [
        Message(id=f"m{n}", thread="t", name="Ann", role="user", content=text, time=f"2025-03-04T12:0{n}:00Z")
        for n, text in enumerate(TOLD)
    ]
    questions = [Question(text="Where does Ann's sencha come from?", gold=["m0", "m2"], category="place")]
    found = Found()
    consolidation.consolidated(Store(store="ann", messages=messages, questions=questions), HashedEmbedder(), found)
    assert (found.episodes, found.abstracted, found.sources, found.there) == (6, 2, 6, 2)
    assert (found.isolated, found.untraceable, found.quotes, found.again) == (0, 0, 0, 0)
    assert found.before == found.after == found.alone == ([1.0], [1.0])


def test_every_bar_can_be_missed() -> None:
    """An eval that cannot fail measures nothing."""
    good = Found(
        abstracted=2, degrees=[1, 2], there=2, before=([0.5], [0.5]), after=([0.5], [0.6]), alone=([0.1], [0.1])
    )
    assert {figure.verdict for figure in consolidation.figures(good)} == {"", "PASS"}
    bad = Found(
        abstracted=2, degrees=[1, 1], isolated=1, untraceable=1, quotes=1, again=1, there=1,
        before=([0.5], [0.5]), after=([0.4], [0.4]), alone=([0.5], [0.5]),
    )  # fmt: skip
    verdicts = [figure.verdict for figure in consolidation.figures(bad)]
    assert (verdicts.count("FAIL"), verdicts.count("PASS")) == (8, 0)
