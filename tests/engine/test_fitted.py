"""Decisions by fitted weights."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import pytest

from remegraph.engine.salience import Model, model, statements
from remegraph.models import Message


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_weight_has_its_sign(language: Literal["en", "zh"]) -> None:
    """A sign that the code renames must not silently drop out of the decision."""
    said = Message(
        message_id="m0", role="user", name="Ann", content="I hate figs.", time=datetime(2024, 3, 5, tzinfo=UTC)
    )
    (statement,) = statements([said], [])
    assert model("omission", language).weights.keys() <= statement.signs.keys()


def test_a_score_is_the_weighed_signs_above_the_threshold() -> None:
    """Anybody can check a decision with pen and paper."""
    decides = Model(threshold=1.0, weights={"mine": 2.0, "asks": -3.0})
    assert decides.score({"mine": 1.0, "asks": 0.0, "other": 9.0}) == 1.0
    assert decides.score({"mine": 1.0, "asks": 1.0}) == -2.0


def test_what_a_memory_holds_speaks_against_an_omission() -> None:
    """Fitted weights must not contradict what everybody knows, whatever the cases were."""
    omission = model("omission", "en").weights
    assert omission["missing"] > 0 > max(omission["words_held"], omission["asks"])
