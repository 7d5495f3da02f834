"""How much attention a text deserves."""

from __future__ import annotations

import cProfile

import pytest

from remegraph.engine.salience import salience, signs_of, statements, weights
from remegraph.settings import SensoryPolicy
from tests.talk import said

THRESHOLD = SensoryPolicy().threshold

pytestmark = pytest.mark.requirement("B1")


@pytest.mark.parametrize(
    "text",
    [
        "I'm vegan.",
        "Where are my keys?",
        "The flight to Lisbon leaves on Friday.",
        "That's wrong.",
        "Front door opened",
        "我吃素。",
        "我的护照在哪里？",
        "不对，我说的是周二。",
        "门开了",
    ],
)
def test_what_tells_asks_or_sets_right_gets_attention(text: str) -> None:
    """What is dropped here never comes before an agent again."""
    assert salience(text, (), "now") >= THRESHOLD


@pytest.mark.parametrize(
    "text", ["ok thanks", "heartbeat ok", "How are you?", "Great, good job!", "", "\ud800\x00", "谢谢！", "你好吗？"]
)
def test_small_talk_gets_none(text: str) -> None:
    """Seven chunks are soon full of thanks."""
    assert salience(text, (), "now") < THRESHOLD


@pytest.mark.parametrize("text", ["Temperature in the hall: 21.5", "客厅温度是二十一度"])
def test_what_was_heard_a_moment_ago_is_not_new(text: str) -> None:
    """A sensor says the same a thousand times; an agent hears it once."""
    assert salience(text, (), "now") >= THRESHOLD
    assert salience(text, ("Good morning!", text), "now") < THRESHOLD


def test_every_sign_has_a_weight_for_each_purpose_and_no_weight_lacks_its_sign() -> None:
    """A sign that the code renames must not silently drop out of the score."""
    signs = {*signs_of("Ann flies on Friday.", ()), "always"}
    assert weights("now").keys() == weights("later").keys() == signs


def test_a_score_is_the_logistic_sum_of_the_weighed_signs() -> None:
    """Anybody can check a score with pen and paper."""
    assert signs_of("Teapots.", ()) == {**dict.fromkeys(signs_of("", ()), 0.0), "new": 1 / 12}
    assert salience("Teapots.", (), "now") == pytest.approx(1 / (1 + 2.718281828 ** (2.5 - 4.0 / 12)))


@pytest.mark.parametrize("row", ["{at},2026-03-05,7.13,4\n", "1, ", "the tea, "])
def test_a_table_takes_as_long_to_weigh_as_it_is(row: str) -> None:
    """Four kilobytes of a bank statement took a minute, in which the host's process did nothing else."""

    def calls(rows: int) -> int:
        table = "".join(row.format(at=at) for at in range(rows))
        profile = cProfile.Profile(builtins=False)
        profile.runcall(lambda: list(statements([said(table)], [table])))
        return sum(entry.callcount for entry in profile.getstats())

    calls(1)
    few = calls(200)
    assert calls(800) < 5 * few
